import { checkOptions, requireMethod } from './errors.ts';
import { done, NONE, Reader } from './reader.ts';
import type { Watch } from './watch.ts';

/** The source of a {@link PullWatch}. It is asked for one event at a time, and only when a consumer wants one. */
export interface PullSource<E> {
  /** Resolves with the next event or the end. Not called again before the last call has settled. A rejection fails the watch. */
  pull(): Promise<IteratorResult<E, unknown>>;
  /** Returns an event that is already available, or undefined. Never called during a `pull`, nor `pull` during this. */
  poll?(): E | undefined;
  /** Called at most once, when either side ends the watch. A pending pull must then settle, or have no further effect. */
  cancel(): void;
}

/**
 * A watch over a source that is asked for events: a decoder, another watch, a stream. Nothing is read ahead, so backpressure
 * reaches the source. The one event that a completed pull or poll produced waits in `held`.
 *
 *     idle --read waits / tryNext finds nothing--> pulling --event--> idle (one held)
 *       |                                             |-----end, error--> over
 *       `--------------- stop, return ----------------+----------------> over (source cancelled)
 */
export class PullWatch<E> extends Reader<E> {
  private readonly source: PullSource<E>;
  protected held: E | typeof NONE = NONE;
  protected pulling: boolean = false;
  private over: boolean = false;
  private lost: number = 0;
  protected failure: { readonly error: unknown } | undefined;

  constructor(source: PullSource<E>) {
    super();
    this.source = source;
  }

  get stopped(): boolean {
    return this.over;
  }

  get queued(): number {
    return this.held === NONE ? 0 : 1;
  }

  get dropped(): number {
    return this.lost;
  }

  protected override get drained(): boolean {
    return this.over;
  }

  override tryNext(): E | undefined {
    const event = super.tryNext();
    // A consumer that only polls must also start a pull.
    if (event === undefined) this.idle();
    return event;
  }

  /** Called when `tryNext` found nothing. */
  protected idle(): void {
    this.pull();
  }

  protected override take(): E | typeof NONE {
    if (this.held === NONE && !this.over && !this.pulling) this.poll();
    const event = this.held;
    this.held = NONE;
    return event;
  }

  private poll(): void {
    this.pulling = true; // if user code inside `poll` reads, it must not start a second pull
    try {
      const event = this.source.poll?.();
      if (event !== undefined) this.got(event);
    } catch (error) {
      this.failed(error);
    }
    this.pulling = false;
  }

  /** Also pulls for a read that user code started in `poll`, but not for a batch that ends there: that would read ahead. */
  protected override serve(): void {
    super.serve();
    if (this.first) this.pull();
  }

  protected override wasted(count: number): void {
    this.lost += count;
  }

  protected override readWaits(): void {
    this.pull();
  }

  protected override end(): void {
    this.finish();
  }

  /** Called when the source failed. Ends the watch, and makes one read reject with the error, unless it was over. */
  protected failed(error: unknown): void {
    if (!this.over) this.failure = { error };
    this.finish();
  }

  protected override discard(): void {
    if (this.held !== NONE) this.lost++;
    this.held = NONE;
    this.finish();
  }

  private pull(): void {
    if (this.pulling || this.over || this.held !== NONE) return;
    this.pulling = true;
    let pulled: Promise<IteratorResult<E, unknown>>;
    try {
      pulled = Promise.resolve(this.source.pull()); // user-written iterators may return plain results
    } catch (error) {
      pulled = Promise.reject(error);
    }
    pulled.then(
      (result) => this.pulled(result),
      (error: unknown) => this.pulled(undefined, { error }),
    );
  }

  private pulled(result: IteratorResult<E, unknown> | undefined, failure?: { readonly error: unknown }): void {
    this.pulling = false;
    if (result && !result.done) this.got(result.value);
    else if (failure) this.failed(failure.error);
    else this.finish();
    this.serve();
  }

  private got(event: E): void {
    // If the watch has ended in the meantime, nobody is left to read it.
    if (this.over) this.lost++;
    else this.held = event;
  }

  protected finish(): void {
    if (this.over) return;
    this.over = true;
    try {
      this.source.cancel();
    } catch {
      // The watch is over, so an error from cancelling the source does not matter.
    }
  }
}

/** Returns what produces the events of an async iterable or iterator. Throws INVALID_ARGUMENT for anything else. */
function iteratorOf<E>(events: AsyncIterable<E> | AsyncIterator<E, unknown>): AsyncIterator<E, unknown> {
  const iterate = (events as Partial<AsyncIterable<E>> | undefined | null)?.[Symbol.asyncIterator];
  if (typeof iterate === 'function') return iterate.call(events);
  return requireMethod('events', events as AsyncIterator<E, unknown>, 'next', 'an async iterable or iterator');
}

/**
 * Creates a watch over an async iterable or iterator. Nothing is read ahead. The iterator's `return` is called when the watch
 * ends, even if the iterator itself ended.
 *
 * @throws {WatchError} INVALID_ARGUMENT for anything else.
 */
export function fromAsyncIterable<E>(events: AsyncIterable<E> | AsyncIterator<E, unknown>): Watch<E> {
  const iterator = iteratorOf(events);
  return new PullWatch<E>({
    pull: () => iterator.next(),
    cancel: () => {
      iterator.return?.()?.then(undefined, () => {});
    },
  });
}

/**
 * Creates a watch that has already ended. Return it when starting a watch failed and the caller should simply watch again.
 * Upstream: `NewEmptyWatch`.
 */
export function emptyWatch<E>(): Watch<E> {
  const watch = fromAsyncIterable<E>({ next: () => Promise.resolve(done()) });
  watch.stop();
  return watch;
}

/** Options of a {@link ProxyWatcher}. */
export interface ProxyWatcherOptions {
  /** Whether `stop` ends the watch; default true. If false, the watch keeps reading until the owner ends the events. */
  endOnStop?: boolean | undefined;
}

/**
 * A watch over events that someone else produces and owns. It does not end the events when the consumer stops; it signals the
 * owner instead.
 *
 * - `stop` and `return` abort `stopSignal`, once. The owner listens to it, ends the events and cleans up. The iterator's own
 *   `return` is never called; use `fromAsyncIterable` for that.
 * - By default the watch ends on `stop`. With `endOnStop: false` the owner ends it, and may send more events first.
 * - `stopSignal` does not abort when the events end by themselves. A later `stop` or `return`, such as the one by `using`, still
 *   aborts it.
 *
 * Nothing is read ahead. Upstream: `watch.ProxyWatcher` and `NewProxyWatcher`, whose result never ends on `stop`.
 */
export class ProxyWatcher<E> extends PullWatch<E> {
  private readonly controller: AbortController = new AbortController();
  private readonly endOnStop: boolean;

  /** @throws {WatchError} INVALID_ARGUMENT for anything but an async iterable or iterator, and for an unknown option. */
  constructor(events: AsyncIterable<E> | AsyncIterator<E, unknown>, options: ProxyWatcherOptions = {}) {
    const iterator = iteratorOf(events);
    super({ pull: () => iterator.next(), cancel() {} });
    this.endOnStop = checkOptions(options, ['endOnStop']).endOnStop !== false;
  }

  override get stopped(): boolean {
    return super.stopped || this.stopping();
  }

  /** Aborts when the consumer stops. Upstream: `StopChan`. */
  get stopSignal(): AbortSignal {
    return this.controller.signal;
  }

  /** Whether the consumer has stopped. Upstream: `Stopping`. */
  stopping(): boolean {
    return this.controller.signal.aborted;
  }

  protected override end(): void {
    this.controller.abort();
    if (this.endOnStop) super.end();
  }

  protected override discard(): void {
    this.controller.abort();
    super.discard();
  }
}
