// A reflector against a server that fails in every way at any time. When the faults stop, the store is what the server has (P10.1), no
// version that it has reached went back (P10.2), and it has asked for none that it was not told (P10.3: `source.wrong`). A refresh, even
// one from within a callback, asks for the newest state at once, and gives the store at least what the server had at the call (P10.5).
// That requests are bounded while everything fails (P10.4) is in
// unit/reflector-list.test.ts.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Reflector, type ReflectorOptions, type ReflectorStore } from '../../src/cache/index.ts';
import { ListenerCount } from '../../src/testing/fakes/fake-clock.ts';
import { FakeClock, FakeListWatcher } from '../../src/testing/index.ts';
import { toStatus } from '../../src/watch/event.ts';
import { runs } from '../runs.ts';
import { FaultySource, type Streaming, settle, type Thing, thing } from '../unit/faulty-source.ts';

const RUNS = runs(300);

const name = fc.constantFrom('a', 'b', 'c', 'd');
const code = fc.constantFrom(401, 404, 410, 429, 500, 503, 504);
const times = fc.integer({ min: 1, max: 3 });

type Command =
  | { readonly do: 'add' | 'delete'; readonly name: string }
  | { readonly do: 'bookmark' | 'cut' | 'expire' | 'hold' | 'release' | 'mute' | 'storeFails' | 'room' | 'settle' }
  | { readonly do: 'late' | 'refreshNow' | 'refreshInside' }
  | { readonly do: 'refresh'; readonly ticks: number }
  | { readonly do: 'error'; readonly code: number }
  | { readonly do: 'failList' | 'failWatch'; readonly code: number; readonly times: number }
  | { readonly do: 'unreachable' | 'shortEnds'; readonly times: number }
  | { readonly do: 'streaming'; readonly how: Streaming }
  | { readonly do: 'cutAfter'; readonly events: number }
  | { readonly do: 'advance'; readonly ms: number };

const command: fc.Arbitrary<Command> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constantFrom('add' as const, 'add' as const, 'delete' as const), name }) },
  { weight: 6, arbitrary: fc.constant({ do: 'settle' as const }) },
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constantFrom('bookmark' as const, 'cut', 'expire', 'hold', 'release', 'mute', 'storeFails', 'room', 'late'),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constantFrom('refreshNow' as const, 'refreshInside' as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('refresh' as const), ticks: fc.nat(9) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('error' as const), code }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constantFrom('failList' as const, 'failWatch' as const), code, times }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constantFrom('unreachable' as const, 'shortEnds' as const), times }) },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('streaming' as const),
      how: fc.constantFrom<Streaming>('yes', 'refused', 'ignored'),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('cutAfter' as const), events: fc.integer({ min: 0, max: 4 }) }) },
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constant('advance' as const), ms: fc.constantFrom(1, 900, 5_000, 40_000, 400_000) }),
  },
);

/** A store that checks what it is told: it may throw once, and it may be full. */
class ModelStore implements ReflectorStore<Thing> {
  objects: Record<string, Thing> = {};
  readonly versions: number[] = [];
  fails: boolean = false;
  stopped: boolean = false;
  calls: number = 0;
  onCall: () => void = () => {};
  #full: Promise<void> | undefined;
  #free: () => void = () => {};
  add({ ...object }: Thing): void {
    this.#call(object.metadata.resourceVersion);
    this.objects[object.metadata.name] = object;
  }
  update(object: Thing): void {
    this.add(object);
  }
  delete(object: Thing): void {
    this.#call(object.metadata.resourceVersion);
    delete this.objects[object.metadata.name];
  }
  replace(list: Iterable<Thing>, resourceVersion: string): void {
    this.#call(resourceVersion);
    this.objects = Object.fromEntries(Array.from(list, (object) => [object.metadata.name, object]));
  }
  bookmark(resourceVersion: string): void {
    this.#call(resourceVersion);
  }
  async room(signal?: AbortSignal): Promise<void> {
    if (!this.#full) return;
    await Promise.race([
      this.#full,
      new Promise<void>((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason), { once: true })),
    ]);
  }
  toggle(): void {
    if (this.#full) {
      this.#full = undefined;
      this.#free();
    } else {
      this.#full = new Promise((resolve) => {
        this.#free = resolve;
      });
    }
  }
  get full(): boolean {
    return this.#full !== undefined;
  }
  #call(version: string = ''): void {
    this.calls++;
    this.onCall();
    expect(this.stopped).toBe(false);
    if (this.fails) {
      this.fails = false;
      throw new Error('the store is on strike');
    }
    this.versions.push(Number(version));
  }
}

class World {
  readonly source: FaultySource = new FaultySource({ history: 6 });
  readonly store: ModelStore = new ModelStore();
  readonly clock: FakeClock = new FakeClock(1_000);
  readonly abort: AbortController = new AbortController();
  readonly listeners: ListenerCount = new ListenerCount(this.abort.signal);
  readonly reflector: Reflector<Thing>;
  readonly running: Promise<void>;
  readonly reached: string[] = [];
  /** What became of each refresh: how many versions its store was behind the source's at the call, or its error. */
  readonly refreshes: (number | unknown)[] = [];
  asked: number = 0;
  /** Whether the next callback asks for a refresh. */
  armed: boolean = false;
  muted: boolean = false;
  #value: number = 0;
  #release: () => void = () => {};
  #deliver: () => void = () => {};

  constructor(options: ReflectorOptions<Thing>) {
    const { clock, store } = this;
    const fire = (): void => {
      if (this.armed) this.refresh();
    };
    store.onCall = fire;
    const onStateChange = (): void => {
      this.look();
      fire();
    };
    this.reflector = new Reflector(this.source, store, { ...options, clock, onStateChange, onError: fire });
    this.running = this.reflector.run(this.abort.signal);
  }

  look(): void {
    this.reached.push(this.reflector.resourceVersion);
  }

  async take(step: Command): Promise<void> {
    const { source, store } = this;
    const { fake } = source;
    const doing: { readonly [Name in Command['do']]: (step: never) => unknown } = {
      add: (one: { name: string }) => source.add(thing(one.name, this.#value++)),
      delete: (one: { name: string }) => source.delete(one.name),
      bookmark: () => fake.bookmark(),
      cut: () => fake.cut(),
      expire: () => fake.expire(),
      hold: () => {
        this.#release();
        this.#release = fake.hold();
      },
      release: () => this.#release(),
      mute: () => {
        this.muted = true;
        source.mute();
      },
      storeFails: () => {
        store.fails = true;
      },
      room: () => store.toggle(),
      late: () => {
        this.#deliver();
        source.late = new Promise((resolve) => {
          this.#deliver = resolve;
        });
      },
      refresh: async (one: { ticks: number }) => {
        for (let i = 0; i < one.ticks; i++) await undefined;
        this.refresh();
      },
      refreshNow: () => this.refreshNow(),
      refreshInside: () => {
        this.armed = true;
      },
      settle,
      error: (one: { code: number }) => fake.sendError(toStatus({ code: one.code, reason: 'InternalError', message: '' })),
      failList: (one: { code: number; times: number }) => fake.failList(FakeListWatcher.refusal(one.code, 'No'), one.times),
      failWatch: (one: { code: number; times: number }) => fake.failWatch(FakeListWatcher.refusal(one.code, 'No'), one.times),
      unreachable: (one: { times: number }) => {
        source.unreachable = one.times;
      },
      shortEnds: (one: { times: number }) => {
        source.shortEnds = one.times;
      },
      streaming: (one: { how: Streaming }) => {
        source.streaming = one.how;
      },
      cutAfter: (one: { events: number }) => fake.cutAfter(one.events),
      advance: (one: { ms: number }) => this.clock.advance(one.ms),
    };
    await doing[step.do](step as never);
    this.look();
  }

  refresh(): void {
    this.armed = false;
    this.asked++;
    const version = Number(this.source.fake.resourceVersion);
    this.reflector.refresh().then(
      () => this.refreshes.push(Math.max(0, version - (this.store.versions.at(-1) ?? -1))),
      (error: unknown) => this.refreshes.push(error),
    );
  }

  /** The newest state is asked for at once, unless it is being asked for; or after that, so that nobody can hold it up. */
  async refreshNow(): Promise<void> {
    const { asked } = this.source;
    const known = asked.length;
    const isFree = this.asked === this.refreshes.length || this.reflector.state.phase === 'waiting';
    this.refresh();
    await settle();
    if (isFree) expect(asked.slice(known)).toContainEqual(expect.stringMatching(/^(list|stream) ( |$)/));
  }

  /** All faults stop. */
  mend(): void {
    const { fake } = this.source;
    this.armed = false;
    this.source.late = undefined;
    this.#deliver();
    this.#release();
    fake.failList();
    fake.failWatch();
    fake.cutAfter(Number.POSITIVE_INFINITY);
    this.source.unreachable = this.source.shortEnds = 0;
    this.store.fails = false;
    if (this.store.full) this.store.toggle();
  }

  async pass(ms: number, step: number): Promise<void> {
    for (let spent = 0; spent < ms; spent += step) {
      await settle();
      this.clock.advance(step);
    }
    await settle();
    this.look();
  }
}

describe('whatever the server does', () => {
  test('P10.1 to P10.3, Convergent: once faults stop, the store is what the server has, within one backoff and one relist', async () => {
    const options = fc.record({
      streamingList: fc.boolean(),
      pageSize: fc.constantFrom(undefined, 0, 1),
      idleTimeoutMs: fc.constantFrom(0, 20_000),
      resyncMs: fc.constantFrom(0, 7_000),
      internalErrorRetryMs: fc.constantFrom(0, 60_000),
      random: fc.double({ min: 0, max: 0.999, noNaN: true }).map((value) => () => value),
    });
    const property = fc.asyncProperty(options, fc.array(command, { maxLength: 40 }), async (given, steps) => {
      const world = new World(given);
      for (const step of steps) await world.take(step);
      world.mend();
      // A stream that never ends its initial state is given up after 30 s, a link that is dead after at most 610 s.
      if (world.muted) await world.pass(620_000, 20_000);
      if (world.source.streaming === 'ignored') await world.pass(60_000, 10_000);
      await world.pass(61_000, 20_000);
      expect(world.store.objects).toEqual(world.source.state);
      world.source.add(thing('z'));
      await world.pass(2_000, 1_000); // a watch that was idle is being opened again
      expect(world.store.objects).toEqual(world.source.state);
      expect(world.source.wrong).toEqual([]);
      expect(world.refreshes).toEqual(Array.from({ length: world.asked }, () => 0));
      for (const list of [world.store.versions, world.reached.map(Number)]) {
        expect(list).toEqual([...list].sort((a, b) => a - b));
      }
      await expectStopped(world);
    });
    await fc.assert(property, { numRuns: RUNS });
  });

  test('S14, S15: it stops at any step, at once, and leaves nothing behind', async () => {
    const property = fc.asyncProperty(fc.boolean(), fc.array(command, { maxLength: 25 }), async (streamingList, steps) => {
      const world = new World({ streamingList, resyncMs: 7_000, idleTimeoutMs: 20_000 });
      for (const step of steps) await world.take(step);
      await expectStopped(world);
    });
    await fc.assert(property, { numRuns: RUNS });
  });
});

async function expectStopped(world: World): Promise<void> {
  world.abort.abort();
  world.store.fails = false;
  const { calls } = world.store;
  await world.running;
  await settle();
  expect(world.refreshes).toHaveLength(world.asked);
  for (const each of world.refreshes) expect(each === 0 || (each as { code?: string }).code === 'CLOSED').toBe(true);
  world.store.stopped = true;
  world.look();
  expect(world.store.calls).toBe(calls);
  expect(world.reflector.state).toMatchObject({ phase: 'stopped', nextAttemptMs: undefined });
  expect([world.clock.pending, world.listeners.count]).toEqual([0, 0]);
  world.mend();
  await settle();
  expect(world.source.fake.openWatches).toBe(0);
  expect(world.source.ends).toBe(world.source.opened);
}
