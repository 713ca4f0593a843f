import { type Form, LINE, RECORD, toBytes } from '../events/forms.ts';
import type { Served, Sink } from '../hub/connection.ts';
import type { Ending } from '../protocol.ts';
import { type Beginning, PIECE_BYTES, toMark, toPieces, toPreface } from './http-head.ts';
import { IN_BUN, IN_WORKERS, type Outbound } from './stall.ts';

const EMPTY_LINE: Uint8Array = new Uint8Array([10]);

/**
 * A response body. Bytes that its reader has not taken stay in the stream's queue: at most `maxBufferedBytes` and one slice.
 *
 *     write --> queue --> reader        room: desiredSize > 0;  pull: there is room again;  cancel: the reader has gone
 */
export class FetchSink implements Sink, Outbound {
  readonly form: Form;
  readonly stream: ReadableStream<Uint8Array>;
  private readonly beginning: Beginning;
  private readonly maxBufferedBytes: number;
  private readonly isWhole: boolean;
  private controller: ReadableStreamDefaultController<Uint8Array> | undefined = undefined;
  private session: Served | undefined = undefined;
  private ending: boolean = false;
  private closed: boolean = false;

  /** `isWhole`: the body is complete, and nothing may be added to it. */
  constructor({
    sse,
    bookmarks,
    maxBufferedBytes,
    isWhole = false,
  }: Beginning & { maxBufferedBytes: number; isWhole?: boolean }) {
    this.beginning = { sse, bookmarks };
    this.isWhole = isWhole;
    this.form = sse ? RECORD : LINE;
    this.maxBufferedBytes = maxBufferedBytes;
    this.stream = new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          this.controller = controller;
        },
        pull: () => this.pulled(),
        cancel: () => {
          this.closed = true;
          this.session?.gone();
        },
      },
      { highWaterMark: maxBufferedBytes, size: (bytes) => bytes.byteLength },
    );
  }

  get bufferedBytes(): number {
    return this.closed ? 0 : this.maxBufferedBytes - (this.controller?.desiredSize ?? this.maxBufferedBytes);
  }

  get writableLength(): number {
    return this.bufferedBytes;
  }

  opened(session: Served): void {
    this.session = session;
    // Bun sends the head together with the first byte of the body.
    const preface = toPreface(this.beginning, session.version) || (IN_BUN && !this.isWhole ? ' ' : '');
    if (preface !== '') this.write(toBytes(preface, this.form));
  }

  mark(version: string): void {
    if (this.beginning.sse) this.write(toBytes(toMark(version), this.form));
    // Workers notice that a client has left only when they write to it. Readers of lines skip an empty one.
    else if (IN_WORKERS) this.write(EMPTY_LINE);
  }

  write(bytes: Uint8Array): boolean {
    if (this.closed) return false;
    const { controller } = this;
    if (bytes.length <= PIECE_BYTES) controller?.enqueue(bytes);
    else for (const piece of toPieces(bytes)) controller?.enqueue(piece);
    return (controller?.desiredSize ?? 0) > 0;
  }

  end(_how: Ending, retryMs: number | undefined): void {
    if (this.beginning.sse && retryMs !== undefined) this.write(toBytes(`retry: ${retryMs}\n\n`, this.form));
    this.ending = true;
    this.pulled();
  }

  destroy(): void {
    if (this.closed) return;
    this.closed = true;
    this.controller?.error(new Error('the server no longer waits for this client'));
  }

  /** The reader has taken something, so there is room. */
  private pulled(): void {
    if (this.ending && !this.closed && this.bufferedBytes === 0) {
      this.closed = true;
      this.controller?.close();
      this.session?.gone();
    } else {
      this.session?.relieved();
    }
  }
}

/** Ends a session with its request, and keeps that: on Node, the signal of a request that was collected never aborts. */
export function endWith(request: Request, session: Served, sink: FetchSink): void {
  const onAbort = (): void => {
    session.gone();
    // Most hosts cancel the body in this same turn. For the others, error it, but only then: an error before the cancel is
    // logged.
    queueMicrotask(() => sink.destroy());
  };
  request.signal.addEventListener('abort', onAbort, { once: true });
  session.whenOver(() => request.signal.removeEventListener('abort', onAbort));
}
