import { describe, expect, test } from 'vitest';
import { type Laggard, Laggards } from '../../src/broadcast/watcher-sets.ts';

class Reader implements Laggard {
  get due(): number {
    return (this.inSet as { due: number } | undefined)?.due ?? -1;
  }
  inSet: object | undefined;
  before: Laggard | undefined;
  after: Laggard | undefined;
  asked = 0;
  lags = 0;
  chunk: number;
  onLag: () => void = () => {};

  constructor(chunk: number) {
    this.chunk = chunk;
  }
  dueChunk(): number {
    this.asked++;
    return this.chunk;
  }
  lag(): void {
    this.lags++;
    this.onLag();
  }
}

const sets = (laggards: Laggards): number[] => [...(laggards as unknown as { sets: Map<number, unknown> }).sets.keys()];

describe('Laggards', () => {
  test('looks at a reader when head enters its due chunk, and never before', () => {
    const laggards = new Laggards();
    const reader = new Reader(3);
    laggards.add(reader);
    expect(reader.due).toBe(3);
    expect(reader.asked).toBe(1);
    laggards.judge(1);
    laggards.judge(2);
    expect(reader).toMatchObject({ asked: 1, lags: 0 });
    laggards.judge(3);
    expect(reader.lags).toBe(1);
    expect(sets(laggards)).toEqual([]);
    laggards.judge(4);
    expect(reader.lags).toBe(1);
  });

  test('a reader that has read meanwhile moves to the set of its new chunk', () => {
    const laggards = new Laggards();
    const reader = new Reader(1);
    laggards.add(reader);
    reader.chunk = 2;
    laggards.judge(1);
    expect(reader).toMatchObject({ lags: 0, due: 2 });
    expect(sets(laggards)).toEqual([2]);
    laggards.judge(2);
    expect(reader.lags).toBe(1);
  });

  test('a reader that is already late is looked at when head enters the next chunk, not in a past one', () => {
    const laggards = new Laggards();
    laggards.judge(7);
    const reader = new Reader(2);
    laggards.add(reader);
    expect(reader.due).toBe(8);
    laggards.judge(8);
    expect(reader.lags).toBe(1);
  });

  test('a reader that adds itself again while it is judged is not judged twice', () => {
    const laggards = new Laggards();
    const reader = new Reader(1);
    reader.onLag = () => laggards.add(reader);
    laggards.add(reader);
    laggards.judge(1);
    expect(reader).toMatchObject({ lags: 1, due: 2 });
    expect(sets(laggards)).toEqual([2]);
    laggards.remove(reader);
    expect(sets(laggards)).toEqual([]);
  });

  test('many share a set; removing one leaves the others', () => {
    const laggards = new Laggards();
    const [a, b] = [new Reader(5), new Reader(5)];
    laggards.add(a);
    laggards.add(b);
    expect(sets(laggards)).toEqual([5]);
    laggards.remove(a);
    expect(sets(laggards)).toEqual([5]);
    laggards.judge(5);
    expect([a.lags, b.lags]).toEqual([0, 1]);
  });

  test('removing a reader that is in no set has no effect', () => {
    const laggards = new Laggards();
    const [a, stranger] = [new Reader(5), new Reader(5)];
    laggards.add(a);
    stranger.inSet = laggards;
    laggards.remove(stranger);
    laggards.judge(5);
    expect(a.lags).toBe(1);
  });

  test('a reader that is removed by the user code of another is not judged any more', () => {
    const laggards = new Laggards();
    const [a, b] = [new Reader(1), new Reader(1)];
    a.onLag = () => laggards.remove(b);
    laggards.add(a);
    laggards.add(b);
    laggards.judge(1);
    expect([a.lags, b.lags]).toEqual([1, 0]);
  });

  test('a reader that joins while others are judged is due later', () => {
    const laggards = new Laggards();
    const [a, late] = [new Reader(1), new Reader(0)];
    a.onLag = () => laggards.add(late);
    laggards.add(a);
    laggards.judge(1);
    expect(late).toMatchObject({ lags: 0, due: 2 });
  });
});
