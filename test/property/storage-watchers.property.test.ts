// S8 and S13 of a storage in memory and of a cacher: nobody who does not read holds up those who do, and no update is lost.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { KubernetesObject } from '../../src/cache/index.ts';
import { Cacher, MemoryStorage, type Storage, type StorageEvent } from '../../src/storage/index.ts';
import { FakeClock } from '../../src/testing/index.ts';
import type { Watch } from '../../src/watch/watch.ts';
import { runs } from '../runs.ts';
import { settle } from '../unit/faulty-storage.ts';

const RUNS = runs(150);
const timeout = 30_000 + RUNS * 100;
const WINDOW = 6;

interface Counter extends KubernetesObject {
  readonly n: number;
}
const counter = (name: string, n: number): Counter => ({ metadata: { name }, n });
const versionOf = ({ object }: StorageEvent<Counter>): number => Number((object as Counter).metadata?.resourceVersion);

interface Made {
  readonly storage: Storage<Counter>;
  /** How many changes are kept. */
  kept(): number;
  close(): Promise<void>;
}

function memoryOf(): Made {
  const storage = new MemoryStorage<Counter>({ clock: new FakeClock(), maxHistoryItems: WINDOW });
  return { storage, kept: () => storage.stats.historyItems, close: () => storage.close() };
}

function cacherOf(): Made {
  const clock = new FakeClock();
  const memory = new MemoryStorage<Counter>({ clock });
  const storage = new Cacher<Counter>(memory, { clock, random: () => 0.5, windowItems: WINDOW });
  const close = async (): Promise<void> => {
    await storage.close();
    await memory.close();
  };
  return { storage, kept: () => storage.stats.window.items, close };
}

function readNow(watch: Watch<StorageEvent<Counter>>): StorageEvent<Counter>[] {
  const events: StorageEvent<Counter>[] = [];
  for (let event = watch.tryNext(); event; event = watch.tryNext()) events.push(event);
  return events;
}

describe.each([
  ['a storage in memory', memoryOf],
  ['a cacher', cacherOf],
])('%s', { timeout }, (_, make) => {
  test('S8: stuck watches among others: each write reaches the others at once, and what is kept for the stuck ones is bounded', async () => {
    const property = fc.asyncProperty(
      fc.integer({ min: 1, max: 4 }),
      fc.integer({ min: 0, max: 12 }),
      fc.array(fc.constantFrom('a', 'b', 'c'), { maxLength: 25 }),
      async (live, stuck, names) => {
        const { storage, kept, close } = make();
        const start = (await storage.create('first', counter('first', 0))).metadata?.resourceVersion as string;
        await storage.list();
        const open = (count: number): Promise<Watch<StorageEvent<Counter>>[]> =>
          Promise.all(Array.from({ length: count }, () => storage.watch({ resourceVersion: start })));
        const [reading, idle] = [await open(live), await open(stuck)];
        const written: number[] = [];
        for (const [n, name] of names.entries()) {
          const made = await storage.update(name, () => counter(name, n), { createIfMissing: true });
          written.push(Number(made.metadata?.resourceVersion));
          await settle();
          for (const watch of reading) expect(readNow(watch).map(versionOf)).toEqual([written.at(-1)]);
          expect(kept()).toBeLessThanOrEqual(WINDOW);
        }
        for (const watch of idle) {
          // It is behind, and gets all that it has missed, or hears that this is forgotten.
          const events = readNow(watch);
          if (names.length > WINDOW) expect(events.map(({ type }) => type)).toEqual(['ERROR']);
          else expect(events.map(versionOf)).toEqual(written);
        }
        await close();
      },
    );
    await fc.assert(property, { numRuns: RUNS });
  });

  test('S13: updates at once are all counted, in one order; what changes nothing is no event', async () => {
    const step = fc.record({ name: fc.constantFrom('a', 'b'), by: fc.constantFrom(0, 1, 5), turns: fc.nat(3) });
    const clients = fc.array(fc.array(step, { maxLength: 8 }), { minLength: 2, maxLength: 5 });
    const property = fc.asyncProperty(clients, async (plans) => {
      const { storage, close } = make();
      for (const name of ['a', 'b']) await storage.create(name, counter(name, 0));
      const { resourceVersion } = await storage.list();
      // Within the history of the storage in memory: what is read at once is kept.
      const watch = await storage.watch({ resourceVersion });
      const events: StorageEvent<Counter>[] = [];
      const reading = (async () => {
        for await (const event of watch) events.push(event);
      })();
      const client = async (steps: (typeof plans)[number]): Promise<void> => {
        for (const { name, by, turns } of steps) {
          const change = async (current: Counter): Promise<Counter> => {
            for (let turn = 0; turn < turns; turn++) await undefined;
            return { ...current, n: current.n + by };
          };
          await storage.update(name, change);
        }
      };
      await Promise.all(plans.map(client));
      const { items } = await storage.list();
      await settle();
      const all = plans.flat();
      for (const name of ['a', 'b']) {
        const effective = all.filter((each) => each.name === name && each.by > 0);
        const total = effective.reduce((sum, { by }) => sum + by, 0);
        expect(items.find(({ metadata }) => metadata?.name === name)?.n).toBe(total);
        const seen = events.filter(({ object }) => (object as Counter).metadata?.name === name);
        // One event for each, and each adds to the one before what one of them was to add.
        const values = seen.map(({ object }) => (object as Counter).n);
        const added = values.map((n, at) => n - (values[at - 1] ?? 0));
        expect(added.sort((one, other) => one - other)).toEqual(effective.map(({ by }) => by).sort((one, other) => one - other));
        expect(new Set(seen.map(versionOf)).size).toBe(seen.length);
      }
      watch.stop();
      await reading;
      await close();
    });
    await fc.assert(property, { numRuns: RUNS });
  });
});
