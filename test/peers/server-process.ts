import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, openSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const LIMIT_MS = 2_000;

/** A server in a process of its own, with a folder for its log and its data. */
export abstract class ServerProcess {
  protected readonly dir: string;
  protected child: ChildProcess | undefined;

  constructor(name: string) {
    this.dir = mkdtempSync(join(tmpdir(), `watchmux-${name}-`));
  }

  /** Starts it, with the same data and port as before, and resolves when it is ready. */
  abstract start(): Promise<void>;

  /** The end of what it has written. */
  get log(): string {
    return readFileSync(join(this.dir, 'log'), 'utf8').slice(-3_000);
  }

  protected spawn(
    binary: string,
    args: readonly string[],
    options: Pick<SpawnOptions, 'env'> & { stdin: 'pipe' | 'ignore' },
  ): ChildProcess {
    if (this.child) throw new Error('it runs already');
    const log = openSync(join(this.dir, 'log'), 'a');
    this.child = spawn(binary, args, { ...options, stdio: [options.stdin, log, log] });
    return this.child;
  }

  /** Ends it as a crash does. Its data stay. */
  async kill(): Promise<void> {
    const { child } = this;
    if (!child) return;
    this.child = undefined;
    const gone = child.exitCode !== null || child.signalCode !== null ? undefined : once(child, 'exit');
    child.kill('SIGKILL');
    await gone;
  }

  pause(): void {
    pauseProcess(this.child);
  }

  resume(): void {
    this.child?.kill('SIGCONT');
  }

  /** Leaves nothing of it. */
  async stop(): Promise<void> {
    await this.kill();
    rmSync(this.dir, { recursive: true, force: true });
  }
}

/**
 * Stops a process with SIGSTOP, and returns when all its threads stand still. The signal alone comes too late under load: what is
 * sent to the process right after it may still be answered.
 */
export function pauseProcess(child: ChildProcess | undefined): void {
  if (!child?.pid || !child.kill('SIGSTOP')) return;
  const limit = performance.now() + LIMIT_MS;
  while (performance.now() < limit) if (threadsOf(child.pid).every((state) => state === 'T')) return;
  throw new Error(`process ${child.pid} has not stopped within ${LIMIT_MS} ms of SIGSTOP`);
}

/** The states of the threads of a process, as `proc` of Linux has them; none elsewhere. */
function threadsOf(pid: number): string[] {
  const tasks = `/proc/${pid}/task`;
  try {
    return readdirSync(tasks).map((task) => /^State:\s+(\w)/m.exec(readFileSync(`${tasks}/${task}/status`, 'utf8'))?.[1] ?? 'T');
  } catch {
    return [];
  }
}
