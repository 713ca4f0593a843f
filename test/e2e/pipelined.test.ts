// Connections that carry more than their watch: whatever follows on them costs nothing, and their end is noticed at once.
import type { Server, ServerResponse } from 'node:http';
import { createServer } from 'node:http';
import { createAdaptorServer } from '@hono/node-server';
import { afterAll, describe, expect, test } from 'vitest';
import { createFetchHandler } from '../../src/bridge/fetch.ts';
import type { HttpOptions } from '../../src/bridge/http.ts';
import { createHttpHandler, Hub } from '../../src/bridge/http.ts';
import { coreOf } from '../../src/bridge/hub/hub.ts';
import { attachWebSocket } from '../../src/bridge/websocket.ts';
import { until } from './cli.ts';
import type { Raw, Served } from './servers.ts';
import { closeAll, connections, get, raw, start, upgrade } from './servers.ts';

afterAll(closeAll);

interface Shared extends Served {
  readonly hub: Hub;
  /** Requests that the application's own route has seen. */
  readonly others: () => number;
}

const HOSTS: Readonly<Record<string, (hub: Hub, other: (response: ServerResponse) => void, options: HttpOptions) => Server>> = {
  'node:http': (hub, other, options) => {
    const watch = createHttpHandler(hub, options);
    return createServer((request, response) => (request.url === '/other' ? other(response) : watch(request, response)));
  },
  '@hono/node-server': (hub, other, options) => {
    const watch = createFetchHandler(hub, options as object);
    const fetch = (request: Request, host: { outgoing: ServerResponse }): Response | Promise<Response> => {
      if (!request.url.endsWith('/other')) return watch(request, host);
      other(host.outgoing);
      return new Response(null, { headers: { 'x-hono-already-sent': '1' } });
    };
    return createAdaptorServer({ fetch: fetch as never }) as Server;
  },
};

async function share(
  host: string,
  options: HttpOptions = {},
  other = (response: ServerResponse) => void response.end(),
): Promise<Shared> {
  const hub = new Hub();
  let others = 0;
  const counted = (response: ServerResponse): void => {
    others++;
    other(response);
  };
  const server = (HOSTS[host] as NonNullable<(typeof HOSTS)[string]>)(hub, counted, options);
  attachWebSocket(server, hub);
  return { hub, others: () => others, ...(await start(server)) };
}

const answers = ({ heard }: Raw): number => heard().split('HTTP/1.1 ').length - 1;

const slotsTaken = (hub: Hub): number => (coreOf(hub) as unknown as { slots: { taken: number } }).slots.taken;

/** The client's connection has gone, with all that the hub had for it, although the client keeps its side open. */
async function hasGone({ hub, server }: Shared, { ended }: Raw): Promise<void> {
  await ended;
  await until(async () => (await connections(server)) === 0);
  await until(() => hub.stats().clients.length === 0 && slotsTaken(hub) === 0);
}

const MORE: readonly [string, string][] = [
  ['the same route', get('/watch')],
  ["the application's own route", get('/other')],
  ['a method that is refused', get('/watch').replace('GET', 'POST')],
  ['a preflight', get('/watch', 'Origin: http://127.0.0.1').replace('GET', 'OPTIONS')],
  ['a WebSocket', upgrade('/watch')],
  ['a WebSocket elsewhere', upgrade('/nowhere')],
  ['a request that Node answers for its expectation', get('/other', 'Expect: a-miracle')],
  ['a request that Node answers for its missing host', 'GET /other HTTP/1.1\r\n\r\n'],
];

describe.each(Object.keys(HOSTS))('%s: behind an open watch', (host) => {
  describe.each(MORE)('%s', (_what, more) => {
    test.each([
      ['with the watch', true],
      ['later', false],
    ])('a thousand times, %s, closes the connection and is never handled', async (_when, isTogether) => {
      const shared = await share(host);
      const client = await raw(shared.port);
      const many = more.repeat(Math.min(1_000, Math.floor(60_000 / more.length)));
      if (isTogether) client.socket.write(get('/watch') + many);
      else {
        client.socket.write(get('/watch'));
        await until(() => shared.hub.stats().clients.length === 1 && answers(client) === 1);
        client.socket.write(many);
      }
      await hasGone(shared, client);
      expect(answers(client)).toBeLessThan(2);
      expect(shared.others()).toBe(0);
      expect(shared.hub.stats().total).toMatchObject({ clients: 1, refusals: { pipelined: 1 } });
    });
  });

  test('part of a request is not one: the watch goes on, until the rest comes', async () => {
    const shared = await share(host);
    const client = await raw(shared.port);
    client.socket.write(get('/watch') + get('/other').slice(0, -2));
    await until(() => answers(client) === 1);
    await shared.hub.publish({ type: 'ADDED', object: 'still here' });
    await until(() => client.heard().includes('still here'));
    client.socket.write('\r\n');
    await hasGone(shared, client);
  });

  test('a client that closes its side is noticed, although nothing is published', async () => {
    const shared = await share(host);
    const client = await raw(shared.port);
    client.socket.write(get('/watch'));
    await until(() => shared.hub.stats().clients.length === 1);
    client.socket.end();
    await hasGone(shared, client);
  });

  test('a long body closes the connection, a short one is dropped', async () => {
    const shared = await share(host);
    const [short, long] = [await raw(shared.port), await raw(shared.port)];
    short.socket.write(`${get('/watch', 'Content-Length: 5')}short`);
    long.socket.write(get('/watch', 'Transfer-Encoding: chunked') + '1\r\nx\r\n'.repeat(100_000));
    await long.ended;
    await until(() => shared.hub.stats().clients.length === 1);
    await shared.hub.publish({ type: 'ADDED', object: 'still here' });
    await until(() => short.heard().includes('still here'));
    short.socket.destroy();
    await hasGone(shared, long);
  });

  test('a client that is still being admitted is gone, too', async () => {
    let asked = 0;
    const forever = (): Promise<never> => {
      asked++;
      return new Promise(() => {});
    };
    const shared = await share(host, { authenticate: forever });
    const client = await raw(shared.port);
    client.socket.write(get('/watch') + get('/other').repeat(500));
    await hasGone(shared, client);
    expect([asked, shared.others(), answers(client)]).toEqual([1, 0, 0]);
  });

  test('a watch behind a request that is still unanswered has no slot, and closes the connection', async () => {
    const shared = await share(host, {}, () => {});
    const client = await raw(shared.port);
    client.socket.write(get('/other') + get('/watch'));
    await hasGone(shared, client);
    expect(shared.hub.stats().total).toMatchObject({ clients: 0, refusals: { pipelined: 1 } });
  });

  test('once the watch has ended, the connection serves the next request', async () => {
    const shared = await share(host);
    const client = await raw(shared.port);
    client.socket.write(get('/watch'));
    await until(() => shared.hub.stats().clients.length === 1);
    await shared.hub.shutdown();
    await until(() => client.heard().endsWith('0\r\n\r\n'));
    for (const [path, status] of [
      ['/other', 200],
      ['/watch', 204],
      ['/other', 200],
    ] as const) {
      const before = answers(client);
      client.socket.write(get(path));
      await until(() => answers(client) === before + 1);
      expect(client.heard().slice(client.heard().lastIndexOf('HTTP/1.1'))).toContain(`HTTP/1.1 ${status} `);
    }
    client.socket.destroy();
    await hasGone(shared, client);
  });
});
