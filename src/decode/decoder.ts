import { callable, checkOptions, invalid, oneOf } from '../watch/errors.ts';
import type { WatchEvent } from '../watch/event.ts';
import { quietly } from '../watch/failures.ts';
import { type Codec, jsonCodec } from './codec.ts';
import { type Framer, type FramerOptions, LengthPrefixedFramer, NewlineFramer } from './framing.ts';
import type { Decoder } from './stream-watcher.ts';

/** Like `NoInfer`, which exists only from TypeScript 5.4 on. The caller must state the event type; the context cannot know it. */
type Stated<E> = [E][E extends unknown ? 0 : never];

/**
 * A chunk of a source. Text is encoded as UTF-8, wherever it is cut into chunks. Half a surrogate pair at the end of the source is
 * dropped; before bytes it is refused.
 */
type Chunk = Uint8Array | string;

/**
 * A source of bytes: a web `ReadableStream` (the body of a `fetch`), a Node `Readable` (a socket, a file, stdin), or any async
 * iterable. Described structurally, so that it needs no types of the DOM or Node.
 */
export type ByteSource =
  | AsyncIterable<Chunk>
  | { getReader(): { read(): Promise<{ done: boolean; value?: Chunk | undefined }>; cancel(): Promise<unknown> } };

/** Options of {@link toDecoder}. */
export interface ToDecoderOptions<E> extends FramerOptions {
  /** How frames are delimited; default `newline`. */
  framing?: 'newline' | 'length-prefixed' | undefined;
  /** Decodes a frame into an event; default `jsonCodec()`. */
  codec?: Codec<E> | undefined;
}

/** A {@link Decoder} over bytes. After an error in a single frame, the next call continues after that frame. */
export interface ByteDecoder<E> extends Decoder<E> {
  poll(): E | undefined;
  /** Number of frames skipped because of `oversize: 'skip'`. */
  readonly skipped: number;
}

interface Input {
  read(): Promise<{ done?: boolean | undefined; value?: unknown }>;
  cancel(): unknown;
}

function open(source: ByteSource): Input {
  const { getReader, on, destroy, [Symbol.asyncIterator]: iterate } = (source ?? {}) as Partial<Record<PropertyKey, unknown>>;
  if (typeof getReader === 'function') {
    // Not read as an iterator: its `return` would wait for a pending read, and `cancel` does not.
    const reader: Input = getReader.call(source);
    return reader;
  }
  if (typeof iterate !== 'function') throw invalid('source', source, 'an async iterable of bytes or a ReadableStream');
  const iterator: AsyncIterator<unknown> = iterate.call(source);
  // A Node stream without an error listener crashes the process if it fails between two reads or after the last one.
  if (typeof on === 'function') on.call(source, 'error', () => {});
  const cancel = typeof destroy === 'function' ? () => destroy.call(source) : () => iterator.return?.();
  return { read: () => iterator.next(), cancel };
}

/**
 * Like {@link toDecoder}, but given a framer and a codec, so that code that needs one kind of frames does not import the other.
 */
export function decoderOf<E>(source: ByteSource, framer: Framer, codec: Codec<E>): ByteDecoder<E> {
  const input = open(source);
  let over = false;
  /** Half a surrogate pair at the end of a text. */
  let half = '';
  let failure: { readonly error: unknown } | undefined;
  let release: ((nothing: undefined) => void) | undefined;

  const toBytes = (chunk: unknown): Uint8Array => {
    if (typeof chunk === 'string') {
      const text = half + chunk;
      // The first half of a pair begins with these six bits.
      const end = text.length - +(text.charCodeAt(text.length - 1) >> 10 === 0b110110);
      half = text.slice(end);
      return new TextEncoder().encode(text.slice(0, end));
    }
    // Not `instanceof`, because bytes may come from another realm.
    if (!half && (chunk as Partial<Uint8Array> | undefined)?.[Symbol.toStringTag] === 'Uint8Array') return chunk as Uint8Array;
    throw invalid('chunk', chunk, 'bytes (a Uint8Array) or a string');
  };

  const poll = (): E | undefined => {
    while (!over) {
      const frame = framer.next(true); // codecs must not keep the bytes
      if (frame === undefined) return undefined;
      const event = codec.decode(frame);
      if (event !== undefined) return event;
    }
    return undefined;
  };

  /** Returns the event in a last line without a line end. */
  const last = (): E | undefined => {
    over = true;
    const frame = framer.end();
    try {
      return frame && codec.decode(frame);
    } catch (error) {
      if (!failure && codec.isWhole?.(frame!)) throw error;
      return undefined; // the end of the stream cut it off
    }
  };

  /** Reads until there is an event. After `close`, discards what it reads. */
  const advance = async (): Promise<E | undefined> => {
    for (;;) {
      const event = poll();
      if (event !== undefined) return event;
      if (failure) {
        const { error } = failure;
        failure = undefined;
        throw error;
      }
      if (over) return undefined;
      let read: Awaited<ReturnType<Input['read']>>;
      try {
        read = await input.read();
      } catch (error) {
        if (over) return undefined;
        failure = { error }; // reported once: some sources would fail again at each read
        const event = last();
        if (event !== undefined) return event;
        continue;
      }
      if (over) return undefined;
      if (read.done) return last();
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
      failure = undefined;
      if (over) return;
      over = true;
      release?.(undefined);
      quietly(() => input.cancel()); // a failure no longer matters
    },
  };
}

/**
 * Creates a {@link Decoder} over a source of bytes. It decodes one frame per event, and only on demand. If the end of the stream
 * cuts off the last frame, that frame is dropped. A last line without a line end counts if it can be decoded, even if the source
 * then fails. If it cannot, it was cut off, unless the stream has ended and the codec knows better ({@link Codec.isWhole}), as
 * `jsonCodec` does.
 *
 * `decode` rejects with FRAME_TOO_LARGE, with what the codec throws (INVALID_FRAME), with INVALID_ARGUMENT for a chunk that is
 * not bytes, and with the source's own error, which ends the decoder. `close` settles a pending `decode` with undefined at once,
 * and cancels the source: `cancel` of a web stream, `destroy` of a Node stream, `return` of an iterator.
 *
 *     new StreamWatcher(toDecoder<ObjectEvent<Pod>>(response.body))
 *
 * @throws {WatchError} INVALID_ARGUMENT for an invalid source or option; TypeError (the host's) for a locked web stream.
 */
export function toDecoder<E = WatchEvent>(source: ByteSource, options: ToDecoderOptions<E> = {}): ByteDecoder<Stated<E>> {
  const names = ['framing', 'codec', 'maxFrameBytes', 'oversize', 'onSkip'] as const;
  const { framing = 'newline', codec = jsonCodec() as Codec<unknown> as Codec<E>, ...framer } = checkOptions(options, names);
  oneOf('framing', framing, ['newline', 'length-prefixed']);
  callable('codec', codec?.decode ?? codec);
  const frames = framing === 'newline' ? new NewlineFramer(framer) : new LengthPrefixedFramer(framer);
  return decoderOf(source, frames, codec as Codec<unknown> as Codec<Stated<E>>);
}
