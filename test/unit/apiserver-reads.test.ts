// Get, list and watch: what is asked of a storage, and what of its answers comes through.
import { describe, expect, test } from 'vitest';
import { readListQuery } from '../../src/apiserver/request/query.ts';
import type { ResourceContext } from '../../src/apiserver/resource-info.ts';
import { getObject, listObjects, presentedEvents, watchObjects } from '../../src/apiserver/verbs/read.ts';
import { MemoryStorage, type Storage } from '../../src/storage/index.ts';
import { newContext, order, over, refusalOf } from './apiserver-verbs-support.ts';
import { rig as cacherRig } from './cacher-support.ts';
import { settle } from './faulty-storage.ts';

const parameters = (query: string): ReturnType<typeof readListQuery> => readListQuery(new URLSearchParams(query));

/** A context that notes what is asked of its storage, without what was left out. */
function noting(more: Partial<ResourceContext> = {}): { context: ResourceContext; asked: Record<string, unknown>[] } {
  const plain = newContext(more);
  const asked: Record<string, unknown>[] = [];
  function note<A extends unknown[], R>(method: string, call: (...args: A) => R, optionsOf: (...args: A) => object | undefined) {
    return (...args: A): R => {
      const given = Object.entries(optionsOf(...args) ?? {}).filter(([, value]) => value !== undefined);
      asked.push({ method, ...Object.fromEntries(given) });
      return call(...args);
    };
  }
  const noted = (storage: Storage): Storage =>
    over(storage, {
      get: note('get', storage.get.bind(storage), (key, options) => ({ key, ...options })),
      list: note('list', storage.list.bind(storage), (options) => options),
      watch: note('watch', storage.watch.bind(storage), (options) => options),
      currentVersion: note('currentVersion', storage.currentVersion.bind(storage), (options) => options),
      scope: note(
        'scope',
        (prefix: string) => noted(storage.scope(prefix)),
        (prefix) => ({ prefix }),
      ) as Storage['scope'],
    });
  return { context: { ...plain, storage: noted(plain.storage) }, asked };
}

describe('a get', () => {
  test('passes version and signal on; none is the newest', async () => {
    const { context, asked } = noting();
    await context.storage.create('default/a', order('a'));
    const { signal } = new AbortController();
    const place = { namespace: 'default', name: 'a' };
    await getObject(context, place, { resourceVersion: '' });
    await getObject(context, place, { resourceVersion: '0', signal });
    expect(asked).toEqual([
      { method: 'get', key: 'default/a' },
      { method: 'get', key: 'default/a', resourceVersion: '0', signal },
    ]);
    expect(await refusalOf(getObject(context, place, { resourceVersion: 'x' }))).toEqual([
      400,
      expect.stringContaining('resourceVersion'),
    ]);
    expect((await refusalOf(getObject(context, place, { resourceVersion: '999' })))[0]).toBe(410);
    expect(await refusalOf(getObject(context, { ...place, name: 'b' }, { resourceVersion: '' }))).toEqual([
      404,
      'orders.example.com "b" not found',
    ]);
  });
});

describe('a list', () => {
  test.each([
    ['', {}],
    ['limit=2', { limit: 2 }],
    ['limit=0', {}],
    ['limit=2&resourceVersion=0', { resourceVersion: '0' }],
    ['limit=2&resourceVersion=1', { limit: 2, resourceVersion: '1' }],
    ['resourceVersion=1&resourceVersionMatch=Exact', { resourceVersion: '1', resourceVersionMatch: 'Exact' }],
    ['labelSelector=a%3Db&fieldSelector=spec.item%3Dtea', { labelSelector: 'a=b', fieldSelector: 'spec.item=tea' }],
  ])('%j asks for %j', async (query, options) => {
    const { context, asked } = noting();
    await context.storage.create('default/a', order('a'));
    await listObjects(context, { namespace: undefined, parameters: parameters(query) });
    expect(asked).toEqual([{ method: 'list', ...options }]);
  });

  test('of a namespace, or of one that a selector pins, is one of its part of the storage', async () => {
    const { context, asked } = noting();
    const list = (namespace: string | undefined, query = ''): Promise<unknown> =>
      listObjects(context, { namespace, parameters: parameters(query) });
    const pinned = 'metadata.namespace=some-space';
    const query = `fieldSelector=${encodeURIComponent(pinned)}`;
    await list('y');
    await list(undefined, query);
    await list('y', query);
    expect(asked).toEqual([
      { method: 'scope', prefix: 'y/' },
      { method: 'list' },
      { method: 'scope', prefix: 'some-space/' },
      { method: 'list', fieldSelector: pinned },
      { method: 'scope', prefix: 'y/' },
      { method: 'list', fieldSelector: pinned },
    ]);
  });

  test.each(['metadata.namespace=a/b', 'metadata.namespace=..', 'metadata.namespace=.', 'metadata.namespace!=x'])(
    '%s pins no part',
    async (fieldSelector) => {
      const { context, asked } = noting();
      const query = `fieldSelector=${encodeURIComponent(fieldSelector)}`;
      await listObjects(context, { namespace: undefined, parameters: parameters(query) });
      expect(asked.map(({ method }) => method)).toEqual(['list']);
    },
  );

  test('of what is in no namespace has no such field, as upstream, unless most of Kubernetes own kinds have it', async () => {
    const plain = newContext();
    const fieldSelector = 'fieldSelector=metadata.namespace%3Dx';
    const of = (info: object): ReturnType<typeof noting> => noting({ info: { ...plain.info, namespaced: false, ...info } });
    const list = (context: ResourceContext): Promise<unknown> =>
      listObjects(context, { namespace: undefined, parameters: parameters(fieldSelector) });
    const core = { group: '', version: 'v1', apiVersion: 'v1', shape: {} };
    for (const info of [{}, { ...core, plural: 'nodes', kind: 'Node' }, { ...core, plural: 'namespaces', kind: 'Namespace' }]) {
      const refusal = await refusalOf(list(of(info).context));
      expect(refusal).toEqual([400, 'field label not supported: metadata.namespace']);
    }
    const { context, asked } = of({ ...core, plural: 'persistentvolumes', kind: 'PersistentVolume' });
    await list(context);
    expect(asked.map(({ method }) => method)).toEqual(['list']);
  });

  test('passes the signal on', async () => {
    const { context, asked } = noting();
    const { signal } = new AbortController();
    await listObjects(context, { namespace: undefined, parameters: parameters(''), signal });
    expect(asked).toEqual([{ method: 'list', signal }]);
  });

  test('of a selector that names an unknown field, or is none, is 400', async () => {
    const context = newContext();
    const refusal = (query: string): Promise<unknown> =>
      refusalOf(listObjects(context, { namespace: undefined, parameters: parameters(query) }));
    // kubectl says itself what it could not find, and by which selectors.
    expect(await refusal('fieldSelector=spec.x%3D1&labelSelector=a')).toEqual([400, 'field label not supported: spec.x']);
    const long = 'y'.repeat(300);
    expect(await refusal(`fieldSelector=${long}%3D1`)).toEqual([400, expect.stringMatching(/not supported: y{200}$/)]);
    expect(await refusal('fieldSelector=toString%3D1')).toEqual([400, expect.stringContaining('not supported: toString')]);
    expect(await refusal('labelSelector=a+in')).toEqual([400, expect.stringContaining('label selector')]);
    expect(await refusal('fieldSelector=a')).toEqual([400, expect.stringContaining('field selector')]);
    expect(await refusal(`labelSelector=${'a'.repeat(1_001)}`)).toEqual([
      400,
      'labelSelector: expected at most 1000 characters, got 1001',
    ]);
  });

  test('in another version of the kind shows each object as that one, and the same copy each time', async () => {
    const plain = newContext();
    await plain.storage.create('default/a', order('a'));
    const beta = { ...plain, info: { ...plain.info, apiVersion: 'example.com/v1beta1', shared: true } };
    const asked = { namespace: undefined, parameters: parameters('') };
    const [own, other, again] = [await listObjects(plain, asked), await listObjects(beta, asked), await listObjects(beta, asked)];
    expect(own.items[0]?.apiVersion).toBe('example.com/v1');
    expect(other).toEqual({ ...own, items: [{ ...own.items[0], apiVersion: 'example.com/v1beta1' }] });
    expect(again.items[0]).toBe(other.items[0]);
    const alpha = { ...beta, info: { ...beta.info, apiVersion: 'example.com/v1alpha1' } };
    expect((await listObjects(alpha, asked)).items[0]?.apiVersion).toBe('example.com/v1alpha1');
    expect((await listObjects(beta, asked)).items[0]).toBe(other.items[0]);
  });
});

describe('a watch', () => {
  const initial = { sendInitialEvents: true, resourceVersionMatch: 'NotOlderThan', allowWatchBookmarks: true };
  const none = { allowWatchBookmarks: false };
  const match = 'resourceVersionMatch=NotOlderThan';
  const fresh = { ...none, resourceVersionMatch: 'NotOlderThan' };
  test.each([
    ['', fresh],
    ['resourceVersion=0', { ...none, resourceVersion: '0' }],
    ['resourceVersion=1', { ...none, resourceVersion: '1' }],
    ['resourceVersion=1&allowWatchBookmarks=1', { resourceVersion: '1', allowWatchBookmarks: true }],
    ['allowWatchBookmarks=1', initial],
    ['resourceVersion=0&allowWatchBookmarks=1', { ...initial, resourceVersion: '0' }],
    [`sendInitialEvents=1&${match}`, fresh],
    [`sendInitialEvents=1&${match}&resourceVersion=0`, { ...none, resourceVersion: '0' }],
    [`sendInitialEvents=1&${match}&resourceVersion=1`, { ...initial, resourceVersion: '1' }],
    [`sendInitialEvents=1&${match}&allowWatchBookmarks=1`, initial],
    ['timeoutSeconds=7&resourceVersion=1', { ...none, resourceVersion: '1', timeoutSeconds: 7 }],
  ])('%j asks for %j', async (query, options) => {
    const { context, asked } = noting();
    await context.storage.create('default/a', order('a'));
    const watch = await watchObjects(context, { namespace: undefined, parameters: parameters(query) });
    watch.stop();
    expect(asked).toEqual([{ method: 'watch', ...options }]);
  });

  test.each([
    ['', true],
    ['&resourceVersion=0', true],
    ['&resourceVersion=1', false],
  ])('without initial events, and %j, begins now: %s', async (version, isNow) => {
    const { context, asked } = noting();
    await context.storage.create('default/a', order('a'));
    await context.storage.create('default/b', order('b'));
    const { signal } = new AbortController();
    const query = `sendInitialEvents=0&${match}${version}`;
    (await watchObjects(context, { namespace: undefined, parameters: parameters(query), signal })).stop();
    const now = [{ method: 'currentVersion', signal }];
    const resourceVersion = isNow ? await newest(context) : '1';
    expect(asked.slice(0, isNow ? 2 : 1)).toEqual([
      ...(isNow ? now : []),
      { method: 'watch', allowWatchBookmarks: false, resourceVersion, signal },
    ]);
  });

  test('of one object is one of its name, which no selector may contradict', async () => {
    const { context, asked } = noting();
    const watch = async (fieldSelector: string): Promise<void> => {
      const query = `resourceVersion=1&fieldSelector=${encodeURIComponent(fieldSelector)}`;
      (await watchObjects(context, { namespace: undefined, name: 'a', parameters: parameters(query) })).stop();
    };
    await context.storage.create('default/a', order('a'));
    await watch('');
    await watch('metadata.name=a,spec.item=x');
    expect(asked.map(({ fieldSelector }) => fieldSelector)).toEqual(['metadata.name=a', 'metadata.name=a,spec.item=x']);
    for (const other of ['metadata.name=b', 'spec.item=x'])
      expect(await refusalOf(watch(other))).toEqual([400, "fieldSelector metadata.name doesn't match requested name"]);
  });

  test('without a version begins with the state as it is now, and not with what a cache has of it; from 0 with that', async () => {
    const { cacher, pods } = await cacherRig();
    await pods.put('default/a');
    await settle();
    pods.storage.hold();
    await pods.put('default/b');
    const context = newContext({ storage: cacher as unknown as Storage });
    const open = (query: string): ReturnType<typeof watchObjects> =>
      watchObjects(context, { namespace: undefined, parameters: parameters(query) });
    const old = await open('resourceVersion=0');
    expect(old.queued).toBe(1);
    const opening = [open(''), open(`sendInitialEvents=1&${match}`)];
    await settle();
    expect(cacher.stats.watches).toBe(1);
    pods.storage.release();
    for (const watch of await Promise.all(opening)) expect(watch.queued).toBe(2);
    await cacher.close();
  });

  test('that asked for no BOOKMARKs gets none, not even that of its initial events', async () => {
    const context = newContext();
    await context.storage.create('default/a', order('a'));
    const open = async (bookmarks: 0 | 1): Promise<Awaited<ReturnType<typeof watchObjects>>> =>
      watchObjects(context, {
        namespace: undefined,
        parameters: parameters(`sendInitialEvents=1&${match}&resourceVersion=1&allowWatchBookmarks=${bookmarks}`),
      });
    const types = async (bookmarks: 0 | 1): Promise<string[]> => {
      const watch = await open(bookmarks);
      await context.storage.requestProgress();
      const seen: string[] = [];
      const { name } = (await context.storage.create(`default/b${bookmarks}`, order(`b${bookmarks}`))).metadata ?? {};
      for await (const event of watch) {
        seen.push(event.type);
        if ((event.object as ReturnType<typeof order>).metadata?.name === name) break;
      }
      return seen;
    };
    expect(await types(0)).toEqual(['ADDED', 'ADDED']);
    expect((await types(1)).filter((type) => type === 'BOOKMARK').length).toBeGreaterThan(0);
  });

  test('in another version shows objects as that one, and passes BOOKMARKs and ERRORs on', async () => {
    const plain = newContext();
    await plain.storage.create('default/a', order('a'));
    const beta = { ...plain, info: { ...plain.info, apiVersion: 'example.com/v1beta1', shared: true } };
    const asked = { namespace: undefined, parameters: parameters('allowWatchBookmarks=1') };
    const watch = presentedEvents(beta.info, await watchObjects(beta, asked));
    const next = async (): Promise<unknown[]> => {
      const { value } = await watch.next();
      return [value?.type, (value?.object as ReturnType<typeof order>)?.apiVersion];
    };
    expect(await next()).toEqual(['ADDED', 'example.com/v1beta1']);
    expect(await next()).toEqual(['BOOKMARK', undefined]);
    await plain.storage.update('default/a', (current) => ({ ...current, apiVersion: 'example.com/v1beta1', spec: {} }));
    expect(await next()).toEqual(['MODIFIED', 'example.com/v1beta1']);
    await watch.return();
    const short = { ...beta, storage: new MemoryStorage({ maxHistoryItems: 1 }) };
    const past = { namespace: undefined, parameters: parameters('resourceVersion=1') };
    const late = presentedEvents(short.info, await watchObjects(short, past));
    for (const name of ['a', 'b', 'c']) await short.storage.create(`default/${name}`, order(name));
    expect((await late.next()).value).toMatchObject({ type: 'ERROR', object: { kind: 'Status', apiVersion: 'v1', code: 410 } });
  });
});

const newest = (context: ResourceContext): Promise<string> => context.storage.currentVersion();
