// `toStore` and `toCollection`: what events add up to, who shares a connection, and what is shown of it.
import { describe, expect, test, vi } from 'vitest';
import { ShownConnection } from '../../src/bridge/client/shown-connection.ts';
import type { ConnectOptions, Store } from '../../src/bridge/client.ts';
import { connect, toCollection, toStore } from '../../src/bridge/client.ts';
import { toBookmark } from '../../src/bridge/protocol.ts';
import { FakeClock } from '../../src/testing/fakes/fake-clock.ts';
import type { WatchEvent } from '../../src/watch/event.ts';
import { FakeNetwork, settle } from './client-network.ts';
import { at, type Event, error, status } from './client-rig.ts';

const URL = 'http://h.example/watch';

function rig(): {
  clock: FakeClock;
  network: FakeNetwork;
  options: ConnectOptions<never> & { clock: FakeClock; random: () => number };
} {
  const clock = new FakeClock();
  const network = new FakeNetwork();
  return { clock, network, options: { ...network.options('http'), clock, random: () => 1 } };
}

const live = (sequence: number, object: unknown = sequence, type = 'ADDED'): Event => ({
  type,
  object,
  resourceVersion: at(sequence),
});
const held = (object: unknown): Event => ({ type: 'ADDED', object });
const end = (sequence: number): Event => toBookmark(at(sequence), { initialEventsEnd: true }) as Event;

async function accept(network: FakeNetwork, ...events: Event[]): Promise<void> {
  await settle();
  network.link.accept();
  await settle();
  network.link.send(...events);
  await settle();
}

/** Every snapshot that a store has shown. */
function seen<S>(store: Store<S>): { readonly all: S[]; readonly leave: () => void } {
  const all: S[] = [];
  return { all, leave: store.subscribe(() => all.push(store.getSnapshot())) };
}

const list = (state: readonly unknown[], { object }: WatchEvent): readonly unknown[] => [...state, object];
const none: readonly unknown[] = [];
const LIST = { initial: none, reduce: list };

describe('toStore', () => {
  test('connects with the first subscriber, folds, and closes a moment after the last has left', async () => {
    const { clock, network, options } = rig();
    const store = toStore(URL, { ...LIST, ...options, flushIntervalMs: 0 });
    await settle();
    expect(network.links).toHaveLength(0);
    expect(store.getSnapshot()).toBe(store.getServerSnapshot());
    const { all, leave } = seen(store);
    await accept(network, held(1), end(1), live(2));
    expect(store.getSnapshot()).toMatchObject({ state: [1, 2], ready: true });
    expect(all.at(-1)).toBe(store.getSnapshot());
    leave();
    leave();
    clock.advance(999);
    expect(network.link.closed).toBe(false);
    const back = seen(store);
    clock.advance(5_000);
    expect(store.getSnapshot()).toMatchObject({ state: [1, 2] });
    back.leave();
    clock.advance(1_000);
    await settle();
    expect(network.link.closed).toBe(true);
    expect(network.links).toHaveLength(1);
    expect(clock.pending).toBe(0);
    expect(store.getSnapshot()).toBe(store.getServerSnapshot());
  });

  test('after a restart of the server, the old state stays until the snapshot has ended', async () => {
    const { clock, network, options } = rig();
    const store = toStore(URL, { ...LIST, ...options, flushIntervalMs: 0 });
    const { all, leave } = seen(store);
    await accept(network, held('a'), held('b'), end(2));
    network.link.cut();
    await settle();
    clock.advance(500);
    await settle();
    network.link.refuse(410);
    await settle();
    clock.advance(0);
    await accept(network, held('c'));
    expect(store.getSnapshot().state).toEqual(['a', 'b']);
    network.link.send(held('d'), { ...end(1), resourceVersion: at(1, 'f') } as Event);
    network.link.send({ ...live(2, 'e'), resourceVersion: at(2, 'f') });
    await settle();
    expect(store.getSnapshot()).toMatchObject({ state: ['c', 'd', 'e'], ready: true });
    expect(all.map(({ state }) => state.join('')).filter((text) => text.startsWith('c'))).not.toContain('c');
    expect(all.every(({ ready }, index) => ready || !all[index - 1]?.ready)).toBe(true);
    leave();
    clock.advance(1_000);
    expect(clock.pending).toBe(0);
  });

  test('a source without a snapshot begins again with its next event, or a BOOKMARK', async () => {
    const { clock, network, options } = rig();
    const store = toStore(URL, { ...LIST, ...options, flushIntervalMs: 0 });
    const { leave } = seen(store);
    await accept(network, toBookmark(at(0)) as Event);
    expect(store.getSnapshot()).toMatchObject({ state: [], ready: true });
    network.link.send(live(1), error(410));
    await settle();
    expect(store.getSnapshot().state).toEqual([1]);
    clock.advance(0);
    await accept(network, live(7));
    expect(store.getSnapshot().state).toEqual([7]);
    leave();
  });

  test('says at most once per interval what has changed, the first time at once', async () => {
    const { clock, network, options } = rig();
    const store = toStore(URL, { ...LIST, ...options, flushIntervalMs: 50 });
    const { all, leave } = seen(store);
    await accept(network, live(1));
    expect(all.at(-1)?.state).toEqual([1]);
    const shown = all.length;
    network.link.send(live(2));
    await settle();
    network.link.send(live(3));
    await settle();
    expect(all).toHaveLength(shown);
    clock.advance(50);
    expect(all.slice(shown).map(({ state }) => state)).toEqual([[1, 2, 3]]);
    leave();
  });

  test('what reduce throws is the error of the store; whoever comes later begins anew', async () => {
    const { clock, network, options } = rig();
    const onError = vi.fn();
    const fault = new Error('wrong');
    const reduce = (state: number, { object }: WatchEvent): number => {
      if (object === 2) throw fault;
      return state + 1;
    };
    const store = toStore(URL, { ...options, initial: 0, reduce, onError, flushIntervalMs: 0 });
    const { leave } = seen(store);
    await accept(network, live(1), live(2), live(3));
    expect(store.getSnapshot()).toMatchObject({ state: 1, error: fault });
    expect(onError.mock.calls).toEqual([[fault]]);
    expect(network.link.closed).toBe(true);
    leave();
    expect(store.getSnapshot().state).toBe(0);
    const again = seen(store);
    await accept(network, live(4));
    expect(store.getSnapshot()).toMatchObject({ state: 1 });
    expect(store.getSnapshot()).not.toHaveProperty('error');
    again.leave();
    clock.advance(1_000);
    expect(clock.pending).toBe(0);
  });

  test('without a listener, failures are printed', async () => {
    const print = vi.spyOn(console, 'error').mockImplementation(() => {});
    const { network, options } = rig();
    const { leave } = seen(toStore(URL, { ...LIST, ...options }));
    await settle();
    network.link.refuse(404, 'no such hub');
    await settle();
    expect(print.mock.calls.flat()).toEqual([expect.stringContaining('watchmux store: the connection failed')]);
    print.mockRestore();
    leave();
  });

  test('refuses what it cannot use', () => {
    const { options } = rig();
    expect(() => toStore(7 as never)).toThrow('source: expected a URL');
    expect(() => toStore(URL, { ...LIST, lingerMs: -1 })).toThrow('lingerMs: expected a number >= 0');
    expect(() => toStore(URL, { ...options, initial: 1 } as never)).toThrow('reduce: expected a function');
    expect(() => toStore(URL, { ...LIST, linger: 1 } as never)).toThrow('unknown option linger');
    expect(() => toStore(URL, { ...LIST, onExpired: 'fail' } as never)).toThrow('unknown option onExpired');
    expect(() => toCollection(URL, { sort: 'name' } as never)).toThrow('sort: expected a function');
    expect(() => toCollection(URL, { limit: -1 })).toThrow('limit: expected a whole number');
  });
});

describe('who shares a connection', () => {
  test('stores of the same source and options do, and those that fold alike share their state', async () => {
    const { clock, network, options } = rig();
    const all = { ...LIST, ...options, flushIntervalMs: 0 };
    const one = toStore(URL, all);
    const other = toStore(`${URL}`, { ...all, headers: undefined });
    const count = toStore(URL, { ...all, initial: 0, reduce: (state: number) => state + 1 });
    const leave = [one, other, count].map((store: Store<unknown>) => seen(store).leave);
    await accept(network, live(1), live(2));
    expect(network.links).toHaveLength(1);
    expect(one.getSnapshot()).toBe(other.getSnapshot());
    expect(count.getSnapshot().state).toBe(2);
    // Later, too, a store of the same kind gets the state at once. Another kind needs the events from the start.
    const late = toStore(URL, all);
    expect(late.getSnapshot().state).toEqual([1, 2]);
    leave.push(seen(late).leave);
    expect(network.links).toHaveLength(1);
    leave.push(seen(toStore(URL, { ...all, initial: '', reduce: (state: string) => state })).leave);
    leave.push(seen(toStore(URL, { ...all, headers: { a: 'b' } })).leave);
    await settle();
    expect(network.links).toHaveLength(3);
    for (const each of leave) each();
    clock.advance(1_000);
    await settle();
    expect(network.links.every(({ closed }) => closed)).toBe(true);
    expect(clock.pending).toBe(0);
  });

  test('who only looks at the connection has none of its own, if there is one', async () => {
    const { clock, network, options } = rig();
    const state = toStore(URL, options).connection;
    const first = seen(state);
    await accept(network, live(1));
    expect(state.getSnapshot().status).toBe('live');
    expect(network.links).toHaveLength(1);
    // A store needs the events from the start. Its connection replaces that one.
    const store = toStore(URL, { ...LIST, ...options, flushIntervalMs: 0 });
    const second = seen(store);
    await settle();
    expect(network.links.map(({ closed }) => closed)).toEqual([true, false]);
    await accept(network, live(1));
    expect(store.getSnapshot().state).toEqual([1]);
    expect(state.getSnapshot()).toBe(store.connection.getSnapshot());
    second.leave();
    clock.advance(1_000);
    expect(network.link.closed).toBe(false);
    first.leave();
    clock.advance(1_000);
    expect(network.link.closed).toBe(true);
    expect(clock.pending).toBe(0);
  });
});

describe('the state of a connection', () => {
  const statuses = (store: Store<{ readonly status: string }>): { all: string[]; leave: () => void } => {
    const all: string[] = [];
    return { all, leave: store.subscribe(() => all.push(store.getSnapshot().status)) };
  };

  test('a short loss is not shown, a long one is, and then that it is offline', async () => {
    const { clock, network, options } = rig();
    const onError = vi.fn();
    const store = toStore(URL, { ...LIST, ...options, onError, backoff: { minMs: 1_500, maxMs: 1_500 } });
    const { connection } = store;
    const { all, leave } = statuses(connection);
    await accept(network, live(1));
    network.link.cut();
    await settle();
    clock.advance(1_500);
    await accept(network);
    expect(all).toEqual(['live']);
    expect(onError).not.toHaveBeenCalled();
    network.link.cut();
    await settle();
    for (let passed = 0; passed < 21_000; passed += 1_500) {
      clock.advance(1_500);
      await settle();
      network.link.cut();
      await settle();
      if (passed === 1_500) expect(all).toEqual(['live', 'reconnecting']);
    }
    expect(all).toEqual(['live', 'reconnecting', 'offline']);
    expect(connection.getSnapshot().error?.message).toContain('connection refused');
    expect(onError).toHaveBeenCalled();
    clock.advance(1_500);
    await accept(network);
    expect(all.at(-1)).toBe('live');
    expect(connection.getSnapshot().error).toBeUndefined();
    expect(store.getSnapshot().state).toEqual([1]);
    leave();
    clock.advance(1_000);
    expect(clock.pending).toBe(0);
  });

  test('a renewal that the server has planned shows nothing, even if it asks for a delay', async () => {
    const { clock, network, options } = rig();
    const { connection } = toStore(URL, { ...LIST, ...options });
    const { all, leave } = statuses(connection);
    await accept(network, live(1), toBookmark(at(1), { retryAfterMs: 5_000 }) as Event);
    network.link.end();
    await settle();
    clock.advance(5_500);
    await accept(network, live(2));
    expect(network.links).toHaveLength(2);
    expect(all).toEqual(['live']);
    leave();
  });

  test.each([
    [401, 'signed out'],
    [403, 'signed out'],
    [404, 'gone'],
    [400, 'gone'],
  ])('%i is an error and final: %s; reconnect tries again, and what was shown stays', async (code, expected) => {
    const { clock, network, options } = rig();
    const store = toStore(URL, { ...LIST, ...options, flushIntervalMs: 0, onError: () => {} });
    const { leave } = seen(store);
    await accept(network, live(1));
    network.link.cut();
    await settle();
    clock.advance(500);
    await settle();
    network.link.refuse(code, JSON.stringify(status(code)));
    await settle();
    expect(store.getSnapshot()).toMatchObject({ state: [1] });
    expect(store.connection.getSnapshot()).toMatchObject({ status: expected, error: { code } });
    expect(clock.pending).toBe(0);
    store.connection.getSnapshot().reconnect();
    expect(store.connection.getSnapshot().status).toBe('connecting');
    expect(store.getSnapshot()).toMatchObject({ state: [1] });
    await accept(network, held(5), end(5));
    expect(store.getSnapshot()).toMatchObject({ state: [5] });
    leave();
  });

  test('an end without an error is one', async () => {
    const { network, options } = rig();
    const store = toStore(URL, { ...LIST, ...options });
    const { leave } = seen(store);
    await settle();
    network.link.refuse(204);
    await settle();
    expect(store.connection.getSnapshot()).toMatchObject({ status: 'gone', error: undefined });
    leave();
  });
});

test('what is heard of a connection after its end changes nothing', () => {
  const contact = new ShownConnection(
    { clock: new FakeClock(), graceMs: 0, offlineMs: 0 },
    { changed: () => {}, reconnect: () => {} },
  );
  contact.over();
  contact.lost(status(401));
  expect(contact.state.status).toBe('gone');
});

describe('sources', () => {
  test('a function that answers a URL is called before each attempt', async () => {
    const { clock, network, options } = rig();
    let token = 0;
    const { leave } = seen(toStore(async () => `${URL}?token=${++token}`, { ...LIST, ...options }));
    await accept(network, live(1));
    network.link.cut();
    await settle();
    clock.advance(500);
    await accept(network);
    expect(network.links.map(({ url }) => url.searchParams.get('token'))).toEqual(['1', '2']);
    leave();
  });

  test('if it throws, that is a failed attempt', async () => {
    const { clock, network, options } = rig();
    let calls = 0;
    const source = (): string => {
      if (++calls < 3) throw new Error('no token');
      return URL;
    };
    const { leave } = seen(toStore(source, { ...LIST, ...options }));
    await settle();
    clock.advance(500);
    await settle();
    clock.advance(1_000);
    await accept(network);
    expect(calls).toBe(3);
    leave();
  });

  test('a function may open a watch', async () => {
    const { clock, network, options } = rig();
    const store = toStore<Event, readonly unknown[]>((open) => connect<Event>(URL, { ...options, ...open }), {
      ...LIST,
      clock,
      flushIntervalMs: 0,
    });
    const { leave } = seen(store);
    await accept(network, live(1), error(410));
    clock.advance(0);
    await accept(network, held(3), end(3));
    expect(store.getSnapshot()).toMatchObject({ state: [3] });
    leave();
    clock.advance(1_000);
    expect(network.link.closed).toBe(true);
    expect(clock.pending).toBe(0);
  });
});

describe('toCollection', () => {
  interface Thing {
    readonly id: string;
    readonly at: number;
  }
  const thing = (id: string, place: number): Thing => ({ id, at: place });

  test('shows what the selector lets through, in order, and keeps what has not changed', async () => {
    const { clock, network, options } = rig();
    const things = toCollection<Thing>(URL, { ...options, flushIntervalMs: 0, sort: (one, other) => one.at - other.at });
    const first = things.view({ selector: (one) => one.at < 10, sort: (one, other) => one.at - other.at, limit: 2 });
    const { all, leave } = seen(first);
    const other = seen(things);
    await accept(network, held(thing('a', 3)), held(thing('b', 1)), held(thing('c', 2)), held(thing('d', 20)), end(4));
    expect(network.links).toHaveLength(1);
    const ids = (): string =>
      first
        .getSnapshot()
        .items.map(({ id }) => id)
        .join('');
    expect(ids()).toBe('bc');
    expect(first.getSnapshot()).toMatchObject({ total: 3, ready: true });
    expect(first.getSnapshot().get('a')).toEqual(thing('a', 3));
    expect(first.getSnapshot().get('d')).toBeUndefined();
    const [b] = first.getSnapshot().items;
    const shown = all.length;
    // Neither in the view, nor changed.
    network.link.send(live(5, thing('d', 21), 'MODIFIED'), live(6, thing('b', 1), 'MODIFIED'));
    await settle();
    expect(all).toHaveLength(shown);
    network.link.send(live(7, thing('a', 0), 'MODIFIED'), live(8, thing('c', 2), 'DELETED'));
    await settle();
    expect(ids()).toBe('ab');
    expect(first.getSnapshot().items[1]).toBe(b);
    expect(
      things
        .getSnapshot()
        .items.map(({ id }) => id)
        .join(''),
    ).toBe('abd');
    leave();
    other.leave();
    clock.advance(1_000);
    expect(clock.pending).toBe(0);
  });

  test('what has changed and is again what it was, between two looks, is the same object', async () => {
    const { clock, network, options } = rig();
    const things = toCollection<Thing>(URL, { ...options, flushIntervalMs: 100 });
    const { leave } = seen(things);
    await accept(network, held(thing('a', 1)), end(1));
    clock.advance(100);
    const [before] = things.getSnapshot().items;
    expect(before).toEqual(thing('a', 1));
    network.link.send(live(2, thing('a', 2), 'MODIFIED'), live(3, thing('a', 1), 'MODIFIED'));
    await settle();
    clock.advance(100);
    expect(things.getSnapshot().items[0]).toBe(before);
    leave();
    clock.advance(1_000);
    expect(clock.pending).toBe(0);
  });

  test('between two looks, neither `get` nor a new view shows what has arrived since', async () => {
    const { clock, network, options } = rig();
    const things = toCollection<Thing>(URL, { ...options, flushIntervalMs: 100 });
    const { leave } = seen(things);
    await accept(network, held(thing('a', 1)));
    const shown = things.getSnapshot();
    expect(shown).toMatchObject({ items: [thing('a', 1)], ready: false });
    network.link.send(held(thing('b', 1)), end(1), live(2, thing('a', 1), 'DELETED'));
    await settle();
    expect([things.getSnapshot(), shown.get('a'), shown.get('b')]).toEqual([shown, thing('a', 1), undefined]);
    expect(things.view({}).getSnapshot()).toMatchObject({ items: [thing('a', 1)], ready: false });
    clock.advance(100);
    expect(things.getSnapshot()).toMatchObject({ items: [thing('b', 1)], ready: true });
    expect(['a', 'b'].map(things.getSnapshot().get)).toEqual([undefined, thing('b', 1)]);
    leave();
  });

  test('a new snapshot replaces all at once, and keeps equal objects', async () => {
    const { clock, network, options } = rig();
    const things = toCollection<Thing>(URL, { ...options, flushIntervalMs: 0 });
    const { all, leave } = seen(things);
    await accept(network, held(thing('b', 1)), held(thing('a', 1)), end(2));
    const before = things.getSnapshot();
    network.link.send(error(410));
    await settle();
    clock.advance(0);
    await accept(network, held(thing('a', 1)));
    expect(things.getSnapshot().items).toBe(before.items);
    network.link.send(held(thing('b', 1)), end(9));
    await settle();
    expect(things.getSnapshot().items).toBe(before.items);
    network.link.send(error(410));
    await settle();
    clock.advance(500);
    await accept(network, held(thing('b', 2)), held(thing('a', 1)), end(10));
    expect(things.getSnapshot().items).toEqual([thing('a', 1), thing('b', 2)]);
    expect(things.getSnapshot().items[0]).toBe(before.items[0]);
    expect(all.every(({ items, ready }) => !ready || items.length === 2)).toBe(true);
    leave();
  });

  test('what selector, sort or key throws is the error; without a key there must be a name', async () => {
    const { network, options } = rig();
    const fault = new Error('wrong');
    const settings = { ...options, flushIntervalMs: 0, onError: () => {} };
    const things = toCollection<Thing>(URL, settings);
    const wrong = things.view({
      selector: ({ at: place }) => {
        if (place === 1) throw fault;
        return true;
      },
    });
    const { leave } = seen(wrong);
    await accept(network, live(1, thing('a', 1)));
    expect(wrong.getSnapshot()).toMatchObject({ error: fault });
    network.link.send(live(2, thing('a', 2)), live(3, thing('b', 3)));
    await settle();
    expect(wrong.getSnapshot().items).toHaveLength(2);
    expect(wrong.getSnapshot()).not.toHaveProperty('error');
    const late = things.view({ selector: (async () => false) as unknown as () => boolean });
    const { leave: leaveLate } = seen(late);
    expect(late.getSnapshot().error).toMatchObject({ message: expect.stringContaining('selector: expected a boolean') });
    leaveLate();
    network.link.send(live(4, { name: 'c' }));
    await settle();
    expect(wrong.getSnapshot().error).toMatchObject({ message: expect.stringContaining('neither metadata.name nor id') });
    leave();
  });
});
