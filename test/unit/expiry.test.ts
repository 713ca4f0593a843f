// The end of a client's right to its stream, over every transport of a hub: no event comes after it, and the client comes again.
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { WebSocket, WebSocketServer } from 'ws';
import { connect } from '../../src/bridge/client.ts';
import { createFetchHandler } from '../../src/bridge/fetch.ts';
import { createConnectionHandler, createHttpHandler, Hub } from '../../src/bridge/http.ts';
import type { AdmissionOptions } from '../../src/bridge/hub/admission/admission.ts';
import type { ClientStats } from '../../src/bridge/hub/connection.ts';
import type { HubOptions } from '../../src/bridge/hub/hub.ts';
import { attachWebSocket, attachWebSocketServer } from '../../src/bridge/websocket.ts';
import { FakeClock } from '../../src/testing/fakes/fake-clock.ts';
import { added, FakeSink, turn } from './fake-sink.ts';
import { handFed } from './snapshot-source.ts';

const NOW = Date.UTC(2026, 0, 2);
const DAY = 86_400_000;

/** A hub whose time of day goes with its clock. */
function hubAt(options: HubOptions = {}): { clock: FakeClock; hub: Hub; at: (ms: number) => number } {
  const clock = new FakeClock();
  const hub = new Hub({ clock, now: () => NOW + clock.now(), replayItems: 100, ...options });
  onTestFinished(() => hub.shutdown({ signal: AbortSignal.abort() }));
  return { clock, hub, at: (ms) => NOW + ms };
}

async function listening(server: Server): Promise<string> {
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    return new Promise<void>((resolve) => void server.close(() => resolve()));
  });
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

interface Stream {
  /** All that has come. */
  readonly said: () => string;
  /** How it has ended. */
  readonly ended: () => string | undefined;
}

type Options = Pick<AdmissionOptions<IncomingMessage>, 'authenticate' | 'watchOptions'>;

async function read(url: string, headers: Record<string, string> = {}): Promise<Stream> {
  const response = await fetch(`http://${url}`, { headers });
  let said = '';
  let ended: string | undefined;
  const reading = async (): Promise<void> => {
    for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) said += Buffer.from(chunk).toString();
  };
  void reading().then(
    () => {
      ended = 'end';
    },
    () => {
      ended = 'cut';
    },
  );
  if (response.status !== 200) await expect.poll(() => ended).toBeDefined();
  return { said: () => said, ended: () => (response.status === 200 ? ended : String(response.status)) };
}

async function readSocket(url: string): Promise<Stream> {
  const socket = new WebSocket(`ws://${url}`);
  let said = '';
  let ended: string | undefined;
  socket.on('message', (data) => {
    said += `${data}\n`;
  });
  socket.on('unexpected-response', (_request, { statusCode }) => {
    ended = String(statusCode);
  });
  socket.on('close', (code, reason) => {
    ended ??= `${code} ${reason}`;
  });
  socket.on('error', () => {});
  await expect.poll(() => socket.readyState !== WebSocket.CONNECTING || ended !== undefined).toBe(true);
  return { said: () => said, ended: () => ended };
}

/** How a stream ends whose client should come again. */
const TRANSPORTS: Readonly<
  Record<string, readonly [open: (hub: Hub, options: Options) => Promise<Stream>, end: string, refused: string]>
> = {
  http: [async (hub, options) => read(await listening(createServer(createHttpHandler(hub, options)))), 'cut', '401'],
  sse: [
    async (hub, options) => read(await listening(createServer(createHttpHandler(hub, options))), { accept: 'text/event-stream' }),
    ...(['cut', '401'] as const),
  ],
  fetch: [
    async (hub, options) => {
      const response = await createFetchHandler(hub, options as object)(new Request('http://a/'));
      if (response.status !== 200) return { said: () => '', ended: () => String(response.status) };
      let [said, ended] = ['', false];
      const reading = async (): Promise<void> => {
        for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) said += Buffer.from(chunk).toString();
      };
      void reading().then(() => {
        ended = true;
      });
      return { said: () => said, ended: () => (ended ? 'end' : undefined) };
    },
    ...(['end', '401'] as const),
  ],
  websocket: [
    async (hub, options) => {
      const server = createServer();
      attachWebSocket(server, hub, options);
      return readSocket(`${await listening(server)}/watch`);
    },
    ...(['1001 retry=0', '401'] as const),
  ],
  'a server of ws': [
    async (hub, options) => {
      const server = createServer();
      attachWebSocketServer(new WebSocketServer({ server }), hub, options);
      return readSocket(await listening(server));
    },
    ...(['1001 retry=0', '4401 Unauthorized'] as const),
  ],
  'a transport of ones own': [
    async (hub, options) => {
      const sink = new FakeSink();
      const refusal = await createConnectionHandler(hub, options as object)(sink, { request: {} });
      return { said: () => sink.text, ended: () => (refusal ? String(refusal.code) : sink.ended) };
    },
    ...(['goingAway', '401'] as const),
  ],
};

describe.each(Object.entries(TRANSPORTS))('over %s', (_name, [open, end, refused]) => {
  test.each<[string, (expiresAtMs: number) => Options]>([
    ['authenticate', (expiresAtMs) => ({ authenticate: () => ({ name: 'ann', expiresAtMs }) })],
    ['watchOptions', (expiresAtMs) => ({ watchOptions: () => ({ expiresAtMs }) })],
    [
      'the earlier of two',
      (expiresAtMs) => ({
        authenticate: async () => ({ expiresAtMs: expiresAtMs + 1 }),
        watchOptions: async () => ({ expiresAtMs }),
      }),
    ],
  ])('nothing comes after the time of %s, and all that came before does', async (_by, options) => {
    const { clock, hub, at } = hubAt();
    const { said, ended } = await open(hub, options(at(3_000)));
    await expect.poll(() => hub.stats().clients.length).toBe(1);
    clock.advance(2_999);
    await hub.publish(added('before'));
    await expect.poll(said).toContain('before');
    expect(ended()).toBeUndefined();
    clock.advance(1);
    await hub.publish(added('after'));
    await expect.poll(ended).toBe(end);
    expect(said()).not.toContain('after');
    await expect.poll(() => hub.stats().clients).toEqual([]);
    expect(hub.stats().total).toMatchObject({ cut: 0 });
  });

  test('what has expired already is refused', async () => {
    const { clock, hub, at } = hubAt();
    clock.advance(5);
    const { ended } = await open(hub, { authenticate: () => ({ expiresAtMs: at(5) }) });
    await expect.poll(ended).toBe(refused);
    expect(hub.stats().total.refusals).toEqual({ unauthorized: 1 });
  });
});

describe('expiresAtMs', () => {
  const handlerOf = (hub: Hub, options: Options) => {
    const serve = createConnectionHandler(hub, options as object);
    return async () => {
      const sink = new FakeSink();
      return { sink, refusal: await serve(sink, { request: {} }) };
    };
  };

  test.each(['1767312000000', Number.NaN, new Date(), null])('%s is no time, so nobody is admitted', async (expiresAtMs) => {
    const { hub } = hubAt();
    for (const options of [
      { authenticate: () => ({ expiresAtMs }) },
      { watchOptions: () => ({ expiresAtMs: expiresAtMs as unknown as number }) },
    ]) {
      expect((await handlerOf(hub, options)()).refusal).toMatchObject({ code: 503 });
    }
    expect(hub.stats().clients).toEqual([]);
  });

  test.each([undefined, Number.POSITIVE_INFINITY])('%s is never', async (expiresAtMs) => {
    const { clock, hub } = hubAt();
    const { sink } = await handlerOf(hub, { authenticate: () => ({ expiresAtMs }) })();
    clock.advance(1_000 * DAY);
    expect(sink.ended).toBeUndefined();
  });

  test('counts by the time of day, though that is set back, and though a clock shortens long delays', async () => {
    const clock = new FakeClock();
    let offsetMs = 0;
    const short = { now: () => clock.now(), schedule: (ms: number, call: () => void) => clock.schedule(Math.min(ms, DAY), call) };
    const hub = new Hub({ clock: short, now: () => NOW + clock.now() + offsetMs });
    const { sink } = await handlerOf(hub, { authenticate: () => ({ expiresAtMs: NOW + 30 * DAY }) })();
    offsetMs = -DAY;
    clock.advance(31 * DAY - 1);
    expect(sink.ended).toBeUndefined();
    clock.advance(1);
    expect(sink.ended).toBe('goingAway');
  });

  test('counts by the time of day, though that runs ahead: it is noticed within the interval of BOOKMARKs', async () => {
    const clock = new FakeClock();
    let offsetMs = 0;
    const hub = new Hub({ clock, now: () => NOW + clock.now() + offsetMs, bookmarkIntervalMs: 1_000 });
    const { sink } = await handlerOf(hub, { authenticate: () => ({ expiresAtMs: NOW + DAY }) })();
    offsetMs = 2 * DAY;
    clock.advance(999);
    expect(sink.ended).toBeUndefined();
    clock.advance(1);
    expect(sink.ended).toBe('goingAway');
  });

  test('ends a snapshot and a stalled client as well, and leaves no timer with one that has gone', async () => {
    const { snapshot, give } = handFed();
    const { clock, hub, at } = hubAt({ snapshot: snapshot as never, snapshotTimeoutMs: 0 });
    const enter = handlerOf(hub, { authenticate: () => ({ expiresAtMs: at(1_000) }) });
    const [copying, gone] = [await enter(), await enter()];
    give('a');
    await turn();
    gone.sink.session?.gone();
    clock.advance(1_000);
    await turn();
    expect(copying.sink.ended).toBe('goingAway');
    expect(clock.pending).toBe(0);
  });

  test('a client that refreshes its token misses nothing, and sees no error', async () => {
    const { clock, hub, at } = hubAt();
    let tokens = 0;
    const authenticate = ({ headers }: IncomingMessage): { expiresAtMs: number } => ({
      expiresAtMs: at(Number(headers.authorization)),
    });
    const url = await listening(createServer(createHttpHandler(hub, { authenticate })));
    const watch = connect(`http://${url}`, { headers: () => ({ authorization: String(++tokens * 1_000) }) });
    onTestFinished(() => void watch.return());
    await expect.poll(() => hub.stats().clients.length).toBe(1);
    const seen: unknown[] = [];
    for (let n = 1; n <= 5; n++) {
      await hub.publish(added(n));
      const { value } = await watch.next();
      seen.push(value?.object);
      clock.advance(1_000);
      await expect.poll(() => hub.stats().total.clients).toBe(n + 1);
      await expect.poll(() => hub.stats().clients.length).toBe(1);
    }
    expect(seen).toEqual([1, 2, 3, 4, 5]);
    expect(tokens).toBe(6);
  });
});

test('a client that is disconnected while its hooks decide is asked about again', async () => {
  const { hub } = hubAt();
  let isRevoked = false;
  let asked = 0;
  let decide = (): void => {};
  const authenticate = (): Promise<string> | undefined => {
    asked++;
    if (isRevoked) return undefined;
    return new Promise((resolve) => {
      decide = () => resolve('ann');
    });
  };
  const sink = new FakeSink();
  const verdict = createConnectionHandler(hub, { authenticate })(sink, { request: {} });
  isRevoked = true;
  expect(hub.disconnect(({ identity }: ClientStats) => identity === 'ann')).toBe(0);
  decide();
  expect(await verdict).toMatchObject({ code: 401 });
  expect([asked, hub.stats().clients]).toEqual([2, []]);
});
