// One timer for all that end at a time of their own, compared with a timer each.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Ends, type Expiring } from '../../src/apiserver/http/ends.ts';
import { FakeClock } from '../../src/testing/index.ts';

function timed(ends: Ends, timeoutMs: number, stop: () => void): Expiring {
  const one = { endMs: ends.after(timeoutMs), heapAt: -1, stop };
  ends.add(one);
  return one;
}

test('each is stopped at its time, whoever comes and leaves meanwhile', () => {
  const steps = fc.array(
    fc.oneof(
      fc.record({ add: fc.integer({ min: 0, max: 50 }) }),
      fc.record({ remove: fc.nat() }),
      fc.record({ wait: fc.integer({ min: 0, max: 20 }) }),
    ),
    { maxLength: 60 },
  );
  fc.assert(
    fc.property(steps, (all) => {
      const clock = new FakeClock(1_000);
      const ends = new Ends(clock);
      const [stopped, due] = [new Set<number>(), new Map<number, number>()];
      const members: Expiring[] = [];
      for (const step of all) {
        if ('add' in step) {
          const number = members.length;
          members.push(timed(ends, step.add, () => stopped.add(number)));
          if (step.add > 0) due.set(number, clock.now() + step.add);
        } else if ('remove' in step) {
          const number = step.remove % Math.max(members.length, 1);
          const member = members[number];
          if (member) ends.remove(member);
          if (!stopped.has(number)) due.delete(number);
        } else clock.advance(step.wait);
        const expected = [...due].filter(([, at]) => at <= clock.now()).map(([number]) => number);
        expect([...stopped].sort((a, b) => a - b)).toEqual(expected.sort((a, b) => a - b));
      }
      expect(clock.pending).toBeLessThanOrEqual(1);
      for (const member of members) ends.remove(member);
      expect(clock.pending).toBe(0);
    }),
  );
});

test('a thousand of them have one timer, and whoever stops may add others', () => {
  const clock = new FakeClock();
  const ends = new Ends(clock);
  const stopped: string[] = [];
  for (let i = 1; i <= 1_000; i++) {
    timed(ends, i, () => {
      stopped.push(`${i}`);
      if (i === 1) timed(ends, 1, () => stopped.push('again'));
    });
  }
  expect(clock.pending).toBe(1);
  clock.advance(2);
  expect(stopped.sort()).toEqual(['1', '2', 'again']);
  clock.advance(1_000);
  expect([stopped.length, clock.pending]).toEqual([1_001, 0]);
});

test('one that leaves is replaced by one from far away, which may be earlier than those above it', () => {
  const clock = new FakeClock();
  const ends = new Ends(clock);
  const stopped: number[] = [];
  // 1 is above 100 and 2; 100 is above 101 and 102, and 2 above 3 and 4.
  const members = [1, 100, 2, 101, 102, 3, 4].map((atMs) => timed(ends, atMs, () => stopped.push(atMs)));
  ends.remove(members[3] as Expiring);
  clock.advance(200);
  expect([stopped, clock.pending]).toEqual([[1, 2, 3, 4, 100, 102], 0]);
});
