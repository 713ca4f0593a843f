// The handler in other environments: other versions of HTTP, middleware, listeners.

import { channel, subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import type { Server } from 'node:http';
import { createServer, ServerResponse } from 'node:http';
import type { ClientHttp2Stream, Http2ServerRequest, Http2ServerResponse } from 'node:http2';
import { connect as connectHttp2, createServer as createHttp2Server } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { PassThrough } from 'node:stream';
import { constants, createGunzip, createGzip } from 'node:zlib';
import { createAdaptorServer } from '@hono/node-server';
import { Hono } from 'hono';
import { compress } from 'hono/compress';
import { afterAll, describe, expect, test, vi } from 'vitest';
import { SLICE_BYTES } from '../../src/bridge/events/forms.ts';
import { createFetchHandler } from '../../src/bridge/fetch.ts';
import { createHttpHandler, Hub } from '../../src/bridge/http.ts';
import { Reservation } from '../../src/bridge/hub/admission/connection-slots.ts';
import { coreOf } from '../../src/bridge/hub/hub.ts';
import { FakeClock } from '../../src/testing/fakes/fake-clock.ts';
import type { WatchEvent } from '../../src/watch/event.ts';
import { httpStream, open, sse, until } from './cli.ts';
import { closeAll, get, raw, serve, serveFetch, start } from './servers.ts';

afterAll(closeAll);

const added = (object: unknown): WatchEvent => ({ type: 'ADDED', object });
const MEGABYTE = 'x'.repeat(1_000_000);

test('HTTP/1.0 gets a stream without chunks, which ends with the connection', async () => {
  const hub = new Hub({ epoch: 'e' });
  const { port } = await serve(hub);
  const { socket, heard, ended } = await raw(port);
  socket.write('GET /watch HTTP/1.0\r\n\r\n');
  await until(() => hub.stats().clients.length === 1);
  await hub.publish(added(1));
  await hub.publish(added(2));
  await hub.shutdown();
  await ended;
  const [head, body] = heard().split('\r\n\r\n') as [string, string];
  expect(head).not.toContain('chunked');
  expect(body).toBe('{"type":"ADDED","object":1,"resourceVersion":"e.1"}\n{"type":"ADDED","object":2,"resourceVersion":"e.2"}\n');
});

test.each([
  ['http', serve],
  ['fetch', serveFetch],
] as const)(
  'a quiet stream of watchmux/%s sends a first byte to clients that ask for BOOKMARKs: Firefox waits for it',
  async (_name, host) => {
    // A snapshot that is not there yet: without one, the first BOOKMARK follows at once.
    const hub = new Hub({ epoch: 'e', snapshot: () => new Promise<never>(() => {}) });
    const { url } = await host(hub);
    for (const [accept, query, first] of [
      ['application/json', '?allowWatchBookmarks=true', ' '],
      ['text/event-stream', '?sendInitialEvents=false', 'retry: 2000\nid: e.0\nevent: bookmark\ndata\n\n'],
    ] as const) {
      const response = await open(`${url}/watch${query}`, { accept });
      const [bytes] = await once(response, 'data');
      expect(String(bytes)).toBe(first);
      response.destroy();
    }
  },
);

test.each([
  ['http', serve],
  ['fetch', serveFetch],
] as const)('an event stream of watchmux/%s regularly sends its position, so it is never quiet for long', async (_name, host) => {
  const clock = new FakeClock();
  const hub = new Hub({ epoch: 'e', clock });
  const { url } = await host(hub);
  const response = await open(`${url}/watch`, { accept: 'text/event-stream' });
  let text = '';
  response.on('data', (bytes) => {
    text += String(bytes);
  });
  await until(() => text.includes('id: e.0\nevent: bookmark\ndata\n\n'));
  await hub.publish(added(1));
  await until(() => text.endsWith('\n\n') && text.includes('id: e.1\ndata: '));
  const before = text.length;
  clock.advance(30_000);
  await until(() => text.length > before);
  expect(text.slice(before)).toBe('id: e.1\nevent: bookmark\ndata\n\n');
  response.destroy();
  await until(() => clock.pending === 0);
});

test('HTTP/1.1 gets one chunk per slice, and the connection serves the next request after the stream has ended', async () => {
  const clock = new FakeClock();
  const hub = new Hub({ epoch: 'e', clock });
  const { port } = await serve(hub);
  const { socket, heard } = await raw(port);
  socket.write('GET /watch?timeoutSeconds=1 HTTP/1.1\r\nHost: h\r\n\r\n');
  await until(() => hub.stats().clients.length === 1);
  for (let i = 1; i <= 3; i++) hub.tryPublish(added(i));
  await until(() => heard().includes('"resourceVersion":"e.3"'));
  clock.advance(1_000);
  await until(() => heard().endsWith('0\r\n\r\n'));
  const [, ...chunks] = heard().split('\r\n\r\n')[1]?.split('\r\n') ?? [];
  expect(heard().match(/"object":/g)).toHaveLength(3);
  expect(chunks.length).toBeLessThanOrEqual(4);
  socket.write('POST /watch HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n');
  await until(() => heard().includes('HTTP/1.1 405 '));
  socket.destroy();
  await until(() => hub.stats().clients.length === 0);
});

test('HTTP/2 is served through its own responses, and a stalled reader is bounded there, too', async () => {
  const hub = new Hub({ epoch: 'e', capacity: 2, overflow: 'drop-oldest' });
  const handler = createHttpHandler(hub, { maxBufferedBytes: 100_000 }) as never;
  const server = createHttp2Server(handler);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const session = connectHttp2(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  const stream = session.request({ ':path': '/watch?resourceVersion=e.0', accept: 'text/event-stream' });
  const headers = await new Promise<Record<string, unknown>>((resolve) => stream.once('response', resolve));
  expect(headers).toMatchObject({ ':status': 200, 'content-type': 'text/event-stream' });
  let most = 0;
  for (let i = 0; i < 20; i++) {
    await hub.publish(added(MEGABYTE));
    most = Math.max(most, hub.stats().clients[0]?.bufferedBytes ?? 0);
  }
  expect(hub.stats().clients[0]).toMatchObject({ transport: 'sse', resumed: true });
  expect(most).toBeLessThan(1_200_000);
  let text = '';
  stream.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk;
  });
  await until(() => text.includes('id: e.20\n') && text.endsWith('\n\n'));
  const refused = session.request({ ':path': '/watch?resourceVersion=nonsense' });
  const status = await new Promise<Record<string, unknown>>((resolve) => refused.once('response', resolve));
  expect(status[':status']).toBe(400);
  session.destroy();
  await until(() => hub.stats().clients.length === 0);
  await new Promise((resolve) => server.close(resolve));
});

test('over HTTP/2, a slow client shows progress while it reads a long event, and is not cut as stalled', async () => {
  const hub = new Hub({ epoch: 'e' });
  const server = createHttp2Server(createHttpHandler(hub) as never);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const session = connectHttp2(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  const stream = session.request({ ':path': '/watch' });
  await new Promise((resolve) => stream.once('response', resolve));
  const waiting = (): number => hub.stats().clients[0]?.bufferedBytes ?? 0;
  for (let i = 0; i < 3; i++) {
    await hub.publish(added('x'.repeat(300_000)));
    // All of it but for a window or so, which is on its way.
    await until(() => waiting() > i * 300_000 + 150_000);
  }
  let taken = 0;
  for (let steps = 0; steps < 3; steps++) {
    const before = waiting();
    await until(() => {
      taken += (stream.read() as Buffer | null)?.length ?? 0;
      return waiting() < before;
    });
    expect(waiting()).toBeGreaterThan(300_000);
  }
  // 900,000 less the 300,000 that still wait, and the piece on its way, which counts on both sides.
  expect(taken).toBeLessThan(700_000);
  session.destroy();
  await until(() => hub.stats().clients.length === 0);
  await new Promise((resolve) => server.close(resolve));
});

test('over HTTP/2, refusals that a client does not take do not pile up', async () => {
  const hub = new Hub({ maxClients: 1 });
  const server = createHttp2Server(createHttpHandler(hub) as never);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  // It takes nothing of any body.
  const client = connectHttp2(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, {
    settings: { initialWindowSize: 0 },
  });
  await new Promise((resolve) => client.once('remoteSettings', resolve));
  let [answered, refused] = [0, 0];
  const ask = (): ClientHttp2Stream => {
    const stream = client.request({ ':path': '/watch' });
    stream.on('response', () => answered++);
    stream.on('error', () => {});
    stream.on('close', () => {
      if (stream.rstCode === 7) refused++;
    });
    return stream;
  };
  const streams = Array.from({ length: 300 }, ask);
  await until(() => answered + refused === 300);
  expect([answered, refused]).toEqual([101, 199]);
  // As soon as one of them has gone, there is room for another.
  for (const stream of streams.slice(1, 11)) stream.close();
  await until(() => {
    ask();
    return answered > 101;
  });
  client.destroy();
  await until(() => hub.stats().clients.length === 0);
  await new Promise((resolve) => server.close(resolve));
});

test('over HTTP/2, a client that has gone before the handler is called leaves neither a session nor a slot', async () => {
  const hub = new Hub({ maxClients: 1 });
  const handler = createHttpHandler(hub) as never as (request: Http2ServerRequest, response: Http2ServerResponse) => void;
  let asked = false;
  // Middleware that takes longer than its client waits.
  const server = createHttp2Server((request, response) => {
    response.once('close', () => {
      handler(request, response);
      asked = true;
    });
    response.stream.close();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const client = connectHttp2(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  client.request({ ':path': '/watch' });
  await until(() => asked);
  expect(hub.stats().clients).toEqual([]);
  expect(coreOf(hub).reserve('')).toBeInstanceOf(Reservation);
  client.destroy();
  await new Promise((resolve) => server.close(resolve));
});

describe('middleware', () => {
  test('that compresses gets every byte through its own `write`, and is flushed', async () => {
    let read = (_state: string[]): void => {};
    const state = new Promise<string[]>((resolve) => {
      read = resolve;
    });
    const hub = new Hub({ epoch: 'e', snapshot: () => state });
    const watch = createHttpHandler(hub);
    const { url } = await start(
      createServer((request, response) => {
        const gzip = createGzip({ flush: constants.Z_NO_FLUSH });
        const write = response.write.bind(response);
        const end = response.end.bind(response);
        response.setHeader('content-encoding', 'gzip');
        gzip.on('data', (bytes) => void write(bytes));
        gzip.on('end', () => void end());
        const own = { write: (bytes: Uint8Array) => gzip.write(bytes), end: () => gzip.end(), flush: () => gzip.flush() };
        Object.assign(response, own);
        watch(request, response);
      }),
    );
    const response = await open(`${url}/watch?allowWatchBookmarks=true`);
    let text = '';
    response.pipe(createGunzip()).on('data', (bytes) => {
      text += String(bytes);
    });
    // What stands before the first event, too.
    await until(() => text === ' ');
    read([]);
    await until(() => text.split('\n').length === 2);
    for (let i = 0; i < 3; i++) {
      await hub.publish(added(i));
      await until(() => text.split('\n').length === i + 3);
    }
    response.destroy();
    await until(() => hub.stats().clients.length === 0);
  });

  test.each(['application/json', 'text/event-stream'])(
    'that compresses and never flushes, as that of Hono and a proxy of others, keeps away from %s',
    async (accept) => {
      const hub = new Hub({ epoch: 'e' });
      const watch = createFetchHandler(hub);
      const app = new Hono().use(compress()).get('/watch', (context) => watch(context.req.raw));
      const { url } = await start(createAdaptorServer({ fetch: app.fetch }) as Server);
      const response = await open(`${url}/watch?resourceVersion=e.0`, { accept, 'accept-encoding': 'gzip' });
      expect(response.headers).not.toHaveProperty('content-encoding');
      let text = '';
      response.on('data', (bytes) => {
        text += String(bytes);
      });
      await hub.publish(added(1));
      await until(() => text.includes('"resourceVersion":"e.1"'));
      response.destroy();
      await until(() => hub.stats().clients.length === 0);
    },
  );

  test('that buffers what its client does not take is given no more than a connection', async () => {
    const hub = new Hub({ capacity: 2, overflow: 'wait' });
    const watch = createHttpHandler(hub, { maxBufferedBytes: 262_144 });
    const inside = new PassThrough();
    let isHeld = true;
    const { url } = await start(
      createServer((request, response) => {
        const own = { write: response.write.bind(response), end: response.end.bind(response), on: response.on.bind(response) };
        own.on('drain', () => void (isHeld || inside.resume()));
        inside.pause().on('data', (bytes) => void (own.write(bytes) || inside.pause()));
        inside.on('end', () => void own.end());
        Object.assign(response, {
          write: (bytes: Uint8Array) => inside.write(bytes),
          end: () => inside.end(),
          // As those do that compress: `off` is nobody's.
          on: (name: string, listener: () => void) => (name === 'drain' ? inside.on(name, listener) : own.on(name, listener)),
        });
        watch(request, response);
      }),
    );
    const client = await httpStream(url);
    for (let round = 0; round < 3; round++) {
      isHeld = true;
      inside.pause();
      const publishing = Promise.all(Array.from({ length: 30 }, (_, i) => hub.publish(added(`${i}`.padEnd(60_000)))));
      const all = publishing.then(() => true);
      await until(() => inside.writableLength >= 200_000);
      for (let i = 0; i < 100; i++) await Promise.race([all, new Promise((resolve) => setImmediate(resolve))]);
      // The limit, a slice, and what it says that it has room for.
      expect(inside.writableLength).toBeLessThan(262_144 + SLICE_BYTES + inside.writableHighWaterMark);
      expect(hub.stats().clients).toMatchObject([{ queued: 2 }]);
      isHeld = false;
      inside.resume();
      await publishing;
      await until(() => inside.writableLength === 0);
    }
    expect(inside.listenerCount('drain')).toBe(1);
    await hub.shutdown();
    expect(await client.ended).toBe('complete');
    expect(client.versions()).toHaveLength(90);
  });

  test('that changes the prototype of responses, as Express does, changes nothing', async () => {
    const hub = new Hub({ epoch: 'e' });
    const watch = createHttpHandler(hub);
    const application = Object.create(ServerResponse.prototype, { locals: { value: {} } });
    const { url } = await start(
      createServer((request, response) => {
        Object.setPrototypeOf(response, application);
        watch(request, response);
      }),
    );
    const clients = [await httpStream(url), await sse(url)];
    await hub.publish(added(1));
    await hub.shutdown();
    for (const client of clients) {
      expect(await client.ended).toBe('complete');
      expect(client.versions()).toEqual(['e.1']);
    }
  });

  test('that publishes while the headers are sent: the event is not missed between the version and the stream', async () => {
    const hub = new Hub({ epoch: 'e', replayItems: 2 });
    let published = 0;
    const watch = createHttpHandler(hub);
    const { url, port } = await start(
      createServer((request, response) => {
        const writeHead = response.writeHead.bind(response);
        response.writeHead = ((...head: Parameters<typeof writeHead>) => {
          for (let i = 0; i < published; i++) hub.tryPublish(added('seen'));
          return writeHead(...head);
        }) as typeof response.writeHead;
        watch(request, response);
      }),
    );
    hub.tryPublish(added(1));
    published = 1;
    const client = await httpStream(url, { query: '?resourceVersion=e.1' });
    hub.tryPublish(added(3));
    await until(() => client.versions().length === 2);
    expect(client.versions()).toEqual(['e.2', 'e.3']);
    // More than is kept: with the head out it cannot be told so any more, and comes back to hear of it.
    published = 3;
    const late = await raw(port);
    late.socket.write('GET /watch?resourceVersion=e.3 HTTP/1.1\r\nHost: h\r\n\r\n');
    await late.ended;
    expect(late.heard()).not.toContain('object');
    expect(hub.stats().clients).toHaveLength(1);
    published = 0;
    expect((await open(`${url}/watch?resourceVersion=e.3`)).statusCode).toBe(410);
    await hub.shutdown();
  });

  test('that throws while the headers are sent costs no slot', async () => {
    const hub = new Hub({ maxClients: 1 });
    const watch = createHttpHandler(hub);
    const thrown: unknown[] = [];
    const { url } = await start(
      createServer((request, response) => {
        const { writeHead } = response;
        response.writeHead = () => {
          response.writeHead = writeHead;
          throw new Error('from a listener of theirs');
        };
        try {
          watch(request, response);
        } catch (error) {
          thrown.push(error);
          response.writeHead(500).end();
        }
      }),
    );
    for (let i = 1; i <= 2; i++) {
      expect((await open(`${url}/watch`)).statusCode).toBe(500);
      expect(thrown).toHaveLength(i);
    }
    expect(coreOf(hub).reserve('')).toBeInstanceOf(Reservation);
  });

  test('that has set the CORS header has decided on the origin', async () => {
    const watch = createHttpHandler(new Hub());
    const { url } = await start(
      createServer((request, response) => {
        response.setHeader('access-control-allow-origin', 'http://theirs.example');
        watch(request, response);
      }),
    );
    const response = await open(url, { origin: 'http://any.example' });
    expect(response.statusCode).toBe(200);
    expect(response.headers['access-control-allow-origin']).toBe('http://theirs.example');
    response.destroy();
  });
});

describe('watchmux/fetch', () => {
  test("gets the client's address from Bun and Deno; in Bun a watching client is never idle", async () => {
    const hub = new Hub({ maxClients: 2 });
    const watch = createFetchHandler(hub, { authenticate: ({ headers }) => headers.get('authorization') !== 'none' });
    const patience: unknown[] = [];
    const bun = {
      addresses: new Map<Request, string>(),
      requestIP(request: Request) {
        const address = this.addresses.get(request);
        return address === undefined ? null : { address };
      },
      timeout: (request: Request, seconds: number) => void patience.push([request.url, seconds]),
    };
    const request = new Request('http://here/watch?a');
    bun.addresses.set(request, '192.0.2.1');
    await watch(request, bun);
    await watch(new Request('http://here/watch?refused', { headers: { authorization: 'none' } }), bun);
    expect(patience).toEqual([['http://here/watch?a', 0]]);
    await watch(new Request('http://here/watch'), { remoteAddr: { transport: 'tcp', hostname: '192.0.2.2', port: 1 } });
    expect(hub.stats().clients.map(({ address }) => address)).toEqual(['192.0.2.1', '192.0.2.2']);
    // A Unix socket has no address; and what others hand over is none of ours.
    for (const host of [
      bun,
      { remoteAddr: { transport: 'unix', path: '/x' } },
      { requestIP: 1, timeout: 'x' },
      null,
      undefined,
    ]) {
      expect((await watch(new Request('http://here/watch'), host)).status).toBe(503);
    }
    expect(hub.stats().total.refusals).toMatchObject({ full: 5 });
  });

  test('a client that comes to a server that goes away is sent to another connection, so that this server can close', async () => {
    const hub = new Hub({ epoch: 'e' });
    const { port, server } = await serveFetch(hub);
    await hub.shutdown({ retryAfterMs: 1_000 });
    const { socket, heard, ended } = await raw(port);
    socket.write(get('/watch'));
    await until(() => heard().includes('ServiceUnavailable'));
    const closed = new Promise((resolve) => server.close(resolve));
    // The client asks again as long as it may.
    socket.write(get('/watch'));
    await ended;
    socket.end();
    await closed;
    expect(heard().split('HTTP/1.1 503')).toHaveLength(2);
    expect(heard().toLowerCase()).toContain('connection: close');
    // Over HTTP/2, where nothing names a connection.
    const response = await createFetchHandler(hub)(new Request('http://h/watch'));
    expect([response.status, response.headers.get('connection')]).toEqual([503, null]);
  });

  test('a host that throws costs no slot', async () => {
    const watch = createFetchHandler(new Hub({ maxClients: 1 }));
    const timeout = (): never => {
      throw new TypeError('not a request of this server');
    };
    expect(() => watch(new Request('http://here/watch'), { timeout })).toThrow('not a request of this server');
    expect((await watch(new Request('http://here/watch'))).status).toBe(200);
  });

  test('a client that leaves is no error in the log of a host that cancels the body', async () => {
    const hub = new Hub();
    const { url } = await start(createAdaptorServer({ fetch: createFetchHandler(hub) }) as Server);
    const logged = vi.spyOn(console, 'error').mockImplementation(() => {});
    for (const accept of ['application/json', 'text/event-stream', 'text/event-stream']) {
      const response = await open(url, { accept });
      await until(() => hub.stats().clients.length === 1);
      response.destroy();
      await until(() => hub.stats().clients.length === 0);
    }
    expect(logged).not.toHaveBeenCalled();
    logged.mockRestore();
  });

  test('a host that does not cancel the body learns from a failed read that the client has left', async () => {
    const hub = new Hub();
    const gone = new AbortController();
    const { body } = await createFetchHandler(hub)(new Request('http://here/watch', { signal: gone.signal }));
    const reader = body?.getReader();
    const read = reader?.read();
    gone.abort();
    expect(hub.stats().clients).toEqual([]);
    await expect(read).rejects.toThrow('no longer waits');
  });
});

test.each([
  ['http', serve],
  ['fetch', serveFetch],
] as const)(
  'a header that the application gives to watchmux/%s replaces ours, in whatever case it is written',
  async (_name, host) => {
    const { url } = await host(new Hub(), { headers: { 'Cache-Control': 'no-store', 'X-Own': 'a' } });
    const response = await open(`${url}/watch`);
    expect(response.headers).toMatchObject({ 'cache-control': 'no-store', 'x-own': 'a' });
    response.destroy();
  },
);

test('invalid headers throw when the handler is created, not when clients connect', () => {
  for (const headers of [{ 'x y': 'a' }, { x: 'a\u0100' }, { x: 'a\r\nb: c' }]) {
    expect(() => createHttpHandler(new Hub(), { headers })).toThrow(TypeError);
    expect(() => createFetchHandler(new Hub(), { headers })).toThrow(TypeError);
  }
});

test('a response that somebody else has started meanwhile is left alone, and its slot is free', async () => {
  const hub = new Hub({ maxClients: 1 });
  let decide = (_said: boolean): void => {};
  const watch = createHttpHandler(hub, {
    authenticate: () =>
      new Promise<boolean>((resolve) => {
        decide = resolve;
      }),
  });
  const { url } = await start(
    createServer((request, response) => {
      watch(request, response);
      response.writeHead(504).write('too late');
    }),
  );
  const response = await open(url);
  expect(response.statusCode).toBe(504);
  decide(true);
  let reservation = coreOf(hub).reserve('');
  await until(() => {
    reservation = coreOf(hub).reserve('');
    return !('code' in reservation);
  });
  expect(reservation).toBeInstanceOf(Reservation);
  response.destroy();
});

describe('observers', () => {
  test('get notices on the diagnostics channels, and by onNotice', async () => {
    const notices: string[] = [];
    const told: string[] = [];
    const hub = new Hub({ epoch: 'e', capacity: 1, onNotice: ({ type }) => void notices.push(type) });
    const listen = (message: unknown, name: string | symbol): void => {
      const { reason, client, hub: whose } = message as { reason?: string; client?: { transport: string }; hub: Hub };
      if (whose !== hub) return; // the channels are the whole process's
      told.push([String(name), client?.transport, reason].filter((word) => word !== undefined).join(' '));
    };
    const names = ['open', 'close', 'cut', 'refused', 'resume'].map((name) => `watchmux:client:${name}`);
    for (const name of names) subscribe(name, listen);
    const { url } = await serve(hub);
    const client = await httpStream(url, { query: '?resourceVersion=e.0' });
    await expect(httpStream(url, { query: '?resourceVersion=other.0' })).rejects.toThrow('410');
    client.pause();
    for (let i = 0; i < 40 && hub.stats().clients.length > 0; i++) await hub.publish(added(MEGABYTE));
    client.resume();
    await client.ended;
    await until(() => told.length === 5);
    expect(told).toEqual([
      'watchmux:client:open http',
      'watchmux:client:resume http',
      'watchmux:client:refused expired',
      'watchmux:client:cut http expired',
      'watchmux:client:close http expired',
    ]);
    expect(notices).toEqual(['open', 'resume', 'refused', 'cut', 'close']);
    expect(hub.stats().total).toMatchObject({ resumes: 1, refusals: { expired: 1 }, cuts: { expired: 1 }, cut: 1, refused: 1 });
    for (const name of names) unsubscribe(name, listen);
    expect(names.map((name) => channel(name).hasSubscribers)).toEqual(names.map(() => false));
  });

  test('also get those of a hub behind createFetchHandler, alone or beside another handler, each client once', async () => {
    const hub = new Hub();
    const told: unknown[] = [];
    const listen = (message: unknown): void => {
      if ((message as { hub: Hub }).hub === hub) told.push((message as { type: string }).type);
    };
    subscribe('watchmux:client:open', listen);
    const { url } = await serveFetch(hub);
    (await httpStream(url)).close();
    expect(told).toEqual(['open']);
    createHttpHandler(hub);
    (await httpStream(url)).close();
    expect(told).toEqual(['open', 'open']);
    unsubscribe('watchmux:client:open', listen);
  });
});
