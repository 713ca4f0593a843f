// What is published of a definition's kinds: their schemas in both versions of OpenAPI, as steps for a kube-apiserver and ours.
import type { Step } from './definitions.ts';

// biome-ignore lint/suspicious/noExplicitAny: tests look into what came over the wire
type Json = any;

const CRDS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
const GROUP = 'told.example.com';
const PREFIX = 'com.example.told.';
const OPEN = { 'x-kubernetes-preserve-unknown-fields': true };
const EMBEDDED = { 'x-kubernetes-embedded-resource': true };

/** A version for each schema. */
const SCHEMAS: Readonly<Record<string, object>> = {
  v1: {
    description: 'A tool.',
    type: 'object',
    required: ['spec'],
    properties: {
      apiVersion: { type: 'string' },
      kind: { type: 'string' },
      metadata: { type: 'object' },
      spec: {
        type: 'object',
        title: 'Spec',
        externalDocs: { url: 'https://example.com', description: 'More.' },
        required: ['none', 'size', 'text'],
        minProperties: 1,
        maxProperties: 90,
        properties: {
          size: { type: 'integer', format: 'int32', minimum: 0, maximum: 10, exclusiveMaximum: true, multipleOf: 2, default: 4 },
          ratio: { type: 'number', format: 'double', minimum: 0.5, exclusiveMinimum: true, example: 0.7 },
          text: { type: 'string', minLength: 1, maxLength: 20, pattern: '^[a-z]+$', enum: ['a', 'b'], default: 'a' },
          date: { type: 'string', format: 'date-time', nullable: true },
          other: { type: 'string', format: 'no-format-at-all' },
          none: { type: 'object', nullable: true, properties: { a: { type: 'string' } }, default: {} },
          nones: { type: 'array', nullable: true, items: { type: 'string' } },
          flag: { type: 'boolean', default: false },
          port: { 'x-kubernetes-int-or-string': true, description: 'A port.' },
          ports: {
            type: 'array',
            items: { 'x-kubernetes-int-or-string': true, anyOf: [{ type: 'integer' }, { type: 'string' }] },
          },
          open: { type: 'object', description: 'Open.', ...OPEN, properties: { a: { type: 'string' } }, required: ['a'] },
          any: { description: 'Any.', ...OPEN },
          openList: { type: 'array', ...OPEN, items: { type: 'object', ...OPEN } },
          texts: { type: 'array', items: { type: 'string' }, minItems: 1, maxItems: 5, 'x-kubernetes-list-type': 'set' },
          keyed: {
            type: 'array',
            'x-kubernetes-list-type': 'map',
            'x-kubernetes-list-map-keys': ['name'],
            items: { type: 'object', required: ['name'], properties: { name: { type: 'string' } } },
          },
          map: { type: 'object', additionalProperties: { type: 'integer', minimum: 1 }, 'x-kubernetes-map-type': 'atomic' },
          nullMap: { type: 'object', required: ['a'], additionalProperties: { type: 'string', nullable: true } },
          freeMap: { type: 'object', additionalProperties: true },
          inner: { type: 'object', ...EMBEDDED, ...OPEN },
          closed: {
            type: 'object',
            ...EMBEDDED,
            properties: { spec: { type: 'object', properties: { a: { type: 'string' } } } },
          },
          either: {
            type: 'object',
            properties: { a: { type: 'string' }, b: { type: 'string' } },
            oneOf: [{ required: ['a'] }, { required: ['b'] }],
            allOf: [{ properties: { a: { minLength: 2 } } }],
            anyOf: [{ required: ['a'] }, { required: ['b'] }],
            not: { required: ['c'] },
          },
          ruled: { type: 'integer', 'x-kubernetes-validations': [{ rule: 'self > 1', message: 'too small' }] },
        },
      },
    },
  },
  v2: { type: 'object', ...OPEN },
  v3: { type: 'object', ...OPEN, properties: { spec: { type: 'object', properties: { a: { type: 'string' } } } } },
  v4: { type: 'object' },
  v5: { type: 'object', properties: { spec: { type: 'string', nullable: true } }, required: ['spec'] },
  v6: {
    type: 'object',
    properties: {
      metadata: { type: 'object', properties: { name: { type: 'string', maxLength: 5 } } },
      status: { type: 'object', nullable: true },
    },
  },
};

const DEFINITION = {
  ...{ apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition', metadata: { name: `tools.${GROUP}` } },
  spec: {
    ...{ group: GROUP, scope: 'Namespaced', names: { plural: 'tools', kind: 'Tool' } },
    versions: Object.entries(SCHEMAS).map(([name, openAPIV3Schema]) => {
      return { name, served: true, storage: name === 'v1', subresources: { status: {} }, schema: { openAPIV3Schema } };
    }),
  },
};

/** The members of every kind, whose words are each server's own. */
const SHARED = ['apiVersion', 'kind', 'metadata', 'items'];

/** A schema without the words of the shared members, and without orders that mean nothing. */
function told(value: Json, name: string = ''): Json {
  if (Array.isArray(value)) return name === 'required' ? [...value].sort() : value.map((each) => told(each));
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value as Record<string, Json>).map(([key, each]) => {
    if (!SHARED.includes(key) || name !== 'properties') return [key, told(each, key)];
    const { description: _, ...rest } = each;
    return [key, told(rest, key)];
  });
  return Object.fromEntries(entries);
}

const own = (schemas: Json): Json => {
  return Object.fromEntries(Object.entries(told(schemas) as Json).filter(([name]) => name.startsWith(PREFIX)));
};

/** Bodies of an apply with members that are there twice. */
const TWICE: readonly string[] = [
  'spec:\n  foo: 1\n  foo: 2\n',
  'spec:\n  foo: 1\n  foo:\n    a: 1\n  foo:\n  - a\n  - b\n',
  'spec:\n  list:\n  - a: 1\n    a: 2\n  "no": 1\n  "no": {b: 1, b: 2}\nspec: {}\n',
].map((text) => `apiVersion: ${GROUP}/v2\nkind: Tool\nmetadata:\n  name: twice\n${text}`);
const JSON_TWICE = `{"apiVersion":"${GROUP}/v2","kind":"Tool",\n"metadata":{"name":"twice"},"spec":{"a":1,"a":\n2,"b":[{"c\\u0041":1,\n"cA":2}]}}`;

const applied = (body: string, validation: string): Step => ({
  method: 'PATCH',
  path: `/apis/${GROUP}/v2/namespaces/default/tools/twice?fieldManager=a&fieldValidation=${validation}`,
  headers: { 'content-type': 'application/apply-patch+yaml' },
  body,
});

export const PUBLISHED: readonly Step[] = [
  { method: 'POST', path: CRDS, body: DEFINITION },
  { path: `${CRDS}/tools.${GROUP}`, until: '"InitialNamesAccepted"' },
  { path: '/openapi/v2', until: `${PREFIX}v6.Tool`, of: ({ definitions }: Json) => own(definitions) },
  ...Object.keys(SCHEMAS).map((version) => ({
    ...{ path: `/openapi/v3/apis/${GROUP}/${version}`, until: `${PREFIX}${version}.ToolList` },
    of: ({ components }: Json) => own(components.schemas),
  })),
  ...[...TWICE, JSON_TWICE].map((body) => applied(body, 'Strict')),
  { method: 'DELETE', path: `${CRDS}/tools.${GROUP}` },
];
