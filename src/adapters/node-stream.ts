import { finished, Readable } from 'node:stream';
import { checkOptions, requireMethod } from '../watch/errors.ts';
import { PullWatch } from '../watch/pull-watch.ts';
import type { Watch } from '../watch/watch.ts';

/** Options of {@link toReadable}. */
export interface ReadableOptions {
  /** Number of events the stream buffers ahead of its reader; default Node's for object mode. */
  highWaterMark?: number | undefined;
}

/**
 * Returns a watch as a Node `Readable` in object mode. The stream reads the watch only while it is below `highWaterMark`. The
 * other events stay in the watch's own queue, under its overflow policy. Destroying the stream returns the watch, even while a
 * read is pending. The end of the watch ends the stream. An error of the watch destroys the stream with that error, which drops
 * what the stream has buffered, as always in Node. An event of `null` would end the stream.
 */
export function toReadable<E>(watch: Watch<E>, options: ReadableOptions = {}): Readable {
  requireMethod('watch', watch, 'tryNext', 'a Watch');
  return new Readable({
    ...checkOptions(options, ['highWaterMark']),
    objectMode: true,
    read() {
      // Pushes all available events in one turn. After a push, Node calls `read` again when it has room.
      let event = watch.tryNext();
      const some = event !== undefined;
      while (event !== undefined) event = this.push(event) ? watch.tryNext() : undefined;
      if (some) return;
      watch.next().then(
        ({ done, value }) => void (this.destroyed || this.push(done ? null : value)),
        (error: Error) => void this.destroy(error),
      );
    },
    destroy(error, callback) {
      watch.return().then(
        () => callback(error),
        (failure: Error) => callback(error ?? failure),
      );
    },
  });
}

/**
 * Returns the chunks of a Node `Readable` as a watch; in object mode these are its objects, except `undefined`. The stream
 * buffers no more than its `highWaterMark`, and a batch takes what it has buffered, so backpressure reaches the source. `stop`
 * and `return` destroy the stream and drop what it has buffered. A stream that has ended is not destroyed: a `Duplex`, such as a
 * socket, can still be written to. An error of the stream rejects one read, after the buffered chunks; so does a stream that was
 * destroyed before its end (`ERR_STREAM_PREMATURE_CLOSE`). After the end no listener stays on the stream.
 */
export function fromReadable<E>(readable: Readable): Watch<E> {
  requireMethod('readable', readable, 'read', 'a Node Readable');
  let wake = (): void => {};
  let over: { readonly error?: Error | null | undefined } | undefined;
  const onReadable = (): void => wake();
  // Also reports an end from before this call, and keeps an error from being uncaught while nobody reads.
  const unlisten = finished(readable, { writable: false }, (error) => {
    over ??= { error };
    readable.off('readable', onReadable);
    wake();
    if (!error || readable.closed) unlisten();
    else readable.once('close', unlisten);
  });
  readable.on('readable', onReadable);
  const read = (): E | undefined => readable.read() ?? undefined;
  // What the source has added during our own reads in this turn. A source that does so at every read would never end a batch.
  let added = 0;
  const poll = (): E | undefined => {
    const { readableLength: held, readableObjectMode: inObjects } = readable;
    if (held <= added) return undefined;
    const value = read();
    const more = readable.readableLength - (inObjects ? held - 1 : 0); // bytes are read all at once
    if (added === 0 && more > 0) {
      queueMicrotask(() => {
        added = 0;
      });
    }
    added = inObjects ? added + more : more;
    return value;
  };
  return new PullWatch<E>({
    poll,
    async pull() {
      for (;;) {
        const value = read();
        if (value !== undefined) return { done: false, value };
        if (over !== undefined) {
          if (over.error) throw over.error;
          return { done: true, value: undefined };
        }
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    },
    cancel() {
      over ??= {};
      readable.off('readable', onReadable);
      // At its own end a stream destroys itself, and a duplex may still write.
      if (!readable.readableEnded) readable.destroy();
      wake();
    },
  });
}
