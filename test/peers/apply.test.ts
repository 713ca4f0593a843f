// Server-side apply against Kubernetes' own: random stories of an object, told by both, must be the same, step by step: what is stored,
// who owns what, which conflicts there are, and why something is refused.
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { component, isMissing } from '../components.ts';
import { runs } from '../runs.ts';
import { RARE } from './apply-rare.ts';
import { Choices, type Outcome, ourOutcome, type Story, storyOf, tell } from './apply-stories.ts';

const oracle = component('structured-merge');
const missing = isMissing(oracle);
/** WATCHMUX_RUNS=15000 tells 20,000 stories: a quarter of an hour. */
const STORIES = runs(2_000);
const LIMIT_MS = 3_600_000;

let child: ChildProcessWithoutNullStreams;
let answers: AsyncIterator<string>;
beforeAll(() => {
  if (missing) return;
  child = spawn(oracle.path);
  child.stderr.resume();
  answers = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
});
afterAll(() => void child?.stdin.end());

async function theirs(story: Story): Promise<readonly Outcome[]> {
  child.stdin.write(`${JSON.stringify(story)}\n`);
  const { value } = (await answers.next()) as { value: string };
  const { outcomes, broken } = JSON.parse(value) as { outcomes?: readonly Outcome[]; broken?: string };
  if (!outcomes) throw new Error(`${broken}: ${JSON.stringify(story)}`);
  // A client's mistake, of which upstream says that it is the server's own.
  return outcomes.map((each) => (each.code === 500 ? { ...each, code: 400 } : each));
}

/**
 * Go's maps have no order, so which of several mistakes is told first, and in which order members are
 * shown, is chance there; and a version to which an object cannot be converted is seen here a step later. */
const IS_CHANCE = /\n|field not declared|failed to prune|failed to convert new object: |map\[.* /;

/** An outcome without what is chance. */
function certain({ object, code, error, conflicts }: Outcome): object {
  return {
    object: object ?? undefined,
    code,
    error: error === undefined || IS_CHANCE.test(error) ? undefined : error,
    conflicts: conflicts?.map(({ message, field }) => `${message}: ${field}`).sort(),
  };
}

async function compare(story: Story): Promise<void> {
  const [ours, upstream] = [tell(story, ourOutcome), await theirs(story)];
  for (const [at, outcome] of ours.entries()) {
    expect(certain(outcome), `step ${at} of ${JSON.stringify(story)}`).toEqual(certain(upstream[at] as Outcome));
  }
}

describe.skipIf(missing)("server-side apply is Kubernetes'", () => {
  it.each(RARE)('with %s', (_, story) => compare(story));

  it('in random stories', { timeout: LIMIT_MS }, async () => {
    const numbers = fc.array(fc.nat(65_535), { minLength: 200, maxLength: 1_500, size: 'max' });
    const told = fc.asyncProperty(numbers, (each) => compare(storyOf(new Choices(each))));
    await fc.assert(told, { numRuns: STORIES });
  });
});
