// A storage on SQLite beside its contracts: its file, its lives, locks of others, limits, and that it can be served.
import { spawnSync } from 'node:child_process';
import {
  copyFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { ApiServer } from '../../src/apiserver/index.ts';
import { listAll } from '../../src/cache/pager.ts';
import { Cacher, Draft } from '../../src/storage/index.ts';
import { Pending } from '../../src/storage/life.ts';
import { SqliteStorage, type SqliteStorageOptions } from '../../src/storage/sqlite/index.ts';
import type { SqliteBackend } from '../../src/storage/sqlite/sqlite-backend.ts';
import { type Database, sqliteOf } from '../../src/storage/sqlite/sqlite-file.ts';
import { FakeClock } from '../../src/testing/index.ts';
import { component, isMissing } from '../components.ts';

const missing = isMissing(component('node:sqlite'));
const directory = mkdtempSync(join(tmpdir(), 'watchmux-sqlite-'));
afterAll(() => rmSync(directory, { recursive: true, force: true }));
let files = 0;

interface Thing {
  readonly metadata: { readonly name: string; readonly resourceVersion?: string };
  readonly n: number;
  readonly pad?: string;
}
const thing = (n: number, pad = ''): Thing => ({ metadata: { name: `t${n}` }, n, pad });

function open(options: Partial<SqliteStorageOptions<Thing>> = {}): {
  readonly file: string;
  readonly storage: SqliteStorage<Thing>;
} {
  const file = options.file ?? join(directory, `${files++}`);
  const storage = new SqliteStorage<Thing>({ synchronous: 'NORMAL', ...options, file });
  onTestFinished(() => storage.close());
  return { file, storage };
}

function raw(file: string): Database {
  const database = new (sqliteOf())(file);
  onTestFinished(() => database.close());
  return database;
}

/** Until the end of the test, does this with each connection to a file before its first statement. */
function onOpen(then: (database: Database) => void): void {
  const module = process.getBuiltinModule('node:sqlite') as { DatabaseSync: ReturnType<typeof sqliteOf> };
  const { DatabaseSync } = module;
  module.DatabaseSync = class extends DatabaseSync {
    constructor(file: string) {
      super(file);
      then(this);
    }
  };
  onTestFinished(() => {
    module.DatabaseSync = DatabaseSync;
  });
}

const versionOf = ({ metadata }: Thing): string => metadata.resourceVersion as string;

describe('the options', () => {
  it('a runtime without SQLite is told at once, and what it needs', () => {
    if (missing)
      expect(() => open()).toThrow(/^SqliteStorage: expected a runtime with node:sqlite, such as Node 22\.13 or newer, got v/);
    else expect(() => open()).not.toThrow();
  });

  it.each([
    [{ file: '' }, 'file'],
    [{ file: ':memory:' }, 'file'],
    [{ synchronous: 'OFF' }, 'synchronous'],
    [{ pollMs: 0 }, 'pollMs'],
    [{ busyTimeoutMs: -1 }, 'busyTimeoutMs'],
    [{ maxHistoryItems: 1.5 }, 'maxHistoryItems'],
    [{ fil: 'x' }, 'unknown option fil'],
  ])('%j is refused', (options, name) => {
    expect(() => new SqliteStorage({ file: 'x', ...options } as never)).toThrow(
      expect.objectContaining({ code: 'INVALID_ARGUMENT', message: expect.stringContaining(name) }),
    );
  });
});

describe.skipIf(missing)('the file', () => {
  it("is its owner's alone, and has what was written when it is opened again", async () => {
    const { file, storage } = open();
    const stored = await storage.create('a', thing(1));
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(statSync(`${file}-wal`).mode & 0o777).toBe(0o600);
    await storage.close();
    expect(await open({ file }).storage.get('a')).toEqual(stored);
  });

  it.each([
    ['no file of SQLite', 'x'.repeat(10_000), 'a file of SQLite'],
    ["another program's", undefined, 'a file of a SqliteStorage'],
  ])('that is %s is refused and left as it is', async (_, text, expected) => {
    const file = join(directory, `${files++}`);
    if (text) writeFileSync(file, text);
    else raw(file).exec('CREATE TABLE t (x)');
    await expect(open({ file }).storage.get('a')).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: expect.stringContaining(expected),
    });
    if (!text) expect(raw(file).prepare('PRAGMA journal_mode').get()).toEqual({ journal_mode: 'delete' });
  });

  it("that cannot be used is told to the server's owner, and clients get a 500 without its path", async () => {
    const { file, storage } = open();
    writeFileSync(file, 'x'.repeat(10_000));
    const told: unknown[] = [];
    const things = { group: 'example.com', version: 'v1', plural: 'things', kind: 'Thing', namespaced: false };
    const server = new ApiServer({ storage: storage as never, resources: [things], onError: (error) => told.push(error) });
    onTestFinished(() => server.shutdown());
    const body = JSON.stringify({ apiVersion: 'example.com/v1', kind: 'Thing', metadata: { name: 'a' } });
    const request = new Request('http://localhost/apis/example.com/v1/things', {
      method: 'POST',
      body,
      headers: { 'content-type': 'application/json' },
    });
    const response = await server.fetch(request);
    expect([response.status, await response.text()]).toEqual([500, expect.not.stringContaining(directory)]);
    expect(told).toContainEqual(expect.objectContaining({ message: expect.stringContaining(file) }));
  });

  it('in a folder that does not exist is told as it is', async () => {
    const { storage } = open({ file: join(directory, 'no', 'file') });
    await expect(storage.get('a')).rejects.toMatchObject({ code: 'ENOENT' });
    // A write that is tried without end would let no timer of this test come.
    let rounds = 0;
    const check = vi.spyOn(Pending.prototype, 'check').mockImplementation(() => {
      if (++rounds === 100) void storage.close();
    });
    onTestFinished(() => check.mockRestore());
    await expect(storage.create('a', thing(1))).rejects.toMatchObject({ code: 'ENOENT' });
  });

  const gone: [string, (file: string) => void][] = [
    ['moved', (file) => renameSync(file, `${file}-away`)],
    ['deleted', (file) => rmSync(file)],
    [
      'replaced, with another name left',
      (file) => {
        linkSync(file, `${file}-kept`);
        writeFileSync(`${file}-new`, '');
        renameSync(`${file}-new`, file);
      },
    ],
  ];
  it.each(gone)('that was %s while it is open: requests and its health say so, and watches end', async (_what, act) => {
    const clock = new FakeClock();
    const { file, storage } = open({ clock });
    const things = storage.scope<Thing>('things/');
    await things.create('t1', thing(1));
    const watch = await things.watch({ resourceVersion: '0' });
    const events = watch[Symbol.asyncIterator]();
    expect(await events.next()).toMatchObject({ value: { type: 'ADDED' } });
    act(file);
    const next = events.next();
    clock.advance(50); // it looks for writes of others
    const told = { status: { code: 503 }, cause: { message: `${file} was moved, deleted or replaced while it was open` } };
    await expect(next.then(({ value }) => value)).resolves.toMatchObject({ type: 'ERROR', object: { code: 503 } });
    await expect(things.create('t2', thing(2))).rejects.toMatchObject(told);
    await expect(things.get('t1')).rejects.toMatchObject(told);
    await expect(storage.checkHealth?.()).rejects.toMatchObject(told);
  });

  it('that is back at its path goes on', async () => {
    const { file, storage } = open();
    const things = storage.scope<Thing>('things/');
    await things.create('t1', thing(1));
    renameSync(file, `${file}-away`);
    await expect(things.create('t2', thing(2))).rejects.toMatchObject({ status: { code: 503 } });
    renameSync(`${file}-away`, file);
    await storage.checkHealth?.();
    await things.create('t2', thing(2));
    expect((await things.list()).items).toHaveLength(2);
  });

  it('that is moved during a write: it may have been made', async () => {
    onOpen((database) => {
      const exec = database.exec.bind(database);
      database.exec = (sql) => {
        exec(sql);
        if (sql === 'COMMIT' && isMoving) renameSync(file, `${file}-away`);
      };
    });
    let isMoving = false;
    const { file, storage } = open();
    const things = storage.scope<Thing>('things/');
    await things.create('t1', thing(1));
    isMoving = true;
    await expect(things.create('t2', thing(2))).rejects.toMatchObject({ code: 'TIMEOUT' });
  });

  it('is that of the directory in which the storage was made, and its name is no URI', async () => {
    const before = process.cwd();
    process.chdir(directory);
    onTestFinished(() => process.chdir(before));
    const { storage } = open({ file: 'file:here.sqlite' });
    process.chdir(before);
    await storage.scope<Thing>('things/').create('t1', thing(1));
    expect(statSync(join(directory, 'file:here.sqlite')).size).toBeGreaterThan(0);
  });

  it('stays locked against other processes when a second storage of this one opens it', async () => {
    const { file, storage } = open();
    await storage.create('a', thing(1));
    const script = `const { DatabaseSync } = require('node:sqlite');
      const database = new DatabaseSync(${JSON.stringify(file)});
      database.prepare('SELECT count(*) FROM sqlite_schema').get();
      try { console.log(database.prepare('PRAGMA journal_mode = DELETE').get().journal_mode); }
      catch (error) { console.log(error.errcode & 0xff); }`;
    const answers: string[] = [];
    onOpen(() => answers.push(spawnSync(process.execPath, ['-e', script], { encoding: 'utf8' }).stdout.trim()));
    await open({ file }).storage.get('a');
    expect(answers).toEqual(['5']);
  });
});

describe.skipIf(missing)('a transaction that fails', () => {
  it('is rolled back, and the next one succeeds, also where nothing tells whether there is one: Node before 22.16', async () => {
    const { file, storage } = open();
    await storage.create('a', thing(1));
    const other = raw(file);
    other.exec("CREATE TRIGGER t BEFORE INSERT ON log BEGIN SELECT RAISE(ABORT, 'no'); END");
    await expect(storage.create('b', thing(2))).rejects.toMatchObject({ status: { code: 500 } });
    other.exec('DROP TRIGGER t');
    await storage.create('c', thing(3));
    expect(await storage.keys?.({ limit: 10 })).toEqual(['a', 'c']);
  });

  it('of a read tells why, though SQLite has ended it itself', async () => {
    const { storage } = open();
    const backend = storage.backing.backend as SqliteBackend;
    const read = backend.snapshot({ what: 'read' }, () => {
      backend.sql('ROLLBACK').run();
      throw new Error('the disk is gone');
    });
    await expect(read).rejects.toThrow('the disk is gone');
    expect(await storage.get('a')).toBeUndefined();
  });
});

it.skipIf(missing)(
  'a disk that fails at the end of a transaction: nobody knows whether the write has happened, and it says so',
  async () => {
    const { storage } = open();
    await storage.create('a', thing(1));
    const { exec } = sqliteOf().prototype as Database;
    const failing = vi.spyOn(sqliteOf().prototype as Database, 'exec').mockImplementation(function (this: Database, sql) {
      if (sql === 'COMMIT') throw Object.assign(new Error('disk I/O error'), { errcode: 10 | (4 << 8) });
      exec.call(this, sql);
    });
    const unsure = { code: 'TIMEOUT', message: expect.stringContaining('it may have happened anyway') };
    await expect(storage.create('b', thing(2))).rejects.toMatchObject(unsure);
    await expect(storage.checkHealth?.()).rejects.toMatchObject(unsure);
    failing.mockRestore();
    expect(await storage.checkHealth?.()).toBeUndefined();
    await storage.create('c', thing(3));
  },
);

describe.skipIf(missing)('a file that cannot be used any more', () => {
  it('because its disk is full: its health says so until there is room for what failed', async () => {
    const { file, storage } = open();
    await storage.create('a', thing(1));
    const { exec } = sqliteOf().prototype as Database;
    const failing = vi.spyOn(sqliteOf().prototype as Database, 'exec').mockImplementation(function (this: Database, sql) {
      if (sql === 'COMMIT') throw Object.assign(new Error('database or disk is full'), { errcode: 13 });
      exec.call(this, sql);
    });
    await expect(storage.create('b', thing(2))).rejects.toMatchObject({ status: { code: 503 } });
    failing.mockRestore();
    // SQLite has room in its log, but the disk has none.
    const probe = `${file}-probe-${process.pid}`;
    mkdirSync(probe);
    await expect(storage.checkHealth?.()).rejects.toMatchObject({ status: { code: 503 } });
    rmdirSync(probe);
    symlinkSync(`${file}-other`, probe); // which somebody else may have made
    expect(await storage.checkHealth?.()).toBeUndefined();
    expect([existsSync(probe), existsSync(`${file}-other`)]).toEqual([false, false]);
    expect(await storage.get('a')).toMatchObject({ n: 1 });
  });

  it('because it is damaged: its health says so from then on', async () => {
    const { file, storage } = open();
    for (let n = 0; n < 300; n++) await storage.create(`k${n}`, thing(n, 'x'.repeat(1_000)));
    await storage.close();
    const bytes = readFileSync(file);
    writeFileSync(file, bytes.fill(7, 8_192, bytes.length - 8_192));
    const { storage: damaged } = open({ file });
    await expect(damaged.list()).rejects.toMatchObject({ status: { code: 500 } });
    await expect(damaged.checkHealth?.()).rejects.toMatchObject({ status: { code: 500 } });
  });

  it('at all: its health says so before anything was asked', async () => {
    const { storage } = open({ file: join(directory, 'nowhere', 'x') });
    await expect(storage.checkHealth?.()).rejects.toThrow();
  });
});

it.skipIf(missing)('what has expired while nobody had the file open is not shown when it is opened', async () => {
  const clock = new FakeClock();
  let nowMs = 1_000;
  const first = open({ clock, now: () => nowMs });
  for (let n = 0; n < 600; n++) void first.storage.create(`k${n}`, thing(n), { ttlSeconds: 1 });
  await first.storage.create('kept', thing(0), { ttlSeconds: 10 });
  await first.storage.close();
  nowMs += 2_000;
  const { storage } = open({ file: first.file, clock, now: () => nowMs });
  const [list, gone] = await Promise.all([storage.list(), storage.get('k1')]);
  expect([list.items.length, gone]).toEqual([1, undefined]);
});

describe.skipIf(missing)('a life of it', () => {
  it('that follows a copy does not know what came after the copy: 410; what was before can be resumed from', async () => {
    const { file, storage } = open();
    const kept = versionOf(await storage.create('a', thing(1)));
    await storage.close();
    copyFileSync(file, `${file}.copy`);
    const lost = open({ file }).storage;
    const gone = versionOf(await lost.create('b', thing(2)));
    await lost.close();
    copyFileSync(`${file}.copy`, file);
    const { storage: restored } = open({ file });
    expect([await restored.hasGiven?.(kept), await restored.hasGiven?.(gone)]).toEqual([true, false]);
    for (const resourceVersion of [gone, `${Number(gone) + 1}`]) {
      await expect(restored.watch({ resourceVersion })).rejects.toMatchObject({ status: { code: 410 } });
      const exactly = { resourceVersion, resourceVersionMatch: 'Exact' } as const;
      await expect(restored.list(exactly)).rejects.toMatchObject({ status: { code: 410 } });
    }
    const watch = await restored.watch({ resourceVersion: kept });
    const next = versionOf(await restored.create('c', thing(3)));
    expect((await watch.next()).value).toMatchObject({ type: 'ADDED', object: { n: 3 } });
    expect([Number(next) > Number(kept), next === gone]).toEqual([true, false]);
    expect((await restored.list({ resourceVersion: kept, resourceVersionMatch: 'Exact' })).items).toHaveLength(1);
  });

  it('does not begin while somebody else has the file open', async () => {
    const { file, storage } = open();
    const version = versionOf(await storage.create('a', thing(1)));
    const { storage: other } = open({ file });
    expect(await other.currentVersion()).toBe(version);
    await storage.close();
    expect(await open({ file }).storage.currentVersion()).toBe(version);
  });
});

describe.skipIf(missing)('a lock of another process', () => {
  it('is waited for, while reads go on and timers fire; then the write is made once', async () => {
    const { file, storage } = open();
    await storage.create('a', thing(1));
    const other = raw(file);
    other.exec('BEGIN IMMEDIATE');
    let done = false;
    const writing = storage.create('b', thing(2)).finally(() => {
      done = true;
    });
    await new Promise((resolve) => setImmediate(resolve));
    expect(await storage.get('a')).toMatchObject({ n: 1 });
    expect(done).toBe(false);
    other.exec('COMMIT');
    await writing;
    expect((await storage.list()).items).toHaveLength(2);
  });

  it('that lasts too long: 429, and nothing is written; the signal and the end do not wait for it', async () => {
    const clock = new FakeClock();
    const { file, storage } = open({ clock, busyTimeoutMs: 1_000, random: () => 0.5 });
    await storage.create('a', thing(1));
    const other = raw(file);
    other.exec('BEGIN IMMEDIATE');
    const abort = new AbortController();
    const [late, given] = [storage.create('b', thing(2)), storage.create('c', thing(3), { signal: abort.signal })];
    abort.abort(new Error('enough'));
    await expect(given).rejects.toThrow('enough');
    const settled = expect(late).rejects.toMatchObject({ status: { code: 429 } });
    for (let i = 0; i < 200; i++) {
      await Promise.resolve();
      await new Promise((resolve) => setImmediate(resolve));
      clock.advance(10);
    }
    await settled;
    expect(await storage.checkHealth?.()).toBeUndefined();
    const ended = expect(storage.create('d', thing(4))).rejects.toMatchObject({ code: 'CLOSED' });
    await new Promise((resolve) => setImmediate(resolve));
    await storage.close();
    await ended;
    other.exec('COMMIT');
    expect(other.prepare('SELECT count(*) AS n FROM objects').get()).toEqual({ n: 1 });
    expect(clock.pending).toBe(0);
  });
});

describe.skipIf(missing)('the history', () => {
  const rows = (file: string): unknown => raw(file).prepare('SELECT count(*) AS n FROM log').get()?.n;

  it('has at most so many changes, and so many bytes', async () => {
    const few = open({ maxHistoryItems: 10 });
    const small = open({ maxHistoryBytes: 20_000 });
    for (const { storage } of [few, small]) {
      for (let n = 0; n < 60; n++) await storage.update('a', () => thing(n, 'x'.repeat(900)), { createIfMissing: true });
    }
    expect([rows(few.file), rows(small.file)]).toEqual([10, 19]);
    const past = await few.storage.pastVersion?.(5);
    expect((await few.storage.list({ resourceVersion: past, resourceVersionMatch: 'Exact' })).items).toMatchObject([{ n: 54 }]);
    const oldest = (await few.storage.pastVersion?.(1_000)) as string;
    expect((await few.storage.list({ resourceVersion: oldest, resourceVersionMatch: 'Exact' })).items).toMatchObject([{ n: 49 }]);
    const before = `${Number(oldest) - 1}`;
    await expect(few.storage.watch({ resourceVersion: before })).rejects.toMatchObject({ status: { code: 410 } });
  });
});

it.skipIf(missing)('what expires while no write succeeds is tried less and less often, and goes once one can', async () => {
  const clock = new FakeClock();
  const { file, storage } = open({ clock, now: () => clock.now(), random: () => 0.5 });
  await storage.create('a', thing(1), { ttlSeconds: 1 });
  const other = raw(file);
  other.exec("CREATE TRIGGER t BEFORE INSERT ON log BEGIN SELECT RAISE(ABORT, 'full'); END");
  const exec = vi.spyOn(sqliteOf().prototype as Database, 'exec');
  onTestFinished(() => exec.mockRestore());
  const pass = async (steps: number, ms: number): Promise<number> => {
    exec.mockClear();
    for (let step = 0; step < steps; step++) {
      clock.advance(ms);
      await new Promise((resolve) => setImmediate(resolve));
    }
    return exec.mock.calls.filter(([sql]) => sql.includes('IMMEDIATE')).length;
  };
  const tries = await pass(200, 20);
  expect(tries).toBeGreaterThan(1);
  expect(tries).toBeLessThan(10);
  expect(await pass(100, 1_000)).toBeLessThan(15);
  other.exec('DROP TRIGGER t');
  await pass(20, 1_000);
  expect(await storage.get('a')).toBeUndefined();
});

describe.skipIf(missing)('changes', () => {
  it('do nothing before they are opened or read, and are followed then', async () => {
    const clock = new FakeClock();
    const { storage } = open({ clock });
    const { backend } = storage.backing;
    const start = await storage.currentVersion();
    const idle = clock.pending;
    const [opened, read] = [1, 2].map(() => backend.changesAfter(start, { prefix: '', previous: false }));
    expect(clock.pending).toBe(idle);
    await opened?.open();
    expect(clock.pending).toBe(idle + 1);
    opened?.close();
    expect(clock.pending).toBe(idle);
    const next = read?.next();
    expect(clock.pending).toBe(idle + 1);
    await storage.create('a', thing(1));
    expect((await next)?.changes).toHaveLength(1);
    read?.close();
    expect(clock.pending).toBe(idle);
    expect(await read?.next()).toBeUndefined();
    expect(clock.pending).toBe(idle);
  });

  it('of a watch that is aborted before it opens are not begun', async () => {
    const { storage } = open();
    const { backend } = storage.backing;
    const abort = new AbortController();
    const { revision } = backend;
    vi.spyOn(backend, 'revision').mockImplementation(async () => {
      const now = await revision.call(backend);
      queueMicrotask(() => abort.abort(new Error('enough')));
      return now;
    });
    const changesAfter = vi.spyOn(backend, 'changesAfter');
    await expect(storage.watch({ sendInitialEvents: false, signal: abort.signal })).rejects.toThrow('enough');
    expect(changesAfter).not.toHaveBeenCalled();
  });
});

describe.skipIf(missing)('a page', () => {
  it('of whatever size takes no statement of its own', async () => {
    const { storage } = open();
    for (let n = 0; n < 3; n++) await storage.create(`a${n}`, thing(n));
    const past = await storage.currentVersion();
    await storage.create('b', thing(4));
    const prepare = vi.spyOn(sqliteOf().prototype as Database, 'prepare');
    onTestFinished(() => prepare.mockRestore());
    const counts: number[] = [];
    for (let limit = 1; limit <= 3; limit++) {
      await storage.keys?.({ limit });
      for (const revision of [undefined, past]) await storage.backing.backend.range({ prefix: '', limit, revision });
      counts.push(prepare.mock.calls.length);
    }
    expect(counts).toEqual([counts[0], counts[0], counts[0]]);
  });

  it('of the past is read without what follows it, which is therefore not counted', async () => {
    const { storage } = open();
    for (let n = 0; n < 6; n++) await storage.create(`a${n}`, thing(n));
    const past = await storage.currentVersion();
    for (const n of [1, 3]) await storage.update(`a${n}`, () => thing(n + 10));
    await storage.delete('a2');
    await storage.create('a21', thing(21));
    const prepare = vi.spyOn(sqliteOf().prototype as Database, 'prepare');
    onTestFinished(() => prepare.mockRestore());
    const exactly = { resourceVersion: past, resourceVersionMatch: 'Exact', limit: 2 } as const;
    let page = await storage.list(exactly);
    const names: unknown[] = [];
    for (;;) {
      names.push(page.items.map(({ n }) => n));
      expect(page).not.toHaveProperty('remainingItemCount');
      if (page.continue === undefined) break;
      page = await storage.list({ limit: 2, continue: page.continue });
    }
    expect(names).toEqual([
      [0, 1],
      [2, 3],
      [4, 5],
    ]);
    expect(prepare.mock.calls.filter(([sql]) => sql.includes('count('))).toEqual([]);
    expect((await storage.list({ limit: 2 })).remainingItemCount).toBe(4);
  });
});

describe.skipIf(missing)('what is large', () => {
  it('is refused with 413 beyond the limit', async () => {
    const { storage } = open({ maxObjectBytes: 1_000 });
    await expect(storage.create('a', thing(1, 'x'.repeat(1_000)))).rejects.toMatchObject({ status: { code: 413 } });
    await storage.create('a', thing(1, 'x'.repeat(900)));
  });

  it('is read in parts, now and in the past, and followed in batches', async () => {
    const { storage } = open({ maxObjectBytes: 2 ** 22 });
    const start = await storage.currentVersion();
    for (let n = 0; n < 4; n++) await storage.create(`a${n}`, thing(n, 'x'.repeat(3_000_000)));
    const { backend } = storage.backing;
    const part = await backend.range({ prefix: '', limit: 100 });
    expect([part.entries.length, part.left]).toEqual([3, 1]);
    const { items, resourceVersion } = await listAll(storage);
    expect(items.map(({ n }) => n)).toEqual([0, 1, 2, 3]);
    await storage.delete('a0');
    expect((await storage.list({ resourceVersion, resourceVersionMatch: 'Exact' })).items).toHaveLength(4);
    const changes = backend.changesAfter(start, { prefix: '', previous: false });
    const counts: number[] = [];
    while (counts.reduce((sum, count) => sum + count, 0) < 5) counts.push((await changes.next())?.changes.length ?? 0);
    expect(counts).toEqual([3, 2]);
    changes.close();
  });

  it('writes wait for a while, but not more than 64 MiB of them, and none that is too much is half written', async () => {
    const { storage } = open({ maxObjectBytes: 2 ** 25 });
    const pad = 'x'.repeat(15 * 2 ** 20);
    const { backend } = storage.backing;
    // At once: a storage makes the JSON of one object after the other, in pieces.
    const drafts = Array.from({ length: 6 }, (_, n) => new Draft(thing(n, pad)));
    const results = await Promise.allSettled(drafts.map((put, n) => backend.txn({ key: `k${n}`, expected: '0', put })));
    expect(results.map(({ status }) => status === 'fulfilled')).toEqual([true, true, true, true, false, false]);
    expect(results[4]).toMatchObject({ reason: { status: { code: 429 } } });
    expect(await storage.keys?.({ limit: 10 })).toEqual(['k0', 'k1', 'k2', 'k3']);
    await storage.create('k4', thing(4, pad));
  });

  it('deletions wait for a while, but not any number of them', async () => {
    const { file, storage } = open();
    await storage.create('a', thing(1));
    raw(file).exec('BEGIN IMMEDIATE');
    const { backend } = storage.backing;
    const remove = { key: 'x'.repeat(1_000), expected: '1' };
    const results = Promise.allSettled(Array.from({ length: 62_000 }, () => backend.txn(remove)));
    await storage.close();
    const refused = (await results).filter((each) => each.status === 'rejected' && each.reason.status?.code === 429);
    expect(refused).toHaveLength(62_000 - Math.floor(2 ** 26 / 1_100));
  });

  it('many changes are followed in batches', async () => {
    const { storage } = open();
    const start = await storage.currentVersion();
    await Promise.all(Array.from({ length: 1_200 }, (_, n) => storage.create(`k${n}`, thing(n))));
    const watch = await storage.watch({ resourceVersion: start });
    for (let n = 0; n < 1_200; n++) expect((await watch.next()).value?.object).toMatchObject({ n });
    await watch.return();
  });
});

it.skipIf(missing)('two API servers on one file: what one is asked to write, a watch at the other tells', async () => {
  const { file, storage } = open();
  const { storage: other } = open({ file });
  const things = { group: 'example.com', version: 'v1', plural: 'things', kind: 'Thing', namespaced: false };
  const servers = [storage, other].map((each) => new ApiServer({ storage: each as never, resources: [things] }));
  onTestFinished(async () => {
    for (const server of servers) await server.shutdown();
  });
  const [one, two] = servers.map((server) => server.resource('things.example.com/v1'));
  const watch = await two?.watch({ sendInitialEvents: true });
  const object = { apiVersion: 'example.com/v1', kind: 'Thing', metadata: { name: 'a' } };
  const created = await one?.create(object as never);
  for (;;) {
    const { value } = (await watch?.next()) ?? {};
    if (value?.type === 'BOOKMARK') continue;
    expect(value).toMatchObject({ type: 'ADDED', object: created });
    break;
  }
  await watch?.return();
});

it.skipIf(missing)('a cacher in front of it follows what another one writes', async () => {
  const { file, storage } = open();
  const { storage: other } = open({ file });
  const cacher = new Cacher<Thing>(storage.scope('things/'), { keyOf: ({ metadata }: Thing) => metadata.name ?? '' } as never);
  onTestFinished(() => cacher.close());
  const { metadata } = await other.scope<Thing>('things/').create('t1', thing(1));
  const { items } = await cacher.list({ resourceVersion: metadata.resourceVersion });
  expect(items).toMatchObject([{ n: 1 }]);
});
