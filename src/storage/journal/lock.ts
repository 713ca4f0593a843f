/**
 * One process has a journal open: it listens at a name that only one can have, and that the system frees when that process dies, of
 * whatever. Such names are the abstract sockets of Linux, one set for each network namespace, and the named pipes of Windows.
 *
 * The name is made of what the directory is to the system, and not of its path: two containers may mean different files by one path,
 * or one file by two. Where there are no such names there is no lock: what is left is that a journal notices another writer.
 */
import { createHash } from 'node:crypto';
import { stat } from 'node:fs/promises';
import { createServer } from 'node:net';
import { basename, dirname } from 'node:path';
import { WatchError } from '../../watch/errors.ts';

/** Gives a lock back. */
export type Unlock = () => Promise<void>;

/** As long as the name of a socket can be: older versions of Node fill a shorter one up, and newer ones do not. */
const NAME_BYTES = 108;
/** Before libuv 1.46, all abstract sockets of Node had one and the same name. */
const MIN_LIBUV = 46;

/**
 * Locks a file, which need not be there yet.
 *
 * @throws {WatchError} INVALID_ARGUMENT if somebody has it open, this process included.
 */
export async function lock(file: string): Promise<Unlock> {
  const path = await nameOf(file);
  if (path === undefined) return async () => {};
  // The socket is nobody's to talk to. That nobody can be taken any more is no failure of the lock, and no end of the process.
  const server = createServer((socket) => socket.destroy()).unref();
  const error: unknown = await new Promise((resolve) => {
    server.on('error', resolve);
    // In a worker of a cluster it would be listened at by the primary, for all of them.
    server.listen({ path, exclusive: true }, () => resolve(undefined));
  }).catch((thrown: unknown) => thrown);
  if ((error as { code?: unknown } | undefined)?.code === 'EADDRINUSE') {
    throw new WatchError('INVALID_ARGUMENT', `the journal ${file} is open already: one process may have it open`);
  }
  return () => new Promise((resolve) => server.close(() => resolve()));
}

async function nameOf(file: string): Promise<string | undefined> {
  const { platform, versions } = process;
  const isLinux = platform === 'linux' && Number(versions.uv?.split('.')[1]) >= MIN_LIBUV;
  if (!isLinux && platform !== 'win32') return undefined;
  const { dev, ino } = await stat(dirname(file), { bigint: true });
  const hash = createHash('sha512')
    .update(`${dev}/${ino}/${basename(file)}`)
    .digest('hex');
  return `${isLinux ? '\0' : '\\\\.\\pipe\\'}watchmux-journal-${hash}`.slice(0, NAME_BYTES);
}
