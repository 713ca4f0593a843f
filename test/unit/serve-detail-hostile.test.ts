// Objects that somebody has made to hurt whoever looks at them on the page of `watchmux serve`.
import { expect, test } from 'vitest';
import { withVersion } from '../../src/pages/serve/detail/edit.ts';
import { toText } from '../../src/pages/serve/detail/text.ts';

test('writing a text takes as long as it is', () => {
  const text = `a${'\n'.repeat(400_000)}b`;
  const lines = toText({ text, after: 'x\n', last: 'y\n\n' }, 'yaml').split('\n');
  expect(lines[0]).toBe('text: |-');
  expect(lines.slice(-8)).toEqual(['', '  b', 'after: |', '  x', 'last: |+', '  y', '', '']);
});

test.each(['yaml', 'json'] as const)(
  'a text in %s gets the version of another state in its metadata, and nowhere else',
  (format) => {
    const text = (version: string): string =>
      toText(
        {
          data: { resourceVersion: '12' },
          metadata: { annotations: { resourceVersion: '12' }, resourceVersion: version },
          spec: { resourceVersion: '12' },
        },
        format,
      );
    expect(withVersion(text('12'), { from: '12', to: '13' })).toBe(text('13'));
    expect(withVersion('metadata:\n  resourceVersion: 123\n', { from: '12', to: '13' })).toBeUndefined();
  },
);
