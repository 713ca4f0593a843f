/**
 * The entry point `watchmux/workqueue`: a queue of keys to work on, its workers, its rate limiters, the controller around it, and the
 * election of the one program that runs it. Runs in browsers.
 */

export { Controller } from './controller.ts';
export type {
  ControllerFailure,
  ControllerHandler,
  ControllerInformer,
  ControllerOptions,
  ControllerRunOptions,
  ControllerSource,
  Reconcile,
  ReconcileContext,
  ReconcileResult,
} from './controller-options.ts';
export { type Lease, type LeaseRequest, type LeaseResource, type LeaseSpec, type LeaseStorage, toLeases } from './election.ts';
export type { LeadContext, LeaderElectorOptions, LeaderFailure } from './leader-elector.ts';
export { type Lead, LeaderElector, type LeadOptions } from './leader-elector.ts';
export type { WorkQueueMetric, WorkQueueMetricName } from './meter.ts';
export type { KeyIterator } from './queue.ts';
export { WorkQueue } from './queue.ts';
export { bucket, defaultRateLimiter, exponential, fastSlow, maxOf, maxWait, type RateLimiter } from './rate-limiters.ts';
export type { AddOptions, RunOptions, Work, WorkContext, WorkFailure, WorkQueueOptions } from './run.ts';
export { type ParallelizeOptions, parallelizeUntil } from './run.ts';
