// A storage in a file is another one after the file was restored from a copy: versions of the other life are told, by whatever way they
// come, and those of the common past can be resumed from.
import { copyFile, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ApiServer } from '../../src/apiserver/index.ts';
import { createListWatcher, Informer, type KubernetesObject, type ListWatcher } from '../../src/cache/index.ts';
import { versionOf } from '../../src/cache/object.ts';
import { Cacher, openMemoryStorage, type Storage } from '../../src/storage/index.ts';
import { newLife } from '../../src/storage/life.ts';
import { continueAfter } from '../../src/storage/requests.ts';
import { eventually } from '../eventually.ts';

interface Order extends KubernetesObject {
  readonly n?: number;
}

let directory: string;
let file: string;
const closing: (() => unknown)[] = [];
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'watchmux-lives-'));
  file = join(directory, 'data');
});
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
  await rm(directory, { recursive: true });
});

async function open(maxHistoryItems?: number): Promise<Storage<Order>> {
  const storage = await openMemoryStorage<Order>({ file, maxHistoryItems });
  closing.push(() => storage.close());
  return storage;
}

const order = (name: string, n: number = 0): Order => ({ metadata: { name, namespace: 'default' }, n });
const put = async (storage: Storage<Order>, name: string, n: number = 0): Promise<string> =>
  versionOf(await storage.update(`${PREFIX}default/${name}`, () => order(name, n), { createIfMissing: true }));
const names = (objects: Iterable<KubernetesObject>): string =>
  Array.from(objects, ({ metadata }) => metadata?.name)
    .sort()
    .join(' ');

const ORDERS = { group: 'example.com', version: 'v1', plural: 'orders', kind: 'Order' };
const PREFIX = 'example.com/orders/';

/** Each way to a storage's objects. */
const WAYS: Readonly<Record<string, (storage: Storage<Order>) => Promise<ListWatcher<Order>>>> = {
  'the storage': async (storage) => storage.scope<Order>(PREFIX),
  'a cacher': async (storage) => {
    const cacher = new Cacher<Order>(storage.scope<Order>(PREFIX));
    closing.push(() => cacher.close());
    await cacher.ready();
    return cacher;
  },
  'an API server': async (storage) => {
    const server = new ApiServer({ storage: storage as Storage, resources: [ORDERS], onError: () => {} });
    closing.push(() => server.shutdown());
    await server.ready;
    const fetch = (input: string, init?: RequestInit): Promise<Response> => server.fetch(new Request(input, init));
    return createListWatcher<Order>('http://127.0.0.1/apis/example.com/v1/orders', { fetch: fetch as never });
  },
};

/** The code of a refusal, or of the ERROR that is the first event. */
async function codeOf(request: Promise<unknown>): Promise<unknown> {
  try {
    const answer = (await request) as Partial<AsyncGenerator<{ type: string; object: { code?: number } }, undefined>>;
    if (!answer?.next) return 'answered';
    const { value } = await answer.next();
    await answer.return?.(undefined);
    return value?.type === 'ERROR' ? value.object.code : `${value?.type} ${versionOf(value?.object)}`;
  } catch (error) {
    return (error as { status?: { code?: number } }).status?.code ?? error;
  }
}

interface Lives {
  /** Of the common past, of the life that was lost, and of the present one. */
  readonly common: string;
  readonly lost: string;
  readonly storage: Storage<Order>;
}

/** Copies the file, writes 40 objects, restores it, and writes so many others. */
async function restored(writes: number, maxHistoryItems?: number): Promise<Lives> {
  const first = await open();
  const common = await put(first, 'a');
  await copyFile(file, `${file}.copy`);
  let lost = '';
  for (let n = 0; n < 40; n++) lost = await put(first, `lost-${n}`);
  await first.close();
  await copyFile(`${file}.copy`, file);
  const storage = await open(maxHistoryItems);
  for (let n = 0; n < writes; n++) await put(storage, `kept-${n}`);
  return { common, lost, storage };
}

describe.each(Object.entries(WAYS))('a client of %s, after the file was restored from a copy', (_name, way) => {
  test.each([
    ['behind', 0],
    ['ahead', 41],
  ])('that is %s: 410 for a version of the other life, and the common past is there', async (_how, writes) => {
    const { common, lost, storage } = await restored(writes);
    const source = await way(storage);
    const beyond = `${BigInt(await storage.currentVersion()) + 1_000n}`;
    for (const resourceVersion of [lost, beyond]) {
      const token = continueAfter('default/a', { revision: resourceVersion });
      expect([
        await codeOf(source.watch({ resourceVersion })),
        await codeOf(source.watch({ resourceVersion, allowWatchBookmarks: true, timeoutSeconds: 60 })),
        await codeOf(source.watch({ resourceVersion, sendInitialEvents: true, resourceVersionMatch: 'NotOlderThan' })),
        await codeOf(source.list({ resourceVersion })),
        await codeOf(source.list({ resourceVersion, resourceVersionMatch: 'Exact' })),
        await codeOf(source.list({ resourceVersion, limit: 5 })),
        await codeOf(source.list({ continue: token, limit: 5 })),
      ]).toEqual([410, 410, 410, 410, 410, 410, 410]);
      if ('get' in source) expect(await codeOf((source as Storage).get('default/a', { resourceVersion }))).toBe(410);
    }
    const past = await source.list({ resourceVersion: common, resourceVersionMatch: 'Exact' });
    expect([names(past.items), past.resourceVersion]).toEqual(['a', common]);
    const watch = await source.watch({ resourceVersion: common });
    const next = await put(storage, 'b');
    const seen = [];
    for (let left = writes + 1; left > 0; left--) seen.push(versionOf((await watch.next()).value?.object));
    expect(seen.at(-1)).toBe(next);
    await watch.return();
  });

  test('an informer that was away in the meantime has what is there, and nothing else', async () => {
    const first = await open();
    await put(first, 'a');
    await copyFile(file, `${file}.copy`);
    let source = await way(first);
    const before = closing.splice(0).reverse();
    const informer = new Informer<Order>(
      { list: (options) => source.list(options), watch: (options) => source.watch(options) },
      { minMs: 1, maxMs: 5, onError: () => {} },
    );
    closing.push(() => informer.stop());
    void informer.run();
    for (let n = 0; n < 40; n++) await put(first, `lost-${n}`);
    await eventually(() => expect(informer.store.list()).toHaveLength(41));
    const away = async (): Promise<never> => Promise.reject(new Error('away'));
    source = { list: away, watch: away };
    for (const close of before) await close();
    await copyFile(`${file}.copy`, file);
    const second = await open();
    for (let n = 0; n < 40; n++) await put(second, `kept-${n}`);
    source = await way(second);
    const { items } = await source.list();
    await eventually(() => expect(names(informer.store.list())).toBe(names(items)));
  });
});

/** Writes objects of another kind until nothing else is in the history. */
async function churn(storage: Storage<Order>): Promise<void> {
  for (let n = 0; n < 20; n++) await storage.create(`example.com/others/${n}`, order(`${n}`));
}

describe.each(Object.entries(WAYS))('a client of %s, when the storage has forgotten where its life began', (_name, way) => {
  const answers = async (source: ListWatcher<Order>, resourceVersion: string): Promise<unknown[]> => [
    await codeOf(source.watch({ resourceVersion })),
    await codeOf(source.watch({ resourceVersion, sendInitialEvents: true, resourceVersionMatch: 'NotOlderThan' })),
    await codeOf(source.list({ resourceVersion })),
    await codeOf(source.list({ resourceVersion, resourceVersionMatch: 'Exact' })),
    await codeOf(source.list({ resourceVersion, limit: 5 })),
  ];

  test('gets 410 for a version of the other life, however far a cacher reaches back', async () => {
    const { lost, storage } = await restored(0, 5);
    const source = await way(storage);
    await put(storage, 'b');
    await churn(storage);
    expect(await answers(source, lost)).toEqual([410, 410, 410, 410, 410]);
    if ('hasGiven' in source) expect(await (source as Storage).hasGiven?.(lost)).toBe(false);
  });

  test('gets 410 for what lies between two lives that a file told of, too', async () => {
    const { lost, storage: second } = await restored(1);
    const between = `${BigInt(await second.currentVersion()) + 1n}`;
    await second.close();
    const storage = await open(5); // both jumps are among its writes
    const source = await way(storage);
    await churn(storage);
    for (const version of [lost, between]) expect(await answers(source, version)).toEqual([410, 410, 410, 410, 410]);
  });

  test('cannot resume from a gap that is older than the oldest state of the file', async () => {
    const { lost, storage: second } = await restored(4);
    await second.close();
    const storage = await open(2);
    const source = await way(storage);
    await put(storage, 'b');
    const [watch, , , exact, limited] = await answers(source, lost);
    expect([watch, exact, limited]).toEqual([410, 410, 410]);
  });
});

describe('a restart without a restore', () => {
  test.each(Object.entries(WAYS))('is nothing that a client of %s notices, also if nothing is written', async (_name, way) => {
    const first = await open();
    const versions = [await first.currentVersion(), await put(first, 'a'), await put(first, 'b')];
    await first.close();
    for (let n = 0; n < 3; n++) {
      const storage = await open();
      await eventually(async () => expect(versions).not.toContain(await storage.currentVersion()));
      versions.push(await storage.currentVersion());
      await storage.close();
    }
    const storage = await open();
    const source = await way(storage);
    const last = await put(storage, 'c');
    const counts = [];
    for (const resourceVersion of versions) {
      const watch = await source.watch({ resourceVersion });
      let count = 0;
      for (let version = ''; version !== last; count++) version = versionOf((await watch.next()).value?.object);
      counts.push(count);
      await watch.return();
    }
    expect(counts).toEqual([3, 2, 1, 1, 1, 1]);
  });
});

describe('where a life begins', () => {
  const NOW = Date.UTC(2026, 10, 28);

  test('at the time of day in microseconds, and up to 72 minutes beyond', () => {
    expect(newLife(5, NOW, 0)).toBe(NOW * 1_000);
    expect(newLife(5, NOW, 0.5)).toBe(NOW * 1_000 + 2 ** 31);
    expect(newLife(5, NOW, 1 - 2 ** -53)).toBe(NOW * 1_000 + 2 ** 32 - 1);
  });

  test.each([
    ['is late', NOW - 5_000],
    ['has never been set', 0],
    ['is broken', Number.NaN],
    ['is far too early', Date.UTC(2200)],
  ])('behind the last version, if the clock %s', (_name, nowMs) => {
    const last = NOW * 1_000;
    expect(newLife(last, nowMs, 0)).toBe(last + 1);
    expect(newLife(last, nowMs, 0.5)).toBe(last + 1 + 2 ** 31);
  });

  test('always after the last one, and within what JavaScript counts', () => {
    let last = Number.MAX_SAFE_INTEGER - 2 ** 33;
    for (let n = 0; n < 30; n++) {
      const next = newLife(last, NOW, 1 - 2 ** -53);
      expect(next).toBeGreaterThan(last);
      expect(Number.isSafeInteger(next)).toBe(true);
      last = next;
    }
  });

  test('is not where another one has begun at the same moment', () => {
    const begins = new Set(Array.from({ length: 100 }, () => newLife(5)));
    expect(begins.size).toBe(100);
  });
});
