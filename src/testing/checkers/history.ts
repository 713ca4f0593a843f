import type { Overflow } from '../../watch/overflow.ts';

/**
 * What happened in a run of a broadcaster, as seen from outside: a sequence of steps, in the order in which they were seen. A
 * {@link HistoryRecorder} records a real run; a test may also write a history by hand.
 *
 *     publish a | accepted a | watch w | publish b | accepted b | read w#0 | delivered w#0 [b] | stop w | counts w
 *
 * Promises delay what is seen: an event that is seen as accepted or delivered, or an end, happened at some moment since it was
 * asked for. The checkers treat each as an interval from the call to the observation, and reject only what cannot be explained by
 * any moment in it.
 */
export interface History<E = unknown> {
  /**
   * How many events may be accepted and not yet distributed while a `wait` watcher is full: the broadcaster's `incoming`; default
   * 25.
   */
  readonly incoming?: number | undefined;
  /**
   * Returns the identity of a published event; default: its `object`, so each event needs its own object. The checkers throw
   * INVALID_ARGUMENT if two accepted events have the same identity.
   */
  readonly idOf?: ((event: E) => unknown) | undefined;
  readonly steps: readonly Step<E>[];
}

/** The options of a watcher in a {@link History}, with the broadcaster's defaults filled in. */
export interface WatcherOptions<E = unknown> {
  readonly capacity: number;
  readonly overflow: Overflow;
  /** Must always return the same verdict for an event: the checkers call it again. */
  readonly filter?: ((event: E) => boolean) | undefined;
  readonly prefix?: readonly E[] | undefined;
  /** For `coalesce`; default namespace and name in `object.metadata`. */
  readonly keyOf?: ((event: E) => unknown) | undefined;
}

/** How a watcher asks for an event. */
export type ReadCall = 'next' | 'batch' | 'tryNext';

/** One thing that happened. */
export type Step<E = unknown> =
  /** `publish` was called. May be omitted if `accepted` follows at once. */
  | { readonly step: 'publish'; readonly event: E }
  /** The publisher was told that the event is accepted. */
  | { readonly step: 'accepted'; readonly event: E }
  /** The publisher was refused: with false (`FULL`), or with an error of this code. */
  | { readonly step: 'refused'; readonly event: E; readonly code: string }
  /** A watcher was created. */
  | { readonly step: 'watch'; readonly watcher: string; readonly options: WatcherOptions<E> }
  /** A watcher asked for an event, by `next` unless stated otherwise. Reads have unique numbers, in the order of their calls. */
  | { readonly step: 'read'; readonly watcher: string; readonly read: number; readonly by?: ReadCall }
  /** The call of a read returned. May be omitted if nothing else happened during the call. */
  | { readonly step: 'asked'; readonly watcher: string; readonly read: number }
  /** A read returned these events. */
  | { readonly step: 'delivered'; readonly watcher: string; readonly read: number; readonly events: readonly E[] }
  /** A read reached the end: `done`, or the error with which the watch failed. */
  | { readonly step: 'end'; readonly watcher: string; readonly read: number; readonly failure?: { readonly error: unknown } }
  /** `onGap` was called. */
  | { readonly step: 'gap'; readonly watcher: string; readonly missed: number }
  /** A filter or an `onGap` of this watcher threw. */
  | { readonly step: 'threw'; readonly watcher: string; readonly error: unknown }
  /**
   * The consumer ended its watch: `stop` and an abort leave queued events readable, `return` discards them. When the watch's own
   * filter did it (`inFilter`), events the filter has not seen yet are neither queued nor lost.
   */
  | { readonly step: 'stop' | 'return'; readonly watcher: string; readonly inFilter?: boolean }
  /** That call returned. May be omitted if nothing else happened during the call. */
  | { readonly step: 'stopped'; readonly watcher: string }
  /** A watcher's counts were read. */
  | { readonly step: 'counts'; readonly watcher: string; readonly queued: number; readonly dropped: number }
  /** `shutdown` was called, was given up, or has resolved. */
  | { readonly step: 'shutdown' | 'gave-up' | 'closed' }
  /** What is left after the end: timers as in `FakeClock.pending`, and abort listeners. */
  | { readonly step: 'leftovers'; readonly timers: number; readonly listeners: number };
