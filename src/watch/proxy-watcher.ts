import { PullWatch } from './pull-watch.ts';

/** How a {@link ProxyWatcher} takes `stop`. */
export interface ProxyWatcherOptions {
  /** Whether the watch ends on `stop` by itself; default true. False: it reads on until the owner of the events ends them. */
  endOnStop?: boolean | undefined;
}

/**
 * A watch over events that someone else produces and goes on owning: instead of ending them, it tells their owner that nobody
 * wants them any more.
 *
 * - `stop`, and also `return`, fires `stopSignal`, once. The owner listens to it, ends what it produces and cleans up: the
 *   iterator's own `return` is never called (that is what `fromAsyncIterable` does).
 * - By default the watch ends on `stop`. With `endOnStop: false` the owner ends it, and may send a few more events before.
 * - When the events end by themselves nobody has stopped anything, and `stopSignal` does not fire; a `stop` or `return` after
 *   that, as by `using`, still fires it.
 *
 * Nothing is read before it is asked for. Upstream: `watch.ProxyWatcher` and `NewProxyWatcher`, whose result never ends on `stop`.
 */
export class ProxyWatcher<E> extends PullWatch<E> {
  private readonly controller: AbortController = new AbortController();

  constructor(events: AsyncIterable<E> | AsyncIterator<E, unknown>, options: ProxyWatcherOptions = {}) {
    const iterator = Symbol.asyncIterator in events ? events[Symbol.asyncIterator]() : events;
    super({ pull: () => iterator.next(), cancel() {} }, options.endOnStop === false ? { onStop() {} } : {});
  }

  /** Fires when the consumer has stopped. Upstream: `StopChan`. */
  get stopSignal(): AbortSignal {
    return this.controller.signal;
  }

  /** Whether the consumer has stopped. Upstream: `Stopping`. */
  stopping(): boolean {
    return this.controller.signal.aborted;
  }

  protected override end(): void {
    this.controller.abort();
    super.end();
  }

  protected override discard(): void {
    this.controller.abort();
    super.discard();
  }
}
