// What `watchmux pipe` serves, and to whom.
import { afterAll, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { flood, killAll, open, pipe, run, sse, TRANSPORTS, text, until } from './cli.ts';

afterAll(killAll);

describe('watchmux pipe serves', () => {
  test('SSE with ids: one epoch, and a number per event', async () => {
    const server = await pipe();
    const client = await sse(server.url);
    server.child.stdin.end('1\n2\n3\n');
    await client.ended;
    const [epoch] = (client.ids[0] as string).split('.');
    expect(epoch).toMatch(/^[0-9a-f]{16}$/);
    expect(client.ids).toEqual([1, 2, 3].map((number) => `${epoch}.${number}`));
  });

  test('an HTTP stream that starts at once, with its headers', async () => {
    const server = await pipe();
    const response = await open(`${server.url}/watch`);
    expect(response.headers).toMatchObject({ 'content-type': 'application/json', 'cache-control': 'no-store, no-transform' });
    const events = await open(`${server.url}/watch?x=1`, { accept: 'text/html, text/event-stream;q=0.9' });
    expect(events.headers['content-type']).toBe('text/event-stream');
    expect((await open(`${server.url}/`)).headers['content-security-policy']).toContain("default-src 'none'");
    expect((await open(`${server.url}/other`)).statusCode).toBe(404);
    expect(await text(`${server.url}/`)).toContain('<!doctype html>');
    expect(await server.stats()).toMatchObject({
      accepted: 0,
      clients: [{ transport: 'http', queued: 0 }, { transport: 'sse' }],
    });
    server.child.stdin.end();
    expect(await server.exit).toBe(0);
  });

  test.each([
    ['another site', { origin: 'http://evil.example' }, '/watch', 403],
    ['another path', {}, '/other', 404],
  ])('no WebSocket from or to %s', async (_name, headers, path, status) => {
    const server = await pipe();
    const socket = new WebSocket(`${server.url.replace('http', 'ws')}${path}`, { headers });
    const code = await new Promise((resolve) => {
      socket.on('unexpected-response', (_request, response) => resolve(response.statusCode));
    });
    expect(code).toBe(status);
    server.child.kill('SIGTERM');
    expect(await server.exit).toBe(0);
  });

  test('nothing to a page that maps its own name to our address', async () => {
    const server = await pipe('--replay', '1');
    const { port } = new URL(server.url);
    for (const host of [`evil.example:${port}`, 'localhost.evil.example', '127.0.0.1.evil.example', 'evil.example/.localhost']) {
      for (const path of ['/', '/watch', '/stats']) expect((await open(`${server.url}${path}`, { host })).statusCode).toBe(421);
      for (const headers of [{ host }, { host, origin: `http://${host}` }, { host, origin: `http://127.0.0.1:${port}` }]) {
        const socket = new WebSocket(`${server.url.replace('http', 'ws')}/watch`, { headers });
        const code = await new Promise((resolve) => {
          socket.on('open', () => resolve('open'));
          socket.on('unexpected-response', (_request, response) => resolve(response.statusCode));
        });
        expect(code).toBe(421);
      }
    }
    for (const host of [`localhost:${port}`, `LOCALHOST:${port}`, `[::1]:${port}`, `127.0.0.1:${port}`]) {
      expect((await open(`${server.url}/stats`, { host })).statusCode).toBe(200);
    }
    server.child.kill('SIGTERM');
    expect(await server.exit).toBe(0);
  });

  test.each(['LOCALHOST', '0x7f.1'])(
    'nothing to such a page if it listens on the loopback address by the name of %s',
    async (host) => {
      const server = run('pipe', '--port', '0', '--host', host);
      await until(() => server.out().includes('\n'));
      const port = new URL(server.out().trim().split(' ').at(-1) as string).port;
      const url = `http://${host}:${port}/stats`;
      expect((await open(url, { host: `evil.example:${port}` })).statusCode).toBe(421);
      expect((await open(url)).statusCode).toBe(200);
      server.child.kill('SIGTERM');
      expect(await server.exit).toBe(0);
    },
  );

  test('clients that send little, and cuts those that send too much', async () => {
    const server = await pipe();
    const [quiet, loud] = [0, 1].map(() => new WebSocket(`${server.url.replace('http', 'ws')}/watch`)) as [WebSocket, WebSocket];
    const closed = new Promise((resolve) => loud.on('close', resolve));
    await Promise.all([quiet, loud].map((socket) => new Promise((resolve) => socket.on('open', resolve))));
    quiet.send('hello');
    loud.send('x'.repeat(2_000));
    expect(await closed).toBe(1009);
    const message = new Promise((resolve) => quiet.on('message', (data) => resolve(String(data))));
    server.write(1);
    expect(JSON.parse((await message) as string)).toMatchObject({ type: 'ADDED', object: 1 });
    quiet.terminate();
    server.child.stdin.end();
    expect(await server.exit).toBe(0);
  });

  test('statistics without clients that have left', async () => {
    const server = await pipe('--overflow', 'wait', '--capacity', '1');
    const clients = await Promise.all(TRANSPORTS.map(([, connect]) => connect(server.url)));
    for (const client of clients) client.pause();
    flood(server, 2_000);
    await until(async () => (await server.stats()).clients.some((client) => client.queued > 0));
    for (const client of clients) client.close();
    await until(async () => (await server.stats()).accepted === 2_000);
    expect(await server.stats()).toMatchObject({ clients: [], total: { clients: 3 } });
    server.child.stdin.end();
    expect(await server.exit).toBe(0);
  });
});
