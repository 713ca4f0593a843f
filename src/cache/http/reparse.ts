/**
 * Reads JSON that is mostly known already. An updated object differs from the one it replaces in a version and a few fields, and
 * an object of a new list often not at all; yet `JSON.parse` creates all of it again, and the garbage collector has to move what
 * is kept. So the bytes are compared with the known value:
 *
 *     known     { name: 'a', labels: L, phase: 'Pending' }
 *     bytes     {"name":"a","labels":{...},"phase":"Running"}
 *     result    { name: 'a', labels: L, phase: 'Running' }      L is the same object; with equal bytes, all of it is
 *
 * For frames that repeat, that costs what `JSON.parse` costs; for events about 5,000 objects that change in turn, it takes 18 to
 * 34 % less processor time, garbage collection included. `updates` of `npm run bench -- stack` measures it.
 *
 * Invariants:
 * - The result is what `JSON.parse` returns for the same bytes, whatever `known` is. It is used only where the bytes say the
 *   same, so it may even have been modified.
 * - `known` is not modified.
 * - Anything unusual is left to `JSON.parse`: escapes, numbers that are not integers, deep nesting, and anything that is not
 *   JSON, so that errors are those of `JSON.parse`.
 */
import { isTooDeep, MAX_DEPTH as MOST_LEVELS } from '../../decode/codec.ts';
import type { ObjectLookup } from '../list-watcher.ts';
import { BACKSLASH, CLOSE_ARRAY, CLOSE_OBJECT, COLON, COMMA, OPEN_ARRAY, OPEN_OBJECT, QUOTE } from './list-reader.ts';

const [ZERO, NINE, DOT, UPPER_E, LOWER_E] = [0x30, 0x39, 0x2e, 0x45, 0x65];
/** Deeper values are left to `JSON.parse`, which does not run out of stack. */
const MAX_DEPTH = 100;
/** Texts up to this length are read without `JSON.parse`, which takes longer to start. */
const SHORT = 100;
/** Integers with at most this many digits are exact. */
const MAX_DIGITS = 15;

/** The characters that stand unescaped in a string, and are one byte each. */
const PLAIN: Uint8Array = Uint8Array.from({ length: 256 }, (_, code) =>
  code >= 0x20 && code < 0x7f && code !== QUOTE && code !== BACKSLASH ? 1 : 0,
);

/** A byte order mark is not JSON, so it must not be dropped. */
const UTF8: TextDecoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Thrown for bytes that this cannot read. */
const UNUSUAL: unique symbol = Symbol('unusual');

type Members = Record<string, unknown>;

/** Reads bytes from a place on. Throws {@link UNUSUAL}, and what `JSON.parse` and a decoder of UTF-8 throw. */
export class Reparser {
  readonly #bytes: Uint8Array;
  at: number = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  value(known: unknown, depth: number): unknown {
    if (typeof known === 'string') return this.#isText(known) ? known : this.parsed();
    if (typeof known === 'number') return this.#isInteger(known) ? known : this.parsed();
    if (typeof known !== 'object' || known === null) return this.#isLiteral(known) ? known : this.parsed();
    if (depth > MAX_DEPTH) return this.parsed();
    return Array.isArray(known) ? this.#array(known, depth + 1) : this.#object(known as Members, depth + 1);
  }

  /** Passes a byte, which must be this one. */
  expect(byte: number): void {
    if (this.#bytes[this.at++] !== byte) throw UNUSUAL;
  }

  /** Passes a value that is not known. */
  parsed(): unknown {
    const from = this.at;
    const end = this.#plainEnd();
    if (end - from <= SHORT) {
      this.at = end + 1;
      return String.fromCharCode.apply(undefined, this.#bytes.subarray(from + 1, end) as unknown as number[]);
    }
    this.skip();
    const text = UTF8.decode(this.#bytes.subarray(from, this.at));
    // Together with its parents, it may be nested too deep: the decoder decides.
    if (isTooDeep(text, MOST_LEVELS - MAX_DEPTH - 2)) throw UNUSUAL;
    return JSON.parse(text);
  }

  /** Passes a value without checking whether it is valid. */
  skip(): void {
    const bytes = this.#bytes;
    let depth = 0;
    do {
      const byte = bytes[this.at];
      if (byte === undefined) throw UNUSUAL;
      if (byte === QUOTE) this.#skipText();
      else if (byte === OPEN_OBJECT || byte === OPEN_ARRAY) {
        depth++;
        this.at++;
      } else if (byte === CLOSE_OBJECT || byte === CLOSE_ARRAY) {
        if (--depth < 0) throw UNUSUAL;
        this.at++;
      } else if (byte === COMMA || byte === COLON) this.at++;
      else this.#skipBare();
    } while (depth > 0);
  }

  /** Passes a name and its colon, and returns the name. */
  name(): string {
    if (this.#bytes[this.at] !== QUOTE) throw UNUSUAL;
    const name = this.parsed() as string;
    // Assigning to it would set the prototype.
    if (name === '__proto__') throw UNUSUAL;
    this.expect(COLON);
    return name;
  }

  /** Passes a comma, or the end. Returns whether there is more. */
  more(end: number): boolean {
    const byte = this.#bytes[this.at++];
    if (byte !== COMMA && byte !== end) throw UNUSUAL;
    return byte === COMMA;
  }

  /** Passes the end of an object or array that is empty. */
  empty(end: number): boolean {
    if (this.#bytes[this.at] !== end) return false;
    this.at++;
    return true;
  }

  /** Passes a name, its colon and its value. */
  skipMember(): void {
    if (this.#bytes[this.at] !== QUOTE) throw UNUSUAL;
    this.#skipText();
    this.expect(COLON);
    this.skip();
  }

  #skipText(): void {
    const bytes = this.#bytes;
    let at = this.at + 1;
    for (let byte = bytes[at]; byte !== QUOTE; byte = bytes[at]) {
      if (byte === undefined) throw UNUSUAL;
      at += byte === BACKSLASH ? 2 : 1;
    }
    this.at = at + 1;
  }

  /** Passes a number or a literal, up to the first byte that can end it. */
  #skipBare(): void {
    const bytes = this.#bytes;
    let at = this.at;
    for (let byte = bytes[at]; byte !== undefined && byte !== COMMA && byte !== CLOSE_ARRAY && byte !== CLOSE_OBJECT; ) {
      byte = bytes[++at];
    }
    if (at === this.at) throw UNUSUAL;
    this.at = at;
  }

  /** Passes this text, if it is here, in ASCII. Most of the time is spent in this method. */
  #isText(known: string): boolean {
    const bytes = this.#bytes;
    const from = this.at + 1;
    const end = from + known.length;
    if (bytes[this.at] !== QUOTE) return false;
    for (let at = from; at < end; at++) {
      const byte = bytes[at] as number;
      if (byte !== known.charCodeAt(at - from) || PLAIN[byte] !== 1) return byte === BACKSLASH && this.#isEscaped(known);
    }
    if (bytes[end] !== QUOTE) return false;
    this.at = end + 1;
    return true;
  }

  /** The same for a text with quotes or backslashes. */
  #isEscaped(known: string): boolean {
    const bytes = this.#bytes;
    let at = this.at + 1;
    for (let i = 0; i < known.length; i++) {
      const code = known.charCodeAt(i);
      if (code === QUOTE || code === BACKSLASH) {
        if (bytes[at++] !== BACKSLASH) return false;
      } else if (PLAIN[code] !== 1) return false;
      if (bytes[at++] !== code) return false;
    }
    if (bytes[at] !== QUOTE) return false;
    this.at = at + 1;
    return true;
  }

  /** Passes this name and its colon. */
  isName(known: string): boolean {
    const from = this.at;
    if (this.#isText(known)) this.expect(COLON);
    else if (this.#plainEnd() >= 0 || this.name() !== known) {
      this.at = from;
      return false;
    }
    return true;
  }

  /** Where the text at this place ends, if it is ASCII without escapes; otherwise NaN. */
  #plainEnd(): number {
    const bytes = this.#bytes;
    if (bytes[this.at] !== QUOTE) return Number.NaN;
    let at = this.at + 1;
    while (PLAIN[bytes[at] as number] === 1) at++;
    return bytes[at] === QUOTE ? at : Number.NaN;
  }

  #isLiteral(known: unknown): boolean {
    const text = known === true ? 'true' : known === false ? 'false' : known === null ? 'null' : undefined;
    if (text === undefined) return false;
    for (let i = 0; i < text.length; i++) if (this.#bytes[this.at + i] !== text.charCodeAt(i)) return false;
    const end = this.#bytes[this.at + text.length];
    if (end !== COMMA && end !== CLOSE_OBJECT && end !== CLOSE_ARRAY) return false;
    this.at += text.length;
    return true;
  }

  #isInteger(known: number): boolean {
    const bytes = this.#bytes;
    const from = this.at;
    let at = from;
    let value = 0;
    let byte = bytes[at] as number;
    for (; byte >= ZERO && byte <= NINE; byte = bytes[++at] as number) value = value * 10 + byte - ZERO;
    if (at === from || at - from > MAX_DIGITS || !Object.is(value, known)) return false;
    if (byte === DOT || byte === UPPER_E || byte === LOWER_E || (bytes[from] === ZERO && at - from > 1)) return false;
    this.at = at;
    return true;
  }

  #array(known: readonly unknown[], depth: number): unknown {
    if (this.#bytes[this.at] !== OPEN_ARRAY) return this.parsed();
    this.at++;
    let made: unknown[] | undefined;
    let count = 0;
    if (!this.empty(CLOSE_ARRAY)) {
      do {
        const before = known[count];
        const value = this.value(before, depth);
        if (!made && (count >= known.length || !Object.is(value, before))) made = known.slice(0, count);
        made?.push(value);
        count++;
      } while (this.more(CLOSE_ARRAY));
    }
    return made ?? (count === known.length ? known : known.slice(0, count));
  }

  /** As long as the names are those of the known object, in its order, nothing is created unless a value differs. */
  #object(known: Members, depth: number): unknown {
    if (this.#bytes[this.at] !== OPEN_OBJECT) return this.parsed();
    this.at++;
    let made: Members | undefined;
    let count = 0;
    let isMore = !this.empty(CLOSE_OBJECT);
    for (const name in known) {
      if (!isMore || !this.isName(name)) {
        made = first(count, made ?? known);
        break;
      }
      const before = known[name];
      const value = this.value(before, depth);
      if (!Object.is(value, before)) {
        made ??= { ...known };
        made[name] = value;
      }
      count++;
      isMore = this.more(CLOSE_OBJECT);
    }
    if (!isMore) return made ?? known;
    return this.#rest(made ?? { ...known }, known, depth);
  }

  /**
   * Other names, or another order: members with the same name may still be the same. Continues where the names began to differ:
   * reading the object again would double the work with each level.
   */
  #rest(made: Members, known: Members, depth: number): unknown {
    do {
      const name = this.name();
      made[name] = this.value(Object.hasOwn(known, name) ? known[name] : undefined, depth);
    } while (this.more(CLOSE_OBJECT));
    return made;
  }
}

function first(count: number, members: Members): Members {
  const some: Members = {};
  let left = count;
  for (const name in members) {
    if (left-- === 0) break;
    if (name === '__proto__') throw UNUSUAL;
    some[name] = members[name];
  }
  return some;
}

/**
 * Reads an event about an object that is already stored, and shares with it the parts that are the same. The event has the
 * members `type` and `object`, in this order and without white space, as servers write it. Returns undefined if it is different,
 * or if no such object is stored: then another decoder reads it.
 */
export function readStored(
  frame: Uint8Array,
  stored: ObjectLookup,
): { readonly type: string; readonly object: unknown } | undefined {
  const reader = new Reparser(frame);
  try {
    reader.expect(OPEN_OBJECT);
    if (!reader.isName('type')) return undefined;
    const type = reader.parsed();
    reader.expect(COMMA);
    if (typeof type !== 'string' || !reader.isName('object')) return undefined;
    const from = reader.at;
    const before = storedOf(reader, stored);
    if (before === undefined) return undefined;
    reader.at = from;
    const object = reader.value(before, 0);
    reader.expect(CLOSE_OBJECT);
    return reader.at === frame.length ? { type, object } : undefined;
  } catch (error) {
    if (error === UNUSUAL || error instanceof SyntaxError || error instanceof TypeError) return undefined;
    throw error;
  }
}

/** Finds the name and the namespace in the metadata; Kubernetes writes them near its beginning. */
function storedOf(reader: Reparser, stored: ObjectLookup): unknown {
  let [name, namespace] = ['', ''];
  reader.expect(OPEN_OBJECT);
  if (!passTo(reader, 'metadata')) return undefined;
  reader.expect(OPEN_OBJECT);
  if (reader.empty(CLOSE_OBJECT)) return undefined;
  do {
    if (reader.isName('name')) name = String(reader.parsed());
    else if (reader.isName('namespace')) namespace = String(reader.parsed());
    else reader.skipMember();
  } while (!(name && namespace) && reader.more(CLOSE_OBJECT));
  return name ? stored(name, namespace) : undefined;
}

/** Passes members until this one, whose value is next. */
function passTo(reader: Reparser, wanted: string): boolean {
  if (reader.empty(CLOSE_OBJECT)) return false;
  do {
    if (reader.isName(wanted)) return true;
    reader.skipMember();
  } while (reader.more(CLOSE_OBJECT));
  return false;
}
