/** Libraries of rules: sets, lists, versions, named formats, optional values. Upstream: `apiserver/pkg/cel/library`, cel-go's `ext`. */

import { tried } from '../../watch/errors.ts';
import { quoted } from './causes.ts';
import {
  hasFormat,
  label1035Faults,
  labelFaults,
  labelValueFaults,
  qualifiedFaults,
  subdomainFaults,
  unless,
} from './formats.ts';
import { costOf, type Keyed, keyOf, type Optional, spend } from './rule-cost.ts';
import { formatted, quotedText, typeNameOf } from './rule-text.ts';

type List = readonly unknown[];

/** Costs the sum of the lists' sizes, not their product. */
function containsAll(list: List, others: List): boolean {
  const keys = new Set(list.map(keyOf));
  return others.every((each) => keys.has(keyOf(each)));
}

function intersects(list: List, others: List): boolean {
  const keys = new Set(list.map(keyOf));
  return others.some((each) => keys.has(keyOf(each)));
}

function distinct(list: List): List {
  const met = new Set<string>();
  return list.filter((each) => met.size < met.add(keyOf(each)).size);
}

function sliced(list: List, from: bigint, to: bigint): List {
  const what = `cannot slice(${from}, ${to})`;
  if (from < 0n || to < 0n) throw new Error(`${what}, negative indexes not supported`);
  if (from > to) throw new Error(`${what}, start index must be less than or equal to end index`);
  if (to > BigInt(list.length)) throw new Error(`${what}, list is length ${list.length}`);
  return list.slice(Number(from), Number(to));
}

function flat(list: List, depth: bigint): List {
  if (depth < 0n) throw new Error('level must be non-negative');
  spend(list.length / 8);
  return list.flatMap((each) => {
    spend(1);
    return Array.isArray(each) && depth > 0n ? flat(each, depth - 1n) : [each];
  });
}

function range(count: bigint): List {
  if (count < 0n) throw new Error(`lists.range: size must be non-negative, got ${count}`);
  spend(Number(count));
  return Array.from({ length: Number(count) }, (_, at) => BigInt(at));
}

/** Sorts a list by keys; the sort is stable. */
export function sortedBy(list: List, keys: List): List {
  spend((keys.length + costOf(keys)) * Math.ceil(Math.log2(keys.length + 2)));
  const places = keys.map((key, at) => [key as never, at] as const);
  places.sort(([one, at], [other, where]) => (one < other ? -1 : one > other ? 1 : at - where));
  return places.map(([, at]) => list[at]);
}

/** A version of three numbers, as semver.org defines it. */
export class Semver implements Keyed {
  static readonly type: string = 'kubernetes.Semver';
  readonly numbers: readonly bigint[];
  readonly before: readonly (bigint | string)[];

  constructor(numbers: readonly bigint[], before: readonly (bigint | string)[]) {
    this.numbers = numbers;
    this.before = before;
  }

  static of(text: string): Semver {
    spend(1 + text.length / 8);
    if (text === '') throw new Error('Version string empty');
    const [major, minor, ...rest] = text.split('.');
    if (major === undefined || minor === undefined || rest.length === 0) throw new Error('No Major.Minor.Patch elements found');
    const last = rest.join('.');
    const [, patch = '', before, build] = /^([^-+]*)(?:-([^+]*))?(?:\+(.*))?$/s.exec(last) ?? [];
    const numbers = [toNumber('major', major), toNumber('minor', minor), toNumber('patch', patch)];
    const parts = before?.split('.').map(toPart) ?? [];
    for (const part of build?.split('.') ?? []) {
      if (part === '') throw new Error('Build meta data is empty');
      if (!/^[0-9A-Za-z-]*$/.test(part)) throw new Error(`Invalid character(s) found in build meta data ${quoted(part)}`);
    }
    return new Semver(numbers, parts);
  }

  /** One with a `v`, leading zeros, or without its last numbers. */
  static ofLoose(text: string): Semver {
    spend(1 + text.length / 8);
    const [major = '', minor, ...rest] = text.replace(/^v/, '').split('.');
    const parts = [major, ...(minor === undefined ? [] : [minor]), ...(rest.length === 0 ? [] : [rest.join('.')])];
    const trimmed = parts.map((part) => (part.length > 1 ? part.replace(/^0+/, '').replace(/^(?!\d)/, '0') : part));
    if (trimmed.length < 3 && /[+-]/.test(trimmed.at(-1) as string)) {
      throw new Error('short version cannot contain PreRelease/Build meta data');
    }
    while (trimmed.length < 3) trimmed.push('0');
    return Semver.of(trimmed.join('.'));
  }

  get key(): string {
    return `semver${this.numbers.join('.')}-${this.before.map((part) => (typeof part === 'bigint' ? part : `a${part}`)).join('.')}`;
  }

  compare(other: Semver): -1 | 0 | 1 {
    spend(1 + (this.before.length + other.before.length) / 8);
    for (const [at, number] of this.numbers.entries()) {
      const theirs = other.numbers[at] as bigint;
      if (number !== theirs) return number < theirs ? -1 : 1;
    }
    const [mine, theirs] = [this.before, other.before];
    if (mine.length === 0 || theirs.length === 0) return mine.length === theirs.length ? 0 : mine.length === 0 ? 1 : -1;
    for (let at = 0; at < Math.min(mine.length, theirs.length); at++) {
      const [one, two] = [mine[at] as bigint | string, theirs[at] as bigint | string];
      if (one === two) continue;
      if (typeof one !== typeof two) return typeof one === 'bigint' ? -1 : 1;
      return one < two ? -1 : 1;
    }
    return mine.length === theirs.length ? 0 : mine.length < theirs.length ? -1 : 1;
  }
}

const MAX_UINT = 2n ** 64n - 1n;

function uint(text: string): bigint {
  const parsing = `strconv.ParseUint: parsing ${quoted(text)}: `;
  if (text === '') throw new Error(`${parsing}invalid syntax`);
  if (text.length > 20 || BigInt(text) > MAX_UINT) throw new Error(`${parsing}value out of range`);
  return BigInt(text);
}

function toNumber(which: string, text: string): bigint {
  if (!/^\d*$/.test(text)) throw new Error(`Invalid character(s) found in ${which} number ${quoted(text)}`);
  const name = which.charAt(0).toUpperCase() + which.slice(1);
  if (/^0./.test(text)) throw new Error(`${name} number must not contain leading zeroes ${quoted(text)}`);
  return uint(text);
}

function toPart(text: string): bigint | string {
  if (text === '') throw new Error('Prerelease is empty');
  if (/^\d+$/.test(text)) {
    if (/^0./.test(text)) throw new Error(`Numeric PreRelease version must not contain leading zeroes ${quoted(text)}`);
    return uint(text);
  }
  if (!/^[0-9A-Za-z-]+$/.test(text)) throw new Error(`Invalid character(s) found in prerelease ${quoted(text)}`);
  return text;
}

const isSemver = (text: string, isLoose: boolean): boolean => tried(() => toSemver(text, isLoose)) !== undefined;

const toSemver = (text: string, isLoose: boolean): Semver => (isLoose ? Semver.ofLoose(text) : Semver.of(text));

/** A named format, which says what is wrong with a text. */
export class NamedFormat implements Keyed {
  static readonly type: string = 'kubernetes.NamedFormat';
  readonly name: string;
  readonly faults: (text: string) => readonly string[];

  constructor(name: string, faults: (text: string) => readonly string[]) {
    this.name = name;
    this.faults = faults;
  }

  get key(): string {
    return `format ${this.name}`;
  }
}

/** The prefix of a generated name may end with a dash. */
const asPrefix =
  (faults: (text: string) => readonly string[]) =>
  (text: string): readonly string[] =>
    faults(text.length > 1 && text.endsWith('-') ? `${text.slice(0, -2)}a` : text);

const ofSchema =
  (format: string, fault: (text: string) => string) =>
  (text: string): string[] =>
    unless(hasFormat(format, text), fault(text));

const FORMATS: ReadonlyMap<string, NamedFormat> = new Map(
  Object.entries({
    dns1123Label: labelFaults,
    dns1123Subdomain: (text: string) => subdomainFaults(text),
    dns1035Label: label1035Faults,
    qualifiedName: qualifiedFaults,
    dns1123LabelPrefix: asPrefix(labelFaults),
    dns1123SubdomainPrefix: asPrefix(subdomainFaults),
    dns1035LabelPrefix: asPrefix(label1035Faults),
    labelValue: labelValueFaults,
    uri: ofSchema('uri', (text) => (text === '' ? 'parse "": empty url' : `parse ${quoted(text)}: invalid URI for request`)),
    uuid: ofSchema('uuid', () => 'does not match the UUID format'),
    byte: ofSchema('byte', () => 'invalid base64'),
    date: ofSchema('date', () => 'invalid date'),
    datetime: ofSchema('datetime', () => 'invalid datetime'),
  }).map(([name, faults]) => [name, new NamedFormat(name, faults)]),
);

/** Whether a value is the zero of its type. */
function isZero(value: unknown): boolean {
  const type = typeNameOf(value);
  if (type === 'list' || type === 'string' || type === 'bytes') return (value as string).length === 0;
  if (type === 'map') return (value instanceof Map ? value.size : Object.keys(value as object).length) === 0;
  if (type === 'google.protobuf.Duration' || type === 'uint') return Number(value) === 0;
  return value === null || value === false || value === 0n || value === 0;
}

export interface Optionals {
  of(value: unknown): Optional;
  none(): Optional;
}

const present = (list: readonly Optional[]): List => list.filter((each) => each.hasValue()).map((each) => each.value());

/** Types that have an order. */
export const ORDERED: readonly string[] = [
  'int',
  'uint',
  'double',
  'bool',
  'string',
  'bytes',
  'google.protobuf.Duration',
  'google.protobuf.Timestamp',
];

/** The namespaces before the dot of some functions, and their types. */
export const NAMESPACES: Readonly<Record<string, { readonly type: string; readonly value: object }>> = {
  sets: { type: 'kubernetes.Sets', value: new (class Sets {})() },
  lists: { type: 'kubernetes.Lists', value: new (class Lists {})() },
  format: { type: 'kubernetes.Formats', value: new (class Formats {})() },
  strings: { type: 'kubernetes.Strings', value: new (class Strings {})() },
  ip: { type: 'kubernetes.IPs', value: new (class IPs {})() },
};

/** By signature. A function in a namespace gets that as its first argument. */
export function librariesWith(optional: Optionals): Readonly<Record<string, (...args: never[]) => unknown>> {
  const some = (list: List, at: number): Optional => (list.length === 0 ? optional.none() : optional.of(list.at(at)));
  return {
    'kubernetes.Sets.contains(list<A>, list<A>): bool': (_: unknown, one: List, other: List) => containsAll(one, other),
    'kubernetes.Sets.equivalent(list<A>, list<A>): bool': (_: unknown, one: List, other: List) =>
      containsAll(one, other) && containsAll(other, one),
    'kubernetes.Sets.intersects(list<A>, list<A>): bool': (_: unknown, one: List, other: List) => intersects(one, other),
    'kubernetes.Lists.range(int): list<int>': (_: unknown, count: bigint) => range(count),
    'list<A>.slice(int, int): list<A>': sliced,
    'list<A>.distinct(): list<A>': distinct,
    'list<A>.reverse(): list<A>': (list: List) => [...list].reverse(),
    'list<list<A>>.flatten(): list<A>': (list: List) => flat(list, 1n),
    'list<dyn>.flatten(int): list<dyn>': flat,
    'list<O>.sort(): list<O>': (list: List) => sortedBy(list, list),
    'list<A>.first(): optional<A>': (list: List) => some(list, 0),
    'list<A>.last(): optional<A>': (list: List) => some(list, -1),
    'list<optional<A>>.unwrapOpt(): list<A>': present,
    'OptionalNamespace.unwrap(list<optional<A>>): list<A>': (_: unknown, list: readonly Optional[]) => present(list),
    'OptionalNamespace.ofNonZeroValue(A): optional<A>': (_: unknown, value: unknown) =>
      isZero(value) ? optional.none() : optional.of(value),
    'string.format(list<dyn>): string': formatted,
    'kubernetes.Strings.quote(string): string': (_: unknown, text: string) => quotedText(text),
    'isSemver(string): bool': (text: string) => isSemver(text, false),
    'isSemver(string, bool): bool': isSemver,
    'semver(string): kubernetes.Semver': (text: string) => Semver.of(text),
    'semver(string, bool): kubernetes.Semver': toSemver,
    'kubernetes.Semver.major(): int': ({ numbers }: Semver) => numbers[0],
    'kubernetes.Semver.minor(): int': ({ numbers }: Semver) => numbers[1],
    'kubernetes.Semver.patch(): int': ({ numbers }: Semver) => numbers[2],
    'kubernetes.Semver.isLessThan(kubernetes.Semver): bool': (one: Semver, other: Semver) => one.compare(other) < 0,
    'kubernetes.Semver.isGreaterThan(kubernetes.Semver): bool': (one: Semver, other: Semver) => one.compare(other) > 0,
    'kubernetes.Semver.compareTo(kubernetes.Semver): int': (one: Semver, other: Semver) => BigInt(one.compare(other)),
    'kubernetes.Formats.named(string): optional<kubernetes.NamedFormat>': (_: unknown, name: string) => {
      const format = FORMATS.get(name);
      return format === undefined ? optional.none() : optional.of(format);
    },
    ...Object.fromEntries(
      [...FORMATS].map(([name, format]) => [`kubernetes.Formats.${name}(): kubernetes.NamedFormat`, () => format]),
    ),
    'kubernetes.NamedFormat.validate(string): optional<list<string>>': ({ faults }: NamedFormat, text: string) => {
      spend(1 + 4 * costOf(text));
      const found = faults(text);
      return found.length === 0 ? optional.none() : optional.of(found);
    },
  };
}
