/**
 * gRPC's frames: a byte that says whether the message is compressed, four bytes of length, the message. A message that exceeds
 * the limit is not kept, and many small chunks are joined into few.
 */

import type { ClientHttp2Stream, IncomingHttpHeaders } from 'node:http2';
import { hold, joined } from '../../../decode/framing.ts';
import { isWatchError, WatchError } from '../../../watch/errors.ts';
import { internalError, refused, unavailable } from '../../statuses.ts';

const HEAD_BYTES = 5;

/** A message with its header. */
export function toFrame(message: Uint8Array): Uint8Array {
  const frame = Buffer.allocUnsafe(HEAD_BYTES + message.length);
  frame[0] = 0;
  frame.writeUInt32BE(message.length, 1);
  frame.set(message, HEAD_BYTES);
  return frame;
}

/** Takes chunks, and gives messages. */
export class FrameReader {
  readonly #maxBytes: number;
  #chunks: Uint8Array[] = [];
  #bytes: number = 0;
  /** How many bytes the next frame has, once its header has come. */
  #wanted: number = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** How many bytes wait for the rest of their frame, or for a reader. */
  get pendingBytes(): number {
    return this.#bytes;
  }

  push(chunk: Uint8Array): void {
    hold(this.#chunks, chunk);
    this.#bytes += chunk.length;
  }

  /**
   * The next message, if it is complete.
   *
   * @throws {WatchError} FRAME_TOO_LARGE if it is longer than allowed, INVALID_FRAME if it is compressed, unrequested.
   */
  read(): Uint8Array | undefined {
    if (this.#wanted === 0 && !this.#readHead()) return undefined;
    if (this.#bytes < this.#wanted) return undefined;
    const whole = joined(this.#chunks);
    const frame = whole.subarray(0, this.#wanted);
    this.#chunks = whole.length > frame.length ? [whole.subarray(frame.length)] : [];
    this.#bytes = whole.length - frame.length;
    this.#wanted = 0;
    return frame.subarray(HEAD_BYTES);
  }

  #readHead(): boolean {
    if (this.#bytes < HEAD_BYTES) return false;
    if ((this.#chunks[0] as Uint8Array).length < HEAD_BYTES) this.#chunks = [joined(this.#chunks)];
    const head = this.#chunks[0] as Uint8Array;
    if (head[0] !== 0) throw new WatchError('INVALID_FRAME', "etcd's answer is compressed, or it is not gRPC");
    const length = new DataView(head.buffer, head.byteOffset, HEAD_BYTES).getUint32(1);
    if (length > this.#maxBytes) throw tooLong(this.#maxBytes);
    this.#wanted = HEAD_BYTES + length;
    return true;
  }
}

function tooLong(maxBytes: number): WatchError {
  return new WatchError('FRAME_TOO_LARGE', `etcd's answer is longer than maxResponseBytes (${maxBytes})`, { limit: maxBytes });
}

/** NGHTTP2_CANCEL */
const CANCEL = 8;
/** NGHTTP2_REFUSED_STREAM: the server has not processed the request. */
const REFUSED_STREAM = 7;
/** How many received bytes may wait to be read before the server is held back, in addition to HTTP/2's window. */
const HIGH_BYTES = 1_048_576;

/** The result of a read: a message, or how the call has ended. `undefined` as failure means the status OK. */
export type Read = { readonly message: Uint8Array } | { readonly ended: Failure | undefined };

interface CallStreamOptions {
  readonly maxBytes: number;
  readonly onEnd: () => void;
  /** What an error of the stream says, or what it leaves out. */
  readonly reasonOf: (error: Error) => string;
}

/**
 * One call on an HTTP/2 connection: messages out, messages in, and how it ended. A unary call has one message each way.
 *
 *     write ---> [ HTTP/2 stream ] ---> chunks -> FrameReader -> read()
 *                                       '-- held back while more than a few messages wait to be read
 *
 * It ends once: by its status, by an error, or by `cancel`. After that, nothing is pending, and no listener does anything.
 */
export class CallStream {
  readonly #stream: ClientHttp2Stream;
  readonly #frames: FrameReader;
  readonly #onEnd: () => void;
  #headers: IncomingHttpHeaders | undefined;
  #trailers: IncomingHttpHeaders | undefined;
  #waiting: ((read: Read) => void) | undefined;
  /** Resolves a unary call; its message, once it has come. */
  #whole: ((outcome: Outcome) => void) | undefined;
  #first: Uint8Array | undefined;
  #ended: { readonly failure: Failure | undefined } | undefined;

  constructor(stream: ClientHttp2Stream, { maxBytes, onEnd, reasonOf }: CallStreamOptions) {
    this.#stream = stream;
    this.#frames = new FrameReader(maxBytes);
    this.#onEnd = onEnd;
    stream.on('response', (headers) => this.#responded(headers));
    stream.on('trailers', (trailers) => {
      this.#trailers = trailers;
      if (stream.readableEnded) this.#finish(this.#status());
    });
    stream.on('data', (chunk: Uint8Array) => this.#received(chunk));
    // The trailers may come after the end of the data.
    stream.on('end', () => this.#hasStatus && this.#finish(this.#status()));
    stream.on('error', (error) => this.#finish(this.#broken(reasonOf(error))));
    stream.on('close', () => this.#finish(this.#status()));
  }

  /** Whether it has ended. Messages that came before may still be read. */
  get ended(): boolean {
    return this.#ended !== undefined;
  }

  write(message: Uint8Array): void {
    if (!this.ended) this.#stream.write(toFrame(message));
  }

  /** Sends the last message. */
  end(message: Uint8Array): void {
    this.#stream.end(toFrame(message));
  }

  /** Resolves with the message of a unary call, if its status is OK. Used instead of reads. */
  whole(): Promise<Outcome> {
    return new Promise((resolve) => {
      this.#whole = resolve;
      if (this.#ended) this.#settle(this.#ended.failure);
    });
  }

  /** Resolves with the next message or the end. One read at a time. */
  read(): Promise<Read> {
    const ready = this.poll();
    if (ready) return Promise.resolve(ready);
    return new Promise((resolve) => {
      this.#waiting = resolve;
    });
  }

  /** The next message or the end, if it has come. */
  poll(): Read | undefined {
    const message = this.#next();
    if (message) return { message };
    return this.#ended && { ended: this.#ended.failure };
  }

  /** Ends the call. Messages that have not been read are dropped. */
  cancel(failure?: Failure): void {
    this.#finish(failure ?? { code: 1, message: 'cancelled', sent: true });
    this.#stream.close(CANCEL);
  }

  #next(): Uint8Array | undefined {
    if (this.#ended?.failure?.error) return undefined;
    try {
      const message = this.#frames.read();
      // However much waits, it may be less than one message, whose rest must come.
      const needsMore = message === undefined || this.#frames.pendingBytes < HIGH_BYTES;
      if (needsMore && !this.ended && this.#stream.isPaused()) this.#stream.resume();
      return message;
    } catch (error) {
      const unreadable = isWatchError(error) ? error : undefined;
      this.cancel({ code: CODE.resourceExhausted, message: String(error), sent: true, error: unreadable as WatchError });
      return undefined;
    }
  }

  /** Refuses a response that is not gRPC, so that it is not read as messages. */
  #responded(headers: IncomingHttpHeaders): void {
    this.#headers = headers;
    const httpStatus = headers[':status'] as number | undefined;
    if (httpStatus === 200 && headers['content-type']?.startsWith('application/grpc')) return;
    this.cancel(this.#broken(`an HTTP ${httpStatus} answer that is not gRPC: is it etcd?`));
  }

  #received(chunk: Uint8Array): void {
    if (this.ended) return;
    this.#frames.push(chunk);
    if (this.#whole) {
      // Anything after the first message is dropped.
      for (let message = this.#next(); message; message = this.#next()) this.#first ??= message;
      return;
    }
    const waiting = this.#waiting;
    const message = waiting && this.#next();
    if (waiting && message) {
      this.#waiting = undefined;
      waiting({ message });
    }
    // Nobody is waiting, and there is enough to read: hold the server back.
    if (!this.ended && !this.#waiting && this.#frames.pendingBytes >= HIGH_BYTES) this.#stream.pause();
  }

  #finish(failure: Failure | undefined): void {
    if (this.#ended) return;
    this.#ended = { failure };
    this.#onEnd();
    if (this.#whole) this.#settle(failure);
    const waiting = this.#waiting;
    this.#waiting = undefined;
    waiting?.({ ended: failure });
  }

  #settle(failure: Failure | undefined): void {
    const answer = failure ? undefined : (this.#first ?? this.#next());
    const missing = { code: 13, message: 'an answer without a message', sent: true };
    this.#whole?.(answer ? { answer } : { failure: failure ?? missing });
    this.#whole = undefined;
  }

  get #hasStatus(): boolean {
    return this.#said('grpc-status') !== undefined;
  }

  #said(name: 'grpc-status' | 'grpc-message'): string | string[] | undefined {
    return this.#trailers?.[name] ?? this.#headers?.[name];
  }

  /** The status that the server reports at the end of an answer. */
  #status(): Failure | undefined {
    const status = this.#said('grpc-status');
    if (status === undefined) return this.#broken('the connection broke, or the answer ended, without a status');
    if (status === '0') return undefined;
    return { code: Number(status) || 2, message: toMessage(this.#said('grpc-message')), sent: true };
  }

  #broken(message: string): Failure {
    // A stream without an id was never sent.
    const sent = this.#stream.id !== undefined && this.#stream.rstCode !== REFUSED_STREAM;
    return { code: CODE.unavailable, message, sent };
  }
}

/** gRPC percent-encodes messages, as in URLs. */
function toMessage(text: string | string[] | undefined): string {
  const message = String(text ?? '').slice(0, 1_000);
  try {
    return decodeURIComponent(message);
  } catch {
    return message;
  }
}

/** The gRPC codes that are treated specially. */
export const CODE = {
  invalidArgument: 3,
  deadlineExceeded: 4,
  notFound: 5,
  permissionDenied: 7,
  resourceExhausted: 8,
  failedPrecondition: 9,
  outOfRange: 11,
  unimplemented: 12,
  unavailable: 14,
  dataLoss: 15,
  unauthenticated: 16,
} as const;

/**
 * A request that fails with one of these has not been executed. Others, such as `unknown` and `cancelled`, may come while a write
 * is under way.
 */
const NOT_DONE: ReadonlySet<number> = new Set([
  CODE.invalidArgument,
  CODE.notFound,
  CODE.permissionDenied,
  CODE.resourceExhausted,
  CODE.failedPrecondition,
  CODE.outOfRange,
  CODE.unimplemented,
  // From an etcd whose alarm says that it is damaged: it applies nothing.
  CODE.dataLoss,
  CODE.unauthenticated,
]);

export interface Failure {
  /** A gRPC code. A connection that breaks is `unavailable`. */
  readonly code: number;
  readonly message: string;
  /** Whether etcd may have received the request, and may have executed it. */
  readonly sent: boolean;
  /** The error to throw if gRPC itself did not fail, but the answer cannot be read. */
  readonly error?: WatchError | undefined;
}

/** An answer, or a failure. A call rejects only with the reason of its signal. */
export type Outcome = { readonly answer: Uint8Array } | { readonly failure: Failure };

/** Whether another member, or the same one later, may succeed. */
export function isPassing({ code, error, message }: Failure): boolean {
  if (error) return false;
  return code === CODE.unavailable || code === CODE.deadlineExceeded || message.includes('too many requests');
}

/** Whether the request may have been executed although it failed. An answer that cannot be read is not a refusal. */
export function mayBeDone({ code, sent, error }: Failure): boolean {
  return sent && (error !== undefined || !NOT_DONE.has(code));
}

/** Whether the user's token has expired, or etcd has forgotten it, so that a new one helps. */
export function isStaleToken({ code, message }: Failure): boolean {
  return code === CODE.unauthenticated || /revision of auth store is old|user name is empty/.test(message);
}

/** Whether the requested revision has been compacted. */
export function isCompacted({ code, message }: Failure): boolean {
  return code === CODE.outOfRange && message.includes('compacted');
}

/** Whether the requested revision does not exist yet. */
export function isFuture({ code, message }: Failure): boolean {
  return code === CODE.outOfRange && message.includes('future revision');
}

/** The error that the caller gets for a failure. `what` names the request, and the key. */
export function toError(failure: Failure, { what, isWrite = false }: { what: string; isWrite?: boolean }): WatchError {
  const { message, error } = failure;
  const isUnsure = isWrite && mayBeDone(failure);
  const maybe = isUnsure ? '; it may have happened anyway' : '';
  if (error?.status) return error;
  if (error) return new WatchError(error.code, `${what}: ${error.message}${maybe}`, { limit: error.limit, cause: error });
  const text = `${what}: ${message}`;
  // A refusal would say that it has not been executed.
  if (isPassing(failure) || isUnsure) return new WatchError('TIMEOUT', `${text}${maybe}`);
  if (isOurs(failure)) return unavailable(text);
  // A request that is far too large is refused by etcd's transport.
  if (/request is too large|message larger than max/.test(message)) return refused(413, 'RequestEntityTooLarge', text);
  return internalError(text);
}

/** Whether etcd refuses this storage, rather than the particular request: its user, or any write, because it is full. */
function isOurs({ code, message }: Failure): boolean {
  if (code === CODE.permissionDenied || code === CODE.unauthenticated) return true;
  return /authentication failed|user name is empty|space exceeded|corrupt cluster/.test(message);
}
