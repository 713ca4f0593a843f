/**
 * The entry point `watchmux/fetch`: a hub for hosts that answer a `Request` with a `Response`, such as Hono, Deno and Bun. It
 * serves JSON lines or Server-Sent Events, and does not need Node.
 *
 *     const watch = createFetchHandler(hub);
 *     Deno.serve(watch);                                        // Bun.serve({ fetch: watch })
 *     app.get('/watch', (c) => watch(c.req.raw, c.env));        // Hono
 */
import { checkRequest } from '../watch/errors.ts';
import { isStatus, type Status, type WatchEvent } from '../watch/event.ts';
import type { AdmissionOptions, Caller, ConnectionOptions, Verdict } from './hub/admission/admission.ts';
import type { Hub } from './hub/hub.ts';
import type { Admitted } from './hub/hub-core.ts';
import type { Start } from './hub/hub-log.ts';
import { EVENT_STREAM, LAST_EVENT_ID } from './protocol.ts';
import { endWith, FetchSink } from './transport/fetch-sink.ts';
import {
  type Claimable,
  claimConnection,
  guardAnswer,
  isPipelined,
  mayRefuse,
  type Refusable,
  type WholeHttpAnswer,
} from './transport/http-connection.ts';
import { accepts, refusalBody, startOf, WEBSOCKET_KEY } from './transport/http-head.ts';
import { channelOfHost, HttpServing } from './transport/serving.ts';
import { guardStalls } from './transport/stall.ts';
import { dropBody, type WithBody } from './transport/unread-body.ts';

export type { Form } from './events/forms.ts';
export { LINE, RECORD } from './events/forms.ts';
export type { AdmissionOptions, ConnectionOptions, Identified } from './hub/admission/admission.ts';
export type { Cleanup, Served, Sink } from './hub/connection.ts';
export type { ClientOptions, HubOptions, HubStats, ShutdownOptions } from './hub/hub.ts';
export { Hub } from './hub/hub.ts';
export type { ConnectionHandler, ConnectionHandlerOptions, ConnectionRequest } from './transport/connection-handler.ts';
export { createConnectionHandler } from './transport/connection-handler.ts';
export type { Subprotocols } from './transport/http-head.ts';
export { readSubprotocols } from './transport/http-head.ts';

/**
 * Options of {@link createFetchHandler}. A `Request` does not contain its sender's address. Bun, Deno and @hono/node-server pass
 * it in a second argument; on other hosts, set `clientAddress` to limit clients by address.
 */
export interface FetchOptions<I = unknown, E extends WatchEvent = WatchEvent>
  extends ConnectionOptions,
    AdmissionOptions<Request, I, E> {
  /**
   * Headers to add to every stream. They replace the default ones: `{ 'cache-control': 'no-store' }`, without `no-transform`,
   * allows compression by middleware that flushes, such as Express' `compression`.
   */
  headers?: Readonly<Record<string, string>> | undefined;
}

/**
 * Creates a `(request) => response` handler that serves and refuses like `createHttpHandler`. It returns a promise only if a hook
 * of {@link AdmissionOptions} does. A client has left when the host cancels the response's body or aborts the request's signal.
 *
 * Cutting a client errors the response's body, which hosts log. Deno also logs, once, that the signal aborts even when a response
 * has ended normally; that is harmless here.
 *
 * Bun and Deno call the handler with a second argument. Pass it on if you call the handler yourself. It has the client's address,
 * and in Bun it exempts the watch from `idleTimeout` (10 s), after which Bun would close a quiet stream.
 *
 * If nothing is sent on a stream, only the host can notice that its client has vanished. On Node, let the server probe
 * connections: `createServer({ keepAlive: true, keepAliveInitialDelay: 60_000 }, listener)`.
 *
 * On Node, @hono/node-server passes node:http's request and response, in Hono as `c.env`: pass them on as well. They provide the
 * client's address, and make sure that a connection carries one watch and nothing else, as with `createHttpHandler`. Without
 * them, pipelined requests may keep their slots when their connection closes.
 *
 * @throws {WatchError} INVALID_ARGUMENT for anything but a hub, and for an invalid option; TypeError for an invalid header.
 */
export function createFetchHandler<I = unknown, E extends WatchEvent = WatchEvent>(
  hub: Hub<E>,
  options: FetchOptions<I, E> = {},
): (request: Request, host?: unknown) => Response | Promise<Response> {
  const handler = new FetchHandler<I>(hub, options, channelOfHost());
  return (request, host) => {
    checkRequest(request);
    return handler.handle(request, host ?? {});
  };
}

/** The used part of a handler's second argument: the server in Bun, information on the connection in Deno, node:http's in Hono. */
interface Host {
  readonly requestIP?: (request: Request) => { readonly address: string } | null;
  readonly timeout?: (request: Request, seconds: number) => void;
  readonly remoteAddr?: { readonly hostname?: string };
  readonly incoming?: WithBody;
  readonly outgoing?: Claimable & Refusable & WholeHttpAnswer;
}

/** The status of an answer that nobody reads, because the client has left. Some hosts log it, and know this number. */
const GONE = 499;

class FetchHandler<I> extends HttpServing<Request, I> {
  constructor(...[hub, options, channel]: ConstructorParameters<typeof HttpServing>) {
    super(hub, options, channel);
    new Headers(this.headers); // throws for invalid headers
  }

  handle(request: Request, via: Host): Response | Promise<Response> {
    const caller = this.whoAsks(toCaller(request, via));
    if (!this.claims(caller)) return new Response(null, { status: GONE });
    const { method, headers } = request;
    if (this.isPreflight(caller, method)) {
      const asked = headers.get('access-control-request-headers');
      return new Response(null, { status: 204, headers: this.preflightHeaders(caller, asked) });
    }
    const upgrade = { key: headers.get(WEBSOCKET_KEY), upgrade: headers.get('upgrade') };
    const refusal = this.refusalOf(method, { address: caller.address, ...upgrade });
    if (refusal !== undefined) return this.refuse(refusal, caller);
    const verdict = this.admission.admit(caller);
    if (!(verdict instanceof Promise)) return this.answer(caller, verdict);
    return verdict.then((late) => (late === undefined ? new Response(null, { status: GONE }) : this.answer(caller, late)));
  }

  /** Claims the connection, on Node. Returns false if it has been closed, because an earlier request of it is unanswered. */
  private claims({ via: { incoming, outgoing }, address }: Asking): boolean {
    if (typeof incoming?.socket?.destroy !== 'function' || typeof outgoing?.once !== 'function') return true;
    const refuse = (): void => this.refusePipelined(address);
    dropBody(incoming);
    if (!isPipelined(outgoing)) {
      claimConnection(outgoing, refuse);
      guardAnswer(outgoing, this.stalls);
      return true;
    }
    refuse();
    incoming.socket.destroy();
    return false;
  }

  private answer(caller: Asking, verdict: Verdict): Response {
    if (isStatus(verdict)) return this.refuse(verdict, caller);
    try {
      return this.begin(caller, verdict);
    } finally {
      // Has no effect if a session has taken over the slot. Frees it in all other cases, even if the host threw.
      verdict.reservation.release();
    }
  }

  private begin(caller: Asking, admitted: Admitted): Response {
    const { request, via } = caller;
    const sse = accepts(request.headers.get('accept'), EVENT_STREAM);
    const start = startOf(this.core, admitted, sse);
    if (isStatus(start)) return this.refuse(start, caller);
    const headers = this.streamHeaders(caller, sse);
    if (request.method === 'HEAD' || request.signal.aborted) return new Response(null, { headers });
    if (typeof via.timeout === 'function') via.timeout(request, 0);
    return new Response(this.serve(request, { ...admitted, start, sse }), { headers });
  }

  private serve(request: Request, client: Admitted & { start: Start; sse: boolean }): ReadableStream<Uint8Array> {
    const { sse, asked } = client;
    const bookmarks = asked.allowWatchBookmarks === true;
    const sink = new FetchSink({ sse, bookmarks, maxBufferedBytes: this.limits.maxBufferedBytes });
    const session = this.core.open(sink, { ...client, transport: sse ? 'sse' : 'http' });
    endWith(request, session, sink);
    guardStalls(session, sink, this.stalls);
    return sink.stream;
  }

  private refuse(status: Status, caller: Asking): Response {
    const { outgoing } = caller.via;
    if (typeof outgoing?.once === 'function' && !mayRefuse(outgoing)) return new Response(null, { status: GONE });
    // The client should retry on another connection, because a closing server waits for this one. A request over HTTP/2 has no
    // `host`, and Node warns of this header there.
    const close = status.code === 503 && caller.request.headers.has('host') ? { connection: 'close' } : {};
    return new Response(refusalBody(status, caller.request.method), {
      status: status.code,
      headers: { ...close, ...this.refusalHeaders(caller, status) },
    });
  }
}

/** A request, together with what its host passed. */
interface Asking extends Caller<Request> {
  readonly via: Host;
}

function toCaller(request: Request, via: Host): Asking {
  const { host, search } = new URL(request.url);
  return {
    request,
    via,
    address: addressOf(request, via),
    origin: request.headers.get('origin') ?? undefined,
    site: request.headers.get('sec-fetch-site') ?? undefined,
    host,
    search: search.slice(1),
    lastEventId: request.headers.get(LAST_EVENT_ID) ?? undefined,
    onGone: (callback) => {
      request.signal.addEventListener('abort', callback, { once: true });
      return () => request.signal.removeEventListener('abort', callback);
    },
  };
}

function addressOf(request: Request, via: Host): string {
  const address =
    typeof via.requestIP === 'function'
      ? via.requestIP(request)?.address
      : (via.remoteAddr?.hostname ?? via.incoming?.socket?.remoteAddress);
  return typeof address === 'string' ? address : '';
}
