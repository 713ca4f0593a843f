/**
 * A framer finds the frames in a byte stream, whose chunks may be cut anywhere: inside a frame, a UTF-8 sequence or a line
 * terminator. It does no I/O and uses no promises: bytes go in by `push`, frames come out by `next`.
 *
 * - Order: frames come out in the order in which they went in. An oversize frame is reported in its place.
 * - Memory: a framer holds the chunk being read and the start of one unfinished frame, at most `maxFrameBytes` of it. A line
 *   without an end, or a length header of gigabytes, is refused before it is stored.
 * - Speed: a frame that lies in one chunk is a view of that chunk, not a copy. One that spans chunks is collected in a buffer
 *   that doubles as it fills, and is copied out unless it is lent. A long frame costs its length however it is cut.
 * - Oversize: an error, after which `next` continues after that frame; or, by option, the frame is skipped and counted.
 *
 *              at            end of frame
 *               v              v
 *     chunk  [ #|..............|........... ]        ....  the frame that `next` returns
 *                                                    ####  returned before
 *     buffer [ ==================......     ]        ====  the start of an unfinished frame: `buffered` bytes
 *
 * Invariants
 * - The frames do not depend on how the bytes are cut into chunks.
 * - `buffered <= maxFrameBytes`, except for one CR that may be the first half of a CRLF.
 * - After `next` has returned undefined, the framer no longer references the caller's bytes.
 * - `buffered` is 0 while a frame is being skipped.
 *
 * Upstream: the JSON and length-delimited frame readers. Their "short buffer" has no counterpart, because frames are never cut
 * here. The JSON reader finds values rather than lines, so it also accepts several values in one line, or one over several lines.
 * Kubernetes writes one per line.
 */

import { notLater } from '../watch/abort.ts';
import { callable, checkOptions, oneOf, WatchError, wholeNumber } from '../watch/errors.ts';

/** A push parser from bytes to frames. */
export interface Framer {
  /** Adds a chunk of bytes. The framer reads it in place, so do not modify it until `next` has returned undefined. */
  push(chunk: Uint8Array): void;
  /**
   * Returns the next complete frame, or undefined if more bytes are needed. The frame may be a view of the chunk: use or copy it
   * before that memory is reused. With `lent`, it may also be a view of the framer's own buffer, valid until the next call of any
   * method.
   *
   * @throws {WatchError} FRAME_TOO_LARGE in place of an oversize frame. The next call continues after it.
   */
  next(lent?: boolean): Uint8Array | undefined;
  /**
   * Ends the stream. Returns the unfinished last frame if this framing accepts it as complete. Call it once `next` returns
   * undefined.
   */
  end(): Uint8Array | undefined;
  /** Number of frames skipped because of `oversize: 'skip'`. */
  readonly skipped: number;
  /** Number of bytes held of an unfinished frame. */
  readonly buffered: number;
}

/** Options of a {@link Framer}. */
export interface FramerOptions {
  /** The longest frame, in bytes without its delimiter or header. A whole number >= 1; default 16 MiB (16,777,216). */
  maxFrameBytes?: number | undefined;
  /** What happens to a longer frame: `error` (default) throws FRAME_TOO_LARGE, `skip` skips it and counts it. */
  oversize?: 'error' | 'skip' | undefined;
  /** With `skip`: called as soon as a frame is known to be too long, with the error that `error` would have thrown. */
  onSkip?: ((error: WatchError) => void) | undefined;
}

const EMPTY: Uint8Array = new Uint8Array(0);
const LF = 10;
const CR = 13;
const FIRST_BUFFER = 1024;
/**
 * A buffer up to this size is reused for the next frame. A larger one is released, so that one long frame does not pin memory.
 */
const KEPT_BUFFER = 64 * 1024;

/** Node's Buffer, if it exists: its `indexOf` uses SIMD instructions and is ten times as fast as that of Uint8Array. */
const { Buffer: Wide } = globalThis as { Buffer?: { from(memory: ArrayBufferLike, at: number, length: number): Uint8Array } };

function searchable(chunk: Uint8Array): Uint8Array {
  return Wide === undefined || chunk instanceof (Wide as never) ? chunk : Wide.from(chunk.buffer, chunk.byteOffset, chunk.length);
}

/** The common part of both framings: the chunk being read, the start of an unfinished frame, and the limit. */
abstract class BufferedFramer implements Framer {
  skipped: number = 0;
  buffered: number = 0;
  protected chunk: Uint8Array = EMPTY;
  /** The same bytes as `chunk`. Never used for frames: `slice` copies a Uint8Array, but not a Buffer. */
  protected search: Uint8Array = EMPTY;
  protected at: number = 0;
  protected buffer: Uint8Array = EMPTY;
  /** Set by `scan`: whether the frame at `at` ends in this chunk, and its length as far as it is known. */
  protected whole: boolean = false;
  protected size: number = 0;
  private skipping: boolean = false;
  protected lent: boolean = false;
  private readonly limit: number;
  private readonly options: FramerOptions;

  constructor(options: FramerOptions = {}) {
    const names = ['maxFrameBytes', 'oversize', 'onSkip'] as const;
    const { maxFrameBytes = 16 * 1024 * 1024, oversize = 'error', onSkip } = checkOptions(options, names);
    this.limit = wholeNumber('maxFrameBytes', maxFrameBytes, 1);
    oneOf('oversize', oversize, ['error', 'skip']);
    callable('onSkip', onSkip);
    this.options = options;
  }

  /**
   * Examines the bytes from `at` on (at least one), and sets `whole` and `size`. Returns where the frame, or its part here, ends.
   */
  protected abstract scan(): number;
  /** Returns a frame without its delimiter, or undefined for a frame to skip. */
  protected abstract strip(frame: Uint8Array): Uint8Array | undefined;
  abstract end(): Uint8Array | undefined;

  push(chunk: Uint8Array): void {
    // Unread bytes remain only if the last chunk was not read to its end. Joining the two is slow, but correct.
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
      // Last, because this may throw, and the next call must continue after the frame.
      if (refused) this.refuse();
      if (frame !== undefined) return frame;
    }
    this.chunk = this.search = EMPTY;
    this.at = 0;
    return undefined;
  }

  /** Returns the frame that ends at `to`. From the buffer it is a copy, because the buffer is reused, or (`lent`) a view. */
  protected take(to: number): Uint8Array | undefined {
    if (this.buffered === 0) return this.strip(this.chunk.subarray(this.at, to));
    this.keep(to);
    const frame = this.lent ? this.buffer.subarray(0, this.buffered) : this.buffer.slice(0, this.buffered);
    this.forget();
    return this.strip(frame);
  }

  /** Appends the chunk up to `to` to the buffer. */
  private keep(to: number): undefined {
    const size = this.buffered + to - this.at;
    if (size > this.buffer.length) {
      const grown = new Uint8Array(Math.max(size, Math.min(this.limit, Math.max(FIRST_BUFFER, 2 * this.buffer.length))));
      grown.set(this.buffer.subarray(0, this.buffered));
      this.buffer = grown;
    }
    // Creating a view costs as much as copying a kilobyte, so a whole chunk is copied without one.
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
    notLater('onSkip', onSkip?.(error), 'nothing');
  }
}

/**
 * Finds frames that are lines, ended by LF or CRLF. Skips lines that contain only spaces, tabs and CRs. Removes a UTF-8 byte
 * order mark before the first line, although it counts towards that line's length. A last line without a terminator is a frame.
 *
 * @throws {WatchError} INVALID_ARGUMENT from the constructor, for an invalid option.
 */
export class NewlineFramer extends BufferedFramer {
  private started: boolean = false;

  protected scan(): number {
    const { chunk, at, buffer, buffered } = this;
    const eol = this.search.indexOf(LF, at);
    this.whole = eol >= 0;
    const to = this.whole ? eol : chunk.length;
    // A CR at the end does not count, because an LF may follow it, in this chunk or the next.
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
 * Finds frames that follow their length, 4 bytes big-endian. A length of 0 is an empty frame. A header or body that the end of
 * the stream cuts short is dropped. Upstream: the framing of `application/vnd.kubernetes.protobuf;stream=watch`.
 *
 * @throws {WatchError} INVALID_ARGUMENT from the constructor, for an invalid option.
 */
export class LengthPrefixedFramer extends BufferedFramer {
  private headerBytes: number = 0;
  /** The value of the header read so far; then the number of body bytes still to come. */
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

/** Parts of at least this size are not joined until all are. */
const LONG_BYTES = 65_536;

/**
 * Adds a part. Joins short parts so that each is shorter than the one before: a view costs 100 bytes, and a peer may send single
 * bytes.
 */
export function hold(parts: Uint8Array[], bytes: Uint8Array): void {
  let last = bytes;
  for (let before = parts.at(-1); before && before.length <= last.length && last.length < LONG_BYTES; before = parts.at(-1)) {
    parts.pop();
    last = joined([before, last]);
  }
  parts.push(last);
}

export function joined(parts: readonly Uint8Array[]): Uint8Array {
  const [first = new Uint8Array(0), ...more] = parts;
  if (more.length === 0) return first;
  const all = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}
