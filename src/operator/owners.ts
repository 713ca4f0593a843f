/**
 * The owners of an object: references in its metadata, of which at most one is the controller's. An object is deleted with its
 * owner. Two references are the same if group, kind and name are, whatever the version and the uid. Upstream: `controllerutil`.
 */
import type { OwnerReference as Owner } from '../apiserver/owner-index.ts';
import { type KubernetesObject, keyOf, metadataOf, namespaceOf } from '../cache/object.ts';
import type { ResourceType } from '../cache/resource-client.ts';
import { checkOptions, invalid, isContainer, isRecord } from '../watch/errors.ts';
import type { GroupVersionKind } from './kinds.ts';

/** A reference to an owner. Upstream: `metav1.OwnerReference`. */
export interface OwnerReference extends Owner {
  /** Whether this owner manages the object. */
  readonly controller?: boolean | undefined;
}

/** Options of {@link setOwner}. */
export interface OwnerOptions {
  /** Whether the owner manages the object; at most one owner does. Default true. */
  readonly controller?: boolean | undefined;
  /** Whether foreground deletion of the owner waits for the object. Default true for a controller, otherwise left out. */
  readonly blockOwnerDeletion?: boolean | undefined;
}

/**
 * Makes `owner` an owner of `object`, or updates its reference. Returns whether anything changed.
 *
 * Upstream: `SetControllerReference` and, for `controller: false`, `SetOwnerReference`.
 *
 * @throws {WatchError} INVALID_ARGUMENT if the owner lacks apiVersion, kind, name or uid, if another owner is the controller, and for
 * an owner in a namespace whose object is in another, or in none.
 */
export function setOwner(object: KubernetesObject, owner: KubernetesObject, options: OwnerOptions = {}): boolean {
  const { controller = true, blockOwnerDeletion = controller || undefined } = checkOptions(options, OPTION_NAMES);
  const reference: OwnerReference = {
    ...whoIs(owner),
    uid: required('owner.metadata.uid', metadataOf(owner).uid),
    ...(controller && { controller }),
    ...(blockOwnerDeletion !== undefined && { blockOwnerDeletion }),
  };
  const [outer, inner] = [namespaceOf(owner), namespaceOf(object)];
  if (outer && outer !== inner) {
    throw invalid('object.metadata.namespace', inner || undefined, `${outer}, that of its owner, or an owner in no namespace`);
  }
  const owners = referencesOf(object);
  if (controller) checkController(object, owner);
  const at = owners.findIndex((each) => isSame(each, reference));
  const known = owners[at];
  if (known && MEMBERS.every((name) => known[name] === reference[name])) return false;
  write(object, at < 0 ? [...owners, reference] : owners.with(at, reference));
  return true;
}

/** Throws INVALID_ARGUMENT if a different owner controls an object. */
export function checkController(object: KubernetesObject, owner: KubernetesObject): void {
  const [own, other] = [whoIs(owner), controllerOf(object)];
  if (other && !isSame(other, own)) throw invalid('owner', nameOf(own), `${nameOf(other)}, which controls the object already`);
}

/** Removes an owner's reference. Returns whether there was one. Upstream: `RemoveOwnerReference`, which fails if there is none. */
export function removeOwner(object: KubernetesObject, owner: KubernetesObject): boolean {
  const owners = referencesOf(object);
  const reference = whoIs(owner);
  const at = owners.findIndex((each) => isSame(each, reference));
  if (at >= 0) write(object, owners.toSpliced(at, 1));
  return at >= 0;
}

/** The reference to the owner that manages an object; undefined if there is none. Upstream: `metav1.GetControllerOf`. */
export function controllerOf(object: KubernetesObject): OwnerReference | undefined {
  return referencesOf(object).find((each) => each.controller === true);
}

/**
 * Returns a function that maps an object to the key of its controller, if that is of this kind, in any version; with
 * `controller: false` to the keys of all its owners of this kind.
 *
 *     watches: [{ kind: PODS, keysOf: ownersOf({ apiVersion: 'batch/v1', kind: 'Job' }, { controller: false }) }]
 *
 * Owners are in the object's namespace, unless a kind says `namespaced: false`. An object in no namespace has no owner of a kind that
 * says `namespaced: true`, as no garbage collector would take it for one. Upstream: `handler.EnqueueRequestForOwner`, where
 * `OnlyControllerOwner` is not the default.
 *
 * @throws {WatchError} INVALID_ARGUMENT for a kind of which only the plural is known: references name kinds.
 */
export function ownersOf(
  kind: GroupVersionKind | ResourceType,
  options: Pick<OwnerOptions, 'controller'> = {},
): (object: KubernetesObject) => readonly string[] {
  const { controller = true } = checkOptions(options, ['controller']);
  const name = required('kind.kind', kind.kind);
  const { group = '', namespaced } = 'apiVersion' in kind ? { group: groupOf(kind.apiVersion), namespaced: undefined } : kind;
  return (object) => {
    const namespace = namespaced === false ? '' : namespaceOf(object);
    if (namespaced && !namespace) return [];
    return referencesOf(object)
      .filter((each) => each.kind === name && groupOf(each.apiVersion) === group && (!controller || each.controller === true))
      .map((each) => keyOf({ metadata: { name: each.name, namespace } }));
  };
}

const OPTION_NAMES = ['controller', 'blockOwnerDeletion'] as const;
const MEMBERS = ['apiVersion', 'kind', 'name', 'uid', 'controller', 'blockOwnerDeletion'] as const;

type Who = Pick<OwnerReference, 'apiVersion' | 'kind' | 'name'>;

const nameOf = ({ kind, name }: Who): string => `${kind} ${name}`;

/** The references of an object. Anything may have been written past the API. */
function referencesOf(object: KubernetesObject): readonly OwnerReference[] {
  const owners = metadataOf(object).ownerReferences;
  return Array.isArray(owners) ? owners.filter((each): each is OwnerReference => isRecord(each)) : [];
}

function write(object: KubernetesObject, owners: readonly OwnerReference[]): void {
  const holder = object as { metadata?: { ownerReferences?: readonly object[] } };
  holder.metadata ??= {};
  holder.metadata.ownerReferences = owners;
}

function whoIs(owner: KubernetesObject): Who {
  if (!isContainer(owner)) throw invalid('owner', owner, 'an object');
  return {
    apiVersion: required('owner.apiVersion', owner.apiVersion),
    kind: required('owner.kind', owner.kind),
    name: required('owner.metadata.name', metadataOf(owner).name),
  };
}

function required(name: string, value: string | undefined): string {
  if (typeof value !== 'string' || !value) throw invalid(name, value, 'a non-empty string');
  return value;
}

function isSame(one: Who, other: Who): boolean {
  return one.kind === other.kind && one.name === other.name && groupOf(one.apiVersion) === groupOf(other.apiVersion);
}

/** The group of an `apiVersion`; empty for the core group. */
function groupOf(apiVersion: string): string {
  const text = String(apiVersion);
  return text.slice(0, Math.max(text.indexOf('/'), 0));
}
