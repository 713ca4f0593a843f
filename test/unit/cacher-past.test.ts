// Where the window of a cacher begins: some revisions before it did, so that clients of another cacher go on here; and what it may not
// tell anybody meanwhile.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { ListOptions } from '../../src/cache/index.ts';
import { versionOf } from '../../src/cache/object.ts';
import { listPast, upstreamOf } from '../../src/storage/cacher/upstream.ts';
import { Cacher, MemoryStorage, openMemoryStorage, type Storage } from '../../src/storage/index.ts';
import { refused } from '../../src/storage/statuses.ts';
import { closers } from '../closing.ts';
import { codeOf, names, type Rig, rig, seen } from './cacher-support.ts';
import { FaultyStorage, type Pod, type Pods, pod, settle } from './faulty-storage.ts';

const closing = closers();

/** Versions 2 to 7, and what there is then: x/b, x/c. */
async function busy(pods: Pods): Promise<void> {
  await pods.put('x/a');
  await pods.put('x/b');
  await pods.put('x/a', { n: 1 });
  await pods.elsewhere();
  await pods.remove('x/a');
  await pods.put('x/c');
}

/** Versions 2 to 101. */
async function long(pods: Pods): Promise<void> {
  for (let n = 1; n <= 100; n++) await pods.put('x/a', { n });
}

const began = async (revisions: number, prepare: (pods: Pods) => unknown): Promise<Rig> => {
  const made = await rig({ pastRevisions: revisions }, prepare);
  closing.push(() => made.cacher.close());
  return made;
};

/** What a cacher has asked of its storage when it began. */
async function asks(revisions: number, prepare: (pods: Pods) => unknown): Promise<string> {
  const { pods } = await rig({}, prepare);
  const { asked } = pods.storage.faults;
  asked.length = 0;
  const cacher = new Cacher<Pod>(pods.storage, { pastRevisions: revisions });
  closing.push(() => cacher.close());
  await cacher.ready();
  return asked.filter((each) => each !== 'progress').join(', ');
}

const steps = (asked: string): string =>
  asked
    .split(', ')
    .filter((each) => each !== 'progress')
    .join(', ');

describe('a cacher that begins later', () => {
  test('tells from every version what the storage tells, though it was not there', async () => {
    const { cacher, pods } = await began(10_000, busy);
    expect(cacher.stats).toMatchObject({ resourceVersion: '7', objects: 2, gaps: 0, window: { items: 5, since: '1' } });
    for (let version = 1; version <= 7; version++) {
      const options = { resourceVersion: `${version}` };
      expect(await seen(await cacher.watch(options))).toBe(await seen(await pods.memory.scope<Pod>('pods/').watch(options)));
    }
    expect(names(await cacher.list({ resourceVersion: '4', resourceVersionMatch: 'Exact' }))).toBe('x/a x/b @4');
    expect(names(await cacher.list())).toBe('x/b x/c @7');
  });

  test('a watch that moves from one cacher to a fresh one misses nothing, and gets nothing twice', async () => {
    const { cacher, pods } = await rig({}, busy);
    const watch = await cacher.watch({ resourceVersion: '7' });
    await pods.put('x/b', { n: 2 });
    expect(await seen(watch)).toBe('MODIFIED b@8');
    await cacher.close();
    await pods.remove('x/c');
    await pods.put('x/c', { n: 3 });
    const fresh = new Cacher<Pod>(pods.storage);
    closing.push(() => fresh.close());
    const moved = await fresh.watch({ resourceVersion: '8' });
    await pods.put('x/d');
    expect(await seen(moved)).toBe('DELETED c@9, ADDED c@10, ADDED d@11');
  });

  test('goes back so far and no further', async () => {
    const { cacher } = await began(3, busy);
    expect(cacher.stats.window.since).toBe('4');
    expect(await codeOf(cacher.watch({ resourceVersion: '3' }))).toBe(410);
    expect(await seen(await cacher.watch({ resourceVersion: '4' }))).toBe('DELETED a@6, ADDED c@7');
  });

  test('so far where versions begin at the time, as those of a server that keeps nothing', async () => {
    const storage = new MemoryStorage<Pod>({ startRevision: Date.UTC(2026, 10, 23) * 1_000 });
    await storage.create('x/a', pod('x/a'));
    for (let n = 1; n <= 50; n++) await storage.update('x/a', () => pod('x/a', { n }));
    const cacher = new Cacher<Pod>(storage, { pastRevisions: 40 });
    closing.push(() => cacher.close());
    await cacher.ready();
    const { resourceVersion, window } = cacher.stats;
    expect(Number(resourceVersion) - Number(window.since)).toBe(40);
  });

  test('not at all, if it is told so', async () => {
    const { cacher } = await began(0, busy);
    expect(await codeOf(cacher.watch({ resourceVersion: '6' }))).toBe(410);
    expect(await asks(0, busy)).toBe('list , watch 7');
  });

  test('goes back less where the storage has forgotten, in a few steps', async () => {
    expect(await asks(1_000, long)).toBe('currentVersion, list 1, watch 1');
    const compacted = async (pods: Pods): Promise<void> => {
      await long(pods);
      pods.memory.compact('90');
    };
    expect(await asks(1_000, compacted)).toBe('currentVersion, list 1, list 76, list 95, watch 95');
    expect(await asks(1_000, (pods) => long(pods).then(() => pods.memory.compact()))).toBe(
      'currentVersion, list 1, list 76, list 95, list 100, list , watch 101',
    );
  });

  test('keeps no more of it than the window may hold', async () => {
    const { cacher } = await rig({ pastRevisions: 1_000, windowItems: 10 }, long);
    closing.push(() => cacher.close());
    await cacher.ready();
    expect(cacher.stats).toMatchObject({ resourceVersion: '101', window: { items: 10, since: '91' } });
  });

  test('a storage whose versions are no numbers, or which cannot tell of the past, is listed as it is', async () => {
    const { pods } = await rig({}, busy);
    for (const patch of [
      { currentVersion: async () => 'v7.1' },
      {
        list: async (options: ListOptions = {}) =>
          options.resourceVersion ? refuse() : pods.memory.scope<Pod>('pods/').list(options),
      },
    ]) {
      const cacher = new Cacher<Pod>(Object.assign(new FaultyStorage(pods.memory.scope<Pod>('pods/')), patch));
      closing.push(() => cacher.close());
      await cacher.ready();
      expect(cacher.stats.window).toMatchObject({ items: 0, since: '7' });
    }
  });

  test.each(['1e3', '0x10', '12 ', ' 12', '', 'v7', '9007199254740993'])('versions like %j are not counted', async (version) => {
    const asked: unknown[] = [];
    const storage = {
      currentVersion: async () => version,
      list: async (options: ListOptions) => {
        asked.push(options.resourceVersion);
        return { items: [], resourceVersion: '7' };
      },
    } as unknown as Storage<Pod>;
    const { signal } = new AbortController();
    const upstream = upstreamOf(storage, () => 'a');
    expect(await listPast({ storage, upstream }, { revisions: 10, signal })).toBeUndefined();
    expect(asked).toEqual([]);
  });

  test('a storage in a file has the past of before its restart', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'watchmux-past-'));
    closing.push(() => rmSync(dir, { recursive: true }));
    const file = join(dir, 'data');
    const first = await openMemoryStorage<Pod>({ file });
    const created = await first.create('x/a', pod('x/a'));
    const updated = await first.update('x/a', () => pod('x/a', { n: 1 }));
    await first.close();
    const second = await openMemoryStorage<Pod>({ file });
    const cacher = new Cacher<Pod>(second);
    closing.push(() => second.close());
    closing.push(() => cacher.close());
    expect(await seen(await cacher.watch({ resourceVersion: versionOf(created) }))).toBe(`MODIFIED a@${versionOf(updated)}`);
  });
});

describe('until it has caught up', () => {
  /** A cacher whose storage tells nothing yet. */
  async function held(options: Parameters<typeof rig>[0] = {}): Promise<Rig> {
    const made = await rig({ pastRevisions: 10_000, ...options }, async (pods) => {
      await busy(pods);
      pods.storage.hold();
    });
    closing.push(() => {
      made.pods.storage.release();
      return made.cacher.close();
    });
    return made;
  }

  test('nobody is told what is old: reads of any version wait, and so do watches', async () => {
    const { cacher, pods, clock } = await held();
    const list = cacher.list({ resourceVersion: '0' }).then(names);
    const watch = cacher.watch({ sendInitialEvents: true, resourceVersion: '0', allowWatchBookmarks: true });
    const get = cacher.get('x/a', { resourceVersion: '0' });
    await settle();
    expect(cacher.stats).toMatchObject({ phase: 'pending', generation: 0, resourceVersion: '1' });
    pods.storage.release();
    await settle();
    expect([await list, await get]).toEqual(['x/b x/c @7', undefined]);
    expect(await seen(await watch)).toBe('ADDED b@3, ADDED c@7, END 7');
    expect(cacher.stats).toMatchObject({ phase: 'ready', generation: 1, waiting: 0 });
    clock.advance(100);
    expect(pods.storage.faults.asked.filter((each) => each === 'progress').length).toBeLessThan(5);
  });

  test('whoever cannot wait that long is refused with 429', async () => {
    const { cacher, clock } = await held();
    const refused = codeOf(cacher.list({ resourceVersion: '0' }));
    await settle();
    clock.advance(3_000);
    expect(await refused).toBe(429);
  });

  test('if that takes too long, it begins with what is there', async () => {
    const { cacher, pods, clock, asked, errors } = await held();
    for (let round = 1; round <= 4; round++) {
      expect(cacher.stats.phase).toBe('pending');
      clock.advance(3_000);
      await settle();
    }
    expect(steps(asked())).toBe('list , watch 7');
    expect(cacher.stats).toMatchObject({ phase: 'ready', gaps: 0, window: { items: 0, since: '7' } });
    expect(errors).toEqual([]);
    pods.storage.release();
    await pods.put('x/d');
    await settle();
    expect(names(await cacher.list({ resourceVersion: '0' }))).toBe('x/b x/c x/d @8');
  });

  test('what cannot be taken is passed over, if it is of the past', async () => {
    const keyOf = ({ metadata, spec }: Pod): string => {
      if (spec?.n === 1) throw new Error('no key');
      return `${metadata?.namespace}/${metadata?.name}`;
    };
    const { cacher, pods, clock, errors } = await held({ keyOf });
    pods.storage.release();
    await settle();
    expect(errors).toHaveLength(1);
    clock.advance(100);
    await settle();
    expect(cacher.stats).toMatchObject({ phase: 'ready', gaps: 0, window: { since: '7' } });
  });

  test.each([410, 500, undefined])('a watch that ends with %s: it begins with what is there', async (code) => {
    const { cacher, pods, clock, asked } = await held();
    pods.storage.cut(code);
    await settle();
    pods.storage.release();
    clock.advance(200);
    await settle();
    expect(steps(asked())).toContain('list , watch 7');
    expect(names(await cacher.list({ resourceVersion: '0' }))).toBe('x/b x/c @7');
    expect(cacher.stats).toMatchObject({ phase: 'ready', generation: 1, gaps: 0 });
  });

  test('a storage that fails for a moment before is asked for the past again', async () => {
    const { cacher, clock, asked } = await rig({ pastRevisions: 10 }, async (pods) => {
      await busy(pods);
      pods.storage.faults.codes.currentVersion.push(500);
    });
    closing.push(() => cacher.close());
    expect(cacher.stats.phase).toBe('pending');
    clock.advance(100);
    await settle();
    expect(steps(asked())).toBe('currentVersion, list 1, watch 1');
    expect(cacher.stats).toMatchObject({ phase: 'ready', window: { since: '1' } });
  });

  test('close leaves nothing behind', async () => {
    const { cacher, clock, pods } = await held();
    const list = codeOf(cacher.list());
    pods.storage.cut();
    await cacher.close();
    expect(await list).toBe('CLOSED');
    await settle();
    expect([clock.pending, pods.memory.stats.watches, cacher.stats.phase]).toEqual([0, 0, 'stopped']);
  });
});

test('after a gap it lists what is there: nobody knows whether the past is the same', async () => {
  const { cacher, pods, clock, asked } = await began(10_000, busy);
  pods.storage.cut();
  await pods.put('x/b', { n: 5 });
  await pods.put('x/b', { n: 6 });
  pods.memory.compact('9');
  clock.advance(1_000);
  await settle();
  clock.advance(1_000);
  await settle();
  expect(steps(asked())).toContain('watch 7, list , watch 9');
  expect(cacher.stats).toMatchObject({ phase: 'ready', gaps: 1, window: { since: '9' } });
});

function refuse(): never {
  throw refused(400, 'BadRequest', 'there is no past here');
}
