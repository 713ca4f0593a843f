import { readdirSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import entryPoints from './config/entry-points.json' with { type: 'json' };
import { PATIENCE_MS } from './test/eventually.ts';

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

/** Of a test, and of a hook. */
const LIMIT_MS = 30_000;

/** These measure memory or time: nothing runs beside them. */
const ALONE = 'test/measured/**/*.test.ts';

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
    alias: Object.entries(entryPoints).map(([name, source]) => ({
      find: new RegExp(`^watchmux${name === 'index' ? '' : `/${name}`}$`),
      replacement: here(source),
    })),
  },
  test: {
    globalSetup: './test/temporary.ts',
    reporters: ['default', './config/skipped-reporter.ts'],
    // A line for each file: how long each test took is nobody's question until one fails.
    slowTestThreshold: 20 * LIMIT_MS,
    silent: 'passed-only',
    testTimeout: LIMIT_MS,
    hookTimeout: LIMIT_MS,
    // As in test/eventually.ts.
    expect: { poll: { timeout: PATIENCE_MS, interval: 10 } },
    pool: 'forks',
    // Tests mostly wait for other processes, so four files run at once even on two cores.
    maxWorkers: Math.max(4, availableParallelism()),
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
