// What others do between the steps of a verb: it is tried again with what is there then, and not for ever.
import { describe, expect, test } from 'vitest';
import type { ResourceContext } from '../../src/apiserver/resource-info.ts';
import { type DeleteTerms, deleteObject, deleteObjects } from '../../src/apiserver/verbs/remove.ts';
import { createObject, updateObject } from '../../src/apiserver/verbs/write.ts';
import type { KubernetesObject } from '../../src/cache/object.ts';
import { MemoryStorage } from '../../src/storage/index.ts';
import { refused } from '../../src/storage/statuses.ts';
import { newContext, order, over, refusalOf } from './apiserver-verbs-support.ts';

const KEY = 'default/a';
const PLACE = { namespace: 'default', name: 'a' };
const MODIFIED =
  'Operation cannot be fulfilled on orders.example.com "a": the object has been modified; please apply your changes to the latest version and try again';

const nameOf = ({ metadata }: KubernetesObject): string => metadata?.name ?? '';

const withFinalizers = (finalizers: readonly string[]) => (current: KubernetesObject) => ({
  ...current,
  metadata: { ...current.metadata, finalizers },
});

/** A context on whose storage something happens right before each call of some of its methods. */
function raced(
  before: { readonly [M in 'create' | 'update' | 'delete']?: (context: ResourceContext, call: number) => Promise<unknown> },
): {
  context: ReturnType<typeof newContext>;
  calls: Record<'create' | 'update' | 'delete', number>;
} {
  const plain = newContext();
  const { storage } = plain;
  const calls = { create: 0, update: 0, delete: 0 };
  const context = {
    ...plain,
    storage: over(storage, {
      create: async (key, object, options) => {
        await before.create?.(plain, ++calls.create);
        return storage.create(key, object, options);
      },
      update: async (key, change, options) => {
        await before.update?.(plain, ++calls.update);
        return storage.update(key, change, options);
      },
      delete: async (key, options) => {
        await before.delete?.(plain, ++calls.delete);
        return storage.delete(key, options);
      },
    }),
  };
  return { context, calls };
}

describe('a deletion', () => {
  const terms: DeleteTerms = { dryRun: false };

  test('whose object loses its last finalizer meanwhile deletes it', async () => {
    const { context, calls } = raced({
      delete: async () => {},
      update: ({ storage }) => storage.update(KEY, withFinalizers([])),
    });
    await context.storage.create(KEY, order('a', { finalizers: ['a.b/c'] }));
    const { object, gone } = await deleteObject(context, PLACE, terms);
    expect([object.metadata?.name, gone, calls.delete, calls.update]).toEqual(['a', true, 2, 1]);
    expect(await context.storage.get(KEY)).toBeUndefined();
    expect(context.gone).toEqual(['default']);
  });

  test('gives up on an object whose finalizers come and go, with 409', async () => {
    const { context, calls } = raced({
      delete: ({ storage }) => storage.update(KEY, withFinalizers(['a.b/c'])),
      update: ({ storage }) => storage.update(KEY, withFinalizers([])),
    });
    await context.storage.create(KEY, order('a'));
    expect(await refusalOf(deleteObject(context, PLACE, terms))).toEqual([409, MODIFIED]);
    expect(calls.delete).toBe(100);
    expect(context.gone).toEqual([]);
  });

  test('whose object goes while it is marked is 404, also when it is only tried', async () => {
    for (const dryRun of [false, true]) {
      const { context } = raced({ update: ({ storage }) => storage.delete(KEY) });
      await context.storage.create(KEY, order('a', { finalizers: ['a.b/c'] }));
      const { storage } = context;
      const get: typeof storage.get = async (key) => {
        await storage.delete(key);
        return undefined;
      };
      const trying = dryRun ? { ...context, storage: over(storage, { get }) } : context;
      expect(await refusalOf(deleteObject(trying, PLACE, { dryRun }))).toEqual([404, 'orders.example.com "a" not found']);
    }
  });

  test('checks its preconditions again when it marks', async () => {
    const { context } = raced({
      update: async ({ storage }) => {
        await storage.delete(KEY);
        await storage.create(KEY, order('a', { uid: 'second', finalizers: ['a.b/c'] }));
      },
    });
    await context.storage.create(KEY, order('a', { uid: 'first', finalizers: ['a.b/c'] }));
    const [code] = await refusalOf(deleteObject(context, PLACE, { ...terms, preconditions: { uid: 'first' } }));
    expect(code).toBe(409);
    expect((await context.storage.get(KEY))?.metadata).not.toHaveProperty('deletionTimestamp');
  });

  test('passes the signal on', async () => {
    const context = newContext();
    await context.storage.create(KEY, order('a', { finalizers: ['a.b/c'] }));
    const signal = AbortSignal.abort(new Error('enough'));
    await expect(deleteObject(context, PLACE, { dryRun: false, signal })).rejects.toThrow('enough');
    await expect(deleteObject(context, PLACE, { dryRun: true, signal })).rejects.toThrow('enough');
    expect((await context.storage.get(KEY))?.metadata).not.toHaveProperty('deletionTimestamp');
  });
});

describe('a deletion of many', () => {
  test('takes what is listed page by page, and what others have deleted meanwhile is no failure', async () => {
    const context = newContext();
    for (const name of ['a', 'b', 'c']) await context.storage.create(`default/${name}`, order(name));
    const pages = [
      { items: [order('a'), order('nobody')], continue: 'next' },
      { items: [order('c')], continue: undefined },
    ];
    const asked: unknown[] = [];
    const list = async (page: object): Promise<(typeof pages)[number]> => {
      asked.push(page);
      return pages.shift() as (typeof pages)[number];
    };
    const deleted = await deleteObjects(context, undefined, { dryRun: false, list });
    expect(deleted.map(({ metadata }) => metadata?.name)).toEqual(['a', 'c']);
    expect(asked).toEqual([
      { limit: 500, continue: '' },
      { limit: 500, continue: 'next' },
    ]);
    expect((await context.storage.list()).items.map(({ metadata }) => metadata?.name)).toEqual(['b']);
  });

  test('lists all of it before it deletes the first: the version of the list may be forgotten on the way', async () => {
    const storage = new MemoryStorage({ maxHistoryItems: 2 });
    const context = newContext({ storage });
    for (let n = 0; n < 1_100; n++) await storage.create(`default/o${n}`, order(`o${n}`, { uid: `${n}` }));
    const list = (page: { limit: number; continue: string }): ReturnType<typeof storage.list> =>
      storage.list({ limit: page.limit, continue: page.continue || undefined });
    expect(await deleteObjects(context, 'default', { dryRun: false, list })).toHaveLength(1_100);
    expect((await storage.list()).items).toEqual([]);
  });

  test('takes no more than it is told to, and nothing that came in the place of what was listed', async () => {
    const context = newContext();
    for (const name of ['a', 'b', 'c']) await context.storage.create(`default/${name}`, order(name, { uid: 'now' }));
    const list = async ({ limit }: { limit: number }): Promise<{ items: readonly KubernetesObject[]; continue: string }> => ({
      items: ['a', 'b', 'c'].slice(0, limit).map((name) => order(name, { uid: name === 'a' ? 'before' : 'now' })),
      continue: 'more',
    });
    const deleted = await deleteObjects(context, 'default', { dryRun: false, preconditions: undefined, limit: 2, list });
    expect(deleted.map(nameOf)).toEqual(['b']);
    const kept = deleteObjects(context, 'default', { dryRun: false, preconditions: {}, limit: 1, list });
    expect((await refusalOf(kept))[0]).toBe(409);
    expect((await context.storage.list()).items.map(nameOf)).toEqual(['a', 'c']);
  });

  test('ends with what else goes wrong, and keeps its terms', async () => {
    const context = newContext();
    await context.storage.create(KEY, order('a', { uid: '1' }));
    const list = async (): Promise<{ items: readonly KubernetesObject[] }> => ({ items: [order('a')] });
    const wrong = deleteObjects(context, 'default', { dryRun: false, preconditions: { uid: '2' }, list });
    expect((await refusalOf(wrong))[0]).toBe(409);
    expect(await deleteObjects(context, 'default', { dryRun: true, list })).toHaveLength(1);
    expect(await context.storage.get(KEY)).toBeDefined();
    expect(await deleteObjects(context, 'other', { dryRun: false, list })).toEqual([]);
  });
});

describe('a creation', () => {
  test('tries eight generated names, and says that the last one exists', async () => {
    let draws = 0;
    const context = newContext({ random: () => ++draws * 0 });
    const create = (): Promise<KubernetesObject> =>
      createObject(context, { metadata: { generateName: 'a-' } }, { namespace: 'default', dryRun: false });
    expect((await create()).metadata?.name).toBe('a-bbbbb');
    draws = 0;
    expect(await refusalOf(create())).toEqual([409, 'orders.example.com "a-bbbbb" already exists']);
    expect(draws).toBe(40);
  });

  test('of a given name is tried once', async () => {
    const { context, calls } = raced({ create: async () => {} });
    const metadata = { name: 'a', generateName: 'b-' };
    const create = (): Promise<KubernetesObject> => createObject(context, { metadata }, { namespace: 'default', dryRun: false });
    await create();
    expect(await refusalOf(create())).toEqual([409, 'orders.example.com "a" already exists']);
    expect(calls.create).toBe(2);
  });

  test('is refused for another reason at once, whatever its name', async () => {
    const { context, calls } = raced({ create: () => Promise.reject(new Error('disk')) });
    const create = createObject(context, { metadata: { generateName: 'b-' } }, { namespace: 'default', dryRun: false });
    await expect(create).rejects.toThrow('disk');
    expect(calls.create).toBe(1);
  });

  test('is taken back if nobody can say whether its namespace, or its definition, still holds', async () => {
    const fail = (): Promise<never> => Promise.reject(refused(500, 'InternalError', 'away'));
    for (const more of [{ namespaceHolds: fail }, { definition: { check: () => {}, holds: fail } }]) {
      const context = newContext({ namespaceExists: async () => 'u', ...more });
      expect(await refusalOf(createObject(context, order('a'), { namespace: 'default', dryRun: false }))).toEqual([500, 'away']);
      expect(await context.storage.get(KEY)).toBeUndefined();
      expect(context.gone).toEqual(['default']);
    }
  });

  test('asks for its namespace if it has one, before it writes, and passes the signal on', async () => {
    const asked: string[] = [];
    const context = newContext({
      namespaceExists: async (namespace) => {
        asked.push(namespace);
        if (namespace === 'gone') throw new Error('no such namespace');
      },
    });
    const create = (namespace: string | undefined, signal?: AbortSignal): Promise<KubernetesObject> =>
      createObject(context, { metadata: { name: 'a' } }, { namespace, dryRun: false, signal });
    await expect(create('gone')).rejects.toThrow('no such namespace');
    await create(undefined);
    expect(asked).toEqual(['gone']);
    expect((await context.storage.list()).items.map(({ metadata }) => metadata?.namespace)).toEqual([undefined]);
    await expect(create('default', AbortSignal.abort(new Error('enough')))).rejects.toThrow('enough');
    expect(await context.storage.get(KEY)).toBeUndefined();
  });
});

describe('the update that removes the last finalizer', () => {
  const waiting = order('a', { finalizers: ['a.b/c'], deletionTimestamp: '2026-01-02T03:04:05Z', uid: '1', generation: 2 });
  const freed = { metadata: { name: 'a' } };
  const free = (context: ResourceContext): Promise<KubernetesObject> =>
    updateObject(context, { place: PLACE, row: context.info.main, dryRun: false, make: () => freed });

  test('answers with what was to be written, at the version of its deletion', async () => {
    const { context, calls } = raced({ delete: async () => {} });
    await context.storage.create(KEY, waiting);
    const answered = await free(context);
    const { resourceVersion } = answered.metadata ?? {};
    expect(answered.metadata).toEqual({ ...waiting.metadata, finalizers: undefined, resourceVersion });
    expect(resourceVersion).toBe(await context.storage.currentVersion());
    expect([await context.storage.get(KEY), context.gone, calls.delete]).toEqual([undefined, ['default'], 1]);
  });

  test('is made again if somebody changes the object before it goes', async () => {
    const { context, calls } = raced({
      delete: async ({ storage }, call) =>
        call === 1 && storage.update(KEY, (current) => ({ ...current, spec: { count: 1 } }) as KubernetesObject),
    });
    await context.storage.create(KEY, waiting);
    let makes = 0;
    const make = (current: KubernetesObject): unknown => {
      makes++;
      return { ...current, metadata: { name: 'a' } };
    };
    const answered = await updateObject(context, { place: PLACE, row: context.info.main, dryRun: false, make });
    expect(answered).toMatchObject({ spec: { count: 1 } });
    expect([makes, calls.delete, await context.storage.get(KEY)]).toEqual([2, 2, undefined]);
  });

  test('gives up if that never ends, with 409', async () => {
    let turn = 0;
    const { context, calls } = raced({
      delete: ({ storage }) => storage.update(KEY, (current) => ({ ...current, spec: { turn: ++turn } }) as KubernetesObject),
    });
    await context.storage.create(KEY, waiting);
    expect(await refusalOf(free(context))).toEqual([409, MODIFIED]);
    expect(calls.delete).toBe(100);
  });

  test('ends with what else goes wrong', async () => {
    const { context, calls } = raced({ delete: () => Promise.reject(new Error('disk')) });
    await context.storage.create(KEY, waiting);
    await expect(free(context)).rejects.toThrow('disk');
    const [other] = [raced({ delete: ({ storage }) => storage.delete(KEY) })];
    await other.context.storage.create(KEY, waiting);
    expect(await refusalOf(free(other.context))).toEqual([404, 'orders.example.com "a" not found']);
    expect([calls.delete, other.calls.delete]).toEqual([1, 1]);
  });

  test('deletes what contains others as a deletion does', async () => {
    const emptied: string[] = [];
    let left = true;
    const context = newContext({
      empty: async (object) => {
        emptied.push(nameOf(object));
        return !left;
      },
    });
    await context.storage.create(KEY, waiting);
    expect((await free(context)).metadata).not.toHaveProperty('finalizers');
    expect(await context.storage.get(KEY)).toBeDefined();
    left = false;
    await free(context);
    expect([await context.storage.get(KEY), emptied]).toEqual([undefined, ['a', 'a']]);
  });

  test('passes the signal on', async () => {
    const context = newContext();
    await context.storage.create(KEY, waiting);
    const signal = AbortSignal.abort(new Error('enough'));
    for (const dryRun of [false, true]) {
      const terms = { place: PLACE, row: context.info.main, dryRun, signal, make: () => freed };
      await expect(updateObject(context, terms)).rejects.toThrow('enough');
    }
    expect(await context.storage.get(KEY)).toBeDefined();
  });
});

describe('what contains others', () => {
  test('stays when it is changed, and when only its finalizers are gone', async () => {
    const emptied: string[] = [];
    const context = newContext({ empty: async (object) => emptied.push(nameOf(object)) > 0 });
    await context.storage.create(KEY, order('a', { finalizers: ['a.b/c'] }));
    const make = (): unknown => ({ metadata: { name: 'a' } });
    await updateObject(context, { place: PLACE, row: context.info.main, dryRun: false, make });
    expect((await context.storage.get(KEY))?.metadata).not.toHaveProperty('finalizers');
    expect(emptied).toEqual([]);
  });

  test('is emptied before it goes, stays while something is left, and is not emptied if it may not go', async () => {
    const emptied: string[] = [];
    let left = true;
    const context = newContext({
      empty: async (object, { dryRun }) => {
        if (dryRun) return true;
        emptied.push(nameOf(object));
        return !left;
      },
    });
    expect(await refusalOf(deleteObject(context, PLACE, { dryRun: false }))).toEqual([404, 'orders.example.com "a" not found']);
    await context.storage.create(KEY, order('a', { uid: '1' }));
    const refused = deleteObject(context, PLACE, { dryRun: false, preconditions: { uid: '2' } });
    expect((await refusalOf(refused))[0]).toBe(409);
    expect(await deleteObject(context, PLACE, { dryRun: true })).toMatchObject({ gone: true });
    expect(emptied).toEqual([]);
    expect(await deleteObject(context, PLACE, { dryRun: false })).toMatchObject({
      gone: false,
      object: { metadata: { uid: '1' } },
    });
    expect(context.gone).toEqual([]);
    left = false;
    expect(await deleteObject(context, PLACE, { dryRun: false })).toMatchObject({ gone: true });
    expect([emptied, context.gone]).toEqual([['a', 'a'], ['default']]);
  });
});
