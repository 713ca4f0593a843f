// How an operator's reconciles fail, take too long, and finalize: on an API server in the same process, with a fake clock.
import { describe, expect, it } from 'vitest';
import {
  type Condition,
  findCondition,
  generationChanged,
  type ResourceSource,
  setCondition,
  type WithConditions,
} from '../../src/operator/index.ts';
import { refused } from '../../src/storage/statuses.ts';
import { exponential } from '../../src/workqueue/index.ts';
import type { Order } from './apiserver-rig.ts';
import { CONFIG_MAP, ORDER, order, settle, started, world } from './operator-rig.ts';
import { fate } from './support.ts';

const FINALIZER = 'example.com/shop';

describe('a reconcile of an operator', () => {
  it('that fails is told and tried again; one that meets a conflict is tried again, quietly', async () => {
    const { orders, start, told, clock } = world();
    await orders.create(order('a'));
    const attempts: number[] = [];
    const { stop, operator } = await start({
      rateLimiter: exponential({ baseMs: 100 }),
      reconcile: async ({ attempt, object, resource }) => {
        attempts.push(attempt);
        if (attempt === 1) throw new Error('no luck');
        if (attempt === 2) {
          await resource('orders.example.com/v1').update({ ...object, metadata: { ...object?.metadata, resourceVersion: '1' } });
        }
      },
    });
    expect(attempts).toEqual([1]);
    await clock.advanceAsync(99);
    expect(attempts).toEqual([1]);
    await clock.advanceAsync(1);
    expect(attempts).toEqual([1, 2]);
    await clock.advanceAsync(200);
    expect([attempts, told]).toEqual([[1, 2, 3], ['reconcile orders default/a 1: no luck']]);
    const results = ['error', 'requeue', 'success'].map(
      (result) => `controller_runtime_reconcile_total{controller="orders",result="${result}"} 1`,
    );
    for (const line of results) expect(operator.metrics).toContain(line);
    await stop();
  });

  it.each([
    ['changes what it reads is named once a minute', undefined, 1],
    ['asks to run again is not', { requeueAfterMs: 1 }, 0],
  ])('that %s', async (_, result, warnings) => {
    const { orders, start, lines, clock } = world();
    await orders.create(order('a'));
    await orders.create(order('b'));
    const runs = { a: 0, b: 0 };
    const { stop } = await start({
      reconcile: async ({ name, updateStatus }) => {
        if (++runs[name as 'a' | 'b'] > 250) return undefined;
        await updateStatus((draft) => Object.assign(draft, { status: { phase: `${runs[name as 'a' | 'b']}` } }));
        return result;
      },
    });
    while (runs.a < 250 || runs.b < 250) await clock.advanceAsync(20);
    expect(clock.now()).toBeLessThan(60_000);
    const named = /^warn: orders: default\/[ab] was reconciled 200 times within a minute/;
    expect(lines.filter((line) => named.test(line))).toHaveLength(warnings);
    await stop();
  });

  it('that a server refuses for some time runs again after that, and no later than its own delay if that is longer', async () => {
    const { orders, start, clock } = world();
    await orders.create(order('a'));
    const [times, asked] = [[] as number[], [30, 0, Number.NaN, 1]];
    const { stop } = await start({
      rateLimiter: exponential({ baseMs: 1_000, maxMs: 10_000 }),
      reconcile: ({ attempt }) => {
        times.push(clock.now());
        const retryAfterSeconds = asked[attempt - 1];
        if (retryAfterSeconds !== undefined) throw refused(429, 'TooManyRequests', 'later', { retryAfterSeconds });
      },
    });
    await clock.advanceAsync(60_000);
    expect(times).toEqual([0, 30_000, 32_000, 36_000, 44_000]);
    await stop();
  });

  it('that meets nothing but conflicts is told once, at the tenth of a key in succession', async () => {
    const { orders, start, told, clock } = world();
    await orders.create(order('a'));
    let isFaster = true;
    const { stop } = await start({
      rateLimiter: exponential({ baseMs: 100, maxMs: 100 }),
      reconcile: async ({ resource }) => {
        const version = isFaster ? { resourceVersion: '1' } : {};
        await resource('orders.example.com/v1').update({
          ...order('a'),
          metadata: { name: 'a', namespace: 'default', ...version },
        });
      },
    });
    const runs = async (count: number): Promise<number> => {
      for (let i = 0; i < count; i++) await clock.advanceAsync(100);
      return told.length;
    };
    expect([await runs(8), await runs(1), await runs(30)]).toEqual([0, 1, 1]);
    expect(told).toEqual([expect.stringContaining('reconcile orders default/a 10: 409 Conflict')]);
    isFaster = false;
    await runs(1);
    isFaster = true;
    await orders.patch('a', { spec: { item: 'salt' } });
    await settle();
    expect([await runs(8), await runs(1)]).toEqual([1, 2]);
    await stop();
  });

  it('that is refused a field which another manager has is told each time: that does not go by itself', async () => {
    const { orders, maps, start, told, clock } = world();
    await orders.create(order('a'));
    const theirs = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a' }, data: { item: 'x' } };
    await maps.patch('a', theirs, { type: 'apply', fieldManager: 'other' });
    const ours = { metadata: { name: 'a', namespace: 'default' }, data: { item: 'y' } };
    const { operator, stop } = await start({
      rateLimiter: exponential({ baseMs: 100 }),
      reconcile: async ({ apply }) => void (await apply(CONFIG_MAP, ours, { force: false })),
    });
    await clock.advanceAsync(100);
    expect(told).toEqual([1, 2].map((at) => expect.stringContaining(`reconcile orders default/a ${at}: 409 Conflict`)));
    expect(operator.metrics).toContain('controller_runtime_reconcile_errors_total{controller="orders"} 2');
    await stop();
  });

  it('is given up after maxRetries, conflicts too, and that is told', async () => {
    const { orders, start, told, clock } = world();
    await orders.create(order('a'));
    let runs = 0;
    const { stop } = await start({
      maxRetries: 1,
      reconcile: async ({ resource }) => {
        runs++;
        await resource('orders.example.com/v1').update({
          ...order('a'),
          metadata: { name: 'a', namespace: 'default', resourceVersion: '1' },
        });
      },
    });
    await clock.advanceAsync(100_000);
    expect([runs, told]).toEqual([2, [expect.stringContaining('reconcile orders default/a 2 dropped: 409 Conflict')]]);
    await stop();
  });

  it('runs again when it asks to, and at each resync', async () => {
    const { orders, start, clock } = world();
    await orders.create(order('a'));
    const at: number[] = [];
    const { stop, operator } = await start({
      resyncMs: 10_000,
      reconcile: () => {
        at.push(clock.now());
        return at.length === 1 ? { requeueAfterMs: 1_000 } : undefined;
      },
    });
    expect(operator.state.controllers).toMatchObject([{ name: 'orders', working: true, delayed: 1, queued: 0, inWork: 0 }]);
    await operator.idle(); // what is to run later does not count
    for (let i = 0; i < 21; i++) await clock.advanceAsync(1_000);
    expect(at).toEqual([0, 1_000, 10_000, 20_000]);
    await stop();
    expect(clock.pending).toBe(0);
  });

  it.each([Number.NaN, Infinity, -Infinity, '5s'])(
    'that asks to run again after what is no time, %s, has failed',
    async (after) => {
      const { orders, start, told } = world();
      await orders.create(order('a'));
      const { operator, stop } = await start({ reconcile: () => ({ requeueAfterMs: after as number }) });
      const got = typeof after === 'string' ? `"${after}"` : after;
      expect(told).toEqual([
        `reconcile orders default/a 1: requeueAfterMs: expected a finite number of milliseconds, got ${got}`,
      ]);
      expect(operator.metrics).toContain('controller_runtime_reconcile_errors_total{controller="orders"} 1');
      await stop();
    },
  );

  it.each([
    [{ requeueAfter: 50 }, 'requeueAfter', '50'],
    [{ RequeueAfter: 50 }, 'RequeueAfter', '50'],
    [{ requeue: true }, 'requeue', 'true'],
    [{ requeueAfterMs: 50, requeue: false }, 'requeue', 'false'],
  ])('that returns %j has failed', async (result, member, got) => {
    const { orders, start, told } = world();
    await orders.create(order('a'));
    const { stop } = await start({ reconcile: () => result as object });
    const expected = 'expected requeueAfterMs instead';
    expect(told).toEqual([`reconcile orders default/a 1: ${member}: ${expected}, got ${got}`]);
    await stop();
  });

  it.each([undefined, null, 5, 'requeue', ['requeue'], { requeue: undefined }, { metadata: { name: 'a' } }])(
    'that returns %j has succeeded',
    async (result) => {
      const { orders, start, told } = world();
      await orders.create(order('a'));
      const { operator, stop } = await start({ reconcile: () => result as never });
      expect([told, operator.state.controllers[0]?.delayed]).toEqual([[], 0]);
      await stop();
    },
  );

  it('that asks wrongly to finalize again keeps the finalizer', async () => {
    const { orders, start, told } = world();
    const finalizers = ['example.com/x'];
    await orders.create(order('a', { metadata: { name: 'a', finalizers } }));
    await orders.delete('a');
    const finalize = () => ({ requeueAfter: 50 }) as object;
    const { stop } = await start({ finalizer: { name: 'example.com/x', finalize } });
    expect(told).toEqual([expect.stringContaining('requeueAfter: expected requeueAfterMs')]);
    expect((await orders.get('a')).metadata?.finalizers).toEqual(finalizers);
    await stop();
  });

  it.each([0, -1, 0.5])('that asks to run again at once, after %s ms, does so more and more seldom', async (requeueAfterMs) => {
    const { orders, start, told, clock } = world();
    await orders.create(order('a'));
    const at: number[] = [];
    const attempts = new Set<number>();
    const { stop } = await start({
      maxRetries: 1,
      reconcile: ({ attempt }) => {
        at.push(clock.now());
        attempts.add(attempt);
        return at.length === 5 || at.length > 20 ? undefined : { requeueAfterMs }; // without a delay, it would go on for ever
      },
    });
    await clock.advanceAsync(100);
    expect(at).toEqual([0, 5, 15, 35, 75]);
    await orders.patch('a', { spec: { item: 'salt' } });
    await settle();
    await clock.advanceAsync(5);
    expect(at.slice(5)).toEqual([100, 105]); // it had what it wanted in between
    expect([told, [...attempts]]).toEqual([[], [1]]); // nothing has failed
    await stop();
    expect(clock.pending).toBe(0);
  });

  it('that returns before what it has begun is told so, and what that was is cut off', async () => {
    const { cluster, orders, told, operator: create } = world();
    await orders.create(order('a'));
    const never = (_: unknown, { signal }: { signal: AbortSignal }): Promise<never> =>
      new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
    // Its config maps are listed and watched, and answer nothing else.
    const kind: ResourceSource['kind'] = async (type, options) => {
      const client = await cluster.kind(type, options);
      return (client.type.kind === 'ConfigMap' ? Object.assign(client, { get: never, delete: never }) : client) as never;
    };
    const { operator, stop } = await started(
      create({ cluster: { ...cluster, kind } }).controller<Order>({
        for: ORDER,
        reads: [CONFIG_MAP],
        reconcile: ({ resource, updateStatus }) => {
          const maps = resource(CONFIG_MAP);
          void maps.get('default/a');
          void maps.delete('default/a');
          void maps.list(); // does not fail
          void updateStatus(async () => {
            await settle();
            throw new Error('late');
          });
        },
      }),
    );
    await settle();
    const text = 'reconcile orders default/a 1: orders: the reconcile of default/a has ended, and this was not awaited';
    expect(told).toEqual([text, text, 'reconcile orders default/a 1: late']);
    expect(operator.metrics).toContain('controller_runtime_reconcile_total{controller="orders",result="success"} 1');
    await stop();
  });

  it('that has begun two things, and is told to stop, fails once, though it still waits for the first', async () => {
    const { orders, start, told } = world();
    await orders.create(order('a'));
    const { stop, run } = await start({
      reconcile: async ({ signal, updateStatus }) => {
        const waiting = (): Promise<never> =>
          new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
        const all = [updateStatus(waiting), updateStatus(waiting)];
        for (const each of all) await each;
      },
    });
    await stop();
    expect([run.state, told]).toEqual(['resolved', []]);
  });

  it('has the time of day of its operator, for schedules and conditions', async () => {
    const { orders, start, clock } = world();
    await orders.create(order('a'));
    const midnight = Date.UTC(2026, 4, 1);
    const said: WithConditions<Condition> = {};
    const { stop } = await start(
      {
        reconcile: ({ now }) => {
          setCondition(
            said,
            { type: 'Noon', status: now() < midnight + 43_200_000 ? 'False' : 'True', reason: 'Clock' },
            { now },
          );
          return now() < midnight + 43_200_000 ? { requeueAfterMs: midnight + 43_200_000 - now() } : undefined;
        },
      },
      { now: () => midnight + clock.now() },
    );
    expect(findCondition(said, 'Noon')).toMatchObject({ status: 'False', lastTransitionTime: '2026-05-01T00:00:00Z' });
    await clock.advanceAsync(43_200_000);
    expect(findCondition(said, 'Noon')).toMatchObject({ status: 'True', lastTransitionTime: '2026-05-01T12:00:00Z' });
    await stop();
  });

  it('is told to end after its time, which is a failure; the key runs again only when it has ended', async () => {
    const { orders, start, told, clock } = world();
    await orders.create(order('a'));
    const runs: AbortSignal[] = [];
    let end = (): void => {};
    const { stop, operator } = await start({
      reconcileTimeoutMs: 1_000,
      reconcile: async ({ signal }) => {
        runs.push(signal);
        if (runs.length === 1)
          await new Promise<void>((resolve) => {
            end = resolve;
          });
      },
    });
    await clock.advanceAsync(999);
    expect([runs[0]?.aborted, told]).toEqual([false, []]);
    await clock.advanceAsync(1);
    // It is told at once: who knows when it ends.
    expect(runs[0]?.reason).toMatchObject({
      code: 'TIMEOUT',
      limit: 1_000,
      message: 'orders: default/a took longer than 1000 ms',
    });
    expect(told).toEqual(['reconcile orders default/a 1: orders: default/a took longer than 1000 ms']);
    await orders.patch('a', { spec: { item: 'salt' } });
    await clock.advanceAsync(60_000);
    expect(runs).toHaveLength(1);
    end();
    await clock.advanceAsync(1_000);
    expect([runs.length, told.length]).toEqual([3, 1]); // for the change, and because it had failed
    expect(operator.metrics).toContain('controller_runtime_reconcile_timeouts_total{controller="orders"} 1');
    expect(operator.metrics).toContain('controller_runtime_active_workers{controller="orders"} 0');
    await stop();
    expect(clock.pending).toBe(0);
  });

  it('cuts off what it has left running when it returns: requests, and watches', async () => {
    const { orders, maps, start, told } = world();
    await orders.create(order('a'));
    let go = (): void => {};
    const gate = new Promise<void>((resolve) => {
      go = resolve;
    });
    const late: ReturnType<typeof fate<unknown>>[] = [];
    const seen: unknown[] = [];
    const { stop } = await start({
      reads: [CONFIG_MAP],
      reconcile: async ({ apply, resource }) => {
        late.push(fate(gate.then(() => apply(CONFIG_MAP, { metadata: { name: 'late', namespace: 'default' } }))));
        const watch = await resource(CONFIG_MAP).watch();
        const read = async (): Promise<void> => {
          for await (const event of watch) seen.push(event);
        };
        late.push(fate(read()));
      },
    });
    await stop();
    go();
    await maps.create({ metadata: { name: 'm' } });
    await settle();
    const error = { code: 'CLOSED', message: 'orders: the reconcile of default/a has ended, and this was not awaited' };
    expect([late, seen]).toMatchObject([[{ state: 'rejected', error }, { state: 'resolved' }], []]);
    expect([(await maps.list()).items.length, told]).toEqual([1, []]);
  });

  it('that ends because the operator does is no failure, however it says so', async () => {
    const { orders, start, told } = world();
    for (const name of ['a', 'b', 'c']) await orders.create(order(name));
    const { stop, run } = await start({
      concurrency: 3,
      reconcile: async ({ signal, name, resource }) => {
        if (name === 'a') await new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
        const watch = await resource(CONFIG_MAP).watch();
        for await (const _event of watch);
        if (name === 'b') signal.throwIfAborted();
        throw Object.assign(new Error('stopped'), { name: 'AbortError' });
      },
    });
    expect(run.state).toBe('pending');
    expect([(await stop()).state, told]).toEqual(['resolved', []]);
  });
});

describe('the finalizer of a controller', () => {
  it('is there before the first reconcile; then an object goes when it is finalized', async () => {
    const { orders, start, told, clock } = world();
    const seen: unknown[] = [];
    let again = true;
    const { stop } = await start({
      reconcile: ({ object }) => void seen.push(object?.metadata?.finalizers),
      finalizer: {
        name: FINALIZER,
        finalize: ({ object }) => {
          seen.push(`finalize ${object.metadata?.name}`);
          const outcome = again ? { requeueAfterMs: 0 } : undefined;
          again = false;
          return outcome;
        },
      },
    });
    await orders.create(order('a'));
    await settle();
    expect(seen.splice(0)).toEqual([[FINALIZER], [FINALIZER]]);
    await orders.delete('a');
    await settle();
    await clock.advanceAsync(5);
    expect(seen).toEqual(['finalize a', 'finalize a', undefined]);
    expect((await orders.list()).items).toEqual([]);
    expect([(await stop()).state, told]).toEqual(['resolved', []]);
  });

  it('goes with an object of which `when` lets nothing pass but its beginning', async () => {
    const { maps, start, told } = world();
    const seen: string[] = [];
    const { stop } = await start({
      for: { kind: CONFIG_MAP, when: generationChanged } as never,
      finalizer: { name: FINALIZER, finalize: ({ name }) => void seen.push(name) },
    });
    await maps.create({ metadata: { name: 'a' } });
    await settle();
    expect((await maps.get('a')).metadata?.finalizers).toEqual([FINALIZER]);
    await maps.delete('a');
    await settle();
    expect([seen, (await maps.list()).items, told]).toEqual([['a'], [], []]);
    await stop();
  });

  it('stays until finalize has succeeded, and is not asked for again while others hold the object', async () => {
    const { orders, start, told, clock } = world();
    let fails = 2;
    const { stop } = await start({
      finalizer: {
        name: FINALIZER,
        finalize: async () => {
          if (fails-- > 0) throw new Error('still busy');
        },
      },
    });
    await orders.create(order('a', { metadata: { name: 'a', finalizers: ['example.com/other'] } }));
    await settle();
    await orders.delete('a');
    await settle();
    expect((await orders.get('a')).metadata?.finalizers).toEqual(['example.com/other', FINALIZER]);
    await clock.advanceAsync(1_000);
    expect((await orders.get('a')).metadata?.finalizers).toEqual(['example.com/other']);
    await orders.patch('a', { spec: { item: 'salt' } });
    await settle();
    expect([fails, told.length]).toEqual([-1, 2]);
    await stop();
  });
});
