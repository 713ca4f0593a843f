// The limit in bytes of what is kept for `replay`, and `sizeOf`, which is user code.
import { describe, expect, test } from 'vitest';
import { Broadcaster } from '../../src/broadcast/broadcaster.ts';
import { event, fate, ids, readAll, type TestEvent, thrown, turn } from './support.ts';

/** The ids of the events that a watch would begin with. */
function kept(broadcaster: Broadcaster<TestEvent>): number[] {
  const watch = broadcaster.watch({ replay: 1_000, overflow: 'drop-newest' });
  const all = ids(readAll(watch));
  void watch.return();
  return all;
}

describe('replayBytes', () => {
  test('limits what is kept to the last events within it', () => {
    const broadcaster = new Broadcaster<TestEvent>({ replay: 10, replayBytes: 100, sizeOf: ({ object }) => object.id });
    const seen = [30, 40, 30, 31, 100, 0, 0, 101, 99, 2].map((size) => {
      broadcaster.tryPublish(event(size));
      return kept(broadcaster);
    });
    expect(seen).toEqual([[30], [30, 40], [30, 40, 30], [30, 31], [100], [100, 0], [100, 0, 0], [], [99], [2]]);
  });

  test('asks for each size once, when the event is published', () => {
    const asked: number[] = [];
    const broadcaster = new Broadcaster<TestEvent>({
      replay: 10,
      replayBytes: 20,
      sizeOf: ({ object: { id } }) => asked.push(id),
    });
    for (let at = 0; at < 30; at++) broadcaster.tryPublish(event(at));
    expect(asked).toEqual(Array.from({ length: 30 }, (_, at) => at));
  });

  test('holds although sizeOf gives another answer later: the size at publishing counts', () => {
    let factor = 10;
    const broadcaster = new Broadcaster<TestEvent>({ replay: 1_000, replayBytes: 100, sizeOf: () => factor });
    for (let at = 0; at < 20; at++) broadcaster.tryPublish(event(at));
    expect(kept(broadcaster)).toHaveLength(10);
    factor = 1;
    for (let at = 20; at < 40; at++) broadcaster.tryPublish(event(at));
    expect(kept(broadcaster)).toHaveLength(28);
    for (let at = 40; at < 200; at++) broadcaster.tryPublish(event(at));
    expect(kept(broadcaster)).toHaveLength(100);
  });
});

describe('sizeOf', () => {
  test('that throws fails that publish alone, which no watch then gets', async () => {
    const broadcaster = new Broadcaster<TestEvent>({
      topicsOf: () => 'a',
      replay: 10,
      replayBytes: 100,
      sizeOf({ object }) {
        if (object.id === 1) throw new Error('sizeOf');
        return 1;
      },
    });
    const [all, some] = [broadcaster.watch(), broadcaster.watch({ topics: ['a'] })];
    expect(broadcaster.tryPublish(event(0))).toBe(true);
    expect(thrown(() => broadcaster.tryPublish(event(1)))).toEqual(new Error('sizeOf'));
    const publish = fate(broadcaster.publish(event(1)));
    await turn();
    expect(publish).toMatchObject({ state: 'rejected', error: new Error('sizeOf') });
    expect(broadcaster.tryPublish(event(2))).toBe(true);
    expect([ids(readAll(all)), ids(readAll(some)), kept(broadcaster)]).toEqual([
      [0, 2],
      [0, 2],
      [0, 2],
    ]);
  });

  test.each([Number.NaN, -1, Number.POSITIVE_INFINITY, 0.5, '7', undefined, 5n])('that returns %s is refused by name', (size) => {
    const broadcaster = new Broadcaster<TestEvent>({ replay: 10, replayBytes: 100, sizeOf: () => size as number });
    expect(thrown(() => broadcaster.tryPublish(event(0)))).toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: expect.stringMatching(/^sizeOf: expected a whole number >= 0, got /),
    });
    expect(kept(broadcaster)).toEqual([]);
  });

  test('may publish: the inner event comes first, for everyone', () => {
    const broadcaster = new Broadcaster<TestEvent>({
      topicsOf: () => ['a', 'b'],
      replay: 10,
      replayBytes: 100,
      sizeOf({ object }) {
        if (object.id === 0) broadcaster.tryPublish(event(1));
        return 1;
      },
    });
    const watches = [broadcaster.watch(), broadcaster.watch({ topics: ['a'] }), broadcaster.watch({ topics: ['b', 'a'] })];
    broadcaster.tryPublish(event(0));
    expect(watches.map((watch) => ids(readAll(watch)))).toEqual(Array(3).fill([1, 0]));
  });
});
