/**
 * Reads a list as it arrives, item by item. A server without pages sends 10,000 objects in one response; as text, that would be
 * in memory twice, in pieces and as a whole, in addition to the objects. It works on bytes, because text that is decoded piece
 * by piece may take two bytes per character, and twice as long to parse.
 *
 *     {"kind":"PodList","metadata":{...},"items":[{...},{...},{...}],"more":1}
 *     '------------------ frame ----------------' '---' '---' '---' '- frame -'
 *                                         each is parsed as soon as it is complete
 *
 * Invariants
 * - The result is what `JSON.parse` returns for the whole text; what it refuses is refused, and so is what is nested too deep. For
 *   that, each item must be valid by itself, with one comma between any two, and the frame must be valid with a number in their
 *   place. (If the frame has that number for `items` again, which no server sends, the items before it count.)
 * - It holds the frame, the bytes of one unfinished item, and the items. The cost of a list is proportional to its length,
 *   however it is cut.
 * - A text without such an array is all frame.
 */

import { parseJson } from '../../decode/codec.ts';
import { hold, joined } from '../../decode/framing.ts';

/** The bytes that structure JSON. */
export const QUOTE = 0x22;
export const COMMA = 0x2c;
export const COLON = 0x3a;
export const BACKSLASH = 0x5c;
export const OPEN_ARRAY = 0x5b;
export const CLOSE_ARRAY = 0x5d;
export const OPEN_OBJECT = 0x7b;
export const CLOSE_OBJECT = 0x7d;
const SPACE = 0x20;
const NAME: Uint8Array = new TextEncoder().encode('items');
/** Stands in the frame for the items. */
const PLACEHOLDER = 0;
const PLACEHOLDER_TEXT: Uint8Array = new TextEncoder().encode(`${PLACEHOLDER}`);

/** A byte order mark may stand before everything else, but not before an item. */
const UTF8: TextDecoder = new TextDecoder();
const ITEM_UTF8: TextDecoder = new TextDecoder('utf-8', { ignoreBOM: true });

/** What a byte does to the depth of the bytes after it. */
const DEEPER: Int8Array = new Int8Array(256);
DEEPER[OPEN_ARRAY] = DEEPER[OPEN_OBJECT] = 1;
DEEPER[CLOSE_ARRAY] = DEEPER[CLOSE_OBJECT] = -1;

/** Called with each item as it arrives, and with what precedes the items; the result replaces the item. */
type EachItem = (item: unknown, head: () => object) => unknown;

/** Reads a list from parts of its text. See the top of this file. */
export class ListReader {
  readonly #each: EachItem | undefined;
  readonly #items: unknown[] = [];
  readonly #frame: Uint8Array[] = [];
  /** The parts of the current item so far. */
  #parts: Uint8Array[] = [];
  #place: 'head' | 'items' | 'tail' = 'head';
  #depth: number = 0;
  #inText: boolean = false;
  #escaped: boolean = false;
  /** How much of the name the current text matches so far; NaN if it is a different text. */
  #matched: number = Number.NaN;
  /** The byte that must come next for the array of items to begin. */
  #due: number | undefined;

  constructor(each?: EachItem) {
    this.#each = each;
  }

  /** Takes the next part. Throws a SyntaxError for an item that is not JSON, and for a second value. */
  push(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length; ) {
      if (this.#place === 'head') at = this.#head(bytes);
      else if (this.#place === 'items') at = this.#item(bytes, at);
      else {
        hold(this.#frame, bytes.subarray(at));
        return;
      }
    }
  }

  /** Returns the list. Throws a SyntaxError if the text is not JSON, or incomplete. */
  end(): unknown {
    const value = parseJson(UTF8.decode(joined(this.#frame))) as { items?: unknown };
    if (this.#place === 'tail' && value.items === PLACEHOLDER) value.items = this.#items;
    return value;
  }

  /** Reads until the items begin. Returns where. */
  #head(bytes: Uint8Array): number {
    for (let at = 0; at < bytes.length; at++) {
      const code = bytes[at] as number;
      if (this.#inText || code === QUOTE) this.#passText(code);
      else if (code > SPACE) {
        if (code === this.#due && code === OPEN_ARRAY) {
          hold(this.#frame, bytes.subarray(0, at));
          hold(this.#frame, PLACEHOLDER_TEXT);
          this.#place = 'items';
          this.#depth = 0;
          return at + 1;
        }
        this.#due = code === this.#due ? OPEN_ARRAY : undefined;
        const step = DEEPER[code] as number;
        if (step > 0 && this.#depth < 0) throw new SyntaxError('a second value');
        this.#depth += step;
        if (step && this.#depth === 0) this.#depth = -1; // a value without items has ended
      }
    }
    hold(this.#frame, bytes);
    return bytes.length;
  }

  /** Within a string of the head, or at its beginning. */
  #passText(code: number): void {
    if (!this.#inText) {
      this.#inText = true;
      this.#matched = 0;
    } else if (this.#escaped) this.#escaped = false;
    else if (code === BACKSLASH) {
      this.#escaped = true;
      this.#matched = Number.NaN;
    } else if (code === QUOTE) {
      this.#inText = false;
      this.#due = this.#depth === 1 && this.#matched === NAME.length ? COLON : undefined;
    } else this.#matched = code === NAME[this.#matched] ? this.#matched + 1 : Number.NaN;
  }

  /** Reads an item, or as much of it as has arrived. Returns where the next one begins. */
  #item(bytes: Uint8Array, from: number): number {
    const { length } = bytes;
    let depth = this.#depth;
    let at = this.#inText ? this.#skipText(bytes, from) : from;
    while (at < length) {
      const code = bytes[at++] as number;
      if (code === QUOTE) at = this.#skipText(bytes, at);
      else if (code === COMMA || code === CLOSE_ARRAY || code === CLOSE_OBJECT) {
        if (depth === 0 && code !== CLOSE_OBJECT) {
          this.#take(bytes.subarray(from, at - 1), code === CLOSE_ARRAY);
          return at;
        }
        if (code !== COMMA) depth--;
      } else if (code === OPEN_OBJECT || code === OPEN_ARRAY) depth++;
    }
    hold(this.#parts, bytes.subarray(from));
    this.#depth = depth;
    return length;
  }

  /** Passes a string within an item, and returns where it ends. */
  #skipText(bytes: Uint8Array, from: number): number {
    const { length } = bytes;
    let at = from;
    if (this.#escaped && at < length) {
      this.#escaped = false;
      at++;
    }
    while (at < length) {
      const code = bytes[at++] as number;
      if (code === QUOTE) {
        this.#inText = false;
        return at;
      }
      if (code === BACKSLASH && ++at > length) this.#escaped = true;
    }
    this.#inText = true;
    return length;
  }

  /** What precedes the items. Throws a SyntaxError if that is not JSON. */
  readonly #readHead = (): object => JSON.parse(`${UTF8.decode(joined(this.#frame))}}`) as object;

  #take(rest: Uint8Array, isLast: boolean): void {
    this.#parts.push(rest);
    const text = ITEM_UTF8.decode(joined(this.#parts));
    this.#parts = [];
    this.#depth = 0;
    const isNone = isLast && this.#items.length === 0 && /^[ \t\n\r]*$/.test(text);
    if (!isNone) this.#items.push(this.#each ? this.#each(parseJson(text), this.#readHead) : parseJson(text));
    if (isLast) this.#place = 'tail';
  }
}
