// What `watchmux pipe` answers beside the watch, to those who ask politely and to those who do not.
import type { Socket } from 'node:net';
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { exposition } from '../exposition.ts';
import type { Client, Pipe } from './cli.ts';
import { flood, httpStream, killAll, open, pipe, text, until } from './cli.ts';

const sockets: Socket[] = [];
/** For tests that neither set it up nor end it. Clients of the test before may be about to leave. */
let common: Pipe;

beforeAll(async () => {
  common = await pipe();
});

afterAll(async () => {
  for (const socket of sockets) socket.destroy();
  common.child.stdin.end();
  const code = await common.exit;
  killAll();
  expect(code).toBe(0);
});

/** A raw connection: what it has received, and whether it is closed. */
async function raw(url: string): Promise<{ socket: Socket; heard: () => string; closed: () => boolean }> {
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  sockets.push(socket);
  let heard = '';
  socket.on('data', (bytes) => {
    heard += bytes.toString('latin1');
  });
  socket.on('error', () => {});
  await new Promise((resolve) => socket.once('connect', resolve));
  return { socket, heard: () => heard, closed: () => socket.closed };
}

const ask = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`;
const answers = (heard: string): number => heard.split('HTTP/1.1 200 ').length - 1;

async function watching(server: Pipe, count: number): Promise<Client[]> {
  const clients: Client[] = [];
  for (let i = 0; i < count; i++) clients.push(await httpStream(server.url));
  await until(async () => (await server.stats()).clients.length === count);
  return clients;
}

describe('requests in one pipeline', () => {
  test.each(['/stats', '/metrics', '/', '/nothing'])(
    '%s: 64 KB of them block nobody, and the connection is closed',
    async (path) => {
      const [witness, ...others] = await watching(common, 100);
      const { socket, heard, closed } = await raw(common.url);
      socket.write(ask(path).repeat(Math.floor(65_536 / ask(path).length)));
      await until(closed);
      common.write('after');
      await until(() => witness?.texts.length === 1);
      expect(answers(heard())).toBeLessThan(20);
      for (const client of [witness, ...others]) client?.close();
    },
  );

  test('a few are answered, in order, and so is the next one', async () => {
    const server = await pipe('--title', 'Shop');
    const { socket, heard, closed } = await raw(server.url);
    socket.write(ask('/stats') + ask('/metrics') + ask('/'));
    await until(() => heard().includes('</html>'));
    expect(heard()).toMatch(/"accepted":0[\s\S]*# TYPE watchmux_clients gauge[\s\S]*<title>Shop<\/title>/);
    socket.write(ask('/stats'));
    await until(() => answers(heard()) === 4);
    expect(closed()).toBe(false);
    server.child.stdin.end();
    expect(await server.exit).toBe(0);
  });

  test.each(['/watch', '/stats', '/metrics', '/', '/nothing'])('behind a stream, %s closes the connection', async (path) => {
    const { socket, heard, closed } = await raw(common.url);
    socket.write(ask('/watch'));
    await until(() => heard().includes('\r\n\r\n'));
    socket.write(ask(path));
    await until(closed);
    await until(async () => (await common.stats()).clients.length === 0);
  });
});

describe('/metrics', () => {
  test('is a page for Prometheus, with what /stats says', async () => {
    const server = await pipe();
    const [client] = await watching(server, 1);
    server.child.stdin.write('1\n2\nbad\n');
    await until(() => client?.texts.length === 2);
    await until(async () => (await text(`${server.url}/metrics`)).includes('watchmux_events_delivered_total 2\n'));
    const response = await open(`${server.url}/metrics`);
    expect(response.headers['content-type']).toBe('text/plain; version=0.0.4; charset=utf-8');
    const families = exposition(await text(`${server.url}/metrics`));
    const value = (name: string): number | undefined => families.get(`watchmux_${name}`)?.samples[0]?.value;
    expect(['events_accepted_total', 'events_dropped_total', 'lines_skipped_total', 'clients'].map(value)).toEqual([2, 0, 1, 1]);
    expect(value('sent_bytes_total')).toBeGreaterThan(50);
    server.child.stdin.end();
    expect(await server.exit).toBe(0);
  });
});

describe('a request that is refused', () => {
  test.each([
    ['405', 'POST /stats'],
    ['404', 'GET /none'],
    ['405', 'DELETE /watch'],
    ['400', 'GET /watch?resourceVersion=x'],
  ])('with %s, and a small body that nobody reads, leaves its connection for the next: %s', async (code, line) => {
    const { socket, heard } = await raw(common.url);
    const codes = (): string[] => Array.from(heard().matchAll(/HTTP\/1\.1 (\d+) /g), ([, each = '']) => each);
    for (const round of [1, 2, 3]) {
      socket.write(`${line} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 10\r\n\r\n01234`);
      await until(() => codes().length === round);
      socket.write('56789');
    }
    socket.write('GET /stats HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n');
    await until(() => codes().length === 4);
    expect(codes()).toEqual([code, code, code, '200']);
    socket.destroy();
  });

  test('is 400 at every path if its query cannot be decoded', async () => {
    for (const path of ['/', '/watch', '/stats', '/metrics', '/none']) {
      for (const bad of ['watch=%', '%ff', 'slow=%zz']) {
        expect([path, (await open(`${common.url}${path}?${bad}`)).statusCode]).toEqual([path, 400]);
      }
    }
  });
});

test('connections are kept for two minutes, or for --keep-alive; SIGTERM closes those that are idle, while it drains', async () => {
  const server = await pipe();
  expect((await fetch(`${server.url}/stats`)).headers.get('keep-alive')).toBe('timeout=120');
  const short = await pipe('--keep-alive', '1');
  const { socket, closed } = await raw(short.url);
  socket.write('GET /stats HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n');
  await until(closed);
  for (const { child, exit } of [short, server]) {
    child.kill('SIGTERM');
    expect(await exit).toBe(0);
  }
  const draining = await pipe('--overflow', 'wait', '--capacity', '1', '--drain', '60');
  const [client] = await watching(draining, 1);
  client?.pause();
  flood(draining, 2_000);
  await until(async () => (await draining.stats()).clients.some(({ queued }) => queued > 0));
  const idle = await raw(draining.url);
  idle.socket.write('GET /stats HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n');
  await until(() => idle.heard().includes('"clients"'));
  draining.child.kill('SIGTERM');
  await until(idle.closed);
  expect(draining.child.exitCode).toBeNull();
  draining.child.kill('SIGTERM');
  expect(await draining.exit).toBe(143);
});

test('a title is text, whatever is in it', async () => {
  const server = await pipe('--title', '<script>alert("&")</script>');
  const html = await text(server.url);
  expect(html).toContain('<title>&lt;script&gt;alert(&quot;&amp;&quot;)&lt;/script&gt;</title>');
  expect(html).not.toContain('<script>alert');
  server.child.stdin.end();
  expect(await server.exit).toBe(0);
});

test('a WebSocket behind a page on one connection comes after it', async () => {
  const { socket, heard } = await raw(common.url);
  const handshake =
    'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==';
  const get = (path: string, more = 'X: y'): string => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n${more}\r\n\r\n`;
  socket.write(get('/stats') + get('/nowhere') + get('/watch', handshake));
  await until(() => heard().includes(' 101 '));
  expect(heard().match(/HTTP\/1.1 \d+/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 404', 'HTTP/1.1 101']);
  socket.destroy();
});

test('a WebSocket handshake for another host name is refused, with and without an origin', async () => {
  const handshake = (host: string, ...more: string[]): string =>
    [
      'GET /watch HTTP/1.1',
      `Host: ${host}`,
      'Connection: Upgrade',
      'Upgrade: websocket',
      'Sec-WebSocket-Version: 13',
      'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
      ...more,
      '\r\n',
    ].join('\r\n');
  const asked: readonly [string, number][] = [
    [handshake('evil.example'), 421],
    [handshake('evil.example', 'Origin: http://evil.example'), 421],
    [handshake('127.0.0.1'), 101],
    [handshake('localhost:1'), 101],
  ];
  for (const [request, code] of asked) {
    const { socket, heard } = await raw(common.url);
    socket.write(request);
    await until(() => heard().includes('\r\n\r\n'));
    expect(heard()).toMatch(new RegExp(`^HTTP/1\\.1 ${code} `));
    if (code === 421) await until(() => heard().includes('"reason":"Misdirected"'));
    socket.destroy();
  }
});
