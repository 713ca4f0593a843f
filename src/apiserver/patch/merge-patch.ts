/** RFC 7386: a patch that looks like the object. null removes; objects are merged; everything else replaces. */
import { isObject, type JsonObject, ownValue, setOwnValue, shallowCopy } from './json.ts';

/** Returns what the patch makes of a value. Neither is changed, but what comes out may share parts with both. */
export function mergePatch(current: unknown, patch: unknown): unknown {
  if (!isObject(patch)) return patch;
  const result: JsonObject = isObject(current) ? shallowCopy(current) : {};
  for (const name of Object.keys(patch)) {
    const value = patch[name];
    if (value === null) delete result[name];
    else setOwnValue(result, name, mergePatch(ownValue(result, name), value));
  }
  return result;
}
