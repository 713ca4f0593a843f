// A sorted map does what a plain map does whose keys are sorted for each read; and a copy is never changed by the other.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { SortedMap } from '../../src/storage/collection/sorted-map.ts';
import { runs } from '../runs.ts';

const RUNS = Math.max(30, runs(150));

const PREFIXES = ['', 'a/', 'b/', 'a/x/'];
/** Of few letters, so that keys meet; the two behind `/` and before it are the neighbours of a prefix. */
const key = fc.tuple(fc.constantFrom('', 'a/', 'b/', 'a/x/', 'a', 'a0', 'a.'), fc.nat(60)).map(([head, n]) => `${head}${n}`);

interface Pair {
  readonly map: SortedMap<number>;
  readonly model: Map<string, number>;
}

const step = fc.oneof(
  {
    weight: 10,
    arbitrary: fc.record({ kind: fc.constant('set' as const), keys: fc.array(key, { maxLength: 200, size: 'max' }) }),
  },
  {
    weight: 6,
    arbitrary: fc.record({ kind: fc.constant('delete' as const), keys: fc.array(key, { maxLength: 120, size: 'max' }) }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('copy' as const), keys: fc.constant([]) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('drain' as const), keys: fc.constant([]) }) },
);

function check({ map, model }: Pair, keys: readonly string[]): void {
  const sorted = [...model.keys()].sort();
  expect(map.size).toBe(sorted.length);
  expect([...map.values()]).toEqual(sorted.map((each) => model.get(each)));
  for (const each of keys) expect(map.get(each)).toBe(model.get(each));
  for (const prefix of PREFIXES) {
    for (const from of ['', prefix, 'zzz', ...keys.slice(0, 3)]) {
      const found = sorted.filter((each) => each.startsWith(prefix) && each >= from);
      expect([...map.values(prefix, from)]).toEqual(found.map((each) => model.get(each)));
      expect([prefix, from, map.count(prefix, from)]).toEqual([prefix, from, found.length]);
    }
  }
}

describe('a sorted map', () => {
  test(
    'does what a plain map does, and so do all copies of it',
    () => {
      fc.assert(
        fc.property(fc.array(step, { minLength: 1, maxLength: 12 }), (steps) => {
          const pairs: Pair[] = [{ map: new SortedMap(), model: new Map() }];
          for (const [at, { kind, keys }] of steps.entries()) {
            const pair = pairs[at % pairs.length] as Pair;
            for (const each of keys) {
              if (kind === 'set') {
                pair.map.set(each, at);
                pair.model.set(each, at);
              } else {
                expect(pair.map.delete(each)).toBe(pair.model.delete(each));
              }
            }
            if (kind === 'copy' && pairs.length < 4) pairs.push({ map: pair.map.copy(), model: new Map(pair.model) });
            if (kind === 'drain') for (const each of [...pair.model.keys()]) expect(pair.map.delete(each)).toBe(true);
            if (kind === 'drain') pair.model.clear();
            for (const each of pairs) check(each, keys);
          }
        }),
        { numRuns: RUNS },
      );
    },
    30_000 + RUNS * 100,
  );
});

test.each([
  ['in their order', (at: number) => at],
  ['in the reverse order', (at: number) => 4_999 - at],
  ['in no order', (at: number) => (at * 1_777) % 5_000],
])('many keys that come %s are there, and can be taken out again', (_name, placed) => {
  const keys = Array.from({ length: 5_000 }, (_, at) => `k${`${placed(at)}`.padStart(4, '0')}`);
  const map = new SortedMap<string>();
  for (const key of keys) map.set(key, key);
  const inOrder = [...keys].sort();
  const from = (start: string): string[] => [...map.values('', start)];
  for (const start of ['', 'k0000', 'k1023', 'k1024', 'k2048x', 'k4999', 'k5']) {
    expect(from(start)).toEqual(inOrder.filter((key) => key >= start));
  }
  for (const key of keys.filter((_, at) => at % 2 === 0)) expect(map.delete(key)).toBe(true);
  const left = new Set(keys.filter((_, at) => at % 2 === 1));
  expect([from(''), map.size]).toEqual([inOrder.filter((key) => left.has(key)), 2_500]);
  for (const key of left) map.delete(key);
  expect([from(''), map.size, map.delete('k0001')]).toEqual([[], 0, false]);
});
