import { encodedBytes } from '../encoded.ts';
import type { ChangeEvent } from '../storage.ts';

/** What every change costs besides its bytes: itself, its place in the history, its events. Rounded. */
const OVERHEAD_BYTES = 300;

/**
 * One write of one key. The changes of a key are a chain from the newest to the oldest that is kept, so that every kept state of
 * every key can be read; the changes of all keys are the history.
 *
 *     key a:  head ---> 9 MODIFIED ---> 7 ADDED ---> 4 DELETED ---> 2 ADDED
 *     key b:  head ---> 8 ADDED
 */
export class Change<T> {
  readonly revision: number;
  readonly key: string;
  /** What is there after this change; undefined: nothing. */
  readonly object: T | undefined;
  /** The change of the same key before this one, as far back as the history goes. */
  before: Change<T> | undefined;
  /** The time of the storage's clock, in ms. */
  readonly at: number;
  #event: ChangeEvent<T> | undefined;
  #entered: ChangeEvent<T> | undefined;
  #left: ChangeEvent<T> | undefined;

  constructor(change: { revision: number; key: string; object: T | undefined; before: Change<T> | undefined; at: number }) {
    this.revision = change.revision;
    this.key = change.key;
    this.object = change.object;
    this.before = change.before;
    this.at = change.at;
  }

  /** What was there before this change. */
  get previous(): T | undefined {
    return this.before?.object;
  }

  /**
   * What this change costs the history, which keeps the object before it. A deletion shows that object again, with its own
   * version.
   */
  get bytes(): number {
    const { previous } = this;
    const bytes = previous === undefined ? 0 : (encodedBytes(previous as object) ?? 0);
    return costOf(this.key, { bytes, isDeletion: this.object === undefined });
  }

  /** The event for watches that select everything. Each of these events is made once, so all watches share it and its bytes. */
  get event(): ChangeEvent<T> {
    const { object, previous } = this;
    if (object === undefined) return this.left;
    this.#event ??= previous === undefined ? { type: 'ADDED', object } : { type: 'MODIFIED', object, previous };
    return this.#event;
  }

  /** The event for watches that did not select the object before the change. */
  get entered(): ChangeEvent<T> {
    const { object, previous } = this;
    if (previous === undefined) return this.event;
    this.#entered ??= { type: 'ADDED', object: object as T, previous };
    return this.#entered;
  }

  /** The event for watches that no longer select the object: its last content, at the version of this change. */
  get left(): ChangeEvent<T> {
    const previous = this.previous as T;
    this.#left ??= { type: 'DELETED', object: atRevision(previous, this.revision), previous };
    return this.#left;
  }
}

/** The same content at another version. */
function atRevision<T>(object: T, revision: number): T {
  const { metadata } = object as { metadata?: object };
  return { ...object, metadata: { ...metadata, resourceVersion: `${revision}` } };
}

/** What a change costs the history if the object before it has so many bytes. */
export function costOf(key: string, { bytes, isDeletion }: { readonly bytes: number; readonly isDeletion: boolean }): number {
  return OVERHEAD_BYTES + 2 * key.length + (isDeletion ? 2 : 1) * bytes;
}
