// The beginning of a value's JSON, as messages show it.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { goNumber, jsonStart, quoted, shownValue } from '../../src/apiserver/validation/causes.ts';
import { runs } from '../runs.ts';
import { countingJson } from './large-objects.ts';

test('is what JSON.stringify writes, as far as it is shown', () => {
  const property = fc.property(fc.jsonValue(), fc.integer({ min: 1, max: 40 }), (value, most) => {
    expect(jsonStart(value, most)).toBe(JSON.stringify(value).slice(0, most));
  });
  fc.assert(property, { numRuns: runs(1_000) });
});

test.each([
  ['a long text', 'x'.repeat(1_000_000)],
  ['a long list', Array(500_000).fill(0)],
  ['many keys', Object.fromEntries(Array.from({ length: 60_000 }, (_, at) => [`k${at}`, 1]))],
  ['lists in lists', Array(1_000).fill(Array(1_000).fill([[]]))],
])('of %s is made without the rest', (_, value) => {
  const expected = JSON.stringify(value).slice(0, 300);
  const counts = countingJson();
  expect(jsonStart(value, 300)).toBe(expected);
  expect(counts.longest).toBeLessThan(10_000);
});

test('a text is quoted as Go does it', () => {
  const text = 'a"\\\u0000\u0007\b\t\n\u000b\f\r\u001b\u007f\u00a0\u00ad\u00e9\u2028\uffff\u{e0001}\u{1f600}';
  expect(quoted(text)).toBe(
    '"a\\"\\\\\\x00\\a\\b\\t\\n\\v\\f\\r\\x1b\\x7f\\u00a0\\u00ad\u00e9\\u2028\\uffff\\U000e0001\u{1f600}"',
  );
});

test('a number is written as Go does it', () => {
  expect([1, -5, 2 ** 53 - 1, 1.5, 0.0001, 0.00001, 1e6, 1e21, 2.5e-7].map((each) => goNumber(each))).toEqual([
    '1',
    '-5',
    '9007199254740991',
    '1.5',
    '0.0001',
    '1e-05',
    '1000000',
    '1e+21',
    '2.5e-07',
  ]);
  expect([100_000, 1_000_000, 1_234_567].map((each) => goNumber(each, true))).toEqual(['100000', '1e+06', '1.234567e+06']);
});

test('of a long value, the beginning is shown', () => {
  expect(shownValue('x'.repeat(300))).toBe(`"${'x'.repeat(300)}"`);
  expect(shownValue('x'.repeat(301))).toBe(`"${'x'.repeat(300)}..."`);
  expect(shownValue({ b: [1, null, '<'], a: 'x'.repeat(296) })).toBe(`{"a":"${'x'.repeat(294)}...`);
  expect(shownValue({ b: [1, null, '<'], a: {} })).toBe('{"a":{},"b":[1,null,"\\u003c"]}');
  expect(shownValue(Array.from({ length: 149 }, () => 1))).toHaveLength(299);
  expect(shownValue(Array.from({ length: 150 }, () => 1))).toBe(`[${'1,'.repeat(149)}1...`);
});
