import { invalid } from '../../watch/errors.ts';
import type { Status } from '../../watch/event.ts';
import { toStatus } from '../../watch/event.ts';
import type { Envelope } from '../events/envelope.ts';
import type { ClientOptions } from './hub-options.ts';
import type { ParsedQuery } from './query.ts';
import { invalidQuery } from './query.ts';
import type { CatchUp } from './source/past-event.ts';

/** Where a client starts: what it gets before live events. */
export interface Start {
  readonly missed: readonly Envelope[];
  /** It resumes after a version. */
  readonly resumed: boolean;
  readonly snapshot: boolean;
  /** It resumes before what the hub keeps, and is brought up from the hub's source first. */
  readonly catchUp?: CatchUp | undefined;
}

/** What a hub can start a client with. */
export interface StartOptions {
  /** Returns the events after a version, or undefined if not all of them are known. */
  readonly after: (version: string) => readonly Envelope[] | undefined;
  /** Returns the recent events that a client without a version gets. */
  readonly last: () => readonly Envelope[];
  readonly hasSnapshot: boolean;
}

/** Starts with live events: no replay, no snapshot. */
export const FROM_NOW: Start = { missed: [], resumed: false, snapshot: false };

/**
 * Not a failure: the stream has ended, and the client has received everything. Over HTTP, a response without a body, after which
 * an EventSource stops reconnecting.
 */
export const COMPLETE: Status = toStatus({ code: 204, reason: 'Complete', message: 'the stream has ended' });

/**
 * Returns where a client with this request starts. Without a version: with the snapshot, the last events, or live events. With a
 * version: right after it, or a Status of code 410 if any later event is missing. Never with a part.
 */
export function toStart(asked: ParsedQuery, { after, last, hasSnapshot }: StartOptions): Start | Status {
  const { resourceVersion, sendInitialEvents, isBack = false } = asked;
  if (sendInitialEvents === true && !isBack && !hasSnapshot) {
    return invalidQuery('sendInitialEvents', 'true', 'false, because this server has no snapshot');
  }
  if (resourceVersion === undefined || (sendInitialEvents === true && !isBack)) {
    const snapshot = hasSnapshot && sendInitialEvents !== false;
    return snapshot ? { ...FROM_NOW, snapshot } : { ...FROM_NOW, missed: last() };
  }
  const missed = after(resourceVersion);
  if (missed !== undefined) return { missed, resumed: true, snapshot: false };
  const message = `cannot resume after version ${resourceVersion}: start over without a version`;
  return toStatus({ code: 410, reason: 'Expired', message });
}

/** Returns the missed events that a client's filter accepts. If the filter throws, returns its error and no events. */
export function permitted(
  missed: readonly Envelope[],
  filter: ClientOptions['filter'],
): { readonly missed: readonly Envelope[]; readonly thrown?: { readonly error: unknown } } {
  if (filter === undefined) return { missed };
  try {
    // An event without a position is the server's own message to this client, such as an expired version.
    return { missed: missed.filter((envelope) => envelope.sequence === 0 || filter(envelope)) };
  } catch (error) {
    return { missed: [], thrown: { error } };
  }
}

/** Returns the result of a filter. Throws for a promise, which is truthy: an async filter would let its client see everything. */
export function verdictOf(said: unknown): boolean {
  if (typeof (said as Partial<PromiseLike<unknown>> | null | undefined)?.then !== 'function') return Boolean(said);
  throw invalid('filter', said, 'a boolean, not a promise');
}
