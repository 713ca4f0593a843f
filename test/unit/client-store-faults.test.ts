// Stores and collections whose users, or whose sources, are careless.
import { expect, test, vi } from 'vitest';
import { ShownConnection } from '../../src/bridge/client/shown-connection.ts';
import { connect, toCollection, toStore } from '../../src/bridge/client.ts';
import { toBookmark } from '../../src/bridge/protocol.ts';
import { Broadcaster } from '../../src/broadcast/broadcaster.ts';
import { FakeClock } from '../../src/testing/fakes/fake-clock.ts';
import type { WatchEvent } from '../../src/watch/event.ts';
import { FakeNetwork, settle } from './client-network.ts';
import { at, status } from './client-rig.ts';

interface Thing {
  readonly id: string;
  readonly value?: unknown;
}

const publish = async (source: Broadcaster<WatchEvent>, type: 'ADDED' | 'MODIFIED', object: Thing): Promise<void> => {
  source.publish({ type, object });
  await settle();
};

test('who has unsubscribed within a listener is not called any more', async () => {
  const source = new Broadcaster<WatchEvent>();
  const store = toStore<WatchEvent, number>(source, { initial: 0, reduce: (count) => count + 1, flushIntervalMs: 0 });
  const other = vi.fn();
  const leave = store.subscribe(() => leaveOther());
  const leaveOther = store.subscribe(other);
  await publish(source, 'ADDED', { id: 'a' });
  expect(store.getSnapshot().state).toBe(1);
  expect(other).not.toHaveBeenCalled();
  leave();
});

test('an informer that has to sign in again shows that until something else happens', () => {
  const clock = new FakeClock();
  const shown: string[] = [];
  const options = { clock, graceMs: 2_000, offlineMs: 20_000 };
  const contact: ShownConnection = new ShownConnection(options, {
    changed: () => shown.push(contact.state.status),
    reconnect: () => {},
  });
  contact.begin();
  contact.lost(status(401));
  clock.advance(3_000);
  contact.lost(status(401));
  clock.advance(30_000);
  expect(shown).toEqual(['signed out']);
  expect(clock.pending).toBe(0);
  contact.lost(new Error('refused'));
  expect(shown).toEqual(['signed out', 'offline']);
  contact.open();
  contact.close();
});

test('what JSON cannot say has changed, even if it has no members that differ', async () => {
  const source = new Broadcaster<WatchEvent<'ADDED' | 'MODIFIED' | 'DELETED', Thing>>();
  const things = toCollection<Thing>(source, { flushIntervalMs: 0 });
  const leave = things.subscribe(() => {});
  const values = [new Date(1), new Date(2), new Map([[1, 1]]), new Map([[1, 2]])];
  for (const value of values) {
    await publish(source as Broadcaster<WatchEvent>, 'ADDED', { id: 'a', value });
    expect(things.getSnapshot().items[0]?.value).toBe(value);
  }
  const [before] = things.getSnapshot().items;
  await publish(source as Broadcaster<WatchEvent>, 'ADDED', { id: 'a', value: values.at(-1) });
  expect(things.getSnapshot().items[0]).toBe(before);
  leave();
});

test('a store whose function has thrown is not shown as connected: it is not', async () => {
  const network = new FakeNetwork();
  const clock = new FakeClock();
  const fault = new Error('wrong');
  const reduce = (): number => {
    throw fault;
  };
  const options = { ...network.options('http'), clock, flushIntervalMs: 0, onError: () => {} };
  const store = toStore<WatchEvent, number>('http://h.example/watch', { ...options, initial: 0, reduce });
  const shown: string[] = [];
  const leave = store.connection.subscribe(() => shown.push(store.connection.getSnapshot().status));
  await settle();
  network.link.accept();
  await settle();
  network.link.send({ type: 'ADDED', object: 1, resourceVersion: at(1) });
  await settle();
  expect(network.link.closed).toBe(true);
  expect(shown).toEqual(['live', 'gone']);
  expect(store.connection.getSnapshot()).toMatchObject({ status: 'gone', error: fault });
  leave();
});

const URL = 'http://h.example/watch';

test('a function that does not pass its options on is connected as long as events come', async () => {
  const network = new FakeNetwork();
  const clock = new FakeClock();
  const source = (): ReturnType<typeof connect> => connect(URL, { ...network.options('http'), clock });
  const store = toStore<WatchEvent, number>(source, { initial: 0, reduce: (count) => count + 1, clock, flushIntervalMs: 0 });
  const shown: string[] = [];
  const leave = store.connection.subscribe(() => shown.push(store.connection.getSnapshot().status));
  await settle();
  network.link.accept();
  await settle();
  clock.advance(20_000);
  network.link.send({ type: 'ADDED', object: 1, resourceVersion: at(1) });
  await settle();
  clock.advance(60_000);
  expect(shown).toEqual(['offline', 'live']);
  network.link.send({ type: 'ERROR', object: status(404) });
  await settle();
  expect(shown).toEqual(['offline', 'live', 'gone']);
  leave();
});

test('a watch that has ended does not add to the state that begins anew', async () => {
  const network = new FakeNetwork();
  const clock = new FakeClock();
  const store = toStore<WatchEvent, readonly unknown[]>('ws://h.example/watch', {
    ...network.options('browser'),
    initial: [],
    reduce: (all, { object }) => [...all, object],
    clock,
    flushIntervalMs: 0,
  });
  const { connection } = store;
  const leaveConnection = connection.subscribe(() => {
    const { status: now, reconnect } = connection.getSnapshot();
    if (now === 'gone') reconnect();
  });
  const leave = store.subscribe(() => {});
  await settle();
  network.link.accept();
  // It is over before its events have been read.
  network.link.send({ type: 'ADDED', object: 1, resourceVersion: at(1) }, { type: 'ADDED', object: 2, resourceVersion: at(2) });
  network.link.end(1000, 'complete');
  await settle();
  network.link.accept();
  network.link.send({ type: 'ADDED', object: 'x' }, toBookmark(at(3), { initialEventsEnd: true }));
  await settle();
  expect(network.links).toHaveLength(2);
  expect(store.getSnapshot().state).toEqual(['x']);
  leave();
  leaveConnection();
});

test('a broadcaster has no state that would have to come: it is ready at once, and again when it is watched again', async () => {
  const source = new Broadcaster<WatchEvent>({ overflow: 'disconnect', capacity: 2 });
  const options = { initial: 0, reduce: (count: number) => count + 1, flushIntervalMs: 0 };
  const store = toStore<WatchEvent, number>(source, options);
  const leave = store.subscribe(() => {});
  expect(store.getSnapshot()).toEqual({ state: 0, ready: true });
  await publish(source as Broadcaster<WatchEvent>, 'ADDED', { id: 'a' });
  expect(store.getSnapshot()).toEqual({ state: 1, ready: true });
  for (const id of ['b', 'c', 'd', 'e']) source.publish({ type: 'ADDED', object: { id } });
  await settle();
  expect(store.connection.getSnapshot().status).toBe('gone');
  const before = store.getSnapshot().state;
  expect(before).toBeGreaterThan(0);
  store.connection.getSnapshot().reconnect();
  await publish(source as Broadcaster<WatchEvent>, 'ADDED', { id: 'f' });
  expect(store.getSnapshot()).toEqual({ state: 1, ready: true });
  leave();
});

test('the key of a store tells who shares it, and nothing else', () => {
  const keyOf = (token: string, more: object = {}): string => toStore(URL, { token, ...more }).key;
  const secret = 'a-secret-of-somebody';
  expect(keyOf(secret)).toBe(keyOf(secret));
  expect(keyOf(secret)).not.toBe(keyOf('another-secret'));
  expect(keyOf(secret)).not.toBe(keyOf(secret, { transport: 'sse' }));
  const headers = { authorization: `Basic ${secret}` };
  const all = [keyOf(secret), toStore(URL, { headers }).key, toStore(`${URL}?token=${secret}`).key];
  expect(new Set(all).size).toBe(3);
  for (const key of [...all, toCollection(URL, { token: secret }).key]) {
    expect(key).not.toContain(secret);
    expect(key.length).toBeLessThan(40);
  }
});

test('a wrong value is refused where it is given, not at the first subscriber', () => {
  const wrong =
    (options: object): (() => unknown) =>
    () =>
      toStore(URL, options);
  expect(wrong({ transport: 'bogus' })).toThrow('transport: expected one of http, sse, websocket, got "bogus"');
  expect(wrong({ capacity: 0 })).toThrow('capacity: expected a whole number >= 1, got 0');
  expect(wrong({ backoff: { minMs: -1 } })).toThrow('minMs: expected a number >= 0, got -1');
  expect(() => toCollection(URL, { connectTimeoutMs: '1' as never })).toThrow('connectTimeoutMs: expected a number >= 0');
});

test('that a server has restarted is no failure of the connection', async () => {
  const network = new FakeNetwork();
  const clock = new FakeClock();
  const onError = vi.fn();
  const options = { ...network.options('http'), clock, random: () => 1, flushIntervalMs: 0, graceMs: 0, onError };
  const store = toStore<WatchEvent, number>(URL, { ...options, initial: 0, reduce: (count) => count + 1 });
  const shown: string[] = [];
  const leave = store.connection.subscribe(() => {
    const { status: now, error } = store.connection.getSnapshot();
    shown.push(`${now} ${(error as Error | undefined)?.message ?? ''}`);
  });
  await settle();
  network.link.accept();
  await settle();
  network.link.send({ type: 'ADDED', object: 1, resourceVersion: at(1) });
  await settle();
  network.link.cut();
  await settle();
  clock.advance(500);
  await settle();
  network.link.refuse(410);
  await settle();
  clock.advance(0);
  await settle();
  network.link.accept();
  await settle();
  expect(shown.map((text) => text.split(' ')[0])).toEqual(['live', 'reconnecting', 'live']);
  expect(onError).toHaveBeenCalledTimes(1);
  leave();
});
