/**
 * One controller of an operator. Its kinds become sources of a `Controller` of `watchmux/workqueue`; each leadership gets a new
 * one, because that runs only once, on informers that go on.
 *
 *     for: its own key ------------------------.
 *     owns: the key of the controlling owner --+--> when(old, object, event)? ---> Controller ---> reconcile(request)
 *     watches: keysOf(object) -----------------'                                    ^    |
 *     reads: only waited for                       conflict: again, quietly --------+----+--> failed: reported
 *                                                  too late: `signal` aborts -------'
 *
 * Invariants
 * - **Serial**, as in the queue: a key runs once at a time, even if a reconcile goes on after its timeout, and it does not run
 *   before the caches have what its last run wrote.
 * - Nothing is reconciled before the caches of all kinds that the controller names are complete, and have what a former leader wrote.
 *   While one of them, other than its own, is away, keys that are due are held; once it is back, these and those that failed run.
 * - An error of user code affects one key (`reconcile`) or one change (`when`, `keysOf`), and is reported.
 */

import { type KubernetesObject, metadataOf, splitKey } from '../cache/object.ts';
import type { Indexers } from '../cache/store/indexer.ts';
import { faultOfKey } from '../selectors/syntax.ts';
import { isAbortOf, untilAborted, whenAborted } from '../watch/abort.ts';
import { type Clock, systemClock } from '../watch/clock.ts';
import { callable, checkOptions, checkText, invalid, isRecord, requireMethod, WatchError, wholeNumber } from '../watch/errors.ts';
import { Controller, requeueAfterOf } from '../workqueue/controller.ts';
import type {
  ControllerFailure,
  ControllerInformer,
  ControllerSource,
  ReconcileContext,
} from '../workqueue/controller-options.ts';
import { WorkQueue } from '../workqueue/queue.ts';
import { defaultRateLimiter, type RateLimiter } from '../workqueue/rate-limiters.ts';
import type { ControllerCaches } from './caches.ts';
import { ensureFinalizer, removeFinalizer } from './finalizers.ts';
import type { KindCache } from './kind-cache.ts';
import { controllerNameOf, isKindName, type KindName } from './kinds.ts';
import type {
  ChangeType,
  ControllerState,
  OperatorControllerOptions,
  ReconcileOutcome,
  ReconcileRequest,
  ReconcileResultName,
  SourceOptions,
  WatchedOptions,
  When,
} from './operator-options.ts';
import { controllerOf, ownersOf } from './owners.ts';
import { answerOf, COLLECTORS, isDeleting, isLeftToCollector } from './predicates.ts';
import { askedDelayMs, isConflict, isFieldConflict } from './refusals.ts';
import { Begun, createRequest, type OperatorDeps, type RequestDeps } from './request.ts';

const NAMES = [
  ...(['name', 'for', 'owns', 'watches', 'reads', 'reconcile', 'finalizer'] as const),
  ...(['concurrency', 'maxRetries', 'rateLimiter', 'reconcileTimeoutMs', 'resyncMs'] as const),
] as const;

const RESYNC_MS = 36_000_000;

/** After this many consecutive conflicts of a key, one is reported: so many are not an accident. */
const TOLD_RACES = 10;

/** A key that succeeds this often within a minute, without asking to run again, changes what it reads. One is named a minute. */
const HOT_RUNS = 200;
const MINUTE_MS = 60_000;

type AnySource = SourceOptions<KubernetesObject>;
type Object = KubernetesObject;

/** A kind whose changes count, and the keys they lead to. */
interface Use {
  readonly text: string;
  readonly when?: When | undefined;
  readonly keysOf?: ((object: Object) => readonly string[]) | undefined;
}

/** One leadership's work. */
interface Work {
  readonly queue: WorkQueue<string>;
  /** The handlers: whether they have changes not yet in the queue, and whether they have had the first ones. */
  readonly handlers: { readonly queued: number; readonly hasSynced: boolean }[];
  readonly request: RequestDeps;
  /** The delays of keys that ask to run again at once. */
  readonly hasty: RateLimiter;
  /** Its kinds. */
  readonly found: readonly KindCache[];
  /** The keys that were due while a kind was away. */
  readonly held: Set<string>;
}

export class OperatorController<T extends KubernetesObject> {
  readonly name: string;
  readonly #options: OperatorControllerOptions<T>;
  readonly #deps: OperatorDeps;
  readonly #clock: Clock;
  readonly #for: Use;
  readonly #owns: readonly Use[];
  readonly #watches: readonly (Omit<Use, 'keysOf'> & Pick<WatchedOptions<Object>, 'keysOf'>)[];
  readonly #reads: readonly Use[];
  readonly #caches: ControllerCaches;
  readonly #reconciling: Set<string> = new Set();
  /** Failures that were reported before they were thrown. */
  readonly #told: WeakSet<object> = new WeakSet();
  /** By key: the number of consecutive conflicts. */
  readonly #races: Map<string, number> = new Map();
  /** By key: how long the server asks to wait after the failure that is being handled. */
  readonly #askedMs: Map<unknown, number> = new Map();
  /** By key: the number of successes within this minute. */
  readonly #successes: Map<string, number> = new Map();
  #minute: number = 0;
  #namedHot: boolean = false;
  #work: Work | undefined;

  /** @throws {WatchError} INVALID_ARGUMENT for an invalid or unknown option. */
  constructor(options: OperatorControllerOptions<T>, deps: OperatorDeps) {
    checkController(options);
    const { for: own, owns = [], watches = [], reads = [], name } = options;
    this.#options = options;
    this.#deps = deps;
    this.#clock = deps.clock ?? systemClock;
    const use = (given: unknown): Use => this.#declare(toSource(given));
    this.#for = withFinalizer(use(own), options.finalizer?.name);
    this.#owns = owns.map(use);
    this.#watches = (watches as readonly WatchedOptions<Object>[]).map(({ keysOf, ...source }) => ({ ...use(source), keysOf }));
    this.#reads = reads.map(use);
    this.name = checkText('name', name ?? controllerNameOf(kindOf(own)));
    this.#caches = deps.caches.only(this.#uses.map(({ text }) => text));
  }

  get state(): ControllerState {
    const { queue, handlers, found } = this.#work ?? {};
    const hasAll = found?.every(({ isAway }) => !isAway) ?? false;
    return {
      name: this.name,
      concurrency: this.#options.concurrency ?? 1,
      working: hasAll && (handlers?.every(({ hasSynced }) => hasSynced) ?? false),
      queued: queue?.size ?? 0,
      delayed: queue?.delayed ?? 0,
      inWork: queue?.inWork ?? 0,
    };
  }

  /** Whether it works, and has done everything that is due; delayed keys are not due yet. */
  get idle(): boolean {
    const { working, queued, inWork } = this.state;
    return working && queued === 0 && inWork === 0 && (this.#work?.handlers.every((each) => each.queued === 0) ?? false);
  }

  /** The keys whose reconcile has not returned. */
  get reconciling(): readonly string[] {
    return [...this.#reconciling];
  }

  get #uses(): readonly Pick<Use, 'text'>[] {
    return [this.#for, ...this.#owns, ...this.#watches, ...this.#reads];
  }

  /** Works until the signal aborts, and resolves when running reconciles have ended. May be called again after that. */
  async run(signal: AbortSignal): Promise<void> {
    const { caches, changed } = this.#deps;
    const synced = this.#uses.map(async ({ text }) => {
      const cache = await caches.found(text);
      await cache.complete;
      return cache;
    });
    const found = await untilAborted(Promise.all(synced), signal).catch((error: unknown) => {
      if (!signal.aborted) throw error;
    });
    if (!found) return;
    const { queue, limiter } = this.#createQueue();
    const [own] = found as [KindCache];
    const owned = new Set(found.slice(1, 1 + this.#owns.length));
    const request: RequestDeps = {
      ...{ operator: this.#deps, controller: this.name, clock: this.#clock, caches: this.#caches },
      ...{ own, owns: (cache) => owned.has(cache) },
    };
    const hasty = defaultRateLimiter({ clock: this.#clock });
    const work: Work = { queue, handlers: [], request, hasty, found, held: new Set() };
    const { concurrency, maxRetries } = this.#options;
    const controller = new Controller<Object>({
      informers: this.#sources(found, work),
      ...{ queue, concurrency, maxRetries },
      syncTimeoutMs: 0,
      reconcile: (key, context) => this.#attempt(key, context, work),
      onError: (error, failure) => this.#failed(error, failure),
    });
    const turned = (): void => {
      if (found.every(({ isAway }) => !isAway)) takeAtOnce(work, limiter.failed);
      changed();
    };
    for (const { listeners } of found) listeners.add(turned);
    this.#work = work;
    await controller.run(signal).finally(() => {
      for (const { listeners } of found) listeners.delete(turned);
      limiter.end();
    });
    this.#work = undefined;
    this.#races.clear();
    changed();
  }

  /**
   * Queues a key. Returns whether it will run: a controller that does not work has no queue, and begins with all objects.
   *
   * @throws {WatchError} INVALID_ARGUMENT for a key of which its cache can have no object.
   */
  enqueue(key: string): boolean {
    checkText('key', key);
    if (this.#work === undefined || this.#work.queue.shuttingDown) return false;
    const expected = this.#expectedOf(key, this.#work.request.own);
    if (expected) throw invalid('key', key, expected);
    this.#work.queue.add(key);
    return true;
  }

  /** Leaves no timer, even if a reconcile does not end. */
  abandon(): void {
    this.#work?.queue.shutDown();
  }

  #createQueue(): { readonly queue: WorkQueue<string>; readonly limiter: LimiterOfLeadership } {
    const { observer, changed } = this.#deps;
    const clock = this.#clock;
    const limiter = limiterOfLeadership(this.#options.rateLimiter ?? defaultRateLimiter({ clock }), this.#askedMs);
    const queue = new WorkQueue<string>({
      ...{ name: this.name, clock, rateLimiter: limiter },
      onMetric: (metric) => {
        observer.onQueueMetric(metric);
        changed();
      },
    });
    return { queue, limiter };
  }

  #declare({ kind, when, indexers }: AnySource): Use {
    callable('when', when);
    return { text: this.#deps.caches.declare(kind, indexers as Indexers<Object> | undefined), when };
  }

  /** The sources of keys. `found` are the caches of {@link #uses}. */
  #sources(found: readonly KindCache[], work: Work): readonly ControllerSource<Object>[] {
    const { resyncMs = RESYNC_MS } = this.#options;
    const { own } = work.request;
    // Its type changes if the kind was deleted and has come back with another scope.
    const keysOfOwner = (object: Object): readonly string[] => ownersOf(own.type)(object);
    /** By uid: objects of a deleted owner may still exist, and do not belong to its successor. */
    const isCurrent = (object: Object | undefined): boolean =>
      object !== undefined &&
      keysOfOwner(object).some((key) => {
        const owner = own.informer.store.get(key);
        return owner === undefined || metadataOf(owner).uid === controllerOf(object)?.uid;
      });
    const uses: Use[] = [
      this.#for,
      ...this.#owns.map(({ text, when }): Use => {
        const counts: When = (old, object, event) =>
          // A deleted object may have been in the way of the owner's own.
          (event === 'DELETED' || isCurrent(old) || isCurrent(object)) && (when ? answerOf(when, old, object, event) : true);
        return { text, when: counts, keysOf: keysOfOwner };
      }),
      ...this.#watches.map(({ keysOf, ...use }): Use => {
        return { ...use, keysOf: (object) => this.#usable(keysOf(object, this.#caches), own, use.text) };
      }),
    ];
    return uses.map(({ when, keysOf }, at) => ({
      informer: this.#filtered(found[at] as KindCache, when, work),
      keysOf,
      resyncMs: at === 0 ? resyncMs : 0,
    }));
  }

  /** Reports keys of which the controller's cache can have no object: a reconcile would take it for deleted. Returns the others. */
  #usable(keys: readonly string[], own: KindCache, kind: string): readonly string[] {
    if (!Array.isArray(keys)) return keys; // which is reported for all controllers
    return keys.filter((key: unknown) => {
      const expected = this.#expectedOf(key, own);
      if (expected) this.#deps.tell(invalid('keysOf', key, expected), { during: 'event', controller: this.name, kind });
      return !expected;
    });
  }

  /** Undefined for a key that the cache may have. */
  #expectedOf(key: unknown, { type, text }: KindCache): string | undefined {
    const { namespace } = this.#deps;
    const parts = typeof key === 'string' ? key.split('/') : [];
    if (parts.length !== (type.namespaced ? 2 : 1) || !parts.every(Boolean)) {
      return type.namespaced
        ? `keys "namespace/name", because ${text} has namespaces`
        : `names without a namespace, because ${text} has none`;
    }
    const isSeen = !type.namespaced || namespace === undefined || parts[0] === namespace;
    return isSeen ? undefined : `keys of the namespace ${namespace}, as this operator sees no other`;
  }

  /** An informer that shows only the changes that `when` accepts. */
  #filtered({ informer, text }: KindCache, when: When = () => true, { handlers }: Work): ControllerInformer<Object> {
    const { tell, changed } = this.#deps;
    const counts = (event: ChangeType, old: Object | undefined, object: Object | undefined): boolean => {
      changed();
      try {
        return answerOf(when, old, object, event);
      } catch (error) {
        tell(error, { during: 'event', controller: this.name, kind: text });
        return true; // an unnecessary run does no harm
      }
    };
    return {
      store: informer.store,
      atLeast: (version, options) => informer.atLeast(version, options),
      addHandler: ({ onAdd, onUpdate, onDelete }, options) => {
        const registration = informer.addHandler(
          {
            onAdd: (object) => counts('ADDED', undefined, object) && onAdd(object),
            onUpdate: (old, object) => {
              const isSame = metadataOf(old).uid === metadataOf(object).uid;
              const isNews = isSame
                ? counts('MODIFIED', old, object)
                : counts('DELETED', old, undefined) || counts('ADDED', undefined, object);
              if (isNews) onUpdate(old, object);
            },
            onDelete: (object) => counts('DELETED', object, undefined) && onDelete(object),
          },
          options,
        );
        handlers.push(registration);
        registration.synced.then(changed, changed);
        return registration;
      },
    };
  }

  async #attempt(key: string, context: ReconcileContext, work: Work): Promise<ReconcileOutcome | undefined> {
    const { telemetry } = this.#deps;
    // While its own kind is away, its objects are reconciled as deleted.
    if (work.found.some((each) => each.isAway && each !== work.request.own)) {
      work.held.add(key);
      return undefined;
    }
    if (telemetry === undefined) return this.#run(key, context, work);
    const start = { controller: this.name, ...splitKey(key), attempt: context.attempt };
    return telemetry.reconcile(start, (tell) => this.#run(key, context, work, tell));
  }

  /** One run of a key, within its time limit. */
  async #run(
    ...[key, context, work, tell]: [string, ReconcileContext, Work, tell?: (result: ReconcileResultName | undefined) => void]
  ): Promise<ReconcileOutcome | undefined> {
    const { observer } = this.#deps;
    const { maxRetries = Infinity } = this.#options;
    const { signal, attempt } = context;
    const time = this.#limit(key, context);
    const begun = new Begun(time.signal);
    const startedMs = this.#clock.now();
    let result: ReconcileResultName | undefined = 'error';
    this.#reconciling.add(key);
    observer.onReconcileStart(this.name);
    try {
      const asked = await this.#step(createRequest<T>(work.request, key, { ...context, signal: time.signal, begun }));
      if (time.isOver()) throw time.signal.reason;
      const requeueAfterMs = delayOf(key, asked, work.hasty);
      result = requeueAfterMs === undefined ? 'success' : 'requeue_after';
      if (requeueAfterMs === undefined) this.#succeeded(key);
      return { requeueAfterMs };
    } catch (error) {
      if (time.isOver()) throw time.signal.reason;
      if (isAbortOf(signal, error)) {
        result = undefined;
        throw signal.reason;
      }
      if (isRace(error)) result = 'requeue';
      this.#askedMs.set(key, askedDelayMs(error));
      throw error;
    } finally {
      begun.end((error) => this.#deps.tell(error, { during: 'reconcile', controller: this.name, key, attempt, dropped: false }));
      time.end();
      this.#reconciling.delete(key);
      if (result === 'requeue') this.#races.set(key, (this.#races.get(key) ?? 0) + 1);
      else this.#races.delete(key);
      const dropped = (result === 'error' || result === 'requeue') && attempt > maxRetries && !signal.aborted;
      const durationMs = this.#clock.now() - startedMs;
      observer.onReconcileEnd({ controller: this.name, result, durationMs, timedOut: time.isOver(), dropped });
      tell?.(result);
    }
  }

  /** Names a key that runs over and over. */
  #succeeded(key: string): void {
    const minute = Math.floor(this.#clock.now() / MINUTE_MS);
    if (minute !== this.#minute) {
      this.#minute = minute;
      this.#namedHot = false;
      this.#successes.clear();
    }
    const runs = (this.#successes.get(key) ?? 0) + 1;
    this.#successes.set(key, runs);
    if (runs < HOT_RUNS || this.#namedHot) return;
    this.#namedHot = true;
    this.#deps.log.warn(
      `${this.name}: ${key} was reconciled ${HOT_RUNS} times within a minute: it changes what it reads, each time`,
    );
  }

  /**
   * A signal that also aborts when a reconcile takes too long. That is reported at once, because the reconcile may never end.
   */
  #limit(key: string, { signal, attempt }: ReconcileContext): Limit {
    const { reconcileTimeoutMs = 0 } = this.#options;
    const ended = new AbortController();
    let isOver = false;
    let cancel = (): void => {};
    const abort = (): void => {
      if (ended.signal.aborted) return;
      isOver = true;
      const error = new WatchError('TIMEOUT', `${this.name}: ${key} took longer than ${reconcileTimeoutMs} ms`, {
        limit: reconcileTimeoutMs,
      });
      this.#failed(error, { during: 'reconcile', key, attempt, dropped: false });
      this.#told.add(error);
      ended.abort(error);
    };
    if (reconcileTimeoutMs > 0) cancel = this.#clock.schedule(reconcileTimeoutMs, abort);
    // It may never end, and no timer may be left then.
    const leave = whenAborted(signal, (reason) => {
      cancel();
      ended.abort(reason);
    });
    const end = (): void => {
      leave();
      cancel();
      // Anything it has left running must not write when the key runs again, or when another instance leads.
      ended.abort(new WatchError('CLOSED', `${this.name}: the reconcile of ${key} has ended, and this was not awaited`));
    };
    return { signal: ended.signal, isOver: () => isOver, end };
  }

  /** Reconciles, or finalizes. Resolves with the time after which the key asks to run again. */
  async #step(request: ReconcileRequest<T>): Promise<number | undefined> {
    const { finalizer } = this.#options;
    const { object, signal } = request;
    if (this.#owns.length > 0 && isLeftToCollector(object)) return undefined; // what it would apply is deleted, or given up
    if (!finalizer || !object) return requeueAfterOf(await this.#options.reconcile(request));
    const { name } = finalizer;
    const resource = request.resource<T>(kindOf(this.#options.for));
    if (!isDeleting(object)) {
      const { result, object: held = object } = await ensureFinalizer(resource, object, name, { signal });
      // By now it is being deleted, or gone: the cache will show it.
      if (result === 'deleting' || result === 'gone') return undefined;
      return requeueAfterOf(await this.#options.reconcile({ ...request, object: held }));
    }
    if (!metadataOf(object).finalizers?.includes(name)) return undefined; // only others hold it
    const asked = requeueAfterOf(await finalizer.finalize({ ...request, object }));
    signal.throwIfAborted(); // it may have given up
    if (asked === undefined) await removeFinalizer(resource, object, name, { signal });
    return asked;
  }

  #failed(error: unknown, { during, key, attempt, dropped }: ControllerFailure): void {
    const isTold = typeof error === 'object' && error !== null && this.#told.has(error);
    const isQuiet = isRace(error) && this.#races.get(key ?? '') !== TOLD_RACES;
    if (during === 'reconcile' && !dropped && (isTold || isQuiet)) return;
    if (dropped) this.#races.delete(key ?? '');
    this.#deps.tell(error, { during, controller: this.name, key, attempt, dropped });
  }
}

/** The time limit of one reconcile. */
interface Limit {
  readonly signal: AbortSignal;
  readonly isOver: () => boolean;
  readonly end: () => void;
}

/**
 * Checks all options of a controller but the kinds themselves.
 *
 * @throws {WatchError} INVALID_ARGUMENT for an invalid or unknown option.
 */
export function checkController<T extends KubernetesObject>(options: OperatorControllerOptions<T>): void {
  const { reconcile, finalizer, concurrency, maxRetries = Infinity, ...more } = checkOptions(options, NAMES);
  const { rateLimiter, reconcileTimeoutMs, resyncMs, watches = [] } = more;
  for (const name of ['owns', 'watches', 'reads'] as const) {
    if (!Array.isArray(more[name] ?? [])) throw invalid(name, more[name], 'a list');
  }
  for (const [at, watched] of (watches as readonly WatchedOptions<Object>[]).entries()) {
    if (!isRecord(watched)) throw invalid(`watches[${at}]`, watched, '{ kind, keysOf }');
    if (!callable('keysOf', watched.keysOf)) throw invalid('keysOf', watched.keysOf, 'a function');
  }
  if (!callable('reconcile', reconcile)) throw invalid('reconcile', reconcile, 'a function');
  if (finalizer !== undefined) {
    if (!isRecord(finalizer)) throw invalid('finalizer', finalizer, '{ name, finalize }');
    const called = checkText('finalizer.name', checkOptions(finalizer, ['name', 'finalize']).name);
    if (faultOfKey(called) || COLLECTORS.includes(called))
      throw invalid('finalizer.name', called, 'a name of your own, such as example.com/website');
    if (!callable('finalizer.finalize', finalizer.finalize)) throw invalid('finalizer.finalize', undefined, 'a function');
  }
  if (rateLimiter) requireMethod('rateLimiter', rateLimiter, 'when', 'a RateLimiter');
  if (concurrency !== undefined) wholeNumber('concurrency', concurrency, 1);
  if (maxRetries !== Infinity) wholeNumber('maxRetries', maxRetries);
  if (reconcileTimeoutMs !== undefined) wholeNumber('reconcileTimeoutMs', reconcileTimeoutMs);
  if (resyncMs !== undefined) wholeNumber('resyncMs', resyncMs);
}

/** The deletion of an object with the finalizer always counts, whatever `when` says: nobody else removes the finalizer. */
function withFinalizer({ when, ...use }: Use, name: string | undefined): Use {
  if (when === undefined || name === undefined) return { ...use, when };
  const isHeld = (object: Object | undefined): boolean =>
    object !== undefined && isDeleting(object) && (metadataOf(object).finalizers?.includes(name) ?? false);
  return { ...use, when: (old, object, event) => isHeld(object) || answerOf(when, old, object, event) };
}

/** A kind is back: the keys that waited for it, or failed without it, do not wait any longer. */
function takeAtOnce({ queue, held }: Work, failed: Iterable<string>): void {
  const keys = new Set([...held, ...failed]);
  held.clear();
  for (const key of keys) {
    queue.cancel(key);
    queue.forget(key);
    queue.add(key);
  }
}

interface LimiterOfLeadership extends RateLimiter {
  /** The keys that have failed since they last succeeded. */
  readonly failed: Iterable<string>;
  readonly end: () => void;
}

/**
 * A limiter that respects the delay a server asks for. It serves one leadership: at its end, it forgets the keys that the queue
 * has not.
 */
function limiterOfLeadership(limiter: RateLimiter, askedMs: Map<unknown, number>): LimiterOfLeadership {
  const failed = new Set<string>();
  return {
    failed,
    when: (key) => {
      failed.add(key as string);
      const leastMs = askedMs.get(key) ?? 0;
      askedMs.delete(key);
      return Math.max(leastMs, limiter.when(key));
    },
    forget: (key) => {
      failed.delete(key as string);
      askedMs.delete(key);
      limiter.forget(key);
    },
    requeues: (key) => limiter.requeues(key),
    end: () => {
      askedMs.clear();
      for (const key of failed) limiter.forget(key);
    },
  };
}

/** When a key runs again. "At once" backs off as after a failure, so that other keys get their turn. */
function delayOf(key: string, asked: number | undefined, hasty: RateLimiter): number | undefined {
  if (asked !== undefined && !Number.isFinite(asked)) {
    throw invalid('requeueAfterMs', asked, 'a finite number of milliseconds');
  }
  if (asked !== undefined && asked < 1) return hasty.when(key);
  hasty.forget(key);
  return asked;
}

/** Whether an error is a conflict with another writer, which is over once the caches have the newer state. */
function isRace(error: unknown): boolean {
  return isConflict(error) && !isFieldConflict(error);
}

function toSource(given: unknown): AnySource {
  return isKindName(given) ? { kind: given } : checkOptions(given as AnySource, ['kind', 'when', 'indexers']);
}

function kindOf<T extends object>(given: KindName<T> | SourceOptions<T>): KindName<T> {
  return toSource(given).kind as KindName<T>;
}
