// What a cacher tells of itself, what it hands on to its storage, and what is left when something has ended.
import { describe, expect, test } from 'vitest';
import type { List, ListOptions } from '../../src/cache/index.ts';
import { Cacher, type GetOptions, MemoryStorage, type Storage, type StorageWatchOptions } from '../../src/storage/index.ts';
import { FakeClock } from '../../src/testing/index.ts';
import { WatchError } from '../../src/watch/errors.ts';
import { type Status, toStatus } from '../../src/watch/event.ts';
import { rig, seen } from './cacher-support.ts';
import { type Pod, type Pods, pod, settle } from './faulty-storage.ts';

const one = async (pods: Pods): Promise<void> => {
  await pods.put('x/a');
};

/** What a cacher asks of a storage, some of it done otherwise. */
function instead(memory: MemoryStorage<Pod>, other: Partial<Storage<Pod>>): Storage<Pod> {
  const same: Partial<Storage<Pod>> = {
    list: (options) => memory.list(options),
    watch: (options) => memory.watch(options),
    currentVersion: (options) => memory.currentVersion(options),
    requestProgress: () => memory.requestProgress(),
  };
  return { ...same, ...other } as Storage<Pod>;
}

describe('the state of a cacher', () => {
  test('has the error for which it is not ready, and no member for one as long as there is none', async () => {
    const { cacher, clock, errors } = await rig({}, async (pods) => {
      await one(pods);
      pods.storage.faults.codes.list.push(500);
    });
    expect(cacher.stats).toMatchObject({ phase: 'pending', error: errors[0] });
    expect(errors[0]).toMatchObject({ code: 'REFUSED' });
    clock.advance(100);
    await settle();
    expect(cacher.stats).toEqual({
      phase: 'ready',
      generation: 1,
      resourceVersion: '2',
      objects: 1,
      changes: 0,
      window: { items: 0, bytes: 0, since: '2' },
      watches: 0,
      views: 0,
      fellBehind: 0,
      gaps: 0,
      waiting: 0,
    });
  });

  test('counts watches that fell behind', async () => {
    const { cacher, pods } = await rig({ windowItems: 2 }, one);
    const slow = await cacher.watch({ resourceVersion: '2' });
    for (let n = 1; n <= 3; n++) await pods.put('x/a', { n });
    expect(await seen(slow)).toBe('ERROR 410');
    expect(cacher.stats).toMatchObject({ fellBehind: 1, watches: 0, views: 0, changes: 3, window: { items: 2, since: '3' } });
  });
});

describe('timers of watches', () => {
  test('a watch that is never due has none, nor does it keep that of others', async () => {
    const { cacher, clock } = await rig({}, one);
    const before = clock.pending;
    const quiet = await cacher.watch({ resourceVersion: '2' });
    expect(clock.pending).toBe(before);
    const marked = await cacher.watch({ resourceVersion: '2', allowWatchBookmarks: true });
    expect(clock.pending).toBe(before + 1);
    await marked.return();
    expect(clock.pending).toBe(before);
    await quiet.return();
  });

  test('BOOKMARKs come by default only to whom asks for the end of the state', async () => {
    const { cacher, clock, pods } = await rig({ bookmarkMs: 1_000 }, one);
    const watches = [
      await cacher.watch({ sendInitialEvents: true, labelSelector: 'no' }),
      await cacher.watch({ sendInitialEvents: false, labelSelector: 'no' }),
      await cacher.watch({ resourceVersion: '2', labelSelector: 'no' }),
    ];
    await settle();
    expect(await Promise.all(watches.map(seen))).toEqual(['END 2', '', '']);
    await pods.put('x/b');
    await settle();
    clock.advance(1_000);
    expect(await Promise.all(watches.map(seen))).toEqual(['BOOKMARK 3', '', '']);
  });

  test('a watch that has little time left gets no BOOKMARK, and one that has just more gets one', async () => {
    const { cacher, clock, pods } = await rig({ bookmarkMs: 5_000 }, one);
    const open = (timeoutSeconds: number): ReturnType<typeof cacher.watch> =>
      cacher.watch({ resourceVersion: '2', labelSelector: 'no', allowWatchBookmarks: true, timeoutSeconds });
    const [two, three, six] = [await open(2), await open(3), await open(6)];
    await pods.put('x/b');
    await settle();
    clock.advance(1_000);
    expect([await seen(two), await seen(three), await seen(six)]).toEqual(['', 'BOOKMARK 3', '']);
    clock.advance(999);
    expect([two.stopped, three.stopped]).toEqual([false, false]);
    clock.advance(1);
    expect([two.stopped, three.stopped]).toEqual([true, false]);
    clock.advance(2_000);
    expect([three.stopped, await seen(six), six.stopped]).toEqual([true, 'BOOKMARK 3', false]);
    clock.advance(2_000);
    expect(six.stopped).toBe(true);
  });
});

describe('a cacher and its storage', () => {
  test('the first list has large pages and a signal; the watch is told what there was under a key', async () => {
    const memory = new MemoryStorage<Pod>();
    const stored = await memory.create('x/a', pod('x/a'));
    const lists: ListOptions[] = [];
    const watches: StorageWatchOptions<Pod>[] = [];
    const signals: (AbortSignal | undefined)[] = [];
    const storage = instead(memory, {
      currentVersion: (options) => {
        signals.push(options?.signal);
        return memory.currentVersion(options);
      },
      list: (options = {}) => {
        lists.push(options);
        return memory.list(options);
      },
      watch: (options = {}) => {
        watches.push(options);
        return memory.watch(options);
      },
    });
    const cacher = new Cacher<Pod>(storage);
    await cacher.ready();
    expect(lists).toEqual([expect.objectContaining({ limit: 10_000, signal: expect.any(AbortSignal) })]);
    expect(watches).toEqual([expect.objectContaining({ signal: lists[0]?.signal, allowWatchBookmarks: true })]);
    expect(signals).toEqual([lists[0]?.signal]);
    expect([watches[0]?.previousOf?.('x/a'), watches[0]?.previousOf?.('x/b')]).toEqual([stored, undefined]);
    await cacher.close();
    expect(lists[0]?.signal?.aborted).toBe(true);
    await memory.close();
  });

  test('a get hands the signal on, and so does a list of the newest', async () => {
    const signals: (AbortSignal | undefined)[] = [];
    const memory = new MemoryStorage<Pod>();
    const storage = instead(memory, {
      get: (key: string, options: GetOptions = {}) => {
        signals.push(options.signal);
        return memory.get(key, options);
      },
      currentVersion: (options: { signal?: AbortSignal | undefined } = {}) => {
        signals.push(options.signal);
        return memory.currentVersion(options);
      },
    });
    const cacher = new Cacher<Pod>(storage, { pastRevisions: 0 });
    await cacher.ready();
    const { signal } = new AbortController();
    await cacher.get('x/a', { signal });
    await cacher.list({ signal });
    await cacher.watch({ signal, sendInitialEvents: true });
    expect(signals).toEqual([signal, signal, signal]);
    await cacher.close();
    await memory.close();
  });

  test('its health is that of the storage; one that cannot tell is well', async () => {
    const memory = new MemoryStorage<Pod>();
    let calls = 0;
    const ill = new Error('the disk is full');
    const storage = instead(memory, {
      checkHealth: () => {
        calls++;
        return Promise.reject(ill);
      },
    });
    const cacher = new Cacher<Pod>(storage, { pastRevisions: 0 });
    await expect(cacher.checkHealth()).rejects.toBe(ill);
    expect(calls).toBe(1);
    await cacher.close();
    await expect(cacher.checkHealth()).rejects.toMatchObject({ code: 'CLOSED' });
    expect(calls).toBe(1);
    const silent = new Cacher<Pod>(instead(memory, {}), { pastRevisions: 0 });
    expect(await silent.checkHealth()).toBeUndefined();
    await silent.close();
    await memory.close();
  });

  test.each([
    ['limit', -1],
    ['limit', 1.5],
    ['timeoutSeconds', -1],
  ])('%s of %s is refused by its name', async (name, value) => {
    const { cacher } = await rig({}, one);
    const request = name === 'limit' ? cacher.list({ limit: value }) : cacher.watch({ timeoutSeconds: value });
    await expect(request).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: expect.stringContaining(`${name}: expected`),
    });
  });

  test('that is closed while it lists tells no error: it was asked to', async () => {
    const clock = new FakeClock();
    const errors: unknown[] = [];
    const storage = {
      requestProgress() {},
      watch: () => Promise.reject(new Error('not asked for')),
      list: ({ signal }: ListOptions) =>
        new Promise<List<Pod>>((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason))),
    } as unknown as Storage<Pod>;
    const cacher = new Cacher<Pod>(storage, { clock, pastRevisions: 0, onError: (error) => errors.push(error) });
    await settle();
    await cacher.close();
    expect([errors, cacher.stats.phase, clock.pending]).toEqual([[], 'stopped', 0]);
  });

  test('the words of a 410 name the versions between which it does not know what happened', async () => {
    const { cacher, pods, clock } = await rig({}, one);
    const watch = await cacher.watch({ resourceVersion: '2' });
    pods.storage.cut();
    await pods.put('x/a', { n: 1 });
    await pods.put('x/a', { n: 2 });
    pods.memory.compact();
    await settle();
    clock.advance(1_000);
    await settle();
    expect(watch.tryNext()).toMatchObject({
      type: 'ERROR',
      object: {
        code: 410,
        message: 'too old resource version: 2 (4): the storage lost the changes in between',
      },
    });
  });
});

const status = (more: Partial<Status>): Status => ({
  ...toStatus({ code: 500, reason: 'InternalError', message: 'it was told to fail' }),
  ...more,
});

describe('failures of the storage', () => {
  test('one that comes after a watch that lasted is told, and waited after, like any other', async () => {
    const { pods, clock, errors, asked } = await rig({}, one);
    clock.advance(1_000);
    pods.storage.cut(500);
    await settle();
    expect([errors.length, asked()]).toEqual([1, '']);
    clock.advance(50);
    await settle();
    expect([errors.length, asked()]).toEqual([1, 'watch 2']);
  });

  test.each<[string, Status | undefined, string]>([
    ['no status', undefined, 'watch 2'],
    ['no details', status({}), 'watch 2'],
    ['no causes', status({ details: {} }), 'watch 2'],
    ['no cause', status({ details: { causes: [] } }), 'watch 2'],
    ['another cause', status({ details: { causes: [{ reason: 'Other', message: '' }] } }), 'watch 2'],
    [
      'a version that it has not heard of',
      status({ details: { causes: [{ reason: 'ResourceVersionTooLarge', message: '' }] } }),
      'list , watch 2',
    ],
    ['410', status({ code: 410 }), 'list , watch 2'],
  ])('a refusal with %s is a reason to list, or to ask again', async (_, refusal, expected) => {
    const { pods, clock, asked, errors } = await rig({}, one);
    const { storage } = pods;
    const watch = storage.watch.bind(storage);
    storage.watch = (options) => {
      storage.watch = watch;
      return Promise.reject(new WatchError('REFUSED', `refused ${options?.resourceVersion}`, { status: refusal }));
    };
    clock.advance(1_000);
    storage.cut();
    for (let times = 0; times < 20; times++) {
      await settle();
      clock.advance(100);
    }
    expect([asked(), String(errors[0])]).toEqual([expected, 'WatchError: refused 2']);
  });

  test.each([
    [30_000, ''],
    [29_999, 'list , watch 2'],
  ])('an ERROR before a watch that lasted %d ms has nothing to do with one behind it, if that is long', async (lastsMs, ends) => {
    const { pods, clock, asked } = await rig({}, one);
    pods.storage.cut(500);
    await settle();
    clock.advance(50);
    await settle();
    clock.advance(lastsMs);
    pods.storage.cut();
    await settle();
    asked();
    pods.storage.cut(500);
    await settle();
    clock.advance(49);
    await settle();
    expect(asked()).toBe('');
    clock.advance(1);
    await settle();
    expect(asked()).toBe(ends || 'watch 2');
  });
});

describe('an ERROR of a watch that has lasted', () => {
  test.each([
    [30_000, 'watch 2'],
    [29_950, 'list , watch 2'],
    [29_949, 'watch 2'],
  ])('%d ms is, or is not, of the same series: asked for next is %s', async (lastsMs, expected) => {
    const { pods, clock, asked, cacher } = await rig({}, one);
    pods.storage.cut(500);
    await settle();
    clock.advance(50);
    await settle();
    clock.advance(lastsMs);
    asked();
    pods.storage.cut(500);
    await settle();
    expect(cacher.stats.phase).toBe(expected === 'watch 2' ? 'ready' : 'pending');
    clock.advance(50);
    await settle();
    expect([asked(), cacher.stats.phase]).toEqual([expected, 'ready']);
  });
});

describe('fields of a scope', () => {
  test('are asked only about its own objects, by lists, by watches, and by what changes', async () => {
    const memory = new MemoryStorage<Pod>();
    for (const key of ['x/a', 'y/a']) await memory.create(key, pod(key));
    const cacher = new Cacher<Pod>(memory, { pastRevisions: 0 });
    const asked = new Set<string | undefined>();
    const fields = {
      'spec.node': (object: Pod) => {
        asked.add(object.metadata?.namespace);
        return object.spec?.node;
      },
    };
    const scope = cacher.scope<Pod>('x/', { fields });
    const fieldSelector = 'spec.node=n1';
    expect((await scope.list({ fieldSelector })).items).toHaveLength(1);
    const watch = await scope.watch({ fieldSelector });
    await memory.update('y/a', () => pod('y/a', { n: 1 }));
    await memory.update('x/a', () => pod('x/a', { n: 1 }));
    await memory.delete('y/a');
    await cacher.list();
    expect(await seen(watch)).toBe('ADDED a@2, MODIFIED a@5');
    expect([...asked]).toEqual(['x']);
    await cacher.close();
    await memory.close();
  });
});
