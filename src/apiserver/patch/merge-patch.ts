/** RFC 7386: a patch that looks like the object. null removes; objects are merged; everything else replaces. */
import { isObject, type JsonObject, ownValue, setOwnValue, shallowCopy } from './json.ts';

/** Returns the result of applying the patch to a value. Neither is changed, but the result may share parts with both. */
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
