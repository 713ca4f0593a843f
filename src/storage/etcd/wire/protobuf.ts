/**
 * The few kinds of protobuf fields that etcd's messages have: whole numbers and bytes, which also represent texts and messages.
 *
 *     message = field*       field = varint(number << 3 | kind) value       kind 0: varint; kind 2: varint(length) bytes
 *
 * A message from the wire may be hostile: every read is checked against the end of its message, and lengths cause no allocations,
 * because reads return views. Fields that are not needed are skipped, as protobuf demands.
 */
import { WatchError } from '../../../watch/errors.ts';

const VARINT = 0;
const FIXED64 = 1;
const BYTES = 2;
const FIXED32 = 5;
/** The longest varint: one of 64 bits. */
const MAX_VARINT_BYTES = 10;
/** Seven bytes hold 49 bits, which fit in a number. */
const SAFE_VARINT_BYTES = 7;
const SAFE_INTEGER = BigInt(Number.MAX_SAFE_INTEGER);

/** Writes one message. Numbers of 0, false and empty bytes are left out: they are the defaults. */
export class ProtoWriter {
  #bytes: Uint8Array;
  #length: number = 0;

  /** If the size of the message is known, it is written without being copied. */
  constructor(sizeBytes: number = 64) {
    this.#bytes = Buffer.allocUnsafe(sizeBytes);
  }

  /** A number of an int64 field. Negative ones take ten bytes. */
  int64(field: number, value: bigint | number): this {
    if (value === 0 || value === 0n) return this;
    this.#varint((field << 3) | VARINT);
    if (typeof value === 'number') this.#varint(value);
    else if (value > 0n && value <= SAFE_INTEGER) this.#varint(Number(value));
    else this.#varint64(BigInt.asUintN(64, value));
    return this;
  }

  bool(field: number, value: boolean | undefined): this {
    return this.int64(field, value ? 1 : 0);
  }

  bytes(field: number, value: Uint8Array | undefined): this {
    return value === undefined || value.length === 0 ? this : this.message(field, value);
  }

  /** Bytes that are written even if there are none: the presence of an empty message has a meaning. */
  message(field: number, value: Uint8Array): this {
    this.open(field, value.length);
    this.#reserve(value.length);
    this.#bytes.set(value, this.#length);
    this.#length += value.length;
    return this;
  }

  /** Begins a message of a known size. Its fields are written next. */
  open(field: number, sizeBytes: number): this {
    this.#varint((field << 3) | BYTES);
    this.#varint(sizeBytes);
    return this;
  }

  finish(): Uint8Array {
    return this.#bytes.subarray(0, this.#length);
  }

  #varint(value: number): void {
    this.#reserve(sizeOfNumber(value));
    let rest = value;
    for (; rest > 0x7f; rest = Math.floor(rest / 0x80)) this.#bytes[this.#length++] = (rest % 0x80) | 0x80;
    this.#bytes[this.#length++] = rest;
  }

  #varint64(value: bigint): void {
    this.#reserve(MAX_VARINT_BYTES);
    let rest = value;
    for (; rest > 0x7fn; rest >>= 7n) this.#bytes[this.#length++] = Number(rest & 0x7fn) | 0x80;
    this.#bytes[this.#length++] = Number(rest);
  }

  #reserve(more: number): void {
    if (this.#length + more <= this.#bytes.length) return;
    const larger = Buffer.allocUnsafe(Math.max(this.#bytes.length * 2, this.#length + more));
    larger.set(this.#bytes.subarray(0, this.#length));
    this.#bytes = larger;
  }
}

function sizeOfNumber(value: number): number {
  let size = 1;
  for (let rest = value; rest > 0x7f; rest = Math.floor(rest / 0x80)) size++;
  return size;
}

/** The size of an int64 field whose number is below 16; nothing for the default. */
export function sizeOfInt64(value: bigint): number {
  if (value === 0n) return 0;
  if (value > 0n && value <= SAFE_INTEGER) return 1 + sizeOfNumber(Number(value));
  let size = 2;
  for (let rest = BigInt.asUintN(64, value); rest > 0x7fn; rest >>= 7n) size++;
  return size;
}

/** The size of a field of `length` bytes whose number is below 16. */
export function sizeOfBytes(length: number): number {
  return 1 + sizeOfNumber(length) + length;
}

/** Reads one message, field by field. After {@link next}, exactly one value is read, or skipped. */
export class ProtoReader {
  /** The number of the field whose value comes next. */
  field: number = 0;
  readonly #bytes: Uint8Array;
  #at: number = 0;
  #kind: number = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  /** Goes to the next field. False at the end of the message. */
  next(): boolean {
    if (this.#at >= this.#bytes.length) return false;
    const tag = this.#varint();
    this.#kind = tag & 7;
    this.field = Math.floor(tag / 8);
    if (this.field === 0) throw broken('field 0');
    return true;
  }

  /** A number of an int64 field. */
  int64(): bigint {
    this.#expect(VARINT);
    const start = this.#at;
    const end = this.#endOfVarint();
    if (end - start <= SAFE_VARINT_BYTES) return BigInt(this.#varint());
    this.#at = end;
    // In parts that fit in a number: a bigint for each byte would cost more than all the rest of a message.
    const [low, middle, high] = [this.#bits(start, start + 4), this.#bits(start + 4, start + 8), this.#bits(start + 8, end)];
    return BigInt.asIntN(64, (BigInt(high) << 56n) | (BigInt(middle) << 28n) | BigInt(low));
  }

  bool(): boolean {
    return this.int64() !== 0n;
  }

  /** A view of the bytes of a field: of a text, of a message. */
  bytes(): Uint8Array {
    this.#expect(BYTES);
    const length = this.#varint();
    const start = this.#at;
    if (length > this.#bytes.length - start) throw broken('a field that is longer than its message');
    this.#at = start + length;
    return this.#bytes.subarray(start, this.#at);
  }

  text(): string {
    return decoder.decode(this.bytes());
  }

  skip(): void {
    if (this.#kind === VARINT) this.#at = this.#endOfVarint();
    else if (this.#kind === BYTES) this.bytes();
    else if (this.#kind === FIXED64) this.#pass(8);
    else if (this.#kind === FIXED32) this.#pass(4);
    else throw broken(`a field of kind ${this.#kind}`);
  }

  #pass(count: number): void {
    if (count > this.#bytes.length - this.#at) throw broken('a field that is longer than its message');
    this.#at += count;
  }

  #expect(kind: number): void {
    if (this.#kind !== kind) throw broken(`field ${this.field} of kind ${this.#kind}`);
  }

  #byteAt(at: number): number {
    const byte = this.#bytes[at];
    if (byte === undefined) throw broken('a message that ends within a number');
    return byte;
  }

  /** Where the next varint ends. */
  #endOfVarint(): number {
    for (let at = this.#at; at < this.#at + MAX_VARINT_BYTES; at++) if ((this.#byteAt(at) & 0x80) === 0) return at + 1;
    throw broken('a number that is too long');
  }

  /** The bits of a part of a varint, of eight bytes at most. */
  #bits(from: number, to: number): number {
    let value = 0;
    for (let at = to - 1; at >= from; at--) value = value * 0x80 + (this.#byteAt(at) & 0x7f);
    return value;
  }

  /** A varint that fits in a number: a tag, a length, or one that {@link int64} has checked. */
  #varint(): number {
    let value = 0;
    let scale = 1;
    for (let count = 0; count < SAFE_VARINT_BYTES; count++) {
      const byte = this.#byteAt(this.#at++);
      value += (byte & 0x7f) * scale;
      if ((byte & 0x80) === 0) return value;
      scale *= 0x80;
    }
    throw broken('a number that is too long');
  }
}

const decoder = new TextDecoder();

function broken(what: string): WatchError {
  return new WatchError('INVALID_FRAME', `etcd's answer cannot be read: it has ${what}`);
}
