import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

/**
 * The tests that mutation testing of the storages runs: those of the one in memory, of its journal and of the cacher.
 * See vitest.stryker.config.ts.
 */
export default defineConfig({
  root: fileURLToPath(new URL('..', import.meta.url)),
  test: {
    include: [
      'test/unit/{memory-storage,memory-storage-*,storage-parts,storage-semantics,informer-storage,cacher-*,journal}.test.ts',
      'test/contract/{cacher.contract,storage.contract,storage-broken}.test.ts',
      'test/property/{cacher,cacher-linearizable,cacher-sorted-map,memory-storage,storage-watchers}.property.test.ts',
    ],
    isolate: false, // importing everything again for each file would take most of the time
    fileParallelism: false,
    setupFiles: ['./test/fixed-seed.ts'],
    testTimeout: 20_000, // the tests of the journal wait for a real disk
    expect: { poll: { timeout: 20_000, interval: 10 } }, // no sooner than the test itself
    env: { WATCHMUX_RUNS: '60' },
  },
});
