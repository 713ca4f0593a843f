import type { FromFiles } from '../../operator/webhooks/from-files.ts';
import type { EtcdTls } from '../../storage/etcd/options.ts';
import { openMemoryStorage } from '../../storage/journal/file-journal.ts';
import type { LoadProgress } from '../../storage/journal/load.ts';
import { MemoryStorage } from '../../storage/memory/memory-storage.ts';
import type { Storage } from '../../storage/storage.ts';
import { systemClock, within } from '../../watch/clock.ts';
import { isWatchError, refusalCode, whyOf } from '../../watch/errors.ts';
import { quote, UsageError } from '../usage.ts';
import type { ServeLog } from './log.ts';
import type { EtcdUser } from './reload.ts';
import type { ServeCommand } from './serve-args.ts';

/** After this time, the user who starts a server is told what it is waiting for. */
const PATIENCE_MS = 2_000;

/** What is needed to open a storage. */
interface StorageDeps {
  readonly log: ServeLog;
  readonly etcdTls: FromFiles<EtcdTls> | undefined;
  readonly etcdUser: EtcdUser | undefined;
}

/** Opens what a command names: memory, memory with a file, SQLite, or etcd. */
export async function openStorage({ dataFile, sqliteFile, etcd, prefix }: ServeCommand, deps: StorageDeps): Promise<Storage> {
  if (etcd.length > 0) return openEtcd({ etcd, prefix }, deps);
  if (sqliteFile !== undefined) return openSqlite(sqliteFile);
  const { log } = deps;
  // Above all versions of a server that ran before: its clients get a 410 instead of waiting for versions that mean something
  // else.
  if (dataFile === undefined) return new MemoryStorage({ startRevision: Date.now() * 1_000 });
  try {
    return await openMemoryStorage({
      file: dataFile,
      onTornTail: () =>
        log.warn('torn-write', {
          file: dataFile,
          message: 'the last write was cut short before it was answered, so it was dropped',
        }),
      onProgress: progressOf(dataFile, log),
      onError: (error) => {
        const failure = { file: dataFile, error: whyOf(error) };
        if (isWatchError(error, 'INVALID_ARGUMENT')) log.warn('storage-grows', failure);
        else {
          const message = 'nothing more is written: fix the disk, or put the file back, then restart the server';
          log.error('storage-failed', { ...failure, message });
        }
      },
    });
  } catch (error) {
    throw new UsageError(`--data ${quote(dataFile)}: ${(error as Error).message}`, 'serve');
  }
}

/** Logs how much of a large file has been read. */
function progressOf(file: string, log: Pick<ServeLog, 'info'>): (progress: LoadProgress) => void {
  let nextMs = performance.now() + PATIENCE_MS;
  return ({ bytes, ofBytes }) => {
    if (performance.now() < nextMs) return;
    nextMs = performance.now() + PATIENCE_MS;
    log.info('loading', { file, percent: Math.floor((100 * bytes) / ofBytes) });
  };
}

/** How long a server that ends waits to hear whether its disk has failed. */
const KNOWN_MS = 500;

/** Closes a storage. Returns the exit code: 1 if its disk has failed, now or before. */
export async function closeStorage(
  storage: Pick<Storage, 'checkHealth' | 'close'>,
  { log, isLocal }: { readonly log: Pick<ServeLog, 'error'>; readonly isLocal: boolean },
): Promise<number> {
  let failure: unknown;
  // Only a disk that has failed is a failure of this process, and that is known at once. A remote storage may be unavailable at
  // the moment.
  const health = within(storage.checkHealth?.() ?? Promise.resolve(), {
    limitMs: KNOWN_MS,
    clock: systemClock,
    what: () => 'the storage',
  });
  await health.catch((error: unknown) => {
    const isBusy = isWatchError(error, 'TIMEOUT') || refusalCode(error) === 429;
    if (isLocal && !isBusy) failure = error;
  });
  try {
    await storage.close();
  } catch (error) {
    log.error('storage-failed', { error: whyOf(error) });
    failure = error;
  }
  return failure === undefined ? 0 : 1;
}

/** Loaded only when needed, like etcd: most servers do not use it. */
async function openSqlite(file: string): Promise<Storage> {
  const { SqliteStorage } = await import('../../storage/sqlite/index.ts');
  try {
    const storage = new SqliteStorage({ file });
    await storage.currentVersion();
    return storage;
  } catch (error) {
    throw new UsageError(`--sqlite ${quote(file)}: ${(error as Error).message}`, 'serve');
  }
}

async function openEtcd(
  { etcd: urls, prefix }: Pick<ServeCommand, 'etcd' | 'prefix'>,
  { log, etcdTls: tls, etcdUser }: StorageDeps,
): Promise<Storage> {
  const { EtcdStorage } = await import('../../storage/etcd/index.ts');
  const endpoints = urls.map(({ origin }) => origin);
  const waiting = setTimeout(() => log.warn('waiting', { etcd: endpoints.join(',') }), PATIENCE_MS);
  try {
    const storage = new EtcdStorage({
      endpoints,
      prefix,
      ...(tls && { tls: () => tls.value }),
      ...(etcdUser && { user: etcdUser.user, password: () => etcdUser.password.value }),
    });
    await storage.currentVersion();
    return storage;
  } catch (error) {
    throw new UsageError(`--etcd: ${(error as Error).message}`, 'serve');
  } finally {
    clearTimeout(waiting);
  }
}
