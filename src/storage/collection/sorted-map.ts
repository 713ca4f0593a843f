/**
 * A map in the order of its keys, by UTF-16 code unit. A copy costs next to nothing: it shares all buckets, and a map copies a
 * shared bucket before it first writes into it.
 *
 *     map   [ a b c | d e f | g h i ]           copy: the row of buckets is copied, the buckets are shared
 *               \       |       /
 *     copy  [ a b c | d e f | g h i ]
 *
 *     map.set('e')  [ a b c | d E f | g h i ]   one bucket is new, the copy still has the old one
 *
 * Invariants
 * - No bucket is empty, and none has more than MOST keys. The keys of a bucket come before those of the next.
 * - A bucket is written only by the map that owns it; after a copy, neither map owns any bucket.
 */

const MOST = 128;

interface Bucket<V> {
  readonly owner: object;
  readonly keys: string[];
  readonly values: V[];
}

export class SortedMap<V> {
  #buckets: Bucket<V>[] = [];
  #owner: object = {};
  #size: number = 0;

  get size(): number {
    return this.#size;
  }

  get(key: string): V | undefined {
    const bucket = this.#buckets[this.#bucketOf(key)];
    if (bucket === undefined) return undefined;
    const at = rankOf(bucket.keys, key);
    return bucket.keys[at] === key ? bucket.values[at] : undefined;
  }

  set(key: string, value: V): void {
    if (this.#buckets.length === 0) this.#buckets.push({ owner: this.#owner, keys: [], values: [] });
    const index = this.#bucketOf(key);
    const bucket = this.#owned(index);
    const at = rankOf(bucket.keys, key);
    if (bucket.keys[at] === key) {
      bucket.values[at] = value;
      return;
    }
    bucket.keys.splice(at, 0, key);
    bucket.values.splice(at, 0, value);
    this.#size++;
    if (bucket.keys.length > MOST) this.#split(index, bucket);
  }

  delete(key: string): boolean {
    const index = this.#bucketOf(key);
    const found = this.#buckets[index];
    const at = found ? rankOf(found.keys, key) : 0;
    if (found === undefined || found.keys[at] !== key) return false;
    this.#size--;
    if (found.keys.length === 1) {
      this.#buckets.splice(index, 1);
      return true;
    }
    const bucket = this.#owned(index);
    bucket.keys.splice(at, 1);
    bucket.values.splice(at, 1);
    return true;
  }

  /** A map with the same content. Writes to one of the two do not show in the other. */
  copy(): SortedMap<V> {
    const copy = new SortedMap<V>();
    copy.#buckets = this.#buckets.slice();
    copy.#size = this.#size;
    this.#owner = {};
    return copy;
  }

  /** The values whose keys begin with a prefix, in order, from a key on. The map must not be written meanwhile. */
  *values(prefix: string = '', from: string = prefix): IterableIterator<V> {
    const start = from < prefix ? prefix : from;
    let index = this.#bucketOf(start);
    let at = rankOf(this.#buckets[index]?.keys ?? [], start);
    for (; index < this.#buckets.length; index++, at = 0) {
      const { keys, values } = this.#buckets[index] as Bucket<V>;
      for (; at < keys.length; at++) {
        if (!(keys[at] as string).startsWith(prefix)) return;
        yield values[at] as V;
      }
    }
  }

  /** How many keys from a key on begin with a prefix, which is empty or ends with `/`. */
  count(prefix: string, from: string): number {
    const end = prefix === '' ? this.#size : this.#rank(`${prefix.slice(0, -1)}0`); // the character after the slash
    return Math.max(0, end - this.#rank(from < prefix ? prefix : from));
  }

  /** The number of keys that come before a key. */
  #rank(key: string): number {
    const index = this.#bucketOf(key);
    let rank = rankOf(this.#buckets[index]?.keys ?? [], key);
    for (let before = 0; before < index; before++) rank += (this.#buckets[before] as Bucket<V>).keys.length;
    return rank;
  }

  /** The index of the bucket in which a key is, or would be. */
  #bucketOf(key: string): number {
    let low = 0;
    for (let high = this.#buckets.length - 1; low < high; ) {
      const middle = Math.ceil((low + high) / 2);
      if (((this.#buckets[middle] as Bucket<V>).keys[0] as string) <= key) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  #owned(index: number): Bucket<V> {
    const bucket = this.#buckets[index] as Bucket<V>;
    if (bucket.owner === this.#owner) return bucket;
    const own: Bucket<V> = { owner: this.#owner, keys: bucket.keys.slice(), values: bucket.values.slice() };
    this.#buckets[index] = own;
    return own;
  }

  /** Keys often come in order, so the first half keeps more: buckets that are never written again are nearly full. */
  #split(index: number, { owner, keys, values }: Bucket<V>): void {
    const at = Math.floor(MOST * 0.75);
    this.#buckets.splice(index + 1, 0, { owner, keys: keys.splice(at), values: values.splice(at) });
  }
}

/** The number of keys that come before a key. */
function rankOf(keys: readonly string[], key: string): number {
  let low = 0;
  for (let high = keys.length; low < high; ) {
    const middle = (low + high) >>> 1;
    if ((keys[middle] as string) < key) low = middle + 1;
    else high = middle;
  }
  return low;
}
