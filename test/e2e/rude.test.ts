// Impolite but valid clients, over raw sockets: they must leave nothing behind.
import { createServer } from 'node:http';
import { afterAll, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { Hub } from '../../src/bridge/http.ts';
import { attachWebSocket } from '../../src/bridge/websocket.ts';
import { close, listen } from '../../src/cli/server/server.ts';
import { FakeClock } from '../../src/testing/fakes/fake-clock.ts';
import type { WatchEvent } from '../../src/watch/event.ts';
import { killAll, pipe, until } from './cli.ts';
import { closeAll, connections, get, raw, serve, start, upgrade } from './servers.ts';

afterAll(async () => {
  killAll();
  await closeAll();
});

/** Bigger than what kernels keep for a reader that has stopped. */
const megabyte: WatchEvent = { type: 'ADDED', object: 'x'.repeat(1_000_000) };

describe('a client that keeps its side open', () => {
  test.each([
    ['another path', upgrade('/nope'), '404'],
    ['another origin', upgrade('/watch', 'Origin: http://evil.example'), '403'],
    ['half a handshake', upgrade('/watch').replace('dGhl', '!!'), '400'],
  ])('has no connection after a refused upgrade (%s)', async (_name, request, status) => {
    const { server, port } = await serve(new Hub());
    const { socket, heard, ended } = await raw(port);
    socket.write(request);
    await ended;
    expect(heard()).toContain(`HTTP/1.1 ${status} `);
    await until(async () => (await connections(server)) === 0);
    await new Promise((resolve) => server.close(resolve));
  });

  test('does not delay the end of watchmux pipe', async () => {
    const server = await pipe();
    const { socket, heard } = await raw(Number(new URL(server.url).port));
    socket.write(upgrade('/nope'));
    await until(() => heard().includes('404'));
    server.child.stdin.end('1\n');
    expect(await server.exit).toBe(0);
  });

  test('nor does a pending upgrade: the end of the command line closes it', async () => {
    const server = createServer();
    const upgraded = new Promise((resolve) => server.once('upgrade', resolve));
    const url = await listen(server, { host: '127.0.0.1', port: 0 });
    const { socket } = await raw(Number(new URL(url).port));
    socket.write(upgrade('/watch'));
    await upgraded;
    await close(server);
  });
});

describe('two hubs on one server', () => {
  const status = async (port: number, path: string): Promise<string | undefined> => {
    const { socket, heard } = await raw(port);
    socket.write(upgrade(path));
    await until(() => heard().includes('\r\n\r\n'));
    socket.destroy();
    return /^HTTP\/1\.1 (\d+) /.exec(heard())?.[1];
  };

  test('each answers at its path, and requests for other paths get one answer', async () => {
    const server = createServer();
    const detach = ['/a', '/b'].map((path) => attachWebSocket(server, new Hub(), { path }));
    const { port } = await start(server);
    expect(await Promise.all(['/a', '/b', '/c'].map((path) => status(port, path)))).toEqual(['101', '101', '404']);
    detach[0]?.();
    expect(await Promise.all(['/a', '/b', '/c'].map((path) => status(port, path)))).toEqual(['404', '101', '404']);
    detach[1]?.();
    detach[1]?.();
    expect(server.listenerCount('upgrade')).toBe(0);
    attachWebSocket(server, new Hub(), { path: '/c' });
    expect(await status(port, '/c')).toBe('101');
    // With somebody else there, what is not ours is theirs.
    server.on('upgrade', (request, socket) => {
      if (request.url === '/d') socket.end('HTTP/1.1 418 Theirs\r\n\r\n');
    });
    expect(await status(port, '/d')).toBe('418');
  });
});

describe.each([
  ['WebSocket', upgrade('/watch'), [Buffer.from([0x8a, 0x80, 0, 0, 0, 0])]],
  ['HTTP stream', get('/watch'), ['GET /', ...'a'.repeat(5_000)]],
])('%s: a client that reads nothing', (_name, request, noise) => {
  const options = { stallTimeoutMs: 1_000, heartbeatMs: 0 };

  test.each([
    ['is cut', 0, false],
    ['is cut, however long there was nothing to read before', 60_000, false],
    ['is cut, whatever it says meanwhile', 0, true],
  ])('%s', async (_what, idleMs, talks) => {
    const hub = new Hub({ overflow: 'drop-oldest', capacity: 4 });
    const clock = new FakeClock();
    const { port } = await serve(hub, { ...options, clock });
    const { socket, heard } = await raw(port);
    socket.write(request);
    await until(() => heard().includes('\r\n\r\n'));
    clock.advance(idleMs);
    expect(hub.stats().clients).toHaveLength(1);
    socket.pause();
    let said = 0;
    for (let i = 0; i < 20; i++) await hub.publish(megabyte);
    expect(hub.stats().clients[0]?.bufferedBytes).toBeGreaterThan(0);
    await until(() => {
      if (talks) socket.write(noise[said++ % noise.length] as string | Buffer);
      clock.advance(250);
      return hub.stats().clients.length === 0;
    });
    expect(clock.pending).toBe(0);
  });
});

describe('WebSocket', () => {
  test('an unsolicited pong is not a sign of life', async () => {
    const hub = new Hub();
    const clock = new FakeClock();
    const { port } = await serve(hub, { heartbeatMs: 1_000, stallTimeoutMs: 0, clock });
    const client = new WebSocket(`ws://127.0.0.1:${port}/watch`, { autoPong: false });
    const closed = new Promise((resolve) => client.on('close', resolve));
    await until(() => hub.stats().clients.length === 1);
    const pinged = new Promise((resolve) => client.once('ping', resolve));
    clock.advance(1_000);
    await pinged;
    // What is answered came after what was said before it.
    const heard = new Promise((resolve) => client.once('pong', resolve));
    client.pong();
    client.pong('other');
    client.ping();
    await heard;
    clock.advance(1_000);
    expect(await closed).toBe(1006);
  });
});
