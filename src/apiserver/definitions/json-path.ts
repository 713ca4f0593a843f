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
const MAX_DEPTH = 8;

/** Parses a path, as it is written between braces. @throws {SyntaxError} */
export function toJsonPath(text: string): JsonPath {
  if (text.length > MAX_CHARS) throw new SyntaxError(`a path has at most ${MAX_CHARS} characters`);
  const walk = new JsonPathReader(text, 0).all();
  return (object) => walk([object], { count: MAX_STEPS });
}

/** Ends a name. */
const TERMINATORS = ' \t\r\n.,[]$@{}';
/** The key of a member in brackets, in quotes. */
const DICT_KEY = /^'([^']*)'$|^"([^"]*)"$/;
const SLICE = /^(-?[0-9]*)(:-?[0-9]*)?(:-?[0-9]*)?$/;
const COMPARISON = /^([^!<>=]+)([!<>=]+)(.+)$/;

/** Reads the text from left to right. Upstream: `parser.go`. */
class JsonPathReader {
  private readonly text: string;
  private readonly depth: number;
  private at: number = 0;

  constructor(text: string, depth: number) {
    if (depth > MAX_DEPTH) throw new SyntaxError('filters within filters');
    this.text = text;
    this.depth = depth;
  }

  all(): Step {
    const steps: Step[] = [];
    let wasRecursive = false;
    while (this.at < this.text.length) {
      const isRecursive = this.text.startsWith('..', this.at);
      if (isRecursive && wasRecursive) throw new SyntaxError('invalid multiple recursive descent');
      const step = this.step();
      if (step) steps.push(step);
      wasRecursive = isRecursive && this.text[this.at] === '.';
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
    if (/[\p{L}_]/u.test(char)) return constant(this.word());
    throw new SyntaxError(`unrecognized character in action: ${JSON.stringify(char)}`);
  }

  private recursive(): Step {
    this.at += 2;
    const name = /[\p{L}\p{N}_]/u.test(this.text[this.at] ?? '') ? this.field() : undefined;
    return (values, left) => {
      const found = descend(values, left);
      return name ? name(found, left) : found;
    };
  }

  private field(): Step {
    let name = '';
    for (; this.at < this.text.length && !TERMINATORS.includes(this.text[this.at] as string); this.at++) {
      if (this.text[this.at] === '\\') this.at++;
      name += this.text[this.at] ?? '';
    }
    return name === '*' ? contents : member(name);
  }

  private brackets(): Step {
    const end = this.text.indexOf(']', this.at);
    if (end < 0) throw new SyntaxError('unterminated array');
    const inner = this.text.slice(this.at + 1, end);
    this.at = end + 1;
    const parts = inner.split(',').map((each) => toBracket(each.trim()));
    const [only] = parts;
    return parts.length === 1 && only ? only : (values, left) => parts.flatMap((part) => part(values, left));
  }

  private filter(): Step {
    const start = this.at + 3;
    let quote = '';
    let end = start;
    for (; end < this.text.length; end++) {
      const char = this.text[end] as string;
      if (quote === '' && char === ')') break;
      if (quote === '' && (char === '"' || char === "'")) quote = char;
      else if (char === quote && this.text[end - 1] !== '\\') quote = '';
    }
    if (end >= this.text.length) throw new SyntaxError('unterminated filter');
    if (this.text[end + 1] !== ']') throw new SyntaxError('a filter ends with a parenthesis and a bracket');
    this.at = end + 2;
    const inner = this.text.slice(start, end);
    const [, left, operator, right] = COMPARISON.exec(inner) ?? [];
    if (left === undefined || operator === undefined || right === undefined) return having(this.inner(inner));
    return comparing(this.inner(left), operator, this.inner(right));
  }

  private inner(text: string): Step {
    return new JsonPathReader(text, this.depth + 1).all();
  }

  private quoted(): string {
    const quote = this.text[this.at];
    let value = '';
    for (this.at++; this.text[this.at] !== quote; this.at++) {
      if (this.at >= this.text.length) throw new SyntaxError('unterminated quoted string');
      if (this.text[this.at] === '\\') this.at++;
      value += this.text[this.at] ?? '';
    }
    this.at++;
    return value;
  }

  private number(): number {
    const [digits = ''] = /^[-+]?[0-9.]*/.exec(this.text.slice(this.at)) ?? [];
    this.at += digits.length;
    const value = Number(digits);
    if (digits === '' || Number.isNaN(value)) throw new SyntaxError(`cannot parse number ${digits}`);
    return value;
  }

  private word(): boolean {
    const from = this.at;
    while (this.at < this.text.length && !TERMINATORS.includes(this.text[this.at] as string)) this.at++;
    const word = this.text.slice(from, this.at);
    if (word !== 'true' && word !== 'false') throw new SyntaxError(`unrecognized identifier ${word}`);
    return word === 'true';
  }
}

const constant =
  (value: string | number | boolean): Step =>
  (values, left) =>
    spend(values, left).map(() => value);

/** What is in one place within brackets. */
function toBracket(text: string): Step {
  const [, single, double] = DICT_KEY.exec(text) ?? [];
  const key = single ?? double;
  if (key !== undefined) return member(key.replaceAll('\\', ''));
  const [whole, from = '', to, by] = SLICE.exec(text === '*' ? ':' : text) ?? [];
  if (whole === undefined) throw new SyntaxError(`invalid array index ${text}`);
  const numberIn = (part: string | undefined): number | undefined =>
    part === undefined || part === '' ? undefined : Number(part);
  const [first, last, step] = [numberIn(from), numberIn(to?.slice(1)), numberIn(by?.slice(1)) ?? 1];
  if (first === undefined && to === undefined) throw new SyntaxError(`invalid array index ${text}`);
  if (step <= 0) throw new SyntaxError('step must be > 0');
  return elements({ first: first ?? 0, last, isOne: to === undefined, step });
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
    values.filter(isSome).flatMap((value) => {
      if (!Array.isArray(value)) throw new TypeError('not an array or slice');
      const { length } = value;
      const from = first < 0 ? first + length : first;
      const end = last ?? (isOne ? first + 1 : length);
      const to = end < 0 || (isOne && end === 0) ? end + length : end;
      if (from === to) return [];
      if (from >= length || from < 0 || to > length || to < 0) throw new RangeError('array index out of bounds');
      if (from > to) throw new RangeError(`starting index ${from} is greater than ending index ${to}`);
      return spend(value.slice(from, to), left).filter((_, at) => at % step === 0);
    });
}

const isSome = (value: unknown): boolean => value !== null && value !== undefined;

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
