// Values under the keys of a backend: what we write, what others may write, and what is none.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { KubernetesObject } from '../../src/cache/index.ts';
import { keeping, noteConstant, quickCopy, Recent, sharing } from '../../src/storage/shared.ts';
import { atVersion, Draft, dropEncoded, encoded, encodedBytes, preparing, toObject } from '../../src/storage/values.ts';
import { isContainer } from '../../src/watch/errors.ts';
import { atOnce } from '../../src/watch/fair-queue.ts';
import { runs } from '../runs.ts';

const read = (value: string | Uint8Array): KubernetesObject => {
  const bytes = typeof value === 'string' ? Buffer.from(value) : value;
  return toObject(bytes, { key: '/a/ä', revision: '7' });
};
const sent = (object: object): string => new TextDecoder().decode(encoded(object));

describe('what is stored', () => {
  it.each([
    [{ kind: 'X', metadata: { name: 'a', resourceVersion: '5' }, spec: 1 }, '{"metadata":{"name":"a"},"kind":"X","spec":1}'],
    [{ spec: 1 }, '{"metadata":{},"spec":1}'],
    [{ toJSON: () => ({ metadata: { name: 'b', resourceVersion: '5' } }) }, '{"metadata":{"name":"b"}}'],
  ])('%j begins with its metadata, without a version', (object, expected) => {
    const { value, text } = new Draft(object as KubernetesObject);
    expect([Buffer.from(value).toString(), text]).toEqual([expected, expected]);
  });

  it.each([[null], [undefined], [7], ['x'], [[]], [{ toJSON: () => 7 }]])('%j is no object', (object) => {
    expect(() => new Draft(object as never)).toThrow(
      expect.objectContaining({ code: 'INVALID_ARGUMENT', message: expect.stringMatching(/^object: expected an object/) }),
    );
  });

  it.each([[null], [7], [[]], ['x']])('metadata of %j are none', (metadata) => {
    expect(() => new Draft({ metadata } as never)).toThrow(/^object\.metadata: expected an object/);
  });

  it('gets the version of its write, and the bytes that are sent of it', () => {
    for (const [object, expected] of [
      [{ metadata: { name: 'a' }, spec: 1 }, '{"metadata":{"resourceVersion":"7","name":"a"},"spec":1}'],
      [{ metadata: {}, spec: 1 }, '{"metadata":{"resourceVersion":"7"},"spec":1}'],
    ] as const) {
      const made = toObject<KubernetesObject>(new Draft(object as object).value, { key: 'a', revision: '7' });
      expect([made, sent(made)]).toEqual([JSON.parse(expected), expected]);
      const written = new Draft(object as object).at('7');
      expect([written, sent(written)]).toEqual([JSON.parse(expected), expected]);
      const draft = new Draft(object as object as KubernetesObject);
      expect(draft.object.metadata?.resourceVersion).toBe('');
      const decided = draft.at('7');
      expect([decided, sent(decided)]).toEqual([JSON.parse(expected), expected]);
      expect(decided).toBe(draft.object);
    }
  });
});

describe('what is kept instead of something', () => {
  /** What JSON changes, leaves out or asks. */
  const odd = fc.constantFrom<unknown>(
    ...[undefined, -0, Number.NaN, new Date(0), () => 1, Symbol('x'), Object.assign([1], { x: 1 })],
  );
  const sparse: unknown[] = [];
  sparse[2] = 1;
  const values = fc.letrec<{ any: unknown }>((tie) => ({
    any: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      fc.constantFrom<unknown>('', 'a', null, true, 0, 1.5),
      fc.oneof({ weight: 9, arbitrary: fc.constant(1) }, { weight: 1, arbitrary: fc.oneof(odd, fc.constant(sparse)) }),
      fc.array(tie('any'), { maxLength: 3 }),
      fc.dictionary(fc.constantFrom('a', '7', 'toJSON', 'constructor'), tie('any'), { maxKeys: 3 }),
    ),
  })).any;

  type Kept = Record<string, unknown>;
  const kept = (object: object, before?: Kept): Kept => atOnce(preparing(object, before && sharing(before))).copy as Kept;

  it('is what JSON makes of it, of which nothing is the one that was given', () => {
    const property = fc.property(values, values, values, (same, one, other) => {
      const before = kept({ metadata: { name: 'a' }, same, one });
      const object: Kept = { ...before, one: other, two: [before.same] };
      const made = kept(object, before);
      expect(JSON.stringify(made)).toBe(JSON.stringify(kept(object)));
      expect(made).toEqual(kept(object));
      for (const name of ['one', 'two', 'metadata']) {
        const given = object[name];
        expect(typeof given === 'object' && given !== null && given === made[name]).toBe(false);
      }
    });
    fc.assert(property, { numRuns: runs(500) });
  });

  it('is left to the parser if many values would have to be copied at a stretch, whatever is shared', () => {
    const before = kept({ metadata: {}, list: Array.from({ length: 9_000 }, () => ({})), few: [1] });
    const share = sharing(before);
    expect(share({ metadata: {}, list: before.list, few: [2] })).toHaveProperty('list', before.list);
    expect(share({ metadata: {}, list: structuredClone(before.list), few: before.few })).toBeUndefined();
    expect(share({ metadata: {}, list: before.list, few: [3] })).toHaveProperty('list', before.list);
  });

  it('is the new object itself if nobody else has it, unless JSON would change it', () => {
    const property = fc.property(values, (value) => {
      const object = { metadata: { name: 'a' }, value };
      const expected = kept(object);
      const { copy } = atOnce(preparing(object, keeping()));
      expect(JSON.stringify(copy)).toBe(JSON.stringify(expected));
      expect(copy).toEqual(expected);
      expect(Object.keys(copy)).toEqual(Object.keys(expected));
    });
    fc.assert(property, { numRuns: runs(500) });
    const spec = { list: [{ n: 1 }, 'a', null] };
    expect(keeping()({ metadata: {}, spec })).toHaveProperty('spec', spec);
    expect((keeping()({ metadata: {}, spec }) as { spec: object }).spec).toBe(spec);
    for (const odd of [{ a: undefined }, [undefined], -0, Number.NaN, new Date(0), { toJSON: 1 }]) {
      expect(keeping()({ metadata: {}, odd })).toBeUndefined();
    }
  });

  it('is copied without being written, unless JSON would change more of it than leave out what is undefined', () => {
    const isApart = (one: unknown, other: unknown): boolean =>
      !isContainer(one) || (one !== other && Object.entries(one).every(([name, each]) => isApart(each, (other as Kept)[name])));
    const property = fc.property(values, (value) => {
      const object = { value, list: [value] };
      const copy = quickCopy(object);
      if (copy === undefined) return; // left to the parser
      expect(copy).toEqual(JSON.parse(JSON.stringify(object)));
      expect(JSON.stringify(copy)).toBe(JSON.stringify(object));
      expect(isApart(copy, object)).toBe(true);
    });
    fc.assert(property, { numRuns: runs(500) });
    const plain = { a: [1, 'b', null, { c: true, d: undefined }], ['__proto__']: { e: {} } };
    expect(JSON.stringify(quickCopy(plain))).toBe(JSON.stringify(plain));
    for (const odd of [
      [undefined],
      -0,
      Number.NaN,
      new Date(0),
      { toJSON: 1 },
      1n,
      () => {},
      Symbol('s'),
      new Map(),
      new (class {})(),
    ]) {
      expect(quickCopy({ a: { odd } })).toBeUndefined();
    }
    const part = { f: 1 };
    noteConstant(part);
    expect(quickCopy({ part })?.part).toStrictEqual(part);
    expect(quickCopy({ part })?.part).not.toBe(part);
    let deep: object = {};
    for (let depth = 1; depth < 128; depth++) deep = { deep };
    expect(quickCopy(deep)).toStrictEqual(deep);
    expect(quickCopy({ deep })).toBeUndefined();
  });

  it('shares what is the same part of what was kept before', () => {
    const labels = { a: 'b' };
    const before = kept({ metadata: { labels }, list: [{ n: 1 }, { n: 2 }] }) as { metadata: { labels: object }; list: object[] };
    const made = kept({ ...before, list: [...before.list, { n: 3 }] }, before) as typeof before;
    expect(made.list.map((each, at) => each === before.list[at])).toEqual([true, true, false]);
    expect([made.metadata === before.metadata, made.metadata.labels === before.metadata.labels]).toEqual([false, true]);
  });
});

describe('what is read', () => {
  it.each([
    ['{"metadata":{"name":"a"},"x":1}', { metadata: { name: 'a', resourceVersion: '7' }, x: 1 }],
    ['{"x":1}', { metadata: { resourceVersion: '7' }, x: 1 }],
    ['{ "metadata" : { "name" : "a" } }', { metadata: { name: 'a', resourceVersion: '7' } }],
    ['{"metadata":{"name":"a","resourceVersion":"3"}}', { metadata: { name: 'a', resourceVersion: '7' } }],
    ['{"metadata":{"name":"a"},"metadata":{"name":"b"}}', { metadata: { name: 'b', resourceVersion: '7' } }],
    ['{"metadata":{},"x":1}', { metadata: { resourceVersion: '7' }, x: 1 }],
  ])('%s is an object at its revision', (value, expected) => {
    const object = read(value);
    expect(object).toEqual(expected);
    expect(JSON.parse(sent(object))).toEqual(expected);
  });

  it.each([
    ['no JSON', 'is not JSON: '],
    ['{"metadata":{"name":"a"', 'is not JSON: '],
    ['', 'is not JSON: '],
    [Uint8Array.of(0x22, 0xff, 0x22), 'is not JSON: '],
    ['[]', 'is not a JSON object'],
    ['7', 'is not a JSON object'],
    ['null', 'is not a JSON object'],
    ['"x"', 'is not a JSON object'],
    ['{"metadata":7}', 'has metadata that is not an object'],
    ['{"metadata":null}', 'has metadata that is not an object'],
    ['{"metadata":[]}', 'has metadata that is not an object'],
    ['{"metadata":{"name":"a"},"metadata":null}', 'has metadata that is not an object'],
  ])('%j is none: 500, with its key', (value, why) => {
    const status = { code: 500, reason: 'StorageReadError', message: expect.stringContaining(`the value under "/a/ä" ${why}`) };
    expect(() => read(value)).toThrow(expect.objectContaining({ code: 'REFUSED', status: expect.objectContaining(status) }));
  });

  it('the same at another version is another object', () => {
    const object = read('{"metadata":{"name":"a"},"x":1}');
    expect(atVersion(object, '9')).toEqual({ metadata: { name: 'a', resourceVersion: '9' }, x: 1 });
    expect(object.metadata?.resourceVersion).toBe('7');
    expect(atVersion({} as KubernetesObject, '9')).toEqual({ metadata: { resourceVersion: '9' } });
  });
});

describe('a large object at another version', () => {
  const TEXT = 'x'.repeat(20_000);
  const prepared = (object: KubernetesObject): KubernetesObject => atOnce(preparing(object)).at('7').object;
  const drafted = (object: KubernetesObject): KubernetesObject => new Draft(object).at('7');
  const received = ({ metadata, ...more }: KubernetesObject): KubernetesObject => {
    const object = JSON.parse(JSON.stringify({ ...more, metadata: { ...metadata, resourceVersion: '7' } })) as KubernetesObject;
    encoded(object);
    return object;
  };
  const sources = { prepared, drafted, received };

  it.each(Object.entries(sources))('%s: its JSON is copied, not written anew', (_, source) => {
    const other = atVersion(source({ metadata: { name: 'ä' }, spec: TEXT } as KubernetesObject), '1234');
    const expected = { ...other };
    // What is written anew would have it.
    Object.assign(other, { spec: 'changed' });
    expect(encodedBytes(other)).toBe(Buffer.byteLength(sent(other)));
    expect(JSON.parse(sent(other))).toEqual(expected);
    expect(encoded(other)).toBe(encoded(other));
    const again = atVersion(other, '8');
    dropEncoded(again);
    expect([encodedBytes(again), JSON.parse(sent(again)).spec]).toEqual([sent(other).length - 3 + 1, 'changed']);
  });

  it.each(['"', 'ä', '\\', ''])('with a version that is written otherwise, %j, it is written anew', (version) => {
    const object = received({ metadata: { name: 'a' }, spec: TEXT } as KubernetesObject);
    const other = atVersion(object, version);
    expect(JSON.parse(sent(other))).toEqual(other);
    const back = atVersion(other, '7');
    expect(JSON.parse(sent(back))).toEqual(object);
  });

  it('has its own version and no other member that looks like it, wherever its metadata are', () => {
    const look = fc.constantFrom<object>(
      { resourceVersion: '7' },
      { 'x"resourceVersion': '7' },
      { metadata: { resourceVersion: '7' } },
    );
    const member = fc.oneof(look, fc.constant(TEXT), fc.constant('ä"resourceVersion":"7"'), fc.jsonValue({ maxDepth: 2 }));
    const metadata = fc.record({ name: fc.string(), annotations: look }).map((each) => ['metadata', each] as const);
    const members = fc.array(fc.tuple(fc.constantFrom('a', 'b', '1', '__proto__'), member), { maxLength: 4 });
    const object = fc
      .tuple(members, metadata, members)
      .map(([before, own, behind]) => JSON.parse(JSON.stringify(Object.fromEntries([...before, own, ...behind, ['z', TEXT]]))));
    fc.assert(
      fc.property(
        object,
        fc.constantFrom('8', '12345'),
        fc.constantFrom(prepared, drafted, received),
        (given, version, source) => {
          const other = atVersion(source(given), version);
          expect(JSON.parse(sent(other))).toEqual(JSON.parse(JSON.stringify(other)));
        },
      ),
      { numRuns: runs(1_500) },
    );
  });

  it('that another program wrote in an order of its own, too', () => {
    const object = read(`{"metadata":{"name":"a","1":"first"},"x":"${TEXT}"}`);
    dropEncoded(object);
    encoded(object);
    const other = atVersion(object, '9');
    expect(JSON.parse(sent(other))).toEqual(other);
  });
});

it('of what is known of stored parts, that which was noted last is kept, of so many at most', () => {
  const recent = new Recent<number>();
  const parts = Array.from({ length: 60_000 }, () => ({}));
  for (const [at, part] of parts.entries()) recent.set(part, at);
  const known = parts.map((part) => recent.get(part));
  const first = known.findIndex((each) => each !== undefined);
  expect(parts.length - first).toBeGreaterThanOrEqual(16_384);
  expect(parts.length - first).toBeLessThanOrEqual(2 * 16_384);
  expect(known.slice(first)).toEqual(Array.from({ length: parts.length - first }, (_, at) => first + at));
});
