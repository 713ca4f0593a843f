/**
 * Objects that were written or delivered a moment ago, by their revision. A write comes back in a watch, and what a watch has
 * delivered is what was there before the next change: neither has to be decoded a second time, and a cache shares the bytes of
 * the answer to the write.
 *
 *     update ---> etcd ---> answer ---> object at 7 ----.
 *                  '------> watch: 7 { ... } -----------+---> the same object
 *
 * Nothing is taken on trust: the bytes must be those that etcd sends. Another etcd, or one that was started with other data, may
 * have something else at a revision.
 */
import { encoded, encodedBytes } from '../encoded.ts';
import { spliceOf } from '../stored.ts';
import type { KeyValue } from './wire/messages.ts';

/** The limit for the total size of the objects' JSON. */
const MAX_BYTES = 4_194_304;

export class RecentObjects {
  readonly #objects: Map<bigint, object> = new Map();
  #bytes: number = 0;

  /** Keeps an object whose bytes have been made, as long as there is room for it and for what comes after it. */
  add(revision: bigint, object: object): void {
    const bytes = encodedBytes(object);
    if (bytes === undefined || this.#objects.has(revision)) return;
    this.#objects.set(revision, object);
    this.#bytes += bytes;
    for (const [oldest, each] of this.#objects) {
      if (this.#bytes <= MAX_BYTES) return;
      this.#objects.delete(oldest);
      this.#bytes -= encodedBytes(each) ?? 0;
    }
  }

  /** The object that a value contains, if it is known. */
  find(kv: KeyValue): object | undefined {
    const object = this.#objects.get(kv.modRevision);
    return object !== undefined && isEncodingOf(encoded(object), kv) ? object : undefined;
  }

  clear(): void {
    this.#objects.clear();
    this.#bytes = 0;
  }
}

/** Whether these are the bytes that this value gets at its revision. */
function isEncodingOf(bytes: Uint8Array, { value, modRevision }: KeyValue): boolean {
  const { head, start } = spliceOf(value, `${modRevision}`);
  const { length } = start;
  if (bytes.length - head.length !== value.length - length) return false;
  if (Buffer.compare(value.subarray(0, length), start) !== 0) return false;
  return Buffer.compare(bytes.subarray(head.length), value.subarray(length)) === 0;
}
