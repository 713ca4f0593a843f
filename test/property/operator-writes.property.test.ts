// Several writers with the helpers of `watchmux/operator`, on one object of an API server in process: whatever the order of their
// requests, none loses what another wrote. Each request waits for its turn before it is sent, and before its answer arrives.
import fc, { type Scheduler } from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ResourceClient } from '../../src/cache/resource-client.ts';
import {
  createOrUpdate,
  ensureFinalizer,
  isConflict,
  isNotFound,
  removeFinalizer,
  updateStatus,
} from '../../src/operator/index.ts';
import { runs } from '../runs.ts';
import { type Order as Plain, rig } from '../unit/apiserver-rig.ts';

type Order = Plain & { readonly status?: { readonly total?: number; readonly by?: Record<string, number> } };

const METHODS = ['get', 'create', 'update', 'patch', 'delete'] as const;

/** A client whose requests the scheduler puts in order. */
function scheduled(orders: ResourceClient<Order>, scheduler: Scheduler): ResourceClient<Order> {
  const client: object = { type: orders.type, namespace: orders.namespace };
  for (const method of METHODS) {
    const call = orders[method].bind(orders) as (...args: unknown[]) => Promise<unknown>;
    const asked = async (...args: unknown[]): Promise<unknown> => {
      await scheduler.schedule(Promise.resolve(), `${method} is sent`);
      const answer = await call(...args).then(
        (value) => () => value,
        (error: unknown) => () => {
          throw error;
        },
      );
      await scheduler.schedule(Promise.resolve(), `${method} is answered`);
      return answer();
    };
    Object.assign(client, { [method]: asked });
  }
  return client as ResourceClient<Order>;
}

interface World {
  readonly orders: ResourceClient<Order>;
  readonly client: ResourceClient<Order>;
}

/** Runs writers, each of which does one thing after the other, in an order of the scheduler. */
async function run(scheduler: Scheduler, writers: (world: World) => readonly (() => Promise<void>)[]): Promise<World> {
  const orders = rig().server.resource<Order>('orders.example.com/v1').in('default');
  const world = { orders, client: scheduled(orders, scheduler) };
  await scheduler.waitFor(Promise.all(writers(world).map((write) => write())));
  return world;
}

const NAME = 'one';
const created = (orders: ResourceClient<Order>, finalizers: string[] = []): Promise<Order> =>
  orders.create({ metadata: { name: NAME, finalizers }, spec: { count: 0 } });

/** Others, who write labels, whole statuses and, without a version, whole objects, as programs do that know no better. */
type Disturbance = 'label' | 'phase' | 'finalizer';
const disturbances = fc.array(fc.constantFrom<Disturbance>('label', 'phase', 'finalizer'), { maxLength: 4 });

async function disturb({ client }: World, kinds: readonly Disturbance[]): Promise<void> {
  for (const [at, kind] of kinds.entries()) {
    if (kind === 'label') await client.patch(NAME, { metadata: { labels: { at: String(at) } } });
    if (kind === 'phase') await client.patch(NAME, { status: { phase: String(at) } }, { subresource: 'status' });
    if (kind !== 'finalizer') continue;
    const finalizers = { op: 'add', path: '/metadata/finalizers/-', value: `other.example.com/${at}` };
    await client.patch(NAME, [finalizers], { type: 'json' }).catch((error: unknown) => {
      if ((error as { status?: { code?: number } }).status?.code !== 422) throw error; // there is no list yet
    });
  }
}

const count = <T>(list: readonly T[], value: T): number => list.filter((each) => each === value).length;

describe('helpers of several writers', () => {
  it('finalizers: each is there after it was ensured, once, and gone after it was removed, and none of others is lost', async () => {
    const steps = fc.array(fc.boolean(), { minLength: 1, maxLength: 4 });
    const results = new Set<string>();
    const property = fc.asyncProperty(
      fc.scheduler(),
      fc.array(steps, { minLength: 2, maxLength: 4 }),
      disturbances,
      fc.boolean(),
      async (scheduler, writers, kinds, isDeleted) => {
        const first: { object?: Promise<Order> } = {};
        const { orders } = await run(scheduler, (world) => {
          first.object = created(world.orders, ['example.com/first']);
          const write = async (own: readonly boolean[], at: number): Promise<void> => {
            const name = `example.com/${at}`;
            let object: Order | undefined = await first.object;
            for (const adds of own) {
              if (!object) return;
              const done = await (adds ? ensureFinalizer : removeFinalizer)(world.client, object, name);
              results.add(done.result);
              object = done.object;
              const now = await world.orders.get(NAME);
              const isThere = adds && done.result !== 'deleting';
              expect(count(now.metadata?.finalizers ?? [], name)).toBe(isThere ? 1 : 0);
              if (done.result === 'deleting') expect(now.metadata?.deletionTimestamp).toBeDefined();
            }
          };
          const remove = async (): Promise<void> => {
            await first.object;
            if (isDeleted) await world.client.delete(NAME);
          };
          const others = async (): Promise<void> => {
            await first.object;
            await disturb(world, isDeleted ? [] : kinds);
          };
          return [...writers.map((own, at) => () => write(own, at)), remove, others];
        });
        expect((await orders.get(NAME)).metadata?.finalizers).toContain('example.com/first');
      },
    );
    await fc.assert(property, { numRuns: runs(300, { least: 60 }) });
    expect([...results].sort()).toEqual(['added', 'deleting', 'removed', 'unchanged']);
  });

  it('updateStatus: every count is counted, and no one else’s field is lost', async () => {
    const property = fc.asyncProperty(
      fc.scheduler(),
      fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 2, maxLength: 4 }),
      disturbances,
      async (scheduler, writers, kinds) => {
        let successes = 0;
        const { orders } = await run(scheduler, (world) => {
          const first = created(world.orders);
          const write = async (times: number, by: number): Promise<void> => {
            const object = await first; // as old as it may be
            for (let time = 0; time < times; time++) {
              const done = updateStatus(world.client, object, async (draft) => {
                const { total = 0, by: counts = {} } = draft.status ?? {};
                draft.status = { ...draft.status, total: total + 1, by: { ...counts, [by]: (counts[by] ?? 0) + 1 } };
              });
              // Ten conflicts in a row are possible, and said to be conflicts.
              await done.then(
                () => successes++,
                (error: unknown) => expect(isConflict(error)).toBe(true),
              );
            }
          };
          const others = async (): Promise<void> => {
            await first;
            await disturb(world, kinds);
          };
          return [...writers.map((times, at) => () => write(times, at)), others];
        });
        const { status, spec } = await orders.get(NAME);
        expect(status?.total).toBe(successes);
        expect(Object.values(status?.by ?? {}).reduce((sum, each) => sum + each, 0)).toBe(successes);
        expect(status?.phase).toBe(kinds.includes('phase') ? String(kinds.lastIndexOf('phase')) : undefined);
        expect(spec).toEqual({ count: 0 });
      },
    );
    await fc.assert(property, { numRuns: runs(300) });
  });

  it('createOrUpdate: every change is made to what is there, whoever creates and deletes it', async () => {
    const seen = new Set<string>();
    const property = fc.asyncProperty(
      fc.scheduler(),
      fc.array(fc.array(fc.constantFrom('server', 'cache', 'same'), { minLength: 1, maxLength: 3 }), {
        minLength: 2,
        maxLength: 4,
      }),
      fc.array(fc.constant('delete'), { maxLength: 2 }),
      async (scheduler, writers, deletions) => {
        let changes = 0;
        let deleted = 0;
        const { orders } = await run(scheduler, ({ client }) => {
          const write = async (kinds: readonly string[]): Promise<void> => {
            let last: Order | undefined;
            for (const kind of kinds) {
              const cached = (): Order | undefined => (kind === 'cache' ? last : undefined);
              const desired: Order = { metadata: { name: NAME }, spec: { count: 0, item: 'tea' } };
              const mutate = (draft: { spec?: { count?: number; item?: string } | undefined }): void => {
                if (kind !== 'same') draft.spec = { ...draft.spec, count: (draft.spec?.count ?? 0) + 1 };
              };
              const done = await createOrUpdate(client, desired, mutate, { cached }).catch((error: unknown) => {
                if (!isConflict(error)) throw error;
              });
              if (!done) continue;
              seen.add(done.result);
              last = done.object;
              if (kind !== 'same') changes++;
              else expect(done.result).not.toBe('updated');
            }
          };
          const remove = async (): Promise<void> => {
            for (const _ of deletions) {
              const found = await client.get(NAME).catch(() => undefined);
              if (!found) continue;
              const { uid, resourceVersion } = found.metadata ?? {};
              const gone = client.delete(NAME, { preconditions: { uid, resourceVersion } });
              await gone
                .then(() => (deleted += found.spec?.count ?? 0))
                .catch((error: unknown) => {
                  if (!isConflict(error) && !isNotFound(error)) throw error;
                });
            }
          };
          return [...writers.map((kinds) => () => write(kinds)), remove];
        });
        const left = await orders.get(NAME).catch(() => undefined);
        expect((left?.spec?.count ?? 0) + deleted).toBe(changes);
      },
    );
    await fc.assert(property, { numRuns: runs(300, { least: 60 }) });
    expect([...seen].sort()).toEqual(['created', 'unchanged', 'updated']);
  });
});
