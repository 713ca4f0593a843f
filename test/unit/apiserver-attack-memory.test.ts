// What clients could make a server hold: memory and connections.
import { connect, type Socket } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { listening, ORDERS_PATH, rig } from './apiserver-rig.ts';
import { macrotask, NO_GC } from './support.ts';

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

interface Opened extends ReturnType<typeof rig> {
  readonly port: number;
  readonly connections: () => Promise<number>;
  /** Bytes that have come. */
  readonly received: () => number;
}

async function open(): Promise<Opened> {
  const made = rig();
  const { url, http, close } = await listening(made.server);
  http.on('upgrade', made.server.upgrade);
  closing.push(close);
  let received = (): number => 0;
  http.on('connection', (socket) => {
    received = () => socket.bytesRead;
  });
  const connections = (): Promise<number> => new Promise((resolve) => http.getConnections((_, count) => resolve(count)));
  return { ...made, port: Number(new URL(url).port), connections, received: () => received() };
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
