/** What a reconcile gets: the object, the caches, and clients whose writes the key waits for. */
import { type KubernetesObject, metadataOf, splitKey, versionOf } from '../cache/object.ts';
import type { ResourceClient, WriteOptions } from '../cache/resource-client.ts';
import { invalid } from '../watch/errors.ts';
import type { ReconcileContext } from '../workqueue/controller-options.ts';
import { type KindCaches, textOf } from './caches.ts';
import type { KindName } from './kinds.ts';
import type { ApplyOptions, Log, ReconcileRequest } from './operator-options.ts';

/** What is the same for all requests of a controller. */
export interface RequestDeps<T extends object> {
  /** The operator's name. */
  readonly name: string;
  readonly controller: string;
  readonly namespace: string | undefined;
  readonly log: Log;
  readonly caches: KindCaches;
  readonly for: KindName<T>;
  readonly owns: readonly string[];
}

export function createRequest<T extends object>(
  deps: RequestDeps<T>,
  key: string,
  { signal, attempt, wrote }: ReconcileContext,
): ReconcileRequest<T> {
  const { caches, name: fieldManager } = deps;
  const { namespace, name } = splitKey(key);
  const object = caches.get(deps.for, key);
  const resource = <O extends object>(kind: KindName<O>): ResourceClient<O> => {
    const informer = caches.find(kind)?.informer;
    const told = (written: object | undefined): void => {
      if (informer && versionOf(written) && inScope(written, deps.namespace)) wrote(written as KubernetesObject, informer);
    };
    return watched(caches.client(kind), { signal, fieldManager, told });
  };
  return {
    key,
    namespace,
    name,
    object,
    attempt,
    signal,
    resource,
    log: prefixed(deps.log, `${deps.controller} ${key}: `),
    get: (kind, at) => caches.get(kind, at),
    store: (kind) => caches.store(kind),
    owned: (kind) => {
      const { uid } = metadataOf(object);
      const all = caches.store(kind);
      return uid === undefined ? [] : all.list().filter((each) => controllerUid(each) === uid);
    },
    apply: async <O extends object>(kind: KindName<O>, given: object, options: ApplyOptions = {}): Promise<O> => {
      const client = resource(kind);
      const { group, version, kind: type, namespaced } = client.type;
      const isOwned = deps.owns.includes(caches.find(kind)?.text ?? '') || deps.owns.includes(textOf(kind));
      if (isOwned && !object) throw invalid('object', undefined, `an object that owns what is applied: ${key} is gone`);
      const own = metadataOf(given);
      const metadata = {
        ...own,
        ...(isOwned && { name: own.name ?? name, ownerReferences: [referenceTo(object as KubernetesObject)] }),
        ...(isOwned && namespaced !== false && { namespace: own.namespace ?? namespace }),
      };
      const applied = { apiVersion: group ? `${group}/${version}` : version, kind: type, ...given, metadata };
      const at = metadata.namespace ? `${metadata.namespace}/${metadata.name}` : (metadata.name ?? '');
      return client.patch(at, applied, { type: 'apply', force: true, fieldManager, ...options });
    },
    updateStatus: async (mutate) => {
      const client = resource(deps.for);
      let draft = structuredClone(object) as T;
      for (let tries = 1; ; tries++) {
        const before = JSON.stringify(draft);
        mutate(draft);
        if (JSON.stringify(draft) === before) return draft;
        try {
          return await client.subresource('status').update(draft as never);
        } catch (error) {
          if ((error as { status?: { code?: number } }).status?.code !== 409 || tries === 5) throw error;
          draft = await client.get(key);
        }
      }
    },
    events: { normal: () => {}, warning: () => {} },
  };
}

function inScope(written: unknown, namespace: string | undefined): boolean {
  const own = metadataOf(written).namespace;
  return namespace === undefined || !own || own === namespace;
}

function controllerUid(object: unknown): string | undefined {
  const { ownerReferences = [] } = metadataOf(object);
  return (ownerReferences as readonly { uid?: string; controller?: boolean }[]).find(({ controller }) => controller)?.uid;
}

function referenceTo({ apiVersion, kind, metadata }: KubernetesObject): object {
  return { apiVersion, kind, name: metadata?.name, uid: metadata?.uid, controller: true, blockOwnerDeletion: true };
}

/** What {@link watched} adds to a client. */
interface Additions {
  readonly signal: AbortSignal;
  readonly fieldManager: string;
  /** Called with each object that was written. */
  readonly told: (written: object | undefined) => void;
}

/** A client whose requests end with a signal, and whose writes are told. */
function watched<O extends object>(client: ResourceClient<O>, additions: Additions): ResourceClient<O> {
  const { signal, fieldManager, told } = additions;
  const asked = <P extends { readonly signal?: AbortSignal | undefined }>(options: P | undefined): P => {
    const own = options?.signal;
    return { ...options, signal: own ? AbortSignal.any([own, signal]) : signal } as P;
  };
  const named = <P extends WriteOptions>(options: P | undefined): P => asked<P>({ fieldManager, ...options } as P);
  const heard = async <R extends object | undefined>(
    options: { readonly dryRun?: boolean | undefined } | undefined,
    write: Promise<R>,
  ): Promise<R> => {
    const written = await write;
    if (!options?.dryRun) told(written);
    return written;
  };
  return {
    get type() {
      return client.type;
    },
    namespace: client.namespace,
    in: (namespace) => watched(client.in(namespace), additions),
    list: (options) => client.list(asked(options)),
    watch: (options) => client.watch(asked(options)),
    get: (name, options) => client.get(name, asked(options)),
    create: (object, options) => heard(options, client.create(object, named(options))),
    update: (object, options) => heard(options, client.update(object, named(options))),
    patch: (name, patch, options) => heard(options, client.patch(name, patch, named(options))),
    delete: (name, options) => heard(options, client.delete(name, asked(options))),
    deleteCollection: async (options) => {
      const removed = await client.deleteCollection(asked(options));
      if (!options?.dryRun) for (const each of removed) if (metadataOf(each).deletionTimestamp) told(each);
      return removed;
    },
    subresource: (name) => {
      const part = client.subresource(name);
      return {
        name,
        get: (at, options) => part.get(at, asked(options)),
        update: (object, options) => heard(options, part.update(object, named(options)) as Promise<never>),
        patch: (at, patch, options) => heard(options, part.patch(at, patch, named(options)) as Promise<never>),
      };
    },
  };
}

function prefixed(log: Log, prefix: string): Log {
  return {
    debug: (text) => log.debug(prefix + text),
    info: (text) => log.info(prefix + text),
    warn: (text) => log.warn(prefix + text),
    error: (text) => log.error(prefix + text),
  };
}
