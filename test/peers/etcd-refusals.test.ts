// What a real etcd refuses, as callers of a storage and clients of a server on it see it: each with its own code, and nothing of etcd's texts.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ApiServer, CONFIG_MAPS } from '../../src/apiserver/index.ts';
import { EtcdStorage } from '../../src/storage/etcd/index.ts';
import { component, isMissing } from '../components.ts';
import { type EtcdServer, startEtcd } from './etcd-server.ts';

const missing = isMissing(component('kube-apiserver'));
const RUN_MS = 60_000;
let etcd: EtcdServer;
const closing: (() => unknown)[] = [];

beforeAll(async () => {
  if (missing) return;
  etcd = await startEtcd();
  await add('root', 'root');
  await etcd.json('/v3/auth/role/add', { name: 'reader' });
  const perm = { permType: 'READ', key: btoa('/watchmux/'), range_end: btoa('/watchmux0') };
  await etcd.json('/v3/auth/role/grant', { name: 'reader', perm });
  await add('reader', 'reader');
  await add('nobody');
  await etcd.json('/v3/auth/enable', {});
}, RUN_MS);
afterAll(async () => {
  for (const close of closing.splice(0).reverse()) await close();
  await etcd?.stop();
});

async function add(name: string, role?: string): Promise<void> {
  await etcd.json('/v3/auth/user/add', { name, password: 'secret' });
  if (role !== undefined) await etcd.json('/v3/auth/user/grant', { user: name, role });
}

function open(user: string, password: string = 'secret'): EtcdStorage {
  const storage = new EtcdStorage({ endpoints: [etcd.url], user, password, onError: () => {} });
  closing.push(() => storage.close());
  return storage;
}

async function asRoot(path: string, body: object): Promise<unknown> {
  const { token } = await etcd.json('/v3/auth/authenticate', { name: 'root', password: 'secret' });
  return etcd.json(path, body, { authorization: token });
}

const map = (name: string): never => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace: 'default' } }) as never;

/** The code of a refusal, or 0. */
const codeOf = (asked: Promise<unknown>): Promise<unknown> =>
  asked.then(
    () => 0,
    (error: { status?: { code: number }; code: unknown }) => error.status?.code ?? error.code,
  );

/** What a server on a storage answers to a client. */
async function answers(storage: EtcdStorage, url: string, body?: unknown): Promise<{ code: number; text: string }> {
  const api = new ApiServer({ storage, resources: [CONFIG_MAPS], onError: () => {} });
  const init =
    body === undefined ? {} : { method: 'POST', body: JSON.stringify(body), headers: { 'content-type': 'application/json' } };
  try {
    const response = await api.fetch(new Request(`http://localhost${url}`, init));
    expect(response.headers.get('www-authenticate')).toBeNull();
    return { code: response.status, text: await response.text() };
  } finally {
    await api.shutdown();
  }
}

const PATH = '/api/v1/namespaces/default/configmaps';

describe.skipIf(missing)('what a real etcd refuses', () => {
  it.each([
    ['a wrong password', 'root', 'wrong'],
    ['a user that may nothing', 'nobody', 'secret'],
  ])(
    '%s: 503, whatever is asked',
    async (_, user, password) => {
      const storage = open(user, password);
      const asked = [storage.get('a'), storage.list(), storage.create('a', map('a')), storage.watch({ resourceVersion: '1' })];
      expect(await Promise.all(asked.map(codeOf))).toEqual([503, 503, 503, 503]);
      for (const body of [undefined, map('a')]) {
        const { code, text } = await answers(open(user, password), PATH, body);
        // A cache that has not got its state has its clients come again.
        expect(code).toBe(body === undefined ? 429 : 503);
        expect(text).not.toMatch(/etcd|permission|password|rpc/i);
      }
    },
    RUN_MS,
  );

  it(
    'a write of a user that may only read: 503; reads and watches go on',
    async () => {
      await open('root').create('there', map('there'));
      const storage = open('reader');
      expect(await codeOf(storage.create('b', map('b')))).toBe(503);
      expect((await storage.list()).items).toHaveLength(1);
      const watch = await storage.watch({ sendInitialEvents: true, allowWatchBookmarks: true } as never);
      expect(await watch.next()).toMatchObject({ value: { type: 'ADDED' } });
      await watch.return();
    },
    RUN_MS,
  );

  it(
    'a token of before a change of its rights: it gets another one, and nobody notices',
    async () => {
      const storage = open('root');
      await storage.create('c', map('c'));
      await asRoot('/v3/auth/role/add', { name: 'more' });
      await storage.create('d', map('d'));
      expect(await codeOf(storage.delete('d'))).toBe(0);
    },
    RUN_MS,
  );

  it(
    'what is compacted: 410; what is too large: 413',
    async () => {
      const storage = open('root');
      const { resourceVersion } = await storage
        .create('e', map('e'))
        .then(({ metadata }) => metadata as { resourceVersion: string });
      await storage.update('e', () => ({ ...(map('e') as object), data: {} }) as never);
      const newest = await storage.currentVersion();
      await asRoot('/v3/kv/compaction', { revision: newest, physical: true });
      expect(await codeOf(storage.list({ resourceVersion, resourceVersionMatch: 'Exact' }))).toBe(410);
      const watch = await storage.watch({ resourceVersion });
      expect(await watch.next()).toMatchObject({ value: { type: 'ERROR', object: { code: 410 } } });
      const large = { ...(map('f') as object), data: { a: 'x'.repeat(1_600_000) } };
      expect(await codeOf(storage.create('f', large as never))).toBe(413);
    },
    RUN_MS,
  );

  it.each(['NOSPACE', 'CORRUPT'])(
    'a write while the alarm %s is set: 503 and not healthy, until it is over',
    async (alarm) => {
      const storage = open('root');
      await storage.create(alarm, map('g'));
      await asRoot('/v3/maintenance/alarm', { action: 'ACTIVATE', memberID: '0', alarm });
      expect(await codeOf(storage.create('h', map('h')))).toBe(503);
      expect(await codeOf((async () => storage.checkHealth?.())())).toBe(503);
      const { code, text } = await answers(open('root'), PATH, map('i'));
      expect([code, /etcd|alarm|space/i.test(text)]).toEqual([503, false]);
      await asRoot('/v3/maintenance/alarm', { action: 'DEACTIVATE', memberID: '0', alarm });
      expect(await codeOf((async () => storage.checkHealth?.())())).toBe(0);
      expect(await codeOf(storage.create(`${alarm} again`, map('h')))).toBe(0);
    },
    RUN_MS,
  );
});
