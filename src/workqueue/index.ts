/** The entry point `watchmux/workqueue`: a queue of keys to work on, its workers and its rate limiters. Runs in browsers. */

export type { KeyIterator } from './iterate.ts';
export type { WorkQueueMetric, WorkQueueMetricName } from './meter.ts';
export type { AddOptions, RunOptions, WorkContext, WorkFailure, WorkQueueOptions } from './options.ts';
export { type ParallelizeOptions, parallelizeUntil } from './parallelize.ts';
export { WorkQueue } from './queue.ts';
export { bucket, defaultRateLimiter, exponential, fastSlow, maxOf, maxWait, type RateLimiter } from './rate-limiters.ts';
export type { Work } from './run.ts';
