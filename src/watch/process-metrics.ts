/** What `/metrics` says about the process, which may have several servers. */
import { version } from '../../package.json';
import { counter, gauge, toText } from './telemetry.ts';

/** When the process began, in seconds since 1970. */
const startSeconds = (): number => Date.now() / 1_000 - process.uptime();

let started: number | undefined;

/**
 * Metrics of the process and of the build, in Prometheus' text format, under the names that other programs use. Empty if there is
 * no process.
 */
export function processMetrics(): string {
  const build = gauge('build_info', 'The version of this package; always 1.', { label: 'version', values: { [version]: 1 } });
  if (typeof process === 'undefined') return toText([build]);
  // Computed once, as the host's clock may be changed.
  started ??= startSeconds();
  const { user, system } = process.cpuUsage();
  const { rss, heapUsed, external } = process.memoryUsage();
  const runtime = { label: 'version', values: { [process.version]: 1 } };
  return (
    toText([build]) +
    toText(
      [
        counter('cpu_seconds_total', 'CPU time that the process has used.', (user + system) / 1e6),
        gauge('resident_memory_bytes', 'Resident memory of the process.', rss),
        gauge('start_time_seconds', 'When the process began, in seconds since 1970.', started),
      ],
      { prefix: 'process_' },
    ) +
    toText(
      [
        gauge('version_info', 'The version of Node; always 1.', runtime),
        gauge('heap_size_used_bytes', 'Memory that JavaScript objects use.', heapUsed),
        gauge('external_memory_bytes', 'Memory outside the heap that JavaScript objects hold.', external),
      ],
      { prefix: 'nodejs_' },
    )
  );
}
