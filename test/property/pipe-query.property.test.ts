// The filter of the page of `pipe` against a plain model: terms are written as text, read again, and applied to events.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { fieldText, LEVELS, type Level, levelOf } from '../../src/pages/pipe/fields.ts';
import { matches, type Searched, type Term, toQuery } from '../../src/pages/pipe/query.ts';
import { toSearch, toView } from '../../src/pages/pipe/view.ts';
import { runs } from '../runs.ts';

const word = fc.constantFrom(
  'a',
  'B',
  'timeout',
  'x y',
  '"',
  '\\',
  '50',
  '-3',
  '1e3',
  '2026-01-31',
  'level',
  '<b>',
  '=',
  '\u00e9',
  '',
);
const field = fc.constantFrom('a', 'b', 'a.b', 'type', 'no', 'object.type', '$x', '@t', 'x-y');
const order = fc.constantFrom('>=', '<=', '>', '<');
const equal = fc.constantFrom('=', '!=');
const levels = fc.constantFrom(...LEVELS);
const term = fc.oneof(
  fc.record({ kind: fc.constant('text'), text: word.map((text) => text.toLowerCase()) }),
  fc.record({ kind: fc.constant('field'), field, operator: fc.constantFrom('=', '!=', '~', '!~'), value: word }),
  fc.record({ kind: fc.constant('field'), field, operator: order, value: fc.constantFrom('50', '-3', '1e3', '2026-01-31') }),
  fc.record({ kind: fc.constant('field'), field: fc.constant('level'), operator: fc.oneof(order, equal), value: levels }),
) as fc.Arbitrary<Term>;

const quoted = (text: string): string => `"${text.replace(/["\\]/g, '\\$&')}"`;
const write = (one: Term): string => (one.kind === 'text' ? quoted(one.text) : `${one.field}${one.operator}${quoted(one.value)}`);

const scalar = fc.oneof(word, fc.integer({ min: -100, max: 2_000 }), fc.constantFrom(null, true, 1e3));
const object = fc.oneof(
  word,
  fc.record(
    {
      a: fc.oneof(scalar, fc.record({ b: scalar })),
      b: scalar,
      type: scalar,
      $x: scalar,
      '@t': scalar,
      'x-y': scalar,
      level: fc.oneof(scalar, levels),
    },
    { requiredKeys: [] },
  ),
);
const event = fc.record({ type: word, place: fc.option(fc.nat(100), { nil: undefined }), value: object }).map(
  (one): Searched => ({
    ...one,
    text: typeof one.value === 'string' ? one.value : JSON.stringify(one.value),
    level: levelOf(one.value),
  }),
);

/** What the documents say, as short as possible. */
function model({ type, place, text, value, level }: Searched, one: Term): boolean {
  if (one.kind === 'text') return [text, type].some((each) => each.toLowerCase().includes(one.text));
  const { operator } = one;
  if (one.field === 'level') {
    const [has, wants] = [LEVELS.indexOf(level as Level), LEVELS.indexOf(one.value as Level)];
    if (operator === '=' || operator === '!=') return (has === wants) === (operator === '=');
    return has >= 0 && inOrder(has, operator, wants);
  }
  const found =
    one.field === 'type' ? type : one.field === 'no' ? place?.toString() : fieldText(value, one.field.replace('object.', ''));
  if (operator === '=' || operator === '!=') return (found === one.value) === (operator === '=');
  if (operator.endsWith('~')) {
    const contains = found?.toLowerCase().includes(one.value.toLowerCase()) ?? false;
    return operator === '~' ? contains : !contains;
  }
  if (found === undefined || found === '') return false;
  return one.value.includes('-01-') ? inOrder(found, operator, one.value) : inOrder(Number(found), operator, Number(one.value));
}

function inOrder<T extends string | number>(has: T, operator: string, wants: T): boolean {
  return { '>=': has >= wants, '<=': has <= wants, '>': has > wants, '<': has < wants }[operator] === true;
}

test('a filter that was written is read as it was meant, and finds what the model finds', () => {
  fc.assert(
    fc.property(
      fc.array(term, { maxLength: 5 }),
      fc.constantFrom(' ', '  ', '\t'),
      fc.array(event, { maxLength: 8 }),
      (terms, space, events) => {
        const query = toQuery(terms.map(write).join(space));
        expect(query).toEqual({ terms });
        for (const one of events) expect(matches(one, terms)).toBe(terms.every((each) => model(one, each)));
      },
    ),
    { numRuns: runs(1_000) },
  );
});

test('any text is a filter or a fault that says what was expected, and survives a URL', () => {
  const part = fc.constantFrom(
    'level',
    '>=',
    '=',
    '~',
    '!',
    '"',
    '\\',
    ' ',
    'warn',
    'a',
    '.',
    '<',
    '9',
    '&',
    '#',
    '+',
    '%',
    '\u202e',
  );
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        fc.array(part).map((all) => all.join('')),
      ),
      (text) => {
        const query = toQuery(text);
        if (query.fault === undefined) expect(Array.isArray(query.terms)).toBe(true);
        else expect(query.fault).toMatch(/^expected /);
        const view = { ...toView(''), filter: text.slice(0, 500) };
        expect(toView(toSearch(view, '?slow'))).toEqual(view);
      },
    ),
    { numRuns: runs(1_000) },
  );
});

test.each([
  [
    'level>=foo',
    'expected a level after level>=, not foo: trace, debug, info, notice, warn, error, fatal, alert, emerg, or a number',
  ],
  ['level~w', 'expected =, !=, >, >=, < or <= after level'],
  ['latency>fast', 'expected a number or a time such as 2026-01-31T10:00 after latency>, not fast'],
  ['level >= warn', 'expected a field right before >=, as in level>=warn; to search for this text, put it in quotes'],
  ['status=', 'expected a value right after status=; "" is the empty one'],
  ['"open', 'expected a quotation mark at the end'],
  ['a="open', 'expected a quotation mark at the end'],
])('%s: %s', (text, fault) => {
  expect(toQuery(text)).toEqual({ fault });
});

test('a long filter is cut, and work is linear in it', () => {
  expect(toQuery('a'.repeat(10_000_000))).toEqual({ terms: [{ kind: 'text', text: 'a'.repeat(500) }] });
});

test('words that look like fields of another syntax are text', () => {
  expect(toQuery('http://host/x?a=b')).toEqual({ terms: [{ kind: 'text', text: 'http://host/x?a=b' }] });
});

test('columns are in the URL in their order, with their widths; what makes no sense is left out', () => {
  expect(toView('?columns=level+msg*320+a.b*9+level+x%22y+c*1e9').columns).toEqual([
    { name: 'level' },
    { name: 'msg', width: 320 },
    { name: 'a.b', width: 40 },
    { name: 'c', width: 2_000 },
  ]);
  const view = { ...toView(''), wrap: true, columns: [{ name: 'msg', width: 99 }, { name: 'no' }] };
  expect(toSearch(view, '?slow')).toBe('?slow=&wrap=on&columns=msg*99+no');
  expect(toView(toSearch(view, ''))).toEqual(view);
  expect(toView('?columns=').columns).toBe(undefined);
  expect(toView(`?columns=${Array.from({ length: 50 }, (_, i) => `c${i}`).join('+')}`).columns).toHaveLength(20);
});

test('a line of text is its own message, and has no other field', () => {
  const line: Searched = { type: 'ADDED', place: 1, text: 'disk full', value: 'disk full', level: undefined };
  expect(
    ['msg~DISK', 'message="disk full"', 'other~disk', 'length=9', 'no=1'].map((text) => matches(line, toQuery(text).terms ?? [])),
  ).toEqual([true, true, false, false, true]);
});
