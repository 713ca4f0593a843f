/** The cases of the storage contract for lists. Upstream: `RunTestList...` of `storage/testing/store_tests.go`. */

import type { List, ListOptions } from '../../cache/list-watcher.ts';
import { versionOf } from '../../cache/object.ts';
import type { Storage } from '../../storage/storage.ts';
import { isWatchError, refusalCode } from '../../watch/errors.ts';
import { needs } from './contract.ts';
import {
  contentsOf,
  expectRefused,
  expectSame,
  expectThat,
  fill,
  namesOf,
  newer,
  type StorageCase,
  type StoredThing,
  set,
  storageCases,
  thing,
} from './storage-case.ts';

async function allPages(
  storage: Storage<StoredThing>,
  options: ListOptions,
  between?: () => Promise<unknown>,
): Promise<List<StoredThing>[]> {
  const pages = [await storage.list(options)];
  for (let token = pages[0]?.continue; token; token = pages.at(-1)?.continue) {
    expectThat(pages.length < 30, 'an end of the pages', pages.length);
    await between?.();
    const { resourceVersion: _, resourceVersionMatch: _match, ...rest } = options;
    pages.push(await storage.list({ ...rest, continue: token }));
  }
  return pages;
}

const NAMES = ['a', 'b', 'c', 'd', 'e', 'f', 'g'];

export const LISTS: readonly StorageCase[] = storageCases({
  'RunTestList: everything in the order of the keys, with versions, at the version of the storage': async ({ storage }) => {
    const empty = await storage.list();
    expectSame(empty.items, [], 'the items of an empty storage');
    expectThat(/^[1-9]\d*$/.test(empty.resourceVersion), 'a version above 0', empty.resourceVersion);
    const stored = await fill(storage, ['b', 'a/b', 'a-b', 'a.b', 'B', 'a', 'ab']);
    const { items, resourceVersion } = await storage.list();
    expectSame(namesOf(items), 'B a a-b a.b b ab b', 'the names in the order of their keys');
    expectSame(new Set(items.map(versionOf)), new Set(stored.map(versionOf)), 'the versions');
    expectSame(resourceVersion, await storage.currentVersion(), 'the version');
  },

  'RunTestListWithoutPaging, RunTestGetListRecursivePrefix: a scope has what is under its prefix, and nothing else': async ({
    storage,
  }) => {
    await fill(storage, ['ns/a', 'ns/b', 'ns-2/a', 'ns', 'n/a', 'ns0']);
    const scope = storage.scope<StoredThing>('ns/');
    expectSame(namesOf((await scope.list()).items), 'a b', 'the names');
    expectSame(await scope.get('a'), await storage.get('ns/a'), 'what is under a key');
    expectSame(await scope.get('ns/a'), undefined, 'what is outside of it');
    expectSame(await scope.currentVersion(), await storage.currentVersion(), 'the version');
    const added = await storage.scope('x/').scope<StoredThing>('y/').create('z', thing('z'));
    expectSame(await storage.get('x/y/z'), added, 'what was created in a scope of a scope');
    for (const prefix of ['', '/', 'a', '/a/', 'a//', '../', './']) {
      let seen: unknown;
      try {
        storage.scope(prefix);
      } catch (error) {
        seen = error;
      }
      expectThat(isWatchError(seen, 'INVALID_ARGUMENT'), `INVALID_ARGUMENT for the prefix ${prefix}`, seen);
    }
    await scope.close();
    expectSame(namesOf((await scope.list()).items), 'a b', 'the names after close, which a scope does not obey');
  },

  'RunTestConsistentList: a list without a version has every write that was answered before': async ({ storage }) => {
    for (let n = 1; n <= 10; n++) {
      const stored = await set(storage, 'a', n);
      const [{ items, resourceVersion }, found] = await Promise.all([storage.list(), storage.get('a')]);
      expectSame([contentsOf(items), found?.spec?.n], [`a=${n}`, n], 'what is stored');
      expectSame(resourceVersion, versionOf(stored), 'the version');
    }
    await storage.delete('a');
    expectSame((await storage.list()).items, [], 'what is stored after the deletion');
  },

  'RunTestListResourceVersionMatch: NotOlderThan and no match are lower bounds; 410 for a version that it cannot have given':
    async ({ storage }) => {
      const [a] = await fill(storage, ['a', 'b']);
      const { resourceVersion: now } = await storage.list();
      for (const resourceVersionMatch of [undefined, 'NotOlderThan'] as const) {
        for (const resourceVersion of ['0', versionOf(a), now]) {
          const { items } = await storage.list({ resourceVersion, resourceVersionMatch });
          expectSame(namesOf(items), 'a b', `the names not before ${resourceVersion}`);
        }
        const future = storage.list({ resourceVersion: newer(now), resourceVersionMatch });
        await expectRefused(future, '410 Expired', 'a version that it cannot have given');
      }
      const wrong: readonly ListOptions[] = [
        { resourceVersion: 'x' },
        { resourceVersion: '-1' },
        { resourceVersion: '1e3' },
        { resourceVersionMatch: 'Exact' },
        { resourceVersionMatch: 'Exact', resourceVersion: '0' },
        { resourceVersionMatch: 'Other' as 'Exact', resourceVersion: now },
        { labelSelector: 'a in b' },
        { fieldSelector: 'a' },
        { fieldSelector: 'spec.unknown=1' },
        { continue: 'x' },
      ];
      for (const options of wrong) await expectRefused(storage.list(options), '400 BadRequest', JSON.stringify(options));
    },

  'RunTestListResourceVersionMatch: Exact has the state at just that version': needs('exact', async ({ storage }) => {
    const states: List<StoredThing>[] = [await storage.list()];
    const writes = [
      () => storage.create('a', thing('a', 1)),
      () => storage.create('b', thing('b', 1)),
      () => set(storage, 'a', 2),
      () => storage.delete('a'),
      () => storage.create('a', thing('a', 3)),
      () => storage.delete('b'),
      () => set(storage, 'a', 4),
    ];
    for (const write of writes) {
      await write();
      states.push(await storage.list());
    }
    for (const { items, resourceVersion } of states) {
      const list = await storage.list({ resourceVersion, resourceVersionMatch: 'Exact' });
      expectSame(list, { items, resourceVersion }, `the list at ${resourceVersion}`);
      // A page of a version has always meant exactly that version.
      const page = await storage.list({ resourceVersion, limit: 10 });
      expectSame(page, { items, resourceVersion }, `the page at ${resourceVersion}`);
    }
    const future = storage.list({ resourceVersion: newer(await storage.currentVersion()), resourceVersionMatch: 'Exact' });
    await expectRefused(future, '410 Expired', 'a version that it cannot have given');
  }),

  'RunTestListPaging: pages are as long as asked, all at the version of the first, whatever changes meanwhile': async ({
    storage,
  }) => {
    await fill(storage, NAMES);
    const whole = await storage.list();
    let turn = 0;
    const disturb = async (): Promise<void> => {
      turn++;
      if (turn === 1) await storage.delete('g');
      else if (turn === 2) await set(storage, 'f', 9);
      else await storage.create(`new${turn}`, thing('new'));
    };
    const pages = await allPages(storage, { limit: 2 }, disturb);
    const lengths = pages.map(({ items }) => items.length);
    expectSame(lengths, [2, 2, 2, 1], 'the numbers of items');
    const items = pages.flatMap((page) => page.items);
    expectSame(items, whole.items, 'the items of all pages');
    for (const page of pages) expectSame(page.resourceVersion, whole.resourceVersion, 'the version of a page');
    expectThat(pages.at(-1)?.continue === undefined, 'no continue at the end', pages.at(-1));
    expectSame((await storage.list({ limit: 100 })).continue, undefined, 'the continue of a page that has all');
  },

  'RunTestListPaging: remainingItemCount, if given, is what is left; with a selector it is not given': async ({ storage }) => {
    await fill(storage, NAMES);
    let left = NAMES.length;
    for (const { items, remainingItemCount } of await allPages(storage, { limit: 3 })) {
      left -= items.length;
      if (remainingItemCount !== undefined) expectSame(remainingItemCount, left, 'what is left');
    }
    const selected = await storage.list({ limit: 2, fieldSelector: 'metadata.name!=a' });
    expectSame(selected.remainingItemCount, undefined, 'the count with a selector');
  },

  'RunTestListContinuationWithFilter, RunTestListPaginationRareObject: pages of a selection are as long as asked while there is enough of it':
    async ({ storage }) => {
      for (let n = 0; n < 30; n++) {
        const name = `k${`${n}`.padStart(2, '0')}`;
        await storage.create(name, thing(name, n, n % 7 === 3 ? { color: 'red' } : { color: 'blue' }));
      }
      const pages = await allPages(storage, { limit: 2, labelSelector: 'color=red' });
      expectSame(namesOf(pages.flatMap(({ items }) => items)), 'k03 k10 k17 k24', 'the names');
      expectSame(pages[0]?.items.length, 2, 'the number of items of the first page');
      const rare = await storage.list({ limit: 1, fieldSelector: 'metadata.name=k29' });
      expectSame(namesOf(rare.items), 'k29', 'RunTestListPaginationRareObject: the one that is selected');
    },

  'RunTestList: label and field selectors select': async ({ storage }) => {
    await storage.create('x/a', thing('x/a', 1, { app: 'web', tier: 'front' }));
    await storage.create('x/b', thing('x/b', 1, { app: 'web' }));
    await storage.create('y/a', thing('y/a', 1));
    const wanted: readonly (readonly [ListOptions, string])[] = [
      [{ labelSelector: 'app=web' }, 'a b'],
      [{ labelSelector: 'app=web,!tier' }, 'b'],
      [{ labelSelector: 'app!=web' }, 'a'],
      [{ fieldSelector: 'metadata.name=a' }, 'a a'],
      [{ fieldSelector: 'metadata.namespace=y' }, 'a'],
      [{ fieldSelector: 'metadata.namespace!=x,metadata.name=b' }, ''],
      [{ labelSelector: 'app', fieldSelector: 'metadata.name=b' }, 'b'],
    ];
    for (const [options, names] of wanted) {
      expectSame(namesOf((await storage.list(options)).items), names, JSON.stringify(options));
    }
  },

  'RunTestListContinuation: continue with a version, or with a match, is refused with 400, and so is an invalid one': async ({
    storage,
  }) => {
    await fill(storage, NAMES);
    const { continue: token, resourceVersion } = await storage.list({ limit: 2 });
    const wrong: readonly ListOptions[] = [
      { continue: token, resourceVersion },
      { continue: token, resourceVersion, resourceVersionMatch: 'NotOlderThan' },
      { continue: token, resourceVersionMatch: 'Exact', resourceVersion },
      { continue: `${token}!` },
      { continue: 'x'.repeat(100_000) },
    ];
    for (const options of wrong) await expectRefused(storage.list({ limit: 2, ...options }), '400 BadRequest', 'the list');
    const rest = await storage.list({ continue: token, resourceVersion: '0' });
    expectSame(namesOf(rest.items), 'c d e f g', 'the rest');
  },

  'RunTestListInconsistentContinuation: a forgotten version is 410, with a continue that goes on at the newest': needs(
    'compacts',
    async ({ storage, compact }) => {
      await fill(storage, NAMES);
      const first = await storage.list({ limit: 2 });
      await storage.delete('d');
      await storage.create('bb', thing('bb'));
      await storage.create('cc', thing('cc'));
      await compact?.();
      const refused = await storage.list({ limit: 2, continue: first.continue }).catch((error: unknown) => error);
      expectThat(refusalCode(refused) === 410, '410', refused);
      const token = isWatchError(refused) ? refused.status?.metadata.continue : undefined;
      expectThat(typeof token === 'string', 'a continue in the status', refused);
      const page = await storage.list({ limit: 2, continue: token });
      expectSame(namesOf(page.items), 'bb c', 'the names of the page that goes on');
      await storage.delete('e');
      const rest = await storage.list({ limit: 9, continue: page.continue });
      expectSame(namesOf(rest.items), 'cc e f g', 'the names of the rest, which is consistent with it');
      expectSame(rest.resourceVersion, page.resourceVersion, 'the version of the rest');
    },
  ),

  'TestCompact: a list at a forgotten version is refused with 410; the newest state is there': needs(
    'compacts',
    async ({ storage, compact }) => {
      await set(storage, 'a', 1);
      const { resourceVersion: old } = await storage.list();
      await set(storage, 'a', 2);
      await compact?.();
      const past = storage.list({ resourceVersion: old, resourceVersionMatch: 'Exact' });
      await expectRefused(past, '410 Expired', 'the old version');
      expectSame(contentsOf((await storage.list({ resourceVersion: old })).items), 'a=2', 'the newest');
      expectSame(contentsOf((await storage.list()).items), 'a=2', 'the newest');
    },
  ),
});
