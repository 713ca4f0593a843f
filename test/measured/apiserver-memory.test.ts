// What clients could make a server hold. Nothing runs beside these tests: they measure memory.
import { describe, expect, test } from 'vitest';
import { eventually } from '../eventually.ts';
import { type Answered, ORDERS_PATH, type Order, rig } from '../unit/apiserver-rig.ts';
import { client, open } from '../unit/apiserver-sockets.ts';
import { macrotask, NO_GC } from '../unit/support.ts';

const ORDER = JSON.stringify({ apiVersion: 'example.com/v1', kind: 'Order', metadata: { name: 'a' } });

async function heapBytes(): Promise<number> {
  await macrotask();
  globalThis.gc?.();
  return process.memoryUsage().heapUsed;
}

const POST = `POST ${ORDERS_PATH} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n`;

describe.skipIf(globalThis.gc === undefined)(`a body of many small pieces${NO_GC}`, () => {
  const PIECES = 200_000;

  /** What the server holds when it has these bytes of a body, and no more. */
  async function heldOver(chunks: string): Promise<number> {
    const { port, received } = await open();
    const socket = client(port);
    await new Promise<void>((resolve) => socket.write(`${POST}Transfer-Encoding: chunked\r\n\r\n`, () => resolve()));
    const before = await heapBytes();
    await new Promise<void>((resolve) => socket.write(chunks, () => resolve()));
    await expect.poll(received).toBeGreaterThan(chunks.length);
    const held = (await heapBytes()) - before;
    let said = '';
    socket.on('data', (bytes) => {
      said += bytes;
    });
    socket.write(`${ORDER.length.toString(16)}\r\n${ORDER}\r\n0\r\n\r\n`);
    await expect.poll(() => said).toContain('201 Created');
    return held;
  }

  test('over node:http costs little more than its bytes, and than one large piece', async () => {
    const pieces = await heldOver('1\r\n \r\n'.repeat(PIECES));
    const whole = await heldOver(`${PIECES.toString(16)}\r\n${' '.repeat(PIECES)}\r\n`);
    // The pieces are 200 bytes each, if each is kept.
    expect(pieces).toBeLessThan(10 * 2 ** 20);
    expect(pieces - whole).toBeLessThan(10 * 2 ** 20);
  });

  /** What the server holds when it has a body of blanks in pieces of this size. */
  async function heldOverFetch(pieceBytes: number): Promise<number> {
    const { server } = rig();
    const slab = new Uint8Array(PIECES).fill(0x20);
    let [sent, before, held] = [0, 0, 0];
    const body = new ReadableStream<Uint8Array>({
      async pull(controller) {
        if (sent === 0) before = await heapBytes();
        if (sent === PIECES) {
          held = (await heapBytes()) - before;
          controller.enqueue(new TextEncoder().encode(ORDER));
          controller.close();
        } else {
          const to = Math.min(PIECES, sent + 1_000 * pieceBytes);
          for (; sent < to; sent += pieceBytes) controller.enqueue(slab.subarray(sent, sent + pieceBytes));
        }
      },
    });
    const headers = { 'content-type': 'application/json' };
    const init = { method: 'POST', headers, body, duplex: 'half' } as RequestInit;
    expect((await server.fetch(new Request(`http://127.0.0.1${ORDERS_PATH}`, init))).status).toBe(201);
    await server.shutdown();
    return held;
  }

  test('over fetch costs little more than its bytes, and than one large piece', async () => {
    const pieces = await heldOverFetch(1);
    const whole = await heldOverFetch(PIECES);
    expect(pieces).toBeLessThan(10 * 2 ** 20);
    expect(pieces - whole).toBeLessThan(10 * 2 ** 20);
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
    await eventually(() => expect(server.metrics).toMatch(/requests_by_verb_total\{verb="list"\} 9/));
    // The server writes until no connection takes more: a few turns of its loop.
    for (let turn = 0; turn < 1_000; turn++) await new Promise((resolve) => setImmediate(resolve));
    // What is outside of the heap is freed some time after what refers to it. What is held, stays.
    // The control is what the list takes as a whole: 30 MB.
    expect(JSON.stringify(whole).length).toBeGreaterThan(30_000_000);
    await eventually(() => expect((memory() - before) / sockets.length).toBeLessThan(2 * 2 ** 20));
  });
});
