import { callable, checkOptions, invalid, isWatchError, whyOf } from '../watch/errors.ts';
import { type Status, toStatus } from '../watch/event.ts';
import { PullWatch } from '../watch/pull-watch.ts';
import { done } from '../watch/reader.ts';

/** A source of decoded events. Upstream: `watch.Decoder`. */
export interface Decoder<E> {
  /** Resolves with the next event, or undefined at the end of the stream. Not called again before the last call has settled. */
  decode(): Promise<E | undefined>;
  /**
   * Returns an event that is available now, or undefined. Throws what `decode` would reject with. Never called during a `decode`.
   */
  poll?(): E | undefined;
  /** Releases the source; no more events are requested. A pending `decode` must settle, with any outcome. */
  close(): void;
}

/** Options of a {@link StreamWatcher}. */
export interface StreamWatcherOptions {
  /**
   * Creates the `object` of the ERROR event. Default: a Status with code 413 for FRAME_TOO_LARGE, otherwise 500 InternalError. If
   * it throws, the watch rejects with that error instead.
   */
  reportError?: ((error: unknown) => object) | undefined;
}

const BROKEN_CODE =
  /^(ECONNRESET|ECONNABORTED|EPIPE|ETIMEDOUT|Z_BUF_ERROR|UND_ERR_SOCKET|UND_ERR_\w+_TIMEOUT|ERR_STREAM_PREMATURE_CLOSE|ERR_HTTP2_GOAWAY_SESSION)$/;
// The errors of a fetch body in undici, Chromium, Firefox and Safari (two). They have no code, so the text has to do.
const BROKEN_FETCH = /^(terminated$|network ?error|error in input stream|load failed|the network connection)/i;
// Undici also terminates a body whose bytes are bad. Its cause is then an error of zlib, zstd, brotli or the HTTP parser. They
// may also say that the connection broke: Z_BUF_ERROR is an unexpected end, and so is HPE_INVALID_EOF_STATE, which some releases
// call "HTTPParserError: ... (Invalid EOF state)".
const BAD_BYTES = /^(Z(?!_BUF)|H(?!.*EOF)|ERR__)/;

interface Failure {
  readonly name?: unknown;
  readonly message?: unknown;
  readonly code?: unknown;
  readonly cause?: Failure | null | undefined;
}

/**
 * Whether an error means that the connection broke or timed out, so that the remedy is to watch again. Recognizes the codes of
 * Node and undici, a `TimeoutError`, and the TypeErrors with which `fetch` reports a broken response body, unless its cause says
 * that the bytes were bad. Examines up to five nested causes. A refused connection does not count. Upstream: `IsProbableEOF`
 * and `IsTimeout`.
 */
export function isBrokenConnection(error: unknown): boolean {
  let at = error as Failure | null | undefined;
  // The error, and five nested causes.
  for (let depth = 6; at && depth--; at = at.cause) {
    if (at.name === 'TimeoutError' || BROKEN_CODE.test(String(at.code))) return true;
    if (at.name === 'TypeError' && BROKEN_FETCH.test(String(at.message)))
      return !BAD_BYTES.test(String(at.cause?.code ?? at.cause));
  }
  return false;
}

/**
 * Creates the {@link Status} of a stream that could not be decoded: 413 RequestEntityTooLarge for FRAME_TOO_LARGE, otherwise 500
 * InternalError, with the causes UnexpectedServerResponse and ClientWatchDecoding. Upstream: `NewClientErrorReporter`.
 */
export function errorToStatus(error: unknown): Status {
  const what = whyOf(error);
  const message = `cannot decode the watch stream: ${what}`;
  const causes = ['UnexpectedServerResponse', 'ClientWatchDecoding'].map((reason) => ({ reason, message: what }));
  const tooLarge = isWatchError(error, 'FRAME_TOO_LARGE');
  const [code, reason] = tooLarge ? ([413, 'RequestEntityTooLarge'] as const) : ([500, 'InternalError'] as const);
  return toStatus({ code, reason, message, details: { causes } });
}

/**
 * A watch over the events of a {@link Decoder}. Nothing is read ahead, so backpressure reaches the source.
 *
 * - The end of the stream and a broken connection (reset, cut short, timed out) end the watch without an error. Watch again.
 * - Any other error produces exactly one ERROR event, then the end. So does a request that you abort: to leave, stop the watch,
 *   which cancels the source.
 * - `stop` is as final as `return`: afterwards the watch delivers neither events nor errors.
 * - The decoder is closed exactly once, whichever end comes first:
 *
 *       open --end of stream, broken connection--> closed, done
 *         |----any other error-------------------> one ERROR event, closed, done
 *         `----stop, return----------------------> closed, done, whatever a pending decode still returns
 *
 * Upstream: `watch.StreamWatcher`, `NewStreamWatcher`.
 */
export class StreamWatcher<E> extends PullWatch<E> {
  private readonly reportError: (error: unknown) => object;

  /** @throws {WatchError} INVALID_ARGUMENT if `decoder` has no `decode`: a stream of bytes, for example, is not a decoder. */
  constructor(decoder: Decoder<E>, options: StreamWatcherOptions = {}) {
    super({
      async pull() {
        const value = await decoder.decode();
        return value === undefined ? done() : { done: false, value };
      },
      poll: () => decoder.poll?.(),
      cancel: () => decoder.close(),
    });
    if (typeof decoder?.decode !== 'function') throw invalid('decoder', decoder, 'a Decoder (see toDecoder)');
    this.reportError = callable('reportError', checkOptions(options, ['reportError']).reportError) ?? errorToStatus;
  }

  protected override failed(error: unknown): void {
    if (!this.stopped && !isBrokenConnection(error)) {
      try {
        const event = { type: 'ERROR', object: this.reportError(error) } as E;
        if (!this.stopped) this.held = event; // reportError is user code, and may have stopped the watch
      } catch (worse) {
        super.failed(worse);
      }
    }
    this.finish();
  }

  protected override end(): void {
    this.discard();
  }
}
