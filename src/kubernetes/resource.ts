/**
 * The objects of one kind in a cluster, in all namespaces or in one. It is a `ListWatcher`, so it can be given to an informer as
 * it is; it also reads and writes single objects.
 *
 *     resource('pods') ---> list, watch: the collection          |  in('default')  ---> the same, of one namespace
 *                      ---> get, create, update, patch, delete: one object, `/name`, `/name/status`
 *
 * Nothing is retried here, and nothing is kept: results are what the server sent.
 */
import type { HttpSettings, RequestSpec } from '../cache/http/exchange.ts';
import type { List, ListOptions, ListWatcher, ListWatchOptions } from '../cache/list-watcher.ts';
import { type KubernetesObject, metadataOf, namespaceOf, splitKey } from '../cache/object.ts';
import { type Prepare, preparedList, takesPrepare } from '../cache/pager.ts';
import { checkOptions, invalid, WatchError } from '../watch/errors.ts';
import type { ObjectEvent } from '../watch/event.ts';
import type { Watch } from '../watch/watch.ts';
import { ask } from './ask.ts';
import { apiVersionOf, type ResourceType, segment, toPath } from './resource-type.ts';
import {
  type DeleteOptions,
  type GetOptions,
  OBJECT_NAMES,
  type ObjectOptions,
  type PatchOptions,
  toContentType,
  toDeleteBody,
  toParameters,
  WRITE_NAMES,
  type WriteOptions,
} from './write-options.ts';

/** What a resource needs from its cluster. */
export interface ResourceDeps {
  readonly server: URL;
  readonly means: HttpSettings;
  /** The list and the watch of a collection. */
  readonly collection: (url: URL) => ListWatcher<unknown>;
}

/** Where one object is. */
interface NamespacedName {
  readonly namespace: string | undefined;
  readonly name: string;
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
export class Resource<T extends object = KubernetesObject> implements ListWatcher<T> {
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
    if (this.type.namespaced === false)
      throw invalid('namespace', namespace, `none, because ${this.type.plural} are in no namespace`);
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
    const { resourceVersion } = checkOptions(options, [...OBJECT_NAMES, 'resourceVersion']);
    return this.#object(this.#at(name), options, { parameters: resourceVersion ? { resourceVersion } : {} });
  }

  /**
   * Creates an object. If it has no name but a `metadata.generateName`, the server generates its name. For a subresource that is
   * an action and not stored, such as `eviction`, the server only reports success: this then resolves with the object as it was
   * given.
   */
  async create(object: T, options: WriteOptions = {}): Promise<T> {
    const parameters = toParameters(checkOptions(options, WRITE_NAMES));
    const place = this.#placeOf(object, 'create', options.subresource === undefined);
    const asked = { method: 'POST', body: this.#written(object), parameters };
    if (options.subresource === undefined) return this.#object({ ...place, name: '' }, options, asked);
    return (await this.#send(place, options, asked)) ?? object;
  }

  /** Replaces an object. If it has a version that is not the newest, the server refuses with 409. */
  async update(object: T, options: WriteOptions = {}): Promise<T> {
    const parameters = toParameters(checkOptions(options, WRITE_NAMES));
    return this.#object(this.#placeOf(object, 'update'), options, { method: 'PUT', body: this.#written(object), parameters });
  }

  /** Changes a part of an object. With `apply`, creates the object if it does not exist. */
  async patch(name: string, patch: object, options: PatchOptions = {}): Promise<T> {
    const parameters = toParameters(checkOptions(options, [...WRITE_NAMES, 'type', 'force']));
    const contentType = toContentType(patch, options);
    const body = options.type === 'apply' ? this.#written(patch) : JSON.stringify(patch);
    return this.#object(this.#at(name), options, { method: 'PATCH', body, contentType, parameters });
  }

  /**
   * Deletes an object. Resolves with the object if the server returns it: it may exist until its finalizers are done, or its
   * grace period is over. Otherwise resolves with undefined: it is gone.
   */
  async delete(name: string, options: DeleteOptions = {}): Promise<T | undefined> {
    return this.#send(this.#at(name), options, { method: 'DELETE', body: toDeleteBody(options), parameters: {} });
  }

  #url(namespace: string | undefined): URL {
    const { server } = this.#means;
    const url = new URL(server);
    url.pathname = `${server.pathname.replace(/\/$/, '')}/${toPath(this.type, namespace)}`;
    return url;
  }

  /** The place of a name, or of a key. */
  #at(text: string): NamespacedName {
    if (typeof text !== 'string') throw invalid('name', text, 'a name, or "namespace/name"');
    const { namespace, name } = splitKey(text);
    segment('name', name); // an empty one would mean the whole collection
    return this.#checked({ namespace: namespace || undefined, name }, text);
  }

  #placeOf(object: T, verb: string, nameless = false): NamespacedName {
    const { name } = metadataOf(object);
    if (!nameless && !name) throw invalid('object.metadata.name', name, `a name, to ${verb} it`);
    return this.#checked({ namespace: namespaceOf(object) || undefined, name: name ?? '' }, name);
  }

  #checked({ namespace = this.namespace, name }: NamespacedName, shown: unknown): NamespacedName {
    const { namespaced, plural } = this.type;
    if (this.namespace !== undefined && namespace !== this.namespace) throw invalid('namespace', namespace, `${this.namespace}`);
    if (namespaced && namespace === undefined) throw invalid('name', shown, `a namespace too: use ${plural}.in(namespace)`);
    if (namespaced === false && namespace) throw invalid('namespace', namespace, `none, because ${plural} are in no namespace`);
    return { namespace, name };
  }

  /** The text of an object. What all objects of a collection have in common need not be repeated in each. */
  #written(object: object): string {
    const { kind } = this.type;
    return JSON.stringify({ apiVersion: apiVersionOf(this.type), ...(kind && { kind }), ...object });
  }

  async #object(place: NamespacedName, options: ObjectOptions, asked: Asked): Promise<T> {
    const object = await this.#send(place, options, asked);
    if (object === undefined) throw new WatchError('INVALID_FRAME', 'expected an object, got a Status');
    return object;
  }

  async #send(
    place: NamespacedName,
    { subresource, signal }: ObjectOptions,
    { parameters, ...rest }: Asked,
  ): Promise<T | undefined> {
    const url = this.#url(place.namespace);
    if (place.name) url.pathname += `/${segment('name', place.name)}`;
    if (subresource !== undefined) url.pathname += `/${segment('subresource', subresource)}`;
    for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
    const question: RequestSpec = rest.method ? { contentType: 'application/json', ...rest } : {};
    return ask<T>(this.#means.means, url, { question, signal });
  }
}

interface Asked extends RequestSpec {
  readonly parameters: Readonly<Record<string, string>>;
}

/**
 * A class of `@kubernetes/client-node` as it is in JSON, which is what a {@link Resource} reads and writes. In the classes, dates
 * are of class `Date`, and names that are words of JavaScript are changed: a NetworkPolicy has `_from` where its JSON has `from`.
 * A server ignores what it does not know, so a rule that is written with `_from` lets everybody in.
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

/** What the classes of client-node call otherwise. */
interface JsonNames {
  readonly _continue: 'continue';
  readonly _default: 'default';
  readonly _enum: 'enum';
  readonly _from: 'from';
  readonly _int: 'int';
}

/** What a class calls otherwise that describes a schema, as that of a custom resource definition does. */
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
