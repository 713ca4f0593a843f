// Any objects, owners and deletions, by one or two servers on a storage that come and go: once all is quiet, nothing is left that has
// no owner any more, nobody waits for nothing, and nothing has gone that somebody still owned.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ApiServer } from '../../src/apiserver/index.ts';
import type { KubernetesObject, ObjectMeta } from '../../src/cache/object.ts';
import type { DeleteOptions } from '../../src/cache/resource-client.ts';
import { MemoryStorage } from '../../src/storage/index.ts';
import { EVERYTHING, quiet } from '../garbage-world.ts';
import { runs } from '../runs.ts';
import { remote } from '../unit/apiserver-rig.ts';

type Step =
  | {
      readonly do: 'create';
      readonly name: number;
      readonly owners: readonly (readonly [number, boolean])[];
      readonly held: boolean;
    }
  | { readonly do: 'delete'; readonly name: number; readonly policy: DeleteOptions['propagation'] }
  | { readonly do: 'free'; readonly name: number }
  | { readonly do: 'rest' | 'restart' };

const NAMES = 8;
const name = fc.nat(NAMES - 1);
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant('create' as const),
      name,
      owners: fc.uniqueArray(fc.tuple(name, fc.boolean()), { maxLength: 3, selector: ([at]) => at }),
      held: fc.boolean(),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('delete' as const),
      name,
      policy: fc.constantFrom(undefined, 'Background' as const, 'Foreground' as const, 'Orphan' as const),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('free' as const), name }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constantFrom('rest' as const, 'restart' as const) }) },
);

const HELD = 'example.com/held';
type Reference = { readonly uid: string; readonly name: string; readonly blockOwnerDeletion?: boolean };
const ownersOf = (meta: ObjectMeta): readonly Reference[] => (meta.ownerReferences ?? []) as readonly Reference[];
const waits = (meta: ObjectMeta | undefined, finalizer: string): boolean =>
  meta?.deletionTimestamp !== undefined && (meta.finalizers ?? []).includes(finalizer);

/** What went or began to go without a client's deletion of it, although it had an owner that was there and did not wait. */
function wrongs(events: readonly KubernetesObject[][], asked: ReadonlySet<string>): string[] {
  return events.flatMap(([object, ...others]) => {
    const meta = object?.metadata ?? {};
    if (asked.has(meta.uid ?? '')) return [];
    const solid = ownersOf(meta).find(({ uid }) =>
      others.some((each) => each.metadata?.uid === uid && !waits(each.metadata, 'foregroundDeletion')),
    );
    return solid ? [`${meta.name} went although ${solid.name} owned it`] : [];
  });
}

test('whatever happens, what is left is what should be', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 4, maxLength: 30 }), fc.boolean(), async (steps, areTwo) => {
      const storage = new MemoryStorage();
      const errors: unknown[] = [];
      const start = (): ApiServer =>
        new ApiServer({
          ...{ storage: remote(storage), resources: EVERYTHING, garbageCollection: true },
          onError: (error) => void errors.push(error),
        });
      let servers = areTwo ? [start(), start()] : [start()];
      const orders = () => (servers[0] as ApiServer).resource('orders.example.com/v1').in('default');
      const scope = storage.scope('example.com/orders/default/');
      const left = async (): Promise<readonly KubernetesObject[]> => (await scope.list()).items;
      const uids = new Map<number, string>();
      const asked = new Set<string>();
      const ended: KubernetesObject[][] = [];
      const history = scope.watch({ resourceVersion: (await scope.list()).resourceVersion });
      const replaying = replay(await history, ended);
      for (const each of steps) {
        if (each.do === 'create') {
          const ownerReferences = each.owners.map(([at, blockOwnerDeletion]) => ({
            ...{ apiVersion: 'example.com/v1', kind: 'Order', name: `o${at}`, uid: uids.get(at) ?? 'never', blockOwnerDeletion },
          }));
          const metadata = { name: `o${each.name}`, ownerReferences, ...(each.held && { finalizers: [HELD] }) };
          const made = await orders()
            .create({ metadata })
            .catch(() => undefined);
          if (made) uids.set(each.name, made.metadata?.uid ?? '');
        } else if (each.do === 'delete') {
          const found = await orders()
            .get(`o${each.name}`)
            .catch(() => undefined);
          if (found) asked.add(found.metadata?.uid ?? '');
          await orders()
            .delete(`o${each.name}`, { propagation: each.policy })
            .catch(() => undefined);
        } else if (each.do === 'free') {
          const change = [
            { op: 'test', path: '/metadata/finalizers/0', value: HELD },
            { op: 'remove', path: '/metadata/finalizers/0' },
          ];
          await orders()
            .patch(`o${each.name}`, change, { type: 'json' })
            .catch(() => undefined);
        } else if (each.do === 'rest') await quiet(storage);
        else {
          await (servers.pop() as ApiServer).shutdown();
          servers = [start(), ...servers];
        }
      }
      await quiet(storage);
      const items = await left();
      const byUid = new Map(items.map((item) => [item.metadata?.uid, item.metadata]));
      for (const { metadata = {} } of items) {
        const owners = ownersOf(metadata);
        const there = owners.filter(({ uid, name }) => byUid.get(uid)?.name === name);
        const label = JSON.stringify(metadata);
        // Nothing waits for orphans, and what waits for dependents has some, unless it is one of its own.
        expect([label, waits(metadata, 'orphan')]).toEqual([label, false]);
        if (waits(metadata, 'foregroundDeletion')) {
          const blocking = items.some((item) =>
            ownersOf(item.metadata ?? {}).some((each) => each.uid === metadata.uid && each.blockOwnerDeletion),
          );
          expect([label, blocking]).toEqual([label, true]);
        }
        if (metadata.deletionTimestamp !== undefined || owners.length === 0) continue;
        expect([label, there.length]).toEqual([label, owners.length]);
        expect([label, there.some(({ uid }) => waits(byUid.get(uid), 'foregroundDeletion'))]).toEqual([label, false]);
      }
      for (const each of servers) await each.shutdown();
      (await history).stop();
      await replaying;
      expect(wrongs(ended, asked)).toEqual([]);
      expect(errors).toEqual([]);
      await storage.close();
    }),
    { numRuns: runs(60) },
  );
});

/** Notes each object that goes or begins to go, with what was there at that moment. */
async function replay(
  watch: AsyncIterable<{ readonly type: string; readonly object: unknown }>,
  ended: KubernetesObject[][],
): Promise<void> {
  const state = new Map<string, KubernetesObject>();
  for await (const { type, object } of watch) {
    const now = object as KubernetesObject;
    const { name: key = '', deletionTimestamp } = now.metadata ?? {};
    const before = state.get(key);
    const begins = deletionTimestamp !== undefined && before?.metadata?.deletionTimestamp === undefined;
    if (begins || (type === 'DELETED' && before?.metadata?.deletionTimestamp === undefined))
      ended.push([before ?? now, ...state.values()]);
    if (type === 'DELETED') state.delete(key);
    else state.set(key, now);
  }
}
