// P13.7 and P13.8: whatever fails, and whenever, the delays of the limiters are within their bounds.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { FakeClock } from '../../src/testing/index.ts';
import { bucket, exponential } from '../../src/workqueue/index.ts';
import { runs } from '../runs.ts';

const RUNS = runs(1_500);
const timeout = 30_000 + RUNS * 10;
/** A sum of fractions of milliseconds is not exact. */
const NEARLY = 1e-6;

describe('rate limiters', { timeout }, () => {
  test('P13.8: a bucket ends at most burst + perSecond * t delays in any span of t seconds, and nobody waits for more than is owed', () => {
    const property = fc.property(
      fc.double({ min: 0.1, max: 500, noNaN: true }),
      fc.integer({ min: 1, max: 8 }),
      fc.array(fc.record({ passMs: fc.constantFrom(0, 0, 0, 1, 7, 100, 2_500), calls: fc.integer({ min: 1, max: 6 }) }), {
        minLength: 1,
        maxLength: 20,
      }),
      (perSecond, burst, steps) => {
        const clock = new FakeClock();
        const limiter = bucket({ perSecond, burst, clock });
        const ends: number[] = [];
        for (const { passMs, calls } of steps) {
          clock.advance(passMs);
          for (let call = 0; call < calls; call++) {
            const delayMs = limiter.when('any');
            expect(delayMs).toBeGreaterThanOrEqual(0);
            ends.push(clock.now() + delayMs);
          }
        }
        // Who comes later never goes first.
        const wrong: unknown[] = [];
        for (const [last, end] of ends.entries()) {
          if (last > 0 && end < (ends[last - 1] as number) - NEARLY) wrong.push(['before', last]);
          for (let first = 0; first <= last; first++) {
            const seconds = (end - (ends[first] as number)) / 1_000;
            if (last - first + 1 > burst + perSecond * (seconds + NEARLY) + NEARLY) wrong.push(['too many', first, last]);
          }
          const owed = Math.max(0, last + 1 - burst);
          if (end > clock.now() + (owed / perSecond) * 1_000 + NEARLY) wrong.push(['too late', last]);
        }
        expect(wrong).toEqual([]);
      },
    );
    fc.assert(property, { numRuns: RUNS });
  });

  test('P13.7: exponential delays never shrink until a key is forgotten, and begin again then; keys do not know each other', () => {
    const property = fc.property(
      fc.constantFrom(0, 1, 5, 1_000),
      fc.constantFrom(0, 1, 64, 1_000_000),
      fc.array(fc.record({ key: fc.constantFrom('a', 'b'), forgets: fc.boolean() }), { maxLength: 80 }),
      (baseMs, maxMs, steps) => {
        const limiter = exponential({ baseMs, maxMs });
        const failures = new Map<string, number>();
        for (const { key, forgets } of steps) {
          if (forgets && failures.size > 0 && (failures.get(key) ?? 0) > 3) {
            limiter.forget(key);
            failures.delete(key);
          }
          const before = failures.get(key) ?? 0;
          expect(limiter.requeues(key)).toBe(before);
          expect(limiter.when(key)).toBe(Math.min(maxMs, baseMs * 2 ** before));
          failures.set(key, before + 1);
        }
      },
    );
    fc.assert(property, { numRuns: RUNS });
  });
});
