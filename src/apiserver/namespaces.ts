/**
 * Namespaces contain objects: a namespace must exist before its objects, and is gone only after them. None of this applies if a
 * server does not serve `namespaces`: then every namespace exists.
 *
 *     create namespace ---> objects may be created
 *     delete namespace ---> Terminating: creating is 403 ---> its objects are deleted ---> none left (finalizers!): gone
 *
 * Several servers may share a storage, and each of them may be the one that deletes a namespace, that deletes the last object in
 * it, or that ends in between. So no decision depends on what one of them remembers:
 * - A namespace is Terminating because the stored object says so. A server that creates an object in a namespace reads the
 *   namespace again *afterwards*, and takes the object back if the namespace is Terminating; a server that deletes a namespace
 *   looks for objects after it has been marked. One of the two sees the other (`Terminating`, for the second).
 * - A server looks for objects directly in the storage: another server may have kinds that this one does not know.
 * - Everything is deleted by its uid, and while the namespace is still the same: a new one with the same name is left alone.
 */
import { type KubernetesObject, versionOf } from '../cache/object.ts';
import { compareVersions } from '../cache/versions.ts';
import type { Storage } from '../storage/storage.ts';
import { type Admission, unasked } from './admission.ts';
import { forbidden, hasCode, notFound } from './api-status.ts';
import { NAME_LABEL } from './kinds/tables.ts';
import { type Condition, Remains } from './remains.ts';
import { type Catalog, type EmptyTerms, type ResourceContext, type ResourceInfo, timestamp } from './resource-info.ts';
import { kindOf, unknownKinds } from './stored-data.ts';
import { type BackgroundDeps, Terminating } from './terminating.ts';
import { withMeta } from './verbs/metadata.ts';
import { deleteObject, deleteObjects } from './verbs/remove.ts';
import { createObject } from './verbs/write.ts';

/** The namespace that always exists. */
const DEFAULT = 'default';
/** How many objects at a time are read to see whether a namespace is empty. */
const PAGE = 500;
/** The finalizer in the spec of a namespace that stands for its content: this server removes it. */
const OF_CONTENT = 'kubernetes';

const specOf = (object: KubernetesObject): { readonly finalizers?: readonly string[] } =>
  (object as { spec?: { readonly finalizers?: readonly string[] } }).spec ?? {};

/** The object to create. */
interface About {
  readonly info: ResourceInfo;
  readonly name: string;
}

/** What was checked before an object was created, and the object. */
interface Confirmation {
  readonly uid: string;
  readonly created: KubernetesObject;
}

/** What the namespaces need from their server. */
interface NamespacesDeps extends BackgroundDeps {
  readonly catalog: Catalog;
  /** The whole storage, not a scope of it. */
  readonly storage: Storage;
  readonly contextOf: (info: ResourceInfo) => ResourceContext;
  /** Also for kinds that are not served. */
  readonly admissionOf: (info: ResourceInfo) => Admission | undefined;
}

export class Namespaces {
  private readonly deps: NamespacesDeps;
  private readonly info: ResourceInfo | undefined;
  private readonly terminating: Terminating;

  constructor(deps: NamespacesDeps) {
    this.deps = deps;
    this.info = deps.catalog.namespaces;
    this.terminating = new Terminating({
      ...deps,
      isDue: ({ metadata }) => (metadata?.finalizers ?? []).length === 0,
      finish: (name, uid, signal) => this.finish(name, uid, signal),
      observer: {
        // The storage may have been emptied.
        whole: async (items) => {
          if (!items.some(({ metadata }) => metadata?.name === DEFAULT)) await this.createDefault();
        },
        changed: async ({ type, object }) => {
          if (type === 'DELETED' && object.metadata?.name === DEFAULT) await this.createDefault();
        },
      },
    });
  }

  /** What the verbs do to namespaces themselves. */
  get hooks(): Pick<ResourceContext, 'prepared' | 'empty' | 'tried'> {
    return {
      prepared: (object) => this.prepared(object),
      empty: (object, terms) => this.empty(object, terms),
      tried: (object) => this.marked(object),
    };
  }

  /** Creates what must always exist, and begins to watch for Terminating namespaces, whichever server has deleted them. */
  async prepare(signal: AbortSignal): Promise<void> {
    if (this.info === undefined) return;
    await this.createDefault(signal);
    await this.terminating.start(this.deps.contextOf(this.info).storage);
  }

  /** Resolves when nothing is running any more. */
  stop(): Promise<void> {
    return this.terminating.stop();
  }

  /** A new namespace, with the label by which selectors know its name, the finalizer that stands for its content, and its phase. */
  private prepared<T extends KubernetesObject>(object: T): T {
    const { metadata } = object;
    const labels = { ...metadata?.labels, [NAME_LABEL]: metadata?.name ?? '' };
    const { finalizers = [] } = specOf(object);
    const all = finalizers.includes(OF_CONTENT) ? finalizers : [...finalizers, OF_CONTENT];
    return { ...object, metadata: { ...metadata, labels }, spec: { finalizers: all }, status: { phase: 'Active' } };
  }

  /**
   * Rejects with the error for the client if nothing may be created in a namespace. Resolves with what {@link confirm} needs once
   * an object has been created; undefined if that is not needed.
   */
  async check(namespace: string, about: About): Promise<string | undefined> {
    if (this.info === undefined || namespace === DEFAULT) return undefined;
    const { storage } = this.deps.contextOf(this.info);
    // A cache may lag behind: if it says that a namespace is missing or Terminating, the storage is asked.
    const cached = await storage.get(namespace, { resourceVersion: '0' });
    const isActive = cached !== undefined && cached.metadata?.deletionTimestamp === undefined;
    return this.uidOf(isActive ? cached : await storage.get(namespace), { namespace, about });
  }

  /**
   * Rejects if the namespace of a new object is Terminating, or has been replaced since the check, unless the new one existed
   * before the object.
   */
  async confirm(namespace: string, { uid, created }: Confirmation, info: ResourceInfo): Promise<void> {
    if (this.info === undefined) return;
    const about = { info, name: created.metadata?.name ?? '' };
    const found = await this.deps.contextOf(this.info).storage.get(namespace);
    if (this.uidOf(found, { namespace, about }) === uid) return;
    if (compareVersions(versionOf(found), versionOf(created)) > 0) throw notFound(this.info, namespace);
  }

  private uidOf(found: KubernetesObject | undefined, { namespace, about }: { namespace: string; about: About }): string {
    if (found === undefined) throw notFound(this.info as ResourceInfo, namespace);
    if (found.metadata?.deletionTimestamp === undefined) return found.metadata?.uid ?? '';
    const why = `unable to create new content in namespace ${namespace} because it is being terminated`;
    throw forbidden(about.info, about.name, why, [
      // Controllers look for this, to leave the object alone from then on. Upstream: `NamespaceTerminatingCause`.
      { reason: 'NamespaceTerminating', message: `namespace ${namespace} is being terminated`, field: 'metadata.namespace' },
    ]);
  }

  /**
   * Deletes what is in a namespace, whether or not the namespace itself has finalizers. Resolves to false if something keeps some
   * objects, and says so in its status. Rejects with 404 if the namespace has been deleted or replaced in the meantime.
   */
  private async empty(object: KubernetesObject, { dryRun, signal, check: mayGo }: EmptyTerms): Promise<boolean> {
    const { metadata } = object;
    const [namespace, uid] = [metadata?.name ?? '', metadata?.uid];
    if (this.info === undefined) return true;
    if (namespace === DEFAULT) throw forbidden(this.info, namespace, 'this namespace may not be deleted');
    if (dryRun) return true;
    const context = this.deps.contextOf(this.info);
    await this.terminate(context, object, mayGo);
    const check = async (): Promise<void> => {
      if ((await context.storage.get(namespace, { signal }))?.metadata?.uid !== uid) throw notFound(context.info, namespace);
    };
    const left = await this.clearAll(context, namespace, { check, signal });
    await this.tell(context, object, left);
    return left.isEmpty && (await this.finalized(context, namespace, uid));
  }

  /** Deletes the objects of all kinds. Resolves to what is left. */
  private async clearAll(
    context: ResourceContext,
    namespace: string,
    terms: Pick<ClearTerms, 'check' | 'signal'>,
  ): Promise<Remains> {
    const left = new Remains(namespace, context.now());
    for (const info of this.contained()) {
      await clear(this.deps.contextOf(info), namespace, { ...terms, left });
      // While there are Pods, what protects them and others, such as policies, stays. Upstream: `OrderedNamespaceDeletion`.
      if (isPods(info) && !left.isEmpty) return left;
    }
    const { catalog, storage } = this.deps;
    for (const info of await unknownKinds(storage, { catalog, namespace, signal: terms.signal })) {
      const isOne = (object: KubernetesObject): boolean => kindOf(object, info.prefix, namespace) !== undefined;
      const admission = context.admission?.about(this.deps.admissionOf(info));
      const own = { ...context, info, storage: storage.scope(info.prefix), admission, empty: undefined, prepared: undefined };
      await clear(own, namespace, { ...terms, left, isOne });
    }
    return left;
  }

  /** Says in a namespace's status what is left in it, if that is something, or was. */
  private async tell({ storage, now }: ResourceContext, { metadata }: KubernetesObject, left: Remains): Promise<void> {
    const { name = '', uid } = metadata ?? {};
    const change = (current: KubernetesObject): KubernetesObject => {
      const { conditions = [], ...status } = (current as Told).status ?? {};
      if (current.metadata?.uid !== uid || (left.isEmpty && conditions.length === 0)) return current;
      const next = left.conditionsAfter(conditions, timestamp(now()));
      return next === conditions ? current : ({ ...current, status: { ...status, conditions: next } } as Told);
    };
    const found = await storage.get(name);
    if (found === undefined || change(found) === found) return;
    await storage.update(name, change).catch((error: unknown) => {
      if (!hasCode(error, 404)) throw error;
    });
  }

  /** Called when nothing is left in a namespace. Resolves to whether its spec has no other finalizers. */
  private async finalized({ storage }: ResourceContext, name: string, uid: string | undefined): Promise<boolean> {
    const others = (object: KubernetesObject): readonly string[] =>
      (specOf(object).finalizers ?? []).filter((each) => each !== OF_CONTENT);
    const found = await storage.get(name);
    if (found === undefined || found.metadata?.uid !== uid || others(found).length === 0) return true;
    const left = await storage.update(name, (current) =>
      current.metadata?.uid === uid ? ({ ...current, spec: { finalizers: others(current) } } as KubernetesObject) : current,
    );
    return others(left).length === 0;
  }

  /** Called when an object is gone. If it was the last one of a Terminating namespace, the namespace goes, too. */
  removed(namespace: string | undefined): void {
    if (namespace !== undefined) this.terminating.hurry(namespace);
  }

  private async createDefault(signal?: AbortSignal): Promise<void> {
    const context = this.deps.contextOf(this.info as ResourceInfo);
    await createObject(unasked(context), { metadata: { name: DEFAULT } }, { namespace: undefined, dryRun: false, signal }).catch(
      (error: unknown) => {
        if (!hasCode(error, 409)) throw error;
      },
    );
  }

  /** Finishes the deletion of a namespace. Resolves to whether it is gone. */
  private async finish(name: string, uid: string | undefined, signal: AbortSignal): Promise<boolean> {
    const context = this.deps.contextOf(this.info as ResourceInfo);
    const terms = { dryRun: false, preconditions: { uid }, signal };
    try {
      return (await deleteObject(unasked(context), { namespace: undefined, name }, terms)).gone;
    } catch (error) {
      // Another server has finished it.
      if (hasCode(error, 404) || hasCode(error, 409)) return true;
      throw error;
    }
  }

  /** Each kind once, in any of its versions, and Pods first. */
  private contained(): readonly ResourceInfo[] {
    const all = this.deps.catalog.all.filter(({ namespaced }) => namespaced);
    const each = all.filter((info) => all.find(({ prefix }) => prefix === info.prefix) === info);
    return each.sort((one, other) => Number(isPods(other)) - Number(isPods(one)));
  }

  private async terminate(
    { storage, info }: ResourceContext,
    { metadata: { name = '', uid } = {} }: KubernetesObject,
    mayGo: EmptyTerms['check'],
  ): Promise<void> {
    await storage.update(name, (current) => {
      if (current.metadata?.uid !== uid) throw notFound(info, name);
      mayGo(current);
      return this.marked(current);
    });
  }

  /** A namespace that is Terminating. Upstream: `REST.Delete`. */
  private marked(object: KubernetesObject): KubernetesObject {
    if (object.metadata?.deletionTimestamp !== undefined) return object;
    const { now } = this.deps.contextOf(this.info as ResourceInfo);
    const marked = withMeta(object, { deletionTimestamp: timestamp(now()) });
    return { ...marked, status: { ...(marked as { status?: object }).status, phase: 'Terminating' } } as KubernetesObject;
  }
}

const isPods = ({ resourceName }: ResourceInfo): boolean => resourceName === 'pods';

/** A namespace that says what is left in it. */
interface Told extends KubernetesObject {
  readonly status?: { readonly conditions?: readonly Condition[] };
}

interface ClearTerms {
  readonly check: () => Promise<void>;
  readonly signal: AbortSignal | undefined;
  /** Gets the objects that are left. */
  readonly left: Remains;
  /** Selects objects; others are left alone. */
  readonly isOne?: (object: KubernetesObject) => boolean;
}

/** Deletes the objects of one kind in a namespace. */
async function clear(
  context: ResourceContext,
  namespace: string,
  { check, signal, left, isOne = () => true }: ClearTerms,
): Promise<void> {
  const scope = context.storage.scope(`${namespace}/`);
  const list = async (page: { limit: number; continue: string }): ReturnType<typeof scope.list> => {
    const listed = await scope.list({ limit: page.limit, continue: page.continue || undefined, signal });
    // Checked after the list, so that the listed objects belong to this namespace, not to a later one with the same name.
    await check();
    return { ...listed, items: listed.items.filter(isOne) };
  };
  const terms = { dryRun: false, propagation: 'Background', signal } as const;
  await deleteObjects({ ...context, removed: () => {} }, namespace, { ...terms, list });
  let next: string | undefined;
  do {
    const page = await scope.list({ limit: PAGE, continue: next, signal });
    for (const object of page.items) if (isOne(object)) left.add(context.info, object);
    next = page.continue;
  } while (next);
}
