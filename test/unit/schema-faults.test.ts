// What is wrong with schemas, in the words of a kube-apiserver, which test/peers/schemas.test.ts asks for random ones.
import { expect, test } from 'vitest';
import type { JsonSchema } from '../../src/apiserver/definition.ts';
import { structuralFaults } from '../../src/apiserver/validation/structural-faults.ts';

const obj = (spec: object): object => ({ type: 'object', properties: { spec } });
const t = { type: 'string' };
const item = { type: 'object', properties: { a: t, b: { type: 'string', default: 'x' } }, required: ['a'] };

test.each<[what: string, schema: object, ...faults: string[]]>([
  ['no type', {}, 'Required S.type: Required value: must not be empty at the root'],
  ['a type that is no object', t, 'Invalid S.type: Invalid value: "string": must be object at the root'],
  [
    'an unknown type',
    obj({ type: 'text' }),
    'NotSupported S.properties[spec].type: Unsupported value: "text": supported values: "array", "boolean", "integer", "number", "object", "string"',
  ],
  [
    'null',
    obj({ type: 'null' }),
    'Forbidden S.properties[spec].type: Forbidden: type cannot be set to null, use nullable as an alternative',
    'NotSupported S.properties[spec].type: Unsupported value: "null": supported values: "array", "boolean", "integer", "number", "object", "string"',
  ],
  [
    'a part without a type',
    obj({ properties: { a: {} } }),
    'Required S.properties[spec].properties[a].type: Required value: must not be empty for specified object fields',
    'Required S.properties[spec].type: Required value: must not be empty for specified object fields',
  ],
  [
    'unique items',
    obj({ type: 'array', uniqueItems: true, items: t }),
    'Forbidden S.properties[spec].uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic',
  ],
  ['a list without items', obj({ type: 'array' }), 'Required S.properties[spec].items: Required value: must be specified'],
  ['no other members', obj({ type: 'object', additionalProperties: false })],
  [
    'members and others',
    obj({ type: 'object', properties: { a: t }, additionalProperties: t }),
    'Forbidden S.properties[spec].additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive',
  ],
  ['items of an object', obj({ type: 'object', items: t })],
  [
    'an unknown kind of list',
    obj({ type: 'array', items: t, 'x-kubernetes-list-type': 'bag' }),
    'NotSupported S.properties[spec].x-kubernetes-list-type: Unsupported value: "bag": supported values: "atomic", "set", "map"',
  ],
  [
    'a kind of list for an object',
    obj({ type: 'object', 'x-kubernetes-list-type': 'set' }),
    'Invalid S.properties[spec].type: Invalid value: "object": must be array if x-kubernetes-list-type is specified',
  ],
  [
    'a map without keys',
    obj({ type: 'array', items: item, 'x-kubernetes-list-type': 'map' }),
    'Required S.properties[spec].x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is map',
  ],
  [
    'keys of no map',
    obj({ type: 'array', items: t, 'x-kubernetes-list-map-keys': ['a'] }),
    'Required S.properties[spec].x-kubernetes-list-type: Required value: must be map if x-kubernetes-list-map-keys is non-empty',
  ],
  [
    'a map with an unknown key',
    obj({ type: 'array', items: item, 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['c', 'c'] }),
    'Invalid S.properties[spec].x-kubernetes-list-map-keys: Invalid value: ["c","c"]: entries must all be names of item properties',
    'Invalid S.properties[spec].x-kubernetes-list-map-keys: Invalid value: ["c","c"]: entries must all be names of item properties',
    'Invalid S.properties[spec].x-kubernetes-list-map-keys: Invalid value: ["c","c"]: must not contain duplicate entries',
  ],
  [
    'a map whose key is no scalar',
    obj({
      type: 'array',
      items: { type: 'object', required: ['a'], properties: { a: { type: 'object' } } },
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['a'],
    }),
    'Invalid S.properties[spec].items.properties[a].type: Invalid value: "object": must be a scalar type if parent array\'s x-kubernetes-list-type is map',
  ],
  [
    'a map whose key may be absent',
    obj({
      type: 'array',
      items: { type: 'object', properties: { a: t } },
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['a'],
    }),
    'Required S.properties[spec].items.properties[a].default: Required value: this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property',
  ],
  [
    'a map of scalars',
    obj({ type: 'array', items: t, 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['a'] }),
    'Invalid S.properties[spec].items.type: Invalid value: "string": must be object if parent array\'s x-kubernetes-list-type is map',
  ],
  [
    'a set of objects',
    obj({ type: 'array', items: { type: 'object', properties: { a: t } }, 'x-kubernetes-list-type': 'set' }),
    'Invalid S.properties[spec].items.x-kubernetes-map-type: Invalid value: null: must be atomic as item of a list with x-kubernetes-list-type=set',
  ],
  ['a set of lists', obj({ type: 'array', items: { type: 'array', items: t }, 'x-kubernetes-list-type': 'set' })],
  [
    'a set of what may be null',
    obj({ type: 'array', items: { type: 'string', nullable: true }, 'x-kubernetes-list-type': 'set' }),
    'Forbidden S.properties[spec].items.nullable: Forbidden: cannot be nullable when x-kubernetes-list-type is set',
  ],
  [
    'an unknown kind of map',
    obj({ type: 'object', properties: { a: t }, 'x-kubernetes-map-type': 'bag' }),
    'NotSupported S.properties[spec].x-kubernetes-map-type: Unsupported value: "bag": supported values: "atomic", "granular"',
  ],
  [
    'a kind of map for a list',
    obj({ type: 'array', items: t, 'x-kubernetes-map-type': 'atomic' }),
    'Invalid S.properties[spec].type: Invalid value: "array": must be object if x-kubernetes-map-type is specified',
  ],
  ['either with a type', obj({ type: 'string', 'x-kubernetes-int-or-string': true })],
  [
    'either in another order',
    obj({ 'x-kubernetes-int-or-string': true, anyOf: [{ type: 'string' }, { type: 'integer' }] }),
    'Forbidden S.properties[spec].anyOf[0].type: Forbidden: must be empty to be structural',
    'Forbidden S.properties[spec].anyOf[1].type: Forbidden: must be empty to be structural',
  ],
  [
    'an embedded object without members',
    obj({ type: 'object', 'x-kubernetes-embedded-resource': true }),
    'Required S.properties[spec].properties: Required value: must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields',
  ],
  [
    'an embedded text',
    obj({ type: 'string', 'x-kubernetes-embedded-resource': true }),
    'Invalid S.properties[spec].type: Invalid value: "string": must be object if x-kubernetes-embedded-resource is true',
    'Required S.properties[spec].properties: Required value: must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields',
  ],
  [
    'nothing is preserved',
    obj({ type: 'object', 'x-kubernetes-preserve-unknown-fields': false }),
    'Invalid S.properties[spec].x-kubernetes-preserve-unknown-fields: Invalid value: false: must be true or undefined',
  ],
  [
    'a default of another type',
    obj({ type: 'string', default: 1 }),
    'TypeInvalid S.properties[spec].default: Invalid value: "integer":  in body must be of type string: "integer"',
  ],
  [
    'a default with unknown members',
    obj({ type: 'object', properties: { a: t }, default: { b: 1 } }),
    'Invalid S.properties[spec].default: Invalid value: {"b":1}: must not have unknown fields',
  ],
  [
    'a default that is too long',
    obj({ type: 'string', maxLength: 1, default: 'ab' }),
    'TooLong S.properties[spec].default: Too long: may not be more than 1 byte',
  ],
  [
    'a default outside of its type, whose format is of another type',
    obj({ type: 'integer', format: 'float', default: 2 ** 63 }),
    'Invalid S.properties[spec].default: Invalid value: "": Checked value must be of type integer (default format) in ',
    'TypeInvalid S.properties[spec].default: Invalid value: "float64":  in body must be of type float: "float64"',
  ],
  [
    'a default outside of its format',
    obj({ type: 'integer', format: 'int32', default: 2 ** 31 }),
    'Invalid S.properties[spec].default: Invalid value: "": Checked value must be of type integer with format int32 in ',
  ],
  [
    'a default of the metadata',
    { type: 'object', properties: { metadata: { type: 'object', properties: { name: { type: 'string', default: 'a' } } } } },
    'Forbidden S.properties[metadata].properties[name].default: Forbidden: must not be set in top-level metadata',
  ],
  [
    'members of the metadata',
    {
      type: 'object',
      properties: {
        metadata: { type: 'object', properties: { labels: { type: 'object' } } },
        kind: { type: 'integer' },
        apiVersion: { type: 'string', pattern: 'v1' },
      },
    },
    'Forbidden S.properties[metadata]: Forbidden: must not specify anything other than name and generateName, but metadata is implicitly specified',
    'Invalid S.properties[kind].type: Invalid value: "integer": must be string',
  ],
  [
    'a wrong pattern',
    obj({ type: 'string', pattern: '(' }),
    'Invalid S.properties[spec].pattern: Invalid value: "(": must be a valid regular expression, but isn\'t: error parsing regexp: missing closing ): `(`',
  ],
  [
    'a type in allOf',
    obj({ type: 'string', allOf: [{ type: 'string', description: 'x', default: 'a', nullable: true }] }),
    'Forbidden S.properties[spec].allOf[0].default: Forbidden: must be undefined to be structural',
    'Forbidden S.properties[spec].allOf[0].description: Forbidden: must be empty to be structural',
    'Forbidden S.properties[spec].allOf[0].nullable: Forbidden: must be false to be structural',
    'Forbidden S.properties[spec].allOf[0].type: Forbidden: must be empty to be structural',
  ],
  [
    'members that only anyOf has',
    obj({ type: 'object', anyOf: [{ properties: { a: { minLength: 1 } } }], not: { items: { minLength: 1 } } }),
  ],
  [
    'other members in oneOf',
    obj({ type: 'object', additionalProperties: t, oneOf: [{ additionalProperties: { minLength: 1 } }] }),
    'Forbidden S.properties[spec].oneOf[0].additionalProperties: Forbidden: must be undefined to be structural',
  ],
  [
    'an extension in not',
    obj({
      type: 'object',
      properties: { a: t },
      not: { 'x-kubernetes-preserve-unknown-fields': true, 'x-kubernetes-int-or-string': true },
    }),
    'Forbidden S.properties[spec].not.x-kubernetes-int-or-string: Forbidden: must be false to be structural',
    'Forbidden S.properties[spec].not.x-kubernetes-preserve-unknown-fields: Forbidden: must be false to be structural',
  ],
  ['a reference', obj({ $ref: '#/a' }), 'Forbidden S.properties[spec].$ref: Forbidden: $ref is not supported'],
  [
    'definitions',
    obj({ type: 'object', definitions: { a: t }, dependencies: { a: ['b'] }, id: 'x' }),
    'Forbidden S.properties[spec].definitions: Forbidden: definitions is not supported',
    'Forbidden S.properties[spec].dependencies: Forbidden: dependencies is not supported',
    'Forbidden S.properties[spec].id: Forbidden: id is not supported',
  ],
  [
    'patterns of names',
    obj({ type: 'object', patternProperties: { a: t }, additionalItems: true }),
    'Forbidden S.properties[spec].additionalItems: Forbidden: additionalItems is not supported',
    'Forbidden S.properties[spec].patternProperties: Forbidden: patternProperties is not supported',
  ],
  ['an example and a title', obj({ type: 'string', example: 1, title: 'x', externalDocs: { url: 'a' } })],
  ['null in an enum', obj({ type: 'string', enum: ['a', null] })],
  [
    'an unnamed member',
    obj({ type: 'object', properties: { '': t, 'a.b': { type: 'x' } } }),
    'NotSupported S.properties[spec].properties[a.b].type: Unsupported value: "x": supported values: "array", "boolean", "integer", "number", "object", "string"',
  ],
  [
    'members named as those of the metadata, elsewhere',
    obj({ type: 'object', properties: { metadata: { type: 'string' }, kind: { type: 'integer' } } }),
  ],
  [
    'members of the metadata of an embedded object',
    obj({
      type: 'object',
      'x-kubernetes-embedded-resource': true,
      properties: { metadata: { type: 'object', properties: { labels: { type: 'object' } } }, kind: { type: 'integer' } },
    }),
    'Invalid S.properties[spec].properties[kind].type: Invalid value: "integer": must be string',
  ],
  [
    'a set of atomic objects and lists',
    obj({
      type: 'object',
      properties: {
        a: {
          type: 'array',
          'x-kubernetes-list-type': 'set',
          items: { type: 'object', properties: { a: t }, 'x-kubernetes-map-type': 'atomic' },
        },
        b: {
          type: 'array',
          'x-kubernetes-list-type': 'set',
          items: { type: 'array', items: t, 'x-kubernetes-list-type': 'atomic' },
        },
        c: {
          type: 'array',
          'x-kubernetes-list-type': 'set',
          items: { type: 'array', items: t, 'x-kubernetes-list-type': 'set' },
        },
      },
    }),
    'Invalid S.properties[spec].properties[c].items.x-kubernetes-list-type: Invalid value: "set": must be atomic as item of a list with x-kubernetes-list-type=set',
  ],
  [
    'the status of metadata as a text',
    { type: 'object', properties: { metadata: { type: 'string' } } },
    'Invalid S.properties[metadata].type: Invalid value: "string": must be object',
  ],
])('%s', async (_, schema, ...faults) => {
  const found = await structuralFaults(schema as JsonSchema, { path: 'S', status: false });
  expect(
    found.map(({ reason = '', field, message }) => `${reason.replace('FieldValue', '')} ${field}: ${message}`).sort(),
  ).toEqual(faults);
});
