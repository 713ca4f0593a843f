/** What a reconcile gets: the object, the caches, and clients whose writes the key waits for. */
import { type KubernetesObject, keyOf, metadataOf, namespaceOf, splitKey, versionOf } from '../cache/object.ts';
import type { ResourceClient, WriteOptions } from '../cache/resource-client.ts';
import { refused } from '../storage/statuses.ts';
import { whenAborted } from '../watch/abort.ts';
import type { Clock } from '../watch/clock.ts';
import { invalid } from '../watch/errors.ts';
import type { Telemetry } from '../watch/telemetry.ts';
import type { ReconcileContext } from '../workqueue/controller-options.ts';
import { type ControllerCaches, controlledBy, type KindCaches } from './caches.ts';
import { atTimeOf } from './conditions.ts';
import { Departures } from './departures.ts';
import type { EventRecorder } from './event-recorder.ts';
import type { KindCache } from './kind-cache.ts';
import { type FullType, type KindName, textOf } from './kinds.ts';
import type { Log, OperatorFailure, OperatorObserver, ReconcileRequest } from './operator-options.ts';
import { checkController, controllerOf, setOwner } from './owners.ts';
import { type ApplyOptions, apply, type Mutable, updateStatus } from './writes.ts';

/** What a controller needs from its operator. */
export interface OperatorDeps {
  readonly name: string;
  readonly namespace: string | undefined;
  readonly clock: Clock | undefined;
  readonly now: () => number;
  readonly log: Log;
  readonly caches: KindCaches;
  readonly events: () => EventRecorder;
  readonly observer: OperatorObserver;
  readonly telemetry: Telemetry | undefined;
  /** Reports a failure. Does not throw. */
  readonly tell: (error: unknown, failure: OperatorFailure) => void;
  /** Called when `idle` of a controller may have changed. */
  readonly changed: () => void;
}

/** Shared by all requests of a controller. */
export interface RequestDeps {
  readonly operator: OperatorDeps;
  readonly controller: string;
  readonly clock: Clock;
  readonly caches: ControllerCaches;
  /** What is reconciled. */
  readonly own: KindCache;
  /** Whether a cache is that of a kind that the controller owns. */
  readonly owns: (cache: KindCache) => boolean;
}

/**
 * The promises that a reconcile has been given. If one rejects without being awaited, it would end the process: rejections by
 * the signal are ignored, and requests still running when the reconcile has returned are reported.
 *
 * Each is a separate promise, because nobody else may handle it: one that fails earlier and is not awaited is still an
 * unhandled rejection.
 */
export class Begun {
  readonly #open: Set<Promise<unknown>> = new Set();
  readonly #signal: AbortSignal;

  /** The signal must abort. */
  constructor(signal: AbortSignal) {
    this.#signal = signal;
    whenAborted(signal, () => this.end(() => {}));
  }

  add<R>(work: Promise<R>): Promise<R> {
    const given = work.finally(() => this.#open.delete(given));
    if (this.#signal.aborted) given.catch(() => {});
    else this.#open.add(given);
    return given;
  }

  /** Nothing is awaited any longer. */
  end(tell: (error: unknown) => void): void {
    for (const given of this.#open) given.catch(tell);
    this.#open.clear();
  }
}

export function createRequest<T extends KubernetesObject>(
  deps: RequestDeps,
  key: string,
  { signal, attempt, wrote, begun }: ReconcileContext & { readonly begun: Begun },
): ReconcileRequest<T> {
  const { operator, caches, own } = deps;
  const { name: fieldManager, now } = operator;
  const { namespace, name } = splitKey(key);
  const object = own.informer.store.get(key) as T | undefined;
  /** The object as it was last written, which the cache may not have yet. */
  let latest = object;
  const departures = new Departures(deps.clock, wrote);
  const given = <R>(work: Promise<R>): Promise<R> => begun.add(work);
  const clientOf = <O extends object>(
    cache: KindCache | undefined,
    client: ResourceClient<O>,
    { begin = (work) => work }: Partial<Pick<Additions, 'begin'>> = {},
  ): ResourceClient<O> => {
    const told = (written: object | undefined): void => {
      if (!cache?.informer.hasSynced || !versionOf(written) || !isWithin(operator.namespace, written)) return;
      // A Scale has the same name. Without this, adding the finalizer would make the next write of the status a conflict.
      const { kind, metadata } = written as KubernetesObject;
      if (kind === own.type.kind && metadata?.uid === metadataOf(object).uid) latest = written as T;
      wrote(written as KubernetesObject, cache.informer);
      departures.written(cache, written as KubernetesObject);
    };
    const left = (at: string): (() => void) => (cache ? departures.of(cache, at) : () => {});
    return toldClient(client, { signal, fieldManager, told, left, begin });
  };
  const clientFor = <O extends object>(kind: KindName<O>, terms?: Pick<Additions, 'begin'>): ResourceClient<O> =>
    clientOf(operator.caches.find(kind), operator.caches.client(kind), terms);
  const resource: ReconcileRequest['resource'] = (kind) => clientFor(kind, { begin: given });
  const required = (): T => {
    if (latest) return latest;
    throw refused(404, 'NotFound', `${key} is gone: it cannot be written, and cannot own anything`);
  };
  const emit = (how: 'normal' | 'warning', reason: string, message: string): void => {
    if (object) operator.events()[how](object, reason, message);
  };
  const applied = async <O extends object>(kind: KindName<O>, said: object, options: ApplyOptions = {}): Promise<O> => {
    const cache = caches.find(kind);
    const client = clientFor(kind);
    const terms = { ...options, fieldManager: options.fieldManager ?? fieldManager };
    if (!cache || !deps.owns(cache)) {
      checkPlace(client, said, textOf(kind));
      return apply(client, said as never, terms);
    }
    const owner = required();
    const desired = ownedBy(owner, said, cache.type);
    const known = cache.informer.store.get(keyOf(desired));
    // A reference of another controller of this operator would be replaced, because they share a field manager.
    if (known) checkController(known, owner);
    const isOwned = [known, departures.lastWritten(cache, keyOf(desired))].some((each) => each && controllerOf(each));
    const written = await apply(client, (isOwned ? desired : unlessChanged(desired, known)) as never, terms);
    checkController(written as KubernetesObject, owner);
    return written;
  };
  const statusUpdated = async (mutate: (draft: Mutable<T>) => unknown): Promise<T> => {
    const client = clientOf(own, own.client as unknown as ResourceClient<T>);
    const written = await updateStatus(client, required(), (draft) => atTimeOf(now, () => mutate(draft)));
    latest = written;
    return written;
  };
  return {
    ...{ key, namespace, name, object, attempt, signal, now, resource },
    log: prefixed(operator.log, `${deps.controller} ${key}: `),
    get: caches.get,
    store: caches.store,
    owned: <O extends object>(kind: KindName<O>) => {
      const { uid } = metadataOf(object);
      const { informer } = caches.of(kind);
      return (uid ? controlledBy(informer, uid) : []) as readonly O[];
    },
    apply: (kind, object, options) => given(applied(kind, object, options)),
    updateStatus: (mutate) => given(statusUpdated(mutate)),
    events: {
      normal: (reason, message) => emit('normal', reason, message),
      warning: (reason, message) => emit('warning', reason, message),
    },
  };
}

/** Throws INVALID_ARGUMENT for an object that does not say where it is. */
function checkPlace({ type, namespace }: ResourceClient, given: object, kind: string): void {
  const own = metadataOf(given);
  const lacks = !own.name ? 'name' : type.namespaced && !own.namespace && namespace === undefined ? 'namespace' : undefined;
  if (!lacks) return;
  const expected = `one, because the controller's "owns" does not list ${kind}: only objects that it owns get a name, a namespace and an owner`;
  throw invalid(`object.metadata.${lacks}`, own[lacks], expected);
}

/** A copy of an object, with its owner reference and a name. */
function ownedBy(owner: KubernetesObject, given: object, { kind, namespaced }: FullType): object {
  const { name = metadataOf(owner).name, namespace = namespaceOf(owner), ...own } = metadataOf(given);
  if (own.generateName !== undefined)
    throw invalid('object.metadata.generateName', own.generateName, 'none: apply needs the name, and `create` generates one');
  if (!namespaced && namespaceOf(owner))
    throw invalid('object.kind', kind, `a namespaced kind: ${keyOf(owner)} can own only what is in its namespace`);
  if (namespaced && !namespace)
    throw invalid('object.metadata.namespace', namespace, `one, because ${metadataOf(owner).name}, its owner, has none`);
  const object = { ...given, metadata: { ...own, name, ...(namespaced && { namespace }) } };
  setOwner(object, owner);
  return object;
}

/** A version that no object has. With it, a server creates a missing object, and refuses to change an existing one. */
const NONE = '1';

/**
 * An apply that is a conflict if the object is no longer as it is known: otherwise another owner's object could be taken over.
 */
function unlessChanged(applied: object, known: KubernetesObject | undefined): object {
  return { ...applied, metadata: { resourceVersion: versionOf(known) || NONE, ...metadataOf(applied) } };
}

/** Whether the caches of a namespace will see an object. */
function isWithin(namespace: string | undefined, written: unknown): boolean {
  const own = namespaceOf(written);
  return namespace === undefined || own === '' || own === namespace;
}

/** What {@link toldClient} adds to a client. */
interface Additions {
  readonly signal: AbortSignal;
  readonly fieldManager: string;
  /** Called with each object that was written. */
  readonly told: (written: object | undefined) => void;
  /** Called with the key of an object to delete. Returns a function to call once it is gone. */
  readonly left: (key: string) => () => void;
  /** Wraps the promise of each request. */
  readonly begin: <R>(work: Promise<R>) => Promise<R>;
}

/** A client whose requests end with a signal, and whose writes are reported. */
function toldClient<O extends object>(client: ResourceClient<O>, additions: Additions): ResourceClient<O> {
  const { signal, fieldManager, told, left, begin } = additions;
  const asked = <P extends { readonly signal?: AbortSignal | undefined }>(options: P | undefined): P => {
    const own = options?.signal;
    return { ...options, signal: own ? AbortSignal.any([own, signal]) : signal } as P;
  };
  const named = <P extends WriteOptions>(options: P | undefined): P => asked<P>({ fieldManager, ...options } as P);
  const heard = async <R>(options: { readonly dryRun?: boolean | undefined } | undefined, write: Promise<R>): Promise<R> => {
    const written = await write;
    if (!options?.dryRun) told(written as object | undefined);
    return written;
  };
  const removed: ResourceClient<O>['delete'] = async (name, options) => {
    const gone = left(client.namespace && !name.includes('/') ? `${client.namespace}/${name}` : name);
    const held = await heard(options, client.delete(name, asked(options)));
    if (held === undefined && !options?.dryRun) gone();
    return held;
  };
  const allRemoved: ResourceClient<O>['deleteCollection'] = async (options) => {
    const objects = await client.deleteCollection(asked(options));
    // The others are gone, and have their earlier versions.
    if (!options?.dryRun) {
      for (const each of objects) {
        if (metadataOf(each).deletionTimestamp) told(each);
        else left(keyOf(each))();
      }
    }
    return objects;
  };
  return {
    get type() {
      return client.type;
    },
    namespace: client.namespace,
    in: (namespace) => toldClient(client.in(namespace), additions),
    list: (options) => begin(client.list(asked(options))),
    watch: (options) => begin(client.watch(asked(options))),
    get: (name, options) => begin(client.get(name, asked(options))),
    create: (object, options) => begin(heard(options, client.create(object, named(options)))),
    update: (object, options) => begin(heard(options, client.update(object, named(options)))),
    patch: (name, patch, options) => begin(heard(options, client.patch(name, patch, named(options)))),
    delete: (name, options) => begin(removed(name, options)),
    deleteCollection: (options) => begin(allRemoved(options)),
    subresource: (name) => {
      const part = client.subresource(name);
      return {
        name,
        get: (at, options) => begin(part.get(at, asked(options))),
        update: (object, options) => begin(heard(options, part.update(object, named(options)))),
        patch: (at, patch, options) => begin(heard(options, part.patch(at, patch, named(options)))),
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
