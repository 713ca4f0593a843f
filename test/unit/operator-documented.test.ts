// What docs/operators.md promises of an operator as a whole: on an API server in the same process, with a fake clock.
import { describe, expect, it, vi } from 'vitest';
import type { CoreEvent, Lease } from '../../src/apiserver/index.ts';
import type { KubernetesObject } from '../../src/cache/index.ts';
import { ensureFinalizer, kind, type OperatorControllerOptions, updateStatus } from '../../src/operator/index.ts';
import { refused } from '../../src/storage/statuses.ts';
import type { Order } from './apiserver-rig.ts';
import { CONFIG_MAP, ORDER, order, settle, started, world } from './operator-rig.ts';
import { fate } from './support.ts';

const NAMESPACE = kind('namespaces/v1');

describe('the controllers of an operator', () => {
  it.each([
    { given: {}, atMost: 1 },
    { given: { concurrency: 2 }, atMost: 2 },
  ])('reconcile $atMost keys at a time, and never one twice', async ({ given, atMost }) => {
    const { orders, start } = world();
    for (const name of ['a', 'b', 'c', 'd']) await orders.create(order(name));
    const ends: (() => void)[] = [];
    const running: string[] = [];
    let most = 0;
    const { stop } = await start({
      ...given,
      reconcile: async ({ key }) => {
        expect(running).not.toContain(key);
        running.push(key);
        most = Math.max(most, running.length);
        await new Promise<void>((resolve) => ends.push(resolve));
        running.splice(running.indexOf(key), 1);
      },
    });
    let ended = 0;
    for (let at = 0; at < 6; at++) {
      // What changes while it is being reconciled runs afterwards.
      if (at === 0) await orders.patch('a', { spec: { item: 'salt' } });
      await settle();
      for (const end of ends.splice(0)) {
        ended++;
        end();
      }
      await settle();
    }
    expect([most, ended, running]).toEqual([atMost, 5, []]);
    await stop();
  });

  it('reconcile everything every ten hours, if nothing else is said', async () => {
    const { orders, start, clock } = world();
    await orders.create(order('a'));
    const times: number[] = [];
    const { stop } = await start({ reconcile: () => void times.push(clock.now()) });
    await clock.advanceAsync(36_000_000 - 1);
    expect(times).toEqual([0]);
    await clock.advanceAsync(1);
    expect(times).toEqual([0, 36_000_000]);
    await stop();
  });

  it('see one namespace, if it is named, and of kinds that have none all objects', async () => {
    const { server, start } = world();
    const all = server.resource<Order>('orders.example.com/v1');
    for (const namespace of ['blue', 'red']) {
      await server.resource('namespaces').create({ metadata: { name: namespace } });
      await all.create(order('a', { metadata: { name: 'a', namespace } }));
    }
    const seen: string[] = [];
    const { stop } = await start(
      {
        reads: [NAMESPACE],
        reconcile: ({ key, store }) => {
          const names = store(NAMESPACE)
            .list()
            .map(({ metadata }) => metadata?.name);
          seen.push(`${key} among ${names.sort().join(' ')}`);
        },
      },
      { namespace: 'blue' },
    );
    await all.patch('red/a', { spec: { item: 'salt' } });
    await settle();
    expect(seen).toEqual(['blue/a among blue default red']);
    await stop();
  });

  it('own nothing in another namespace than the owner: that is refused, and nothing is written', async () => {
    const { orders, server, start, told } = world();
    await orders.create(order('a'));
    const { stop } = await start({
      owns: [CONFIG_MAP],
      maxRetries: 0,
      reconcile: async ({ apply }) => void (await apply(CONFIG_MAP, { metadata: { namespace: 'other' }, data: {} })),
    });
    expect(told).toEqual([expect.stringMatching(/^reconcile orders default\/a 1 dropped: .*namespace.*other/)]);
    expect((await server.resource('configmaps').list()).items).toEqual([]);
    await stop();
  });

  it('are told of what they own, with whatever version of the owner somebody has made the reference', async () => {
    const { orders, maps, start } = world();
    const { metadata: { uid = '' } = {} } = await orders.create(order('a'));
    const keys: string[] = [];
    const { stop } = await start({
      owns: [CONFIG_MAP],
      reconcile: ({ key, owned }) => void keys.push(`${key} ${owned(CONFIG_MAP).length}`),
    });
    const reference = { kind: 'Order', name: 'a', uid, controller: true };
    await maps.create({ metadata: { name: 'old', ownerReferences: [{ ...reference, apiVersion: 'example.com/v1beta1' }] } });
    await settle(); // or one reconcile sees both
    await maps.create({ metadata: { name: 'other', ownerReferences: [{ ...reference, apiVersion: 'example.org/v1' }] } });
    await settle();
    expect(keys).toEqual(['default/a 0', 'default/a 1']);
    await stop();
  });

  it('run a key at the earlier of two times that it has asked for', async () => {
    const { orders, start, clock } = world();
    await orders.create(order('a'));
    const times: number[] = [];
    const { stop } = await start({
      reconcile: () => {
        times.push(clock.now());
        return times.length < 3 ? { requeueAfterMs: 60_000 } : undefined;
      },
    });
    await clock.advanceAsync(10_000);
    await orders.patch('a', { spec: { item: 'salt' } });
    await clock.advanceAsync(600_000);
    expect(times).toEqual([0, 10_000, 60_000]);
    await stop();
  });
});

describe('the end of an operator', () => {
  it('waits for what runs, then writes its events, then gives the lease back; no other key begins', async () => {
    const { server, orders, operator } = world();
    for (const name of ['a', 'b']) await orders.create(order(name));
    let end = (): void => {};
    const keys: string[] = [];
    const controller: OperatorControllerOptions<Order> = {
      for: ORDER,
      reconcile: async ({ key, events, resource }) => {
        keys.push(key);
        await new Promise<void>((resolve) => {
          end = resolve;
        });
        events.normal('Left', 'at the end');
        expect(await holder()).not.toBe('');
        await expect(resource(ORDER).list()).rejects.toThrow(); // its signal has aborted
      },
    };
    const holder = async (): Promise<unknown> =>
      (await server.resource<Lease>('leases.coordination.k8s.io/v1').get('default/shop')).spec?.holderIdentity;
    const { run, stop } = await started(operator({ leaderElection: true }).controller(controller as never));
    expect(keys).toEqual(['default/a']);
    await stop();
    expect([run.state, (await holder()) === '']).toEqual(['pending', false]);
    end();
    await settle();
    const said = (await server.resource<CoreEvent>('events/v1').list()).items.map(({ reason }) => reason);
    expect([run.state, keys, said, await holder()]).toEqual(['resolved', ['default/a'], ['Left'], '']);
  });

  it('comes at once with a second signal', async () => {
    const { orders, operator } = world();
    await orders.create(order('a'));
    let end = (): void => {};
    const reconcile = (): Promise<void> =>
      new Promise((resolve) => {
        end = resolve;
      });
    const before = process.listeners('SIGTERM');
    const run = fate(operator().controller({ for: ORDER, reconcile }).run());
    await settle();
    const [listener] = process.listeners('SIGTERM').filter((each) => !before.includes(each));
    const exit = vi.spyOn(process, 'exit').mockImplementation((() => {}) as never);
    listener?.('SIGTERM');
    await settle();
    expect([run.state, exit.mock.calls]).toEqual(['pending', []]);
    listener?.('SIGTERM');
    expect(exit.mock.calls).toEqual([[143]]);
    exit.mockRestore();
    end();
    await settle();
    expect([run.state, process.listeners('SIGTERM')]).toEqual(['resolved', before]);
  });
});

describe('a write of a helper against which somebody else is always faster', () => {
  it.each([
    { what: 'updateStatus', status: 409 },
    { what: 'ensureFinalizer', status: 409 },
    { what: 'ensureFinalizer', status: 422 },
  ])('is tried ten times, and ends with the last refusal ($what, $status)', async ({ what, status }) => {
    const { orders } = world();
    const made = await orders.create(order('a'));
    let [writes, reads] = [0, 0];
    const refuse = async (): Promise<never> => {
      throw refused(status, status === 409 ? 'Conflict' : 'Invalid', `refused ${++writes}`);
    };
    const get = async (): Promise<KubernetesObject> => {
      reads++;
      return made;
    };
    const client = Object.assign(orders, { update: refuse, patch: refuse, get });
    const written =
      what === 'updateStatus'
        ? updateStatus(client, made, (draft: object) => Object.assign(draft, { status: { ready: true } }))
        : ensureFinalizer(client, made, 'example.com/a');
    await expect(written).rejects.toMatchObject({
      code: 'REFUSED',
      status: { code: status },
      message: expect.stringContaining('refused 10'),
    });
    expect([writes, reads]).toEqual([10, 9]);
  });
});
