import { wholeNumber } from '../../watch/errors.ts';
import type { Status, WatchEvent } from '../../watch/event.ts';
import type { Ending } from '../protocol.ts';

/**
 * The lifetime of a hub, and how its clients learn of the end.
 *
 *     open --close--> closing --all distributed--> ended --last client gone--> gone
 *
 * There are two kinds of end. If the stream ends, the hub still serves the events that it keeps. If the server goes away
 * (`retryAfterMs`), new clients are refused, and should ask another server.
 */
export class Lifetime {
  /** Every event has been distributed, and no more will follow. */
  ended: boolean = false;
  /** The Status that tells clients about a failed source. It passes every filter. */
  failure: Status | undefined = undefined;
  private gone: Promise<void> | undefined = undefined;
  private retryAfterMs: number | undefined = undefined;
  /** Callbacks of clients that wait for admission and will be refused. */
  private readonly unsettled: Set<() => void> = new Set();
  private readonly random: () => number;

  constructor(random: () => number) {
    this.random = random;
  }

  /** No more events are accepted. */
  get closing(): boolean {
    return this.gone !== undefined;
  }

  /** No new client can be served: the last events are not distributed yet, or the server goes away. */
  get leaving(): boolean {
    return this.closing && (!this.ended || this.retryAfterMs !== undefined);
  }

  /** Whether this is the ERROR that tells every client about a failed source. */
  isFailure(event: WatchEvent): boolean {
    return this.failure !== undefined && event.object === this.failure;
  }

  /** Starts the end, once; the first call decides its kind. Resolves when `drain` has finished. */
  close(drain: () => Promise<void>, retryAfterMs: number | undefined): Promise<void> {
    if (this.gone === undefined) {
      if (retryAfterMs !== undefined) this.retryAfterMs = wholeNumber('retryAfterMs', retryAfterMs);
      this.gone = drain();
      for (const callback of this.unsettled) callback();
      this.unsettled.clear();
    }
    return this.gone;
  }

  /** Calls back when the hub starts to close. Returns a function that cancels this. */
  whenClosing(callback: () => void): () => void {
    this.unsettled.add(callback);
    return () => void this.unsettled.delete(callback);
  }

  /** Returns how streams end after their last event. When the server goes away, each client gets a random delay. */
  endOfStream(): { how: Ending; retryMs: number | undefined } {
    const { retryAfterMs } = this;
    if (retryAfterMs === undefined) return { how: 'complete', retryMs: undefined };
    return { how: 'goingAway', retryMs: Math.floor(this.random() * retryAfterMs) };
  }
}
