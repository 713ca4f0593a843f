import type { Fold, Link } from './coalesce.ts';
import { Kept } from './kept.ts';

/**
 * What a watcher has beyond its place in the log: events that were set aside, losses, a filter's last word. Most watchers just
 * read along and never need it: they share one that stays as it is ({@link nothingAside}).
 */
export class Aside<E> {
  readonly kept: Kept<E> = new Kept();
  /** Events that this watcher did not get, in all, and those of them that nobody was told of yet. */
  lost: number = 0;
  missed: number = 0;
  /** It has overflowed for good: after what is queued comes one ERROR event. */
  cut: boolean = false;
  discarded: boolean = false;
  /** Why the watch failed, until a read was told. */
  failure: { readonly error: unknown } | undefined;
  /** The position of the last event that the filter was asked about, and what it said or threw. */
  asked: number = -1;
  verdict: boolean | { readonly error: unknown } | undefined;
  judging: boolean = false;
  /** `onGap` is called, for a read that waited: it has its event already, and is no room for another. */
  telling: boolean = false;
  /** With `coalesce`: the unseen changes, and while the watcher lags the first link of those that others fold for it. */
  fold: Fold<E> | undefined;
  link: Link<E> | undefined;
  /** And, while it lags, those from before that link: others have the same, so they are not to be changed. */
  unseen: Fold<E> | undefined;
}

const NOTHING: Aside<never> = Object.freeze(new Aside<never>());

/** The one that all share who have set nothing aside. It is frozen: a write that should have gone to one's own throws. */
export function nothingAside<E>(): Aside<E> {
  return NOTHING;
}
