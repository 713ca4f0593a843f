/**
 * Objects as values. A written object is encoded as JSON once; servers send these bytes, and the storage keeps what is parsed
 * from them. So nothing is shared with the caller, and nothing is kept that JSON cannot express.
 *
 * An object is encoded once. It never changes while it is in a storage, so its bytes belong to its identity: the storage, a list
 * and five hundred watches write the same buffer, and no code has to pass bytes along with objects.
 *
 *     object --- JSON.stringify, at the first use ---> bytes
 *        '---- every later use: the same bytes ----------^
 *
 * Bytes are dropped with their object, or earlier, when nobody is likely to need them: they take as much memory again as the
 * object, and are made again in two microseconds per KB. Do not change objects after their first use; it would not show.
 */
import { type KubernetesObject, versionOf } from '../cache/object.ts';
import { invalid, isRecord, type WatchError } from '../watch/errors.ts';
import type { Work } from '../watch/fair-queue.ts';
import { comparing, parsing, put, stringifying } from './json.ts';
import { refused } from './statuses.ts';

const encoder = new TextEncoder();
const decoder = new TextDecoder('utf-8', { fatal: true });
/** The bytes, or how many there will be. */
const made = new WeakMap<object, Uint8Array | number>();

/** From this size, in bytes, the JSON of another version is made by copying, as encoding takes 5 to 40 ms per MB. */
const SPLICED_BYTES = 16_384;
/** The offset of the version in the JSON of such a large object, in bytes. */
const versionAt = new WeakMap<object, number>();
const VERSION_NAME = '"resourceVersion":';

/** The JSON of an object in UTF-8. The same buffer for the same object: do not modify it. */
export function encoded(object: object): Uint8Array {
  const known = made.get(object);
  if (typeof known === 'object') return known;
  const bytes = encodedOnce(object);
  made.set(object, bytes);
  return bytes;
}

/** The same, for callers that need it once: new bytes are not kept. */
export function encodedOnce(object: object): Uint8Array {
  const known = made.get(object);
  return typeof known === 'object' ? known : noted(object, JSON.stringify(object));
}

/** The same in pieces. `keeps`: as `encoded` does; otherwise as `encodedOnce`. */
export function* encoding(object: object, keeps: boolean): Work<Uint8Array> {
  const known = made.get(object);
  if (typeof known === 'object') return known;
  const text = yield* stringifying(object);
  if (text.length > LARGE_BYTES) yield;
  const bytes = noted(object, text);
  if (keeps) made.set(object, bytes);
  return bytes;
}

/** The bytes of a text. Notes where the version is in a large one, unless what looks like it occurs more than once. */
function noted(object: object, text: string): Uint8Array {
  const version = versionOf(object);
  if (text.length >= SPLICED_BYTES && version !== '' && !versionAt.has(object)) {
    const parts = text.split(VERSION_NAME + JSON.stringify(version), 3);
    if (parts.length === 2) versionAt.set(object, encoder.encode(parts[0]).length);
  }
  return encoder.encode(text);
}

/** Forgets the JSON of an object, if it has been made, but not its size. */
export function dropEncoded(object: object): void {
  const known = made.get(object);
  if (typeof known === 'object') made.set(object, known.byteLength);
}

/** How many bytes an object's JSON has, if that is known; otherwise undefined. */
export function encodedBytes(object: object): number | undefined {
  const known = made.get(object);
  return typeof known === 'object' ? known.byteLength : known;
}

/** An object as it is kept, and the size of its JSON. */
export interface Value<T> {
  readonly object: T;
  readonly bytes: number;
}

/** A placeholder for the version in a text that is made before the version is known. Nobody can guess it. */
let standIn = '';

/** Made when it is first needed: Cloudflare's runtime allows no random numbers in the global scope. */
function standInOfVersion(): string {
  standIn ||= `@${crypto.randomUUID()}`;
  return standIn;
}

/** An object to keep: its JSON and its copy. Its version is inserted when it is written. */
export class PreparedValue<T extends KubernetesObject> {
  readonly #text: string;
  /** A copy of the given object, which shares nothing with it. It has no version. */
  readonly copy: T;

  constructor(text: string, copy: T) {
    this.#text = text;
    this.copy = copy;
  }

  /** The object as it is kept at a version. Call it once. */
  at(version: string): Value<T> {
    const { copy } = this;
    (copy.metadata as { resourceVersion: string }).resourceVersion = version;
    const text = this.#text;
    const bytes = encoder.encode(text.replace(standIn, version));
    if (bytes.length >= SPLICED_BYTES) {
      const before = encoder.encode(text.slice(0, text.indexOf(standIn)));
      versionAt.set(copy, before.length - VERSION_NAME.length - 1);
    }
    made.set(copy, bytes);
    return { object: copy, bytes: bytes.byteLength };
  }
}

/**
 * Makes the value to keep; `share` may make the copy. Throws INVALID_ARGUMENT for anything but an object. What JSON.stringify
 * throws is passed on.
 */
export function* preparing<T extends KubernetesObject>(object: T, share?: (whole: object) => unknown): Work<PreparedValue<T>> {
  const { plain, metadata } = plainOf(object);
  const whole = { ...plain, metadata: metadataAt(metadata, standInOfVersion()) };
  const text = yield* stringifying(whole);
  return new PreparedValue(text, ((text.length <= LARGE_BYTES && share?.(whole)) || (yield* parsing(text))) as T);
}

/** Returns what JSON makes of a value, which may share parts of what is kept; undefined if it has to be parsed to tell. */
export type Share = (whole: object) => unknown;

/**
 * Functions that modify neither their argument, which is the kept object itself, nor what they have returned. And new objects
 * that nobody else has, which are kept without being copied.
 */
export const gentle: WeakMap<object, (kept: object) => Share> = new WeakMap();

/** Larger objects are parsed, copied and written in pieces, in bytes of JSON. */
export const LARGE_BYTES = 262_144;

/** An object from existing JSON, as `toValue` made it. */
export function fromBytes<T extends object>(bytes: Uint8Array): Value<T> {
  const object = JSON.parse(decoder.decode(bytes)) as T;
  made.set(object, bytes.byteLength); // made again when it is needed: of a million objects that is not at once
  return { object, bytes: bytes.byteLength };
}

/** The same metadata at a version, which is its last member. Leaving a member out with `...rest` takes five times as long. */
function metadataAt(metadata: Readonly<Record<string, unknown>>, version: string): object {
  if (!Object.hasOwn(metadata, 'resourceVersion')) return { ...metadata, resourceVersion: version };
  const kept: Record<string, unknown> = {};
  for (const name of Object.keys(metadata)) if (name !== 'resourceVersion') put(kept, name, metadata[name]);
  kept.resourceVersion = version;
  return kept;
}

/** The object to encode, and its metadata. */
function plainOf(object: unknown): { readonly plain: Record<string, unknown>; readonly metadata: Record<string, unknown> } {
  const isWritten = typeof (object as { toJSON?: unknown } | null)?.toJSON === 'function';
  const plain: unknown = isWritten ? JSON.parse(JSON.stringify(object)) : object;
  if (!isRecord(plain)) throw invalid('object', object, 'an object');
  const { metadata = {} } = plain;
  if (!isRecord(metadata)) throw invalid('object.metadata', metadata, 'an object');
  return { plain, metadata };
}

/** Whether a kept object takes long to copy. */
export function isLarge(object: object): boolean {
  return (encodedBytes(object) ?? 0) > LARGE_BYTES;
}

/** Whether the JSON exists, or is quick to make. */
export function isReady(object: object): boolean {
  const known = made.get(object);
  return typeof known === 'object' || (known !== undefined && known <= LARGE_BYTES);
}

/** A deep copy of a kept object. */
export function* copying<T extends object>(object: T): Work<T> {
  if (!isLarge(object)) return copyOf(object);
  return (yield* parsing(decoder.decode(yield* encoding(object, false)))) as T;
}

/** A deep copy of a value from JSON. */
export function copyOf<T>(value: T): T {
  if (Array.isArray(value)) return value.map(copyOf) as T;
  if (!isRecord(value)) return value;
  const copy: Record<string, unknown> = {};
  for (const name of Object.keys(value)) put(copy, name, copyOf(value[name]));
  return copy as T;
}

/** Whether two kept objects have the same content, regardless of version and the order of members. */
export function* comparingContent(one: KubernetesObject, other: KubernetesObject): Work<boolean> {
  return (yield* comparing(one.metadata ?? {}, other.metadata ?? {}, VERSION)) && (yield* comparing(one, other, METADATA));
}

const VERSION = ['resourceVersion'];
const METADATA = ['metadata'];

const START = '{"metadata":{';
const BRACE = 0x7d;
const START_BYTES = encoder.encode(START);

/** An object, and whether its bytes are the stored ones with a version inserted. */
interface Parsed<T> {
  readonly object: T;
  readonly isSpliced: boolean;
}

/**
 * Objects as backends keep them: JSON that begins with the metadata, without the version, which is the revision of the write. So
 * the version can be inserted without parsing the rest, and the bytes that a server sends are made by copying.
 *
 *     stored     {"metadata":{"name":"a"},"spec":...}
 *     revision 7 {"metadata":{"resourceVersion":"7","name":"a"},"spec":...}
 *
 * Other programs may have written a value: any JSON object will do. Anything else is refused with 500 and the name of its key.
 *
 * A draft is the text to store, and the object that it will become. It shares nothing with its source.
 */
export class Draft<T extends KubernetesObject = KubernetesObject> {
  /** The JSON to store. */
  readonly text: string;
  #value: Uint8Array | undefined;
  #parsed: Parsed<T> | undefined;

  /** @throws {WatchError} INVALID_ARGUMENT for anything but an object. What JSON.stringify throws is passed on. */
  constructor(object: T) {
    const given: unknown = object;
    this.text = given instanceof Drafted ? given.text : JSON.stringify(ordered(object));
    if (given instanceof Drafted) this.#parsed = given.parsed as Parsed<T>;
  }

  /** The bytes to store: {@link text} in UTF-8. */
  get value(): Uint8Array {
    this.#value ??= encoder.encode(this.text);
    return this.#value;
  }

  /** The object as it will be stored. It has no version before {@link at}. */
  get object(): T {
    this.#parsed ??= parsed<T>(this.text, '');
    return this.#parsed.object;
  }

  /** The same object, once it has been written at a revision. */
  at(revision: string): T {
    this.#parsed ??= parsed<T>(this.text, revision);
    return finished(this.#parsed, this.value, revision);
  }
}

/** The text of a draft, and the object parsed from it. */
class Drafted {
  readonly text: string;
  readonly parsed: Parsed<unknown>;

  constructor(text: string, parsed: Parsed<unknown>) {
    this.text = text;
    this.parsed = parsed;
  }
}

/** A draft that is made in pieces. */
export function* drafting<T extends KubernetesObject>(object: T): Work<Draft<T>> {
  const stored = yield* stringifying(ordered(object));
  const { text, isOurs } = textAt(stored, '');
  return new Draft<T>(new Drafted(stored, checked(yield* parsing(text), '', isOurs)) as unknown as T);
}

/** The object as a draft writes it: the metadata first, without the version. */
function ordered(object: unknown): object {
  const { plain, metadata } = plainOf(object);
  const { metadata: _, ...rest } = plain;
  const { resourceVersion: _version, ...kept } = metadata;
  return { metadata: kept, ...rest };
}

/**
 * The object of a value, written at a revision.
 *
 * @throws {WatchError} REFUSED with code 500 for bytes that are not an object.
 */
export function toObject<T extends KubernetesObject>(
  value: Uint8Array,
  from: { readonly key: string; readonly revision: string },
): T {
  const { revision } = from;
  try {
    return finished(parsed<T>(decoder.decode(value), revision), value, revision);
  } catch (error) {
    throw corrupt(from.key, error);
  }
}

/** The same in pieces. Also encodes objects that other programs have written. */
export function* decoding<T extends KubernetesObject>(
  value: Uint8Array,
  from: { readonly key: string; readonly revision: string },
): Work<T> {
  const { revision } = from;
  try {
    const { text, isOurs } = textAt(decoder.decode(value), revision);
    const object = checked<T>(yield* parsing(text), revision, isOurs);
    if (text.length > LARGE_BYTES) yield;
    const made = finished(object, value, revision);
    yield* encoding(made, true);
    return made;
  } catch (error) {
    throw corrupt(from.key, error);
  }
}

/** The same content at another version. If it is large, its JSON is copied from that of this one. */
export function atVersion<T extends KubernetesObject>(object: T, version: string): T {
  const other = { ...object, metadata: { ...object.metadata, resourceVersion: version } };
  const at = versionAt.get(object);
  const from = made.get(object);
  if (at === undefined || typeof from !== 'object') return other;
  const [was, is] = [versionOf(object), version].map((each) => encoder.encode(VERSION_NAME + JSON.stringify(each))) as [
    Uint8Array,
    Uint8Array,
  ];
  // Other programs may have written the members in an order that a copy does not have.
  if (was.some((byte, n) => from[at + n] !== byte)) return other;
  const bytes = new Uint8Array(from.length - was.length + is.length);
  bytes.set(from.subarray(0, at));
  bytes.set(is, at);
  bytes.set(from.subarray(at + was.length), at + is.length);
  made.set(other, bytes);
  versionAt.set(other, at);
  return other;
}

/** How a version is inserted into a value: `head` replaces `start`, with which the value begins, if we wrote it. */
export function spliceOf(value: Uint8Array, revision: string): { readonly head: string; readonly start: Uint8Array } {
  return { head: headOf(revision, value[START.length] === BRACE), start: START_BYTES };
}

function headOf(revision: string, isEmpty: boolean): string {
  return `${START}"resourceVersion":"${revision}"${isEmpty ? '' : ','}`;
}

/** The value is JSON, but not an object. */
class NotAnObject extends Error {}

function parsed<T>(stored: string, version: string): Parsed<T> {
  const { text, isOurs } = textAt(stored, version);
  return checked(JSON.parse(text), version, isOurs);
}

/** A stored text with a version, if we wrote it. */
function textAt(text: string, version: string): { readonly text: string; readonly isOurs: boolean } {
  if (!text.startsWith(START)) return { text, isOurs: false };
  return { text: headOf(version, text.charCodeAt(START.length) === BRACE) + text.slice(START.length), isOurs: true };
}

function checked<T>(object: unknown, version: string, isOurs: boolean): Parsed<T> {
  if (!isRecord(object)) throw new NotAnObject('is not a JSON object');
  if (object.metadata === undefined) object.metadata = {};
  const { metadata } = object;
  if (!isRecord(metadata)) throw new NotAnObject('has metadata that is not an object');
  // If it has a version itself, which would come last, that one counts.
  return { object: object as T, isSpliced: isOurs && metadata.resourceVersion === version };
}

function finished<T>({ object, isSpliced }: Parsed<T>, value: Uint8Array, revision: string): T {
  const { metadata } = object as { metadata: Record<string, unknown> };
  if (metadata.resourceVersion !== revision) metadata.resourceVersion = revision;
  if (isSpliced) {
    const { head, start } = spliceOf(value, revision);
    const bytes = new Uint8Array(head.length + value.length - start.length);
    encoder.encodeInto(head, bytes);
    bytes.set(value.subarray(start.length), head.length);
    if (bytes.length >= SPLICED_BYTES) versionAt.set(object as object, START.length);
    made.set(object as object, bytes);
  }
  return object;
}

function corrupt(key: string, error: unknown): WatchError {
  const why = error instanceof NotAnObject ? error.message : `is not JSON: ${(error as Error).message.slice(0, 200)}`;
  return refused(500, 'StorageReadError', `the value under ${JSON.stringify(key)} ${why}`);
}
