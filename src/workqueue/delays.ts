import type { Clock } from '../watch/clock.ts';
import { Heap, type HeapNode } from './heap.ts';

/** Longer delays overflow the timers of JavaScript, which then fire at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/**
 * What is delayed, ordered by time, with one timer for all of it. The timer is set for the first, and again if that is not yet
 * due.
 *
 *     heap   first --- due in 5 ms ---> timer
 *            others                       |
 *                                         v
 *                                   due(each) in order of time, and of arrival if the times are equal
 */
export class Delays<D extends HeapNode> {
  readonly #clock: Clock;
  readonly #due: (one: D) => void;
  readonly #heap: Heap<D> = new Heap();
  #cancel: (() => void) | undefined;
  /** When the timer fires. */
  #setForMs: number = Infinity;

  constructor(clock: Clock, due: (one: D) => void) {
    this.#clock = clock;
    this.#due = due;
  }

  get size(): number {
    return this.#heap.nodes.length;
  }

  /** Adds one, or moves one that is already here to an earlier time. A later time changes nothing. */
  add(one: D, delayMs: number): void {
    const dueAtMs = this.#clock.now() + delayMs;
    if (one.place < 0) this.#heap.add(one, dueAtMs);
    else if (dueAtMs < one.rank) this.#heap.put(one, dueAtMs);
    this.#arm();
  }

  /** Removes one that is here. */
  remove(one: D): void {
    this.#heap.remove(one);
    if (this.size === 0) this.#disarm();
  }

  #disarm(): void {
    this.#cancel?.();
    this.#setForMs = Infinity;
  }

  #arm(): void {
    const [first] = this.#heap.nodes;
    if (!first || first.rank >= this.#setForMs) return;
    this.#disarm();
    const now = this.#clock.now();
    const delayMs = Math.min(first.rank - now, MAX_TIMER_MS);
    this.#setForMs = now + delayMs;
    this.#cancel = this.#clock.schedule(delayMs, () => this.#fire());
  }

  #fire(): void {
    this.#setForMs = Infinity;
    const now = this.#clock.now();
    for (let [first] = this.#heap.nodes; first && first.rank <= now; [first] = this.#heap.nodes) {
      this.#heap.remove(first);
      this.#due(first);
    }
    this.#arm();
  }
}
