/**
 * What a structural schema makes of an object before it is checked: unknown members go, nulls go, defaults come. Upstream:
 * `apiextensions-apiserver/pkg/apiserver/schema`, with `pruning`, `defaulting` and `objectmeta`.
 *
 *     JSON schema ---> Structural, a tree, made once ---> shaping(tree, object) ---> the object as it is stored, and as it is read
 *                                                    '--> values.ts: what is wrong with it
 *
 * Invariants
 * - An object is never changed: what differs is a copy, and all else of it is shared. One that is right already is returned as it is,
 *   so that its bytes, which lists and watches are spliced from, are not encoded again.
 * - `apiVersion`, `kind` and `metadata` of the object itself are no business of its schema.
 * - The work yields, and takes as long as the object is large, however deep a schema is.
 */
import type { KubernetesObject } from '../../cache/object.ts';
import { put } from '../../storage/json.ts';
import { isRecord } from '../../watch/errors.ts';
import { STRIDE, type Work } from '../../watch/fair-queue.ts';
import type { JsonSchema } from '../definition.ts';
import { OPEN } from '../documents/schemas.ts';
import type { FieldPaths, Json, Step } from '../request/json.ts';
import { withMeta } from '../verbs/metadata.ts';

/** One place of a schema. */
export interface Structural {
  /** The types that it admits; empty: any. */
  readonly types: readonly string[];
  readonly nullable: boolean;
  /** Undefined and null are none. */
  readonly default: unknown;
  readonly properties: ReadonlyMap<string, Structural> | undefined;
  /** What all other members are; true: anything, of which nothing is known; undefined: not said. */
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
  /** Whether only its type, format and limits have to be looked at, for a value that is no object or list. */
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

/** What every object has. */
export const META_MEMBERS: ReadonlySet<string> = new Set(['apiVersion', 'kind', 'metadata']);

const trees: WeakMap<JsonSchema, Structural> = new WeakMap();

/** The tree of a schema of objects, made once. */
export function structuralOf(schema: JsonSchema): Structural {
  const known = trees.get(schema) ?? asKind(toStructural({ ...schema, type: 'object' }));
  trees.set(schema, known);
  return known;
}

/** The root of a kind: it has what all objects have; of its metadata, a schema may only restrict the names. */
function asKind(root: Structural): Structural {
  if (root.properties === undefined && root.additional === undefined) return root;
  const named = root.properties?.get('metadata')?.properties;
  const names = Array.from(named ?? []).filter(([name]) => name === 'name' || name === 'generateName');
  const metadata = { ...toStructural({ type: 'object' }), properties: new Map(names) };
  const text = toStructural({ type: 'string' });
  return {
    ...root,
    properties: new Map([['apiVersion', text], ['kind', text], ...(root.properties ?? []), ['metadata', metadata]]),
  };
}

const NONE: readonly never[] = [];

/**
 * Reads a schema. What is not one is read as far as it is. `raw`: formats that nobody knows, and numbers that may be texts, are taken as
 * they are written, as upstream does where it checks defaults.
 */
export function toStructural(source: JsonSchema, raw: boolean = false): Structural {
  const { type, format = '', additionalProperties: others } = source;
  const isNumberOrText = source['x-kubernetes-int-or-string'] === true && !raw;
  const types = isNumberOrText ? ['integer', 'string'] : Array.isArray(type) ? type : typeof type === 'string' ? [type] : NONE;
  const all = (keyword: string): readonly Structural[] => {
    const listed = source[keyword];
    return Array.isArray(listed) ? listed.filter(isRecord).map((each) => toStructural(each, raw)) : NONE;
  };
  const properties = isRecord(source.properties) ? toTrees(source.properties, raw) : undefined;
  const items = isRecord(source.items) ? toStructural(source.items, raw) : undefined;
  const additional = isRecord(others) ? toStructural(others, raw) : typeof others === 'boolean' ? others : undefined;
  const [allOf, anyOf, oneOf] = [all('allOf'), all('anyOf'), all('oneOf')];
  const not = isRecord(source.not) ? toStructural(source.not, raw) : undefined;
  const below = [items, typeof additional === 'object' ? additional : undefined, ...(properties?.values() ?? NONE)];
  return {
    ...{ types, properties, additional, items, allOf, anyOf, oneOf, not, source },
    nullable: source.nullable === true,
    default: source.default ?? undefined,
    preserves: source[OPEN] === true,
    embedded: source['x-kubernetes-embedded-resource'] === true,
    isPlain: allOf.length + anyOf.length + oneOf.length === 0 && not === undefined,
    required: Array.isArray(source.required) ? source.required : NONE,
    format: raw ? String(format) : formatOf(types, String(format)),
    fills: (source.default ?? undefined) !== undefined || below.some((each) => each?.fills === true),
    looksInside:
      source['x-kubernetes-embedded-resource'] === true ||
      source['x-kubernetes-list-type'] !== undefined ||
      below.some((each) => each?.looksInside === true),
  };
}

function toTrees(schemas: Json, raw: boolean): Map<string, Structural> {
  const trees = new Map<string, Structural>();
  for (const [name, each] of Object.entries(schemas)) if (isRecord(each)) trees.set(name, toStructural(each, raw));
  return trees;
}

const NUMBER_FORMATS: Readonly<Record<string, readonly string[]>> = { integer: ['int32', 'int64'], number: ['float', 'double'] };
const TEXT_FORMATS: ReadonlySet<string> = new Set([
  ...['bsonobjectid', 'uri', 'email', 'hostname', 'ipv4', 'ipv6', 'cidr', 'mac', 'uuid', 'uuid3', 'uuid4', 'uuid5', 'isbn'],
  ...['isbn10', 'isbn13', 'creditcard', 'ssn', 'hexcolor', 'rgbcolor', 'byte', 'password', 'date', 'duration', 'datetime'],
  ...['k8sshortname', 'k8slongname'],
]);

export const isTextFormat = (format: string): boolean => format !== '' && TEXT_FORMATS.has(format.replaceAll('-', ''));

/** A format that is not known for its type is as none. */
function formatOf(types: readonly string[], format: string): string {
  const [type = 'string'] = types.length === 1 ? types : NONE;
  const isKnown = type === 'string' ? isTextFormat(format) : NUMBER_FORMATS[type]?.includes(format);
  return isKnown === true ? format : '';
}

/** What is done to an object. */
interface ShapeTerms {
  /** Whether unknown members go, and nulls where none is allowed. Defaults come anyhow. */
  readonly prunes: boolean;
  /** Gets the paths of what is pruned. */
  readonly found?: FieldPaths | undefined;
  /** Whether nothing is done but that. */
  readonly only?: boolean | undefined;
}

/** Whether `shaping` may change an object of this schema. */
export const mayShape = (root: Structural, { prunes }: { readonly prunes: boolean }): boolean => prunes || root.fills;

/** An object as its schema has it. */
export function* shaping<T extends object>(root: Structural, object: T, terms: ShapeTerms): Work<T> {
  if (!mayShape(root, terms)) return object;
  return (yield* new Shaper(terms).whole(root, object as Json)) as T;
}

/** How the members of an object or list are treated. */
interface Ways {
  /** Whether members that the schema does not name go. */
  readonly prunes: boolean;
  /** Whether nulls go. */
  readonly drops: boolean;
}

/** A value without what its schema does not name, and otherwise as it is. */
export function* pruned(tree: Structural, value: object): Work<unknown> {
  return yield* new Shaper({ prunes: true, only: true }).defaulted(tree, value);
}

const isContainer = (value: unknown): value is object => typeof value === 'object' && value !== null;

class Shaper {
  readonly #found: FieldPaths | undefined;
  readonly #only: boolean;
  readonly #ways: Ways;
  readonly #steps: Step[] = [];
  #root: Structural | undefined;

  constructor({ prunes, found, only = false }: ShapeTerms) {
    this.#only = only;
    this.#found = found;
    this.#ways = { prunes, drops: prunes };
  }

  *whole(root: Structural, object: Json): Work<Json> {
    this.#root = { ...root, embedded: true };
    return yield* this.#members(this.#root, object, this.#ways);
  }

  *#value(node: Structural | undefined, value: object, ways: Ways): Work<unknown> {
    return Array.isArray(value) ? yield* this.#list(node, value, ways) : yield* this.#members(node, value as Json, ways);
  }

  *#list(node: Structural | undefined, list: readonly unknown[], ways: Ways): Work<readonly unknown[]> {
    let copy: unknown[] | undefined;
    const { items } = node ?? {};
    // A list that preserves what is unknown does so in its items.
    const below = items !== undefined && node?.preserves === true ? { ...items, preserves: true } : items;
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
      const isMeta = node?.embedded === true && META_MEMBERS.has(name);
      // Those of the object itself are as they were.
      if (isMeta && node === this.#root) continue;
      const known = node?.properties?.get(name) ?? node?.additional;
      if (ways.prunes && known === undefined && !isMeta && node?.preserves !== true) {
        this.#unknown(name);
        change(name, undefined);
        continue;
      }
      const below = typeof known === 'object' ? known : undefined;
      const value = isMeta && name === 'metadata' && !this.#only ? metadataOf(object[name]) : object[name];
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

  *#null(
    node: Structural | undefined,
    terms: { name: string; change: (name: string, value: unknown) => void; ways: Ways },
  ): Work<void> {
    const { name, change, ways } = terms;
    if (node === undefined || node.nullable) return;
    if (node.default !== undefined) change(name, yield* this.#defaultOf(node, ways));
    else if (ways.drops) change(name, undefined);
  }

  /** A default may lack what has a default itself, and of what it names too much, nothing is stored. */
  *#defaultOf(node: Structural, ways: Ways): Work<unknown> {
    const { default: value } = node;
    if (typeof value !== 'object' || value === null) return value;
    return yield* new Shaper({ prunes: ways.prunes }).defaulted(node, value);
  }

  *defaulted(node: Structural, value: object): Work<unknown> {
    return yield* this.#value(node, value, { ...this.#ways, drops: false });
  }

  #unknown(name: string): void {
    this.#found?.add(() => [...this.#steps, name]);
  }
}

/** The metadata of an object within an object: only what all objects have is kept. */
function metadataOf(value: unknown): unknown {
  if (!isRecord(value)) return value;
  const { metadata } = withMeta({ metadata: value } as KubernetesObject, {});
  const isSame = metadata !== undefined && Object.keys(metadata).length === Object.keys(value).length;
  return isSame ? value : metadata;
}

function copyOf(object: Json): Record<string, unknown> {
  const copy: Record<string, unknown> = {};
  for (const name of Object.keys(object)) put(copy, name, object[name]);
  return copy;
}
