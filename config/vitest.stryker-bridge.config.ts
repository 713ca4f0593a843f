import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

/** What mutation testing of the bridge runs: the tests without sockets, and those of sources. See vitest.stryker.config.ts. */
export default defineConfig({
  root: fileURLToPath(new URL('..', import.meta.url)),
  test: {
    include: [
      'test/unit/{admission,backlog,bookmarks,client-*,connection-age,connection-slots,folded,forms,heartbeat,hub*,publisher,queued-bytes,resume,semaphore,sent-lines,session,session-*,shared-timer,snapshot*,stall,tally,upgrades}.test.ts',
      'test/property/{client,event-stream,flush,hub-source,resumable}.property.test.ts',
      'test/e2e/hub-source.test.ts',
    ],
    setupFiles: ['./test/fixed-seed.ts'],
    testTimeout: 8_000,
    expect: { poll: { timeout: 8_000, interval: 10 } }, // no sooner than the test itself
    env: { WATCHMUX_RUNS: '500' },
  },
});
