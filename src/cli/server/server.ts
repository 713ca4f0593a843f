import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo, isIP, type Socket } from 'node:net';
import { splitTarget } from '../../apiserver/request/path.ts';
import { createHttpHandler } from '../../bridge/http.ts';
import { type Hub, type HubStats, hubMetrics } from '../../bridge/hub/hub.ts';
import { BAD_QUERY_TEXT, toParameters } from '../../bridge/hub/query.ts';
import { STATS_PATH, WATCH_PATH } from '../../bridge/protocol.ts';
import { endUnread } from '../../bridge/transport/unread-body.ts';
import { attachHandler, limitConnections, pathOf, refuseUpgrade } from '../../bridge/transport/upgrades.ts';
import { livePage } from '../../pages/pipe/page.ts';
import { CLIENT_HEADER, type PipeStats, SLOW } from '../../pages/words.ts';
import { systemClock } from '../../watch/clock.ts';
import { type Status, toStatus } from '../../watch/event.ts';
import type { Overflow } from '../../watch/overflow.ts';
import { processMetrics } from '../../watch/process-metrics.ts';
import { counter, METRICS_TYPE, toText } from '../../watch/telemetry.ts';
import { type CommandName, UsageError } from '../usage.ts';
import { Pipelining } from './connections.ts';
import type { Recoveries } from './recoveries.ts';
import { LINE_BYTES, MAX_BYTES_PER_SECOND, narrow } from './slow-line.ts';

/** An answer is reused for at least this long. */
export const MIN_AGE_MS = 10;
/** An answer is never older than this. */
export const MAX_AGE_MS = 250;
/** Making an answer takes at most this part of the time. */
const SHARE = 1 / 20;

/**
 * The body of an answer that takes time in proportion to the number of clients. It is made once per interval, and requests in
 * between get the same bytes. So no number of requests costs more than a small part of the processor, and while there are few
 * clients the numbers are current.
 */
export class SharedAnswer {
  private readonly make: () => string;
  private readonly now: () => number;
  private made: { readonly body: Uint8Array; readonly untilMs: number } | undefined = undefined;

  constructor(make: () => string, now: () => number = () => performance.now()) {
    this.make = make;
    this.now = now;
  }

  get body(): Uint8Array {
    const startMs = this.now();
    if (this.made !== undefined && startMs < this.made.untilMs) return this.made.body;
    const body = Buffer.from(this.make());
    const endMs = this.now();
    const ageMs = Math.min(MAX_AGE_MS, Math.max(MIN_AGE_MS, (endMs - startMs) / SHARE));
    this.made = { body, untilMs: endMs + ageMs };
    return body;
  }
}

/**
 * How long a connection may take for its request, and how large that may be. A connection that has never had a request is
 * closed after that time as well. The limits do not apply to a connection that waits for its next request, so `--keep-alive`
 * may be longer than both.
 */
export const PATIENCE = {
  headersTimeout: 10_000,
  requestTimeout: 20_000,
  connectionsCheckingInterval: 2_000,
  /** For TLS: no other limit applies before a request begins. */
  handshakeTimeout: 10_000,
  maxHeaderSize: 16_384,
} as const;

interface PipeServerOptions {
  /** The host it listens on. */
  readonly host: string;
  /** How long an idle connection is kept open for its next request. */
  readonly keepAliveMs: number;
  /** The queue length of every client, and what happens when a queue is full; shown on the page. */
  readonly capacity: number;
  readonly overflow: Overflow;
  /** The heading of the page. */
  readonly title?: string | undefined;
  /** Number of input lines that were skipped. */
  readonly skipped?: () => number;
  /** What clients have recovered; undefined if that cannot be known. */
  readonly recoveries?: Recoveries | undefined;
}

/** The page of metrics, for Prometheus. */
export const METRICS_PATH = '/metrics';

/** Creates the server of `watchmux pipe`: the watch, its numbers in two forms, and a page that shows both. */
export function createPipeServer(hub: Hub, options: PipeServerOptions): Server {
  const { host, keepAliveMs } = options;
  const routes = toRoutes(hub, options);
  const pipelining = new Pipelining();
  const watch = createWatch(hub, (origin, request) => isSame(origin, request, { server, host }));
  const server = createServer({ ...PATIENCE, keepAliveTimeout: keepAliveMs }, (request, response) => {
    if (!pipelining.takes(response)) return;
    const path = pathOf(request.url);
    if (!isMeant(request, { server, host })) answer(request, response, NOT_MEANT);
    else if (path === WATCH_PATH) {
      pipelining.stream(response);
      watch(request, response);
    } else if (queryOf(request) === undefined) answer(request, response, BAD_QUERY);
    else answer(request, response, routes[path]?.() ?? NOT_FOUND);
  });
  // Runs before the hub's handler, which does not check names.
  attachHandler(server, (request, socket) => {
    if (isMeant(request, { server, host })) return false;
    refuseUpgrade(socket, MISDIRECTED);
    return true;
  });
  return server;
}

type Routes = Readonly<Record<string, (() => Reply) | undefined>>;

/** Everything but the watch. */
function toRoutes(hub: Hub, options: PipeServerOptions): Routes {
  const { capacity, overflow, title, skipped = () => 0, recoveries } = options;
  const page = livePage(undefined, title);
  const recovered = (): number => recoveries?.total ?? 0;
  const stats = new SharedAnswer(() => {
    const { clients, ...rest } = hub.stats();
    const all = clients.map((client) => ({ ...client, recovered: recoveries?.of(client.id) ?? 0 }));
    const own: Omit<PipeStats, keyof HubStats> = { recovered: recovered(), capacity, overflow };
    return `${JSON.stringify({ ...rest, clients: all, ...own })}\n`;
  });
  const metrics = new SharedAnswer(
    () =>
      toText([
        ...hubMetrics(hub.stats()),
        counter('events_recovered_total', 'Dropped events that clients received after all, when they resumed.', recovered()),
        counter('lines_skipped_total', 'Lines of input that were not events.', skipped()),
      ]) + processMetrics(),
  );
  const html = { type: 'text/html; charset=utf-8', body: Buffer.from(page.html), policy: page.policy };
  const routes: Routes = {
    '/': () => html,
    [STATS_PATH]: () => ({ type: 'application/json', body: stats.body }),
    [METRICS_PATH]: () => ({ type: METRICS_TYPE, body: metrics.body }),
  };
  // A path such as `constructor` is not one of them.
  return Object.assign(Object.create(null) as Routes, routes);
}

/** Serves the watch. The live page adds `?slow=<bytes per second>` to limit its own rate; 0 means no limit. */
function createWatch(
  hub: Hub,
  allowedOrigins: (origin: string, request: IncomingMessage) => boolean,
): (request: IncomingMessage, response: ServerResponse) => void {
  const watch = createHttpHandler(hub, { allowedOrigins });
  const watchSlowly = createHttpHandler(hub, { allowedOrigins, maxBufferedBytes: LINE_BYTES });
  return (request, response) => {
    const slow = queryOf(request)?.get(SLOW) ?? null;
    // The id the page's client will get. Nothing between here and the hub can give that id to another client.
    if (slow !== null) response.setHeader(CLIENT_HEADER, hub.stats().total.clients + 1);
    const bytesPerSecond = Math.min(Number(slow), MAX_BYTES_PER_SECOND);
    if (bytesPerSecond > 0) {
      narrow(response, { bytesPerSecond });
      watchSlowly(request, response);
    } else watch(request, response);
  };
}

/** How a request under another host's name is refused; see {@link isMeant}. */
export const WRONG_NAME = 'the header Host does not name this server';
export const MISDIRECTED: Status = toStatus({ code: 421, reason: 'Misdirected', message: WRONG_NAME });

/** A server, and the host that it was told to listen on. */
interface NamedServer {
  readonly server: Server;
  readonly host: string;
}

/**
 * Whether a request addresses this server by one of its own names. A foreign page can map its own host name to our loopback
 * address and would then have our origin (DNS rebinding), but it cannot hide that name.
 */
export function isMeant(request: IncomingMessage, { server, host }: NamedServer): boolean {
  const { host: asked } = request.headers;
  // Browsers always send it.
  return asked === undefined || isOwn(asked, host) || !isLocal(server);
}

/** Whether a header `Host` has a name that only this machine has: `evil.example/.localhost` is not a name at all. */
function isOwn(header: string, host: string): boolean {
  const [given = ''] = /^([\w.-]+|\[[\da-f:.]+\])(?=(:\d*)?$)/i.exec(header) ?? [];
  const name = given.replace(/^\[|\]$/g, '').toLowerCase();
  return name === host.toLowerCase() || name === 'localhost' || name.endsWith('.localhost') || isIP(name) !== 0;
}

/** Whether only this machine can reach a server. The host's name does not show it: many names mean the loopback address. */
function isLocal(server: Server): boolean {
  // There is none while the server closes.
  const bound = server.address() as AddressInfo | null;
  return bound === null || /^(127\.|::1$|::ffff:127\.)/.test(bound.address);
}

export function isSame(origin: string, request: IncomingMessage, listener: NamedServer): boolean {
  const same = URL.canParse(origin) && new URL(origin).host === request.headers.host;
  return same && isMeant(request, listener);
}

interface Reply {
  readonly code?: number;
  readonly type: string;
  readonly body: Uint8Array;
  readonly policy?: string;
}

const plain = (code: number, text: string): Reply => ({ code, type: 'text/plain', body: Buffer.from(`${text}\n`) });
const NOT_MEANT: Reply = plain(421, WRONG_NAME);
const BAD_QUERY: Reply = plain(400, BAD_QUERY_TEXT);
const NOT_FOUND: Reply = plain(404, 'not found: there are only /, /watch, /stats and /metrics');

function answer(request: IncomingMessage, response: ServerResponse, { code = 200, type, body, policy }: Reply): void {
  const readable = request.method === 'GET' || request.method === 'HEAD';
  sendWhole(request, response, {
    code: readable ? code : 405,
    body,
    headers: {
      'content-type': type,
      'referrer-policy': 'no-referrer',
      // Nothing here may be loaded from, framed by, or sent to another site.
      'content-security-policy': policy ?? "default-src 'none'; frame-ancestors 'none'",
      ...(readable ? {} : { allow: 'GET, HEAD' }),
    },
  });
}

/** An answer that is complete. */
interface Whole {
  readonly code: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
}

/** Answers a request whose body nobody reads. */
export function sendWhole(request: IncomingMessage, response: ServerResponse, { code, headers, body }: Whole): void {
  const always = { 'content-length': body.length, 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' };
  const begin = (): void => void response.writeHead(code, { ...always, ...headers });
  endUnread(request, response, { begin, body: request.method === 'HEAD' ? null : body, clock: systemClock });
}

/** The parameters of a request; undefined if they cannot be decoded. */
export function queryOf({ url = '/' }: Pick<IncomingMessage, 'url'>): URLSearchParams | undefined {
  return toParameters(splitTarget(url).search);
}

const connections: WeakMap<Server, ReadonlySet<Socket>> = new WeakMap();

/**
 * Connections that one address may have, whatever they do: more than its clients and requests can need, and few enough to leave
 * file descriptors to others.
 */
export const MAX_CONNECTIONS_PER_ADDRESS = 4_000;

interface ListenAddress {
  readonly host: string;
  readonly port: number;
  /** Which command listens, and the option that names the port. */
  readonly command?: CommandName;
  readonly option?: string;
  /** Default {@link MAX_CONNECTIONS_PER_ADDRESS}. Further ones are closed, and the server emits `drop`, as Node does for its limit. */
  readonly maxConnectionsPerAddress?: number | undefined;
}

/** Starts listening. Resolves with the URL; rejects with a {@link UsageError}. */
export function listen(server: Server, address: ListenAddress, scheme: string = 'http'): Promise<string> {
  const { maxConnectionsPerAddress: most = MAX_CONNECTIONS_PER_ADDRESS } = address;
  const limits = { maxClients: Number.POSITIVE_INFINITY, maxClientsPerAddress: most };
  const drop = (remoteAddress: string): void => void server.emit('drop', { remoteAddress });
  connections.set(server, limitConnections(server, limits, { drop }));
  return new Promise((resolve, reject) => {
    const failed = (error: NodeJS.ErrnoException): void => reject(new UsageError(explain(error, address), address.command));
    server.once('error', failed);
    server.listen(address.port, address.host, () => {
      server.off('error', failed);
      const { port } = server.address() as AddressInfo;
      resolve(`${scheme}://${address.host.includes(':') ? `[${address.host}]` : address.host}:${port}`);
    });
  });
}

function explain(error: NodeJS.ErrnoException, { host, port, option = '--port' }: ListenAddress): string {
  if (error.code === 'EADDRINUSE')
    return `port ${port} is in use; choose another with ${option}, or any free one with ${option} 0`;
  if (error.code === 'EACCES') return `no permission to listen on port ${port}; choose 1024 or higher with ${option}`;
  if (error.code === 'ENOTFOUND' || error.code === 'EADDRNOTAVAIL') {
    return `cannot listen on ${host}: it is not an address of this machine`;
  }
  return `cannot listen on ${host}, port ${port}: ${error.message}`;
}

/** Stops listening and closes all connections. `closeAllConnections` would leave out upgraded ones. */
export function close(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    for (const socket of connections.get(server) ?? []) socket.destroy();
  });
}
