/** Get, list and watch: turns checked parameters into requests to the storage, and its answers into those of the resource. */
import { filter } from '../../broadcast/filter.ts';
import type { List } from '../../cache/list-watcher.ts';
import type { KubernetesObject } from '../../cache/object.ts';
import type { NamespacedName } from '../../cache/resource-client.ts';
import { parseFieldSelector } from '../../selectors/field-selector.ts';
import { parsing, stringifying } from '../../storage/json.ts';
import type { Storage, StorageEvent } from '../../storage/storage.ts';
import { isLarge } from '../../storage/values.ts';
import { atOnce, inPieces, type Soon, type Work } from '../../watch/fair-queue.ts';
import type { Watch } from '../../watch/watch.ts';
import { badRequest, notFound, translated } from '../api-status.ts';
import { EVENTS_PREFIX } from '../kinds/events.ts';
import { messageOf } from '../kinds/tables.ts';
import { checkedParameters, checkVersion, type ListParameters } from '../request/query.ts';
import { type ResourceContext, type ResourceInfo, storageKey } from '../resource-info.ts';
import { fittingStored, isShaping, trimming } from '../validation/object-schema.ts';

/** The request of a list or a watch. */
interface Asked {
  readonly namespace: string | undefined;
  /** Only the object of this name. */
  readonly name?: string | undefined;
  readonly parameters: ListParameters;
  readonly signal?: AbortSignal | undefined;
}

/** Reads one object, as it is stored. */
export async function getObject(
  { info, storage }: ResourceContext,
  place: NamespacedName,
  { resourceVersion, signal }: { resourceVersion: string; signal?: AbortSignal | undefined },
): Promise<KubernetesObject> {
  checkVersion('resourceVersion', resourceVersion);
  const object = await storage
    .get(storageKey(place), { resourceVersion: resourceVersion || undefined, signal })
    .catch((error: unknown) => {
      throw translated(error, info, place.name);
    });
  if (object === undefined) throw notFound(info, place.name);
  return object;
}

export async function listObjects(context: ResourceContext, asked: Asked): Promise<List<KubernetesObject>> {
  const { parameters, storage, selectors } = toStorage(context, asked);
  const { resourceVersion, resourceVersionMatch, limit, continue: next } = parameters;
  const list = await storage.list({
    ...selectors,
    ...given({ resourceVersion, continue: next }),
    resourceVersionMatch: (resourceVersionMatch as 'Exact' | 'NotOlderThan') || undefined,
    // Kubernetes sends everything to a client that accepts any state.
    limit: limit > 0 && resourceVersion !== '0' ? limit : undefined,
    signal: asked.signal,
  });
  const items = await presentedAll(context.info, list.items, asked.signal);
  return items === list.items ? list : { ...list, items };
}

/** Many objects, as {@link presented} shows each. */
function presentedAll(
  info: ResourceInfo,
  items: readonly KubernetesObject[],
  signal: AbortSignal | undefined,
): Soon<readonly KubernetesObject[]> {
  if (!isShaping(info) && items.every((item) => item.apiVersion === info.apiVersion)) return items;
  return inPieces(presentingAll(info, items), { signal });
}

function* presentingAll(info: ResourceInfo, items: readonly KubernetesObject[]): Work<readonly KubernetesObject[]> {
  let isSame = true;
  const shown: KubernetesObject[] = [];
  for (const item of items) {
    const each = isLarge(item) ? yield* presenting(info, item) : presented(info, item);
    isSame &&= each === item;
    shown.push(each);
    if (shown.length % FEW === 0) yield;
  }
  return isSame ? items : shown;
}

/** How many objects are converted in one step. */
const FEW = 16;

/** Watches a collection. BOOKMARKs that the client did not ask for are dropped; objects are as they are stored. */
export async function watchObjects(context: ResourceContext, asked: Asked): Promise<Watch<StorageEvent<KubernetesObject>>> {
  const { parameters, storage, selectors } = toStorage(context, { ...asked, parameters: { ...asked.parameters, watch: true } });
  const { sendInitialEvents, allowWatchBookmarks, timeoutSeconds } = parameters;
  let { resourceVersion } = parameters;
  const isUnset = resourceVersion === '' || resourceVersion === '0';
  // The state without a BOOKMARK after it: for a storage, that is a watch without a version.
  const plain = sendInitialEvents === true && !allowWatchBookmarks && isUnset;
  if (sendInitialEvents === false && isUnset) resourceVersion = await context.storage.currentVersion({ signal: asked.signal });
  const initial = sendInitialEvents === true && !plain;
  // Without a version, a client wants the current state, not that of a cache.
  const isFresh = initial || (plain && resourceVersion === '');
  const watch = await storage.watch({
    ...selectors,
    ...given({ resourceVersion }),
    ...(initial && { sendInitialEvents: true }),
    ...(isFresh && { resourceVersionMatch: 'NotOlderThan' as const }),
    allowWatchBookmarks: allowWatchBookmarks || initial,
    timeoutSeconds: timeoutSeconds || undefined,
    signal: asked.signal,
  });
  const dropsBookmarks = initial && !allowWatchBookmarks;
  return dropsBookmarks ? filter(watch, (event) => (event.type === 'BOOKMARK' ? undefined : event)) : watch;
}

/** Events as clients see them. Not used for streams, which convert each event once for all of them. */
export function presentedEvents(
  info: ResourceInfo,
  watch: Watch<StorageEvent<KubernetesObject>>,
): Watch<StorageEvent<KubernetesObject>> {
  const show = showing(info);
  if (show === undefined) return watch;
  return filter(watch, (event) => {
    if (event.type === 'BOOKMARK' || event.type === 'ERROR') return event;
    const object = atOnce(show(event.object));
    return object === event.object ? event : { ...event, object };
  });
}

/** The given values, without the empty ones. */
function given<T extends Readonly<Record<string, string>>>(texts: T): Partial<T> {
  return Object.fromEntries(Object.entries(texts).filter(([, value]) => value !== '')) as Partial<T>;
}

interface Narrowed {
  readonly parameters: ListParameters;
  readonly storage: Storage<KubernetesObject>;
  readonly selectors: { readonly labelSelector?: string; readonly fieldSelector?: string };
}

/** The part of the storage for a request: that of its namespace, or of the one that its selector requires. */
function toStorage(context: ResourceContext, { namespace, name, parameters: raw }: Asked): Narrowed {
  const parameters = checkedParameters(raw, context);
  const fields = fieldsOf(context.info, parameters.fieldSelector);
  const pinned = fields.requiresExactMatch('metadata.namespace');
  // Later pages read the same part as the first: the same selector gives the same part.
  const scope = namespace ?? (context.info.namespaced && pinned && isSegment(pinned) ? pinned : undefined);
  const storage = scope === undefined ? context.storage : context.storage.scope(`${scope}/`);
  const asked =
    name === undefined
      ? parameters.fieldSelector
      : withName(parameters.fieldSelector, fields.requiresExactMatch('metadata.name'), name);
  const fieldSelector = ofStorage(context.info, asked);
  return { parameters, storage, selectors: given({ labelSelector: parameters.labelSelector, fieldSelector }) };
}

/** Fields of the metadata are the same in all versions. */
const META_FIELDS: ReadonlySet<string> = new Set(['metadata.name', 'metadata.namespace']);

/** The name of a resource's field in the storage: each version of a kind may have different fields, or other values in them. */
function nameIn({ shared, version, prefix }: ResourceInfo, field: string): string {
  // Both forms of an event use the fields of the stored one.
  return !shared || prefix === EVENTS_PREFIX || META_FIELDS.has(field) ? field : `${field}@${version}`;
}

function ofStorage(info: ResourceInfo, fieldSelector: string): string {
  if (fieldSelector === '' || !info.shared) return fieldSelector;
  const fields = parseFieldSelector(fieldSelector);
  return fields.transform((field, value) => ({ field: nameIn(info, field), value })).toString();
}

/** The fields of a resource for its storage: selectors match objects as they are shown. */
export function fieldsIn(info: ResourceInfo): ResourceInfo['fields'] {
  if (info.prefix === EVENTS_PREFIX || !(info.shared || isShaping(info))) return info.fields;
  const all = Object.entries(info.fields);
  return Object.fromEntries(
    all.map(([field, value]) => [nameIn(info, field), (object: KubernetesObject) => value(presented(info, object))]),
  );
}

function withName(fieldSelector: string, pinned: string | undefined, name: string): string {
  if (fieldSelector === '') return `metadata.name=${name}`;
  if (pinned !== name) throw badRequest("fieldSelector metadata.name doesn't match requested name");
  return fieldSelector;
}

/** Whether a text can be a segment of a key. If not, no namespace has this name. */
function isSegment(text: string): boolean {
  return /^[^/]+$/.test(text) && text !== '.' && text !== '..';
}

/** Of what is cluster-scoped, most of Kubernetes' own kinds can be selected by a namespace, which is empty. */
const hasNamespace = (info: ResourceInfo): boolean =>
  info.namespaced || (messageOf(info) !== undefined && !(info.group === '' && /^(nodes|namespaces)$/.test(info.plural)));

/** The selected fields, all of which the resource has. */
function fieldsOf(info: ResourceInfo, fieldSelector: string): ReturnType<typeof parseFieldSelector> {
  const fields = parseFieldSelector(fieldSelector);
  const isKnown = (field: string): boolean =>
    Object.hasOwn(info.fields, field) || (META_FIELDS.has(field) && (field !== 'metadata.namespace' || hasNamespace(info)));
  const unknown = fields.terms.find(({ field }) => !isKnown(field));
  if (unknown === undefined) return fields;
  throw badRequest(`field label not supported: ${unknown.field.slice(0, 200)}`); // kubectl puts the selectors before it
}

/** Objects that were written in another version of their kind, as they are shown: by object, then by resource. */
const shownAs: WeakMap<object, WeakMap<ResourceInfo, KubernetesObject>> = new WeakMap();

/**
 * A stored object in the version of a resource, changed to fit its schema, as it may have been stored under an older one. Do not
 * call it twice: the result would get defaults that are not stored.
 */
export function presented<T extends KubernetesObject>(info: ResourceInfo, object: T): T {
  return atOnce(presenting(info, object));
}

/** The same in pieces. */
export function* presenting<T extends KubernetesObject>(info: ResourceInfo, object: T): Work<T> {
  return object.apiVersion === info.apiVersion ? yield* fittingStored(info, object) : (yield* reading(info, object)).seen;
}

/**
 * The same, and whether the object is stored as it would be now. Defaults are those of the version in which the kind is stored,
 * if it has one; fields that the other version does not know are removed. Upstream: `crdConversionRESTOptionsGetter`.
 */
export function* reading<T extends KubernetesObject>(info: ResourceInfo, object: T): Work<{ seen: T; isStored: boolean }> {
  const { apiVersion = '' } = object;
  const isOwn = info.storedAs === undefined || apiVersion === info.storedAs;
  const stored = apiVersion === info.apiVersion ? info : info.versions?.get(apiVersion);
  if (stored === undefined) {
    const made = yield* inVersion(info, object);
    const seen = yield* fittingStored(info, made);
    return { seen, isStored: isOwn && seen === made };
  }
  const whole = yield* fittingStored(stored, object);
  return { seen: yield* inVersion(info, whole), isStored: isOwn && whole === object };
}

/** The function that makes {@link presented} objects; undefined if stored ones need no change. */
export function showing(info: ResourceInfo): ((object: KubernetesObject) => Work<KubernetesObject>) | undefined {
  return info.shared || isShaping(info) ? (object) => presenting(info, object) : undefined;
}

function* inVersion<T extends KubernetesObject>(info: ResourceInfo, object: T): Work<T> {
  if (object.apiVersion === info.apiVersion) return object;
  let shown = shownAs.get(object);
  if (shown === undefined) {
    shown = new WeakMap();
    shownAs.set(object, shown);
  }
  let copy = shown.get(info);
  if (copy === undefined) {
    copy = yield* converting(info, object, info.apiVersion);
    if (info.versions) copy = yield* trimming(info, copy);
    shown.set(info, copy);
  }
  return copy as T;
}

/** Whether an object is in the version in which its kind is stored. */
export const isStoredAs = (info: ResourceInfo, object: KubernetesObject): boolean =>
  object.apiVersion === (info.storedAs ?? info.apiVersion);

/** An object in the version in which it is stored. */
export function* storing<T extends KubernetesObject>(info: ResourceInfo, object: T): Work<T> {
  const { storedAs = info.apiVersion } = info;
  if (isStoredAs(info, object)) return object;
  const made = yield* converting(info, object, storedAs);
  const schema = info.versions?.get(storedAs);
  return schema === undefined ? made : yield* trimming(schema, made);
}

/**
 * Converts an object by the kind's own conversion, or just changes its `apiVersion`. Its name and `resourceVersion` do not
 * change. Upstream: `validateConvertedObject`.
 */
export function* converting<T extends KubernetesObject>({ convert, kind }: ResourceInfo, object: T, apiVersion: string): Work<T> {
  if (convert === undefined || object.apiVersion === undefined) return { ...object, apiVersion };
  // It may change its argument, and objects are shared.
  const made = convert((yield* parsing(yield* stringifying(object))) as T, apiVersion);
  const { labels, annotations } = made.metadata ?? {};
  const metadata = { ...object.metadata, ...(labels && { labels }), ...(annotations && { annotations }) };
  return { ...made, apiVersion, kind, metadata } as T;
}
