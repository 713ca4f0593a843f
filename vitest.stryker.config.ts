import { defineConfig } from 'vitest/config';

/**
 * What mutation testing runs: the tests that hold src/broadcast and src/decode, and nothing slower. Stryker's runner works in
 * worker threads, which take no --expose-gc: tests of garbage collection skip themselves there, and say so.
 */
export default defineConfig({
  test: {
    include: [
      'test/unit/{broadcaster,broadcaster-*,coalesce,cursor,filter-reentrancy,gate,handle,kept,key,laggards,largest,linked-set,log,mux,overflow,reader,user-code,user-code-*}.test.ts',
      'test/unit/{filter,transitions}.test.ts',
      'test/unit/{codec,decoder,framing,stream-watcher}.test.ts',
      'test/property/{broadcaster,filter,framing,transitions}.property.test.ts',
    ],
    setupFiles: ['./test/fixed-seed.ts'],
    testTimeout: 5_000,
    env: { WATCHMUX_RUNS: '60' },
  },
});
