// What a reconcile of an operator applies: on an API server in the same process, with a fake clock.
import { describe, expect, it } from 'vitest';
import { controller, kind } from '../../src/operator/index.ts';
import { refused } from '../../src/storage/statuses.ts';
import { testOperator } from '../../src/testing/test-operator.ts';
import { CONFIG_MAP, ORDER, order, settle, started, world } from './operator-rig.ts';

describe('apply of what is owned', () => {
  it('applies nothing that another owner controls, and says so: two controllers do not fight', async () => {
    const { orders, maps, operator, clock, told } = world();
    for (const name of ['a', 'b']) await orders.create(order(name));
    let isQuiet = true;
    const both = operator().controller({
      for: ORDER,
      owns: [CONFIG_MAP],
      reconcile: async ({ apply, name }) => {
        if (name === 'b' && isQuiet) return;
        await apply(CONFIG_MAP, { metadata: { name: 'shared' }, data: { of: name } });
      },
    });
    const { stop } = await started(both);
    expect([(await maps.get('shared')).data, told]).toEqual([{ of: 'a' }, []]);
    const { metadata } = await maps.get('shared');
    isQuiet = false;
    await orders.patch('b', { spec: { item: 'salt' } });
    await settle();
    const refused = 'owner: expected Order a, which controls the object already, got "Order b"';
    expect(told).toEqual([`reconcile orders default/b 1: ${refused}`]);
    await clock.advanceAsync(15);
    expect(told.slice(1)).toEqual([2, 3].map((at) => `reconcile orders default/b ${at}: ${refused}`));
    const after = await maps.get('shared');
    expect([after.data, after.metadata?.resourceVersion]).toEqual([{ of: 'a' }, metadata?.resourceVersion]);
    await stop();
  });

  it.each([{ isThere: false }, { isThere: true }])(
    'takes nothing over from another owner that applies it at the same moment ($isThere: there before)',
    async ({ isThere }) => {
      const { orders, maps, operator, clock, told } = world();
      for (const name of ['a', 'b']) await orders.create(order(name));
      if (isThere) await maps.create({ metadata: { name: 'shared' }, data: { of: 'nobody' } });
      const done: string[] = [];
      const { stop } = await started(
        operator().controller({
          for: ORDER,
          owns: [CONFIG_MAP],
          concurrency: 2,
          reconcile: async ({ apply, name }) => {
            await apply(CONFIG_MAP, { metadata: { name: 'shared' }, data: { of: name } });
            done.push(name);
          },
        }),
      );
      await clock.advanceAsync(20);
      const [winner] = done;
      expect([new Set(done), (await maps.get('shared')).data]).toEqual([new Set([winner]), { of: winner }]);
      expect(told[0]).toContain(`owner: expected Order ${winner}, which controls the object already`);
      await stop();
    },
  );

  it('may be called again in the same reconcile, before the cache knows', async () => {
    const { orders, server, cluster, maps, operator, told } = world();
    await orders.create(order('a'));
    let tell = (): void => {};
    const isTold = new Promise<void>((resolve) => {
      tell = resolve;
    });
    const resource = server.resource('configmaps');
    const watch: typeof resource.watch = (options = {}) =>
      options.sendInitialEvents
        ? Promise.reject(refused(422, 'Invalid', 'it has lists'))
        : isTold.then(() => server.resource('configmaps').watch(options));
    const kind: typeof cluster.kind = async (name, options) =>
      String(name).startsWith('configmaps') ? (Object.assign(resource, { watch }) as never) : cluster.kind(name, options);
    const seen: unknown[] = [];
    const { stop } = await started(
      operator({ cluster: { ...cluster, kind } }).controller({
        for: ORDER,
        owns: [CONFIG_MAP],
        reconcile: async ({ apply, get }) => {
          for (const of of ['one', 'two']) await apply(CONFIG_MAP, { data: { of } });
          seen.push(get(CONFIG_MAP, 'default/a'));
        },
      }),
    );
    expect([(await maps.get('a')).data, told, seen]).toEqual([{ of: 'two' }, [], [undefined]]);
    tell();
    await stop();
  });

  it('says so if the answer has another owner, which the cache did not know', async () => {
    const { orders, server, cluster, operator, told } = world();
    await orders.create(order('a'));
    const { metadata: { uid = '' } = {} } = await orders.create(order('b'));
    const reference = { apiVersion: 'example.com/v1', kind: 'Order', name: 'b', uid, controller: true };
    const resource: typeof cluster.resource = (type) => {
      const client = server.resource(type);
      const patch = async (): Promise<never> => ({ metadata: { name: 'a', ownerReferences: [reference] } }) as never;
      return Object.assign(client, { in: () => Object.assign(client, { patch }), patch }) as never;
    };
    const { stop } = await started(
      operator({ cluster: { ...cluster, kind: async (type) => resource(type as never) as never } }).controller({
        for: { kind: ORDER, when: (_, object) => object?.metadata?.name === 'a' },
        owns: [CONFIG_MAP],
        reconcile: async ({ apply }) => void (await apply(CONFIG_MAP, { data: { of: 'a' } })),
      }),
    );
    expect(told).toEqual([
      'reconcile orders default/a 1: owner: expected Order b, which controls the object already, got "Order a"',
    ]);
    await stop();
  });
});

it('what it owns has a name that is known before, and JSON has its values', async () => {
  const { orders, operator, told } = world();
  await orders.create(order('a'));
  const given: readonly object[] = [
    { metadata: { generateName: 'a-' } },
    { data: new Map([['a', 'b']]) },
    { data: { a: [{}, new Set()] } },
  ];
  const { stop } = await started(
    operator().controller({
      for: ORDER,
      owns: [CONFIG_MAP],
      reconcile: async ({ apply }) => {
        for (const each of given) await apply(CONFIG_MAP, each).catch((error: Error) => void told.push(error.message));
      },
    }),
  );
  expect(told).toEqual([
    'object.metadata.generateName: expected none: apply needs the name, and `create` generates one, got "a-"',
    'patch.data: expected a value that JSON has',
    'patch.data.a[1]: expected a value that JSON has',
  ]);
  await stop();
});

it('the controller of a cluster-scoped kind says in which namespace its object is; no other owns a cluster-scoped one', async () => {
  const scopes = { Team: false, Member: true };
  const [TEAMS, MEMBERS] = Object.entries(scopes).map(([of, namespaced]) =>
    kind({ ...{ group: 'example.com', version: 'v1', plural: `${of.toLowerCase()}s` }, kind: of, namespaced }),
  ) as [ReturnType<typeof kind>, ReturnType<typeof kind>];
  const said: string[] = [];
  const owner = (own: typeof TEAMS, other: typeof TEAMS) =>
    controller({
      ...{ for: own, owns: [other] },
      reconcile: async ({ object, apply }) => {
        if (object) await apply(other, {}).catch((error: Error) => void said.push(error.message));
      },
    });
  await using test = await testOperator({ controllers: [owner(TEAMS, MEMBERS), owner(MEMBERS, TEAMS)] });
  await test.resource(TEAMS).create({ metadata: { name: 'a' } } as never);
  await test.settled();
  await test
    .resource(MEMBERS)
    .in('default')
    .create({ metadata: { name: 'b' } } as never);
  await test.settled();
  expect(said).toEqual([
    expect.stringMatching(/^object\.metadata\.namespace: expected one, because a, its owner, has none, got/),
    expect.stringMatching(
      /^object\.kind: expected a namespaced kind: default\/b can own only what is in its namespace, got "Team"$/,
    ),
  ]);
});

it('what the controller does not own has to say where it is', async () => {
  const { orders, operator, told } = world();
  await orders.create(order('a'));
  const given = [{}, { metadata: { name: 'x' } }];
  const { stop } = await started(
    operator().controller({
      for: ORDER,
      reads: [CONFIG_MAP],
      reconcile: async ({ apply }) => {
        for (const each of given) await apply(CONFIG_MAP, each).catch((error: Error) => void told.push(error.message));
        await apply(ORDER, {}).catch((error: Error) => void told.push(error.message));
      },
    }),
  );
  const expected = (kind: string): string =>
    `expected one, because the controller's "owns" does not list ${kind}: only objects that it owns get a name, a namespace and an owner, got`;
  expect(told).toEqual([
    `object.metadata.name: ${expected('configmaps/v1')} undefined`,
    `object.metadata.namespace: ${expected('configmaps/v1')} undefined`,
    `object.metadata.name: ${expected('orders.example.com/v1')} undefined`,
  ]);
  await stop();
});
