import type { WatchEvent } from '../watch/event.ts';
import { Envelope, envelopeOf } from './envelope.ts';

/**
 * What a `coalesce` watch brought, with versions from which a client can go on without a gap.
 *
 * A folded event stands where its object's *first* unseen change stood, and bears the version of its *last*:
 *
 *     happened   a.1 b.2 a.3        read as   a.3 b.2        from version 3 on, b.2 would be missing
 *
 * So of a folded batch only the last event has a version: that of the latest change in it. A client that is cut off in between
 * goes on from before the batch. A batch that was not folded, number after number, is left as it is.
 */
export function unfolded(batch: readonly WatchEvent[], after: number): readonly WatchEvent[] {
  let next = after + 1;
  if (batch.every((event) => event instanceof Envelope && event.sequence === next++)) return batch;
  const envelopes = batch.map(envelopeOf);
  const places = envelopes.filter(({ sequence }) => sequence > 0);
  const latest = places.reduce<Envelope | undefined>((a, b) => (a === undefined || b.sequence > a.sequence ? b : a), undefined);
  const last = places.at(-1);
  return envelopes.map((envelope) => {
    if (envelope.sequence === 0) return envelope;
    const version = envelope === last ? latest?.version : undefined;
    if (envelope.version === version) return envelope;
    return envelope.relabelled(version);
  });
}
