// An informer runs on a storage or a server of the same process as on any other source, without a failure.
import { describe, expect, it } from 'vitest';
import { ApiServer, type ResourceDefinition } from '../../src/apiserver/index.ts';
import { Informer, type KubernetesObject } from '../../src/cache/index.ts';
import { Cacher, MemoryStorage, type Storage } from '../../src/storage/index.ts';
import { eventually } from '../eventually.ts';
import { ORDERS, type Order } from './apiserver-rig.ts';

interface Thing extends KubernetesObject {
  readonly n: number;
}

const kinds: [string, (storage: MemoryStorage<Thing>) => Storage<Thing>][] = [
  ['a MemoryStorage', (storage) => storage],
  ['a scope of it', (storage) => storage.scope<Thing>('things/')],
  ['a Cacher', (storage) => new Cacher<Thing>(storage)],
  [
    'a scope of it',
    (storage) => new Cacher<Thing>(storage, { keyOf: ({ metadata }) => `x/${metadata?.name}` }).scope<Thing>('x/'),
  ],
];

describe.each([true, false])('streamingList: %s', (streamingList) => {
  it.each(kinds)('an informer on %s', async (_, open) => {
    const storage = new MemoryStorage<Thing>();
    const source = open(storage);
    const errors: unknown[] = [];
    const informer = new Informer<Thing>(source, { streamingList, onError: (error) => errors.push(error) });
    const set = (n: number): Promise<Thing> =>
      source.update('a', () => ({ metadata: { name: 'a' }, n }), { createIfMissing: true });
    await set(1);
    void informer.run();
    await informer.synced;
    expect(informer.store.list().map(({ n }) => n)).toEqual([1]);
    await set(2);
    await eventually(() => expect(informer.store.list().map(({ n }) => n)).toEqual([2]));
    await source.delete('a');
    await eventually(() => expect(informer.store.list()).toEqual([]));
    await informer.stop();
    await storage.close();
    expect(errors).toEqual([]);
  });

  it.each([true, false])('an informer on a resource of a server, cache %s', async (cache) => {
    const server = new ApiServer({ storage: new MemoryStorage(), resources: [ORDERS as ResourceDefinition], cache });
    const orders = server.resource<Order>('orders.example.com/v1').in('default');
    const errors: unknown[] = [];
    const informer = new Informer<Order>(orders, { streamingList, onError: (error) => errors.push(error) });
    const a = await orders.create({ metadata: { name: 'a' }, spec: { count: 1 } });
    void informer.run();
    await informer.synced;
    expect(informer.store.list()).toEqual([a]);
    const b = await orders.update({ ...a, spec: { count: 2 } });
    await eventually(() => expect(informer.store.list()).toEqual([b]));
    await orders.delete('a');
    await eventually(() => expect(informer.store.list()).toEqual([]));
    await informer.stop();
    await server.shutdown();
    expect(errors).toEqual([]);
  });
});
