/**
 * Create, update and patch. Each is one step in the storage: an update reads and writes the same revision, and if another writer
 * was faster, it is repeated with the new state.
 */
import { likened } from '../../apply/quick.ts';
import { type KubernetesObject, versionOf } from '../../cache/object.ts';
import type { NamespacedName, PatchType } from '../../cache/resource-client.ts';
import { comparing, reparsing } from '../../storage/json.ts';
import { keeping, sharing } from '../../storage/shared.ts';
import { copying, gentle } from '../../storage/values.ts';
import { isPromise } from '../../watch/abort.ts';
import { invalid, isNullish, isRecord } from '../../watch/errors.ts';
import { inPieces, requestPace, type Soon, type Work } from '../../watch/fair-queue.ts';
import { unasked } from '../admission.ts';
import {
  alreadyExists,
  badRequest,
  conflict,
  hasCode,
  invalidObject,
  MODIFIED,
  notFound,
  statusOf,
  translated,
} from '../api-status.ts';
import type { FieldCause } from '../definition.ts';
import { CREATED_WITH_STATUS, finalizerWarnings, isReview, UPDATED_BY_VERSION } from '../kinds/common.ts';
import { type Asker, reviewed } from '../kinds/reviews.ts';
import { zeroOf } from '../kinds/shape.ts';
import { messageOf, shapeOf, typed } from '../kinds/tables.ts';
import { toPatch } from '../patch/patch.ts';
import { checkingParts, type Json } from '../request/json.ts';
import { type ResourceContext, type ResourceInfo, storageKey, timestamp } from '../resource-info.ts';
import { isAction, type Subresource, withMembers } from '../subresources.ts';
import { isOurCheck, tellingOf } from '../validation/causes.ts';
import { type FieldCheck, invalidPatch, unreadable } from '../validation/field-check.ts';
import { fitting } from '../validation/object-schema.ts';
import { isDone } from './grace.ts';
import { managedFieldsAfter, sameButTimes, type Writer } from './managed-fields.ts';
import {
  baseCauses,
  generateName,
  isOfKind,
  type Mutable,
  metadataCauses,
  nameCauses,
  normalized,
  shown,
  updateCauses,
  withMeta,
  withoutTwins,
} from './metadata.ts';
import { isStoredAs, presented, reading, storing } from './read.ts';
import { deleteObject } from './remove.ts';

interface ChangeTerms {
  readonly type: Exclude<PatchType, 'apply'>;
  readonly info: ResourceInfo;
  /** What is changed: the object itself, or a subresource. */
  readonly row: Subresource;
  /** The check of the result's fields; undefined: they are not checked. */
  readonly fields: FieldCheck | undefined;
}

/** The change that a patch makes to an object as the client sees it. Refuses an invalid patch. */
export function* toChange(
  patch: unknown,
  { type, info, row, fields }: ChangeTerms,
): Work<(current: KubernetesObject) => Work<object>> {
  const patched = yield* toPatch(patch, { type, kind: row.kind ?? info });
  return function* (current) {
    const before = row.view(presented(info, current), true);
    const made = yield* patched(before);
    yield* checkingParts(made);
    if (fields) yield* fields.patched(patch, made, before);
    const isOther = row.kind && !isOfKind(row.kind, made);
    const fault = isOther ? `expected a ${row.kind?.kind}` : row.fault?.(made as Json);
    if (fault !== undefined) throw invalidPatch(made, fault);
    try {
      normalized(row.kind ?? info, made);
      return (yield* typed(row.kind ?? info, made)) as object;
    } catch (error) {
      throw hasCode(error, 400) ? invalidPatch(made, statusOf(error).status.message) : error;
    }
  };
}

/**
 * Prepares an object for the storage. Pure functions: they take what was sent and what is stored, and return what to write, or
 * throw the client's error. Upstream: `rest.BeforeCreate` and `rest.BeforeUpdate`.
 *
 *     sent ---> shape (400) ---> the server's own fields ---> metadata (422) ---> schema, validate (422) ---> stored
 */

/** The namespace that an object gets: that of the request, or none. Throws 400 if the object names another one. */
function inNamespace(object: Mutable, namespace: string | undefined): Mutable {
  const { namespace: own } = object.metadata;
  if (own !== undefined && namespace !== undefined && own !== namespace) {
    throw badRequest('the namespace of the provided object does not match the namespace sent on the request');
  }
  return own === namespace ? object : withMeta(object, { namespace });
}

/** Whether the server counts this kind's generations. Kubernetes does, except for its oldest kinds, and Leases. */
const countsGenerations = (info: ResourceInfo): boolean =>
  shapeOf(info)?.countsGenerations ?? !['', 'coordination.k8s.io', 'events.k8s.io'].includes(info.group);

/** The object that a creation writes. The server generates its name if it has only `generateName`. */
function* prepareCreate(
  context: ResourceContext,
  object: Mutable,
  { sent, terms }: { readonly sent: unknown; readonly terms: CreateTerms },
): Work<Soon<Mutable>> {
  const { info } = context;
  const { metadata } = object;
  // 0 means no version, as in an update.
  if ((metadata.resourceVersion ?? '0') !== '0') throw badRequest('resourceVersion should not be set on objects to be created');
  const { generateName: base } = metadata;
  const name = metadata.name ?? (base && generateName(base, context.random));
  const required = { field: 'metadata.name', message: 'Required value: name or generateName is required' };
  if (!name) throw invalidObject(info, '', [required]);
  const created = withMeta(object, {
    name,
    resourceVersion: undefined,
    uid: context.uid(),
    // If it is not counted, it is what the client sends.
    generation: countsGenerations(info) ? 1 : metadata.generation || undefined,
    creationTimestamp: timestamp(context.now()),
    deletionTimestamp: undefined,
    deletionGracePeriodSeconds: undefined,
  });
  const shape = shapeOf(info);
  const apart = info.resourceName === CREATED_WITH_STATUS ? [] : info.apart;
  const reset = context.prepared?.(created) ?? withMembers(created, shape ? zeroOf(shape) : NOTHING, apart);
  const ready = shape?.completed?.(reset) ?? reset;
  const managedFields = yield* managedFieldsAfter(context, { terms, live: undefined, sent, object: ready, row: info.main });
  const stored = managedFields === ready.metadata.managedFields ? ready : withMeta(ready, { managedFields });
  const checked = yield* check(context, stored, {
    ...{ causes: nameCauses(info, stored.metadata), old: undefined, part: '', warn: terms.writer?.warn },
  });
  return checked?.then(() => stored) ?? stored;
}

const NOTHING: Json = {};

interface Checked {
  readonly causes: readonly FieldCause[];
  readonly old: KubernetesObject | undefined;
  /** The subresource at which it is written. */
  readonly part: string;
  /** Absent: nobody would hear it. */
  readonly warn: Writer['warn'];
}

interface Told extends Checked {
  /** What its kind says of an object that it accepts. */
  readonly told: readonly string[];
}

/** Throws, or the promise rejects, if something is wrong with an object. Returns a promise only if there is something to wait for. */
function* check(context: ResourceContext, object: Mutable, checked: Checked): Work<Promise<void> | undefined> {
  const { info, bySchema } = context;
  const { causes, old, part } = checked;
  const found = [...causes, ...(yield* metadataCauses(object.metadata))];
  const compiled = bySchema?.();
  if (isPromise(compiled)) return compiled.then(() => checkedLater(context, object, checked));
  if (compiled !== undefined) found.push(...(yield* compiled(object, old, part)));
  if (info.subresources.length > 0) found.push(...partCauses(info, object));
  const { validate } = info;
  let more: ReturnType<NonNullable<typeof validate>> | undefined;
  if (validate && found.length === 0) {
    // Copies, as what a program's changes would be stored unchecked, or is stored already.
    const isOurs = isOurCheck(validate);
    const own = isOurs ? object : ((yield* reparsing(object)) as Mutable);
    more = validate(own, old && (isOurs ? old : yield* copying(old)), part);
  }
  const tell = checked.warn && tellingOf(validate);
  const all = { ...checked, told: tell ? yield* tell(object) : [] };
  if (isPromise(more)) return Promise.resolve(more).then((late) => decide(causesOf(late, info), info, object, all));
  decide([...found, ...causesOf(more, info)], info, object, all);
  return undefined;
}

const checkedLater = async (context: ResourceContext, object: Mutable, checked: Checked): Promise<void> =>
  await inPieces(check(context, object, checked));

const partCauses = ({ subresources }: ResourceInfo, object: Mutable): FieldCause[] =>
  subresources.flatMap(({ causes }) => causes?.(object) ?? []);

/** The causes that `validate` returned. Throws for anything else, which is the program's fault, and becomes 500. */
function causesOf(said: unknown, { resourceName }: ResourceInfo): readonly FieldCause[] {
  if (isNullish(said)) return [];
  const isCause = (each: unknown): boolean =>
    isRecord(each) && typeof each.field === 'string' && typeof each.message === 'string';
  if (Array.isArray(said) && said.every(isCause)) return said;
  const wrong = Array.isArray(said) ? said.find((each) => !isCause(each)) : said;
  const expected = 'a list of causes, { field, message }, or undefined if there are none';
  throw new TypeError(invalid(`validate of ${resourceName}`, wrong, expected).message);
}

/** Refuses an object for these causes. One that is accepted may bring warnings. */
function decide(causes: readonly FieldCause[], info: ResourceInfo, { metadata }: Mutable, { old, warn, told }: Told): void {
  if (causes.length > 0) throw invalidObject(info, metadata.name ?? '', causes);
  for (const text of told) warn?.(text);
  if (warn === undefined || metadata.finalizers === undefined || messageOf(info) !== undefined) return;
  for (const text of finalizerWarnings(metadata.finalizers, old?.metadata?.finalizers)) warn(text);
}

/** What was sent for an update, changed to fit its schema. Throws the client's error. */
function* fitted(
  context: ResourceContext,
  sent: unknown,
  { terms, isPatch }: Pick<Updating, 'terms' | 'isPatch'>,
): Work<Mutable> {
  const { place, row } = terms;
  const kind = row.kind ?? context.info;
  const given = normalized(kind, sent);
  // A null of the member that the path owns removes it.
  const applied = terms.applied === true && (row.owns === undefined || (given as Json)[row.owns] !== null);
  const refusal = (why: string): Error => (isPatch ? invalidPatch(given, why) : unreadable(kind, why));
  const shape = { stored: isOurs(context), ...(applied ? { applied } : { refusal }) };
  return inNamespace(yield* fitting(kind, given, shape), place.namespace);
}

/**
 * The object that an update makes: `sent`, merged according to its path, with the old values of what only the server writes. A
 * promise only if a check takes time: otherwise, a storage in memory writes it in the same turn, and never has to retry.
 */
function* prepareUpdate(
  context: ResourceContext,
  sent: unknown,
  { terms, current, isPatch }: Updating,
): Work<Mutable | Promise<Mutable>> {
  const { info } = context;
  const { place, row } = terms;
  const fit = yield* fitted(context, sent, { terms, isPatch });
  const object = yield* withoutTwins(fit, { warn: terms.writer?.warn, isLate: isPatch });
  const fault = row.fault?.(object);
  if (fault !== undefined) throw badRequest(fault);
  checkIdentity(info, object, { current, place });
  const { seen, isStored } = yield* reading(info, current);
  const old = normalized(info, seen);
  const refused = row.refused === undefined ? [] : yield* row.refused(object, old);
  if (refused.length > 0) throw invalidObject(info, place.name, refused);
  const sentOn = row.merge(object, old, context.now);
  const whole = shapeOf(info)?.completed?.(sentOn) ?? sentOn;
  const merged = context.revised?.(whole, { old, part: row.name }) ?? whole;
  // Upstream: `customResourceStrategy`.
  const { apart } = info;
  const isSame = yield* comparing(merged, old, apart.length === 0 ? META : ['metadata', ...apart]);
  const managedFields = yield* managedFieldsAfter(context, {
    ...{ terms, live: old, sent, row },
    object: row.isPart ? merged : object,
  });
  const known = (yield* sameButTimes(managedFields, old.metadata.managedFields)) ? old.metadata.managedFields : managedFields;
  const same = withMeta(merged, serverMembers(info, old, { isSame: isSame || isAction(row), managedFields: known }));
  const next = known === managedFields ? same : withMeta(same, { managedFields });
  const causes = [...baseCauses(info, merged.metadata), ...updateCauses(merged.metadata, old.metadata, next.metadata)];
  const others = (of: Mutable): unknown => [of.metadata, ...apart.map((member) => of[member])];
  // Stored in an earlier version, or without a default, it is written again, as upstream: so objects are migrated.
  if (isStored && isSame && causes.length === 0 && (yield* comparing(others(same), others(old)))) return current as Mutable;
  const checked = yield* check(context, next, { causes, old, part: row.name, warn: terms.writer?.warn });
  return checked?.then(() => next) ?? next;
}

/**
 * An updated object in the form in which it is stored. One that no finalizer holds any more is not stored, but returned as it is.
 */
function* toStored(context: ResourceContext, next: KubernetesObject, current: KubernetesObject): Work<KubernetesObject> {
  if (!context.empty && isDone(next)) throw new Done(next, current);
  return next === current || isStoredAs(context.info, next) ? next : yield* storing(context.info, next);
}

/** An object's name and versions must match the stored ones, or a client would update something that it has not read. */
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
  // A client that sends version 0 wants no check.
  const expected = resourceVersion === '0' ? undefined : resourceVersion;
  if (expected === undefined && UPDATED_BY_VERSION.has(info.resourceName)) {
    // Upstream names the resource here, and not its kind.
    const cause = { field: 'metadata.resourceVersion', message: 'Invalid value: 0: must be specified for an update' };
    throw invalidObject({ ...info, kind: info.plural, kindName: info.resourceName }, name, [cause]);
  }
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
function serverMembers(
  info: ResourceInfo,
  old: Mutable,
  { isSame, managedFields }: { readonly isSame: boolean; readonly managedFields: unknown },
): Json {
  const { uid, creationTimestamp, deletionTimestamp, deletionGracePeriodSeconds, generation, resourceVersion } = old.metadata;
  const grown = (generation ?? 0) + (isSame ? 0 : 1);
  return {
    uid,
    creationTimestamp,
    deletionTimestamp,
    deletionGracePeriodSeconds,
    resourceVersion,
    managedFields,
    generation: countsGenerations(info) ? grown : generation,
  };
}

/** Ignored when everything but the metadata is compared. */
const META = ['metadata'] as const;

interface WriteTerms {
  /** Check everything, and change nothing. */
  readonly dryRun: boolean;
  readonly signal?: AbortSignal | undefined;
  /** Who writes. Absent: the server itself. */
  readonly writer?: Writer | undefined;
  /** Whether what is written is the result of an apply. */
  readonly applied?: boolean | undefined;
}

/** A new object, changed to fit its schema, with each owner once. `isTyped`: it has already been read as one of its kind. Throws 400. */
function* received(
  context: ResourceContext,
  given: unknown,
  { namespace, writer, applied }: Pick<CreateTerms, 'namespace' | 'writer' | 'applied'>,
  isTyped: boolean,
): Work<Mutable> {
  const { info } = context;
  const object = normalized(info, isTyped ? given : yield* typed(info, given));
  const shape = { stored: isOurs(context), ...(applied ? { applied } : { refusal: (why: string) => unreadable(info, why) }) };
  const fit = inNamespace(info.schema ? yield* fitting(info, object, shape) : object, namespace);
  return yield* withoutTwins(fit, { warn: writer?.warn, isLate: isTyped });
}

/** How many other names are tried if a generated one is taken. */
const MAX_NAME_ATTEMPTS = 8;

interface CreateTerms extends WriteTerms {
  readonly namespace: string | undefined;
  /** Who sends a review. Default: the server itself. */
  readonly asker?: (() => Asker) | undefined;
}

export async function createObject(context: ResourceContext, sent: unknown, terms: CreateTerms): Promise<KubernetesObject> {
  const { info } = context;
  const { namespace, dryRun, signal } = terms;
  const readable = await inPieces(received(context, sent, terms, false), { signal });
  if (isReview(info.group, info.plural))
    return reviewed(info, readable, { asker: (terms.asker ?? context.asker)(), namespace, now: timestamp(context.now()) });
  const pace = requestPace(signal);
  for (let attempt = 1; ; attempt++) {
    // Causes are reported only if the object could exist. Upstream: the plugin `NamespaceLifecycle`, before validation.
    const asked = readable.metadata.name ?? '';
    context.definition?.check(asked);
    const within = namespace === undefined ? undefined : await context.namespaceExists(namespace, asked);
    const before = pace?.pause();
    if (before) await before;
    const { admission } = context;
    const about = { operation: 'CREATE', place: { namespace, name: asked }, oldObject: undefined, dryRun, signal } as const;
    const admitted = admission && received(context, await admission.mutate(readable, about), terms, true);
    const given = admitted ? await inPieces(admitted, { signal }) : readable;
    const object = await inPieces(prepareCreate(context, given, { sent, terms }), { signal });
    const between = pace?.pause();
    if (between) await between;
    const { name = '' } = object.metadata;
    if (admission) await admission.validate(object, { ...about, place: { namespace, name } });
    const key = storageKey({ namespace, name });
    const stored = isStoredAs(info, object) ? object : await inPieces(storing(info, object), { signal });
    if (isOurs(context)) gentle.set(stored, keeping);
    try {
      if (!dryRun) {
        const created = await context.storage.create(key, stored, { signal, ttlSeconds: context.ttlSeconds });
        if (context.definition) await context.definition.holds(created).catch(takeBack(context, key, created));
        if (namespace !== undefined && within !== undefined) {
          await context.namespaceHolds(namespace, { uid: within, created }).catch(takeBack(context, key, created));
        }
        return created;
      }
      if ((await context.storage.get(key, { signal })) === undefined) return stored;
      throw alreadyExists(info, name);
    } catch (error) {
      const generated = asked === '';
      if (generated && attempt < MAX_NAME_ATTEMPTS && hasCode(error, 409, 'AlreadyExists')) continue;
      throw (await doomed(error, context, key)) ?? translated(error, info, name);
    }
  }
}

/** The refusal if the existing object is being deleted, for which its controller may wait. */
async function doomed(error: unknown, { storage, info }: ResourceContext, key: string): Promise<Error | undefined> {
  if (!hasCode(error, 409, 'AlreadyExists')) return undefined;
  const { metadata } = (await storage.get(key).catch(() => undefined)) ?? {};
  return metadata?.deletionTimestamp === undefined
    ? undefined
    : alreadyExists(info, metadata.name ?? '', 'object is being deleted: ');
}

/**
 * Deletes an object that was created in a Terminating namespace: the server that empties it may have listed it before. The same if
 * the namespace cannot be read, as nobody would ever delete it. Its client hears of the failure.
 */
function takeBack(context: ResourceContext, key: string, { metadata }: KubernetesObject): (why: unknown) => Promise<never> {
  return async (why) => {
    await context.storage.delete(key, { uid: metadata?.uid }).catch((error: unknown) => {
      if (!hasCode(error, 404) && !hasCode(error, 409)) throw error;
    });
    context.removed(metadata?.namespace);
    throw why;
  };
}

/** Options of {@link updateObject}. */
export interface UpdateTerms extends WriteTerms {
  readonly place: NamespacedName;
  /** What is written: the object itself, or a subresource. */
  readonly row: Subresource;
  /** Returns what was sent, or the work that applies it to the current object. May be called several times. */
  readonly make: (current: KubernetesObject) => unknown;
}

/** What an update changes, and its terms. These are not copied: of an object with ten members, that takes microseconds. */
interface Updating {
  readonly terms: UpdateTerms;
  readonly current: KubernetesObject;
  /** Whether a patch made it, which has read it as one of its kind. */
  readonly isPatch: boolean;
}

type Change = (current: KubernetesObject) => Soon<KubernetesObject>;

/** Objects from JSON have no functions. */
function isWork(made: unknown): made is Work<unknown> {
  return typeof (made as Partial<Work<unknown>> | undefined)?.next === 'function';
}

/** How often other writers may be faster before an update gives up. */
const MAX_ATTEMPTS = 100;

/** Updates an object. If that removes the last finalizer of one that is being deleted, it is gone. */
export async function updateObject(context: ResourceContext, terms: UpdateTerms): Promise<KubernetesObject> {
  const { storage, info } = context;
  const { place, signal } = terms;
  const key = storageKey(place);
  const changing = function* (current: KubernetesObject): Work<Soon<KubernetesObject>> {
    const made = terms.make(current);
    const isPatch = isWork(made);
    const whole = isPatch ? yield* made : yield* typed(terms.row.kind ?? info, made);
    // Unchanged parts become the same values as before, which everything after this recognises immediately.
    const sent = isOurs(context) ? likened(current, whole) : whole;
    const next = context.admission
      ? admittedUpdate(context, sent, { terms, current, isPatch })
      : yield* prepareUpdate(context, sent, { terms, current, isPatch });
    if (!isPromise(next)) return yield* toStored(context, next, current);
    return next.then((late) => inPieces(toStored(context, late, current), { signal }));
  };
  const change: Change = (current) => inPieces(changing(current), { signal }) as Soon<KubernetesObject>;
  if (isOurs(context)) gentle.set(change, sharing);
  for (let attempt = 1; ; attempt++) {
    try {
      if (terms.dryRun) return await dry(context, terms, change);
      const updated = await storage.update(key, change, { signal, ttlSeconds: context.ttlSeconds });
      // A container goes once its contents have gone.
      if (context.empty && isDone(updated)) await deleteEmpty(context, updated, terms);
      return updated;
    } catch (error) {
      if (!(error instanceof Done)) throw translated(error, info, place.name);
      if (terms.dryRun) return error.next;
      const gone = await finish(context, terms, error).catch((late: unknown) => {
        if (attempt < MAX_ATTEMPTS && hasCode(late, 409, 'Conflict')) return undefined;
        throw translated(late, info, place.name);
      });
      if (gone !== undefined) return gone;
    }
  }
}

/** Whether no function of the program gets or makes what is written: it could change it later. */
const isOurs = ({ admission, info }: ResourceContext): boolean => !admission && !info.validate && !info.convert;

/** The object that an update makes, if the program's hooks admit it. */
async function admittedUpdate(context: ResourceContext, sent: unknown, updating: Updating): Promise<KubernetesObject> {
  const { info, admission } = context;
  const { terms, current } = updating;
  const { place, row, dryRun, signal } = terms;
  const isCreated = isAction(row);
  const oldObject = isCreated ? undefined : row.view(presented(info, current));
  const operation = isCreated ? 'CREATE' : 'UPDATE';
  const about = { operation, subresource: row.name, place, oldObject, dryRun, signal } as const;
  const object = await admission?.mutate(await inPieces(fitted(context, sent, updating), { signal }), about);
  const next = await inPieces(prepareUpdate(context, object, updating), { signal });
  const written = isCreated ? (object as KubernetesObject) : row.view(next === current ? presented(info, next) : next);
  await admission?.validate(written, about);
  return next;
}

/** Deletes a container that has no finalizers any more. Another server may be faster. */
async function deleteEmpty(
  context: ResourceContext,
  { metadata }: KubernetesObject,
  { place, signal }: UpdateTerms,
): Promise<void> {
  const terms = { dryRun: false, preconditions: { uid: metadata?.uid }, signal };
  await deleteObject(unasked(context), place, terms).catch((error: unknown) => {
    if (!hasCode(error, 404) && !hasCode(error, 409)) throw error;
  });
}

async function dry(context: ResourceContext, { place, signal }: UpdateTerms, change: Change): Promise<KubernetesObject> {
  const current = await context.storage.get(storageKey(place), { signal });
  if (current === undefined) throw notFound(context.info, place.name);
  return change(current);
}

/** Deletes an object that no finalizer holds any more. Its last content is what the update would have written. */
async function finish(
  context: ResourceContext,
  { place, signal }: UpdateTerms,
  { next, current }: Done,
): Promise<KubernetesObject> {
  const deleted = await context.storage.delete(storageKey(place), { resourceVersion: versionOf(current), signal });
  context.removed(place.namespace);
  return withMeta(next, { resourceVersion: versionOf(deleted) });
}

/** Not a failure: after the update, nothing holds the object. */
class Done extends Error {
  readonly next: KubernetesObject;
  readonly current: KubernetesObject;

  constructor(next: KubernetesObject, current: KubernetesObject) {
    super('the object is gone');
    this.next = next;
    this.current = current;
  }
}
