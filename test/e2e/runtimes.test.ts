// The built package in Bun and in Deno: as servers, both with their own server and with node:http, and as clients of Node.
import type { IncomingMessage } from 'node:http';
import { createServer } from 'node:http';
import type { Duplex } from 'node:stream';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import type { ClientEvent, WebSocketConstructor } from '../../src/bridge/client.ts';
import { connect } from '../../src/bridge/client.ts';
import { SLICE_BYTES } from '../../src/bridge/events/forms.ts';
import { createHttpHandler, Hub } from '../../src/bridge/http.ts';
import type { HubStats } from '../../src/bridge/hub/hub.ts';
import { attachWebSocket } from '../../src/bridge/websocket.ts';
import type { WatchEvent } from '../../src/watch/event.ts';
import { text, until } from './cli.ts';
import type { Started } from './runtimes.ts';
import { endAll, RUNTIMES } from './runtimes.ts';
import type { Raw } from './servers.ts';
import { closeAll, get, raw, start as startServer, upgrade } from './servers.ts';

afterAll(async () => {
  endAll();
  await closeAll();
});

type Numbered = WatchEvent<string, { i: number }>;
type Stats = HubStats & { clients: { transport: string; bufferedBytes: number; address: string }[] };

/** Events of 10 KB, more than what stands between a hub and a reader that has stopped: queue, buffer, and both kernels. */
const MANY = 1_500;
const MEGABYTE = 1_048_576;

interface Serving {
  readonly started: Started;
  readonly url: string;
  readonly port: number;
  readonly ask: (path: string) => Promise<Stats>;
}

async function serving(started: Started): Promise<Serving> {
  await until(() => started.out().includes('\n') || started.child.exitCode !== null);
  if (started.child.exitCode !== null) throw new Error(`not listening: ${(await started.ended)[1]}`);
  const port = Number(started.out());
  const url = `http://127.0.0.1:${port}`;
  return { started, url, port, ask: async (path) => JSON.parse(await text(url + path)) as Stats };
}

const REQUESTS: Record<string, string> = {
  http: get('/watch'),
  sse: get('/watch', 'Accept: text/event-stream'),
  websocket: upgrade('/watch'),
};

/** A client that has been let in, and reads nothing from here on. */
async function stalled({ port }: Serving, transport: string): Promise<Raw> {
  const client = await raw(port);
  client.socket.write(REQUESTS[transport] as string);
  await until(() => client.heard().includes('\r\n\r\n'));
  client.socket.pause();
  return client;
}

for (const runtime of RUNTIMES) {
  describe.skipIf(runtime.missing)(runtime.name, () => {
    test('the contract of a watch, the policies, streams and RxJS hold', async () => {
      const [code, out] = await runtime.start('test/runtimes/core.mjs').ended;
      expect(out).toMatch(/observe, toReadable\n$/);
      expect(code).toBe(0);
    });

    describe.each([
      ['own', ['http', 'sse']],
      ['node', ['http', 'sse', 'websocket']],
    ])('a hub behind its %s server', (host, transports) => {
      const start = (settings: object): Promise<Serving> =>
        serving(runtime.start('test/runtimes/serve.mjs', host, JSON.stringify(settings)));
      let server: Serving;

      beforeAll(async () => {
        server = await start({ replayItems: 10_000, maxClientsPerAddress: 3 });
      });

      const clients = async (): Promise<number> => (await server.ask('/stats')).clients.length;

      test.each([
        [400, '?resourceVersion=__proto__', {}],
        [401, '', { authorization: 'unknown' }],
        [403, '', { authorization: 'banned' }],
        [403, '', { origin: 'http://evil.example' }],
        [410, '?resourceVersion=other.1', {}],
        [405, '', { method: 'POST' }],
      ])('refuses with %i: %s %s', async (code, query, { method = 'GET', ...headers }: Record<string, string>) => {
        const response = await fetch(`${server.url}/watch${query}`, { method, headers: { ...headers, connection: 'close' } });
        expect(await response.json()).toMatchObject({ kind: 'Status', code });
        expect(response.status).toBe(code);
      });

      test("knows the client's address: one address gets no more than its share, and leaves nothing behind", async () => {
        const all: Raw[] = [];
        for (let i = 0; i < 4; i++) {
          const client = await raw(server.port);
          all.push(client);
          client.socket.write(get('/watch', 'Accept: text/event-stream'));
          await until(() => client.heard().includes('\r\n\r\n'));
        }
        expect(all.map(({ heard }) => heard().slice(9, 12))).toEqual(['200', '200', '200', '503']);
        expect((await server.ask('/stats')).clients[0]?.address).toBe('127.0.0.1');
        for (const { socket } of all) socket.destroy();
        await until(async () => (await clients()) === 0);
      });

      test.each(transports)('%s: every event once and in order, also for a late client', async (transport) => {
        const before = (await server.ask('/stats')).version;
        const from = Number(before.slice(2));
        const options = { WebSocket: WebSocket as unknown as WebSocketConstructor, resourceVersion: before } as const;
        const watch = connect<Numbered>(`${server.url}/watch`, { ...options, transport: transport as 'http' });
        const published = server.ask(`/publish?from=${from}&to=${from + 2_000}&bytes=1000`);
        const read = async (events: AsyncIterable<ClientEvent<Numbered>>): Promise<void> => {
          let next = from;
          for await (const { object } of events) {
            expect(object).toMatchObject({ i: next++ });
            if (next === from + 2_000) break;
          }
        };
        await read(watch);
        await published;
        await read(connect<Numbered>(`${server.url}/watch`, { ...options, transport: transport as 'http' }));
        await until(async () => (await clients()) === 0);
      });

      test.each(transports)(
        '%s: a reader that pauses delays the publisher, and gets everything when it continues',
        async (transport) => {
          const waiting = await start({ overflow: 'wait' });
          const { socket, heard } = await stalled(waiting, transport);
          let done = false;
          const published = waiting.ask(`/publish?to=${MANY}&bytes=10000`).then(() => {
            done = true;
          });
          let held: Stats['clients'][0] | undefined;
          await until(async () => {
            held = (await waiting.ask('/stats')).clients[0];
            return held !== undefined && held.queued >= 100 && held.bufferedBytes > MEGABYTE / 2;
          });
          expect(done).toBe(false);
          expect(held?.bufferedBytes).toBeLessThanOrEqual(MEGABYTE + SLICE_BYTES + 40_000);
          socket.resume();
          await published;
          await until(() => heard().includes(`"i":${MANY - 1},`));
          expect(heard().match(/"i":\d+,/g)).toEqual(Array.from({ length: MANY }, (_, i) => `"i":${i},`));
          waiting.started.child.kill('SIGKILL');
        },
      );

      test.each(transports)('%s: a reader that has stopped for good is cut', async (transport) => {
        const strict = await start({ overflow: 'drop-oldest', connection: { stallTimeoutMs: 400 } });
        const { socket } = await stalled(strict, transport);
        await strict.ask(`/publish?to=${MANY}&bytes=10000`);
        await until(async () => (await strict.ask('/stats')).clients.length === 0);
        expect((await strict.ask('/stats')).total).toMatchObject({ clients: 1, cuts: { stalled: 1 } });
        socket.destroy();
        strict.started.child.kill('SIGKILL');
      });

      if (host === 'node') {
        test('websocket: a token may come as a subprotocol, and is not echoed', async () => {
          const bearer = 'base64url.bearer.authorization.k8s.io.bWU';
          const client = await raw(server.port);
          client.socket.write(upgrade('/watch', `Sec-WebSocket-Protocol: watchmux, ${bearer}`));
          await until(() => client.heard().includes('\r\n\r\n'));
          expect(client.heard()).toMatch(/^HTTP\/1.1 101 .*Sec-WebSocket-Protocol: watchmux\r\n/is);
          expect(client.heard()).not.toContain(bearer);
          expect((await server.ask('/stats')).clients).toMatchObject([{ identity: 'Bearer me' }]);
          client.socket.destroy();
          await until(async () => (await clients()) === 0);
        });

        test('websocket: a client that sends messages without end is cut, and others stay', async () => {
          const strict = await start({});
          const [loud, quiet] = [await raw(strict.port), await raw(strict.port)];
          for (const { socket, heard } of [quiet, loud]) {
            socket.write(REQUESTS.websocket as string);
            await until(() => heard().includes('\r\n\r\n'));
          }
          const message = Buffer.from([0x81, 0x81, 0, 0, 0, 0, 0x61]);
          loud.socket.write(Buffer.concat(Array.from({ length: 9_000 }, () => message)));
          await loud.ended;
          await until(async () => (await strict.ask('/stats')).clients.length === 1);
          expect((await strict.ask('/stats')).total).toMatchObject({ clients: 2, cuts: { flooding: 1 } });
          quiet.socket.destroy();
          strict.started.child.kill('SIGKILL');
        });
      }

      test('requests that are pipelined behind a watch hold nothing once the connection has closed', async () => {
        const own = await start({});
        const client = await raw(own.port);
        client.socket.write(get('/watch') + get('/watch').repeat(1_000));
        await Promise.race([client.ended, until(() => client.heard().includes('200 OK'))]);
        client.socket.end();
        await until(async () => (await own.ask('/stats')).clients.length === 0);
        client.socket.destroy();
        own.started.child.kill('SIGKILL');
      });

      // Others have no such limit.
      if (runtime.name === 'Bun' && host === 'own') {
        test('a quiet watch is not closed as idle', async () => {
          const quiet = await raw(server.port);
          quiet.socket.write(REQUESTS.http as string);
          await until(() => quiet.heard().includes('\r\n\r\n'));
          const idle = await raw(server.port);
          idle.socket.write(get('/silent'));
          await idle.ended;
          expect(await clients()).toBe(1);
          quiet.socket.destroy();
          await until(async () => (await clients()) === 0);
        });
      }

      test('tells all clients when it goes away', async () => {
        const source = await raw(server.port);
        source.socket.write(REQUESTS.sse as string);
        await until(() => source.heard().includes('\n\n'));
        await server.ask('/shutdown');
        await until(() => /retry: \d+\n\n\r\n(0\r\n\r\n)?$/.test(source.heard()));
        expect(JSON.parse(await text(`${server.url}/watch`))).toMatchObject({ kind: 'Status', code: 503 });
      });
    });

    describe.each(['own', 'hono'])('an API server behind its own server, with Hono or without: %s', (how) => {
      const ORDERS = '/apis/example.com/v1/namespaces/default/orders';
      const headers = { 'content-type': 'application/json' };
      const startObjects = (settings: object = {}): Promise<Serving> =>
        serving(runtime.start('test/runtimes/serve-objects.mjs', how, JSON.stringify(settings)));
      const create = (server: Serving, name: string, spec: object = {}): Promise<Response> =>
        fetch(server.url + ORDERS, {
          ...{ method: 'POST', headers },
          body: JSON.stringify({ apiVersion: 'example.com/v1', kind: 'Order', metadata: { name }, spec }),
        });
      /** Opens a watch over a bare connection, and waits for its head. */
      const watching = async (server: Serving, ...more: string[]): Promise<Raw> => {
        const client = await raw(server.port);
        client.socket.write(get(`${ORDERS}?watch=1`, ...more));
        await until(() => client.heard().includes('\r\n\r\n'));
        return client;
      };
      const watchers = async (server: Serving): Promise<number> =>
        Number(/^watchmux_apiserver_watchers (\d+)$/m.exec(await text(`${server.url}/metrics`))?.[1]);

      test('lists, watches and writes, as everywhere; a long list and a large object come whole', async () => {
        const server = await startObjects();
        const watch = await watching(server);
        const events = await watching(server, 'Accept: text/event-stream');
        expect((await create(server, 'a', { count: 1 })).status).toBe(201);
        expect((await create(server, 'a')).status).toBe(409);
        const patch = {
          method: 'PATCH',
          headers: { 'content-type': 'application/merge-patch+json' },
          body: '{"spec":{"count":2}}',
        };
        expect(await (await fetch(`${server.url}${ORDERS}/a`, patch)).json()).toMatchObject({ spec: { count: 2 } });
        expect((await fetch(`${server.url}${ORDERS}/a`, { method: 'DELETE' })).status).toBe(200);
        for (const { heard } of [watch, events]) await until(() => heard().includes('"DELETED"'));
        expect(watch.heard().match(/"type":"\w+"/g)).toEqual(['"type":"ADDED"', '"type":"MODIFIED"', '"type":"DELETED"']);
        const note = 'x'.repeat(200_000);
        for (let at = 0; at < 20; at++) expect((await create(server, `b${at}`, { note })).status).toBe(201);
        const list = (await (await fetch(server.url + ORDERS)).json()) as { items: { spec: { note: string } }[] };
        expect(list.items.filter(({ spec }) => spec.note === note)).toHaveLength(20);
        for (const { socket } of [watch, events]) socket.destroy();
        await until(async () => (await watchers(server)) === 0);
        server.started.child.kill('SIGKILL');
      });

      test.each([
        [400, `${ORDERS}?labelSelector=a%20in%20(b`, {}],
        [401, ORDERS, { authorization: 'unknown' }],
        [403, ORDERS, { authorization: 'banned' }],
        [403, ORDERS, { origin: 'http://evil.example' }],
        [404, '/nothing', {}],
        [405, ORDERS, { method: 'PUT' }],
        [413, ORDERS, { method: 'POST', body: JSON.stringify({ note: 'x'.repeat(20_000) }), ...headers }],
        [414, `${ORDERS}?${'x'.repeat(2_000)}`, {}],
      ])(
        'refuses with %i: %s %j',
        async (code, path, { method = 'GET', body = null, ...more }: Record<string, string | null>) => {
          shared ??= startObjects({ maxBodyBytes: 10_000, maxUrlBytes: 1_000, maxWatchersPerAddress: 2 });
          const init = { method, body, headers: { ...more, connection: 'close' } } as RequestInit;
          const response = await fetch(`${(await shared).url}${path}`, init);
          expect([response.status, await response.json()]).toMatchObject([code, { kind: 'Status', code }]);
        },
      );
      let shared: Promise<Serving> | undefined;

      test("knows the client's address: one gets no more than its share, and leaves nothing behind", async () => {
        const server = await startObjects({ maxWatchersPerAddress: 2 });
        const all = [await watching(server), await watching(server), await watching(server)];
        expect(all.map(({ heard }) => heard().slice(9, 12))).toEqual(['200', '200', '429']);
        for (const { socket } of all) socket.destroy();
        await until(async () => (await watchers(server)) === 0);
        server.started.child.kill('SIGKILL');
      });

      test('a reader that has stopped for good is cut', async () => {
        const server = await startObjects({ stallTimeoutMs: 400 });
        const { socket } = await watching(server);
        socket.pause();
        const note = 'x'.repeat(500_000);
        const stalls = async (): Promise<boolean> =>
          /^watchmux_apiserver_watchers_stalled_total 1$/m.test(await text(`${server.url}/metrics`));
        for (let at = 0; at < 60 && !(await stalls()); at++) expect((await create(server, `a${at}`, { note })).status).toBe(201);
        await until(stalls);
        socket.destroy();
        server.started.child.kill('SIGKILL');
      });

      test('a shutdown ends its watches, and refuses what comes', async () => {
        const server = await startObjects();
        const watch = await watching(server);
        expect(await text(`${server.url}/shutdown`)).toBe('down');
        await until(() => watch.heard().endsWith('0\r\n\r\n'));
        expect(JSON.parse(await text(server.url + ORDERS))).toMatchObject({ kind: 'Status', code: 503 });
        watch.socket.destroy();
        server.started.child.kill('SIGKILL');
      });
    });

    test.each(['http', 'sse', 'websocket', 'ws'])('a client over %s resumes, however often it is cut off', async (kind) => {
      const hub = new Hub<Numbered>({ epoch: 'e', replayItems: 10_000 });
      const options = { authenticate: ({ headers }: IncomingMessage) => headers.authorization ?? 'anonymous' };
      const watch = createHttpHandler(hub, options);
      const sockets: Duplex[] = [];
      let asked = (): void => {};
      const whenAsked = new Promise<void>((resolve) => {
        asked = resolve;
      });
      let left = false;
      const keepSilent = (socket: Duplex): void => {
        socket.on('close', () => {
          left = true;
        });
        socket.on('end', () => socket.destroy());
        socket.resume();
        asked();
      };
      const server = createServer((request, response) => {
        if (request.url?.startsWith('/watch')) watch(request, response);
        else if (request.url === '/asked') void whenAsked.then(() => response.end());
        else keepSilent(request.socket);
      });
      attachWebSocket(server, hub, options);
      server.on('upgrade', (request, socket) => void (request.url?.startsWith('/silent') && keepSilent(socket)));
      server.on('connection', (socket) => sockets.push(socket));
      const { url } = await startServer(server);
      const client = runtime.start('test/runtimes/client.mjs', url, kind, '600');
      await until(() => left || client.child.exitCode !== null);
      for (let i = 0; i < 600; i++) {
        await hub.publish({ type: 'ADDED', object: { i } });
        if (i % 200 !== 100) continue;
        await until(() => hub.stats().clients.length === 1 || client.child.exitCode !== null);
        expect(hub.stats().clients[0]).toMatchObject({ identity: 'Bearer me' });
        for (const socket of sockets.splice(0)) socket.destroy();
      }
      const [code, out] = await client.ended;
      expect([code, out]).toEqual([0, '{"done":true,"inOrder":true,"dropped":0,"state":"closed"}\n']);
    });

    test('the command line: watch gets everything that pipe serves, and both end', async () => {
      const pipe = runtime.start('dist/cli/main.js', 'pipe', '--port', '0', '--window', '10000');
      await until(() => pipe.out().includes('\n') || pipe.child.exitCode !== null);
      const url = pipe.out().trim().split(' ').at(-1) as string;
      const watches = ['http', 'sse', 'websocket'].map((kind) =>
        runtime.start('dist/cli/main.js', 'watch', url, '--transport', kind),
      );
      await until(async () => (JSON.parse(await text(`${url}/stats`)) as Stats).clients.length === 3);
      const lines = Array.from({ length: 2_000 }, (_, i) => `{"type":"n","object":${i}}\n`);
      pipe.child.stdin.end(lines.join(''));
      const ends = await Promise.all([pipe, ...watches].map(({ ended }) => ended));
      for (const [code, out] of ends) expect([code, code === 0 ? '' : out]).toEqual([0, '']);
      for (const [, out] of ends.slice(1)) expect(out.replace(/,"resourceVersion":"[^"]+"/g, '')).toBe(lines.join(''));
    });

    test('the command line exits at a signal even if its input does not end', async () => {
      const pipe = runtime.start('dist/cli/main.js', 'pipe', '--port', '0');
      await until(() => pipe.out().includes('\n') || pipe.child.exitCode !== null);
      pipe.child.kill('SIGTERM');
      expect((await pipe.ended)[0]).toBe(0);
    });
  });
}
