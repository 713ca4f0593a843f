/**
 * What was under a key before a change, taken from a consumer that keeps the state: etcd need not read it for every watch and
 * every change, nor send it, and may no longer have it.
 *
 *     delivered, and taken by the consumer      delivered since its last wait     the next change
 *     [ previousOf(key) ]                       [ #since ]                        ^ what was before it?
 */
import type { KubernetesObject } from '../../cache/object.ts';
import { refused } from '../statuses.ts';
import { toText } from './key-bytes.ts';
import type { KeyValue } from './wire/messages.ts';

const decoder = new TextDecoder();
/** What invalid UTF-8 is decoded to, such as half a surrogate pair; see `key-bytes.ts`. */
const REPLACED = '\uFFFD';

export class PreviousObjects<T extends KubernetesObject> {
  readonly #previousOf: (key: string) => T | undefined;
  /** The number of bytes of the scope's prefix. */
  readonly #start: number;
  readonly #since: Map<string, T | undefined> = new Map();

  constructor(previousOf: (key: string) => T | undefined, prefix: Uint8Array) {
    this.#previousOf = previousOf;
    this.#start = prefix.length;
  }

  /**
   * The object before the change.
   *
   * @throws {WatchError} REFUSED with code 500 if the consumer does not have it, though it must.
   */
  get({ key, modRevision }: KeyValue): T {
    const text = this.#textOf(key);
    const object = this.#since.has(text) ? this.#since.get(text) : this.#previousOf(text);
    if (object !== undefined) return object;
    const shown = JSON.stringify(text);
    throw refused(500, 'InternalError', `previousOf has nothing under ${shown}, which changed at ${modRevision}`);
  }

  /** Notes a change that is delivered. */
  set({ key }: KeyValue, object: T | undefined): void {
    this.#since.set(this.#textOf(key), object);
  }

  /** The consumer has applied all that was delivered. */
  taken(): void {
    if (this.#since.size > 0) this.#since.clear();
  }

  #textOf(key: Uint8Array): string {
    const bytes = key.subarray(this.#start);
    const text = decoder.decode(bytes);
    return text.includes(REPLACED) ? toText(bytes) : text;
  }
}
