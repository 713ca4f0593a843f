/**
 * Operations on values by type: their fields, the differences between two, the merge of two, and the rest without some fields, or
 * with only those.
 *
 *     live, config -- merged --> result         live, result -- compared --> added, modified, removed
 *     config -- fieldsOf --> what its manager owns
 *
 * Invariants
 * - Values are not changed; results share unchanged parts with them, so that comparing a merge with its sources costs only what
 *   the merge has changed.
 * - List items are found by their elements, so everything takes time proportional to the values' size; and it runs in pieces.
 */

import { comparing, put } from '../storage/json.ts';
import { getOrMake, isContainer, isRecord } from '../watch/errors.ts';
import type { Work } from '../watch/fair-queue.ts';
import { FieldSet, FieldSetBuilder, fieldElement, isNothing, isPause, LEAF, shownNumber, shownPath } from './field-set.ts';
import type { StoredParts } from './quick.ts';
import { handledAs, kindOf, type ListType, type MapType, type Scalar, type Type, TypedError, type ValueKind } from './types.ts';

type Members = Readonly<Record<string, unknown>>;
type Items = readonly unknown[];

const mapOf = (value: unknown): Members | undefined => (isRecord(value) ? value : undefined);
const listOf = (value: unknown): Items | undefined => (Array.isArray(value) ? value : undefined);
const own = (object: Members | undefined, name: string): unknown =>
  object && Object.hasOwn(object, name) ? object[name] : undefined;

const MAX_ERRORS = 100;
/** The most items of a set or map, whose elements are computed in one go. */
const MAX_ITEMS = 50_000;

/**
 * Throws a TypedError if a value is not of a type. If `lenient`, items of lists may occur twice. `stored`: what is already known;
 * parts of the value are added to it if the value itself is stored.
 */
export function* checkType(type: Type, value: unknown, lenient: boolean, stored?: Stored): Work<void> {
  [parts, notes, left] = [stored?.known.types, stored?.notes === true, MAX_VALUES];
  if (fits(type, value, lenient && !parts)) return;
  // If there were too many values, there still are when items may occur twice.
  if (lenient && parts && left >= 0) return yield* checkType(type, value, lenient);
  const errors: string[] = [];
  yield* new Checker(errors, lenient).check(type, value, []);
  if (errors.length === 1) throw new TypedError(errors[0]);
  if (errors.length > 1) throw new TypedError(`errors:\n  ${errors.join('\n  ')}`);
}

/** What is known about stored values, and whether this value is a part of one. */
export interface Stored {
  readonly known: StoredParts;
  readonly notes?: boolean;
}

/** The most values that are checked in one go. */
const MAX_VALUES = 8_192;
let left = 0;
let parts: StoredParts['types'] | undefined;
let notes = false;
/** How many values make a part worth remembering. */
const MANY = 16;

/** Whether a value is certainly of a type. If this cannot tell, as for many values, a {@link Checker} finds out in pieces. */
function fits(type: Type, value: unknown, lenient: boolean): boolean {
  if (--left < 0) return false;
  if (typeof value !== 'object' || value === null) return isScalar(type, value);
  if (!parts) return partsFit(type, value, lenient);
  if (parts.get(value) === type) return true;
  const before = left;
  const isFit = partsFit(type, value, lenient);
  if (isFit && notes && before - left > MANY) parts.set(value, type);
  return isFit;
}

function partsFit(type: Type, value: object, lenient: boolean): boolean {
  if (Array.isArray(value)) {
    const { list } = type;
    if (!list || value.length > left) return false;
    if (!list.isAtomic) {
      const { elements, error } = known(list, value);
      if (error || (!lenient && new Set(elements).size < elements.length)) return false;
    }
    const below = list.element;
    for (let at = 0; at < value.length; at++) if (!fits(below, value[at], lenient)) return false;
    return true;
  }
  const { map } = type;
  if (!map || !isRecord(value)) return false;
  for (const name in value) {
    const below = map.field(name)?.type ?? map.element;
    if (!below || !fits(below, value[name], lenient)) return false;
  }
  return true;
}

class Checker {
  readonly #errors: string[];
  readonly #lenient: boolean;

  constructor(errors: string[], lenient: boolean) {
    this.#errors = errors;
    this.#lenient = lenient;
  }

  /** A value other than null. */
  *check(type: Type, value: unknown, path: string[]): Work<void> {
    const kind = handledAs(type, kindOf(type, value));
    if (kind === 'scalar') {
      const error = scalarError(type.scalar as Scalar, value);
      if (error) this.#report(path, error);
    } else if (kind === 'map') {
      if (isRecord(value)) yield* this.#map(type.map as MapType, value, path);
      else this.#report(path, `expected map, got &{${goText(value)}}`);
    } else if (Array.isArray(value)) yield* this.#list(type.list as ListType, value, path);
    else this.#report(path, `expected list, got &{${goText(value)}}`);
  }

  *#map(type: MapType, value: Members, path: string[]): Work<void> {
    for (const name in value) {
      if (isPause()) yield;
      const below = type.field(name)?.type ?? type.element;
      if (!below) {
        this.#report([...path, fieldElement(name)], 'field not declared in schema');
        return;
      }
      const member = value[name];
      if (isScalar(below, member)) continue;
      path.push(fieldElement(name));
      yield* this.check(below, member, path);
      path.pop();
    }
  }

  *#list(type: ListType, value: Items, path: string[]): Work<void> {
    if (!type.isAtomic && value.length > MAX_ITEMS) {
      this.#report(path, `Too many: ${value.length}: must have at most ${MAX_ITEMS} items`);
      return;
    }
    const { elements, error } = type.isAtomic ? {} : known(type, value);
    const seen = elements && !this.#lenient ? new Set<string>() : undefined;
    const below = type.element;
    for (let at = 0; at < (elements ?? value).length; at++) {
      if (isPause()) yield;
      const element = elements?.[at] ?? `i:${at}`;
      if (seen?.has(element)) this.#report(path, `duplicate entries for key ${shownPath([element])}`);
      seen?.add(element);
      const item = value[at];
      if (isScalar(below, item)) continue;
      path.push(element);
      yield* this.check(below, item, path);
      path.pop();
    }
    if (error) this.#report(path, error);
  }

  #report(path: readonly string[], message: string): void {
    if (this.#errors.length >= MAX_ERRORS) return;
    const shown = shownPath(path);
    this.#errors.push(shown ? `${shown}: ${message}` : message);
  }
}

/** The elements of the items, up to the first item without one, and why it has none. */
function known(type: ListType, value: Items): { readonly elements: readonly string[]; readonly error?: string } {
  try {
    return { elements: type.elementsOf(value) };
  } catch (error) {
    if (!(error instanceof TypedError)) throw error;
    const elements: string[] = [];
    try {
      for (const item of value) elements.push(type.elementOf(item));
    } catch {
      // The same error again.
    }
    return { elements, error: `element ${elements.length}: ${error.message}` };
  }
}

/** While values are pruned, items may be null for a while: all of these have one element. */
function lenientElements(type: ListType, value: Items): readonly string[] {
  const { elements, error } = known(type, value);
  return error ? value.map((item) => known(type, [item]).elements[0] ?? '') : elements;
}

/** Whether it is a scalar of a type, or null, which any type admits. */
const isScalar = (type: Type, value: unknown): boolean =>
  value === null || (typeof value !== 'object' && type.scalar !== undefined && !scalarError(type.scalar, value));

function scalarError(scalar: Scalar, value: unknown): string | undefined {
  const is = typeof value;
  if (scalar === 'numeric') return is === 'number' ? undefined : `expected numeric (int or float), got ${goType(value)}`;
  if (scalar === 'string') {
    return is === 'string' ? undefined : `expected string, got &value.valueUnstructured{Value:${goText(value, true)}}`;
  }
  if (scalar === 'boolean') return is === 'boolean' ? undefined : `expected boolean, got &{${goText(value)}}`;
  return is !== 'object' ? undefined : `expected any scalar, got &{${goText(value)}}`;
}

function goType(value: unknown): string {
  if (Array.isArray(value)) return '[]interface {}';
  if (typeof value === 'object') return 'map[string]interface {}';
  return typeof value === 'boolean' ? 'bool' : typeof value;
}

/** How many characters of a value a message shows. */
const MAX_SHOWN = 1_000;

/** Joins as many items as are shown. */
function joined<T>(items: readonly T[], separator: string, textOf: (item: T) => string): string {
  let text = '';
  for (let at = 0; at < items.length && text.length < MAX_SHOWN; at++)
    text += `${at > 0 ? separator : ''}${textOf(items[at] as T)}`;
  return text;
}

/** A value as Go prints it; `full`: with its types. */
function goText(value: unknown, full: boolean = false): string {
  if (value === null) return full ? 'interface {}(nil)' : '<nil>';
  if (typeof value === 'number') return shownNumber(value);
  if (typeof value === 'string') {
    const text = value.slice(0, MAX_SHOWN);
    return full ? JSON.stringify(text) : text;
  }
  const separator = full ? ', ' : ' ';
  if (Array.isArray(value)) {
    const items = joined(value, separator, (each) => goText(each, full));
    return (full ? `[]interface {}{${items}}` : `[${items}]`).slice(0, MAX_SHOWN);
  }
  if (!isRecord(value)) return String(value);
  const names = Object.keys(value).slice(0, MAX_SHOWN).sort();
  const members = joined(names, separator, (name) => `${goText(name, full)}:${goText(value[name], full)}`);
  return (full ? `map[string]interface {}{${members}}` : `map[${members}]`).slice(0, MAX_SHOWN);
}

/** The fields that a value has: those that its applier owns. */
export function* fieldsOf(type: Type, value: unknown): Work<FieldSet> {
  const { children } = yield* nodeOf(type, value);
  return new FieldSet(false, children);
}

function* nodeOf(type: Type, value: unknown): Work<FieldSet> {
  const kind = handledAs(type, kindOf(type, value));
  if (kind === 'scalar') return LEAF;
  const { isAtomic } = (kind === 'map' ? type.map : type.list) as MapType | ListType;
  if (isAtomic) return LEAF;
  const children = new Map<string, FieldSet>();
  if (kind === 'map') yield* fieldsOfMap(type.map as MapType, mapOf(value), children);
  else yield* fieldsOfList(type.list as ListType, listOf(value), children);
  return new FieldSet(false, children);
}

function* fieldsOfMap(type: MapType, value: Members | undefined, children: Map<string, FieldSet>): Work<void> {
  for (const name in value) {
    if (isPause()) yield;
    const member = value[name];
    const field = type.field(name);
    const element = field ? field.element : fieldElement(name);
    const below = field ? field.type : type.element;
    const node = member === null || !below || !isContainer(member) ? LEAF : yield* nodeOf(below, member);
    if (!field || (isRecord(member) && isNothing(member))) children.set(element, asMember(node));
    else if (!node.isEmpty) children.set(element, node);
  }
}

function* fieldsOfList(type: ListType, value: Items | undefined, children: Map<string, FieldSet>): Work<void> {
  const elements = value ? lenientElements(type, value) : [];
  const below = type.element;
  for (let at = 0; at < elements.length; at++) {
    if (isPause()) yield;
    const element = elements[at] as string;
    const item = value?.[at];
    // An item that occurs twice is owned as a whole.
    const isLeaf = children.has(element) || !isContainer(item);
    children.set(element, isLeaf ? LEAF : asMember(yield* nodeOf(below, item)));
  }
}

const asMember = (node: FieldSet): FieldSet => {
  if (node.isMember) return node;
  return node.children ? new FieldSet(true, node.children) : LEAF;
};

/** What a change adds, modifies and removes. */
export interface Comparison {
  readonly added: FieldSet;
  readonly modified: FieldSet;
  readonly removed: FieldSet;
}

/** The differences between two values. */
export function* compared(type: Type, one: unknown, other: unknown): Work<Comparison> {
  const comparer = new Comparer();
  yield* comparer.compare(type, one, other);
  const { added, modified, removed } = comparer;
  return { added: added.set, modified: modified.set, removed: removed.set };
}

class Comparer {
  readonly added: FieldSetBuilder = new FieldSetBuilder();
  readonly modified: FieldSetBuilder = new FieldSetBuilder();
  readonly removed: FieldSetBuilder = new FieldSetBuilder();
  readonly #path: string[] = [];

  /** An undefined value is missing. */
  *compare(type: Type, one: unknown, other: unknown): Work<void> {
    if (one === other) return;
    if (one === undefined) this.added.add(this.#path);
    else if (other === undefined) this.removed.add(this.#path);
    if (!isContainer(one) && !isContainer(other)) {
      if (one !== undefined && other !== undefined) this.modified.add(this.#path);
      return;
    }
    const [before, after] = [kindOf(type, one), kindOf(type, other)];
    if (other !== undefined) yield* this.#as(handledAs(type, after), type, one, other);
    if (one !== undefined && (other === undefined || before !== after))
      yield* this.#as(handledAs(type, before), type, one, other);
  }

  /** Compares their parts, or them as a whole. */
  *#as(kind: ValueKind, type: Type, one: unknown, other: unknown): Work<void> {
    if (kind !== 'scalar') {
      const isMap = kind === 'map';
      const { isAtomic } = (isMap ? type.map : type.list) as MapType | ListType;
      const [left, right] = isMap ? [mapOf(one), mapOf(other)] : [listOf(one), listOf(other)];
      if (!isAtomic && !(isNothing(left) && isNothing(right))) {
        if (isMap) yield* this.#maps(type.map as MapType, left as Members, right as Members);
        else yield* this.#lists(type.list as ListType, left as Items, right as Items);
        return;
      }
    }
    if (one !== undefined && other !== undefined && !(yield* comparing(one, other))) this.modified.add(this.#path);
  }

  *#maps(type: MapType, one: Members | undefined, other: Members | undefined): Work<void> {
    for (const name in one) {
      if (isPause()) yield;
      const [left, right] = [one[name], own(other, name)];
      if (left !== right) yield* this.#member(type, name, left, right);
    }
    for (const name in other) {
      if (isPause()) yield;
      if (own(one, name) === undefined) yield* this.#member(type, name, undefined, other[name]);
    }
  }

  *#member(type: MapType, name: string, one: unknown, other: unknown): Work<void> {
    const field = type.field(name);
    const below = field ? field.type : type.element;
    this.#path.push(field ? field.element : fieldElement(name));
    if (below) yield* this.compare(below, one, other);
    this.#path.pop();
  }

  *#lists(type: ListType, one: Items | undefined, other: Items | undefined): Work<void> {
    const before = yield* byElement(type, one);
    const after = yield* byElement(type, other);
    for (const [element, items] of before) {
      if (isPause()) yield;
      yield* this.#items(type, element, items, after.get(element) ?? []);
    }
    for (const [element, items] of after) {
      if (isPause()) yield;
      if (!before.has(element)) yield* this.#items(type, element, [], items);
    }
  }

  /** Items that occur more than once are compared as a whole. */
  *#items(type: ListType, element: string, one: Items, other: Items): Work<void> {
    this.#path.push(element);
    const [isTwice, willBe] = [one.length > 1, other.length > 1];
    if (!isTwice && !willBe) yield* this.compare(type.element, one[0], other[0]);
    else if (isTwice && willBe) {
      if (!(yield* comparing(one, other))) this.modified.add(this.#path);
    } else if (isTwice) {
      yield* this.compare(type.element, undefined, other[0]);
      this.removed.add(this.#path);
    } else {
      yield* this.compare(type.element, one[0], undefined);
      this.added.add(this.#path);
    }
    this.#path.pop();
  }
}

function* byElement(type: ListType, list: Items = []): Work<Map<string, unknown[]>> {
  const items = new Map<string, unknown[]>();
  const elements = type.elementsOf(list);
  for (let at = 0; at < elements.length; at++) {
    if (isPause()) yield;
    const element = elements[at] as string;
    getOrMake(items, element, () => []).push(list[at]);
  }
  return items;
}

/**
 * Merges another value, in which items occur once, into a value: the other one prevails, and nothing is removed. Not a generator
 * itself, as there are as many calls as parts.
 */
export function merged(type: Type, one: unknown, other: unknown): Work<unknown> {
  if (other === undefined || one === other) return done(one);
  if (!isContainer(one)) return done(other);
  const kind = handledAs(type, kindOf(type, other));
  if (kind === 'map') {
    const [left, right] = [mapOf(one), mapOf(other)];
    if (type.map?.isAtomic || (isNothing(left) && isNothing(right))) return done(other);
    return left && right ? mergedMap(type.map as MapType, left, right) : done(left ?? right);
  }
  if (kind === 'scalar') return done(other);
  const [left, right] = [listOf(one), listOf(other)];
  if (type.list?.isAtomic || (isNothing(left) && isNothing(right))) return done(other);
  return left && right ? mergedList(type.list as ListType, left, right) : done(left ?? right);
}

// biome-ignore lint/correctness/useYield: there is nothing left to do
function* done<R>(value: R): Work<R> {
  return value;
}

function* mergedMap(type: MapType, one: Members, other: Members): Work<Members> {
  let result: Record<string, unknown> | undefined;
  for (const name in other) {
    if (isPause()) yield;
    const [left, right] = [own(one, name), other[name]];
    if (left === right) continue;
    const below = type.field(name)?.type ?? type.element;
    const isLeaf = !below || (right !== undefined && !isContainer(left));
    const member = isLeaf ? right : yield* merged(below, left, right);
    if (member === left) continue;
    result ??= { ...one };
    put(result, name, member);
  }
  return result ?? one;
}

/** Whether both are the same elements in the same order, so that nothing has to be reordered. */
const areSame = (left: readonly string[], right: readonly string[]): boolean =>
  left.length === right.length && left.every((each, at) => each === right[at]);

function mergedList(type: ListType, one: Items, other: Items): Work<Items> {
  const isInOrder = areSame(type.elementsOf(one), type.elementsOf(other));
  return isInOrder ? mergedItems(type, one, other) : reordered(type, one, other);
}

function* mergedItems({ element }: ListType, one: Items, other: Items): Work<Items> {
  let result: unknown[] | undefined;
  for (let at = 0; at < one.length; at++) {
    if (isPause()) yield;
    const item = yield* merged(element, one[at], other[at]);
    if (item === one[at]) continue;
    result ??= [...one];
    result[at] = item;
  }
  return result ?? one;
}

/** Uses the order of the other list, in which items that only the first one has keep their places. */
function* reordered(type: ListType, one: Items, other: Items): Work<Items> {
  const [left, right] = [type.elementsOf(one), type.elementsOf(other)];
  const [before, after] = [yield* byElement(type, one), yield* byElement(type, other)];
  const shared = right.filter((element) => before.has(element));
  const done = new Set<string>();
  const result: unknown[] = [];
  let nextShared = 0;
  const both = function* (element: string): Work<void> {
    done.add(element);
    const items = before.get(element) ?? [];
    const [first] = items.length > 1 ? [null] : items;
    result.push(yield* merged(type.element, first, after.get(element)?.[0]));
  };
  for (let [l, r] = [0, 0]; l < left.length || r < right.length; ) {
    if (isPause()) yield;
    const element = left[l];
    if (element !== undefined && r < right.length) {
      if (element === right[r]) {
        yield* both(element);
        l++;
        r++;
        nextShared++;
        continue;
      }
      if (after.has(element) && nextShared < shared.length && shared[nextShared] !== element) {
        l++;
        continue;
      }
    }
    if (element !== undefined) {
      if (!after.has(element)) {
        result.push(one[l++]);
        continue;
      }
      if (done.has(element)) l++;
    }
    const next = right[r];
    if (next === undefined) continue;
    yield* both(next);
    r++;
    if (shared[nextShared] === next) nextShared++;
  }
  return result.length === one.length && result.every((item, at) => item === one[at]) ? one : result;
}

/** A value without some fields, or with only those. Objects and lists that would be empty become null. */
export function* without(type: Type, value: unknown, fields: FieldSet, extracts: boolean = false): Work<unknown> {
  const kind = handledAs(type, kindOf(type, value));
  if (kind === 'scalar') return value;
  const { isAtomic } = (kind === 'map' ? type.map : type.list) as MapType | ListType;
  if (isAtomic || isNothing(value as object | undefined)) return extracts ? value : null;
  if (kind === 'map') return yield* mapWithout(type.map as MapType, value as Members, { fields, extracts });
  return yield* listWithout(type.list as ListType, value as Items, { fields, extracts });
}

interface Removal {
  readonly fields: FieldSet;
  readonly extracts: boolean;
}

function* mapWithout(type: MapType, value: Members, { fields, extracts }: Removal): Work<unknown> {
  const result: Record<string, unknown> = {};
  for (const name in value) {
    if (isPause()) yield;
    const below = type.field(name)?.type ?? type.element;
    const node = fields.below(fieldElement(name));
    if (node.isMember) {
      if (extracts && below) put(result, name, yield* without(below, value[name], fields, true));
      continue;
    }
    if (node.children) put(result, name, below ? yield* without(below, value[name], node, extracts) : value[name]);
    else if (!extracts) put(result, name, value[name]);
  }
  return isNothing(result) ? null : result;
}

function* listWithout(type: ListType, value: Items, { fields, extracts }: Removal): Work<unknown> {
  const result: unknown[] = [];
  const elements = lenientElements(type, value);
  for (let at = 0; at < elements.length; at++) {
    if (isPause()) yield;
    const node = fields.below(elements[at] as string);
    if (extracts ? node.isEmpty : node.isMember) continue;
    result.push(node.children ? yield* without(type.element, value[at], node, extracts) : value[at]);
  }
  return result.length > 0 ? result : null;
}

/** A set in which fields that the schema names are members if anything below them is. */
export function* withNamed(type: Type | undefined, set: FieldSet): Work<FieldSet> {
  if (!set.children) return set;
  const children = new Map<string, FieldSet>();
  for (const [element, child] of set.children) {
    if (isPause()) yield;
    const field = element.startsWith('f:') ? type?.map?.field(element.slice(2)) : undefined;
    const below = element.startsWith('f:') ? (field?.type ?? type?.map?.element) : itemType(type, element);
    const node = yield* withNamed(below, child);
    children.set(element, field && node.children ? asMember(node) : node);
  }
  return new FieldSet(set.isMember, children);
}

const itemType = (type: Type | undefined, element: string): Type | undefined =>
  element.startsWith('k:') ? type?.list?.element : undefined;

/** A set adapted to a schema that may have changed since: what is now owned as a whole has no fields below it. */
export function* reconciled(type: Type, set: FieldSet): Work<FieldSet> {
  const { map } = type;
  const container = map ?? (type.scalar ? undefined : type.list);
  if (!container || !set.children || map?.isDeduced) return set;
  if (container.isAtomic) return LEAF;
  let children: Map<string, FieldSet> | undefined;
  for (const [element, child] of set.children) {
    if (!child.children) continue;
    if (isPause()) yield;
    const below = map ? (element.startsWith('f:') && map.field(element.slice(2))?.type) || map.element : type.list?.element;
    if (!below) continue;
    const node = yield* reconciled(below, child);
    if (node === child) continue;
    children ??= new Map(set.children);
    children.set(element, node);
  }
  return children ? new FieldSet(set.isMember, children) : set;
}
