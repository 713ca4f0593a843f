import { versionOf } from '../cache/object.ts';
import { whenAborted } from '../watch/abort.ts';
import { listed, systemClock, upkeepClock } from '../watch/clock.ts';
import { callable, checkOptions, checkSignal, invalid, requireMethod, WatchError, wholeNumber } from '../watch/errors.ts';
import { Failures, oneLine, quietly } from '../watch/failures.ts';
import type {
  ControllerFailure,
  ControllerHandler,
  ControllerInformer,
  ControllerOptions,
  ControllerRunOptions,
  ControllerSource,
  Reconcile,
  ReconcileContext,
  ReconcileResult,
} from './controller-options.ts';
import { WorkQueue } from './queue.ts';
import type { WorkContext } from './run.ts';

/**
 * Brings the actual state in line with the desired state, one key at a time: informers report what has changed, a queue folds
 * that into keys, and `reconcile` is called with each key. Upstream: `Controller` of controller-runtime, and the loop around
 * every `workqueue`.
 *
 *     informers --- changes ---> keysOf ---> WorkQueue ---> reconcile(key) ---> succeeded: failures are forgotten
 *         ^                                     ^                |                '--> requeueAfterMs: run again then
 *         |                                     |                |
 *         |                                     '-- backoff ---- failed: up to maxRetries, then dropped and reported
 *         |                                                      |
 *         '------------------ atLeast(version) --------------- wrote(object): the key is not done until then
 *
 * One run, in this order; the signal ends it at any step:
 *
 *     add handlers ---> run informers that nobody runs ---> wait until all are synced ---> work ---> wait for running work
 *                                                                                                          |
 *            run resolves <--- wait for the informers that it runs <--- shut the queue down, remove handlers
 *
 * Guarantees
 * - **Serial**, like the queue: no key is reconciled twice at the same time, and each change is followed by a reconcile that
 *   starts after it.
 * - Nothing is reconciled until all informers hold their whole collection, so an object that is not in a store does not exist.
 * - An error affects only its own key (`reconcile`) or object (`keysOf`), and goes to `onError`.
 * - After the end, no handler and no timer is left, and no key is being processed.
 *
 * Bounds: those of the queue. A key that waits for what it wrote counts as being processed.
 */
export class Controller<T = unknown> {
  /** The queue of keys. You can add keys yourself, for example from a webhook. */
  readonly queue: WorkQueue<string>;
  readonly #sources: readonly ControllerSource<T>[];
  readonly #reconcile: Reconcile;
  readonly #concurrency: number;
  readonly #maxRetries: number;
  readonly #wroteTimeoutMs: number;
  readonly #syncTimeoutMs: number;
  readonly #onError: ControllerOptions<T>['onError'];
  readonly #failures: Failures;
  /** Aborts at the end of the run, whatever the reason. */
  readonly #stopped: AbortController = new AbortController();
  #began: boolean = false;
  #broken: { readonly error: unknown } | undefined;

  /** @throws {WatchError} INVALID_ARGUMENT for an option of the wrong kind. */
  constructor(options: ControllerOptions<T>) {
    const { informers, reconcile, concurrency = 1, maxRetries = Infinity, ...more } = checkOptions(options, OPTIONS);
    const { queue = new WorkQueue<string>(), wroteTimeoutMs = 10_000, syncTimeoutMs = 120_000, onError } = more;
    if (!Array.isArray(informers)) throw invalid('informers', informers, 'an array with an Informer');
    wholeNumber('informers.length', informers.length, 1);
    this.#sources = informers.map((each) => sourceOf<T>(each));
    if (!callable('reconcile', reconcile)) throw invalid('reconcile', reconcile, 'a function');
    this.#reconcile = reconcile;
    this.queue = requireMethod('queue', queue, 'addRateLimited', 'a WorkQueue');
    this.#onError = callable('onError', onError);
    this.#concurrency = wholeNumber('concurrency', concurrency, 1);
    this.#maxRetries = maxRetries === Infinity ? maxRetries : wholeNumber('maxRetries', maxRetries);
    this.#wroteTimeoutMs = wholeNumber('wroteTimeoutMs', wroteTimeoutMs);
    this.#syncTimeoutMs = wholeNumber('syncTimeoutMs', syncTimeoutMs);
    this.#failures = new Failures('controller', queue);
  }

  /**
   * Works until the signal aborts, and resolves when everything has ended: running work has completed, handlers are removed, the
   * queue is shut down, and the informers that it has started have stopped. Informers that were already running continue. It also
   * ends when its queue is shut down, or when an informer that it runs ends. A controller runs only once.
   *
   * @throws What `onError`, or an informer that it runs, throws; what has ended another informer, CLOSED if it was stopped.
   *   {WatchError} INVALID_ARGUMENT if it ran before; TIMEOUT, see `timeoutMs`.
   */
  async run(signal?: AbortSignal, options: ControllerRunOptions = {}): Promise<void> {
    const { timeoutMs = 0 } = checkOptions(options, ['timeoutMs']);
    wholeNumber('timeoutMs', timeoutMs);
    checkSignal(signal);
    if (this.#began) throw new WatchError('INVALID_ARGUMENT', 'a controller runs once');
    this.#began = true;
    const leave = whenAborted(signal, (reason) => this.#stopped.abort(reason));
    const ends: (() => unknown)[] = [];
    try {
      if (!signal?.aborted) await this.#work(ends, timeoutMs);
    } catch (error) {
      this.#fail(error);
    }
    leave();
    this.#stopped.abort();
    this.queue.shutDown();
    await Promise.allSettled(ends.map(async (end) => end()));
    if (this.#broken) throw this.#broken.error;
  }

  /** Everything up to the end of the work. Adds to `ends` how to undo each step. */
  async #work(ends: (() => unknown)[], timeoutMs: number): Promise<void> {
    const { signal } = this.#stopped;
    const aborted = new Promise<void>((resolve) => whenAborted(signal, () => resolve()));
    const synced = this.#sources.map((source) => {
      const { informer, filter, resyncMs } = source;
      const handler = enqueuer(source, {
        add: (key) => this.queue.add(key),
        failed: (error, object) => this.#tell(error, { during: 'event', object, dropped: false }),
      });
      const registration = informer.addHandler(handler, { filter, resyncMs });
      ends.push(() => registration.remove());
      // It would hear of nothing any more. Whoever stops both may do so in any order within a turn.
      if (!isOwn(informer)) void registration.ended?.then((why) => signal.aborted || this.#fail(why));
      return registration.synced;
    });
    const informers = [...new Set(this.#sources.map((source) => source.informer))];
    for (const informer of informers) {
      if (this.#onError) ends.push(this.#hear(informer));
      if (!isOwn(informer)) continue;
      const ran = informer.run(signal, { timeoutMs }).then(
        () => this.#stopped.abort(),
        (error) => this.#fail(error),
      );
      ends.push(() => ran);
    }
    const cancel = this.#limitSync(synced);
    await Promise.race([aborted, Promise.all(synced)]).finally(cancel);
    await this.queue.run(this.#concurrency, (key, context) => this.#attempt(key, context), {
      signal,
      timeoutMs,
      onError: (error, { key, attempt }) => this.#tell(error, { during: 'reconcile', key, attempt, dropped: false }),
    });
  }

  /** Reports if the informers take too long. Returns a function that stops this. */
  #limitSync(synced: readonly Promise<unknown>[]): () => void {
    const limitMs = this.#syncTimeoutMs;
    if (limitMs === 0) return () => {};
    const pending = new Set(synced.keys());
    for (const [at, each] of synced.entries()) each.then(() => pending.delete(at)).catch(() => {});
    return upkeepClock(this.queue.clock ?? systemClock).schedule(limitMs, () => {
      const names = Array.from(pending, (at) => `informers[${at}]`);
      const cause = Array.from(pending, (at) => this.#sources[at]?.informer.state?.error).find((error) => error !== undefined);
      const what = `${names.length === 1 ? 'is' : 'are'} not synced after ${limitMs} ms`;
      const error = new WatchError('TIMEOUT', `${listed(names)} ${what}`, { limit: limitMs, cause });
      this.#tell(error, { during: 'sync', dropped: false });
    });
  }

  /** Passes on what an informer's source reports. */
  #hear(informer: ControllerInformer<T>): () => unknown {
    const tell = (error: unknown): void => this.#tell(error, { during: 'source', informer, dropped: false });
    return informer.addErrorListener?.(tell) ?? (() => {});
  }

  async #attempt(key: string, { signal, attempt, hold }: WorkContext): Promise<void> {
    const wrote: ReconcileContext['wrote'] = (object, informer = this.#sources[0]?.informer) => {
      const version = versionOf(object);
      if (!version || !informer) throw invalid('object.metadata.resourceVersion', version, 'a non-empty string');
      const reached = informer.atLeast(version, { signal, timeoutMs: this.#wroteTimeoutMs });
      hold(reached.catch((error) => signal.aborted || this.#tell(error, { during: 'wrote', key, dropped: false })));
    };
    try {
      const requeueAfterMs = requeueAfterOf(await this.#reconcile(key, { signal, attempt, wrote }));
      if (requeueAfterMs !== undefined) this.queue.addAfter(key, requeueAfterMs);
    } catch (error) {
      if (attempt <= this.#maxRetries || signal.aborted) throw error;
      this.#tell(error, { during: 'reconcile', key, attempt, dropped: true });
    }
  }

  #tell(error: unknown, failure: ControllerFailure): void {
    const tell = (): unknown => (this.#onError ? this.#onError(error, failure) : this.#print(error, failure));
    quietly(tell, (thrown) => this.#fail(thrown));
  }

  #print(error: unknown, { during, key, attempt, dropped }: ControllerFailure): void {
    const more = key === undefined ? '' : ` for ${oneLine(key)}${attempt ? `, attempt ${attempt}` : ''}`;
    if (dropped) this.#failures.failed('reconcile finally', error, more);
    else this.#failures.failed(during === 'event' ? 'an event' : during, error, more);
  }

  #fail(error: unknown): void {
    if (error === this.#stopped.signal.reason && this.#stopped.signal.aborted) return; // it was told to stop
    this.#broken ??= { error };
    this.#stopped.abort(error);
  }
}

/** Whether the controller has to run it. */
function isOwn<T>(
  informer: ControllerInformer<T>,
): informer is ControllerInformer<T> & Required<Pick<ControllerInformer<T>, 'run'>> {
  return !!informer.run && informer.started === false;
}

const OPTIONS = [
  ...(['informers', 'reconcile', 'concurrency', 'maxRetries', 'queue', 'wroteTimeoutMs', 'syncTimeoutMs', 'onError'] as const),
] as const;

/**
 * The time after which a key is to run again, as a reconcile has returned it. Anything else that it returns is ignored, because a
 * short function returns whatever its last call does.
 *
 * @throws {WatchError} INVALID_ARGUMENT for a member that is meant to say so, such as `requeueAfter`.
 */
export function requeueAfterOf(result: unknown): number | undefined {
  for (const [name, value] of Object.entries(result ?? {})) {
    if (/^requeue/i.test(name) && name !== 'requeueAfterMs' && value !== undefined)
      throw invalid(name, value, 'requeueAfterMs instead');
  }
  return (result as ReconcileResult | undefined)?.requeueAfterMs;
}

/** Checks one entry of the option `informers`, and converts both forms to one. */
function sourceOf<T>(given: ControllerInformer<T> | ControllerSource<T>): ControllerSource<T> {
  const source =
    given && 'informer' in given ? checkOptions(given, ['informer', 'keysOf', 'filter', 'resyncMs']) : { informer: given };
  requireMethod('informer', source.informer, 'addHandler', 'an Informer');
  callable('keysOf', source.keysOf);
  callable('filter', source.filter);
  if (source.resyncMs !== undefined) wholeNumber('resyncMs', source.resyncMs);
  return source;
}

/**
 * From a change to the keys that it concerns:
 *
 *     onAdd(object)          ---> keysOf(object)
 *     onUpdate(old, object)  ---> keysOf(old), keysOf(object)     with a new owner, this concerns both
 *     onDelete(object)       ---> keysOf(object)
 *
 * A resync is an update of an object to itself, and is reconciled like any other. An error thrown by one call of `keysOf` is
 * reported, and affects nothing else.
 */
function enqueuer<T>(
  { informer, keysOf }: ControllerSource<T>,
  { add, failed }: { add(key: string): void; failed(error: unknown, object: T): void },
): ControllerHandler<T> {
  const enqueue = (...states: T[]): void => {
    const keys = new Set<string>(); // a free worker takes a key at once: added twice, it would run twice
    for (const object of new Set(states)) {
      try {
        for (const key of keysOf ? checkedKeys(keysOf(object)) : [informer.store.keyOf(object)]) {
          if (!keys.has(key)) add(key);
          keys.add(key);
        }
      } catch (error) {
        failed(error, object);
      }
    }
  };
  return {
    onAdd: (object) => enqueue(object),
    onUpdate: (old, object) => enqueue(old, object),
    onDelete: (object) => enqueue(object),
  };
}

/** A string is also iterable, and a common mistake. */
function checkedKeys(keys: readonly string[]): readonly string[] {
  quietly(() => keys); // an async function's, which nobody waits for
  if (!Array.isArray(keys) || keys.some((key) => typeof key !== 'string'))
    throw invalid('keysOf', keys, 'it to return an array of strings');
  return keys;
}
