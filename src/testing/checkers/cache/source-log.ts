import { compareVersions, type VersionComparator } from '../../../cache/versions.ts';
import { show, type Violation, violation } from '../guarantees.ts';
import type { CacheHistory, CacheState, CacheStep } from './cache-history.ts';

type Changed = Extract<CacheStep, { step: 'changed' }>;
type Restored = Extract<CacheStep, { step: 'restored' }>;

/** What a source held at any version, according to the history so far. */
export class SourceLog {
  readonly #compare: VersionComparator;
  readonly #changes: Changed[] = [];
  readonly #lives: Restored[] = [];
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

  /** Notes what a step says about the source. */
  learn(step: CacheStep): void {
    if (step.step === 'source') {
      this.#initial = step;
      this.#known = { state: new Map(Object.entries(step.state)), changes: 0 };
      this.oldest = step.version;
    } else if (step.step === 'changed') this.#changes.push(step);
    else if (step.step === 'restored') this.#restore(step);
    else if (step.step === 'expired') this.oldest = step.version;
  }

  /** What it has now differs from what it had: one change for each difference, all at the version of the new life. */
  #restore(step: Restored): void {
    const { version, state } = step;
    const before = new Map(this.at(this.version));
    const changed = (key: string, object: string | undefined): void =>
      void this.#changes.push({ step: 'changed', version, key, object });
    this.#lives.push(step);
    this.#changes.push({ step: 'changed', version });
    for (const key of before.keys()) if (!Object.hasOwn(state, key)) changed(key, undefined);
    for (const [key, object] of Object.entries(state)) if (before.get(key) !== object) changed(key, object);
  }

  /** Whether a version is none that its present life can have given: of another life, or from the future. */
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

/** Where a state differs from what is expected. */
export interface Difference {
  readonly event: string;
  readonly expected: string;
  readonly seen: string;
}

/** The first difference between two states; undefined if there is none. */
export function difference(
  expected: ReadonlyMap<string, string>,
  seen: CacheState | ReadonlyMap<string, string>,
): Difference | undefined {
  const state = seen instanceof Map ? (seen as ReadonlyMap<string, string>) : new Map(Object.entries(seen));
  for (const key of new Set([...expected.keys(), ...state.keys()])) {
    const [is, was] = [state.get(key), expected.get(key)];
    if (is !== was)
      return { event: key, expected: was === undefined ? 'nothing' : show(was), seen: is === undefined ? 'nothing' : show(is) };
  }
  return undefined;
}

/** What a checker does with each step. */
export type Judge = (step: CacheStep, source: SourceLog) => Omit<Violation, 'guarantee' | 'message'> | undefined;

/** Goes through a history, and returns the first thing that is wrong. */
export function judged(guarantee: Violation['guarantee'], { steps, compare }: CacheHistory, judge: Judge): Violation | undefined {
  const source = new SourceLog(compare);
  for (const step of steps) {
    source.learn(step);
    const wrong = judge(step, source);
    if (wrong) return violation(guarantee, wrong);
  }
  return undefined;
}
