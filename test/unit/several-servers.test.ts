// Servers that share a storage, of which one is late: it has not seen what another one has answered already.
import { describe, expect, test } from 'vitest';
import { GarbageCollector } from '../../src/apiserver/garbage-collector.ts';
import { type AdmissionReview, ApiServer, type ApiServerOptions, type ResourceDefinition } from '../../src/apiserver/index.ts';
import { Catalog, type ResourceContext, type ResourceInfo } from '../../src/apiserver/resource-info.ts';
import type { KubernetesObject, ObjectMeta } from '../../src/cache/object.ts';
import { MemoryStorage, type Storage } from '../../src/storage/index.ts';
import { FakeClock } from '../../src/testing/fakes/fake-clock.ts';
import { Latch } from '../../src/watch/abort.ts';
import { closers } from '../closing.ts';
import { EVERYTHING, ORDERS as ORDERS_KIND, quiet } from '../garbage-world.ts';
import { newContext, over } from './apiserver-verbs-support.ts';
import { crdOf } from './crd-rig.ts';
import { preceded, sightOf } from './shared-storage.ts';

const closing = closers();
const ORDERS = 'orders.example.com/v1';
const ORDERS_PREFIX = 'example.com/orders/';
const CRDS = 'customresourcedefinitions.apiextensions.k8s.io/v1';

function server(options: Partial<ApiServerOptions> & { readonly storage: Storage }): ApiServer {
  const made = new ApiServer({ resources: EVERYTHING, onError: () => {}, ...options });
  closing.push(() => made.shutdown());
  return made;
}

interface Owner extends KubernetesObject {
  readonly metadata: ObjectMeta & { readonly name: string; readonly uid: string };
}

const refTo = ({ apiVersion, kind, metadata: { name, uid } }: Owner, more: object = {}): object => ({
  ...{ apiVersion, kind, name, uid, ...more },
});

/** An object that is deleted waits for the collector to make its dependents orphans. */
const orphaning = { name: 'owner', finalizers: ['orphan'] };

const settled = async (turns = 60): Promise<void> => {
  for (let turn = 0; turn < turns; turn++) await new Promise((resolve) => void setImmediate(resolve));
};

describe('a collector that is late', () => {
  test('makes orphans of all dependents, also of those that its cache does not show yet', async () => {
    const memory = new MemoryStorage();
    const clock = new FakeClock();
    const { storage, hold } = sightOf(memory);
    const late = server({ storage, clock, garbageCollection: true });
    await late.ready;
    const other = server({ storage: memory });
    const owners = other.resource('zones.example.com/v1');
    const owner = (await owners.create({ metadata: orphaning })) as Owner;
    await settled();
    const release = hold(ORDERS_PREFIX);
    const orders = other.resource(ORDERS).in('default');
    await orders.create({ metadata: { name: 'child', ownerReferences: [refTo(owner)] } as ObjectMeta });
    await owners.delete('owner');
    for (let seconds = 0; seconds < 20; seconds++) await clock.advanceAsync(1_000);
    await settled();
    expect((await owners.get('owner')).metadata?.finalizers).toEqual(['orphan']);
    release();
    for (let seconds = 0; seconds < 100; seconds++) await clock.advanceAsync(1_000);
    await quiet(memory);
    await expect(owners.get('owner')).rejects.toMatchObject({ status: { code: 404 } });
    expect((await orders.get('child')).metadata?.ownerReferences ?? []).toEqual([]);
  });

  test('makes orphans of dependents whose kind it does not know yet', async () => {
    const memory = new MemoryStorage();
    const clock = new FakeClock();
    const { storage, hold } = sightOf(memory);
    const late = server({ storage, clock, garbageCollection: true, customResourceDefinitions: true });
    await late.ready;
    await settled();
    const release = hold('apiextensions.k8s.io/customresourcedefinitions/');
    const other = server({ storage: memory, customResourceDefinitions: true });
    const owners = other.resource('zones.example.com/v1');
    const owner = (await owners.create({ metadata: orphaning })) as Owner;
    await other.resource(CRDS).create(crdOf());
    await expect
      .poll(() =>
        other.kind('widgets.example.com/v1').then(
          () => true,
          () => false,
        ),
      )
      .toBe(true);
    const widgets = other.resource('widgets.example.com/v1').in('default');
    await widgets.create({ metadata: { name: 'child', ownerReferences: [refTo(owner)] } as ObjectMeta });
    await owners.delete('owner');
    for (let seconds = 0; seconds < 20; seconds++) await clock.advanceAsync(1_000);
    await settled();
    expect((await owners.get('owner')).metadata?.finalizers).toEqual(['orphan']);
    release();
    for (let seconds = 0; seconds < 100; seconds++) await clock.advanceAsync(1_000);
    await quiet(memory);
    await expect(owners.get('owner')).rejects.toMatchObject({ status: { code: 404 } });
    expect((await widgets.get('child')).metadata?.ownerReferences ?? []).toEqual([]);
  });
});

test('without a cache, an owner is not taken from a member of the storage that is late', async () => {
  const memory = new MemoryStorage();
  const orders = server({ storage: memory }).resource<Owner>(ORDERS).in('default');
  const owner = await orders.create({ metadata: { name: 'owner' } } as Owner);
  await orders.create({ metadata: { name: 'child', ownerReferences: [refTo(owner)] } } as unknown as Owner);
  const old = (storage: Storage): Storage =>
    over(storage, {
      scope: ((prefix: string) => old(storage.scope(prefix))) as Storage['scope'],
      get: async (key, options) =>
        key === 'default/owner' && options?.resourceVersion === '0' ? owner : storage.get(key, options),
    });
  await server({ storage: old(sightOf(memory).storage), cache: false, garbageCollection: true }).ready;
  await settled();
  await orders.delete('owner');
  await expect.poll(() => orders.get('child').catch(() => undefined)).toBeUndefined();
});

test('a collector that is late deletes nothing whose owner is of a kind that was defined anew', async () => {
  const memory = new MemoryStorage();
  const clock = new FakeClock();
  const { storage, hold } = sightOf(memory);
  const other = server({ storage: memory, customResourceDefinitions: true });
  const crds = other.resource(CRDS);
  const isServed = (by: ApiServer, scope: string): Promise<boolean> =>
    by.kind('widgets.example.com/v1').then(
      ({ type }) => type.namespaced === (scope === 'Namespaced'),
      () => false,
    );
  await crds.create(crdOf());
  await expect.poll(() => isServed(other, 'Namespaced')).toBe(true);
  const late = server({ storage, clock, garbageCollection: true, customResourceDefinitions: true });
  await late.ready;
  expect(await isServed(late, 'Namespaced')).toBe(true);
  const release = hold('apiextensions.k8s.io/customresourcedefinitions/');
  await crds.delete('widgets.example.com');
  await expect.poll(() => crds.get('widgets.example.com').catch(() => undefined)).toBeUndefined();
  await crds.create(crdOf({ scope: 'Cluster' }));
  await expect.poll(() => isServed(other, 'Cluster')).toBe(true);
  const owner = (await other.resource('widgets.example.com/v1').create({ metadata: { name: 'owner' } })) as Owner;
  const orders = other.resource(ORDERS).in('default');
  await orders.create({ metadata: { name: 'child', ownerReferences: [refTo(owner)] } as ObjectMeta });
  for (let seconds = 0; seconds < 20; seconds++) await clock.advanceAsync(1_000);
  await settled();
  release();
  for (let seconds = 0; seconds < 100; seconds++) await clock.advanceAsync(1_000);
  await quiet(memory);
  expect((await orders.get('child')).metadata?.ownerReferences).toEqual([refTo(owner)]);
});

test('an owner that a late cache still shows when its kind is listed is looked for again once the cache has caught up', async () => {
  const orders = new MemoryStorage().scope<Owner>(ORDERS_PREFIX);
  const owner = { apiVersion: 'example.com/v1', kind: 'Order', metadata: { name: 'owner', namespace: 'default', uid: 'owner' } };
  await orders.create('default/child', {
    ...{ apiVersion: 'example.com/v1', kind: 'Order' },
    metadata: { name: 'child', namespace: 'default', uid: 'child', ownerReferences: [refTo(owner)] },
  } as unknown as Owner);
  // The list comes from the storage behind. A watch waits until the cache has reached it.
  const reached = new Latch();
  const late: Pick<Storage<Owner>, 'get' | 'watch'> = {
    get: async (key, options) =>
      key === 'default/owner' && options?.resourceVersion === '0' && !reached.isOpen ? owner : orders.get(key, options),
    watch: async (options) => {
      await reached.promise;
      return orders.watch(options);
    },
  };
  const storage = over(orders.served?.() as Storage, late as Partial<Storage>);
  const all = [new Catalog([ORDERS_KIND], {}).all[0] as ResourceInfo];
  const contextOf = (info: ResourceInfo): ResourceContext => newContext({ info, storage, collected: true });
  const more = { kindsKnown: async () => {}, clock: new FakeClock(), random: () => 0, onError: () => {} };
  const collector = new GarbageCollector({ catalog: { all }, contextOf, ...more });
  closing.push(() => collector.stop());
  collector.start();
  await settled();
  expect(await orders.get('default/child')).toBeDefined();
  reached.open();
  await expect.poll(() => orders.get('default/child')).toBeUndefined();
});

test('a kind that has gone while it was listed does not come back to hold up the owners of its objects', async () => {
  const memory = new MemoryStorage();
  const orders = memory.scope<Owner>(ORDERS_PREFIX);
  const owner = { apiVersion: 'example.com/v1', kind: 'Order', name: 'owner', uid: 'owner' };
  const widgets = [
    { metadata: { name: 'w', namespace: 'default', uid: 'w', ownerReferences: [{ ...owner, blockOwnerDeletion: true }] } },
  ];
  const listed = new Latch();
  // It takes no notice of signals.
  const late = {
    list: () => listed.promise.then(() => ({ items: widgets, resourceVersion: '1' })),
    watch: () => new Promise(() => {}),
  };
  const kind = (definition: ResourceDefinition): ResourceInfo => new Catalog([definition], {}).all[0] as ResourceInfo;
  const [order, widget] = [kind(ORDERS_KIND), kind({ ...ORDERS_KIND, plural: 'widgets', kind: 'Widget' })];
  const catalog = { all: [order, widget] };
  const contextOf = (info: ResourceInfo): ResourceContext =>
    newContext({ info, storage: (info === order ? orders : late) as Storage, collected: true });
  const more = { kindsKnown: async () => {}, clock: new FakeClock(), random: () => 0, onError: () => {} };
  const collector = new GarbageCollector({ catalog, contextOf, ...more });
  closing.push(() => collector.stop());
  collector.start();
  await settled();
  catalog.all = [order];
  collector.kindsChanged();
  listed.open();
  await settled();
  const waiting = { deletionTimestamp: '2026-01-02T03:04:05Z', finalizers: ['foregroundDeletion'] };
  await orders.create('default/owner', {
    ...{ apiVersion: 'example.com/v1', kind: 'Order' },
    metadata: { name: 'owner', namespace: 'default', uid: 'owner', ...waiting },
  });
  await expect.poll(() => orders.get('default/owner')).toBeUndefined();
});

describe('what others do between the look of the collector and its step', () => {
  const PATH = 'default/child';
  const gone = { apiVersion: 'example.com/v1', kind: 'Order', name: 'gone', uid: 'gone' };

  /** A collector before whose steps on `child` other things happen, one before each, and how the objects were when they went. */
  async function raced(method: 'delete' | 'update', things: (() => Promise<unknown>)[]) {
    const memory = new MemoryStorage();
    const orders = server({ storage: memory }).resource<Owner>(ORDERS).in('default');
    const happens = async (name: string, key: string): Promise<void> => {
      if (name === method && key === PATH) await things.shift()?.();
    };
    const last = new Map<string, ObjectMeta>();
    const watch = await memory.scope(ORDERS_PREFIX).watch();
    closing.push(() => watch.return());
    void (async () => {
      for await (const { type, object } of watch) {
        if (type === 'DELETED') last.set(object.metadata?.name ?? '', object.metadata ?? {});
      }
    })();
    const create = (name: string, ownerReferences: readonly object[] = []): Promise<Owner> =>
      orders.create({ metadata: { name, ownerReferences } } as unknown as Owner);
    const { storage, hold } = sightOf(memory);
    const collect = (): Promise<void> =>
      server({ storage: preceded(storage, happens), garbageCollection: true }).ready.then(() => quiet(memory));
    const change = (metadata: object): Promise<Owner> => orders.patch('child', { metadata });
    return { memory, orders, last, create, change, collect, hold: () => hold(ORDERS_PREFIX) };
  }

  test('no object goes that has got an owner, although it had changed before, too', async () => {
    const things: (() => Promise<unknown>)[] = [];
    const { last, create, change, collect } = await raced('delete', things);
    const keeper = await create('keeper');
    await create('child', [gone]);
    const adopt = (): Promise<unknown> => change({ ownerReferences: [refTo(keeper)] }).catch(() => {});
    things.push(() => change({ labels: { a: 'b' } }), adopt);
    await collect();
    expect(last.get('child')?.labels).toEqual({ a: 'b' });
    expect(last.get('child')?.ownerReferences).toEqual([gone]);
  });

  test('no object goes that gets an owner while its dependents stop to block it', async () => {
    const things: (() => Promise<unknown>)[] = [];
    const { orders, create, change, collect } = await raced('update', things);
    const [keeper, owner] = [await create('keeper'), await create('owner')];
    const child = await create('child', [refTo(owner, { blockOwnerDeletion: true })]);
    await create('grandchild', [refTo(child)]);
    for (const name of ['owner', 'grandchild']) {
      await orders.patch(name, { metadata: { finalizers: ['foregroundDeletion'] } });
      await orders.delete(name);
    }
    things.push(() => change({ ownerReferences: [refTo(keeper), refTo(owner, { blockOwnerDeletion: true })] }));
    await collect();
    await expect.poll(() => orders.get('owner').catch(() => undefined)).toBeUndefined();
    expect((await orders.get('child')).metadata).toMatchObject({ ownerReferences: [refTo(keeper)] });
    expect((await orders.get('child')).metadata).not.toHaveProperty('deletionTimestamp');
  });

  test('an object whose last owner goes while the reference to another one is taken away goes, too', async () => {
    const things: (() => Promise<unknown>)[] = [];
    const { orders, create, change, collect } = await raced('update', things);
    const keeper = await create('keeper');
    await create('child', [refTo(keeper), gone]);
    things.push(() => change({ ownerReferences: [gone] }));
    await collect();
    await expect.poll(() => orders.get('child').catch(() => undefined)).toBeUndefined();
  });

  test('an object that is to leave orphans leaves them', async () => {
    const things: (() => Promise<unknown>)[] = [];
    const { memory, orders, create, change, collect, hold } = await raced('delete', things);
    const child = await create('child', [gone]);
    await create('grandchild', [refTo(child)]);
    let release = (): void => {};
    things.push(async () => {
      release = hold();
      await change({ finalizers: ['orphan'] });
      await orders.delete('child');
    });
    await collect();
    release();
    await quiet(memory);
    await expect.poll(() => orders.get('child').catch(() => undefined)).toBeUndefined();
    expect((await orders.get('grandchild')).metadata.ownerReferences ?? []).toEqual([]);
  });
});

test('a namespace that is changed while its deletion begins does not go if the client has asked for another version', async () => {
  const memory = new MemoryStorage();
  const namespaces = server({ storage: memory }).resource('namespaces/v1');
  const { metadata } = await namespaces.create({ metadata: { name: 'n' } });
  const label = (): Promise<unknown> => namespaces.patch('n', { metadata: { labels: { a: 'b' } } });
  const happens = (method: string, key: string): Promise<unknown> | undefined =>
    method === 'update' && key === 'n' ? label() : undefined;
  const asked = server({ storage: preceded(memory, happens) }).resource('namespaces/v1');
  const preconditions = { resourceVersion: metadata?.resourceVersion };
  await expect(asked.delete('n', { preconditions })).rejects.toMatchObject({ status: { code: 409 } });
  expect((await namespaces.get('n')).metadata).not.toHaveProperty('deletionTimestamp');
});

test('hooks are told the kind of what goes with a namespace, also if only another server serves it', async () => {
  const memory = new MemoryStorage();
  const more = { ...ORDERS_KIND, plural: 'widgets', kind: 'Widget' };
  const other = server({ storage: memory, resources: [...EVERYTHING, more] });
  await other.resource('namespaces/v1').create({ metadata: { name: 'n' } });
  for (const type of [ORDERS, 'widgets.example.com/v1'])
    await other
      .resource(type)
      .in('n')
      .create({ metadata: { name: 'a' } });
  const told: unknown[] = [];
  const validate = ({ operation, resource, namespace, name }: AdmissionReview): void =>
    void told.push([operation, resource, namespace, name]);
  await server({ storage: memory, admission: { validate } }).resource('namespaces/v1').delete('n');
  expect(told).toEqual([
    ['DELETE', 'namespaces', 'n', 'n'],
    ['DELETE', 'orders.example.com', 'n', 'a'],
    ['DELETE', 'widgets.example.com', 'n', 'a'],
  ]);
});

test('an object that was created before its definition was Established for all goes with the definition', async () => {
  const memory = new MemoryStorage();
  const clock = new FakeClock();
  const stored = new Latch();
  let writes = 0;
  // The first write accepts the names. The second one, which says that it is Established, comes too late.
  const happens = (method: string, key: string): Promise<unknown> | undefined =>
    method === 'update' && key === 'widgets.example.com' && ++writes > 1 ? stored.promise : undefined;
  const early = server({ storage: preceded(sightOf(memory).storage, happens), clock, customResourceDefinitions: true });
  await early.ready;
  const { storage, hold } = sightOf(memory);
  const other = server({ storage, customResourceDefinitions: true });
  await other.ready;
  const release = hold('apiextensions.k8s.io/customresourcedefinitions/');
  const crds = other.resource(CRDS);
  await crds.create(crdOf());
  await expect.poll(() => early.kind('widgets.example.com/v1').then(Boolean, () => false)).toBe(true);
  await early
    .resource('widgets.example.com/v1')
    .in('default')
    .create({ metadata: { name: 'a' } });
  await crds.delete('widgets.example.com');
  stored.open();
  for (let seconds = 0; seconds < 10; seconds++) await clock.advanceAsync(1_000);
  await expect.poll(() => crds.get('widgets.example.com').catch(() => undefined)).toBeUndefined();
  expect(await memory.get('example.com/widgets/default/a')).toBeUndefined();
  release();
});
