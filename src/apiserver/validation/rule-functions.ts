/**
 * What rules may call in addition to CEL's own functions: those of Kubernetes' libraries, and what each call costs. Upstream:
 * `apiserver/pkg/cel/library`.
 */

import { put } from '../../storage/json.ts';
import { getOrMake } from '../../watch/errors.ts';
import { readQuantity } from '../kinds/quantity.ts';
import { hasFormat } from './formats.ts';
import { type Program, programOf, sizeOf } from './patterns.ts';
import { ADDRESS_FUNCTIONS, Cidr, Ip } from './rule-addresses.ts';
import { type Keyed, keyOf, spend } from './rule-cost.ts';
import { librariesWith, NamedFormat, type Optionals, ORDERED, Semver } from './rule-libraries.ts';

/**
 * The patterns of rules, which may come from objects: their cost is charged before they are compiled, and before they are
 * matched. They are cached apart from those of schemas, limited by their total size.
 */

/** The longest pattern, in characters. */
const MAX_PATTERN_CHARS = 4_096;
/** The most instructions of patterns that are kept. */
const MAX_KEPT_SIZE = 262_144;
/** What an instruction costs, in steps: it takes about 2 us to be compiled, and 3 ns or more at each character. */
const COMPILE_COST = 16;
const MATCH_SHIFT = 5;

interface CachedProgram {
  readonly program: Program;
  readonly size: number;
}

/** Those used last are at the end. */
const kept: Map<string, CachedProgram> = new Map();
let keptSize = 0;

function patternOf(source: string): CachedProgram {
  if (source.length > MAX_PATTERN_CHARS) {
    throw new Error(`a pattern of ${source.length} characters: expected at most ${MAX_PATTERN_CHARS}`);
  }
  let pattern = kept.get(source);
  if (pattern === undefined) {
    const size = sizeOf(source);
    spend(size * COMPILE_COST);
    pattern = { program: programOf(source), size };
    keptSize += size;
  }
  kept.delete(source);
  kept.set(source, pattern);
  for (const [oldest, { size }] of kept) {
    if (keptSize <= MAX_KEPT_SIZE) break;
    kept.delete(oldest);
    keptSize -= size;
  }
  return pattern;
}

const costOf = ({ size }: CachedProgram, chars: number): number => 1 + Math.floor((chars * size) / 2 ** MATCH_SHIFT);

/** Whether a pattern matches anywhere in a text. */
function matches(text: string, source: string): boolean {
  const pattern = patternOf(source);
  spend(costOf(pattern, text.length));
  return pattern.program.test(text);
}

/** The parts of a text that a pattern matches, at most `limit`. Each search may have gone to the end. */
function found(source: string, text: string, limit: number): string[] {
  const pattern = patternOf(source);
  const matcher = pattern.program.matcher(text);
  const parts: string[] = [];
  for (let from = 0; parts.length < limit; from = matcher.end()) {
    spend(costOf(pattern, text.length - from));
    if (!matcher.find()) break;
    parts.push(matcher.group() ?? '');
  }
  return parts;
}

type Function = (...args: never[]) => unknown;

/** Compares two values of one type. */
const order = (one: never, other: never): number => (one < other ? -1 : one > other ? 1 : 0);

function most<T>(list: readonly T[], sign: number): T {
  if (list.length === 0) throw new Error(`${sign > 0 ? 'max' : 'min'} called on empty list`);
  return list.reduce((best, each) => (order(each as never, best as never) * sign > 0 ? each : best));
}

/** A type of cel-js. */
interface Duration {
  addDuration(other: Duration): Duration;
}

function sum(list: readonly (bigint | number | Duration)[]): bigint | number | Duration {
  const [first, ...rest] = list;
  if (typeof first === 'object') return rest.reduce((all: Duration, each) => all.addDuration(each as Duration), first);
  if (list.some((each) => typeof each === 'number')) return list.reduce((all: number, each) => all + Number(each), 0);
  return list.reduce((all: bigint, each) => all + BigInt(each as bigint), 0n);
}

/** Both may make large results from small arguments: the result is charged before it is made. */
function joined(list: readonly unknown[], separator: string): string {
  let chars = separator.length * list.length;
  for (const each of list) {
    if (typeof each !== 'string') throw new Error('string.join(): list must contain only strings');
    chars += each.length;
  }
  spend(chars / 32);
  return list.join(separator);
}

function replaced(text: string, from: string, to: string, most: bigint = -1n): string {
  const all = from === '' ? ['', ...text, ''] : text.split(from);
  const parts =
    most < 0n || most >= BigInt(all.length) ? all : [...all.slice(0, Number(most)), all.slice(Number(most)).join(from)];
  spend((text.length + parts.length * to.length) / 32);
  return parts.join(to);
}

const SPACE = /[\t-\r \u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]/;

/** Without what Go takes for space. */
function trimmed(text: string): string {
  let [from, to] = [0, text.length];
  while (from < to && SPACE.test(text.charAt(from))) from++;
  while (to > from && SPACE.test(text.charAt(to - 1))) to--;
  return text.slice(from, to);
}

/** A quantity, such as `1.5Gi`, as a whole number of billionths. `isWhole`: it was written as a whole number, of up to 64 bits. */
class Quantity implements Keyed {
  static readonly type: string = 'kubernetes.Quantity';
  readonly nanos: bigint;
  readonly isWhole: boolean;

  constructor(nanos: bigint, isWhole: boolean) {
    this.nanos = nanos;
    this.isWhole = isWhole && BigInt.asIntN(64, nanos / NANOS) === nanos / NANOS;
  }

  get key(): string {
    return `quantity ${this.nanos}`;
  }

  plus(other: Quantity | bigint, sign: bigint = 1n): Quantity {
    const { nanos, isWhole } = other instanceof Quantity ? other : { nanos: other * NANOS, isWhole: true };
    return new Quantity(this.nanos + sign * nanos, this.isWhole && isWhole);
  }
}

const NANOS = 1_000_000_000n;
/** Longer than any that is meant. */
const HUGE = /\d{41}|[eE][+-]?\d{3}/;

function parsedQuantity(text: string): Quantity | undefined {
  const read = HUGE.test(text) ? undefined : readQuantity(text);
  if (read === undefined || (!read.isNumber && !text.includes('.'))) return undefined;
  const { sign, power, hasFraction, isShort } = read;
  const [digits, scale] = [BigInt(read.digits) * 2n ** BigInt(power), 9 + read.scale];
  const parts = 10n ** BigInt(-Math.min(scale, 0));
  // Less than a billionth counts as one.
  const nanos = scale >= 0 ? digits * 10n ** BigInt(scale) : (digits + parts - 1n) / parts;
  // What upstream keeps as a decimal is never an integer.
  return new Quantity(sign === '-' ? -nanos : nanos, isShort && (power === 0 ? read.scale >= 0 : !hasFraction));
}

function quantity(text: string): Quantity {
  const made = parsedQuantity(text);
  if (made === undefined)
    throw new Error("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'");
  return made;
}

/** A parsed URL. Upstream: Go's `url.Parse`, once `url.ParseRequestURI` has taken the text. */
class Url implements Keyed {
  static readonly type: string = 'kubernetes.URL';
  readonly scheme: string;
  /** With its port. */
  readonly host: string;
  readonly path: string;
  readonly query: string;
  readonly key: string;

  constructor(text: string) {
    const [, scheme = '', rest = '', query, fragment] =
      /^(?:([a-zA-Z][a-zA-Z0-9+.-]*):)?([^?#]*)(?:\?([^#]*))?(#.*)?$/s.exec(text) ?? [];
    const hasHost = rest.startsWith('//') && (scheme !== '' || !rest.startsWith('///'));
    if (!hasFormat('uri', text) || (hasHost && !hasFormat('uri', `${scheme || 'x'}:${rest}`)))
      throw new Error(`URL parse error during conversion from string: parse ${JSON.stringify(text)}: invalid URI for request`);
    const [, authority = '', path = ''] = hasHost ? (/^\/\/([^/]*)(.*)$/s.exec(rest) ?? []) : ['', '', rest];
    this.scheme = scheme.toLowerCase();
    this.host = unescaped(authority.slice(authority.lastIndexOf('@') + 1));
    this.path = scheme === '' || rest.startsWith('/') ? escapedPath(path) : '';
    this.query = query ?? '';
    this.key = `url ${JSON.stringify([this.scheme, authority, this.path || path, query, fragment])}`;
  }
}

const utf8 = [new TextEncoder(), new TextDecoder()] as const;

const unescaped = (text: string): string =>
  text.replace(/(?:%[0-9a-fA-F]{2})+/g, (all) =>
    utf8[1].decode(Uint8Array.from(all.slice(1).split('%'), (digits) => Number.parseInt(digits, 16))),
  );

/** A path as it is, if it may be in a URL, and otherwise with other escapes. */
const escapedPath = (path: string): string =>
  /^[\w.~!$&'()*+,;=:@[\]%/-]*$/.test(path)
    ? path
    : unescaped(path).replace(/[^\w.~$&+,/:;=@-]+/g, (all) =>
        Array.from(utf8[0].encode(all), (byte) => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`).join(''),
      );

/** Parts that have no right form are left out. A URL may be asked many times, so each time costs its query. */
function queryOf({ query }: Url): object {
  spend(1 + query.length / 4);
  const values = new Map<string, string[]>();
  for (const part of query.split('&')) {
    if (part === '' || /;|%(?![0-9a-fA-F]{2})/.test(part)) continue;
    const [name = '', ...rest] = part.replaceAll('+', ' ').split('=');
    getOrMake(values, unescaped(name), (): string[] => []).push(unescaped(rest.join('=')));
  }
  const made: Record<string, string[]> = {};
  for (const [name, list] of values) put(made, name, list);
  return made;
}

/** The index of a value in a list, by CEL's equality; -1 if it is not there. */
function indexIn(list: readonly unknown[], value: unknown, isLast: boolean): bigint {
  const key = keyOf(value);
  const is = (each: unknown): boolean => keyOf(each) === key;
  return BigInt(isLast ? list.findLastIndex(is) : list.findIndex(is));
}

/** By signature. */
const FUNCTIONS: Readonly<Record<string, Function>> = {
  'string.matchesRe2(string): bool': matches,
  'matches(string, string): bool': matches,
  'list<string>.joinMetered(): string': (list: readonly unknown[]) => joined(list, ''),
  'list<string>.joinMetered(string): string': joined,
  'string.find(string): string': (text: string, pattern: string) => found(pattern, text, 1)[0] ?? '',
  'string.findAll(string): list<string>': (text: string, pattern: string) => found(pattern, text, text.length + 1),
  'string.findAll(string, int): list<string>': (text: string, pattern: string, limit: bigint) =>
    found(pattern, text, limit < 0n ? text.length + 1 : Number(limit)),
  'string.charAt(int): string': (text: string, at: bigint) => {
    const chars = Array.from(text);
    if (at < 0n || at > BigInt(chars.length)) throw new Error(`index out of range: ${at}`);
    return chars[Number(at)] ?? '';
  },
  'string.trimSpace(): string': trimmed,
  'string.toLowerAscii(): string': (text: string) => text.replace(/[A-Z]+/g, (part) => part.toLowerCase()),
  'string.toUpperAscii(): string': (text: string) => text.replace(/[a-z]+/g, (part) => part.toUpperCase()),
  'string.replace(string, string): string': replaced,
  'string.replace(string, string, int): string': replaced,
  'list.isSorted(): bool': (list: readonly never[]) =>
    list.every((each, at) => at === 0 || order(list[at - 1] as never, each) <= 0),
  'list<N>.sum(): N': sum,
  'list<O>.min(): O': (list: readonly never[]) => most(list, -1),
  'list<O>.max(): O': (list: readonly never[]) => most(list, 1),
  'list<A>.indexOf(A): int': (list: readonly unknown[], value: unknown) => indexIn(list, value, false),
  'list<A>.lastIndexOf(A): int': (list: readonly unknown[], value: unknown) => indexIn(list, value, true),
  'isURL(string): bool': (text: string) => hasFormat('uri', text),
  'url(string): kubernetes.URL': (text: string) => new Url(text),
  'kubernetes.URL.getScheme(): string': ({ scheme }: Url) => scheme,
  'kubernetes.URL.getHost(): string': ({ host }: Url) => host,
  'kubernetes.URL.getHostname(): string': ({ host }: Url) => host.replace(/:\d*$/, '').replace(/^\[(.*)\]$/s, '$1'),
  'kubernetes.URL.getPort(): string': ({ host }: Url) => /:(\d*)$/.exec(host)?.[1] ?? '',
  'kubernetes.URL.getEscapedPath(): string': ({ path }: Url) => path,
  'kubernetes.URL.getQuery(): map<string, list<string>>': queryOf,
  'isQuantity(string): bool': (text: string) => parsedQuantity(text) !== undefined,
  'quantity(string): kubernetes.Quantity': (text: string) => quantity(text),
  'kubernetes.Quantity.isGreaterThan(kubernetes.Quantity): bool': (one: Quantity, other: Quantity) => one.nanos > other.nanos,
  'kubernetes.Quantity.isLessThan(kubernetes.Quantity): bool': (one: Quantity, other: Quantity) => one.nanos < other.nanos,
  'kubernetes.Quantity.compareTo(kubernetes.Quantity): int': (one: Quantity, other: Quantity) =>
    BigInt(order(one.nanos as never, other.nanos as never)),
  'sign(kubernetes.Quantity): int': ({ nanos }: Quantity) => BigInt(order(nanos as never, 0n as never)),
  'kubernetes.Quantity.isInteger(): bool': ({ isWhole }: Quantity) => isWhole,
  'kubernetes.Quantity.asInteger(): int': ({ nanos, isWhole }: Quantity) => {
    if (!isWhole) throw new Error('cannot convert value to integer');
    return nanos / NANOS;
  },
  'kubernetes.Quantity.asApproximateFloat(): double': ({ nanos }: Quantity) => Number(nanos) / 1e9,
  'kubernetes.Quantity.add(kubernetes.Quantity): kubernetes.Quantity': (one: Quantity, other: Quantity) => one.plus(other),
  'kubernetes.Quantity.add(int): kubernetes.Quantity': (one: Quantity, other: bigint) => one.plus(other),
  'kubernetes.Quantity.sub(kubernetes.Quantity): kubernetes.Quantity': (one: Quantity, other: Quantity) => one.plus(other, -1n),
  'kubernetes.Quantity.sub(int): kubernetes.Quantity': (one: Quantity, other: bigint) => one.plus(other, -1n),
};

/** Types for letters in signatures: types that have sums, and types that have an order. `A` is any type. */
const LETTERS: Readonly<Record<string, readonly string[]>> = { N: ['int', 'double', 'google.protobuf.Duration'], O: ORDERED };

/**
 * All, by signature. For a list of anything, cel-js would take the first of several signatures that fit. So what is run has one,
 * and the arguments of a rule have been checked before, with each type in the place of a letter.
 */
export function functionsWith(optional: Optionals, isChecked: boolean): Map<string, Function> {
  const made = new Map<string, Function>();
  for (const [signature, each] of Object.entries({ ...FUNCTIONS, ...ADDRESS_FUNCTIONS, ...librariesWith(optional) })) {
    const [letter = 'A'] = /\b[ANO]\b/.exec(signature) ?? [];
    const types = isChecked ? (LETTERS[letter] ?? ['A']) : ['dyn'];
    for (const type of types) made.set(signature.replace(/\b[ANO]\b/g, type), each);
  }
  return made;
}

/** Their types: values are equal if their keys are. */
export const VALUE_TYPES: Readonly<Record<string, abstract new (...args: never[]) => Keyed>> = Object.fromEntries(
  [Url, Quantity, Semver, NamedFormat, Ip, Cidr].map((each) => [each.type, each]),
);
