import type { WatchEvent } from '../../watch/event.ts';
import { Envelope, envelopeOf } from './envelope.ts';

/** The head of the stream before a batch was read: everything up to it has been read. */
export interface Read {
  readonly head: number;
  readonly version: string;
}

/**
 * Assigns versions to a batch of a `coalesce` watch from which a client can resume without a gap.
 *
 * A folded event is at the place of its object's *first* unseen change, but has the version of its *last*:
 *
 *     happened   a.1 b.2 a.3        read as   a.3 b.2        resuming after 3 would miss b.2
 *
 * So in a folded batch only the last event has a version: that of the latest change in the batch. A client that is cut off within
 * the batch resumes before it. A batch that was not folded (consecutive numbers) is returned unchanged.
 *
 *     happened   a.1 b.2 -a.3       read as   b.2            resuming after 2 would send -a.3, for an unknown object
 *
 * The latest change may have been folded away together with the one that it undid. So the version is that of the head up to which
 * the batch was read, if that is known.
 *
 * An ERROR in the batch keeps its own version: nothing is folded across it, so a client can resume there. And an ERROR without a
 * version, which ends a connection, is always the server's.
 */
export function toResumable(
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
    const version = envelope === last ? through : envelope.type === 'ERROR' ? envelope.version : undefined;
    if (envelope.version === version) return envelope;
    return envelope.relabelled(version);
  });
}
