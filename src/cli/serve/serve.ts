import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import { BUILT_IN_KINDS } from '../../apiserver/builtin.ts';
import type { ResourceDefinition } from '../../apiserver/definition.ts';
import { toCrdDefinition } from '../../apiserver/definitions/definitions.ts';
import { allKubernetesKinds, kubernetesKind } from '../../apiserver/kinds/kubernetes.ts';
import { type ApiServerOptions, MAX_URL_BYTES } from '../../apiserver/options.ts';
import { readAccept } from '../../apiserver/request/path.ts';
import { ApiServer } from '../../apiserver/server.ts';
import { WEBHOOK_CONFIGURATIONS } from '../../apiserver/webhooks/configurations.ts';
import { BAD_QUERY_TEXT } from '../../bridge/hub/query.ts';
import { pathOf, refuseUpgrade } from '../../bridge/transport/upgrades.ts';
import { nameOf } from '../../cache/resource-client.ts';
import { onSignals } from '../../operator/signals.ts';
import type { FromFiles, Pair } from '../../operator/webhooks/from-files.ts';
import type { LivePage } from '../../pages/document.ts';
import { objectsPage } from '../../pages/serve/page.ts';
import type { Storage } from '../../storage/storage.ts';
import { systemClock } from '../../watch/clock.ts';
import { isWatchError } from '../../watch/errors.ts';
import { processMetrics } from '../../watch/process-metrics.ts';
import { METRICS_TYPE } from '../../watch/telemetry.ts';
import { aborted, announce, type Output } from '../output.ts';
import { Pipelining, refuseBadRequests } from '../server/connections.ts';
import {
  close,
  isMeant,
  listen,
  MAX_CONNECTIONS_PER_ADDRESS,
  METRICS_PATH,
  MISDIRECTED,
  PATIENCE,
  queryOf,
  sendWhole,
  WRONG_NAME,
} from '../server/server.ts';
import { UsageError } from '../usage.ts';
import { applyCrds, type CrdFile, readCrdFiles } from './crd-files.ts';
import { ServeLog } from './log.ts';
import { type Identity, Reloads, type Tokens, toEtcdTls, toEtcdUser, toServerTls, toTokens, warnIfExpired } from './reload.ts';
import type { ServeCommand } from './serve-args.ts';
import { HealthMonitor, ServeEvents } from './serve-events.ts';
import { closeStorage, openStorage } from './storages.ts';

/** `watchmux serve`: an API server. Returns the exit code. */
export async function serve(command: ServeCommand, output: Output): Promise<number> {
  const [tls, tokens] = [toServerTls(command), toTokens(command)];
  const [etcdTls, etcdUser] = [toEtcdTls(command), toEtcdUser(command, process.env)];
  const crds = await readCrdFiles(command.crdFiles);
  const log = new ServeLog({ format: command.log, output: process.stderr, now: Date.now });
  const reloads = new Reloads({ values: [tls, tokens, etcdTls, etcdUser?.password], log, clock: systemClock });
  let code: number | undefined;
  try {
    const storage = await openStorage(command, { log, etcdTls, etcdUser });
    try {
      code = await serveFrom(storage, { command, output, tls, tokens, log, crds });
    } finally {
      code = Math.max(code ?? 0, await closeStorage(storage, { log, isLocal: command.etcd.length === 0 }));
    }
  } finally {
    reloads.end();
  }
  return code;
}

/**
 * The kinds of the command line, and all built-in ones. If both name a kind, such as Leases, the built-in definition counts.
 */
export function withBuiltIn(
  named: ServeCommand['resources'],
  more: readonly ResourceDefinition[] = [],
): readonly ResourceDefinition[] {
  const builtIn = [...BUILT_IN_KINDS, ...more];
  const all = [...builtIn, toCrdDefinition({}) as ResourceDefinition];
  const isBuiltIn = ({ group, version, plural, kind, namespaced }: ServeCommand['resources'][number]): boolean => {
    const own = all.find((each) => each.group === group && each.plural === plural);
    if (own === undefined) return false;
    if (own.version === version && own.kind === kind && (own.namespaced ?? true) === namespaced) return true;
    const scope = own.namespaced === false ? ':cluster' : '';
    const expected = `${plural}${group && `.${group}`}/${own.version}=${own.kind}${scope}`;
    throw new UsageError(
      `--resource: ${plural} of this group are built in: expected ${expected}, or leave the option out`,
      'serve',
    );
  };
  return [...builtIn, ...named.filter((each) => !isBuiltIn(each))];
}

/** The same with the definitions of Kubernetes' own kinds where the command line names one of them. */
export async function withFields(resources: readonly ResourceDefinition[]): Promise<readonly ResourceDefinition[]> {
  return await Promise.all(
    resources.map(async (named) => {
      const own = await kubernetesKind(named).catch((error: unknown) => {
        throw isWatchError(error) ? new UsageError(`--${error.message}`, 'serve') : error;
      });
      if (own?.namespaced && named.namespaced === false) {
        throw new UsageError(`--resource: ${nameOf(own)} is not a cluster-scoped kind: leave out :cluster`, 'serve');
      }
      return own ?? named;
    }),
  );
}

/** All kinds but that of definitions. What the command line names is not added again with Kubernetes' kinds, in whatever version. */
export async function kindsOf({
  resources,
  kubernetesKinds,
  webhookServices,
}: Pick<ServeCommand, 'resources' | 'kubernetesKinds' | 'webhookServices'>): Promise<readonly ResourceDefinition[]> {
  const named = await withFields(withBuiltIn(resources, webhookServices && WEBHOOK_CONFIGURATIONS));
  const more = kubernetesKinds ? await allKubernetesKinds() : [];
  return [...named, ...more.filter((kind) => !named.some((each) => each.group === kind.group && each.plural === kind.plural))];
}

interface ServeDeps {
  readonly command: ServeCommand;
  readonly output: Output;
  readonly tls: FromFiles<Pair> | undefined;
  readonly tokens: FromFiles<Tokens> | undefined;
  readonly log: ServeLog;
  /** The definitions of `--crd`. */
  readonly crds: readonly CrdFile[];
}

async function serveFrom(storage: Storage, deps: ServeDeps): Promise<number> {
  const { command, tls, tokens, log, crds } = deps;
  const events = new ServeEvents(log, systemClock);
  const { webhookServices } = command;
  const resources = await kindsOf(command);
  const api = new ApiServer<Identity>({
    storage,
    resources,
    customResourceDefinitions: true,
    garbageCollection: true,
    managedFields: command.managedFields,
    serviceAddress: ({ namespace, name }) => webhookServices?.get(`${namespace}/${name}`),
    ...hooksOf(deps),
    ...command.limits,
    ...events.hooks,
  });
  if (tokens) {
    // A watch does not outlive its token. A client with the same name and another token reconnects.
    tokens.onChange = (now, before) => {
      const lost = before.lostIn(now);
      if (lost.size > 0) api.disconnect(({ identity, impersonator }) => lost.has((impersonator ?? identity) as string));
    };
  }
  const state: Departure = { isLeaving: false };
  const server = createHttpServer(api, { command, tls, log, events, state });
  const { metrics } = command;
  const scraped = metrics && createMetricsServer(api, { ...command, host: metrics.host });
  let monitor: HealthMonitor | undefined;
  try {
    const metricsUrl =
      scraped && metrics && `${await listen(scraped, { ...metrics, command: 'serve', option: '--metrics' })}${METRICS_PATH}`;
    await api.ready;
    await applyCrds(api, crds, log);
    const own = { ...command, maxConnectionsPerAddress: connectionsOf(command) };
    const url = await listen(server, own, tls === undefined ? 'http' : 'https');
    for (const each of [server, scraped]) each?.on('error', (error) => log.error('error', { error: error.message }));
    // The 1 is the kind of definitions.
    events.started(command, resources.length + 1 + crds.length);
    log.info('listening', { url, metrics: metricsUrl });
    monitor = new HealthMonitor({ health: () => api.health(), log, clock: systemClock });
    await untilEnd(
      deps,
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

/** Prints the addresses, and resolves when the server should end. */
async function untilEnd({ command, output, tls, tokens, log }: ServeDeps, lines: readonly string[]): Promise<void> {
  const stop = new AbortController();
  // From then on a signal exits at once: the listener stays until the process ends.
  onSignals((signal) => stop.abort(signal), ['SIGINT', 'SIGTERM']);
  announce(output, lines, stop);
  if (tokens !== undefined && tls === undefined) {
    log.warn('token-unencrypted', {
      message:
        'the token is sent unencrypted, and kubectl does not send it at all, because it sends tokens over HTTPS only; see --tls-cert',
    });
  }
  await aborted(stop.signal);
  log.info('shutdown', { reason: String(stop.signal.reason), drainMs: command.drainMs });
}

async function drain(
  api: ApiServer<Identity>,
  server: Server,
  { drainMs, drainDelayMs }: ServeCommand,
): Promise<{ readonly afterMs: number; readonly inTime: boolean }> {
  const begunMs = systemClock.now();
  const cut = new AbortController();
  const timer = setTimeout(() => cut.abort(), drainMs);
  // From then on requests are refused: on other connections, another server answers them.
  const idle = setTimeout(() => server.closeIdleConnections(), drainDelayMs);
  await api.shutdown({ signal: cut.signal, delayMs: drainDelayMs, spreadMs: Math.floor((drainMs - drainDelayMs) / 2) });
  for (const each of [timer, idle]) clearTimeout(each);
  await close(server);
  return { afterMs: Math.round(systemClock.now() - begunMs), inTime: !cut.signal.aborted };
}

/** Who may ask, and from where. Whoever may ask may do everything, and so also act as another. */
function hooksOf({
  command,
  tokens,
}: ServeDeps): Pick<ApiServerOptions<Identity>, 'authenticateToken' | 'identityOf' | 'clientAddress'> {
  const { clientHeader } = command;
  return {
    ...(tokens && { authenticateToken: (token) => tokens.value.nameOf(token) }),
    identityOf: (user) => user,
    ...(clientHeader !== undefined && { clientAddress: (request) => addressOf(request as IncomingMessage, clientHeader) }),
  };
}

/** The last entry, which the nearest proxy has added. The client may have written the entries before it. */
function addressOf({ headers, socket }: IncomingMessage, header: string): string {
  const told = [headers[header] ?? ''].flat().join(',').split(',').at(-1)?.trim();
  return told || (socket.remoteAddress ?? '');
}

/** Whether the server is going away: its clients should reconnect, which leads them elsewhere. */
interface Departure {
  isLeaving: boolean;
}

function createHttpServer(
  api: ApiServer<Identity>,
  {
    command: { host, keepAliveMs },
    tls,
    log,
    events,
    state,
  }: Pick<ServeDeps, 'command' | 'tls' | 'log'> & { events: ServeEvents; state: Departure },
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
      sendWhole(request, response, {
        code: 421,
        headers: { 'content-type': 'text/plain' },
        body: Buffer.from(`${WRONG_NAME}\n`),
      });
    } else sendPage(page, request, response);
  };
  // The URL counts as a part of the head: one that is too long for the API gets its answer.
  const maxHeaderSize = MAX_URL_BYTES + PATIENCE.maxHeaderSize;
  const patience = { ...PATIENCE, maxHeaderSize, keepAliveTimeout: keepAliveMs };
  const server: Server =
    tls === undefined
      ? createServer(patience, listener)
      : securely(tls, log, (pair) => createSecureServer({ ...patience, ...pair }, listener));
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

/** A server whose new connections get the current certificate. */
function securely(tls: FromFiles<Pair>, log: ServeLog, create: (pair: Pair) => ReturnType<typeof createSecureServer>): Server {
  const server = create(tls.value);
  warnIfExpired(tls.value, log);
  tls.onChange = (pair) => {
    warnIfExpired(pair, log);
    // Bun does not have it.
    if (!('setSecureContext' in server))
      throw new Error('this runtime cannot replace the certificate: restart to use the new one');
    server.setSecureContext(pair);
  };
  return server;
}

/**
 * Whether a request is for the page, and not for the API: at `/`, by a client that prefers HTML to JSON, as browsers do. Clients
 * of the API, and curl, which takes anything, do not.
 */
export function wantsPage({ method, url, headers }: Pick<IncomingMessage, 'method' | 'url' | 'headers'>): boolean {
  if (pathOf(url) !== '/' || (method !== 'GET' && method !== 'HEAD')) return false;
  // The API refuses it.
  if (queryOf({ url }) === undefined) return false;
  const first = readAccept(headers.accept).find(({ type }) => type === HTML || /^application\/(json|\*)$/.test(type));
  return first?.type === HTML;
}

const HTML = 'text/html';

/** Answers a request for which {@link wantsPage} is true. */
function sendPage({ html, policy }: LivePage, request: IncomingMessage, response: ServerResponse): void {
  sendWhole(request, response, {
    code: 200,
    body: Buffer.from(html),
    headers: {
      'content-type': `${HTML}; charset=utf-8`,
      vary: 'Accept',
      'referrer-policy': 'no-referrer',
      'content-security-policy': policy,
    },
  });
}

const HEALTH: ReadonlySet<string> = new Set(['/healthz', '/livez', '/readyz']);

interface MetricsServerOptions {
  readonly host: string;
  readonly keepAliveMs: number;
}

/**
 * The server of `--metrics`: numbers and health, but no objects, so it asks for no token. It keeps running while the other one
 * drains.
 */
export function createMetricsServer(
  api: Pick<ApiServer, 'handler' | 'metrics'>,
  { host, keepAliveMs }: MetricsServerOptions,
): Server {
  const pipelining = new Pipelining();
  const listener: RequestListener = (request, response) => {
    if (!pipelining.takes(response)) return;
    const path = pathOf(request.url);
    const meant = isMeant(request, { server, host });
    if (meant && HEALTH.has(path)) {
      api.handler(request, response);
      return;
    }
    const readable = request.method === 'GET' || request.method === 'HEAD';
    const asked = path !== METRICS_PATH ? 404 : queryOf(request) === undefined ? 400 : readable ? 200 : 405;
    const code = meant ? asked : 421;
    sendWhole(request, response, {
      code,
      body: Buffer.from(code === 200 ? api.metrics + processMetrics() : `${WRONG[code]}\n`),
      headers: {
        'content-type': code === 200 ? METRICS_TYPE : 'text/plain; charset=utf-8',
        ...(code === 405 && { allow: 'GET, HEAD' }),
      },
    });
  };
  const server = createServer({ ...PATIENCE, keepAliveTimeout: keepAliveMs }, listener);
  return server;
}

const WRONG: Readonly<Record<number, string>> = {
  400: BAD_QUERY_TEXT,
  404: 'not found: there are only /metrics, /healthz, /livez and /readyz',
  405: 'only GET and HEAD',
  421: WRONG_NAME,
};
