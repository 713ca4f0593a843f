import { describe, expect, it } from 'vitest';
import type { FieldCause, JsonSchema } from '../../src/apiserver/definition.ts';
import { ApiServer } from '../../src/apiserver/index.ts';
import { compileSchema, Schemas } from '../../src/apiserver/validation/object-schema.ts';
import { toCauses } from '../../src/apiserver/validation/schema.ts';

import type { KubernetesObject } from '../../src/cache/object.ts';
import { MemoryStorage } from '../../src/storage/index.ts';
import { isWatchError } from '../../src/watch/errors.ts';
import { atOnce } from '../../src/watch/fair-queue.ts';

const schema = {
  type: 'object',
  required: ['spec'],
  properties: {
    metadata: { type: 'number' }, // not this schema's business
    spec: {
      type: 'object',
      required: ['count'],
      additionalProperties: false,
      properties: {
        count: { type: 'integer', format: 'int32', minimum: 1 },
        color: { type: 'string', enum: ['red', 'blue'] },
        items: { type: 'array', items: { type: 'object', properties: { 'a/b': { type: 'string', nullable: true } } } },
        port: { anyOf: [{ type: 'integer' }, { type: 'string' }], 'x-kubernetes-int-or-string': true },
        when: { type: 'string', format: 'date-time' },
      },
    },
  },
};

const compiled = async (schema: JsonSchema): Promise<(object: KubernetesObject) => readonly FieldCause[]> => {
  const validate = await compileSchema(schema);
  return (object) => atOnce(validate(object));
};

const check = async (spec: unknown): Promise<string> => {
  const validate = await compiled(schema);
  const object = { apiVersion: 'x/v1', kind: 'X', metadata: { name: 'a' }, ...(spec !== undefined && { spec }) };
  const [cause] = validate(object as KubernetesObject);
  return cause === undefined ? '' : `${cause.field} ${cause.reason}: ${cause.message}`;
};

describe('a write of the status', () => {
  const rule = { rule: "self.word != 'bad'" };
  const validate = compileSchema({
    ...{ type: 'object', required: ['spec'] },
    properties: {
      spec: { type: 'object', required: ['word'], properties: { word: { type: 'string' } }, 'x-kubernetes-validations': [rule] },
      status: {
        type: 'object',
        required: ['phase'],
        properties: { phase: { type: 'string' }, count: { type: 'integer', maximum: 5 } },
      },
    },
  });
  const meta = { apiVersion: 'x/v1', kind: 'X', metadata: { name: 'a' } };
  const said = async (spec: object, status: unknown, part: string | undefined, before?: object): Promise<string[]> => {
    const old = before && ({ ...meta, ...spec, ...before } as KubernetesObject);
    const found = atOnce(
      (await validate)({ ...meta, ...spec, ...(status !== undefined && { status }) } as KubernetesObject, old, part),
    );
    return found.map(({ field, message }) => `${field}: ${message}`);
  };

  it('is checked for itself: no other member has to match the schema', async () => {
    expect(await said({}, { phase: 'a' }, 'status')).toEqual([]);
    expect(await said({}, undefined, 'status')).toEqual([]);
    expect(await said({}, { phase: 'a' }, '')).toEqual([
      'spec: Required value',
      expect.stringContaining('rules were not checked'),
    ]);
    expect(await said({}, { phase: 'a' }, undefined)).toContain('spec: Required value');
  });

  it('is told where it is wrong as upstream does', async () => {
    const blocked = expect.stringContaining('<nil>: Invalid value: null: some validation rules were not checked');
    expect(await said({}, { count: 6 }, 'status')).toEqual([
      'status.count: Invalid value: 6: count in body should be less than or equal to 5',
      'status.phase: Required value',
      blocked,
    ]);
    expect(await said({}, 5, 'status')).toEqual([
      'status: Invalid value: "integer":  in body must be of type object: "integer"',
      blocked,
    ]);
    expect(await said({}, { phase: 'a', count: 6 }, 'status', { status: { count: 6 } })).toEqual([]);
  });

  it('follows the rules of the whole object', async () => {
    expect(await said({ spec: { word: 'bad' } }, { phase: 'a' }, 'status')).toEqual([
      "spec: Invalid value: failed rule: self.word != 'bad'",
    ]);
  });
});

describe('compileSchema', () => {
  it.each([
    [{ count: 1 }, ''],
    [{ count: 1, port: 80, items: [{ 'a/b': null }], color: 'red', when: '2020-01-01T00:00:00Z' }, ''],
    [{ count: 1, port: 'http' }, ''],
    [
      { count: 1, when: 'soon' },
      'spec.when FieldValueTypeInvalid: Invalid value: "soon": spec.when in body must be of type date-time: "soon"',
    ],
    [undefined, 'spec FieldValueRequired: Required value'],
    [{}, 'spec.count FieldValueRequired: Required value'],
    [
      { count: 'x' },
      'spec.count FieldValueTypeInvalid: Invalid value: "string": spec.count in body must be of type integer: "string"',
    ],
    [{ count: 0 }, 'spec.count FieldValueInvalid: Invalid value: 0: spec.count in body should be greater than or equal to 1'],
    [{ count: 1, color: 'x' }, 'spec.color FieldValueNotSupported: Unsupported value: "x": supported values: "red", "blue"'],
    [{ count: 1, other: 1 }, 'spec FieldValueInvalid: Invalid value: "other": spec.other in body is a forbidden property'],
    [
      { count: 1, items: [{}, { 'a/b': 1 }] },
      'spec.items[1].a/b FieldValueTypeInvalid: Invalid value: "integer": spec.items[1].a/b in body must be of type string: "integer"',
    ],
    [
      { count: 1, port: 1.5 },
      'spec.port FieldValueTypeInvalid: Invalid value: "number": spec.port in body must be of type integer,string: "number"',
    ],
    [
      JSON.parse('{"count":1,"__proto__":1}'),
      'spec FieldValueInvalid: Invalid value: "__proto__": spec.__proto__ in body is a forbidden property',
    ],
  ])('%j: %s', async (spec, expected) => expect(await check(spec)).toBe(expected));

  it('a bound may be marked as exclusive, as in OpenAPI 3.0', async () => {
    const size = (more: object): object => ({ type: 'object', properties: { size: { type: 'number', ...more } } });
    const fits = async (schema: object, value: number): Promise<boolean> => {
      const validate = await compiled(schema as never);
      return validate({ metadata: { name: 'a' }, size: value } as KubernetesObject).length === 0;
    };
    const between = size({ minimum: 1, exclusiveMinimum: true, maximum: 3, exclusiveMaximum: true });
    expect(await Promise.all([1, 2, 3].map((value) => fits(between, value)))).toEqual([false, true, false]);
    const from = size({ minimum: 1, exclusiveMinimum: false, maximum: 3, exclusiveMaximum: false });
    expect(await Promise.all([0, 1, 3, 4].map((value) => fits(from, value)))).toEqual([false, true, true, false]);
    expect(await fits(size({ exclusiveMinimum: true }), -1)).toBe(true);
    expect(await fits(size({ exclusiveMinimum: 1 }), 1)).toBe(false);
  });

  it('a required member that is only inherited is missing', async () => {
    const validate = await compiled({ type: 'object', required: ['constructor'] });
    expect(validate({ metadata: {} })).toHaveLength(1);
  });

  it('a kind may forbid all members but those it names, and those that all kinds have', async () => {
    const validate = await compiled({
      type: 'object',
      additionalProperties: false,
      properties: { data: { type: 'string' } },
    });
    expect(validate({ apiVersion: 'v1', kind: 'X', metadata: {} })).toEqual([]);
    expect(validate({ other: 1 } as KubernetesObject)).toHaveLength(1);
  });

  it('a server with a schema that is none is refused at its start, before anybody writes', async () => {
    const resource = { group: 'example.com', version: 'v1', plural: 'orders', kind: 'Order' };
    const wrong = { ...resource, schema: { type: 'object', properties: { a: { type: 'nonsense' } } } };
    const server = new ApiServer({ storage: new MemoryStorage(), resources: [wrong], onError: () => {} });
    await expect(server.ready).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: expect.stringMatching(/^schema: .*type/),
    });
    await server.shutdown();
  });

  it('a schema that is none is refused, with what is wrong', async () => {
    await expect(compileSchema({ type: 'object', properties: { a: { type: 'nonsense' } } })).rejects.toThrow(/^schema: .*type/);
  });

  it('names what ajv says nothing of, and shows no more of a value than fits a line', () => {
    const cause = (instancePath: string, object: unknown, message?: string): unknown =>
      toCauses([{ instancePath, keyword: 'other', params: {}, ...(message !== undefined && { message }) }], object)[0];
    const reason = 'FieldValueInvalid';
    expect(cause('', 7)).toEqual({ field: '', message: 'Invalid value: 7: it in body does not fit', reason });
    const object = { 'a/b': { 'c~d': 'x'.repeat(300) } };
    const message = `Invalid value: "${'x'.repeat(199)}: a/b.c~d in body is bad`;
    expect(cause('/a~1b/c~0d', object, 'is bad')).toEqual({ field: 'a/b.c~d', message, reason });
    expect(cause('/a/b', {}, 'is bad')).toMatchObject({ message: 'Invalid value: undefined: a.b in body is bad' });
    expect(toCauses([{ instancePath: '', keyword: 'type', params: { type: 'object' } }], null)[0]?.message).toBe(
      'Invalid value: "null": <root> in body must be of type object: "null"',
    );
  });

  it('looks at what an object itself has, and says what that is', () => {
    const at = (instancePath: string, object: unknown): unknown => {
      return toCauses([{ instancePath, keyword: 'type', params: { type: ['string', 'null'] } }], object)[0]?.message;
    };
    const said = (type: string, where: string): string =>
      `Invalid value: "${type}": ${where} in body must be of type string or null: "${type}"`;
    for (const [value, type] of [
      [null, 'null'],
      [[], 'array'],
      [{}, 'object'],
      [1, 'integer'],
      [1.5, 'number'],
      ['x', 'string'],
    ]) {
      expect(at('/a', { a: value })).toBe(said(type as string, 'a'));
    }
    for (const object of [{ a: null }, { a: 7 }, { a: 'x' }, {}]) expect(at('/a/b', object)).toBe(said('undefined', 'a.b'));
    expect(at('/constructor', {})).toBe(said('undefined', 'constructor'));
  });

  it('a schema that cannot be compiled later is an error of the server', async () => {
    const check = new Schemas().checkOf({ schema: { properties: { a: { type: 'nonsense' } } } });
    const error = await Promise.resolve(check?.()).catch((thrown: unknown) => thrown);
    expect([error, (error as Error).message]).toEqual([expect.any(Error), expect.stringMatching(/^schema: /)]);
    expect([isWatchError(error), isWatchError((error as Error).cause)]).toEqual([false, true]);
    expect(new Schemas().checkOf({ schema: undefined })).toBeUndefined();
  });

  it('a number or a text is that wherever it stands', async () => {
    const port = { 'x-kubernetes-int-or-string': true, type: 'string' };
    const inner = { type: 'object', properties: { port } };
    for (const [schema, wrap] of [
      [{ allOf: [inner] }, (value: unknown) => ({ port: value })],
      [{ anyOf: [inner] }, (value: unknown) => ({ port: value })],
      [{ oneOf: [inner] }, (value: unknown) => ({ port: value })],
      [{ type: 'array', items: port }, (value: unknown) => [value]],
      [{ type: 'object', additionalProperties: port }, (value: unknown) => ({ any: value })],
      [{ type: 'object', patternProperties: { '^a': port } }, (value: unknown) => ({ any: value })],
      [{ not: { type: 'object', required: ['x'], properties: { x: port } } }, (value: unknown) => ({ y: value })],
    ] as const) {
      const validate = await compiled({ type: 'object', properties: { spec: schema } });
      const of = (value: unknown): number => validate({ spec: wrap(value) } as KubernetesObject).length;
      expect([of(80), of('http')]).toEqual([0, 0]);
      if (!('not' in schema)) expect(of(true)).toBeGreaterThan(0);
    }
    const not = await compiled({ properties: { spec: { not: { properties: { x: port }, required: ['x'] } } } });
    expect(not({ spec: { x: 80 } } as KubernetesObject)).toHaveLength(1);
    // What only looks like a schema is left as it is.
    const named = await compiled({
      properties: { spec: { type: 'array', items: [{ type: 'integer' }], minItems: 1, additionalItems: true } },
    });
    expect(named({ spec: [1] } as KubernetesObject)).toEqual([]);
    const only = await compiled({ properties: { spec: { enum: [{ 'x-a': 1 }], default: { 'x-a': 1 } } } });
    expect(only({ spec: { 'x-a': 1 } } as KubernetesObject)).toEqual([]);
    expect(only({ spec: {} } as KubernetesObject)).toHaveLength(1);
  });

  it('at most fifty causes, and at least one', () => {
    const error = { instancePath: '', keyword: 'type', params: { type: 'object' } };
    expect(
      toCauses(
        Array.from({ length: 80 }, () => error),
        1,
      ),
    ).toHaveLength(50);
    expect(toCauses([], 1)).toEqual([{ field: '', message: 'Invalid value: does not fit the schema' }]);
  });
});

describe('an object within an object', () => {
  const within = { type: 'object', 'x-kubernetes-embedded-resource': true, 'x-kubernetes-preserve-unknown-fields': true };
  const faults = async (inner: unknown): Promise<string[]> => {
    const validate = await compiled({ type: 'object', properties: { spec: within } });
    return validate({ metadata: { name: 'a' }, spec: inner } as KubernetesObject).map(
      ({ field, message }) => `${field}: ${message}`,
    );
  };
  const BAD = /^spec\.metadata: Invalid value: .*: metadata\./;

  it.each<[string, unknown, RegExp | undefined]>([
    ['nothing', {}, undefined],
    ['null', null, undefined],
    ['a whole one', { name: 'A:b', namespace: 'c', labels: { d: 'e' }, annotations: { f: '' }, finalizers: ['g'] }, undefined],
    ['a text', 'x', /^spec\.metadata: Invalid value: "x": json: cannot unmarshal string/],
    ['a label that is a number', { labels: { a: 1 } }, BAD],
    ['a time that is none', { creationTimestamp: 'x' }, BAD],
    ['a label', { labels: { a: 'b c' } }, /^spec\.metadata\.labels: Invalid value: "b c": /],
    ['a key of an annotation', { annotations: { 'a b': '' } }, /^spec\.metadata\.annotations: Invalid value: "a b": /],
    ['a name', { name: 'a/b' }, /^spec\.metadata\.name: Invalid value: "a\/b": may not contain '\/'$/],
    ['a namespace', { namespace: 'A' }, /^spec\.metadata\.namespace: Invalid value: "A": /],
    ['a finalizer', { finalizers: ['a b'] }, /^spec\.metadata\.finalizers: Invalid value: "a b": /],
    ['many labels', { labels: Object.fromEntries(Array.from({ length: 600 }, (_, at) => [`a${at}`, ' '])) }, /labels: Invalid/],
  ])('has valid metadata: %s', async (_, metadata, fault) => {
    const found = await faults({ apiVersion: 'v1', kind: 'Pod', metadata });
    if (fault === undefined) expect(found).toEqual([]);
    else expect(found[0]).toMatch(fault);
  });
});

it('compares the items of a long list wherever a schema says so', async () => {
  const items = Array.from({ length: 1_000 }, (_, at) => ({ at }));
  const twice = [...items, { at: 7 }];
  const fits = async (spec: object, value: unknown): Promise<boolean> => {
    const validate = await compiled({ type: 'object', properties: { spec } });
    return validate({ metadata: { name: 'a' }, spec: value } as KubernetesObject).length === 0;
  };
  const unique = { uniqueItems: true };
  const either = { anyOf: [unique, { maxItems: 3 }] };
  expect([await fits(unique, items), await fits(unique, twice)]).toEqual([true, false]);
  expect([await fits({ not: unique }, items), await fits({ not: unique }, twice)]).toEqual([false, true]);
  expect([await fits(either, twice), await fits(either, [{}, {}])]).toEqual([false, true]);
  expect(await fits({ allOf: [either, unique] }, [{}, {}])).toBe(false);
});
