/** `'...'.format([...])` and `strings.quote` in rules. Upstream: `formatting.go` and `strings.go` of cel-go's `ext`. */
import { goNumber, quoted } from './causes.ts';
import { costOf, spend } from './rule-cost.ts';

/** The most digits after the point. Upstream has no limit. */
const MAX_DIGITS = 100;
const DIGITS = 6;
const utf8 = new TextEncoder();
const STRICT_UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** The name of a type at run time. */
export const typeNameOf = (value: unknown): string => PRIMITIVES[typeof value] ?? typeNameOfObject(value as object | null);

const PRIMITIVES: Readonly<Record<string, string>> = { string: 'string', boolean: 'bool', bigint: 'int', number: 'double' };

function typeNameOfObject(value: object | null): string {
  if (value === null) return 'null_type';
  if (Array.isArray(value)) return 'list';
  if (value instanceof Uint8Array) return 'bytes';
  if (value instanceof Date) return 'google.protobuf.Timestamp';
  const { name, type } = value.constructor as { readonly name: string; readonly type?: string };
  return type ?? NAMES[name] ?? name;
}

/** Of classes that are not ours, and so have no `type`. A bundler may rename ours. */
const NAMES: Readonly<Record<string, string>> = {
  ...{ Object: 'map', Map: 'map', Type: 'type', UnsignedInt: 'uint', Optional: 'optional_type' },
  Duration: 'google.protobuf.Duration',
};

const special = (value: number, most: string, least: string): string => (Number.isNaN(value) ? 'NaN' : value > 0 ? most : least);

/** Rounded to a number of digits, halves to even. */
function fixed(value: number, digits: number): string {
  if (Object.is(value, -0)) return `-${fixed(0, digits)}`;
  if (Math.abs(value) >= 1e21) return `${BigInt(value)}${digits > 0 ? `.${'0'.repeat(digits)}` : ''}`;
  const rounded = value.toFixed(digits);
  const exact = value.toFixed(MAX_DIGITS);
  const isHalf = /^50*$/.test(exact.slice(exact.indexOf('.') + 1 + digits));
  if (!isHalf || Number(rounded.at(-1)) % 2 === 0) return rounded;
  // toFixed rounds away from zero; the even neighbour is nearer to zero.
  return (value - Math.sign(value) * 10 ** -(digits + 1)).toFixed(digits);
}

/** With a comma at each thousand, as in English. */
function grouped(text: string): string {
  const [whole = '', ...rest] = text.split('.');
  return [whole.replace(/\d(?=(?:\d{3})+$)/g, '$&,'), ...rest].join('.');
}

const RAISED = '⁰¹²³⁴⁵⁶⁷⁸⁹';

/** With six digits, whatever the precision: upstream takes it for the width. */
function scientific(value: number): string {
  const [mantissa, power = ''] = value.toExponential(DIGITS).split('e');
  const raised = String(Math.abs(Number(power)))
    .padStart(2, '0')
    .replace(/\d/g, (digit) => RAISED[Number(digit)] as string);
  return `${mantissa}×10${Number(power) < 0 ? '⁻' : ''}${raised}`;
}

/** The part of a type of cel-js that is used. */
interface Span {
  readonly seconds: bigint;
  readonly nanos: number;
}

function spanText({ seconds, nanos }: Span): string {
  const all = seconds * 1_000_000_000n + BigInt(nanos);
  const part = String(all < 0n ? -all % 1_000_000_000n : all % 1_000_000_000n)
    .padStart(9, '0')
    .replace(/0+$/, '');
  return `${all < 0n ? '-' : ''}${(all < 0n ? -all : all) / 1_000_000_000n}${part && `.${part}`}s`;
}

const timeText = (value: Date): string =>
  value.toISOString().replace(/(\.\d*?)0+Z$/, (_, part) => `${part === '.' ? '' : part}Z`);

function textOfBytes(bytes: Uint8Array): string {
  try {
    return STRICT_UTF8.decode(bytes);
  } catch {
    throw misformatted('could not convert argument "invalid UTF-8 in bytes, cannot convert to string" to string');
  }
}

/** How a value is written, by its type. */
type Texts = ReadonlyMap<string, (value: never) => string>;
const texts = (of: Readonly<Record<string, (value: never) => string>>): Texts => new Map(Object.entries(of));

function doubleText(value: number): string {
  if (Object.is(value, -0)) return '-0';
  return Number.isFinite(value) ? goNumber(value, true) : special(value, '+Inf', '-Inf');
}

const TEXTS: Texts = texts({
  ...{ string: String, bool: String, int: String, uint: String, null_type: String },
  double: doubleText,
  bytes: textOfBytes,
  'google.protobuf.Timestamp': timeText,
  'google.protobuf.Duration': spanText,
  type: ({ name }: { readonly name: string }) => (name === 'null' ? 'null_type' : name),
  list: (value: readonly unknown[]) => `[${value.map(literal).join(', ')}]`,
  map: mapText,
});

/** `%s`. `refusal`: what is wrong with a value of another type, before its type. */
function textOf(value: unknown, refusal: string = `${REFUSALS.s}, was given `): string {
  const text = TEXTS.get(typeNameOf(value));
  if (text === undefined) throw misformatted(`${refusal}${typeNameOf(value)}`);
  return text(value as never);
}

function mapText(value: object): string {
  const entries = value instanceof Map ? [...value] : Object.entries(value);
  const shown = entries.map(([name, each]) => [literal(name), literal(each)] as const);
  shown.sort(([one], [other]) => (one < other ? -1 : 1));
  return `{${shown.map(([name, each]) => `${name}:${each}`).join(', ')}}`;
}

const LITERALS: Texts = texts({
  string: quoted,
  bytes: (value) => `b${quoted(textOf(value))}`,
  double: (value: number) => (Number.isFinite(value) ? fixed(value, DIGITS) : quoted(special(value, '+Inf', '-Inf'))),
  'google.protobuf.Timestamp': (value) => `timestamp(${quoted(textOf(value))})`,
  'google.protobuf.Duration': (value) => `duration(${quoted(textOf(value))})`,
});

/** A value inside a list or a map, as CEL writes it. */
const literal = (value: unknown): string =>
  LITERALS.get(typeNameOf(value))?.(value as never) ?? textOf(value, 'no formatting function for ');

const HEX_REFUSAL = 'only integers, byte buffers, and strings can be formatted as hex';
const hex = (bytes: Uint8Array): string => Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');

const whole = (value: unknown): bigint | undefined =>
  typeof value === 'bigint' ? value : typeNameOf(value) === 'uint' ? BigInt(String(value)) : undefined;

function hexOf(value: unknown): string {
  if (typeof value === 'string') return hex(utf8.encode(value));
  return value instanceof Uint8Array ? hex(value) : wholeOf(value, 'x', 16);
}

function realOf(value: unknown, sign: string): number {
  if (typeof value === 'number') return value;
  if (value === 'NaN' || value === 'Infinity' || value === '-Infinity') return Number(value);
  throw refused(sign, value);
}

function wholeOf(value: unknown, sign: string, radix: number): string {
  const number = whole(value);
  if (number === undefined) throw refused(sign, value);
  return number.toString(radix);
}

/** The error of a clause for a value of another type. */
export const REFUSALS: Readonly<Record<string, string>> = {
  s: 'string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps',
  d: 'decimal clause can only be used on integers',
  o: 'octal clause can only be used on integers',
  b: 'only integers and bools can be formatted as binary',
  f: 'fixed-point clause can only be used on doubles',
  e: 'scientific clause can only be used on doubles',
  ...{ x: HEX_REFUSAL, X: HEX_REFUSAL },
};

const refused = (sign: string, value: unknown): Error => misformatted(`${REFUSALS[sign]}, was given ${typeNameOf(value)}`);

function realText(value: unknown, sign: string, digits: number): string {
  const number = realOf(value, sign);
  const told = Number.isFinite(number) ? undefined : special(number, '∞', '-∞');
  if (sign === 'e') return (told ?? scientific(number)).padStart(digits);
  // A negative zero is written like any other, except in a list.
  return told ?? grouped(fixed(number + 0, digits));
}

/** What the clauses write, by their signs. */
const CLAUSES: Readonly<Record<string, (value: unknown, sign: string, digits: number) => string>> = {
  s: (value) => textOf(value),
  d: (value, sign) => wholeOf(value, sign, 10),
  o: (value, sign) => wholeOf(value, sign, 8),
  b: (value, sign) => (typeof value === 'boolean' ? String(Number(value)) : wholeOf(value, sign, 2)),
  x: hexOf,
  X: (value) => hexOf(value).toUpperCase(),
};

function digitsOf(given: string): number {
  const why = 'error while parsing precision: ';
  if (given === '') throw unparsed(`${why}error while converting precision to integer: strconv.Atoi: parsing "": invalid syntax`);
  if (Number(given) <= MAX_DIGITS) return Number(given);
  throw unparsed(`${why}precision ${given.slice(0, 20)} exceeds maximum allowed precision ${MAX_DIGITS}`);
}

const unparsed = (why: string): Error => new Error(`could not parse formatting clause: ${why}`);
export const misformatted = (why: string): Error => new Error(`error during formatting: ${why}`);

/** A clause for a value, such as `%.2f`, and the text before it. The text after the last clause has none. */
interface Clause {
  readonly before: string;
  readonly sign: string;
  readonly digits: number;
}

/** The clauses of a text for a number of values. */
export function* clausesOf(text: string, count: number): Generator<Clause, void> {
  let [before, from, next] = ['', 0, 0];
  for (let at = text.indexOf('%'); at >= 0; at = text.indexOf('%', from)) {
    before += text.slice(from, at);
    from = at + 2;
    if (text[at + 1] === '%') {
      before += '%';
      continue;
    }
    if (next >= count) throw new Error(`index ${next} out of range`);
    if (at + 1 >= text.length) throw new Error('unexpected end of string');
    let digits = DIGITS;
    if (text[at + 1] === '.') {
      while (/\d/.test(text[from] ?? '')) from++;
      if (from >= text.length) throw unparsed('error while parsing precision: could not find end of precision specifier');
      digits = digitsOf(text.slice(at + 2, from));
      from++;
    }
    const sign = text[from - 1] as string;
    if (REFUSALS[sign] === undefined) throw unparsed(`unrecognized formatting clause "${sign}"`);
    yield { before, sign, digits };
    before = '';
    next++;
  }
  yield { before: before + text.slice(from), sign: '', digits: 0 };
}

/** A text with its clauses replaced by values. Output costs as much as input. */
export function formatted(text: string, values: readonly unknown[]): string {
  spend(1 + text.length / 8);
  let [made, next] = ['', 0];
  for (const { before, sign, digits } of clausesOf(text, values.length)) {
    made += before;
    if (sign === '') break;
    const value = values[next++];
    spend(1 + costOf(value));
    const shown = (CLAUSES[sign] ?? realText)(value, sign, digits);
    spend(shown.length / 8);
    made += shown;
  }
  return made;
}

const ESCAPES: Readonly<Record<string, string>> = {
  ...{ '\x07': '\\a', '\b': '\\b', '\f': '\\f', '\n': '\\n', '\r': '\\r', '\t': '\\t', '\v': '\\v', '\\': '\\\\', '"': '\\"' },
};

/** A text in quotation marks, on one line. */
export function quotedText(text: string): string {
  spend(1 + text.length / 8);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is escaped.
  return `"${text.replace(/[\x07\b\f\n\r\t\v\\"]/g, (sign) => ESCAPES[sign] as string)}"`;
}
