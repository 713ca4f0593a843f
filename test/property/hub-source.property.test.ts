// Several hubs on one stream to which everything happens that can: strict readers go from hub to hub, and repeat and skip nothing, or
// hear 410. What they may see is told by the stream's own past: each event knows the one before it.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { coreOf, Hub } from '../../src/bridge/hub/hub.ts';
import { toSourceVersion } from '../../src/bridge/hub/source/source.ts';
import type { Connection } from '../../src/testing/checkers/check-streams.ts';
import { checkResumable } from '../../src/testing/checkers/check-streams.ts';
import { FakeClock } from '../../src/testing/fakes/fake-clock.ts';
import { FakeSource } from '../../src/testing/fakes/fake-source.ts';
import { isStatus } from '../../src/watch/event.ts';
import { runs } from '../runs.ts';
import { connect, FakeSink, turn } from '../unit/fake-sink.ts';
import { macrotask } from '../unit/support.ts';

const RUNS = runs(100, { least: 40 });
const timeout = Math.max(60_000, 400 * RUNS);
const HUBS = 2;
const READERS = 3;

/** A stream that remembers what came before each of its entries, also when it has lost them. */
class Remembering extends FakeSource {
  readonly previous: Map<string, string> = new Map();
  private readonly valid: Set<string> = new Set();

  override append(json: string, topics: readonly string[] = []): void {
    const last = toSourceVersion(this.end);
    super.append(json, topics);
    const version = toSourceVersion(this.end);
    this.previous.set(version, last);
    if (json !== 'junk') this.valid.add(version);
  }

  /** The events up to a version, as the stream had them. */
  upTo(version: string): string[] {
    const chain: string[] = [];
    for (let at: string | undefined = version; at !== undefined; at = this.previous.get(at)) {
      if (this.valid.has(at) || !this.previous.has(at)) chain.unshift(at);
    }
    return chain;
  }

  /** The last event at a version, which may be that of something that is no event. */
  eventAt(version: string): string {
    let at = version;
    while (this.previous.has(at) && !this.valid.has(at)) at = this.previous.get(at) as string;
    return at;
  }
}

/** A reader that keeps the version of what it has read last, and asks any hub for what follows. */
class Careful {
  /** Since the last 410, or the beginning; then those before. */
  readonly lives: Connection[][] = [[]];
  last: string | undefined = undefined;
  private readonly source: Remembering;
  private link: { sink: FakeSink; from: string | undefined } | undefined = undefined;

  constructor(source: Remembering) {
    this.source = source;
  }

  get sink(): FakeSink | undefined {
    return this.link?.sink;
  }

  /** As transports do it. Gives up when the hub cannot tell soon. */
  async connect(hub: Hub): Promise<void> {
    if (this.link !== undefined) return;
    const from = this.last;
    const asked = { allowWatchBookmarks: true, ...(from === undefined ? {} : { resourceVersion: from }) };
    const core = coreOf(hub);
    const late = new AbortController();
    const locating = core.mustLocate(asked) ? core.locate(asked, late.signal) : undefined;
    void giveUp(late);
    const catchUp = await locating?.catch(() => 'failed' as const);
    if (catchUp === 'failed' || late.signal.aborted) return;
    const start = core.start(asked, { catchUp });
    if (!isStatus(start)) this.link = { sink: connect(hub, new FakeSink(), { start, asked }), from };
    else if (start.code === 410) this.gone(from);
    else expect(start.code).toBe(503);
  }

  /** The connection breaks, and so many of the last events have not come through. */
  cut(lost: number): void {
    if (this.link === undefined) return;
    const { sink, from } = this.link;
    this.link = undefined;
    sink.session?.gone();
    const all = sink.events;
    const got = all.slice(0, Math.max(0, all.length - lost));
    const told = got.filter(({ resourceVersion }) => resourceVersion !== undefined);
    const known = told[0]?.type === 'BOOKMARK' ? this.source.eventAt(told[0].resourceVersion as string) : from;
    const versions = told.filter(({ type }) => type !== 'BOOKMARK').map(({ resourceVersion }) => resourceVersion as string);
    this.lives.at(-1)?.push({ ...(known === undefined ? {} : { from: this.source.eventAt(known) }), versions });
    // A BOOKMARK says that everything before it was sent.
    this.last = told.at(-1)?.resourceVersion ?? from;
    if (got.at(-1)?.type === 'ERROR') this.gone(this.last);
  }

  private gone(from: string | undefined): void {
    this.lives.at(-1)?.push({ ...(from === undefined ? {} : { from }), versions: [], gone: true });
    this.lives.push([]);
    this.last = undefined;
  }
}

async function giveUp(late: AbortController): Promise<void> {
  for (let turns = 0; turns < 12; turns++) await turn();
  late.abort();
}

const who = fc.nat(READERS - 1);
const at = fc.nat(HUBS - 1);
type Step =
  | { readonly op: 'publish'; readonly at: number; readonly count: number }
  | { readonly op: 'connect'; readonly who: number; readonly at: number }
  | { readonly op: 'stall' | 'resume'; readonly who: number }
  | { readonly op: 'drop'; readonly who: number; readonly lost: number }
  | { readonly op: 'trim' | 'lose' | 'remove'; readonly count: number }
  | { readonly op: 'restart'; readonly at: number }
  | { readonly op: 'turn' | 'cut' | 'stop' | 'start' | 'hold' | 'release' | 'recreate' | 'junk' };

const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    { weight: 8, arbitrary: fc.record({ op: fc.constant('publish' as const), at, count: fc.integer({ min: 1, max: 9 }) }) },
    { weight: 8, arbitrary: fc.record({ op: fc.constant('connect' as const), who, at }) },
    { weight: 2, arbitrary: fc.record({ op: fc.constantFrom('stall' as const, 'resume' as const), who }) },
    { weight: 6, arbitrary: fc.record({ op: fc.constant('drop' as const), who, lost: fc.nat(4) }) },
    {
      weight: 1,
      arbitrary: fc.record({ op: fc.constantFrom('trim' as const, 'lose' as const), count: fc.integer({ min: 1, max: 6 }) }),
    },
    { weight: 1, arbitrary: fc.record({ op: fc.constant('remove' as const), count: fc.integer({ min: 1, max: 30 }) }) },
    { weight: 2, arbitrary: fc.record({ op: fc.constant('restart' as const), at }) },
    {
      weight: 6,
      arbitrary: fc.record({
        op: fc.constantFrom('turn' as const, 'cut' as const, 'hold' as const, 'release' as const, 'junk' as const),
      }),
    },
    { weight: 2, arbitrary: fc.record({ op: fc.constantFrom('stop' as const, 'start' as const) }) },
    { weight: 1, arbitrary: fc.record({ op: fc.constant('recreate' as const) }) },
  ),
  { minLength: 10, maxLength: 60 },
);

interface Limits {
  readonly replayItems: number;
  readonly capacity: number;
  readonly maxCatchUpItems: number;
}
const limits: fc.Arbitrary<Limits> = fc.record({
  replayItems: fc.nat(8),
  capacity: fc.integer({ min: 1, max: 8 }),
  maxCatchUpItems: fc.constantFrom(5, 1_000, 1_000),
});

class World {
  readonly source: Remembering = new Remembering();
  readonly readers: Careful[] = Array.from({ length: READERS }, () => new Careful(this.source));
  private readonly clock: FakeClock = new FakeClock();
  private readonly options: Limits;
  readonly hubs: Hub[];
  private published: number = 0;

  constructor(options: Limits) {
    this.options = options;
    this.hubs = Array.from({ length: HUBS }, () => this.hub());
  }

  /** Everything that is due happens, however much it is: hubs take long batches event by event. */
  async settle(): Promise<void> {
    for (let i = 0; i < 6; i++) {
      await macrotask();
      this.clock.advance(2_000);
    }
  }

  async perform(step: Step): Promise<void> {
    const { source, readers, hubs } = this;
    if (step.op === 'publish') await this.publish(step.at, step.count);
    else if (step.op === 'connect') await readers[step.who]?.connect(hubs[step.at] as Hub);
    else if (step.op === 'stall' || step.op === 'resume') readers[step.who]?.sink?.[step.op]();
    else if (step.op === 'drop') readers[step.who]?.cut(step.lost);
    else if (step.op === 'trim' || step.op === 'lose' || step.op === 'remove') source[step.op](step.count);
    else if (step.op === 'restart') await this.restart(step.at);
    else if (step.op === 'junk') source.append('junk');
    else if (step.op === 'turn') await this.settle();
    else source[step.op]();
  }

  /** Everybody comes back, and hears the rest. */
  async calm(): Promise<void> {
    this.source.start();
    this.source.release();
    // The last event may have been removed before it came.
    const last = this.source.events.at(-1)?.sequence ?? 0;
    const isThere = (hub: Hub): boolean => hub.stats().source?.phase === 'following' && Number(hub.version.split('.')[1]) >= last;
    for (let tries = 0; tries < 20 && !this.hubs.every(isThere); tries++) await this.settle();
    expect(this.hubs.map(isThere)).toEqual(this.hubs.map(() => true));
    for (const [i, reader] of this.readers.entries()) {
      reader.sink?.resume();
      await this.settle();
      // It may hear 410 at the first, and then starts over.
      for (let tries = 0; tries < 3; tries++) {
        if (reader.sink?.ended !== undefined || reader.sink?.session?.over) reader.cut(0);
        await reader.connect(this.hubs[i % HUBS] as Hub);
        await this.settle();
      }
    }
    await this.publish(0, 1);
    await this.settle();
    for (const { sink } of this.readers) {
      // The last event may have shown a hub that one before it is missing.
      if (sink?.ended !== undefined) expect(sink.events.at(-1)).toMatchObject({ type: 'ERROR', object: { code: 410 } });
      else expect(sink?.versions.at(-1)).toBe(toSourceVersion(this.source.end));
    }
    for (const reader of this.readers) reader.cut(0);
    await Promise.all(this.hubs.map((hub) => hub.shutdown()));
    expect(this.clock.pending).toBe(0);
    expect(this.source.following).toBe(0);
  }

  private hub(): Hub {
    const { source, clock } = this;
    return new Hub({ source, clock, random: () => 0.5, ...this.options });
  }

  private async publish(at: number, count: number): Promise<void> {
    for (let i = 0; i < count; i++) {
      // An event that is refused because the source is away is none.
      await this.hubs[at]?.publish({ type: 'ADDED', object: ++this.published }).catch(() => {});
    }
  }

  private async restart(at: number): Promise<void> {
    const gone = AbortSignal.abort();
    await this.hubs[at]?.shutdown({ signal: gone });
    for (const reader of this.readers) if (reader.sink?.session?.over) reader.cut(0);
    this.hubs[at] = this.hub();
  }
}

/** Checks each life of a reader against the stream as it was when the reader got its last event. */
function faultOf(source: Remembering, lives: readonly (readonly Connection[])[]): string | undefined {
  for (const connections of lives) {
    const all = connections.flatMap(({ from, versions, gone }) => (gone ? [] : [from, ...versions]));
    const last = all.filter((version) => version !== undefined).at(-1);
    if (last === undefined) continue;
    const kept = connections.filter(({ gone }) => gone !== true);
    const fault = checkResumable({ published: source.upTo(last), connections: joined(kept) });
    if (fault !== undefined) return fault.message;
  }
  return undefined;
}

/** One connection after the other must read as one, however often it broke. */
function joined(connections: readonly Connection[]): Connection[] {
  return connections.map(({ from, versions }) => ({ ...(from === undefined ? {} : { from }), versions }));
}

describe('hubs on one stream, and strict readers', { timeout }, () => {
  test('whatever happens to the stream and to hubs: nothing is repeated or skipped, or there is a 410', async () => {
    let resumed = 0;
    let gone = 0;
    await fc.assert(
      fc.asyncProperty(steps, limits, async (plan, options) => {
        const world = new World(options);
        await world.settle();
        for (const step of plan) await world.perform(step);
        await world.calm();
        for (const { lives } of world.readers) {
          expect(faultOf(world.source, lives)).toBeUndefined();
          resumed += lives.flat().filter(({ from, versions }) => from !== undefined && versions.length > 0).length;
          gone += lives.flat().filter((connection) => connection.gone).length;
        }
      }),
      { numRuns: RUNS },
    );
    expect(resumed).toBeGreaterThan(RUNS);
    expect(gone).toBeGreaterThan(RUNS / 3);
  });

  test('the judge rejects an event of the past that was lost, one that is missing, and one that comes twice', () => {
    const source = new Remembering();
    const version = (): string => toSourceVersion(source.end);
    const versions: string[] = [];
    for (let n = 1; n <= 4; n++) {
      source.append(`{"type":"t","object":${n}}`);
      versions.push(version());
    }
    source.lose(1);
    source.append('{"type":"t","object":5}');
    const [a, b, c, lost] = versions as [string, string, string, string];
    const now = version();
    expect(faultOf(source, [[{ versions: [a, b, c, now] }]])).toBeUndefined();
    expect(faultOf(source, [[{ versions: [a, b, c] }, { from: c, versions: [now] }]])).toBeUndefined();
    expect(faultOf(source, [[{ versions: [a, b, c, lost, now] }]])).toContain('Resumable');
    expect(faultOf(source, [[{ versions: [a, b, c, lost] }, { from: lost, versions: [now] }]])).toContain('Resumable');
    expect(faultOf(source, [[{ versions: [a, c, now] }]])).toContain('Resumable');
    expect(faultOf(source, [[{ versions: [a, b, b, c, now] }]])).toContain('Resumable');
  });
});
