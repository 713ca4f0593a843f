import { Condition, faultOfInteger, type LabelOperator } from './condition.ts';
import { LabelLexer, type Token } from './label-lexer.ts';
import { faultOfKey, faultOfValue } from './label-text.ts';
import { checkText, type Fault, type ParseOptions } from './syntax.ts';

/**
 * Reads the conditions of a label selector, in the order of the text. By recursive descent, one function per rule:
 *
 *     selector    = [ condition { "," condition } ]               a comma means AND; no text selects everything
 *     condition   = key | "!" key                                 is there; is absent
 *                 | key ( "=" | "==" | "!=" ) [ value ]           no value means the empty one
 *                 | key ( ">" | "<" ) integer
 *                 | key ( "in" | "notin" ) "(" [ value ] { "," [ value ] } ")"
 *
 * @throws {WatchError} INVALID_SELECTOR with the `position` of the first character that does not fit; with the `limit` for a text
 *   longer than `maxChars`. INVALID_ARGUMENT for anything but a string.
 */
export function readConditions(text: string, options: ParseOptions = {}): Condition[] {
  checkText('label selector', text, options);
  const lexer = new LabelLexer(text);
  const conditions: Condition[] = [];
  if (lexer.is('end')) return conditions;
  for (;;) {
    conditions.push(condition(lexer));
    if (lexer.is('end')) return conditions;
    lexer.expect(',', '"," or the end');
  }
}

function condition(lexer: LabelLexer): Condition {
  if (lexer.is('!')) {
    lexer.take();
    return new Condition(key(lexer), '!');
  }
  const name = key(lexer);
  const { kind } = lexer.next;
  if (kind === 'end' || kind === ',') return new Condition(name, 'exists');
  const operator = operatorOf(lexer);
  if (operator === 'in' || operator === 'notin') return new Condition(name, operator, values(lexer));
  return new Condition(name, operator, [value(lexer, operator)]);
}

function key(lexer: LabelLexer): string {
  return checked(lexer, lexer.expect('word', 'a label key'), faultOfKey);
}

const SYMBOLS: Readonly<Partial<Record<Token['kind'], LabelOperator>>> = {
  '=': '=',
  '==': '==',
  '!=': '!=',
  '>': 'gt',
  '<': 'lt',
};

function operatorOf(lexer: LabelLexer): LabelOperator {
  const { kind, text, at } = lexer.next;
  const operator = kind === 'word' && (text === 'in' || text === 'notin') ? text : SYMBOLS[kind];
  if (operator === undefined) throw lexer.error({ at, expected: 'an operator (= == != > < in notin), "," or the end' });
  lexer.take();
  return operator;
}

/** The value after `=`, `==`, `!=`, `>` or `<`. A missing one is the empty value, which is not an integer. */
function value(lexer: LabelLexer, operator: LabelOperator): string {
  const integer = operator === 'gt' || operator === 'lt';
  const { kind, at } = lexer.next;
  if (!integer && (kind === 'end' || kind === ',')) return '';
  if (kind !== 'word') throw lexer.error({ at, expected: integer ? 'a 64-bit integer' : 'a label value, "," or the end' });
  return checked(lexer, lexer.take(), (text) => (integer ? faultOfInteger(text) : undefined) ?? faultOfValue(text));
}

/** The values in parentheses. Nothing between two commas, or next to one, means the empty value. */
function values(lexer: LabelLexer): string[] {
  lexer.expect('(', '"("');
  const found: string[] = [];
  for (;;) {
    found.push(lexer.is('word') ? checked(lexer, lexer.take(), faultOfValue) : '');
    if (!lexer.is(',')) break;
    lexer.take();
  }
  lexer.expect(')', found.at(-1) === '' ? 'a label value, "," or ")"' : '"," or ")"');
  return found;
}

/** Returns the text of a token, or throws what is wrong with it. */
function checked(lexer: LabelLexer, { text, at }: Token, faultOf: (text: string) => Fault | undefined): string {
  const fault = faultOf(text);
  if (fault) throw lexer.error({ ...fault, at: at + fault.at });
  return text;
}
