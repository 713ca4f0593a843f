// Malicious clients: they must not crash the server, leave anything behind, or affect others.
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { Socket } from 'node:net';
import fc from 'fast-check';
import { afterAll, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import type { HttpOptions } from '../../src/bridge/http.ts';
import { createHttpHandler } from '../../src/bridge/http.ts';
import { coreOf, Hub } from '../../src/bridge/hub/hub.ts';
import type { WebSocketOptions } from '../../src/bridge/websocket.ts';
import { FakeClock } from '../../src/testing/fakes/fake-clock.ts';
import type { Clock } from '../../src/watch/clock.ts';
import type { WatchEvent } from '../../src/watch/event.ts';
import { runs } from '../runs.ts';
import { httpStream, open, until, webSocket } from './cli.ts';
import type { Raw, Served } from './servers.ts';
import { closeAll, connections, get, raw, serve, serveFetch, start, upgrade } from './servers.ts';

afterAll(closeAll);

const added = (object: unknown): WatchEvent => ({ type: 'ADDED', object });

async function setUp(options: HttpOptions & WebSocketOptions = {}, clock?: Clock): Promise<Served & { hub: Hub }> {
  const hub = new Hub({ epoch: 'e', clock });
  return { hub, ...(await serve(hub, { ...options, clock })) };
}

/** Looked up inside: no number says who has a slot and is not let in yet. */
function slotsTaken(hub: Hub): number {
  return (coreOf(hub) as unknown as { slots: { taken: number } }).slots.taken;
}

/** Nothing is left, and the next one is served as ever. */
async function isUnharmed({ hub, url, server }: Served & { hub: Hub }): Promise<void> {
  await until(() => hub.stats().clients.length === 0);
  await until(async () => (await connections(server)) === 0);
  const client = await webSocket(url);
  await hub.publish(added('still here'));
  await until(() => client.texts.length === 1);
  client.close();
  await until(() => hub.stats().clients.length === 0);
  // Every slot has been given back.
  expect(slotsTaken(hub)).toBe(0);
}

/** A masked frame, as clients send them. */
function frame(first: number, payload: Buffer, claimed: number = payload.length): Buffer {
  const head = claimed < 126 ? Buffer.from([first, 0x80 | claimed]) : Buffer.alloc(claimed < 65_536 ? 4 : 10);
  if (claimed >= 126) {
    head[0] = first;
    head[1] = 0x80 | (claimed < 65_536 ? 126 : 127);
    if (claimed < 65_536) head.writeUInt16BE(claimed, 2);
    else head.writeBigUInt64BE(BigInt(claimed), 2);
  }
  return Buffer.concat([head, Buffer.alloc(4), payload]);
}

describe('WebSocket frames', () => {
  test.each([
    ['a message that is too long', frame(0x81, Buffer.alloc(2_000, 0x61))],
    ['one that only says it is long', frame(0x81, Buffer.alloc(0), 2 ** 40)],
    ['a fragment without a beginning', frame(0x80, Buffer.from('x'))],
    ['a reserved opcode', frame(0x83, Buffer.from('x'))],
    ['compression that was not negotiated', frame(0xc1, Buffer.from('x'))],
    ['no mask', Buffer.from([0x81, 0x01, 0x61])],
    ['a ping that is too long', frame(0x89, Buffer.alloc(126))],
    ['text that is not UTF-8', frame(0x81, Buffer.from([0xff, 0xfe]))],
    ['a close code that nobody may send', frame(0x88, Buffer.from([0x03, 0xed]))],
    ['a close of one byte', frame(0x88, Buffer.from([0x03]))],
    [
      'fragments without an end',
      Buffer.concat(Array.from({ length: 2_000 }, (_, i) => frame(i === 0 ? 0x01 : 0x00, Buffer.from('xx')))),
    ],
  ])('%s ends only that client', async (_name, bytes) => {
    const served = await setUp();
    const other = await webSocket(served.url);
    const { socket, heard, ended } = await raw(served.port);
    socket.write(upgrade('/watch'));
    await until(() => heard().includes('101 Switching'));
    socket.write(bytes);
    await ended;
    socket.destroy();
    await served.hub.publish(added(1));
    await until(() => other.texts.length === 1);
    other.close();
    await isUnharmed(served);
  });

  test('of any bytes, early or late, crash nothing and leave nothing behind', async () => {
    const served = await setUp();
    const noise = fc.uint8Array({ maxLength: 300 });
    await fc.assert(
      fc.asyncProperty(noise, noise, async (early, late) => {
        const { socket, heard } = await raw(served.port);
        // What follows the handshake in the same packet is read as frames already.
        socket.write(Buffer.concat([Buffer.from(upgrade('/watch')), early]));
        await until(() => heard().includes('\r\n\r\n'));
        socket.write(late);
        served.hub.tryPublish(added('x'));
        socket.destroySoon();
      }),
      { numRuns: runs(60) },
    );
    await isUnharmed(served);
  });
});

describe('requests', () => {
  test.each([
    ['half a handshake', upgrade('/watch').replace('dGhl', '!!'), 400],
    ['a handshake of another version', upgrade('/watch').replace('Version: 13', 'Version: 99'), 426],
    ['another upgrade', get('/watch', 'Connection: Upgrade', 'Upgrade: h2c'), 400],
    ['a head that is too large', get('/watch', `X: ${'x'.repeat(40_000)}`), 431],
    ['no HTTP', 'BOO\r\n\r\n', 400],
  ])('%s is refused', async (_name, request, status) => {
    const served = await setUp();
    const { socket, heard, ended } = await raw(served.port);
    socket.write(request);
    await ended;
    expect(heard()).toMatch(new RegExp(`^HTTP/1.1 (${status}|426|400) `));
    expect(Number(/^HTTP\/1\.1 (\d+)/.exec(heard())?.[1])).toBeGreaterThanOrEqual(400);
    socket.destroy();
    await isUnharmed(served);
  });

  test('with any path, query and headers are answered, and leave nothing behind', async () => {
    const served = await setUp();
    const token = fc.stringMatching(/^[!-~]{0,60}$/);
    const query = fc.array(
      fc.tuple(fc.oneof(fc.constantFrom('resourceVersion', 'timeoutSeconds', 'sendInitialEvents', '__proto__'), token), token),
      { maxLength: 5 },
    );
    await fc.assert(
      fc.asyncProperty(query, token, fc.boolean(), async (pairs, lastEventId, isUpgrade) => {
        const path = `/watch?${pairs.map((pair) => pair.join('=')).join('&')}`;
        const { socket, heard } = await raw(served.port);
        socket.write((isUpgrade ? upgrade : get)(path, `Last-Event-ID: ${lastEventId}`));
        await until(() => heard().includes('\r\n\r\n'));
        expect(heard()).toMatch(/^HTTP\/1\.1 (101|200|400|410) /);
        socket.destroy();
      }),
      { numRuns: runs(80) },
    );
    await isUnharmed(served);
  });

  test('that arrive in pieces, and stop in the middle, time out', async () => {
    const hub = new Hub();
    // How long a request may take to arrive is the server's to say.
    const patience = { headersTimeout: 300, requestTimeout: 400, connectionsCheckingInterval: 50 };
    const { port } = await start(createServer(patience, createHttpHandler(hub)));
    const { socket, ended } = await raw(port);
    socket.write('GET /watch HTTP/1.1\r\nHost: 127.0.0.1\r\nX: ');
    const drip = setInterval(() => socket.write('x'), 50);
    await ended;
    clearInterval(drip);
    expect(hub.stats().clients).toEqual([]);
  });

  test.each([
    ['http', serve],
    ['fetch', serveFetch],
  ] as const)('watchmux/%s: what other sites embed gets nothing, unless the application has decided', async (_name, host) => {
    const foreign = { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'no-cors', 'sec-fetch-dest': 'script' };
    const hub = new Hub();
    const { url } = await host(hub);
    const refused = await open(`${url}/watch`, foreign);
    expect([refused.statusCode, hub.stats().total.refusals]).toEqual([403, { origin: 1 }]);
    refused.destroy();
    for (const options of [{ allowedOrigins: '*' as const }, { headers: { 'Access-Control-Allow-Origin': '*' } }]) {
      const served = await host(new Hub(), options);
      const response = await open(`${served.url}/watch`, foreign);
      expect(response.statusCode).toBe(200);
      response.destroy();
    }
  });

  test('pages of other origins get nothing, on any transport', async () => {
    const served = await setUp();
    const fetched = { hub: served.hub, ...(await serveFetch(served.hub)) };
    const evil = { origin: 'http://evil.example' };
    await expect(webSocket(served.url, { headers: evil })).rejects.toThrow('403');
    for (const { url } of [served, fetched]) {
      for (const accept of ['text/event-stream', '*/*']) {
        const response = await open(`${url}/watch`, { ...evil, accept });
        expect(response.statusCode).toBe(403);
        expect(response.headers).not.toHaveProperty('access-control-allow-origin');
        response.destroy();
      }
    }
    expect(served.hub.stats().total.refusals).toEqual({ origin: 5 });
  });
});

describe('connections', () => {
  test('a thousand silent ones do not affect others, and hold no slot', async () => {
    const served = await setUp();
    const silent = await Promise.all(Array.from({ length: 1_000 }, () => raw(served.port)));
    const client = await httpStream(served.url);
    await served.hub.publish(added(1));
    await until(() => client.texts.length === 1);
    expect(served.hub.stats().clients).toHaveLength(1);
    client.close();
    for (const { socket } of silent) socket.destroy();
    await isUnharmed(served);
  });

  test('beyond the limit of an address are refused, and its slots can be taken again', async () => {
    const hub = new Hub({ maxClientsPerAddress: 2 });
    const served = await serve(hub);
    const first = await Promise.all([webSocket(served.url), httpStream(served.url)]);
    await expect(webSocket(served.url)).rejects.toThrow('503');
    await expect(httpStream(served.url)).rejects.toThrow('503');
    first[0].close();
    await until(() => hub.stats().clients.length === 1);
    (await webSocket(served.url)).close();
    first[1].close();
    await isUnharmed({ hub, ...served });
  });

  test.each([
    ['WebSocket', upgrade('/watch')],
    ['HTTP', get('/watch')],
  ])(
    '%s: clients that leave during admission leave nothing behind; those that wait too long are refused',
    async (_name, request) => {
      let asked = 0;
      const forever = (): Promise<never> => {
        asked++;
        return new Promise(() => {});
      };
      const clock = new FakeClock();
      const served = await setUp({ authenticate: forever, handshakeTimeoutMs: 200 }, clock);
      const [leaver, waiter] = [await raw(served.port), await raw(served.port)];
      for (const { socket } of [leaver, waiter]) socket.write(request);
      await until(() => asked === 2);
      leaver.socket.destroy();
      await until(() => slotsTaken(served.hub) === 1);
      clock.advance(200);
      await until(() => waiter.heard().includes('\r\n\r\n'));
      expect(waiter.heard()).toMatch(/^HTTP\/1\.1 503 /);
      waiter.socket.destroy();
      await until(async () => (await connections(served.server)) === 0);
      expect(slotsTaken(served.hub)).toBe(0);
      expect(served.hub.stats().total.refusals).toEqual({ timeout: 1 });
    },
  );

  describe.each([
    ['with its request', true],
    ['after it', false],
  ])('bytes that a client sends %s, before it is admitted', (_name, isTogether) => {
    /** Resolves once the server has read all of it, and asks whether to admit the client. */
    async function early(payload: Buffer): Promise<Served & { hub: Hub; client: Raw; letIn: (identity: string) => void }> {
      let letIn: ((identity: string) => void) | undefined;
      const authenticate = (): Promise<string> =>
        new Promise((resolve) => {
          letIn = resolve;
        });
      // Its clock stands: nobody is refused because the decision takes long.
      const served = await setUp({ authenticate }, new FakeClock());
      const accepted = once(served.server, 'connection') as Promise<[Socket]>;
      const client = await raw(served.port);
      const [socket] = await accepted;
      const request = Buffer.from(upgrade('/watch'));
      client.socket.write(isTogether ? Buffer.concat([request, payload]) : request);
      await until(() => letIn !== undefined);
      if (!isTogether) client.socket.write(payload);
      await until(() => socket.bytesRead === request.length + payload.length || socket.destroyed);
      return { ...served, client, letIn: letIn as unknown as (identity: string) => void };
    }

    test('are read afterwards', async () => {
      const { client, letIn, ...served } = await early(frame(0x89, Buffer.from('early')));
      letIn('u');
      await until(() => client.heard().includes('101 Switching') && client.heard().endsWith('early')); // the pong
      client.socket.destroy();
      await isLeft(served);
    });

    test('are too many', async () => {
      const { client, ...served } = await early(Buffer.alloc(10_000));
      await client.ended;
      client.socket.destroy();
      expect(client.heard()).toBe('');
      await isLeft(served);
    });

    async function isLeft({ hub, server }: Served & { hub: Hub }): Promise<void> {
      await until(async () => (await connections(server)) === 0);
      await until(() => slotsTaken(hub) === 0);
      expect(hub.stats()).toMatchObject({ clients: [], total: { refused: 0 } });
    }
  });
});

test('clients that wait for admission when the stream ends are refused at once', async () => {
  let asked = 0;
  const authenticate = (): Promise<string> => {
    asked++;
    return new Promise(() => {});
  };
  const served = await setUp({ authenticate });
  const fetched = await serveFetch(served.hub, { authenticate });
  const outcomes = [webSocket(served.url), httpStream(served.url), httpStream(fetched.url)].map((outcome) =>
    outcome.then(
      (client) => client.ended,
      (error: Error) => error.message,
    ),
  );
  await until(() => asked === 3);
  await served.hub.shutdown();
  expect(await Promise.all(outcomes)).toEqual(['Unexpected server response: 503', '503', '503']);
  expect(slotsTaken(served.hub)).toBe(0);
});

test('refused clients occupy a slot until they have gone, and are terminated at once if there is none', async () => {
  const hub = new Hub({ maxClients: 2 });
  const served = await serve(hub);
  const bad = upgrade('/watch?resourceVersion=nonsense');
  const refused = await Promise.all(Array.from({ length: 3 }, () => raw(served.port)));
  for (const { socket } of refused) socket.write(bad);
  await until(() => refused.every(({ heard }) => heard().includes('101 Switching')));
  await until(() => refused.every(({ heard }) => heard().includes('bad request')));
  await until(() => refused.filter(({ socket }) => socket.readableEnded).length === 1);
  expect(coreOf(hub).reserve('')).toMatchObject({ code: 503 });
  for (const { socket } of refused) socket.destroy();
  await isUnharmed({ hub, ...served });
});

describe('authenticate', () => {
  test.each([
    [401, () => undefined],
    [403, () => ({ status: 403 })],
    [503, () => Promise.reject(new Error('the database is down'))],
  ] as [number, () => undefined][])('refuses with %i before there is a WebSocket or a stream', async (status, authenticate) => {
    const served: Served & { hub: Hub } = await setUp({ authenticate });
    await expect(webSocket(served.url)).rejects.toThrow(String(status));
    await expect(httpStream(served.url)).rejects.toThrow(String(status));
    const fetched = await serveFetch(served.hub, { authenticate });
    await expect(httpStream(fetched.url)).rejects.toThrow(String(status));
    expect(served.hub.stats().total).toMatchObject({ clients: 0, refused: 3 });
  });

  test('identifies the client for its filter, which also applies to replayed events', async () => {
    const hub = new Hub({ epoch: 'e' });
    const options: HttpOptions<string> & WebSocketOptions<string> = {
      authenticate: (request) => request.headers['x-user'] as string | undefined,
      watchOptions: (_request, identity) => ({ filter: (event) => (event.object as { to: string }).to === identity }),
    };
    const { url } = await serve(hub, options as HttpOptions & WebSocketOptions);
    for (const to of ['a', 'b', 'a']) await hub.publish(added({ to }));
    const headers = { 'x-user': 'b' };
    const clients = await Promise.all([
      webSocket(url, { headers, query: '?resourceVersion=e.0' }),
      httpStream(url, { headers, query: '?resourceVersion=e.0' }),
    ]);
    for (const to of ['a', 'b']) await hub.publish(added({ to }));
    await hub.shutdown();
    await Promise.all(clients.map(({ ended }) => ended));
    for (const client of clients) expect(client.versions()).toEqual(['e.2', 'e.5']);
  });
});

test('CORS: an allowed page gets the headers, also for a preflight', async () => {
  const allowed = { allowedOrigins: ['http://good.example'], headers: { 'x-own': '1' } };
  const hub = new Hub();
  for (const { url } of [await serve(hub, allowed), await serveFetch(hub, allowed)]) {
    const response = await open(`${url}/watch`, { origin: 'http://good.example' });
    expect(response.headers).toMatchObject({
      'access-control-allow-origin': 'http://good.example',
      vary: 'Origin',
      'x-own': '1',
    });
    response.destroy();
    const headers = { origin: 'http://good.example', 'access-control-request-headers': 'authorization' };
    const asked = await fetch(`${url}/watch`, { method: 'OPTIONS', headers });
    expect([asked.status, asked.headers.get('access-control-allow-headers')]).toEqual([204, 'authorization']);
    const refused = await fetch(`${url}/watch`, { method: 'OPTIONS', headers: { origin: 'http://evil.example' } });
    expect([refused.status, refused.headers.get('access-control-allow-origin')]).toEqual([405, null]);
  }
});

test('a WebSocket that is closing is not written to any more', async () => {
  const served = await setUp();
  const socket = new WebSocket(`${served.url.replace('http', 'ws')}/watch`);
  await new Promise((resolve) => socket.once('open', resolve));
  await until(() => served.hub.stats().clients.length === 1);
  socket.close();
  for (let i = 0; i < 50; i++) await served.hub.publish(added(i));
  await isUnharmed(served);
});
