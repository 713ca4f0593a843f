// Which state gets and lists of a cacher read, and when they ask the storage.
import { describe, expect, test, vi } from 'vitest';
import { versionOf } from '../../src/cache/object.ts';
import { Cacher, MemoryStorage } from '../../src/storage/index.ts';
import { MemoryBackend } from '../../src/storage/memory/memory-backend.ts';
import { ListenerCount } from '../../src/testing/fakes/fake-clock.ts';
import { codeOf, names, rig } from './cacher-support.ts';
import { type Pod, type Pods, pod, settle } from './faulty-storage.ts';

/** Versions 2 to 5: two pods of x, one of y, and the first of x once more. */
async function four(pods: Pods): Promise<void> {
  await pods.put('x/a');
  await pods.put('x/b', { node: 'n2' });
  await pods.put('y/a');
  await pods.put('x/a', { n: 1 });
}

describe('what a list reads', () => {
  test('TestShouldDelegateList: the storage is asked for its version, or for a past that the cacher has forgotten, and else for nothing', async () => {
    const { cacher, asked } = await rig({ windowItems: 2 }, four);
    await cacher.ready();
    for (let i = 0; i < 3; i++) await cacher.update('x/b', (pod) => ({ ...pod, spec: { n: i + 5 } }));
    await settle();
    asked();
    const [now, kept, old] = ['8', '6', '4'];
    const table: [Parameters<typeof cacher.list>[0], string][] = [
      [{}, 'currentVersion'],
      [{ limit: 2 }, 'currentVersion'],
      [{ resourceVersion: '' }, 'currentVersion'],
      [{ resourceVersion: '0' }, ''],
      [{ resourceVersion: '0', limit: 2 }, ''],
      [{ resourceVersion: '0', resourceVersionMatch: 'NotOlderThan' }, ''],
      [{ resourceVersion: now }, ''],
      [{ resourceVersion: old }, ''],
      [{ resourceVersion: old, resourceVersionMatch: 'NotOlderThan' }, ''],
      [{ resourceVersion: old, resourceVersionMatch: 'NotOlderThan', limit: 2 }, ''],
      [{ resourceVersion: now, resourceVersionMatch: 'Exact' }, ''],
      [{ resourceVersion: kept, resourceVersionMatch: 'Exact' }, ''],
      [{ resourceVersion: kept, limit: 2 }, ''],
      [{ resourceVersion: old, resourceVersionMatch: 'Exact' }, 'list 4'],
      [{ resourceVersion: old, limit: 2 }, 'list 4'],
    ];
    for (const [options, expected] of table) {
      await cacher.list(options);
      expect([options, asked()]).toEqual([options, expected]);
    }
  });

  test('pages after the first are of its version, and each goes on where the last has ended', async () => {
    const { cacher, pods, asked } = await rig({}, four);
    const scope = cacher.scope('x/');
    const first = await scope.list({ limit: 1 });
    await pods.put('x/c');
    await pods.put('x/a', { n: 2 });
    await settle();
    asked();
    const second = await scope.list({ limit: 1, continue: first.continue });
    expect([names(first), names(second), second.continue, asked()]).toEqual(['x/a @5', 'x/b @5', undefined, '']);
    const whole = await cacher.list({ limit: 2 });
    expect(names(await cacher.list({ limit: 2, continue: whole.continue }))).toBe('x/c y/a @7');
  });

  test('TestConsistentRead: without a version it waits for what the storage has, and asks it for progress', async () => {
    const { cacher, pods, asked } = await rig({}, four);
    await pods.elsewhere(); // of which the cacher is told nothing
    asked();
    expect(names(await cacher.list())).toBe('x/a x/b y/a @6');
    expect(asked()).toBe('currentVersion, progress');
  });

  test('TestConsistentReadFallback: if the version does not come, the storage is read; if that fails, so does the list', async () => {
    const { cacher, pods, clock, asked } = await rig({}, four);
    pods.storage.hold();
    await pods.put('x/c');
    const list = cacher.list({ fieldSelector: 'spec.node=n1', limit: 2 });
    await settle();
    clock.advance(2_999);
    await settle();
    expect(cacher.stats.waiting).toBe(1);
    clock.advance(1);
    const page = await list;
    expect(names(page)).toBe('x/a x/c @6');
    expect(page.continue).toBeDefined();
    expect(asked()).toMatch(/^currentVersion, (progress, ){30}list $/); // at once, and every 100 ms
    pods.storage.faults.codes.list.push(500);
    const failing = codeOf(cacher.list());
    await settle();
    clock.advance(3_000);
    expect(await failing).toBe(500);
    expect(clock.pending).toBe(1); // the feed's own
  });

  test('TestWaitUntilFreshAndGetList: a version that the storage has is waited for, asking for progress; then 504 with its cause', async () => {
    const { cacher, pods, clock } = await rig({}, four);
    pods.storage.faults.mutesProgress = true;
    await pods.elsewhere();
    const list = cacher.list({ resourceVersion: '6' });
    await settle();
    pods.storage.faults.mutesProgress = false;
    clock.advance(100);
    expect(names(await list)).toBe('x/a x/b y/a @6');
    pods.storage.hold();
    await pods.elsewhere();
    const late = cacher.list({ resourceVersion: '7' }).catch((error) => error.status);
    await settle();
    clock.advance(3_000);
    expect(await late).toMatchObject({
      code: 504,
      reason: 'Timeout',
      details: { retryAfterSeconds: 1, causes: [{ reason: 'ResourceVersionTooLarge' }] },
    });
  });

  test('FIX6.2: a wait ends with the signal, and leaves no timer and no listener', async () => {
    const { cacher, clock, pods } = await rig({}, four);
    const abort = new AbortController();
    pods.storage.hold();
    await pods.elsewhere();
    const list = cacher.list({ resourceVersion: '6', signal: abort.signal });
    await settle();
    const reason = new Error('enough');
    abort.abort(reason);
    await expect(list).rejects.toBe(reason);
    expect(clock.pending).toBe(1);
    expect(cacher.stats.waiting).toBe(0);
    const fresh = new AbortController();
    const listeners = new ListenerCount(fresh.signal);
    const reached = cacher.list({ resourceVersion: '6', signal: fresh.signal });
    await settle();
    expect(listeners.count).toBeGreaterThan(0);
    pods.storage.release();
    await reached;
    expect(listeners.count).toBe(0);
  });

  test('TestMatchExactResourceVersionFallback: a forgotten version is read from the storage, and selected here; 410 if that has forgotten too', async () => {
    const { cacher, pods } = await rig({ windowItems: 1 }, four);
    for (let n = 0; n < 3; n++) await pods.put('y/b', { node: 'n2', n });
    await settle();
    const exact = { resourceVersionMatch: 'Exact' } as const;
    expect(names(await cacher.list({ ...exact, resourceVersion: '3' }))).toBe('x/a x/b @3');
    expect(names(await cacher.list({ ...exact, resourceVersion: '6', fieldSelector: 'spec.node=n2' }))).toBe('x/b y/b @6');
    expect(names(await cacher.scope('y/').list({ ...exact, resourceVersion: '6' }))).toBe('y/a y/b @6');
    pods.memory.compact();
    expect(await codeOf(cacher.list({ ...exact, resourceVersion: '3' }))).toBe(410);
    expect(names(await cacher.list({ ...exact, resourceVersion: '7' }))).toBe('x/a x/b y/a y/b @7'); // the cacher's own window
  });

  test('TestGetListPagingWithContinue: pages come from the version of the first; when that is forgotten, 410 with a continue for the rest', async () => {
    const { cacher, pods } = await rig({ windowItems: 2 }, four);
    const first = await cacher.list({ limit: 1 });
    expect([names(first), first.remainingItemCount]).toEqual(['x/a @5', 2]);
    await pods.remove('x/b');
    const second = await cacher.list({ limit: 1, continue: first.continue });
    expect([names(second), second.remainingItemCount]).toEqual(['x/b @5', 1]);
    for (let n = 0; n < 3; n++) await pods.put('z/a', { n });
    await settle();
    expect(names(await cacher.list({ continue: second.continue }))).toBe('y/a @5'); // from the storage
    pods.memory.compact();
    const status = await cacher.list({ continue: second.continue }).catch((error) => error.status);
    expect(status).toMatchObject({ code: 410, reason: 'Expired' });
    expect(names(await cacher.list({ limit: 1, continue: status.metadata.continue }))).toBe('y/a @9');
  });

  test('an exact version has pages, too; what the storage refuses for another reason is told as it is', async () => {
    const { cacher, pods } = await rig({ windowItems: 1 }, four);
    const exact = { resourceVersionMatch: 'Exact', resourceVersion: '5' } as const;
    const first = await cacher.list({ ...exact, limit: 1 });
    expect([names(first), first.remainingItemCount]).toEqual(['x/a @5', 2]);
    for (let n = 0; n < 3; n++) await pods.put('z/a', { n });
    await settle();
    for (const options of [{ continue: first.continue }, { ...exact, limit: 1 }]) {
      pods.storage.faults.codes.list.push(500);
      expect(await codeOf(cacher.list(options))).toBe(500);
    }
    pods.memory.compact();
    expect(await codeOf(cacher.list(exact))).toBe(410);
    expect((await cacher.list(exact).catch((error) => error.status)).metadata).not.toHaveProperty('continue');
  });

  test('TestComputeListLimit: a limit counts what is selected; any version is answered whole', async () => {
    const { cacher } = await rig({}, four);
    const page = await cacher.list({ limit: 1, fieldSelector: 'metadata.name=a' });
    expect([names(page), page.remainingItemCount]).toEqual(['x/a @5', undefined]);
    expect(names(await cacher.list({ limit: 1, fieldSelector: 'metadata.name=a', continue: page.continue }))).toBe('y/a @5');
    const whole = await cacher.list({ limit: 1, resourceVersion: '0' });
    expect([names(whole), whole.continue]).toEqual(['x/a x/b y/a @5', undefined]);
  });

  test('TestListIndexer: what a pinned field selects is found in its index, which follows changes', async () => {
    let calls = 0;
    const node = (pod: { spec?: { node?: string | undefined } }): string | undefined => {
      calls++;
      return pod.spec?.node;
    };
    const { cacher, pods } = await rig({ fields: { 'spec.node': node } }, async (given) => {
      for (let i = 0; i < 50; i++) await given.put(`x/p${i}`, { node: `n${i}` });
    });
    const fieldSelector = 'spec.node=n7';
    await cacher.list({ fieldSelector });
    calls = 0;
    expect(names(await cacher.list({ fieldSelector }))).toBe('x/p7 @51');
    expect(calls).toBe(1);
    await pods.put('x/p8', { node: 'n7' });
    await pods.put('x/p7', { node: 'n8' });
    await pods.remove('x/p9');
    await settle();
    expect(names(await cacher.list({ fieldSelector }))).toBe('x/p8 @54');
    expect(names(await cacher.list({ fieldSelector: 'spec.node=n9' }))).toBe(' @54');
    expect(await codeOf(cacher.list({ fieldSelector: 'spec.other=1' }))).toBe(400);
  });

  test('the whole list is the same array while nothing changes', async () => {
    const { cacher, pods } = await rig({}, four);
    const { items } = await cacher.list();
    await pods.elsewhere();
    expect((await cacher.list()).items).toBe(items);
    await pods.put('x/c');
    expect((await cacher.list()).items).not.toBe(items);
  });
});

describe('what a get reads', () => {
  test('TestGetCacheBypass: without a version the storage, also while the cache is not ready; with one the cache', async () => {
    const { cacher, asked } = await rig({}, four);
    const stored = await cacher.get('x/a');
    expect(asked()).toBe('get x/a');
    expect(await cacher.get('x/a', { resourceVersion: '0' })).toBe(stored);
    expect(await cacher.get('x/a', { resourceVersion: '4' })).toBe(stored);
    expect(await cacher.scope('x/').get('a', { resourceVersion: '0' })).toBe(stored);
    expect(await cacher.get('x/z', { resourceVersion: '0' })).toBeUndefined();
    expect(asked()).toBe('');
    const unready = await rig({}, async (pods) => {
      await pods.put('x/a');
      pods.storage.faults.codes.list.push(500);
    });
    expect(versionOf(await unready.cacher.get('x/a'))).toBe('2');
    expect(await codeOf(unready.cacher.get('x/a', { resourceVersion: '0' }))).toBe(429);
  });

  test('TestWaitUntilFreshAndGet: with a version that the storage has it waits; one that it cannot have given is 410', async () => {
    const { cacher, pods } = await rig({}, four);
    pods.storage.hold();
    await pods.put('x/z');
    const got = cacher.get('x/z', { resourceVersion: '6' });
    await settle();
    pods.storage.release();
    expect(versionOf(await got)).toBe('6');
    expect(await codeOf(cacher.get('x/z', { resourceVersion: '7' }))).toBe(410);
  });
});

describe('writes', () => {
  test('pass through, with what the cache has as a hint', async () => {
    const { cacher, pods } = await rig({}, four);
    const cached = await cacher.get('x/a', { resourceVersion: '0' });
    const changed = await cacher.update('x/a', (pod) => ({ ...pod, spec: { n: 9 } }));
    expect(pods.storage.updates.at(-1)?.cached).toBe(cached);
    await cacher.update('x/q', (pod) => ({ ...pod, metadata: { name: 'q', namespace: 'x' } }), { createIfMissing: true });
    expect(pods.storage.updates.at(-1)).toStrictEqual({ createIfMissing: true });
    expect((await cacher.get('x/a', { resourceVersion: versionOf(changed) }))?.spec?.n).toBe(9);
    await cacher.delete('x/a');
    expect(pods.storage.deletes.at(-1)?.cached).toEqual(changed);
  });
});

test('a page of a state that only the storage has costs a page there, and not all of that state', async () => {
  const storage = new MemoryStorage<Pod>();
  for (let n = 0; n < 50; n++) await storage.create(`things/${n + 10}`, pod(`x/${n}`));
  const past = await storage.currentVersion();
  for (let n = 0; n < 20; n++) await storage.update('things/10', () => pod('x/0', { n }));
  const range = vi.spyOn(MemoryBackend.prototype, 'range');
  const cacher = new Cacher<Pod>(storage.scope('things/'), { pastRevisions: 0, windowItems: 1 });
  await cacher.ready();
  range.mockClear();
  const left: unknown[] = [];
  const listed: unknown[] = [];
  let page = await cacher.list({ resourceVersion: past, resourceVersionMatch: 'Exact', limit: 20 });
  for (;;) {
    left.push(page.remainingItemCount);
    listed.push(...page.items.map(({ metadata }) => metadata?.name));
    if (page.continue === undefined) break;
    page = await cacher.list({ limit: 20, continue: page.continue });
  }
  expect(left).toEqual([30, 10, undefined]);
  expect(listed).toEqual(Array.from({ length: 50 }, (_, n) => `${n}`));
  const read = await Promise.all(range.mock.results.map(async ({ value }) => (await value).entries.length));
  expect(read).toEqual([21, 21, 10]);
  range.mockRestore();
  await cacher.close();
});

test.each(['get', 'watch', 'list'] as const)(
  'a %s ends with its signal, or with the cacher, also if the storage does not say whose its version is',
  async (verb) => {
    const memory = new MemoryStorage<Pod>();
    await memory.create('x/a', pod('x/a'));
    const storage = new Proxy(memory, {
      get: (target, name) => {
        if (name === 'hasGiven') return () => new Promise(() => {});
        const member: unknown = Reflect.get(target, name, target);
        return typeof member === 'function' ? member.bind(target) : member;
      },
    });
    const cacher = new Cacher<Pod>(storage);
    await cacher.ready();
    const read = (signal?: AbortSignal): Promise<unknown> => {
      const options = { resourceVersion: '1', signal };
      return verb === 'get' ? cacher.get('x/a', options) : cacher[verb](options);
    };
    const leaving = new AbortController();
    const left = expect(read(leaving.signal)).rejects.toThrow('enough');
    const ended = expect(read()).rejects.toMatchObject({ code: 'CLOSED' });
    await settle();
    leaving.abort(new Error('enough'));
    await left;
    await cacher.close();
    await ended;
  },
);
