/**
 * An operator's metrics, in Prometheus' text format, with the names, labels and buckets of controller-runtime, so that its
 * dashboards and alerts work. The help texts say what is counted here.
 */

import type { RequestCount } from '../kubernetes/cluster.ts';
import { getOrMake } from '../watch/errors.ts';
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
import type { OperatorObserver, OperatorState, ReconcileEnd, ReconcileResultName } from './operator-options.ts';

/** In seconds. Upstream: `ReconcileTime`. */
const RECONCILE_BOUNDS: readonly number[] = [
  ...[0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.25, 1.5, 1.75],
  ...[2, 2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50, 60],
];
/** In seconds. Upstream: those of `workqueue`. */
const QUEUE_BOUNDS: readonly number[] = [1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 0.001, 0.01, 0.1, 1, 10, 100, 1_000];

class ControllerCounts {
  readonly results: Record<ReconcileResultName, number> = { error: 0, requeue_after: 0, requeue: 0, success: 0 };
  readonly time: Durations = new Durations(RECONCILE_BOUNDS);
  dropped: number = 0;
  timeouts: number = 0;
  active: number = 0;
  // For its queue.
  depth: number = 0;
  adds: number = 0;
  retries: number = 0;
  unfinishedMs: number = 0;
  longestMs: number = 0;
  readonly queued: Durations = new Durations(QUEUE_BOUNDS);
  readonly worked: Durations = new Durations(QUEUE_BOUNDS);
}

/** What the metrics show in addition to their own counts. */
export interface MetricsView {
  readonly state: OperatorState;
  /** The name of the lease; undefined: there is no election. */
  readonly lease: string | undefined;
  /** The requests to the cluster; undefined: it is in this process. */
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

  /** All metrics, including those of the process. */
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
    const leads = gauge('master_status', 'Whether this instance leads (1) or waits to lead (0).', masters);
    const asked = counter('requests_total', 'Requests to the API server, by code, method and host.', toSeries(requests ?? []));
    return [
      { prefix: 'controller_runtime_', metrics: this.#reconciles(state) },
      { prefix: 'workqueue_', metrics: this.#metrics(QUEUES, (name) => ({ name, controller: name })) },
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
    return getOrMake(this.#controllers, controller, () => new ControllerCounts());
  }

  #reconciles(state: OperatorState): Metric[] {
    const results = Array.from(this.#controllers, ([controller, counts]) =>
      Object.entries(counts.results).map(([result, value]) => ({ labels: { controller, result }, value })),
    );
    const most = state.controllers.map(({ name, concurrency }) => ({ labels: { controller: name }, value: concurrency }));
    const toLabels = (controller: string): Series['labels'] => ({ controller });
    return [
      counter('reconcile_total', 'Reconciles that have ended, by result; requeue is a conflict.', results.flat()),
      ...this.#metrics(RECONCILES, toLabels),
      gauge('max_concurrent_reconciles', 'How many keys may be reconciled at a time.', most),
      ...this.#metrics([ACTIVE], toLabels),
    ];
  }

  #metrics(rows: readonly Row[], toLabels: (controller: string) => Series['labels']): Metric[] {
    return rows.map(([type, name, help, read]) => {
      const value = Array.from(this.#controllers, ([each, counts]) => ({ labels: toLabels(each), value: read(counts) }));
      return { type, name, help, value };
    });
  }
}

type Row = readonly [Metric['type'], name: string, help: string, read: (counts: ControllerCounts) => Series['value']];

const RECONCILES: readonly Row[] = [
  ['counter', 'reconcile_errors_total', 'Reconciles that have failed.', ({ results }) => results.error],
  ['counter', 'terminal_reconcile_errors_total', 'Keys that were given up after maxRetries retries.', ({ dropped }) => dropped],
  ['counter', 'reconcile_timeouts_total', 'Reconciles that took longer than reconcileTimeoutMs.', ({ timeouts }) => timeouts],
  ['histogram', 'reconcile_time_seconds', 'How long reconciles took.', ({ time }) => time],
];
const ACTIVE: Row = ['gauge', 'active_workers', 'Reconciles that are running.', ({ active }) => active];
const QUEUES: readonly Row[] = [
  ['gauge', 'depth', 'Keys that wait for a worker.', ({ depth }) => depth],
  ['counter', 'adds_total', 'Keys that were queued.', ({ adds }) => adds],
  ['counter', 'retries_total', 'Keys that were queued with a delay.', ({ retries }) => retries],
  ['histogram', 'queue_duration_seconds', 'How long keys waited for a worker.', ({ queued }) => queued],
  [
    'histogram',
    'work_duration_seconds',
    'How long keys were processed, including the wait until the caches had what was written.',
    ({ worked }) => worked,
  ],
  [
    'gauge',
    'unfinished_work_seconds',
    'How long all keys that are being processed have taken so far.',
    ({ unfinishedMs }) => unfinishedMs / 1_000,
  ],
  [
    'gauge',
    'longest_running_processor_seconds',
    'How long the oldest key that is being processed has taken so far.',
    ({ longestMs }) => longestMs / 1_000,
  ],
];

/** Not in controller-runtime: whether the caches are up to date. */
function kindMetrics({ kinds }: OperatorState): Metric[] {
  const by = (member: 'synced' | 'connected'): Series[] =>
    kinds.map((each) => ({ labels: { kind: each.kind }, value: Number(each[member]) }));
  return [
    gauge('kind_synced', 'Whether the cache of a kind has its whole collection (1) or not (0).', by('synced')),
    gauge('kind_connected', 'Whether the server answers for a kind (1) or not (0).', by('connected')),
  ];
}

function toSeries(requests: readonly RequestCount[]): Series[] {
  return requests.map(({ code, method, host, count }) => ({ labels: { code, host, method }, value: count }));
}
