// WebSocket clients that send more than a watch can have to say: they are cut, and tell nobody else.
import { createServer } from 'node:http';
import { afterAll, describe, expect, test } from 'vitest';
import { WebSocket, WebSocketServer } from 'ws';
import { Hub } from '../../src/bridge/hub/hub.ts';
import type { WebSocketOptions } from '../../src/bridge/websocket.ts';
import { attachWebSocket, attachWebSocketServer } from '../../src/bridge/websocket.ts';
import { FakeClock } from '../../src/testing/fakes/fake-clock.ts';
import { until } from './cli.ts';
import { closeAll, connections, raw, serve, start, upgrade } from './servers.ts';

afterAll(closeAll);

/** A masked frame of one byte or none. */
const frame = (first: number, ...payload: number[]): Buffer =>
  Buffer.from([first, 0x80 | payload.length, 0, 0, 0, 0, ...payload]);

const times = (count: number, bytes: Buffer): Buffer => Buffer.concat(Array.from({ length: count }, () => bytes));

async function connect(url: string): Promise<{ client: WebSocket; closed: Promise<[number, string]> }> {
  const client = new WebSocket(`${url.replace('http', 'ws')}/watch`);
  const closed = new Promise<[number, string]>((resolve) =>
    client.on('close', (code, reason) => resolve([code, String(reason)])),
  );
  await new Promise((resolve) => client.once('open', resolve));
  return { client, closed };
}

test('a client may send 100 messages in one second, and is cut with code 1008 for one more', async () => {
  const hub = new Hub();
  // The time stands still, so it is always the same second.
  const clock = new FakeClock();
  const { url, server } = await serve(hub, { clock });
  const [loud, quiet] = [await connect(url), await connect(url)];
  for (let i = 0; i < 100; i++) for (const { client } of [loud, quiet]) client.send('x');
  quiet.client.ping();
  expect(await quiet.closed).toEqual([1008, 'flooding']);
  expect(hub.stats().total).toMatchObject({ cut: 1, cuts: { flooding: 1 } });
  clock.advance(1_000);
  const heard = new Promise((resolve) => loud.client.once('pong', resolve));
  loud.client.send('y');
  loud.client.ping();
  await heard;
  expect(hub.stats().clients).toHaveLength(1);
  loud.client.close();
  await until(async () => (await connections(server)) === 0);
});

test.each<[string, WebSocketOptions, number, number]>([
  ['the longest message that is allowed may come at once', { maxInboundBytes: 500_000 }, 400_000, 1000],
  ['a limit of bytes of its own', { maxInboundBytesPerSecond: 100 }, 200, 1008],
])('%s', async (_what, options, length, code) => {
  const { url } = await serve(new Hub(), { clock: new FakeClock(), ...options });
  const { client, closed } = await connect(url);
  client.send('x'.repeat(length));
  if (code === 1000) client.close(code);
  expect((await closed)[0]).toBe(code);
});

test.each([
  ['messages', frame(0x81, 0x61)],
  ['pings', frame(0x89, 0x61)],
  ['fragments', frame(0x00, 0x61)],
  ['empty fragments', frame(0x00)],
])('one-byte %s by the thousand end only that client', async (_what, each) => {
  const hub = new Hub();
  const { url, port } = await serve(hub, { maxInboundBytes: 100_000 });
  const other = await connect(url);
  const { socket, heard, ended } = await raw(port);
  socket.write(upgrade('/watch'));
  await until(() => heard().includes('101 Switching'));
  socket.write(times(1, frame(0x01)));
  for (let i = 0; i < 4; i++) socket.write(times(9_000, each));
  await ended;
  await until(() => hub.stats().clients.length === 1);
  expect(hub.stats().total.cuts).toEqual({ flooding: 1 });
  const message = new Promise((resolve) => other.client.once('message', resolve));
  await hub.publish({ type: 'ADDED', object: 1 });
  await message;
  other.client.close();
});

describe("a client of the application's own ws server", () => {
  test.each([
    ['still waits to be admitted', { authenticate: () => new Promise<never>(() => {}) }],
    ['has been refused', { authenticate: () => false as const }],
    ['is served', {}],
  ])('is cut, too, if it %s', async (_what, options) => {
    const hub = new Hub();
    const server = createServer();
    attachWebSocketServer(new WebSocketServer({ server, path: '/watch' }), hub, options);
    const { port } = await start(server);
    const { socket, heard, ended } = await raw(port);
    socket.write(upgrade('/watch'));
    await until(() => heard().includes('101 Switching'));
    socket.write(times(9_000, frame(0x81, 0x61)));
    await ended;
    socket.destroy();
    await until(async () => (await connections(server)) === 0);
  });
});

test.each(['maxInboundBytesPerSecond', 'maxInboundMessagesPerSecond'])('%s must be a whole number', (name) => {
  for (const value of [-1, 0.5, Number.NaN, '5'])
    expect(() => attachWebSocket(createServer(), new Hub(), { [name]: value })).toThrow(name);
});
