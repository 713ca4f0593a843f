/** What a {@link Sorted} holds. */
export interface Keyed {
  readonly key: string;
}

/** The largest number of entries of a bucket. Measured with 100,000 keys: 512 to 2,048 are equally fast, one array is not. */
const MAX_BUCKET = 1_024;

/**
 * Entries in the order of their keys, by UTF-16 code unit: buckets that are each sorted, and so are their first keys.
 *
 *     [a c e g] [k m p] [r s t x]        an insertion moves a part of one bucket; a full bucket is cut in two
 *
 * Invariants
 * - No bucket is empty. No key is there twice.
 */
export class Sorted<E extends Keyed> {
  readonly #buckets: E[][] = [];
  #size: number = 0;

  get size(): number {
    return this.#size;
  }

  /** Adds an entry whose key is not there. */
  add(entry: E): void {
    this.#size++;
    const at = Math.max(0, this.#bucketOf(entry.key));
    const bucket = this.#buckets[at];
    if (!bucket) {
      this.#buckets.push([entry]);
      return;
    }
    bucket.splice(lowerBound(bucket, entry.key), 0, entry);
    if (bucket.length > MAX_BUCKET) this.#buckets.splice(at + 1, 0, bucket.splice(cut(bucket, entry)));
  }

  /** Removes the entry with a key; returns it, or undefined if there is none. */
  delete(key: string): E | undefined {
    const at = this.#bucketOf(key);
    const bucket = this.#buckets[at];
    if (!bucket) return undefined;
    const place = lowerBound(bucket, key);
    const entry = bucket[place];
    if (entry?.key !== key) return undefined;
    bucket.splice(place, 1);
    if (bucket.length === 0) this.#buckets.splice(at, 1);
    this.#size--;
    return entry;
  }

  /** The entry with the smallest key. */
  get first(): E | undefined {
    return this.#buckets[0]?.[0];
  }

  /** Shows the entries from a key on, in order, until `visit` returns false. They must not change meanwhile. */
  scan(from: string, visit: (entry: E) => boolean): void {
    let at = Math.max(0, this.#bucketOf(from));
    let place = this.#buckets[at] ? lowerBound(this.#buckets[at] as E[], from) : 0;
    for (let bucket = this.#buckets[at]; bucket; bucket = this.#buckets[++at]) {
      for (; place < bucket.length; place++) if (!visit(bucket[place] as E)) return;
      place = 0;
    }
  }

  /** The last bucket whose first key is not greater; -1 if there is none. */
  #bucketOf(key: string): number {
    let low = 0;
    let high = this.#buckets.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (((this.#buckets[middle] as E[])[0] as E).key <= key) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  }
}

/** Where a full bucket is cut: in the middle, or before its last entry if that is new: keys often come in order. */
function cut<E extends Keyed>(bucket: readonly E[], added: E): number {
  return bucket.at(-1) === added ? bucket.length - 1 : bucket.length >>> 1;
}

/** The place of the first entry whose key is not less. */
function lowerBound<E extends Keyed>(bucket: readonly E[], key: string): number {
  let low = 0;
  let high = bucket.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((bucket[middle] as E).key < key) low = middle + 1;
    else high = middle;
  }
  return low;
}
