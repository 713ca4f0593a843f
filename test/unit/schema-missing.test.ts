// A server with schemas, where the package that checks them is not installed.
import { describe, expect, test, vi } from 'vitest';
import { ApiServer } from '../../src/apiserver/index.ts';
import { MemoryStorage } from '../../src/storage/index.ts';

vi.mock('ajv', () => {
  throw new Error("Cannot find package 'ajv'");
});

const ORDERS = { group: 'example.com', version: 'v1', plural: 'orders', kind: 'Order' };
const message = 'a schema with a keyword such as $ref or if needs the package ajv: npm install ajv, or leave out the keyword';

describe('without ajv', () => {
  test('a resource with a schema is refused when the server starts, with what to install', async () => {
    const errors: unknown[] = [];
    const resources = [{ ...ORDERS, schema: { type: 'object', properties: { spec: { const: 1 } } } }];
    const server = new ApiServer({ storage: new MemoryStorage(), resources, onError: (error) => errors.push(error) });
    await expect(server.ready).rejects.toMatchObject({ code: 'INVALID_ARGUMENT', message, cause: expect.any(Error) });
    expect(errors).toMatchObject([{ message }]);
    const ready = await server.fetch(new Request('http://a/readyz'));
    expect([ready.status, await ready.text()]).toEqual([503, expect.stringContaining('[-]start failed')]);
    await server.shutdown();
  });

  test('one with a schema of OpenAPI v3 alone is served, and so is one without', async () => {
    const schema = { type: 'object', properties: { spec: { type: 'string' } } };
    const server = new ApiServer({ storage: new MemoryStorage(), resources: [{ ...ORDERS, schema }] });
    await server.ready;
    const orders = server.resource<object>('orders.example.com/v1').in('default');
    await expect(orders.create({ metadata: { name: 'a' }, spec: 1 })).rejects.toMatchObject({ status: { code: 422 } });
    await server.shutdown();
  });

  test('one without a schema is served', async () => {
    const server = new ApiServer({ storage: new MemoryStorage(), resources: [ORDERS] });
    await server.ready;
    await server
      .resource('orders.example.com/v1')
      .in('default')
      .create({ metadata: { name: 'a' } });
    await server.shutdown();
  });
});
