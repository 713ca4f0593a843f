import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

const src = (path: string): string => fileURLToPath(new URL(`./src/${path}`, import.meta.url));

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
    include: ['test/**/*.test.ts'],
    testTimeout: 30_000,
    hookTimeout: 30_000,
    pool: 'forks',
    // Tests mostly wait for other processes, so three files run at once even on two cores.
    maxWorkers: Math.max(3, availableParallelism() - 1),
    execArgv: ['--expose-gc'],
  },
});
