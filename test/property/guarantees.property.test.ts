import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CHECKERS, checkHistory } from '../../src/testing/checkers/checkers.ts';
import { GUARANTEES } from '../../src/testing/checkers/history.ts';
import { OVERFLOWS } from '../../src/watch/overflow.ts';
import { runs } from '../runs.ts';
import { type Deed, perform, planArb } from './actors.ts';

const RUNS = runs(150);
/** The suite's own, or more for more runs: a run took 30 ms on a loaded machine. */
const timeout = Math.max(30_000, 200 * RUNS);
const TOPICS = [undefined, ['a'], ['a'], ['b'], ['a', 'b'], ['c'], [], ['x']];
const READS: readonly Deed[] = ['read-self', 'batch-self', 'read-other'];
const ENDS: readonly Deed[] = ['stop-self', 'stop-other', 'return-self', 'throw', 'shutdown'];
const DEEDS: readonly Deed[] = ['none', 'publish', 'watch', ...READS, ...ENDS];

describe('readers and publishers in any order of steps keep the guarantees', { timeout }, () => {
  for (const [name, check] of Object.entries(CHECKERS)) {
    it(`${name}: ${GUARANTEES[name as keyof typeof CHECKERS]}`, async () => {
      await fc.assert(
        fc.asyncProperty(planArb(), fc.scheduler(), async (plan, scheduler) => {
          expect([check(await perform(plan, scheduler))?.message]).toEqual([undefined]);
        }),
        { numRuns: RUNS },
      );
    });
  }

  for (const overflow of OVERFLOWS) {
    it(`all at once, with ${overflow} alone`, async () => {
      await fc.assert(
        fc.asyncProperty(planArb({ overflows: [overflow] }), fc.scheduler(), async (plan, scheduler) => {
          expect(checkHistory(await perform(plan, scheduler)).map(({ message }) => message)).toEqual([]);
        }),
        { numRuns: RUNS },
      );
    });
  }

  it('all at once, with watches of one topic, of several, of none and of all events', async () => {
    await fc.assert(
      fc.asyncProperty(planArb({ topics: TOPICS }), fc.scheduler(), async (plan, scheduler) => {
        expect(checkHistory(await perform(plan, scheduler)).map(({ message }) => message)).toEqual([]);
      }),
      { numRuns: RUNS * 2 },
    );
  });

  it.each([
    ['', [undefined]],
    [' on watches of topics', TOPICS],
  ])(
    'all at once, with filters and onGap callbacks that publish, watch, read, stop, return, throw and shut down%s',
    async (_, topics) => {
      await fc.assert(
        fc.asyncProperty(planArb({ deeds: DEEDS, topics }), fc.scheduler(), async (plan, scheduler) => {
          expect(checkHistory(await perform(plan, scheduler)).map(({ message }) => message)).toEqual([]);
        }),
        { numRuns: RUNS * 2 },
      );
    },
  );
});
