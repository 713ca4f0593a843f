// A hub in a process of its own, for those who cut its clients off and kill it. It does what it is told over IPC; SIGTERM
// ends it as a server should end: clients are told to come back, and then nothing is left that could keep the process.
import type { Server } from 'node:http';
import { createServer } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { createHttpHandler, Hub } from '../../../src/bridge/http.ts';
import { attachWebSocket } from '../../../src/bridge/websocket.ts';
import type { WatchEvent } from '../../../src/watch/event.ts';
import { answer } from './peer.ts';
import type { Tick } from './tick.ts';
import { now } from './tick.ts';

/** How to serve. */
export interface Listen {
  /** Default: a free one. */
  readonly port?: number;
  readonly replayItems?: number;
  /** The number of the first event. */
  readonly first?: number;
  /** Serves a snapshot: these, and what was published since. */
  readonly state?: readonly unknown[];
  /** When it is told to end, clients come back spread over so long... */
  readonly retryAfterMs?: number;
  /** ...by this share of it, or each by its own. */
  readonly spread?: number;
  /** Clients that have not taken their queue by then are cut. */
  readonly drainMs?: number;
}

/** Where it serves, and the version before the first event. */
export interface Listening {
  readonly url: string;
  readonly port: number;
  readonly version: string;
}

export interface Broadcasts {
  readonly count: number;
  readonly perSecond: number;
  /** Of one event on the wire, about. */
  readonly eventBytes: number;
}

export interface Memory {
  readonly rss: number;
  readonly heapUsed: number;
}

/** What clients hear: ticks, and of a state whatever it was told to begin with. */
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
    // All of them have one address.
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

/** In one go. Answers the last one's version. */
async function publish({ count, bytes = 0 }: { count: number; bytes?: number }): Promise<string> {
  const filler = 'x'.repeat(bytes);
  for (let i = 0; i < count; i++) await hub.publish(tick(filler));
  return hub.version;
}

/** One after the other, as often as is asked; no later than planned, whatever a timer makes of it. */
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

/** An event without filler: its words, a number, a time, and a version. */
const BARE_BYTES = 130;

/** Publishes about one per millisecond, until `stop` or the end of them. */
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

/** Breaks all connections, without a goodbye; what is published in the same step, nobody is there to hear. */
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
  // Nobody is let in any more, and then everybody goes.
  server.close();
  const deadline = new AbortController();
  const timer = setTimeout(() => deadline.abort(), drainMs);
  void hub.shutdown({ retryAfterMs, signal: deadline.signal }).then(() => {
    clearTimeout(timer);
    release();
  });
});
