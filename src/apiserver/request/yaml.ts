/**
 * YAML from the wire, as Kubernetes reads it: the first document of a text in YAML 1.1, if it can be expressed in JSON. The
 * package `yaml` does the parsing. It composes a document in one go, and recursively, so it is never given a whole one:
 *
 *     bytes --> lexemes --> tree of tokens --> parts of the tree, without what is large in them --> nodes --> value
 *               in pieces,  limited in depth       each composed alone, then the large ones     as JSON would have it
 *
 * - The limits are those of JSON: depth, parts, members of an object. An alias counts as what it refers to.
 * - What is read in one go is limited, too: comments and the like around a value, and strings to unfold or unescape.
 */
import type { Composer, CST, Node } from 'yaml';
import { put } from '../../storage/json.ts';
import { refused } from '../../storage/statuses.ts';
import { isRecord } from '../../watch/errors.ts';
import { STRIDE, type Work } from '../../watch/fair-queue.ts';
import { badRequest } from '../api-status.ts';
import { FieldPaths, MAX_DEPTH, MAX_KEYS, MAX_PARTS, type Step, tooDeep, tooManyParts } from './json.ts';

type Yaml = typeof import('yaml');

/** Loads the package. Rejects with 415 if it is not installed. */
export async function loadYaml(): Promise<Yaml> {
  try {
    return await import('yaml');
  } catch (error) {
    if (!['ERR_MODULE_NOT_FOUND', 'MODULE_NOT_FOUND'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
    throw refused(415, 'UnsupportedMediaType', 'YAML needs the package yaml at this server: npm install yaml, or send JSON');
  }
}

interface YamlMeans {
  readonly yaml: Yaml;
  /** Called with the members that occur more than once; the last one counts. */
  readonly again?: ((duplicates: FieldPaths) => void) | undefined;
}

/** Whether a body begins like JSON: then it most likely is JSON, which needs no package. */
export function looksLikeJson(bytes: Uint8Array): boolean {
  const first = bytes.find((byte) => byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09);
  return first === 0x7b || first === 0x5b;
}

/** Reads YAML. Throws 400 if it is not YAML, or cannot be expressed in JSON, and 413 if it has too many parts. */
export function* readYaml(bytes: Uint8Array, means: YamlMeans): Work<unknown> {
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw badRequest('the body is not YAML in UTF-8');
  }
  const document = yield* firstDocument(text, means.yaml);
  if (document === undefined) return null;
  const reading = new Reading(text, means.yaml);
  const value = yield* reading.document(document);
  if (reading.duplicates.told.length > 0) means.again?.(reading.duplicates);
  return value;
}

/** The most lexemes: about twelve for each part. */
const MAX_LEXEMES = 12 * MAX_PARTS;
/** The most spaces, line ends and comments between two values. */
const MAX_BETWEEN = 16_384;
/** Parts that are longer are not composed as a whole, in characters. */
const PART_CHARS = 8_192;

/** The most characters of a string that has to be unfolded or unescaped, which happens in one go. */
const MAX_WRITTEN_CHARS = 65_536;

function checkText(lexeme: string): void {
  if (lexeme.length <= MAX_WRITTEN_CHARS) return;
  const isEscaped =
    (lexeme.startsWith('"') && lexeme.includes('\\')) || (lexeme.startsWith("'") && lexeme.indexOf("'", 1) < lexeme.length - 1);
  if (!isEscaped && !lexeme.includes('\n')) return;
  const limit = `a string of more than ${MAX_WRITTEN_CHARS} characters with several lines or escapes`;
  throw refused(413, 'RequestEntityTooLarge', `YAML cannot have ${limit}: send JSON`);
}

function* firstDocument(text: string, { Lexer, Parser }: Yaml): Work<CST.Document | undefined> {
  const parser = new Parser();
  let lexemes = 0;
  const documentIn = (tokens: Iterable<CST.Token>): CST.Document | undefined => {
    for (const token of tokens) {
      if (token.type === 'error') throw invalid(token.message, text, token.offset);
      if (token.type === 'document') return token;
    }
    return undefined;
  };
  for (const lexeme of new Lexer().lex(text)) {
    checkText(lexeme);
    const found = documentIn(parser.next(lexeme));
    if (found) return found;
    // The stack also holds the document, and a scalar.
    if (parser.stack.length > MAX_DEPTH + 2) throw tooDeep();
    if (++lexemes > MAX_LEXEMES) throw tooManyParts();
    if (lexemes % STRIDE === 0) yield;
  }
  return documentIn(parser.end());
}

type Collection = CST.BlockMap | CST.BlockSequence | CST.FlowCollection;
type Items = CST.CollectionItem[];
type Members = Record<string, unknown>;
type ScalarNode = { readonly source?: string | undefined; readonly type?: string | undefined; readonly tag?: string | undefined };

/** A document whose tokens become a value. */
class Reading {
  readonly duplicates: FieldPaths = new FieldPaths();
  readonly #text: string;
  readonly #yaml: Yaml;
  readonly #anchors: Map<string, unknown> = new Map();
  /** Large values, and where they end, by their placeholders in a composed part. */
  readonly #large: Map<unknown, { readonly token: Collection; readonly to: number }> = new Map();
  readonly #path: Step[] = [];
  #partsLeft: number = MAX_PARTS;
  #charsLeft: number;
  #steps: number = 0;
  #counted: { readonly at: number; readonly line: number } = { at: 0, line: 1 };

  constructor(text: string, yaml: Yaml) {
    this.#text = text;
    this.#yaml = yaml;
    this.#charsLeft = Math.max(MAX_CHARS, text.length);
  }

  *document({ type, offset, start, value, end = [] }: CST.Document): Work<unknown> {
    checkBetween(start, end);
    const whole = { type, offset, start, end, ...(value && { value: this.#shortened(value, this.#text.length) }) };
    return yield* this.#value(this.#composed(whole));
  }

  /** A token, or its placeholder if it is large. */
  #shortened(token: CST.Token, to: number): CST.Token {
    if (to - token.offset <= PART_CHARS || !('items' in token)) return token;
    const short: CST.Token = { type: 'scalar', offset: token.offset, indent: token.indent, source: '-' };
    this.#large.set(short, { token, to });
    return short;
  }

  #composed(document: CST.Document): Node | null {
    const composer: Composer = new this.#yaml.Composer(OPTIONS);
    for (const { errors, contents } of composer.compose([document], true, this.#text.length)) {
      const [error] = errors;
      if (error) throw invalid(error.message, this.#text, error.pos[0]);
      return contents;
    }
    return null;
  }

  *#value(node: Node | null): Work<unknown> {
    const { isAlias, isMap, isSeq, isScalar } = this.#yaml;
    if (++this.#steps % STRIDE === 0) yield;
    if (isAlias(node)) return yield* this.#copy(this.#anchored(node.source));
    const large = node && this.#large.get(node.srcToken);
    if (large || isMap(node) || isSeq(node)) this.#checkDepth(0);
    const isObject = large ? isMapToken(large.token) : isMap(node);
    const value = isObject ? {} : large || isSeq(node) ? [] : isScalar(node) ? this.#scalar(node) : null;
    if (large) yield* this.#inParts(large, value as Members | unknown[]);
    else if (isMap(node) || isSeq(node)) yield* this.#fill(value as Members | unknown[], node.items);
    const { anchor } = (node ?? {}) as { readonly anchor?: string };
    if (anchor !== undefined) this.#anchors.set(anchor, value);
    if (typeof value === 'object' && value !== null) this.#count(1);
    return value;
  }

  /** Fills an object or a list, part by part. */
  *#inParts({ token, to }: { readonly token: Collection; readonly to: number }, value: Members | unknown[]): Work<void> {
    const items = token.items as Items;
    const isFlow = token.type === 'flow-collection';
    if (isFlow) checkBetween(token.end);
    if (items.length > MAX_KEYS && isMapToken(token)) throw tooManyParts();
    let part: Items = [];
    let from = token.offset;
    for (let at = 0; at < items.length; at++) {
      const item = items[at] as CST.CollectionItem;
      const next = items[at + 1];
      const end = (next && startOf(next)) ?? to;
      checkBetween(item.start, item.sep, endOf(item.key), endOf(item.value));
      if (item.key && 'items' in item.key) throw badRequest('YAML: a key is not a string');
      part.push(item.value ? { ...item, value: this.#shortened(item.value, end) } : item);
      // A part other than the last must not end with a comma that nothing follows.
      const isFull = part.length >= STRIDE || end - from > PART_CHARS;
      if (next && !(isFull && (item.key || item.value))) continue;
      const node = this.#composed({
        type: 'document',
        offset: from,
        start: [],
        value: { ...token, offset: from, items: part } as Collection,
      });
      yield* this.#fill(value, (node as unknown as { readonly items: readonly unknown[] }).items);
      yield;
      part = [];
      from = end;
      if (isFlow && next) items[at + 1] = withoutComma(next, this.#text);
    }
  }

  *#fill(value: Members | unknown[], items: readonly unknown[]): Work<void> {
    this.#path.push(0);
    for (const item of items) {
      if (Array.isArray(value)) {
        this.#path[this.#path.length - 1] = value.length;
        // In a list, `a: b` is an object, and has been composed as one.
        value.push(yield* this.#value(item as Node));
      } else yield* this.#member(value, item as { readonly key: Node | null; readonly value: Node | null });
    }
    this.#path.pop();
  }

  *#member(object: Members, pair: { readonly key: Node | null; readonly value: Node | null }): Work<void> {
    const { isScalar } = this.#yaml;
    if (isScalar(pair.key) && pair.key.source === '<<' && pair.key.type === 'PLAIN')
      return yield* this.#merge(object, pair.value);
    const key = yield* this.#value(pair.key);
    if (key === null || typeof key === 'object') throw badRequest('YAML: a key is not a string');
    const name = String(key);
    this.#path[this.#path.length - 1] = name;
    const isAgain = Object.hasOwn(object, name);
    const line = isAgain ? this.#lineOf(pair.value?.range?.[0] ?? pair.key?.range?.[1] ?? 0) : 0;
    this.#count(1);
    put(object, name, yield* this.#value(pair.value));
    if (!isAgain) return;
    this.duplicates.add(
      () => this.#path.slice(),
      () => line,
    );
  }

  /** The line of a place, counted on from the previous one. */
  #lineOf(at: number): number {
    if (at < this.#counted.at) this.#counted = { at: 0, line: 1 };
    let { line } = this.#counted;
    for (let end = this.#text.indexOf('\n', this.#counted.at); end >= 0 && end < at; end = this.#text.indexOf('\n', end + 1))
      line++;
    this.#counted = { at, line };
    return line;
  }

  /** `<<`: adds the members of other objects that the object does not have yet. */
  *#merge(object: Members, from: Node | null): Work<void> {
    const merged = yield* this.#value(from);
    for (const each of Array.isArray(merged) ? merged : [merged]) {
      if (!isRecord(each)) throw badRequest('YAML: only objects can be merged');
      for (const [name, value] of Object.entries(each)) if (!Object.hasOwn(object, name)) put(object, name, value);
    }
  }

  #anchored(name: string): unknown {
    if (!this.#anchors.has(name)) throw badRequest(`YAML: unknown anchor ${JSON.stringify(name.slice(0, MAX_SHOWN))}`);
    return this.#anchors.get(name);
  }

  /** The value of an alias: a copy, as no part of an object may occur in it twice. */
  *#copy(value: unknown, below: number = 0): Work<unknown> {
    if (++this.#steps % STRIDE === 0) yield;
    if (typeof value === 'string') this.#countChars(value);
    if (typeof value !== 'object' || value === null) return value;
    this.#checkDepth(below);
    this.#count(1);
    if (Array.isArray(value)) {
      const list: unknown[] = [];
      for (const each of value) list.push(yield* this.#copy(each, below + 1));
      return list;
    }
    const object: Members = {};
    for (const name of Object.keys(value)) {
      this.#count(1);
      this.#countChars(name);
      put(object, name, yield* this.#copy((value as Members)[name], below + 1));
    }
    return object;
  }

  /** Checks the depth of an object or a list that is so many levels below the current place. */
  #checkDepth(below: number): void {
    if (this.#path.length + below >= MAX_DEPTH) throw tooDeep();
  }

  #count(parts: number): void {
    this.#partsLeft -= parts;
    if (this.#partsLeft < 0) throw tooManyParts();
  }

  #countChars({ length }: string): void {
    this.#charsLeft -= length;
    if (this.#charsLeft < 0)
      throw refused(413, 'RequestEntityTooLarge', `YAML: aliases stand for more than ${MAX_CHARS} characters`);
  }

  #scalar({ source = '', type, tag }: ScalarNode): unknown {
    if (tag === `${CORE}binary`) throw badRequest('YAML: !!binary is not supported: send base64 as a string');
    if (tag === undefined ? type !== 'PLAIN' : !RESOLVED.includes(tag)) return source;
    const value = resolved(source);
    if (tag === undefined || `${CORE}${nameOfType(value)}` === tag) return value;
    if (tag === `${CORE}float` && typeof value === 'number') return value;
    throw badRequest(`YAML: ${JSON.stringify(source.slice(0, MAX_SHOWN))} is not a valid ${tag.slice(CORE.length)}`);
  }
}

/** All scalars stay strings: what they mean is decided here, by the rules of YAML 1.1 in Go. */
const OPTIONS = { schema: 'failsafe', uniqueKeys: false, keepSourceTokens: true, strict: true, logLevel: 'error' } as const;
/** The most characters to which the aliases of a text may expand. */
const MAX_CHARS = 3 * 2 ** 20;
const MAX_SHOWN = 40;
const CORE = 'tag:yaml.org,2002:';
const RESOLVED: readonly string[] = ['bool', 'int', 'float', 'null'].map((each) => CORE + each);

const isMapToken = (token: Collection): boolean =>
  token.type === 'block-map' || (token.type === 'flow-collection' && token.start.source === '{');
const endOf = (token: CST.Token | null | undefined): CST.SourceToken[] | undefined =>
  token && 'end' in token ? token.end : undefined;
const startOf = ({ start, key, sep, value }: CST.CollectionItem): number | undefined =>
  (start[0] ?? key ?? sep?.[0] ?? value)?.offset;

function checkBetween(...lists: readonly (readonly unknown[] | undefined)[]): void {
  for (const list of lists) {
    if (list && list.length > MAX_BETWEEN) throw badRequest(`YAML: more than ${MAX_BETWEEN} lines between two values`);
  }
}

/** The first item of a part, after the comma that divides it from the part before. After the last item, there may be a line end. */
function withoutComma(item: CST.CollectionItem, text: string): CST.CollectionItem {
  const at = item.start.findIndex(({ type }) => type === 'comma');
  if (at < 0 && !item.key && !item.sep && !item.value) return item;
  if (at < 0) throw invalid('missing comma', text, startOf(item) ?? 0);
  return { ...item, start: item.start.toSpliced(at, 1) };
}

function invalid(message: string, text: string, at: number): Error {
  let line = 1;
  for (let end = text.indexOf('\n'); end >= 0 && end < at; end = text.indexOf('\n', end + 1)) line++;
  return badRequest(`YAML: line ${line}: ${message.slice(0, 200)}`);
}

const WORDS: ReadonlyMap<string, boolean | null> = new Map([
  ...['y', 'yes', 'true', 'on'].flatMap((each) => spellings(each, true)),
  ...['n', 'no', 'false', 'off'].flatMap((each) => spellings(each, false)),
  ...([...spellings('null', null), ['', null], ['~', null]] as [string, null][]),
]);

function spellings<T>(word: string, value: T): [string, T][] {
  const upper = word.toUpperCase();
  return [word, upper, upper.charAt(0) + word.slice(1)].map((each) => [each, value]);
}

const INTEGER = /^[-+]?(0[xX][0-9a-fA-F]+|0[oO]?[0-7]+|0[bB][01]+|0|[1-9][0-9]*)$/;
const FLOAT = /^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$/;
const NOT_FINITE = /^([-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))$/;
/** The most characters of a number that can be kept. */
const MAX_NUMBER_CHARS = 400;

/** The value of an unquoted scalar. */
function resolved(source: string): unknown {
  const word = WORDS.get(source);
  if (word !== undefined) return word;
  if (source.length > MAX_NUMBER_CHARS || !/^[-+.0-9]/.test(source)) return source;
  if (NOT_FINITE.test(source)) throw lossy(source);
  const plain = source.replaceAll('_', '');
  const value = INTEGER.test(plain) ? toInteger(plain) : undefined;
  if (value !== undefined && value >= -(2n ** 63n) && value < 2n ** 64n) {
    if (BigInt(Number(value)) !== value) throw lossy(source);
    return Number(value);
  }
  if (!FLOAT.test(plain)) return source;
  if (!Number.isFinite(Number(plain))) throw lossy(source);
  return Number(plain);
}

function toInteger(plain: string): bigint {
  const digits = plain.replace(/^[-+]/, '').toLowerCase();
  // In YAML 1.1, a leading zero means octal.
  const value = BigInt(/^0[0-7]/.test(digits) ? `0o${digits.slice(1)}` : digits);
  return plain.startsWith('-') ? -value : value;
}

function lossy(source: string): Error {
  return badRequest(`the number ${source.slice(0, MAX_SHOWN)} cannot be kept as it is: send it as a string`);
}

function nameOfType(value: unknown): string {
  if (value === null) return 'null';
  if (typeof value === 'boolean') return 'bool';
  return Number.isInteger(value) ? 'int' : typeof value === 'number' ? 'float' : 'str';
}
