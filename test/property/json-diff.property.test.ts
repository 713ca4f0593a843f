// Exact: the patch of a change, applied by a server's own JSON patch, makes exactly the changed object. What is equal is not in it.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { jsonPatch, toOperations } from '../../src/apiserver/patch/json-patch.ts';
import { diffing, type PatchOperation } from '../../src/operator/webhooks/json-diff.ts';
import { atOnce } from '../../src/watch/fair-queue.ts';
import { runs } from '../runs.ts';

type Json = Record<string, unknown>;

const NAMES = ['a', 'b', 'a/b', 'm~n', '~1', '', '-', '0', '1', '__proto__', 'constructor', 'ä'];
const name = fc.oneof(fc.constantFrom(...NAMES), fc.string({ maxLength: 3 }));
const { value } = fc.letrec<{ value: unknown; object: Json }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.oneof(fc.constant(null), fc.boolean(), fc.integer({ min: -3, max: 3 }), fc.string({ maxLength: 2 })),
    fc.array(tie('value'), { maxLength: 6 }),
    tie('object'),
  ),
  object: fc.dictionary(name, tie('value'), { maxKeys: 5, noNullPrototype: true }),
}));
const object = fc.dictionary(name, value, { maxKeys: 5, noNullPrototype: true });

/** As it comes out of JSON, where `__proto__` is a member. */
const json = <T>(made: T): T => JSON.parse(JSON.stringify(made)) as T;

/** Values with the same text are the same: a member `constructor` misleads matchers. */
function canonical(whole: unknown): string {
  if (Array.isArray(whole)) return `[${whole.map(canonical).join()}]`;
  if (typeof whole !== 'object' || whole === null) return JSON.stringify(whole);
  const members = Object.entries(whole).map(([each, inner]) => `${JSON.stringify(each)}:${canonical(inner)}`);
  return `{${members.sort().join()}}`;
}

/** A value with a few changes somewhere in it. */
function changed(whole: unknown, [seed = 0, ...more]: readonly number[], other: unknown): unknown {
  if (more.length === 0 || typeof whole !== 'object' || whole === null) return other;
  const names = Object.keys(whole);
  const at = names[seed % Math.max(names.length, 1)];
  if (Array.isArray(whole)) {
    const copy = [...whole];
    const index = seed % (whole.length + 1);
    if (seed % 3 === 0) copy.splice(index, 0, other);
    else if (seed % 3 === 1) copy.splice(index, 1 + (seed % 2));
    else if (index < copy.length) copy[index] = changed(copy[index], more, other);
    return copy;
  }
  const kept = Object.entries(whole).filter(([each]) => seed % 4 !== 0 || each !== at);
  const entries = kept.map(([each, old]) => [each, each === at ? changed(old, more, other) : old]);
  if (seed % 4 === 1) entries.push([NAMES[seed % NAMES.length], other]);
  return Object.fromEntries(entries);
}

const patchOf = (before: Json, after: Json): readonly PatchOperation[] => json(atOnce(diffing(before, after)));
const patched = (before: Json, patch: readonly unknown[]): unknown => atOnce(jsonPatch(before, atOnce(toOperations(patch))));

function check(before: Json, after: Json): void {
  const patch = patchOf(before, after);
  const copy = json(before);
  expect(canonical(patched(before, patch))).toBe(canonical(after));
  expect(canonical(before)).toBe(canonical(copy));
  for (const each of patch) if (each.op !== 'remove') expect(each.value).not.toBe(undefined);
}

describe('diffing', () => {
  test('makes any object of any other', () => {
    const property = fc.property(object, object, (before, after) => check(json(before), json(after)));
    fc.assert(property, { numRuns: runs(3_000) });
  });

  test('makes an object with a few changes of the one before', () => {
    const edits = fc.array(fc.tuple(fc.array(fc.nat(40), { minLength: 1, maxLength: 5 }), value), { minLength: 1, maxLength: 4 });
    const property = fc.property(object, edits, (before, all) => {
      let after: unknown = json(before);
      for (const [seeds, other] of all) after = changed(after, [...seeds, 0], other);
      check(json(before), json(after) as Json);
    });
    fc.assert(property, { numRuns: runs(3_000) });
  });

  test('an object and itself, in another order, have no patch', () => {
    const property = fc.property(object, (before) => {
      const turned = Object.fromEntries(Object.entries(json(before)).reverse());
      expect(patchOf(json(before), turned)).toEqual([]);
    });
    fc.assert(property, { numRuns: runs(500) });
  });

  test('an element that is inserted into or removed from a list is one operation', () => {
    const property = fc.property(fc.array(value, { maxLength: 8 }), value, fc.nat(8), (list, extra, seed) => {
      const at = seed % (list.length + 1);
      const longer = json({ list: [...list.slice(0, at), extra, ...list.slice(at)] });
      expect(patchOf(json({ list }), longer)).toHaveLength(1);
      expect(patchOf(longer, json({ list }))).toHaveLength(1);
    });
    fc.assert(property, { numRuns: runs(500) });
  });
});
