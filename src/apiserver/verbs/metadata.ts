/** The shape of an object that was sent, and of its metadata as they are stored. Upstream: `ObjectMeta`. */
import type { KubernetesObject, ObjectMeta } from '../../cache/object.ts';
import { badRequest } from '../api-status.ts';
import { isRecord, type Json } from '../request/json.ts';
import type { ResourceInfo } from '../resource-info.ts';

/** An object whose members are not known. */
export type Mutable = KubernetesObject & Json & { readonly metadata: Meta };

export type Meta = ObjectMeta & Json;

/** Whether what was sent is an object that does not declare another kind. */
export function isOfKind(info: Pick<ResourceInfo, 'apiVersion' | 'kind'>, sent: unknown): boolean {
  if (!isRecord(sent)) return false;
  const { apiVersion = info.apiVersion, kind = info.kind } = sent;
  return apiVersion === info.apiVersion && kind === info.kind;
}

/** Checks that what was sent is an object of this kind, and fills in what all objects have in common. */
export function normalized(info: Pick<ResourceInfo, 'apiVersion' | 'kind'>, sent: unknown): Mutable {
  if (!isRecord(sent)) throw badRequest('expected an object');
  const { apiVersion = info.apiVersion, kind = info.kind, metadata, ...rest } = sent;
  if (!isOfKind(info, sent)) {
    const given = typeof apiVersion === 'string' && typeof kind === 'string' ? `a ${kind} of ${apiVersion}` : 'something else';
    throw badRequest(`expected a ${info.kind} of ${info.apiVersion}, got ${given.slice(0, 202)}`);
  }
  if (metadata !== undefined && metadata !== null && !isRecord(metadata)) throw badRequest('metadata: expected an object');
  const checked = (metadata ?? {}) as Json;
  for (const name of TEXTS) if (!isText(checked[name])) throw badRequest(`metadata.${name}: expected a string`);
  for (const name of MAPS) checkMap(name, checked[name]);
  for (const name of LISTS) {
    const value = checked[name];
    if (!isNullish(value) && !Array.isArray(value)) throw badRequest(`metadata.${name}: expected a list`);
  }
  for (const each of (checked.finalizers ?? NONE) as readonly unknown[]) {
    if (!isText(each)) throw badRequest('metadata.finalizers: expected a string');
  }
  return { apiVersion, kind, metadata: ordered(checked), ...rest } as Mutable;
}

const TEXTS = ['name', 'generateName', 'namespace', 'uid', 'resourceVersion', 'creationTimestamp', 'deletionTimestamp'] as const;
const MAPS = ['labels', 'annotations'] as const;
const LISTS = ['finalizers', 'ownerReferences', 'managedFields'] as const;
/** The members of metadata in the order in which they are stored, in whatever order they come. */
const ORDER = [
  ...(['name', 'generateName', 'namespace', 'uid', 'resourceVersion', 'generation', 'creationTimestamp'] as const),
  ...(['deletionTimestamp', 'deletionGracePeriodSeconds', 'labels', 'annotations', 'ownerReferences', 'finalizers'] as const),
] as const;

const NONE: readonly never[] = [];
const UNCHANGED: Json = {};

export const isNullish = (value: unknown): boolean => value === undefined || value === null;
const isText = (value: unknown): boolean => typeof value === 'string' || isNullish(value);

function checkMap(name: string, value: unknown): void {
  if (isNullish(value)) return;
  if (!isRecord(value)) throw badRequest(`metadata.${name}: expected an object`);
  // Their values, of which a list would take twice as long.
  for (const each of Object.keys(value)) {
    if (typeof value[each] !== 'string') throw badRequest(`metadata.${name}: expected strings as values`);
  }
}

/** Metadata has known members only, as upstream. Empty ones are left out, and so are those that this server does not keep. */
function ordered(metadata: Json, changes: Json = UNCHANGED): Meta {
  const known: Record<string, unknown> = {};
  for (const name of ORDER) {
    const value = name in changes ? changes[name] : metadata[name];
    if (!isEmptyValue(value)) known[name] = value;
  }
  return known as Meta;
}

/** What Kubernetes leaves out: null, and empty texts, lists and maps. */
function isEmptyValue(value: unknown): boolean {
  return isNullish(value) || value === '' || (typeof value === 'object' && isEmpty(value as object));
}

function isEmpty(object: object): boolean {
  if (Array.isArray(object)) return object.length === 0;
  for (const _ in object) return false;
  return true;
}

/** Returns metadata with other values of some members; undefined removes one. */
export function withMeta<T extends KubernetesObject>(
  object: T,
  changes: Partial<Record<keyof ObjectMeta | 'deletionGracePeriodSeconds', unknown>>,
): T {
  return { ...object, metadata: ordered((object.metadata as Json | undefined) ?? UNCHANGED, changes) };
}
