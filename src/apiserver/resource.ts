/**
 * A resource of a server, in process: the verbs without the wire. It checks and answers as the server does over HTTP, and since it
 * is a `ListWatcher`, an informer runs on it without a socket.
 *
 *     informer, test, program ---> Resource ---.
 *                                              +---> verbs ---> storage
 *     kubectl, client-go ------> HTTP --------'
 *
 * It is trusted: neither `authenticate` nor `authorize` is called. Its methods are those of `Resource` of `watchmux/kubernetes`.
 *
 * Single objects are copies, as over the wire: otherwise a caller that reads an object, changes it and updates it would change
 * the stored object, and the update would find nothing to write. Objects of lists and watches are shared by all readers.
 */
import type { List, ListOptions, ListWatcher, ListWatchOptions } from '../cache/list-watcher.ts';
import { type KubernetesObject, metadataOf, namespaceOf, splitKey } from '../cache/object.ts';
import { checkOptions, invalid, oneOf, wholeNumber } from '../watch/errors.ts';
import type { ObjectEvent } from '../watch/event.ts';

import { atOnce } from '../watch/fair-queue.ts';
import type { Watch } from '../watch/watch.ts';
import { statusOf, toError } from './api-status.ts';
import type { PatchType } from './patch/patch.ts';
import { parseJson, tooDeep } from './request/json.ts';
import { fromListOptions, fromWatchOptions } from './request/query.ts';
import type { ResourceInfo } from './resource-info.ts';
import { FIELD_VALIDATIONS, FieldCheck, type FieldValidation } from './validation/field-check.ts';
import { toChange } from './verbs/change.ts';
import { getObject, listObjects, presented, watchObjects } from './verbs/read.ts';
import { deleteObject, deleteObjects } from './verbs/remove.ts';
import type { NamespacedName, ResourceContext } from './verbs/resource-context.ts';
import { createObject, type UpdateTerms, updateObject } from './verbs/write.ts';

/** Options of all requests for one object. */
export interface ObjectOptions {
  /** A part of the object that is written separately: `status`, if the resource has one. */
  readonly subresource?: 'status' | undefined;
  /** Aborts the request. Anything already written stays written. */
  readonly signal?: AbortSignal | undefined;
}

/** Options of `get`. */
export interface ReadOptions extends ObjectOptions {
  /** Absent: the newest state. `0`: any state that the server has available. Others: a state not older than that. */
  readonly resourceVersion?: string | undefined;
}

/** Options of `create`, `update` and `patch`. */
export interface WriteOptions extends ObjectOptions {
  /** Check everything, and change nothing. Default false. */
  readonly dryRun?: boolean | undefined;
  /**
   * `Strict`: refuse fields that the schema does not name, with 400, or 422 for a patch. Default `Ignore`. `Warn` does
   * nothing more in process: warnings are sent only over HTTP.
   */
  readonly fieldValidation?: FieldValidation | undefined;
}

/** Options of `patch`. */
export interface PatchOptions extends WriteOptions {
  /** Default `merge`. */
  readonly type?: PatchType | undefined;
}

/** Options of `delete`. */
export interface RemoveOptions {
  readonly dryRun?: boolean | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Delete only this object, or only this version of it; otherwise 409. */
  readonly preconditions?: { readonly uid?: string | undefined; readonly resourceVersion?: string | undefined } | undefined;
  /** What happens to the objects that it owns. Accepted, but without effect: there is no garbage collection. */
  readonly propagation?: 'Foreground' | 'Background' | 'Orphan' | undefined;
  /** Accepted, but without effect: there is no graceful termination. */
  readonly gracePeriodSeconds?: number | undefined;
}

/** Options of `deleteCollection`. */
export interface RemoveManyOptions extends Pick<RemoveOptions, 'dryRun' | 'signal'> {
  readonly labelSelector?: string | undefined;
  readonly fieldSelector?: string | undefined;
}

const WRITE_NAMES = ['subresource', 'signal', 'dryRun', 'fieldValidation'] as const;
const REMOVE_NAMES = ['dryRun', 'signal', 'preconditions', 'propagation', 'gracePeriodSeconds'] as const;

/** Makes the source of one kind of objects: `ApiServer.source`. */
export type ApiServerSource = (
  name: string,
  options?: { readonly namespace?: string | undefined },
) => ListWatcher<KubernetesObject>;

/**
 * The objects of one kind, in all namespaces or in one. Created by `ApiServer.resource`. The objects in its lists and watches are
 * shared: do not change them. Those of the other methods are copies.
 */
export class Resource<T extends object = KubernetesObject> implements ListWatcher<T> {
  /** The namespace; undefined: all namespaces, or the kind is not namespaced. */
  readonly namespace: string | undefined;
  readonly #context: () => ResourceContext;

  /** Throws CLOSED, from `context`, once the server has shut down. */
  constructor(context: () => ResourceContext, namespace?: string) {
    this.#context = context;
    this.namespace = namespace;
  }

  /** What the server knows about this kind. */
  get type(): Pick<ResourceInfo, 'group' | 'version' | 'plural' | 'kind' | 'namespaced'> {
    const { group, version, plural, kind, namespaced } = this.#context().info;
    return { group, version, plural, kind, namespaced };
  }

  /** Returns this resource, limited to one namespace. */
  in(namespace: string): Resource<T> {
    const { info } = this.#context();
    if (!info.namespaced) throw invalid('namespace', namespace, `none, because ${info.plural} are in no namespace`);
    checkSegment('namespace', namespace);
    return new Resource<T>(this.#context, namespace);
  }

  async list(options: ListOptions = {}): Promise<List<T>> {
    const { signal } = options;
    signal?.throwIfAborted();
    const context = this.#context();
    const asked = { namespace: this.namespace, parameters: fromListOptions(options), signal };
    return (await answered(context, asked, listObjects(context, asked))) as unknown as List<T>;
  }

  async watch(options: ListWatchOptions = {}): Promise<Watch<ObjectEvent<T>>> {
    const { signal } = options;
    signal?.throwIfAborted();
    const context = this.#context();
    const asked = {
      namespace: this.namespace,
      parameters: fromWatchOptions(options),
      // The server's shutdown ends its watches.
      signal: signal && context.closing ? AbortSignal.any([signal, context.closing]) : (signal ?? context.closing),
    };
    return (await answered(context, asked, watchObjects(context, asked))) as unknown as Watch<ObjectEvent<T>>;
  }

  /** Reads one object. Rejects with 404 if there is none. */
  async get(name: string, options: ReadOptions = {}): Promise<T> {
    const { resourceVersion = '', signal, subresource } = checkOptions(options, ['subresource', 'signal', 'resourceVersion']);
    this.#isStatus(subresource);
    const context = this.#context();
    const got = getObject(context, this.#at(name), { resourceVersion, signal });
    return structuredClone(await answered(context, { signal }, got)) as T;
  }

  /** Creates an object. If it has no name but a `metadata.generateName`, the server generates its name. */
  async create(object: T, options: Omit<WriteOptions, 'subresource'> = {}): Promise<T> {
    const { dryRun = false, signal, fieldValidation } = checkOptions(options, ['dryRun', 'signal', 'fieldValidation']);
    const check = this.#fieldCheck(fieldValidation);
    const context = this.#context();
    const { info } = context;
    const namespace = info.namespaced ? this.namespace || namespaceOf(object) || undefined : undefined;
    if (info.namespaced && namespace === undefined) throw invalid('namespace', namespace, 'one: use in(namespace)');
    const sent = plain(object);
    if (check) atOnce((await check()).object(sent));
    return this.#shown(await answered(context, { signal }, createObject(context, sent, { namespace, dryRun, signal })));
  }

  /** Replaces an object. If it has a version that is not the newest, it is refused with 409. */
  async update(object: T, options: WriteOptions = {}): Promise<T> {
    const { dryRun = false, signal, subresource, fieldValidation } = checkOptions(options, WRITE_NAMES);
    const check = this.#fieldCheck(fieldValidation);
    const sent = plain(object);
    const { name } = metadataOf(sent);
    if (!name) throw invalid('object.metadata.name', name, 'a name, to update it');
    const place = this.#placed(namespaceOf(sent) || undefined, name);
    const status = this.#isStatus(subresource);
    if (check) atOnce((await check()).object(sent));
    return this.#update({ place, status, dryRun, signal, make: () => sent });
  }

  /** Changes a part of an object. */
  async patch(name: string, patch: object, options: PatchOptions = {}): Promise<T> {
    const {
      dryRun = false,
      signal,
      subresource,
      type = 'merge',
      fieldValidation,
    } = checkOptions(options, [...WRITE_NAMES, 'type']);
    const check = this.#fieldCheck(fieldValidation);
    const sent = plain(patch);
    const fields = check && (await check());
    const make = atOnce(toChange(sent, { type, kind: this.#context().info, fields }));
    const status = this.#isStatus(subresource);
    return this.#update({ place: this.#at(name), status, dryRun, signal, make });
  }

  /** Deletes an object. Resolves with the object if finalizers still hold it; otherwise with undefined: it is gone. */
  async delete(name: string, options: RemoveOptions = {}): Promise<T | undefined> {
    const { dryRun = false, signal, preconditions, propagation, gracePeriodSeconds } = checkOptions(options, REMOVE_NAMES);
    if (preconditions) checkOptions(preconditions, ['uid', 'resourceVersion']);
    if (propagation) oneOf('propagation', propagation, ['Foreground', 'Background', 'Orphan']);
    if (gracePeriodSeconds !== undefined) wholeNumber('gracePeriodSeconds', gracePeriodSeconds);
    const context = this.#context();
    const deleted = deleteObject(context, this.#at(name), { dryRun, signal, preconditions });
    const { object, gone } = await answered(context, { signal }, deleted);
    return gone ? undefined : this.#shown(object);
  }

  /** Deletes the objects that the selectors match, one after the other. Resolves with these objects. */
  async deleteCollection(options: RemoveManyOptions = {}): Promise<readonly T[]> {
    const {
      dryRun = false,
      signal,
      ...selectors
    } = checkOptions(options, ['dryRun', 'signal', 'labelSelector', 'fieldSelector']);
    const list = (page: { limit: number; continue: string }): Promise<List<T & KubernetesObject>> =>
      this.list({ ...selectors, limit: page.limit, continue: page.continue || undefined, signal }) as Promise<
        List<T & KubernetesObject>
      >;
    const context = this.#context();
    const deleted = deleteObjects(context, this.namespace, { dryRun, signal, list });
    return structuredClone(await answered(context, { signal }, deleted)) as unknown as readonly T[];
  }

  async #update(terms: UpdateTerms): Promise<T> {
    const context = this.#context();
    return this.#shown(await answered(context, terms, updateObject(context, terms)));
  }

  /** Makes the check of a write's fields; undefined: they are not checked. */
  #fieldCheck(fieldValidation: FieldValidation = 'Ignore'): (() => Promise<FieldCheck>) | undefined {
    oneOf('fieldValidation', fieldValidation, FIELD_VALIDATIONS);
    return fieldValidation === 'Strict' ? () => FieldCheck.of(this.#context().info) : undefined;
  }

  #shown(object: KubernetesObject): T {
    return structuredClone(presented(this.#context().info, object)) as T;
  }

  #isStatus(subresource: string | undefined): boolean {
    if (subresource === undefined) return false;
    if (subresource !== 'status' || !this.#context().info.status)
      throw invalid('subresource', subresource, 'one that the resource has');
    return true;
  }

  #at(text: string): NamespacedName {
    if (typeof text !== 'string' || text === '') throw invalid('name', text, 'a name, or "namespace/name"');
    const { namespace, name } = splitKey(text);
    return this.#placed(namespace || undefined, name);
  }

  #placed(own: string | undefined, name: string): NamespacedName {
    const { info } = this.#context();
    checkSegment('name', name);
    if (own !== undefined) checkSegment('namespace', own);
    if (!info.namespaced) {
      if (own !== undefined) throw invalid('namespace', own, `none, because ${info.plural} are in no namespace`);
      return { namespace: undefined, name };
    }
    const namespace = own ?? this.namespace;
    if (namespace === undefined) throw invalid('name', name, `a namespace too: use in(namespace)`);
    if (this.namespace !== undefined && namespace !== this.namespace) throw invalid('namespace', namespace, this.namespace);
    return { namespace, name };
  }
}

/** The result of a verb. Unexpected errors are refused as over HTTP, and reported to the server's owner. */
async function answered<R>(
  { onError }: ResourceContext,
  { signal }: { readonly signal?: AbortSignal | undefined },
  verb: Promise<R>,
): Promise<R> {
  try {
    return await verb;
  } catch (error) {
    const { status, unexpected } = statusOf(error);
    if (!unexpected || signal?.aborted) throw error;
    onError(error);
    throw toError(status, error);
  }
}

/** The object as if it had come over the wire as JSON: it shares nothing with the caller. */
function plain(object: object): KubernetesObject {
  const text = textOf(object);
  if (text === undefined) throw invalid('object', object, 'an object');
  return parseJson(new TextEncoder().encode(text)) as KubernetesObject;
}

function textOf(object: object): string | undefined {
  try {
    return JSON.stringify(object);
  } catch (error) {
    // It needs a stack: what a body may have is far less.
    if (error instanceof RangeError) throw tooDeep();
    throw error;
  }
}

function checkSegment(name: string, text: string): void {
  if (typeof text !== 'string' || !/^[^/%?#\s\\]+$/.test(text) || text === '.' || text === '..') {
    throw invalid(name, text, 'a non-empty name without "/", "%" or white space');
  }
}
