/** A queue in one array. `shift` is O(1) amortized, and what was taken is not kept alive. */
export class Deque<T> implements Iterable<T> {
  #items: (T | undefined)[] = [];
  #head: number = 0;

  get size(): number {
    return this.#items.length - this.#head;
  }

  push(item: T): void {
    this.#items.push(item);
  }

  /** The item at this place, from the oldest. */
  at(index: number): T | undefined {
    return this.#items[this.#head + index];
  }

  /** Removes and returns the oldest item. */
  shift(): T | undefined {
    const item = this.#items[this.#head];
    if (this.size === 0) return undefined;
    this.#items[this.#head++] = undefined;
    if (this.#head * 2 > this.#items.length) {
      this.#items.splice(0, this.#head);
      this.#head = 0;
    }
    return item;
  }

  *[Symbol.iterator](): Iterator<T> {
    for (let at = this.#head; at < this.#items.length; at++) yield this.#items[at] as T;
  }
}
