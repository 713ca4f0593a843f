import { whenAborted } from '../watch/abort.ts';
import { type Clock, gaveUp, listed, systemClock } from '../watch/clock.ts';
import { callable, checkOptions, invalid, type WatchError, wholeNumber } from '../watch/errors.ts';
import { Failures, oneLine, quietly } from '../watch/failures.ts';
import type { WorkQueueMetric } from './meter.ts';
import type { RateLimiter } from './rate-limiters.ts';

/** Options of a {@link WorkQueue}. */
export interface WorkQueueOptions<K> {
  /**
   * The delays of `addRateLimited`, and of failures in `run`; default {@link defaultRateLimiter}. If there is a `keyOf`, the
   * limiter gets its result.
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
   * the same object. If it is set, the object that was added last is handed out. It must always return the same result for a key.
   */
  readonly keyOf?: ((key: K) => unknown) | undefined;
  /**
   * How many different keys may be queued, delayed and being processed in total; default 1,000,000. Adding another one throws
   * OVERLOADED. This guards against an unbounded number of keys, such as a new object for each add. A key is in the queue at most
   * once, so the keys of a collection never exceed its size.
   */
  readonly maxKeys?: number | undefined;
  /** How long a key must wait to gain one level of priority, in milliseconds; default 1,000. */
  readonly agingMs?: number | undefined;
}

/** Options of `add`, `addAfter` and `addRateLimited`. */
export interface AddOptions {
  /**
   * A whole number from -1,000 to 1,000; higher ones are handed out first. Default 0; for `addRateLimited` of a key that is being
   * processed, the key's own. While a key is queued or delayed, the highest priority with which it was added counts.
   */
  readonly priority?: number | undefined;
}

/** What the work of {@link WorkQueue.run} gets in addition to the key. */
export interface WorkContext {
  /** Aborts with the signal of `run`. Pass it on to whatever the work waits for. */
  readonly signal: AbortSignal;
  /** 1 for the first try since the key was last forgotten (success also does that); 2 for the second, and so on. */
  readonly attempt: number;
  /**
   * Counts the key as being processed until a promise has settled, so that it does not run again before then. The worker
   * continues with other keys. `run` also waits for the promise, so pass the signal to whatever the promise waits for. Call it
   * before the work ends. If the promise rejects, `onError` gets the error, and the key is not retried for it.
   */
  readonly hold: (until: Promise<unknown>) => void;
}

/** A failure of the work, as `onError` gets it. */
export interface WorkFailure<K> {
  readonly key: K;
  readonly attempt: number;
  /** Whether the key will be retried. It is not while the queue shuts down, nor for a promise that was held. */
  readonly willRetry: boolean;
}

/** Options of {@link WorkQueue.run}. */
export interface RunOptions<K> {
  /** When it aborts, no further key is taken, and `run` resolves when the running work has ended. The queue stays open. */
  readonly signal?: AbortSignal | undefined;
  /**
   * How long to wait for running work after the signal has aborted, in milliseconds; default 0: until it has ended. After that,
   * `run` rejects with TIMEOUT, which names the keys. They stay in work until their work ends.
   */
  readonly timeoutMs?: number | undefined;
  /**
   * Called when work throws or rejects, before the key is retried, and when what it held rejects. If it throws, `run` ends with
   * that error. Default: `console.error`, once per kind.
   */
  readonly onError?: ((error: unknown, failure: WorkFailure<K>) => void) | undefined;
}

/** The queue, as its workers use it. */
interface Queue<K> {
  readonly size: number;
  readonly shuttingDown: boolean;
  done(key: K): void;
  addRateLimited(key: K): void;
  forget(key: K): void;
}

/** One call of `run`, and the parts of the queue that are not public. */
interface Job<K> {
  readonly name: string;
  readonly concurrency: number;
  readonly work: Work<K>;
  readonly options: RunOptions<K>;
  readonly clock: Clock;
  /** The next key. Undefined when the queue is shut down, and a drain has no more keys. */
  next(signal: AbortSignal): Promise<K | undefined>;
  /** The number of this try. */
  attemptOf(key: K): number;
  /** Adds a key that is in work, with the priority that it has. */
  again(key: K): void;
  /** Takes back a key whose work has not begun. */
  putBack(key: K): void;
}

/** Processes one key. Its result is awaited and ignored. */
export type Work<K> = (key: K, context: WorkContext) => unknown;

/**
 * Processes a queue. Each worker is this loop:
 *
 *     get ---> undefined: shut down and empty -----------------------------------> end
 *      |                                                                            ^
 *     work --> succeeded --> forget ----------------------.                         |
 *      |                                                  v      aborted?  yes -----'
 *      '-----> failed -----> onError, addRateLimited --> done -----+
 *                                                         ^        no ---> the event loop's turn, if that is due ---> get
 *                                                         |
 *      hold(promise) ---> settled, later: meanwhile, the worker goes on with another key
 *
 * The signal is checked twice. While a worker waits in `get`, an abort withdraws its request. And a key that was handed out in
 * the same turn is put back in its place, because nobody else would run it.
 */
export async function runWorkers<K>(queue: Queue<K>, job: Job<K>): Promise<void> {
  const failures = new Failures(`work queue ${job.name}`.trim(), job);
  const report = (error: unknown, { key, attempt: number }: WorkFailure<K>): void =>
    failures.failed('work', error, ` for ${oneLine(key)}, attempt ${number}`);
  const { signal, timeoutMs = 0, onError = report } = checkOptions(job.options, ['signal', 'timeoutMs', 'onError']);
  callable('onError', onError);
  wholeNumber('timeoutMs', timeoutMs);
  if (!callable('work', job.work)) throw invalid('work', job.work, 'a function');
  if (wholeNumber('concurrency', job.concurrency, 1) > MAX_CONCURRENCY) {
    throw invalid('concurrency', job.concurrency, `a whole number <= ${MAX_CONCURRENCY}`);
  }
  const running: RunningWork = new Map();
  const inWork = new Set<K>();
  let broken: { readonly error: unknown } | undefined;
  let giveUp: (error: WatchError) => void = () => {};
  let cancel: (() => void) | undefined;
  const late = (): void => giveUp(gaveUp(timeoutMs, `the work on ${listed(Array.from(inWork, oneLine))}`, broken?.error));
  const stop = (reason: unknown): void => {
    for (const controller of running.keys()) controller.abort(reason);
    if (timeoutMs > 0) cancel ??= job.clock.schedule(timeoutMs, late);
  };
  const leave = whenAborted(signal, stop);
  const fail = (error: unknown): void => {
    broken ??= { error };
    stop(error);
  };
  const task: Task<K> = {
    ...job,
    running,
    inWork,
    isOver: () => broken || signal?.aborted,
    // If it throws or rejects, the run ends with that error.
    onError: (error, failure) => quietly(() => onError(error, failure), fail),
  };
  const all = async (): Promise<void> => {
    do {
      await Promise.all(Array.from({ length: job.concurrency }, () => workOff(queue, task).catch(fail)));
      await Promise.all(running.values());
      // A key that was added while it was held is owed a run, even if all other workers have ended because of the shutdown.
    } while (!task.isOver() && queue.size > 0);
  };
  await new Promise<void>((resolve, reject) => {
    giveUp = reject;
    all().then(resolve, reject);
  }).finally(() => {
    cancel?.();
    leave();
  });
  if (broken) throw broken.error;
}

const MAX_CONCURRENCY = 10_000;

/**
 * One controller per worker, and one per key that is in work without a worker, with the promise of its end. They abort together.
 * One signal for all would make Node warn at the 11th listener.
 */
type RunningWork = Map<AbortController, Promise<unknown> | undefined>;

interface Task<K> extends Job<K> {
  readonly onError: (error: unknown, failure: WorkFailure<K>) => void;
  readonly running: RunningWork;
  /** The keys whose work has not ended. */
  readonly inWork: Set<K>;
  isOver(): unknown;
}

/** How long a worker may go on before everything else has its turn, in ms. */
const STRETCH_MS = 20;

/**
 * One worker. Rejects only with what the rate limiter threw.
 *
 * Work that waits for nothing outside the process, such as a controller of an in-process server, runs in promises alone. If it
 * always adds its key again, it never ends, and no timer, signal or probe would be served. So from time to time, a worker waits
 * for a timer. While the others run, no timer fires, so they all wait soon. With a custom clock, no worker waits: that clock
 * decides when things happen.
 */
async function workOff<K>(queue: Queue<K>, task: Task<K>): Promise<void> {
  const { clock, running } = task;
  let sinceMs = clock.now();
  let turn: AbortController | undefined;
  while (!task.isOver()) {
    // A new one after a key that is still held, which keeps its controller.
    if (!turn || running.get(turn)) turn = new AbortController();
    running.set(turn, undefined);
    const key = await task.next(turn.signal).catch(() => undefined); // it was aborted
    if (key === undefined) return;
    if (task.isOver()) task.putBack(key);
    else await attempt(queue, key, task, turn);
    if (clock.now() - sinceMs > STRETCH_MS && clock === systemClock) {
      await new Promise<void>((resolve) => clock.schedule(0, resolve));
      sinceMs = clock.now();
    }
  }
}

async function attempt<K>(queue: Queue<K>, key: K, task: Task<K>, turn: AbortController): Promise<void> {
  const { signal } = turn;
  const { work, onError, running, inWork } = task;
  const number = task.attemptOf(key);
  let held: Promise<unknown> | undefined;
  // What fails because it was told to stop is neither the key's fault nor news.
  const tell = (error: unknown, willRetry = false): void => {
    if (!signal.aborted || error !== signal.reason) onError(error, { key, attempt: number, willRetry });
  };
  const hold = (until: Promise<unknown>): void => {
    held = Promise.all([held, Promise.resolve(until).catch(tell)]);
  };
  inWork.add(key);
  try {
    try {
      await work(key, { signal, attempt: number, hold });
    } catch (error) {
      tell(error, !queue.shuttingDown);
      if (signal.aborted) task.again(key);
      else queue.addRateLimited(key);
      return;
    }
    queue.forget(key);
  } catch (error) {
    task.again(key);
    throw error;
  } finally {
    const done = (): void => {
      inWork.delete(key);
      queue.done(key);
      running.delete(turn);
    };
    if (held) running.set(turn, held.then(done));
    else done();
  }
}

/** Options of {@link parallelizeUntil}. */
export interface ParallelizeOptions {
  /** How many pieces are processed at the same time; at least 1. */
  readonly workers: number;
  /** How many pieces a worker takes at a time, one after the other; default 1. */
  readonly chunkSize?: number | undefined;
  /** When it aborts, no further chunk is started. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Processes the pieces 0 to `pieces - 1` with several workers, and resolves when everything that was started has ended. An abort
 * is not an error; some pieces were then not started. Upstream: `ParallelizeUntil`.
 *
 * @throws The first error of `work`. No further chunk is started then, but running ones are waited for. INVALID_ARGUMENT for an
 *   invalid number.
 */
export async function parallelizeUntil(
  pieces: number,
  work: (piece: number) => unknown,
  options: ParallelizeOptions,
): Promise<void> {
  const { workers, chunkSize = 1, signal } = checkOptions(options, ['workers', 'chunkSize', 'signal']);
  wholeNumber('workers', workers, 1);
  wholeNumber('chunkSize', chunkSize, 1);
  callable('work', work ?? null);
  const chunks = Math.ceil(wholeNumber('pieces', pieces) / chunkSize);
  let next = 0;
  let failure: { readonly error: unknown } | undefined;
  const loop = async (): Promise<void> => {
    while (next < chunks && !failure && !signal?.aborted) {
      const from = next++ * chunkSize;
      for (let piece = from; piece < Math.min(from + chunkSize, pieces) && !failure; piece++) await work(piece);
    }
  };
  const stop = (error: unknown): void => {
    failure ??= { error };
  };
  await Promise.all(Array.from({ length: Math.min(workers, chunks) }, () => loop().catch(stop)));
  if (failure) throw failure.error;
}
