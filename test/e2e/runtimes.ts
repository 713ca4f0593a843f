// Bun and Deno for the tests that need them, and Node as one of them; see test/components.ts.
import type { ChildProcessWithoutNullStreams } from 'node:child_process';
import { spawn } from 'node:child_process';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { component, isMissing } from '../components.ts';
import { hear } from './cli.ts';

export interface Runtime {
  readonly name: string;
  readonly missing: boolean;
  /** Runs a program: its path, or that in the repository. */
  start(program: string, ...args: string[]): Started;
}

export interface Started {
  readonly child: ChildProcessWithoutNullStreams;
  readonly out: () => string;
  readonly err: () => string;
  /** The exit code and the whole output, once the program has ended. */
  readonly ended: Promise<[number | NodeJS.Signals, string]>;
}

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const children: Set<ChildProcessWithoutNullStreams> = new Set();

/** For afterAll: kills every child. */
export function endAll(): void {
  for (const child of children) child.kill('SIGKILL');
}

function runtime(name: 'Bun' | 'Deno' | 'Node', ...before: string[]): Runtime {
  const binary = name === 'Node' ? process.execPath : component(name).path;
  const missing = name !== 'Node' && isMissing(component(name));
  const start = (program: string, ...args: string[]): Started => {
    const env = { ...process.env, NO_COLOR: '1', DENO_NO_UPDATE_CHECK: '1' };
    const child = spawn(binary, [...before, resolve(ROOT, program), ...args], { env });
    const { out, err } = hear(child);
    children.add(child);
    const ended = new Promise<[number | NodeJS.Signals, string]>((settle, reject) => {
      child.on('error', reject);
      child.on('close', (code, signal) => {
        children.delete(child);
        settle([code ?? (signal as NodeJS.Signals), code === 0 ? out() : out() + err()]);
      });
    });
    // If the binary cannot be started, code that awaits this gets the error.
    ended.catch(() => {});
    return { child, out, err, ended };
  };
  return { name, missing, start };
}

/** This Node, to run the same program there. */
export const NODE: Runtime = runtime('Node');

export const RUNTIMES: readonly Runtime[] = [runtime('Bun'), runtime('Deno', 'run', '--allow-all')];
