/** Objects without their content. Upstream: `metav1.PartialObjectMetadata`. */
import type { KubernetesObject, ObjectMeta } from '../../cache/object.ts';

/** What remains of an object. */
interface PartialObjectMetadata {
  readonly kind: 'PartialObjectMetadata';
  readonly apiVersion: string;
  readonly metadata: ObjectMeta;
}

/** What a list says about itself. Upstream: `metav1.ListMeta`. */
export interface ListMeta {
  readonly resourceVersion?: string | undefined;
  readonly continue?: string | undefined;
  readonly remainingItemCount?: number | undefined;
}

/** The metadata of an object, under the version of `meta.k8s.io` that a client knows. */
export function toPartial(object: KubernetesObject, version: 'v1' | 'v1beta1' = 'v1'): PartialObjectMetadata {
  return { kind: 'PartialObjectMetadata', apiVersion: `meta.k8s.io/${version}`, metadata: object.metadata ?? {} };
}

/** A list of metadata. */
interface PartialObjectMetadataList {
  readonly kind: 'PartialObjectMetadataList';
  readonly apiVersion: string;
  readonly metadata: ListMeta;
  readonly items: readonly PartialObjectMetadata[];
}

/** The metadata of a list's objects, and the list's own. */
export function toPartialList(
  objects: readonly KubernetesObject[],
  { version = 'v1', metadata = {} }: { version?: 'v1' | 'v1beta1' | undefined; metadata?: ListMeta | undefined } = {},
): PartialObjectMetadataList {
  const items = objects.map((each) => toPartial(each, version));
  return { kind: 'PartialObjectMetadataList', apiVersion: `meta.k8s.io/${version}`, metadata, items };
}
