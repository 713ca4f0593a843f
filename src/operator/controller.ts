/**
 * One controller of an operator. What it says about kinds becomes sources of a `Controller` of `watchmux/workqueue`; each
 * leadership gets a new one, because it runs only once, on informers that go on.
 *
 *     for: its own key --------------.
 *     owns: key of the controller ---+--> when(old, object, event)? ---> Controller ---> reconcile(request)
 *     watches: keysOf(object) -------'
 *     reads: only waited for
 */
import type { Informer } from '../cache/informer/informer.ts';
import { type KubernetesObject, metadataOf } from '../cache/object.ts';
import { whenAborted } from '../watch/abort.ts';
import { type Clock, systemClock } from '../watch/clock.ts';
import { callable, checkOptions, isWatchError, WatchError, wholeNumber } from '../watch/errors.ts';
import { Controller } from '../workqueue/controller.ts';
import type {
  ControllerHandler,
  ControllerInformer,
  ControllerSource,
  ReconcileContext,
} from '../workqueue/controller-options.ts';
import { WorkQueue } from '../workqueue/queue.ts';
import { type KindCache, type KindCaches, textOf } from './caches.ts';
import type { KindName } from './kinds.ts';
import type {
  ChangeType,
  Log,
  OperatorControllerOptions,
  OperatorFailure,
  ReconcileOutcome,
  ReconcileRequest,
  SourceOptions,
  When,
} from './operator-options.ts';
import { createRequest } from './request.ts';

/** What a controller needs of its operator. */
export interface OperatorDeps {
  readonly name: string;
  readonly namespace: string | undefined;
  readonly clock: Clock | undefined;
  readonly log: Log;
  readonly caches: KindCaches;
  readonly tell: (error: unknown, failure: OperatorFailure) => void;
}

const NAMES = [
  'name',
  'for',
  'owns',
  'watches',
  'reads',
  'reconcile',
  'finalizer',
  'concurrency',
  'maxRetries',
  'rateLimiter',
  'reconcileTimeoutMs',
  'resyncMs',
] as const;

const RESYNC_MS = 36_000_000;

type AnySource = SourceOptions<KubernetesObject>;

/** What a kind is to a controller. */
interface Use {
  readonly text: string;
  readonly when?: When | undefined;
  readonly keysOf?: ((object: KubernetesObject) => readonly string[]) | undefined;
}

export class OperatorController<T extends object> {
  readonly name: string;
  readonly #options: OperatorControllerOptions<T>;
  readonly #deps: OperatorDeps;
  readonly #for: Use;
  readonly #owns: readonly Use[];
  readonly #watches: readonly Use[];
  readonly #reads: readonly Use[];
  /** The keys that are being reconciled. */
  readonly running: Set<string> = new Set();

  constructor(options: OperatorControllerOptions<T>, deps: OperatorDeps) {
    const { for: own, owns = [], watches = [], reads = [], reconcile } = checkOptions(options, NAMES);
    callable('reconcile', reconcile ?? null);
    wholeNumber('reconcileTimeoutMs', options.reconcileTimeoutMs ?? 0);
    this.#options = options;
    this.#deps = deps;
    const use = (given: unknown): Use => this.#declare(toSource(given));
    this.#for = use(own);
    this.#owns = owns.map((each) => ({ ...use(each), keysOf: (object) => this.#ownersOf(object) }));
    this.#watches = watches.map(({ keysOf, ...source }) => ({
      ...use(source),
      keysOf: (object) => (keysOf as (object: KubernetesObject, caches: unknown) => readonly string[])(object, deps.caches),
    }));
    this.#reads = reads.map(use);
    this.name = options.name ?? this.#for.text.split(/[./ ]/)[0] ?? '';
  }

  /** Works until the signal aborts. May be called again after that. */
  async run(signal: AbortSignal): Promise<void> {
    const { caches, clock } = this.#deps;
    const uses = [this.#for, ...this.#owns, ...this.#watches, ...this.#reads];
    const found = await untilEnd(Promise.all(uses.map(({ text }) => caches.found(text))), signal);
    if (!found) return;
    const synced = await untilEnd(
      Promise.all(found.map(({ informer }) => informer.synced)).then(() => true),
      signal,
    );
    if (!synced) return;
    const { rateLimiter, concurrency, maxRetries, resyncMs = RESYNC_MS } = this.#options;
    const sources: ControllerSource<KubernetesObject>[] = uses.slice(0, uses.length - this.#reads.length).map((use, at) => ({
      informer: filtered((found[at] as KindCache).informer, use.when),
      keysOf: use.keysOf,
      resyncMs: at === 0 ? resyncMs : 0,
    }));
    const controller = new Controller<KubernetesObject>({
      informers: sources,
      queue: new WorkQueue({ name: this.name, clock, rateLimiter }),
      concurrency,
      maxRetries,
      syncTimeoutMs: 0,
      reconcile: (key, context) => this.#reconcile(key, context),
      onError: (error, { during, key, attempt, dropped }) => {
        if (during === 'reconcile' && !dropped && isConflict(error)) return;
        this.#deps.tell(error, { during, controller: this.name, key, attempt, dropped });
      },
    });
    await controller.run(signal);
  }

  #declare({ kind, when, indexers }: AnySource): Use {
    return { text: this.#deps.caches.declare(kind, indexers), when: callable('when', when) };
  }

  /** The key of the owner that controls an object, if it is of the kind that is reconciled. */
  #ownersOf(object: KubernetesObject): readonly string[] {
    const own = this.#deps.caches.find(kindOf(this.#options.for)) as KindCache;
    const { ownerReferences = [], namespace } = metadataOf(object);
    const owner = (ownerReferences as readonly Partial<OwnerReference>[]).find(({ controller }) => controller);
    if (!owner?.name || owner.kind !== own.kind || groupOf(owner.apiVersion) !== own.group) return [];
    const key = own.namespaced ? `${namespace}/${owner.name}` : owner.name;
    const cached = own.informer.store.get(key);
    return cached && metadataOf(cached).uid !== owner.uid ? [] : [key];
  }

  async #reconcile(key: string, context: ReconcileContext): Promise<ReconcileOutcome | undefined> {
    const { reconcileTimeoutMs = 0 } = this.#options;
    const ended = new AbortController();
    const leave = whenAborted(context.signal, (reason) => ended.abort(reason));
    const late = new WatchError('TIMEOUT', `${this.name}: ${key} took longer than ${reconcileTimeoutMs} ms`, {
      limit: reconcileTimeoutMs,
    });
    const clock = this.#deps.clock ?? systemClock;
    const cancel = reconcileTimeoutMs > 0 ? clock.schedule(reconcileTimeoutMs, () => ended.abort(late)) : () => {};
    this.running.add(key);
    try {
      const request = createRequest<T>(
        { ...this.#deps, controller: this.name, for: kindOf(this.#options.for), owns: this.#owns.map(({ text }) => text) },
        key,
        { ...context, signal: ended.signal },
      );
      const outcome = await this.#step(request);
      if (ended.signal.reason === late) throw late;
      return outcome;
    } finally {
      cancel();
      leave();
      this.running.delete(key);
    }
  }

  async #step(request: ReconcileRequest<T>): Promise<ReconcileOutcome | undefined> {
    const { finalizer, reconcile } = this.#options;
    const { object } = request;
    if (!finalizer || object === undefined) return (await reconcile(request)) ?? undefined;
    const { name, finalize } = finalizer;
    const { deletionTimestamp, finalizers = [] } = metadataOf(object);
    const resource = request.resource(kindOf(this.#options.for));
    const write = (list: readonly string[]): Promise<T> =>
      resource.update({ ...object, metadata: { ...metadataOf(object), finalizers: list } } as T);
    if (deletionTimestamp === undefined) {
      const kept = finalizers.includes(name) ? object : await write([...finalizers, name]);
      return (await reconcile({ ...request, object: kept })) ?? undefined;
    }
    if (!finalizers.includes(name)) return undefined;
    const outcome = (await finalize({ ...request, object })) ?? undefined;
    if (outcome?.requeueAfterMs === undefined) await write(finalizers.filter((each) => each !== name));
    return outcome;
  }
}

interface OwnerReference {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
  readonly controller: boolean;
}

const groupOf = (apiVersion: string = ''): string => apiVersion.split('/').slice(0, -1).join('/');

const isConflict = (error: unknown): boolean => isWatchError(error, 'REFUSED') && error.status?.code === 409;

/** An informer of which only those changes are seen that `when` says count. */
function filtered(informer: Informer<KubernetesObject>, when: When = () => true): ControllerInformer<KubernetesObject> {
  return {
    store: informer.store,
    get state() {
      return informer.state;
    },
    atLeast: (version, options) => informer.atLeast(version, options),
    addHandler({ onAdd, onUpdate, onDelete }: ControllerHandler<KubernetesObject>, options) {
      const on = (event: ChangeType, old: KubernetesObject | undefined, object: KubernetesObject | undefined): boolean =>
        when(old, object, event);
      return informer.addHandler(
        {
          onAdd: (object) => on('ADDED', undefined, object) && onAdd(object),
          onUpdate: (old, object) => on('MODIFIED', old, object) && onUpdate(old, object),
          onDelete: (object) => on('DELETED', object, undefined) && onDelete(object),
        },
        options,
      );
    },
  };
}

/** Resolves like the promise, or with undefined as soon as the signal aborts. */
function untilEnd<R>(promise: Promise<R>, signal: AbortSignal): Promise<R | undefined> {
  return new Promise((resolve, reject) => {
    const leave = whenAborted(signal, () => resolve(undefined));
    promise.then(resolve, (error: unknown) => (signal.aborted ? resolve(undefined) : reject(error))).finally(leave);
  });
}

function toSource(given: unknown): AnySource {
  const isName = typeof given === 'string' || !given || typeof given !== 'object' || 'plural' in given || 'apiVersion' in given;
  return isName ? { kind: given as KindName } : checkOptions(given as AnySource, ['kind', 'when', 'indexers']);
}

function kindOf<T extends object>(given: KindName<T> | SourceOptions<T>): KindName<T> {
  return toSource(given).kind as KindName<T>;
}

export { textOf };
