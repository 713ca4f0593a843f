import type { Clock } from '../watch/clock.ts';
import { Heap, type HeapNode } from './heap.ts';

/** A key that waits for its time. */
export interface Delayed extends HeapNode {
  dueAtMs: number;
  /** How many were delayed before it. */
  turn: number;
}

/** Longer delays overflow the timers of JavaScript, which then fire at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/**
 * What is delayed, by time, and the one timer for all of it: it is set for the first, and fires again if that is still not due.
 *
 *     heap   first --- due in 5 ms ---> timer
 *            others                       |
 *                                         v
 *                                   due(each) in order of time, and of arrival at one time
 */
export class Delays<D extends Delayed> {
  private readonly clock: Clock;
  private readonly due: (one: D) => void;
  private readonly heap: Heap<D> = new Heap((one, other) => {
    return one.dueAtMs < other.dueAtMs || (one.dueAtMs === other.dueAtMs && one.turn < other.turn);
  });
  private cancel: (() => void) | undefined;
  /** When the timer fires. */
  private setForMs: number = Number.POSITIVE_INFINITY;
  private turns: number = 0;

  constructor(clock: Clock, due: (one: D) => void) {
    this.clock = clock;
    this.due = due;
  }

  get size(): number {
    return this.heap.size;
  }

  /** Adds one, or moves one that is here already to an earlier time. A later time changes nothing. */
  add(one: D, delayMs: number): void {
    const dueAtMs = this.clock.now() + delayMs;
    if (one.place >= 0 && dueAtMs >= one.dueAtMs) return;
    one.dueAtMs = dueAtMs;
    one.turn = this.turns++;
    if (one.place >= 0) this.heap.moved(one);
    else this.heap.add(one);
    this.arm();
  }

  /** Removes one that is here. */
  remove(one: D): void {
    this.heap.remove(one);
    if (this.heap.size === 0) this.disarm();
  }

  /** Forgets all, and the timer. */
  clear(): void {
    this.heap.clear();
    this.disarm();
  }

  private disarm(): void {
    this.cancel?.();
    this.cancel = undefined;
    this.setForMs = Number.POSITIVE_INFINITY;
  }

  private arm(): void {
    const { first } = this.heap;
    if (!first || first.dueAtMs >= this.setForMs) return;
    this.disarm();
    const now = this.clock.now();
    const delayMs = Math.min(first.dueAtMs - now, MAX_TIMER_MS);
    this.setForMs = now + delayMs;
    this.cancel = this.clock.schedule(delayMs, () => this.fire());
  }

  private fire(): void {
    this.disarm();
    const now = this.clock.now();
    for (let { first } = this.heap; first && first.dueAtMs <= now; first = this.heap.first) {
      this.heap.remove(first);
      this.due(first);
    }
    this.arm();
  }
}
