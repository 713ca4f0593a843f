// How many requests a connection may send ahead, when it ends, and that its client can read the answer before that.
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createHttpHandler, Hub } from '../../src/bridge/http.ts';
import { FakeClock } from '../../src/testing/fakes/fake-clock.ts';
import { eventually } from '../eventually.ts';
import { ORDERS_PATH, rig } from './apiserver-rig.ts';
import { client, open } from './apiserver-sockets.ts';

test('a connection that asked for an upgrade ends with its answer, though the client leaves its own side open', async () => {
  const { port, connections } = await open();
  const socket = client(port);
  let said = '';
  socket.on('data', (bytes) => {
    said += bytes;
  });
  socket.write(`GET ${ORDERS_PATH} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: upgrade\r\nUpgrade: foo\r\n\r\n`);
  await expect.poll(() => said).toContain('OrderList');
  await expect.poll(connections).toBe(0);
});

describe('requests that a connection sends ahead of their answers', () => {
  const GET = `GET ${ORDERS_PATH} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`;
  const SLOW = GET.replace('orders', 'orders/slow');
  const authenticate = (request: unknown): object | Promise<never> =>
    String((request as { url: string }).url).endsWith('slow') ? new Promise<never>(() => {}) : {};

  test('hold their places until they have been sent', async () => {
    const { port, server } = await open({ authenticate, maxConcurrentRequestsPerAddress: 3 });
    const socket = client(port);
    socket.write(SLOW + GET + GET);
    const answered = 'watchmux_apiserver_requests_by_verb_total{verb="list"} 2';
    await expect.poll(() => server.metrics).toContain(answered);
    const ask = async (): Promise<number> => (await fetch(`http://127.0.0.1:${port}${ORDERS_PATH}`)).status;
    expect(await ask()).toBe(429);
    socket.destroy();
    await expect.poll(ask).toBe(200);
  });

  test('are answered in their order', async () => {
    const { port } = await open();
    const socket = client(port);
    let said = '';
    socket.on('data', (bytes) => {
      said += bytes;
    });
    socket.write(GET.repeat(9));
    await expect.poll(() => said.split('"kind":"OrderList"').length - 1).toBe(9);
    socket.write(GET.repeat(9));
    await expect.poll(() => said.split('"kind":"OrderList"').length - 1).toBe(18);
  });

  test('are eight: one more closes the connection', async () => {
    const { port, server } = await open({ authenticate });
    const socket = client(port).resume();
    socket.write(SLOW + GET.repeat(500));
    await new Promise<void>((resolve) => void socket.once('end', resolve).once('close', resolve));
    expect(server.metrics).not.toMatch(/by_verb_total\{verb="list"\} (9|\d\d)/);
  });
});

describe('a client that reads its answer late, while it sends a body that is not read', () => {
  const clock = new FakeClock();
  const handlers: Record<string, [RequestListener, string]> = {
    'API server': [rig({ clock, cache: false }).server.handler, `POST ${ORDERS_PATH}`],
    hub: [createHttpHandler(new Hub(), { clock }) as RequestListener, 'POST /watch'],
  };

  test.each(Object.entries(handlers))('%s: gets it, and then its connection is closed', async (_, [handler, head]) => {
    let answered = 0;
    const server = createServer((request, response) => {
      response.once('finish', () => answered++);
      handler(request, response);
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    onTestFinished(() => void server.close());
    const socket = client((server.address() as AddressInfo).port).pause();
    socket.write(`${head} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 99999999\r\n\r\n`);
    // More than is dropped, and than the systems' buffers hold.
    for (let at = 0; at < 100; at++) socket.write('x'.repeat(100_000));
    await eventually(() => expect(clock.pending).toBe(1));
    for (let turn = 0; turn < 100; turn++) await new Promise((resolve) => setImmediate(resolve));
    expect(answered).toBe(0);
    let said = '';
    socket.on('data', (bytes) => {
      said += bytes;
    });
    socket.resume();
    // Whole, by its length, and it says that nothing can follow.
    await eventually(() => {
      const [head = '', body = ''] = said.split('\r\n\r\n');
      expect(head).toMatch(/^HTTP\/1\.1 4(13|05) /);
      expect(head.toLowerCase()).toContain('connection: close');
      expect(Number(/content-length: (\d+)/i.exec(head)?.[1])).toBe(Buffer.byteLength(body));
      expect(JSON.parse(body)).toMatchObject({ kind: 'Status' });
    });
    expect(socket.errored).toBeNull();
    const closed = new Promise((resolve) => void socket.once('close', resolve));
    clock.advance(5_000);
    await closed;
    expect([answered, clock.pending]).toEqual([1, 0]);
  });
});

describe('a response that somebody else has begun', () => {
  const errors: unknown[] = [];
  const onError = (error: unknown): void => void errors.push(error);
  const handlers: Record<string, [RequestListener, string]> = {
    'API server': [rig({ cache: false, onError }).server.handler, ORDERS_PATH],
    hub: [createHttpHandler(new Hub({ onError })) as RequestListener, '/watch'],
  };
  const told = {
    code: 'INVALID_ARGUMENT',
    message: 'response: expected one whose head has not been sent',
  };

  test.each(Object.entries(handlers))('%s: is reported, and ended if nobody has', async (_, [handler, path]) => {
    const server = createServer((request, response) => {
      response.writeHead(200).flushHeaders();
      if (request.url?.includes('whole')) response.end('all of it');
      handler(request, response);
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    onTestFinished(() => void server.close());
    const ask = async (query: string): Promise<string> =>
      (await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}${path}?${query}`)).text();
    errors.splice(0);
    expect(await ask('whole')).toBe('all of it');
    await expect(ask('begun')).rejects.toThrow();
    expect(errors).toMatchObject([told, told]);
  });
});

test.each([
  [405, `PUT ${ORDERS_PATH}`, 'application/json'],
  [415, `POST ${ORDERS_PATH}`, 'text/plain'],
  [404, 'POST /none', 'application/json'],
])(
  'a refusal with %i, whose small body nobody reads, leaves its connection for the next request: %s',
  async (code, line, type) => {
    const { port } = await open();
    const socket = client(port);
    let said = '';
    socket.on('data', (bytes) => {
      said += bytes;
    });
    const codes = (): number[] => Array.from(said.matchAll(/HTTP\/1\.1 (\d+) /g), ([, each]) => Number(each));
    for (const round of [1, 2]) {
      socket.write(`${line} HTTP/1.1\r\nHost: a\r\nContent-Type: ${type}\r\nContent-Length: 10\r\n\r\n01234`);
      await eventually(() => expect(codes()).toHaveLength(round));
      socket.write('56789');
    }
    socket.write('GET /livez HTTP/1.1\r\nHost: a\r\n\r\n');
    await eventually(() => expect(codes()).toEqual([code, code, 200]));
  },
);
