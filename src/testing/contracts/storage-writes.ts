/** The cases of the storage contract for create, get and delete. Upstream: `storage/testing/store_tests.go`. */
import {
  contentOf,
  expectEvents,
  expectRefused,
  expectSame,
  expectThat,
  fill,
  type StorageCase,
  set,
  thing,
  versionOf,
} from './storage-case.ts';

const create: StorageCase = {
  name: 'RunTestCreate: what is created is there, with a version; what was put in stays as it was',
  async run(open) {
    const { storage } = await open();
    const input = thing('a', 1);
    const stored = await storage.create('a', input);
    expectSame(contentOf(stored), 'a=1', 'the answer');
    expectThat(versionOf(stored) !== '', 'a version', stored);
    expectSame(versionOf(input), '', 'the version of what was put in');
    const found = await storage.get('a');
    expectSame(found, stored, 'what is there');
    expectSame(await storage.currentVersion(), versionOf(stored), 'the version of the storage');
    (input as { spec: object }).spec = { n: 2 };
    expectSame(contentOf(await storage.get('a')), 'a=1', 'what is there after the caller changed its object');
  },
};

const createTaken: StorageCase = {
  name: 'RunTestCreateWithKeyExist: a key that is taken is refused with 409 AlreadyExists, and stays as it was',
  async run(open) {
    const { storage } = await open();
    await storage.create('a', thing('a', 1));
    await expectRefused(storage.create('a', thing('a', 2)), '409 AlreadyExists', 'a second create');
    expectSame(contentOf(await storage.get('a')), 'a=1', 'what is there');
  },
};

const createVersioned: StorageCase = {
  name: 'RunTestCreate: an object that has a version already is refused with 400',
  async run(open) {
    const { storage } = await open();
    const object = { ...thing('a'), metadata: { name: 'a', resourceVersion: '1' } };
    await expectRefused(storage.create('a', object), '400 BadRequest', 'a create with a version');
    expectSame(await storage.get('a'), undefined, 'what is there');
  },
};

const race: StorageCase = {
  name: 'of several concurrent creates of one key, one succeeds',
  async run(open) {
    const { storage } = await open();
    const outcomes = await Promise.allSettled([1, 2, 3, 4, 5].map((n) => storage.create('a', thing('a', n))));
    const stored = outcomes.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []));
    expectSame(stored.length, 1, 'the number of successes');
    expectSame(await storage.get('a'), stored[0], 'what is there');
  },
};

const ttl: StorageCase = {
  name: 'RunTestCreateWithTTL: what is created with a time to live is deleted when that is over, and a watch reports it',
  needs: 'ttl',
  async run(open) {
    const { storage, pass } = await open();
    await storage.create('a', thing('a', 1), { ttlSeconds: 2 });
    await storage.create('b', thing('b', 1));
    const watch = await storage.watch({ resourceVersion: await storage.currentVersion() });
    expectSame(contentOf(await storage.get('a')), 'a=1', 'what is there before');
    await pass?.(4_000);
    await expectEvents(watch, 'DELETED a=1');
    await watch.return();
    expectSame(await storage.get('a'), undefined, 'what is there after');
    expectSame(contentOf(await storage.get('b')), 'b=1', 'what has no time to live');
  },
};

const get: StorageCase = {
  name: 'RunTestGet: an existing version is a lower bound; a later one is refused with 410; a missing key is undefined',
  async run(open) {
    const { storage } = await open();
    const first = await storage.create('a', thing('a', 1));
    const second = await set(storage, 'a', 2);
    for (const resourceVersion of [undefined, '', '0', versionOf(first), versionOf(second)]) {
      const found = await storage.get('a', { resourceVersion });
      expectSame(contentOf(found), 'a=2', `what is there not before ${resourceVersion}`);
    }
    const later = `${BigInt(versionOf(second)) + 1_000_000n}`;
    await expectRefused(storage.get('a', { resourceVersion: later }), '410 Expired', 'a version that it cannot have given');
    await expectRefused(storage.get('a', { resourceVersion: 'x' }), '400 BadRequest', 'a version that is none');
    expectSame(await storage.get('none'), undefined, 'what is not there');
  },
};

const KEYS = ['', '/', 'a/', '/a', 'a//b', '.', '..', '../a', 'a/..', 'a/../b', 'a/.', './a', 'x'.repeat(1_025)];

const keys: StorageCase = {
  name: 'TestInvalidKeys: an invalid key is refused with 400, by every method, and nothing is written',
  async run(open) {
    const { storage } = await open();
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
};

const deletes: StorageCase = {
  name: 'RunTestUnconditionalDelete: the answer is the last content, at the version of the deletion; a missing key is refused with 404',
  async run(open) {
    const { storage } = await open();
    const [stored] = await fill(storage, ['a', 'b']);
    const deleted = await storage.delete('a');
    expectSame(contentOf(deleted), 'a=0', 'the last content');
    expectThat(versionOf(deleted) !== versionOf(stored), 'a later version', deleted);
    expectSame(await storage.currentVersion(), versionOf(deleted), 'the version of the storage');
    expectSame(await storage.get('a'), undefined, 'what is there');
    await expectRefused(storage.delete('a'), '404 NotFound', 'a second delete');
    expectSame(contentOf(await storage.get('b')), 'b=0', 'another key');
  },
};

const conditional: StorageCase = {
  name: 'RunTestConditionalDelete: a uid or version of another object is refused with 409 Conflict',
  async run(open) {
    const { storage } = await open();
    const stored = await storage.create('a', { ...thing('a'), metadata: { name: 'a', uid: 'A' } });
    for (const preconditions of [{ uid: 'B' }, { resourceVersion: '1' }, { uid: 'A', resourceVersion: '1' }]) {
      await expectRefused(storage.delete('a', preconditions), '409 Conflict', `delete ${JSON.stringify(preconditions)}`);
    }
    await storage.delete('a', { uid: 'A', resourceVersion: versionOf(stored) });
    expectSame(await storage.get('a'), undefined, 'what is there');
  },
};

const hinted: StorageCase = {
  name: 'RunTestDeleteWithSuggestion: a hint does not matter, whether it is right, old or gone',
  async run(open) {
    const { storage } = await open();
    const [a, b, c] = await fill(storage, ['a', 'b', 'c']);
    await storage.delete('a', { cached: a });
    const newer = await set(storage, 'b', 5);
    const deleted = await storage.delete('b', { cached: b });
    expectSame(contentOf(deleted), contentOf(newer), 'the last content');
    await storage.delete('c');
    await expectRefused(storage.delete('c', { cached: c }), '404 NotFound', 'a delete of what is gone');
    expectSame((await storage.list()).items, [], 'what is there');
  },
};

const validated: StorageCase = {
  name: 'RunTestValidateDeletionWithSuggestion: what validate throws refuses the deletion, and it is called with what is really there',
  async run(open) {
    const { storage } = await open();
    const stored = await storage.create('a', thing('a', 1));
    const refusal = new Error('not yet');
    const notYet = (current: { spec?: { n: number } | undefined }): void => {
      if (current.spec?.n !== 2) throw refusal;
    };
    const seen = await storage.delete('a', { validate: notYet, cached: stored }).catch((error: unknown) => error);
    expectThat(seen === refusal, 'what validate has thrown', seen);
    expectSame(contentOf(await storage.get('a')), 'a=1', 'what is there');
    await set(storage, 'a', 2);
    // `validate` refuses the hint, but not what is there.
    await storage.delete('a', { validate: notYet, cached: stored });
    expectSame(await storage.get('a'), undefined, 'what is there');
  },
};

const onlyHint: StorageCase = {
  name: 'RunTestPreconditionalDeleteWithOnlySuggestionPass: a hint that meets the precondition does not help an object that does not',
  async run(open) {
    const { storage } = await open();
    const old = await storage.create('a', { ...thing('a'), metadata: { name: 'a', uid: 'A' } });
    await storage.update('a', (current) => ({ ...current, metadata: { ...current.metadata, uid: 'B' } }));
    await expectRefused(storage.delete('a', { uid: 'A', cached: old }), '409 Conflict', 'the delete');
    await storage.delete('a', { uid: 'B', cached: old });
    const validated = storage.delete('a', { validate: () => {}, cached: old });
    await expectRefused(validated, '404 NotFound', 'a delete of what is gone');
  },
};

const deleteRace: StorageCase = {
  name: 'RunTestDeleteWithConflict: after a change while validate runs, it is called again, with the new state',
  async run(open) {
    const { storage } = await open();
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
};

export const WRITES: readonly StorageCase[] = [
  create,
  createTaken,
  createVersioned,
  race,
  ttl,
  get,
  keys,
  deletes,
  conditional,
  hinted,
  validated,
  onlyHint,
  deleteRace,
];
