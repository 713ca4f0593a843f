import { checkOptions, requireMethod } from '../watch/errors.ts';
import { PullWatch } from '../watch/pull-watch.ts';
import type { Watch } from '../watch/watch.ts';

/** Options of {@link toReadableStream}. */
export interface ReadableStreamOptions {
  /** Number of events the stream buffers ahead of its reader; default 0, so that they stay in the watch's own queue. */
  highWaterMark?: number | undefined;
}

/**
 * Returns a watch as a web `ReadableStream` of events, pulled on demand. Cancelling the stream returns the watch. The end of the
 * watch closes the stream, and an error of the watch errors it.
 *
 * @throws {WatchError} INVALID_ARGUMENT for anything but a watch, and for an unknown option.
 */
export function toReadableStream<E>(watch: Watch<E>, options: ReadableStreamOptions = {}): ReadableStream<E> {
  requireMethod('watch', watch, 'tryNext', 'a Watch');
  const { highWaterMark = 0 } = checkOptions(options, ['highWaterMark']);
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
    { highWaterMark },
  );
}

/**
 * Returns the chunks of a web `ReadableStream` as a watch. Locks the stream at once, and throws a TypeError if it is already
 * locked. Pulls one chunk per read, so backpressure reaches the source. `stop` and `return` cancel the stream, which drops what
 * it has buffered. The lock is released at any end. An error of the stream rejects one read.
 */
export function fromReadableStream<E>(stream: ReadableStream<E>): Watch<E> {
  const reader = requireMethod('stream', stream, 'getReader', 'a ReadableStream').getReader();
  return new PullWatch<E>({
    pull: () => reader.read(),
    cancel() {
      reader.cancel().catch(() => {});
      reader.releaseLock();
    },
  });
}
