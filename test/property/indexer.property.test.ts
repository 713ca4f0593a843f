// An indexer against the obvious: an array of objects, searched from its start to its end.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Indexer } from '../../src/cache/index.ts';
import { runs } from '../runs.ts';

interface Thing {
  readonly metadata: { readonly name: string; readonly namespace: string };
  readonly values: readonly string[];
  readonly bad: boolean;
}

const FUNCTIONS = {
  values: ({ values }: Thing) => values,
  first: ({ values, bad }: Thing) => {
    if (bad) throw new Error('bad');
    return values.slice(0, 1);
  },
  name: ({ metadata }: Thing) => [metadata.name],
} as const;
type Name = keyof typeof FUNCTIONS;

const word = fc.constantFrom('a', 'b', 'c', '__proto__');
const thing: fc.Arbitrary<Thing> = fc.record({
  metadata: fc.record({ name: word, namespace: fc.constantFrom('x', 'y', '') }),
  values: fc.array(word, { maxLength: 3 }),
  bad: fc.constant(false),
});
const rarelyBad = thing.chain((each) => fc.integer({ min: 0, max: 9 }).map((dice) => ({ ...each, bad: dice === 0 })));
const step = fc.oneof(
  fc.record({ type: fc.constantFrom('add', 'update', 'delete'), object: rarelyBad }),
  fc.record({ type: fc.constant('replace'), objects: fc.array(rarelyBad, { maxLength: 5 }), again: fc.boolean() }),
  fc.record({ type: fc.constant('index'), name: fc.constantFrom<Name>('values', 'first', 'name') }),
  fc.record({ type: fc.constant('namespace'), namespace: fc.constantFrom('x', 'y', '') }),
);

const keyOf = ({ metadata: { namespace, name } }: Thing): string => (namespace ? `${namespace}/${name}` : name);

/** The obvious implementation. */
class Naive {
  objects: Thing[] = [];
  indexes: Name[] = [];

  fits(object: Thing): boolean {
    return !(object.bad && this.indexes.includes('first'));
  }

  put(object: Thing): boolean {
    if (!this.fits(object)) return false;
    this.remove(object);
    this.objects.push(object);
    return true;
  }

  remove(object: Thing): void {
    this.objects = this.objects.filter((each) => keyOf(each) !== keyOf(object));
  }
}

const sorted = (things: readonly Thing[]): string[] => things.map((each) => JSON.stringify(each)).sort();

function compare(indexer: Indexer<Thing>, { objects, indexes }: Naive): void {
  expect(sorted(indexer.list())).toEqual(sorted(objects));
  expect(indexer.keys().sort()).toEqual(objects.map(keyOf).sort());
  expect(indexer.size).toBe(objects.length);
  for (const object of objects) expect(indexer.get(keyOf(object))).toBe(object);
  expect(indexer.indexNames).toEqual(indexes);
  for (const name of indexes) {
    const values = new Set(objects.flatMap((object) => FUNCTIONS[name](object)));
    expect(indexer.indexValues(name).sort()).toEqual([...values].sort()); // P12.2: no value without an object
    for (const value of [...values, 'none']) {
      const found = objects.filter((object) => FUNCTIONS[name](object).includes(value));
      expect(sorted(indexer.byIndex(name, value))).toEqual(sorted(found)); // P12.1
      expect(indexer.indexKeys(name, value).sort()).toEqual(found.map(keyOf).sort());
    }
  }
}

/** Whether the code throws. */
function fails(code: () => void): boolean {
  try {
    code();
    return false;
  } catch {
    return true;
  }
}

test('an indexer has what an array has, and finds what a search finds', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
      const indexer = new Indexer<Thing>();
      const naive = new Naive();
      for (const each of steps) {
        if ('object' in each) {
          if (each.type === 'delete') {
            naive.remove(each.object);
            indexer.delete(each.object);
          } else expect(fails(() => indexer.add(each.object))).toBe(!naive.put(each.object));
        } else if ('objects' in each) {
          const list = each.again ? [...naive.objects, ...each.objects] : each.objects;
          const fits = list.every((object) => naive.fits(object));
          expect(fails(() => indexer.replace(list, '1'))).toBe(!fits);
          if (fits) {
            naive.objects = [];
            for (const object of list) naive.put(object);
          }
        } else if ('namespace' in each) {
          const { namespace } = each;
          const inside = naive.objects.filter(({ metadata }) => metadata.namespace === namespace);
          expect(sorted(indexer.list({ namespace }))).toEqual(sorted(inside));
        } else {
          const { name } = each;
          const may = !naive.indexes.includes(name) && !(name === 'first' && naive.objects.some(({ bad }) => bad));
          expect(fails(() => indexer.addIndexers({ [name]: FUNCTIONS[name] }))).toBe(!may);
          if (may) naive.indexes.push(name);
        }
        compare(indexer, naive);
      }
    }),
    { numRuns: runs(1_000) },
  );
});
