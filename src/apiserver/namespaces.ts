/**
 * Namespaces contain objects: a namespace must exist before its objects, and they are gone before it is. None of this applies if
 * a server does not serve `namespaces`: then every namespace exists.
 *
 *     create namespace ---> objects may be created
 *     delete namespace ---> Terminating: creating is 403 ---> its objects are deleted ---> none left (finalizers!): gone
 *
 * Several servers may share a storage, and each of them may be the one that deletes a namespace, that deletes the last object in
 * it, or that ends in between. So no decision depends on what one of them remembers:
 * - A namespace is Terminating because the stored object says so. A server that creates an object in a namespace looks at the
 *   namespace once more *after* that, and takes the object back if the namespace is Terminating; a server that deletes a
 *   namespace looks for objects after it has been marked. One of the two sees the other (`Terminating`, for the second).
 * - A server looks for objects where they are stored: another server may have kinds that this one does not know.
 * - Everything is deleted by its uid, and while the namespace is still the same: a new one with the same name is left alone.
 */
import { setMaxListeners } from 'node:events';
import { type KubernetesObject, versionOf } from '../cache/object.ts';
import { compareVersions } from '../cache/versions.ts';
import type { ChangeEvent, Storage } from '../storage/storage.ts';
import { Backoff } from '../watch/backoff.ts';
import type { Clock } from '../watch/clock.ts';
import { isWatchError } from '../watch/errors.ts';
import { unasked } from './admission.ts';
import { forbidden, hasCode, notFound } from './api-status.ts';
import { Follower } from './follower.ts';
import { type Catalog, type EmptyTerms, type ResourceContext, type ResourceInfo, timestamp } from './resource-info.ts';
import { kindOf, unknownKinds } from './stored-data.ts';
import { withMeta } from './verbs/metadata.ts';
import { deleteObject, deleteObjects } from './verbs/remove.ts';
import { createObject } from './verbs/write.ts';

/**
 * Finishes the deletion of Terminating namespaces, in each of the servers that share a storage.
 *
 *     list, watch ---> Terminating, and no finalizers of its own ---> after a second or two: finish ---> gone
 *                        '- an object of it is gone (hurry): finish now -^        '- not yet: again, later and later
 *
 * The server that was asked to delete a namespace does so while it answers; most of the time the namespace is gone before another
 * server looks. The others finish what is left when an object goes later, by a request to one of them, or when a server dies in
 * between.
 */

/** What the deletion of namespaces needs. */
export interface TerminatingDeps {
  readonly clock: Clock;
  readonly random: () => number;
  readonly onError: (error: unknown) => void;
  /** Tries to finish a deletion. Resolves to whether the namespace is gone. */
  readonly finish: (name: string, uid: string | undefined, signal: AbortSignal) => Promise<boolean>;
  /** The name of the namespace that must always be there. */
  readonly kept: string;
  /** Called if it is not, because somebody has emptied the storage. */
  readonly restore: () => Promise<void>;
}

/** A Terminating namespace. */
interface Job {
  readonly name: string;
  readonly uid: string | undefined;
  readonly backoff: Backoff;
  /** Cancels the next attempt. */
  cancel: () => void;
  running: Promise<void> | undefined;
  /** Whether something has happened since the current attempt began. */
  again: boolean;
}

const FIRST_MS = 1_000;
const MAX_MS = 60_000;

export class Terminating {
  private readonly deps: TerminatingDeps;
  private readonly jobs: Map<string, Job> = new Map();
  private readonly stopping: AbortController = new AbortController();
  private following: Promise<void> | undefined;

  constructor(deps: TerminatingDeps) {
    this.deps = deps;
    // Many may be Terminating at once: node 20 would warn of a leak.
    setMaxListeners(0, this.stopping.signal);
  }

  /** Resolves when the existing ones have been seen. From then on it follows the storage. */
  async start(storage: Storage<KubernetesObject>): Promise<void> {
    const { signal } = this.stopping;
    const { clock, random, onError } = this.deps;
    const follower = new Follower({
      ...{ storage, signal, clock, random, onError },
      whole: (items) => this.whole(items),
      changed: (event) => this.changed(event),
    });
    const after = await follower.list();
    if (!signal.aborted) this.following = follower.follow(after);
  }

  /** Something has happened in a namespace: if its deletion waits, it may have waited for this. */
  hurry(name: string): void {
    const job = this.jobs.get(name);
    if (job) this.attempt(job);
  }

  async stop(): Promise<void> {
    this.stopping.abort();
    const running = [...this.jobs.values()].map((job) => job.running);
    for (const name of [...this.jobs.keys()]) this.forget(name);
    await Promise.all([...running, this.following]);
  }

  private async whole(items: readonly KubernetesObject[]): Promise<void> {
    const names = new Set(items.map(({ metadata }) => metadata?.name));
    for (const name of [...this.jobs.keys()]) if (!names.has(name)) this.forget(name);
    for (const item of items) this.see(item);
    if (!names.has(this.deps.kept)) await this.restore();
  }

  private async restore(): Promise<void> {
    const { restore, onError } = this.deps;
    await restore().catch((error: unknown) => this.stopping.signal.aborted || onError(error));
  }

  private changed({ type, object }: ChangeEvent<KubernetesObject>): void | Promise<void> {
    if (type !== 'DELETED') return this.see(object);
    const { name = '' } = object.metadata ?? {};
    this.forget(name);
    return name === this.deps.kept ? this.restore() : undefined;
  }

  private see({ metadata }: KubernetesObject): void {
    const { name = '', uid, deletionTimestamp, finalizers = [] } = metadata ?? {};
    const known = this.jobs.get(name);
    // The removal of a namespace's last finalizer leads here.
    const isDue = deletionTimestamp !== undefined && finalizers.length === 0;
    if (known && (!isDue || known.uid !== uid)) this.forget(name);
    if (!isDue || this.jobs.has(name) || this.stopping.signal.aborted) return;
    const backoff = new Backoff({ minMs: FIRST_MS, maxMs: MAX_MS, factor: 2, random: this.deps.random, apart: true });
    const job: Job = { name, uid, backoff, cancel: () => {}, running: undefined, again: false };
    this.jobs.set(name, job);
    this.plan(job);
  }

  private forget(name: string): void {
    this.jobs.get(name)?.cancel();
    this.jobs.delete(name);
  }

  private plan(job: Job): void {
    job.cancel = this.deps.clock.schedule(job.backoff.failed({}), () => this.attempt(job));
  }

  private attempt(job: Job): void {
    job.again = true;
    job.running ??= this.work(job).finally(() => {
      job.running = undefined;
      // It may have happened after the attempt's last look.
      if (job.again && !this.stopping.signal.aborted && this.jobs.get(job.name) === job) this.attempt(job);
    });
  }

  private async work(job: Job): Promise<void> {
    const { signal } = this.stopping;
    const { finish, onError } = this.deps;
    job.cancel();
    try {
      while (job.again && !signal.aborted) {
        job.again = false;
        if (await finish(job.name, job.uid, signal)) {
          if (this.jobs.get(job.name) === job) this.forget(job.name);
          return;
        }
      }
    } catch (error) {
      if (!signal.aborted && !isWatchError(error, 'CLOSED')) onError(error);
    }
    if (!signal.aborted && this.jobs.get(job.name) === job) this.plan(job);
  }
}

/** The namespace that always exists. */
const DEFAULT = 'default';
/** Objects that are looked at to see whether a namespace is empty. */
const PAGE = 500;
const NAME_LABEL = 'kubernetes.io/metadata.name';

/** The object that is to be created. */
interface About {
  readonly info: ResourceInfo;
  readonly name: string;
}

/** What was checked before an object was created, and the object. */
interface Confirmation {
  readonly uid: string;
  readonly created: KubernetesObject;
}

/** What a server's namespaces need from it. */
interface NamespacesDeps extends Pick<TerminatingDeps, 'clock' | 'random' | 'onError'> {
  readonly catalog: Catalog;
  /** All of it. */
  readonly storage: Storage;
  readonly contextOf: (info: ResourceInfo) => ResourceContext;
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
      finish: (name, uid, signal) => this.finish(name, uid, signal),
      kept: DEFAULT,
      restore: () => this.createDefault(),
    });
  }

  /** Creates what must always exist, and begins to watch for Terminating namespaces, whichever server has deleted them. */
  async prepare(): Promise<void> {
    if (this.info === undefined) return;
    await this.createDefault();
    await this.terminating.start(this.deps.contextOf(this.info).storage);
  }

  /** Resolves when nothing is running any more. */
  stop(): Promise<void> {
    return this.terminating.stop();
  }

  /** A new namespace, with the label by which selectors know its name, and its phase. */
  prepared<T extends KubernetesObject>(object: T): T {
    const { metadata } = object;
    const labels = { ...metadata?.labels, [NAME_LABEL]: metadata?.name ?? '' };
    return { ...object, metadata: { ...metadata, labels }, status: { phase: 'Active' } };
  }

  /**
   * Rejects with the error for the client if nothing may be created in a namespace. Resolves with what {@link confirm} needs once
   * an object has been created; undefined if that is not needed.
   */
  async check(namespace: string, about: About): Promise<string | undefined> {
    if (this.info === undefined || namespace === DEFAULT) return undefined;
    const { storage } = this.deps.contextOf(this.info);
    // A cache may be late: what it says against a namespace may no longer be true.
    const cached = await storage.get(namespace, { resourceVersion: '0' });
    const isActive = cached !== undefined && cached.metadata?.deletionTimestamp === undefined;
    return this.uidOf(isActive ? cached : await storage.get(namespace), { namespace, about });
  }

  /**
   * Rejects if the namespace of a new object is Terminating, or is not the one that was checked, unless that one existed before
   * the object.
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
   * Deletes what is in a namespace, whether or not the namespace itself has finalizers. Resolves to false if finalizers keep
   * something. Rejects with 404 if the namespace has gone meanwhile, or is another one.
   */
  async empty({ metadata }: KubernetesObject, { dryRun, signal }: EmptyTerms): Promise<boolean> {
    const [namespace, uid] = [metadata?.name ?? '', metadata?.uid];
    if (this.info === undefined) return true;
    if (namespace === DEFAULT) throw forbidden(this.info, namespace, 'this namespace may not be deleted');
    if (dryRun) return true;
    const context = this.deps.contextOf(this.info);
    await this.terminate(context, namespace, uid);
    const check = async (): Promise<void> => {
      if ((await context.storage.get(namespace, { signal }))?.metadata?.uid !== uid) throw notFound(context.info, namespace);
    };
    let isEmpty = true;
    for (const info of this.contained()) {
      if (!(await clear(this.deps.contextOf(info), namespace, { check, signal }))) isEmpty = false;
    }
    const { catalog, storage } = this.deps;
    for (const info of await unknownKinds(storage, { catalog, namespace, signal })) {
      const isOne = (object: KubernetesObject): boolean => kindOf(object, info.prefix, namespace) !== undefined;
      const own = { ...context, info, storage: storage.scope(info.prefix), empty: undefined, prepared: undefined };
      if (!(await clear(own, namespace, { check, signal, isOne }))) isEmpty = false;
    }
    return isEmpty;
  }

  /** An object of a namespace is gone. If it was the last one of a Terminating namespace, that goes as well. */
  removed(namespace: string | undefined): void {
    if (namespace !== undefined) this.terminating.hurry(namespace);
  }

  private async createDefault(): Promise<void> {
    const context = this.deps.contextOf(this.info as ResourceInfo);
    await createObject(unasked(context), { metadata: { name: DEFAULT } }, { namespace: undefined, dryRun: false }).catch(
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

  /** Each kind once, in any of its versions. */
  private contained(): readonly ResourceInfo[] {
    const all = this.deps.catalog.all.filter(({ namespaced }) => namespaced);
    return all.filter((info) => all.find(({ prefix }) => prefix === info.prefix) === info);
  }

  private async terminate({ storage, now, info }: ResourceContext, name: string, uid: string | undefined): Promise<void> {
    await storage.update(name, (current) => {
      if (current.metadata?.uid !== uid) throw notFound(info, name);
      if (current.metadata?.deletionTimestamp !== undefined) return current;
      const marked = withMeta(current, { deletionTimestamp: timestamp(now()), deletionGracePeriodSeconds: 0 });
      return { ...marked, status: { phase: 'Terminating' } };
    });
  }
}

/** Deletes the objects of one kind in a namespace. Resolves to whether none is left. */
async function clear(
  context: ResourceContext,
  namespace: string,
  {
    check,
    signal,
    isOne = () => true,
  }: {
    readonly check: () => Promise<void>;
    readonly signal: AbortSignal | undefined;
    /** Leaves others alone. */
    readonly isOne?: (object: KubernetesObject) => boolean;
  },
): Promise<boolean> {
  const scope = context.storage.scope(`${namespace}/`);
  const list = async (page: { limit: number; continue: string }): ReturnType<typeof scope.list> => {
    const listed = await scope.list({ limit: page.limit, continue: page.continue || undefined, signal });
    // After the list: its objects are those of this namespace, not of a later one with the same name.
    await check();
    return { ...listed, items: listed.items.filter(isOne) };
  };
  await deleteObjects({ ...context, removed: () => {} }, namespace, { dryRun: false, list, signal });
  return !(await scope.list({ limit: PAGE, signal })).items.some(isOne);
}
