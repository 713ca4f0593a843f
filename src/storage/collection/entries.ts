/** What a collection is made of: the entries of its state, and those of its log. */
import { withVersionOf } from '../../broadcast/filter.ts';
import { type KubernetesObject, versionOf } from '../../cache/object.ts';
import type { ChangeEvent } from '../storage.ts';

/** An object in the state. */
export class StateEntry<T extends KubernetesObject> {
  readonly key: string;
  readonly object: T;
  /** The place of the change that brought it; -1 if it came with a list. */
  readonly place: number;
  #added: ChangeEvent<T> | undefined = undefined;

  constructor(key: string, object: T, place: number) {
    this.key = key;
    this.object = object;
    this.place = place;
  }

  /** The event of watches to which this object is new, and which have heard of no other under its key. The same one for all of them. */
  get added(): ChangeEvent<T> {
    this.#added ??= { type: 'ADDED', object: this.object };
    return this.#added;
  }
}

/** What happens to one key, as whoever fills a collection says it. */
export interface Step<T extends KubernetesObject> {
  readonly key: string;
  /** The object after the change, with its version; that of a deletion has its last content, and the version of the deletion. */
  readonly object: T;
  readonly isDeletion: boolean;
}

/**
 * A change in the log, with every event that a watch may get for it. Each event is made once, so all watches share it, and the
 * bytes of its object are made once.
 */
export class LogEntry<T extends KubernetesObject> {
  /** What was there before, and what is there since: at least one of the two. */
  readonly before: StateEntry<T> | undefined;
  readonly after: StateEntry<T> | undefined;
  /** As in {@link Step}. */
  readonly object: T;
  readonly atMs: number;
  /** The bytes that the log keeps alive because of it. */
  readonly bytes: number;
  #event: ChangeEvent<T> | undefined = undefined;
  #entered: ChangeEvent<T> | undefined = undefined;
  #left: ChangeEvent<T> | undefined = undefined;

  constructor({ before, after, object, atMs, bytes }: Pick<LogEntry<T>, 'before' | 'after' | 'object' | 'atMs' | 'bytes'>) {
    this.before = before;
    this.after = after;
    this.object = object;
    this.atMs = atMs;
    this.bytes = bytes;
  }

  get key(): string {
    return (this.after ?? (this.before as StateEntry<T>)).key;
  }

  get version(): string {
    return versionOf(this.object);
  }

  /** The event of a watch that selects the object both before and after the change, and of one that selects everything. */
  get event(): ChangeEvent<T> {
    const { before, after, object } = this;
    if (!before) return (after as StateEntry<T>).added;
    this.#event ??= { type: after ? 'MODIFIED' : 'DELETED', object, previous: before.object };
    return this.#event;
  }

  /** The event of a watch that selects the object only after the change: ADDED. */
  get entered(): ChangeEvent<T> {
    if (!this.before) return this.event;
    this.#entered ??= { type: 'ADDED', object: this.object, previous: this.before.object };
    return this.#entered;
  }

  /** The event of a watch that selects the object only before the change: DELETED, with the old content and this version. */
  get left(): ChangeEvent<T> {
    if (!this.after || !this.before) return this.event;
    const previous = this.before.object;
    this.#left ??= { type: 'DELETED', object: withVersionOf(previous, this.object) as T, previous };
    return this.#left;
  }
}
