// The formats of texts, as a kube-apiserver has them: test/peers/schemas.test.ts asks its packages the same.
import { expect, test } from 'vitest';
import { hasFormat } from '../../src/apiserver/validation/formats.ts';
import { FORMATS } from '../formats.ts';

test.each(Object.entries(FORMATS))('%s', (format, [accepted, refused]) => {
  const having = (texts: string): string[] => texts.split('|').filter((text) => hasFormat(format, text));
  expect([having(accepted).join('|'), having(refused)]).toEqual([accepted, []]);
});

test('a format may be written without dashes; an unknown one and a password may be anything', () => {
  expect([hasFormat('datetime', 'x'), hasFormat('date-time', 'x'), hasFormat('d-a-t-e', 'x')]).toEqual([false, false, false]);
  expect([hasFormat('nonsense', 'x'), hasFormat('password', '')]).toEqual([true, true]);
});

test('a number with very much between its digits is none, instead of being looked at for long', () => {
  const isbn = (apart: string): string => ['978', '0', '306', '40615', '7'].join(apart);
  expect([isbn('-'), isbn(' '.repeat(200)), isbn(' '.repeat(300))].map((text) => hasFormat('isbn', text))).toEqual([
    true,
    true,
    false,
  ]);
});
