/**
 * How a structural schema changes an object before it is checked: unknown members and nulls are removed, defaults are added.
 * Upstream: `apiextensions-apiserver/pkg/apiserver/schema`, with `pruning`, `defaulting` and `objectmeta`.
 *
 *     JSON schema ---> Structural, a tree, made once ---> shaping(tree, object) ---> the object as it is stored, and as it is read
 *                                                    '--> values.ts: what is wrong with it
 *
 * Invariants
 * - An object is never changed in place: changed parts are copied, and all others are shared. An object that needs no change is
 *   returned as it is, so that its bytes, from which lists and watches are spliced, are not encoded again.
 * - The schema does not apply to `apiVersion`, `kind` and `metadata` of the object itself.
 * - The work yields, and takes time proportional to the size of the object, however deep the schema is.
 */
import type { KubernetesObject } from '../../cache/object.ts';
import { parsing, put, stringifying } from '../../storage/json.ts';
import { Recent } from '../../storage/shared.ts';
import { getOrMake, isContainer, isRecord } from '../../watch/errors.ts';
import { STRIDE, type Work } from '../../watch/fair-queue.ts';
import type { JsonSchema } from '../definition.ts';
import { OPEN } from '../documents/schemas.ts';
import { type FieldPaths, type Json, type Step, toPath } from '../request/json.ts';
import { embeddedMeta, unknownMeta, withMeta } from '../verbs/metadata.ts';
import { invalidCause } from './causes.ts';

/** One place of a schema. */
export interface Structural {
  /** The types that it admits; empty for any. */
  readonly types: readonly string[];
  readonly nullable: boolean;
  /** Undefined or null: no default. */
  readonly default: unknown;
  readonly properties: ReadonlyMap<string, Structural> | undefined;
  /** The schema of all other members; true for any; undefined if the schema does not say. */
  readonly additional: Structural | boolean | undefined;
  readonly items: Structural | undefined;
  /** Whether members that it does not name are kept. */
  readonly preserves: boolean;
  /** Whether it is an object with a kind and metadata of its own. */
  readonly embedded: boolean;
  readonly allOf: readonly Structural[];
  readonly anyOf: readonly Structural[];
  readonly oneOf: readonly Structural[];
  readonly not: Structural | undefined;
  /** Whether a value that is not an object or list needs only its type, format and limits checked. */
  readonly isPlain: boolean;
  readonly required: readonly string[];
  readonly format: string;
  /** All keywords, as they were written. */
  readonly source: JsonSchema;
  /** Whether anything here or below has a default. */
  readonly fills: boolean;
  /** Whether there are objects with a kind of their own here or below, or sets, or maps. */
  readonly looksInside: boolean;
}

/** The members that every object has. */
export const META_MEMBERS: ReadonlySet<string> = new Set(['apiVersion', 'kind', 'metadata']);

const trees: WeakMap<JsonSchema, Structural> = new WeakMap();

/** The tree of a schema of objects, made once. */
export function structuralOf(schema: JsonSchema): Structural {
  return getOrMake(trees, schema, () => asKind(toStructural({ ...schema, type: 'object' })));
}

/** The root of a kind, with the members of all objects. A schema may restrict only the names in `metadata`. */
function asKind(root: Structural): Structural {
  if (root.properties === undefined && root.additional === undefined) return root;
  const named = root.properties?.get('metadata')?.properties;
  const names = Array.from(named ?? []).filter(([name]) => name === 'name' || name === 'generateName');
  const metadata = new Tree({ type: 'object' }, false, new Map(names));
  const text = new Tree({ type: 'string' }, false);
  const meta: [string, Structural][] = [
    ['apiVersion', text],
    ['kind', text],
  ];
  return new Tree(root.source, false, new Map([...meta, ...(root.properties ?? []), ['metadata', metadata]]));
}

const NONE: readonly never[] = [];

/**
 * Reads a schema, ignoring invalid parts. `raw`: unknown formats, and numbers that may be strings, are taken as they are written,
 * as upstream does when it checks defaults.
 */
export function toStructural(source: JsonSchema, raw: boolean = false): Structural {
  return new Tree(source, raw);
}

/** One place of a schema, which is read only when needed: few objects use most of a large schema. */
class Tree implements Structural {
  readonly source: JsonSchema;
  readonly types: readonly string[];
  readonly nullable: boolean;
  readonly default: unknown;
  readonly preserves: boolean;
  readonly embedded: boolean;
  readonly isPlain: boolean;
  readonly required: readonly string[];
  readonly format: string;
  readonly #raw: boolean;
  #properties: ReadonlyMap<string, Structural> | undefined;
  #additional: Structural | undefined;
  #items: Structural | undefined;
  #not: Structural | undefined;
  readonly #lists: Map<string, readonly Structural[]> = new Map();
  #fills: boolean | undefined;
  #looksInside: boolean | undefined;

  constructor(source: JsonSchema, raw: boolean, properties?: ReadonlyMap<string, Structural>) {
    const { type, format = '', allOf, anyOf, oneOf, not, required } = source;
    const isNumberOrText = source['x-kubernetes-int-or-string'] === true && !raw;
    this.source = source;
    this.#raw = raw;
    this.#properties = properties;
    this.types = isNumberOrText ? EITHER : Array.isArray(type) ? type : typeof type === 'string' ? [type] : NONE;
    this.nullable = source.nullable === true;
    this.default = source.default ?? undefined;
    this.preserves = source[OPEN] === true;
    this.embedded = source['x-kubernetes-embedded-resource'] === true;
    this.isPlain = allOf === undefined && anyOf === undefined && oneOf === undefined && not === undefined;
    this.required = Array.isArray(required) ? required : NONE;
    this.format = raw ? String(format) : formatOf(this.types, String(format));
  }

  get properties(): ReadonlyMap<string, Structural> | undefined {
    if (this.#properties !== undefined || !isRecord(this.source.properties)) return this.#properties;
    const made = new Map<string, Structural>();
    for (const [name, each] of Object.entries(this.source.properties))
      if (isRecord(each)) made.set(name, new Tree(each, this.#raw));
    this.#properties = made;
    return made;
  }

  get additional(): Structural | boolean | undefined {
    const { additionalProperties: others } = this.source;
    if (typeof others === 'boolean' || !isRecord(others)) return typeof others === 'boolean' ? others : undefined;
    this.#additional ??= new Tree(others, this.#raw);
    return this.#additional;
  }

  get items(): Structural | undefined {
    if (isRecord(this.source.items)) this.#items ??= new Tree(this.source.items, this.#raw);
    return this.#items;
  }

  get not(): Structural | undefined {
    if (isRecord(this.source.not)) this.#not ??= new Tree(this.source.not, this.#raw);
    return this.#not;
  }

  get allOf(): readonly Structural[] {
    return this.#listed('allOf');
  }

  get anyOf(): readonly Structural[] {
    return this.#listed('anyOf');
  }

  get oneOf(): readonly Structural[] {
    return this.#listed('oneOf');
  }

  get fills(): boolean {
    this.#fills ??= isAnywhere(this.source, (each) => (each.default ?? undefined) !== undefined);
    return this.#fills;
  }

  get looksInside(): boolean {
    this.#looksInside ??= isAnywhere(
      this.source,
      (each) => each['x-kubernetes-embedded-resource'] === true || each['x-kubernetes-list-type'] !== undefined,
    );
    return this.#looksInside;
  }

  #listed(keyword: string): readonly Structural[] {
    return getOrMake(this.#lists, keyword, () => {
      const listed = this.source[keyword];
      return Array.isArray(listed) ? listed.filter(isRecord).map((each) => new Tree(each, this.#raw)) : NONE;
    });
  }
}

const EITHER: readonly string[] = ['integer', 'string'];

/** Whether something is true of a schema, or of one for the members or items below it. */
export function isAnywhere(schema: JsonSchema, holds: (schema: JsonSchema) => boolean): boolean {
  if (holds(schema)) return true;
  const { properties, items, additionalProperties: others } = schema;
  if (isRecord(items) && isAnywhere(items, holds)) return true;
  if (isRecord(others) && isAnywhere(others, holds)) return true;
  if (!isRecord(properties)) return false;
  for (const name of Object.keys(properties)) {
    const each = properties[name];
    if (isRecord(each) && isAnywhere(each, holds)) return true;
  }
  return false;
}

/** The schemas directly below one, with their names in paths. */
export function* inside(schema: JsonSchema): Iterable<readonly [suffix: string, schema: JsonSchema]> {
  if (isRecord(schema.items)) yield ['.items', schema.items];
  if (isRecord(schema.additionalProperties)) yield ['.additionalProperties', schema.additionalProperties];
  for (const [suffix, each] of named(schema)) yield [suffix, each];
}

/** The members that a schema names. */
export function* named(schema: JsonSchema): Iterable<readonly [suffix: string, schema: JsonSchema, name: string]> {
  if (!isRecord(schema.properties)) return;
  for (const [name, each] of Object.entries(schema.properties)) if (isRecord(each)) yield [`.properties[${name}]`, each, name];
}

const NUMBER_FORMATS: Readonly<Record<string, readonly string[]>> = { integer: ['int32', 'int64'], number: ['float', 'double'] };
const TEXT_FORMATS: ReadonlySet<string> = new Set([
  ...['bsonobjectid', 'uri', 'email', 'hostname', 'ipv4', 'ipv6', 'cidr', 'mac', 'uuid', 'uuid3', 'uuid4', 'uuid5', 'isbn'],
  ...['isbn10', 'isbn13', 'creditcard', 'ssn', 'hexcolor', 'rgbcolor', 'byte', 'password', 'date', 'duration', 'datetime'],
  ...['k8sshortname', 'k8slongname'],
]);

export const isTextFormat = (format: string): boolean => format !== '' && TEXT_FORMATS.has(format.replaceAll('-', ''));

/** A format that is not known for its type is ignored. */
export function formatOf(types: readonly string[], format: string): string {
  const [type = 'string'] = types.length === 1 ? types : NONE;
  const isKnown = type === 'string' ? isTextFormat(format) : NUMBER_FORMATS[type]?.includes(format);
  return isKnown === true ? format : '';
}

/** How an object is changed. */
export interface ShapeTerms {
  /** Whether unknown members, and nulls where they are not allowed, are removed. Defaults are always added. */
  readonly prunes: boolean;
  /** Gets the paths of what is pruned. */
  readonly found?: FieldPaths | undefined;
  /** Whether to prune only, without defaults. */
  readonly only?: boolean | undefined;
  /** Whether the object is stored, and so never changes. */
  readonly stored?: boolean | undefined;
  /** Whether the object is the result of an apply: its nulls are not removed, but refused. */
  readonly applied?: boolean | undefined;
  /** The refusal of an object in which an embedded one has metadata of another type. Absent: that is left as it is. */
  readonly refusal?: ((why: string) => Error) | undefined;
}

/** Whether `shaping` may change an object of this schema. */
export const mayShape = (root: Structural, { prunes }: { readonly prunes: boolean }): boolean => prunes || root.fills;

/** An object changed to fit its schema. */
export function* shaping<T extends object>(root: Structural, object: T, terms: ShapeTerms): Work<T> {
  if (!mayShape(root, terms)) return object;
  return (yield* new Shaper(terms).whole(root, object as Json)) as T;
}

/** How the members of an object or list are treated. */
interface Ways {
  /** Whether members that the schema does not name are removed. */
  readonly prunes: boolean;
  /** Whether nulls are removed. */
  readonly drops: boolean;
}

/** A value without members that its schema does not name, and otherwise unchanged. */
export function* pruned(tree: Structural, value: object): Work<unknown> {
  return yield* new Shaper({ prunes: true, only: true }).defaulted(tree, value);
}

/** Whether a value certainly stays unchanged. */
type Keeps = (value: object) => boolean;

/** The most values of an object that are checked for staying unchanged: about a millisecond. */
const MAX_KEPT_VALUES = 8_192;

let left = 0;
/** With pruning, and without. */
const keepers: readonly WeakMap<Structural, Keeps>[] = [new WeakMap(), new WeakMap()];

function keepsOf(node: Structural, prunes: boolean, isRoot: boolean = false): Keeps {
  const made = keepers[Number(prunes)] as WeakMap<Structural, Keeps>;
  let keeps = made.get(node);
  if (keeps === undefined) {
    keeps = toKeeps(node, prunes, isRoot);
    made.set(node, keeps);
  }
  return keeps;
}

/** Parts of stored objects, which never change, that are known to stay as they are in a place. With pruning, and without. */
const stayed: readonly Recent<Structural>[] = [new Recent(), new Recent()];
/** Whether the value that is being checked is stored. */
let isStored = false;
/** How many values make a part worth remembering. */
const MANY = 16;

/** Whether something is known to be a part of a stored object. */
export const isPartOfStored = (part: object): boolean => stayed.some((each) => each.get(part) !== undefined);

function keepsPart(node: Structural, prunes: boolean, value: object): boolean {
  const known = stayed[Number(prunes)] as Recent<Structural>;
  if (known.get(value) === node) return true;
  const before = left;
  const keeps = keepsOf(node, prunes)(value);
  if (keeps && isStored && before - left > MANY) known.set(value, node);
  return keeps;
}

/** One function for each place, which neither allocates nor yields. Rare cases are left to Shaper, which changes a value. */
function toKeeps(node: Structural, prunes: boolean, isRoot: boolean): Keeps {
  const { items, properties, additional, preserves } = node;
  const defaults = Array.from(node.fills ? (properties ?? []) : []).flatMap(([name, each]) =>
    each.default === undefined || (isRoot && META_MEMBERS.has(name)) ? [] : [name],
  );
  const keepsAll = (list: readonly unknown[]): boolean => {
    for (let at = 0; at < list.length; at++) {
      const value = list[at];
      if (--left < 0) return false;
      if (value === null && items?.default !== undefined) return false;
      if (isContainer(value) && !(items === undefined ? preserves : keepsPart(items, prunes, value))) return false;
    }
    return true;
  };
  return (object) => {
    if (Array.isArray(object)) return keepsAll(object);
    if (node.embedded) return false;
    for (let at = 0; at < defaults.length; at++) if (!Object.hasOwn(object, defaults[at] as string)) return false;
    for (const name in object) {
      if (--left < 0) return false;
      if (isRoot && META_MEMBERS.has(name)) continue;
      const known = properties?.get(name) ?? additional;
      if (known === undefined && prunes && !preserves) return false;
      const value = (object as Json)[name];
      if (typeof value !== 'object' || known === undefined) continue;
      if (typeof known === 'boolean') {
        if (value !== null) return false;
      } else if (value === null ? !known.nullable && (prunes || known.default !== undefined) : !keepsPart(known, prunes, value)) {
        return false;
      }
    }
    return true;
  };
}

class Shaper {
  readonly #found: FieldPaths | undefined;
  readonly #only: boolean;
  readonly #stored: boolean;
  readonly #refusal: ShapeTerms['refusal'];
  /** How many more values may be checked in one go. */
  #left = MAX_KEPT_VALUES;
  readonly #ways: Ways;
  readonly #steps: Step[] = [];
  #root: Structural | undefined;

  constructor({ prunes, found, only = false, stored = false, applied = false, refusal }: ShapeTerms) {
    this.#stored = stored;
    this.#refusal = refusal;
    this.#only = only;
    this.#found = found;
    this.#ways = { prunes, drops: prunes && !applied };
  }

  *whole(root: Structural, object: Json): Work<Json> {
    this.#root = root;
    if (this.#keeps(root, object, this.#ways)) return object;
    return yield* this.#members(root, object, this.#ways);
  }

  /** Whether a quick check shows that a value stays unchanged. */
  #keeps(node: Structural | undefined, value: object, ways: Ways): boolean {
    if (node === undefined || ways !== this.#ways || this.#left < 0) return false;
    left = this.#left;
    isStored = this.#stored;
    const keeps = keepsOf(node, ways.prunes, node === this.#root)(value);
    this.#left = left;
    return keeps;
  }

  *#value(node: Structural | undefined, value: object, ways: Ways): Work<unknown> {
    if (this.#keeps(node, value, ways)) return value;
    return Array.isArray(value) ? yield* this.#list(node, value, ways) : yield* this.#members(node, value as Json, ways);
  }

  *#list(node: Structural | undefined, list: readonly unknown[], ways: Ways): Work<readonly unknown[]> {
    let copy: unknown[] | undefined;
    const { items } = node ?? {};
    // A list that preserves unknown fields does so in its items.
    const below = items !== undefined && node?.preserves === true ? preserving(items) : items;
    const kept = node?.preserves === true && items === undefined;
    for (let at = 0; at < list.length; at++) {
      if (at % STRIDE === STRIDE - 1) yield;
      const given = list[at];
      const value =
        given === null && items?.nullable === false && !this.#only ? ((yield* this.#defaultOf(items, ways)) ?? null) : given;
      let next = value;
      if (typeof value === 'object' && value !== null && !kept) {
        this.#steps.push(at);
        next = yield* this.#value(below, value, value === given ? ways : { ...ways, drops: false });
        this.#steps.pop();
      }
      if (next === given) continue;
      copy ??= [...list];
      copy[at] = next;
    }
    return copy ?? list;
  }

  *#members(node: Structural | undefined, object: Json, ways: Ways): Work<Json> {
    const names = Object.keys(object);
    if (names.length > STRIDE) yield;
    let copy: Record<string, unknown> | undefined;
    const change = (name: string, value: unknown): void => {
      copy ??= copyOf(object);
      if (value === undefined) delete copy[name];
      else put(copy, name, value);
    };
    for (let at = 0; at < names.length; at++) {
      if (at % STRIDE === STRIDE - 1) yield;
      const name = names[at] as string;
      const isMeta = (node?.embedded === true || node === this.#root) && META_MEMBERS.has(name);
      // Those of the object itself stay unchanged.
      if (isMeta && node === this.#root) continue;
      if (isMeta && name === 'metadata' && this.#found) this.#inMeta(object[name]);
      const known = node?.properties?.get(name) ?? node?.additional;
      if (ways.prunes && known === undefined && !isMeta && node?.preserves !== true) {
        this.#found?.add(() => [...this.#steps, name]);
        change(name, undefined);
        continue;
      }
      const below = typeof known === 'object' ? known : undefined;
      const value = isMeta && name === 'metadata' && !this.#only ? this.#metadata(object[name]) : object[name];
      if (value !== object[name]) change(name, value);
      if (value === null && !this.#only) yield* this.#null(below, { name, change, ways });
      else if (isContainer(value) && (below !== undefined || (!isMeta && known !== undefined))) {
        this.#steps.push(name);
        const next = yield* this.#value(below, value as object, ways);
        this.#steps.pop();
        if (next !== value) change(name, next);
      }
    }
    if (node?.fills !== true || node.properties === undefined || this.#only) return copy ?? object;
    for (const [name, each] of node.properties) {
      if (each.default === undefined || Object.hasOwn(object, name)) continue;
      if (node === this.#root && META_MEMBERS.has(name)) continue;
      change(name, yield* this.#defaultOf(each, ways));
    }
    return copy ?? object;
  }

  #inMeta(metadata: unknown): void {
    const unknown = isRecord(metadata) ? unknownMeta(metadata) : [];
    for (const path of unknown) this.#found?.add(() => [...this.#steps, 'metadata', ...path]);
  }

  #metadata(value: unknown): unknown {
    if (this.#refusal === undefined || value === null) return metadataOf(value);
    const read = embeddedMeta(value);
    if (typeof read !== 'string') return read;
    throw this.#refusal(`${toPath([...this.#steps, 'metadata'])}: ${invalidCause('', value, read).message}`);
  }

  *#null(
    node: Structural | undefined,
    terms: { name: string; change: (name: string, value: unknown) => void; ways: Ways },
  ): Work<void> {
    const { name, change, ways } = terms;
    if (node === undefined || node.nullable) return;
    if (node.default !== undefined) change(name, yield* this.#defaultOf(node, ways));
    else if (ways.drops) change(name, undefined);
  }

  /** A default may lack members that have defaults themselves, and its unknown members are not stored. */
  *#defaultOf(node: Structural, ways: Ways): Work<unknown> {
    const { default: value } = node;
    if (typeof value !== 'object' || value === null) return value;
    return yield* new Shaper({ prunes: ways.prunes }).defaulted(node, yield* frozenOf(value));
  }

  *defaulted(node: Structural, value: object): Work<unknown> {
    return yield* this.#value(node, value, { ...this.#ways, drops: false });
  }
}

const frozen: WeakMap<object, object> = new WeakMap();

/** A frozen default, made once, and shared by all objects that lack it. */
function* frozenOf(value: object): Work<object> {
  const known = frozen.get(value);
  if (known !== undefined) return known;
  const made = (yield* parsing(yield* stringifying(value))) as object;
  const open = [made];
  for (let steps = 1; ; steps++) {
    const each = open.pop();
    if (each === undefined) break;
    for (const below of Object.values(Object.freeze(each))) if (isContainer(below)) open.push(below as object);
    if (steps % STRIDE === 0) yield;
  }
  frozen.set(value, made);
  return made;
}

/** The metadata of an embedded object: only the members that all objects have are kept. */
function metadataOf(value: unknown): unknown {
  if (!isRecord(value)) return value;
  const { metadata } = withMeta({ metadata: value } as KubernetesObject, {});
  const isSame = metadata !== undefined && Object.keys(metadata).length === Object.keys(value).length;
  return isSame ? value : metadata;
}

const preservingTrees: WeakMap<Structural, Structural> = new WeakMap();

/** The same place, but preserving unknown members. */
function preserving(tree: Structural): Structural {
  if (tree.preserves) return tree;
  return getOrMake(preservingTrees, tree, () => toStructural({ ...tree.source, [OPEN]: true }));
}

function copyOf(object: Json): Record<string, unknown> {
  const copy: Record<string, unknown> = {};
  for (const name of Object.keys(object)) put(copy, name, object[name]);
  return copy;
}
