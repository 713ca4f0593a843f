/** The cases of the storage contract for watches. Upstream: `storage/testing/watcher_tests.go`. */
import { versionOf } from '../../cache/object.ts';
import type { Storage, StorageEvent } from '../../storage/storage.ts';
import { isWatchError, refusalCode } from '../../watch/errors.ts';
import { isInitialEventsEnd } from '../../watch/event.ts';
import type { Watch } from '../../watch/watch.ts';
import { needs } from './contract.ts';
import {
  contentOf,
  expectEvents,
  expectLastEvents,
  expectRefused,
  expectSame,
  expectThat,
  fill,
  newer,
  read,
  type StorageCase,
  type StoredThing,
  set,
  shown,
  storageCases,
  thing,
} from './storage-case.ts';

type Seen = StorageEvent<StoredThing>;
const versionOfEvent = ({ object }: Seen): string => versionOf(object as StoredThing);
const previousOf = (event: Seen): string => ('previous' in event && event.previous ? contentOf(event.previous) : '-');

const from = (storage: Storage<StoredThing>, resourceVersion: string, more: object = {}): Promise<Watch<Seen>> =>
  storage.watch({ resourceVersion, ...more });

/** The ADDED events of the objects that this case creates at its end, up to a turn. */
async function ends(storage: Storage<StoredThing>, turn: number): Promise<Seen[]> {
  const found = await Promise.all(Array.from({ length: turn + 1 }, (_, at) => storage.get(`end${at}`)));
  return found.map((object) => ({ type: 'ADDED', object: object as StoredThing }));
}

/** The code with which a watch is refused, or that of the only event it delivers, an ERROR. */
async function codeOf(opening: Promise<Watch<Seen>>): Promise<unknown> {
  try {
    const watch = await opening;
    const { value } = await watch.next();
    expectThat((await watch.next()).done === true, 'the end after the ERROR', 'more');
    return value?.type === 'ERROR' ? value.object.code : value;
  } catch (error) {
    return refusalCode(error) ?? error;
  }
}

export const WATCHES: readonly StorageCase[] = storageCases({
  'RunTestWatch: creations, changes and deletions, in order, each with its version and what was there before': async ({
    storage,
  }) => {
    const watch = await from(storage, await storage.currentVersion());
    const stored = [
      await storage.create('a', thing('a', 1)),
      await set(storage, 'a', 2),
      await storage.create('b', thing('b', 1)),
      await storage.delete('a'),
      await storage.create('a', thing('a', 3)),
    ];
    const seen = await expectEvents(watch, 'ADDED a=1, MODIFIED a=2, ADDED b=1, DELETED a=2, ADDED a=3');
    expectSame(seen.map(versionOfEvent), stored.map(versionOf), 'the versions');
    expectSame(seen.map(previousOf), ['-', 'a=1', '-', 'a=2', '-'], 'what was there before');
    await watch.return();
  },

  'RunTestWatch: what enters a selector is ADDED; what leaves is DELETED, with its last content at the version of the change':
    async ({ storage }) => {
      const watch = await from(storage, await storage.currentVersion(), { labelSelector: 'on' });
      const put = (n: number, on: boolean): Promise<StoredThing> =>
        storage.update('a', () => thing('a', n, on ? { on: 'x' } : {}), { createIfMissing: true });
      const stored: StoredThing[] = [];
      for (const [n, on] of [
        [1, false],
        [2, true],
        [3, true],
        [4, false],
        [5, false],
        [6, true],
      ] as const) {
        stored.push(await put(n, on));
      }
      stored.push(await storage.delete('a'));
      const seen = await expectEvents(watch, 'ADDED a=2, MODIFIED a=3, DELETED a=3, ADDED a=6, DELETED a=6');
      const versions = [1, 2, 3, 5, 6].map((at) => versionOf(stored[at]));
      expectSame(seen.map(versionOfEvent), versions, 'the versions');
      await watch.return();
    },

  'RunTestNamespaceScopedWatch: a watch of a scope, or of fields, has what is in it, in order': async ({ storage }) => {
    const start = await storage.currentVersion();
    const scope = storage.scope<StoredThing>('x/');
    const rows: readonly (readonly [Promise<Watch<Seen>>, string])[] = [
      [from(storage, start), 'ADDED a=1, ADDED a=2, ADDED b=3, DELETED a=1, ADDED b=4'],
      [from(scope, start), 'ADDED a=1, ADDED b=3, DELETED a=1'],
      [from(storage, start, { fieldSelector: 'metadata.namespace=y' }), 'ADDED a=2, ADDED b=4'],
      [from(storage, start, { fieldSelector: 'metadata.name=b' }), 'ADDED b=3, ADDED b=4'],
      [from(scope, start, { fieldSelector: 'metadata.name=a' }), 'ADDED a=1, DELETED a=1'],
      [from(storage.scope('xx/'), start), ''],
    ];
    const opened = await Promise.all(rows.map(([watch]) => watch));
    for (const [key, n] of [
      ['x/a', 1],
      ['y/a', 2],
      ['x/b', 3],
    ] as const)
      await storage.create(key, thing(key, n));
    await scope.delete('a');
    await storage.create('y/b', thing('y/b', 4));
    await storage.create('xx/end', thing('xx/end', 9));
    for (const [at, [, expected]] of rows.entries()) {
      const watch = opened[at] as Watch<Seen>;
      await expectLastEvents(watch, expected || 'ADDED end=9');
    }
  },

  'RunTestWatchFromZero: without a version, or from 0, the state as ADDED in the order of keys, then changes': async ({
    storage,
  }) => {
    await fill(storage, ['b', 'a', 'c']);
    await storage.delete('c');
    for (const resourceVersion of [undefined, '', '0']) {
      const watch = await storage.watch({ resourceVersion });
      const last = await set(storage, 'a', 1);
      await expectEvents(watch, 'ADDED a=0, ADDED b=0, MODIFIED a=1');
      await set(storage, 'a', 0);
      await expectEvents(watch, 'MODIFIED a=0');
      expectThat(versionOf(last) !== '', 'a version', last);
      await watch.return();
    }
  },

  'RunTestWatchFromNonZero: what follows a version, even if it is read late (RunTestDelayedWatchDelivery)': async ({
    storage,
  }) => {
    const first = await storage.create('a', thing('a', 1));
    for (let n = 2; n <= 40; n++) await set(storage, 'a', n);
    const watch = await from(storage, versionOf(first));
    for (let n = 41; n <= 80; n++) await set(storage, 'a', n);
    const expected = Array.from({ length: 79 }, (_, at) => `MODIFIED a=${at + 2}`).join(', ');
    await expectLastEvents(watch, expected);
  },

  'S1: a watch from the version of any event goes on after it': async ({ storage }) => {
    const start = await storage.currentVersion();
    await fill(storage, ['a', 'b']);
    await set(storage, 'a', 1);
    await storage.delete('b');
    await storage.delete('a');
    const whole = await from(storage, start);
    const all = await read(whole, 5);
    await whole.return();
    for (const [at, event] of all.entries()) {
      const watch = await from(storage, versionOfEvent(event));
      await storage.create(`end${at}`, thing('end', at));
      const rest = [...all.slice(at + 1), ...(await ends(storage, at))];
      await expectLastEvents(watch, shown(rest));
    }
  },

  'RunTestWatchInitializationSignal: sendInitialEvents is the state, then a marked BOOKMARK of its version, then changes':
    async ({ storage }) => {
      const empty = await storage.watch({ sendInitialEvents: true });
      const end = await empty.next();
      expectThat(end.value !== undefined && isInitialEventsEnd(end.value), 'the BOOKMARK of an empty state', end);
      await empty.return();
      await fill(storage, ['a', 'b', 'c']);
      for (const resourceVersion of [undefined, '0', await storage.currentVersion()]) {
        const watch = await storage.watch({ sendInitialEvents: true, resourceVersion, labelSelector: '!no' });
        await expectEvents(watch, 'ADDED a=0, ADDED b=0, ADDED c=0');
        const { value } = await watch.next();
        expectThat(value !== undefined && isInitialEventsEnd(value), 'the BOOKMARK that ends the state', value);
        expectSame(versionOf(value?.object as StoredThing), await storage.currentVersion(), 'its version');
        await set(storage, 'a', 1);
        await set(storage, 'a', 0);
        await expectLastEvents(watch, 'MODIFIED a=1, MODIFIED a=0');
      }
      const future = newer(await storage.currentVersion());
      const foreign = storage.watch({ sendInitialEvents: true, resourceVersion: future });
      await expectRefused(
        foreign,
        '410 Expired',
        'TestTooLargeResourceVersionErrorForWatchList: a version that it cannot have given',
      );
    },

  'TestWatchErrorIncorrectConfiguration: an invalid version or selector is refused with 400': async ({ storage }) => {
    const options = [{ resourceVersion: 'x' }, { labelSelector: 'a in' }, { fieldSelector: 'x' }, { fieldSelector: 'spec.x=1' }];
    for (const each of options) await expectRefused(storage.watch(each), '400 BadRequest', JSON.stringify(each));
  },

  'RunTestWatchDeleteEventObjectHaveLatestRV: a DELETED has the version that delete answered; a watch from there goes on':
    async ({ storage }) => {
      const [stored] = await fill(storage, ['a']);
      const watch = await from(storage, versionOf(stored));
      const deleted = await storage.delete('a');
      const [event] = await expectEvents(watch, 'DELETED a=0');
      expectSame(event?.object, deleted, 'the object of the DELETED');
      expectThat(BigInt(versionOf(deleted)) > BigInt(versionOf(stored)), 'a later version', deleted);
      await watch.return();
      const next = await from(storage, versionOf(deleted));
      await storage.create('b', thing('b', 1));
      await expectLastEvents(next, 'ADDED b=1');
    },

  'RunTestDeleteTriggerWatch: a read that waits gets a deletion': async ({ storage }) => {
    const [stored] = await fill(storage, ['a']);
    const watch = await from(storage, versionOf(stored));
    const pending = watch.next();
    await storage.delete('a');
    expectSame((await pending).value?.type, 'DELETED', 'the event');
    await watch.return();
  },

  'RunTestWatchContextCancel: an aborted signal refuses a watch with its reason, and ends an open one': async ({ storage }) => {
    const reason = new Error('enough');
    const seen = await storage.watch({ signal: AbortSignal.abort(reason) }).catch((error: unknown) => error);
    expectThat(seen === reason, 'the reason of the signal', seen);
    const abort = new AbortController();
    const watch = await from(storage, await storage.currentVersion(), { signal: abort.signal });
    const pending = watch.next();
    abort.abort(reason);
    expectThat((await pending).done === true, 'the end', await pending);
    await set(storage, 'a', 1);
    expectThat((await watch.next()).done === true && watch.stopped, 'the end forever', watch.stopped);
  },

  'RunOptionalTestProgressNotify: requestProgress sends a BOOKMARK of the current version after the events up to it': async ({
    storage,
  }) => {
    const start = await storage.currentVersion();
    const scope = storage.scope<StoredThing>('x/');
    const [watch, other] = [
      await from(scope, start, { allowWatchBookmarks: true }),
      await from(scope, start, { allowWatchBookmarks: false }),
    ];
    await scope.create('a', thing('a', 1));
    await storage.create('y/a', thing('y/a', 1));
    const now = await storage.currentVersion();
    await scope.requestProgress();
    const seen: Seen[] = [];
    while (seen.at(-1)?.type !== 'BOOKMARK' || BigInt(versionOfEvent(seen.at(-1) as Seen)) < BigInt(now)) {
      const { done, value } = await watch.next();
      expectThat(done !== true, `a BOOKMARK of ${now}`, seen);
      seen.push(value as Seen);
    }
    expectSame(shown(seen.filter(({ type }) => type !== 'BOOKMARK')), 'ADDED a=1', 'the events before it');
    await scope.create('b', thing('b', 2));
    await expectEvents(watch, 'ADDED b=2');
    const types = [(await other.next()).value?.type, (await other.next()).value?.type];
    expectSame(types, ['ADDED', 'ADDED'], 'the events of a watch without BOOKMARKs');
    await Promise.all([watch.return(), other.return()]);
  },

  'Told: a watch from a version that it cannot have given, of another life of its data, gets a 410 at once': async ({
    storage,
  }) => {
    await set(storage, 'a', 1);
    const own = await storage.currentVersion();
    const other = newer(own);
    expectSame(await codeOf(from(storage, other)), 410, 'the code');
    expectSame(await codeOf(from(storage, other, { allowWatchBookmarks: true })), 410, 'the code');
    if (storage.hasGiven) expectSame([await storage.hasGiven(own), await storage.hasGiven(other)], [true, false], 'hasGiven');
    const watch = await from(storage, own);
    await set(storage, 'a', 2);
    await expectLastEvents(watch, 'MODIFIED a=2');
  },

  'RunTestWatchFromZero: after a compaction a watch from an old version gets a 410 first, and the state is still there': needs(
    'compacts',
    async ({ storage, compact }) => {
      const old = await set(storage, 'a', 1);
      await set(storage, 'a', 2);
      const last = await set(storage, 'a', 3);
      await compact?.();
      expectSame(await codeOf(from(storage, versionOf(old))), 410, 'the code');
      const [whole, newest] = [await storage.watch(), await from(storage, versionOf(last))];
      await set(storage, 'a', 4);
      await expectEvents(whole, 'ADDED a=3, MODIFIED a=4');
      await expectEvents(newest, 'MODIFIED a=4');
      await Promise.all([whole.return(), newest.return()]);
    },
  ),

  'S3: concurrent writes have separate versions; every watch gets them in that order': async ({ storage }) => {
    const start = await storage.currentVersion();
    const opened = await Promise.all([from(storage, start), from(storage.scope<StoredThing>('k/'), start)]);
    const stored = await Promise.all(Array.from({ length: 20 }, (_, n) => storage.create(`k/${n}`, thing(`k/${n}`, n))));
    const versions = stored.map(versionOf).sort((a, b) => (BigInt(a) < BigInt(b) ? -1 : 1));
    expectSame(new Set(versions).size, 20, 'the number of versions');
    for (const watch of opened) {
      const seen = await read(watch, 20);
      expectSame(seen.map(versionOfEvent), versions, 'the versions in order');
      await watch.return();
    }
  },

  'close ends watches, rejects pending and later requests, and may be called again': async ({ storage }) => {
    await storage.create('a', thing('a', 1));
    const watch = await from(storage, await storage.currentVersion());
    const read = watch.next();
    let pending: Promise<unknown> | undefined;
    await new Promise<void>((asked) => {
      const never = (): Promise<StoredThing> => {
        asked();
        return new Promise(() => {});
      };
      pending = storage.update('a', never).catch((error: unknown) => error);
    });
    await storage.close();
    const end = await read;
    expectThat(end.done === true || end.value.type === 'ERROR', 'the end of the watch', end);
    expectThat(isWatchError(await pending, 'CLOSED'), 'CLOSED', await pending);
    const later = [storage.get('a'), storage.list(), storage.watch(), storage.create('b', thing('b')), storage.delete('a')];
    for (const outcome of await Promise.allSettled(later)) {
      const isClosed = outcome.status === 'rejected' && isWatchError(outcome.reason, 'CLOSED');
      expectThat(isClosed, 'CLOSED', outcome.status === 'rejected' ? `${outcome.reason}` : outcome.value);
    }
    await storage.close();
  },
});
