// Every way to a resource of a server is a ListWatcher: in process, over `fetch` without a socket, and over a socket.
import { afterEach, describe, test } from 'vitest';
import type { Resource } from '../../src/apiserver/index.ts';
import { ApiServer, type ResourceDefinition } from '../../src/apiserver/index.ts';
import { createListWatcher, type ListWatcher } from '../../src/cache/index.ts';
import type { KubernetesObject } from '../../src/cache/object.ts';
import { MemoryStorage } from '../../src/storage/index.ts';
import { LIST_WATCHER_CONTRACT, type ListWatcherSubject } from '../../src/testing/index.ts';
import { listening } from '../listening.ts';
import { ORDERS, type Order, remote } from './apiserver-rig.ts';

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

async function subject(
  { kind, cache }: { kind: 'process' | 'fetch' | 'socket'; cache: 'before' | 'own' | 'none' },
  path: string,
): Promise<ListWatcherSubject<Order>> {
  const storage = new MemoryStorage({ maxHistoryItems: 1_000 });
  const server = new ApiServer({
    storage: cache === 'before' ? remote(storage) : storage,
    resources: [ORDERS as ResourceDefinition],
    cache: cache !== 'none' && { windowItems: 1_000, bookmarkMs: 20 },
  });
  const orders = server.resource<Order>('orders.example.com/v1').in('default');
  let source: ListWatcher<KubernetesObject> = orders;
  if (kind === 'fetch') {
    const fetch = (url: URL, init: RequestInit): Promise<Response> => server.fetch(new Request(url, init));
    source = createListWatcher(`http://127.0.0.1${path}`, { fetch: fetch as never });
    closing.push(() => server.shutdown());
  } else if (kind === 'socket') {
    const { url, close } = await listening(server);
    source = createListWatcher(url + path);
    closing.push(close);
  } else closing.push(() => server.shutdown());
  return {
    source: source as ListWatcher<Order>,
    put: async (name, labels) => {
      let count = 0;
      try {
        await orders.create({ metadata: { name, ...(labels && { labels }) }, spec: { count: 1 } });
      } catch {
        const old = await orders.get(name);
        count = (old.spec?.count ?? 0) + 1;
        await orders.update({ ...old, metadata: { ...old.metadata, ...(labels && { labels }) }, spec: { count } });
      }
    },
    remove: async (name) => void (await orders.delete(name)),
    expire: async () => void (await flood(orders)),
    bookmark: async () => {
      // A change elsewhere is news for a cache, which then tells its watches.
      if (cache !== 'none') await storage.create(`elsewhere/${crypto.randomUUID()}`, { metadata: { name: 'a' } });
      await storage.requestProgress();
    },
  };
}

/** More changes than the storage keeps. */
async function flood(orders: Resource<Order>): Promise<void> {
  await orders.create({ metadata: { name: 'flood' } });
  for (let count = 1; count <= 1_001; count++) await orders.patch('flood', { spec: { count } });
  await orders.delete('flood');
}

const ways = (['process', 'fetch', 'socket'] as const).flatMap((kind) =>
  (['before', 'own', 'none'] as const).map((cache) => ({ kind, cache })),
);

describe.each(ways)('$kind, cache: $cache', (way) => {
  for (const { name, run } of LIST_WATCHER_CONTRACT) {
    test(name, () => run(() => subject(way, '/apis/example.com/v1/namespaces/default/orders')));
  }
});
