import { invalid, oneOf, tried } from '../../watch/errors.ts';
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

/** The names of the steps of a history: all of them, or the types do not fit. */
export type StepNames<S extends { readonly step: string }> = Readonly<Record<S['step'], true>>;

/**
 * Throws INVALID_ARGUMENT for a step that does not exist. If it were passed over, a misspelt history would be one in which nothing
 * went wrong.
 */
export function checkSteps<S extends { readonly step: string }>(steps: readonly S[], names: StepNames<S>): void {
  if (!Array.isArray(steps)) throw invalid('steps', steps, 'an array of steps');
  const known = Object.keys(names);
  for (const [at, each] of steps.entries()) oneOf(`steps[${at}].step`, (each as Partial<S> | undefined)?.step ?? 'none', known);
}

/** The name of a guarantee of caches; see {@link GUARANTEES}. */
export type CacheGuaranteeName = 'Consistent' | 'Monotonic' | 'Fresh' | 'Convergent' | 'Folded' | 'Synced' | 'Told';

/** The name of a guarantee; see {@link GUARANTEES}. */
export type GuaranteeName =
  | CacheGuaranteeName
  | 'Ordered'
  | 'Unique'
  | 'Complete'
  | 'Exact'
  | 'Counted'
  | 'Isolated'
  | 'Bounded'
  | 'Eager'
  | 'Drained'
  | 'Settled'
  | 'Resumable'
  | 'Transitional'
  | 'Serial'
  | 'Linearizable'
  | 'Fair'
  | 'Owned';

/** What watchmux guarantees, one sentence each. The documentation, the checkers and the tests use the same sentences. */
export const GUARANTEES: Readonly<Record<GuaranteeName, string>> = {
  Ordered: "A watcher's events are a subsequence of the published order; with `coalesce`, this holds for each key.",
  Unique: 'No watcher gets an event twice.',
  Complete: 'With `wait`, no event is missing between `watch()` and the end.',
  Exact: 'With any policy, a watcher gets precisely what its own bounded array, filled at each event, would have given it.',
  Counted:
    'Delivered + dropped + queued equals the events accepted since `watch()`, after the filter; each gap is counted exactly.',
  Isolated: 'A stalled, throwing or stopped watcher changes nothing for the others; only `wait`, by design, holds them back.',
  Bounded: 'Memory never exceeds what the capacities allow: no queue exceeds its capacity, whatever its watcher does.',
  Eager: 'A watcher sees no event from before `watch()`, and loses none between `watch()` and its first read.',
  Drained: '`shutdown` delivers every accepted event, then ends every watch.',
  Settled: 'After a watch ends, in whatever way, no promise stays pending, no timer runs and no listener stays registered.',
  Resumable: 'Reconnecting from the last version repeats nothing and skips nothing, or reports one 410.',
  Transitional: 'What enters a selector is ADDED, what changes within it MODIFIED, and what leaves it DELETED.',
  Serial:
    'No key of a work queue is processed by two workers at once; every add before shutdown is followed by a run that starts after it.',
  Linearizable:
    'Each write, read and refusal of an object takes effect at one moment between its call and its answer, in one order for all.',
  Fair: "While a client's request waits, the server spends no more time on any other client than on that one, except for one piece each.",
  Owned:
    "After any sequence of applies, updates and patches, fields, owners and conflicts equal upstream's: what a manager applies or changes is its own, what others own changes only by force or with a conflict, and what nobody applies any longer is removed.",
  Consistent: 'A cache at version v holds exactly what the source held at v.',
  Monotonic: 'A cache, a list and a watch never go back in version.',
  Fresh:
    'A list for "not older than v" never answers from before v; one without a version sees every write completed before it began.',
  Convergent: 'When faults stop, every informer equals the server within one backoff and one relist; nothing dies silently.',
  Folded: "Folding a handler's calls, or a watch's events, into an empty map gives the store's contents.",
  Synced:
    "`synced` implies that every initial object is in the store; a registration's `synced`, that every initial `onAdd` has returned.",
  Told: 'A client that cannot be served everything gets a 410, even if its version is from another life of the source, such as from before a restore; a watch never just ends with something missing.',
};

/** A violation of a guarantee in a history: which guarantee, for which watcher, and how. */
export interface Violation {
  readonly guarantee: GuaranteeName;
  /** The watcher's name; absent if no particular watcher is affected. */
  readonly watcher?: string;
  /** The event at which the violation shows. */
  readonly event?: unknown;
  readonly expected: string;
  readonly seen: string;
  /** The whole violation in one line. */
  readonly message: string;
}

/** What a checker has found, before the guarantee is known. */
export type Finding = Omit<Violation, 'guarantee' | 'message'>;

/** Creates a {@link Violation} with its message. */
export function violation(guarantee: GuaranteeName, what: Finding): Violation {
  const { watcher, event, expected, seen } = what;
  const where = [watcher === undefined ? '' : ` for ${watcher}`, event === undefined ? '' : ` at ${show(event)}`].join('');
  return { guarantee, ...what, message: `${guarantee}${where}: expected ${expected}, seen ${seen}` };
}

/** Returns a short text for a value, for messages. */
export function show(value: unknown): string {
  // JSON has no cycles, and no bigints.
  return (tried(() => JSON.stringify(value)) ?? String(value)).slice(0, 120);
}

/** What an overflow policy promises, as far as the checkers tell policies apart. */
export interface PolicyRules {
  /** It loses nothing, but holds back the publisher. */
  readonly waits: boolean;
  /** A full queue loses its oldest event rather than the new one. */
  readonly dropsOldest: boolean;
  /** It may cut a watch, with an ERROR with code 410. */
  readonly cuts: boolean;
  /** It cuts at the first loss; what was queued by then is still delivered. */
  readonly cutsAtLoss: boolean;
  /** Its queue holds the net change of each key instead of events. */
  readonly folds: boolean;
}

const KEEPS: PolicyRules = { waits: false, dropsOldest: false, cuts: false, cutsAtLoss: false, folds: false };

/** The rules of every policy. The checkers ask only these, so a new policy is checked as soon as it is listed here. */
export const RULES: Readonly<Record<Overflow, PolicyRules>> = {
  wait: { ...KEEPS, waits: true },
  'drop-newest': KEEPS,
  'drop-oldest': { ...KEEPS, dropsOldest: true },
  disconnect: { ...KEEPS, cuts: true, cutsAtLoss: true },
  coalesce: { ...KEEPS, cuts: true, folds: true },
};
