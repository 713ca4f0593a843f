/** A journal's operations on files: finding and locking one, creating one, and writing the one that replaces it. */
import { createHash } from 'node:crypto';
import { type FileHandle, open, readlink, realpath, rename, rm, stat } from 'node:fs/promises';
import { createServer } from 'node:net';
import { basename, dirname, join, resolve } from 'node:path';
import { joined } from '../../decode/framing.ts';
import { invalid, WatchError } from '../../watch/errors.ts';
import { identityOf } from '../same-file.ts';
import { type JournalSnapshot, linesOf, titleLine, toFrame } from './records.ts';

/** About how many bytes of a snapshot go into one frame. */
const FRAME_BYTES = 2 ** 20;

/** The path of the file that will replace a file. No other files have such names. */
export const newName = (file: string): string => `${file}.watchmux-new`;

/** Creates that file, replacing one that was left behind. Only its owner can read it, as a server's objects may be secrets. */
async function openNew(file: string): Promise<FileHandle> {
  await rm(newName(file), { force: true });
  return open(newName(file), 'wx+', 0o600);
}

/** A path that means the same when the working directory has changed. */
export const absolute = (path: string): string => resolve(path);

/** The path that a path resolves to, whether it exists or not: a new file must replace the file, not a link to it. */
export async function realFile(path: string): Promise<string> {
  try {
    return await realpath(path);
  } catch (error) {
    if (!isMissing(error)) throw error;
  }
  const directory = await realpath(dirname(path));
  const target = await readlink(path).catch(() => undefined); // only links have one
  return target === undefined ? join(directory, basename(path)) : realFile(resolve(directory, target));
}

/** Opens an existing file; undefined if there is none. */
export async function openOld(file: string): Promise<FileHandle | undefined> {
  let handle: FileHandle;
  try {
    handle = await open(file, 'r+');
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
  const found = await handle.stat().catch(async (error: unknown) => {
    await handle.close();
    throw error;
  });
  if (found.isFile()) return handle;
  await handle.close();
  throw invalid('file', file, 'the path of a file, or an unused path'); // nothing may take the place of a device
}

/** Creates an empty journal file, completely or not at all. */
export async function create(file: string): Promise<FileHandle> {
  const handle = await openNew(file);
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

/** Removes the new file: on a full disk, it would take the space that the old one needs. */
async function abandon(handle: FileHandle, file: string): Promise<void> {
  await handle.close().catch(() => {});
  await rm(newName(file)).catch(() => {});
}

/** Writes a snapshot at the beginning of a file, in frames; resolves with its size. */
export async function writeSnapshot(handle: FileHandle, { revision, records }: JournalSnapshot, now: number): Promise<number> {
  let size = 0;
  let pieces: Uint8Array[] = [titleLine({ revision, items: records.length })];
  let bytes = 0;
  const flush = async (): Promise<void> => {
    const frame = toFrame(joined(pieces));
    await writeAll(handle, frame, size);
    size += frame.byteLength;
    pieces = [];
    bytes = 0;
  };
  for (const record of records) {
    const loading = record.load?.();
    if (loading) await loading;
    const lines = linesOf(record, now);
    pieces.push(...lines);
    bytes += lines.reduce((sum, { byteLength }) => sum + byteLength, 0);
    if (bytes >= FRAME_BYTES) await flush();
  }
  if (pieces.length > 0) await flush();
  return size;
}

export async function writeAll(handle: FileHandle, bytes: Uint8Array, position: number): Promise<void> {
  for (let at = 0; at < bytes.byteLength; ) {
    const { bytesWritten } = await handle.write(bytes, at, bytes.byteLength - at, position + at);
    at += bytesWritten;
  }
}

/** Makes a rename durable. Not every system can. */
export async function syncDirectory(file: string): Promise<void> {
  try {
    const directory = await open(dirname(file), 'r');
    await directory.sync().finally(() => directory.close());
  } catch (error) {
    if (process.platform !== 'win32') throw error;
  }
}

/** Two processes would overwrite each other's records, and writes to a file that has been replaced are lost. */
export function taken(file: string): WatchError {
  return new WatchError('INVALID_FRAME', `the journal ${file} was changed by another process: only one may have it open`);
}

/** Writes to a file that was moved away would be lost for those who open the path later. */
export function moved(file: string): WatchError {
  return new WatchError(
    'INVALID_FRAME',
    `the journal ${file} was moved, deleted or replaced: restart with the file that is to be used`,
  );
}

/** Which file a path names, and its size; undefined if it names none. */
export async function fileAt(path: string): Promise<{ readonly identity: string; readonly size: number } | undefined> {
  try {
    const found = await stat(path, { bigint: true });
    return { identity: identityOf(found), size: Number(found.size) };
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

function isMissing(error: unknown): boolean {
  return (error as { code?: unknown }).code === 'ENOENT';
}

/** How many bytes are copied at a time. */
const COPY_BYTES = 2 ** 22;

/** The file from which a new one is made. */
export interface OldFile {
  readonly handle: FileHandle;
  readonly size: number;
}

/** Its path, and the part of it that is currently safe. */
interface Origin {
  readonly file: string;
  readonly old: () => OldFile;
}

/** A file that will replace a journal's: a snapshot, and the later records, copied from the old one. */
export class NextFile {
  readonly handle: FileHandle;
  /** To be called before it is closed: then its number in the file system may be another file's at once. */
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

  /** Writes a snapshot of the old file's current state, and whatever is appended there in the meantime. */
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
      // The little that is left after this is copied while no group is written.
      await next.#copy();
      await handle.datasync();
      return next;
    } catch (error) {
      await unlock?.();
      await abandon(handle, file);
      throw error;
    }
  }

  /**
   * Replaces the old file, unless `check` throws. If that fails, the old file is intact and stays in use, as if this one had never
   * existed.
   */
  async takePlace(check: () => Promise<void>): Promise<void> {
    const { file } = this.#origin;
    try {
      await this.#copy();
      await this.handle.sync();
      await check(); // last, as the sync may take long
      await rename(newName(file), file);
    } catch (error) {
      await this.drop();
      throw error;
    }
  }

  async drop(): Promise<void> {
    await this.unlock();
    await abandon(this.handle, this.#origin.file);
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

/**
 * Releases a lock. A process that has a journal open listens at a name that only one process can have, and that the system frees
 * when the process dies, for whatever reason. On Linux, such a name is an abstract socket, in its network namespace; on Windows,
 * a named pipe.
 *
 * There are two names. One is made from the directory's identity in the system and the file's name, not from its path: in two
 * containers, one path may lead to different files, or two paths to one file. The other is made from the file's own identity,
 * which all of its hard links share. Systems without such names have no lock; a journal still notices another writer.
 */
export type Unlock = () => Promise<void>;

/** The maximum length: older versions of Node pad a shorter name, and newer ones do not. */
const NAME_BYTES = 108;
/** Before libuv 1.46, all abstract sockets of Node had the same name. */
const MIN_LIBUV = 46;

/**
 * Locks the path of a file, which need not exist yet.
 *
 * @throws {WatchError} INVALID_ARGUMENT if it is already open, even in this process.
 */
export async function lock(file: string): Promise<Unlock> {
  const { dev, ino } = await stat(dirname(file), { bigint: true });
  return take(`${dev}/${ino}/${basename(file)}`, file);
}

/** Locks an open file under all of its names, until another one replaces it. Throws as {@link lock} does. */
export async function lockOpen(handle: Pick<FileHandle, 'stat'>, file: string): Promise<Unlock> {
  const { dev, ino } = await handle.stat({ bigint: true });
  return take(`${dev}/${ino}`, file);
}

async function take(identity: string, file: string): Promise<Unlock> {
  const path = nameOf(identity);
  if (path === undefined) return async () => {};
  // Nobody should connect to this socket. If it can accept no more connections, neither the lock nor the process may fail.
  const server = createServer((socket) => socket.destroy()).unref();
  const error: unknown = await new Promise((resolve) => {
    server.on('error', resolve);
    // Otherwise, in a cluster's worker, the primary would listen on behalf of all workers.
    server.listen({ path, exclusive: true }, () => resolve(undefined));
  }).catch((thrown: unknown) => thrown);
  if ((error as { code?: unknown } | undefined)?.code === 'EADDRINUSE') {
    throw new WatchError('INVALID_ARGUMENT', `the journal ${file} is open already: only one process may open it`);
  }
  return () => new Promise((resolve) => server.close(() => resolve()));
}

function nameOf(identity: string): string | undefined {
  const { platform, versions } = process;
  const isLinux = platform === 'linux' && Number(versions.uv?.split('.')[1]) >= MIN_LIBUV;
  if (!isLinux && platform !== 'win32') return undefined;
  const hash = createHash('sha512').update(identity).digest('hex');
  return `${isLinux ? '\0' : '\\\\.\\pipe\\'}watchmux-journal-${hash}`.slice(0, NAME_BYTES);
}
