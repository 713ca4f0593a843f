// A storage that outlives the definitions of the servers that use it: kinds that one of them does not know, old data under another
// kind, scope or version, and a storage that somebody has emptied.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { type ApiServerOptions, CONFIG_MAPS, NAMESPACES, type ResourceDefinition } from '../../src/apiserver/index.ts';
import { EtcdStorage } from '../../src/storage/etcd/index.ts';
import { Cacher, MemoryStorage, type Storage } from '../../src/storage/index.ts';
import { SqliteStorage } from '../../src/storage/sqlite/index.ts';
import { FakeClock } from '../../src/testing/index.ts';
import { component, isMissing } from '../components.ts';
import { rig } from './apiserver-rig.ts';
import { FakeEtcd } from './fake-etcd.ts';
import { ModelEtcd } from './model-etcd.ts';

const KINDS: Readonly<Record<string, ResourceDefinition>> = {
  namespaces: NAMESPACES as ResourceDefinition,
  maps: CONFIG_MAPS as ResourceDefinition,
  orders: { group: 'example.com', version: 'v1', plural: 'orders', kind: 'Order' },
  roots: { group: 'example.com', version: 'v1', plural: 'roots', kind: 'Root', namespaced: false },
};

/** Servers on one storage, each with its own kinds. */
function servers(storage: Storage) {
  return async (kinds: readonly ResourceDefinition[], options: Partial<ApiServerOptions> = {}) => {
    const errors: unknown[] = [];
    const made = rig({
      ...{ storage, resources: kinds, uid: () => crypto.randomUUID(), onError: (error: unknown) => errors.push(error) },
      ...options,
    });
    onTestFinished(() => made.server.shutdown());
    const ready = made.server.ready.then(
      () => undefined,
      (error: unknown) => error as Error,
    );
    await ready;
    return { ...made, errors, ready };
  };
}

const { namespaces, maps, orders, roots } = KINDS as Record<'namespaces' | 'maps' | 'orders' | 'roots', ResourceDefinition>;
const ORDERS = '/apis/example.com/v1/namespaces/x/orders';

async function etcd(): Promise<Storage> {
  const clock = new FakeClock();
  const fake = await FakeEtcd.start(new ModelEtcd(clock).answers);
  const storage = new EtcdStorage({ endpoints: [fake.url], clock });
  onTestFinished(async () => {
    await storage.close();
    await fake.stop();
  });
  return storage;
}

function sqlite(): Storage {
  const folder = mkdtempSync(join(tmpdir(), 'watchmux-stored-'));
  const storage = new SqliteStorage({ file: join(folder, 'file'), synchronous: 'NORMAL' });
  onTestFinished(async () => {
    await storage.close();
    rmSync(folder, { recursive: true });
  });
  return storage;
}

describe.each<readonly [string, () => Storage | Promise<Storage>]>([
  ['memory', () => new MemoryStorage()],
  ['a part of one', () => new MemoryStorage().scope('part/')],
  ['etcd', etcd],
  ...(isMissing(component('node:sqlite')) ? [] : [['SQLite', sqlite] as const]),
])('in %s', (_name, open) => {
  test('a namespace that a server deletes takes objects whose kind that server does not know', async () => {
    const storage = await open();
    const start = servers(storage);
    const [knows, other] = [await start([namespaces, maps, orders, roots]), await start([namespaces, maps])];
    for (const name of ['x', 'y']) await knows.call('POST', '/api/v1/namespaces', { metadata: { name } });
    for (const name of ['a', 'b']) await knows.call('POST', ORDERS, { metadata: { name } });
    await knows.call('POST', ORDERS.replace('/x/', '/y/'), { metadata: { name: 'a' } });
    await knows.call('POST', '/apis/example.com/v1/roots', { metadata: { name: 'x' } });
    await storage.create('mine/things/x/a', { metadata: { name: 'a', namespace: 'x' } });
    await storage.create('flat', { metadata: { name: 'flat' } });
    expect((await other.call('DELETE', '/api/v1/namespaces/x')).code).toBe(200);
    await expect.poll(async () => (await knows.call('GET', ORDERS)).body.items).toEqual([]);
    expect((await knows.call('GET', '/api/v1/namespaces/x')).code).toBe(404);
    // What is elsewhere, in no namespace, or written by another program stays.
    expect((await knows.call('GET', ORDERS.replace('/x/', '/y/'))).body.items).toHaveLength(1);
    expect((await knows.call('GET', '/apis/example.com/v1/roots/x')).code).toBe(200);
    expect([await storage.get('mine/things/x/a'), await storage.get('flat')]).not.toContain(undefined);
  });

  test('a namespace waits for the finalizers of such objects', async () => {
    const start = servers(await open());
    const [knows, other] = [await start([namespaces, orders]), await start([namespaces])];
    await knows.call('POST', '/api/v1/namespaces', { metadata: { name: 'x' } });
    await knows.call('POST', ORDERS, { metadata: { name: 'held', finalizers: ['a.example/b'] } });
    const { body } = await other.call('DELETE', '/api/v1/namespaces/x');
    expect(body.status.phase).toBe('Terminating');
    expect((await knows.call('GET', `${ORDERS}/held`)).body.metadata.deletionTimestamp).toBeDefined();
    const type = { 'content-type': 'application/merge-patch+json' };
    await knows.call('PATCH', `${ORDERS}/held`, { metadata: { finalizers: null } }, type);
    await expect.poll(async () => (await other.call('GET', '/api/v1/namespaces/x')).code).toBe(404);
  });

  test('its keys are found in order, from anywhere on', async () => {
    const storage = await open();
    const scope = storage.scope('s/');
    for (const key of ['a', 'b/c', 'b/d', 'é', '\u{1F600}']) await scope.create(key, { metadata: { name: 'n' } });
    await storage.create('t', { metadata: { name: 'n' } });
    const keys = (from: string | undefined, limit: number): unknown => scope.keys?.({ from, limit });
    expect(await keys(undefined, 10)).toEqual(['a', 'b/c', 'b/d', 'é', '\u{1F600}']);
    expect(await keys('b/', 2)).toEqual(['b/c', 'b/d']);
    expect(await keys('b/c\0', 1)).toEqual(['b/d']);
    expect(await keys('\uffff', 1)).toEqual([]);
    expect(await storage.keys?.({ limit: 1 })).toEqual(['s/a']);
  });

  test('its keys are those that a cacher in front of it has', async () => {
    const storage = (await open()).scope('s/');
    await storage.create('a/b', { metadata: { name: 'b', namespace: 'a' } });
    const cacher = new Cacher(storage);
    onTestFinished(() => cacher.close());
    expect(await cacher.keys({ limit: 2 })).toEqual(['a/b']);
    expect(await cacher.scope('a/').keys?.({ limit: 2 })).toEqual(['b']);
  });

  test('`default` comes back by itself, from one server or several', async () => {
    const storage = await open();
    const start = servers(storage);
    const one = await start([namespaces, maps]);
    await start([namespaces, maps], { cache: false });
    const get = async (): Promise<unknown> => (await one.call('GET', '/api/v1/namespaces/default')).body.metadata?.uid;
    const before = await get();
    expect(before).toBeDefined();
    await storage.delete('core/namespaces/default');
    await expect.poll(get).not.toBe(before);
    await expect.poll(get).toBeDefined();
    expect(one.errors).toEqual([]);
  });
});

describe('old data', () => {
  const of = (more: Partial<ResourceDefinition>): ResourceDefinition => ({ ...orders, ...more });

  test.each<[string, ResourceDefinition, ResourceDefinition, RegExp]>([
    [
      'kind',
      orders,
      of({ kind: 'Bestellung' }),
      /definitions for everything under example.com\/orders\/, got "Order x\/old of example.com\/v1 in the storage"/,
    ],
    ['version', of({ version: 'v1beta1' }), orders, /Order x\/old of example.com\/v1beta1/],
    ['scope', orders, of({ namespaced: false }), /Order x\/old of example.com\/v1, in a namespace/],
    ['scope (none)', of({ namespaced: false }), orders, /Order old of example.com\/v1, in no namespace/],
  ])('under another %s is told at the start, and not served', async (_what, before, now, message) => {
    const start = servers(new MemoryStorage());
    const path = ({ version, namespaced = true }: ResourceDefinition): string =>
      `/apis/example.com/${version}/${namespaced ? 'namespaces/x/' : ''}orders`;
    const old = await start([before, maps]);
    expect((await old.call('POST', path(before), { metadata: { name: 'old' } })).code).toBe(201);
    // Among others, and behind them.
    const { server, call, ready, errors } = await start([now, maps]);
    expect(await ready).toMatchObject({ code: 'INVALID_ARGUMENT', message: expect.stringMatching(message) });
    for (const verb of ['GET', 'POST', 'DELETE']) {
      const { code, text } = await call(verb, path(now), verb === 'POST' ? { metadata: { name: 'new' } } : undefined);
      expect([verb, code]).toEqual([verb, 500]);
      expect(text).not.toContain('old');
    }
    expect((await call('GET', `${path(now)}?watch=1`)).code).toBe(500);
    await expect(server.resource('orders.example.com').list()).rejects.toThrow(message);
    expect((await call('GET', '/api/v1/namespaces/x/configmaps')).code).toBe(200);
    expect(errors.length).toBeGreaterThan(0);
    expect((await server.health()).ready).toBe(false);
  });

  test('is found behind any number of others', async () => {
    const storage = new MemoryStorage();
    const scope = storage.scope('example.com/orders/');
    for (let n = 0; n < 1_200; n++) await scope.create(`x/a${n}`, { metadata: { name: `a${n}` } });
    await scope.create('x/b', { apiVersion: 'example.com/v0', kind: 'Order', metadata: { name: 'b', namespace: 'x' } });
    const { ready } = await servers(storage)([orders]);
    expect(await ready).toMatchObject({ message: expect.stringContaining('Order x/b of example.com/v0') });
  });

  test('of a version that is served as well is served, and so is what was written past the API', async () => {
    const storage = new MemoryStorage();
    const start = servers(storage);
    const beta = of({ version: 'v1beta1' });
    const old = await start([beta]);
    await old.call('POST', '/apis/example.com/v1beta1/namespaces/x/orders', { metadata: { name: 'a' } });
    await storage.create('example.com/orders/x/raw', { metadata: { name: 'raw' } });
    const { call, ready } = await start([beta, orders]);
    expect(await ready).toBeUndefined();
    expect((await call('GET', ORDERS)).body.items.map(({ apiVersion }: { apiVersion: string }) => apiVersion)).toContain(
      'example.com/v1',
    );
  });

  test('a request waits until that is known, and a storage that does not answer does not keep a server from ending', async () => {
    const storage = new MemoryStorage();
    const never = new Proxy(storage, {
      get: (target, name) => {
        if (name === 'scope') return () => never;
        if (name === 'list') return () => new Promise(() => {});
        const value = Reflect.get(target, name, target);
        return typeof value === 'function' ? value.bind(target) : value;
      },
    }) as Storage;
    const clock = new FakeClock();
    const { server, call } = rig({ storage: never, resources: [orders], clock, cache: false });
    const answer = call('GET', ORDERS);
    await Promise.resolve();
    const shut = server.shutdown({ signal: AbortSignal.abort() });
    expect((await answer).code).toBeGreaterThanOrEqual(503);
    await shut;
    expect(clock.pending).toBe(0);
  });
});
