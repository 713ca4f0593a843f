import type { BookmarkEvent, ErrorEvent, ObjectEvent } from '../../watch/event.ts';

/**
 * The state of a collection while it is being streamed, until its end is reported. That may take a while, so changes come in
 * between. Upstream: the temporary store of `watchList`.
 */
export class InitialState<T> {
  readonly #objects: Map<unknown, T> = new Map();
  readonly #keyOf: (object: T) => string;
  readonly #prepare: (object: T) => T;

  /** `prepare` is called with each object; the result is held in its place. */
  constructor(keyOf: (object: T) => string, prepare: (object: T) => T = (object) => object) {
    this.#keyOf = keyOf;
    this.#prepare = prepare;
  }

  /** Number of objects. */
  get size(): number {
    return this.#objects.size;
  }

  /** All objects, in the order in which they came. */
  get objects(): Iterable<T> {
    return this.#objects.values();
  }

  /** Only changes of objects belong to it. */
  take({ type, object }: Exclude<ObjectEvent<T>, BookmarkEvent | ErrorEvent>): void {
    const key = this.#key(object);
    if (type === 'DELETED') this.#objects.delete(key);
    else this.#objects.set(key, this.#prepare(object));
  }

  /** An object without a key stands for itself. The store decides whether to accept it. */
  #key(object: T): unknown {
    try {
      return this.#keyOf(object);
    } catch {
      return object;
    }
  }
}
