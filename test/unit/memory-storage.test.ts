import { describe, expect, test } from 'vitest';
import type { KubernetesObject } from '../../src/cache/index.ts';
import { MemoryStorage } from '../../src/storage/index.ts';
import { dropEncoded, encoded } from '../../src/storage/values.ts';
import { FakeClock } from '../../src/testing/index.ts';
import { setPace } from '../../src/watch/fair-queue.ts';
import { NO_GC } from './support.ts';

interface Thing extends KubernetesObject {
  readonly spec?: { n: number };
}

const thing = (name: string, n: number = 0): Thing => ({ metadata: { name }, spec: { n } });
const codeOf = (error: unknown): number | undefined => (error as { status?: { code?: number } }).status?.code;

test('a misspelt precondition is refused: without it, anything would be deleted', async () => {
  const storage = new MemoryStorage<Thing>();
  await storage.create('a', thing('a'));
  const misspelt = { version: '1' } as never;
  const refused = { code: 'INVALID_ARGUMENT', message: expect.stringContaining('unknown option version') };
  await expect(storage.delete('a', misspelt)).rejects.toMatchObject(refused);
  await expect(storage.update('a', (old) => ({ ...old, spec: { n: 1 } }), misspelt)).rejects.toMatchObject(refused);
  expect((await storage.get('a'))?.spec?.n).toBe(0);
});

describe('what is put into a MemoryStorage', () => {
  const big = (): { metadata: { name: string }; items: { gen: number }[] } => ({
    metadata: { name: 'a' },
    items: Array.from({ length: 60_000 }, (_, i) => ({ i, gen: 1, pad: 'x'.repeat(10) })),
  });
  const put = {
    create: (storage: MemoryStorage, object: KubernetesObject) => storage.create('a', object),
    update: (storage: MemoryStorage, object: KubernetesObject) => storage.update('a', () => object, { createIfMissing: true }),
  };
  test.each(['create', 'update'] as const)('is what it was at that moment, however large: %s', async (verb) => {
    const storage = new MemoryStorage();
    const object = big();
    const writing = put[verb](storage, object);
    for (const each of object.items) each.gen = 2;
    Object.assign(object, { added: true });
    const stored = (await writing) as ReturnType<typeof big>;
    expect([new Set(stored.items.map(({ gen }) => gen)), 'added' in stored]).toEqual([new Set([1]), false]);
  });

  test('is put there in the order of the calls, however large', async () => {
    const storage = new MemoryStorage();
    const [first, second] = [storage.create('a', big()), storage.create('a', thing('a'))];
    expect(await second.catch(codeOf)).toBe(409);
    expect(await storage.get('a')).toBe(await first);
  });

  test('is made in pieces for a request, which owns what it puts', async () => {
    const storage = new MemoryStorage();
    const { signal } = new AbortController();
    let pauses = 0;
    setPace(signal, { turn: () => undefined, pause: () => void pauses++ as undefined });
    await storage.create('a', big(), { signal });
    const created = pauses;
    await storage.update('a', () => ({ ...big(), more: true }), { signal });
    expect([created > 30, pauses > 2 * created]).toEqual([true, true]);
  });

  test('is written in pieces when it is deleted, though its JSON was let go; what watches are sent is a copy of that', async () => {
    const storage = new MemoryStorage();
    const { signal } = new AbortController();
    let pauses = 0;
    setPace(signal, { turn: () => undefined, pause: () => void pauses++ as undefined });
    dropEncoded(await storage.create('a', big()));
    const last = await storage.delete('a', { signal });
    expect(pauses).toBeGreaterThan(30);
    const expected = { ...last };
    Object.assign(last, { items: 'what is written anew would have this' });
    expect(JSON.parse(new TextDecoder().decode(encoded(last)))).toEqual(expected);
  });

  test('is written in pieces when it expires, though its JSON was let go; what watches are sent is a copy of that', async () => {
    const clock = new FakeClock();
    const storage = new MemoryStorage({ clock });
    for (const key of ['a', 'b']) dropEncoded(await storage.create(key, big(), { ttlSeconds: 10 }));
    const watch = await storage.watch({ resourceVersion: '3' });
    const texts: unknown[] = [];
    const { stringify } = JSON;
    JSON.stringify = (value, ...more) => {
      texts.push(value);
      return stringify(value, ...(more as []));
    };
    try {
      clock.advance(10_000);
      const deleting = storage.delete('b').catch(codeOf); // whoever is first
      for (const version of ['4', '5']) {
        const last = (await watch.next()).value as { type: string; object: KubernetesObject };
        expect(last).toMatchObject({ type: 'DELETED', object: { metadata: { resourceVersion: version } } });
        expect(JSON.parse(new TextDecoder().decode(encoded(last.object)))).toEqual(last.object);
      }
      await deleting;
      expect(Math.max(...texts.map((value) => stringify(value)?.length ?? 0))).toBeLessThan(300_000);
    } finally {
      JSON.stringify = stringify;
    }
    expect(await storage.list()).toEqual({ items: [], resourceVersion: '5' });
    expect(clock.pending).toBe(0);
  });

  test('is not deleted if it is changed while it is written', async () => {
    const storage = new MemoryStorage();
    await storage.create('a', big());
    const { signal } = new AbortController();
    let go: (() => void) | undefined;
    setPace(signal, { turn: () => undefined, pause: () => (go ? undefined : new Promise((resolve) => (go = resolve))) });
    dropEncoded((await storage.get('a')) as object);
    const deleting = storage.delete('a', { signal, resourceVersion: '2' });
    while (!go) await Promise.resolve();
    await storage.update('a', () => thing('a', 1));
    go();
    expect(await deleting.catch(codeOf)).toBe(409);
    expect(await storage.get('a')).toMatchObject({ spec: { n: 1 } });
  });
});

describe('the first version of a MemoryStorage', () => {
  test('is 1, or what it is told', async () => {
    expect(await new MemoryStorage().currentVersion()).toBe('1');
    const startRevision = 1_700_000_000_000_000;
    const storage = new MemoryStorage<Thing>({ startRevision });
    expect(await storage.currentVersion()).toBe(`${startRevision}`);
    const { metadata } = await storage.create('a', thing('a'));
    expect(metadata?.resourceVersion).toBe(`${startRevision + 1}`);
  });

  test('is above those of the storage before it, so that they are gone', async () => {
    const before = new MemoryStorage<Thing>();
    await before.create('a', thing('a'));
    const { resourceVersion } = await before.list();
    const after = new MemoryStorage<Thing>({ startRevision: 1_000 });
    expect(await after.watch({ resourceVersion }).catch(codeOf)).toBe(410);
    expect(await after.list({ resourceVersion, resourceVersionMatch: 'Exact' }).catch(codeOf)).toBe(410);
  });

  test.each([0, -1, 1.5, Number.MAX_SAFE_INTEGER + 1])('is not %s', (startRevision) => {
    expect(() => new MemoryStorage({ startRevision })).toThrow(/startRevision.*expected a whole number >= 1/);
  });

  test('is at most 2^52, so that no version repeats', async () => {
    const storage = new MemoryStorage<Thing>({ startRevision: 2 ** 52 });
    const versions = [await storage.create('a', thing('a')), await storage.create('b', thing('b'))];
    expect(versions.map(({ metadata }) => metadata?.resourceVersion)).toEqual(['4503599627370497', '4503599627370498']);
    for (const startRevision of [2 ** 52 + 1, Number.MAX_SAFE_INTEGER - 1]) {
      const text = `startRevision: expected a whole number >= 1 and <= 4503599627370496, got ${startRevision}`;
      expect(() => new MemoryStorage({ startRevision })).toThrow(text);
    }
  });
});

describe('the history of a MemoryStorage', () => {
  test('is bounded by the number of changes', async () => {
    const storage = new MemoryStorage<Thing>({ maxHistoryItems: 3 });
    for (let n = 0; n < 10; n++) await storage.update('a', () => thing('a', n), { createIfMissing: true });
    expect(storage.stats.historyItems).toBe(3);
    expect(storage.oldestVersion).toBe('8');
    const [object] = (await storage.list({ resourceVersion: '8', resourceVersionMatch: 'Exact' })).items;
    expect(object?.spec?.n).toBe(6);
    const old = storage.list({ resourceVersion: '7', resourceVersionMatch: 'Exact' });
    expect(await old.catch(codeOf)).toBe(410);
  });

  test('is bounded by bytes, which it gives back', async () => {
    const storage = new MemoryStorage<KubernetesObject & { text: string }>({ maxHistoryBytes: 10_000 });
    for (let n = 0; n < 100; n++) {
      const text = `${n}`.repeat(1_000);
      await storage.update('a', () => ({ metadata: { name: 'a' }, text }), { createIfMissing: true });
      expect(storage.stats.historyBytes).toBeLessThanOrEqual(10_000);
    }
    expect(storage.stats.historyItems).toBeGreaterThan(2);
    storage.compact();
    expect(storage.stats).toMatchObject({ historyItems: 0, historyBytes: 0 });
  });

  test('is bounded by age', async () => {
    const clock = new FakeClock();
    const storage = new MemoryStorage<Thing>({ historyMs: 1_000, clock });
    await storage.create('a', thing('a'));
    clock.advance(600);
    await storage.create('b', thing('b'));
    clock.advance(600);
    await storage.create('c', thing('c'));
    expect(storage.oldestVersion).toBe('2');
    expect(clock.pending).toBe(0);
    clock.advance(400); // b is just as old as a change may be
    await storage.create('d', thing('d'));
    expect(storage.oldestVersion).toBe('2');
    clock.advance(1);
    await storage.create('e', thing('e'));
    expect(storage.oldestVersion).toBe('3');
  });

  test.skipIf(globalThis.gc === undefined)(`lets go of what it forgets${NO_GC}`, async () => {
    const storage = new MemoryStorage<Thing>({ maxHistoryItems: 2 });
    const old: WeakRef<Thing>[] = [];
    for (let n = 0; n < 10; n++) {
      const write = async (): Promise<void> => {
        old.push(new WeakRef(await storage.update('a', () => thing('a', n), { createIfMissing: true })));
      };
      await write();
    }
    for (let turn = 0; turn < 3; turn++) {
      await new Promise((resolve) => setImmediate(resolve));
      globalThis.gc?.();
    }
    // The newest, what is before the two changes that are kept, and what is between.
    expect(old.filter((each) => each.deref() !== undefined)).toHaveLength(3);
    expect((await storage.get('a'))?.spec?.n).toBe(9);
  });

  test('keeps nothing of a deleted key once the deletion is forgotten', async () => {
    const storage = new MemoryStorage<Thing>();
    await storage.create('a', thing('a'));
    await storage.delete('a');
    await storage.create('a', thing('a', 2));
    await storage.delete('a');
    storage.compact();
    expect(storage.stats).toMatchObject({ bytes: 0, historyItems: 0, historyBytes: 0 });
    expect(await storage.get('a')).toBeUndefined();
    await storage.create('a', thing('a', 3));
    expect((await storage.list()).items).toHaveLength(1);
  });
});

describe('a history that has forgotten thousands of changes', () => {
  test('has those that it keeps at their versions', async () => {
    const storage = new MemoryStorage<Thing>({ maxHistoryItems: 7 });
    for (let n = 0; n < 2_500; n++) {
      await storage.update(`k${n % 3}`, () => thing(`k${n % 3}`, n), { createIfMissing: true });
      if (n < 1_990 || n % 100 !== 0) continue;
      const oldest = Number(storage.oldestVersion);
      expect([storage.stats.historyItems, oldest]).toEqual([7, n - 5]);
      for (let version = oldest; version <= n + 2; version++) {
        const { items } = await storage.list({ resourceVersion: `${version}`, resourceVersionMatch: 'Exact' });
        expect(items.map(({ spec }) => spec?.n).sort()).toEqual([version - 4, version - 3, version - 2]);
      }
      const watch = await storage.watch({ resourceVersion: `${oldest}` });
      for (let at = oldest; at < n + 2; at++) expect(watch.tryNext()).toMatchObject({ object: { spec: { n: at - 1 } } });
      expect(watch.tryNext()).toBeUndefined();
      await watch.return();
    }
    const refusal = await storage.list({ resourceVersion: '7', resourceVersionMatch: 'Exact' }).catch(String);
    expect(refusal).toContain(`too old resource version: 7 (${storage.oldestVersion})`);
  });

  test('compact forgets what is before a version, and says what is none', async () => {
    const storage = new MemoryStorage<Thing>();
    for (let n = 0; n < 5; n++) await storage.create(`k${n}`, thing(`k${n}`));
    storage.compact('4');
    expect([storage.oldestVersion, storage.stats.historyItems]).toEqual(['4', 2]);
    storage.compact('3');
    expect(storage.oldestVersion).toBe('4');
    expect(() => storage.compact('7')).toThrow('resource version 7 was not issued by this storage (current: 6)');
    expect(() => storage.compact('x')).toThrow('400');
    storage.compact('6');
    expect([storage.oldestVersion, storage.stats.historyItems]).toEqual(['6', 0]);
    storage.compact();
    expect(storage.oldestVersion).toBe('6');
  });

  test('costs what was there before, once more for a deletion, and what each change takes', async () => {
    const storage = new MemoryStorage<Thing>();
    const each = 300 + 2 * 'key'.length;
    const first = JSON.stringify(await storage.create('key', thing('a'))).length;
    expect(storage.stats).toMatchObject({ bytes: first, historyBytes: each });
    const second = JSON.stringify(await storage.update('key', () => thing('a', 1_000))).length;
    expect(storage.stats).toMatchObject({ bytes: second, historyBytes: 2 * each + first });
    await storage.delete('key');
    expect(storage.stats).toMatchObject({ bytes: 0, historyBytes: 3 * each + first + 2 * second });
  });

  test('a key that was deleted and created again stays when the deletion is forgotten', async () => {
    const storage = new MemoryStorage<Thing>();
    await storage.create('a', thing('a', 1));
    await storage.delete('a');
    await storage.create('a', thing('a', 2));
    storage.compact();
    expect((await storage.get('a'))?.spec?.n).toBe(2);
    expect((await storage.list()).items).toHaveLength(1);
  });
});

describe('a watch of a MemoryStorage', () => {
  test('that falls out of the history is told 410, one that reads the state once it has that', async () => {
    const storage = new MemoryStorage<Thing>({ maxHistoryItems: 5 });
    for (let n = 0; n < 300; n++) await storage.create(`k${n}`, thing(`k${n}`));
    const [state, changes] = [await storage.watch(), await storage.watch({ resourceVersion: await storage.currentVersion() })];
    expect((await state.next()).value?.type).toBe('ADDED');
    for (let n = 0; n < 6; n++) await storage.create(`l${n}`, thing(`l${n}`));
    for (let n = 1; n < 300; n++) expect((await state.next()).value).toMatchObject({ type: 'ADDED', object: { spec: { n: 0 } } });
    for (const watch of [state, changes]) {
      expect((await watch.next()).value).toMatchObject({ type: 'ERROR', object: { code: 410, reason: 'Expired' } });
      expect(await watch.next()).toEqual({ done: true, value: undefined });
      expect(watch.stopped).toBe(true);
    }
    expect(storage.stats.watches).toBe(0);
  });

  test('ends after timeoutSeconds with what it has; its timer ends with it', async () => {
    const clock = new FakeClock();
    const storage = new MemoryStorage<Thing>({ clock });
    const watch = await storage.watch({ timeoutSeconds: 5 });
    await storage.create('a', thing('a'));
    clock.advance(5_000);
    expect((await watch.next()).value?.type).toBe('ADDED');
    expect((await watch.next()).done).toBe(true);
    const forEver = await storage.watch({ timeoutSeconds: 0 });
    expect(clock.pending).toBe(0);
    await forEver.return();
    const other = await storage.watch({ timeoutSeconds: 5 });
    await other.return();
    expect(clock.pending).toBe(0);
    expect(storage.stats.watches).toBe(0);
  });

  test('is told progress in order with events, and not put off by more of it', async () => {
    const storage = new MemoryStorage<Thing>();
    const watch = await storage.watch({ resourceVersion: '1', allowWatchBookmarks: true });
    await storage.create('a', thing('a'));
    await storage.requestProgress();
    await storage.create('b', thing('b'));
    await storage.requestProgress();
    await storage.create('c', thing('c'));
    await storage.requestProgress();
    const seen: string[] = [];
    for (let event = watch.tryNext(); event; event = watch.tryNext()) {
      seen.push(`${event.type} ${(event.object as KubernetesObject).metadata?.resourceVersion}`);
    }
    expect(seen).toEqual(['ADDED 2', 'BOOKMARK 2', 'ADDED 3', 'ADDED 4', 'BOOKMARK 4']);
  });
});

describe('a MemoryStorage', () => {
  test('deletes what has lived long enough, by one timer', async () => {
    const clock = new FakeClock();
    const storage = new MemoryStorage<Thing>({ clock });
    const watch = await storage.watch();
    for (const [key, ttlSeconds] of [
      ['a', 3],
      ['b', 1],
      ['c', 2],
      ['d', 0],
    ] as const) {
      await storage.create(key, thing(key), { ttlSeconds });
    }
    expect(clock.pending).toBe(1);
    await storage.update('c', () => thing('c', 1));
    clock.advance(1_000);
    expect((await storage.list()).items.map(({ metadata }) => metadata?.name)).toEqual(['a', 'c', 'd']);
    clock.advance(10_000);
    expect((await storage.list()).items.map(({ metadata }) => metadata?.name)).toEqual(['c', 'd']);
    expect(clock.pending).toBe(0);
    const types: string[] = [];
    for (let event = watch.tryNext(); event; event = watch.tryNext()) types.push(event.type);
    expect(types.join(' ')).toBe('ADDED ADDED ADDED ADDED MODIFIED DELETED DELETED');
  });

  test('deletes by time, not by its digits', async () => {
    const clock = new FakeClock();
    const storage = new MemoryStorage<Thing>({ clock });
    for (const ttlSeconds of [50, 9, 100]) await storage.create(`${ttlSeconds}`, thing(`${ttlSeconds}`), { ttlSeconds });
    const left: unknown[] = [];
    for (const ms of [8_999, 1, 41_000, 50_000]) {
      clock.advance(ms);
      left.push((await storage.list()).items.map(({ metadata }) => metadata?.name).join(' '));
    }
    expect(left).toEqual(['100 50 9', '100 50', '100', '']);
  });

  test('leaves nothing behind when it is closed', async () => {
    const clock = new FakeClock();
    const storage = new MemoryStorage<Thing>({ clock });
    await storage.create('a', thing('a'), { ttlSeconds: 5 });
    const watch = await storage.watch({ resourceVersion: await storage.currentVersion(), timeoutSeconds: 9 });
    const read = watch.next();
    const never = storage.update('a', () => new Promise<Thing>(() => {}));
    const neither = storage.delete('a', { validate: () => new Promise<void>(() => {}) });
    await storage.close();
    expect((await read).done).toBe(true);
    for (const pending of [never, neither]) await expect(pending).rejects.toMatchObject({ code: 'CLOSED' });
    for (const late of [storage.list(), storage.get('a'), storage.watch(), storage.create('b', thing('b'))]) {
      await expect(late).rejects.toMatchObject({ code: 'CLOSED' });
    }
    expect(clock.pending).toBe(0);
    expect(storage.stats.watches).toBe(0);
    await storage.close();
  });

  test('refuses options that are none by their names', async () => {
    for (const name of ['maxHistoryItems', 'maxHistoryBytes', 'historyMs'])
      expect(() => new MemoryStorage({ [name]: -1 })).toThrow(`${name}: expected a whole number >= 0, got -1`);
    for (const name of ['maxObjectBytes', 'maxBytes'])
      expect(() => new MemoryStorage({ [name]: 0 })).toThrow(`${name}: expected a whole number >= 1, got 0`);
    for (const [name, wrong] of [
      ['journal', { append: 1 }],
      ['clock', { now: 1 }],
      ['onError', 1],
      ['unknown', 1],
    ] as const)
      expect(() => new MemoryStorage({ [name]: wrong } as never)).toThrow(name);
    const storage = new MemoryStorage<Thing>();
    await expect(storage.create('a', thing('a'), { ttlSeconds: -1 })).rejects.toThrow('ttlSeconds: expected');
    await expect(storage.update('a', () => thing('a'), { ttlSeconds: 0.5 })).rejects.toThrow('ttlSeconds: expected');
    await expect(storage.update('a', undefined as never)).rejects.toThrow('change: expected a function');
    await expect(storage.create('a', [] as never)).rejects.toThrow('object: expected an object');
    await expect(storage.update('a', 1 as never)).rejects.toThrow('change: expected a function');
    await expect(storage.delete('a', { validate: 1 as never })).rejects.toThrow('validate: expected a function');
    await expect(storage.list({ limit: -1 })).rejects.toThrow('limit: expected');
    await expect(storage.create('a', { metadata: 5 } as never)).rejects.toThrow('object.metadata: expected an object, got 5');
    expect(storage.stats.historyItems).toBe(0);
  });

  test('keeps objects without metadata, and says full in numbers', async () => {
    const storage = new MemoryStorage<Thing>({ maxBytes: 100 });
    expect(await storage.create('a', {})).toEqual({ metadata: { resourceVersion: '2' } });
    const { bytes } = storage.stats;
    const exactly = new MemoryStorage<Thing>({ maxBytes: bytes });
    expect((await exactly.create('a', {})).metadata).toBeDefined();
    const full = await storage.create('b', thing('b'.repeat(90))).catch((error) => error.status);
    expect(full).toMatchObject({
      code: 429,
      message: `the storage is full: it holds ${bytes} of 100 bytes`,
      details: { retryAfterSeconds: 10 },
    });
  });

  test('is full when it is full', async () => {
    const storage = new MemoryStorage<Thing>({ maxBytes: 200, maxObjectBytes: 100 });
    await storage.create('a', thing('a'));
    await storage.create('b', thing('b'));
    await storage.create('c', thing('c'));
    expect(await storage.create('d', thing('d')).catch(codeOf)).toBe(429);
    expect(await storage.create('e', thing('e'.repeat(100))).catch(codeOf)).toBe(413);
    await storage.delete('a');
    await storage.create('d', thing('d'));
    await storage.delete('b');
    // As JSON, which is what clients get: each is six bytes.
    expect(await storage.create('f', thing('\0'.repeat(10))).catch(codeOf)).toBe(413);
    await storage.create('f', thing('f'.repeat(10)));
  });
});
