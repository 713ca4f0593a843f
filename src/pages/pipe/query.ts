/**
 * The filter: terms with spaces between them, all of which must match.
 *
 *     word            anywhere in the object or its type, ignoring case; "several words" in quotes
 *     field=value     equal; != is the opposite
 *     field~text      contains, ignoring case; !~ is the opposite
 *     field>=value    compares numbers, times such as 2026-01-31, and levels; also >, <= and <
 *
 * `level` is the level that was recognized, `type` the event's type, `no` its number; `object.level` is the field. A line of text is
 * its own `msg`. A missing field equals nothing, and contains nothing.
 */
import { fieldText, isName, LEVELS, type Level, rankOf, toLevel } from './fields.ts';

/** What a filter looks at. */
export interface Searched {
  readonly type: string;
  /** Its sequence in the stream; undefined if it has none. */
  readonly place: number | undefined;
  /** The object, as one line of text. */
  readonly text: string;
  /** The object, or its text parsed as JSON. */
  readonly value: unknown;
  readonly level: Level | undefined;
}

/** How a field is compared; longer ones first. */
const OPERATORS = ['>=', '<=', '!=', '!~', '=', '~', '>', '<'] as const;
type QueryOperator = (typeof OPERATORS)[number];

/** A part of a filter: a text anywhere, or a comparison of a field. */
export type Term =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'field'; readonly field: string; readonly operator: QueryOperator; readonly value: string };

/** A filter, or what is wrong with it. */
type Query = { readonly terms: readonly Term[]; readonly fault?: never } | { readonly fault: string; readonly terms?: never };

export const MAX_QUERY_CHARS = 500;

/** Reads a filter. */
export function toQuery(text: string): Query {
  const terms: Term[] = [];
  const source = text.slice(0, MAX_QUERY_CHARS);
  for (let at = 0; at < source.length; ) {
    if (isSpace(source[at] as string)) {
      at++;
      continue;
    }
    const read = readTerm(source, at);
    if (typeof read === 'string') return { fault: read };
    const fault = faultOf(read.term);
    if (fault !== undefined) return { fault };
    terms.push(read.term);
    at = read.end;
  }
  return { terms };
}

const isSpace = (character: string): boolean => /\s/.test(character);

/** Reads the term at a position. Returns a fault as text. */
function readTerm(source: string, at: number): { readonly term: Term; readonly end: number } | string {
  let end = at;
  while (end < source.length && /[\w.$@/-]/.test(source[end] as string)) end++;
  const field = source.slice(at, end);
  const operator = OPERATORS.find((one) => source.startsWith(one, end));
  if (operator !== undefined && (field === '' || isName(field))) {
    const from = end + operator.length;
    if (field === '')
      return `expected a field right before ${operator}, as in level>=warn; to search for this text, put it in quotes`;
    const value = readText(source, from);
    if (value === undefined) return 'expected a quotation mark at the end';
    if (value.end === from) return `expected a value right after ${field}${operator}; "" is the empty one`;
    return { term: { kind: 'field', field, operator, value: value.text }, end: value.end };
  }
  const word = readText(source, at);
  if (word === undefined) return 'expected a quotation mark at the end';
  return { term: { kind: 'text', text: word.text.toLowerCase() }, end: word.end };
}

/** Reads a text in quotes, in which a backslash quotes the next character, or a text up to the next space. */
function readText(source: string, at: number): { readonly text: string; readonly end: number } | undefined {
  let end = at;
  if (source[at] !== '"') {
    while (end < source.length && !isSpace(source[end] as string)) end++;
    return { text: source.slice(at, end), end };
  }
  let text = '';
  for (end++; end < source.length; end++) {
    if (source[end] === '"') return { text, end: end + 1 };
    if (source[end] === '\\') end++;
    text += source[end] ?? '';
  }
  return undefined;
}

const isOrder = (operator: QueryOperator): boolean => /[<>]/.test(operator);

/** A number, or the beginning of a time. */
const ORDERED = /^(?:[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|\d{4}-\d\d[\dT:.Z+-]*)$/;

function faultOf(term: Term): string | undefined {
  if (term.kind === 'text') return undefined;
  const { field, operator, value } = term;
  if (field === 'level') {
    if (operator.endsWith('~')) return 'expected =, !=, >, >=, < or <= after level';
    if (toLevel(value) === undefined)
      return `expected a level after level${operator}, not ${value}: ${LEVELS.join(', ')}, or a number`;
  } else if (isOrder(operator) && !ORDERED.test(value)) {
    return `expected a number or a time such as 2026-01-31T10:00 after ${field}${operator}, not ${value}`;
  }
  return undefined;
}

export function matches(searched: Searched, terms: readonly Term[]): boolean {
  return terms.every((term) => (term.kind === 'text' ? contains(searched, term.text) : compares(searched, term)));
}

function contains({ text, type }: Searched, wanted: string): boolean {
  return text.toLowerCase().includes(wanted) || type.toLowerCase().includes(wanted);
}

function compares(searched: Searched, { field, operator, value }: Term & { readonly kind: 'field' }): boolean {
  if (field === 'level') return ordered(rank(searched.level), operator, rank(toLevel(value)));
  const found = textOf(searched, field);
  if (operator.endsWith('~')) return (found?.toLowerCase().includes(value.toLowerCase()) === true) === (operator === '~');
  if (!isOrder(operator)) return (found === value) === (operator === '=');
  if (found === undefined || found === '') return false;
  return Number.isNaN(Number(value)) ? ordered(found, operator, value) : ordered(Number(found), operator, Number(value));
}

const rank = (level: Level | undefined): number => (level === undefined ? Number.NaN : rankOf(level));

/** A missing level is NaN, with which no comparison holds. */
function ordered<T extends number | string>(one: T, operator: QueryOperator, other: T): boolean {
  if (!isOrder(operator)) return (one === other) === (operator === '=');
  return (operator.endsWith('=') && one === other) || (operator.startsWith('<') ? one < other : one > other);
}

/** The text of a field, of the event or of its object. */
export function textOf({ type, place, text, value, level }: Searched, field: string): string | undefined {
  if (field === 'level') return level;
  if (field === 'type') return type;
  if (field === 'no') return place === undefined ? undefined : String(place);
  if (field === 'object') return text;
  if (typeof value === 'string') return field === 'msg' || field === 'message' ? value : undefined;
  return fieldText(value, field) ?? (field.startsWith(OBJECT) ? fieldText(value, field.slice(OBJECT.length)) : undefined);
}

/** Precedes a field of the object that has the name of one of the event. */
export const OBJECT = 'object.';
