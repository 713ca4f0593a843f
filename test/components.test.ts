import { expect, test } from 'vitest';
import { component, isMissing, skippedLine } from './components.ts';

const nowhere = { ...component('Bun'), path: '/nowhere/bun' };

test('a run without a component ends with a line that says how to get it', () => {
  expect(skippedLine(12, [component('Deno'), nowhere])).toBe(
    'skipped: 12 tests; not here: Deno (WATCHMUX_DENO=<its binary>), Bun (WATCHMUX_BUN=<its binary>); bash .ci/run installs everything and runs every test',
  );
  expect(skippedLine(1, [])).toBe('skipped: 1 test; their titles say why; bash .ci/run installs everything and runs every test');
  expect(skippedLine(0, [nowhere])).toBe('skipped: nothing');
});

test('a component that is required is never missing: its tests fail', () => {
  expect(isMissing(nowhere)).toBe(process.env.REQUIRE_COMPONENTS !== '1');
});
