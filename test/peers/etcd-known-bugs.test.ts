// Bugs that etcd had in its watches and reads, by the numbers of its issues: each is looked for in the etcd that is built here, through a
// storage, so that what a storage adds, or an etcd of a later release breaks again, is found. What the storage does about an etcd that
// has them still is in unit/etcd-storage.test.ts.
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { KubernetesObject } from '../../src/cache/index.ts';
import type { Watch } from '../../src/index.ts';
import { EtcdStorage, type EtcdStorageOptions } from '../../src/storage/etcd/index.ts';
import type { Storage, StorageEvent } from '../../src/storage/index.ts';
import { component, isMissing } from '../components.ts';
import { type EtcdCluster, startEtcdCluster } from './etcd-cluster.ts';
import { type EtcdServer, startEtcd } from './etcd-server.ts';

const missing = isMissing(component('kube-apiserver'));
const START_MS = 60_000;

interface Thing extends KubernetesObject {
  readonly text?: string;
}
type Event = StorageEvent<Thing>;

let etcd: EtcdServer;
let cluster: EtcdCluster;
let scopes = 0;
const closing: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  if (!missing) [etcd, cluster] = await Promise.all([startEtcd({ progress: '200ms' }), startEtcdCluster(3)]);
}, 2 * START_MS);
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});
afterAll(async () => {
  await etcd?.stop();
  await cluster?.stop();
}, START_MS);

function open(endpoints: readonly string[], prefix: string = `/known-${scopes++}/`, more: Partial<EtcdStorageOptions> = {}) {
  const storage = new EtcdStorage<Thing>({ endpoints, prefix, ...more });
  closing.push(() => storage.close());
  return storage;
}

const thing = (name: string, text: string = ''): Thing => ({ metadata: { name }, text });
const versionOf = ({ object }: Event): number => Number((object as Thing).metadata?.resourceVersion);
const put = (storage: Storage<Thing>, name: string, text?: string): Promise<Thing> =>
  storage.update(name, () => thing(name, text), { createIfMissing: true });

/** Reads until there is one of this version or a later one. */
async function readTo(watch: Watch<Event>, version: string): Promise<Event[]> {
  const events: Event[] = [];
  for await (const event of watch) {
    events.push(event);
    if (versionOf(event) >= Number(version)) return events;
  }
  throw new Error('the watch has ended');
}

describe.skipIf(missing)('a real etcd', () => {
  it('#15220: progress that is told covers everything before it', async () => {
    const storage = open([etcd.url]);
    const start = await storage.currentVersion();
    const watches = await Promise.all(
      Array.from({ length: 8 }, () => storage.watch({ resourceVersion: start, allowWatchBookmarks: true })),
    );
    const reads = watches.map(async (watch) => {
      const events: Event[] = [];
      for await (const event of watch) {
        events.push(event);
        if (event.type !== 'BOOKMARK' && (event.object as Thing).metadata?.name === 'end') return events;
      }
      return events;
    });
    const asks = setInterval(() => void storage.requestProgress(), 1);
    await Promise.all(
      Array.from({ length: 8 }, async (_, writer) => {
        for (let n = 0; n < 60; n++) await put(storage, `w${writer}`, `${n}`);
      }),
    );
    clearInterval(asks);
    await put(storage, 'end');
    for (const events of await Promise.all(reads)) {
      let told = 0;
      for (const event of events) {
        const version = versionOf(event);
        if (event.type === 'BOOKMARK') told = Math.max(told, version);
        else expect(version).toBeGreaterThan(told);
      }
      expect(events.filter(({ type }) => type !== 'BOOKMARK')).toHaveLength(8 * 60 + 1);
      expect(told).toBeGreaterThan(0);
    }
  });

  it('#17529, #17247: many watches of large events, half of them not read for long, lose nothing and get nothing twice', async () => {
    const storage = open([etcd.url]);
    const start = await storage.currentVersion();
    const options = { resourceVersion: start, allowWatchBookmarks: true };
    const watches = await Promise.all(Array.from({ length: 24 }, () => storage.watch(options)));
    const last = async (version: Promise<string>): Promise<Event[][]> => {
      const read = (at: number): Promise<Event[][]> =>
        Promise.all(watches.filter((_, n) => n % 2 === at).map(async (watch) => readTo(watch, await version)));
      const quick = read(0);
      await version;
      return [...(await quick), ...(await read(1))];
    };
    let resolve: (version: string) => void = () => {};
    const events = last(new Promise((done) => (resolve = done)));
    const text = 'x'.repeat(40_000);
    const versions: number[] = [];
    for (let n = 0; n < 60; n++) {
      versions.push(Number((await put(storage, `n${n % 3}`, `${n}${text}`)).metadata?.resourceVersion));
      if (n % 5 === 0) await storage.requestProgress();
    }
    resolve(`${versions.at(-1)}`);
    for (const each of await events) expect(each.filter(({ type }) => type !== 'BOOKMARK').map(versionOf)).toEqual(versions);
  });

  it('#18089, #19179: a deletion at the revision of a compaction is told to whoever begins there, or else 410', async () => {
    const storage = open([etcd.url]);
    const known = await put(storage, 'a');
    const before = await put(storage, 'b');
    const early = await storage.watch({ resourceVersion: before.metadata?.resourceVersion });
    const revision = (await storage.delete('a')).metadata?.resourceVersion as string;
    await etcd.json('/v3/kv/compaction', { revision, physical: true });
    // Behind the revision before: the first that it wants is that of the compaction.
    const resourceVersion = `${Number(revision) - 1}`;
    const late = await storage.watch({ resourceVersion, previousOf: (key) => (key === 'a' ? known : undefined) });
    for (const watch of [early, late]) {
      const { value } = await watch.next();
      expect(value).toMatchObject({ type: 'DELETED', object: { metadata: { name: 'a', resourceVersion: revision } } });
      await watch.return();
    }
    // etcd has forgotten what was deleted. A watch that does not know it gets a 410, and its client must list again.
    const ignorant = await storage.watch({ resourceVersion });
    expect((await ignorant.next()).value).toMatchObject({ type: 'ERROR', object: { code: 410 } });
    const { items } = await storage.list({ resourceVersion: revision, resourceVersionMatch: 'Exact' });
    expect(items.map(({ metadata }) => metadata?.name)).toEqual(['b']);
  });

  it('#20221: a watch from a revision that has not come is refused, and is told nothing of before', async () => {
    const storage = open([etcd.url]);
    await put(storage, 'a');
    const future = `${Number(await storage.currentVersion()) + 5}`;
    await expect(storage.watch({ resourceVersion: future, allowWatchBookmarks: true })).rejects.toMatchObject({
      status: { code: 410 },
    });
    for (let n = 0; n < 8; n++) await put(storage, 'a', `${n}`);
    const watch = await storage.watch({ resourceVersion: future });
    expect(versionOf((await watch.next()).value as Event)).toBe(Number(future) + 1);
  });

  it(
    '#15271: a watch at a member that was cut off from the others goes on where it was, and never back',
    async () => {
      const prefix = `/known-${scopes++}/`;
      const all = open(cluster.urls, prefix);
      const first = await put(all, 'a');
      const cut = 2;
      const watch = await open([cluster.urls[cut] as string], prefix).watch({
        resourceVersion: first.metadata?.resourceVersion,
        allowWatchBookmarks: true,
      });
      const others = open(
        cluster.urls.filter((_, at) => at !== cut),
        prefix,
        { requestTimeoutMs: 20_000 },
      );
      await put(others, 'a', 'before');
      expect(versionOf((await watch.next()).value as Event)).toBeGreaterThan(Number(first.metadata?.resourceVersion));
      cluster.isolate(cut);
      const versions: number[] = [];
      for (let n = 0; n < 10; n++) versions.push(Number((await put(others, 'a', `${n}`)).metadata?.resourceVersion));
      cluster.heal();
      const events = await readTo(watch, `${versions.at(-1)}`);
      expect(events.filter(({ type }) => type !== 'BOOKMARK').map(versionOf)).toEqual(versions);
      await cluster.ready();
    },
    START_MS,
  );

  it(
    '#20418: a member that was paused does not answer with what was there before',
    async () => {
      const prefix = `/known-${scopes++}/`;
      for (const [paused, member] of cluster.members.entries()) {
        const own = open([member.url], prefix, { requestTimeoutMs: 20_000 });
        const others = open(
          cluster.urls.filter((_, at) => at !== paused),
          prefix,
          { requestTimeoutMs: 20_000 },
        );
        await put(own, 'a', 'old');
        member.pause();
        try {
          await put(others, 'a', `new ${paused}`);
        } finally {
          member.resume();
        }
        const [got, listed] = await Promise.all([own.get('a'), own.list()]);
        expect([got?.text, listed.items[0]?.text]).toEqual([`new ${paused}`, `new ${paused}`]);
        await cluster.ready();
      }
    },
    2 * START_MS,
  );
});
