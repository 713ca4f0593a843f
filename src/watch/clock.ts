import { whenAborted } from './abort.ts';
import { checkOptions, WatchError } from './errors.ts';

/** A source of time. Everything that waits takes a clock, so tests can control time. */
export interface Clock {
  /** Milliseconds since some fixed point. Never goes backwards. */
  now(): number;
  /**
   * Calls `callback` once after `delayMs`, which may be infinite, or longer than a timer of the host (2^31 - 1 ms, about 24
   * days). Returns a function that cancels the call.
   */
  schedule(delayMs: number, callback: () => void): () => void;
}

/** The host's clock. Overdue calls run as soon as possible. */
export const systemClock: Clock = {
  now: () => performance.now(),
  schedule: wait,
};

type Timer = ReturnType<typeof setTimeout> & { unref?(): void };

/** Waits in parts of a timer's maximum length, beyond which it would fire immediately. Node warns of a negative delay. */
function wait(leftMs: number, callback: () => void, isUpkeep?: true): () => void {
  let timer: Timer;
  const next = (): void => {
    timer = setTimeout(leftMs > MAX_TIMER_MS ? next : callback, Math.max(0, Math.min(leftMs, MAX_TIMER_MS)));
    leftMs -= MAX_TIMER_MS;
    if (isUpkeep) timer.unref?.();
  };
  next();
  return () => clearTimeout(timer);
}

const MAX_TIMER_MS = 2 ** 31 - 1;

/**
 * The clock for upkeep that nobody waits for. If it is the host's, its timers do not keep the process alive, so a program that
 * forgets to close something idle still ends.
 */
export function upkeepClock(clock: Clock): Clock {
  if (clock !== systemClock) return clock;
  return { now: clock.now, schedule: (delayMs, callback) => wait(delayMs, callback, true) };
}

interface TimeLimit {
  /** 0: none. */
  readonly limitMs: number;
  readonly clock: Clock;
  /** What the wait is for, for the error. */
  readonly what: () => string;
}

/** Settles like the promise, but rejects with TIMEOUT if that takes too long, and then ignores the promise. */
export function within<T>(promise: Promise<T>, { limitMs, clock, what }: TimeLimit): Promise<T> {
  if (limitMs === 0) return promise;
  return new Promise((resolve, reject) => {
    const cancel = clock.schedule(limitMs, () => reject(gaveUp(limitMs, what())));
    promise.then(resolve, reject).finally(cancel);
  });
}

/** The error of a wait that took too long. */
export function gaveUp(limit: number, what: string, cause?: unknown): WatchError {
  return new WatchError('TIMEOUT', `gave up after ${limit} ms on ${what}`, { limit, cause });
}

/** Names a few of many. */
export function listed(names: Iterable<string>): string {
  const all = [...names];
  const more = all.length - MAX_NAMES;
  return all.slice(0, MAX_NAMES).join(', ') + (more > 0 ? ` and ${more} more` : '');
}

const MAX_NAMES = 5;

/** Resolves after `delayMs`, or rejects with the signal's reason when it aborts. Leaves no timer and no listener behind. */
export function sleep(
  delayMs: number,
  options: { clock?: Clock | undefined; signal?: AbortSignal | undefined } = {},
): Promise<void> {
  const { clock = systemClock, signal } = checkOptions(options, ['clock', 'signal']);
  return new Promise((resolve, reject) => {
    if (signal?.aborted) {
      reject(signal.reason);
      return;
    }
    const cancel = clock.schedule(delayMs, () => {
      leave();
      resolve();
    });
    const leave = whenAborted(signal, (reason) => {
      cancel();
      reject(reason);
    });
  });
}
