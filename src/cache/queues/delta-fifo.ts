import { checkOptions, wholeNumber } from '../../watch/errors.ts';
import { type DeletedFinalStateUnknown, type Delta, type RealDelta, takesPrepared } from '../store/store.ts';
import { DeltaQueue, type DeltaQueueOptions, Deque, type ProcessDeltas, QUEUE_OPTIONS } from './delta-queue.ts';

/** Options of a {@link DeltaFifo}. */
export interface DeltaFifoOptions<T> extends DeltaQueueOptions<T> {
  /** Whether `replace` queues `Replaced` rather than `Sync`; default false, as in upstream. */
  emitReplaced?: boolean | undefined;
}

/**
 * A queue of changes by key: a pop gets everything that has happened to one object since it was last popped. A key keeps its
 * place when more happens to it. So changes are ordered per key, but not across keys; `RealFifo` has that order.
 *
 *     add a, add b, update a        pop -> a: [Added, Updated]        pop -> b: [Added]
 *
 * - `replace` queues all objects of a list, and a `Deleted` with `finalStateUnknown` for every queued or known object that is not
 *   in it. `resync` queues a `Sync` for every known object that has nothing queued.
 * - A deletion right after a deletion is dropped. Nothing else is merged.
 * - Without `knownObjects`, an object is forgotten once it is popped: its deletion is ignored, and a list without it queues no
 *   deletion.
 *
 * Differs from upstream: a `transform` or `keyOf` that throws in the middle of a list leaves the queue as it was; an object that
 * occurs twice in a list is queued once; deletions are in the order of the queue and of `knownObjects`; `hasSynced` turns true
 * after the last object was processed. Upstream: `cache.DeltaFIFO`, `NewDeltaFIFOWithOptions`.
 */
export class DeltaFifo<T> extends DeltaQueue<T, Delta<T>> {
  readonly #emitReplaced: boolean;
  readonly #items: Map<string, Delta<T>[]> = new Map();
  readonly #keys: Deque<string> = new Deque();
  #pending: number = 0;

  /** @throws {WatchError} INVALID_ARGUMENT for an invalid or unknown option. */
  constructor(options: DeltaFifoOptions<T> = {}) {
    super(checkOptions(options, [...QUEUE_OPTIONS, 'emitReplaced']));
    this.#emitReplaced = options.emitReplaced === true;
    takesPrepared(DeltaFifo.prototype.replace);
  }

  /** Number of keys that have something queued. */
  get size(): number {
    return this.#keys.size;
  }

  protected override get pending(): number {
    return this.#pending;
  }

  /** Queues `Deleted`, unless the object is neither queued nor known. Also accepts inferred deletions. */
  delete(target: T | DeletedFinalStateUnknown<T>): void {
    const [key, object, finalStateUnknown] = this.toDeletedEntry(target);
    if (this.#items.has(key) || this.known?.get(key) !== undefined) {
      this.append({ type: 'Deleted', key, object, finalStateUnknown });
    }
    this.queued();
  }

  /** Queues the objects of a list, then the deletions of all others that are queued or known. If it throws, nothing is queued. */
  replace(list: Iterable<T>, _resourceVersion: string): void {
    const objects = this.toEntries(list);
    const gone = this.missing(objects);
    const type = this.#emitReplaced ? 'Replaced' : 'Sync';
    for (const [key, object] of objects) this.append({ type, key, object });
    for (const [key, object] of gone) this.append({ type: 'Deleted', key, object, finalStateUnknown: true });
    this.queued(objects.size + gone.size);
  }

  protected override take(): readonly Delta<T>[] {
    const key = this.#keys.shift() as string;
    const deltas = this.#items.get(key) as Delta<T>[];
    this.#items.delete(key);
    this.#pending -= deltas.length;
    return deltas;
  }

  protected override progressOf(): number {
    return 1;
  }

  protected override newest(): Map<string, Delta<T>> {
    return new Map(Array.from(this.#items, ([key, deltas]) => [key, deltas.at(-1) as Delta<T>]));
  }

  protected override append(delta: Delta<T>): void {
    const deltas = this.#items.get(delta.key);
    this.#pending++;
    if (!deltas) {
      this.#items.set(delta.key, [delta]);
      this.#keys.push(delta.key);
      return;
    }
    const last = deltas.at(-1) as Delta<T>;
    if (last.type !== 'Deleted' || delta.type !== 'Deleted') {
      deltas.push(delta);
      return;
    }
    this.#pending--;
    // Of two deletions, the one that was observed says more; otherwise the newer one if the older one was inferred.
    if (last.finalStateUnknown) deltas[deltas.length - 1] = delta;
  }
}

/** Options of a {@link RealFifo}. */
export interface RealFifoOptions<T> extends DeltaQueueOptions<T> {
  /**
   * The objects that the consumer has. With it, a list becomes one delta per object and per deletion. Without it, a list is a
   * single `ReplacedAll` delta, which the consumer compares with its objects in one step.
   */
  knownObjects?: DeltaQueueOptions<T>['knownObjects'];
  /** The largest batch of {@link RealFifo.popBatch}; a whole number >= 1, default 1,000. */
  batchSize?: number | undefined;
}

const DEFAULT_BATCH_SIZE = 1_000;

/**
 * A queue of changes in one order over all keys: a pop gets what happened next. Nothing is merged or left out; even the deletion
 * of an unknown object is delivered.
 *
 *     add a, add b, update a        pop -> Added a        pop -> Added b        pop -> Updated a
 *
 * - Without `knownObjects`, `replace` queues one `ReplacedAll`, `resync` one `SyncAll` and `bookmark` one `Bookmark`: a consumer
 *   that applies the deltas in order has, after each of them, exactly what the producer had reported by then.
 * - With `knownObjects`, `replace` queues the deletions first, then `Replaced` for each object; `resync` queues `Sync` for each
 *   known object that has nothing queued; bookmarks are ignored.
 *
 * Differs from upstream: an object without a key is refused when it is added instead of when it is popped, and a list with such
 * an object changes nothing; an object that occurs twice in a list is queued once. Upstream: `cache.RealFIFO`.
 */
export class RealFifo<T> extends DeltaQueue<T, RealDelta<T>> {
  readonly #deltas: Deque<RealDelta<T>> = new Deque();
  readonly #batchSize: number;

  /** @throws {WatchError} INVALID_ARGUMENT for an invalid or unknown option. */
  constructor(options: RealFifoOptions<T> = {}) {
    super(checkOptions(options, [...QUEUE_OPTIONS, 'batchSize']));
    const { batchSize = DEFAULT_BATCH_SIZE } = options;
    this.#batchSize = wholeNumber('batchSize', batchSize, 1);
    takesPrepared(RealFifo.prototype.replace);
  }

  /** Number of queued deltas. */
  get size(): number {
    return this.#deltas.size;
  }

  /** Always queues `Deleted`. Also accepts inferred deletions. */
  delete(target: T | DeletedFinalStateUnknown<T>): void {
    const [key, object, finalStateUnknown] = this.toDeletedEntry(target);
    this.append({ type: 'Deleted', key, object, finalStateUnknown });
    this.queued();
  }

  /** Queues a list: these are now all the objects. If it throws, nothing is queued. */
  replace(list: Iterable<T>, resourceVersion: string): void {
    const objects = this.toEntries(list);
    if (this.known) {
      for (const [key, object] of this.missing(objects)) this.append({ type: 'Deleted', key, object, finalStateUnknown: true });
      for (const [key, object] of objects) this.append({ type: 'Replaced', key, object });
    } else this.append({ type: 'ReplacedAll', objects, resourceVersion });
    this.queued(this.size);
  }

  /** Makes the consumer process every object again. */
  override resync(): void {
    if (this.known) {
      super.resync();
      return;
    }
    this.append({ type: 'SyncAll' });
    this.wake();
  }

  /** Queues a bookmark, which gives the consumer the source's version in order with the changes. Ignored with `knownObjects`. */
  bookmark(resourceVersion: string): void {
    if (this.known) return;
    this.append({ type: 'Bookmark', resourceVersion });
    this.wake();
  }

  /**
   * Like `pop`, for several deltas at once: as many as are queued, up to `batchSize`, all with different keys, and either all or
   * none from the first list. `ReplacedAll`, `SyncAll` and `Bookmark` come alone.
   */
  popBatch(process: ProcessDeltas<RealDelta<T>>): Promise<readonly RealDelta<T>[]> {
    return this.run(this.#batchSize, process);
  }

  protected override take(limit: number): readonly RealDelta<T>[] {
    const longest = Math.min(limit, this.initial || limit); // a batch does not reach over the end of the first list
    const keys = new Set<string>();
    const batch: RealDelta<T>[] = [];
    while (batch.length < longest) {
      const next = this.#deltas.at(0);
      if (!next || (batch.length > 0 && (!('key' in next) || keys.has(next.key)))) break;
      this.#deltas.shift();
      batch.push(next);
      if (!('key' in next)) break;
      keys.add(next.key);
    }
    return batch;
  }

  protected override newest(): Map<string, Delta<T>> {
    const newest = new Map<string, Delta<T>>();
    for (const delta of this.#deltas) if ('key' in delta) newest.set(delta.key, delta);
    return newest;
  }

  protected override append(delta: RealDelta<T>): void {
    this.#deltas.push(delta);
  }
}
