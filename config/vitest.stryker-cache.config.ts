import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

/** The tests that mutation testing of src/selectors, src/cache and src/workqueue runs. See vitest.stryker.config.ts. */
export default defineConfig({
  root: fileURLToPath(new URL('..', import.meta.url)),
  test: {
    include: [
      'test/unit/{field-selector,label-selector}.test.ts',
      'test/unit/{cache-*,delta-*,indexer,list-reader,pager,real-fifo,store,http-*}.test.ts',
      'test/unit/{from-hub,informer*,live-store,reflector*,retry-watcher*,until*}.test.ts',
      'test/unit/{work-queue,work-queue-*,rate-limiters,controller*,election,leader-elector}.test.ts',
      'test/unit/{complaints,fake-list-watcher,many-listeners,resource,stored-event}.test.ts',
      'test/contract/list-watcher.contract.test.ts',
      'test/property/{delta-queue,guarantees-cache,indexer,informer,reflector,retry-watcher,selectors,work-queue}.property.test.ts',
      'test/property/{controller*,leader-elector,list-reader,rate-limiters,reparse}.property.test.ts',
    ],
    isolate: false, // importing everything again for each file would take most of the time
    fileParallelism: false,
    setupFiles: ['./test/fixed-seed.ts'],
    testTimeout: 8_000,
    expect: { poll: { timeout: 8_000, interval: 10 } }, // no sooner than the test itself
    env: { WATCHMUX_RUNS: '60' },
  },
});
