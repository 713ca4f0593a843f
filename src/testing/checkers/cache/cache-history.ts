import type { ResourceVersionMatch } from '../../../cache/list-watcher.ts';
import { compareVersions, type VersionComparator } from '../../../cache/versions.ts';
import type { ChangeType } from '../../../watch/event.ts';
import { checkSteps, type Finding, type StepNames, show, type Violation, violation } from '../history.ts';

/**
 * The objects of a collection, by key. An object is represented by anything that differs when the object does, for example its
 * version or a digest.
 */
export type CacheState = Readonly<Record<string, string>>;

/**
 * What happened to caches of one source, their handlers and their requests, in the order in which it was seen. A
 * `CacheRecorder` records a real run; a test may also write a history by hand, one line per step:
 *
 *     { step: 'source', version: '1', state: { a: '1' } }
 *     { step: 'list', list: 'first' }
 *     { step: 'listed', list: 'first', version: '1', state: { a: '1' } }
 *     { step: 'cache', cache: 'mine', version: '1', state: { a: '1' } }
 *     { step: 'changed', version: '2', key: 'a' }                              // a was deleted
 *
 * No observation of a cache or a request may be from the future: record a change after it is made, but before anyone can see
 * it.
 */
export interface CacheHistory {
  readonly steps: readonly CacheStep[];
  /** Default `compareVersions`. The empty version is older than all. */
  readonly compare?: VersionComparator | undefined;
}

/** One thing that happened. */
export type CacheStep = SourceStep | StoreStep | HandlerStep | RequestStep;

export type CacheStepOf<S extends CacheStep['step']> = Extract<CacheStep, { step: S }>;

/** What happened to the source. Versions never go back. */
export type SourceStep =
  /** What it holds at the beginning; without this step, nothing. */
  | { readonly step: 'source'; readonly version: string; readonly state: CacheState }
  /** An object was created or replaced. Without `object`: it was deleted. Without `key`: something else changed. */
  | { readonly step: 'changed'; readonly version: string; readonly key?: string; readonly object?: string | undefined }
  /** Everything before this version is forgotten: a watch from an earlier one cannot be served completely. */
  | { readonly step: 'expired'; readonly version: string }
  /**
   * A new life of it begins, for example after a restore from a copy: it holds this state, at a version greater than all
   * before. This life has never given a version between `since` and that one; anyone who has such a version got it from the
   * other life.
   */
  | { readonly step: 'restored'; readonly since: string; readonly version: string; readonly state: CacheState }
  /** All faults have stopped, nothing has changed since, and the time of one backoff and one relist has passed. */
  | { readonly step: 'settled' };

/** What was observed of a cache. */
export type StoreStep =
  /** It says that it is at this version, with this state. The version is empty before the first list. */
  | { readonly step: 'cache'; readonly cache: string; readonly version: string; readonly state: CacheState }
  /** It says that it has synced. */
  | { readonly step: 'synced'; readonly cache: string }
  /** It says that it has reached a version. */
  | { readonly step: 'reached'; readonly cache: string; readonly version: string }
  /** It was stopped: nothing more is expected of it. */
  | { readonly step: 'stopped'; readonly cache: string };

/** The calls of a handler. */
export type HandlerCall = 'add' | 'update' | 'delete';

/** What was observed of a cache's handler. */
export type HandlerStep =
  /** It was registered. */
  | {
      readonly step: 'handler';
      readonly handler: string;
      readonly cache: string;
      /** Which objects it is called for; default all. */
      readonly selects?: ((key: string, object: string) => boolean) | undefined;
    }
  /** It is called. `old` is the old object that `onUpdate` got. */
  | {
      readonly step: 'call';
      readonly handler: string;
      readonly call: HandlerCall;
      readonly key: string;
      readonly object: string;
      readonly old?: string | undefined;
    }
  /** That call has returned or thrown; if it returned a promise, the promise has settled. */
  | { readonly step: 'returned'; readonly handler: string }
  /** Its registration says that it has synced. */
  | { readonly step: 'handler-synced'; readonly handler: string }
  | { readonly step: 'removed'; readonly handler: string };

/** A request to the source, or a watch of a cache. The names of requests are unique. */
export type RequestStep =
  | {
      readonly step: 'list';
      readonly list: string;
      /** The client that asks. One that gets a 410 must start over. */
      readonly client?: string | undefined;
      readonly resourceVersion?: string | undefined;
      readonly resourceVersionMatch?: ResourceVersionMatch | undefined;
    }
  /** It was answered; a list in pages, with all of them. */
  | { readonly step: 'listed'; readonly list: string; readonly version: string; readonly state: CacheState }
  | {
      readonly step: 'watch';
      readonly watch: string;
      readonly client?: string | undefined;
      /** It is a watch of this cache, and may fold events by key. */
      readonly cache?: string | undefined;
      readonly resourceVersion?: string | undefined;
      readonly sendInitialEvents?: boolean | undefined;
    }
  /** An ADDED, MODIFIED or DELETED. */
  | {
      readonly step: 'event';
      readonly watch: string;
      readonly type: ChangeType;
      readonly version: string;
      readonly key: string;
      readonly object: string;
    }
  /** A BOOKMARK; `end` if it ends the initial events. */
  | { readonly step: 'bookmark'; readonly watch: string; readonly version: string; readonly end?: boolean | undefined }
  /** The consumer stops a watch. */
  | { readonly step: 'stop'; readonly watch: string }
  /** It has ended; `code` is the code of its ERROR. */
  | { readonly step: 'end'; readonly watch: string; readonly code?: number | undefined }
  /** A list or a watch was refused, or has failed without a code. */
  | { readonly step: 'refused'; readonly request: string; readonly code?: number | undefined };

type Changed = Extract<CacheStep, { step: 'changed' }>;
type Restored = Extract<CacheStep, { step: 'restored' }>;

/** What a source held at any version, according to the history so far. */
export class SourceHistory {
  readonly #compare: VersionComparator;
  readonly #changes: Changed[] = [];
  /** The current life, and those that it descends from. */
  #lives: Restored[] = [];
  #initial: { readonly version: string; readonly state: CacheState } = { version: '', state: {} };
  /** The state that was asked for last, and how many changes it has. */
  #known: { readonly state: Map<string, string>; changes: number } = { state: new Map(), changes: 0 };
  /** Watches from before this version cannot be served. */
  oldest: string = '';

  constructor(compare: VersionComparator | undefined) {
    this.#compare = compare ?? compareVersions;
  }

  /** The version of the last change. */
  get version(): string {
    return this.#changes.at(-1)?.version ?? this.#initial.version;
  }

  /** Records what a step says about the source. */
  learn(step: CacheStep): void {
    if (step.step === 'source') {
      this.#initial = step;
      this.#known = { state: new Map(Object.entries(step.state)), changes: 0 };
      this.oldest = step.version;
    } else if (step.step === 'changed') this.#changes.push(step);
    else if (step.step === 'restored') this.#restore(step);
    else if (step.step === 'expired') this.oldest = step.version;
  }

  /** Records one change for each difference between the old and the new state, all at the version of the new life. */
  #restore(step: Restored): void {
    const { version, state } = step;
    const before = new Map(this.at(this.version));
    const changed = (key: string, object: string | undefined): void =>
      void this.#changes.push({ step: 'changed', version, key, object });
    // The new life does not descend from a life that began after the copy was made: the copied one may have given what that has
    // not.
    this.#lives = [...this.#lives.filter((life) => this.compare(life.version, step.since) <= 0), step];
    this.#changes.push({ step: 'changed', version });
    for (const key of before.keys()) if (!Object.hasOwn(state, key)) changed(key, undefined);
    for (const [key, object] of Object.entries(state)) if (before.get(key) !== object) changed(key, object);
  }

  /** Whether its current life cannot have given this version: it is from another life, or from the future. */
  isForeign(version: string): boolean {
    if (this.compare(version, this.version) > 0) return true;
    return this.#lives.some((life) => this.compare(version, life.since) > 0 && this.compare(version, life.version) < 0);
  }

  /** Compares versions; the empty one is older than all. */
  compare(a: string, b: string): number {
    if (a === '' || b === '') return Number(a !== '') - Number(b !== '');
    return this.#compare(a, b);
  }

  /** What the source held at a version. */
  at(version: string): ReadonlyMap<string, string> {
    const later = (change: Changed | undefined): boolean => change !== undefined && this.compare(change.version, version) > 0;
    if (later(this.#changes[this.#known.changes - 1])) {
      this.#known = { state: new Map(Object.entries(this.#initial.state)), changes: 0 };
    }
    const { state } = this.#known;
    for (let next = this.#changes[this.#known.changes]; next && !later(next); next = this.#changes[++this.#known.changes]) {
      if (next.key === undefined) continue;
      if (next.object === undefined) state.delete(next.key);
      else state.set(next.key, next.object);
    }
    return state;
  }

  /** Whether it has ever had this version, or may have. */
  has(version: string): boolean {
    return this.compare(version, this.#initial.version) >= 0 && this.compare(version, this.version) <= 0;
  }

  /** Whether an object was deleted after a version. */
  deletedAfter(version: string, key: string): boolean {
    return this.#changes.some(
      (change) => change.key === key && change.object === undefined && this.compare(change.version, version) > 0,
    );
  }
}

/** The first difference between two states; undefined if there is none. */
export function difference(
  expected: ReadonlyMap<string, string>,
  seen: CacheState | ReadonlyMap<string, string>,
): Finding | undefined {
  const state = seen instanceof Map ? (seen as ReadonlyMap<string, string>) : new Map(Object.entries(seen));
  for (const key of new Set([...expected.keys(), ...state.keys()])) {
    const [is, was] = [state.get(key), expected.get(key)];
    if (is !== was)
      return { event: key, expected: was === undefined ? 'nothing' : show(was), seen: is === undefined ? 'nothing' : show(is) };
  }
  return undefined;
}

const STEPS: StepNames<CacheStep> = {
  ...{ source: true, changed: true, expired: true, restored: true, settled: true },
  ...{ cache: true, synced: true, reached: true, stopped: true },
  ...{ handler: true, call: true, returned: true, 'handler-synced': true, removed: true },
  ...{ list: true, listed: true, watch: true, event: true, bookmark: true, stop: true, end: true, refused: true },
};

/** What is wrong with each kind of step, if anything; other kinds do not matter. */
type Judges = { readonly [S in CacheStep['step']]?: (step: CacheStepOf<S>, source: SourceHistory) => Finding | undefined };

/** Goes through a history, and returns the first thing that is wrong. */
export function judged(
  guarantee: Violation['guarantee'],
  { steps, compare }: CacheHistory,
  judges: Judges,
): Violation | undefined {
  checkSteps(steps, STEPS);
  const source = new SourceHistory(compare);
  for (const step of steps) {
    source.learn(step);
    const wrong = judges[step.step]?.(step as never, source);
    if (wrong) return violation(guarantee, wrong);
  }
  return undefined;
}
