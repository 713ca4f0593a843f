// What stores, collections and hooks infer, and what they refuse.
import { describe, expect, it } from 'vitest';
import {
  type Collection,
  type CollectionOptions,
  type ConnectionState,
  type ConnectionStatus,
  connect,
  type EventStore,
  type SharedOptions,
  toCollection,
  toStore,
  type ViewOptions,
} from '../../src/bridge/client.ts';
import type { Informer } from '../../src/cache/index.ts';
import type { Broadcaster, ObjectEvent, WatchEvent } from '../../src/index.ts';
import { useCollection, useConnection, useWatch } from '../../src/react/index.ts';
import { type Assignable, claim, compiles, type Equal } from './assert.ts';

interface Order {
  readonly id: string;
  readonly total: number;
}
type Orders = WatchEvent<'placed', Order> | WatchEvent<'cancelled', { id: string }>;
type Unsaid<Options> = { readonly [Name in keyof Options]-?: undefined };
type Lax<Options> = Assignable<Unsaid<Options>, Options>;

function stores(informer: Informer<Order>, broadcaster: Broadcaster<Orders>): void {
  const count = toStore('/watch', { initial: 0, reduce: (state: number) => state + 1 });
  claim<Equal<typeof count, EventStore<number>>>();
  // The objects of a snapshot come as ADDED, whatever else the hub publishes.
  const typed = toStore<Orders, number>('/watch', {
    initial: 0,
    reduce: (state, event) => {
      claim<Equal<typeof event.type, 'placed' | 'cancelled' | 'ADDED'>>();
      return event.type === 'placed' ? state + event.object.total : state;
    },
  });
  claim<Equal<ReturnType<typeof typed.getSnapshot>['state'], number>>();
  toStore(broadcaster, { initial: '', reduce: (_, event) => event.object.id });
  toStore((options) => connect<Orders>('/watch', { ...options, headers: { a: 'b' } }), {
    initial: '',
    reduce: (state) => state,
  });
  toStore(async ({ signal }) => `/watch?token=${signal.aborted}`, { initial: '', reduce: (state) => state });
  claim<Equal<ReturnType<typeof toStore>['connection'] extends { getSnapshot: () => infer S } ? S : never, ConnectionState>>();
  const things = toCollection(informer);
  claim<Equal<typeof things, Collection<Order>>>();
  const untyped = toCollection('/watch', { sort: (one: Order, other: Order) => one.total - other.total });
  claim<Equal<typeof untyped, Collection<Order>>>();
  // @ts-expect-error the store decides what happens when a position is lost
  toStore('/watch', { initial: 0, reduce: (state: number) => state, onExpired: 'fail' });
  // @ts-expect-error a state of another kind
  toStore('/watch', { initial: 0, reduce: () => 'one' });
  // @ts-expect-error an initial state needs a function
  toStore('/watch', { initial: 0 });
  // @ts-expect-error no such member
  toCollection(informer, { selector: (order) => order.price > 1 });
  // @ts-expect-error sort is a function
  toCollection<Order>('/watch', { sort: 'total' });
  // @ts-expect-error no source
  toCollection(7);
}

function useHooks(informer: Informer<Order>, collection: Collection<Order>, store: EventStore<number>): void {
  const { items, total, ready, get } = useCollection(informer, { selector: (order) => order.total > 1, limit: 5 });
  claim<Equal<typeof items, readonly Order[]>>();
  claim<Equal<[typeof total, typeof ready, ReturnType<typeof get>], [number, boolean, Order | undefined]>>();
  claim<Equal<ReturnType<typeof useCollection<Order>>['items'], readonly Order[]>>();
  useCollection(collection, { sort: (one, other) => one.total - other.total });
  const { state } = useWatch(store);
  claim<Equal<typeof state, number>>();
  const { state: text } = useWatch('/watch', {
    initial: '',
    reduce: (_: string, { object }: WatchEvent<'ADDED', string>) => object,
  });
  claim<Equal<typeof text, string>>();
  // @ts-expect-error a snapshot comes as ADDED
  useWatch('/watch', { initial: '', reduce: (_: string, { object }: WatchEvent<'x', string>) => object });
  useConnection(informer);
  useConnection(collection);
  useConnection(store);
  useConnection(new URL('http://h.example'));
  const { status } = useConnection('/watch', { graceMs: 0 });
  claim<Equal<typeof status, ConnectionStatus>>();
  // @ts-expect-error another view of a collection has no connection of its own
  useCollection(collection, { headers: {} });
  // @ts-expect-error a fold needs a function
  useWatch('/watch');
  // @ts-expect-error items are read-only
  items.push({ id: 'a', total: 1 });
}

function options(): void {
  claim<Lax<SharedOptions>>();
  claim<Lax<ViewOptions<Order>>>();
  claim<Lax<CollectionOptions<Order>>>();
  claim<Assignable<ObjectEvent<Order>, WatchEvent>>();
}

describe('types of stores and hooks', () => {
  it('compiles', () => {
    expect(compiles(stores, useHooks, options)).toBe(3);
  });
});
