/**
 * What an operator counts, in Prometheus' text format: under the names, labels and buckets of controller-runtime, so that its
 * dashboards and alerts fit. Its help texts say what we count.
 */

import type { RequestCount } from '../kubernetes/cluster.ts';
import { processMetrics } from '../watch/process-metrics.ts';
import {
  counter,
  Durations,
  gauge,
  type Metric,
  type MetricGroup,
  type Series,
  type Telemetry,
  toText,
} from '../watch/telemetry.ts';
import type { WorkQueueMetric } from '../workqueue/meter.ts';
import type { OperatorObserver, OperatorState, ReconcileEnd, ReconcileResultName } from './operator-state.ts';

/** In seconds. Upstream: `ReconcileTime`. */
const RECONCILE_BOUNDS: readonly number[] = [
  ...[0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.25, 1.5, 1.75],
  ...[2, 2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50, 60],
];
/** In seconds. Upstream: those of `workqueue`. */
const QUEUE_BOUNDS: readonly number[] = [1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 0.001, 0.01, 0.1, 1, 10, 100, 1_000];

/** What one controller has done. */
class ControllerCounts {
  readonly results: Record<ReconcileResultName, number> = { error: 0, requeue_after: 0, requeue: 0, success: 0 };
  readonly time: Durations = new Durations(RECONCILE_BOUNDS);
  dropped: number = 0;
  timeouts: number = 0;
  active: number = 0;
  // Of its queue.
  depth: number = 0;
  adds: number = 0;
  retries: number = 0;
  unfinishedMs: number = 0;
  longestMs: number = 0;
  readonly queued: Durations = new Durations(QUEUE_BOUNDS);
  readonly worked: Durations = new Durations(QUEUE_BOUNDS);
}

/** What metrics say besides what they have counted. */
export interface MetricsView {
  readonly state: OperatorState;
  /** The name of the lease; undefined: there is no election. */
  readonly lease: string | undefined;
  /** What the cluster has been asked; undefined: it is in this process. */
  readonly requests: readonly RequestCount[] | undefined;
}

/** Counts what the controllers of an operator do. */
export class OperatorMetrics implements OperatorObserver {
  readonly #controllers: Map<string, ControllerCounts> = new Map();
  readonly #telemetry: Telemetry | undefined;

  constructor(telemetry?: Telemetry) {
    this.#telemetry = telemetry;
  }

  onReconcileStart(controller: string): void {
    this.#of(controller).active++;
  }

  onReconcileEnd({ controller, result, durationMs, timedOut, dropped }: ReconcileEnd): void {
    const counts = this.#of(controller);
    counts.active--;
    if (result) counts.results[result]++;
    counts.time.add(durationMs / 1_000);
    this.#telemetry?.record('controller_runtime_reconcile_time_seconds', durationMs / 1_000, { controller });
    if (timedOut) counts.timeouts++;
    if (dropped) counts.dropped++;
  }

  onQueueMetric({ queue, name, value }: WorkQueueMetric): void {
    const counts = this.#of(queue);
    if (name === 'depth') counts.depth = value;
    else if (name === 'adds') counts.adds += value;
    else if (name === 'retries') counts.retries += value;
    else if (name === 'queueDurationMs') this.#addTime(counts.queued, 'workqueue_queue_duration_seconds', { queue, value });
    else if (name === 'workDurationMs') this.#addTime(counts.worked, 'workqueue_work_duration_seconds', { queue, value });
    else if (name === 'unfinishedWorkMs') counts.unfinishedMs = value;
    else if (name === 'longestRunningMs') counts.longestMs = value;
  }

  /** Everything, and what the process says about itself. */
  toText(view: MetricsView): string {
    return (
      this.groups(view)
        .map(({ metrics, prefix }) => toText(metrics, { prefix }))
        .join('') + processMetrics()
    );
  }

  groups({ state, lease, requests }: MetricsView): readonly MetricGroup[] {
    for (const { name } of state.controllers) this.#of(name); // from the start, as 0
    const masters = lease === undefined ? [] : [{ labels: { name: lease }, value: Number(state.leads) }];
    const leads = gauge('master_status', 'Whether this instance leads: 1, or 0 if it waits.', masters);
    const asked = counter('requests_total', 'Requests to the API server, by code, method and host.', toSeries(requests ?? []));
    return [
      { prefix: 'controller_runtime_', metrics: this.#reconciles(state) },
      { prefix: 'workqueue_', metrics: this.#queues() },
      { prefix: 'leader_election_', metrics: [leads] },
      { prefix: 'rest_client_', metrics: [asked] },
      { prefix: 'watchmux_operator_', metrics: kindMetrics(state) },
    ];
  }

  #addTime(durations: Durations, metric: string, { queue, value }: Pick<WorkQueueMetric, 'queue' | 'value'>): void {
    durations.add(value / 1_000);
    this.#telemetry?.record(metric, value / 1_000, { name: queue, controller: queue });
  }

  #of(controller: string): ControllerCounts {
    const counts = this.#controllers.get(controller) ?? new ControllerCounts();
    this.#controllers.set(controller, counts);
    return counts;
  }

  #reconciles(state: OperatorState): Metric[] {
    const by = (toValue: (counts: ControllerCounts) => Series['value']): Series[] =>
      Array.from(this.#controllers, ([controller, counts]) => ({ labels: { controller }, value: toValue(counts) }));
    const results = Array.from(this.#controllers, ([controller, counts]) =>
      Object.entries(counts.results).map(([result, value]) => ({ labels: { controller, result }, value })),
    );
    const most = state.controllers.map(({ name, concurrency }) => ({ labels: { controller: name }, value: concurrency }));
    return [
      counter('reconcile_total', 'Reconciles that have ended, by result; requeue is a conflict.', results.flat()),
      counter(
        'reconcile_errors_total',
        'Reconciles that have failed.',
        by(({ results: { error } }) => error),
      ),
      counter(
        'terminal_reconcile_errors_total',
        'Keys that were given up after maxRetries.',
        by(({ dropped }) => dropped),
      ),
      counter(
        'reconcile_timeouts_total',
        'Reconciles that took longer than reconcileTimeoutMs.',
        by(({ timeouts }) => timeouts),
      ),
      histogram(
        'reconcile_time_seconds',
        'How long reconciles took.',
        by(({ time }) => time),
      ),
      gauge('max_concurrent_reconciles', 'How many keys are reconciled at a time, at most.', most),
      gauge(
        'active_workers',
        'Reconciles that are running.',
        by(({ active }) => active),
      ),
    ];
  }

  #queues(): Metric[] {
    const by = (toValue: (counts: ControllerCounts) => Series['value']): Series[] =>
      Array.from(this.#controllers, ([name, counts]) => ({ labels: { name, controller: name }, value: toValue(counts) }));
    return [
      gauge(
        'depth',
        'Keys that wait for a worker.',
        by(({ depth }) => depth),
      ),
      counter(
        'adds_total',
        'Keys that were queued.',
        by(({ adds }) => adds),
      ),
      counter(
        'retries_total',
        'Keys that were queued with a delay.',
        by(({ retries }) => retries),
      ),
      histogram(
        'queue_duration_seconds',
        'How long keys waited for a worker.',
        by(({ queued }) => queued),
      ),
      histogram(
        'work_duration_seconds',
        'How long keys were processed, with the wait for what was written.',
        by(({ worked }) => worked),
      ),
      gauge(
        'unfinished_work_seconds',
        'How long the keys in work have been so, in total.',
        by((each) => each.unfinishedMs / 1_000),
      ),
      gauge(
        'longest_running_processor_seconds',
        'The longest of these times.',
        by((each) => each.longestMs / 1_000),
      ),
    ];
  }
}

/** What controller-runtime does not say: whether the caches are good. */
function kindMetrics({ kinds }: OperatorState): Metric[] {
  const by = (toValue: (kind: OperatorState['kinds'][number]) => boolean): Series[] =>
    kinds.map((each) => ({ labels: { kind: each.kind }, value: Number(toValue(each)) }));
  return [
    gauge(
      'kind_synced',
      'Whether the cache of a kind has its whole collection.',
      by(({ synced }) => synced),
    ),
    gauge(
      'kind_connected',
      'Whether the server answers for a kind.',
      by(({ connected }) => connected),
    ),
  ];
}

function toSeries(requests: readonly RequestCount[]): Series[] {
  return requests.map(({ code, method, host, count }) => ({ labels: { code, host, method }, value: count }));
}

function histogram(name: string, help: string, value: readonly Series[]): Metric {
  return { name, type: 'histogram', help, value };
}
