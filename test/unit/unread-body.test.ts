// A refusal whose body Node has already read whole: nothing of it is left on the connection, so the connection goes on.
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { endUnread } from '../../src/bridge/transport/unread-body.ts';
import { systemClock } from '../../src/watch/clock.ts';
import { client } from './apiserver-sockets.ts';

test('a body that has come whole before the refusal does not cost the connection, however long it is', async () => {
  let late: () => void = () => {};
  const server = createServer({ highWaterMark: 1_000_000 }, (request, response) => {
    const body = '{}';
    const begin = (): unknown => response.writeHead(405, { 'content-length': body.length });
    late = () => endUnread(request, response, { begin, body, clock: systemClock });
    if (request.method === 'GET') late();
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => void server.close());
  const socket = client((server.address() as AddressInfo).port);
  let said = '';
  socket.on('data', (bytes) => {
    said += bytes;
  });
  const request = once(server, 'request');
  socket.write(`POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 70000\r\n\r\n${'x'.repeat(70_000)}`);
  const [asked] = await request;
  await expect.poll(() => asked.complete).toBe(true);
  late();
  await expect.poll(() => said).toContain('405');
  socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
  await expect.poll(() => said.split(' 405 ').length).toBe(3);
  expect(said.toLowerCase()).not.toContain('connection: close');
});
