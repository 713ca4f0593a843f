/**
 * Reads protobuf by a description of its fields. Unknown fields are skipped, as protobuf demands. Every length is checked against
 * the bytes that are there, and messages are nested no deeper than their descriptions.
 */
import { badRequest } from '../../storage/statuses.ts';

/** The type of a field: a value, or a message. A list has each occurrence of it; a map is a list of keys and values. */
type FieldKind = 'text' | 'base64' | 'number' | 'flag' | MessageKind;
export type Field = readonly [name: string, kind: FieldKind] | readonly [name: string, kind: FieldKind, many: 'list' | 'map'];

/** The fields of a message by their numbers, and the conversion of the result. */
export interface MessageKind {
  readonly fields: Readonly<Record<number, Field>>;
  readonly finish?: ((message: Record<string, unknown>) => unknown) | undefined;
}

const [VARINT, FIXED64, BYTES, FIXED32] = [0, 1, 2, 5] as const;
const utf8 = new TextDecoder('utf-8', { fatal: true });

/** Reads a message. Throws 400 for invalid bytes. */
export function readMessage(bytes: Uint8Array, kind: MessageKind): unknown {
  const message: Record<string, unknown> = {};
  const reader = new Reader(bytes);
  while (reader.more) {
    const tag = reader.varint();
    const [number, wire] = [Math.floor(tag / 8), tag % 8];
    if (number < 1) throw broken('a field has no number');
    const field = Object.hasOwn(kind.fields, number) ? kind.fields[number] : undefined;
    if (field === undefined) reader.skip(wire);
    else put(message, field, readField(reader, wire, field));
  }
  return kind.finish ? kind.finish(message) : message;
}

function readField(reader: Reader, wire: number, [name, kind, many]: Field): unknown {
  const numeric = kind === 'number' || kind === 'flag';
  if (wire !== (numeric ? VARINT : BYTES)) throw broken(`${name} has another type`);
  if (kind === 'number') return reader.varint();
  if (kind === 'flag') return reader.varint() !== 0;
  const bytes = reader.bytes();
  if (many === 'map') return readMessage(bytes, { fields: { 1: ['key', 'text'], 2: ['value', kind] } });
  return typeof kind === 'string' ? toText(bytes, kind) : readMessage(bytes, kind);
}

function put(message: Record<string, unknown>, [name, kind, many]: Field, value: unknown): void {
  if (many === undefined) {
    // A zero time has no value.
    if (value !== undefined) message[name] = value;
  } else if (many === 'list') {
    const list = (message[name] ?? []) as unknown[];
    list.push(value);
    message[name] = list;
  } else {
    const values = (message[name] ?? {}) as Record<string, unknown>;
    const { key = '', value: own = kind === 'text' || kind === 'base64' ? '' : undefined } = value as {
      key?: string;
      value?: unknown;
    };
    // A key may be `__proto__`.
    Object.defineProperty(values, key, { value: own, enumerable: true, configurable: true, writable: true });
    message[name] = values;
  }
}

function toText(bytes: Uint8Array, kind: 'text' | 'base64' | 'number' | 'flag'): string {
  if (kind === 'base64') return toBase64(bytes);
  try {
    return utf8.decode(bytes);
  } catch {
    throw broken('a text is not UTF-8');
  }
}

/** In parts, because a call takes a limited number of arguments. Not with Buffer, which other hosts lack. */
function toBase64(bytes: Uint8Array): string {
  let text = '';
  for (let at = 0; at < bytes.length; at += 8_192) text += String.fromCharCode(...bytes.subarray(at, at + 8_192));
  return btoa(text);
}

class Reader {
  readonly #bytes: Uint8Array;
  #at: number = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  get more(): boolean {
    return this.#at < this.#bytes.length;
  }

  /** A signed integer of 64 bits, in two halves. Beyond 2^53 it is not exact. */
  varint(): number {
    let [low, high] = [0, 0];
    for (let shift = 0; shift < 70; shift += 7) {
      const byte = this.#bytes[this.#at++];
      if (byte === undefined) throw broken('it ends within a number');
      const bits = byte & 127;
      if (shift < 32) low |= bits << shift;
      if (shift > 25) high |= shift < 32 ? bits >> (32 - shift) : bits << (shift - 32);
      if (byte < 128) return high * 2 ** 32 + (low >>> 0);
    }
    throw broken('a number is too long');
  }

  bytes(): Uint8Array {
    const length = this.varint();
    if (length < 0 || length > this.#bytes.length - this.#at) throw broken('it ends within a value');
    this.#at += length;
    return this.#bytes.subarray(this.#at - length, this.#at);
  }

  skip(wire: number): void {
    if (wire === VARINT) this.varint();
    else if (wire === BYTES) this.bytes();
    else if (wire === FIXED64) this.#at += 8;
    else if (wire === FIXED32) this.#at += 4;
    else throw broken('it has an unknown type of value');
    if (this.#at > this.#bytes.length) throw broken('it ends within a value');
  }
}

function broken(why: string): Error {
  return badRequest(`the body is not protobuf of this kind: ${why}`);
}
