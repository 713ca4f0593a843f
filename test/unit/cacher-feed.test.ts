// How a cacher follows its storage through failures, when it is ready, and when it tells BOOKMARKs.
import { describe, expect, test } from 'vitest';
import type { ListOptions, ListWatchOptions } from '../../src/cache/index.ts';
import { Readiness, retryAfterSeconds } from '../../src/storage/cacher/freshness.ts';
import { SortedMap } from '../../src/storage/collection/sorted-map.ts';
import { Cacher, MemoryStorage, type Storage } from '../../src/storage/index.ts';
import { refused } from '../../src/storage/statuses.ts';
import { FakeClock } from '../../src/testing/index.ts';
import type { WatchError } from '../../src/watch/errors.ts';
import { toStatus } from '../../src/watch/event.ts';
import { type HeapNode, Timetable } from '../../src/watch/timetable.ts';
import { codeOf, names, type PodWatch, rig, seen } from './cacher-support.ts';
import { FaultyStorage, type Pod, type Pods, pod, settle } from './faulty-storage.ts';

const two = async (pods: Pods): Promise<void> => {
  await pods.put('x/a');
  await pods.put('x/b');
};

describe('a storage that is deaf to signals', () => {
  test.each(['currentVersion', 'list', 'watch'] as const)('does not hold back the end of its cacher in %s', async (verb) => {
    const memory = new MemoryStorage<Pod>();
    let answer: () => void = () => {};
    const held = new Promise<void>((resolve) => {
      answer = resolve;
    });
    const storage = new FaultyStorage(memory);
    const ask = memory[verb].bind(memory) as (options?: object) => Promise<unknown>;
    Object.assign(storage, { [verb]: (options?: object) => held.then(() => ask({ ...options, signal: undefined })) });
    const cacher = new Cacher<Pod>(storage, { clock: new FakeClock() });
    await settle();
    await cacher.close();
    answer();
    await settle();
    expect(memory.stats.watches).toBe(0); // one that comes too late is returned
  });

  test('does not hold back the end of its cacher in an open watch', async () => {
    const { cacher, pods, clock } = await rig();
    pods.storage.hold();
    await pods.put('x/a');
    await settle();
    await cacher.close();
    pods.storage.release();
    await settle();
    expect([pods.memory.stats.watches, clock.pending]).toEqual([0, 0]);
  });
});

describe('readiness', () => {
  const make = (): { clock: FakeClock; readiness: Readiness } => {
    const clock = new FakeClock();
    return { clock, readiness: new Readiness({ now: () => clock.now(), random: () => 0 }) };
  };

  test('Test_newReadySetIdempotent: each time it becomes ready is another generation', () => {
    const { readiness } = make();
    const generations: number[] = [];
    for (const turn of ['failed', 'ready', 'ready', 'failed', 'failed', 'ready'] as const) {
      readiness[turn](new Error('no'));
      generations.push(readiness.generation);
    }
    expect(generations).toEqual([0, 1, 1, 1, 1, 2]);
  });

  test('Test_newReadyCheck: stopped is for ever', () => {
    const { readiness } = make();
    readiness.stop();
    readiness.ready();
    readiness.failed(new Error('no'));
    expect([readiness.phase, readiness.generation]).toEqual(['stopped', 0]);
    expect(() => readiness.check()).toThrow(expect.objectContaining({ code: 'CLOSED' }));
  });

  test('Test_newReadyStateChangeTimestamp: only a change of the phase counts', () => {
    const { clock, readiness } = make();
    const since: number[] = [];
    for (const turn of ['failed', 'ready', 'ready', 'failed', 'failed', 'ready'] as const) {
      clock.advance(1);
      readiness[turn](new Error('no'));
      since.push(readiness.sinceMs);
    }
    expect(since).toEqual([0, 2, 2, 4, 4, 6]);
  });

  test('TestReadyError: the refusal has the cause, if that is known, and does not tell it to clients', () => {
    const { readiness } = make();
    const told = (): unknown => {
      try {
        readiness.check();
      } catch (error) {
        const { message, status, cause } = error as WatchError;
        return [message, status?.message, cause];
      }
      return undefined;
    };
    const refusal = '429 TooManyRequests: storage is (re)initializing';
    expect(told()).toEqual([refusal, 'storage is (re)initializing', undefined]);
    const error = new Error('connect ECONNREFUSED 10.1.2.3:2379');
    readiness.failed(error);
    expect(told()).toEqual([refusal, 'storage is (re)initializing', error]);
    readiness.ready();
    expect(told()).toBeUndefined();
  });

  test('who waits is called at the next change only, and not once it has been forgotten', () => {
    const { readiness } = make();
    const calls: string[] = [];
    readiness.onChange(() => calls.push('first'));
    readiness.onChange(() => calls.push('second'))();
    readiness.ready();
    readiness.stop();
    expect(calls).toEqual(['first']);
  });

  test('TestCalculateRetryAfterForUnreadyCache: later the longer it lasts, up to 30 s, with jitter (FIX6.8)', () => {
    const table = [0, 1, 12, 20, 30, 40, 50, 60, 600].map((seconds) => retryAfterSeconds(seconds * 1000, () => 0));
    expect(table).toEqual([1, 1, 2, 3, 6, 11, 20, 30, 30]);
    expect(retryAfterSeconds(600_000, () => 0.999)).toBe(60);
  });
});

describe('how it becomes ready', () => {
  test('a request waits for the first list, and no longer than it may', async () => {
    const clock = new FakeClock();
    const never = { requestProgress() {}, watch() {}, list: () => new Promise(() => {}) } as unknown as Storage<Pod>;
    const cacher = new Cacher<Pod>(never, { clock, pastRevisions: 0 });
    const list = codeOf(cacher.list());
    await settle();
    clock.advance(2_999);
    await settle();
    expect(clock.pending).toBe(1);
    clock.advance(1);
    expect(await list).toBe(429);
    const abort = new AbortController();
    const aborted = codeOf(cacher.watch({ signal: abort.signal }));
    abort.abort({ code: 'enough' });
    expect(await aborted).toBe('enough');
    expect(clock.pending).toBe(0);
  });

  test('TestWatchNotHangingOnStartupFailure, TestRetryAfterForUnreadyCache: once that has failed, 429 at once; then it tries again', async () => {
    const { cacher, clock, errors } = await rig({}, async (pods) => {
      await two(pods);
      pods.storage.faults.codes.list.push(500);
    });
    const refusal = await cacher.watch().catch((error) => error);
    expect(refusal.status).toMatchObject({ code: 429, reason: 'TooManyRequests', details: { retryAfterSeconds: 2 } });
    expect(refusal.cause.message).toContain('it was told to fail');
    expect(await codeOf(cacher.list({ resourceVersion: '0' }))).toBe(429);
    expect(errors).toHaveLength(1);
    clock.advance(100);
    await settle();
    expect(cacher.stats).toMatchObject({ phase: 'ready', generation: 1, resourceVersion: '3' });
    expect(names(await cacher.list({ resourceVersion: '0' }))).toBe('x/a x/b @3');
  });

  test('a storage that cannot be followed is no reason to answer: 429 until it can, and watches that are open wait', async () => {
    const { cacher, pods, clock } = await rig({}, two);
    const watch = await cacher.watch({ resourceVersion: '3' });
    pods.storage.faults.codes.watch.push(500, 500);
    pods.storage.cut();
    await settle();
    expect(await codeOf(cacher.list({ resourceVersion: '0' }).then(names))).toEqual({ value: 'x/a x/b @3' });
    clock.advance(50);
    await settle();
    expect(await codeOf(cacher.list({ resourceVersion: '0' }))).toBe(429);
    await pods.put('x/c');
    expect(await seen(watch)).toBe('');
    clock.advance(1_000);
    await settle();
    clock.advance(1_000);
    expect(await seen(watch)).toBe('ADDED c@4');
    expect(cacher.stats).toMatchObject({ phase: 'ready', generation: 2, gaps: 0 });
  });
});

describe('how it follows', () => {
  test('TestCacherDontMissEventsOnReinitialization: a cut is nobody’s affair, whatever happened meanwhile', async () => {
    const { cacher, pods, clock } = await rig({}, two);
    const watches: PodWatch[] = [];
    for (let i = 0; i < 20; i++) watches.push(await cacher.watch({ resourceVersion: '3' }));
    for (const code of [undefined, 500, 429]) {
      pods.storage.cut(code);
      await pods.put('x/c', { n: code ?? 0 });
      await settle();
      expect(cacher.stats.phase).toBe('ready');
      clock.advance(1_000);
      await settle();
    }
    for (const watch of watches) expect(await seen(watch)).toBe('ADDED c@4, MODIFIED c@5, MODIFIED c@6');
    expect(cacher.stats).toMatchObject({ gaps: 0, fellBehind: 0 });
  });

  test('Told: if the storage has lost what happened, watches hear 410 after all that is known', async () => {
    const { cacher, pods, clock } = await rig({}, two);
    const [watch, waiting] = [await cacher.watch({ resourceVersion: '3' }), await cacher.watch({ resourceVersion: '3' })];
    expect(names(await cacher.list({ fieldSelector: 'spec.node=n1' }))).toBe('x/a x/b @3'); // makes an index
    const read = [waiting.next(), waiting.next()];
    await pods.put('x/a', { n: 1 });
    await settle();
    pods.storage.cut();
    await pods.put('x/a', { n: 2 });
    await pods.remove('x/b');
    pods.memory.compact();
    await settle();
    clock.advance(1_000);
    expect(await seen(watch)).toBe('MODIFIED a@4, ERROR 410');
    expect((await read[1])?.value).toMatchObject({ type: 'ERROR', object: { code: 410, reason: 'Expired' } });
    expect(cacher.stats).toMatchObject({ phase: 'ready', gaps: 1, watches: 0, resourceVersion: '6' });
    expect(names(await cacher.list({ resourceVersion: '0' }))).toBe('x/a @6');
    expect(names(await cacher.list({ resourceVersion: '0', fieldSelector: 'spec.node=n1' }))).toBe('x/a @6');
    expect(await codeOf(cacher.watch({ resourceVersion: '5' }))).toBe(410);
  });

  test('a relist at the version that it has ends no watch: nothing has happened', async () => {
    const { cacher, pods, clock, asked } = await rig({}, two);
    const watch = await cacher.watch({ resourceVersion: '3' });
    asked();
    pods.storage.cut(410);
    await settle();
    clock.advance(1_000);
    await settle();
    expect(asked()).toBe('list , watch 3');
    await pods.put('x/c');
    expect(await seen(watch)).toBe('ADDED c@4');
    expect(cacher.stats.gaps).toBe(0);
  });

  test('FIX6.9: an object that cannot be taken is not passed over: the cache is not ready until it can', async () => {
    let broken = false;
    const keyOf = ({ metadata }: Pod): string => {
      if (broken && metadata?.name === 'c') throw new Error('no key');
      return `${metadata?.namespace}/${metadata?.name}`;
    };
    const { cacher, pods, clock, errors } = await rig({ keyOf }, two);
    const watch = await cacher.watch({ resourceVersion: '3' });
    broken = true;
    await pods.put('x/c');
    await settle();
    expect(await codeOf(cacher.list({ resourceVersion: '0' }))).toBe(429);
    expect(errors).toHaveLength(1);
    broken = false;
    clock.advance(1_000);
    await settle();
    expect(names(await cacher.list())).toBe('x/a x/b x/c @4');
    expect(await seen(watch)).toBe('ERROR 410');
  });

  test('a storage that tells progress before the event that it covers is not believed again (kine#731)', async () => {
    const { cacher, pods, clock } = await rig({}, two);
    await pods.put('x/c');
    await settle();
    const watch = await cacher.watch({ resourceVersion: '4' });
    const late = pods.revisions[0]?.after as Pod; // version 2, after 4
    pods.storage.inject({ type: 'MODIFIED', object: late });
    await settle();
    expect(cacher.stats.phase).toBe('pending');
    clock.advance(1_000);
    await settle();
    expect(names(await cacher.list())).toBe('x/a x/b x/c @4');
    expect(await seen(watch)).toBe('ERROR 410'); // what it was told may have been wrong
  });

  test('an ERROR of the storage is told with its words', async () => {
    const { pods, errors } = await rig({}, two);
    pods.storage.cut(500);
    await settle();
    expect(errors).toEqual([expect.objectContaining({ code: 'REFUSED', message: expect.stringMatching(/^500 \w+: ./) })]);
  });

  test.each([
    ['an older version', 3],
    ['the same version', 4],
  ])('a storage that was started with other data, at %s, is listed, and watches hear 410', async (_, version) => {
    const [first, second] = [new MemoryStorage<Pod>(), new MemoryStorage<Pod>()];
    for (const name of ['a', 'b', 'c']) await first.create(`x/${name}`, pod(`x/${name}`));
    for (let n = 2; n <= version; n++) await second.create(`x/d${n}`, pod(`x/d${n}`));
    let storage = first;
    const replaced = {
      list: (options: ListOptions) => storage.list(options),
      requestProgress: () => storage.requestProgress(),
      watch: (options: ListWatchOptions) =>
        storage === second && version === 4 && options.resourceVersion === '4' && lost
          ? Promise.reject(refused(410, 'Expired', 'other data'))
          : storage.watch(options),
    } as unknown as Storage<Pod>;
    let lost = true;
    const clock = new FakeClock();
    const cacher = new Cacher<Pod>(replaced, { clock, pastRevisions: 0 });
    const watch = await cacher.watch({ resourceVersion: '4' });
    storage = second;
    await first.close();
    for (let tries = 0; tries < 5; tries++) {
      await settle();
      clock.advance(1_000);
      lost = tries === 0;
    }
    const list = await cacher.list({ resourceVersion: '0' }).catch(() => undefined);
    expect(list?.items.map(({ metadata }) => metadata?.name)).toEqual(version === 3 ? ['d2', 'd3'] : ['d2', 'd3', 'd4']);
    expect(await seen(watch)).toBe('ERROR 410');
    await cacher.close();
    expect(clock.pending).toBe(0);
  });

  test('a change that the storage cannot tell, whenever it is asked, is read with a list: nothing stays old for ever', async () => {
    const { cacher, pods, clock } = await rig({}, two);
    const watch = await cacher.watch({ resourceVersion: '3' });
    const object = toStatus({ code: 500, reason: 'StorageReadError', message: 'it is not JSON' });
    pods.storage.faults.injected.push(...Array.from({ length: 100 }, () => ({ type: 'ERROR', object }) as const));
    await pods.put('x/c');
    for (let seconds = 0; seconds < 25; seconds++) {
      await settle();
      clock.advance(1_000);
    }
    // It may be of the passing kind, so the watches are left alone for a while.
    expect(await seen(watch)).toBe('');
    for (let seconds = 0; seconds < 60; seconds++) {
      await settle();
      clock.advance(1_000);
    }
    expect(await seen(watch)).toBe('ERROR 410');
    expect(names(await cacher.list({ resourceVersion: '0' }))).toBe('x/a x/b x/c @4');
    expect(cacher.stats).toMatchObject({ phase: 'ready', gaps: 1 });
  });

  test('who is stuck anew waits anew, before a list may end watches', async () => {
    const { cacher, pods, clock, asked } = await rig({}, two);
    const object = toStatus({ code: 500, reason: 'StorageReadError', message: 'it is not JSON' });
    const stuckFor = async (seconds: number): Promise<void> => {
      pods.storage.faults.injected.push(...Array.from({ length: 100 }, () => ({ type: 'ERROR', object }) as const));
      await pods.put('x/c', { n: clock.now() });
      for (let passed = 0; passed < seconds; passed++) {
        await settle();
        clock.advance(1_000);
      }
      pods.storage.faults.injected.length = 0;
      await settle();
    };
    await stuckFor(25);
    clock.advance(10_000); // the next attempt gets through
    await settle();
    expect(names(await cacher.list({ resourceVersion: '0' }))).toBe('x/a x/b x/c @4');
    asked();
    await stuckFor(20);
    expect(asked()).not.toContain('list');
    expect(cacher.stats.gaps).toBe(0);
  });

  test('a watch that ends by itself is no failure: it is opened again at once if it has lasted, else after a while', async () => {
    const { pods, clock, errors, asked, cacher } = await rig({}, two);
    clock.advance(1_000);
    pods.storage.cut();
    await settle();
    expect([asked(), errors, cacher.stats.phase]).toEqual(['watch 3', [], 'ready']);
    clock.advance(999);
    pods.storage.cut();
    await settle();
    expect([asked(), errors, cacher.stats.phase]).toEqual(['', [], 'ready']);
    clock.advance(50);
    await settle();
    expect([asked(), errors]).toEqual(['watch 3', []]);
  });

  test('a series of failures ends with a watch that lasts', async () => {
    const { pods, clock, asked } = await rig({}, two);
    const fail = async (): Promise<void> => {
      pods.storage.cut(500);
      await settle();
    };
    for (let i = 0; i < 5; i++) {
      await fail();
      clock.advance(900); // of at most 0.5 * 100 * 2 ** 4
      await settle();
    }
    asked();
    await fail();
    clock.advance(1_500);
    await settle();
    expect(asked()).toBe(''); // 0.5 * 100 * 2 ** 5 = 1,600
    clock.advance(100);
    await settle();
    expect(asked()).toBe('watch 3');
    clock.advance(1_000);
    await fail();
    clock.advance(50);
    await settle();
    expect(asked()).toBe('watch 3');
  });
});

describe('BOOKMARKs', () => {
  test('an old one of the storage moves nothing back', async () => {
    const { cacher, pods } = await rig({}, two);
    await pods.put('x/c');
    await settle();
    pods.storage.inject({ type: 'BOOKMARK', object: { metadata: { resourceVersion: '2' } } });
    await settle();
    expect(cacher.stats).toMatchObject({ phase: 'ready', resourceVersion: '4' });
  });

  test('TestCacherSendBookmarkEvents, RunTestWatchDispatchBookmarkEvents: every bookmarkMs, if the version has moved, and only to whom allows them (FIX6.4)', async () => {
    const { cacher, pods, clock } = await rig({}, two);
    const open = (allowWatchBookmarks: boolean): Promise<PodWatch> =>
      cacher.watch({ resourceVersion: '3', labelSelector: 'app=db', allowWatchBookmarks });
    const [told, untold] = [await open(true), await open(false)];
    clock.advance(60_000);
    expect(await seen(told)).toBe('');
    await pods.put('x/c');
    await settle();
    clock.advance(59_000);
    expect(await seen(told)).toBe('');
    clock.advance(1_000);
    expect(await seen(told)).toBe('BOOKMARK 4');
    clock.advance(120_000);
    expect(await seen(told)).toBe('');
    expect(await seen(untold)).toBe('');
  });

  test('TestBookmarksOnResourceVersionUpdates: the storage is asked how far it is, so they move although nothing happens here', async () => {
    const { cacher, pods, clock } = await rig({}, two);
    const watch = await cacher.watch({ resourceVersion: '3', allowWatchBookmarks: true });
    const read = watch.next();
    await pods.elsewhere();
    clock.advance(30_000);
    await settle();
    clock.advance(30_000);
    expect((await read).value).toMatchObject({ type: 'BOOKMARK', object: { metadata: { resourceVersion: '4' } } });
  });

  test('TestCacherSendsMultipleWatchBookmarks: one before the deadline; then it ends', async () => {
    const { cacher, pods, clock } = await rig({}, two);
    const watch = await cacher.watch({ resourceVersion: '3', allowWatchBookmarks: true, timeoutSeconds: 10 });
    const short = await cacher.watch({ resourceVersion: '3', allowWatchBookmarks: true, timeoutSeconds: 1 });
    await pods.put('x/c', { app: 'db' });
    await pods.elsewhere();
    await cacher.list(); // which makes progress
    clock.advance(8_000);
    expect(await seen(watch)).toBe('ADDED c@4, BOOKMARK 5');
    expect(await seen(short)).toBe('ADDED c@4');
    expect(short.stopped).toBe(true);
    clock.advance(1_999);
    expect(watch.stopped).toBe(false);
    clock.advance(1);
    expect([watch.stopped, await watch.next()]).toEqual([true, { done: true, value: undefined }]);
    expect(cacher.stats.watches).toBe(0);
  });

  test('FIX14.1: one that is due while something is unread comes behind that', async () => {
    const { cacher, pods, clock } = await rig({}, two);
    const watch = await cacher.watch({ resourceVersion: '3', allowWatchBookmarks: true });
    await pods.put('x/c');
    await pods.elsewhere();
    await cacher.list();
    clock.advance(60_000);
    await settle();
    await pods.put('x/d');
    expect(await seen(watch)).toBe('ADDED c@4, ADDED d@6');
    clock.advance(60_000);
    expect(await seen(watch)).toBe('');
  });

  test('TestCacherNoLeakWithMultipleWatchers, TestDispatchingBookmarkEventsWithConcurrentStop: what has ended is in no row', async () => {
    const { cacher, clock } = await rig({}, two);
    const open = (): Promise<PodWatch> => cacher.watch({ allowWatchBookmarks: true, timeoutSeconds: 5 });
    const watches: PodWatch[] = [];
    for (let i = 0; i < 30; i++) watches.push(await open());
    expect(clock.pending).toBe(2); // one for all of them, one of the feed
    for (const watch of watches.slice(0, 10)) await watch.return();
    const alone = await rig({}, two);
    await (await alone.cacher.watch({ allowWatchBookmarks: true, timeoutSeconds: 5 })).return();
    expect(alone.clock.pending).toBe(1);
    clock.advance(5_250);
    for (const watch of watches.slice(10)) expect(watch.stopped).toBe(true);
    expect(clock.pending).toBe(1);
    expect(cacher.stats).toMatchObject({ watches: 0, views: 0 });
  });

  test('TestTimeBucketWatchersBasic: who is due is called once, at most 250 ms late; who was removed is not', () => {
    const clock = new FakeClock();
    const calls: string[] = [];
    type Due = HeapNode & { readonly name: string };
    const schedule = new Timetable<Due>(clock, ({ name }, nowMs) => calls.push(`${name} ${nowMs}`), { grainMs: 250 });
    const due = (name: string): Due => ({ name, heapRank: 0, heapTurn: 0, heapAt: -1 });
    const [a, b, c, d] = [due('a'), due('b'), due('c'), due('d')];
    schedule.at(a, 1_000);
    schedule.at(b, 500);
    schedule.at(c, 600);
    schedule.at(d, 700);
    schedule.at(a, 2_001);
    schedule.remove(d);
    expect([schedule.size, clock.pending]).toEqual([3, 1]);
    clock.advance(10_000);
    expect(calls).toEqual(['b 500', 'c 750', 'a 2250']);
    expect([schedule.size, clock.pending]).toEqual([0, 0]);
  });
});

describe('a sorted map', () => {
  test('TestStoreSnapshotter: a copy has what there was, whatever is written into either', () => {
    const map = new SortedMap<number>();
    for (let i = 0; i < 1_000; i++) map.set(`k${(i * 7) % 1_000}`, i);
    const before = [...map.values()];
    const copy = map.copy();
    for (let i = 0; i < 1_000; i += 3) map.delete(`k${i}`);
    for (let i = 0; i < 1_000; i += 2) map.set(`k${i}`, -i);
    expect([...copy.values()]).toEqual(before);
    const other = map.copy();
    other.set('k1', 5);
    expect(map.get('k1')).not.toBe(5);
    expect(map.size).toBe([...map.values()].length);
  });

  test('TestHasPathPrefix: a prefix ends at a slash, and is counted without being read', () => {
    const map = new SortedMap<string>();
    for (const key of ['ns', 'ns-2/a', 'ns/a', 'ns/b', 'ns/c', 'ns0', 'nt/a']) map.set(key, key);
    expect([...map.values('ns/')]).toEqual(['ns/a', 'ns/b', 'ns/c']);
    expect([...map.values('ns/', 'ns/b')]).toEqual(['ns/b', 'ns/c']);
    expect([...map.values('', 'ns/c')]).toEqual(['ns/c', 'ns0', 'nt/a']);
    expect([
      map.count('ns/', 'ns/'),
      map.count('ns/', 'ns/b'),
      map.count('ns/', 'nt'),
      map.count('', ''),
      map.count('', 'ns/b'),
    ]).toEqual([3, 2, 0, 7, 4]);
  });
});
