import type { Overflow } from '../broadcast/broadcaster.ts';

/**
 * What happened in a run of a broadcaster, as seen from outside: one line of steps, in the order in which they were seen.
 * A {@link HistoryRecorder} makes one of a real run; a test may as well write one by hand.
 *
 *     publish a | accepted a | watch w | publish b | accepted b | read w#0 | delivered w#0 [b] | stop w | counts w
 *
 * Promises make seeing late: what was accepted, delivered or ended had happened at some moment since it was asked for. So the
 * checkers take each of these for a stretch of the line, from asking to seeing, and reject only what no moment in it explains.
 */
export interface History<E = unknown> {
  /** How many events may be accepted and not yet distributed while a `wait` watcher is full: the broadcaster's `incoming`. Default 25. */
  readonly incoming?: number | undefined;
  /** What tells published events apart; by default their `object`, so each event needs an object of its own. */
  readonly idOf?: ((event: E) => unknown) | undefined;
  readonly steps: readonly Step<E>[];
}

/** How a watcher of a {@link History} was made: the options as they applied to it, the broadcaster's defaults included. */
export interface WatcherOptions<E = unknown> {
  readonly capacity: number;
  readonly overflow: Overflow;
  /** Must answer the same each time: checkers ask it again. */
  readonly filter?: ((event: E) => boolean) | undefined;
  readonly prefix?: readonly E[] | undefined;
  /** For `coalesce`; default: namespace and name in `object.metadata`. */
  readonly keyOf?: ((event: E) => unknown) | undefined;
}

/** One thing that happened. */
export type Step<E = unknown> =
  /** A publisher asked. May be left out where `accepted` follows at once. */
  | { readonly step: 'publish'; readonly event: E }
  /** The publisher was told that the event is accepted. */
  | { readonly step: 'accepted'; readonly event: E }
  /** The publisher was told no: by false (`FULL`), or by an error of this code. */
  | { readonly step: 'refused'; readonly event: E; readonly code: string }
  | { readonly step: 'watch'; readonly watcher: string; readonly options: WatcherOptions<E> }
  /** A watcher asked for an event: by `next` if nothing is said. Reads have numbers, each its own, in the order of their calls. */
  | { readonly step: 'read'; readonly watcher: string; readonly read: number; readonly by?: 'next' | 'batch' | 'tryNext' }
  /** The call of a read came back. May be left out where nothing else happened inside of it. */
  | { readonly step: 'asked'; readonly watcher: string; readonly read: number }
  /** A read came to these events. */
  | { readonly step: 'delivered'; readonly watcher: string; readonly read: number; readonly events: readonly E[] }
  /** A read came to the end: done, or the error that the watch failed with. */
  | { readonly step: 'end'; readonly watcher: string; readonly read: number; readonly failure?: { readonly error: unknown } }
  /** `onGap` was called. */
  | { readonly step: 'gap'; readonly watcher: string; readonly missed: number }
  /** A filter or an `onGap` of this watcher threw. */
  | { readonly step: 'threw'; readonly watcher: string; readonly error: unknown }
  /**
   * The consumer ended its watch: `stop` and an abort leave what is queued, `return` discards it. From inside the watch's own
   * filter (`inFilter`), what that has not been asked about yet is neither queued nor lost.
   */
  | { readonly step: 'stop' | 'return'; readonly watcher: string; readonly inFilter?: boolean }
  /** That call came back. May be left out where nothing else happened inside of it. */
  | { readonly step: 'stopped'; readonly watcher: string }
  /** Someone looked at a watcher's numbers. */
  | { readonly step: 'counts'; readonly watcher: string; readonly queued: number; readonly dropped: number }
  /** `shutdown` was called; it was given up; it has resolved. */
  | { readonly step: 'shutdown' | 'gave-up' | 'closed' }
  /** What is left behind after the end: timers as of `FakeClock.pending`, and abort listeners. */
  | { readonly step: 'leftovers'; readonly timers: number; readonly listeners: number };
