/**
 * What a schema says about ownership: which parts of a value are owned separately, and which only as a whole.
 *
 * A schema is an OpenAPI schema as in CustomResourceDefinitions. Its parts become types when a value first needs them, so a large
 * schema costs only what is used of it. Without a schema, and below `x-kubernetes-preserve-unknown-fields`, types are deduced
 * from values: objects have fields, and lists are owned as a whole.
 */
import { isRecord } from '../watch/errors.ts';
import { canonical, compareText, fieldElement, keyElement, keyName, MAX_ELEMENT_CHARS, valueElement } from './field-set.ts';

/** An OpenAPI v3 schema, as in a CustomResourceDefinition. */
export type JsonSchema = Readonly<Record<string, unknown>>;

/** A value that is not of its type; the message is upstream's. */
export class TypedError extends Error {
  override readonly name: string = 'TypedError';
}

export type Scalar = 'numeric' | 'string' | 'boolean' | 'untyped';
export type ValueKind = 'map' | 'list' | 'scalar';

/** The values that a place admits. If it admits several kinds, a value decides which one applies. */
export interface Type {
  readonly scalar?: Scalar | undefined;
  readonly list?: ListType | undefined;
  readonly map?: MapType | undefined;
}

/** A member of an object that the schema names. */
interface Field {
  readonly element: string;
  readonly type: Type;
  readonly default: unknown;
}

/** An object. */
export class MapType {
  readonly isAtomic: boolean;
  /** Whether it has any members, of deduced types, so that it cannot have had another type before. */
  readonly isDeduced: boolean;
  readonly #properties: JsonSchema;
  readonly #more: Readonly<Record<string, JsonSchema>>;
  readonly #preserves: boolean;
  readonly #rest: (() => Type) | undefined;
  readonly #fields: Map<string, Field> = new Map();
  #element: Type | undefined;

  constructor(schema: JsonSchema, preserves: boolean, more: Readonly<Record<string, JsonSchema>> = NONE) {
    this.#properties = isRecord(schema.properties) ? schema.properties : NONE;
    this.#more = more;
    this.#preserves = preserves;
    this.isAtomic = schema['x-kubernetes-map-type'] === 'atomic';
    const rest = schema.additionalProperties;
    const hasFields = more !== NONE || Object.keys(this.#properties).length > 0;
    if (isRecord(rest)) this.#rest = () => typeOf(rest, preserves);
    else if (rest === true || (rest === undefined && (preserves || !hasFields))) this.#rest = () => DEDUCED;
    const isUnknown = this.#rest !== undefined && (!isRecord(rest) || isUntyped(rest));
    this.isDeduced = !hasFields && isUnknown && schema !== ANYTHING;
  }

  /** The type of members that the schema does not name; undefined if it allows none. */
  get element(): Type | undefined {
    this.#element ??= this.#rest?.();
    return this.#element;
  }

  /** What the schema says about a member. */
  field(name: string): Field | undefined {
    const known = this.#fields.get(name);
    if (known) return known;
    const schemas = Object.hasOwn(this.#more, name) ? this.#more : this.#properties;
    const schema = Object.hasOwn(schemas, name) ? schemas[name] : undefined;
    if (!isRecord(schema)) return undefined;
    const field = { element: fieldElement(name), type: typeOf(schema, this.#preserves), default: schema.default };
    this.#fields.set(name, field);
    return field;
  }
}

/** The elements of lists in the current operations. */
let found: WeakMap<readonly unknown[], { readonly type: ListType; readonly elements: readonly string[] }> = new WeakMap();

/** Begins an operation: what is known about lists is forgotten, as they may have changed since. */
export function beginOperation(): void {
  found = new WeakMap();
}

export class ListType {
  readonly isAtomic: boolean;
  /** The members that tell items apart, in order; if there are none, their values do. */
  readonly keys: readonly string[];
  readonly #keys: readonly string[];
  /** The keys in JSON, in order. */
  readonly #prefixes: readonly string[];
  readonly #items: () => Type;
  #element: Type | undefined;

  constructor(schema: JsonSchema, preserves: boolean) {
    const { kind, keys } = listKindOf(schema);
    this.isAtomic = kind === 'atomic';
    this.#keys = keys;
    this.keys = [...keys].sort(compareText);
    this.#prefixes = this.keys.map((key) => `${keyName(key)}:`);
    const { items } = schema;
    this.#items = isRecord(items) ? () => typeOf(items, preserves) : () => UNTYPED;
  }

  get element(): Type {
    this.#element ??= this.#items();
    return this.#element;
  }

  /** The elements of all items. They are kept until the next operation begins. */
  elementsOf(list: readonly unknown[]): readonly string[] {
    const known = found.get(list);
    if (known?.type === this) return known.elements;
    const elements = list.map((item) => this.elementOf(item));
    found.set(list, { type: this, elements });
    return elements;
  }

  /** The element for an item in a set of fields. Throws a TypedError if it has none. */
  elementOf(item: unknown): string {
    if (this.keys.length > 0) return this.#keyed(item);
    if (isRecord(item)) throw new TypedError("associative list without keys has an element that's a map type");
    if (Array.isArray(item)) throw new TypedError('not supported: associative list with lists as elements');
    if (item === null) throw new TypedError("associative list without keys has an element that's an explicit null");
    return valueElement(item);
  }

  #keyed(item: unknown): string {
    if (item === null) throw new TypedError('associative list with keys may not have a null element');
    if (!isRecord(item)) throw new TypedError('associative list with keys may not have non-map elements');
    let text = '';
    for (let at = 0; at < this.keys.length; at++) {
      const key = this.keys[at] as string;
      const isGiven = Object.hasOwn(item, key);
      const value = isGiven ? item[key] : this.#defaultOf(key);
      if (!isGiven && (value === undefined || value === null)) continue;
      if (partsLeft(value, MAX_ELEMENT_CHARS) < 0) throw tooLong();
      text += `${text && ','}${this.#prefixes[at]}${canonical(value)}`;
    }
    const element = keyElement(text);
    if (element.length > MAX_ELEMENT_CHARS) throw tooLong();
    if (text) return element;
    const keys = this.#keys.map((key) => JSON.stringify(key)).join(' ');
    throw new TypedError(
      `associative list with keys has an element that omits all key fields [${keys}] (and doesn't have default values for any key fields)`,
    );
  }

  #defaultOf(key: string): unknown {
    const { map } = this.element;
    if (map) return map.field(key)?.default;
    throw new TypedError(`couldn't find default value for ${key}: associative list may not have non-map types`);
  }
}

const tooLong = (): TypedError =>
  new TypedError(`associative list with keys has an element whose keys are longer than ${MAX_ELEMENT_CHARS} characters`);

/** How many of `most` parts remain after a value; negative if it has more. */
function partsLeft(value: unknown, most: number): number {
  let left = most - 1;
  if (typeof value !== 'object' || value === null) return left;
  for (const each of Array.isArray(value) ? value : Object.values(value)) {
    if (left < 0) break;
    left = partsLeft(each, left);
  }
  return left;
}

const NONE: Readonly<Record<string, never>> = Object.freeze({});

/** The kind of a list, and its keys: as the schema says, or as for strategic merges. */
function listKindOf(schema: JsonSchema): { kind: 'atomic' | 'associative'; keys: readonly string[] } {
  const kind = schema['x-kubernetes-list-type'];
  if (kind === 'set') return { kind: 'associative', keys: [] };
  if (kind === 'map') return { kind: 'associative', keys: textsOf(schema['x-kubernetes-list-map-keys']) };
  const strategy = schema['x-kubernetes-patch-strategy'];
  if (kind !== undefined || (strategy !== 'merge' && strategy !== 'merge,retainKeys')) return { kind: 'atomic', keys: [] };
  const key = schema['x-kubernetes-patch-merge-key'];
  return { kind: 'associative', keys: typeof key === 'string' ? [key] : [] };
}

const textsOf = (value: unknown): readonly string[] =>
  Array.isArray(value) ? value.filter((each): each is string => typeof each === 'string') : [];

function scalarOf({ type, format }: JsonSchema): Scalar {
  if (type === 'integer' || type === 'number') return 'numeric';
  if (type === 'boolean') return 'boolean';
  if (type !== 'string') return 'untyped';
  return format === undefined || format === '' || format === 'byte' ? 'string' : 'untyped';
}

const isUntyped = (schema: JsonSchema): boolean => scalarOf(schema) === 'untyped' && !isContainer(schema.type);
const isContainer = (type: unknown): boolean => type === 'object' || type === 'array';

function typeOf(schema: JsonSchema, above: boolean, more: Readonly<Record<string, JsonSchema>> = NONE): Type {
  const preserves = above || schema['x-kubernetes-preserve-unknown-fields'] === true;
  const fields = schema['x-kubernetes-embedded-resource'] === true ? KIND_AND_METADATA : more;
  if (schema === META) return OBJECT_META;
  const { type } = schema;
  if (type === 'object') return { map: new MapType(schema, preserves, fields) };
  if (type === 'array') return { list: new ListType(schema, preserves) };
  if (type !== undefined && type !== '') return { scalar: scalarOf(schema) };
  return { scalar: 'untyped', list: new ListType(schema, preserves), map: new MapType(schema, preserves, fields) };
}

/** A part of a value that is owned as a whole, whatever its type. */
const ANYTHING: JsonSchema = { 'x-kubernetes-map-type': 'atomic' };

const STRING: JsonSchema = { type: 'string' };
const TIME: JsonSchema = { type: 'string', format: 'date-time' };
const NUMBER: JsonSchema = { type: 'integer' };
const DEFAULTED: JsonSchema = { type: 'string', default: '' };
const TEXTS: JsonSchema = { type: 'object', additionalProperties: STRING };

const OWNER_REFERENCE: JsonSchema = {
  type: 'object',
  'x-kubernetes-map-type': 'atomic',
  properties: {
    apiVersion: DEFAULTED,
    blockOwnerDeletion: { type: 'boolean' },
    controller: { type: 'boolean' },
    kind: DEFAULTED,
    name: DEFAULTED,
    uid: DEFAULTED,
  },
};

/** The schema that upstream publishes for an object's metadata. */
const META: JsonSchema = {
  type: 'object',
  properties: {
    annotations: TEXTS,
    creationTimestamp: TIME,
    deletionGracePeriodSeconds: NUMBER,
    deletionTimestamp: TIME,
    finalizers: { type: 'array', items: STRING, 'x-kubernetes-list-type': 'set' },
    generateName: STRING,
    generation: NUMBER,
    labels: TEXTS,
    managedFields: { type: 'array' },
    name: STRING,
    namespace: STRING,
    ownerReferences: {
      type: 'array',
      items: OWNER_REFERENCE,
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['uid'],
    },
    resourceVersion: STRING,
    selfLink: STRING,
    uid: STRING,
  },
};
const OBJECT_META: Type = { map: new MapType(META, false) };
const KIND_AND_METADATA: Readonly<Record<string, JsonSchema>> = { apiVersion: STRING, kind: STRING, metadata: META };
const UNTYPED: Type = typeOf(ANYTHING, false);
/** Deduced from the value. */
const DEDUCED: Type = typeOf({}, false);

/** The type of the objects of a kind; undefined: deduced from values. */
export function kindType(schema: JsonSchema | undefined): Type {
  return schema ? typeOf({ type: 'object', ...schema }, false, KIND_AND_METADATA) : DEDUCED;
}

/** The kind of a value; undefined if it could be several, as for null. */
export function kindOf(type: Type, value: unknown): ValueKind | undefined {
  const { map, list, scalar } = type;
  if (typeof value === 'object') {
    if (value !== null && (Array.isArray(value) ? list : map)) return Array.isArray(value) ? 'list' : 'map';
  } else if (value !== undefined && scalar) return 'scalar';
  if (map) return list || scalar ? undefined : 'map';
  if (scalar) return list ? undefined : 'scalar';
  return 'list';
}

/** The kind as which a value that admits several is handled. */
export function handledAs(type: Type, kind: ValueKind | undefined): ValueKind {
  return kind ?? (type.map ? 'map' : type.scalar ? 'scalar' : 'list');
}
