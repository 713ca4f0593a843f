// Of a storage that does not tell keys: a cacher whose keyOf does not tell them either would list nothing, and nobody would know why.
import { afterEach, describe, expect, it } from 'vitest';
import { ApiServer, type ResourceDefinition } from '../../src/apiserver/index.ts';
import { keyOf } from '../../src/cache/index.ts';
import type { KubernetesObject } from '../../src/cache/object.ts';
import { Cacher, MemoryStorage, type Storage } from '../../src/storage/index.ts';
import { eventually } from '../eventually.ts';
import { ORDERS, type Order } from './apiserver-rig.ts';
import { without } from './storage-without.ts';

const open: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const each of open.splice(0)) await each.close();
});

function cached(options?: { keyOf: (object: KubernetesObject) => string }): Cacher {
  const storage = without(new MemoryStorage(), 'backing');
  const cacher = new Cacher(storage, options);
  open.push(cacher, storage);
  return cacher;
}

const mistaken = (found: string, key: string): unknown =>
  expect.objectContaining({
    code: 'INVALID_ARGUMENT',
    message: `keyOf(object): expected "${key}", under which the object is to be written, got "${found}"`,
  });

describe('a cacher whose keyOf tells another key', () => {
  const write = {
    create: (storage: Storage) => storage.create('lisbon/1', { metadata: { name: '1' } }),
    update: (storage: Storage) => storage.update('lisbon/1', () => ({ metadata: { name: '1' } }), { createIfMissing: true }),
  };
  it.each(['create', 'update'] as const)('%s says so', async (verb) => {
    await expect(write[verb](cached())).rejects.toEqual(mistaken('1', 'lisbon/1'));
    await expect(write[verb](cached().scope('orders/'))).rejects.toEqual(mistaken('1', 'orders/lisbon/1'));
    const right = cached({ keyOf: ({ metadata }) => `lisbon/${metadata?.name}` });
    await write[verb](right);
    expect((await right.scope('lisbon/').list()).items).toHaveLength(1);
  });

  it.each(['create', 'update'] as const)('%s writes nothing', async (verb) => {
    const storage = without(new MemoryStorage(), 'backing');
    const cacher = new Cacher(storage);
    open.push(cacher, storage);
    await expect(write[verb](cacher)).rejects.toEqual(mistaken('1', 'lisbon/1'));
    expect((await storage.list()).items).toEqual([]);
  });

  it.each([(name: string) => ({ metadata: { name } }), async (name: string) => ({ metadata: { name } })])(
    'an update that renames the object writes nothing, be it late or not',
    async (named) => {
      const storage = without(new MemoryStorage(), 'backing');
      const cacher = new Cacher(storage);
      open.push(cacher, storage);
      const stored = await cacher.create('a', { metadata: { name: 'a' } });
      await expect(cacher.update('a', () => named('b'))).rejects.toEqual(mistaken('b', 'a'));
      expect((await storage.list()).items).toEqual([stored]);
      expect((await cacher.list()).items).toEqual([stored]);
    },
  );

  it('an object that was renamed behind its back is under its new key alone, and its watches are told 410', async () => {
    const storage = without(new MemoryStorage(), 'backing');
    const cacher = new Cacher(storage, { onError: () => {} });
    open.push(cacher, storage);
    await storage.create('a', { metadata: { name: 'a' } });
    const { resourceVersion } = await cacher.list();
    const watch = await cacher.watch({ resourceVersion });
    const renamed = await storage.update('a', () => ({ metadata: { name: 'b' } }));
    expect(await watch.next()).toMatchObject({ value: { type: 'ERROR', object: { code: 410 } } });
    // Until it has listed anew, it refuses.
    await eventually(async () => expect((await cacher.list()).items).toEqual([renamed]));
  });

  it.each([null, undefined, 5, 'x'])('an object that is none: %j', async (object) => {
    const refused = { code: 'INVALID_ARGUMENT', message: expect.stringContaining('object: expected an object') };
    await expect(cached().create('a', object as never)).rejects.toMatchObject(refused);
    await expect(cached().update('a', () => object as never, { createIfMissing: true })).rejects.toMatchObject(refused);
  });

  it.each([null, 5, 'x'])('options that are none: %j', async (options) => {
    const cacher = cached();
    const refused = { code: 'INVALID_ARGUMENT', message: expect.stringContaining('options') };
    await expect(cacher.create('a', { metadata: { name: 'a' } }, options as never)).rejects.toMatchObject(refused);
    await expect(cacher.update('a', (now: KubernetesObject) => now, options as never)).rejects.toMatchObject(refused);
    await expect(cacher.delete('a', options as never)).rejects.toMatchObject(refused);
    await expect(cacher.update('a', 'x' as never)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
  });

  it('as the storage of a server, it says so with the first write', async () => {
    const serve = (storage: Storage): ApiServer => new ApiServer({ storage, resources: [ORDERS as ResourceDefinition] });
    const order = { metadata: { name: 'a' } };
    for (const [storage, ends] of [
      [cached(), mistaken('default/a', 'example.com/orders/default/a')],
      [cached({ keyOf: (object) => `example.com/orders/${keyOf(object)}` }), undefined],
    ] as const) {
      const server = serve(storage);
      const orders = server.resource<Order>('orders.example.com/v1').in('default');
      if (ends) await expect(orders.create(order)).rejects.toEqual(ends);
      else expect([await orders.create(order)]).toEqual((await orders.list()).items);
      await server.shutdown();
    }
  });
});
