import type { Clock } from '../watch/clock.ts';
import type { WorkQueueMetric } from './meter.ts';
import type { RateLimiter } from './rate-limiters.ts';

/** Options of a {@link WorkQueue}. */
export interface WorkQueueOptions<K> {
  /**
   * The delays of `addRateLimited`, and of failures in `run`; default {@link defaultRateLimiter}. With `keyOf`, it gets the
   * result of that.
   */
  readonly rateLimiter?: RateLimiter | undefined;
  /** The queue's name in metrics and reports; default empty. */
  readonly name?: string | undefined;
  /** Default: the host's clock. */
  readonly clock?: Clock | undefined;
  /** Called with each measurement, in a microtask; see {@link WorkQueueMetricName}. Without it, nothing is measured. */
  readonly onMetric?: ((metric: WorkQueueMetric) => void) | undefined;
  /**
   * What makes two keys the same. Default: the key itself, as in a `Map`: strings and numbers by value, objects only if they are
   * the same object. With it, the object that was added last is the one that is handed out. Must always return the same result
   * for a key.
   */
  readonly keyOf?: ((key: K) => unknown) | undefined;
  /**
   * How many different keys may be queued, delayed and being processed in total; default 1,000,000. Adding another one throws
   * OVERLOADED. This guards against an endless number of keys, such as a new object for each add. A key is in the queue at most
   * once, so if the keys are those of a collection, its size is the limit.
   */
  readonly maxKeys?: number | undefined;
  /** How long a key must wait to gain one level of priority, in milliseconds; default 1,000. */
  readonly agingMs?: number | undefined;
}

/** Options of `add`, `addAfter` and `addRateLimited`. */
export interface AddOptions {
  /**
   * A whole number from -1,000 to 1,000; higher ones are handed out first. Default 0; for `addRateLimited` of a key that is being
   * processed, the key's own. While a key is queued or delayed, the highest priority that it was added with counts.
   */
  readonly priority?: number | undefined;
}

/** What the work of {@link WorkQueue.run} gets besides the key. */
export interface WorkContext {
  /** Aborts with the signal of `run`. Pass it on to whatever the work waits for. */
  readonly signal: AbortSignal;
  /** 1 for the first try since the key was last forgotten (success also does that); 2 for the second, and so on. */
  readonly attempt: number;
  /**
   * Counts the key as being processed until a promise has settled, so that it does not run again before. The worker continues
   * with other keys. `run` also waits for the promise, so pass the signal to whatever the promise waits for. Call it before the
   * work ends.
   */
  readonly hold: (until: Promise<unknown>) => void;
}

/** A failure of the work, as `onError` gets it. */
export interface WorkFailure<K> {
  readonly key: K;
  readonly attempt: number;
  /** Whether the key will be retried. It is not while the queue shuts down. */
  readonly willRetry: boolean;
}

/** Options of {@link WorkQueue.run}. */
export interface RunOptions<K> {
  /** When it aborts, no further key is taken, and `run` resolves when the running work has ended. The queue stays open. */
  readonly signal?: AbortSignal | undefined;
  /**
   * How long to wait for running work after the signal has aborted, in milliseconds; default 0: until it has ended. Then `run`
   * rejects with TIMEOUT, which names the keys. They stay in work until their work ends.
   */
  readonly timeoutMs?: number | undefined;
  /**
   * Called when work throws or rejects, before the key is retried. If it throws, `run` ends with that error. Default:
   * `console.error`, once per kind.
   */
  readonly onError?: ((error: unknown, failure: WorkFailure<K>) => void) | undefined;
}
