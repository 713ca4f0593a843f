import {
  checkLength,
  type Fault,
  faultOfInteger,
  faultOfKey,
  faultOfValue,
  LabelCondition,
  type LabelOperator,
  type ParseOptions,
  selectorError,
} from './syntax.ts';

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
export function readConditions(text: string, options: ParseOptions = {}): LabelCondition[] {
  checkLength('label selector', text, options);
  const lexer = new LabelLexer(text);
  const conditions: LabelCondition[] = [];
  if (lexer.is('end')) return conditions;
  for (;;) {
    conditions.push(condition(lexer));
    if (lexer.is('end')) return conditions;
    lexer.expect(',', '"," or the end');
  }
}

function condition(lexer: LabelLexer): LabelCondition {
  if (lexer.is('!')) {
    lexer.take();
    return new LabelCondition(key(lexer), '!');
  }
  const name = key(lexer);
  const { kind } = lexer.next;
  if (kind === 'end' || kind === ',') return new LabelCondition(name, 'exists');
  const operator = operatorOf(lexer);
  if (operator === 'in' || operator === 'notin') return new LabelCondition(name, operator, values(lexer));
  return new LabelCondition(name, operator, [value(lexer, operator)]);
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

/** A piece of a label selector's text. */
interface Token {
  readonly kind: 'word' | 'end' | '=' | '==' | '!=' | '!' | '(' | ')' | ',' | '>' | '<';
  readonly text: string;
  /** The index of its first character. */
  readonly at: number;
}

const KIND = 'label selector';
const SPACE = ' \t\r\n';
const SPECIAL = '=!(),><';

/**
 * Splits the text of a label selector into tokens:
 *
 *     app in (web, api),!old   ->   app  in  (  web  ,  api  )  ,  !  old
 *
 * Spaces, tabs and line ends only separate tokens. The longest operator that fits is taken. Any other run of characters is a
 * word: the parser knows what is expected, so it can say better what is wrong. `in` and `notin` are also words; only their place
 * makes them operators.
 */
export class LabelLexer {
  readonly text: string;
  private index: number = 0;
  /** The next token: looked at, not taken. */
  next: Token;

  constructor(text: string) {
    this.text = text;
    this.next = this.scan();
  }

  is(kind: Token['kind']): boolean {
    return this.next.kind === kind;
  }

  take(): Token {
    const token = this.next;
    this.next = this.scan();
    return token;
  }

  /** Takes the next token if it is of this kind; otherwise throws. */
  expect(kind: Token['kind'], expected: string): Token {
    if (!this.is(kind)) throw this.error({ at: this.next.at, expected });
    return this.take();
  }

  error(fault: Fault): Error {
    return selectorError(KIND, this.text, fault);
  }

  private scan(): Token {
    const { text } = this;
    while (this.index < text.length && SPACE.includes(text.charAt(this.index))) this.index++;
    const at = this.index;
    if (at === text.length) return { kind: 'end', text: '', at };
    if (!SPECIAL.includes(text.charAt(at))) return this.word(at);
    const two = text.slice(at, at + 2);
    const operator = two === '==' || two === '!=' ? two : text.charAt(at);
    this.index += operator.length;
    return { kind: operator as Token['kind'], text: operator, at };
  }

  private word(at: number): Token {
    const { text } = this;
    while (this.index < text.length && !isBorder(text.charAt(this.index))) this.index++;
    return { kind: 'word', text: text.slice(at, this.index), at };
  }
}

function isBorder(character: string): boolean {
  return SPACE.includes(character) || SPECIAL.includes(character);
}
