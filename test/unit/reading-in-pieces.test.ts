// What is read in pieces is the state of one moment, whatever is written between the pieces.
import { describe, expect, test } from 'vitest';
import { type KubernetesObject, versionOf } from '../../src/cache/object.ts';
import { Cacher, MemoryStorage, type Storage } from '../../src/storage/index.ts';
import { setPace } from '../../src/watch/fair-queue.ts';
import { codeOf } from './cacher-support.ts';
import { settle } from './faulty-storage.ts';

const COUNT = 1_000;

/** A reader that stops every few hundred steps, until it is told to go on. */
function reader(): { signal: AbortSignal; abort: () => void; waiting: () => number; goOn: () => Promise<void> } {
  const controller = new AbortController();
  const waiting: (() => void)[] = [];
  const pause = (): Promise<void> => new Promise((resolve) => void waiting.push(resolve));
  setPace(controller.signal, { turn: () => undefined, pause });
  return {
    signal: controller.signal,
    abort: () => controller.abort(new Error('gone')),
    waiting: () => waiting.length,
    goOn: async () => {
      waiting.shift()?.();
      await settle();
    },
  };
}

const nameOf = (at: number): string => `a${String(at).padStart(4, '0')}`;
const made = (at: number, more: object = {}): KubernetesObject => ({
  metadata: { name: nameOf(at), namespace: 'x', labels: { even: `${at % 2 === 0}` } },
  ...more,
});

async function filled(options: ConstructorParameters<typeof MemoryStorage>[0] = {}): Promise<MemoryStorage> {
  const memory = new MemoryStorage(options);
  for (let at = 0; at < COUNT; at++) await memory.create(`x/${nameOf(at)}`, made(at));
  return memory;
}

const STORAGES: readonly [string, () => Promise<{ storage: Storage; memory: MemoryStorage }>][] = [
  [
    'a MemoryStorage',
    async () => {
      const memory = await filled();
      return { storage: memory, memory };
    },
  ],
  [
    'a Cacher',
    async () => {
      const memory = await filled();
      const storage = new Cacher(memory);
      await storage.ready();
      return { storage, memory };
    },
  ],
];

/** Changes at both ends: what has been read, and what has not. */
async function change(memory: MemoryStorage, round: number): Promise<void> {
  await memory.delete(`x/${nameOf(COUNT - 1 - round)}`);
  await memory.update(`x/${nameOf(round)}`, (object) => ({ ...object, round }));
  await memory.create(`x/${nameOf(COUNT + round)}`, made(COUNT + round));
  await settle();
}

const shown = (objects: readonly KubernetesObject[]): string[] =>
  objects.map((object) => `${object.metadata?.name}@${versionOf(object)}`);

describe.each(STORAGES)('a list of %s', (_, open) => {
  test.each([
    ['everything', {}],
    ['a part', { labelSelector: 'even=true' }],
    ['a page', { limit: 700 }],
    ['nothing', { labelSelector: 'even=no' }],
    ['a field', { fieldSelector: 'metadata.namespace=x' }],
  ])('of %s is of one version', async (_name, options) => {
    const { storage, memory } = await open();
    const before = await memory.list(options);
    const { signal, waiting, goOn } = reader();
    const listing = storage.list({ ...options, signal });
    await settle();
    let rounds = 0;
    while (waiting() > 0) {
      await change(memory, rounds++);
      await goOn();
    }
    const list = await listing;
    expect(rounds).toBeGreaterThan(1);
    expect(list.resourceVersion).toBe(before.resourceVersion);
    expect(shown(list.items)).toEqual(shown(before.items));
    expect([list.continue !== undefined, list.remainingItemCount]).toEqual([
      before.continue !== undefined,
      before.remainingItemCount,
    ]);
    await storage.close();
  });

  test('of a past version is of that version', async () => {
    const { storage, memory } = await open();
    const before = await storage.list();
    for (let round = 0; round < 150; round++) await change(memory, round);
    const { signal, waiting, goOn } = reader();
    const options = { resourceVersion: before.resourceVersion, resourceVersionMatch: 'Exact' } as const;
    const listing = storage.list({ ...options, signal });
    await settle();
    for (let round = 150; waiting() > 0; round++) {
      await change(memory, round);
      await goOn();
    }
    expect(shown((await listing).items)).toEqual(shown(before.items));
    await storage.close();
  });

  test('ends with its signal, and reads no further', async () => {
    const { storage } = await open();
    const { signal, waiting, goOn, abort } = reader();
    const listing = storage.list({ signal });
    await settle();
    expect(waiting()).toBe(1);
    abort();
    await goOn();
    await expect(listing).rejects.toThrow('gone');
    expect(waiting()).toBe(0);
    await storage.close();
  });
});

describe('a list of a MemoryStorage whose history ends meanwhile', () => {
  test('is of the version at which it began', async () => {
    const memory = await filled();
    const before = await memory.list();
    const { resourceVersion } = before;
    const [any, exact] = [reader(), reader()];
    const lists = [
      memory.list({ labelSelector: 'even', signal: any.signal }),
      memory.list({ resourceVersion, resourceVersionMatch: 'Exact', signal: exact.signal }),
    ] as const;
    await settle();
    expect([any.waiting(), exact.waiting()]).toEqual([1, 1]);
    await change(memory, 0);
    memory.compact();
    for (const one of [any, exact]) while (one.waiting() > 0) await one.goOn();
    for (const list of await Promise.all(lists)) expect(list).toEqual(before);
    expect(await codeOf(memory.list({ resourceVersion, resourceVersionMatch: 'Exact' }))).toBe(410);
  });
});

describe('a watch of a Cacher that begins with the state', () => {
  async function begun(count: number): Promise<{
    memory: MemoryStorage;
    cacher: Cacher;
    readers: ReturnType<typeof reader>[];
    watches: ReturnType<Cacher['watch']>[];
  }> {
    const memory = await filled();
    const cacher = new Cacher(memory);
    await cacher.ready();
    const readers = Array.from({ length: count }, reader);
    const watches = readers.map(({ signal }) => cacher.watch({ signal, labelSelector: 'even' }));
    for (const watch of watches) watch.catch(() => {});
    await settle();
    return { memory, cacher, readers, watches };
  }

  test('gets the state of one moment, and every change since', async () => {
    const { memory, cacher, readers, watches } = await begun(1);
    const [one] = readers;
    for (let round = 0; one && one.waiting() > 0; round++) {
      await change(memory, round);
      await one.goOn();
    }
    const watch = await (watches[0] as ReturnType<Cacher['watch']>);
    const state = new Map<string, string>();
    for (let event = watch.tryNext(); event; event = watch.tryNext()) {
      if (event.type === 'ERROR' || event.type === 'BOOKMARK') throw new Error(event.type);
      const { name = '' } = event.object.metadata ?? {};
      if (event.type === 'DELETED') state.delete(name);
      else state.set(name, versionOf(event.object));
    }
    expect([...state].map(([name, version]) => `${name}@${version}`).sort()).toEqual(shown((await memory.list()).items));
    await cacher.close();
  });

  test('shares what is read with others that begin meanwhile, and stays if the first of them leaves', async () => {
    const { cacher, readers, watches } = await begun(3);
    const [one, two, three] = readers as [ReturnType<typeof reader>, ReturnType<typeof reader>, ReturnType<typeof reader>];
    expect([one.waiting(), two.waiting(), three.waiting()]).toEqual([1, 0, 0]);
    expect(cacher.stats.views).toBe(1);
    one.abort();
    await expect(watches[0]).rejects.toThrow('gone');
    while (one.waiting() > 0) await one.goOn();
    const batches = await Promise.all(watches.slice(1).map(async (watch) => (await (await watch).batches().next()).value));
    expect(batches[0]).toHaveLength(COUNT);
    expect(batches[1]).toBe(batches[0]);
    await cacher.close();
  });

  test('leaves nothing behind if it is given up, and reads no further', async () => {
    const { cacher, readers, watches } = await begun(1);
    readers[0]?.abort();
    await expect(watches[0]).rejects.toThrow('gone');
    await readers[0]?.goOn();
    expect([readers[0]?.waiting(), cacher.stats.views, cacher.stats.watches]).toEqual([0, 0, 0]);
    const again = await cacher.watch({ labelSelector: 'even' });
    expect((await again.batches().next()).value).toHaveLength(COUNT);
    await cacher.close();
  });

  test('counts among those that are open, and ends with the cacher', async () => {
    const { cacher, watches } = await begun(2);
    await cacher.close();
    expect(await codeOf(watches[0] as Promise<unknown>)).toBe('CLOSED');
    expect(cacher.stats.watches).toBe(0);
  });
});
