/**
 * The frames of a journal file. Each is one group of writes, written and fsynced before the next. So when a process or a machine
 * dies, at most the last frame is broken; a broken one that another follows is damage, and its content must not be guessed.
 *
 *     | F5 57 4D 4A | length | checksum of body | checksum of these 12 bytes | body ... |
 *       no text in UTF-8 has the first byte, so no body looks like a frame
 *
 * | what is found at the place of a frame | it is |
 * |---|---|
 * | less than a head; or a whole head, and less than its body: the file ends there | torn |
 * | nothing but zeros to the end of the file; or a sector of zeros at the place of the head, and no frame after it | torn |
 * | a body with a wrong checksum that ends the file, and has a sector of zeros: it never reached the disk | torn |
 * | anything else | corrupt |
 */

import * as zlib from 'node:zlib';

/** The bytes before a body. */
export const HEAD_BYTES = 16;
const MARK = Uint8Array.of(0xf5, 0x57, 0x4d, 0x4a);
/** The unit in which a disk writes. */
const SECTOR = 512;

/** A body, preceded by its header. */
export function toFrame(body: Uint8Array): Uint8Array {
  const frame = new Uint8Array(HEAD_BYTES + body.byteLength);
  const view = new DataView(frame.buffer);
  frame.set(MARK);
  view.setUint32(4, body.byteLength);
  view.setUint32(8, crc32(body));
  view.setUint32(12, crc32(frame.subarray(0, 12)));
  frame.set(body, HEAD_BYTES);
  return frame;
}

/** A body and where it ends, or what was found instead. */
export type Found = { readonly body: Uint8Array; readonly end: number } | 'end' | 'torn' | 'corrupt';

/** What is at a place of a file. */
export function frameAt(file: Uint8Array, at: number): Found {
  const rest = file.subarray(at);
  if (rest.byteLength === 0) return 'end';
  if (rest.byteLength < HEAD_BYTES) return 'torn';
  const view = new DataView(rest.buffer, rest.byteOffset, rest.byteLength);
  if (!hasHead(rest, view)) return isUnwritten(file, at) ? 'torn' : 'corrupt';
  const end = HEAD_BYTES + view.getUint32(4);
  if (end > rest.byteLength) return 'torn';
  const body = rest.subarray(HEAD_BYTES, end);
  if (crc32(body) === view.getUint32(8)) return { body, end: at + end };
  const isLast = isZero(rest.subarray(end));
  return isLast && hasEmptySector(file, at, at + end) ? 'torn' : 'corrupt';
}

function hasHead(rest: Uint8Array, view: DataView): boolean {
  return MARK.every((byte, index) => rest[index] === byte) && crc32(rest.subarray(0, 12)) === view.getUint32(12);
}

/** Whether no header reached the disk at this place, and no frame follows. */
function isUnwritten(file: Uint8Array, at: number): boolean {
  const rest = file.subarray(at);
  if (!isZero(rest.subarray(0, SECTOR - (at % SECTOR)))) return false;
  for (let mark = rest.indexOf(MARK[0] as number); mark >= 0; mark = rest.indexOf(MARK[0] as number, mark + 1)) {
    const found = rest.subarray(mark);
    if (found.byteLength < HEAD_BYTES) return true;
    if (hasHead(found, new DataView(found.buffer, found.byteOffset, found.byteLength))) return false;
  }
  return true;
}

/** Whether the range has a sector with nothing but zeros. */
function hasEmptySector(file: Uint8Array, from: number, to: number): boolean {
  for (let start = from; start < to; ) {
    const end = Math.min(to, start - (start % SECTOR) + SECTOR);
    if (isZero(file.subarray(start, end)) && end - start >= HEAD_BYTES) return true;
    start = end;
  }
  return false;
}

function isZero(bytes: Uint8Array): boolean {
  return bytes.every((byte) => byte === 0);
}

const TABLE: Uint32Array = Uint32Array.from({ length: 256 }, (_, index) => {
  let value = index;
  for (let bit = 0; bit < 8; bit++) value = value & 1 ? (value >>> 1) ^ 0xedb88320 : value >>> 1;
  return value;
});

/** The checksum of zip files and Ethernet. */
export function crc32(bytes: Uint8Array): number {
  const { crc32: native = slowCrc32 } = zlib as { crc32?: (bytes: Uint8Array) => number };
  return native(bytes);
}

/** For versions of Node without one. */
export function slowCrc32(bytes: Uint8Array): number {
  let sum = 0xffffffff;
  for (let at = 0; at < bytes.byteLength; at++) sum = (sum >>> 8) ^ (TABLE[(sum ^ (bytes[at] as number)) & 0xff] as number);
  return ~sum >>> 0;
}

/** One write. */
export interface JournalRecord {
  /** Consecutive, except in a snapshot, where the order is arbitrary. */
  readonly revision: number;
  /** Empty: nothing is written, but revisions continue from this one, which may be much greater than the previous one. */
  readonly key: string;
  /** The object's JSON in UTF-8, with its version; undefined if it was deleted. Do not modify it. */
  readonly json: Uint8Array | undefined;
  /** Call it before you read the JSON: encodes a large object in pieces. Undefined, or no such method: nothing to await. */
  load?(): Promise<void> | undefined;
  /** The object expires after this long from now, in milliseconds. */
  readonly ttlMs?: number | undefined;
}

/** The state at a revision. Each access to a record's JSON encodes it again: read it once, when you write it. */
export interface JournalSnapshot {
  readonly revision: number;
  readonly records: readonly JournalRecord[];
}

/**
 * The port that makes the writes of a `MemoryStorage` durable: a journal takes each write, and says when it is safe. Until then,
 * nobody can see the write. `openMemoryStorage` uses one in a file; pass another as the option `journal`.
 *
 *     write ---> append(record) ---> ... ---> the promise resolves ---> the write is visible, and answered
 *                `----- a group: all that came while the one before was on its way -----'
 */
export interface StorageJournal {
  /**
   * Returns what it held when it was opened: a state, and the writes after it, which are read once. Called once, before anything
   * else. To replace its content with a compact state, the journal may call `snapshot` with the newest revision that it has
   * reported as safe, at any time until it reports a newer one.
   */
  restore(snapshot: (revision: number) => JournalSnapshot): {
    readonly state: { readonly revision: number; readonly records: Iterable<JournalRecord> };
    readonly writes: Iterable<JournalRecord>;
  };
  /**
   * Appends a record. Resolves with the revision of the last record of its group once the whole group is safe; all records of a
   * group get the same promise. Groups become safe in order. After a rejection, all later ones reject. A rejected write may have
   * happened, unless the error is a `WatchError` with a code other than TIMEOUT.
   */
  append(record: JournalRecord): Promise<number>;
  /** Rejects while a record that was appended now would be lost. */
  checkHealth?(): Promise<void>;
  /** Makes everything appended safe, then releases all resources. */
  close(): Promise<void>;
}

/** The first line of a file. */
export interface Title {
  readonly revision: number;
  /** The number of records of the snapshot. */
  readonly items: number;
}

const FORMAT = 1;
const NEWLINE = 10;
const encoder = new TextEncoder();
const decoder = new TextDecoder('utf-8', { fatal: true });

export function titleLine({ revision, items }: Title): Uint8Array {
  return encoder.encode(`${JSON.stringify({ journal: FORMAT, r: revision, items })}\n`);
}

/**
 * Records as lines: one with the key, and one with the object's JSON as it is, so that an object is encoded once and read back
 * unchanged. JSON has no line breaks.
 *
 *     {"r":8,"k":"orders/a"}              {"r":9,"k":"orders/a","d":true}        a deletion has no second line
 *     {"metadata":{"name":"a", ...
 *
 *     {"r":5000,"k":"","d":true}          another life begins: nothing was written, and nobody was given what lies between
 *
 * A file begins with the line of its snapshot, `{"journal":1,"r":7,"items":2}`, and that many records; later writes follow.
 *
 * The lines of a record. `now`: the time of day in ms, which turns its time to live into a deadline.
 */
export function linesOf({ revision, key, json, ttlMs }: JournalRecord, now: number): Uint8Array[] {
  const line = {
    r: revision,
    k: key,
    ...(json === undefined && { d: true }),
    ...(ttlMs !== undefined && { x: Math.ceil(now + ttlMs) }),
  };
  const own = encoder.encode(`${JSON.stringify(line)}\n`);
  return json === undefined ? [own] : [own, json, Uint8Array.of(NEWLINE)];
}

/** A body's lines, one by one. */
export class Lines {
  readonly #body: Uint8Array;
  #at: number = 0;

  constructor(body: Uint8Array) {
    this.#body = body;
  }

  /** Where the next line begins. */
  get at(): number {
    return this.#at;
  }

  get isEmpty(): boolean {
    return this.#at >= this.#body.byteLength;
  }

  /** @throws {Error} if this is not the first line of a journal. */
  title(): Title {
    const { journal, r, items } = this.#parsed();
    if (journal !== FORMAT) throw new Error(`not a journal of format ${FORMAT}`);
    return { revision: wholeNumber(r), items: wholeNumber(items) };
  }

  /**
   * The JSON is a part of the body: copy what is to be kept.
   *
   * @throws {Error} for lines that are not a record.
   */
  record(now: number): JournalRecord {
    const { r, k, d, x } = this.#parsed();
    if (typeof k !== 'string') throw new Error('a record has no key');
    const json = d === true ? undefined : this.#line();
    return { revision: wholeNumber(r), key: k, json, ...(x !== undefined && { ttlMs: Math.max(0, wholeNumber(x) - now) }) };
  }

  #parsed(): Record<string, unknown> {
    return Object(JSON.parse(decoder.decode(this.#line())));
  }

  #line(): Uint8Array {
    const end = this.#body.indexOf(NEWLINE, this.#at);
    if (end < 0) throw new Error('a line has no end');
    const line = this.#body.subarray(this.#at, end);
    this.#at = end + 1;
    return line;
  }
}

function wholeNumber(value: unknown): number {
  if (!Number.isSafeInteger(value) || (value as number) < 0) throw new Error(`${String(value)} is not a whole number`);
  return value as number;
}
