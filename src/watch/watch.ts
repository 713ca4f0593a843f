/**
 * A stream of events that its consumer can stop, and its own async iterator. Everything in this package produces or consumes a
 * `Watch`.
 *
 * Who may do what:
 * - A watch has **one consumer**. It may mix `next`, `for await`, `tryNext` and `batches` freely.
 * - Only the consumer calls `stop` or `return`. A producer that fails delivers one ERROR event, or one error, and ends.
 * - `done: true` is the only end signal. Once a read has returned it, every later read does.
 * - A consumer that leaves must end the watch: by `break` out of `for await`, `using`, an abort signal or `stop`.
 *
 * Upstream: `watch.Interface`, whose `ResultChan` is this iterator.
 */
export interface Watch<E> {
  /** Resolves with the next event, or `done`. Pending reads are served in order. If the watch failed, one read rejects. */
  next(): Promise<IteratorResult<E, undefined>>;
  /** Stops the watch, drops all queued events and settles every pending read with `done`. `break` out of `for await` calls it. */
  return(): Promise<IteratorResult<E, undefined>>;
  /** Returns the next event if one is queued, otherwise undefined. Never waits. If the watch failed, one read throws. */
  tryNext(): E | undefined;
  /**
   * Returns an iterator whose every read takes all queued events at once. With `onGap`, a batch ends before a gap. Watchers share
   * the arrays: treat them as read-only. Leaving the loop stops the watch.
   */
  batches(): WatchBatches<E>;
  /** Stops the watch. No further event is queued; queued events stay readable, then reads return `done`. Idempotent. */
  stop(): void;
  /** Whether no further event will be queued: the watch was stopped, was cut or failed, or its source ended. */
  readonly stopped: boolean;
  /** Number of events that can be read without waiting, not counting the ERROR that reports a cut. */
  readonly queued: number;
  /** Total number of events that this watcher did not get. With `coalesce`, events that were folded into a later one. */
  readonly dropped: number;
  /**
   * Where this watch is, if its source keeps past events: a watch that begins `after` this position gets everything that this one
   * has not delivered. Queued events count as not delivered, and so do those that `return` discarded or a cut left out. A number
   * that never decreases. A broadcaster reports it if it has `replay`; with `coalesce`, events that were folded into a delivered
   * one may come again.
   */
  readonly position?: number | undefined;
  [Symbol.asyncIterator](): Watch<E>;
  /** Same as `return()`, for `using`. */
  [Symbol.dispose](): void;
  /** Same as `return()`, for `await using`. */
  [Symbol.asyncDispose](): Promise<void>;
}

/** The iterator of {@link Watch.batches}: each value is a non-empty, read-only array. */
export interface WatchBatches<E> {
  /** Resolves with the next batch, or `done`. */
  next(): Promise<IteratorResult<readonly E[], undefined>>;
  /** Returns the watch; see {@link Watch.return}. */
  return(): Promise<IteratorResult<readonly E[], undefined>>;
  [Symbol.asyncIterator](): WatchBatches<E>;
  [Symbol.dispose](): void;
  [Symbol.asyncDispose](): Promise<void>;
}

/** Called once when a watch may have something to read, or has ended. Must not throw. */
export interface Listener {
  readable(): void;
}

/**
 * A watch that can call back. For a caller with thousands of watches, as a pending read takes three promises, for each idle watch
 * and again for each of its batches.
 */
export interface ListeningWatch<E> extends Watch<E> {
  /** Whether nothing more can be read. */
  readonly over: boolean;
  /** Returns all events that can be read now, or undefined. If the watch failed, one read throws. */
  tryBatch(): readonly E[] | undefined;
  /**
   * Instead of a pending read: calls the listener once when there may be something to read. The caller then also has to end the
   * watch itself: the signal with which it was opened no longer has an effect.
   */
  listen(listener: Listener): void;
}

export function isListening<E>(watch: Watch<E>): watch is ListeningWatch<E> {
  return 'listen' in watch;
}
