// The operators of operators.test.ts as processes, and what they ask a server for.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'tsup';
import entryPoints from '../../../config/entry-points.json' with { type: 'json' };
import { component } from '../../components.ts';
import type { ProxiedRequest } from '../proxy.ts';

const LOG_CHARS = 6_000;
const END_MS = 10_000;
const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

/** How a program is started: URL, namespace and registry come last. */
export interface Program {
  readonly words: readonly string[];
}

/** A program that runs. It ends when the test does: the kernel closes its standard input. */
export class OperatorProcess {
  /** The end of what it has written. */
  log: string = '';
  /** Rejects when it has ended, unless it was ended. */
  readonly ended: Promise<never>;
  readonly #child: ChildProcess;
  #isStopped: boolean = false;

  constructor({ words: [command = '', ...words] }: Program, args: readonly string[]) {
    const child = spawn(command, [...words, ...args], { stdio: ['pipe', 'pipe', 'pipe'] });
    this.#child = child;
    child.stdin.on('error', () => {});
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => {
        this.log = (this.log + text).slice(-LOG_CHARS);
      });
    this.ended = new Promise((_, reject) => {
      child.on('exit', (code) => this.#isStopped || reject(new Error(`the operator has ended (${code})`)));
    });
    this.ended.catch(() => {});
  }

  get hasEnded(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  /** Ends it as a crash does. */
  async kill(): Promise<void> {
    const gone = this.hasEnded ? undefined : once(this.#child, 'exit');
    this.#isStopped = true;
    this.#child.kill('SIGKILL');
    await gone;
  }

  /** Asks it to end, as a cluster does. */
  async end(): Promise<void> {
    const gone = this.hasEnded ? undefined : once(this.#child, 'exit');
    this.#isStopped = true;
    this.#child.kill('SIGTERM');
    const late = setTimeout(() => this.#child.kill('SIGKILL'), END_MS);
    await gone;
    clearTimeout(late);
  }
}

/** Our own, bundled from the sources. `remove` removes it. */
export async function bundled(): Promise<Program & { remove(): void }> {
  const outDir = mkdtempSync(join(tmpdir(), 'watchmux-operator-'));
  const alias = Object.fromEntries(
    Object.entries(entryPoints).map(([name, path]) => [`watchmux/${name}`, here(`../../../${path}`)]),
  );
  await build({
    ...{
      config: false,
      entry: { main: here('main.ts') },
      format: 'esm',
      platform: 'node',
      target: 'es2022',
      outDir,
      silent: true,
    },
    noExternal: [/^watchmux/],
    outExtension: () => ({ js: '.mjs' }),
    esbuildOptions: (options) => Object.assign(options, { alias }),
  });
  return { words: [process.execPath, join(outDir, 'main.mjs')], remove: () => rmSync(outDir, { recursive: true, force: true }) };
}

/** The one with controller-runtime. */
export const GO: Program = { words: [component('controller-runtime').path, 'website'] };
/** The one with kopf. */
export const KOPF: Program = {
  words: ['env', `PYTHONPATH=${component('python-clients').path}`, 'python3', here('../python-clients/website.py')],
};

/** Requests by verb and resource, such as `patch deployments`; what is asked about the API itself is `discovery`. */
export function countsOf(seen: readonly ProxiedRequest[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { method, url, isWatch } of seen) {
    const [, resource, name, part] =
      /^\/apis?\/.*?namespaces\/[^/]+\/([^/]+)(?:\/([^/]+))?(?:\/([^/]+))?$/.exec(url.pathname) ?? [];
    const verb = isWatch ? 'watch' : method === 'GET' && !name ? 'list' : method.toLowerCase();
    const what = resource ? `${verb} ${resource}${part ? `/${part}` : ''}` : 'discovery';
    counts[what] = (counts[what] ?? 0) + 1;
  }
  return Object.fromEntries(Object.entries(counts).sort(([one], [other]) => (one < other ? -1 : 1)));
}

const READS = /^(get|list|watch|discovery)\b/;

/** How many requests there were in all, and how many writes. */
export function sumOf(counts: Readonly<Record<string, number>>): { readonly all: number; readonly writes: number } {
  const sum = (entries: [string, number][]): number => entries.reduce((total, [, count]) => total + count, 0);
  const entries = Object.entries(counts);
  return { all: sum(entries), writes: sum(entries.filter(([what]) => !READS.test(what))) };
}
