import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    root: import.meta.dirname,
    include: ['*.test.ts'],
    testTimeout: 30_000,
    pool: 'forks',
    // These look at answers, not at speed.
    maxWorkers: 2,
    execArgv: ['--expose-gc'],
  },
});
