import { Indexer } from '../../src/cache/store/indexer.ts';
import { warmingUp } from '../warm.ts';
import type { Prepared, Settings } from '../workload.ts';

interface Numbered {
  readonly metadata: { readonly name: string; readonly namespace: string };
  readonly group: string;
}

/** Numbers of objects. Each value of the index has ten of them, so a result is as long in any store. */
export const STORE_SIZES = [1_000, 100_000] as const;
const RESULT = 10;
/** Values that are asked for, in turn: as many in any store, so that caches make no difference. */
const VALUES = 100;

function storeOf(size: number): Indexer<Numbered, 'group'> {
  const store = new Indexer({ indexers: { group: ({ group }: Numbered) => [group] } });
  for (let i = 0; i < size; i++) {
    store.add({ metadata: { name: `object-${i}`, namespace: `ns-${i % 20}` }, group: `group-${i % (size / RESULT)}` });
  }
  return store;
}

/** Measured: nanoseconds of `byIndex` per object that it returns, in a small and in a large store. */
export function prepareByIndex({ warmMs, roundMs }: Settings): Prepared {
  const tasks = STORE_SIZES.map((size) => {
    const store = storeOf(size);
    const all = store.indexValues('group');
    const values = Array.from({ length: VALUES }, (_, value) => all[(value * all.length) / VALUES] as string);
    let at = 0;
    return (count: number): number => {
      const began = performance.now();
      for (let i = 0; i < count; i++) {
        at = (at + 1) % VALUES;
        const found = store.byIndex('group', values[at] as string);
        if (found.length !== RESULT) throw new Error(`wrong answer: ${found.length} objects`);
      }
      return ((performance.now() - began) * 1e6) / (count * RESULT);
    };
  });
  const cold = warmingUp(warmMs);
  while (cold()) for (const task of tasks) task(1_000);
  return {
    async round() {
      return tasks.map((task) => task(Math.max(1_000, roundMs * 200)));
    },
  };
}
