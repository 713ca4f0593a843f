// The patch that a webhook answers with: what is in it, and its limits.
import { describe, expect, test } from 'vitest';
import { jsonPatch, toOperations } from '../../src/apiserver/patch/json-patch.ts';
import { diffing, type PatchOperation } from '../../src/operator/webhooks/json-diff.ts';
import { atOnce } from '../../src/watch/fair-queue.ts';

type Json = Record<string, unknown>;

const patchOf = (before: Json, after: Json): readonly PatchOperation[] => atOnce(diffing(before, after));
const patched = (before: Json, patch: readonly unknown[]): unknown => atOnce(jsonPatch(before, atOnce(toOperations(patch))));

describe('diffing', () => {
  test.each<[what: string, before: Json, after: Json, patch: readonly unknown[]]>([
    ['nothing', { a: [1, { b: 2 }] }, { a: [1, { b: 2 }] }, []],
    ['a new member', {}, { a: null }, [{ op: 'add', path: '/a', value: null }]],
    ['a member less', { a: null, b: 1 }, { b: 1 }, [{ op: 'remove', path: '/a' }]],
    ['another value', { a: 1 }, { a: '1' }, [{ op: 'replace', path: '/a', value: '1' }]],
    ['another type', { a: {} }, { a: [] }, [{ op: 'replace', path: '/a', value: [] }]],
    ['deep inside', { a: { b: { c: 1, d: 2 } } }, { a: { b: { c: 3, d: 2 } } }, [{ op: 'replace', path: '/a/b/c', value: 3 }]],
    ['escapes', { 'a/b~c': 1 }, { 'a/b~c': 2 }, [{ op: 'replace', path: '/a~1b~0c', value: 2 }]],
    ['in the middle', { l: [1, 2, 3] }, { l: [1, 9, 2, 3] }, [{ op: 'add', path: '/l/1', value: 9 }]],
    ['at the end', { l: [1, 2] }, { l: [1, 2, 3] }, [{ op: 'add', path: '/l/2', value: 3 }]],
    [
      'several less',
      { l: [1, 2, 3, 4] },
      { l: [1, 4] },
      [
        { op: 'remove', path: '/l/2' },
        { op: 'remove', path: '/l/1' },
      ],
    ],
    ['in an element', { l: [{ n: 'a', v: 1 }, 2] }, { l: [{ n: 'a', v: 2 }, 2] }, [{ op: 'replace', path: '/l/0/v', value: 2 }]],
  ])('%s', (_, before, after, patch) => {
    expect(patchOf(before, after)).toEqual(patch);
    expect(patched(before, patch)).toEqual(after);
  });

  test('too many operations, and too long paths, become whole members', () => {
    const list = Array.from({ length: 20_000 }, (_, at) => at);
    const many = [
      { small: { a: 1 }, same: 1, list },
      { small: { a: 2 }, same: 1, list: list.map((each) => each + 0.5) },
    ] as const;
    expect(patchOf(...many).map(({ op, path }) => `${op} ${path}`)).toEqual(['replace /small', 'replace /list']);
    const long = 'x'.repeat(100_000);
    const deep = (by: number): Json => ({ kept: 1, at: { [long]: list.slice(0, 100).map((each) => each + by) } });
    const patch = patchOf(deep(0), deep(1));
    expect(patch.map(({ path }) => path)).toEqual(['/at']);
    expect(patched(deep(0), patch)).toEqual(deep(1));
  });

  test('lists in lists, beyond some depth, are replaced', () => {
    const nested = (depth: number, value: number): unknown => (depth === 0 ? value : [0, nested(depth - 1, value), 0]);
    const [before, after] = [{ l: nested(60, 1) }, { l: nested(60, 2) }];
    const patch = patchOf(before, after);
    expect(patch.map(({ path }) => path)).toEqual([`/l${'/1'.repeat(8)}`]);
    expect(patched(before, patch)).toEqual(after);
  });

  test('gives way', () => {
    const wide = (by: number): Json =>
      Object.fromEntries(Array.from({ length: 50_000 }, (_, at) => [`k${at}`, { v: at, at: [at % 9 && by] }]));
    let pauses = 0;
    for (const _ of { [Symbol.iterator]: () => diffing(wide(1), wide(2)) }) pauses++;
    expect(pauses).toBeGreaterThan(100);
  });
});
