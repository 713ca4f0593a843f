// Namespaces of several servers on one storage: whichever server is asked, a namespace ends when its last object has gone,
// nothing stays behind in one that is gone, and another one of the same name is left alone.
import { describe, expect, test, vi } from 'vitest';
import {
  type ApiServerOptions,
  BUILT_IN_KINDS,
  kubernetesKinds,
  NAMESPACES as NAMESPACE_KIND,
  type ResourceDefinition,
} from '../../src/apiserver/index.ts';
import { Terminating } from '../../src/apiserver/terminating.ts';
import { filter } from '../../src/broadcast/filter.ts';
import { type GetOptions, MemoryStorage, type Storage } from '../../src/storage/index.ts';
import { FakeClock } from '../../src/testing/fakes/fake-clock.ts';
import { fromAsyncIterable } from '../../src/watch/pull-watch.ts';
import { closers } from '../closing.ts';
import { type Answered, rig } from './apiserver-rig.ts';
import { macrotask as turn } from './support.ts';

type Rig = ReturnType<typeof rig>;

const closing = closers();

const NAMESPACES = '/api/v1/namespaces';
const MAPS = `${NAMESPACES}/x/configmaps`;
const HELD = { metadata: { name: 'held', finalizers: ['a.example/b'] } };

async function server(storage: Storage, options: Partial<ApiServerOptions> = {}): Promise<Rig> {
  const made = rig({ storage, uid: () => crypto.randomUUID(), ...options });
  closing.push(() => made.server.shutdown());
  await made.server.ready;
  return made;
}

/** A storage whose watches of namespaces can be held up: what happens meanwhile is not told until they go on. */
function late(storage: Storage): { storage: Storage; hold: () => void } {
  let isHeld = false;
  const slow = (scope: Storage): Storage =>
    new Proxy(scope, {
      get: (target, name) => {
        if (name === 'watch')
          return async (...args: Parameters<Storage['watch']>) =>
            filter(await target.watch(...args), (event) => (isHeld ? undefined : event));
        const value = Reflect.get(target, name, target);
        return typeof value === 'function' ? value.bind(target) : value;
      },
    });
  const own = new Proxy(storage, {
    get: (target, name) => {
      if (name === 'scope') {
        return (...args: Parameters<Storage['scope']>) =>
          args[0] === 'core/namespaces/' ? slow(target.scope(...args)) : target.scope(...args);
      }
      const value = Reflect.get(target, name, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
  return {
    storage: own,
    hold: () => {
      isHeld = true;
    },
  };
}

const create = (at: Rig, name = 'x'): Promise<Answered> => at.call('POST', NAMESPACES, { metadata: { name } });
const isGone = (at: Rig): Promise<void> =>
  expect.poll(async () => (await at.call('GET', `${NAMESPACES}/x`)).code).toBe(404) as never;
const isTerminating = (at: Rig): Promise<void> =>
  expect
    .poll(async () => (await at.call('GET', `${NAMESPACES}/x?resourceVersion=0`)).body.status.phase)
    .toBe('Terminating') as never;

describe('a namespace', () => {
  test('keeps its status, whoever writes something else into it', async () => {
    const at = await server(new MemoryStorage());
    await create(at);
    const sent = { metadata: { name: 'x', labels: { a: 'b' } }, status: { phase: 'Terminating' } };
    const put = await at.call('PUT', `${NAMESPACES}/x`, sent);
    expect([put.code, put.body.metadata.labels.a, put.body.status]).toEqual([200, 'b', { phase: 'Active' }]);
    const type = { 'content-type': 'application/merge-patch+json' };
    for (const status of [null, { phase: 'Gone' }]) {
      const patched = await at.call('PATCH', `${NAMESPACES}/x`, { status }, type);
      expect([patched.code, patched.body.status]).toEqual([200, { phase: 'Active' }]);
    }
  });

  test('that is not there is told before what is wrong with an object', async () => {
    const at = await server(new MemoryStorage());
    const wrong = { metadata: { name: 'NO NAME', labels: { a: '!' } } };
    for (const sent of [wrong, {}]) {
      const { code, body } = await at.call('POST', MAPS, sent);
      expect([code, body.message]).toEqual([404, 'namespaces "x" not found']);
    }
    // What cannot be read at all is told at once.
    expect((await at.call('POST', MAPS, { kind: 'Other' })).code).toBe(400);
    await create(at);
    expect((await at.call('POST', MAPS, wrong)).code).toBe(422);
  });
});

test('a creation asks the cache whether its namespace is there, and the storage only if that says no', async () => {
  const storage = new MemoryStorage();
  const at = await server(storage);
  await create(at);
  await at.call('POST', MAPS, { metadata: { name: 'first' } });
  const gets = vi.spyOn(Object.getPrototypeOf(storage.scope('y/')), 'get');
  const asked = (): unknown[] =>
    gets.mock.calls.splice(0).filter(([key, options]) => {
      // A storage in memory is its own cache: what may be old is asked of that.
      const isFresh = (options as GetOptions | undefined)?.resourceVersion !== '0';
      return isFresh && (key === 'x' || key === 'nowhere');
    });
  expect((await at.call('POST', `${NAMESPACES}/nowhere/configmaps`, { metadata: { name: 'a' } })).code).toBe(404);
  expect(asked().length).toBeGreaterThan(0);
  expect((await at.call('POST', MAPS, { metadata: { name: 'a' } })).code).toBe(201);
  // Once, when it has been created: the namespace may have gone meanwhile.
  expect(asked()).toHaveLength(1);
  gets.mockRestore();
});

describe('a deletion of a namespace', () => {
  test('that is tried only ends nothing', async () => {
    const at = await server(new MemoryStorage());
    await create(at);
    await at.call('POST', MAPS, HELD);
    const { code, body } = await at.call('DELETE', `${NAMESPACES}/x?dryRun=All`);
    // As upstream, it answers what would be stored.
    const { metadata, spec } = (await at.call('GET', `${NAMESPACES}/x`)).body;
    const deletionTimestamp = expect.any(String);
    const marked = { apiVersion: 'v1', kind: 'Namespace', metadata: { ...metadata, deletionTimestamp }, spec };
    expect([code, body]).toEqual([200, { ...marked, status: { phase: 'Terminating' } }]);
    expect((await at.call('GET', `${NAMESPACES}/x`)).body.status).toEqual({ phase: 'Active' });
    expect((await at.call('GET', `${MAPS}/held`)).body.metadata).not.toHaveProperty('deletionTimestamp');
  });

  test('takes Pods first, and the rest once they are gone', async () => {
    const at = await server(new MemoryStorage(), { resources: [...BUILT_IN_KINDS, ...(await kubernetesKinds('pods/v1'))] });
    await create(at);
    const pods = `${NAMESPACES}/x/pods`;
    await at.call('POST', pods, HELD);
    await at.call('POST', MAPS, { metadata: { name: 'a' } });
    expect((await at.call('DELETE', `${NAMESPACES}/x`)).code).toBe(200);
    expect((await at.call('GET', `${pods}/held`)).body.metadata).toHaveProperty('deletionTimestamp');
    expect((await at.call('GET', `${MAPS}/a`)).code).toBe(200);
    await at.call('PATCH', `${pods}/held`, { metadata: { finalizers: null } });
    await isGone(at);
    expect((await at.call('GET', `${MAPS}/a`)).code).toBe(404);
  });

  test('of the default one is refused, and takes nothing', async () => {
    const at = await server(new MemoryStorage());
    await at.call('POST', `${NAMESPACES}/default/configmaps`, { metadata: { name: 'a' } });
    const { code, body } = await at.call('DELETE', `${NAMESPACES}/default`);
    expect([code, body.message]).toEqual([403, 'namespaces "default" is forbidden: this namespace may not be deleted']);
    expect((await at.call('GET', `${NAMESPACES}/default/configmaps/a`)).code).toBe(200);
  });

  test('takes each kind that is in namespaces once, in whichever version, and no other', async () => {
    const storage = new MemoryStorage();
    const kind = { group: 'x.io', plural: 'things', kind: 'Thing' };
    const shared = { group: 'x.io', version: 'v1', plural: 'globals', kind: 'Global', namespaced: false };
    const resources = [NAMESPACE_KIND, { ...kind, version: 'v1' }, { ...kind, version: 'v2' }, shared] as ResourceDefinition[];
    const at = await server(storage, { cache: false, resources });
    await create(at);
    expect((await at.call('POST', '/apis/x.io/v1/globals', { metadata: { name: 'x' } })).code).toBe(201);
    for (const name of ['a', 'b']) await at.call('POST', '/apis/x.io/v1/namespaces/x/things', { metadata: { name } });
    const lists = vi.spyOn(Object.getPrototypeOf(storage.scope('y/')), 'list');
    const { code } = await at.call('DELETE', `${NAMESPACES}/x`);
    expect(code).toBe(200);
    const count = lists.mock.calls.length;
    lists.mockRestore();
    expect(count).toBe(2); // what there is, and whether anything is left
    expect((await at.call('GET', '/apis/x.io/v1/globals/x')).code).toBe(200);
    expect((await at.call('GET', '/apis/x.io/v2/namespaces/x/things')).body.items).toEqual([]);
  });

  test('that is asked for again is the same one', async () => {
    let nowMs = Date.UTC(2026, 0, 2);
    const at = await server(new MemoryStorage(), { now: () => nowMs });
    await create(at);
    await at.call('POST', MAPS, HELD);
    const deleted = async (): Promise<unknown> => (await at.call('DELETE', `${NAMESPACES}/x`)).body.metadata;
    const first = await deleted();
    nowMs += 60_000;
    expect(await deleted()).toEqual(first);
    expect(first).toMatchObject({ deletionTimestamp: '2026-01-02T00:00:00Z' });
    expect(first).not.toHaveProperty('deletionGracePeriodSeconds');
  });

  test('stops where another one has taken its place: what is in that stays', async () => {
    const storage = new MemoryStorage();
    const at = await server(storage, { cache: false });
    await create(at);
    await at.call('POST', MAPS, { metadata: { name: 'a' } });
    // Meanwhile, somebody else ends it and makes another one.
    const scope = Object.getPrototypeOf(storage.scope('y/')) as Storage;
    const list = vi.spyOn(scope, 'list').mockImplementationOnce(async function (this: Storage, options) {
      list.mockRestore();
      await storage.scope('core/namespaces/').delete('x');
      expect((await create(at)).code).toBe(201);
      return this.list(options);
    });
    const { code, body } = await at.call('DELETE', `${NAMESPACES}/x`);
    expect([code, body.message]).toEqual([404, 'namespaces "x" not found']);
    expect((await at.call('GET', `${MAPS}/a`)).code).toBe(200);
  });
});

describe('two servers on one storage', () => {
  test.each([true, false])(
    'the last object may go by another server than the one that was asked to delete the namespace (cache: %s)',
    async (cache) => {
      const storage = new MemoryStorage();
      const [one, two] = [await server(storage, { cache }), await server(storage, { cache })];
      await create(one);
      expect((await two.call('POST', MAPS, HELD)).code).toBe(201);
      expect((await one.call('DELETE', `${NAMESPACES}/x`)).body.status.phase).toBe('Terminating');
      await isTerminating(two);
      expect((await two.call('PATCH', `${MAPS}/held`, { metadata: { finalizers: null } })).code).toBe(200);
      await isGone(one);
      expect((await create(two)).code).toBe(201);
    },
  );

  test('a namespace whose server has died in between is ended by another one', async () => {
    const storage = new MemoryStorage();
    const clock = new FakeClock();
    const one = rig({ storage, uid: () => crypto.randomUUID() });
    const two = await server(storage, { clock });
    await create(one);
    await one.call('POST', MAPS, HELD);
    await one.call('DELETE', `${NAMESPACES}/x`);
    await one.server.shutdown();
    // As by a server that dies before it has looked whether that was the last one.
    await storage.delete('core/configmaps/x/held');
    await expect
      .poll(async () => {
        clock.advance(500);
        return (await two.call('GET', `${NAMESPACES}/x`)).code;
      })
      .toBe(404);
    await two.server.shutdown();
    expect(clock.pending).toBe(0);
  });

  test('nothing is left in a namespace that has ended while a server did not know', async () => {
    const storage = new MemoryStorage();
    const slow = late(storage);
    const [one, two] = [await server(storage), await server(slow.storage)];
    await create(one);
    expect((await two.call('POST', MAPS, { metadata: { name: 'a' } })).code).toBe(201);
    slow.hold();
    await one.call('POST', MAPS, HELD);
    await one.call('DELETE', `${NAMESPACES}/x`);
    const refused = await two.call('POST', MAPS, { metadata: { name: 'b' } });
    expect([refused.code, refused.body.message]).toEqual([
      403,
      'configmaps "b" is forbidden: unable to create new content in namespace x because it is being terminated',
    ]);
    expect(refused.body.details).toEqual({
      ...{ name: 'b', kind: 'configmaps' },
      causes: [{ reason: 'NamespaceTerminating', message: 'namespace x is being terminated', field: 'metadata.namespace' }],
    });
    expect(await storage.get('core/configmaps/x/b')).toBeUndefined();
    await one.call('PATCH', `${MAPS}/held`, { metadata: { finalizers: null } });
    await isGone(one);
    expect((await two.call('POST', MAPS, { metadata: { name: 'b' } })).code).toBe(404);
    expect((await storage.scope('core/configmaps/x/').list()).items).toEqual([]);
    // It has come back, as another one.
    await create(one);
    expect((await two.call('POST', MAPS, { metadata: { name: 'c' } })).code).toBe(201);
    expect((await one.call('POST', MAPS, { metadata: { name: 'b' } })).code).toBe(201);
  });

  test('another namespace of the name is left alone by a server that still waits for the one before', async () => {
    const storage = new MemoryStorage();
    const slow = late(storage);
    const [one, two] = [await server(storage), await server(slow.storage)];
    await create(one);
    await one.call('POST', MAPS, HELD);
    await one.call('DELETE', `${NAMESPACES}/x`);
    await isTerminating(two);
    slow.hold();
    await one.call('PATCH', `${MAPS}/held`, { metadata: { finalizers: null } });
    await isGone(one);
    await create(one);
    for (const name of ['a', 'b']) await one.call('POST', MAPS, { metadata: { name } });
    expect((await two.call('DELETE', `${MAPS}/a`)).code).toBe(200);
    await two.server.shutdown();
    expect((await one.call('GET', `${NAMESPACES}/x`)).body.status.phase).toBe('Active');
    expect((await one.call('GET', MAPS)).body.items).toHaveLength(1);
  });

  test('both are asked at once: one of them deletes it', async () => {
    const storage = new MemoryStorage();
    const [one, two] = [await server(storage), await server(storage)];
    await create(one);
    for (let at = 0; at < 20; at++) await one.call('POST', MAPS, { metadata: { name: `m${at}` } });
    const codes = await Promise.all([one, two].map(async (each) => (await each.call('DELETE', `${NAMESPACES}/x`)).code));
    expect(codes.every((code) => code === 200 || code === 404)).toBe(true);
    expect(codes).toContain(200);
    await isGone(one);
    expect((await storage.scope('core/configmaps/x/').list()).items).toEqual([]);
  });
});

describe('a namespace with finalizers of its own', () => {
  const finalizers = (list: readonly string[]): object => ({ metadata: { finalizers: list } });

  test('is Terminating at once, and its objects go before it does', async () => {
    const one = await server(new MemoryStorage());
    await one.call('POST', NAMESPACES, { metadata: { name: 'x', finalizers: ['a.example/b'] } });
    await one.call('POST', MAPS, { metadata: { name: 'a' } });
    const { code, body } = await one.call('DELETE', `${NAMESPACES}/x`);
    expect([code, body.status, body.metadata.finalizers]).toEqual([200, { phase: 'Terminating' }, ['a.example/b']]);
    expect((await one.call('GET', MAPS)).body.items).toEqual([]);
    expect((await one.call('POST', MAPS, { metadata: { name: 'b' } })).code).toBe(403);
    expect((await one.call('DELETE', `${NAMESPACES}/x`)).body.status).toEqual({ phase: 'Terminating' });
    expect((await one.call('PATCH', `${NAMESPACES}/x`, finalizers([]))).code).toBe(200);
    await isGone(one);
  });

  test('is not changed by a deletion that is only tried', async () => {
    const one = await server(new MemoryStorage());
    await one.call('POST', NAMESPACES, { metadata: { name: 'x', finalizers: ['a.example/b'] } });
    await one.call('POST', MAPS, { metadata: { name: 'a' } });
    const tried = await one.call('DELETE', `${NAMESPACES}/x?dryRun=All`);
    expect([tried.code, tried.body.status]).toEqual([200, { phase: 'Terminating' }]);
    const { body } = await one.call('GET', `${NAMESPACES}/x`);
    expect([body.status, body.metadata.deletionTimestamp]).toEqual([{ phase: 'Active' }, undefined]);
    expect((await one.call('GET', MAPS)).body.items).toHaveLength(1);
  });

  test.each(['', '?dryRun=All'])('cannot be deleted if it is the default one%s', async (query) => {
    const one = await server(new MemoryStorage());
    await one.call('PATCH', `${NAMESPACES}/default`, finalizers(['a.example/b']));
    expect((await one.call('DELETE', `${NAMESPACES}/default${query}`)).code).toBe(403);
    const { code, body } = await one.call('PATCH', `${NAMESPACES}/default`, finalizers([]));
    expect([code, body.status, body.metadata.deletionTimestamp]).toEqual([200, { phase: 'Active' }, undefined]);
    expect((await one.call('DELETE', `${NAMESPACES}/default${query}`)).code).toBe(403);
  });
});

describe('an attempt to end a namespace', () => {
  const waiting = { metadata: { name: 'x', uid: 'u', deletionTimestamp: '2026-01-02T03:04:05Z' } };
  const storage = {
    list: async () => ({ items: [waiting], resourceVersion: '1' }),
    watch: async () => fromAsyncIterable((async function* () {})()),
  } as unknown as Storage;
  const begun = async (outcomes: (() => Promise<boolean>)[]) => {
    const clock = new FakeClock();
    const attempts: string[] = [];
    const finish = (name: string): Promise<boolean> => {
      attempts.push(name);
      return outcomes.shift()?.() ?? Promise.resolve(true);
    };
    const observer = { whole: () => {}, changed: () => {} };
    const own = { isDue: () => true, finish, observer };
    const terminating = new Terminating({ clock, random: () => 0, onError: () => {}, ...own });
    closing.push(() => terminating.stop());
    await terminating.start(storage);
    clock.advance(1_000);
    return { attempts, terminating, clock };
  };

  test.each(['has found something', 'has failed'])(
    'that %s is followed by another one, if the last object goes then',
    async (how) => {
      let end: (() => void) | undefined;
      const outcome = new Promise<boolean>((resolve, reject) => {
        end = () => (how === 'has failed' ? reject(new Error('no answer')) : resolve(false));
      });
      const { attempts, terminating } = await begun([() => outcome]);
      const hurry = (): void => terminating.hurry('x');
      // Behind the attempt, which waits for it, too, and before anybody has seen that it is over.
      outcome.then(hurry, hurry);
      end?.();
      await turn();
      expect(attempts).toEqual(['x', 'x']);
    },
  );

  test('is not followed by another one if nothing happens', async () => {
    const { attempts, clock } = await begun([async () => false]);
    await turn();
    expect(attempts).toEqual(['x']);
    clock.advance(2_000);
    await turn();
    expect(attempts).toEqual(['x', 'x']);
  });
});

describe('a version as a precondition', () => {
  test.each([[[]], [['a.example/b']]])('is that of before its deletion (finalizers: %j)', async (finalizers) => {
    const one = await server(new MemoryStorage());
    const { body: made } = await one.call('POST', NAMESPACES, { metadata: { name: 'x', finalizers } });
    const { resourceVersion } = made.metadata;
    const remove = (version: string): Promise<Answered> =>
      one.call('DELETE', `${NAMESPACES}/x`, { preconditions: { resourceVersion: version } });
    expect((await remove('1')).code).toBe(409);
    expect((await one.call('GET', `${NAMESPACES}/x`)).body.status).toEqual({ phase: 'Active' });
    expect((await remove(resourceVersion)).code).toBe(200);
  });
});
