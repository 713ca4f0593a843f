// Keys, continue tokens, values, sorted entries and selections: what may come over a wire is taken for nothing but itself.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { isWatchError } from '../../src/index.ts';
import { checkKey, checkPrefix } from '../../src/storage/keys.ts';
import { Pending } from '../../src/storage/life.ts';
import { Expiry } from '../../src/storage/memory/writer.ts';
import {
  continueAfter,
  decodeContinue,
  encodeContinue,
  parseVersion,
  planList,
  planWatch,
  predicateOf,
} from '../../src/storage/requests.ts';
import { comparingContent, copyOf, encoded, preparing } from '../../src/storage/values.ts';
import { FakeClock } from '../../src/testing/index.ts';
import { atOnce } from '../../src/watch/fair-queue.ts';
import { runs } from '../runs.ts';

const RUNS = runs(1_500);
const isSameContent = (...both: Parameters<typeof comparingContent>): boolean => atOnce(comparingContent(...both));
const codeOf = (run: () => unknown): unknown => {
  try {
    return run();
  } catch (error) {
    return isWatchError(error, 'REFUSED') ? error.status?.code : isWatchError(error) ? error.code : error;
  }
};

describe('a key', () => {
  test.each(['a', 'a/b/c', '...', '.a', 'a.', '..a/b', 'x'.repeat(1_024)])('may be %s', (key) => {
    expect(checkKey(key)).toBe(key);
    if (key.length < 1_024) expect(checkPrefix(`${key}/`)).toBe(`${key}/`);
  });

  test.each(['', '/', '//', '.', '..', 'a/', '/a', 'a//b', 'a/.', 'a/..', '../a', 'a/./b', 'x'.repeat(1_025)])(
    'may not be %s',
    (key) => {
      expect(codeOf(() => checkKey(key))).toBe(400);
      expect(codeOf(() => checkPrefix(`${key}/`))).toBe('INVALID_ARGUMENT');
      if (key !== 'a/') expect(codeOf(() => checkPrefix(key))).toBe('INVALID_ARGUMENT');
    },
  );

  test('that is none is named, and so is what was expected', () => {
    const long = 'a'.repeat(2_000);
    for (const [key, text] of [
      ['a//b', '"a//b"; expected segments between slashes'],
      [long, `"${'a'.repeat(80)}"; expected at most 1024 characters`],
      [7, 'number; expected segments between slashes'],
    ] as const) {
      expect(() => checkKey(key as string)).toThrow(`not a key: ${text}`);
    }
    for (const [version, text] of [
      [2, '2 is not a string'],
      ['b', '"b" is not a decimal number'],
    ] as const) {
      expect(() => parseVersion(version as string)).toThrow(`Invalid resource version: ${text}`);
    }
  });

  test('is a string', () => {
    for (const key of [undefined, null, 7, {}, ['a']]) expect(codeOf(() => checkKey(key as string))).toBe(400);
  });
});

describe('a continue', () => {
  test('is upstream\u2019s text, relative to the scope', () => {
    const token = continueAfter('a', { revision: '7' });
    expect(Buffer.from(token, 'base64url').toString()).toBe('{"v":"meta.k8s.io/v1","rv":7,"start":"a\\u0000"}');
    expect(token).not.toMatch(/[+/=]/);
  });

  test('comes back as it was, whatever the key', () => {
    const segment = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 20 }).filter((text) => !/^\.{1,2}$|\//.test(text));
    const key = fc.array(segment, { minLength: 1, maxLength: 3 }).map((parts) => parts.join('/'));
    const revision = fc.oneof(fc.constant(undefined), fc.bigInt(1n, 2n ** 128n - 1n).map(String));
    const left = fc.option(fc.nat(), { nil: undefined });
    fc.assert(
      fc.property(key, revision, left, (start, revision, left) => {
        expect(decodeContinue(encodeContinue({ start, revision, left }))).toEqual({ start, revision, left });
        expect(decodeContinue(continueAfter(start, { revision, left })).start).toBe(`${start}\0`);
      }),
      { numRuns: RUNS },
    );
  });

  test('is refused with 400 if it is anything else', () => {
    const of = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');
    const v = 'meta.k8s.io/v1';
    for (const token of [
      '',
      '!',
      'x'.repeat(10_000),
      of(null),
      of([]),
      of({ v, rv: 7 }),
      of({ v, rv: 7, start: '' }),
      of({ v, rv: 0, start: 'a' }),
      of({ v, rv: -2, start: 'a' }),
      of({ v, rv: '7', start: 'a' }),
      of({ v, rv: 1.5, start: 'a' }),
      of({ v: 'v2', rv: 7, start: 'a' }),
      of({ v, rv: 7, start: '../a' }),
      of({ v, rv: 7, start: '/a' }),
      of({ v, rv: 7, start: 7 }),
      7 as unknown as string,
    ]) {
      expect(codeOf(() => decodeContinue(token))).toBe(400);
    }
    fc.assert(
      fc.property(fc.string(), (text) => {
        const found = codeOf(() => decodeContinue(text));
        expect(found === 400 || typeof found === 'object').toBe(true);
      }),
      { numRuns: RUNS },
    );
  });
});

describe('what a request says', () => {
  test.each([
    ['0', undefined],
    ['', undefined],
    ['007', '7'],
    ['340282366920938463463374607431768211455', '340282366920938463463374607431768211455'],
    ['-1', 400],
    ['1e3', 400],
    [' 7', 400],
    ['0x7', 400],
    ['9'.repeat(40), 400],
  ])('version %j', (version, expected) => {
    expect(codeOf(() => parseVersion(version))).toBe(expected);
  });

  test('a list of a version with a limit is just that version; without, not older', () => {
    expect(planList({ resourceVersion: '7', limit: 2 })).toMatchObject({ exact: '7', atLeast: undefined });
    expect(planList({ resourceVersion: '7' })).toMatchObject({ exact: undefined, atLeast: '7' });
    expect(planList({ resourceVersion: '7', limit: 2, resourceVersionMatch: 'NotOlderThan' })).toMatchObject({ atLeast: '7' });
    expect(planList({ resourceVersion: '0', limit: 2 })).toMatchObject({ exact: undefined, atLeast: undefined });
  });

  test('a watch of the first state needs its BOOKMARK', () => {
    expect(codeOf(() => planWatch({ sendInitialEvents: true, allowWatchBookmarks: false }))).toBe(400);
    expect(codeOf(() => planWatch({ resourceVersionMatch: 'Exact', resourceVersion: '7' }))).toBe(400);
    expect(planWatch({ sendInitialEvents: true })).toMatchObject({ marksEnd: true, bookmarks: true, after: undefined });
    expect(planWatch({ resourceVersion: '7' })).toMatchObject({ after: '7', bookmarks: false });
  });

  test('a field that is not named, or that every object has, is refused', () => {
    for (const fieldSelector of ['spec.x=1', 'toString=1', '__proto__=1', 'constructor!=1']) {
      expect(codeOf(() => predicateOf({ fieldSelector }, {}))).toBe(400);
    }
    expect(predicateOf({ fieldSelector: 'x=' }, { x: () => undefined }).matches({})).toBe(true);
  });
});

describe('a value', () => {
  test('is what JSON has of an object, at a version', () => {
    const date = new Date(0);
    const { object, bytes } = atOnce(preparing({ metadata: { name: 'a', resourceVersion: '3', creationTimestamp: date } })).at(
      '7',
    );
    expect(object).toEqual({ metadata: { name: 'a', creationTimestamp: date.toISOString(), resourceVersion: '7' } });
    expect(new TextDecoder().decode(encoded(object))).toBe(JSON.stringify(object));
    expect(encoded(object).byteLength).toBe(bytes);
    expect(encoded(object)).toBe(encoded(object));
    class Own {
      toJSON(): object {
        return { metadata: { name: 'own' } };
      }
    }
    expect(atOnce(preparing(new Own() as object)).at('1').object).toEqual({ metadata: { name: 'own', resourceVersion: '1' } });
  });

  test('is copied to the context', () => {
    const value = { a: [{ b: 1 }, [2]] };
    const copy = copyOf(value);
    expect(copy).toEqual(value);
    expect([copy.a === value.a, copy.a[0] === value.a[0], copy.a[1] === value.a[1]]).toEqual([false, false, false]);
  });

  test('is an object', () => {
    for (const wrong of [undefined, null, 7, 'a', [], { metadata: 7 }, { metadata: [] }]) {
      expect(codeOf(() => atOnce(preparing(wrong as object)))).toBe('INVALID_ARGUMENT');
    }
  });

  test('is copied and compared as what it is, whatever names it has', () => {
    const json = fc.jsonValue({ maxDepth: 4 }).map((value) => ({ metadata: {}, value: JSON.parse(JSON.stringify(value)) }));
    fc.assert(
      fc.property(json, json, (one, other) => {
        const copy = copyOf(one);
        expect(JSON.stringify(copy)).toBe(JSON.stringify(one));
        expect(copy === one).toBe(false);
        expect(isSameContent(one, copy)).toBe(true);
        expect(isSameContent(one, other)).toBe(isEqual(one, other));
      }),
      { numRuns: RUNS },
    );
    const hostile = JSON.parse('{"metadata":{},"__proto__":{"polluted":true}}');
    const copy = copyOf(hostile) as { polluted?: unknown };
    expect([copy.polluted, Object.hasOwn(copy, '__proto__'), ({} as typeof copy).polluted]).toEqual([undefined, true, undefined]);
    expect(isSameContent(hostile, JSON.parse('{"metadata":{},"x":1}'))).toBe(false);
    const versions = [
      { metadata: { name: 'a', resourceVersion: '1' } },
      { metadata: { resourceVersion: '2', name: 'a' } },
    ] as const;
    expect(isSameContent(...versions)).toBe(true);
  });
});

test.each([
  [{ a: {} }, { a: 1 }, false],
  [{ a: 1 }, { a: {} }, false],
  [{ a: [] }, { a: {} }, false],
  [{ a: {} }, { a: [] }, false],
  [{ a: null }, { a: {} }, false],
  [{ a: [1, 2] }, { a: [1, 3] }, false],
  [{ a: [1, 2] }, { a: [1] }, false],
  [{ a: { b: 1 } }, { a: { b: 1, c: 2 } }, false],
  [{ a: { b: 1, c: 2 } }, { a: { c: 2, b: 1 } }, true],
  [{ a: [{ b: [1] }] }, { a: [{ b: [1] }] }, true],
])('%j has the content of %j: %s', (one, other, same) => {
  expect(isSameContent(one as object, other as object)).toBe(same);
});

const isEqual = (one: unknown, other: unknown): boolean => {
  try {
    expect(one).toEqual(other);
    return true;
  } catch {
    return false;
  }
};

describe('deadlines', () => {
  test('are met in their order by one timer, and an early timer is set again', () => {
    const clock = new FakeClock();
    const due: string[] = [];
    const expiry = new Expiry(clock, (key) => due.push(key));
    for (const [key, ms] of [
      ['a', 30],
      ['b', 10],
      ['c', 20],
      ['d', 20],
    ] as const)
      expiry.set(key, ms);
    expect(clock.pending).toBe(1);
    expiry.set('d', undefined);
    expiry.set('a', 15);
    clock.advance(10);
    expect(due).toEqual(['b']);
    expect(expiry.left('c')).toBe(10);
    clock.advance(100);
    expect(due).toEqual(['b', 'a', 'c']);
    expect([expiry.size, clock.pending]).toEqual([0, 0]);
    expiry.set('e', 5);
    expiry.clear();
    expect([expiry.size, clock.pending]).toEqual([0, 0]);
  });
});

describe('what pends', () => {
  test('ends by its signal, by the close, or by itself, and leaves nothing', async () => {
    const pending = new Pending();
    const never = new Promise<never>(() => {});
    const abort = new AbortController();
    const waits = [
      pending.until(never, abort.signal),
      pending.until(never, undefined),
      pending.until(Promise.resolve(1), abort.signal),
    ];
    const settled = Promise.allSettled(waits);
    await waits[2];
    abort.abort('enough');
    pending.close();
    expect((await settled).map((each) => (each.status === 'fulfilled' ? each.value : (each.reason.code ?? each.reason)))).toEqual(
      ['enough', 'CLOSED', 1],
    );
    expect(pending.size).toBe(0);
    await expect(pending.until(never, undefined)).rejects.toMatchObject({ code: 'CLOSED' });
    expect(() => pending.check(undefined)).toThrow('closed');
  });
});
