import { Batches, Iteration } from '../watch/iteration.ts';
import type { Watch, WatchBatches } from '../watch/watch.ts';
import type { Cursor } from './cursor.ts';
import type { Forgotten } from './forgotten.ts';

/** Not a private method: with one of those, every handle would carry one word more. */
function held<T>(watch: object, cursor: { hold(holder: object): void }, read: T): T {
  cursor.hold(watch);
  return read;
}

/** What `watch()` hands out. */
export class BroadcastWatch<E> extends Iteration implements Watch<E> {
  readonly #cursor: Cursor<E>;

  constructor(cursor: Cursor<E>, forgotten: Forgotten) {
    super();
    this.#cursor = cursor;
    // Who has left already has nothing to be told. A token takes room, and without callbacks there is no way back to here.
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

  next(): Promise<IteratorResult<E, undefined>> {
    return held(this, this.#cursor, this.#cursor.next());
  }

  tryNext(): E | undefined {
    return this.#cursor.tryNext();
  }

  /** Not part of the port: for the bridge, which looks at many watches in one go. Like `tryNext`, but takes all that is queued. */
  tryBatch(): readonly E[] | undefined {
    return this.#cursor.tryBatch();
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
