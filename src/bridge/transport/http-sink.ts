import { ServerResponse } from 'node:http';
import { chunked, type Form, LINE, RECORD, toBytes } from '../events/forms.ts';
import type { Served, Sink } from '../hub/connection.ts';
import type { Ending } from '../protocol.ts';
import { type Beginning, toMark, toPieces, toPreface } from './http-head.ts';

/** A stream of bytes with a buffer: a socket, or a response. */
export interface ByteStream {
  readonly writableLength: number;
  readonly destroyed: boolean;
  write(bytes: Uint8Array): boolean;
  on(event: 'drain', listener: () => void): unknown;
  off(event: 'drain', listener: () => void): unknown;
  /** Only sockets: closes the socket after its buffered bytes are sent. */
  destroySoon?(): void;
}

interface EndableResponse {
  end(): unknown;
  destroy(): unknown;
  /** Added by compression middleware, which buffers everything until this is called. */
  flush?(): void;
  /** The stream under an HTTP/2 response. */
  readonly stream?: { _writev?: unknown };
}

/**
 * Whether a response has already closed; `close` is emitted only once. An HTTP/2 response does not say so, but its stream does.
 */
export function hasClosed(response: { readonly destroyed: boolean; readonly stream?: { readonly destroyed: boolean } }): boolean {
  return response.destroyed || response.stream?.destroyed === true;
}

interface HttpSinkOptions extends Beginning {
  readonly maxBufferedBytes: number;
  readonly response: EndableResponse;
  /** The response itself, or its socket. */
  readonly stream: ByteStream;
  /** The stream is the socket, so this sink frames the chunks. */
  readonly direct: boolean;
  /** Something such as compression middleware wraps `write`, so the stream's counters do not include what it buffers. */
  readonly wrapped: boolean;
}

/** How a sink writes. Nearly all sinks of a server write in the same way, so they share this. */
interface WriteMode extends Omit<HttpSinkOptions, 'response' | 'stream'> {
  readonly form: Form;
  /** Whether to write in pieces: an HTTP/2 stream reports its progress by whole writes only. */
  readonly pieces: boolean;
}

let last: WriteMode | undefined;

function writeModeOf({ response, direct, wrapped, sse, bookmarks, maxBufferedBytes }: HttpSinkOptions): WriteMode {
  const pieces = typeof response.stream?._writev === 'function';
  const form = sse ? (direct ? CHUNKED_RECORD : RECORD) : direct ? CHUNKED_LINE : LINE;
  const writeMode: WriteMode = { form, direct, wrapped, pieces, sse, bookmarks, maxBufferedBytes };
  const isLast = Object.entries(writeMode).every(([name, value]) => last?.[name as keyof WriteMode] === value);
  if (!isLast) last = writeMode;
  return last as WriteMode;
}

const CHUNKED_LINE: Form = chunked(LINE);
const CHUNKED_RECORD: Form = chunked(RECORD);

/** Writes an HTTP stream or SSE to a node:http response or a compatible one. */
export class HttpSink implements Sink {
  private readonly stream: ByteStream;
  private readonly response: EndableResponse;
  private readonly writeMode: WriteMode;
  /** Bytes written since the stream last had room: an upper bound for what is buffered. */
  private sinceRoom: number = 0;
  private session: Served | undefined = undefined;
  /** Created at the first backpressure. */
  private onDrain: (() => void) | undefined = undefined;

  constructor(options: HttpSinkOptions) {
    const { stream, response } = options;
    this.stream = stream;
    this.response = response;
    this.writeMode = writeModeOf(options);
    // Without this, Node would join everything that is buffered into one write, and report no progress until all of it is gone.
    if (this.writeMode.pieces) (response.stream as { _writev: unknown })._writev = null;
  }

  get form(): Form {
    return this.writeMode.form;
  }

  get bufferedBytes(): number {
    return this.stream.writableLength;
  }

  opened(session: Served): void {
    this.session = session;
    const { sse, bookmarks, direct } = this.writeMode;
    const preface = toPreface({ sse, bookmarks }, session.version);
    if (preface === '') return;
    this.stream.write(toBytes(preface, this.form));
    if (!direct) this.response.flush?.();
  }

  leave(): void {
    if (this.onDrain) this.stream.off('drain', this.onDrain);
  }

  mark(version: string): void {
    if (this.writeMode.sse) this.write(toBytes(toMark(version), this.form));
  }

  write(bytes: Uint8Array): boolean {
    const { stream } = this;
    const { direct, wrapped, maxBufferedBytes } = this.writeMode;
    if (stream.destroyed) return false;
    const room = this.pass(bytes);
    if (!direct) this.response.flush?.();
    this.sinceRoom = room ? 0 : this.sinceRoom + bytes.length;
    // A stream emits `drain` only after `write` has returned false.
    if (room || (wrapped ? this.sinceRoom : stream.writableLength) < maxBufferedBytes) return true;
    // Only once, because a wrapper of `on` may not wrap `off`.
    if (this.onDrain === undefined) this.listen();
    return false;
  }

  private listen(): void {
    this.onDrain = () => {
      this.sinceRoom = 0;
      this.session?.relieved();
    };
    this.stream.on('drain', this.onDrain);
    this.session?.whenOver(this);
  }

  private pass(bytes: Uint8Array): boolean {
    const { stream } = this;
    // A wrapper may return nothing.
    if (!this.writeMode.pieces) return stream.write(bytes) !== false;
    let room = true;
    for (const piece of toPieces(bytes)) room = stream.write(piece) !== false;
    return room;
  }

  end(how: Ending, retryMs: number | undefined): void {
    const { sse, direct } = this.writeMode;
    if (sse && retryMs !== undefined) this.stream.write(toBytes(`retry: ${retryMs}\n\n`, this.form));
    // Omits the last chunk, so that the client does not mistake this for the end of the stream.
    if (direct && how === 'goingAway') this.stream.destroySoon?.();
    else this.response.end();
  }

  destroy(): void {
    this.response.destroy();
  }
}

/** Whether bytes written to the socket equal those written to the response: chunked, and not transformed by anyone. */
export function isPlain(response: ServerResponse): boolean {
  const { socket } = response;
  return (
    response instanceof ServerResponse &&
    socket !== null &&
    response.chunkedEncoding &&
    response.write === ServerResponse.prototype.write &&
    response.end === ServerResponse.prototype.end &&
    !response.hasHeader('content-encoding') &&
    response.writableCorked === 0 &&
    // The headers are being sent, and nothing else waits inside the response.
    response.writableLength === socket.writableLength
  );
}
