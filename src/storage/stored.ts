/**
 * Objects as backends keep them: JSON that begins with the metadata, without the version, which is the revision of the write. So the
 * version can be inserted without parsing the rest again, and the bytes that a server sends are made by copying.
 *
 *     stored     {"metadata":{"name":"a"},"spec":...}
 *     revision 7 {"metadata":{"resourceVersion":"7","name":"a"},"spec":...}
 *
 * Other programs may have written a value: any JSON object will do. Anything else is refused with 500 and the name of its key.
 */
import type { KubernetesObject } from '../cache/object.ts';
import { invalid, type WatchError } from '../watch/errors.ts';
import { refused } from './statuses.ts';
import { setEncoded } from './values.ts';

const START = '{"metadata":{';
const BRACE = 0x7d;
const encoder = new TextEncoder();
const START_BYTES = encoder.encode(START);
const decoder = new TextDecoder('utf-8', { fatal: true });

/** An object, and whether its bytes are those of the stored ones with a version. */
interface Parsed<T> {
  readonly object: T;
  readonly isSpliced: boolean;
}

/** What is to be stored, and the object that it will be. It shares nothing with the one that it is made from. */
export class Draft<T extends KubernetesObject = KubernetesObject> {
  /** The JSON to store. */
  readonly text: string;
  #value: Uint8Array | undefined;
  #parsed: Parsed<T> | undefined;

  /** @throws {WatchError} INVALID_ARGUMENT for what is not an object. What JSON.stringify throws is passed on. */
  constructor(object: T) {
    const plain: unknown =
      typeof (object as { toJSON?: unknown } | null)?.toJSON === 'function' ? JSON.parse(JSON.stringify(object)) : object;
    if (!isRecord(plain)) throw invalid('object', object, 'an object');
    const { metadata = {}, ...rest } = plain;
    if (!isRecord(metadata)) throw invalid('object.metadata', metadata, 'an object');
    const { resourceVersion: _, ...kept } = metadata;
    this.text = JSON.stringify({ metadata: kept, ...rest });
  }

  /** The bytes to store: {@link text} in UTF-8. */
  get value(): Uint8Array {
    this.#value ??= encoder.encode(this.text);
    return this.#value;
  }

  /** The object as it will be stored. Its version is none before {@link at}. */
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

/**
 * The object of a value, written at a revision.
 *
 * @throws {WatchError} REFUSED with code 500 for bytes that are not an object.
 */
export function toObject<T extends KubernetesObject>(
  value: Uint8Array,
  place: { readonly key: string; readonly revision: string },
): T {
  const { revision } = place;
  try {
    return finished(parsed<T>(decoder.decode(value), revision), value, revision);
  } catch (error) {
    throw corrupt(
      place.key,
      error instanceof NotAnObject ? error.message : `is not JSON: ${(error as Error).message.slice(0, 200)}`,
    );
  }
}

/** The same content at another version. */
export function atVersion<T extends KubernetesObject>(object: T, revision: string): T {
  return { ...object, metadata: { ...object.metadata, resourceVersion: revision } };
}

/** How a version is inserted into a value: `head` stands for `start`, with which the value begins, if it is one of ours. */
export function spliceOf(value: Uint8Array, revision: string): { readonly head: string; readonly start: Uint8Array } {
  return { head: headOf(revision, value[START.length] === BRACE), start: START_BYTES };
}

function headOf(revision: string, isEmpty: boolean): string {
  return `${START}"resourceVersion":"${revision}"${isEmpty ? '' : ','}`;
}

/** What is JSON, and no object. */
class NotAnObject extends Error {}

function parsed<T>(text: string, version: string): Parsed<T> {
  let object: unknown;
  let isSpliced = false;
  if (text.startsWith(START)) {
    object = JSON.parse(headOf(version, text.charCodeAt(START.length) === BRACE) + text.slice(START.length));
    // A version of its own, which would come last, counts.
    isSpliced = isRecord(object) && isRecord(object.metadata) && object.metadata.resourceVersion === version;
  } else object = JSON.parse(text);
  if (!isRecord(object)) throw new NotAnObject('is not a JSON object');
  if (object.metadata === undefined) object.metadata = {};
  else if (!isRecord(object.metadata)) throw new NotAnObject('has metadata that is not an object');
  return { object: object as T, isSpliced };
}

function finished<T>({ object, isSpliced }: Parsed<T>, value: Uint8Array, revision: string): T {
  const { metadata } = object as { metadata: Record<string, unknown> };
  if (metadata.resourceVersion !== revision) metadata.resourceVersion = revision;
  if (isSpliced) {
    const { head, start } = spliceOf(value, revision);
    const bytes = new Uint8Array(head.length + value.length - start.length);
    encoder.encodeInto(head, bytes);
    bytes.set(value.subarray(start.length), head.length);
    setEncoded(object as object, bytes);
  }
  return object;
}

function corrupt(key: string, why: string): WatchError {
  return refused(500, 'StorageReadError', `the value under ${JSON.stringify(key)} ${why}`);
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
