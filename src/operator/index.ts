/**
 * The entry point `watchmux/operator`: controllers with everything around them, for clusters and for an `ApiServer`. For Node, Bun
 * and Deno.
 */

export {
  type EventDetails,
  type EventDropReason,
  type EventFailure,
  type EventOptions,
  EventRecorder,
  type EventRecorderOptions,
  type EventRecorderStats,
} from './event-recorder.ts';
export type { EventApi, EventLimits } from './event-series.ts';
export { type GroupVersionKind, type Kind, type KindName, kind, type ResourceSource } from './kinds.ts';
export { Operator } from './operator.ts';
export type {
  AnyKind,
  ApplyOptions,
  Caches,
  ChangeType,
  Log,
  OperatorControllerOptions,
  OperatorFailure,
  OperatorOptions,
  ReconcileOutcome,
  ReconcileRequest,
  SourceOptions,
  WatchedOptions,
  When,
} from './operator-options.ts';
