/**
 * What both queues of deltas share: one consumer takes what was queued, and is served in the order of its calls.
 *
 *     add, update, delete, replace, resync            pop(process)
 *                 |                                        |
 *                 v                                        v
 *            queued deltas ------- one pop at a time ---> process ---> settled
 *                 |
 *                 '-- size >= capacity: room() waits, so the producer can
 *
 * Invariants
 * - While a delta is queued, no pop waits, except behind one whose `process` still runs.
 * - `process` gets each delta once. If it throws or rejects, that pop rejects, and its deltas are gone.
 * - `hasSynced` turns true once: after the last delta of the first list was processed (upstream's DeltaFIFO: before that), or
 *   as soon as a change is queued before any list.
 * - After `close`, what is queued is still delivered. Then every pop rejects with CLOSED, and nothing waits.
 */
import { isPromise, whenAborted } from '../../watch/abort.ts';
import { callable, checkText, WatchError, wholeNumber } from '../../watch/errors.ts';
import type { ReflectorStore } from '../list-watcher.ts';
import { type KubernetesObject, keyOf } from '../object.ts';
import {
  checkedTransform,
  checkIterable,
  type DeletedFinalStateUnknown,
  type Delta,
  isDeletedFinalStateUnknown,
  isPreparing,
  type KnownObjects,
  Prepared,
  type StateDelta,
} from '../store/store.ts';

/**
 * Handles deltas. `initial`: the queue had not synced when they were taken, so they may belong to the first list. If it returns a
 * promise, the next pop waits for it. Do not await a pop of the same queue in here: that would be a deadlock.
 */
export type ProcessDeltas<D> = (deltas: readonly D[], initial: boolean) => unknown;

/** Options of both delta queues. */
export interface DeltaQueueOptions<T> {
  /** The key of an object; default {@link keyOf}: namespace and name. */
  keyOf?: ((object: T) => string) | undefined;
  /** The objects that the consumer has, such as its `Store`. */
  knownObjects?: KnownObjects<T> | undefined;
  /**
   * Called once for each object of `add`, `update`, `delete` and `replace`; the result is queued instead. The key is the original
   * object's.
   */
  transform?: ((object: T) => T) | undefined;
  /** Number of queued deltas from which on `room` waits; a whole number >= 1, default 2,000. Nothing is ever refused. */
  capacity?: number | undefined;
}

interface Pop<D> {
  readonly limit: number;
  readonly process: ProcessDeltas<D>;
  readonly resolve: (deltas: readonly D[]) => void;
  readonly reject: (error: unknown) => void;
}

/** The names of the options, for code that checks them. */
export const QUEUE_OPTIONS = ['keyOf', 'knownObjects', 'transform', 'capacity'] as const;

const DEFAULT_CAPACITY = 2_000;

/** What both queues of deltas share. See the top of this file. */
export abstract class DeltaQueue<T, D> implements ReflectorStore<T> {
  protected readonly known: KnownObjects<T> | undefined;
  readonly #keyOf: (object: T) => string;
  readonly #transform: ((object: T) => T) | undefined;
  readonly #capacity: number;
  readonly #pops: Deque<Pop<D>> = new Deque();
  readonly #rooms: Set<() => void> = new Set();
  /** How many deltas of the first list are not processed yet; undefined before anything was queued. */
  #initial: number | undefined;
  #processing: boolean = false;
  #scheduled: boolean = false;
  #closed: boolean = false;

  constructor(options: DeltaQueueOptions<T>) {
    const { keyOf: own, knownObjects, transform, capacity = DEFAULT_CAPACITY } = options;
    this.#keyOf = callable('keyOf', own) ?? (keyOf as (object: KubernetesObject) => string as (object: T) => string);
    this.#transform = checkedTransform(transform);
    this.#capacity = wholeNumber('capacity', capacity, 1);
    if (knownObjects !== undefined) {
      callable('knownObjects.keys', knownObjects?.keys ?? null);
      callable('knownObjects.get', knownObjects.get ?? null);
    }
    this.known = knownObjects;
  }

  /**
   * Transforms an object of a list as soon as it has arrived; only `replace` understands the result, so there is none in a
   * class that overrides it. See `ReflectorStore`.
   */
  get prepare(): ((object: T) => T) | undefined {
    if (!this.#transform || !isPreparing(this)) return undefined;
    return (object) => this.#prepared(object) as unknown as T;
  }

  abstract readonly size: number;
  /** Number of deltas that are queued. */
  protected get pending(): number {
    return this.size;
  }

  abstract delete(object: T | DeletedFinalStateUnknown<T>): void;
  abstract replace(list: Iterable<T>, resourceVersion: string): void;
  /** Puts a delta after all others of its key. */
  protected abstract append(delta: StateDelta<T>): void;
  /** The newest delta of each queued key, in the order of the queue. */
  protected abstract newest(): ReadonlyMap<string, Delta<T>>;
  /** Removes what one pop gets, at most `limit` deltas. */
  protected abstract take(limit: number): readonly D[];
  /** How many deltas of the first list these count as, once they are processed. */
  protected progressOf(deltas: readonly D[]): number {
    return deltas.length;
  }

  /** Whether the first list was processed, or a change was queued before any list. Never turns false again. */
  get hasSynced(): boolean {
    return this.#initial === 0;
  }

  /** How many deltas of the first list are not processed yet. */
  protected get initial(): number {
    return this.#initial ?? 0;
  }

  /** Whether `close` was called. */
  get closed(): boolean {
    return this.#closed;
  }

  /** Queues `Added`. Throws what `keyOf` and `transform` throw; nothing has changed then. */
  add(object: T): void {
    this.#change('Added', object);
  }

  /** Queues `Updated`; otherwise the same as `add`. */
  update(object: T): void {
    this.#change('Updated', object);
  }

  /** Queues `Sync` for every known object that has nothing queued: what is queued is newer. */
  resync(): void {
    const known = this.#knownEntries();
    const queued = this.newest();
    for (const [key, object] of known) if (!queued.has(key)) this.append({ type: 'Sync', key, object });
    this.wake();
  }

  /** Closes the queue: what is queued, and whatever is added later, is still delivered, then pops reject with CLOSED. Idempotent. */
  close(): void {
    this.#closed = true;
    this.wake();
    this.#release();
  }

  /**
   * Resolves when fewer than `capacity` deltas are queued, or the queue is closed. A producer that awaits it before it adds is
   * held back by a slow consumer. Rejects with the reason of an aborted signal.
   */
  room(signal?: AbortSignal): Promise<void> {
    if (signal?.aborted) return Promise.reject(signal.reason);
    if (this.#hasRoom) return Promise.resolve();
    return new Promise((resolve, reject) => {
      const enter = (): void => {
        this.#rooms.delete(enter);
        leave();
        resolve();
      };
      const leave = whenAborted(signal, (reason) => {
        this.#rooms.delete(enter);
        reject(reason);
      });
      this.#rooms.add(enter);
    });
  }

  /** The key, and the object to queue, of what a producer passed. User code, so it comes before any change. */
  protected enter(object: T): readonly [key: string, object: T] {
    return [checkText('keyOf', this.#keyOf(object)), this.#transform ? this.#transform(object) : object];
  }

  #prepared(object: T | Prepared<T>): Prepared<T> {
    if (object instanceof Prepared) return object;
    try {
      return new Prepared(...this.enter(object));
    } catch (error) {
      return new Prepared(undefined, object, { failure: { error } });
    }
  }

  /** The same for a deletion. An inferred one has been through this before. */
  protected toDeletedEntry(target: T | DeletedFinalStateUnknown<T>): readonly [key: string, object: T, inferred: boolean] {
    if (isDeletedFinalStateUnknown<T>(target)) return [target.key, target.object, true];
    return [...this.enter(target), false];
  }

  /** The same for a list. Of several objects with one key the last one counts, in the place of the first. */
  protected toEntries(list: Iterable<T>): Map<string, T> {
    checkIterable(list);
    return new Map(Array.from(list, (object) => (object instanceof Prepared ? object.entry() : this.enter(object))));
  }

  /** What is queued and not deleted, or known, and not in a list, with its last known state. */
  protected missing(objects: ReadonlyMap<string, T>): Map<string, T> {
    const known = this.#knownEntries();
    const queued = this.newest();
    const missing = new Map<string, T>();
    for (const [key, last] of queued) if (!objects.has(key) && last.type !== 'Deleted') missing.set(key, last.object);
    for (const [key, object] of known) if (!objects.has(key) && !queued.has(key)) missing.set(key, object);
    return missing;
  }

  /** What the consumer has, read as a whole before anything is queued: this is user code. */
  #knownEntries(): (readonly [string, T])[] {
    const { known } = this;
    return Array.from(known?.keys() ?? [], (key) => [key, known?.get(key)] as const).filter(
      (entry): entry is readonly [string, T] => entry[1] !== undefined,
    );
  }

  /** Called with each change, after it was queued. `initial`: how much there is to process until this queue has synced. */
  protected queued(initial: number = 0): void {
    this.#initial ??= initial;
    this.wake();
  }

  /**
   * Waits until something is queued, takes what is next (all deltas of the oldest key, or the oldest delta), and passes it to
   * `process`. Resolves with it when that is done, or rejects with its error; in both cases, the deltas are removed. Several pops
   * are served in order.
   *
   * @throws {WatchError} CLOSED (as a rejection) when the queue is closed and empty.
   */
  pop(process: ProcessDeltas<D>): Promise<readonly D[]> {
    return this.run(1, process);
  }

  /** Takes up to `limit` deltas as soon as there are some, and processes them. */
  protected run(limit: number, process: ProcessDeltas<D>): Promise<readonly D[]> {
    callable('process', process ?? null);
    return new Promise((resolve, reject) => {
      this.#pops.push({ limit, process, resolve, reject });
      this.#serve();
    });
  }

  #change(type: 'Added' | 'Updated', given: T): void {
    const [key, object] = this.enter(given);
    this.append({ type, key, object });
    this.queued();
  }

  get #hasRoom(): boolean {
    return this.#closed || this.pending < this.#capacity;
  }

  /** Serves pops that wait, but not within the call of a producer: `process` is the consumer's code. */
  protected wake(): void {
    if (this.#scheduled || this.#pops.size === 0) return;
    this.#scheduled = true;
    queueMicrotask(() => {
      this.#scheduled = false;
      this.#serve();
    });
  }

  #serve(): void {
    while (!this.#processing && this.#pops.size > 0 && (this.pending > 0 || this.#closed)) {
      const pop = this.#pops.shift() as Pop<D>;
      if (this.pending > 0) this.#process(pop);
      else pop.reject(new WatchError('CLOSED', 'the queue is closed'));
    }
  }

  #process({ limit, process, resolve, reject }: Pop<D>): void {
    const initial = !this.hasSynced;
    const deltas = this.take(limit);
    const finish = (settle: () => void): void => {
      this.#processing = false;
      if (this.#initial) this.#initial = Math.max(0, this.#initial - this.progressOf(deltas));
      settle();
      this.wake();
    };
    this.#processing = true;
    this.#release();
    let result: unknown;
    try {
      result = process(deltas, initial);
    } catch (error) {
      finish(() => reject(error));
      return;
    }
    if (!isPromise(result)) {
      finish(() => resolve(deltas));
      return;
    }
    Promise.resolve(result).then(
      () => finish(() => resolve(deltas)),
      (error: unknown) => finish(() => reject(error)),
    );
  }

  #release(): void {
    if (this.#hasRoom) for (const enter of [...this.#rooms]) enter();
  }
}

/** A queue in one array. `shift` is O(1) amortized, and taken items are not kept alive. */
export class Deque<T> implements Iterable<T> {
  #items: (T | undefined)[] = [];
  #head: number = 0;

  get size(): number {
    return this.#items.length - this.#head;
  }

  push(item: T): void {
    this.#items.push(item);
  }

  /** The item at this place, from the oldest. */
  at(index: number): T | undefined {
    return this.#items[this.#head + index];
  }

  /** Removes and returns the oldest item. */
  shift(): T | undefined {
    const item = this.#items[this.#head];
    if (this.size === 0) return undefined;
    this.#items[this.#head++] = undefined;
    if (this.#head * 2 > this.#items.length) {
      this.#items.splice(0, this.#head);
      this.#head = 0;
    }
    return item;
  }

  *[Symbol.iterator](): Iterator<T> {
    for (let at = this.#head; at < this.#items.length; at++) yield this.#items[at] as T;
  }
}
