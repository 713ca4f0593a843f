// What rules make of values, as a kube-apiserver 1.37 does: the words come from its packages.
import { describe, expect, test } from 'vitest';
import type { JsonSchema } from '../../src/apiserver/definition.ts';
import { compileSchema } from '../../src/apiserver/validation/object-schema.ts';
import type { KubernetesObject } from '../../src/cache/object.ts';
import { atOnce } from '../../src/watch/fair-queue.ts';

const HEAD = { apiVersion: 'example.com/v1', kind: 'Order', metadata: { name: 'a' } };

/** What is said of an object under the rules of its schema. */
async function told(schema: JsonSchema, object: object, old?: object): Promise<string[]> {
  const check = await compileSchema(schema);
  const before = old === undefined ? undefined : ({ ...HEAD, ...old } as KubernetesObject);
  const causes = atOnce(check({ ...HEAD, ...object } as KubernetesObject, before));
  return causes.map(({ field, reason = '', message }) => `${field} ${reason.replace('FieldValue', '')}: ${message}`);
}
const said = (spec: JsonSchema, value: unknown, old?: unknown): Promise<string[]> =>
  told({ type: 'object', properties: { spec } }, { spec: value }, old === undefined ? undefined : { spec: old });

const t = { type: 'string' };
const i = { type: 'integer' };
type Given = string | object;
const rules = (...given: Given[]): JsonSchema => ({
  'x-kubernetes-validations': given.map((rule) => (typeof rule === 'string' ? { rule } : rule)),
});
const obj = (properties: object, ...given: Given[]): JsonSchema => ({ type: 'object', properties, ...rules(...given) });
const list = (items: object): JsonSchema => ({ type: 'array', items });
const map = (additionalProperties: object): JsonSchema => ({ type: 'object', additionalProperties });

const SPEC = {
  ...{ n: i, d: { type: 'number' }, s: t, b: { type: 'boolean' }, l: list(t), m: map(t), o: obj({ x: t }) },
  ...{ t: { ...t, format: 'date-time' }, dur: { ...t, format: 'duration' }, bytes: { ...t, format: 'byte' } },
  either: { 'x-kubernetes-int-or-string': true },
};
const VALUE = {
  ...{ n: 5, d: 1234.5, s: 'abc', b: true, l: ['a', 'b'], m: { b: 'y', a: 'x' }, o: { x: 'a' }, either: 7 },
  ...{ t: '2026-01-02T03:04:05Z', dur: '1h30m', bytes: 'YWJj' },
};

test.each([
  ["'%s'.format([self.b])", 'true'],
  ["'%d %s'.format([uint(5), uint(6)])", '5 6'],
  ["'%x %o %b %X'.format([uint(26), uint(8), uint(5), uint(255)])", '1a 10 101 FF'],
  ["'%s'.format([self.t])", '2026-01-02T03:04:05Z'],
  ["'%s'.format([timestamp('2026-01-02T03:04:05.120Z')])", '2026-01-02T03:04:05.12Z'],
  ["'%s'.format([timestamp('2026-01-02T03:04:05.100Z')])", '2026-01-02T03:04:05.1Z'],
  ["'%s'.format([self.dur])", '5400s'],
  ["'%s'.format([duration('1.5s')])", '1.5s'],
  ["'%s'.format([duration('-1.5s')])", '-1.5s'],
  ["'%s'.format([duration('1ns')])", '0.000000001s'],
  ["'%s'.format([duration('-1ms')])", '-0.001s'],
  ["'%s'.format([duration('0s')])", '0s'],
  ["'%s'.format([duration('100.01s')])", '100.01s'],
  ["'%s'.format([self.bytes])", 'abc'],
  ["'%s'.format([[self.bytes, b'\\xc3\\xa9']])", '[b"abc", b"é"]'],
  ["'%s'.format([[self.t, self.dur]])", '[timestamp("2026-01-02T03:04:05Z"), duration("5400s")]'],
  ["'%s'.format([[self.b, null, uint(1), self.n]])", '[true, null, 1, 5]'],
  ["'%s'.format([type(null)])", 'null_type'],
  ["'%s'.format([type(1)])", 'int'],
  ["'%s'.format([type(self.t)])", 'google.protobuf.Timestamp'],
  ["'%s'.format([[type('a')]])", '[string]'],
  ["'%s'.format([double('Infinity')])", '+Inf'],
  ["'%s'.format([double('-Infinity')])", '-Inf'],
  ["'%s'.format([double('NaN')])", 'NaN'],
  ["'%s'.format([[double('Infinity'), double('-Infinity'), double('NaN')]])", '["+Inf", "-Inf", "NaN"]'],
  ["'%f %f %f'.format([double('Infinity'), double('-Infinity'), double('NaN')])", '∞ -∞ NaN'],
  ["'%e %e %e'.format([double('Infinity'), double('-Infinity'), double('NaN')])", '∞     -∞    NaN'],
  ["'%f %f %f'.format(['Infinity', '-Infinity', 'NaN'])", '∞ -∞ NaN'],
  ["'%e %e %e'.format(['Infinity', '-Infinity', 'NaN'])", '∞     -∞    NaN'],
  ["'%s'.format([-0.0])", '-0'],
  ["'%s'.format([[-0.0]])", '[-0.000000]'],
  ["'%f'.format([-0.0])", '0.000000'],
  ["'%.0f'.format([-0.4])", '-0'],
  ["'%e'.format([-0.0])", '0.000000×10⁰⁰'],
  ["'%s'.format([0.0])", '0'],
  ["'%s'.format([1e21])", '1e+21'],
  ["'%s'.format([1e20])", '1e+20'],
  ["'%s'.format([0.0001])", '0.0001'],
  ["'%s'.format([0.00001])", '1e-05'],
  ["'%s'.format([123456.5])", '123456.5'],
  ["'%f'.format([1e21])", '1,000,000,000,000,000,000,000.000000'],
  ["'%.0f'.format([1e21])", '1,000,000,000,000,000,000,000'],
  ["'%.2f'.format([1e22])", '10,000,000,000,000,000,000,000.00'],
  ["'%.1f'.format([-1e21])", '-1,000,000,000,000,000,000,000.0'],
  ["'%.3f'.format([1234.0625])", '1,234.062'],
  ["'%.0f %.0f %.0f %.0f'.format([2.5, 3.5, -2.5, -3.5])", '2 4 -2 -4'],
  ["'%.1f %.1f'.format([0.25, 0.35])", '0.2 0.3'],
  ["'%.2f %.2f'.format([0.125, 0.375])", '0.12 0.38'],
  ["'%.1f %.1f'.format([0.05, 0.15])", '0.1 0.1'],
  ["'%.2f'.format([0.505])", '0.51'],
  ["'%.1f %.2f'.format([12.250000001, 55.555])", '12.3 55.55'],
  [
    "'%.100f'.format([0.1])",
    '0.1000000000000000055511151231257827021181583404541015625000000000000000000000000000000000000000000000',
  ],
  [
    "'%.99f'.format([0.5])",
    '0.500000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000',
  ],
  ["'%f'.format([-1234567.0])", '-1,234,567.000000'],
  ["'%.0f'.format([1234567.0])", '1,234,567'],
  ["'%e'.format([1234.5])", '1.234500×10⁰³'],
  ["'%e'.format([0.00012345])", '1.234500×10⁻⁰⁴'],
  ["'%e'.format([0.0])", '0.000000×10⁰⁰'],
  ["'%e'.format([1e100])", '1.000000×10¹⁰⁰'],
  ["'%.2e'.format([1.5])", '1.500000×10⁰⁰'],
  ["'%e'.format([-1e-100])", '-1.000000×10⁻¹⁰⁰'],
  ["'%d'.format([-5])", '-5'],
  ["'%d'.format([26])", '26'],
  ["'%s'.format([1234567.0])", '1.234567e+06'],
  ["'%x %X %o %b'.format([-255, -255, -8, -5])", '-ff -FF -10 -101'],
  ["'%b %b'.format([true, false])", '1 0'],
  ["'%x %X'.format(['az\\u00e9', b'\\x01\\xff'])", '617ac3a9 01FF'],
  ["'%x'.format([self.bytes])", '616263'],
  ["'%s'.format([{'c': 1, 'b': 1, 'a': [1.5]}])", '{"a":[1.500000], "b":1, "c":1}'],
  ["'%s'.format([self.m])", '{"a":"x", "b":"y"}'],
  ["'%s'.format([{}])", '{}'],
  ["'%s'.format([[[]]])", '[[]]'],
  ["'%s'.format([[1, 2, 'a\"b']])", '[1, 2, "a\\"b"]'],
  ["'%s%s'.format([self.s, self.n])", 'abc5'],
  ["'a%%b%sc'.format([self.s])", 'a%babcc'],
  ["'%%%s%%'.format([self.s])", '%abc%'],
  ["'100%% %d%%'.format([self.n])", '100% 5%'],
  ["'%s'.format([self.either])", '7'],
  ["strings.quote('\\a\\b\\f\\n\\r\\t\\v\\\\\"x')", '"\\a\\b\\f\\n\\r\\t\\v\\\\\\"x"'],
  ["strings.quote('a\\u00e9\\u0001')", '"aé\u0001"'],
  ["strings.quote('')", '""'],
  ["'%s'.format([self.l])", '["a", "b"]'],
  ["'[%.20e] [%.14e] [%.020e]'.format([-1.5, 1.5, 1.5])", '[      -1.500000×10⁰⁰] [ 1.500000×10⁰⁰] [       1.500000×10⁰⁰]'],
  [
    "'[%e] [%.20e] [%.4e] [%.3e]'.format([double('Infinity'), double('-Infinity'), 'NaN', 'NaN'])",
    '[     ∞] [                  -∞] [ NaN] [NaN]',
  ],
  ["'%.0000000002f'.format([1.5])", '1.50'],
  ["'%s'.format([self.l.transformMap(i, v, v)])", '{0:"a", 1:"b"}'],
  ["strings.quote('V')", '"V"'],
])('the text of %s', async (messageExpression, text) => {
  const [cause] = await said(obj(SPEC, { rule: 'false', messageExpression }), VALUE);
  expect(cause).toBe(`spec Invalid: Invalid value: ${text}`);
});

test.each([
  ["'%d'.format([dyn(self.b)])", 'error during formatting: decimal clause can only be used on integers, was given bool'],
  ["'%d'.format([dyn(self.d)])", 'error during formatting: decimal clause can only be used on integers, was given double'],
  ["'%d'.format([dyn(self.s)])", 'error during formatting: decimal clause can only be used on integers, was given string'],
  [
    "'%d'.format([dyn(self.t)])",
    'error during formatting: decimal clause can only be used on integers, was given google.protobuf.Timestamp',
  ],
  [
    "'%d'.format([dyn(self.dur)])",
    'error during formatting: decimal clause can only be used on integers, was given google.protobuf.Duration',
  ],
  ["'%d'.format([dyn(self.bytes)])", 'error during formatting: decimal clause can only be used on integers, was given bytes'],
  ["'%d'.format([dyn(self.l)])", 'error during formatting: decimal clause can only be used on integers, was given list'],
  ["'%d'.format([dyn(self.m)])", 'error during formatting: decimal clause can only be used on integers, was given map'],
  ["'%d'.format([dyn(null)])", 'error during formatting: decimal clause can only be used on integers, was given null_type'],
  [
    "'%d'.format([dyn(optional.of(1))])",
    'error during formatting: decimal clause can only be used on integers, was given optional_type',
  ],
  ["'%d'.format([dyn(type(1))])", 'error during formatting: decimal clause can only be used on integers, was given type'],
  ["'%d'.format([dyn(ip('::1'))])", 'error during formatting: decimal clause can only be used on integers, was given net.IP'],
  [
    "'%d'.format([dyn(cidr('10.0.0.0/8'))])",
    'error during formatting: decimal clause can only be used on integers, was given net.CIDR',
  ],
  [
    "'%d'.format([dyn(url('http://a'))])",
    'error during formatting: decimal clause can only be used on integers, was given kubernetes.URL',
  ],
  [
    "'%d'.format([dyn(quantity('1'))])",
    'error during formatting: decimal clause can only be used on integers, was given kubernetes.Quantity',
  ],
  [
    "'%d'.format([dyn(semver('1.2.3'))])",
    'error during formatting: decimal clause can only be used on integers, was given kubernetes.Semver',
  ],
  [
    "'%d'.format([dyn(format.dns1123Label())])",
    'error during formatting: decimal clause can only be used on integers, was given kubernetes.NamedFormat',
  ],
  [
    "'%d'.format([dyn({'a': 1}.transformMap(k, v, v))])",
    'error during formatting: decimal clause can only be used on integers, was given map',
  ],
  [
    "'%s'.format([dyn(ip('::1'))])",
    'error during formatting: string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps, was given net.IP',
  ],
  [
    "'%s'.format([dyn(optional.of(1))])",
    'error during formatting: string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps, was given optional_type',
  ],
  ["'%s'.format([[dyn(ip('::1'))]])", 'error during formatting: no formatting function for net.IP'],
  [
    "'%s'.format([dyn(b'\\xff')])",
    'error during formatting: could not convert argument "invalid UTF-8 in bytes, cannot convert to string" to string',
  ],
  [
    "'%s'.format([[dyn(b'\\xff')]])",
    'error during formatting: could not convert argument "invalid UTF-8 in bytes, cannot convert to string" to string',
  ],
  ["'%o'.format([dyn(self.s)])", 'error during formatting: octal clause can only be used on integers, was given string'],
  ["'%b'.format([dyn(self.s)])", 'error during formatting: only integers and bools can be formatted as binary, was given string'],
  [
    "'%x'.format([dyn(self.d)])",
    'error during formatting: only integers, byte buffers, and strings can be formatted as hex, was given double',
  ],
  [
    "'%X'.format([dyn(self.d)])",
    'error during formatting: only integers, byte buffers, and strings can be formatted as hex, was given double',
  ],
  ["'%f'.format([dyn(self.n)])", 'error during formatting: fixed-point clause can only be used on doubles, was given int'],
  ["'%e'.format([dyn(self.n)])", 'error during formatting: scientific clause can only be used on doubles, was given int'],
  ["'%f'.format([dyn('x')])", 'error during formatting: fixed-point clause can only be used on doubles, was given string'],
  ["'%f'.format([dyn('Inf')])", 'error during formatting: fixed-point clause can only be used on doubles, was given string'],
  ["'%e'.format([dyn('inf')])", 'error during formatting: scientific clause can only be used on doubles, was given string'],
  ["'%d'.format([dyn('NaN')])", 'error during formatting: decimal clause can only be used on integers, was given string'],
  ["'%o'.format([dyn(true)])", 'error during formatting: octal clause can only be used on integers, was given bool'],
  ["'%f'.format([dyn(uint(1))])", 'error during formatting: fixed-point clause can only be used on doubles, was given uint'],
  ["'%d'.format([dyn(self.o)])", 'error during formatting: decimal clause can only be used on integers, was given map'],
  ["dyn('%').format([1.5])", 'unexpected end of string'],
  [
    "dyn('%.').format([1.5])",
    'could not parse formatting clause: error while parsing precision: could not find end of precision specifier',
  ],
  [
    "dyn('%.5').format([1.5])",
    'could not parse formatting clause: error while parsing precision: could not find end of precision specifier',
  ],
  [
    "dyn('%.f').format([1.5])",
    'could not parse formatting clause: error while parsing precision: error while converting precision to integer: strconv.Atoi: parsing "": invalid syntax',
  ],
  [
    "dyn('%.a').format([1.5])",
    'could not parse formatting clause: error while parsing precision: error while converting precision to integer: strconv.Atoi: parsing "": invalid syntax',
  ],
  // A limit of ours.
  [
    "dyn('%.101f').format([1.5])",
    'could not parse formatting clause: error while parsing precision: precision 101 exceeds maximum allowed precision 100',
  ],
  [
    "dyn('%.123456789012345678901f').format([1.5])",
    'could not parse formatting clause: error while parsing precision: precision 12345678901234567890 exceeds maximum allowed precision 100',
  ],
  ["dyn('%q').format([1.5])", 'could not parse formatting clause: unrecognized formatting clause "q"'],
  ["dyn('%.2q').format([1.5])", 'could not parse formatting clause: unrecognized formatting clause "q"'],
  ["dyn('%5d').format([1.5])", 'could not parse formatting clause: unrecognized formatting clause "5"'],
  ["dyn('% d').format([1.5])", 'could not parse formatting clause: unrecognized formatting clause " "'],
  ["dyn('%s %s').format([1.5])", 'index 1 out of range'],
  ["dyn('a%').format([1.5])", 'unexpected end of string'],
  ["dyn('%%%').format([1.5])", 'unexpected end of string'],
  ["dyn('%.2d').format([1.5])", 'error during formatting: decimal clause can only be used on integers, was given double'],
  ["'%s'.format([dyn({'a': url('http://a')})])", 'error during formatting: no formatting function for kubernetes.URL'],
])('there is no text of %s', async (expression, why) => {
  const causes = await said(obj(SPEC, { rule: `${expression} == ''`, message: 'm' }), VALUE);
  expect(causes).toEqual([`spec Invalid: Invalid value: "object": ${why} evaluating rule: m`]);
});

const NOT_X = "self != 'x'";
const IS_OLD = 'self == oldSelf';
const text = (...given: Given[]): JsonSchema => ({ ...t, ...rules(...given) });
const nullable = { nullable: true };
const EMBEDDED = { type: 'object', 'x-kubernetes-embedded-resource': true, 'x-kubernetes-preserve-unknown-fields': true };
const NAMES = { name: 'n', generateName: 'g' };
const REASONS = ['Forbidden', 'Required', 'Duplicate', 'Invalid'];
const each = (rule: string): object[] => REASONS.map((reason) => ({ rule, reason: `FieldValue${reason}`, message: 'm' }));
const MESSAGE = { rule: "self == 'x'", messageExpression: 'self', message: 'short' };

test.each<[what: string, spec: JsonSchema, value: unknown, old: unknown, ...causes: string[]]>([
  [
    'the word oldSelf',
    text("self != 'oldSelf'"),
    'oldSelf',
    undefined,
    'spec Invalid: Invalid value: "oldSelf": failed rule: self != \'oldSelf\'',
  ],
  ['null', obj({ a: { ...text('self.size() > 0'), ...nullable } }), { a: null }, undefined],
  ['what was null', obj({ a: { ...text(IS_OLD), ...nullable } }), { a: 'y' }, { a: null }],
  [
    'what was null, as an optional value',
    obj({ a: { ...text({ rule: 'oldSelf.hasValue()', optionalOldSelf: true }), ...nullable } }),
    { a: 'y' },
    { a: null },
    'spec.a Invalid: Invalid value: "y": failed rule: oldSelf.hasValue()',
  ],
  [
    'other members',
    map({ ...i, ...rules('self > 0') }),
    { 'a.b': 0, c: 1 },
    undefined,
    'spec[a.b] Invalid: Invalid value: 0: failed rule: self > 0',
  ],
  [
    'other members that were others',
    map({ ...i, ...rules(IS_OLD) }),
    { a: 2, b: 3 },
    { a: 1 },
    'spec[a] Invalid: Invalid value: 2: failed rule: self == oldSelf',
  ],
  [
    'an object and its only member',
    obj({ a: { ...i, ...rules('self > 0') } }, 'self.a > 1'),
    { a: 0 },
    undefined,
    'spec Invalid: Invalid value: failed rule: self.a > 1',
    'spec.a Invalid: Invalid value: 0: failed rule: self > 0',
  ],
  [
    'what is only allowed below allOf',
    { ...text("self != 'y'"), allOf: [rules(NOT_X)] },
    'x',
    undefined,
    'spec Invalid: Invalid value: "x": failed rule: self != \'x\'',
  ],
  [
    'allOf by itself',
    { ...t, allOf: [{}, rules(NOT_X)] },
    'x',
    undefined,
    'spec Invalid: Invalid value: "x": failed rule: self != \'x\'',
  ],
  ['an item of a list that is as it was', obj({ l: list(text(NOT_X)), n: i }), { l: ['x'], n: 2 }, { l: ['x'], n: 1 }],
  [
    'an item of a list in one that is as it was',
    obj({ l: list(list(text(NOT_X))), n: i }),
    { l: [['x']], n: 2 },
    { l: [['x']], n: 1 },
  ],
  [
    'an item of a list that is not as it was',
    obj({ l: list(list(text(NOT_X))), n: i }),
    { l: [['x'], ['y']] },
    { l: [['x'], ['z']] },
    'spec.l[0][0] Invalid: Invalid value: "x": failed rule: self != \'x\'',
  ],
  [
    'an item of a new list',
    obj({ l: list(text(NOT_X)) }),
    { l: ['x'] },
    {},
    'spec.l[0] Invalid: Invalid value: "x": failed rule: self != \'x\'',
  ],
  [
    'what was of a member of an atomic map',
    { ...obj({ a: text(IS_OLD) }), 'x-kubernetes-map-type': 'atomic' },
    { a: 'x' },
    { a: 'y' },
  ],
  [
    'other places',
    obj(
      { c: t },
      ...["['a.b']", '.c', ".d['e']", "['d'].e", "['a\\'b']"].map((fieldPath) => ({
        rule: "self.c != 'x'",
        fieldPath,
        message: 'm',
      })),
    ),
    { c: 'x' },
    undefined,
    ...['a.b', 'c', 'd.e', 'd.e', "a'b"].map((at) => `spec.${at} Invalid: Invalid value: m`),
  ],
  [
    'reasons of a text',
    text(...each(NOT_X)),
    'x',
    undefined,
    'spec Forbidden: Forbidden: m',
    'spec Required: Required value: m',
    'spec Duplicate: Duplicate value: "x"',
    'spec Invalid: Invalid value: "x": m',
  ],
  [
    'reasons of an object',
    obj({ c: t }, ...each("self.c != 'x'")),
    { c: 'x' },
    undefined,
    'spec Forbidden: Forbidden: m',
    'spec Required: Required value: m',
    'spec Duplicate: Duplicate value',
    'spec Invalid: Invalid value: m',
  ],
  [
    'words with blanks around them',
    obj({ a: t }, { rule: " self.a != 'x' ", message: ' m ' }, " self.a != 'x' ", {
      rule: 'self.a == " "',
      messageExpression: "' from ' + self.a + ' '",
    }),
    { a: 'x' },
    undefined,
    'spec Invalid: Invalid value: m',
    "spec Invalid: Invalid value: failed rule: self.a != 'x'",
    'spec Invalid: Invalid value: from x',
  ],
  [
    'what cannot be asked, with blanks around it',
    { ...list(t), ...rules({ rule: " self[1] == 'x' ", message: ' m ' }, " self[1] == 'x' ", NOT_X.replace('self', 'self[0]')) },
    ['x'],
    undefined,
    'spec Invalid: Invalid value: "array": index out of bounds: 1 evaluating rule: m',
    'spec Invalid: Invalid value: "array": index out of bounds: 1 evaluating rule: self[1] == \'x\'',
    "spec Invalid: Invalid value: failed rule: self[0] != 'x'",
  ],
  ['a message that is too long', text(MESSAGE), 'a'.repeat(5_121), undefined, expect.stringMatching(/": short$/)],
  ['a message that is as long as it may be', text(MESSAGE), 'a'.repeat(5_120), undefined, expect.stringMatching(/": a{5120}$/)],
  ['a message of too many bytes', text(MESSAGE), 'é'.repeat(2_561), undefined, expect.stringMatching(/": short$/)],
  ['a message of two lines', text(MESSAGE), 'a\nb', undefined, 'spec Invalid: Invalid value: "a\\nb": short'],
  ['a message of blanks', text(MESSAGE), '  ', undefined, 'spec Invalid: Invalid value: "  ": short'],
  [
    'a message that cannot be made',
    text({ ...MESSAGE, messageExpression: '[self][1]' }),
    'a',
    undefined,
    'spec Invalid: Invalid value: "a": short',
  ],
  [
    'a number or a text that cannot be asked',
    { 'x-kubernetes-int-or-string': true, ...rules('dyn([1])[self] == 1') },
    5,
    undefined,
    'spec Invalid: Invalid value: "": index out of bounds: 5 evaluating rule: dyn([1])[self] == 1',
  ],
  [
    'a member called metadata',
    obj({ metadata: map(t) }, "self.metadata.labels == 'b'"),
    { metadata: { labels: 'b' } },
    undefined,
  ],
  [
    'members called metadata',
    obj(
      { o: obj({ metadata: map(t) }), l: list(obj({ metadata: map(t) })) },
      "self.o.metadata.labels == 'b' && self.l[0].metadata.labels == 'b'",
    ),
    { o: { metadata: { labels: 'b' } }, l: [{ metadata: { labels: 'b' } }] },
    undefined,
  ],
  [
    'what was malformed',
    obj({ t: { ...SPEC.t, ...rules(IS_OLD) }, bytes: { ...SPEC.bytes, ...rules(IS_OLD) } }),
    { t: VALUE.t, bytes: VALUE.bytes },
    { t: 'x', bytes: '%' },
    expect.stringMatching(/^spec\.t Invalid: /),
    expect.stringMatching(/^spec\.bytes Invalid: /),
  ],
  [
    'an embedded object',
    {
      ...EMBEDDED,
      ...rules(
        "self.kind == 'K' && self.metadata.name == 'n' && self.metadata.generateName == 'g'",
        "'labels' in dyn(self).metadata",
      ),
    },
    { apiVersion: 'v1', kind: 'K', metadata: { ...NAMES, labels: {} } },
    undefined,
    "spec Invalid: Invalid value: failed rule: 'labels' in dyn(self).metadata",
  ],
  [
    'an embedded object without names, from above',
    obj({ e: EMBEDDED }, '!has(self.e.metadata.name) && !has(self.e.metadata.generateName)', "'labels' in dyn(self.e).metadata"),
    { e: { apiVersion: 'v1', kind: 'K', metadata: { labels: {} } } },
    undefined,
    "spec Invalid: Invalid value: failed rule: 'labels' in dyn(self.e).metadata",
  ],
  [
    'whole numbers',
    obj(
      {
        d: { type: 'number' },
        m: map({ type: 'number' }),
        l: list({ type: 'number' }),
        e: { 'x-kubernetes-int-or-string': true },
      },
      ...["type(self.d) == double && type(self.m['a']) == double", 'type(self.l[0]) == double && type(self.e) == int'],
    ),
    { d: 1, m: { a: 1 }, l: [1], e: 1 },
    undefined,
  ],
  [
    'formats that are types',
    obj(
      { t: SPEC.t, d: { ...t, format: 'date' }, dur: SPEC.dur, bytes: SPEC.bytes },
      ...['self.t.getSeconds() == 5', 'self.d.getDate() == 2 && self.d.getHours() == 0', "self.dur == duration('90m')"],
      ...["self.bytes == b'abc'", '(self.t == null) == false'],
    ),
    { t: VALUE.t, d: '2026-01-02', dur: VALUE.dur, bytes: VALUE.bytes },
    undefined,
  ],
  [
    'words that are reserved',
    obj(
      { true: t, in: t, if: t, void: t },
      "self.__true__ == 'a' && self.__in__ == 'b' && self.__if__ == 'c' && self.__void__ == 'd'",
    ),
    { true: 'a', in: 'b', if: 'c', void: 'd' },
    undefined,
  ],
  [
    'names that can be escaped, and others',
    obj(
      { o: obj({ 'a b-c': t, '1a': t, 'a-b': t, x: t }) },
      { rule: 'self.o.x == "y"', messageExpression: "'%s'.format([dyn(self.o)])" },
    ),
    { o: { 'a b-c': '1', '1a': '2', 'a-b': '3', x: '4' } },
    undefined,
    'spec Invalid: Invalid value: {"1a":"2", "a b-c":"1", "a__dash__b":"3", "x":"4"}',
  ],
  [
    'members called constructor',
    obj(
      { m: map(t), n: map(t), o: obj({ constructor: t }) },
      ...[
        "self.m['constructor'] == 'x' && self.m.size() == 1 && 'constructor' in self.m",
        "self.m.all(k, v, k == 'constructor' && v == 'x')",
      ],
      ...[
        'self.m != self.n && !(self.m in [self.n]) && [self.m].indexOf(self.n) < 0',
        "has(self.o.constructor) && self.o.constructor == 'z'",
      ],
      { rule: 'false', messageExpression: "'%s'.format([dyn(self.m)])" },
    ),
    { m: { constructor: 'x' }, n: { constructor: 'y' }, o: { constructor: 'z' } },
    undefined,
    'spec Invalid: Invalid value: {"constructor":"x"}',
  ],
])('rules are asked of %s', async (_, spec, value, old, ...causes) => {
  expect(await said(spec, value, old)).toEqual(causes);
});

describe('rules of a whole object', () => {
  test('see its names, and no more of its metadata', async () => {
    const schema = obj(
      { metadata: { type: 'object' }, spec: t },
      ...[
        "self.metadata.name == 'n' && self.metadata.generateName == 'g' && self.kind == 'Order'",
        "'labels' in dyn(self).metadata",
      ],
      ...[{ rule: "self.spec == 'y'", fieldPath: '.spec', message: 'm' }, 'self.spec.charAt(9) == ""'],
    );
    expect(await told(schema, { metadata: { ...NAMES, labels: {} }, spec: 'x' })).toEqual([
      "<nil> Invalid: Invalid value: failed rule: 'labels' in dyn(self).metadata",
      'spec Invalid: Invalid value: m',
      '<nil> Invalid: Invalid value: "object": index out of range: 9 evaluating rule: self.spec.charAt(9) == ""',
    ]);
    expect(await told(obj({ spec: obj({ x: t }) }, "self.spec.x == 'y'"), { spec: { x: 'y' } })).toEqual([]);
    const without = obj({ spec: t }, '!has(self.metadata.name) && !has(self.metadata.generateName)');
    expect(await told(without, { metadata: {}, spec: 'x' })).toEqual([]);
  });

  test('compare it with what it was', async () => {
    const schema = obj({ spec: t }, 'self.spec == oldSelf.spec');
    const cause = '<nil> Invalid: Invalid value: failed rule: self.spec == oldSelf.spec';
    expect([await told(schema, { spec: 'x' }, { spec: 'y' }), await told(schema, { spec: 'x' }, { spec: 'x' })]).toEqual([
      [cause],
      [],
    ]);
  });
});

describe('rules that cost much', () => {
  const LOOP = 'lists.range(20000).all(x, x >= 0)';
  const ENDLESS = 'lists.range(99999).all(x, x >= 0)';
  const members = (count: number, rule: string): Record<string, JsonSchema> =>
    Object.fromEntries(Array.from({ length: count }, (_, at) => [`a${at}`, text(rule)]));
  const values = (count: number): object => Object.fromEntries(Array.from({ length: count }, (_, at) => [`a${at}`, 'x']));

  test('end all rules of the object, once one of them costs too much', async () => {
    const why =
      "'operation cancelled: actual cost limit exceeded': no further validation rules will be run due to call cost exceeds limit for rule";
    expect(await said(obj(members(3, ENDLESS)), values(3))).toEqual([
      `spec.a0 Invalid: Invalid value: "string": ${why}: ${ENDLESS}`,
    ]);
    expect(await said(text(ENDLESS, NOT_X), 'x')).toHaveLength(1);
  });

  test('end once all of them together cost too much', async () => {
    const why = 'validation failed due to running out of cost budget, no further validation rules will be run';
    expect(await said(obj(members(5, LOOP)), values(5))).toEqual([]);
    const [first, ...rest] = await said(obj(members(30, LOOP)), values(30));
    expect([first, rest]).toEqual([expect.stringMatching(`^spec\\.a\\d+ Invalid: Invalid value: "string": ${why}$`), []]);
  });

  test.each<[rule: string, isTooMuch: boolean]>([
    ["lists.range(1000).all(x, !self.startsWith('b'))", true],
    ['lists.range(40).all(x, self.format([]) == self)', true],
    ['lists.range(4).all(x, self.format([]) == self)', false],
    ["lists.range(4).all(x, '%s'.format([self]) == self)", false],
    ["lists.range(4).all(x, strings.quote(self) != '')", false],
  ])('read long texts: %s', async (rule, isTooMuch) => {
    const [cause] = await said(text(rule), 'a'.repeat(20_000));
    expect(cause?.includes('call cost exceeds limit') ?? false).toBe(isTooMuch);
  });
});
