// A hub in a separate process, whose clients are cut off and which is killed. It answers requests over IPC. SIGTERM ends it as a
// server should end: clients are told to reconnect, and then nothing keeps the process alive.
import type { Server } from 'node:http';
import { createServer } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { createHttpHandler, Hub } from '../../../src/bridge/http.ts';
import { attachWebSocket } from '../../../src/bridge/websocket.ts';
import type { WatchEvent } from '../../../src/watch/event.ts';
import { answer } from './peer.ts';
import type { Tick } from './tick.ts';
import { now } from './tick.ts';

/** Options of the server. */
export interface Listen {
  /** Default: a free one. */
  readonly port?: number;
  readonly replayItems?: number;
  /** The number of the first event. */
  readonly first?: number;
  /** Serves a snapshot: these objects, and what was published since. */
  readonly state?: readonly unknown[];
  /** When it is told to end, clients reconnect within this time... */
  readonly retryAfterMs?: number;
  /** ...after this share of it, or each after its own. */
  readonly spread?: number;
  /** Time limit for clients to take their queues; others are cut. */
  readonly drainMs?: number;
}

/** Its URL, and the version before the first event. */
export interface Listening {
  readonly url: string;
  readonly port: number;
  readonly version: string;
}

export interface Broadcasts {
  readonly count: number;
  readonly perSecond: number;
  /** Approximate size of an event on the wire. */
  readonly eventBytes: number;
}

export interface Memory {
  readonly rss: number;
  readonly heapUsed: number;
}

/** The events: ticks, and the objects of the initial state. */
type Told = Tick | WatchEvent<'ADDED'>;

const sockets: Set<Socket> = new Set();
const state: unknown[] = [];
let settings: Listen = {};
let hub: Hub<Told> = new Hub();
let server: Server = createServer();
let sent = 0;
let pouring = false;

async function listen(how: Listen): Promise<Listening> {
  settings = how;
  const { port = 0, replayItems, first = 1, spread } = how;
  sent = first - 1;
  state.push(...(how.state ?? []));
  hub = new Hub<Told>({
    replayItems,
    // All clients have the same address.
    maxClientsPerAddress: 20_000,
    maxClients: 20_000,
    ...(how.state === undefined ? {} : { snapshot: () => [...state] }),
    ...(spread === undefined ? {} : { random: () => spread }),
  });
  server = createServer(createHttpHandler(hub));
  attachWebSocket(server, hub);
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen({ port, host: '127.0.0.1', backlog: 4_096 }, resolve);
  });
  const listening = (server.address() as AddressInfo).port;
  return { url: `http://127.0.0.1:${listening}/watch`, port: listening, version: hub.version };
}

function tick(filler: string): Tick {
  const object = { n: ++sent, at: now(), filler };
  if (settings.state !== undefined) state.push(object);
  return { type: 'MODIFIED', object };
}

/** Publishes events at once. Returns the version of the last one. */
async function publish({ count, bytes = 0 }: { count: number; bytes?: number }): Promise<string> {
  const filler = 'x'.repeat(bytes);
  for (let i = 0; i < count; i++) await hub.publish(tick(filler));
  return hub.version;
}

/** Publishes events at a fixed rate. Catches up if a timer is late. */
async function broadcast({ count, perSecond, eventBytes }: Broadcasts): Promise<string> {
  const filler = 'x'.repeat(Math.max(0, eventBytes - BARE_BYTES));
  const began = performance.now();
  for (let i = 0; i < count; i++) {
    const due = began + (i * 1_000) / perSecond;
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, due - performance.now())));
    await hub.publish(tick(filler));
  }
  return hub.version;
}

/** Size of an event without filler: names, a number, a time, and a version. */
const BARE_BYTES = 130;

/** Publishes about one event per millisecond, until `stop` or the maximum. */
function pour({ most }: { most: number }): void {
  pouring = true;
  let left = most;
  const one = (): void => {
    if (!pouring || left-- <= 0) return;
    hub.tryPublish(tick(''));
    setTimeout(one, 1);
  };
  one();
}

function stop(): string {
  pouring = false;
  return hub.version;
}

async function memory(): Promise<Memory> {
  for (let i = 0; i < 4; i++) {
    globalThis.gc?.();
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  const { rss, heapUsed } = process.memoryUsage();
  return { rss, heapUsed };
}

/** Breaks all connections without a close. Nobody receives what is published in the same step. */
async function cut({ count = 0 }: { count?: number }): Promise<string> {
  for (const socket of sockets) socket.destroy();
  return publish({ count });
}

const release = answer({
  listen,
  publish,
  broadcast,
  pour,
  stop,
  memory,
  cut,
  version: () => hub.version,
  stats: () => hub.stats(),
});

process.once('SIGTERM', () => {
  const { retryAfterMs = 1_000, drainMs = 1_000 } = settings;
  pouring = false;
  // Nobody is admitted any more, and then all clients leave.
  server.close();
  const deadline = new AbortController();
  const timer = setTimeout(() => deadline.abort(), drainMs);
  void hub.shutdown({ retryAfterMs, signal: deadline.signal }).then(() => {
    clearTimeout(timer);
    release();
  });
});
