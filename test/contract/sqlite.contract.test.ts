// The storage on SQLite, by the contracts of every list watcher, of every storage and of every backend. It needs node:sqlite: Node 22.13 or newer.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, describe, it } from 'vitest';
import { SqliteStorage, type SqliteStorageOptions } from '../../src/storage/sqlite/index.ts';
import {
  BACKEND_CONTRACT,
  type BackendSubject,
  FakeClock,
  LIST_WATCHER_CONTRACT,
  type ListWatcherSubject,
  STORAGE_CONTRACT,
  type StorageSubject,
} from '../../src/testing/index.ts';
import { type Clock, systemClock } from '../../src/watch/clock.ts';
import { component, isMissing } from '../components.ts';
import { storedListWatcher } from './stored-list-watcher.ts';

const missing = isMissing(component('node:sqlite'));
const folder = mkdtempSync(join(tmpdir(), 'watchmux-sqlite-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
let [open, files]: [SqliteStorage[], number] = [[], 0];
afterEach(async () => {
  for (const storage of open) await storage.close();
  open = [];
});

/** A storage, and what forgets its past: that is old at once, and goes with some changes elsewhere. */
function opened(options: Partial<SqliteStorageOptions> = {}): { readonly storage: SqliteStorage; compact(): Promise<void> } {
  const { now = Date.now } = options;
  let laterMs = 0;
  const file = join(folder, `${files++}`);
  const storage = new SqliteStorage({
    file,
    synchronous: 'NORMAL',
    historyMs: 3_600_000,
    ...options,
    now: () => now() + laterMs,
  });
  open.push(storage);
  const elsewhere = storage.scope('elsewhere/');
  const compact = async (): Promise<void> => {
    laterMs += 3_600_001;
    for (let i = 0; i < 10; i++) await elsewhere.create(`${laterMs}.${i}`, { metadata: { name: 'x' } });
  };
  return { storage, compact };
}

function listWatcher(): ListWatcherSubject {
  const { storage, compact } = opened();
  return storedListWatcher(storage.scope('things/'), compact);
}

describe.skipIf(missing)('the contract of a list watcher, SQLite', () => {
  for (const { name, run } of LIST_WATCHER_CONTRACT) it(name, () => run(async () => listWatcher() as ListWatcherSubject<never>));
});

/** Times to live pass when the case says so; what is tried again in a moment, or looked at, is in a moment. */
function timed(): Partial<SqliteStorageOptions> & { pass(ms: number): void } {
  const fake = new FakeClock();
  const schedule: Clock['schedule'] = (ms, callback) => (ms > 200 ? fake : systemClock).schedule(ms, callback);
  return { clock: { now: () => fake.now(), schedule }, now: () => fake.now(), pass: (ms) => fake.advance(ms) };
}

function storageSubject(): StorageSubject {
  const { pass, ...options } = timed();
  const { storage, compact } = opened(options);
  const scope = Object.assign(storage.scope('under/'), { close: () => storage.close() });
  return { storage: scope as never, compact, pass };
}

describe.skipIf(missing)('the contract of a storage, SQLite', () => {
  for (const { name, run } of STORAGE_CONTRACT) it(name, () => run(storageSubject));
});

function backendSubject(): BackendSubject {
  const { pass, ...rest } = timed();
  const options = { file: join(folder, `${files++}`), ...rest };
  const { storage, compact } = opened(options);
  return { ...storage.backing, prefix: 'under/', compact, pass, another: () => opened(options).storage.backing.backend };
}

describe.skipIf(missing)('the contract of a backend, SQLite', () => {
  for (const { name, run } of BACKEND_CONTRACT) it(name, () => run(backendSubject));
});
