/**
 * The door `watchmux/ws`: a hub over WebSocket, one text message per event. Needs the package `ws`.
 *
 *     const server = createServer(createHttpHandler(hub));
 *     attachWebSocket(server, hub);                             // ws://host/watch
 */
import type { IncomingMessage, Server } from 'node:http';
import { STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import type { WebSocket } from 'ws';
import { WebSocketServer } from 'ws';
import { wholeNumber } from '../watch/errors.ts';
import type { Status, WatchEvent } from '../watch/event.ts';
import { toStatus } from '../watch/event.ts';
import { frameOf } from './envelope.ts';
import type { Hub } from './hub.ts';
import type { ConnectionOptions } from './limits.ts';
import { toLimits } from './limits.ts';
import type { Ending } from './protocol.ts';
import { CLOSE_CODES, DEFAULTS, JSON_LINES, WATCH_PATH } from './protocol.ts';
import type { Session, Sink } from './session.ts';
import { cutWhenStalled } from './stall.ts';

export type { HubOptions, HubStats } from './hub.ts';
export { Hub } from './hub.ts';
export type { ConnectionOptions } from './limits.ts';

/** What {@link attachWebSocket} and {@link createUpgradeHandler} take. */
export interface WebSocketOptions extends ConnectionOptions {
  /** Path of the watch; default `/watch`. */
  path?: string;
  /**
   * Web pages of which origins may connect. Default: those that come from this same host. Clients that are no browsers send no
   * origin, and are let in. A function decides for itself, `'*'` lets all in.
   */
  allowedOrigins?: '*' | readonly string[] | ((origin: string, request: IncomingMessage) => boolean);
  /** Longest message that a client may send, in bytes; default 1,024. What it says is ignored. */
  maxInboundBytes?: number;
  /** Pings each client so often, and cuts one that did not answer the last; default 30,000. 0: never. */
  heartbeatMs?: number;
}

/** A listener for an HTTP server's `upgrade` event. Answers whether the request was meant for it. */
export type UpgradeHandler = (request: IncomingMessage, socket: Duplex, head: Buffer) => boolean;

/**
 * Serves the hub to WebSocket clients of an HTTP server, at one path. Other upgrade listeners keep theirs; where there are
 * none, an upgrade to another path is answered with 404. The function that comes back takes it off the server again.
 */
export function attachWebSocket(server: Server, hub: Hub, options: WebSocketOptions = {}): () => void {
  const handler = createUpgradeHandler(hub, options);
  const { handlers, listener } = attachedTo(server);
  if (handlers.size === 0) server.on('upgrade', listener);
  handlers.add(handler);
  return () => {
    handlers.delete(handler);
    if (handlers.size === 0) server.off('upgrade', listener);
  };
}

/** What is attached to a server. All of it shares one listener: any other is somebody else's. */
interface Attached {
  readonly handlers: Set<UpgradeHandler>;
  readonly listener: (request: IncomingMessage, socket: Duplex, head: Buffer) => void;
}

const servers: WeakMap<Server, Attached> = new WeakMap();

function attachedTo(server: Server): Attached {
  const known = servers.get(server);
  if (known !== undefined) return known;
  const handlers: Set<UpgradeHandler> = new Set();
  const listener: Attached['listener'] = (request, socket, head) => {
    for (const handler of handlers) if (handler(request, socket, head)) return;
    if (server.listenerCount('upgrade') > 1) return;
    refuse(socket, toStatus({ code: 404, reason: 'NotFound', message: 'no WebSocket at this path' }));
  };
  const attached = { handlers, listener };
  servers.set(server, attached);
  return attached;
}

/**
 * The same without a server: for those who route upgrades themselves. The request is refused with 403 if its origin is not
 * allowed, and with 503 if the hub is full or shut down. False, and nothing done, if it is for another path.
 */
export function createUpgradeHandler(hub: Hub, options: WebSocketOptions = {}): UpgradeHandler {
  const { path = WATCH_PATH, allowedOrigins } = options;
  const heartbeatMs = wholeNumber('heartbeatMs', options.heartbeatMs ?? DEFAULTS.heartbeatMs);
  const maxPayload = wholeNumber('maxInboundBytes', options.maxInboundBytes ?? DEFAULTS.maxInboundBytes, 1);
  const serving: Serving = { ...toLimits(options), heartbeatMs };
  const sockets = new WebSocketServer({ noServer: true, clientTracking: false, perMessageDeflate: false, maxPayload });
  return (request, socket, head) => {
    if (request.url?.split('?', 1)[0] !== path) return false;
    const refusal = isAllowed(request, allowedOrigins)
      ? hub.refusal()
      : toStatus({ code: 403, reason: 'Forbidden', message: 'this origin may not connect' });
    if (refusal === undefined)
      sockets.handleUpgrade(request, socket, head, (client) => serve(hub, { client, socket, request }, serving));
    else refuse(socket, refusal);
    return true;
  };
}

interface Serving extends Required<ConnectionOptions> {
  readonly heartbeatMs: number;
}

interface Connection {
  readonly client: WebSocket;
  readonly socket: Duplex;
  readonly request: IncomingMessage;
}

function serve(hub: Hub, connection: Connection, serving: Serving): void {
  const { client, socket, request } = connection;
  const sink = new WebSocketSink(client, socket, serving.maxBufferedBytes);
  const session: Session = hub.open(sink, { transport: 'websocket', address: request.socket.remoteAddress ?? '' });
  const stopBeating = beat(client, serving);
  client.on('close', () => {
    stopBeating();
    session.gone();
  });
  // ws closes the connection after an error; `close` follows.
  client.on('error', () => {});
  cutWhenStalled(session, socket, serving);
}

/** Pings now and then, and cuts the client if it is silent from one ping to the next. */
function beat(client: WebSocket, { heartbeatMs, clock }: Serving): () => void {
  if (heartbeatMs === 0) return () => {};
  let sent = 0;
  let answered = 0;
  // A pong that nobody asked for says nothing.
  client.on('pong', (data) => {
    if (String(data) === String(sent)) answered = sent;
  });
  const tick = (): void => {
    if (answered < sent) {
      client.terminate();
      return;
    }
    client.ping(String(++sent));
    cancel = clock.schedule(heartbeatMs, tick);
  };
  let cancel = clock.schedule(heartbeatMs, tick);
  return () => cancel();
}

class WebSocketSink implements Sink {
  private readonly client: WebSocket;
  private readonly socket: Duplex;
  private readonly maxBufferedBytes: number;

  constructor(client: WebSocket, socket: Duplex, maxBufferedBytes: number) {
    this.client = client;
    this.socket = socket;
    this.maxBufferedBytes = maxBufferedBytes;
  }

  get bufferedBytes(): number {
    return this.client.bufferedAmount;
  }

  write(events: readonly WatchEvent[]): Promise<void> | undefined {
    let flushed: () => void = () => {};
    // Corked, a slice of many messages is one system call.
    this.socket.cork();
    for (let at = 0; at < events.length; at++) {
      const { message } = frameOf(events[at] as WatchEvent);
      if (at < events.length - 1) this.client.send(message, TEXT);
      else this.client.send(message, TEXT, () => flushed());
    }
    this.socket.uncork();
    if (this.client.bufferedAmount < this.maxBufferedBytes) return undefined;
    return new Promise((resolve) => {
      flushed = resolve;
    });
  }

  end(how: Ending): void {
    this.client.close(CLOSE_CODES[how], how);
  }

  destroy(): void {
    this.client.close(CLOSE_CODES.goingAway);
    this.client.terminate();
  }
}

const TEXT = { binary: false, compress: false } as const;

function isAllowed(request: IncomingMessage, allowed: WebSocketOptions['allowedOrigins']): boolean {
  const { origin, host } = request.headers;
  if (origin === undefined || allowed === '*') return true;
  if (typeof allowed === 'function') return allowed(origin, request);
  if (allowed !== undefined) return allowed.includes(origin);
  return URL.canParse(origin) && new URL(origin).host === host;
}

/** Answers an upgrade request with a Status instead of a WebSocket. */
function refuse(socket: Duplex, status: Status): void {
  const body = `${JSON.stringify(status)}\n`;
  const head = [
    `HTTP/1.1 ${status.code} ${STATUS_CODES[status.code] ?? ''}`,
    'connection: close',
    `content-type: ${JSON_LINES}`,
    `content-length: ${Buffer.byteLength(body)}`,
  ];
  socket.on('error', () => {});
  // A client may keep its end open for as long as it likes: nobody waits for that. What it still says is read, since closing
  // on unread bytes is a reset, which could overtake the answer.
  socket.once('finish', () => socket.destroy());
  socket.resume();
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`);
}
