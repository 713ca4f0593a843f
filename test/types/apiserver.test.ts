import { describe, expect, it } from 'vitest';
import {
  ApiServer,
  type ApiServerOptions,
  CONFIG_MAPS,
  LEASES,
  NAMESPACES,
  type ResourceDefinition,
} from '../../src/apiserver/index.ts';
import type { KubernetesObject } from '../../src/cache/index.ts';
import { MemoryStorage } from '../../src/storage/index.ts';

interface Order extends KubernetesObject {
  readonly spec: { readonly count: number };
}

const NAMES = { group: 'example.com', version: 'v1', plural: 'orders', kind: 'Order' } as const;

const ORDERS: ResourceDefinition<Order> = {
  ...NAMES,
  validate: ({ spec }, old) =>
    spec.count < (old?.spec.count ?? 0) ? [{ field: 'spec.count', message: 'only grows' }] : undefined,
  columns: [{ name: 'Count', type: 'integer', value: ({ spec }) => spec.count }],
  fields: { 'spec.count': ({ spec }) => String(spec.count) },
};

describe('the definition of a resource', () => {
  it('stands beside those of other kinds without a cast', () => {
    const resources: ApiServerOptions['resources'] = [ORDERS, CONFIG_MAPS, LEASES, NAMESPACES];
    expect(resources).toHaveLength(4);
  });

  it('may show a creation time as an age', () => {
    const age: NonNullable<ResourceDefinition['columns']>[number] = {
      ...{ name: 'Age', type: 'date' },
      value: ({ metadata }) => metadata?.creationTimestamp,
    };
    expect(age.name).toBe('Age');
  });

  it('may name the type of its objects where it is used', () => {
    const resources: ApiServerOptions['resources'] = [
      { ...NAMES, columns: [{ name: 'Count', type: 'integer', value: ({ spec }: Order) => spec.count }] },
    ];
    expect(resources).toHaveLength(1);
  });

  it('may have a schema in the place of its function, and no function that returns something else', () => {
    const validate = { type: 'object', required: ['spec'] };
    const resources: ApiServerOptions['resources'] = [
      { ...NAMES, validate },
      { ...NAMES, validate: ({ spec }: Order, old) => (old && spec ? [{ field: 'spec', message: 'is there' }] : undefined) },
      // @ts-expect-error -- a text is no list of causes
      { ...NAMES, validate: () => 'bad' },
      // @ts-expect-error -- one schema
      { ...NAMES, validate, schema: validate },
    ];
    expect(resources).toHaveLength(4);
    expect(ORDERS.validate?.({ spec: { count: 1 } }, undefined)).toBeUndefined();
  });

  it('is refused if its functions take anything but objects', () => {
    // @ts-expect-error -- a number is no object
    const wrong: ResourceDefinition = { ...NAMES, validate: (order: number) => (order > 1 ? [] : undefined) };
    expect(wrong.kind).toBe('Order');
    // @ts-expect-error -- a count is no text
    const fields: ResourceDefinition<Order> = { ...NAMES, fields: { 'spec.count': ({ spec }) => spec.count } };
    expect(fields.kind).toBe('Order');
  });
});

describe('fieldValidation in process', () => {
  it('is one of three values, of writes alone', async () => {
    const server = new ApiServer({ storage: new MemoryStorage(), resources: [ORDERS] });
    const orders = server.resource<Order>('orders.example.com/v1').in('default');
    await orders.create({ metadata: { name: 'a' }, spec: { count: 1 } }, { fieldValidation: 'Strict' });
    await orders.patch('a', {}, { fieldValidation: 'Warn' });
    // @ts-expect-error -- no such value
    await expect(orders.patch('a', {}, { fieldValidation: 'Nonsense' })).rejects.toThrow('fieldValidation');
    // @ts-expect-error -- a deletion has no fields
    await expect(orders.delete('a', { fieldValidation: 'Strict' })).rejects.toThrow('fieldValidation');
    await server.shutdown();
  });
});
