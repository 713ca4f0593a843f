// The contracts of every list watcher and of every storage, on an etcd in memory. Those on a real one are in test/peers.
import { describe, it } from 'vitest';
import { EtcdStorage } from '../../src/storage/etcd/index.ts';
import {
  BACKEND_CONTRACT,
  type BackendSubject,
  FakeClock,
  LIST_WATCHER_CONTRACT,
  type ListWatcherSubject,
  STORAGE_CONTRACT,
  type StorageSubject,
} from '../../src/testing/index.ts';
import { closers } from '../closing.ts';
import { storedListWatcher } from '../contract/stored-list-watcher.ts';
import { FakeEtcd } from './fake-etcd.ts';
import { ModelEtcd } from './model-etcd.ts';

const closing = closers();

async function open() {
  const clock = new FakeClock();
  const model = new ModelEtcd(clock);
  const etcd = await FakeEtcd.start(model.answers);
  closing.push(() => etcd.stop());
  return { clock, model, storage: opened(etcd.url), url: etcd.url };
}

function opened(url: string): EtcdStorage {
  const storage = new EtcdStorage({ endpoints: [url] });
  closing.push(() => storage.close());
  return storage;
}

async function listWatcher(): Promise<ListWatcherSubject> {
  const { model, storage } = await open();
  return storedListWatcher(storage.scope('things/'), async () => {
    model.put('/elsewhere', '{}');
    model.compact();
  });
}

describe('the contract of a list watcher, etcd in memory', () => {
  for (const { name, run } of LIST_WATCHER_CONTRACT) {
    it(name, () => run(async () => (await listWatcher()) as ListWatcherSubject<never>));
  }
});

async function storageSubject(): Promise<StorageSubject> {
  const { clock, model, storage } = await open();
  const compact = (): void => {
    model.put('/elsewhere', '{}');
    model.compact();
  };
  return { storage: storage as never, compact, pass: (ms) => clock.advance(ms) };
}

describe('the contract of a storage, etcd in memory', () => {
  for (const { name, run } of STORAGE_CONTRACT) it(name, () => run(storageSubject));
});

async function backendSubject(): Promise<BackendSubject> {
  const { clock, model, storage, url } = await open();
  const compact = (): void => {
    model.put('/elsewhere', '{}');
    model.compact();
  };
  return { ...storage.backing, compact, pass: (ms) => clock.advance(ms), another: () => opened(url).backing.backend };
}

describe('the contract of a backend, etcd in memory', () => {
  for (const { name, run } of BACKEND_CONTRACT) it(name, () => run(backendSubject));
});
