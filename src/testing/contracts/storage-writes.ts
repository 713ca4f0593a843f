/** The cases of the storage contract for create, get and delete, and for update. Upstream: `storage/testing/store_tests.go`. */
import { versionOf } from '../../cache/object.ts';
import { needs } from './contract.ts';
import {
  contentOf,
  expectLastEvents,
  expectRefused,
  expectSame,
  expectThat,
  fill,
  newer,
  type StorageCase,
  type StoredThing,
  set,
  storageCases,
  thing,
} from './storage-case.ts';

const KEYS = ['', '/', 'a/', '/a', 'a//b', '.', '..', '../a', 'a/..', 'a/../b', 'a/.', './a', 'x'.repeat(1_025)];

export const WRITES: readonly StorageCase[] = storageCases({
  'RunTestCreate: what is created is there, with a version; what was put in stays as it was': async ({ storage }) => {
    const input = thing('a', 1);
    const stored = await storage.create('a', input);
    expectSame(contentOf(stored), 'a=1', 'the answer');
    expectThat(versionOf(stored) !== '', 'a version', stored);
    expectSame(versionOf(input), '', 'the version of what was put in');
    const found = await storage.get('a');
    expectSame(found, stored, 'what is stored');
    expectSame(await storage.currentVersion(), versionOf(stored), 'the version of the storage');
    (input as { spec: object }).spec = { n: 2 };
    expectSame(contentOf(await storage.get('a')), 'a=1', 'what is stored after the caller changed its object');
  },

  'RunTestCreateWithKeyExist: a key that is taken is refused with 409 AlreadyExists, and stays as it was': async ({
    storage,
  }) => {
    await storage.create('a', thing('a', 1));
    await expectRefused(storage.create('a', thing('a', 2)), '409 AlreadyExists', 'a second create');
    expectSame(contentOf(await storage.get('a')), 'a=1', 'what is stored');
  },

  'RunTestCreate: an object that has a version already is refused with 400': async ({ storage }) => {
    const object = { ...thing('a'), metadata: { name: 'a', resourceVersion: '1' } };
    await expectRefused(storage.create('a', object), '400 BadRequest', 'a create with a version');
    expectSame(await storage.get('a'), undefined, 'what is stored');
  },

  'of several concurrent creates of one key, one succeeds': async ({ storage }) => {
    const outcomes = await Promise.allSettled([1, 2, 3, 4, 5].map((n) => storage.create('a', thing('a', n))));
    const stored = outcomes.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []));
    expectSame(stored.length, 1, 'the number of successes');
    expectSame(await storage.get('a'), stored[0], 'what is stored');
  },

  'RunTestCreateWithTTL: what is created with a time to live is deleted when that is over, and a watch reports it': needs(
    'ttl',
    async ({ storage, pass }) => {
      await storage.create('a', thing('a', 1), { ttlSeconds: 2 });
      await storage.create('b', thing('b', 1));
      const watch = await storage.watch({ resourceVersion: await storage.currentVersion() });
      expectSame(contentOf(await storage.get('a')), 'a=1', 'what is stored before');
      await pass?.(4_000);
      await expectLastEvents(watch, 'DELETED a=1');
      expectSame(await storage.get('a'), undefined, 'what is stored after');
      expectSame(contentOf(await storage.get('b')), 'b=1', 'what has no time to live');
    },
  ),

  'RunTestGet: an existing version is a lower bound; a later one is refused with 410; a missing key is undefined': async ({
    storage,
  }) => {
    const first = await storage.create('a', thing('a', 1));
    const second = await set(storage, 'a', 2);
    for (const resourceVersion of [undefined, '', '0', versionOf(first), versionOf(second)]) {
      const found = await storage.get('a', { resourceVersion });
      expectSame(contentOf(found), 'a=2', `what is stored not before ${resourceVersion}`);
    }
    const later = newer(versionOf(second));
    await expectRefused(storage.get('a', { resourceVersion: later }), '410 Expired', 'a version that it cannot have given');
    await expectRefused(storage.get('a', { resourceVersion: 'x' }), '400 BadRequest', 'an invalid version');
    expectSame(await storage.get('none'), undefined, 'what is not there');
  },

  'TestInvalidKeys: an invalid key is refused with 400, by every method, and nothing is written': async ({ storage }) => {
    const before = await storage.currentVersion();
    for (const key of KEYS) {
      const requests = {
        create: () => storage.create(key, thing('a')),
        get: () => storage.get(key),
        update: () => storage.update(key, () => thing('a'), { createIfMissing: true }),
        delete: () => storage.delete(key),
      };
      for (const [verb, request] of Object.entries(requests)) await expectRefused(request(), '400 BadRequest', `${verb} ${key}`);
    }
    for (const key of ['a', 'a.b', '...', '.a', 'a/b.', 'ns/Ä~ :*', 'x'.repeat(1_024)]) {
      const stored = await storage.create(key, thing('a'));
      expectSame(versionOf(await storage.get(key)), versionOf(stored), `the version of ${key}`);
    }
    expectThat((await storage.list()).items.length === 7 && before !== '', '7 objects', (await storage.list()).items.length);
  },

  'RunTestUnconditionalDelete: the answer is the last content, at the version of the deletion; a missing key is refused with 404':
    async ({ storage }) => {
      const [stored] = await fill(storage, ['a', 'b']);
      const deleted = await storage.delete('a');
      expectSame(contentOf(deleted), 'a=0', 'the last content');
      expectThat(versionOf(deleted) !== versionOf(stored), 'a later version', deleted);
      expectSame(await storage.currentVersion(), versionOf(deleted), 'the version of the storage');
      expectSame(await storage.get('a'), undefined, 'what is stored');
      await expectRefused(storage.delete('a'), '404 NotFound', 'a second delete');
      expectSame(contentOf(await storage.get('b')), 'b=0', 'another key');
    },

  'RunTestConditionalDelete: a uid or version of another object is refused with 409 Conflict': async ({ storage }) => {
    const stored = await storage.create('a', { ...thing('a'), metadata: { name: 'a', uid: 'A' } });
    const resourceVersion = `${versionOf(stored)}0`;
    for (const preconditions of [{ uid: 'B' }, { resourceVersion }, { uid: 'A', resourceVersion }]) {
      await expectRefused(storage.delete('a', preconditions), '409 Conflict', `delete ${JSON.stringify(preconditions)}`);
    }
    await storage.delete('a', { uid: 'A', resourceVersion: versionOf(stored) });
    expectSame(await storage.get('a'), undefined, 'what is stored');
  },

  'RunTestDeleteWithSuggestion: a hint does not matter, whether it is right, old or gone': async ({ storage }) => {
    const [a, b, c] = await fill(storage, ['a', 'b', 'c']);
    await storage.delete('a', { cached: a });
    const newer = await set(storage, 'b', 5);
    const deleted = await storage.delete('b', { cached: b });
    expectSame(contentOf(deleted), contentOf(newer), 'the last content');
    await storage.delete('c');
    await expectRefused(storage.delete('c', { cached: c }), '404 NotFound', 'a delete of what is gone');
    expectSame((await storage.list()).items, [], 'what is stored');
  },

  'RunTestValidateDeletionWithSuggestion: what validate throws refuses the deletion, and it is called with what is really there':
    async ({ storage }) => {
      const stored = await storage.create('a', thing('a', 1));
      const refusal = new Error('not yet');
      const notYet = (current: { spec?: { n: number } | undefined }): void => {
        if (current.spec?.n !== 2) throw refusal;
      };
      const seen = await storage.delete('a', { validate: notYet, cached: stored }).catch((error: unknown) => error);
      expectThat(seen === refusal, 'what validate has thrown', seen);
      expectSame(contentOf(await storage.get('a')), 'a=1', 'what is stored');
      await set(storage, 'a', 2);
      // `validate` refuses the hint, but not what is there.
      await storage.delete('a', { validate: notYet, cached: stored });
      expectSame(await storage.get('a'), undefined, 'what is stored');
    },

  'RunTestPreconditionalDeleteWithOnlySuggestionPass: a hint that meets the precondition does not help an object that does not':
    async ({ storage }) => {
      const old = await storage.create('a', { ...thing('a'), metadata: { name: 'a', uid: 'A' } });
      await storage.update('a', (current) => ({ ...current, metadata: { ...current.metadata, uid: 'B' } }));
      await expectRefused(storage.delete('a', { uid: 'A', cached: old }), '409 Conflict', 'the delete');
      await storage.delete('a', { uid: 'B', cached: old });
      const validated = storage.delete('a', { validate: () => {}, cached: old });
      await expectRefused(validated, '404 NotFound', 'a delete of what is gone');
    },

  'RunTestDeleteWithConflict: after a change while validate runs, it is called again, with the new state': async ({
    storage,
  }) => {
    await storage.create('a', thing('a', 1));
    const asked: unknown[] = [];
    const deleted = await storage.delete('a', {
      validate: async (current) => {
        asked.push(current.spec?.n);
        if (asked.length === 1) await set(storage, 'a', 2);
      },
    });
    expectSame(asked, [1, 2], 'what validate was asked of');
    expectSame(contentOf(deleted), 'a=2', 'the last content');
  },
});

const plusOne = (current: StoredThing): StoredThing => ({ ...current, spec: { n: (current.spec?.n ?? 0) + 1 } });

/** Upstream: `RunTestGuaranteedUpdate...`. */
export const UPDATES: readonly StorageCase[] = storageCases({
  'RunTestGuaranteedUpdate: change gets what is there; its result is there afterwards, at a later version': async ({
    storage,
  }) => {
    const first = await storage.create('a', thing('a', 1));
    const second = await storage.update('a', plusOne);
    expectSame(contentOf(second), 'a=2', 'the answer');
    expectThat(BigInt(versionOf(second)) > BigInt(versionOf(first)), `a version after ${versionOf(first)}`, second);
    expectSame(await storage.get('a'), second, 'what is stored');
    await expectRefused(storage.update('b', plusOne), '404 NotFound', 'an update of what is not there');
  },

  'RunTestGuaranteedUpdate: with createIfMissing, change gets undefined, and its result is created': async ({ storage }) => {
    let seen: unknown = 'nothing';
    const change = (current: StoredThing): StoredThing => {
      seen = current;
      return thing('a', 7);
    };
    const stored = await storage.update('a', change, { createIfMissing: true });
    expectThat(seen === undefined, 'undefined', seen);
    expectSame(await storage.get('a'), stored, 'what is stored');
    const conditional = storage.update('b', () => thing('b'), { createIfMissing: true, uid: 'B' });
    await expectRefused(conditional, '409 Conflict', 'a precondition on what is not there');
  },

  'RunTestGuaranteedUpdate: a uid or version of another object is refused with 409 Conflict': async ({ storage }) => {
    const stored = await storage.create('a', { ...thing('a'), metadata: { name: 'a', uid: 'A' } });
    for (const preconditions of [{ uid: 'B' }, { resourceVersion: `${versionOf(stored)}0` }]) {
      await expectRefused(storage.update('a', plusOne, preconditions), '409 Conflict', JSON.stringify(preconditions));
    }
    const wanted = { uid: 'A', resourceVersion: versionOf(stored) };
    expectSame(contentOf(await storage.update('a', plusOne, wanted)), 'a=1', 'the answer');
    // It was the same object, but no longer is.
    await expectRefused(storage.update('a', plusOne, { ...wanted, cached: stored }), '409 Conflict', 'an old version');
  },

  'RunTestGuaranteedUpdate: a result that equals what is there writes nothing, and no event follows': async ({ storage }) => {
    const stored = await storage.create('a', thing('a', 1));
    const watch = await storage.watch({ resourceVersion: versionOf(stored) });
    for (const cached of [undefined, stored]) {
      const same = await storage.update('a', ({ spec, metadata }) => ({ spec, metadata: { ...metadata } }), { cached });
      expectSame(versionOf(same), versionOf(stored), 'the version');
    }
    expectSame(await storage.currentVersion(), versionOf(stored), 'the version of the storage');
    await set(storage, 'a', 2);
    await expectLastEvents(watch, 'MODIFIED a=2');
  },

  'RunTestGuaranteedUpdate: what change throws rejects, and nothing is written': async ({ storage }) => {
    const stored = await storage.create('a', thing('a', 1));
    const failure = new Error('no');
    for (const cached of [undefined, stored]) {
      const fails = (): StoredThing => {
        throw failure;
      };
      for (const change of [fails, () => Promise.reject<StoredThing>(failure)]) {
        const seen = await storage.update('a', change, { cached }).catch((error: unknown) => error);
        expectThat(seen === failure, 'what change has thrown', seen);
      }
    }
    expectSame(await storage.get('a'), stored, 'what is stored');
  },

  'change may alter what it is given': async ({ storage }) => {
    const stored = await storage.create('a', thing('a', 1));
    for (const cached of [undefined, stored]) {
      const failed = storage.update(
        'a',
        (current) => {
          (current as { spec: { n: number } }).spec.n = 100;
          throw new Error('after all, no');
        },
        { cached },
      );
      await failed.catch(() => undefined);
      expectSame([contentOf(stored), contentOf(await storage.get('a'))], ['a=1', 'a=1'], 'what is stored after a failed change');
    }
    const altered = await storage.update('a', (current) => {
      (current as { spec: { n: number } }).spec.n = 2;
      return current;
    });
    expectSame([contentOf(altered), contentOf(stored)], ['a=2', 'a=1'], 'what was altered, and what was there before');
    expectThat(versionOf(altered) !== versionOf(stored), 'a later version', altered);
  },

  'RunTestGuaranteedUpdateWithConflict: after a change by another writer, change is called again with that': async ({
    storage,
  }) => {
    await storage.create('a', thing('a', 1));
    const seen: unknown[] = [];
    const stored = await storage.update('a', async (current) => {
      seen.push(current.spec?.n);
      if (seen.length === 1) await set(storage, 'a', 10);
      return plusOne(current);
    });
    expectSame(seen, [1, 10], 'what change was given');
    expectSame(contentOf(stored), 'a=11', 'the answer');
  },

  'RunTestGuaranteedUpdateWithSuggestionAndConflict: an old hint costs at most another call, and changes no result': async ({
    storage,
  }) => {
    const first = await storage.create('a', thing('a', 1));
    await set(storage, 'a', 10);
    expectSame(contentOf(await storage.update('a', plusOne, { cached: first })), 'a=11', 'the answer with an old hint');
    // An error that `change` throws because of an old hint is not the result.
    const picky = (current: StoredThing): StoredThing => {
      if (current.spec?.n === 1) throw new Error('that is old');
      return plusOne(current);
    };
    expectSame(contentOf(await storage.update('a', picky, { cached: first })), 'a=12', 'the answer with a hint that fails');
    // Nor is it enough that the hint already has the wanted content.
    const back = await storage.update('a', (current) => ({ ...current, spec: { n: 1 } }), { cached: first });
    expectSame(contentOf(back), 'a=1', 'the answer with a hint that would do');
    expectSame(contentOf(await storage.get('a')), 'a=1', 'what is stored');
    await storage.delete('a');
    await expectRefused(storage.update('a', plusOne, { cached: first }), '404 NotFound', 'an update of what is gone');
  },

  'an update of what is deleted meanwhile is refused with 404, and creates nothing': async ({ storage }) => {
    await storage.create('a', thing('a', 1));
    let calls = 0;
    const update = storage.update('a', async (current) => {
      if (calls++ === 0) await storage.delete('a');
      return plusOne(current);
    });
    await expectRefused(update, '404 NotFound', 'the update');
    expectSame(await storage.get('a'), undefined, 'what is stored');
  },

  'concurrent increments are all counted, each at a separate version': async ({ storage }) => {
    await storage.create('a', thing('a', 0));
    const stored = await Promise.all(
      Array.from({ length: 20 }, (_, at) =>
        storage.update('a', at % 2 ? plusOne : async (current) => plusOne(await Promise.resolve(current))),
      ),
    );
    expectSame(contentOf(await storage.get('a')), 'a=20', 'what is stored');
    expectSame(new Set(stored.map(versionOf)).size, 20, 'the number of versions');
    const inOrder = [...stored].sort((a, b) => (BigInt(versionOf(a)) < BigInt(versionOf(b)) ? -1 : 1));
    const counts = inOrder.map(({ spec }) => spec?.n);
    expectSame(counts, [...Array(21).keys()].slice(1), 'the counts in the order of versions');
  },

  'RunTestGuaranteedUpdateWithTTL: an update sets the time to live, and one without ends it': needs(
    'ttl',
    async ({ storage, pass }) => {
      await storage.update('a', () => thing('a', 1), { createIfMissing: true, ttlSeconds: 2 });
      await storage.create('b', thing('b', 1), { ttlSeconds: 2 });
      await storage.update('b', plusOne);
      const watch = await storage.watch({ resourceVersion: await storage.currentVersion() });
      await pass?.(4_000);
      await expectLastEvents(watch, 'DELETED a=1');
      expectSame(contentOf(await storage.get('b')), 'b=2', 'what was updated without');
    },
  ),

  'an aborted signal rejects with its reason, even while change is pending, and nothing is written': async ({ storage }) => {
    const stored = await storage.create('a', thing('a', 1));
    const reason = new Error('enough');
    const gone = AbortSignal.abort(reason);
    const requests = [
      storage.get('a', { signal: gone }),
      storage.create('b', thing('b'), { signal: gone }),
      storage.update('a', plusOne, { signal: gone }),
      storage.delete('a', { signal: gone }),
      storage.currentVersion({ signal: gone }),
    ];
    for (const request of await Promise.allSettled(requests)) {
      expectThat(request.status === 'rejected' && request.reason === reason, 'the reason of the signal', request);
    }
    const abort = new AbortController();
    const pending = storage.update('a', () => new Promise(() => abort.abort(reason)), { signal: abort.signal });
    expectThat((await pending.catch((error: unknown) => error)) === reason, 'the reason of the signal', 'another');
    expectSame(await storage.get('a'), stored, 'what is stored');
  },
});
