// The storage on a real etcd while four writers write, through everything that can go wrong between the two. After each run every
// answered write was seen by a watch, once and in order, and what the watch has come to equals a fresh list.
import { afterEach, describe, expect, it } from 'vitest';
import type { KubernetesObject } from '../../src/cache/index.ts';
import { EtcdStorage, type EtcdStorageOptions } from '../../src/storage/etcd/index.ts';
import type { Storage } from '../../src/storage/index.ts';
import { component, isMissing } from '../components.ts';
import { eventually, until } from '../eventually.ts';
import { startTcpProxy, type TcpProxy } from '../tcp-proxy.ts';
import { type EtcdServer, type EtcdServerOptions, startEtcd } from './etcd-server.ts';
import { CheckedWatch, StorageWriters } from './etcd-writers.ts';
import { randomOf } from './proxy.ts';

const missing = isMissing(component('kube-apiserver'));
const RUN_MS = 120_000;

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
}, RUN_MS);

async function server(options?: EtcdServerOptions): Promise<EtcdServer> {
  const etcd = await startEtcd(options);
  closing.push(() => etcd.stop());
  return etcd;
}

async function proxyOf(etcd: EtcdServer): Promise<TcpProxy> {
  const proxy = await startTcpProxy(etcd.port);
  closing.push(() => proxy.close());
  return proxy;
}

function storageOf(endpoints: readonly string[], options: Partial<EtcdStorageOptions> = {}): Storage {
  const storage = new EtcdStorage({ endpoints, requestTimeoutMs: 2_000, connectTimeoutMs: 500, ...options });
  closing.push(() => storage.close());
  return storage.scope('things/');
}

const object = (name: string, more: object = {}): KubernetesObject => ({ metadata: { name }, ...more }) as KubernetesObject;

/** Writers end; then the watches must have seen what is there, and all that was answered. */
async function settle(storage: Storage, writers: StorageWriters, watches: readonly CheckedWatch[]): Promise<void> {
  await writers.stop();
  const [all] = watches as [CheckedWatch];
  const { items, resourceVersion } = await storage.list();
  const expected = items.map(({ metadata }) => `${metadata?.name}@${metadata?.resourceVersion}`).sort();
  await until(() => JSON.stringify(all.versions) === JSON.stringify(expected));
  const selected = await storage.list({ labelSelector: 'parity=odd' });
  const odd = selected.items.map(({ metadata }) => `${metadata?.name}@${metadata?.resourceVersion}`).sort();
  if (watches[1]) await until(() => JSON.stringify(watches[1]?.versions) === JSON.stringify(odd));
  for (const each of watches) await each.end();
  for (const each of watches) expect(each.faults).toEqual([]);
  // An update that changes nothing is answered with the version that is there, so all of these have an event.
  const unseen = writers.written.filter(({ name, version }) => all.seen.get(version) !== name);
  expect(unseen).toEqual([]);
  expect(Number(resourceVersion)).toBeGreaterThan(writers.written.length / 2);
}

describe.skipIf(missing)('faults, a real etcd', () => {
  it(
    'cut at any byte: every answered write is there, watches lose nothing and repeat nothing',
    async () => {
      const etcd = await server();
      const [direct, proxy] = [storageOf([etcd.url]), await proxyOf(etcd)];
      const random = randomOf(7);
      proxy.cutAfter(() => 100 + Math.floor(random() * 40_000));
      const through = [storageOf([proxy.url]), storageOf([proxy.url])] as const;
      const watches = [await CheckedWatch.open(through[0]), await CheckedWatch.open(through[1], { labelSelector: 'parity=odd' })];
      const writers = new StorageWriters([...through, direct], 1);
      await until(() => proxy.cuts > 60);
      const before = writers.written.length;
      await until(() => writers.written.length > Math.max(1_000, before));
      proxy.cutAfter(undefined);
      await settle(direct, writers, watches);
    },
    RUN_MS,
  );

  it(
    'killed and started again with its data: nothing that was answered is lost',
    async () => {
      const etcd = await server();
      const storage = storageOf([etcd.url]);
      const watches = [await CheckedWatch.open(storage), await CheckedWatch.open(storage, { labelSelector: 'parity=odd' })];
      const writers = new StorageWriters([storage, storageOf([etcd.url])], 2);
      for (let turn = 1; turn <= 3; turn++) {
        const before = writers.written.length;
        await until(() => writers.written.length > before + 100);
        await etcd.kill();
        await etcd.start();
      }
      const before = writers.written.length;
      await until(() => writers.written.length > before + 100);
      await settle(storage, writers, watches);
    },
    RUN_MS,
  );

  it(
    'started again with other data: a watch is told 410, even when the new revisions have passed the old ones',
    async () => {
      const etcd = await server();
      const storage = storageOf([etcd.url]);
      const write = async (count: number): Promise<void> => {
        for (let n = 0; n < count; n++) await storage.update('a', () => object('a', { n }), { createIfMissing: true });
      };
      await write(5);
      const soon = await CheckedWatch.open(storage);
      await etcd.restartEmpty();
      await until(() => soon.error === 410);

      await soon.end();

      for (const how of ['the term goes back', 'the last change is another one']) {
        await write(5);
        if (how === 'the term goes back') {
          await etcd.kill();
          await etcd.start();
        }
        const proxy = await proxyOf(etcd);
        const late = await CheckedWatch.open(storageOf([proxy.url]));
        await write(1);
        await until(() => late.seen.size > 0);
        proxy.refuse(true);
        proxy.cutAll();
        await etcd.restartEmpty();
        await write(20);
        proxy.refuse(false);
        await until(() => late.error === 410);
        await late.end();
      }
    },
    RUN_MS,
  );

  it(
    'paused: a request rejects in time and says so; afterwards a watch goes on',
    async () => {
      const etcd = await server();
      const storage = storageOf([etcd.url], { requestTimeoutMs: 1_500, keepAliveMs: 5_000 });
      await storage.create('a', object('a'));
      const watch = await CheckedWatch.open(storage);
      etcd.pause();
      await expect(storage.list()).rejects.toMatchObject({ code: 'TIMEOUT' });
      await expect(storage.get('a')).rejects.toMatchObject({ code: 'TIMEOUT' });
      await expect(storage.create('b', object('b'))).rejects.toMatchObject({
        code: 'TIMEOUT',
        message: expect.stringContaining('may have happened'),
      });
      etcd.resume();
      await eventually(() => storage.create('c', object('c')));
      await until(() => watch.state.has('c'));
      await watch.end();
      expect(watch.faults).toEqual([]);
    },
    RUN_MS,
  );

  it(
    'compacted: a watch that is connected goes on, one that was cut off and has missed something is told 410',
    async () => {
      const etcd = await server();
      const [direct, proxy] = [storageOf([etcd.url]), await proxyOf(etcd)];
      const through = storageOf([proxy.url]);
      await direct.create('a', object('a'));
      const first = await direct.list();
      const [connected, cut] = [await CheckedWatch.open(direct), await CheckedWatch.open(through)];
      proxy.refuse(true);
      proxy.cutAll();
      await direct.create('b', object('b'));
      await direct.create('c', object('c'));
      await etcd.compact();
      proxy.refuse(false);
      await direct.create('d', object('d'));
      await until(() => cut.error === 410);
      await until(() => connected.state.has('d'));
      expect(connected.error).toBeUndefined();
      expect(cut.state.has('b')).toBe(false);
      await expect(direct.list({ resourceVersion: first.resourceVersion, resourceVersionMatch: 'Exact' })).rejects.toMatchObject({
        status: { code: 410 },
      });
      await connected.end();
      await cut.end();
    },
    RUN_MS,
  );

  it(
    'several endpoints: what fails at one goes on at the next, reads and watches alike',
    async () => {
      const etcd = await server();
      const [one, two] = [await proxyOf(etcd), await proxyOf(etcd)];
      const storage = storageOf(['http://127.0.0.1:1', one.url, two.url]);
      await storage.create('a', object('a'));
      const watch = await CheckedWatch.open(storage);
      const writers = new StorageWriters([storage], 3);
      for (let turn = 0; turn < 6; turn++) {
        const before = writers.written.length;
        await until(() => writers.written.length > before + 50);
        const [here, there] = turn % 2 === 0 ? [one, two] : [two, one];
        here.refuse(true);
        there.refuse(false);
        here.cutAll();
      }
      await settle(storage, writers, [watch]);
    },
    RUN_MS,
  );

  it('a closed storage rejects what pends and what comes, and ends its watches', async () => {
    const etcd = await server();
    const storage = new EtcdStorage({ endpoints: [etcd.url] });
    const watch = await storage.watch({ resourceVersion: (await storage.list()).resourceVersion });
    const pending = watch.next();
    etcd.pause();
    const list = storage.list().catch((error: unknown) => error);
    await storage.close();
    expect(await list).toMatchObject({ code: 'CLOSED' });
    expect(await pending).toEqual({ done: true, value: undefined });
    await expect(storage.get('a')).rejects.toMatchObject({ code: 'CLOSED' });
    await expect(storage.watch()).rejects.toMatchObject({ code: 'CLOSED' });
    await expect(storage.requestProgress()).rejects.toMatchObject({ code: 'CLOSED' });
    etcd.resume();
  });
});
