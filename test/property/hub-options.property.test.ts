// All options of a hub, of its clients, and of what they ask for, two by two: whatever is cut, slow, or fails, what a client has seen
// folds to what it may see of the state, or it knows that it does not; and nothing is left when all of it ends.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { runs } from '../runs.ts';
import { type Plan, plans, settle, World } from './hub-world.ts';
import type { Tamper } from './wires.ts';

const RUNS = runs(300, { least: 80 });
/** The suite's own, or more for more runs: a run took 60 ms on a loaded machine. */
const timeout = Math.max(30_000, 400 * RUNS);

/** How many clients ended up how. */
const seen = { whole: 0, lost: 0, lossy: 0, again: 0 };

/** Returns what is wrong after a plan. */
async function faultsOf(plan: Plan, tamper?: Tamper): Promise<unknown> {
  const world = new World(plan, tamper);
  await settle();
  for (const step of plan.steps) await world.perform(step);
  const isRight = await world.calm();
  const wrong = isRight ? undefined : world.report();
  world.check();
  for (const outcome of world.outcomes) seen[outcome]++;
  if (world.reconnects > 0) seen.again++;
  const isOver = !isRight || !plan.ends || plan.hub.hasSource || (await world.finish());
  const atEnd = isOver ? undefined : world.report();
  const left = await world.end();
  return { wrong, atEnd, faults: world.faults, left };
}

const NOTHING = { wrong: undefined, atEnd: undefined, faults: [], left: { pending: 0, following: 0, sizes: [0, 0, 0, 0, 0] } };

describe('options that meet', { timeout }, () => {
  test('a copy ends as the state, or its client knows that it does not; what is counted adds up; nothing is left', async () => {
    await fc.assert(
      fc.asyncProperty(plans, async (plan) => {
        expect(await faultsOf(plan)).toEqual(NOTHING);
      }),
      { numRuns: RUNS },
    );
    process.stderr.write(`SEEN ${JSON.stringify(seen)}\n`);
  });
});
