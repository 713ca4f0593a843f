// What is seen at once of an object is what is found step by step: of the same one with more values than are looked at at once, or with
// one that nobody judges at once.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { JsonSchema } from '../../src/apiserver/definition.ts';
import { compileSchema, fitting } from '../../src/apiserver/validation/object-schema.ts';
import { fitsQuickly } from '../../src/apiserver/validation/quick.ts';
import { structuralOf } from '../../src/apiserver/validation/structural.ts';
import type { KubernetesObject } from '../../src/cache/object.ts';
import { atOnce, type Work } from '../../src/watch/fair-queue.ts';
import { runs } from '../runs.ts';

const OPEN = 'x-kubernetes-preserve-unknown-fields';
const text: JsonSchema = { type: 'string' };
const list = (type: string, items: JsonSchema, keys?: readonly string[]): JsonSchema => ({
  ...{ type: 'array', items, 'x-kubernetes-list-type': type },
  ...(keys && { 'x-kubernetes-list-map-keys': keys }),
});
const item: JsonSchema = { type: 'object', properties: { a: text, b: { type: 'integer', default: 1 } } };
const spec: Readonly<Record<string, JsonSchema>> = {
  set: list('set', { type: 'string', nullable: true }),
  odd: list('set', { [OPEN]: true }),
  map: list('map', item, ['a']),
  pairs: list('map', item, ['a', 'b']),
  inner: { type: 'object', 'x-kubernetes-embedded-resource': true, [OPEN]: true },
  when: { type: 'string', format: 'date-time' },
  day: { type: 'string', format: 'date' },
  either: { 'x-kubernetes-int-or-string': true, anyOf: [{ type: 'integer' }, { type: 'string' }] },
  choice: { type: 'string', enum: ['x', 'y'], default: 'x' },
  any: { type: 'object', additionalProperties: { type: 'integer', default: 2 } },
  many: { type: 'object', maxProperties: 1, [OPEN]: true },
  kept: { type: 'array', [OPEN]: true, items: item },
};
const pad: JsonSchema = { type: 'array', items: { type: 'integer' } };
const slow: JsonSchema = { type: 'integer', not: { minimum: 2 } };
const schema: JsonSchema = {
  type: 'object',
  properties: { pad, slow, spec: { type: 'object', required: ['set'], properties: spec } },
};
const PAD = Array.from({ length: 9_000 }, (_, at) => at);

const few = <T>(of: fc.Arbitrary<T>): fc.Arbitrary<T[]> => fc.array(of, { maxLength: 3 });
const word = fc.constantFrom('x', 'y', '1', '');
const entry = fc.record({ a: word, b: fc.constantFrom<unknown>(1, 2, null) }, { requiredKeys: [] });
const inner = fc.record(
  {
    apiVersion: fc.constantFrom('v1', 'a/b/c', ''),
    kind: fc.constantFrom('Pod', 'Po d'),
    metadata: fc.constant({ name: 'a', odd: 1 }),
  },
  { requiredKeys: [] },
);
const times = [
  '2024-02-29T00:00:00Z',
  '2023-02-29t00:00:00Z',
  '2000-12-31T23:59:59.5+01:00',
  '1900-02-29T00:00:00Z',
  '2024-04-31T00:00:00z',
];
const members = {
  set: few(fc.constantFrom<unknown>('x', 'y', 'z', null)),
  odd: few(fc.constantFrom<unknown>(1, '1', [1], { a: 1, b: 2 }, { b: 2, a: 1 })),
  map: few(entry),
  pairs: few(entry),
  inner,
  when: fc.constantFrom(...times, '2024-01-01', '2024-01-01T24:00:00Z', '2024-01-01T00:00:00Zt'),
  day: fc.constantFrom(...times.map((each) => each.slice(0, 10)), '2024-13-01', '2024-00-01'),
  either: fc.constantFrom<unknown>(1, 'x', 1.5, true),
  choice: fc.constantFrom<unknown>('x', 'z', null),
  any: fc.dictionary(word, fc.constantFrom<unknown>(1, 'x', null)),
  many: fc.dictionary(word, fc.constantFrom<unknown>(1, { x: null })),
  kept: few(fc.record({ a: word, c: word }, { requiredKeys: [] })),
  unknown: fc.constant(1),
};
/** Each has few members, so that many are right. */
const object = fc
  .tuple(fc.record(members), fc.subarray(Object.keys(members), { maxLength: 3 }))
  .map(([all, names]) => Object.fromEntries(Object.entries(all).filter(([name]) => name === 'set' || names.includes(name))));

test('at once as step by step', async () => {
  const check = await compileSchema(schema);
  const tree = structuralOf(schema);
  let right = 0;
  const property = fc.property(object, fc.boolean(), (of, prunes) => {
    const [small, large] = [{ spec: of }, { pad: PAD, spec: of }];
    const kind = { schema, preserveUnknownFields: !prunes };
    const [one, other] = [atOnce(fitting(kind, small)), atOnce(fitting(kind, large))];
    expect(one.spec).toEqual(other.spec);
    expect(one === small).toBe(other === large);
    for (const each of [of, one.spec]) {
      const causesOf = (whole: object): unknown => atOnce(check(whole as KubernetesObject, undefined) as Work<unknown>);
      const causes = causesOf({ spec: each });
      expect(causes).toEqual(causesOf({ slow: 1, spec: each }));
      if ((causes as unknown[]).length === 0) right += Number(fitsQuickly(tree, { spec: each }));
    }
    // What has been changed once is right, which is seen at once.
    expect(atOnce(fitting(kind, one))).toBe(one);
  });
  fc.assert(property, { numRuns: runs(300, { least: 100 }) });
  expect(right).toBeGreaterThan(10);
  for (const one of [{ pad: PAD }, { slow: 1 }]) expect(fitsQuickly(tree, { ...one, spec: { set: [] } })).toBe(false);
});
