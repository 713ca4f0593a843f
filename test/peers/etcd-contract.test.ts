// The storage on a real etcd, by the contracts of every list watcher, of every storage and of every backend.

import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, it } from 'vitest';
import { EtcdStorage } from '../../src/storage/etcd/index.ts';
import {
  BACKEND_CONTRACT,
  type BackendSubject,
  LIST_WATCHER_CONTRACT,
  type ListWatcherSubject,
  STORAGE_CONTRACT,
  type StorageSubject,
} from '../../src/testing/index.ts';
import { component, isMissing } from '../components.ts';
import { storedListWatcher } from '../contract/stored-list-watcher.ts';
import { type EtcdServer, startEtcd } from './etcd-server.ts';

const missing = isMissing(component('kube-apiserver'));
const START_MS = 60_000;
/** Its shortest lease is 2 s, and it looks for old ones every half second. */
const LATE_MS = 3_000;

let etcd: EtcdServer;
let scopes = 0;
let open: EtcdStorage[] = [];

beforeAll(async () => {
  if (!missing) etcd = await startEtcd();
}, START_MS);
afterEach(async () => {
  for (const each of open) await each.close();
  open = [];
});
afterAll(() => etcd?.stop(), START_MS);

/** An empty collection with clients of its own. */
function subject(): ListWatcherSubject {
  const storage = new EtcdStorage({ endpoints: [etcd.url], prefix: `test-${scopes++}` });
  open.push(storage);
  return storedListWatcher(storage.scope('things/'), async () => void (await etcd.compact()));
}

describe.skipIf(missing)('the contract of a list watcher, etcd', () => {
  for (const { name, run } of LIST_WATCHER_CONTRACT) it(name, () => run(async () => subject() as ListWatcherSubject<never>));
});

/** An empty storage with clients of its own. Time passes as it does: etcd has a clock of its own, and deletes a while later. */
function storageSubject(): StorageSubject {
  const storage = new EtcdStorage({ endpoints: [etcd.url], prefix: `test-${scopes++}` });
  open.push(storage);
  return {
    storage: storage as never,
    compact: async () => void (await etcd.compact()),
    pass: (ms) => sleep(ms + LATE_MS),
  };
}

describe.skipIf(missing)('the contract of a storage, etcd', () => {
  for (const { name, run } of STORAGE_CONTRACT) it(name, () => run(storageSubject));
});

function backendSubject(): BackendSubject {
  const prefix = `test-${scopes++}`;
  const [storage, other] = [0, 1].map(() => new EtcdStorage({ endpoints: [etcd.url], prefix })) as [EtcdStorage, EtcdStorage];
  open.push(storage, other);
  return {
    ...storage.backing,
    compact: async () => void (await etcd.compact()),
    pass: (ms) => sleep(ms + LATE_MS),
    another: () => other.backing.backend,
  };
}

describe.skipIf(missing)('the contract of a backend, etcd', () => {
  for (const { name, run } of BACKEND_CONTRACT) it(name, () => run(backendSubject));
});
