/**
 * Whether a server would see two values as the same, so that nothing has to be written. Values are compared as JSON sends them.
 *
 * - The order of members does not matter; that of elements does.
 * - A member that is null or undefined is as one that is absent. So is what JSON does not send: a function, NaN. Only in a map of
 *   texts does a server take null for an empty one, which is better written as that.
 * - An empty object, list or text is a value: `emptyDir: {}` is a volume, `podSelector: {}` selects all, and a custom resource
 *   keeps `[]` and `''` as they were written. Only directly in an object's `metadata` are they as absent, since a server leaves them
 *   out there, whatever the kind.
 * - What a server rewrites is different: `1000m` for `1`, or a list in another order. If in doubt, the answer is no: a write
 *   that was not needed changes nothing at the server, and one that is left out is never made.
 *
 * It neither recurses nor loops: depth is not a limit, and values that contain themselves are equal if no path tells them apart.
 */
import { isContainer, isRecord } from '../watch/errors.ts';

/** After so many objects and lists, pairs are remembered: then a value contains itself, or one thing many times. */
const MANY = 100_000;

/**
 * Whether a server would see two values as the same: key order, undefined and null do not matter. Upstream:
 * `equality.Semantic.DeepEqual`, which knows the types, and so takes an empty list or map for none, too.
 */
export function equals(one: unknown, other: unknown): boolean {
  const seen = new Map<object, Set<object>>();
  const pairs: unknown[] = [one, other];
  for (let steps = 0; pairs.length > 0; ) {
    const right = toJson(pairs.pop());
    const left = toJson(pairs.pop());
    if (left === right) continue;
    if (!isContainer(left) || !isContainer(right) || Array.isArray(left) !== Array.isArray(right)) return false;
    if (++steps > MANY && isSeen(seen, left, right)) continue;
    if (Array.isArray(left) && left.length !== (right as typeof left).length) return false;
    // The members of a list are its elements.
    const shown = isRecord(one) && left === one.metadata ? filled : same;
    const names = Array.isArray(left) ? left.keys() : new Set([...Object.keys(left), ...Object.keys(right)]);
    for (const name of names) pairs.push(shown(memberOf(left, name)), shown(memberOf(right, name)));
  }
  return true;
}

/** A value as JSON sends it; undefined if that is not at all, or null. */
function toJson(value: unknown): unknown {
  if (value === null || typeof value === 'function' || typeof value === 'symbol') return undefined;
  if (typeof value === 'number') return Number.isFinite(value) ? value : undefined;
  const { toJSON } = typeof value === 'object' ? (value as { toJSON?: unknown }) : {};
  return typeof toJSON === 'function' ? (toJSON.call(value) ?? undefined) : value;
}

const memberOf = (object: object, name: string | number): unknown =>
  Object.hasOwn(object, name) ? (object as Record<string, unknown>)[name] : undefined;
const same = (value: unknown): unknown => value;

/** A value; undefined if it is an empty one. */
function filled(value: unknown): unknown {
  const isEmpty = isContainer(value) ? !('toJSON' in value) && Object.keys(value).length === 0 : value === '';
  return isEmpty ? undefined : value;
}

/** Whether a pair was compared before. If not, it is from now on. */
function isSeen(seen: Map<object, Set<object>>, left: object, right: object): boolean {
  const others = seen.get(left) ?? new Set();
  if (others.has(right)) return true;
  seen.set(left, others.add(right));
  return false;
}
