import { checkOptions, WatchError } from '../watch/errors.ts';
import type { WatchEvent } from '../watch/event.ts';

/** Converts between the bytes of a frame and an event. Implement it for formats other than JSON. */
export interface Codec<E> {
  /**
   * Returns the event in a frame, or undefined if the frame has none and should be skipped. The bytes are only valid during the
   * call and may be overwritten afterwards, so copy what you keep. Throws (by convention INVALID_FRAME) for a frame it cannot
   * read.
   */
  decode(frame: Uint8Array): E | undefined;
  /**
   * Whether a last line without a line end, which `decode` refused, is nevertheless whole, so that its error counts. If not, the end
   * of the stream cut it off, and it is dropped. Default: it is not.
   */
  isWhole?(frame: Uint8Array): boolean;
  /** Returns the frame of an event, as text. */
  encode?(event: E): string;
}

/** The codec that {@link jsonCodec} returns: every frame holds an event, and it can encode. */
export interface JsonCodec<E> extends Codec<E> {
  /**
   * Returns the event in a frame.
   *
   * @throws {WatchError} INVALID_FRAME for a frame that is not an event.
   */
  decode(frame: Uint8Array): E;
  /** Whether the frame closes every brace that it opens. The start of an event does not. */
  isWhole(frame: Uint8Array): boolean;
  /** Returns one line of JSON text, without a line terminator. Throws what `JSON.stringify` throws, for example for a cycle. */
  encode(event: E): string;
}

const EXCERPT_BYTES = 80;

/** Returns why a JSON value is not an event, or undefined if it is one. */
function faultOf(value: unknown, types: readonly string[] | undefined): string | undefined {
  if (!value || typeof value !== 'object') return 'not an object';
  const { type } = value as { type?: unknown };
  if (!type || typeof type !== 'string') return 'no "type"';
  if (!Object.hasOwn(value, 'object')) return 'no "object"';
  return !types || types.includes(type) ? undefined : `unknown type ${JSON.stringify(type.slice(0, EXCERPT_BYTES))}`;
}

/**
 * Creates a codec for events as JSON, `{"type":...,"object":...}`, as Kubernetes sends them. With `types` it refuses events of
 * other types; types are case-sensitive. Additional members of an event are kept, and a `__proto__` key is plain data. The shape
 * of `object` is not checked: the type parameter is the caller's claim.
 *
 * `decode` throws INVALID_FRAME for a frame that is not UTF-8, not JSON, nested deeper than 10,000 levels or not an event. The message
 * says which, and quotes the first 80 bytes.
 *
 * Numbers are read as `JSON.parse` reads them: an integer beyond 2^53 loses digits.
 *
 * Upstream: the watch decoder of `client-go/rest/watch`, which only knows the five types, and replaces bytes that are not
 * UTF-8, and halves of surrogate pairs, even escaped ones. Here an escaped half is kept, as `JSON.stringify` writes it again.
 */
export function jsonCodec<E extends WatchEvent = WatchEvent>(
  options: { types?: readonly E['type'][] | undefined } = {},
): JsonCodec<E> {
  const { types } = checkOptions(options, ['types']);
  const utf8 = new TextDecoder('utf-8', { fatal: true });
  return {
    decode: (frame) => {
      let fault: string | undefined = 'not UTF-8';
      let reason: { cause: unknown } | undefined;
      try {
        const text = utf8.decode(frame);
        fault = `nested deeper than ${MAX_DEPTH} levels`;
        if (isTooDeep(text)) throw new RangeError(fault);
        fault = 'not JSON';
        const value: unknown = JSON.parse(text);
        fault = faultOf(value, types);
        if (fault === undefined) return value as E;
      } catch (cause) {
        reason = { cause };
      }
      // Safe to print: control characters and incomplete UTF-8 sequences are replaced.
      const excerpt = new TextDecoder().decode(frame.subarray(0, EXCERPT_BYTES)).replace(/\p{C}/gu, '.');
      throw new WatchError('INVALID_FRAME', `bad frame, ${fault}: ${excerpt}`, reason);
    },
    isWhole: (frame) => {
      const unquoted = new TextDecoder()
        .decode(frame)
        .replace(/\\./gs, '')
        .replace(/"[^"]*("|$)/g, '');
      let depth = 0;
      for (const char of unquoted) depth += char === '{' ? 1 : char === '}' ? -1 : 0;
      return depth < 1;
    },
    // Built from its members, because JSON.stringify would omit an `object` of undefined, and the result would not be an event.
    encode: ({ type, object }) => `{"type":${JSON.stringify(type)},"object":${JSON.stringify(object) ?? 'null'}}`,
  };
}

/** The deepest nesting of objects and lists in a JSON text; as in Go, deeper texts are refused. */
export const MAX_DEPTH = 10_000;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
/** The bit that distinguishes a brace from a bracket. */
const BRACE = 0x20;
const OPENS = 0x7b;
const CLOSES = 0x7d;

/** How often a character occurs, counted up to one more than the limit. Far faster than looking at each character. */
function countOf(text: string, char: string, most: number): number {
  let count = 0;
  for (let at = text.indexOf(char); at >= 0 && count <= most; at = text.indexOf(char, at + 1)) count++;
  return count;
}

/**
 * Whether a JSON text is nested deeper than this many levels. `JSON.parse` accepts any depth, but code that walks through its
 * result, such as `JSON.stringify`, needs a stack. Looks at long texts only: each level takes two characters.
 */
export function isTooDeep(text: string, most: number = MAX_DEPTH): boolean {
  if (text.length <= 2 * most || countOf(text, '{', most) + countOf(text, '[', most) <= most) return false;
  let depth = 0;
  for (let at = 0; at < text.length; at++) {
    const char = text.charCodeAt(at);
    if (char === QUOTE) {
      for (let next = 0; at < text.length && next !== QUOTE; ) {
        next = text.charCodeAt(++at);
        if (next === BACKSLASH) at++;
      }
    } else if ((char | BRACE) === OPENS) {
      if (++depth > most) return true;
    } else if ((char | BRACE) === CLOSES) depth--;
  }
  return false;
}

/** Parses a JSON text. Throws a SyntaxError if it is not JSON, and INVALID_FRAME if it is nested too deep. */
export function parseJson(text: string): unknown {
  if (isTooDeep(text)) throw new WatchError('INVALID_FRAME', `nested deeper than ${MAX_DEPTH} levels`);
  return JSON.parse(text);
}
