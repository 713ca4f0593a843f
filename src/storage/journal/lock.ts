/**
 * A process that has a journal open listens at a name that only one process can have, and that the system frees when the process
 * dies, for whatever reason. Such names are the abstract sockets of Linux, one set for each network namespace, and the named
 * pipes of Windows.
 *
 * There are two of them. One is made from the directory's identity in the system and the file's name, not from its path: in two
 * containers, one path may lead to different files, or two paths to one file. The other is made from the file's own identity, which
 * all of its hard links have. Where there are no such names there is no lock; a journal still notices another writer.
 */
import { createHash } from 'node:crypto';
import { type FileHandle, stat } from 'node:fs/promises';
import { createServer } from 'node:net';
import { basename, dirname } from 'node:path';
import { WatchError } from '../../watch/errors.ts';

/** Releases a lock. */
export type Unlock = () => Promise<void>;

/** As long as the name of a socket can be: older versions of Node fill a shorter one up, and newer ones do not. */
const NAME_BYTES = 108;
/** Before libuv 1.46, all abstract sockets of Node had one and the same name. */
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

/** Locks an open file under all of its names, until another one takes its place. Throws as {@link lock} does. */
export async function lockOpen(handle: Pick<FileHandle, 'stat'>, file: string): Promise<Unlock> {
  const { dev, ino } = await handle.stat({ bigint: true });
  return take(`${dev}/${ino}`, file);
}

async function take(identity: string, file: string): Promise<Unlock> {
  const path = nameOf(identity);
  if (path === undefined) return async () => {};
  // Nobody has business with this socket. If it can accept no more connections, neither the lock nor the process may fail.
  const server = createServer((socket) => socket.destroy()).unref();
  const error: unknown = await new Promise((resolve) => {
    server.on('error', resolve);
    // Otherwise, in a cluster's worker, the primary would listen, for all workers.
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
