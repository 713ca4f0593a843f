import { readFileSync } from 'node:fs';

/** What a contender's process says about one step: how long it took, and what the bench compares with the truth. */
export interface Step {
  readonly wallMs: number;
  /** Of all threads: the compiler's and the garbage collector's count. */
  readonly cpuMs: number;
  /** The most memory that the process has had so far. */
  readonly peakMB: number;
  /** Objects in the store. */
  readonly size: number;
  /** Calls of the handler so far. */
  readonly added: number;
  readonly updated: number;
  /** `sumOf` the store. */
  readonly sum: string;
}

/** Starts to measure. The function that it returns says what it took so far. */
export function stopwatch(): () => Pick<Step, 'wallMs' | 'cpuMs' | 'peakMB'> {
  const began = performance.now();
  const before = process.cpuUsage();
  return () => {
    const { user, system } = process.cpuUsage(before);
    return { wallMs: performance.now() - began, cpuMs: (user + system) / 1_000, peakMB: peakMB() };
  };
}

/** The largest resident set. Not `maxRSS` where there is something better: on Linux that begins with what the parent process had. */
function peakMB(): number {
  try {
    const [, kilobytes] = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync('/proc/self/status', 'utf8')) as RegExpExecArray;
    return (Number(kilobytes) * 1_024) / 1e6;
  } catch {
    return (process.resourceUsage().maxRSS * 1_024) / 1e6;
  }
}
