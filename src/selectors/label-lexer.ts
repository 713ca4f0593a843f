import { type Fault, selectorError } from './syntax.ts';

/** A piece of a label selector's text. */
export interface Token {
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
 * Spaces, tabs and line ends only separate tokens. The longest operator that fits is taken. Every other run of characters is a
 * word, whatever they are: the parser knows what is expected, so it can better say what is wrong. `in` and `notin` are also
 * words; only their place makes them operators.
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

  /** Whether the next token is of this kind. */
  is(kind: Token['kind']): boolean {
    return this.next.kind === kind;
  }

  /** Takes the next token. */
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
