// What the page of `watchmux serve` writes about an object is read back as the same, and says of every line whether it has changed.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { changesOf, type FieldChange } from '../../src/pages/serve/detail/changes.ts';
import { type TextFormat, toLines, toText } from '../../src/pages/serve/detail/text.ts';
import { visible } from '../../src/pages/words.ts';
import { runs } from '../runs.ts';

const READ: Readonly<Record<string, (text: string) => unknown>> = {
  'YAML 1.2': (text) => parse(text, { maxAliasCount: 0 }),
  'YAML 1.1': (text) => parse(text, { version: '1.1', maxAliasCount: 0 }),
  JSON: (text) => JSON.parse(text),
};
const formatOf = (name: string): TextFormat => (name === 'JSON' ? 'json' : 'yaml');

/** Texts that parsers of YAML are known to take for something else, and pieces of such. */
const PIECES = [
  ...[
    '\n',
    '\n\n',
    ' ',
    '  ',
    '\t',
    '\r',
    ':',
    ': ',
    '#',
    ' #',
    '-',
    '- ',
    '?',
    '|',
    '>',
    '&a',
    '*a',
    '!',
    '%',
    '@',
    '`',
    '"',
    "'",
  ],
  ...[
    '{',
    '}',
    '[',
    ']',
    ',',
    '~',
    '<<',
    '=',
    '---',
    '...',
    'a',
    'yes',
    'No',
    'null',
    'true',
    '1',
    '0x1f',
    '1e3',
    '1:30',
    '.inf',
    '_',
  ],
  ...[
    '2026-01-01',
    '\u0000',
    '\u0085',
    '\u2028',
    '\u200b',
    '\ufeff',
    '\ud800',
    '\ud83d\ude00',
    '\u00e9',
    '/',
    '\\',
    'a\n  b\n',
    'x'.repeat(1_100),
  ],
];
const texts = fc.oneof(
  fc.array(fc.constantFrom(...PIECES), { maxLength: 6 }).map((pieces) => pieces.join('')),
  fc.string({ unit: 'binary', maxLength: 20 }),
  fc.string({ unit: fc.constantFrom('a', ' ', '\n', '#', ':', '-', '\t'), maxLength: 12 }),
);
const { value: values } = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    texts,
    fc.oneof(fc.integer(), fc.double({ noNaN: true, noDefaultInfinity: true }), fc.boolean(), fc.constant(null)),
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(texts, tie('value'), { maxKeys: 4 }),
  ),
}));
/** As JSON has it. */
const json = values.map((value) => JSON.parse(JSON.stringify(value)) as unknown);

describe('an object as text', () => {
  test.each(Object.entries(READ))('as %s is read back as what it was', (name, read) => {
    fc.assert(
      fc.property(json, (value) => {
        const text = toText(value, formatOf(name));
        expect(read(text)).toEqual(value);
        // Nothing in it is unseen.
        expect(visible(text)).toBe(text);
      }),
      { numRuns: runs(1_500) },
    );
  });

  test.each(['yaml', 'json'] as const)('the beginning as %s is the beginning of all of it', (format) => {
    fc.assert(
      fc.property(json, fc.nat(200), (value, maxChars) => {
        const all = toLines(value, { format }).lines.map(({ text }) => text);
        const { lines, isWhole } = toLines(value, { format, maxChars });
        const length = lines.reduce((sum, { text }) => sum + text.length + 1, 0);
        expect(lines.map(({ text }) => text)).toEqual(all.slice(0, lines.length));
        expect(isWhole).toBe(length <= maxChars);
        if (isWhole) expect(lines).toHaveLength(all.length);
        // A long name, and its value, are two lines that belong together.
        else expect(lines.slice(0, -2).reduce((sum, { text }) => sum + text.length + 1, 0)).toBeLessThanOrEqual(maxChars);
      }),
      { numRuns: runs(500) },
    );
  });
});

/** Two values that have much in common. */
const pairs = fc.tuple(json, json, json).map(([common, one, other]) => [
  { common, list: [{ name: 'a', one }, { name: 'b' }], own: one },
  { common, list: [{ name: 'b' }, { name: 'a', one: other }], own: other },
]);

describe('the changes between two states', () => {
  test('are none between equal ones, and name every line that is new', () => {
    fc.assert(
      fc.property(fc.oneof(pairs, fc.tuple(json, json)), ([before, after]) => {
        expect(changesOf(before, structuredClone(before)).list).toEqual([]);
        const { list, more } = changesOf(before, after, 10_000);
        expect(more).toBe(0);
        expect(list.length > 0).toBe(JSON.stringify(sorted(before)) !== JSON.stringify(sorted(after)));
        const marked = new Set(list.filter((change: FieldChange) => 'after' in change).map(({ path }) => path));
        const old = new Set(toLines(before, { format: 'yaml' }).lines.map(({ text }) => text.trim()));
        for (const line of toLines(after, { format: 'yaml', marked }).lines) {
          const isLabel = line.text.length === line.label || line.text.trim() === '' || /[{}[\]|+-]$/.test(line.text);
          if (!old.has(line.text.trim()) && !isLabel) expect(line.marked).toBe(true);
        }
      }),
      { numRuns: runs(1_000) },
    );
  });
});

/** The same value with its members in order: JSON's objects have none. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1));
  return { entries: entries.map(([name, each]) => [name, sorted(each)]) };
}
