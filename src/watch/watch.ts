/**
 * The port that everything here speaks: a stream of events that its consumer can stop. It is its own async iterator.
 *
 * Who may do what, and what the other side then must do:
 * - A watch has **one consumer**. It may read with `next`, `for await`, `tryNext` or `batches`, mixed as it likes.
 * - Only the consumer calls `stop` or `return`. A producer that fails hands out one ERROR event, or an error, and ends.
 * - The end is the only "no more" signal: `done: true`, and from then on for ever.
 * - A consumer that goes away must say so: `break` out of `for await` does, and so do `using`, an abort and `stop`.
 *
 * Upstream: `watch.Interface`, whose `ResultChan` is this iterator.
 */
export interface Watch<E> {
  /** The next event. Several reads may pend: they are served first come, first served. Rejects once if the watch failed. */
  next(): Promise<IteratorResult<E, undefined>>;
  /** What `break` calls: stops, discards what is queued, and settles every pending read with `done`. */
  return(): Promise<IteratorResult<E, undefined>>;
  /** The next event if one is queued, else undefined; never waits. Throws once if the watch failed. */
  tryNext(): E | undefined;
  /** Reads all that is queued at once; where `onGap` tells of a gap, a batch ends before it. The arrays are shared with other watchers: read only. Leaving the loop stops the watch. */
  batches(): WatchBatches<E>;
  /** No event after this is queued; what is queued stays readable, then done. Idempotent. */
  stop(): void;
  /** Whether nothing will be queued any more: it was stopped, cut or failed, or its source has ended. */
  readonly stopped: boolean;
  /** Events that can be read without waiting, but for the ERROR that says why the watch was cut. */
  readonly queued: number;
  /** Events this watcher did not get, in all; with `coalesce`, those folded into a later one. */
  readonly dropped: number;
  [Symbol.asyncIterator](): Watch<E>;
  /** The same as `return()`, for `using`. */
  [Symbol.dispose](): void;
  /** The same as `return()`, for `await using`. */
  [Symbol.asyncDispose](): Promise<void>;
}

/** The iterator of {@link Watch.batches}: each value is a non-empty, read-only array. */
export interface WatchBatches<E> {
  next(): Promise<IteratorResult<readonly E[], undefined>>;
  return(): Promise<IteratorResult<readonly E[], undefined>>;
  [Symbol.asyncIterator](): WatchBatches<E>;
  [Symbol.dispose](): void;
  [Symbol.asyncDispose](): Promise<void>;
}
