import { describe, expect, it } from 'vitest';
import { CONFIG_MAPS } from '../../src/apiserver/builtin.ts';
import type { ResourceDefinition } from '../../src/apiserver/definition.ts';
import { Message, OpenApi, PROTOBUF_TYPE } from '../../src/apiserver/documents/openapi.ts';
import { schemaOf } from '../../src/apiserver/documents/schemas.ts';
import { toInfo } from '../../src/apiserver/resource-info.ts';

const schema = {
  description: 'An order.',
  type: 'object',
  required: ['spec'],
  properties: {
    metadata: { type: 'string' },
    spec: {
      type: 'object',
      properties: {
        count: { type: 'integer', format: 'int32', minimum: 1 },
        tags: { type: 'array', items: { type: 'string' } },
        any: { type: 'array' },
        free: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
        labels: { type: 'object', additionalProperties: { type: 'string', format: 'byte' } },
        closed: { type: 'object', required: ['a'], additionalProperties: false },
        both: {
          allOf: [{ $ref: '#/components/schemas/com.example.v1.Thing' }, { $ref: '#/components/schemas/com.example.v1.Order' }],
        },
        one: { description: 'One.', allOf: [{ $ref: '#/components/schemas/com.example.v1.Thing' }] },
        own: { allOf: [{ type: 'string' }] },
        port: { 'x-kubernetes-int-or-string': true, type: 'string', anyOf: [{ type: 'integer' }, { type: 'string' }] },
      },
    },
  },
};
const orders: ResourceDefinition = { group: 'example.com', version: 'v1', plural: 'orders', kind: 'Order', status: true, schema };
const things: ResourceDefinition = { group: 'example.com', version: 'v1', plural: 'things', kind: 'Thing', namespaced: false };
const make = (): OpenApi => new OpenApi([toInfo(CONFIG_MAPS), toInfo(orders), toInfo(things)]);
// biome-ignore lint/suspicious/noExplicitAny: documents, read without ceremony
const json = (path: string): any => JSON.parse(String(make().document(path)?.body ?? 'null'));
/** What a kind with a schema is shown as. */
// biome-ignore lint/suspicious/noExplicitAny: the same
function published(of: object, path = '/openapi/v2', more: Partial<ResourceDefinition> = {}): any {
  const shown = new OpenApi([toInfo({ ...orders, ...more, schema: of as Record<string, unknown> })]).document(path);
  const document = JSON.parse(String(shown?.body));
  return (document.definitions ?? document.components.schemas)['com.example.v1.Order'];
}

describe('OpenAPI v3', () => {
  it('an index, whose addresses change with the documents', () => {
    const { paths } = json('/openapi/v3');
    expect(Object.keys(paths)).toEqual(['api/v1', 'apis/example.com/v1']);
    for (const [name, { serverRelativeURL }] of Object.entries(paths) as [string, { serverRelativeURL: string }][]) {
      const [path = '', hash] = serverRelativeURL.split('?hash=');
      expect(path).toBe(`/openapi/v3/${name}`);
      expect(make().document(path)?.etag).toBe(`"${hash}"`);
    }
    expect(json('/openapi/v3/apis/other')).toBeNull();
    expect(json('/openapi/v3/constructor')).toBeNull();
  });

  it('a document: paths with kinds, the parameter that kubectl looks for, schemas', () => {
    const document = json('/openapi/v3/apis/example.com/v1');
    const kind = { group: 'example.com', version: 'v1', kind: 'Order' };
    const root = '/apis/example.com/v1/namespaces/{namespace}/orders';
    expect(Object.keys(document.paths)).toEqual([
      root,
      `${root}/{name}`,
      `${root}/{name}/status`,
      '/apis/example.com/v1/orders',
      '/apis/example.com/v1/things',
      '/apis/example.com/v1/things/{name}',
    ]);
    const { patch } = document.paths[`${root}/{name}`];
    expect(patch['x-kubernetes-group-version-kind']).toEqual(kind);
    // kubectl leaves it to the server to look for unknown fields if it finds the last one.
    const { post } = document.paths[root];
    for (const name of ['dryRun', 'fieldManager', 'fieldValidation']) {
      for (const { parameters } of [patch, post]) {
        expect(parameters).toContainEqual(expect.objectContaining({ name, in: 'query' }));
      }
    }
    expect([document.openapi, document.info]).toEqual(['3.0.0', { title: 'watchmux', version: 'unversioned' }]);
    const { schemas } = document.components;
    const order = schemas['com.example.v1.Order'];
    expect(order).toMatchObject({ description: 'An order.', required: ['spec'], 'x-kubernetes-group-version-kind': [kind] });
    expect(Object.keys(order.properties)).toEqual(['apiVersion', 'kind', 'metadata', 'spec']);
    expect(order.properties).toMatchObject({
      apiVersion: { description: expect.stringContaining('group and version'), type: 'string' },
      kind: { description: expect.stringContaining('REST resource'), type: 'string' },
      metadata: {
        description: "Standard object's metadata.",
        allOf: [{ $ref: '#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta' }],
      },
    });
    expect(order['x-kubernetes-preserve-unknown-fields']).toBeUndefined();
    expect(schemas['com.example.v1.Thing']).toMatchObject({
      'x-kubernetes-preserve-unknown-fields': true,
      'x-kubernetes-group-version-kind': [{ ...kind, kind: 'Thing' }],
    });
  });
});

describe('what OpenAPI v3 says of lists', () => {
  it('is that they are lists, and of what', () => {
    const { paths, components } = json('/openapi/v3/apis/example.com/v1');
    const of = (path: string, method: string): string =>
      paths[path][method].responses[200].content['application/json'].schema.$ref;
    const root = '/apis/example.com/v1/namespaces/{namespace}/orders';
    const list = '#/components/schemas/com.example.v1.OrderList';
    expect([of(root, 'get'), of('/apis/example.com/v1/orders', 'get'), of(root, 'delete')]).toEqual([list, list, list]);
    expect(of(`${root}/{name}`, 'get')).toBe('#/components/schemas/com.example.v1.Order');
    expect(of(root, 'post')).toBe('#/components/schemas/com.example.v1.Order');
    const meta = '#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta';
    expect(components.schemas['com.example.v1.OrderList']).toEqual({
      description: 'OrderList is a list of Order',
      type: 'object',
      required: ['items'],
      properties: {
        apiVersion: {
          description: 'APIVersion defines the group and version of this representation of an object.',
          type: 'string',
        },
        items: { description: 'The objects.', type: 'array', items: { $ref: '#/components/schemas/com.example.v1.Order' } },
        kind: {
          description: 'The REST resource that this object represents. Cannot be updated. In CamelCase.',
          type: 'string',
        },
        metadata: { description: 'Standard list metadata.', allOf: [{ $ref: meta }] },
      },
      'x-kubernetes-group-version-kind': [{ group: 'example.com', version: 'v1', kind: 'OrderList' }],
    });
    // Whatever is named is there.
    for (const [, name = ''] of JSON.stringify(paths).matchAll(/schemas\/([^"]+)"/g))
      expect(components.schemas).toHaveProperty([name]);
    for (const [, name = ''] of JSON.stringify(components).matchAll(/#\/components\/schemas\/([^"]+)"/g)) {
      expect(components.schemas).toHaveProperty([name]);
    }
  });
});

describe('the schema of a kind', () => {
  const of = (schema?: Record<string, unknown>): Record<string, unknown> => schemaOf({ ...orders, schema });
  const OPEN = 'x-kubernetes-preserve-unknown-fields';
  it('is open if it says nothing of members', () => {
    expect(of()).toMatchObject({ type: 'object', [OPEN]: true });
    expect(of({ type: 'object' })).toHaveProperty([OPEN], true);
    expect(of({ description: 'x' })).toMatchObject({ type: 'object', description: 'x', [OPEN]: true });
    expect(of({ properties: {} })).not.toHaveProperty([OPEN]);
    expect(of({ additionalProperties: false })).not.toHaveProperty([OPEN]);
  });
});

describe('OpenAPI v2', () => {
  it('JSON: schemas with what v2 knows', () => {
    const { swagger, info, definitions } = json('/openapi/v2');
    expect([swagger, info]).toEqual(['2.0', { title: 'watchmux', version: 'unversioned' }]);
    const { properties } = definitions['com.example.v1.Order'];
    expect(properties.metadata.$ref).toBe('#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta');
    expect(properties.spec.properties).toEqual({
      count: { type: 'integer', format: 'int32', minimum: 1 },
      tags: { type: 'array', items: { type: 'string' } },
      any: {},
      free: { 'x-kubernetes-preserve-unknown-fields': true },
      labels: { type: 'object', additionalProperties: { type: 'string', format: 'byte' } },
      closed: { type: 'object', required: ['a'] },
      both: {},
      one: { description: 'One.', $ref: '#/definitions/com.example.v1.Thing' },
      own: {},
      port: { 'x-kubernetes-int-or-string': true },
    });
    expect(definitions['com.example.v1.Order']).toMatchObject({ description: 'An order.', type: 'object', required: ['spec'] });
    // Of anything: kubectl would find fault with what is not listed.
    expect(definitions['com.example.v1.Thing']).toEqual({
      type: 'object',
      'x-kubernetes-group-version-kind': [{ group: 'example.com', version: 'v1', kind: 'Thing' }],
    });
    const { parameters } = json('/openapi/v2').paths['/apis/example.com/v1/things/{name}'].patch;
    expect(parameters.map(({ name }: { name: string }) => name)).toEqual(['dryRun', 'fieldValidation']);
  });

  it('JSON: lists, too', () => {
    const { type, required, properties } = json('/openapi/v2').definitions['com.example.v1.OrderList'];
    expect([type, required]).toEqual(['object', ['items']]);
    expect(properties.items).toMatchObject({ type: 'array', items: { $ref: '#/definitions/com.example.v1.Order' } });
    expect(properties.metadata.$ref).toBe('#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta');
  });

  it('keeps limits, and leaves out defaults and what may be null', () => {
    const text = { type: 'string', minLength: 1, pattern: '^a', enum: ['a'] };
    const spec = {
      type: 'object',
      required: ['none', 'text'],
      properties: {
        text: { ...text, default: 'a' },
        none: { type: 'object', nullable: true, properties: { a: text } },
        high: { type: 'number', maximum: 3, exclusiveMaximum: true },
        later: { type: 'number', exclusiveMaximum: 3 },
        map: { type: 'object', required: ['a'], additionalProperties: { type: 'string', nullable: true } },
        free: { type: 'object', additionalProperties: true },
      },
    };
    expect(published({ type: 'object', properties: { spec } }).properties.spec).toEqual({
      type: 'object',
      required: ['text'],
      properties: {
        text,
        none: {},
        high: { type: 'number', maximum: 3, exclusiveMaximum: true },
        later: { type: 'number' },
        map: { type: 'object', additionalProperties: {} },
        free: { type: 'object', additionalProperties: true },
      },
    });
  });

  it('an object within an object has the members of one, but if it may have any others', () => {
    const embedded = { type: 'object', 'x-kubernetes-embedded-resource': true };
    const open = { ...embedded, 'x-kubernetes-preserve-unknown-fields': true };
    const schema = { type: 'object', properties: { inner: { ...embedded, required: ['kind'] }, open } };
    const { inner, open: shown } = published(schema).properties;
    expect([inner.required, Object.keys(inner.properties)]).toEqual([
      ['kind', 'apiVersion'],
      ['apiVersion', 'kind', 'metadata'],
    ]);
    expect(inner.properties.metadata.$ref).toContain('#/definitions/');
    expect(shown).toEqual({ 'x-kubernetes-embedded-resource': true, 'x-kubernetes-preserve-unknown-fields': true });
    const v3 = published(schema, '/openapi/v3/apis/example.com/v1').properties;
    expect(v3.open.properties.metadata.allOf).toEqual([
      { $ref: '#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta' },
    ]);
  });

  it('a kind that keeps no field that it does not know is not open', () => {
    const closed = published({ type: 'object' }, '/openapi/v2', { preserveUnknownFields: false });
    expect(Object.keys(closed.properties)).toEqual(['apiVersion', 'kind', 'metadata']);
    expect(published({ type: 'object' })).not.toHaveProperty('properties');
  });

  it('protobuf, to whoever takes it under either name', () => {
    const api = make();
    for (const sign of ['@', '.']) {
      const document = api.document('/openapi/v2', `application/com.github.proto-openapi.spec.v2${sign}v1.0+protobuf`);
      expect(document?.contentType).toBe(PROTOBUF_TYPE);
      const bytes = document?.body ?? [];
      expect(Buffer.from(bytes as Uint8Array).subarray(0, 5)).toEqual(Buffer.from('\n\u00032.0'));
    }
    const [plain, packed] = ['application/json', 'application/com.github.proto-openapi.spec.v2@v1.0+protobuf'].map((accept) =>
      api.document('/openapi/v2', accept),
    );
    expect(plain?.contentType).toBe('application/json');
    // Each has a tag of its own.
    expect(packed?.etag).toBe(plain?.etag?.replace(/"$/, '-pb"'));
    expect(packed?.etag).toMatch(/^"[0-9A-F]{16}-pb"$/);
  });

  it('the wire format of protobuf: lengths of one and more bytes, fields above 15', () => {
    const long = 'x'.repeat(300);
    const bytes = new Message().text(1, 'é').text(2, undefined).text(31, long).message(3, new Message().text(1, 'a')).toBytes();
    expect([...bytes.subarray(0, 4)]).toEqual([0x0a, 2, 0xc3, 0xa9]);
    expect([...bytes.subarray(4, 8)]).toEqual([0xfa, 0x01, 0xac, 0x02]);
    expect([...bytes.subarray(308)]).toEqual([0x1a, 3, 0x0a, 1, 0x61]);
  });
});
