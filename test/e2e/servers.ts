// Servers for the end-to-end tests: a hub on every transport, and raw sockets to connect to it.
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { createServer } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { connect } from 'node:net';
import { createFetchHandler } from '../../src/bridge/fetch.ts';
import type { HttpOptions } from '../../src/bridge/http.ts';
import { createHttpHandler } from '../../src/bridge/http.ts';
import type { Hub } from '../../src/bridge/hub/hub.ts';
import type { WebSocketOptions } from '../../src/bridge/websocket.ts';
import { attachWebSocket } from '../../src/bridge/websocket.ts';
import { close, listen } from '../../src/cli/server/server.ts';

const servers: Set<Server> = new Set();
const sockets: Set<Socket> = new Set();

/** For afterAll: closes everything. */
export async function closeAll(): Promise<void> {
  for (const socket of sockets) socket.destroy();
  await Promise.all(Array.from(servers, close));
  servers.clear();
}

export interface Served {
  readonly server: Server;
  readonly url: string;
  readonly port: number;
}

export async function start(server: Server): Promise<Served> {
  servers.add(server);
  const url = await listen(server, { host: '127.0.0.1', port: 0 });
  return { server, url, port: (server.address() as AddressInfo).port };
}

/** Serves a hub over WebSocket, HTTP and SSE. */
export function serve(hub: Hub, options: HttpOptions & WebSocketOptions = {}): Promise<Served> {
  const { headers, path, compression, heartbeatMs, maxInboundBytes, ...more } = options;
  const { maxInboundBytesPerSecond, maxInboundMessagesPerSecond, ...common } = more;
  const server = createServer(createHttpHandler(hub, { ...common, headers }));
  const perSecond = { maxInboundBytesPerSecond, maxInboundMessagesPerSecond };
  attachWebSocket(server, hub, { ...common, ...perSecond, path, compression, heartbeatMs, maxInboundBytes });
  return start(server);
}

/** Serves a hub with `watchmux/fetch`, in a host like those of others: it converts Node's requests to web requests and back. */
export function serveFetch(hub: Hub, options: Parameters<typeof createFetchHandler>[1] = {}): Promise<Served> {
  const handler = createFetchHandler(hub, options);
  return start(createServer((request, response) => void answer(handler, request, response)));
}

async function answer(
  handler: ReturnType<typeof createFetchHandler>,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const gone = new AbortController();
  response.on('close', () => gone.abort());
  const headers = Object.entries(request.headers).map(([name, value]): [string, string] => [name, String(value)]);
  const { method = 'GET', url = '/' } = request;
  const said = await handler(
    new Request(new URL(url, `http://${request.headers.host}`), { method, headers, signal: gone.signal }),
  );
  response.writeHead(said.status, Object.fromEntries(said.headers));
  response.flushHeaders();
  const reader = said.body?.getReader();
  try {
    for (let read = await reader?.read(); read?.done === false; read = await reader?.read()) {
      if (response.write(read.value)) continue;
      await new Promise<void>((resolve) => {
        response.once('drain', resolve);
        response.once('close', resolve);
      });
    }
    response.end();
  } catch {
    response.destroy();
  }
}

export interface Raw {
  readonly socket: Socket;
  readonly heard: () => string;
  /** Resolves when the other side has closed or reset the connection. */
  readonly ended: Promise<void>;
}

/** Opens a connection that never closes on its own, and collects what it receives. */
export async function raw(port: number): Promise<Raw> {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  let heard = '';
  socket.on('data', (data) => {
    heard += data.toString('latin1');
  });
  socket.on('error', () => {});
  const ended = new Promise<void>((resolve) => socket.once('end', resolve).once('close', resolve));
  sockets.add(socket);
  socket.once('close', () => sockets.delete(socket));
  await new Promise((resolve) => socket.once('connect', resolve));
  return { socket, heard: () => heard, ended };
}

export const get = (path: string, ...headers: string[]): string =>
  [`GET ${path} HTTP/1.1`, 'Host: 127.0.0.1', ...headers, '', ''].join('\r\n');

export const upgrade = (path: string, ...headers: string[]): string =>
  get(
    path,
    'Connection: Upgrade',
    'Upgrade: websocket',
    'Sec-WebSocket-Version: 13',
    'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
    ...headers,
  );

export const connections = (server: Server): Promise<number> =>
  new Promise((resolve) => server.getConnections((_error, count) => resolve(count)));
