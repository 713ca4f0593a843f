import { describe, expect, test } from 'vitest';
import type { JsonSchema } from '../../src/apiserver/definition.ts';
import { compileSchema } from '../../src/apiserver/validation/object-schema.ts';
import { structuralFaults } from '../../src/apiserver/validation/structural-faults.ts';
import type { KubernetesObject } from '../../src/cache/object.ts';
import { atOnce } from '../../src/watch/fair-queue.ts';

const meta = { apiVersion: 'example.com/v1', kind: 'Order', metadata: { name: 'a' } };

/** What is said of a spec under rules; `old`: what it was. */
async function said(spec: JsonSchema, value: unknown, old?: unknown): Promise<string[]> {
  const check = await compileSchema({ type: 'object', properties: { spec } });
  const before = old === undefined ? undefined : ({ ...meta, spec: old } as KubernetesObject);
  const causes = atOnce(check({ ...meta, spec: value } as KubernetesObject, before));
  return causes.map(({ field, reason, message }) => `${field} ${reason}: ${message}`);
}

const rules = (...given: (string | object)[]): JsonSchema => ({
  'x-kubernetes-validations': given.map((rule) => (typeof rule === 'string' ? { rule } : rule)),
});
const any = (rule: string): JsonSchema => ({ 'x-kubernetes-preserve-unknown-fields': true, ...rules(rule) });

describe('rules', () => {
  test.each<[string, unknown]>([
    ['self.min <= self.max', { min: 1, max: 2 }],
    ['self.all(x, self.exists_one(y, x == y))', ['a', 'b']],
    ['has(self.a) != has(self.b)', { a: 1 }],
    ['self.map(x, x.name).isSorted()', [{ name: 'a' }, { name: 'b' }]],
    ["self.matches('^(a+)+$')", 'aaaa'],
    ["self.find('[0-9]+') == '12' && self.findAll('[0-9]').size() == 2", 'a12b'],
    ['self.sum() == 6 && self.min() == 1 && self.max() == 3 && self.indexOf(3) == 2', [1, 2, 3]],
    [
      "quantity(self).isGreaterThan(quantity('1Mi')) && isQuantity(self) && quantity('500m').add(quantity('0.5')).asInteger() == 1",
      '1.5Gi',
    ],
    [
      "isURL(self) && url(self).getHost() == 'example.com:8080' && url(self).getScheme() == 'https'",
      'https://example.com:8080/a?b=c',
    ],
    ["isIP(self) && ip(self).family() == 4 && isCIDR('10.0.0.0/8')", '10.0.0.1'],
    ["duration(self) < duration('1h')", '30m'],
    ["self.?a.orValue('z') == 'z'", {}],
    ['cel.bind(n, self.size(), n > 0 && n < 3)', [1]],
    [
      "self.charAt(0) == 'a' && self.replace('a', 'b') == 'bbc' && self.split('b').size() == 2 && self.lowerAscii() == self",
      'abc',
    ],
    ['type(self.a) == int && type(self.b) == double && self.a < self.b', { a: 1, b: 1.5 }],
  ])('%s', async (rule, value) => {
    expect(await said(any(rule), value)).toEqual([]);
    expect(await said(any(`!(${rule})`), value)).toHaveLength(1);
  });

  test('say what is wrong, where, and why', async () => {
    const schema = {
      type: 'object',
      properties: {
        min: { type: 'integer', ...rules({ rule: 'self > 0', reason: 'FieldValueForbidden' }) },
        max: { type: 'integer' },
      },
      ...rules(
        { rule: 'self.min <= self.max', fieldPath: '.max', message: 'max is too small' },
        { rule: 'self.max < 10', messageExpression: "'max is ' + string(self.max)" },
        'self.max != 11',
      ),
    };
    expect(await said(schema, { min: 12, max: 11 })).toEqual([
      'spec.max FieldValueInvalid: Invalid value: max is too small',
      'spec FieldValueInvalid: Invalid value: max is 11',
      'spec FieldValueInvalid: Invalid value: failed rule: self.max != 11',
    ]);
    expect(await said(schema, { min: 0, max: 1 })).toEqual(['spec.min FieldValueForbidden: Forbidden: failed rule: self > 0']);
    expect(await said(schema, { min: 1 })).toEqual([
      'spec FieldValueInvalid: Invalid value: "object": no such key: max evaluating rule: max is too small',
      'spec FieldValueInvalid: Invalid value: "object": no such key: max evaluating rule: self.max < 10',
      'spec FieldValueInvalid: Invalid value: "object": no such key: max evaluating rule: self.max != 11',
    ]);
  });

  test('of transitions are asked on updates, of what can be told from others', async () => {
    const fixed = { type: 'string', ...rules({ rule: 'self == oldSelf', message: 'is immutable' }) };
    const map = { 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['k'] };
    const items = { type: 'object', properties: { k: { type: 'string' }, v: fixed } };
    expect(await said(fixed, 'b')).toEqual([]);
    expect(await said(fixed, 'b', 'a')).toEqual(['spec FieldValueInvalid: Invalid value: "b": is immutable']);
    expect(
      await said(
        { type: 'array', items, ...map },
        [
          { k: 'x', v: 'n' },
          { k: 'a', v: '2' },
        ],
        [{ k: 'a', v: '1' }],
      ),
    ).toEqual(['spec[1].v FieldValueInvalid: Invalid value: "2": is immutable']);
    const optional = { type: 'string', ...rules({ rule: "oldSelf.hasValue() || self == 'new'", optionalOldSelf: true }) };
    expect([await said(optional, 'new'), await said(optional, 'x', 'y')]).toEqual([[], []]);
    expect(await said(optional, 'x')).toHaveLength(1);
  });

  test('are not asked again of what is as it was', async () => {
    const schema = { type: 'object', properties: { a: { type: 'string', ...rules("self != 'x'") }, b: { type: 'string' } } };
    expect(await said(schema, { a: 'x', b: '2' }, { a: 'x', b: '1' })).toEqual([]);
    expect(await said(schema, { a: 'x' }, { a: 'y' })).toHaveLength(1);
  });

  test('are not asked of an object of another form', async () => {
    const schema = { type: 'object', properties: { a: { type: 'string' } }, ...rules('self.a.size() > 1') };
    const [first, second] = await said(schema, { a: 1 });
    expect(first).toMatch(/^spec\.a FieldValueTypeInvalid/);
    expect(second).toMatch(/^<nil> FieldValueInvalid: Invalid value: null: some validation rules were not checked/);
  });

  test.each<[string, unknown]>([
    ['self.all(x, self.all(y, self.all(z, x + y + z >= 0)))', Array.from({ length: 300 }, (_, at) => at)],
    ['self.all(x, x in self)', Array.from({ length: 20_000 }, (_, at) => at)],
    ["self.split('').all(c, !self.contains(c + c + 'y'))", 'xz'.repeat(100_000)],
    ['self.map(x, self).map(x, self == x).size() > 0', Array.from({ length: 3_000 }, (_, at) => ({ at }))],
    ['self.sample.matches(self.regex)', { sample: 'a', regex: 'a{1000}'.repeat(500) }],
    ["self.all(x, x.find('((a{30}){33})') == '')", Array.from({ length: 12_000 }, () => 'a'.repeat(200))],
    ["self.findAll('a.*b|a').size() > 0", 'a'.repeat(20_000)],
    ['self.list.join(self.by).size() > 0', { list: Array.from({ length: 6_000 }, () => ''), by: 'x'.repeat(60_000) }],
    ["self.replace('a', self).size() > 0", 'a'.repeat(15_000)],
  ])('cost no more than they may: %s', async (rule, value) => {
    const [first] = await said(any(rule), value);
    expect(first).toMatch(/call cost exceeds limit for rule/);
  });

  test('have no patterns beyond a length, and keep those of ordinary ones', async () => {
    const schema = any('self.sample.matches(self.regex)');
    const [first] = await said(schema, { sample: 'a', regex: 'a'.repeat(4_097) });
    expect(first).toContain('a pattern of 4097 characters: expected at most 4096');
    const host = "'^[a-z0-9]{1,63}([.][a-z0-9]{1,63}){0,9}$'";
    const names = Array.from({ length: 100 }, (_, at) => `name${at}.example.com`);
    for (let round = 0; round < 3; round++) expect(await said(any(`self.all(x, x.matches(${host}))`), names)).toEqual([]);
    expect(await said(any("self.join(', ').size() == 4 && self.join() == 'ab'"), ['a', 'b'])).toEqual([]);
  });

  test('name members as Kubernetes escapes them', async () => {
    const text = { type: 'string' };
    const schema = { type: 'object', properties: { 'a-b': text, namespace: text, 'c.d/e': text, f__g: text } };
    const rule =
      "self.a__dash__b == 'x' && self.__namespace__ == 'x' && self.c__dot__d__slash__e == 'x' && self.f__underscores__g == 'x'";
    expect(await said({ ...schema, ...rules(rule) }, { 'a-b': 'x', namespace: 'x', 'c.d/e': 'x', f__g: 'x' })).toEqual([]);
  });

  test.each(['self.a +', 'self.foo()', '1', 'unknown == 1'])('that are none are refused in a definition: %s', async (rule) => {
    const schema = { type: 'object', properties: { spec: { type: 'object', ...rules(rule) } } };
    await expect(compileSchema(schema)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
    expect(await structuralFaults(schema, { path: 'schema' })).toMatchObject([
      { field: 'schema.properties[spec].x-kubernetes-validations[0].rule', reason: 'FieldValueInvalid' },
    ]);
  });
});
