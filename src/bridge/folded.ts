import type { WatchEvent } from '../watch/event.ts';
import { Envelope, envelopeOf } from './envelope.ts';

/** The head of the stream before a batch was read: nothing up to there is left to be read. */
export interface Read {
  readonly head: number;
  readonly version: string;
}

/**
 * What a `coalesce` watch brought, with versions from which a client can go on without a gap.
 *
 * A folded event stands where its object's *first* unseen change stood, and bears the version of its *last*:
 *
 *     happened   a.1 b.2 a.3        read as   a.3 b.2        from version 3 on, b.2 would be missing
 *
 * So of a folded batch only the last event has a version: that of the latest change in it. A client that is cut off in between
 * goes on from before the batch. A batch that was not folded, number after number, is left as it is.
 *
 *     happened   a.1 b.2 -a.3       read as   b.2            from version 2 on, -a.3 would come, of which nobody has heard
 *
 * The latest change may have folded to nothing, with the one that it undid. So the version is that of the head which the batch
 * was read up to, if that is known.
 */
export function unfolded(
  batch: readonly WatchEvent[],
  { after, read }: { after: number; read?: Read | undefined },
): readonly WatchEvent[] {
  let next = after + 1;
  if (batch.every((event) => event instanceof Envelope && event.sequence === next++)) return batch;
  const envelopes = batch.map(envelopeOf);
  const places = envelopes.filter(({ sequence }) => sequence > 0);
  const latest = places.reduce<Envelope | undefined>((a, b) => (a === undefined || b.sequence > a.sequence ? b : a), undefined);
  const last = places.at(-1);
  const through = read !== undefined && latest !== undefined && read.head > latest.sequence ? read.version : latest?.version;
  return envelopes.map((envelope) => {
    if (envelope.sequence === 0) return envelope;
    const version = envelope === last ? through : undefined;
    if (envelope.version === version) return envelope;
    return envelope.relabelled(version);
  });
}
