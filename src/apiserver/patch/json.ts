/** JSON values as patches handle them: copied, compared, and set under any name without harm. */
import { refused } from '../../storage/statuses.ts';

/** An object of JSON. */
export type JsonObject = Record<string, unknown>;

/** The deepest nesting of a patch's result. No honest patch comes near, and deeper values would exhaust the stack. */
const MAX_DEPTH = 200;

/** Whether a value is an object, and not an array. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The own value of an object under a name: undefined for `constructor`, unless the object itself has one. */
export function ownValue(object: JsonObject, name: string): unknown {
  return Object.hasOwn(object, name) ? object[name] : undefined;
}

/** Sets an own value. A plain assignment to `__proto__` would change what the object inherits. */
export function setOwnValue(object: JsonObject, name: string, value: unknown): void {
  if (name === '__proto__') {
    Object.defineProperty(object, name, { value, enumerable: true, configurable: true, writable: true });
  } else object[name] = value;
}

/** A copy of an object, but not of its values. */
export function shallowCopy(object: JsonObject): JsonObject {
  return { ...object };
}

/** Whether two values are the same JSON, whatever the order of names. */
export function isSameJson(one: unknown, other: unknown): boolean {
  if (one === other) return true;
  if (Array.isArray(one)) {
    return Array.isArray(other) && one.length === other.length && one.every((value, at) => isSameJson(value, other[at]));
  }
  if (!isObject(one) || !isObject(other)) return false;
  const names = Object.keys(one);
  return (
    names.length === Object.keys(other).length &&
    names.every((name) => Object.hasOwn(other, name) && isSameJson(one[name], other[name]))
  );
}

/** Throws 400 if a value is nested too deeply. Does not recurse itself. Returns how many values it consists of. */
export function checkDepth(value: unknown): number {
  let parts = 1;
  let level: object[] = isContainer(value) ? [value] : [];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth >= MAX_DEPTH) throw refused(400, 'BadRequest', `the patch is nested more than ${MAX_DEPTH} deep`);
    const below: object[] = [];
    for (const each of level) {
      const values: readonly unknown[] = Array.isArray(each) ? each : Object.values(each);
      parts += values.length;
      for (const one of values) if (isContainer(one)) below.push(one);
    }
    level = below;
  }
  return parts;
}

function isContainer(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}
