/** The keys and prefixes that a storage accepts, and their form in a backend. Keys come over the wire, prefixes from programs. */
import { invalid } from '../watch/errors.ts';
import { badRequest } from './statuses.ts';

/** The largest number of characters of a key. */
export const MAX_KEY_CHARS = 1_024;

/** A segment between slashes that is empty, `.` or `..`. */
const BAD_SEGMENT = /(?:^|\/)\.{0,2}(?:\/|$)/;

/**
 * Returns `key` if it is valid, as `storage.ts` defines it.
 *
 * @throws {WatchError} REFUSED with code 400 if it is not.
 */
export function checkKey(key: string): string {
  if (isKey(key)) return key;
  const shown = typeof key === 'string' ? JSON.stringify(key.slice(0, 80)) : typeof key;
  const isLong = typeof key === 'string' && key.length > MAX_KEY_CHARS;
  if (isLong) throw badRequest(`not a key: ${shown}; expected at most ${MAX_KEY_CHARS} characters`);
  throw badRequest(`not a key: ${shown}; expected segments between slashes, none of them empty, "." or ".."`);
}

/**
 * Returns `prefix` if it is valid for a scope.
 *
 * @throws {WatchError} INVALID_ARGUMENT if it does not end with `/`, or would not be a key without it.
 */
export function checkPrefix(prefix: string): string {
  if (typeof prefix === 'string' && prefix.endsWith('/') && isKey(prefix.slice(0, -1))) return prefix;
  throw invalid('prefix', prefix, 'segments that each end with "/", none of them empty, "." or ".."');
}

function isKey(key: string): boolean {
  return typeof key === 'string' && key.length <= MAX_KEY_CHARS && !BAD_SEGMENT.test(key);
}

const utf8 = new TextEncoder();
const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
const SURROGATE = /[\uD800-\uDFFF]/;
/** Found in a decoded text if its bytes were not plain UTF-8: invalid bytes become U+FFFD. */
const UNUSUAL = /[\uD800-\uDFFF\uFFFD]/;

/**
 * A key as backends store it: bytes, with the prefixes of the storage and the scope before the key.
 *
 *     /watchmux/ orders.example.com/orders/ default/a
 *     storage    scope                      key
 *
 * Backends order keys by their bytes, and a storage lists in the order of UTF-16 code units. The two orders agree if each code
 * unit is encoded separately, which is called CESU-8. Except for emoji and rare scripts, this is UTF-8.
 */
export function toBytes(text: string): Uint8Array {
  if (!SURROGATE.test(text)) return utf8.encode(text);
  const bytes: number[] = [];
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    if (unit < 0x80) bytes.push(unit);
    else if (unit < 0x800) bytes.push(0xc0 | (unit >> 6), 0x80 | (unit & 0x3f));
    else bytes.push(0xe0 | (unit >> 12), 0x80 | ((unit >> 6) & 0x3f), 0x80 | (unit & 0x3f));
  }
  return Uint8Array.from(bytes);
}

/** The text of bytes that {@link toBytes} made; of other bytes, a text that resembles them. */
export function toText(bytes: Uint8Array): string {
  let text = decoder.decode(bytes);
  if (!UNUSUAL.test(text)) return text;
  text = '';
  for (let at = 0; at < bytes.length; ) {
    const [first = 0, second = 0, third = 0] = bytes.subarray(at, at + 3);
    const length = first < 0x80 ? 1 : first < 0xe0 ? 2 : 3;
    at += length;
    if (length === 1) text += String.fromCharCode(first);
    else if (length === 2) text += String.fromCharCode(((first & 0x1f) << 6) | (second & 0x3f));
    else text += String.fromCharCode(((first & 0x0f) << 12) | ((second & 0x3f) << 6) | (third & 0x3f));
  }
  return text;
}

/** The first bytes after all keys that begin with a prefix, which ends with a slash. */
export function behind(prefix: Uint8Array): Uint8Array {
  const end = prefix.slice();
  end[end.length - 1] = (end.at(-1) as number) + 1;
  return end;
}

/** The first bytes after one key. */
export function after(key: Uint8Array): Uint8Array {
  const next = new Uint8Array(key.length + 1);
  next.set(key);
  return next;
}
