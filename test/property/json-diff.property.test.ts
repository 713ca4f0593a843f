// Exact: the patch of a change, applied by a server's own JSON patch, makes exactly the changed object. What is equal is not in it.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { jsonPatch, toOperations } from '../../src/apiserver/patch/json-patch.ts';
import { diffing, type PatchOperation } from '../../src/operator/webhooks/json-diff.ts';
import { atOnce } from '../../src/watch/fair-queue.ts';
import { runs } from '../runs.ts';
import { canonical, edited, type Json, json, object, value } from './json-edits.ts';

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
    const property = fc.property(edited, ({ before, after }) => check(before, after));
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
