/**
 * Objects as values. What is put in becomes JSON once; its bytes are what servers send, and what is parsed from it is kept. So
 * nothing is shared with the caller, and nothing is kept that JSON cannot express.
 */
import type { KubernetesObject } from '../../cache/object.ts';
import { invalid } from '../../watch/errors.ts';
import { setEncoded, setEncodedBytes } from '../encoded.ts';

const encoder = new TextEncoder();
const decoder = new TextDecoder('utf-8', { fatal: true });

/** An object as it is kept, and the size of its JSON. */
export interface Value<T> {
  readonly object: T;
  readonly bytes: number;
}

/** Stands for the version in a text that was made before the version is known. Nobody can write it into an object. */
const PLACE = `@${crypto.randomUUID()}`;

/**
 * An object that is to be kept. Its JSON and its copy are made before anything is decided, one after the other, because each takes long
 * for a large object; its version is put in when it is written.
 */
export class Draft<T extends KubernetesObject> {
  readonly #text: string;
  #copy: T | undefined;

  /** @throws {WatchError} INVALID_ARGUMENT for what is not an object. What JSON.stringify throws is passed on. */
  constructor(object: T) {
    const plain = typeof (object as { toJSON?: unknown } | null)?.toJSON === 'function' ? jsonOf(object) : object;
    if (!isRecord(plain)) throw invalid('object', object, 'an object');
    const { metadata } = plain;
    if (metadata !== undefined && !isRecord(metadata)) throw invalid('object.metadata', metadata, 'an object');
    this.#text = JSON.stringify({ ...plain, metadata: atVersion(metadata ?? {}, PLACE) });
  }

  get isLarge(): boolean {
    return this.#text.length > LARGE_BYTES;
  }

  /** What was given, as a value: it shares nothing with it. Its version is none. */
  get copy(): T {
    this.#copy ??= JSON.parse(this.#text) as T;
    return this.#copy;
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

/** The size from which an object is copied, changed and written in pieces, in bytes of JSON. */
export const LARGE_BYTES = 262_144;

/** An object whose JSON is there already, as `toValue` has made it. */
export function fromBytes<T extends object>(bytes: Uint8Array): Value<T> {
  const object = JSON.parse(decoder.decode(bytes)) as T;
  setEncodedBytes(object, bytes.byteLength);
  return { object, bytes: bytes.byteLength };
}

/** The same content at another version. */
export function atRevision<T extends KubernetesObject>(object: T, resourceVersion: string): T {
  return { ...object, metadata: { ...object.metadata, resourceVersion } };
}

/** The same metadata at a version, which is its last member. Leaving a member out by `...rest` takes five times as long. */
function atVersion(metadata: Readonly<Record<string, unknown>>, version: string): object {
  const kept: Record<string, unknown> = {};
  for (const name of Object.keys(metadata)) if (name !== 'resourceVersion') put(kept, name, metadata[name]);
  kept.resourceVersion = version;
  return kept;
}

function jsonOf(object: unknown): unknown {
  return JSON.parse(JSON.stringify(object));
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A deep copy of what came out of JSON. */
export function copyOf<T>(value: T): T {
  if (Array.isArray(value)) return value.map(copyOf) as T;
  if (!isRecord(value)) return value;
  const copy: Record<string, unknown> = {};
  for (const name of Object.keys(value)) put(copy, name, copyOf(value[name]));
  return copy as T;
}

/** Sets a member, even one of a name by which an assignment would set something else. */
function put(object: Record<string, unknown>, name: string, value: unknown): void {
  if (name === '__proto__') Object.defineProperty(object, name, { value, ...DATA });
  else object[name] = value;
}

const DATA = { enumerable: true, writable: true, configurable: true } as const;

/** Whether two kept objects have the same content, whatever their versions and the order of their members. */
export function isSameContent(one: KubernetesObject, other: KubernetesObject): boolean {
  return equals(one.metadata ?? {}, other.metadata ?? {}, 'resourceVersion') && equals(one, other, 'metadata');
}

/** Whether two values of JSON are the same, except for one of their members. */
function equals(one: unknown, other: unknown, but?: string): boolean {
  if (one === other) return true;
  if (Array.isArray(one) && Array.isArray(other)) {
    return one.length === other.length && one.every((member, at) => equals(member, other[at]));
  }
  if (!isRecord(one) || !isRecord(other)) return false;
  const names = namesOf(one, but);
  return (
    names.length === namesOf(other, but).length &&
    names.every((name) => Object.hasOwn(other, name) && equals(one[name], other[name]))
  );
}

function namesOf(object: object, but: string | undefined): string[] {
  const names = Object.keys(object);
  return but === undefined ? names : names.filter((name) => name !== but);
}
