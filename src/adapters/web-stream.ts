import { PullWatch } from '../watch/pull-watch.ts';
import type { Watch } from '../watch/watch.ts';

/** How much {@link toReadableStream} reads ahead. */
export interface ReadableStreamOptions {
  /** Events that the stream takes out of the watch before they are read; default 0, so that they stay in the watch's own queue. */
  highWaterMark?: number | undefined;
}

/**
 * A watch as a web `ReadableStream` of events, each pulled when there is demand for it. Cancelling the stream returns the
 * watch; the end of the watch closes the stream, and its error errors the stream.
 */
export function toReadableStream<E>(watch: Watch<E>, options: ReadableStreamOptions = {}): ReadableStream<E> {
  return new ReadableStream<E>(
    {
      async pull(controller) {
        const { done, value } = await watch.next();
        if (done) controller.close();
        else controller.enqueue(value);
      },
      async cancel() {
        await watch.return();
      },
    },
    { highWaterMark: options.highWaterMark ?? 0 },
  );
}

/**
 * The chunks of a web `ReadableStream` as a watch. Locks the stream at once (a TypeError if it is locked), and pulls one chunk
 * per read, so backpressure reaches the source. `stop` and `return` cancel the stream, and what it has buffered itself goes
 * with it. At any end the lock is released. An error of the stream rejects one read.
 */
export function fromReadableStream<E>(stream: ReadableStream<E>): Watch<E> {
  const reader = stream.getReader();
  return new PullWatch<E>({
    pull: () => reader.read(),
    cancel() {
      reader.cancel().catch(() => {});
      reader.releaseLock();
    },
  });
}
