// A network that does its worst, by a seed: bytes come one by one, late or joined, and connections break at any byte, in any way.
// A client that applies what `connect` delivers to a copy ends with the state of the server, and none is left behind.
import type { AddressInfo, Socket } from 'node:net';
import { createServer, connect as dial } from 'node:net';
import { Writable } from 'node:stream';
import { afterAll, afterEach, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import type { ClientTransport, WebSocketConstructor } from '../../src/bridge/client.ts';
import { connect } from '../../src/bridge/client.ts';
import { coreOf, Hub } from '../../src/bridge/hub/hub.ts';
import type { WireEvent } from '../../src/bridge/protocol.ts';
import type { Clock } from '../../src/watch/clock.ts';
import { systemClock } from '../../src/watch/clock.ts';
import { isErrorEvent, isStatus } from '../../src/watch/event.ts';
import type { Copy } from '../property/copies.ts';
import { apply, copyOf, NAMES, State, same } from '../property/copies.ts';
import { until } from './cli.ts';
import { closeAll, serve, serveFetch } from './servers.ts';

const SEED = Number(process.env.WATCHMUX_SEED ?? 20_261);
/** Connections that break in each run. */
const BREAKS = 25;
const SLOTS = 50;
const WAYS_TO_END = ['reset', 'end', 'half', 'silence', 'leak'] as const;

const ends: (() => void)[] = [];
afterEach(() => {
  for (const end of ends.splice(0)) end();
});
afterAll(closeAll);

type Dice = (sides: number) => number;

/** Whole numbers below `sides`, the same for the same seed (mulberry32). */
function dice(seed: number): Dice {
  let state = seed;
  return (sides) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) % sides;
  };
}

/** Reset by libuv, a socket that is being shut down would never close. */
const reset = (socket: Socket): unknown => (socket.writableEnded ? socket.destroy() : socket.resetAndDestroy());

/** Between client and server. Spoils every connection until it is healed. */
class Network {
  readonly server = createServer({ allowHalfOpen: true, noDelay: true }, (near) => this.accept(near));
  private readonly sockets: Set<Socket> = new Set();
  private readonly spoilt: Set<Socket> = new Set();
  private readonly to: number;
  private readonly roll: Dice;
  private healed: boolean = false;

  constructor(to: number, roll: Dice) {
    this.to = to;
    this.roll = roll;
  }

  /** Connections that it has broken. */
  get count(): number {
    return this.spoilt.size / 2;
  }

  /** From now on everything passes. */
  heal(): void {
    this.healed = true;
    for (const socket of this.spoilt) reset(socket);
  }

  close(): void {
    for (const socket of this.sockets) socket.destroy();
    this.server.close();
  }

  private accept(near: Socket): void {
    const { roll } = this;
    const far = dial({ port: this.to, host: '127.0.0.1', allowHalfOpen: true, noDelay: true });
    for (const socket of [near, far]) {
      this.sockets.add(socket);
      socket.on('error', () => {}).on('close', () => this.sockets.delete(socket));
    }
    near.on('close', () => this.spoilt.has(far) || far.destroy());
    far.on('close', () => this.spoilt.has(near) || near.destroy());
    far.pipe(this.spoil(near, far, roll([40, 600, 6_000][roll(3)] as number)), { end: false });
    far.on('end', () => near.end());
    near.pipe(far);
  }

  /** Passes on so many bytes, in pieces, and then breaks the connection. */
  private spoil(near: Socket, far: Socket, bytes: number): Writable {
    const { roll } = this;
    const [size, how] = [[1, 30, 100_000][roll(3)] as number, WAYS_TO_END[roll(WAYS_TO_END.length)] as string];
    let left = this.healed ? Number.POSITIVE_INFINITY : bytes;
    const pass = async (chunk: Buffer): Promise<void> => {
      if (this.spoilt.has(far)) return;
      for (let at = 0; at < chunk.length && left > 0; ) {
        const piece = chunk.subarray(at, at + Math.min(size, left));
        if (near.writable) near.write(piece);
        at += piece.length;
        left -= piece.length;
        await new Promise(setImmediate);
      }
      if (left === 0) this.break(near, far, how);
    };
    return new Writable({ write: (chunk: Buffer, _, done) => void pass(chunk).then(() => done(), done) });
  }

  private break(near: Socket, far: Socket, how: string): void {
    this.spoilt.add(near).add(far);
    if (how === 'reset') for (const socket of [near, far]) reset(socket);
    else if (how === 'end') for (const socket of [near, far]) socket.end();
    else if (how === 'half') near.end();
    else if (how === 'leak') reset(near);
    if (this.healed) this.heal();
  }
}

/** The two seconds for which an event stream asks pass faster. */
const hasty: Clock = {
  now: () => systemClock.now(),
  schedule: (delayMs, callback) => systemClock.schedule(delayMs < 2_000 ? delayMs : delayMs / 50, callback),
};

/** A reader with a copy. It starts over when it is told to. */
class Reader {
  copy: Copy = new Map();
  told: number = 0;
  readonly faults: string[] = [];
  readonly done: Promise<void>;
  private readonly watch: ReturnType<typeof connect<WireEvent>>;
  private last: string | undefined = undefined;

  constructor(url: string, transport: ClientTransport) {
    this.watch = connect<WireEvent>(url, {
      ...{ transport, clock: hasty, onExpired: 'restart', backoff: { minMs: 5, maxMs: 20 } },
      ...{ connectTimeoutMs: 500, idleTimeoutMs: 500, WebSocket: WebSocket as unknown as WebSocketConstructor },
    });
    ends.push(() => this.watch.stop());
    this.done = this.read();
  }

  stop(): void {
    this.watch.stop();
  }

  private async read(): Promise<void> {
    for await (const event of this.watch) {
      if (isErrorEvent(event)) {
        if (event.object.code !== 410) this.faults.push(event.object.message);
        this.told++;
        this.copy = new Map();
        this.last = undefined;
        continue;
      }
      const { resourceVersion } = event as WireEvent;
      const [before, now] = [this.last, resourceVersion].map((version) => Number(version?.split('.')[1]));
      if (before && (now as number) !== before + 1) this.faults.push(`${resourceVersion} after ${this.last}`);
      this.last = resourceVersion;
      if (event.type !== 'BOOKMARK') apply(this.copy, event);
    }
  }
}

const HOSTS = [
  ['watchmux/http', serve, ['websocket', 'sse', 'http']],
  ['watchmux/fetch', serveFetch, ['sse', 'http']],
] as const;

describe(`through a network that breaks everything, seed ${SEED}`, () => {
  test.each(HOSTS)('%s: events in order, none missing, none twice, or one 410', async (_name, host, transports) => {
    const roll = dice(SEED);
    const state = new State();
    const snapshot = () => state.things.values();
    const hub = new Hub({ epoch: 'e', replayItems: 30, bookmarkIntervalMs: 50, maxClients: SLOTS, snapshot });
    const { port } = await host(hub, { stallTimeoutMs: 1_000 });
    const network = new Network(port, roll);
    await new Promise<void>((resolve) => network.server.listen(0, '127.0.0.1', resolve));
    ends.push(() => network.close());
    const url = `http://127.0.0.1:${(network.server.address() as AddressInfo).port}/watch`;
    const readers = transports.map((transport) => new Reader(url, transport));
    const change = (): Promise<void> => hub.publish(state.change(NAMES[roll(NAMES.length)] as string, roll(4) === 0));
    while (network.count < BREAKS) {
      await change();
      await new Promise((resolve) => setTimeout(resolve, roll(4)));
    }
    network.heal();
    await change();
    await until(() => readers.every(({ copy }) => same(copy, copyOf(state.initial))));
    expect(readers.flatMap(({ faults }) => faults)).toEqual([]);
    expect(hub.stats().total.resumes + readers.reduce((sum, { told }) => sum + told, 0)).toBeGreaterThan(BREAKS / 5);
    for (const reader of readers) reader.stop();
    await Promise.all(readers.map(({ done }) => done));
    network.close();
    await until(() => hub.stats().clients.length === 0);
    // Every slot is free again.
    const slots = Array.from({ length: SLOTS }, () => coreOf(hub).reserve(''));
    expect(slots.filter(isStatus)).toEqual([]);
  });
});
