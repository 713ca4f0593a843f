import { checkOptions, wholeNumber } from '../../watch/errors.ts';
import { takesPrepared } from '../store/store.ts';
import type { DeletedFinalStateUnknown, RealDelta } from './delta.ts';
import { DeltaQueue, type DeltaQueueOptions, Deque, type ProcessDeltas, QUEUE_OPTIONS } from './delta-queue.ts';

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
    this.#batchSize = wholeNumber('batchSize', options.batchSize ?? DEFAULT_BATCH_SIZE, 1);
    takesPrepared(RealFifo.prototype.replace);
  }

  /** Number of queued deltas. */
  get size(): number {
    return this.#deltas.size;
  }

  protected override get pending(): number {
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
      const missing = this.#missing(objects); // asks the consumer, so it comes before any change
      for (const [key, object] of missing) this.append({ type: 'Deleted', key, object, finalStateUnknown: true });
      for (const [key, object] of objects) this.append({ type: 'Replaced', key, object });
    } else this.append({ type: 'ReplacedAll', objects, resourceVersion });
    this.queued(this.size);
  }

  /** Makes the consumer process every object again. */
  resync(): void {
    if (!this.known) this.append({ type: 'SyncAll' });
    else {
      const queued = this.#lastByKey();
      for (const [key, object] of this.knownEntries()) {
        if (!queued.has(key)) this.append({ type: 'Sync', key, object });
      }
    }
    this.wake();
  }

  /** Queues a bookmark, which gives the consumer the source's version in order with the changes. Ignored with `knownObjects`. */
  bookmark(resourceVersion: string): void {
    if (this.known) return;
    this.append({ type: 'Bookmark', resourceVersion });
    this.wake();
  }

  /**
   * Waits until something is queued, takes the oldest delta, and passes it to `process`, alone in an array. Resolves when that is
   * done, or rejects with its error; in both cases, the delta is removed. Several pops are served in order.
   *
   * @throws {WatchError} CLOSED (as a rejection) when the queue is closed and empty.
   */
  pop(process: ProcessDeltas<RealDelta<T>>): Promise<readonly RealDelta<T>[]> {
    return this.run(1, process);
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

  protected override progressOf(deltas: readonly RealDelta<T>[]): number {
    return deltas.length;
  }

  /** What is queued and not deleted, or known, and not in a list. */
  #missing(objects: ReadonlyMap<string, T>): Map<string, T> {
    const missing = new Map<string, T>();
    const queued = this.#lastByKey();
    for (const [key, last] of queued) {
      if (!objects.has(key) && last.type !== 'Deleted') missing.set(key, last.object);
    }
    for (const [key, object] of this.knownEntries()) {
      if (!objects.has(key) && !queued.has(key)) missing.set(key, object);
    }
    return missing;
  }

  /** The newest delta of each queued key, in the order in which the keys were first queued. */
  #lastByKey(): Map<string, Extract<RealDelta<T>, { key: string }>> {
    const last = new Map<string, Extract<RealDelta<T>, { key: string }>>();
    for (const delta of this.#deltas) if ('key' in delta) last.set(delta.key, delta);
    return last;
  }

  protected override append(delta: RealDelta<T>): void {
    this.#deltas.push(delta);
  }
}
