// How many requests a connection may send ahead, and when it ends.
import { describe, expect, test } from 'vitest';
import { ORDERS_PATH } from './apiserver-rig.ts';
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
