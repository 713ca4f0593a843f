import { createServer, type RequestListener, type Server } from 'node:http';
import type { ApiServer } from '../../apiserver/server.ts';
import { METRICS_TYPE } from '../../bridge/hub/metrics.ts';
import { pathOf } from '../../bridge/transport/upgrades.ts';
import { Pipelining } from '../server/pipelining.ts';
import { isMeant, METRICS_PATH, PATIENCE } from '../server/server.ts';

const HEALTH: ReadonlySet<string> = new Set(['/healthz', '/livez', '/readyz']);

/**
 * The server of `--metrics`: numbers and health, but no objects, so it asks for no token. It keeps running while the other one
 * drains.
 */
export function createMetricsServer(api: Pick<ApiServer, 'handler' | 'metrics'>, host: string): Server {
  const pipelining = new Pipelining();
  const listener: RequestListener = (request, response) => {
    if (!pipelining.takes(response)) return;
    const path = pathOf(request.url);
    const meant = isMeant(request, { server, host });
    if (meant && HEALTH.has(path)) {
      api.handler(request, response);
      return;
    }
    request.resume();
    const readable = request.method === 'GET' || request.method === 'HEAD';
    const code = !meant ? 421 : path !== METRICS_PATH ? 404 : readable ? 200 : 405;
    const body = code === 200 ? api.metrics : `${WRONG[code]}\n`;
    response.writeHead(code, {
      'content-type': code === 200 ? METRICS_TYPE : 'text/plain; charset=utf-8',
      'content-length': Buffer.byteLength(body),
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      ...(code === 405 && { allow: 'GET, HEAD' }),
    });
    response.end(request.method === 'HEAD' ? undefined : body);
  };
  const server = createServer(PATIENCE, listener);
  return server;
}

const WRONG: Readonly<Record<number, string>> = {
  404: 'not found: there are only /metrics, /healthz, /livez and /readyz',
  405: 'only GET and HEAD',
  421: 'the header Host does not name this server',
};
