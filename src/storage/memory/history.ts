/**
 * State and log under one revision. Every write is one change, at the next revision; the changes of the last revisions are kept.
 *
 *     revision        1   2   3   4   5   9   10  11
 *                             ^           ^       ^
 *                     `compacted          |       `revision: the newest write
 *                      the oldest state   `visible: the newest that anybody may see; what comes after it is not safe yet
 *                      that can be read
 *
 *     changes         [ 4   5   9   10  11 ]      one each; a watch is a place in here: start <= place <= shown <= end
 *     entries         a -> 11 -> 4,  b -> 5, ...  by key, sorted; the chain of a key leads to each of its kept states
 *
 * A storage that is opened again leaves out revisions (life.ts): 9 begins another life. That is a change, too, of no key.
 *
 * Invariants
 * - compacted <= visible <= revision, and none of them goes back. The revisions of changes grow. Each revision after `compacted`
 *   that anybody was given has a change.
 * - The state at any revision in [compacted, revision] can be read: by the first change of each chain that is not newer.
 * - An entry whose newest change is a deletion is kept as long as that change is; then nothing is left of it.
 * - Where revisions were left out is never forgotten: whoever reads this history may keep older states than it does.
 */
import { Change } from './change.ts';
import { type Keyed, Sorted } from './sorted.ts';

/** How much a {@link History} keeps. */
export interface HistoryLimits {
  readonly maxItems: number;
  readonly maxBytes: number;
  readonly maxAgeMs: number;
}

/** When something is written, and at which revision. */
export interface CommitOptions {
  readonly now: number;
  readonly revision?: number | undefined;
}

/** How many entries are found at once while things may be written. */
const SOME = 256;

interface Entry<T> extends Keyed {
  head: Change<T>;
}

/** The objects under a prefix at a revision that is kept, from a key on. */
export interface Range {
  readonly prefix: string;
  readonly from: string;
  readonly revision: number;
}

export class History<T> {
  readonly #entries: Map<string, Entry<T>> = new Map();
  readonly #sorted: Sorted<Entry<T>> = new Sorted();
  readonly #limits: HistoryLimits;
  /** The change at place p is at `p - gone`. */
  #changes: (Change<T> | undefined)[] = [];
  /** Number of forgotten changes that have left `changes`, and of those at its start. */
  #gone: number = 0;
  #dead: number = 0;
  /** The revisions around each gap. There is one for each life that begins in here. */
  readonly #gaps: { readonly before: number; readonly after: number }[] = [];
  #shown: number = 0;
  #bytes: number = 0;
  #revision: number;
  #visible: number;
  #compacted: number;

  constructor(limits: HistoryLimits, revision: number) {
    this.#limits = limits;
    this.#revision = revision;
    this.#visible = revision;
    this.#compacted = revision;
  }

  get revision(): number {
    return this.#revision;
  }

  get visible(): number {
    return this.#visible;
  }

  get compacted(): number {
    return this.#compacted;
  }

  /** The place of the oldest kept change. */
  get start(): number {
    return this.#gone + this.#dead;
  }

  /** The place after the newest visible change. */
  get shown(): number {
    return this.#shown;
  }

  /** Number of kept changes. */
  get items(): number {
    return this.#changes.length - this.#dead;
  }

  /** What the kept changes cost. */
  get bytes(): number {
    return this.#bytes;
  }

  /** The newest change of a key, whether it is visible or not; undefined if there is nothing under it. */
  head(key: string): Change<T> | undefined {
    const head = this.#entries.get(key)?.head;
    return head?.object === undefined ? undefined : head;
  }

  /** What is under a key at a revision that is kept. */
  get(key: string, revision: number = this.#visible): T | undefined {
    const entry = this.#entries.get(key);
    return entry && at(entry, revision);
  }

  /** Shows the objects of a range, in the order of their keys, until `visit` returns false. Nothing may be written meanwhile. */
  scan({ prefix, from, revision }: Range, visit: (key: string, object: T) => boolean): void {
    this.#sorted.scan(from, (entry) => {
      if (!entry.key.startsWith(prefix)) return false;
      const object = at(entry, revision);
      return object === undefined || visit(entry.key, object);
    });
  }

  /**
   * The objects of a range, in the order of their keys; undefined under a key where there is none at its revision. Things may be
   * written while they are read; ends if the revision is no longer kept.
   */
  *entries({ prefix, from, revision }: Range): IterableIterator<{ readonly key: string; readonly object: T | undefined }> {
    for (let next: string | undefined = from; next !== undefined && revision >= this.#compacted; ) {
      const some: Entry<T>[] = [];
      this.#sorted.scan(next, (entry) => entry.key.startsWith(prefix) && some.push(entry) < SOME);
      for (const entry of some) yield { key: entry.key, object: at(entry, revision) };
      next = some.length < SOME ? undefined : `${(some[SOME - 1] as Entry<T>).key}\0`;
    }
  }

  /**
   * Writes an object, or with undefined deletes it, by default at the next revision. Nobody sees it before `reveal`. The empty key:
   * another life begins at that revision.
   */
  commit(key: string, object: T | undefined, { now, revision = this.#revision + 1 }: CommitOptions): Change<T> {
    const entry = this.#entries.get(key);
    const change = new Change<T>({ revision, key, object, before: entry?.head, at: now });
    if (revision > this.#revision + 1) this.#gaps.push({ before: this.#revision, after: revision });
    this.#revision = revision;
    if (entry) entry.head = change;
    else this.#insert({ key, head: change });
    this.#changes.push(change);
    this.#bytes += change.bytes;
    return change;
  }

  /** Puts back what was there at the first revision, before anything is written. */
  restore(key: string, object: T, revision: number): void {
    this.#insert({ key, head: new Change<T>({ revision, key, object, before: undefined, at: 0 }) });
  }

  /** Makes what was written up to a revision visible, and drops what exceeds the limits. */
  reveal(revision: number, now: number): void {
    if (revision > this.#visible) this.#visible = Math.min(revision, this.#revision);
    while (this.#shown < this.#end && this.change(this.#shown).revision <= this.#visible) this.#shown++;
    const { maxItems, maxBytes, maxAgeMs } = this.#limits;
    while (this.start < this.#shown) {
      const oldest = this.change(this.start);
      if (this.items <= maxItems && this.#bytes <= maxBytes && now - oldest.at <= maxAgeMs) return;
      this.#forget(oldest);
    }
  }

  /** The change at a place from `start` on. */
  change(place: number): Change<T> {
    return this.#changes[place - this.#gone] as Change<T>;
  }

  /** The place of the first kept change after a revision. */
  after(revision: number): number {
    let low = this.start;
    for (let high = this.#end; low < high; ) {
      const middle = (low + high) >>> 1;
      if (this.change(middle).revision <= revision) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** Whether anybody may have been given a revision. Of those from before the first state nobody knows. */
  mayHave(revision: number): boolean {
    if (revision <= this.#compacted) return !this.#gaps.some(({ before, after }) => before < revision && revision < after);
    const place = this.after(revision) - 1;
    return revision <= this.#visible && place >= this.start && this.change(place).revision === revision;
  }

  /** The visible revision of so many changes ago, or the oldest one that can be read. */
  ago(changes: number): number {
    const place = this.#shown - changes;
    return place <= this.start ? this.#compacted : this.change(place - 1).revision;
  }

  /** Forgets the states before a visible revision. */
  compact(revision: number): void {
    while (this.start < this.#shown && this.change(this.start).revision <= revision) this.#forget(this.change(this.start));
  }

  /** The place after the newest change. */
  get #end(): number {
    return this.#gone + this.#changes.length;
  }

  #insert(entry: Entry<T>): void {
    this.#entries.set(entry.key, entry);
    this.#sorted.add(entry);
  }

  #forget(change: Change<T>): void {
    this.#bytes -= change.bytes;
    change.before = undefined;
    this.#compacted = change.revision;
    this.#changes[this.#dead++] = undefined;
    if (this.#dead > 1_000 && this.#dead > this.#changes.length / 2) {
      this.#changes = this.#changes.slice(this.#dead);
      this.#gone += this.#dead;
      this.#dead = 0;
    }
    if (change.object !== undefined || this.#entries.get(change.key)?.head !== change) return;
    this.#entries.delete(change.key);
    this.#sorted.delete(change.key);
  }
}

/** What an entry has at a revision. */
function at<T>(entry: Entry<T>, revision: number): T | undefined {
  let change: Change<T> | undefined = entry.head;
  while (change !== undefined && change.revision > revision) change = change.before;
  return change?.object;
}
