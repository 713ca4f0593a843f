// What clients could make a server hold: memory and connections.
import { connect, type Socket } from 'node:net';
import { afterEach, describe, expect, test, vi } from 'vitest';
import type { ApiServerOptions } from '../../src/apiserver/index.ts';
import { type Answered, listening, ORDERS_PATH, type Order, rig } from './apiserver-rig.ts';
import { macrotask, NO_GC } from './support.ts';

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

interface Opened extends ReturnType<typeof rig> {
  readonly url: string;
  readonly port: number;
  readonly connections: () => Promise<number>;
  /** Bytes that have come. */
  readonly received: () => number;
}

async function open(options: Partial<ApiServerOptions> = {}): Promise<Opened> {
  const made = rig(options);
  const { url, http, close } = await listening(made.server);
  http.on('upgrade', made.server.upgrade);
  closing.push(close);
  let received = (): number => 0;
  http.on('connection', (socket) => {
    received = () => socket.bytesRead;
  });
  const connections = (): Promise<number> => new Promise((resolve) => http.getConnections((_, count) => resolve(count)));
  return { ...made, url, port: Number(new URL(url).port), connections, received: () => received() };
}

/** A client that does not close its side. */
function client(port: number): Socket {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  socket.on('error', () => {});
  closing.push(() => socket.destroy());
  return socket;
}

async function heapBytes(): Promise<number> {
  await macrotask();
  globalThis.gc?.();
  return process.memoryUsage().heapUsed;
}

const POST = `POST ${ORDERS_PATH} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n`;

describe.skipIf(globalThis.gc === undefined)(`a body of many small pieces${NO_GC}`, () => {
  const PIECES = 200_000;

  test('over node:http costs little more than its bytes', async () => {
    const { port, received } = await open();
    const socket = client(port);
    await new Promise<void>((resolve) => socket.write(`${POST}Transfer-Encoding: chunked\r\n\r\n`, () => resolve()));
    const before = await heapBytes();
    await new Promise<void>((resolve) => socket.write('1\r\n \r\n'.repeat(PIECES), () => resolve()));
    const body = JSON.stringify({ metadata: { name: 'a' } });
    await expect.poll(received, { timeout: 10_000 }).toBeGreaterThan(6 * PIECES);
    // The pieces are 200 bytes each, if each is kept.
    expect((await heapBytes()) - before).toBeLessThan(10 * 2 ** 20);
    let said = '';
    socket.on('data', (bytes) => {
      said += bytes;
    });
    socket.write(`${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`);
    await expect.poll(() => said, { timeout: 10_000 }).toContain('201 Created');
  });

  test('over fetch costs little more than its bytes', async () => {
    const { server } = rig();
    const slab = new Uint8Array(PIECES).fill(0x20);
    let [sent, before, held] = [0, 0, 0];
    const body = new ReadableStream<Uint8Array>({
      async pull(controller) {
        if (sent === 0) before = await heapBytes();
        if (sent === PIECES) {
          held = (await heapBytes()) - before;
          controller.enqueue(new TextEncoder().encode(JSON.stringify({ metadata: { name: 'a' } })));
          controller.close();
        } else for (const to = sent + 1_000; sent < to; sent++) controller.enqueue(slab.subarray(sent, sent + 1));
      },
    });
    const headers = { 'content-type': 'application/json' };
    const init = { method: 'POST', headers, body, duplex: 'half' } as RequestInit;
    expect((await server.fetch(new Request(`http://127.0.0.1${ORDERS_PATH}`, init))).status).toBe(201);
    expect(held).toBeLessThan(10 * 2 ** 20);
    await server.shutdown();
  });
});

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

describe.skipIf(globalThis.gc === undefined)(`a long list${NO_GC}`, () => {
  test('begins at once, is what it should be, and a client that does not read holds little', async () => {
    const { url, port, server } = await open();
    const orders = server.resource<Order>('orders.example.com/v1').in('default');
    const text = 'x'.repeat(20_000);
    const many = Array.from({ length: 1_500 }, (_, at) =>
      orders.create({ metadata: { name: `a${String(at).padStart(5, '0')}` }, spec: { item: text } }),
    );
    await Promise.all(many);
    const whole = await (await fetch(`${url}/apis/example.com/v1/orders`)).json();
    expect((whole as Answered['body']).items).toHaveLength(1_500);
    const memory = (): number => {
      globalThis.gc?.();
      const { heapUsed, external } = process.memoryUsage();
      return heapUsed + external;
    };
    const before = memory();
    const sockets = Array.from({ length: 8 }, () => {
      const socket = client(port);
      socket.pause();
      socket.write('GET /apis/example.com/v1/orders HTTP/1.1\r\nHost: a\r\n\r\n');
      return socket;
    });
    await vi.waitFor(() => expect(server.metrics).toMatch(/requests_by_verb_total\{verb="list"\} 9/), 10_000);
    // The server writes until no connection takes more: a few turns of its loop.
    for (let turn = 0; turn < 1_000; turn++) await new Promise((resolve) => setImmediate(resolve));
    // What is outside of the heap is freed some time after what refers to it. What is held, stays.
    await vi.waitFor(() => expect((memory() - before) / sockets.length).toBeLessThan(2 * 2 ** 20), 10_000);
  });
});
