// Selectors against a naive evaluator, on labels and values from a small world in which everything meets everything.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { escapeFieldValue, FieldSelector, type FieldTerm, parseFieldSelector } from '../../src/selectors/field-selector.ts';
import { LabelSelector, parseLabelSelector, Requirement } from '../../src/selectors/label-selector.ts';
import type { LabelOperator } from '../../src/selectors/syntax.ts';
import { isWatchError, type WatchError } from '../../src/watch/errors.ts';
import { runs } from '../runs.ts';

const RUNS = runs(1_500);
const timeout = Math.max(30_000, 10 * RUNS);
const check = <T>(arb: fc.Arbitrary<T>, property: (value: T) => void): void =>
  fc.assert(fc.property(arb, property), { numRuns: RUNS });

const KEYS = ['a', 'b', 'x.io/c'] as const;
/** The values that selectors name. */
const VALUES = ['', '4', '5', '05', '6', '9007199254740993', 'v', 'in'] as const;
/** More than those, so that there is always one that no selector names. */
const WORLD = [
  undefined,
  ...VALUES,
  '7',
  '3',
  '-1',
  '+4',
  '+5',
  '+6',
  '+9007199254740993',
  '9007199254740992',
  '9007199254740994',
  '9223372036854775808',
  'w',
] as const;

const valuesArb = fc.subarray([...VALUES], { minLength: 1 });
const integerArb = fc.constantFrom('4', '5', '6', '05', '9007199254740993');
const requirementArb: fc.Arbitrary<Requirement> = fc
  .tuple(
    fc.constantFrom(...KEYS),
    fc.constantFrom<LabelOperator>('=', '==', '!=', 'in', 'notin', 'exists', '!', 'gt', 'lt'),
    valuesArb,
    integerArb,
  )
  .map(([key, operator, values, integer]) => {
    if (operator === 'gt' || operator === 'lt') return new Requirement(key, operator, [integer]);
    if (operator === 'exists' || operator === '!') return new Requirement(key, operator);
    return new Requirement(key, operator, operator === 'in' || operator === 'notin' ? values : values.slice(0, 1));
  });
const requirementsArb = fc.array(requirementArb, { maxLength: 6 });
const labelsArb = fc.record(Object.fromEntries(KEYS.map((key) => [key, fc.constantFrom(...WORLD)]))).map(present);

function present(all: Record<string, string | undefined>): Record<string, string> {
  return Object.fromEntries(Object.entries(all).filter((entry): entry is [string, string] => entry[1] !== undefined));
}

/** The table of the language, read aloud. */
function naive({ key, operator, values: [first = '', ...more] }: Requirement, labels: Record<string, string>): boolean {
  const has = key in labels;
  const value = labels[key] as string;
  const integer = /^[+-]?\d+$/.test(value) && BigInt.asIntN(64, BigInt(value)) === BigInt(value) ? BigInt(value) : undefined;
  if (operator === 'exists') return has;
  if (operator === '!') return !has;
  if (operator === 'gt') return has && integer !== undefined && integer > BigInt(first);
  if (operator === 'lt') return has && integer !== undefined && integer < BigInt(first);
  const listed = has && (value === first || more.includes(value));
  return operator === '!=' || operator === 'notin' ? !listed : listed;
}

/** Every object of the small world, as far as one key goes; requirements of different keys do not meet. */
const everyLabel = KEYS.flatMap((key) => WORLD.map((value) => ({ key, value })));

/** Whether two selectors select the same, by trying everything. */
function same(one: LabelSelector, other: LabelSelector): boolean {
  const verdicts = (selector: LabelSelector): string => {
    const perKey = [...KEYS, 'nothing'].map((key) => {
      const own = selector.requirements.filter((each) => each.key === key);
      return WORLD.map((value) => own.every((each) => naive(each, present({ [key]: value }))));
    });
    return perKey.some((row) => !row.includes(true)) ? 'nothing' : JSON.stringify(perKey);
  };
  return verdicts(one) === verdicts(other);
}

describe('label selectors', { timeout }, () => {
  it('P8.1: parse after print gives the same requirements, and the same text', () => {
    check(requirementsArb, (requirements) => {
      const selector = new LabelSelector(requirements);
      const back = parseLabelSelector(String(selector));
      expect(back.requirements).toEqual(selector.requirements);
      expect(String(back)).toBe(String(selector));
    });
  });

  it('P8.4: match equals the naive evaluator, in any order of the requirements', () => {
    check(fc.tuple(requirementsArb, labelsArb, fc.infiniteStream(fc.nat())), ([requirements, labels, order]) => {
      const shuffled = requirements
        .map((each) => ({ each, at: order.next().value as number }))
        .sort((one, other) => one.at - other.at);
      const expected = requirements.every((each) => naive(each, labels));
      expect(new LabelSelector(requirements).matches(labels)).toBe(expected);
      expect(new LabelSelector(shuffled.map(({ each }) => each)).matches(labels)).toBe(expected);
    });
  });

  it('P8.2, P8.3: notin is the complement of in, and absent of present', () => {
    check(fc.tuple(fc.constantFrom(...KEYS), valuesArb, labelsArb), ([key, values, labels]) => {
      expect(new Requirement(key, 'notin', values).matches(labels)).toBe(!new Requirement(key, 'in', values).matches(labels));
      expect(new Requirement(key, '!').matches(labels)).toBe(!new Requirement(key, 'exists').matches(labels));
    });
  });

  it('the canonical form decides equality: the same for selectors that select the same, and only for them', () => {
    check(fc.tuple(requirementsArb, requirementsArb), ([one, other]) => {
      const [a, b] = [new LabelSelector(one), new LabelSelector(other)];
      expect(a.canonical === b.canonical).toBe(same(a, b));
      const back = parseLabelSelector(a.canonical);
      expect([back.canonical, same(back, a)]).toEqual([a.canonical, true]);
    });
  });

  it('the same with one key, where selectors more often select the same', () => {
    const arb = fc.array(
      requirementArb.map(({ operator, values }) => new Requirement('a', operator, values)),
      { maxLength: 4 },
    );
    check(fc.tuple(arb, arb), ([one, other]) => {
      const [a, b] = [new LabelSelector(one), new LabelSelector(other)];
      expect([a.canonical, b.canonical, a.equals(b), a.matchesNothing]).toEqual([
        a.canonical,
        b.canonical,
        same(a, b),
        same(a, LabelSelector.nothing()),
      ]);
    });
  });

  it('what requires an exact match matches nothing else', () => {
    check(fc.tuple(requirementsArb, fc.constantFrom(...everyLabel)), ([requirements, { key, value }]) => {
      const selector = new LabelSelector(requirements);
      const exact = selector.requiresExactMatch(key);
      if (exact === undefined || value === exact) return;
      expect(
        selector.requirements.filter((each) => each.key === key).every((each) => naive(each, present({ [key]: value }))),
      ).toBe(false);
    });
  });

  it('any text is parsed, and printed so that it is parsed again, or is refused with a position in it', () => {
    const pieces = fc.constantFrom(
      'a',
      'b',
      'in',
      'notin',
      '=',
      '==',
      '!=',
      '!',
      '(',
      ')',
      ',',
      '>',
      '<',
      '1',
      ' ',
      '\n',
      '/',
      '\0',
      '-',
      '|',
    );
    check(
      fc.oneof(
        fc.array(pieces, { maxLength: 12 }).map((some) => some.join('')),
        fc.string({ unit: 'binary' }),
      ),
      (text) => {
        try {
          const selector = parseLabelSelector(text);
          expect(parseLabelSelector(String(selector)).requirements).toEqual(selector.requirements);
        } catch (error) {
          expect(isWatchError(error, 'INVALID_SELECTOR')).toBe(true);
          const { position = -1, message } = error as WatchError;
          expect(position >= 0 && position <= text.length).toBe(true);
          expect(message.split('\n')).toHaveLength(3);
        }
      },
    );
  });
});

const FIELDS = ['a', 'metadata.name', 'b!'] as const;
const FIELD_VALUES = ['', 'v', 'w', ',', '=', '\\', 'a\\,b'] as const;
const termArb: fc.Arbitrary<FieldTerm> = fc
  .tuple(fc.constantFrom(...FIELDS), fc.constantFrom<'=' | '!='>('=', '!='), fc.constantFrom(...FIELD_VALUES))
  .map(([field, operator, value]) => ({ field, operator: field === 'b!' ? '!=' : operator, value }));
const termsArb = fc.array(termArb, { maxLength: 5 });
const FIELD_WORLD = [...FIELD_VALUES, 'other'];

function verdictsOf(terms: readonly FieldTerm[]): string {
  const rows = FIELDS.map((field) => {
    const own = terms.filter((term) => term.field === field);
    return FIELD_WORLD.map((value) => own.every((term) => (term.value === value) === (term.operator === '=')));
  });
  return rows.some((row) => !row.includes(true)) ? 'nothing' : JSON.stringify(rows);
}

describe('field selectors', { timeout }, () => {
  it('P8.5: what is escaped is read back, for every string', () => {
    check(fc.string({ unit: 'binary' }), (value) => {
      expect(parseFieldSelector(`f=${escapeFieldValue(value)}`).terms).toEqual([{ field: 'f', operator: '=', value }]);
      expect(FieldSelector.fromFields({ f: value }).terms).toEqual(parseFieldSelector(`f=${escapeFieldValue(value)}`).terms);
    });
  });

  it('P8.6: parse after print gives the same terms', () => {
    check(termsArb, (terms) => {
      const selector = new FieldSelector(terms);
      expect(parseFieldSelector(String(selector)).terms).toEqual(selector.terms);
    });
  });

  it('match equals the naive evaluator, with a missing field as an empty one', () => {
    const fieldsArb = fc.record(Object.fromEntries(FIELDS.map((field) => [field, fc.constantFrom(undefined, ...FIELD_WORLD)])));
    check(fc.tuple(termsArb, fieldsArb), ([terms, fields]) => {
      const expected = terms.every(({ field, operator, value }) => ((fields[field] ?? '') === value) === (operator === '='));
      expect(new FieldSelector(terms).matches(present(fields))).toBe(expected);
    });
  });

  it('the canonical form decides equality', () => {
    check(fc.tuple(termsArb, termsArb), ([one, other]) => {
      const [a, b] = [new FieldSelector(one), new FieldSelector(other)];
      expect(a.canonical === b.canonical).toBe(verdictsOf(one) === verdictsOf(other));
      expect(a.matchesNothing).toBe(verdictsOf(one) === 'nothing');
      expect(parseFieldSelector(a.canonical).canonical).toBe(a.canonical);
    });
  });

  it('any text is parsed, and printed so that it is parsed again, or is refused with a position in it', () => {
    const pieces = fc.constantFrom('a', 'b', '=', '==', '!=', '!', ',', '\\', '\\,', '\\=', ' ', '\n', '\0');
    check(
      fc.oneof(
        fc.array(pieces, { maxLength: 12 }).map((some) => some.join('')),
        fc.string({ unit: 'binary' }),
      ),
      (text) => {
        try {
          const selector = parseFieldSelector(text);
          expect(parseFieldSelector(String(selector)).terms).toEqual(selector.terms);
        } catch (error) {
          expect(error).toMatchObject({ code: 'INVALID_SELECTOR' });
          const { position = -1 } = error as WatchError;
          expect(position >= 0 && position <= text.length).toBe(true);
        }
      },
    );
  });
});
