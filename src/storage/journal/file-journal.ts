/**
 * A journal in a file. It is only appended to, one frame for all writes that came while the frame before was on its way to the
 * disk; when it has become much larger than what there is, it is replaced as a whole.
 *
 *     append ---> [ group ] ---> write, fdatasync ---> resolve        one at a time: #run
 *
 *     FILE          | snapshot at 7 | 8 9 | 10 | 11 12 13 | ...
 *                                               `---- copied --.      what came while the snapshot was written
 *     FILE.new      | snapshot at 10           | 11 12 13 | <--'      fsync, rename to FILE, fsync the directory
 *
 * Invariants
 * - A group is written when the one before is safe, so only the last frame of a file can be torn.
 * - FILE is whole at every moment: FILE.new takes its place when all that FILE has is in it and on the disk.
 * - Another process that writes into FILE, or replaces it, is noticed before the next frame is written, and nothing after it is. Of
 *   two that write at the same moment, the one that has been written over answers nothing.
 * - After a write that fails nothing is written any more: nobody knows what of the last frame is on the disk. A new file that cannot
 *   take FILE's place is dropped, and FILE goes on.
 */
import { type FileHandle, open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { soon } from '../../broadcast/watchers/soon.ts';
import { invalid, WatchError } from '../../watch/errors.ts';
import { HEAD_BYTES, toFrame } from './frames.ts';
import type { JournalRecord, JournalSnapshot, StorageJournal } from './journal.ts';
import { type Loaded, load, type TornTail } from './load.ts';
import { join, linesOf, titleLine } from './records.ts';

/** Options of a {@link FileJournal}. */
export interface FileJournalOptions {
  readonly file: string;
  /** The file begins anew when it is larger than this, and than twice what it began with. */
  readonly minCompactBytes: number;
  /** Called when the end of the file was torn, and has been cut off. */
  readonly onTornTail?: ((tail: TornTail) => void) | undefined;
  /** The time of the day in ms. */
  readonly now: () => number;
}

/** About how many bytes of a snapshot are in one frame. */
const FRAME_BYTES = 2 ** 20;
/** How much is copied at once. */
const COPY_BYTES = 2 ** 22;

/** A new file: how long it is, what it began with, and up to where the old one is in it. */
interface NextFile {
  readonly handle: FileHandle;
  size: number;
  readonly began: number;
  from: number;
}

/** What is written at once. */
class Group {
  readonly pieces: Uint8Array[] = [];
  last: number = 0;
  readonly settled: Promise<number>;
  resolve!: (last: number) => void;
  reject!: (error: unknown) => void;

  constructor() {
    this.settled = new Promise((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
    });
  }
}

export class FileJournal implements StorageJournal {
  readonly #options: FileJournalOptions;
  #handle: FileHandle;
  #loaded: Loaded | undefined;
  #size: number;
  /** The head of the last frame of this process, and where it is. */
  #last: { readonly head: Uint8Array; readonly at: number } = { head: new Uint8Array(), at: 0 };
  /** What the file began with: its snapshot. */
  #began: number;
  /** The last revision that is safe. */
  #safe: number;
  #snapshot: ((revision: number) => JournalSnapshot) | undefined;
  #group: Group | undefined;
  #running: Promise<void> | undefined;
  #compacting: Promise<void> | undefined;
  /** A whole new file, which waits for its turn between two groups. */
  #next: NextFile | undefined;
  #failure: { readonly error: unknown } | undefined;
  #closed: boolean = false;

  private constructor(options: FileJournalOptions, handle: FileHandle, loaded: Loaded) {
    this.#options = options;
    this.#handle = handle;
    this.#loaded = loaded;
    this.#size = loaded.size;
    this.#began = loaded.began;
    this.#safe = loaded.writes.at(-1)?.revision ?? loaded.state.revision;
  }

  /**
   * Opens a file, or makes one. What is torn at its end is cut off.
   *
   * @throws {WatchError} INVALID_FRAME if the file is damaged. What the file system throws is passed on.
   */
  static async open(options: FileJournalOptions): Promise<FileJournal> {
    const { file, now, onTornTail } = options;
    await rm(newName(file), { force: true });
    const handle = (await openOld(file)) ?? (await create(file));
    try {
      const loaded = await load(handle, { file, now: now() });
      if (loaded.torn) {
        await handle.truncate(loaded.size);
        await handle.sync();
        onTornTail?.(loaded.torn);
      }
      return new FileJournal(options, handle, loaded);
    } catch (error) {
      await handle.close();
      throw error;
    }
  }

  restore(snapshot: (revision: number) => JournalSnapshot): { state: JournalSnapshot; writes: readonly JournalRecord[] } {
    const loaded = this.#loaded;
    if (!loaded) throw new WatchError('INVALID_ARGUMENT', 'journal: expected one that no storage has yet');
    this.#loaded = undefined;
    this.#snapshot = snapshot;
    return loaded;
  }

  append(record: JournalRecord): Promise<number> {
    if (this.#failure) return Promise.reject(this.#failure.error);
    if (this.#closed) return Promise.reject(new WatchError('CLOSED', 'the journal is closed'));
    this.#group ??= new Group();
    this.#group.pieces.push(...linesOf(record, this.#options.now()));
    this.#group.last = record.revision;
    const { settled } = this.#group;
    this.#running ??= this.#run();
    return settled;
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    // Each of these may end with the beginning of another: a switch with the groups that came meanwhile.
    while (this.#running || this.#compacting) {
      await this.#compacting;
      await this.#running;
    }
    await this.#next?.handle.close();
    this.#next = undefined;
    await this.#handle.close();
    await rm(newName(this.#options.file), { force: true });
  }

  /** Writes group after group until there is none. Never rejects. */
  async #run(): Promise<void> {
    await new Promise<void>((resolve) => soon(resolve)); // what is written in this turn is one group
    for (let group = this.#group; group; group = this.#group) {
      this.#group = undefined;
      try {
        await this.#write(group);
        group.resolve(group.last);
      } catch (error) {
        this.#fail(error, group);
      }
      if (this.#next && !this.#failure) await this.#switch().catch((error: unknown) => this.#fail(error));
      this.#compactIfLarge();
    }
    this.#running = undefined;
  }

  async #write({ pieces, last }: Group): Promise<void> {
    const frame = toFrame(join(pieces));
    await this.#check();
    await writeAll(this.#handle, frame, this.#size);
    await this.#handle.datasync();
    this.#last = { head: frame.slice(0, HEAD_BYTES), at: this.#size };
    this.#size += frame.byteLength;
    await this.#check();
    this.#safe = last;
  }

  /** Throws if somebody else has written into the file, be it as many bytes as this process at the same place. */
  async #check(): Promise<void> {
    const { head, at } = this.#last;
    const found = new Uint8Array(head.length);
    const [{ size, nlink }] = await Promise.all([this.#handle.stat(), this.#handle.read(found, 0, head.length, at)]);
    if (size !== this.#size || nlink === 0 || found.some((byte, index) => byte !== head[index])) throw taken(this.#options.file);
  }

  /** Ends all writing. */
  #fail(error: unknown, group?: Group): void {
    this.#failure = { error };
    group?.reject(error);
    this.#group?.reject(error);
    this.#group = undefined;
  }

  #compactIfLarge(): void {
    const { minCompactBytes } = this.#options;
    const isLarge = this.#size > Math.max(minCompactBytes, 2 * this.#began);
    if (!isLarge || this.#compacting || this.#closed || this.#failure || !this.#snapshot) return;
    // Taken here, between two groups: it is the state that this file has led to.
    const snapshot = this.#snapshot(this.#safe);
    this.#compacting = this.#compact(snapshot, this.#size).then(
      () => {
        this.#compacting = undefined;
        if (!this.#closed) this.#running ??= this.#switchAlone();
      },
      () => {
        // The old file goes on. It is tried again when that has doubled.
        this.#compacting = undefined;
        this.#began = this.#size;
      },
    );
  }

  async #compact(snapshot: JournalSnapshot, from: number): Promise<void> {
    const handle = await open(newName(this.#options.file), 'w+');
    try {
      // Who may read the file may be fewer than a new one's readers.
      await handle.chmod((await this.#handle.stat()).mode & 0o777);
      const began = await writeSnapshot(handle, snapshot, this.#options.now());
      const next: NextFile = { handle, size: began, began, from };
      // What came meanwhile; what is left is little, and copied while no group is written.
      await this.#copy(next);
      await handle.datasync();
      this.#next = next;
    } catch (error) {
      await abandon(handle, this.#options.file);
      throw error;
    }
  }

  /** Puts the new file in the place of the old one when no group is on its way. Never rejects. */
  async #switchAlone(): Promise<void> {
    await this.#switch().catch((error: unknown) => this.#fail(error));
    this.#running = undefined;
    if (this.#group) this.#running = this.#run();
  }

  async #switch(): Promise<void> {
    const next = this.#next as NextFile;
    this.#next = undefined;
    const { file } = this.#options;
    const old = this.#handle;
    try {
      await this.#copy(next);
      await next.handle.sync();
      await rename(newName(file), file);
    } catch {
      // The old file is whole, and goes on. It is tried again when that has doubled.
      await abandon(next.handle, file);
      this.#began = this.#size;
      return;
    }
    this.#handle = next.handle;
    this.#size = next.size;
    this.#last = { head: new Uint8Array(), at: 0 };
    this.#began = next.began;
    await old.close();
    await syncDirectory(file);
  }

  async #copy(next: NextFile): Promise<void> {
    const buffer = new Uint8Array(COPY_BYTES);
    while (next.from < this.#size) {
      const length = Math.min(COPY_BYTES, this.#size - next.from);
      const { bytesRead } = await this.#handle.read(buffer, 0, length, next.from);
      if (bytesRead === 0) throw taken(this.#options.file);
      await writeAll(next.handle, buffer.subarray(0, bytesRead), next.size);
      next.from += bytesRead;
      next.size += bytesRead;
    }
  }
}

const newName = (file: string): string => `${file}.new`;

/** Opens a file that is there; undefined if it is not, or if it is empty. */
async function openOld(file: string): Promise<FileHandle | undefined> {
  let handle: FileHandle;
  try {
    handle = await open(file, 'r+');
  } catch (error) {
    if ((error as { code?: unknown }).code === 'ENOENT') return undefined;
    throw error;
  }
  const found = await handle.stat();
  if (found.size > 0 && found.isFile()) return handle;
  await handle.close();
  // A device has no size either, and a new file would take its place.
  if (!found.isFile()) throw invalid('file', file, 'the path of a file, or of nothing');
  return undefined;
}

/** What somebody else appends would be written over, and what is written to a file that has been replaced is lost. */
function taken(file: string): WatchError {
  return new WatchError('INVALID_FRAME', `the journal ${file} was changed by somebody else: one process may have it open`);
}

/** Makes a file of nothing, whole or not at all. */
async function create(file: string): Promise<FileHandle> {
  const handle = await open(newName(file), 'w+');
  try {
    await writeSnapshot(handle, { revision: 1, records: [] }, 0);
    await handle.sync();
    await rename(newName(file), file);
    await syncDirectory(file);
    return handle;
  } catch (error) {
    await abandon(handle, file);
    throw error;
  }
}

/** Leaves no new file behind: on a full disk it would take the room that the old one needs. */
async function abandon(handle: FileHandle, file: string): Promise<void> {
  await handle.close().catch(() => {});
  await rm(newName(file), { force: true }).catch(() => {});
}

/** Writes a snapshot at the beginning of a file, in frames; resolves with its size. */
async function writeSnapshot(handle: FileHandle, { revision, records }: JournalSnapshot, now: number): Promise<number> {
  let size = 0;
  let pieces: Uint8Array[] = [titleLine({ revision, items: records.length })];
  let bytes = 0;
  const flush = async (): Promise<void> => {
    const frame = toFrame(join(pieces));
    await writeAll(handle, frame, size);
    size += frame.byteLength;
    pieces = [];
    bytes = 0;
  };
  for (const record of records) {
    const lines = linesOf(record, now);
    pieces.push(...lines);
    bytes += lines.reduce((sum, { byteLength }) => sum + byteLength, 0);
    if (bytes >= FRAME_BYTES) await flush();
  }
  if (pieces.length > 0) await flush();
  return size;
}

async function writeAll(handle: FileHandle, bytes: Uint8Array, position: number): Promise<void> {
  for (let at = 0; at < bytes.byteLength; ) {
    const { bytesWritten } = await handle.write(bytes, at, bytes.byteLength - at, position + at);
    at += bytesWritten;
  }
}

/** Makes a rename last. Not every system can. */
async function syncDirectory(file: string): Promise<void> {
  try {
    const directory = await open(dirname(file), 'r');
    await directory.sync().finally(() => directory.close());
  } catch (error) {
    if (process.platform !== 'win32') throw error;
  }
}
