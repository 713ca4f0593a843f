// A large object in SQLite: nothing reads or writes its JSON at a stretch. It needs node:sqlite: Node 22.13 or newer.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { SqliteStorage } from '../../src/storage/sqlite/index.ts';
import { component, isMissing } from '../components.ts';
import { type Big, STRETCH, useLarge } from './large-objects.ts';

test.skipIf(isMissing(component('node:sqlite')))('it is written, read, watched and followed in pieces', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'watchmux-sqlite-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const open = (): SqliteStorage<Big> => {
    const storage = new SqliteStorage<Big>({ file: join(folder, 'file'), synchronous: 'NORMAL' });
    onTestFinished(() => storage.close());
    return storage;
  };
  expect((await useLarge(open(), open())).longest).toBeLessThan(STRETCH);
});
