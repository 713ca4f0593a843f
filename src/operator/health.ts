/**
 * The endpoints of an operator for a kubelet and Prometheus.
 *
 *     /healthz, /livez   it is alive: the process answers, and your own checks pass
 *     /readyz            it runs, the caches of all kinds are synced, and your own checks pass
 *     /metrics           see metrics.ts
 *
 * With webhooks, `/readyz` leaves out the kinds: a pod that is not ready gets no requests, and the server may need the webhooks
 * to list the kinds, for example to convert objects.
 *
 * As upstream, the answer is `ok`; with `?verbose`, or if a check fails, it names the checks. Reasons are only logged.
 * `/readyz/NAME` is a single check, and `?exclude=NAME` leaves one out. A check that does not end within a second has failed,
 * and is not started again before it has ended.
 */

import type { AddressInfo } from 'node:net';
import { type HealthCheck, healthText } from '../apiserver/health.ts';
import { endUnread } from '../bridge/transport/unread-body.ts';
import { limitConnections } from '../bridge/transport/upgrades.ts';
import { type Clock, systemClock, within } from '../watch/clock.ts';
import { callable, checkOptions, checkRequest, checkText, invalid, isRecord, tried, wholeNumber } from '../watch/errors.ts';
import { oneLine } from '../watch/failures.ts';
import { METRICS_TYPE } from '../watch/telemetry.ts';
import type { ListenOptions, Log, OperatorCheck, OperatorChecks, OperatorState } from './operator-options.ts';

/** What is needed to answer. */
interface HealthDeps {
  readonly state: () => OperatorState;
  /** The text of `/metrics`. */
  readonly metrics: () => string;
  readonly checks?: OperatorChecks | undefined;
  /** Whether it is ready although kinds are not synced. Each can then be asked for. */
  readonly readyWithoutKinds?: boolean | undefined;
  readonly log: Log;
  readonly clock?: Clock | undefined;
}

/** An answer, for any kind of server. */
interface HealthAnswer {
  readonly code: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** How long a check may take: as long as a kubelet waits by default. */
const CHECK_MS = 1_000;

/** Answers for an operator. See the top of this file. */
export class OperatorHealth {
  readonly #deps: HealthDeps;
  readonly #checks: Required<Readonly<Record<'healthz' | 'readyz', readonly (readonly [string, OperatorCheck])[]>>>;
  /** The checks that have not ended. */
  readonly #pending: Map<OperatorCheck, Promise<unknown>> = new Map();
  /** The checks that failed the last time. */
  readonly #failing: Set<string> = new Set();

  /** @throws {WatchError} INVALID_ARGUMENT for a check that is not a function. */
  constructor(deps: HealthDeps) {
    const { healthz = {}, readyz = {} } = checkOptions(deps.checks ?? {}, ['healthz', 'readyz']);
    const checked = (path: string, checks: object): [string, OperatorCheck][] =>
      Object.entries(checks).map(([name, check]) => [name, callable(`checks.${path}.${name}`, check ?? null)]);
    this.#deps = deps;
    this.#checks = { healthz: checked('healthz', healthz), readyz: checked('readyz', readyz) };
  }

  /** The answer to a request for a target such as `/readyz?verbose`. */
  async answer(method: string, target: string): Promise<HealthAnswer> {
    try {
      return await this.#answer(method, target);
    } catch (error) {
      this.#deps.log.error(`health: ${oneLine(error)}`);
      return text(500, 'internal error');
    }
  }

  async #answer(method: string, target: string): Promise<HealthAnswer> {
    if (method !== 'GET' && method !== 'HEAD') return text(405, 'only GET and HEAD', { allow: 'GET, HEAD' });
    const [path = '', query] = target.split(/\?(.*)/s);
    const [, first = '', ...rest] = path.split('/');
    if (path === '/metrics') return text(200, this.#deps.metrics(), { 'content-type': METRICS_TYPE });
    if (first === 'healthz' || first === 'livez' || first === 'readyz') {
      return this.#health(first, { only: decoded(rest.join('/')), query: new URLSearchParams(query) });
    }
    return text(404, 'there are only /healthz, /livez, /readyz and /metrics');
  }

  /** For hosts with `fetch` handlers. */
  async fetch(request: Request): Promise<Response> {
    checkRequest(request);
    const { pathname, search } = new URL(request.url);
    const { code, headers, body } = await this.answer(request.method, pathname + search);
    return new Response(request.method === 'HEAD' ? null : body, { status: code, headers });
  }

  async #health(path: 'healthz' | 'livez' | 'readyz', asked: { only: string; query: URLSearchParams }): Promise<HealthAnswer> {
    const { only, query } = asked;
    const excluded = query.getAll('exclude');
    const checks = await this.#look(path === 'readyz' ? 'readyz' : 'healthz', { only, excluded });
    if (only && checks.length === 0) return text(404, `there is no check ${JSON.stringify(only).slice(0, 80)}`);
    const ok = checks.every((each) => each.ok);
    return text(ok ? 200 : 500, ok && !query.has('verbose') ? 'ok' : healthText(path, checks));
  }

  async #look(
    path: 'healthz' | 'readyz',
    { only, excluded }: { readonly only: string; readonly excluded: readonly string[] },
  ): Promise<readonly HealthCheck[]> {
    const matters = (name: string): boolean => (only ? name === only : !excluded.includes(name));
    const { running, kinds } = this.#deps.state();
    const ping: HealthCheck = { name: 'ping', ok: true };
    const synced = this.#deps.readyWithoutKinds && !only ? [] : kinds.map(toCheck);
    const own: HealthCheck[] = path === 'healthz' ? [ping] : [{ name: 'running', ok: running }, ...synced];
    const others = this.#checks[path].filter(([name]) => matters(name));
    const all = [...own.filter(({ name }) => matters(name)), ...(await Promise.all(others.map((each) => this.#make(...each))))];
    for (const { name, ok, error } of all) {
      const known = `${path}/${name}`;
      if (ok) this.#failing.delete(known);
      else if (!this.#failing.has(known)) {
        this.#failing.add(known);
        this.#deps.log.info(`${known} fails${error === undefined ? '' : `: ${oneLine(error)}`}`);
      }
    }
    return all;
  }

  async #make(name: string, check: OperatorCheck): Promise<HealthCheck> {
    let result = this.#pending.get(check);
    if (!result) {
      result = Promise.resolve().then(check);
      this.#pending.set(check, result);
      const ended = (): void => void this.#pending.delete(check);
      result.then(ended, ended);
    }
    try {
      const what = (): string => `the check ${name}`;
      const said = await within(result, { limitMs: CHECK_MS, clock: this.#deps.clock ?? systemClock, what });
      if (said === false) return { name, ok: false, error: new Error('it returned false') };
      return { name, ok: true };
    } catch (error) {
      return { name, ok: false, error };
    }
  }
}

/** `kind/` and its name: whether it is synced. */
function toCheck({ kind, synced, error }: OperatorState['kinds'][number]): HealthCheck {
  return { name: `kind/${kind}`, ok: synced, ...(!synced && error !== undefined && { error }) };
}

const decoded = (text: string): string => tried(() => decodeURIComponent(text)) ?? text;

function text(code: number, body: string, headers: Readonly<Record<string, string>> = {}): HealthAnswer {
  const always = {
    'content-type': 'text/plain; charset=utf-8',
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
  };
  return { code, body, headers: { ...always, ...headers } };
}

export interface HealthServer {
  readonly url: string;
  /** Closes all connections. */
  close(): Promise<void>;
}

/** Kubelet and Prometheus need one each. Further connections are closed. */
const SLOTS = { maxClients: 256, maxClientsPerAddress: 64 };
/** How long a request may take to arrive, and how large it may be. */
const PATIENCE = { headersTimeout: 5_000, requestTimeout: 10_000, connectionsCheckingInterval: 1_000, maxHeaderSize: 16_384 };

/** @throws {WatchError} INVALID_ARGUMENT for anything but a port and a host. */
export function checkListen(options: ListenOptions): void {
  if (!isRecord(options)) throw invalid('listen', options, '{ port, host }');
  const { port, host } = checkOptions(options, ['port', 'host']);
  if (wholeNumber('listen.port', port) > MAX_PORT) throw invalid('listen.port', port, `at most ${MAX_PORT}`);
  if (host !== undefined) checkText('listen.host', host);
}

const MAX_PORT = 65_535;

/** Starts to listen, with node:http, which is loaded only for this. Rejects if that is not possible. */
export async function serveHealth(health: OperatorHealth, options: ListenOptions): Promise<HealthServer> {
  checkListen(options);
  const { port, host } = options;
  const { createServer } = await import('node:http');
  const server = createServer(PATIENCE, (request, response) => {
    void health.answer(request.method ?? '', request.url ?? '').then(({ code, headers, body }) => {
      const bytes = new TextEncoder().encode(body);
      const begin = (): void => void response.writeHead(code, { ...headers, 'content-length': bytes.length });
      endUnread(request, response, { begin, body: request.method === 'HEAD' ? null : bytes, clock: systemClock });
    });
  });
  const sockets = limitConnections(server, SLOTS);
  await new Promise<void>((resolve, reject) => {
    server.on('error', reject); // later errors are of connections that could not be accepted: the server goes on
    server.listen({ port, host }, resolve);
  });
  const { address, family, port: bound } = server.address() as AddressInfo;
  return {
    url: `http://${family === 'IPv6' ? `[${address}]` : address}:${bound}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
  };
}
