// What a watch begins with, and what it tells then: upstream's tests of storage and cacher that the contract of a storage does not
// have, over a storage in memory, and over a cacher in front of it.
import { afterEach, describe, expect, test } from 'vitest';
import { Cacher, MemoryStorage, type Storage, type StorageEvent } from '../../src/storage/index.ts';
import { FakeClock } from '../../src/testing/index.ts';
import type { Watch } from '../../src/watch/watch.ts';
import { codeOf, names, seen, told } from './cacher-support.ts';
import { type Pod, pod, settle } from './faulty-storage.ts';

const closing: Storage<Pod>[] = [];
afterEach(async () => {
  for (const storage of closing.splice(0).reverse()) await storage.close();
});

async function memoryOf(clock: FakeClock): Promise<Storage<Pod>> {
  const storage = new MemoryStorage<Pod>({ clock });
  closing.push(storage);
  return storage;
}

async function cacherOf(clock: FakeClock): Promise<Storage<Pod>> {
  const cacher = new Cacher<Pod>(await memoryOf(clock), { clock, random: () => 0.5 });
  closing.push(cacher);
  await cacher.ready();
  return cacher;
}

describe.each([
  ['a storage in memory', memoryOf],
  ['a cacher', cacherOf],
])('%s', (_, make) => {
  const open = async (): Promise<{ storage: Storage<Pod>; clock: FakeClock }> => {
    const clock = new FakeClock();
    return { storage: await make(clock), clock };
  };
  const put = (storage: Storage<Pod>, key: string, n: number = 0): Promise<Pod> =>
    storage.update(key, () => pod(key, { n }), { createIfMissing: true });
  /** Two objects, one of which has changed: a@2, b@3, a@4. */
  const filled = async (): Promise<Storage<Pod>> => {
    const { storage } = await open();
    for (const [key, n] of [
      ['x/a', 1],
      ['x/b', 1],
      ['x/a', 2],
    ] as const)
      await put(storage, key, n);
    await storage.list();
    return storage;
  };

  // The state is a@4 and b@3, then c@5 comes.
  const STATE = 'ADDED a@4, ADDED b@3';
  test.each<[string | undefined, boolean | undefined, boolean | undefined, string]>([
    [undefined, true, true, `${STATE}, END 4, ADDED c@5`],
    [undefined, true, undefined, `${STATE}, END 4, ADDED c@5`],
    [undefined, true, false, '400'],
    [undefined, false, true, 'ADDED c@5'],
    [undefined, false, false, 'ADDED c@5'],
    [undefined, undefined, true, `${STATE}, ADDED c@5`],
    [undefined, undefined, false, `${STATE}, ADDED c@5`],
    ['0', true, true, `${STATE}, END 4, ADDED c@5`],
    ['0', true, undefined, `${STATE}, END 4, ADDED c@5`],
    ['0', true, false, '400'],
    ['0', false, true, 'ADDED c@5'],
    ['0', false, false, 'ADDED c@5'],
    ['0', undefined, true, `${STATE}, ADDED c@5`],
    ['0', undefined, false, `${STATE}, ADDED c@5`],
    ['3', true, true, `${STATE}, END 4, ADDED c@5`],
    ['3', true, undefined, `${STATE}, END 4, ADDED c@5`],
    ['3', true, false, '400'],
    ['3', false, true, 'MODIFIED a@4, ADDED c@5'],
    ['3', false, false, 'MODIFIED a@4, ADDED c@5'],
    ['3', undefined, true, 'MODIFIED a@4, ADDED c@5'],
    ['3', undefined, false, 'MODIFIED a@4, ADDED c@5'],
  ])(
    'RunWatchSemantics: from %s, sendInitialEvents %s, allowWatchBookmarks %s: %s',
    async (resourceVersion, sendInitialEvents, allowWatchBookmarks, expected) => {
      const storage = await filled();
      const options = { resourceVersion, sendInitialEvents, allowWatchBookmarks };
      // The end of the state is not hidden from a caller that asks for it.
      if (expected === '400') {
        expect(await codeOf(storage.watch(options))).toBe(400);
        return;
      }
      const watch = await storage.watch(options);
      const state = await seen(watch);
      await put(storage, 'x/c');
      const rest = await seen(watch);
      expect([state, rest].filter((each) => each !== '').join(', ')).toBe(expected);
      await watch.return();
    },
  );

  test('RunSendInitialEventsBackwardCompatibility: who does not know sendInitialEvents gets the state from 0, and no end of it', async () => {
    const storage = await filled();
    const watch = await storage.watch({ resourceVersion: '0' });
    expect(await seen(watch)).toBe(STATE);
    await watch.return();
  });

  test('RunWatchSemanticInitialEventsExtended: the end of the state has the version of everything, though the last change was elsewhere', async () => {
    const storage = await filled();
    await storage.create('y/z', pod('y/z'));
    await storage.delete('y/z');
    await storage.list();
    const scope = storage.scope<Pod>('x/');
    for (const resourceVersion of [undefined, '0', '3', '6']) {
      const watch = await scope.watch({ resourceVersion, sendInitialEvents: true, allowWatchBookmarks: true });
      expect(await seen(watch)).toBe(`${STATE}, END 6`);
      await watch.return();
    }
  });

  test('RunWatchListMatchSingle: the state of one name, its end, and what happens to it', async () => {
    const storage = await filled();
    const fieldSelector = 'metadata.name=b,metadata.namespace=x';
    const watch = await storage.watch({ sendInitialEvents: true, allowWatchBookmarks: true, fieldSelector });
    expect(await seen(watch)).toBe('ADDED b@3, END 4');
    await put(storage, 'x/a', 3);
    await put(storage, 'y/b');
    await storage.delete('x/b');
    expect(await seen(watch)).toBe('DELETED b@7');
    await watch.return();
  });

  test('RunTestClusterScopedWatch: objects in no namespace, by name, label and field', async () => {
    const { storage } = await open();
    const alone = (name: string, app: string): Pod => ({ metadata: { name, labels: { app } } });
    const rows: readonly (readonly [object, string])[] = [
      [{}, 'ADDED a@2, ADDED b@3, MODIFIED a@4, DELETED b@5'],
      [{ fieldSelector: 'metadata.name=a' }, 'ADDED a@2, MODIFIED a@4'],
      [{ fieldSelector: 'metadata.name!=a' }, 'ADDED b@3, DELETED b@5'],
      [{ fieldSelector: 'metadata.namespace=' }, 'ADDED a@2, ADDED b@3, MODIFIED a@4, DELETED b@5'],
      [{ fieldSelector: 'metadata.namespace=x' }, ''],
      [{ labelSelector: 'app=web' }, 'ADDED a@2, DELETED a@4'],
      [{ labelSelector: 'app=db', fieldSelector: 'metadata.name=a' }, 'ADDED a@4'],
    ];
    const watches = await Promise.all(rows.map(([options]) => storage.watch({ resourceVersion: '1', ...options })));
    await storage.create('a', alone('a', 'web'));
    await storage.create('b', alone('b', 'db'));
    await storage.update('a', () => alone('a', 'db'));
    await storage.delete('b');
    for (const [at, [, expected]] of rows.entries()) expect(await seen(watches[at] as Watch<StorageEvent<Pod>>)).toBe(expected);
  });

  test('RunTestNamespaceScopedList: of one namespace or of all, by name, label and field', async () => {
    const { storage } = await open();
    for (const [key, app] of [
      ['x/a', 'web'],
      ['x/b', 'db'],
      ['y/a', 'web'],
      ['x-2/a', 'db'],
    ] as const)
      await storage.create(key, pod(key, { app }));
    const listed = async (of: Storage<Pod>, options: object): Promise<string> => names(await of.list(options));
    const scope = storage.scope<Pod>('x/');
    for (const [of, options, expected] of [
      [storage, {}, 'x-2/a x/a x/b y/a'],
      [storage, { fieldSelector: 'metadata.namespace=x' }, 'x/a x/b'],
      [storage, { fieldSelector: 'metadata.name=a' }, 'x-2/a x/a y/a'],
      [storage, { fieldSelector: 'metadata.name=a,metadata.namespace=x' }, 'x/a'],
      [scope, {}, 'x/a x/b'],
      [scope, { labelSelector: 'app=web' }, 'x/a'],
      [scope, { fieldSelector: 'metadata.name=b' }, 'x/b'],
      [scope, { fieldSelector: 'metadata.namespace=y' }, ''],
      [scope, { labelSelector: 'app=web', fieldSelector: 'metadata.name=b' }, ''],
    ] as const)
      expect(await listed(of, options)).toBe(`${expected} @5`);
  });

  test('RunTestWatcherTimeout: fifty that nobody reads hold nobody up', async () => {
    const { storage } = await open();
    const idle = await Promise.all(Array.from({ length: 50 }, () => storage.watch({ resourceVersion: '1' })));
    const read = await storage.watch({ resourceVersion: '1' });
    for (let n = 0; n < 50; n++) {
      const pending = read.next();
      await put(storage, 'x/a', n);
      expect(told((await pending).value as StorageEvent<Pod>)).toBe(`${n === 0 ? 'ADDED' : 'MODIFIED'} a@${n + 2}`);
    }
    await read.return();
    await Promise.all(idle.map((watch) => watch.return()));
  });

  test('RunTestOptionalWatchBookmarksWithCorrectResourceVersion: a BOOKMARK is behind all that it covers, and before all else', async () => {
    const { storage, clock } = await open();
    const options = { resourceVersion: '1', allowWatchBookmarks: true, labelSelector: 'app=db' };
    const watch = await storage.watch(options);
    const events: StorageEvent<Pod>[] = [];
    const read = (async () => {
      for await (const event of watch) events.push(event);
    })();
    for (let n = 0; n < 40; n++) {
      const app = n % 3 === 0 ? 'db' : 'web';
      const written = storage.create(`x/n${n}`, pod(`x/n${n}`, { app }));
      if (n % 2 === 0) await written;
      if (n % 4 === 1) await storage.requestProgress();
      clock.advance(30_000);
      await written;
    }
    await storage.list();
    await storage.requestProgress();
    clock.advance(60_000);
    await settle();
    watch.stop();
    await read;
    const versions = events.map(({ object }) => Number((object as Pod).metadata?.resourceVersion));
    // Each name is written at one version, so what follows a BOOKMARK must be newer, and what precedes it may be as new.
    for (const [at, { type }] of events.entries()) {
      if (at === 0) continue;
      const before = versions[at - 1] as number;
      if (type === 'BOOKMARK') expect(versions[at]).toBeGreaterThanOrEqual(before);
      else expect(versions[at]).toBeGreaterThan(before);
    }
    expect(events.filter(({ type }) => type === 'ADDED')).toHaveLength(14);
    expect(events.filter(({ type }) => type === 'BOOKMARK').length).toBeGreaterThan(1);
    expect(versions.at(-1)).toBe(41);
  });

  test('TestWatcherNotGoingBackInTime: whenever it begins, no version comes before an older one, and none twice', async () => {
    const { storage } = await open();
    const watches: { versions: number[]; watch: Watch<StorageEvent<Pod>> }[] = [];
    for (let n = 0; n < 60; n++) {
      await put(storage, `x/n${n % 7}`, n);
      if (n % 3 !== 0) continue;
      const list = await storage.list({ resourceVersion: n % 2 === 0 ? undefined : '0' });
      const watch = await storage.watch({ resourceVersion: list.resourceVersion });
      watches.push({ versions: [Number(list.resourceVersion)], watch });
    }
    await storage.list();
    for (const { watch, versions } of watches) {
      await settle();
      for (let event = watch.tryNext(); event; event = watch.tryNext())
        versions.push(Number((event.object as Pod).metadata?.resourceVersion));
      const first = versions[0] as number;
      expect(versions).toEqual(Array.from({ length: 61 - first + 1 }, (_, at) => first + at));
      await watch.return();
    }
  });

  test('TestResourceVersionAfterInitEvents: what the state has already is not told again as a change', async () => {
    const { storage } = await open();
    await put(storage, 'x/a', 1);
    // Written at once with the beginning of the watch: each of them is in its state, or comes behind it.
    const writes = Array.from({ length: 10 }, (_, n) => put(storage, 'x/a', n + 2));
    const watch = await storage.watch({ sendInitialEvents: true, allowWatchBookmarks: true });
    await Promise.all(writes);
    await storage.list();
    await settle();
    const versions: number[] = [];
    for (let event = watch.tryNext(); event; event = watch.tryNext())
      if (event.type !== 'BOOKMARK') versions.push(Number((event.object as Pod).metadata?.resourceVersion));
    expect(versions).toEqual(Array.from(versions, (_, at) => (versions[0] as number) + at));
    expect(versions.at(-1)).toBe(12);
    await watch.return();
  });

  test('TestCacheWatcherStoppedInAnotherGoroutine: whoever stops it, and whatever it does, a read ends, and writes go on', async () => {
    const storage = await filled();
    const waiting = await storage.watch({ resourceVersion: '4' });
    const inState = await storage.watch({ sendInitialEvents: true });
    await inState.next();
    const pending = waiting.next();
    await Promise.all([put(storage, 'x/a', 3), Promise.resolve().then(() => waiting.stop()), inState.return()]);
    expect([true, false]).toContain((await pending).done);
    for (const watch of [waiting, inState]) {
      while (watch.tryNext()) {}
      expect(await watch.next()).toEqual({ done: true, value: undefined });
    }
    await put(storage, 'x/a', 4);
    expect((await storage.get('x/a'))?.spec?.n).toBe(4);
  });

  test('TestCacheWatcherStoppedOnDestroy: a storage that is closed ends them, those among it that nobody reads', async () => {
    const storage = await filled();
    const watches = [
      await storage.watch({ resourceVersion: '4' }),
      await storage.watch({ sendInitialEvents: true }),
      await storage.scope<Pod>('x/').watch({ resourceVersion: '2', labelSelector: 'app=web' }),
    ];
    const pending = watches[0]?.next();
    await storage.close();
    expect(await pending).toEqual({ done: true, value: undefined });
    for (const watch of watches) {
      while (watch.tryNext()) {}
      expect(await watch.next()).toEqual({ done: true, value: undefined });
    }
    expect(await codeOf(storage.watch())).toBe('CLOSED');
  });

  test('RunTestKeySchema: namespace and name, or a name alone; a scope is a path', async () => {
    const { storage } = await open();
    const keys = ['x/a', 'a', 'x-2/a'];
    for (const key of keys) {
      const [name, namespace] = key.split('/').reverse() as [string, string | undefined];
      await storage.create(key, { metadata: { name, ...(namespace && { namespace }) } });
    }
    for (const key of keys) expect((await storage.get(key))?.metadata?.name).toBe('a');
    expect(await storage.get('x')).toBeUndefined();
    const kept = async (of: Storage<Pod>): Promise<number> => (await of.list()).items.length;
    expect([await kept(storage), await kept(storage.scope('x/')), await kept(storage.scope('x/a/'))]).toEqual([3, 1, 0]);
    expect((await storage.scope<Pod>('x/').get('a'))?.metadata?.resourceVersion).toBe('2');
  });
});
