// What an operator counts, under controller-runtime's names, in a form that Prometheus reads.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { OperatorMetrics } from '../../src/operator/metrics.ts';
import type { OperatorState } from '../../src/operator/operator-options.ts';
import { toText } from '../../src/watch/telemetry.ts';
import { exposition, type Family } from '../exposition.ts';
import { runs } from '../runs.ts';

const controller = (name: string, concurrency = 1): OperatorState['controllers'][number] => ({
  ...{ name, concurrency, working: true, queued: 0, delayed: 0, inWork: 0 },
});
const STATE: OperatorState = {
  running: true,
  leads: true,
  kinds: [
    { kind: 'pods/v1', synced: true, connected: true, absent: false, error: undefined, resourceVersion: '1', objects: 1 },
    {
      kind: 'websites.example.com/v1',
      synced: false,
      connected: false,
      absent: true,
      error: undefined,
      resourceVersion: '',
      objects: 0,
    },
  ],
  controllers: [controller('sites', 3), controller('pods')],
};

const read = (metrics: OperatorMetrics, more: object = {}): Map<string, Family> =>
  exposition(metrics.toText({ state: STATE, lease: undefined, requests: undefined, ...more }));

/** The value of one sample. */
function sampleOf(families: Map<string, Family>, name: string, labels: Record<string, string>): number | undefined {
  const wanted = JSON.stringify(Object.entries(labels).sort());
  return families.get(name)?.samples.find((each) => JSON.stringify(Object.entries(each.labels).sort()) === wanted)?.value;
}

describe('the metrics of an operator', () => {
  it('has controller-runtime’s names, with 0 before anything has happened', () => {
    const families = read(new OperatorMetrics(), { lease: 'sites', requests: [] });
    expect([...families.keys()].filter((name) => !/^(process|nodejs|watchmux)_/.test(name))).toEqual([
      'controller_runtime_reconcile_total',
      'controller_runtime_reconcile_errors_total',
      'controller_runtime_terminal_reconcile_errors_total',
      'controller_runtime_reconcile_timeouts_total',
      'controller_runtime_reconcile_time_seconds',
      'controller_runtime_max_concurrent_reconciles',
      'controller_runtime_active_workers',
      'workqueue_depth',
      'workqueue_adds_total',
      'workqueue_retries_total',
      'workqueue_queue_duration_seconds',
      'workqueue_work_duration_seconds',
      'workqueue_unfinished_work_seconds',
      'workqueue_longest_running_processor_seconds',
      'leader_election_master_status',
      'rest_client_requests_total',
    ]);
    for (const result of ['success', 'error', 'requeue', 'requeue_after']) {
      expect(sampleOf(families, 'controller_runtime_reconcile_total', { controller: 'sites', result })).toBe(0);
    }
    expect(sampleOf(families, 'controller_runtime_max_concurrent_reconciles', { controller: 'sites' })).toBe(3);
    expect(sampleOf(families, 'workqueue_depth', { controller: 'pods', name: 'pods' })).toBe(0);
    expect(sampleOf(families, 'leader_election_master_status', { name: 'sites' })).toBe(1);
    expect(families.get('process_resident_memory_bytes')?.samples).toHaveLength(1);
  });

  it('counts reconciles by their results', () => {
    const metrics = new OperatorMetrics();
    const end = { controller: 'sites', durationMs: 250, timedOut: false, dropped: false };
    for (let at = 0; at < 6; at++) metrics.onReconcileStart('sites');
    metrics.onReconcileEnd({ ...end, result: 'success' });
    metrics.onReconcileEnd({ ...end, result: 'requeue_after' });
    metrics.onReconcileEnd({ ...end, result: 'requeue' });
    metrics.onReconcileEnd({ ...end, result: 'error', timedOut: true, durationMs: 70_000 });
    metrics.onReconcileEnd({ ...end, result: 'error', dropped: true });
    const families = read(metrics);
    const total = (name: string, labels: object = {}): number | undefined =>
      sampleOf(families, `controller_runtime_${name}`, { controller: 'sites', ...labels });
    for (const [result, count] of Object.entries({ success: 1, requeue_after: 1, requeue: 1, error: 2 })) {
      expect(total('reconcile_total', { result })).toBe(count);
    }
    expect(total('reconcile_errors_total')).toBe(2);
    expect(total('terminal_reconcile_errors_total')).toBe(1);
    expect(total('reconcile_timeouts_total')).toBe(1);
    expect(total('active_workers')).toBe(1);
    expect(total('reconcile_time_seconds', { le: '0.2' })).toBe(0);
    expect(total('reconcile_time_seconds', { le: '0.25' })).toBe(4);
    expect(total('reconcile_time_seconds', { le: '60' })).toBe(4);
    expect(total('reconcile_time_seconds', { le: '+Inf' })).toBe(5);
    expect(total('reconcile_time_seconds', { '#': '_sum' })).toBe(71);
    // 41 bounds, as upstream, and three more samples.
    const own = families
      .get('controller_runtime_reconcile_time_seconds')
      ?.samples.filter(({ labels }) => labels.controller === 'sites');
    expect(own).toHaveLength(40 + 3);
  });

  it('counts what queues report', () => {
    const metrics = new OperatorMetrics();
    const tell = (name: Parameters<OperatorMetrics['onQueueMetric']>[0]['name'], value: number): void =>
      metrics.onQueueMetric({ queue: 'sites', name, value });
    tell('adds', 1);
    tell('adds', 1);
    tell('retries', 1);
    tell('depth', 7);
    tell('queueDurationMs', 0.05);
    tell('workDurationMs', 2_000);
    tell('unfinishedWorkMs', 1_500);
    tell('longestRunningMs', 500);
    const families = read(metrics);
    const of = (name: string, labels: object = {}): number | undefined =>
      sampleOf(families, `workqueue_${name}`, { controller: 'sites', name: 'sites', ...labels });
    expect(of('adds_total')).toBe(2);
    expect(of('retries_total')).toBe(1);
    expect(of('depth')).toBe(7);
    expect(of('unfinished_work_seconds')).toBe(1.5);
    expect(of('longest_running_processor_seconds')).toBe(0.5);
    expect([of('queue_duration_seconds', { le: '0.00001' }), of('queue_duration_seconds', { le: '0.0001' })]).toEqual([0, 1]);
    expect([of('work_duration_seconds', { le: '1' }), of('work_duration_seconds', { le: '10' })]).toEqual([0, 1]);
  });

  it('says how the caches are, who leads, and what was asked', () => {
    const requests = [
      { code: '200', method: 'GET', host: 'a:6443', count: 3 },
      { code: '<error>', method: 'PATCH', host: 'a:6443', count: 1 },
    ];
    const families = read(new OperatorMetrics(), { state: { ...STATE, leads: false }, lease: 'sites', requests });
    expect(sampleOf(families, 'watchmux_operator_kind_synced', { kind: 'pods/v1' })).toBe(1);
    expect(sampleOf(families, 'watchmux_operator_kind_synced', { kind: 'websites.example.com/v1' })).toBe(0);
    expect(sampleOf(families, 'watchmux_operator_kind_connected', { kind: 'websites.example.com/v1' })).toBe(0);
    expect(sampleOf(families, 'leader_election_master_status', { name: 'sites' })).toBe(0);
    expect(sampleOf(families, 'rest_client_requests_total', { code: '<error>', method: 'PATCH', host: 'a:6443' })).toBe(1);
    expect(read(new OperatorMetrics()).get('leader_election_master_status')?.samples).toEqual([]);
  });
});

describe('metrics with several labels', () => {
  it('any labels and values come back', () => {
    const label = fc.constantFrom('a', 'b', '__proto__', 'constructor', 'le_');
    const value = fc.record({ one: fc.dictionary(label, fc.string(), { noNullPrototype: true }), count: fc.nat() });
    fc.assert(
      fc.property(fc.uniqueArray(value, { selector: ({ one }) => JSON.stringify(Object.entries(one).sort()) }), (all) => {
        const series = all.map(({ one, count }) => ({ labels: one, value: count }));
        const text = toText([{ name: 'x', type: 'gauge', help: 'of all', value: series }]);
        const read = exposition(text).get('watchmux_x')?.samples ?? [];
        expect(read.map(({ labels, value }) => [Object.entries(labels).sort(), value])).toEqual(
          all.map(({ one, count }) => [Object.entries(one).sort(), count]),
        );
      }),
      { numRuns: runs(200) },
    );
  });
});
