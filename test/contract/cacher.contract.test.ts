// A Cacher in front of a MemoryStorage is a list watcher and a storage like any other.
import { afterEach, describe, it } from 'vitest';
import { Cacher, MemoryStorage, type Storage } from '../../src/storage/index.ts';
import {
  FakeClock,
  LIST_WATCHER_CONTRACT,
  type ListWatcherSubject,
  STORAGE_CONTRACT,
  type StorageSubject,
  type StoredThing,
} from '../../src/testing/index.ts';
import { storedListWatcher } from './stored-list-watcher.ts';

let open: Storage[] = [];
afterEach(async () => {
  for (const storage of open) await storage.close();
  open = [];
});

function cacher(of: (storage: MemoryStorage) => Storage): Cacher {
  const storage = new MemoryStorage();
  const made = new Cacher(of(storage));
  open.push(made, storage);
  return made;
}

describe('the contract of a list watcher, a Cacher', () => {
  const subject = (made: Cacher, source: Storage = made): ListWatcherSubject<never> =>
    storedListWatcher(source, async () => {
      await source.list();
      made.compact();
    }) as ListWatcherSubject<never>;
  for (const { name, run } of LIST_WATCHER_CONTRACT) {
    it(name, () => run(() => subject(cacher((storage) => storage))));
    it(`${name}, of a scope`, () => run(() => subject(cacher((storage) => storage.scope('orders/')))));
    it(`${name}, through a scope`, () =>
      run(() => {
        const whole = cacher((storage) => storage);
        return subject(whole, whole.scope('orders/').scope('default/'));
      }));
  }
});

describe('the contract of a storage, a Cacher', () => {
  const subject = (scope: string): StorageSubject => {
    const clock = new FakeClock();
    const memory = new MemoryStorage<StoredThing>({ clock });
    const storage = scope ? memory.scope<StoredThing>(scope) : memory;
    const cacher = new Cacher<StoredThing>(storage, { freshnessTimeoutMs: 20 });
    open.push(cacher as Storage, memory as Storage);
    const compact = async (): Promise<void> => {
      await cacher.list();
      cacher.compact();
      memory.compact();
    };
    return { storage: cacher, compact, pass: (ms) => clock.advance(ms) };
  };
  for (const { name, run } of STORAGE_CONTRACT) {
    it(name, () => run(() => subject('')));
    it(`${name}, of a scope`, () => run(() => subject('things/default/')));
  }
});
