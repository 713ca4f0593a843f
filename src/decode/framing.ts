/**
 * A byte stream has no seams: chunks come cut anywhere, inside a frame, a UTF-8 sequence or a line end. A framer finds the
 * frames again. It does no input and holds no promise: bytes go in by `push`, frames come out by `next`.
 *
 * - Order: frames come out as they went in; an oversize one is reported in its place, after the frames before it.
 * - Memory: what is held is the chunk being read and the start of one unfinished frame, never more than `maxFrameBytes` of it.
 *   A line without an end and a length header that promises gigabytes are refused before they are stored.
 * - Speed: a frame that lies in one chunk is a view on that chunk, not a copy. One that spans chunks is gathered in a buffer that
 *   doubles as it fills, and copied out of it unless it is only lent, so that a long frame costs its length however it is cut.
 * - Oversize: an error, after which `next` goes on behind that frame; or, by option, skipped and counted.
 *
 *              at            end of frame
 *               v              v
 *     chunk  [ #|..............|........... ]        ....  the frame that `next` hands out
 *                                                    ####  handed out before
 *     buffer [ ==================......     ]        ====  the start of a frame whose end has not come: `buffered` bytes
 *
 * Invariants
 * - The frames do not depend on how the bytes were cut into chunks.
 * - `buffered <= maxFrameBytes`, but for one CR that may turn out to be half of a line end.
 * - When `next` answers undefined, no byte of the caller's is referred to any more.
 * - `buffered` is 0 while a frame is being skipped.
 *
 * Upstream: the JSON and length-delimited frame readers; their "short buffer" has no counterpart, as a frame is never cut here.
 */
import { oneOf, WatchError, wholeNumber } from '../watch/errors.ts';

/** A push parser from bytes to frames. */
export interface Framer {
  /** Hands over bytes. The framer reads them in place, so leave them alone until `next` has answered undefined. */
  push(chunk: Uint8Array): void;
  /**
   * The next whole frame, or undefined when more bytes are needed. A frame may be a view on the chunk: use or copy it before that
   * memory is reused. With `lent`, it may also be a view on the framer's own buffer, good until the next call of whatever method.
   * Throws FRAME_TOO_LARGE in place of an oversize frame, and goes on behind it when called again.
   */
  next(lent?: boolean): Uint8Array | undefined;
  /** The stream has ended: the unfinished last frame, if this framing can take it for a whole one. Call it when `next` has nothing. */
  end(): Uint8Array | undefined;
  /** Frames passed over because of `oversize: 'skip'`. */
  readonly skipped: number;
  /** Bytes of an unfinished frame that are held. */
  readonly buffered: number;
}

/** The limits of a {@link Framer}. */
export interface FramerOptions {
  /** The longest frame, in bytes without its delimiter or header; a whole number from 1, default 16 MiB (16,777,216). */
  maxFrameBytes?: number | undefined;
  /** What becomes of a longer one: `error` (default) throws FRAME_TOO_LARGE, `skip` passes over it and counts it. */
  oversize?: 'error' | 'skip' | undefined;
  /** With `skip`: called as soon as a frame is known to be too long, with the error that `error` would have thrown. */
  onSkip?: ((error: WatchError) => void) | undefined;
}

const EMPTY: Uint8Array = new Uint8Array(0);
const LF = 10;
const CR = 13;
const FIRST_BUFFER = 1024;
/** A buffer up to this size is used again for the next frame; a larger one is let go, so that one long frame pins no memory. */
const KEPT_BUFFER = 64 * 1024;

/** Node's Buffer, where there is one: it looks for a byte with the processor's wide registers, ten times as fast as a Uint8Array. */
const { Buffer: Wide } = globalThis as { Buffer?: { from(memory: ArrayBufferLike, at: number, length: number): Uint8Array } };

function searchable(chunk: Uint8Array): Uint8Array {
  return Wide === undefined || chunk instanceof (Wide as never) ? chunk : Wide.from(chunk.buffer, chunk.byteOffset, chunk.length);
}

/** What both framings share: the chunk being read, the start of an unfinished frame, and the limit. */
abstract class BufferedFramer implements Framer {
  skipped: number = 0;
  buffered: number = 0;
  protected chunk: Uint8Array = EMPTY;
  /** The same bytes. A frame is never a view on this: what copies a Uint8Array does not copy a Buffer. */
  protected search: Uint8Array = EMPTY;
  protected at: number = 0;
  protected buffer: Uint8Array = EMPTY;
  /** Found by `scan`: whether the frame at `at` ends in this chunk, and its length as far as it is known. */
  protected whole: boolean = false;
  protected size: number = 0;
  private skipping: boolean = false;
  protected lent: boolean = false;
  private readonly limit: number;
  private readonly options: FramerOptions;

  constructor(options: FramerOptions = {}) {
    this.limit = wholeNumber('maxFrameBytes', options.maxFrameBytes ?? 16 * 1024 * 1024, 1);
    oneOf('oversize', options.oversize ?? 'error', ['error', 'skip']);
    this.options = options;
  }

  /** Looks at the bytes from `at` on, of which there is one at least; sets `whole` and `size`, answers how far the frame goes. */
  protected abstract scan(): number;
  /** A frame without its delimiter, or undefined for one that is passed over. */
  protected abstract strip(frame: Uint8Array): Uint8Array | undefined;
  abstract end(): Uint8Array | undefined;

  push(chunk: Uint8Array): void {
    // A rest is there only if the last chunk was not read to its end. Then this is slow, but right.
    this.chunk = this.at === this.chunk.length ? chunk : new Uint8Array([...this.chunk.subarray(this.at), ...chunk]);
    this.at = 0;
    this.search = searchable(this.chunk);
  }

  next(lent: boolean = false): Uint8Array | undefined {
    this.lent = lent;
    while (this.at < this.chunk.length) {
      const to = this.scan();
      const refused = !this.skipping && this.size > this.limit;
      if (refused) this.forget();
      this.skipping ||= refused;
      const frame = this.skipping ? undefined : this.whole ? this.take(to) : this.keep(to);
      this.at = to;
      if (this.whole) this.skipping = false;
      // After all else is settled: this may throw, and the next call goes on behind the frame.
      if (refused) this.refuse();
      if (frame !== undefined) return frame;
    }
    this.chunk = this.search = EMPTY;
    this.at = 0;
    return undefined;
  }

  /** The frame that ends at `to`. Out of the buffer it is a copy, as the buffer is used again, or a view that is lent. */
  protected take(to: number): Uint8Array | undefined {
    if (this.buffered === 0) return this.strip(this.chunk.subarray(this.at, to));
    this.keep(to);
    const frame = this.lent ? this.buffer.subarray(0, this.buffered) : this.buffer.slice(0, this.buffered);
    this.forget();
    return this.strip(frame);
  }

  /** Copies the chunk up to `to` behind what is buffered. */
  private keep(to: number): undefined {
    const size = this.buffered + to - this.at;
    if (size > this.buffer.length) {
      const grown = new Uint8Array(Math.max(size, Math.min(this.limit, Math.max(FIRST_BUFFER, 2 * this.buffer.length))));
      grown.set(this.buffer.subarray(0, this.buffered));
      this.buffer = grown;
    }
    // A view costs as much as copying a kilobyte: none for a whole chunk.
    this.buffer.set(to - this.at === this.chunk.length ? this.chunk : this.chunk.subarray(this.at, to), this.buffered);
    this.buffered = size;
  }

  protected forget(): void {
    this.buffered = 0;
    if (this.buffer.length > KEPT_BUFFER) this.buffer = EMPTY;
  }

  private refuse(): void {
    const { oversize, onSkip } = this.options;
    const error = new WatchError('FRAME_TOO_LARGE', `frame longer than maxFrameBytes (${this.limit})`, { limit: this.limit });
    if (oversize !== 'skip') throw error;
    this.skipped++;
    onSkip?.(error);
  }
}

/**
 * Frames are lines. LF and CRLF end one; lines of nothing but spaces, tabs and CRs are passed over, and so is a UTF-8 byte order
 * mark before the first line (it does count towards that line's length). A last line without its end is a frame.
 */
export class NewlineFramer extends BufferedFramer {
  private started: boolean = false;

  protected scan(): number {
    const { chunk, at, buffer, buffered } = this;
    const eol = this.search.indexOf(LF, at);
    this.whole = eol >= 0;
    const to = this.whole ? eol : chunk.length;
    // A CR at the end does not count: an LF may follow it, in this chunk or the next.
    const last = to > at ? chunk[to - 1] : buffer[buffered - 1];
    this.size = buffered + to - at - (last === CR ? 1 : 0);
    return this.whole ? to + 1 : to;
  }

  protected strip(line: Uint8Array): Uint8Array | undefined {
    let start = 0;
    if (!this.started && line[0] === 0xef && line[1] === 0xbb && line[2] === 0xbf) start = 3;
    this.started = true;
    let end = line.length;
    if (line[end - 1] === LF) end--;
    if (line[end - 1] === CR) end--;
    for (let i = start; i < end; i++) {
      if (line[i] !== 32 && line[i] !== 9 && line[i] !== CR) return line.subarray(start, end);
    }
    return undefined;
  }

  end(): Uint8Array | undefined {
    this.lent = false;
    return this.take(this.at);
  }
}

/**
 * Frames are a length, as 4 bytes big-endian, and that many bytes; a length of 0 is a frame of no bytes. A header or a body that
 * the end of the stream cuts short is dropped. Upstream: the framing of `application/vnd.kubernetes.protobuf;stream=watch`.
 */
export class LengthPrefixedFramer extends BufferedFramer {
  private headerBytes: number = 0;
  /** Of the header, its value so far; then the bytes of the body that have not come. */
  private missing: number = 0;

  protected scan(): number {
    while (this.headerBytes < 4 && this.at < this.chunk.length) {
      this.headerBytes++;
      this.missing = this.missing * 256 + this.chunk[this.at++]!;
      this.size = this.missing;
    }
    const there = Math.min(this.missing, this.chunk.length - this.at);
    this.missing -= there;
    this.whole = this.headerBytes === 4 && this.missing === 0;
    if (this.whole) this.headerBytes = 0;
    return this.at + there;
  }

  protected strip(frame: Uint8Array): Uint8Array {
    return frame;
  }

  end(): undefined {
    this.forget();
  }
}
