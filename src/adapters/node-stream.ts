import { finished, Readable } from 'node:stream';
import { PullWatch } from '../watch/pull-watch.ts';
import type { Watch } from '../watch/watch.ts';

/** How much {@link toReadable} reads ahead. */
export interface ReadableOptions {
  /** Events that the stream takes out of the watch before they are read; default: Node's for object mode. */
  highWaterMark?: number | undefined;
}

/**
 * A watch as a Node `Readable` in object mode. It reads the watch only while there is room below `highWaterMark`; the rest
 * stays in the watch's own queue, under its overflow policy. Destroying the stream returns the watch, also while a read
 * waits; the end of the watch ends the stream, and its error destroys the stream with that error, and what the stream
 * has buffered goes with it, as Node has it. An event of `null` would end the stream.
 */
export function toReadable<E>(watch: Watch<E>, options: ReadableOptions = {}): Readable {
  return new Readable({
    ...options,
    objectMode: true,
    read() {
      // What is there already goes out in one turn; after a push, Node asks again when it has room.
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
 * The chunks of a Node `Readable` as a watch; in object mode these are its objects. The stream fills its own buffer up to its
 * `highWaterMark` and no further, so backpressure reaches the source. `stop` and `return` destroy the stream, and what it has
 * buffered goes with it. Its error rejects one read, behind what was buffered; so does a stream that was destroyed before its
 * end (`ERR_STREAM_PREMATURE_CLOSE`). After the end no listener stays on the stream.
 */
export function fromReadable<E>(readable: Readable): Watch<E> {
  let wake = (): void => {};
  let over: { readonly error?: Error | null | undefined } | undefined;
  const onReadable = (): void => wake();
  // Also hears of an end that was before we came, and keeps an error while nobody reads from being an uncaught one.
  const unlisten = finished(readable, { writable: false }, (error) => {
    over ??= { error };
    readable.off('readable', onReadable);
    wake();
    if (readable.closed) unlisten();
    else readable.once('close', unlisten);
  });
  readable.on('readable', onReadable);
  const poll = (): E | undefined => readable.read() ?? undefined;
  return new PullWatch<E>({
    poll,
    async pull() {
      for (;;) {
        const value = poll();
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
      readable.destroy();
      wake();
    },
  });
}
