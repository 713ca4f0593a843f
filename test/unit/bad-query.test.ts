// A query that cannot be decoded is 400 wherever it comes in. Read as it stands, `watch=%` would be a yes.
import { once } from 'node:events';
import { createServer, get, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { WebSocket } from 'ws';
import { createFetchHandler } from '../../src/bridge/fetch.ts';
import { createConnectionHandler, createHttpHandler } from '../../src/bridge/http.ts';
import { Hub } from '../../src/bridge/hub/hub.ts';
import { readQuery, toParameters } from '../../src/bridge/hub/query.ts';
import { attachWebSocket } from '../../src/bridge/websocket.ts';
import { createMetricsServer } from '../../src/cli/serve/serve.ts';
import { listening } from '../listening.ts';
import { ORDERS_PATH, rig } from './apiserver-rig.ts';
import { FakeSink } from './fake-sink.ts';

/** No two hexadecimal digits, or no UTF-8. */
const BAD = ['%', '%4', '%zz', '%u0041', '%ff', '%c3%28', '%ed%a0%80', 'a%'] as const;

const status = (url: string, headers: Record<string, string> = {}): Promise<number | undefined> =>
  new Promise((resolve, reject) => {
    get(url, { headers, agent: false }, (response) => {
      response.destroy();
      resolve(response.statusCode);
    }).on('error', reject);
  });

async function serve(listener: RequestListener, onServer: (server: ReturnType<typeof createServer>) => void = () => {}) {
  const server = createServer(listener);
  onServer(server);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** How a handshake ends: a code, or the close code of a socket that was opened only to be told. */
function handshake(url: string): Promise<unknown> {
  const socket = new WebSocket(url.replace('http', 'ws'));
  return new Promise((resolve) => {
    socket.on('unexpected-response', (_, { statusCode }) => resolve(statusCode));
    socket.on('close', (code) => resolve(code));
    socket.on('error', () => {});
  });
}

test('the parameters of a query, or nothing', () => {
  for (const bad of BAD)
    for (const search of [`watch=${bad}`, `${bad}=1`, `a=1&${bad}`]) expect(toParameters(search)).toBeUndefined();
  expect([...(toParameters('a=%e2%82%ac+%2B&b&c=%25') ?? [])]).toEqual([
    ['a', '€ +'],
    ['b', ''],
    ['c', '%'],
  ]);
});

test.each([
  [{}, 2_048],
  [{ maxQueryBytes: 20 }, 20],
])('a query of a hub has so many bytes, and no more: %j', async (options, most) => {
  const hub = new Hub();
  const serve = createConnectionHandler(hub, options);
  const ask = (bytes: number) => serve(new FakeSink(), { request: undefined, search: 'a=1&'.repeat(bytes).slice(0, bytes) });
  expect(await ask(most)).toBeUndefined();
  expect(await ask(most + 1)).toMatchObject({ code: 400, message: expect.stringContaining(`at most ${most} bytes`) });
  await hub.shutdown({ signal: AbortSignal.abort() }).catch(() => {});
});

describe.each(BAD)('%s', (bad) => {
  test.each(['watch', 'limit', 'labelSelector', 'timeoutSeconds', 'pretty', 'anything'])(
    'as %s of an API server',
    async (name) => {
      const { call } = rig();
      for (const path of [
        ORDERS_PATH,
        `${ORDERS_PATH}/a`,
        '/stats',
        '/metrics',
        '/readyz',
        '/livez',
        '/apis',
        '/openapi/v3',
        '/none',
      ]) {
        const { code, body } = await call('GET', `${path}?${name}=${bad}`);
        expect([path, code, body?.message]).toEqual([path, 400, 'the query of the URL is not encoded correctly']);
      }
      for (const method of ['POST', 'DELETE']) expect((await call(method, `${ORDERS_PATH}?${name}=${bad}`, {})).code).toBe(400);
    },
  );

  test('of an API server, on node:http and over WebSocket', async () => {
    const { server } = rig();
    const { url, http, close } = await listening(server);
    onTestFinished(close);
    http.on('upgrade', server.upgrade);
    expect(await status(`${url}${ORDERS_PATH}?watch=${bad}`)).toBe(400);
    expect(await status(`${url}${ORDERS_PATH}?watch=${bad}`, { accept: 'text/event-stream' })).toBe(400);
    expect(await handshake(`${url}${ORDERS_PATH}?watch=${bad}`)).toBe(400);
    expect(server.stats.watchersOpened).toBe(0);
  });

  test('of a hub, on every transport', async () => {
    const hub = new Hub();
    const url = await serve(createHttpHandler(hub) as RequestListener, (server) => void attachWebSocket(server, hub));
    const search = `allowWatchBookmarks=true&x=${bad}`;
    expect(readQuery({ search, lastEventId: undefined })).toMatchObject({ code: 400 });
    expect(await status(`${url}/watch?${search}`)).toBe(400);
    expect(await status(`${url}/watch?${search}`, { accept: 'text/event-stream' })).toBe(400);
    expect((await createFetchHandler(hub)(new Request(`${url}/watch?${search}`))).status).toBe(400);
    expect(await handshake(`${url}/watch?${search}`)).toBe(4400);
    const refusal = await createConnectionHandler(hub)(new FakeSink(), { request: undefined, search });
    expect(refusal).toMatchObject({ code: 400, reason: 'BadRequest' });
    expect(hub.stats().total).toMatchObject({ clients: 0, refusals: { badRequest: 5 } });
  });

  test('of --metrics', async () => {
    const made = createMetricsServer(rig().server, { host: '127.0.0.1', keepAliveMs: 60_000 });
    const metrics = await serve(made.listeners('request')[0] as RequestListener);
    for (const path of ['/metrics', '/readyz']) expect([path, await status(`${metrics}${path}?x=${bad}`)]).toEqual([path, 400]);
  });
});
