/** RFC 7386: a patch that looks like the object. null removes; objects are merged; everything else replaces. */
import { put } from '../../storage/json.ts';
import { STRIDE, type Work } from '../../watch/fair-queue.ts';
import { copyingMembers, isObject, type JsonObject, ownValue } from './json.ts';

/** Returns the result of applying the patch to a value. Neither is changed, but the result may share parts with both. */
export function* mergePatch(current: unknown, patch: unknown): Work<unknown> {
  if (!isObject(patch)) return patch;
  const result: JsonObject = isObject(current) ? yield* copyingMembers(current) : {};
  for (const [at, name] of Object.keys(patch).entries()) {
    const value = patch[name];
    if (value === null) delete result[name];
    else put(result, name, isObject(value) ? yield* mergePatch(ownValue(result, name), value) : value);
    if (at % STRIDE === STRIDE - 1) yield;
  }
  return result;
}
