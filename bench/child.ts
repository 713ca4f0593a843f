import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { Order, Reply } from './worker.ts';

/** The running processes. */
const running: Set<ChildProcess> = new Set();

/** Ends every process started here. */
export function killAll(): void {
  for (const child of running) child.kill('SIGKILL');
}

export interface ChildOptions {
  /** Time limit of a round or a warm-up. */
  readonly limitMs: number;
  /** Directory for the CPU profile of each process. */
  readonly profileTo?: string | undefined;
}

/** A worker process that handles one request at a time. */
export class Child {
  private readonly child: ChildProcess;
  private readonly limitMs: number;
  private readonly exited: Promise<void>;

  constructor({ limitMs, profileTo }: ChildOptions) {
    this.limitMs = limitMs;
    const execArgv = ['--expose-gc'];
    if (profileTo !== undefined) execArgv.push('--cpu-prof', `--cpu-prof-dir=${profileTo}`);
    this.child = fork(fileURLToPath(new URL('./worker.js', import.meta.url)), { execArgv });
    running.add(this.child);
    this.exited = new Promise((resolve) => {
      this.child.once('exit', () => {
        running.delete(this.child);
        resolve();
      });
    });
  }

  ask(order: Order): Promise<Reply> {
    const { child } = this;
    return new Promise((resolve) => {
      const settle = (reply: Reply): void => {
        clearTimeout(late);
        child.off('message', settle).off('exit', ended);
        resolve(reply);
      };
      const ended = (code: number | null, signal: string | null): void =>
        settle({ is: 'failed', why: `its process ended: ${signal ?? `code ${code}`}` });
      const late = setTimeout(() => settle({ is: 'failed', why: `no answer within ${this.limitMs / 1000} s` }), this.limitMs);
      child.on('message', settle).on('exit', ended);
      if (child.connected) child.send(order);
      else settle({ is: 'failed', why: 'its process has ended' });
    });
  }

  /** Lets the process exit by itself, so that it writes its profile, or kills it. */
  async end(): Promise<void> {
    if (this.child.connected) this.child.disconnect();
    const late = setTimeout(() => this.child.kill('SIGKILL'), 5_000);
    await this.exited;
    clearTimeout(late);
  }
}
