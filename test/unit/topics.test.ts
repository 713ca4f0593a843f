// Watches of topics: what a filter would give, at the cost of the events that match.
import { describe, expect, test } from 'vitest';
import { Broadcaster, muxOf } from '../../src/broadcast/broadcaster.ts';
import type { ErrorEvent } from '../../src/watch/event.ts';
import { OVERFLOWS } from '../../src/watch/overflow.ts';
import { collect, collectedUntil, event, fate, ids, NO_GC, range, readAll, type TestEvent, thrown, turn } from './support.ts';

/** An array whose elements are missing: `every` would not ask about one. */
const HOLES: readonly unknown[] = new Array(2);

const topicsOf = ({ object }: TestEvent): string => object.metadata.name;

function newBroadcaster(
  options: ConstructorParameters<typeof Broadcaster<TestEvent>>[0] = {},
): Broadcaster<TestEvent, ErrorEvent> {
  return new Broadcaster<TestEvent>({ topicsOf, ...options });
}

/** Publishes events numbered from `from` on, one per topic. */
function publish(broadcaster: Pick<Broadcaster<TestEvent>, 'tryPublish'>, topics: readonly string[], from = 0): void {
  for (const [at, topic] of topics.entries()) broadcaster.tryPublish(event(from + at, 'MODIFIED', topic));
}

describe('a watch of topics', () => {
  test('gets the events of its topic, in order, and no others', () => {
    const broadcaster = newBroadcaster();
    const watches = ['a', 'b', 'nobody'].map((topic) => broadcaster.watch({ topics: [topic] }));
    publish(broadcaster, ['a', 'b', 'c', 'a', 'b', 'a']);
    expect(watches.map((watch) => ids(readAll(watch)))).toEqual([[0, 3, 5], [1, 4], []]);
  });

  test('of several topics gets the events of all of them in the order of publishing', () => {
    const broadcaster = newBroadcaster();
    const watch = broadcaster.watch({ topics: ['c', 'a'] });
    publish(broadcaster, ['a', 'b', 'c', 'a', 'b', 'c']);
    expect(ids(readAll(watch))).toEqual([0, 2, 3, 5]);
  });

  test('gets an event once, however many of its topics the event has, and how often', () => {
    const broadcaster = newBroadcaster({ topicsOf: () => ['a', 'b', 'a', 'c'] });
    const watches = [['a'], ['b', 'a'], ['a', 'a', 'b', 'a'], ['x', 'c']].map((topics) => broadcaster.watch({ topics }));
    publish(broadcaster, ['', '']);
    expect(watches.map((watch) => ids(readAll(watch)))).toEqual(Array(4).fill([0, 1]));
  });

  test('of no topics gets nothing; a watch without topics gets everything', () => {
    const broadcaster = newBroadcaster();
    const [none, all] = [broadcaster.watch({ topics: [] }), broadcaster.watch()];
    publish(broadcaster, ['a', 'b']);
    expect([ids(readAll(none)), ids(readAll(all))]).toEqual([[], [0, 1]]);
  });

  test('gets no event that has no topics', () => {
    const broadcaster = newBroadcaster({ topicsOf: ({ object }) => [undefined, [], ''][object.id] });
    const watches = [['a'], ['']].map((topics) => broadcaster.watch({ topics }));
    publish(broadcaster, ['a', 'a', 'a']);
    expect(watches.map((watch) => ids(readAll(watch)))).toEqual([[], [2]]);
  });

  test.each(['', '__proto__', 'constructor', 'toString', '0', '\u0000', 'a,b', '😀'])(
    'may have any topic, such as %j',
    (topic) => {
      const broadcaster = newBroadcaster();
      const watches = [[topic], [topic, 'a'], ['b']].map((topics) => broadcaster.watch({ topics }));
      publish(broadcaster, [topic, 'a', topic]);
      expect(watches.map((watch) => ids(readAll(watch)))).toEqual([[0, 2], [0, 1, 2], []]);
    },
  );

  test('sees only events that its filter accepts, which is asked about those of its topics alone', () => {
    const broadcaster = newBroadcaster();
    const asked: number[] = [];
    const filter = ({ object }: TestEvent): boolean => asked.push(object.id) > 1;
    const watch = broadcaster.watch({ topics: ['a'], filter });
    publish(broadcaster, ['a', 'b', 'a', 'b', 'a']);
    expect([ids(readAll(watch)), asked]).toEqual([
      [2, 4],
      [0, 2, 4],
    ]);
  });

  test('gets its prefix, whatever topics that has', () => {
    const broadcaster = newBroadcaster();
    const watch = broadcaster.watch({ topics: ['a'], prefix: [event(7, 'ADDED', 'b'), event(8, 'ADDED', 'a')] });
    publish(broadcaster, ['b', 'a']);
    expect(ids(readAll(watch))).toEqual([7, 8, 1]);
  });

  test('keeps to the topics it was started with, though the array changes', () => {
    const broadcaster = newBroadcaster();
    const topics = ['a'];
    const watch = broadcaster.watch({ topics });
    topics[0] = 'b';
    publish(broadcaster, ['a', 'b']);
    expect(ids(readAll(watch))).toEqual([0]);
  });

  test('begins with the next event: what was accepted before, and waits, is not for it', () => {
    const broadcaster = newBroadcaster({ capacity: 1, incoming: 10 });
    const slow = broadcaster.watch();
    publish(broadcaster, ['a', 'a', 'a']);
    const watch = broadcaster.watch({ topics: ['a'], capacity: 10 });
    publish(broadcaster, ['a'], 3);
    expect(ids(readAll(slow))).toEqual(range(0, 4));
    expect(ids(readAll(watch))).toEqual([3]);
  });
});

describe('the queue of a watch of topics', () => {
  test.each(OVERFLOWS)('counts only the events of its topics (%s)', (overflow) => {
    const broadcaster = newBroadcaster({ overflow: 'drop-newest' });
    const watch = broadcaster.watch({ topics: ['a'], capacity: 3, overflow });
    publish(broadcaster, ['a', ...Array<string>(500).fill('b')]);
    expect([watch.queued, watch.dropped, watch.stopped]).toEqual([1, 0, false]);
    expect(ids(readAll(watch))).toEqual([0]);
  });

  test('reports gaps in the number of its own events', () => {
    const gaps: number[] = [];
    const broadcaster = newBroadcaster();
    const onGap = (missed: number): void => void gaps.push(missed);
    const watch = broadcaster.watch({ topics: ['a'], capacity: 1, overflow: 'drop-oldest', onGap });
    publish(broadcaster, ['a', 'b', 'a', 'b', 'b', 'a']);
    expect([ids(readAll(watch)), gaps, watch.dropped]).toEqual([[5], [2], 2]);
  });

  test('holds the publisher back with wait when it is full, for events of its topics and those behind them', async () => {
    const broadcaster = newBroadcaster({ capacity: 1, incoming: 0 });
    const watch = broadcaster.watch({ topics: ['a'] });
    const other = broadcaster.watch({ topics: ['b'], capacity: 100 });
    publish(broadcaster, ['a', 'b', 'b']);
    const publishes = ['a', 'b'].map((topic, at) => fate(broadcaster.publish(event(3 + at, 'MODIFIED', topic))));
    await turn();
    expect(publishes.map(({ state }) => state)).toEqual(['pending', 'pending']);
    expect(ids(readAll(other))).toEqual([1, 2]);
    expect(ids(readAll(watch))).toEqual([0, 3]);
    await turn();
    expect(publishes.map(({ state }) => state)).toEqual(['resolved', 'resolved']);
    expect(ids(readAll(other))).toEqual([4]);
  });

  test('frees the publisher when its watch leaves while events wait for it', async () => {
    const broadcaster = newBroadcaster({ capacity: 1, incoming: 3 });
    const [watch, other] = [broadcaster.watch({ topics: ['a'] }), broadcaster.watch({ topics: ['b'], capacity: 10 })];
    publish(broadcaster, ['a', 'a', 'b', 'a']);
    expect(other.queued).toBe(0);
    await watch.return();
    expect(ids(readAll(other))).toEqual([2]);
    expect(broadcaster.tryPublish(event(4, 'MODIFIED', 'a'))).toBe(true);
    const again = broadcaster.watch({ topics: ['a'] });
    publish(broadcaster, ['a'], 5);
    expect(ids(readAll(again))).toEqual([5]);
  });
});

describe('topicsOf', () => {
  test('is called once per event, whoever watches, and whether it waits or not', async () => {
    const asked: number[] = [];
    const broadcaster = newBroadcaster({
      capacity: 1,
      incoming: 0,
      replay: 5,
      topicsOf(one) {
        asked.push(one.object.id);
        return [one.object.metadata.name, 'all'];
      },
    });
    const watches = [['a'], ['all'], ['a', 'all']].map((topics) => broadcaster.watch({ topics }));
    const publishes = range(0, 6).map((at) => broadcaster.publish(event(at, 'MODIFIED', 'a')));
    const reading = watches.map((watch) => collect(watch));
    await Promise.all(publishes);
    await broadcaster.shutdown();
    expect(await Promise.all(reading)).toEqual(Array(3).fill(range(0, 6)));
    expect(asked).toEqual(range(0, 6));
  });

  test('that throws fails that publish alone', async () => {
    const broadcaster = newBroadcaster({
      topicsOf({ object }) {
        if (object.id === 1) throw new Error('topicsOf');
        return 'a';
      },
    });
    const watches = [broadcaster.watch(), broadcaster.watch({ topics: ['a'] })];
    expect(broadcaster.tryPublish(event(0))).toBe(true);
    expect(thrown(() => broadcaster.tryPublish(event(1)))).toEqual(new Error('topicsOf'));
    await expect(broadcaster.publish(event(1))).rejects.toThrow('topicsOf');
    await broadcaster.publish(event(2));
    expect(watches.map((watch) => ids(readAll(watch)))).toEqual([
      [0, 2],
      [0, 2],
    ]);
  });

  test.each([[null], [7], [{}], [[7]], [['a', undefined]], [new Set(['a'])], [HOLES]])(
    'that returns %o is refused by name',
    (topics) => {
      const broadcaster = newBroadcaster({ topicsOf: () => topics as never });
      expect(thrown(() => broadcaster.tryPublish(event(0)))).toMatchObject({
        code: 'INVALID_ARGUMENT',
        message: expect.stringMatching(
          /^topicsOf: expected a function that returns a string, an array of strings, or undefined, got /,
        ),
      });
    },
  );

  test('may name very many topics', () => {
    const many = Array.from({ length: 50_000 }, (_, at) => `t${at % 25_000}`);
    const broadcaster = newBroadcaster({ topicsOf: () => many });
    const watch = broadcaster.watch({ topics: ['t1', 't24999', 'x'] });
    publish(broadcaster, ['', '']);
    expect(ids(readAll(watch))).toEqual([0, 1]);
  });

  test.each([['a'], [7], [null], [['a']]])('%o instead of a function is refused by name', (wrong) => {
    expect(thrown(() => newBroadcaster({ topicsOf: wrong as never }))).toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: expect.stringMatching(/^topicsOf: expected a function/),
    });
  });
});

describe('topics of a watch', () => {
  test.each([['a'], [7], [null], [{}], [[7]], [[undefined]], [HOLES]])('%o is refused by name', (topics) => {
    expect(thrown(() => newBroadcaster().watch({ topics: topics as never }))).toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: expect.stringMatching(/^topics: expected an array of strings, got /),
    });
  });

  test('are refused by a broadcaster that has no topicsOf: it would get nothing for ever', () => {
    expect(thrown(() => new Broadcaster<TestEvent>().watch({ topics: ['a'] }))).toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: expect.stringMatching(/^topics: expected none, because this broadcaster has no topicsOf, got /),
    });
  });
});

describe('the end of a watch of topics', () => {
  test('comes with its signal, like that of any other', async () => {
    const broadcaster = newBroadcaster();
    const stop = new AbortController();
    const watches = [['a'], ['b'], undefined].map((topics) => broadcaster.watch({ topics, signal: stop.signal }));
    publish(broadcaster, ['a', 'b']);
    const reads = watches.map((watch) => collect(watch));
    await turn();
    stop.abort();
    expect(await Promise.all(reads)).toEqual([[0], [1], [0, 1]]);
    expect([broadcaster.watchers, muxOf(broadcaster).topics?.all()]).toEqual([0, []]);
  });

  test('comes with the shutdown, after every event that was accepted', async () => {
    const broadcaster = newBroadcaster({ capacity: 1, incoming: 0 });
    const watches = [['a'], ['b'], ['a', 'b'], []].map((topics) => broadcaster.watch({ topics }));
    for (const [at, topic] of ['a', 'b', 'a', 'b', 'c'].entries()) void broadcaster.publish(event(at, 'MODIFIED', topic));
    const reads = watches.map((watch) => collect(watch));
    await broadcaster.shutdown();
    expect(await Promise.all(reads)).toEqual([[0, 2], [1, 3], [0, 1, 2, 3], []]);
  });

  test.skipIf(globalThis.gc === undefined)(`comes when nobody refers to it any more${NO_GC}`, async () => {
    const broadcaster = newBroadcaster();
    const { topics } = muxOf(broadcaster);
    (() => {
      broadcaster.watch({ topics: ['a'] });
      broadcaster.watch({ topics: ['a', 'b'], filter: () => true });
    })();
    publish(broadcaster, ['a', 'b']);
    expect(topics?.all()).toHaveLength(2);
    expect(await collectedUntil(() => broadcaster.watchers === 0)).toBe(true);
    expect(topics?.all()).toEqual([]);
  });
});
