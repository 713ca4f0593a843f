import { WatchError } from '../watch/errors.ts';
import type { WatchEvent } from '../watch/event.ts';

/** Between a frame's bytes and an event. Write your own for other formats. */
export interface Codec<E> {
  /**
   * The event in a frame; undefined for a frame that bears none, which is then passed over. The bytes are lent: they may be
   * overwritten after the call, so copy what you keep. Throws (INVALID_FRAME, by custom) for a frame that it cannot read.
   */
  decode(frame: Uint8Array): E | undefined;
  /** The frame of an event, as text. */
  encode?(event: E): string;
}

/** What {@link jsonCodec} gives: every frame bears an event, and it encodes, too. */
export interface JsonCodec<E> extends Codec<E> {
  /** The event in a frame, or INVALID_FRAME. */
  decode(frame: Uint8Array): E;
  /** One line of JSON text without a line end. Throws what `JSON.stringify` throws, for a cycle or a bigint. */
  encode(event: E): string;
}

const EXCERPT_BYTES = 80;

/** Quotes the start of the frame, safe to print: control characters and what a cut tore apart are replaced. */
function invalidFrame(fault: string, frame: Uint8Array, cause?: unknown): WatchError {
  const excerpt = new TextDecoder().decode(frame.subarray(0, EXCERPT_BYTES)).replace(/\p{C}/gu, '.');
  return new WatchError('INVALID_FRAME', `bad frame, ${fault}: ${excerpt}`, cause === undefined ? undefined : { cause });
}

/** What keeps a JSON value from being an event, or undefined. */
function faultOf(value: unknown, types: readonly string[] | undefined): string | undefined {
  if (typeof value !== 'object' || value === null) return 'not an object';
  const { type } = value as { type?: unknown };
  if (typeof type !== 'string' || type === '') return 'no "type"';
  if (!Object.hasOwn(value, 'object')) return 'no "object"';
  return !types || types.includes(type) ? undefined : `unknown type ${JSON.stringify(type.slice(0, EXCERPT_BYTES))}`;
}

/**
 * Events as JSON, `{"type":...,"object":...}`: what Kubernetes sends. With `types`, an event of any other type is refused; they
 * are case-sensitive. Other members of an event are kept; a `__proto__` key is plain data. The shape of `object` is not checked:
 * the type parameter is the caller's word for it.
 *
 * Refuses with INVALID_FRAME what is not UTF-8, not JSON or not an event; the message says which and quotes the first 80 bytes.
 *
 * Upstream: the watch decoder of `client-go/rest/watch`, which knows the five types only.
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
    // Written by member, as an `object` of undefined would vanish and leave something that is no event.
    encode: ({ type, object }) => `{"type":${JSON.stringify(type)},"object":${JSON.stringify(object) ?? 'null'}}`,
  };
}
