/**
 * Kubernetes' own kinds that a server can serve besides those of its program: the first ones that people create with kubectl,
 * those that client-go's event recorders and leader election write, and those in which Helm keeps its releases.
 */

import type { KubernetesObject } from '../cache/object.ts';
import type { Lease, LeaseSpec } from '../workqueue/election.ts';
import type { FieldCause, ResourceDefinition } from './definition.ts';
import { AGE, finalizerCauses, finalizersOf } from './kinds/common.ts';
import { CONFIG_MAPS, SECRETS } from './kinds/config.ts';
import { EVENTS, type ObjectReference } from './kinds/events.ts';
import { REVIEWS } from './kinds/reviews.ts';
import { ours } from './validation/causes.ts';

export { CONFIG_MAPS, type ConfigMap, SECRETS, type Secret } from './kinds/config.ts';
export { type CoreEvent, EVENTS, type ObjectReference } from './kinds/events.ts';
export { REVIEWS } from './kinds/reviews.ts';

/** Upstream: `v1.Namespace`. */
export interface Namespace extends KubernetesObject {
  readonly spec?: { readonly finalizers?: readonly string[] | undefined } | undefined;
  readonly status?: { readonly phase?: string | undefined } | undefined;
}

/** Upstream: `v1.ServiceAccount`. */
export interface ServiceAccount extends KubernetesObject {
  readonly secrets?: readonly ObjectReference[] | undefined;
  readonly imagePullSecrets?: readonly { readonly name?: string | undefined }[] | undefined;
  readonly automountServiceAccountToken?: boolean | undefined;
}

/**
 * `namespaces` of `v1`. If a server serves them, objects can be created only in a namespace that exists; `default` always does.
 * If it does not, every namespace exists.
 */
export const NAMESPACES: ResourceDefinition<Namespace> = {
  group: '',
  version: 'v1',
  plural: 'namespaces',
  kind: 'Namespace',
  shortNames: ['ns'],
  namespaced: false,
  fields: { 'status.phase': ({ status }) => status?.phase ?? '' },
  validate: ours((object, old) => [
    ...finalizersOf(object),
    ...finalizerCauses(object.spec?.finalizers ?? [], (at) => (old === undefined ? 'spec.finalizers' : `spec.finalizers[${at}]`)),
    ...phaseCauses(object, old),
  ]),
  columns: [
    {
      name: 'Status',
      type: 'string',
      description: 'Whether it is being deleted.',
      value: ({ metadata, status }) => status?.phase ?? (metadata?.deletionTimestamp === undefined ? 'Active' : 'Terminating'),
    },
    AGE,
  ],
};

/** Upstream: `ValidateNamespaceStatusUpdate`. A namespace that was stored without a phase may stay without one. */
function phaseCauses({ metadata, status }: Namespace, old: Namespace | undefined): FieldCause[] {
  const phase = status?.phase ?? '';
  const [due, when] =
    metadata?.deletionTimestamp === undefined
      ? (['Active', 'if `deletionTimestamp` is empty'] as const)
      : (['Terminating', 'if `deletionTimestamp` is not empty'] as const);
  if (old === undefined || phase === due || phase === (old.status?.phase ?? '')) return [];
  const message = `Invalid value: ${JSON.stringify(phase.slice(0, 300))}: may only be '${due}' ${when}`;
  return [{ field: 'status.Phase', message }];
}

/** `serviceaccounts` of `v1`, as mere objects: no tokens are issued for them. */
export const SERVICE_ACCOUNTS: ResourceDefinition<ServiceAccount> = {
  group: '',
  version: 'v1',
  plural: 'serviceaccounts',
  kind: 'ServiceAccount',
  shortNames: ['sa'],
  validate: ours(finalizersOf),
};

/** Leases, by which programs agree on which of them leads: client-go's leader election needs nothing else from a server. */

export type { Lease, LeaseSpec };

/** `leases` of `coordination.k8s.io/v1`. */
export const LEASES: ResourceDefinition<Lease> = {
  group: 'coordination.k8s.io',
  version: 'v1',
  plural: 'leases',
  kind: 'Lease',
  columns: [
    { name: 'Holder', type: 'string', description: 'The current holder.', value: ({ spec }) => spec?.holderIdentity },
    AGE as NonNullable<ResourceDefinition<Lease>['columns']>[number],
  ],
  validate: ours(({ spec }) => causesOf(spec ?? {})),
};

/** Upstream: `ValidateLeaseSpec`. */
function causesOf({ leaseDurationSeconds, leaseTransitions }: LeaseSpec): FieldCause[] {
  const causes: FieldCause[] = [];
  if ((leaseDurationSeconds ?? 1) <= 0) {
    const message = `Invalid value: ${leaseDurationSeconds}: must be greater than 0`;
    causes.push({ field: 'spec.leaseDurationSeconds', message });
  }
  if ((leaseTransitions ?? 0) < 0) {
    const message = `Invalid value: ${leaseTransitions}: must be greater than or equal to 0`;
    causes.push({ field: 'spec.leaseTransitions', message });
  }
  return causes;
}

/**
 * All of Kubernetes' own kinds that are built in: `resources: [...BUILT_IN_KINDS, ORDERS]`. They include NAMESPACES, so objects
 * can be created only in namespaces that exist.
 */
export const BUILT_IN_KINDS: readonly ResourceDefinition[] = [
  ...[CONFIG_MAPS, ...EVENTS, LEASES, NAMESPACES, SECRETS, SERVICE_ACCOUNTS],
  ...REVIEWS,
] as readonly ResourceDefinition[];
