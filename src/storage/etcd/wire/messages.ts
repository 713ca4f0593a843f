/**
 * The two kinds of protobuf fields that etcd's messages have: integers, and bytes, which also represent strings and messages.
 *
 *     message = field*       field = varint(number << 3 | kind) value       kind 0: varint; kind 2: varint(length) bytes
 *
 * A message from the wire may be hostile: every read is checked against the end of its message, and lengths cause no allocations,
 * because reads return views. Fields that are not needed are skipped, as protobuf requires.
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

  /** If the size of the message is given, it is written without being copied. */
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

  /** Bytes that are written even if there are none, as the presence of an empty message has a meaning. */
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
    // In parts that fit in a number: a bigint for each byte would cost more than the rest of a message.
    const [low, middle, high] = [this.#bits(start, start + 4), this.#bits(start + 4, start + 8), this.#bits(start + 8, end)];
    return BigInt.asIntN(64, (BigInt(high) << 56n) | (BigInt(middle) << 28n) | BigInt(low));
  }

  bool(): boolean {
    return this.int64() !== 0n;
  }

  /** A view of the bytes of a field, such as a string or a message. */
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

/** The parts of etcd's messages that a storage needs. The numbers are those of etcd's `rpc.proto` and `kv.proto`. */

/** The header of every answer. */
export interface Header {
  readonly clusterId: bigint;
  readonly revision: bigint;
  readonly term: bigint;
}

/** What is stored under a key. */
export interface KeyValue {
  readonly key: Uint8Array;
  readonly createRevision: bigint;
  readonly modRevision: bigint;
  readonly value: Uint8Array;
}

/** Keys from `key` up to, but without, `end`. Without `end` it is one key. */
interface KeyRange {
  readonly key: Uint8Array;
  readonly end?: Uint8Array | undefined;
}

export interface RangeRequest extends KeyRange {
  readonly limit?: number | undefined;
  readonly revision?: bigint | undefined;
  /** Whether the member may answer alone, from its own state. */
  readonly serializable?: boolean | undefined;
  readonly keysOnly?: boolean | undefined;
  readonly countOnly?: boolean | undefined;
}

export interface RangeResponse {
  readonly header: Header;
  readonly kvs: readonly KeyValue[];
  readonly more: boolean;
  /** How many keys the range has, regardless of the limit. */
  readonly count: number;
}

/** A write that happens only if the key's last revision is the expected one; 0: the key must not exist. */
interface GuardedWrite {
  readonly key: Uint8Array;
  readonly expected: bigint;
  /** Absent: delete. */
  readonly put?: { readonly value: Uint8Array; readonly lease: bigint } | undefined;
}

export interface WriteResponse {
  readonly header: Header;
  readonly succeeded: boolean;
  /** The current value, if the write has not happened. */
  readonly current: KeyValue | undefined;
}

interface WatchCreate extends KeyRange {
  readonly startRevision: bigint;
  /** Whether changes come with the previous value. */
  readonly previous: boolean;
}

/** A change of a key: a put, or a deletion, whose `kv` has only the key and the revision. */
export interface KeyEvent {
  readonly deleted: boolean;
  readonly kv: KeyValue;
  readonly previous: KeyValue | undefined;
}

export interface WatchResponse {
  readonly header: Header;
  readonly created: boolean;
  readonly canceled: boolean;
  readonly compactRevision: bigint;
  readonly cancelReason: string;
  /** Whether more events of the last revision may follow in the next response. */
  readonly fragment: boolean;
  readonly events: readonly KeyEvent[];
}

const MOD = 2n;
const NOTHING: Uint8Array = new Uint8Array(0);
const NO_HEADER: Header = { clusterId: 0n, revision: 0n, term: 0n };
const encoder = new TextEncoder();

export function writeRange({ key, end, limit = 0, revision = 0n, serializable, keysOnly, countOnly }: RangeRequest): Uint8Array {
  const writer = new ProtoWriter().bytes(1, key).bytes(2, end).int64(3, limit).int64(4, revision);
  return writer.bool(7, serializable).bool(8, keysOnly).bool(9, countOnly).finish();
}

/**
 * If the key's last revision is the expected one, the write; if not, a read of the current value. Every write is one of these, so
 * it is encoded in one go: sizes first, and the value is copied once.
 */
export function writeGuarded({ key, expected, put }: GuardedWrite): Uint8Array {
  const named = sizeOfBytes(key.length);
  // A comparison with EQUAL, which is 0. A `oneof`'s member is written even if 0, but etcd reads a missing one as 0.
  const guard = sizeOfInt64(MOD) + named + sizeOfInt64(expected);
  const inner = named + (put ? sizeOfValue(put.value) + sizeOfInt64(put.lease) : 0);
  const operation = sizeOfBytes(inner);
  const otherwise = sizeOfBytes(named);
  const writer = new ProtoWriter(sizeOfBytes(guard) + sizeOfBytes(operation) + sizeOfBytes(otherwise));
  writer.open(1, guard).int64(2, MOD).message(3, key).int64(6, expected);
  writer.open(2, operation);
  if (put) writer.open(2, inner).message(1, key).bytes(2, put.value).int64(3, put.lease);
  else writer.open(3, inner).message(1, key);
  return writer.open(3, otherwise).open(1, named).message(1, key).finish();
}

function sizeOfValue({ length }: Uint8Array): number {
  return length === 0 ? 0 : sizeOfBytes(length);
}

/** Asks for a watch whose large responses are split. */
export function writeWatchCreate({ key, end, startRevision, previous }: WatchCreate): Uint8Array {
  const create = new ProtoWriter().bytes(1, key).bytes(2, end).int64(3, startRevision);
  return new ProtoWriter().message(1, create.bool(4, true).bool(6, previous).bool(8, true).finish()).finish();
}

/** Asks for a response without events, after all pending events. */
export function writeWatchProgress(): Uint8Array {
  return new ProtoWriter().message(3, NOTHING).finish();
}

export function writeLeaseGrant(ttlSeconds: number): Uint8Array {
  return new ProtoWriter().int64(1, ttlSeconds).finish();
}

export function writeAuthenticate(user: string, password: string): Uint8Array {
  return new ProtoWriter().bytes(1, encoder.encode(user)).bytes(2, encoder.encode(password)).finish();
}

function readHeader(bytes: Uint8Array): Header {
  const header = { clusterId: 0n, revision: 0n, term: 0n };
  for (const reader = new ProtoReader(bytes); reader.next(); ) {
    if (reader.field === 1) header.clusterId = reader.int64();
    else if (reader.field === 3) header.revision = reader.int64();
    else if (reader.field === 4) header.term = reader.int64();
    else reader.skip();
  }
  return header;
}

function readKeyValue(bytes: Uint8Array): KeyValue {
  const kv = { key: NOTHING, createRevision: 0n, modRevision: 0n, value: NOTHING };
  for (const reader = new ProtoReader(bytes); reader.next(); ) {
    if (reader.field === 1) kv.key = reader.bytes();
    else if (reader.field === 2) kv.createRevision = reader.int64();
    else if (reader.field === 3) kv.modRevision = reader.int64();
    else if (reader.field === 5) kv.value = reader.bytes();
    else reader.skip();
  }
  return kv;
}

export function readRange(bytes: Uint8Array): RangeResponse {
  const kvs: KeyValue[] = [];
  const rest = { header: NO_HEADER, more: false, count: 0 };
  for (const reader = new ProtoReader(bytes); reader.next(); ) {
    if (reader.field === 1) rest.header = readHeader(reader.bytes());
    else if (reader.field === 2) kvs.push(readKeyValue(reader.bytes()));
    else if (reader.field === 3) rest.more = reader.bool();
    else if (reader.field === 4) rest.count = Number(reader.int64());
    else reader.skip();
  }
  return { ...rest, kvs };
}

export function readWrite(bytes: Uint8Array): WriteResponse {
  let header = NO_HEADER;
  let succeeded = false;
  let current: KeyValue | undefined;
  for (const reader = new ProtoReader(bytes); reader.next(); ) {
    if (reader.field === 1) header = readHeader(reader.bytes());
    else if (reader.field === 2) succeeded = reader.bool();
    else if (reader.field === 3) current = readRangeOf(reader.bytes())?.kvs[0] ?? current;
    else reader.skip();
  }
  return { header, succeeded, current };
}

/** Goes to each value of one field, and skips the others. */
function* valuesOf(bytes: Uint8Array, field: number): Generator<ProtoReader, void> {
  for (const reader = new ProtoReader(bytes); reader.next(); ) {
    if (reader.field === field) yield reader;
    else reader.skip();
  }
}

/** The range in the answer to one operation of a transaction, if it is one. */
function readRangeOf(bytes: Uint8Array): RangeResponse | undefined {
  let range: RangeResponse | undefined;
  for (const reader of valuesOf(bytes, 1)) range = readRange(reader.bytes());
  return range;
}

function readEvent(bytes: Uint8Array): KeyEvent {
  let deleted = false;
  let kv: KeyValue | undefined;
  let previous: KeyValue | undefined;
  for (const reader = new ProtoReader(bytes); reader.next(); ) {
    if (reader.field === 1) deleted = reader.int64() === 1n;
    else if (reader.field === 2) kv = readKeyValue(reader.bytes());
    else if (reader.field === 3) previous = readKeyValue(reader.bytes());
    else reader.skip();
  }
  return { deleted, kv: kv ?? readKeyValue(NOTHING), previous };
}

export function readWatch(bytes: Uint8Array): WatchResponse {
  const events: KeyEvent[] = [];
  const rest = { header: NO_HEADER, created: false, canceled: false, compactRevision: 0n, cancelReason: '', fragment: false };
  for (const reader = new ProtoReader(bytes); reader.next(); ) {
    if (reader.field === 1) rest.header = readHeader(reader.bytes());
    else if (reader.field === 3) rest.created = reader.bool();
    else if (reader.field === 4) rest.canceled = reader.bool();
    else if (reader.field === 5) rest.compactRevision = reader.int64();
    else if (reader.field === 6) rest.cancelReason = reader.text();
    else if (reader.field === 7) rest.fragment = reader.bool();
    else if (reader.field === 11) events.push(readEvent(reader.bytes()));
    else reader.skip();
  }
  return { ...rest, events };
}

/** The number of the lease that has been granted. */
export function readLease(bytes: Uint8Array): bigint {
  let id = 0n;
  for (const reader of valuesOf(bytes, 2)) id = reader.int64();
  return id;
}

/** The faults that a member reports with its status: its alarms, such as `memberID:1 alarm:NOSPACE`, or that it has no leader. */
export function readFaults(bytes: Uint8Array): readonly string[] {
  return Array.from(valuesOf(bytes, 8), (reader) => reader.text());
}

/** One string of a message: the version in a status, the token of an authentication. */
export function readText(bytes: Uint8Array): string {
  let text = '';
  for (const reader of valuesOf(bytes, 2)) text = reader.text();
  return text;
}
