import { wholeNumber } from '../watch/errors.ts';
import type { Status } from '../watch/event.ts';
import type { Ending } from './protocol.ts';

/**
 * How far a hub has come, and what clients are told of it.
 *
 *     open --close--> closing --all distributed--> ended --last client gone--> gone
 *
 * It is the stream that ends, and then a hub serves what it still has to those who ask for it; or it is the server that goes away
 * (`retryAfterMs`), and then whoever comes is to ask another.
 */
export class Lifetime {
  /** Every event there will ever be has been distributed. */
  ended: boolean = false;
  /** What clients are told when what is followed fails: whatever their filter lets through. */
  failure: Status | undefined = undefined;
  private gone: Promise<void> | undefined = undefined;
  private retryAfterMs: number | undefined = undefined;
  /** Who is still being asked who they are, and will not be let in. */
  private readonly unsettled: Set<() => void> = new Set();
  private readonly random: () => number;

  constructor(random: () => number) {
    this.random = random;
  }

  /** No event will be accepted any more. */
  get closing(): boolean {
    return this.gone !== undefined;
  }

  /** Nobody can be served: the last events are still on their way to those who wait for them, or the server goes away. */
  get leaving(): boolean {
    return this.closing && (!this.ended || this.retryAfterMs !== undefined);
  }

  /** Begins the end, once: the first call says which one it is. Resolves when `drain` has brought everybody to it. */
  close(drain: () => Promise<void>, retryAfterMs: number | undefined): Promise<void> {
    if (this.gone === undefined) {
      if (retryAfterMs !== undefined) this.retryAfterMs = wholeNumber('retryAfterMs', retryAfterMs);
      this.gone = drain();
      for (const callback of this.unsettled) callback();
      this.unsettled.clear();
    }
    return this.gone;
  }

  /** Calls back when it begins to close. The function that comes back ends that. */
  whenClosing(callback: () => void): () => void {
    this.unsettled.add(callback);
    return () => void this.unsettled.delete(callback);
  }

  /** How a stream ends when there is nothing more to come: each client comes back after a time of its own. */
  farewell(): { how: Ending; retryMs: number | undefined } {
    const { retryAfterMs } = this;
    if (retryAfterMs === undefined) return { how: 'complete', retryMs: undefined };
    return { how: 'goingAway', retryMs: Math.floor(this.random() * retryAfterMs) };
  }
}
