import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { jsonPatch, PatchFailure, toOperations } from '../../src/apiserver/patch/json-patch.ts';
import { atOnce } from '../../src/watch/fair-queue.ts';

interface Case {
  readonly comment?: string;
  readonly doc: unknown;
  readonly patch: unknown[];
  readonly expected?: unknown;
  readonly error?: string;
  readonly disabled?: boolean;
}

/** The suite of json-patch/json-patch-tests, which is npm's json-patch-test-suite 1.1.0; Apache-2.0. */
const suite = (name: string): Case[] => JSON.parse(readFileSync(new URL(`./json-patch-tests/${name}`, import.meta.url), 'utf8'));

const apply = (doc: unknown, patch: unknown[], maxCopied?: number): unknown =>
  atOnce(jsonPatch(doc, atOnce(toOperations(patch)), maxCopied));

describe.each(['spec_tests.json', 'tests.json'])('%s of json-patch-test-suite', (file) => {
  const cases = suite(file).map((each, at) => ({ ...each, title: `${at}: ${each.comment ?? JSON.stringify(each.patch)}` }));
  // Kubernetes counts negative numbers from the end.
  const isOther = ({ error }: Case): boolean => error === 'Out of bounds (lower)';
  it.each(cases.filter((each) => !each.disabled && !isOther(each)))('$title', ({ doc, patch, expected, error }) => {
    const before = JSON.stringify(doc);
    if (error !== undefined) expect(() => apply(doc, patch)).toThrow(PatchFailure);
    else {
      const result = apply(doc, patch);
      if (expected !== undefined) expect(result).toEqual(expected);
    }
    expect(JSON.stringify(doc)).toBe(before);
  });
});

describe('jsonPatch', () => {
  it('__proto__ is a name like any other, and what everything inherits stays as it is', () => {
    const doc = JSON.parse('{"data":{"__proto__":"a"}}');
    const patch = [
      { op: 'test', path: '/data/__proto__', value: 'a' },
      { op: 'add', path: '/data/__proto__', value: { polluted: true } },
      { op: 'add', path: '/data/__proto__/more', value: 1 },
    ];
    expect(JSON.stringify(apply(doc, patch))).toBe('{"data":{"__proto__":{"polluted":true,"more":1}}}');
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
    expect(() => apply({}, [{ op: 'add', path: '/__proto__/x', value: 1 }])).toThrow('there is no "__proto__"');
    expect(() => apply({}, [{ op: 'add', path: '/constructor/prototype/x', value: 1 }])).toThrow('there is no "constructor"');
    expect(() => apply([], [{ op: 'add', path: '/length', value: 9 }])).toThrow('there is no element "length"');
  });

  it('a test for null holds where an object has no such member, and nowhere else: so clients ask whether it is there', () => {
    const test = (path: string): object => ({ op: 'test', path, value: null });
    const doc = { metadata: { labels: { a: 'x', none: null } }, list: [1] };
    for (const path of ['/metadata/labels/b', '/metadata/labels/none', '/metadata/labels/constructor', '/spec'])
      expect(apply(doc, [test(path)])).toEqual(doc);
    for (const path of ['/metadata/labels/a', '', '/spec/a', '/list/1', '/list/-', '/metadata/labels/a/b'])
      expect(() => apply(doc, [test(path)]), path).toThrow(PatchFailure);
    expect(() => apply(doc, [{ op: 'test', path: '/spec', value: 0 }])).toThrow(PatchFailure);
  });

  it('what copy adds is bounded, and is in no two places', () => {
    const doubling = Array.from({ length: 40 }, (_, at) => ({ op: 'copy', from: '/a', path: `/a/${at}` }));
    expect(() => apply({ a: { x: 'xxxxxxxxxx' } }, doubling, 10_000)).toThrow('copies more than 10000 characters');
    const patch = [
      { op: 'add', path: '/a/x', value: 1 },
      { op: 'copy', from: '/a', path: '/b' },
      { op: 'replace', path: '/a/x', value: 2 },
    ];
    expect(apply({ a: {} }, patch)).toEqual({ a: { x: 2 }, b: { x: 1 } });
  });

  it('says what is wrong, and where', () => {
    const failure = (doc: unknown, ...patch: unknown[]): unknown => {
      try {
        return apply(doc, patch);
      } catch (error) {
        expect(error).toBeInstanceOf(PatchFailure);
        expect((error as Error).name).toBe('PatchFailure');
        return (error as Error).message;
      }
    };
    const ok = { op: 'test', path: '', value: {} };
    expect(failure({}, ok, [])).toBe('operation 1 is not an object');
    expect(failure({}, ok, { op: 'add', path: '/a' })).toBe('operation 1, add, has no value');
    expect(failure({}, { op: 'replace', path: '/a' })).toBe('operation 0, replace, has no value');
    expect(failure({}, { op: 'test', path: '/a' })).toBe('operation 0, test, has no value');
    expect(failure({}, { op: 'constructor', path: '/a', value: 1 })).toBe('operation 0 has an unknown op');
    for (const path of [undefined, null, 'a', 'a/', '/~', '/~2', '/a~'])
      expect(failure({}, { op: 'remove', path })).toBe('the path of operation 0 is not a JSON pointer');
    expect(failure({}, { op: 'remove', path: 7 })).toBe('path of operation 0 is not a string');
    expect(failure({}, ok, { op: 'move', path: '/a' })).toBe('the from of operation 1 is not a JSON pointer');
    expect(failure({ 'a/b': { '~': 1 } }, { op: 'test', path: '/a~1b/~0', value: 2 })).toBe('test failed at "/a~1b/~0"');
    expect(failure({ a: 'x' }, { op: 'add', path: '/a/b', value: 1 })).toBe('"/a/b" is inside a value without members');
    expect(failure({}, { op: 'test', path: `/${'x'.repeat(300)}`, value: 1 })).toBe(`there is no "${'x'.repeat(200)}"`);
    expect(failure([], { op: 'remove', path: `/${'9'.repeat(60)}` })).toBe(`there is no element "${'9'.repeat(40)}"`);
    const long = { ['x'.repeat(300)]: 1 };
    expect(failure(long, { op: 'test', path: `/${'x'.repeat(300)}`, value: 2 })).toBe(`test failed at "/${'x'.repeat(199)}"`);
  });

  it.each([
    ['/1', 'there is no element "1"'],
    ['/-', 'there is no element "-"'],
    ['/-3', 'there is no element "-3"'],
    ['/-0', 'there is no element "-0"'],
    ['/1e0', 'there is no element "1e0"'],
    ['/00', 'there is no element "00"'],
    ['/', 'there is no element ""'],
  ])('%s is no element of a list of one', (path, message) => {
    for (const op of ['remove', 'replace', 'test']) expect(() => apply([1], [{ op, path, value: 1 }])).toThrow(message);
    for (const op of ['move', 'copy']) expect(() => apply([1], [{ op, from: path, path: '/0' }])).toThrow(message);
    if (path !== '/1' && path !== '/-') expect(() => apply([1], [{ op: 'add', path, value: 1 }])).toThrow(message);
  });

  it('adds at any place of a list, and behind its end; a list of ten has an element 10 behind it', () => {
    expect(apply([1, 3], [{ op: 'add', path: '/1', value: 2 }])).toEqual([1, 2, 3]);
    expect(apply([1], [{ op: 'add', path: '/1', value: 2 }])).toEqual([1, 2]);
    expect(apply([1], [{ op: 'add', path: '/-', value: 2 }])).toEqual([1, 2]);
    expect(() => apply([1], [{ op: 'add', path: '/2', value: 2 }])).toThrow('there is no element "2"');
    const ten = Array.from({ length: 10 }, (_, at) => at);
    expect(apply(ten, [{ op: 'add', path: '/10', value: 10 }])).toEqual([...ten, 10]);
    expect(apply(ten, [{ op: 'replace', path: '/9', value: 'last' }])).toEqual([...ten.slice(0, 9), 'last']);
  });

  it('a negative number counts from the end of a list, as in Kubernetes, also on the way', () => {
    expect(apply([1, 2], [{ op: 'replace', path: '/-1', value: 3 }])).toEqual([1, 3]);
    expect(apply([1, 2], [{ op: 'remove', path: '/-2' }])).toEqual([2]);
    expect(apply([1, 2], [{ op: 'test', path: '/-1', value: 2 }])).toEqual([1, 2]);
    expect(apply([1, 2], [{ op: 'copy', from: '/-1', path: '/-3' }])).toEqual([2, 1, 2]);
    expect(apply([1, 2], [{ op: 'add', path: '/-1', value: 3 }])).toEqual([1, 2, 3]);
    expect(apply([{ a: 1 }, { b: 1 }], [{ op: 'add', path: '/-1/c', value: 2 }])).toEqual([{ a: 1 }, { b: 1, c: 2 }]);
  });

  it('a member that is not there is added by replace, and copied as null, as in Kubernetes; nothing else is', () => {
    expect(apply({ a: {} }, [{ op: 'replace', path: '/a/b', value: 1 }])).toEqual({ a: { b: 1 } });
    expect(apply({ a: {} }, [{ op: 'copy', from: '/a/b', path: '/c' }])).toEqual({ a: {}, c: null });
    expect(() => apply({}, [{ op: 'replace', path: '/a/b', value: 1 }])).toThrow('there is no "a"');
    expect(() => apply({}, [{ op: 'copy', from: '/a/b', path: '/c' }])).toThrow('there is no "a"');
  });

  it('what is not there cannot be removed or moved', () => {
    expect(() => apply({ a: {} }, [{ op: 'remove', path: '/a/b' }])).toThrow('there is no "b"');
    for (const op of ['remove', 'replace'])
      expect(() => apply({ a: 1 }, [{ op, path: '/a/b', value: 1 }])).toThrow('is inside a value without members');
    expect(() => apply({}, [{ op: 'move', from: '/a', path: '/b' }])).toThrow('there is no "a"');
    expect(() => apply({}, [{ op: 'remove', path: '/toString' }])).toThrow('there is no "toString"');
  });

  it('the whole document can be replaced, copied and moved', () => {
    expect(apply({ a: 1 }, [{ op: 'replace', path: '', value: 2 }])).toBe(2);
    expect(apply({ a: 1 }, [{ op: 'add', path: '', value: [] }])).toEqual([]);
    expect(apply({ a: { b: 1 } }, [{ op: 'move', from: '/a', path: '' }])).toEqual({ b: 1 });
    expect(apply({ a: { b: 1 } }, [{ op: 'copy', from: '/a', path: '' }])).toEqual({ b: 1 });
    expect(apply({ a: 1 }, [{ op: 'move', from: '', path: '' }])).toEqual({ a: 1 });
    expect(apply({ a: 1 }, [{ op: 'copy', from: '', path: '/b' }])).toEqual({ a: 1, b: { a: 1 } });
    expect(() => apply({ a: 1 }, [{ op: 'move', from: '', path: '/b' }])).toThrow('cannot move "" into itself');
    expect(apply({ a: 1, ab: 2 }, [{ op: 'move', from: '/a', path: '/ab' }])).toEqual({ ab: 1 });
  });

  it.each([
    [{ a: 1, b: [2] }, { b: [2], a: 1 }, true],
    [{ a: 1 }, { a: 1, b: 2 }, false],
    [{ a: 1, b: 2 }, { a: 1 }, false],
    [{ a: 1 }, { b: 1 }, false],
    [[1, 2], [1, 2], true],
    [[1, 2], [2, 1], false],
    [[1, 2], [1, 3], false],
    [[1], [1, 2], false],
    [[1, 2], [1], false],
    [[], {}, false],
    [{}, [], false],
    [['a'], { 0: 'a' }, false],
    [null, null, true],
    [null, {}, false],
    [{}, null, false],
    [0, '0', false],
    [JSON.parse('{"__proto__":{}}'), { a: 1 }, false],
  ])('test: %j is %j: %s', (value, expected, same) => {
    const test = (): unknown => apply({ a: value }, [{ op: 'test', path: '/a', value: expected }]);
    if (same) expect(test()).toEqual({ a: value });
    else expect(test).toThrow('test failed at "/a"');
  });

  it('a member __proto__ can be replaced and removed again', () => {
    const add = { op: 'add', path: '/__proto__', value: 1 };
    expect(JSON.stringify(apply({}, [add, { op: 'replace', path: '/__proto__', value: 2 }]))).toBe('{"__proto__":2}');
    expect(JSON.stringify(apply({}, [add, { op: 'remove', path: '/__proto__' }]))).toBe('{}');
  });

  it('what goes in at the front of a long list moves all of it, which has a limit', () => {
    const list = new Array(2 ** 20).fill(0);
    const patch = (count: number, path: string): unknown[] => new Array(count).fill({ op: 'add', path, value: 1 });
    expect(apply(list, patch(255, '/0'))).toHaveLength(2 ** 20 + 255);
    expect(apply(list, patch(300, '/-'))).toHaveLength(2 ** 20 + 300);
    expect(() => apply(list, patch(256, '/0'))).toThrow('moves more than 268435456 elements of arrays');
  });

  it('what is copied counts once for each copy, up to the limit', () => {
    const copy = { op: 'copy', from: '/a', path: '/b' };
    expect(apply({ a: 'x'.repeat(8) }, [copy, copy], 20)).toEqual({ a: 'x'.repeat(8), b: 'x'.repeat(8) });
    expect(() => apply({ a: 'x'.repeat(8) }, [copy, copy], 19)).toThrow('copies more than 19 characters');
  });

  it('values of the patch are not changed by later operations, so it can be applied again', () => {
    const operations = atOnce(
      toOperations([
        { op: 'add', path: '/list', value: [] },
        { op: 'add', path: '/list/-', value: 1 },
      ]),
    );
    expect(atOnce(jsonPatch({}, operations))).toEqual({ list: [1] });
    expect(atOnce(jsonPatch({}, operations))).toEqual({ list: [1] });
  });

  it('an array is copied once, however many operations are on it', () => {
    const list = Array.from({ length: 1000 }, (_, at) => at);
    const patch = Array.from({ length: 500 }, () => ({ op: 'remove', path: '/list/0' }));
    expect(apply({ list }, patch)).toEqual({ list: list.slice(500) });
    expect(list).toHaveLength(1000);
  });

  it('refuses pointers and operations that are none', () => {
    for (const each of [null, 1, {}, { op: 'add' }, { op: 'add', path: 'a', value: 1 }, { op: 'add', path: '/~2', value: 1 }]) {
      expect(() => apply({}, [each])).toThrow(PatchFailure);
    }
    expect(() => apply({ a: 1 }, [{ op: 'remove', path: '' }])).toThrow('the document itself cannot be removed');
    expect(() => apply({ a: {} }, [{ op: 'move', from: '/a', path: '/a/b' }])).toThrow('cannot move "/a" into itself');
    expect(() => apply({ a: 'text' }, [{ op: 'add', path: '/a/b', value: 1 }])).toThrow('is inside a value without members');
    expect(() => apply([1], [{ op: 'replace', path: '/01', value: 1 }])).toThrow('there is no element "01"');
    expect(() => apply([1], [{ op: 'replace', path: '/1', value: 1 }])).toThrow('there is no element "1"');
  });
});
