import type { IncomingMessage, Server } from 'node:http';
import { createServer } from 'node:http';
import type { Request as ExpressRequest, RequestHandler } from 'express';
import type { Observable } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { WebSocket as NodeWebSocket } from 'ws';
import { fromObservable, observe, toObservable } from '../../src/adapters/rxjs.ts';
import {
  type Attempt,
  type ClientEvent,
  type ClientState,
  type ClientWatch,
  connect,
  type isInitialEventsEnd,
  type PerAttempt,
} from '../../src/bridge/client.ts';
import { createFetchHandler } from '../../src/bridge/fetch.ts';
import { createHttpHandler, Hub, type HubOptions, type Snapshot } from '../../src/bridge/http.ts';
import { attachWebSocket } from '../../src/bridge/websocket.ts';
import {
  Broadcaster,
  type ErrorEvent,
  isErrorEvent,
  jsonCodec,
  type ObjectEvent,
  type Overflow,
  toReadableStream,
  type Watch,
  type WatchEvent,
  type WatchOptions,
} from '../../src/index.ts';
import {
  type CHECKERS,
  checkHistory,
  type FakeWatcher,
  GUARANTEES,
  type GuaranteeName,
  type History,
  HistoryRecorder,
  type Violation,
  WATCH_CONTRACT,
} from '../../src/testing/index.ts';
import { type Assignable, claim, compiles, type Equal } from './assert.ts';

type Orders = WatchEvent<'placed', { total: number }> | WatchEvent<'cancelled', { id: string }>;
type Pods = ObjectEvent<Pod>;
interface Pod {
  readonly metadata: { readonly name: string };
}

function rx(broadcaster: Broadcaster<Orders>, watch: Watch<Orders>, source: Observable<Orders>): void {
  const observed = observe(broadcaster, { capacity: 1, overflow: 'drop-oldest' });
  const over = toObservable(watch);
  const back = fromObservable(source, { capacity: 1, overflow: 'coalesce', keyOf: ({ type }) => type });
  // @ts-expect-error no such policy
  observe(broadcaster, { overflow: 'latest' });
  // @ts-expect-error an observable cannot be made to wait
  fromObservable(source, { maxPending: 1 });
  // @ts-expect-error only events
  fromObservable(source as unknown as Observable<number>);
  const recorded = observe(new HistoryRecorder(broadcaster), { filter: ({ type }) => type === 'placed' });
  claim<Equal<typeof observed, Observable<Orders>>>();
  claim<Equal<typeof recorded, Observable<Orders>>>();
  claim<Equal<typeof over, Observable<Orders>>>();
  claim<Equal<typeof back, Watch<Orders | ErrorEvent>>>();
  const cutting = new Broadcaster<Orders>({ overflow: 'disconnect' });
  const policy = 'wait' as Overflow;
  claim<Equal<ReturnType<typeof observe<Orders, Orders>>, Observable<Orders>>>();
  const byDefault = observe(cutting);
  const kept = observe(cutting, { overflow: 'wait' });
  const cut = observe(broadcaster, { overflow: 'disconnect' });
  const perhaps = observe(broadcaster, { overflow: policy });
  const later = observe(broadcaster, { after: 3 });
  const rerecorded = observe(new HistoryRecorder(cutting));
  const plainBack = fromObservable(source);
  const keptBack = fromObservable(source, { overflow: 'drop-oldest', capacity: 2 });
  const perhapsBack = fromObservable(source, { overflow: policy });
  const stream = toReadableStream(broadcaster.watch({ overflow: 'coalesce' }));
  claim<Equal<typeof byDefault, Observable<Orders | ErrorEvent>>>();
  claim<Equal<typeof kept, Observable<Orders>>>();
  claim<Equal<typeof cut, Observable<Orders | ErrorEvent>>>();
  claim<Equal<typeof perhaps, Observable<Orders | ErrorEvent>>>();
  claim<Equal<typeof later, Observable<Orders | ErrorEvent>>>();
  claim<Equal<typeof rerecorded, Observable<Orders | ErrorEvent>>>();
  claim<Equal<typeof plainBack, Watch<Orders>>>();
  claim<Equal<typeof keptBack, Watch<Orders>>>();
  claim<Equal<typeof perhapsBack, Watch<Orders | ErrorEvent>>>();
  claim<Equal<typeof stream, ReadableStream<Orders | ErrorEvent>>>();
  const own = { watch: (_options?: WatchOptions<Orders>): Watch<Orders> => watch };
  const ofOwn = observe(own);
  claim<Equal<typeof ofOwn, Observable<Orders>>>();
  // @ts-expect-error nothing but a broadcaster, or what stands in front of one
  observe([]);
  // @ts-expect-error an observable is not an array
  fromObservable([]);
}

function fakes(fake: FakeWatcher<ObjectEvent<Pod>>, orders: FakeWatcher<Orders>): void {
  void fake.add({ metadata: { name: 'p' } });
  // @ts-expect-error a pod has a name
  void fake.add({ metadata: {} });
  void orders.action('cancelled', { id: 'a' });
  // @ts-expect-error that is the object of another type
  void orders.action('cancelled', { total: 1 });
}

function clients(): void {
  const watch = connect<Orders>('/watch', {
    overflow: 'drop-oldest',
    onGap: (missed) => missed.toFixed(),
    maxAttempts: undefined,
  });
  const any = connect(new URL('https://h/'), { WebSocket: globalThis.WebSocket, fetch: globalThis.fetch, signal: undefined });
  const rich = connect('ws://h/', { WebSocket: NodeWebSocket, codec: jsonCodec<Orders>() });
  connect(() => '/watch', { headers: () => ({ authorization: 'a' }) });
  connect(async ({ signal }) => new URL(signal.aborted ? 'ws://a/' : 'ws://b/'), { headers: async () => ({ a: 'b' }) });
  const perAttempt: PerAttempt<string | URL> = (attempt: Attempt) => Promise.resolve(String(attempt.signal.aborted));
  connect(perAttempt);
  // @ts-expect-error a number is no URL
  connect(() => 5);
  // @ts-expect-error nor is nothing
  connect(async () => undefined);
  // @ts-expect-error a header is a text
  connect('/watch', { headers: async () => ({ a: 5 }) });
  // @ts-expect-error that is the server's to do
  connect('/watch', { overflow: 'coalesce' });
  // @ts-expect-error no such transport
  connect('/watch', { transport: 'polling' });
  // @ts-expect-error a watch says its state, and is not told
  watch.state = 'open';
  claim<Equal<typeof watch, ClientWatch<ClientEvent<Orders>>>>();
  claim<Equal<typeof any, ClientWatch<ClientEvent>>>();
  claim<Equal<typeof rich, ClientWatch<ClientEvent<Orders>>>>();
  claim<Assignable<typeof watch, Watch<ClientEvent<Orders>>>>();
  const event = watch.tryNext();
  if (event === undefined || isErrorEvent(event)) claim<Equal<typeof event, ErrorEvent | undefined>>();
  else if (event.type === 'BOOKMARK') claim<Equal<boolean, ReturnType<typeof isInitialEventsEnd>>>();
  else if (event.type === 'ADDED') claim<Equal<typeof event.object, Orders['object']>>();
  else claim<Equal<typeof event, Orders>>();
  claim<Equal<ClientEvent<Pods>, Pods>>();
  claim<Assignable<WatchEvent<'ADDED', Orders['object']>, ClientEvent<Orders>>>();
  claim<Equal<ClientState, 'connecting' | 'open' | 'waiting' | 'closed'>>();
}

interface User {
  readonly name: string;
}

function servers(hub: Hub<Orders>, server: Server, user: User | undefined): void {
  createHttpHandler<User, Orders>(hub, {
    authenticate: async () => user ?? { status: 403, message: 'not you' },
    watchOptions: (_request, { name }) => ({ filter: (event) => event.type === 'placed' && event.object.total > name.length }),
  });
  attachWebSocket(server, hub, {
    authenticate: () => user,
    watchOptions: (_request, known) => ({ capacity: known.name.length }),
  });
  // An empty header is nobody, so its text is no identity.
  createHttpHandler(hub, {
    authenticate: ({ headers }) => headers.authorization && user,
    watchOptions: (_request, known) => ({ capacity: known.name.length }),
  });
  // Frameworks extend Node's request; what asks for theirs can be mounted only there.
  const mounted = createHttpHandler(hub, {
    clientAddress: (request: ExpressRequest) => request.ip ?? '',
    authenticate: ({ cookies }) => (cookies === undefined ? undefined : user),
    watchOptions: (_request, known) => ({ capacity: known.name.length }),
  });
  claim<Equal<Parameters<typeof mounted>[0], ExpressRequest>>();
  createFetchHandler(hub, { clientAddress: (request) => request.headers.get('cf-connecting-ip') });
  claim<Assignable<typeof mounted, RequestHandler>>();
  // @ts-expect-error node:http has no such requests
  createServer(mounted);
  const plain = createHttpHandler(hub, { authenticate: ({ headers }) => headers.authorization });
  claim<Equal<Parameters<typeof plain>[0], IncomingMessage>>();
  new Hub({ onNotice: ({ type, error }) => void (error !== undefined && console.error(type, error)) });
  // @ts-expect-error the hub has no such events
  attachWebSocket(server, hub, { watchOptions: () => ({ filter: (event) => event.type === 'eaten' }) });
  claim<Assignable<typeof hub, Hub>>();
  // A snapshot's objects are ADDED to a filter, whatever types the hub's events have.
  attachWebSocket(server, hub, {
    watchOptions: () => ({
      filter: (event) => {
        if (event.type !== 'ADDED') return claim<Equal<typeof event, Orders>>() === undefined;
        claim<Equal<typeof event.object, Orders['object']>>();
        return true;
      },
    }),
  });
}

function snapshots(orders: Map<string, { total: number }>): void {
  new Hub<Orders>({ snapshot: () => orders.values() });
  new Hub<Orders>({ snapshot: async () => [{ total: 1 }, { id: 'a' }] });
  new Hub<Orders>({
    async *snapshot({ signal }) {
      if (!signal.aborted) yield { total: 1 };
    },
  });
  new Hub({ snapshot: () => [1, 'of', {}] });
  // @ts-expect-error no event of this hub has such an object
  new Hub<Orders>({ snapshot: () => [1] });
  // @ts-expect-error nor when it comes later
  new Hub<Orders>({ snapshot: async () => [{ total: 'a' }] });
  const any: Snapshot = () => [1];
  // @ts-expect-error anything is not an order
  new Hub<Orders>({ snapshot: any });
  new Hub<Pods>({ snapshot: () => [{ metadata: { name: 'p' } }] });
  // @ts-expect-error a bookmark is no object of the state
  new Hub<Pods>({ snapshot: () => [{ metadata: { resourceVersion: '1' } }] });
  claim<Equal<Snapshot, Snapshot<unknown>>>();
  claim<Equal<HubOptions<Orders>['snapshot'], Snapshot<Orders['object']> | undefined>>();
  claim<Assignable<Snapshot<number>, Snapshot>>();
}

function histories(recorder: HistoryRecorder<Orders>): Violation[] {
  // @ts-expect-error the words stand as they are
  void (() => (GUARANTEES.Ordered = 'perhaps'));
  // @ts-expect-error a history is read only
  recorder.history().steps.pop();
  claim<Equal<ReturnType<typeof recorder.history>, History<Orders>>>();
  claim<Assignable<HistoryRecorder<Orders>, Pick<Broadcaster<Orders>, 'publish' | 'tryPublish' | 'watch' | 'shutdown'>>>();
  const cut = recorder.watch({ overflow: 'disconnect', name: 'a' });
  const plain = recorder.watch({ name: 'b' });
  claim<Equal<typeof cut, Watch<Orders | ErrorEvent>>>();
  claim<Equal<typeof plain, Watch<Orders>>>();
  claim<Assignable<keyof typeof CHECKERS, GuaranteeName>>();
  claim<Equal<keyof typeof GUARANTEES, GuaranteeName>>();
  return checkHistory(recorder.history());
}

describe('the entry points', () => {
  it('have the types that the compiler has checked', () => {
    expect(compiles(rx, fakes, clients, servers, snapshots, histories)).toBe(6);
  });

  it('export at run time what their types declare', () => {
    expect(histories(new HistoryRecorder(new Broadcaster<Orders>()))).toEqual([]);
    expect(WATCH_CONTRACT.length).toBeGreaterThan(10);
  });
});
