// Every example of README.md runs with the built package, and prints what README.md says. Its tables match the code.
import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { afterAll, describe, expect, test } from 'vitest';
import manifest from '../../package.json' with { type: 'json' };
import { DEFAULTS } from '../../src/bridge/protocol.ts';
import { GUARANTEES } from '../../src/testing/guarantees.ts';
import { until } from './cli.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const read = (path: string): string => readFileSync(join(root, path), 'utf8');
const readme = read('README.md');

interface Example {
  readonly heading: string;
  readonly language: string;
  readonly code: string;
  /** The text block right behind it. */
  readonly prints: string | undefined;
}

const examples: readonly Example[] = Array.from(
  readme.matchAll(/^```(ts|sh)\n(.*?)^```\n(?:\n(?:[^\n`]+\n\n)?```text\n(.*?)^```\n)?/gms),
  ({ 1: language = '', 2: code = '', 3: prints, index }) => {
    const heading = Array.from(readme.slice(0, index).matchAll(/^##+ (.*)$/gm)).at(-1)?.[1] ?? '';
    return { heading, language, code, prints };
  },
);

const shims = mkdtempSync(join(tmpdir(), 'watchmux-readme-'));
const children: Set<ChildProcess> = new Set();

afterAll(() => {
  // A shell and what it has started.
  for (const { pid } of children) if (pid !== undefined) process.kill(-pid, 'SIGKILL');
  rmSync(shims, { recursive: true, force: true });
});

interface Run {
  readonly text: () => string;
  readonly code: Promise<number | null>;
}

/** In the package's own folder, where `watchmux/...` means this package, as built. */
function run(command: string, args: readonly string[]): Run {
  const env = { ...process.env, NO_COLOR: '1', PATH: `${shims}${delimiter}${process.env.PATH}` };
  const child = spawn(command, args, { cwd: root, env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
  children.add(child);
  let text = '';
  for (const output of [child.stdout, child.stderr]) {
    output.setEncoding('utf8').on('data', (some: string) => {
      text += some;
    });
  }
  const code = new Promise<number | null>((resolve) => {
    child.on('close', (status) => {
      children.delete(child);
      resolve(status);
    });
  });
  return { text: () => text, code };
}

function runTypeScript(code: string): Run {
  const options = { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext, verbatimModuleSyntax: true };
  const { outputText } = ts.transpileModule(code, { compilerOptions: options });
  return run(process.execPath, ['--input-type=module', '--eval', outputText]);
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}

describe('the examples', () => {
  const code = examples.filter(({ language }) => language === 'ts');

  test('their types are correct under the strictest settings', () => {
    mkdirSync(join(root, 'reports'), { recursive: true });
    // Inside of the package, where its own name leads to its built doors.
    const folder = mkdtempSync(join(root, 'reports', 'readme-'));
    const files = code.map((_, at) => join(folder, `${at}.ts`));
    for (const [at, example] of code.entries()) writeFileSync(files[at] as string, example.code);
    const program = ts.createProgram(files, {
      noEmit: true,
      strict: true,
      noUncheckedIndexedAccess: true,
      exactOptionalPropertyTypes: true,
      verbatimModuleSyntax: true,
      skipLibCheck: true,
      target: ts.ScriptTarget.ES2022,
      module: ts.ModuleKind.NodeNext,
      types: ['node'],
    });
    const wrong = ts.getPreEmitDiagnostics(program).map(({ messageText, file }) => {
      return `${file?.fileName.slice(folder.length)}: ${ts.flattenDiagnosticMessageText(messageText, ' ')}`;
    });
    rmSync(folder, { recursive: true });
    expect(wrong).toEqual([]);
    // As for those of the examples: a run of the compiler takes a few seconds of processor time.
  }, 90_000);

  test('there is one for each use', () => {
    const headings = new Set(code.map(({ heading }) => heading));
    expect([...headings]).toEqual([
      'Publish and subscribe',
      'Share work between workers',
      'Backpressure and overflow policies',
      'Filter',
      'Decode a stream',
      'Decode custom formats',
      'RxJS',
      'Bridge to WebSocket, SSE and HTTP',
      'Example: snapshot, per-client filter and restart',
      'Test your own code',
      'Check the guarantees',
    ]);
    // No example is left out because it is written in another way; the lines for nginx are no program, and browser.test.ts runs the page.
    expect(readme.match(/^ *```\w*$/gm)?.filter((fence) => !/^```(ts|js|sh|text|nginx|)$/.test(fence))).toEqual([]);
    expect(readme.match(/^```js$/gm)).toHaveLength(1);
  });

  test.each(code)('$heading', async ({ code, prints }) => {
    expect(prints).toBeDefined();
    const example = runTypeScript(code);
    const status = await example.code;
    expect(example.text()).toBe(prints);
    expect(status).toBe(0);
  });

  test('Command line', async () => {
    const [server, client, ...rest] = examples.filter(({ heading, language }) => language === 'sh' && heading === 'Command line');
    expect(rest).toEqual([]);
    const npx = join(shims, 'npx');
    // `npx watchmux`, as it is where the package is installed.
    writeFileSync(
      npx,
      `#!/bin/sh\n[ "$1" = watchmux ] || exit 9\nshift\nexec "${process.execPath}" "${join(root, manifest.bin.watchmux)}" "$@"\n`,
    );
    chmodSync(npx, 0o755);
    const port = String(await freePort());
    const local = (text: string | undefined): string => (text ?? '').replaceAll('8080', port);
    const serving = run('bash', [
      '-c',
      `export PORT=${port}; ${local(server?.code).replace('watchmux pipe', `watchmux pipe --port ${port}`)}`,
    ]);
    await until(() => serving.text().includes('listening'));
    const watching = run('bash', ['-c', local(client?.code)]);
    expect(await watching.code).toBe(0);
    // Each life of a server has an epoch of its own.
    const [epoch = ''] = /(?<=resourceVersion":")\w+/.exec(watching.text()) ?? [];
    expect(watching.text()).toBe(local(client?.prints).replaceAll('3f9a6c0d5b1e7a42', epoch));
    expect(await serving.code).toBe(0);
    expect(serving.text()).toBe(local(server?.prints));
  });

  test('the first two commands work', () => {
    const commands = examples
      .filter(({ language, heading }) => language === 'sh' && heading === 'Try it')
      .map(({ code }) => code);
    expect(commands).toEqual(['npm ci && npm run demo\n', 'npm ci && npm test\n']);
    expect(manifest.scripts).toMatchObject({ demo: expect.any(String), test: expect.any(String) });
  });
});

describe('the facts in README.md', () => {
  const section = (heading: string): string => readme.split(/^## /m).find((part) => part.startsWith(`${heading}\n`)) ?? '';
  /** A table's rows, without its head. */
  const rows = (text: string): string[][] =>
    Array.from(text.matchAll(/^\s*(?:\* )?\|(.*)\|$/gm), ([, row = '']) => row.split('|').map((cell) => cell.trim())).slice(2);

  test('the guarantees are those of the checkers', () => {
    const listed = Array.from(section('Guarantees').matchAll(/^- \*\*(\w+)\.\*\* (.*(?:\n {2}.*)*)/gm), ([, name, text = '']) => [
      name,
      text.replaceAll('\n  ', ' '),
    ]);
    expect(Object.fromEntries(listed)).toEqual(GUARANTEES);
  });

  test('the table of errors matches the code', () => {
    const table = rows(section('Errors'));
    expect(table.length).toBeGreaterThan(4);
    expect(table).toEqual(rows(read('src/watch/errors.ts')));
  });

  test('the policies are all in the table, in the order of the code', () => {
    const policies = rows(section('Backpressure and overflow policies')).map(([policy]) => policy);
    const declared = /OVERFLOWS.*?=\s*\[(.*?)\]/s.exec(read('src/broadcast/broadcaster.ts'))?.[1] ?? '';
    expect(policies).toEqual(Array.from(declared.matchAll(/'(.*?)'/g), ([, policy]) => `\`${policy}\``));
  });

  test('the limits match the code', () => {
    const table = new Map(rows(section('Limits and defaults')).map(([name, , value]) => [name?.replaceAll('`', ''), value]));
    // These two are part of the protocol, and nobody's option.
    const { maxParameterChars, retryMs, ...options } = DEFAULTS;
    expect([maxParameterChars, retryMs]).toEqual([256, 2_000]);
    for (const [name, value] of Object.entries(options)) {
      expect(`${name} ${table.get(name)}`).toBe(`${name} ${value.toLocaleString('en')}`);
    }
    const broadcaster = read('src/broadcast/broadcaster.ts');
    for (const name of ['capacity', 'incoming', 'maxPending']) {
      const [, value] = new RegExp(`\\b${name} = ([\\d_]+)`).exec(broadcaster) ?? [];
      expect(`${name} ${table.get(name)}`).toBe(`${name} ${Number(value?.replace('_', '')).toLocaleString('en')}`);
    }
  });

  test('the files that it names exist', () => {
    const links = Array.from(readme.matchAll(/\]\(([^)#:]+)\)/g), ([, path = '']) => path);
    expect(links.length).toBeGreaterThan(3);
    for (const link of links) expect(() => readFileSync(join(root, link))).not.toThrow();
  });
});
