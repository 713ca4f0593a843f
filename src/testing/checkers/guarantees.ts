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
  | 'Fair';

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
  Fair: "While a client's request waits, no other client is worked for longer than that client is, but for one piece of each.",
  Consistent: 'A cache at version v holds exactly what the source held at v.',
  Monotonic: 'A cache, a list and a watch never go back in version.',
  Fresh:
    'A list for "not older than v" never answers from before v; one without a version sees every write completed before it began.',
  Convergent: 'When faults stop, every informer equals the server within one backoff and one relist; nothing dies silently.',
  Folded: "Folding a handler's calls, or a watch's events, into an empty map gives the store's contents.",
  Synced:
    "`synced` implies that every initial object is in the store; a registration's `synced`, that every initial `onAdd` has returned.",
  Told: 'A client that cannot be served everything gets a 410, also one whose version is from another life of the source, such as before that was restored; a watch never just ends with something missing.',
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

/** Creates a {@link Violation} with its message. */
export function violation(
  guarantee: GuaranteeName,
  what: { watcher?: string; event?: unknown; expected: string; seen: string },
): Violation {
  const { watcher, event, expected, seen } = what;
  const where = [watcher === undefined ? '' : ` for ${watcher}`, event === undefined ? '' : ` at ${show(event)}`].join('');
  return { guarantee, ...what, message: `${guarantee}${where}: expected ${expected}, seen ${seen}` };
}

/** Returns a short text for a value, for messages. */
export function show(value: unknown): string {
  let text: string | undefined;
  try {
    text = JSON.stringify(value);
  } catch {
    // A cycle or a bigint: fall back to String.
  }
  return (text ?? String(value)).slice(0, 120);
}
