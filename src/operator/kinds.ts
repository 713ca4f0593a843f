/**
 * How an operator names kinds, and finds what a server calls them.
 *
 *     'deployments.apps/v1'                        as `Cluster.resource` takes it
 *     { group, version, plural, kind, namespaced } a `ResourceType`: nothing has to be asked
 *     { apiVersion, kind }                         as it stands in an object
 *     WEBSITES                                     any of these with the type of its objects: `kind<Website>(...)`
 */
import type { KubernetesObject } from '../cache/object.ts';
import type { ResourceClient, ResourceType } from '../cache/resource-client.ts';
import { checkedType } from '../kubernetes/resource.ts';

/** A kind as its objects name it. Upstream: `schema.GroupVersionKind`. */
export interface GroupVersionKind {
  /** Such as `apps/v1`, or `v1` for the core group. */
  readonly apiVersion: string;
  /** Such as `Deployment`. */
  readonly kind: string;
}

/** Where the type of a kind's objects is written: nothing at run time. */
declare const OBJECT: unique symbol;

/** A kind of objects `T`, as {@link kind} and `npx watchmux types` make it. */
export type Kind<T extends object = KubernetesObject> = (ResourceType | GroupVersionKind) & { readonly [OBJECT]?: T };

/** Whatever names a kind. */
export type KindName<T extends object = KubernetesObject> = string | Kind<T>;

/** What has resources of many kinds: a `Cluster`, or an `ApiServer` in the same process. */
export interface ResourceSource {
  /** The objects of one kind, in all namespaces. */
  resource<T extends object = KubernetesObject>(type: string | ResourceType): ResourceClient<T>;
  /** The same by discovery: the result knows its version, its kind, and whether it is namespaced. */
  kind<T extends object = KubernetesObject>(
    kind: string | GroupVersionKind,
    options?: { readonly signal?: AbortSignal | undefined },
  ): Promise<ResourceClient<T>>;
}

/**
 * Gives a kind the type of its objects.
 *
 *     const WEBSITES = kind<Website>('websites.example.com/v1');
 */
export function kind<T extends object = KubernetesObject>(type: string | ResourceType): ResourceType & Kind<T>;
export function kind<T extends object = KubernetesObject>(type: GroupVersionKind): Kind<T>;
export function kind<T extends object = KubernetesObject>(type: string | ResourceType | GroupVersionKind): Kind<T> {
  return (typeof type === 'string' ? checkedType(type) : type) as Kind<T>;
}
