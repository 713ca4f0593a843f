// `equals`, against an oracle that writes JSON, and case by case where a server decides.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { equals } from '../../src/operator/index.ts';
import { runs } from '../runs.ts';

/** JSON with sorted names, and without members that are null: as often as not, two values of few names have the same. */
function canonical(value: unknown): string {
  return JSON.stringify(value ?? null, (_, each: unknown) =>
    typeof each === 'object' && each !== null && !Array.isArray(each)
      ? Object.fromEntries(
          Object.entries(each)
            .filter(([, member]) => (JSON.stringify(member) ?? 'null') !== 'null')
            .sort(([one], [other]) => (one < other ? -1 : 1)),
        )
      : each,
  );
}

const value = fc.letrec<{ any: unknown }>((tie) => ({
  any: fc.oneof(
    { maxDepth: 4 },
    fc.constantFrom(null, undefined, true, 0, 1, '', 'a', Number.NaN, new Date(0)),
    fc.array(tie('any'), { maxLength: 2 }),
    fc.dictionary(fc.constantFrom('a', 'b', '__proto__', 'length'), tie('any'), { maxKeys: 3 }),
  ),
})).any;

describe('equals', () => {
  it('says what the JSON of two values says', () => {
    const seen = { yes: 0, no: 0 };
    const property = fc.property(value, value, fc.boolean(), (one, other, isCopy) => {
      const to = isCopy ? JSON.parse(canonical(one)) : other;
      expect(equals(one, to)).toBe(canonical(one) === canonical(to));
      expect(equals(to, one)).toBe(equals(one, to));
      seen[equals(one, to) ? 'yes' : 'no']++;
    });
    fc.assert(property, { numRuns: runs(3_000, { least: 300 }) });
    expect(Math.min(seen.yes, seen.no)).toBeGreaterThan(50);
  });

  it.each<[string, unknown, unknown, boolean]>([
    ['the order of names', { a: 1, b: 2 }, { b: 2, a: 1 }, true],
    ['the order of elements', [1, 2], [2, 1], false],
    ['null, and no member', { spec: { a: null } }, { spec: {} }, true],
    ['null in a list', [null], [], false],
    ['undefined in a list', [undefined], [null], true],
    ['nothing at all', undefined, null, true],
    ['an empty object, and none', { emptyDir: {} }, {}, false],
    ['an empty list, and none', { spec: { a: [] } }, { spec: {} }, false],
    ['an empty text, and none', { spec: { a: '' } }, { spec: {} }, false],
    ['zero, and none', { spec: { replicas: 0 } }, { spec: {} }, false],
    ['a list, and an object', { a: [] }, { a: {} }, false],
    ['no labels', { metadata: { name: 'a', labels: {}, finalizers: [], namespace: '' } }, { metadata: { name: 'a' } }, true],
    ['an empty label, and none', { metadata: { labels: { a: '' } } }, { metadata: { labels: {} } }, false],
    ['no grace', { metadata: { deletionGracePeriodSeconds: 0 } }, { metadata: {} }, false],
    ['no labels of a template', { spec: { metadata: { labels: {} } } }, { spec: { metadata: {} } }, false],
    ['a date, and its text', { at: new Date(0) }, { at: '1970-01-01T00:00:00.000Z' }, true],
    ['two dates', { metadata: { creationTimestamp: new Date(0) } }, { metadata: { creationTimestamp: new Date(1) } }, false],
    ['a quantity in two forms', { cpu: '1000m' }, { cpu: '1' }, false],
    ['a number, and a text', 1, '1', false],
    ['a function', { a: () => 1 }, {}, true],
  ])('%s', (_, one, other, same) => {
    expect([equals(one, other), equals(other, one)]).toEqual([same, same]);
  });

  it('is not misled by what objects inherit', () => {
    expect(equals(JSON.parse('{"__proto__": {"a": 1}}'), {})).toBe(false);
    expect(equals({ toString: undefined }, {})).toBe(true);
    expect(equals({ constructor: Object }, {})).toBe(true);
  });

  it('has no limit of depth', () => {
    const deep = (end: unknown): unknown => Array.from({ length: 50_000 }).reduce((inside) => ({ a: [inside] }), end);
    expect([equals(deep(1), deep(1)), equals(deep(1), deep(2))]).toEqual([true, false]);
  });

  it('ends with what contains itself, and with what is shared many times', () => {
    const cycle = (length: number, name: string): object => {
      const nodes = Array.from({ length }, () => ({ name }) as { name: string; next?: object });
      for (const [at, node] of nodes.entries()) node.next = nodes[(at + 1) % length] as object;
      return nodes[0] as object;
    };
    expect([equals(cycle(2, 'a'), cycle(3, 'a')), equals(cycle(2, 'a'), cycle(3, 'b'))]).toEqual([true, false]);
    const shared = (end: unknown): unknown => Array.from({ length: 60 }).reduce((inside) => [inside, inside], end);
    expect([equals(shared(1), shared(1)), equals(shared(1), shared(2))]).toEqual([true, false]);
  });
});
