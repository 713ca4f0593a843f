import { type IncomingMessage, type Server, STATUS_CODES } from 'node:http';
import type { Socket, Server as TcpServer } from 'node:net';
import type { Duplex } from 'node:stream';
import { type Clock, systemClock, upkeepClock } from '../../watch/clock.ts';
import type { Status } from '../../watch/event.ts';
import { ConnectionSlots } from '../hub/admission/connection-slots.ts';
import { NO_WEBSOCKET } from '../hub/admission/refusals.ts';
import { JSON_LINES } from '../protocol.ts';
import type { Answering, HttpAnswer } from './http-connection.ts';

/** A listener for an HTTP server's `upgrade` event. Returns whether the request was meant for it. */
export type UpgradeHandler = (request: IncomingMessage, socket: Duplex, head: Buffer) => boolean;

const servers: WeakMap<Server, ServerUpgrades> = new WeakMap();

/** Marks the listeners that refuse, including those of another copy of this package: a server may be passed to both builds. */
const REFUSES: unique symbol = Symbol.for('watchmux.refuses');

type Refuser = ((request: IncomingMessage, socket: Duplex) => void) & { [REFUSES]?: true };

/**
 * Adds a handler to a server. Other upgrade listeners get the requests that no handler accepts. If there are none, such a request
 * is answered with 404. Returns a function that removes the handler.
 */
export function attachHandler(server: Server, handler: UpgradeHandler): () => void {
  const upgrades = servers.get(server) ?? new ServerUpgrades(server);
  servers.set(server, upgrades);
  upgrades.add(handler);
  return () => upgrades.remove(handler);
}

/**
 * The handlers attached to a server. An accepted request must not reach other listeners. Many of them answer or destroy
 * everything that is not for them: `ws` servers that are given a server (graphql-ws), NestJS, Fastify, and Socket.IO after a
 * second. Listeners cannot withhold an event from each other, so `emit` of this server does.
 */
class ServerUpgrades {
  private readonly server: Server;
  private readonly handlers: Set<UpgradeHandler> = new Set();
  private restore = (): void => {};

  constructor(server: Server) {
    this.server = server;
  }

  add(handler: UpgradeHandler): void {
    if (this.handlers.size === 0) this.listen();
    this.handlers.add(handler);
  }

  remove(handler: UpgradeHandler): void {
    this.handlers.delete(handler);
    if (this.handlers.size === 0) this.restore();
  }

  private listen(): void {
    const { server, handlers } = this;
    const emit: (name: string, ...args: unknown[]) => boolean = server.emit;
    const isOwn = Object.hasOwn(server, 'emit');
    const claim = ((name: string, ...args: unknown[]): boolean => {
      if (name === 'upgrade') {
        for (const handler of handlers) if (handler(...(args as Parameters<UpgradeHandler>))) return true;
      }
      return emit.call(server, name, ...args);
    }) as Server['emit'];
    // Node drops upgrade requests if nothing listens for them.
    const refuse: Refuser = (_request, socket) => {
      const listeners = server.listeners('upgrade') as Refuser[];
      if (listeners[0] === refuse && listeners.every((each) => each[REFUSES])) refuseUpgrade(socket, NO_WEBSOCKET);
    };
    refuse[REFUSES] = true;
    server.emit = claim;
    server.on('upgrade', refuse);
    this.restore = () => {
      server.off('upgrade', refuse);
      // Code that has wrapped it since keeps it. Without handlers it changes nothing.
      if (server.emit !== claim) return;
      if (isOwn) server.emit = emit as Server['emit'];
      else delete (server as Partial<Server>).emit;
    };
  }
}

/** Returns the path of a request target. A client behind a proxy may send an absolute URL. */
export function pathOf(target: string = ''): string {
  const path = target.replace(/^[a-z][a-z0-9+.-]*:\/\/[^/?#]*/i, '').split('?', 1)[0] as string;
  return path === '' ? '/' : path;
}

/** `close` follows. */
function ignore(): void {}

/** How long a client may take to receive the answers before an upgrade, and to receive its refusal. */
const TAKE_MS = 5_000;

/** What happens to a request for an upgrade that comes too early. */
interface TooEarly {
  /** Called if the connection is closed because of it. */
  readonly cut?: (() => void) | undefined;
  readonly clock?: Clock | undefined;
}

/**
 * Calls `next` when all earlier requests of a connection have been answered: nearly always at once.
 *
 *     GET, GET, upgrade --> all answered and sent: now
 *                       --> ended, not sent yet:   when they have been sent, but only for a while
 *                       --> not ended:             never, and the connection is closed
 *
 * Node passes on a request for an upgrade as soon as it has read it. The client would take the answer for that of an earlier
 * request, and the earlier ones would end up inside a WebSocket. Node no longer watches the connection either: it has no time
 * limit but ours.
 */
export function afterAnswers(socket: Duplex, next: () => void, { cut, clock = systemClock }: TooEarly = {}): void {
  const due = (): HttpAnswer | null | undefined => (socket as Answering)._httpMessage;
  if (!due()) {
    next();
    return;
  }
  const close = (): void => {
    cut?.();
    socket.destroy();
  };
  socket.on('error', ignore);
  if (!due()?.writableEnded) {
    close();
    return;
  }
  const cancel = upkeepClock(clock).schedule(TAKE_MS, close);
  socket.once('close', cancel);
  const wait = (): void => {
    const first = due();
    if (socket.destroyed) return;
    if (first && !first.writableEnded) close();
    else if (first) first.once('close', wait);
    else {
      cancel();
      socket.off('close', cancel).off('error', ignore);
      next();
    }
  };
  wait();
}

/** Answers an upgrade request with a Status instead of a WebSocket, when it is its turn. */
export function refuseUpgrade(socket: Duplex, status: Status): void {
  afterAnswers(socket, () => answerStatus(socket, status));
}

/** Answers with a Status, and closes the connection. */
export function answerStatus(socket: Duplex, status: Status): void {
  const body = `${JSON.stringify(status)}\n`;
  const { retryAfterSeconds } = status.details ?? {};
  const headers = retryAfterSeconds === undefined ? [] : [`retry-after: ${retryAfterSeconds}`];
  answerUpgrade(socket, { code: status.code, type: JSON_LINES, body, headers });
}

/** An answer to an upgrade request that is not a WebSocket. */
interface UpgradeAnswer {
  readonly code: number;
  readonly type: string;
  readonly body: string;
  readonly headers?: readonly string[];
}

/** Answers an upgrade request, and closes the connection once the answer has been sent or its client does not take it. */
export function answerUpgrade(
  socket: Duplex,
  { code, type, body, headers = [] }: UpgradeAnswer,
  clock: Clock = systemClock,
): void {
  if (socket.destroyed) return;
  const head = [
    `HTTP/1.1 ${code} ${STATUS_CODES[code] ?? ''}`,
    'connection: close',
    `content-type: ${type}`,
    `content-length: ${Buffer.byteLength(body)}`,
    ...headers,
  ];
  socket.on('error', ignore);
  // Does not wait for the client to close its side. Its bytes are still read, because closing with unread bytes causes a reset,
  // which could overtake the response.
  socket.once('finish', () => socket.destroy());
  socket.once(
    'close',
    upkeepClock(clock).schedule(TAKE_MS, () => socket.destroy()),
  );
  socket.resume();
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`);
}

/**
 * An upgrade request that waits for the application's decision. An unread socket does not report its end. So this reads it, and
 * keeps early bytes for the WebSocket.
 */
export class WaitingUpgrade {
  private readonly socket: Duplex;
  private readonly maxBytes: number;
  private readonly chunks: Buffer[] = [];
  private bytes: number = 0;
  private gone: (() => void) | undefined = undefined;

  constructor(socket: Duplex, head: Buffer, maxBytes: number) {
    this.socket = socket;
    this.maxBytes = maxBytes;
    socket.on('data', this.onData).on('end', this.onEnd).on('close', this.onEnd).on('error', this.onEnd);
    // What came with the request also counts.
    this.onData(head);
  }

  onGone(callback: () => void): () => void {
    this.gone = callback;
    return () => {
      this.gone = undefined;
    };
  }

  /** Returns the bytes that arrived meanwhile. The socket is flowing: the caller must attach a reader in the same step. */
  take(): Buffer {
    this.socket.off('data', this.onData).off('end', this.onEnd).off('close', this.onEnd).off('error', this.onEnd);
    return Buffer.concat(this.chunks);
  }

  private readonly onData = (chunk: Buffer): void => {
    this.chunks.push(chunk);
    this.bytes += chunk.length;
    if (this.bytes > this.maxBytes) this.socket.destroy();
  };

  private readonly onEnd = (): void => {
    this.socket.destroy();
    this.gone?.();
  };
}

interface ConnectionOptions {
  /** Filled with the open sockets. Default: a set of its own. */
  readonly sockets?: Set<Socket>;
  /** Called for each connection that is closed at once. */
  readonly drop?: (address: string) => void;
}

/** Closes connections beyond a limit. Returns the open ones, because a server's own methods to close them miss some. */
export function limitConnections(
  server: TcpServer,
  limits: { readonly maxClients: number; readonly maxClientsPerAddress: number },
  { sockets = new Set(), drop }: ConnectionOptions = {},
): ReadonlySet<Socket> {
  const slots = new ConnectionSlots(limits);
  server.on('connection', (socket) => {
    const { remoteAddress = '' } = socket;
    if (slots.take(remoteAddress)) {
      drop?.(remoteAddress);
      socket.destroy();
      return;
    }
    sockets.add(socket);
    socket.once('close', () => {
      slots.release(remoteAddress);
      sockets.delete(socket);
    });
  });
  return sockets;
}
