// What an operator's controllers hear of, and what they read and write: on an API server in the same process, with a fake clock.
import { describe, expect, it } from 'vitest';
import type { ListWatchOptions } from '../../src/cache/index.ts';
import type { When } from '../../src/operator/index.ts';
import { PullWatch } from '../../src/watch/pull-watch.ts';
import type { Order } from './apiserver-rig.ts';
import { CONFIG_MAP, type ConfigMap, ORDER, order, settle, started, world } from './operator-rig.ts';
import { fate, thrown } from './support.ts';

const noop = (): void => {};
const uidOf = ({ metadata }: Order): string => metadata?.uid as string;
const ownedBy = (owner: Order, more: object = {}) => ({
  ...{ apiVersion: 'example.com/v1', kind: 'Order', name: owner.metadata?.name, uid: uidOf(owner), controller: true },
  ...more,
});
const mapOf = (name: string, reference: object): ConfigMap => ({ metadata: { name, ownerReferences: [reference] } });

describe('an operator', () => {
  it('brings about what its objects say, and says so in their status', async () => {
    const { orders, maps, operator, clock, told } = world();
    const shop = operator().controller({
      for: ORDER,
      owns: [CONFIG_MAP],
      reconcile: async ({ object, apply, owned, updateStatus }) => {
        if (!object) return;
        await apply(CONFIG_MAP, { data: { item: object.spec?.item ?? 'none' } });
        await updateStatus((draft) => {
          draft.status = { phase: owned(CONFIG_MAP).length > 0 ? 'Done' : 'New' };
        });
      },
    });
    const { stop } = await started(shop);
    await orders.create(order('a'));
    await settle();
    expect(await maps.get('a')).toMatchObject({
      data: { item: 'tea' },
      metadata: {
        namespace: 'default',
        ownerReferences: [{ apiVersion: 'example.com/v1', kind: 'Order', name: 'a', controller: true, blockOwnerDeletion: true }],
        managedFields: [{ manager: 'shop', operation: 'Apply' }],
      },
    });
    expect((await orders.get('a')).status).toEqual({ phase: 'Done' });
    await maps.delete('a');
    await settle();
    expect((await maps.get('a')).data).toEqual({ item: 'tea' });
    expect([(await stop()).state, clock.pending, told]).toEqual(['resolved', 0, []]);
  });

  it('maps what it owns to the owner that controls it: by group, kind, namespace and uid', async () => {
    const { orders, maps, start, told } = world();
    const a = await orders.create(order('a'));
    const keys: string[] = [];
    const { stop } = await start({ owns: [CONFIG_MAP], reconcile: ({ key }) => void keys.push(key) });
    const heard = async (): Promise<string[]> => {
      await settle();
      return keys.splice(0);
    };
    expect(await heard()).toEqual(['default/a']);
    await maps.create(mapOf('own', ownedBy(a)));
    expect(await heard()).toEqual(['default/a']);
    await maps.create(mapOf('version', ownedBy(a, { apiVersion: 'example.com/v7' })));
    expect(await heard()).toEqual(['default/a']);
    // Of an owner that is not in the cache: it may be new.
    await maps.create(mapOf('early', ownedBy(a, { name: 'b' })));
    expect(await heard()).toEqual(['default/b']);
    await maps.create(mapOf('group', ownedBy(a, { apiVersion: 'example.org/v1' })));
    await maps.create(mapOf('kind', ownedBy(a, { kind: 'Other' })));
    await maps.create(mapOf('owner', ownedBy(a, { controller: false })));
    await maps.create(mapOf('former', ownedBy(a, { uid: 'of-another-a' })));
    expect(await heard()).toEqual([]);
    await maps.patch('former', { data: { x: 'y' } });
    expect(await heard()).toEqual([]);
    // It was in the way of the one that has the name now.
    await maps.delete('former');
    expect(await heard()).toEqual(['default/a']);
    // Who has had it, and who has it.
    await maps.patch('own', { metadata: { ownerReferences: [ownedBy(a, { name: 'c' })] } });
    expect(await heard()).toEqual(['default/a', 'default/c']);
    await stop();
    expect(told).toEqual([]);
  });

  it('owns objects in namespaces for an owner that is in none', async () => {
    const { server, maps, operator, told } = world();
    const keys: string[] = [];
    const { stop, operator: own } = await started(
      operator().controller({
        for: { apiVersion: 'v1', kind: 'Namespace' },
        owns: [CONFIG_MAP],
        reconcile: async ({ key, name, namespace, apply, object }) => {
          keys.push(`${namespace}|${key}`);
          if (name === 'team' && object) await apply(CONFIG_MAP, { metadata: { namespace: 'default' }, data: { x: '1' } });
        },
      }),
    );
    keys.splice(0);
    await server.resource('namespaces').create({ metadata: { name: 'team' } });
    await settle();
    expect((await maps.get('team')).metadata?.ownerReferences).toMatchObject([
      { apiVersion: 'v1', kind: 'Namespace', name: 'team' },
    ]);
    keys.splice(0);
    await maps.delete('team');
    await settle();
    expect([keys, (await maps.get('team')).data]).toEqual([['|team', '|team'], { x: '1' }]);
    expect([own.state.controllers[0]?.name, told]).toEqual(['namespace', []]);
    await stop();
  });

  it('maps what it watches to keys, with the caches at hand; what throws is told, and concerns one object', async () => {
    const { orders, maps, operator, told } = world();
    await orders.create(order('tea', { spec: { item: 'tea' } }));
    await orders.create(order('salt', { spec: { item: 'salt' } }));
    const keys: string[] = [];
    const { stop } = await started(
      operator().controller({
        for: { kind: ORDER, indexers: { item: ({ spec }) => [spec?.item ?? ''] } },
        watches: [
          {
            kind: CONFIG_MAP,
            keysOf: ({ data, metadata }, { store, get }) => {
              if (metadata?.name === 'bad') throw new Error('no such item');
              if (metadata?.name === 'one') return [`default/${get(ORDER, 'default/salt')?.metadata?.name}`];
              return store(ORDER).indexKeys('item', data?.item ?? '');
            },
          },
        ],
        reconcile: ({ key }) => void keys.push(key),
      }),
    );
    keys.splice(0);
    await maps.create({ metadata: { name: 'm' }, data: { item: 'tea' } });
    await maps.create({ metadata: { name: 'bad' } });
    await maps.create({ metadata: { name: 'one' } });
    await settle();
    expect(keys.splice(0)).toEqual(['default/tea', 'default/salt']);
    expect(told).toEqual(['event orders: no such item']);
    await maps.patch('m', { data: { item: 'salt' } });
    await settle();
    expect(keys).toEqual(['default/tea', 'default/salt']);
    await stop();
  });

  it('reports keys that name no object of its kind, and takes the others', async () => {
    const { orders, maps, operator, told } = world();
    await orders.create(order('tea'));
    const [keys, spaces]: [string[], string[]] = [[], []];
    const wrong = ['tea', '', 'a/b/c', '/tea', 'default/', 5, null];
    const { stop } = await started(
      operator()
        .controller({
          for: ORDER,
          watches: [{ kind: CONFIG_MAP, keysOf: () => [...(wrong as string[]), 'default/tea'] }],
          reconcile: ({ key }) => void keys.push(key),
        })
        .controller({
          for: 'namespaces',
          watches: [{ kind: CONFIG_MAP, keysOf: () => ['default/x', '', 'x'] }],
          reconcile: ({ key }) => void spaces.push(key),
        }),
    );
    keys.splice(0);
    spaces.splice(0);
    await maps.create({ metadata: { name: 'm' } });
    await settle();
    expect([keys, spaces]).toEqual([['default/tea'], ['x']]);
    const shown = ['"tea"', '""', '"a/b/c"', '"/tea"', '"default/"', '5', 'null'];
    const expected = 'keys "namespace/name", because orders.example.com/v1 has namespaces';
    expect(told).toEqual([
      ...shown.map((got) => `event orders configmaps/v1: keysOf: expected ${expected}, got ${got}`),
      ...['"default/x"', '""'].map(
        (got) =>
          `event namespaces configmaps/v1: keysOf: expected names without a namespace, because namespaces/v1 has none, got ${got}`,
      ),
    ]);
    await stop();
  });

  it('reports keys of namespaces that an operator of one does not see: it would take their objects for deleted', async () => {
    const { orders, maps, operator, told } = world();
    await orders.create(order('tea'));
    const keys: string[] = [];
    const { stop } = await started(
      operator({ namespace: 'default' }).controller({
        for: ORDER,
        watches: [{ kind: CONFIG_MAP, keysOf: () => ['other/tea', 'default/tea'] }],
        reconcile: ({ key }) => void keys.push(key),
      }),
    );
    keys.splice(0);
    await maps.create({ metadata: { name: 'm' } });
    await settle();
    expect(keys).toEqual(['default/tea']);
    const expected = 'keys of the namespace default, as this operator sees no other';
    expect(told).toEqual([`event orders configmaps/v1: keysOf: expected ${expected}, got "other/tea"`]);
    await stop();
  });

  it('asks which changes count, with both states; one that throws is told, and counts', async () => {
    const { orders, start, told, clock } = world();
    const heard: string[] = [];
    const phase = (object: Order | undefined): string => object?.spec?.item ?? '-';
    const when: When<Order> = (old, object, event) => {
      heard.push(`${event} ${phase(old)} ${phase(object)}${old === object ? ' same' : ''}`);
      if (phase(object) === 'bad') throw new Error('bad item');
      return phase(object) !== 'quiet';
    };
    const keys: string[] = [];
    const { stop } = await start({ for: { kind: ORDER, when }, resyncMs: 60_000, reconcile: ({ key }) => void keys.push(key) });
    await orders.create(order('a'));
    await settle();
    await orders.patch('a', { spec: { item: 'quiet' } });
    await settle();
    expect(keys.splice(0)).toEqual(['default/a']);
    await orders.patch('a', { spec: { item: 'bad' } });
    await settle();
    await clock.advanceAsync(60_000);
    await settle();
    expect(keys.splice(0)).toEqual(['default/a', 'default/a']);
    await orders.delete('a');
    await settle();
    expect(heard).toEqual(['ADDED - tea', 'MODIFIED tea quiet', 'MODIFIED quiet bad', 'MODIFIED bad bad same', 'DELETED bad -']);
    expect(told).toEqual(Array(2).fill('event orders orders.example.com/v1: bad item'));
    await stop();
  });

  it('sees an object that has replaced another as one that goes and one that comes', async () => {
    const { orders, start } = world();
    const heard: string[] = [];
    const { operator, stop } = await start({
      for: {
        kind: ORDER,
        when: (_old, object, event) => {
          heard.push(`${event} ${object?.metadata?.name ?? '-'}`);
          return false;
        },
      },
    });
    await operator.idle();
    await orders.create(order('a'));
    await settle();
    heard.splice(0);
    // Both changes are in the handler's queue before it reads the first, and are folded into one.
    await Promise.all([orders.delete('a'), orders.create(order('a'))]);
    await settle();
    expect(heard).toEqual(['DELETED -', 'ADDED a']);
    await stop();
  });

  it('has one cache per kind, whatever it is called, with everybody\u2019s indexes', async () => {
    const { orders, maps, operator, watches } = world();
    await orders.create(order('a'));
    await maps.create({ metadata: { name: 'm' }, data: { item: 'tea' } });
    const item = ({ data }: ConfigMap): string[] => [data?.item ?? ''];
    const seen: unknown[] = [];
    const own = operator();
    own.controller({
      for: ORDER,
      reads: [CONFIG_MAP],
      reconcile: ({ store, get }) => {
        seen.push(get({ apiVersion: 'v1', kind: 'ConfigMap' }, 'default/m') === get('configmaps/v1', 'default/m'));
        seen.push(store(CONFIG_MAP).indexNames);
      },
    });
    own.controller({
      name: 'others',
      for: { apiVersion: 'example.com/v1', kind: 'Order' },
      watches: [{ kind: CONFIG_MAP, indexers: { item }, keysOf: () => [] }],
      reads: [{ kind: { apiVersion: 'v1', kind: 'ConfigMap' }, indexers: { item } }],
      reconcile: ({ store }) => void seen.push(store<ConfigMap>('configmaps').byIndex('item', 'tea').length),
    });
    const { stop } = await started(own);
    expect(seen).toEqual([true, ['item'], 1]);
    expect(watches.toSorted()).toEqual(['configmaps', 'orders']);
    expect(own.state.kinds.map(({ kind }) => kind)).toEqual(['orders.example.com/v1', 'configmaps/v1']);
    await stop();
  });

  it.each([0, 1])(
    'keeps objects for which an index function throws, and says so, also if the index comes later (%i)',
    async (late) => {
      const { orders, maps, operator, cluster, told, clock } = world();
      await orders.create(order('a'));
      for (const name of ['bad', 'good'])
        await maps.create({ metadata: { name }, ...(name === 'good' && { data: { item: 'tea' } }) });
      let fails = late;
      const kind: typeof cluster.kind = async (name, options) => {
        if (typeof name === 'object' && fails-- > 0) throw new Error('503');
        return cluster.kind(name, options);
      };
      const item = ({ data }: ConfigMap): string[] => [(data as { item: string }).item.toString()];
      const seen: unknown[] = [];
      const own = operator({ cluster: { ...cluster, kind } })
        .controller({ for: ORDER, reads: [CONFIG_MAP], reconcile: noop })
        .controller({
          name: 'indexed',
          for: ORDER,
          reads: [{ kind: { apiVersion: 'v1', kind: 'ConfigMap' }, indexers: { item } as never }],
          reconcile: ({ store }) => {
            const found = store<ConfigMap>(CONFIG_MAP);
            seen.push(found.size, found.byIndex('item', 'tea').length);
          },
        });
      const { run, stop } = await started(own);
      await clock.advanceAsync(1_000);
      await settle();
      expect([run.state, seen]).toEqual(['pending', [2, 1]]);
      expect(told.filter((text) => !text.includes('503'))).toEqual([
        expect.stringContaining('source configmaps/v1: index item of default/bad: TypeError: Cannot read'),
      ]);
      await stop();
    },
  );

  it('refuses two indexes of one name', async () => {
    const { operator } = world();
    const clash = operator().controller({ for: { kind: ORDER, indexers: { x: () => ['1'] } }, reconcile: noop });
    const again = (): unknown =>
      clash.controller({ name: 'b', for: { kind: ORDER, indexers: { x: () => ['2'] } }, reconcile: noop });
    expect(thrown(again)).toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: expect.stringContaining('indexers: expected a name'),
    });
    // Under two names of the kind, only the server knows that they clash.
    const late = operator()
      .controller({ for: { kind: ORDER, indexers: { x: () => ['1'] } }, reconcile: noop })
      .controller({
        name: 'b',
        for: { kind: { apiVersion: 'example.com/v1', kind: 'Order' }, indexers: { x: () => ['2'] } },
        reconcile: noop,
      });
    const { run } = await started(late);
    expect(run.error).toMatchObject({ code: 'INVALID_ARGUMENT', message: expect.stringContaining('indexers: expected a name') });
  });

  it('lets a controller read only the kinds that it waits for', async () => {
    const { orders, operator, told } = world();
    await orders.create(order('a'));
    const { stop } = await started(
      operator()
        .controller({ for: ORDER, reconcile: ({ get }) => void get(CONFIG_MAP, 'default/m') })
        .controller({ name: 'maps', for: CONFIG_MAP, reconcile: noop }),
    );
    expect(told).toEqual([
      'reconcile orders default/a 1: kind: expected a kind that the controller is for, owns, watches or reads, got "configmaps/v1"',
    ]);
    await stop();
  });

  it('gives objects of lists their apiVersion and kind, and leaves others as they are', async () => {
    const { operator, cluster, clock } = world();
    const bare = { metadata: { name: 'a', namespace: 'default', uid: 'u', resourceVersion: '1' } };
    const source = {
      ...cluster,
      resource: () => ({
        ...{ type: { group: 'example.com', version: 'v1', plural: 'orders', kind: 'Order', namespaced: true } },
        list: async () => ({ items: [bare], resourceVersion: '1' }),
        watch: async ({ sendInitialEvents }: { sendInitialEvents?: boolean } = {}) => {
          if (sendInitialEvents) throw new Error('not here');
          return new Promise<never>(noop);
        },
      }),
    } as never;
    const seen: unknown[] = [];
    const { stopper } = await started(
      operator({ cluster: source }).controller({
        for: { group: 'example.com', version: 'v1', plural: 'orders', kind: 'Order', namespaced: true },
        reconcile: ({ object }) => void seen.push(object),
      }),
    );
    await clock.advanceAsync(10_000);
    expect(seen).toEqual([{ apiVersion: 'example.com/v1', kind: 'Order', ...bare }]);
    stopper.abort();
  });

  it('does not begin with a state of the past, such as a cache of the server may have, also if it cannot have a stream', async () => {
    const { operator, clock } = world();
    const gone = { metadata: { name: 'a', namespace: 'default', uid: 'u', resourceVersion: '1', finalizers: ['example.com/f'] } };
    const type = { group: 'example.com', version: 'v1', plural: 'orders', kind: 'Order', namespaced: true } as const;
    const source = {
      resource: () => ({
        type,
        list: async ({ resourceVersion }: { resourceVersion?: string } = {}) =>
          resourceVersion === '0' ? { items: [gone], resourceVersion: '1' } : { items: [], resourceVersion: '9' },
        watch: async ({ sendInitialEvents }: { sendInitialEvents?: boolean } = {}) => {
          if (sendInitialEvents) throw new Error('not here');
          return new Promise<never>(noop);
        },
      }),
    } as never;
    const seen: string[] = [];
    const reconcile = ({ key }: { key: string }): void => void seen.push(key);
    const { operator: running, stopper } = await started(operator({ cluster: source }).controller({ for: type, reconcile }));
    await clock.advanceAsync(10_000);
    expect(seen).toEqual([]);
    expect(running.state.kinds).toMatchObject([{ synced: true, resourceVersion: '9' }]);
    stopper.abort();
  });
});

/** A cluster whose watches of config maps can be held back. */
function lag(cluster: ReturnType<typeof world>['cluster']) {
  let gate: Promise<void> | undefined;
  const kind = async (...args: Parameters<typeof cluster.kind>) => {
    const resource = await cluster.kind(...args);
    if (resource.type.plural !== 'configmaps') return resource;
    const watch = resource.watch.bind(resource);
    const slow = async (more?: ListWatchOptions): Promise<unknown> => {
      const events = await watch(more);
      const each = events[Symbol.asyncIterator]();
      const pull = async (): Promise<never> => {
        const next = await each.next();
        await gate;
        return next as never;
      };
      return new PullWatch({ pull, cancel: () => events.stop() });
    };
    return Object.assign(resource, { watch: slow });
  };
  const close = (): (() => void) => {
    let open = noop;
    gate = new Promise((resolve) => {
      open = resolve;
    });
    return open;
  };
  return { lagging: { ...cluster, kind: kind as typeof cluster.kind }, close };
}

describe('a request', () => {
  it('reads its own writes: a key runs again only when the cache has them', async () => {
    const { orders, start, clock } = world();
    await orders.create(order('a'));
    const runs: unknown[] = [];
    const { stop } = await start({
      reads: [CONFIG_MAP],
      reconcile: async ({ key, resource, get, attempt }) => {
        const before = get(CONFIG_MAP, key)?.data?.n ?? '0';
        runs.push([before, attempt]);
        const next = { metadata: { name: 'a' }, data: { n: String(Number(before) + 1) } };
        const client = resource(CONFIG_MAP).in('default');
        if (before === '0') await client.create(next);
        else if (before === '1') await client.update(next);
        else if (before === '2') await client.patch('a', { data: { n: '3' } });
        if (Number(before) < 3) throw new Error('once more');
      },
    });
    await clock.advanceAsync(1_000);
    expect(runs).toEqual([
      ['0', 1],
      ['1', 2],
      ['2', 3],
      ['3', 4],
    ]);
    await stop();
  });

  it('does not run again before the caches have lost what it has deleted, however it was', async () => {
    const { orders, maps, operator, cluster, told, clock } = world();
    const { lagging, close } = lag(cluster);
    for (const name of ['a', 'b', 'c', 'd'])
      await maps.create({ metadata: { name, labels: { all: name > 'b' ? 'yes' : 'no' } } });
    const seen: unknown[] = [];
    const own = operator({ cluster: lagging }).controller({
      for: ORDER,
      reads: [CONFIG_MAP],
      reconcile: async ({ store, resource }) => {
        seen.push(store(CONFIG_MAP).keys().join());
        const all = resource(CONFIG_MAP);
        if (seen.length > 1) return;
        await all.create({ metadata: { name: 'e', namespace: 'default' } });
        for (const name of ['a', 'e']) await all.delete(`default/${name}`);
        await all.in('default').delete('b', { dryRun: true });
        await all.in('default').deleteCollection({ labelSelector: 'all=yes' });
      },
    });
    const { stop } = await started(own);
    const open = close();
    await orders.create(order('a'));
    await settle();
    await orders.patch('a', { spec: { item: 'salt' } });
    await settle();
    expect(seen).toHaveLength(1);
    open();
    await settle();
    expect(seen[1]).toBe('default/b');
    await orders.create(order('b'));
    await settle();
    expect([seen.length, told, own.state.controllers[0]?.inWork, clock.pending > 0]).toEqual([3, [], 0, true]);
    expect((await stop()).state).toBe('resolved');
    expect(clock.pending).toBe(0);
  });

  it('runs again after ten seconds with a cache that still has what it has deleted, and says so', async () => {
    const { orders, maps, operator, cluster, told, clock } = world();
    const { lagging, close } = lag(cluster);
    await maps.create({ metadata: { name: 'm' } });
    const seen: unknown[] = [];
    const { stop } = await started(
      operator({ cluster: lagging }).controller({
        for: ORDER,
        reads: [CONFIG_MAP],
        reconcile: async ({ resource }) => {
          if (seen.push(clock.now()) === 1) await resource(CONFIG_MAP).delete('default/m');
        },
      }),
    );
    const open = close();
    await orders.create(order('a'));
    await settle();
    await orders.patch('a', { spec: { item: 'salt' } });
    await clock.advanceAsync(10_000);
    expect([seen, told]).toEqual([
      [0, 10_000],
      ['wrote orders default/a: the cache of configmaps/v1 has default/m 10000 ms after it was deleted'],
    ]);
    open();
    await stop();
    expect(clock.pending).toBe(0);
  });

  it('waits for what it has written of any kind that the operator follows', async () => {
    const { orders, operator, cluster } = world();
    const { lagging, close } = lag(cluster);
    const seen: string[] = [];
    const own = operator({ cluster: lagging })
      .controller({
        for: ORDER,
        reconcile: async ({ apply }) => void (await apply(CONFIG_MAP, { metadata: { name: 'm', namespace: 'default' } })),
      })
      .controller({ for: CONFIG_MAP, reconcile: ({ key }) => void seen.push(key) });
    const { stop } = await started(own);
    const open = close();
    await orders.create(order('a'));
    await settle();
    const settled = fate(own.idle());
    await settle();
    expect([settled.state, seen]).toEqual(['pending', []]);
    open();
    await settle();
    expect([settled.state, seen]).toEqual(['resolved', ['default/m']]);
    await stop();
  });

  it('writes in the operator\u2019s name, and waits for each kind of write, but for dry runs and other namespaces', async () => {
    const { orders, maps, server, operator, told } = world();
    await server.resource('namespaces').create({ metadata: { name: 'other' } });
    await orders.create(order('a'), { fieldManager: 'user' });
    await maps.create({ metadata: { name: 'held', finalizers: ['example.com/x'] } });
    const versions: unknown[] = [];
    const named = operator({ namespace: 'default' }).controller({
      for: ORDER,
      reads: [CONFIG_MAP],
      reconcile: async ({ resource, store, object }) => {
        if (object?.status) return;
        const all = resource(CONFIG_MAP);
        expect(all.type.kind).toBe('ConfigMap');
        const at = all.in('default');
        expect([at.namespace, (await at.list()).items.length]).toEqual(['default', 1]);
        await at.create({ metadata: { name: 'tried' } }, { dryRun: true });
        await at.create({ metadata: { name: 'm' } });
        await at.patch('m', { data: { by: 'me' } }, { fieldManager: 'someone' });
        await at.delete('m');
        await all.create({ metadata: { name: 'm', namespace: 'other' }, data: { x: '1' } });
        const { metadata } = (await at.delete('held')) ?? {};
        versions.push(metadata?.resourceVersion, store(CONFIG_MAP).resourceVersion);
        const orderly = resource(ORDER);
        await orderly.subresource('status').update({ ...(await orderly.get('default/a')), status: { phase: 'Seen' } });
      },
    });
    const { stop, operator: own } = await started(named);
    await own.idle();
    expect(told).toEqual([]);
    const { managedFields } = (await orders.get('a')).metadata ?? {};
    expect(managedFields).toContainEqual(expect.objectContaining({ manager: 'shop', subresource: 'status' }));
    expect(await server.resource('configmaps').in('other').get('m')).toMatchObject({
      metadata: { managedFields: [{ manager: 'shop' }] },
    });
    expect([versions.length, told]).toEqual([2, []]);
    expect((await stop()).state).toBe('resolved');
  });

  it('applies what is owned in the owner\u2019s name and namespace, and anything else as it is', async () => {
    const { orders, maps, operator, told } = world();
    await orders.create(order('a'));
    const { stop } = await started(
      operator()
        .controller({
          for: ORDER,
          owns: [CONFIG_MAP],
          reconcile: async ({ apply, object, name }) => {
            if (!object) await apply(CONFIG_MAP, { metadata: { name: 'late' } });
            const made = await apply(CONFIG_MAP, { metadata: { name: `${name}-1` }, data: { x: '1' } });
            expect(made).toMatchObject({ kind: 'ConfigMap', metadata: { name: 'a-1', namespace: 'default' } });
          },
        })
        .controller({
          name: 'free',
          for: ORDER,
          reads: [CONFIG_MAP],
          reconcile: async ({ apply }) => {
            await apply(
              'configmaps',
              { metadata: { name: 'free', namespace: 'default' }, data: { x: '1' } },
              { fieldManager: 'f' },
            );
          },
        }),
    );
    expect((await maps.get('a-1')).metadata?.ownerReferences).toMatchObject([{ kind: 'Order', name: 'a' }]);
    const { metadata } = await maps.get('free');
    expect([metadata?.ownerReferences, metadata?.managedFields]).toMatchObject([undefined, [{ manager: 'f' }]]);
    expect(told).toEqual([]);
    await orders.delete('a');
    await settle();
    expect(told[0]).toContain('reconcile orders default/a 1: 404 NotFound: default/a is gone');
    await stop();
  });

  it('writes a status that differs, also twice in one run, and after a conflict with the newest state', async () => {
    const { orders, start, told } = world();
    await orders.create(order('a'));
    let runs = 0;
    const phases: unknown[] = [];
    const { stop } = await start({
      reconcile: async ({ updateStatus, object }) => {
        if (object?.status?.phase === 'Two') return;
        runs++;
        if (runs === 1) await orders.patch('a', { metadata: { labels: { changed: 'meanwhile' } } });
        const first = await updateStatus((draft) => {
          draft.status = { phase: 'One' };
        });
        const second = await updateStatus((draft) => {
          phases.push(draft.status?.phase);
          draft.status = { phase: 'Two' };
        });
        expect([first.status, second.status, object?.status]).toEqual([{ phase: 'One' }, { phase: 'Two' }, object?.status]);
      },
    });
    await settle();
    expect([told, phases[0], (await orders.get('a')).status]).toEqual([[], 'One', { phase: 'Two' }]);
    await stop();
  });

  it('finds what an object controls by uid, and tells of it in its name', async () => {
    const { orders, maps, start, server, lines } = world();
    const a = await orders.create(order('a'));
    await maps.create(mapOf('own', ownedBy(a)));
    await maps.create(mapOf('former', ownedBy(a, { uid: 'of-another-a' })));
    await maps.create(mapOf('shared', ownedBy(a, { controller: false })));
    const found: unknown[] = [];
    const { stop } = await start({
      reads: [CONFIG_MAP],
      reconcile: ({ owned, log, events, object }) => {
        found.push(owned(CONFIG_MAP).map(({ metadata }) => metadata?.name));
        log.info('seen');
        events.normal('Seen', 'there it is');
        if (!object) events.warning('Gone', 'about nothing');
      },
    });
    await orders.delete('a');
    await settle();
    expect([found, lines]).toEqual([[['own'], []], Array(2).fill('info: orders default/a: seen')]);
    await stop();
    const { items } = await server.resource('events.events.k8s.io/v1').list();
    expect(items).toMatchObject([{ reason: 'Seen', note: 'there it is', reportingController: 'shop', regarding: { name: 'a' } }]);
  });

  it('names a client of any kind that can be named, and refuses one that cannot', async () => {
    const { orders, start, told, server } = world();
    await orders.create(order('a'));
    const { stop } = await start({
      reconcile: async ({ resource }) => {
        await resource('configmaps').create({ metadata: { name: 'm', namespace: 'default' } });
        resource({ apiVersion: 'v1', kind: 'ConfigMap' });
      },
    });
    expect(await server.resource('configmaps').in('default').get('m')).toBeDefined();
    expect(told).toEqual([expect.stringContaining('kind: expected one that the controller is for, owns, watches or reads')]);
    await stop();
  });
});
