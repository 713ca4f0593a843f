// Random definitions: the types that are written for them compile, and objects that are valid fit them. What is not valid does not.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { apiVersionOf } from '../../src/cache/resource-client.ts';
import { kindsOfCrd, together } from '../../src/cli/types/described.ts';
import { writeTypes } from '../../src/cli/types/writer.ts';
import { faultsOf } from '../compile.ts';
import { runs } from '../runs.ts';

/** A schema, a value that it allows, and one that it does not, if there is one. */
interface Case {
  readonly schema: object;
  readonly valid: unknown;
  readonly invalid?: unknown;
}

const hostile = fc.constantFrom(
  ...[
    '*/ export const x = 1; /*',
    'a\nb\r\nc\u2028d\u2029e',
    '`$' + '{1}`',
    '\\',
    '\u202etxt',
    '// x',
    '@deprecated {@link',
    '\ud800',
  ],
  ...['', ' ', '\t- a', '日本語', '"', "'"],
);
const text = fc.oneof(hostile, fc.string({ maxLength: 12 }), fc.string({ unit: 'binary', maxLength: 6 }));
const name = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom('spec', 'a', 'b', 'items', 'x-y', 'xY', 'name', 'kind', 'default', 'class') },
  { weight: 1, arbitrary: fc.constantFrom('__proto__', 'constructor', 'toString', 'prototype', '1', '', 'a b', 'ä') },
  { weight: 1, arbitrary: text },
);

/** Of a member that all objects have, the compiler takes the type from there, and not from that of the map. */
const mapKey = name.filter((key) => !(key in {}) || key === '__proto__');

const limits = fc.record(
  {
    description: text,
    format: fc.constantFrom('int32', 'date-time', '*/'),
    pattern: fc.constantFrom('^a*/$', '`', '\n'),
    minimum: fc.constantFrom(0, -1, 1.5),
    exclusiveMinimum: fc.boolean(),
    default: fc.constantFrom<unknown>({}, 1, '*/', { a: ['\u2028'] }, null),
    'x-kubernetes-list-type': fc.constantFrom('set', 'map', 'atomic'),
    'x-kubernetes-list-map-keys': fc.constant(['*/', 'a']),
  },
  { requiredKeys: [] },
);

const scalars: fc.Arbitrary<Case> = fc.oneof(
  fc.string().map((valid) => ({ schema: { type: 'string' }, valid, invalid: 1 })),
  fc.integer().map((valid) => ({ schema: { type: 'integer' }, valid, invalid: 'a' })),
  fc.boolean().map((valid) => ({ schema: { type: 'boolean' }, valid, invalid: 'a' })),
  fc.uniqueArray(text, { minLength: 1, maxLength: 4 }).map((all) => ({
    schema: { type: 'string', enum: all },
    valid: all[0],
    invalid: `${all.join()}+`,
  })),
  fc.oneof(fc.integer(), fc.string()).map((valid) => ({ schema: { 'x-kubernetes-int-or-string': true }, valid, invalid: true })),
  fc.jsonValue().map((valid) => ({ schema: { 'x-kubernetes-preserve-unknown-fields': true }, valid })),
);

const withNull = (inner: fc.Arbitrary<Case>): fc.Arbitrary<Case> =>
  fc
    .record({ one: inner, nullable: fc.boolean(), isNull: fc.boolean(), more: limits })
    .map(({ one, nullable, isNull, more }) => ({
      ...one,
      schema: { ...more, ...one.schema, ...(nullable && { nullable }) },
      valid: nullable && isNull ? null : one.valid,
    }));

const members = (inner: fc.Arbitrary<Case>): fc.Arbitrary<Case> =>
  fc
    .record({
      all: fc.uniqueArray(fc.tuple(name, inner, fc.constantFrom('required', 'there', 'absent')), {
        minLength: 1,
        maxLength: 4,
        selector: ([key]) => key,
      }),
      open: fc.boolean(),
    })
    .map(({ all, open }) => {
      const entries = <V>(of: (one: Case) => V, kept = all): object =>
        Object.fromEntries(kept.map(([key, one]) => [key, of(one)]));
      const present = all.filter(([, , presence]) => presence !== 'absent');
      const required = all.filter(([, , presence]) => presence === 'required').map(([key]) => key);
      const wrong = present.find(([, one]) => 'invalid' in one);
      const valid = entries(({ valid }) => valid, present);
      return {
        schema: {
          ...{ type: 'object', properties: entries(({ schema }) => schema), required },
          ...(open && { 'x-kubernetes-preserve-unknown-fields': true }),
        },
        valid,
        ...(wrong && { invalid: { ...valid, ...Object.fromEntries([[wrong[0], wrong[1].invalid]]) } }),
      };
    });

function schemas(depth: number): fc.Arbitrary<Case> {
  if (depth === 0) return withNull(scalars);
  const below = schemas(depth - 1);
  return withNull(
    fc.oneof(
      scalars,
      members(below),
      below.map(({ schema, valid, ...rest }) => ({
        schema: { type: 'array', items: schema },
        valid: [valid, valid],
        ...('invalid' in rest ? { invalid: [rest.invalid] } : { invalid: {} }),
      })),
      fc.tuple(mapKey, below).map(([key, { schema, valid, ...rest }]) => ({
        schema: { type: 'object', additionalProperties: schema },
        valid: Object.fromEntries([[key, valid]]),
        ...('invalid' in rest ? { invalid: Object.fromEntries([[key, rest.invalid]]) } : { invalid: 1 }),
      })),
    ),
  );
}

const crd = (schema: object, kind: string): object => ({
  spec: {
    group: 'example.com',
    names: { kind, plural: `${kind.toLowerCase()}s` },
    versions: [{ name: 'v1', schema: { openAPIV3Schema: schema } }],
  },
});

/** To the compiler, these end a line. */
const literal = (value: unknown): string => JSON.stringify(value).replaceAll('\u2028', '\\u2028').replaceAll('\u2029', '\\u2029');

/** A value as TypeScript. A member called `__proto__` would be a prototype if it were not computed. */
function code(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(code).join(', ')}]`;
  if (typeof value !== 'object' || value === null) return Object.is(value, -0) ? '0' : literal(value);
  return `{ ${Object.entries(value)
    .map(([key, each]) => `[${literal(key)}]: ${code(each)}`)
    .join(', ')} }`;
}

const words = fc.record({
  group: fc.oneof(fc.constantFrom('example.com', 'a', '*/.b'), text),
  kind: fc.oneof(fc.constantFrom('Website', 'Kind', 'Record', 'string', 'class', '1'), text),
  plural: fc.oneof(fc.constantFrom('websites', 'kind', 'a-b', '9'), text),
  version: fc.oneof(fc.constantFrom('v1', 'v1beta1', '2'), text),
});

/** Definitions in one file. */
const AT_ONCE = 12;

describe('types of random definitions', () => {
  test('compile, and valid objects fit them', () => {
    const cases = fc.array(members(schemas(3)), { minLength: 1, maxLength: AT_ONCE });
    fc.assert(
      fc.property(cases, (all) => {
        const kinds = all.flatMap(({ schema }, at) =>
          kindsOfCrd(crd({ type: 'object', properties: { spec: schema } }, `K${at}`), ''),
        );
        const described = together([{ kinds, components: new Map() }]);
        const written = writeTypes({ ...described, known: described.kinds });
        const lines = all.flatMap(({ valid, invalid }, at) => {
          const of = (spec: unknown): string => `K${at} = { metadata: { name: 'a' }, spec: ${code(spec)} };`;
          const wrong = invalid === undefined ? [] : ['// @ts-expect-error', `export const wrong${at}: ${of(invalid)}`];
          return [`export const right${at}: ${of(valid)}`, ...wrong];
        });
        const names = all.map((_, at) => `K${at}`).join(', ');
        const use = `import type { ${names} } from './kinds.ts';\n${lines.join('\n')}\n`;
        expect(faultsOf({ 'kinds.ts': written, 'use.ts': use })).toEqual([]);
      }),
      { numRuns: runs(50) },
    );
  });

  test('compile, however kinds are called', () => {
    const filled = words.filter((each) => Object.values(each).every((word) => word !== ''));
    fc.assert(
      fc.property(fc.array(fc.tuple(filled, members(scalars)), { minLength: 1, maxLength: AT_ONCE }), (all) => {
        const parts = all.map(([{ group, kind, plural, version }, { schema }]) => {
          const versions = [{ name: version, schema: { openAPIV3Schema: { type: 'object', properties: { spec: schema } } } }];
          return {
            kinds: kindsOfCrd({ spec: { group, names: { kind, plural }, versions } } as object, ''),
            components: new Map(),
          };
        });
        const distinct = new Map(
          parts.map((part) => [part.kinds.map((each) => `${apiVersionOf(each)}/${each.kind}`).join(), part]),
        );
        const described = together([...distinct.values()]);
        expect(faultsOf({ 'kinds.ts': writeTypes({ ...described, known: described.kinds }) })).toEqual([]);
      }),
      { numRuns: runs(50) },
    );
  });
});
