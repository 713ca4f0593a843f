import { type Clock, systemClock } from '../watch/clock.ts';
import { checkOptions, invalid, requireMethod, wholeNumber } from '../watch/errors.ts';

/** Decides how long a key waits before it is tried again. One limiter belongs to one queue. Upstream: `RateLimiter`. */
export interface RateLimiter {
  /** The delay for this failure of the key, in milliseconds. Counts the failure. */
  when(key: unknown): number;
  /** Forgets the failures of a key. */
  forget(key: unknown): void;
  /** The failures of a key since it was last forgotten; 0 if the limiter counts none. */
  requeues(key: unknown): number;
}

/** Counts failures per key: an entry for each key that has failed and has not been forgotten. */
function perKey(delayMs: (failures: number) => number): RateLimiter {
  const counts = new Map<unknown, number>();
  const requeues = (key: unknown): number => counts.get(key) ?? 0;
  return {
    requeues,
    when(key) {
      const before = requeues(key);
      counts.set(key, before + 1);
      return delayMs(before);
    },
    forget: (key) => void counts.delete(key),
  };
}

/**
 * Doubles the delay of a key with each of its failures: `baseMs`, 2 * `baseMs`, 4 * `baseMs` and so on, up to `maxMs`. Defaults: 5
 * ms and 1,000 s. Upstream: `ItemExponentialFailureRateLimiter`.
 */
export function exponential(
  options: { readonly baseMs?: number | undefined; readonly maxMs?: number | undefined } = {},
): RateLimiter {
  const { baseMs = 5, maxMs = 1_000_000 } = checkOptions(options, ['baseMs', 'maxMs']);
  duration('baseMs', baseMs);
  duration('maxMs', maxMs); // may be less than baseMs: then it is the delay, as upstream
  return perKey((failures) => Math.min(maxMs, baseMs * 2 ** Math.min(failures, 1_023)));
}

/** The first `attempts` failures of a key wait `fastMs` each, all further ones `slowMs`. Upstream: `ItemFastSlowRateLimiter`. */
export function fastSlow(options: { readonly fastMs: number; readonly slowMs: number; readonly attempts: number }): RateLimiter {
  const { fastMs, slowMs, attempts } = checkOptions(options, ['fastMs', 'slowMs', 'attempts']);
  duration('fastMs', fastMs);
  duration('slowMs', slowMs);
  wholeNumber('attempts', attempts);
  return perKey((failures) => (failures < attempts ? fastMs : slowMs));
}

/**
 * A token bucket for all keys together: it holds up to `burst` tokens, and gains `perSecond` of them each second. Each failure
 * takes one, and waits until it is available. In any span of t seconds, at most `burst` + t * `perSecond` delays end. It does not
 * count failures per key. Defaults: 10 per second, a burst of 100. Upstream: `BucketRateLimiter`.
 */
export function bucket(
  options: {
    readonly perSecond?: number | undefined;
    readonly burst?: number | undefined;
    readonly clock?: Clock | undefined;
  } = {},
): RateLimiter {
  const { perSecond = 10, burst = 100, clock = systemClock } = checkOptions(options, ['perSecond', 'burst', 'clock']);
  if (!(perSecond > 0 && Number.isFinite(perSecond))) throw invalid('perSecond', perSecond, 'a finite number > 0');
  wholeNumber('burst', burst, 1);
  let tokens = burst; // below 0: promised to keys that wait
  let countedAtMs = clock.now();
  return {
    when() {
      const now = clock.now();
      tokens = Math.min(burst, tokens + (Math.max(0, now - countedAtMs) / 1000) * perSecond) - 1;
      countedAtMs = now;
      return Math.max(0, (-tokens / perSecond) * 1000);
    },
    forget() {},
    requeues: () => 0,
  };
}

/** The longest delay of several limiters. All of them count each failure. Upstream: `MaxOfRateLimiter`. */
export function maxOf(...limiters: readonly RateLimiter[]): RateLimiter {
  for (const limiter of limiters) requireMethod('limiter', limiter, 'when', 'a RateLimiter');
  return {
    when: (key) => Math.max(0, ...limiters.map((limiter) => limiter.when(key))),
    requeues: (key) => Math.max(0, ...limiters.map((limiter) => limiter.requeues(key))),
    forget: (key) => {
      for (const limiter of limiters) limiter.forget(key);
    },
  };
}

/** The delays of another limiter, but at most `maxMs`. Upstream: `WithMaxWaitRateLimiter`. */
export function maxWait(limiter: RateLimiter, maxMs: number): RateLimiter {
  duration('maxMs', maxMs);
  return { ...maxOf(limiter), when: (key) => Math.min(maxMs, limiter.when(key)) };
}

/**
 * The default of a queue, as in upstream's controllers: {@link exponential} from 5 ms to 1,000 s for each key, and for all keys
 * together a {@link bucket} of 10 per second with a burst of 100.
 */
export function defaultRateLimiter(options: { readonly clock?: Clock | undefined } = {}): RateLimiter {
  return maxOf(exponential(), bucket({ clock: checkOptions(options, ['clock']).clock }));
}

function duration(name: string, ms: number): void {
  if (!(ms >= 0 && Number.isFinite(ms))) throw invalid(name, ms, 'a finite number of milliseconds >= 0');
}
