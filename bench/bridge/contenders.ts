import type { Server, ServerResponse } from 'node:http';
import { createServer } from 'node:http';
import type { Duplex } from 'node:stream';
import { constants, deflateRawSync } from 'node:zlib';
import { WebSocketServer } from 'ws';
import { createHttpHandler, Hub } from '../../src/bridge/http.ts';
import { attachWebSocket } from '../../src/bridge/websocket.ts';
import type { WatchEvent } from '../../src/watch/event.ts';
import type { Entry } from '../workload.ts';
import type { Protocol } from './protocols.ts';

/** A running way to send events to many clients. */
export interface Sender {
  readonly server: Server;
  /** Sends events to all clients, as users of the host would. The caller may continue at once. */
  send(events: readonly WatchEvent[]): void;
  /** Whether something waits before it reaches the sockets. Absent if that is impossible. */
  waits?(): boolean;
}

/** A contender. */
export interface BridgeContender extends Entry {
  readonly protocol: Protocol;
  /** Loads its package only now, because each contender has its own process. */
  start(): Promise<Sender> | Sender;
}

export type Transport = 'websocket' | 'permessage-deflate' | 'sse' | 'http';

/** Longer than any run. */
const WEEK_MS = 604_800_000;

const contender = (name: string, protocol: Protocol, start: BridgeContender['start']): BridgeContender => ({
  name,
  queue: name === 'watchmux' ? 'bounded' : 'unbounded',
  protocol,
  start,
});

/** All contenders. The first one of each transport is the control: only the bytes. */
export const CONTENDERS: Readonly<Record<Transport, readonly BridgeContender[]>> = {
  websocket: [
    contender('socket.write', 'websocket', () => rawFrames(false)),
    contender('watchmux', 'websocket', () => ours()),
    contender('ws.send loop', 'websocket', () => wsLoop(false)),
    contender('Socket.IO', 'socket.io', socketIo),
  ],
  'permessage-deflate': [
    contender('socket.write', 'permessage-deflate', () => rawFrames(true)),
    contender('watchmux', 'permessage-deflate', () => ours(true)),
    contender('ws.send loop', 'permessage-deflate', () => wsLoop(true)),
    contender('ws.send loop, uncompressed', 'websocket', () => wsLoop(false)),
  ],
  sse: [
    contender('socket.write', 'sse', () => rawChunks('text/event-stream', toRecord)),
    contender('watchmux', 'sse', () => ours()),
    contender('res.write loop', 'sse', () => resWrite('text/event-stream', toRecord)),
    contender('better-sse', 'sse', betterSse),
    contender('better-sse batch', 'sse', betterSseBatch),
  ],
  http: [
    contender('socket.write', 'http', () => rawChunks('application/json', toLine)),
    contender('watchmux', 'http', () => ours()),
    contender('res.write loop', 'http', () => resWrite('application/json', toLine)),
  ],
};

/** The JSON that watchmux sends, created once, so that all send the same. */
let sequence = 0;
const version = (): string => `0123456789abcdef.${++sequence}`;
const toJson = (event: WatchEvent): string => `${JSON.stringify(event).slice(0, -1)},"resourceVersion":"${version()}"}`;
const toLine = (event: WatchEvent): string => `${toJson(event)}\n`;
const toRecord = (event: WatchEvent): string => {
  const json = toJson(event);
  return `id: 0123456789abcdef.${sequence}\ndata: ${json}\n\n`;
};

function ours(compression: boolean = false): Sender {
  // All clients come from one address. A BOOKMARK or an id without an event would be bytes that the load does not expect.
  const hub = new Hub({ epoch: '0123456789abcdef', maxClientsPerAddress: 10_000, bookmarkIntervalMs: WEEK_MS });
  const server = createServer(createHttpHandler(hub));
  // The load answers no ping.
  attachWebSocket(server, hub, { heartbeatMs: WEEK_MS, compression });
  return {
    server,
    send: (events) => {
      for (const event of events) hub.tryPublish(event);
    },
  };
}

/** Its `emit` to all: encoded and framed once, queued and sent per client. */
async function socketIo(): Promise<Sender> {
  const { Server } = await import('socket.io');
  const server = createServer();
  // The load answers no ping.
  const io = new Server(server, { transports: ['websocket'], serveClient: false, pingInterval: WEEK_MS });
  return {
    server,
    send: (events) => {
      for (const event of events) io.emit('event', { ...event, resourceVersion: version() });
    },
    waits: () => Object.values(io.engine.clients).some(({ writeBuffer }) => writeBuffer.length > 0),
  };
}

type BetterSse = typeof import('better-sse');

/** A channel, and a server whose clients join it. */
function channelOf({ createChannel, createSession }: BetterSse): {
  channel: ReturnType<BetterSse['createChannel']>;
  server: Server;
} {
  const channel = createChannel();
  const server = createServer((request, response) => {
    void createSession(request, response, { keepAlive: null }).then((session) => channel.register(session));
  });
  return { channel, server };
}

/** Its broadcast, which encodes and writes per client and event. */
async function betterSse(): Promise<Sender> {
  const { channel, server } = channelOf(await import('better-sse'));
  return {
    server,
    send: (events) => {
      for (const event of events) {
        const resourceVersion = version();
        channel.broadcast({ ...event, resourceVersion }, 'message', { eventId: resourceVersion });
      }
    },
  };
}

/** Its batch, which is encoded once, with one write per client. The host decides what belongs to a batch. */
async function betterSseBatch(): Promise<Sender> {
  const betterSse = await import('better-sse');
  const { channel, server } = channelOf(betterSse);
  return {
    server,
    send: (events) => {
      const buffer = betterSse.createEventBuffer();
      for (const event of events) {
        const resourceVersion = version();
        buffer.push({ ...event, resourceVersion }, 'message', resourceVersion);
      }
      for (const session of channel.activeSessions) void session.batch(buffer);
    },
  };
}

/** What everybody writes: the text made once, a `send` per client and event. ws compresses in each of them. */
function wsLoop(perMessageDeflate: boolean): Sender {
  const server = createServer();
  const sockets = new WebSocketServer({ server, perMessageDeflate });
  return {
    server,
    send: (events) => {
      for (const event of events) {
        const text = toJson(event);
        for (const client of sockets.clients) client.send(text);
      }
    },
    // What is being compressed.
    waits: () => perMessageDeflate && [...sockets.clients].some(({ bufferedAmount }) => bufferedAmount > 0),
  };
}

/** The control: frames built and joined once, one write per client to the socket, nothing else. */
function rawFrames(perMessageDeflate: boolean): Sender {
  const server = createServer();
  const sockets = new WebSocketServer({ noServer: true, perMessageDeflate, clientTracking: false });
  const raw = new Set<Duplex>();
  server.on('upgrade', (request, socket, head) => {
    sockets.handleUpgrade(request, socket, head, (client) => {
      raw.add(socket);
      client.on('close', () => raw.delete(socket));
    });
  });
  return {
    server,
    send: (events) => {
      const bytes = Buffer.concat(events.map((event) => frame(toJson(event), perMessageDeflate)));
      for (const socket of raw) socket.write(bytes);
    },
  };
}

function frame(text: string, deflate: boolean): Buffer {
  const payload = deflate ? deflateRawSync(text, { finishFlush: constants.Z_SYNC_FLUSH }).subarray(0, -4) : Buffer.from(text);
  const first = deflate ? 0xc1 : 0x81;
  if (payload.length < 126) return Buffer.concat([Buffer.from([first, payload.length]), payload]);
  const head = Buffer.from([first, 126, payload.length >> 8, payload.length & 255]);
  return Buffer.concat([head, payload]);
}

/** The control over HTTP: one chunk, built and joined once, one write to each client's socket. */
function rawChunks(type: string, toText: (event: WatchEvent) => string): Sender {
  const raw = new Set<Duplex>();
  const server = createServer((_request, response) => {
    response.writeHead(200, { 'content-type': type, 'cache-control': 'no-store' });
    response.flushHeaders();
    const { socket } = response;
    if (socket === null) return;
    raw.add(socket);
    response.on('close', () => raw.delete(socket));
  });
  return {
    server,
    send: (events) => {
      const body = Buffer.from(events.map(toText).join(''));
      const bytes = Buffer.concat([Buffer.from(`${body.length.toString(16)}\r\n`), body, Buffer.from('\r\n')]);
      for (const socket of raw) socket.write(bytes);
    },
  };
}

/** The usual code over HTTP: one `write` per client and event. */
function resWrite(type: string, toText: (event: WatchEvent) => string): Sender {
  const responses = new Set<ServerResponse>();
  const server = createServer((_request, response) => {
    response.writeHead(200, { 'content-type': type, 'cache-control': 'no-store' });
    response.flushHeaders();
    responses.add(response);
    response.on('close', () => responses.delete(response));
  });
  return {
    server,
    send: (events) => {
      for (const event of events) {
        const text = toText(event);
        for (const response of responses) response.write(text);
      }
    },
  };
}
