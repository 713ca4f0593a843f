// Stores and collections whose users, or whose sources, are careless.
import { expect, test, vi } from 'vitest';
import { ShownConnection } from '../../src/bridge/client/shown-connection.ts';
import { toCollection, toStore } from '../../src/bridge/client.ts';
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
