/** A journal's operations on files: finding one, creating one, and writing whole ones. */
import { type FileHandle, open, readlink, realpath, rename, rm } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { joined } from '../../decode/framing.ts';
import { invalid, WatchError } from '../../watch/errors.ts';
import { toFrame } from './frames.ts';
import type { JournalSnapshot } from './journal.ts';
import { linesOf, titleLine } from './records.ts';

/** About how many bytes of a snapshot are in one frame. */
const FRAME_BYTES = 2 ** 20;

/** The path of the file that will replace a file. Nobody else has files of such names. */
export const newName = (file: string): string => `${file}.watchmux-new`;

/** Makes that file, in the place of one that was left behind. Nobody else can read it: a server's objects may be secrets. */
export async function openNew(file: string): Promise<FileHandle> {
  await rm(newName(file), { force: true });
  return open(newName(file), 'wx+', 0o600);
}

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

/** Opens an existing file; undefined if there is none, or if it is empty. */
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
  if (found.size > 0 && found.isFile()) return handle;
  await handle.close();
  // A device has no size either, and a new file would take its place.
  if (!found.isFile()) throw invalid('file', file, 'the path of a file, or an unused path');
  return undefined;
}

/** Creates an empty journal file, as a whole or not at all. */
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

/** Leaves no new file behind: on a full disk it would take the room that the old one needs. */
export async function abandon(handle: FileHandle, file: string): Promise<void> {
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

/** Two processes would overwrite each other's records, and what is written to a file that has been replaced is lost. */
export function taken(file: string): WatchError {
  return new WatchError('INVALID_FRAME', `the journal ${file} was changed by another process: only one may have it open`);
}

function isMissing(error: unknown): boolean {
  return (error as { code?: unknown }).code === 'ENOENT';
}
