/**
 * Reads a journal file from its beginning, in windows, as a file may be larger than the largest buffer.
 *
 *     window ---> frames ---> lines ---> { title, state, writes } ---> a target: Contents, or a check of the file
 *                                                                         |
 *     window ---> JSON <--- where it is in the file <---------------------'      one object after the other
 *
 * Only at the end is it known which objects are left, so their places are kept, not their bytes: the memory it takes to read a
 * file depends on how many objects and changes the storage will hold, not on the size of the file.
 */
import { readSync } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { WatchError, whyOf } from '../../watch/errors.ts';
import type { LogLimits } from '../collection/change-log.ts';
import { costOf } from '../memory/writer.ts';
import { type Found, frameAt, type JournalRecord, Lines, type StorageJournal, type Title } from './records.ts';

/** What was removed from the incomplete end of a file: the record that was being written when the process or machine died. */
export interface TornTail {
  readonly file: string;
  /** Where the file now ends, and how many bytes were removed there. */
  readonly offset: number;
  readonly bytes: number;
  /** The last revision in the file. */
  readonly revision: number;
}

/** How much of a file has been read. */
export interface LoadProgress {
  readonly bytes: number;
  readonly ofBytes: number;
}

/** The extent of a file. */
export interface Scanned {
  /** Where its last complete frame ends, and where its snapshot ends. */
  readonly size: number;
  readonly began: number;
  /** Its last revision. */
  readonly revision: number;
  readonly torn: TornTail | undefined;
}

/** The content of a file. */
export type Loaded = Scanned & ReturnType<StorageJournal['restore']>;

/** Receives the content of a file as it is read. If it throws, the file counts as damaged. */
export interface LoadTarget {
  title(title: Title): void;
  /** A record of the snapshot, and where its JSON is in the file. Copy what you keep of it. */
  state(record: JournalRecord, at: number): void;
  /** A write after it. */
  write(record: JournalRecord, at: number): void;
}

interface LoadOptions {
  readonly file: string;
  /** The time of the day in ms. */
  readonly now: number;
  readonly onProgress?: ((progress: LoadProgress) => void) | undefined;
}

const WINDOW_BYTES = 2 ** 25;
/** Windows begin at a sector, so that their beginnings do not affect what is found in them. */
const SECTOR = 512;

/** @throws {WatchError} INVALID_FRAME if the file is damaged. */
export async function load(
  handle: FileHandle,
  { history, ...options }: LoadOptions & { readonly history: LogLimits },
): Promise<Loaded> {
  const contents = new Contents(history);
  const scanned = await scan(handle, options, contents);
  const { revision, state, writes } = contents.result;
  return { ...scanned, state: { revision, records: readAgain(handle.fd, state) }, writes: readAgain(handle.fd, writes) };
}

/** Passes the content of a file to a target. Throws as {@link load} does. */
export async function scan(handle: FileHandle, options: LoadOptions, target: LoadTarget): Promise<Scanned> {
  const { file, now, onProgress } = options;
  const { size: whole } = await handle.stat();
  if (whole === 0) throw damaged(file, 0, EMPTY);
  const reader = new JournalReader(target, now);
  let at = 0;
  let window = { start: 0, bytes: new Uint8Array(0) };
  for (;;) {
    const isLast = window.start + window.bytes.byteLength >= whole;
    const frame: Found = frameAt(window.bytes, at - window.start);
    if (frame === 'corrupt') throw damaged(file, at, 'not a journal frame');
    if (typeof frame === 'object') {
      at = window.start + frame.end;
      read(reader, frame.body, { file, at });
    } else if (!isLast) {
      await onProgress?.({ bytes: at, ofBytes: whole });
      window = await nextWindow(handle, { window, at, whole });
    } else break;
  }
  if (!reader.isWhole) throw damaged(file, at, 'its snapshot is incomplete');
  const { revision, began } = reader;
  const torn = at < whole ? { file, offset: at, bytes: whole - at, revision } : undefined;
  return { size: at, began, revision, torn };
}

function read(reader: JournalReader, body: Uint8Array, { file, at }: { file: string; at: number }): void {
  try {
    reader.read(body, at);
  } catch (error) {
    throw damaged(file, at, whyOf(error));
  }
}

/** The bytes from a place on: twice as many if it has been read from before. */
async function nextWindow(
  handle: FileHandle,
  { window, at, whole }: { window: { start: number; bytes: Uint8Array }; at: number; whole: number },
): Promise<{ start: number; bytes: Uint8Array<ArrayBuffer> }> {
  const start = at - (at % SECTOR);
  const wanted = start === window.start ? 2 * window.bytes.byteLength : 0;
  const bytes = new Uint8Array(Math.min(whole - start, Math.max(WINDOW_BYTES, wanted)));
  let filled = 0;
  while (filled < bytes.byteLength) {
    const { bytesRead } = await handle.read(bytes, filled, bytes.byteLength - filled, start + filled);
    if (bytesRead === 0) throw new Error('the journal has become shorter while it was read');
    filled += bytesRead;
  }
  return { start, bytes };
}

const EMPTY = 'it is empty. Delete it to begin a new history; if it is mounted by itself, mount its directory instead';

function damaged(file: string, at: number, why: string): WatchError {
  const advice = 'Restore it from a copy, or give another file';
  return new WatchError('INVALID_FRAME', `the journal ${file} is damaged at byte ${at}: ${why}. ${advice}`, { position: at });
}

/** Parses frames, and checks that nothing is missing between them. */
class JournalReader {
  revision: number = 0;
  /** Where the snapshot ends. */
  began: number = 0;
  readonly #target: LoadTarget;
  readonly #now: number;
  #title: Title | undefined;
  #items: number = 0;
  #writes: number = 0;

  constructor(target: LoadTarget, now: number) {
    this.#target = target;
    this.#now = now;
  }

  get isWhole(): boolean {
    return this.#title !== undefined && this.#items === this.#title.items;
  }

  read(body: Uint8Array, end: number): void {
    const lines = new Lines(body);
    const start = end - body.byteLength;
    if (!this.#title) {
      this.#title = lines.title();
      this.revision = this.#title.revision;
      this.#target.title(this.#title);
    }
    while (!lines.isEmpty) {
      const record = lines.record(this.#now);
      this.#take(record, start + lines.at - 1 - (record.json?.byteLength ?? 0));
    }
    if (this.isWhole && this.#writes === 0) this.began = end;
  }

  #take(record: JournalRecord, at: number): void {
    if (!this.isWhole) {
      this.#items++;
      this.#target.state(record, at);
      return;
    }
    const { revision, key } = record;
    const follows = key === '' ? revision > this.revision : revision === this.revision + 1;
    if (!follows) throw new Error(`revision ${revision} follows ${this.revision}`);
    this.#writes++;
    this.revision = revision;
    this.#target.write(record, at);
  }
}

/** A record without its JSON, and where that is in the file; a deletion has none. */
interface Located {
  readonly revision: number;
  readonly key: string;
  readonly ttlMs: number | undefined;
  readonly at: number;
  readonly bytes: number | undefined;
}

const located = ({ revision, key, ttlMs, json }: JournalRecord, at: number): Located => ({
  ...{ revision, key, ttlMs, at },
  bytes: json?.byteLength,
});

/** What a storage will keep of a file: writes that exceed its history become part of the state. */
class Contents implements LoadTarget {
  readonly #limits: LogLimits;
  readonly #state: Map<string, Located> = new Map();
  /** The size of the newest object under each key. */
  readonly #sizes: Map<string, number> = new Map();
  #revision: number = 0;
  /** The first `#dead` of them are part of the state. */
  #writes: Located[] = [];
  #costs: number[] = [];
  #dead: number = 0;
  #bytes: number = 0;

  constructor(limits: LogLimits) {
    this.#limits = limits;
  }

  get result(): { readonly revision: number; readonly state: readonly Located[]; readonly writes: readonly Located[] } {
    const state = [...this.#state.values()].sort((one, other) => one.at - other.at);
    return { revision: this.#revision, state, writes: this.#writes.slice(this.#dead) };
  }

  title({ revision }: Title): void {
    this.#revision = revision;
  }

  state(record: JournalRecord, at: number): void {
    this.#state.set(record.key, located(record, at));
    this.#sizes.set(record.key, record.json?.byteLength ?? 0);
  }

  write(record: JournalRecord, at: number): void {
    const { key, json } = record;
    const cost = costOf(key, { bytes: this.#sizes.get(key) ?? 0, isDeletion: json === undefined });
    if (json === undefined) this.#sizes.delete(key);
    else this.#sizes.set(key, json.byteLength);
    this.#writes.push(located(record, at));
    this.#costs.push(cost);
    this.#bytes += cost;
    const { maxItems, maxBytes } = this.#limits;
    while (this.#writes.length - this.#dead > maxItems || this.#bytes > maxBytes) this.#settle();
  }

  /** The oldest write becomes part of the state. */
  #settle(): void {
    const record = this.#writes[this.#dead] as Located;
    this.#revision = record.revision;
    if (record.bytes === undefined) this.#state.delete(record.key);
    else this.#state.set(record.key, record);
    this.#bytes -= this.#costs[this.#dead++] as number;
    if (this.#dead < 1_000 || this.#dead < this.#writes.length / 2) return;
    this.#writes = this.#writes.slice(this.#dead);
    this.#costs = this.#costs.slice(this.#dead);
    this.#dead = 0;
  }
}

/** How many bytes are read at a time in the second pass. */
const AGAIN_BYTES = 2 ** 22;

/** Reads the JSON of records, in the order of their places, one at a time. */
function* readAgain(fd: number, records: readonly Located[]): Generator<JournalRecord, undefined> {
  let start = 0;
  let window = new Uint8Array(0);
  const last = records.at(-1);
  const end = last ? last.at + (last.bytes ?? 0) : 0;
  for (const { at, bytes, ...record } of records) {
    if (bytes !== undefined && (at < start || at + bytes > start + window.byteLength)) {
      start = at;
      window = readFrom(fd, at, Math.min(end - at, Math.max(AGAIN_BYTES, bytes)));
    }
    const json = bytes === undefined ? undefined : window.slice(at - start, at - start + bytes);
    yield { ...record, json };
  }
}

/** At most so many bytes of a file, from a place on. */
function readFrom(fd: number, position: number, length: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(length);
  let filled = 0;
  for (let read = 1; read > 0 && filled < length; filled += read) {
    read = readSync(fd, bytes, filled, length - filled, position + filled);
  }
  return bytes.subarray(0, filled);
}
