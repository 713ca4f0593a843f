import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { KeptEvents } from '../../src/broadcast/cursor-state.ts';
import { runs } from '../runs.ts';

const inside = (kept: KeptEvents<number>): unknown[] => (kept as unknown as { events: unknown[] }).events;
const take = (kept: KeptEvents<number>): { gap: number; event: number } => ({ gap: kept.gap, event: kept.shift() });

describe('Kept', () => {
  test('is empty at first, with no gap', () => {
    const kept = new KeptEvents<number>();
    expect(kept.length).toBe(0);
    expect(kept.gap).toBe(0);
  });

  test('returns events in order, each with the gap before it', () => {
    const kept = new KeptEvents<number>();
    kept.push(1, 0);
    kept.push(2, 3);
    expect(kept.length).toBe(2);
    expect(kept.gap).toBe(0);
    expect(take(kept)).toEqual({ event: 1, gap: 0 });
    expect(kept.gap).toBe(3);
    expect(kept.length).toBe(1);
    expect(take(kept)).toEqual({ event: 2, gap: 3 });
    expect(kept.length).toBe(0);
    expect(kept.gap).toBe(0);
  });

  test('a dropped event enlarges the gap before the next one', () => {
    const kept = new KeptEvents<number>();
    kept.push(1, 2);
    kept.push(2, 5);
    kept.push(3, 0);
    expect(kept.drop(0)).toBe(0);
    expect(kept.gap).toBe(8);
    expect(kept.drop(1)).toBe(6 - 5);
    expect(kept.length).toBe(1);
    expect(kept.drop(0)).toBe(9);
    expect(kept.length).toBe(0);
  });

  test('drops from the middle, and keeps what is before it', () => {
    const kept = new KeptEvents<number>();
    for (let i = 0; i < 4; i++) kept.push(i, 0);
    kept.shift();
    expect(kept.drop(1)).toBe(0);
    expect([take(kept), take(kept)]).toEqual([
      { event: 1, gap: 0 },
      { event: 3, gap: 1 },
    ]);
  });

  test('retains no event that was taken, and at most twice the space it needs', () => {
    const kept = new KeptEvents<number>();
    for (let i = 0; i < 64; i++) kept.push(i, 0);
    for (let i = 0; i < 32; i++) kept.shift();
    expect(inside(kept)).toHaveLength(64);
    expect(inside(kept).slice(0, 32)).toEqual(new Array(32).fill(undefined));
    kept.shift();
    expect(inside(kept)).toHaveLength(31);
    expect(kept.length).toBe(31);
    expect(kept.shift()).toBe(33);
  });

  test('does not compact a short array before 32 events are gone', () => {
    const kept = new KeptEvents<number>();
    for (let i = 0; i < 32; i++) kept.push(i, 0);
    for (let i = 0; i < 31; i++) kept.shift();
    expect(inside(kept)).toHaveLength(32);
    kept.shift();
    expect(inside(kept)).toHaveLength(0);
  });

  test('a shared array is not modified, and is released when it was read', () => {
    const [stretch, kept, other] = [[1, 2, 3, 4], new KeptEvents<number>(), new KeptEvents<number>()];
    kept.push(0, 2);
    kept.shift();
    for (const one of [kept, other]) one.adopt(stretch);
    expect(inside(kept)).toBe(stretch);
    kept.shift();
    expect(inside(kept)).toBe(stretch);
    expect(kept.drop(1)).toBe(0);
    kept.push(5, 1);
    expect([take(kept), take(kept), take(kept)]).toEqual([
      { event: 2, gap: 0 },
      { event: 4, gap: 1 },
      { event: 5, gap: 1 },
    ]);
    for (let i = 1; i <= 4; i++) expect(take(other)).toEqual({ event: i, gap: 0 });
    expect(stretch).toEqual([1, 2, 3, 4]);
    expect(inside(other)).not.toBe(stretch);
  });

  test('a shared array is copied once, however much is pushed after it', () => {
    const kept = new KeptEvents<number>();
    kept.adopt([1, 2]);
    kept.push(3, 0);
    const own = inside(kept);
    kept.push(4, 0);
    expect(inside(kept)).toBe(own);
    expect(own).toEqual([1, 2, 3, 4]);
  });

  test('stores an event as it is if nothing was lost before it', () => {
    const kept = new KeptEvents<number>();
    kept.push(1, 0);
    kept.push(2, 3);
    kept.push(4, 0);
    expect(inside(kept)).toEqual([1, { event: 2, gap: 3 }, 4]);
    kept.drop(0);
    expect(inside(kept)).toEqual([undefined, { event: 2, gap: 4 }, 4]);
  });

  test('behaves like an array', () => {
    const op = fc.oneof(
      fc.record({ push: fc.nat(4) }),
      fc.constant('shift' as const),
      fc.record({ drop: fc.nat(5) }),
      fc.record({ adopt: fc.nat(40) }),
    );
    fc.assert(
      fc.property(fc.array(op, { maxLength: 200, size: 'max' }), (ops) => {
        const kept = new KeptEvents<number>();
        const array: { event: number; gap: number }[] = [];
        ops.forEach((each, event) => {
          if (typeof each === 'object' && 'push' in each) {
            kept.push(event, each.push);
            array.push({ event, gap: each.push });
          } else if (typeof each === 'object' && 'adopt' in each) {
            if (array.length > 0) return;
            const stretch = Array.from({ length: each.adopt }, (_, i) => 1000 * event + i);
            kept.adopt(Object.freeze(stretch));
            array.push(...stretch.map((one) => ({ event: one, gap: 0 })));
          } else if (array.length === 0) return;
          else if (each === 'shift') expect(take(kept)).toEqual(array.shift());
          else {
            const index = each.drop % array.length;
            const lost = array.splice(index, 1)[0]!.gap + 1;
            const next = array[index];
            if (next !== undefined) next.gap += lost;
            expect(kept.drop(index)).toBe(next === undefined ? lost : 0);
          }
          expect(kept.length).toBe(array.length);
          expect(kept.gap).toBe(array[0]?.gap ?? 0);
        });
      }),
      { numRuns: runs(100) },
    );
  });

  test('dropping the oldest event behind pending reads moves only those few events', () => {
    const kept = new KeptEvents<number>();
    for (let i = 0; i < 5; i++) kept.push(i, 0);
    const events = (kept as unknown as { events: unknown[] }).events;
    expect(kept.drop(1)).toBe(0);
    expect(events).toEqual([undefined, 0, { event: 2, gap: 1 }, 3, 4]);
    expect([kept.gap, kept.shift(), kept.gap, kept.shift()]).toEqual([0, 0, 1, 2]);
  });

  test('a shared array is released when half of it was read', () => {
    const kept = new KeptEvents<number>();
    const stretch = Array.from({ length: 100 }, (_, i) => i);
    kept.adopt(stretch);
    for (let i = 0; i < 99; i++) expect(kept.shift()).toBe(i);
    expect((kept as unknown as { events: unknown[] }).events.length).toBeLessThan(64);
    expect(stretch).toHaveLength(100);
    expect(kept.shift()).toBe(99);
  });
});
