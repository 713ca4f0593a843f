// Every example of README.md and docs/ runs with the built package, and prints what the page says.
import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import ts from 'typescript';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import manifest from '../../package.json' with { type: 'json' };
import { freePort } from '../peers/ports.ts';
import { until } from './cli.ts';
import { BLOCKS, type Block, PROGRAMS, ROOT } from './documents.mjs';

/** Marks of blocks that another test runs. */
const ELSEWHERE: readonly string[] = [
  ...['browser', 'vite'],
  ...['server.mjs', 'page.html', 'use-store.js', 'Orders.vue', 'from-store.js', 'Orders.svelte'].map(
    (file) => `frameworks ${file}`,
  ),
  ...['react server.ts', 'react session.ts', 'react orders.tsx', 'react price.tsx', 'react parts.tsx'],
];

/** `npm run typecheck` checks the types of these and of the others. */
const programs = PROGRAMS.filter(({ mark }) => mark === undefined || mark === 'packages');

const shims = mkdtempSync(join(tmpdir(), 'watchmux-documents-'));
const children: Set<ChildProcess> = new Set();

/** Ends a program and everything that it has started. */
function end({ pid }: ChildProcess, signal: NodeJS.Signals): void {
  if (pid !== undefined) process.kill(-pid, signal);
}

afterAll(() => {
  for (const child of children) end(child, 'SIGKILL');
  rmSync(shims, { recursive: true, force: true });
});

interface Run {
  readonly child: ChildProcess;
  readonly text: () => string;
  readonly code: Promise<number | null>;
}

/** In the package's own folder, where `watchmux/...` means this package, as built. */
function run(command: string, args: readonly string[], cwd: string = ROOT): Run {
  const env = { ...process.env, NO_COLOR: '1', PATH: `${shims}${delimiter}${process.env.PATH}` };
  const child = spawn(command, args, { cwd, env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
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
  return { child, text: () => text, code };
}

function runTypeScript(code: string): Run {
  const options = { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext, verbatimModuleSyntax: true };
  const { outputText } = ts.transpileModule(code, { compilerOptions: options });
  return run(process.execPath, ['--input-type=module', '--eval', outputText]);
}

/** Each life of a hub has an epoch of its own. The documents show this one. */
const withEpoch = (text: string): string => text.replace(/\b[0-9a-f]{16}(?=\.\d)/g, '3f9a6c0d5b1e7a42');

const titleOf = ({ page, heading }: Block): string => `${page}: ${heading}`;

describe('the examples', () => {
  test('there is one for each use', () => {
    expect([...new Set(programs.map(titleOf))]).toEqual([
      'README.md: Publish and subscribe',
      'README.md: Write an operator',
      'README.md: Serve clients',
      'README.md: Keep a live copy',
      'docs/apiserver.md: Serve your own objects',
      'docs/apiserver.md: Test a controller',
      'docs/apiserver.md: Resources',
      'docs/apiserver.md: Scale',
      "docs/apiserver.md: Kubernetes' own kinds",
      'docs/apiserver.md: Server-side apply',
      'docs/apiserver.md: Misspelt fields',
      'docs/apiserver.md: Admission',
      'docs/apiserver.md: Authentication and authorization',
      'docs/apiserver.md: Statistics',
      'docs/apply.md: Apply',
      'docs/backup.md: Restore',
      'docs/bridge.md: Bridge to WebSocket, SSE and HTTP',
      'docs/bridge.md: Send the current state first',
      'docs/bridge.md: Rooms',
      'docs/browser-security.md: Tokens, cookies and origins of web pages',
      'docs/cache.md: A store with indexes',
      'docs/cache.md: Queues of changes',
      'docs/decode.md: Decode a stream',
      'docs/decode.md: Decode other formats',
      'docs/definitions.md: Definitions at run time',
      'docs/definitions.md: Versions',
      'docs/embed.md: Use it in a program',
      'docs/embed.md: Publish',
      'docs/embed.md: Share work between workers',
      'docs/embed.md: Filter',
      'docs/embed.md: Topics',
      'docs/embed.md: Replay',
      'docs/for-sre.md: A restart at your desk',
      'docs/from-client-node.md: After',
      'docs/from-eventemitter.md: Before',
      'docs/from-eventemitter.md: After',
      'docs/from-go.md: After',
      'docs/from-socketio.md: After',
      'docs/monitoring.md: Metrics of a hub',
      'docs/monitoring.md: OpenTelemetry',
      'docs/operation.md: Connections between two requests',
      'docs/operation.md: Limits per address and tenant',
      'docs/operation.md: Shut down a hub',
      'docs/operators.md: An operator in thirty lines',
      'docs/operators.md: Helpers',
      'docs/operators.md: Events',
      'docs/operators.md: Test an operator',
      'docs/policies.md: Overflow policies',
      'docs/rxjs.md: RxJS',
      'docs/scaling.md: Hubs that do not share a stream',
      'docs/selectors.md: Selectors',
      'docs/storage.md: Keep objects with versions',
      'docs/storage.md: Writing',
      'docs/storage.md: Lists',
      'docs/storage.md: In a file',
      'docs/storage.md: A cache in front',
      'docs/storage.md: A storage of your own',
      'docs/testing.md: Feed a watch by hand',
      'docs/testing.md: Control time',
      'docs/testing.md: Check the guarantees',
      'docs/testing.md: Check a cache',
      'docs/transports.md: A transport of your own',
      'docs/webhooks.md: Webhooks',
      'docs/workqueue.md: Work through keys, each by one worker at a time',
      'docs/workqueue.md: Take keys yourself',
      'docs/workqueue.md: A controller',
      'docs/workqueue.md: One of several programs',
    ]);
    expect(programs.filter(({ prints }) => prints === undefined)).toEqual([]);
  });

  test('no example is left out because it is written in another way', () => {
    const marks = new Set(BLOCKS.map(({ mark }) => mark));
    const known = ['types', 'packages', ...ELSEWHERE];
    expect([...marks].filter((mark) => mark !== undefined && !known.includes(mark))).toEqual([]);
    expect([...known].filter((mark) => !marks.has(mark))).toEqual([]);
    const others = BLOCKS.filter(({ language, mark }) => mark === undefined && !['ts', 'text'].includes(language));
    expect(others.map((block) => `${titleOf(block)} ${block.language}`)).toEqual([
      'README.md: Try it sh',
      'README.md: Try it sh',
      'README.md: Serve your own objects sh',
      'docs/apiserver.md: Garbage collection sh',
      'docs/backup.md: Back up sh',
      'docs/backup.md: Restore sh',
      'docs/backup.md: etcd sh',
      'docs/clients.md: Run them sh',
      'docs/command-line.md: Command line sh',
      'docs/command-line.md: Command line sh',
      'docs/command-line.md: Command line sh',
      'docs/command-line.md: Print a collection sh',
      'docs/command-line.md: Write types sh',
      'docs/command-line.md: Serve objects sh',
      'docs/definitions.md: Definitions of files sh',
      'docs/etcd.md: TLS, user and password sh',
      'docs/from-go.md: Before go',
      'docs/from-socketio.md: Before js',
      'docs/kubernetes.md: Clusters sh',
      'docs/nats.md: One stream for many hubs, on NATS sh',
      'docs/operation.md: Start an API server sh',
      'docs/operation.md: Behind a proxy nginx',
      'docs/operation.md: Behind a proxy js',
      'docs/operators.md: In ten minutes sh',
      'docs/operators.md: In ten minutes sh',
      'docs/operators.md: Types sh',
      'docs/performance.md: Performance sh',
      'docs/performance.md: The stack sh',
      'docs/pipe-page.md: The page of pipe sh',
      'docs/scaling.md: API servers on one etcd sh',
    ]);
    // The proxy's handlers are those of the Vite configuration, which vite.test.ts runs.
    const plain = (text = ''): string =>
      text
        .replace(/\/\/.*/g, '')
        .replace(/\s+/g, ' ')
        .trim();
    expect(plain(BLOCKS.find(({ mark }) => mark === 'vite')?.code)).toContain(
      plain(others.find(({ page, language }) => page === 'docs/operation.md' && language === 'js')?.code),
    );
  });

  test.each(programs.map((block) => [titleOf(block), block] as const))('%s', async (_title, { code, prints }) => {
    const example = runTypeScript(code.replaceAll('8080', String(await freePort())));
    const status = await example.code;
    expect(withEpoch(example.text())).toBe(prints);
    expect(status).toBe(0);
  });

  describe('docs/command-line.md: Command line', () => {
    const [live, client, file] = BLOCKS.filter(({ page, language }) => page === 'docs/command-line.md' && language === 'sh');
    /** Figures differ from run to run. */
    const withoutFigures = (text = ''): string => withEpoch(text).replace(/\d+/g, '0');
    let local: (text?: string) => string;

    beforeAll(async () => {
      const npx = join(shims, 'npx');
      // `npx watchmux`, as it is where the package is installed.
      writeFileSync(
        npx,
        `#!/bin/sh\n[ "$1" = watchmux ] || exit 9\nshift\nexec "${process.execPath}" "${join(ROOT, manifest.bin.watchmux)}" "$@"\n`,
      );
      chmodSync(npx, 0o755);
      const port = String(await freePort());
      local = (text = '') => text.replaceAll('8080', port).replace('watchmux pipe', `watchmux pipe --port ${port}`);
    });

    /** Starts a server and the client, and returns what the client has printed when it is `lines` lines. Then: Ctrl-C. */
    async function printed({ code }: Block, lines: number): Promise<string> {
      const serving = run('bash', ['-c', local(code)], shims);
      await until(() => serving.text().includes('\n'));
      expect(serving.text()).toContain(local(live?.prints));
      const watching = run('bash', ['-c', local(client?.code)], shims);
      await until(() => watching.text().split('\n').length > lines);
      end(watching.child, 'SIGINT');
      end(serving.child, 'SIGINT');
      await Promise.all([watching.code, serving.code]);
      return watching.text();
    }

    test('a live source', async () => {
      expect(withoutFigures(await printed(live as Block, 2))).toContain(withoutFigures(client?.prints));
    });

    test('a file that has ended', async () => {
      writeFileSync(join(shims, 'events.ndjson'), '{"type":"tick","object":1}\n"two"\n');
      expect(withEpoch(await printed(file as Block, 2))).toBe(
        '{"type":"tick","object":1,"resourceVersion":"3f9a6c0d5b1e7a42.1"}\n' +
          '{"type":"ADDED","object":"two","resourceVersion":"3f9a6c0d5b1e7a42.2"}\n',
      );
    });
  });

  test('the first two commands work', () => {
    const commands = BLOCKS.filter(({ heading }) => heading === 'Try it').map(({ code }) => code);
    expect(commands).toEqual([
      'git clone ADDRESS watchmux && cd watchmux\nnpm ci && npm run demo\n', // release.test.ts has the address
      'ping localhost | npx watchmux pipe --raw\n',
    ]);
    expect(manifest.scripts).toMatchObject({ demo: expect.any(String), prepack: expect.any(String) });
  });
});
