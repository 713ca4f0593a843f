// A hub on a server on which others, too, answer upgrade requests.
import type { IncomingMessage, Server } from 'node:http';
import { createServer } from 'node:http';
import type { Duplex } from 'node:stream';
import { afterAll, expect, test, vi } from 'vitest';
import { WebSocket, WebSocketServer } from 'ws';
import { Hub } from '../../src/bridge/http.ts';
import { attachWebSocket } from '../../src/bridge/websocket.ts';
import { until, webSocket } from './cli.ts';
import { closeAll, start } from './servers.ts';

afterAll(closeAll);

type Attach = (server: Server) => void;

/** A listener with a `ws` server of its own for /theirs, and something else for all other paths. */
function listening(others: (sockets: WebSocketServer, request: IncomingMessage, socket: Duplex) => void): Attach {
  return (server) => {
    const sockets = new WebSocketServer({ noServer: true });
    server.on('upgrade', (request, socket, head) => {
      if (request.url === '/theirs') sockets.handleUpgrade(request, socket, head, () => {});
      else others(sockets, request, socket);
    });
  };
}

const OTHERS: readonly [string, Attach][] = [
  [
    'a ws server that was given the server, as with graphql-ws',
    (server) => void new WebSocketServer({ server, path: '/theirs' }),
  ],
  ['a listener that destroys what is not for it, as those of NestJS', listening((_, __, socket) => void socket.destroy())],
  [
    'a listener that opens everything, to close what has no route, as that of Fastify',
    listening((sockets, request, socket) => {
      sockets.handleUpgrade(request, socket, Buffer.alloc(0), (client) => client.close());
    }),
  ],
];

const open = (url: string): Promise<string> =>
  new Promise((resolve) => {
    const client = new WebSocket(url);
    client.on('open', () => resolve('open')).on('error', ({ message }) => resolve(message));
  });

test.each(
  OTHERS.flatMap(([name, attach]) => [[`before ${name}`, attach, true] as const, [`after ${name}`, attach, false] as const]),
)('both answer at their paths: attached %s', async (_name, attach, isFirst) => {
  const hub = new Hub({ epoch: 'e' });
  const server = createServer();
  if (!isFirst) attach(server);
  let admit = (): void => {};
  // An answer that takes longer than a turn.
  const admitted = new Promise<true>((resolve) => {
    admit = () => resolve(true);
  });
  const detach = attachWebSocket(server, hub, { authenticate: () => admitted });
  if (isFirst) attach(server);
  const { url } = await start(server);
  const theirs = url.replace('http', 'ws');
  const client = webSocket(url);
  expect(await open(`${theirs}/theirs`)).toBe('open');
  admit();
  const { ended, versions } = await client;
  await until(() => hub.stats().clients.length === 1);
  await hub.publish({ type: 'ADDED', object: 1 });
  await hub.shutdown();
  expect(await ended).toBe('1000');
  expect(versions()).toEqual(['e.1']);
  detach();
  expect(Object.hasOwn(server, 'emit')).toBe(false);
  expect(await open(`${theirs}/theirs`)).toBe('open');
});

test('detached while somebody else has wrapped `emit`: theirs stays, and every request is for the others', async () => {
  const server = createServer();
  const detach = attachWebSocket(server, new Hub());
  const emit: (name: string, ...rest: unknown[]) => boolean = server.emit;
  const seen: string[] = [];
  server.emit = ((name: string, ...rest: unknown[]) => {
    seen.push(name);
    return emit.call(server, name, ...rest);
  }) as Server['emit'];
  detach();
  server.on('upgrade', (_request, socket) => socket.end('HTTP/1.1 418 Theirs\r\n\r\n'));
  const { url } = await start(server);
  expect(await open(`${url.replace('http', 'ws')}/watch`)).toContain('418');
  expect(seen).toContain('upgrade');
});

test('two copies of this package on one server: what neither accepts is refused, once', async () => {
  vi.resetModules();
  const other = await import('../../src/bridge/websocket.ts');
  expect(other.attachWebSocket).not.toBe(attachWebSocket);
  const server = createServer();
  const detach = attachWebSocket(server, new Hub(), { path: '/ours' });
  other.attachWebSocket(server, new other.Hub(), { path: '/also' });
  const { url } = await start(server);
  const path = (name: string): Promise<string> => open(`${url.replace('http', 'ws')}/${name}`);
  expect(await Promise.all(['ours', 'also', 'nobodys'].map(path))).toEqual(['open', 'open', expect.stringContaining('404')]);
  detach();
  expect(await Promise.all(['ours', 'also'].map(path))).toEqual([expect.stringContaining('404'), 'open']);
});
