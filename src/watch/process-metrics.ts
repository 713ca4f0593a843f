/** What `/metrics` says about the process: not about one server, of which a process may have several. */
import { version } from '../../package.json';
import { counter, gauge, toText } from './telemetry.ts';

/** When the process began, in seconds since 1970. */
const startSeconds = (): number => Date.now() / 1_000 - process.uptime();

let started: number | undefined;

/**
 * Metrics of the process and of the build, in Prometheus' text format, under the names that other programs use. Empty where there is
 * no process.
 */
export function processMetrics(): string {
  const build = gauge('build_info', 'The version of this package; always 1.', { label: 'version', values: { [version]: 1 } });
  if (typeof process === 'undefined') return toText([build]);
  // Once: the clock of the host may be set.
  started ??= startSeconds();
  const { user, system } = process.cpuUsage();
  const { rss, heapUsed, external } = process.memoryUsage();
  const runtime = { label: 'version', values: { [process.version]: 1 } };
  return (
    toText([build]) +
    toText(
      [
        counter('cpu_seconds_total', 'Processor time that the process has used.', (user + system) / 1e6),
        gauge('resident_memory_bytes', 'Memory of the process that is in use.', rss),
        gauge('start_time_seconds', 'When the process began, since 1970.', started),
      ],
      { prefix: 'process_' },
    ) +
    toText(
      [
        gauge('version_info', 'The version of Node; always 1.', runtime),
        gauge('heap_size_used_bytes', 'Memory that JavaScript objects use.', heapUsed),
        gauge('external_memory_bytes', 'Memory outside of the heap that JavaScript objects hold.', external),
      ],
      { prefix: 'nodejs_' },
    )
  );
}
