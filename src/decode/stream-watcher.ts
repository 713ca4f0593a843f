import { isWatchError } from '../watch/errors.ts';
import { type Status, toStatus } from '../watch/event.ts';
import { type PullSource, PullWatch } from '../watch/pull-watch.ts';

/** Something that yields decoded events one by one. Upstream: `watch.Decoder`. */
export interface Decoder<E> {
  /** The next event; undefined at the end of the stream. Called again only after the last call has settled. */
  decode(): Promise<E | undefined>;
  /** An event that can be had without waiting, or undefined. Throws what `decode` would reject with. Not called during a `decode`. */
  poll?(): E | undefined;
  /** Nothing more will be asked for: let go of the source. A pending `decode` must settle; how, does not matter. */
  close(): void;
}

/** How a {@link StreamWatcher} tells its consumer of a failure. */
export interface StreamWatcherOptions {
  /** Makes the `object` of the ERROR event; default: a Status of 413 for FRAME_TOO_LARGE, else of 500 InternalError. If it throws, the watch rejects with that instead. */
  reportError?: ((error: unknown) => object) | undefined;
}

const BROKEN_CODE =
  /^(ECONNRESET|ECONNABORTED|EPIPE|ETIMEDOUT|UND_ERR_SOCKET|UND_ERR_\w+_TIMEOUT|ERR_STREAM_PREMATURE_CLOSE|ERR_HTTP2_GOAWAY_SESSION)$/;
// What a fetch body fails with in undici, Chromium, Firefox, and Safari (two). They have no code, so the text must do.
const BROKEN_FETCH = /^(terminated$|network ?error|error in input stream|load failed|the network connection)/i;
const CAUSES_DEEP = 5;

/**
 * Whether an error means that the connection broke or timed out, so that watching again is all there is to do: Node's and undici's
 * codes, a `TimeoutError`, and the TypeErrors by which browsers report a broken response body. Looks through up to five causes.
 * A refused connection is not broken: it never was. Upstream: `IsProbableEOF` and `IsTimeout`.
 */
export function isBrokenConnection(error: unknown): boolean {
  let at = error as { code?: unknown; name?: unknown; message?: unknown; cause?: unknown } | null | undefined;
  for (let depth = 0; depth <= CAUSES_DEEP && typeof at === 'object' && at !== null; depth++) {
    if (at.name === 'TimeoutError' || BROKEN_CODE.test(String(at.code))) return true;
    if (at.name === 'TypeError' && BROKEN_FETCH.test(String(at.message))) return true;
    at = at.cause as typeof at;
  }
  return false;
}

/**
 * The {@link Status} of a stream that could not be decoded: 413 RequestEntityTooLarge for FRAME_TOO_LARGE, else 500 InternalError;
 * with the causes UnexpectedServerResponse and ClientWatchDecoding. Upstream: `NewClientErrorReporter`.
 */
export function errorToStatus(error: unknown): Status {
  const what = (error as Partial<Error> | null | undefined)?.message ?? String(error);
  const message = `cannot decode the watch stream: ${what}`;
  const causes = ['UnexpectedServerResponse', 'ClientWatchDecoding'].map((reason) => ({ reason, message: what }));
  const tooLarge = isWatchError(error, 'FRAME_TOO_LARGE');
  const [code, reason] = tooLarge ? ([413, 'RequestEntityTooLarge'] as const) : ([500, 'InternalError'] as const);
  return toStatus({ code, reason, message, details: { causes } });
}

/**
 * A decoder as a source of events. It closes its decoder once, whoever comes first:
 *
 *     open --end of stream, broken connection--> closed, done
 *       |----any other error-------------------> closed, one ERROR event, then done
 *       `----stop, return----------------------> closed, done, whatever a pending decode still brings
 */
class DecoderSource<E> implements PullSource<E> {
  private readonly decoder: Decoder<E>;
  private readonly reportError: (error: unknown) => object;
  private failure: { error: unknown } | undefined = undefined;
  private closed: boolean = false;

  constructor(decoder: Decoder<E>, reportError: (error: unknown) => object) {
    this.decoder = decoder;
    this.reportError = reportError;
  }

  poll(): E | undefined {
    if (this.closed || this.failure) return undefined;
    try {
      return this.decoder.poll?.();
    } catch (error) {
      // Left to the pull that follows: a throw from here would cost a batch the events it has already.
      this.failure = { error };
      return undefined;
    }
  }

  async pull(): Promise<IteratorResult<E, undefined>> {
    const done = { done: true, value: undefined } as const;
    if (this.closed) return done;
    try {
      if (this.failure) throw this.failure.error;
      const value = await this.decoder.decode();
      return value === undefined ? done : { done: false, value };
    } catch (error) {
      if (this.closed || isBrokenConnection(error)) return done;
      this.cancel();
      return { done: false, value: { type: 'ERROR', object: this.reportError(error) } as E };
    }
  }

  cancel(): void {
    if (this.closed) return;
    this.closed = true;
    try {
      this.decoder.close();
    } catch {
      // The watch is over either way, and its consumer could do nothing about it.
    }
  }
}

/**
 * A {@link Decoder} as a watch. It reads nothing ahead: each event is asked for by a read, so backpressure reaches the source.
 *
 * - The end of the stream and a broken connection (reset, cut short, timed out) end it without a word; watch again.
 * - Any other error is exactly one ERROR event, and then the end.
 * - `stop` is as final as `return`: nothing is delivered after it, neither an event that is there already nor an error.
 * - The decoder is closed exactly once, at whichever end.
 *
 * Upstream: `watch.StreamWatcher`, `NewStreamWatcher`.
 */
export class StreamWatcher<E> extends PullWatch<E> {
  constructor(decoder: Decoder<E>, options: StreamWatcherOptions = {}) {
    super(new DecoderSource(decoder, options.reportError ?? errorToStatus));
  }

  protected override end(): void {
    this.discard();
  }
}
