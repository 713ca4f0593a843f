import { invalid } from '../watch/errors.ts';

/**
 * The metadata of every Kubernetes object. Everything is optional, so that the classes of `@kubernetes/client-node` and your own
 * objects fit. Upstream: `metav1.ObjectMeta`.
 */
export interface ObjectMeta {
  readonly name?: string | undefined;
  readonly generateName?: string | undefined;
  /** Undefined or empty for objects without a namespace. */
  readonly namespace?: string | undefined;
  readonly uid?: string | undefined;
  /** The version of the last change. Opaque: compare versions with the source's comparator; see `compareVersions`. */
  readonly resourceVersion?: string | undefined;
  readonly generation?: number | undefined;
  readonly creationTimestamp?: string | Date | undefined;
  readonly deletionTimestamp?: string | Date | undefined;
  readonly labels?: Readonly<Record<string, string>> | undefined;
  readonly annotations?: Readonly<Record<string, string>> | undefined;
  readonly finalizers?: readonly string[] | undefined;
  readonly ownerReferences?: readonly object[] | undefined;
  /** Who manages which fields. Upstream: `metav1.ManagedFieldsEntry`. */
  readonly managedFields?: readonly object[] | undefined;
}

/** An object as Kubernetes sends it. Upstream: `metav1.Object` and `runtime.Object`. */
export interface KubernetesObject {
  readonly apiVersion?: string | undefined;
  readonly kind?: string | undefined;
  readonly metadata?: ObjectMeta | undefined;
}

/** The metadata of a value of any kind; empty if it has none. Reads only what the value itself says, so it never throws. */
export function metadataOf(object: unknown): ObjectMeta {
  return (object as KubernetesObject | null | undefined)?.metadata ?? {};
}

/** The namespace of an object; empty if it is in none. */
export function namespaceOf(object: unknown): string {
  const { namespace } = metadataOf(object);
  return typeof namespace === 'string' ? namespace : '';
}

/** The version of an object; empty if it has none. */
export function versionOf(object: unknown): string {
  const resourceVersion = (object as KubernetesObject | null | undefined)?.metadata?.resourceVersion;
  return typeof resourceVersion === 'string' ? resourceVersion : '';
}

/**
 * The default key of an object: `<namespace>/<name>`, or `<name>` if it is in no namespace. Objects with different names never
 * have the same key, because a `/` that could be mistaken for the separator is refused.
 *
 * Upstream: `MetaNamespaceKeyFunc`, which does not refuse it.
 *
 * @throws {WatchError} INVALID_ARGUMENT for an object without a name, and for a `/` in a namespace, or in a name without one.
 */
export function keyOf(object: KubernetesObject): string {
  const { name } = metadataOf(object);
  const namespace = namespaceOf(object);
  if (typeof name !== 'string' || !name) {
    throw invalid('object.metadata.name', name, 'a non-empty string; pass keyOf for objects without one');
  }
  if (namespace.includes('/')) throw invalid('object.metadata.namespace', namespace, 'a string without "/"');
  if (!namespace && name.includes('/')) throw invalid('object.metadata.name', name, 'a string without "/", or a namespace');
  return namespace ? `${namespace}/${name}` : name;
}

/**
 * Splits a key that {@link keyOf} made. The namespace is empty if there is none. Upstream: `SplitMetaNamespaceKey`, which refuses
 * more than one `/`.
 */
export function splitKey(key: string): { readonly namespace: string; readonly name: string } {
  const at = key.indexOf('/');
  return { namespace: key.slice(0, Math.max(at, 0)), name: key.slice(at + 1) };
}
