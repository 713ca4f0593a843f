import { beforeAll, describe, expect, it } from 'vitest';
import type { JsonSchema } from '../../src/apiserver/definition.ts';
import { schemaOf } from '../../src/apiserver/documents/schemas.ts';
import { toKnownFields, unknownFields } from '../../src/apiserver/validation/field-check.ts';
import { toPattern, withPatterns } from '../../src/apiserver/validation/patterns.ts';
import { atOnce } from '../../src/watch/fair-queue.ts';

const text = { type: 'string' };
const a = { properties: { a: text } };
const conditional = JSON.parse('{"then":{"properties":{"b":{}}},"else":{"properties":{"c":{}}}}');

/** The unknown fields of an object. */
const unknown = (schema: JsonSchema, object: unknown, before?: unknown): readonly string[] =>
  atOnce(unknownFields(toKnownFields(schema), object, before)).told;

// The engine for patterns is loaded when one needs it.
beforeAll(() => withPatterns(() => toPattern('')));

describe('which fields a schema knows', () => {
  it.each<[string, JsonSchema, unknown, readonly string[]]>([
    ['those that it names', a, { a: 1, b: 1, c: null }, ['b', 'c']],
    ['any, if it names none', { type: 'object' }, { b: { c: 1 } }, []],
    ['none, if it forbids all', { additionalProperties: false }, { b: 1 }, ['b']],
    ['others of any form', { ...a, additionalProperties: true }, { b: { c: 1 } }, []],
    ['others of a form', { ...a, additionalProperties: a }, { a: { x: 1 }, b: { a: 1, b: 1 } }, ['b.b']],
    ['no more if it forbids others', { ...a, additionalProperties: false }, { b: 1 }, ['b']],
    ['those that match', { patternProperties: { '^x-': a } }, { 'x-1': { a: 1, b: 1 }, y: 1 }, ['x-1.b', 'y']],
    ['of maps, what is in their values', { additionalProperties: a }, { 'k.l/m': { b: 1 } }, ['k.l/m.b']],
    [
      'of lists, what is in their elements',
      { properties: { l: { items: a } } },
      { l: [{ a: 1 }, { b: 1 }, 3, null] },
      ['l[1].b'],
    ],
    ['of lists of lists', { items: { items: a } }, [[{ a: 1 }], [{}, { b: 1 }]], ['[1][1].b']],
    ['nothing of tuples', { properties: { l: { items: [a] } } }, { l: [{ b: 1 }] }, []],
    ['what is no object has no fields', { properties: { s: text } }, { s: { x: 1 } }, []],
    ['others that are preserved', { ...a, 'x-kubernetes-preserve-unknown-fields': true }, { b: { c: 1 } }, []],
    [
      'but not within those that are named',
      { properties: { known: a }, 'x-kubernetes-preserve-unknown-fields': true },
      { known: { b: 1 }, other: {} },
      ['known.b'],
    ],
    ['the elements of a list that preserves', { items: a, 'x-kubernetes-preserve-unknown-fields': true }, [{ b: 1 }], []],
    [
      'of all parts together',
      { ...a, allOf: [{ properties: { b: a } }, { required: ['c'] }] },
      { b: { b: 1 }, c: 1 },
      ['b.b', 'c'],
    ],
    ['of either part', { anyOf: [text, a], oneOf: [{ properties: { b: text } }] }, { a: 1, b: 1, c: 1 }, ['c']],
    ['of conditions', { ...a, if: a, ...conditional }, { b: 1, c: 1, d: 1 }, ['d']],
    [
      'of one name in two parts',
      { ...a, allOf: [{ properties: { a: a } }, { properties: { a: { properties: { b: a } } } }] },
      { a: { a: 1, b: {}, c: 1 } },
      ['a.c'],
    ],
    ['not of what must not be', { ...a, not: { properties: { b: text } } }, { b: 1 }, ['b']],
    ['any behind a reference of its own', { ...a, $ref: '#/definitions/x' }, { b: 1 }, []],
    ['any that depend on others', { ...a, dependentSchemas: { a: { properties: { b: text } } } }, { b: 1 }, []],
    [
      'the metadata of an object within',
      { properties: { t: { 'x-kubernetes-embedded-resource': true, properties: { spec: a } } } },
      { t: { apiVersion: 'v1', kind: 'X', metadata: { name: 'x', lables: {} }, spec: { b: 1 }, c: 1 } },
      ['t.metadata.lables', 't.spec.b', 't.c'],
    ],
    [
      'what is no schema knows anything',
      { properties: { a: true, b: 'nonsense', c: null } },
      { a: { x: 1 }, b: { x: 1 }, c: { x: 1 } },
      [],
    ],
  ])('%s', (_, schema, object, paths) => expect(unknown(schema, object)).toEqual(paths));

  it('names of prototypes are names like any other', () => {
    expect(unknown(a, JSON.parse('{"__proto__":{"a":1},"constructor":1,"toString":1}'))).toEqual([
      '__proto__',
      'constructor',
      'toString',
    ]);
    const named = { properties: JSON.parse('{"__proto__":{"properties":{"a":{}}}}') };
    expect(unknown(named, JSON.parse('{"__proto__":{"a":1,"b":1}}'))).toEqual(['__proto__.b']);
    expect(unknown(a, JSON.parse('{"constructor":1}'), {})).toEqual(['constructor']);
    expect(Object.keys({})).toEqual([]);
  });

  it('what was unknown in the same place before is not told', () => {
    const schema = { properties: { spec: a, list: { items: a } } };
    const before = { spec: { a: 1, old: 1 }, list: [{ old: 1 }], old: 1 };
    const after = { spec: { old: 2, more: 1 }, list: [{ old: 1, more: 1 }, { old: 1 }], old: { x: 1 }, more: 1 };
    expect(unknown(schema, after, before)).toEqual(['spec.more', 'list[0].more', 'list[1].old', 'more']);
    expect(unknown(schema, { spec: { old: 1 } }, { spec: 'text' })).toEqual(['spec.old']);
    expect(unknown(schema, { spec: { old: 1 } }, null)).toEqual(['spec.old']);
  });

  it('a hundred are told, and the others counted', () => {
    const found = atOnce(
      unknownFields(toKnownFields(a), Object.fromEntries(Array.from({ length: 300 }, (_, at) => [`x${at}`, 1]))),
    );
    expect([found.told.length, found.more]).toEqual([100, 200]);
  });
});

describe('the fields of a kind', () => {
  const kind = { group: 'example.com', version: 'v1', plural: 'orders', kind: 'Order' };

  it('without a schema: only those of its metadata', () => {
    const metadata = {
      name: 'a',
      lables: {},
      ownerReferences: [{ uid: 'x', foo: 1 }],
      managedFields: [{ any: 1 }],
      selfLink: '',
    };
    expect(unknown(schemaOf(kind), { metadata, spec: { a: 1 } })).toEqual([
      'metadata.lables',
      'metadata.ownerReferences[0].foo',
      'metadata.managedFields[0].any',
    ]);
  });

  it('with one: those, and what every object has', () => {
    const schema = { type: 'object', properties: { spec: a, metadata: { type: 'string' } } };
    const object = { apiVersion: 'example.com/v1', kind: 'Order', metadata: { Name: 'x' }, spec: { b: 1 }, stauts: {} };
    expect(unknown(schemaOf({ ...kind, schema }), object)).toEqual(['metadata.Name', 'spec.b', 'stauts']);
  });

  it('of Kubernetes: as upstream', () => {
    const of = (group: string, name: string): JsonSchema => schemaOf({ ...kind, group, kind: name });
    expect(unknown(of('', 'ConfigMap'), { data: { a: 'b' }, binaryData: {}, immutable: true, Data: {} })).toEqual(['Data']);
    const spec = { holderIdentity: 'a', strategy: 'x', preferredHolder: 'y', holder: 'b' };
    expect(unknown(of('coordination.k8s.io', 'Lease'), { spec, status: {} })).toEqual(['spec.holder', 'status']);
    const status = { phase: 'Active', conditions: [{ type: 'x', status: 'True', foo: 1 }], foo: 1 };
    expect(unknown(of('', 'Namespace'), { spec: { finalizers: [], foo: 1 }, status })).toEqual([
      'spec.foo',
      'status.conditions[0].foo',
      'status.foo',
    ]);
  });
});
