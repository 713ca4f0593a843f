// The client with real servers: a hub over real sockets, and a server that is killed and restarted.
import type { IncomingMessage, Server } from 'node:http';
import { createServer } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { afterAll, afterEach, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import type {
  ClientEvent,
  ClientTransport,
  ClientWatch,
  ConnectOptions,
  PerAttempt,
  StateDetail,
  WebSocketConstructor,
} from '../../src/bridge/client.ts';
import { connect } from '../../src/bridge/client.ts';
import type { HttpOptions, HubOptions } from '../../src/bridge/http.ts';
import { createHttpHandler, Hub } from '../../src/bridge/http.ts';
import { attachWebSocket } from '../../src/bridge/websocket.ts';
import { FakeClock } from '../../src/testing/fakes/fake-clock.ts';
import type { WatchEvent } from '../../src/watch/event.ts';
import { isErrorEvent } from '../../src/watch/event.ts';
import { atFreePort, killAll, pipe, until } from './cli.ts';
import { closeAll, serveFetch } from './servers.ts';

type Count = WatchEvent<string, number>;
const TRANSPORTS: readonly ClientTransport[] = ['http', 'sse', 'websocket'];

const ends: (() => void)[] = [];
afterEach(() => {
  for (const end of ends.splice(0)) end();
});
afterAll(killAll);
afterAll(closeAll);

interface Served {
  readonly hub: Hub;
  readonly url: string;
  /** Breaks every connection. */
  readonly cut: () => void;
  readonly clients: () => number;
}

async function serve(
  options: HubOptions = {},
  also?: (server: Server) => void,
  admission: Pick<HttpOptions, 'authenticate'> = {},
): Promise<Served> {
  const hub = new Hub({ replayItems: 100_000, replayBytes: 1e9, ...options } as HubOptions);
  const server = createServer();
  if (also === undefined) server.on('request', createHttpHandler(hub, admission));
  else also(server);
  attachWebSocket(server, hub, { ...admission, allowedOrigins: () => true });
  const sockets = new Set<Socket>();
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const cut = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  ends.push(cut, () => server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/watch`;
  return { hub, url, cut, clients: () => hub.stats().clients.length };
}

function open(url: PerAttempt<string | URL>, options: ConnectOptions<Count>): ClientWatch<ClientEvent<Count>> {
  const watch = connect<Count>(url, {
    WebSocket: WebSocket as unknown as WebSocketConstructor,
    backoff: { minMs: 20, maxMs: 200 },
    ...options,
  });
  ends.push(() => watch.stop());
  return watch;
}

/** Reads on and on; of an ERROR, its code as a text. */
function collect(watch: ClientWatch<ClientEvent<Count>>): { readonly got: unknown[]; readonly done: Promise<void> } {
  const got: unknown[] = [];
  const read = async (): Promise<void> => {
    for await (const event of watch) got.push(isErrorEvent(event) ? `ERROR ${event.object.code}` : event.object);
  };
  return { got, done: read() };
}

const range = (count: number): number[] => Array.from({ length: count }, (_, i) => i);
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

describe.each(TRANSPORTS)('connect over %s, to a hub', (transport) => {
  test('gets every event once, in order, from a hub that limits the age of its connections', async () => {
    const { hub, url } = await serve({ maxConnectionAgeMs: 60 });
    const watch = open(url, { transport, resourceVersion: hub.version });
    const { got, done } = collect(watch);
    // Clients of event streams are told to wait 2 s before they reconnect.
    const resumes = transport === 'sse' ? 2 : 5;
    for (let i = 0; hub.stats().total.resumes < resumes; i++) {
      hub.tryPublish({ type: 'ADDED', object: i });
      await pause(1);
    }
    const count = Number(hub.version.split('.')[1]);
    await until(() => got.length >= count);
    expect(got).toEqual(range(count));
    expect(hub.stats().total).toMatchObject({ cut: 0, refused: 0 });
    watch.stop();
    await done;
  });

  test.each([
    ['that has read everything', 0],
    ['that has events on their way', 50],
  ])('a client %s waits as long as a departing server asks, each its own time', async (_, count) => {
    const { hub, url } = await serve();
    const details: StateDetail[][] = [];
    const watches = Array.from({ length: 20 }, (_, at) => {
      const own: StateDetail[] = [];
      details.push(own);
      const random = (): number => (at % 2 === 0 ? 0 : 0.999);
      return open(url, { transport, random, onStateChange: (_state, detail) => void own.push(detail) });
    });
    await until(() => watches.every(({ resourceVersion }) => resourceVersion !== undefined));
    for (let i = 0; i < count; i++) hub.tryPublish({ type: 'ADDED', object: i });
    await hub.shutdown({ retryAfterMs: 10_000 });
    await until(() => watches.every(({ state }) => state === 'waiting'));
    const delaysMs = details.map((own) => own.at(-1)?.delayMs ?? Number.NaN);
    expect(watches.every(({ queued }) => queued === count)).toBe(true);
    expect(delaysMs.every((delayMs) => delayMs >= 0 && delayMs < 10_020)).toBe(true);
    // 20 times from 0 to 10 s: that half of them come in the first second is a matter of 1 in 100,000 runs.
    expect(delaysMs.filter((delayMs) => delayMs < 1_020).length).toBeLessThan(10);
    expect(new Set(delaysMs).size).toBeGreaterThan(15);
  });

  test('a quiet stream is not taken for a lost one, however rarely its hub sends BOOKMARKs', async () => {
    const clock = new FakeClock();
    const { hub, url } = await serve({ clock, bookmarkIntervalMs: 300_000 });
    const states: string[] = [];
    const watch = open(url, { transport, clock, onStateChange: (state) => void states.push(state) });
    await until(() => watch.resourceVersion !== undefined);
    clock.advance(1_499_999);
    expect(states).toEqual(['open']);
    expect(hub.stats().total).toMatchObject({ resumes: 0, clients: 1 });
    watch.stop();
  });

  test('asks for its URL before each attempt: a token that has expired in the meantime is a fresh one', async () => {
    const tokens: string[] = [];
    const authenticate = ({ url: asked }: IncomingMessage): { identity: string } => {
      tokens.push(new URLSearchParams(asked?.split('?')[1]).get('token') ?? '');
      return { identity: 'a' };
    };
    const { hub, url, cut } = await serve({}, undefined, { authenticate });
    let asked = 0;
    const watch = open(async () => `${url}?token=${++asked}`, { transport });
    const { got, done } = collect(watch);
    await until(() => watch.resourceVersion !== undefined);
    hub.tryPublish({ type: 'ADDED', object: 0 });
    await until(() => got.length === 1);
    cut();
    hub.tryPublish({ type: 'ADDED', object: 1 });
    await until(() => got.length === 2);
    expect(got).toEqual([0, 1]);
    expect(tokens).toEqual(tokens.map((_, at) => String(at + 1)));
    expect([tokens.length, asked]).toEqual([asked, tokens.length]);
    watch.stop();
    await done;
  });

  test('gets every event once, in order, even if its connections are cut again and again', async () => {
    const { hub, url, cut, clients } = await serve();
    const start = hub.version;
    const watch = open(url, { transport, resourceVersion: start });
    const { got, done } = collect(watch);
    for (let i = 0; i < 600; i++) {
      await hub.publish({ type: 'ADDED', object: i });
      if (i % 7 === 0) await pause(1);
      // Under load, and on a stream that says nothing.
      if (i % 150 === 99) cut();
      if (i === 300) await until(() => got.length === 301 && clients() === 1);
      if (i === 300) cut();
    }
    await until(() => got.length >= 600);
    expect(got).toEqual(range(600));
    expect(watch.resourceVersion).toBe(hub.version);
    watch.stop();
    await done;
    expect(watch.state).toBe('closed');
  });

  test('the version before the first event can be resumed from, even if no event was received', async () => {
    const { hub, url, cut, clients } = await serve();
    const watch = open(url, { transport, resourceVersion: hub.version });
    const { got } = collect(watch);
    await until(() => watch.state === 'open' && clients() === 1);
    cut();
    await hub.publish({ type: 'ADDED', object: 7 });
    await until(() => got.length === 1);
    expect(got).toEqual([7]);
  });

  test('a dropped version is one 410 and the end', async () => {
    const { hub, url } = await serve({ replayItems: 2 } as HubOptions);
    const version = hub.version;
    for (const object of range(10)) await hub.publish({ type: 'ADDED', object });
    const { got, done } = collect(open(url, { transport, resourceVersion: version }));
    await done;
    expect(got).toEqual(['ERROR 410']);
  });

  test('an invalid version is one 400 and the end', async () => {
    const { url } = await serve();
    const { got, done } = collect(open(url, { transport, resourceVersion: '__proto__' }));
    await done;
    expect(got).toEqual(['ERROR 400']);
  });

  test("a slow reader loses nothing with wait, whatever the server's policy", async () => {
    const { hub, url } = await serve({ capacity: 20, overflow: 'disconnect' });
    const watch = open(url, { transport, resourceVersion: hub.version, capacity: 5 });
    await until(() => watch.state === 'open');
    const filler = 'x'.repeat(2_000);
    const publish = (async () => {
      for (const object of range(2_000)) {
        await hub.publish({ type: 'ADDED', object: { object, filler } });
        if (object % 50 === 0) await pause(1);
      }
    })();
    const got: unknown[] = [];
    while (got.length < 2_000) {
      const { value } = await watch.next();
      expect(isErrorEvent(value as WatchEvent)).toBe(false);
      got.push((value as unknown as { object: { object: number } }).object.object);
      if (got.length % 200 === 0) await pause(5);
    }
    await publish;
    expect(got).toEqual(range(2_000));
    expect(watch.dropped).toBe(0);
  });

  test('the end of the source: known over WebSocket; by option over HTTP and SSE', async () => {
    const { hub, url } = await serve();
    const watch = open(url, { transport, resourceVersion: hub.version, reconnectOnEnd: false });
    const { got, done } = collect(watch);
    await until(() => watch.state === 'open');
    await hub.publish({ type: 'ADDED', object: 1 });
    await hub.shutdown();
    await done;
    expect(got).toEqual([1]);
    expect(watch.state).toBe('closed');
  });

  test('a signal ends it before the server has responded, and the server notices', async () => {
    const requests: IncomingMessage[] = [];
    const silent = createServer((request) => void requests.push(request));
    silent.on('upgrade', (request: IncomingMessage) => void requests.push(request));
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
    ends.push(() => silent.close());
    const abort = new AbortController();
    const watch = open(`http://127.0.0.1:${(silent.address() as AddressInfo).port}/`, { transport, signal: abort.signal });
    const read = watch.next();
    await until(() => requests.length === 1);
    const gone = new Promise((resolve) => requests[0]?.socket.once('end', resolve).once('close', resolve).resume());
    abort.abort();
    expect(await read).toEqual({ done: true, value: undefined });
    await gone;
  });
});

describe('connect, to watchmux pipe', () => {
  test.each(TRANSPORTS)('%s: the server is killed and replaced by another one: exactly one 410', async (transport) => {
    const first = await pipe(...(await atFreePort()));
    const { port } = new URL(first.url);
    const watch = open(`${first.url}/watch`, { transport });
    const { got, done } = collect(watch);
    await until(async () => (await first.stats()).clients.length === 1);
    first.write({ type: 'ADDED', object: 1 }, { type: 'ADDED', object: 2 });
    await until(() => got.length === 2);
    first.child.kill('SIGKILL');
    await first.exit;
    await until(() => watch.state === 'waiting');
    const second = await pipe('--port', port);
    second.write({ type: 'ADDED', object: 3 });
    await done;
    expect(got).toEqual([1, 2, 'ERROR 410']);
    expect(watch.resourceVersion).toMatch(/\.2$/);
    second.child.kill('SIGKILL');
  });

  test('restart: the 410 in its place, and then the events of the new server', async () => {
    const first = await pipe(...(await atFreePort()));
    const { port } = new URL(first.url);
    const watch = open(`${first.url}/watch`, { transport: 'http', onExpired: 'restart' });
    const { got } = collect(watch);
    await until(async () => (await first.stats()).clients.length === 1);
    first.write({ type: 'ADDED', object: 1 });
    await until(() => got.length === 1);
    first.child.kill('SIGKILL');
    await first.exit;
    const second = await pipe('--port', port, '--replay', '10');
    second.write({ type: 'ADDED', object: 2 });
    await until(() => got.length === 3);
    expect(got).toEqual([1, 'ERROR 410', 2]);
    second.child.kill('SIGKILL');
  });
});

test.each(['http', 'sse'] as const)(
  'over %s from a host that cannot break a response off, a departing server is not taken for the end of the stream',
  async (transport) => {
    const hub = new Hub({ random: () => 0.5 });
    const { url } = await serveFetch(hub);
    const details: StateDetail[] = [];
    const watch = open(url, { transport, reconnectOnEnd: false, onStateChange: (_state, detail) => void details.push(detail) });
    await until(() => watch.resourceVersion !== undefined);
    await hub.shutdown({ retryAfterMs: 10_000 });
    await until(() => watch.state !== 'open');
    expect(watch.state).toBe('waiting');
    expect(details.at(-1)?.delayMs).toBeGreaterThanOrEqual(5_000);
    expect(details.at(-1)?.delayMs).toBeLessThan(5_020);
  },
);
