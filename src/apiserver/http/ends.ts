/**
 * Ends things at their time. They are in a heap, the earliest on top, and one timer runs for that one: ten thousand watches that
 * end at ten thousand times cost one timer, and each of them a place in an array.
 */
import type { Clock } from '../../watch/clock.ts';

/** Something that ends at a time. */
export interface Expiring {
  /** By the clock; 0: never. */
  readonly endMs: number;
  /** Its place in the heap; -1: it is not in it. */
  heapAt: number;
  stop(): void;
}

export class Ends {
  readonly #clock: Clock;
  readonly #heap: Expiring[] = [];
  #cancel: (() => void) | undefined;
  #armedMs: number = Infinity;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The end of something that lasts this long from now; 0: never. In whole milliseconds, which take no extra memory. */
  after(timeoutMs: number): number {
    return timeoutMs > 0 ? Math.ceil(this.#clock.now() + timeoutMs) : 0;
  }

  /** Stops something at its time. */
  add(one: Expiring): void {
    if (one.endMs === 0) return;
    this.#up(one, this.#heap.length);
    if (one.endMs < this.#armedMs) this.#arm(one.endMs);
  }

  /** It has ended before its time. A timer that then finds nothing due is set for the next one. */
  remove(one: Expiring): void {
    const at = one.heapAt;
    if (at < 0) return;
    one.heapAt = -1;
    const last = this.#heap.pop() as Expiring;
    if (last !== one) {
      this.#up(last, at);
      if (last.heapAt === at) this.#down(last, at);
    }
    if (this.#heap.length === 0) this.#disarm();
  }

  /** Moves something towards the top, from a place that is free. */
  #up(one: Expiring, from: number): void {
    const heap = this.#heap;
    let at = from;
    while (at > 0) {
      const parent = heap[(at - 1) >> 1] as Expiring;
      if (parent.endMs <= one.endMs) break;
      heap[at] = parent;
      parent.heapAt = at;
      at = (at - 1) >> 1;
    }
    heap[at] = one;
    one.heapAt = at;
  }

  #down(one: Expiring, from: number): void {
    const heap = this.#heap;
    let at = from;
    for (;;) {
      let child = 2 * at + 1;
      const right = heap[child + 1];
      if (right !== undefined && right.endMs < (heap[child] as Expiring).endMs) child++;
      const next = heap[child];
      if (next === undefined || next.endMs >= one.endMs) break;
      heap[at] = next;
      next.heapAt = at;
      at = child;
    }
    heap[at] = one;
    one.heapAt = at;
  }

  #fire(): void {
    this.#disarm();
    const nowMs = this.#clock.now();
    for (let first = this.#heap[0]; first !== undefined; first = this.#heap[0]) {
      if (first.endMs > nowMs) {
        this.#arm(first.endMs);
        return;
      }
      this.remove(first);
      first.stop();
    }
  }

  #arm(atMs: number): void {
    this.#disarm();
    this.#armedMs = atMs;
    this.#cancel = this.#clock.schedule(Math.max(0, atMs - this.#clock.now()), () => this.#fire());
  }

  #disarm(): void {
    this.#cancel?.();
    this.#cancel = undefined;
    this.#armedMs = Infinity;
  }
}
