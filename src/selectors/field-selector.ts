import { invalid } from '../watch/errors.ts';
import { byCodeUnit, checkLength, labelOf, type ParseOptions, selectorError } from './syntax.ts';

/** The selectable fields of an object: `{ 'metadata.name': 'a' }`. Only own properties count. */
export type Fields = Readonly<Record<string, string>>;

/** A condition on one field. `==` in text is `=` here. A missing field is the same as an empty one. */
export interface FieldTerm {
  readonly field: string;
  readonly operator: '=' | '!=';
  readonly value: string;
}

/** What all terms of one field say: a value that it must have, and others that it must not. If two are required, none fits. */
export interface FieldRule {
  readonly field: string;
  readonly wanted: ReadonlySet<string>;
  readonly unwanted: ReadonlySet<string>;
}

export function fitsRule({ wanted, unwanted }: FieldRule, value: string): boolean {
  return (wanted.size === 0 || (wanted.size === 1 && wanted.has(value))) && !unwanted.has(value);
}

const NOTHING: readonly FieldTerm[] = [
  { field: 'nothing', operator: '!=', value: '' },
  { field: 'nothing', operator: '=', value: '' },
];

/**
 * Selects objects by their fields: every term must hold. Immutable. Upstream: `fields.Selector`.
 *
 *     parseFieldSelector('metadata.name=a,status.phase!=Failed').matches({ 'metadata.name': 'a' })   // true
 */
export class FieldSelector {
  /** Sorted by field; terms with the same field keep the order in which they were given. */
  readonly terms: readonly FieldTerm[];
  private known: string | undefined;
  /** Made at the first use. */
  private rules: readonly FieldRule[] | undefined;

  /** @throws {WatchError} INVALID_ARGUMENT for a term that has no text form: its field is empty, or contains `=` or `,`. */
  constructor(terms: readonly FieldTerm[] = []) {
    this.terms = terms.map(checkedTerm).sort((one, other) => byCodeUnit(one.field, other.field));
  }

  /** Selects every object. */
  static everything(): FieldSelector {
    return new FieldSelector();
  }

  /** Selects no object. Printed as `nothing!=,nothing=`, which parses to a selector that also selects nothing. */
  static nothing(): FieldSelector {
    return new FieldSelector(NOTHING);
  }

  /** Selects the objects whose fields have these values; every object for null, undefined or no fields. */
  static fromFields(fields: Fields | null | undefined): FieldSelector {
    return new FieldSelector(Object.entries(fields ?? {}).map(([field, value]) => ({ field, operator: '=', value })));
  }

  /** Whether an object with these fields is selected. A field that is missing counts as empty. */
  matches(fields: Fields | null | undefined): boolean {
    this.rules ??= rulesOf(this.terms);
    return this.rules.every((rule) => fitsRule(rule, labelOf(fields, rule.field) ?? ''));
  }

  /** Whether it has no term, and so selects everything. */
  get isEmpty(): boolean {
    return this.terms.length === 0;
  }

  /** Whether no fields can satisfy all terms, as with `a=1,a=2`. */
  get matchesNothing(): boolean {
    return this.canonical === print(NOTHING);
  }

  /** A text that is the same for exactly those selectors that select the same objects. It parses to an equal selector. */
  get canonical(): string {
    this.known ??= print(reduced(rulesOf(this.terms)));
    return this.known;
  }

  /** Whether both select the same fields, however they are written. */
  equals(other: FieldSelector): boolean {
    return this.canonical === other.canonical;
  }

  /** The value that a field must have to be selected: that of its first `=`; undefined if there is none. */
  requiresExactMatch(field: string): string | undefined {
    return this.terms.find((term) => term.field === field && term.operator === '=')?.value;
  }

  /**
   * Returns a selector with other fields or values: `change` gets each term, and returns its replacement. A term whose field and
   * value are both empty is dropped. If `change` throws, so does this.
   */
  transform(change: (field: string, value: string) => { readonly field: string; readonly value: string }): FieldSelector {
    const terms = this.terms.map(({ operator, ...term }) => ({ operator, ...change(term.field, term.value) }));
    return new FieldSelector(terms.filter(({ field, value }) => field !== '' || value !== ''));
  }

  /** Text that parses to the same terms, with the special characters in values escaped. */
  toString(): string {
    return print(this.terms);
  }

  /** The same as `toString`. */
  toJSON(): string {
    return this.toString();
  }
}

/**
 * Parses a field selector, in the syntax of Kubernetes' `fieldSelector` parameter: terms `field=value`, `field==value` and
 * `field!=value`, separated by commas, all of which must hold. In a value, `\\`, `\,` and `\=` stand for the character after the
 * backslash. An empty selector selects everything. docs/selectors.md lists the deliberate differences from upstream.
 *
 * @throws {WatchError} INVALID_SELECTOR for an invalid text, with the `position` of the character, which the message marks with a
 *   caret; or with the `limit`, for a text longer than `maxChars`.
 */
export function parseFieldSelector(text: string, options: ParseOptions = {}): FieldSelector {
  checkLength('field selector', text, options);
  return new FieldSelector(readTerms(text));
}

function print(terms: readonly FieldTerm[]): string {
  return terms.map(({ field, operator, value }) => `${field}${operator}${escapeFieldValue(value)}`).join(',');
}

/** Returns a copy of the term. It must survive printing and parsing, and a field's name cannot be escaped. */
function checkedTerm({ field, operator, value }: FieldTerm): FieldTerm {
  if (operator !== '=' && operator !== '!=') throw invalid('operator', operator, '= or !=');
  if (typeof value !== 'string') throw invalid('value', value, 'a string');
  if (typeof field !== 'string' || !/^[^\s=,\\](?:[^=,\\]*[^\s=,\\])?$/.test(field)) {
    throw invalid('field', field, 'a name without "=", "," and "\\", and without spaces around it');
  }
  if (operator === '=' && field.endsWith('!')) throw invalid('field', field, 'a name that does not end with "!"');
  return { field, operator, value };
}

/** One rule for each field, so that many terms do not slow down a test. */
export function rulesOf(terms: readonly FieldTerm[]): readonly FieldRule[] {
  const rules = new Map<string, { field: string; wanted: Set<string>; unwanted: Set<string> }>();
  for (const { field, operator, value } of terms) {
    const rule = rules.get(field) ?? { field, wanted: new Set(), unwanted: new Set() };
    rules.set(field, rule);
    (operator === '=' ? rule.wanted : rule.unwanted).add(value);
  }
  return [...rules.values()];
}

/** The terms, without duplicates and redundant ones. */
function reduced(rules: readonly FieldRule[]): readonly FieldTerm[] {
  const left: FieldTerm[] = [];
  for (const { field, wanted, unwanted } of rules) {
    const [value, ...others] = wanted;
    if (others.length > 0 || (value !== undefined && unwanted.has(value))) return NOTHING;
    if (value !== undefined) left.push({ field, operator: '=', value });
    else left.push(...[...unwanted].sort(byCodeUnit).map((each): FieldTerm => ({ field, operator: '!=', value: each })));
  }
  return left;
}

const KIND = 'field selector';

/** A piece of a field selector's text that ends before a comma: where it begins and ends. */
interface Span {
  readonly from: number;
  readonly to: number;
}

/** A term as it is read. `==` has become `=`. */
interface ReadTerm {
  readonly field: string;
  readonly operator: '=' | '!=';
  readonly value: string;
}

/**
 * Reads the terms of a field selector, in the order of the text.
 *
 *     metadata.name=a\,b , status.phase!=Failed
 *     '-----------' '--'   '----------' '----'
 *        field     value      field      value
 *
 * First the text is cut at the commas without a backslash before them; pieces without any text are skipped. In a piece, the first
 * operator ends the field. What follows is the value, in which only `\\`, `\,` and `\=` are escapes, and an `=` must be escaped:
 * so `a==b==c` is invalid, not a value that contains `==`.
 *
 * @throws {WatchError} INVALID_SELECTOR with the `position` of the first character that does not fit.
 */
function readTerms(text: string): ReadTerm[] {
  return spans(text)
    .filter(({ from, to }) => text.slice(from, to).trim() !== '')
    .map((span) => readTerm(text, span));
}

/** Cuts a text at the commas that are not escaped. */
function spans(text: string): Span[] {
  const found: Span[] = [];
  let from = 0;
  for (let at = 0; at < text.length; at++) {
    const character = text.charAt(at);
    if (character === '\\') at++;
    else if (character === ',') {
      found.push({ from, to: at });
      from = at + 1;
    }
  }
  found.push({ from, to: text.length });
  return found;
}

function readTerm(text: string, { from, to }: Span): ReadTerm {
  const [sign, at] = findOperator(text, { from, to });
  const raw = text.slice(from, at);
  const field = raw.trim();
  if (field === '') throw selectorError(KIND, text, { at, expected: 'the name of a field' });
  const strange = field.search(sign === '!=' ? /\\/ : /\\|!$/);
  if (strange >= 0) {
    const at = from + raw.indexOf(field) + strange;
    throw selectorError(KIND, text, { at, expected: 'the name of a field, without "\\", and without "!" before "="' });
  }
  const value = unescaped(text, { from: at + sign.length, to });
  return { field, operator: sign === '!=' ? '!=' : '=', value };
}

/** The first operator, and its place. */
function findOperator(text: string, { from, to }: Span): readonly ['=' | '==' | '!=', number] {
  for (let at = from; at < to; at++) {
    const two = text.slice(at, Math.min(at + 2, to));
    if (two === '!=' || two === '==') return [two, at];
    if (two.startsWith('=')) return ['=', at];
  }
  throw selectorError(KIND, text, { at: to, expected: 'an operator (= == !=)' });
}

function unescaped(text: string, { from, to }: Span): string {
  let value = '';
  for (let at = from; at < to; at++) {
    const character = text.charAt(at);
    if (character === '=') throw selectorError(KIND, text, { at, expected: '"\\=" in a value, "," or the end' });
    if (character !== '\\') {
      value += character;
      continue;
    }
    at++;
    const escaped = at < to ? text.charAt(at) : '';
    if (escaped === '' || !'\\,='.includes(escaped)) {
      throw selectorError(KIND, text, { at, expected: '"\\", "," or "=" after a "\\"' });
    }
    value += escaped;
  }
  return value;
}

/** Writes a value so that {@link readTerms} reads it back. */
export function escapeFieldValue(value: string): string {
  return value.replace(/[\\,=]/g, '\\$&');
}
