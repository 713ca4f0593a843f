import { Batches } from '../watch/reader.ts';
import type { Watch, WatchBatches } from '../watch/watch.ts';
import type { Cursor } from './cursor.ts';

/**
 * Watches that were forgotten: the log knows the cursor, the consumer alone knows the handle. When the handle is collected,
 * nobody can read any more, so the cursor leaves, and a publisher that waited for it goes on.
 *
 *     consumer --> BroadcastWatch --> Cursor <--> log, gate, laggards
 *                  (collected?)  - - -> return()
 *
 * While a read waits, the cursor holds the handle: its consumer may have kept nothing but the promise. The registry holds the
 * cursor weakly: a broadcaster that is forgotten with all its watches takes them along.
 */
const forgotten: FinalizationRegistry<WeakRef<Cursor<unknown>>> = new FinalizationRegistry((cursor) => {
  void cursor.deref()?.return();
});

/** What `watch()` hands out. */
export class BroadcastWatch<E> implements Watch<E> {
  readonly #cursor: Cursor<E>;

  constructor(cursor: Cursor<E>) {
    this.#cursor = cursor;
    forgotten.register(this, new WeakRef(cursor as Cursor<unknown>));
  }

  get stopped(): boolean {
    return this.#cursor.stopped;
  }

  get queued(): number {
    return this.#cursor.queued;
  }

  get dropped(): number {
    return this.#cursor.dropped;
  }

  next(): Promise<IteratorResult<E, undefined>> {
    return this.#held(this.#cursor.next());
  }

  tryNext(): E | undefined {
    return this.#cursor.tryNext();
  }

  batches(): WatchBatches<E> {
    return new Batches(this, () => this.#held(this.#cursor.nextBatch()));
  }

  #held<T>(read: T): T {
    if (this.#cursor.hasReads) this.#cursor.holder = this;
    return read;
  }

  stop(): void {
    this.#cursor.stop();
  }

  return(): Promise<IteratorResult<E, undefined>> {
    return this.#cursor.return();
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  [Symbol.dispose](): void {
    void this.#cursor.return();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#cursor.return();
  }
}
