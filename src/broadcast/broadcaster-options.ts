import type { Clock } from '../watch/clock.ts';
import type { KeepingOverflow, Overflow } from '../watch/overflow.ts';

/** Options of a {@link Broadcaster}. A watcher may override `capacity` and `overflow`. */
export interface BroadcasterOptions<E> {
  /**
   * Queue length per watcher, in events (with `coalesce`: in keys). A whole number >= 0; default 100. With 0, a watcher receives
   * an event only while a read is pending.
   */
  readonly capacity?: number | undefined;
  /** What happens to an event that does not fit in a watcher's queue; default `wait`, which loses nothing. */
  readonly overflow?: Overflow | undefined;
  /** Number of events accepted ahead of distribution while a `wait` watcher is full; default 25. */
  readonly incoming?: number | undefined;
  /** Number of publishes that may wait for room before `publish` rejects with OVERLOADED; default 10,000. */
  readonly maxPending?: number | undefined;
  /**
   * The key by which `coalesce` folds; default namespace and name in `object.metadata`, which objects of several kinds may share.
   * If it throws, as the default does for an object without a name (INVALID_ARGUMENT), the `coalesce` watch ends with that error.
   */
  readonly keyOf?: ((event: E) => string) | undefined;
  /**
   * The topics of an event: one, several, or none. Watchers that ask for `topics` get events by topic, and events of other topics
   * cost them nothing. Called once per event, when it is published; if it throws, `publish` fails with that error.
   */
  readonly topicsOf?: ((event: E) => string | readonly string[] | undefined) | undefined;
  /** Number of past events to keep, for watches that begin with `replay` or `after`; default 0. */
  readonly replay?: number | undefined;
  /** Also limits the total size of the events kept for `replay`, in bytes as returned by `sizeOf`; default no limit. */
  readonly replayBytes?: number | undefined;
  /**
   * The size of an event in bytes, a whole number. Required with `replayBytes`. Called once per event, when it is published; if it
   * throws, `publish` fails with that error.
   */
  readonly sizeOf?: ((event: E) => number) | undefined;
  /**
   * How long a `wait` watcher may hold up the publisher before `onError` is called with a TIMEOUT that names it, in milliseconds;
   * default 60,000. 0: for ever.
   */
  readonly stalledMs?: number | undefined;
  /** Called with that error. What it throws is ignored. Default: `console.error`, once, and when publishing goes on. */
  readonly onError?: ((error: unknown) => void) | undefined;
  /** Source of time for these. Default: the host's. */
  readonly clock?: Clock | undefined;
}

/** One watcher of a broadcaster, at one moment. */
export interface WatcherStats {
  /** As `watch` got it. */
  readonly name: string | undefined;
  /** Number of events that it has not read, and of those that it has lost. */
  readonly queued: number;
  readonly dropped: number;
  /** Since when the publisher has waited for it, by the broadcaster's clock. Absent: nobody waits for it, or for another one first. */
  readonly waitsSinceMs?: number | undefined;
}

/** The numbers of a broadcaster, at one moment. */
export interface BroadcasterStats {
  /** Number of publishes that wait for room. */
  readonly pending: number;
  /** The watches that have not ended, in no particular order. */
  readonly watchers: readonly WatcherStats[];
}

/** Options of a broadcaster whose own policy never cuts a watch. */
export interface KeepingBroadcasterOptions<E> extends BroadcasterOptions<E> {
  readonly overflow?: KeepingOverflow | undefined;
}

/** Options of one watcher. */
export interface WatchOptions<E> {
  /** Names this watcher in statistics and reports. Default: none. */
  readonly name?: string | undefined;
  /** This watcher's queue length, in events (with `coalesce`: in keys). */
  readonly capacity?: number | undefined;
  /** This watcher's overflow policy. */
  readonly overflow?: Overflow | undefined;
  /**
   * Selects the events this watcher receives; rejected events take no room in its queue. Called once per event, in order. If it
   * throws, this watch ends with that error. If it stops its own watch, events it has not seen yet are neither queued nor
   * counted.
   */
  readonly filter?: ((event: E) => boolean) | undefined;
  /**
   * Events to deliver first, through the filter. `capacity` grows to their number + 1 if it is smaller, so at least to 1. An event
   * whose `publish` is still waiting counts as published after this watch began, so it arrives again.
   */
  readonly prefix?: readonly E[] | undefined;
  /**
   * Only events that have one of these topics (see `topicsOf`), each once, in the order in which they were published. The result
   * is that of a filter, but only matching events cost anything. With `filter`, topics come first. An empty array gets nothing.
   */
  readonly topics?: readonly string[] | undefined;
  /**
   * Begin with the latest events published before, at most this many and as many as the broadcaster keeps; default 0. The number
   * counts events before `topics` and `filter`. As with `prefix`, `capacity` grows to what is delivered first + 1.
   */
  readonly replay?: number | undefined;
  /**
   * Begin right after this `Watch.position` of an earlier watch of the same broadcaster, with everything published since.
   * If part of that is no longer kept, the watch delivers one ERROR with code 410, after the prefix if there is one, and ends.
   * Takes precedence over `replay`.
   */
  readonly after?: number | undefined;
  /** Stops the watch when it aborts. `watch` throws the signal's reason if it has already aborted. */
  readonly signal?: AbortSignal | undefined;
  /**
   * Called right before the first event after a gap is delivered, with the number of lost events. If it throws, this watch ends
   * with that error.
   */
  readonly onGap?: ((missed: number) => void) | undefined;
}

/** Options of a watcher that follows the broadcaster's own policy, from now on. */
export interface PlainWatchOptions<E> extends WatchOptions<E> {
  readonly overflow?: undefined;
  readonly after?: undefined;
}

/** Options of a watcher that is never cut. */
export interface KeepingWatchOptions<E> extends WatchOptions<E> {
  readonly overflow: KeepingOverflow;
  readonly after?: undefined;
}
