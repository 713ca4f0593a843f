import type { Fault } from './syntax.ts';

/**
 * What label keys and values may look like.
 *
 *     example.com/app-name        key   = [prefix "/"] name
 *     '---------' '------'        value = name, or nothing
 *       prefix      name          prefix = DNS subdomain: lower-case labels with dots between, at most 253 characters
 *
 * A name has at most 63 letters, digits, `-`, `_` and `.`, and begins and ends with a letter or digit. The functions return what
 * is wrong, with its place, or undefined.
 */

const MAX_NAME_CHARS = 63;
const MAX_PREFIX_CHARS = 253;

const ALPHANUMERIC = /[A-Za-z0-9]/;
const LOWER_ALPHANUMERIC = /[a-z0-9]/;

/** What is wrong with a label's key. */
export function faultOfKey(key: string): Fault | undefined {
  const slash = key.indexOf('/');
  if (slash < 0) return faultOfName(key, 'a label key');
  const second = key.indexOf('/', slash + 1);
  if (second >= 0) return { at: second, expected: 'at most one "/" in a label key' };
  return faultOfPrefix(key.slice(0, slash)) ?? moved(faultOfName(key.slice(slash + 1), 'a name after the "/"'), slash + 1);
}

/** What is wrong with a label's value. */
export function faultOfValue(value: string): Fault | undefined {
  return value === '' ? undefined : faultOfName(value, 'a label value');
}

function faultOfName(name: string, what: string): Fault | undefined {
  if (name === '') return { at: 0, expected: what };
  const strange = name.search(/[^-A-Za-z0-9_.]/);
  if (strange >= 0) return { at: strange, expected: `${what} of letters, digits, "-", "_" and "."` };
  if (name.length > MAX_NAME_CHARS) return { at: MAX_NAME_CHARS, expected: `${what} of at most ${MAX_NAME_CHARS} characters` };
  if (!ALPHANUMERIC.test(name.charAt(0))) return { at: 0, expected: `${what} that begins with a letter or digit` };
  const last = name.length - 1;
  if (!ALPHANUMERIC.test(name.charAt(last))) return { at: last, expected: `${what} that ends with a letter or digit` };
  return undefined;
}

function faultOfPrefix(prefix: string): Fault | undefined {
  const strange = prefix.search(/[^-a-z0-9.]/);
  if (strange >= 0) return { at: strange, expected: 'a prefix of lower-case letters, digits, "-" and "."' };
  if (prefix.length > MAX_PREFIX_CHARS) {
    return { at: MAX_PREFIX_CHARS, expected: `a prefix of at most ${MAX_PREFIX_CHARS} characters` };
  }
  let at = 0;
  for (const label of prefix.split('.')) {
    const end = at + label.length;
    const expected = 'a lower-case letter or digit';
    if (!LOWER_ALPHANUMERIC.test(label.charAt(0))) return { at, expected };
    if (!LOWER_ALPHANUMERIC.test(label.charAt(label.length - 1))) return { at: end - 1, expected };
    at = end + 1;
  }
  return undefined;
}

function moved(fault: Fault | undefined, by: number): Fault | undefined {
  return fault && { ...fault, at: fault.at + by };
}

const MAX_INT64 = 9_223_372_036_854_775_807n;

/**
 * The 64-bit integer that a text spells in decimal, as Go's `ParseInt` reads it: a sign and leading zeros are allowed. Undefined
 * for every other text. Digits are counted before they are read, because reading a million of them takes long.
 */
export function toInt64(text: string): bigint | undefined {
  if (!/^[+-]?\d+$/.test(text)) return undefined;
  const digits = text.replace(/^[+-]?0*/, '');
  if (digits.length > 19) return undefined;
  const size = BigInt(digits);
  if (text.startsWith('-')) return size <= MAX_INT64 + 1n ? -size : undefined;
  return size <= MAX_INT64 ? size : undefined;
}
