// Resumable, without sockets: first a hub and strict readers that keep what they have read, then the hub and our client.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { DeliveryChecker } from '../../bench/bridge/jitter/delivery-checker.ts';
import { type ClientWatch, connect as connectClient, type WebSocketConstructor } from '../../src/bridge/client.ts';
import { coreOf, Hub } from '../../src/bridge/hub/hub.ts';
import type { Start } from '../../src/bridge/hub/hub-log.ts';
import { readQuery } from '../../src/bridge/hub/query.ts';
import { CLOSE_CODES, CLOSE_REASONS, type WireEvent } from '../../src/bridge/protocol.ts';
import { type Connection, checkResumable } from '../../src/testing/checkers/check-streams.ts';
import { FakeClock } from '../../src/testing/fakes/fake-clock.ts';
import { isErrorEvent, isStatus, type Status } from '../../src/watch/event.ts';
import { runs } from '../runs.ts';
import { connect, FakeSink, turn } from '../unit/fake-sink.ts';

const RUNS = runs(150, { least: 150 });
/** The suite's own, or more for more runs: a run took 30 ms on a loaded machine. */
const timeout = Math.max(30_000, 200 * RUNS);

/** A reader that keeps the version of what it has read last, and asks for what follows. */
class Careful {
  readonly connections: Connection[] = [];
  private last: string | undefined = undefined;
  private link: { sink: FakeSink; from: string | undefined } | undefined = undefined;

  connect(hub: Hub): void {
    if (this.link !== undefined) return;
    const from = this.last;
    const asked = { allowWatchBookmarks: true, ...(from === undefined ? {} : { resourceVersion: from }) };
    const start = coreOf(hub).start(asked);
    if (isStatus(start)) {
      expect(start.code).toBe(410);
      this.connections.push({ ...(from === undefined ? {} : { from }), versions: [], gone: true });
      this.last = undefined;
      return;
    }
    this.link = { sink: connect(hub, new FakeSink(), { start, asked }), from };
  }

  stall(): void {
    this.link?.sink.stall();
  }

  resume(): void {
    this.link?.sink.resume();
  }

  get sink(): FakeSink | undefined {
    return this.link?.sink;
  }

  /** The connection breaks, and so many of the last events have not come through. */
  cut(lost: number): void {
    if (this.link === undefined) return;
    const { sink, from } = this.link;
    this.link = undefined;
    sink.session?.gone();
    const all = sink.events;
    const got = all.slice(0, Math.max(0, all.length - lost)).filter(({ resourceVersion }) => resourceVersion !== undefined);
    const [first] = got;
    // A BOOKMARK at the beginning is as good as a version of one's own.
    const known = first?.type === 'BOOKMARK' ? first.resourceVersion : from;
    const versions = got.filter(({ type }) => type !== 'BOOKMARK').map(({ resourceVersion }) => resourceVersion as string);
    this.connections.push({ ...(known === undefined ? {} : { from: known }), versions });
    this.last = versions.at(-1) ?? known;
    // Without a filter, a BOOKMARK vouches for exactly what was sent before it.
    for (const [at, { type, resourceVersion }] of got.entries()) {
      if (type === 'BOOKMARK' && at > 0) expect(resourceVersion).toBe(got[at - 1]?.resourceVersion);
    }
  }
}

type Step =
  | { readonly op: 'publish'; readonly count: number }
  | { readonly op: 'connect' | 'stall' | 'resume'; readonly who: number }
  | { readonly op: 'cut'; readonly who: number; readonly lost: number }
  | { readonly op: 'turn' }
  | { readonly op: 'age' };

const READERS = 3;
/** Short of an interval of BOOKMARKs. */
const MAX_AGE_MS = 20_000;
const who = fc.nat(READERS - 1);
const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    { weight: 4, arbitrary: fc.record({ op: fc.constant('publish' as const), count: fc.integer({ min: 1, max: 9 }) }) },
    { weight: 4, arbitrary: fc.record({ op: fc.constant('connect' as const), who }) },
    { weight: 2, arbitrary: fc.record({ op: fc.constantFrom('stall' as const, 'resume' as const), who }) },
    { weight: 3, arbitrary: fc.record({ op: fc.constant('cut' as const), who, lost: fc.nat(4) }) },
    { weight: 3, arbitrary: fc.record({ op: fc.constant('turn' as const) }) },
    { weight: 1, arbitrary: fc.record({ op: fc.constant('age' as const) }) },
  ),
  { minLength: 5, maxLength: 60 },
);

interface Limits {
  readonly replayItems: number;
  readonly capacity: number;
  readonly replay: number;
}

const limits: fc.Arbitrary<Limits> = fc
  .record({ replayItems: fc.nat(12), capacity: fc.integer({ min: 1, max: 8 }), replay: fc.nat(4) })
  .map((one) => ({ ...one, replay: Math.min(one.replay, one.replayItems) }));

async function perform(plan: readonly Step[], options: Limits): Promise<{ published: string[]; readers: Careful[] }> {
  const clock = new FakeClock();
  const hub = new Hub({ epoch: 'e', clock, maxConnectionAgeMs: MAX_AGE_MS, ...options });
  const published: string[] = ['e.0'];
  const readers = Array.from({ length: READERS }, () => new Careful());
  for (const step of plan) {
    if (step.op === 'turn') await turn();
    else if (step.op === 'age') clock.advance(MAX_AGE_MS / 2);
    else if (step.op === 'publish') {
      for (let i = 0; i < step.count; i++) if (hub.tryPublish({ type: 'ADDED', object: i })) published.push(hub.version);
    } else if (step.op === 'connect') readers[step.who]?.connect(hub);
    else if (step.op === 'cut') readers[step.who]?.cut(step.lost);
    else readers[step.who]?.[step.op]();
  }
  // Everybody comes back, has room, and hears the rest: nothing may be held back.
  for (const reader of readers) {
    reader.resume();
    if (reader.sink?.ended !== undefined) reader.cut(0);
    reader.connect(hub);
    reader.connect(hub);
  }
  hub.tryPublish({ type: 'ADDED', object: 'last' });
  published.push(hub.version);
  for (let i = 0; i < 3; i++) await turn();
  for (const { sink } of readers) {
    if (sink?.ended === undefined) expect(sink?.versions.at(-1)).toBe(hub.version);
  }
  for (const reader of readers) reader.cut(0);
  return { published, readers };
}

/** Ways to break a row of versions, each of which must show. */
const BREAKS: Readonly<Record<string, (row: readonly string[]) => string[]>> = {
  'one missing': (row) => row.filter((_, at) => at !== row.length >> 1),
  'one twice': (row) => row.flatMap((one, at) => (at === row.length >> 1 ? [one, one] : [one])),
  'two swapped': (row) => [...row.slice(0, -2), row.at(-1) as string, row.at(-2) as string],
  'one of another life': (row) => [...row, 'x.1'],
};

describe('a hub and strict readers', { timeout }, () => {
  test('any schedule of publishes, cuts, stalls and losses: nothing is repeated or skipped, or there is one 410', async () => {
    let resumed = 0;
    let gone = 0;
    await fc.assert(
      fc.asyncProperty(steps, limits, async (plan, options) => {
        const { published, readers } = await perform(plan, options);
        for (const { connections } of readers) {
          expect(checkResumable({ published, connections })?.message).toBeUndefined();
          resumed += connections.filter(({ from, versions }) => from !== undefined && versions.length > 0).length;
          gone += connections.filter((connection) => connection.gone).length;
        }
      }),
      { numRuns: RUNS },
    );
    // Both ways were taken. Expirations come in clusters: some 33 in 150 plans, but no fewer than 15 would be asked too often.
    expect(resumed).toBeGreaterThan(RUNS / 2);
    expect(gone).toBeGreaterThan(RUNS / 30);
  });

  test.each(Object.entries(BREAKS))('the same histories with %s are rejected', async (_what, broken) => {
    let rejected = 0;
    await fc.assert(
      fc.asyncProperty(steps, limits, async (plan, options) => {
        const { published, readers } = await perform(plan, options);
        for (const { connections } of readers) {
          const at = connections.findIndex(({ versions }) => versions.length >= 3);
          if (at < 0) continue;
          const wrong = connections.map((one, i) => (i === at ? { ...one, versions: broken(one.versions) } : one));
          expect(checkResumable({ published, connections: wrong })).toMatchObject({ guarantee: 'Resumable' });
          rejected++;
        }
      }),
      { numRuns: Math.ceil(RUNS / 5) },
    );
    expect(rejected).toBeGreaterThan(5);
  });
});

type Socket = { onopen: unknown; onmessage: unknown; onclose: unknown; onerror: unknown };
const told = (handler: unknown, event: object): void => (handler as ((event: object) => void) | null)?.(event);

/** The far end of a WebSocket, and the way there: what is written waits on it until it is let through. */
class Wire extends FakeSink {
  readonly socket: Socket;
  broken: boolean = false;
  private through: number = 0;

  constructor(socket: Socket) {
    super();
    this.socket = socket;
  }

  /** Lets so many events through; a wire with little on it takes more. */
  let(count: number): void {
    const { events } = this;
    for (const event of events.slice(this.through, this.through + count)) {
      if (!this.broken) told(this.socket.onmessage, { data: JSON.stringify(event) });
    }
    this.through = Math.min(events.length, this.through + count);
    if (this.through < events.length || this.broken) return;
    const { ended } = this;
    if (ended === undefined) this.resume();
    else this.break(ended === 'expired' ? [CLOSE_CODES.expired, CLOSE_REASONS.expired] : [CLOSE_CODES.failed, 'failed']);
  }

  break([code, reason]: readonly [number, string] = [1006, '']): void {
    if (this.broken) return;
    this.broken = true;
    this.session?.gone();
    told(this.socket.onclose, { code, reason });
  }
}

/** Servers one after the other, each a life of its own, and one client that knows nothing of it but a URL. */
class World {
  readonly clock: FakeClock = new FakeClock();
  readonly checker: DeliveryChecker = new DeliveryChecker();
  readonly watch: ClientWatch<WireEvent>;
  published: number = 0;
  restarts: number = 0;
  private hub: Hub;
  private readonly wires: Wire[] = [];
  private readonly limits: Limits;

  constructor(limits: Limits, clientCapacity: number) {
    this.limits = limits;
    this.hub = this.born();
    const world = this;
    class HubSocket {
      onopen: unknown = null;
      onmessage: unknown = null;
      onclose: unknown = null;
      onerror: unknown = null;
      private wire: Wire | undefined = undefined;
      private closed: boolean = false;

      constructor(url: string) {
        queueMicrotask(() => {
          if (!this.closed) this.wire = world.open(new URL(url), this);
        });
      }

      close(): void {
        this.closed = true;
        if (this.wire !== undefined) this.wire.broken = true;
        this.wire?.session?.gone();
      }
    }
    this.watch = connectClient('ws://h/watch', {
      WebSocket: HubSocket as unknown as WebSocketConstructor,
      clock: this.clock,
      capacity: clientCapacity,
      onExpired: 'restart',
      idleTimeoutMs: 0,
      // Handshakes take no time here; time passes between them.
      connectTimeoutMs: 1_000_000_000,
      random: () => 1,
    });
  }

  publish(count: number): void {
    for (let i = 0; i < count; i++) if (this.hub.tryPublish({ type: 'ADDED', object: this.published + 1 })) this.published++;
  }

  /** Killed, and started again: what it knew is gone. */
  restart(): void {
    this.restarts++;
    this.hub = this.born();
    this.cut();
  }

  cut(): void {
    for (const wire of this.wires.splice(0)) wire.break();
  }

  let(count: number): void {
    for (const wire of [...this.wires]) wire.let(count);
  }

  stall(): void {
    for (const wire of this.wires) wire.stall();
  }

  read(count: number): void {
    for (let i = 0; i < count; i++) {
      const event = this.watch.tryNext();
      if (event === undefined) return;
      if (isErrorEvent(event)) this.checker.refused(event.object as Status);
      else this.checker.take(event.object as number);
    }
  }

  private born(): Hub {
    return new Hub({ epoch: `life${this.restarts}`, ...this.limits, replay: 0 });
  }

  private open(url: URL, socket: Socket): Wire {
    const wire = new Wire(socket);
    this.wires.push(wire);
    const asked = readQuery({ search: url.search.slice(1), lastEventId: undefined });
    const start = isStatus(asked) ? asked : coreOf(this.hub).start(asked);
    told(socket.onopen, {});
    if (isStatus(start)) {
      told(socket.onmessage, { data: JSON.stringify({ type: 'ERROR', object: start }) });
      wire.break([CLOSE_CODES.expired, CLOSE_REASONS.expired]);
    } else connect(this.hub, wire, { start: start as Start, asked: isStatus(asked) ? {} : asked });
    return wire;
  }
}

type Deed =
  | { readonly deed: 'publish' | 'let' | 'read'; readonly count: number }
  | { readonly deed: 'cut' | 'stall' | 'restart' | 'turn' }
  | { readonly deed: 'pass'; readonly ms: number };

const count = fc.integer({ min: 1, max: 12 });
const deeds: fc.Arbitrary<Deed[]> = fc.array(
  fc.oneof(
    { weight: 4, arbitrary: fc.record({ deed: fc.constant('publish' as const), count }) },
    { weight: 6, arbitrary: fc.record({ deed: fc.constantFrom('let' as const, 'read' as const), count }) },
    { weight: 3, arbitrary: fc.record({ deed: fc.constantFrom('cut' as const, 'stall' as const, 'turn' as const) }) },
    { weight: 1, arbitrary: fc.record({ deed: fc.constant('restart' as const) }) },
    { weight: 4, arbitrary: fc.record({ deed: fc.constant('pass' as const), ms: fc.integer({ min: 100, max: 5_000 }) }) },
  ),
  { minLength: 5, maxLength: 50 },
);

async function live(world: World, all: readonly Deed[]): Promise<void> {
  for (const one of all) {
    if (one.deed === 'turn') await turn();
    else if (one.deed === 'pass') world.clock.advance(one.ms);
    else if ('count' in one) world[one.deed](one.count);
    else world[one.deed]();
    await turn();
  }
  // The trouble is over: whoever waits comes back, and reads what there is.
  for (let i = 0; i < 12; i++) {
    world.clock.advance(60_000);
    await turn();
    world.let(1_000);
    await turn();
    world.read(1_000);
  }
  world.publish(1);
  for (let i = 0; i < 3; i++) {
    await turn();
    world.let(1_000);
    world.read(1_000);
  }
}

test('a hub, our client, and any network between them: missing events are behind a 410, none is repeated', {
  timeout,
}, async () => {
  const seen = { told: 0, delivered: 0, expired: 0 };
  await fc.assert(
    fc.asyncProperty(deeds, limits, fc.integer({ min: 1, max: 20 }), async (all, options, capacity) => {
      const world = new World(options, capacity);
      await turn();
      await live(world, all);
      const { checker, watch, published } = world;
      const { duplicates, outOfOrder, silent, repeated, failures, delivered, told } = checker;
      expect({ duplicates, outOfOrder, silent, repeated, failures }).toEqual({
        duplicates: 0,
        outOfOrder: 0,
        silent: 0,
        repeated: 0,
        failures: [],
      });
      expect({ last: checker.last, sum: delivered + told }).toEqual({ last: published, sum: published });
      watch.stop();
      expect(world.clock.pending).toBe(0);
      seen.told += told;
      seen.delivered += delivered;
      seen.expired += checker.expired;
    }),
    { numRuns: RUNS },
  );
  expect(seen.delivered).toBeGreaterThan(RUNS);
  expect(seen.told).toBeGreaterThan(RUNS / 30);
  expect(seen.expired).toBeGreaterThan(RUNS / 30);
});
