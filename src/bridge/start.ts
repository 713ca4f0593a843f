import { invalid } from '../watch/errors.ts';
import type { Status } from '../watch/event.ts';
import { toStatus } from '../watch/event.ts';
import type { Envelope } from './envelope.ts';
import type { ClientOptions } from './hub-options.ts';
import type { Asked } from './query.ts';
import { bad, readVersion } from './query.ts';
import type { ReplayWindow } from './window.ts';

/** Where a client begins: what it gets before what follows. */
export interface Start {
  readonly missed: readonly Envelope[];
  /** It goes on after a version that it named. */
  readonly resumed: boolean;
  readonly snapshot: boolean;
}

/** What a hub has to begin with. */
export interface Beginnings {
  readonly epoch: string;
  readonly window: ReplayWindow;
  /** What a new client gets of the past. */
  readonly replay: number;
  readonly hasSnapshot: boolean;
}

/** From now on: neither past nor snapshot. */
export const FROM_NOW: Start = { missed: [], resumed: false, snapshot: false };

/** No failure: the stream has ended, and whoever asks has all of it that can be had. Over HTTP an answer without a body, at which an EventSource stops asking. */
export const COMPLETE: Status = toStatus({ code: 204, reason: 'Complete', message: 'the stream has ended' });

/**
 * Where a client begins that asked so. Without a version: the snapshot, or the last events, or now. With one: after it, or a
 * Status of code 410, if what came after it is not all here. Never a part.
 */
export function toStart(asked: Asked, { epoch, window, replay, hasSnapshot }: Beginnings): Start | Status {
  const { resourceVersion, sendInitialEvents, isBack = false } = asked;
  if (sendInitialEvents === true && !isBack && !hasSnapshot) {
    return bad('sendInitialEvents', 'true', 'false, since there is no snapshot here');
  }
  if (resourceVersion === undefined || (sendInitialEvents === true && !isBack)) {
    const snapshot = hasSnapshot && sendInitialEvents !== false;
    return snapshot ? { ...FROM_NOW, snapshot } : { ...FROM_NOW, missed: window.last(replay) };
  }
  const version = readVersion(resourceVersion);
  const missed = version?.epoch === epoch ? window.since(version.sequence) : undefined;
  if (missed !== undefined) return { missed, resumed: true, snapshot: false };
  const message = `the version ${resourceVersion} is none that this stream can go on from: start again without one`;
  return toStatus({ code: 410, reason: 'Expired', message });
}

/** What a client may see of the past; if its filter throws, what that threw, and nothing. */
export function permitted(
  missed: readonly Envelope[],
  filter: ClientOptions['filter'],
): { readonly missed: readonly Envelope[]; readonly thrown?: { readonly error: unknown } } {
  if (filter === undefined) return { missed };
  try {
    // What has no place is the server's own word to this client, such as that its version is too old.
    return { missed: missed.filter((envelope) => envelope.sequence === 0 || filter(envelope)) };
  } catch (error) {
    return { missed: [], thrown: { error } };
  }
}

/** What a filter has said. A promise is no word: taken for one, it would let its client see everything. */
export function verdictOf(said: unknown): boolean {
  if (typeof (said as Partial<PromiseLike<unknown>> | null | undefined)?.then !== 'function') return Boolean(said);
  throw invalid('filter', said, 'a boolean at once, no promise');
}
