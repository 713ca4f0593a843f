import type { Fold, Link } from './coalesce.ts';
import { Kept } from './kept.ts';

/**
 * A watcher's state besides its position in the log: events set aside, losses, the filter's last verdict. Most watchers only read
 * along and need none of it; they share one frozen instance ({@link nothingAside}).
 */
export class Aside<E> {
  readonly kept: Kept<E> = new Kept();
  /** Number of events this watcher did not get: in total, and since the last gap was reported. */
  lost: number = 0;
  missed: number = 0;
  /** It has overflowed for good: one ERROR event follows the queued events. */
  cut: boolean = false;
  discarded: boolean = false;
  /** Why the watch failed. Cleared when a read has reported it. */
  failure: { readonly error: unknown } | undefined;
  /** The position of the last event the filter was asked about, and what it returned or threw. */
  asked: number = -1;
  verdict: boolean | { readonly error: unknown } | undefined;
  judging: boolean = false;
  /** Set while `onGap` is called on behalf of a pending read. That read has its event already, so it is not room for another. */
  telling: boolean = false;
  /** With `coalesce`: the unseen changes, and, while the watcher lags, the first link of the changes folded on its behalf. */
  fold: Fold<E> | undefined;
  link: Link<E> | undefined;
  /** Unseen changes from before that link. Other laggards share them, so they must not be modified. */
  unseen: Fold<E> | undefined;
}

const NOTHING: Aside<never> = Object.freeze(new Aside<never>());

/**
 * The instance shared by all watchers with nothing set aside. It is frozen: a write that should have gone to an own one throws.
 */
export function nothingAside<E>(): Aside<E> {
  return NOTHING;
}
