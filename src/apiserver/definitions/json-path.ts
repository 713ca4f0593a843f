/**
 * The paths of printer columns and selectable fields: the part of kubectl's JSONPath that finds values. A path is parsed once,
 * and evaluated in a bounded number of steps: otherwise, `..` and filters could take arbitrarily long on a hostile object.
 *
 *     .status.conditions[?(@.type=="Ready")].status     .spec.ports[*].name     .spec['a.b']     .list[-1:]     ..name
 *
 * Upstream: `client-go/util/jsonpath` with `AllowMissingKeys`.
 */
import { isRecord } from '../../watch/errors.ts';

/** A parsed path: finds its values in an object. Throws if it does not fit the object. */
export type JsonPath = (object: unknown) => readonly unknown[];

type Values = readonly unknown[];
type Step = (values: Values, left: Steps) => Values;

/** How many values may still be looked at. */
interface Steps {
  count: number;
}

const MAX_STEPS = 100_000;
const MAX_CHARS = 4_096;

/** Parses a path, as it is written between braces. @throws {SyntaxError} */
export function toJsonPath(text: string): JsonPath {
  if (text.length > MAX_CHARS) throw new SyntaxError(`a path has at most ${MAX_CHARS} characters`);
  const walk = new JsonPathReader(text).all();
  return (object) => walk([object], { count: MAX_STEPS });
}

/** A name, which may be empty. A backslash keeps a character from ending it. */
const NAME = /(?:\\.|[^ \t\r\n.,[\]$@{}])*/sy;
const QUOTED = /"((?:\\.|[^"\\])*)"|'((?:\\.|[^'\\])*)'/sy;
const NUMBER = /[-+]?[0-9.]*/y;
const BRACKETS = /\[([^\]]*)\]/y;
/** Up to the first parenthesis that is not in quotes. */
const FILTER = /\[\?\(((?:[^"')]|"(?:[^"]|(?<=\\)")*(?<!\\)"|'(?:[^']|(?<=\\)')*(?<!\\)')*)\)\]/y;
const COMPARISON = /^([^!<>=]+)([!<>=]+)(.+)$/;
/** The key of a member in brackets, in quotes. */
const DICT_KEY = /^'([^']*)'$|^"([^"]*)"$/;
/** One element, or some: first, last, step. */
const SLICE = /^(-?[0-9]+)$|^(-?[0-9]+)?:(-?[0-9]+)?(?::(-?[0-9]+)?)?$/;

/** Reads the text from left to right. Upstream: `parser.go`. */
class JsonPathReader {
  private readonly text: string;
  private at: number = 0;

  constructor(text: string) {
    this.text = text;
  }

  all(): Step {
    const steps: Step[] = [];
    while (this.at < this.text.length) {
      const step = this.step();
      if (step) steps.push(step);
    }
    return (values, left) => steps.reduce((found, step) => step(found, left), values);
  }

  private step(): Step | undefined {
    const { text, at } = this;
    if (text.startsWith('[?(', at)) return this.filter();
    if (text.startsWith('..', at)) return this.recursive();
    const char = text[at] as string;
    if (' @$'.includes(char)) {
      this.at++;
      return undefined;
    }
    if (char === '[') return this.brackets();
    if (char === '.') {
      this.at++;
      return this.field();
    }
    if (char === '"' || char === "'") return constant(this.quoted());
    if (/[-+0-9]/.test(char)) return constant(this.number());
    return constant(this.word());
  }

  /** What matches from here on: all of it, and its parts. */
  private take(pattern: RegExp, otherwise: string): readonly (string | undefined)[] {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.text);
    if (found === null) throw new SyntaxError(otherwise);
    this.at = pattern.lastIndex;
    return found;
  }

  private recursive(): Step {
    this.at += 2;
    if (this.text.startsWith('..', this.at)) throw new SyntaxError('invalid multiple recursive descent');
    const name = /[\p{L}\p{N}_]/u.test(this.text[this.at] ?? '') ? this.field() : undefined;
    return (values, left) => {
      const found = descend(values, left);
      return name ? name(found, left) : found;
    };
  }

  private field(): Step {
    const [name] = this.take(NAME, '') as [string];
    return name === '*' ? contents : member(unescaped(name));
  }

  private brackets(): Step {
    const [, inner] = this.take(BRACKETS, 'unterminated array') as [string, string];
    const parts = inner.split(',').map((each) => toBracket(each.trim()));
    return (values, left) => parts.flatMap((part) => part(values, left));
  }

  private filter(): Step {
    const [, inner] = this.take(FILTER, 'a filter ends with a parenthesis and a bracket') as [string, string];
    const compared = COMPARISON.exec(inner);
    if (compared === null) return having(new JsonPathReader(inner).all());
    const [, left, operator, right] = compared as unknown as [string, string, string, string];
    return comparing(new JsonPathReader(left).all(), operator, new JsonPathReader(right).all());
  }

  private quoted(): string {
    const [, double, single] = this.take(QUOTED, 'unterminated quoted string');
    return unescaped((double ?? single) as string);
  }

  private number(): number {
    const [digits] = this.take(NUMBER, '') as [string];
    const value = Number(digits);
    if (Number.isNaN(value)) throw new SyntaxError(`cannot parse number ${digits}`);
    return value;
  }

  private word(): boolean {
    const [word] = this.take(NAME, '') as [string];
    if (word !== 'true' && word !== 'false') throw new SyntaxError(`unrecognized identifier ${word}`);
    return word === 'true';
  }
}

const unescaped = (text: string): string => text.replace(/\\(.?)/gs, '$1');

const constant =
  (value: string | number | boolean): Step =>
  (values, left) =>
    spend(values, left).map(() => value);

/** What is in one place within brackets. */
function toBracket(text: string): Step {
  const [, single, double] = DICT_KEY.exec(text) ?? [];
  const key = single ?? double;
  if (key !== undefined) return member(key.replaceAll('\\', ''));
  const slice = SLICE.exec(text === '*' ? ':' : text);
  if (slice === null) throw new SyntaxError(`invalid array index ${text}`);
  const [, only, first = only ?? '0', last, step = '1'] = slice;
  if (Number(step) <= 0) throw new SyntaxError('step must be > 0');
  const isOne = only !== undefined;
  return elements({ first: Number(first), last: last === undefined ? undefined : Number(last), isOne, step: Number(step) });
}

interface Slice {
  readonly first: number;
  readonly last: number | undefined;
  /** Only the first of them. */
  readonly isOne: boolean;
  readonly step: number;
}

function elements({ first, last, isOne, step }: Slice): Step {
  return (values, left) =>
    values.flatMap((value) => {
      if (value === null) return [];
      if (!Array.isArray(value)) throw new TypeError('not an array or slice');
      const { length } = value;
      const placeOf = (at: number): number => (at < 0 ? at + length : at);
      const from = placeOf(first);
      const to = isOne ? from + 1 : placeOf(last ?? length);
      if (from === to) return [];
      if (from < 0 || to > length || to < 0) throw new RangeError('array index out of bounds');
      if (from > to) throw new RangeError(`starting index ${from} is greater than ending index ${to}`);
      return spend(value.slice(from, to), left).filter((_, at) => at % step === 0);
    });
}

function spend(values: Values, left: Steps): Values {
  left.count -= values.length + 1;
  if (left.count < 0) throw new RangeError('the object is too large for this path');
  return values;
}

function member(name: string): Step {
  return (values, left) =>
    spend(values, left).flatMap((value) => (isRecord(value) && Object.hasOwn(value, name) ? [value[name]] : []));
}

/** All members or elements of a value. Members come in the order of their keys; upstream, in any order. */
const contents: Step = (values, left) => spend(values, left).flatMap((value) => spend(inside(value), left));

const inside = (value: unknown): Values => (Array.isArray(value) ? value : isRecord(value) ? Object.values(value) : []);

/** A value that contains others, and all such below it. */
function descend(values: Values, left: Steps): Values {
  const found: unknown[] = [];
  const waiting = [...values].reverse();
  while (waiting.length > 0) {
    const value = waiting.pop();
    const below = spend(inside(value), left);
    if (below.length > 0) found.push(value);
    for (let at = below.length - 1; at >= 0; at--) waiting.push(below[at]);
  }
  return found;
}

function listOf(value: unknown, left: Steps): Values {
  if (!Array.isArray(value)) throw new TypeError('not an array or slice: it cannot be filtered');
  return spend(value, left);
}

const having =
  (path: Step): Step =>
  (values, left) =>
    values.flatMap((value) => listOf(value, left).filter((each) => path([each], left).length > 0));

type Order = (one: string | number, other: string | number) => boolean;

const ORDERS: Readonly<Record<string, Order>> = {
  '<': (one, other) => one < other,
  '<=': (one, other) => one <= other,
  '>': (one, other) => one > other,
  '>=': (one, other) => one >= other,
};

function comparing(one: Step, operator: string, other: Step): Step {
  const holds = (a: unknown, b: unknown): boolean => {
    if (typeof a !== typeof b || typeof a === 'object') throw new TypeError('incompatible types for comparison');
    if (operator === '==') return a === b;
    if (operator === '!=') return a !== b;
    const order = ORDERS[operator];
    if (order === undefined) throw new SyntaxError(`unrecognized filter operator ${operator}`);
    if (typeof a === 'boolean') throw new TypeError('incompatible types for comparison');
    return order(a as string, b as string);
  };
  return (values, left) =>
    values.flatMap((value) =>
      listOf(value, left).filter((each) => {
        const [found, wanted] = [one([each], left), other([each], left)];
        if (found.length > 1 || wanted.length > 1) throw new TypeError('can only compare one element at a time');
        return found.length === 1 && wanted.length === 1 && holds(found[0], wanted[0]);
      }),
    );
}
