import type { Status } from '../../watch/event.ts';
import type { Fold } from '../policies/fold.ts';
import type { Link } from '../policies/fold-chain.ts';
import { Kept } from './kept.ts';

/**
 * A watcher's state besides its position in the log: events set aside, losses, the filter's last verdict. Most watchers only read
 * along and need none of it; they share one frozen instance ({@link noExtra}).
 */
export class Extra<E> {
  readonly kept: Kept<E> = new Kept();
  /** Number of events this watcher did not get: in total, and since the last gap was reported. */
  lost: number = 0;
  missed: number = 0;
  /** It has overflowed for good: one ERROR event follows the queued events. */
  cut: boolean = false;
  /** It cannot begin where it should: the Status of that ERROR. */
  refusal: Status | undefined;
  discarded: boolean = false;
  /** Why the watch failed. Cleared when a read has reported it. */
  failure: { readonly error: unknown } | undefined;
  /** The position of the last event the filter was asked about, and what it returned or threw. */
  asked: number = -1;
  verdict: boolean | { readonly error: unknown } | undefined;
  judging: boolean = false;
  /** Set while `onGap` is called on behalf of a pending read. That read has its event already, so it is not room for another. */
  reportingGap: boolean = false;
  /** The place among all events of the event that is being queued; kept only if positions are reported (see window.ts). */
  place: number = 0;
  /** Where it began among all events, if that was not distributed yet. */
  begin: number = 0;
  /** Where to continue once everything queued has been read: set when the watcher is cut or has left. */
  resumeAt: number | undefined;
  /** What `coalesce` queues: the unseen changes, and, while the watcher lags, the first link of the changes folded for it. */
  fold: Fold<E> | undefined;
  link: Link<E> | undefined;
  /** Unseen changes from before that link. Other laggards share them, so they must not be modified. */
  unseen: Fold<E> | undefined;
}

const NOTHING: Extra<never> = Object.freeze(new Extra<never>());

/**
 * The instance shared by all watchers with nothing set aside. It is frozen: a write that should have gone to a watcher's own
 * instance throws.
 */
export function noExtra<E>(): Extra<E> {
  return NOTHING;
}
