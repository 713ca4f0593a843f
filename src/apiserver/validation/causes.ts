/** Causes of refusals, in the words of upstream: `apimachinery/pkg/util/validation/field`. */
import type { Work } from '../../watch/fair-queue.ts';
import type { FieldCause } from '../definition.ts';

/** The package's own checks. They change nothing, so they need no copies of what they look at. */
const OURS: WeakSet<object> = new WeakSet();

export function ours<F extends object>(check: F): F {
  OURS.add(check);
  return check;
}

export const isOurCheck = (check: object): boolean => OURS.has(check);

type Telling = (object: object) => Work<readonly string[]>;

/** What is told of objects with which the package's own checks find nothing wrong. */
const TELLING: WeakMap<object, Telling> = new WeakMap();

export function telling<F extends object>(check: F, tell: Telling): F {
  TELLING.set(check, tell);
  return ours(check);
}

export const tellingOf = (check: object | undefined): Telling | undefined => check && TELLING.get(check);

/** The most causes that are looked for, one more than are reported. A hostile object could have millions. */
export const MAX_CAUSES = 101;

/** The causes of the items of a list. */
export function causesIn<T>(list: readonly T[], of: (item: T, at: number) => readonly FieldCause[]): FieldCause[] {
  const found: FieldCause[] = [];
  for (const [at, item] of list.entries()) {
    if (found.length >= MAX_CAUSES) break;
    found.push(...of(item, at));
  }
  return found;
}

/** The most characters of a value that a message shows. */
const MAX_SHOWN_CHARS = 300;

/** The most characters of a field in a cause, and of its message. */
const [MAX_FIELD_CHARS, MAX_MESSAGE_CHARS] = [256, 1_000] as const;

/** A cause of bounded length, as clients can make the path of a field arbitrarily long. The same cause if it is short enough. */
export function bounded(cause: FieldCause): FieldCause {
  const [field, message] = [middleCut(cause.field, MAX_FIELD_CHARS), middleCut(cause.message, MAX_MESSAGE_CHARS)];
  return field === cause.field && message === cause.message ? cause : { ...cause, field, message };
}

/** The beginning and the end of a text that is longer than this. A copy, as a substring would keep the whole text in memory. */
export function middleCut(text: string, most: number): string {
  if (text.length <= most) return text;
  const half = Math.floor((most - 3) / 2);
  return JSON.parse(JSON.stringify(`${text.slice(0, half)}...${text.slice(-half)}`)) as string;
}

/** The path of a member. */
export const childOf = (path: string, name: string): string => (path === '' ? name : `${path}.${name}`);

/** A number as Go writes it with `%v`. `isFloat`: it is a float, even if it is whole. */
export function goNumber(value: number, isFloat: boolean = false): string {
  if (!isFloat && Number.isSafeInteger(value)) return String(value);
  const [digits = '', exponent = '0'] = value.toExponential().split('e');
  if (Number(exponent) >= -4 && Number(exponent) < 6) return String(value);
  const power = Math.abs(Number(exponent));
  return `${digits}e${Number(exponent) < 0 ? '-' : '+'}${power < 10 ? '0' : ''}${power}`;
}

/** A value as it appears in messages. */
export function shownValue(value: unknown): string {
  if (typeof value === 'number') return goNumber(value);
  const text = typeof value === 'string' ? value : undefined;
  if (text !== undefined) return quoted(text.length > MAX_SHOWN_CHARS ? `${text.slice(0, MAX_SHOWN_CHARS)}...` : text);
  const json = written(value, MAX_SHOWN_CHARS);
  return json.length > MAX_SHOWN_CHARS ? `${json.slice(0, MAX_SHOWN_CHARS)}...` : json;
}

/** How many names are sorted, as Go does; of an object with more, only the first ones are. */
const MAX_SORTED = 1_024;

/** The beginning of a value's JSON, in time proportional to its length. */
function written(value: unknown, left: number): string {
  if (typeof value === 'string') return goEscaped(JSON.stringify(value.slice(0, left + 1)));
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null';
  const isList = Array.isArray(value);
  const names = isList ? undefined : Object.keys(value).slice(0, MAX_SORTED).sort();
  const count = (names ?? (value as readonly unknown[])).length;
  let text = isList ? '[' : '{';
  for (let at = 0; at < count && text.length <= left; at++) {
    const name = names?.[at];
    if (at > 0) text += ',';
    if (name !== undefined) text += `${written(name, left)}:`;
    text += written((value as Record<string | number, unknown>)[name ?? at], left - text.length);
  }
  return text + (isList ? ']' : '}');
}

/** The first characters of a value's JSON, in time proportional to their number: the rest is not encoded. */
export function jsonStart(value: unknown, most: number): string {
  let left = most;
  const cut = (_: string, each: unknown): unknown => {
    // Each takes at least one character, and one before or after it.
    if (left-- <= 0) return null;
    if (typeof each === 'string' || Array.isArray(each)) return each.slice(0, most);
    if (typeof each !== 'object' || each === null) return each;
    const names = Object.keys(each);
    if (names.length <= most) return each;
    return Object.fromEntries(names.slice(0, most).map((name) => [name, (each as Record<string, unknown>)[name]]));
  };
  return String(JSON.stringify(value, cut)).slice(0, most);
}

/** JSON as Go writes it: characters that are special in HTML are escaped. */
export const goEscaped = (json: string): string =>
  json.replace(/[<>&\u2028\u2029]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`);

/** A text as Go writes it with `%q`; characters that could forge log lines are escaped. */
export function quoted(text: string): string {
  return JSON.stringify(text).replace(/\\[bf]|\\u00[01][0-9a-f]|[\p{C}\p{Zl}\p{Zp}]|(?! )\p{Zs}/gu, (char) => {
    const code = char.length > 2 && char.startsWith('\\u') ? Number.parseInt(char.slice(2), 16) : (char.codePointAt(0) as number);
    if (char === '\\b' || char === '\\f') return char;
    if (code === 7 || code === 11) return code === 7 ? '\\a' : '\\v';
    if (code < 0x80) return `\\x${code.toString(16).padStart(2, '0')}`;
    return code > 0xffff ? `\\U${code.toString(16).padStart(8, '0')}` : `\\u${code.toString(16).padStart(4, '0')}`;
  });
}

const detailed = (what: string, detail: string): string => (detail === '' ? what : `${what}: ${detail}`);

export const invalidCause = (field: string, value: unknown, detail: string): FieldCause => ({
  ...{ field, reason: 'FieldValueInvalid' },
  message: detailed(`Invalid value: ${shownValue(value)}`, detail),
});

export const requiredCause = (field: string, detail: string): FieldCause => ({
  ...{ field, reason: 'FieldValueRequired' },
  message: detailed('Required value', detail),
});

export const forbiddenCause = (field: string, detail: string): FieldCause => ({
  ...{ field, reason: 'FieldValueForbidden' },
  message: detailed('Forbidden', detail),
});

export const duplicateCause = (field: string, value: unknown): FieldCause => ({
  ...{ field, reason: 'FieldValueDuplicate' },
  message: `Duplicate value: ${shownValue(value)}`,
});

export const unsupportedCause = (field: string, value: unknown, values: readonly unknown[]): FieldCause => {
  const texts = values.map((each) => quoted(typeof each === 'string' ? each : written(each, MAX_SHOWN_CHARS)));
  const detail = texts.length === 0 ? '' : `supported values: ${texts.join(', ')}`;
  return { field, reason: 'FieldValueNotSupported', message: detailed(`Unsupported value: ${shownValue(value)}`, detail) };
};

/** `count`: the number, if it is known. */
export const tooManyCause = (field: string, count: number, most: number): FieldCause => ({
  ...{ field, reason: 'FieldValueTooMany' },
  message: `Too many: ${count}: must have at most ${most} ${most === 1 ? 'item' : 'items'}`,
});

export const tooLongCause = (field: string, most: number): FieldCause => ({
  ...{ field, reason: 'FieldValueTooLong' },
  message: `Too long: may not be more than ${most} ${most === 1 ? 'byte' : 'bytes'}`,
});
