/**
 * JSON from the wire. Its size is limited before it gets here. This limits its nesting before it is parsed, since code that walks
 * objects is recursive, and the number of its parts, since an empty object costs far more than its two bytes suggest. If a name
 * occurs twice in an object, the last member counts, and the caller can be told; the text is never used again, so no two readers
 * can see different members. `__proto__` is a member like any other. A number that JavaScript would change, such as an int64
 * beyond 2^53, is refused: clients in other languages keep it, so nobody would notice the loss.
 */
import { parsing, walking } from '../../storage/json.ts';
import { refused } from '../../storage/statuses.ts';
import { isContainer } from '../../watch/errors.ts';
import { atOnce, STRIDE, type Work } from '../../watch/fair-queue.ts';
import { badRequest } from '../api-status.ts';

/**
 * Paths of fields to report: a limited number, each shortened if it is long, and how many more there are. A hostile object can
 * have a million fields with paths of a megabyte.
 */

/** A name of a member, or an index of a list. */
export type Step = string | number;

/** The most paths that are reported, as upstream does for its own kinds. */
export const MAX_PATHS = 100;
const MAX_PATH_CHARS = 256;

export class FieldPaths {
  readonly #paths: Set<string> = new Set();
  #more = 0;
  /** The message of upstream's YAML parser for each. */
  readonly lines: string[] = [];

  /**
   * Adds a path. Its steps are computed only if it is reported. Equal paths are reported once. `line`: the line of the value, if
   * it is needed.
   */
  add(steps: () => readonly Step[], line?: () => number): void {
    if (line && this.lines.length < MAX_PATHS) {
      this.lines.push(
        `line ${line()}: key ${JSON.stringify(String(steps().at(-1)).slice(0, MAX_PATH_CHARS))} already set in map`,
      );
    }
    if (this.#paths.size === MAX_PATHS) this.#more++;
    else this.#paths.add(toPath(steps()));
  }

  get isEmpty(): boolean {
    return this.#paths.size === 0;
  }

  /** The reported paths, in the order in which they were found. */
  get told(): string[] {
    return [...this.#paths];
  }

  /** How many more were found. */
  get more(): number {
    return this.#more;
  }
}

/** Such as `spec.items[0].count`. */
export function toPath(steps: readonly Step[]): string {
  let path = '';
  for (const step of steps) {
    path += typeof step === 'number' ? `[${step}]` : `${path === '' ? '' : '.'}${step.slice(0, MAX_PATH_CHARS)}`;
    if (path.length > MAX_PATH_CHARS) return `${path.slice(0, MAX_PATH_CHARS)}...`;
  }
  return path;
}

/**
 * Finds members that a JSON text contains twice, of which a parser keeps the last. Whether there are any is known without a
 * search: each member has one colon outside of strings, so there are as many colons as members, unless a name is repeated.
 *
 *     text ---> colons --.
 *                        +--> as many? none came twice
 *     value --> members -'    otherwise: the search, once through the text
 */

/** How many members a value has, at any depth. */
export function* membersIn(value: unknown): Work<number> {
  let members = 0;
  yield* walking(value, (names) => {
    members += names?.length ?? 0;
  });
  return members;
}

/** The same in one go, for a value that is small and not deep. */
function membersOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  let members = 0;
  if (Array.isArray(value)) for (const each of value) members += membersOf(each);
  else {
    for (const name in value) {
      const member = (value as Json)[name];
      members += typeof member === 'object' ? 1 + membersOf(member) : 1;
    }
  }
  return members;
}

/** An open object or list of the text. */
interface Level {
  /** The names so far; undefined for a list. */
  readonly names: Set<string> | undefined;
  /** The current element of the list. */
  index: number;
  /** The current member of the object. */
  name: string;
  /** Whether the next string is a name. */
  isNext: boolean;
}

/** Finds repeated members in a valid JSON text. */
export function* duplicateFields(text: string): Work<FieldPaths> {
  const found = new FieldPaths();
  const levels: Level[] = [];
  let level: Level | undefined;
  let [start, next, line] = [-1, PIECE_CHARS, 1];
  for (let at = 0; at < text.length; at++) {
    if (at >= next) {
      next = at + PIECE_CHARS;
      yield;
    }
    const char = text.charCodeAt(at);
    if (start >= 0) {
      if (char === BACKSLASH) at++;
      else if (char === QUOTE) {
        if (level?.isNext && !isNew(level, nameOf(text.slice(start, at)))) {
          found.add(
            () => levels.map(stepOf),
            () => line + linesBetween(text, at + 1),
          );
        }
        start = -1;
      }
    } else if (char === LINE_END) line++;
    else if (char === QUOTE) start = at + 1;
    else if (char === COMMA) proceed(level as Level);
    else if (char === OBJECT || char === LIST) {
      const isObject = char === OBJECT;
      level = { names: isObject ? new Set() : undefined, index: 0, name: '', isNext: isObject };
      levels.push(level);
    } else if (char === END_OF_OBJECT || char === END_OF_LIST) {
      levels.pop();
      level = levels[levels.length - 1];
    }
  }
  return found;
}

/** How many characters are read in one step. */
const PIECE_CHARS = 65_536;
const [QUOTE, BACKSLASH, COMMA, COLON] = [0x22, 0x5c, 0x2c, 0x3a];
const [OBJECT, END_OF_OBJECT, LIST, END_OF_LIST] = [0x7b, 0x7d, 0x5b, 0x5d];

/** The number of line ends between a name and its value. */
function linesBetween(text: string, from: number): number {
  let lines = 0;
  for (let at = from; BETWEEN.includes(text.charAt(at)); at++) if (text.charCodeAt(at) === LINE_END) lines++;
  return lines;
}

const LINE_END = 0x0a;
const BETWEEN = ': \t\r\n';

const stepOf = ({ names, index, name }: Level): Step => (names === undefined ? index : name);

function proceed(level: Level): void {
  if (level.names === undefined) level.index++;
  else level.isNext = true;
}

/** Whether the object has no member of this name yet. */
function isNew(level: Level, name: string): boolean {
  level.isNext = false;
  level.name = name;
  const { names } = level;
  if (names === undefined || names.has(name)) return false;
  names.add(name);
  return true;
}

/** The name that is written between quotes. */
function nameOf(written: string): string {
  return written.includes('\\') ? (JSON.parse(`"${written}"`) as string) : written;
}

/** The deepest nesting of objects and lists. */
export const MAX_DEPTH = 128;
/** The most members, objects and lists together. */
export const MAX_PARTS = 102_400;
/** The most members of one object: in a large object, each costs many times what it does in a small one. */
export const MAX_KEYS = 65_536;

const utf8 = new TextDecoder('utf-8', { fatal: true });

/** The size of a JSON text, measured before it is parsed. */
interface Extent {
  /** How deep its objects and lists are nested. */
  readonly depth: number;
  /** How many members are written in it. */
  readonly members: number;
  /** How many objects and lists. */
  readonly containers: number;
  /** The most members of one object. */
  readonly widest: number;
}

/** Measures a JSON text, up to the first object or list that is deeper than `limit`. */
export function* extentOf(bytes: Uint8Array, limit: number = Number.POSITIVE_INFINITY): Work<Extent> {
  const extent = new Measure();
  while (extent.reads(bytes, limit)) yield;
  return extent;
}

/** Not a part of the generator, where it would take twice as long. */
class Measure implements Extent {
  depth: number = 0;
  members: number = 0;
  containers: number = 0;
  widest: number = 0;
  #at: number = 0;
  #inText: boolean = false;
  #level: number = 0;
  /** The number of members so far, of each open object and list. */
  readonly #open: number[] = [0];

  /** Reads a piece. Returns whether there is more. */
  reads(bytes: Uint8Array, limit: number): boolean {
    const open = this.#open;
    const end = Math.min(this.#at + PIECE_BYTES, bytes.length);
    let { depth, members, containers, widest } = this;
    let [at, inText, level] = [this.#at, this.#inText, this.#level];
    for (; at < end && depth <= limit; at++) {
      let byte = bytes[at];
      if (inText) {
        // Most of a text is in strings.
        while (byte !== QUOTE && at < end) {
          at += byte === BACKSLASH ? 2 : 1;
          byte = bytes[at];
        }
        if (at < end) inText = false;
        else break;
      } else if (byte === QUOTE) inText = true;
      else if (byte === OBJECT || byte === LIST) {
        containers++;
        if (++level > depth) depth = level;
        open[level] = 0;
      } else if (byte === END_OF_OBJECT || byte === END_OF_LIST) level--;
      else if (byte === COLON) {
        members++;
        const own = (open[level] ?? 0) + 1;
        open[level] = own;
        if (own > widest) widest = own;
      }
    }
    Object.assign(this, { depth, members, containers, widest });
    [this.#at, this.#inText, this.#level] = [at, inText, level];
    return at < bytes.length && depth <= limit;
  }
}

/** How much is read in one step. */
const PIECE_BYTES = 65_536;

interface BodyOptions {
  /** Called with the members that occur more than once. */
  readonly again?: ((duplicates: FieldPaths) => void) | undefined;
  /** Default {@link MAX_DEPTH}. */
  readonly maxDepth?: number;
  /** Default {@link MAX_PARTS}. */
  readonly maxParts?: number;
}

/**
 * Parses a body. Throws 400 if it is not JSON in UTF-8, is nested too deeply, or has a number that cannot be kept, and 413 if it
 * has too many parts.
 */
export function* parsingBody(
  bytes: Uint8Array,
  { again, maxDepth = MAX_DEPTH, maxParts = MAX_PARTS }: BodyOptions = {},
): Work<unknown> {
  const { depth, members, containers, widest } = yield* extentOf(bytes, maxDepth);
  if (depth > maxDepth) throw tooDeep(maxDepth);
  if (members + containers > maxParts || widest > MAX_KEYS) throw tooManyParts(maxParts);
  let [text, value]: [string, unknown] = ['', undefined];
  try {
    text = utf8.decode(bytes);
    if (bytes.length > PIECE_BYTES) yield;
    value = yield* parsing(text);
  } catch {
    throw badRequest('the body is not JSON in UTF-8');
  }
  if (bytes.length > PIECE_BYTES) yield;
  const isLong = text.length > PIECE_BYTES;
  const lost = (isLong ? yield* mayBeLossy(text) : LONG_NUMBER.test(text)) ? yield* lossyNumber(text) : undefined;
  if (lost !== undefined) throw badRequest(`the number ${lost.slice(0, MAX_SHOWN)} cannot be kept as it is: send it as a string`);
  if (bytes.length > PIECE_BYTES) yield;
  const isSmall = !isLong && depth <= MAX_DEPTH;
  if (again && (isSmall ? membersOf(value) : yield* membersIn(value)) !== members) again(yield* duplicateFields(text));
  return value;
}

/** The same in one go. */
export function parseJson(bytes: Uint8Array, again?: (duplicates: FieldPaths) => void): unknown {
  return atOnce(parsingBody(bytes, { again }));
}

export function tooDeep(limit: number = MAX_DEPTH): Error {
  return badRequest(`the body is nested deeper than ${limit} levels`);
}

/** Throws 413 for a value with more than twice as many parts as a body may have: patches can add more than fits in one body. */
export function* checkingParts(value: unknown): Work<void> {
  if (!isContainer(value) || partsLeft(value, FEW_PARTS) >= 0) return;
  let left = 2 * MAX_PARTS;
  yield* walking(value, (names) => {
    left -= 1 + (names?.length ?? 0);
    if (left < 0 || (names && names.length > MAX_KEYS)) throw tooManyParts(2 * MAX_PARTS);
  });
}

/** How many parts are counted in one go. */
const FEW_PARTS = 8_192;

/** How many of `most` parts remain after an object or list; negative if it has more. */
function partsLeft(value: object, most: number): number {
  let left = most - 1;
  const list = Array.isArray(value) ? (value as readonly unknown[]) : undefined;
  const names = list ?? Object.keys(value);
  for (let at = 0; at < names.length && left >= 0; at++) {
    const each = list ? list[at] : (value as Json)[names[at] as string];
    left = isContainer(each) ? partsLeft(each, left - 1) : left - 1;
  }
  return left;
}

export function tooManyParts(most: number = MAX_PARTS): Error {
  const limit = `${most} members, objects and lists, or of ${MAX_KEYS} members in one object`;
  return refused(413, 'RequestEntityTooLarge', `the object exceeds the limit of ${limit}`);
}

/** Matches every number that cannot be kept, and few others: a quick check, which most bodies pass. */
const LONG_NUMBER = /[0-9]{16}|[0-9][eE]\+?[0-9]{3}/;
const LONG_NUMBER_CHARS = 16;
/** Longer integers are not int64s: other languages read them as floating point, too. */
const LONG_INTEGER = /^-?[0-9]{16,21}$/;
const MAX_SHOWN = 40;

function* mayBeLossy(text: string): Work<boolean> {
  for (let at = 0; at < text.length; at += PIECE_BYTES) {
    if (LONG_NUMBER.test(text.slice(at, at + PIECE_BYTES + LONG_NUMBER_CHARS))) return true;
    yield;
  }
  return false;
}

/** The first number of a JSON text that would be changed: an integer, or one beyond the range of numbers. */
function* lossyNumber(text: string): Work<string | undefined> {
  let steps = 0;
  for (let at = 0; at < text.length; at++) {
    const quote = text.indexOf('"', at);
    const outside = text.slice(at, quote < 0 ? undefined : quote);
    for (const [token] of outside.matchAll(/-?[0-9][0-9.eE+-]*/g)) {
      const value = Number(token);
      if (!Number.isFinite(value) || (LONG_INTEGER.test(token) && Math.abs(value) < 1e21 && String(value) !== token))
        return token;
      if (++steps % STRIDE === 0) yield;
    }
    if (quote < 0) return undefined;
    for (at = quote + 1; text.charCodeAt(at) !== QUOTE; at++) {
      if (text.charCodeAt(at) === BACKSLASH) at++;
      if (++steps % PIECE_BYTES === 0) yield;
    }
  }
  return undefined;
}

export type Json = Readonly<Record<string, unknown>>;
