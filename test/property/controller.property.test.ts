// A controller over two informers, while everything around it happens in any order: changes that arrive late, reconciles that fail,
// take their time, requeue themselves and wait for what they wrote, and a stop at any step. What it did is Serial; nothing is left.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { checkSerial, type QueueStep } from '../../src/testing/checkers/check-serial.ts';
import { FakeClock } from '../../src/testing/fakes/fake-clock.ts';
import { Controller, type ControllerHandler, exponential, type ReconcileContext, WorkQueue } from '../../src/workqueue/index.ts';
import { runs } from '../runs.ts';
import { FakeInformer, type Thing } from '../unit/fake-informer.ts';

const RUNS = runs(1_000);
const timeout = Math.max(30_000, 20 * RUNS);
const MAX_RETRIES = 2;
const WROTE_TIMEOUT_MS = 20;
const names = fc.constantFrom('a', 'b', 'c');
const which = fc.constantFrom<'owners' | 'owned'>('owners', 'owned');

const deedArb = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      what: fc.constant('set' as const),
      which,
      name: names,
      owner: fc.constantFrom('a', 'b', 'bad', undefined),
    }),
  },
  { weight: 2, arbitrary: fc.record({ what: fc.constant('delete' as const), which, name: names }) },
  { weight: 2, arbitrary: fc.record({ what: fc.constantFrom('lag' as const, 'deliver' as const, 'resync' as const), which }) },
  { weight: 2, arbitrary: fc.record({ what: fc.constantFrom('stale' as const, 'fresh' as const), which }) },
  { weight: 3, arbitrary: fc.record({ what: fc.constant('tick' as const), ms: fc.integer({ min: 1, max: 12 }) }) },
  { weight: 1, arbitrary: fc.record({ what: fc.constant('add' as const), name: names }) },
);
type Deed = typeof deedArb extends fc.Arbitrary<infer D> ? D : never;

const planArb = fc.record({
  deeds: fc.array(deedArb, { maxLength: 25 }),
  /** After how many deeds each informer has its first list. */
  syncedAt: fc.tuple(fc.nat({ max: 4 }), fc.nat({ max: 4 })),
  started: fc.tuple(fc.boolean(), fc.boolean()),
  /** After how many deeds it is stopped; none: when everything is quiet. */
  abortAt: fc.option(fc.nat({ max: 25 })),
  concurrency: fc.integer({ min: 1, max: 3 }),
  ends: fc.infiniteStream(fc.constantFrom('well', 'well', 'fail', 'fail', 'requeue')),
  writes: fc.infiniteStream(fc.constantFrom(0, 0, 1, 3)),
});
type Plan = typeof planArb extends fc.Arbitrary<infer P> ? P : never;

const keysOf = ({ owner }: Thing): readonly string[] => {
  if (owner === 'bad') throw new Error('no owner');
  return owner === undefined ? [] : [owner];
};

/** Notes the keys that a call of the handler concerns, by the rules of the documents, before the handler hears of it. */
function noting(handler: ControllerHandler<Thing>, note: (object: Thing) => void): ControllerHandler<Thing> {
  const { onAdd, onUpdate, onDelete } = handler;
  return {
    onAdd(object) {
      note(object);
      onAdd(object);
    },
    onUpdate(old, object) {
      note(old);
      note(object);
      onUpdate(old, object);
    },
    onDelete(object) {
      note(object);
      onDelete(object);
    },
  };
}

class World {
  readonly clock: FakeClock = new FakeClock();
  readonly queue: WorkQueue<string> = new WorkQueue({ clock: this.clock, rateLimiter: exponential({ baseMs: 1, maxMs: 8 }) });
  readonly steps: QueueStep<string>[] = [];
  readonly wrong: string[] = [];
  readonly stopper: AbortController = new AbortController();
  readonly informers: Record<'owners' | 'owned', FakeInformer>;
  readonly controller: Controller<Thing>;
  runs: number = 0;
  calm: boolean = false;
  over: boolean = false;
  private readonly plan: Plan;
  private readonly scheduler: fc.Scheduler;
  private readonly wrote: Map<string, { readonly version: number; readonly untilMs: number }[]> = new Map();

  constructor(plan: Plan, scheduler: fc.Scheduler) {
    this.plan = plan;
    this.scheduler = scheduler;
    const informers = plan.started.map((started) => new FakeInformer(this.clock, { synced: false, started }));
    const [owners, owned] = informers as [FakeInformer, FakeInformer];
    this.informers = { owners, owned };
    this.note(owners, ({ metadata }) => [metadata.name]);
    this.note(owned, ({ owner }) => (owner === undefined || owner === 'bad' ? [] : [owner]));
    this.controller = new Controller<Thing>({
      informers: [owners, { informer: owned, keysOf }],
      queue: this.queue,
      concurrency: plan.concurrency,
      maxRetries: MAX_RETRIES,
      wroteTimeoutMs: WROTE_TIMEOUT_MS,
      onError: (error, { during }) => {
        if (during === 'event' && `${error}` !== 'Error: no owner') this.wrong.push(`told ${error}`);
        if (during === 'reconcile' && `${error}` !== 'Error: failed') this.wrong.push(`told ${error}`);
      },
      reconcile: (key, context) => this.reconcile(key, context),
    });
  }

  act(deed: Deed): void {
    if (deed.what === 'tick') this.clock.advance(deed.ms);
    else if (deed.what === 'add') {
      this.add(deed.name);
      this.queue.add(deed.name);
    } else {
      const informer = this.informers[deed.which];
      if (deed.what === 'set') informer.set(deed.name, deed.owner);
      else if (deed.what === 'delete') informer.delete(deed.name);
      else if (deed.what === 'resync') informer.resync();
      else if (deed.what === 'stale') informer.stale = true;
      else if (deed.what === 'lag') informer.lagging = true;
      else if (deed.what === 'deliver') {
        informer.lagging = false;
        informer.deliver();
      } else {
        informer.stale = false;
        informer.catchUp();
      }
    }
  }

  /** All is delivered, nothing fails any more, and time passes until nothing is left to do. */
  async settle(): Promise<void> {
    this.calm = true;
    for (const informer of Object.values(this.informers)) {
      informer.lagging = false;
      informer.sync();
    }
    for (let round = 0; round < 100; round++) {
      await this.scheduler.waitIdle();
      if (this.queue.size + this.queue.inWork + this.queue.delayed === 0) return;
      this.clock.advance(10);
    }
    this.wrong.push('it does not come to rest');
  }

  private add(key: string): void {
    if (!this.queue.shuttingDown) this.steps.push({ step: 'add', key });
  }

  private note(informer: FakeInformer, keys: (object: Thing) => readonly string[]): void {
    const { addHandler } = FakeInformer.prototype;
    informer.addHandler = (handler, options) =>
      addHandler.call(
        informer,
        noting(handler, (object) => {
          for (const key of keys(object)) this.add(key);
        }),
        options,
      );
  }

  private async reconcile(
    key: string,
    { signal, attempt, wrote }: ReconcileContext,
  ): Promise<{ requeueAfterMs: number } | undefined> {
    const { owners, owned } = this.informers;
    this.runs++;
    this.steps.push({ step: 'get', key });
    if (this.over) this.wrong.push('a reconcile began after the end');
    if (!owners.hasSynced || !owned.hasSynced) this.wrong.push('a reconcile began before all were synced');
    if (attempt > MAX_RETRIES + 1) this.wrong.push(`attempt ${attempt}`);
    for (const { version, untilMs } of this.wrote.get(key) ?? []) {
      if (owners.reached < version && this.clock.now() < untilMs) this.wrong.push(`${key} ran before version ${version}`);
    }
    this.wrote.delete(key);
    await this.scheduler.schedule(Promise.resolve(), `work on ${key}`);
    const ahead = this.calm ? 0 : (this.plan.writes.next().value as number);
    if (ahead > 0) {
      const version = owners.version + ahead - 1; // there already, or yet to come
      wrote({ metadata: { resourceVersion: String(version || 1) } });
      this.wrote.set(key, [{ version, untilMs: this.clock.now() + WROTE_TIMEOUT_MS }]);
    }
    await this.scheduler.schedule(Promise.resolve(), `more work on ${key}`);
    const end = this.calm ? 'well' : (this.plan.ends.next().value as string);
    if (end !== 'well' && (end === 'requeue' || attempt <= MAX_RETRIES)) {
      if (!signal.aborted) this.steps.push({ step: 'delay', key });
    }
    this.steps.push({ step: 'done', key });
    if (end === 'fail') throw new Error('failed');
    return end === 'requeue' ? { requeueAfterMs: 3 } : undefined;
  }
}

describe('a controller', { timeout }, () => {
  it('is Serial, waits for what it wrote, misses no change, and leaves nothing, wherever it is stopped', async () => {
    await fc.assert(
      fc.asyncProperty(planArb, fc.scheduler(), async (plan, scheduler) => {
        const world = new World(plan, scheduler);
        const { controller, clock, queue, steps, stopper } = world;
        const informers = Object.values(world.informers);
        const run = controller.run(stopper.signal);
        const told = scheduler.scheduleSequence(
          plan.deeds.map((deed, at) => ({
            label: JSON.stringify(deed),
            builder: async () => {
              for (const [nth, syncedAt] of plan.syncedAt.entries()) if (syncedAt === at) informers[nth]?.sync();
              world.act(deed);
              if (plan.abortAt === at) stopper.abort();
            },
          })),
        );
        await scheduler.waitFor(told.task);
        if (!stopper.signal.aborted) {
          await world.settle();
          steps.push({ step: 'shutdown' }, { step: 'drained' });
          stopper.abort();
        }
        await scheduler.waitFor(run);
        world.over = true;
        const left = informers.flatMap(({ handlers, waiting }) => [handlers.size, waiting.size]);
        expect([queue.inWork, queue.delayed, clock.pending, ...left]).toEqual([0, 0, 0, 0, 0, 0, 0]);
        expect(informers.map(({ stops }) => stops)).toEqual(plan.started.map((started) => (started ? 0 : 1)));
        for (const informer of informers) informer.set('a', 'a');
        clock.advance(1_000);
        await scheduler.waitIdle();
        expect(world.wrong).toEqual([]);
        expect(checkSerial({ steps })?.message).toBeUndefined();
      }),
      { numRuns: RUNS },
    );
  });
});
