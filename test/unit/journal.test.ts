// A MemoryStorage in a file: what was answered is there after any death of the process, and damage is told.

import { execFileSync, spawn } from 'node:child_process';
import type { EventEmitter } from 'node:events';
import { once } from 'node:events';
import {
  chmod,
  copyFile,
  type FileHandle,
  link,
  lstat,
  mkdir,
  mkdtemp,
  open,
  readdir,
  readFile,
  rename,
  rm,
  rmdir,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { connect, Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { KubernetesObject } from '../../src/cache/index.ts';
import { isWatchError } from '../../src/index.ts';
import { type MemoryStorage, openMemoryStorage, type TornTail } from '../../src/storage/index.ts';
import { FileJournal } from '../../src/storage/journal/file-journal.ts';
import { writeSnapshot } from '../../src/storage/journal/files.ts';
import { load } from '../../src/storage/journal/load.ts';
import { crc32, frameAt, HEAD_BYTES, slowCrc32, toFrame } from '../../src/storage/journal/records.ts';
import { encoded } from '../../src/storage/values.ts';
import { FakeClock } from '../../src/testing/index.ts';
import { eventually } from '../eventually.ts';
import { macrotask as turn } from './support.ts';

interface Thing extends KubernetesObject {
  readonly n: number;
}

let directory: string;
let file: string;
let opened: MemoryStorage<Thing>[] = [];
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'watchmux-journal-'));
  file = join(directory, 'data');
});
afterEach(async () => {
  vi.restoreAllMocks();
  for (const storage of opened) await storage.close();
  opened = [];
  await rm(directory, { recursive: true });
});

async function start(more: Partial<Parameters<typeof openMemoryStorage<Thing>>[0]> = {}): Promise<MemoryStorage<Thing>> {
  const storage = await openMemoryStorage<Thing>({ file, startRevision: 1, ...more }); // no jump
  opened.push(storage);
  return storage;
}

const thing = (name: string, n: number = 0): Thing => ({ metadata: { name }, n });
const set = (storage: MemoryStorage<Thing>, key: string, n: number): Promise<Thing> =>
  storage.update(key, () => thing(key, n), { createIfMissing: true });
const stateOf = async (storage: MemoryStorage<Thing>): Promise<string> =>
  (await storage.list()).items.map(({ metadata, n }) => `${metadata?.name}=${n}@${metadata?.resourceVersion}`).join(' ');
/** Does something for each number, in eight files at a time: most of the time is waiting for the disk. */
async function inLanes(numbers: Iterable<number>, act: (n: number, file: string) => Promise<void>): Promise<void> {
  const left = numbers[Symbol.iterator]();
  const lane = async (_: unknown, at: number): Promise<void> => {
    for (let next = left.next(); !next.done; next = left.next()) await act(next.value, `${file}-${at}`);
  };
  await Promise.all(Array.from({ length: 8 }, lane));
}
const upTo = (last: number, first: number = 0): number[] => Array.from({ length: last - first + 1 }, (_, at) => first + at);
/** The methods of all file handles, to have them fail. */
async function handles(): Promise<FileHandle> {
  const handle = await open(directory, 'r');
  await handle.close();
  return Object.getPrototypeOf(handle) as FileHandle;
}

/** As where a system has no names that only one process can have. */
function withoutLock(): void {
  vi.spyOn(Server.prototype, 'listen').mockImplementation(function refused(this: Server): Server {
    queueMicrotask(() => this.emit('error', Object.assign(new Error('not supported'), { code: 'EINVAL' })));
    return this;
  });
}
const hasLocks = process.platform === 'linux' || process.platform === 'win32';

describe.runIf(hasLocks)('the lock of a file', () => {
  const isOpen = { code: 'INVALID_ARGUMENT', message: expect.stringContaining('data is open already') };

  test('is had by one: another is refused before it touches anything, by whatever path it comes', async () => {
    const storage = await start();
    await set(storage, 'a', 1);
    await writeFile(`${file}.watchmux-new`, 'half of a snapshot');
    const whole = await readFile(file);
    await symlink(directory, join(directory, 'same'));
    await symlink('data', join(directory, 'link'));
    for (const path of [file, join(directory, 'same', 'data'), join(directory, 'link')]) {
      await expect(start({ file: path })).rejects.toMatchObject(isOpen);
    }
    expect(await readFile(`${file}.watchmux-new`, 'utf8')).toBe('half of a snapshot');
    expect(await readFile(file)).toEqual(whole);
    await start({ file: `${file}2` });
  });

  test('is given back by close, and by an opening that fails', async () => {
    const storage = await start();
    await storage.close();
    await writeFile(file, 'no journal at all');
    for (let n = 0; n < 2; n++) await expect(start()).rejects.toMatchObject({ code: 'INVALID_FRAME' });
    await rm(file);
    await start();
  });

  test('is given back when a file cannot be closed either, as on a disk that has failed', async () => {
    const broken = Object.assign(new Error('i/o error'), { code: 'EIO' });
    const prototype = await handles();
    const failsToClose = (handle: FileHandle): void => {
      const { close } = handle;
      handle.close = async () => {
        await close();
        throw broken;
      };
    };
    const storage = await openMemoryStorage<Thing>({ file, startRevision: 1 });
    const { datasync } = prototype;
    vi.spyOn(prototype, 'datasync').mockImplementationOnce(function syncs(this: FileHandle) {
      failsToClose(this);
      return datasync.call(this);
    });
    await set(storage, 'a', 1);
    await expect(storage.close()).rejects.toBe(broken);

    const unreadable = new Error('unreadable');
    vi.spyOn(prototype, 'read').mockImplementationOnce(async function reads(this: FileHandle) {
      failsToClose(this);
      throw unreadable;
    });
    await expect(openMemoryStorage({ file })).rejects.toBe(unreadable);
    expect(await stateOf(await start())).toBe('a=1@2');
  });

  test('is given back, and the file too, when nothing can be told of that', async () => {
    await (await openMemoryStorage({ file })).close();
    const failure = new Error('i/o error');
    let handle: FileHandle | undefined;
    vi.spyOn(await handles(), 'stat').mockImplementationOnce(async function stats(this: FileHandle) {
      handle = this;
      throw failure;
    });
    await expect(openMemoryStorage({ file })).rejects.toBe(failure);
    expect(handle?.fd).toBe(-1);
    await start();
  });

  test('goes with its process, also of a kill, and does not keep one alive', async () => {
    // The same name, by the same means: another process has no TypeScript.
    const listen = vi.spyOn(Server.prototype, 'listen');
    await (await start()).close();
    const [options] = listen.mock.calls[0] as unknown as [{ path: string }];
    const script = `require('net').createServer().listen(${JSON.stringify(options)}, () => console.log('has it'))`;
    const child = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'inherit'] });
    await once(child.stdout, 'data');
    await expect(start()).rejects.toMatchObject(isOpen);
    child.kill('SIGKILL');
    await once(child, 'exit');
    const unref = vi.spyOn(Server.prototype, 'unref');
    await start();
    expect(unref).toHaveBeenCalled();
  });

  test.runIf(process.platform === 'linux')('hangs up on whoever calls', async () => {
    const listen = vi.spyOn(Server.prototype, 'listen');
    await start();
    const [{ path }] = listen.mock.calls[0] as unknown as [{ path: string }];
    const socket = connect({ path });
    await once(socket, 'close');
    expect(socket.bytesRead).toBe(0);
  });

  test('has a name as long as one can be, which all versions of Node write alike', async () => {
    const listen = vi.spyOn(Server.prototype, 'listen');
    await start();
    const [{ path, exclusive }] = listen.mock.calls[0] as unknown as [{ path: string; exclusive: boolean }];
    expect(exclusive).toBe(true);
    if (process.platform === 'linux') expect(path).toMatch(/^\0watchmux-journal-[0-9a-f]{90}$/);
  });

  test('is not had where there are no such names', async () => {
    vi.spyOn(process, 'platform', 'get').mockReturnValue('darwin');
    const listen = vi.spyOn(Server.prototype, 'listen');
    await (await start()).close();
    expect(listen).not.toHaveBeenCalled();
  });

  test('is not had with a libuv that gives all such names one name', async () => {
    vi.spyOn(process, 'platform', 'get').mockReturnValue('linux');
    const listen = vi.spyOn(Server.prototype, 'listen');
    vi.spyOn(process, 'versions', 'get').mockReturnValue({ ...process.versions, uv: '1.45.9' });
    await (await start()).close();
    expect(listen).not.toHaveBeenCalled();
  });

  test('is a named pipe on Windows', async () => {
    vi.spyOn(process, 'platform', 'get').mockReturnValue('win32');
    const listen = vi.spyOn(Server.prototype, 'listen').mockImplementation(function granted(
      this: Server,
      ...args: unknown[]
    ): Server {
      queueMicrotask(args[1] as () => void);
      return this;
    });
    await (await start()).close();
    const [{ path }] = listen.mock.calls[0] as unknown as [{ path: string }];
    expect(path).toMatch(/^\\\\\.\\pipe\\watchmux-journal-[0-9a-f]+$/);
  });
});

describe.runIf(hasLocks)('a hard link to a file', () => {
  test('is refused as the file is, also after the file has begun anew', async () => {
    const storage = await start({ minCompactBytes: 1 });
    const old = join(directory, 'old');
    await link(file, old);
    await expect(start({ file: old })).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: expect.stringContaining('is open already'),
    });
    expect((await readdir(directory)).sort()).toEqual(['data', 'old']);
    const { ino } = await stat(file);
    await set(storage, 'a', 1);
    await expect.poll(async () => (await stat(file)).ino).not.toBe(ino);
    const now = join(directory, 'now');
    await eventually(async () => expect(await readdir(directory)).not.toContain('data.watchmux-new'));
    await link(file, now);
    await expect(start({ file: now })).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
    // What the old name leads to is another file now.
    expect(await stateOf(await start({ file: old }))).toBe('a=1@2');
    await storage.close();
    expect(await stateOf(await start({ file: now }))).toBe('a=1@2');
  });
});

describe('a link to a file', () => {
  test('stays one, whether or not the file is there yet, and when it begins anew', async () => {
    await mkdir(join(directory, 'disk'));
    const target = join(directory, 'disk', 'data');
    await symlink('second', join(directory, 'link'));
    await symlink(join('disk', 'data'), join(directory, 'second'));
    const storage = await start({ file: join(directory, 'link'), minCompactBytes: 1 });
    const { ino } = await stat(target);
    await set(storage, 'a', 1);
    await expect.poll(async () => (await stat(target)).ino).not.toBe(ino);
    await storage.close();
    for (const link of ['link', 'second']) expect((await lstat(join(directory, link))).isSymbolicLink()).toBe(true);
    expect(await stateOf(await start({ file: target }))).toBe('a=1@2');
  });

  test('that leads elsewhere takes no more writes: whoever opens it later would not find them', async () => {
    const path = join(directory, 'link');
    await symlink('data', path);
    const storage = await start({ file: path });
    await set(storage, 'a', 1);
    await copyFile(file, `${file}2`);
    await rm(path);
    await symlink('data2', path);
    const moved = expect.stringContaining('link was moved, deleted or replaced');
    await expect(set(storage, 'b', 1)).rejects.toMatchObject({ code: 'INVALID_FRAME', message: moved });
  });

  test('may be relative: the working directory may change', async () => {
    const here = process.cwd();
    const storage = await start({ file: relative(here, file) });
    process.chdir('/');
    try {
      await set(storage, 'a', 1);
    } finally {
      process.chdir(here);
    }
    expect(await readFile(file, 'utf8')).toContain('"name":"a"');
  });
});

describe('a MemoryStorage in a file', () => {
  test('takes no journal but its own', async () => {
    const options = { file: 'x', journal: {} } as never;
    await expect(openMemoryStorage(options)).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: expect.stringContaining('journal: expected none'),
    });
  });

  test('names its own options, too', async () => {
    const options = { file, onTornTial: () => {} } as never;
    await expect(openMemoryStorage(options)).rejects.toThrow('unknown option onTornTial: did you mean onTornTail?');
  });

  test('with an object that will expire keeps no process running', async () => {
    const storage = await openMemoryStorage({ file });
    const held = (): number => process.getActiveResourcesInfo().filter((each) => each === 'Timeout').length;
    const before = held();
    await storage.create('a', { metadata: { name: 'a' } }, { ttlSeconds: 86_400 });
    // One that ran before, of another test, may have ended.
    expect(held()).toBeLessThanOrEqual(before);
    await storage.close();
  });

  test('without a lock: what another has written is not written over', async () => {
    withoutLock();
    const one = await start();
    const other = await start();
    await set(one, 'a', 1);
    await expect(set(other, 'b', 1)).rejects.toMatchObject({ code: 'INVALID_FRAME' });
    await set(one, 'c', 1);
    await one.close();
    await other.close();
    expect(await stateOf(await start())).toBe('a=1@2 c=1@3');
  });

  const isMoved = {
    code: 'INVALID_FRAME',
    message: expect.stringContaining('data was moved, deleted or replaced: restart with the file that is to be used'),
  };

  test('without a lock: nothing is written to a file that another has replaced', async () => {
    withoutLock();
    const storage = await start();
    await copyFile(file, `${file}2`);
    await rename(`${file}2`, file);
    await expect(set(storage, 'a', 1)).rejects.toMatchObject(isMoved);
  });

  describe('that is not at its path any more takes no writes, even if it has another name', () => {
    const replace = async (): Promise<void> => {
      await copyFile(file, `${file}-copy`);
      await rename(`${file}-copy`, file);
    };
    const ways: readonly (readonly [string, () => Promise<void>])[] = [
      ['moved away', () => rename(file, `${file}-old`)],
      ['moved away, and another one put there', () => rename(file, `${file}-old`).then(() => copyFile(`${file}-old`, file))],
      ['deleted, but linked', () => link(file, `${file}-old`).then(() => rm(file))],
      ['replaced, but linked', () => link(file, `${file}-old`).then(replace)],
    ];

    test.each(ways)('%s', async (_way, move) => {
      const errors: unknown[] = [];
      const storage = await start({ onError: (error) => errors.push(error) });
      await set(storage, 'a', 1);
      await move();
      const before = await readFile(`${file}-old`);
      await expect(set(storage, 'b', 1)).rejects.toMatchObject(isMoved);
      await expect(set(storage, 'b', 2)).rejects.toMatchObject({ status: { code: 500 } });
      await expect(storage.checkHealth()).rejects.toMatchObject({ code: 'CLOSED', cause: isMoved });
      expect(errors).toEqual([expect.objectContaining(isMoved)]);
      expect([await stateOf(storage), await readFile(`${file}-old`)]).toEqual(['a=1@2', before]);
    });

    test.each(ways)('%s, before any write: its health says so', async (_way, move) => {
      const storage = await start();
      await storage.checkHealth();
      await move();
      await expect(storage.checkHealth()).rejects.toMatchObject(isMoved);
    });

    test('moved away and back, it goes on, and so does what was written while its health was looked at', async () => {
      const storage = await start();
      await rename(file, `${file}-old`);
      await expect(storage.checkHealth()).rejects.toMatchObject(isMoved);
      await rename(`${file}-old`, file);
      const healthy = storage.checkHealth();
      await Promise.all([healthy, set(storage, 'a', 1), storage.checkHealth(), set(storage, 'b', 1)]);
      await storage.checkHealth();
      expect(await stateOf(storage)).toBe('a=1@2 b=1@3');
    });

    test.each(ways)('%s, during a write: it may be lost, which is told', async (_way, move) => {
      const storage = await start();
      const prototype = await handles();
      const { datasync } = prototype;
      vi.spyOn(prototype, 'datasync').mockImplementationOnce(async function synced(this: FileHandle) {
        await datasync.call(this);
        await move();
      });
      await expect(set(storage, 'a', 1)).rejects.toMatchObject({ code: 'TIMEOUT', cause: isMoved });
      expect(await stateOf(storage)).toBe('');
    });

    test.each(ways)('%s, during a rewrite: what is at the path stays', async (_way, move) => {
      const storage = await start({ minCompactBytes: 500 });
      const prototype = await handles();
      const { sync } = prototype;
      let there: Promise<Buffer | undefined> | undefined;
      const readThere = (): Promise<Buffer | undefined> => readFile(file).catch(() => undefined);
      // Only a new file is synced like this.
      vi.spyOn(prototype, 'sync').mockImplementationOnce(async function synced(this: FileHandle) {
        await sync.call(this);
        await move();
        there = readThere();
        await there;
      });
      let failure: unknown;
      for (let n = 0; failure === undefined; n++) failure = await set(storage, 'a', n).then(() => undefined, String);
      expect(there).toBeDefined();
      expect(await readThere()).toEqual(await there);
      await expect(stat(`${file}.watchmux-new`)).rejects.toMatchObject({ code: 'ENOENT' });
    });
  });

  test('without a lock, of two processes that write the same number of bytes at the same moment, one answers', async () => {
    withoutLock();
    const storages = [await start(), await start()];
    const answered: string[] = [];
    for (let n = 101; n <= 120; n++) {
      const keys = [`a${n}`, `b${n}`];
      const all = await Promise.allSettled(storages.map((storage, at) => set(storage, keys[at] as string, 1)));
      const taken = keys.filter((_, at) => all[at]?.status === 'fulfilled');
      expect(taken.length).toBeLessThanOrEqual(1);
      answered.push(...taken);
    }
    for (const storage of storages) await storage.close();
    const there = await stateOf(await start());
    for (const key of answered) expect(there).toContain(`${key}=1@`);
  });

  test('without a lock: no new file takes the place of one that another has written into', async () => {
    withoutLock();
    const prototype = await handles();
    const held = new Promise<never>(() => {});
    let release: () => void = () => {};
    const first = new Promise<void>((resolve) => {
      release = resolve;
    });
    // Only a new file is given the old one's mode: that of the first waits, and that of the second is never whole.
    const chmods = vi.spyOn(prototype, 'chmod').mockReturnValueOnce(first).mockReturnValueOnce(held);
    const one = await start({ minCompactBytes: 1 });
    await set(one, 'a', 1);
    await eventually(() => expect(chmods).toHaveBeenCalledTimes(1));
    const other = await openMemoryStorage<Thing>({ file, startRevision: 1, minCompactBytes: 1 }); // dies, and is not closed
    await set(other, 'b', 1);
    await eventually(() => expect(chmods).toHaveBeenCalledTimes(2));
    // Before it takes the old one's place, it is looked whether that is as it was; without that, it is synced.
    const [looks, syncs] = [vi.spyOn(prototype, 'stat'), vi.spyOn(prototype, 'sync')];
    release();
    await eventually(() => expect(looks.mock.calls.length + syncs.mock.calls.length).toBeGreaterThan(0));
    await one.close();
    expect(await stateOf(await start())).toBe('a=1@2 b=1@3');
  });

  test('that becomes shorter while a new file is written: writing and closing end', async () => {
    const storage = await start({ minCompactBytes: 1 });
    const all = await handles();
    const { read } = all;
    vi.spyOn(all, 'read').mockImplementation(function (this: FileHandle, ...args: unknown[]) {
      // What is copied into the new file is read in larger pieces than a head.
      const isCopy = (args[0] as Uint8Array).byteLength > HEAD_BYTES;
      return isCopy ? Promise.resolve({ bytesRead: 0, buffer: args[0] }) : Reflect.apply(read, this, args);
    } as never);
    await Promise.all(Array.from({ length: 50 }, async (_, n) => set(storage, `a${n}`, 1).catch(() => {})));
    for (let n = 0; n < 50; n++) await set(storage, `a${n}`, 2).catch(() => {});
    await storage.close();
  });

  test('is no device, and nothing takes the place of one', async () => {
    const fifo = join(directory, 'pipe');
    execFileSync('mkfifo', [fifo]);
    await expect(start({ file: fifo })).rejects.toThrow('file: expected the path of a file, or an unused path');
    expect((await stat(fifo)).isFIFO()).toBe(true);
  });

  test('is no directory, and nothing is made beside one', async () => {
    await expect(start({ file: directory })).rejects.toMatchObject({ code: 'EISDIR', syscall: 'open' });
    await expect(stat(`${directory}.watchmux-new`)).rejects.toMatchObject({ code: 'ENOENT' });
  });

  test('is not an empty one, which nothing makes: its objects are gone, and that is told', async () => {
    await writeFile(file, '');
    await expect(start()).rejects.toMatchObject({
      code: 'INVALID_FRAME',
      message: expect.stringMatching(
        /damaged at byte 0: it is empty\. Delete it to begin a new history; if it is mounted by itself, /,
      ),
    });
    expect(await readdir(directory)).toEqual(['data']);
    await rm(file);
    await set(await start(), 'a', 1);
  });

  test('is written whole by a system that takes less than it is given', async () => {
    const prototype = await handles();
    const { write } = prototype;
    vi.spyOn(prototype, 'write').mockImplementation(function little(this: FileHandle, ...args: unknown[]) {
      const [bytes, from, length, position] = args as [Uint8Array, number, number, number];
      return Reflect.apply(write, this, [bytes, from, Math.min(length, 7), position]);
    } as never);
    await set(await start(), 'a', 1);
    await opened[0]?.close();
    expect(await stateOf(await start())).toBe('a=1@2');
  });

  test.each([
    ['no whole frame', undefined, 'byte 0: its snapshot is incomplete'],
    ['another format', ['{"journal":2,"r":1,"items":0}'], 'not a journal of format 1'],
    ['no title', ['null'], 'not a journal of format 1'],
    ['a revision that is none', ['{"journal":1,"r":-1,"items":0}'], '-1 is not a whole number'],
    ['fewer objects than its title says', ['{"journal":1,"r":1,"items":1}'], 'its snapshot is incomplete'],
    ['a record without a key', ['{"journal":1,"r":1,"items":0}', '{"r":2,"d":true}'], 'a record has no key'],
    ['a record without its object', ['{"journal":1,"r":1,"items":0}', '{"r":2,"k":"a"}'], 'a line has no end'],
    ['a record too few', ['{"journal":1,"r":1,"items":0}', '{"r":3,"k":"a","d":true}'], 'revision 3 follows 1'],
  ])('with %s is refused, and told why', async (_name, lines, why) => {
    const body = (lines ?? []).map((line) => `${line}\n`).join('');
    await writeFile(file, lines ? toFrame(new TextEncoder().encode(body)) : 'short');
    const error = await start().catch((error: unknown) => error);
    expect(error).toMatchObject({ code: 'INVALID_FRAME', position: expect.any(Number) });
    expect((error as Error).message).toContain(`${why}. Restore it from a copy`);
  });

  // Written by the first version that had a file: five writes and a deletion, and, after a restart, one with a time to live.
  test('of an older version opens: objects, a deletion, a key beyond ASCII, a time to live, and the past', async () => {
    const older =
      '9VdNSgAAAB5KnZeE3OFzuHsiam91cm5hbCI6MSwiciI6MSwiaXRlbXMiOjB9CvVXTUoAAABNYLqKufbb+ZF7InIiOjIsImsiOiJvcmRlcnMvYSJ9' +
      'CnsibWV0YWRhdGEiOnsibmFtZSI6ImEiLCJyZXNvdXJjZVZlcnNpb24iOiIyIn0sIm4iOjF9CvVXTUoAAABhjHCWh9VtlnR7InIiOjMsImsiOiJv' +
      'cmRlcnMvw7wifQp7Im1ldGFkYXRhIjp7Im5hbWUiOiJ1IiwicmVzb3VyY2VWZXJzaW9uIjoiMyJ9LCJ0ZXh0IjoidGVhIOKAkyBmb3IgdHdvIn0K' +
      '9VdNSgAAAE3YkBtZ05cF8XsiciI6NCwiayI6Im9yZGVycy9hIn0KeyJtZXRhZGF0YSI6eyJuYW1lIjoiYSIsInJlc291cmNlVmVyc2lvbiI6IjQi' +
      'fSwibiI6Mn0K9VdNSgAAAEeJJCZFVig3qnsiciI6NSwiayI6Im9yZGVycy9jIn0KeyJtZXRhZGF0YSI6eyJuYW1lIjoiYyIsInJlc291cmNlVmVy' +
      'c2lvbiI6IjUifX0K9VdNSgAAACDi3tiCpnGB03siciI6NiwiayI6Im9yZGVycy9jIiwiZCI6dHJ1ZX0K9VdNSgAAAFn0ew7gjKz2SHsiciI6Nywi' +
      'ayI6Im9yZGVycy9kIiwieCI6Mjc5NTk1MDQ0MDQ4OH0KeyJtZXRhZGF0YSI6eyJuYW1lIjoiZCIsInJlc291cmNlVmVyc2lvbiI6IjcifX0K';
    await writeFile(file, Buffer.from(older, 'base64'));
    const storage = await start({ now: () => Date.UTC(2026, 10, 29) });
    expect(await stateOf(storage)).toBe('a=2@4 d=undefined@7 u=undefined@3');
    expect(await storage.get('orders/ü')).toMatchObject({ text: 'tea – for two' });
    const watch = await storage.watch({ resourceVersion: '4' });
    const events = [await watch.next(), await watch.next(), await watch.next()];
    const told = events.map(({ value }) => `${value?.type} ${(value?.object as Thing | undefined)?.metadata?.resourceVersion}`);
    expect(told).toEqual(['ADDED 5', 'DELETED 6', 'ADDED 7']);
    await watch.return();
  });

  test('that begins anew can be read by those who could before', async () => {
    const storage = await start({ minCompactBytes: 1 });
    await chmod(file, 0o600);
    const { ino } = await stat(file);
    await set(storage, 'a', 1);
    await expect.poll(async () => (await stat(file)).ino).not.toBe(ino);
    expect((await stat(file)).mode & 0o777).toBe(0o600);
  });

  test('that is closed while a new file takes the place of the old one writes what it has taken', async () => {
    const prototype = await handles();
    const storage = await start({ minCompactBytes: 1 });
    const sync = prototype.sync;
    let writing: Promise<unknown> | undefined;
    let closing: Promise<void> | undefined;
    // Only a switch makes such a sync.
    vi.spyOn(prototype, 'sync').mockImplementation(async function held(this: FileHandle): Promise<void> {
      if (writing === undefined) {
        writing = set(storage, 'late', 2);
        closing = storage.close();
      }
      await sync.call(this);
    });
    await set(storage, 'a', 1);
    await eventually(() => expect(closing).toBeDefined());
    await expect(writing).resolves.toMatchObject({ n: 2 });
    await closing;
    vi.restoreAllMocks();
    expect(await stateOf(await start())).toBe('a=1@2 late=2@3');
  });

  test('is there again when it is opened again, with its versions, its past and its deletions', async () => {
    const first = await start();
    expect(await first.currentVersion()).toBe('1');
    await set(first, 'a', 1);
    await set(first, 'b', 1);
    await set(first, 'a', 2);
    await first.delete('b');
    await first.close();
    const second = await start();
    expect(await stateOf(second)).toBe('a=2@4');
    expect(await second.currentVersion()).toBe('5');
    const watch = await second.watch({ resourceVersion: '2' });
    expect((await set(second, 'c', 1)).metadata?.resourceVersion).toBe('6');
    const seen = [];
    for (let left = 4; left > 0; left--) seen.push((await watch.next()).value);
    expect(seen.map((event) => `${event?.type} ${(event?.object as Thing | undefined)?.metadata?.name}`)).toEqual([
      'ADDED b',
      'MODIFIED a',
      'DELETED b',
      'ADDED c',
    ]);
  });

  test('shows a write when it is safe, not before; nor is a refusal told that is decided by it', async () => {
    const storage = await start();
    await set(storage, 'a', 1);
    const watch = await storage.watch({ resourceVersion: await storage.currentVersion() });
    const prototype = await handles();
    let release: () => void = () => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    vi.spyOn(prototype, 'datasync').mockImplementationOnce(() => held);
    let answers = 0;
    const write = set(storage, 'a', 2).then(() => answers++);
    const taken = storage.create('b', thing('b')).then(() => answers++);
    const refused = storage.create('b', thing('b')).catch((error: unknown) => {
      answers++;
      return isWatchError(error) ? error.status?.reason : error;
    });
    await new Promise((resolve) => setImmediate(resolve));
    expect(await stateOf(storage)).toBe('a=1@2');
    expect(await storage.get('b')).toBeUndefined();
    expect(await storage.currentVersion()).toBe('2');
    expect(watch.tryNext()).toBeUndefined();
    expect(answers).toBe(0);
    release();
    await Promise.all([write, taken]);
    expect(await refused).toBe('AlreadyExists');
    expect(await stateOf(storage)).toBe('a=2@3 b=0@4');
    expect((await watch.next()).value?.type).toBe('MODIFIED');
  });

  test('writes together what comes together', async () => {
    const storage = await start();
    const sync = vi.spyOn(await handles(), 'datasync');
    await Promise.all(Array.from({ length: 100 }, (_, n) => set(storage, `k${n}`, n)));
    expect(sync.mock.calls.length).toBeLessThanOrEqual(2);
  });

  test('survives being cut at any byte: what was answered is there, and nothing that was not written', async () => {
    const storage = await start();
    /** How long the file was when a write was answered, and what was there then. */
    const answered: { size: number; state: string; version: string }[] = [];
    const note = async (): Promise<void> => {
      const { size } = await stat(file);
      answered.push({ size, state: await stateOf(storage), version: await storage.currentVersion() });
    };
    await note();
    for (let n = 0; n < 6; n++) {
      await Promise.all([set(storage, 'a', n), set(storage, `b${n}`, n)]);
      await note();
    }
    await storage.delete('a');
    await note();
    await storage.close();
    const whole = await readFile(file);
    expect(whole.byteLength).toBe(answered.at(-1)?.size);
    const begin = answered[0]?.size as number;
    await inLanes(upTo(whole.byteLength, begin), async (length, copy) => {
      await writeFile(copy, whole.subarray(0, length));
      const torn: TornTail[] = [];
      const again = await openMemoryStorage<Thing>({ file: copy, startRevision: 1, onTornTail: (tail) => torn.push(tail) });
      const last = answered.filter(({ size }) => size <= length).at(-1);
      expect([await stateOf(again), await again.currentVersion()]).toEqual([last?.state, last?.version]);
      expect(torn.length).toBe(length === last?.size ? 0 : 1);
      if (torn[0]) expect(torn[0]).toMatchObject({ offset: last?.size, bytes: length - (last?.size as number) });
      await set(again, 'new', 1);
      await again.close();
      const third = await openMemoryStorage<Thing>({ file: copy, startRevision: 1 });
      expect((await third.get('new'))?.n).toBe(1);
      await third.close();
    });
  });

  test('refuses what is damaged in the middle, and leaves it as it is', async () => {
    const storage = await start();
    for (let n = 0; n < 4; n++) await set(storage, 'a', n);
    await storage.close();
    const whole = await readFile(file);
    await inLanes(upTo(whole.byteLength - 1), async (at, copy) => {
      const damaged = Uint8Array.from(whole);
      damaged[at] = (damaged[at] as number) ^ 0x10;
      await writeFile(copy, damaged);
      const error = await openMemoryStorage<Thing>({ file: copy }).catch((error: unknown) => error);
      expect(isWatchError(error, 'INVALID_FRAME') && error.message).toMatch(/ is damaged at byte \d+: [a-z].+\. Restore it/);
      expect(await readFile(copy)).toEqual(Buffer.from(damaged));
    });
  });

  test('is read whole if it is larger than what is read at once', async () => {
    const text = 'x'.repeat(2 ** 20);
    const storage = await openMemoryStorage<Thing & { readonly text: string }>({
      file,
      startRevision: 1,
      minCompactBytes: 2 ** 30,
    });
    for (let round = 0; round < 4; round++) {
      const numbers = Array.from({ length: 9 }, (_, at) => 9 * round + at);
      await Promise.all(numbers.map((n) => storage.create(`${n}`, { ...thing(`${n}`, n), text })));
    }
    await storage.close();
    expect((await stat(file)).size).toBeGreaterThan(2 ** 25);
    const again = await start();
    const found = (await again.list()).items.map(({ n }) => n).sort((one, other) => one - other);
    expect(found).toEqual(Array.from({ length: 36 }, (_, n) => n));
    expect(await again.currentVersion()).toBe('37');
  });

  test('has of its past what its history may hold, whatever the file holds; the rest is in the state', async () => {
    const first = await start();
    for (let n = 1; n <= 20; n++) await set(first, `k${n % 4}`, n);
    await first.delete('k1');
    await first.close();
    for (const [maxHistoryItems, oldest] of [
      [0, '22'],
      [5, '17'],
      [100, '1'],
    ] as const) {
      const storage = await openMemoryStorage<Thing>({ file, startRevision: 1, maxHistoryItems });
      expect([storage.oldestVersion, storage.stats.historyItems]).toEqual([oldest, 22 - Number(oldest)]);
      expect(await stateOf(storage)).toBe('k0=20@21 k2=18@19 k3=19@20');
      await storage.close();
    }
    const whole = await openMemoryStorage<Thing>({ file, startRevision: 1 });
    const { historyBytes } = whole.stats;
    await whole.close();
    // As much as by writing it: not one byte more, and what one byte less leaves out.
    for (const [less, oldest] of [
      [0, '1'],
      [1, '2'],
    ] as const) {
      const storage = await openMemoryStorage<Thing>({ file, startRevision: 1, maxHistoryBytes: historyBytes - less });
      expect(storage.oldestVersion).toBe(oldest);
      await storage.close();
    }
  });

  test('says how much of it has been read', async () => {
    const storage = await start({ minCompactBytes: 2 ** 30 });
    const text = 'x'.repeat(2 ** 20);
    for (let n = 0; n < 40; n += 10) {
      await Promise.all(
        Array.from({ length: 10 }, (_, at) => storage.create(`${n + at}`, { ...thing(`${n + at}`), text } as Thing)),
      );
    }
    await storage.close();
    const { size } = await stat(file);
    const told: number[] = [];
    await start({ onProgress: ({ bytes, ofBytes }) => void told.push(bytes, ofBytes) });
    expect(told.filter((_, at) => at % 2 === 1)).toEqual([size, size]);
    expect([told[0], told[2]]).toEqual([0, expect.toSatisfy((bytes) => bytes > 2 ** 24 && bytes < 2 ** 25)]);
  });

  test('takes the zeros of a write that never came to the disk for a torn end', async () => {
    const storage = await start();
    await set(storage, 'a', 1);
    const { size } = await stat(file);
    await set(storage, 'b', 1);
    await storage.close();
    const whole = await readFile(file);
    for (const lost of [Uint8Array.from(whole).fill(0, size), Buffer.concat([whole.subarray(0, size), Buffer.alloc(2_000)])]) {
      await writeFile(file, lost);
      const again = await openMemoryStorage<Thing>({ file, startRevision: 1 });
      expect(await stateOf(again)).toBe('a=1@2');
      await again.close();
    }
  });

  test('begins anew when the file has grown, and goes on meanwhile', async () => {
    const storage = await start({ minCompactBytes: 2_000 });
    // It goes on while the new file is made, which may take long: at least for 60 rounds, and until there is one.
    for (let round = 0; round < 60 || (await stat(file)).size >= 30_000; round++) {
      await Promise.all(Array.from({ length: 10 }, (_, n) => set(storage, `k${n}`, round)));
    }
    await set(storage, 'last', 1);
    const [state, version] = [await stateOf(storage), await storage.currentVersion()];
    await storage.close();
    expect((await stat(file)).size).toBeLessThan(30_000);
    const again = await start();
    expect([await stateOf(again), await again.currentVersion()]).toEqual([state, version]);
    await expect(stat(`${file}.watchmux-new`)).rejects.toMatchObject({ code: 'ENOENT' });
  });

  test('that cannot begin anew goes on, leaves nothing behind, and tries again later', async () => {
    const storage = await start({ minCompactBytes: 500 });
    const full = Object.assign(new Error('no space left on device'), { code: 'ENOSPC' });
    // Only a new file is given the old one's mode.
    const failing = vi.spyOn(await handles(), 'chmod').mockImplementation(async () => {
      expect((await stat(`${file}.watchmux-new`)).isFile()).toBe(true);
      throw full;
    });
    for (let n = 0; failing.mock.calls.length === 0; n++) await set(storage, 'a', n);
    await eventually(() => expect(stat(`${file}.watchmux-new`)).rejects.toMatchObject({ code: 'ENOENT' }));
    failing.mockRestore();
    const { ino } = await stat(file);
    for (let n = 0; (await stat(file)).ino === ino; n++) await set(storage, 'b', n);
    expect((await storage.get('b'))?.n).toBeGreaterThan(0);
  });

  test('gives up the lock of a file before the file, whose number another may have then', async () => {
    const storage = await start({ minCompactBytes: 500 });
    const prototype = await handles();
    const { datasync } = prototype;
    const order: string[] = [];
    vi.spyOn(prototype, 'datasync').mockImplementationOnce(async function synced(this: FileHandle) {
      (this as FileHandle & EventEmitter).once('close', () => order.push('closed'));
      await datasync.call(this);
    });
    const { close } = Server.prototype;
    vi.spyOn(Server.prototype, 'close').mockImplementation(function unlocked(this: Server, ...args) {
      order.push('unlocked');
      return close.apply(this, args);
    });
    for (let n = 0; !order.includes('closed'); n++) await set(storage, 'a', n);
    expect(order).toEqual(['unlocked', 'closed']);
  });

  test('leaves no new file behind if it cannot take the place of the old one, or cannot be made', async () => {
    const storage = await start({ minCompactBytes: 1 });
    const full = Object.assign(new Error('no space left on device'), { code: 'ENOSPC' });
    // Only a switch, and a new file, make such a sync.
    const failing = vi.spyOn(await handles(), 'sync').mockRejectedValue(full);
    await set(storage, 'a', 1);
    await eventually(() => expect(failing).toHaveBeenCalled());
    await eventually(() => expect(stat(`${file}.watchmux-new`)).rejects.toMatchObject({ code: 'ENOENT' }));
    const other = join(directory, 'other');
    await expect(start({ file: other })).rejects.toBe(full);
    for (const left of [other, `${other}.watchmux-new`]) await expect(stat(left)).rejects.toMatchObject({ code: 'ENOENT' });
  });

  test('that cannot take the place of the old one, which is whole, does not end the writing', async () => {
    const errors: unknown[] = [];
    const storage = await start({ minCompactBytes: 500, onError: (error) => errors.push(error) });
    const full = Object.assign(new Error('no space left on device'), { code: 'ENOSPC' });
    const failing = vi.spyOn(await handles(), 'sync').mockRejectedValueOnce(full);
    for (let n = 0; failing.mock.calls.length === 0; n++) await set(storage, 'a', n);
    await eventually(() => expect(stat(`${file}.watchmux-new`)).rejects.toMatchObject({ code: 'ENOENT' }));
    await set(storage, 'b', 1);
    expect(errors).toEqual([expect.objectContaining({ code: 'INVALID_ARGUMENT', cause: full })]);
    const { ino } = await stat(file);
    for (let n = 0; (await stat(file)).ino === ino; n++) await set(storage, 'c', n);
    await storage.close();
    expect(await stateOf(await start())).toContain('b=1@');
  });

  test('that cannot begin anew says so, once for each kind of failure until it can, and is tried when it has doubled', async () => {
    const errors: unknown[] = [];
    const storage = await start({ minCompactBytes: 500, onError: (error) => errors.push(error) });
    const next = `${file}.watchmux-new`;
    const inTheWay = {
      code: 'INVALID_ARGUMENT',
      message: expect.stringMatching(
        /data cannot be rewritten, and keeps growing: .*watchmux-new.*\. Its directory must be writable/,
      ),
      cause: expect.objectContaining({ code: 'ERR_FS_EISDIR' }),
    };
    const writeUpTo = async (bytes: number): Promise<void> => {
      for (let n = 0; (await stat(file)).size < bytes; n++) await set(storage, 'a', n);
    };
    await mkdir(next);
    await writeUpTo(8_000);
    await eventually(() => expect(errors).toEqual([expect.objectContaining(inTheWay)]));

    // It was tried in vain at 500, 1,000, 2,000 and 4,000 bytes, or a little later; and now it fails for another reason.
    const full = Object.assign(new Error('no space left on device'), { code: 'ENOSPC' });
    const failing = vi.spyOn(await handles(), 'chmod').mockRejectedValueOnce(full);
    await rmdir(next);
    await writeUpTo(18_000);
    await eventually(() => expect(errors).toMatchObject([inTheWay, { code: 'INVALID_ARGUMENT', cause: full }]));

    const { ino } = await stat(file);
    for (let n = 0; (await stat(file)).ino === ino; n++) await set(storage, 'a', n);
    expect(errors).toHaveLength(2);
    failing.mockRejectedValueOnce(full);
    for (let n = 0; errors.length === 2; n++) await set(storage, 'a', n);
    expect(errors[2]).toMatchObject({ cause: full });
    expect(await storage.checkHealth()).toBeUndefined();
  });

  test('is closed, although something stands where the new file would be', async () => {
    const storage = await start();
    await mkdir(`${file}.watchmux-new`);
    await storage.close();
  });

  test('is of its owner only: a new one, and one that begins anew', async () => {
    const storage = await start({ minCompactBytes: 1 });
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    const { ino } = await stat(file);
    await set(storage, 'a', 1);
    await expect.poll(async () => (await stat(file)).ino).not.toBe(ino);
    expect((await stat(file)).mode & 0o777).toBe(0o600);
  });

  test('leaves the own file of a user beside it alone, and does not follow a link that stands where the new file will be', async () => {
    const [own, linked] = [`${file}.new`, join(directory, 'linked')];
    for (const each of [own, linked]) await writeFile(each, 'mine');
    await symlink(linked, `${file}.watchmux-new`);
    const storage = await start({ minCompactBytes: 1 });
    await symlink(linked, `${file}.watchmux-new`);
    const { ino } = await stat(file);
    await set(storage, 'a', 1);
    await expect.poll(async () => (await stat(file)).ino).not.toBe(ino);
    await storage.close();
    for (const each of [own, linked]) expect(await readFile(each, 'utf8')).toBe('mine');
  });

  test('removes at its start what another process has left of a new file', async () => {
    const before = await start();
    await set(before, 'a', 1);
    await before.close();
    await writeFile(`${file}.watchmux-new`, 'half of a snapshot');
    expect(await stateOf(await start())).toBe('a=1@2');
    await expect(stat(`${file}.watchmux-new`)).rejects.toMatchObject({ code: 'ENOENT' });
  });

  test('goes on with times to live', async () => {
    let now = 1_000_000;
    const first = await start({ clock: new FakeClock(), now: () => now, minCompactBytes: 0 });
    await first.create('a', thing('a'), { ttlSeconds: 10 });
    await first.create('b', thing('b'), { ttlSeconds: 10 });
    await first.create('c', thing('c'), { ttlSeconds: 100 });
    await set(first, 'b', 1);
    await first.close();
    now += 9_000;
    const clock = new FakeClock();
    const second = await start({ clock, now: () => now });
    clock.advance(900);
    expect((await second.list()).items).toHaveLength(3);
    clock.advance(200);
    await set(second, 'd', 1); // what was deleted before is safe when this is
    expect((await second.list()).items.map(({ metadata }) => metadata?.name)).toEqual(['b', 'c', 'd']);
    await second.close();
    expect(clock.pending).toBe(0);
  });

  test('stops writing when the disk fails, and shows nothing that may be lost', async () => {
    const errors: unknown[] = [];
    const storage = await start({ onError: (error) => errors.push(error) });
    await set(storage, 'a', 1);
    const full = Object.assign(new Error('no space left on device'), { code: 'ENOSPC' });
    vi.spyOn(await handles(), 'datasync').mockRejectedValueOnce(full);
    // It may be there: it was written, and nobody knows whether it has come to the disk.
    await expect(set(storage, 'a', 2)).rejects.toMatchObject({ code: 'TIMEOUT', cause: full });
    const refused = await set(storage, 'a', 3).catch((error: unknown) => error);
    expect(refused).toMatchObject({
      cause: full,
      status: { code: 500, message: 'the journal has failed: nothing is written any more' },
    });
    expect(await stateOf(storage)).toBe('a=1@2');
    expect(errors).toEqual([full]);
    await storage.close();
  });

  test('close makes safe what was asked before, and nothing pends', async () => {
    const storage = await start();
    const writes = [set(storage, 'a', 1), set(storage, 'b', 1)];
    const closing = storage.close();
    await Promise.all(writes);
    await closing;
    expect(await stateOf(await start())).toBe('a=1@2 b=1@3');
  });

  test.each([
    [undefined, 'file: expected a path, got undefined'],
    [{ file: '' }, 'file: expected a path, got ""'],
    [{ file: 5 }, 'file: expected a path, got 5'],
    [{ file: 'x', minCompactBytes: -1 }, 'minCompactBytes: expected'],
    [{ file: 'x', onTornTail: 5 }, 'onTornTail: expected'],
    [{ file: 'x', onProgress: 5 }, 'onProgress: expected'],
    [{ file: 'x', now: 5 }, 'now: expected'],
    [{ file: 'x', journal: {} }, 'journal: expected none: it is made from the file'],
    [{ file: 'x', fiel: 1 }, 'unknown option fiel'],
  ])('refuses %o', async (options, words) => {
    const refused = { code: 'INVALID_ARGUMENT', message: expect.stringContaining(words) };
    const given = options?.file === 'x' ? { ...options, file } : options;
    await expect(openMemoryStorage(given as { file: string })).rejects.toMatchObject(refused);
    expect(await readdir(directory)).toEqual([]);
  });

  describe('makes a rename last', () => {
    /** Has syncs of the directory fail, those of files not. Returns the handles of the directory. */
    async function withDirectory(failure?: Error): Promise<FileHandle[]> {
      const prototype = await handles();
      const found: FileHandle[] = [];
      const { sync } = prototype;
      vi.spyOn(prototype, 'sync').mockImplementation(async function syncs(this: FileHandle) {
        if (!(await this.stat()).isDirectory()) return await sync.call(this);
        found.push(this);
        if (failure) throw failure;
        await sync.call(this);
      });
      return found;
    }
    const broken = Object.assign(new Error('i/o error'), { code: 'EIO' });

    test('by a sync of the directory, when a file is made and when one takes its place', async () => {
      const synced = await withDirectory();
      const storage = await start({ minCompactBytes: 500 });
      expect(synced.map(({ fd }) => fd)).toEqual([-1]); // closed again
      for (let n = 0; synced.length === 1; n++) await set(storage, 'a', n);
      await set(storage, 'b', 1);
      expect(synced.map(({ fd }) => fd)).toEqual([-1, -1]);
    });

    test('and writes nothing more where a file took its place, and that fails', async () => {
      const errors: unknown[] = [];
      const storage = await start({ minCompactBytes: 500, onError: (error) => errors.push(error) });
      await withDirectory(broken);
      let failure: unknown;
      for (let n = 0; failure === undefined && n < 1_000; n++) {
        // Ten at once, so that a switch comes also between two groups.
        const writes = Array.from({ length: 10 }, (_, at) => set(storage, `k${at}`, n));
        for (const { status, ...rest } of await Promise.allSettled(writes)) {
          if (status === 'rejected') failure ??= (rest as { reason: unknown }).reason;
        }
      }
      expect(errors).toEqual([broken]);
      await expect(set(storage, 'b', 1)).rejects.toMatchObject({ status: { code: 500 } });
    });

    test('and makes none where that fails', async () => {
      const synced = await withDirectory(broken);
      await expect(start()).rejects.toBe(broken);
      expect(synced.map(({ fd }) => fd)).toEqual([-1]);
    });

    test('except on Windows, which cannot', async () => {
      withoutLock();
      vi.spyOn(process, 'platform', 'get').mockReturnValue('win32');
      const synced = await withDirectory(broken);
      await set(await start(), 'a', 1);
      expect(synced).toHaveLength(1);
    });
  });
});

describe('a frame', () => {
  test('is what it was, or torn, or corrupt', () => {
    for (const sum of [crc32, slowCrc32]) expect(sum(new TextEncoder().encode('123456789'))).toBe(0xcbf43926);
    const frame = toFrame(Uint8Array.of(1, 2, 3));
    expect(frameAt(frame, 0)).toEqual({ body: Uint8Array.of(1, 2, 3), end: HEAD_BYTES + 3 });
    expect(frameAt(frame, frame.byteLength)).toBe('end');
    expect(frameAt(frame.subarray(0, -1), 0)).toBe('torn');
  });

  test('in a sector that was not written, with another behind it, is corrupt; without, torn', () => {
    const [one, two] = [toFrame(new Uint8Array(2_000).fill(1)), toFrame(new Uint8Array(2_000).fill(2))];
    const file = new Uint8Array([...one, ...two]);
    expect(frameAt(file.slice().fill(0, 0, 512), 0)).toBe('corrupt');
    expect(frameAt(one.slice().fill(0, 0, 512), 0)).toBe('torn');
    expect(frameAt(one.slice().fill(0, 512, 1_024), 0)).toBe('torn');
    expect(frameAt(file.slice().fill(0, 512, 1_024), 0)).toBe('corrupt');
    expect(frameAt(one.slice().fill(3, 600, 601), 0)).toBe('corrupt');
  });

  test('of another mark is none, whatever its checksums; what is shorter than a head is torn', () => {
    const frame = toFrame(Uint8Array.of(1));
    const other = frame.slice();
    other[3] = 0;
    new DataView(other.buffer).setUint32(12, crc32(other.subarray(0, 12)));
    expect(frameAt(other, 0)).toBe('corrupt');
    const noise = new Uint8Array(HEAD_BYTES).fill(7);
    expect(frameAt(noise, 0)).toBe('corrupt');
    expect(frameAt(noise, 1)).toBe('torn');
  });

  test('in a sector that was not written, from its place on, is torn, whatever came to the disk behind that', () => {
    const one = toFrame(new Uint8Array(84));
    const file = new Uint8Array(1_500).fill(7);
    file.set(one);
    file.fill(0, one.byteLength, 512);
    expect(frameAt(file, one.byteLength)).toBe('torn');
    expect(frameAt(file.fill(7, 511, 512), one.byteLength)).toBe('corrupt');
  });

  test('behind a sector that was not written is one only if its head is whole, be it the last thing there is', () => {
    const head = toFrame(Uint8Array.of(1, 2)).subarray(0, HEAD_BYTES);
    const file = (tail: Uint8Array): Uint8Array => new Uint8Array([...new Uint8Array(512), ...tail]);
    expect(frameAt(file(head), 0)).toBe('corrupt');
    expect(frameAt(file(head.subarray(0, -1)), 0)).toBe('torn');
    expect(frameAt(file(head.subarray(0, 4)), 0)).toBe('torn');
    // The first byte of a mark is in many things that are no head.
    expect(frameAt(file(new Uint8Array(100).fill(head[0] as number)), 0)).toBe('torn');
    expect(frameAt(file(new Uint8Array([...new Uint8Array(50).fill(head[0] as number), ...head])), 0)).toBe('corrupt');
  });

  test('has lost a sector only if as much of that is empty as a head takes', () => {
    /** A frame whose body ends so far behind a sector's beginning, with zeros there, and with one byte changed before. */
    const changed = (zeros: number): Uint8Array => {
      const frame = toFrame(new Uint8Array(512 - HEAD_BYTES + zeros).fill(1, 0, 512 - HEAD_BYTES));
      return frame.fill(9, 100, 101);
    };
    expect([1, 15, 16, 17, 400].map((zeros) => frameAt(changed(zeros), 0))).toEqual([
      'corrupt',
      'corrupt',
      'torn',
      'torn',
      'torn',
    ]);
  });

  test('has its sectors where the file has them, wherever it begins itself', () => {
    const first = toFrame(new Uint8Array(84).fill(1));
    const second = toFrame(new Uint8Array(1_400).fill(2));
    const file = new Uint8Array([...first, ...second]);
    expect(frameAt(file.slice().fill(0, 512, 1_024), first.byteLength)).toBe('torn');
    expect(frameAt(file.slice().fill(0, 513, 1_024), first.byteLength)).toBe('corrupt');
    expect(frameAt(file.slice().fill(0, 600, 1_112), first.byteLength)).toBe('corrupt');
  });
});

test.each<[number, number[]]>([
  [1, []],
  [1, [10, 20, 30]],
  [1, [600_000, 600_000]],
  [2, [600_000, 600_000, 10]],
  [3, Array.from({ length: 8 }, () => 500_000)],
])('a snapshot is in frames of about 1 MiB: in %d, with records of %j', async (expected, sizes) => {
  const records = sizes.map((size, n) => {
    const json = new TextEncoder().encode(JSON.stringify({ metadata: { name: `${n}` }, text: 'x'.repeat(size) }));
    return { revision: n + 2, key: `${n}`, json };
  });
  const handle = await open(file, 'w+');
  const size = await writeSnapshot(handle, { revision: 100, records }, 0);
  await handle.close();
  const bytes = await readFile(file);
  expect(size).toBe(bytes.byteLength);
  const frames: number[] = [];
  for (let at = 0; at < size; ) {
    const found = frameAt(bytes, at);
    if (typeof found === 'string') throw new Error(found);
    frames.push(found.body.byteLength);
    at = found.end;
  }
  const mib = 2 ** 20;
  expect(frames).toHaveLength(expected);
  for (const [at, length] of frames.entries()) {
    expect(length).toBeGreaterThan(0);
    if (at < frames.length - 1) expect(length).toBeGreaterThanOrEqual(mib);
    expect(length).toBeLessThan(mib + 600_000);
  }
});

test('a compaction of what was loaded encodes it frame by frame, and keeps nothing of that', async () => {
  const count = 12;
  const pad = 'x'.repeat(300_000);
  let storage = await start();
  for (let n = 0; n < count; n++) await storage.create(`a${n}`, { ...thing(`a${n}`, n), pad } as Thing);
  await storage.close();
  storage = await start({ minCompactBytes: 1, maxHistoryItems: 1 });
  const steps: string[] = [];
  const { stringify } = JSON;
  vi.spyOn(JSON, 'stringify').mockImplementation(((value: unknown, ...rest: []) => {
    if (typeof (value as { pad?: unknown } | null)?.pad === 'string') steps.push('encode');
    return stringify(value, ...rest);
  }) as typeof JSON.stringify);
  const prototype = await handles();
  const { write } = prototype;
  vi.spyOn(prototype, 'write').mockImplementation(function writes(this: FileHandle, ...args: unknown[]) {
    steps.push('write');
    return write.apply(this, args as never);
  } as never);
  const before = (await stat(file)).ino;
  await set(storage, 'b', 1);
  await eventually(async () => expect((await stat(file)).ino).not.toBe(before));
  const isEncode = (step: string): boolean => step === 'encode';
  expect(steps.filter(isEncode)).toHaveLength(count);
  // Four of them are a frame.
  expect(steps.some((_, at) => at + 5 <= steps.length && steps.slice(at, at + 5).every(isEncode))).toBe(false);
  for (const object of (await storage.list()).items) encoded(object);
  expect(steps.filter(isEncode)).toHaveLength(2 * count);
});

test('a record that is read keeps nothing else of its file in memory', async () => {
  const storage = await start();
  for (let n = 1; n <= 3; n++) await set(storage, `a${n}`, n);
  await storage.close();
  const handle = await open(file, 'r');
  for (const maxItems of [0, 1, 100]) {
    const history = { maxItems, maxBytes: 10_000, maxAgeMs: 0 };
    const { state, writes } = await load(handle, { file, now: 0, history });
    const [before, after] = [[...state.records], [...writes]];
    expect([before.length, after.length]).toEqual(maxItems === 0 ? [3, 0] : maxItems === 1 ? [2, 1] : [0, 3]);
    for (const { key, json } of [...before, ...after]) {
      const text = new TextDecoder().decode(json);
      expect([JSON.parse(text).metadata.name, json?.buffer.byteLength]).toEqual([key, text.length]);
    }
  }
  await handle.close();
});

describe('a FileJournal', () => {
  const HISTORY = { maxItems: 100, maxBytes: 10_000, maxAgeMs: Number.POSITIVE_INFINITY };
  const record = (revision: number) => ({ revision, key: 'a'.repeat(500), json: undefined });

  test('that has failed refuses everything later with the same error', async () => {
    const journal = await FileJournal.open({ file, minCompactBytes: 1, history: HISTORY, now: () => 0 });
    const full = Object.assign(new Error('no space left on device'), { code: 'ENOSPC' });
    const failing = vi.spyOn(await handles(), 'write').mockRejectedValueOnce(full);
    await expect(journal.append(record(2))).rejects.toBe(full);
    await expect(journal.append(record(3))).rejects.toBe(full);
    expect(failing).toHaveBeenCalledTimes(1);
    await journal.close();
  });

  test('that has failed does not replace its file either, by what it has begun before', async () => {
    const journal = await FileJournal.open({ file, minCompactBytes: 1, history: HISTORY, now: () => 0 });
    journal.restore((revision) => ({ revision, records: [] }));
    const prototype = await handles();
    const { datasync } = prototype;
    let release: () => void = () => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    // The first one is of a group, the second of a new file.
    const syncs = vi.spyOn(prototype, 'datasync').mockImplementationOnce(function first(this: FileHandle) {
      return datasync.call(this);
    });
    syncs.mockImplementationOnce(() => held);
    await journal.append(record(2));
    await eventually(() => expect(syncs).toHaveBeenCalledTimes(2));
    vi.spyOn(prototype, 'write').mockRejectedValueOnce(new Error('disk'));
    await expect(journal.append(record(3))).rejects.toThrow('disk');
    const { ino } = await stat(file);
    release();
    await turn(); // it is whole, and would take its place
    await journal.close();
    expect((await stat(file)).ino).toBe(ino);
  });

  test('that is closed takes nothing more, and touches nothing that may be of the next one', async () => {
    const journal = await FileJournal.open({ file, minCompactBytes: 1, history: HISTORY, now: () => 0 });
    const closing = journal.close();
    await expect(journal.append(record(2))).rejects.toMatchObject({ code: 'CLOSED', message: 'the journal is closed' });
    await closing;
    await writeFile(`${file}.watchmux-new`, 'of the next one');
    await journal.close();
    expect(await readFile(`${file}.watchmux-new`, 'utf8')).toBe('of the next one');
  });
});
