// What the commands do when their output cannot be written, and when their input cannot be read.
import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { existsSync, openSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { afterAll, describe, expect, test } from 'vitest';
import { CLI, killAll, open, pipe, run, until } from './cli.ts';

const children: Set<ChildProcess> = new Set();

afterAll(() => {
  killAll();
  for (const child of children) child.kill('SIGKILL');
});

/** A device that is always full. */
const FULL = '/dev/full';

interface Ended {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

/** Where the three standard streams of a command lead: to the test, to nothing, to a full device, or from a directory. */
type Stream = 'pipe' | 'ignore' | number;

async function ended(args: readonly string[], stdio: readonly [Stream, Stream, Stream], input = ''): Promise<Ended> {
  const child = spawn(process.execPath, [CLI, ...args], { stdio: [...stdio] });
  children.add(child);
  let out = '';
  let err = '';
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    out += text;
  });
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    err += text;
  });
  child.stdin?.on('error', () => {}).end(input);
  const code = await new Promise<number | null>((resolve) => child.on('close', resolve));
  return { code, out, err };
}

describe.skipIf(!existsSync(FULL))('output to a full device', () => {
  const full = (): number => openSync(FULL, 'w');

  test.each([
    ['pipe', ['pipe', '--port', '0', '--keep-open']],
    ['demo', ['demo', '--seconds', '600']],
    ['--help', ['--help']],
    ['--version', ['--version']],
  ])('%s: one line, exit code 1', async (name, args) => {
    const { code, err } = await ended(args, ['pipe', full(), 'pipe']);
    const lines = err.split('\n').filter((line) => line.includes('stdout'));
    expect(lines).toEqual([expect.stringMatching(/^watchmux(?: \w+)?: cannot write to stdout: ENOSPC\b.*$/)]);
    if (name !== 'pipe') expect(err).toBe(`${lines[0]}\n`);
    expect(code).toBe(1);
  });

  test('watch: one line, exit code 1; the stream is not read any further', async () => {
    const server = createServer((_request, response) => {
      response.setHeader('content-type', 'application/json').write('{"type":"A","object":1}\n');
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const { code, err } = await ended(['watch', `http://127.0.0.1:${port}`], ['ignore', full(), 'pipe']);
    expect(err).toMatch(/^watchmux watch: cannot write to stdout: ENOSPC\b.*\n$/);
    expect(code).toBe(1);
    server.close().closeAllConnections();
  });

  test('reports of pipe that cannot be written cost no event, but the exit code is 1', async () => {
    const { code, out } = await ended(['pipe', '--port', '0'], ['pipe', 'pipe', full()], 'bad\n1\n');
    expect(out).toMatch(/^listening on /);
    expect(code).toBe(1);
  });
});

describe('output that nobody reads any more', () => {
  test('demo ends early and quietly', async () => {
    const demo = run('demo', '--seconds', '600');
    await until(() => demo.out().includes('demo-apple'));
    demo.child.stdout.destroy();
    expect(await demo.exit).toBe(0);
    expect(demo.err()).toBe('');
  });

  test('pipe goes on: only its first line goes there', async () => {
    const server = await pipe();
    server.child.stdout.destroy();
    server.child.stderr.destroy();
    server.child.stdin.write('bad\n1\n');
    await until(async () => (await server.stats()).accepted === 1);
    server.child.stdin.end();
    expect(await server.exit).toBe(0);
  });
});

describe('input', () => {
  test('a directory as stdin of pipe is one line and exit code 1', async () => {
    const { code, out, err } = await ended(['pipe', '--port', '0'], [openSync(tmpdir(), 'r'), 'pipe', 'pipe']);
    expect(err).toBe('watchmux pipe: cannot read stdin: it is a directory\n');
    expect(out).toBe('');
    expect(code).toBe(1);
  });
});

describe('SIGHUP, as when a terminal is closed', () => {
  test('pipe drains its clients, as it does on SIGTERM', async () => {
    const server = await pipe();
    const response = await open(`${server.url}/watch`);
    let got = '';
    response.setEncoding('utf8').on('data', (text: string) => {
      got += text;
    });
    response.on('error', () => {});
    server.write(1);
    await until(() => got !== '');
    server.child.kill('SIGHUP');
    expect(await server.exit).toBe(0);
    expect(server.err()).toBe('watchmux pipe: 1 event, 0 lines skipped; 1 client: 1 delivered, 0 dropped\n');
  });

  test('demo ends with its sum, and removes its directory', async () => {
    const demo = run('demo', '--seconds', '600');
    await until(() => demo.out().includes('demo-apple'));
    demo.child.kill('SIGHUP');
    expect(await demo.exit).toBe(0);
    expect(demo.out()).toContain('add up');
    const [, path] = /files in (\S+),/.exec(demo.out()) as unknown as [string, string];
    expect(existsSync(path)).toBe(false);
  });
});

test.each([
  ['live-page.js', 63_000],
  ['objects-page.js', 147_000],
])('%s, the script of a page, has at most %i bytes', (name, most) => {
  expect(statSync(new URL(`../../dist/cli/${name}`, import.meta.url)).size).toBeLessThanOrEqual(most);
});
