// Objects that somebody has made to hurt whoever looks at them on the page of `watchmux serve`.
import { expect, test } from 'vitest';
import { toText } from '../../src/pages/serve/detail/lines.ts';

test('writing a text takes as long as it is', () => {
  const text = `a${'\n'.repeat(400_000)}b`;
  const lines = toText({ text, after: 'x\n', last: 'y\n\n' }, 'yaml').split('\n');
  expect(lines[0]).toBe('text: |-');
  expect(lines.slice(-8)).toEqual(['', '  b', 'after: |', '  x', 'last: |+', '  y', '', '']);
});
