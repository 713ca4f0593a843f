import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

/** What mutation testing of the history checkers runs: the histories that they judge. See vitest.stryker.config.ts. */
export default defineConfig({
  root: fileURLToPath(new URL('..', import.meta.url)),
  test: {
    include: ['test/history/*.test.ts', 'test/property/guarantees.property.test.ts'],
    setupFiles: ['./test/fixed-seed.ts'],
    testTimeout: 8_000,
    expect: { poll: { timeout: 8_000, interval: 10 } }, // no sooner than the test itself
    env: { WATCHMUX_RUNS: '60' },
  },
});
