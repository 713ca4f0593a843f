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
import { createHttpHandler, Hub, type HubOptions, type Snapshot } from '../../src/bridge/http.ts';
import { attachWebSocket } from '../../src/bridge/websocket.ts';
import {
  Broadcaster,
  type ErrorEvent,
  isErrorEvent,
  jsonCodec,
  type ObjectEvent,
  type Watch,
  type WatchEvent,
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
  claim<Equal<typeof back, Watch<Orders>>>();
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
  else claim<Equal<typeof event, Orders>>();
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
  // Frameworks extend Node's request; what asks for theirs can be mounted only there.
  const mounted = createHttpHandler(hub, {
    clientAddress: (request: ExpressRequest) => request.ip ?? '',
    authenticate: ({ cookies }) => (cookies === undefined ? undefined : user),
    watchOptions: (_request, known) => ({ capacity: known.name.length }),
  });
  claim<Equal<Parameters<typeof mounted>[0], ExpressRequest>>();
  claim<Assignable<typeof mounted, RequestHandler>>();
  // @ts-expect-error node:http has no such requests
  createServer(mounted);
  const plain = createHttpHandler(hub, { authenticate: ({ headers }) => headers.authorization });
  claim<Equal<Parameters<typeof plain>[0], IncomingMessage>>();
  new Hub({ onNotice: ({ type, error }) => void (error !== undefined && console.error(type, error)) });
  // @ts-expect-error the hub has no such events
  attachWebSocket(server, hub, { watchOptions: () => ({ filter: (event) => event.type === 'eaten' }) });
  claim<Assignable<typeof hub, Hub>>();
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
  claim<Equal<Snapshot, Snapshot<unknown>>>();
  claim<Equal<HubOptions<Orders>['snapshot'], Snapshot<Orders['object']> | undefined>>();
  claim<Assignable<Snapshot<number>, Snapshot>>();
}

function histories(recorder: HistoryRecorder<Orders>): Violation[] {
  // @ts-expect-error the words stand as they are
  GUARANTEES.Ordered = 'perhaps';
  // @ts-expect-error a history is read only
  recorder.history().steps.pop();
  claim<Equal<ReturnType<typeof recorder.history>, History<Orders>>>();
  claim<Assignable<HistoryRecorder<Orders>, Pick<Broadcaster<Orders>, 'publish' | 'tryPublish' | 'watch' | 'shutdown'>>>();
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
