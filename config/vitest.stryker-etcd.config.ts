import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

/** The tests that mutation testing of src/storage/etcd, and of the storage above it, runs: those against a fake etcd. See vitest.stryker.config.ts. */
export default defineConfig({
  root: fileURLToPath(new URL('..', import.meta.url)),
  test: {
    include: ['test/unit/{etcd-*,stored,backed-lists}.test.ts', 'test/property/watch-cursor.property.test.ts'],
    isolate: false, // importing everything again for each file would take most of the time
    fileParallelism: false,
    setupFiles: ['./test/fixed-seed.ts'],
    testTimeout: 8_000,
    expect: { poll: { timeout: 8_000, interval: 10 } }, // no sooner than the test itself
    env: { WATCHMUX_RUNS: '60' },
  },
});
