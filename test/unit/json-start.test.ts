// The beginning of a value's JSON, as messages show it.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { jsonStart } from '../../src/apiserver/validation/causes.ts';
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
