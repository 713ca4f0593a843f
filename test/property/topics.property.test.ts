// Topics equal a filter: two real broadcasters, one with each, and two hubs, run the same commands.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type ClientOptions, coreOf, Hub } from '../../src/bridge/hub/hub.ts';
import type { Start } from '../../src/bridge/hub/hub-log.ts';
import type { BroadcastWatch } from '../../src/broadcast/broadcast-watch.ts';
import { Broadcaster } from '../../src/broadcast/broadcaster.ts';
import { isStatus, type WatchEvent } from '../../src/watch/event.ts';
import { OVERFLOWS, type Overflow } from '../../src/watch/overflow.ts';
import { policiesWith } from '../policies.ts';
import { runs } from '../runs.ts';
import { connect, FakeSink, turn } from '../unit/fake-sink.ts';
import { event, type TestEvent } from '../unit/support.ts';
import { topicsOf } from './model.ts';

const RUNS = runs(1_500);

/** What a watcher may ask for; undefined: all events. */
const topicsArb = fc.constantFrom(undefined, ['a'], ['a'], ['b'], ['a', 'b'], ['c', 'a', 'c'], ['c'], [], ['x']);
const isOf = (topics: readonly string[], one: TestEvent): boolean => topicsOf(one).some((topic) => topics.includes(topic));
/** Events of a prefix have such numbers: topics do not concern them. */
const FOREIGN = 1_000_000;

interface Entry {
  readonly op: 'watch';
  readonly capacity: number;
  readonly overflow: Overflow;
  readonly topics: readonly string[] | undefined;
  readonly odd: boolean;
  readonly prefix: number | undefined;
  readonly told: boolean;
  readonly past: number | undefined;
}

type Command =
  | Entry
  | { readonly op: 'publish' | 'tryPublish'; readonly type: string; readonly times: number }
  | { readonly op: 'next' | 'batch' | 'tryNext' | 'tryBatch' | 'stop' | 'return' | 'abort'; readonly at: number }
  | { readonly op: 'turn' | 'shutdown' | 'giveUp' };

const commands: fc.Arbitrary<Command[]> = fc.array(
  fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({
        op: fc.constant('watch' as const),
        capacity: fc.constantFrom(0, 1, 2, 5, 17, 40, 1_000_000),
        overflow: fc.constantFrom(...OVERFLOWS),
        topics: topicsArb,
        odd: fc.boolean(),
        prefix: fc.constantFrom(undefined, undefined, 0, 3),
        told: fc.boolean(),
        past: fc.constantFrom(undefined, undefined, 1, 5, 100),
      }),
    },
    {
      weight: 8,
      arbitrary: fc.record({
        op: fc.constantFrom('publish' as const, 'tryPublish' as const),
        type: fc.constantFrom('ADDED', 'MODIFIED', 'DELETED', 'BOOKMARK'),
        times: fc.oneof(fc.constant(1), fc.nat(6), fc.nat(80)),
      }),
    },
    {
      weight: 10,
      arbitrary: fc.record({
        op: fc.constantFrom('next' as const, 'next' as const, 'batch' as const, 'tryNext' as const, 'tryBatch' as const),
        at: fc.nat(9),
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record({ op: fc.constantFrom('stop' as const, 'return' as const, 'abort' as const), at: fc.nat(9) }),
    },
    { weight: 5, arbitrary: fc.constant({ op: 'turn' as const }) },
    { weight: 1, arbitrary: fc.constantFrom({ op: 'shutdown' as const }, { op: 'giveUp' as const }) },
  ),
  { maxLength: 60, size: 'max' },
);

interface Limits {
  readonly incoming: number;
  readonly maxPending: number;
  readonly replay: number;
}

/** One of the two broadcasters, and what was seen of it: in order for each watch, and for the publishers. */
class Side {
  readonly seen: Record<string, unknown[]> = {};
  private readonly broadcaster: Broadcaster<TestEvent>;
  private readonly watches: { watch: BroadcastWatch<TestEvent>; abort: AbortController }[] = [];
  private readonly routes: boolean;
  private readonly limits: Limits;
  private id = 0;
  private calls = 0;

  constructor(routes: boolean, limits: Limits) {
    this.routes = routes;
    this.limits = limits;
    this.broadcaster = new Broadcaster<TestEvent>({ ...limits, ...(routes && { topicsOf }) });
  }

  async run(all: readonly Command[]): Promise<unknown> {
    for (const command of all) {
      try {
        await this.perform(command);
      } catch (error) {
        this.note(command.op, (error as Error).message);
      }
    }
    await this.perform({ op: 'turn' });
    return this.seen;
  }

  private note(whose: string | number, ...what: unknown[]): void {
    this.seen[whose] ??= [];
    this.seen[whose].push(what);
  }

  /** Notes how a promise settles: in the order in which those of one watch do. */
  private later(whose: string | number, promise: Promise<unknown>): void {
    const call = this.calls++;
    promise.then(
      (value) => this.note(whose, call, plain((value as { value?: unknown } | undefined)?.value)),
      (error: Error) => this.note(whose, call, error.message),
    );
  }

  private event(type: string): TestEvent {
    return event(this.id++, type, `k${this.id % 4}`);
  }

  private perform(command: Command): Promise<void> | undefined {
    const { op } = command;
    if (op === 'watch') this.watch(command);
    else if (op === 'publish')
      for (let i = 0; i < command.times; i++) this.later('publish', this.broadcaster.publish(this.event(command.type)));
    else if (op === 'tryPublish') {
      for (let i = 0; i < command.times; i++) this.note('publish', this.broadcaster.tryPublish(this.event(command.type)));
    } else if (op === 'shutdown') this.later('shutdown', this.broadcaster.shutdown());
    else if (op === 'giveUp')
      this.later('shutdown', this.broadcaster.shutdown({ signal: AbortSignal.abort(new Error('enough')) }));
    else if (op === 'turn') return this.turn();
    else if ('at' in command) this.read(op, command.at);
    return undefined;
  }

  private watch({ capacity, overflow, topics, odd, prefix, told, past }: Entry): void {
    const abort = new AbortController();
    const name = this.watches.length;
    const passes = ({ object }: TestEvent): boolean => !odd || object.id % 2 === 1;
    const filter =
      this.routes || !topics
        ? passes
        : (one: TestEvent): boolean => (one.object.id >= FOREIGN || isOf(topics, one)) && passes(one);
    const isPast = past !== undefined && this.limits.replay > 0;
    const watch = this.broadcaster.watch({
      // The number of past events is counted before topics, that of a queue behind them.
      capacity: isPast ? 1_000_000 : capacity,
      overflow,
      signal: abort.signal,
      ...((odd || (topics && !this.routes)) && { filter }),
      ...(topics && this.routes && { topics }),
      ...(isPast && { replay: past }),
      ...(told && { onGap: (missed: number) => this.note(name, 'gap', missed) }),
      ...(prefix !== undefined && {
        prefix: Array.from({ length: prefix }, (_, at) => event(FOREIGN + at, 'MODIFIED', `p${at}`)),
      }),
    });
    this.watches.push({ watch: watch as BroadcastWatch<TestEvent>, abort });
  }

  private read(op: string, at: number): void {
    const name = at % Math.max(1, this.watches.length);
    const one = this.watches[name];
    if (one === undefined) return;
    const { watch, abort } = one;
    if (op === 'next') this.later(name, watch.next());
    else if (op === 'batch') this.later(name, watch.batches().next());
    else if (op === 'tryNext') this.note(name, plain(watch.tryNext()));
    else if (op === 'tryBatch') this.note(name, plain(watch.tryBatch()));
    else if (op === 'stop') watch.stop();
    else if (op === 'return') this.later(name, watch.return());
    else abort.abort();
  }

  private async turn(): Promise<void> {
    for (let i = 0; i < 30; i++) await Promise.resolve();
    this.note(
      'turn',
      this.broadcaster.watchers,
      this.watches.map(({ watch: { queued, dropped, stopped, position } }) => [queued, dropped, stopped, position]),
    );
  }
}

/** Shows an event by its number and type, and an ERROR by its message. */
function plain(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plain);
  const { type, object } = (value ?? {}) as Partial<TestEvent>;
  return type === 'ERROR' ? (object as unknown as { message: string }).message : value && [type, object?.id];
}

test('topics equal a filter on the same run: the same events, order, counts, gaps, positions and ends', {
  timeout: Math.max(120_000, 60 * RUNS),
}, async () => {
  await fc.assert(
    fc.asyncProperty(
      commands,
      fc.record({
        // Without an incoming queue, a publish asks a full `wait` watcher that has a filter, and one of topics is not concerned.
        incoming: fc.constantFrom(1, 3, 25),
        maxPending: fc.constantFrom(0, 2, 1_000),
        replay: fc.constantFrom(0, 0, 5, 1_000),
      }),
      async (all, limits) => {
        expect(await new Side(true, limits).run(all)).toEqual(await new Side(false, limits).run(all));
      },
    ),
    { numRuns: RUNS },
  );
});

type Deed =
  | {
      readonly deed: 'connect';
      readonly topics: readonly string[] | undefined;
      readonly overflow: Overflow;
      readonly capacity: number;
    }
  | { readonly deed: 'publish'; readonly type: string; readonly times: number }
  | { readonly deed: 'stall' | 'resume' | 'cut'; readonly at: number; readonly lost: number }
  | { readonly deed: 'turn' };

const deeds: fc.Arbitrary<Deed[]> = fc.array(
  fc.oneof(
    {
      weight: 3,
      arbitrary: fc.record({
        deed: fc.constant('connect' as const),
        topics: topicsArb,
        overflow: fc.constantFrom(...policiesWith({ waits: false })),
        capacity: fc.constantFrom(1, 4, 20),
      }),
    },
    {
      weight: 5,
      arbitrary: fc.record({
        deed: fc.constant('publish' as const),
        type: fc.constantFrom('ADDED', 'MODIFIED', 'DELETED'),
        times: fc.integer({ min: 1, max: 12 }),
      }),
    },
    {
      weight: 3,
      arbitrary: fc.record({
        deed: fc.constantFrom('stall' as const, 'resume' as const, 'cut' as const),
        at: fc.nat(5),
        lost: fc.nat(3),
      }),
    },
    { weight: 4, arbitrary: fc.constant({ deed: 'turn' as const }) },
  ),
  { minLength: 5, maxLength: 40 },
);

/**
 * A client that comes back after the last version it has seen. One of coalesce does not: which of its events have a version depends
 * on what its filter has seen since.
 */
interface Guest {
  readonly options: ClientOptions;
  sink: FakeSink | undefined;
}

/** Runs a hub. Returns what each connection was sent, in order, and how it ended. */
async function serve(routes: boolean, all: readonly Deed[], limits: { replayItems: number; replay: number }): Promise<unknown[]> {
  const hub = new Hub({
    epoch: 'e',
    ...limits,
    ...(routes && { topicsOf: topicsOf as (event: WatchEvent) => readonly string[] }),
  });
  const guests: Guest[] = [];
  const seen: unknown[] = [];
  const folding = new Set<FakeSink>();
  let id = 0;
  const enter = (guest: Guest, resourceVersion: string | undefined): void => {
    const asked = resourceVersion === undefined ? {} : { resourceVersion };
    const { options } = guest;
    const start = coreOf(hub).start(asked, { options });
    if (isStatus(start)) seen.push(start.code);
    guest.sink = isStatus(start) ? undefined : connect(hub, new FakeSink(), { start: start as Start, asked, options });
    seen.push(guest.sink ?? 'refused');
    if (guest.sink && options.overflow === 'coalesce') folding.add(guest.sink);
  };
  for (const one of all) {
    if (one.deed === 'turn') await turn();
    else if (one.deed === 'publish') {
      for (let i = 0; i < one.times; i++) {
        hub.tryPublish(event(id++, one.type, `k${id % 4}`));
        // How many events one write takes is up to the hub: half of a queue of those that a client sees.
        await turn();
      }
    } else if (one.deed === 'connect') {
      const { topics, overflow, capacity } = one;
      const what = topics && (routes ? { topics } : { filter: (live: WatchEvent) => isOf(topics, live as TestEvent) });
      const guest: Guest = { options: { overflow, capacity, ...what }, sink: undefined };
      guests.push(guest);
      enter(guest, undefined);
    } else {
      const guest = guests[one.at % Math.max(1, guests.length)];
      if (one.deed !== 'cut') {
        guest?.sink?.[one.deed]();
        // A client that has room again is flushed in the next turn, or sooner, with others that have got events.
        await turn();
      } else if (guest) {
        const last = guest.sink?.versions.at(-1 - one.lost);
        guest.sink?.session?.gone();
        if (guest.options.overflow !== 'coalesce') enter(guest, last);
      }
    }
  }
  for (const { sink } of guests) sink?.resume();
  await turn();
  await turn();
  const clients = hub.stats().clients.map(({ delivered, queued, dropped }) => ({ delivered, queued, dropped }));
  const shown = (sink: FakeSink): unknown[] =>
    folding.has(sink) ? sink.events.map(({ type, object }) => [type, object]) : sink.events;
  return [...seen.map((one) => (one instanceof FakeSink ? [shown(one), one.ended, one.destroyed] : one)), clients];
}

test('a hub with topics sends what one with filters sends: live, resumed, replayed, cut and folded', {
  timeout: Math.max(120_000, 60 * RUNS),
}, async () => {
  const limits = fc.record({ replayItems: fc.constantFrom(5, 100, 1_000), replay: fc.nat(5) });
  await fc.assert(
    fc.asyncProperty(deeds, limits, async (all, one) => {
      expect(await serve(true, all, one)).toEqual(await serve(false, all, one));
    }),
    { numRuns: Math.ceil(RUNS / 3) },
  );
});
