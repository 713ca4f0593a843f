// Contenders whose clients are in rooms. A room is a namespace of the events.
import { createServer, type IncomingMessage } from 'node:http';
import { type WebSocket, WebSocketServer } from 'ws';
import { Hub } from '../../src/bridge/http.ts';
import { attachWebSocket } from '../../src/bridge/websocket.ts';
import type { WatchEvent } from '../../src/watch/event.ts';
import type { BridgeContender, Sender } from './contenders.ts';
import { toJson, versioned, WEEK_MS } from './contenders.ts';

export const IN_ROOMS: readonly BridgeContender[] = [
  { name: 'watchmux', queue: 'bounded', protocol: 'websocket', start: ours },
  { name: 'ws.send loop', queue: 'unbounded', protocol: 'websocket', start: wsLoop },
  { name: 'Socket.IO', queue: 'unbounded', protocol: 'socket.io', start: socketIo },
];

type InRoom = WatchEvent<string, { readonly metadata: { readonly namespace: string } }>;

const roomOf = (event: WatchEvent): string => (event as InRoom).object.metadata.namespace;
const askedRoom = ({ url = '' }: IncomingMessage): string => new URLSearchParams(url.slice(url.indexOf('?'))).get('room') ?? '';

function ours(): Sender {
  const hub = new Hub({
    epoch: '0123456789abcdef',
    maxClientsPerAddress: 10_000,
    bookmarkIntervalMs: WEEK_MS,
    topicsOf: roomOf,
  });
  const server = createServer();
  attachWebSocket(server, hub, { heartbeatMs: WEEK_MS, watchOptions: (request) => ({ topics: [askedRoom(request)] }) });
  return {
    server,
    send: (events) => {
      for (const event of events) hub.tryPublish(event);
    },
  };
}

/** `to(room).emit`, as its documentation shows it. */
async function socketIo(): Promise<Sender> {
  const { Server } = await import('socket.io');
  const server = createServer();
  const io = new Server(server, { transports: ['websocket'], serveClient: false, pingInterval: WEEK_MS });
  io.on('connection', (socket) => socket.join(String(socket.handshake.query.room)));
  return {
    server,
    send: (events) => {
      for (const event of events) io.to(roomOf(event)).emit('event', versioned(event));
    },
    waits: () => Object.values(io.engine.clients).some(({ writeBuffer }) => writeBuffer.length > 0),
  };
}

/** The usual code: a set of sockets per room, and each event is encoded once. */
function wsLoop(): Sender {
  const server = createServer();
  const rooms = new Map<string, Set<WebSocket>>();
  new WebSocketServer({ server, perMessageDeflate: false }).on('connection', (client, request) => {
    const room = askedRoom(request);
    const members = rooms.get(room) ?? new Set();
    rooms.set(room, members.add(client));
    client.on('close', () => members.delete(client));
  });
  return {
    server,
    send: (events) => {
      for (const event of events) {
        const text = toJson(event);
        for (const client of rooms.get(roomOf(event)) ?? []) client.send(text);
      }
    },
  };
}
