/**
 * Objects as etcd has them: JSON that begins with their metadata, without the version, which is the revision of the write. So the
 * version can be inserted without parsing the rest again, and the bytes that a server sends are made by copying.
 *
 *     stored     {"metadata":{"name":"a"},"spec":...}
 *     revision 7 {"metadata":{"resourceVersion":"7","name":"a"},"spec":...}
 *
 * Other programs may have written a value: any JSON object will do. Anything else is refused with 500 and the name of its key.
 */
import type { KubernetesObject } from '../../cache/object.ts';
import { invalid, type WatchError } from '../../watch/errors.ts';
import { setEncoded } from '../encoded.ts';
import { refused } from '../statuses.ts';
import { toText } from './key-bytes.ts';
import type { KeyValue } from './wire/messages.ts';

const START = '{"metadata":{';
const BRACE = 0x7d;
const encoder = new TextEncoder();
const START_BYTES = encoder.encode(START);
const decoder = new TextDecoder('utf-8', { fatal: true });

type Members = Record<string, unknown>;

/** Bytes to store, and the text that they are, where that is known. */
export interface Stored {
  readonly value: Uint8Array;
  readonly text?: string | undefined;
}

/**
 * The bytes to store.
 *
 * @throws {WatchError} INVALID_ARGUMENT for what is not an object. What JSON.stringify throws is passed on.
 */
export function toStored(object: KubernetesObject): Stored {
  const plain: unknown =
    typeof (object as { toJSON?: unknown } | null)?.toJSON === 'function' ? JSON.parse(JSON.stringify(object)) : object;
  if (!isRecord(plain)) throw invalid('object', object, 'an object');
  const { metadata = {}, ...rest } = plain;
  if (!isRecord(metadata)) throw invalid('object.metadata', metadata, 'an object');
  const { resourceVersion: _, ...kept } = metadata;
  const text = JSON.stringify({ metadata: kept, ...rest });
  // From Node's pool: it is not kept.
  return { value: Buffer.from(text), text };
}

/** What is to be stored, and the object that it will be; it has no version yet. */
export interface Draft<T> extends Stored {
  readonly object: T;
  /** Whether its bytes are those of the stored ones, with a version. */
  readonly isSpliced: boolean;
}

/**
 * The object of stored bytes, at a revision.
 *
 * @throws {WatchError} REFUSED with code 500 for bytes that are not an object.
 */
export function toObject<T extends KubernetesObject>(
  key: Uint8Array,
  { revision, ...stored }: Stored & { readonly revision: bigint },
): T {
  return atRevision(read<T>(key, stored, `${revision}`), revision);
}

/** The same before its revision is known. Only for bytes of {@link toStored}, which contain no version. */
export function toDraft<T extends KubernetesObject>(key: Uint8Array, stored: Stored): Draft<T> {
  return read<T>(key, stored, '');
}

/** The object of a draft, once it has been written. */
export function atRevision<T extends KubernetesObject>({ object, value, isSpliced }: Draft<T>, revision: bigint): T {
  const version = `${revision}`;
  const { metadata } = object as unknown as { metadata: Members };
  if (metadata.resourceVersion !== version) metadata.resourceVersion = version;
  if (isSpliced) setEncoded(object, joined(headOf(value, version), value.subarray(START.length)));
  return object;
}

/** The object under a key. */
export function objectOf<T extends KubernetesObject>({ key, value, modRevision }: KeyValue): T {
  return toObject<T>(key, { value, revision: modRevision });
}

/** The same content at another version. */
export function atVersion<T extends KubernetesObject>(object: T, revision: bigint): T {
  return { ...object, metadata: { ...object.metadata, resourceVersion: `${revision}` } };
}

function read<T>(key: Uint8Array, { value, text: known }: Stored, version: string): Draft<T> {
  let object: unknown;
  let isSpliced = false;
  try {
    const text = known ?? decoder.decode(value);
    if (!text.startsWith(START)) object = JSON.parse(text);
    else {
      object = JSON.parse(headOf(value, version) + text.slice(START.length));
      isSpliced = isRecord(object) && isExact(object, version);
    }
  } catch (error) {
    throw corrupt(key, `is not JSON: ${(error as Error).message.slice(0, 200)}`);
  }
  if (!isRecord(object)) throw corrupt(key, 'is not a JSON object');
  if (object.metadata === undefined) object.metadata = {};
  else if (!isRecord(object.metadata)) throw corrupt(key, 'has metadata that is not an object');
  return { value, object: object as T, isSpliced };
}

/** Whether the value contains no version of its own, which would come last, and count. */
function isExact({ metadata }: Members, version: string): boolean {
  return isRecord(metadata) && metadata.resourceVersion === version;
}

/** The beginning, at a version, of a value that begins with START. */
function headOf(value: Uint8Array, version: string): string {
  return `${START}"resourceVersion":"${version}"${value[START.length] === BRACE ? '' : ','}`;
}

function joined(head: string, rest: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(head.length + rest.length);
  encoder.encodeInto(head, bytes);
  bytes.set(rest, head.length);
  return bytes;
}

/** Whether these are the bytes that this value gets at its revision. */
export function isEncodingOf(bytes: Uint8Array, { value, modRevision }: KeyValue): boolean {
  const { length } = headOf(value, `${modRevision}`);
  if (bytes.length - length !== value.length - START.length) return false;
  if (Buffer.compare(value.subarray(0, START.length), START_BYTES) !== 0) return false;
  return Buffer.compare(bytes.subarray(length), value.subarray(START.length)) === 0;
}

function corrupt(key: Uint8Array, why: string): WatchError {
  return refused(500, 'StorageReadError', `the value under ${JSON.stringify(toText(key))} ${why}`);
}

function isRecord(value: unknown): value is Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
