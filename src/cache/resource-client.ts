/**
 * Reads and writes the objects of one kind: `Resource` of `watchmux/kubernetes` in a cluster, that of `watchmux/apiserver` in a
 * server in the same process. A program that takes a `ResourceClient` works with either.
 *
 *     list, watch                      the collection: a ListWatcher, so an informer runs on it
 *     get, create, update, patch, delete           one object
 *     deleteCollection                 those that selectors match
 *     subresource('status')            a part of an object that has a path of its own
 *
 * This file has the interfaces, and the checks of arguments that do not depend on where the objects are.
 */
import { checkOptions, invalid, isRecord, oneOf, wholeNumber } from '../watch/errors.ts';
import type { ListWatcher } from './list-watcher.ts';
import { type KubernetesObject, metadataOf, namespaceOf, splitKey } from './object.ts';

/** A kind of object that a server has. */
export interface ResourceType {
  /** Such as `apps`. Absent or empty: the core group, of pods and config maps. */
  readonly group?: string | undefined;
  /** Such as `v1`. */
  readonly version: string;
  /** As in a URL: lower case and plural. */
  readonly plural: string;
  /** Such as `Deployment`. Objects that are written without a kind get it. */
  readonly kind?: string | undefined;
  /** Whether objects are in namespaces. If it is set, requests that lack a namespace fail before they are sent. */
  readonly namespaced?: boolean | undefined;
}

/** A kind as its objects name it. Upstream: `schema.GroupVersionKind`. */
export interface GroupVersionKind {
  /** Such as `apps/v1`, or `v1` for the core group. */
  readonly apiVersion: string;
  /** Such as `Deployment`. */
  readonly kind: string;
}

/** Carries the type of a kind's objects; does not exist at run time. */
declare const OBJECT: unique symbol;

/** Something that names a kind of objects `T`. Without the type, of any objects. */
export interface Typed<T> {
  readonly [OBJECT]?: T;
}

/** Options of `kind` of a {@link ResourceSource}. */
export interface KindOptions {
  /** Aborts the question. */
  readonly signal?: AbortSignal | undefined;
  /**
   * How old the server's answer may be, in milliseconds; default 10,000. So asking for many kinds costs few requests. A kind
   * that is missing from an older answer is always asked for again. An `ApiServer` always knows.
   */
  readonly maxAgeMs?: number | undefined;
}

/** A resource as texts name it: `deployments.apps/v1`. */
export function nameOf(type: ResourceType): string {
  if (!isRecord(type)) throw invalid('type', type, 'a ResourceType, or its name');
  const { group, version, plural } = type;
  return `${plural}${group ? `.${group}` : ''}/${version}`;
}

/** The `apiVersion` of objects: `v1` or `apps/v1`. Upstream: `schema.GroupVersion`. */
export function apiVersionOf({ group, version }: Pick<ResourceType, 'group' | 'version'>): string {
  return group ? `${group}/${version}` : version;
}

/** A source of many kinds: a `Cluster`, or an `ApiServer` in the same process. */
export interface ResourceSource {
  /** The objects of one kind, in all namespaces. Sends no request. */
  resource<T extends object = KubernetesObject>(type: string | (ResourceType & Typed<T>)): ResourceClient<T>;
  /**
   * The same by discovery: its `type` has everything, such as the kind, and whether it is namespaced. A name is `PLURAL.GROUP/VERSION`,
   * `PLURAL.GROUP` for the preferred version, or `PLURAL/v1` of the core group.
   *
   * @throws {WatchError} (rejects) INVALID_ARGUMENT if the server does not have it.
   */
  kind<T extends object = KubernetesObject>(
    kind: string | (GroupVersionKind & Typed<T>),
    options?: KindOptions,
  ): Promise<ResourceClient<T>>;
}

/** Options of all requests for one object. */
export interface ObjectOptions {
  /** A part of the object with a path of its own, such as `status` or `scale`. */
  readonly subresource?: string | undefined;
  /** Aborts the request. The server may have carried it out all the same. */
  readonly signal?: AbortSignal | undefined;
}

/** Options of `get`. */
export interface GetOptions extends ObjectOptions {
  /** Absent: the newest state. `0`: any state that the server has available. Others: a state not older than that. */
  readonly resourceVersion?: string | undefined;
}

/** What happens to a write with fields that are unknown, or sent twice. Upstream: `metav1.FieldValidationStrict` and the like. */
export type FieldValidation = (typeof FIELD_VALIDATIONS)[number];

export const FIELD_VALIDATIONS = ['Ignore', 'Strict', 'Warn'] as const;

/** Options of `create` and `update`. */
export interface WriteOptions extends ObjectOptions {
  /** Check everything, and change nothing. Default false. */
  readonly dryRun?: boolean | undefined;
  /**
   * The name of the writer in the list of managed fields. Default: the server's, which it derives from the program's name. An
   * `ApiServer` tracks the managers of objects whose creator is named, or which are applied: see its option `managedFields`.
   */
  readonly fieldManager?: string | undefined;
  /**
   * What the server does with unknown and duplicate fields. `Strict`: it refuses them, with 400, or 422 for a patch. `Warn`: it
   * reports them in warnings, over HTTP. Default: the server's, `Warn`; in process `Ignore`, because nobody would see a warning
   * there.
   */
  readonly fieldValidation?: FieldValidation | undefined;
}

/**
 * `merge`: members to set, null to remove (RFC 7386). `json`: a list of operations (RFC 6902). `strategic`: like `merge`, but
 * lists are merged by their keys; for built-in kinds only. `apply`: all fields that you manage; see Kubernetes' server-side
 * apply. It creates what does not exist.
 */
export type PatchType = 'merge' | 'json' | 'strategic' | 'apply';

/** Their names on the wire, for clients and servers. */
export const PATCH_MEDIA_TYPES: Readonly<Record<PatchType, string>> = {
  json: 'application/json-patch+json',
  merge: 'application/merge-patch+json',
  strategic: 'application/strategic-merge-patch+json',
  apply: 'application/apply-patch+yaml', // of which JSON is a subset
};

/** Options of `patch`. */
export interface PatchOptions extends WriteOptions {
  /** Default `merge`. */
  readonly type?: PatchType | undefined;
  /** For `apply`: take over fields that other managers own. Default false: such fields are a conflict. */
  readonly force?: boolean | undefined;
}

/** Options of `delete`. */
export interface DeleteOptions extends Omit<WriteOptions, 'fieldManager' | 'fieldValidation'> {
  /** Delete only this object, or only this version of it; otherwise the server refuses with 409. */
  readonly preconditions?: { readonly uid?: string | undefined; readonly resourceVersion?: string | undefined } | undefined;
  /** What happens to the objects that it owns. Default: the server's. An `ApiServer` needs `garbageCollection` for it. */
  readonly propagation?: 'Foreground' | 'Background' | 'Orphan' | undefined;
  /** How long a pod has to terminate, in seconds; a whole number. Default: as its spec says. Other objects need no time. */
  readonly gracePeriodSeconds?: number | undefined;
}

/** What may happen to the objects that a deleted one owns. */
export const PROPAGATIONS: readonly NonNullable<DeleteOptions['propagation']>[] = ['Foreground', 'Background', 'Orphan'];

/** Options of `deleteCollection`. */
export interface DeleteCollectionOptions extends Pick<DeleteOptions, 'dryRun' | 'signal'> {
  /** A label selector, such as `app=web`. Default: all objects. */
  readonly labelSelector?: string | undefined;
  /** A field selector, such as `metadata.name!=a`. Default: all objects. */
  readonly fieldSelector?: string | undefined;
}

/** The desired and the actual number of replicas: the subresource `scale` of any kind. Upstream: `autoscaling/v1` `Scale`. */
export interface Scale extends KubernetesObject {
  readonly spec?: { readonly replicas?: number | undefined } | undefined;
  readonly status?: { readonly replicas: number; readonly selector?: string | undefined } | undefined;
}

/** The type that is read and written at a subresource of objects `T`. */
export type SubresourceOf<T, Name extends string> = Name extends 'status' ? T : Name extends 'scale' ? Scale : KubernetesObject;

/** A part of the objects of one kind, with a path of its own. Created by `subresource` of a {@link ResourceClient}. */
export interface SubresourceClient<S> {
  /** Such as `status` or `scale`. */
  readonly name: string;
  /** Like `get` of a {@link ResourceClient}. */
  get(name: string, options?: Omit<GetOptions, 'subresource'>): Promise<S>;
  /** Like `update` of a {@link ResourceClient}: only the part is written. */
  update(object: S, options?: Omit<WriteOptions, 'subresource'>): Promise<S>;
  /** Like `patch` of a {@link ResourceClient}: only the part is changed. */
  patch(name: string, patch: object, options?: Omit<PatchOptions, 'subresource'>): Promise<S>;
}

/**
 * The objects of one kind, in all namespaces or in one: a resource of a `Cluster`, or of an `ApiServer` in the same process.
 *
 *     const reconcile = (orders: ResourceClient<Order>) => async (key: string) => {
 *       await orders.subresource('status').patch(key, { status: { phase: 'Done' } });
 *     };
 *
 * A name may be a key, `namespace/name`, as in stores, queues and controllers. Every method rejects with a WatchError: with code
 * REFUSED if the server refuses, with its Status in `status` (404, 409, 422), and with INVALID_ARGUMENT before a request is
 * sent.
 */
export interface ResourceClient<T extends object = KubernetesObject> extends ListWatcher<T> {
  readonly type: ResourceType;
  /** The namespace; undefined: all namespaces, or the kind is not namespaced. */
  readonly namespace: string | undefined;
  /** Returns this resource, limited to one namespace. */
  in(namespace: string): ResourceClient<T>;
  /** Reads one object. */
  get(name: string, options?: GetOptions): Promise<T>;
  /** Creates an object. If it has no name but a `metadata.generateName`, the server generates its name. */
  create(object: T, options?: WriteOptions): Promise<T>;
  /** Replaces an object. If it has a version that is not the newest, it is refused with 409. */
  update(object: T, options?: WriteOptions): Promise<T>;
  /** Changes a part of an object. With `apply`, creates the object if it does not exist. */
  patch(name: string, patch: object, options?: PatchOptions): Promise<T>;
  /** Deletes an object. Resolves with it if finalizers or its grace period still hold it; otherwise with undefined: it is gone. */
  delete(name: string, options?: DeleteOptions): Promise<T | undefined>;
  /** Deletes the objects that the selectors match, in one namespace if the kind has them. Resolves with these objects. */
  deleteCollection(options?: DeleteCollectionOptions): Promise<readonly T[]>;
  /** A part of the objects with a path of its own, such as `status` or `scale`. */
  subresource<Name extends string>(name: Name): SubresourceClient<SubresourceOf<T, Name>>;
}

/** Implements `subresource` of a {@link ResourceClient}, whose objects are read there as `S`. */
export function subresourceOf<S extends object>(client: ResourceClient<S>, name: string): SubresourceClient<S> {
  segment('subresource', name);
  const of = <O extends object>(options: O | undefined): O & { subresource: string } => ({
    ...(options as O),
    subresource: name,
  });
  return {
    name,
    get: (at, options) => client.get(at, of(options)),
    update: (object, options) => client.update(object, of(options)),
    patch: (at, patch, options) => client.patch(at, patch, of(options)),
  };
}

export const GET_NAMES = ['subresource', 'signal', 'resourceVersion'] as const;
export const WRITE_NAMES = ['subresource', 'signal', 'dryRun', 'fieldManager', 'fieldValidation'] as const;
const PATCH_NAMES: readonly (keyof PatchOptions)[] = [...WRITE_NAMES, 'type', 'force'];
const DELETE_NAMES = ['subresource', 'signal', 'dryRun', 'preconditions', 'propagation', 'gracePeriodSeconds'] as const;

/** Checks the options of a write. */
export function checkedWrite<O extends WriteOptions>(options: O, names: readonly (keyof O & string)[]): O {
  const { fieldValidation } = checkOptions(options, names);
  if (fieldValidation !== undefined) oneOf('fieldValidation', fieldValidation, FIELD_VALIDATIONS);
  return options;
}

/** Checks a patch, and its options. */
export function checkedPatch(patch: object, options: PatchOptions): PatchOptions {
  const { type = 'merge', fieldManager, force } = checkedWrite(options, PATCH_NAMES);
  oneOf('type', type, Object.keys(PATCH_MEDIA_TYPES));
  if (typeof patch !== 'object' || patch === null || Array.isArray(patch) !== (type === 'json')) {
    throw invalid('patch', patch, type === 'json' ? 'an array of operations' : 'an object');
  }
  if (type === 'apply' && !fieldManager) throw invalid('fieldManager', fieldManager, 'a name, because apply needs one');
  if (type !== 'apply' && force) throw invalid('force', force, 'true only together with type "apply"');
  return options;
}

/** Checks the options of a deletion. */
export function checkedDelete(options: DeleteOptions): DeleteOptions {
  const { preconditions, propagation, gracePeriodSeconds } = checkOptions(options, DELETE_NAMES);
  if (preconditions) checkOptions(preconditions, ['uid', 'resourceVersion']);
  if (propagation) oneOf('propagation', propagation, PROPAGATIONS);
  if (gracePeriodSeconds !== undefined) wholeNumber('gracePeriodSeconds', gracePeriodSeconds);
  return options;
}

/** Checks the options of the deletion of a collection. */
export function checkedDeleteCollection(options: DeleteCollectionOptions): DeleteCollectionOptions {
  return checkOptions(options, ['dryRun', 'signal', 'labelSelector', 'fieldSelector']);
}

/** Where one object is. */
export interface NamespacedName {
  /** Undefined if it is in no namespace. */
  readonly namespace: string | undefined;
  readonly name: string;
}

/** Where objects are: their kind, and the one namespace to which a client is limited. */
type Within = Pick<ResourceClient, 'type' | 'namespace'>;

/** The place of a name, or of a key. */
export function placeOf(within: Within, text: string): NamespacedName {
  if (typeof text !== 'string') throw invalid('name', text, 'a name, or "namespace/name"');
  const { namespace, name } = splitKey(text);
  segment('name', name); // an empty name would mean the whole collection
  return placed(within, { namespace, name }, text);
}

/** The place that an object names. `verb`: what it needs the name for; undefined: it is new, and the server checks its name. */
export function placeOfObject(within: Within, object: object, verb: string | undefined): NamespacedName {
  const { name = '' } = metadataOf(object);
  if (verb && !name) throw invalid('object.metadata.name', name || undefined, `a name, to ${verb} it`);
  if (verb) segment('object.metadata.name', name);
  return placed(within, { namespace: namespaceOf(object), name }, name);
}

function placed(
  { type, namespace: only }: Within,
  own: { readonly namespace: string; readonly name: string },
  shown: string,
): NamespacedName {
  const { namespace: named, name } = own;
  if (named) checkNamespace(type, named);
  const namespace = named || only;
  if (only !== undefined && namespace !== only) throw invalid('namespace', namespace, only);
  if (type.namespaced && namespace === undefined) {
    throw invalid('name', shown, `a namespace too: use ${type.plural}.in(namespace)`);
  }
  return { namespace, name };
}

/** Checks a namespace of a kind. */
export function checkNamespace({ namespaced, plural }: ResourceType, namespace: string): void {
  if (namespaced === false) throw invalid('namespace', namespace, `none, because ${plural} are in no namespace`);
  segment('namespace', namespace);
}

/** Returns a text as one segment of a path. A name like `..` would lead to another collection. */
export function segment(name: string, text: string): string {
  if (typeof text !== 'string' || !/^[^/%?#\s\\]+$/.test(text) || text === '.' || text === '..') {
    throw invalid(name, text, 'a non-empty name without "/", "%" or white space');
  }
  return encodeURIComponent(text);
}
