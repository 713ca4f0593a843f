// All options of a hub, of its clients, and of what they ask for, some of each at a time: whatever is cut, slow, or fails, what a client
// has seen folds to what it may see of the state, or it knows that it does not; and nothing is left when all of it ends.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { runs } from '../runs.ts';
import { isCaught } from './copies.ts';
import { type Plan, plans } from './hub-plans.ts';
import { settle, World } from './hub-world.ts';
import type { Tamper } from './wires.ts';

const RUNS = runs(300, { least: 80 });
/** The suite's own, or more for more runs: a run took 40 ms on a loaded machine. */
const timeout = Math.max(30_000, 400 * RUNS);

/** How clients have ended up, and how many have come back. */
const seen = { whole: 0, lost: 0, lossy: 0, back: 0 };

/** Returns what is wrong after a plan. */
async function faultsOf(plan: Plan, tamper?: Tamper): Promise<unknown> {
  const world = new World(plan, tamper);
  await settle();
  for (const step of plan.steps) await world.perform(step);
  const isRight = await world.calm();
  const wrong = isRight ? undefined : world.report();
  world.check();
  for (const outcome of world.outcomes) seen[outcome]++;
  seen.back += world.reconnects;
  const isOver = !isRight || plan.ends === 'no' || plan.hub.hasSource || (await world.finish());
  const atEnd = isOver ? undefined : world.report();
  const left = await world.end();
  return { wrong, atEnd, faults: world.faults, left };
}

const NOTHING = { wrong: undefined, atEnd: undefined, faults: [], left: { pending: 0, following: 0, held: 0 } };

/** Ways to break the wire, each of which must show. */
const BREAKS: Readonly<Record<string, Tamper>> = {
  'a DELETED that does not come': (text) => text.replace(/"type":"DELETED"/g, '"type":"deleted"'),
  'an object under the name of another': (text) => text.replace(/"name":"c"/g, '"name":"d"'),
  'versions that are ahead': (text) =>
    text.replace(/"resourceVersion":"(e\d+)\.(\d+)"\}/g, (_, epoch, n) => `"resourceVersion":"${epoch}.${+n + 1}"}`),
};

describe('options that meet', { timeout }, () => {
  test('a copy ends as the state, or its client knows that it does not; what is counted adds up; nothing is left', async () => {
    await fc.assert(
      fc.asyncProperty(plans, async (plan) => {
        expect(await faultsOf(plan)).toEqual(NOTHING);
      }),
      { numRuns: RUNS },
    );
    // Some 70, 25 and 5 of 100 clients, each of which comes back more than once.
    expect(seen.whole).toBeGreaterThan(RUNS / 2);
    expect(seen.lost).toBeGreaterThan(RUNS / 20);
    expect(seen.back).toBeGreaterThan(RUNS);
  });

  test.each(Object.entries(BREAKS))('shows %s', async (_what, tamper) => {
    const isWrong = async (plan: Plan): Promise<boolean> => {
      const { wrong, faults } = (await faultsOf(plan, tamper)) as { wrong: unknown; faults: unknown[] };
      return wrong !== undefined || faults.length > 0;
    };
    expect(await isCaught(plans, isWrong)).toBe(true);
  });
});
