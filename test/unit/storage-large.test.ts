// Large objects in storages that keep bytes: nothing reads or writes the JSON of one of them at a stretch.
import { expect, onTestFinished, test } from 'vitest';
import { versionOf } from '../../src/cache/object.ts';
import { BackedStorage } from '../../src/storage/backed-storage.ts';
import { EtcdStorage } from '../../src/storage/etcd/index.ts';
import type { ChangeEvent } from '../../src/storage/storage.ts';
import { FakeClock } from '../../src/testing/index.ts';
import { setPace } from '../../src/watch/fair-queue.ts';
import { closers } from '../closing.ts';
import { FakeEtcd } from './fake-etcd.ts';
import { type Big, big, countingJson, STRETCH, useLarge } from './large-objects.ts';
import { ModelEtcd } from './model-etcd.ts';
import { collectedUntil, macrotask, NO_GC } from './support.ts';

const closing = closers();

async function opened(): Promise<{ storages: [EtcdStorage<Big>, EtcdStorage<Big>]; model: ModelEtcd }> {
  const model = new ModelEtcd(new FakeClock());
  const etcd = await FakeEtcd.start(model.answers);
  closing.push(() => etcd.stop());
  const open = (): EtcdStorage<Big> => {
    const storage = new EtcdStorage<Big>({ endpoints: [etcd.url] });
    closing.push(() => storage.close());
    return storage;
  };
  return { storages: [open(), open()], model };
}

test('in etcd it is written, read, watched and followed in pieces', async () => {
  const { storages } = await opened();
  expect((await useLarge(...storages)).longest).toBeLessThan(STRETCH);
});

test('watches that are told of it at the same time decode it once', async () => {
  const { storages } = await opened();
  const [storage, other] = storages;
  const { resourceVersion } = await storage.list();
  const watches = await Promise.all(Array.from({ length: 20 }, () => other.watch({ resourceVersion })));
  const counts = countingJson();
  const { length } = JSON.stringify(await storage.create('big', big(1)));
  const before = counts.total;
  const objects = await Promise.all(watches.map(async (watch) => (await watch.next()).value?.object as Big));
  expect(new Set(objects).size).toBe(1);
  expect(counts.total - before).toBeLessThan(1.5 * length);
});

test('what another program has written is decoded in pieces, and what is no object is an ERROR, as for a small one', async () => {
  const { storages, model } = await opened();
  const [storage] = storages;
  const { resourceVersion } = await storage.list();
  const text = JSON.stringify({ list: big(1).list, metadata: { name: 'a' } });
  model.put('/watchmux/a', text);
  model.put('/watchmux/b', text.slice(0, -1));
  const counts = countingJson();
  const watch = await storage.watch({ resourceVersion });
  const { type, object } = (await watch.next()).value as ChangeEvent<Big>;
  expect([type, object.list.length, versionOf(object)]).toEqual(['ADDED', 60_000, expect.stringMatching(/^\d+$/)]);
  expect((await watch.next()).value).toMatchObject({ type: 'ERROR', object: { code: 500, reason: 'StorageReadError' } });
  await expect(storage.get('b')).rejects.toMatchObject({ status: { code: 500, reason: 'StorageReadError' } });
  expect(counts.longest).toBeLessThan(STRETCH);
});

test('a watch that ends while it decodes one, and is not read any more, leaves nothing that rejects', async () => {
  const { storages } = await opened();
  const [storage] = storages;
  await storage.create('a', { ...big(1), list: [] });
  await storage.create('b', big(1));
  const rejected: unknown[] = [];
  const onRejection = (error: unknown): void => void rejected.push(error);
  process.on('unhandledRejection', onRejection);
  onTestFinished(() => void process.off('unhandledRejection', onRejection));
  const { signal } = new AbortController();
  setPace(signal, { turn: macrotask, pause: macrotask });
  const batches = (await storage.watch({ signal })).batches();
  expect((await batches.next()).value).toHaveLength(1);
  await batches.return?.();
  for (let turn = 0; turn < 5; turn++) await macrotask();
  expect(rejected).toEqual([]);
});

test.skipIf(globalThis.gc === undefined)(`a watch lets go of what it has delivered${NO_GC}`, async () => {
  const held: WeakRef<object>[] = [];
  const entry = (name: string): object => {
    const made = { key: `/${name}`, object: { metadata: { name, resourceVersion: '7' } } };
    held.push(new WeakRef(made));
    return made;
  };
  const backend = {
    range: async () => ({ entries: ['a', 'b', 'c'].map(entry), revision: '7', left: 0, bytes: 9 }),
    changesAfter: () => ({ close: () => {} }),
  };
  const watch = await new BackedStorage(backend as never).watch();
  for (const _ of 'ab') await watch.next();
  expect(await collectedUntil(() => held[0]?.deref() === undefined)).toBe(true);
  expect((await watch.next()).value).toMatchObject({ object: { metadata: { name: 'c' } } });
  watch.stop();
});
