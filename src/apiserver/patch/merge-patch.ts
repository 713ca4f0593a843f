/** JSON values as patches handle them: copied and measured, in pieces. */

import { put, walking } from '../../storage/json.ts';
import { refused } from '../../storage/statuses.ts';
import { isRecord } from '../../watch/errors.ts';
import { STRIDE, type Work } from '../../watch/fair-queue.ts';

export type JsonObject = Record<string, unknown>;

/** The deepest nesting of a patch's result. Real patches do not come near it, and deeper values would exhaust the stack. */
const MAX_DEPTH = 200;

/** The object's own value under a name: undefined for `constructor`, unless the object itself has such a member. */
export function ownValue(object: JsonObject, name: string): unknown {
  return Object.hasOwn(object, name) ? object[name] : undefined;
}

/** A shallow copy of an object, which may be changed. */
export function* copyingMembers(object: JsonObject): Work<JsonObject> {
  const names = Object.keys(object);
  if (names.length < STRIDE) return { ...object };
  const copy: JsonObject = {};
  for (const [at, name] of names.entries()) {
    put(copy, name, object[name]);
    if (at % STRIDE === 0) yield;
  }
  return copy;
}

/** Throws 400 if a value is nested too deeply. Returns how many values it consists of. */
export function* checkingDepth(value: unknown): Work<number> {
  let parts = 1;
  yield* walking(value, (_, size, depth) => {
    if (depth >= MAX_DEPTH) throw refused(400, 'BadRequest', `the patch is nested more than ${MAX_DEPTH} deep`);
    parts += size;
  });
  return parts;
}

/**
 * RFC 7386: a patch in the form of the object. null removes; objects are merged; anything else replaces. Returns the result of
 * applying it to a value. Neither is changed, but the result may share parts with both.
 *
 * As upstream, and other than in the RFC, null also removes within the objects of a list.
 */
export function* mergePatch(current: unknown, patch: unknown): Work<unknown> {
  if (!isRecord(patch)) return Array.isArray(patch) ? yield* withoutNulls(patch) : patch;
  const result: JsonObject = isRecord(current) ? yield* copyingMembers(current) : {};
  for (const [at, name] of Object.keys(patch).entries()) {
    const value = patch[name];
    if (value === null) delete result[name];
    else put(result, name, typeof value === 'object' ? yield* mergePatch(ownValue(result, name), value) : value);
    if (at % STRIDE === STRIDE - 1) yield;
  }
  return result;
}

/** A list, of whose objects no member is null. Elements that are null stay. */
function* withoutNulls(list: readonly unknown[]): Work<readonly unknown[]> {
  const result: unknown[] = [];
  for (const [at, each] of list.entries()) {
    result.push(typeof each === 'object' ? yield* mergePatch(undefined, each) : each);
    if (at % STRIDE === STRIDE - 1) yield;
  }
  return result;
}
