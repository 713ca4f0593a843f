// What a ResourceClient does, wherever its objects are: in a cluster, or in a server of the same process. The kind is `Order`, with the
// subresources `status` and `scale`; its schema knows `spec.count` and `status.phase`.
import { expect } from 'vitest';
import { Informer, type KubernetesObject, keyOf, type ResourceClient } from '../../src/cache/index.ts';
import { isWatchError } from '../../src/index.ts';
import type { ResourceSource } from '../../src/operator/index.ts';
import { Controller } from '../../src/workqueue/index.ts';
import { until } from '../eventually.ts';

export interface Order extends KubernetesObject {
  readonly spec?: { readonly count?: number; readonly replicas?: number } | undefined;
  readonly status?: { readonly phase?: string } | undefined;
}

const number = { type: 'integer' };

/** Its schema, for a definition of either side. */
export const ORDER_SCHEMA = {
  type: 'object',
  properties: {
    spec: { type: 'object', properties: { count: number, replicas: number } },
    status: { type: 'object', properties: { phase: { type: 'string' }, replicas: number } },
  },
} as const;

/** Where the numbers of its scale are. */
export const ORDER_SCALE = { specReplicasPath: '.spec.replicas', statusReplicasPath: '.status.replicas' } as const;

export const ORDER_NAMES = { group: 'example.com', version: 'v1', plural: 'orders', kind: 'Order' } as const;

/** One thing that a client must do. `orders` has all namespaces; each case has names of its own in `default`. */
export interface ResourceCase {
  readonly name: string;
  readonly run: (orders: ResourceClient<Order>) => Promise<void>;
}

/** One thing that a source of all kinds must do. */
export interface SourceCase {
  readonly name: string;
  readonly run: (source: ResourceSource) => Promise<void>;
}

const FULL = { ...ORDER_NAMES, namespaced: true };

export const SOURCE_CONTRACT: readonly SourceCase[] = [
  {
    name: 'a resource by name, and by its type',
    run: async (source) => {
      const types = [
        source.resource('orders.example.com/v1'),
        source.resource(FULL),
        source.resource({ ...ORDER_NAMES, kind: undefined }),
      ];
      for (const { type } of types) expect(type).toMatchObject({ group: 'example.com', version: 'v1', plural: 'orders' });
      await source.resource<Order>(FULL).in('default').create(named('by-type'));
      expect(await source.resource<Order>('orders.example.com/v1').delete('default/by-type')).toBeUndefined();
    },
  },
  {
    name: 'a kind by name, with or without its version, and by the kind of its objects: its type has everything',
    run: async (source) => {
      const names = ['orders.example.com/v1', 'orders.example.com', { apiVersion: 'example.com/v1', kind: 'Order' }];
      for (const name of names) {
        const orders = await source.kind<Order>(name, { signal: new AbortController().signal, maxAgeMs: 0 });
        expect(orders.type).toEqual(FULL);
        expect(await orders.in('default').list()).toMatchObject({ items: expect.any(Array) });
      }
    },
  },
  {
    name: 'a kind that it does not have is INVALID_ARGUMENT',
    run: async (source) => {
      const names = [
        ...['pods.example.com/v1', 'orders.example.com/v2', 'orders.nowhere/v1', 'orders/v1'],
        ...[
          { apiVersion: 'example.com/v1', kind: 'order' },
          { apiVersion: 'v1', kind: 'Order' },
        ],
        ...['', 'a/b/c', null as never, {} as never],
      ];
      for (const name of names) expect(await codeOf(source.kind(name))).toBe('INVALID_ARGUMENT');
      expect(await codeOf(source.kind('orders.example.com/v1', { age: 5 } as never))).toBe('INVALID_ARGUMENT');
      await expect(source.kind('orders.example.com/v1', { signal: AbortSignal.abort('why') })).rejects.toBe('why');
    },
  },
];

/** The code of the refusal. */
async function codeOf(asked: Promise<unknown>): Promise<number | string | undefined> {
  return asked.then(
    () => 'done',
    (error) => (isWatchError(error, 'REFUSED') ? error.status?.code : isWatchError(error) ? error.code : String(error)),
  );
}

const named = (name: string, more: Partial<Order> = {}): Order => ({ metadata: { name }, ...more });

export const RESOURCE_CONTRACT: readonly ResourceCase[] = [
  {
    name: 'knows its kind, and its namespace',
    run: async (orders) => {
      expect({ ...orders.type, kind: 'Order' }).toMatchObject({ ...ORDER_NAMES });
      expect(orders.namespace).toBeUndefined();
      expect(orders.in('default').namespace).toBe('default');
    },
  },
  {
    name: 'create, get, update, patch, delete',
    run: async (all) => {
      const orders = all.in('default');
      const created = await orders.create(named('a', { spec: { count: 1 } }));
      expect(created).toMatchObject({ apiVersion: 'example.com/v1', kind: 'Order', metadata: { namespace: 'default' } });
      expect(await orders.get('a')).toEqual(created);
      expect(await orders.get('a', { resourceVersion: '0' })).toEqual(created);
      expect(await codeOf(orders.create(named('a')))).toBe(409);
      const updated = await orders.update({ ...created, spec: { count: 2 } });
      expect(updated).toMatchObject({ spec: { count: 2 } });
      expect(await codeOf(orders.update({ ...created, spec: { count: 3 } }))).toBe(409);
      expect(await orders.patch('a', { spec: { count: 4 } })).toMatchObject({ spec: { count: 4 } });
      const operations = [{ op: 'replace', path: '/spec/count', value: 5 }];
      expect(await orders.patch('a', operations, { type: 'json' })).toMatchObject({ spec: { count: 5 } });
      expect(await codeOf(orders.patch('a', { spec: {} }, { type: 'strategic' }))).toBe(415);
      const { resourceVersion } = created.metadata ?? {};
      expect(await codeOf(orders.delete('a', { preconditions: { resourceVersion } }))).toBe(409);
      expect(await orders.delete('a')).toBeUndefined();
      expect(await codeOf(orders.get('a'))).toBe(404);
      expect(await codeOf(orders.delete('a'))).toBe(404);
      expect(await codeOf(orders.patch('a', {}))).toBe(404);
    },
  },
  {
    name: 'a key names an object in all namespaces',
    run: async (orders) => {
      const key = keyOf(await orders.create({ metadata: { name: 'key', namespace: 'default' } }));
      expect(key).toBe('default/key');
      expect(await orders.patch(key, { spec: { count: 1 } })).toMatchObject({ spec: { count: 1 } });
      expect((await orders.update({ ...(await orders.get(key)), spec: { count: 2 } })).spec).toEqual({ count: 2 });
      expect(await orders.in('default').get(key)).toMatchObject({ spec: { count: 2 } });
      expect(await orders.delete(key)).toBeUndefined();
    },
  },
  {
    name: 'what is wrong is found before anything is asked',
    run: async (all) => {
      const orders = all.in('default');
      const invalid = 'INVALID_ARGUMENT';
      for (const name of ['', '..', 'a/b/c', 'other/a', 'a b', 7 as never]) expect(await codeOf(orders.get(name))).toBe(invalid);
      expect(await codeOf(all.get('a'))).toBe(invalid);
      expect(await codeOf(all.create(named('a')))).toBe(invalid);
      expect(await codeOf(orders.update({ metadata: {} }))).toBe(invalid);
      expect(await codeOf(orders.update({ metadata: { name: 'a', namespace: 'other' } }))).toBe(invalid);
      const unknown = { nonsense: 1 } as never;
      expect(await codeOf(orders.get('a', unknown))).toBe(invalid);
      expect(await codeOf(orders.create(named('a'), unknown))).toBe(invalid);
      expect(await codeOf(orders.update(named('a'), unknown))).toBe(invalid);
      expect(await codeOf(orders.patch('a', {}, unknown))).toBe(invalid);
      expect(await codeOf(orders.delete('a', unknown))).toBe(invalid);
      expect(await codeOf(orders.delete('a', { gracePeriodSeconds: 0.5 }))).toBe(invalid);
      expect(await codeOf(orders.delete('a', { propagation: 'None' as never }))).toBe(invalid);
      expect(await codeOf(orders.deleteCollection(unknown))).toBe(invalid);
      expect(await codeOf(orders.create(named('a'), { fieldValidation: 'All' as never }))).toBe(invalid);
      expect(await codeOf(orders.patch('a', {}, { force: true }))).toBe(invalid);
      expect(await codeOf(orders.patch('a', {}, { type: 'smart' as never }))).toBe(invalid);
      expect(await codeOf(orders.patch('a', {}, { type: 'json' }))).toBe(invalid);
      expect(await codeOf(orders.patch('a', [], { type: 'merge' }))).toBe(invalid);
      expect(await codeOf(orders.patch('a', {}, { type: 'apply' }))).toBe(invalid);
      expect(() => orders.in('a/b')).toThrow(/^namespace: /);
      expect(() => orders.subresource('a/b')).toThrow(/^subresource: /);
    },
  },
  {
    name: 'a name can be generated, and a dry run changes nothing',
    run: async (all) => {
      const orders = all.in('default');
      const { name = '' } = (await orders.create({ metadata: { generateName: 'gen-' } })).metadata ?? {};
      expect(name).toMatch(/^gen-\w+$/);
      expect(await orders.create(named('dry'), { dryRun: true, fieldManager: 'test' })).toMatchObject({ kind: 'Order' });
      expect(await codeOf(orders.get('dry'))).toBe(404);
      expect(await orders.patch(name, { spec: { count: 7 } }, { dryRun: true })).toMatchObject({ spec: { count: 7 } });
      await orders.delete(name, { dryRun: true });
      expect((await orders.get(name)).spec).toBeUndefined();
      await orders.delete(name);
    },
  },
  {
    name: 'fields that the schema does not know are refused, if they are to be',
    run: async (all) => {
      const orders = all.in('default');
      const wrong = { metadata: { name: 'strict' }, spec: { cuont: 1 } } as Order;
      expect(await codeOf(orders.create(wrong, { fieldValidation: 'Strict' }))).toBe(400);
      expect(await codeOf(orders.create(wrong, { fieldValidation: 'Ignore', dryRun: true }))).toBe('done');
    },
  },
  {
    name: 'what a finalizer holds is returned by its deletion',
    run: async (all) => {
      const orders = all.in('default');
      await orders.create({ metadata: { name: 'held', finalizers: ['example.com/held'] } });
      expect((await orders.delete('held', { propagation: 'Background' }))?.metadata).toHaveProperty('deletionTimestamp');
      await orders.patch('held', { metadata: { finalizers: null } });
      expect(await codeOf(orders.get('held'))).toBe(404);
    },
  },
  {
    name: 'a status is written at its own path, and only there',
    run: async (all) => {
      const orders = all.in('default');
      const created = await orders.create(named('st', { spec: { count: 1 }, status: { phase: 'New' } }));
      expect(created.status).toBeUndefined();
      const status = orders.subresource('status');
      expect(status.name).toBe('status');
      const paid = await status.update({ ...created, spec: { count: 9 }, status: { phase: 'Paid' } });
      expect(paid).toMatchObject({ spec: { count: 1 }, status: { phase: 'Paid' } });
      const main = await orders.update({ ...paid, spec: { count: 2 }, status: { phase: 'Lost' } });
      expect(main).toMatchObject({ spec: { count: 2 }, status: { phase: 'Paid' } });
      const patched = await all.subresource('status').patch('default/st', { spec: { count: 3 }, status: { phase: 'Done' } });
      expect(patched).toMatchObject({ spec: { count: 2 }, status: { phase: 'Done' } });
      expect(await status.get('st')).toEqual(await orders.get('st', { subresource: 'status' }));
      expect(await orders.get('st')).toEqual(patched);
      expect(await codeOf(orders.patch('st', {}, { subresource: 'nothing' }))).not.toBe('done');
      await orders.delete('st');
    },
  },
  {
    name: 'how many there are is read and written as a Scale',
    run: async (all) => {
      const orders = all.in('default');
      await orders.create(named('sc', { spec: { count: 1, replicas: 2 } }));
      const scale = orders.subresource('scale');
      const seen = await scale.get('sc');
      expect(seen).toMatchObject({ apiVersion: 'autoscaling/v1', kind: 'Scale', spec: { replicas: 2 }, status: { replicas: 0 } });
      const { kind: _, apiVersion: __, ...bare } = seen;
      expect(await scale.update({ ...bare, spec: { replicas: 3 } })).toMatchObject({ kind: 'Scale', spec: { replicas: 3 } });
      expect(await codeOf(scale.update({ ...seen, spec: { replicas: 4 } }))).toBe(409);
      expect((await all.subresource('scale').patch('default/sc', { spec: { replicas: 5 } })).spec).toEqual({ replicas: 5 });
      expect(await codeOf(scale.patch('sc', { spec: { replicas: -1 } }))).toBe(422);
      expect(await codeOf(scale.patch('sc', { spec: { replicas: 1 } }, { type: 'strategic' }))).toBe(415);
      expect(await codeOf(scale.get('gone'))).toBe(404);
      expect((await orders.get('sc')).spec).toEqual({ count: 1, replicas: 5 });
      await orders.delete('sc');
    },
  },
  {
    name: 'a collection is deleted, as far as the selectors match',
    run: async (all) => {
      const orders = all.in('default');
      for (const [name, of] of [
        ['x', 'one'],
        ['y', 'one'],
        ['z', 'two'],
      ] as const) {
        await orders.create({ metadata: { name, labels: { of } } });
      }
      const namesOf = (items: readonly Order[]): unknown[] => items.map(({ metadata }) => metadata?.name).sort();
      const labelSelector = 'of=one';
      expect(namesOf(await orders.deleteCollection({ labelSelector, dryRun: true }))).toEqual(['x', 'y']);
      expect(namesOf(await orders.deleteCollection({ labelSelector, fieldSelector: 'metadata.name!=y' }))).toEqual(['x']);
      expect(namesOf((await orders.list({ labelSelector: 'of' })).items)).toEqual(['y', 'z']);
      expect(namesOf(await orders.deleteCollection({ labelSelector: 'of' }))).toEqual(['y', 'z']);
      expect(await orders.deleteCollection({ labelSelector: 'of' })).toEqual([]);
    },
  },
  {
    name: 'an aborted signal rejects with its reason',
    run: async (all) => {
      const orders = all.in('default');
      const reason = new Error('enough');
      const signal = AbortSignal.abort(reason);
      await expect(orders.get('a', { signal })).rejects.toBe(reason);
      await expect(orders.list({ signal })).rejects.toBe(reason);
      await expect(orders.create(named('late'), { signal })).rejects.toBe(reason);
      await expect(orders.deleteCollection({ signal })).rejects.toBe(reason);
      expect(await codeOf(orders.get('late'))).toBe(404);
    },
  },
  {
    name: 'a controller reads by an informer, and writes',
    run: async (all) => {
      const orders = all.in('default');
      const informer = new Informer<Order>(orders);
      const ended = new AbortController();
      const controller = new Controller({
        informers: [informer],
        reconcile: async (key, { wrote }) => {
          const order = informer.store.get(key);
          if (order?.spec?.count && order.status?.phase !== 'Seen') {
            wrote(await all.subresource('status').patch(key, { status: { phase: 'Seen' } }));
          }
        },
      });
      const ran = controller.run(ended.signal);
      await orders.create(named('seen', { spec: { count: 1 } }));
      await until(async () => (await orders.get('seen')).status?.phase === 'Seen');
      ended.abort();
      await ran;
      await orders.delete('seen');
    },
  },
];
