// What the logs of topics keep, and for how long.
import { describe, expect, test } from 'vitest';
import type { BroadcastWatch } from '../../src/broadcast/broadcast-watch.ts';
import { Broadcaster, muxOf } from '../../src/broadcast/broadcaster.ts';
import type { Watch } from '../../src/watch/watch.ts';
import { policiesWith } from '../policies.ts';
import { event, fate, ids, range, readAll, type TestEvent, turn } from './support.ts';

const topicsOf = ({ object }: TestEvent): string => object.metadata.name;
const publish = (broadcaster: Pick<Broadcaster<TestEvent>, 'tryPublish'>, from: number, to: number, topic = 'a'): void => {
  for (let at = from; at < to; at++) broadcaster.tryPublish(event(at, 'MODIFIED', topic));
};

/** The events that a watch's log holds, for any watch. */
function stored(watch: Watch<unknown>): number {
  const { chunks } = (watch as BroadcastWatch<TestEvent>).view.log as unknown as {
    chunks: ({ events: unknown[] } | undefined)[];
  };
  return chunks.flatMap((chunk) => chunk?.events ?? []).filter((one) => one !== undefined).length;
}

describe('the log of a topic', () => {
  test('is gone with its last watcher', async () => {
    const broadcaster = new Broadcaster<TestEvent>({ topicsOf });
    const { topics } = muxOf(broadcaster);
    const watches = [['a'], ['a', 'b'], ['b']].map((some) => broadcaster.watch({ topics: some }));
    expect(topics?.all()).toHaveLength(3);
    for (const watch of watches) await watch.return();
    expect(topics?.all()).toHaveLength(0);
    expect((topics as unknown as { byTopic: Map<string, unknown> }).byTopic.size).toBe(0);
  });

  test('is empty once all its watchers have read everything and wait', async () => {
    const broadcaster = new Broadcaster<TestEvent>({ topicsOf });
    const watches = [broadcaster.watch({ topics: ['a'] }), broadcaster.watch({ topics: ['a'] })];
    publish(broadcaster, 0, 10);
    for (const watch of watches) expect(ids(readAll(watch))).toEqual(range(0, 10));
    for (const watch of watches) void watch.next();
    await turn();
    expect(stored(watches[0]!)).toBe(0);
    publish(broadcaster, 10, 12);
    await turn();
    expect(watches.map((watch) => ids(readAll(watch)))).toEqual([[11], [11]]);
  });

  test.each(policiesWith({ waits: false }))(
    'is bounded for a %s watch that stops to read after a quiet time',
    async (overflow) => {
      const broadcaster = new Broadcaster<TestEvent>({ topicsOf, capacity: 1, overflow });
      const watch = broadcaster.watch({ topics: ['a'] });
      void watch.next();
      publish(broadcaster, 0, 1);
      await turn();
      const read = watch.next();
      await turn();
      publish(broadcaster, 1, 2);
      expect((await read).value).toEqual(event(1, 'MODIFIED', 'a'));
      // From here on it only looks.
      publish(broadcaster, 2, 10_000);
      expect(stored(watch)).toBeLessThan(50);
    },
  );

  test('keeps what one of its watchers has not read', async () => {
    const broadcaster = new Broadcaster<TestEvent>({ topicsOf, overflow: 'drop-newest' });
    const [fast, slow] = [broadcaster.watch({ topics: ['a'] }), broadcaster.watch({ topics: ['a'] })];
    publish(broadcaster, 0, 10);
    readAll(fast);
    void fast.next();
    await turn();
    expect(ids(readAll(slow))).toEqual(range(0, 10));
  });

  test.each([0, 1])('keeps what waits, for a watch that has read everything else, with a window of %i', async (replay) => {
    const broadcaster = new Broadcaster<TestEvent>({ topicsOf, replay, capacity: 1, incoming: 10 });
    const blocker = broadcaster.watch({ topics: ['b', 'a'] });
    const watch = broadcaster.watch({ topics: ['a'], overflow: 'drop-newest', capacity: 100 });
    const first = fate(watch.next());
    publish(broadcaster, 0, 4);
    await turn();
    expect(first.state).toBe('resolved');
    const second = fate(watch.next());
    await turn(); // everybody in this view waits; three events wait at the gate of another
    expect(ids(readAll(blocker))).toEqual(range(0, 4));
    await turn();
    expect(second.state).toBe('resolved');
    publish(broadcaster, 4, 5, 'b');
    expect(ids(readAll(blocker))).toEqual([4]);
    publish(broadcaster, 5, 6, 'b');
    expect(readAll(watch)).toEqual([event(2, 'MODIFIED', 'a'), event(3, 'MODIFIED', 'a')]);
  });

  test('keeps no event that has left the window, once its watchers have read it and wait', async () => {
    const broadcaster = new Broadcaster<TestEvent>({
      topicsOf,
      replay: 1_000,
      replayBytes: 10,
      sizeOf: ({ object }) => object.id,
    });
    const watch = broadcaster.watch({ topics: ['a'], overflow: 'drop-newest' });
    publish(broadcaster, 100, 110);
    publish(broadcaster, 1, 5);
    expect(ids(readAll(watch))).toEqual([...range(100, 110), ...range(1, 5)]);
    void watch.next();
    await turn();
    expect(stored(watch)).toBe(4);
    publish(broadcaster, 11, 12);
    publish(broadcaster, 12, 13, 'b');
    await turn();
    void watch.next();
    await turn();
    expect(stored(watch)).toBe(0);
  });
});
