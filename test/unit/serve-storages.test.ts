// What `watchmux serve` says of its storage: how far a large file has been read, and how its end is told.
import { mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, test, vi } from 'vitest';
import type { KubernetesObject } from '../../src/cache/index.ts';
import type { LogFields, ServeLog } from '../../src/cli/serve/log.ts';
import type { ServeCommand } from '../../src/cli/serve/serve-args.ts';
import { closeStorage, openStorage } from '../../src/cli/serve/storages.ts';
import { WatchError } from '../../src/index.ts';
import { writeSnapshot } from '../../src/storage/journal/files.ts';
import { tooManyRequests, unavailable } from '../../src/storage/statuses.ts';
import { component, isMissing } from '../components.ts';

afterEach(() => vi.restoreAllMocks());

class Lines {
  readonly all: [string, LogFields][] = [];
  readonly log = {
    info: (event: string, fields: LogFields) => this.all.push([event, fields]),
    warn: (event: string, fields: LogFields) => this.all.push([event, fields]),
    error: (event: string, fields: LogFields) => this.all.push([event, fields]),
  } as unknown as ServeLog;
}

test('a file that takes long says how far it is, every two seconds', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'watchmux-serve-'));
  const file = join(folder, 'data');
  const json = new TextEncoder().encode(JSON.stringify({ metadata: { resourceVersion: '2' }, text: 'x'.repeat(2 ** 21) }));
  const handle = await open(file, 'w');
  await writeSnapshot(
    handle,
    { revision: 2, records: Array.from({ length: 75 }, (_, n) => ({ revision: 2, key: `${n}`, json })) },
    0,
  );
  await handle.close();
  let nowMs = 0;
  // Each window takes 1.5 s.
  vi.spyOn(performance, 'now').mockImplementation(() => {
    nowMs += 750;
    return nowMs;
  });
  const lines = new Lines();
  const opened = await openStorage({ dataFile: file, etcd: [] } as unknown as ServeCommand, {
    log: lines.log,
    etcdTls: undefined,
    etcdUser: undefined,
  });
  vi.restoreAllMocks();
  await opened.close();
  rmSync(folder, { recursive: true });
  expect(lines.all.map(([event]) => event)).toEqual(lines.all.map(() => 'loading'));
  const percents = lines.all.map(([, { percent }]) => percent as number);
  expect(percents.length).toBeGreaterThan(0);
  expect(percents.length).toBeLessThan(5);
  expect([...percents].sort((a, b) => a - b)).toEqual(percents);
  expect(percents.every((percent) => percent > 0 && percent < 100)).toBe(true);
});

test('a file that cannot be rewritten is a warning; one that was moved away ends all writing', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'watchmux-serve-'));
  const file = join(folder, 'data');
  const lines = new Lines();
  const deps = { log: lines.log, etcdTls: undefined, etcdUser: undefined };
  const storage = await openStorage({ dataFile: file, etcd: [] } as unknown as ServeCommand, deps);
  mkdirSync(`${file}.watchmux-new`);
  const text = 'x'.repeat(2 ** 21);
  for (let n = 0; lines.all.length === 0; n++) {
    await storage.update('a', () => ({ metadata: { name: `${n}` }, text }) as KubernetesObject, { createIfMissing: true });
  }
  renameSync(file, `${file}-old`);
  await expect(storage.create('b', { metadata: {} })).rejects.toThrow('was moved');
  await closeStorage(storage, { log: lines.log, isLocal: true });
  rmSync(folder, { recursive: true });
  const error = expect.stringMatching(/data cannot be rewritten, and keeps growing: .* Its directory must be writable/);
  expect(lines.all).toEqual([
    ['storage-grows', { file, error }],
    ['storage-failed', expect.objectContaining({ file, error: expect.stringContaining('data was moved, deleted or replaced') })],
  ]);
});

test('a file of SQLite is opened, or it is said why not', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'watchmux-serve-'));
  const file = join(folder, 'file');
  const command = { sqliteFile: file, etcd: [] } as unknown as ServeCommand;
  const opening = openStorage(command, { log: new Lines().log, etcdTls: undefined, etcdUser: undefined });
  if (isMissing(component('node:sqlite')))
    await expect(opening).rejects.toThrow(/--sqlite ".*file": SqliteStorage: expected a runtime/);
  else await (await opening).close();
  rmSync(folder, { recursive: true });
});

describe('the end of a storage', () => {
  const storage = (more: object = {}): Parameters<typeof closeStorage>[0] => ({ close: async () => {}, ...more });
  const broken = async (): Promise<never> => Promise.reject(new WatchError('CLOSED', 'the journal has failed'));
  const away = async (): Promise<never> => Promise.reject(new Error('no space at a distance'));

  const full = async (): Promise<never> => Promise.reject(unavailable('database or disk is full'));
  const busy = async (): Promise<never> => Promise.reject(tooManyRequests('other processes have had the file locked', 1));

  test.each([
    ['without a health of its own', {}, true, 0],
    ['that is well', { checkHealth: async () => {} }, true, 0],
    ['elsewhere that may come back', { checkHealth: away }, false, 0],
    ['that does not answer', { checkHealth: () => new Promise<void>(() => {}) }, true, 0],
    ['that others have locked', { checkHealth: busy }, true, 0],
    ['whose disk has failed', { checkHealth: broken }, true, 1],
    ['whose disk is full', { checkHealth: full }, true, 1],
    ['that cannot be closed', { close: away }, false, 1],
  ])('%s: the exit code', async (_name, more, isLocal, code) => {
    const lines = new Lines();
    expect(await closeStorage(storage(more), { log: lines.log, isLocal })).toBe(code);
    expect(lines.all.map(([event]) => event)).toEqual('close' in more ? ['storage-failed'] : []);
  });
});
