// A server with schemas, where the package that checks them is not installed.
import { describe, expect, test, vi } from 'vitest';
import { ApiServer } from '../../src/apiserver/index.ts';
import { MemoryStorage } from '../../src/storage/index.ts';

vi.mock('ajv', () => {
  throw new Error("Cannot find package 'ajv'");
});

const ORDERS = { group: 'example.com', version: 'v1', plural: 'orders', kind: 'Order' };
const message = 'a resource with a schema needs the package ajv: npm install ajv, or leave out its schema';

describe('without ajv', () => {
  test('a resource with a schema is refused when the server starts, with what to install', async () => {
    const errors: unknown[] = [];
    const resources = [{ ...ORDERS, schema: { type: 'object' } }];
    const server = new ApiServer({ storage: new MemoryStorage(), resources, onError: (error) => errors.push(error) });
    await expect(server.ready).rejects.toMatchObject({ code: 'INVALID_ARGUMENT', message, cause: expect.any(Error) });
    expect(errors).toMatchObject([{ message }]);
    const ready = await server.fetch(new Request('http://a/readyz'));
    expect([ready.status, await ready.text()]).toEqual([503, expect.stringContaining('[-]start failed')]);
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
