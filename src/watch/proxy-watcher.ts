import { checkOptions } from './options.ts';
import { iteratorOf, PullWatch } from './pull-watch.ts';

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
