/**
 * The JSON of an object as bytes, made once. An object in a storage never changes, so its bytes belong to its identity: the
 * storage, a list and five hundred watches write the same buffer, and no code has to carry bytes beside objects.
 *
 *     object --- JSON.stringify, at the first use ---> bytes
 *        '---- every later use: the same bytes ----------^
 *
 * Bytes are forgotten with their object, or before it, when nobody is likely to want them: they take as much memory again as the
 * object, and are made again in two microseconds per KB. Objects must not be changed after their first use; a change would not be seen.
 */
import type { Work } from '../watch/fair-queue.ts';
import { stringifying } from './json.ts';

const encoder = new TextEncoder();
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
export function setEncodedBytes(object: object, bytes: number): void {
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
