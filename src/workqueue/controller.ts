import { versionOf } from '../cache/object.ts';
import { whenAborted } from '../watch/abort.ts';
import { callable, invalid, requireMethod, WatchError, wholeNumber } from '../watch/errors.ts';
import { checkOptions } from '../watch/options.ts';
import type {
  ControllerFailure,
  ControllerOptions,
  ControllerSource,
  Reconcile,
  ReconcileContext,
  ReconcileResult,
} from './controller-options.ts';
import type { WorkContext } from './options.ts';
import { WorkQueue } from './queue.ts';
import { enqueuer, sourceOf } from './sources.ts';

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
 *         '------------------ atLeast(version) --------------- wrote(object): the key is not done before that
 *
 * One run, in this order; the signal ends it at any step:
 *
 *     add handlers ---> run informers that nobody runs ---> wait until all are synced ---> work ---> wait for what runs
 *                                                                                                          |
 *            run resolves <--- wait for the informers that it runs <--- shut the queue down, remove handlers
 *
 * Guarantees
 * - **Serial**, like the queue: no key is reconciled twice at the same time, and each change is followed by a reconcile that
 *   starts after it.
 * - Nothing is reconciled before all informers hold their whole collection, so an object that is not in a store does not exist.
 * - An error affects only its own key (`reconcile`) or object (`keysOf`), and goes to `onError`.
 * - After the end there is no handler and no timer, and no key is being processed.
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
  readonly #onError: (error: unknown, failure: ControllerFailure) => void;
  /** Aborts at the end of the run, for whatever reason. */
  readonly #stopped: AbortController = new AbortController();
  #began: boolean = false;
  #broken: { readonly error: unknown } | undefined;

  /** @throws {WatchError} INVALID_ARGUMENT for an option of the wrong kind. */
  constructor(options: ControllerOptions<T>) {
    const { informers, reconcile, concurrency = 1, maxRetries = Infinity, ...more } = checkOptions(options, OPTIONS);
    const { queue = new WorkQueue<string>(), wroteTimeoutMs = 10_000, onError = print } = more;
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
  }

  /**
   * Works until the signal aborts, and resolves when everything has ended: running work has completed, handlers are removed, the
   * queue is shut down, and the informers that it has started have stopped. Informers that were already running continue. It also
   * ends when its queue is shut down, or when an informer that it runs ends. A controller runs only once.
   *
   * @throws What `onError`, or an informer that it runs, throws. {WatchError} INVALID_ARGUMENT if it ran before.
   */
  async run(signal?: AbortSignal): Promise<void> {
    if (this.#began) throw new WatchError('INVALID_ARGUMENT', 'a controller runs once');
    this.#began = true;
    const leave = whenAborted(signal, (reason) => this.#stopped.abort(reason));
    const ends: (() => unknown)[] = [];
    try {
      if (!signal?.aborted) await this.#work(ends);
    } catch (error) {
      this.#fail(error);
    }
    leave();
    this.#stopped.abort();
    this.queue.shutDown();
    await Promise.allSettled(ends.map(async (end) => end()));
    if (this.#broken) throw this.#broken.error;
  }

  /** Everything up to the end of the work. How to undo it is added to `ends` as it is done. */
  async #work(ends: (() => unknown)[]): Promise<void> {
    const { signal } = this.#stopped;
    const aborted = new Promise<void>((resolve) => whenAborted(signal, () => resolve()));
    const synced = this.#sources.map((source) => {
      const { filter, resyncMs } = source;
      const handler = enqueuer(source, {
        add: (key) => this.queue.add(key),
        failed: (error, object) => this.#tell(error, { during: 'event', object, dropped: false }),
      });
      const registration = source.informer.addHandler(handler, { filter, resyncMs });
      ends.push(() => registration.remove());
      return registration.synced;
    });
    for (const informer of new Set(this.#sources.map((source) => source.informer))) {
      if (!informer.run || informer.started !== false) continue;
      const ran = informer.run(signal).then(
        () => this.#stopped.abort(),
        (error) => this.#fail(error),
      );
      ends.push(() => ran);
    }
    await Promise.race([aborted, Promise.all(synced)]);
    await this.queue.run(this.#concurrency, (key, context) => this.#attempt(key, context), {
      signal,
      onError: (error, { key, attempt }) => this.#tell(error, { during: 'reconcile', key, attempt, dropped: false }),
    });
  }

  async #attempt(key: string, { signal, attempt, hold }: WorkContext): Promise<void> {
    const wrote: ReconcileContext['wrote'] = (object, informer = this.#sources[0]?.informer) => {
      const version = versionOf(object);
      if (!version || !informer) throw invalid('object.metadata.resourceVersion', version, 'a non-empty string');
      const reached = informer.atLeast(version, { signal, timeoutMs: this.#wroteTimeoutMs });
      hold(reached.catch((error) => signal.aborted || this.#tell(error, { during: 'wrote', key, dropped: false })));
    };
    try {
      const { requeueAfterMs } = ((await this.#reconcile(key, { signal, attempt, wrote })) ?? {}) as ReconcileResult;
      if (requeueAfterMs !== undefined) this.queue.addAfter(key, requeueAfterMs);
    } catch (error) {
      if (attempt <= this.#maxRetries || signal.aborted) throw error;
      this.#tell(error, { during: 'reconcile', key, attempt, dropped: true });
    }
  }

  #tell(error: unknown, failure: ControllerFailure): void {
    try {
      this.#onError(error, failure);
    } catch (thrown) {
      this.#fail(thrown);
    }
  }

  #fail(error: unknown): void {
    if (error === this.#stopped.signal.reason && this.#stopped.signal.aborted) return; // it was told to stop
    this.#broken ??= { error };
    this.#stopped.abort(error);
  }
}

const OPTIONS = ['informers', 'reconcile', 'concurrency', 'maxRetries', 'queue', 'wroteTimeoutMs', 'onError'] as const;

function print(error: unknown, { during, key, attempt, dropped }: ControllerFailure): void {
  const what = dropped ? `gave up after attempt ${attempt}` : `${during} failed${attempt ? `, attempt ${attempt}` : ''}`;
  console.error(`controller: ${what}`, key ?? '', error);
}
