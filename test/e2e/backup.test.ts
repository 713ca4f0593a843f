// Backup and restore as docs/backup.md tells it, with the built command line: copy, check, restore, and what a client sees.
import { appendFile, copyFile, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, expect, it } from 'vitest';
import { killAll, run, type Serving, serve, until } from './cli.ts';

const MAPS = '/api/v1/namespaces/default/configmaps';
let folder: string;
let file: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'watchmux-backup-'));
  file = join(folder, 'orders.data');
});
afterEach(() => rm(folder, { recursive: true }));
afterAll(killAll);

const create = (url: string, name: string): Promise<Response> =>
  fetch(url + MAPS, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ metadata: { name } }),
  });

interface Listed {
  readonly items: { readonly metadata: { readonly name: string } }[];
  readonly metadata: { readonly resourceVersion: string };
}
async function list(url: string): Promise<{ readonly names: string; readonly version: string }> {
  const { items, metadata } = (await (await fetch(url + MAPS)).json()) as Listed;
  return { names: items.map((item) => item.metadata.name).join(' '), version: metadata.resourceVersion };
}

/** The first event of a watch from a version, or the refusal. */
async function first(url: string, version: string): Promise<string> {
  const response = await fetch(`${url}${MAPS}?watch=1&timeoutSeconds=1&resourceVersion=${version}`);
  const text = (await response.text()).split('\n')[0] as string;
  const { type, object, code } = JSON.parse(text || '{}') as {
    type?: string;
    object?: { metadata?: { name?: string }; code?: number };
    code?: number;
  };
  return `${response.status} ${type ?? code ?? 'nothing'} ${object?.code ?? object?.metadata?.name ?? ''}`.trim();
}

async function checked(path: string): Promise<string> {
  const { exit, out } = run('check', path);
  return `${await exit} ${out()}`;
}

async function stop({ child, exit }: Serving): Promise<unknown> {
  child.kill('SIGTERM');
  return exit;
}

it('a copy of a running server is checked and restored; clients resume from before it, and are told 410 beyond', async () => {
  const one = await serve('--data', file);
  await create(one.url, 'a');
  const before = await list(one.url);
  await copyFile(file, `${file}.copy`);
  expect(await checked(`${file}.copy`)).toMatch(/^0 whole: .*orders\.data\.copy has \d+ objects at version \d{16}, /);
  for (let n = 0; n < 5; n++) await create(one.url, `lost-${n}`);
  const lost = await list(one.url);
  expect(await stop(one)).toBe(0);
  await copyFile(`${file}.copy`, file);
  const two = await serve('--data', file);
  for (let n = 0; n < 9; n++) await create(two.url, `kept-${n}`);
  expect((await list(two.url)).names).toMatch(/^a kept-0 [^l]*$/);
  expect(await first(two.url, before.version)).toBe('200 ADDED kept-0');
  expect(await first(two.url, lost.version)).toMatch(/410/);
  expect(await first(two.url, `${BigInt(lost.version) + 10n ** 15n}`)).toMatch(/410/);
  expect(await stop(two)).toBe(0);
  expect(await checked(file)).toMatch(/^0 whole: /);
});

it('a damaged copy is found, and what is no copy is said', async () => {
  const one = await serve('--data', file);
  await create(one.url, 'a');
  await stop(one);
  await copyFile(file, `${file}.copy`);
  await appendFile(`${file}.copy`, 'more');
  await appendFile(`${file}.copy`, Buffer.alloc(100, 'x'));
  expect(await checked(`${file}.copy`)).toMatch(/^1 damaged: the journal .* is damaged at byte \d+: not a journal frame\./);
  await writeFile(join(folder, 'text'), 'a text that is longer than the head of a frame');
  expect(await checked(join(folder, 'text'))).toMatch(/^1 damaged: /);
  const gone = run('check', join(folder, 'gone'));
  expect([await gone.exit, gone.err()]).toEqual([2, expect.stringContaining('watchmux check: cannot read')]);
});

it('a disk that fails: 500 without a path, reads go on, /livez and the metrics say so, and the exit code is 1', async () => {
  const server = await serve('--data', file);
  await create(server.url, 'a');
  await appendFile(file, 'of another process'); // as bad as a disk that fails: nothing may be written any more
  const codes: number[] = [];
  for (let n = 0; n < 3; n++) {
    const answer = await create(server.url, `b${n}`);
    codes.push(answer.status);
    expect(await answer.text()).not.toContain(folder);
  }
  expect(codes).toEqual([500, 500, 500]);
  expect((await list(server.url)).names).toBe('a');
  await until(async () => (await fetch(`${server.url}/livez`)).status === 503);
  expect((await fetch(`${server.url}/readyz`)).status).toBe(503);
  const metrics = await (await fetch(`${server.url}/metrics`)).text();
  for (const sample of ['storage_healthy 0', 'ready 0']) expect(metrics).toContain(`\nwatchmux_apiserver_${sample}\n`);
  expect(server.err()).toMatch(/storage-failed .*restart the server/);
  expect(await stop(server)).toBe(1);
});
