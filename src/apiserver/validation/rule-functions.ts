/**
 * What rules may call beyond CEL itself: the functions of Kubernetes' own libraries, and what each call costs. Upstream:
 * `apiserver/pkg/cel/library`.
 */
import { hasFormat } from './formats.ts';
import { type Program, programOf } from './patterns.ts';

/** What the running expression may still cost, and the error of one that costs more: one for all, as loops meet it often. */
export const meter: { left: number } = { left: 0 };
export const OVER: Error = new Error('operation cancelled: actual cost limit exceeded');

/** Takes steps from what is left. Whatever may be long calls it first, with what it is going to cost. */
export function spend(cost: number): void {
  meter.left -= cost;
  if (meter.left < 0) throw OVER;
}

/**
 * The patterns of rules, which objects may bring: they cost what they are going to take, before they are compiled and before they are
 * matched. They are kept apart from those of schemas, by their size.
 */

/** The longest pattern, in characters. */
const MAX_PATTERN_CHARS = 4_096;
/** The most instructions of patterns that are kept. */
const MAX_KEPT_SIZE = 262_144;
/** What an instruction costs, in steps: it takes about 2 us to be compiled, and 3 ns or more at each character. */
const COMPILE_COST = 16;
const MATCH_SHIFT = 5;

interface Kept {
  readonly program: Program;
  readonly size: number;
}

/** Those used last are at the end. */
const kept: Map<string, Kept> = new Map();
let keptSize = 0;

/** About how many instructions a pattern has: repetitions are written out. Linear in its length. */
function sizeOf(source: string): number {
  const outer: number[] = [];
  let [total, last] = [0, 0];
  for (const [token] of source.matchAll(/\\[pP]\{?|\\[\s\S]|\{\d{1,4}(?:,\d{0,4})?\}|[\s\S]/g)) {
    if (token === '(') {
      outer.push(total);
      total = 0;
    } else if (token === ')') {
      last = total + 2;
      total = last + (outer.pop() ?? 0);
    } else if (token.length > 2 && token.startsWith('{')) {
      const times = Math.max(...token.slice(1, -1).split(',').map(Number), 1) - 1;
      total += last * times;
      last += last * times;
    } else {
      // Classes of Unicode are long tables.
      last = /^\\[pP]/.test(token) ? 64 : 1;
      total += last;
    }
  }
  return total + outer.reduce((sum, each) => sum + each, 1);
}

function patternOf(source: string): Kept {
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

const costOf = ({ size }: Kept, chars: number): number => 1 + Math.floor((chars * size) / 2 ** MATCH_SHIFT);

/** Whether a pattern matches anywhere in a text. */
function matches(text: string, source: string): boolean {
  const pattern = patternOf(source);
  spend(costOf(pattern, text.length));
  return pattern.program.test(text);
}

/** The parts of a text that a pattern matches, at most so many. Each may have been looked for up to the end. */
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

function sum(list: readonly (bigint | number)[]): bigint | number {
  if (list.some((each) => typeof each === 'number')) return list.reduce((all: number, each) => all + Number(each), 0);
  return list.reduce((all: bigint, each) => all + BigInt(each), 0n);
}

/** Both may make much of little: what they make costs before it is made. */
function joined(list: readonly unknown[], separator: string): string {
  let chars = separator.length * list.length;
  for (const each of list) {
    if (typeof each !== 'string') throw new Error('string.join(): list must contain only strings');
    chars += each.length;
  }
  spend(chars / 32);
  return list.join(separator);
}

function replaced(text: string, from: string, to: string): string {
  const parts = text.split(from);
  spend((text.length + parts.length * to.length) / 32);
  return text.replaceAll(from, () => to);
}

/** A quantity, such as `1.5Gi`, as a whole number of billionths. */
class Quantity {
  readonly nanos: bigint;

  constructor(nanos: bigint) {
    this.nanos = nanos;
  }
}

const QUANTITY = /^([+-]?)(\d{0,40})(?:\.(\d{0,40}))?(n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|[eE][+-]?\d{1,2})?$/;
const DECIMAL = ['n', 'u', 'm', '', 'k', 'M', 'G', 'T', 'P', 'E'];
const BINARY = ['Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'Ei'];

function parsedQuantity(text: string): Quantity | undefined {
  const [, sign = '', whole = '', part = '', suffix = ''] = QUANTITY.exec(text) ?? [undefined, '', '', '', 'x'];
  if (suffix === 'x' || whole + part === '') return undefined;
  const digits = BigInt(whole + part);
  const at = DECIMAL.indexOf(suffix);
  const power = /^[eE]/.test(suffix) && suffix.length > 1 ? Number(suffix.slice(1)) : at >= 0 ? (at - 3) * 3 : 0;
  const scale = 9 + power - part.length;
  const times = BINARY.includes(suffix) ? 1024n ** BigInt(BINARY.indexOf(suffix) + 1) : 1n;
  const nanos = scale >= 0 ? digits * times * 10n ** BigInt(scale) : (digits * times) / 10n ** BigInt(-scale);
  return new Quantity(sign === '-' ? -nanos : nanos);
}

function quantity(text: string): Quantity {
  const made = parsedQuantity(text);
  if (made === undefined)
    throw new Error("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'");
  return made;
}

const nanosOf = (value: Quantity | bigint): bigint => (value instanceof Quantity ? value.nanos : value * NANOS);
const NANOS = 1_000_000_000n;

/** A parsed URL. */
class Url {
  readonly url: URL;

  constructor(text: string) {
    if (!hasFormat('uri', text))
      throw new Error(`URL parse error during conversion from string: parse ${JSON.stringify(text)}: invalid URI for request`);
    this.url = new URL(text, 'relative://');
  }
}

const isUrl = (text: string): boolean => {
  try {
    return new Url(text) !== undefined;
  } catch {
    return false;
  }
};

/** An address, as numbers. */
class Ip {
  readonly text: string;
  readonly family: number;

  constructor(text: string) {
    const isFour = hasFormat('ipv4', text) && !text.includes(':') && !/(^|\.)0\d/.test(text);
    if (!isFour && !hasFormat('ipv6', text))
      throw new Error(`IP Address ${JSON.stringify(text)} parse error during conversion from string`);
    this.text = text;
    this.family = isFour ? 4 : 6;
  }
}

const isIp = (text: string): boolean => {
  try {
    return new Ip(text).text === text;
  } catch {
    return false;
  }
};

/** What has an order. One signature each: of a list of anything, cel-js would not know the type of an item. */
const ORDERED = ['int', 'uint', 'double', 'bool', 'string', 'google.protobuf.Duration', 'google.protobuf.Timestamp'] as const;

/** By signature. */
export const FUNCTIONS: Readonly<Record<string, Function>> = {
  'string.matchesRe2(string): bool': matches,
  'list<string>.joinMetered(): string': (list: readonly unknown[]) => joined(list, ''),
  'list<string>.joinMetered(string): string': joined,
  'string.find(string): string': (text: string, pattern: string) => found(pattern, text, 1)[0] ?? '',
  'string.findAll(string): list<string>': (text: string, pattern: string) => found(pattern, text, text.length + 1),
  'string.findAll(string, int): list<string>': (text: string, pattern: string, limit: bigint) =>
    found(pattern, text, limit < 0n ? text.length + 1 : Number(limit)),
  'string.charAt(int): string': (text: string, at: bigint) => Array.from(text)[Number(at)] ?? '',
  'string.replace(string, string): string': replaced,
  'list.isSorted(): bool': (list: readonly never[]) =>
    list.every((each, at) => at === 0 || order(list[at - 1] as never, each) <= 0),
  'list<int>.sum(): int': sum,
  'list<double>.sum(): double': sum,
  ...Object.fromEntries(ORDERED.map((type) => [`list<${type}>.min(): ${type}`, (list: readonly never[]) => most(list, -1)])),
  ...Object.fromEntries(ORDERED.map((type) => [`list<${type}>.max(): ${type}`, (list: readonly never[]) => most(list, 1)])),
  'list<A>.indexOf(A): int': (list: readonly unknown[], value: unknown) => BigInt(list.indexOf(value)),
  'list<A>.lastIndexOf(A): int': (list: readonly unknown[], value: unknown) => BigInt(list.lastIndexOf(value)),
  'isURL(string): bool': (text: string) => isUrl(text),
  'url(string): kubernetes.URL': (text: string) => new Url(text),
  'kubernetes.URL.getScheme(): string': ({ url }: Url) => (url.protocol === 'relative:' ? '' : url.protocol.slice(0, -1)),
  'kubernetes.URL.getHost(): string': ({ url }: Url) => url.host,
  'kubernetes.URL.getHostname(): string': ({ url }: Url) => url.hostname.replace(/^\[|\]$/g, ''),
  'kubernetes.URL.getPort(): string': ({ url }: Url) => url.port,
  'kubernetes.URL.getEscapedPath(): string': ({ url }: Url) => url.pathname,
  'isIP(string): bool': (text: string) => isIp(text),
  'ip(string): net.IP': (text: string) => new Ip(text),
  'net.IP.family(): int': ({ family }: Ip) => BigInt(family),
  'isCIDR(string): bool': (text: string) => hasFormat('cidr', text),
  'isQuantity(string): bool': (text: string) => parsedQuantity(text) !== undefined,
  'quantity(string): kubernetes.Quantity': (text: string) => quantity(text),
  'kubernetes.Quantity.isGreaterThan(kubernetes.Quantity): bool': (one: Quantity, other: Quantity) => one.nanos > other.nanos,
  'kubernetes.Quantity.isLessThan(kubernetes.Quantity): bool': (one: Quantity, other: Quantity) => one.nanos < other.nanos,
  'kubernetes.Quantity.compareTo(kubernetes.Quantity): int': (one: Quantity, other: Quantity) =>
    BigInt(order(one.nanos as never, other.nanos as never)),
  'kubernetes.Quantity.sign(): int': ({ nanos }: Quantity) => BigInt(order(nanos as never, 0n as never)),
  'kubernetes.Quantity.isInteger(): bool': ({ nanos }: Quantity) => nanos % NANOS === 0n,
  'kubernetes.Quantity.asInteger(): int': ({ nanos }: Quantity) => nanos / NANOS,
  'kubernetes.Quantity.asApproximateFloat(): double': ({ nanos }: Quantity) => Number(nanos) / 1e9,
  'kubernetes.Quantity.add(kubernetes.Quantity): kubernetes.Quantity': (one: Quantity, other: Quantity) =>
    new Quantity(one.nanos + nanosOf(other)),
  'kubernetes.Quantity.sub(kubernetes.Quantity): kubernetes.Quantity': (one: Quantity, other: Quantity) =>
    new Quantity(one.nanos - nanosOf(other)),
};

/** Their types. */
export const TYPES: Readonly<Record<string, object>> = { 'kubernetes.URL': Url, 'net.IP': Ip, 'kubernetes.Quantity': Quantity };
