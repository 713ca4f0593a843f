import { readdirSync, readFileSync } from 'node:fs';

/**
 * Processor time of another process so far, of all its threads, in ms. What the kernel counts for `ps` has steps of 10 ms, which is
 * what a round takes; the scheduler's own figures are in nanoseconds.
 */
export function processorMsOf(pid: number): number {
  const tasks = `/proc/${pid}/task`;
  const ns = readdirSync(tasks).reduce((sum, task) => sum + Number(scheduled(`${tasks}/${task}/schedstat`)), 0);
  return ns / 1e6;
}

function scheduled(path: string): string {
  try {
    return readFileSync(path, 'latin1').split(' ', 1)[0] ?? '0';
  } catch {
    return '0'; // a thread that has ended in between
  }
}

/** The resident memory of another process, in bytes. */
export function residentBytesOf(pid: number): number {
  const [, kilobytes] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Number(kilobytes) * 1_024;
}
