import type { Clock } from '../../watch/clock.ts';
import { invalid } from '../../watch/errors.ts';

interface Timer {
  readonly at: number;
  readonly callback: () => void;
}

/** A clock that moves only when told to. Code that takes a `Clock` runs on it without delay, and in the same way every time. */
export class FakeClock implements Clock {
  private time: number;
  private readonly timers: Set<Timer> = new Set();

  /** Starts at `startMs`, 0 by default. */
  constructor(startMs: number = 0) {
    this.time = startMs;
  }

  /** The number of scheduled callbacks that have been neither called nor cancelled; 0 if nothing was left behind. */
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
   * Advances the clock by `ms` and calls the callbacks that fall due, including those scheduled in the meantime. They are called
   * in order of time and then of scheduling, each at its own time. Code that awaits promises they settle runs in a later turn.
   *
   * @throws {WatchError} INVALID_ARGUMENT for a negative or infinite span, or one that is not a number.
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
