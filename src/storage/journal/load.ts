/** Reads a journal file from its beginning, in windows: a file may be larger than a buffer can be. */
import type { FileHandle } from 'node:fs/promises';
import { WatchError } from '../../watch/errors.ts';
import { type Found, frameAt } from './frames.ts';
import type { JournalRecord, JournalSnapshot } from './journal.ts';
import { Lines } from './records.ts';

/** What was removed from a file with an incomplete end: the record that was being written when the process or machine died. */
export interface TornTail {
  readonly file: string;
  /** Where the file now ends, and how many bytes were removed after that. */
  readonly offset: number;
  readonly bytes: number;
  /** The last revision in the file. */
  readonly revision: number;
}

/** What is in a file. */
export interface Loaded {
  readonly state: JournalSnapshot;
  readonly writes: readonly JournalRecord[];
  /** Where its last whole frame ends, and where its snapshot does. */
  readonly size: number;
  readonly began: number;
  readonly torn: TornTail | undefined;
}

const WINDOW_BYTES = 2 ** 25;
/** Windows begin at a sector, so that what is found in them does not depend on where they begin. */
const SECTOR = 512;

/** @throws {WatchError} INVALID_FRAME if the file is damaged. */
export async function load(handle: FileHandle, { file, now }: { file: string; now: number }): Promise<Loaded> {
  const { size: whole } = await handle.stat();
  const found = new Contents(now);
  let at = 0;
  let window = { start: 0, bytes: new Uint8Array(0) };
  for (;;) {
    const isLast = window.start + window.bytes.byteLength >= whole;
    const frame: Found = frameAt(window.bytes, at - window.start);
    if (frame === 'corrupt') throw damaged(file, at, 'not a journal frame');
    if (typeof frame === 'object') {
      at = window.start + frame.end;
      read(found, frame.body, { file, at });
    } else if (!isLast) window = await nextWindow(handle, { window, at, whole });
    else break;
  }
  if (!found.isWhole) throw damaged(file, at, 'its snapshot is incomplete');
  const torn = at < whole ? { file, offset: at, bytes: whole - at, revision: found.revision } : undefined;
  return { ...found.result(at), torn };
}

function read(found: Contents, body: Uint8Array, { file, at }: { file: string; at: number }): void {
  try {
    found.add(body, at);
  } catch (error) {
    throw damaged(file, at, error instanceof Error ? error.message : String(error));
  }
}

/** The bytes from a place on: twice as many if that place has been read from before. */
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

function damaged(file: string, at: number, why: string): WatchError {
  const advice = 'Restore it from a copy, or give another file';
  return new WatchError('INVALID_FRAME', `the journal ${file} is damaged at byte ${at}: ${why}. ${advice}`, { position: at });
}

/** The records of a file, as they are read. */
class Contents {
  readonly #now: number;
  readonly #state: JournalRecord[] = [];
  readonly #writes: JournalRecord[] = [];
  #title: { readonly revision: number; readonly items: number } | undefined;
  #began: number = 0;

  constructor(now: number) {
    this.#now = now;
  }

  get revision(): number {
    return this.#writes.at(-1)?.revision ?? this.#title?.revision ?? 0;
  }

  get isWhole(): boolean {
    return this.#title !== undefined && this.#state.length === this.#title.items;
  }

  add(body: Uint8Array, end: number): void {
    const lines = new Lines(body);
    this.#title ??= lines.title();
    while (!lines.isEmpty) {
      const record = lines.record(this.#now);
      if (!this.isWhole) this.#state.push(record);
      else if (record.revision === this.revision + 1) this.#writes.push(record);
      else throw new Error(`revision ${record.revision} follows ${this.revision}`);
    }
    if (this.isWhole && this.#writes.length === 0) this.#began = end;
  }

  result(size: number): Omit<Loaded, 'torn'> {
    const { revision } = this.#title as { revision: number };
    return { state: { revision, records: this.#state }, writes: this.#writes, size, began: this.#began };
  }
}
