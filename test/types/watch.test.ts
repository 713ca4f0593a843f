import { describe, expect, it } from 'vitest';
import type {
  CuttingOverflow,
  ErrorEvent,
  KeepingOverflow,
  NoAsyncFilter,
  ObjectEvent,
  Overflow,
  Watch,
  WatchBatches,
  WatchEvent,
  WatchOptions,
} from '../../src/index.ts';
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
  toReadableStream,
  toStatus,
} from '../../src/index.ts';
import { type Assignable, claim, compiles, type Equal } from './assert.ts';

type Orders = WatchEvent<'placed', { total: number }> | WatchEvent<'cancelled', { id: string }>;
type Pods = ObjectEvent<{ readonly metadata: { readonly name: string } }>;
type Placed = Extract<Orders, { type: 'placed' }>;

function shapes(): void {
  claim<Assignable<Watch<Orders>, AsyncIterableIterator<Orders, undefined>>>();
  claim<Assignable<Watch<Orders>, AsyncIterable<Orders>>>();
  claim<Assignable<Watch<Orders>, AsyncDisposable & Disposable>>();
  claim<Assignable<WatchBatches<Orders>, AsyncIterableIterator<readonly Orders[], undefined>>>();
  claim<Assignable<Watch<Placed>, Watch<Orders>>>();
  claim<Equal<Assignable<Watch<Orders>, Watch<Placed>>, false>>();
  claim<Equal<CuttingOverflow, 'disconnect' | 'coalesce'>>();
  claim<Equal<KeepingOverflow, 'wait' | 'drop-newest' | 'drop-oldest'>>();
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
  const [anything, nothing] = [filter(watch, () => JSON.parse('1')), filter(watch, () => expect.fail())];
  claim<Equal<typeof anything, Watch<ReturnType<typeof JSON.parse>>>>();
  claim<Equal<typeof nothing, Watch<never>>>();
  const later = filter(watch, async (event) => (event.type === 'placed' ? event : undefined));
  claim<Equal<typeof later, NoAsyncFilter>>();
  // @ts-expect-error a promise is neither an event nor undefined
  toReadableStream(later);
  // @ts-expect-error the same for a predicate
  filterTransitions(watch, async (object) => 'id' in object);
  // @ts-expect-error the same for a watcher
  broadcaster.watch({ filter: async ({ type }) => type === 'placed' });
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
  // That of any options.
  claim<Equal<ReturnType<Broadcaster<Orders>['watch']>, Watch<Orders | ErrorEvent>>>();
  claim<Equal<ReturnType<typeof emptyWatch<Orders>>, Watch<Orders>>>();
  claim<Equal<ReturnType<typeof fromAsyncIterable<Orders>>, Watch<Orders>>>();
  claim<Assignable<ProxyWatcher<Orders>, Watch<Orders>>>();
  claim<Assignable<StreamWatcher<Orders>, Watch<Orders>>>();
  claim<Equal<Assignable<typeof toDecoder, never>, false>>();
}

/** A watch that may be cut, or begin too late, delivers an ERROR. Its type says so. */
function cuts(broadcaster: Broadcaster<Orders>, pods: Broadcaster<Pods>, policy: Overflow, options: WatchOptions<Orders>): void {
  const cutting = new Broadcaster<Orders>({ overflow: 'disconnect', capacity: 3 });
  const folding = new Broadcaster({ overflow: 'coalesce', keyOf: (order: Orders) => order.type });
  const perhaps = new Broadcaster<Orders>({ overflow: policy });
  const keeping = new Broadcaster<Orders>({ overflow: 'drop-oldest' });
  claim<Equal<typeof cutting, Broadcaster<Orders, ErrorEvent>>>();
  claim<Equal<typeof folding, Broadcaster<Orders, ErrorEvent>>>();
  claim<Equal<typeof perhaps, Broadcaster<Orders, ErrorEvent>>>();
  claim<Equal<typeof keeping, Broadcaster<Orders>>>();
  const watches = {
    plain: broadcaster.watch(),
    empty: broadcaster.watch({}),
    selected: broadcaster.watch({ capacity: 1, filter: ({ type }) => type === 'placed', overflow: undefined }),
    kept: broadcaster.watch({ overflow: 'drop-newest' }),
    keptHere: cutting.watch({ overflow: 'wait' }),
  };
  claim<Equal<(typeof watches)[keyof typeof watches], Watch<Orders>>>();
  const cut = {
    disconnected: broadcaster.watch({ overflow: 'disconnect' }),
    folded: broadcaster.watch({ overflow: 'coalesce', capacity: 1 }),
    perhaps: broadcaster.watch({ overflow: policy }),
    asToldLater: broadcaster.watch(options),
    byDefault: cutting.watch(),
    byDefaultToo: folding.watch({ capacity: 1 }),
    perhapsByDefault: perhaps.watch(),
    resumed: broadcaster.watch({ after: 3 }),
    resumedAndKept: broadcaster.watch({ after: 3, overflow: 'wait' }),
  };
  claim<Equal<(typeof cut)[keyof typeof cut], Watch<Orders | ErrorEvent>>>();
  // @ts-expect-error the ERROR is left out
  const narrow: Watch<Orders> = broadcaster.watch({ overflow: 'disconnect' });
  // @ts-expect-error and here
  const narrower: Watch<Orders> = cutting.watch();
  // @ts-expect-error nor is a broadcaster that cuts one that does not
  const broad: Broadcaster<Orders> = cutting;
  // @ts-expect-error nor does the annotation make it one
  const annotated: Broadcaster<Orders> = new Broadcaster<Orders>({ overflow: 'coalesce' });
  claim<Assignable<Broadcaster<Orders>, Broadcaster<Orders, ErrorEvent>>>();
  // @ts-expect-error its watches deliver orders and errors; only orders are published
  void cutting.publish({ type: 'ERROR', object: toStatus({ code: 410, reason: 'Expired', message: '' }) });
  const event = cut.byDefault.tryNext();
  if (event === undefined) return;
  switch (event.type) {
    case 'placed':
      claim<Equal<typeof event, Placed>>();
      return;
    case 'cancelled':
      return;
    default:
      claim<Equal<typeof event, ErrorEvent>>();
  }
  // Events that have an ERROR already stay as they are.
  const objects = new Broadcaster<Pods>({ overflow: policy });
  const anything = new Broadcaster({ overflow: 'disconnect' });
  const [cutPods, cutAnything] = [pods.watch({ overflow: 'disconnect' }), anything.watch({ after: 1 })];
  claim<Equal<typeof objects, Broadcaster<Pods>>>();
  claim<Equal<typeof anything, Broadcaster>>();
  claim<Equal<typeof cutPods, Watch<Pods>>>();
  claim<Equal<typeof cutAnything, Watch<WatchEvent>>>();
  const some: unknown = objects;
  if (some instanceof Broadcaster) claim<Equal<typeof some.watchers, number>>();
  void [narrow, narrower, broad, annotated];
}

/** A subclass does not know the options it will get, so it says what its watches deliver. */
function subclasses(): void {
  class PodBus extends Broadcaster<Pods> {}
  class AnyBus extends Broadcaster {}
  class Bus<E extends WatchEvent> extends Broadcaster<E, never> {}
  class OrderBus extends Broadcaster<Orders, never> {}
  class CuttingBus extends Broadcaster<Orders, ErrorEvent> {}
  // @ts-expect-error Orders or ErrorEvent, or Orders alone?
  class Unsaid extends Broadcaster<Orders> {}
  new OrderBus({ capacity: 1, overflow: 'drop-oldest' });
  // @ts-expect-error its watches deliver no ERROR
  new OrderBus({ overflow: 'disconnect' });
  new CuttingBus({ overflow: 'disconnect' });
  const [order, cut, pods] = [new OrderBus().watch(), new CuttingBus().watch(), new PodBus({ overflow: 'disconnect' }).watch()];
  claim<Equal<typeof order, Watch<Orders>>>();
  claim<Equal<typeof cut, Watch<Orders | ErrorEvent>>>();
  claim<Equal<typeof pods, Watch<Pods>>>();
  claim<Assignable<OrderBus, Broadcaster<Orders>>>();
  claim<Assignable<Pick<Broadcaster<Orders>, 'watch'>, Pick<OrderBus, 'watch'>>>();
  void [AnyBus, Bus, Unsaid];
}

describe('a watch', () => {
  it('has the types that the compiler has checked', () => {
    expect(compiles(shapes, reads, filters, refuses, makers, cuts, subclasses)).toBe(7);
  });

  it('is an async iterator for the language', async () => {
    const watch: AsyncIterableIterator<Orders, undefined> = emptyWatch<Orders>();
    for await (const event of watch) expect(event).toBeUndefined();
    expect([ProxyWatcher, StreamWatcher, toDecoder, fromAsyncIterable].every((each) => typeof each === 'function')).toBe(true);
  });
});
