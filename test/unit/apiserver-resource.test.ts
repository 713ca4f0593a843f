// A resource of a server in process, used as one of a cluster is: objects are read, changed and sent back.
import { afterEach, describe, expect, it, vi } from 'vitest';
import { ApiServer, type Resource, type ResourceDefinition } from '../../src/apiserver/index.ts';
import { InformerFactory } from '../../src/cache/index.ts';
import { MemoryStorage } from '../../src/storage/index.ts';
import { ORDERS, type Order } from './apiserver-rig.ts';

type Mutable = { -readonly [Name in keyof Order]: Order[Name] };

const servers: ApiServer[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) await server.shutdown();
});

function orders(cache: boolean): Resource<Mutable> {
  const server = new ApiServer({ storage: new MemoryStorage(), resources: [ORDERS as ResourceDefinition], cache });
  servers.push(server);
  return server.resource<Mutable>('orders.example.com/v1').in('default');
}

describe.each([true, false])('cache: %s', (cache) => {
  const answers: [string, (of: Resource<Mutable>, first: Mutable) => Promise<Mutable | undefined>][] = [
    ['create', async (_, first) => first],
    ['get', (of) => of.get('a')],
    ['get, any version', (of) => of.get('a', { resourceVersion: '0' })],
    ['update', (of, first) => of.update({ ...first, spec: { count: 7 } })],
    ['patch', (of) => of.patch('a', { spec: { count: 7 } })],
    ['delete', (of) => of.delete('a')],
  ];
  it.each(answers)('what %s resolves with may be changed and written', async (_, answer) => {
    const all = orders(cache);
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
    const all = orders(cache);
    const { metadata } = await all.create({ metadata: { name: 'a' } });
    const misspelt = { preconditions: { version: '1' } as never };
    await expect(all.delete('a', misspelt)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
    await all.delete('a', { preconditions: { resourceVersion: metadata?.resourceVersion } });
  });
});

it('keeps no process alive, also if nobody shuts its server down', async () => {
  const timers = vi.spyOn(globalThis, 'setTimeout');
  const all = orders(true);
  await all.create({ metadata: { name: 'a' } });
  await all.list();
  const left = timers.mock.results.map(({ value }) => value as NodeJS.Timeout);
  timers.mockRestore();
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
