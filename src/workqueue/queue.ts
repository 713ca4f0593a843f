import { whenAborted } from '../watch/abort.ts';
import { type Clock, systemClock } from '../watch/clock.ts';
import { callable, checkOptions, checkText, invalid, requireMethod, wholeNumber } from '../watch/errors.ts';
import { Meter } from './meter.ts';
import { defaultRateLimiter, type RateLimiter } from './rate-limiters.ts';
import { type AddOptions, type RunOptions, runWorkers, type Work, type WorkQueueOptions } from './run.ts';
import { QueueState } from './state.ts';

/** A pending `get`. A patient one, made by `run`, stays pending during a drain: a key in work may have to run once more. */
interface Getter<K> {
  readonly settle: (key: K | undefined) => void;
  readonly patient: boolean;
}

/**
 * A queue of keys to process. It holds no events, only the keys of things that need attention: adding a key that is already
 * queued has no effect, and adding one that is being processed leads to exactly one more run afterwards. So a burst of changes to
 * one thing costs one or two runs, two workers never process the same key at once, and no change is missed. Upstream: `workqueue`
 * of client-go.
 *
 *     add ------------> .-------.
 *                       | state | ---> get, for await, run ---> done
 *     addAfter -------> '-------'               ^
 *                           ^                   | while there is nothing, a `get` waits here: getters
 *     addRateLimited        |                   | while there is something, a `drain` waits: drains
 *       '--> rate limiter --'
 *
 * Guarantee **Serial**: no key is processed by two workers at once; every add before shutdown is followed by a run that starts
 * after it.
 *
 * Invariant: while a `get` waits, nothing is queued, so a later `get` cannot overtake it. No step contains an `await` between
 * reading and writing.
 *
 * Shutdown: after `shutDown`, further adds are ignored and delayed keys are dropped. Queued keys are still handed out; then every
 * `get` resolves with undefined. `drain` does the same, and waits until no key is queued or being processed. Neither leaves a
 * timer behind.
 *
 * Bounds: an entry per key that is queued, delayed or being processed, at most `maxKeys`; a count per key that has failed and has
 * not been forgotten.
 */
export class WorkQueue<K> implements AsyncIterable<K> {
  readonly #own: { readonly name: string; readonly clock: Clock };
  readonly #limiter: RateLimiter;
  readonly #meter: Meter | undefined;
  readonly #state: QueueState<K>;
  readonly #failures: Map<unknown, number> = new Map();
  readonly #getters: Set<Getter<K>> = new Set();
  readonly #drains: Set<() => void> = new Set();
  #ending: boolean = false;

  /** @throws {WatchError} INVALID_ARGUMENT for an option of the wrong kind. */
  constructor(options: WorkQueueOptions<K> = {}) {
    const {
      name = '',
      clock = systemClock,
      onMetric,
      keyOf,
      maxKeys = 1_000_000,
      agingMs = 1_000,
    } = checkOptions(options, OPTIONS);
    this.#own = { name: checkText('name', name), clock };
    this.#limiter = requireMethod('rateLimiter', options.rateLimiter ?? defaultRateLimiter({ clock }), 'when', 'a RateLimiter');
    callable('onMetric', onMetric);
    this.#meter = onMetric && new Meter({ ...this.#own, onMetric });
    this.#state = new QueueState({
      ...this.#own,
      keyOf: callable('keyOf', keyOf),
      maxKeys: wholeNumber('maxKeys', maxKeys, 1),
      agingMs: wholeNumber('agingMs', agingMs, 1),
      meter: this.#meter,
      onReady: () => this.#serve(),
    });
  }

  /** The number of queued keys, without those being processed and those that are delayed. */
  get size(): number {
    return this.#state.size;
  }

  /** The number of keys that were handed out and are not done: those being processed. */
  get inWork(): number {
    return this.#state.working;
  }

  /** The number of delayed keys. */
  get delayed(): number {
    return this.#state.delayed;
  }

  /** The clock of its delays. */
  get clock(): Clock {
    return this.#own.clock;
  }

  /** Whether `shutDown` or `drain` was called. */
  get shuttingDown(): boolean {
    return this.#ending;
  }

  /**
   * Requests a run of this key. No effect if it is already queued; if it is being processed, it is queued again when that is
   * done. Ignored after `shutDown` and `drain`.
   *
   * @throws {WatchError} OVERLOADED with `limit` if the queue holds `maxKeys` other keys. INVALID_ARGUMENT if the key is
   * undefined.
   */
  add(key: K, options?: AddOptions): void {
    const priority = priorityOf(options);
    if (this.#ending) return;
    this.#state.mark(this.#state.entry(key), priority ?? 0);
    this.#serve();
  }

  /**
   * Requests a run of this key after a delay; immediately if that is 0 or less. Of several delays, the one that ends first
   * counts, even if the key is added in between. Ignored after `shutDown` and `drain`, which also drop delayed keys.
   *
   * @throws {WatchError} As `add`. INVALID_ARGUMENT for a delay that is not a finite number.
   */
  addAfter(key: K, delayMs: number, options?: AddOptions): void {
    if (!Number.isFinite(delayMs)) throw invalid('delayMs', delayMs, 'a finite number of milliseconds');
    const priority = priorityOf(options) ?? 0;
    if (this.#ending) return;
    const entry = this.#state.entry(key);
    this.#meter?.retried();
    if (delayMs > 0) this.#state.delay(entry, delayMs, priority);
    else this.#state.mark(entry, priority);
    this.#serve();
  }

  /** Requests a run of this key after the delay that the rate limiter returns. This counts as a failure of the key. */
  addRateLimited(key: K, options?: AddOptions): void {
    if (this.#ending) return;
    const id = this.#state.idOf(key);
    const entry = this.#state.find(key);
    const priority = priorityOf(options) ?? (entry?.working ? entry.priority : 0);
    if (!entry) this.#state.checkRoom(); // before the limiter counts a failure that nobody would forget
    this.addAfter(key, this.#limiter.when(id), { priority });
    this.#failures.set(id, (this.#failures.get(id) ?? 0) + 1);
  }

  /** Removes a key from the delayed ones. Returns whether it was delayed. It may still be queued, or being processed. */
  cancel(key: K): boolean {
    return this.#state.cancel(key);
  }

  /** Forgets the failures of a key, so that its next delay is the shortest again. A delayed key stays delayed. */
  forget(key: K): void {
    const id = this.#state.idOf(key);
    this.#failures.delete(id);
    this.#limiter.forget(id);
  }

  /** The failures of a key since it was last forgotten, as the rate limiter counts them. */
  requeues(key: K): number {
    return this.#limiter.requeues(this.#state.idOf(key));
  }

  /**
   * Ends the processing of a key that `get` returned. Must be called once for each, or the key is never handed out again. If the
   * key was added in the meantime, it is queued now. No effect for a key that is not being processed.
   */
  done(key: K): void {
    this.#state.done(key);
    this.#serve();
  }

  /**
   * Takes the next key, and waits for one if there is none. Undefined: the queue was shut down, and is empty. Several waiting
   * calls are served in order.
   *
   * @throws The signal's reason, if it aborts while this waits. No key is lost.
   */
  get(options: { readonly signal?: AbortSignal | undefined } = {}): Promise<K | undefined> {
    return this.#next(checkOptions(options, ['signal']).signal, false);
  }

  #next(signal: AbortSignal | undefined, patient: boolean): Promise<K | undefined> {
    if (signal?.aborted) return Promise.reject(signal.reason);
    const entry = this.#state.take();
    if (entry || this.#isOverFor(patient)) return Promise.resolve(entry?.key);
    return new Promise((resolve, reject) => {
      const settle = (key: K | undefined): void => {
        leave();
        resolve(key);
      };
      const getter: Getter<K> = { settle, patient };
      this.#getters.add(getter);
      const leave = whenAborted(signal, (reason) => {
        this.#getters.delete(getter);
        reject(reason);
      });
    });
  }

  /** Iterates over what `get` returns, until the queue is shut down and empty. The loop calls `done` for each key. */
  [Symbol.asyncIterator](): KeyIterator<K> {
    return iterate((signal) => this.get({ signal }));
  }

  /**
   * Processes the keys, up to `concurrency` at a time, until the queue is shut down and empty, or the signal aborts.
   *
   * - Work that succeeds: the failures of the key are forgotten.
   * - Work that throws or rejects: `onError` is called, and the key is retried after the delay that the rate limiter returns.
   * - In both cases the key is done. If it was added in the meantime, it runs again.
   *
   * When the signal aborts, no further key is taken, and this resolves once the running work has ended. If that work fails, its
   * key is immediately queued again, for another `run`. Several runs may share a queue.
   *
   * @throws {WatchError} INVALID_ARGUMENT for a concurrency that is not a whole number from 1 to 10,000. If `onError` or the rate
   *   limiter throws, the run ends with that error after the running work; no key is lost. TIMEOUT, see `timeoutMs`.
   */
  run(concurrency: number, work: Work<K>, options: RunOptions<K> = {}): Promise<void> {
    return runWorkers(this, {
      ...this.#own,
      concurrency,
      work,
      options,
      next: (signal) => this.#next(signal, true),
      attemptOf: (key) => (this.#failures.get(this.#state.idOf(key)) ?? 0) + 1,
      again: (key) => this.add(key, { priority: this.#state.entry(key).priority }),
      putBack: (key) => {
        this.#state.putBack(key);
        this.#serve();
      },
    });
  }

  /**
   * Ends the queue. Further adds are ignored, and delayed keys are dropped. Queued keys can still be taken; then every `get`
   * resolves with undefined. Also ends a pending `drain`. Idempotent.
   */
  shutDown(): void {
    this.#end();
    for (const resolve of this.#drains) resolve();
    this.#drains.clear();
    this.#serve();
  }

  /**
   * Ends the queue as `shutDown` does, and resolves, for each caller, when no key is queued or being processed any more. It needs
   * workers that take the queued keys and call `done`; without them, it waits until `shutDown` is called.
   */
  drain(): Promise<void> {
    return new Promise((resolve) => {
      this.#drains.add(resolve);
      this.#end();
      this.#serve();
    });
  }

  #end(): void {
    if (this.#ending) return;
    this.#ending = true;
    this.#state.end();
  }

  /** Whether a `get` that finds nothing queued resolves with undefined. */
  #isOverFor(patient: boolean): boolean {
    return this.#ending && !(patient && this.#drains.size > 0 && this.#state.working > 0);
  }

  /** Called after each change: hands keys to waiting calls, and ends these once no more keys will come. */
  #serve(): void {
    if (this.#getters.size > 0) this.#feed();
    if (this.#drains.size > 0 && this.#state.size === 0 && this.#state.working === 0) this.shutDown();
  }

  #feed(): void {
    for (const getter of this.#getters) {
      if (this.#state.size === 0 && !this.#ending) break;
      if (this.#state.size === 0 && !this.#isOverFor(getter.patient)) continue;
      this.#getters.delete(getter);
      getter.settle(this.#state.take()?.key);
    }
  }
}

function priorityOf(options: AddOptions | undefined): number | undefined {
  const priority = options && checkOptions(options, ['priority']).priority;
  if (priority !== undefined && !(Number.isInteger(priority) && Math.abs(priority) <= 1_000)) {
    throw invalid('priority', priority, 'a whole number from -1,000 to 1,000');
  }
  return priority;
}

const OPTIONS = ['rateLimiter', 'name', 'clock', 'onMetric', 'keyOf', 'maxKeys', 'agingMs'] as const;

/**
 * The iterator for `for await`. It has its own type because TypeScript before 5.6 does not know the return type of an
 * AsyncIterableIterator.
 */
export interface KeyIterator<K> extends AsyncIterator<K, undefined> {
  [Symbol.asyncIterator](): KeyIterator<K>;
}

/**
 * An iterator over what `get` returns, until it is undefined. Written by hand, because `return` must settle while `next` is pending:
 * then it withdraws its request, so that no key goes to a loop that has ended.
 */
function iterate<K>(get: (signal: AbortSignal) => Promise<K | undefined>): KeyIterator<K> {
  const stopped = new AbortController();
  const { signal } = stopped;
  const resultOf = (key: K | undefined): IteratorResult<K, undefined> =>
    ({ done: key === undefined, value: key }) as IteratorResult<K, undefined>;
  return {
    next: () => get(signal).then(resultOf, (error: unknown) => (signal.aborted ? resultOf(undefined) : Promise.reject(error))),
    return: () => {
      stopped.abort();
      return Promise.resolve(resultOf(undefined));
    },
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}
