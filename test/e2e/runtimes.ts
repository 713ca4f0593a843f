// Bun and Deno for the tests that need them. If one is missing, its tests skip and say so; with REQUIRE_COMPONENTS=1 they fail.
import type { ChildProcessWithoutNullStreams } from 'node:child_process';
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { hear } from './cli.ts';

const required = process.env.REQUIRE_COMPONENTS === '1';

export interface Runtime {
  readonly name: string;
  readonly missing: boolean;
  /** Runs a program of the repository. */
  start(program: string, ...args: string[]): Started;
}

export interface Started {
  readonly child: ChildProcessWithoutNullStreams;
  readonly out: () => string;
  /** The exit code and the whole output, once the program has ended. */
  readonly ended: Promise<[number | NodeJS.Signals, string]>;
}

const children: Set<ChildProcessWithoutNullStreams> = new Set();

/** For afterAll: kills every child. */
export function endAll(): void {
  for (const child of children) child.kill('SIGKILL');
}

function runtime(name: string, variable: string, ...before: string[]): Runtime {
  const binary = process.env[variable] ?? '';
  const missing = !existsSync(binary) && !required;
  if (missing) console.warn(`skipped: ${variable} names no ${name} (REQUIRE_COMPONENTS=1 makes that a failure)`);
  const env = { ...process.env, NO_COLOR: '1', DENO_NO_UPDATE_CHECK: '1' };
  const start = (program: string, ...args: string[]): Started => {
    const path = fileURLToPath(new URL(`../../${program}`, import.meta.url));
    const child = spawn(binary, [...before, path, ...args], { env });
    const { out, err } = hear(child);
    children.add(child);
    const ended = new Promise<[number | NodeJS.Signals, string]>((resolve, reject) => {
      child.on('error', reject);
      child.on('close', (code, signal) => {
        children.delete(child);
        resolve([code ?? (signal as NodeJS.Signals), code === 0 ? out() : out() + err()]);
      });
    });
    // If the binary cannot be started, whoever awaits this gets the error.
    ended.catch(() => {});
    return { child, out, ended };
  };
  return { name, missing, start };
}

export const RUNTIMES: readonly Runtime[] = [
  runtime('Bun', 'WATCHMUX_BUN'),
  runtime('Deno', 'WATCHMUX_DENO', 'run', '--allow-all'),
];
