/**
 * The entry point `watchmux/http`: a hub over plain HTTP, as a stream of JSON lines or as Server-Sent Events.
 *
 *     const hub = new Hub({ replay: 10 });
 *     createServer(createHttpHandler(hub)).listen(8080);
 *     await hub.publish({ type: 'ADDED', object: { hello: 'world' } });
 *
 * In Express, use the handler as it is: `app.all('/watch', createHttpHandler(hub))`. In Fastify, pass it `request.raw` and
 * `reply.raw` after `reply.hijack()`. The server limits how long a request may take to arrive and how large its headers may be:
 * `createServer({ headersTimeout, requestTimeout, connectionsCheckingInterval, maxHeaderSize })`.
 */

import { channel } from 'node:diagnostics_channel';
import { type IncomingMessage, ServerResponse, validateHeaderName, validateHeaderValue } from 'node:http';
import { isStatus, type Status, type WatchEvent } from '../watch/event.ts';
import type { AdmissionOptions, Caller, ConnectionOptions, Verdict } from './hub/admission/admission.ts';
import type { Hub } from './hub/hub.ts';
import type { Admitted } from './hub/hub-core.ts';
import type { Start } from './hub/hub-log.ts';
import { EVENT_STREAM } from './protocol.ts';
import {
  alreadyBegun,
  claimConnection,
  guardEnded,
  isPipelined,
  mayRefuse,
  type Refusable,
  type WholeHttpAnswer,
} from './transport/http-connection.ts';
import { ALLOW_ORIGIN, accepts, refusalBody, startOf, toCaller, WEBSOCKET_KEY } from './transport/http-head.ts';
import { type ByteStream, HttpSink, hasClosed, isPlain } from './transport/http-sink.ts';
import { HttpServing } from './transport/serving.ts';
import { guardStalls, IN_BUN, type Outbound } from './transport/stall.ts';
import { dropBody, endUnread } from './transport/unread-body.ts';

export type { Form } from './events/forms.ts';
export { LINE, RECORD } from './events/forms.ts';
export type { AdmissionOptions, ConnectionOptions, Identified } from './hub/admission/admission.ts';
export type { Cleanup, ClientInfo, ClientStats, CutReason, Served, Sink, TransportName } from './hub/connection.ts';
export type { ClientOptions, HubOptions, HubStats, ShutdownOptions } from './hub/hub.ts';
export { Hub } from './hub/hub.ts';
export type { Snapshot, SnapshotContext } from './hub/hub-options.ts';
export type { HubFailure, HubNotice, HubTotals, Observer, Refusal, RefusalReason } from './hub/tally.ts';
export * from './protocol.ts';
export type { ConnectionHandler, ConnectionHandlerOptions, ConnectionRequest } from './transport/connection-handler.ts';
export { createConnectionHandler } from './transport/connection-handler.ts';
export type { Subprotocols } from './transport/http-head.ts';
export { readSubprotocols } from './transport/http-head.ts';

/** How long a connection is silent before the operating system probes the other end. */
const KEEP_ALIVE_MS = 60_000;

/** Options of {@link createHttpHandler}. `R` is the request of the framework, if a hook asks for it. */
export interface HttpOptions<I = unknown, E extends WatchEvent = WatchEvent, R extends IncomingMessage = IncomingMessage>
  extends ConnectionOptions,
    AdmissionOptions<R, I, E> {
  /**
   * Headers to add to every stream. They replace the default ones: `{ 'cache-control': 'no-store' }`, without `no-transform`,
   * allows compression by middleware that flushes, such as Express' `compression`.
   */
  headers?: Readonly<Record<string, string>> | undefined;
}

/**
 * Creates a `(request, response)` handler for node:http and frameworks on top of it. It answers every request with the hub's
 * events; routing is up to the caller. A client that accepts `text/event-stream` gets SSE; any other client gets one line per
 * event.
 *
 * A refusal has a Status as its body: 400 for an invalid query; 401, 403 and 503 as in {@link AdmissionOptions}; 404 for a
 * WebSocket handshake (use `watchmux/ws`); 405 for methods other than GET and HEAD; 410 for a version that is too old (SSE sends
 * an ERROR event and continues live instead); 503 if the hub is full or shutting down. Once the stream has ended, a client that
 * has all of it gets 204, which makes an EventSource stop asking.
 *
 * A connection carries one watch, and nothing else until that has ended: it is closed when any other request arrives on it, or
 * arrives before an earlier one has been answered.
 *
 * The hooks get the request that the handler was given, with everything that a framework and its middleware have added to it:
 * `clientAddress: (request: express.Request) => request.ip ?? ''`.
 *
 * @throws {WatchError} INVALID_ARGUMENT for anything but a hub, and for an invalid option; TypeError for an invalid header.
 */
export function createHttpHandler<I = unknown, E extends WatchEvent = WatchEvent, R extends IncomingMessage = IncomingMessage>(
  hub: Hub<E>,
  options: HttpOptions<I, E, R> = {},
): (request: R, response: ServerResponse) => void {
  const handler = new HttpHandler<I>(hub, options, channel);
  return (request, response) => handler.handle(request, response);
}

class HttpHandler<I> extends HttpServing<IncomingMessage, I> {
  constructor(...[hub, options, channels]: ConstructorParameters<typeof HttpServing>) {
    super(hub, options, channels);
    for (const [name, value] of Object.entries(this.headers)) {
      validateHeaderName(name);
      validateHeaderValue(name, value);
    }
  }

  handle(request: IncomingMessage, response: ServerResponse): void {
    if (response.headersSent) {
      this.core.tally.failed(alreadyBegun(response), 'admission');
      return;
    }
    const caller = this.callerOf(request, response);
    if (isPipelined(response)) {
      this.refusePipelined(caller.address);
      request.socket.destroy();
      return;
    }
    if (this.isPreflight(caller, request.method)) {
      this.preflight(caller, response);
      return;
    }
    const { [WEBSOCKET_KEY]: key, upgrade } = request.headers;
    const refusal = this.refusalOf(request.method, { address: caller.address, key: key as string | undefined, upgrade });
    if (refusal !== undefined) {
      this.refuse(response, refusal, caller);
      return;
    }
    claimConnection(response, () => this.refusePipelined(caller.address));
    const verdict = this.admission.admit(caller);
    if (verdict instanceof Promise) void verdict.then((late) => late && this.answer(caller, response, late));
    else this.answer(caller, response, verdict);
  }

  private callerOf(request: IncomingMessage, response: ServerResponse): Caller<IncomingMessage> {
    const caller = toCaller(request, (callback) => {
      response.once('close', callback);
      return () => response.off('close', callback);
    });
    return this.whoAsks(caller, ALLOW_ORIGIN in this.headers || response.hasHeader(ALLOW_ORIGIN)); // that of middleware counts, too
  }

  private answer(caller: Caller<IncomingMessage>, response: ServerResponse, verdict: Verdict): void {
    if (isStatus(verdict)) {
      this.refuse(response, verdict, caller);
      return;
    }
    try {
      dropBody(caller.request);
      // The application may have answered itself in the meantime.
      if (!response.headersSent) this.begin(caller, response, verdict);
    } finally {
      // Has no effect if a session has taken over the slot. Frees it in all other cases, even if middleware threw.
      verdict.reservation.release();
    }
  }

  private begin(caller: Caller<IncomingMessage>, response: ServerResponse, admitted: Admitted): void {
    const sse = accepts(caller.request.headers.accept, EVENT_STREAM);
    const { version } = this.core;
    const start = startOf(this.core, admitted, sse);
    if (isStatus(start)) {
      this.refuse(response, start, caller);
      return;
    }
    response.writeHead(200, this.streamHeaders(caller, sse));
    if (caller.request.method === 'HEAD') {
      response.end();
      this.guard(response);
      return;
    }
    response.flushHeaders();
    // Middleware that wraps `writeHead` may have published, and the client would miss that event.
    const now = this.core.version === version ? start : startOf(this.core, admitted, sse);
    if (isStatus(now)) response.destroy();
    else this.serve(response, { ...admitted, start: now, sse });
  }

  private serve(response: ServerResponse, client: Admitted & { start: Start; sse: boolean }): void {
    const { sse, asked } = client;
    const bookmarks = asked.allowWatchBookmarks === true;
    const direct = isPlain(response);
    const stream = (direct ? response.socket : response) as ByteStream;
    const { maxBufferedBytes } = this.limits;
    const wrapped = Object.hasOwn(response, 'write');
    const sink = new HttpSink({ sse, bookmarks, maxBufferedBytes, response, stream, direct, wrapped });
    const session = this.core.open(sink, { ...client, transport: sse ? 'sse' : 'http' });
    // The one event that always comes: after `end`, after a reset, after `destroy`.
    response.on('close', () => session.gone());
    response.on('error', () => session.gone());
    const { socket } = response.req;
    // On a quiet stream, only this detects a peer that vanished silently. A WebSocket has its pings.
    if (response instanceof ServerResponse) socket.setKeepAlive(true, KEEP_ALIVE_MS);
    // Bun does not count what waits in a socket, but counts what waits in a response.
    guardStalls(session, (response instanceof ServerResponse && !IN_BUN ? socket : response) as Outbound, this.stalls);
    if (hasClosed(response)) session.gone();
  }

  /** Answers with a Status instead of a stream. */
  private refuse(response: ServerResponse, status: Status, caller: Caller<IncomingMessage>): void {
    if (response.headersSent || response.destroyed || !mayRefuse(response as Refusable)) return;
    // The client should retry on another connection, because a closing server waits for this one.
    if (status.code === 503) response.shouldKeepAlive = false;
    const body = refusalBody(status, caller.request.method);
    const begin = (): void => {
      const length = body === null ? {} : { 'content-length': Buffer.byteLength(body) };
      response.writeHead(status.code, { ...length, ...this.refusalHeaders(caller, status) });
    };
    endUnread(caller.request, response, { begin, body, clock: this.limits.clock });
    this.guard(response);
  }

  private guard(response: ServerResponse): void {
    guardEnded(response as WholeHttpAnswer, this.stalls);
  }

  /** A browser asks first when a page sends headers of its own, such as `authorization`. */
  private preflight(caller: Caller<IncomingMessage>, response: ServerResponse): void {
    dropBody(caller.request);
    response.writeHead(204, this.preflightHeaders(caller, caller.request.headers['access-control-request-headers']));
    response.end();
    this.guard(response);
  }
}
