// How many connections one address may have to `serve` and `pipe`, whatever it does with them.
import { createServer } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { connect } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { close, listen } from '../../src/cli/server/server.ts';

test('an address has no more connections than its share, and gets new ones when it has closed some', async () => {
  const dropped: unknown[] = [];
  const server = createServer((_request, response) => void response.end('here'));
  server.on('drop', (data) => dropped.push(data?.remoteAddress));
  await listen(server, { host: '127.0.0.1', port: 0, maxConnectionsPerAddress: 3 });
  onTestFinished(() => close(server));
  const { port } = server.address() as AddressInfo;
  const enter = (localAddress: string): Socket => {
    const socket = connect({ port, host: '127.0.0.1', localAddress }).on('error', () => {});
    onTestFinished(() => void socket.destroy());
    return socket;
  };
  const answered = (socket: Socket): Promise<boolean> =>
    new Promise((resolve) => {
      socket.once('data', () => resolve(true)).once('close', () => resolve(false));
      socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
    });
  const held = Array.from({ length: 3 }, () => enter('127.0.0.1'));
  expect(await Promise.all(held.map(answered))).toEqual([true, true, true]);
  expect(await answered(enter('127.0.0.1'))).toBe(false);
  expect(dropped).toEqual(['127.0.0.1']);
  expect(await answered(enter('127.0.0.2'))).toBe(true);
  held[0]?.destroy();
  await expect.poll(() => answered(enter('127.0.0.1'))).toBe(true);
});

test('a port that is taken: the message names the option that chose it', async () => {
  const taken = createServer();
  await listen(taken, { host: '127.0.0.1', port: 0 });
  onTestFinished(() => close(taken));
  const { port } = taken.address() as AddressInfo;
  const where = { host: '127.0.0.1', port, command: 'serve' } as const;
  await expect(listen(createServer(), where)).rejects.toThrow(
    `watchmux serve: port ${port} is in use; choose another with --port, or any free one with --port 0`,
  );
  await expect(listen(createServer(), { ...where, option: '--metrics' })).rejects.toThrow(
    `watchmux serve: port ${port} is in use; choose another with --metrics, or any free one with --metrics 0`,
  );
});
