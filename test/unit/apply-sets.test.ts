// Sets of fields, types and owners by themselves: what each function answers, exactly, and how much it looks at.
import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import {
  canonical,
  compareText,
  difference,
  type FieldSet,
  fieldElement,
  fromFields,
  intersection,
  isSame,
  isWithin,
  leavesOf,
  NO_FIELDS,
  ofExact,
  pathsOf,
  setOf,
  shownNumber,
  shownPath,
  sizeOf,
  toFields,
  union,
  unionOf,
} from '../../src/apply/field-set.ts';
import {
  capped,
  checkOwnerCount,
  entriesOf,
  fromEntries,
  isReset,
  type Json,
  type Owner,
  ownerId,
  shownKind,
  shownObject,
  shownOwner,
  toEntries,
  withEntries,
} from '../../src/apply/managers.ts';
import { beginOperation, handledAs, kindOf, kindType, ListType, MapType, type Type } from '../../src/apply/types.ts';
import { Recent } from '../../src/storage/shared.ts';
import { atOnce, STRIDE, type Work } from '../../src/watch/fair-queue.ts';
import { runs } from '../runs.ts';

const read = (fields: unknown): FieldSet => atOnce(fromFields(fields)).set;
const many = (count: number, from: number = 0): FieldSet =>
  read(Object.fromEntries(Array.from({ length: count }, (_, at) => [`f:${from + at}`, {}])));

type Path = readonly string[];

/** The paths of a set, each as a text, whatever their order. */
function told(set: FieldSet, prefix: Path = []): string[] {
  const below = [...(set.children ?? [])].flatMap(([element, child]) => {
    expect(child.isEmpty).toBe(false);
    return told(child, [...prefix, element]);
  });
  return (set.isMember ? [prefix.join(' '), ...below] : below).sort();
}

describe('sets of fields are as sets of paths', () => {
  const path = fc.array(fc.constantFrom('f:a', 'f:b', 'v:1', 'k:{"a":1}'), { minLength: 1, maxLength: 3 });
  const paths = fc.array(path, { maxLength: 8 });
  const textsOf = (all: readonly Path[]): string[] => [...new Set(all.map((each) => each.join(' ')))].sort();

  test('whatever the operation; what changes nothing gives the same set', () => {
    const property = fc.property(paths, paths, (one, other) => {
      const [a, b, x, y] = [setOf(...one), setOf(...other), textsOf(one), textsOf(other)];
      const isAbove = (each: string): boolean => y.some((above) => each === above || each.startsWith(`${above} `));
      const joined = atOnce(union(a, b));
      expect(told(joined)).toEqual(textsOf([...one, ...other]));
      expect(told(atOnce(unionOf([a, b, a, setOf(['f:c'])])))).toEqual(textsOf([...one, ...other, ['f:c']]));
      expect(told(atOnce(intersection(a, b)))).toEqual(x.filter((each) => y.includes(each)));
      const left = atOnce(difference(a, b));
      expect(told(left)).toEqual(x.filter((each) => !y.includes(each)));
      const below = atOnce(difference(a, b, true));
      expect(told(below)).toEqual(x.filter((each) => !isAbove(each)));
      const isSubset = x.every((each) => y.includes(each));
      expect(atOnce(isWithin(a, b))).toBe(isSubset);
      expect(atOnce(isSame(a, b))).toBe(isSubset && x.length === y.length);
      expect(told(atOnce(leavesOf(a)))).toEqual(x.filter((each) => !x.some((longer) => longer.startsWith(`${each} `))));
      expect(atOnce(sizeOf(a))).toBe(x.length);
      expect(atOnce(isSame(read(atOnce(toFields(a))), a))).toBe(true);
      if (y.every((each) => x.includes(each))) expect(joined).toBe(a);
      if (!x.some((each) => y.includes(each))) expect(left).toBe(a);
      if (!x.some(isAbove)) expect(below).toBe(a);
      if (told(atOnce(leavesOf(a))).length === x.length) expect(atOnce(leavesOf(a))).toBe(a);
    });
    fc.assert(property, { numRuns: runs(400) });
  });

  test('and paths come in order, those of a node before what is below them, as many as asked for', () => {
    const all = [['f:b'], ['f:a', 'f:c'], ['f:a'], ['f:a', 'f:b'], ['v:1', 'f:a'], ['f:a', 'f:b', 'f:x']];
    const order = [['f:a'], ['f:b'], ['f:a', 'f:b'], ['f:a', 'f:c'], ['f:a', 'f:b', 'f:x'], ['v:1', 'f:a']];
    for (let limit = 0; limit <= 7; limit++) expect(atOnce(pathsOf(setOf(...all), limit))).toEqual(order.slice(0, limit));
    expect(atOnce(pathsOf(setOf(['f:a']), -1))).toEqual([]);
  });

  test('and the empty path is in none', () => {
    expect(setOf([]).isEmpty).toBe(true);
    expect(atOnce(unionOf([]))).toBe(NO_FIELDS);
    const set = setOf(['f:a', 'f:b']);
    expect([set.has('f:a'), set.below('f:a').has('f:b'), set.has('f:c'), set.below('f:c')]).toEqual([
      ...[false, true, false],
      NO_FIELDS,
    ]);
  });
});

describe('operations on sets of fields', () => {
  /** How often it pauses. */
  const pauses = (work: Work<unknown>): number => {
    let count = 0;
    while (!work.next().done) count++;
    return count;
  };
  const [large, copy, small] = [many(8 * STRIDE), many(8 * STRIDE), many(3)];
  const fields = atOnce(toFields(large));
  const nested = setOf(...Array.from({ length: 4 * STRIDE }, (_, at) => ['f:a', `f:${at}`, 'f:b']));

  it.each<[string, () => Work<unknown>, number]>([
    ['union', () => union(large, copy), 8],
    ['intersection', () => intersection(large, copy), 8],
    ['difference', () => difference(large, copy), 8],
    ['isWithin', () => isWithin(large, copy), 8],
    ['isSame', () => isSame(large, copy), 8],
    ['leavesOf', () => leavesOf(nested), 8],
    ['pathsOf', () => pathsOf(large, 100_000), 8],
    ['sizeOf', () => sizeOf(large), 8],
    ['toFields', () => toFields(large), 8],
    ['fromFields', () => fromFields(fields), 8],
    ['union of a small one', () => union(large, small), 0],
    ['union with a large one', () => union(small, large), 0],
    ['intersection with a small one', () => intersection(large, small), 0],
    ['intersection with a large one', () => intersection(small, large), 0],
    ['difference from a small one', () => difference(small, large), 0],
    ['difference with a small one', () => difference(large, small), 0],
    ['isWithin of a small one', () => isWithin(small, large), 0],
    ['isSame of another size', () => isSame(large, many(8 * STRIDE + 1)), 0],
    ['the same', () => union(large, large), 0],
    ['intersection of the same', () => intersection(large, large), 0],
    ['isWithin itself', () => isWithin(large, large), 0],
    ['isSame as itself', () => isSame(large, large), 0],
  ])('pause as often as they look at enough: %s', (_, make, expected) => {
    // One more is chance, as steps are counted on from elsewhere.
    expect(Math.abs(pauses(make()) - expected)).toBeLessThanOrEqual(1);
  });
});

describe('what is read', () => {
  test('says whether it would be written in the same way, and how much it is', () => {
    const exact = { 'f:a': { '.': {}, 'f:b': {} }, 'k:{"a":1}': {}, 'v:"x"': {}, 'i:5': {} };
    expect(atOnce(fromFields(exact))).toMatchObject({ isExact: true, size: 5 });
    for (const fields of [
      ...[undefined, null, {}].map((each) => each && { 'f:a': each, 'x:a': {} }),
      ...[
        { 'f:a': null },
        { 'f:a': { '.': {} } },
        { 'f:a': { '.': { 'f:b': {} }, 'f:c': {} } },
        { 'f:a': { '.': 5, 'f:c': {} } },
      ],
      ...[{ 'v:1.0': {} }, { 'i:05': {} }, { 'k:{"b":1,"a":1}': {} }, { 'x:a': {} }],
    ])
      expect(atOnce(fromFields(fields)).isExact, JSON.stringify(fields)).toBe(fields === undefined || fields === null);
  });

  test('and exact is the same as if it were read', () => {
    const fields = { 'f:a': { '.': {}, 'f:b': {} }, 'f:c': {}, 'f:d': { 'f:e': { '.': {}, 'v:1': {} } } };
    const { set, isExact, size } = ofExact(fields);
    expect([isExact, size, set.isMember, told(set)]).toEqual([true, 0, false, told(read(fields))]);
    expect(atOnce(isSame(ofExact(fields).set, read(fields)))).toBe(true);
    expect(atOnce(isSame(ofExact({}).set, NO_FIELDS))).toBe(true);
  });

  test('is refused with words', () => {
    const said = (fields: unknown): unknown => {
      try {
        read(fields);
      } catch (error) {
        return (error as Error).message;
      }
      return undefined;
    };
    const all = [
      5,
      { 'f:a': 5 },
      { x: {} },
      { '': {} },
      { 'k:5': {} },
      { 'v:': {} },
      { 'i:1.5': {} },
      { 'i:1x': {} },
      { 'i:x1': {} },
    ];
    const expected = [
      ...['an object of fields, got 5', 'an object of fields, got 5'],
      ...['f:, k:, v: or i: and an element, got "x"', 'f:, k:, v: or i: and an element, got ""'],
      ...['an element in JSON, got "k:5"', 'an element in JSON, got "v:"'],
      ...['1.5', '1x', 'x1'].map((each) => `i: and a whole number, got "i:${each}"`),
    ];
    expect(all.map(said)).toEqual(expected.map((each) => `fieldsV1: expected ${each}`));
    expect(said({ 'i:1234567890123456': {} })).toContain('a whole number');
    expect(said({ [`k:{"a":${' '.repeat(8_192)}1}`]: {} })).toBe('fieldsV1: expected at most 8192 characters of an element');
  });
});

describe('texts', () => {
  test('are in order as in Go', () => {
    const order = [
      '',
      '\u0001',
      'A',
      'a',
      'aa',
      'b',
      '\ud7ff',
      '\ue000',
      '\uffff',
      '\u{1f600}',
      '\u{1f600}\uffff',
      '\u{1f600}\u{1f600}',
      '\u{1f601}',
    ];
    for (const [i, one] of order.entries())
      for (const [j, other] of order.entries())
        expect(Math.sign(compareText(one, other)), JSON.stringify([one, other])).toBe(Math.sign(i - j));
  });

  test('are escaped as in Go', () => {
    expect(canonical('<>&\u2028\u2029\b\f\n\\b\\\\f"')).toBe(
      '"\\u003c\\u003e\\u0026\\u2028\\u2029\\u0008\\u000c\\n\\\\b\\\\\\\\f\\""',
    );
    expect(canonical([1e-7, -1.5e-9, 1e-10, 1e21, 1e-6, 12])).toBe('[1e-07,-1.5e-09,1e-10,1e+21,0.000001,12]');
    expect(canonical({ b: [1, null, '<'], a: { d: true, c: 'x' } })).toBe('{"a":{"c":"x","d":true},"b":[1,null,"\\u003c"]}');
    const names = { '<\\b\b\f': { '<\\b\b\f': 1 } };
    expect(canonical(names)).toBe('{"\\u003c\\\\b\\u0008\\u000c":{"\\u003c\\\\b\\u0008\\u000c":1}}');
    // The names of keys keep what is special in HTML.
    expect(told(read({ [`k:${JSON.stringify(names)}`]: {} }))).toEqual([
      'k:{"<\\\\b\\u0008\\u000c":{"\\u003c\\\\b\\u0008\\u000c":1}}',
    ]);
  });

  test('of paths are shown as in Go, and only the beginning of what is long', () => {
    const path = ['f:a', 'k:{"a":"x","b":1e21}', 'k:{"a":true}', 'v:"x"', 'v:1e-7', 'v:null', 'v:[1,"a"]', 'v:{"a":1}', 'i:5'];
    expect(shownPath(path)).toBe('.a[a="x",b=1e+21][a=true][="x"][=1e-07][=null][=[1,"a"]][=a=1][5]');
    expect(shownPath([`v:"${'x'.repeat(9_000)}"`])).toBe(`["${'x'.repeat(254)}...`);
    expect(shownPath(['f:a', `f:${'x'.repeat(254)}`])).toBe(`.a.${'x'.repeat(253)}...`);
    expect(shownPath([`f:${'x'.repeat(255)}`])).toBe(`.${'x'.repeat(255)}`);
    expect([1e-7, 1e21, 1e100, 12, -0.5].map(shownNumber)).toEqual(['1e-07', '1e+21', '1e+100', '12', '-0.5']);
    expect(fieldElement('a')).toBe('f:a');
  });
});

describe('owners', () => {
  const owner = (more: Partial<Owner> = {}): Owner => ({
    ...{ manager: 'm', operation: 'Update', apiVersion: 'v1', subresource: '', time: undefined, set: setOf(['f:a']) },
    ...more,
  });

  test('are told apart, and named, as upstream does', () => {
    expect(ownerId(owner())).toBe('{"manager":"m","operation":"Update","apiVersion":"v1"}');
    expect(ownerId(owner({ manager: '<', operation: 'Apply', subresource: 's' }))).toBe(
      '{"manager":"\\u003c","operation":"Apply","subresource":"s"}',
    );
    expect(ownerId(owner({ manager: '' }))).toBe('{"operation":"Update","apiVersion":"v1"}');
    expect(shownOwner(owner({ subresource: 's' }))).toBe('"m" with subresource "s" using v1');
    expect(shownOwner(owner({ operation: 'Apply' }))).toBe('"m"');
  });

  test('are those of entries of the right form', () => {
    const of = (...managedFields: unknown[]): unknown => entriesOf({ metadata: { managedFields } });
    for (const right of [
      {},
      { time: null },
      { time: '2026-01-01T00:00:00Z' },
      { manager: 'a', subresource: null },
      { fieldsV1: 5 },
    ])
      expect(of({}, right)).toEqual([{}, right]);
    for (const wrong of [null, 5, 'x', [], { time: 5 }, { time: 'never' }]) expect(of({}, wrong)).toBeUndefined();
    for (const name of ['manager', 'operation', 'apiVersion', 'fieldsType', 'subresource'])
      for (const wrong of [5, {}, []]) expect(of({ [name]: wrong })).toBeUndefined();
    for (const none of [undefined, {}, { metadata: null }, { metadata: { managedFields: {} } }])
      expect(entriesOf(none as Json)).toBeUndefined();
  });

  test('are forgotten with no entry, or one of nothing', () => {
    const resets = [
      [],
      [{}],
      [{ manager: '', operation: null }],
      [{}, {}],
      [{ manager: '', operation: 'Apply' }],
      [{ fieldsV1: {} }],
    ];
    expect(resets.map(isReset)).toEqual([true, true, true, false, false, false]);
  });

  test('are at most a thousand', () => {
    checkOwnerCount(1_000);
    expect(() => checkOwnerCount(1_001)).toThrow('metadata.managedFields: Too many: 1001: must have at most 1000 items');
  });

  const entry = { manager: 'm', operation: 'Update', apiVersion: 'v1', fieldsType: 'FieldsV1', fieldsV1: { 'f:a': {} } };

  it.each<[string, Json]>([
    ['operation must be `Apply` or `Update`', { operation: 'Never' }],
    ['apiVersion must not be empty', { apiVersion: null }],
    ['invalid fieldsType "x"', { fieldsType: 'x' }],
    ['invalid fieldsType ""', { fieldsType: null }],
  ])('are refused with "%s"', (message, more) => {
    expect(() => atOnce(fromEntries([{ ...entry, ...more }]))).toThrow(expect.objectContaining({ name: 'TypedError', message }));
  });

  test('are read and written, and small ones are known the next time', () => {
    const known = new Recent<Type | null>();
    const wide = (count: number): Json => Object.fromEntries(Array.from({ length: count }, (_, at) => [`f:${at}`, {}]));
    const all: Json[] = [
      { ...entry, manager: 'exact', time: '2026-01-01T00:00:00Z' },
      { ...entry, manager: 'inexact', fieldsV1: { 'v:1.0': {} }, subresource: 's' },
      { ...entry, manager: 'large', fieldsV1: wide(4_097) },
      { ...entry, manager: 'less large', fieldsV1: wide(4_096) },
      { ...entry, manager: null, subresource: null, operation: 'Apply', fieldsV1: undefined },
    ];
    const written = [all[4], all[1], all[2], all[3], all[0]].map((each) => {
      const { manager, subresource, fieldsV1 = {}, ...rest } = each as Json;
      const fields = manager === 'inexact' ? { 'v:1': {} } : fieldsV1;
      return {
        ...(manager !== null && { manager }),
        ...rest,
        fieldsV1: fields,
        ...(subresource !== null && subresource !== undefined && { subresource }),
      };
    });
    for (let time = 0; time < 2; time++) {
      const owners = atOnce(fromEntries(all, known));
      const made = atOnce(toEntries(owners));
      expect(made).toEqual(written);
      expect(made.map(({ fieldsV1 }) => all.some((each) => each.fieldsV1 === fieldsV1))).toEqual([
        false,
        false,
        true,
        true,
        true,
      ]);
      expect(all.map(({ fieldsV1 }) => fieldsV1 && known.get(fieldsV1))).toEqual([null, undefined, undefined, null, undefined]);
      expect([...owners.values()].map(({ set }) => atOnce(sizeOf(set)))).toEqual([1, 1, 4_097, 4_096, 0]);
      const [first] = owners.values();
      owners.set('other', { ...(first as Owner), manager: 'z', set: setOf(['f:z']) });
      expect(atOnce(toEntries(owners)).at(-1)).toMatchObject({ manager: 'z', fieldsV1: { 'f:z': {} } });
    }
  });

  test('are written in order: by operation, second, name, version and subresource', () => {
    const time = (second: number, of: string = ''): string => `2026-01-01T00:00:0${second}${of}Z`;
    const order = [
      owner({ operation: 'Apply', manager: 'z', time: time(9) }),
      owner({ manager: 'y' }),
      owner({ manager: 'a', apiVersion: 'v1', time: time(1, '.9') }),
      owner({ manager: 'a', apiVersion: 'v1', subresource: 's', time: time(1) }),
      owner({ manager: 'a', apiVersion: 'v2', time: time(1, '.5') }),
      owner({ manager: 'b', apiVersion: 'v1', time: time(1) }),
      owner({ manager: 'a', apiVersion: 'v1', subresource: 't', time: time(2) }),
    ];
    const named = (all: readonly Owner[]): unknown =>
      atOnce(toEntries(new Map(all.map((each, at) => [`${at}`, each])))).map(({ fieldsV1, fieldsType, ...rest }) => rest);
    const expected = order.map(({ set, subresource, time: at, ...rest }) => ({
      ...{ ...rest, ...(at && { time: at }), ...(subresource && { subresource }) },
    }));
    for (const all of [order, [...order].reverse(), [...order.slice(3), ...order.slice(0, 3)]])
      expect(named(all)).toEqual(expected);
  });

  test('are put into an object, or taken out of it', () => {
    const entries = [entry];
    expect(withEntries({ a: 1 }, entries)).toEqual({ a: 1, metadata: { managedFields: entries } });
    const object = { metadata: { name: 'a', managedFields: [] } };
    expect(withEntries(object, entries)).toEqual({ metadata: { name: 'a', managedFields: entries } });
    for (const none of [undefined, []]) expect(withEntries(object, none)).toEqual({ metadata: { name: 'a' } });
    const bare = { a: 1 };
    expect(withEntries(bare, [])).toBe(bare);
  });

  test('of updates are at most ten: the oldest of a version become one', () => {
    const ancient = (apiVersion: string): string => ownerId(owner({ manager: 'ancient-changes', apiVersion }));
    const cap = (all: readonly Owner[]): Map<string, Owner> => {
      const owners = new Map(all.map((each) => [ownerId(each), each]));
      atOnce(capped(owners));
      return owners;
    };
    const at = (second: number, more: Partial<Owner> = {}): Owner =>
      owner({ manager: `m${second}`, time: `2026-01-01T00:00:${10 + second}Z`, set: setOf([`f:${second}`]), ...more });
    const count = (from: number, to: number, more?: Partial<Owner>): Owner[] =>
      Array.from({ length: to - from }, (_, n) => at(from + n, more));
    const appliers = count(0, 14, { operation: 'Apply' });
    expect([...cap([...appliers, ...count(20, 30)]).keys()]).toEqual([...appliers, ...count(20, 30)].map(ownerId));
    const twelve = [...count(0, 12)].reverse();
    const capped12 = cap([...appliers, ...twelve]);
    expect(capped12.size).toBe(14 + 10);
    const { set, ...rest } = capped12.get(ancient('v1')) as Owner;
    expect(told(set)).toEqual(['f:0', 'f:1', 'f:2']);
    expect(rest).toEqual({
      ...{ manager: 'ancient-changes', operation: 'Update', apiVersion: 'v1', subresource: '' },
      time: '2026-01-01T00:00:12Z',
    });
    const mixed = cap([
      at(0),
      at(1, { apiVersion: 'v2' }),
      at(2, { apiVersion: 'v3' }),
      ...count(3, 11),
      at(11, { apiVersion: 'v2' }),
    ]);
    expect([...mixed.keys()].sort()).toEqual(
      [at(1, { apiVersion: 'v2' }), at(2, { apiVersion: 'v3' }), ...count(5, 11), at(11, { apiVersion: 'v2' })]
        .map(ownerId)
        .concat(ancient('v1'))
        .sort(),
    );
    expect(told((mixed.get(ancient('v1')) as Owner).set)).toEqual(['f:0', 'f:3', 'f:4']);
    const again = cap([
      ...[owner({ manager: 'ancient-changes', time: '2026-01-01T00:00:01Z', set: setOf(['f:old']) }), ...count(0, 10)],
    ]);
    expect([again.size, told((again.get(ancient('v1')) as Owner).set)]).toEqual([10, ['f:0', 'f:old']]);
    // Of the same second: by their ids.
    const same = cap(count(10, 21, { time: '2026-01-01T00:00:01Z' }).reverse());
    expect(told((same.get(ancient('v1')) as Owner).set)).toEqual(['f:10', 'f:11']);
  });

  test('and objects are shown by what is a text', () => {
    expect(shownObject({ apiVersion: 'g/v1', kind: 'K', metadata: { namespace: 'n', name: 'a' } })).toBe('n/a; g/v1, Kind=K');
    expect(shownObject({ apiVersion: 5, kind: {}, metadata: 'x' })).toBe('/; /, Kind=');
    expect(shownKind('v1', 'K'.repeat(301))).toBe(`/v1, Kind=${'K'.repeat(300)}`);
  });
});

describe('types', () => {
  const text = { type: 'string' };
  const type = (schema: Json): Type => {
    const spec = kindType({ properties: { spec: schema } }).map?.field('spec')?.type;
    return spec as Type;
  };
  const shape = ({ scalar, list, map }: Type): unknown => [scalar, list && (list.isAtomic ? 'atomic' : list.keys), map?.isAtomic];

  it.each<[Json, unknown]>([
    [{ type: 'integer' }, ['numeric', undefined, undefined]],
    [{ type: 'number' }, ['numeric', undefined, undefined]],
    [{ type: 'boolean' }, ['boolean', undefined, undefined]],
    [text, ['string', undefined, undefined]],
    [{ ...text, format: '' }, ['string', undefined, undefined]],
    [{ ...text, format: 'byte' }, ['string', undefined, undefined]],
    [{ ...text, format: 'date-time' }, ['untyped', undefined, undefined]],
    [{ type: 'other' }, ['untyped', undefined, undefined]],
    [{}, ['untyped', 'atomic', false]],
    [{ type: '' }, ['untyped', 'atomic', false]],
    [{ type: 'object' }, [undefined, undefined, false]],
    [{ type: 'object', 'x-kubernetes-map-type': 'atomic' }, [undefined, undefined, true]],
    [{ type: 'object', 'x-kubernetes-map-type': 'granular' }, [undefined, undefined, false]],
    [{ type: 'array' }, [undefined, 'atomic', undefined]],
    [{ type: 'array', 'x-kubernetes-list-type': 'atomic' }, [undefined, 'atomic', undefined]],
    [{ type: 'array', 'x-kubernetes-list-type': 'set' }, [undefined, [], undefined]],
    [
      { type: 'array', 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['b', 5, 'a'] },
      [undefined, ['a', 'b'], undefined],
    ],
    [{ type: 'array', 'x-kubernetes-list-type': 'map' }, [undefined, [], undefined]],
    [{ type: 'array', 'x-kubernetes-patch-strategy': 'merge' }, [undefined, [], undefined]],
    [
      { type: 'array', 'x-kubernetes-patch-strategy': 'merge', 'x-kubernetes-patch-merge-key': 'name' },
      [undefined, ['name'], undefined],
    ],
    [
      { type: 'array', 'x-kubernetes-patch-strategy': 'merge,retainKeys', 'x-kubernetes-patch-merge-key': 'name' },
      [undefined, ['name'], undefined],
    ],
    [
      { type: 'array', 'x-kubernetes-patch-strategy': 'replace', 'x-kubernetes-patch-merge-key': 'name' },
      [undefined, 'atomic', undefined],
    ],
    [
      {
        type: 'array',
        'x-kubernetes-list-type': 'atomic',
        'x-kubernetes-patch-strategy': 'merge',
        'x-kubernetes-patch-merge-key': 'a',
      },
      [undefined, 'atomic', undefined],
    ],
  ])('are those of schemas: %j', (schema, expected) => {
    expect(shape(type(schema))).toEqual(expected);
  });

  it.each<[Json, boolean, unknown]>([
    [{}, true, ['untyped', 'atomic', false]],
    [{ properties: {} }, true, ['untyped', 'atomic', false]],
    [{ properties: { a: text } }, false, undefined],
    [{ properties: { a: text }, 'x-kubernetes-preserve-unknown-fields': true }, false, ['untyped', 'atomic', false]],
    [{ 'x-kubernetes-preserve-unknown-fields': true }, true, ['untyped', 'atomic', false]],
    [{ additionalProperties: true }, true, ['untyped', 'atomic', false]],
    [{ additionalProperties: true, properties: { a: text } }, false, ['untyped', 'atomic', false]],
    [{ additionalProperties: false }, false, undefined],
    [{ additionalProperties: text }, false, ['string', undefined, undefined]],
    [{ additionalProperties: {} }, true, ['untyped', 'atomic', false]],
    [{ additionalProperties: { ...text, format: 'date-time' } }, true, ['untyped', undefined, undefined]],
    [{ additionalProperties: { type: 'object' } }, false, [undefined, undefined, false]],
    [{ additionalProperties: { type: 'array' } }, false, [undefined, 'atomic', undefined]],
    [{ 'x-kubernetes-embedded-resource': true }, false, undefined],
  ])('of other members, and whether all are deduced: %j', (schema, isDeduced, element) => {
    const { map } = type({ type: 'object', ...schema });
    expect([map?.isDeduced, map?.element && shape(map.element)]).toEqual([isDeduced, element]);
  });

  test('of members are preserved below, and found by their own names only', () => {
    const open = {
      type: 'object',
      properties: { a: { type: 'object', properties: { b: text } }, c: { ...text, default: 'x' }, d: 5 },
    };
    const { map } = type({ ...open, 'x-kubernetes-preserve-unknown-fields': true });
    expect(map?.field('a')?.type.map?.element).toBeDefined();
    expect(type(open).map?.field('a')?.type.map?.element).toBeUndefined();
    expect(map?.field('c')).toMatchObject({ element: 'f:c', default: 'x', type: { scalar: 'string' } });
    expect(map?.field('c')).toBe(map?.field('c'));
    for (const name of ['d', 'e', 'toString', '__proto__']) expect(map?.field(name)).toBeUndefined();
    const listed = { type: 'array', items: { type: 'object', properties: { b: text } } };
    expect(type({ ...listed, 'x-kubernetes-preserve-unknown-fields': true }).list?.element.map?.element).toBeDefined();
    expect(type(listed).list?.element.map?.element).toBeUndefined();
    expect(shape(type({ type: 'array' }).list?.element as Type)).toEqual(['untyped', 'atomic', true]);
  });

  test('of a kind, and of one in another object, have the metadata of all objects', () => {
    const embedded = type({ type: 'object', 'x-kubernetes-embedded-resource': true });
    for (const { map } of [embedded, kindType({ properties: { metadata: text, spec: text } })]) {
      expect([map?.field('apiVersion'), map?.field('kind')].map((each) => each?.type.scalar)).toEqual(['string', 'string']);
      const metadata = map?.field('metadata')?.type.map as MapType;
      const names = ['annotations', 'creationTimestamp', 'deletionGracePeriodSeconds', 'deletionTimestamp', 'finalizers'];
      const more = ['generateName', 'generation', 'labels', 'managedFields', 'name', 'namespace', 'ownerReferences'];
      const shapes = [...names, ...more, 'resourceVersion', 'selfLink', 'uid'].map((name) =>
        shape(metadata.field(name)?.type as Type),
      );
      const [string, time, number, map_] = ['string', 'untyped', 'numeric']
        .map((each) => [each, undefined, undefined])
        .concat([[undefined, undefined, false] as never]);
      const lists = [[], 'atomic', ['uid']].map((each) => [undefined, each, undefined]);
      expect(shapes).toEqual([
        ...[map_, time, number, time, lists[0], string, number, map_, lists[1], string, string, lists[2], string, string, string],
      ]);
      const reference = metadata.field('ownerReferences')?.type.list?.element.map as MapType;
      expect([reference.isAtomic, metadata.element]).toEqual([true, undefined]);
      expect(['apiVersion', 'kind', 'name', 'uid', 'controller'].map((name) => reference.field(name)?.default)).toEqual([
        ...['', '', '', '', undefined],
      ]);
      expect(['controller', 'blockOwnerDeletion'].map((name) => reference.field(name)?.type.scalar)).toEqual([
        'boolean',
        'boolean',
      ]);
      expect(metadata.field('labels')?.type.map?.element?.scalar).toBe('string');
    }
    expect(kindType(undefined).map?.isDeduced).toBe(true);
    expect(kindType({}).map?.isDeduced).toBe(false);
  });

  test('say the kind of a value, and as which one it is handled', () => {
    const [map, list, scalar] = [
      { map: new MapType({}, false) },
      { list: new ListType({}, false) },
      { scalar: 'string' as const },
    ];
    const all: Type[] = [
      map,
      list,
      scalar,
      { ...map, ...list },
      { ...map, ...scalar },
      { ...list, ...scalar },
      { ...map, ...list, ...scalar },
    ];
    const kinds = all.map((each) => [{}, [], 'x', null, undefined].map((value) => kindOf(each, value)));
    const none = undefined;
    expect(kinds).toEqual([
      ['map', 'map', 'map', 'map', 'map'],
      ['list', 'list', 'list', 'list', 'list'],
      ['scalar', 'scalar', 'scalar', 'scalar', 'scalar'],
      ['map', 'list', none, none, none],
      ['map', none, 'scalar', none, none],
      [none, 'list', 'scalar', none, none],
      ['map', 'list', 'scalar', none, none],
    ]);
    expect(all.map((each) => handledAs(each, undefined))).toEqual(['map', 'list', 'scalar', 'map', 'map', 'scalar', 'map']);
    expect(handledAs(map, 'list')).toBe('list');
  });

  const port = { type: 'object', properties: { port: { type: 'integer' }, protocol: { ...text, default: 'TCP' }, name: text } };
  const keyed = new ListType(
    { items: port, 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['protocol', 'port'] },
    false,
  );
  const set = new ListType({ items: text, 'x-kubernetes-list-type': 'set' }, false);
  const scalars = new ListType({ items: text, 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['a'] }, false);
  const plain = new ListType(
    {
      items: { type: 'object', properties: { a: text } },
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['b', 'a'],
    },
    false,
  );

  test('of lists tell items apart', () => {
    const items = [{ port: 80 }, { port: 80, protocol: null }, { protocol: 'UDP' }, { port: null, protocol: '<' }];
    expect(keyed.elementsOf(items)).toEqual([
      ...['k:{"port":80,"protocol":"TCP"}', 'k:{"port":80,"protocol":null}', 'k:{"protocol":"UDP"}'],
      'k:{"port":null,"protocol":"\\u003c"}',
    ]);
    expect(set.elementsOf(['a', 1, true])).toEqual(['v:"a"', 'v:1', 'v:true']);
    expect(scalars.elementOf({ a: 1 })).toBe('k:{"a":1}');
  });

  test('of lists know the items of a list until the next operation', () => {
    const list = [{ port: 80, protocol: 'TCP' }];
    const first = keyed.elementsOf(list);
    expect(keyed.elementsOf(list)).toBe(first);
    expect(() => set.elementsOf(list)).toThrow("element that's a map type");
    beginOperation();
    expect(keyed.elementsOf(list)).not.toBe(first);
    const texts = ['a'];
    set.elementsOf(texts);
    expect(() => keyed.elementsOf(texts)).toThrow('non-map elements');
  });

  const LONG = 'associative list with keys has an element whose keys are longer than 8192 characters';
  it.each<[string, ListType, unknown]>([
    ['associative list with keys may not have a null element', keyed, null],
    ['associative list with keys may not have non-map elements', keyed, 'x'],
    ['associative list with keys may not have non-map elements', keyed, []],
    ["associative list without keys has an element that's a map type", set, {}],
    ['not supported: associative list with lists as elements', set, []],
    ["associative list without keys has an element that's an explicit null", set, null],
    ["couldn't find default value for a: associative list may not have non-map types", scalars, {}],
    [
      'associative list with keys has an element that omits all key fields ["b" "a"] (and doesn\'t have default values for any key fields)',
      ...[plain, { c: 1 }],
    ] as [string, ListType, unknown],
    [LONG, plain, { a: 'x'.repeat(8_183) }],
    [LONG, plain, { a: Array.from({ length: 8_192 }, () => 1) }],
    [LONG, plain, { a: { b: 'x'.repeat(8_183) } }],
  ])('of lists refuse with "%s"', (message, type_, item) => {
    expect(() => type_.elementOf(item)).toThrow(expect.objectContaining({ name: 'TypedError', message }));
  });

  test('of lists look at no more of a key than it may have', () => {
    expect(plain.elementOf({ a: 'x'.repeat(8_182) })).toHaveLength(8_192);
    let seen = 0;
    const ownKeys = (): string[] => {
      seen++;
      return [];
    };
    const item = new Proxy({}, { ownKeys });
    expect(() => plain.elementOf({ a: Array.from({ length: 20_000 }, () => item) })).toThrow(LONG);
    expect(seen).toBeLessThanOrEqual(8_192);
  });
});
