// Two instances of an operator, of which one leads, against writers that change and delete what it reads and writes, a server that
// refuses, and a thief of the lease. In the end everything is as it should be, no key was ever worked on twice at a time by one
// instance, none worked without leading, and nothing is left.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ResourceClient } from '../../src/cache/index.ts';
import { Operator, type ReconcileRequest, type ResourceSource } from '../../src/operator/index.ts';
import { refused } from '../../src/storage/statuses.ts';
import { runs } from '../runs.ts';
import type { Order } from '../unit/apiserver-rig.ts';
import { CONFIG_MAP, ORDER, settle, world } from '../unit/operator-rig.ts';

const NAMES = ['a', 'b'];
const ITEMS = ['tea', 'salt', 'rice'];
const FINALIZER = 'example.com/shop';
const LEASES = 'leases.coordination.k8s.io/v1';

type Step =
  | { readonly do: 'put'; readonly name: string; readonly item: string }
  | { readonly do: 'remove' | 'replace' | 'tamper' | 'drop'; readonly name: string }
  | { readonly do: 'refuse'; readonly code: number; readonly times: number }
  | { readonly do: 'steal' | 'restart' }
  | { readonly do: 'wait'; readonly ms: number };

const name = fc.constantFrom(...NAMES);
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant('put' as const), name, item: fc.constantFrom(...ITEMS) }) },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constantFrom('remove' as const, 'replace' as const, 'tamper' as const, 'drop' as const),
      name,
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('refuse' as const),
      code: fc.constantFrom(409, 429, 500, 503),
      times: fc.integer({ min: 1, max: 4 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom('steal' as const, 'restart' as const) }) },
  { weight: 8, arbitrary: fc.record({ do: fc.constant('wait' as const), ms: fc.constantFrom(0, 1, 10, 1_000, 5_000) }) },
);

/** An instance of the operator that is running. */
interface Instance {
  readonly operator: Operator;
  readonly stop: () => Promise<void>;
}

class Shop {
  readonly world = world();
  readonly wrong: string[] = [];
  #refusals: number[] = [];
  #instances = 0;

  /** The server, as the operator has it: writes are refused while there are refusals. */
  readonly #cluster: ResourceSource = {
    resource: (type) => this.#flaky(this.world.server.resource(type)) as never,
    kind: async (type, options) => this.#flaky(await this.world.server.kind(type, options)) as never,
  };

  #flaky<O extends object>(client: ResourceClient<O>): ResourceClient<O> {
    const { in: within } = client;
    const changed: Partial<ResourceClient<O>> = { in: (namespace) => this.#flaky(within.call(client, namespace)) };
    for (const verb of ['create', 'update', 'patch', 'delete'] as const) {
      const own = client[verb].bind(client) as (...args: unknown[]) => Promise<never>;
      changed[verb] = async (...args: unknown[]) => {
        const code = this.#refusals.pop();
        if (code !== undefined) throw refused(code, code === 409 ? 'Conflict' : 'Other', 'no luck');
        return own(...args);
      };
    }
    return Object.assign(client, changed);
  }

  start(): Instance {
    const { clock, log } = this.world;
    const identity = `instance-${++this.#instances}`;
    const working = new Set<string>();
    const guarded = async (request: ReconcileRequest<Order>, work: () => Promise<void>): Promise<void> => {
      const { key, signal } = request;
      if (working.has(key)) this.wrong.push(`${identity} works on ${key} twice`);
      if (!operator.state.leads && !signal.aborted) this.wrong.push(`${identity} works without leading`);
      working.add(key);
      await work().finally(() => working.delete(key));
    };
    const operator = new Operator({
      ...{ cluster: this.#cluster, name: 'shop', clock, log, onError: () => {} },
      leaderElection: { identity, now: () => clock.now() + 1e12, random: () => 0.5 },
    }).controller({
      for: ORDER,
      owns: [CONFIG_MAP],
      concurrency: 2,
      reconcile: (request) => guarded(request, () => bringAbout(request)),
      finalizer: { name: FINALIZER, finalize: (request) => guarded(request, () => tidy(request)) },
    });
    const stopper = new AbortController();
    const run = operator.run(stopper.signal);
    run.catch((error: unknown) => this.wrong.push(String(error)));
    return {
      operator,
      stop: async () => {
        stopper.abort();
        await run;
      },
    };
  }

  /** What is refused to a writer is the operator's doing, or another writer's, and of no interest. */
  async take(move: Step): Promise<void> {
    const { orders, maps, clock, server } = this.world;
    if (move.do === 'wait') await clock.advanceAsync(move.ms);
    else if (move.do === 'refuse') this.#refusals = Array(move.times).fill(move.code);
    else if (move.do === 'put') {
      const spec = { item: move.item };
      await orders.patch(move.name, { spec }).catch(() => orders.create({ metadata: { name: move.name }, spec }));
    } else if (move.do === 'remove') await orders.delete(move.name);
    else if (move.do === 'drop') await maps.delete(move.name);
    else if (move.do === 'tamper') await maps.patch(move.name, { data: { item: 'none', more: 'x' } });
    else if (move.do === 'replace') {
      await orders.delete(move.name);
      await settle();
      await orders.create({ metadata: { name: move.name }, spec: { item: 'new' } });
    } else if (move.do === 'steal') {
      const lease = await server.resource(LEASES).in('default').get('shop');
      await server
        .resource(LEASES)
        .in('default')
        .update({ ...lease, spec: { holderIdentity: 'thief', leaseDurationSeconds: 2 } } as never);
    }
  }

  calm(): void {
    this.#refusals = [];
  }

  /** What should be, and what is. */
  async compare(): Promise<readonly [unknown, unknown]> {
    const { orders, maps } = this.world;
    const all = (await orders.list()).items;
    const made = (await maps.list()).items;
    return [
      made.map(({ metadata, data }) => [metadata?.name, data?.item, (metadata?.ownerReferences as { uid: string }[])?.[0]?.uid]),
      all.map(({ metadata, spec }) => [metadata?.name, spec?.item, metadata?.uid]),
    ];
  }

  async statuses(): Promise<unknown> {
    return (await this.world.orders.list()).items.map(({ spec, status, metadata }) => [
      spec?.item === status?.phase,
      metadata?.finalizers,
      metadata?.deletionTimestamp,
    ]);
  }
}

async function bringAbout({ object, apply, updateStatus }: ReconcileRequest<Order>): Promise<void> {
  if (!object) return;
  const item = object.spec?.item ?? '';
  await apply(CONFIG_MAP, { data: { item } });
  await updateStatus((draft) => {
    draft.status = { phase: item };
  });
}

async function tidy({ resource, key, get }: ReconcileRequest<Order>): Promise<void> {
  if (get(CONFIG_MAP, key)) await resource(CONFIG_MAP).delete(key);
}

describe('an operator under fire', () => {
  it('brings about what is wanted in the end, with one worker per key, and leaves nothing', { timeout: 120_000 }, async () => {
    let led = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 25 }), async (steps) => {
        const shop = new Shop();
        const { clock } = shop.world;
        const instances = [shop.start(), shop.start()];
        await settle();
        for (const each of steps) {
          await shop.take(each).catch(() => {});
          if (each.do === 'restart') {
            await instances.shift()?.stop();
            instances.push(shop.start());
          }
        }
        shop.calm();
        for (let second = 0; second < 60; second++) await clock.advanceAsync(1_000);
        const leaders = instances.filter(({ operator }) => operator.state.leads);
        await leaders[0]?.operator.idle();
        led += leaders.length;
        const [is, wanted] = await shop.compare();
        expect(is).toEqual(wanted);
        const statuses = (await shop.statuses()) as unknown[];
        expect(statuses).toEqual(statuses.map(() => [true, [FINALIZER], undefined]));
        await Promise.all(instances.map(({ stop }) => stop()));
        expect([shop.wrong, clock.pending, leaders.length]).toEqual([[], 0, 1]);
      }),
      { numRuns: runs(100) },
    );
    expect(led).toBeGreaterThan(0);
  });
});
