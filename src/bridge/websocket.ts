/**
 * The entry point `watchmux/ws`: a hub over WebSocket, one text message per event. Needs no package: it uses only the types of
 * `ws`.
 *
 *     const server = createServer(createHttpHandler(hub));
 *     attachWebSocket(server, hub);                             // ws://host/watch
 */

import { channel } from 'node:diagnostics_channel';
import type { IncomingMessage, Server } from 'node:http';
import type { WebSocket, WebSocketServer } from 'ws';
import type { Clock } from '../watch/clock.ts';
import { invalid, requireMethod, wholeNumbers } from '../watch/errors.ts';
import { isStatus, type Status, toStatus, type WatchEvent } from '../watch/event.ts';
import { LINE, MESSAGE } from './events/forms.ts';
import type { AdmissionOptions, Caller, ConnectionOptions, Verdict } from './hub/admission/admission.ts';
import type { Reservation } from './hub/admission/connection-slots.ts';
import type { Hub } from './hub/hub.ts';
import type { Admitted } from './hub/hub-core.ts';
import { COMPLETE, type Start } from './hub/hub-log.ts';
import { BEARER_SUBPROTOCOL, CLOSE_CODES, CLOSE_REASONS, DEFAULTS, WATCH_PATH } from './protocol.ts';
import { Frames, type ServerWebSocket } from './transport/frames.ts';
import { Handshakes } from './transport/handshakes.ts';
import { takeToken, toCaller } from './transport/http-head.ts';
import { COMMON_OPTIONS, Serving } from './transport/serving.ts';
import { guardStalls, IN_BUN, type SharedTimer, toSharedTimer } from './transport/stall.ts';
import { afterAnswers, attachHandler, pathOf, refuseUpgrade, type UpgradeHandler, WaitingUpgrade } from './transport/upgrades.ts';
import {
  guardInbound,
  type InboundLimits,
  type Sender,
  SentLines,
  sessionOf,
  type WebSocketConnection,
  WebSocketSink,
} from './transport/websocket-connection.ts';

export type { AdmissionOptions, ConnectionOptions, Identified } from './hub/admission/admission.ts';
export type { ClientOptions, HubOptions, HubStats, ShutdownOptions } from './hub/hub.ts';
export { Hub } from './hub/hub.ts';
export type { UpgradeHandler } from './transport/upgrades.ts';

/** Options of all functions that serve a WebSocket. */
export interface WebSocketServerOptions<I = unknown, E extends WatchEvent = WatchEvent>
  extends ConnectionOptions,
    AdmissionOptions<IncomingMessage, I, E> {
  /** Interval of pings; a client that has not answered the last one is cut. Default 30,000; 0: never. */
  heartbeatMs?: number | undefined;
  /**
   * Messages, pings and pongs that a client may send within one second; default 100; 0: no limit. A client that sends more is
   * cut. Nothing that it sends is used, but reading it takes time.
   */
  maxInboundMessagesPerSecond?: number | undefined;
  /**
   * Bytes that a client may send within one second; default 65,536, or one message of `maxInboundBytes` if that is more; 0: no
   * limit. A client that sends more is cut.
   */
  maxInboundBytesPerSecond?: number | undefined;
}

/** Options of {@link attachWebSocket} and {@link createUpgradeHandler}. */
export interface WebSocketOptions<I = unknown, E extends WatchEvent = WatchEvent> extends WebSocketServerOptions<I, E> {
  /** Path of the watch; default `/watch`. */
  path?: string | undefined;
  /** Longest message that a client may send, in bytes; default 1,024. Messages are ignored, but count toward the limits per second. */
  maxInboundBytes?: number | undefined;
  /** Compresses events of 1,024 bytes to 4 MiB (permessage-deflate), once for all clients; default false. */
  compression?: boolean | undefined;
}

/**
 * Serves the hub to WebSocket clients of an HTTP server, at one path. Other upgrade listeners get all other requests, and never one
 * for this path, in whatever order they were added. If there are none, other upgrade requests are answered with 404. Of several hubs
 * at one path, the one attached first serves it. Returns a function that detaches the hub.
 *
 * @throws {WatchError} INVALID_ARGUMENT for anything but a server or a hub, and for an invalid option.
 */
export function attachWebSocket<I = unknown, E extends WatchEvent = WatchEvent>(
  server: Server,
  hub: Hub<E>,
  options: WebSocketOptions<I, E> = {},
): () => void {
  // An Express application is a function with an `on` method, but it never emits `upgrade`.
  if (typeof server !== 'object' || typeof server?.on !== 'function')
    throw invalid('server', server, 'an HTTP server, as app.listen() returns it');
  return attachHandler(server, createUpgradeHandler(hub, options));
}

/**
 * The same without a server, for applications that route upgrade requests themselves. The handler returns false and does nothing
 * for another path. It refuses before the handshake, as {@link AdmissionOptions} says.
 *
 * @throws {WatchError} INVALID_ARGUMENT for anything but a hub, and for an invalid option.
 */
export function createUpgradeHandler<I = unknown, E extends WatchEvent = WatchEvent>(
  hub: Hub<E>,
  options: WebSocketOptions<I, E> = {},
): UpgradeHandler {
  const serving = new WebSocketServing<I>(hub, options, [...SERVER_OPTIONS, 'path', 'maxInboundBytes', 'compression']);
  const { path = WATCH_PATH, compression = false } = options;
  if (!/^\/[^?#]*$/.test(path)) throw invalid('path', path, 'a path that begins with /, without a query');
  const { maxInboundBytes } = wholeNumbers(options, { maxInboundBytes: [DEFAULTS.maxInboundBytes, 1] });
  const handshakes = new Handshakes({ compression, maxInboundBytes, clock: serving.limits.clock });
  const handle = (...[request, socket, head]: Parameters<UpgradeHandler>): void => {
    let waiting: WaitingUpgrade | undefined;
    const caller = toCaller(request, (callback) => {
      waiting ??= new WaitingUpgrade(socket, head, maxInboundBytes + MOST_FRAMING_BYTES);
      return waiting.onGone(callback);
    });
    const answer = (verdict: Verdict | undefined): void => {
      const upgrade = { request, socket, head: waiting?.take() ?? head };
      if (verdict === undefined) socket.destroy();
      else if (isStatus(verdict) && verdict.code !== 400) refuseUpgrade(socket, verdict);
      else {
        const whole = handshakes.answer(upgrade, (client, form) => {
          client.on('error', ignore);
          serving.guard(client, socket);
          serving.take({ client, socket, form }, verdict);
        });
        if (!whole && !isStatus(verdict)) verdict.reservation.release();
      }
    };
    const verdict = serving.faultOf(caller) ?? serving.admission.admit(caller);
    if (verdict instanceof Promise) void verdict.then(answer);
    else answer(verdict);
  };
  return (request, socket, head) => {
    if (pathOf(request.url) !== path) return false;
    serving.afterAnswers(request, socket, () => handle(request, socket, head));
    return true;
  };
}

/**
 * Serves the hub to all clients of an existing `ws` server. That server does the handshake, so a client is refused with an ERROR
 * event and the close code 4000 + HTTP status. The limits for what clients send are those of the server. Events are not
 * compressed, even if the server compresses its own messages. Returns a function that detaches the hub; connected clients stay.
 *
 * @throws {WatchError} INVALID_ARGUMENT for anything but a hub, and for an invalid option.
 */
export function attachWebSocketServer<I = unknown, E extends WatchEvent = WatchEvent>(
  sockets: WebSocketServer,
  hub: Hub<E>,
  options: WebSocketServerOptions<I, E> = {},
): () => void {
  const serving = new WebSocketServing<I>(hub, options, SERVER_OPTIONS);
  const onConnection = (client: WebSocket, request: IncomingMessage): void => {
    const { socket } = request;
    client.on('error', ignore);
    const caller = toCaller(request, (callback) => {
      client.once('close', callback);
      return () => client.off('close', callback);
    });
    const connection = { client, socket, form: MESSAGE };
    serving.guard(client, socket);
    serving.afterAnswers(request, socket, () => {
      if (client.readyState !== client.OPEN) return;
      const verdict = serving.faultOf(caller, client.protocol) ?? serving.admission.admit(caller);
      if (verdict instanceof Promise) void verdict.then((late) => late && serving.take(connection, late));
      else serving.take(connection, verdict);
    });
  };
  requireMethod('sockets', sockets, 'on', 'a WebSocketServer').on('connection', onConnection);
  return () => void sockets.off('connection', onConnection);
}

/** After an error, ws closes the connection and emits `close`. A closure here would retain the request. */
function ignore(): void {}

/** Maximum overhead of a client's message: mask, length, first byte. */
const MOST_FRAMING_BYTES = 14;

/** An open WebSocket, its socket, and the wire format to write there. */
interface Connection extends Pick<WebSocketConnection, 'client' | 'form'> {
  readonly socket: Parameters<UpgradeHandler>[1];
}

function toInboundLimits(options: WebSocketLimits, clock: Clock): InboundLimits {
  const { maxInboundBytes = 0 } = options;
  return {
    ...wholeNumbers(options, {
      maxInboundBytesPerSecond: [Math.max(DEFAULTS.maxInboundBytesPerSecond, maxInboundBytes + MOST_FRAMING_BYTES)],
      maxInboundMessagesPerSecond: [DEFAULTS.maxInboundMessagesPerSecond],
    }),
    clock,
    sessionOf: (client) => sessionOf(client as ServerWebSocket),
  };
}

/** What a client may send, and how often it is pinged. */
type WebSocketLimits = Omit<WebSocketOptions, keyof AdmissionOptions<IncomingMessage>>;

/** The names of the options that only WebSockets have. A record, so that none can be forgotten. */
const OWN: Record<Exclude<keyof WebSocketServerOptions, keyof ConnectionOptions | keyof AdmissionOptions<never>>, true> = {
  heartbeatMs: true,
  maxInboundMessagesPerSecond: true,
  maxInboundBytesPerSecond: true,
};
const SERVER_OPTIONS: readonly string[] = [...COMMON_OPTIONS, ...Object.keys(OWN)];

/** A hub attached to one server or handler. */
class WebSocketServing<I> extends Serving<IncomingMessage, I> {
  private readonly heartbeats: SharedTimer | undefined;
  /** Limits what the client of an open WebSocket may send from now on. */
  readonly guard: ReturnType<typeof guardInbound>;

  constructor(hub: unknown, options: WebSocketLimits, names: readonly string[]) {
    super(hub, options, { names, channel });
    const { clock } = this.limits;
    this.heartbeats = toSharedTimer(wholeNumbers(options, { heartbeatMs: [DEFAULTS.heartbeatMs] }).heartbeatMs, clock);
    this.guard = guardInbound(toInboundLimits(options, clock));
  }

  /** Calls `next` when it is this request's turn. Closes its connection if earlier ones are unanswered. */
  afterAnswers(request: IncomingMessage, socket: Connection['socket'], next: () => void): void {
    const cut = (): void => this.refusePipelined(request.socket.remoteAddress ?? '');
    afterAnswers(socket, next, { cut, clock: this.limits.clock });
  }

  /**
   * Lets `authenticate` find a token that came as a subprotocol. Refuses a client that breaks the rules for these, and one
   * whose token the server of an open WebSocket has accepted as its `protocol`, which sends it back.
   */
  faultOf({ request, address }: Caller<IncomingMessage>, protocol: string = ''): Status | undefined {
    const fault = takeToken(request.headers);
    const message = protocol.startsWith(BEARER_SUBPROTOCOL) ? 'another subprotocol must come before the token' : fault;
    if (message === undefined) return undefined;
    const status = toStatus({ code: 400, reason: 'BadRequest', message });
    return this.core.refuse({ reason: 'badRequest', status, address });
  }

  /** Serves an open WebSocket, or refuses it. */
  take(connection: Connection, verdict: Verdict): void {
    const { client } = connection;
    const start = isStatus(verdict) ? verdict : this.core.start(verdict.asked, verdict);
    if (isStatus(start)) this.refuse(client, start, isStatus(verdict) ? this.core.reserveForRefusal() : verdict.reservation);
    else if (!isStatus(verdict)) this.serve(connection, { ...verdict, start });
  }

  /** A refused client occupies a slot until it has gone. If there is no slot, its connection is terminated at once. */
  private refuse(client: ServerWebSocket, status: Status, reservation: Reservation | undefined): void {
    this.tell(client, status);
    if (reservation === undefined) client.terminate();
    else client.once('close', () => reservation.release());
  }

  private serve(connection: Connection, admitted: Admitted & { start: Start }): void {
    const { maxBufferedBytes, clock } = this.limits;
    const { client } = connection;
    const isHidden = IN_BUN && !(client instanceof Frames);
    const { socket, form } = isHidden ? { socket: new SentLines(client as unknown as Sender), form: LINE } : connection;
    const sink = new WebSocketSink({ client, socket, form, maxBufferedBytes, clock });
    const session = this.core.open(sink, { ...admitted, transport: 'websocket' });
    guardStalls(session, socket, this.stalls);
    if (this.heartbeats !== undefined) sink.startHeartbeat(this.heartbeats);
  }

  /** Sends the refusal and closes. */
  private tell(client: ServerWebSocket, status: Status): void {
    if (status === COMPLETE) {
      client.close(CLOSE_CODES.complete, CLOSE_REASONS.complete);
      return;
    }
    client.send(JSON.stringify({ type: 'ERROR', object: status }), { compress: false });
    const reason = { 400: CLOSE_REASONS.badRequest, 410: CLOSE_REASONS.expired }[status.code] ?? status.reason;
    client.close(status.code === 410 ? CLOSE_CODES.expired : 4_000 + status.code, reason);
  }
}
