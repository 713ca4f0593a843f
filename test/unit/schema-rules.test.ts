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

const MANY_KEYS = Object.fromEntries(Array.from({ length: 5_000 }, (_, at) => [`k${at}`, at]));

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
      "quantity(self).isGreaterThan(quantity('1Mi')) && isQuantity(self) && quantity('500m').add(quantity('0.5')) == quantity('1')",
      '1.5Gi',
    ],
    [
      "isURL(self) && url(self).getHost() == 'example.com:8080' && url(self).getScheme() == 'https'",
      'https://example.com:8080/a?b=c',
    ],
    ["isIP(self) && ip(self).family() == 4 && isCIDR('10.0.0.0/8')", '10.0.0.1'],
    ["duration(self) < duration('1h')", '30m'],
    ["matches(self, '^a+$') && !matches(self, 'b')", 'aaa'],
    ['self.indexOf([2, 3]) == 1 && self.lastIndexOf([1]) == 2 && self.indexOf([9]) == -1', [[1], [2, 3], [1]]],
    ['[dyn(1), dyn(2)].indexOf(dyn(2.0)) == 1 && [{"a": 1}].indexOf({"a": 1}) == 0 && [self].lastIndexOf(self) == 0', 'x'],
    ["[duration('1h')].indexOf(duration(self)) == 0 && [quantity('1')].indexOf(quantity('1000m')) == 0", '60m'],
    ["self.?a.orValue('z') == 'z'", {}],
    ['has(self[0].a) && !has(self[1].a) && !has(self[?2].a) && self.all(x, has(self[0].a))', [{ a: 1 }, {}]],
    ['has(self.filter(x, x.n == 2)[0].a) && !has((true ? self[0] : self[1]).a)', [{ n: 1 }, { n: 2, a: 1 }]],
    ["has({'a': self}.a) && !has({'a': self}.b) && has(optional.of({'a': 1}).a)", 1],
    [
      "timestamp(self) != null && null != duration('1h') && ip('::1') != null && !(quantity('1') == null)",
      '2026-01-02T03:04:05Z',
    ],
    ['self.?a != null && optional.none() != null && format.dns1123Label().validate(self.b) != null', { b: 'B' }],
    ['self.?a == optional.none() && self.?b == optional.of(1) && self.?b != optional.of(2) && self.?b != self.?a', { b: 1 }],
    ['[optional.of(1), optional.of(self), optional.none(), optional.of(1)].distinct().size() == 3', 2],
    ['cel.bind(n, self.size(), n > 0 && n < 3)', [1]],
    [
      "self.charAt(0) == 'a' && self.replace('a', 'b') == 'bbc' && self.split('b').size() == 2 && self.lowerAscii() == self",
      'abc',
    ],
    ['type(self.a) == int && type(self.b) == double && self.a < self.b', { a: 1, b: 1.5 }],
    ["self.replace('', '-') == '-a-b-' && self.replace('b', 'c', 0) == self && 'aaa'.replace('a', 'b', 2) == 'bba'", 'ab'],
    ['sets.contains(self, [2, 1.0]) && sets.equivalent(self, [3, 2, 1, 1]) && !sets.intersects(self, [4])', [1, 2, 3]],
    ['sets.contains(self, [{"b": [1], "a": "x"}]) && !sets.contains(self, [{"a": "x"}])', [{ a: 'x', b: [1] }]],
    [
      'self.slice(1, 3) == [1, 2] && self.sort() == [1, 2, 3] && self.reverse() == [2, 1, 3] && self.distinct() == self',
      [3, 1, 2],
    ],
    [
      'self.flatten() == [1, 2] && [1, 1.0, 2].distinct() == [1, 2] && lists.range(2) == [0, 1] && self.last().value() == [2]',
      [[1], [2]],
    ],
    [
      "self.map(x, x.name).max() == 'b' && self.map(x, x.name).sort() == ['a', 'b'] && self.map(x, x.n).sum() == 3",
      [
        { n: 1, name: 'b' },
        { n: 2, name: 'a' },
      ],
    ],
    ['self.sortBy(x, -x.n)[0].n == 2 && optional.unwrap([optional.of(1), optional.none()]) == [1]', [{ n: 1 }, { n: 2 }]],
    ["'%s %d %x %X %o %b'.format([self, 5, 26, 'az', 8, true]) == 'abc 5 1a 617A 10 1' && '%%'.format([]) == '%'", 'abc'],
    ["'%.2f %.0f %.0f'.format([self, 0.5, 1.5]) == '1,234,567.50 0 2' && '%s'.format([self]) == '1.2345675e+06'", 1234567.5],
    ['\'%s\'.format([self]) == \'{"a":[1, 1.500000, "x", null]}\'', { a: [1, 1.5, 'x', null] }],
    ['strings.quote(self) == "\\"a\\\\n\\\\\\"\\""', 'a\n"'],
    [
      "cidr(self).containsIP('10.1.2.3') && !cidr(self).containsIP(ip('11.0.0.1')) && cidr(self).prefixLength() == 8",
      '10.9.0.0/8',
    ],
    [
      "cidr(self).containsCIDR('10.1.0.0/16') && !cidr(self).containsCIDR(cidr('10.0.0.0/7')) && !isCIDR('::ffff:1.2.3.4/96')",
      '10.9.0.0/8',
    ],
    ["string(cidr(self).masked()) == '2001:db8::/32' && cidr(self).ip() == ip('2001:db8:0::1')", '2001:DB8::1/32'],
    [
      "string(ip(self)) == '2001:db8::1:0:0:1' && !ip.isCanonical(self) && ip('fe80::1').isLinkLocalUnicast()",
      '2001:0db8:0:0:1:0:0:1',
    ],
    [
      "ip(self).isLoopback() && !ip(self).isGlobalUnicast() && ip('8.8.8.8').isGlobalUnicast() && ip('::').isUnspecified()",
      '127.0.0.1',
    ],
    [
      "semver(self).isLessThan(semver('1.2.3')) && semver(self).minor() == 2 && semver(self) == semver(self + '+x')",
      '1.2.3-alpha.9',
    ],
    ["semver(self).compareTo(semver('1.2.3-alpha.10')) == -1 && isSemver('v1.2', true) && !isSemver('v1.2')", '1.2.3-alpha.9'],
    [
      "!format.dns1123Label().validate(self).hasValue() && format.dns1123Label().validate('a.b').value() == ['must not contain dots']",
      'a',
    ],
    [
      "format.named('uuid').value().validate(self).value() == ['does not match the UUID format'] && !format.named('x').hasValue()",
      'a',
    ],
    ['optional.ofNonZeroValue(self.a).hasValue() && !optional.ofNonZeroValue(self.b).hasValue()', { a: 'x', b: '' }],
    [
      'self.?a.optMap(v, v + 1).value() == 2 && !self.?b.optMap(v, v + 1).hasValue() && self.?a.optFlatMap(v, self.?b).orValue(7) == 7',
      { a: 1 },
    ],
    [
      'self.all(i, v, v == i + 1) && self.exists(i, v, i == 2) && self.existsOne(i, v, v > 2) && !self.exists_one(i, v, v > 1)',
      [1, 2, 3],
    ],
    [
      "self.all(k, v, k < v) && self.exists(k, v, v == 'y') && self.transformList(k, v, k + v).sort() == ['ax', 'by']",
      { a: 'x', b: 'y' },
    ],
    ['self.transformList(i, v, i != 1, v * 2) == [2, 6] && self.transformMap(i, v, v)[2] == 3', [1, 2, 3]],
    ["self.transformMap(k, v, v.size()) == {'a': 1} && self.transformMapEntry(k, v, {v: k}) == {'x': 'a'}", { a: 'x' }],
    ['self.transformList(i, v, self.transformList(j, w, i * w)) == [[0, 0], [1, 2]]', [1, 2]],
    ['self.exists(i, v, 1 / i == 1) && !self.all(i, v, 1 / i == 3)', [0, 0]],
    ["'__proto__' in self.transformMap(k, v, v)", JSON.parse('{"__proto__": 1}')],
    [
      "url('http://EXAMPLE.com:80/').getHost() == 'EXAMPLE.com:80' && url('http://EXAMPLE.com:80/').getPort() == '80' && url('HTTP://EXAMPLE.com').getScheme() == 'http'",
      'x',
    ],
    [
      "url('http://h').getEscapedPath() == '' && url('http://h/a/../b').getEscapedPath() == '/a/../b' && url('http://h/a\"b%41').getEscapedPath() == '/a%22bA' && url('http://h/[x]%41').getEscapedPath() == '/[x]%41'",
      'x',
    ],
    [
      "url('http://[2001:DB8::0]:1/').getHostname() == '2001:DB8::0' && url('http://[fe80::1%25en0]/').getHostname() == 'fe80::1%en0' && url('http://h%C3%A9/').getHost() == 'h\u00e9' && url('http://u:p@h:/').getHost() == 'h:'",
      'x',
    ],
    [
      "url('mailto:a@b.c').getEscapedPath() == '' && url('//h/x').getHost() == 'h' && url('///h/x').getEscapedPath() == '///h/x' && url('*').getEscapedPath() == '*' && isURL('//[::1')",
      'x',
    ],
    [
      "url('http://h/?a=%zz&b=1;2&c=d=e&c&&=f+g#h').getQuery() == {'c': ['d=e', ''], '': ['f g']} && url('/#f').getEscapedPath() == '/'",
      'x',
    ],
    [
      "url('HTTP://h/#a') == url('http://h/#a') && url('http://h/#a') != url('http://h/#b') && url('http://H/') != url('http://h/') && url('http://h:80/') != url('http://h/') && url('http://h/a b') == url('http://h/a%20b') && url('a:b') != url('a:c')",
      'x',
    ],
    [
      "quantity('1.5k').isInteger() && quantity('1Ti').isInteger() && quantity('999999999999999999').isInteger() && quantity('1500').sub(quantity('500')).isInteger() && quantity('5').sub(2).asInteger() == 3",
      'x',
    ],
    [
      "!quantity('1.0').isInteger() && !quantity('2000m').isInteger() && !quantity('1.5Ki').isInteger() && !quantity('1Pi').isInteger() && !quantity('1000000000000000000').isInteger() && !quantity('100E').isInteger() && !quantity('1.5').add(quantity('0.5')).isInteger()",
      'x',
    ],
    [
      "sign(quantity('-5')) == -1 && sign(quantity('0')) == 0 && sign(quantity('.')) == 0 && sign(quantity('0.0000000001')) == 1 && quantity('1.0000000001') == quantity('1.000000001') && quantity('-1.0000000001') == quantity('-1.000000001')",
      'x',
    ],
    [
      "!quantity('1').isLessThan(quantity('1')) && !quantity('1').isGreaterThan(quantity('1')) && quantity('1').compareTo(quantity('1001m')) == -1 && quantity('1').add(1) == quantity('2')",
      'x',
    ],
    [
      "'\u00e9a'.charAt(1) == 'a' && 'abc'.charAt(3) == '' && '\u00c0\u00c9z'.upperAscii() == '\u00c0\u00c9Z' && '\u00c0Z'.lowerAscii() == '\u00c0z' && '%f'.format([-0.0]) == '0.000000'",
      'x',
    ],
    [
      "[duration('1h'), duration('2h'), duration('1s')].sum() == duration('3h1s') && [1, 2].sum() == 3 && [0.5].sum() == 0.5",
      'x',
    ],
    ["'\\u2003 a b\\u0085'.trim() == 'a b' && '\\ufeffa'.trim() == '\\ufeffa' && ' '.trim() == ''", 'x'],
    ["url(self).getQuery()['x'] == ['1', '2'] && quantity('1').add(1) == quantity('2')", 'https://example.com/?x=1&x=2'],
  ])('%s', async (rule, value) => {
    expect(await said(any(rule), value)).toEqual([]);
    expect(await said(any(`!(${rule})`), value)).toHaveLength(1);
  });

  test.each([
    ["self.charAt(4) == ''", 'index out of range: 4'],
    ["self.charAt(-1) == ''", 'index out of range: -1'],
    ["quantity('1.5').asInteger() == 1", 'cannot convert value to integer'],
    ["url('//[::1').getHost() == ''", 'URL parse error during conversion from string: parse "//[::1": invalid URI for request'],
  ])('%s fails', async (rule, why) => {
    expect(await said({ type: 'string', ...rules(rule) }, 'abc')).toEqual([
      `spec FieldValueInvalid: Invalid value: "string": ${why} evaluating rule: ${rule}`,
    ]);
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
    expect(await said({ type: 'array', ...rules('self[1] == 1', 'has(self[-1].a)') }, [1])).toEqual([
      'spec FieldValueInvalid: Invalid value: "array": index out of bounds: 1 evaluating rule: self[1] == 1',
      'spec FieldValueInvalid: Invalid value: "array": index out of bounds: -1 evaluating rule: has(self[-1].a)',
    ]);
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
    ['cel.bind(a, [self.map(x, x)], cel.bind(b, [self], self.all(x, a == b)))', Array.from({ length: 3_000 }, (_, at) => at)],
    ['cel.bind(m, self.transformMap(i, v, v), self.all(x, m == m))', Array.from({ length: 3_000 }, (_, at) => at)],
    ['self.all(i, v, self.all(j, w, self.exists(k, x, v + w + x < 0) || true))', Array.from({ length: 300 }, (_, at) => at)],
    ['self.all(x, sets.contains(self, self))', Array.from({ length: 3_000 }, (_, at) => `${at}`)],
    ['lists.range(1000000000000).size() > 0', {}],
    ["self.all(x, '%s'.format([self]) != '')", Array.from({ length: 3_000 }, (_, at) => `${at}`)],
    ['self.all(x, self.sortBy(y, y).size() > 0)', Array.from({ length: 3_000 }, (_, at) => `${at}`)],
    ["lists.range(1000).all(x, !semver('1.2.3+' + self).isLessThan(semver('1.2.3')))", 'a'.repeat(20_000)],
    ['lists.range(1000).all(x, format.dns1123Label().validate(self).hasValue())', 'a'.repeat(20_000)],
    ['lists.range(1000).all(x, strings.quote(self).size() > 0)', 'a'.repeat(20_000)],
    ...[
      'contains(self.b)',
      'indexOf(self.b) > 0',
      'lastIndexOf(self.b) > 0',
      "replace(self.b, '') != ''",
      'split(self.b) != []',
    ].map((each): [string, unknown] => [
      `self.a.${each}`,
      { a: 'a'.repeat(200_000), b: `${'a'.repeat(50)}b${'a'.repeat(50_000)}` },
    ]),
    ['lists.range(9000).all(x, self.size() > 1)', MANY_KEYS],
    ['lists.range(9000).all(x, size(self) > 1)', MANY_KEYS],
    ['lists.range(9000).all(x, self.exists(y, true))', MANY_KEYS],
    ['lists.range(9000).all(x, self.exists(y, z, true))', MANY_KEYS],
    ["lists.range(9000).all(x, timestamp('2026-01-02T03:04:05Z').getHours('Europe/Berlin') == 4)", {}],
    ['lists.range(9000).exists(x, int(self) == 1)', 'x'],
    ['duration(self) == duration(self)', '1h'.repeat(250_000)],
    ['cel.bind(u, url(self), lists.range(1000).all(x, u.getQuery().size() > 0))', `http://x/?${'a&'.repeat(20_000)}`],
    ['lists.range(1000).all(x, self.charAt(19999) == "a")', 'a'.repeat(20_000)],
  ])('cost no more than they may: %s', async (rule, value) => {
    const [first] = await said(any(rule), value);
    expect(first).toMatch(/call cost exceeds limit for rule/);
  });

  test('see the values of a member that a URL has many times, in a moment', async () => {
    const rule = any('url(self).getQuery()["a"].size() == 50000 && url(self).getQuery()["b"] == ["1", "2"]');
    expect(await said(rule, `http://x/?b=1&${'a&'.repeat(50_000)}b=2`)).toEqual([]);
  });

  test('compare what is deep by its values, and keep few types of it', async () => {
    const deep = (value: unknown): unknown => [[[[[{ a: { b: { c: [value] } } }]]]]];
    const value = { one: deep(1), other: deep('x') };
    expect(await said(any('self.one == self.one && self.one != self.other'), value)).toEqual([]);
    // As many types as there are values would be kept for as long as the program runs.
    const [first] = await said(any('self.one < self.other'), value);
    expect(first).toContain('no such overload: dyn<list<list<list<list<dyn>>>>> < dyn<list<list<list<list<dyn>>>>>');
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

  test('tell as many causes as are read, and ask no more', async () => {
    const values = Array.from({ length: 5_000 }, (_, at) => at);
    expect(await said({ type: 'array', items: { type: 'integer', ...rules('self < 0') } }, values)).toHaveLength(101);
  });

  test('are compiled in pieces', async () => {
    let [turns, isDone] = [0, false];
    const turn = (): void => {
      turns++;
      if (!isDone) setImmediate(turn);
    };
    const items = { type: 'integer', ...rules(...Array.from({ length: 3_000 }, (_, at) => `self < ${at} || self > ${at}`)) };
    setImmediate(turn);
    await said({ type: 'array', items }, []);
    isDone = true;
    expect(turns).toBeGreaterThan(5);
  });

  test('name members as Kubernetes escapes them', async () => {
    const text = { type: 'string' };
    const schema = { type: 'object', properties: { 'a-b': text, namespace: text, 'c.d/e': text, f__g: text } };
    const rule =
      "self.a__dash__b == 'x' && self.__namespace__ == 'x' && self.c__dot__d__slash__e == 'x' && self.f__underscores__g == 'x'";
    expect(await said({ ...schema, ...rules(rule) }, { 'a-b': 'x', namespace: 'x', 'c.d/e': 'x', f__g: 'x' })).toEqual([]);
  });

  test('know a reserved word by itself, and the bytes of a text in base64', async () => {
    const spec = {
      type: 'object',
      properties: { namespace: { type: 'string' }, bytes: { type: 'string', format: 'byte' } },
      ...rules(
        "self.namespace == 'x' && self.__namespace__ == 'x' && has(self.namespace)",
        "self.bytes == b'abc' && self.bytes.size() == 3",
      ),
    };
    expect(await said(spec, { namespace: 'x', bytes: 'YWJj' })).toEqual([]);
    expect(await said(spec, { namespace: 'y', bytes: 'YWJk' })).toHaveLength(2);
  });

  test('read what was through an optional value', async () => {
    const rule = '!oldSelf.hasValue() || self.n >= oldSelf.value().n';
    const spec = { type: 'object', properties: { n: { type: 'integer' } }, ...rules({ rule, optionalOldSelf: true }) };
    expect(await said(spec, { n: 1 })).toEqual([]);
    expect([await said(spec, { n: 2 }, { n: 1 }), await said(spec, { n: 1 }, { n: 2 })]).toMatchObject([[], { length: 1 }]);
  });

  test.each([
    ['self.a +', 'Unexpected token'],
    ['self.foo()', 'found no matching overload'],
    ['1', 'cel expression must evaluate to a bool'],
    ['unknown == 1', 'Unknown variable'],
    [`[${Array(5).fill(`[${'1,'.repeat(900)}1]`)}].size() > 0`, 'Exceeded maxAstNodes \\(4096\\)'],
  ])('that are none are refused in a definition: %#', async (rule, why) => {
    const schema = { type: 'object', properties: { spec: { type: 'object', ...rules(rule) } } };
    const message = expect.stringMatching(`^schema: x-kubernetes-validations: .*${why}`);
    await expect(compileSchema(schema)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT', message, cause: expect.any(Error) });
    expect(await structuralFaults(schema, { path: 'schema' })).toMatchObject([
      { field: 'schema.properties[spec].x-kubernetes-validations[0].rule', reason: 'FieldValueInvalid' },
    ]);
  });
});

/** What a kube-apiserver 1.37 answered to a definition with such a rule. */
describe('rules of a definition', () => {
  const text = { type: 'string' };
  const list = (items: JsonSchema): JsonSchema => ({ type: 'array', items });
  const map = (additionalProperties: JsonSchema): JsonSchema => ({ type: 'object', additionalProperties });
  const port = { type: 'object', properties: { name: text, port: { type: 'integer' } } };
  const PROPERTIES = {
    ...{ n: { type: 'integer' }, d: { type: 'number' }, s: text, b: { type: 'boolean' }, e: { ...text, enum: ['A', 'B'] } },
    ...{ t: { ...text, format: 'date-time' }, dur: { ...text, format: 'duration' }, bytes: { ...text, format: 'byte' } },
    either: { 'x-kubernetes-int-or-string': true },
    open: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
    bare: { 'x-kubernetes-preserve-unknown-fields': true },
    o: { type: 'object', properties: { x: text, y: { type: 'integer' } } },
    ...{ m: map(text), mo: map(port), l: list(text), ln: list({ type: 'integer' }), ports: list(port), namespace: text },
    embedded: { type: 'object', 'x-kubernetes-embedded-resource': true, 'x-kubernetes-preserve-unknown-fields': true },
  };
  const faults = async (spec: JsonSchema): Promise<string[]> => {
    const found = await structuralFaults({ type: 'object', properties: { spec } }, { path: 'schema' });
    return found.map(({ field, reason, message }) => {
      const told = message.replace(/^Invalid value: \{"Rule":.*?"OptionalOldSelf":(?:null|true|false)\}: /, '');
      const where = field.replace('schema.properties[spec]', '').replace('.x-kubernetes-validations[0]', '');
      return `${where}${reason === 'FieldValueInvalid' ? '' : ` ${reason}`}: ${told.split('\n')[0]}`;
    });
  };
  const refusals = (...given: (string | object)[]): Promise<string[]> =>
    faults({ type: 'object', properties: PROPERTIES, ...rules(...given) });

  test.each([
    ...[
      'self == oldSelf',
      'self.o == oldSelf.o',
      'self.ports == oldSelf.ports',
      'self.l == []',
      'self.m == {}',
      'self.o == null',
    ],
    ...['has(self.ports[0].name)', 'has(dyn(self.o).nope)', 'self.t == null', 'null != self.dur', "ip('::1') == null"],
    ...['self.?l == null', 'self.?l == optional.none()', 'self.?n == optional.of(1)'],
    ...['self.o in [self.o]', 'has(self.o) && has(self.o.x)', "self.ports.all(p, has(p.port) && p.port > 0 || p.name == 'a')"],
    ...['self.ports.all(p, self.ports.exists_one(q, q.name == p.name))', 'oldSelf.ports.all(p, p in self.ports)'],
    ...['self.ports.map(p, p.port).sum() < 100', 'self.ln.max() < 3 && self.ln.min() > self.n', "self.l.join(',') == 'a'"],
    ...["self.either == 1 || self.either == '50%'", "type(self.either) == string && self.either.endsWith('%')"],
    ...["self.dur < duration('1h')", 'self.t.getFullYear() > 2000', "self.bytes == b'abc'", 'self.d > 1 && self.n > 1.5'],
    ...[
      "self.?o.?x.orValue('') == 'a'",
      'self.m.all(k, self.m[k].size() < 3)',
      "self.mo['a'].port == 1",
      'self.namespace == self.s',
    ],
    ...['sets.contains(self.l, self.l)', '"%s %d".format([self.s, self.n]) == "a"', 'cidr(self.s).prefixLength() == 8'],
    ...['isSemver(self.s)', 'self.?n.optMap(v, v > 0).orValue(true)', 'self.l.transformList(i, v, v) == self.l'],
    ...['self.l.all(i, v, v != "" && i < 9)', 'self.ports.transformMap(i, p, p.port)[0] == 1', 'self.m.all(k, v, k == v)'],
    ...['!format.dns1123Label().validate(self.s).hasValue()', 'self.ports.sortBy(p, p.port)[0].name == "a"'],
    ...['self.embedded.metadata.name == self.embedded.kind', "dyn(self.n) == 'a'", 'sign(quantity(string(self.n))) == 1'],
  ])('that can hold are taken: %s', async (rule) => {
    expect(await refusals(rule)).toEqual([]);
  });

  test.each([
    ['self.foo == 1', "1:5: undefined field 'foo'"],
    ['self.o.nope == "a"', "1:7: undefined field 'nope'"],
    ['self.open.a == 1', "1:10: undefined field 'a'"],
    ['has(self.bare)', "1:4: undefined field 'bare'"],
    ['self.?nope.hasValue()', "1:5: undefined field 'nope'"],
    ['self.ports.all(p, p.nope == 1)', "1:20: undefined field 'nope'"],
    ['self.mo["a"].w == 1', "1:13: undefined field 'w'"],
    ['self.embedded.spec == 1', "1:14: undefined field 'spec'"],
    ['oldSelf.foo == 1', "1:8: undefined field 'foo'"],
    ['self.n == "a"', "1:8: found no matching overload for '_==_' applied to '(int, string)'"],
    ['self.d + 1 > 2.0', "1:8: found no matching overload for '_+_' applied to '(double, int)'"],
    ['self.s in [1,2]', "1:8: found no matching overload for '@in' applied to '(string, list(int))'"],
    ['!self.n', "1:1: found no matching overload for '!_' applied to '(int)'"],
    ['self.b ? 1 : "a"', "1:8: found no matching overload for '_?_:_' applied to '(bool, int, string)'"],
    ['self.t == "2020"', "1:8: found no matching overload for '_==_' applied to '(timestamp, string)'"],
    ['self.l["a"] == "a"', "1:7: found no matching overload for '_[_]' applied to '(list(string), string)'"],
    ['self.m[1] == "x"', "1:7: found no matching overload for '_[_]' applied to '(map(string, string), int)'"],
    ['self.o["x"] == "a"', "1:7: found no matching overload for '_[_]' applied to '(selfType.o, string)'"],
    ['self.n.size() == 1', "1:12: found no matching overload for 'size' applied to 'int.()'"],
    ['size(self.n) == 1', "1:5: found no matching overload for 'size' applied to '(int)'"],
    ['self.l.sum() > 1', "1:11: found no matching overload for 'sum' applied to 'list(string).()'"],
    ['self.b && self.n', "1:15: expected type 'bool' but found 'int'"],
    ['self.s.nope', "1:7: type 'string' does not support field selection"],
    ['self.s.foo()', "1:11: undeclared reference to 'foo' (in container '')"],
    ['size() == 0', "1:5: found no matching overload for 'size' applied to '()'"],
    ['self.s.startsWith("a", "b")', "1:18: found no matching overload for 'startsWith' applied to 'string.(string, string)'"],
    ['startsWith(self.s, "a")', "1:11: found no matching overload for 'startsWith' applied to '(string, string)'"],
    ['lists.range() == []', "1:12: found no matching overload for 'lists.range' applied to '()'"],
    ['optional.of() == optional.none()', "1:12: found no matching overload for 'optional.of' applied to '()'"],
    ['matchesRe2() == 1', "1:11: undeclared reference to 'matchesRe2' (in container '')"],
    ['self.l.sortBy() == []', "1:14: undeclared reference to 'sortBy' (in container '')"],
    ['unknown == 1', "1:1: undeclared reference to 'unknown' (in container '')"],
    ['has(self)', '1:5: invalid argument to has() macro'],
    ['has(self.ports[0])', '1:15: invalid argument to has() macro'],
    ['has(self.l[0].x)', "1:4: type 'string' does not support field selection"],
    ['has(self.ports[0].nope)', "1:4: undefined field 'nope'"],
    ['has(self.nope[0].x)', "1:9: undefined field 'nope'"],
    ['has(unknown[0].x)', "1:5: undeclared reference to 'unknown' (in container '')"],
    ['self.l == null', "1:8: found no matching overload for '_==_' applied to '(list(string), null)'"],
    ['self.bytes == null', "1:12: found no matching overload for '_==_' applied to '(bytes, null)'"],
    [
      'self.?n == optional.of("a")',
      "1:9: found no matching overload for '_==_' applied to '(optional_type(int), optional_type(string))'",
    ],
    ['self.n.all(x, true)', "1:5: expression of type 'int' cannot be range of a comprehension (must be list, map, or dynamic)"],
    ['self.s.matches("(")', '1:16: invalid matches argument'],
    ['cidr(self.n)', "1:5: found no matching overload for 'cidr' applied to '(int)'"],
    [
      'sets.contains(self.l, self.ln)',
      "1:14: found no matching overload for 'sets.contains' applied to '(list(string), list(int))'",
    ],
    [
      'format.dns1123Label().validate(self.n).hasValue()',
      "1:31: found no matching overload for 'validate' applied to 'kubernetes.NamedFormat.(int)'",
    ],
    ['sets.nope(self.l)', "1:1: undeclared reference to 'sets' (in container '')"],
    [
      '"%d".format([self.s]) == ""',
      '1:18: error during formatting: decimal clause can only be used on integers, was given string',
    ],
    [
      '"%s".format([[self.o]]) == ""',
      '1:19: error during formatting: string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps, was given selfType.o',
    ],
    ['"%d %d".format([1]) == ""', '1:15: index 1 out of range'],
    ['"%d".format([1, 2]) == ""', '1:12: too many arguments supplied to string.format (expected 1, got 2)'],
    ['"%q".format([1]) == ""', '1:12: could not parse formatting clause: unrecognized formatting clause "q"'],
    [
      'semver("1.2.3").isLessThan("1.2.3")',
      "1:27: found no matching overload for 'isLessThan' applied to 'kubernetes.Semver.(string)'",
    ],
    ['self.l.all(i, v, v)', "1:18: expected type 'bool' but found 'string'"],
    ['self.l.existsOne(i, v, v)', "1:17: found no matching overload for '_?_:_' applied to '(string, int, int)'"],
    [
      'self.l.transformList(i, v, i, v) == []',
      "1:21: found no matching overload for '_?_:_' applied to '(int, list(string), list(string))'",
    ],
    [
      'self.l.transformMapEntry(i, v, v) == {}',
      "1:25: found no matching overload for 'cel.@mapInsert' applied to '(map(dyn, dyn), string)'",
    ],
    ['self.l.all(i, i, true)', '1:15: duplicate variable name: i'],
    ['self.l.all(1, v, true)', '1:12: argument must be a simple name'],
    [
      'self.n.all(i, v, true)',
      "1:5: expression of type 'int' cannot be range of a comprehension (must be list, map, or dynamic)",
    ],
    ['self.ports.all(i, v, v.nope == 1)', "1:23: undefined field 'nope'"],
    ['self.l.optMap(v, v).hasValue()', "1:14: found no matching overload for 'hasValue' applied to 'list(string).()'"],
    ['self.?n.optMap(1, 2).hasValue()', '1:16: optMap() variable name must be a simple identifier'],
    [
      'self.?o.optFlatMap(v, v.x).orValue("") == "a"',
      "1:19: found no matching overload for '_?_:_' applied to '(bool, string, optional_type(dyn))'",
    ],
    [
      'self.ports.sortBy(p, p).size() == 2',
      "1:18: found no matching overload for '@sortByAssociatedKeys' applied to 'list(selfType.ports.@idx).(list(selfType.ports.@idx))'",
    ],
  ])('that could only fail are refused: %s', async (rule, why) => {
    expect(await refusals(rule)).toEqual([`.rule: compilation failed: ERROR: <input>:${why}`]);
  });

  test.each([
    ['[?self.?s, "a"] == ["a"]', 'an optional item or entry'],
    ['{"b": 1, ?"a": self.?n}.size() == 1', 'an optional item or entry'],
    ['type(ip(self.s)) == net.IP', 'net.IP'],
    ['type(quantity(self.s)) == kubernetes.Quantity', 'kubernetes.Quantity'],
    ['self.d > .5', 'a number without a digit before its point'],
    ['type(self.?s) == optional_type', 'the type of an optional value'],
  ])('that a kube-apiserver may take are refused in other words: %s', async (rule, what) => {
    const [cause] = await structuralFaults(
      { type: 'object', properties: { spec: { type: 'object', properties: PROPERTIES, ...rules(rule) } } },
      { path: 'schema' },
    );
    expect(cause?.message).toMatch(new RegExp(`\\^\n${what}: a kube-apiserver has it, but CEL of this server does not$`));
  });

  test('that are wrong in any case are refused without that', async () => {
    for (const rule of ['self.s.foo()', 'self.l.all(v, w)', 'self.formats', 'set.contains(self.l)', 'self.s ? ? 1', 'net.ip']) {
      const [cause] = await structuralFaults(
        { type: 'object', properties: { spec: { type: 'object', properties: PROPERTIES, ...rules(rule) } } },
        { path: 'schema' },
      );
      expect(cause?.message).toMatch(/\^$/);
    }
  });

  test('may be as long as upstream lets them be, in code points', async () => {
    const faultOf = async (count: number): Promise<string | undefined> => {
      const rule = `self.a != '${'\u{1F600}'.repeat(count - 12)}'`;
      const spec = { type: 'object', properties: { a: { type: 'string' } }, ...rules({ rule, message: 'no' }) };
      const [cause] = await structuralFaults({ type: 'object', properties: { spec } }, { path: 'schema' });
      return cause?.message.split('compilation failed: ').at(-1);
    };
    expect(await faultOf(100_000)).toBe(undefined);
    expect(await faultOf(100_001)).toBe(
      'ERROR: <input>:-1:0: expression code point size exceeds limit: size: 100001, limit 100000',
    );
  });

  test('are shown with their line and its place', async () => {
    const [cause] = await structuralFaults(
      { type: 'object', properties: { spec: { type: 'object', ...rules({ rule: 'true &&\n  self.a', message: 'no' }) } } },
      { path: 'schema' },
    );
    const shown =
      '{"Rule":"true \\u0026\\u0026\\n  self.a","Message":"no","MessageExpression":"","Reason":null,"FieldPath":"","OptionalOldSelf":null}';
    const error = "ERROR: <input>:2:7: undefined field 'a'\n |   self.a\n | ......^";
    expect(cause?.message).toBe(`Invalid value: ${shown}: compilation failed: ${error}`);
  });

  test('have messages of texts, and say so if what was may be absent', async () => {
    expect(await refusals({ rule: 'true', messageExpression: 'self.n' })).toEqual([
      '.messageExpression: messageExpression must evaluate to a string',
    ]);
    expect(await refusals({ rule: 'true', messageExpression: 'self.foo' })).toEqual([
      ".messageExpression: messageExpression compilation failed: ERROR: <input>:1:5: undefined field 'foo'",
    ]);
    expect(await refusals({ rule: 'oldSelf.n == self.n', optionalOldSelf: true })).toEqual([
      ".rule: compilation failed: ERROR: <input>:1:11: found no matching overload for '_==_' applied to '(optional_type(int), int)'",
      '.optionalOldSelf: Invalid value: true: may not be set if oldSelf is not used in rule',
    ]);
    expect(
      await refusals({ rule: 'oldSelf.value().n == self.n', optionalOldSelf: true, messageExpression: 'oldSelf.value().s' }),
    ).toEqual([]);
    expect(await refusals({ rule: 'self.n' })).toEqual(['.rule: cel expression must evaluate to a bool']);
  });

  test('need a type, and what was of an item needs a key', async () => {
    expect(await faults({ 'x-kubernetes-preserve-unknown-fields': true, ...rules('self == 1') })).toEqual([
      '.x-kubernetes-validations InternalError: Internal error: internal error: failed to construct type information for x-kubernetes-validations rules: unable to convert structural schema to CEL declarations',
    ]);
    const ofItem = { type: 'array', items: { ...text, ...rules('self == oldSelf') } };
    const why = 'oldSelf cannot be used on the uncorrelatable portion of the schema within schema.properties[spec]';
    expect(await faults(ofItem)).toEqual([`.items.rule: Invalid value: "self == oldSelf": ${why}`]);
    const keyed = { 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['name'] };
    const items = { type: 'object', required: ['name'], properties: { name: text, a: { ...text, ...rules('self == oldSelf') } } };
    expect(await faults({ type: 'array', ...keyed, items })).toEqual([]);
  });

  test('are told up to a hundred', async () => {
    const wrong = Array.from({ length: 150 }, (_, at) => `self.a${at} == 1`);
    expect(await refusals(...wrong)).toHaveLength(100);
  });
});

describe('patterns of a definition', () => {
  const many = (count: number, patternOf: (at: number) => string): JsonSchema[] =>
    Array.from({ length: count }, (_, at) => ({ type: 'string', pattern: patternOf(at) }));
  const large = many(200, (at) => `^a{899}b{${at}}$`);

  test.each<[where: string, spec: JsonSchema]>([
    ['in properties', { type: 'object', properties: Object.fromEntries(large.entries()) }],
    ['below allOf', { type: 'string', allOf: large.map(({ pattern }) => ({ pattern })) }],
  ])('give way to others, each by itself: %s', async (_, spec) => {
    let [turns, isDone] = [0, false];
    const turn = (): void => {
      turns++;
      if (!isDone) setImmediate(turn);
    };
    setImmediate(turn);
    expect(await structuralFaults({ type: 'object', properties: { spec } }, { path: 'schema' })).toEqual([]);
    isDone = true;
    expect(turns).toBeGreaterThan(10);
  });

  test.each([
    ['a{1000}'.repeat(16), false],
    [`${'a{1000}'.repeat(16)}b{400}`, true],
    ['a'.repeat(16_383), false],
    ['a'.repeat(16_384), true],
    ['a'.repeat(16_385), true],
    ['(\\p{L}{1,1000}-){1}', false],
  ])('have a limit, as what compiles them gives no way: %#', async (pattern, isTooLarge) => {
    const spec = { type: 'object', properties: { a: { type: 'string', pattern } } };
    const found = await structuralFaults({ type: 'object', properties: { spec } }, { path: 'schema' });
    expect(found.map(({ message }) => /expression too large: more than 16384 instructions/.test(message))).toEqual(
      isTooLarge ? [true] : [],
    );
    const compiling = compileSchema({ type: 'object', properties: { spec } });
    if (isTooLarge) await expect(compiling).rejects.toThrow('expression too large');
    else await compiling;
  });

  test.each([5, 30])('have the same limit together in a rule: %d of them', async (count) => {
    const rule = Array.from({ length: count }, (_, at) => `self.matches('a{1000}b{${at}}')`).join(' || ');
    const spec = { type: 'string', ...rules(rule) };
    const found = await structuralFaults({ type: 'object', properties: { spec } }, { path: 'schema' });
    expect(found.map(({ message }) => message.includes('the patterns of an expression are too large together'))).toEqual(
      count > 16 ? [true] : [],
    );
  });
});
