import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, describe, it } from 'vitest';
import { MemoryStorage, openMemoryStorage, type Storage } from '../../src/storage/index.ts';
import {
  BACKEND_CONTRACT,
  FakeClock,
  LIST_WATCHER_CONTRACT,
  type ListWatcherSubject,
  STORAGE_CONTRACT,
  type StoredThing,
} from '../../src/testing/index.ts';
import { storedListWatcher } from './stored-list-watcher.ts';

let open: Storage[] = [];
afterEach(async () => {
  for (const storage of open) await storage.close();
  open = [];
});

function memory(): MemoryStorage {
  const storage = new MemoryStorage();
  open.push(storage);
  return storage;
}

describe('the contract of a list watcher, a MemoryStorage', () => {
  for (const { name, run } of LIST_WATCHER_CONTRACT) {
    it(name, () =>
      run(() => {
        const storage = memory();
        return storedListWatcher(storage, async () => storage.compact()) as ListWatcherSubject<never>;
      }),
    );
    it(`${name}, through a scope`, () =>
      run(() => {
        const storage = memory();
        return storedListWatcher(storage.scope('orders/').scope('default/'), async () =>
          storage.compact(),
        ) as ListWatcherSubject<never>;
      }));
  }
});

describe('the contract of a storage, a MemoryStorage in a file', () => {
  const directory = mkdtempSync(join(tmpdir(), 'watchmux-contract-'));
  let files = 0;
  afterAll(() => rmSync(directory, { recursive: true }));
  for (const { name, run } of STORAGE_CONTRACT) {
    it(name, () =>
      run(async () => {
        const clock = new FakeClock();
        const storage = await openMemoryStorage<StoredThing>({
          clock,
          file: join(directory, `${files++}`),
          minCompactBytes: 500,
        });
        open.push(storage as unknown as Storage);
        return { storage, compact: () => storage.compact(), pass: (ms) => clock.advance(ms) };
      }),
    );
  }
});

describe('the contract of a backend, a MemoryStorage', () => {
  for (const { name, needs, run } of BACKEND_CONTRACT) {
    if (needs === 'shared') continue;
    for (const prefix of [undefined, 'things/default/'])
      it(prefix ? `${name}, below a prefix` : name, () =>
        run(() => {
          const clock = new FakeClock();
          const storage = new MemoryStorage({ clock });
          open.push(storage);
          const { backend } = storage.backing;
          return { backend, prefix, compact: () => storage.compact(), pass: (ms) => clock.advance(ms) };
        }),
      );
  }
});

describe('the contract of a storage, a MemoryStorage', () => {
  const pass = (clock: FakeClock) => (ms: number) => clock.advance(ms);
  for (const { name, run } of STORAGE_CONTRACT) {
    it(name, () =>
      run(() => {
        const clock = new FakeClock();
        const storage = new MemoryStorage<StoredThing>({ clock });
        return { storage, compact: () => storage.compact(), pass: pass(clock) };
      }),
    );
    it(`${name}, through a scope`, () =>
      run(async () => {
        const clock = new FakeClock();
        const storage = new MemoryStorage<StoredThing>({ clock });
        for (const key of ['a', 'things/a', 'things/default0', 'zzz']) await storage.create(key, { metadata: { name: key } });
        const scope = storage.scope<StoredThing>('things/').scope<StoredThing>('default/');
        return {
          storage: Object.assign(scope, { close: () => storage.close() }),
          compact: () => storage.compact(),
          pass: pass(clock),
        };
      }));
  }
});
