/**
 * A resource of a server, in process: the verbs without the network. It checks and answers as the server does over HTTP, and
 * since it is a `ListWatcher`, an informer runs on it without a socket.
 *
 *     informer, test, program ---> Resource ---.
 *                                              +---> verbs ---> storage
 *     kubectl, client-go ------> HTTP --------'
 *
 * It is trusted: neither `authenticate` nor `authorize` is called.
 *
 * Single objects are copies, as over HTTP: otherwise, a caller that reads an object, changes it and updates it would change the
 * stored object, and the update would find nothing to write. Objects in lists and watches are shared by all readers.
 */
import type { List, ListOptions, ListWatcher, ListWatchOptions } from '../cache/list-watcher.ts';
import { type KubernetesObject, namespaceOf } from '../cache/object.ts';
import {
  checkedDelete,
  checkedDeleteCollection,
  checkedPatch,
  checkedWrite,
  checkNamespace,
  type DeleteCollectionOptions,
  type DeleteOptions,
  GET_NAMES,
  type GetOptions,
  type PatchOptions,
  placeOf,
  placeOfObject,
  type ResourceClient,
  type ResourceType,
  type SubresourceClient,
  type SubresourceOf,
  subresourceOf,
  WRITE_NAMES,
  type WriteOptions,
} from '../cache/resource-client.ts';
import { quickCopy } from '../storage/shared.ts';
import { copyOf } from '../storage/values.ts';
import { checkOptions, invalid, isRecord, refusedBy, toJson, tried } from '../watch/errors.ts';
import type { ObjectEvent } from '../watch/event.ts';
import { atOnce, inPieces, type Soon, type Work } from '../watch/fair-queue.ts';
import type { Watch } from '../watch/watch.ts';
import { invalidOptions, statusOf } from './api-status.ts';
import { parseJson, tooDeep } from './request/json.ts';
import { fromListOptions, fromWatchOptions } from './request/query.ts';
import type { ResourceContext } from './resource-info.ts';
import { rowOf, type SeenKind, type Subresource } from './subresources.ts';
import { FieldCheck } from './validation/field-check.ts';
import { applyObject, replaceObject } from './verbs/apply.ts';
import { managerCauses, type Writer } from './verbs/managed-fields.ts';
import { getObject, listObjects, presented, presentedEvents, watchObjects } from './verbs/read.ts';
import { deleteObject, deleteObjects } from './verbs/remove.ts';
import { createObject, toChange, type UpdateTerms, updateObject } from './verbs/write.ts';

/** Makes the source of one kind of objects: `ApiServer.source`. */
export type ApiServerSource = (
  name: string,
  options?: { readonly namespace?: string | undefined },
) => ListWatcher<KubernetesObject>;

/**
 * The objects of one kind, in all namespaces or in one. Created by `ApiServer.resource`. The objects in its lists and watches are
 * shared: do not change them. Those of the other methods are copies.
 */
export class Resource<T extends object = KubernetesObject> implements ResourceClient<T> {
  /** The namespace; undefined: all namespaces, or the kind is not namespaced. */
  readonly namespace: string | undefined;
  readonly #context: () => ResourceContext;

  /** Throws CLOSED, from `context`, once the server has shut down. */
  constructor(context: () => ResourceContext, namespace?: string) {
    this.#context = context;
    this.namespace = namespace;
  }

  /** The group, version, names and scope of this kind. */
  get type(): Required<ResourceType> {
    const { group, version, plural, kind, namespaced } = this.#context().info;
    return { group, version, plural, kind, namespaced };
  }

  /** Returns this resource, limited to one namespace. */
  in(namespace: string): Resource<T> {
    checkNamespace(this.type, namespace);
    return new Resource<T>(this.#context, namespace);
  }

  async list(options: ListOptions = {}): Promise<List<T>> {
    const parameters = fromListOptions(options);
    const { signal } = options;
    signal?.throwIfAborted();
    const context = this.#context();
    const asked = { namespace: this.namespace, parameters, signal };
    return (await answered(context, asked, listObjects(context, asked))) as unknown as List<T>;
  }

  async watch(options: ListWatchOptions = {}): Promise<Watch<ObjectEvent<T>>> {
    const parameters = fromWatchOptions(options);
    const { signal } = options;
    signal?.throwIfAborted();
    const context = this.#context();
    const asked = {
      namespace: this.namespace,
      parameters,
      // The server's shutdown ends the watch.
      signal: signal && context.closing ? AbortSignal.any([signal, context.closing]) : (signal ?? context.closing),
    };
    const watch = await answered(context, asked, watchObjects(context, asked));
    return presentedEvents(context.info, watch) as unknown as Watch<ObjectEvent<T>>;
  }

  /** Reads one object. Rejects with 404 if there is none. */
  async get(name: string, options: GetOptions = {}): Promise<T> {
    const { resourceVersion = '', signal, subresource } = checkOptions(options, GET_NAMES);
    const row = this.#row(subresource);
    const context = this.#context();
    const got = getObject(context, placeOf(this, name), { resourceVersion, signal });
    return this.#shown(context, await answered(context, { signal }, got), row);
  }

  /** Creates an object. If it has no name but a `metadata.generateName`, the server generates its name. */
  async create(object: T, options: WriteOptions = {}): Promise<T> {
    const { dryRun = false, signal, subresource, fieldValidation } = checkedWrite(options, WRITE_NAMES);
    const writer = writerOf('CreateOptions', options);
    if (subresource !== undefined) throw invalid('subresource', subresource, 'none: a subresource cannot be created');
    const context = this.#context();
    const { info } = context;
    const check = fieldCheck(info, fieldValidation);
    const namespace = info.namespaced ? this.namespace || namespaceOf(object) || undefined : undefined;
    if (info.namespaced && namespace === undefined) throw invalid('namespace', namespace, 'one: use in(namespace)');
    const sent = plain(object);
    if (check) atOnce((await check()).object(sent));
    const created = await answered(context, { signal }, createObject(context, sent, { namespace, dryRun, signal, writer }));
    return this.#shown(context, created, info.main);
  }

  /** Replaces an object. If it has a `resourceVersion` that is not the newest, it is refused with 409. */
  async update(object: T, options: WriteOptions = {}): Promise<T> {
    const { dryRun = false, signal, subresource, fieldValidation } = checkedWrite(options, WRITE_NAMES);
    const writer = writerOf('UpdateOptions', options);
    const row = this.#row(subresource);
    const check = fieldCheck(row.kind ?? this.#context().info, fieldValidation);
    const sent = plain(object);
    const place = placeOfObject(this, sent, 'update');
    if (check) atOnce((await check()).object(sent));
    const context = this.#context();
    const replaced = replaceObject(context, sent, { place, row, dryRun, signal, writer });
    return this.#shown(context, (await answered(context, { signal }, replaced)).object, row);
  }

  /** Changes a part of an object. With `apply`, creates the object if it does not exist. */
  async patch(name: string, patch: object, options: PatchOptions = {}): Promise<T> {
    const { dryRun = false, signal, subresource, type = 'merge', force = false, fieldValidation } = checkedPatch(patch, options);
    const writer = writerOf('PatchOptions', options);
    const row = this.#row(subresource);
    const context = this.#context();
    const { info } = context;
    const kind = row.kind ?? info;
    const check = fieldCheck(kind, fieldValidation);
    const sent = plain(patch, 'patch');
    const place = placeOf(this, name);
    const fields = check && (await check());
    const terms = { place, row, dryRun, signal, writer };
    if (type !== 'apply') return this.#update({ ...terms, make: atOnce(toChange(sent, { type, info, row, fields })) });
    // As over HTTP, where the client fills these in.
    const config = { apiVersion: kind.apiVersion, kind: kind.kind, ...sent };
    const applied = (async () => applyObject(context, { ...terms, config, force, fields }))();
    return this.#shown(context, (await answered(context, terms, applied)).object, row);
  }

  /** Deletes an object. Resolves with the object if finalizers or its grace still hold it, and with undefined if it is gone. */
  async delete(name: string, options: DeleteOptions = {}): Promise<T | undefined> {
    const { dryRun = false, signal, subresource, ...terms } = checkedDelete(options);
    if (subresource !== undefined) throw invalid('subresource', subresource, 'none: a subresource cannot be deleted');
    const context = this.#context();
    const deleted = deleteObject(context, placeOf(this, name), { dryRun, signal, ...terms });
    const { object, gone } = await answered(context, { signal }, deleted);
    return gone ? undefined : this.#shown(context, object, context.info.main);
  }

  /** Deletes the objects that the selectors match, one after the other. Resolves with these objects. */
  async deleteCollection(options: DeleteCollectionOptions = {}): Promise<readonly T[]> {
    const { dryRun = false, signal, ...selectors } = checkedDeleteCollection(options);
    const list = (page: { limit: number; continue: string }): Promise<List<T & KubernetesObject>> =>
      this.list({ ...selectors, limit: page.limit, continue: page.continue || undefined, signal }) as Promise<
        List<T & KubernetesObject>
      >;
    const context = this.#context();
    const deleted = deleteObjects(context, this.namespace, { dryRun, signal, list });
    const shown = deleted.then((objects) => inPieces(copies(objects), { signal }));
    return await answered(context, { signal }, shown);
  }

  /** A subresource of the objects, such as `status` or `scale`. */
  subresource<Name extends string>(name: Name): SubresourceClient<SubresourceOf<T, Name>> {
    return subresourceOf(this as unknown as ResourceClient<SubresourceOf<T, Name> & object>, name);
  }

  async #update(terms: UpdateTerms): Promise<T> {
    const context = this.#context();
    return this.#shown(context, await answered(context, terms, updateObject(context, terms)), terms.row);
  }

  #shown({ info }: ResourceContext, object: KubernetesObject, row: Subresource): T {
    return copyOf(row.view(presented(info, object))) as T;
  }

  #row(subresource: string | undefined): Subresource {
    const { info } = this.#context();
    const row = rowOf(info, subresource);
    if (row === undefined) {
      const defined = subresource === 'status' ? ', as its definition says with subresources: { status: {} }' : '';
      throw invalid('subresource', subresource, `one that ${info.resourceName} has${defined}`);
    }
    return row;
  }
}

/** How many objects are copied before the time is checked. */
const COPIED_AT_ONCE = 16;

function* copies<T>(objects: readonly T[]): Work<T[]> {
  const copied: T[] = [];
  for (const each of objects) {
    copied.push(copyOf(each));
    if (copied.length % COPIED_AT_ONCE === 0) yield;
  }
  return copied;
}

/** Who writes. Throws 422 for an invalid manager name. */
function writerOf(kind: string, { fieldManager }: WriteOptions): Writer {
  const causes = managerCauses(fieldManager);
  if (causes.length > 0) throw invalidOptions(kind, causes);
  return { fieldManager };
}

/** Makes the check of a write's fields; undefined: they are not checked. */
function fieldCheck(kind: SeenKind, mode: WriteOptions['fieldValidation']): (() => Soon<FieldCheck>) | undefined {
  return mode === 'Strict' ? () => FieldCheck.of(kind) : undefined;
}

/** The result of a verb. Unexpected errors become refusals, as over HTTP, and are reported to `onError`. */
async function answered<R>(
  { onError, during }: ResourceContext,
  { signal }: { readonly signal?: AbortSignal | undefined },
  verb: Promise<R>,
): Promise<R> {
  try {
    return await during(verb);
  } catch (error) {
    const { status, unexpected } = statusOf(error);
    if (!unexpected || signal?.aborted) throw error;
    onError(error);
    throw refusedBy(status, error);
  }
}

/** The object as if it had come as JSON: it shares nothing with the caller. */
function plain(object: object, name: string = 'object'): KubernetesObject {
  const quick = isRecord(object) ? tried(() => quickCopy(object)) : undefined;
  if (quick !== undefined) return quick;
  try {
    return parseJson(new TextEncoder().encode(toJson(name, object))) as KubernetesObject;
  } catch (error) {
    // The stack overflowed, far beyond the depth that a body may have.
    if ((error as Error).cause instanceof RangeError) throw tooDeep();
    throw error;
  }
}
