import type { Clock } from '../watch/clock.ts';
import { invalid } from '../watch/errors.ts';

interface Timer {
  readonly at: number;
  readonly callback: () => void;
}

/** A clock that stands still until told otherwise: whatever takes a `Clock` runs in no time, and the same way every time. */
export class FakeClock implements Clock {
  private time: number;
  private readonly timers: Set<Timer> = new Set();

  /** Starts at `startMs`, 0 by default. */
  constructor(startMs: number = 0) {
    this.time = startMs;
  }

  /** How many callbacks are scheduled and neither called nor cancelled: 0 after an end that left nothing behind. */
  get pending(): number {
    return this.timers.size;
  }

  now(): number {
    return this.time;
  }

  schedule(delayMs: number, callback: () => void): () => void {
    const timer: Timer = { at: this.time + Math.max(0, delayMs), callback };
    this.timers.add(timer);
    return () => void this.timers.delete(timer);
  }

  /**
   * Moves on by `ms`, calling what falls due on the way, in order of time and then of scheduling, each at its own time; also
   * what those calls schedule within the span. Promises that they settle are seen by their waiters in a later turn.
   *
   * @throws {WatchError} INVALID_ARGUMENT for a negative span, or one that is not a number.
   */
  advance(ms: number): void {
    if (!(ms >= 0 && ms < Number.POSITIVE_INFINITY)) throw invalid('ms', ms, 'a number of milliseconds >= 0');
    const end = this.time + ms;
    for (let timer = this.firstUntil(end); timer !== undefined; timer = this.firstUntil(end)) {
      this.timers.delete(timer);
      this.time = Math.max(this.time, timer.at);
      timer.callback();
    }
    this.time = Math.max(this.time, end);
  }

  private firstUntil(end: number): Timer | undefined {
    let first: Timer | undefined;
    for (const timer of this.timers) {
      if (timer.at <= end && (first === undefined || timer.at < first.at)) first = timer;
    }
    return first;
  }
}
