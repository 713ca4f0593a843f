// How what a watch of a cacher has is read: one by one or in batches, before and after its end, and what it counts meanwhile.
import { describe, expect, test } from 'vitest';
import type { CollectionWatch } from '../../src/storage/collection/watch.ts';
import { Cacher, MemoryStorage } from '../../src/storage/index.ts';
import { type PodWatch, rig, seen, told } from './cacher-support.ts';
import { FIELDS, type Pod, type Pods, settle } from './faulty-storage.ts';

/** Versions 2 to 4. */
async function three(pods: Pods): Promise<void> {
  for (const key of ['x/a', 'x/b', 'x/c']) await pods.put(key);
}
const batchOf = (watch: PodWatch): string =>
  ((watch as CollectionWatch<Pod>).tryBatch() ?? []).map((event) => told(event)).join(', ');

describe('what is queued', () => {
  test('is the rest of the state, its end, and the changes since; nothing when it was left', async () => {
    const { cacher, pods } = await rig({}, three);
    const watch = await cacher.watch({ sendInitialEvents: true });
    expect(watch.queued).toBe(4);
    await pods.put('x/d');
    await pods.put('x/e');
    await settle();
    const counts: number[] = [];
    for (let event = watch.tryNext(); event; event = watch.tryNext()) counts.push(watch.queued);
    expect(counts).toEqual([5, 4, 3, 2, 1, 0]);
    const left = await cacher.watch({ sendInitialEvents: true });
    left.tryNext();
    await pods.put('x/f');
    await settle();
    expect(left.queued).toBe(6);
    await left.return();
    expect([left.queued, left.dropped]).toEqual([0, 6]);
    await pods.put('x/g');
    await settle();
    expect([left.queued, left.stopped]).toEqual([0, true]);
  });

  test('is what came before the stop', async () => {
    const { cacher, pods } = await rig({}, three);
    const watch = await cacher.watch({ resourceVersion: '4' });
    await pods.put('x/d');
    await settle();
    watch.stop();
    await pods.put('x/e');
    await settle();
    expect([watch.queued, batchOf(watch), watch.queued, batchOf(watch)]).toEqual([1, 'ADDED d@5', 0, '']);
  });
});

describe('batches', () => {
  test('are the state, its end with what follows, then what is new; none goes beyond a stop', async () => {
    const { cacher, pods } = await rig({}, three);
    const watch = await cacher.watch({ sendInitialEvents: true });
    const late = await cacher.watch({ sendInitialEvents: true });
    late.tryNext();
    await pods.put('x/d');
    await settle();
    expect(batchOf(watch)).toBe('ADDED a@2, ADDED b@3, ADDED c@4');
    expect(batchOf(watch)).toBe('END 4, ADDED d@5');
    expect(batchOf(late)).toBe('ADDED b@3, ADDED c@4');
    late.stop();
    await pods.put('x/e');
    await settle();
    expect(batchOf(late)).toBe('END 4, ADDED d@5');
    expect(batchOf(late)).toBe('');
    expect(batchOf(watch)).toBe('ADDED e@6');
  });

  test('have one event if another read waits behind them', async () => {
    const { cacher, pods } = await rig({}, three);
    const watch = (await cacher.watch({ resourceVersion: '4' })) as CollectionWatch<Pod>;
    const reads = [watch.nextBatch(), watch.next(), watch.nextBatch()];
    for (const key of ['x/d', 'x/e', 'x/f', 'x/g'])
      await pods.memory.create(`pods/${key}`, { metadata: { name: key.slice(2), namespace: 'x' } });
    await settle();
    const texts = (await Promise.all(reads)).map(({ value }) => [value].flat().map((event) => event && told(event)));
    expect(texts[0]).toEqual(['ADDED d@5']);
    expect(texts[1]).toEqual(['ADDED e@6']);
    expect(texts[2]?.[0]).toBe('ADDED f@7');
  });

  test('are the same arrays for watches in step, of the state and of what follows', async () => {
    const { cacher, pods } = await rig({}, three);
    const open = async (): Promise<CollectionWatch<Pod>> =>
      (await cacher.watch({ labelSelector: 'app=web' })) as CollectionWatch<Pod>;
    const [one, other] = [await open(), await open()];
    const state = one.tryBatch();
    expect(state).toHaveLength(3);
    expect(other.tryBatch()).toBe(state);
    await pods.put('x/d');
    await pods.put('x/e');
    await settle();
    const changes = one.tryBatch();
    expect(changes).toHaveLength(2);
    expect(other.tryBatch()).toBe(changes);
  });
});

describe('an end', () => {
  test.each(['stop', 'return'] as const)('by %s, and then by stop, leaves its view once: others hear on', async (first) => {
    const { cacher, pods } = await rig({}, three);
    const [one, other] = [await cacher.watch({ resourceVersion: '4' }), await cacher.watch({ resourceVersion: '4' })];
    await one[first]();
    one.stop();
    one.stop();
    expect(cacher.stats).toMatchObject({ watches: 1, views: 1 });
    await pods.put('x/d');
    expect(await seen(other)).toBe('ADDED d@5');
    const again = await cacher.watch({ resourceVersion: '5' });
    await pods.put('x/e');
    expect([await seen(other), await seen(again)]).toEqual(['ADDED e@6', 'ADDED e@6']);
  });

  test('by its time does not hide a 410 that is there already', async () => {
    const { cacher, pods, clock } = await rig({}, three);
    const watch = await cacher.watch({ resourceVersion: '4', timeoutSeconds: 5 });
    pods.storage.cut();
    await pods.put('x/a', { n: 1 });
    pods.memory.compact();
    await settle();
    clock.advance(1_000);
    await settle();
    expect([cacher.stats.gaps, watch.stopped]).toEqual([1, true]);
    clock.advance(10_000);
    expect(await seen(watch)).toBe('ERROR 410');
    expect(cacher.stats.watches).toBe(0);
  });

  test('with 410 says after which version it was too slow', async () => {
    const { cacher, pods } = await rig({ windowItems: 2 }, three);
    const watch = await cacher.watch({ resourceVersion: '4' });
    await pods.put('x/d');
    await settle();
    expect(watch.tryNext()).toMatchObject({ type: 'ADDED' });
    for (let n = 1; n <= 3; n++) await pods.put('x/d', { n });
    await settle();
    expect(watch.tryNext()).toMatchObject({
      type: 'ERROR',
      object: {
        code: 410,
        message: 'too old resource version: 5: the watch was too slow, and the next changes are gone',
      },
    });
  });

  test('does not come by itself, without a time or with one of 0', async () => {
    const { cacher, clock } = await rig({}, three);
    const watches = [
      await cacher.watch({ resourceVersion: '4' }),
      await cacher.watch({ resourceVersion: '4', timeoutSeconds: 0 }),
    ];
    for (let minutes = 0; minutes < 10; minutes++) {
      clock.advance(60_000);
      await settle();
    }
    expect(watches.map(({ stopped }) => stopped)).toEqual([false, false]);
  });
});

describe('many views', () => {
  test('a change is judged only for those that its object concerns', async () => {
    let calls = 0;
    const node = (object: Pod): string | undefined => {
      calls++;
      return FIELDS['spec.node'](object);
    };
    const { cacher, pods } = await rig({ fields: { 'spec.node': node } });
    const watches: PodWatch[] = [];
    for (let n = 0; n < 100; n++) watches.push(await cacher.watch({ fieldSelector: `spec.node=n${n}` }));
    await pods.put('x/a', { node: 'n7' });
    await settle();
    calls = 0;
    await pods.put('x/a', { node: 'n8' });
    await settle();
    expect(calls).toBeLessThan(10);
    expect([await seen(watches[7] as PodWatch), await seen(watches[8] as PodWatch)]).toEqual([
      'ADDED a@2, DELETED a@3',
      'ADDED a@3',
    ]);
    for (const watch of watches) await watch.return();
    calls = 0;
    await pods.put('x/a', { node: 'n9' });
    await settle();
    expect(calls).toBeLessThan(5); // the indexes of lists and watches that there were are kept
  });

  test('a change is told in every scope that it is in, however deep, and in no other', async () => {
    const storage = new MemoryStorage<Pod>();
    const cacher = new Cacher<Pod>(storage, { pastRevisions: 0, keyOf: ({ metadata }) => `${metadata?.labels?.app}` });
    const prefixes = ['', 'a/', 'a/x/', 'a/x/deep/', 'a/y/', 'b/'];
    const watches: PodWatch[] = [];
    for (const prefix of prefixes) {
      watches.push(await (prefix === '' ? cacher : cacher.scope<Pod>(prefix)).watch({ sendInitialEvents: false }));
    }
    for (const [at, key] of ['one', 'a/two', 'a/x/three', 'a/x/deep/four', 'b/five'].entries()) {
      await storage.create(key, { metadata: { name: `${at + 1}`, labels: { app: key } } });
    }
    const told: string[] = [];
    for (const watch of watches) told.push((await seen(watch)).replaceAll(/ADDED |@\d+|, /g, ''));
    expect(told).toEqual(['12345', '234', '34', '4', '', '5']);
    await cacher.close();
    await storage.close();
  });

  test('one too many is refused, with the limit and its name', async () => {
    const { cacher } = await rig({ maxWatches: 2 }, three);
    const open = [await cacher.watch(), await cacher.watch()];
    const refusal = await cacher.watch().catch((error) => error.status);
    expect(refusal).toMatchObject({ code: 429, message: expect.stringContaining('already 2 watches (maxWatches)') });
    await open[0]?.return();
    await cacher.watch();
  });
});

describe('options of a cacher', () => {
  const storage = { watch() {}, requestProgress() {} };

  test.each([
    ['windowItems', -1],
    ['windowBytes', 1.5],
    ['windowMs', 0],
    ['pastRevisions', -1],
    ['freshnessTimeoutMs', 0],
    ['progressMs', 0],
    ['bookmarkMs', 0],
    ['maxWatches', Number.NaN],
    ['minRetryMs', 0],
    ['maxRetryMs', 0],
    ['keyOf', 'name'],
    ['compareVersions', 5],
    ['onError', 5],
    ['clock', {}],
    ['random', 5],
  ])('%s: %s is refused by its name', (name, value) => {
    const make = (): unknown => new Cacher(storage as never, { [name]: value });
    expect(make).toThrow(
      expect.objectContaining({ code: 'INVALID_ARGUMENT', message: expect.stringMatching(`^${name}: expected `) }),
    );
  });

  test('a clock is said to be one, and a field is named', () => {
    expect(() => new Cacher(storage as never, { clock: {} as never })).toThrow('a Clock');
    const fields = { 'spec.node': 5 } as never;
    expect(() => new Cacher(storage as never, { fields })).toThrow(/^fields\.spec\.node: expected /);
  });

  test.each(['windowItems', 'windowBytes', 'pastRevisions', 'maxWatches'])('%s may be 0', async (name) => {
    const { cacher } = await rig({ [name]: 0 }, three);
    expect(cacher.stats).toMatchObject({ phase: 'ready', resourceVersion: '4' });
    await cacher.close();
  });
});
