// The contract of a storage is worth something: each of these storages is wrong in one way, and a case says so.
import { expect, test } from 'vitest';
import type { List } from '../../src/cache/index.ts';
import type { Watch } from '../../src/index.ts';
import { MemoryStorage, type Storage, type StorageEvent } from '../../src/storage/index.ts';
import { FakeClock, STORAGE_CONTRACT, type StoredThing } from '../../src/testing/index.ts';

type Thing = StoredThing;
type Alter = (storage: Storage<Thing>) => Partial<Storage<Thing>>;
type Seen = StorageEvent<Thing>;

const passed = (watch: Watch<Seen>, alter: (event: Seen) => Seen): Watch<Seen> => {
  const next = async (): Promise<IteratorResult<Seen, undefined>> => {
    const result = await watch.next();
    return result.done ? result : { done: false, value: alter(result.value) };
  };
  return Object.assign(Object.create(watch), { next, return: () => watch.return(), stop: () => watch.stop() });
};
const watching =
  (alter: (event: Seen) => Seen): Alter =>
  (storage) => ({
    watch: async (options) => passed(await storage.watch(options), alter),
  });
const listing =
  (alter: (list: List<Thing>) => List<Thing>): Alter =>
  (storage) => ({
    list: async (options) => alter(await storage.list(options)),
  });

/** What is wrong, how, and the case that must see it. */
const BROKEN: readonly (readonly [string, string, Alter])[] = [
  ['answers a create with what was put in', 'RunTestCreate', (s) => ({ create: (k, o) => s.create(k, o).then(() => o) })],
  ['overwrites', 'RunTestCreateWithKeyExist', (s) => ({ create: (k, o) => s.update(k, () => o, { createIfMissing: true }) })],
  ['forgets times to live', 'RunTestCreateWithTTL', (s) => ({ create: (k, o) => s.create(k, o) })],
  [
    'rejects for what is missing',
    'RunTestGet',
    (s) => ({ get: async (k, o) => (await s.get(k, o)) ?? Promise.reject(new Error('no')) }),
  ],
  ['ignores the version of a get', 'RunTestGet', (s) => ({ get: (k) => s.get(k) })],
  ['takes any key', 'TestInvalidKeys', (s) => ({ get: (k) => s.get(k).catch(() => undefined) })],
  [
    'answers a delete with the version of before',
    'RunTestUnconditionalDelete',
    (s) => ({
      delete: async (k, o) => {
        const before = await s.get(k);
        await s.delete(k, o);
        return before as Thing;
      },
    }),
  ],
  [
    'ignores preconditions of deletes',
    'RunTestConditionalDelete',
    (s) => ({ delete: (k, { uid: _, resourceVersion: __, ...o } = {}) => s.delete(k, o) }),
  ],
  [
    'believes hints of deletes',
    'RunTestDeleteWithSuggestion',
    (s) => ({ delete: (k, o = {}) => s.delete(k, o).then(() => o.cached ?? thing(k)) }),
  ],
  [
    'validates hints',
    'RunTestValidateDeletionWithSuggestion',
    (s) => ({
      delete: async (k, o = {}) => {
        if (o.cached) await o.validate?.(o.cached);
        return s.delete(k, o);
      },
    }),
  ],
  ['does not validate', 'RunTestDeleteWithConflict', (s) => ({ delete: (k, { validate: _, ...o } = {}) => s.delete(k, o) })],
  [
    'ignores preconditions of updates',
    'RunTestGuaranteedUpdate: a uid',
    (s) => ({ update: (k, c, { uid: _, resourceVersion: __, ...o } = {}) => s.update(k, c, o) }),
  ],
  [
    'writes what is there already',
    'RunTestGuaranteedUpdate: a result',
    (s) => ({
      update: async (k, c, o) => {
        await s.update(k, (x) => ({ ...x, spec: { n: -1 } }), o).catch(() => undefined);
        return s.update(k, c, o);
      },
    }),
  ],
  [
    'believes hints of updates',
    'RunTestGuaranteedUpdateWithSuggestion',
    (s) => ({
      update: async (k, c, o = {}) => {
        const { cached } = o;
        const made = cached && (await c(cached));
        return s.update(k, made ? () => made : c, o);
      },
    }),
  ],
  [
    'reads and then writes',
    'concurrent increments',
    (s) => ({
      update: async (k, c, o) => {
        const made = await c((await s.get(k)) as Thing);
        return s.update(k, () => made, o);
      },
    }),
  ],
  [
    'creates what was deleted meanwhile',
    'an update of what is deleted',
    (s) => ({ update: (k, c, o) => s.update(k, c, { ...o, createIfMissing: true }) }),
  ],
  ['lists in another order', 'RunTestList: everything', listing((list) => ({ ...list, items: [...list.items].reverse() }))],
  ['lists at version 0', 'RunTestList: everything', listing((list) => ({ ...list, resourceVersion: '0' }))],
  [
    'scopes by text',
    'RunTestListWithoutPaging',
    (s) => ({ scope: (p) => s.scope(p.startsWith('ns') ? 'n/' : p) }) as Partial<Storage<Thing>>,
  ],
  [
    'ignores versions of lists',
    'RunTestListResourceVersionMatch: NotOlderThan',
    (s) => ({ list: ({ resourceVersion: _, ...o } = {}) => s.list(o) }),
  ],
  [
    'lists the newest always',
    'RunTestListResourceVersionMatch: Exact',
    (s) => ({ list: ({ resourceVersionMatch: _, limit: _l, ...o } = {}) => s.list(o) }),
  ],
  [
    'has pages of one more',
    'RunTestListPaging',
    (s) => ({ list: (o = {}) => s.list(o.limit ? { ...o, limit: o.limit + 1 } : o) }),
  ],
  [
    'pages the newest',
    'RunTestListPaging',
    (s) => ({ list: async (o = {}) => (o.continue ? { ...(await s.list()), items: [] } : s.list(o)) }),
  ],
  [
    'counts wrongly',
    'RunTestListPaging: remaining',
    listing((list) =>
      list.remainingItemCount === undefined ? list : { ...list, remainingItemCount: list.remainingItemCount + 1 },
    ),
  ],
  [
    'ignores selectors of lists',
    'RunTestListContinuationWithFilter',
    (s) => ({ list: ({ labelSelector: _, fieldSelector: _f, ...o } = {}) => s.list(o) }),
  ],
  [
    'tells no continue after a compaction',
    'RunTestListInconsistent',
    (s) => ({
      list: (o) =>
        s
          .list(o)
          .catch((e: Error) =>
            Promise.reject(Object.assign(e, { status: { ...(e as never as { status: object }).status, metadata: {} } })),
          ),
    }),
  ],
  [
    'tells nothing of before',
    'RunTestWatch: creations',
    watching((event) => ({ type: event.type, object: event.object }) as Seen),
  ],
  [
    'calls every change MODIFIED',
    'RunTestWatch: creations',
    watching((event) => (event.type === 'BOOKMARK' ? event : ({ ...event, type: 'MODIFIED' } as Seen))),
  ],
  [
    'ends with the object as it was',
    'RunTestWatchDeleteEvent',
    watching((event) => (event.type === 'DELETED' ? { ...event, object: event.previous as Thing } : event)),
  ],
  [
    'ignores selectors of watches',
    'RunTestWatch: what enters',
    (s) => ({ watch: ({ labelSelector: _, ...o } = {}) => s.watch(o) }),
  ],
  [
    'ignores fields of watches',
    'RunTestNamespaceScopedWatch',
    (s) => ({ watch: ({ fieldSelector: _, ...o } = {}) => s.watch(o) }),
  ],
  [
    'begins watches now',
    'RunTestWatchFromZero: without',
    (s) => ({ watch: async (o) => s.watch({ ...o, resourceVersion: await s.currentVersion() }) }),
  ],
  [
    'begins watches with everything',
    'RunTestWatchFromNonZero',
    (s) => ({ watch: ({ resourceVersion: _, ...o } = {}) => s.watch(o) }),
  ],
  [
    'does not mark the end of the state',
    'RunTestWatchInitializationSignal',
    (s) => ({ watch: ({ sendInitialEvents: _, ...o } = {}) => s.watch({ ...o, allowWatchBookmarks: true }) }),
  ],
  ['does not hear signals', 'RunTestWatchContextCancel', (s) => ({ watch: ({ signal: _, ...o } = {}) => s.watch(o) })],
  ['goes on after close', 'close ends watches', () => ({ close: async () => {} })],
];

function thing(name: string): Thing {
  return { metadata: { name }, spec: { n: 77 } };
}

/** What becomes of cases of the contract that begin with a title. */
async function outcomes(title: string, alter: Alter): Promise<readonly string[]> {
  const cases = STORAGE_CONTRACT.filter(({ name }) => name.startsWith(title));
  const open = () => {
    const clock = new FakeClock();
    const real = new MemoryStorage<Thing>({ clock });
    const bound = Object.fromEntries(
      METHODS.map((name) => [name, (real[name] as (...args: unknown[]) => unknown).bind(real)]),
    ) as unknown as Storage<Thing>;
    return { storage: { ...bound, ...alter(real) }, compact: () => real.compact(), pass: (ms: number) => clock.advance(ms) };
  };
  const settled = await Promise.allSettled(cases.map(({ run }) => within(run(open))));
  return settled.map(({ status }) => status);
}

test.each(BROKEN)('the contract rejects a storage that %s', async (_, title, alter) => {
  expect(await outcomes(title, alter)).toContain('rejected');
});

test('the contract accepts the storage that they are made of', async () => {
  expect(new Set(await outcomes('', () => ({})))).toEqual(new Set(['fulfilled']));
});

const METHODS = [
  'get',
  'list',
  'watch',
  'create',
  'update',
  'delete',
  'currentVersion',
  'requestProgress',
  'scope',
  'close',
] as const;

/** A case that waits for what a broken storage never does has found it, too. */
async function within(run: Promise<void>): Promise<void> {
  let over = false;
  const end = run.finally(() => {
    over = true;
  });
  end.catch(() => undefined);
  for (let turn = 0; turn < 200 && !over; turn++) await new Promise((resolve) => setImmediate(resolve));
  if (!over) throw new Error('it waits for ever');
  await end;
}
