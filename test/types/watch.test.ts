import { describe, expect, it } from 'vitest';
import type { Overflow, Watch, WatchBatches, WatchEvent, WatchOptions } from '../../src/index.ts';
import {
  Broadcaster,
  emptyWatch,
  filter,
  filterTransitions,
  fromAsyncIterable,
  ProxyWatcher,
  Recorder,
  StreamWatcher,
  toDecoder,
} from '../../src/index.ts';
import { type Assignable, claim, compiles, type Equal } from './assert.ts';

type Orders = WatchEvent<'placed', { total: number }> | WatchEvent<'cancelled', { id: string }>;
type Placed = Extract<Orders, { type: 'placed' }>;

function shapes(): void {
  claim<Assignable<Watch<Orders>, AsyncIterableIterator<Orders, undefined>>>();
  claim<Assignable<Watch<Orders>, AsyncIterable<Orders>>>();
  claim<Assignable<Watch<Orders>, AsyncDisposable & Disposable>>();
  claim<Assignable<WatchBatches<Orders>, AsyncIterableIterator<readonly Orders[], undefined>>>();
  claim<Assignable<Watch<Placed>, Watch<Orders>>>();
  claim<Equal<Assignable<Watch<Orders>, Watch<Placed>>, false>>();
  claim<Equal<Overflow, 'wait' | 'drop-newest' | 'drop-oldest' | 'disconnect' | 'coalesce'>>();
}

async function reads(watch: Watch<Orders>): Promise<void> {
  for await (const event of watch) {
    claim<Equal<typeof event, Orders>>();
  }
  for await (const batch of watch.batches()) {
    claim<Equal<typeof batch, readonly Orders[]>>();
    // @ts-expect-error a batch is shared with others
    batch.push({ type: 'cancelled', object: { id: 'a' } });
    // @ts-expect-error nor may it be sorted in place
    batch.sort();
  }
  const { done, value } = await watch.next();
  if (done === true) {
    claim<Equal<typeof value, undefined>>();
  }
  claim<Equal<ReturnType<typeof watch.tryNext>, Orders | undefined>>();
  // @ts-expect-error the consumer does not set this
  watch.stopped = true;
  // @ts-expect-error nor this
  watch.queued = 0;
  // @ts-expect-error nor this
  watch.dropped = 0;
}

function filters(watch: Watch<Orders>, broadcaster: Broadcaster<Orders>): void {
  const placed = filter(watch, (event) => (event.type === 'placed' ? event : undefined));
  const totals = filter(watch, (event) => (event.type === 'placed' ? event.object.total : undefined));
  const same = filterTransitions(watch, (object) => 'id' in object);
  const recorder = new Recorder(watch);
  // @ts-expect-error the function sees this watch's own events
  filter(watch, (event: WatchEvent<'other', 1>) => event);
  // @ts-expect-error no order has a colour
  filterTransitions(watch, (object) => object.colour === 'red');
  const options: WatchOptions<Orders> = { filter: ({ type }) => type === 'placed' };
  // @ts-expect-error options are not changed afterwards
  options.capacity = 1;
  broadcaster.watch(options);
  claim<Equal<typeof placed, Watch<Placed>>>();
  claim<Equal<typeof totals, Watch<number>>>();
  claim<Equal<typeof same, Watch<Orders>>>();
  claim<Equal<ReturnType<typeof recorder.events>, Orders[]>>();
}

function refuses(broadcaster: Broadcaster<Orders>): void {
  void broadcaster.publish({ type: 'placed', object: { total: 1 } });
  // @ts-expect-error no such type of event
  void broadcaster.publish({ type: 'shipped', object: { total: 1 } });
  // @ts-expect-error the object of another type
  void broadcaster.publish({ type: 'placed', object: { id: 'a' } });
  // @ts-expect-error no object
  broadcaster.tryPublish({ type: 'placed' });
  // @ts-expect-error no such policy
  new Broadcaster({ overflow: 'drop' });
  // @ts-expect-error no such policy for a watcher, either
  broadcaster.watch({ overflow: 'block' });
  // @ts-expect-error no such option
  new Broadcaster({ queueLength: 3 });
  // @ts-expect-error no such option of a watcher
  broadcaster.watch({ history: 3 });
  // @ts-expect-error `incoming` is the broadcaster's alone
  broadcaster.watch({ incoming: 3 });
  // @ts-expect-error a capacity is a number
  broadcaster.watch({ capacity: '3' });
  // @ts-expect-error a prefix is made of the same events
  broadcaster.watch({ prefix: [{ type: 'shipped', object: 1 }] });
  // @ts-expect-error the key is a string
  new Broadcaster<Orders>({ keyOf: () => 1 });
  // @ts-expect-error the key is made of this broadcaster's events
  new Broadcaster<Orders>({ keyOf: (event: WatchEvent<'other', 1>) => event.type });
  // @ts-expect-error events have a type and an object
  new Broadcaster<{ id: number }>();
  // @ts-expect-error nobody sets the number of watchers
  broadcaster.watchers = 1;
}

function makers(): void {
  claim<Equal<ReturnType<Broadcaster<Orders>['watch']>, Watch<Orders>>>();
  claim<Equal<ReturnType<typeof emptyWatch<Orders>>, Watch<Orders>>>();
  claim<Equal<ReturnType<typeof fromAsyncIterable<Orders>>, Watch<Orders>>>();
  claim<Assignable<ProxyWatcher<Orders>, Watch<Orders>>>();
  claim<Assignable<StreamWatcher<Orders>, Watch<Orders>>>();
  claim<Equal<Assignable<typeof toDecoder, never>, false>>();
}

describe('a watch', () => {
  it('has the types that the compiler has checked', () => {
    expect(compiles(shapes, reads, filters, refuses, makers)).toBe(5);
  });

  it('is an async iterator for the language', async () => {
    const watch: AsyncIterableIterator<Orders, undefined> = emptyWatch<Orders>();
    for await (const event of watch) expect(event).toBeUndefined();
    expect([ProxyWatcher, StreamWatcher, toDecoder, fromAsyncIterable].every((door) => typeof door === 'function')).toBe(true);
  });
});
