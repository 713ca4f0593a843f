// A hub with a source, over every transport: clients resume at another hub, before its window and ahead of it, or hear 410.
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import type { ClientTransport, WebSocketConstructor } from '../../src/bridge/client.ts';
import { connect } from '../../src/bridge/client.ts';
import { createHttpHandler, Hub, type HubOptions } from '../../src/bridge/http.ts';
import { attachWebSocket } from '../../src/bridge/websocket.ts';
import { FakeSource } from '../../src/testing/fakes/fake-source.ts';
import type { WatchEvent } from '../../src/watch/event.ts';

/** Waits as long as the test may take. */
const poll = (value: () => unknown): ReturnType<typeof expect.poll> => expect.poll(value, { timeout: 25_000, interval: 5 });

type Numbered = WatchEvent<'MODIFIED', number>;
const TRANSPORTS: readonly ClientTransport[] = ['http', 'sse', 'websocket'];
const hubs: Hub<Numbered>[] = [];
const servers: Server[] = [];

afterEach(async () => {
  for (const hub of hubs.splice(0)) await hub.shutdown({ signal: AbortSignal.abort() });
  for (const server of servers.splice(0)) {
    server.close();
    server.closeAllConnections();
  }
});

async function serve(source: FakeSource, options: HubOptions<Numbered> = {}, handshakeTimeoutMs = 10_000) {
  const topicsOf = ({ object }: Numbered): string => (object % 2 === 0 ? 'even' : 'odd');
  const hub = new Hub<Numbered>({ source, topicsOf, ...options });
  const hooks = {
    handshakeTimeoutMs,
    watchOptions: ({ url = '' }: { url?: string | undefined }) => (url.includes('even') ? { topics: ['even'] } : {}),
  };
  const server = createServer(createHttpHandler(hub, hooks));
  attachWebSocket(server, hub, hooks);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  hubs.push(hub);
  servers.push(server);
  return { hub, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/watch` };
}

const fill = (source: FakeSource, from: number, to: number): void => {
  for (let n = from; n <= to; n++) source.append(JSON.stringify({ type: 'MODIFIED', object: n }), [n % 2 === 0 ? 'even' : 'odd']);
};

interface Got {
  readonly objects: number[];
  readonly codes: number[];
  readonly version: string | undefined;
}

/** Reads so many events, or to the end. */
async function read(
  url: string,
  transport: ClientTransport,
  { count, after }: { count: number; after?: string | undefined },
): Promise<Got> {
  const watch = connect<Numbered>(url, {
    transport,
    resourceVersion: after,
    WebSocket: WebSocket as unknown as WebSocketConstructor,
  });
  const objects: number[] = [];
  const codes: number[] = [];
  for await (const event of watch) {
    if (event.type === 'ERROR') codes.push(event.object.code);
    else if (event.type === 'MODIFIED') objects.push(event.object);
    if (objects.length === count) break;
  }
  return { objects, codes, version: watch.position?.toString() ?? undefined };
}
const versionOf = (source: FakeSource, n: number): string => {
  const { mark, sequence } = source.events.find((event) => event.sequence === n) as { mark: string; sequence: number };
  return `${source.epoch}~${mark}.${sequence}`;
};
const range = (from: number, to: number): number[] => Array.from({ length: to - from + 1 }, (_, i) => from + i);

describe.each(TRANSPORTS)('over %s', (transport) => {
  test('a client that is far behind gets all of it, page by page, and then what is new', async () => {
    const source = new FakeSource();
    fill(source, 1, 1_500);
    const { hub, url } = await serve(source, { replayItems: 10 });
    const reading = read(url, transport, { after: versionOf(source, 3), count: 1_517 });
    await poll(() => hub.stats().total.resumes).toBe(1);
    for (let n = 1_501; n <= 1_520; n++) await hub.publish({ type: 'MODIFIED', object: n });
    const { objects, codes } = await reading;
    expect(codes).toEqual([]);
    expect(objects).toEqual(range(4, 1_520));
    expect(hub.stats().total).toMatchObject({ clients: 1, resumes: 1, dropped: 0 });
  });

  test('by topic, too', async () => {
    const source = new FakeSource();
    fill(source, 1, 600);
    const { url } = await serve(source, { replayItems: 10 });
    const { objects } = await read(`${url}?room=even`, transport, { after: versionOf(source, 3), count: 299 });
    expect(objects).toEqual(range(2, 300).map((n) => n * 2));
  });

  test('what the stream no longer holds, and another stream, is a 410', async () => {
    const source = new FakeSource();
    fill(source, 1, 50);
    const { hub, url } = await serve(source, { replayItems: 10, maxCatchUpItems: 30 });
    await hub.ready();
    const tooFar = versionOf(source, 19);
    const justNot = versionOf(source, 20);
    const gone = versionOf(source, 22);
    source.trim(22);
    for (const after of [tooFar, gone, 'fake9~1.5', `${source.epoch}~zz.30`]) {
      expect(await read(url, transport, { after, count: 1 })).toMatchObject({ objects: [], codes: [410] });
    }
    expect(justNot).toContain('.20');
    expect((await read(url, transport, { after: versionOf(source, 23), count: 27 })).objects).toEqual(range(24, 50));
  });

  test('a client that is ahead of a hub waits for it', async () => {
    const source = new FakeSource();
    fill(source, 1, 5);
    const { hub, url } = await serve(source);
    await hub.ready();
    source.hold();
    fill(source, 6, 9);
    const ask = source.read.bind(source);
    let reads = 0;
    source.read = (...what) => ask(...what).finally(() => reads++);
    const reading = read(url, transport, { after: versionOf(source, 8), count: 1 });
    // It asks the stream, which knows the version.
    await poll(() => reads).toBe(1);
    expect(hub.stats().clients).toEqual([]);
    source.release();
    expect((await reading).objects).toEqual([9]);
  });

  test('a reset of the stream is told to whoever is connected', async () => {
    const source = new FakeSource();
    fill(source, 1, 5);
    const { hub, url } = await serve(source);
    const reading = read(url, transport, { after: versionOf(source, 2), count: 9 });
    await poll(() => hub.stats().clients[0]?.delivered).toBe(3);
    source.lose(1);
    expect(await reading).toMatchObject({ objects: [3, 4, 5], codes: [410] });
    await poll(() => hub.stats().total.cuts).toEqual({ expired: 1 });
    expect(hub.stats().source).toMatchObject({ resets: 1 });
  });
});

describe('a hub that is not connected to its source', () => {
  test('keeps clients waiting, and refuses them with 503 after a while', async () => {
    const source = new FakeSource();
    source.stop();
    const { hub, url } = await serve(source, {}, 100);
    expect((await fetch(url)).status).toBe(503);
    expect(hub.stats()).toMatchObject({
      source: { phase: 'waiting', error: new Error('the source cannot be reached') },
      clients: [],
    });
    source.start();
    await hub.ready();
    expect((await fetch(url)).status).toBe(200);
  });

  test('ends in order', async () => {
    const source = new FakeSource();
    source.stop();
    const { hub, url } = await serve(source);
    const answer = fetch(url);
    const watch = hub.watch();
    const ready = expect(hub.ready()).rejects.toMatchObject({ code: 'CLOSED' });
    await poll(() => hub.stats().source?.error).toBeDefined();
    await hub.shutdown();
    expect((await answer).status).toBe(503);
    await ready;
    expect(await watch.next()).toEqual({ done: true, value: undefined });
  });

  test('a client that is being brought up has no BOOKMARK that skips anything, and resumes elsewhere', async () => {
    const source = new FakeSource();
    fill(source, 1, 2_000);
    const { hub, url } = await serve(source, { replayItems: 10, bookmarkIntervalMs: 5 });
    await hub.ready();
    const read = source.read.bind(source);
    let reads = 0;
    source.read = async (from, limits) => (++reads > 3 ? new Promise(() => {}) : read(from, limits));
    const response = await fetch(`${url}?allowWatchBookmarks=true&resourceVersion=${encodeURIComponent(versionOf(source, 1))}`);
    let text = '';
    const reading = (async () => {
      for await (const part of response.body as unknown as AsyncIterable<Uint8Array>) text += new TextDecoder().decode(part);
    })().catch(() => {});
    await poll(() => text.split('\n').length).toBeGreaterThan(700);
    await hub.shutdown();
    await reading;
    const events = text
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line));
    expect(events.filter(({ type }) => type !== 'MODIFIED')).toEqual([]);
    expect(events.map(({ object }) => object)).toEqual(range(2, 768));
  });
});
