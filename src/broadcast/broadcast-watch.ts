import { Batches, Iteration } from '../watch/reader.ts';
import type { Watch, WatchBatches } from '../watch/watch.ts';
import type { Cursor } from './cursor.ts';
import type { View } from './view.ts';

/** A function rather than a private method, which would make every handle one word larger. */
function held<T>(watch: object, cursor: { hold(holder: object): void }, read: T): T {
  cursor.hold(watch);
  return read;
}

/** The watch that `watch()` returns. */
export class BroadcastWatch<E> extends Iteration implements Watch<E> {
  readonly #cursor: Cursor<E>;

  constructor(cursor: Cursor<E>, forgotten: Forgotten) {
    super();
    this.#cursor = cursor;
    // A cursor that has left already needs no registration. A token takes memory, and only callbacks can lead back to this
    // handle.
    if (cursor.inSet !== undefined) forgotten.register(this, cursor, cursor.callsBack ? cursor : undefined);
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

  get position(): number | undefined {
    return this.#cursor.place;
  }

  /** The view it belongs to. Not part of `Watch`, like `tryBatch`: for the bridge. */
  get view(): View<E> {
    return this.#cursor.view;
  }

  next(): Promise<IteratorResult<E, undefined>> {
    return held(this, this.#cursor, this.#cursor.next());
  }

  tryNext(): E | undefined {
    return this.#cursor.tryNext();
  }

  /** Like `tryNext`, but takes all queued events. Not part of `Watch`: for the bridge, which looks at many watches at once. */
  tryBatch(): readonly E[] | undefined {
    return this.#cursor.tryBatch();
  }

  /** The total size of everything queued. Not part of `Watch`: for the bridge, whose clients have a limit in bytes. */
  sizeOfQueue(sizeOf: (event: E) => number): number {
    return this.#cursor.sizeOfQueue(sizeOf);
  }

  batches(): WatchBatches<E> {
    return new Batches(this, () => held(this, this.#cursor, this.#cursor.nextBatch()));
  }

  stop(): void {
    this.#cursor.stop();
  }

  return(): Promise<IteratorResult<E, undefined>> {
    return this.#cursor.return();
  }
}

/**
 * Garbage-collected watches. The log references the cursor; only the consumer references the handle. When the handle is
 * collected, nobody can read any longer, so the cursor leaves and a publisher that waited for it continues.
 *
 *     consumer --> BroadcastWatch --> Cursor <--> log, gate, laggards
 *                  (collected?)  - - -> return()
 *
 * A pending read holds the handle, because its consumer may hold only the promise. Each mux has its own registry, so a
 * broadcaster that is collected together with all its watches takes the registry along.
 *
 * The registry holds the cursor until the handle is collected. A filter or `onGap` may reference the handle, and the cursor
 * references them. So a cursor with callbacks is unregistered when it leaves; otherwise neither could ever be collected.
 */
export type Forgotten = FinalizationRegistry<{ return(): unknown }>;

export function newForgotten(): Forgotten {
  return new FinalizationRegistry((cursor) => void cursor.return());
}
