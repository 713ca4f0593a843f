import type { Form } from './forms.ts';
import { chunked, LINE, RECORD, toBytes } from './forms.ts';
import type { Beginning } from './http-head.ts';
import { toMark, toPreface } from './http-head.ts';
import type { Ending } from './protocol.ts';
import type { Served, Sink } from './sink.ts';

/** A stream of bytes with an inside that fills up: a socket, or a response. */
export interface ByteStream {
  readonly writableLength: number;
  readonly destroyed: boolean;
  write(bytes: Uint8Array): boolean;
  on(event: 'drain', listener: () => void): unknown;
  off(event: 'drain', listener: () => void): unknown;
  /** A socket's: closes it after what waits in it. */
  destroySoon?(): void;
}

/** A response, as far as its end goes. */
export interface EndableResponse {
  end(): unknown;
  destroy(): unknown;
  /** What compressing middleware adds: without it, it keeps what it was given. */
  flush?(): void;
}

/**
 * Whether a response has closed already: it tells that once, and this was too late to hear. One of HTTP/2 has no word for it,
 * but its stream has.
 */
export function hasClosed(response: { readonly destroyed: boolean; readonly stream?: { readonly destroyed: boolean } }): boolean {
  return response.destroyed || response.stream?.destroyed === true;
}

/** Into what, and how, a sink writes. */
export interface HttpSinkOptions extends Beginning {
  readonly maxBufferedBytes: number;
  readonly response: EndableResponse;
  /** The response itself, or the socket under it. */
  readonly stream: ByteStream;
  /** The stream is the socket: chunks are framed here. */
  readonly direct: boolean;
  /** Somebody, such as compressing middleware, stands before the stream's `write`: what waits with them is in none of its numbers. */
  readonly wrapped: boolean;
}

const CHUNKED_LINE: Form = chunked(LINE);
const CHUNKED_RECORD: Form = chunked(RECORD);

/** An HTTP stream, or SSE, over node:http and what looks like it. */
export class HttpSink implements Sink {
  readonly form: Form;
  private readonly stream: ByteStream;
  private readonly direct: boolean;
  private readonly wrapped: boolean;
  private readonly maxBufferedBytes: number;
  /** Bytes written since the stream last had room. No more than those can wait in it. */
  private sinceRoom: number = 0;
  private listening: boolean = false;
  private session: Served | undefined = undefined;
  private readonly response: EndableResponse;
  private readonly beginning: Beginning;

  constructor({ stream, response, direct, wrapped, maxBufferedBytes, sse, bookmarks }: HttpSinkOptions) {
    this.stream = stream;
    this.response = response;
    this.direct = direct;
    this.wrapped = wrapped;
    this.maxBufferedBytes = maxBufferedBytes;
    this.beginning = { sse, bookmarks };
    this.form = sse ? (direct ? CHUNKED_RECORD : RECORD) : direct ? CHUNKED_LINE : LINE;
  }

  get bufferedBytes(): number {
    return this.stream.writableLength;
  }

  opened(session: Served): void {
    this.session = session;
    session.whenOver(this);
    const preface = toPreface(this.beginning, session.version);
    if (preface === '') return;
    this.stream.write(toBytes(preface, this.form));
    if (!this.direct) this.response.flush?.();
  }

  /** The session is over. */
  leave(): void {
    if (this.listening) this.stream.off('drain', this.onDrain);
  }

  mark(version: string): void {
    if (this.beginning.sse) this.write(toBytes(toMark(version), this.form));
  }

  write(bytes: Uint8Array): boolean {
    const { stream } = this;
    if (stream.destroyed) return false;
    // Who wraps it may say nothing.
    const room = stream.write(bytes) !== false;
    if (!this.direct) this.response.flush?.();
    this.sinceRoom = room ? 0 : this.sinceRoom + bytes.length;
    // A stream tells of its drain only if it has said that it was full.
    if (room || (this.wrapped ? this.sinceRoom : stream.writableLength) < this.maxBufferedBytes) return true;
    // Once: who wraps `on` need not wrap `off`.
    if (!this.listening) stream.on('drain', this.onDrain);
    this.listening = true;
    return false;
  }

  end(how: Ending, retryMs: number | undefined): void {
    if (this.beginning.sse && retryMs !== undefined) this.stream.write(toBytes(`retry: ${retryMs}\n\n`, this.form));
    // A response without its last chunk: it is the server that ends here, and not the stream.
    if (this.direct && how === 'goingAway') this.stream.destroySoon?.();
    else this.response.end();
  }

  destroy(): void {
    this.response.destroy();
  }

  private readonly onDrain = (): void => {
    this.sinceRoom = 0;
    this.session?.relieved();
  };
}
