import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

/** The tests that mutation testing of the bridge runs: those of its files without sockets. See vitest.stryker.config.ts. */
export default defineConfig({
  root: fileURLToPath(new URL('..', import.meta.url)),
  test: {
    include: [
      'test/unit/{admission,backlog,bookmarks,client-*,connection-age,connection-slots,folded,forms,heartbeat,hub*,publisher,queued-bytes,resume,semaphore,sent-lines,session,session-*,shared-timer,snapshot*,stall,tally,upgrades}.test.ts',
      'test/property/{client,event-stream,flush,resumable}.property.test.ts',
    ],
    setupFiles: ['./test/fixed-seed.ts'],
    testTimeout: 8_000,
    env: { WATCHMUX_RUNS: '500' },
  },
});
