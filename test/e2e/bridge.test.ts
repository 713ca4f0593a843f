// watchmux/http and watchmux/ws in a user's own server, over real sockets.
import type { Server } from 'node:http';
import { createServer, request as send } from 'node:http';
import type { Duplex } from 'node:stream';
import { afterAll, describe, expect, test } from 'vitest';
import { WebSocket, WebSocketServer } from 'ws';
import { createFetchHandler } from '../../src/bridge/fetch.ts';
import { createHttpHandler, Hub } from '../../src/bridge/http.ts';
import type { WebSocketOptions } from '../../src/bridge/websocket.ts';
import { attachWebSocket, createUpgradeHandler } from '../../src/bridge/websocket.ts';
import { Broadcaster } from '../../src/broadcast/broadcaster.ts';
import { FakeClock } from '../../src/testing/fakes/fake-clock.ts';
import type { WatchEvent } from '../../src/watch/event.ts';
import { httpStream, open, sse, TRANSPORTS, until, webSocket } from './cli.ts';
import { closeAll, serve as serveAll, serveFetch, start } from './servers.ts';

afterAll(closeAll);

const listen = async (server: Server): Promise<string> => (await start(server)).url;
const serve = async (...what: Parameters<typeof serveAll>): Promise<string> => (await serveAll(...what)).url;

const added = (object: unknown): WatchEvent => ({ type: 'ADDED', object });

/** Bigger than what kernels keep for a reader that has stopped. */
const MEGABYTE = 'x'.repeat(1_000_000);

test('a custom broadcaster, on both transports, in a few lines', async () => {
  type Orders = WatchEvent<'placed', { id: number }>;
  const orders = new Broadcaster<Orders>();
  const hub = new Hub<Orders>();
  const followed = hub.follow(orders.watch());
  const server = createServer(createHttpHandler(hub));
  attachWebSocket(server, hub);
  const url = await listen(server);
  const clients = await Promise.all([webSocket(url), httpStream(url), sse(url)]);
  await orders.publish({ type: 'placed', object: { id: 1 } });
  await orders.shutdown();
  await followed;
  for (const client of clients) {
    await client.ended;
    expect(client.events()).toEqual([{ type: 'placed', object: { id: 1 } }]);
  }
});

describe.each(TRANSPORTS)('%s', (name, connect) => {
  test('a client that takes nothing is cut, and what it held is released', async () => {
    const hub = new Hub({ overflow: 'wait', capacity: 1 });
    const client = await connect(await serve(hub, { stallTimeoutMs: 50 }));
    client.pause();
    const published = Promise.all(Array.from({ length: 20 }, () => hub.publish(added(MEGABYTE))));
    await published;
    await until(() => hub.stats().clients.length === 0);
    client.close();
  });

  test('a client that is only quiet is not cut', async () => {
    const hub = new Hub();
    const clock = new FakeClock();
    const client = await connect(await serve(hub, { stallTimeoutMs: 10, heartbeatMs: 0, clock }));
    await until(() => hub.stats().clients.length === 1);
    clock.advance(1_000);
    await hub.publish(added(1));
    await until(() => client.texts.length === 1);
    await hub.shutdown();
    await client.ended;
  });

  test('holds no more than the limits for a client that has stopped reading', async () => {
    const hub = new Hub({ capacity: 2 });
    const client = await connect(await serve(hub, { maxBufferedBytes: 100_000 }));
    client.pause();
    let most = 0;
    for (let i = 0; i < 40; i++) {
      await hub.publish(added(MEGABYTE));
      most = Math.max(most, hub.stats().clients[0]?.bufferedBytes ?? 0);
    }
    expect(most).toBeGreaterThan(0);
    // The limit, one event more, and the framing.
    expect(most).toBeLessThan(100_000 + 1_000_000 + 1_000);
    client.resume();
    await client.ended;
    expect(client.events().at(-1)).toMatchObject({ type: 'ERROR', object: { code: 410 } });
  });

  test('a client whose filter throws is told: the end of a response alone would pass for that of the stream', async () => {
    const hub = new Hub({ onNotice: () => {} });
    const filter = ({ object }: WatchEvent): boolean => {
      if (object === 'bad') throw new Error('secret');
      return true;
    };
    const options = { watchOptions: () => ({ filter }) };
    const urls = [await serve(hub, options), ...(name === 'WebSocket' ? [] : [(await serveFetch(hub, options)).url])];
    for (const url of urls) {
      const client = await connect(url);
      await until(() => hub.stats().clients.length === 1);
      for (const object of ['good', 'bad', 'later']) await hub.publish(added(object));
      await client.ended;
      const status = { code: 500, message: 'this watch failed in the server', details: { retryAfterSeconds: 1 } };
      expect(client.events()).toMatchObject([added('good'), { type: 'ERROR', object: status }]);
      expect(client.events().at(-1)).not.toHaveProperty('resourceVersion');
      expect(client.texts.join()).not.toContain('secret');
    }
  });

  test('a hub that is full, or shutting down, refuses with 503', async () => {
    const hub = new Hub({ maxClients: 1 });
    const url = await serve(hub);
    const client = await connect(url);
    await expect(connect(url)).rejects.toThrow('503');
    client.close();
    await until(() => hub.stats().clients.length === 0);
    await hub.shutdown({ retryAfterMs: 1_000 });
    await expect(connect(url)).rejects.toThrow('503');
    expect(hub.stats().total).toMatchObject({ clients: 1, refused: 2 });
  });

  test('a hub that has ended sends the rest to a client that reconnects, and 204 to one that has everything', async () => {
    const hub = new Hub({ epoch: 'e' });
    const url = await serve(hub);
    for (let i = 1; i <= 3; i++) await hub.publish(added(i));
    await hub.shutdown();
    const behind = await connect(url, { query: '?resourceVersion=e.1' });
    expect(await behind.ended).toBe(name === 'WebSocket' ? '1000' : 'complete');
    expect(behind.events().map(({ object }) => object)).toEqual([2, 3]);
    for (const query of ['?resourceVersion=e.3', '']) {
      const outcome = connect(url, { query }).then(
        async (client) => [await client.ended, client.events()],
        (error: Error) => error.message,
      );
      expect(await outcome).toEqual(name === 'WebSocket' ? ['1000', []] : '204');
    }
    expect(hub.stats()).toMatchObject({ clients: [], total: { delivered: 2, resumes: 1, refusals: { ended: 2 } } });
  });

  test('a hub that has ended sends 204 to a client whose filter hides the rest', async () => {
    const hub = new Hub({ epoch: 'e' });
    const url = await serve(hub, { watchOptions: () => ({ filter: ({ object }) => object !== 3 }) });
    for (let i = 1; i <= 3; i++) await hub.publish(added(i));
    await hub.shutdown();
    const behind = await connect(url, { query: '?resourceVersion=e.1' });
    await behind.ended;
    expect(behind.events().map(({ object }) => object)).toEqual([2]);
    // It comes back with what it saw last: an empty answer would bring it back with the same, for ever.
    const again = connect(url, { query: '?resourceVersion=e.2' }).then(
      (client) => client.ended,
      (error: Error) => error.message,
    );
    expect(await again).toBe(name === 'WebSocket' ? '1000' : '204');
    expect(hub.stats().total).toMatchObject({ clients: 1, refusals: { ended: 1 } });
  });
});

describe('HTTP', () => {
  test('refuses all methods but GET and HEAD, answers HEAD without a stream, and adds headers', async () => {
    const hub = new Hub();
    const url = await serve(hub, { headers: { 'access-control-allow-origin': '*' } });
    const status = (method: string): Promise<number | undefined> =>
      new Promise(
        (resolve) => void send(url, { method, agent: false }, (response) => resolve(response.resume().statusCode)).end(),
      );
    expect(await status('POST')).toBe(405);
    expect(await status('HEAD')).toBe(200);
    expect(hub.stats().total.clients).toBe(0);
    const response = await open(url);
    expect(response.headers['access-control-allow-origin']).toBe('*');
    response.destroy();
    await until(() => hub.stats().clients.length === 0);
  });

  test('SSE needs an Accept header that names it', async () => {
    const url = await serve(new Hub());
    for (const [accept, type] of [
      ['text/event-stream', 'text/event-stream'],
      ['TEXT/Event-Stream; charset=utf-8, */*', 'text/event-stream'],
      ['*/*', 'application/json'],
      ['text/event-stream;q=0, application/json', 'application/json'],
      ['text/event-streams', 'application/json'],
    ] as const) {
      const response = await open(url, { accept });
      expect(response.headers['content-type']).toBe(type);
      response.destroy();
    }
  });

  test('needs a hub: a broadcaster throws when the handler is created, not when clients connect', () => {
    const refused = expect.objectContaining({ code: 'INVALID_ARGUMENT', message: expect.stringMatching(/^hub: expected a Hub/) });
    for (const hub of [new Broadcaster(), undefined] as unknown[] as Hub[]) {
      expect(() => createHttpHandler(hub)).toThrow(refused);
      expect(() => createFetchHandler(hub)).toThrow(refused);
      expect(() => createUpgradeHandler(hub)).toThrow(refused);
    }
  });

  test.each([{ maxBufferedBytes: 0 }, { stallTimeoutMs: -1 }, { stallTimeoutMs: Number.NaN }])('refuses %j', (options) => {
    expect(() => createHttpHandler(new Hub(), options)).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }));
  });
});

describe('WebSocket', () => {
  const outcome = (url: string, headers: Record<string, string> = {}): Promise<unknown> =>
    new Promise((resolve) => {
      const socket = new WebSocket(url.replace('http', 'ws'), { headers });
      socket.on('unexpected-response', (_request, response) => resolve(response.statusCode));
      socket.on('error', () => resolve('error'));
      socket.on('open', () => {
        resolve('open');
        socket.terminate();
      });
    });

  test.each<[WebSocketOptions, string | undefined, unknown]>([
    [{}, undefined, 'open'],
    [{}, 'same', 'open'],
    [{}, 'http://evil.example', 403],
    [{}, 'null', 403],
    [{ allowedOrigins: '*' }, 'http://evil.example', 'open'],
    [{ allowedOrigins: ['http://good.example'] }, 'http://good.example', 'open'],
    [{ allowedOrigins: ['http://good.example'] }, 'same', 403],
    [{ allowedOrigins: (origin) => origin.endsWith('.example') }, 'http://a.example', 'open'],
  ])('with %o, the origin %s gets %s', async (options, origin, expected) => {
    const url = await serve(new Hub(), options);
    const headers: Record<string, string> = origin === undefined ? {} : { origin: origin === 'same' ? url : origin };
    expect(await outcome(`${url}/watch`, headers)).toBe(expected);
  });

  test.each([
    ['createHttpHandler', (hub: Hub) => listen(createServer(createHttpHandler(hub)))],
    ['createFetchHandler', async (hub: Hub) => (await serveFetch(hub)).url],
  ])('a WebSocket request to %s is refused at once: a stream would keep it waiting for its handshake', async (_, host) => {
    const hub = new Hub({ replay: 1 });
    await hub.publish({ type: 'a', object: 1 });
    const url = await host(hub);
    expect(await outcome(`${url}/watch`)).toBe(404);
    expect(hub.stats().total).toMatchObject({ clients: 0 });
    // What is left of one behind a proxy that was not told to pass on headers of one hop.
    const stripped = await fetch(`${url}/watch`, { headers: { 'sec-websocket-key': 'AAAAAAAAAAAAAAAAAAAAAA==' } });
    expect(await stripped.json()).toMatchObject({ code: 404, message: expect.stringContaining('the header Upgrade') });
    // A proxy that sets these for every request does not ask for a WebSocket.
    const headers = { upgrade: 'websocket', connection: 'Upgrade' };
    const request = send(`${url}/watch`, { headers });
    request.on('error', () => {});
    const answer = new Promise((resolve) => request.on('response', (response) => resolve(response.statusCode)));
    request.end();
    expect(await answer).toBe(200);
    request.destroy();
  });

  test('works beside other upgrade listeners, and can be detached', async () => {
    const hub = new Hub();
    const server = createServer(createHttpHandler(hub));
    const detach = attachWebSocket(server, hub, { path: '/events' });
    const url = await listen(server);
    expect(await outcome(`${url}/echo`)).toBe(404);
    const other = new WebSocketServer({ noServer: true });
    server.on('upgrade', (request, socket, head) => {
      if (request.url === '/echo') other.handleUpgrade(request, socket, head, () => {});
    });
    expect(await outcome(`${url}/echo`)).toBe('open');
    expect(await outcome(`${url}/events?x=1`)).toBe('open');
    detach();
    expect(server.listenerCount('upgrade')).toBe(1);
  });

  test('custom routing: an upgrade handler says whether the request was meant for it', async () => {
    const upgrade = createUpgradeHandler(new Hub(), { path: '/a' });
    const server = createServer();
    server.on('upgrade', (request, socket: Duplex, head) => {
      if (!upgrade(request, socket, head)) socket.destroy();
    });
    const url = await listen(server);
    expect(await outcome(`${url}/a`)).toBe('open');
    expect(await outcome(`${url}/b`)).toBe('error');
  });

  test('a client that does not answer a ping is cut at the next one; one that does stays', async () => {
    const clock = new FakeClock();
    const hub = new Hub();
    const url = await serve(hub, { heartbeatMs: 1_000, stallTimeoutMs: 0, clock });
    const alive = new WebSocket(`${url.replace('http', 'ws')}/watch`);
    const dead = new WebSocket(`${url.replace('http', 'ws')}/watch`, { autoPong: false });
    const closed = new Promise((resolve) => dead.on('close', resolve));
    await until(() => hub.stats().clients.length === 2);
    const pinged = [alive, dead].map((socket) => new Promise((resolve) => socket.once('ping', resolve)));
    clock.advance(1_000);
    await Promise.all(pinged);
    // What the living one says after its pong comes after it: once that has arrived, so has the pong.
    const heard = new Promise((resolve) => alive.once('pong', resolve));
    alive.ping();
    await heard;
    clock.advance(1_000);
    expect(await closed).toBe(1006);
    await until(() => hub.stats().clients.length === 1);
    alive.terminate();
    await until(() => hub.stats().clients.length === 0);
    expect(clock.pending).toBe(0);
  });

  test('can only be attached to a server, at a valid path', () => {
    const refused = expect.objectContaining({ code: 'INVALID_ARGUMENT' });
    const hub = new Hub();
    // As an application of Express is: a function that has `on`, and never upgrades.
    const app = Object.assign(() => {}, { on: () => {} });
    for (const server of [app, hub, undefined]) expect(() => attachWebSocket(server as never, hub)).toThrow(refused);
    for (const path of ['watch', '', 1]) expect(() => createUpgradeHandler(hub, { path: path as string })).toThrow(refused);
  });

  test('an incomplete handshake is refused', async () => {
    const hub = new Hub();
    const url = await serve(hub);
    const request = send(`${url}/watch`, { headers: { upgrade: 'websocket', connection: 'Upgrade' } });
    request.on('error', () => {});
    const answer = new Promise((resolve) => request.on('response', (response) => resolve(response.resume().statusCode)));
    request.end();
    expect(await answer).toBe(400);
    expect(hub.stats().clients).toEqual([]);
  });
});
