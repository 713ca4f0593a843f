/**
 * The entry point `watchmux/apiserver`: serve your own objects over Kubernetes' protocol, to kubectl, client-go and others.
 *
 *     const server = new ApiServer({ storage: new MemoryStorage(), resources: [{ group: 'example.com', version: 'v1', plural: 'orders', kind: 'Order' }] });
 *     createServer(server.handler).listen(8080);
 */

export type { AllowedOrigins, Identified } from '../bridge/hub/admission/refusals.ts';
export type { CutReason } from '../bridge/hub/connection.ts';
export type {
  DeleteCollectionOptions,
  DeleteOptions,
  GetOptions,
  ObjectOptions,
  PatchOptions,
  PatchType,
  ResourceClient,
  ResourceType,
  Scale,
  SubresourceClient,
  WriteOptions,
} from '../cache/resource-client.ts';
export type { AdmissionHooks, AdmissionReview } from './admission.ts';
export {
  BUILT_IN_KINDS,
  CONFIG_MAPS,
  type ConfigMap,
  type CoreEvent,
  EVENTS,
  LEASES,
  type Lease,
  type LeaseSpec,
  NAMESPACES,
  type Namespace,
  type ObjectReference,
  REVIEWS,
  SECRETS,
  SERVICE_ACCOUNTS,
  type Secret,
  type ServiceAccount,
} from './builtin.ts';
export type {
  Convert,
  FieldCause,
  JsonSchema,
  PrinterColumn,
  ResourceDefinition,
  ScaleDefinition,
  SchemaDefinition,
  ValidationResult,
} from './definition.ts';
export type { Health, HealthCheck } from './health.ts';
export type { WatchClient } from './http/clients.ts';
export { allKubernetesKinds, kubernetesKinds } from './kinds/kubernetes.ts';
export type { UserInfo } from './kinds/reviews.ts';
export type {
  ApiServerLimits,
  ApiServerOptions,
  Authorize,
  CacheOptions,
  CutReport,
  RequestReport,
  ServiceAddress,
  WebhookService,
} from './options.ts';
export type { Verb } from './request/path.ts';
export { type ApiServerSource, Resource } from './resource.ts';
export { ApiServer, type ShutdownOptions } from './server.ts';
export type { ApiServerStats, CacheStats, ResourceStats } from './stats.ts';
export { WEBHOOK_CONFIGURATIONS } from './webhooks/configurations.ts';
