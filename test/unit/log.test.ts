import { describe, expect, test } from 'vitest';
import { EventLog } from '../../src/broadcast/log.ts';
import { range, turn } from './support.ts';

/** A log of numbers, each event being its own position; chunks of 16 unless the capacity says more. */
class Row extends EventLog<number> {
  /** Accepts events and makes them visible. Answers the heads at which a chunk was entered. */
  add(count: number): number[] {
    const entered: number[] = [];
    for (let i = 0; i < count; i++) {
      this.append(this.end);
      if (this.step()) entered.push(this.head);
    }
    return entered;
  }

  /** The first position that is stored, and how many events are. */
  get stored(): { from: number; count: number } {
    const { base, chunks } = this as unknown as { base: number; chunks: ({ events: number[] } | undefined)[] };
    return { from: base, count: chunks.reduce((sum, chunk) => sum + (chunk?.events.length ?? 0), 0) };
  }
}

describe('EventLog', () => {
  test('stores nothing while nobody needs it, but counts positions', () => {
    const log = new Row(0);
    expect(log.add(100)).toEqual([]);
    expect(log).toMatchObject({ head: 100, end: 100 });
    expect(log.stored).toEqual({ from: 100, count: 0 });
  });

  test('stores events after somebody stands', () => {
    const log = new Row(0);
    log.add(7);
    log.stand(7);
    log.add(40);
    expect(log.stored).toEqual({ from: 7, count: 40 });
    for (let position = 7; position < 47; position++) expect(log.at(position)).toBe(position);
  });

  test('finds the note of an event, wherever the log begins', () => {
    const log = new Row(0);
    log.add(7);
    log.stand(7);
    for (let position = 7; position < 47; position++) log.append(position, position % 3 ? `note ${position}` : undefined);
    const noted = range(7, 47).map((position) => (position % 3 ? `note ${position}` : undefined));
    expect(range(7, 47).map((position) => log.noteAt(position))).toEqual(noted);
  });

  test.each([
    [0, 16],
    [1, 16],
    [31, 16],
    [32, 32],
    [100, 64],
    [255, 128],
    [256, 256],
    [1_000_000, 256],
  ])('for a capacity of %i, chunks have %i events', (capacity, length) => {
    const log = new Row(capacity);
    log.stand(0);
    expect(log.add(2 * length + 1)).toEqual([length, 2 * length]);
    expect(log.chunkOf(length) - log.chunkOf(length - 1)).toBe(1);
  });

  test('a chunk is entered when head reaches its start, not when the accepted events do', () => {
    const log = new Row(0);
    log.stand(0);
    for (let i = 0; i < 40; i++) log.append(i);
    const entered = Array.from({ length: 40 }, () => log.step());
    expect(entered.flatMap((yes, i) => (yes ? [i + 1] : []))).toEqual([16, 32]);
  });

  test('with nothing stored, no chunk is entered', () => {
    const log = new Row(0);
    expect(log.add(16)).toEqual([]);
    log.append(16);
    log.stand(17); // base is 17, head 16
    expect(log.step()).toBe(false);
    expect(log.add(16)).toEqual([33]);
  });

  test('drops the chunks before the one of the slowest watcher', () => {
    const log = new Row(0);
    log.stand(0);
    log.stand(0);
    log.add(50);
    log.move(0, 40);
    expect(log.stored.from).toBe(0);
    log.move(0, 20);
    expect(log.stored).toEqual({ from: 16, count: 34 });
    log.move(20, 31);
    expect(log.stored.from).toBe(16);
    log.move(31, 32);
    expect(log.stored).toEqual({ from: 32, count: 18 });
    expect(log.at(40)).toBe(40);
  });

  test('a watcher in the middle retains only what follows it', () => {
    const log = new Row(0);
    log.stand(0);
    log.stand(0);
    log.add(20);
    log.move(0, 17);
    log.add(30);
    log.move(17, 50); // not in the first chunk: nothing to drop
    expect(log.stored.from).toBe(0);
    log.leave(0);
    expect(log.stored.from).toBe(48);
  });

  test('discards everything when the last watcher leaves, and continues to number chunks', () => {
    const log = new Row(0);
    log.stand(0);
    log.add(20);
    log.slice(3, 5);
    const before = log.chunkOf(20);
    log.leave(0);
    expect(log.stored).toEqual({ from: 20, count: 0 });
    expect(log.chunkOf(20)).toBeGreaterThan(before);
    log.stand(20);
    log.add(2);
    expect(log.slice(20, 22)).toEqual([20, 21]);
  });

  test('no chunk number is used twice or skipped, even with dead chunks in the array', () => {
    const log = new Row(0);
    log.stand(0);
    log.add(16 * 100);
    log.move(0, 16 * 10);
    log.leave(16 * 10);
    expect(log.chunkOf(16 * 100)).toBe(101);
  });

  test('chunk numbers do not depend on what was dropped', () => {
    const log = new Row(0);
    log.stand(0);
    log.add(40);
    const numbers = [32, 39].map((position) => log.chunkOf(position));
    log.move(0, 39);
    expect([32, 39].map((position) => log.chunkOf(position))).toEqual(numbers);
  });

  test('forgets what everybody has read, even with dead chunks in the array: head stays in its chunk, and who stands stands', () => {
    const log = new Row(0);
    log.retain(40);
    log.stand(0);
    log.add(100);
    log.move(0, 100);
    expect(log.stored.from).toBe(48);
    const number = log.chunkOf(100);
    log.forget();
    expect(log.stored).toEqual({ from: 100, count: 0 });
    expect(log.chunkOf(100)).toBe(number);
    log.release(40);
    expect(log.add(20)).toEqual([116]);
    expect(log.slice(100, 120)).toEqual(range(100, 120));
    log.leave(100);
    expect(log.stored.count).toBe(0);
  });

  test('does not drop accepted events that are not visible yet', () => {
    const log = new Row(0);
    log.need();
    for (let i = 0; i < 40; i++) log.append(i);
    log.trim();
    expect(log.stored).toEqual({ from: 0, count: 40 });
    for (let i = 0; i < 15; i++) log.step();
    log.trim();
    expect(log.stored.from).toBe(0);
    log.step();
    log.trim();
    expect(log.stored).toEqual({ from: 16, count: 24 });
    log.unneed();
    expect(log.stored.count).toBe(0);
  });

  test('retains the last events before head, rounded up to chunks', () => {
    const log = new Row(0);
    log.retain(20);
    log.add(36);
    log.trim();
    expect(log.stored.from).toBe(16);
    log.add(15);
    log.trim();
    expect(log.stored.from).toBe(16); // 51 - 20 = 31 lies in the chunk from 16
    log.add(1);
    log.trim();
    expect(log.stored.from).toBe(32);
  });

  test('retains the largest requested number, until it is released', () => {
    const log = new Row(0);
    log.retain(10);
    log.retain(40);
    log.retain(40);
    log.retain(20);
    log.add(64);
    expect(log.stored.from).toBe(0);
    log.release(40);
    expect(log.stored.from).toBe(16); // 64 - 40 = 24
    log.release(40);
    expect(log.stored.from).toBe(32); // 64 - 20 = 44
    log.release(10);
    expect(log.stored.from).toBe(32);
    log.release(20);
    expect(log.stored).toEqual({ from: 64, count: 0 });
    log.stand(64);
    log.add(40);
    log.move(64, 104);
    expect(log.stored.from).toBe(96);
  });

  test('what two have requested is retained until both release it', () => {
    const log = new Row(0);
    log.retain(40);
    log.retain(40);
    log.retain(60);
    log.add(96);
    log.release(40);
    log.release(60);
    expect(log.stored.from).toBe(48); // 96 - 40 = 56
    log.release(40);
    expect(log.stored.count).toBe(0);
  });

  test('releasing a smaller number keeps the largest', () => {
    const log = new Row(0);
    log.retain(40);
    log.retain(10);
    log.release(10);
    log.add(64);
    log.trim();
    expect(log.stored.from).toBe(16);
  });

  test('watchers in step get the same batch', () => {
    const log = new Row(0);
    log.stand(0);
    log.add(5);
    const batch = log.slice(1, 4);
    expect(batch).toEqual([1, 2, 3]);
    expect(log.slice(1, 4)).toBe(batch);
    expect(log.slice(1, 3)).toEqual([1, 2]);
    expect(log.slice(2, 3)).toEqual([2]);
    expect(log.slice(1, 3)).not.toBe(batch);
  });

  test('a shared batch is remembered, but not retained from the next turn on', async () => {
    const log = new Row(0);
    const known = (): { events: unknown; later: WeakRef<object> } => (log as unknown as { batch: never }).batch;
    log.stand(0);
    log.add(5);
    for (const to of [5, 4]) {
      log.slice(1, to);
      const batch = log.slice(0, to);
      expect(known().events).toBe(batch);
      await turn();
      expect(known().events).toBeUndefined();
      expect(known().later.deref()).toBe(batch);
      expect(log.slice(0, to)).toBe(batch);
    }
  });

  test('a batch that nobody shared is not retained either', async () => {
    const log = new Row(0);
    log.stand(0);
    log.add(5);
    for (const to of [5, 4]) {
      log.slice(0, to);
      await turn();
      expect((log as unknown as { batch: { events: unknown } }).batch.events).toBeUndefined();
    }
  });

  test('a batch that spans many chunks is one array', () => {
    const log = new Row(0);
    log.stand(0);
    log.add(100);
    expect(log.slice(3, 97)).toEqual(range(3, 97));
    expect(log.slice(16, 32)).toEqual(range(16, 32));
    expect(log.slice(15, 17)).toEqual([15, 16]);
  });

  test('a long array of chunks drops its first ones without moving the rest each time', () => {
    const log = new EventLog<number>(1);
    const chunks = (): unknown[] => (log as unknown as { chunks: unknown[] }).chunks;
    log.stand(0);
    for (let i = 0; i < 16 * 100; i++) {
      log.append(i);
      log.head++;
    }
    const row = chunks();
    log.move(0, 16 * 10);
    expect(chunks()).toBe(row);
    expect(row.slice(0, 10)).toEqual(new Array(10).fill(undefined));
    log.move(16 * 10, 16 * 60);
    expect(chunks()).toHaveLength(41);
    expect([log.at(16 * 60), log.at(16 * 100 - 1), log.chunkOf(16 * 60)]).toEqual([960, 1599, 60]);
  });
});
