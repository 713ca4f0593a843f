/**
 * Kubernetes' own kinds in protobuf, by their tables of fields: since 1.35, client-go's typed clients, and so `kubectl create
 * configmap`, send nothing else, and do not fall back to JSON when they are refused. Every client sends objects of other kinds as
 * JSON. Upstream: `runtime.Unknown` around the messages of `generated.proto`.
 *
 *     k8s\0 | 1: { apiVersion, kind } | 2: the object
 *
 * Unknown fields are skipped, as protobuf requires. Every length is checked against the bytes that follow, and messages are
 * nested no deeper than their tables, or 200 levels. They have no more parts, and their maps no more keys, than a JSON body. The
 * result still has to pass `typing`.
 */
import { put, stringifying } from '../../storage/json.ts';
import { badRequest } from '../../storage/statuses.ts';
import { getOrMake } from '../../watch/errors.ts';
import { STRIDE, type Work } from '../../watch/fair-queue.ts';
import { fromBase64, toBase64 } from '../kinds/base64.ts';
import { type Field, type Shape, shape, ZERO } from '../kinds/shape.ts';
import { DELETE_OPTIONS, messageOf, type NamedKind, shapeOf } from '../kinds/tables.ts';
import { extentOf, MAX_DEPTH as MAX_JSON_DEPTH, MAX_KEYS, MAX_PARTS, parsingBody, tooManyParts } from './json.ts';

/** The media type. */
export const PROTOBUF: string = 'application/vnd.kubernetes.protobuf';

const [VARINT, FIXED64, BYTES, FIXED32] = [0, 1, 2, 5] as const;
const utf8 = new TextDecoder('utf-8', { fatal: true });
const encoder = new TextEncoder();

/** Reads a message. Throws 400 for invalid bytes. */
function* readMessage(bytes: Uint8Array, of: Shape, steps: Steps): Work<Record<string, unknown>> {
  const message: Record<string, unknown> = {};
  const reader = new Reader(bytes);
  /** The number of entries so far, by map. */
  let counts: Map<Field, number> | undefined;
  while (reader.more) {
    if (++steps.count % STRIDE === 0) yield;
    const tag = reader.varint();
    const [number, wire] = [Math.floor(tag / 8), tag % 8];
    if (number < 1) throw broken('a field has no number');
    const field = of.byNumber.get(number);
    if (field?.form === '{}') {
      counts ??= new Map();
      const count = (counts.get(field) ?? 0) + 1;
      if (count > MAX_KEYS) throw tooManyParts();
      counts.set(field, count);
    }
    if (field === undefined) reader.skip(wire);
    else add(message, field, yield* readField(reader, wire, { field, steps }));
  }
  return message;
}

/** How many fields have been read or written, how deep the current message is, and how many parts the object has. */
interface Steps {
  count: number;
  depth: number;
  parts: number;
}

function* readField(
  reader: Reader,
  wire: number,
  { field, steps }: { readonly field: Field; readonly steps: Steps },
): Work<unknown> {
  const { name, type, form } = field;
  const before = ++steps.parts;
  if (before > MAX_PARTS) throw tooManyParts();
  const numeric = form !== '{}' && isNumeric(type);
  if (type === 'double' && wire === FIXED64) return reader.double();
  if (wire !== (numeric ? VARINT : BYTES)) throw broken(`${name} has another type`);
  if (numeric) return type === 'bool' ? reader.varint() !== 0 : reader.varint();
  const bytes = reader.bytes();
  if (form === '{}') {
    const entry = yield* readMessage(bytes, entryOf(field), steps);
    // Key and value are one member, as in JSON.
    steps.parts -= Math.min(2, steps.parts - before);
    return entry;
  }
  if (type === 'bytes') return yield* toBase64(bytes);
  if (type === 'string') return toText(bytes);
  if (type === 'time' || type === 'microTime') return toTime(yield* readMessage(bytes, TIME, steps), type);
  if (type === 'json') return yield* toJson(yield* readMessage(bytes, RAW, steps), steps);
  if (type === 'quantity') return (yield* readMessage(bytes, QUANTITY, steps)).string ?? '';
  if (type === 'intOrString') {
    const { isText, number = 0, text = '' } = yield* readMessage(bytes, INT_OR_STRING, steps);
    return isText === 1 ? text : number;
  }
  if (steps.depth >= MAX_DEPTH) throw broken(`it is nested deeper than ${MAX_DEPTH} levels`);
  steps.depth++;
  const message = yield* readMessage(bytes, type as Shape, steps);
  steps.depth--;
  return (type as Shape).fromMessage?.(message) ?? message;
}

/** Only schemas contain themselves: all other tables have few levels. */
const MAX_DEPTH = 200;

const isNumeric = (type: Field['type']): boolean => type === 'int32' || type === 'int64' || type === 'bool';

/** The message of a map's entry. */
function entryOf(field: Field): Shape {
  return getOrMake(entries, field, () => shape('', { key: [1, 'string', '!', ''], value: [2, field.type, '!', ''] }));
}

const entries: WeakMap<Field, Shape> = new WeakMap();

function add(message: Record<string, unknown>, { name, type, form }: Field, value: unknown): void {
  if (form === '^') Object.assign(message, value);
  else if (form === '[]') {
    const list = (message[name] ?? []) as unknown[];
    list.push(value);
    message[name] = list;
  } else if (form === '{}') {
    const values = (message[name] ?? {}) as Record<string, unknown>;
    const { key = '', value: own = typeof type === 'string' ? ZERO[type] : {} } = value as { key?: string; value?: unknown };
    put(values, key, own);
    message[name] = values;
  } else if (value !== undefined && (form !== '' || (value !== '' && value !== 0 && value !== false))) {
    // An empty string cannot be distinguished from a missing one, and a zero time has no value.
    message[name] = value;
  }
}

const TIME: Shape = shape('', { seconds: [1, 'int64', '!', ''], nanos: [2, 'int32', '!', ''] });
/** `FieldsV1`, and `RawExtension`. */
const RAW: Shape = shape('', { Raw: [1, 'string', '?', ''] });
const QUANTITY: Shape = shape('', { string: [1, 'string', '!'] });
const INT_OR_STRING: Shape = shape('', { isText: [1, 'int32', '!'], number: [2, 'int32', '!'], text: [3, 'string', '!'] });

/** Zero seconds stand for Go's zero time, which means no time. */
function toTime({ seconds = 0, nanos = 0 }: { seconds?: unknown; nanos?: unknown }, type: 'time' | 'microTime'): unknown {
  const [ms, micros] = [Number(seconds) * 1_000, type === 'time' ? 0 : Math.floor(Number(nanos) / 1_000)];
  if (ms === 0 && micros === 0) return undefined;
  if (!(ms >= YEAR_0 && ms < YEAR_10_000 && micros >= 0 && micros < 1_000_000)) throw broken('a time is out of range');
  const text = new Date(ms).toISOString().slice(0, 19);
  return type === 'time' ? `${text}Z` : `${text}.${String(micros).padStart(6, '0')}Z`;
}

const YEAR_0 = Date.parse('0000-01-01T00:00:00Z');
const YEAR_10_000 = Date.UTC(10_000, 0);

/** Has the limits of a JSON body. Its parts count as parts of the object. */
function* toJson({ Raw }: { Raw?: unknown }, steps: Steps): Work<unknown> {
  if (!Raw) return undefined;
  const bytes = encoder.encode(String(Raw));
  const { members, containers } = yield* extentOf(bytes, MAX_JSON_DEPTH);
  steps.parts += members + containers;
  if (steps.parts > MAX_PARTS) throw tooManyParts();
  return yield* parsingBody(bytes);
}

function toText(bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes);
  } catch {
    throw broken('a text is not UTF-8');
  }
}

class Reader {
  readonly #bytes: Uint8Array;
  #at: number = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  get more(): boolean {
    return this.#at < this.#bytes.length;
  }

  /** A 64-bit floating-point number. */
  double(): number {
    const { buffer, byteOffset, length } = this.#bytes;
    if (this.#at + 8 > length) throw broken('it ends within a number');
    this.#at += 8;
    return new DataView(buffer, byteOffset, length).getFloat64(this.#at - 8, true);
  }

  /** A signed 64-bit integer, read in two halves. Beyond 2^53 it is not exact. */
  varint(): number {
    let [low, high] = [0, 0];
    for (let shift = 0; shift < 70; shift += 7) {
      const byte = this.#bytes[this.#at++];
      if (byte === undefined) throw broken('it ends within a number');
      const bits = byte & 127;
      if (shift < 32) low |= bits << shift;
      if (shift > 25) high |= shift < 32 ? bits >> (32 - shift) : bits << (shift - 32);
      if (byte < 128) return high * 2 ** 32 + (low >>> 0);
    }
    throw broken('a number is too long');
  }

  bytes(): Uint8Array {
    const length = this.varint();
    if (length < 0 || length > this.#bytes.length - this.#at) throw broken('it ends within a value');
    this.#at += length;
    return this.#bytes.subarray(this.#at - length, this.#at);
  }

  skip(wire: number): void {
    if (wire === VARINT) this.varint();
    else if (wire === BYTES) this.bytes();
    else if (wire === FIXED64) this.#at += 8;
    else if (wire === FIXED32) this.#at += 4;
    else throw broken('it has an unknown type of value');
    if (this.#at > this.#bytes.length) throw broken('it ends within a value');
  }
}

function broken(why: string): Error {
  return badRequest(`the body is not protobuf of this kind: ${why}`);
}

const TYPE: Shape = shape('', { apiVersion: [1, 'string', '', ''], kind: [2, 'string', '', ''] });
const MAGIC = [0x6b, 0x38, 0x73, 0x00] as const;

/** Whether objects of a kind can be returned in protobuf. */
export function hasProtobuf(kind: NamedKind): boolean {
  return shapeOf(kind) !== undefined;
}

/** Whether objects of a kind may be sent in protobuf. */
export function mayBeProtobuf(kind: NamedKind): boolean {
  return messageOf(kind) !== undefined;
}

/** Reads an object. Throws 400. */
export function readProtobuf(bytes: Uint8Array, kind: NamedKind): Work<unknown> {
  return readEnvelope(bytes, messageOf(kind) as Shape);
}

/** Reads the options of a deletion. Throws 400. */
export function readDeleteOptions(bytes: Uint8Array): Work<unknown> {
  return readEnvelope(bytes, DELETE_OPTIONS);
}

/** Reads an envelope, which names the kind and contains the object. */
export function* readEnvelope(bytes: Uint8Array, of: Shape): Work<object> {
  if (!MAGIC.every((byte, at) => bytes[at] === byte))
    throw badRequest('the body is not protobuf of Kubernetes: it does not begin with k8s');
  if (bytes.length === MAGIC.length) throw badRequest('the body is not protobuf of Kubernetes: it is cut off');
  const envelope = shape('', { type: [1, TYPE, '!', ''], object: [2, of, '!', ''] });
  const message = yield* readMessage(bytes.subarray(MAGIC.length), envelope, { count: 0, depth: 0, parts: 0 });
  const { type, object } = message as { type?: object; object?: object };
  return { ...type, ...object };
}

/**
 * Bytes that are written back to front, because a message's length precedes it, and is known only once it has been written.
 *
 *     [ free ............ | <- at: field 1 | field 2 | field 3 ]
 */
class Writer {
  #bytes: Uint8Array;
  #at: number;

  constructor(capacity: number = 512) {
    this.#bytes = new Uint8Array(capacity);
    this.#at = capacity;
  }

  /** How much has been written. */
  get length(): number {
    return this.#bytes.length - this.#at;
  }

  get written(): Uint8Array {
    return this.#bytes.slice(this.#at);
  }

  raw(bytes: ArrayLike<number>): void {
    this.#room(bytes.length);
    this.#at -= bytes.length;
    this.#bytes.set(bytes, this.#at);
  }

  /** Seven bits at a time, the lowest first. Negative numbers take ten bytes, as 64-bit integers. */
  varint(value: number): void {
    const groups: number[] = [];
    if (value < 0) {
      const bits = BigInt.asUintN(64, BigInt(value));
      for (let at = 0n; at < 10n; at++) groups.push(Number((bits >> (7n * at)) & 127n));
    } else {
      let rest = value;
      for (; rest > 127; rest = Math.floor(rest / 128)) groups.push(rest % 128);
      groups.push(rest);
    }
    this.raw(groups.map((group, at) => (at === groups.length - 1 ? group : group + 128)));
  }

  /** Writes the header of the field written since `length` was `since`. */
  head(number: number, since: number): void {
    this.varint(this.length - since);
    this.varint(number * 8 + BYTES);
  }

  bytes(number: number, bytes: Uint8Array): void {
    const since = this.length;
    this.raw(bytes);
    this.head(number, since);
  }

  #room(count: number): void {
    if (count <= this.#at) return;
    const [old, length] = [this.#bytes, this.length];
    this.#bytes = new Uint8Array(Math.max(old.length * 2, length + count + 512));
    this.#bytes.set(old.subarray(this.#at), this.#bytes.length - length);
    this.#at = this.#bytes.length - length;
  }
}

type Members = Readonly<Record<string, unknown>>;

/** Writes the fields of a message, the last one first. Like gogo, it writes zeros for required fields. */
function* writeMessage(writer: Writer, of: Shape, { message, steps }: { message: Members; steps: Steps }): Work<void> {
  for (let at = of.fields.length - 1; at >= 0; at--) {
    const field = of.fields[at] as Field;
    if (field.number === 0) continue;
    const own = Object.hasOwn(message, field.name) ? (message[field.name] ?? undefined) : undefined;
    const value = field.form === '^' ? message : own;
    if (field.form === '[]' || field.form === '{}') yield* writeMany(writer, field, { value, steps });
    else if (value !== undefined || field.form !== '?') yield* writeOne(writer, field, { value, steps });
  }
}

function* writeMany(writer: Writer, field: Field, { value, steps }: { value: unknown; steps: Steps }): Work<void> {
  if (field.form === '[]') {
    const list = Array.isArray(value) ? value : [];
    for (let at = list.length - 1; at >= 0; at--) {
      if (++steps.count % STRIDE === 0) yield;
      yield* writeOne(writer, field, { value: list[at], steps });
    }
    return;
  }
  const map = (value ?? {}) as Members;
  const entry = entryOf(field);
  for (const key of Object.keys(map).reverse()) {
    if (++steps.count % STRIDE === 0) yield;
    const since = writer.length;
    yield* writeMessage(writer, entry, { message: { key, value: map[key] }, steps });
    writer.head(field.number, since);
  }
}

function* writeOne(writer: Writer, { type, number }: Field, { value, steps }: { value: unknown; steps: Steps }): Work<void> {
  if (isNumeric(type)) {
    writer.varint(Number(value ?? 0));
    writer.varint(number * 8 + VARINT);
  } else if (type === 'string') writer.bytes(number, encoder.encode(String(value ?? '')));
  else if (type === 'bytes') writer.bytes(number, yield* fromBase64(String(value ?? '')));
  else {
    const since = writer.length;
    if (type === 'time' || type === 'microTime') yield* writeTime(writer, value, steps);
    else if (type === 'json') {
      const Raw = value === undefined ? undefined : yield* stringifying(value);
      yield* writeMessage(writer, RAW, { message: { Raw }, steps });
    } else if (type === 'quantity') yield* writeMessage(writer, QUANTITY, { message: { string: value ?? ZERO.quantity }, steps });
    else if (type === 'intOrString') {
      const message = typeof value === 'string' ? { isText: 1, text: value } : { number: value };
      yield* writeMessage(writer, INT_OR_STRING, { message, steps });
    } else yield* writeMessage(writer, type as Shape, { message: asMessage(type as Shape, value), steps });
    writer.head(number, since);
  }
}

/** A value as the message that stands for it. */
function asMessage({ memberOf }: Shape, value: unknown): Members {
  const name = memberOf?.(value ?? {});
  return name === undefined ? ((value ?? {}) as Members) : { [name]: value };
}

function* writeTime(writer: Writer, value: unknown, steps: Steps): Work<void> {
  const ms = typeof value === 'string' ? Date.parse(value) : Number.NaN;
  if (Number.isNaN(ms)) return;
  const micros = /\.(\d{1,6})/.exec(String(value))?.[1]?.padEnd(6, '0') ?? '0';
  yield* writeMessage(writer, TIME, { message: { seconds: Math.floor(ms / 1_000), nanos: Number(micros) * 1_000 }, steps });
}

/** An object without an envelope, as in lists. */
export function* writingMessage(object: object, of: Shape): Work<Uint8Array> {
  const writer = new Writer();
  yield* writeMessage(writer, of, { message: object as Members, steps: { count: 0, depth: 0, parts: 0 } });
  return writer.written;
}

/** The bytes before and after a message of this length that turn it into an envelope. */
export function envelopeOf(
  { apiVersion, kind }: { readonly apiVersion: string; readonly kind: string },
  length: number,
): { readonly head: Uint8Array; readonly tail: Uint8Array } {
  const writer = new Writer();
  writer.varint(length);
  writer.varint(2 * 8 + BYTES);
  const since = writer.length;
  writer.bytes(2, encoder.encode(kind));
  writer.bytes(1, encoder.encode(apiVersion));
  writer.head(1, since);
  writer.raw(MAGIC);
  return { head: writer.written, tail: TAIL };
}

/** Its encoding and its type, which are empty. */
const TAIL = Uint8Array.of(3 * 8 + BYTES, 0, 4 * 8 + BYTES, 0);

/** The header of a field whose value has this length. */
export function fieldHead(number: number, length: number): Uint8Array {
  const writer = new Writer(16);
  writer.varint(length);
  writer.varint(number * 8 + BYTES);
  return writer.written;
}
