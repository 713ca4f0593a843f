// The bytes of a WebSocket, as other clients read them: the package ws, and Chromium.
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { createServer } from 'node:http';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { WebSocket, WebSocketServer } from 'ws';
import { Envelope } from '../../src/bridge/events/envelope.ts';
import { Hub } from '../../src/bridge/hub/hub.ts';
import { attachWebSocket, attachWebSocketServer } from '../../src/bridge/websocket.ts';
import { FakeClock } from '../../src/testing/fakes/fake-clock.ts';
import { CHROMIUM_BROWSER } from './browsers.ts';
import { until } from './cli.ts';
import { closeAll, serve, start } from './servers.ts';

afterAll(closeAll);

/** Around every length at which a frame's header changes, and compressible or not. */
const SIZES: readonly number[] = [80, 125, 126, 127, 1_023, 1_024, 65_535, 65_536, 200_000];

/** Texts whose events are so long on the wire. */
const fillers: readonly string[] = SIZES.map((size, at) => {
  const empty = new Envelope({ type: 'A', object: '' }, { sequence: at + 1, version: `e.${at + 1}` }).bytes.length;
  const noise = Array.from({ length: size }, (_, i) => String.fromCharCode(97 + ((i * 7_919 + (i % 13) * at) % 26))).join('');
  return (at % 2 === 0 ? 'x'.repeat(size) : noise).slice(0, Math.max(0, size - empty));
});

interface Reader {
  readonly texts: string[];
  readonly socket: WebSocket;
}

async function read(url: string, options: { perMessageDeflate?: boolean } = {}): Promise<Reader> {
  const socket = new WebSocket(`${url.replace('http', 'ws')}/watch`, options);
  const texts: string[] = [];
  socket.on('message', (data) => texts.push(String(data)));
  await new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject));
  return { texts, socket };
}

function check(texts: readonly string[]): void {
  expect(texts.map((text) => Buffer.byteLength(text))).toEqual(SIZES);
  expect(texts.map((text) => JSON.parse(text))).toEqual(
    fillers.map((object, at) => ({ type: 'A', object, resourceVersion: `e.${at + 1}` })),
  );
}

describe.each([false, true])('with compression: %s', (compression) => {
  test('messages of every length are read as written, in bursts and alone, between pings', async () => {
    const hub = new Hub({ epoch: 'e' });
    // Heartbeats come when this test says so: by a clock that runs, a machine that is busy would cut the clients.
    const clock = new FakeClock();
    const { url } = await serve(hub, { compression, heartbeatMs: 1_000, clock });
    const readers = [await read(url), await read(url), await read(url, { perMessageDeflate: false })];
    await until(() => hub.stats().clients.length === 3);
    expect(readers.map(({ socket }) => socket.extensions)).toEqual(
      compression ? ['permessage-deflate', 'permessage-deflate', ''] : ['', '', ''],
    );
    let [ticks, pings] = [0, 0];
    for (const { socket } of readers) socket.on('ping', () => pings++);
    for (const [at, object] of fillers.entries()) {
      hub.tryPublish({ type: 'A', object });
      if (at % 3 !== 0) continue;
      clock.advance(1_000);
      ticks++;
      await until(() => pings === 3 * ticks);
      // The pongs are on their way, and must be there before the next tick: what a client says after its pong arrives after it.
      for (const { socket } of readers) {
        const heard = once(socket, 'pong');
        socket.ping();
        await heard;
      }
    }
    expect(ticks).toBe(3);
    await until(() => readers.every(({ texts }) => texts.length === SIZES.length));
    for (const { texts } of readers) check(texts);
    const [squeezed, , plain] = hub.stats().clients;
    if (compression) expect(squeezed?.sentBytes).toBeLessThan((plain?.sentBytes as number) / 1.5);
    for (const { socket } of readers) socket.terminate();
  });
});

test('a client that asks for a smaller window than ours gets uncompressed messages', async () => {
  const hub = new Hub({ epoch: 'e' });
  const { url } = await serve(hub, { compression: true });
  const socket = new WebSocket(`${url.replace('http', 'ws')}/watch`, { perMessageDeflate: { serverMaxWindowBits: 9 } });
  const texts: string[] = [];
  socket.on('message', (data) => texts.push(String(data)));
  await new Promise((resolve) => socket.once('open', resolve));
  for (const object of fillers) await hub.publish({ type: 'A', object });
  await until(() => texts.length === SIZES.length);
  check(texts);
  expect(socket.extensions).toBe('permessage-deflate');
  socket.terminate();
});

describe('an existing ws server', () => {
  async function own(
    options: Parameters<typeof attachWebSocketServer>[2] = {},
    perMessageDeflate: boolean = true,
    hub: Hub = new Hub({ epoch: 'e' }),
  ) {
    const server = createServer();
    const sockets = new WebSocketServer({ server, perMessageDeflate });
    const detach = attachWebSocketServer(sockets, hub, options);
    return { hub, sockets, detach, ...(await start(server)) };
  }

  test('serves the hub beside its own messages, with its own compression', async () => {
    const { hub, sockets, url } = await own();
    const reader = await read(url);
    expect(reader.socket.extensions).toBe('permessage-deflate');
    await until(() => hub.stats().clients.length === 1);
    const [client] = sockets.clients;
    for (const [at, object] of fillers.entries()) {
      client?.send(`own ${at} ${'y'.repeat(5_000)}`);
      hub.tryPublish({ type: 'A', object });
      if (at % 2 === 0) await new Promise((resolve) => setTimeout(resolve, 5));
    }
    await until(() => reader.texts.length === 2 * SIZES.length);
    check(reader.texts.filter((text) => text.startsWith('{')));
    expect(reader.texts.filter((text) => text.startsWith('own'))).toHaveLength(SIZES.length);
    // The hub's ownState are not compressed: whether the connection keeps a window is the server's affair.
    const payload = reader.texts.filter((text) => text.startsWith('{')).reduce((sum, text) => sum + Buffer.byteLength(text), 0);
    expect(hub.stats().clients[0]?.sentBytes).toBeGreaterThan(payload);
    reader.socket.terminate();
  });

  test.each([
    [{ authenticate: () => undefined }, '', 4401],
    [{ authenticate: async () => ({ status: 403 as const }) }, '', 4403],
    [{}, '?resourceVersion=nonsense', 4400],
    [{}, '?resourceVersion=other.1', 4410],
    [{ allowedOrigins: [] }, '', 4403],
  ])('with %o refuses /watch%s by an ERROR event and %i', async (options, query, code) => {
    const { url, hub } = await own(options);
    const { closed, texts } = await outcome(url, query, 'allowedOrigins' in options ? 'http://evil.example' : undefined);
    expect(closed).toBe(code);
    expect(JSON.parse(texts[0] as string)).toMatchObject({ type: 'ERROR', object: { code: code - 4_000 } });
    await until(() => hub.stats().clients.length === 0);
  });

  test('refuses a client that comes too late, or exceeds the limit, in the same words, and counts it once', async () => {
    let isAsked = false;
    const authenticate = (): Promise<never> => {
      isAsked = true;
      return new Promise(() => {});
    };
    const { url, hub } = await own({ authenticate }, true, new Hub({ maxClients: 1 }));
    const waiting = outcome(url, '', undefined);
    await until(() => isAsked);
    const oneTooMany = await outcome(url, '', undefined);
    await hub.shutdown({ retryAfterMs: 1 });
    for (const { closed, texts } of [oneTooMany, await waiting, await outcome(url, '?resourceVersion=nonsense', undefined)]) {
      const { type, object } = JSON.parse(texts[0] as string);
      expect([type, 4_000 + object.code]).toEqual(['ERROR', closed]);
    }
    expect(hub.stats().total.refusals).toEqual({ full: 1, ended: 1, badRequest: 1 });
  });

  async function outcome(url: string, query: string, origin: string | undefined): Promise<{ closed: number; texts: string[] }> {
    const socket = new WebSocket(`${url.replace('http', 'ws')}/watch${query}`, origin === undefined ? {} : { origin });
    const texts: string[] = [];
    socket.on('message', (data) => texts.push(String(data)));
    const closed = await new Promise<number>((resolve) => socket.once('close', resolve));
    return { closed, texts };
  }

  test('can be detached, and its clients stay', async () => {
    const { hub, sockets, detach, url } = await own();
    const reader = await read(url);
    await until(() => hub.stats().clients.length === 1);
    detach();
    const seen = new Promise<IncomingMessage>((resolve) => sockets.once('connection', (_client, request) => resolve(request)));
    const other = await read(url);
    await seen;
    await hub.publish({ type: 'A', object: 1 });
    await until(() => reader.texts.length === 1);
    expect([hub.stats().clients.length, other.texts.length]).toEqual([1, 0]);
    for (const { socket } of [reader, other]) socket.terminate();
  });
});

describe.skipIf(CHROMIUM_BROWSER.missing)('Chromium', () => {
  let browser: Browser;

  beforeAll(async () => {
    browser = await CHROMIUM_BROWSER.launch();
  });

  afterAll(() => browser?.close());

  test.each([false, true])('reads messages of every length, compressed: %s', async (compression) => {
    const hub = new Hub({ epoch: 'e' });
    const server = createServer((_request, response) => response.end('<title>frames</title>'));
    attachWebSocket(server, hub, { compression });
    const { url } = await start(server);
    const page = await browser.newPage();
    await page.goto(url);
    await page.evaluate(
      (address) => {
        const state = window as unknown as { texts: string[]; extensions: string; socket: globalThis.WebSocket };
        state.texts = [];
        state.socket = new globalThis.WebSocket(address);
        state.socket.onmessage = ({ data }) => state.texts.push(data as string);
        return new Promise((resolve) => {
          state.socket.onopen = resolve;
        });
      },
      `${url.replace('http', 'ws')}/watch`,
    );
    await until(() => hub.stats().clients.length === 1);
    for (const object of fillers) hub.tryPublish({ type: 'A', object });
    await page.waitForFunction((count) => (window as unknown as { texts: string[] }).texts.length === count, SIZES.length);
    check(await page.evaluate(() => (window as unknown as { texts: string[] }).texts));
    const extensions = await page.evaluate(() => (window as unknown as { socket: { extensions: string } }).socket.extensions);
    expect(extensions.startsWith('permessage-deflate')).toBe(compression);
    await page.close();
    await until(() => hub.stats().clients.length === 0);
  });
});
