import { WatchError } from '../watch/errors.ts';
import type { WatchEvent } from '../watch/event.ts';

/** Converts between the bytes of a frame and an event. Implement it for formats other than JSON. */
export interface Codec<E> {
  /**
   * Returns the event in a frame, or undefined if the frame has none and should be skipped. The bytes are only valid during the
   * call and may be overwritten afterwards, so copy what you keep. Throws (by convention INVALID_FRAME) for a frame it cannot
   * read.
   */
  decode(frame: Uint8Array): E | undefined;
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
  /** Returns one line of JSON text, without a line terminator. Throws what `JSON.stringify` throws, for example for a cycle. */
  encode(event: E): string;
}

const EXCERPT_BYTES = 80;

/** Quotes the start of the frame, safe to print: control characters and incomplete UTF-8 sequences are replaced. */
function invalidFrame(fault: string, frame: Uint8Array, cause?: unknown): WatchError {
  const excerpt = new TextDecoder().decode(frame.subarray(0, EXCERPT_BYTES)).replace(/\p{C}/gu, '.');
  return new WatchError('INVALID_FRAME', `bad frame, ${fault}: ${excerpt}`, cause === undefined ? undefined : { cause });
}

/** Returns why a JSON value is not an event, or undefined if it is one. */
function faultOf(value: unknown, types: readonly string[] | undefined): string | undefined {
  if (typeof value !== 'object' || value === null) return 'not an object';
  const { type } = value as { type?: unknown };
  if (typeof type !== 'string' || type === '') return 'no "type"';
  if (!Object.hasOwn(value, 'object')) return 'no "object"';
  return !types || types.includes(type) ? undefined : `unknown type ${JSON.stringify(type.slice(0, EXCERPT_BYTES))}`;
}

/**
 * Creates a codec for events as JSON, `{"type":...,"object":...}`, as Kubernetes sends them. With `types` it refuses events of
 * other types; types are case-sensitive. Additional members of an event are kept, and a `__proto__` key is plain data. The shape
 * of `object` is not checked: the type parameter is the caller's claim.
 *
 * `decode` throws INVALID_FRAME for a frame that is not UTF-8, not JSON or not an event. The message says which, and quotes the
 * first 80 bytes.
 *
 * Upstream: the watch decoder of `client-go/rest/watch`, which only knows the five types.
 */
export function jsonCodec<E extends WatchEvent = WatchEvent>(
  options: { types?: readonly E['type'][] | undefined } = {},
): JsonCodec<E> {
  const { types } = options;
  const utf8 = new TextDecoder('utf-8', { fatal: true });
  return {
    decode: (frame) => {
      let text: string | undefined;
      let value: unknown;
      try {
        text = utf8.decode(frame);
        value = JSON.parse(text);
      } catch (cause) {
        throw invalidFrame(text === undefined ? 'not UTF-8' : 'not JSON', frame, cause);
      }
      const fault = faultOf(value, types);
      if (fault !== undefined) throw invalidFrame(fault, frame);
      return value as E;
    },
    // Built from its members, because JSON.stringify would omit an `object` of undefined, and the result would not be an event.
    encode: ({ type, object }) => `{"type":${JSON.stringify(type)},"object":${JSON.stringify(object) ?? 'null'}}`,
  };
}
