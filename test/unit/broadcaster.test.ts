// Upstream's tests of the broadcaster, its options, and the promises of watch().
import { getEventListeners } from 'node:events';
import { describe, expect, test } from 'vitest';
import { Broadcaster, type BroadcasterOptions } from '../../src/broadcast/broadcaster.ts';
import { isWatchError, type WatchError } from '../../src/watch/errors.ts';
import { OVERFLOWS } from '../../src/watch/overflow.ts';
import {
  collect,
  done,
  event,
  events,
  fate,
  id,
  ids,
  range,
  readAll,
  readAllBut,
  type TestBroadcaster,
  type TestEvent,
  type TestWatch,
  thrown,
  turn,
} from './support.ts';

const listeners = (signal: AbortSignal): number => getEventListeners(signal, 'abort').length;
const make = (options?: BroadcasterOptions<TestEvent>): TestBroadcaster => new Broadcaster<TestEvent>(options);

describe('upstream', () => {
  test('TestBroadcaster: two watchers get everything in order, and end after shutdown', async () => {
    const broadcaster = make({ capacity: 0 });
    const got = [broadcaster.watch(), broadcaster.watch()].map(collect);
    for (const one of events(0, 50)) await broadcaster.publish(one);
    await broadcaster.shutdown();
    expect(await Promise.all(got)).toEqual([range(0, 50), range(0, 50)]);
  });

  test('TestBroadcasterWatcherClose: one stops, shutdown ends the other; more stops have no effect', async () => {
    const broadcaster = make();
    const [a, b] = [broadcaster.watch(), broadcaster.watch()];
    a.stop();
    expect(await a.next()).toEqual(done);
    expect(broadcaster.watchers).toBe(1);
    await broadcaster.shutdown();
    expect(await b.next()).toEqual(done);
    expect(broadcaster.watchers).toBe(0);
    for (const watch of [a, b]) {
      watch.stop();
      watch.stop();
      expect(await watch.return()).toEqual(done);
      expect(watch.stopped).toBe(true);
    }
    expect(broadcaster.watchers).toBe(0);
  });

  test('TestBroadcasterWatcherStopDeadlock: each stops the other from inside a receive', async () => {
    const broadcaster = make({ capacity: 0 });
    const [a, b] = [broadcaster.watch(), broadcaster.watch()];
    const run = async (mine: TestWatch, other: TestWatch): Promise<void> => {
      await mine.next();
      other.stop();
      mine.stop();
    };
    const both = Promise.all([run(a, b), run(b, a)]);
    await broadcaster.publish(event(0));
    await both;
    await broadcaster.shutdown();
    expect(broadcaster.watchers).toBe(0);
  });

  test('TestBroadcasterDropIfChannelFull: capacity 1, two events: each watcher gets the first', async () => {
    const broadcaster = make({ capacity: 1, overflow: 'drop-newest' });
    const watches = [broadcaster.watch(), broadcaster.watch()];
    await broadcaster.publish(event(0));
    await broadcaster.publish(event(1));
    await broadcaster.shutdown();
    expect(await Promise.all(watches.map(collect))).toEqual([[0], [0]]);
    expect(watches.map((watch) => watch.dropped)).toEqual([1, 1]);
  });

  test('TestBroadcasterWatchAfterShutdown: watch throws CLOSED, also with a prefix', async () => {
    const broadcaster = make();
    await broadcaster.shutdown();
    for (const options of [{}, { prefix: events(0, 1) }]) {
      const error = thrown(() => broadcaster.watch(options));
      expect(isWatchError(error, 'CLOSED')).toBe(true);
      expect((error as Error).message).toBe('watch: the broadcaster is shut down');
    }
  });

  test('TestBroadcasterSendEventAfterShutdown: publish and tryPublish fail with CLOSED', async () => {
    const broadcaster = make();
    await broadcaster.shutdown();
    expect(thrown(() => broadcaster.tryPublish(event(0)))).toMatchObject({
      code: 'CLOSED',
      message: 'publish: the broadcaster is shut down',
    });
    await expect(broadcaster.publish(event(0))).rejects.toMatchObject({ code: 'CLOSED' });
  });

  test('TestBroadcasterShutdownRace: watchers stop themselves during a shutdown', async () => {
    const broadcaster = make({ capacity: 0 });
    const readers = Array.from({ length: 5 }, async () => {
      const watch = broadcaster.watch();
      for await (const _ of watch) watch.stop();
    });
    const publishes = events(0, 10).map((one) => broadcaster.publish(one));
    const closed = broadcaster.shutdown();
    await Promise.all([...publishes, closed, ...readers]);
    expect(broadcaster.watchers).toBe(0);
  });
});

describe('options', () => {
  const bad: [string, () => unknown, RegExp][] = [
    ['capacity', () => make({ capacity: -1 }), /^capacity: expected a whole number >= 0, got -1$/],
    ['capacity', () => make({ capacity: 1.5 }), /^capacity: .* got 1\.5$/],
    ['capacity', () => make({ capacity: Number.NaN }), /^capacity: .* got NaN$/],
    ['capacity', () => make({ capacity: '5' as unknown as number }), /^capacity: .* got "5"$/],
    ['incoming', () => make({ incoming: -2 }), /^incoming: .* got -2$/],
    ['maxPending', () => make({ maxPending: Number.POSITIVE_INFINITY }), /^maxPending: .* got Infinity$/],
    ['keyOf', () => make({ keyOf: 'name' as unknown as () => string }), /^keyOf: expected a function, got "name"$/],
    [
      'overflow',
      () => make({ overflow: 'drop' as 'wait' }),
      /^overflow: expected one of wait, drop-newest, drop-oldest, disconnect, coalesce, got "drop"$/,
    ],
    ['watch capacity', () => make().watch({ capacity: -3 }), /^capacity: .* got -3$/],
    ['watch overflow', () => make().watch({ overflow: 'none' as 'wait' }), /^overflow: .* got "none"$/],
    ['watch filter', () => make().watch({ filter: true as unknown as () => boolean }), /^filter: expected a function, got true$/],
    ['watch onGap', () => make().watch({ onGap: {} as unknown as () => void }), /^onGap: expected a function, got Object \{\}$/],
    ['watch filter', () => make().watch({ filter: null as unknown as () => boolean }), /^filter: expected a function, got null$/],
    [
      'watch filter',
      () => make().watch({ filter: false as unknown as () => boolean }),
      /^filter: expected a function, got false$/,
    ],
    [
      'watch prefix',
      () => make().watch({ prefix: [event(0), 1] as unknown as TestEvent[] }),
      /^event: expected an event, .* got 1$/,
    ],
    ['watch prefix', () => make().watch({ prefix: 5 as unknown as TestEvent[] }), /^prefix: expected an array, got 5$/],
    [
      'watch prefix',
      () => make().watch({ prefix: new Set([event(0)]) as unknown as TestEvent[] }),
      /^prefix: expected an array, got Set \{\}$/,
    ],
    [
      'event',
      () => make().tryPublish(undefined as unknown as TestEvent),
      /^event: expected an event, whose type is a string, got undefined$/,
    ],
    [
      'event',
      () => make().tryPublish(null as unknown as TestEvent),
      /^event: expected an event, whose type is a string, got null$/,
    ],
  ];
  test.each(bad)('%s: the error names the option and its value', (_name, code, message) => {
    const error = thrown(code) as WatchError;
    expect(error).toMatchObject({ name: 'WatchError', code: 'INVALID_ARGUMENT' });
    expect(error.message).toMatch(message);
  });

  test('an invalid event makes publish reject', async () => {
    await expect(make().publish(undefined as unknown as TestEvent)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
  });

  test('a null signal is ignored, as by fetch: no watch is left behind, and a stalled shutdown waits', async () => {
    const signal = null as unknown as AbortSignal;
    const broadcaster = make({ capacity: 1 });
    const watch = broadcaster.watch({ signal });
    for (const one of events(0, 2)) broadcaster.tryPublish(one);
    const closed = broadcaster.shutdown({ signal });
    expect([watch.tryNext(), watch.tryNext()]).toEqual(events(0, 2));
    await closed;
  });

  test('a watch that was refused does not count', () => {
    const broadcaster = make();
    thrown(() => broadcaster.watch({ capacity: -1 }));
    thrown(() => broadcaster.watch({ signal: AbortSignal.abort() }));
    expect(broadcaster.watchers).toBe(0);
  });

  test('the defaults: wait, a capacity of 100, 25 incoming, 10,000 pending', async () => {
    const broadcaster = make();
    const watch = broadcaster.watch();
    expect(events(0, 200).filter((one) => broadcaster.tryPublish(one))).toHaveLength(125);
    expect(watch.queued).toBe(100);
    const pending = fate(Promise.all(events(0, 10_000).map((one) => broadcaster.publish(one))));
    await expect(broadcaster.publish(event(-1))).rejects.toMatchObject({ code: 'OVERLOADED', limit: 10_000 });
    expect(pending.state).toBe('pending');
    await watch.return();
    await turn();
    expect(pending.state).toBe('resolved');
  });

  test("the broadcaster's apply unless the watcher has its own", () => {
    const broadcaster = make({ capacity: 2, overflow: 'drop-oldest' });
    const watches = [broadcaster.watch(), broadcaster.watch({ capacity: 3 }), broadcaster.watch({ overflow: 'drop-newest' })];
    for (const one of events(0, 5)) broadcaster.tryPublish(one);
    expect(watches.map(readAll).map(ids)).toEqual([
      [3, 4],
      [2, 3, 4],
      [0, 1],
    ]);
  });

  test('objects are identified by namespace and name, or by keyOf', () => {
    const keyed = make({ overflow: 'coalesce', keyOf: () => 'one' });
    const plain = make({ overflow: 'coalesce' });
    const watches = [keyed, plain].map((broadcaster) => {
      const watch = broadcaster.watch();
      for (const one of events(0, 3)) broadcaster.tryPublish(one);
      return watch;
    });
    expect(watches.map(readAll).map(ids)).toEqual([[2], [0, 1, 2]]);
  });
});

describe('watch', () => {
  test('starts at a position in the stream: it sees no accepted but undistributed events, and all later ones', () => {
    const broadcaster = make({ capacity: 2, incoming: 3 });
    const slow = broadcaster.watch();
    for (const one of events(0, 5)) expect(broadcaster.tryPublish(one)).toBe(true);
    expect(broadcaster.tryPublish(event(5))).toBe(false);
    const late = broadcaster.watch({ capacity: 10 });
    expect(late.queued).toBe(0);
    expect(ids([slow.tryNext()!, slow.tryNext()!])).toEqual([0, 1]);
    expect(broadcaster.tryPublish(event(6))).toBe(true);
    expect(broadcaster.tryPublish(event(7))).toBe(true);
    expect(ids(readAll(slow))).toEqual([2, 3, 4, 6, 7]);
    expect(ids(readAll(late))).toEqual([6, 7]);
    expect(late.dropped).toBe(0);
  });

  test.each(OVERFLOWS)("'%s' starts after all accepted events, and counts none of them", (overflow) => {
    const broadcaster = make({ capacity: 1, incoming: 3 });
    const slow = broadcaster.watch();
    for (const one of events(0, 4)) broadcaster.tryPublish(one);
    const late = broadcaster.watch({ overflow });
    expect(late).toMatchObject({ queued: 0, dropped: 0, stopped: false });
    readAll(slow);
    expect(late).toMatchObject({ queued: 0, dropped: 0, stopped: false });
    broadcaster.tryPublish(event(9));
    expect(ids(readAll(late))).toEqual([9]);
  });

  test('loses nothing between watch() and the first read', async () => {
    const broadcaster = make();
    const watch = broadcaster.watch();
    await broadcaster.publish(event(1));
    expect(id((await watch.next()).value)).toBe(1);
  });

  test('a prefix comes first, then live events', async () => {
    const broadcaster = make({ capacity: 10 });
    await broadcaster.publish(event(0));
    const watch = broadcaster.watch({ prefix: events(100, 103) });
    await broadcaster.publish(event(1));
    expect(watch.queued).toBe(4);
    expect(ids(readAll(watch))).toEqual([100, 101, 102, 1]);
  });

  test.each([
    [0, 3, 4],
    [3, 3, 4],
    [4, 3, 4],
    [5, 3, 5],
    [0, 0, 1],
    [2, 0, 2],
  ])('capacity %i with a prefix of %i is a capacity of %i', (capacity, length, grown) => {
    const broadcaster = make({ overflow: 'drop-newest' });
    const watch = broadcaster.watch({ capacity, prefix: events(0, length) });
    for (const one of events(100, 110)) broadcaster.tryPublish(one);
    expect(watch).toMatchObject({ queued: grown, dropped: length + 10 - grown });
  });

  test('the filter applies to the prefix, too', () => {
    const broadcaster = make();
    const watch = broadcaster.watch({ prefix: events(0, 5), filter: (one) => one.object.id % 2 === 0 });
    for (const one of events(5, 8)) broadcaster.tryPublish(one);
    expect(watch).toMatchObject({ queued: 4, dropped: 0 });
    expect(ids(readAll(watch))).toEqual([0, 2, 4, 6]);
  });

  test.each([undefined, null, 0, ''])('a filter that returns %j rejects everything, in the prefix as later', (nothing) => {
    const broadcaster = new Broadcaster<TestEvent>();
    const watch = broadcaster.watch({ prefix: events(0, 3), filter: () => nothing as never });
    broadcaster.tryPublish(event(3));
    expect(readAll(watch)).toEqual([]);
    expect(watch.dropped).toBe(0);
  });

  test("'coalesce' folds its prefix", () => {
    const broadcaster = make({ overflow: 'coalesce' });
    const watch = broadcaster.watch({ prefix: [event(0, 'ADDED', 'k'), event(1, 'MODIFIED', 'k')] });
    expect(readAll(watch)).toEqual([event(1, 'ADDED', 'k')]);
  });

  test('a filter that throws during the prefix ends only this watch, with the error', async () => {
    const broadcaster = make();
    const watch = broadcaster.watch({
      prefix: events(0, 2),
      filter: () => {
        throw new Error('no');
      },
    });
    expect(watch).toMatchObject({ stopped: true, queued: 0 });
    expect(broadcaster.watchers).toBe(0);
    expect(broadcaster.tryPublish(event(1))).toBe(true);
    await expect(watch.next()).rejects.toEqual(new Error('no'));
    expect(await watch.next()).toEqual(done);
  });

  test('a keyOf that throws during the prefix ends this watch after the earlier events', async () => {
    const broadcaster = make({ overflow: 'coalesce' });
    const signal = new AbortController().signal;
    const watch = broadcaster.watch({ prefix: [event(1), { type: 'X', object: {} } as TestEvent, event(2)], signal });
    expect(watch.stopped).toBe(true);
    expect(listeners(signal)).toBe(0);
    expect(id(watch.tryNext())).toBe(1);
    await expect(watch.next()).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
    expect(broadcaster.watchers).toBe(0);
    expect(broadcaster.tryPublish(event(3))).toBe(true);
  });

  test('a filter that throws ends this watch with the error, after its queue; the others and publish continue', async () => {
    const broadcaster = make({ capacity: 10 });
    const watch = broadcaster.watch({
      filter: (one) => {
        if (one.object.id === 2) throw new Error('two');
        return true;
      },
    });
    const other = broadcaster.watch();
    for (const one of events(0, 5)) expect(broadcaster.tryPublish(one)).toBe(true);
    expect(watch).toMatchObject({ stopped: true, queued: 2, dropped: 0 });
    expect(broadcaster.watchers).toBe(1);
    expect(ids([watch.tryNext()!, watch.tryNext()!])).toEqual([0, 1]);
    expect(() => watch.tryNext()).toThrow('two');
    expect(watch.tryNext()).toBeUndefined();
    expect(await watch.next()).toEqual(done);
    expect(ids(readAll(other))).toEqual(range(0, 5));
  });

  test('a full waiting watch whose filter throws does not block the publisher', async () => {
    const broadcaster = make({ capacity: 1, incoming: 1 });
    const watch = broadcaster.watch({
      filter: (one) => {
        if (one.object.id === 1) throw new Error('one');
        return true;
      },
    });
    for (const one of events(0, 10)) expect(broadcaster.tryPublish(one)).toBe(true);
    expect(id(watch.tryNext())).toBe(0);
    await expect(watch.next()).rejects.toEqual(new Error('one'));
    expect(broadcaster.watchers).toBe(0);
  });

  test('a watcher with a filter or an onGap has its own, even if the other options are shared', () => {
    const broadcaster = new Broadcaster<TestEvent>({ capacity: 1, overflow: 'drop-newest' });
    const told: string[] = [];
    const onGap = (name: string): { onGap: () => void } => ({ onGap: () => void told.push(name) });
    const filtered = [0, 1, 2].map((rest) => broadcaster.watch({ filter: ({ object }) => object.id % 3 === rest }));
    const [plain, ...withGaps] = [{}, onGap('a'), onGap('b')].map((options) => broadcaster.watch(options));
    for (const one of events(0, 3)) broadcaster.tryPublish(one);
    expect(filtered.map((watch) => ids(readAll(watch)))).toEqual([[0], [1], [2]]);
    for (const watch of withGaps) watch.tryNext();
    broadcaster.tryPublish(event(3));
    for (const watch of withGaps) watch.tryNext();
    expect(told).toEqual(['a', 'b']);
    expect(plain).toMatchObject({ queued: 1, dropped: 3 });
  });

  test('a filter may return any truthy value', () => {
    const broadcaster = make();
    const watch = broadcaster.watch({ filter: (one) => (one.object.id === 1 ? 'yes' : undefined) as unknown as boolean });
    for (const one of events(0, 3)) broadcaster.tryPublish(one);
    expect(ids(readAll(watch))).toEqual([1]);
  });

  test('counts the watches that have not ended', async () => {
    const broadcaster = make({ capacity: 0 });
    const watches = Array.from({ length: 4 }, () => broadcaster.watch({ overflow: 'disconnect' }));
    expect(broadcaster.watchers).toBe(4);
    watches[0]!.stop();
    await watches[1]!.return();
    expect(broadcaster.watchers).toBe(2);
    broadcaster.tryPublish(event(0));
    expect(watches[2]!.stopped).toBe(true);
    expect(broadcaster.watchers).toBe(2);
    await watches[2]!.next();
    expect(broadcaster.watchers).toBe(1);
    await broadcaster.shutdown();
    expect(watches[3]!.tryNext()).toMatchObject({ type: 'ERROR' });
    expect(broadcaster.watchers).toBe(0);
  });

  test('a full wait watcher whose filter throws ends, retains nothing, and does not affect the gate', () => {
    const broadcaster = new Broadcaster<TestEvent>({ capacity: 1, incoming: 5 });
    broadcaster.watch({
      filter: ({ object }) => {
        if (object.id === 2) throw new Error('two');
        return true;
      },
    });
    const other = broadcaster.watch({ overflow: 'drop-newest', capacity: 1_000 });
    for (const one of events(0, 500)) broadcaster.tryPublish(one);
    // Before: the filter's watch stayed for ever, and everything was kept for it.
    expect(broadcaster.watchers).toBe(2);
    expect(other.queued).toBe(1);
    const unfiltered = new Broadcaster<TestEvent>({ capacity: 1, incoming: 5 });
    const watch = unfiltered.watch({
      filter: ({ object }) => {
        if (object.id === 1) throw new Error('one');
        return true;
      },
    });
    for (const one of events(0, 500)) unfiltered.tryPublish(one);
    expect(unfiltered.watchers).toBe(0);
    expect(ids(readAllBut(watch, 'one'))).toEqual([0]);
  });
});
