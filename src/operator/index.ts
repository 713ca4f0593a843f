/**
 * The entry point `watchmux/operator`: controllers with everything around them, for clusters and for an `ApiServer`. For Node, Bun
 * and Deno.
 */

export { type GroupVersionKind, type Kind, type KindName, kind, type ResourceSource } from './kinds.ts';
export type {
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
export type { UserInfo } from './webhooks/reviews.ts';
export { type WebhookConfigurationsOptions, webhookConfigurations } from './webhooks/webhook-configurations.ts';
export { WebhookServer, type WebhookServerOptions } from './webhooks/webhook-server.ts';
export { Webhooks, type WebhooksOptions } from './webhooks/webhooks.ts';
