// The commands, as users start them.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, test } from 'vitest';
import { component, isMissing } from '../test/components.ts';
import type { Report } from './report.ts';
import { WORKLOADS } from './workloads.ts';

const START = fileURLToPath(new URL('start.mjs', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'watchmux-bench-'));
const started: ChildProcess[] = [];

afterAll(() => {
  for (const child of started) if (child.exitCode === null) child.kill('SIGKILL');
  rmSync(folder, { recursive: true });
});

function start(...args: string[]): { status: number | null; stdout: string; stderr: string } {
  return spawnSync(process.execPath, [START, ...args], { encoding: 'utf8', timeout: 110_000 });
}

/** Nobody is left out, however busy the machine is. */
const SMALL = ['--quick', '--warm-ms', '1', '--round-ms', '1', '--rounds', '2', '--too-slow-ms', '60000'];

test('a run prints a table and writes the data for charts', { timeout: 60_000 }, () => {
  const json = join(folder, 'figures.json');
  const wanted = ['fanout', '--watchers', '2', '--burst', '3', '--only', 'bare loop,events.on', '--json', json];
  const { status, stdout, stderr } = start('run', ...wanted, ...SMALL);
  expect(stderr).toContain('[1/1, 0 s] fanout: watchers 2, burst 3');
  expect(status).toBe(0);
  expect(stdout).toMatch(/bare loop +none .*\n +Node events.on +unbounded /);
  const report: Report = JSON.parse(readFileSync(json, 'utf8'));
  expect(report).toMatchObject({ node: process.version, cpu: expect.any(String), cores: expect.any(Number) });
  expect(new Date(report.date).toISOString()).toBe(report.date);
  expect(report.workloads).toHaveLength(1);
  expect(report.workloads[0]).toMatchObject({
    workload: 'fanout',
    shape: { watchers: 2, burst: 3 },
    unit: 'million deliveries/s',
    better: 'higher',
    reference: 'Node events.on',
  });
  for (const { rounds, median, min, max, ratio } of report.workloads[0]?.rows ?? []) {
    expect(rounds).toHaveLength(2);
    expect(min).toBeLessThanOrEqual(median);
    expect(max).toBeGreaterThanOrEqual(median);
    expect(ratio).toBeGreaterThan(0);
  }
});

const ETCD = component('kube-apiserver');

describe.each(WORKLOADS.filter(({ name }) => name !== 'fanout').map(({ name }) => name))('%s', (name) => {
  const isSkipped = name === 'replicas' && isMissing(ETCD);
  test.skipIf(isSkipped)(isSkipped ? `not here: ${ETCD.name}: ${ETCD.remedy}` : 'runs', { timeout: 120_000 }, () =>
    runWorkload(name),
  );
});

function runWorkload(name: string): void {
  const json = join(folder, `${name}.json`);
  const { status, stderr } = start(
    'run',
    name,
    '--watchers',
    '50',
    '--only',
    'for await,drop,ready lines,socket.write,watchmux',
    '--json',
    json,
    ...SMALL,
  );
  expect(status, stderr).toBe(0);
  const report: Report = JSON.parse(readFileSync(json, 'utf8'));
  expect(report.workloads.length).toBeGreaterThan(0);
  for (const { rows, leftOut } of report.workloads) {
    expect(rows.length).toBeGreaterThan(0);
    expect(leftOut).toEqual([]);
    for (const { rounds } of rows) for (const each of rounds) expect(Number.isFinite(each)).toBe(true);
  }
  if (name === 'storm') expectNoLists(report);
}

/** Nobody lists while the window has what was missed; when it has not, everybody does, and is told 410 before. */
function expectNoLists({ workloads }: Report): void {
  const roundsOf = (what: string, of: string): (readonly number[])[] =>
    workloads
      .filter(({ shape, charted }) => shape.what === what && shape.of === of && !charted)
      .flatMap(({ rows }) => rows.map(({ rounds }) => rounds));
  for (const what of ['cut', 'restart']) {
    expect(roundsOf(what, 'lists')).toEqual([[0, 0]]);
    expect(roundsOf(what, '410')).toEqual([[0, 0]]);
  }
  for (const rounds of roundsOf('expired', 'lists')) expect(Math.min(...rounds)).toBeGreaterThanOrEqual(50);
  for (const rounds of roundsOf('expired', '410')) expect(Math.min(...rounds)).toBeGreaterThan(0);
}

test('prints help, and rejects invalid arguments', { timeout: 60_000 }, () => {
  const help = start('run', '--help');
  expect(help.status).toBe(0);
  for (const { name, about } of WORKLOADS) expect(help.stdout).toMatch(new RegExp(`${name} .*${about.slice(0, 20)}`));
  expect(start('check', '--help').status).toBe(0);
  expect(start('run', 'nonsense')).toMatchObject({
    status: 1,
    stderr: expect.stringContaining('there is no workload "nonsense"'),
  });
  expect(start('run', '--watchers', '0')).toMatchObject({ status: 1, stderr: expect.stringContaining('--watchers') });
  expect(start('nonsense').status).toBe(2);
  expect(start('stats').status).toBe(2); // a file of this folder, but not a command
});

test.each([
  ['run --wachers 5', "Unknown option '--wachers'; --help tells more"],
  ['run fanout --watchers', "Option '--watchers <value>' argument missing; --help tells more"],
  ['run fanout --watchers 1,x', '--watchers: expected whole numbers >= 1, got "1,x"'],
  [
    'run workqueue --shape nosuch',
    '--shape: expected a part of one of these: what adds of queued keys, keys 10,000; what get, done and add, keys 10,000; got "nosuch"',
  ],
  ['run fanout --rounds 2,3', '--rounds: expected one whole number >= 1, got "2,3"'],
  ['check --rounds abc', '--rounds: expected whole numbers >= 1, got "abc"'],
  ['check --round-ms 0', '--round-ms: expected whole numbers >= 1, got "0"'],
  ['check --only nosuch', '--only: expected a part of a name in bench/budgets.json, got "nosuch"'],
  ['check stray', "Unexpected argument 'stray'; --help tells more"],
])('%s is rejected in one line, before anything is measured', (line, message) => {
  expect(start(...line.split(' '))).toMatchObject({ status: 1, stdout: '', stderr: `${message}\n` });
});

test('a selection without contenders is rejected, with a list of their names', () => {
  const { status, stdout, stderr } = start('run', 'decode', '--only', 'nosuch');
  expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
  expect(stderr).toMatch(/^--only: expected parts of these names: watchmux for await, .*; got "nosuch"\n$/);
});

function childrenOf(pid: number): number[] {
  const path = `/proc/${pid}/task/${pid}/children`;
  return existsSync(path) ? readFileSync(path, 'utf8').trim().split(' ').filter(Boolean).map(Number) : [];
}

function runs(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

test.skipIf(!existsSync('/proc/self'))('SIGINT also ends the processes of the contenders', { timeout: 60_000 }, async () => {
  const child = spawn(process.execPath, [START, 'run', 'latency', '--only', 'watchmux', '--json', join(folder, 'none.json')], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  started.push(child);
  const pid = child.pid as number;
  const ended = once(child, 'exit');
  await once(child.stderr as NodeJS.ReadableStream, 'data'); // the first line: its contenders are about to start
  let children: number[] = [];
  while (children.length < 3) {
    children = childrenOf(pid).filter((each) => readFileSync(`/proc/${each}/cmdline`, 'utf8').includes('worker.js'));
    await new Promise((resolve) => setImmediate(resolve));
  }
  child.kill('SIGINT');
  expect((await ended)[0]).toBe(130);
  while (children.some(runs)) await new Promise((resolve) => setImmediate(resolve));
  expect(existsSync(fileURLToPath(new URL(`.build/${pid}`, import.meta.url)))).toBe(false);
});
