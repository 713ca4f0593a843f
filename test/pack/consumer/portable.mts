// Compiled by check-tarball.mjs with several compilers: the entry points that need no types of Node.
import { firstValueFrom, Subject } from 'rxjs';
import {
  Broadcaster,
  type ErrorEvent,
  filter,
  filterTransitions,
  isErrorEvent,
  isWatchError,
  type ObjectEvent,
  type Overflow,
  Recorder,
  StreamWatcher,
  toDecoder,
  toReadableStream,
  type Watch,
  type WatchEvent,
} from 'watchmux';
import { type Collection, toCollection, toStore } from 'watchmux/client';
import { useCollection, useConnection } from 'watchmux/react';
import { fromObservable, observe, toObservable } from 'watchmux/rxjs';
import { FakeClock, FakeWatcher } from 'watchmux/testing';

type Orders = WatchEvent<'placed', { id: string; total: number }> | WatchEvent<'cancelled', { id: string }>;
interface Pod {
  metadata: { namespace: string; name: string };
}

export function useOrders(): string {
  const shared: Collection<{ id: string }> = toCollection<{ id: string }>('/watch', { limit: 10 });
  const { items } = useCollection(shared, { selector: ({ id }) => id !== '' });
  const total = toStore<Orders, number>('/watch', { initial: 0, reduce: (state, { object }) => state + object.id.length });
  // @ts-expect-error a total is a number
  total.getSnapshot().state.trim();
  return `${items[0]?.id} ${useConnection(shared).status}`;
}

export async function main(bytes: AsyncIterable<Uint8Array>): Promise<void> {
  const overflow: Overflow = 'drop-oldest';
  const orders = new Broadcaster<Orders>({ capacity: 10, overflow, keyOf: ({ object }) => object.id });
  const watch: Watch<Orders> = orders.watch({
    filter: (event) => event.type === 'placed',
    onGap: (missed: number) => void missed,
  });
  await orders.publish({ type: 'cancelled', object: { id: '1' } });
  // @ts-expect-error a cancelled order has no total
  await orders.publish({ type: 'cancelled', object: { id: '1', total: 2 } });
  // @ts-expect-error no such policy
  orders.watch({ overflow: 'drop' });
  for await (const event of watch) {
    if (event.type === 'placed') event.object.total.toFixed();
    // @ts-expect-error only a placed order has a total
    else event.object.total;
  }
  for await (const batch of orders.watch().batches()) {
    const first: Orders | undefined = batch[0];
    // @ts-expect-error batches are shared: read only
    batch.push(first);
  }
  const totals: Watch<number> = filter(watch, (event) => (event.type === 'placed' ? event.object.total : undefined));
  const { done, value } = await totals.next();
  if (!done) value.toFixed();

  const pods = new StreamWatcher(toDecoder<ObjectEvent<Pod>>(bytes));
  // @ts-expect-error the type of the events is not inferred from where they go
  new StreamWatcher<ObjectEvent<Pod>>(toDecoder(bytes));
  const recorder = new Recorder(filterTransitions(pods, (pod) => pod.metadata.namespace === 'default'));
  for await (const event of recorder) {
    if (isErrorEvent(event)) ((error: ErrorEvent) => error.object.code)(event);
    else if (event.type !== 'BOOKMARK') event.object.metadata.name.trim();
    else event.object.metadata.resourceVersion.trim();
  }
  try {
    const reader = toReadableStream(orders.watch()).getReader();
    const { value: streamed } = await reader.read();
    streamed?.object.id.trim();
  } catch (error) {
    if (isWatchError(error, 'OVERLOADED')) error.limit?.toFixed();
  }

  const subject = new Subject<Orders>();
  const seen: Orders = await firstValueFrom(observe(orders));
  const again: Orders = await firstValueFrom(toObservable(fromObservable(subject, { capacity: 1 })));
  const fake = new FakeWatcher<ObjectEvent<Pod>>({ capacity: 1 });
  const sent: boolean = await fake.add({ metadata: { namespace: 'n', name: 'a' } });
  // @ts-expect-error not a pod
  await fake.add(1);
  new FakeClock().advance(sent && seen.type === again.type ? 1 : 2);
  watch[Symbol.dispose]();
  await watch[Symbol.asyncDispose]();
}
