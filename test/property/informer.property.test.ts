// Whole runs of an informer: a server that changes and fails, handlers and watches that join, stall, throw and leave at any step,
// and a stop at any step. What every reader was told must fit together at each step, and come to the store, and to the server.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { filter } from '../../src/broadcast/filter.ts';
import { type HandlerRegistration, Informer, isInitialEventsEnd, type List, type ListWatcher } from '../../src/cache/index.ts';
import { FakeClock, FakeListWatcher } from '../../src/testing/index.ts';
import { type ObjectEvent, toStatus } from '../../src/watch/event.ts';
import type { Watch } from '../../src/watch/watch.ts';
import { runs } from '../runs.ts';
import { type Pod, pod } from '../unit/informer-support.ts';

const RUNS = runs(1_500);
const timeout = Math.max(60_000, 40 * RUNS);
const KEYS = ['a', 'b', 'c', 'd', 'e'];

/** Lets promises settle: so many turns of the microtask queue. */
async function turns(count: number): Promise<void> {
  for (let i = 0; i < count; i++) await Promise.resolve();
}

function frozen<O>(object: O): O {
  if (typeof object !== 'object' || object === null || Object.isFrozen(object)) return object;
  Object.freeze(object);
  for (const value of Object.values(object)) frozen(value);
  return object;
}

/** A source whose every list and event is frozen (S16). */
function frozenSource(source: FakeListWatcher<Pod>): ListWatcher<Pod> {
  return {
    list: async (options): Promise<List<Pod>> => frozen(structuredClone(await source.list(options))),
    watch: async (options) => filter(await source.watch(options), (event) => frozen(structuredClone(event))),
  };
}

type Reader = { readonly [Key in 'matches']: (one: Pod) => boolean };

/** What a handler, or the reader of a watch, knows: every call must fit to it. */
class Copy {
  readonly known: Map<string, Pod> = new Map();
  readonly matches: (one: Pod) => boolean;
  constructor({ matches }: Reader) {
    this.matches = matches;
  }
  added(one: Pod): void {
    expect(this.matches(one)).toBe(true);
    expect(this.known.has(one.metadata.name)).toBe(false);
    this.known.set(one.metadata.name, one);
  }
  updated(one: Pod, old?: Pod): void {
    const { name } = one.metadata;
    expect(this.matches(one)).toBe(true);
    expect(this.known.has(name)).toBe(true);
    if (old) expect(this.known.get(name)).toBe(old);
    this.known.set(name, one);
  }
  deleted(one: Pod): void {
    expect(this.known.delete(one.metadata.name)).toBe(true);
  }
  equals(store: readonly Pod[]): void {
    const matching = store.filter(this.matches);
    expect(new Map(matching.map((one) => [one.metadata.name, one]))).toEqual(this.known);
    for (const one of matching) expect(this.known.get(one.metadata.name)).toBe(one);
  }
}

interface HandlerPlan {
  /** What its calls do: return, return a promise that waits for `release`, throw, or reject. */
  readonly way: 'returns' | 'stalls' | 'throws' | 'rejects' | 'awaits';
  readonly filtered: boolean;
  readonly resyncMs: number | undefined;
  readonly overflow: 'coalesce' | 'disconnect';
  readonly capacity: number | undefined;
}

class HandlerRun {
  readonly copy: Copy;
  readonly registration: HandlerRegistration;
  readonly plan: HandlerPlan;
  /** What was in the store when it joined, if that was synced. */
  readonly initial: readonly string[];
  calls: number = 0;
  busy: boolean = false;
  over: boolean = false;
  failed: boolean = false;
  #release: () => void = () => {};

  constructor(informer: Informer<Pod>, plan: HandlerPlan) {
    this.plan = plan;
    this.copy = new Copy({ matches: plan.filtered ? ({ value }) => value % 2 === 0 : () => true });
    this.initial = informer.hasSynced
      ? informer.store
          .list()
          .filter(this.copy.matches)
          .map(({ metadata }) => metadata.name)
      : [];
    const { filtered, resyncMs, overflow, capacity } = plan;
    this.registration = informer.addHandler(
      {
        onAdd: (one, initial) =>
          this.call(() => {
            this.copy.added(one);
            if (initial) expect(this.registration.hasSynced).toBe(false);
            expect(informer.store.get(one.metadata.name) === undefined || informer.hasSynced).toBe(true);
          }),
        onUpdate: (old, one) =>
          this.call(() => {
            if (old === one) expect(resyncMs).not.toBe(0);
            if (old === one) expect(informer.store.get(one.metadata.name)).toBe(one); // in order with its changes
            this.copy.updated(one, old);
          }),
        onDelete: (one) => this.call(() => this.copy.deleted(one)),
      },
      { filter: filtered ? this.copy.matches : undefined, resyncMs, overflow, capacity },
    );
    this.registration.synced.catch(() => {});
  }

  private call(check: () => void): unknown {
    this.calls++;
    try {
      expect([this.busy, this.over]).toEqual([false, false]); // Serial, and nothing after its end
      check();
    } catch (error) {
      failures.push(error);
    }
    switch (this.plan.way) {
      case 'throws':
        throw new Error('handler');
      case 'rejects':
        return Promise.reject(new Error('handler'));
      case 'awaits':
        this.busy = true;
        return turns(3).then(() => {
          this.busy = false;
        });
      case 'stalls':
        if (this.released) return undefined;
        this.busy = true;
        return new Promise<void>((resolve) => {
          this.#release = () => {
            this.busy = false;
            resolve();
          };
        });
      default:
        return undefined;
    }
  }

  released: boolean = false;
  release(forGood: boolean): void {
    this.released = forGood;
    this.#release();
    this.#release = () => {};
  }
}

/** Assertions that failed inside of handlers, whose errors the informer would take for theirs. */
let failures: unknown[] = [];

class WatchRun {
  readonly copy: Copy;
  readonly watch: Watch<ObjectEvent<Pod>>;
  synced: boolean = false;

  constructor(informer: Informer<Pod>, filtered: boolean) {
    this.copy = new Copy({ matches: filtered ? ({ value }) => value % 2 === 0 : () => true });
    this.watch = informer.watch(filtered ? { filter: this.copy.matches } : {});
  }

  read(limit: number): void {
    for (let at = 0; at < limit; at++) {
      const event = this.watch.tryNext();
      if (event === undefined) return;
      if (event.type === 'BOOKMARK') {
        expect([isInitialEventsEnd(event), this.synced]).toEqual([true, false]);
        this.synced = true;
      } else if (event.type === 'ADDED') this.copy.added(event.object);
      else if (event.type === 'MODIFIED') this.copy.updated(event.object);
      else if (event.type === 'DELETED') this.copy.deleted(event.object);
      else throw new Error('nothing was lost');
      if (!this.synced) expect(event.type).toBe('ADDED');
    }
  }
}

interface World {
  readonly source: FakeListWatcher<Pod>;
  readonly clock: FakeClock;
  readonly informer: Informer<Pod>;
  readonly handlers: HandlerRun[];
  readonly watches: WatchRun[];
  readonly waits: Promise<void>[];
  readonly deleted: Set<string>;
  resume: () => void;
}

type Step = { readonly name: string; readonly act: (world: World) => void | Promise<void> };
const step = (name: string, act: Step['act']): Step => ({ name, act, toString: () => name }) as Step;
const key = fc.constantFrom(...KEYS);
const status = (code: number, reason: string) => toStatus({ code, reason, message: reason });
const refusal = fc.constantFrom(
  FakeListWatcher.refusal(410, 'Expired'),
  FakeListWatcher.refusal(429, 'TooManyRequests', { retryAfterSeconds: 1 }),
  FakeListWatcher.refusal(500, 'InternalError'),
  FakeListWatcher.refusal(504, 'Timeout'),
  FakeListWatcher.refusal(403, 'Forbidden'),
  new TypeError('network'),
);

const handlerPlan: fc.Arbitrary<HandlerPlan> = fc.record({
  way: fc.constantFrom<HandlerPlan['way'][]>('returns', 'stalls', 'stalls', 'throws', 'rejects', 'awaits'),
  filtered: fc.boolean(),
  resyncMs: fc.constantFrom(undefined, 0, 1_000, 3_000),
  overflow: fc.constantFrom<('coalesce' | 'disconnect')[]>('coalesce', 'coalesce', 'coalesce', 'disconnect'),
  capacity: fc.constantFrom(undefined, undefined, 3),
});

const steps: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: key.map((name) => step(`write ${name}`, ({ source }) => void source.add(nextPod(name)))),
  },
  {
    weight: 3,
    arbitrary: key.map((name) =>
      step(`delete ${name}`, ({ source, deleted }) => {
        if (source.delete(pod(name))) deleted.add(name);
      }),
    ),
  },
  {
    weight: 2,
    arbitrary: key.map((name) =>
      step(`re-create ${name}`, (world) => {
        if (world.source.delete(pod(name))) world.deleted.add(name);
        world.source.add(nextPod(name));
      }),
    ),
  },
  { weight: 2, arbitrary: fc.constant(step('cut', ({ source }) => source.cut())) },
  { weight: 1, arbitrary: fc.constant(step('expire', ({ source }) => source.expire())) },
  { weight: 1, arbitrary: fc.constant(step('bookmark', ({ source }) => source.bookmark())) },
  {
    weight: 1,
    arbitrary: fc
      .tuple(refusal, fc.integer({ min: 1, max: 2 }))
      .map(([error, times]) => step('failList', ({ source }) => source.failList(error, times))),
  },
  {
    weight: 1,
    arbitrary: fc
      .tuple(refusal, fc.integer({ min: 1, max: 2 }))
      .map(([error, times]) => step('failWatch', ({ source }) => source.failWatch(error, times))),
  },
  {
    weight: 1,
    arbitrary: fc
      .constantFrom(410, 500, 504)
      .map((code) =>
        step(`ERROR ${code}`, ({ source }) => source.sendError(status(code, code === 410 ? 'Expired' : 'InternalError'))),
      ),
  },
  {
    weight: 1,
    arbitrary: fc
      .constantFrom(1, 3, Number.POSITIVE_INFINITY)
      .map((events) => step(`cutAfter ${events}`, ({ source }) => source.cutAfter(events))),
  },
  {
    weight: 1,
    arbitrary: fc.constant(
      step('hold', (world) => {
        world.resume();
        world.resume = world.source.hold();
      }),
    ),
  },
  { weight: 1, arbitrary: fc.constant(step('resume', (world) => world.resume())) },
  {
    weight: 4,
    arbitrary: handlerPlan.map((plan) =>
      step(
        `join ${JSON.stringify(plan)}`,
        ({ informer, handlers }) => void (handlers.length < 6 && handlers.push(new HandlerRun(informer, plan))),
      ),
    ),
  },
  {
    weight: 2,
    arbitrary: fc.nat(5).map((at) =>
      step(`remove ${at}`, ({ handlers }) => {
        const run = handlers[at];
        if (!run) return;
        run.registration.remove();
        run.over = true;
        expect(run.registration.queued).toBe(0);
      }),
    ),
  },
  { weight: 3, arbitrary: fc.nat(5).map((at) => step(`release ${at}`, ({ handlers }) => handlers[at]?.release(false))) },
  {
    weight: 2,
    arbitrary: fc
      .boolean()
      .map((filtered) =>
        step(
          `watch ${filtered}`,
          ({ informer, watches }) => void (watches.length < 4 && watches.push(new WatchRun(informer, filtered))),
        ),
      ),
  },
  {
    weight: 3,
    arbitrary: fc
      .tuple(fc.nat(3), fc.integer({ min: 1, max: 4 }))
      .map(([at, limit]) => step(`read ${at} ${limit}`, ({ watches }) => watches[at]?.read(limit))),
  },
  {
    weight: 2,
    arbitrary: fc.constantFrom(500, 1_000, 5_000, 30_000).map((ms) => step(`advance ${ms}`, ({ clock }) => clock.advance(ms))),
  },
  {
    weight: 1,
    arbitrary: fc.constant(
      step('atLeast', ({ informer, source, waits }) => void waits.push(informer.atLeast(source.resourceVersion))),
    ),
  },
  { weight: 6, arbitrary: fc.constantFrom(1, 2, 3, 5, 10, 60).map((count) => step(`turns ${count}`, () => turns(count))) },
);

function nextPod(name: string): Pod {
  nextValue++;
  const { metadata } = pod(name);
  return { metadata: { ...metadata, uid: `${nextValue % 3}` }, value: nextValue };
}
let nextValue = 0;

/** What must hold after each step. */
function check({ informer, handlers, deleted }: World): void {
  if (failures.length > 0) throw failures[0];
  for (const { registration, copy, initial, over, plan } of handlers) {
    if (registration.hasSynced) expect(informer.hasSynced).toBe(true); // S11
    if (!registration.hasSynced || over || plan.overflow !== 'coalesce' || plan.capacity !== undefined) continue;
    for (const name of initial) expect(copy.known.has(name) || deleted.has(name) || plan.filtered).toBe(true); // P12.5
  }
}

const plans = fc.record({
  steps: fc.array(steps, { maxLength: 40, size: 'max' }),
  before: fc.nat(3),
  stop: fc.boolean(),
  streamingList: fc.boolean(),
  pageSize: fc.constantFrom(0, 2),
  resyncMs: fc.constantFrom(undefined, 1_000),
  transforms: fc.boolean(),
  initial: fc.subarray(KEYS),
});

describe('an informer', () => {
  test('TestHammerController, TestUpdate: converges, whatever fails; every reader folds to the store; after a stop nothing is left', {
    timeout,
  }, async () => {
    let stopped = 0;
    await fc.assert(
      fc.asyncProperty(plans, async (plan) => {
        failures = [];
        nextValue = 0;
        const source = new FakeListWatcher<Pod>({
          objects: plan.initial.map((name) => nextPod(name)),
          history: 30,
        });
        const clock = new FakeClock();
        const { streamingList, pageSize, resyncMs } = plan;
        const informer = new Informer<Pod>(frozenSource(source), {
          clock,
          random: () => 0.5,
          onError: () => {},
          transform: plan.transforms ? (one) => frozen({ ...one, value: one.value }) : undefined,
          streamingList,
          pageSize,
          resyncMs,
        });
        const world: World = {
          source,
          clock,
          informer,
          handlers: [],
          watches: [],
          waits: [],
          deleted: new Set(),
          resume: () => {},
        };
        const stop = new AbortController();
        let ended = false;
        const isEnded = (): void => {
          ended = true;
        };
        let run: Promise<void> | undefined;
        for (const [at, { act }] of plan.steps.entries()) {
          if (at === plan.before) run = informer.run(stop.signal).then(isEnded);
          await act(world);
          check(world);
        }
        run ??= informer.run(stop.signal).then(isEnded);
        if (plan.stop) stopped++;
        else await converge(world);
        await end(world, { stop, run });
        expect(ended).toBe(true);
      }),
      { numRuns: RUNS },
    );
    expect(stopped).toBeGreaterThan(RUNS / 10);
  });
});

/** No more faults: the store becomes equal to the server, and every reader to the store. */
async function converge(world: World): Promise<void> {
  const { source, clock, informer, handlers, watches, waits } = world;
  world.resume();
  source.failList();
  source.failWatch();
  source.cutAfter(Number.POSITIVE_INFINITY);
  for (const run of handlers) run.release(true);
  const rounds = 8; // of which each is longer than the longest delay
  for (let round = 0; round < rounds; round++) {
    await turns(300);
    clock.advance(round < 4 ? 70_000 : 0);
  }
  await turns(300);
  check(world);
  const { items } = await source.list();
  const sorted = (pods: readonly Pod[]): Pod[] =>
    [...pods].sort((one, other) => (one.metadata.name < other.metadata.name ? -1 : 1));
  expect(sorted(informer.store.list())).toEqual(sorted(items)); // S9
  expect(informer.hasSynced).toBe(true);
  await Promise.all(waits);
  for (const { copy, over, registration, plan } of handlers) {
    if (over) continue;
    const mayBeCut = plan.overflow === 'disconnect' || plan.capacity !== undefined;
    if (mayBeCut && !registration.hasSynced) continue;
    if (mayBeCut && registration.queued === 0 && copy.known.size !== informer.store.list().filter(copy.matches).length) continue;
    expect(registration.hasSynced).toBe(true);
    if (!mayBeCut) copy.equals(informer.store.list()); // S10, P12.3, P12.4
    expect(registration.queued).toBe(0);
  }
  for (const run of watches) {
    run.read(1_000);
    expect(run.synced).toBe(true);
    run.copy.equals(informer.store.list());
  }
}

/** S14, S15: stop, twice, and look for what is left. */
async function end(
  { source, clock, informer, handlers, watches, waits }: World,
  parts: { stop: AbortController; run: Promise<void> },
): Promise<void> {
  for (const wait of waits) wait.catch(() => {});
  parts.stop.abort();
  const calls = handlers.map((run) => run.calls);
  for (const run of handlers) run.over = true;
  const stops = [informer.stop(), informer.stop()];
  for (const run of handlers) run.release(true); // a call in progress completes
  await Promise.all([...stops, parts.run]);
  await Promise.allSettled([...waits, informer.synced, ...handlers.map(({ registration }) => registration.synced)]); // nothing pends
  await turns(50);
  expect(handlers.map((run) => run.calls)).toEqual(calls);
  expect([clock.pending, source.openWatches, informer.state.phase]).toEqual([0, 0, 'stopped']);
  for (const { watch } of watches) {
    while (watch.tryNext());
    expect(await watch.next()).toEqual({ done: true, value: undefined });
  }
  expect(handlers.map(({ registration }) => registration.queued)).toEqual(handlers.map(() => 0));
  if (failures.length > 0) throw failures[0];
}
