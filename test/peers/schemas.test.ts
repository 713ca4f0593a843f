// Schemas and objects at random: what is wrong with a schema, what becomes of an object, and what is wrong with that, beside the packages
// of a kube-apiserver that decide it there. Upstream walks maps in any order, so causes are compared in an order of our own.
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { FieldCause, JsonSchema } from '../../src/apiserver/definition.ts';
import { FieldPaths } from '../../src/apiserver/request/json.ts';
import { compileSchema, fitting } from '../../src/apiserver/validation/object-schema.ts';
import { shaping, structuralOf } from '../../src/apiserver/validation/structural.ts';
import { structuralFaults } from '../../src/apiserver/validation/structural-faults.ts';
import type { KubernetesObject } from '../../src/cache/object.ts';
import { atOnce } from '../../src/watch/fair-queue.ts';
import { component, isMissing } from '../components.ts';
import { FORMATS } from '../formats.ts';
import { runs } from '../runs.ts';

const program = component('schemas');

interface Case {
  readonly schema: JsonSchema;
  readonly object?: object;
  readonly old?: object;
  readonly faults?: boolean;
  readonly prune?: boolean;
  readonly status?: boolean;
}

interface Answer {
  readonly error?: string;
  readonly faults: readonly FieldCause[] | null;
  readonly unknown: readonly string[] | null;
  readonly object: unknown;
  readonly causes: readonly FieldCause[] | null;
}

let child: ChildProcessWithoutNullStreams | undefined;
const waiting: ((line: string) => void)[] = [];

function upstream(asked: Case): Promise<Answer> {
  return new Promise((resolve) => {
    waiting.push((line) => resolve(JSON.parse(line)));
    child?.stdin.write(`${JSON.stringify(asked)}\n`);
  });
}

/** Of a long value, a server here shows the beginning. */
const SHOWN = 300;

const told = (causes: readonly FieldCause[] | null): string[] =>
  (causes ?? []).map(({ reason, field, message }) => `${reason} ${field}: ${message}`.slice(0, SHOWN)).sort();

const PATH = 'spec.validation.openAPIV3Schema';

async function ours({ schema, object, old, faults = false, prune = false, status = false }: Case): Promise<Partial<Answer>> {
  const found = faults ? await structuralFaults(schema, { path: PATH, status }) : [];
  if (found.length > 0 || object === undefined) return { faults: found };
  const kind = { schema, preserveUnknownFields: !prune };
  const unknown = new FieldPaths();
  const shaped = atOnce(shaping(structuralOf(schema), object, { prunes: prune, found: unknown }));
  const before = old === undefined ? undefined : atOnce(fitting(kind, old));
  const check = await compileSchema(schema);
  const causes = atOnce(check(shaped as KubernetesObject, before as KubernetesObject | undefined));
  return { faults: found, object: shaped, unknown: unknown.told.sort(), causes };
}

async function compare(asked: Case): Promise<void> {
  const [theirs, own] = [await upstream(asked), await ours(asked)];
  // Upstream refuses these with 400, where it reads the object.
  if (theirs.error?.endsWith('must be a string')) return;
  if (theirs.error !== undefined) throw new Error(theirs.error);
  expect(told(own.faults ?? null)).toEqual(told(theirs.faults));
  if ((theirs.faults ?? []).length > 0 || asked.object === undefined) return;
  expect(own.object).toEqual(theirs.object);
  if (asked.prune) expect(own.unknown).toEqual(theirs.unknown ?? []);
  expect(told(own.causes ?? null)).toEqual(told(theirs.causes));
}

const name = fc.constantFrom('a', 'b', 'c', 'kind', '__proto__');
const member = fc.constantFrom('a', 'b', 'c', '__proto__');
const scalar = fc.constantFrom<unknown>(
  null,
  true,
  false,
  0,
  1,
  2,
  -1,
  7,
  1.5,
  0.25,
  2 ** 31,
  '',
  'a',
  'ab',
  '10.0.0.1',
  'é<&>',
  '2020-01-01T00:00:00Z',
);
const value: fc.Arbitrary<unknown> = fc.letrec((tie) => ({
  value: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    { weight: 4, arbitrary: scalar },
    { weight: 2, arbitrary: fc.dictionary(name, tie('value'), { maxKeys: 4 }) },
    { weight: 2, arbitrary: fc.array(tie('value'), { maxLength: 3 }) },
  ),
})).value;

const presets = fc.oneof(
  scalar,
  fc.dictionary(member, scalar, { maxKeys: 3 }),
  fc.array(fc.dictionary(member, scalar), { maxLength: 2 }),
);

/** There in one of `odds` cases. */
const maybe = <T>(arbitrary: fc.Arbitrary<T>, odds = 4): fc.Arbitrary<T | undefined> =>
  fc.oneof({ weight: odds - 1, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary });
const small = fc.integer({ min: 0, max: 3 });
const bound = fc.constantFrom(0, 1, 2, -1, 1.5, 0.5);

/** Limits, as below allOf and the like. `free`: also what makes a schema not structural. */
const limits = {
  maximum: maybe(bound, 8),
  minimum: maybe(bound, 8),
  exclusiveMaximum: maybe(fc.boolean(), 8),
  exclusiveMinimum: maybe(fc.boolean(), 8),
  multipleOf: maybe(fc.constantFrom(1, 2, 0.5, 1.5), 12),
  maxLength: maybe(small, 8),
  minLength: maybe(small, 8),
  pattern: maybe(fc.constantFrom('^a*$', 'b', '^(?i)(A|b)?$'), 10),
  maxItems: maybe(small, 8),
  minItems: maybe(small, 8),
  maxProperties: maybe(small, 8),
  minProperties: maybe(small, 8),
  required: maybe(fc.uniqueArray(fc.constantFrom('a', 'b', 'c'), { minLength: 1, maxLength: 2 }), 8),
  enum: maybe(fc.array(value, { minLength: 1, maxLength: 3 }), 14),
  format: maybe(fc.constantFrom('int32', 'int64', 'float', 'date-time', 'ipv4', 'byte', 'nonsense'), 8),
};

const compact = (schema: object): JsonSchema => JSON.parse(JSON.stringify(schema)) as JsonSchema;

/** Limits below allOf and the like; at most so deep. */
function nested(depth: number): fc.Arbitrary<JsonSchema> {
  const below = {
    ...logic(depth),
    properties: maybe(
      fc.dictionary(
        member,
        fc.constant({}).chain(() => nested(depth - 1)),
        { minKeys: 1, maxKeys: 2 },
      ),
      3,
    ),
    items: maybe(fc.constant({}).chain(() => nested(depth - 1))),
  };
  const wrong = maybe(fc.constantFrom('string', 'object'), 24);
  return fc.record({ ...limits, type: wrong, ...(depth > 0 ? below : {}) }).map(compact);
}

function logic(depth: number): Record<string, fc.Arbitrary<unknown>> {
  if (depth <= 0) return {};
  const some = maybe(fc.array(nested(depth - 1), { minLength: 1, maxLength: 3 }), 10);
  return { allOf: some, anyOf: some, oneOf: some, not: maybe(nested(depth - 1), 12) };
}

/** A schema in the form of a structural one, mostly; at most so deep. */
function tree(depth: number): fc.Arbitrary<JsonSchema> {
  const common = { ...limits, ...logic(Math.min(depth, 2)), nullable: maybe(fc.boolean()), default: maybe(presets, 4) };
  const plain = [
    fc.record({ ...common, type: fc.constantFrom('string', 'integer', 'number', 'boolean') }),
    fc.record({
      nullable: maybe(fc.boolean()),
      default: maybe(presets),
      anyOf: maybe(fc.constant([{ type: 'integer' }, { type: 'string' }])),
      'x-kubernetes-int-or-string': fc.constant(true),
    }),
    fc.record({ 'x-kubernetes-preserve-unknown-fields': fc.constant(true), nullable: maybe(fc.boolean()) }),
  ];
  if (depth <= 0) return fc.oneof(...plain).map(compact);
  const below = tree(depth - 1);
  const properties = fc.dictionary(member, below, { minKeys: 1, maxKeys: 3 });
  const object = fc.record({
    ...{ ...common, type: fc.constant('object'), properties },
    'x-kubernetes-preserve-unknown-fields': maybe(fc.constant(true), 6),
    'x-kubernetes-embedded-resource': maybe(fc.constant(true), 10),
    'x-kubernetes-map-type': maybe(fc.constantFrom('atomic', 'granular'), 8),
  });
  const list = fc.record({
    ...{ ...common, type: fc.constant('array'), items: below },
    'x-kubernetes-list-type': maybe(fc.constantFrom('atomic', 'set', 'map'), 3),
    'x-kubernetes-list-map-keys': maybe(fc.uniqueArray(fc.constantFrom('a', 'b'), { minLength: 1 }), 3),
    uniqueItems: maybe(fc.boolean(), 20),
  });
  const map = fc.record({ ...common, type: fc.constant('object'), additionalProperties: fc.oneof(below, fc.boolean()) });
  return fc.oneof(...plain, object, object, map, list, list).map(compact);
}

const root: fc.Arbitrary<JsonSchema> = tree(3).map((spec) => ({ type: 'object', properties: { spec } }));

/** What may fit a schema: with its names and types, mostly. */
function fittingValue(schema: JsonSchema, depth = 0): fc.Arbitrary<unknown> {
  if (depth > 5) return scalar;
  const { properties, items, additionalProperties, type } = schema as {
    properties?: Record<string, JsonSchema>;
    items?: JsonSchema;
    additionalProperties?: JsonSchema | boolean;
    type?: string;
  };
  const of = (): fc.Arbitrary<unknown> => {
    if (properties !== undefined) {
      const members = Object.fromEntries(
        Object.entries(properties).map(([key, each]) => [
          key,
          fc.oneof({ weight: 3, arbitrary: fittingValue(each, depth + 1) }, fc.constant(undefined)),
        ]),
      );
      return fc
        .tuple(fc.record(members), fc.dictionary(name, scalar, { maxKeys: 1 }))
        .map(([known, more]) => ({ ...more, ...(JSON.parse(JSON.stringify(known)) as object) }));
    }
    if (typeof additionalProperties === 'object')
      return fc.dictionary(name, fittingValue(additionalProperties, depth + 1), { maxKeys: 3 });
    if (items !== undefined) return fc.array(fittingValue(items, depth + 1), { maxLength: 4 });
    if (type === 'string') return fc.constantFrom('', 'a', 'ab', 'aaa', '10.0.0.1', '2020-01-01T00:00:00Z', 'YQ==');
    if (type === 'integer') return fc.constantFrom(0, 1, 2, 3, -1, 2 ** 31);
    if (type === 'number') return fc.constantFrom(0, 1, 1.5, 0.25, -2, 1e21);
    if (type === 'boolean') return fc.boolean();
    return value;
  };
  return fc.oneof({ weight: 8, arbitrary: of() }, { weight: 1, arbitrary: value });
}

const object = (schema: JsonSchema): fc.Arbitrary<object> =>
  fittingValue((schema.properties as { spec: JsonSchema }).spec).map((spec) => {
    return JSON.parse(JSON.stringify({ apiVersion: 'example.com/v1', kind: 'Order', metadata: { name: 'a' }, spec })) as object;
  });

/** What differs: words in other character sets, comments in comments, and groups. */
const OTHER_EMAILS = /=\?|\(.*\(|;/;
const CHARS = [
  ...'afxzXZ0129_.:/@%[]()<>"\\+=,#? -\t\n\u00e9\u00b5\u2028*~{}^`$&!',
  '::',
  '..',
  '%41',
  '\u0007',
  '\u000b',
  '\u00a0',
];
const edit = fc.tuple(fc.nat(60), fc.nat(2), fc.constantFrom('', '', ...CHARS));

/** Texts of a format, and texts that are nearly so. */
const texts = fc.constantFrom(...Object.entries(FORMATS)).chain(([format, all]) => {
  const known = all.flatMap((each) => each.split('|'));
  const edited = fc.tuple(fc.constantFrom(...known), fc.array(edit, { minLength: 1, maxLength: 2 })).map(([text, edits]) =>
    edits.reduce((now, [at, length, put]) => {
      const from = at % (now.length + 1);
      return now.slice(0, from) + put + now.slice(from + length);
    }, text),
  );
  const nearly = fc.array(edited, { minLength: 40, maxLength: 40, size: 'max' });
  return nearly.map((more) => ({
    format,
    texts: [...known, ...more].filter((each) => format !== 'email' || !OTHER_EMAILS.test(each)),
  }));
});

describe.skipIf(isMissing(program))('beside the packages of a kube-apiserver', () => {
  beforeAll(() => {
    child = spawn(program.path);
    createInterface({ input: child.stdout }).on('line', (line) => waiting.shift()?.(line));
  });
  afterAll(() => {
    child?.stdin.end();
  });

  test('schemas have the same faults', async () => {
    const property = fc.asyncProperty(root, async (schema) => compare({ schema, faults: true }));
    await fc.assert(property, { numRuns: runs(600) });
  });

  test('objects are pruned, filled in and refused in the same way', async () => {
    const given = root.chain((schema) => fc.record({ schema: fc.constant(schema), object: object(schema), prune: fc.boolean() }));
    await fc.assert(fc.asyncProperty(given, compare), { numRuns: runs(600) });
  });

  test('texts have the same formats', async () => {
    const property = fc.asyncProperty(texts, async ({ format, texts: given }) => {
      const spec = { type: 'object', additionalProperties: { type: 'string', format } };
      const members = Object.fromEntries(given.map((text, at) => [`k${at}`, text]));
      const asked = { apiVersion: 'example.com/v1', kind: 'Order', metadata: { name: 'a' }, spec: members };
      await compare({ schema: { type: 'object', properties: { spec } }, object: asked });
    });
    await fc.assert(property, { numRuns: runs(600) });
  });

  test('what an update does not change is refused in the same cases', async () => {
    const given = root.chain((schema) =>
      fc.record({ schema: fc.constant(schema), object: object(schema), old: object(schema), prune: fc.constant(true) }),
    );
    await fc.assert(fc.asyncProperty(given, compare), { numRuns: runs(600) });
  });
});
