/**
 * JSON in pieces: the host's own functions cannot be interrupted, so a large text or value is cut where that changes nothing.
 * Results and errors are those of `JSON.parse` and `JSON.stringify`, which process the pieces.
 *
 *     text -- { "a": 1, "b": 2, | "c": [ 1, 2, | 3 ], "d": 4 } -- parsed one by one, put together --> value
 *                    piece           in a piece of its own
 *
 * - A piece has about 32 KiB, unless a single string is longer, which is not cut.
 * - The names of an object are listed in one go, as no engine can do otherwise: 65,536 names take a dozen milliseconds.
 * - Cutting does not make it more lenient: the scan matches brackets, and everything between them is parsed, or must be blank.
 */
import { isContainer } from '../watch/errors.ts';
import { STRIDE, type Work } from '../watch/fair-queue.ts';

/** Texts and values that are shorter are not cut, in characters of JSON. */
const LARGE_CHARS = 262_144;
const PIECE_CHARS = 32_768;
/** How many steps are still quick, and how many members are many. */
const FEW = 16_384;
/** The cost of an object or a list, in characters: it takes longer to write than its two characters suggest. */
const OBJECT_CHARS = 64;
/** Deeper values are left to the host, which refuses cycles. */
const MAX_DEPTH = 256;

type Members = Record<string, unknown>;

/** Sets a member, even `__proto__`, for which an assignment would do something else. */
export function put(object: Members, name: string, value: unknown): void {
  if (name === '__proto__') Object.defineProperty(object, name, { value, ...DATA });
  else object[name] = value;
}

const DATA = { enumerable: true, writable: true, configurable: true } as const;
const [QUOTE, BACKSLASH, COMMA, LIST, END_OF_LIST, OBJECT, END_OF_OBJECT] = [0x22, 0x5c, 0x2c, 0x5b, 0x5d, 0x7b, 0x7d];
const NOT_BLANK = /[^ \t\n\r]/;
const isBlank = (text: string): boolean => !NOT_BLANK.test(text);

/** An object or list whose end has not been reached. */
interface Open {
  readonly isObject: boolean;
  readonly start: number;
  /** The last string before it, which is its name if it is in an object. */
  readonly nameFrom: number;
  readonly nameTo: number;
  /** Where the part that has not been parsed begins. */
  from: number;
  /** What has been parsed so far, if anything. */
  made: Members | unknown[] | undefined;
  /** Whether the last member is complete, so that only a comma or the end may follow. */
  isBehind: boolean;
}

/** Parses a JSON text. Throws a SyntaxError if it is invalid. */
export function* parsing(text: string): Work<unknown> {
  const start = text.length > LARGE_CHARS ? text.search(NOT_BLANK) : -1;
  if (start < 0 || !'[{'.includes(text.charAt(start))) return JSON.parse(text);
  const open: Open[] = [];
  let [inText, nameFrom, nameTo, next, parsedTo] = [false, 0, 0, 0, start];
  for (let at = start; at < text.length; at++) {
    if (at >= next) {
      next = at + PIECE_CHARS;
      yield;
    }
    const char = text.charCodeAt(at);
    if (inText) {
      if (char === BACKSLASH) at++;
      else if (char === QUOTE) {
        inText = false;
        nameTo = at + 1;
      }
    } else if (char === QUOTE) {
      inText = true;
      nameFrom = at;
    } else if (char === COMMA) {
      const top = open.at(-1) as Open;
      if (top.isBehind || at - parsedTo > PIECE_CHARS) {
        add(top, text.slice(top.from, at));
        top.from = at + 1;
        top.isBehind = false;
        parsedTo = at;
        yield;
      }
    } else if (char === OBJECT || char === LIST) {
      const isObject = char === OBJECT;
      open.push({ isObject, start: at, nameFrom, nameTo, from: at + 1, made: undefined, isBehind: false });
    } else if (char === END_OF_OBJECT || char === END_OF_LIST) {
      const ended = open.pop() as Open;
      if (ended.isObject !== (char === END_OF_OBJECT)) throw new SyntaxError(`unexpected end at ${at}`);
      const above = open.at(-1);
      if (!above && !isBlank(text.slice(at + 1))) throw new SyntaxError(`unexpected text after ${at}`);
      if (!above && !ended.made) return JSON.parse(text);
      if (!ended.made) continue;
      add(ended, text.slice(ended.from, at));
      yield;
      if (!above) return ended.made;
      const child = { name: text.slice(ended.nameFrom, ended.nameTo), value: ended.made };
      add(above, `${text.slice(above.from, ended.start)} 0`, child);
      above.from = parsedTo = at + 1;
      yield;
    }
  }
  throw new SyntaxError('unexpected end of the text');
}

/** Adds the members in a part of the text. If there is a `child`, it replaces the value of the last one. */
function add(open: Open, part: string, child?: { readonly name: string; readonly value: unknown }): void {
  if (open.isBehind) {
    if (child || !isBlank(part)) throw new SyntaxError('a comma is missing');
    return;
  }
  if (isBlank(part)) throw new SyntaxError('a member is missing');
  if (open.isObject) {
    const members = JSON.parse(`{${part}}`) as Members;
    open.made ??= {};
    for (const name of Object.keys(members)) put(open.made as Members, name, members[name]);
    if (child) put(open.made as Members, JSON.parse(child.name) as string, child.value);
  } else {
    const list = JSON.parse(`[${part}]`) as unknown[];
    open.made ??= [];
    if (child) list[list.length - 1] = child.value;
    for (const each of list) (open.made as unknown[]).push(each);
  }
  open.isBehind = child !== undefined;
}

/** The JSON of a value. What JSON.stringify throws is passed on. */
export function* stringifying(value: unknown): Work<string> {
  const writer = new Writer();
  if (!writer.isCut(value, LARGE_CHARS)) return JSON.stringify(value);
  yield* writer.write(value, 0);
  return writer.parts.join('');
}

class Writer {
  readonly parts: string[] = [];
  /** The names of objects that have many, as listing them takes long. */
  readonly #names: Map<object, readonly string[]> = new Map();

  *write(value: object, depth: number): Work<void> {
    const { parts } = this;
    const names = Array.isArray(value) ? undefined : this.#namesOf(value);
    const count = (names ?? (value as readonly unknown[])).length;
    if (count > FEW) yield;
    let [piece, left, separator]: [unknown[] | Members, number, string] = [names ? {} : [], PIECE_CHARS, ''];
    const flush = (): void => {
      const text = JSON.stringify(piece).slice(1, -1);
      if (text !== '') {
        parts.push(separator, text);
        separator = ',';
      }
      piece = names ? {} : [];
      left = PIECE_CHARS;
    };
    parts.push(names ? '{' : '[');
    for (let at = 0; at < count; at++) {
      const name = names?.[at] ?? '';
      const each = names ? (value as Members)[name] : (value as readonly unknown[])[at];
      left = this.#leftAfter(each, left - name.length - 4);
      if (left < 0 && depth < MAX_DEPTH && this.isCut(each, PIECE_CHARS)) {
        flush();
        parts.push(separator, names ? `${JSON.stringify(name)}:` : '');
        separator = ',';
        yield* this.write(each, depth + 1);
        continue;
      }
      if (names) put(piece as Members, name, each);
      else (piece as unknown[]).push(each);
      if (left >= 0) continue;
      flush();
      yield;
    }
    flush();
    parts.push(names ? '}' : ']');
  }

  /** Whether a value has more than so many characters, and is a plain object or list: others are left to the host. */
  isCut(value: unknown, chars: number): value is object {
    if (!isContainer(value) || this.#leftAfter(value, chars) >= 0) return false;
    const prototype = Object.getPrototypeOf(value);
    return (Array.isArray(value) || prototype === Object.prototype || prototype === null) && !('toJSON' in value);
  }

  /** About how many of `most` characters remain after a value's JSON; negative if it has more. */
  #leftAfter(value: unknown, most: number): number {
    if (typeof value === 'string') return most - value.length;
    if (typeof value !== 'object' || value === null) return most - 4;
    let left = most - OBJECT_CHARS;
    if (Array.isArray(value)) {
      for (let at = 0; at < value.length && left >= 0; at++) {
        const each: unknown = value[at];
        left = typeof each === 'string' ? left - each.length : this.#leftAfter(each, left);
      }
      return left;
    }
    const names = this.#namesOf(value);
    for (let at = 0; at < names.length && left >= 0; at++) {
      const name = names[at] as string;
      const each = (value as Members)[name];
      left -= name.length + 4;
      left = typeof each === 'string' ? left - each.length : this.#leftAfter(each, left);
    }
    return left;
  }

  #namesOf(value: object): readonly string[] {
    const known = this.#names.size > 0 ? this.#names.get(value) : undefined;
    if (known) return known;
    const names = Object.keys(value);
    if (names.length > FEW) this.#names.set(value, names);
    return names;
  }
}

/** Whether two JSON values are the same, in any order of members, and except for those in `but`. Undefined is not a member. */
export function* comparing(one: unknown, other: unknown, but: readonly string[] = NOTHING): Work<boolean> {
  const pairs: object[] = [];
  let steps = 0;
  /** Whether two values may be the same. Objects and lists are compared later. */
  const match = (a: unknown, b: unknown): boolean => {
    if (a === b) return true;
    if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
    pairs.push(a, b);
    return true;
  };
  if (!match(one, other)) return false;
  for (let ignored = but; pairs.length > 0; ignored = NOTHING) {
    const right = pairs.pop() as object;
    const left = pairs.pop() as object;
    if (Array.isArray(left) || Array.isArray(right)) {
      if (!Array.isArray(left) || !Array.isArray(right) || left.length !== right.length) return false;
      for (let at = 0; at < left.length; at++) {
        if (!match(left[at], right[at])) return false;
        if (isPause(++steps)) yield;
      }
      continue;
    }
    let members = 0;
    const names = Object.keys(left);
    if (names.length > FEW) yield;
    for (const name of names) {
      const value = (left as Members)[name];
      if (isPause(++steps)) yield;
      if (value === undefined || ignored.includes(name)) continue;
      members++;
      if (!Object.hasOwn(right, name) || !match(value, (right as Members)[name])) return false;
    }
    const others = Object.keys(right);
    if (others.length > FEW) yield;
    for (const name of others) {
      if ((right as Members)[name] !== undefined && !ignored.includes(name)) members--;
      if (isPause(++steps)) yield;
    }
    if (members !== 0) return false;
  }
  return true;
}

const NOTHING: readonly string[] = [];
const isPause = (steps: number): boolean => steps > FEW && steps % STRIDE === 0;

/**
 * Visits each object and list of a value, with the names of its members, or undefined for a list, the number of its members or
 * elements, and its depth, from 0.
 */
export function* walking(
  value: unknown,
  visit: (names: readonly string[] | undefined, size: number, depth: number) => void,
): Work<void> {
  let level = isContainer(value) ? [value] : [];
  let steps = 0;
  for (let depth = 0; level.length > 0; depth++) {
    const below: object[] = [];
    for (const each of level) {
      const names = Array.isArray(each) ? undefined : Object.keys(each);
      const size = (names ?? (each as readonly unknown[])).length;
      visit(names, size, depth);
      if (size > FEW) yield;
      for (let at = 0; at < size; at++) {
        const member = names ? (each as Members)[names[at] as string] : (each as readonly unknown[])[at];
        if (isContainer(member)) below.push(member);
        if (isPause(++steps)) yield;
      }
      if (isPause(++steps)) yield;
    }
    level = below;
  }
}

/** A name as a part of a JSON pointer (RFC 6901). */
export const toToken = (name: string): string => name.replaceAll('~', '~0').replaceAll('/', '~1');

/** What JSON makes of a value, which shares nothing with it; of a large one in pieces. */
export function* reparsing(value: unknown): Work<unknown> {
  return yield* parsing(yield* stringifying(value));
}
