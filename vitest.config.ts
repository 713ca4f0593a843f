import { readdirSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));
const src = (path: string): string => here(`src/${path}`);

/** Of a test, a hook, and a wait for a condition. */
const LIMIT_MS = 30_000;

/** These measure memory or time: nothing runs beside them. */
const ALONE = 'test/measured/*.test.ts';

/** What changes the process for whatever runs in it afterwards. */
const CHANGES_PROCESS = /\bvi\.(mock|doMock|resetModules|useFakeTimers|stubGlobal|stubEnv|spyOn\(globalThis)\b/;

/** These need a process of their own: they start other programs, or change what is the process's. */
const OWN_PROCESS = [
  'test/{e2e,peers}/**/*.test.ts',
  ...readdirSync(here('test/unit'))
    .filter((file) => file.endsWith('.test.ts') && CHANGES_PROCESS.test(readFileSync(here(`test/unit/${file}`), 'utf8')))
    .map((file) => `test/unit/${file}`),
];

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
      { extends: true, test: { name: 'own process', include: OWN_PROCESS } },
      // Loading the sources anew for each of these files would take as long as their tests.
      {
        extends: true,
        test: { name: 'shared', include: ['test/**/*.test.ts'], exclude: [...OWN_PROCESS, ALONE], isolate: false },
      },
      { extends: true, test: { name: 'alone', include: [ALONE], maxWorkers: 1, sequence: { groupOrder: 1 } } },
    ],
  },
});
