// Watches that begin in the past, with `replay`.
import { describe, expect, test } from 'vitest';
import { Broadcaster } from '../../src/broadcast/broadcaster.ts';
import { OVERFLOWS } from '../../src/watch/overflow.ts';
import { collect, event, fate, ids, range, readAll, readAllBut, type TestEvent, thrown, turn } from './support.ts';

const topicsOf = ({ object }: TestEvent): string => object.metadata.name;
function publish(broadcaster: Broadcaster<TestEvent>, from: number, to: number, topic?: string): void {
  for (let at = from; at < to; at++) broadcaster.tryPublish(event(at, 'MODIFIED', topic));
}

describe('a watch with replay', () => {
  test.each(OVERFLOWS)('begins with the last events, and continues with the next (%s)', (overflow) => {
    const broadcaster = new Broadcaster<TestEvent>({ replay: 10 });
    publish(broadcaster, 0, 20);
    const watch = broadcaster.watch({ replay: 3, overflow });
    publish(broadcaster, 20, 21);
    expect([ids(readAll(watch)), watch.dropped]).toEqual([range(17, 21), 0]);
  });

  test('begins with as many as there are, and as are kept', () => {
    const broadcaster = new Broadcaster<TestEvent>({ replay: 5 });
    publish(broadcaster, 0, 3);
    expect(ids(readAll(broadcaster.watch({ replay: 100, overflow: 'drop-newest' })))).toEqual(range(0, 3));
    publish(broadcaster, 3, 30);
    expect(ids(readAll(broadcaster.watch({ replay: Number.MAX_SAFE_INTEGER, overflow: 'drop-newest' })))).toEqual(range(25, 30));
    expect(ids(readAll(broadcaster.watch({ replay: 0 })))).toEqual([]);
    expect(ids(readAll(broadcaster.watch()))).toEqual([]);
  });

  test('counts events before its topics and its filter', () => {
    const broadcaster = new Broadcaster<TestEvent>({ replay: 10, topicsOf });
    for (const [at, topic] of ['a', 'a', 'b', 'b', 'a', 'a'].entries()) publish(broadcaster, at, at + 1, topic);
    expect(ids(readAll(broadcaster.watch({ replay: 3, topics: ['a'] })))).toEqual([4, 5]);
    expect(ids(readAll(broadcaster.watch({ replay: 5, topics: ['a'], filter: ({ object }) => object.id !== 4 })))).toEqual([
      1, 5,
    ]);
  });

  test.each(OVERFLOWS)('has room for what it begins with, and one event more (%s)', (overflow) => {
    const broadcaster = new Broadcaster<TestEvent>({ replay: 10, overflow: 'drop-newest' });
    publish(broadcaster, 0, 10);
    const watch = broadcaster.watch({ replay: 5, capacity: 0, overflow });
    expect(broadcaster.tryPublish(event(10))).toBe(true);
    expect([watch.queued, watch.dropped]).toEqual([6, 0]);
    expect(ids(readAll(watch))).toEqual(range(5, 11));
  });

  test('gets its prefix first', () => {
    const broadcaster = new Broadcaster<TestEvent>({ replay: 10 });
    publish(broadcaster, 0, 3);
    const watch = broadcaster.watch({ replay: 2, prefix: [event(100), event(101)] });
    publish(broadcaster, 3, 4);
    expect(ids(readAll(watch))).toEqual([100, 101, 1, 2, 3]);
  });

  test('gets what waits at the gate, once', () => {
    const broadcaster = new Broadcaster<TestEvent>({ replay: 10, capacity: 2, incoming: 10, topicsOf });
    const slow = broadcaster.watch();
    publish(broadcaster, 0, 5, 'a');
    const watches = [undefined, ['a'], ['a', 'b']].map((topics) =>
      broadcaster.watch({ replay: 1, topics, overflow: 'drop-newest' }),
    );
    expect(watches.map((watch) => watch.queued)).toEqual([1, 1, 1]);
    expect(ids(readAll(slow))).toEqual(range(0, 5));
    expect(watches.map((watch) => ids(readAll(watch)))).toEqual(Array(3).fill(range(1, 5)));
  });

  test('asks its filter once per event, and ends with what it throws', async () => {
    const broadcaster = new Broadcaster<TestEvent>({ replay: 10 });
    publish(broadcaster, 0, 5);
    const asked: number[] = [];
    const watch = broadcaster.watch({
      replay: 4,
      filter({ object }) {
        asked.push(object.id);
        if (object.id === 3) throw new Error('filter');
        return true;
      },
    });
    expect(ids(readAllBut(watch, 'filter'))).toEqual([1, 2]);
    expect([asked, await watch.next()]).toEqual([[1, 2, 3], { done: true, value: undefined }]);
  });

  test('whose filter publishes about the prefix begins with the last events there are then', () => {
    const broadcaster = new Broadcaster<TestEvent>({ replay: 2 });
    publish(broadcaster, 0, 2);
    let more = 5;
    const watch = broadcaster.watch({
      replay: 2,
      prefix: [event(100)],
      filter() {
        while (more > 0) broadcaster.tryPublish(event(10 - more--));
        return true;
      },
    });
    expect(ids(readAll(watch))).toEqual([100, 8, 9]);
  });

  test('whose filter publishes meanwhile gets those events behind', () => {
    const broadcaster = new Broadcaster<TestEvent>({ replay: 20, topicsOf });
    publish(broadcaster, 0, 3, 'a');
    let more = 3;
    const filter = (): boolean => {
      if (more-- > 0) broadcaster.tryPublish(event(10 - more, 'MODIFIED', 'a'));
      return true;
    };
    const watch = broadcaster.watch({ replay: 3, topics: ['a'], capacity: 1, filter });
    expect([ids(readAll(watch)), watch.dropped]).toEqual([[0, 1, 2, 8, 9, 10], 0]);
  });

  test('does not disturb others that read, lag or wait', async () => {
    const broadcaster = new Broadcaster<TestEvent>({ replay: 100 });
    const waiting = fate(broadcaster.watch().next());
    const lagging = broadcaster.watch({ capacity: 2, overflow: 'drop-oldest' });
    publish(broadcaster, 0, 1);
    await turn();
    publish(broadcaster, 1, 80);
    for (let at = 0; at < 50; at++) void broadcaster.watch({ replay: at }).return();
    expect(waiting.value).toEqual({ done: false, value: event(0) });
    expect([ids(readAll(lagging)), lagging.dropped]).toEqual([[78, 79], 78]);
    expect(broadcaster.watchers).toBe(2);
  });

  test('of an empty broadcaster begins with the first event', async () => {
    const broadcaster = new Broadcaster<TestEvent>({ replay: 10 });
    const got = collect(broadcaster.watch({ replay: 10 }));
    publish(broadcaster, 0, 3);
    await broadcaster.shutdown();
    expect(await got).toEqual(range(0, 3));
  });
});

describe('the option replay', () => {
  test('is needed on the broadcaster: without it a watch that asks for the past is refused', () => {
    for (const asked of ['replay', 'after'] as const) {
      expect(thrown(() => new Broadcaster<TestEvent>().watch({ [asked]: 1 }))).toMatchObject({
        code: 'INVALID_ARGUMENT',
        message: `${asked}: expected none, because this broadcaster keeps no events (its option replay), got 1`,
      });
    }
  });

  test.each([-1, 1.5, Number.NaN, '3', null])('of %s is refused by name, on both sides', (replay) => {
    const refusal = { code: 'INVALID_ARGUMENT', message: expect.stringMatching(/^replay: expected a whole number >= 0, got /) };
    expect(thrown(() => new Broadcaster<TestEvent>({ replay: replay as number }))).toMatchObject(refusal);
    expect(thrown(() => new Broadcaster<TestEvent>({ replay: 3 }).watch({ replay: replay as number }))).toMatchObject(refusal);
  });

  test('replayBytes needs sizeOf, and both are checked', () => {
    expect(thrown(() => new Broadcaster<TestEvent>({ replay: 3, replayBytes: 3 }))).toMatchObject({
      message: 'sizeOf: expected a function, because replayBytes is set, got undefined',
    });
    expect(thrown(() => new Broadcaster<TestEvent>({ replayBytes: -3, sizeOf: () => 0 }))).toMatchObject({
      message: 'replayBytes: expected a whole number >= 0, got -3',
    });
    expect(thrown(() => new Broadcaster<TestEvent>({ sizeOf: 3 as never }))).toMatchObject({
      message: 'sizeOf: expected a function, got 3',
    });
  });

  test('does not change what a watch without it gets', () => {
    const broadcaster = new Broadcaster<TestEvent>({ replay: 10, overflow: 'drop-newest' });
    publish(broadcaster, 0, 5);
    const watch = broadcaster.watch({ capacity: 2 });
    publish(broadcaster, 5, 10);
    expect([ids(readAll(watch)), watch.dropped]).toEqual([[5, 6], 3]);
  });
});
