import { type Clock, systemClock } from '../../watch/clock.ts';
import {
  callable,
  checkOptions,
  checkText,
  invalid,
  namesOf,
  type Wholes,
  wholeNumber,
  wholeNumbers,
} from '../../watch/errors.ts';
import type { ListOptions } from '../list-watcher.ts';
import { type KubernetesObject, keyOf } from '../object.ts';
import { MAX_TOTAL_LIST_BYTES } from '../pager.ts';

/**
 * What a reflector is doing: `listing`, which may also be a watch that begins with the initial state; `watching`, or about to;
 * `waiting` for a delay to pass, or for `run`; or it has `stopped`.
 */
export type ReflectorPhase = 'listing' | 'watching' | 'waiting' | 'stopped';

/** The state of a reflector at one moment. For health checks. */
export interface ReflectorState {
  readonly phase: ReflectorPhase;
  /**
   * Whether the source answers: true from a response or an event on, until a request fails, breaks, or is considered dead. So it
   * becomes true again as soon as the source works, while `failures` stay. It does not show an outage between the end of a watch
   * and the next one, or a half-open connection: for these, see `lastContactMs`.
   */
  readonly connected: boolean;
  /**
   * When the source last answered or sent something, by the reflector's clock: `performance.now() - lastContactMs` is its age, unless
   * you pass another clock. Undefined: never.
   */
  readonly lastContactMs: number | undefined;
  /** Failures since the source last worked without one for `resetMs`. 0: there was none. */
  readonly failures: number;
  /** The last of those failures. */
  readonly error?: unknown;
  /** The time of the next attempt, by the reflector's clock, in phase `waiting`. */
  readonly nextAttemptMs?: number | undefined;
}

/**
 * The kind of failure, which decides what happens next:
 *
 * | kind | what | for a watch | for a list |
 * |---|---|---|---|
 * | `expired` | 410: the version is too old, or too new for the source | list at once; the next time, after a delay | again at once, without a version; then after a delay |
 * | `throttled` | 429; 503 with a time to come back | watch again after a delay, without a list | again after a delay |
 * | `unreachable` | no answer | the same | the same |
 * | `internal` | 500 `InternalError` | the same within `internalErrorRetryMs`, otherwise list after a delay | the same |
 * | `denied` | 401, 403 | list after a delay | the same |
 * | `silent` | nothing came for `idleTimeoutMs`; or no initial state that ends, from a source that should have refused | watch again; list at once | |
 * | `short` | a watch ended within a second without any event | list after a delay | |
 * | `store` | the store threw | list after a delay | the same |
 * | `event` | an event was unreadable; it was skipped | nothing | |
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

/** A failure, as `onError` gets it. */
export interface ReflectorFailure {
  readonly kind: ReflectorFailureKind;
  /** The phase in which it happened. */
  readonly phase: ReflectorPhase;
  /** `failures` of the state, including this one. */
  readonly failures: number;
  /** The delay before the next attempt; undefined: at once, or the failure has not ended anything. */
  readonly delayMs?: number | undefined;
}

/** How long to wait after failures. */
export interface RetryOptions {
  /** The delay after the first failure; default 800 for a `Reflector`, 1,000 for a `RetryWatcher`. */
  readonly minMs?: number | undefined;
  /** The longest delay, to which jitter is added; default 30,000. */
  readonly maxMs?: number | undefined;
  /** Each further failure multiplies the delay by this factor; a number >= 1, default 2. */
  readonly factor?: number | undefined;
  /** Source of jitter: a number from 0 to below 1. Default `Math.random`. */
  readonly random?: (() => number) | undefined;
  /** Source of time. Default: the host's. */
  readonly clock?: Clock | undefined;
}

/** Options of a `Reflector`. */
export interface ReflectorOptions<T> extends RetryOptions, Pick<ListOptions, 'labelSelector' | 'fieldSelector'> {
  /** Failures are forgotten once the source has worked without one for this long, in milliseconds; default 120,000. */
  readonly resetMs?: number | undefined;
  /**
   * Whether to request the initial state as part of a watch, and to list only if that is refused. Default true. It saves the
   * source from building a whole list at once. A source that accepts such a watch (`sendInitialEvents`) and does not begin it with the
   * state is listed instead: at once if it sends MODIFIED or DELETED of an object that it has not ADDED, after 30 s of silence, or after a
   * minute with fewer than 600 new objects and 256 KiB.
   */
  readonly streamingList?: boolean | undefined;
  /**
   * Whether the first list, too, must be the newest state, as every streaming list is; default false, as in client-go: any state that
   * the source has at hand, which may be older than what the program saw before it was restarted.
   */
  readonly consistentList?: boolean | undefined;
  /** Number of objects per request of a list; 0: all. Default: 500, or all if that lets the source answer from its cache. */
  readonly pageSize?: number | undefined;
  /**
   * The largest number of objects that a list, or the initial state of a watch, may have; a whole number >= 1, default 1,000,000.
   * More are a failure, OVERLOADED with `limit`, because until it is complete, such a state is held in addition to the store.
   */
  readonly maxObjects?: number | undefined;
  /**
   * The largest number of bytes that a list may have over all its pages, or the initial state of a watch, if the source reports
   * them, as `createListWatcher` does; a whole number >= 1, default 1 GiB (1,073,741,824). More are a failure, as above.
   */
  readonly maxTotalListBytes?: number | undefined;
  /**
   * How long the source is asked to keep a watch open, in milliseconds; default 300,000. Each watch asks for a random time
   * between this and twice this. A watch that outlives its time by ten seconds is considered dead.
   */
  readonly minWatchTimeoutMs?: number | undefined;
  /**
   * A watch on which nothing arrives for this long, in milliseconds, is considered dead; default 0: never before its time has
   * passed. A quiet collection sends nothing for minutes, not even BOOKMARKs, so use this only for sources that are never silent.
   */
  readonly idleTimeoutMs?: number | undefined;
  /** How long to keep watching despite 500 `InternalError` before listing again, in milliseconds; default 0: not at all. */
  readonly internalErrorRetryMs?: number | undefined;
  /**
   * How often the store's `resync` is called while a watch is open, in milliseconds; default 0: never. The period may be longer than
   * a watch.
   */
  readonly resyncMs?: number | undefined;
  /** Called each time to decide whether to do so. Default: always. */
  readonly shouldResync?: (() => boolean) | undefined;
  /** The key of an object; default `keyOf`. Used only for `streamingList`; needed if objects have no name. */
  readonly keyOf?: ((object: T) => string) | undefined;
  /**
   * Called with every failure. If it throws, or is async and rejects, `run` ends, and rejects with that error. Default: `console.error`, once per kind, and
   * when the source works again.
   */
  readonly onError?: ((error: unknown, failure: ReflectorFailure) => void) | undefined;
  /** Called when `phase`, `connected` or `failures` has changed. What it throws, or rejects with, ends `run` as well. */
  readonly onStateChange?: ((state: ReflectorState) => void) | undefined;
}

/** The names of the options that a `Reflector` and a `RetryWatcher` have in common. */
export const RETRY_NAMES = ['minMs', 'maxMs', 'factor', 'random', 'clock'] as const;

type Numbered =
  | ('resetMs' | 'maxObjects' | 'maxTotalListBytes')
  | ('minWatchTimeoutMs' | 'idleTimeoutMs' | 'internalErrorRetryMs' | 'resyncMs');

const NUMBERS: Wholes<Numbered> = {
  resetMs: [120_000],
  maxObjects: [1_000_000, 1],
  maxTotalListBytes: [MAX_TOTAL_LIST_BYTES, 1],
  minWatchTimeoutMs: [300_000, 1_000],
  idleTimeoutMs: [0],
  internalErrorRetryMs: [0],
  resyncMs: [0],
};

/** The names of the options that a reflector and the informer around it have in common, besides {@link RETRY_NAMES}. */
export const REFLECTOR_NAMES: readonly Exclude<keyof ReflectorOptions<never>, keyof RetryOptions | 'shouldResync'>[] = [
  ...namesOf(NUMBERS),
  ...(['labelSelector', 'fieldSelector', 'streamingList', 'consistentList', 'pageSize'] as const),
  ...(['keyOf', 'onError', 'onStateChange'] as const),
];

/** Checked, with all defaults. */
export type CheckedRetry = { readonly [Name in keyof RetryOptions]-?: NonNullable<RetryOptions[Name]> };

export function checkRetry(options: RetryOptions, defaultMinMs: number): CheckedRetry {
  const { minMs = defaultMinMs, maxMs = 30_000, factor = 2, random = Math.random, clock = systemClock } = options;
  wholeNumber('minMs', minMs, 1);
  if (!(Number.isFinite(factor) && factor >= 1)) throw invalid('factor', factor, 'a number >= 1');
  callable('random', random);
  return { minMs, maxMs: wholeNumber('maxMs', maxMs, minMs), factor, random, clock };
}

/** The options that have a default. */
type Defaulted = keyof RetryOptions | Numbered | 'streamingList' | 'consistentList' | 'shouldResync' | 'keyOf';

/** Settings of a reflector: its options with all defaults. */
export type ReflectorSettings<T> = {
  readonly [Name in keyof ReflectorOptions<T>]-?: Name extends Defaulted
    ? NonNullable<ReflectorOptions<T>[Name]>
    : ReflectorOptions<T>[Name];
};

/** Settings of the machine that decides what a reflector does. */
export type MachineSettings = Pick<
  ReflectorSettings<unknown>,
  | ('minMs' | 'maxMs' | 'factor' | 'random' | 'resetMs')
  | ('streamingList' | 'consistentList' | 'pageSize' | 'internalErrorRetryMs')
>;

/** Checks the options of a reflector, and adds the defaults. */
export function toSettings<T>(options: ReflectorOptions<T>): ReflectorSettings<T> {
  checkOptions(options, [...RETRY_NAMES, ...REFLECTOR_NAMES, 'shouldResync']);
  const { labelSelector, fieldSelector, streamingList = true, consistentList = false } = options;
  const { pageSize, onError, onStateChange } = options;
  for (const [name, value] of Object.entries({ streamingList, consistentList })) {
    if (typeof value !== 'boolean') throw invalid(name, value, 'true or false');
  }
  return {
    ...checkRetry(options, 800),
    ...wholeNumbers(options, NUMBERS),
    labelSelector: labelSelector && checkText('labelSelector', labelSelector),
    fieldSelector: fieldSelector && checkText('fieldSelector', fieldSelector),
    ...{ streamingList, consistentList },
    pageSize: pageSize === undefined ? undefined : wholeNumber('pageSize', pageSize),
    shouldResync: callable('shouldResync', options.shouldResync) ?? (() => true),
    keyOf: callable('keyOf', options.keyOf) ?? (keyOf as (object: KubernetesObject) => string as (object: T) => string),
    onError: callable('onError', onError),
    onStateChange: callable('onStateChange', onStateChange),
  };
}
