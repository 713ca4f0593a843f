/**
 * A journal in a file. It is only appended to, with one frame for all writes that came while the previous frame was on its way to
 * the disk; when it has become much larger than the state, it is replaced as a whole.
 *
 *     append ---> [ group ] ---> write, fdatasync ---> resolve        one at a time: #run
 *
 *     FILE          | snapshot at 7 | 8 9 | 10 | 11 12 13 | ...
 *                                               `---- copied --.      what came while the snapshot was written
 *     the new one   | snapshot at 10           | 11 12 13 | <--'      fsync, rename to FILE, fsync the directory
 *
 * Invariants
 * - A group is written once the previous one is safe, so only the last frame of a file can be torn.
 * - FILE is complete at every moment: FILE.watchmux-new takes its place once it has everything that FILE has, on the disk.
 * - Only one process has FILE open, and nothing is touched before that is certain: see files.ts. Where there is no lock, another
 *   process that writes to FILE is noticed before the next frame is written or FILE is replaced, and nothing is written after
 *   that. Of two that write at the same moment, the one that was overwritten confirms nothing.
 * - Nothing is confirmed that is in a file at another path, or at none: FILE must still name it after each write.
 * - After a failed write, nothing is written any more, as it is unknown how much of the last frame is on the disk. A new file
 *   that cannot take FILE's place is dropped and reported, and FILE stays in use.
 */

import { type FileHandle, rm } from 'node:fs/promises';
import type { KubernetesObject } from '../../cache/object.ts';
import { joined } from '../../decode/framing.ts';
import { Latch } from '../../watch/abort.ts';
import { callable, checkOptions, invalid, isWatchError, WatchError, wholeNumber, whyOf } from '../../watch/errors.ts';
import { soon } from '../../watch/turn.ts';
import type { LogLimits } from '../collection/change-log.ts';
import { MemoryStorage } from '../memory/memory-storage.ts';
import { MEMORY_NAMES, type MemoryStorageOptions, settingsOf } from '../memory/writer.ts';
import { identityOf } from '../same-file.ts';
import {
  absolute,
  create,
  fileAt,
  lock,
  lockOpen,
  moved,
  NextFile,
  newName,
  type OldFile,
  openOld,
  realFile,
  syncDirectory,
  taken,
  type Unlock,
  writeAll,
} from './files.ts';
import { type Loaded, type LoadProgress, load, type TornTail } from './load.ts';
import { HEAD_BYTES, type JournalRecord, type JournalSnapshot, linesOf, type StorageJournal, toFrame } from './records.ts';

interface FileJournalOptions {
  readonly file: string;
  /** The file is replaced when it is larger than this, and more than twice as large as its snapshot. */
  readonly minCompactBytes: number;
  /** Called if the end of the file was torn, and has been cut off. */
  readonly onTornTail?: ((tail: TornTail) => void) | undefined;
  /** Called while the file is read, with how much has been read. */
  readonly onProgress?: ((progress: LoadProgress) => void) | undefined;
  /** How many of the last writes are returned one by one; earlier ones are part of the state. */
  readonly history: LogLimits;
  /** The time of day in ms. */
  readonly now: () => number;
  /** Called when the file cannot be replaced: once per kind of failure, until it can. */
  readonly onError?: ((error: unknown) => void) | undefined;
}

interface Opened {
  /** The path by which it was opened, whose links may later lead elsewhere. */
  readonly path: string;
  readonly handle: FileHandle;
  readonly unlock: Unlock;
  readonly unlockOpen: Unlock;
}

/** Records that are written together. */
class Group extends Latch<number> {
  readonly pieces: Uint8Array[] = [];
  last: number = 0;
}

export class FileJournal implements StorageJournal {
  readonly #options: FileJournalOptions;
  readonly #path: string;
  readonly #unlock: Unlock;
  #unlockOpen: Unlock;
  #handle: FileHandle;
  /** Which file that is; empty: not known yet. */
  #identity: string = '';
  #loaded: Loaded | undefined;
  #size: number;
  /** The header of this process's last frame, and where it is. */
  #last: { readonly head: Uint8Array; readonly at: number } = { head: new Uint8Array(), at: 0 };
  /** The size of the snapshot with which the file began. */
  #began: number;
  /** The last safe revision of this process. */
  #safe: number = 0;
  #snapshot: ((revision: number) => JournalSnapshot) | undefined;
  #group: Group | undefined;
  #running: Promise<void> | undefined;
  #compacting: Promise<void> | undefined;
  /** A complete new file, which waits for its turn between two groups. */
  #next: NextFile | undefined;
  /** The kind of the last reported failure to replace the file. */
  #reported: string | undefined;
  #failure: { readonly error: unknown } | undefined;
  #closed: boolean = false;

  private constructor(options: FileJournalOptions, { path, handle, unlock, unlockOpen }: Opened, loaded: Loaded) {
    this.#options = options;
    this.#path = path;
    this.#unlock = unlock;
    this.#unlockOpen = unlockOpen;
    this.#handle = handle;
    this.#loaded = loaded;
    this.#size = loaded.size;
    this.#began = loaded.began;
  }

  /**
   * Opens a file, or creates one. A torn end is cut off.
   *
   * @throws {WatchError} INVALID_ARGUMENT if it is already open, INVALID_FRAME if it is damaged or empty. What the file system
   *   throws is passed on.
   */
  static async open(options: FileJournalOptions): Promise<FileJournal> {
    const path = absolute(options.file);
    const file = await realFile(path);
    const { history, onProgress, now } = options;
    const unlock = await lock(file);
    let handle: FileHandle | undefined;
    let unlockOpen: Unlock | undefined;
    try {
      handle = (await openOld(file)) ?? (await create(file));
      unlockOpen = await lockOpen(handle, file);
      await rm(newName(file), { force: true });
      const loaded = await load(handle, { file, now: now(), history, onProgress });
      if (loaded.torn) {
        await handle.truncate(loaded.size);
        await handle.sync();
        await options.onTornTail?.(loaded.torn);
      }
      return new FileJournal({ ...options, file }, { path, handle, unlock, unlockOpen }, loaded);
    } catch (error) {
      await unlockOpen?.();
      await handle?.close().catch(() => {});
      await unlock();
      throw error;
    }
  }

  restore(snapshot: (revision: number) => JournalSnapshot): ReturnType<StorageJournal['restore']> {
    const loaded = this.#loaded;
    if (!loaded) throw new WatchError('INVALID_ARGUMENT', 'journal: expected one that no storage uses yet');
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
    const { promise } = this.#group;
    this.#running ??= this.#run();
    return promise;
  }

  /** A write that is under way finds out itself, so nothing is asked then. */
  async checkHealth(): Promise<void> {
    if (this.#failure) throw this.#failure.error;
    if (this.#running || this.#closed) return;
    const checked = this.#check();
    const goOn = (): void => this.#goOn();
    this.#running = checked.then(goOn, goOn);
    await checked;
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    // Each of these may start another one: after a switch come the groups that arrived in the meantime.
    while (this.#running || this.#compacting) {
      await this.#compacting;
      await this.#running;
    }
    await this.#next?.drop();
    // A failing disk may fail here, too. The file can be opened again once it is repaired.
    await this.#unlockOpen()
      .finally(() => this.#handle.close())
      .finally(this.#unlock);
  }

  /** Writes group after group until there is none. Never rejects. */
  async #run(): Promise<void> {
    await new Promise<void>((resolve) => soon(resolve)); // what is written in this turn is one group
    for (let group = this.#group; group; group = this.#group) {
      this.#group = undefined;
      try {
        await this.#write(group);
        group.open(group.last);
      } catch (error) {
        this.#fail(error, group);
      }
      if (this.#next && !this.#failure) await this.#switch().catch((error: unknown) => this.#fail(error));
      this.#compactIfLarge();
    }
    this.#running = undefined;
  }

  async #write({ pieces, last }: Group): Promise<void> {
    const frame = toFrame(joined(pieces));
    await this.#check();
    await writeAll(this.#handle, frame, this.#size);
    await this.#handle.datasync();
    this.#last = { head: frame.slice(0, HEAD_BYTES), at: this.#size };
    this.#size += frame.byteLength;
    await this.#check().catch((cause: unknown) => {
      throw new WatchError('TIMEOUT', 'the journal was changed or moved during a write: the write may be lost', { cause });
    });
    this.#safe = last;
  }

  /** Throws if the file is not at its path any more, or if another process has written to it, even as many bytes at the same place. */
  async #check(): Promise<void> {
    const { head, at } = this.#last;
    const found = new Uint8Array(head.length);
    const [there] = await Promise.all([fileAt(this.#path), this.#handle.read(found, 0, head.length, at)]);
    // Asked only if it seems to be another file: there are file systems that give an open file another number.
    if (there?.identity !== this.#identity) this.#identity = identityOf(await this.#handle.stat({ bigint: true }));
    if (there?.identity !== this.#identity) throw moved(this.#path);
    if (there.size !== this.#size || found.some((byte, index) => byte !== head[index])) throw taken(this.#path);
  }

  /** The part of the file that is currently safe. */
  readonly #old = (): OldFile => ({ handle: this.#handle, size: this.#size });

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
    // Taken here, between two groups, it is exactly the state in this file.
    const snapshot = this.#snapshot(this.#safe);
    const { file, now } = this.#options;
    this.#compacting = NextFile.write({ file, old: this.#old }, snapshot, now()).then(
      (next) => {
        this.#next = next;
        this.#compacting = undefined;
        if (!this.#closed && !this.#failure) this.#running ??= this.#switchAlone();
      },
      (error: unknown) => {
        this.#compacting = undefined;
        this.#notReplaced(error);
      },
    );
  }

  /** The old file stays in use. The next attempt comes when it has doubled. */
  #notReplaced(cause: unknown): void {
    this.#began = this.#size;
    const kind = String((cause as { code?: unknown }).code);
    if (kind === this.#reported) return;
    this.#reported = kind;
    const { file, onError } = this.#options;
    const advice =
      'Its directory must be writable and have room for a second file, and a file that is mounted by itself cannot be replaced';
    const text = `the journal ${file} cannot be rewritten, and keeps growing: ${whyOf(cause)}. ${advice}`;
    onError?.(new WatchError('INVALID_ARGUMENT', text, { cause }));
  }

  /** Replaces the old file with the new one while no group is being written. Never rejects. */
  async #switchAlone(): Promise<void> {
    await this.#switch().catch((error: unknown) => this.#fail(error));
    this.#goOn();
  }

  /** After something that was not a group: what has come in the meantime. */
  #goOn(): void {
    this.#running = undefined;
    if (this.#group) this.#running = this.#run();
    else if (this.#next && !this.#closed && !this.#failure) this.#running = this.#switchAlone();
  }

  async #switch(): Promise<void> {
    const next = this.#next as NextFile;
    this.#next = undefined;
    const old = this.#handle;
    try {
      // What another process has written since the last group would be lost, and what is at the path may be its own.
      await next.takePlace(() => this.#check());
    } catch (error) {
      if (isWatchError(error)) throw error;
      this.#notReplaced(error);
      return;
    }
    this.#reported = undefined;
    this.#handle = next.handle;
    this.#identity = '';
    this.#size = next.size;
    this.#last = { head: new Uint8Array(), at: 0 };
    this.#began = next.began;
    const unlockOld = this.#unlockOpen;
    this.#unlockOpen = next.unlock;
    await unlockOld().finally(() => old.close());
    await syncDirectory(this.#options.file);
  }
}

/** Options of {@link openMemoryStorage}. */
export interface OpenMemoryStorageOptions<T extends KubernetesObject = KubernetesObject>
  extends Omit<MemoryStorageOptions<T>, 'journal'> {
  /**
   * The path of the file. It is created if it does not exist; its directory must exist, and must be writable, as the file is replaced
   * when it is rewritten. Only one process may have it open; another one is refused. If it is moved away or replaced while it is open,
   * later writes are refused.
   */
  readonly file: string;
  /**
   * The file is rewritten with the current state when it is larger than this, and more than twice as large as when it was opened
   * or rewritten. If that fails, it goes to `onError`, and is tried again when the file has doubled. Default 16 MiB.
   */
  readonly minCompactBytes?: number | undefined;
  /** Called if the previous process's last write was incomplete: it is lost, but was never confirmed. */
  readonly onTornTail?: ((tail: TornTail) => void) | undefined;
  /** Called while the file is read, about every 32 MiB. Default: not called. */
  readonly onProgress?: ((progress: LoadProgress) => void) | undefined;
  /** The time of day in ms, so that times to live continue across a restart. Default `Date.now`. */
  readonly now?: (() => number) | undefined;
}

const NAMES = [
  ...['file', 'minCompactBytes', 'onTornTail', 'onProgress', 'now'],
  ...MEMORY_NAMES,
] as (keyof OpenMemoryStorageOptions)[];

/**
 * Opens a {@link MemoryStorage} that keeps its writes in a file. A write is confirmed, and visible, once it is on the disk;
 * concurrent writes are written together. The process may die at any moment: every confirmed write is there when the file is
 * opened again. Clients can resume from earlier versions; later ones are far greater: see `startRevision`.
 *
 * @throws {WatchError} INVALID_ARGUMENT for an unknown or invalid option, and if another process has the file open; INVALID_FRAME
 *   if the file is damaged or empty. Errors of the file system are passed on.
 */
export async function openMemoryStorage<T extends KubernetesObject = KubernetesObject>(
  options: OpenMemoryStorageOptions<T>,
): Promise<MemoryStorage<T>> {
  const { journal: own } = (options ?? {}) as MemoryStorageOptions;
  if (own !== undefined) throw invalid('journal', own, 'none: it is made from the file');
  const given = checkOptions(options ?? ({} as typeof options), NAMES);
  const { file, minCompactBytes = 2 ** 24, onTornTail, onProgress, now = Date.now, ...rest } = given;
  if (typeof file !== 'string' || file === '') throw invalid('file', file, 'a path');
  wholeNumber('minCompactBytes', minCompactBytes);
  callable('onTornTail', onTornTail);
  callable('onProgress', onProgress);
  callable('now', now);
  const { history, onError } = settingsOf(rest); // before a file is made
  const journal = await FileJournal.open({ file, minCompactBytes, onTornTail, onProgress, history, now, onError });
  try {
    return new MemoryStorage<T>({ ...rest, journal });
  } catch (error) {
    await journal.close();
    throw error;
  }
}
