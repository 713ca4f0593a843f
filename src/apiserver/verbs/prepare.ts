/**
 * Prepares an object for the storage. Pure functions: they take what was sent and what is there, and return what is written, or
 * throw the client's error. Upstream: `rest.BeforeCreate` and `rest.BeforeUpdate`.
 *
 *     sent ---> shape (400) ---> the server's own fields ---> metadata (422) ---> schema, validate (422) ---> stored
 */

import type { KubernetesObject } from '../../cache/object.ts';
import type { NamespacedName } from '../../cache/resource-client.ts';
import { comparing } from '../../storage/json.ts';
import { isPromise } from '../../watch/abort.ts';
import { invalid } from '../../watch/errors.ts';
import { inPieces, paceOf, type Work } from '../../watch/fair-queue.ts';
import { badRequest, conflict, invalidObject, MODIFIED } from '../api-status.ts';
import type { FieldCause } from '../definition.ts';
import { isRecord, type Json } from '../request/json.ts';
import type { ResourceInfo } from '../resource-info.ts';
import { type Subresource, withMembers } from '../subresources.ts';
import { isNullish, type Mutable, normalized, withMeta } from './metadata.ts';
import { metadataCauses, nameCauses, updateCauses } from './metadata-causes.ts';
import { generateName, shown } from './names.ts';
import type { ResourceContext } from './resource-context.ts';
import { timestamp } from './resource-context.ts';

/** The namespace that an object gets: that of the request, or none. Throws 400 if the object names another one. */
function inNamespace(object: Mutable, namespace: string | undefined): Mutable {
  const { namespace: own } = object.metadata;
  if (own !== undefined && namespace !== undefined && own !== namespace) {
    throw badRequest('the namespace of the provided object does not match the namespace sent on the request');
  }
  return own === namespace ? object : withMeta(object, { namespace });
}

/** Whether the server counts this kind's generations. Kubernetes does so for all but its oldest kinds, and Leases. */
const countsGenerations = ({ group }: ResourceInfo): boolean => group !== '' && group !== 'coordination.k8s.io';

/** What was sent to be created, if it can be read, and belongs at the place that it was sent to. */
export function decodeCreate(info: ResourceInfo, sent: unknown, namespace: string | undefined): Mutable {
  return inNamespace(normalized(info, sent), namespace);
}

/** The object that a creation writes. The server makes its name if it has only `generateName`. */
export async function prepareCreate(
  context: ResourceContext,
  object: Mutable,
  signal?: AbortSignal | undefined,
): Promise<Mutable> {
  const { info } = context;
  const { metadata } = object;
  if (metadata.resourceVersion !== undefined) throw badRequest('resourceVersion should not be set on objects to be created');
  const { generateName: base } = metadata;
  const name = metadata.name ?? (base && generateName(base, context.random));
  const required = { field: 'metadata.name', message: 'Required value: name or generateName is required' };
  if (!name) throw invalidObject(info, '', [required]);
  const created = withMeta(object, {
    name,
    uid: context.uid(),
    generation: countsGenerations(info) ? 1 : undefined,
    creationTimestamp: timestamp(context.now()),
    deletionTimestamp: undefined,
    deletionGracePeriodSeconds: undefined,
  });
  const own = withMembers(created, NOTHING, info.apart);
  const stored = context.prepared?.(own) ?? own;
  const checked = check(context, stored, { causes: nameCauses(name, metadata.namespace), old: undefined });
  await inPieces(checked, { pace: paceOf(signal), signal });
  return stored;
}

const NOTHING: Json = {};

interface Checked {
  readonly causes: readonly FieldCause[];
  readonly old: KubernetesObject | undefined;
}

/** Throws, or the promise rejects, if something is wrong with an object. Returns a promise only if there is something to wait for. */
function* check(context: ResourceContext, object: Mutable, { causes, old }: Checked): Work<Promise<void> | undefined> {
  const { info, bySchema } = context;
  const found = [...causes, ...(yield* metadataCauses(object.metadata))];
  if (bySchema !== undefined) return checkBySchema(context, object, { causes: found, old });
  found.push(...partCauses(info, object));
  const more = found.length === 0 ? info.validate?.(object, old) : undefined;
  if (isPromise(more)) return Promise.resolve(more).then((late) => refuseFor(causesOf(late, info), info, object));
  refuseFor([...found, ...causesOf(more, info)], info, object);
  return undefined;
}

const partCauses = ({ subresources }: ResourceInfo, object: Mutable): FieldCause[] =>
  subresources.flatMap(({ causes }) => causes?.(object) ?? []);

async function checkBySchema({ info, bySchema }: ResourceContext, object: Mutable, { causes, old }: Checked): Promise<void> {
  const found = [...causes, ...((await bySchema?.(object)) ?? []), ...partCauses(info, object)];
  if (found.length === 0) found.push(...causesOf(await info.validate?.(object, old), info));
  refuseFor(found, info, object);
}

/**
 * The causes that `validate` returned. Anything else is an error of its owner, not of the writer: it throws, which becomes a 500.
 */
function causesOf(said: unknown, { resourceName }: ResourceInfo): readonly FieldCause[] {
  if (isNullish(said)) return [];
  const isCause = (each: unknown): boolean =>
    isRecord(each) && typeof each.field === 'string' && typeof each.message === 'string';
  if (Array.isArray(said) && said.every(isCause)) return said;
  const wrong = Array.isArray(said) ? said.find((each) => !isCause(each)) : said;
  const expected = 'a list of causes, { field, message }, or undefined if there are none';
  throw new TypeError(invalid(`validate of ${resourceName}`, wrong, expected).message);
}

function refuseFor(causes: readonly FieldCause[], info: ResourceInfo, { metadata }: Mutable): void {
  if (causes.length > 0) throw invalidObject(info, metadata.name ?? '', causes);
}

/**
 * The object that an update writes: `sent`, merged as its path has it, with the old values of what only the server writes. A
 * promise only if a check takes time: otherwise a storage in memory writes it in the same turn, and never has to start again.
 */
export function* prepareUpdate(
  context: ResourceContext,
  sent: unknown,
  { current, place, row }: { current: KubernetesObject; place: NamespacedName; row: Subresource },
): Work<Mutable | Promise<Mutable>> {
  const { info } = context;
  const object = inNamespace(normalized(row.kind ?? info, sent), place.namespace);
  const fault = row.fault?.(object);
  if (fault !== undefined) throw badRequest(fault);
  checkIdentity(info, object, { current, place });
  const old = normalized(info, current.apiVersion === info.apiVersion ? current : { ...current, apiVersion: info.apiVersion });
  const merged = row.merge(object, old);
  // Upstream: `customResourceStrategy`.
  const { apart } = info;
  const isSame = yield* comparing(merged, old, apart.length === 0 ? META : ['metadata', ...apart]);
  const next = withMeta(merged, serverMembers(info, old, { sent: merged, isSame }));
  const causes = updateCauses(merged.metadata, old.metadata, next.metadata);
  const others = (of: Mutable): unknown => [of.metadata, ...apart.map((member) => of[member])];
  if (isSame && causes.length === 0 && (yield* comparing(others(next), others(old)))) return current as Mutable;
  return (yield* check(context, next, { causes, old: current }))?.then(() => next) ?? next;
}

/**
 * An object's own name and versions must match the stored ones: otherwise a client would update something other than what it has
 * read.
 */
function checkIdentity(
  info: ResourceInfo,
  { metadata }: Mutable,
  { current, place }: { current: KubernetesObject; place: NamespacedName },
): void {
  const { name = '', uid, resourceVersion } = metadata;
  if (name !== place.name) {
    throw badRequest(`the name of the object (${name.slice(0, 300)}) does not match the name on the URL (${place.name})`);
  }
  const { uid: currentUid, resourceVersion: currentVersion } = current.metadata ?? {};
  if (uid !== undefined && uid !== currentUid) {
    const message = `Precondition failed: UID in precondition: ${uid.slice(0, 100)}, UID in object meta: ${currentUid}`;
    throw conflict(info, name, message);
  }
  // Version 0 is no version: a client that sends it wants no check.
  const expected = resourceVersion === '0' ? undefined : resourceVersion;
  if (expected !== undefined && expected !== currentVersion) throw modified(info, name, expected);
}

function modified(info: ResourceInfo, name: string, version: string): Error {
  if (/^(0|[1-9][0-9]{0,38})$/.test(version)) {
    return conflict(info, name, MODIFIED);
  }
  const message = `Invalid value: ${shown(version)}: expected a decimal number`;
  return invalidObject(info, name, [{ field: 'metadata.resourceVersion', message }]);
}

/** The members of metadata that only the server writes. */
function serverMembers(info: ResourceInfo, old: Mutable, { sent, isSame }: { sent: Mutable; isSame: boolean }): Json {
  const { uid, creationTimestamp, deletionTimestamp, deletionGracePeriodSeconds, generation, resourceVersion } = old.metadata;
  const grown = (generation ?? 0) + (isSame ? 0 : 1);
  return {
    ...{ uid, creationTimestamp, deletionTimestamp, deletionGracePeriodSeconds, resourceVersion },
    generation: countsGenerations(info) ? grown : generation,
    generateName: old.metadata.generateName ?? sent.metadata.generateName,
  };
}

/** What is ignored to know whether everything is the same but the metadata. */
const META = ['metadata'] as const;
