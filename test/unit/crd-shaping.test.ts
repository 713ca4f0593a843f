// What a definition may say of a schema is what JSONSchemaProps of Go may: the rest is dropped, null is empty, other types are 400.
import { afterEach, describe, expect, test } from 'vitest';
import type { JsonSchema } from '../../src/apiserver/definition.ts';
import { OpenApi } from '../../src/apiserver/documents/openapi.ts';
import { toInfo } from '../../src/apiserver/resource-info.ts';
import { CRDS, type CrdRig, crdOf, crdRig } from './crd-rig.ts';

const rigs: CrdRig[] = [];
afterEach(async () => {
  for (const { server } of rigs.splice(0)) await server.shutdown();
});

const begun = (): CrdRig => {
  const made = crdRig();
  rigs.push(made);
  return made;
};

const withSpec = (spec: unknown): object => crdOf({}, { schema: { openAPIV3Schema: { type: 'object', properties: { spec } } } });
const WIDGETS = '/apis/example.com/v1/namespaces/default/widgets';
const OPEN = { 'x-kubernetes-preserve-unknown-fields': true };

describe('the schema of a definition', () => {
  test.each<[string, object, object]>([
    ['unknown keywords', { const: 1, if: {}, $dynamicRef: '#', propertyNames: {}, contains: null }, {}],
    ['null', { not: null, allOf: null, additionalProperties: null, enum: null, default: null, maximum: null, items: null }, {}],
    ['empty values', { title: '', nullable: false, allOf: [], properties: {}, enum: [] }, {}],
    ['values that are not empty', { maximum: 0, maxLength: 0, minItems: 0 }, { maximum: 0, maxLength: 0, minItems: 0 }],
    ['null in an enum', { enum: ['a', null], nullable: true }, { enum: ['a', null], nullable: true }],
    ['null in a list of schemas', { allOf: [null], not: {} }, { allOf: [{}], not: {} }],
    ['what is none of its types', { items: 5 }, {}],
  ])('%s', async (_, sent, kept) => {
    const { call, read, established } = begun();
    const { code, text } = await call('POST', CRDS, withSpec({ type: 'object', ...OPEN, ...sent }));
    expect([code, text]).toEqual([201, text]);
    const { body } = await read('widgets.example.com');
    const { openAPIV3Schema } = body.spec.versions[0].schema;
    expect(openAPIV3Schema.properties.spec).toEqual({ type: 'object', ...OPEN, ...kept });
    await established('widgets.example.com');
    expect((await call('GET', '/openapi/v2')).code).toBe(200);
    const sentObject = { apiVersion: 'example.com/v1', kind: 'Widget', metadata: { name: 'a' }, spec: { a: 1 } };
    expect((await call('POST', WIDGETS, sentObject)).code).toBeLessThan(500);
  });

  test('a property that is null is an empty schema, which lacks its type', async () => {
    const { call } = begun();
    const { code, body } = await call('POST', CRDS, withSpec(null));
    expect([code, body.message]).toEqual([422, expect.stringContaining('properties[spec].type: Required value')]);
    const listed = crdOf({}, { schema: { openAPIV3Schema: { type: 'object', additionalProperties: null, properties: [null] } } });
    expect((await call('POST', CRDS, listed)).code).toBe(400);
  });

  test.each<[object, string]>([
    [{ additionalProperties: 5 }, 'spec.additionalProperties: expected true or false'],
    [{ additionalProperties: [] }, 'spec.additionalProperties: expected true or false'],
    [{ not: 5 }, 'spec.not: expected an object'],
    [{ not: [] }, 'spec.not: expected an object'],
    [{ allOf: {} }, 'spec.allOf: expected a list'],
    [{ properties: { a: { items: { type: 1 } } } }, 'spec.properties.a.items.type: expected a text'],
    [{ maximum: '1' }, 'spec.maximum: expected a number'],
    [{ maxLength: 1.5 }, 'spec.maxLength: expected a whole number'],
    [{ required: [1] }, 'spec.required[0]: expected a text'],
    [{ 'x-kubernetes-validations': [1] }, 'spec.x-kubernetes-validations[0]: expected an object'],
  ])('is 400: %j', async (sent, why) => {
    const { call } = begun();
    const { code, body } = await call('POST', CRDS, withSpec({ type: 'object', ...sent }));
    const start = 'CustomResourceDefinition in version "v1" cannot be handled as a CustomResourceDefinition: ';
    expect([code, body.message]).toEqual([400, `${start}spec.versions[0].schema.openAPIV3Schema.properties.${why}`]);
  });
});

describe('the metadata of an object within an object', () => {
  const inner = { type: 'object', 'x-kubernetes-embedded-resource': true, ...OPEN };
  const widget = (metadata: unknown): object => ({
    ...{ apiVersion: 'example.com/v1', kind: 'Widget', metadata: { name: 'a' } },
    spec: [{ apiVersion: 'v1', kind: 'Pod', metadata }],
  });
  const defined = async (): Promise<CrdRig> => {
    const made = begun();
    const openAPIV3Schema = { type: 'object', properties: { spec: { type: 'array', items: inner } } };
    await made.define(crdOf({}, { schema: { openAPIV3Schema } }));
    return made;
  };

  test.each<[unknown, string]>([
    [5, '5: json: cannot unmarshal number into Go value of type v1.ObjectMeta'],
    [{ name: 5 }, '{"name":5}: metadata.name: expected a string'],
    [{ annotations: [] }, '{"annotations":[]}: metadata.annotations: expected an object'],
    [{ selfLink: 5 }, '{"selfLink":5}: metadata.selfLink: expected a string'],
    [{ ownerReferences: ['x'] }, '{"ownerReferences":["x"]}: metadata.ownerReferences[0]: expected an object'],
  ])('of another type is 400, and 422 of a patch: %j', async (metadata, shown) => {
    const { call } = await defined();
    const why = `spec[0].metadata: Invalid value: ${shown}`;
    const said = async (...asked: Parameters<typeof call>): Promise<unknown[]> => {
      const { code, body } = await call(...asked);
      return [code, body.details?.causes?.[0].field, body.message];
    };
    const unread = [400, undefined, `Widget in version "v1" cannot be handled as a Widget: ${why}`];
    expect(await said('POST', WIDGETS, widget(metadata))).toEqual(unread);
    expect((await call('POST', WIDGETS, widget({}))).code).toBe(201);
    expect(await said('PUT', `${WIDGETS}/a`, widget(metadata))).toEqual(unread);
    const patch = { 'content-type': 'application/json-patch+json' };
    const patched = await said('PATCH', `${WIDGETS}/a`, [{ op: 'replace', path: '/spec/0/metadata', value: metadata }], patch);
    expect(patched).toEqual([422, 'patch', expect.stringMatching(/^ "" is invalid: patch: Invalid value: /)]);
    expect(patched[2]).toContain(why);
    const apply = { 'content-type': 'application/apply-patch+yaml' };
    const applied = await said('PATCH', `${WIDGETS}/b?fieldManager=me`, widget(metadata), apply);
    expect(applied[0]).not.toBe(201);
  });

  test('has owners of which only known members are kept, and null in a map is empty', async () => {
    const { call } = await defined();
    const owner = { apiVersion: 'v1', kind: 'Pod', name: 'p', uid: 'u' };
    const sent = widget({ ownerReferences: [{ ...owner, toString: 1, colour: 1 }], labels: null, annotations: { a: null } });
    const strict = await call('POST', `${WIDGETS}?fieldValidation=Strict`, sent);
    const unknown = ['colour', 'toString'].map((name) => `unknown field "spec[0].metadata.ownerReferences[0].${name}"`);
    expect([strict.code, strict.body.message]).toEqual([
      400,
      `Widget in version "v1" cannot be handled as a Widget: strict decoding error: ${unknown.join(', ')}`,
    ]);
    const { body } = await call('POST', WIDGETS, sent);
    expect(body.spec[0].metadata).toEqual({ ownerReferences: [owner], annotations: { a: '' } });
  });
});

test('unknown keywords of a schema are named, wherever it is in another', async () => {
  const { call } = begun();
  const inner = { type: 'string', bar: 'x', properties: { patern: { type: 'string' } } };
  const spec = {
    ...{ type: 'object', foo: 1, additionalProperties: false, allOf: [{ foo: 2 }], not: { if: {} } },
    properties: { a: inner, l: { type: 'array', items: { type: 'object', additionalProperties: { Pattern: 'x' } } } },
    'x-kubernetes-validations': [{ rule: 'true', foo: 3 }],
  };
  const { code, body } = await call('POST', `${CRDS}?fieldValidation=Strict`, withSpec(spec));
  const at = 'spec.versions[0].schema.openAPIV3Schema.properties.spec';
  const told = ['allOf[0].foo', 'foo', 'not.if', 'properties.a.bar', 'properties.l.items.additionalProperties.Pattern'];
  const unknown = [...told, 'x-kubernetes-validations[0].foo'].map((each) => `unknown field "${at}.${each}"`).join(', ');
  const start = 'CustomResourceDefinition in version "v1" cannot be handled as a CustomResourceDefinition: ';
  expect([code, body.message]).toEqual([400, `${start}strict decoding error: ${unknown}`]);
});

test('one schema that is none does not take the document of OpenAPI v2 from all', async () => {
  const bad = { type: 'object', properties: { a: null, b: { additionalProperties: null, allOf: [null], $ref: 5, items: 7 } } };
  const plain = toInfo({ group: 'a.b', version: 'v1', kind: 'Order', plural: 'orders' });
  const info = { ...plain, schema: bad as unknown as JsonSchema };
  const body = await new OpenApi([info]).document('/openapi/v2')?.body;
  expect(Object.keys(JSON.parse(String(body)).definitions)).toContain('b.a.v1.Order');
});
