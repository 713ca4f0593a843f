/**
 * Objects as values. What is put in becomes JSON once; its bytes are what servers send, and what is parsed from it is kept. So
 * nothing is shared with the caller, and nothing is kept that JSON cannot express.
 *
 * The JSON of an object as bytes is made once. An object in a storage never changes, so its bytes belong to its identity: the
 * storage, a list and five hundred watches write the same buffer, and no code has to carry bytes beside objects.
 *
 *     object --- JSON.stringify, at the first use ---> bytes
 *        '---- every later use: the same bytes ----------^
 *
 * Bytes are forgotten with their object, or before it, when nobody is likely to want them: they take as much memory again as the
 * object, and are made again in two microseconds per KB. Objects must not be changed after their first use; a change would not be seen.
 */
import type { KubernetesObject } from '../cache/object.ts';
import { invalid } from '../watch/errors.ts';
import { atOnce, type Work } from '../watch/fair-queue.ts';
import { comparing, parsing, put, stringifying } from './json.ts';

const encoder = new TextEncoder();
const decoder = new TextDecoder('utf-8', { fatal: true });
/** The bytes, or how many there will be. */
const made = new WeakMap<object, Uint8Array | number>();

/** The JSON of an object in UTF-8. The same buffer for the same object: do not write into it. */
export function encoded(object: object): Uint8Array {
  const known = made.get(object);
  if (typeof known === 'object') return known;
  const bytes = encodedOnce(object);
  made.set(object, bytes);
  return bytes;
}

/** The same, for callers that need it once: what has to be made is not kept. */
export function encodedOnce(object: object): Uint8Array {
  const known = made.get(object);
  return typeof known === 'object' ? known : encoder.encode(JSON.stringify(object));
}

/** The same in pieces. `keeps`: as `encoded` does; otherwise as `encodedOnce`. */
export function* encoding(object: object, keeps: boolean): Work<Uint8Array> {
  const known = made.get(object);
  if (typeof known === 'object') return known;
  const bytes = encoder.encode(yield* stringifying(object));
  if (keeps) made.set(object, bytes);
  return bytes;
}

/** Sets the JSON of an object, for callers that already have it. */
export function setEncoded(object: object, bytes: Uint8Array): void {
  made.set(object, bytes);
}

/** Sets how many bytes the JSON of an object has. It is made again when it is needed: of a million objects that is not at once. */
function setEncodedBytes(object: object, bytes: number): void {
  made.set(object, bytes);
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

/** Stands for the version in a text that was made before the version is known. Nobody can write it into an object. */
const PLACE = `@${crypto.randomUUID()}`;

/** An object that is to be kept: its JSON and its copy. Its version is put in when it is written. */
export class PreparedValue<T extends KubernetesObject> {
  readonly #text: string;
  /** What was given, as a value: it shares nothing with it. Its version is none. */
  readonly copy: T;

  constructor(text: string, copy: T) {
    this.#text = text;
    this.copy = copy;
  }

  /** The object as it is kept at a version. Call it once. */
  at(version: string): Value<T> {
    const { copy } = this;
    (copy.metadata as { resourceVersion: string }).resourceVersion = version;
    const bytes = encoder.encode(this.#text.replace(PLACE, version));
    setEncoded(copy, bytes);
    return { object: copy, bytes: bytes.byteLength };
  }
}

/** Makes what is to be kept. Throws INVALID_ARGUMENT for what is not an object. What JSON.stringify throws is passed on. */
export function* preparing<T extends KubernetesObject>(object: T): Work<PreparedValue<T>> {
  const plain = typeof (object as { toJSON?: unknown } | null)?.toJSON === 'function' ? jsonOf(object) : object;
  if (!isRecord(plain)) throw invalid('object', object, 'an object');
  const { metadata } = plain;
  if (metadata !== undefined && !isRecord(metadata)) throw invalid('object.metadata', metadata, 'an object');
  const text = yield* stringifying({ ...plain, metadata: metadataAt(metadata ?? {}, PLACE) });
  return new PreparedValue(text, (yield* parsing(text)) as T);
}

/** The size from which an object is copied in pieces, in bytes of JSON. */
const LARGE_BYTES = 262_144;

/** An object whose JSON is there already, as `toValue` has made it. */
export function fromBytes<T extends object>(bytes: Uint8Array): Value<T> {
  const object = JSON.parse(decoder.decode(bytes)) as T;
  setEncodedBytes(object, bytes.byteLength);
  return { object, bytes: bytes.byteLength };
}

/** The same metadata at a version, which is its last member. Leaving a member out by `...rest` takes five times as long. */
function metadataAt(metadata: Readonly<Record<string, unknown>>, version: string): object {
  const kept: Record<string, unknown> = {};
  for (const name of Object.keys(metadata)) if (name !== 'resourceVersion') put(kept, name, metadata[name]);
  kept.resourceVersion = version;
  return kept;
}

function jsonOf(object: unknown): unknown {
  return JSON.parse(JSON.stringify(object));
}

/** Whether a kept object takes long to copy. */
export function isLarge(object: object): boolean {
  return (encodedBytes(object) ?? 0) > LARGE_BYTES;
}

/** A deep copy of an object that is kept. */
export function* copying<T extends object>(object: T): Work<T> {
  if (!isLarge(object)) return copyOf(object);
  return (yield* parsing(decoder.decode(yield* encoding(object, false)))) as T;
}

/** A deep copy of what came out of JSON. */
export function copyOf<T>(value: T): T {
  if (Array.isArray(value)) return value.map(copyOf) as T;
  if (!isRecord(value)) return value;
  const copy: Record<string, unknown> = {};
  for (const name of Object.keys(value)) put(copy, name, copyOf(value[name]));
  return copy as T;
}

/** Whether two kept objects have the same content, whatever their versions and the order of their members. */
export function* comparingContent(one: KubernetesObject, other: KubernetesObject): Work<boolean> {
  return (yield* comparing(one.metadata ?? {}, other.metadata ?? {}, VERSION)) && (yield* comparing(one, other, METADATA));
}

const VERSION = ['resourceVersion'];
const METADATA = ['metadata'];

/** The same at a stretch. */
export function isSameContent(one: KubernetesObject, other: KubernetesObject): boolean {
  return atOnce(comparingContent(one, other));
}
