import type { FSWatcher } from 'node:fs';
import { watch as watchFiles } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { ChangeType, ObjectEvent } from '../../watch/event.ts';

/** A file as last seen. */
interface FileState {
  readonly name: string;
  readonly bytes: number;
  readonly modifiedMs: number;
}

export type FileEvent = ObjectEvent<FileState>;

/** The inode distinguishes a file from a later one with its name. */
type SeenFile = FileState & { readonly inode: number };

/**
 * Reports what really happens to the files of a directory. The operating system's notices come duplicated, merged or late, so
 * they are only hints that a name needs another look. The event follows from comparing the file with how it was last seen.
 *
 *     notice(name) -> names to look at -> stat -> known before? there now? -> ADDED, MODIFIED, DELETED or nothing
 */
export class DirectoryWatch {
  private readonly path: string;
  private readonly tell: (event: FileEvent) => Promise<void>;
  private readonly known: Map<string, SeenFile> = new Map();
  /** The names to look at; null for all. */
  private readonly names: Set<string | null> = new Set();
  private watcher: FSWatcher | undefined = undefined;
  private looking: Promise<void> | undefined = undefined;
  private closed: boolean = false;

  constructor(path: string, tell: (event: FileEvent) => Promise<void>) {
    this.path = path;
    this.tell = tell;
  }

  /** Records the existing files and starts to listen. Rejects with the system's error if the path is not a directory. */
  async open(): Promise<void> {
    // Listens first. Files that change while the directory is read are looked at afterwards, when the initial files are known.
    this.watcher = watchFiles(this.path, (_kind, name) => this.notice(name));
    this.watcher.on('error', () => this.watcher?.close());
    await this.busy(this.record());
    if (this.names.size > 0) void this.busy(this.lookAll());
  }

  /** Looks at everything once more, reports it, and stops. */
  async close(): Promise<void> {
    this.watcher?.close();
    await this.looking;
    this.notice(null);
    await this.looking;
    this.closed = true;
  }

  private async record(): Promise<void> {
    for (const name of await readdir(this.path)) {
      const state = await this.look(name);
      if (state !== undefined) this.known.set(name, state);
    }
  }

  private notice(name: string | null): void {
    if (this.closed) return;
    this.names.add(name);
    if (this.looking === undefined) void this.busy(this.lookAll());
  }

  /** Names noticed until this work is done wait in `names`. */
  private busy(work: Promise<void>): Promise<void> {
    this.looking = work.finally(() => {
      this.looking = undefined;
    });
    return this.looking;
  }

  /** Looks at one name at a time, so that a file's events are in order. Under backpressure names wait here, each at most once. */
  private async lookAll(): Promise<void> {
    for (const name of this.names) {
      this.names.delete(name);
      if (name === null) {
        for (const each of [...this.known.keys(), ...(await readdir(this.path).catch(() => []))]) this.names.add(each);
        continue;
      }
      const before = this.known.get(name);
      const now = await this.look(name);
      if (now === undefined) this.known.delete(name);
      else this.known.set(name, now);
      const type = difference(before, now);
      if (type === undefined) continue;
      const { bytes, modifiedMs } = (now ?? before) as FileState;
      // The listener may have ended; that is not a reason to stop looking.
      await this.tell({ type, object: { name, bytes, modifiedMs } }).catch(() => {});
    }
  }

  /** Returns the file's state; undefined if it is gone, is not a regular file, or cannot be accessed. */
  private async look(name: string): Promise<SeenFile | undefined> {
    try {
      const found = await stat(join(this.path, name));
      return found.isFile() ? { name, bytes: found.size, modifiedMs: found.mtimeMs, inode: found.ino } : undefined;
    } catch {
      return undefined;
    }
  }
}

function difference(before: SeenFile | undefined, now: SeenFile | undefined): ChangeType | undefined {
  if (before === undefined) return now === undefined ? undefined : 'ADDED';
  if (now === undefined) return 'DELETED';
  const same = before.bytes === now.bytes && before.modifiedMs === now.modifiedMs && before.inode === now.inode;
  return same ? undefined : 'MODIFIED';
}
