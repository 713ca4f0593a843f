// Requests for an upgrade that a connection sends ahead of the answers to its earlier requests, at every entry point; and answers
// that nobody takes. Whatever a client does, its connection is answered in order or closed, in time, and is counted.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { WebSocketServer } from 'ws';
import { createHttpHandler, Hub } from '../../src/bridge/http.ts';
import { guardEnded, type WholeHttpAnswer } from '../../src/bridge/transport/http-connection.ts';
import { SharedTimer } from '../../src/bridge/transport/stall.ts';
import { afterAnswers } from '../../src/bridge/transport/upgrades.ts';
import { attachWebSocket, attachWebSocketServer } from '../../src/bridge/websocket.ts';
import { Pipelining } from '../../src/cli/server/connections.ts';
import { FakeClock } from '../../src/testing/fakes/fake-clock.ts';
import { ORDERS_PATH } from './apiserver-rig.ts';
import { client, open } from './apiserver-sockets.ts';
import { macrotask } from './support.ts';

const HOST = 'Host: localhost\r\n';
const get = (path: string, more = ''): string => `GET ${path} HTTP/1.1\r\n${HOST}${more}\r\n`;
const handshake = (path: string): string =>
  get(
    path,
    'Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n',
  );
const h2c = (path: string): string =>
  get(path, 'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n');

interface Entry {
  readonly port: number;
  /** How many connections were closed for this, as the server tells. */
  readonly counted: () => unknown;
  /** Lets the slow request be answered. */
  readonly answer: () => void;
  /** A path that is answered only then, and one of a watch. */
  readonly slow: string;
  readonly watch: string;
}

async function listening(server: Server): Promise<number> {
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    return new Promise<void>((resolve) => void server.close(() => resolve()));
  });
  return (server.address() as AddressInfo).port;
}

function slowly(): { route: (request: IncomingMessage, response: ServerResponse) => void; answer: () => void } {
  const waiting: ServerResponse[] = [];
  return {
    route: (_request, response) => void waiting.push(response),
    answer: () => {
      for (const response of waiting.splice(0)) response.end('slow answer');
    },
  };
}

const ENTRIES: Readonly<Record<string, () => Promise<Entry>>> = {
  'an API server': async () => {
    const waiting: (() => void)[] = [];
    const authenticate = (request: unknown): object | Promise<object> =>
      String((request as { url: string }).url).endsWith('slow') ? new Promise((resolve) => waiting.push(() => resolve({}))) : {};
    const { port, server } = await open({ authenticate });
    const counted = (): unknown => server.stats.requestsLimited.pipelined;
    const answer = (): void => {
      for (const each of waiting.splice(0)) each();
    };
    return { port, counted, answer, slow: `${ORDERS_PATH}/slow`, watch: `${ORDERS_PATH}?watch=1` };
  },
  'a hub beside routes': async () => {
    const hub = new Hub();
    const { route, answer } = slowly();
    const watch = createHttpHandler(hub);
    const server = createServer((request, response) => (request.url === '/slow' ? route : watch)(request, response));
    attachWebSocket(server, hub);
    onTestFinished(() => hub.shutdown({ signal: AbortSignal.abort() }));
    const counted = (): unknown => hub.stats().total.refusals.pipelined;
    return { port: await listening(server), counted, answer, slow: '/slow', watch: '/watch' };
  },
  'a hub with hooks that take time': async () => {
    const hub = new Hub();
    const { route, answer } = slowly();
    const server = createServer(route);
    attachWebSocket(server, hub, { authenticate: async () => 'me' });
    onTestFinished(() => hub.shutdown({ signal: AbortSignal.abort() }));
    const counted = (): unknown => hub.stats().total.refusals.pipelined;
    return { port: await listening(server), counted, answer, slow: '/slow', watch: '/watch' };
  },
  'a hub at a server of ws': async () => {
    const hub = new Hub();
    const { route, answer } = slowly();
    const server = createServer(route);
    const sockets = new WebSocketServer({ server });
    attachWebSocketServer(sockets, hub);
    onTestFinished(() => hub.shutdown({ signal: AbortSignal.abort() }));
    const counted = (): unknown => hub.stats().total.refusals.pipelined;
    return { port: await listening(server), counted, answer, slow: '/slow', watch: '/watch' };
  },
};

/** What a connection gets, and whether it is over. */
function talk(port: number): { socket: Socket; said: () => string; over: () => boolean } {
  const socket = client(port);
  let said = '';
  let over = false;
  socket.on('data', (bytes) => {
    said += bytes.toString('latin1');
  });
  socket.once('end', () => {
    over = true;
  });
  socket.once('close', () => {
    over = true;
  });
  return { socket, said: () => said, over: () => over };
}

describe.each(Object.entries(ENTRIES))('%s', (name, enter) => {
  test('closes a connection that asks for a WebSocket behind an unanswered request, and counts it', async () => {
    const { port, counted, answer, slow, watch } = await enter();
    const { socket, said, over } = talk(port);
    socket.write(get(slow) + handshake(watch));
    await expect.poll(over).toBe(true);
    answer();
    await macrotask();
    // A server of ws answers by itself, but nothing can follow.
    expect(said()).toMatch(name === 'a hub at a server of ws' ? /^(HTTP\/1.1 101 .*\r\n\r\n)?$/s : /^$/);
    expect(counted()).toBe(1);
  });

  test('closes a connection that asks for another upgrade there', async () => {
    if (name === 'a hub at a server of ws') return; // the answer is that of ws
    const { port, answer, slow } = await enter();
    const { socket, said, over } = talk(port);
    socket.write(get(slow) + h2c(slow));
    await expect.poll(over).toBe(true);
    answer();
    await macrotask();
    expect(said()).toBe('');
  });

  test('answers a WebSocket that comes after the answer', async () => {
    const { port, counted, answer, slow, watch } = await enter();
    const { socket, said } = talk(port);
    socket.write(get(slow));
    await expect
      .poll(() => {
        answer();
        return said();
      })
      .toMatch(/^HTTP\/1.1 \d{3} .*\r\n\r\n./s);
    socket.write(handshake(watch));
    await expect.poll(said).toMatch(/HTTP\/1.1 101 /);
    expect(counted()).toBeUndefined();
  });
});

test('an API server takes no place for what it has closed, and 200 such connections are over at once', async () => {
  const { port, connections, server } = await open({ maxConcurrentRequestsPerAddress: 3 });
  const all = Array.from({ length: 200 }, (_, at) => {
    const one = talk(port);
    one.socket.write(get('/version') + (at % 2 === 0 ? h2c(ORDERS_PATH) : handshake(`${ORDERS_PATH}?watch=1`)));
    return one;
  });
  await expect.poll(() => all.every(({ over }) => over())).toBe(true);
  await expect.poll(connections).toBe(0);
  expect(server.stats.watchers).toBe(0);
  expect((await fetch(`http://127.0.0.1:${port}${ORDERS_PATH}`)).status).toBe(200);
});

test('what is answered at once comes first, and then the WebSocket behind it', async () => {
  const hub = new Hub();
  const pipelining = new Pipelining();
  const server = createServer((_request, response) => void (pipelining.takes(response) && response.end('page')));
  attachWebSocket(server, hub);
  onTestFinished(() => hub.shutdown({ signal: AbortSignal.abort() }));
  const { socket, said } = talk(await listening(server));
  socket.write(get('/stats') + get('/stats') + handshake('/watch'));
  await expect.poll(said).toMatch(/101 Switching/);
  expect(said().match(/HTTP\/1.1 (\d+)/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 200', 'HTTP/1.1 101']);
});

describe('an answer that is not taken', () => {
  /** More than the system buffers. */
  const BIG = Buffer.alloc(32_000_000, 'x');

  async function stuck(then?: (request: IncomingMessage, socket: Socket) => void) {
    const clock = new FakeClock();
    const timer = new SharedTimer(1_000, clock);
    let sent = 0;
    let serverSocket: Socket | undefined;
    const server = createServer((request, response) => {
      serverSocket = request.socket;
      response.end(request.url === '/big' ? BIG : 'small');
      guardEnded(response as WholeHttpAnswer, timer, () => sent++);
    });
    if (then) server.on('upgrade', (request, socket) => then(request, socket as Socket));
    const port = await listening(server);
    const socket = client(port);
    return { clock, socket, sent: () => sent, server: () => serverSocket as Socket };
  }

  test('costs its connection, after as long as it stands still', async () => {
    const { clock, socket, sent, server } = await stuck();
    socket.pause();
    socket.write(get('/big'));
    await expect.poll(() => server()?.writableLength).toBeGreaterThan(0);
    let last = -1;
    const standsStill = (): boolean => {
      const before = last;
      last = Reflect.get(Reflect.get(server(), '_handle'), 'writeQueueSize');
      return before === last;
    };
    // Until the system's buffers are full.
    await expect.poll(standsStill).toBe(true);
    for (let tick = 0; tick < 4; tick++) clock.advance(250);
    expect([server().destroyed, sent()]).toEqual([false, 0]);
    clock.advance(250);
    expect(server().destroyed).toBe(true);
    await expect.poll(sent).toBe(1);
    expect(clock.pending).toBe(0);
  });

  test('leaves no guard behind once it is taken, and a small one has none', async () => {
    const { clock, socket, sent } = await stuck();
    socket.write(get('/small'));
    await expect.poll(sent).toBe(1);
    expect(clock.pending).toBe(0);
    socket.resume();
    socket.write(get('/big'));
    await expect.poll(sent).toBe(2);
    clock.advance(100_000);
    expect(socket.destroyed).toBe(false);
    socket.destroy();
    await expect.poll(() => clock.pending).toBe(0);
  });

  test('does not hold the upgrade behind it for long', async () => {
    const after = new FakeClock();
    const cuts: string[] = [];
    const { socket, server } = await stuck((_request, upgraded) =>
      afterAnswers(upgraded, () => cuts.push('went on'), { clock: after, cut: () => cuts.push('cut') }),
    );
    socket.pause();
    socket.write(get('/big') + h2c('/'));
    await expect.poll(() => after.pending).toBe(1);
    after.advance(4_999);
    expect([server().destroyed, cuts]).toEqual([false, []]);
    after.advance(1);
    expect([server().destroyed, cuts]).toEqual([true, ['cut']]);
    expect(after.pending).toBe(0);
  });
});

test.each([
  ['', false],
  [' to a request whose body ends later, and is not read', true],
])('an API server holds the place of an answer%s that is not taken, and cuts its client', async (_what, hasBody) => {
  const clock = new FakeClock();
  const { port, connections, call, server, http } = await open({ clock, maxConcurrentRequestsPerAddress: 1 });
  await call('POST', ORDERS_PATH, { metadata: { name: 'a' }, spec: { item: 'x'.repeat(100_000) } });
  const sockets: Socket[] = [];
  http.on('connection', (each: Socket) => sockets.push(each));
  const socket = client(port).pause();
  const waiting = (): number => sockets[0]?.writableLength ?? 0;
  for (let answered = 1; waiting() === 0; answered++) {
    socket.write(get(`${ORDERS_PATH}/a`, hasBody ? 'Transfer-Encoding: chunked\r\n' : ''));
    await expect.poll(() => server.stats.requests[200] ?? 0).toBe(answered);
    if (hasBody) socket.write('0\r\n\r\n');
    await expect.poll(() => sockets[0]?.bytesWritten).toBeGreaterThan(100_000 * answered);
  }
  expect((await fetch(`http://127.0.0.1:${port}${ORDERS_PATH}`)).status).toBe(429);
  await expect
    .poll(() => {
      clock.advance(7_500);
      return sockets[0]?.destroyed;
    })
    .toBe(true);
  await expect.poll(async () => (await fetch(`http://127.0.0.1:${port}${ORDERS_PATH}`)).status).toBe(200);
  await expect.poll(connections).toBeLessThan(2);
});
