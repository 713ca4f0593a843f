import fc from 'fast-check';
import { test } from 'vitest';
import { OVERFLOWS } from '../../src/watch/overflow.ts';
import { runs } from '../runs.ts';
import { AnywhereWorld, type Deed, type Plan, type Step, type WatchPlan, type Where } from './anywhere-world.ts';

const RUNS = runs(1_500);
const at = fc.nat(13);

const watchArb: fc.Arbitrary<WatchPlan> = fc.record({
  capacity: fc.constantFrom(undefined, 0, 1, 2, 3, 17, 1_000),
  overflow: fc.constantFrom(...OVERFLOWS),
  filter: fc.constantFrom(0, 0, 0, 1, 2, 3),
  prefix: fc.constantFrom(undefined, undefined, undefined, 0, 1, 3),
  topics: fc.constantFrom(undefined, undefined, ['a'], ['b'], ['a', 'b'], ['c'], [], ['x']),
  start: fc.oneof(
    { weight: 3, arbitrary: fc.constant({}) },
    { weight: 1, arbitrary: fc.record({ replay: fc.constantFrom(0, 1, 3, 100) }) },
    { weight: 1, arbitrary: fc.record({ after: at }) },
  ),
  signal: fc.constantFrom(undefined, undefined, 0, 1, 2),
  told: fc.boolean(),
});
const type = fc.constantFrom('ADDED', 'MODIFIED', 'DELETED', 'MODIFIED', 'ADDED', 'ERROR');
const publishes = fc.record({
  do: fc.constantFrom('publish' as const, 'tryPublish' as const),
  key: fc.nat(3),
  type,
  times: fc.constantFrom(1, 1, 2, 5, 20),
});
const reads = fc.record({
  do: fc.constantFrom('next' as const, 'batch' as const, 'tryNext' as const, 'tryBatch' as const, 'look' as const),
  at,
});
const leaves = fc.record({ do: fc.constantFrom('stop' as const, 'return' as const, 'abort' as const), at });
const deedArb: fc.Arbitrary<Deed> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ do: fc.constant('watch' as const), plan: watchArb }) },
  { weight: 6, arbitrary: publishes },
  { weight: 6, arbitrary: reads },
  { weight: 2, arbitrary: leaves },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom('stats' as const, 'throw' as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom('shutdown' as const, 'limited' as const, 'giveUp' as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('advance' as const), ms: fc.constantFrom(1, 10, 100) }) },
);
const stepArb: fc.Arbitrary<Step> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ do: fc.constant('watch' as const), plan: watchArb }) },
  { weight: 8, arbitrary: publishes },
  { weight: 8, arbitrary: reads },
  { weight: 1, arbitrary: deedArb },
  { weight: 4, arbitrary: fc.constant({ do: 'turn' as const }) },
);
const WHERE: readonly Where[] = [
  'filter',
  'filter',
  'filter',
  'gap',
  'gap',
  'key',
  'key',
  'topics',
  'size',
  'error',
  'read',
  'abort',
];

const planArb: fc.Arbitrary<Plan> = fc.record({
  capacity: fc.constantFrom(0, 1, 3, 100),
  incoming: fc.constantFrom(0, 1, 3, 25),
  maxPending: fc.constantFrom(0, 2, 1_000),
  replay: fc.constantFrom(0, 0, 1, 5, 1_000),
  replayBytes: fc.constantFrom(undefined, undefined, 0, 7, 40),
  stalledMs: fc.constantFrom(0, 10),
  hasTopics: fc.boolean(),
  steps: fc.array(stepArb, { minLength: 1, maxLength: 40, size: 'max' }),
  inside: fc.array(fc.record({ where: fc.constantFrom(...WHERE), deed: deedArb }), { maxLength: 20, size: 'max' }),
});

test('whatever user code does, and wherever: each watch gets what is due, losses are counted, and nothing pends after the end', {
  timeout: Math.max(120_000, 100 * RUNS),
}, async () => {
  await fc.assert(
    fc.asyncProperty(planArb, async (plan) => {
      await new AnywhereWorld(plan).run();
    }),
    { numRuns: RUNS },
  );
});
