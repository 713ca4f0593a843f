import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

/**
 * The tests that mutation testing runs: those of src/broadcast and src/decode, without slow ones. Stryker uses worker threads,
 * which do not accept --expose-gc, so tests of garbage collection skip themselves and say so.
 */
export default defineConfig({
  root: fileURLToPath(new URL('..', import.meta.url)),
  test: {
    include: [
      'test/unit/{arguments,broadcaster,broadcaster-*,coalesce,cursor,filter-reentrancy,gate,handle,huge-capacity,kept,key,laggards,largest,linked-set,log,mux,overflow,prefix,reader,replay,replay-*,topics,topics-*,unlimited,user-code,user-code-*,window}.test.ts',
      'test/unit/{filter,options,queued-bytes,transitions}.test.ts',
      'test/unit/{codec,decoder,decoder-broken,framing,parts,stream-watcher,upstream-frames}.test.ts',
      'test/property/{broadcaster,filter,framing,queue-size,topics,transitions}.property.test.ts',
    ],
    setupFiles: ['./test/fixed-seed.ts'],
    testTimeout: 5_000,
    expect: { poll: { timeout: 5_000, interval: 10 } }, // no sooner than the test itself
    env: { WATCHMUX_RUNS: '60' },
  },
});
