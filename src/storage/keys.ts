/** The keys and prefixes that a storage accepts. Keys come over the wire, prefixes from programs. */
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
  throw badRequest(`not a key: ${shown}; expected segments between slashes, none of them empty, "." or ".."`);
}

/**
 * Returns `prefix` if it is valid for a scope.
 *
 * @throws {WatchError} INVALID_ARGUMENT if it does not end with `/`, or is not a key without that.
 */
export function checkPrefix(prefix: string): string {
  if (typeof prefix === 'string' && prefix.endsWith('/') && isKey(prefix.slice(0, -1))) return prefix;
  throw invalid('prefix', prefix, 'segments that each end with "/", none of them empty, "." or ".."');
}

function isKey(key: string): boolean {
  return typeof key === 'string' && key.length <= MAX_KEY_CHARS && !BAD_SEGMENT.test(key);
}
