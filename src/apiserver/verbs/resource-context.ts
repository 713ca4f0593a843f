import type { KubernetesObject } from '../../cache/object.ts';
import type { NamespacedName } from '../../cache/resource-client.ts';
import type { Storage } from '../../storage/storage.ts';
import type { FieldCause } from '../definition.ts';
import type { ResourceInfo } from '../resource-info.ts';

/** How an object is emptied. */
export interface EmptyTerms {
  /** Check everything, and change nothing. */
  readonly dryRun: boolean;
  readonly signal: AbortSignal | undefined;
}

/** What the verbs of one resource need. */
export interface ResourceContext {
  readonly info: ResourceInfo;
  /** The part of the storage for this resource, in all namespaces. */
  readonly storage: Storage<KubernetesObject>;
  /** The time of day, in milliseconds since 1970. */
  readonly now: () => number;
  readonly random: () => number;
  readonly uid: () => string;
  readonly maxSelectorLength: number;
  /** Called with unexpected errors. */
  readonly onError: (error: unknown) => void;
  /** Aborts when the server shuts down. Absent if watches of the storage end by themselves then. */
  readonly closing?: AbortSignal | undefined;
  /**
   * Rejects with the error for the client if an object of this name may not be created in a namespace. Otherwise resolves with the
   * `uid` to pass to `namespaceHolds` once the object has been created; undefined if that check is not needed.
   */
  readonly namespaceExists: (namespace: string, name: string) => Promise<string | undefined>;
  /** Rejects if the namespace of a new object is Terminating, or has gone. */
  readonly namespaceHolds: (namespace: string, checked: { uid: string; created: KubernetesObject }) => Promise<void>;
  /** Called when an object is gone for good. */
  readonly removed: (namespace: string | undefined) => void;
  /** Deletes what an object contains, as namespaces do. Resolves to whether nothing is left; rejects to refuse. */
  readonly empty?: ((object: KubernetesObject, terms: EmptyTerms) => Promise<boolean>) | undefined;
  /** Adds the server's own members to a new object, as for namespaces. */
  readonly prepared?: (<T extends KubernetesObject>(object: T) => T) | undefined;
  /** What is wrong with an object according to the resource's schema. */
  readonly bySchema?: ((object: KubernetesObject) => readonly FieldCause[] | Promise<readonly FieldCause[]>) | undefined;
}

/** The key of an object in the storage of its resource. */
export function storageKey({ namespace, name }: NamespacedName): string {
  return namespace === undefined ? name : `${namespace}/${name}`;
}

/** The time as Kubernetes writes it: to the second. */
export function timestamp(ms: number): string {
  return new Date(ms).toISOString().replace(/\.\d+Z$/, 'Z');
}
