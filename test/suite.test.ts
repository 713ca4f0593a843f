// What holds for all tests: see "How the tests are run" in CONTRIBUTING.md.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import manifest from '../package.json' with { type: 'json' };
import { MORE_PEERS } from './peers/binary.mjs';
import { runs } from './runs.ts';
import { FILES, ROOT, readText } from './tracked.ts';

const tests = FILES.filter((path) => /^test\/.*\.ts$/.test(path) && path !== 'test/suite.test.ts');

/** Places in the tests that match, except in these files. */
function found(pattern: RegExp, except: (path: string) => boolean = () => false): string[] {
  return tests
    .filter((path) => !except(path))
    .flatMap((path) => Array.from(readText(path).matchAll(pattern), ([text]) => `${path}: ${text}`));
}

describe('all tests', () => {
  test('there are some', () => {
    expect(tests.length).toBeGreaterThan(400);
    expect(found(/fc\.assert\(/g).length).toBeGreaterThan(50);
  });

  test('a property runs as often as WATCHMUX_RUNS says', () => {
    // A search for a counter-example ends when it has one.
    expect(found(/numRuns: [\d_]+.*/g)).toEqual(['test/property/copies.ts: numRuns: 15_000, endOnFailure: true, seed: 1 });']);
    expect(found(/env\.WATCHMUX_RUNS/g, (path) => path === 'test/runs.ts')).toEqual([]);
  });

  test('a run of .ci/run can be repeated: what is random in it comes from WATCHMUX_SEED', () => {
    expect(readText('.ci/run')).toMatch(/^export WATCHMUX_SEED$/m);
    const seed = process.env.WATCHMUX_SEED;
    expect(fc.readConfigureGlobal()?.seed).toBe(seed === undefined ? undefined : Number(seed));
  });

  test('what measures memory or time runs alone', () => {
    const measures = /process\.memoryUsage|VmRSS|VmHWM|cpuUsage|expect\(.*performance\.now\(\)/g;
    expect(found(measures, (path) => path.startsWith('test/measured/'))).toEqual([]);
    expect(found(measures).length).toBeGreaterThan(3);
  });

  test('temporary folders are in that of the run, which goes with it', () => {
    expect(basename(tmpdir())).toMatch(/^watchmux-run-/);
  });

  test('files that share a process have no hooks in what they import: it is loaded once', () => {
    expect(found(/^(?:before|after)(?:Each|All)\(/gm, (path) => path.endsWith('.test.ts'))).toEqual([]);
  });

  test('what .ci/run runs needs no program that only .ci/full builds', () => {
    const left = /--exclude 'test\/peers\/\{([^}]*)\}/.exec(readText('.ci/run'))?.[1]?.split(',') ?? [];
    const isRun = (path: string): boolean =>
      /^test\/peers\/[^/]*\.test\.ts$/.test(path) && !left.includes(basename(path, '.test.ts'));
    const more = new RegExp(`'(?:${MORE_PEERS.map(({ name }) => name).join('|')})'`, 'g');
    expect(tests.filter(isRun).length).toBeGreaterThan(30);
    expect(found(more, (path) => !isRun(path))).toEqual([]);
    expect(found(more, isRun).length).toBeGreaterThan(5);
  });

  test('npm test prints a line for each file, whatever its tests print, and at its end what has run and what was skipped', () => {
    expect(manifest.scripts.test).toBe('node config/build.mjs && vitest run');
    const files = ['test/pages.test.ts', 'test/unit/cluster.test.ts']; // many tests, and a program that prints
    const env = Object.fromEntries(
      Object.entries(process.env).filter(([name]) => !/^(?:VITEST|TEST$|NODE_ENV|FORCE_COLOR)/.test(name)),
    );
    const { stdout, stderr } = spawnSync(process.execPath, ['node_modules/vitest/vitest.mjs', 'run', ...files], {
      cwd: ROOT,
      env: { ...env, NO_COLOR: '1' },
      encoding: 'utf8',
    });
    const lines = stdout.split('\n').filter((line) => line.trim() !== '');
    const firsts = lines.map((line) => /\btest\/\S+/.exec(line)?.[0] ?? line.trim().split(' ', 1)[0]);
    expect([...firsts].sort()).toEqual(['Duration', 'RUN', 'Start', 'Test', 'Tests', 'skipped:', ...files]);
    expect(firsts.at(-1)).toBe('skipped:');
    expect(stderr).toBe('');
  }, 90_000);

  test('waits in unit tests have no limit of their own', () => {
    expect(found(/vi\.wait(?:For|Until)\(.*/g, (path) => path.startsWith('test/peers/'))).toEqual([]);
  });
});

describe('the scripts of CI', () => {
  const [steps, run, full] = ['.ci/steps.sh', '.ci/run', '.ci/full'].map((path) => readText(path).replace(/^ *#.*$/gm, ''));
  const scripts: readonly (readonly [string, string])[] = [
    ['.ci/run', `${steps}${run}`],
    ['.ci/full', `${steps}${full}`],
  ];

  test.each(scripts)('%s installs, builds, checks, tests and packs, and runs what README.md says', (_, script) => {
    const checks = [
      'npm ci',
      'npm run build',
      'npm run lint',
      'npm run typecheck',
      'npm run size',
      'npm run pack:check',
      'npm test',
    ];
    const blocks = Array.from(readText('README.md').matchAll(/^```sh\n(.*?)^```$/gms), ([, block = '']) => block).join('');
    const readme = blocks.match(/\bnpm [a-z]+(?: [a-z:]+)?/g) ?? [];
    expect(readme).toEqual(['npm ci', 'npm run demo']);
    for (const command of [...checks, ...readme]) expect(script).toMatch(new RegExp(`^.*\\b${command}\\b`, 'm'));
    // What is defined in steps.sh is also called.
    for (const name of ['check_tools', 'start_installing', 'build_package', 'use_package', 'await_installed'])
      expect(script).toMatch(new RegExp(`^${name}(?: |$)`, 'm'));
  });

  test('.ci/full leaves nothing out on one Node, and has the rest', () => {
    expect(run).toMatch(/^export WATCHMUX_RUNS=300$/m);
    expect(`${steps}${full}`).not.toMatch(/WATCHMUX_RUNS/);
    expect(full).toMatch(/^tested suite npm test --$/m);
    expect(full).toMatch(/^start_installing all$/m);
    for (const command of [
      'node config/typecheck.mjs 6',
      'npm run docs',
      'tested stress npm run stress --',
      'npm run bench:check',
    ])
      expect(full).toMatch(new RegExp(`^${command}$`, 'm'));
    expect(full?.match(/^ *suite_on "\$(?:version|newest_node)"/gm)).toHaveLength(2);
  });

  test.each(scripts)('what %s leaves out is there', (_, script) => {
    const named = Array.from(script.matchAll(/--exclude '([^']*)'/g), ([, glob = '']) => {
      const [, before = '', list, after = ''] = /^([^{]*)(?:\{([^}]*)\})?(.*)$/.exec(glob) ?? [];
      return (list ?? '').split(',').map((each) => `${before}${each}${after}`.replace('**', ''));
    }).flat();
    expect(named.length).toBeGreaterThan(20);
    expect(named.filter((path) => !FILES.some((file) => file === path || (path.endsWith('/') && file.startsWith(path))))).toEqual(
      [],
    );
  });

  test('the table has a line for each step, its tests, and the sum; a report that was not written counts nothing', () => {
    const folder = mkdtempSync(join(tmpdir(), 'table-'));
    const report = { numPassedTests: 4, numFailedTests: 1, numPendingTests: 2, numTodoTests: 1, testResults: [] };
    const broken = [{ status: 'failed', assertionResults: [] }];
    writeFileSync(join(folder, 'suite.json'), JSON.stringify(report));
    writeFileSync(join(folder, 'stress.json'), JSON.stringify({ ...report, testResults: broken }));
    writeFileSync(join(folder, 'bench.json'), '{"numPassed');
    const input = '4\tbuild\t\n90\tthe suite\tsuite\n700\tunder load\tstress\n3\tbench\tbench\n1\tnone\tnone\n';
    const { stdout, status } = spawnSync(process.execPath, ['.ci/table.mjs', folder, '798'], {
      cwd: ROOT,
      input,
      encoding: 'utf8',
    });
    expect([
      status,
      stdout
        .trim()
        .split('\n')
        .map((line) => line.trim().replace(/ +/g, ' ')),
    ]).toEqual([
      0,
      [
        ...['seconds tests step', '4 build', '90 5 the suite', '700 6 under load', '3 bench', '1 none', '798 11 altogether'],
        ...['', 'tests: 8 passed, 3 failed, 6 skipped'],
      ],
    ]);
  });
});

describe('the number of runs', () => {
  const given = process.env.WATCHMUX_RUNS;
  /** With WATCHMUX_RUNS at a value. */
  function at<T>(value: string | undefined, code: () => T): T {
    if (value === undefined) delete process.env.WATCHMUX_RUNS;
    else process.env.WATCHMUX_RUNS = value;
    try {
      return code();
    } finally {
      if (given === undefined) delete process.env.WATCHMUX_RUNS;
      else process.env.WATCHMUX_RUNS = given;
    }
  }

  test('is in proportion, and never below the least', () => {
    expect(at(undefined, () => runs(700))).toBe(700);
    expect(at('300', () => [runs(1_500), runs(12), runs(2)])).toEqual([300, 3, 1]);
    expect(at('15000', () => runs(60))).toBe(600);
    expect(at('300', () => runs(150, { least: 100 }))).toBe(100);
    expect(at('15000', () => runs(150, { least: 100 }))).toBe(1_500);
  });

  test.each(['', '0', '-1', 'many'])('of %j is refused', (value) => {
    expect(() => at(value, () => runs(1))).toThrow(`WATCHMUX_RUNS is ${value}, and should be a number above 0`);
  });
});
