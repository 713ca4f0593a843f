import { callable, invalid, oneOf } from '../watch/errors.ts';
import type { WatchEvent } from '../watch/event.ts';
import { type Codec, jsonCodec } from './codec.ts';
import { type Framer, type FramerOptions, LengthPrefixedFramer, NewlineFramer } from './framing.ts';
import type { Decoder } from './stream-watcher.ts';

/** `NoInfer`, which TypeScript has from 5.4 on only: what a source bears is the caller's word, not to be guessed from the context. */
type Stated<E> = [E][E extends unknown ? 0 : never];

/** What a chunk of a source may be; text is taken as UTF-8. */
type Chunk = Uint8Array | string;

/**
 * Where bytes come from: a web `ReadableStream` (the body of a `fetch`), a Node `Readable` (a socket, a file, stdin), or any async
 * iterable. Described by shape, so that neither the DOM's nor Node's types are needed.
 */
export type ByteSource =
  | AsyncIterable<Chunk>
  | { getReader(): { read(): Promise<{ done: boolean; value?: Chunk | undefined }>; cancel(): Promise<unknown> } };

/** How {@link toDecoder} reads its source. */
export interface ToDecoderOptions<E> extends FramerOptions {
  /** What stands between two frames; default `newline`. */
  framing?: 'newline' | 'length-prefixed' | undefined;
  /** How a frame becomes an event; default `jsonCodec()`. */
  codec?: Codec<E> | undefined;
}

/** A {@link Decoder} over bytes. An error that a single frame caused is not the end: the next call goes on behind that frame. */
export interface ByteDecoder<E> extends Decoder<E> {
  poll(): E | undefined;
  /** Frames passed over because of `oversize: 'skip'`. */
  readonly skipped: number;
}

interface Input {
  read(): Promise<{ done?: boolean | undefined; value?: unknown }>;
  cancel(): unknown;
}

function open(source: ByteSource): Input {
  const { getReader, on, destroy, [Symbol.asyncIterator]: iterate } = (source ?? {}) as Partial<Record<PropertyKey, unknown>>;
  if (typeof getReader === 'function') {
    // Not iterated even where it could be: the iterator's `return` would wait for a read that pends, `cancel` does not.
    const reader: Input = getReader.call(source);
    return reader;
  }
  if (typeof iterate !== 'function') throw invalid('source', source, 'an async iterable of bytes or a ReadableStream');
  const iterator: AsyncIterator<unknown> = iterate.call(source);
  // A Node stream crashes the process if it fails while nobody listens, as between two reads or after the last one.
  if (typeof on === 'function') on.call(source, 'error', () => {});
  const cancel = typeof destroy === 'function' ? () => destroy.call(source) : () => iterator.return?.();
  return { read: () => iterator.next(), cancel };
}

function toBytes(chunk: unknown): Uint8Array {
  if (typeof chunk === 'string') return new TextEncoder().encode(chunk);
  // By its tag, as bytes from another realm are no instance of this one's Uint8Array.
  if ((chunk as Partial<Uint8Array> | undefined)?.[Symbol.toStringTag] === 'Uint8Array') return chunk as Uint8Array;
  throw invalid('chunk', chunk, 'bytes (a Uint8Array) or a string');
}

/** What the end of a stream leaves in its framer. A last frame that was cut off is a silent end. */
function decodeLast<E>(framer: Framer, codec: Codec<E>): E | undefined {
  const frame = framer.end();
  try {
    return frame && codec.decode(frame);
  } catch {
    return undefined;
  }
}

function createDecoder<E>(input: Input, framer: Framer, codec: Codec<E>): ByteDecoder<E> {
  let over = false;
  let release: ((nothing: undefined) => void) | undefined;

  const poll = (): E | undefined => {
    while (!over) {
      const frame = framer.next(true); // a codec may not keep the bytes either
      if (frame === undefined) return undefined;
      const event = codec.decode(frame);
      if (event !== undefined) return event;
    }
    return undefined;
  };

  /** Reads until there is an event. What it brings after `close` goes nowhere. */
  const advance = async (): Promise<E | undefined> => {
    for (;;) {
      const event = poll();
      if (event !== undefined || over) return event;
      let read: Awaited<ReturnType<Input['read']>>;
      try {
        read = await input.read();
      } catch (error) {
        over = true; // some sources would fail again at every read
        throw error;
      }
      if (over) return undefined;
      if (read.done) {
        over = true;
        return decodeLast(framer, codec);
      }
      framer.push(toBytes(read.value));
    }
  };

  return {
    get skipped() {
      return framer.skipped;
    },
    poll,
    decode: () =>
      new Promise((resolve, reject) => {
        release = resolve;
        advance().then(resolve, reject);
      }),
    close: () => {
      if (over) return;
      over = true;
      release?.(undefined);
      // Nobody is left to hear that a source would not be cancelled.
      new Promise((resolve) => resolve(input.cancel())).catch(() => {});
    },
  };
}

/**
 * A {@link Decoder} over a source of bytes: framed, then decoded, one frame per event and only when one is asked for. A last frame
 * that the end of the stream cut short is dropped; a last line without its line end counts if it decodes.
 *
 * `decode` rejects with FRAME_TOO_LARGE, with what the codec throws (INVALID_FRAME), with INVALID_ARGUMENT for a chunk that is not
 * bytes, and with the source's own error, which ends it. `close` settles a pending `decode` with undefined at once and cancels the
 * source: `cancel` of a web stream, `destroy` of a Node stream, `return` of an iterator.
 *
 * INVALID_ARGUMENT for a source or an option of the wrong kind; a web stream that is locked throws the host's TypeError.
 *
 *     new StreamWatcher(toDecoder<ObjectEvent<Pod>>(response.body))
 */
export function toDecoder<E = WatchEvent>(source: ByteSource, options: ToDecoderOptions<E> = {}): ByteDecoder<Stated<E>> {
  const { framing = 'newline', codec = jsonCodec() as Codec<unknown> as Codec<E> } = options;
  oneOf('framing', framing, ['newline', 'length-prefixed']);
  callable('codec', codec?.decode ?? codec);
  const framer = framing === 'newline' ? new NewlineFramer(options) : new LengthPrefixedFramer(options);
  return createDecoder(open(source), framer, codec as Codec<unknown> as Codec<Stated<E>>);
}
