import { callable, invalid, wholeNumber } from '../watch/errors.ts';
import { known } from '../watch/options.ts';
import type { RunOptions, WorkContext, WorkFailure } from './options.ts';

/** The queue, as its workers use it. */
interface Queue<K> {
  readonly shuttingDown: boolean;
  done(key: K): void;
  addRateLimited(key: K): void;
  forget(key: K): void;
}

/** One call of `run`, and what of the queue is not public. */
interface Job<K> {
  readonly name: string;
  readonly concurrency: number;
  readonly work: Work<K>;
  readonly options: RunOptions<K>;
  /** The next key. Undefined when the queue is shut down, and nothing more comes of a drain. */
  next(signal: AbortSignal): Promise<K | undefined>;
  /** The number of this try. */
  attemptOf(key: K): number;
  /** Adds a key that is in work, with the priority that it has. */
  again(key: K): void;
  /** Takes back a key on which no work was begun. */
  putBack(key: K): void;
}

/** Reconciles one key. What it returns is awaited, and ignored. */
export type Work<K> = (key: K, context: WorkContext) => unknown;

/**
 * Works off a queue. Each of the workers is this loop:
 *
 *     get ---> undefined: shut down and empty -----------------------------------> end
 *      |                                                                            ^
 *     work --> succeeded --> forget ----------------------.                         |
 *      |                                                  v      aborted?  yes -----'
 *      '-----> failed -----> onError, addRateLimited --> done -----+
 *                                                         ^        no ---> get
 *                                                         |
 *      hold(promise) ---> settled, later: the worker goes on with another key meanwhile
 *
 * The signal is asked twice. While a worker waits in `get`, an abort takes its request back. And a key that was handed out in the
 * same turn is put back where it stood: it was asked for, and nobody else would run it.
 */
export async function runWorkers<K>(queue: Queue<K>, job: Job<K>): Promise<void> {
  const { signal, onError = reporter(job.name) } = known(job.options, ['signal', 'onError']);
  callable('onError', onError);
  if (!callable('work', job.work)) throw invalid('work', job.work, 'a function');
  if (wholeNumber('concurrency', job.concurrency, 1) > MAX_CONCURRENCY) {
    throw invalid('concurrency', job.concurrency, `a whole number <= ${MAX_CONCURRENCY}`);
  }
  const stopped = new AbortController();
  const stop = (): void => stopped.abort(signal?.reason);
  if (signal?.aborted) return;
  signal?.addEventListener('abort', stop, { once: true });
  const held = new Set<Promise<unknown>>();
  let broken: { readonly error: unknown } | undefined;
  const loop = async (): Promise<void> => {
    try {
      await workOff(queue, { ...job, onError, held, signal: stopped.signal });
    } catch (error) {
      broken ??= { error };
      stopped.abort(error);
    }
  };
  await Promise.all(Array.from({ length: job.concurrency }, loop));
  await Promise.all(held);
  signal?.removeEventListener('abort', stop);
  if (broken) throw broken.error;
}

const MAX_CONCURRENCY = 10_000;

interface Task<K> extends Job<K> {
  readonly onError: (error: unknown, failure: WorkFailure<K>) => void;
  readonly signal: AbortSignal;
  /** Of the keys that are in work without a worker. */
  readonly held: Set<Promise<unknown>>;
}

/** One worker. Rejects only with what `onError` or the rate limiter has thrown. */
async function workOff<K>(queue: Queue<K>, task: Task<K>): Promise<void> {
  const { signal } = task;
  while (!signal.aborted) {
    const key = await task.next(signal).catch(() => undefined); // it was aborted
    if (key === undefined) return;
    if (signal.aborted) task.putBack(key);
    else await attempt(queue, key, task);
  }
}

async function attempt<K>(queue: Queue<K>, key: K, task: Task<K>): Promise<void> {
  const { work, onError, signal } = task;
  const number = task.attemptOf(key);
  const holds: Promise<unknown>[] = [];
  const hold = (until: Promise<unknown>): void => void holds.push(until);
  try {
    try {
      await work(key, { signal, attempt: number, hold });
    } catch (error) {
      // What fails because it was told to stop is neither the key's fault nor news.
      const told = signal.aborted && error === signal.reason;
      if (!told) onError(error, { key, attempt: number, willRetry: !queue.shuttingDown });
      if (signal.aborted) task.again(key);
      else queue.addRateLimited(key);
      return;
    }
    queue.forget(key);
  } catch (error) {
    task.again(key);
    throw error;
  } finally {
    if (holds.length === 0) queue.done(key);
    else {
      const settled = Promise.allSettled(holds).then(() => {
        task.held.delete(settled);
        queue.done(key);
      });
      task.held.add(settled);
    }
  }
}

function reporter<K>(name: string): (error: unknown, failure: WorkFailure<K>) => void {
  return (error, { key, attempt: number }) => console.error(`work queue ${name}: attempt ${number} failed for`, key, error);
}
