import { readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import { CONFIG_MAPS, NAMESPACES } from '../../apiserver/builtin.ts';
import { type ApiServerOptions, MAX_URL_BYTES } from '../../apiserver/options.ts';
import { ApiServer } from '../../apiserver/server.ts';
import { refuseUpgrade } from '../../bridge/transport/upgrades.ts';
import type { Storage } from '../../storage/storage.ts';
import { systemClock } from '../../watch/clock.ts';
import type { Output } from '../output.ts';
import { refuseBadRequests } from '../server/bad-requests.ts';
import { Pipelining } from '../server/pipelining.ts';
import {
  close,
  isMeant,
  type ListenAddress,
  listen,
  MAX_CONNECTIONS_PER_ADDRESS,
  METRICS_PATH,
  MISDIRECTED,
  PATIENCE,
  WRONG_NAME,
} from '../server/server.ts';
import { onSignals } from '../signals.ts';
import { UsageError } from '../usage.ts';
import { HealthMonitor } from './health-monitor.ts';
import { Log } from './log.ts';
import { createMetricsServer } from './metrics-server.ts';
import { objectsPage, sendPage, wantsPage } from './page.ts';
import type { ServeCommand } from './serve-args.ts';
import { ServeEvents } from './serve-events.ts';
import { openStorage } from './storages.ts';
import { readTokens, Tokens } from './tokens.ts';

/** `watchmux serve`: an API server. Returns the exit code. */
export async function serve(command: ServeCommand, output: Output): Promise<number> {
  const tls = readTls(command);
  const tokens = toTokens(command);
  const log = new Log({ format: command.log, output: process.stderr, now: Date.now });
  const storage = await openStorage(command, log);
  try {
    return await serveFrom(storage, { command, output, tls, tokens, log });
  } finally {
    await storage.close();
  }
}

interface Means {
  readonly command: ServeCommand;
  readonly output: Output;
  readonly tls: Tls | undefined;
  readonly tokens: Tokens | undefined;
  readonly log: Log;
}

async function serveFrom(storage: Storage, means: Means): Promise<number> {
  const { command, tls, log } = means;
  const events = new ServeEvents(log, systemClock);
  const api = new ApiServer<string>({
    storage,
    resources: [CONFIG_MAPS, NAMESPACES, ...command.resources],
    ...hooksOf(means),
    ...command.limits,
    ...events.hooks,
  });
  const state: State = { isLeaving: false };
  const server = createHttpServer(api, { command, tls, events, state });
  const scraped = command.metrics && createMetricsServer(api, command.metrics.host);
  let monitor: HealthMonitor | undefined;
  try {
    const metricsUrl = scraped && `${await listening(scraped, command.metrics as ListenAddress)}${METRICS_PATH}`;
    await api.ready;
    const own = { ...command, maxConnectionsPerAddress: connectionsOf(command) };
    const url = await listening(server, own, tls === undefined ? 'http' : 'https');
    for (const each of [server, scraped]) each?.on('error', (error) => log.error('error', { error: error.message }));
    events.started(command);
    log.info('listening', { url, metrics: metricsUrl });
    monitor = new HealthMonitor({ health: () => api.health(), log, clock: systemClock });
    await untilEnd(
      means,
      metricsUrl === undefined ? [`listening on ${url}`] : [`listening on ${url}`, `metrics on ${metricsUrl}`],
    );
    return 0;
  } finally {
    monitor?.end();
    state.isLeaving = true;
    const { afterMs, inTime } = await drain(api, server, command);
    if (scraped) await close(scraped);
    events.end();
    if (monitor) log.info('stopped', { afterMs, inTime });
  }
}

/** How many connections one address may have: behind a proxy, all of them are the proxy's. */
function connectionsOf({ clientHeader, limits }: ServeCommand): number {
  const { maxWatchersPerAddress = 0, maxConcurrentRequestsPerAddress = 0 } = limits;
  const needed = 2 * (maxWatchersPerAddress + maxConcurrentRequestsPerAddress);
  return clientHeader === undefined ? Math.max(MAX_CONNECTIONS_PER_ADDRESS, needed) : Number.POSITIVE_INFINITY;
}

function listening(server: Server, address: ListenAddress, scheme: string = 'http'): Promise<string> {
  return listen(server, address, scheme).catch((error: NodeJS.ErrnoException) => {
    throw new UsageError(explain(error, address), 'serve');
  });
}

/** Prints the addresses, and resolves when the server should end. */
async function untilEnd({ command, output, tls, log }: Means, lines: readonly string[]): Promise<void> {
  const stop = new AbortController();
  // From then on a signal exits at once: the listener stays until the process ends.
  onSignals((signal) => stop.abort(signal));
  // A server is of no use if nobody can read its address. A reader that has read the address and ended is not a failure.
  output.onGone = () => {
    if (output.failure !== undefined) stop.abort('output');
  };
  void output.write(`${lines.join('\n')}\n`);
  if (command.token !== undefined && tls === undefined) {
    log.warn('token-unencrypted', {
      message:
        'the token is sent without encryption, and kubectl does not send it at all, because it does so only over HTTPS; see --tls-cert',
    });
  }
  await new Promise<void>((resolve) => {
    if (stop.signal.aborted) resolve();
    else stop.signal.addEventListener('abort', () => resolve(), { once: true });
  });
  log.info('shutdown', { reason: String(stop.signal.reason), drainMs: command.drainMs });
}

async function drain(
  api: ApiServer<string>,
  server: Server,
  { drainMs, drainDelayMs }: ServeCommand,
): Promise<{ readonly afterMs: number; readonly inTime: boolean }> {
  const begunMs = systemClock.now();
  const cut = new AbortController();
  const timer = setTimeout(() => cut.abort(), drainMs);
  await api.shutdown({ signal: cut.signal, delayMs: drainDelayMs, spreadMs: Math.floor((drainMs - drainDelayMs) / 2) });
  clearTimeout(timer);
  await close(server);
  return { afterMs: Math.round(systemClock.now() - begunMs), inTime: !cut.signal.aborted };
}

/** Who may ask, and from where. */
function hooksOf({ command, tokens }: Means): Pick<ApiServerOptions<string>, 'authenticate' | 'clientAddress'> {
  const { clientHeader } = command;
  return {
    ...(tokens && { authenticate: (request) => tokens.nameOf((request as IncomingMessage).headers.authorization) }),
    ...(clientHeader !== undefined && { clientAddress: (request) => addressOf(request as IncomingMessage, clientHeader) }),
  };
}

/** The last entry, which the nearest proxy has added. The client may have written the entries before it. */
function addressOf({ headers, socket }: IncomingMessage, header: string): string {
  const told = [headers[header] ?? ''].flat().join(',').split(',').at(-1)?.trim();
  return told || (socket.remoteAddress ?? '');
}

function toTokens({ token, tokenFile }: ServeCommand): Tokens | undefined {
  if (token === undefined && tokenFile === undefined) return undefined;
  const tokens = tokenFile === undefined ? new Tokens() : readTokens(tokenFile);
  if (token !== undefined) tokens.add(token, 'token');
  return tokens;
}

/** Whether the server goes away: its clients should come back on other connections, which lead elsewhere. */
interface State {
  isLeaving: boolean;
}

function createHttpServer(
  api: ApiServer<string>,
  { command: { host }, tls, events, state }: Pick<Means, 'command' | 'tls'> & { events: ServeEvents; state: State },
): Server {
  const page = objectsPage();
  const pipelining = new Pipelining();
  const listener: RequestListener = (request, response) => {
    if (state.isLeaving) response.setHeader('connection', 'close');
    // Any host name may resolve to this machine; a page from that host would be mistaken for one of this server's own.
    const meant = isMeant(request, { server, host });
    // The API has limits of its own.
    if (meant && !wantsPage(request)) api.handler(request, response);
    else if (!pipelining.takes(response)) return;
    else if (!meant) {
      events.misdirected(request);
      request.resume();
      response.writeHead(421, { 'content-type': 'text/plain', connection: 'close' });
      response.end(`${WRONG_NAME}\n`);
    } else sendPage(page, request, response);
  };
  // The URL counts as a part of the head: one that is too long for the API gets its answer.
  const patience = { ...PATIENCE, maxHeaderSize: MAX_URL_BYTES + PATIENCE.maxHeaderSize };
  const server: Server =
    tls === undefined ? createServer(patience, listener) : createSecureServer({ ...patience, ...tls }, listener);
  refuseBadRequests(server);
  server.on('drop', (dropped) => events.dropped(dropped?.remoteAddress));
  server.on('upgrade', (request, socket, head) => {
    if (isMeant(request, { server, host })) api.upgrade(request, socket, head);
    else {
      events.misdirected(request);
      refuseUpgrade(socket, MISDIRECTED);
    }
  });
  return server;
}

interface Tls {
  readonly cert: Buffer;
  readonly key: Buffer;
}

function readTls({ tls }: ServeCommand): Tls | undefined {
  return tls && { cert: readPem('tls-cert', tls.certFile), key: readPem('tls-key', tls.keyFile) };
}

function readPem(option: string, file: string): Buffer {
  try {
    const bytes = readFileSync(file);
    if (bytes.includes('-----BEGIN ')) return bytes;
  } catch (error) {
    throw new UsageError(`--${option}: ${(error as Error).message}`, 'serve');
  }
  throw new UsageError(`--${option}: ${file} is not in PEM`, 'serve');
}

function explain(error: NodeJS.ErrnoException, { host, port }: ListenAddress): string {
  if (error.code === 'EADDRINUSE') return `port ${port} is in use; choose another with --port, or any free one with --port 0`;
  if (error.code === 'EACCES') return `no permission to listen on port ${port}; choose 1024 or higher`;
  if (error.code === 'ENOTFOUND' || error.code === 'EADDRNOTAVAIL') {
    return `cannot listen on ${host}: it is not an address of this machine`;
  }
  return `cannot listen on ${host}, port ${port}: ${error.message}`;
}
