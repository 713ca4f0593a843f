import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { EventLog } from '../../src/broadcast/log.ts';
import { Mux } from '../../src/broadcast/mux.ts';
import { EVERY_TOPIC, type Topics, TopicViews } from '../../src/broadcast/topics.ts';

/** An event is its size. Chunks of 16. */
class Rig {
  readonly mux: Mux<number>;

  constructor(items: number, bytes: number = Infinity) {
    const limits = { replayItems: items, replayBytes: bytes };
    this.mux = new Mux<number>({ capacity: 0, incoming: 0, keyOf: String, topics: new TopicViews(), ...limits });
  }

  get log(): EventLog<number> {
    return this.mux.log;
  }

  publish(size: number, topics?: Topics): void {
    this.mux.accept(size, { topics, bytes: size });
  }

  /** The events from a place on, of all or of certain topics. */
  since(place: number, topics?: readonly string[]): readonly number[] | undefined {
    const { all } = this.mux;
    if (place < (all.window?.start ?? 0) || place > all.log.head) return undefined;
    const { log, window } = topics ? this.mux.viewOf(topics) : all;
    return log.slice(window?.positionOf(place) as number, log.head);
  }

  /** The events that the log holds, for any watch. */
  get stored(): number[] {
    const { chunks } = this.log as unknown as { chunks: ({ events: (number | undefined)[] } | undefined)[] };
    return chunks.flatMap((chunk) => chunk?.events ?? []).filter((event): event is number => event !== undefined);
  }
}

describe('the replay window', () => {
  test('matches an array: limited in number and in bytes, always the most recent events', () => {
    const sizes = fc.array(fc.integer({ min: 0, max: 400 }), { maxLength: 60 });
    fc.assert(
      fc.property(sizes, fc.integer({ min: 1, max: 10 }), fc.nat(1_000), (all, items, bytes) => {
        const rig = new Rig(items, bytes);
        const model: { size: number; place: number }[] = [];
        all.forEach((size, at) => {
          rig.publish(size);
          model.push({ size, place: at });
          while (model.length > items || model.reduce((sum, one) => sum + one.size, 0) > bytes) model.shift();
          for (let from = 0; from <= at + 3; from++) {
            const known = from >= at + 1 - model.length && from <= at + 1;
            expect(rig.since(from)).toEqual(
              known ? model.filter(({ place }) => place >= from).map((one) => one.size) : undefined,
            );
          }
        });
      }),
    );
  });

  test('a view of topics holds its events of the same window, whenever it was created', () => {
    const rig = new Rig(6);
    const early = rig.mux.viewOf(['a']);
    const topics: Topics[] = ['a', ['b', 'a'], undefined, [], 'b', ['c']];
    topics.forEach((each, at) => {
      rig.publish(at, each);
    });
    expect(rig.since(0, ['a'])).toEqual([0, 1]);
    expect(rig.since(1, ['a'])).toEqual([1]);
    expect(rig.mux.viewOf(['a'])).toBe(early);
    expect(rig.since(1, ['b', 'c'])).toEqual([1, 4, 5]);
    expect(rig.since(0, [])).toEqual([]);
    expect(rig.since(6, ['a'])).toEqual([]);
    rig.publish(6, 'c');
    rig.publish(7);
    expect(rig.since(2, ['a'])).toEqual([]);
    expect(rig.since(2, ['b', 'c'])).toEqual([4, 5, 6]);
    expect(rig.since(1, ['a'])).toBeUndefined();
  });

  test('an event for every topic is in each view of the window, whenever that was created', () => {
    const rig = new Rig(6);
    const early = rig.mux.viewOf(['a']);
    rig.publish(0, 'a');
    rig.publish(1, EVERY_TOPIC);
    rig.publish(2, 'b');
    expect(rig.mux.viewOf(['a'])).toBe(early);
    expect([rig.since(0, ['a']), rig.since(0, ['b']), rig.since(0, ['x'])]).toEqual([[0, 1], [1, 2], [1]]);
  });

  test('the log holds no more than the window, and in number at most a chunk more', () => {
    const rig = new Rig(20);
    for (let i = 0; i < 1_000; i++) {
      rig.publish(1);
      expect(rig.stored.length).toBeLessThanOrEqual(20 + 16);
    }
  });

  test('events that left the window for their size are not held by their chunk', () => {
    const rig = new Rig(1_000, 100);
    for (let i = 0; i < 50; i++) {
      rig.publish(40);
      expect(rig.stored.reduce((sum, size) => sum + size, 0)).toBeLessThanOrEqual(100);
    }
  });

  test('but events that a watcher still needs are', () => {
    const rig = new Rig(2);
    rig.log.stand(0);
    for (let i = 0; i < 10; i++) rig.publish(i);
    expect(rig.log.slice(0, 10)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    expect(rig.since(7)).toBeUndefined();
    expect(rig.since(8)).toEqual([8, 9]);
  });

  test.each([3, 5])('and so are the last %i events, if laggards of drop-oldest have claimed them', (count) => {
    const rig = new Rig(2);
    rig.log.retain(count);
    for (let i = 0; i < 10; i++) rig.publish(i);
    expect(rig.log.slice(10 - count, 10)).toEqual([5, 6, 7, 8, 9].slice(-count));
    rig.log.release(count);
  });

  test.each([0, 3])('places may begin at any number, with a window of %i', (items) => {
    const rig = new Rig(items);
    rig.mux.begin(1_001);
    const { window } = rig.mux.all;
    expect([rig.log.head, window?.start]).toEqual([1_001, items ? 1_001 : undefined]);
    for (let i = 0; i < 4; i++) rig.publish(i, 'a');
    expect([rig.log.head, window?.start]).toEqual([1_005, items ? 1_002 : undefined]);
    if (items) expect([rig.since(1_001), rig.since(1_002), rig.since(1_004, ['a'])]).toEqual([undefined, [1, 2, 3], [3]]);
  });

  test('an event that is larger than the window leaves it empty, and nothing before it can be resumed', () => {
    const rig = new Rig(10, 100);
    rig.publish(10);
    rig.publish(101);
    expect(rig.since(1)).toBeUndefined();
    expect(rig.since(2)).toEqual([]);
  });
});
