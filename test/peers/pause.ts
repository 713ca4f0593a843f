import type { ChildProcess } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';

const LIMIT_MS = 2_000;

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
