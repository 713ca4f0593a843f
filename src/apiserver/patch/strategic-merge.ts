/**
 * Kubernetes' strategic merge patch: a merge patch with directives, which also merges lists if the kind says so. kubectl sends it
 * for the kinds that it knows, such as ConfigMap and Namespace. Upstream: `strategicpatch`.
 *
 *     finalizers: ['b']                        added to the existing ones: a set
 *     $deleteFromPrimitiveList/finalizers: ['a']   taken out of that set
 *     $setElementOrder/finalizers: ['c', 'b']  the order that they should have
 *     ownerReferences: [{ uid, ... }]          merged with the one of the same uid; { uid, $patch: 'delete' } removes it,
 *                                              and { $patch: 'replace' } all of them
 *     $patch: 'replace' | 'delete'   of an object: replace it, empty it. If there is none, nothing happens
 *     $retainKeys: ['type']                    of an object: remove all other members
 */

import { put } from '../../storage/json.ts';
import { badRequest, refused } from '../../storage/statuses.ts';
import { getOrMake, isRecord } from '../../watch/errors.ts';
import { STRIDE, type Work } from '../../watch/fair-queue.ts';
import { childOf, jsonStart } from '../validation/causes.ts';
import { copyingMembers, type JsonObject, mergePatch, ownValue } from './merge-patch.ts';

/** How a list is merged: as a set of plain values, or as objects with one member as their key. Other lists are replaced. */
type ListStrategy = 'set' | { readonly key: string };

/** Strategies by the path of a list, such as `metadata.finalizers`. */
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
export function strategicMerge(current: JsonObject, patch: JsonObject, terms: Terms): Work<JsonObject> {
  return mergeObjects(current, patch, { ...terms, path: '' });
}

interface Terms {
  readonly strategies: MergeStrategies;
  /** Whether whoever reads the result takes null for nothing. Otherwise, a new element is merged with nothing, which has no nulls. */
  readonly isTyped: boolean;
}

interface Place extends Terms {
  readonly path: string;
}

function* mergeObjects(current: JsonObject, patch: JsonObject, place: Place): Work<JsonObject> {
  const directive = ownValue(patch, DIRECTIVE);
  if (directive === 'replace') return yield* without(patch, DIRECTIVE);
  if (directive === 'delete') return {};
  if (directive !== undefined) throw badRequest(`unknown patch type: ${shown(directive)}`);
  const result = yield* copyingMembers(current);
  const names = Object.keys(patch);
  if (names.length > STRIDE) yield;
  if (ownValue(patch, RETAIN) !== undefined) yield* retain(result, patch, names);
  yield* each(names, (name) => {
    if (patch[name] === null) delete result[name];
  });
  const concerned = new Set<string>();
  yield* each(names, (name) => {
    if (name === DIRECTIVE || name === RETAIN) return;
    // Even if it is named only by a directive.
    concerned.add(name.startsWith(ORDER) || name.startsWith(DELETE) ? name.slice(name.indexOf('/') + 1) : name);
  });
  let steps = 0;
  for (const name of concerned) {
    const merging = mergeMember(result, patch, { ...place, path: childOf(place.path, name) }, name);
    if (merging) yield* merging;
    if (++steps % STRIDE === 0) yield;
  }
  return result;
}

/** Visits elements in pieces: a list may have a million. */
function* each<T>(things: Iterable<T>, visit: (thing: T, at: number) => void): Work<void> {
  let at = 0;
  for (const thing of things) {
    visit(thing, at++);
    if (at % STRIDE === 0) yield;
  }
}

/** Returns what is left to do. */
function mergeMember(result: JsonObject, patch: JsonObject, place: Place, name: string): Work<void> | undefined {
  const current = ownValue(result, name);
  const value = ownValue(patch, name);
  const strategy = ownValue(place.strategies as JsonObject, place.path) as ListStrategy | undefined;
  if (strategy !== undefined) return mergeListMember(result, patch, { ...place, name, strategy });
  // Nothing to do if it is removed, or has only directives for a list that is not merged.
  if (value === undefined || value === null) return undefined;
  if (isRecord(value) && isRecord(current)) return mergeObjectMember(result, { name, current, value, place });
  if (isRecord(value) || (Array.isArray(value) && !Array.isArray(current))) return putNew(result, name, value);
  put(result, name, value);
  return undefined;
}

function* putNew(result: JsonObject, name: string, given: unknown): Work<void> {
  const value = yield* newValue(given);
  if (value === undefined) delete result[name];
  else put(result, name, value);
}

/**
 * A value that was not there: without what is null in its objects, and without directives. Undefined if it is an object with
 * `$patch`. Upstream: `removeDirectives`.
 */
function* newValue(given: unknown): Work<unknown> {
  return yield* undirected(yield* mergePatch(undefined, given));
}

const DIRECTIVES = /^\$(retainKeys$|setElementOrder\/|deleteFromPrimitiveList\/)/;

function* undirected(value: unknown): Work<unknown> {
  const isList = Array.isArray(value);
  if (!isList && !isRecord(value)) return value;
  if (!isList && ownValue(value, DIRECTIVE) !== undefined) return undefined;
  const result: unknown[] & Record<string, unknown> = (isList ? [] : {}) as never;
  for (const [at, name] of Object.keys(value).entries()) {
    if (at % STRIDE === STRIDE - 1) yield;
    if (!isList && DIRECTIVES.test(name)) continue;
    const given = (value as JsonObject)[name];
    const member = typeof given === 'object' ? yield* undirected(given) : given;
    if (member === undefined) continue;
    if (isList) result.push(member);
    else put(result, name, member);
  }
  return result;
}

function* mergeListMember(result: JsonObject, patch: JsonObject, place: ListPlace): Work<void> {
  const merged = yield* mergeList(ownValue(result, place.name), patch, place);
  if (merged !== undefined) put(result, place.name, merged);
}

function* mergeObjectMember(
  result: JsonObject,
  { name, current, value, place }: { name: string; current: JsonObject; value: JsonObject; place: Place },
): Work<void> {
  put(result, name, yield* mergeObjects(current, value, place));
}

/** Removes what `$retainKeys` does not name. */
function* retain(result: JsonObject, patch: JsonObject, patched: readonly string[]): Work<void> {
  const kept = ownValue(patch, RETAIN);
  if (!isStrings(kept)) throw badRequest('invalid patch format of retainKeys');
  const names = new Set<string>();
  yield* each(kept, (name) => void names.add(name));
  yield* each(patched, (name) => {
    if (name.startsWith('$') || patch[name] === null || names.has(name)) return;
    throw badRequest('invalid patch format of retainKeys');
  });
  yield* each(Object.keys(result), (name) => {
    if (!names.has(name)) delete result[name];
  });
}

interface ListPlace extends Place {
  readonly name: string;
  readonly strategy: ListStrategy;
}

function* mergeList(current: unknown, patch: JsonObject, place: ListPlace): Work<unknown[] | undefined> {
  const { name, strategy } = place;
  const there: readonly unknown[] = Array.isArray(current) ? current : [];
  const given = ownValue(patch, name) ?? [];
  const removed = ownValue(patch, DELETE + name) ?? [];
  const order = ownValue(patch, ORDER + name);
  if (!Array.isArray(given)) throw invalidList(`${place.path} is not a list`);
  if (!Array.isArray(removed)) throw badRequest('invalid patch format of primitive list');
  if (order !== undefined && !Array.isArray(order)) throw badRequest('invalid patch format of setElementOrder list');
  const merged =
    strategy === 'set'
      ? yield* mergeSet(Array.isArray(current) ? there : undefined, given, removed)
      : !Array.isArray(current)
        ? ((yield* newValue(given)) as unknown[])
        : yield* mergeByKey(there, given, { ...place, key: strategy.key });
  const idOf = (item: unknown): unknown => (strategy === 'set' || !isRecord(item) ? item : ownValue(item, strategy.key));
  const patched: unknown[] = [];
  const gone: unknown[] = [];
  yield* each(given, (item) => (isRecord(item) && ownValue(item, DIRECTIVE) !== undefined ? gone : patched).push(item));
  if (order !== undefined) yield* checkOrder(patched, order, { ...place, idOf, isThere: merged.length > 0 });
  if (current === undefined && merged.length === 0) return undefined;
  const was = yield* positions(there, idOf);
  // Elements that the patch names keep its order, even without a directive. One that it removes and adds again is new.
  const left = gone.length === 0 ? was : new Map(was);
  yield* each(gone, (item) => left.delete(idOf(item)));
  const sorted = yield* inOrder(merged, patched, { was: left, idOf });
  return order === undefined ? sorted : yield* inOrder(sorted, order, { was, idOf });
}

/** Refuses an order that lacks the key of an element, or has not that of what is patched. Upstream: `validatePatchWithSetOrderList`. */
function* checkOrder(
  patched: readonly unknown[],
  order: readonly unknown[],
  { path, strategy, idOf, isThere }: ListPlace & { readonly idOf: (item: unknown) => unknown; readonly isThere: boolean },
): Work<void> {
  let next = 0;
  yield* each(order, (item) => {
    const id = idOf(item);
    if (isThere && strategy !== 'set' && (!isRecord(item) || id === undefined))
      throw badRequest(`the setElementOrder list of ${path} has elements without the merge key`);
    if (next < patched.length && id === idOf(patched[next])) next++;
  });
  if (order.length > 0 && next < patched.length)
    throw badRequest(`the patch of ${path} has another order than its setElementOrder list`);
}

/** A set that was not there has what is given, as often as it is. */
function* mergeSet(
  there: readonly unknown[] | undefined,
  given: readonly unknown[],
  removed: readonly unknown[],
): Work<unknown[]> {
  const [out, all, result] = [new Set<unknown>(), new Set<unknown>(), [] as unknown[]];
  const plain = (item: unknown): unknown => {
    if (typeof item === 'object') throw invalidList('a set has plain values only');
    return item;
  };
  yield* each(removed, (item) => void out.add(plain(item)));
  yield* each(there ?? [], (item) => void all.add(item));
  yield* each(given, (item) => void all.add(plain(item)));
  yield* each(there ? all : given, (item) => void (out.has(item) || result.push(item)));
  return result;
}

function* mergeByKey(there: readonly unknown[], given: readonly unknown[], place: Place & { key: string }): Work<unknown[]> {
  const { key } = place;
  const result: unknown[] = [...there];
  const places = yield* placesOf(there, key);
  const idOf = (item: JsonObject): string => {
    const id = JSON.stringify(ownValue(item, key));
    if (id === undefined) throw badRequest(`map: ${shown(item)} does not contain declared merge key: ${key}`);
    return id;
  };
  const plain: JsonObject[] = [];
  let replaces = false;
  yield* each(given, (item) => {
    if (!isRecord(item)) throw invalidList(`an element of ${place.path} is not an object`);
    const directive = ownValue(item, DIRECTIVE);
    if (directive === undefined) plain.push(item);
    else if (directive === 'replace') replaces = true;
    else if (directive !== 'delete') throw badRequest(`unknown patch type: ${shown(directive)}`);
    else {
      const id = idOf(item);
      for (const at of places.get(id) ?? []) result[at] = undefined;
      places.delete(id);
    }
  });
  if (replaces) return plain;
  for (const [at, item] of plain.entries()) {
    if (at % STRIDE === STRIDE - 1) yield;
    const id = idOf(item);
    const found = places.get(id)?.[0];
    // Upstream takes a new element as it is, with what is null in it, which may be unknown.
    if (found === undefined) places.set(id, [result.push(place.isTyped ? item : yield* mergeObjects({}, item, place)) - 1]);
    else result[found] = yield* mergeObjects(result[found] as JsonObject, item, place);
  }
  return result.filter((each) => each !== undefined);
}

/**
 * The positions of a list's elements by their keys: searching for each element of a long list would block the server for minutes.
 */
function* placesOf(list: readonly unknown[], key: string): Work<Map<string, number[]>> {
  const places = new Map<string, number[]>();
  yield* each(list, (item, at) => {
    const id = isRecord(item) ? JSON.stringify(ownValue(item, key)) : undefined;
    if (id === undefined) return;
    getOrMake(places, id, () => []).push(at);
  });
  return places;
}

/** The first position of each id in a list. */
function* positions(list: readonly unknown[], idOf: (item: unknown) => unknown): Work<Map<unknown, number>> {
  const positions = new Map<unknown, number>();
  yield* each(list, (item, at) => void getOrMake(positions, idOf(item), () => at));
  return positions;
}

/**
 * Puts the elements that the order names into that order, and elements that only the server has next to their old neighbours:
 * they stay before those that they preceded. `was`: their old positions. Upstream: `normalizeElementOrder`.
 */
function* inOrder(
  merged: readonly unknown[],
  order: readonly unknown[],
  { was, idOf }: { was: ReadonlyMap<unknown, number>; idOf: (item: unknown) => unknown },
): Work<unknown[]> {
  const place = yield* positions(order, idOf);
  const [named, others]: [unknown[], unknown[]] = [[], []];
  yield* each(merged, (item) => void (place.has(idOf(item)) ? named : others).push(item));
  const first = yield* ranked(named, (item) => place.get(idOf(item)) as number);
  const second = yield* ranked(others, (item) => was.get(idOf(item)) ?? -1);
  const result: unknown[] = [];
  let next = 0;
  yield* each(first, (item) => {
    const own = was.get(idOf(item)) ?? -Infinity;
    for (; next < second.length && (was.get(idOf(second[next])) ?? Infinity) < own; next++) result.push(second[next]);
    result.push(item);
  });
  for (; next < second.length; next++) result.push(second[next]);
  return result;
}

/** Items by rank; those of equal rank keep their order. */
function* ranked(items: readonly unknown[], rankOf: (item: unknown) => number): Work<readonly unknown[]> {
  const byRank = new Map<number, unknown[]>();
  let [last, isSorted] = [-1, true];
  yield* each(items, (item) => {
    const rank = rankOf(item);
    getOrMake(byRank, rank, () => []).push(item);
    if (rank < last) isSorted = false;
    else last = rank;
  });
  if (isSorted) return items;
  const result: unknown[] = [];
  for (let rank = -1; rank <= last; rank++) {
    for (const item of byRank.get(rank) ?? []) result.push(item);
    if (rank % STRIDE === 0) yield;
  }
  return result;
}

function* without(object: JsonObject, name: string): Work<JsonObject> {
  const result = yield* copyingMembers(object);
  delete result[name];
  return result;
}

function isStrings(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'string');
}

const shown = (value: unknown): string => jsonStart(value, 200);
const invalidList = (message: string): Error => refused(422, 'Invalid', message);
