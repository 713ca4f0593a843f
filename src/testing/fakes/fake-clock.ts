import type { Clock } from '../../watch/clock.ts';
import { invalid } from '../../watch/errors.ts';
import { nextTurn } from '../../watch/turn.ts';

interface Timer {
  readonly at: number;
  readonly callback: () => void;
}

/** A clock that moves only when told to. Code that takes a `Clock` runs on it without delay, and in the same way every time. */
export class FakeClock implements Clock {
  private time: number;
  private readonly timers: Set<Timer> = new Set();

  /**
   * Starts at `startMs`, 0 by default.
   *
   * @throws {WatchError} INVALID_ARGUMENT for anything but a finite number.
   */
  constructor(startMs: number = 0) {
    if (!Number.isFinite(startMs)) throw invalid('startMs', startMs, 'a finite number of milliseconds');
    this.time = startMs;
  }

  /** The number of scheduled callbacks that have been neither called nor cancelled; 0 if nothing was left behind. */
  get pending(): number {
    return this.timers.size;
  }

  /** The time of the callback that falls due next; undefined if there is none. */
  get nextMs(): number | undefined {
    return this.firstUntil(Number.POSITIVE_INFINITY)?.at;
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
   * in order of time and then of scheduling, each at its own time. Code that awaits promises they settle runs in a later turn: see
   * {@link advanceAsync}.
   *
   * @throws {WatchError} INVALID_ARGUMENT for a negative or infinite span, or one that is not a number.
   */
  advance(ms: number): void {
    const end = this.endOf(ms);
    while (this.callFirst(end));
    this.time = Math.max(this.time, end);
  }

  /**
   * Like `advance`, but before and after each callback it lets the event loop turn, so that code that awaits something runs,
   * and may schedule more for the same span. Resolves when all of that has happened. Several calls take turns.
   *
   * @throws {WatchError} (rejects) INVALID_ARGUMENT as for `advance`; whatever a callback throws.
   */
  async advanceAsync(ms: number): Promise<void> {
    const end = this.endOf(ms);
    const turn = (): Promise<void> => new Promise(nextTurn);
    await turn();
    while (this.callFirst(end)) await turn();
    this.time = Math.max(this.time, end);
    await turn();
  }

  private endOf(ms: number): number {
    if (typeof ms !== 'number' || !(ms >= 0 && ms < Number.POSITIVE_INFINITY))
      throw invalid('ms', ms, 'a number of milliseconds >= 0');
    return this.time + ms;
  }

  /** Calls the callback that is due first. Returns whether there was one. */
  private callFirst(end: number): boolean {
    const timer = this.firstUntil(end);
    if (timer === undefined) return false;
    this.timers.delete(timer);
    this.time = Math.max(this.time, timer.at);
    timer.callback();
    return true;
  }

  private firstUntil(end: number): Timer | undefined {
    let first: Timer | undefined;
    for (const timer of this.timers) {
      if (timer.at <= end && (first === undefined || timer.at < first.at)) first = timer;
    }
    return first;
  }
}

/** Counts the abort listeners on a signal, from now on. It replaces two methods of the signal, so use it in tests only. */
export class ListenerCount {
  private readonly standing: Set<unknown> = new Set();

  constructor(signal: AbortSignal) {
    const { addEventListener, removeEventListener } = signal;
    signal.addEventListener = (type: string, listener: EventListener, options?: AddEventListenerOptions): void => {
      if (type === 'abort') this.standing.add(listener);
      addEventListener.call(signal, type, listener, options);
    };
    signal.removeEventListener = (type: string, listener: EventListener): void => {
      if (type === 'abort') this.standing.delete(listener);
      removeEventListener.call(signal, type, listener);
    };
  }

  /** Number of listeners. One with `once` counts until it is removed explicitly. */
  get count(): number {
    return this.standing.size;
  }
}
