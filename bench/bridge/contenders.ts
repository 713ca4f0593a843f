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

/** A running server that sends events to all of its clients. */
export interface Sender {
  readonly server: Server;
  /** Sends events to all clients, as a user of the contender would. Does not wait for them to arrive. */
  send(events: readonly WatchEvent[]): void;
  /** Whether anything is still queued or compressed before it reaches the sockets. Absent if nothing can be. */
  waits?(): boolean;
}

/** A contender. */
export interface BridgeContender extends Entry {
  readonly protocol: Protocol;
  /** Starts the server. Loads its package here, because each contender runs in its own process. */
  start(): Promise<Sender> | Sender;
}

export type Transport = 'websocket' | 'permessage-deflate' | 'sse' | 'http';

/** Longer than any run. */
export const WEEK_MS: number = 604_800_000;

const contender = (name: string, protocol: Protocol, start: BridgeContender['start']): BridgeContender => ({
  name,
  queue: name === 'watchmux' ? 'bounded' : 'unbounded',
  protocol,
  start,
});

/** The contenders of each transport. The first is the control: it writes the same bytes and does nothing else. */
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
    contender('res.write loop', 'sse', () => resWrite('text/event-stream', toRecord, 'for each client')),
    contender('res.write loop, encoding once', 'sse', () => resWrite('text/event-stream', toRecord, 'once')),
    contender('better-sse', 'sse', betterSse),
    contender('better-sse batch', 'sse', betterSseBatch),
  ],
  http: [
    contender('socket.write', 'http', () => rawChunks('application/json', toLine)),
    contender('watchmux', 'http', () => ours()),
    contender('res.write loop', 'http', () => resWrite('application/json', toLine, 'for each client')),
    contender('res.write loop, encoding once', 'http', () => resWrite('application/json', toLine, 'once')),
  ],
};

/** An event with the version that watchmux would give it, so that all contenders send the same text. */
type Versioned = WatchEvent & { readonly resourceVersion: string };

let sequence = 0;
const version = (): string => `0123456789abcdef.${++sequence}`;
export const versioned = (event: WatchEvent): Versioned => ({ ...event, resourceVersion: version() });
export const toJson = (event: WatchEvent): string => JSON.stringify(versioned(event));
const toLine = (event: Versioned): string => `${JSON.stringify(event)}\n`;
const toRecord = (event: Versioned): string => `id: ${event.resourceVersion}\ndata: ${JSON.stringify(event)}\n\n`;

function ours(compression: boolean = false): Sender {
  // All clients have the same address. The load expects neither BOOKMARKs nor ids without an event.
  const hub = new Hub({ epoch: '0123456789abcdef', maxClientsPerAddress: 10_000, bookmarkIntervalMs: WEEK_MS });
  const server = createServer(createHttpHandler(hub));
  // The load does not answer pings.
  attachWebSocket(server, hub, { heartbeatMs: WEEK_MS, compression });
  return {
    server,
    send: (events) => {
      for (const event of events) hub.tryPublish(event);
    },
  };
}

/** `emit` to all clients: encodes and frames each event once, then queues and sends it per client. */
async function socketIo(): Promise<Sender> {
  const { Server } = await import('socket.io');
  const server = createServer();
  // The load does not answer pings.
  const io = new Server(server, { transports: ['websocket'], serveClient: false, pingInterval: WEEK_MS });
  return {
    server,
    send: (events) => {
      for (const event of events) io.emit('event', versioned(event));
    },
    waits: () => Object.values(io.engine.clients).some(({ writeBuffer }) => writeBuffer.length > 0),
  };
}

type BetterSse = typeof import('better-sse');

/** Creates a channel, and a server whose clients join it. */
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

/** `broadcast` of a channel: encodes and writes each event once per client. */
async function betterSse(): Promise<Sender> {
  const { channel, server } = channelOf(await import('better-sse'));
  return {
    server,
    send: (events) => {
      for (const event of events) {
        const data = versioned(event);
        channel.broadcast(data, 'message', { eventId: data.resourceVersion });
      }
    },
  };
}

/** `batch` of a session: the events are encoded once and written with one call per client. The caller chooses the batches. */
async function betterSseBatch(): Promise<Sender> {
  const betterSse = await import('better-sse');
  const { channel, server } = channelOf(betterSse);
  return {
    server,
    send: (events) => {
      const buffer = betterSse.createEventBuffer();
      for (const event of events) {
        const data = versioned(event);
        buffer.push(data, 'message', data.resourceVersion);
      }
      for (const session of channel.activeSessions) void session.batch(buffer);
    },
  };
}

/** The usual code over WebSocket: each event is encoded once, then sent to each client. ws compresses it in every `send`. */
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
    // Messages that are being compressed count as buffered.
    waits: () => perMessageDeflate && [...sockets.clients].some(({ bufferedAmount }) => bufferedAmount > 0),
  };
}

/** The control over WebSocket: builds and joins the frames once, then makes one write per client, directly to its socket. */
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

/** The control over HTTP: builds one chunk once, then makes one write per client, directly to its socket. */
function rawChunks(type: string, toText: (event: Versioned) => string): Sender {
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
      const body = Buffer.from(events.map((event) => toText(versioned(event))).join(''));
      const bytes = Buffer.concat([Buffer.from(`${body.length.toString(16)}\r\n`), body, Buffer.from('\r\n')]);
      for (const socket of raw) socket.write(bytes);
    },
  };
}

/** How often a loop encodes an event: once, or anew for each client. */
type Encoding = 'once' | 'for each client';

/**
 * The usual code over HTTP: one `write` per client and event. It is found in two forms: with the text made before the loop, or as a
 * function that sends an event to one response, which is called for each of them.
 */
function resWrite(type: string, toText: (event: Versioned) => string, encoding: Encoding): Sender {
  const responses = new Set<ServerResponse>();
  const server = createServer((_request, response) => {
    response.writeHead(200, { 'content-type': type, 'cache-control': 'no-store' });
    response.flushHeaders();
    responses.add(response);
    response.on('close', () => responses.delete(response));
  });
  const broadcast: Readonly<Record<Encoding, (event: Versioned) => void>> = {
    once(event) {
      const text = toText(event);
      for (const response of responses) response.write(text);
    },
    'for each client'(event) {
      for (const response of responses) response.write(toText(event));
    },
  };
  return {
    server,
    send: (events) => {
      for (const event of events) broadcast[encoding](versioned(event));
    },
  };
}
