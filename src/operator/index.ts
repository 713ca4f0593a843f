/**
 * The entry point `watchmux/operator`: controllers with everything around them, for clusters and for an `ApiServer`. For Node, Bun
 * and Deno.
 */

export type { UserInfo } from '../apiserver/kinds/reviews.ts';
export type { ResourceType } from '../cache/resource-client.ts';
export {
  type Condition,
  type ConditionOptions,
  findCondition,
  isConditionTrue,
  removeCondition,
  setCondition,
  type WithConditions,
} from './conditions.ts';
export { equals } from './equals.ts';
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
export { type EnsureFinalizerResult, ensureFinalizer, type RemoveFinalizerResult, removeFinalizer } from './finalizers.ts';
export { FollowedKind, type FollowedKindOptions } from './followed-kind.ts';
export {
  type FullType,
  type GroupVersionKind,
  type Kind,
  type KindName,
  kind,
  type ResourceSource,
} from './kinds.ts';
export { Operator } from './operator.ts';
export {
  type Caches,
  type ChangeType,
  controller,
  type FinalizerOptions,
  type ListenOptions,
  type Log,
  type OperatorCheck,
  type OperatorChecks,
  type OperatorControllerOptions,
  type OperatorElectionOptions,
  type OperatorFailure,
  type OperatorOptions,
  type ReconcileOutcome,
  type ReconcileRequest,
  type SourceOptions,
  type WatchedOptions,
  type When,
} from './operator-options.ts';
export { controllerOf, type OwnerOptions, type OwnerReference, ownersOf, removeOwner, setOwner } from './owners.ts';
export {
  type AnyWhen,
  allOf,
  annotationsChanged,
  anyOf,
  deletionStarted,
  generationChanged,
  isDeleting,
  labelsChanged,
  not,
  statusChanged,
} from './predicates.ts';
export {
  isAlreadyExists,
  isConflict,
  isExpired,
  isForbidden,
  isInvalid,
  isNotFound,
  isTooManyRequests,
} from './refusals.ts';
export { type WebhookConfigurationsOptions, webhookConfigurations } from './webhooks/webhook-configurations.ts';
export { WebhookServer, type WebhookServerOptions } from './webhooks/webhook-server.ts';
export { Webhooks, type WebhooksOptions } from './webhooks/webhooks.ts';
export {
  type ApplyConfiguration,
  type ApplyOptions,
  apply,
  type CreateOrUpdateOptions,
  type CreateOrUpdateResult,
  createOrUpdate,
  type HelperOptions,
  type Mutable,
  retryOnConflict,
  updateStatus,
} from './writes.ts';
