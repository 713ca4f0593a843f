import { describe, expect, it } from 'vitest';
import {
  type DeletedFinalStateUnknown,
  type Delta,
  DeltaFifo,
  Indexer,
  isDeletedFinalStateUnknown,
  type KubernetesObject,
  keyOf,
  type List,
  type ListWatcher,
  type RealDelta,
  RealFifo,
  type ReflectorStore,
  type Store,
} from '../../src/cache/index.ts';
import type { ObjectEvent, Watch } from '../../src/index.ts';
import { type Assignable, claim, compiles, type Equal } from './assert.ts';

/** What the classes of `@kubernetes/client-node` look like: mutable, optional, with dates. */
class V1ObjectMeta {
  name?: string;
  namespace?: string;
  resourceVersion?: string;
  labels?: { [key: string]: string };
  creationTimestamp?: Date;
  ownerReferences?: Array<{ uid: string }>;
  finalizers?: Array<string>;
}
class V1Pod {
  apiVersion?: string;
  kind?: string;
  metadata?: V1ObjectMeta;
  spec?: { nodeName?: string };
}
interface Order {
  readonly id: string;
  readonly customer: string;
}

function objects(pod: V1Pod, order: Order): void {
  claim<Assignable<V1Pod, KubernetesObject>>();
  keyOf(pod);
  keyOf({ metadata: { name: 'a' } });
  // @ts-expect-error an order has no metadata
  keyOf(order);
  // @ts-expect-error a name is a string
  keyOf({ metadata: { name: 5 } });
}

function indexers(order: Order): void {
  const orders = new Indexer({ keyOf: ({ id }: Order) => id, indexers: { customer: (each: Order) => [each.customer] } });
  claim<Equal<typeof orders, Indexer<Order, 'customer'>>>();
  const found = orders.byIndex('customer', 'a');
  claim<Equal<typeof found, Order[]>>();
  // @ts-expect-error there is no such index
  orders.byIndex('costumer', 'a');
  // @ts-expect-error nor for keys
  orders.indexKeys('id', 'a');
  const more = orders.addIndexers({ first: ({ id }) => [id.slice(0, 1)] });
  more.index('first', order);
  more.indexValues('customer');
  // @ts-expect-error not even then
  more.indexValues('last');
  // @ts-expect-error values are strings
  orders.addIndexers({ size: ({ id }) => [id.length] });
  // @ts-expect-error and in an array
  new Indexer<Order>({ indexers: { id: ({ id }) => id } });
  // @ts-expect-error orders are not numbers
  orders.add(5);
  const any = new Indexer<Order>({ indexers: { customer: ({ customer }) => [customer] } });
  any.byIndex('a name that only the run time knows', 'a');
  claim<Assignable<typeof orders, Store<Order>>>();
  claim<Assignable<Store<Order>, ReflectorStore<Order>>>();
  const one = orders.get('a');
  claim<Equal<typeof one, Order | undefined>>();
  orders.list({ namespace: 'a', filter: ({ customer }) => customer === 'b' });
  // @ts-expect-error no such option
  orders.list({ labels: 'a=b' });
}

function queues(store: Store<V1Pod>): void {
  const fifo = new DeltaFifo<V1Pod>({ knownObjects: store, emitReplaced: true });
  const popped = fifo.pop((deltas, initial) => {
    claim<Equal<typeof deltas, readonly Delta<V1Pod>[]>>();
    claim<Equal<typeof initial, boolean>>();
    for (const delta of deltas) {
      claim<Equal<typeof delta.object, V1Pod>>();
      if (delta.type === 'Deleted') claim<Equal<typeof delta.finalStateUnknown, boolean>>();
      // @ts-expect-error only of deletions
      else void delta.finalStateUnknown;
    }
  });
  claim<Equal<typeof popped, Promise<readonly Delta<V1Pod>[]>>>();
  const real = new RealFifo<V1Pod>();
  void real.popBatch(([delta]) => {
    claim<Equal<typeof delta, RealDelta<V1Pod> | undefined>>();
    // @ts-expect-error not every delta is of one object
    void delta?.object;
    if (delta?.type === 'ReplacedAll') claim<Equal<typeof delta.objects, ReadonlyMap<string, V1Pod>>>();
  });
  // @ts-expect-error that is the other queue's
  new RealFifo<V1Pod>({ emitReplaced: true });
  // @ts-expect-error orders are in no such store
  new DeltaFifo<Order>({ knownObjects: store });
  claim<Assignable<typeof fifo, ReflectorStore<V1Pod>>>();
  claim<Assignable<typeof real, ReflectorStore<V1Pod>>>();
}

async function sources(source: ListWatcher<V1Pod>): Promise<void> {
  const list = await source.list({ limit: 5, resourceVersionMatch: 'NotOlderThan' });
  const watch = await source.watch({ resourceVersion: list.resourceVersion, allowWatchBookmarks: true });
  claim<Equal<typeof list, List<V1Pod>>>();
  claim<Equal<typeof watch, Watch<ObjectEvent<V1Pod>>>>();
  // @ts-expect-error no such match
  await source.list({ resourceVersionMatch: 'Newest' });
  // @ts-expect-error a version is a string
  await source.watch({ resourceVersion: 5 });
  // @ts-expect-error a list is read only
  list.items = [];
}

function inferred(delta: Delta<V1Pod>, target: V1Pod | DeletedFinalStateUnknown<V1Pod>): void {
  if (isDeletedFinalStateUnknown<V1Pod>(delta)) claim<Equal<typeof delta.finalStateUnknown, true>>();
  if (!isDeletedFinalStateUnknown(target)) claim<Equal<typeof target, V1Pod>>();
}

describe('the entry point for caches', () => {
  it('has the types that the compiler has checked', () => {
    expect(compiles(objects, indexers, queues, sources, inferred)).toBe(5);
  });
});
