import { expect, test } from 'vitest';
import { allocatedBy } from './allocation.ts';

test('counts what is garbage by now', async () => {
  const bytes = await allocatedBy(async () => {
    for (let i = 0; i < 5_000; i++) new Array(1_000).fill(i);
  });
  expect(bytes / 40e6).toBeGreaterThan(0.8);
  expect(bytes / 40e6).toBeLessThan(1.3);
});
