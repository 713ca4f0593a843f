/**
 * The objects of one kind in a cluster, in all namespaces or in one. It is a `ListWatcher`, so it can be passed to an informer;
 * it also reads and writes single objects.
 *
 *     resource('pods') ---> list, watch: the collection          |  in('default')  ---> the same, of one namespace
 *                      ---> get, create, update, patch, delete: one object, `/name`, `/name/status`
 *                      ---> deleteCollection: what selectors match
 *
 * Nothing is retried here, and nothing is kept: results are what the server sent.
 */
import { toObject } from '../cache/http/answer.ts';
import { ask, type HttpSettings, type RequestSpec } from '../cache/http/exchange.ts';
import type { List, ListOptions, ListWatcher, ListWatchOptions } from '../cache/list-watcher.ts';
import type { KubernetesObject } from '../cache/object.ts';
import { type Prepare, preparedList, takesPrepare } from '../cache/pager.ts';
import {
  apiVersionOf,
  checkedDelete,
  checkedDeleteCollection,
  checkedPatch,
  checkedWrite,
  checkNamespace,
  type DeleteCollectionOptions,
  type DeleteOptions,
  GET_NAMES,
  type GetOptions,
  type NamespacedName,
  type ObjectOptions,
  PATCH_MEDIA_TYPES,
  type PatchOptions,
  placeOf,
  placeOfObject,
  type ResourceClient,
  type ResourceType,
  type SubresourceClient,
  type SubresourceOf,
  segment,
  subresourceOf,
  WRITE_NAMES,
  type WriteOptions,
} from '../cache/resource-client.ts';
import { checkOptions, invalid, isRecord, toJson, WatchError } from '../watch/errors.ts';
import type { ObjectEvent } from '../watch/event.ts';
import type { Watch } from '../watch/watch.ts';

/** What a resource needs from its cluster. */
export interface ResourceDeps {
  readonly server: URL;
  readonly means: HttpSettings;
  readonly collection: (url: URL) => ListWatcher<unknown>;
}

/**
 * The objects of one kind. Created by `Cluster.resource`.
 *
 * Names may be keys, `namespace/name`, as in stores, queues and controllers. Every method rejects with a WatchError: with code
 * REFUSED if the server refuses, with its Status in `status` (404, 409, 422); with TIMEOUT, INVALID_FRAME or FRAME_TOO_LARGE as
 * `createListWatcher` does; and with INVALID_ARGUMENT before anything is sent.
 *
 * Objects are as in JSON, and so are the types of the package `kubernetes-types`. The classes of `@kubernetes/client-node` differ
 * in dates and in some names: {@link AsJson} makes them fit.
 */
export class Resource<T extends object = KubernetesObject> implements ResourceClient<T> {
  readonly type: ResourceType;
  /** The namespace; undefined: all namespaces, or the kind is not namespaced. */
  readonly namespace: string | undefined;
  /** The URL of the collection. */
  readonly url: URL;
  readonly #means: ResourceDeps;
  readonly #collection: ListWatcher<T>;

  constructor(means: ResourceDeps, type: ResourceType, namespace?: string) {
    takesPrepare(Resource.prototype.list);
    this.type = type;
    this.namespace = namespace;
    this.#means = means;
    this.url = this.#url(namespace);
    this.#collection = means.collection(this.url) as ListWatcher<T>;
  }

  /** Returns this resource, limited to one namespace. */
  in(namespace: string): Resource<T> {
    checkNamespace(this.type, namespace);
    return new Resource<T>(this.#means, this.type, namespace);
  }

  list(options?: ListOptions): Promise<List<T>>;
  list(options: ListOptions = {}, prepare?: Prepare<T>): Promise<List<T>> {
    return preparedList(this.#collection, options, prepare);
  }

  watch(options?: ListWatchOptions): Promise<Watch<ObjectEvent<T>>> {
    return this.#collection.watch(options);
  }

  /** Reads one object. */
  async get(name: string, options: GetOptions = {}): Promise<T> {
    const { resourceVersion } = checkOptions(options, GET_NAMES);
    return this.#object(placeOf(this, name), options, { parameters: resourceVersion ? { resourceVersion } : {} });
  }

  /**
   * Creates an object. If it has no name but a `metadata.generateName`, the server generates its name. For a subresource that is
   * an action and not stored, such as `eviction`, the server only reports success: this then resolves with the given object.
   */
  async create(object: T, options: WriteOptions = {}): Promise<T> {
    const parameters = toParameters(checkedWrite(options, WRITE_NAMES));
    const { subresource } = options;
    const place = placeOfObject(this, object, subresource === undefined ? undefined : 'create');
    const asked = { method: 'POST', body: this.#written(object, subresource), parameters };
    if (subresource === undefined) return this.#object({ ...place, name: '' }, options, asked);
    return (await this.#send(place, options, asked)) ?? object;
  }

  /** Replaces an object. If it has a version that is not the newest, the server refuses with 409. */
  async update(object: T, options: WriteOptions = {}): Promise<T> {
    const parameters = toParameters(checkedWrite(options, WRITE_NAMES));
    const asked = { method: 'PUT', body: this.#written(object, options.subresource), parameters };
    return this.#object(placeOfObject(this, object, 'update'), options, asked);
  }

  /** Changes a part of an object. With `apply`, creates the object if it does not exist. */
  async patch(name: string, patch: object, options: PatchOptions = {}): Promise<T> {
    const { type = 'merge' } = checkedPatch(patch, options);
    const parameters = toParameters(options);
    const contentType = PATCH_MEDIA_TYPES[type];
    const body = type === 'apply' ? this.#written(patch, options.subresource, 'patch') : toJson('patch', patch);
    return this.#object(placeOf(this, name), options, { method: 'PATCH', body, contentType, parameters });
  }

  /**
   * Deletes an object. Resolves with the object if the server returns it: it may exist until its finalizers are done, or its
   * grace period is over. Otherwise resolves with undefined: it is gone.
   */
  async delete(name: string, options: DeleteOptions = {}): Promise<T | undefined> {
    const body = toDeleteBody(checkedDelete(options));
    const object = await this.#send(placeOf(this, name), options, { method: 'DELETE', body, parameters: {} });
    return object && stored(object);
  }

  /**
   * Deletes the objects that the selectors match. Resolves with these objects, as far as the server returns them. Objects of
   * all namespaces at once are refused with 405.
   */
  async deleteCollection(options: DeleteCollectionOptions = {}): Promise<readonly T[]> {
    const { dryRun, signal, labelSelector, fieldSelector } = checkedDeleteCollection(options);
    const parameters = { ...(labelSelector && { labelSelector }), ...(fieldSelector && { fieldSelector }) };
    const asked = { method: 'DELETE', body: toDeleteBody({ dryRun }), parameters, limit: 'maxListBytes' } as const;
    const answer: unknown = await this.#send({ namespace: this.namespace, name: '' }, { signal }, asked);
    const items: unknown = answer === undefined ? [] : ((answer as Partial<List<T>>).items ?? []);
    if (!Array.isArray(items)) throw new WatchError('INVALID_FRAME', 'the answer is not a list: its items are not an array');
    return items;
  }

  /** A part of the objects with a path of its own, such as `status` or `scale`. */
  subresource<Name extends string>(name: Name): SubresourceClient<SubresourceOf<T, Name>> {
    return subresourceOf(this as unknown as ResourceClient<SubresourceOf<T, Name> & object>, name);
  }

  #url(namespace: string | undefined): URL {
    return urlAt(this.#means.server, toPath(this.type, namespace));
  }

  /** The text of an object. Fills in what all objects of a collection have in common. */
  #written(object: object, subresource: string | undefined, name: string = 'object'): string {
    // Of the subresources, only a status has the kind of the objects.
    if (subresource !== undefined && subresource !== 'status') return toJson(name, object);
    const { kind } = this.type;
    return toJson(name, { apiVersion: apiVersionOf(this.type), ...(kind && { kind }), ...object });
  }

  async #object(place: NamespacedName, options: ObjectOptions, asked: Asked): Promise<T> {
    const object = await this.#send(place, options, asked);
    if (object === undefined) throw new WatchError('INVALID_FRAME', 'expected an object, got a Status');
    // Only created objects need not be stored: the review of an access is not.
    return asked.method === 'POST' ? object : stored(object);
  }

  async #send(
    place: NamespacedName,
    { subresource, signal }: ObjectOptions,
    { parameters, limit, ...rest }: Asked,
  ): Promise<T | undefined> {
    const url = this.#url(place.namespace);
    if (place.name) url.pathname += `/${segment('name', place.name)}`;
    if (subresource !== undefined) url.pathname += `/${segment('subresource', subresource)}`;
    for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
    const question: RequestSpec = rest.method ? { contentType: 'application/json', ...rest } : {};
    return ask(this.#means.means, url, { question, signal, limit, read: toObject<T> });
  }
}

/** Refuses anything but an object of a collection, such as the answer of a proxy. */
function stored<T>(object: T): T {
  if (isRecord((object as KubernetesObject).metadata)) return object;
  throw new WatchError('INVALID_FRAME', 'the answer is not an object of Kubernetes: it has no metadata');
}

/** The parameters of a write. */
function toParameters({ dryRun, fieldManager, fieldValidation, force }: PatchOptions): Record<string, string> {
  return {
    ...(dryRun && { dryRun: 'All' }),
    ...(fieldManager && { fieldManager }),
    ...(fieldValidation && { fieldValidation }),
    ...(force && { force: 'true' }),
  };
}

function toDeleteBody({ dryRun, preconditions, propagation, gracePeriodSeconds }: DeleteOptions): string {
  return JSON.stringify({
    kind: 'DeleteOptions',
    apiVersion: 'v1',
    ...(dryRun && { dryRun: ['All'] }),
    preconditions,
    propagationPolicy: propagation,
    gracePeriodSeconds,
  });
}

interface Asked extends RequestSpec {
  readonly parameters: Readonly<Record<string, string>>;
  /** Which option limits the answer. Default `maxFrameBytes`, which is for one object. */
  readonly limit?: 'maxListBytes';
}

/**
 * A class of `@kubernetes/client-node` as it is in JSON, which is what a {@link Resource} reads and writes. In the classes, dates
 * are of class `Date`, and names that are words of JavaScript are changed: a NetworkPolicy has `_from` where its JSON has `from`.
 * A server ignores unknown fields, so a rule written with `_from` lets everybody in.
 *
 *     cluster.resource<AsJson<V1NetworkPolicy>>('networkpolicies.networking.k8s.io/v1')
 */
export type AsJson<T> = 0 extends 1 & T
  ? T // any
  : T extends Date
    ? string
    : T extends readonly (infer E)[]
      ? AsJson<E>[]
      : T extends object
        ? { [K in keyof T as JsonName<T, K>]: AsJson<T[K]> }
        : T;

/** Names that the classes of client-node change. */
interface JsonNames {
  readonly _continue: 'continue';
  readonly _default: 'default';
  readonly _enum: 'enum';
  readonly _from: 'from';
  readonly _int: 'int';
}

/** Names that classes change in schemas, such as those of custom resource definitions. */
interface SchemaNames extends JsonNames {
  readonly ref: '$ref';
  readonly schema: '$schema';
  readonly x_kubernetes_embedded_resource: 'x-kubernetes-embedded-resource';
  readonly x_kubernetes_int_or_string: 'x-kubernetes-int-or-string';
  readonly x_kubernetes_list_map_keys: 'x-kubernetes-list-map-keys';
  readonly x_kubernetes_list_type: 'x-kubernetes-list-type';
  readonly x_kubernetes_map_type: 'x-kubernetes-map-type';
  readonly x_kubernetes_preserve_unknown_fields: 'x-kubernetes-preserve-unknown-fields';
  readonly x_kubernetes_validations: 'x-kubernetes-validations';
}

type Renamed<Names, K> = K extends keyof Names ? Names[K] : K;
type JsonName<T, K> = 'x_kubernetes_int_or_string' extends keyof T ? Renamed<SchemaNames, K> : Renamed<JsonNames, K>;

/**
 * Reads `PLURAL.GROUP/VERSION`, such as `deployments.apps/v1`. In the core group it is `PLURAL/VERSION`, such as `pods/v1`, or
 * only `pods`. This is the form in which `watchmux/apiserver` names what it serves; a group and a version are always next to each
 * other, as in `apiVersion`.
 */
function toResourceType(text: string): ResourceType {
  const [, plural = '', group, version] = /^([^./]+)(?:\.([^/]+))?(?:\/([^/]+))?$/.exec(text) ?? [];
  if (!plural || (group && !version)) throw invalid('resource', text, '"PLURAL.GROUP/VERSION", "PLURAL/v1", or "PLURAL"');
  return { plural, version: version ?? 'v1', ...(group && { group }) };
}

/** Checks a resource's name, of either form. */
export function checkedType(type: string | ResourceType): ResourceType {
  if (typeof type === 'string') return checkedType(toResourceType(type));
  if (!type || typeof type !== 'object') throw invalid('resource', type, 'a string or an object');
  if (type.group) segment('resource.group', type.group);
  segment('resource.version', type.version);
  segment('resource.plural', type.plural);
  return type;
}

/** The URL of a path, relative to that of the server. */
export function urlAt(server: URL, path: string): URL {
  const url = new URL(server);
  url.pathname = `${server.pathname.replace(/\/$/, '')}/${path}`;
  return url;
}

/** The path of a collection, relative to that of the server. */
function toPath({ group, version, plural }: ResourceType, namespace: string | undefined): string {
  const within = namespace === undefined ? '' : `namespaces/${segment('namespace', namespace)}/`;
  return `${group ? `apis/${group}` : 'api'}/${version}/${within}${plural}`;
}
