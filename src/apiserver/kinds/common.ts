/** What several kinds have in common. */
import type { KubernetesObject } from '../../cache/object.ts';
import type { FieldCause, PrinterColumn } from '../definition.ts';
import { jsonStart } from '../validation/causes.ts';

/** The last column of most kinds. */
export const AGE: PrinterColumn = {
  name: 'Age',
  type: 'date',
  description: 'CreationTimestamp is the time on the server when this object was created.',
  value: ({ metadata }) => metadata?.creationTimestamp as string | undefined,
};

const STANDARD_FINALIZERS: readonly string[] = ['kubernetes', 'orphan', 'foregroundDeletion'];

/** Whether a finalizer belongs to Kubernetes, or says to whom it belongs. */
const isQualified = (name: string): boolean => name.includes('/') || STANDARD_FINALIZERS.includes(name);

/** Custom resources may have other finalizers; Kubernetes' own kinds may not. Upstream: `validateKubeFinalizerName`. */
export function finalizerCauses(names: readonly string[], fieldOf: (at: number) => string): FieldCause[] {
  const wrong = 'name is neither a standard finalizer name nor is it fully qualified';
  return names.flatMap((name, at) =>
    isQualified(name) ? [] : [{ field: fieldOf(at), message: `Invalid value: ${JSON.stringify(name)}: ${wrong}` }],
  );
}

const MAX_WARNINGS = 100;

/** The warnings for such finalizers that a custom resource did not have before. Upstream: `generateWarningsFromObj`. */
export function finalizerWarnings(names: readonly string[], old: readonly string[] = []): string[] {
  const others = names.filter((name) => !isQualified(name));
  if (others.length === 0) return [];
  const before = new Set(old);
  const added = [...new Set(others)].filter((name) => !before.has(name)).slice(0, MAX_WARNINGS);
  const why = 'to avoid accidental conflicts with other finalizer writers';
  return added.sort().map((name) => {
    const path = name.includes('.') ? ' including a path (/)' : '';
    return `metadata.finalizers: ${JSON.stringify(name)}: prefer a domain-qualified finalizer name${path} ${why}`;
  });
}

/** The beginning of a value's JSON. */
export const shown = (value: unknown): string => jsonStart(value, 300);

export const required = (field: string): FieldCause => ({ field, message: 'Required value' });

export function finalizersOf({ metadata }: KubernetesObject): FieldCause[] {
  return finalizerCauses(metadata?.finalizers ?? [], (at) => `metadata.finalizers[${at}]`);
}

/** Whether objects of a resource are questions, which are answered and not stored. */
export function isReview(group: string, plural: string): boolean {
  return /^(authentication|authorization)\.k8s\.io$/.test(group) && /^[a-z]+reviews$/.test(plural);
}

/** Of these kinds, an update of a missing object creates it. Upstream: `AllowCreateOnUpdate` of their strategies. */
export const CREATED_BY_UPDATE: ReadonlySet<string> = new Set([
  ...['endpoints', 'events', 'events.events.k8s.io', 'leases.coordination.k8s.io', 'limitranges', 'runtimeclasses.node.k8s.io'],
  ...[
    'services',
    ...['roles', 'rolebindings', 'clusterroles', 'clusterrolebindings'].map((name) => `${name}.rbac.authorization.k8s.io`),
  ],
]);

/** Of this kind, a new object has the status that is sent. Upstream: `PrepareForCreate` of its strategy resets nothing. */
export const CREATED_WITH_STATUS = 'nodes';

/** Of these kinds, an update must say which version it replaces. Upstream: `AllowUnconditionalUpdate` of their strategies is false. */
export const UPDATED_BY_VERSION: ReadonlySet<string> = new Set([
  ...['leases.coordination.k8s.io', 'poddisruptionbudgets.policy', 'runtimeclasses.node.k8s.io'],
  ...['csidrivers', 'csinodes', 'csistoragecapacities', 'volumeattachments'].map((name) => `${name}.storage.k8s.io`),
  ...['mutating', 'validating'].map((which) => `${which}webhookconfigurations.admissionregistration.k8s.io`),
]);

/** Of these kinds, the answer to a deletion is the object even if it is gone. Upstream: `ReturnDeletedObject`. */
export const RETURNED_WHEN_GONE: ReadonlySet<string> = new Set([
  ...['persistentvolumes', 'persistentvolumeclaims', 'pods', 'podtemplates', 'resourcequotas', 'services', 'serviceaccounts'],
  ...['csidrivers', 'csinodes', 'storageclasses', 'volumeattachments', 'volumeattributesclasses'].map(
    (name) => `${name}.storage.k8s.io`,
  ),
]);

/** Whether a group belongs to Kubernetes. */
export const isKubernetesGroup = (group: string): boolean => /^[^.]*$|\.k8s\.io$/.test(group);
