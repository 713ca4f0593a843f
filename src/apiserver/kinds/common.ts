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

/** Custom resources may have other finalizers; Kubernetes' own kinds may not. Upstream: `validateKubeFinalizerName`. */
export function finalizerCauses(names: readonly string[], fieldOf: (at: number) => string): FieldCause[] {
  const wrong = 'name is neither a standard finalizer name nor is it fully qualified';
  return names.flatMap((name, at) =>
    name.includes('/') || STANDARD_FINALIZERS.includes(name)
      ? []
      : [{ field: fieldOf(at), message: `Invalid value: ${JSON.stringify(name)}: ${wrong}` }],
  );
}

/** The beginning of a value's JSON. */
export const shown = (value: unknown): string => jsonStart(value, 300);

export const required = (field: string): FieldCause => ({ field, message: 'Required value' });

export function finalizersOf({ metadata }: KubernetesObject): FieldCause[] {
  return finalizerCauses(metadata?.finalizers ?? [], (at) => `metadata.finalizers[${at}]`);
}

/** Whether objects of a resource are questions, which are answered and not stored. */
export function isReview(group: string, plural: string): boolean {
  return /^(authentication|authorization)\.k8s\.io$/.test(group) && /^selfsubject[a-z]*reviews$/.test(plural);
}
