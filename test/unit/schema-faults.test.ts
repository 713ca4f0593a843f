// What is wrong with schemas, in the words of a kube-apiserver, which test/peers/schemas.test.ts asks for random ones.
import { expect, test } from 'vitest';
import type { JsonSchema } from '../../src/apiserver/definition.ts';
import { structuralFaults } from '../../src/apiserver/validation/structural-faults.ts';

const obj = (spec: object): object => ({ type: 'object', properties: { spec } });
const t = { type: 'string' };
const EITHER = [{ type: 'integer' }, t];
const INT_OR_STRING = { 'x-kubernetes-int-or-string': true };
const EMBEDDED = { type: 'object', 'x-kubernetes-embedded-resource': true, 'x-kubernetes-preserve-unknown-fields': true };
const LABELLED = {
  type: 'object',
  properties: { labels: { type: 'object', additionalProperties: { type: 'string', default: 'a' } } },
};
const PRESET = { type: 'object', properties: { a: t }, default: { b: 'c' } };
const item = { type: 'object', properties: { a: t, b: { type: 'string', default: 'x' } }, required: ['a'] };

/** What is wrong with a schema: reasons without their prefix, places and words. */
async function told(schema: object, status: boolean = false): Promise<string[]> {
  const found = await structuralFaults(schema as JsonSchema, { path: 'S', status });
  return found.map(({ reason = '', field, message }) => `${reason.replace('FieldValue', '')} ${field}: ${message}`);
}

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
  [
    'an item without a type',
    obj({ type: 'array', items: {} }),
    'Required S.properties[spec].items.type: Required value: must not be empty for specified array items',
  ],
  [
    'other members without a type',
    obj({ type: 'object', additionalProperties: {} }),
    'Required S.properties[spec].additionalProperties.type: Required value: must not be empty for specified object fields',
  ],
  [
    'what is not a list of items',
    obj({ type: 'array', items: [] }),
    'Required S.properties[spec].items: Required value: must be specified',
  ],
  [
    'a schema for each item, of which the place is not checked',
    obj({ items: [t] }),
    'Forbidden S.properties[spec].items: Forbidden: items must be a schema object and not an array',
  ],
  ['no type for what may be anything', obj({ 'x-kubernetes-preserve-unknown-fields': true })],
  [
    'a kind of schema',
    obj({ type: 'string', $schema: 'x' }),
    'Invalid S: Invalid value: "": OpenAPIV3Schema \'schema\' is not supported',
  ],
  [
    'a kind of schema, with what else is wrong',
    obj({ $schema: 'x', uniqueItems: true }),
    'Forbidden S.properties[spec].uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic',
  ],
  [
    'no identifiers, definitions, dependencies and patterns',
    obj({ type: 'object', id: '', $schema: '', definitions: {}, patternProperties: {} }),
  ],
  [
    'keywords in any place: in items',
    obj({ type: 'array', items: { type: 'string', id: 'x' } }),
    'Forbidden S.properties[spec].items.id: Forbidden: id is not supported',
  ],
  [
    'keywords in any place: in anyOf',
    obj({ type: 'object', anyOf: [{ id: 'x' }] }),
    'Forbidden S.properties[spec].anyOf[0].id: Forbidden: id is not supported',
  ],
  [
    'keywords in any place: in members of allOf, in items of not',
    obj({
      type: 'object',
      properties: { a: t },
      allOf: [{ properties: { a: { uniqueItems: true } } }],
      not: { items: { uniqueItems: true } },
    }),
    'Forbidden S.properties[spec].allOf[0].properties[a].uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic',
    'Forbidden S.properties[spec].not.items.uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic',
  ],
  [
    'null, which the root cannot be',
    { type: 'object', nullable: true },
    'Forbidden S.nullable: Forbidden: nullable cannot be true at the root',
  ],
  [
    'other members at the root',
    { type: 'object', additionalProperties: t },
    'Forbidden S.additionalProperties: Forbidden: must not be used at the root',
  ],
  [
    'other members of an embedded object',
    obj({
      type: 'object',
      'x-kubernetes-embedded-resource': true,
      'x-kubernetes-preserve-unknown-fields': true,
      additionalProperties: t,
    }),
    'Forbidden S.properties[spec].additionalProperties: Forbidden: must not be used if x-kubernetes-embedded-resource is set',
  ],
  [
    'members beside any others, or beside none',
    obj({
      type: 'object',
      properties: {
        any: { type: 'object', properties: { a: t }, additionalProperties: true },
        none: { type: 'object', properties: { a: t }, additionalProperties: false },
        empty: { type: 'object', properties: {}, additionalProperties: false },
      },
    }),
    'Forbidden S.properties[spec].properties[none].additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive',
  ],
  [
    'either, of what is embedded or anything',
    obj({
      type: 'object',
      'x-kubernetes-int-or-string': true,
      'x-kubernetes-preserve-unknown-fields': true,
      'x-kubernetes-embedded-resource': true,
    }),
    'Invalid S.properties[spec].x-kubernetes-embedded-resource: Invalid value: true: must be false if x-kubernetes-int-or-string is true',
    'Invalid S.properties[spec].x-kubernetes-preserve-unknown-fields: Invalid value: true: must be false if x-kubernetes-int-or-string is true',
  ],
  [
    'either, as it may be written',
    obj({
      type: 'object',
      properties: {
        a: { 'x-kubernetes-int-or-string': true, anyOf: EITHER },
        b: { 'x-kubernetes-int-or-string': true, allOf: [{ anyOf: EITHER }] },
        c: { 'x-kubernetes-int-or-string': true, allOf: [{ anyOf: EITHER }, { pattern: 'a' }], oneOf: [{ maximum: 1 }] },
      },
    }),
  ],
  [
    'either, as it may not be written',
    obj({
      type: 'object',
      properties: {
        a: { 'x-kubernetes-int-or-string': true, anyOf: [...EITHER, { type: 'boolean' }] },
        b: { 'x-kubernetes-int-or-string': true, allOf: [{}, { anyOf: EITHER }] },
        c: { 'x-kubernetes-int-or-string': true, allOf: [{ oneOf: EITHER }] },
      },
    }),
    ...[
      'a].anyOf[0]',
      'a].anyOf[1]',
      'a].anyOf[2]',
      'b].allOf[1].anyOf[0]',
      'b].allOf[1].anyOf[1]',
      'c].allOf[0].oneOf[0]',
      'c].allOf[0].oneOf[1]',
    ].map((at) => `Forbidden S.properties[spec].properties[${at}.type: Forbidden: must be empty to be structural`),
  ],
  [
    'an embedded object without a type',
    obj({ 'x-kubernetes-embedded-resource': true, 'x-kubernetes-preserve-unknown-fields': true }),
    'Required S.properties[spec].type: Required value: must be object if x-kubernetes-embedded-resource is true',
  ],
  [
    'an embedded object in the metadata of another',
    obj({
      ...{ type: 'object', 'x-kubernetes-embedded-resource': true },
      properties: {
        metadata: { type: 'object', 'x-kubernetes-embedded-resource': true, 'x-kubernetes-preserve-unknown-fields': true },
      },
    }),
    'Forbidden S.properties[spec].properties[metadata].x-kubernetes-embedded-resource: Forbidden: must not be used inside of resource meta',
  ],
  [
    'members of an embedded object of other types',
    obj({ type: 'object', 'x-kubernetes-embedded-resource': true, properties: { metadata: t, apiVersion: { type: 'integer' } } }),
    'Invalid S.properties[spec].properties[apiVersion].type: Invalid value: "integer": must be string',
    'Invalid S.properties[spec].properties[metadata].type: Invalid value: "string": must be object',
  ],
  [
    'the names in the metadata',
    { type: 'object', properties: { metadata: { type: 'object', properties: { name: t, generateName: t } } } },
  ],
  [
    'a description of the metadata',
    { type: 'object', properties: { metadata: { type: 'object', description: 'x' } } },
    'Forbidden S.properties[metadata]: Forbidden: must not specify anything other than name and generateName, but metadata is implicitly specified',
  ],
  [
    'a default of other members in the metadata of an embedded object',
    obj({
      ...{ type: 'object', 'x-kubernetes-embedded-resource': true },
      properties: {
        metadata: {
          type: 'object',
          properties: { labels: { type: 'object', additionalProperties: { type: 'string', default: 'a' } } },
        },
      },
    }),
    'Forbidden S.properties[spec].properties[metadata].properties[labels].additionalProperties.default: Forbidden: must not be set inside additionalProperties applying to object metadata',
  ],
  ['a default of other members elsewhere', obj({ type: 'object', additionalProperties: { type: 'string', default: 'a' } })],
  [
    'what there may not be in allOf',
    obj({
      type: 'array',
      items: t,
      allOf: [
        {
          ...{
            title: 'x',
            'x-kubernetes-embedded-resource': true,
            'x-kubernetes-list-map-keys': ['a'],
            'x-kubernetes-list-type': 'map',
          },
          ...{ 'x-kubernetes-map-type': 'atomic', 'x-kubernetes-validations': [{ rule: 'true' }] },
        },
      ],
    }),
    'Forbidden S.properties[spec].allOf[0].title: Forbidden: must be empty to be structural',
    ...[
      'embedded-resource: Forbidden: must be false',
      'list-map-keys: Forbidden: must be empty',
      'list-type: Forbidden: must be undefined',
      'map-type: Forbidden: must be undefined',
      'validations: Forbidden: must be empty',
    ].map((each) => `Forbidden S.properties[spec].allOf[0].x-kubernetes-${each} to be structural`),
    'Required S.properties[spec].allOf[0].items: Required value: must have a schema if x-kubernetes-list-type is map',
    'Required S.properties[spec].allOf[0].type: Required value: must be array if x-kubernetes-list-type is specified',
    'Required S.properties[spec].allOf[0].type: Required value: must be object if x-kubernetes-map-type is specified',
  ],
  [
    'what says nothing in allOf',
    obj({
      type: 'object',
      allOf: [
        {
          title: '',
          nullable: false,
          default: null,
          'x-kubernetes-list-map-keys': [],
          'x-kubernetes-validations': [],
          additionalProperties: false,
        },
      ],
    }),
  ],
  [
    'members of the metadata in anyOf',
    obj({ type: 'object', properties: { metadata: t }, anyOf: [{ properties: { metadata: { minLength: 1 } } }] }),
    'Forbidden S.properties[spec].anyOf[0].properties[metadata]: Forbidden: must not be specified in a nested context',
  ],
  [
    'types at any depth below anyOf',
    obj({
      ...{ type: 'object', properties: { a: { type: 'array', items: t } } },
      anyOf: [{ properties: { a: { type: 'array', items: { type: 'string' }, not: { pattern: '(' } } } }],
    }),
    'Forbidden S.properties[spec].anyOf[0].properties[a].items.type: Forbidden: must be empty to be structural',
    'Forbidden S.properties[spec].anyOf[0].properties[a].type: Forbidden: must be empty to be structural',
    'Invalid S.properties[spec].anyOf[0].properties[a].not.pattern: Invalid value: "(": must be a valid regular expression, but isn\'t: error parsing regexp: missing closing ): `(`',
  ],
  [
    'limits at the root of what is declared nowhere else',
    {
      ...{ type: 'object', properties: { a: { type: 'array', items: { type: 'object' } }, e: { type: 'array', items: t } } },
      allOf: [{ properties: { b: {}, a: { items: { properties: { c: {} } }, oneOf: [{ items: { properties: { d: {} } } }] } } }],
      anyOf: [{ properties: { e: { items: { minLength: 1 } } } }],
      not: { properties: { toString: {} }, items: {} },
    },
    ...[
      ['items', 'not.items'],
      ['properties[a].items.properties[c]', 'allOf[0].properties[a].items.properties[c]'],
      ['properties[a].items.properties[d]', 'allOf[0].properties[a].oneOf[0].items.properties[d]'],
      ['properties[b]', 'allOf[0].properties[b]'],
      ['properties[toString]', 'not.properties[toString]'],
    ].map(([at, from]) => `Required S.${at}: Required value: because it is defined in S.${from}`),
  ],
  [
    'limits of members of none',
    { type: 'object', allOf: [{ properties: { a: {} } }] },
    'Required S.properties[a]: Required value: because it is defined in S.allOf[0].properties[a]',
  ],
  [
    'a list, and a map, without a type',
    obj({
      type: 'object',
      properties: { a: { 'x-kubernetes-list-type': 'atomic' }, b: { 'x-kubernetes-map-type': 'granular' } },
    }),
    'Required S.properties[spec].properties[a].type: Required value: must be array if x-kubernetes-list-type is specified',
    'Required S.properties[spec].properties[a].type: Required value: must not be empty for specified object fields',
    'Required S.properties[spec].properties[b].type: Required value: must be object if x-kubernetes-map-type is specified',
    'Required S.properties[spec].properties[b].type: Required value: must not be empty for specified object fields',
  ],
  [
    'a set of atomic objects that is none',
    obj({ type: 'object', 'x-kubernetes-list-type': 'set', items: { type: 'object' } }),
    'Invalid S.properties[spec].type: Invalid value: "object": must be array if x-kubernetes-list-type is specified',
  ],
  [
    'keys of a set',
    obj({ type: 'array', items: t, 'x-kubernetes-list-type': 'set', 'x-kubernetes-list-map-keys': ['a'] }),
    'Invalid S.properties[spec].x-kubernetes-list-type: Invalid value: "set": must be map if x-kubernetes-list-map-keys is non-empty',
  ],
  [
    'a map without items',
    obj({ type: 'array', 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['a'] }),
    'Required S.properties[spec].items: Required value: must be specified',
    'Required S.properties[spec].items: Required value: must have a schema if x-kubernetes-list-type is map',
  ],
  [
    'a map by lists, of what may be null, of which a key may be null',
    obj({
      ...{ type: 'array', 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['a', 'b'] },
      items: {
        ...{ type: 'object', nullable: true, required: ['a'] },
        properties: { a: { type: 'array', items: t }, b: { type: 'string', nullable: true, default: 'b' } },
      },
    }),
    'Forbidden S.properties[spec].items.nullable: Forbidden: cannot be nullable when x-kubernetes-list-type is map',
    'Forbidden S.properties[spec].items.properties[b].nullable: Forbidden: this property is in x-kubernetes-list-map-keys, so it cannot be nullable',
    'Invalid S.properties[spec].items.properties[a].type: Invalid value: "object": must be a scalar type if parent array\'s x-kubernetes-list-type is map',
  ],
  [
    'a map by what objects inherit',
    obj({
      ...{ type: 'array', 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['toString'] },
      items: { type: 'object', properties: { a: t } },
    }),
    'Invalid S.properties[spec].x-kubernetes-list-map-keys: Invalid value: ["toString"]: entries must all be names of item properties',
  ],
  [
    'a list of what may be null',
    obj({ type: 'array', items: { type: 'string', nullable: true }, 'x-kubernetes-list-type': 'atomic' }),
  ],
  [
    'defaults at any depth',
    obj({
      type: 'object',
      properties: {
        a: { type: 'array', items: { type: 'object', properties: { b: { type: 'string', default: 1 } } } },
        c: { type: 'object', nullable: true, default: null },
        d: { type: 'object', properties: { e: { type: 'integer' } }, default: { e: 'x' } },
        f: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true, default: { g: 1 } },
        h: { type: 'array', items: { type: 'object', properties: { i: t } }, default: [{ i: 'x' }] },
      },
    }),
    'TypeInvalid S.properties[spec].properties[a].items.properties[b].default: Invalid value: "integer":  in body must be of type string: "integer"',
    'TypeInvalid S.properties[spec].properties[d].default.e: Invalid value: "string": e in body must be of type integer: "string"',
  ],
  [
    'an embedded object as a default',
    obj({
      ...{ type: 'object', 'x-kubernetes-embedded-resource': true, 'x-kubernetes-preserve-unknown-fields': true },
      default: { apiVersion: 'v1', metadata: { name: 'a' } },
    }),
    'Required S.properties[spec].default.kind: Required value',
  ],
  [
    'an embedded object without its head as a default',
    obj({ ...EMBEDDED, default: {} }),
    'Required S.properties[spec].default.apiVersion: Required value',
    'Required S.properties[spec].default.kind: Required value',
  ],
  [
    'an embedded object with a malformed head as a default, of which the first fault is told',
    obj({ ...EMBEDDED, default: { apiVersion: 1, kind: 2 } }),
    'Invalid S.properties[spec].default.apiVersion: Invalid value: 1: must be a string',
  ],
  [
    'defaults in the metadata of an embedded object, of which any member is known',
    obj({
      ...EMBEDDED,
      properties: { metadata: { type: 'object', properties: { name: { ...t, default: 'a' }, labels: PRESET } } },
    }),
  ],
  ['a default of labels elsewhere', obj({ type: 'object', properties: { metadata: LABELLED } })],
  [
    'a default with unknown members in what is called labels',
    obj({ type: 'object', properties: { metadata: { type: 'object', properties: { labels: PRESET } } } }),
    'Invalid S.properties[spec].properties[metadata].properties[labels].default: Invalid value: {"b":"c"}: must not have unknown fields',
  ],
  [
    'a default, which is not checked while the structure is wrong',
    obj({ type: 'object', properties: { a: {}, b: { ...t, default: 1 } } }),
    'Required S.properties[spec].properties[a].type: Required value: must not be empty for specified object fields',
  ],
  [
    'defaults in allOf that are empty',
    obj({ ...t, allOf: [{ default: '' }, { default: [] }] }),
    'Forbidden S.properties[spec].allOf[0].default: Forbidden: must be undefined to be structural',
    'Forbidden S.properties[spec].allOf[1].default: Forbidden: must be undefined to be structural',
  ],
  ['null in allOf, and for other members in it', obj({ type: 'object', allOf: [null, { additionalProperties: null }] })],
  ['metadata that is described with nothing', { type: 'object', properties: { metadata: { type: 'object', description: '' } } }],
  [
    'either, with types at other places',
    obj({
      type: 'object',
      properties: {
        a: { ...INT_OR_STRING, anyOf: EITHER, oneOf: [t] },
        b: { ...INT_OR_STRING, allOf: [{ anyOf: EITHER }, { anyOf: [t] }], oneOf: [{ anyOf: [t] }] },
        c: { ...INT_OR_STRING, allOf: [{ anyOf: [t] }] },
        d: { type: 'array', items: INT_OR_STRING, allOf: [{ items: { anyOf: [t] } }] },
        e: { type: 'object', properties: { f: INT_OR_STRING }, allOf: [{ properties: { f: { anyOf: [t] } } }] },
      },
    }),
    ...[
      'a].oneOf[0]',
      'b].allOf[1].anyOf[0]',
      'b].oneOf[0].anyOf[0]',
      'c].allOf[0].anyOf[0]',
      'd].allOf[0].items.anyOf[0]',
      'e].allOf[0].properties[f].anyOf[0]',
    ].map((at) => `Forbidden S.properties[spec].properties[${at}.type: Forbidden: must be empty to be structural`),
  ],
  [
    'nothing is preserved of what has no type, of which the structure is not checked',
    obj({ 'x-kubernetes-preserve-unknown-fields': false }),
    'Invalid S.properties[spec].x-kubernetes-preserve-unknown-fields: Invalid value: false: must be true or undefined',
  ],
  [
    'a set without items',
    obj({ type: 'array', 'x-kubernetes-list-type': 'set' }),
    'Required S.properties[spec].items: Required value: must be specified',
  ],
  [
    'a set of texts, and of objects, that are called sets',
    obj({
      type: 'object',
      properties: Object.fromEntries(
        ['string', 'object'].map((type) => [
          type,
          { type: 'array', 'x-kubernetes-list-type': 'set', items: { type, 'x-kubernetes-list-type': 'set' } },
        ]),
      ),
    }),
    'Invalid S.properties[spec].properties[object].items.type: Invalid value: "object": must be array if x-kubernetes-list-type is specified',
    'Invalid S.properties[spec].properties[object].items.x-kubernetes-map-type: Invalid value: "set": must be atomic as item of a list with x-kubernetes-list-type=set',
    'Invalid S.properties[spec].properties[string].items.type: Invalid value: "string": must be array if x-kubernetes-list-type is specified',
  ],
  [
    'keys of a set of objects, which need not be there',
    obj({
      ...{ type: 'array', 'x-kubernetes-list-type': 'set', 'x-kubernetes-list-map-keys': ['a'] },
      items: { type: 'object', properties: { a: t }, 'x-kubernetes-map-type': 'atomic' },
    }),
    'Invalid S.properties[spec].x-kubernetes-list-type: Invalid value: "set": must be map if x-kubernetes-list-map-keys is non-empty',
  ],
])('%s', async (_, schema, ...faults) => {
  expect((await told(schema)).sort()).toEqual(faults);
});

test('all that is wrong is told in order: the root, the structure, the keywords', async () => {
  const spec = { type: 'object', properties: { b: {}, a: { uniqueItems: true }, c: {} } };
  const place = 'S.properties[spec].properties';
  expect(await told({ ...obj(spec), nullable: true })).toEqual([
    'Forbidden S.nullable: Forbidden: nullable cannot be true at the root',
    `Required ${place}[a].type: Required value: must not be empty for specified object fields`,
    `Required ${place}[b].type: Required value: must not be empty for specified object fields`,
    `Required ${place}[c].type: Required value: must not be empty for specified object fields`,
    `Forbidden ${place}[a].uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic`,
  ]);
  const list = { type: 'array', items: t };
  const kinds = { 'x-kubernetes-list-type': 'set', 'x-kubernetes-map-type': 'atomic' };
  expect(await told(obj({ ...list, ...kinds, id: 'a', items: { ...t, id: 'b', nullable: true } }))).toEqual([
    'Forbidden S.properties[spec].id: Forbidden: id is not supported',
    'Forbidden S.properties[spec].items.id: Forbidden: id is not supported',
    'Invalid S.properties[spec].type: Invalid value: "array": must be object if x-kubernetes-map-type is specified',
    'Forbidden S.properties[spec].items.nullable: Forbidden: cannot be nullable when x-kubernetes-list-type is set',
  ]);
});

const ONLY_AT_ROOT =
  'only [Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength MinLength Pattern MaxItems MinItems UniqueItems MultipleOf Required Items Properties ExternalDocs Example XPreserveUnknownFields XValidations] fields are allowed at the root of the schema if the status subresource is enabled';

test.each<[what: string, schema: object, ...faults: string[]]>([
  [
    'what may be there',
    {
      ...{ type: 'object', description: 'x', title: 'x', format: 'x', maximum: 1, exclusiveMaximum: true, minimum: 1 },
      ...{ exclusiveMinimum: true, maxLength: 1, minLength: 1, pattern: 'x', maxItems: 1, minItems: 1, multipleOf: 1 },
      ...{ required: ['spec'], items: t, properties: { spec: t }, externalDocs: { url: 'x' }, example: 1 },
      ...{ 'x-kubernetes-preserve-unknown-fields': true, 'x-kubernetes-validations': [{ rule: 'true' }] },
    },
  ],
  ['what says nothing', { type: 'object', nullable: false, $schema: '', enum: [], definitions: {} }],
  [
    'what may not',
    { type: 'object', maxProperties: 1 },
    `Invalid S: Invalid value: {"maxProperties":1,"type":"object"}: ${ONLY_AT_ROOT}`,
  ],
  [
    'lists that say something',
    { type: 'object', allOf: [{}], not: {} },
    `Invalid S: Invalid value: {"allOf":[{}],"not":{},"type":"object"}: ${ONLY_AT_ROOT}`,
  ],
  [
    'another type, which is told first',
    { type: 'string', enum: ['a'] },
    'Invalid S.type: Invalid value: "string": only "object" is allowed as the type at the root of the schema if the status subresource is enabled',
    'Invalid S.type: Invalid value: "string": must be object at the root',
  ],
  ['no type', {}, 'Required S.type: Required value: must not be empty at the root'],
])('at the root of a kind with status: %s', async (_, schema, ...faults) => {
  expect(await told(schema, true)).toEqual(faults);
});

const CHILD = { type: 'object', properties: { a: t, 'b.c': t, "d'e": t, m: { type: 'object', additionalProperties: obj(t) } } };
const message = 'm';

test.each<[what: string, rule: unknown, ...faults: string[]]>([
  ['one line', { rule: 'true', message }],
  ['no rule', { rule: ' \n', message: ' ' }, 'Required .rule: Required value: rule is not specified'],
  ['what is no rule', 5, 'Required .rule: Required value: rule is not specified'],
  ['an empty message', { rule: 'true', message: ' ' }, 'Invalid .message: Invalid value: " ": must be non-empty if specified'],
  ['no message', { rule: 'true', message: '' }],
  [
    'a message of two lines',
    { rule: 'true', message: 'a\nb' },
    'Invalid .message: Invalid value: "a\\nb": must not contain line breaks',
  ],
  [
    'a message with a return',
    { rule: 'true', message: 'a\rb' },
    'Invalid .message: Invalid value: "a\\rb": must not contain line breaks',
  ],
  ['a line that ends', { rule: 'true\n', message: 'a\n' }],
  ['a rule of two lines', { rule: 'true\n|| false', message }],
  [
    'a rule of two lines without a message',
    { rule: 'true\n|| false' },
    'Required .message: Required value: message must be specified if rule contains line breaks',
  ],
  [
    'a rule with a return without a message',
    { rule: 'true\r|| false' },
    'Required .message: Required value: message must be specified if rule contains line breaks',
  ],
  [
    'an empty expression',
    { rule: 'true', message, messageExpression: ' ' },
    'Required .messageExpression: Required value: messageExpression must be non-empty if specified',
  ],
  ['an expression', { rule: 'true', messageExpression: '"a"' }],
  [
    'an unknown reason',
    { rule: 'true', message, reason: 'Other' },
    'NotSupported .reason: Unsupported value: "Other": supported values: "FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"',
  ],
  ...['Duplicate', 'Forbidden', 'Invalid', 'Required'].map((reason): [string, unknown] => [
    reason,
    { rule: 'true', message, reason: `FieldValue${reason}` },
  ]),
  ...['', '.a', "['b.c']", "['d\\'e']", '.m.x.spec', ".m['x'].spec"].map((fieldPath): [string, unknown] => [
    `the path ${fieldPath}`,
    { rule: 'true', message, fieldPath },
  ]),
  ...['a', '.', '.x', '.a.x', '.b.c', '.toString', "['a'", '.a[0]', '.m.x.y', "x['a']", '.m.', '.m[0]'].map(
    (fieldPath): [string, unknown, string] => [
      `the path ${fieldPath}`,
      { rule: 'true', message, fieldPath },
      `Invalid .fieldPath: Invalid value: ${JSON.stringify(fieldPath)}: must be a valid path`,
    ],
  ),
  [
    'an empty path',
    { rule: 'true', message, fieldPath: ' ' },
    'Invalid .fieldPath: Invalid value: " ": must be non-empty if specified',
    'Invalid .fieldPath: Invalid value: " ": must be a valid path',
  ],
  ...['\n', '\r'].map((end): [string, unknown, string, string] => [
    `a path with ${JSON.stringify(end)}`,
    { rule: 'true', message, fieldPath: `.a${end}` },
    `Invalid .fieldPath: Invalid value: ${JSON.stringify(`.a${end}`)}: must not contain line breaks`,
    `Invalid .fieldPath: Invalid value: ${JSON.stringify(`.a${end}`)}: must be a valid path`,
  ]),
])('what a rule says of itself: %s', async (_, rule, ...faults) => {
  const place = 'S.properties[spec].x-kubernetes-validations[0]';
  const found = await told(obj({ ...CHILD, 'x-kubernetes-validations': [rule] }));
  expect(found).toEqual(faults.map((each) => each.replace(' .', ` ${place}.`)));
});
