import type { Clock } from '../../watch/clock.ts';

/**
 * What a reflector does: it `listing`s, also by a watch that begins with the state; it is `watching`, or about to; it is `waiting`
 * for a delay to pass, or for `run`; it has `stopped`.
 */
export type ReflectorPhase = 'listing' | 'watching' | 'waiting' | 'stopped';

/** How a reflector is, at one moment. For health checks. */
export interface ReflectorState {
  readonly phase: ReflectorPhase;
  /**
   * Whether the source does what it is asked for: from an answer or an event on, until a request fails, breaks, or is taken for
   * dead. So it is true again as soon as the source is, while `failures` stay. What the end of a watch hides until the next one is
   * open, and a link that is half-open, it does not know: see `lastContactMs`.
   */
  readonly connected: boolean;
  /**
   * When the source has last answered or sent something, as the clock counts: `performance.now() - lastContactMs` is its age unless
   * you pass another clock. Undefined: never.
   */
  readonly lastContactMs: number | undefined;
  /** Failures since the source has last been well for `resetMs`. 0: all is well. */
  readonly failures: number;
  /** The last of those failures. */
  readonly error?: unknown;
  /** When it tries again, by the clock of the reflector, in phase `waiting`. */
  readonly nextAttemptMs?: number | undefined;
}

/**
 * What sort of failure it is, which decides what happens next:
 *
 * | kind | what | a watch that is open or opened | a list |
 * |---|---|---|---|
 * | `expired` | 410: the version is too old, or too new for the source | list at once; the next time, after a delay | again at once, without a version; then after a delay |
 * | `throttled` | 429; 503 with a time to come back | watch again after a delay, without a list | again after a delay |
 * | `unreachable` | no answer | the same | the same |
 * | `internal` | 500 `InternalError` | the same within `internalErrorRetryMs`, otherwise list after a delay | the same |
 * | `denied` | 401, 403 | list after a delay | the same |
 * | `silent` | nothing came for `idleTimeoutMs`, or no end of the initial state | watch again | |
 * | `short` | a watch ended within a second, and had brought nothing | list after a delay | |
 * | `store` | the store has thrown | list after a delay | the same |
 * | `event` | an event was unreadable; it was passed over | nothing | |
 * | `other` | anything else | list after a delay | again after a delay |
 */
export type ReflectorFailureKind =
  | 'expired'
  | 'throttled'
  | 'unreachable'
  | 'internal'
  | 'denied'
  | 'silent'
  | 'short'
  | 'store'
  | 'event'
  | 'other';

/** A failure, as `onError` sees it. */
export interface ReflectorFailure {
  readonly kind: ReflectorFailureKind;
  /** In which phase it has happened. */
  readonly phase: ReflectorPhase;
  /** `failures` of the state, with this one. */
  readonly failures: number;
  /** When it tries again; undefined: at once, or the failure has ended nothing. */
  readonly delayMs?: number | undefined;
}

/** How long to wait after failures. */
export interface RetryOptions {
  /** The delay after the first failure; default 800 for a `Reflector`, 1,000 for a `RetryWatcher`. */
  readonly minMs?: number | undefined;
  /** The longest delay, to which jitter is added; default 30,000. */
  readonly maxMs?: number | undefined;
  /** Each further failure makes the delay longer by this factor; a number >= 1, default 2. */
  readonly factor?: number | undefined;
  /** Source of jitter: a number from 0 to below 1. Default `Math.random`. */
  readonly random?: (() => number) | undefined;
  /** Source of time. Default: the host's. */
  readonly clock?: Clock | undefined;
}

/** Options of a `Reflector`. */
export interface ReflectorOptions<T> extends RetryOptions {
  /** Failures are forgotten when the source has been well for this long; default 120,000. */
  readonly resetMs?: number | undefined;
  /** Only objects with these labels, in Kubernetes' text form. Default: all. */
  readonly labelSelector?: string | undefined;
  /** Only objects with these fields, in Kubernetes' text form. Default: all. */
  readonly fieldSelector?: string | undefined;
  /**
   * Whether to ask for the state as the beginning of a watch, and to list only if that is refused. Default true. It saves the
   * source from making a whole list at once.
   */
  readonly streamingList?: boolean | undefined;
  /** Number of objects to ask for at once in a list; 0: all. Default: 500, or all if that lets the source answer from its cache. */
  readonly pageSize?: number | undefined;
  /**
   * The largest number of objects that a list, or the state at the beginning of a watch, may have; a whole number >= 1, default
   * 1,000,000. More of them are a failure, OVERLOADED with `limit`: until its end, such a state is held beside the store.
   */
  readonly maxObjects?: number | undefined;
  /**
   * The largest number of bytes that a list may have over all its pages, as far as the source tells them, which that of
   * `createListWatcher` does; a whole number >= 1, default 1 GiB (1,073,741,824). More of them are a failure, as above.
   */
  readonly maxTotalListBytes?: number | undefined;
  /**
   * How long the source is asked to keep a watch open, in milliseconds; default 300,000. Each watch asks for a random time between
   * this and twice this. A watch that outlives its time by ten seconds is taken for dead.
   */
  readonly minWatchTimeoutMs?: number | undefined;
  /**
   * A watch on which nothing comes for this long is taken for dead; default 0: never, as long as its time has not passed. A quiet
   * collection sends nothing for minutes, BOOKMARKs among it, so this is only for sources that are known to speak.
   */
  readonly idleTimeoutMs?: number | undefined;
  /** How long to go on watching through errors 500 `InternalError` before a list; default 0: not at all. */
  readonly internalErrorRetryMs?: number | undefined;
  /** While a watch is open, the store is told to `resync` this often; default 0: never. */
  readonly resyncMs?: number | undefined;
  /** Asked each time whether to do so. Default: yes. */
  readonly shouldResync?: (() => boolean) | undefined;
  /** The key of an object; default `keyOf`. Needed for objects without a name, and only for `streamingList`. */
  readonly keyOf?: ((object: T) => string) | undefined;
  /** Called with every failure. What it throws ends `run`, which rejects with it. */
  readonly onError?: ((error: unknown, failure: ReflectorFailure) => void) | undefined;
  /** Called when `phase`, `connected` or `failures` have changed. What it throws ends `run`, which rejects with it. */
  readonly onStateChange?: ((state: ReflectorState) => void) | undefined;
}
