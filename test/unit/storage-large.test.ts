// Large objects in storages that keep bytes: nothing reads or writes the JSON of one of them at a stretch.
import { afterEach, expect, test } from 'vitest';
import { versionOf } from '../../src/cache/object.ts';
import { EtcdStorage } from '../../src/storage/etcd/index.ts';
import type { ChangeEvent } from '../../src/storage/storage.ts';
import { FakeClock } from '../../src/testing/index.ts';
import { FakeEtcd } from './fake-etcd.ts';
import { type Big, big, countingJson, STRETCH, useLarge } from './large-objects.ts';
import { ModelEtcd } from './model-etcd.ts';

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

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
