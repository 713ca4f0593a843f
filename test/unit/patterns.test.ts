// Patterns of schemas: what they match, how large they are, and what is said of wrong ones.
import { expect, test } from 'vitest';
import { faultOfPattern, MAX_MATCHED_CHARS, sizeOf, toPattern, withPatterns } from '../../src/apiserver/validation/patterns.ts';

test.each([
  ['', 1],
  ['ab', 3],
  ['\\d\\(\\\n', 4],
  ['a{3}', 4],
  ['a{2,7}', 8],
  ['a{3,}', 4],
  ['a{0}', 2],
  ['a{1000}{2}', 2_001],
  ['a{x}', 5],
  ['a{12345}', 9],
  ['a{1,12345}', 11],
  ['\n{4}', 5],
  ['(a)', 4],
  ['a(b)c', 6],
  ['a(b(cd)){3}', 23],
  ['a(b', 3],
  ['a((b', 3],
  ['a(b(c', 4],
  ['a)', 4],
  ['\\pL', 66],
  ['\\PL', 66],
  ['\\p{L}', 68],
  ['(\\p{L}){2}', 139],
])('%j has about %d instructions', (pattern, size) => {
  expect(sizeOf(pattern)).toBe(size);
});

test('a pattern that is too long is too large, whatever it says', () => {
  const [long, longer] = [4_096, 4_097].map((count) => 'a{1}'.repeat(count)) as [string, string];
  expect([sizeOf(long), sizeOf(longer)]).toEqual([4_097, longer.length]);
});

test('a pattern matches anywhere in a text, with escapes of JavaScript, too', async () => {
  const [plain, escaped] = await withPatterns(() => [toPattern('b+$'), toPattern('^\\u0041\\/\\p{L}$')] as const);
  expect([plain.test('abb'), plain.test('abc'), String(plain), toPattern('b+$')]).toEqual([true, false, 'b+$', plain]);
  expect([escaped.test('A/é'), escaped.test('B/é')]).toEqual([true, false]);
  expect(faultOfPattern('^\\u0041')).toBe('error parsing regexp: invalid escape sequence: `\\u`');
});

test('a wrong pattern is refused, with its beginning', async () => {
  const pattern = `(${'a'.repeat(300)}`;
  const message = `pattern "(${'a'.repeat(198)}: expected the syntax of RE2: error parsing regexp: missing closing ): \`${pattern}\``;
  const made = withPatterns(() => toPattern(pattern));
  await expect(made).rejects.toMatchObject({ code: 'INVALID_ARGUMENT', message, cause: expect.any(Error) });
});

test('a text that is too long is not matched', async () => {
  const pattern = await withPatterns(() => toPattern('^a'));
  expect(pattern.test('a'.repeat(MAX_MATCHED_CHARS))).toBe(true);
  const message = 'Too long: a string of 262145 characters has to match a pattern: may not be more than 262144';
  expect(() => pattern.test('a'.repeat(MAX_MATCHED_CHARS + 1))).toThrow(
    expect.objectContaining({ status: expect.objectContaining({ code: 422, reason: 'Invalid', message }) }),
  );
});
