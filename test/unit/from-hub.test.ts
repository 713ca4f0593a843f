// A hub as the source of an informer, over the client's own connection.
import { describe, expect, test } from 'vitest';
import { connect } from '../../src/bridge/client.ts';
import { createFetchHandler, Hub } from '../../src/bridge/fetch.ts';
import { fromHub, type HubConnectOptions, Informer } from '../../src/cache/index.ts';
import { FakeClock, FakeWatcher } from '../../src/testing/index.ts';
import type { ObjectEvent, WatchEvent } from '../../src/watch/event.ts';
import { toStatus } from '../../src/watch/event.ts';
import type { Watch } from '../../src/watch/watch.ts';
import { until } from '../eventually.ts';
import { fate, macrotask } from './support.ts';

interface Order {
  readonly id: string;
  readonly total: number;
}

/** A hub that keeps orders, and a way to connect to it that needs no network. */
function shop(options: { snapshot?: boolean; replay?: number } = {}) {
  const orders = new Map<string, Order>([['a', { id: 'a', total: 1 }]]);
  const snapshot = options.snapshot === false ? {} : { snapshot: () => orders.values() };
  const make = (epoch: string): Hub => new Hub({ epoch, replay: options.replay ?? 100, ...snapshot });
  const shopped = {
    hub: make('e1'),
    orders,
    put(order: Order): void {
      const type = orders.has(order.id) ? 'MODIFIED' : 'ADDED';
      orders.set(order.id, order);
      shopped.hub.tryPublish({ type, object: order });
    },
    remove(id: string): void {
      const object = orders.get(id);
      orders.delete(id);
      shopped.hub.tryPublish({ type: 'DELETED', object });
    },
    /** The server is another one from now on, which knows nothing of the versions before. */
    restart(): void {
      void shopped.hub.shutdown();
      shopped.hub = make('e2');
    },
    connections: [] as HubConnectOptions[],
    connect: (own: HubConnectOptions) => {
      shopped.connections.push(own);
      return connect<WatchEvent>('http://127.0.0.1/watch', {
        ...own,
        backoff: { minMs: 1, maxMs: 1 },
        fetch: async (url, init) => createFetchHandler(shopped.hub)(new Request(url, init)),
      });
    },
  };
  return shopped;
}

const keyOf = ({ id }: Order): string => id;
const totals = (informer: Informer<Order>): string =>
  informer.store
    .list()
    .map(({ id, total }) => id + total)
    .sort()
    .join(' ');

describe('fromHub', () => {
  test('keeps a live copy of objects of any kind, at the versions of the hub', async () => {
    const own = shop();
    const informer = new Informer(fromHub<Order>(own.connect), { keyOf });
    const calls: string[] = [];
    const handler = informer.addHandler({
      onAdd: ({ id }, initial) => void calls.push(`${initial ? '!' : '+'}${id}`),
      onUpdate: (old, { id, total }) => void calls.push(`${id}${old.total}>${total}`),
      onDelete: ({ id }, unknown) => void calls.push(`-${id}${unknown ? '?' : ''}`),
    });
    const run = informer.run();
    await informer.synced;
    await handler.synced;
    expect([totals(informer), informer.resourceVersion]).toEqual(['a1', 'e1.0']);
    own.put({ id: 'b', total: 2 });
    own.put({ id: 'a', total: 3 });
    await until(() => totals(informer) === 'a3 b2');
    expect(informer.resourceVersion).toBe('e1.2');
    own.remove('a');
    await until(() => totals(informer) === 'b2');
    expect(informer.resourceVersion).toBe('e1.3');
    await until(() => calls.length === 4);
    expect(calls).toEqual(['!a', '+b', 'a1>3', '-a']);
    await informer.stop();
    await run;
  });

  test('begins anew with the snapshot when the hub has lost its history', async () => {
    const own = shop();
    const clock = new FakeClock();
    const informer = new Informer(fromHub<Order>(own.connect), { keyOf, clock, random: () => 0.5 });
    const deleted: string[] = [];
    informer.addHandler({ onDelete: ({ id }, unknown) => void deleted.push(`${id} ${unknown}`) });
    const run = informer.run();
    await informer.synced;
    own.put({ id: 'b', total: 2 });
    await until(() => totals(informer) === 'a1 b2');
    own.restart();
    own.orders.delete('a');
    own.orders.set('c', { id: 'c', total: 4 });
    for (let i = 0; i < 200 && totals(informer) !== 'b2 c4'; i++) {
      clock.advance(1_000);
      for (let j = 0; j < 10; j++) await new Promise((resolve) => setTimeout(resolve, 0));
    }
    expect(totals(informer)).toBe('b2 c4');
    expect(deleted).toEqual(['a true']);
    expect(informer.resourceVersion.startsWith('e2.')).toBe(true);
    await informer.stop();
    await run;
    expect(clock.pending).toBe(0);
  });

  test('an ERROR that the application publishes is no end of the watch; one of code 410 makes it read the snapshot again', async () => {
    const own = shop();
    const clock = new FakeClock();
    const informer = new Informer(fromHub<Order>(own.connect), { keyOf, clock, random: () => 0.5 });
    const fail = (code: number): void =>
      void own.hub.tryPublish({ type: 'ERROR', object: toStatus({ code, reason: 'Because', message: 'of the shop' }) });
    const run = informer.run();
    await informer.synced;
    const before = own.connections.length;
    fail(500);
    own.put({ id: 'b', total: 2 });
    await until(() => totals(informer) === 'a1 b2');
    expect(own.connections).toHaveLength(before);
    own.orders.delete('b');
    fail(410);
    await until(() => {
      clock.advance(100);
      return totals(informer) === 'a1';
    });
    own.put({ id: 'c', total: 3 });
    await until(() => totals(informer) === 'a1 c3');
    await informer.stop();
    await run;
    expect(clock.pending).toBe(0);
  });

  test('goes on from its version when a connection breaks, or cannot be made, though the connection does not try again', async () => {
    const own = shop();
    const clock = new FakeClock();
    let cut = new AbortController();
    const asked: unknown[] = [];
    const source = fromHub<Order>((options) => {
      asked.push(options.resourceVersion);
      const fetch = async (url: string | URL | Request, init?: RequestInit): Promise<Response> => {
        if (asked.length === 2) throw new TypeError('fetch failed');
        const { body, status, headers } = await createFetchHandler(own.hub)(new Request(url, init));
        return new Response(body?.pipeThrough(new TransformStream(), { signal: cut.signal }), { status, headers });
      };
      return connect<WatchEvent>('http://127.0.0.1/watch', { ...options, maxAttempts: 0, fetch });
    });
    const kinds: string[] = [];
    const onError = (_: unknown, { kind }: { kind: string }): void => void kinds.push(kind);
    const informer = new Informer(source, { keyOf, clock, random: () => 0, onError });
    const changes: string[] = [];
    informer.addHandler({ onUpdate: (_, { id, total }) => void changes.push(`${id}${total}`) });
    const run = informer.run();
    await informer.synced;
    own.put({ id: 'b', total: 2 });
    await until(() => totals(informer) === 'a1 b2');
    cut.abort(new TypeError('terminated'));
    cut = new AbortController();
    own.put({ id: 'b', total: 3 });
    for (let failures = 1; failures <= 2; failures++) {
      await until(() => informer.state.failures === failures && informer.state.phase === 'waiting');
      clock.advance((informer.state.nextAttemptMs ?? 0) - clock.now());
    }
    await until(() => totals(informer) === 'a1 b3');
    expect([asked, changes]).toEqual([[undefined, 'e1.1', 'e1.1'], ['b3']]);
    expect(kinds).toEqual(['unreachable', 'unreachable']);
    await informer.stop();
    await run;
  });

  test('lists, and watches from a version', async () => {
    const own = shop();
    const source = fromHub<Order>(own.connect);
    expect(await source.list()).toEqual({ items: [{ id: 'a', total: 1 }], resourceVersion: 'e1.0' });
    own.put({ id: 'b', total: 2 });
    const watch = await source.watch({ resourceVersion: 'e1.0' });
    expect((await watch.next()).value).toMatchObject({ type: 'ADDED', object: { id: 'b' }, resourceVersion: 'e1.1' });
    await watch.return();
    const whole = await source.watch({ resourceVersion: '0' });
    const first = (await whole.next()).value as ObjectEvent<Order>;
    expect(first).toMatchObject({ type: 'ADDED', object: { id: 'a' } });
    await whole.return();
    expect(own.connections.map(({ resourceVersion }) => resourceVersion)).toEqual([undefined, 'e1.0', undefined]);
  });

  test('a watch is there when the hub has answered, and not before; a hub that cannot be reached is not connected', async () => {
    const own = shop();
    const clock = new FakeClock();
    let answer = async (): Promise<void> => {};
    const fetch = async (url: string | URL | Request, init?: RequestInit): Promise<Response> => {
      await answer();
      return createFetchHandler(own.hub)(new Request(url, init));
    };
    const source = fromHub<Order>((options) =>
      connect<WatchEvent>('http://127.0.0.1/watch', { ...options, maxAttempts: 0, fetch }),
    );

    let open = (): void => {};
    answer = () =>
      new Promise((resolve) => {
        open = resolve;
      });
    const slow = fate(source.watch({ resourceVersion: 'e1.0' }));
    await macrotask();
    expect(slow.state).toBe('pending');
    open();
    await until(() => slow.state === 'resolved');
    await ((await slow.value) as Watch<ObjectEvent<Order>>).return();

    const stop = new AbortController();
    const aborted = fate(source.watch({ signal: stop.signal }));
    await macrotask();
    stop.abort(new Error('enough'));
    await until(() => aborted.state === 'rejected');
    expect(aborted.error).toEqual(new Error('enough'));

    answer = () => Promise.reject(new TypeError('fetch failed'));
    for (const asked of [source.watch(), source.list()]) await expect(asked).rejects.toEqual(new Error('fetch failed'));
    const informer = new Informer(source, { keyOf, clock, random: () => 0 });
    const run = informer.run();
    for (let i = 0; i < 5; i++) {
      await until(() => informer.state.phase === 'waiting');
      expect(informer.state).toMatchObject({ connected: false, lastContactMs: undefined, failures: i + 1 });
      clock.advance((informer.state.nextAttemptMs ?? 0) - clock.now());
      await until(() => informer.state.failures > i + 1);
    }
    answer = async () => {};
    clock.advance(60_000);
    await informer.synced;
    expect(informer.state.connected).toBe(true);
    await informer.stop();
    await run;
  });

  test.each([
    [429, undefined, 'throttled'],
    [503, 1, 'throttled'],
    [503, undefined, 'unreachable'],
    [500, undefined, 'other'],
  ])('a refusal with %i, with a time to come back of %s, is %s', async (code, retryAfterSeconds, expected) => {
    const details = retryAfterSeconds === undefined ? {} : { details: { retryAfterSeconds } };
    const body = JSON.stringify(toStatus({ code, reason: 'No', message: 'not now', ...details }));
    const fetch = async (): Promise<Response> =>
      new Response(body, { status: code, headers: { 'content-type': 'application/json' } });
    const kinds: string[] = [];
    const source = fromHub<Order>((own) => connect<WatchEvent>('http://127.0.0.1/watch', { ...own, maxAttempts: 0, fetch }));
    const onError = (_: unknown, { kind }: { kind: string }): void => void kinds.push(kind);
    const informer = new Informer(source, { keyOf, clock: new FakeClock(), onError });
    const run = informer.run();
    await until(() => informer.state.phase === 'waiting');
    expect(kinds).toEqual([expected]);
    await informer.stop();
    await run;
  });

  test('a connection that says nothing of its state counts as open', async () => {
    const { connect: open } = shop();
    const early = await fromHub<Order>(({ signal }) => open({ signal })).watch();
    await early.return();
    const watch = new FakeWatcher<ObjectEvent<Order>>();
    const source = fromHub<Order>(() => watch);
    const opened = await source.watch();
    void watch.add({ id: 'a', total: 1 });
    expect((await opened.next()).value).toMatchObject({ type: 'ADDED' });
    await opened.return();
  });

  test('a hub without a snapshot is refused as soon as that shows', async () => {
    const own = shop({ snapshot: false });
    const source = fromHub<Order>(own.connect);
    const list = fate(source.list());
    await until(() => own.hub.stats().clients.length === 1);
    own.put({ id: 'b', total: 2 });
    await until(() => list.state !== 'pending');
    expect(list.error).toMatchObject({ code: 'REFUSED', status: { code: 405 } });
    const stop = new AbortController();
    const aborted = fate(source.list({ signal: stop.signal }));
    stop.abort(new Error('enough'));
    await until(() => aborted.state !== 'pending');
    expect(aborted.error).toEqual(new Error('enough'));
    expect(() => fromHub('http://127.0.0.1' as never)).toThrow('connect: expected a function');
  });

  test('a selector is refused: everything would be taken for what it selects', async () => {
    const own = shop();
    const source = fromHub<Order>(own.connect);
    const refused = { code: 'REFUSED', status: { code: 400, message: expect.stringContaining('"app=web"') } };
    await expect(source.list({ labelSelector: 'app=web' })).rejects.toMatchObject(refused);
    await expect(source.watch({ fieldSelector: 'app=web', resourceVersion: 'e1.0' })).rejects.toMatchObject(refused);
    const errors: unknown[] = [];
    const informer = new Informer(source, { keyOf, labelSelector: 'app=web', onError: (error) => errors.push(error) });
    const run = informer.run();
    await until(() => errors.length > 0);
    expect(errors[0]).toMatchObject(refused);
    expect(informer.hasSynced).toBe(false);
    await informer.stop();
    await run;
    expect(own.connections).toEqual([]);
  });
});
