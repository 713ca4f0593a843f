import { selectorError } from './syntax.ts';

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
 * operator ends the field. What follows is the value, in which only `\\`, `\,` and `\=` are escapes, and an `=` must be one: so
 * `a==b==c` is wrong, and not a value with `==` in it.
 *
 * @throws {WatchError} INVALID_SELECTOR with the `position` of the first character that does not fit.
 */
export function readTerms(text: string): ReadTerm[] {
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

/**
 * Reads back a value that {@link escapeFieldValue} has written.
 *
 * @throws {WatchError} INVALID_SELECTOR for any other escape, and for `,` or `=` without a backslash.
 */
export function unescapeFieldValue(text: string): string {
  const [first] = spans(text);
  if (first && first.to < text.length) throw selectorError(KIND, text, { at: first.to, expected: '"\\," in a value' });
  return unescaped(text, { from: 0, to: text.length });
}
