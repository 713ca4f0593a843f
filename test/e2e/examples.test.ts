// Every example does what its README says, in its own process, on a free port, with the built package.
import type { ChildProcessWithoutNullStreams } from 'node:child_process';
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, test } from 'vitest';
import manifest from '../../package.json' with { type: 'json' };
import { freePort } from '../peers/ports.ts';
import { CHROMIUM_BROWSER } from './browsers.ts';
import type { Client } from './cli.ts';
import { httpStream, open, sse, until, webSocket } from './cli.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const names = readdirSync(join(root, 'examples'), { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => name);

const children: Set<ChildProcessWithoutNullStreams> = new Set();

afterAll(() => {
  for (const child of children) child.kill('SIGKILL');
});

interface Running {
  readonly child: ChildProcessWithoutNullStreams;
  readonly out: () => string;
  readonly exit: Promise<number | NodeJS.Signals>;
}

function start(script: string, options: { env?: Record<string, string>; args?: readonly string[] } = {}): Running {
  const child = spawn(process.execPath, [`examples/${script}`, ...(options.args ?? [])], {
    cwd: root,
    env: { ...process.env, PORT: '0', ...options.env },
  });
  children.add(child);
  let out = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      out += text;
    });
  }
  child.stdin.on('error', () => {});
  const exit = new Promise<number | NodeJS.Signals>((resolve) => {
    child.on('close', (code, signal) => {
      children.delete(child);
      resolve(code ?? (signal as NodeJS.Signals));
    });
  });
  return { child, out: () => out, exit };
}

/** Starts a server. Answers where it listens. */
async function serve(name: string, env: Record<string, string> = {}): Promise<Running & { readonly url: string }> {
  const running = start(`${name}/server.mjs`, { env });
  await until(() => running.out().includes('\n') || running.child.exitCode !== null);
  const url = /^[\w-]+: (http:\/\/127\.0\.0\.1:\d+)(\/watch)?\n/.exec(running.out())?.[1];
  if (url === undefined) throw new Error(running.out());
  return { ...running, url };
}

async function end(running: Running): Promise<void> {
  running.child.kill('SIGTERM');
  expect(await running.exit).toBe(0);
}

const versionsOf = (client: Client): string[] => client.versions().filter((version) => version !== undefined);
const typesOf = (client: Client): string[] => client.events().map(({ type }) => type);

describe('examples', () => {
  test.each(names)('%s: its README says how to start it, and the list names it', (name) => {
    const readme = readFileSync(join(root, `examples/${name}/README.md`), 'utf8');
    expect(readme).toMatch(new RegExp(`^(node|sh) examples/${name}/\\w+\\.(mjs|sh)`, 'm'));
    for (const [, path = ''] of readme.matchAll(/(?:node|sh) (examples\/[\w/.-]+)/g))
      expect(existsSync(join(root, path))).toBe(true);
    expect(readFileSync(join(root, 'examples/README.md'), 'utf8')).toContain(`[${name}](${name}/README.md)`);
  });

  test('they import existing entry points; `npm run typecheck` checks their types', () => {
    const files = names.flatMap((name) =>
      readdirSync(join(root, 'examples', name), { withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map((entry) => `examples/${name}/${entry.name}`),
    );
    const imports = files.flatMap((file) => [...readFileSync(join(root, file), 'utf8').matchAll(/from 'watchmux(.*?)'/g)]);
    for (const [, path] of imports) expect(Object.keys(manifest.exports)).toContain(`.${path}`);
    expect(imports.length).toBeGreaterThan(6);
  });
});

describe('reconcile', () => {
  test('one reconcile per customer, again while something is owed, and once more after each change', async () => {
    const running = start('reconcile/controller.mjs', { env: { REMIND_MS: '300' } });
    await until(() => running.out().includes('ann owes 0\n'));
    running.child.kill('SIGINT');
    expect(await running.exit).toBe(0);
    expect(running.out()).toMatch(
      /^ann owes 42\nbob owes 0\n(ann still owes 42\n)+ann owes 12\n(ann still owes 12\n)+ann owes 0\nstopped\n$/,
    );
  });
});

describe('live-table', () => {
  test.skipIf(CHROMIUM_BROWSER.missing)(
    'the page shows jobs from an index, says when it is offline, and catches up',
    async () => {
      const cache = mkdtempSync(join(tmpdir(), 'watchmux-live-table-'));
      const env = { EVERY: '0', VITE_CACHE: cache, PORT: String(await freePort()) };
      const server = await serve('live-table', env);
      const browser = await CHROMIUM_BROWSER.launch();
      const page = await browser.newPage();
      const faults: string[] = [];
      page.on('pageerror', (error) => faults.push(String(error)));
      const shows = (selector: string, text: RegExp): Promise<unknown> =>
        page.waitForFunction(`${text}.test(document.querySelector(${JSON.stringify(selector)})?.textContent)`);
      await page.goto(server.url);
      await shows('[role=status]', /^live: [1-9]\d* jobs$/);
      await page.click('text=/^queued/');
      const queued = Number(/\d+/.exec((await page.textContent('button[aria-pressed=true]')) ?? '')?.[0]);
      expect(queued).toBeGreaterThan(0);
      expect(await page.locator('tbody tr').count()).toBe(queued);
      await end(server);
      await shows('[role=status]', /^offline: showing [1-9]\d* jobs as they were$/);
      expect(await page.locator('tbody tr').count()).toBe(queued);
      const again = await serve('live-table', { ...env, EVERY: '20' });
      await shows('[role=status]', /^live: \d+ jobs$/);
      await shows('tbody', /job-[1-9]\d/); // a job that came later
      await browser.close();
      await end(again);
      rmSync(cache, { recursive: true, force: true });
      expect(faults).toEqual([]);
    },
  );
});

describe('chat', () => {
  const post = (url: string, room: string, body: unknown): Promise<Response> =>
    fetch(`${url}/rooms/${room}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
  const textsOf = (client: Client): string[] => client.events().map(({ object }) => (object as { text: string }).text);

  test('each client gets the messages of its room only, also after a reconnect', async () => {
    const server = await serve('chat');
    const lobby = await sse(server.url, { query: '?room=lobby' });
    const attic = await webSocket(server.url, { query: '?room=attic' });
    for (const [room, text] of [
      ['lobby', 'one'],
      ['attic', 'two'],
      ['lobby', 'three'],
    ] as const) {
      expect((await post(server.url, room, { from: 'ann', text })).status).toBe(202);
    }
    await until(() => lobby.texts.length === 2 && attic.texts.length === 1);
    expect([textsOf(lobby), textsOf(attic)]).toEqual([['one', 'three'], ['two']]);
    lobby.close();
    await post(server.url, 'attic', { from: 'bob', text: 'four' });
    await post(server.url, 'lobby', { from: 'bob', text: 'five' });
    const back = await sse(server.url, { query: '?room=lobby', headers: { 'last-event-id': lobby.ids.at(-1) as string } });
    await until(() => back.texts.length > 0);
    expect(textsOf(back)).toEqual(['five']);
    expect((await post(server.url, 'lobby', { from: '', text: 'x' })).status).toBe(400);
    await end(server);
    expect([await attic.ended, await back.ended]).toEqual(['1001', 'broken']);
  });
});

describe('orders', () => {
  const put = (url: string, name: string, body: unknown): Promise<Response> =>
    fetch(`${url}/orders/${name}`, { method: 'PUT', body: JSON.stringify(body) });

  test('the state, a bookmark, then changes; and with a version, only what came after it', async () => {
    const server = await serve('orders', { EVERY: '0' });
    const client = await httpStream(server.url);
    await until(() => client.texts.length === 4);
    expect(typesOf(client)).toEqual(['ADDED', 'ADDED', 'ADDED', 'BOOKMARK']);
    await put(server.url, '7', { total: 30 });
    await put(server.url, '7', { total: 30, state: 'paid' });
    await fetch(`${server.url}/orders/1`, { method: 'DELETE' });
    await until(() => client.texts.length === 7);
    expect(typesOf(client).slice(4)).toEqual(['ADDED', 'MODIFIED', 'DELETED']);
    const [bookmark, ...rest] = versionsOf(client);
    const again = await httpStream(server.url, { query: `?resourceVersion=${bookmark}` });
    await until(() => again.texts.length === 3);
    expect(again.texts).toEqual(client.texts.slice(4));
    expect(versionsOf(again)).toEqual(rest);
    expect((await put(server.url, '8', 'x'.repeat(2_000))).status).toBe(400);
    expect((await open(`${server.url}/other`)).statusCode).toBe(404);
    await end(server);
  });

  test('the client continues after a restart of the server: 410, a new snapshot, then changes', async () => {
    const env = { EVERY: '0', PORT: String(await freePort()) };
    const first = await serve('orders', env);
    const client = start('orders/client.mjs', { args: [`${first.url}/watch`] });
    await until(() => client.out().includes('-- end of the snapshot: 3 orders'));
    await put(first.url, '7', { total: 30 });
    await until(() => client.out().includes('ADDED 7: 30, placed; 4 orders'));
    first.child.kill('SIGKILL');
    await until(() => client.out().includes('waiting'));
    const before = client.out().length;
    const second = await serve('orders', env);
    await until(() => client.out().slice(before).includes('-- end of the snapshot: 3 orders'));
    expect(client.out().slice(before)).toMatch(/ERROR 410: .*ADDED 1: 10, placed; 1 orders/s);
    await put(second.url, '1', { total: 5 });
    await until(() => client.out().includes('MODIFIED 1: 5, placed; 3 orders'));
    await end(client);
    await end(second);
  });
});

describe('hono', () => {
  test('admits clients with a token, and sends only the requested symbol', async () => {
    const server = await serve('hono');
    expect((await open(`${server.url}/watch`)).statusCode).toBe(401);
    const client = await sse(server.url, { query: '?symbol=ABC&token=guest' });
    await until(() => client.texts.length >= 3);
    expect(new Set(client.events().map(({ object }) => (object as { symbol: string }).symbol))).toEqual(new Set(['ABC']));
    await end(server);
    expect(await client.ended).toBe('complete');
  });
});

describe('dashboard', () => {
  test('shows the containers in its input, whatever else is in there, and ends with it', async () => {
    const containers = start('dashboard/containers.mjs', { env: { COUNT: '8', EVERY: '1' } });
    expect(await containers.exit).toBe(0);
    const server = await serve('dashboard');
    server.child.stdin.write(`not JSON\n${containers.out()}{"Type":"network","Action":"connect"}\n\n`);
    let late = await httpStream(server.url);
    // Who comes late enough gets all six in the snapshot; two of the eight lines were about containers that were there already.
    await until(async () => {
      late.close();
      late = await httpStream(server.url);
      await until(() => typesOf(late).includes('BOOKMARK'));
      return typesOf(late).length === 7;
    });
    expect(typesOf(late)).toEqual([...Array(6).fill('ADDED'), 'BOOKMARK']);
    const gone = { Type: 'container', Action: 'destroy', Actor: { Attributes: { name: 'web', image: 'x' } }, time: 1 };
    server.child.stdin.end(JSON.stringify(gone));
    expect(await late.ended).toBe('complete');
    expect(late.events().at(-1)).toMatchObject({ type: 'DELETED', object: { metadata: { name: 'web' } } });
    expect(await server.exit).toBe(0);
  });
});

test.skipIf(CHROMIUM_BROWSER.missing)('the pages of chat, hono and dashboard show the events', async () => {
  const browser = await CHROMIUM_BROWSER.launch();
  const faults: string[] = [];
  const visit = async (url: string) => {
    const page = await browser.newPage();
    page.on('pageerror', (error) => faults.push(String(error)));
    await page.goto(url);
    return page;
  };
  const [chat, hono, dashboard] = await Promise.all([serve('chat'), serve('hono'), serve('dashboard')]);
  const talk = await visit(chat.url);
  await talk.waitForFunction(() => document.querySelector('#state')?.textContent === 'in lobby');
  await talk.fill('#text', '<i>hello</i>');
  await talk.keyboard.press('Enter');
  await talk.waitForFunction(() => document.querySelector('#messages')?.textContent === 'me<i>hello</i>');
  const prices = await visit(hono.url);
  await prices.waitForFunction(() => document.querySelectorAll('tr').length === 3);
  const table = await visit(dashboard.url);
  const started = { Type: 'container', Action: 'start', Actor: { Attributes: { name: 'web', image: 'x' } }, time: 1 };
  dashboard.child.stdin.write(`${JSON.stringify(started)}\n`);
  await table.waitForFunction(() => document.querySelector('p')?.textContent?.startsWith('1 of 1 are running'));
  expect(faults).toEqual([]);
  await browser.close();
  for (const server of [chat, hono, dashboard]) await end(server);
});
