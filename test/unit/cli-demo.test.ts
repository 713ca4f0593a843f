// What `watchmux demo` says where it can change nothing. test/e2e/demo.test.ts runs it.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, onTestFinished, test, vi } from 'vitest';
import { DemoWorker, demo } from '../../src/cli/demo/demo.ts';
import { Output } from '../../src/cli/output.ts';
import { UsageError } from '../../src/cli/usage.ts';

const directory = mkdtempSync(join(tmpdir(), 'watchmux-demo-test-'));
afterAll(() => rmSync(directory, { recursive: true }));

test('no place for a temporary directory is one line, not a stack', async () => {
  vi.stubEnv('TMPDIR', join(directory, 'gone'));
  onTestFinished(() => void vi.unstubAllEnvs());
  const output = new Output({ write: () => true, on: () => undefined, writableLength: 0 });
  const failed = demo({ command: 'demo', directory: undefined, durationMs: 0 }, output);
  await expect(failed).rejects.toThrow(UsageError);
  await expect(failed).rejects.toThrow(/^watchmux demo: cannot make a temporary directory: ENOENT.*; name another one$/);
});

test('files that cannot be written are told, once', async () => {
  const file = join(directory, 'file');
  writeFileSync(file, '');
  const stop = new AbortController();
  const told: string[] = [];
  // A file is no directory, not even for root.
  const worker = new DemoWorker(file);
  const working = worker.work({ pauseMs: 0, signal: stop.signal, refused: ({ message }) => void told.push(message) });
  await expect.poll(() => worker.turns).toBeGreaterThan(10);
  stop.abort();
  await working;
  expect(told).toEqual([expect.stringMatching(/^ENOTDIR: /)]);
});
