import type { EtcdTls } from '../../storage/etcd/options.ts';
import { openMemoryStorage } from '../../storage/journal/open.ts';
import { MemoryStorage } from '../../storage/memory/memory-storage.ts';
import type { Storage } from '../../storage/storage.ts';
import { quote, UsageError } from '../usage.ts';
import type { EtcdUser } from './certificates.ts';
import { type Log, messageOf } from './log.ts';
import type { FromFiles } from './reload.ts';
import type { ServeCommand } from './serve-args.ts';

/** After this time, the user who starts a server is told what it waits for. */
const PATIENCE_MS = 2_000;

/** What is needed to open a storage. */
export interface StorageMeans {
  readonly log: Log;
  readonly etcdTls: FromFiles<EtcdTls> | undefined;
  readonly etcdUser: EtcdUser | undefined;
}

/** Opens what a command names: memory, memory with a file, or etcd. */
export async function openStorage({ dataFile, etcd, prefix }: ServeCommand, means: StorageMeans): Promise<Storage> {
  if (etcd.length > 0) return openEtcd({ etcd, prefix }, means);
  const { log } = means;
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
      onError: (error) => log.error('storage-failed', { file: dataFile, error: messageOf(error) }),
    });
  } catch (error) {
    throw new UsageError(`--data ${quote(dataFile)}: ${(error as Error).message}`, 'serve');
  }
}

/** It is loaded late: most servers do without. */
async function openEtcd(
  { etcd: urls, prefix }: Pick<ServeCommand, 'etcd' | 'prefix'>,
  { log, etcdTls: tls, etcdUser }: StorageMeans,
): Promise<Storage> {
  const { EtcdStorage } = await import('../../storage/etcd/etcd-storage.ts');
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
