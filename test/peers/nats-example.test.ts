// The example of docs/nats.md prints what the page says, and the chat on NATS does what its README says: with the built package and a
// real nats-server.
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import ts from 'typescript';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { component, isMissing } from '../components.ts';
import { httpStream, until } from '../e2e/cli.ts';
import { type NatsServer, startNats } from './nats-server.ts';

const missing = isMissing(component('nats-server'));
const root = fileURLToPath(new URL('../..', import.meta.url));
let nats: NatsServer;
const children: Set<ChildProcess> = new Set();

beforeAll(async () => {
  if (!missing) nats = await startNats();
});
afterEach(() => {
  for (const child of children) child.kill('SIGKILL');
});
afterAll(() => nats?.stop());

test.skipIf(missing)('the example of docs/nats.md prints what the page says', async () => {
  const page = readFileSync(`${root}/docs/nats.md`, 'utf8');
  const [, code = '', , prints = ''] = /```ts\n([\s\S]*?)```\n(\s*)```text\n([\s\S]*?)```/.exec(page) ?? [];
  const own = code.replace('127.0.0.1:4222', nats.address).replace("stream: 'chat'", "stream: 'page'");
  const { outputText } = ts.transpileModule(own, {
    compilerOptions: { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext },
  });
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', outputText], { cwd: root });
  expect(stdout).toBe(prints);
});

interface Running {
  readonly child: ChildProcess;
  readonly lines: () => string[];
}

function start(...args: readonly string[]): Running {
  const child = spawn(process.execPath, ['examples/chat-on-nats/server.mjs', ...args], {
    cwd: root,
    env: { ...process.env, PORT: '0', NATS: nats.address },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  children.add(child);
  let out = '';
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    out += text;
  });
  return { child, lines: () => out.split('\n').slice(0, -1) };
}

async function server(): Promise<Running & { readonly url: string }> {
  const running = start();
  await until(() => running.lines().length > 0);
  return { ...running, url: (running.lines()[0] as string).slice('chat: '.length) };
}

async function end({ child }: Running): Promise<void> {
  const ended = once(child, 'exit');
  child.kill('SIGTERM');
  expect(await ended).toEqual([0, null]);
  children.delete(child);
}

const say = (url: string, text: string, id?: string): Promise<Response> =>
  fetch(url, {
    method: 'POST',
    headers: id === undefined ? {} : { 'message-id': id },
    body: JSON.stringify({ room: 'lobby', from: 'ann', text }),
  });

describe.skipIf(missing)('the chat on NATS', () => {
  test('what is said at one server is heard at the other, once, also by whoever changes servers; a worker misses nothing', async () => {
    const [one, two] = await Promise.all([server(), server()]);
    const worker = start('worker', 'archive');
    await until(() => worker.lines().length > 0);
    const here = await httpStream(one.url, { query: '?room=lobby' });
    expect((await say(two.url, 'hello', 'a')).status).toBe(202);
    expect((await say(one.url, 'hello', 'a')).status).toBe(202);
    await say(two.url, 'how are you?');
    await until(() => here.events().length === 2);
    const texts = (client: { events(): { object: unknown }[] }): string[] =>
      client.events().map(({ object }) => (object as { text: string }).text);
    expect(texts(here)).toEqual(['hello', 'how are you?']);
    await until(() => worker.lines().length === 3);
    const last = /^archive: (\S+) ann: how are you\?$/.exec(worker.lines()[2] as string)?.[1];
    await end(worker);
    await end(one);
    await say(two.url, 'still there?');
    const version = here.versions()[0] as string;
    const there = await httpStream(two.url, { query: `?room=lobby&resourceVersion=${encodeURIComponent(version)}` });
    await until(() => there.events().length === 2);
    expect(texts(there)).toEqual(['how are you?', 'still there?']);
    const again = start('worker', 'archive', last as string);
    await until(() => again.lines().length === 2);
    expect(again.lines()[1]).toContain('ann: still there?');
    expect((await fetch(two.url, { method: 'POST', body: '{"room":7}' })).status).toBe(400);
    await end(again);
    await end(two);
  });
});
