/**
 * Kubernetes' strategic merge patch: a merge patch with directives, which also merges lists where the kind says so. kubectl sends
 * it for the kinds that it knows, such as ConfigMap and Namespace. Upstream: `strategicpatch`.
 *
 *     finalizers: ['b']                        added to those that are there: a set
 *     $deleteFromPrimitiveList/finalizers: ['a']   taken out of that set
 *     $setElementOrder/finalizers: ['c', 'b']  the order that they are to have
 *     ownerReferences: [{ uid, ... }]          merged with the one of the same uid; { uid, $patch: 'delete' } removes it
 *     $patch: 'replace' | 'delete' | 'merge'   of an object: replace it, empty it, merge
 *     $retainKeys: ['type']                    of an object: remove all other members
 */
import { badRequest, refused } from '../../storage/statuses.ts';
import { isObject, type JsonObject, ownValue, setOwnValue, shallowCopy } from './json.ts';

/** How a list is merged: as a set of plain values, or as objects with one member as their key. Other lists are replaced. */
type ListStrategy = 'set' | { readonly key: string };

/** By the path of a list, such as `metadata.finalizers`. */
export type MergeStrategies = Readonly<Record<string, ListStrategy>>;

/** The lists that every kind has. Upstream: the tags of `metav1.ObjectMeta`. */
export const METADATA_LISTS: MergeStrategies = {
  'metadata.finalizers': 'set',
  'metadata.ownerReferences': { key: 'uid' },
};

const DIRECTIVE = '$patch';
const RETAIN = '$retainKeys';
const ORDER = '$setElementOrder/';
const DELETE = '$deleteFromPrimitiveList/';

/** Returns the result of applying the patch to an object. Neither is changed. Throws a refusal with 400 for an invalid patch. */
export function strategicMerge(current: JsonObject, patch: JsonObject, strategies: MergeStrategies): JsonObject {
  return mergeObjects(current, patch, { strategies, path: '' });
}

interface Place {
  readonly strategies: MergeStrategies;
  readonly path: string;
}

function mergeObjects(current: JsonObject, patch: JsonObject, place: Place): JsonObject {
  const directive = ownValue(patch, DIRECTIVE);
  if (directive === 'replace') return without(patch, [DIRECTIVE]);
  if (directive === 'delete') return {};
  if (directive !== undefined && directive !== 'merge') throw badRequest(`unknown patch type: ${shown(directive)}`);
  const result = shallowCopy(current);
  retain(result, patch);
  for (const name of Object.keys(patch)) if (patch[name] === null) delete result[name];
  for (const name of listsOf(patch)) mergeMember(result, patch, { ...place, path: join(place.path, name) }, name);
  return result;
}

/** The names of all members that a patch concerns, even if only by a directive. */
function listsOf(patch: JsonObject): Set<string> {
  const names = new Set<string>();
  for (const name of Object.keys(patch)) {
    if (name === DIRECTIVE || name === RETAIN) continue;
    if (name.startsWith(ORDER) || name.startsWith(DELETE)) names.add(name.slice(name.indexOf('/') + 1));
    else names.add(name);
  }
  return names;
}

function mergeMember(result: JsonObject, patch: JsonObject, place: Place, name: string): void {
  const current = ownValue(result, name);
  const value = ownValue(patch, name);
  const strategy = ownValue(place.strategies as JsonObject, place.path) as ListStrategy | undefined;
  if (strategy !== undefined) {
    const merged = mergeList(current, patch, { ...place, name, strategy });
    if (merged !== undefined) setOwnValue(result, name, merged);
  } else if (value === undefined || value === null) {
    // It is removed, or has only directives for a list that is not merged: there is nothing to do.
  } else if (isObject(value)) setOwnValue(result, name, mergeObjects(isObject(current) ? current : {}, value, place));
  else setOwnValue(result, name, value);
}

/** Removes what `$retainKeys` does not name. */
function retain(result: JsonObject, patch: JsonObject): void {
  const kept = ownValue(patch, RETAIN);
  if (kept === undefined) return;
  const plain = Object.keys(patch).filter((name) => !name.startsWith('$') && patch[name] !== null);
  const names = new Set(isStrings(kept) ? kept : undefined);
  if (!isStrings(kept) || plain.some((name) => !names.has(name))) throw badRequest('invalid patch format of retainKeys');
  for (const name of Object.keys(result)) if (!names.has(name)) delete result[name];
}

interface ListPlace extends Place {
  readonly name: string;
  readonly strategy: ListStrategy;
}

function mergeList(current: unknown, patch: JsonObject, place: ListPlace): unknown[] | undefined {
  const { name, strategy } = place;
  const there: readonly unknown[] = Array.isArray(current) ? current : [];
  const given = ownValue(patch, name) ?? [];
  const removed = ownValue(patch, DELETE + name) ?? [];
  const order = ownValue(patch, ORDER + name);
  if (!Array.isArray(given)) throw invalidList(`${place.path} is not a list`);
  if (!Array.isArray(removed)) throw badRequest('invalid patch format of primitive list');
  if (order !== undefined && !Array.isArray(order)) throw badRequest('invalid patch format of setElementOrder list');
  const merged = strategy === 'set' ? mergeSet(there, given, removed) : mergeByKey(there, given, { ...place, key: strategy.key });
  if (current === undefined && merged.length === 0) return undefined;
  if (order === undefined) return merged;
  const idOf = (item: unknown): unknown => (strategy === 'set' || !isObject(item) ? item : ownValue(item, strategy.key));
  return inOrder(merged, there.map(idOf), { order: order.map(idOf), idOf });
}

function mergeSet(there: readonly unknown[], given: readonly unknown[], removed: readonly unknown[]): unknown[] {
  if ([...given, ...removed].some((item) => typeof item === 'object')) throw badRequest('a set has plain values only');
  const out = new Set(removed);
  return [...new Set([...there, ...given])].filter((item) => !out.has(item));
}

function mergeByKey(there: readonly unknown[], given: readonly unknown[], place: Place & { key: string }): unknown[] {
  const { key } = place;
  const items = given.map((item) => {
    if (!isObject(item)) throw invalidList(`an element of ${place.path} is not an object`);
    return item;
  });
  if (items.some((item) => ownValue(item, DIRECTIVE) === 'replace')) {
    return items
      .filter((item) => ownValue(item, DIRECTIVE) !== 'replace' || Object.keys(item).length > 1)
      .map((item) => without(item, [DIRECTIVE]));
  }
  const result: unknown[] = [...there];
  const places = placesOf(there, key);
  for (const item of items) {
    const id = JSON.stringify(ownValue(item, key));
    if (id === undefined) throw badRequest(`map: ${shown(item)} does not contain declared merge key: ${key}`);
    const found = places.get(id);
    if (ownValue(item, DIRECTIVE) === 'delete') {
      for (const at of found ?? []) result[at] = undefined;
      places.delete(id);
    } else if (found === undefined) places.set(id, [result.push(mergeObjects({}, item, place)) - 1]);
    else result[found[0] as number] = mergeObjects(result[found[0] as number] as JsonObject, item, place);
  }
  return result.filter((each) => each !== undefined);
}

/**
 * The positions of a list's elements by their keys: searching for each element of a long list would block the server for minutes.
 */
function placesOf(list: readonly unknown[], key: string): Map<string, number[]> {
  const places = new Map<string, number[]>();
  for (const [at, each] of list.entries()) {
    const id = isObject(each) ? JSON.stringify(ownValue(each, key)) : undefined;
    if (id === undefined) continue;
    const found = places.get(id);
    if (found) found.push(at);
    else places.set(id, [at]);
  }
  return places;
}

/**
 * Puts the elements that the order names into that order, and elements that only the server has next to their old neighbours:
 * they stay before those that they preceded. Upstream: `normalizeElementOrder`.
 */
function inOrder(
  merged: readonly unknown[],
  before: readonly unknown[],
  { order, idOf }: { order: readonly unknown[]; idOf: (item: unknown) => unknown },
): unknown[] {
  const place = new Map(order.map((id, at) => [id, at]));
  const was = new Map(before.map((id, at) => [id, at]));
  const named = merged.filter((item) => place.has(idOf(item)));
  named.sort((one, other) => (place.get(idOf(one)) as number) - (place.get(idOf(other)) as number));
  const others = merged.filter((item) => !place.has(idOf(item)));
  const result: unknown[] = [];
  let [nextNamed, nextOther] = [0, 0];
  while (nextNamed < named.length && nextOther < others.length) {
    const [one, other] = [named[nextNamed], others[nextOther]];
    const isBefore = (was.get(idOf(other)) ?? Infinity) < (was.get(idOf(one)) ?? -Infinity);
    result.push(isBefore ? other : one);
    if (isBefore) nextOther++;
    else nextNamed++;
  }
  return [...result, ...named.slice(nextNamed), ...others.slice(nextOther)];
}

function without(object: JsonObject, names: readonly string[]): JsonObject {
  const result = shallowCopy(object);
  for (const name of names) delete result[name];
  return result;
}

function isStrings(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'string');
}

const join = (path: string, name: string): string => (path === '' ? name : `${path}.${name}`);
const shown = (value: unknown): string => String(JSON.stringify(value)).slice(0, 200);
const invalidList = (message: string): Error => refused(422, 'Invalid', message);
