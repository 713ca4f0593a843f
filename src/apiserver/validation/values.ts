/**
 * What is wrong with the values of an object, by the tree of its schema. Schemas are not compiled to code, so a thousand of them
 * are ready immediately. Words, order and quirks are upstream's: `kube-openapi/pkg/validation/validate`, with `listtype` of
 * apiextensions-apiserver.
 *
 *     tree, object ---> valueCauses ---> types, formats, limits, enums, allOf and the like
 *                 '---> listCauses ---> sets, maps    embedded.ts ---> objects within objects
 *
 * - Of several alternatives that all fail, the best match is reported, by upstream's count of matches.
 * - On an update, an unchanged part is not refused: the schema may have become stricter since (`CRDValidationRatcheting`).
 * - Names of members and items are paths, such as `spec.items[0].count`; `<nil>` is upstream's for an unknown place.
 */
import { comparing, put, stringifying } from '../../storage/json.ts';
import { isContainer, isRecord } from '../../watch/errors.ts';
import { STRIDE, type Work } from '../../watch/fair-queue.ts';
import type { FieldCause } from '../definition.ts';
import type { Json } from '../request/json.ts';
import {
  bounded,
  childOf,
  duplicateCause,
  goNumber,
  invalidCause,
  MAX_CAUSES,
  requiredCause,
  shownValue,
  tooLongCause,
  tooManyCause,
  unsupportedCause,
} from './causes.ts';
import { hasFormat } from './formats.ts';
import { toPattern } from './patterns.ts';
import { formatOf, isTextFormat, type Structural } from './structural.ts';

/** A missing value, as opposed to null. */
const ABSENT: unique symbol = Symbol('absent');

/** Where a value is. */
interface Place {
  readonly path: string;
  /** The old value. Absent: there was none, or it is not known. */
  readonly old?: unknown;
}

/** What is wrong with a value; an empty list if nothing is. */
export function* valueCauses(tree: Structural, value: unknown, { path, old = ABSENT }: Place): Work<FieldCause[]> {
  const found = new Found();
  yield* checking(tree, value, { path, old, found });
  return found.all;
}

class Found {
  all: FieldCause[] = [];
  /** The causes so far, as upstream reports each only once. */
  #said: Set<string> | undefined;

  add(whole: FieldCause): void {
    if (this.all.length >= MAX_CAUSES) return;
    const cause = bounded(whole);
    // Two shortened ones may look alike.
    if (cause !== whole) {
      this.all.push(cause);
      return;
    }
    this.#said ??= new Set();
    const key = `${cause.field} ${cause.message}`;
    if (this.#said.has(key)) return;
    this.#said.add(key);
    this.all.push(cause);
  }

  forget(count: number): void {
    this.all = this.all.slice(0, count);
    this.#said = new Set(this.all.map((cause) => `${cause.field} ${cause.message}`));
  }
}

interface Terms {
  readonly path: string;
  readonly old: unknown;
  readonly found: Found;
}

/** Checks one value, and returns how much of it matches. */
function* checking(tree: Structural, value: unknown, terms: Terms): Work<number> {
  if (tree.isPlain && !isContainer(value)) return plain(tree, value, terms);
  if (value === null) return nothing(tree, terms);
  let matches = 1 + typed(tree, value, terms);
  matches += 1 + (tree.isPlain ? 1 : yield* alternatives(tree, value, terms));
  if (!isContainer(value)) return matches + limited(tree, value, terms) + one(tree, value, terms);
  if (Array.isArray(value)) matches += 1 + (yield* listed(tree, value, terms));
  matches += one(tree, value, terms);
  if (!Array.isArray(value)) matches += 1 + (yield* membered(tree, value as Json, terms));
  return matches;
}

/** The same for a value that is not an object or list, where there are no alternatives. */
function plain(tree: Structural, value: unknown, terms: Terms): number {
  if (value === null) return nothing(tree, terms);
  return 3 + typed(tree, value, terms) + limited(tree, value, terms) + one(tree, value, terms);
}

function nothing(tree: Structural, { path, found }: Terms): number {
  const { types, nullable } = tree;
  const fits = types.length === 0 || nullable || types.includes('null');
  if (!fits) found.add(typeCause(path, types.join(','), 'null'));
  if (Array.isArray(tree.source.enum) && tree.source.enum.length > 0)
    found.add(unsupportedCause(fieldOf(path), null, tree.source.enum));
  return fits ? 1 : 0;
}

/** Upstream puts a dot before members of the root. */
const fieldOf = (path: string): string => (path.startsWith('.') ? path.slice(1) : path) || '<nil>';

function typeCause(path: string, type: string, given: string): FieldCause {
  const text = `${path} in body must be of type ${type}: ${JSON.stringify(given)}`;
  return { ...invalidCause(fieldOf(path), given, text), reason: 'FieldValueTypeInvalid' };
}

const valueCause = (path: string, value: unknown, why: string): FieldCause =>
  invalidCause(fieldOf(path), value, `${path} in body ${why}`);
/** A cause for which upstream does not name the place. */
const placeless = (why: string): FieldCause => invalidCause('<nil>', '', why);

function typeOf(value: unknown): string {
  if (Array.isArray(value)) return 'array';
  return Number.isSafeInteger(value) ? 'integer' : typeof value;
}

/** The type that Go gives a number. */
const goFormatOf = (value: unknown): string =>
  typeof value === 'number' ? (Number.isSafeInteger(value) ? 'int64' : 'float64') : '';

function typed(tree: Structural, value: unknown, { path, found }: Terms): number {
  const { types, format } = tree;
  if (types.length === 0 && format === '') return 0;
  const type = typeOf(value);
  const isText = type === 'string' || type === 'array';
  const fits = types.includes(type) || (type === 'integer' && types.includes('number'));
  // Upstream leaves strings and lists to their format.
  if (fits || (isText && format !== '' && !types.includes('number') && !types.includes('integer'))) return 2;
  const named = !isText && format !== '' && format !== goFormatOf(value);
  found.add(typeCause(path, named ? format : types.join(','), named ? goFormatOf(value) : type));
  return 1;
}

/** The limits of strings and numbers. */
function limited(tree: Structural, value: unknown, terms: Terms): number {
  if (typeof value === 'string') {
    textual(tree, value, terms);
    if (isTextFormat(tree.format)) {
      if (!hasFormat(tree.format, value)) {
        const text = `${terms.path} in body must be of type ${tree.format}: ${shownValue(value)}`;
        terms.found.add({ ...invalidCause(fieldOf(terms.path), value, text), reason: 'FieldValueTypeInvalid' });
      }
      return 2;
    }
    return 1;
  }
  if (typeof value !== 'number') return 0;
  numeric(tree, value, terms);
  return 2;
}

/** The number of characters in a text. */
export function lengthOf(text: string): number {
  let length = text.length;
  for (let at = 0; at < text.length; at++) if ((text.charCodeAt(at) & 0xfc00) === 0xdc00) length--;
  return length;
}

function textual({ source }: Structural, value: string, { path, found }: Terms): void {
  const { maxLength, minLength, pattern } = source;
  if (typeof maxLength === 'number' && value.length > maxLength && lengthOf(value) > maxLength) {
    found.add(tooLongCause(fieldOf(path), maxLength));
  } else if (typeof minLength === 'number' && lengthOf(value) < minLength) {
    found.add(valueCause(path, value, `should be at least ${minLength} chars long`));
  } else if (typeof pattern === 'string' && pattern !== '' && !toPattern(pattern).test(value)) {
    found.add(valueCause(path, value, `should match '${pattern}'`));
  }
}

const INT32 = 2 ** 31;
const MAX_FLOAT = 3.4028234663852886e38;

/** Whether a number is in the range of its type, which is checked only if it has one type. */
function isInRange({ types, format }: Structural, value: number): boolean {
  if (types.length !== 1) return true;
  if (types[0] === 'integer') {
    if (!Number.isInteger(value)) return false;
    return format === 'int32' ? value >= -INT32 && value < INT32 : Math.abs(value) < 2 ** 63;
  }
  return types[0] !== 'number' || format !== 'float' || Math.abs(value) <= MAX_FLOAT;
}

function numeric(tree: Structural, value: number, { path, found }: Terms): void {
  const { multipleOf, maximum, minimum, exclusiveMaximum, exclusiveMinimum } = tree.source;
  const outside = (what: string): FieldCause => {
    const format = formatOf(tree.types, tree.format);
    const shown = format === '' ? '(default format)' : `with format ${format}`;
    return placeless(`${what} value must be of type ${tree.types[0]} ${shown} in ${path}`);
  };
  if (!isInRange(tree, value)) found.add(outside('Checked'));
  /** Limits of whole numbers are truncated, if they are in range. `breaks` returns what a value should be, if it is wrong. */
  const check = (bound: unknown, what: string, breaks: (limit: number, shown: string) => string | undefined): void => {
    if (typeof bound !== 'number') return;
    const fits = isInRange(tree, bound);
    if (!fits) found.add(outside(what));
    const isWhole = fits && Number.isSafeInteger(value);
    const limit = isWhole ? Math.trunc(bound) : bound;
    const why = breaks(limit, goNumber(limit, !isWhole));
    if (why === undefined) return;
    const isFactor = why.startsWith('factor');
    const message = `Invalid value: ${goNumber(isFactor ? limit : value, !isWhole)}: ${isFactor ? why : `${path} in body ${why}`}`;
    found.add({ field: fieldOf(path), reason: 'FieldValueInvalid', message });
  };
  check(multipleOf, 'MultipleOf', (factor, shown) => {
    if (factor <= 0) return `factor MultipleOf declared for ${path} must be positive: ${shown}`;
    return isMultiple(value, factor) ? undefined : `should be a multiple of ${shown}`;
  });
  const isOnly = (mark: unknown): boolean => mark === true || typeof mark === 'number';
  const [below, above] = [isOnly(exclusiveMaximum), isOnly(exclusiveMinimum)];
  check(typeof exclusiveMaximum === 'number' ? exclusiveMaximum : maximum, 'Maximum boundary', (most, shown) => {
    if (below ? value < most : value <= most) return undefined;
    return `should be less than ${below ? '' : 'or equal to '}${shown}`;
  });
  check(typeof exclusiveMinimum === 'number' ? exclusiveMinimum : minimum, 'Minimum boundary', (least, shown) => {
    if (above ? value > least : value >= least) return undefined;
    return `should be greater than ${above ? '' : 'or equal to '}${shown}`;
  });
}

export function isMultiple(value: number, factor: number): boolean {
  if (Number.isSafeInteger(value) && Number.isInteger(factor)) return value % factor === 0;
  const times = factor < 1 ? (1 / factor) * value : value / factor;
  const whole = Math.trunc(times);
  if (Math.abs(times) > Number.MAX_SAFE_INTEGER) return false;
  return times === whole || Math.abs(times - whole) / (Math.abs(times) + Math.abs(whole)) < 1e-9;
}

/** Whether a value is one of those that a schema lists. The comparison goes only as deep as the schema's values. */
function one({ source }: Structural, value: unknown, { path, found }: Terms): number {
  const { enum: values } = source;
  if (!Array.isArray(values) || values.length === 0) return 1;
  if (!values.some((each) => isSame(each, value) || isConverted(each, value)))
    found.add(unsupportedCause(fieldOf(path), value, values));
  return 1;
}

/** Upstream converts a number to the type of the listed value. */
function isConverted(listed: unknown, value: unknown): boolean {
  if (typeof value !== 'number') return false;
  if (typeof listed === 'number') return Number.isSafeInteger(listed) && Math.trunc(value) === listed;
  return (
    typeof listed === 'string' &&
    Number.isInteger(value) &&
    value >= 0 &&
    value <= 0x10ffff &&
    String.fromCodePoint(value) === listed
  );
}

export function isSame(one: unknown, other: unknown): boolean {
  if (!isContainer(one) || !isContainer(other)) return one === other;
  if (Array.isArray(one) !== Array.isArray(other)) return false;
  const names = Object.keys(one);
  if (names.length !== Object.keys(other).length) return false;
  return names.every((name) => Object.hasOwn(other, name) && isSame((one as Json)[name], (other as Json)[name]));
}

function* alternatives(tree: Structural, value: unknown, terms: Terms): Work<number> {
  const { path, found } = terms;
  let matches = 1;
  const attempt = function* (each: Structural): Work<readonly [number, Found]> {
    yield;
    const own = new Found();
    return [yield* checking(each, value, { path, old: ABSENT, found: own }), own];
  };
  const tell = (causes: Found | undefined): void => {
    for (const cause of causes?.all ?? []) found.add(cause);
  };
  if (tree.anyOf.length > 0) matches += yield* anyOf(tree.anyOf, { attempt, tell, path, found });
  if (tree.oneOf.length > 0) matches += yield* oneOf(tree.oneOf, { attempt, tell, path, found });
  let [valid, all] = [0, 0];
  for (const each of tree.allOf) {
    const [count, own] = yield* attempt(each);
    all++;
    if (own.all.length === 0) valid++;
    matches += count;
    tell(own);
  }
  if (valid < all) {
    found.add(placeless(`${JSON.stringify(path)} must validate all the schemas (allOf)${valid === 0 ? '. None validated' : ''}`));
  }
  if (tree.not === undefined) return matches;
  const [, own] = yield* attempt(tree.not);
  if (own.all.length === 0) found.add(placeless(`${JSON.stringify(path)} must not validate the schema (not)`));
  return matches;
}

interface Attempts {
  readonly attempt: (tree: Structural) => Work<readonly [number, Found]>;
  readonly tell: (causes: Found | undefined) => void;
  readonly path: string;
  readonly found: Found;
}

function* anyOf(trees: readonly Structural[], { attempt, tell, path, found }: Attempts): Work<number> {
  let [most, best]: [number, Found | undefined] = [-1, undefined];
  for (const each of trees) {
    const [count, own] = yield* attempt(each);
    if (own.all.length === 0) return count;
    if (count > most) [most, best] = [count, own];
  }
  found.add(placeless(`${JSON.stringify(path)} must validate at least one schema (anyOf)`));
  tell(best);
  return most;
}

function* oneOf(trees: readonly Structural[], { attempt, tell, path, found }: Attempts): Work<number> {
  let [most, best, valid, first]: [number, Found | undefined, number, number] = [-1, undefined, 0, 0];
  for (const each of trees) {
    const [count, own] = yield* attempt(each);
    if (own.all.length === 0) {
      if (valid++ === 0) first = count;
      best = undefined;
    } else if (valid === 0 && count > most) [most, best] = [count, own];
  }
  if (valid === 1) return first;
  const how = valid === 0 ? 'Found none valid' : `Found ${valid} valid alternatives`;
  found.add(placeless(`${JSON.stringify(path)} must validate one and only one schema (oneOf). ${how}`));
  tell(best);
  return best === undefined ? 0 : most;
}

/** Checks a part of a value. An unchanged part is not refused. */
function* part(tree: Structural, value: unknown, terms: Terms): Work<number> {
  const { found, old } = terms;
  const before = found.all.length;
  const matches = yield* checking(tree, value, terms);
  if (old !== ABSENT && found.all.length > before && (yield* isAsBefore(tree, value, old))) found.forget(before);
  return matches;
}

/** Whether a part is unchanged, as far as its schema goes: members that it does not name count as changed, uncompared. */
export function* isAsBefore(tree: Structural | undefined, value: unknown, old: unknown): Work<boolean> {
  if (!isContainer(value) || !isContainer(old)) return value === old;
  if (Array.isArray(value) !== Array.isArray(old)) return false;
  if (Array.isArray(value)) {
    if (tree?.source['x-kubernetes-list-type'] !== 'map') return yield* comparing(value, old);
    if (value.length !== (old as readonly unknown[]).length) return false;
    const before = yield* itemsByKey(tree.source, old as readonly unknown[]);
    for (const each of value) {
      const was = before(each);
      if (was === undefined || !(yield* isAsBefore(tree.items, each, was))) return false;
    }
    return true;
  }
  yield;
  const names = Object.keys(value);
  if (names.length !== Object.keys(old).length) return false;
  for (const name of names) {
    const below = tree?.properties?.get(name) ?? tree?.additional;
    if (typeof below !== 'object' || !Object.hasOwn(old, name)) return false;
    if (!(yield* isAsBefore(below, (value as Json)[name], (old as Json)[name]))) return false;
  }
  return true;
}

function* listed(tree: Structural, list: readonly unknown[], { path, old, found }: Terms): Work<number> {
  const { items, source } = tree;
  let matches = 1;
  if (items !== undefined) {
    const before = Array.isArray(old) && mapKeys(source).length > 0 ? yield* itemsByKey(source, old) : undefined;
    for (let at = 0; at < list.length; at++) {
      if (at % STRIDE === STRIDE - 1) yield;
      const value = list[at];
      const terms = { path: `${path}[${at}]`, old: before?.(value) ?? ABSENT, found };
      if (terms.old === ABSENT && items.isPlain && !isContainer(value)) matches += plain(items, value, terms);
      else matches += yield* part(items, value, terms);
    }
  }
  const { minItems, maxItems } = source;
  if (typeof minItems === 'number' && list.length < minItems) {
    found.add(valueCause(path, list.length, `should have at least ${minItems} items`));
  }
  if (typeof maxItems === 'number' && list.length > maxItems) found.add(tooManyCause(fieldOf(path), list.length, maxItems));
  if (source.uniqueItems === true && !(yield* areDifferent(list)))
    found.add(valueCause(path, '', "shouldn't contain duplicates"));
  return matches;
}

/** The key of an item of a map; undefined if it is incomplete. */
export function keyOfItem(names: readonly string[], item: unknown): string | undefined {
  if (!isRecord(item) || names.length === 0) return undefined;
  const keys = names.map((name) => (Object.hasOwn(item, name) ? item[name] : null));
  return keys.some(isContainer) || keys.includes(null) ? undefined : JSON.stringify(keys);
}

/** The names of the keys of a map. */
export function mapKeys(source: Json): readonly string[] {
  const names = source['x-kubernetes-list-map-keys'];
  return source['x-kubernetes-list-type'] === 'map' && Array.isArray(names) ? (names as readonly string[]) : [];
}

/** Finds the old value of an item by its keys. */
export function* itemsByKey(source: Json, old: readonly unknown[]): Work<(item: unknown) => unknown> {
  const names = mapKeys(source);
  const known = new Map<string, unknown>();
  for (const [at, item] of old.entries()) {
    if (at % STRIDE === STRIDE - 1) yield;
    const key = keyOfItem(names, item);
    // The first of several counts.
    if (key !== undefined && !known.has(key)) known.set(key, item);
  }
  return (item) => {
    const key = keyOfItem(names, item);
    return key === undefined ? undefined : known.get(key);
  };
}

function* membered(tree: Structural, object: Json, { path, old, found }: Terms): Work<number> {
  const { properties, additional, source, required } = tree;
  const names = Object.keys(object);
  const { minProperties, maxProperties } = source;
  if (typeof minProperties === 'number' && names.length < minProperties) {
    found.add(valueCause(path, names.length, `should have at least ${minProperties} properties`));
  }
  if (typeof maxProperties === 'number' && names.length > maxProperties) {
    found.add(tooManyCause(fieldOf(path), names.length, maxProperties));
  }
  let matches = 0;
  const others = typeof additional === 'object' ? additional : undefined;
  const before = isRecord(old) ? old : undefined;
  if (names.length > STRIDE) yield;
  for (let at = 0; at < names.length; at++) {
    if (at % STRIDE === STRIDE - 1) yield;
    const name = names[at] as string;
    const known = properties?.get(name);
    if (known === undefined && additional === false) {
      found.add(invalidCause(fieldOf(path), name, `${path}.${name} in body is a forbidden property`));
    }
    const below = known ?? others;
    if (below === undefined) continue;
    const value = object[name];
    const where = known !== undefined && path === '' ? name : `${path}.${name}`;
    const hadIt =
      before !== undefined && Object.hasOwn(before, name) && !(path === '' && (name === 'kind' || name === 'apiVersion'));
    const terms = { path: where, old: hadIt ? before[name] : ABSENT, found };
    if (terms.old === ABSENT && below.isPlain && !isContainer(value)) matches += plain(below, value, terms);
    else matches += yield* part(below, value, terms);
  }
  for (const name of required) if (!Object.hasOwn(object, name)) found.add(requiredCause(fieldOf(`${path}.${name}`), ''));
  return matches;
}

/** Whether items differ, in the time that it takes to encode them. */
export function* areDifferent(items: readonly unknown[]): Work<boolean> {
  const texts = new Set<string>();
  for (const [at, item] of items.entries()) {
    texts.add(yield* stringifying(yield* ordered(item)));
    if (at % STRIDE === STRIDE - 1) yield;
  }
  return texts.size === items.length;
}

/** The same for values that differ only in the order of members. */
function* ordered(value: unknown): Work<unknown> {
  if (Array.isArray(value)) {
    const items: unknown[] = [];
    for (const each of value) {
      items.push(typeof each === 'object' ? yield* ordered(each) : each);
      if (items.length % STRIDE === 0) yield;
    }
    return items;
  }
  if (!isRecord(value)) return value;
  const members: Record<string, unknown> = {};
  for (const [at, name] of Object.keys(value).sort().entries()) {
    put(members, name, yield* ordered(value[name]));
    if (at % STRIDE === STRIDE - 1) yield;
  }
  return members;
}

/** The parts of a value that a schema knows, with their paths. */
export function* parts(
  tree: Structural,
  value: object,
  path: string,
): Iterable<readonly [tree: Structural, value: unknown, path: string]> {
  const { properties, additional, items } = tree;
  if (Array.isArray(value)) {
    if (items !== undefined) for (const [at, each] of value.entries()) yield [items, each, `${path}[${at}]`];
    return;
  }
  for (const name of Object.keys(value)) {
    const known = properties?.get(name);
    const below = known ?? (typeof additional === 'object' ? additional : undefined);
    if (below === undefined) continue;
    yield [below, (value as Json)[name], known === undefined ? `${path}[${name}]` : childOf(path, name)];
  }
}

/** Items of sets, and keys of maps, that occur twice. */
export function* listCauses(tree: Structural, value: unknown, path: string = ''): Work<FieldCause[]> {
  if (!isContainer(value) || !tree.looksInside) return [];
  yield;
  const found: FieldCause[] = [];
  const type = tree.source['x-kubernetes-list-type'];
  if (Array.isArray(value) && type === 'set') found.push(...(yield* repeated(value, path)));
  if (Array.isArray(value) && type === 'map') found.push(...(yield* repeatedKeys(tree.source, value, path)));
  let steps = 0;
  for (const [below, each, where] of parts(tree, value, path)) {
    if (++steps % STRIDE === 0) yield;
    if (isContainer(each) && found.length < MAX_CAUSES) found.push(...(yield* listCauses(below, each, where)));
  }
  return found;
}

function* repeatedKeys(source: Json, list: readonly unknown[], path: string): Work<FieldCause[]> {
  const wrong = list.findIndex((item) => item !== null && !isRecord(item));
  if (wrong >= 0) {
    return [invalidCause(`${path}[${wrong}]`, list[wrong], 'must be an object for an array of list-type map')];
  }
  const names = mapKeys(source);
  const keys: Json[] = [];
  for (const item of list) {
    const key: Record<string, unknown> = {};
    for (const name of names) if (isRecord(item) && Object.hasOwn(item, name)) put(key, name, item[name]);
    keys.push(key);
    if (keys.length % STRIDE === 0) yield;
  }
  return yield* repeated(keys, path);
}

/** Each value is reported at its second place. */
function* repeated(values: readonly unknown[], path: string): Work<FieldCause[]> {
  const times = new Map<string, number>();
  const found: FieldCause[] = [];
  for (const [at, each] of values.entries()) {
    if (at % STRIDE === STRIDE - 1) yield;
    const text = yield* stringifying(yield* ordered(each));
    const count = times.get(text) ?? 0;
    times.set(text, count + 1);
    if (count === 1 && found.length < MAX_CAUSES) found.push(duplicateCause(`${path}[${at}]`, each));
  }
  return found;
}
