import { checkOptions, WatchError, wholeNumber } from '../watch/errors.ts';

/** The longest text that a selector is parsed from, in characters, unless the caller says otherwise. */
const MAX_SELECTOR_CHARS = 65_536;

/** Options of the parsers of selectors. */
export interface ParseOptions {
  /** The longest text to accept, in characters; longer ones are refused before they are read. Default 65,536. */
  readonly maxChars?: number | undefined;
}

/** What is wrong with a text: where, counted from its start, and what is expected instead. */
export interface Fault {
  readonly at: number;
  readonly expected: string;
}

/** How many characters of the text a message shows on each side of the place that is wrong. */
const SHOWN = 40;

/**
 * Creates an INVALID_SELECTOR error that points at the character:
 *
 *     label selector: expected "," or ")" at character 8, got "c"
 *       a in (b c)
 *               ^
 *
 * Characters count from 1 in the message, because people read it, and from 0 in `position`, because programs do. Of a long text,
 * only the surroundings are shown; control characters appear as spaces, so that the text cannot forge log lines.
 */
export function selectorError(kind: string, text: string, { at, expected }: Fault): WatchError {
  const from = Math.max(0, at - SHOWN);
  const before = from > 0 ? '…' : '';
  const after = text.length > at + SHOWN ? '…' : '';
  const shown = `${before}${printable(text.slice(from, at + SHOWN))}${after}`;
  const caret = `${' '.repeat(before.length + at - from)}^`;
  const got = at < text.length ? shownCharacter(text.charAt(at)) : 'the end';
  const message = `${kind}: expected ${expected} at character ${at + 1}, got ${got}\n  ${shown}\n  ${caret}`;
  return new WatchError('INVALID_SELECTOR', message, { position: at });
}

/** Throws INVALID_SELECTOR for a text that is too long, and INVALID_ARGUMENT for anything but a string. */
export function checkLength(kind: string, text: string, options: ParseOptions): void {
  const maxChars = wholeNumber('maxChars', checkOptions(options, ['maxChars']).maxChars ?? MAX_SELECTOR_CHARS);
  if (typeof text !== 'string') throw new WatchError('INVALID_ARGUMENT', `${kind}: expected a string, got ${typeof text}`);
  if (text.length <= maxChars) return;
  const message = `${kind}: expected at most ${maxChars} characters, got ${text.length}`;
  throw new WatchError('INVALID_SELECTOR', message, { limit: maxChars, position: maxChars });
}

function shownCharacter(character: string): string {
  if (printable(character) === character) return JSON.stringify(character);
  return `U+${character.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}`;
}

function printable(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be printed
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g, ' ');
}

/**
 * Compares by code unit, as `sort()` does, but explicitly where it matters. Label text is ASCII, so it is also the order of its
 * bytes.
 */
export function byCodeUnit(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0;
}

/** The labels of an object. Only own properties count. */
export type Labels = Readonly<Record<string, string>>;

/**
 * How a requirement tests the value of its key.
 *
 * | operator | in text | values | holds when |
 * |---|---|---|---|
 * | `=`, `==` | `k=v`, `k==v` | one | the label is there, and has this value |
 * | `in` | `k in (v,w)` | one or more | the label is there, and has one of these values |
 * | `!=` | `k!=v` | one | the label is absent, or has another value |
 * | `notin` | `k notin (v,w)` | one or more | the label is absent, or has none of these values |
 * | `exists` | `k` | none | the label is there |
 * | `!` | `!k` | none | the label is absent |
 * | `gt`, `lt` | `k>5`, `k<5` | one 64-bit integer | the label is there, is a 64-bit integer, and is greater, or less |
 */
export type LabelOperator = '=' | '==' | 'in' | '!=' | 'notin' | 'exists' | '!' | 'gt' | 'lt';

/**
 * One condition on one label, such as `app in (web,api)`, which is known to be well-formed. Selecting needs nothing more, so code
 * that imports only this does without the rest of a {@link Requirement}: validation and printing.
 */
export class LabelCondition {
  readonly key: string;
  readonly operator: LabelOperator;
  /** Sorted, each once. */
  readonly values: readonly string[];
  private readonly bound: bigint;

  constructor(key: string, operator: LabelOperator, values: readonly string[] = []) {
    this.key = key;
    this.operator = operator;
    this.values = [...new Set(values)].sort(byCodeUnit);
    this.bound = toInt64(this.values[0] ?? '') ?? 0n;
  }

  /** Whether an object with these labels satisfies it. */
  matches(labels: Labels | null | undefined): boolean {
    const value = labelOf(labels, this.key);
    switch (this.operator) {
      case 'exists':
        return value !== undefined;
      case '!':
        return value === undefined;
      case '!=':
      case 'notin':
        return value === undefined || !this.values.includes(value);
      case 'gt':
      case 'lt':
        return value !== undefined && this.compares(value);
      default:
        return value !== undefined && this.values.includes(value);
    }
  }

  private compares(value: string): boolean {
    const number = toInt64(value);
    if (number === undefined) return false;
    return this.operator === 'gt' ? number > this.bound : number < this.bound;
  }
}

/** The value of a label, or undefined if there is none. A label may be named `constructor` or `__proto__`. */
export function labelOf(labels: Labels | null | undefined, key: string): string | undefined {
  return labels && Object.hasOwn(labels, key) ? labels[key] : undefined;
}

/** What is wrong with the value after `>` or `<`. */
export function faultOfInteger(value: string): Fault | undefined {
  return toInt64(value) === undefined ? { at: 0, expected: 'a 64-bit integer' } : undefined;
}

/**
 * The syntax of label keys and values.
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

export function faultOfKey(key: string): Fault | undefined {
  const slash = key.indexOf('/');
  if (slash < 0) return faultOfName(key, 'a label key');
  const second = key.indexOf('/', slash + 1);
  if (second >= 0) return { at: second, expected: 'at most one "/" in a label key' };
  return faultOfPrefix(key.slice(0, slash)) ?? moved(faultOfName(key.slice(slash + 1), 'a name after the "/"'), slash + 1);
}

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
 * for every other text. Digits are counted before they are parsed, because parsing a million of them takes long.
 */
export function toInt64(text: string): bigint | undefined {
  if (!/^[+-]?\d+$/.test(text)) return undefined;
  const digits = text.replace(/^[+-]?0*/, '');
  if (digits.length > 19) return undefined;
  const size = BigInt(digits);
  if (text.startsWith('-')) return size <= MAX_INT64 + 1n ? -size : undefined;
  return size <= MAX_INT64 ? size : undefined;
}
