import { invalid } from '../../watch/errors.ts';
import { isStatus, type Status, type WatchEvent } from '../../watch/event.ts';
import type { AdmissionOptions, Caller, ConnectionOptions } from '../hub/admission/admission.ts';
import type { Sink } from '../hub/connection.ts';
import type { Hub } from '../hub/hub.ts';
import type { Admitted } from '../hub/hub-core.ts';
import { COMMON_OPTIONS, channelOfHost, Serving } from './serving.ts';
import { guardStalls } from './stall.ts';

/** A client's request, as your own transport knows it. `R` is what the hooks get. */
export interface ConnectionRequest<R = unknown> {
  /** What `authenticate`, `watchOptions` and the other hooks get. */
  readonly request: R;
  /**
   * What the client asks for, as the query of a URL without its `?`: `resourceVersion=V&allowWatchBookmarks=true`. PROTOCOL.md
   * lists the parameters. Default: empty, so the client starts with the snapshot, the replay, or live events.
   */
  readonly search?: string | undefined;
  /** The client's address, for `maxClientsPerAddress` and statistics. Default: empty, which is unknown and not counted. */
  readonly address?: string | undefined;
  /** The origin of the web page that connects, for `allowedOrigins`. Default: none, so the client is not a page. */
  readonly origin?: string | undefined;
  /** The host and port that the client asked for. Without `allowedOrigins`, the origin must match it. */
  readonly host?: string | undefined;
  /** Aborts if the client leaves. It matters only until the hooks have decided; later, call the session's `gone`. */
  readonly signal?: AbortSignal | undefined;
}

/** Options of {@link createConnectionHandler}. Its {@link Sink} decides how many bytes a connection may buffer. */
export interface ConnectionHandlerOptions<R = unknown, I = unknown, E extends WatchEvent = WatchEvent>
  extends Omit<ConnectionOptions, 'maxBufferedBytes'>,
    AdmissionOptions<R, I, E> {
  /** The transport's name in statistics and notices; default `custom`. */
  readonly transport?: string | undefined;
}

/** Serves one client, or refuses it; see {@link createConnectionHandler}. */
export type ConnectionHandler<R = unknown> = (sink: Sink, request: ConnectionRequest<R>) => Promise<Status | undefined>;

/**
 * Connects a hub to a transport of your own. Call the handler once per client, with a {@link Sink} that writes to its connection.
 *
 *     const serve = createConnectionHandler(hub, { transport: 'tcp' });
 *     const refusal = await serve(new TcpSink(socket), { request: socket, address: socket.remoteAddress });
 *     if (refusal !== undefined) socket.end(JSON.stringify(refusal));
 *
 * It asks the hooks, reserves a place, decides where in the stream the client starts, and calls the sink's `opened`. If the hooks
 * return no promises, all of that happens before the handler returns.
 *
 * The handler resolves to undefined once the client is served, or has left. Otherwise it resolves to the Status of the refusal, and
 * the sink is not used: 400 for an invalid query; 401, 403 and 503 as in {@link AdmissionOptions}; 410 for a version that is too
 * old; 503 if the hub is full or shutting down; 204, which is not a failure, if the stream has ended and the client has all of
 * it. Tell the client, and close the connection.
 *
 * `stallTimeoutMs` uses the sink's `bufferedBytes`: a client is cut if nothing leaves the connection for that long.
 *
 * @throws {WatchError} INVALID_ARGUMENT for anything but a hub, and for an invalid option. The handler rejects with it for anything
 * but a sink and a request.
 */
export function createConnectionHandler<R = unknown, I = unknown, E extends WatchEvent = WatchEvent>(
  hub: Hub<E>,
  options: ConnectionHandlerOptions<R, I, E> = {},
): ConnectionHandler<R> {
  const handler = new Connections<R, I>(hub, options);
  return (sink, request) => handler.handle(sink, request);
}

class Connections<R, I> extends Serving<R, I> {
  private readonly transport: string;

  constructor(hub: unknown, options: { readonly transport?: string | undefined }) {
    const names = [...COMMON_OPTIONS.filter((name) => name !== 'maxBufferedBytes'), 'transport'];
    super(hub, options, { names, channel: channelOfHost() });
    const { transport = 'custom' } = options;
    if (typeof transport !== 'string' || transport === '') throw invalid('transport', transport, 'a non-empty string');
    this.transport = transport;
  }

  async handle(sink: Sink, request: ConnectionRequest<R>): Promise<Status | undefined> {
    if (!isSink(sink)) throw invalid('sink', sink, 'an object with form, opened, write, end, destroy and bufferedBytes');
    if (typeof request !== 'object' || request === null) throw invalid('request', request, 'an object');
    const pending = this.admission.admit(toCaller(request));
    // No unnecessary await: a client whose hooks are synchronous is served within this turn.
    const verdict = pending instanceof Promise ? await pending : pending;
    if (verdict === undefined || isStatus(verdict)) return verdict;
    try {
      // It may have left while the hooks decided, and the signal was the last thing they looked at.
      return request.signal?.aborted ? undefined : this.open(sink, verdict);
    } finally {
      // Has no effect if a session has taken over the slot.
      verdict.reservation.release();
    }
  }

  private open(sink: Sink, admitted: Admitted): Status | undefined {
    const start = this.core.start(admitted.asked, admitted);
    if (isStatus(start)) return start;
    const session = this.core.open(sink, { ...admitted, start, transport: this.transport });
    const outbound = {
      get writableLength(): number {
        return session.bufferedBytes;
      },
    };
    guardStalls(session, outbound, this.stalls);
    return undefined;
  }
}

function toCaller<R>(asking: ConnectionRequest<R>): Caller<R> {
  const { request, search = '', address = '', origin, host, signal } = asking;
  return {
    request,
    address,
    origin,
    host,
    search,
    lastEventId: undefined,
    site: undefined,
    onGone: (callback) => {
      if (signal === undefined) return () => {};
      signal.addEventListener('abort', callback, { once: true });
      return () => signal.removeEventListener('abort', callback);
    },
  };
}

function isSink(value: unknown): value is Sink {
  const { form, opened, write, end, destroy, bufferedBytes } = (value ?? {}) as Partial<Sink>;
  const methods = [opened, write, end, destroy, form?.size, form?.put];
  return methods.every((method) => typeof method === 'function') && typeof bufferedBytes === 'number';
}
