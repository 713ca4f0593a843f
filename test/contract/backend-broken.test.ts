// The contract of a backend is worth something: each of these backends is wrong in one way, and a case says so.
import { expect, test } from 'vitest';
import type { Backend, ChangeBatch, Changes, RangeResult } from '../../src/storage/backend.ts';
import { EtcdStorage } from '../../src/storage/etcd/index.ts';
import { BACKEND_CONTRACT, type BackendSubject, FakeClock } from '../../src/testing/index.ts';
import { closers } from '../closing.ts';
import { FakeEtcd } from '../unit/fake-etcd.ts';
import { ModelEtcd } from '../unit/model-etcd.ts';

const closing = closers();

type Alter = (backend: Backend) => object;
type Batch = ChangeBatch<never>;

const ranging =
  (alter: (result: RangeResult<never>) => Partial<RangeResult<never>>): Alter =>
  (backend) => ({
    range: async (request: never) => {
      const result = await backend.range<never>(request);
      return { ...result, ...alter(result) };
    },
  });
const following =
  (alter: (batch: Batch) => Batch): Alter =>
  (backend) => ({
    changesAfter: (revision: string, options: never): Changes<never> => {
      const changes = backend.changesAfter<never>(revision, options);
      const altered = (batch: Batch | undefined): Batch | undefined => batch && alter(batch);
      return {
        open: () => changes.open(),
        next: async () => altered(await changes.next()),
        poll: () => altered(changes.poll()),
        requestProgress: () => changes.requestProgress(),
        close: () => changes.close(),
      };
    },
  });

/** What is wrong, how, and the beginning of the case that must see it. */
const BROKEN: readonly (readonly [string, string, Alter])[] = [
  [
    'compares nothing',
    'a put and a delete happen only',
    (b) => ({
      txn: async (write: { key: string }) => {
        const { entry } = await b.get<never>(write.key);
        const { metadata } = (entry?.object ?? {}) as { metadata?: { resourceVersion: string } };
        return b.txn({ ...write, expected: metadata?.resourceVersion ?? '0' } as never);
      },
    }),
  ],
  [
    'does not say what is there instead',
    'a put of a new key succeeds once',
    (b) => ({ txn: async (write: never) => ({ ...(await b.txn(write)), current: undefined }) }),
  ],
  ['ignores limits', 'a range begins at a key', (b) => ({ range: (r: object) => b.range({ ...r, limit: 99 } as never) })],
  [
    'begins at the prefix',
    'a range begins at a key',
    (b) => ({ range: (r: object) => b.range({ ...r, from: undefined } as never) }),
  ],
  ['counts nothing', 'a range begins at a key', ranging(() => ({ left: 0 }))],
  ['has no sizes', 'a range begins at a key', ranging(() => ({ bytes: 0 }))],
  ['orders wrongly', 'a range has the keys', ranging(({ entries }) => ({ entries: [...entries].reverse() }))],
  [
    'reads the present',
    'a range at a revision',
    (b) => ({ range: (r: object) => b.range({ ...r, revision: undefined } as never) }),
  ],
  [
    'gives what it never had',
    'a state or changes after a revision that was never',
    (b) => ({ range: (r: object) => b.range({ ...r, revision: undefined } as never) }),
  ],
  [
    'follows all keys',
    'changes have the type',
    (b) => ({ changesAfter: (r: string, o: object) => b.changesAfter(r, { ...o, prefix: '/watchmux/' } as never) }),
  ],
  ['tells nothing of before', 'changes have the type', following((batch) => ({ ...batch, changes: batch.changes.map(without) }))],
  [
    'loses the last of a batch',
    'changes have the type',
    following((batch) => ({ ...batch, changes: batch.changes.filter(({ type }) => type !== 'DELETED') })),
  ],
  [
    'tells all twice',
    'changes can be resumed',
    following((batch) => ({ ...batch, changes: batch.changes.flatMap((change) => [change, change]) })),
  ],
  [
    'makes no progress worth the name',
    'progress comes',
    following((batch) => (batch.progress ? { ...batch, progress: '1' } : batch)),
  ],
  ['goes on when it is closed', 'the end of changes', (b) => ({ get: async (key: string) => (key === '' ? b.get(key) : {}) })],
  [
    'never ends to load',
    'a large object can be loaded',
    (b) => ({
      get: async (key: string) => {
        const { entry, ...rest } = await b.get<never>(key);
        return { ...rest, entry: entry && { key, object: entry.object, load: () => Promise.resolve() } };
      },
    }),
  ],
  [
    'has nothing once it is loaded',
    'a large object can be loaded',
    following((batch) => ({
      ...batch,
      changes: batch.changes.map((change) => ({ ...(without(change) as object), load: () => undefined }) as never),
    })),
  ],
  [
    'forgets times to live',
    'what has a time to live',
    (b) => ({ txn: (write: object) => b.txn({ ...write, ttlSeconds: 0 } as never) }),
  ],
];

const without = ({ type, key, revision, object }: Batch['changes'][number]): never =>
  ({ type, key, revision, object, previous: undefined }) as never;

async function open(alter: Alter): Promise<BackendSubject> {
  const clock = new FakeClock();
  const model = new ModelEtcd(clock);
  const etcd = await FakeEtcd.start(model.answers);
  const storage = new EtcdStorage({ endpoints: [etcd.url] });
  closing.push(
    () => etcd.stop(),
    () => storage.close(),
  );
  const { backend, prefix } = storage.backing;
  const altered = new Proxy(backend, {
    get(target, name) {
      const own = (alter(target) as Record<string | symbol, unknown>)[name] ?? Reflect.get(target, name);
      return typeof own === 'function' ? own.bind(target) : own;
    },
  });
  return { backend: altered, prefix, pass: (ms) => clock.advance(ms) };
}

test.each(BROKEN)('a backend that %s', async (_, name, alter) => {
  const [found, ...more] = BACKEND_CONTRACT.filter((each) => each.name.startsWith(name));
  expect([found !== undefined, more.length]).toEqual([true, 0]);
  const patience = new Promise((_resolve, reject) => setTimeout(() => reject(new Error('it waits for ever')), 2_000).unref());
  await expect(Promise.race([found?.run(() => open(alter)), patience])).rejects.toThrow();
});

test('one that is right', async () => {
  for (const name of new Set(BROKEN.map(([, each]) => each))) {
    await BACKEND_CONTRACT.find((each) => each.name.startsWith(name))?.run(() => open(() => ({})));
  }
});
