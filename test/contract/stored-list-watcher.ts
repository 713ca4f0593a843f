import type { KubernetesObject } from '../../src/cache/index.ts';
import type { Storage } from '../../src/storage/index.ts';
import type { ListWatcherSubject } from '../../src/testing/index.ts';

/** A storage, or a part of one, as the subject of the contract of a list watcher. */
export function storedListWatcher(source: Storage, expire: () => Promise<void>): ListWatcherSubject {
  return {
    source,
    put: async (name, labels) => {
      const metadata = { name, ...(labels && { labels }) };
      const change = (current: KubernetesObject | undefined): KubernetesObject => ({
        metadata: { ...metadata, annotations: { turn: `${Number(current?.metadata?.annotations?.turn ?? 0) + 1}` } },
      });
      await source.update(name, change, { createIfMissing: true });
    },
    remove: async (name) => void (await source.delete(name)),
    expire,
    bookmark: () => source.requestProgress(),
  };
}
