// How an operator begins, leads and ends: on an API server in the same process, with a fake clock.
import { hostname } from 'node:os';
import { describe, expect, it, vi } from 'vitest';
import { Operator, type OperatorOptions, type ReconcileRequest, type ResourceSource } from '../../src/operator/index.ts';
import { refused } from '../../src/storage/statuses.ts';
import { ListenerCount } from '../../src/testing/fakes/fake-clock.ts';
import { type FakeClock, FakeWatcher } from '../../src/testing/index.ts';
import { invalid } from '../../src/watch/errors.ts';
import type { Order } from './apiserver-rig.ts';
import { CONFIG_MAP, ORDER, order, settle, started, world } from './operator-rig.ts';
import { fate, thrown } from './support.ts';

type Lease = { readonly spec: { readonly holderIdentity: string } };

const LEASES = 'leases.coordination.k8s.io/v1';
const noop = (): void => {};

const election = (identity: string, { clock }: ReturnType<typeof world>): Partial<OperatorOptions> => ({
  leaderElection: { identity, now: () => clock.now() + 1e12, random: () => 0 },
});

const pass = async (clock: FakeClock, ms: number): Promise<void> => {
  for (let spent = 0; spent < ms; spent += 100) await clock.advanceAsync(100);
  await settle();
};

describe('the leader among operators', () => {
  it('works alone; another one takes over at once when it stops, with caches that it had before', async () => {
    const all = world();
    const { orders, start, clock, lines, server } = all;
    const runs: string[] = [];
    const reconcile = (who: string) => ({ reconcile: ({ name }: { name: string }) => void runs.push(`${who} ${name}`) });
    const one = await start(reconcile('one'), election('one', all));
    const two = await start(reconcile('two'), election('two', all));
    await orders.create(order('a'));
    await settle();
    expect([runs, one.operator.state.leads, two.operator.state.leads]).toEqual([['one a'], true, false]);
    expect(two.operator.state.kinds).toMatchObject([{ kind: 'orders.example.com/v1', synced: true }]);
    expect(two.operator.state.controllers).toMatchObject([{ working: false }]);
    expect((await one.stop()).state).toBe('resolved');
    for (let i = 0; i < 50; i++) await clock.advanceAsync(100);
    expect([runs, two.operator.state.leads]).toEqual([['one a', 'two a'], true]);
    expect(await server.resource('leases.coordination.k8s.io/v1').in('default').get('shop')).toMatchObject({
      spec: { holderIdentity: 'two' },
    });
    const led = ['info: one leads (this instance)', 'info: one leads', 'info: two leads (this instance)'];
    expect(lines.filter((line) => line.includes('leads'))).toEqual(led);
    await two.stop();
    expect(clock.pending).toBe(0);
  });

  it('does not act on a state older than what its predecessor acted on, however far its caches are behind', async () => {
    const all = world();
    const { orders, start, clock, cluster } = all;
    const runs: string[] = [];
    const reconcile = (who: string) => ({
      reconcile: ({ name, object }: ReconcileRequest<Order>) => void runs.push(`${who} ${name} ${object?.metadata?.uid}`),
    });
    const uids = [(await orders.create(order('a'))).metadata?.uid];
    const one = await start(reconcile('one'), election('one', all));
    const behind: ResourceSource = {
      ...cluster,
      kind: async (...of) => {
        const kind = await cluster.kind(...of);
        // Nothing arrives, as from a server that is unreachable; but it can be asked.
        return Object.assign(kind, { watch: async () => new FakeWatcher<never>() });
      },
      resource: (type) => Object.assign(cluster.resource(type), { watch: async () => new FakeWatcher<never>() }) as never,
    };
    const two = await start(reconcile('two'), { ...election('two', all), cluster: behind });
    for (let i = 0; i < 400; i++) await clock.advanceAsync(100); // it gives up to stream, and lists
    expect(two.operator.state.kinds).toMatchObject([{ synced: true, objects: 1 }]);
    await orders.delete('a');
    uids.push((await orders.create(order('a'))).metadata?.uid);
    await settle();
    await one.stop();
    for (let i = 0; i < 50; i++) await clock.advanceAsync(100);
    await settle();
    expect(runs.filter((run) => run.startsWith('two'))).toEqual([`two a ${uids[1]}`]);
    await two.stop();
    expect(clock.pending).toBe(0);
  });

  /** What a kind of the cluster does, for one of its operators: it may be gone, refused or not be answered for. */
  const fickle = (all: ReturnType<typeof world>, type: string) => {
    const state = { gone: false, list: undefined as (() => Promise<void>) | undefined, kind: async (): Promise<void> => {} };
    const watches = new Set<() => void>();
    const cut = (): void => {
      for (const stop of watches) stop();
    };
    const known = async (...of: Parameters<ResourceSource['kind']>): Promise<never> => {
      const client = await all.cluster.kind(...of);
      if (client.type.plural !== type) return client as never;
      const [list, watch] = [client.list.bind(client), client.watch.bind(client)];
      const served = async (): Promise<void> => {
        if (state.gone) throw refused(404, 'NotFound', 'the server could not find the requested resource');
        await state.list?.();
      };
      return Object.assign(client, {
        list: async (options: object) => served().then(() => list(options)),
        watch: async (options: object) => {
          await served();
          const opened = await watch(options);
          watches.add(() => opened.stop());
          return opened;
        },
      }) as never;
    };
    const kind: ResourceSource['kind'] = async (...of) => {
      const named = await known(...of);
      if ((named as { type: { plural: string } }).type.plural !== type) return named;
      await state.kind();
      if (state.gone) throw invalid('resource', type, 'one that the server has');
      return named;
    };
    return { state, cut, cluster: { ...all.cluster, kind } };
  };

  it('does not count a kind as gone that has come back since it asked', async () => {
    const all = world();
    const { maps, orders, start, clock } = all;
    const seen: unknown[] = [];
    const { state, cut, cluster } = fickle(all, 'configmaps');
    const one = await start({}, election('one', all));
    const two = await start(
      { owns: [CONFIG_MAP], reconcile: ({ get }) => void seen.push(get(CONFIG_MAP, 'default/a')?.data) },
      { ...election('two', all), cluster },
    );
    state.gone = true;
    await pass(clock, 2_000); // a watch that ends sooner is a failure of its own
    cut();
    await pass(clock, 20_000);
    expect(two.operator.state.kinds).toMatchObject([{ synced: true }, { absent: true, synced: false }]);
    state.kind = async () => {
      throw new Error('nobody knows');
    };
    state.gone = false;
    await maps.create({ metadata: { name: 'a' }, data: { of: 'one' } });
    await orders.create(order('a'));
    await one.stop();
    await pass(clock, 5_000);
    expect([two.operator.state.leads, seen]).toEqual([true, []]);
    state.kind = async () => {};
    await pass(clock, 10_000);
    expect(seen).toEqual([{ of: 'one' }]);
    await two.stop();
    expect(clock.pending).toBe(0);
  });

  it('waits for a kind that is gone, and begins without its objects', async () => {
    const all = world();
    const { maps, orders, start, clock } = all;
    const seen: unknown[] = [];
    const { state, cluster } = fickle(all, 'configmaps');
    await maps.create({ metadata: { name: 'a' }, data: { of: 'one' } });
    await orders.create(order('a'));
    const one = await start({}, election('one', all));
    const two = await start(
      { owns: [CONFIG_MAP], reconcile: ({ get }) => void seen.push(get(CONFIG_MAP, 'default/a')) },
      { ...election('two', all), cluster },
    );
    state.gone = true; // and its watch has not heard of that
    await one.stop();
    await pass(clock, 10_000);
    expect([two.operator.state.leads, seen]).toEqual([true, []]);
    await maps.delete('a');
    state.gone = false;
    await pass(clock, 10_000);
    expect(seen).toEqual([undefined]);
    await two.stop();
    expect(clock.pending).toBe(0);
  });

  it('says which kinds it has waited for too long since it began to lead', async () => {
    const all = world();
    const { orders, start, clock, told } = all;
    const { state, cluster } = fickle(all, 'orders');
    const runs: unknown[] = [];
    await orders.create(order('a'));
    const one = await start({}, { ...election('one', all), syncTimeoutMs: 60_000 });
    const two = await start(
      { reconcile: ({ name }) => void runs.push(name) },
      { ...election('two', all), cluster, syncTimeoutMs: 60_000 },
    );
    await pass(clock, 70_000); // both are in time
    expect(told).toEqual([]);
    state.list = async () => {
      throw refused(403, 'Forbidden', 'not for you');
    };
    await one.stop();
    await pass(clock, 59_000);
    expect([two.operator.state.leads, runs, told.filter((text) => text.startsWith('sync'))]).toEqual([true, [], []]);
    expect(told).toContain('source orders.example.com/v1: 403 Forbidden: not for you');
    await pass(clock, 5_000);
    const late = 'sync: orders.example.com/v1 (403 Forbidden: not for you) is not synced after 60000 ms of leading';
    expect(told.filter((text) => text.startsWith('sync'))).toEqual([late]);
    state.list = undefined;
    await pass(clock, 70_000); // the longest delay
    expect(runs).toEqual(['a']);
    await two.stop();
    expect(clock.pending).toBe(0);
  });

  it('waits for the newest state of its latest leadership, and says so', async () => {
    const all = world();
    const { server, start, clock, told } = all;
    const { state, cluster } = fickle(all, 'orders');
    const leases = server.resource('leases.coordination.k8s.io/v1').in('default');
    const { operator, stop } = await start({}, { ...election('one', all), cluster, syncTimeoutMs: 60_000 });
    const answers: (() => void)[] = [];
    state.list = () => new Promise((resolve) => answers.push(resolve));
    for (const _ of ['first', 'second']) {
      const { metadata, spec } = (await leases.get('shop')) as { metadata: object; spec: object };
      await leases.update({ metadata, spec: { ...spec, holderIdentity: 'thief', leaseDurationSeconds: 5 } } as never);
      await pass(clock, 3_000);
      expect(operator.state.leads).toBe(false);
      await pass(clock, 9_000);
      expect(operator.state.leads).toBe(true);
    }
    expect(answers).toHaveLength(1);
    answers[0]?.();
    await pass(clock, 50_000);
    expect([answers.length, told]).toEqual([2, []]);
    await pass(clock, 10_000);
    expect(told).toEqual(['sync: orders.example.com/v1 is not synced after 60000 ms of leading']);
    expect(operator.state.controllers).toMatchObject([{ working: false }]);
    answers[1]?.();
    await pass(clock, 1_000);
    expect(operator.state.controllers).toMatchObject([{ working: true }]);
    await stop();
    expect(clock.pending).toBe(0);
  });

  it('is named after its host, and no two are alike', async () => {
    const { start, server, lines } = world();
    const names: string[] = [];
    for (let i = 0; i < 2; i++) {
      const { stop } = await start({}, { leaderElection: true });
      const { spec } = (await server.resource('leases.coordination.k8s.io/v1').in('default').get('shop')) as unknown as Lease;
      names.push(spec.holderIdentity);
      await stop();
    }
    for (const name of names) expect(name).toMatch(new RegExp(`^${hostname().replaceAll('.', '\\.')}_[0-9a-f]{8}$`));
    expect(new Set(names).size).toBe(2);
    expect(lines).toEqual(names.map((name) => `info: ${name} leads (this instance)`));
  });

  it('that loses the lease stops its work, and competes again with the same caches', async () => {
    const all = world();
    const { orders, start, clock, server, watches, told } = all;
    await orders.create(order('a'));
    const runs: AbortSignal[] = [];
    const leases = server.resource('leases.coordination.k8s.io/v1').in('default');
    const { operator, stop, run } = await start(
      {
        reconcile: ({ signal }) => {
          runs.push(signal);
          return new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
        },
      },
      election('one', all),
    );
    expect([runs.length, operator.state.leads]).toEqual([1, true]);
    const { metadata, spec } = (await leases.get('shop')) as { metadata: object; spec: object };
    await leases.update({ metadata, spec: { ...spec, holderIdentity: 'thief', leaseDurationSeconds: 5 } } as never);
    for (let i = 0; i < 20; i++) await clock.advanceAsync(100);
    expect([runs[0]?.aborted, operator.state.leads, run.state]).toEqual([true, false, 'pending']);
    await orders.create(order('b'));
    for (let i = 0; i < 100; i++) await clock.advanceAsync(100);
    // One more state at the beginning of each leadership: the leader before may have written more.
    expect([runs.length, operator.state.leads, watches, told]).toEqual([2, true, ['orders', 'orders', 'orders'], []]);
    expect((await stop()).state).toBe('resolved');
    expect(clock.pending).toBe(0);
  });

  it('has the namespace of the lease from its options, the operator, or the cluster', async () => {
    const { server, operator, cluster } = world();
    await server.resource('namespaces').create({ metadata: { name: 'elsewhere' } });
    const leases = server.resource('leases.coordination.k8s.io/v1');
    const lead = async (options: Partial<OperatorOptions>): Promise<unknown> => {
      const { stop } = await started(operator(options).controller({ for: ORDER, reconcile: noop }));
      const { items } = await leases.list();
      await stop();
      for (const { metadata } of items) await leases.delete(`${metadata?.namespace}/${metadata?.name}`);
      return items.map(({ metadata }) => `${metadata?.namespace}/${metadata?.name}`);
    };
    expect(await lead({ leaderElection: true })).toEqual(['default/shop']);
    expect(await lead({ leaderElection: { namespace: 'elsewhere', name: 'lock' } })).toEqual(['elsewhere/lock']);
    expect(await lead({ leaderElection: true, namespace: 'elsewhere' })).toEqual(['elsewhere/shop']);
    expect(await lead({ leaderElection: true, cluster: { ...cluster, namespace: 'elsewhere' } as never })).toEqual([
      'elsewhere/shop',
    ]);
  });

  it('gives up work that does not end, and leaves the lease to run out', async () => {
    const all = world();
    const { orders, start, server, clock } = all;
    await orders.create(order('a'));
    const { stopper, run } = await start({ reconcile: () => new Promise(noop) }, election('one', all));
    stopper.abort();
    await clock.advanceAsync(30_000);
    expect(run.error).toMatchObject({ code: 'TIMEOUT', limit: 30_000, message: 'gave up after 30000 ms on orders default/a' });
    expect(await server.resource('leases.coordination.k8s.io/v1').in('default').get('shop')).toMatchObject({
      spec: { holderIdentity: 'one' },
    });
    expect(clock.pending).toBe(0);
  });
});

describe('the end of an operator', () => {
  it('names what it gives up on, by controller', async () => {
    const { orders, operator, clock } = world();
    await orders.create(order('a'));
    await orders.create(order('b'));
    const stuck = operator({ shutdownTimeoutMs: 5_000 })
      .controller({ for: ORDER, concurrency: 2, reconcileTimeoutMs: 600_000, reconcile: () => new Promise(noop) })
      .controller({ name: 'quick', for: ORDER, reconcile: noop });
    const { stopper, run } = await started(stuck);
    stopper.abort();
    await clock.advanceAsync(4_999);
    expect(run.state).toBe('pending');
    await clock.advanceAsync(1);
    expect(run.error).toMatchObject({
      code: 'TIMEOUT',
      limit: 5_000,
      message: 'gave up after 5000 ms on orders default/a, orders default/b',
    });
    expect(clock.pending).toBe(0);
  });

  it('leaves no timer and no listener; it runs once, with a controller', async () => {
    const { orders, clock, operator, server } = world();
    await orders.create(order('a'));
    const own = operator().controller({ for: ORDER, owns: [CONFIG_MAP], reconcile: () => ({ requeueAfterMs: 1_000 }) });
    const stopper = new AbortController();
    const listeners = new ListenerCount(stopper.signal);
    const run = own.run(stopper.signal);
    await settle();
    stopper.abort();
    await run;
    expect([clock.pending, listeners.count]).toEqual([0, 0]);
    await expect(own.run()).rejects.toMatchObject({ code: 'INVALID_ARGUMENT', message: 'an operator runs once' });
    await expect(own.idle()).rejects.toMatchObject({ code: 'CLOSED' });
    expect(thrown(() => own.controller({ for: CONFIG_MAP, reconcile: noop }))).toMatchObject({ code: 'INVALID_ARGUMENT' });
    await expect(operator().run()).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
    own.events.normal({ apiVersion: 'example.com/v1', kind: 'Order', ...(await orders.get('a')) }, 'Late', 'after the end');
    await settle();
    expect([own.events.stats.dropped.closed, clock.pending]).toEqual([1, 0]);
    expect((await server.resource('events/v1').list()).items).toEqual([]);
    // Told before it begins.
    const told = operator().controller({ for: ORDER, reconcile: noop });
    await told.run(AbortSignal.abort());
    expect(clock.pending).toBe(0);
  });

  it('comes with SIGINT or SIGTERM if it gets no signal', async () => {
    const { operator } = world();
    for (const name of ['SIGINT', 'SIGTERM'] as const) {
      const before = process.listeners(name);
      const run = fate(operator().controller({ for: ORDER, reconcile: noop }).run());
      await settle();
      const [listener] = process.listeners(name).filter((each) => !before.includes(each));
      listener?.(name);
      await settle();
      expect([run.state, process.listeners(name)]).toEqual(['resolved', before]);
    }
  });

  it.each(['throws', 'rejects'])('comes with what onError %s', async (how) => {
    const { orders, start, clock } = world();
    await orders.create(order('a'));
    const broken = new Error('broken');
    const { run } = await start(
      {
        reconcile: () => {
          throw new Error('no luck');
        },
      },
      {
        onError: () => {
          if (how === 'rejects') return Promise.reject(broken);
          throw broken;
        },
      },
    );
    expect([run.error, clock.pending]).toEqual([broken, 0]);
  });
});

describe('the beginning of an operator', () => {
  it('waits for all kinds that a controller names, and says which are late and why', async () => {
    const { server, operator, told, clock, cluster } = world();
    const runs: string[] = [];
    const denied = refused(403, 'Forbidden', 'configmaps is forbidden');
    const source = {
      ...cluster,
      resource: (type: string) => (type === 'configmaps/v1' ? maps : server.resource(type)),
      kind: async (type: string) => (type === 'configmaps' ? maps : server.kind(type)),
    };
    const maps = Object.assign(server.resource('configmaps'), {
      list: () => Promise.reject(denied),
      watch: () => Promise.reject(denied),
    });
    const own = operator({ cluster: source as never, syncTimeoutMs: 3_000 })
      .controller({ for: ORDER, reads: [CONFIG_MAP], reconcile: () => void runs.push('orders') })
      .controller({ name: 'widgets', for: 'widgets.example.com/v1', reconcile: noop })
      .controller({ name: 'quick', for: ORDER, reconcile: () => void runs.push('quick') });
    await server.resource('orders.example.com/v1').in('default').create(order('a'));
    const { stop } = await started(own);
    await clock.advanceAsync(3_000);
    expect(runs).toEqual(['quick']);
    expect(told.filter((text) => text.startsWith('sync'))).toEqual([
      'sync: configmaps/v1 (403 Forbidden: configmaps is forbidden), widgets.example.com/v1 (the server does not have it) are not synced after 3000 ms',
    ]);
    expect(own.state.kinds).toMatchObject([{ synced: true }, { synced: false, error: denied }, { synced: false, absent: true }]);
    expect((await stop()).state).toBe('resolved');
    expect(clock.pending).toBe(0);
  });

  it('checks its options', () => {
    const { operator, cluster } = world();
    const wrong = (options: object): unknown => (thrown(() => operator(options as never)) as Error).message;
    expect(wrong({ cluster: {} })).toContain('cluster: expected a Cluster or an ApiServer');
    for (const name of ['No', 'a..b', 'a-.b', '-a', 'a.', 'a'.repeat(64)]) {
      expect(wrong({ name })).toContain('name: expected at most 63 of a-z');
    }
    for (const name of ['a', 'a--b.c-1', 'a'.repeat(63)]) expect(operator({ name }).name).toBe(name);
    expect(wrong({ namespace: '' })).toContain('namespace: expected a non-empty name');
    expect(wrong({ shutdownTimeoutMs: -1 })).toContain('shutdownTimeoutMs: expected a whole number');
    expect(wrong({ syncTimeoutMs: 0.5 })).toContain('syncTimeoutMs: expected a whole number');
    expect(wrong({ nme: 'x' })).toContain('unknown option nme: did you mean name?');
    expect(wrong({ leaderElection: { retryMs: 0 } })).toContain('retryMs: expected a whole number >= 1');
    expect(wrong({ leaderElection: 'yes' })).toBe(
      'leaderElection: expected true, false or an object with its options, got "yes"',
    );
    expect(wrong({ listen: 8080 })).toBe('listen: expected { port, host }, got 8080');
    expect(wrong({ listen: { prt: 1 } })).toContain('unknown option prt: did you mean port?');
    expect(wrong({ listen: { port: '80' } })).toContain('listen.port: expected a whole number >= 0, got "80"');
    expect(wrong({ listen: { port: 70_000 } })).toContain('listen.port: expected at most 65535, got 70000');
    expect(wrong({ listen: { port: 1, host: 1 } })).toContain('listen.host: expected a string, got 1');
    const own = new Operator({ cluster, name: 'shop' });
    const bad = (options: object): unknown => (thrown(() => own.controller(options as never)) as Error).message;
    expect(bad({ for: ORDER })).toContain('reconcile: expected a function');
    expect(bad({ for: 7, reconcile: noop })).toContain('kind: expected');
    for (const name of ['owns', 'watches', 'reads']) {
      expect(bad({ for: ORDER, reconcile: noop, [name]: 'configmaps/v1' })).toBe(`${name}: expected a list, got "configmaps/v1"`);
    }
    expect(bad({ for: ORDER, reconcile: noop, watches: ['configmaps/v1'] })).toBe(
      'watches[0]: expected { kind, keysOf }, got "configmaps/v1"',
    );
    expect(bad({ for: ORDER, reconcile: noop, finalizer: 'x' })).toBe('finalizer: expected { name, finalize }, got "x"');
    expect(bad({ for: { kind: ORDER, wen: noop }, reconcile: noop })).toContain('unknown option wen: did you mean when?');
    expect(bad({ for: ORDER, reconcile: noop, concurrency: 0 })).toContain('concurrency: expected');
    expect(bad({ for: ORDER, reconcile: noop, watches: [{ kind: ORDER }] })).toContain('keysOf: expected a function');
    expect(bad({ for: ORDER, reconcile: noop, finalizer: { name: 'x' } })).toContain('finalizer.finalize: expected a function');
    for (const name of ['', 'a b', 'a/b/c', 'orphan', 'foregroundDeletion'])
      expect(bad({ for: ORDER, reconcile: noop, finalizer: { name, finalize: noop } })).toMatch(
        /^finalizer\.name: expected a name/,
      );
    own.controller({ for: ORDER, reconcile: noop });
    expect(bad({ for: ORDER, reconcile: noop })).toContain('a name that no other controller of the operator has, got "orders"');
    // What was refused is not followed.
    const taken = { name: 'orders', for: 'websites.example.com/v1', reads: [{ kind: ORDER, indexers: { item: () => [] } }] };
    expect(bad({ ...taken, reconcile: noop })).toContain('a name that no other controller');
    own.controller({ name: 'more', for: { kind: ORDER, indexers: { item: () => [] } }, reconcile: noop });
    expect(own.state.kinds.map(({ kind }) => kind)).toEqual(['orders.example.com/v1']);
  });

  it('logs failures by default, each kind once, and that the source works again', async () => {
    const { orders, operator, lines, clock } = world();
    for (const name of ['a', 'b', 'c']) await orders.create(order(name));
    const own = operator({ onError: undefined as never }).controller({
      for: ORDER,
      maxRetries: 1,
      reconcile: async ({ name }) => {
        throw new Error(`no luck with ${name}`);
      },
    });
    const error = vi.spyOn(console, 'error').mockImplementation(noop);
    const { stop } = await started(own);
    await clock.advanceAsync(1_000);
    expect(lines.map((line) => line.replace(/ \(.*/, ''))).toEqual([
      'error: watchmux operator shop: reconcile of orders failed for default/a, attempt 1: Error: no luck with a',
      'error: watchmux operator shop: reconcile of orders finally failed for default/a, attempt 2: Error: no luck with a',
    ]);
    expect(error).not.toHaveBeenCalled();
    error.mockRestore();
    await stop();
  });

  /** An operator whose lease can be out of reach. */
  const reaching = async () => {
    const all = world();
    const { clock, lines, cluster } = all;
    let [away, asked] = [false, 0];
    const leases = all.server.resource(LEASES).in('default');
    const verb = (name: 'get' | 'create' | 'update') => (what: never, options: never) =>
      away ? Promise.reject(new Error(`away ${++asked}`)) : leases[name](what, options);
    const failing = { get: verb('get'), create: verb('create'), update: verb('update') };
    const { stop } = await all.start(
      {},
      {
        onError: undefined as never,
        leaderElection: { identity: 'one', random: () => 0 },
        cluster: { ...cluster, resource: (type) => (type === LEASES ? { in: () => failing } : cluster.resource(type)) as never },
      },
    );
    const outage = async (ms: number): Promise<number> => {
      const before = asked;
      away = true;
      await pass(clock, ms);
      away = false;
      await pass(clock, 5_000);
      return asked - before;
    };
    return { clock, lines, stop, outage };
  };

  it('logs that its lease can be reached again', async () => {
    const { clock, lines, stop, outage } = await reaching();
    const failures = await outage(5_000);
    expect(lines.map((line) => line.replace(/ \(at.*/, ''))).toEqual([
      'info: one leads (this instance)',
      'error: watchmux operator shop: the lease failed: Error: away 1',
      `info: watchmux operator shop: the lease works again, after ${failures} failures`,
    ]);
    await stop();
    expect(clock.pending).toBe(0);
  });

  it('logs that it no longer leads, and that it leads again, each time', async () => {
    const { clock, lines, stop, outage } = await reaching();
    const led = (): string[] => lines.splice(0).filter((line) => line.includes('leads'));
    expect(led()).toEqual(['info: one leads (this instance)']);
    for (let at = 0; at < 2; at++) {
      await outage(12_000);
      expect(led()).toEqual([
        'warn: one no longer leads: the lease was not renewed for 10000 ms',
        'info: one leads (this instance)',
      ]);
    }
    await stop();
    expect(led()).toEqual([]);
    expect(clock.pending).toBe(0);
  });

  it('logs who has taken its lease', async () => {
    const all = world();
    const { clock, lines, server, start } = all;
    const { stop } = await start({}, election('one', all));
    const leases = server.resource(LEASES).in('default');
    await leases.patch('shop', { spec: { holderIdentity: 'two' } });
    await pass(clock, 5_000);
    const [led, ...more] = lines.filter((line) => line.includes('leads'));
    expect(led).toBe('info: one leads (this instance)');
    expect(more.sort()).toEqual(['info: two leads', 'warn: one no longer leads: two leads']);
    await stop();
    expect(clock.pending).toBe(0);
  });
});

describe('settled', () => {
  it('resolves when nothing is queued, running, or written and not yet seen', async () => {
    const { orders, start, clock } = world();
    await orders.create(order('a'));
    let end = (): void => {};
    const { operator, stop } = await start({
      reconcile: async ({ object, updateStatus }) => {
        if (object?.status) return;
        await new Promise<void>((resolve) => {
          end = resolve;
        });
        await updateStatus((draft) => {
          draft.status = { phase: 'Done' };
        });
      },
    });
    const settled = fate(operator.idle());
    await clock.advanceAsync(1_000);
    expect(settled.state).toBe('pending');
    end();
    await operator.idle();
    expect([settled.state, operator.state.controllers]).toMatchObject(['resolved', [{ queued: 0, inWork: 0 }]]);
    expect((await orders.get('a')).status).toEqual({ phase: 'Done' });
    await operator.idle();
    const late = fate(operator.idle());
    await stop();
    expect(late.state).toBe('resolved');
  });
});
