// A MemoryStorage before a journal of which the test decides what is safe, and when.
import { afterEach, describe, expect, test, vi } from 'vitest';
import type { KubernetesObject } from '../../src/cache/index.ts';
import { versionOf } from '../../src/cache/object.ts';
import type { JournalRecord, JournalSnapshot, StorageJournal } from '../../src/storage/index.ts';
import { MemoryStorage } from '../../src/storage/index.ts';
import { dropEncoded, isReady } from '../../src/storage/values.ts';
import { FakeClock } from '../../src/testing/index.ts';
import { fate, turn } from './support.ts';

interface Thing extends KubernetesObject {
  readonly n?: number;
}

const thing = (name: string, n: number = 0): Thing => ({ metadata: { name }, n });
const json = (object: object): Uint8Array => new TextEncoder().encode(JSON.stringify(object));
const text = (bytes: Uint8Array | undefined): unknown => bytes && JSON.parse(new TextDecoder().decode(bytes));
const statusOf = (error: unknown): unknown => (error as { status?: { code?: number; message?: string } }).status;

/** Holds what is appended until it is told what becomes of it. */
class HeldJournal implements StorageJournal {
  readonly records: JournalRecord[] = [];
  closes: number = 0;
  snapshot: (revision: number) => JournalSnapshot = () => ({ revision: 0, records: [] });
  #group: { promise: Promise<number>; resolve: (last: number) => void; reject: (error: unknown) => void } | undefined;
  readonly #held: ReturnType<StorageJournal['restore']>;

  constructor(held: Partial<ReturnType<StorageJournal['restore']>> = {}) {
    this.#held = { state: { revision: 1, records: [] }, writes: [], ...held };
  }

  restore(snapshot: (revision: number) => JournalSnapshot): ReturnType<StorageJournal['restore']> {
    this.snapshot = snapshot;
    return this.#held;
  }

  append(record: JournalRecord): Promise<number> {
    this.records.push(record);
    this.#group ??= newGroup();
    return this.#group.promise;
  }

  /** All that was appended is safe, or has failed. */
  async settle(error?: unknown): Promise<void> {
    const group = this.#group;
    this.#group = undefined;
    if (error === undefined) group?.resolve(this.records.at(-1)?.revision ?? 0);
    else group?.reject(error);
    await turn();
  }

  async close(): Promise<void> {
    this.closes++;
    await this.settle();
  }
}

function newGroup(): { promise: Promise<number>; resolve: (last: number) => void; reject: (error: unknown) => void } {
  let [resolve, reject]: [(last: number) => void, (error: unknown) => void] = [() => {}, () => {}];
  const promise = new Promise<number>((yes, no) => {
    [resolve, reject] = [yes, no];
  });
  return { promise, resolve, reject };
}

test('a large object that has expired keeps its time to live until its JSON is made, and is not deleted after the end', async () => {
  const clock = new FakeClock();
  const journal = new HeldJournal();
  const storage = new MemoryStorage({ startRevision: 1, journal, clock });
  const items = Array.from({ length: 60_000 }, (_, i) => ({ i, pad: 'x'.repeat(10) }));
  const creating = storage.create('a', { metadata: { name: 'a' }, items } as KubernetesObject, { ttlSeconds: 3 });
  await expect.poll(() => journal.records.length).toBe(1);
  await journal.settle();
  const object = await creating;
  dropEncoded(object);
  clock.advance(3_000);
  expect(journal.records).toHaveLength(1);
  expect([...journal.snapshot(2).records].map(({ key, ttlMs }) => [key, (ttlMs ?? 0) > 0])).toEqual([['a', true]]);
  await storage.close();
  await expect.poll(() => isReady(object)).toBe(true);
  await turn();
  expect([journal.records.length, clock.pending]).toEqual([1, 0]);
});

describe('a write', () => {
  test('is neither answered nor visible before it is safe', async () => {
    const journal = new HeldJournal();
    const storage = new MemoryStorage<Thing>({ startRevision: 1, journal });
    const watch = await storage.watch();
    const writes = [fate(storage.create('a', thing('a'))), fate(storage.create('b', thing('b')))];
    await turn();
    expect(writes.map(({ state }) => state)).toEqual(['pending', 'pending']);
    expect([await storage.get('a'), await storage.currentVersion(), watch.queued]).toEqual([undefined, '1', 0]);
    await journal.settle();
    expect(writes.map(({ state }) => state)).toEqual(['resolved', 'resolved']);
    expect([(await storage.get('a'))?.n, await storage.currentVersion(), watch.queued]).toEqual([0, '3', 2]);
    expect(journal.records.map(({ revision, key, json: bytes, ttlMs }) => [revision, key, text(bytes), ttlMs])).toEqual([
      [2, 'a', { metadata: { name: 'a', resourceVersion: '2' }, n: 0 }, undefined],
      [3, 'b', { metadata: { name: 'b', resourceVersion: '3' }, n: 0 }, undefined],
    ]);
  });

  test('tells its time to live, and a deletion nothing but its key', async () => {
    const journal = new HeldJournal();
    const storage = new MemoryStorage<Thing>({ startRevision: 1, journal, clock: new FakeClock() });
    const created = storage.create('a', thing('a'), { ttlSeconds: 3 });
    await journal.settle();
    await created;
    const deleted = storage.delete('a');
    await journal.settle();
    expect((await deleted).metadata?.resourceVersion).toBe('3');
    expect(journal.records.map(({ key, json: bytes, ttlMs }) => [key, bytes === undefined, ttlMs])).toEqual([
      ['a', false, 3_000],
      ['a', true, undefined],
    ]);
  });

  test.each([
    ['a create that finds the key taken', (storage: MemoryStorage<Thing>) => storage.create('a', thing('a')), 409],
    [
      'an update whose precondition fails',
      (storage: MemoryStorage<Thing>) => storage.update('a', (current) => current, { resourceVersion: '1' }),
      409,
    ],
    ['a deletion whose precondition fails', (storage: MemoryStorage<Thing>) => storage.delete('a', { uid: 'x' }), 409],
    ['an update that changes nothing', (storage: MemoryStorage<Thing>) => storage.update('a', (current) => current), undefined],
  ])('%s waits for what it was decided by', async (_name, act, code) => {
    const journal = new HeldJournal();
    const storage = new MemoryStorage<Thing>({ startRevision: 1, journal });
    const first = storage.create('a', thing('a'));
    const second = fate<unknown>(act(storage));
    await turn();
    expect([second.state, journal.records.length]).toEqual(['pending', 1]);
    await journal.settle();
    await first;
    expect(second.state).toBe(code === undefined ? 'resolved' : 'rejected');
    if (code !== undefined) expect(statusOf(second.error)).toMatchObject({ code });
  });

  test('may be decided by any thenable', async () => {
    const storage = new MemoryStorage<Thing>();
    await storage.create('a', thing('a'));
    // biome-ignore lint/suspicious/noThenProperty: that is what is tested
    const later = { then: (resolve: (changed: Thing) => void) => resolve(thing('a', 1)) };
    expect((await storage.update('a', () => later as Promise<Thing>)).n).toBe(1);
  });

  const told = (current: Thing): never => {
    throw new Error(`it has ${current.n}`);
  };
  const toldLate = async (current: Thing): Promise<never> => told(current);
  test.each([
    ['an update', (storage: MemoryStorage<Thing>) => storage.update('a', told)],
    ['an update later', (storage: MemoryStorage<Thing>) => storage.update('a', toldLate)],
    ['a deletion', (storage: MemoryStorage<Thing>) => storage.delete('a', { validate: told })],
    ['a deletion later', (storage: MemoryStorage<Thing>) => storage.delete('a', { validate: toldLate })],
  ])('%s that its caller refuses tells nothing before that is safe, and never what is lost', async (_name, act) => {
    const journal = new HeldJournal();
    const storage = new MemoryStorage<Thing>({ startRevision: 1, journal, onError: () => {} });
    const created = storage.create('a', thing('a'));
    const first = fate<unknown>(act(storage));
    await turn();
    expect(first.state).toBe('pending');
    await journal.settle();
    await created;
    expect(first.error).toMatchObject({ message: 'it has 0' });
    const updated = fate<unknown>(storage.update('a', () => thing('a', 1)));
    const second = fate<unknown>(act(storage));
    await turn();
    expect(second.state).toBe('pending');
    await journal.settle(new Error('disk'));
    expect(updated.state).toBe('rejected');
    expect(statusOf(second.error)).toMatchObject({ code: 500, message: expect.stringContaining('the journal has failed') });
    await storage.close();
  });

  test('is refused while the journal has not confirmed too many bytes; deletions are not', async () => {
    const journal = new HeldJournal();
    const storage = new MemoryStorage<Thing>({ startRevision: 1, journal, maxUnconfirmedBytes: 150 });
    const writes = ['a', 'b', 'c'].map((name) => fate<unknown>(storage.create(name, thing(name))));
    await turn();
    expect(writes.map(({ state }) => state)).toEqual(['pending', 'pending', 'rejected']);
    expect(statusOf(writes[2]?.error)).toMatchObject({
      code: 429,
      message: expect.stringMatching(/not confirmed 1[0-4]\d of 150 bytes/),
    });
    const [updated, deleted] = [fate<unknown>(storage.update('a', () => thing('a', 1))), fate<unknown>(storage.delete('b'))];
    await turn();
    expect([statusOf(updated.error), deleted.state]).toEqual([expect.objectContaining({ code: 429 }), 'pending']);
    await journal.settle();
    await turn();
    expect((await storage.list()).items.map(({ metadata }) => metadata?.name)).toEqual(['a']);
    const again = fate<unknown>(storage.create('c', thing('c')));
    await journal.settle();
    expect(again.state).toBe('resolved');
    expect(journal.records).toHaveLength(4);
  });

  test.each([
    ['an update', (storage: MemoryStorage<Thing>) => storage.update('a', (current) => current)],
    ['a deletion', (storage: MemoryStorage<Thing>) => storage.delete('a')],
  ])('%s of what is being deleted waits before it says that nothing is there', async (_name, act) => {
    const journal = new HeldJournal();
    const storage = new MemoryStorage<Thing>({ startRevision: 1, journal });
    const created = storage.create('a', thing('a'));
    await journal.settle();
    await created;
    const deleted = storage.delete('a');
    const late = fate<unknown>(act(storage));
    await turn();
    expect(late.state).toBe('pending');
    expect(await storage.get('a')).toBeDefined();
    await journal.settle();
    await deleted;
    expect(statusOf(late.error)).toMatchObject({ code: 404 });
  });

  test('that fails rejects with the error, is not seen, and no other follows it', async () => {
    const errors: unknown[] = [];
    const clock = new FakeClock();
    const journal = new HeldJournal();
    const storage = new MemoryStorage<Thing>({ startRevision: 1, journal, clock, onError: (error) => errors.push(error) });
    const safe = storage.create('a', thing('a'), { ttlSeconds: 1 });
    await journal.settle();
    await safe;
    await storage.checkHealth();
    const writes = [fate(storage.create('b', thing('b'))), fate(storage.create('c', thing('c')))];
    const disk = new Error('disk');
    await journal.settle(disk);
    // Nobody knows whether they are there.
    const unknown = expect.objectContaining({
      code: 'TIMEOUT',
      message: expect.stringMatching(/may have happened$/),
      cause: disk,
    });
    expect(writes.map(({ error }) => error)).toEqual([unknown, unknown]);
    expect([await storage.get('b'), await storage.currentVersion(), errors]).toEqual([undefined, '2', [disk]]);
    const refused = await storage.create('d', thing('d')).catch((error: unknown) => error);
    const closed = await storage
      .scope('x/')
      .checkHealth?.()
      .catch((error: unknown) => error);
    expect(closed).toMatchObject({ code: 'CLOSED', cause: disk });
    // Clients get no text of the system, which may name the file; the program does.
    const message = 'the journal has failed: nothing is written any more';
    expect(refused).toMatchObject({ cause: disk, status: { code: 500, reason: 'InternalError', message } });
    clock.advance(5_000); // what has lived long enough stays: its deletion would not last
    expect([await storage.get('a'), journal.records.length]).toEqual([expect.objectContaining({ n: 0 }), 3]);
  });

  test('that fails with what is no error says what it was', async () => {
    const journal = new HeldJournal();
    const storage = new MemoryStorage<Thing>({ startRevision: 1, journal });
    const write = fate(storage.create('a', thing('a')));
    await journal.settle('full');
    expect(write.error).toMatchObject({ code: 'TIMEOUT', cause: 'full' });
    expect(await storage.create('b', thing('b')).catch((error: unknown) => error)).toMatchObject({ cause: 'full' });
  });

  test('a deletion by its time to live that fails is told to onError', async () => {
    const errors: unknown[] = [];
    const clock = new FakeClock();
    const journal = new HeldJournal();
    const storage = new MemoryStorage<Thing>({ startRevision: 1, journal, clock, onError: (error) => errors.push(error) });
    const created = storage.create('a', thing('a'), { ttlSeconds: 1 });
    await journal.settle();
    await created;
    clock.advance(1_000);
    expect(journal.records).toHaveLength(2);
    await journal.settle(new Error('disk'));
    expect(errors).toEqual([new Error('disk')]);
    expect(await storage.get('a')).toBeDefined();
  });

  test('of one group reveals all of it; the next group waits', async () => {
    const journal = new HeldJournal();
    const storage = new MemoryStorage<Thing>({ startRevision: 1, journal });
    const first = [fate(storage.create('a', thing('a'))), fate(storage.create('b', thing('b')))];
    await turn();
    const settled = journal.settle();
    const next = fate(storage.create('c', thing('c')));
    await settled;
    expect([...first, next].map(({ state }) => state)).toEqual(['resolved', 'resolved', 'pending']);
    expect((await storage.list()).items.map(({ metadata }) => metadata?.name)).toEqual(['a', 'b']);
    await journal.settle();
    expect([next.state, await storage.currentVersion()]).toEqual(['resolved', '4']);
  });
});

describe('a life', () => {
  const NOW = Date.UTC(2026, 10, 28);
  afterEach(() => vi.restoreAllMocks());
  const clocked = (): void => {
    vi.spyOn(Date, 'now').mockReturnValue(NOW);
    vi.spyOn(Math, 'random').mockReturnValue(0);
  };

  test('begins with a jump, which is a record of no key; nobody sees it before it is safe', async () => {
    clocked();
    const journal = new HeldJournal({ state: { revision: 7, records: [] } });
    const storage = new MemoryStorage<Thing>({ journal });
    expect(journal.records).toEqual([{ revision: NOW * 1_000, key: '', json: undefined, ttlMs: undefined }]);
    expect([await storage.currentVersion(), (await storage.list()).resourceVersion]).toEqual(['7', '7']);
    const watch = await storage.watch({ resourceVersion: '7', allowWatchBookmarks: true });
    await journal.settle();
    expect([await storage.currentVersion(), watch.queued, watch.tryNext()]).toEqual([`${NOW * 1_000}`, 0, undefined]);
    await storage.requestProgress();
    expect(watch.tryNext()).toEqual({ type: 'BOOKMARK', object: { metadata: { resourceVersion: `${NOW * 1_000}` } } });
    const write = storage.create('a', thing('a'));
    await journal.settle();
    expect((await write).metadata?.resourceVersion).toBe(`${NOW * 1_000 + 1}`);
    expect(watch.tryNext()?.type).toBe('ADDED');
  });

  test('whose beginning cannot be written shows what was there, at its version, and takes no write', async () => {
    const journal = new HeldJournal({ state: { revision: 7, records: [] } });
    const storage = new MemoryStorage<Thing>({ journal });
    await journal.settle(new Error('full'));
    expect(await storage.currentVersion()).toBe('7');
    expect(await storage.create('a', thing('a')).catch(statusOf)).toMatchObject({ code: 500 });
  });

  test('has its own versions, those before, and none between; a BOOKMARK may be of any of them', async () => {
    const held = {
      state: { revision: 3, records: [] },
      writes: [
        { revision: 4, key: 'a', json: json({ metadata: { name: 'a', resourceVersion: '4' } }) },
        { revision: 90, key: '', json: undefined },
        { revision: 91, key: 'b', json: json({ metadata: { name: 'b', resourceVersion: '91' } }) },
        { revision: 500, key: '', json: undefined },
      ],
    };
    const storage = new MemoryStorage<Thing>({ startRevision: 500, journal: new HeldJournal(held) });
    const own = [];
    for (let version = 0; version <= 600; version++) if (await storage.hasGiven(`${version}`)) own.push(version);
    expect(own).toEqual([0, 1, 2, 3, 4, 90, 91, 500]);
    for (const version of ['5', '89', '92', '499', '501']) {
      expect(await storage.watch({ resourceVersion: version }).catch(statusOf)).toMatchObject({ code: 410 });
      expect(await storage.get('a', { resourceVersion: version }).catch(statusOf)).toMatchObject({ code: 410 });
      expect(() => storage.compact(version)).toThrow(/^410 /);
    }
    expect(await Promise.all([0, 1, 2, 3, 4, 9].map((changes) => storage.pastVersion(changes)))).toEqual([
      ...['500', '91', '90', '4', '3', '3'],
    ]);
    const watch = await storage.watch({ resourceVersion: '4', allowWatchBookmarks: true });
    await storage.requestProgress();
    const seen = [watch.tryNext(), watch.tryNext(), watch.tryNext()];
    expect(seen.map((event) => event && `${event.type} ${versionOf(event.object)}`)).toEqual([
      'ADDED 91',
      'BOOKMARK 500',
      undefined,
    ]);
    storage.compact('90');
    expect([storage.oldestVersion, await storage.hasGiven('89'), await storage.hasGiven('92')]).toEqual(['90', false, false]);
    storage.compact('500');
    const kept = [];
    for (let version = 0; version <= 600; version++) if (await storage.hasGiven(`${version}`)) kept.push(version);
    expect(kept).toEqual(own); // it never forgets what it has not given
  });

  test('is refused by a journal whose revisions go back', () => {
    const writes = [{ revision: 3, key: 'a', json: undefined }];
    const journal = new HeldJournal({ state: { revision: 3, records: [] }, writes });
    expect(() => new MemoryStorage<Thing>({ journal })).toThrow('a journal has revision 3 after 3');
  });
});

describe('what a journal held', () => {
  const stored = (name: string, revision: number, n: number = 0): object => ({
    metadata: { name, resourceVersion: `${revision}` },
    n,
  });

  test('is there again: the state, the writes behind it, their versions, sizes and times to live', async () => {
    const clock = new FakeClock();
    const journal = new HeldJournal({
      state: {
        revision: 9,
        records: [
          { revision: 7, key: 'a', json: json(stored('a', 7)) },
          { revision: 4, key: 'b', json: json(stored('b', 4)), ttlMs: 5_000 },
          { revision: 9, key: 'c', json: json(stored('c', 9)), ttlMs: 7_000 },
        ],
      },
      writes: [
        { revision: 10, key: 'a', json: json(stored('a', 10, 1)) },
        { revision: 11, key: 'd', json: json(stored('d', 11)), ttlMs: 1_000 },
        { revision: 12, key: 'c', json: undefined },
      ],
    });
    const storage = new MemoryStorage<Thing>({ startRevision: 1, journal, clock });
    const { items, resourceVersion } = await storage.list();
    expect([items, resourceVersion]).toEqual([[stored('a', 10, 1), stored('b', 4), stored('d', 11)], '12']);
    const sizes = items.map((item) => json(item).byteLength);
    expect(storage.stats).toMatchObject({ bytes: sizes.reduce((sum, bytes) => sum + bytes, 0), historyItems: 3 });
    expect(storage.oldestVersion).toBe('9');
    const before = await storage.list({ resourceVersion: '9', resourceVersionMatch: 'Exact' });
    expect(before.items).toEqual([stored('a', 7), stored('b', 4), stored('c', 9)]);
    const watch = await storage.watch({ resourceVersion: '9' });
    expect([watch.tryNext(), watch.tryNext(), watch.tryNext(), watch.tryNext()]).toEqual([
      { type: 'MODIFIED', object: stored('a', 10, 1), previous: stored('a', 7) },
      { type: 'ADDED', object: stored('d', 11) },
      { type: 'DELETED', object: stored('c', 12), previous: stored('c', 9) },
      undefined,
    ]);
    clock.advance(1_000);
    await journal.settle();
    expect((await storage.list()).items.map(({ metadata }) => metadata?.name)).toEqual(['a', 'b']);
    clock.advance(4_000);
    await journal.settle();
    expect((await storage.list()).items.map(({ metadata }) => metadata?.name)).toEqual(['a']);
    expect(clock.pending).toBe(0);
  });

  test('is given to it again, as it is at a revision, with what is left of the times to live', async () => {
    const clock = new FakeClock();
    const journal = new HeldJournal();
    const storage = new MemoryStorage<Thing>({ startRevision: 1, journal, clock });
    for (const [key, ttlSeconds] of [
      ['b', 0],
      ['A', 9],
    ] as const) {
      const created = storage.create(key, thing(key), { ttlSeconds });
      await journal.settle();
      await created;
    }
    clock.advance(2_000);
    const later = storage.update('b', () => thing('b', 1));
    const recordsAt = (revision: number): unknown => {
      const { records, revision: at } = journal.snapshot(revision);
      expect(at).toBe(revision);
      return records.map(({ revision: of, key, json: bytes, ttlMs }) => [of, key, text(bytes), ttlMs]);
    };
    expect(recordsAt(3)).toEqual([
      [3, 'A', stored('A', 3), 7_000],
      [2, 'b', stored('b', 2), undefined],
    ]);
    // Before the storage has heard that they are safe: the journal knows it first.
    expect(recordsAt(4)).toEqual([
      [3, 'A', stored('A', 3), 7_000],
      [4, 'b', stored('b', 4, 1), undefined],
    ]);
    const deleted = storage.delete('A');
    expect(recordsAt(5)).toEqual([[4, 'b', stored('b', 4, 1), undefined]]);
    await journal.settle();
    await Promise.all([later, deleted]);
    expect(recordsAt(5)).toEqual([[4, 'b', stored('b', 4, 1), undefined]]);
  });
});

test('close makes safe what was appended, closes the journal once, and then ends the watches', async () => {
  const journal = new HeldJournal();
  const storage = new MemoryStorage<Thing>({ startRevision: 1, journal });
  const watch = await storage.watch();
  const write = fate(storage.create('a', thing('a')));
  const closed = [storage.close(), storage.close()];
  await Promise.all(closed);
  expect([write.state, journal.closes]).toEqual(['resolved', 1]);
  expect([watch.tryNext()?.type, (await watch.next()).done]).toEqual(['ADDED', true]);
});

test('a journal that fails to close fails the close, and ends the watches all the same', async () => {
  const journal = new HeldJournal();
  journal.close = () => Promise.reject(new Error('disk'));
  const storage = new MemoryStorage<Thing>({ startRevision: 1, journal });
  const watch = await storage.watch();
  await expect(storage.close()).rejects.toThrow('disk');
  expect((await watch.next()).done).toBe(true);
});

test('a snapshot encodes an object when its record is read, and keeps nothing of what it makes', async () => {
  const records = ['a', 'b'].map((key, n) => ({
    revision: n + 2,
    key,
    json: json({ metadata: { name: key, resourceVersion: `${n + 2}` } }),
  }));
  const journal = new HeldJournal({ state: { revision: 3, records } });
  const storage = new MemoryStorage<Thing>({ startRevision: 3, journal });
  const created = storage.create('c', thing('c'));
  await journal.settle();
  await created;
  const encode = vi.spyOn(JSON, 'stringify');
  try {
    const snapshot = journal.snapshot(4);
    expect([snapshot.records.length, encode.mock.calls.length]).toEqual([3, 0]);
    for (const times of [1, 2]) {
      for (const record of snapshot.records) expect(record.json?.byteLength).toBeGreaterThan(0);
      expect(encode).toHaveBeenCalledTimes(2 * times);
    }
    // Of an object that was written here, the bytes are there.
    expect(snapshot.records[2]?.json).toBe(journal.records[0]?.json);
    expect(snapshot.records.slice(0, 2).map(({ json: bytes }) => text(bytes))).toEqual(
      records.map(({ json: bytes }) => text(bytes)),
    );
  } finally {
    encode.mockRestore();
  }
});
