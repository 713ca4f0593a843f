// A connection that waits for its next request is kept for as long as --keep-alive says: Node's limits of a request do not count then.
// One that has not begun a request has little time, in each of its phases.
import { once } from 'node:events';
import { createServer } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { connect } from 'node:tls';
import { expect, onTestFinished, test } from 'vitest';
import { PATIENCE } from '../../src/cli/server/server.ts';
import { eventually } from '../eventually.ts';
import { client } from './apiserver-sockets.ts';
import { certify } from './certificates.ts';

const GET = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n';

test('it may be longer than the time for a request, and a connection without any request is closed after that', async () => {
  const limits = { headersTimeout: 100, requestTimeout: 100, connectionsCheckingInterval: 20 };
  const server = createServer({ ...PATIENCE, ...limits, keepAliveTimeout: 60_000 }, (_, response) => response.end('done'));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  const { port } = server.address() as AddressInfo;
  const [used, silent, slow] = [client(port), client(port), client(port)];
  let said = '';
  used.on('data', (text) => {
    said += text;
  });
  used.write(GET);
  await eventually(() => expect(said).toContain('done'));
  slow.write(GET.slice(0, 20));
  // Both are over their time, twice: so is the connection that has been used.
  for (const socket of [silent, slow]) await once(socket.resume(), 'end');
  await once(client(port).resume(), 'end');
  used.write(GET);
  await eventually(() => expect(said.match(/done/g)).toHaveLength(2));
});

test('a connection that does not begin TLS, or then no request, is closed in its time', async () => {
  expect(PATIENCE).toMatchObject({ handshakeTimeout: 10_000, headersTimeout: 10_000, requestTimeout: 20_000 });
  const { maxHeaderSize, ...times } = PATIENCE;
  const shorter = Object.fromEntries(Object.entries(times).map(([name, ms]) => [name, ms / 100]));
  const { ca, server: pair } = certify();
  const server = createSecureServer({ ...shorter, maxHeaderSize, ...pair }, (_, response) => response.end());
  await once(server.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  const { port } = server.address() as AddressInfo;
  // On a busy machine a handshake may take longer than it has here.
  const encrypted = await eventually(async () => {
    const socket = connect({ port, host: '127.0.0.1', ca, servername: 'cluster.example' });
    await once(socket, 'secureConnect');
    return socket;
  });
  await Promise.all([client(port), encrypted.on('error', () => {})].map((socket) => once(socket.resume(), 'end')));
});
