import { describe, expect, test } from 'vitest';
import { ApiServer } from '../../src/apiserver/index.ts';
import { fitting } from '../../src/apiserver/validation/object-schema.ts';
import type { KubernetesObject } from '../../src/cache/object.ts';
import { MemoryStorage } from '../../src/storage/index.ts';
import { atOnce } from '../../src/watch/fair-queue.ts';

const text = { type: 'string' };
const OPEN = { 'x-kubernetes-preserve-unknown-fields': true };
const spec = {
  type: 'object',
  properties: {
    size: { type: 'integer', default: 1 },
    name: text,
    open: { type: 'string', nullable: true },
    kept: {
      type: 'object',
      'x-kubernetes-preserve-unknown-fields': true,
      properties: { a: { type: 'object', properties: { b: text } } },
    },
    ports: {
      ...{ type: 'array', 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['port', 'protocol'] },
      items: {
        type: 'object',
        required: ['port'],
        properties: { port: { type: 'integer' }, protocol: { ...text, default: 'TCP' } },
      },
    },
  },
};
const ORDERS = { group: 'example.com', version: 'v1', plural: 'orders', kind: 'Order' };
const schema = { type: 'object', properties: { spec } };
const pruned = { ...ORDERS, schema, preserveUnknownFields: false };

interface Order extends KubernetesObject {
  readonly spec?: unknown;
}

const EMBEDDED = { type: 'object', 'x-kubernetes-embedded-resource': true, ...OPEN };

const serve = (resource: object, storage: MemoryStorage = new MemoryStorage()): ApiServer =>
  new ApiServer({ storage, resources: [resource as typeof ORDERS] });

describe('a schema', () => {
  test('takes unknown members from the metadata of an object within, which is told', async () => {
    const resource = { ...pruned, schema: { type: 'object', properties: { spec: EMBEDDED } } };
    const server = serve(resource);
    const url = 'http://localhost/apis/example.com/v1/namespaces/default/orders';
    const inner = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p', lables: {}, selfLink: '/' }, lables: {} };
    const body = JSON.stringify({ apiVersion: 'example.com/v1', kind: 'Order', metadata: { name: 'a' }, spec: inner });
    const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body };
    const refused = await server.fetch(new Request(`${url}?fieldValidation=Strict`, init));
    expect(((await refused.json()) as { message: string }).message).toMatch(/error: unknown field "spec\.metadata\.lables"$/);
    const made = await server.fetch(new Request(url, init));
    expect([made.status, made.headers.get('warning')]).toEqual([201, '299 - "unknown field \\"spec.metadata.lables\\""']);
    expect(((await made.json()) as Order).spec).toEqual({ ...inner, metadata: { name: 'p' } });
  });

  test('removes what it does not name, and null where it is not allowed, and fills in defaults', async () => {
    const orders = serve(pruned).resource<Order>('orders.example.com/v1').in('default');
    const sent = { name: null, open: null, other: 1, kept: { x: { y: 1 }, a: { b: 'c', d: 1 } }, ports: [{ port: 1, z: 1 }] };
    const made = await orders.create({ metadata: { name: 'a' }, spec: sent, more: 1 } as Order);
    expect(made.spec).toEqual({
      open: null,
      kept: { x: { y: 1 }, a: { b: 'c' } },
      ports: [{ port: 1, protocol: 'TCP' }],
      size: 1,
    });
    expect(made).not.toHaveProperty('more');
    const patched = await orders.patch('a', { spec: { size: null, other: 2 } });
    expect(patched.spec).toMatchObject({ size: 1 });
    expect(patched.metadata?.resourceVersion).toBe(made.metadata?.resourceVersion);
  });

  test('has defaults that a hook cannot change', async () => {
    const value = { list: [{ a: 1 }] };
    const filled = {
      type: 'object',
      properties: { list: { type: 'array', items: { type: 'object', ...OPEN } } },
      default: value,
    };
    let changed: unknown;
    const validate = (order: Order): readonly [] => {
      const { list } = order.spec as { list: { a: number }[] };
      changed = [Reflect.set(list[0] as object, 'a', 2), Reflect.set(list, 1, {}), Reflect.set(order.spec as object, 'b', 1)];
      return [];
    };
    const definition = { ...pruned, schema: { type: 'object', properties: { spec: { ...OPEN, ...filled } } }, validate };
    const orders = serve(definition).resource<Order>('orders.example.com/v1').in('default');
    for (const name of ['a', 'b']) {
      expect((await orders.create({ metadata: { name } })).spec).toEqual({ list: [{ a: 1 }] });
      expect(changed).toEqual([true, true, true]); // a copy
    }
    expect(value).toEqual({ list: [{ a: 1 }] });
    expect(Object.isFrozen(value)).toBe(false);
  });

  test('keeps what it does not name, unless its definition says otherwise', async () => {
    const orders = serve({ ...ORDERS, schema })
      .resource<Order>('orders.example.com/v1')
      .in('default');
    expect((await orders.create({ metadata: { name: 'a' }, spec: { other: 1 } })).spec).toEqual({ other: 1, size: 1 });
    await expect(orders.create({ metadata: { name: 'b' }, spec: { name: null } })).rejects.toMatchObject({
      status: { code: 422 },
    });
  });

  test('names what it removes, by the same paths in warnings and errors', async () => {
    const server = serve(pruned);
    const url = 'http://a/apis/example.com/v1/namespaces/default/orders';
    const type = { apiVersion: 'example.com/v1', kind: 'Order' };
    const body = JSON.stringify({ ...type, metadata: { name: 'a', odd: 1 }, spec: { other: 1, ports: [{ port: 1, z: 1 }] } });
    const post = (query: string): Promise<Response> =>
      server.fetch(new Request(url + query, { method: 'POST', headers: { 'content-type': 'application/json' }, body }));
    const { message } = (await (await post('?fieldValidation=Strict')).json()) as { message: string };
    expect(message).toMatch(/unknown field "metadata.odd", unknown field "spec.other", unknown field "spec.ports\[0\].z"$/);
    expect((await post('')).headers.get('warning')).toContain('unknown field \\"spec.ports[0].z\\"');
  });

  test('makes what was stored before it fit, whoever reads it, and writes it so with the next update', async () => {
    const storage = new MemoryStorage();
    const before = serve(ORDERS, storage).resource<Order>('orders.example.com/v1').in('default');
    await before.create({ metadata: { name: 'a' }, spec: { other: 1 } });
    const orders = serve(pruned, storage).resource<Order>('orders.example.com/v1').in('default');
    expect((await orders.get('a')).spec).toEqual({ size: 1 });
    expect((await orders.list()).items[0]?.spec).toEqual({ size: 1 });
    const read = await orders.get('a');
    const written = await orders.update(read);
    expect(written.metadata?.resourceVersion).not.toBe(read.metadata?.resourceVersion);
    expect((await before.get('a')).spec).toEqual({ size: 1 });
  });

  test('shares what it does not change, and never touches a prototype', () => {
    const object = { spec: { size: 2, ports: [{ port: 1, protocol: 'UDP' }] } };
    expect(atOnce(fitting(pruned, object))).toBe(object);
    const hostile = JSON.parse('{"spec":{"__proto__":{"polluted":1},"constructor":1}}') as object;
    expect(atOnce(fitting(pruned, hostile))).toEqual({ spec: { size: 1 } });
    expect(({} as Record<string, unknown>).polluted).toBeUndefined();
  });
});
