import { readdirSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path/posix';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import entryPoints from './config/entry-points.json' with { type: 'json' };
import { PATIENCE_MS } from './test/eventually.ts';

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

/** Of a test, and of a hook. */
const LIMIT_MS = 30_000;

/** These measure memory or time: nothing runs beside them. */
const ALONE = 'test/measured/**/*.test.ts';

/** What changes the process for whatever runs in it afterwards, or would see what others leave in it: lines, questions to a clock. */
const CHANGES_PROCESS =
  /\bvi\.(mock|doMock|resetModules|useFakeTimers|stubGlobal|stubEnv|spyOn\((globalThis|console|process|performance|crypto|[A-Z]\w*))\b/;

const testsIn = (...folders: string[]): string[] =>
  folders
    .flatMap((folder) => readdirSync(here(join('test', folder))).map((file) => join('test', folder, file)))
    .filter((file) => file.endsWith('.test.ts'));

const OWN_PROCESS = testsIn('e2e', 'peers', 'unit').filter((file) => CHANGES_PROCESS.test(readFileSync(here(file), 'utf8')));

/** These start other programs, and take longest: they run before the rest. */
const PROGRAMS = testsIn('e2e', 'peers').filter((file) => !OWN_PROCESS.includes(file));

/**
 * The rest. All of them are named one by one, because what `--exclude` says on the command line does not reach a project with an
 * `exclude` of its own.
 */
const APART = ['e2e', 'peers', 'measured'];
const folders = readdirSync(here('test'), { withFileTypes: true }).filter(
  (each) => each.isDirectory() && !APART.includes(each.name),
);
const SHARED = testsIn('', ...folders.map(({ name }) => name)).filter((file) => !OWN_PROCESS.includes(file));

// Every Node that a test starts would parse all of its certificates, which takes a fifth of the time of a short command.
delete process.env.NODE_EXTRA_CA_CERTS;

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
    setupFiles: process.env.WATCHMUX_SEED === undefined ? [] : ['./test/fixed-seed.ts'],
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
      // Vitest takes the projects in the order of their names.
      { extends: true, test: { name: 'own process', include: OWN_PROCESS } },
      // Loading the sources anew for each of these files would take as long as their tests.
      { extends: true, test: { name: 'programs', include: PROGRAMS, isolate: false } },
      { extends: true, test: { name: 'shared', include: SHARED, isolate: false } },
      { extends: true, test: { name: 'alone', include: [ALONE], maxWorkers: 1, sequence: { groupOrder: 1 } } },
    ],
  },
});
