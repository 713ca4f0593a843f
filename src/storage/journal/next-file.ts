/** A file that will take the place of a journal's: a snapshot, and what came after it, copied from the old one. */
import { type FileHandle, rename } from 'node:fs/promises';
import { abandon, newName, openNew, taken, writeAll, writeSnapshot } from './files.ts';
import type { JournalSnapshot } from './journal.ts';
import { lockOpen, type Unlock } from './lock.ts';

/** How much is copied at once. */
const COPY_BYTES = 2 ** 22;

/** The file from which a new one is made. */
export interface OldFile {
  readonly handle: FileHandle;
  readonly size: number;
}

/** Where it is, and the part of it that is safe at this moment. */
interface Origin {
  readonly file: string;
  readonly old: () => OldFile;
}

export class NextFile {
  readonly handle: FileHandle;
  /** To be called when it is closed. */
  readonly unlock: Unlock;
  /** Its size, and the size that it began with. */
  size: number = 0;
  began: number = 0;
  readonly #origin: Origin;
  /** Up to where the old file has been copied. */
  #from: number;

  private constructor(opened: { handle: FileHandle; unlock: Unlock }, origin: Origin, from: number) {
    this.handle = opened.handle;
    this.unlock = opened.unlock;
    this.#origin = origin;
    this.#from = from;
  }

  /** Writes a snapshot of the old file's current state, and what is appended there meanwhile. */
  static async write(origin: Origin, snapshot: JournalSnapshot, now: number): Promise<NextFile> {
    const { file, old } = origin;
    const { size, handle: before } = old();
    const handle = await openNew(file);
    let unlock: Unlock | undefined;
    try {
      unlock = await lockOpen(handle, file);
      // A new file may be readable by more users than the old one.
      await handle.chmod((await before.stat()).mode & 0o777);
      const next = new NextFile({ handle, unlock }, origin, size);
      next.size = next.began = await writeSnapshot(handle, snapshot, now);
      // What is left after this is little, and copied while no group is written.
      await next.#copy();
      await handle.datasync();
      return next;
    } catch (error) {
      await abandon(handle, file);
      await unlock?.();
      throw error;
    }
  }

  /** Takes the old file's place. If it cannot, the old file is whole and stays in use, as if this one had never existed. */
  async takePlace(): Promise<boolean> {
    const { file } = this.#origin;
    try {
      await this.#copy();
      await this.handle.sync();
      await rename(newName(file), file);
      return true;
    } catch {
      await abandon(this.handle, file);
      await this.unlock();
      return false;
    }
  }

  async #copy(): Promise<void> {
    const { file, old } = this.#origin;
    const buffer = new Uint8Array(COPY_BYTES);
    for (let { handle, size } = old(); this.#from < size; { handle, size } = old()) {
      const { bytesRead } = await handle.read(buffer, 0, Math.min(COPY_BYTES, size - this.#from), this.#from);
      if (bytesRead === 0) throw taken(file);
      await writeAll(this.handle, buffer.subarray(0, bytesRead), this.size);
      this.#from += bytesRead;
      this.size += bytesRead;
    }
  }
}
