import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import type { FileEvent } from '../../src/cli/demo/directory.ts';
import { DirectoryWatch } from '../../src/cli/demo/directory.ts';
import type { Run } from './cli.ts';
import { CLI, hear, killAll, run, until } from './cli.ts';

const made: string[] = [];
const directory = async (): Promise<string> => {
  const path = await mkdtemp(join(tmpdir(), 'watchmux-test-'));
  made.push(path);
  return path;
};

afterAll(async () => {
  killAll();
  for (const path of made) await rm(path, { recursive: true, force: true });
});

/** The sum at the end, which must add up for both. */
function sums({ out }: Run): { accepted: number; dropped: number } {
  const rows = Array.from(out().matchAll(/^(?:fast|slow) +(\d+) +(\d+) +(\d+) +(\d+)$/gm), (row) => row.slice(1).map(Number));
  expect(rows).toHaveLength(2);
  for (const [delivered, dropped, queued, accepted] of rows as [number, number, number, number][]) {
    expect(delivered + dropped + queued).toBe(accepted);
  }
  expect(out()).toContain('add up');
  return { accepted: rows[1]?.[3] ?? 0, dropped: rows[1]?.[1] ?? 0 };
}

test('shows real changes side by side, tells the slow reader what it lost, and ends by itself', async () => {
  // It does as much in one second. The others are for a machine that does not let it: see what is expected below.
  const demo = run('demo', '--seconds', '4');
  expect(await demo.exit).toBe(0);
  const { accepted, dropped } = sums(demo);
  expect(accepted).toBeGreaterThan(20);
  expect(dropped).toBeGreaterThan(0);
  for (const mark of ['+', '~', '-']) expect(demo.out()).toContain(`${mark} demo-apple`);
  expect(demo.out()).not.toContain('.log');
  // Gaps are told as they are met; what was lost last may still be ahead of the reader.
  const told = Array.from(demo.out().matchAll(/! lost (\d+)/g), ([, missed]) => Number(missed)).reduce(
    (one, other) => one + other,
    0,
  );
  expect(told).toBeGreaterThan(0);
  expect(told).toBeLessThanOrEqual(dropped);
  expect(demo.err()).toBe('');
  const [, path] = /files in (\S+),/.exec(demo.out()) as unknown as [string, string];
  await expect(readdir(path)).rejects.toMatchObject({ code: 'ENOENT' });
});

test.runIf(existsSync('/usr/bin/script'))('on a terminal, both queues are in view, and fill up', async () => {
  const command = `stty cols 80; ${process.execPath} ${CLI} demo --seconds 2`;
  const terminal = spawn('/usr/bin/script', ['-qec', command, '/dev/null']);
  const { out } = hear(terminal);
  const code = await new Promise((resolve) => terminal.on('close', resolve));
  expect(code).toBe(0);
  expect(out()).toContain('queue [........] 0 of 100           queue [........] 0 of 4, lost 0');
  expect(out()).toMatch(/queue \[########\] 4 of 4, lost [1-9]/);
  // Drawn again after every line, and gone at the end.
  expect(out().split('watchmux demo: ').length).toBeGreaterThan(30);
  expect(out().slice(out().lastIndexOf('[J'))).not.toContain('watchmux demo');
  const lines = out()
    .replaceAll('\u001b', '')
    .replace(/\[[\d;]*[AJm]/g, '')
    .split(/[\r\n]+/);
  expect(lines.filter((line) => line.length > 80)).toEqual([]);
});

test('its title and its heads fit 80 columns', async () => {
  const demo = run('demo', '--seconds', '0.1');
  expect(await demo.exit).toBe(0);
  expect(demo.out()).toMatch(/^watchmux demo: /);
  expect(
    demo
      .out()
      .split('\n')
      .filter((line) => line.length > 80),
  ).toEqual([]);
});

test("ends on Ctrl-C, with its sum; leaves the user's directory as it was", async () => {
  const path = await directory();
  await writeFile(join(path, 'demo-apple.txt'), 'mine');
  const demo = run('demo', path, '--seconds', '600');
  await until(() => demo.out().includes('demo-pear'));
  await writeFile(join(path, 'yours.txt'), 'yours');
  await until(() => demo.out().includes('+ yours.txt'));
  demo.child.kill('SIGINT');
  expect(await demo.exit).toBe(0);
  sums(demo);
  expect((await readdir(path)).sort()).toEqual(['demo-apple.txt', 'yours.txt']);
});

test('a missing directory is one line and exit code 2; one that is removed later is no crash', async () => {
  const path = await directory();
  const refused = run('demo', join(path, 'missing'));
  expect(await refused.exit).toBe(2);
  expect(refused.err()).toMatch(/^watchmux demo: cannot watch [^\n]+\n$/);
  const demo = run('demo', path, '--seconds', '3');
  await until(() => demo.out().includes('demo-apple'));
  await rm(path, { recursive: true, force: true, maxRetries: 10 }); // it writes meanwhile
  expect(await demo.exit).toBe(0);
  sums(demo);
});

test('a directory watch reports the final state of a file', async () => {
  const path = await directory();
  await writeFile(join(path, 'old'), '1');
  const told: FileEvent[] = [];
  const watch = new DirectoryWatch(path, async (event) => void told.push(event));
  await watch.open();
  await writeFile(join(path, 'new'), '22');
  await until(() => told.some(({ type }) => type === 'ADDED'));
  await writeFile(join(path, 'old'), '333');
  await rm(join(path, 'new'));
  await watch.close();
  const state = new Map([['old', 1]]);
  for (const { type, object } of told) {
    if (!('name' in object)) continue;
    expect(state.has(object.name)).toBe(type !== 'ADDED');
    if (type === 'DELETED') state.delete(object.name);
    else state.set(object.name, object.bytes);
  }
  expect(state).toEqual(new Map([['old', 3]]));
});

test('a file that changes while a directory watch opens was there before: it is not ADDED', async () => {
  const path = await directory();
  const names = Array.from({ length: 500 }, (_, i) => `old-${i}`);
  for (const name of names) await writeFile(join(path, name), '1');
  const told: string[] = [];
  const watch = new DirectoryWatch(path, async ({ type }) => void told.push(type));
  const opened = watch.open();
  for (const name of names.slice(-50)) await writeFile(join(path, name), '333');
  await opened;
  await watch.close();
  expect(told).not.toContain('ADDED');
});
