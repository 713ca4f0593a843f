/**
 * Sets of fields: those of an object that somebody owns, as in `metadata.managedFields` (FieldsV1).
 *
 *     { "f:spec": { "f:ports": { "k:{\"port\":80}": { ".": {}, "f:port": {} } } } }
 *       a node     its children   an element            it is itself a member, besides what is below it
 *
 * A set is a tree. An element of a path is its text in FieldsV1, in canonical form, so that equal elements are equal texts: `f:`
 * and the name of a field, `k:` and the keys of a list item, `v:` and an item of a set, `i:` and an index.
 *
 * Invariants
 * - Sets are immutable; the results of operations share what is the same. A union or difference that equals its first operand is
 *   that operand, so that "nothing has changed" is one comparison.
 * - No node except the root is empty: each is a member or has children.
 * - All operations take time proportional to the nodes that both operands share, and run in pieces.
 */
import { invalid, isRecord, WatchError } from '../watch/errors.ts';
import { STRIDE, type Work } from '../watch/fair-queue.ts';

/** The most levels of a path. No schema is that deep. */
const MAX_DEPTH = 512;
/** The longest element, in characters, unless it is a field or a string. */
export const MAX_ELEMENT_CHARS = 8_192;
/** The most elements of one set. */
const MAX_FIELDS = 250_000;

type Children = Map<string, FieldSet>;

/** A set of paths, or a node of one. */
export class FieldSet {
  /** Whether the path that leads here is in the set. */
  readonly isMember: boolean;
  #children: ReadonlyMap<string, FieldSet> | undefined;
  /** The children as canonical FieldsV1, until they are needed. */
  #fields: Fields | undefined;

  constructor(isMember: boolean, children?: ReadonlyMap<string, FieldSet>, fields?: Fields) {
    this.isMember = isMember;
    this.#children = children?.size ? children : undefined;
    this.#fields = fields;
  }

  get children(): ReadonlyMap<string, FieldSet> | undefined {
    if (this.#fields) {
      this.#children = childrenIn(this.#fields);
      this.#fields = undefined;
    }
    return this.#children;
  }

  get isEmpty(): boolean {
    return !this.isMember && this.children === undefined;
  }

  below(element: string): FieldSet {
    return this.children?.get(element) ?? NO_FIELDS;
  }

  /** Whether the element itself is in the set. */
  has(element: string): boolean {
    return this.children?.get(element)?.isMember === true;
  }
}

type Fields = Readonly<Record<string, unknown>>;

function childrenIn(fields: Fields): Children | undefined {
  let children: Children | undefined;
  for (const element in fields) {
    if (element === '.') continue;
    const below = fields[element] as Fields;
    children ??= new Map();
    children.set(element, isNothing(below) ? LEAF : new FieldSet('.' in below, undefined, below));
  }
  return children;
}

/** What `fromFields` returns for FieldsV1 that are exact and not large. */
export const ofExact = (fields: Fields): Read => ({ set: new FieldSet(false, undefined, fields), isExact: true, size: 0 });

interface Read {
  readonly set: FieldSet;
  /** Whether it would be written in the same way. */
  readonly isExact: boolean;
  /** How many fields there are, if that was not known. */
  readonly size: number;
}

export const NO_FIELDS: FieldSet = new FieldSet(false);
/** A path that ends here. */
export const LEAF: FieldSet = new FieldSet(true);

let steps = 0;
/** Whether work yields after this step. */
export const isPause = (): boolean => ++steps % STRIDE === 0;

/** Collects paths. */
export class FieldSetBuilder {
  #root: FieldSet = new FieldSet(false, undefined);

  /** Adds a path; the empty one is ignored. */
  add(path: readonly string[]): void {
    if (path.length > 0) this.#root = added(this.#root, path, 0);
  }

  get set(): FieldSet {
    return this.#root;
  }
}

/** A builder owns its nodes until it is done, so their children change in place. */
function added(node: FieldSet, path: readonly string[], at: number): FieldSet {
  if (at === path.length) return node.isMember ? node : new FieldSet(true, node.children);
  const element = path[at] as string;
  const own = node.children as Children | undefined;
  const child = added(own?.get(element) ?? NO_FIELDS, path, at + 1);
  if (!own) return new FieldSet(node.isMember, new Map([[element, child]]));
  own.set(element, child);
  return node;
}

export function setOf(...paths: readonly (readonly string[])[]): FieldSet {
  const builder = new FieldSetBuilder();
  for (const path of paths) builder.add(path);
  return builder.set;
}

/** A node with some children replaced or removed. */
class Changed {
  readonly #node: FieldSet;
  #children: Children | undefined;

  constructor(node: FieldSet) {
    this.#node = node;
  }

  put(element: string, child: FieldSet): void {
    this.#children ??= new Map(this.#node.children);
    if (child.isEmpty) this.#children.delete(element);
    else this.#children.set(element, child);
  }

  as(isMember: boolean): FieldSet {
    const node = this.#node;
    if (!this.#children && isMember === node.isMember) return node;
    return new FieldSet(isMember, this.#children ?? node.children);
  }
}

/** The paths in either set. */
export function* union(one: FieldSet, other: FieldSet): Work<FieldSet> {
  if (one === other || other.isEmpty) return one;
  if (one.isEmpty) return other;
  // Copies the larger one, and iterates over the smaller one.
  if ((one.children?.size ?? 0) < (other.children?.size ?? 0)) return yield* union(other, one);
  const changed = new Changed(one);
  for (const [element, theirs] of other.children ?? NOTHING) {
    if (isPause()) yield;
    const own = one.children?.get(element);
    const both = own ? yield* union(own, theirs) : theirs;
    if (both !== own) changed.put(element, both);
  }
  return changed.as(one.isMember || other.isMember);
}

/** The paths in any of the sets. These are joined in pairs, so that fields are rarely copied. */
export function* unionOf(sets: readonly FieldSet[]): Work<FieldSet> {
  let all = sets;
  while (all.length > 1) {
    const joined: FieldSet[] = [];
    for (let at = 0; at < all.length; at += 2) joined.push(yield* union(all[at] as FieldSet, all[at + 1] ?? NO_FIELDS));
    all = joined;
  }
  return all[0] ?? NO_FIELDS;
}

/** The paths in both sets. */
export function* intersection(one: FieldSet, other: FieldSet): Work<FieldSet> {
  if (one === other) return one;
  const [few, many] = (one.children?.size ?? 0) <= (other.children?.size ?? 0) ? [one, other] : [other, one];
  let children: Children | undefined;
  for (const [element, child] of few.children ?? NOTHING) {
    if (isPause()) yield;
    const match = many.children?.get(element);
    if (!match) continue;
    const both = yield* intersection(child, match);
    if (both.isEmpty) continue;
    children ??= new Map();
    children.set(element, both);
  }
  const isMember = one.isMember && other.isMember;
  return children || isMember ? new FieldSet(isMember, children) : NO_FIELDS;
}

/** The paths in the first set but not in the other. A member does not stand for what is below it, unless `recursively`. */
export function* difference(one: FieldSet, other: FieldSet, recursively: boolean = false): Work<FieldSet> {
  if (one.isEmpty || other.isEmpty) return one;
  if (recursively && other.isMember) return NO_FIELDS;
  const changed = new Changed(one);
  const isFewer = (other.children?.size ?? 0) < (one.children?.size ?? 0);
  for (const element of (isFewer ? other.children : one.children)?.keys() ?? []) {
    if (isPause()) yield;
    const own = one.children?.get(element);
    const theirs = own && other.children?.get(element);
    if (!theirs) continue;
    const left = yield* difference(own, theirs, recursively);
    if (left !== own) changed.put(element, left);
  }
  return changed.as(one.isMember && !other.isMember);
}

/** Whether the first set is a subset of the other. */
export function* isWithin(one: FieldSet, other: FieldSet): Work<boolean> {
  if (one === other) return true;
  if (one.isMember && !other.isMember) return false;
  for (const [element, child] of one.children ?? NOTHING) {
    if (isPause()) yield;
    const match = other.children?.get(element);
    if (!match) return false;
    if (child !== match && !(child === LEAF && match.isMember) && !(yield* isWithin(child, match))) return false;
  }
  return true;
}

/** Whether two sets are the same. */
export function* isSame(one: FieldSet, other: FieldSet): Work<boolean> {
  if (one === other) return true;
  if (one.isMember !== other.isMember || one.children?.size !== other.children?.size) return false;
  for (const [element, child] of one.children ?? NOTHING) {
    if (isPause()) yield;
    const match = other.children?.get(element);
    if (!match || (child !== match && !(yield* isSame(child, match)))) return false;
  }
  return true;
}

/** The paths that have no others below them. */
export function* leavesOf(set: FieldSet): Work<FieldSet> {
  if (!set.children) return set;
  const changed = new Changed(set);
  for (const [element, child] of set.children) {
    if (isPause()) yield;
    const leaves = yield* leavesOf(child);
    if (leaves !== child) changed.put(element, leaves);
  }
  return changed.as(false);
}

/** The first paths, at most `limit`, in upstream's order: the members of a node, then what is below them. */
export function* pathsOf(set: FieldSet, limit: number, prefix: readonly string[] = []): Work<readonly (readonly string[])[]> {
  const paths: (readonly string[])[] = [];
  if (limit <= 0) return paths;
  const elements = sorted(set);
  for (const element of elements) if (paths.length < limit && set.has(element)) paths.push([...prefix, element]);
  for (const element of elements) {
    if (paths.length >= limit) break;
    if (isPause()) yield;
    const child = set.below(element);
    if (child.children) paths.push(...(yield* pathsOf(child, limit - paths.length, [...prefix, element])));
  }
  return paths;
}

/** How many paths there are. */
export function* sizeOf(set: FieldSet): Work<number> {
  let size = set.isMember ? 1 : 0;
  for (const child of set.children?.values() ?? []) {
    if (isPause()) yield;
    size += child === LEAF ? 1 : yield* sizeOf(child);
  }
  return size;
}

const NOTHING: ReadonlyMap<string, FieldSet> = new Map();

/** The set as FieldsV1. */
export function* toFields(set: FieldSet): Work<Record<string, unknown>> {
  const fields: Record<string, unknown> = {};
  for (const element of sorted(set)) {
    if (isPause()) yield;
    const child = set.below(element);
    const below = child.children ? yield* toFields(child) : {};
    fields[element] = child.children && child.isMember ? { '.': {}, ...below } : below;
  }
  return fields;
}

/** Reads FieldsV1, and says whether `toFields` would write the same. Throws INVALID_ARGUMENT if they are invalid, or too many. */
export function* fromFields(fields: unknown): Work<Read> {
  const reader = new FieldsReader();
  const { children } = yield* reader.node(fields ?? {}, 0);
  return { set: new FieldSet(false, children), isExact: reader.isExact, size: reader.fields };
}

class FieldsReader {
  isExact: boolean = true;
  fields: number = 0;

  *node(fields: unknown, depth: number): Work<FieldSet> {
    if (fields !== null && !isRecord(fields)) throw invalid('fieldsV1', fields, 'an object of fields');
    if (depth > MAX_DEPTH) throw tooLarge('levels', MAX_DEPTH);
    let [isMember, children]: [boolean, Children | undefined] = [false, undefined];
    const own = fields ?? {};
    for (const key in own) {
      if (isPause()) yield;
      const element = key === '.' ? undefined : toElement(key);
      if (element === undefined) {
        if (key === '.') isMember = true;
        this.isExact &&= key === '.' && isRecord(own[key]) && isNothing(own[key]);
        continue;
      }
      this.isExact &&= element === key;
      if (++this.fields > MAX_FIELDS) throw tooLarge('fields', MAX_FIELDS);
      const below = own[key];
      const child = isRecord(below) && isNothing(below) ? LEAF : yield* this.node(below, depth + 1);
      children ??= new Map();
      children.set(element, child);
    }
    if (children) return new FieldSet(isMember, children);
    this.isExact &&= depth === 0 && fields !== null;
    return LEAF;
  }
}

/** Whether an object or a list has no members. */
export function isNothing(object: object | undefined): boolean {
  // A loop would list all indices first.
  if (Array.isArray(object)) return object.length === 0;
  for (const _ in object) return false;
  return true;
}

const tooLarge = (what: string, limit: number): WatchError =>
  new WatchError('INVALID_ARGUMENT', `fieldsV1: expected at most ${limit} ${what}`, { limit });

/** List elements known to be in canonical form: checking that takes longer than everything else. */
const known: Set<string> = new Set();
const MAX_KNOWN = 8_192;
const MAX_KNOWN_CHARS = 128;

function toElement(key: string): string | undefined {
  if (key.startsWith('f:') || known.has(key)) return key;
  if (isTooLong(key)) throw tooLarge('characters of an element', MAX_ELEMENT_CHARS);
  const element = parsedElement(key);
  if (element !== undefined && isTooLong(element)) throw tooLarge('characters of an element', MAX_ELEMENT_CHARS);
  if (element === key && key.length <= MAX_KNOWN_CHARS) {
    if (known.size >= MAX_KNOWN) known.clear();
    known.add(key);
  }
  return element;
}

const isTooLong = (element: string): boolean => element.length > MAX_ELEMENT_CHARS && !element.startsWith('v:"');

/** An element in canonical form; undefined if its kind is unknown, as a future version may have others. */
function parsedElement(key: string): string | undefined {
  if (key[1] !== ':') throw invalid('fieldsV1', key, 'f:, k:, v: or i: and an element');
  const text = key.slice(2);
  try {
    if (key[0] === 'v') return valueElement(JSON.parse(text));
    if (key[0] === 'k') {
      const keys: unknown = JSON.parse(text);
      if (keys === null || isRecord(keys)) return keyElement(membersOf(keys ?? {}, keyName));
      throw new SyntaxError('no object');
    }
  } catch {
    throw invalid('fieldsV1', key, 'an element in JSON');
  }
  if (key[0] !== 'i') return undefined;
  if (!/^[+-]?\d{1,15}$/.test(text)) throw invalid('fieldsV1', key, 'i: and a whole number');
  return `i:${Number(text)}`;
}

export const fieldElement = (name: string): string => `f:${name}`;
export const valueElement = (value: unknown): string => `v:${canonical(value)}`;
/** The element of an item with these keys, as JSON, in the order of their names. */
export const keyElement = (keys: string): string => `k:{${keys}}`;
/** The name of a key in JSON: unlike those in values, it keeps what is special in HTML. */
export const keyName = (name: string): string => escaped(JSON.stringify(name), /\\[bf\\]/g);

const SPECIAL = /[<>&\u2028\u2029\b\f]/;
const SPECIALS = /[<>&\u2028\u2029]|\\[bf\\]/g;

/**
 * JSON as Go writes it: members in order, and characters that are special in HTML escaped. Only in elements, exponents have two
 * digits.
 */
export function canonical(value: unknown, shown: (value: number) => string = shownNumber): string {
  if (typeof value === 'string') return SPECIAL.test(value) ? escaped(JSON.stringify(value)) : JSON.stringify(value);
  if (typeof value === 'number') return shown(value);
  if (Array.isArray(value)) return `[${value.map((each) => canonical(each, shown)).join(',')}]`;
  if (!isRecord(value)) return JSON.stringify(value);
  return `{${membersOf(value, canonical, shown)}}`;
}

/** Members in order. */
function membersOf(value: Fields, named: (name: string) => string, shown?: (value: number) => string): string {
  const names = Object.keys(value).sort(compareText);
  return names.map((name) => `${named(name)}:${canonical(value[name], shown)}`).join(',');
}

const escaped = (json: string, specials: RegExp = SPECIALS): string =>
  json.replace(specials, (each) => {
    if (each === '\\\\') return each;
    if (each.length === 2) return each === '\\b' ? '\\u0008' : '\\u000c';
    return `\\u${each.charCodeAt(0).toString(16).padStart(4, '0')}`;
  });

const SURROGATE = /[\ud800-\udfff]/;

/** The order of strings in Go, which is that of their code points. */
export function compareText(one: string, other: string): number {
  if (one === other) return 0;
  if (!SURROGATE.test(one) && !SURROGATE.test(other)) return one < other ? -1 : 1;
  const [a, b] = [[...one], [...other]];
  const at = a.findIndex((char, index) => char !== b[index]);
  if (at < 0) return -1;
  return ((a[at] as string).codePointAt(0) as number) - (b[at]?.codePointAt(0) ?? -1);
}

const KINDS = 'fkvi';

/** The elements of a node in upstream's order: fields, keys, values, indexes. */
function sorted(set: FieldSet): readonly string[] {
  const elements = [...(set.children?.keys() ?? [])];
  if (elements.length < 2) return elements;
  if (elements.every((each) => each.startsWith('f:'))) return elements.sort(compareText);
  return elements
    .map((element) => ({ element, kind: KINDS.indexOf(element[0] as string), value: contentOf(element) }))
    .sort((a, b) => a.kind - b.kind || compareContent(a.kind, a.value, b.value))
    .map(({ element }) => element);
}

function contentOf(element: string): unknown {
  const text = element.slice(2);
  return element[0] === 'f' ? text : JSON.parse(text);
}

function compareContent(kind: number, one: unknown, other: unknown): number {
  return kind === 1 ? compareMembers(one as Members, other as Members) : compareValues(one, other);
}

type Members = Readonly<Record<string, unknown>>;

function compareMembers(one: Members, other: Members): number {
  const [a, b] = [Object.keys(one), Object.keys(other)];
  for (let at = 0; at < Math.min(a.length, b.length); at++) {
    const [left, right] = [a[at] as string, b[at] as string];
    const order = compareText(left, right) || compareValues(one[left], other[right]);
    if (order !== 0) return order;
  }
  return a.length - b.length;
}

function compareValues(one: unknown, other: unknown): number {
  const [a, b] = [rankOf(one), rankOf(other)];
  if (a !== b) return a - b;
  if (typeof one === 'string') return compareText(one, other as string);
  if (Array.isArray(one) && Array.isArray(other)) {
    for (let at = 0; at < Math.min(one.length, other.length); at++) {
      const order = compareValues(one[at], other[at]);
      if (order !== 0) return order;
    }
    return one.length - other.length;
  }
  if (isRecord(one)) return compareMembers(one, other as Members);
  return Number(one) - Number(other);
}

function rankOf(value: unknown): number {
  if (value === null) return 5;
  if (Array.isArray(value)) return 3;
  return ['number', 'string', 'boolean', 'array', 'object'].indexOf(typeof value);
}

/** How many characters of a path a message shows. */
const MAX_PATH_CHARS = 256;

/** A path as upstream's messages show it, such as `.spec.ports[port=80].name`; only the beginning if it is long. */
export function shownPath(path: readonly string[]): string {
  let shown = '';
  for (const element of path) {
    shown += shownElement(element);
    if (shown.length > MAX_PATH_CHARS) return `${shown.slice(0, MAX_PATH_CHARS)}...`;
  }
  return shown;
}

/** An element that is too long anyway is not copied. */
function shownElement(element: string): string {
  if (element.startsWith('f:')) return `.${element.slice(2, 2 + MAX_PATH_CHARS)}`;
  if (element.length > MAX_ELEMENT_CHARS) return `[${element.slice(2, 2 + MAX_PATH_CHARS)}`;
  const content = contentOf(element);
  if (element[0] === 'v') return `[=${shownValue(content)}]`;
  if (element[0] === 'i') return `[${content}]`;
  const keys = Object.entries(content as Members);
  return `[${keys.map(([name, value]) => `${name}=${shownValue(value)}`).join(',')}]`;
}

/** A number as Go prints it: with two digits in an exponent. */
export const shownNumber = (value: number): string => String(value).replace(/e([+-])(\d)$/, 'e$10$2');

function shownValue(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(shownValue).join(',')}]`;
  if (typeof value === 'number') return shownNumber(value);
  if (!isRecord(value)) return JSON.stringify(value);
  return Object.entries(value)
    .map(([name, each]) => `${name}=${shownValue(each)}`)
    .join('');
}
