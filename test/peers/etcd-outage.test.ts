// A real etcd that cannot answer for a while, as callers of a storage and clients of a server on it see it, and what is there afterwards.
import { afterEach, describe, expect, it } from 'vitest';
import { ApiServer, CONFIG_MAPS } from '../../src/apiserver/index.ts';
import type { KubernetesObject } from '../../src/cache/object.ts';
import { EtcdStorage, type EtcdStorageOptions } from '../../src/storage/etcd/index.ts';
import type { Watch } from '../../src/watch/watch.ts';
import { component, isMissing } from '../components.ts';
import { startEtcdCluster } from './etcd-cluster.ts';
import { startEtcd } from './etcd-server.ts';

const missing = isMissing(component('kube-apiserver'));
const RUN_MS = 90_000;
const PATH = '/api/v1/namespaces/default/configmaps';
const closing: (() => unknown)[] = [];

afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
}, RUN_MS);

const map = (name: string): KubernetesObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, namespace: 'default' },
});
const marked = (object: KubernetesObject, by: string): KubernetesObject => ({
  ...object,
  metadata: { ...object.metadata, annotations: { by } },
});

function open(options: EtcdStorageOptions): EtcdStorage {
  const storage = new EtcdStorage({ requestTimeoutMs: 1_000, onError: () => {}, ...options });
  closing.push(() => storage.close());
  return storage;
}

/** What a promise comes to: `ok`, or the code of its error, which names no fraction of a millisecond. */
const outcome = (asked: Promise<unknown>): Promise<unknown> =>
  asked.then(
    () => 'ok',
    ({ code, message }: { code: string; message: string }) => (/\d\.\d+ ms/.test(message) ? message : code),
  );

async function namesIn(watch: Watch<unknown>, last: string): Promise<readonly string[]> {
  const names: string[] = [];
  while (names.at(-1) !== last) {
    const { value, done } = (await watch.next()) as IteratorResult<{ type: string; object: KubernetesObject }>;
    if (done || value.type === 'ERROR') throw new Error(`the watch ended after ${names}`);
    names.push(value.object.metadata?.name ?? '');
  }
  return names;
}

describe.skipIf(missing)('a cluster of etcd without a leader', () => {
  it.each(['killed', 'stopped'])(
    'because two of three are %s: reads and writes are 504, nothing is lost, and it recovers by itself',
    async (how) => {
      const cluster = await startEtcdCluster(3);
      closing.push(() => cluster.stop());
      const [, ...others] = cluster.members;
      const storages = [open({ endpoints: cluster.urls }), open({ endpoints: cluster.urls.slice(0, 1) })];
      const [all, one] = storages as [EtcdStorage, EtcdStorage];
      await all.create('a', map('a'));
      const api = new ApiServer({ storage: one, resources: [CONFIG_MAPS], onError: () => {} });
      closing.push(() => api.shutdown());
      const ask = async (path: string, body?: object): Promise<{ status: number; text: string }> => {
        const headers = { 'content-type': 'application/json' };
        const init = body && { method: 'POST', body: JSON.stringify(body), headers };
        const response = await api.fetch(new Request(`http://localhost${path}`, init));
        return { status: response.status, text: await response.text() };
      };
      expect((await ask(PATH)).status).toBe(200);
      const watch = await all.watch({ resourceVersion: await all.currentVersion() });
      const live = namesIn(watch, 'last');

      for (const member of others) await (how === 'killed' ? member.kill() : member.pause());
      for (const [at, storage] of storages.entries()) {
        const asked = [
          storage.get('a'),
          storage.list(),
          storage.currentVersion(),
          storage.update('a', (object) => marked(object, 'none')),
          storage.create(`lost-${at}`, map('lost')),
          storage.delete('nothing'),
        ];
        expect(await Promise.all(asked.map(outcome))).toEqual(asked.map(() => 'TIMEOUT'));
      }
      for (const body of [undefined, map('b')]) {
        const { status, text } = await ask(PATH, body);
        expect(status).toBe(504);
        expect(JSON.parse(text)).toMatchObject({ kind: 'Status', reason: 'Timeout' });
        expect(text).not.toMatch(/etcd|leader|rpc|127\.0\.0\.1/i);
      }
      // What may be old is answered by the cache.
      expect((await ask(`${PATH}?resourceVersion=0`)).status).toBe(200);
      expect((await ask('/readyz')).status).toBe(503);
      expect((await ask('/livez')).status).toBe(200);

      for (const member of others) await (how === 'killed' ? member.start() : member.resume());
      await cluster.ready();
      for (const [at, storage] of storages.entries()) {
        await expect.poll(() => outcome(storage.get('a'))).toBe('ok');
        expect(await outcome(storage.create(`back-${at}`, map(`back-${at}`)))).toBe('ok');
      }
      expect((await ask(PATH, map('c'))).status).toBe(201);
      await expect.poll(async () => (await ask('/readyz')).status).toBe(200);
      await one.create('last', map('last'));
      // A write whose answer is missing may have happened.
      expect((await live).filter((name) => name !== 'lost' && name !== 'a' && name !== 'b')).toEqual([
        'back-0',
        'back-1',
        'c',
        'last',
      ]);
    },
    RUN_MS,
  );
});

describe.skipIf(missing)('an etcd that no longer takes the token that it has given', () => {
  it(
    'as after its time to live: nobody notices, and watches go on',
    async () => {
      const etcd = await startEtcd();
      closing.push(() => etcd.stop());
      await etcd.json('/v3/auth/user/add', { name: 'root', password: 'secret' });
      await etcd.json('/v3/auth/role/add', { name: 'root' }).catch(() => undefined);
      await etcd.json('/v3/auth/user/grant', { user: 'root', role: 'root' });
      await etcd.json('/v3/auth/enable', {});
      const storage = open({ endpoints: [etcd.url], user: 'root', password: 'secret', requestTimeoutMs: 20_000 });
      await storage.create('a', map('a'));
      const watch = await storage.watch({ resourceVersion: await storage.currentVersion() });
      const live = namesIn(watch, 'last');
      const { token } = await etcd.json('/v3/auth/authenticate', { name: 'root', password: 'secret' });
      // Whoever has got a token before is answered as after its time to live.
      await etcd.json('/v3/auth/user/changepw', { name: 'root', password: 'secret' }, { authorization: token });
      const old = etcd.json('/v3/kv/range', { key: btoa('a') }, { authorization: token });
      await expect(old).rejects.toThrow(/invalid auth token/);
      const asked = [
        storage.create('b', map('b')),
        storage.get('a'),
        storage.list(),
        storage.currentVersion(),
        storage.watch(),
        (async () => storage.checkHealth?.())(),
      ];
      expect(await Promise.all(asked.map(outcome))).toEqual(asked.map(() => 'ok'));
      await storage.create('last', map('last'));
      expect(await live).toEqual(['b', 'last']);
    },
    RUN_MS,
  );
});
