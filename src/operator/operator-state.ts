/** What health checks, metrics and tests see of an operator. */
import type { WorkQueueMetric } from '../workqueue/meter.ts';

/** The state of an operator at one moment. */
export interface OperatorState {
  /** Whether `run` was called, and has not settled. */
  readonly running: boolean;
  /** Whether this instance works: there is no election, or it leads. */
  readonly leads: boolean;
  readonly kinds: readonly KindState[];
  readonly controllers: readonly ControllerState[];
}

/** A kind of an operator, and its cache. */
export interface KindState {
  /** Such as `deployments.apps/v1`. */
  readonly kind: string;
  /** Whether the cache holds the whole collection. */
  readonly synced: boolean;
  /** The version of the cache; empty before it is synced. */
  readonly resourceVersion: string;
  /** How many objects it holds. */
  readonly objects: number;
  /** Whether the server answers. */
  readonly connected: boolean;
  /** Whether the server was asked for the kind, and does not have it. */
  readonly absent: boolean;
  /** The last failure, until the server has worked without one for a while. */
  readonly error: unknown;
}

/** A controller of an operator. */
export interface ControllerState {
  readonly name: string;
  readonly concurrency: number;
  /** Whether it reconciles: this instance leads, and all its kinds are synced. */
  readonly working: boolean;
  /** Keys that wait for a worker. */
  readonly queued: number;
  /** Keys that wait for a time. */
  readonly delayed: number;
  /** Keys that are being processed, or wait for what they have written. */
  readonly inWork: number;
}

/**
 * How a reconcile has ended. `requeue`: a conflict, which is tried again. `requeue_after`: it asked to run again. Upstream: the label
 * `result` of `controller_runtime_reconcile_total`.
 */
export type ReconcileResultName = 'success' | 'error' | 'requeue' | 'requeue_after';

/** One reconcile that has ended. */
export interface ReconcileEnd {
  readonly controller: string;
  /** Undefined: it was told to stop. */
  readonly result: ReconcileResultName | undefined;
  readonly durationMs: number;
  /** Whether it took longer than `reconcileTimeoutMs`. */
  readonly timedOut: boolean;
  /** Whether the key was given up after `maxRetries`. */
  readonly dropped: boolean;
}

/** Measures an operator. Its functions must not throw. */
export interface OperatorObserver {
  /** A measurement of a controller's queue, which has the controller's name. */
  onQueueMetric(metric: WorkQueueMetric): void;
  /** A reconcile has begun. */
  onReconcileStart(controller: string): void;
  onReconcileEnd(end: ReconcileEnd): void;
}
