import type { V1Lease } from '@kubernetes/client-node';
import { describe, expect, it } from 'vitest';
import type { Resource as ServerResource } from '../../src/apiserver/index.ts';
import type { KubernetesObject } from '../../src/cache/index.ts';
import type { AsJson, Resource as ClusterResource } from '../../src/kubernetes/index.ts';
import type { FieldSelector, parseFieldSelector } from '../../src/selectors/field-selector.ts';
import type { LabelSelector } from '../../src/selectors/label-selector.ts';
import { LabelSelector as Labels, parseLabelSelector, Requirement } from '../../src/selectors/label-selector.ts';
import { SelectionPredicate, type SelectionPredicateOptions } from '../../src/selectors/predicate.ts';
import type { ParseOptions } from '../../src/selectors/syntax.ts';
import type { Storage } from '../../src/storage/index.ts';
import type { QueueHistory } from '../../src/testing/index.ts';
import { checkSerial } from '../../src/testing/index.ts';
import type {
  AddOptions,
  ControllerFailure,
  ControllerInformer,
  ControllerOptions,
  ControllerSource,
  LeaderElectorOptions,
  Lease,
  LeaseResource,
  ParallelizeOptions,
  RateLimiter,
  Reconcile,
  ReconcileContext,
  ReconcileResult,
  RunOptions,
  Work,
  WorkQueueMetric,
  WorkQueueMetricName,
  WorkQueueOptions,
} from '../../src/workqueue/index.ts';
import {
  bucket,
  Controller,
  defaultRateLimiter,
  exponential,
  LeaderElector,
  maxOf,
  toLeases,
  WorkQueue,
} from '../../src/workqueue/index.ts';
import { type Assignable, claim, compiles, type Equal } from './assert.ts';

type Unsaid<Options> = { readonly [Name in keyof Options]-?: undefined };
type Lax<Options> = Assignable<Unsaid<Options>, Options>;

function queues(): void {
  const queue = new WorkQueue<string>({ rateLimiter: maxOf(exponential({ baseMs: 1 }), bucket({ perSecond: 1, burst: 1 })) });
  queue.add('a', { priority: 1 });
  // @ts-expect-error keys are strings
  queue.add(1);
  // @ts-expect-error a delay has a number of milliseconds
  queue.addAfter('a', '5');
  // @ts-expect-error there is no such option
  queue.add('a', { prio: 1 });
  // @ts-expect-error there is no such option
  new WorkQueue({ limiter: defaultRateLimiter() });
  // @ts-expect-error the size is read
  queue.size = 1;
  claim<Equal<ReturnType<typeof queue.get>, Promise<string | undefined>>>();
  claim<Equal<ReturnType<typeof queue.drain>, Promise<void>>>();
  claim<Assignable<typeof queue, AsyncIterable<string>>>();
  void queue.run(4, async (key, { signal, attempt }) => {
    claim<Equal<typeof key, string>>();
    claim<Equal<typeof signal, AbortSignal>>();
    claim<Equal<typeof attempt, number>>();
  });
  void queue.run(1, (key) => key.length, {
    signal: undefined,
    onError: (error, { key, willRetry }) => {
      claim<Equal<typeof error, unknown>>();
      claim<Equal<typeof key, string>>();
      claim<Equal<typeof willRetry, boolean>>();
    },
  }); // prettier-ignore
  // @ts-expect-error the work gets strings
  void queue.run(1, (key: number) => key);
  new WorkQueue<{ name: string }>({ keyOf: ({ name }) => name });
  const own: RateLimiter = { when: (key: unknown) => String(key).length, forget() {}, requeues: () => 0 };
  void own;
}

interface Pod {
  readonly metadata: { readonly name: string; readonly owner: string };
}
interface Deployment {
  readonly metadata: { readonly name: string };
  readonly replicas: number;
}
declare const pods: ControllerInformer<Pod>;
declare const deployments: ControllerInformer<Deployment>;

function controllers(): void {
  const controller = new Controller({
    informers: [pods],
    reconcile: async (key, { signal, attempt, wrote }) => {
      claim<Equal<typeof key, string>>();
      claim<Equal<typeof signal, AbortSignal>>();
      claim<Equal<typeof attempt, number>>();
      wrote({ metadata: { resourceVersion: '7' } });
      wrote({ metadata: { resourceVersion: '7' } }, deployments);
      // @ts-expect-error an object, not its version
      wrote('7');
      return { requeueAfterMs: 5 };
    },
    onError: (error, { during, key, attempt, dropped }) => {
      claim<Equal<typeof error, unknown>>();
      claim<Equal<typeof during, 'reconcile' | 'wrote' | 'event' | 'source' | 'sync'>>();
      claim<Equal<typeof key, string | undefined>>();
      claim<Equal<typeof attempt, number | undefined>>();
      claim<Equal<typeof dropped, boolean>>();
    },
  });
  claim<Equal<typeof controller, Controller<Pod>>>();
  claim<Equal<ReturnType<typeof controller.run>, Promise<void>>>();
  claim<Equal<typeof controller.queue, WorkQueue<string>>>();
  // @ts-expect-error the queue stays
  controller.queue = new WorkQueue<string>();
  const reconcile = async (): Promise<void> => {};
  // Informers of several types, each with keys of its own.
  new Controller<Deployment | Pod>({
    informers: [deployments, { informer: pods, keysOf: (pod: Pod) => [pod.metadata.owner], filter: () => true, resyncMs: 5 }],
    reconcile,
  });
  // @ts-expect-error keys come in an array
  new Controller<Pod>({ informers: [{ informer: pods, keysOf: (pod: Pod) => pod.metadata.owner }], reconcile });
  // @ts-expect-error a deployment has no owner
  new Controller<Deployment>({ informers: [{ informer: deployments, keysOf: ({ metadata }) => [metadata.owner] }], reconcile });
  // @ts-expect-error what is to be reconciled
  new Controller({ informers: [pods] });
  // @ts-expect-error keys are strings
  new Controller({ informers: [pods], reconcile, queue: new WorkQueue<number>() });
  // @ts-expect-error there is no such result
  new Controller({ informers: [pods], reconcile: async () => ({ requeueAfter: 5 }) });
  new Controller({ informers: [pods], reconcile: () => {} });
  new Controller({ informers: [pods], reconcile: (key, { attempt }) => ({ requeueAfterMs: key.length * attempt }) });
  new Controller({ informers: [pods], reconcile: async (key) => (key ? { requeueAfterMs: 5 } : undefined) });
  // @ts-expect-error there is no such result
  new Controller({ informers: [pods], reconcile: () => ({ requeueAfter: 5 }) });
  // @ts-expect-error nor this one
  new Controller({ informers: [pods], reconcile: () => 'later' });
  claim<Lax<Omit<ControllerOptions<Pod>, 'informers' | 'reconcile'>>>();
  claim<Lax<Omit<ControllerSource<Pod>, 'informer'>>>();
  claim<Lax<ReconcileResult>>();
  claim<Lax<Omit<ControllerFailure, 'during' | 'dropped'>>>();
  claim<Assignable<(key: string, context: ReconcileContext) => Promise<undefined>, Reconcile>>();
}

function options(): void {
  claim<Lax<WorkQueueOptions<string>>>();
  claim<Lax<AddOptions>>();
  claim<Lax<RunOptions<string>>>();
  claim<Lax<Parameters<typeof exponential>[0] & object>>();
  claim<Lax<Parameters<typeof bucket>[0] & object>>();
  claim<Lax<Parameters<typeof defaultRateLimiter>[0] & object>>();
  claim<Lax<ParseOptions>>();
  claim<Lax<SelectionPredicateOptions<string>>>();
  claim<Lax<Omit<ParallelizeOptions, 'workers'>>>();
  claim<Equal<WorkQueueMetric['name'], WorkQueueMetricName>>();
  claim<Assignable<(key: string) => Promise<void>, Work<string>>>();
}

function electors(
  own: ServerResource<KubernetesObject>,
  cluster: ClusterResource<AsJson<V1Lease>>,
  storage: Storage<Lease>,
  anything: Storage,
): void {
  for (const leases of [own, cluster, toLeases(storage), toLeases(anything)]) {
    const elector = new LeaderElector({ leases, name: 'lock' });
    claim<Equal<typeof elector.leader, string | undefined>>();
    void elector.run(async ({ signal, term }) => {
      claim<Equal<typeof signal, AbortSignal>>();
      claim<Equal<typeof term, number>>();
    });
  }
  // @ts-expect-error a lease has a name
  new LeaderElector({ leases: own });
  // @ts-expect-error a storage is no resource
  new LeaderElector({ leases: storage, name: 'lock' });
  // @ts-expect-error there is no such option
  new LeaderElector({ leases: own, name: 'lock', renewMs: 1 });
  claim<Lax<Omit<LeaderElectorOptions, 'leases' | 'name'>>>();
  claim<Assignable<ServerResource<Lease>, LeaseResource>>();
}

function selectors(): void {
  claim<Equal<ReturnType<typeof parseLabelSelector>, LabelSelector>>();
  claim<Equal<ReturnType<typeof parseFieldSelector>, FieldSelector>>();
  const exact: string | undefined = parseLabelSelector('a').requiresExactMatch('a');
  // @ts-expect-error labels are strings
  parseLabelSelector('a').matches({ a: 1 });
  // @ts-expect-error there is no such operator
  new Requirement('a', 'In', ['b']);
  // @ts-expect-error a selector does not change
  parseLabelSelector('a').requirements.push(new Requirement('a', '!'));
  Labels.fromObject({ matchExpressions: [{ key: 'a', operator: 'In', values: ['b'] }] });
  new SelectionPredicate<{ on: boolean }>({ attributesOf: ({ on }) => ({ fields: { on: String(on) } }) });
  checkSerial<number>({ steps: [{ step: 'add', key: 1 }, { step: 'shutdown' }] } satisfies QueueHistory<number>);
  // @ts-expect-error a step of this kind has a key
  checkSerial<number>({ steps: [{ step: 'add' }] });
  void exact;
}

describe('the types of the work queue and of selectors', () => {
  it('take what is right, and refuse what is wrong', () => {
    expect(compiles(queues, controllers, options, electors, selectors)).toBe(5);
  });
});
