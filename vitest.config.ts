import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

const src = (path: string): string => fileURLToPath(new URL(`./src/${path}`, import.meta.url));

/** Of a test, a hook, and a wait for a condition. */
const LIMIT_MS = 30_000;

const PROCESSES = ['test/e2e/**/*.test.ts', 'test/peers/**/*.test.ts'];
const OWN_PROCESS: readonly string[] = [];
const ALONE = ['test/e2e/stopped.test.ts', 'test/unit/apiserver-attack-memory.test.ts'];

export default defineConfig({
  resolve: {
    // Tests import the entry points by the names that users write.
    alias: [
      { find: /^watchmux$/, replacement: src('index.ts') },
      { find: /^watchmux\/rxjs$/, replacement: src('adapters/rxjs.ts') },
      { find: /^watchmux\/node-stream$/, replacement: src('adapters/node-stream.ts') },
      { find: /^watchmux\/http$/, replacement: src('bridge/http.ts') },
      { find: /^watchmux\/ws$/, replacement: src('bridge/websocket.ts') },
      { find: /^watchmux\/fetch$/, replacement: src('bridge/fetch.ts') },
      { find: /^watchmux\/client$/, replacement: src('bridge/client.ts') },
      { find: /^watchmux\/workqueue$/, replacement: src('workqueue/index.ts') },
      { find: /^watchmux\/cache$/, replacement: src('cache/index.ts') },
      { find: /^watchmux\/storage$/, replacement: src('storage/index.ts') },
      { find: /^watchmux\/etcd$/, replacement: src('storage/etcd/index.ts') },
      { find: /^watchmux\/nats$/, replacement: src('nats/index.ts') },
      { find: /^watchmux\/kubernetes$/, replacement: src('kubernetes/index.ts') },
      { find: /^watchmux\/apiserver$/, replacement: src('apiserver/index.ts') },
      { find: /^watchmux\/testing$/, replacement: src('testing/index.ts') },
    ],
  },
  test: {
    reporters: ['default', './config/skipped-reporter.ts'],
    // A line for each file: how long each test took is nobody's question until one fails.
    slowTestThreshold: LIMIT_MS,
    silent: 'passed-only',
    testTimeout: LIMIT_MS,
    hookTimeout: LIMIT_MS,
    pool: 'forks',
    // Tests mostly wait for other processes, so three files run at once even on two cores.
    maxWorkers: Math.max(3, availableParallelism() - 1),
    execArgv: ['--expose-gc'],
    projects: [
      // These start other programs, or listen to what concerns the whole process.
      { extends: true, test: { name: 'processes', include: [...PROCESSES, ...OWN_PROCESS], exclude: ALONE } },
      // Loading the sources for each of these files anew would take as long as the tests.
      {
        extends: true,
        test: { name: 'shared', include: ['test/**/*.test.ts'], exclude: [...PROCESSES, ...OWN_PROCESS, ...ALONE], isolate: false },
      },
      // These measure memory or time, so nothing runs beside them.
      { extends: true, test: { name: 'alone', include: ALONE, maxWorkers: 1, sequence: { groupOrder: 1 } } },
    ],
  },
});
