// Hostile definitions, and objects of those that are taken: never a 500, always a Status, and nothing for the program to read.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { runs } from '../runs.ts';
import { CRDS, crdOf, crdRig } from './crd-rig.ts';

const many = <T>(count: number, make: (at: number) => T): T[] => Array.from({ length: count }, (_, at) => make(at));
const nested = (depth: number, wrap: (inner: object) => object, inner: object = {}): object =>
  many(depth, () => wrap).reduce((made, each) => each(made), inner);
const within = (name: string, value: unknown): object => ({
  type: 'object',
  properties: { a: { type: 'string' }, b: value },
  [name]: value,
});
const TEXT = { type: 'string' };
const rule = (text: string): object => ({
  type: 'object',
  properties: { a: TEXT, l: { type: 'array', items: TEXT } },
  'x-kubernetes-validations': [{ rule: text, messageExpression: text }],
});

/** Schemas that are large, deep, ambiguous or senseless. */
const HOSTILE: readonly unknown[] = [
  { type: 'object', properties: Object.fromEntries(many(2_000, (at) => [`p${at}`, { ...TEXT, pattern: `^a{${at % 90}}$` }])) },
  nested(100, (inner) => ({ type: 'object', properties: { a: inner } })),
  nested(60, (inner) => ({ type: 'array', items: inner })),
  nested(5, (inner) => ({ allOf: [inner, inner], anyOf: [inner, inner] })),
  { type: 'object', not: nested(40, (inner) => ({ not: inner })) },
  { type: 'object', properties: { a: { ...TEXT, enum: many(20_000, String) } } },
  { type: 'object', required: many(20_000, String) },
  ...[
    '(a+)+$',
    '(?:a{1,1000}){1,1000}',
    '\\p{L}{1000}',
    '['.repeat(5_000),
    '(?=a)',
    '(a|a)*b',
    'x'.repeat(100_000),
    '\u0000',
  ].map((pattern) => ({ type: 'object', properties: { a: { ...TEXT, pattern } } })),
  ...['__proto__', 'constructor', 'toString', 'hasOwnProperty', '', '\u0000', 'a.b', '$ref'].map((name) =>
    JSON.parse(`{"type":"object","properties":{${JSON.stringify(name)}:{"type":"string","default":"x"}}}`),
  ),
  ...['default', 'enum', 'items', 'additionalProperties', 'x-kubernetes-list-map-keys', 'x-kubernetes-validations'].flatMap(
    (name) =>
      [null, 0, '', [], [null], {}, nested(90, (inner) => ({ a: inner })), many(5_000, () => null)].map((value) =>
        within(name, value),
      ),
  ),
  ...[
    'self.a == self.a'.concat(' && self.a == self.a'.repeat(3_000)),
    '('.repeat(10_000),
    '!'.repeat(10_000).concat('true'),
    '['.repeat(5_000).concat(']'.repeat(5_000)),
    `self${'.a'.repeat(5_000)} == 1`,
    'self.l.all(a, self.l.all(b, self.l.all(c, self.l.all(d, self.l.all(e, a == b || c == d || e == a)))))',
    'self.l.map(a, self.l.map(b, self.l.map(c, self.l))).size() == 1',
    `"${'x'.repeat(100_000)}" == self.a`,
    "self.a.matches('(a+)+$') || self.a.matches(self.a)",
    "self.a.replace('', self.a).replace('', self.a).replace('', self.a).size() > 0",
    'has(self.__proto__) && self.constructor == self.toString',
    '{"__proto__": self}.__proto__ == self',
    '\u0000',
  ].map(rule),
];

const KEYWORDS = [
  ...[
    'type',
    'format',
    'properties',
    'items',
    'additionalProperties',
    'allOf',
    'anyOf',
    'oneOf',
    'not',
    'default',
    'enum',
    'pattern',
  ],
  ...['nullable', 'required', 'maxLength', 'multipleOf', 'uniqueItems', '$ref', 'definitions', 'x-kubernetes-int-or-string'],
  ...[
    'x-kubernetes-preserve-unknown-fields',
    'x-kubernetes-list-type',
    'x-kubernetes-map-type',
    'x-kubernetes-embedded-resource',
  ],
];
const { schema } = fc.letrec<{ schema: unknown; value: unknown }>((tie) => ({
  schema: fc.oneof(
    { maxDepth: 4 },
    { weight: 1, arbitrary: fc.constantFrom(...HOSTILE) },
    { weight: 3, arbitrary: fc.dictionary(fc.constantFrom(...KEYWORDS), tie('value'), { maxKeys: 5 }) },
  ),
  value: fc.oneof(
    { maxDepth: 4 },
    fc.constantFrom<unknown>('string', 'object', 'array', 'integer', true, false, 0, -1, 1e300, null, 'x'),
    tie('schema'),
    fc.dictionary(fc.constantFrom('a', 'b', '__proto__', 'metadata', 'kind'), tie('schema'), { maxKeys: 3 }),
    fc.array(tie('schema'), { maxLength: 3 }),
  ),
}));

/** Other parts of a definition. */
const part = fc.constantFrom<object>(
  {},
  { additionalPrinterColumns: many(2_000, (at) => ({ name: `c${at}`, type: 'string', jsonPath: '.spec.a' })) },
  ...['', '..', '.a[', '.a[?(@.b', `.a${'[*]'.repeat(3_000)}`, '{.a}', '.__proto__', '.a[-1:99999999999:0]'].map((jsonPath) => ({
    additionalPrinterColumns: [{ name: 'c', type: 'string', jsonPath }],
    selectableFields: [{ jsonPath }],
    subresources: {
      status: {},
      scale: { specReplicasPath: jsonPath, statusReplicasPath: jsonPath, labelSelectorPath: jsonPath },
    },
  })),
);
const OBJECTS: readonly object[] = [
  {},
  ...[null, 'x', 'a'.repeat(50_000), many(3_000, () => 'a'), nested(100, (inner) => ({ a: inner }))].map((a) => ({
    a,
    b: a,
    l: a,
  })),
  JSON.parse('{"__proto__":{"a":1},"constructor":{"prototype":1},"spec":{"__proto__":null},"status":[]}'),
];

test('hostile definitions are refused or served', async () => {
  const errors: unknown[] = [];
  const { server, call, read, gone } = crdRig({ onError: (error) => errors.push(error) });
  let count = 0;
  const codes = new Set<number>();
  const asked = async (method: string, path: string, body?: unknown): Promise<number> => {
    const { code, body: answer, text } = await call(method, path, body);
    expect(code, text.slice(0, 500)).toBeLessThan(500);
    if (code >= 400) expect(answer).toMatchObject({ kind: 'Status', code });
    codes.add(code);
    return code;
  };
  const tried = async ([made, more]: readonly [unknown, object]): Promise<void> => {
    const plural = `h${count++}`;
    const crd = crdOf({}, { schema: { openAPIV3Schema: made }, ...more }, plural, `H${count}`) as { metadata: object };
    if ((await asked('POST', CRDS, crd)) !== 201) return;
    const name = `${plural}.example.com`;
    await expect.poll(async () => (await read(name)).body.status?.conditions?.length ?? 0).toBeGreaterThan(0);
    const objects = `/apis/example.com/v1/namespaces/default/${plural}`;
    for (const [at, object] of OBJECTS.entries()) {
      await asked('POST', objects, { metadata: { name: `a${at}` }, spec: object, ...object });
      await asked('PATCH', `${objects}/a${at}`, object);
    }
    await asked('GET', objects);
    await asked('GET', `/openapi/v3/apis/example.com/v1`);
    await asked('DELETE', `${CRDS}/${name}`);
    await gone(name);
  };
  for (const each of HOSTILE) await tried([{ type: 'object', properties: { spec: each } }, {}]);
  await fc.assert(fc.asyncProperty(fc.tuple(schema, part), tried), { numRuns: runs(300) });
  expect([...codes].sort()).toEqual(expect.arrayContaining([200, 201, 400, 422]));
  expect(errors).toEqual([]);
  await server.shutdown();
}, 600_000);
