/**
 * What becomes of an object on its way into the storage. Pure functions: they take what was sent and what is there, and return what
 * is written, or throw what is told. Upstream: `rest.BeforeCreate`, `rest.BeforeUpdate` and the validation of `ObjectMeta`.
 *
 *     sent ---> shape (400) ---> fields of the server's own ---> metadata (422) ---> schema, validate (422) ---> stored
 */

import type { KubernetesObject, ObjectMeta } from '../../cache/object.ts';
import { faultOfKey, faultOfValue } from '../../selectors/label-text.ts';
import { invalid } from '../../watch/errors.ts';
import { isPromise } from '../../watch/promises.ts';
import { badRequest, conflict, invalidObject, MODIFIED } from '../api-status.ts';
import type { FieldCause } from '../definition.ts';
import { isRecord, type Json } from '../request/json.ts';
import type { ResourceInfo } from '../resource-info.ts';
import { sameJson } from './equal.ts';
import { faultOfLabel, faultOfSubdomain, generateName, shown, utf8Bytes } from './names.ts';
import type { NamespacedName, ResourceContext } from './resource-context.ts';
import { timestamp } from './resource-context.ts';

/** An object whose members are not known. */
export type Mutable = KubernetesObject & Json & { readonly metadata: Meta };

type Meta = ObjectMeta & Json;

/** Whether what was sent is an object that does not say that it is of another kind. */
export function isOfKind(info: ResourceInfo, sent: unknown): boolean {
  if (!isRecord(sent)) return false;
  const { apiVersion = info.apiVersion, kind = info.kind } = sent;
  return apiVersion === info.apiVersion && kind === info.kind;
}

/** Checks that what was sent is an object of this kind at all, and fills in what all of them have in common. */
export function normalized(info: ResourceInfo, sent: unknown): Mutable {
  if (!isRecord(sent)) throw badRequest('expected an object');
  const { apiVersion = info.apiVersion, kind = info.kind, metadata, ...rest } = sent;
  if (!isOfKind(info, sent)) {
    const given = typeof apiVersion === 'string' && typeof kind === 'string' ? `${kind} of ${apiVersion}` : 'something else';
    throw badRequest(`expected a ${info.kind} of ${info.apiVersion}, got a ${given.slice(0, 200)}`);
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
/** The members of metadata in the order in which they are stored, whatever the order in which they come. */
const ORDER = [
  ...(['name', 'generateName', 'namespace', 'uid', 'resourceVersion', 'generation', 'creationTimestamp'] as const),
  ...(['deletionTimestamp', 'deletionGracePeriodSeconds', 'labels', 'annotations', 'ownerReferences', 'finalizers'] as const),
] as const;

const NONE: readonly never[] = [];
const UNCHANGED: Json = {};

const isNullish = (value: unknown): boolean => value === undefined || value === null;
const isText = (value: unknown): boolean => typeof value === 'string' || isNullish(value);

function checkMap(name: string, value: unknown): void {
  if (isNullish(value)) return;
  if (!isRecord(value)) throw badRequest(`metadata.${name}: expected an object`);
  for (const each of Object.values(value)) {
    if (typeof each !== 'string') throw badRequest(`metadata.${name}: expected texts as values`);
  }
}

/** Metadata has known members only, as upstream. Empty ones are left out, and so is what this server does not keep. */
function ordered(metadata: Json, changes: Json = UNCHANGED): Meta {
  const known: Record<string, unknown> = {};
  for (const name of ORDER) {
    const value = name in changes ? changes[name] : metadata[name];
    if (!isEmptyValue(value)) known[name] = value;
  }
  return known as Meta;
}

/** What Kubernetes leaves out: no value, an empty text, list or map. */
function isEmptyValue(value: unknown): boolean {
  return isNullish(value) || value === '' || (typeof value === 'object' && isEmpty(value as object));
}

function isEmpty(object: object): boolean {
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

/** What is wrong with metadata, whoever has written it. */
export function metadataCauses(metadata: Meta): FieldCause[] {
  const causes: FieldCause[] = [];
  const at = (field: string, value: string, expected: string): void =>
    void causes.push({ field, message: `Invalid value: ${shown(value)}: expected ${expected}` });
  for (const [key, value] of Object.entries(metadata.labels ?? {})) {
    const keyFault = faultOfKey(key);
    if (keyFault) at('metadata.labels', key, keyFault.expected);
    const valueFault = faultOfValue(value);
    if (valueFault) at('metadata.labels', value, valueFault.expected);
  }
  let bytes = 0;
  for (const [key, value] of Object.entries(metadata.annotations ?? {})) {
    const fault = faultOfKey(key.toLowerCase());
    if (fault) at('metadata.annotations', key, fault.expected);
    bytes += utf8Bytes(key) + utf8Bytes(value);
  }
  if (bytes > MAX_ANNOTATION_BYTES) {
    causes.push({ field: 'metadata.annotations', message: `Too long: may not be more than ${MAX_ANNOTATION_BYTES} bytes` });
  }
  for (const finalizer of metadata.finalizers ?? []) {
    const fault = faultOfKey(finalizer);
    if (fault) at('metadata.finalizers', finalizer, fault.expected);
  }
  return [...causes, ...ownerCauses(metadata)];
}

/** Upstream: `ValidateOwnerReferences`. */
function ownerCauses({ ownerReferences = [] }: Meta): FieldCause[] {
  const references = ownerReferences as readonly (Json | null)[];
  const causes = references.flatMap((reference, at) =>
    ['apiVersion', 'kind', 'name', 'uid']
      .filter((member) => !reference?.[member])
      .map((member) => ({ field: `metadata.ownerReferences[${at}].${member}`, message: 'Required value: must not be empty' })),
  );
  const controllers = references.filter((reference) => reference?.controller === true);
  if (controllers.length < 2) return causes;
  const which = shown(controllers.map((reference) => String(reference?.name)).join(', '));
  const message = `Invalid value: ${which}: expected one reference with controller set to true`;
  return [...causes, { field: 'metadata.ownerReferences', message }];
}

const MAX_ANNOTATION_BYTES = 262_144;

/** The namespace that an object gets: that of the request, or none. Throws 400 if it says another one than that. */
function inNamespace(object: Mutable, namespace: string | undefined): Mutable {
  const { namespace: own } = object.metadata;
  if (own !== undefined && namespace !== undefined && own !== namespace) {
    throw badRequest('the namespace of the provided object does not match the namespace sent on the request');
  }
  return own === namespace ? object : withMeta(object, { namespace });
}

/** Whether the server counts the generations of this kind. Kubernetes does for all but its oldest kinds, and Leases. */
const countsGenerations = ({ group }: ResourceInfo): boolean => group !== '' && group !== 'coordination.k8s.io';

/** What was sent to be created, if it can be read, and belongs where it was sent to. */
export function decodeCreate(info: ResourceInfo, sent: unknown, namespace: string | undefined): Mutable {
  return inNamespace(normalized(info, sent), namespace);
}

/** The object that a creation writes. It has a name of the server's making if it has only `generateName`. */
export async function prepareCreate(context: ResourceContext, object: Mutable): Promise<Mutable> {
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
  const own = info.status ? without(created, 'status') : created;
  const stored = context.prepared?.(own) ?? own;
  await check(context, stored, { causes: nameCauses(name, metadata.namespace), old: undefined });
  return stored;
}

function nameCauses(name: string, namespace: string | undefined): FieldCause[] {
  const named = faultOfSubdomain(name);
  const spaced = namespace === undefined ? undefined : faultOfLabel(namespace);
  return [
    ...(named === undefined ? [] : [{ field: 'metadata.name', message: named }]),
    ...(spaced === undefined ? [] : [{ field: 'metadata.namespace', message: spaced }]),
  ];
}

function without(object: Mutable, member: string): Mutable {
  const { [member]: _, ...rest } = object;
  return rest as Mutable;
}

interface Checked {
  readonly causes: readonly FieldCause[];
  readonly old: KubernetesObject | undefined;
}

/** Throws, or rejects, if something is wrong with an object. A promise only if somebody has to be waited for. */
function check(context: ResourceContext, object: Mutable, { causes, old }: Checked): Promise<void> | undefined {
  const { info, bySchema } = context;
  const found = [...causes, ...metadataCauses(object.metadata)];
  if (bySchema !== undefined) return checkBySchema(context, object, { causes: found, old });
  const more = found.length === 0 ? info.validate?.(object, old) : undefined;
  if (isPromise(more)) return Promise.resolve(more).then((late) => refuseFor(causesOf(late, info), info, object));
  refuseFor([...found, ...causesOf(more, info)], info, object);
  return undefined;
}

async function checkBySchema({ info, bySchema }: ResourceContext, object: Mutable, { causes, old }: Checked): Promise<void> {
  const found = [...causes, ...((await bySchema?.(object)) ?? [])];
  if (found.length === 0) found.push(...causesOf(await info.validate?.(object, old), info));
  refuseFor(found, info, object);
}

/** What `validate` has returned. Anything but causes is a fault of its owner, and not of whoever writes: it throws what becomes 500. */
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
 * The object that an update writes: `sent`, with what only the server writes as it was. Made at once, unless a check takes time: a
 * storage in memory then writes it in the same turn, and nobody has to begin again.
 */
export function prepareUpdate(
  context: ResourceContext,
  sent: unknown,
  { current, place, status }: { current: KubernetesObject; place: NamespacedName; status: boolean },
): Mutable | Promise<Mutable> {
  const { info } = context;
  const object = inNamespace(normalized(info, sent), place.namespace);
  checkIdentity(info, object, { current, place });
  const old = normalized(info, current.apiVersion === info.apiVersion ? current : { ...current, apiVersion: info.apiVersion });
  const merged = status ? onlyStatus(object, old) : keepOwn(context, object, old);
  const isSame = sameSpec(info, merged, old);
  const next = withMeta(merged, serverMembers(info, old, { sent: merged, isSame }));
  const causes = updateCauses(object.metadata, old.metadata, next.metadata);
  if (isSame && causes.length === 0 && sameJson(next, old)) return current as Mutable;
  return check(context, next, { causes, old: current })?.then(() => next) ?? next;
}

/** What an object says about itself must be so: otherwise somebody updates something else than what he has read. */
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
  // Version 0 is no version: whoever sends it wants no check.
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

function onlyStatus(object: Mutable, old: Mutable): Mutable {
  return { ...without(old, 'status'), ...pick(object, 'status') } as Mutable;
}

/** The status of a namespace is the server's. Upstream: `namespaceStrategy`. */
function keepOwn({ info, empty }: ResourceContext, object: Mutable, old: Mutable): Mutable {
  return info.status || empty ? { ...without(object, 'status'), ...pick(old, 'status') } : object;
}

function pick(object: Mutable, member: string): Json {
  return object[member] === undefined ? {} : { [member]: object[member] };
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

/** Whether all that is not metadata is the same, and no status that is written apart. Upstream: `customResourceStrategy`. */
function sameSpec({ status: isApart }: ResourceInfo, next: Mutable, old: Mutable): boolean {
  return sameJson(next, old, isApart ? META_AND_STATUS : META);
}

const META = ['metadata'] as const;
const META_AND_STATUS = ['metadata', 'status'] as const;

function updateCauses(sent: Meta, old: Meta, next: Meta): FieldCause[] {
  const causes: FieldCause[] = [];
  // What is said of other times is ignored: whoever writes from a file knows those of another object. Upstream: `BeforeUpdate`.
  const { deletionTimestamp } = sent;
  if (deletionTimestamp !== undefined && old.deletionTimestamp === undefined) {
    const message = `Invalid value: ${shown(String(deletionTimestamp))}: field is immutable`;
    causes.push({ field: 'metadata.deletionTimestamp', message });
  }
  if (old.deletionTimestamp === undefined) return causes;
  const before = new Set(old.finalizers); // there may be a hundred thousand of each
  const added = (next.finalizers ?? []).filter((each) => !before.has(each));
  if (added.length > 0) {
    const why = 'no new finalizers can be added if the object is being deleted, found new finalizers';
    causes.push({ field: 'metadata.finalizers', message: `Forbidden: ${why} ${JSON.stringify(added)}` });
  }
  return causes;
}
