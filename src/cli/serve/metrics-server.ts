import { createServer, type RequestListener, type Server } from 'node:http';
import { processMetrics } from '../../apiserver/process-metrics.ts';
import type { ApiServer } from '../../apiserver/server.ts';
import { METRICS_TYPE } from '../../bridge/hub/metrics.ts';
import { BAD_QUERY_TEXT } from '../../bridge/hub/query.ts';
import { pathOf } from '../../bridge/transport/upgrades.ts';
import { Pipelining } from '../server/pipelining.ts';
import { isMeant, METRICS_PATH, PATIENCE, queryOf, sendWhole, WRONG_NAME } from '../server/server.ts';

const HEALTH: ReadonlySet<string> = new Set(['/healthz', '/livez', '/readyz']);

/** Options of {@link createMetricsServer}. */
export interface MetricsServerOptions {
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
