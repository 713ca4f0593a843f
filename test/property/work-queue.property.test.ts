// Commands against a model: after each, the queue and the model agree about everything that can be seen. So adds while a key is in work
// are one more run (P13.2), adds while it is queued are one (P13.3), keys of one priority come in the order of their adds (P13.5), and
// delays double with each failure until `forget` (P13.7).
// Then whole runs, with workers whose steps a scheduler orders: no key is in two hands (P13.1), each add is followed by a start (P13.4),
// and a drain ends and leaves nothing (P13.6); together these are S19. P13.8 is in rate-limiters.property.test.ts.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { checkSerial, type QueueStep } from '../../src/testing/checkers/check-serial.ts';
import { GUARANTEES } from '../../src/testing/checkers/history.ts';
import { FakeClock } from '../../src/testing/fakes/fake-clock.ts';
import { exponential, WorkQueue } from '../../src/workqueue/index.ts';
import { runs } from '../runs.ts';
import { QueueModel } from './queue-model.ts';

const RUNS = runs(1_500);
const timeout = Math.max(30_000, 20 * RUNS);
const KEYS = ['a', 'b', 'c', 'd', 'e'];
const AGING_MS = 3;

interface Real {
  readonly clock: FakeClock;
  readonly queue: WorkQueue<string>;
  readonly got: (string | undefined)[];
  readonly depths: { depth: number };
  drains: number;
  drained: number;
}

type Do = (model: QueueModel, real: Real) => void;

class Command implements fc.AsyncCommand<QueueModel, Real> {
  private readonly name: string;
  private readonly act: Do;

  constructor(name: string, act: Do) {
    this.name = name;
    this.act = act;
  }

  check(): boolean {
    return true;
  }

  async run(model: QueueModel, real: Real): Promise<void> {
    this.act(model, real);
    for (let i = 0; i < 4; i++) await Promise.resolve();
    const { queue, clock } = real;
    const seen = [queue.size, queue.inWork, queue.delayed, queue.shuttingDown, KEYS.map((key) => queue.requeues(key)).join()];
    const failures = KEYS.map((key) => model.failures.get(key) ?? 0).join();
    expect(seen).toEqual([model.queued.length, model.hands.length, model.delays.length, model.ending, failures]);
    expect(real.got).toEqual(model.got);
    expect(real.drained).toBe(model.isDrained ? real.drains : 0);
    // One timer for all delays, and none without.
    expect(clock.pending).toBe(Math.min(1, model.delays.length) + (model.hands.length > 0 && !model.ending ? 1 : 0));
    const owed = model.hands.filter(({ again }) => again !== undefined).length;
    expect(real.depths.depth).toBe(model.queued.length + owed);
  }

  toString(): string {
    return this.name;
  }
}

const keyArb = fc.constantFrom(...KEYS);
const priorityArb = fc.constantFrom(0, 0, 0, 1, -1, 4);
const delayArb = fc.integer({ min: -1, max: 12 });
const command = <T>(
  name: string,
  arb: fc.Arbitrary<T>,
  act: (value: T, model: QueueModel, real: Real) => void,
): fc.Arbitrary<Command> => arb.map((value) => new Command(`${name}(${value})`, (model, real) => act(value, model, real)));

const COMMANDS = [
  command('add', fc.tuple(keyArb, priorityArb), ([key, priority], model, { queue }) => {
    model.add(key, priority);
    queue.add(key, { priority });
  }),
  command('addAfter', fc.tuple(keyArb, delayArb, priorityArb), ([key, delayMs, priority], model, { queue }) => {
    model.addAfter(key, delayMs, priority);
    queue.addAfter(key, delayMs, { priority });
  }),
  command('addRateLimited', keyArb, (key, model, { queue }) => {
    model.addRateLimited(key);
    queue.addRateLimited(key);
  }),
  command('forget', keyArb, (key, model, { queue }) => {
    model.failures.delete(key);
    queue.forget(key);
  }),
  command('cancel', keyArb, (key, model, { queue }) => expect(queue.cancel(key)).toBe(model.cancel(key))),
  command('get', fc.constant(''), (_, model, { queue, got }) => {
    model.get();
    void queue.get().then((key) => got.push(key));
  }),
  command('aborted get', fc.constant(''), (_, model, { queue, got }) => {
    const controller = new AbortController();
    const had = model.got.length;
    model.get();
    void queue.get({ signal: controller.signal }).then(
      (key) => got.push(key),
      () => {},
    );
    if (model.got.length === had) model.waiting--;
    controller.abort();
  }),
  command('done', keyArb, (key, model, { queue }) => {
    model.done(key);
    queue.done(key);
  }),
  command('done', fc.nat(), (nth, model, { queue }) => {
    const { key = 'a' } = model.hands[nth % Math.max(1, model.hands.length)] ?? {};
    model.done(key);
    queue.done(key);
  }),
  command('advance', fc.integer({ min: 1, max: 6 }), (ms, model, { clock }) => {
    model.advance(ms);
    clock.advance(ms);
  }),
];
const ENDS = [
  command('drain', fc.constant(''), (_, model, real) => {
    model.end();
    real.drains++;
    void real.queue.drain().then(() => real.drained++);
  }),
];

describe('a work queue does what the model does', { timeout }, () => {
  it('P13.2, P13.3, P13.5, P13.7: with any commands, in any order', async () => {
    await fc.assert(
      fc.asyncProperty(fc.commands([...COMMANDS, ...COMMANDS, ...ENDS], { maxCommands: 60 }), async (commands) => {
        const clock = new FakeClock();
        const depths = { depth: 0 };
        const queue = new WorkQueue<string>({
          clock,
          agingMs: AGING_MS,
          rateLimiter: exponential({ baseMs: 1 }),
          onMetric: ({ name, value }) => {
            if (name === 'depth') depths.depth = value;
          },
        });
        const real: Real = { clock, queue, got: [], depths, drains: 0, drained: 0 };
        await fc.asyncModelRun(() => ({ model: new QueueModel(AGING_MS), real }), commands);
        queue.shutDown();
        expect(clock.pending).toBe(0);
      }),
      { numRuns: RUNS },
    );
  });
});

/** What happens around the workers, besides their own steps. */
const deedArb = fc.oneof(
  { weight: 6, arbitrary: fc.record({ what: fc.constant('add' as const), key: keyArb, priority: priorityArb }) },
  { weight: 2, arbitrary: fc.record({ what: fc.constant('after' as const), key: keyArb, delayMs: delayArb }) },
  { weight: 3, arbitrary: fc.record({ what: fc.constant('tick' as const), ms: fc.integer({ min: 1, max: 10 }) }) },
  { weight: 1, arbitrary: fc.record({ what: fc.constant('abort' as const) }) },
);
const planArb = fc.record({
  workers: fc.integer({ min: 1, max: 4 }),
  deeds: fc.array(deedArb, { maxLength: 25 }),
  fails: fc.infiniteStream(fc.constantFrom(false, false, true)),
  adds: fc.infiniteStream(fc.option(keyArb, { freq: 3 })),
});

describe(`Serial: ${GUARANTEES.Serial}`, { timeout }, () => {
  it('P13.1, P13.4, P13.6, S19: with workers that fail, add, and are replaced, in any order of their steps; and a drain leaves nothing', async () => {
    await fc.assert(
      fc.asyncProperty(planArb, fc.scheduler(), async ({ workers, deeds, fails, adds }, scheduler) => {
        const clock = new FakeClock();
        const queue = new WorkQueue<string>({ clock, agingMs: AGING_MS, rateLimiter: exponential({ baseMs: 1 }) });
        const steps: QueueStep<string>[] = [];
        const ran = new Map<string, number>();
        const add = (key: string): void => {
          if (!queue.shuttingDown) steps.push({ step: 'add', key });
          queue.add(key);
        };
        const work = async (key: string, { signal }: { signal: AbortSignal }): Promise<void> => {
          steps.push({ step: 'get', key });
          ran.set(key, (ran.get(key) ?? 0) + 1);
          try {
            await scheduler.schedule(Promise.resolve(), `work on ${key}`);
            const more = adds.next().value;
            if (more) add(more);
            await scheduler.schedule(Promise.resolve(), `more work on ${key}`);
            if (fails.next().value) throw new Error('failed');
          } catch (error) {
            steps.push({ step: signal.aborted ? 'add' : 'delay', key }); // so that run tries it again
            throw error;
          } finally {
            steps.push({ step: 'done', key });
          }
        };
        let controller = new AbortController();
        const runs: Promise<void>[] = [];
        const start = (): void => {
          controller = new AbortController();
          runs.push(queue.run(workers, work, { signal: controller.signal, onError: () => {} }));
        };
        start();
        const told = scheduler.scheduleSequence(
          deeds.map((deed) => ({
            label: JSON.stringify(deed),
            builder: async () => {
              if (deed.what === 'add') add(deed.key);
              else if (deed.what === 'tick') clock.advance(deed.ms);
              else if (deed.what === 'after') {
                steps.push({ step: 'delay', key: deed.key });
                queue.addAfter(deed.key, deed.delayMs);
              } else {
                controller.abort();
                start();
              }
            },
          })),
        );
        await scheduler.waitFor(told.task);
        steps.push({ step: 'shutdown' });
        await scheduler.waitFor(queue.drain());
        steps.push({ step: 'drained' });
        await scheduler.waitFor(Promise.all(runs));
        expect(checkSerial({ steps })?.message).toBeUndefined();
        expect([queue.size, queue.inWork, queue.delayed, clock.pending]).toEqual([0, 0, 0, 0]);
      }),
      { numRuns: RUNS },
    );
  });
});
