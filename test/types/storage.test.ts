import { describe, expect, it } from 'vitest';
import type { BackedStorage, Cacher, CreatingOptions, MemoryStorage, Storage } from '../../src/storage/index.ts';
import { type Assignable, claim, compiles, type Equal } from './assert.ts';

interface Counter {
  readonly metadata: { readonly name: string; readonly resourceVersion?: string };
  readonly count: number;
}
const plusOne = (counter: Counter): Counter => ({ ...counter, count: counter.count + 1 });
const first: Counter = { metadata: { name: 'a' }, count: 0 };

async function updates(
  storages: readonly [Storage<Counter>, MemoryStorage<Counter>, BackedStorage<Counter>, Cacher<Counter>],
): Promise<void> {
  const [any, memory, backed, cacher] = storages;
  for (const storage of storages) await storage.update('a', () => first, { createIfMissing: true });
  for (const storage of [any, memory]) {
    const stored = await storage.update('a', (counter = first) => plusOne(counter), { createIfMissing: true });
    claim<Equal<typeof stored, Counter>>();
    await storage.update('a', (counter) => plusOne(counter));
    await storage.update('a', plusOne, { createIfMissing: false, ttlSeconds: 5 });
    await storage.update('a', async (counter) => plusOne(counter), { resourceVersion: '5' });
  }
  // @ts-expect-error there may be none
  await any.update('a', (counter) => ({ ...counter, count: counter.count + 1 }), { createIfMissing: true });
  // @ts-expect-error there may be none
  await memory.update('a', (counter) => ({ ...counter, count: counter.count + 1 }), { createIfMissing: true });
  // @ts-expect-error there may be none
  await backed.update('a', (counter) => ({ ...counter, count: counter.count + 1 }), { createIfMissing: true });
  // @ts-expect-error there may be none
  await cacher.update('a', (counter) => ({ ...counter, count: counter.count + 1 }), { createIfMissing: true });
  // @ts-expect-error it returns an object
  await memory.update('a', (counter) => counter, { createIfMissing: true });
  // @ts-expect-error the option may not be false
  claim<Assignable<{ createIfMissing: false }, CreatingOptions<Counter>>>();
}

/** A storage that has only the general form of `update`. */
function implementers(general: Omit<Storage<Counter>, 'update'> & { update(...given: General): Promise<Counter> }): void {
  const storage: Storage<Counter> = general;
  void storage;
}
type General = [key: string, change: (current: Counter) => Counter | Promise<Counter>, options?: { createIfMissing?: boolean }];

describe('the entry point for storages', () => {
  it('has the types that the compiler has checked', () => {
    expect(compiles(updates, implementers)).toBe(2);
  });
});
