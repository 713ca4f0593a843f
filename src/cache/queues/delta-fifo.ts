import { checkOptions } from '../../watch/errors.ts';
import { takesPrepared } from '../store/store.ts';
import type { DeletedFinalStateUnknown, Delta } from './delta.ts';
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
    const gone = this.#missing(objects);
    const type = this.#emitReplaced ? 'Replaced' : 'Sync';
    for (const [key, object] of objects) this.append({ type, key, object });
    for (const [key, object] of gone) this.append({ type: 'Deleted', key, object, finalStateUnknown: true });
    this.queued(objects.size + gone.size);
  }

  /** Queues `Sync` for every known object that has nothing queued: what is queued is newer. */
  resync(): void {
    for (const [key, object] of this.knownEntries()) {
      if (!this.#items.has(key)) this.append({ type: 'Sync', key, object });
    }
    this.wake();
  }

  /**
   * Waits until something is queued, takes the oldest key with all its deltas, and passes them to `process`. Resolves with them
   * when that is done, or rejects with its error; in both cases, the deltas are removed. Several pops are served in order.
   *
   * @throws {WatchError} CLOSED (as a rejection) when the queue is closed and empty.
   */
  pop(process: ProcessDeltas<Delta<T>>): Promise<readonly Delta<T>[]> {
    return this.run(1, process);
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

  /** All that is queued or known and not in a list, with its last known state. */
  #missing(objects: ReadonlyMap<string, T>): Map<string, T> {
    const missing = new Map<string, T>();
    for (const key of this.#keys) {
      const last = this.#items.get(key)?.at(-1);
      if (last && !objects.has(key)) missing.set(key, last.object);
    }
    for (const [key, object] of this.knownEntries()) {
      if (!objects.has(key) && !missing.has(key)) missing.set(key, object);
    }
    return missing;
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
