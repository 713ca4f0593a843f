// A resource of a server in process, used as one of a cluster is: objects are read, changed and sent back.
import { afterEach, describe, expect, it, vi } from 'vitest';
import {
  type AdmissionReview,
  ApiServer,
  NAMESPACES,
  type Resource,
  type ResourceDefinition,
} from '../../src/apiserver/index.ts';
import { InformerFactory } from '../../src/cache/index.ts';
import { MemoryStorage } from '../../src/storage/index.ts';
import { ORDERS, type Order, remote } from './apiserver-rig.ts';

type Mutable = { -readonly [Name in keyof Order]: Order[Name] };

const servers: ApiServer[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) await server.shutdown();
});

/** Over a storage with a cache before it, over one that needs none, or without any. */
function orders(kind: 'cached' | 'memory' | 'plain'): Resource<Mutable> {
  const memory = new MemoryStorage();
  const storage = kind === 'cached' ? remote(memory) : memory;
  const server = new ApiServer({ storage, resources: [ORDERS as ResourceDefinition], cache: kind !== 'plain' });
  servers.push(server);
  return server.resource<Mutable>('orders.example.com/v1').in('default');
}

describe.each(['cached', 'memory', 'plain'] as const)('%s', (kind) => {
  const answers: [string, (of: Resource<Mutable>, first: Mutable) => Promise<Mutable | undefined>][] = [
    ['create', async (_, first) => first],
    ['get', (of) => of.get('a')],
    [
      'get, any version',
      async (of, { metadata }) => {
        // A cache may be older than the creation until it is asked for that.
        await of.get('a', { resourceVersion: metadata?.resourceVersion as string });
        return of.get('a', { resourceVersion: '0' });
      },
    ],
    ['update', (of, first) => of.update({ ...first, spec: { count: 7 } })],
    ['patch', (of) => of.patch('a', { spec: { count: 7 } })],
    ['delete', (of) => of.delete('a')],
  ];
  it.each(answers)('what %s resolves with may be changed and written', async (_, answer) => {
    const all = orders(kind);
    const first = await all.create({ metadata: { name: 'a', finalizers: ['example.com/held'] }, spec: { count: 1 } });
    const own = (await answer(all, first)) as Mutable;
    const before = structuredClone(await all.get('a'));
    const watch = await all.watch({ resourceVersion: before.metadata?.resourceVersion as string });
    own.spec = { count: 9 };
    Object.assign(own.metadata ?? {}, { labels: { changed: 'yes' } });
    expect(await all.get('a')).toEqual(before);
    const written = await all.update(own);
    expect(written).toMatchObject({ metadata: { labels: { changed: 'yes' } }, spec: { count: 9 } });
    expect(written.metadata?.resourceVersion).not.toBe(before.metadata?.resourceVersion);
    expect((await watch.next()).value).toMatchObject({ type: 'MODIFIED', object: { spec: { count: 9 } } });
    await watch.return();
  });

  it('a misspelt precondition is refused', async () => {
    const all = orders(kind);
    const { metadata } = await all.create({ metadata: { name: 'a' } });
    const misspelt = { preconditions: { version: '1' } as never };
    await expect(all.delete('a', misspelt)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
    await all.delete('a', { preconditions: { resourceVersion: metadata?.resourceVersion } });
  });
});

describe('arguments', () => {
  const names = ['', '.', '..', 'a/b', 'a%', 'a?', 'a#', ' a', 'a ', 'a\\b', '\n'];
  it.each([...names, 7, undefined])('%j is no name, and no namespace', async (name) => {
    const all = orders('plain');
    const invalid = (what: string): object => ({ code: 'INVALID_ARGUMENT', message: expect.stringMatching(what) });
    expect(() => all.in(name as string)).toThrow(
      expect.objectContaining(invalid('^namespace: expected a non-empty name without "/", "%" or white space')),
    );
    if (name === 'a/b') return;
    await expect(all.get(name as string)).rejects.toMatchObject(invalid('^name: expected a'));
    if (typeof name === 'string' && name !== '') {
      await expect(all.get(`default/${name}`)).rejects.toMatchObject(invalid('^name: expected a'));
      await expect(all.get(`${name}/a`)).rejects.toMatchObject(invalid('^namespace: expected a non-empty'));
    }
  });

  it('of a deletion are checked, and those that have no effect accepted', async () => {
    const all = orders('plain');
    const stored = await all.create({ metadata: { name: 'a' } });
    for (const [options, message] of [
      [{ propagation: 'Later' }, /^propagation: .*Foreground.*Background.*Orphan/],
      [{ gracePeriodSeconds: -1 }, /^gracePeriodSeconds: /],
      [{ gracePeriodSeconds: 0.5 }, /^gracePeriodSeconds: /],
      [{ force: true }, /force/],
    ] as const) {
      await expect(all.delete('a', options as never)).rejects.toThrow(message);
    }
    const { resourceVersion, uid } = stored.metadata ?? {};
    await expect(all.delete('a', { preconditions: { uid: 'other' } })).rejects.toMatchObject({ status: { code: 409 } });
    expect(await all.delete('a', { dryRun: true })).toBeUndefined();
    expect(await all.get('a')).toEqual(stored);
    for (const propagation of ['Foreground', 'Background', 'Orphan'] as const) {
      await all.delete('a', { propagation, gracePeriodSeconds: 0, preconditions: { resourceVersion, uid }, dryRun: true });
    }
    await all.delete('a', { preconditions: { resourceVersion, uid } });
    await expect(all.get('a')).rejects.toMatchObject({ status: { code: 404 } });
  });

  it('of a deletion of many', async () => {
    const all = orders('plain');
    for (const name of ['a', 'b']) await all.create({ metadata: { name, labels: { name } } });
    expect(await all.deleteCollection({ dryRun: true })).toHaveLength(2);
    expect((await all.list()).items).toHaveLength(2);
    await all.deleteCollection({ labelSelector: 'name=a' });
    expect((await all.list()).items.map(({ metadata }) => metadata?.name)).toEqual(['b']);
    await all.deleteCollection({ fieldSelector: 'metadata.name=b' });
    expect((await all.list()).items).toEqual([]);
    await expect(all.deleteCollection({ limit: 1 } as never)).rejects.toThrow(/limit/);
  });

  it('an object is one, and has a place', async () => {
    const all = orders('plain');
    for (const object of [undefined, () => {}]) {
      await expect(all.create(object as never)).rejects.toThrow(/^object: expected an object/);
      await expect(all.update(object as never)).rejects.toThrow(/^object: expected an object/);
    }
    await expect(all.update({ metadata: {} })).rejects.toThrow(/^object.metadata.name: expected a name, to update it/);
    await expect(all.update({ metadata: { name: 'a', namespace: 'other' } })).rejects.toThrow(/^namespace: expected default/);
    const resources = [ORDERS, NAMESPACES] as ResourceDefinition[];
    const server = new ApiServer({ storage: new MemoryStorage(), resources });
    servers.push(server);
    const everywhere = server.resource<Mutable>('orders.example.com/v1');
    await expect(everywhere.create({ metadata: { name: 'a' } })).rejects.toThrow(/^namespace: expected one: use in\(namespace\)/);
    await expect(everywhere.get('a')).rejects.toThrow(/^name: expected a namespace too: use orders.in\(namespace\)/);
    const spaces = server.resource<Mutable>('namespaces/v1');
    await spaces.create({ metadata: { name: 'x' } });
    await everywhere.create({ metadata: { name: 'a', namespace: 'x' } });
    expect(await everywhere.get('x/a')).toMatchObject({ metadata: { namespace: 'x' } });
    await expect(everywhere.get('x/a', { subresource: 'scale' as never })).rejects.toThrow(/^subresource: expected one that/);
    expect(await spaces.get('x')).toMatchObject({ kind: 'Namespace', metadata: { name: 'x' } });
    await expect(spaces.get('y/x')).rejects.toThrow(/^namespace: expected none, because namespaces are in no namespace/);
    expect(everywhere.type).toEqual({ group: 'example.com', version: 'v1', plural: 'orders', kind: 'Order', namespaced: true });
  });
});

it('an error of the storage is told to the owner, and hidden; not if the caller has left', async () => {
  const [storage, errors] = [new MemoryStorage(), [] as unknown[]];
  const onError = (error: unknown): void => void errors.push(error);
  const options = { storage, resources: [ORDERS as ResourceDefinition], cache: false, onError };
  const server = new ApiServer(options);
  servers.push(server);
  await server.ready;
  const broken = new Error('broken');
  const scope = Object.getPrototypeOf(storage.scope('x/'));
  const all = server.resource<Mutable>('orders.example.com/v1').in('default');
  const get = vi.spyOn(scope, 'get');
  get.mockRejectedValueOnce(broken);
  await expect(all.get('a')).rejects.toMatchObject({ status: { code: 500 }, cause: broken });
  expect(errors).toEqual([broken]);
  const abort = new AbortController();
  get.mockImplementationOnce(() => {
    abort.abort();
    return Promise.reject(broken);
  });
  await expect(all.get('a', { signal: abort.signal })).rejects.toBe(broken);
  expect(errors).toEqual([broken]);
  get.mockRestore();
});

it('a watch ends with its signal, and with its server, whether it has a signal or not', async () => {
  for (const end of ['signal', 'server', 'server without a signal'] as const) {
    const server = new ApiServer({ storage: new MemoryStorage(), resources: [ORDERS as ResourceDefinition] });
    servers.push(server);
    const abort = new AbortController();
    const options = end === 'server without a signal' ? {} : { signal: abort.signal };
    const watch = await server.resource<Mutable>('orders.example.com/v1').watch(options);
    const next = watch.next();
    if (end === 'signal') abort.abort();
    else await server.shutdown();
    expect((await next).done).toBe(true);
  }
});

it('keeps no process alive, also if nobody shuts its server down', async () => {
  const timers = vi.spyOn(globalThis, 'setTimeout');
  const cleared = vi.spyOn(globalThis, 'clearTimeout');
  const all = orders('cached');
  await all.create({ metadata: { name: 'a' } });
  await all.list();
  const over = new Set<unknown>(cleared.mock.calls.map(([timer]) => timer));
  const left = timers.mock.results.map(({ value }) => value as NodeJS.Timeout).filter((timer) => !over.has(timer));
  timers.mockRestore();
  cleared.mockRestore();
  expect(left.length).toBeGreaterThan(0);
  expect(left.filter((timer) => timer.hasRef())).toEqual([]);
});

it('a server is a source of an informer factory, of all namespaces or of one', async () => {
  const server = new ApiServer({ storage: new MemoryStorage(), resources: [ORDERS as ResourceDefinition] });
  servers.push(server);
  for (const namespace of ['one', 'two']) {
    const all = server.resource<Mutable>('orders.example.com/v1').in(namespace);
    await all.create({ metadata: { name: 'a' } });
  }
  const keys: (readonly string[])[] = [];
  for (const namespace of [undefined, 'two']) {
    const factory = new InformerFactory(server.source, { namespace });
    const informer = factory.informer<Order>('orders.example.com/v1');
    factory.start();
    await factory.waitForSync();
    keys.push(informer.store.keys());
    await factory.shutdown();
  }
  expect(keys).toEqual([['one/a', 'two/a'], ['two/a']]);
});

describe('what is stored', () => {
  const plain: ResourceDefinition<Order> = { group: 'example.com', version: 'v1', plural: 'orders', kind: 'Order' };
  const serve = (definition: ResourceDefinition<Order>, options: object = {}): Resource<Mutable> => {
    const server = new ApiServer({ storage: new MemoryStorage(), resources: [definition as ResourceDefinition], ...options });
    servers.push(server);
    return server.resource<Mutable>('orders.example.com/v1').in('default');
  };

  it.each(['update', 'merge', 'apply'] as const)('shares nothing with what was sent: %s', async (how) => {
    const all = serve(plain);
    await all.create({ metadata: { name: 'a' }, spec: { item: 'x' } });
    const metadata = { name: 'a', labels: { app: 'web' } };
    const sent = { apiVersion: 'example.com/v1', kind: 'Order', metadata, spec: { item: 'x', count: 1 } };
    if (how === 'update') await all.update(sent);
    else await all.patch('a', sent, { type: how, fieldManager: 'us', ...(how === 'apply' && { force: true }) });
    Object.assign(sent.spec, { count: 9 });
    Object.assign(metadata.labels, { app: 'other' });
    expect(await all.get('a')).toMatchObject({ metadata: { labels: { app: 'web' } }, spec: { count: 1 } });
  });

  const spoil = (old: unknown): object => Object.assign((old as Mutable | undefined)?.spec ?? {}, { item: 'spoilt' });
  const refusal = [{ field: 'spec', message: 'Forbidden: no' }];
  it.each<[string, () => Resource<Mutable>]>([
    ['validate of a definition', () => serve({ ...plain, validate: (_, old) => old && spoil(old) && refusal })],
    [
      'a hook',
      () =>
        serve(plain, {
          admission: {
            validate({ oldObject, deny }: AdmissionReview) {
              spoil(oldObject);
              if (oldObject) deny('no');
            },
          },
        }),
    ],
  ])('is not what %s makes of it that refuses a change', async (_, make) => {
    const all = make();
    await all.create({ metadata: { name: 'a' }, spec: { item: 'x' } });
    await expect(all.patch('a', { metadata: { labels: { app: 'web' } } })).rejects.toThrow(/no/);
    expect((await all.get('a')).spec).toEqual({ item: 'x' });
  });
});

it('what JSON does not have is refused, with its path, and no null takes its place', async () => {
  const all = orders('plain');
  const metadata = { name: 'a' };
  await all.create({ metadata, spec: { count: 2 } });
  const cycle: Record<string, unknown> = { metadata };
  cycle.self = cycle;
  const failing = [
    [all.patch('a', { spec: { count: 0 / 0 } }), 'patch.spec.count: expected a value that JSON has'],
    [all.create({ metadata, spec: { count: 1 / 0 } }), 'object.spec.count: expected a value that JSON has'],
    [all.update({ metadata, spec: { count: 1n as never } }), 'object.spec.count: expected a value that JSON has'],
    [all.create(cycle as never), expect.stringContaining('object: Converting circular structure')],
  ] as const;
  for (const [write, message] of failing) await expect(write).rejects.toMatchObject({ code: 'INVALID_ARGUMENT', message });
  expect((await all.get('a')).spec).toEqual({ count: 2 });
});
