/** The parts of etcd's messages that a storage needs. The numbers are those of etcd's `rpc.proto` and `kv.proto`. */
import { ProtoReader, ProtoWriter, sizeOfBytes, sizeOfInt64 } from './protobuf.ts';

/** What every answer begins with. */
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
  readonly lease: bigint;
}

/** Keys from `key` up to, but without, `end`. Without `end` it is one key. */
export interface KeyRange {
  readonly key: Uint8Array;
  readonly end?: Uint8Array | undefined;
}

export interface RangeRequest extends KeyRange {
  readonly limit?: number | undefined;
  readonly revision?: bigint | undefined;
  /** Whether the member may answer on its own, from what it has. */
  readonly serializable?: boolean | undefined;
  readonly keysOnly?: boolean | undefined;
  readonly countOnly?: boolean | undefined;
}

export interface RangeResponse {
  readonly header: Header;
  readonly kvs: readonly KeyValue[];
  readonly more: boolean;
  /** How many keys the range has, whatever the limit. */
  readonly count: number;
}

/** A write that happens only if the key's last revision is the expected one; 0 says that there must be nothing. */
export interface GuardedWrite {
  readonly key: Uint8Array;
  readonly expected: bigint;
  /** Absent: delete. */
  readonly put?: { readonly value: Uint8Array; readonly lease: bigint } | undefined;
}

export interface WriteResponse {
  readonly header: Header;
  readonly succeeded: boolean;
  /** What is there, if the write has not happened. */
  readonly current: KeyValue | undefined;
}

export interface WatchCreate extends KeyRange {
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
 * If the key's last revision is the expected one, the write; if not, a read of what is there. Every write is one of these, so it is
 * written in one go: sizes first, and the value is copied once.
 */
export function writeGuarded({ key, expected, put }: GuardedWrite): Uint8Array {
  const named = sizeOfBytes(key.length);
  // A comparison with EQUAL, which is 0. The one member of a `oneof` is written even if it is 0, but etcd takes a missing one for 0.
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

/** Asks for a watch whose responses are cut where they get too large. */
export function writeWatchCreate({ key, end, startRevision, previous }: WatchCreate): Uint8Array {
  const create = new ProtoWriter().bytes(1, key).bytes(2, end).int64(3, startRevision);
  return new ProtoWriter().message(1, create.bool(4, true).bool(6, previous).bool(8, true).finish()).finish();
}

/** Asks for a response without events, after all that are owed. */
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
  const kv = { key: NOTHING, createRevision: 0n, modRevision: 0n, value: NOTHING, lease: 0n };
  for (const reader = new ProtoReader(bytes); reader.next(); ) {
    if (reader.field === 1) kv.key = reader.bytes();
    else if (reader.field === 2) kv.createRevision = reader.int64();
    else if (reader.field === 3) kv.modRevision = reader.int64();
    else if (reader.field === 5) kv.value = reader.bytes();
    else if (reader.field === 6) kv.lease = reader.int64();
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

/** The range in the answer to one operation of a transaction, if it is one. */
function readRangeOf(bytes: Uint8Array): RangeResponse | undefined {
  let range: RangeResponse | undefined;
  for (const reader = new ProtoReader(bytes); reader.next(); ) {
    if (reader.field === 1) range = readRange(reader.bytes());
    else reader.skip();
  }
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

/** A lease, and for how many seconds it has been granted. */
export interface LeaseResponse {
  readonly header: Header;
  readonly id: bigint;
  readonly ttlSeconds: number;
}

export function readLease(bytes: Uint8Array): LeaseResponse {
  const lease = { header: NO_HEADER, id: 0n, ttlSeconds: 0 };
  for (const reader = new ProtoReader(bytes); reader.next(); ) {
    if (reader.field === 1) lease.header = readHeader(reader.bytes());
    else if (reader.field === 2) lease.id = reader.int64();
    else if (reader.field === 3) lease.ttlSeconds = Number(reader.int64());
    else reader.skip();
  }
  return lease;
}

/** The faults that a member reports with its status: its alarms, such as `memberID:1 alarm:NOSPACE`, and that it has no leader. */
export function readFaults(bytes: Uint8Array): readonly string[] {
  const faults: string[] = [];
  for (const reader = new ProtoReader(bytes); reader.next(); ) {
    if (reader.field === 8) faults.push(reader.text());
    else reader.skip();
  }
  return faults;
}

/** One text of a message: the version in a status, the token of an authentication. */
export function readText(bytes: Uint8Array): string {
  let text = '';
  for (const reader = new ProtoReader(bytes); reader.next(); ) {
    if (reader.field === 2) text = reader.text();
    else reader.skip();
  }
  return text;
}
