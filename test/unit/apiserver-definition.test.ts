// What a definition of a resource must be, and what becomes of user code in it that fails: who hears of it, over HTTP and in process.
import { afterEach, describe, expect, it, test, vi } from 'vitest';
import { ApiServer, type ResourceDefinition } from '../../src/apiserver/index.ts';
import { toInfo } from '../../src/apiserver/resource-info.ts';
import { MemoryStorage } from '../../src/storage/index.ts';
import { isWatchError, type WatchError } from '../../src/watch/errors.ts';
import { ORDER, ORDERS_PATH, type Order } from './apiserver-rig.ts';

const NAMES = { group: 'example.com', version: 'v1', plural: 'orders', kind: 'Order' } as const;
const servers: ApiServer[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) await server.shutdown();
});

function serving(more: object): { server: ApiServer; errors: unknown[] } {
  const errors: unknown[] = [];
  const resources = [{ ...NAMES, ...more } as unknown as ResourceDefinition];
  const server = new ApiServer({ storage: new MemoryStorage(), resources, onError: (error) => errors.push(error) });
  servers.push(server);
  return { server, errors };
}

async function post(server: ApiServer, body: object): Promise<{ code: number; body: { message: string } }> {
  const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ ...ORDER, ...body }) };
  const response = await server.fetch(new Request(`http://localhost${ORDERS_PATH}`, init));
  return { code: response.status, body: (await response.json()) as { message: string } };
}

describe('a definition', () => {
  const value = (): string => 'x';
  it.each<[string, object, string]>([
    ['shortNames', { shortNames: 'ord' }, '"ord"'],
    ['shortNames', { shortNames: null }, 'null'],
    ['shortNames[1]', { shortNames: ['ord', 'Ord'] }, '"Ord"'],
    ['categories', { categories: 'all' }, '"all"'],
    ['categories[0]', { categories: [7] }, '7'],
    ['singular', { singular: '' }, '""'],
    ['listKind', { listKind: '' }, '""'],
    ['listKind', { listKind: 'order list' }, '"order list"'],
    ['namespaced', { namespaced: 'yes' }, '"yes"'],
    ['status', { status: 'yes' }, '"yes"'],
    ['status', { status: {} }, 'Object {}'],
    ['columns', { columns: {} }, 'Object {}'],
    ['columns[0]', { columns: [5] }, '5'],
    ['columns[0].name', { columns: [{ type: 'string', value }] }, 'undefined'],
    ['columns[0].type', { columns: [{ name: 'A', type: 'text', value }] }, '"text"'],
    [
      'columns[1].value',
      {
        columns: [
          { name: 'A', type: 'string', value },
          { name: 'B', type: 'string' },
        ],
      },
      'undefined',
    ],
    ['columns[0].value', { columns: [{ name: 'A', type: 'string', jsonPath: '.spec' }] }, 'undefined'],
    ['columns[0].description', { columns: [{ name: 'A', type: 'string', value, description: 5 }] }, '5'],
    ['columns[0].priority', { columns: [{ name: 'A', type: 'string', value, priority: -1 }] }, '-1'],
    ['fields', { fields: [] }, 'Array {}'],
    ['fields', { fields: null }, 'null'],
    ['fields.spec.item', { fields: { 'spec.item': 'item' } }, '"item"'],
    ['schema', { schema: 'object' }, '"object"'],
    ['schema', { schema: [] }, 'Array {}'],
    ['validate', { validate: 5 }, '5'],
    ['validate', { validate: [] }, 'Array {}'],
  ])('is refused for %s: %o', (name, more, got) => {
    let refusal: unknown;
    try {
      serving(more);
    } catch (error) {
      refusal = error;
    }
    expect(isWatchError(refusal, 'INVALID_ARGUMENT')).toBe(true);
    const { message } = refusal as WatchError;
    expect(message.startsWith(`resource.${name}: expected `)).toBe(true);
    expect(message.endsWith(`, got ${got}`)).toBe(true);
  });

  it.each<[object, string]>([
    [{ group: 'Example' }, 'group: expected a name such as example.com, or an empty string'],
    [{ group: undefined }, 'group: expected a name such as example.com, or an empty string'],
    [{ version: 'v/1' }, 'version: expected a version such as v1'],
    [{ plural: 'Orders' }, 'plural: expected a name in lower case, such as orders'],
    [{ kind: 'my order' }, 'kind: expected a name such as Order'],
    [{ singular: 'Order' }, 'singular: expected a name in lower case'],
    [{ listKind: '1' }, 'listKind: expected a name such as OrderList'],
    [{ shortNames: {} }, 'shortNames: expected an array of names in lower case'],
    [{ shortNames: [7] }, 'shortNames[0]: expected a name in lower case'],
    [{ namespaced: 1 }, 'namespaced: expected true or false'],
    [{ status: 1 }, 'status: expected true or false'],
    [{ schema: 7 }, 'schema: expected a JSON schema, as an object'],
    [{ validate: 7 }, 'validate: expected a function, or a JSON schema as an object'],
    [{ columns: 7 }, 'columns: expected an array of columns'],
    [{ columns: [7] }, 'columns[0]: expected a column: { name, type, value }'],
    [{ columns: [{ name: '', type: 'string', value }] }, 'columns[0].name: expected a non-empty string'],
    [{ columns: [{ name: 'A', type: 'string' }] }, 'columns[0].value: expected a function of an object'],
    [{ columns: [{ name: 'A', type: 'string', value, description: 7 }] }, 'columns[0].description: expected a text'],
    [{ fields: 7 }, 'fields: expected an object of functions'],
    [{ fields: { a: 7 } }, 'fields.a: expected a function'],
    [{ fields: { a: undefined } }, 'fields.a: expected a function'],
  ])('%j says what was expected', (more, message) => {
    expect(() => serving(more)).toThrow(`resource.${message}, got `);
  });

  it('is what it says, with what it leaves out filled in', () => {
    const least = { group: 'x.io', version: 'v1', plural: 'things', kind: 'Thing' };
    const { main, subresources, apart, ...info } = toInfo(least);
    expect([main.name, subresources, apart]).toEqual(['', [], []]);
    expect(info).toEqual({
      ...least,
      ...{ apiVersion: 'x.io/v1', singular: 'thing', listKind: 'ThingList', shortNames: [], categories: [] },
      ...{
        namespaced: true,
        validate: undefined,
        schema: undefined,
        preserveUnknownFields: true,
        columns: undefined,
        fields: {},
      },
      ...{ prefix: 'x.io/things/', shared: false, resourceName: 'things.x.io', kindName: 'Thing.x.io' },
    });
    const core = toInfo({ ...least, group: '', namespaced: false, status: true, singular: 'one', listKind: 'Things' });
    expect(core).toMatchObject({
      ...{ apiVersion: 'v1', singular: 'one', listKind: 'Things', namespaced: false, apart: ['status'] },
      ...{ subresources: [{ name: 'status' }] },
      ...{ prefix: 'core/things/', resourceName: 'things', kindName: 'Thing' },
    });
    const schema = { type: 'object' };
    expect(toInfo({ ...least, validate: schema })).toMatchObject({ validate: undefined, schema });
    expect(() => toInfo({ ...least, plurals: 'x' } as never)).toThrow('unknown option plurals');
  });

  it('is refused for a member of a column that is not known', () => {
    const columns = [{ name: 'A', type: 'string', value, width: 'date' }];
    expect(() => serving({ columns })).toThrow('unknown option width');
  });

  it.each<[object, string]>([
    [{ propertys: {} }, ': unknown keyword propertys: did you mean properties?'],
    [{ requierd: ['spec'] }, ': unknown keyword requierd: did you mean required?'],
    [{ type: 'objekt' }, '.type: expected "object", as a server serves only objects, got "objekt"'],
    [{ properties: [] }, '.properties: expected an object of schemas, got '],
    [{ properties: { spec: 'string' } }, '.properties.spec: expected a JSON schema, as an object, got "string"'],
    [{ allOf: { type: 'object' } }, '.allOf: expected an array of schemas, got Object {type}'],
    [{ allOf: [{}, { minimun: 1 }] }, '.allOf[1]: unknown keyword minimun: did you mean minimum?'],
    [{ properties: { a: { items: { enums: [1] } } } }, '.properties.a.items: unknown keyword enums: did you mean enum?'],
    [{ additionalProperties: { formats: 'x' } }, '.additionalProperties: unknown keyword formats: did you mean format?'],
  ])('is refused for a schema that would check nothing: %j', (schema, message) => {
    expect(() => serving({ schema })).toThrow(`resource.schema${message}`);
    expect(() => serving({ validate: schema })).toThrow(`resource.validate${message}`);
  });

  it('may have keywords of other tools, and members that are called as keywords nearly are', async () => {
    const properties = { propertys: { type: 'string', markdownDescription: '*' }, list: { items: [{}, true] } };
    const { server, errors } = serving({ schema: { properties, additionalProperties: false, 'x-order': 1, errorMessage: 'no' } });
    await server.ready;
    expect(await post(server, { metadata: { name: 'a' }, propertys: 'a' })).toMatchObject({ code: 201 });
    expect(await post(server, { metadata: { name: 'b' }, propertys: 1 })).toMatchObject({ code: 422 });
    expect(errors).toEqual([]);
  });

  it('is refused for a kind that another one of its version has', () => {
    const resources = [NAMES, { ...NAMES, plural: 'purchases' }];
    const make = (): ApiServer => new ApiServer({ storage: new MemoryStorage(), resources });
    expect(make).toThrow('resources: expected a kind other than that of example.com/v1/purchases');
  });

  it('may have no columns and no fields, and a schema where it has no function', async () => {
    const validate = { type: 'object', properties: { spec: { type: 'object', required: ['count'] } } };
    const { server, errors } = serving({ columns: [], fields: {}, shortNames: [], validate });
    expect(await post(server, { metadata: { name: 'a' }, spec: {} })).toMatchObject({ code: 422 });
    expect(await post(server, { metadata: { name: 'a' }, spec: { count: 1 } })).toMatchObject({ code: 201 });
    expect(errors).toEqual([]);
    expect(() => serving({ validate, schema: validate })).toThrow('resource.validate: expected a function, as there is a schema');
  });
});

it.each([false, true])('what validate changes has no effect (async: %s)', async (isAsync) => {
  const spoil = (object: unknown): void => void Object.assign(object ?? {}, { spec: { count: 99 } });
  const validate = (object: unknown, old: unknown): Promise<void> | undefined => {
    for (const each of [object, old]) spoil(each);
    return isAsync ? Promise.resolve().then(() => [object, old].forEach(spoil)) : undefined;
  };
  const orders = serving({ validate }).server.resource<Order>('orders.example.com/v1').in('default');
  const created = await orders.create({ metadata: { name: 'a' }, spec: { count: 1 } });
  expect([created, await orders.get('a')]).toEqual([created, { ...created, spec: { count: 1 } }]);
  const updated = await orders.update({ ...created, spec: { count: 2 } } as never);
  await expect(orders.update({ ...created, spec: { count: 3 } } as never)).rejects.toMatchObject({ status: { code: 409 } });
  expect(await orders.get('a')).toEqual({ ...updated, spec: { count: 2 } });
});

describe('what fails in user code', () => {
  it('goes to console.error, if nobody asks for it', async () => {
    const logged = vi.spyOn(console, 'error').mockImplementation(() => {});
    const failure = new Error('bad size');
    const resources = [{ ...NAMES, validate: () => Promise.reject(failure) }];
    const server = new ApiServer({ storage: new MemoryStorage(), resources });
    servers.push(server);
    expect(await post(server, { metadata: { name: 'a' } })).toMatchObject({ code: 500 });
    for (let n = 0; n < 3; n++) await post(server, { metadata: { name: 'a' } });
    expect(logged.mock.calls).toEqual([[expect.stringMatching(/^watchmux API server: Error: bad size \(at /)]]);
    logged.mockRestore();
  });

  test.each<[string, () => unknown, RegExp]>([
    [
      'throws',
      () => {
        throw new Error('bad size');
      },
      /^bad size$/,
    ],
    ['rejects', async () => Promise.reject(new Error('bad size')), /^bad size$/],
    ['returns a text', () => 'bad', /^validate of orders\.example\.com: expected a list of causes.*, got "bad"$/],
    ['resolves with false', async () => false, /^validate of orders\.example\.com: expected a list of causes.*, got false$/],
    ['returns a list of texts', () => ['bad'], /^validate of orders\.example\.com: .*, got "bad"$/],
    ['returns a cause without a field', () => [{ message: 'bad' }], /^validate of orders\.example\.com: /],
  ])('validate %s: 500 over HTTP and in process, and the owner hears of it', async (_, validate, told) => {
    for (const schema of [undefined, { type: 'object' }]) {
      const { server, errors } = serving({ validate, schema });
      const { code, body } = await post(server, { metadata: { name: 'a' } });
      expect(code).toBe(500);
      expect(errors).toHaveLength(1);
      const refusal: WatchError = await server
        .resource<Order>('orders.example.com/v1')
        .in('default')
        .create({ metadata: { name: 'a' } })
        .catch((error) => error);
      expect(isWatchError(refusal, 'REFUSED')).toBe(true);
      expect(refusal.status).toEqual(body);
      expect(errors).toHaveLength(2);
      for (const error of errors) expect((error as Error).message).toMatch(told);
      expect(refusal.cause).toBe(errors[1]);
    }
  });

  test('in process, an abort and an argument that is none stay what they are', async () => {
    const { server, errors } = serving({ validate: () => new Promise(() => {}) });
    const orders = server.resource<Order>('orders.example.com/v1').in('default');
    const reason = new Error('enough');
    await expect(orders.list({ signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    await expect(orders.get('a/b/c')).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
    expect(errors).toEqual([]);
  });

  test('a column: the cell is empty, all others are there, and the owner hears of it once', async () => {
    const columns = [
      { name: 'Big', type: 'integer', value: () => 3n },
      { name: 'Huge', type: 'integer', value: () => 2n ** 80n },
      { name: 'List', type: 'string', value: () => ['x', 1] },
      {
        name: 'Broken',
        type: 'string',
        value: () => {
          throw new Error('oops');
        },
      },
    ];
    for (let twice = 0; twice < 2; twice++) {
      const { server, errors } = serving({ columns });
      for (const name of ['a', 'b']) expect((await post(server, { metadata: { name } })).code).toBe(201);
      const headers = { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' };
      for (let again = 0; again < 2; again++) {
        const response = await server.fetch(new Request(`http://localhost${ORDERS_PATH}`, { headers }));
        expect(response.status).toBe(200);
        const { rows } = (await response.json()) as { rows: { cells: unknown[] }[] };
        expect(rows.map(({ cells }) => cells)).toEqual(['a', 'b'].map((name) => [name, 3, String(2n ** 80n), '["x",1]', null]));
      }
      expect(errors).toMatchObject([{ message: expect.stringContaining('Broken'), cause: { message: 'oops' } }]);
    }
  });
});
