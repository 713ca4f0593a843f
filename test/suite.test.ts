// What holds for all tests: see "How the tests are run" in CONTRIBUTING.md.
import { tmpdir } from 'node:os';
import { basename } from 'node:path';
import { describe, expect, test } from 'vitest';
import { MORE_PEERS } from './peers/binary.mjs';
import { runs } from './runs.ts';
import { FILES, readText } from './tracked.ts';

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

  test('waits in unit tests have no limit of their own', () => {
    expect(found(/vi\.wait(?:For|Until)\(.*/g, (path) => path.startsWith('test/peers/'))).toEqual([]);
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
