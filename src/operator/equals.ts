/**
 * Whether a server would see two values as the same, so that no write is needed. Values are compared as JSON sends them.
 *
 * - The order of members does not matter; that of elements does.
 * - A member that is null or undefined counts as absent, as does anything JSON cannot send: a function, NaN. Only in a map of
 *   texts does a server read null as an empty text; write that instead.
 * - An empty object, list or text is a value: `emptyDir: {}` is a volume, `podSelector: {}` selects all, and a custom resource
 *   keeps `[]` and `''` as they were written. They count as absent only directly in an object's `metadata`, where a server
 *   leaves them out for every kind.
 * - A value that a server rewrites is different: `1000m` for `1`, or a list in another order. If in doubt, the answer is no: an
 *   unnecessary write changes nothing on the server, but a missing one is never made.
 *
 * It neither recurses nor loops: depth is not a limit, and values that contain themselves are equal if no path shows a
 * difference.
 */
import { isContainer, isRecord } from '../watch/errors.ts';

/**
 * After this many objects and lists, pairs are remembered: the value probably contains itself, or the same thing many times.
 */
const MANY = 100_000;

/**
 * Whether a server would see two values as the same: key order, undefined and null do not matter. Upstream:
 * `equality.Semantic.DeepEqual`, which knows the types, and so treats an empty list or map as absent, too.
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

/** A value as JSON sends it; undefined if it sends nothing or null. */
function toJson(value: unknown): unknown {
  if (value === null || typeof value === 'function' || typeof value === 'symbol') return undefined;
  if (typeof value === 'number') return Number.isFinite(value) ? value : undefined;
  const { toJSON } = typeof value === 'object' ? (value as { toJSON?: unknown }) : {};
  return typeof toJSON === 'function' ? (toJSON.call(value) ?? undefined) : value;
}

const memberOf = (object: object, name: string | number): unknown =>
  Object.hasOwn(object, name) ? (object as Record<string, unknown>)[name] : undefined;
const same = (value: unknown): unknown => value;

/** A value; undefined if it is empty. */
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
