import { getEventListeners } from 'node:events';
import { describe, expect, test } from 'vitest';
import { Broadcaster, type BroadcasterOptions, type WatchOptions } from '../../src/broadcast/broadcaster.ts';
import { isWatchError, type WatchError } from '../../src/watch/errors.ts';
import type { Watch } from '../../src/watch/watch.ts';
import { done, event, events, fate, id, ids, range, readAll, type TestEvent, thrown, turn } from './support.ts';

const listeners = (signal: AbortSignal): number => getEventListeners(signal, 'abort').length;
const make = (options?: BroadcasterOptions<TestEvent>): Broadcaster<TestEvent> => new Broadcaster<TestEvent>(options);

async function collect(watch: Watch<TestEvent>): Promise<number[]> {
  const got: number[] = [];
  for await (const one of watch) got.push(one.object.id);
  return got;
}

describe('upstream', () => {
  test('TestBroadcaster: two watchers get everything in order, and end after shutdown', async () => {
    const broadcaster = make({ capacity: 0 });
    const got = [broadcaster.watch(), broadcaster.watch()].map(collect);
    for (const one of events(0, 50)) await broadcaster.publish(one);
    await broadcaster.shutdown();
    expect(await Promise.all(got)).toEqual([range(0, 50), range(0, 50)]);
  });

  test('TestBroadcasterWatcherClose: one stops, shutdown ends the other; further stops are harmless', async () => {
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
    const run = async (mine: Watch<TestEvent>, other: Watch<TestEvent>): Promise<void> => {
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

  test('TestBroadcasterWatchAfterShutdown: watch, also with a prefix, says CLOSED', async () => {
    const broadcaster = make();
    await broadcaster.shutdown();
    for (const options of [{}, { prefix: events(0, 1) }]) {
      const error = thrown(() => broadcaster.watch(options));
      expect(isWatchError(error, 'CLOSED')).toBe(true);
      expect((error as Error).message).toBe('watch: the broadcaster is shut down');
    }
  });

  test('TestBroadcasterSendEventAfterShutdown: publish and tryPublish say CLOSED', async () => {
    const broadcaster = make();
    await broadcaster.shutdown();
    expect(thrown(() => broadcaster.tryPublish(event(0)))).toMatchObject({
      code: 'CLOSED',
      message: 'publish: the broadcaster is shut down',
    });
    await expect(broadcaster.publish(event(0))).rejects.toMatchObject({ code: 'CLOSED' });
  });

  test('TestBroadcasterShutdownRace: watchers stop themselves while things are shut down', async () => {
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
    [
      'watch onGap',
      () => make().watch({ onGap: {} as unknown as () => void }),
      /^onGap: expected a function, got \[object Object\]$/,
    ],
    ['event', () => make().tryPublish(undefined as unknown as TestEvent), /^event: expected an event, got undefined$/],
    ['event', () => make().tryPublish(null as unknown as TestEvent), /^event: expected an event, got null$/],
  ];
  test.each(bad)('%s: refused with its name and value', (_name, code, message) => {
    const error = thrown(code) as WatchError;
    expect(error).toMatchObject({ name: 'WatchError', code: 'INVALID_ARGUMENT' });
    expect(error.message).toMatch(message);
  });

  test('a bad event makes publish reject', async () => {
    await expect(make().publish(undefined as unknown as TestEvent)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
  });

  test('a watch that was refused is not there', () => {
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

  test("the broadcaster's own, unless the watcher has its own", () => {
    const broadcaster = make({ capacity: 2, overflow: 'drop-oldest' });
    const watches = [broadcaster.watch(), broadcaster.watch({ capacity: 3 }), broadcaster.watch({ overflow: 'drop-newest' })];
    for (const one of events(0, 5)) broadcaster.tryPublish(one);
    expect(watches.map(readAll).map(ids)).toEqual([
      [3, 4],
      [2, 3, 4],
      [0, 1],
    ]);
  });

  test('objects are told apart by namespace and name, or by keyOf', () => {
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
  test('is a position in the stream: sees none of what is accepted and not distributed, and everything after', () => {
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

  test.each(['wait', 'drop-newest', 'drop-oldest', 'disconnect', 'coalesce'] as const)(
    "'%s' joins behind what is accepted, and counts none of it",
    (overflow) => {
      const broadcaster = make({ capacity: 1, incoming: 3 });
      const slow = broadcaster.watch();
      for (const one of events(0, 4)) broadcaster.tryPublish(one);
      const late = broadcaster.watch({ overflow });
      expect(late).toMatchObject({ queued: 0, dropped: 0, stopped: false });
      readAll(slow);
      expect(late).toMatchObject({ queued: 0, dropped: 0, stopped: false });
      broadcaster.tryPublish(event(9));
      expect(ids(readAll(late))).toEqual([9]);
    },
  );

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
    [0, 0, 0],
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

  test("'coalesce' folds its prefix", () => {
    const broadcaster = make({ overflow: 'coalesce' });
    const watch = broadcaster.watch({ prefix: [event(0, 'ADDED', 'k'), event(1, 'MODIFIED', 'k')] });
    expect(readAll(watch)).toEqual([event(1, 'ADDED', 'k')]);
  });

  test('a filter that throws on the prefix ends this watch with the error, and nobody else', async () => {
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

  test('a keyOf that throws on the prefix ends this watch after what came before', async () => {
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

  test('a filter that throws ends this watch with the error after what it has; the others and publish go on', async () => {
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

  test('a full waiting watch whose filter throws does not hold the publisher back', async () => {
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

  test('a filter that returns something truthy lets pass', () => {
    const broadcaster = make();
    const watch = broadcaster.watch({ filter: (one) => (one.object.id === 1 ? 'yes' : undefined) as unknown as boolean });
    for (const one of events(0, 3)) broadcaster.tryPublish(one);
    expect(ids(readAll(watch))).toEqual([1]);
  });

  test('counts those that have not ended', async () => {
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
});

describe('reads', () => {
  test('many may wait: first come, first served', async () => {
    const broadcaster = make({ capacity: 0 });
    const watch = broadcaster.watch();
    const reads = Array.from({ length: 5 }, () => watch.next());
    for (const one of events(0, 5)) expect(broadcaster.tryPublish(one)).toBe(true);
    expect((await Promise.all(reads)).map(({ value }) => id(value))).toEqual(range(0, 5));
  });

  test.each(['wait', 'drop-newest', 'drop-oldest', 'disconnect', 'coalesce'] as const)(
    "'%s': each waiting read is room for one event more",
    async (overflow) => {
      const broadcaster = make({ capacity: 0, overflow, incoming: 0 });
      const watch = broadcaster.watch();
      const reads = [watch.next(), watch.next(), watch.next()];
      const accepted = events(0, 3).filter((one) => broadcaster.tryPublish(one));
      expect(accepted).toHaveLength(3);
      expect((await Promise.all(reads)).map(({ value }) => id(value))).toEqual([0, 1, 2]);
      expect(watch).toMatchObject({ queued: 0, dropped: 0, stopped: false });
    },
  );

  test.each([
    ['stop', (watch: Watch<TestEvent>) => watch.stop()],
    ['return', (watch: Watch<TestEvent>) => watch.return()],
    ['dispose', (watch: Watch<TestEvent>) => watch[Symbol.dispose]()],
    ['asyncDispose', (watch: Watch<TestEvent>) => watch[Symbol.asyncDispose]()],
  ])('%s settles all that wait, and those that come after', async (_name, act) => {
    const broadcaster = make();
    const watch = broadcaster.watch();
    const reads = [watch.next(), watch.batches().next(), watch.next()];
    await act(watch);
    expect(await Promise.all(reads)).toEqual([done, done, done]);
    expect(await watch.next()).toEqual(done);
    expect(broadcaster.watchers).toBe(0);
  });

  test('stop leaves what is queued readable, takes no more, and counts none of what comes after', async () => {
    for (const overflow of ['wait', 'drop-newest', 'drop-oldest', 'disconnect', 'coalesce'] as const) {
      const broadcaster = make({ capacity: 3, overflow, incoming: 0 });
      const watch = broadcaster.watch();
      for (const one of events(0, 3)) broadcaster.tryPublish(one);
      watch.stop();
      watch.stop();
      for (const one of events(3, 100)) expect(broadcaster.tryPublish(one)).toBe(true);
      expect(watch).toMatchObject({ stopped: true, queued: 3, dropped: 0 });
      expect(ids(readAll(watch))).toEqual([0, 1, 2]);
      expect(await watch.next()).toEqual(done);
    }
  });

  test('stop leaves what was set aside and, behind it, what still stood in the log', () => {
    const prefixed = make();
    const first = prefixed.watch({ prefix: events(0, 2) });
    for (const one of events(2, 4)) prefixed.tryPublish(one);
    first.stop();
    expect(ids(readAll(first))).toEqual([0, 1, 2, 3]);

    const gapped = make({ capacity: 3, overflow: 'drop-newest' });
    const gaps: number[] = [];
    const second = gapped.watch({ onGap: (missed) => gaps.push(missed) });
    for (const one of events(0, 5)) gapped.tryPublish(one); // 3 and 4 are lost
    expect([id(second.tryNext()), id(second.tryNext())]).toEqual([0, 1]);
    gapped.tryPublish(event(5));
    expect(second.queued).toBe(2); // 5 is set aside with its gap
    gapped.tryPublish(event(6));
    second.stop();
    expect(second).toMatchObject({ queued: 3, dropped: 2 });
    expect([ids(readAll(second)), gaps]).toEqual([[2, 5, 6], [2]]);
  });

  test('stop after a cut leaves what was queued, and then the ERROR', () => {
    const broadcaster = make({ capacity: 2, overflow: 'disconnect' });
    const watch = broadcaster.watch();
    for (const one of events(0, 5)) broadcaster.tryPublish(one);
    watch.stop();
    for (const one of events(5, 9)) broadcaster.tryPublish(one);
    const read = readAll(watch);
    expect(ids(read.slice(0, 2))).toEqual([0, 1]);
    expect(read[2]).toMatchObject({ type: 'ERROR', object: { details: { missed: 3 } } });
    expect(read).toHaveLength(3);
    expect(broadcaster.watchers).toBe(0);
  });

  test('return discards what is queued, and counts it', async () => {
    for (const overflow of ['wait', 'drop-newest', 'drop-oldest', 'disconnect', 'coalesce'] as const) {
      const broadcaster = make({ capacity: 5, overflow });
      const watch = broadcaster.watch();
      for (const one of events(0, 4)) broadcaster.tryPublish(one);
      watch.tryNext();
      await watch.return();
      expect(watch).toMatchObject({ stopped: true, queued: 0, dropped: 3 });
      for (const one of events(4, 9)) broadcaster.tryPublish(one);
      expect(watch.dropped).toBe(3);
      expect(await watch.next()).toEqual(done);
    }
  });

  test('return after a cut ends it at once: no ERROR', async () => {
    const broadcaster = make({ capacity: 0, overflow: 'disconnect' });
    const watch = broadcaster.watch();
    broadcaster.tryPublish(event(0));
    await watch.return();
    expect(watch.tryNext()).toBeUndefined();
    expect(watch).toMatchObject({ stopped: true, dropped: 1 });
  });

  test('break returns the watch, and so does leaving the loop over batches', async () => {
    const broadcaster = make();
    const [a, b] = [broadcaster.watch(), broadcaster.watch()];
    for (const one of events(0, 4)) broadcaster.tryPublish(one);
    for await (const one of a) if (one.object.id === 1) break;
    for await (const batch of b.batches()) {
      expect(ids(batch)).toEqual(range(0, 4));
      break;
    }
    expect(broadcaster.watchers).toBe(0);
    expect([a.dropped, b.dropped]).toEqual([2, 0]);
  });

  test('watchers in step share their batches; one out of step has its own', async () => {
    const broadcaster = make();
    const [a, b, c] = [broadcaster.watch(), broadcaster.watch(), broadcaster.watch()];
    const parked = [a, b, c].map((watch) => watch.batches().next());
    for (const one of events(0, 5)) broadcaster.tryPublish(one);
    const got = await Promise.all(parked);
    expect(ids(got[0]!.value ?? [])).toEqual(range(0, 5));
    expect(got[1]!.value).toBe(got[0]!.value);
    expect(got[2]!.value).toBe(got[0]!.value);
    for (const one of events(5, 8)) broadcaster.tryPublish(one);
    c.tryNext();
    const [own, other, late] = [await a.batches().next(), await b.batches().next(), await c.batches().next()];
    expect(other.value).toBe(own.value);
    expect(ids(late.value ?? [])).toEqual([6, 7]);
    expect(ids(own.value ?? [])).toEqual([5, 6, 7]);
  });

  test('a batch with a read behind it takes one event', async () => {
    const broadcaster = make();
    const watch = broadcaster.watch();
    const [batch, read] = [watch.batches().next(), watch.next()];
    for (const one of events(0, 3)) broadcaster.tryPublish(one);
    expect(ids((await batch).value ?? [])).toEqual([0]);
    expect(id((await read).value)).toBe(1);
    expect(watch.queued).toBe(1);
  });

  test('a batch takes what was set aside and what followed, in order', async () => {
    const broadcaster = make({ capacity: 4, overflow: 'drop-oldest' });
    const watch = broadcaster.watch();
    for (const one of events(0, 6)) broadcaster.tryPublish(one);
    expect(watch.queued).toBe(4);
    expect(ids((await watch.batches().next()).value ?? [])).toEqual([2, 3, 4, 5]);
  });

  test('a burst wakes who waits once, with all of it', async () => {
    const broadcaster = make();
    const watch = broadcaster.watch();
    const sizes: number[] = [];
    const reading = (async () => {
      for await (const batch of watch.batches()) sizes.push(batch.length);
    })();
    await turn();
    for (const one of events(0, 64)) broadcaster.tryPublish(one);
    await turn();
    for (const one of events(0, 3)) broadcaster.tryPublish(one);
    await turn();
    await broadcaster.shutdown();
    await reading;
    expect(sizes).toEqual([64, 3]);
  });

  test('a thousand that wait and leave do not stay in the line of those to be woken', async () => {
    const broadcaster = make();
    const stays = broadcaster.watch();
    const read = stays.next();
    for (let i = 0; i < 1000; i++) {
      const watch = broadcaster.watch();
      void watch.next();
      await watch.return();
    }
    expect(broadcaster.watchers).toBe(1);
    await broadcaster.publish(event(1));
    expect(id((await read).value)).toBe(1);
  });
});

describe("publish under 'wait'", () => {
  function stalled(options: WatchOptions<TestEvent> = {}): {
    broadcaster: Broadcaster<TestEvent>;
    watch: Watch<TestEvent>;
    publish: ReturnType<typeof fate<void>>;
  } {
    const broadcaster = make({ capacity: 1, incoming: 1 });
    const watch = broadcaster.watch(options);
    expect(broadcaster.tryPublish(event(0))).toBe(true);
    expect(broadcaster.tryPublish(event(1))).toBe(true);
    expect(broadcaster.tryPublish(event(2))).toBe(false);
    const publish = fate(broadcaster.publish(event(3)));
    return { broadcaster, watch, publish };
  }

  test('waits while the incoming queue is full, and tryPublish does not overtake it', async () => {
    const { broadcaster, watch, publish } = stalled();
    await turn();
    expect(publish.state).toBe('pending');
    expect(id(watch.tryNext())).toBe(0);
    await turn();
    expect(publish.state).toBe('resolved');
    expect(broadcaster.tryPublish(event(4))).toBe(false);
    expect(ids(readAll(watch))).toEqual([1, 3]);
    expect(broadcaster.tryPublish(event(5))).toBe(true);
  });

  const releases: [string, (watch: Watch<TestEvent>, abort: AbortController) => unknown][] = [
    ['a read', (watch) => watch.next()],
    ['tryNext', (watch) => watch.tryNext()],
    ['a batch', (watch) => watch.batches().next()],
    ['stop', (watch) => watch.stop()],
    ['return', (watch) => watch.return()],
    ['leaving its batches', (watch) => watch.batches().return()],
    ['disposal', (watch) => watch[Symbol.dispose]()],
    ['an abort', (_watch, abort) => abort.abort()],
  ];
  test.each(releases)('is released at once by %s', async (_name, act) => {
    const abort = new AbortController();
    const { watch, publish } = stalled({ signal: abort.signal });
    await turn();
    expect(publish.state).toBe('pending');
    act(watch, abort);
    await turn();
    expect(publish.state).toBe('resolved');
  });

  test('is released by an onGap or filter that throws', async () => {
    let bad = false;
    const broadcaster = make({ capacity: 1, incoming: 0 });
    const watch = broadcaster.watch({
      filter: () => {
        if (bad) throw new Error('bad');
        return true;
      },
    });
    broadcaster.tryPublish(event(0));
    const publish = fate(broadcaster.publish(event(1)));
    await turn();
    expect(publish.state).toBe('pending');
    bad = true;
    watch.tryNext();
    await turn();
    expect(publish.state).toBe('resolved');
    expect(watch.stopped).toBe(true);
  });

  test('those that wait are accepted in the order of their calls', async () => {
    const broadcaster = make({ capacity: 1, incoming: 0 });
    const watch = broadcaster.watch();
    const order: number[] = [];
    const publishes = events(0, 6).map((one) => broadcaster.publish(one).then(() => order.push(one.object.id)));
    const got: number[] = [];
    while (got.length < 6) got.push(id((await watch.next()).value) as number);
    await Promise.all(publishes);
    expect(got).toEqual(range(0, 6));
    expect(order).toEqual(range(0, 6));
  });

  test.each([0, 1, 3])('maxPending %i: one more is refused with OVERLOADED and the limit', async (maxPending) => {
    const broadcaster = make({ capacity: 0, incoming: 0, maxPending });
    const watch = broadcaster.watch();
    const waiting = events(0, maxPending).map((one) => fate(broadcaster.publish(one)));
    const refused = fate(broadcaster.publish(event(99)));
    await turn();
    expect(waiting.map(({ state }) => state)).toEqual(new Array(maxPending).fill('pending'));
    expect(refused.error).toMatchObject({
      code: 'OVERLOADED',
      limit: maxPending,
      message: `publish: ${maxPending} publishes wait for room already (maxPending)`,
    });
    for (let i = 0; i < maxPending; i++) expect(id((await watch.next()).value)).toBe(i);
    const read = watch.next();
    await broadcaster.publish(event(7));
    expect(id((await read).value)).toBe(7);
  });

  test('without watchers everything is accepted, and nothing is kept', () => {
    const broadcaster = make({ capacity: 0, incoming: 0 });
    for (const one of events(0, 100)) expect(broadcaster.tryPublish(one)).toBe(true);
    expect(broadcaster.watch().queued).toBe(0);
  });

  test('one full watcher among many that read holds all to its own pace, losing nothing', async () => {
    const broadcaster = make({ capacity: 2, incoming: 1 });
    const got = Array.from({ length: 5 }, () => collect(broadcaster.watch()));
    const slow = broadcaster.watch();
    const publishing = (async () => {
      for (const one of events(0, 60)) await broadcaster.publish(one);
    })();
    const read: number[] = [];
    while (read.length < 60) {
      await turn();
      read.push(id(slow.tryNext()) as number);
    }
    await publishing;
    await broadcaster.shutdown();
    expect(read).toEqual(range(0, 60));
    for (const each of await Promise.all(got)) expect(each).toEqual(range(0, 60));
  });

  test.each(['drop-newest', 'drop-oldest', 'disconnect', 'coalesce'] as const)("never waits for '%s'", (overflow) => {
    const broadcaster = make({ capacity: 0, incoming: 0, overflow });
    const watch = broadcaster.watch();
    for (const one of events(0, 500)) expect(broadcaster.tryPublish(one)).toBe(true);
    expect(watch.dropped).toBe(500);
  });
});

describe('abort signals', () => {
  test('an aborted one is refused with its reason', () => {
    const reason = new Error('never mind');
    expect(thrown(() => make().watch({ signal: AbortSignal.abort(reason) }))).toBe(reason);
  });

  test('an abort stops the watch: what is queued stays readable', async () => {
    const abort = new AbortController();
    const broadcaster = make();
    const watch = broadcaster.watch({ signal: abort.signal });
    broadcaster.tryPublish(event(0));
    abort.abort();
    broadcaster.tryPublish(event(1));
    expect(watch.stopped).toBe(true);
    expect(listeners(abort.signal)).toBe(0);
    expect(await collect(watch)).toEqual([0]);
  });

  const ends: [string, (watch: Watch<TestEvent>, broadcaster: Broadcaster<TestEvent>) => unknown][] = [
    ['stop', (watch) => watch.stop()],
    ['return', (watch) => watch.return()],
    ['shutdown', (_watch, broadcaster) => broadcaster.shutdown()],
    [
      'being cut and read out',
      (watch, broadcaster) => {
        for (const one of events(0, 5)) broadcaster.tryPublish(one);
        readAll(watch);
      },
    ],
    [
      'a throwing filter',
      (watch, broadcaster) => {
        broadcaster.tryPublish(event(13));
        expect(watch.stopped).toBe(true);
      },
    ],
  ];
  test.each(ends)('the listener is gone after %s', async (_name, act) => {
    const { signal } = new AbortController();
    const broadcaster = make({ capacity: 1, overflow: 'disconnect' });
    const filter = (one: TestEvent): boolean => {
      if (one.object.id === 13) throw new Error('13');
      return true;
    };
    const watch = broadcaster.watch({ signal, filter });
    expect(listeners(signal)).toBe(1);
    await act(watch, broadcaster);
    expect(listeners(signal)).toBe(0);
  });

  test('a thousand watches that came and went leave no listener behind', async () => {
    const { signal } = new AbortController();
    const broadcaster = make();
    for (let i = 0; i < 1000; i++) {
      const watch = broadcaster.watch({ signal });
      if (i % 2 === 0) watch.stop();
      else await watch.return();
    }
    expect(listeners(signal)).toBe(0);
  });
});

describe('shutdown', () => {
  test('ends every watch; what is queued stays readable; the counts stand still', async () => {
    for (const overflow of ['wait', 'drop-newest', 'drop-oldest', 'disconnect', 'coalesce'] as const) {
      const broadcaster = make({ capacity: 3, overflow });
      const watch = broadcaster.watch();
      for (const one of events(0, 3)) broadcaster.tryPublish(one);
      await broadcaster.shutdown();
      expect(watch).toMatchObject({ stopped: true, queued: 3, dropped: 0 });
      expect(await collect(watch)).toEqual([0, 1, 2]);
      expect(broadcaster.watchers).toBe(0);
    }
  });

  test('settles the reads that wait', async () => {
    const broadcaster = make();
    const watch = broadcaster.watch();
    const reads = [watch.next(), watch.batches().next(), watch.next()];
    await broadcaster.shutdown();
    expect(await Promise.all(reads)).toEqual([done, done, done]);
    expect(broadcaster.watchers).toBe(0);
  });

  test('is idempotent', async () => {
    const broadcaster = make();
    const first = broadcaster.shutdown();
    expect(broadcaster.shutdown()).toBe(first);
    await first;
    await broadcaster.shutdown();
    await broadcaster.shutdown({ signal: AbortSignal.abort() });
  });

  test('while a watcher is stalled: refuses at once, delivers what was accepted and what waited, then is done', async () => {
    const broadcaster = make({ capacity: 1, incoming: 1 });
    const watch = broadcaster.watch();
    const publishes = events(0, 5).map((one) => fate(broadcaster.publish(one)));
    const closed = fate(broadcaster.shutdown());
    await turn();
    expect(closed.state).toBe('pending');
    expect(publishes.map(({ state }) => state)).toEqual(['resolved', 'resolved', 'pending', 'pending', 'pending']);
    expect(thrown(() => broadcaster.tryPublish(event(9)))).toMatchObject({ code: 'CLOSED' });
    expect(thrown(() => broadcaster.watch())).toMatchObject({ code: 'CLOSED' });
    expect(watch.stopped).toBe(false);
    expect(await collect(watch)).toEqual(range(0, 5));
    await turn();
    expect(closed.state).toBe('resolved');
    expect(publishes.every(({ state }) => state === 'resolved')).toBe(true);
  });

  test('while a watcher is stalled: its stop lets go', async () => {
    const broadcaster = make({ capacity: 1, incoming: 1 });
    const watch = broadcaster.watch();
    for (const one of events(0, 2)) broadcaster.tryPublish(one);
    const closed = broadcaster.shutdown();
    watch.stop();
    await closed;
    expect(ids(readAll(watch))).toEqual([0]);
  });

  function stalled(): {
    broadcaster: Broadcaster<TestEvent>;
    watch: Watch<TestEvent>;
    quick: Watch<TestEvent>;
    publish: ReturnType<typeof fate<void>>;
  } {
    const broadcaster = make({ capacity: 1, incoming: 2 });
    const watch = broadcaster.watch();
    const quick = broadcaster.watch({ capacity: 50 });
    for (const one of events(0, 3)) broadcaster.tryPublish(one);
    return { broadcaster, watch, quick, publish: fate(broadcaster.publish(event(3))) };
  }

  test('gives up at once on a signal that has aborted: stalled watchers lose, and count, what does not fit', async () => {
    const { broadcaster, watch, quick, publish } = stalled();
    const reason = new Error('enough');
    const signal = AbortSignal.abort(reason);
    await expect(broadcaster.shutdown({ signal })).rejects.toBe(reason);
    expect(publish.error).toMatchObject({ code: 'CLOSED', message: 'publish: shut down before there was room' });
    expect(watch).toMatchObject({ stopped: true, queued: 1, dropped: 2 });
    expect(await collect(watch)).toEqual([0]);
    expect(await collect(quick)).toEqual([0, 1, 2]);
    expect(listeners(signal)).toBe(0);
    await broadcaster.shutdown();
  });

  test('gives up when the signal aborts; the shutdown that was called without one resolves', async () => {
    const { broadcaster, watch, publish } = stalled();
    const abort = new AbortController();
    const plain = fate(broadcaster.shutdown());
    const limited = fate(broadcaster.shutdown({ signal: abort.signal }));
    await turn();
    expect([plain.state, limited.state, publish.state]).toEqual(['pending', 'pending', 'pending']);
    expect(listeners(abort.signal)).toBe(1);
    const reason = new Error('enough');
    abort.abort(reason);
    await turn();
    expect([plain.state, limited.error, publish.state]).toEqual(['resolved', reason, 'rejected']);
    expect(listeners(abort.signal)).toBe(0);
    expect(watch.dropped).toBe(2);
  });

  test('a signal that never aborts is let go of when it is done', async () => {
    const { broadcaster, watch } = stalled();
    const { signal } = new AbortController();
    const closed = broadcaster.shutdown({ signal });
    expect(listeners(signal)).toBe(1);
    watch.stop();
    await closed;
    expect(listeners(signal)).toBe(0);
  });

  test('with nobody stalled, an aborted signal changes nothing', async () => {
    const broadcaster = make();
    const watch = broadcaster.watch();
    broadcaster.tryPublish(event(0));
    await broadcaster.shutdown({ signal: AbortSignal.abort() });
    expect(await collect(watch)).toEqual([0]);
  });

  test('what a watcher full of gaps had stays countable after the end', async () => {
    const broadcaster = make({ capacity: 2, overflow: 'drop-oldest' });
    const watch = broadcaster.watch();
    for (const one of events(0, 100)) broadcaster.tryPublish(one);
    await broadcaster.shutdown();
    expect(watch).toMatchObject({ queued: 2, dropped: 98, stopped: true });
    expect(await watch.return()).toEqual(done);
    expect(watch).toMatchObject({ queued: 0, dropped: 100 });
  });
});

describe('publishing touches nobody who lags', () => {
  test('a filter is not called while its watcher has room to lag', () => {
    const broadcaster = make({ capacity: 1000, overflow: 'drop-newest' });
    let asked = 0;
    const watch = broadcaster.watch({ filter: () => ++asked > 0 });
    for (const one of events(0, 1000)) broadcaster.tryPublish(one);
    expect(asked).toBe(0);
    expect(watch.queued).toBe(1000);
    expect(asked).toBe(1000);
  });

  test('a laggard with a filter is asked once for each event, once for a chunk', () => {
    const broadcaster = make({ capacity: 16, overflow: 'drop-newest' });
    let asked = 0;
    const watch = broadcaster.watch({ filter: () => ++asked > 0 });
    for (const one of events(0, 1000)) broadcaster.tryPublish(one);
    expect(asked).toBeLessThanOrEqual(1000);
    expect(watch.dropped).toBe(984);
    expect(asked).toBe(1000);
  });
});
