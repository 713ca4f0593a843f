// Watches of a cacher: where they begin, what they bring, how they end.
import { describe, expect, test } from 'vitest';
import type { CollectionWatch } from '../../src/storage/collection/watch.ts';
import { encoded } from '../../src/storage/values.ts';
import { ListenerCount } from '../../src/testing/fakes/fake-clock.ts';
import { codeOf, names, type PodWatch, rig, seen, told } from './cacher-support.ts';
import { type Pod, type Pods, settle } from './faulty-storage.ts';

/** Versions 2 to 5. */
async function four(pods: Pods): Promise<void> {
  await pods.put('y/a');
  await pods.put('x/b', { node: 'n2' });
  await pods.put('x/a');
  await pods.put('y/a', { n: 1 });
}
const STATE = 'ADDED a@4, ADDED b@3, ADDED a@5';

describe('where a watch begins', () => {
  test('TestGetWatchCacheResourceVersion: the version it needs, with what it begins, and what was asked of the storage', async () => {
    const { cacher, pods, asked } = await rig();
    await four(pods);
    await settle();
    const newest = 'currentVersion';
    const [initial, none] = [{ sendInitialEvents: true }, { sendInitialEvents: false }];
    const table: [Parameters<typeof cacher.watch>[0], string, string][] = [
      [{}, STATE, ''],
      [{ allowWatchBookmarks: true }, STATE, ''],
      [{ resourceVersion: '0' }, STATE, ''],
      [{ resourceVersion: '0', allowWatchBookmarks: true }, STATE, ''],
      [{ resourceVersion: '3' }, 'ADDED a@4, MODIFIED a@5', ''],
      [{ resourceVersion: '5', allowWatchBookmarks: true }, '', ''],
      [{ resourceVersionMatch: 'NotOlderThan' }, STATE, newest],
      [{ resourceVersion: '0', resourceVersionMatch: 'NotOlderThan' }, STATE, ''],
      [{ ...none }, '', newest],
      [{ ...none, allowWatchBookmarks: true }, '', newest],
      [{ ...none, resourceVersion: '0' }, '', ''],
      [{ ...none, resourceVersion: '4' }, 'MODIFIED a@5', ''],
      [{ ...initial }, `${STATE}, END 5`, newest],
      [{ ...initial, resourceVersion: '0' }, `${STATE}, END 5`, ''],
      [{ ...initial, resourceVersion: '3' }, `${STATE}, END 5`, ''],
      [{ ...initial, resourceVersion: '5', resourceVersionMatch: 'NotOlderThan' }, `${STATE}, END 5`, ''],
    ];
    for (const [options, events, requests] of table) {
      asked();
      const watch = await cacher.watch(options);
      expect([options, await seen(watch), asked()]).toEqual([options, events, requests]);
      await watch.return();
    }
    expect(await codeOf(cacher.watch({ sendInitialEvents: true, allowWatchBookmarks: false }))).toBe(400);
    expect(await codeOf(cacher.watch({ resourceVersion: 'x' }))).toBe(400); // FIX6.7
  });

  test('TestWatchCacheBypass: without a version, and from 0, the cache answers whatever the storage does', async () => {
    const { cacher, pods, asked } = await rig({}, four);
    pods.storage.hold();
    await pods.put('x/c');
    for (const resourceVersion of ['', '0']) expect(await seen(await cacher.watch({ resourceVersion }))).toBe(STATE);
    expect(asked()).toBe('');
  });

  test('one that is stopped, and then read to its end, leaves its view once: others of that view hear on', async () => {
    const { cacher, pods } = await rig({}, four);
    const [one, other] = [await cacher.watch({ resourceVersion: '5' }), await cacher.watch({ resourceVersion: '5' })];
    await pods.put('x/c');
    await settle();
    one.stop();
    expect(await seen(one)).toBe('ADDED c@6');
    await pods.put('x/d');
    const late = await cacher.watch({ resourceVersion: '6' });
    await pods.put('x/e');
    expect(await seen(other)).toBe('ADDED c@6, ADDED d@7, ADDED e@8');
    expect(await seen(late)).toBe('ADDED d@7, ADDED e@8');
  });

  test('TestStartingResourceVersion: the first event is later than the version', async () => {
    const { cacher, pods } = await rig({}, four);
    const watch = await cacher.watch({ resourceVersion: '5' });
    await pods.put('x/c');
    expect(await seen(watch)).toBe('ADDED c@6');
  });

  test('TestWatchListIsSynchronisedWhenNoEventsFromStoreReceived: an empty state is its BOOKMARK', async () => {
    const { cacher } = await rig();
    expect(await seen(await cacher.watch({ sendInitialEvents: true }))).toBe('END 1');
  });

  test('TestInitialEventsEndBookmark: it has the version of the cache, also if nothing is selected, and comes only if asked for', async () => {
    const { cacher } = await rig({}, four);
    expect(await seen(await cacher.watch({ sendInitialEvents: true, labelSelector: 'no' }))).toBe('END 5');
    expect(await seen(await cacher.watch({ allowWatchBookmarks: true, labelSelector: 'no' }))).toBe('');
  });

  test('TestWaitUntilWatchCacheFreshAndForceAllEvents: a version that does not come here is 504; progress is asked for', async () => {
    const { cacher, pods, clock, asked } = await rig({}, four);
    const options = { sendInitialEvents: true, resourceVersion: '6' };
    expect(await codeOf(cacher.watch(options))).toBe(410); // nobody has it
    pods.storage.faults.mutesProgress = true;
    await pods.elsewhere();
    const late = codeOf(cacher.watch(options));
    await settle();
    clock.advance(3_000);
    expect(await late).toBe(504);
    expect(asked()).toContain('progress');
    const watch = cacher.watch(options);
    await settle();
    pods.storage.faults.mutesProgress = false;
    clock.advance(100);
    expect(await seen(await watch)).toBe(`${STATE}, END 6`);
  });

  test('a version that the cacher is about to reach is waited for; one that does not come here is 504, one that nobody has 410', async () => {
    const { cacher, pods, clock } = await rig({}, four);
    pods.storage.hold();
    await pods.put('x/c');
    const watch = cacher.watch({ resourceVersion: '6' });
    await settle();
    pods.storage.release();
    await pods.put('x/d');
    expect(await seen(await watch)).toBe('ADDED d@7');
    expect(await codeOf(cacher.watch({ resourceVersion: '8' }))).toBe(410);
    pods.storage.hold();
    await pods.put('x/e');
    const late = codeOf(cacher.watch({ resourceVersion: '8' }));
    await settle();
    clock.advance(3_000);
    expect(await late).toBe(504);
  });

  test('TestEvents: a watch begins at any version that is kept, and none before', async () => {
    const { cacher, pods } = await rig({ windowItems: 5 });
    for (let n = 0; n < 8; n++) await pods.put('x/a', { n }); // 2 to 9
    await settle();
    expect(cacher.stats.window).toMatchObject({ items: 5, since: '4' });
    expect(await codeOf(cacher.watch({ resourceVersion: '3' }))).toBe(410);
    expect(await seen(await cacher.watch({ resourceVersion: '4' }))).toBe(
      [5, 6, 7, 8, 9].map((v) => `MODIFIED a@${v}`).join(', '),
    );
    expect(await seen(await cacher.watch({ resourceVersion: '8' }))).toBe('MODIFIED a@9');
    expect(await seen(await cacher.watch({ resourceVersion: '9' }))).toBe('');
  });

  test('TestMarker: after a list a watch begins at its version, and not before', async () => {
    const { cacher } = await rig({}, async (pods) => {
      for (let n = 0; n < 8; n++) await pods.put('x/a', { n });
    });
    expect(await codeOf(cacher.watch({ resourceVersion: '8' }))).toBe(410);
    expect(await seen(await cacher.watch({ resourceVersion: '9' }))).toBe('');
  });

  test('TestCacheIncreaseDoesNotBreakWatch: what is forgotten stays forgotten', async () => {
    const { cacher, pods, clock } = await rig({ windowMs: 1_000, windowItems: 500 });
    for (let n = 0; n < 300; n++) await pods.put('x/a', { n });
    await settle(2_000);
    expect(cacher.stats.window.items).toBe(300);
    clock.advance(2_000);
    for (let n = 0; n < 3; n++) await pods.put('x/b', { n });
    await settle();
    expect(cacher.stats.window).toMatchObject({ items: 100, since: '204' }); // age leaves the last hundred
    for (let n = 0; n < 200; n++) await pods.put('x/c', { n });
    await settle(2_000);
    expect(cacher.stats.window.since).not.toBe('1');
    expect(await codeOf(cacher.watch({ resourceVersion: '203' }))).toBe(410);
  });

  test('the window is limited in bytes, those of what was replaced among them', async () => {
    const { cacher, pods } = await rig({ windowBytes: 4_000 });
    for (let n = 10; n < 99; n++) await pods.put('x/a', { n });
    await settle(500);
    const { items, bytes } = cacher.stats.window;
    const object = (await cacher.get('x/a', { resourceVersion: '0' })) as object;
    expect(items).toBeGreaterThan(1);
    expect(bytes).toBeLessThanOrEqual(4_000);
    expect(bytes).toBe(items * 3 * encoded(object).byteLength);
  });
});

describe('what a watch brings', () => {
  test('TestCacheWatcherHandlesFiltering: what enters is ADDED, what leaves is DELETED with its last content that matched, at the version of the change', async () => {
    const { cacher, pods } = await rig();
    const watch = await cacher.watch({ fieldSelector: 'spec.node=n1', resourceVersion: '1' });
    await pods.put('x/a', { node: 'n2' });
    await pods.put('x/a', { node: 'n1', n: 1 });
    await pods.put('x/a', { node: 'n1', n: 2 });
    await pods.put('x/a', { node: 'n2', n: 3 });
    await pods.put('x/a', { node: 'n1', n: 4 });
    await pods.remove('x/a');
    await settle();
    const events = [];
    for (let event = watch.tryNext(); event; event = watch.tryNext()) events.push(event);
    expect(events).toMatchObject([
      { type: 'ADDED', object: { spec: { n: 1 } }, previous: { spec: { n: 0 } } },
      { type: 'MODIFIED', object: { spec: { n: 2 } }, previous: { spec: { n: 1 } } },
      { type: 'DELETED', object: { metadata: { resourceVersion: '5' }, spec: { n: 2 } }, previous: { spec: { n: 2 } } },
      { type: 'ADDED', object: { spec: { n: 4 } }, previous: { spec: { n: 3 } } },
      { type: 'DELETED', object: { metadata: { resourceVersion: '7' }, spec: { n: 4 } } },
    ]);
  });

  test('TestCachingObjects: watches of one selection get the same events, and those of others the same objects', async () => {
    const { cacher, pods } = await rig({}, four);
    const open = (options: object): Promise<PodWatch> => cacher.watch({ resourceVersion: '5', ...options });
    const [one, two] = [await open({ labelSelector: 'app=web' }), await open({ labelSelector: 'app in (web)' })];
    const other = await open({});
    expect(cacher.stats).toMatchObject({ watches: 3, views: 2 });
    await pods.put('x/a', { n: 9 });
    const events = [await one.next(), await two.next(), await other.next()].map(({ value }) => value);
    expect(events[1]).toBe(events[0]);
    expect(events[2]).toBe(events[0]);
    await pods.put('x/a', { app: 'db' });
    const [left, same] = [(await one.next()).value, (await two.next()).value];
    expect(left?.type).toBe('DELETED');
    expect(same?.object).toBe(left?.object);
    const initial = [await cacher.watch(), await cacher.watch({ labelSelector: 'app' })];
    const [first, second] = [(await initial[0]?.next())?.value, (await initial[1]?.next())?.value];
    expect(second).toBe(first);
  });

  test('TestCachingDeleteEvents: each selector has a DELETED of its own, and none changes what others see', async () => {
    const { cacher, pods } = await rig({}, four);
    const open = (labelSelector: string): Promise<PodWatch> => cacher.watch({ resourceVersion: '5', labelSelector });
    const [left, deleted, stays] = [await open('app=web'), await open('app in (web,db)'), await open('app')];
    const before = await cacher.get('x/a', { resourceVersion: '0' });
    await pods.put('x/a', { app: 'db' });
    await pods.remove('x/a');
    expect(await seen(left)).toBe('DELETED a@6');
    expect(await seen(deleted)).toBe('MODIFIED a@6, DELETED a@7');
    expect(await seen(stays)).toBe('MODIFIED a@6, DELETED a@7');
    expect(before?.metadata?.resourceVersion).toBe('4');
  });

  test('a view that one watch has made is good for those that begin earlier or later', async () => {
    const { cacher, pods } = await rig();
    await four(pods);
    await settle();
    const [late, early] = [await cacher.watch({ resourceVersion: '5' }), await cacher.watch({ resourceVersion: '3' })];
    const state = await cacher.watch();
    await pods.put('x/a', { n: 3 });
    await settle();
    const newer = await cacher.watch();
    expect(cacher.stats.views).toBe(1);
    expect(await seen(late)).toBe('MODIFIED a@6');
    expect(await seen(early)).toBe('ADDED a@4, MODIFIED a@5, MODIFIED a@6');
    expect(await seen(state)).toBe(`${STATE}, MODIFIED a@6`);
    expect(await seen(newer)).toBe('ADDED a@6, ADDED b@3, ADDED a@5');
  });

  test('a batch is the same array for watches in step', async () => {
    const { cacher, pods } = await rig({}, four);
    const watches = [await cacher.watch({ resourceVersion: '5' }), await cacher.watch({ resourceVersion: '5' })];
    const reads = watches.map((watch) => watch.batches().next());
    await pods.put('x/a', { n: 5 });
    await pods.put('x/a', { n: 6 });
    const [one, two] = await Promise.all(reads);
    expect(two?.value).toBe(one?.value);
    const state = await cacher.watch();
    await state.next();
    expect((await state.batches().next()).value).toHaveLength(2); // the rest
  });

  test('a BOOKMARK that says no more than the batch before it does not come', async () => {
    const { cacher, pods, clock } = await rig({}, four);
    const watch = await cacher.watch({ resourceVersion: '5', allowWatchBookmarks: true });
    const batches = watch.batches();
    const read = batches.next();
    await pods.put('x/a', { n: 5 });
    expect((await read).value).toHaveLength(1);
    clock.advance(60_000);
    expect(await seen(watch)).toBe('');
  });

  test('a scope may have fields of its own; scopes of the same fields share views and indexes', async () => {
    const { cacher, pods } = await rig({}, four);
    const fields = { n: ({ spec }: Pod) => `${spec?.n}` };
    const open = (scope: string): Promise<PodWatch> =>
      cacher.scope<Pod>(scope, { fields }).watch({ resourceVersion: '5', fieldSelector: 'n=1' });
    const [one, two, other] = [await open('y/'), await open('y/'), await open('x/')];
    expect(cacher.stats.views).toBe(2);
    await pods.put('y/b', { n: 1 });
    await pods.put('x/b', { n: 1 });
    expect(await seen(one)).toBe('ADDED b@6');
    expect(await seen(two)).toBe('ADDED b@6');
    expect(await seen(other)).toBe('ADDED b@7');
    const list = await cacher.scope<Pod>('y/', { fields }).list({ fieldSelector: 'n=1' });
    expect(names(list)).toBe('y/a y/b @7');
    expect(await codeOf(cacher.watch({ fieldSelector: 'n=1' }))).toBe(400);
  });

  test('a function of fields that throws: the object is not selected, and that is told once', async () => {
    const node = (): string => {
      throw new Error('no idea');
    };
    const { cacher, pods, errors } = await rig({ fields: { 'spec.node': node } }, four);
    const watch = await cacher.watch({ resourceVersion: '5', fieldSelector: 'spec.node!=n1' });
    expect((await cacher.list({ fieldSelector: 'spec.node!=n1' })).items).toEqual([]);
    await pods.put('x/z');
    expect(await seen(watch)).toBe('');
    expect(errors.length).toBe(4);
  });
});

describe('slow watches', () => {
  test('TestDispatchEventWillNotBeBlockedByTimedOutWatcher: nobody waits for them, and within the window they miss nothing', async () => {
    const { cacher, pods } = await rig();
    const [slow, fast] = [await cacher.watch({ resourceVersion: '1' }), await cacher.watch({ resourceVersion: '1' })];
    for (let n = 0; n < 50; n++) {
      const read = fast.next();
      await pods.put('x/a', { n });
      expect((await read).value?.type).toBe(n ? 'MODIFIED' : 'ADDED');
    }
    expect(slow.queued).toBe(50);
    expect((await seen(slow)).split(', ')).toHaveLength(50);
    expect(cacher.stats.fellBehind).toBe(0);
  });

  test('TestCacheIntervalInvalidationStopsWatch: one whose next event is forgotten is told 410, and ends (FIX6.1)', async () => {
    const { cacher, pods } = await rig({ windowItems: 3 });
    const slow = await cacher.watch({ resourceVersion: '1', labelSelector: 'app=web' });
    const other = await cacher.watch({ resourceVersion: '1', labelSelector: 'app=db' });
    await pods.put('x/a');
    await pods.put('x/b');
    expect((await slow.next()).value).toMatchObject({ type: 'ADDED' });
    for (let n = 0; n < 3; n++) await pods.put('x/c', { n });
    await settle();
    expect(await seen(slow)).toBe('ERROR 410');
    expect(await slow.next()).toEqual({ done: true, value: undefined });
    expect(await seen(other)).toBe(''); // what is forgotten was not for it
    expect(cacher.stats).toMatchObject({ fellBehind: 1, watches: 1 });
  });

  test('it is told between the state and what follows, too, and by a batch', async () => {
    const { cacher, pods } = await rig({ windowItems: 3 }, four);
    const watch = await cacher.watch({ sendInitialEvents: true });
    await watch.next();
    for (let n = 0; n < 5; n++) await pods.put('x/c', { n });
    expect(await seen(watch)).toBe('ADDED b@3, ADDED a@5, END 5, ERROR 410');
    const batched = await cacher.watch({ resourceVersion: '10' });
    for (let n = 0; n < 5; n++) await pods.put('x/d', { n });
    await settle();
    expect((await batched.batches().next()).value).toMatchObject([{ type: 'ERROR', object: { code: 410 } }]);
  });

  test('compact forgets everything that was not read', async () => {
    const { cacher } = await rig({}, four);
    const idle = await cacher.watch({ resourceVersion: '5' });
    await cacher.update('x/a', (pod) => ({ ...pod, spec: { n: 8 } }));
    await settle();
    cacher.compact();
    expect(cacher.stats.window).toEqual({ items: 0, bytes: 0, since: '6' });
    expect(await seen(idle)).toBe('ERROR 410');
    expect(await codeOf(cacher.watch({ resourceVersion: '5' }))).toBe(410);
    expect(await seen(await cacher.watch({ resourceVersion: '6' }))).toBe('');
  });
});

describe('the end of a watch', () => {
  test('TestForgetWatcher, TestCacheWatcherCleanupNotBlockedByResult: a watch that nobody reads can be ended, again and again', async () => {
    const { cacher, pods } = await rig({}, four);
    const watch = await cacher.watch();
    await pods.put('x/a', { n: 7 });
    await settle();
    expect(watch.queued).toBe(4);
    watch.stop();
    watch.stop();
    await watch.return();
    expect(watch.dropped).toBe(4);
    expect(await watch.next()).toEqual({ done: true, value: undefined });
    expect(cacher.stats).toMatchObject({ watches: 0, views: 0 });
  });

  test('what is queued when it is stopped can be read, and no more', async () => {
    const { cacher, pods } = await rig({}, four);
    const watch = await cacher.watch({ resourceVersion: '5' });
    const other = await cacher.watch({ resourceVersion: '5' });
    await pods.put('x/a', { n: 6 });
    await settle();
    watch.stop();
    await pods.put('x/a', { n: 7 });
    expect(watch.stopped).toBe(true);
    expect(await seen(watch)).toBe('MODIFIED a@6');
    expect(await seen(other)).toBe('MODIFIED a@6, MODIFIED a@7');
  });

  test('S14: a signal ends it, and hears nothing from it afterwards', async () => {
    const { cacher } = await rig({}, four);
    const abort = new AbortController();
    const listeners = new ListenerCount(abort.signal);
    const watch = await cacher.watch({ resourceVersion: '5', signal: abort.signal });
    const pending = watch.next();
    abort.abort();
    expect((await pending).done).toBe(true);
    expect(listeners.count).toBe(0);
    expect(cacher.stats.watches).toBe(0);
  });

  test('a signal that aborts while it is opened ends it, too', async () => {
    const { cacher } = await rig({}, four);
    for (const options of [{}, { resourceVersion: '3' }, { sendInitialEvents: true }]) {
      const abort = new AbortController();
      const opening = cacher.watch({ ...options, signal: abort.signal });
      abort.abort(new Error('enough'));
      await expect(opening).rejects.toThrow('enough');
    }
    expect(cacher.stats.watches).toBe(0);
  });

  test('whoever listens to it is called once for each time that it listens: for news, a BOOKMARK that is owed, and the end', async () => {
    const { cacher, pods, clock } = await rig({}, four);
    const abort = new AbortController();
    const listeners = new ListenerCount(abort.signal);
    const open = { resourceVersion: '5', allowWatchBookmarks: true, signal: abort.signal };
    const watch = (await cacher.watch(open)) as unknown as CollectionWatch<Pod>;
    let calls = 0;
    const listen = (): void => watch.listen({ readable: () => void calls++ });
    listen();
    // The code that listens ends it.
    expect(listeners.count).toBe(0);
    abort.abort();
    await settle();
    expect([calls, watch.stopped]).toEqual([0, false]);
    for (let n = 1; n <= 2; n++) await pods.put('x/a', { n });
    await settle();
    expect(calls).toBe(1);
    expect(await seen(watch)).toBe('MODIFIED a@6, MODIFIED a@7');
    listen();
    clock.advance(60_000);
    expect(calls).toBe(2);
    listen();
    watch.stop();
    expect([calls > 2, watch.over]).toEqual([true, false]);
    expect([watch.tryNext(), watch.over]).toEqual([undefined, true]);
    expect(cacher.stats).toMatchObject({ watches: 0, views: 0 });
  });

  test('one that is listened to hears of the end of its cacher', async () => {
    const { cacher } = await rig({}, four);
    const watch = (await cacher.watch({ resourceVersion: '5' })) as unknown as CollectionWatch<Pod>;
    const ended = new Promise<boolean>((resolve) =>
      watch.listen({ readable: () => resolve(watch.tryNext() === undefined && watch.over) }),
    );
    await cacher.close();
    expect(await ended).toBe(true);
  });

  test('TestCacherDontAcceptRequestsStopped: after close everything has ended, and everything is refused', async () => {
    const { cacher, pods, clock } = await rig({}, four);
    const [waiting, unread] = [await cacher.watch({ resourceVersion: '5', timeoutSeconds: 60 }), await cacher.watch()];
    pods.storage.faults.mutesProgress = true;
    await pods.elsewhere();
    const pending = [
      waiting.next(),
      codeOf(cacher.list({ resourceVersion: '6' })),
      codeOf(cacher.update('x/a', () => new Promise(() => {}))),
    ];
    await settle();
    await cacher.close();
    await cacher.close();
    expect(await Promise.all(pending)).toEqual([{ done: true, value: undefined }, 'CLOSED', 'CLOSED']);
    expect(unread.stopped).toBe(true);
    await unread.return();
    for (const request of [
      cacher.list(),
      cacher.watch(),
      cacher.get('x/a'),
      cacher.delete('x/a'),
      cacher.ready(),
      cacher.requestProgress(),
    ]) {
      expect(await codeOf(request)).toBe('CLOSED');
    }
    expect(cacher.stats).toMatchObject({ phase: 'stopped', watches: 0, views: 0, waiting: 0 });
    expect(clock.pending).toBe(0);
    expect(pods.memory.stats.watches).toBe(0);
    expect((await pods.memory.list()).items).toHaveLength(4); // the storage stays open
  });

  test('progress that is asked for is told to those that allow BOOKMARKs, and to nobody else', async () => {
    const { cacher } = await rig({}, four);
    const [with_, without] = [
      await cacher.watch({ resourceVersion: '5', allowWatchBookmarks: true }),
      await cacher.watch({ resourceVersion: '5' }),
    ];
    await cacher.requestProgress();
    expect([await seen(with_), await seen(without)]).toEqual(['BOOKMARK 5', '']);
  });

  test('progress that is asked for brings no BOOKMARK that was due before an event that has been read since', async () => {
    const { cacher, pods, clock } = await rig({}, four);
    const watch = await cacher.watch({ resourceVersion: '5', allowWatchBookmarks: true });
    await pods.put('x/a', { n: 5 });
    await settle();
    clock.advance(60_000); // one is due, of 6
    await pods.put('x/a', { n: 6 });
    await settle();
    expect([watch.tryNext(), watch.tryNext()].map((event) => event && told(event))).toEqual(['MODIFIED a@6', 'MODIFIED a@7']);
    await cacher.requestProgress();
    expect(await seen(watch)).toBe('BOOKMARK 7');
  });

  test('a watch too many is refused with 429, until another has ended', async () => {
    const { cacher } = await rig({ maxWatches: 2 }, four);
    const [first] = [await cacher.watch(), await cacher.watch()];
    expect(await codeOf(cacher.watch())).toBe(429);
    await first.return();
    await cacher.watch();
  });
});
