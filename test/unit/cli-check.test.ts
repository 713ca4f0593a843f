// `watchmux check`: what it says of a file, and the exit code.
import { execFileSync } from 'node:child_process';
import { copyFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type CheckCommand, parseCommand } from '../../src/cli/args.ts';
import { check } from '../../src/cli/check.ts';
import type { Output } from '../../src/cli/output.ts';
import { openMemoryStorage } from '../../src/storage/index.ts';
import { toFrame } from '../../src/storage/journal/records.ts';

let directory: string;
let file: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'watchmux-check-'));
  file = join(directory, 'data');
});
afterEach(() => rm(directory, { recursive: true }));

async function told(path: string = file): Promise<{ readonly code: number; readonly text: string }> {
  let text = '';
  const write = async (more: string): Promise<void> => {
    text += more;
  };
  const output = { write } as unknown as Output;
  const code = await check(parseCommand(['check', path]) as CheckCommand, output);
  return { code, text };
}

/** Writes some objects, and leaves the storage open. */
async function filled(): Promise<Awaited<ReturnType<typeof openMemoryStorage>>> {
  const storage = await openMemoryStorage({ file, startRevision: 1 });
  for (const name of ['a', 'b', 'c']) await storage.create(name, { metadata: { name } });
  await storage.delete('b');
  return storage;
}

describe('a file', () => {
  test('is whole: how much is in it, also while it is in use', async () => {
    const storage = await filled();
    const { length } = await readFile(file);
    const text = `whole: ${file} has 2 objects at version 5, and 4 changes before that, in ${length} bytes\n`;
    expect(await told()).toEqual({ code: 0, text });
    await storage.close();
    expect(await told()).toEqual({ code: 0, text });
    expect(await readFile(file)).toHaveLength(length);
  });

  test('may have one of something', async () => {
    const storage = await openMemoryStorage({ file, startRevision: 1 });
    await storage.create('a', { metadata: { name: 'a' } });
    await storage.close();
    expect((await told()).text).toMatch(/has 1 object at version 2, and 1 change before that, /);
  });

  test('is whole if its end was cut short, which it says, and leaves as it is', async () => {
    await (await filled()).close();
    const bytes = await readFile(file);
    await writeFile(file, bytes.subarray(0, bytes.length - 3));
    const { code, text } = await told();
    expect([code, text]).toEqual([
      0,
      expect.stringMatching(/^whole: .* 3 objects at version 4, .*\nIts end, \d+ bytes, is a write/),
    ]);
    expect(await readFile(file)).toHaveLength(bytes.length - 3);
  });

  test('is damaged at any of its bytes: where, and 1', async () => {
    await (await filled()).close();
    const bytes = await readFile(file);
    for (let at = 0; at < bytes.length; at += 7) {
      const damaged = Uint8Array.from(bytes);
      damaged[at] = (damaged[at] as number) ^ 0x10;
      await writeFile(file, damaged);
      expect(await told()).toEqual({
        code: 1,
        text: expect.stringMatching(/^damaged: the journal .* at byte \d+: .+\. Restore it/),
      });
    }
  });

  test('is damaged if it is empty, in the words with which it is refused when it is opened', async () => {
    await writeFile(file, '');
    const refusal = await openMemoryStorage({ file }).catch(String);
    const { code, text } = await told();
    expect([code, refusal]).toEqual([1, text.replace('damaged:', 'WatchError:').trim()]);
  });

  test.each([
    ['an object that is not JSON', '{"a', 'JSON'],
    ['an object of another version', '{"metadata":{"resourceVersion":"3"}}', 'the object under "k" has version 3 instead of 2'],
    ['an object without metadata', 'null', 'has version undefined instead of 2'],
  ])('with %s is damaged, though its checksums are right', async (_name, json, why) => {
    const lines = ['{"journal":1,"r":1,"items":0}', '{"r":2,"k":"k"}', json];
    await writeFile(file, toFrame(new TextEncoder().encode(lines.map((line) => `${line}\n`).join(''))));
    expect(await told()).toEqual({ code: 1, text: expect.stringContaining(why) });
  });

  test('that was copied while it was written is whole, and has what was answered before', async () => {
    const storage = await openMemoryStorage({ file });
    let answered = 0;
    const writes = Array.from({ length: 200 }, async (_, n) => {
      await storage.create(`${n}`, { metadata: { name: `${n}` } });
      answered++;
    });
    for (let n = 0; n < 5; n++) {
      const before = answered;
      await copyFile(file, `${file}.copy`);
      const { code, text } = await told(`${file}.copy`);
      expect([code, Number(/has (\d+) objects/.exec(text)?.[1])]).toEqual([0, expect.toSatisfy((count) => count >= before)]);
      await writes[20 * n];
    }
    await Promise.all(writes);
    await storage.close();
  });
});

test.each([
  [['check'], 'watchmux check: missing FILE, for example: watchmux check orders.data'],
  [['check', ''], 'watchmux check: missing FILE'],
  [['check', 'a', 'b'], 'watchmux check: unexpected argument "b": check takes one file'],
  [['check', 'a', '--repair'], 'unknown option'],
])('%o is refused', (argv, message) => {
  expect(() => parseCommand(argv)).toThrow(new RegExp(message, 'i'));
});

test('a pipe is not waited for', async () => {
  execFileSync('mkfifo', [file]);
  await expect(told()).rejects.toThrow('data" is not a file');
});

test.each([
  ['is not there', 'gone', /cannot read ".*gone": ENOENT/],
  ['is a directory', '.', /EISDIR|is not a file/],
])('a file that %s cannot be checked', async (_name, path, message) => {
  await expect(told(join(directory, path))).rejects.toThrow(message);
});
