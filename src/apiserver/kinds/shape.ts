/**
 * A built-in kind as one table of its fields, from which everything else is derived.
 *
 *     row of a table: [number, type, form, description]
 *        |---> protobuf, both ways           request/protobuf.ts
 *        |---> schema: explain, OpenAPI, unknown fields, lists that a strategic merge patch merges
 *        '---> typing: JSON as Go would have read and written it
 *
 * Upstream decodes each body into a Go struct and answers with what that has become: unknown members are gone, nulls are ignored,
 * and a value of another type is refused before anything looks at it. `typing` does the same.
 */
import { put } from '../../storage/json.ts';
import { badRequest } from '../../storage/statuses.ts';
import { getOrMake, isNullish, isRecord } from '../../watch/errors.ts';
import { STRIDE, type Work } from '../../watch/fair-queue.ts';
import type { JsonSchema } from '../definition.ts';
import { childOf } from '../validation/causes.ts';
import { quantityOf } from './quantity.ts';

/** A value, or an object of another shape. `json`: any JSON value. */
type FieldType = Scalar | Shape;
type Scalar =
  | 'string'
  | 'bytes'
  | 'int32'
  | 'int64'
  | 'double'
  | 'bool'
  | 'time'
  | 'microTime'
  | 'json'
  | 'intOrString'
  | 'quantity';

/**
 * How many values a field has: `''` one, left out of JSON while it is zero; `!` one, always in JSON; `?` one that may be absent,
 * and is in JSON even if zero; `[]` a list; `{}` a map; `^` one, whose members are in JSON those of the object itself.
 */
type FieldForm = '' | '!' | '?' | '[]' | '{}' | '^';

/** The form in a row. A second `!`: null in JSON while there is no value. */
type RowForm = FieldForm | '?!' | '[]!' | '{}!';

/** One row. `more`: further members of its schema. */
export type Row = readonly [number: number, type: FieldType, form?: RowForm, description?: string, more?: JsonSchema];
type Rows = Readonly<Record<string, Row>>;

/** A row with its name. */
export interface Field {
  readonly name: string;
  /** 0: it is not in protobuf. */
  readonly number: number;
  readonly type: FieldType;
  readonly form: FieldForm;
  /** Whether it is null in JSON while there is no value. */
  readonly isNull: boolean;
  readonly description: string;
  readonly more: JsonSchema | undefined;
}

/** A table of fields. */
export interface Shape {
  readonly description: string;
  /** In the order in which they are written. */
  readonly fields: readonly Field[];
  readonly byNumber: ReadonlyMap<number, Field>;
  /** Completes an object that has been read, as upstream's conversions and defaults do. */
  readonly finish?: ((object: Record<string, unknown>) => Record<string, unknown> | Work<Record<string, unknown>>) | undefined;
  /** Turns a protobuf message into its value, if that is not the object with these fields. */
  readonly fromMessage?: ((message: Record<string, unknown>) => unknown) | undefined;
  /** The field that a JSON value stands for, if it is not the object with these fields; undefined: omit it. */
  readonly memberOf?: ((value: unknown) => string | undefined) | undefined;
  /** Whether it has one manager as a whole. Upstream: `structType=atomic`. */
  readonly isAtomic?: boolean | undefined;
  /** Whether the server counts the generations of such objects. Default: by their group. */
  readonly countsGenerations?: boolean | undefined;
  /** Fills in what has to be in each object that is stored. */
  readonly completed?: (<T extends Readonly<Record<string, unknown>>>(object: T) => T) | undefined;
  /** How many seconds such an object has to end, if a deletion asks for this many. Absent: the kind has no graceful deletion. */
  readonly graceOf?: ((object: Readonly<Record<string, unknown>>, asked: number | undefined) => number) | undefined;
  /** Rows of further paths of such objects. */
  readonly subresources?: readonly object[] | undefined;
  /** Its schema. Default: made of its fields. */
  readonly schema?: JsonSchema | undefined;
}

/** Makes a shape from its rows. */
export function shape(description: string, rows: Rows, finish?: Shape['finish']): Shape {
  const fields = Object.entries(rows).map(([name, [number, type, form = '', text = '', more]]): Field => {
    const isNull = form.length > 1 && form.endsWith('!');
    return { name, number, type, form: (isNull ? form.slice(0, -1) : form) as FieldForm, isNull, description: text, more };
  });
  return { description, fields, byNumber: new Map(fields.map((field) => [field.number, field])), finish };
}

/** A row whose values are objects of a shape of their own. */
export function part(
  [number, form = '', more = {}]: readonly [number: number, form?: RowForm, more?: JsonSchema],
  description: string,
  rows: Rows,
): Row {
  return [number, shape(description, rows), form, description, more];
}

/** A protobuf message for a JSON member that may have different types. */
export function either(rows: Rows, fromMessage: Shape['fromMessage'], memberOf: Shape['memberOf']): Shape {
  return { ...shape('', rows), fromMessage, memberOf };
}

/** The schema of a shape, for documentation and for finding unknown fields. */
export function toSchema(of: Shape): JsonSchema {
  return of.schema ?? getOrMake(schemas, of, () => schemaOf(of));
}

const schemas: WeakMap<Shape, JsonSchema> = new WeakMap();

function schemaOf({ description, fields, isAtomic }: Shape): JsonSchema {
  const required = fields.filter(({ more }) => more?.required === true).map(({ name }) => name);
  const properties = Object.assign({}, ...fields.map(propertiesOf)) as JsonSchema;
  const whole = isAtomic && { 'x-kubernetes-map-type': 'atomic' };
  return { ...told(description), type: 'object', ...(required.length > 0 && { required }), properties, ...whole };
}

function propertiesOf(field: Field): JsonSchema {
  return field.form === '^' ? (toSchema(field.type as Shape).properties as JsonSchema) : { [field.name]: schemaOfField(field) };
}

function schemaOfField({ type, form, description, more }: Field): JsonSchema {
  const { required: _, ...keys } = more ?? {};
  const one = typeof type === 'string' ? SCHEMAS[type] : toSchema(type);
  const own = { ...told(description), ...keys };
  if (form === '[]') return { type: 'array', items: one, ...own };
  if (form === '{}') return { type: 'object', additionalProperties: one, ...own };
  return { ...one, ...own };
}

const told = (description: string): JsonSchema => (description === '' ? {} : { description });

/** Of anything. */
export const OPEN_OBJECT: JsonSchema = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };

/** A number or a text. */
const INT_OR_STRING: JsonSchema = {
  anyOf: [{ type: 'integer' }, { type: 'string' }],
  'x-kubernetes-int-or-string': true,
};

const SCHEMAS: Readonly<Record<Scalar, JsonSchema>> = {
  string: { type: 'string' },
  bytes: { type: 'string', format: 'byte' },
  int32: { type: 'integer', format: 'int32' },
  int64: { type: 'integer', format: 'int64' },
  double: { type: 'number', format: 'double' },
  bool: { type: 'boolean' },
  time: { type: 'string', format: 'date-time' },
  microTime: { type: 'string', format: 'date-time' },
  json: OPEN_OBJECT,
  intOrString: INT_OR_STRING,
  quantity: INT_OR_STRING,
};

/** How a list is merged by a strategic merge patch, in the words of schemas: as a set, or by a key. */
export const SET: JsonSchema = { 'x-kubernetes-patch-strategy': 'merge' };
export const byKey = (key: string): JsonSchema => ({
  'x-kubernetes-patch-merge-key': key,
  'x-kubernetes-patch-strategy': 'merge',
});
export const REQUIRED: JsonSchema = { required: true } as unknown as JsonSchema;

/** State of reading one object. */
interface Reading {
  steps: number;
  readonly refuse: (path: string, expected: string) => Error;
}

/** Reads an object of a kind, and of a version, according to its shape. Throws 400 if that is not possible. */
export function* typing([kind, version]: readonly [string, string], whole: Shape, object: object): Work<Record<string, unknown>> {
  const refuse = (path: string, expected: string): Error =>
    badRequest(`${kind} in version "${version}" cannot be handled as a ${kind}: ${path}: expected ${expected}`);
  const { apiVersion, kind: name } = object as { apiVersion?: unknown; kind?: unknown };
  const typed = yield* readShape(whole, object, { path: '', reading: { steps: 0, refuse } });
  return { ...(apiVersion !== undefined && { apiVersion }), ...(name !== undefined && { kind: name }), ...typed };
}

interface Place {
  readonly path: string;
  readonly reading: Reading;
}

function* readShape(of: Shape, value: unknown, { path, reading }: Place): Work<Record<string, unknown>> {
  if (!isRecord(value)) throw reading.refuse(path, 'an object');
  const result: Record<string, unknown> = {};
  for (const field of of.fields) {
    const { name, type, form, isNull } = field;
    if (form === '^') {
      Object.assign(result, yield* readShape(type as Shape, value, { path, reading }));
      continue;
    }
    const given = Object.hasOwn(value, name) ? (value[name] ?? undefined) : undefined;
    if (given === undefined && (typeof type === 'string' || form !== '') && form !== '!' && !isNull) continue;
    const read = yield* readField(field, given, { path: childOf(path, name), reading });
    if (read !== undefined) result[name] = read;
    else if (isNull) result[name] = null;
  }
  const finished = of.finish?.(result) ?? result;
  return isWork(finished) ? yield* finished : finished;
}

function isWork<T>(value: T | Work<T>): value is Work<T> {
  return typeof (value as Partial<Work<T>>).next === 'function';
}

/** Reads an object of a shape, or the JSON value that stands for it. */
function* readObject(of: Shape, value: unknown, place: Place): Work<unknown> {
  if (of.memberOf === undefined) return yield* readShape(of, value ?? {}, place);
  const name = of.memberOf(value ?? {});
  const field = of.fields.find((each) => each.name === name);
  if (field === undefined) return undefined;
  return (yield* readField(field, value ?? (field.isNull ? undefined : {}), place)) ?? (field.isNull ? null : undefined);
}

function* readField(field: Field, given: unknown, place: Place): Work<unknown> {
  const { type, form } = field;
  if (form === '[]') return yield* readList(field, given, place);
  if (form === '{}') return yield* readMap(field, given, place);
  if (typeof type !== 'string') {
    if (given === undefined && form === '?') return undefined;
    return yield* readObject(type, given, place);
  }
  if (given === undefined) return form === '!' ? ZERO[type] : undefined;
  const value = type === 'bytes' ? yield* readBytes(given, place) : readScalar(type, given, place);
  return form === '' && value === ZERO[type] ? undefined : value;
}

/** The zero values in JSON. A zero time is null. */
export const ZERO: Readonly<Record<Scalar, unknown>> = {
  ...{ string: '', bytes: '', int32: 0, int64: 0, double: 0, bool: false, time: null, microTime: null, json: null },
  ...{ intOrString: 0, quantity: '0' },
};

/** An object of a shape with all fields zero, like a struct in Go. */
export function zeroOf({ fields }: Shape): Record<string, unknown> {
  const zero = ({ name, type, form, isNull }: Field): object => {
    if (isNull) return { [name]: null };
    if (typeof type === 'string') return form === '!' ? { [name]: ZERO[type] } : {};
    return form === '^' ? zeroOf(type) : form === '' || form === '!' ? { [name]: zeroOf(type) } : {};
  };
  return Object.assign({}, ...fields.map(zero)) as Record<string, unknown>;
}

function* readList({ type, name }: Field, given: unknown, place: Place): Work<unknown[] | undefined> {
  if (given === undefined) return undefined;
  if (!Array.isArray(given)) throw place.reading.refuse(place.path, 'a list');
  const list: unknown[] = [];
  for (const [at, each] of given.entries()) {
    if (++place.reading.steps % STRIDE === 0) yield;
    const inside = { ...place, path: `${place.path}[${at}]` };
    // Go reads null as an empty value.
    if (type === 'bytes' && !isNullish(each)) list.push(yield* readBytes(each, inside));
    else if (typeof type === 'string') list.push(isNullish(each) ? ZERO[type] : readScalar(type, each, inside));
    else list.push(yield* readObject(type, each, inside));
  }
  // To forget the managers of an object, an empty list of them is sent.
  return list.length === 0 && name !== 'managedFields' ? undefined : list;
}

function* readMap({ type }: Field, given: unknown, place: Place): Work<Record<string, unknown> | undefined> {
  if (given === undefined) return undefined;
  if (!isRecord(given)) throw place.reading.refuse(place.path, `an object of ${type === 'string' ? 'strings' : 'values'}`);
  const map: Record<string, unknown> = {};
  let count = 0;
  for (const key of Object.keys(given)) {
    if (++place.reading.steps % STRIDE === 0) yield;
    const each = given[key];
    count++;
    if (typeof type !== 'string')
      put(map, key, yield* readObject(type, each, { ...place, path: `${place.path}.${key.slice(0, 64)}` }));
    else if (type === 'string' && !isNullish(each) && typeof each !== 'string') {
      throw place.reading.refuse(place.path, 'an object of strings');
    } else if (type === 'bytes' && !isNullish(each)) put(map, key, yield* readBytes(each, place));
    else put(map, key, isNullish(each) ? ZERO[type] : readScalar(type, each, place));
  }
  return count === 0 ? undefined : map;
}

const MAX_INT32 = 2 ** 31 - 1;
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.(\d+))?(?:Z|[-+]\d\d:\d\d)$/;
/** A time as it is nearly always written: in UTC, without a fraction, and not on February 29. */
const USUAL_TIME =
  /^\d{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\d|30)|02-(?:0[1-9]|1\d|2[0-8]))T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\dZ$/;

function readScalar(type: Scalar, value: unknown, { path, reading }: Place): unknown {
  const wrong = (expected: string): Error => reading.refuse(path, expected);
  if (type === 'json') return value;
  if (type === 'bool') {
    if (typeof value !== 'boolean') throw wrong('true or false');
    return value;
  }
  if (type === 'quantity') {
    const quantity = typeof value === 'string' || typeof value === 'number' ? quantityOf(`${value}`) : undefined;
    if (quantity === undefined) throw wrong('a quantity');
    return quantity;
  }
  if (type === 'intOrString' && typeof value !== 'number') {
    if (typeof value !== 'string') throw wrong('a whole number or a text');
    return value;
  }
  if (type === 'int32' || type === 'int64' || type === 'intOrString') {
    const most = type === 'int64' ? Number.MAX_SAFE_INTEGER : MAX_INT32;
    if (!Number.isInteger(value) || (value as number) > most || (value as number) < -most - 1) throw wrong('a whole number');
    return value;
  }
  if (type === 'double') {
    if (typeof value !== 'number') throw wrong('a number');
    return value;
  }
  if (type === 'time' || type === 'microTime') {
    const time = typeof value === 'string' ? timeOf(value, type === 'microTime' ? 6 : 0) : undefined;
    if (time === undefined) throw wrong('a time');
    return time;
  }
  if (typeof value !== 'string') throw wrong('a text');
  return value;
}

/** Base64, in pieces. */
function* readBytes(value: unknown, { path, reading }: Place): Work<string> {
  if (typeof value !== 'string') throw reading.refuse(path, 'base64');
  let base64 = '';
  for (let at = 0; at < value.length; at += PIECE_CHARS) {
    if (at > 0) yield;
    const piece = value.slice(at, at + PIECE_CHARS);
    // Line ends are not part of it, as in Go.
    base64 += /[\r\n]/.test(piece) ? piece.replace(/[\r\n]/g, '') : piece;
  }
  for (let at = 0; at < base64.length; at += PIECE_CHARS) {
    if (at > 0) yield;
    const piece = base64.slice(at, at + PIECE_CHARS);
    const isLast = at + PIECE_CHARS >= base64.length;
    if (!BASE64.test(piece) || (!isLast && piece.endsWith('='))) throw reading.refuse(path, 'base64');
  }
  return base64;
}

/** Of base64, whole groups of four. */
const PIECE_CHARS = 65_536;

/** A time in UTC, with this many fractional digits; undefined if it is not a time. */
export function timeOf(text: string, digits: number): string | undefined {
  if (digits === 0 && USUAL_TIME.test(text)) return text;
  const found = TIME.exec(text);
  // Go reads only as many digits as it writes.
  if (digits > 0 && (found?.[1] ?? '').length !== digits) return undefined;
  const ms = Date.parse(text);
  if (found === null || Number.isNaN(ms)) return undefined;
  // JavaScript takes February 30 for March 2, and hour 24 for the next day.
  const local = text.slice(0, 19);
  if (!new Date(`${local}Z`).toISOString().startsWith(local)) return undefined;
  const year = new Date(ms).getUTCFullYear();
  if (year < 0 || year > 9_999) return undefined;
  const seconds = new Date(ms).toISOString().slice(0, 19);
  return digits === 0 ? `${seconds}Z` : `${seconds}.${found[1]}Z`;
}
