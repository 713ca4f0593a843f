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
export {
  type Lead,
  type LeadContext,
  LeaderElector,
  type LeaderElectorOptions,
  type LeaderFailure,
  type LeadOptions,
} from './leader-elector.ts';
export type { WorkQueueMetric, WorkQueueMetricName } from './meter.ts';
export { type KeyIterator, WorkQueue } from './queue.ts';
export { bucket, defaultRateLimiter, exponential, fastSlow, maxOf, maxWait, type RateLimiter } from './rate-limiters.ts';
export {
  type AddOptions,
  type ParallelizeOptions,
  parallelizeUntil,
  type RunOptions,
  type Work,
  type WorkContext,
  type WorkFailure,
  type WorkQueueOptions,
} from './run.ts';
