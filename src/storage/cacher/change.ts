/** An entry of a cacher's state, and a change in its log. */
import { withVersionOf } from '../../broadcast/filter.ts';
import type { KubernetesObject } from '../../cache/object.ts';
import { encoded } from '../encoded.ts';
import type { ChangeEvent } from '../storage.ts';

/** An object in the state. */
export class Entry<T extends KubernetesObject> {
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

  /** The event for watches that begin with the state: the same one for all of them. */
  get added(): ChangeEvent<T> {
    this.#added ??= { type: 'ADDED', object: this.object };
    return this.#added;
  }
}

/**
 * A change in the log, with every event that a watch may get for it. Each event is made once, so all watches share it, and the
 * bytes of its object are made once.
 */
export class Change<T extends KubernetesObject> {
  readonly key: string;
  /** The object after the change; that of a DELETED has its last content, and the version of the deletion. */
  readonly object: T;
  readonly before: Entry<T> | undefined;
  readonly isDeletion: boolean;
  readonly version: string;
  readonly atMs: number;
  /** The bytes that the log keeps alive because of it. */
  readonly bytes: number;
  #event: ChangeEvent<T> | undefined = undefined;
  #entered: ChangeEvent<T> | undefined = undefined;
  #left: ChangeEvent<T> | undefined = undefined;

  constructor(change: Pick<Change<T>, 'key' | 'object' | 'before' | 'isDeletion' | 'version' | 'atMs' | 'bytes'>) {
    this.key = change.key;
    this.object = change.object;
    this.before = change.before;
    this.isDeletion = change.isDeletion;
    this.version = change.version;
    this.atMs = change.atMs;
    this.bytes = change.bytes;
  }

  /** The event of a watch that selects the object both before and after the change, and of one that selects everything. */
  get event(): ChangeEvent<T> {
    const { before, object, isDeletion } = this;
    this.#event ??= before
      ? { type: isDeletion ? 'DELETED' : 'MODIFIED', object, previous: before.object }
      : { type: 'ADDED', object };
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
    if (this.isDeletion || !this.before) return this.event;
    const previous = this.before.object;
    this.#left ??= { type: 'DELETED', object: withVersionOf(previous, this.object) as T, previous };
    return this.#left;
  }
}

/** An object takes about twice the size of its JSON (measured: a Pod of 14.5 KB takes 29 KB), and its bytes are kept beside it. */
const EXPANSION = 3;

/** About how many bytes of memory an object takes. Makes its JSON if there is none yet. */
export function sizeOf(object: object): number {
  return encoded(object).byteLength * EXPANSION;
}
