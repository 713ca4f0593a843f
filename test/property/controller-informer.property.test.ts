// A controller whose informer has a source that fails in every way copies a collection: when faults stop, the copy is the collection,
// whatever happened before, and nothing is left after the end.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Informer } from '../../src/cache/index.ts';
import { FakeClock, FakeListWatcher } from '../../src/testing/index.ts';
import { Controller, exponential, WorkQueue } from '../../src/workqueue/index.ts';
import { runs } from '../runs.ts';
import { type Pod, pod } from '../unit/informer-support.ts';
import { fate, macrotask } from '../unit/support.ts';

const RUNS = runs(200);
const timeout = Math.max(30_000, 100 * RUNS);
const name = fc.constantFrom('a', 'b', 'c', 'd');
const step = fc.oneof(
  { weight: 8, arbitrary: fc.tuple(fc.constant('set' as const), name, fc.nat({ max: 9 })) },
  { weight: 3, arbitrary: fc.tuple(fc.constant('delete' as const), name, fc.constant(0)) },
  {
    weight: 3,
    arbitrary: fc.tuple(fc.constantFrom('cut' as const, 'expire' as const, 'bookmark' as const), name, fc.constant(0)),
  },
  {
    weight: 2,
    arbitrary: fc.tuple(fc.constantFrom('failWatch' as const, 'failList' as const), name, fc.integer({ min: 1, max: 2 })),
  },
  { weight: 3, arbitrary: fc.tuple(fc.constant('advance' as const), name, fc.integer({ min: 1, max: 3_000 })) },
  { weight: 3, arbitrary: fc.tuple(fc.constant('turns' as const), name, fc.integer({ min: 1, max: 3 })) },
);
type Step = typeof step extends fc.Arbitrary<infer S> ? S : never;

async function act(source: FakeListWatcher<Pod>, clock: FakeClock, [what, key, number]: Step): Promise<void> {
  if (what === 'set') source.modify(pod(key, number));
  else if (what === 'delete') source.delete(pod(key));
  else if (what === 'failWatch' || what === 'failList')
    source[what](FakeListWatcher.refusal(410 + 19 * (number - 1), 'No'), number);
  else if (what === 'advance') clock.advance(number);
  else if (what === 'turns') for (let i = 0; i < number; i++) await macrotask();
  else source[what]();
}

describe('a controller over an informer', { timeout }, () => {
  it('converges when faults stop, with reconciles that fail and wait for what they wrote', async () => {
    const plan = fc.record({
      steps: fc.array(step, { maxLength: 30 }),
      fails: fc.infiniteStream(fc.constantFrom(false, false, true)),
      wrotes: fc.infiniteStream(fc.constantFrom(false, true)),
    });
    await fc.assert(
      fc.asyncProperty(plan, async ({ steps, fails, wrotes }) => {
        const clock = new FakeClock();
        const source = new FakeListWatcher<Pod>({ objects: [pod('a', 1), pod('b', 1)], history: 5 });
        const informer = new Informer<Pod>(source, { clock, random: () => 0.5, onError: () => {} });
        const copy = new Map<string, number>();
        let calm = false;
        const controller = new Controller<Pod>({
          informers: [informer],
          queue: new WorkQueue({ clock, rateLimiter: exponential({ baseMs: 10, maxMs: 1_000 }) }),
          onError: () => {},
          reconcile: async (key, { wrote }) => {
            const found = informer.store.get(key);
            if (wrotes.next().value) wrote({ metadata: { resourceVersion: source.resourceVersion } });
            await Promise.resolve();
            if (!calm && fails.next().value) throw new Error('failed');
            if (found) copy.set(key, found.value);
            else copy.delete(key);
          },
        });
        const stopper = new AbortController();
        const run = fate(controller.run(stopper.signal));
        for (const each of steps) await act(source, clock, each);
        calm = true;
        source.failList();
        source.failWatch();
        for (let i = 0; i < 8; i++) {
          clock.advance(12_000);
          for (let j = 0; j < 4; j++) await macrotask();
        }
        const { items } = await source.list();
        expect(new Map([...copy].sort())).toEqual(
          new Map(items.map(({ metadata, value }) => [metadata.name, value] as const).sort()),
        );
        stopper.abort();
        for (let j = 0; j < 4; j++) await macrotask();
        expect([run, clock.pending, source.openWatches]).toEqual([{ state: 'resolved', value: undefined }, 0, 0]);
      }),
      { numRuns: RUNS },
    );
  });
});
