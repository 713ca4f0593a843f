/**
 * A watch of a {@link History}. It has no queue: it is a position in the history, and reads on from there when its consumer does.
 * So a slow consumer costs no more than a fast one. If the history drops changes that it has not read, it gets an ERROR 410. The
 * state that a watch begins with is read in the same way: at the first revision, after the last key that was read.
 *
 *     state: the keys at revision 5 ----> bookmark ----> changes 6, 7, 8 ...
 *            a b c | d e f                               | ^      `#until: where a stopped watch ends
 *                  `#after                               | `#place: of the next change
 *                                                        `#seen: the last revision that was looked at
 *
 * Invariants
 * - Every revision up to `#seen` was delivered, or is not selected. `#seen` only grows.
 * - A BOOKMARK of revision r is delivered when `#seen` is r, not before.
 */
import type { SelectionPredicate } from '../../selectors/index.ts';
import { type BookmarkEvent, type ErrorEvent, INITIAL_EVENTS_END } from '../../watch/event.ts';
import { NONE, Reader } from '../../watch/reader.ts';
import { expired } from '../statuses.ts';
import type { StorageEvent } from '../storage.ts';
import type { Change } from './change.ts';
import type { History, Range } from './history.ts';

/** How many objects of the first state are looked up at once. */
const CHUNK = 256;

/** What a {@link HistoryWatch} delivers, and what is called at its end. */
export interface HistoryWatchOptions<T> {
  readonly history: History<T>;
  readonly prefix: string;
  readonly predicate: SelectionPredicate<T>;
  /** The last revision that is not delivered; with `initial`, that of the state. */
  readonly after: number;
  /** Whether it begins with the state; `marked`: and ends that with a BOOKMARK. */
  readonly initial: boolean | 'marked';
  readonly bookmarks: boolean;
  /** Called with what a predicate throws; the object is then not selected. */
  readonly onError: (error: unknown) => void;
  /** Called once, when nothing can become readable any more. */
  readonly onEnd: (watch: HistoryWatch<T>) => void;
}

export class HistoryWatch<T> extends Reader<StorageEvent<T>> {
  readonly prefix: string;
  protected failure: { readonly error: unknown } | undefined;
  readonly #options: HistoryWatchOptions<T>;
  readonly #history: History<T>;
  /** Whether the state has not been delivered whole: then `#seen` is its revision. */
  #initial: boolean;
  /** The smallest key that was not looked up, and the objects that were looked up but not delivered. */
  #after: string;
  #chunk: T[] = [];
  #mark: boolean;
  #seen: number;
  /** The place of the first change after `#seen`. */
  #place: number;
  /** Where a stopped watch ends. */
  #until: number = Number.POSITIVE_INFINITY;
  /** The revisions of the BOOKMARKs to deliver: the next one, and the newest that was asked for. */
  #owed: number | undefined;
  #newest: number = 0;
  #over: boolean = false;
  #lost: number = 0;

  constructor(options: HistoryWatchOptions<T>) {
    super();
    this.#options = options;
    this.#history = options.history;
    this.prefix = options.prefix;
    this.#seen = options.after;
    this.#place = options.history.after(options.after);
    this.#initial = options.initial !== false;
    this.#mark = options.initial === 'marked';
    this.#after = options.prefix;
  }

  get stopped(): boolean {
    return this.#over || this.#until !== Number.POSITIVE_INFINITY;
  }

  /** Counted by looking: nothing is queued. */
  get queued(): number {
    if (this.#over || this.#isLost) return 0;
    let count = this.#chunk.length + (this.#mark ? 1 : 0) + (this.#owed === undefined ? 0 : 1);
    if (this.#initial) {
      this.#history.scan(this.#rest, (_, object) => {
        count += this.#selects(object) ? 1 : 0;
        return true;
      });
    }
    for (let place = this.#place; place < this.#limit; place++) count += this.#select(this.#history.change(place)) ? 1 : 0;
    return count;
  }

  get dropped(): number {
    return this.#lost;
  }

  /** Serves reads that wait. Called when a revision has become visible. */
  wake(): void {
    if (this.waiting > 0) this.serve();
  }

  /** Makes this watch deliver a BOOKMARK of the newest visible revision, after everything up to it. */
  progress(): void {
    if (this.stopped || !this.#options.bookmarks) return;
    // The one that is owed stays: frequent requests must not postpone it for ever.
    this.#newest = this.#history.visible;
    this.#owed ??= this.#newest;
    this.wake();
  }

  protected override get drained(): boolean {
    return this.stopped;
  }

  /** Whether the history has dropped what would come next. */
  get #isLost(): boolean {
    return this.#place < this.#history.start || this.#seen < this.#history.compacted;
  }

  get #limit(): number {
    return Math.min(this.#history.shown, this.#until);
  }

  protected override take(): StorageEvent<T> | typeof NONE {
    if (this.#over) return NONE;
    if (this.#isLost) return this.#expired();
    const object = this.#nextOfState();
    if (object !== undefined) return { type: 'ADDED', object };
    if (this.#mark) return this.#endOfState();
    const found = this.#nextChange();
    if (found === NONE && this.stopped) this.#finish();
    return found;
  }

  #nextChange(): StorageEvent<T> | typeof NONE {
    for (;;) {
      if (this.#isLost) return this.#expired(); // a field's function may have written
      const next = this.#place < this.#limit ? this.#history.change(this.#place) : undefined;
      // Between two changes may be revisions that nobody was given.
      const seen = next ? next.revision - 1 : this.#history.visible;
      if (this.#owed !== undefined && this.#owed <= seen) return this.#bookmark(this.#owed);
      if (!next) return NONE;
      const event = this.#select(next);
      this.#place++;
      this.#seen = next.revision;
      if (event) return event;
    }
  }

  /** The event of a change for this watch; undefined if there is none. */
  #select(change: Change<T>): StorageEvent<T> | undefined {
    if (!change.key.startsWith(this.prefix) || change.key === '') return undefined;
    if (this.#options.predicate.isEmpty) return change.event;
    const { object, previous } = change;
    const is = object !== undefined && this.#selects(object);
    const was = previous !== undefined && this.#selects(previous);
    if (is) return was ? change.event : change.entered;
    return was ? change.left : undefined;
  }

  #selects(object: T): boolean {
    try {
      return this.#options.predicate.matches(object);
    } catch (error) {
      this.#options.onError(error);
      return false;
    }
  }

  /** The next selected object of the state; undefined at its end. */
  #nextOfState(): T | undefined {
    while (this.#chunk.length === 0 && this.#initial) this.#lookUp();
    return this.#chunk.pop();
  }

  #lookUp(): void {
    let left = CHUNK;
    const found: T[] = [];
    this.#history.scan(this.#rest, (key, object) => {
      if (this.#selects(object)) found.push(object);
      if (--left === 0) this.#after = `${key}\0`;
      return left > 0;
    });
    this.#chunk = found.reverse();
    if (left > 0) this.#initial = false;
  }

  get #rest(): Range {
    return { prefix: this.prefix, from: this.#after, revision: this.#seen };
  }

  #endOfState(): BookmarkEvent {
    this.#mark = false;
    return toBookmark(this.#seen, { [INITIAL_EVENTS_END]: 'true' });
  }

  #bookmark(revision: number): BookmarkEvent {
    this.#seen = Math.max(this.#seen, revision);
    this.#owed = this.#newest > this.#seen ? this.#newest : undefined;
    return toBookmark(this.#seen);
  }

  #expired(): ErrorEvent {
    const { status } = expired(`${this.#seen}`, `${this.#history.compacted}`);
    this.#finish();
    return { type: 'ERROR', object: status as NonNullable<typeof status> };
  }

  /** What is visible by now stays readable. */
  protected override end(): void {
    if (this.stopped) return;
    this.#until = this.#history.shown;
    this.#owed = undefined;
    this.#options.onEnd(this);
  }

  protected override discard(): void {
    this.#lost += this.queued;
    this.#finish();
  }

  #finish(): void {
    if (this.#over) return;
    const ended = this.stopped;
    this.#over = true;
    this.#chunk = [];
    if (!ended) this.#options.onEnd(this);
  }
}

function toBookmark(revision: number, annotations?: Readonly<Record<string, string>>): BookmarkEvent {
  return { type: 'BOOKMARK', object: { metadata: { resourceVersion: `${revision}`, ...(annotations && { annotations }) } } };
}
