import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { createServer } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { isIP } from 'node:net';
import { createHttpHandler } from '../bridge/http.ts';
import type { Hub } from '../bridge/hub/hub.ts';
import { STATS_PATH, WATCH_PATH } from '../bridge/protocol.ts';
import type { UpgradeHandler } from '../bridge/transport/upgrades.ts';
import { answerUpgrade, attachHandler, pathOf } from '../bridge/transport/upgrades.ts';
import type { Overflow } from '../broadcast/broadcaster.ts';
import { CLIENT_HEADER, SLOW } from './page/stats.ts';
import { livePage } from './page.ts';
import { LINE_BYTES, MAX_BYTES_PER_SECOND, narrow } from './slow-line.ts';

/** How long a connection may take for its request, and how large that may be. A silent connection is closed after that. */
const PATIENCE = {
  headersTimeout: 10_000,
  requestTimeout: 20_000,
  connectionsCheckingInterval: 2_000,
  keepAliveTimeout: 5_000,
  maxHeaderSize: 16_384,
} as const;

/** The answer to a request that addresses this server by another name. */
const MISDIRECTED = { code: 421, type: 'text/plain', body: 'this server does not have the name in the header Host\n' } as const;

/** Options of {@link createPipeServer}. */
export interface PipeServerOptions {
  /** The host it listens on. */
  readonly host: string;
  /** The queue length of every client, and what happens when a queue is full; shown on the page. */
  readonly capacity: number;
  readonly overflow: Overflow;
}

/** Creates the server of `watchmux pipe`: the watch, its numbers, and a page that shows both. */
export function createPipeServer(hub: Hub, options: PipeServerOptions): Server {
  const { host, capacity, overflow } = options;
  const page = livePage();
  const watch = createWatch(hub, (origin, request) => isSame(origin, request, { server, host }));
  const server = createServer(PATIENCE, (request, response) => {
    const path = pathOf(request.url);
    if (!isMeant(request, { server, host })) answer(request, response, MISDIRECTED);
    else if (path === WATCH_PATH) watch(request, response);
    else if (path === STATS_PATH) {
      const body = `${JSON.stringify({ ...hub.stats(), capacity, overflow })}\n`;
      answer(request, response, { type: 'application/json', body });
    } else if (path === '/')
      answer(request, response, { type: 'text/html; charset=utf-8', body: page.html, policy: page.policy });
    else answer(request, response, { code: 404, type: 'text/plain', body: 'not found: there are only /, /watch and /stats\n' });
  });
  return server;
}

/** Serves the watch. The live page adds `?slow=<bytes per second>` to limit its own rate; 0 means no limit. */
function createWatch(
  hub: Hub,
  allowedOrigins: (origin: string, request: IncomingMessage) => boolean,
): (request: IncomingMessage, response: ServerResponse) => void {
  const watch = createHttpHandler(hub, { allowedOrigins });
  const watchSlowly = createHttpHandler(hub, { allowedOrigins, maxBufferedBytes: LINE_BYTES });
  return (request, response) => {
    const slow = new URLSearchParams(request.url?.split('?', 2)[1]).get(SLOW);
    // The id the page's client will get. Nothing between here and the hub can give that id to another client.
    if (slow !== null) response.setHeader(CLIENT_HEADER, hub.stats().total.clients + 1);
    const bytesPerSecond = Math.min(Number(slow), MAX_BYTES_PER_SECOND);
    if (bytesPerSecond > 0) {
      narrow(response, { bytesPerSecond });
      watchSlowly(request, response);
    } else watch(request, response);
  };
}

/** A server, and the host that it was told to listen on. */
export interface Listener {
  readonly server: Server;
  readonly host: string;
}

/**
 * Whether a request addresses this server by one of its own names. A foreign page can map its own host name to our loopback
 * address and would then have our origin (DNS rebinding), but it cannot hide that name.
 */
function isMeant(request: IncomingMessage, { server, host }: Listener): boolean {
  const name = (request.headers.host ?? host)
    .replace(/:\d+$/, '')
    .replace(/^\[|\]$/g, '')
    .toLowerCase();
  const own = name === host.toLowerCase() || name === 'localhost' || name.endsWith('.localhost') || isIP(name) !== 0;
  return own || !isLocal(server);
}

/** Whether only this machine can reach a server. The host's name does not tell: many a name means the loopback address. */
function isLocal(server: Server): boolean {
  // There is none while the server closes.
  const bound = server.address() as AddressInfo | null;
  return bound === null || /^(127\.|::1$|::ffff:127\.)/.test(bound.address);
}

/** Gives a server's upgrade requests to a handler, but only those that address it by one of its own names. */
export function attachUpgrades(handler: UpgradeHandler, listener: Listener): void {
  attachHandler(listener.server, (request, socket, head) => {
    if (isMeant(request, listener)) return handler(request, socket, head);
    answerUpgrade(socket, MISDIRECTED);
    return true;
  });
}

/** Whether an origin is this server's own. */
export function isSame(origin: string, request: IncomingMessage, listener: Listener): boolean {
  const same = URL.canParse(origin) && new URL(origin).host === request.headers.host;
  return same && isMeant(request, listener);
}

interface Answer {
  readonly code?: number;
  readonly type: string;
  readonly body: string;
  readonly policy?: string;
}

function answer(request: IncomingMessage, response: ServerResponse, { code = 200, type, body, policy }: Answer): void {
  request.resume();
  const readable = request.method === 'GET' || request.method === 'HEAD';
  response.writeHead(readable ? code : 405, {
    'content-type': type,
    'content-length': Buffer.byteLength(body),
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'no-referrer',
    // Nothing here may be loaded from, framed by, or sent to another site.
    'content-security-policy': policy ?? "default-src 'none'; frame-ancestors 'none'",
    ...(readable ? {} : { allow: 'GET, HEAD' }),
  });
  response.end(request.method === 'HEAD' ? undefined : body);
}

const connections: WeakMap<Server, Set<Socket>> = new WeakMap();

/** Starts listening. Resolves with the URL; rejects with the system's error. */
export function listen(server: Server, address: { host: string; port: number }): Promise<string> {
  const sockets: Set<Socket> = new Set();
  connections.set(server, sockets);
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(address.port, address.host, () => {
      server.off('error', reject);
      const { port } = server.address() as AddressInfo;
      resolve(`http://${address.host.includes(':') ? `[${address.host}]` : address.host}:${port}`);
    });
  });
}

/** Stops listening and closes all connections. `closeAllConnections` would leave out upgraded ones. */
export function close(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    for (const socket of connections.get(server) ?? []) socket.destroy();
  });
}
