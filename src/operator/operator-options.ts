import type { InformerStore } from '../cache/informer/informer-options.ts';
import type { KubernetesObject } from '../cache/object.ts';
import type { ResourceClient } from '../cache/resource-client.ts';
import type { IndexFunction } from '../cache/store/indexer.ts';
import type { Clock } from '../watch/clock.ts';
import type { CHANGES } from '../watch/event.ts';
import type { Telemetry } from '../watch/telemetry.ts';
import type { LeaderElectorOptions } from '../workqueue/leader-elector.ts';
import type { WorkQueueMetric } from '../workqueue/meter.ts';
import type { RateLimiter } from '../workqueue/rate-limiters.ts';
import type { KindName, ResourceSource } from './kinds.ts';
import type { WebhookServer } from './webhooks/webhook-server.ts';
import type { ApplyConfiguration, ApplyOptions, Mutable } from './writes.ts';

/** Where an operator logs. `console` is one. */
export interface Log {
  debug(text: string): void;
  info(text: string): void;
  warn(text: string): void;
  error(text: string): void;
}

/** What happened to an object. A resync is MODIFIED, with the same object twice. */
export type ChangeType = (typeof CHANGES)[number];

/** Says whether a change is worth a reconcile. `old` is undefined for ADDED, `object` for DELETED. Upstream: `predicate.Predicate`. */
export type When<T extends object = KubernetesObject> = {
  when(old: T | undefined, object: T | undefined, event: ChangeType): boolean;
}['when']; // a method, whose parameters are bivariant: so a list may have sources of several types

/** The operator's caches, as a controller reads them. */
export interface Caches {
  /**
   * The object with this key in the cache; undefined if there is none. Shared: do not change it.
   *
   * @throws {WatchError} INVALID_ARGUMENT for a kind that the controller is not for, and does not own, watch or read.
   */
  get<O extends object = KubernetesObject>(kind: KindName<O>, key: string): O | undefined;
  /** All cached objects of a kind, with the indexes of its options. */
  store<O extends object = KubernetesObject>(kind: KindName<O>): InformerStore<O>;
}

/** `T`, but not inferred from here, because `when` may know less about the objects than the kind. For TypeScript before 5.4. */
type Given<T> = [T & KubernetesObject][T extends unknown ? 0 : never];

/** A kind, and which of its changes count. */
export interface SourceOptions<T> {
  readonly kind: KindName<T>;
  /** Which changes count. Default: all. */
  readonly when?: When<Given<T>> | undefined;
  /**
   * Indexes of the kind's store. All controllers share them, so no two may give one name to different functions. If one throws
   * for an object, that is reported as a failure of the `source`, and the object is not found by that index.
   */
  readonly indexers?:
    | Readonly<Record<string, { valuesOf(object: T & KubernetesObject): ReturnType<IndexFunction<T>> }['valuesOf']>>
    | undefined;
}

/** A kind whose changes concern other objects, and which. */
export interface WatchedOptions<T> extends SourceOptions<T> {
  /**
   * The keys to reconcile when this object changes; for a change, those of both states: `namespace/name`, or `name` if the kind
   * that the controller is for has no namespaces. If it throws, or returns other keys or those of a namespace that the operator does not
   * watch, that is reported.
   */
  keysOf(object: T & KubernetesObject, caches: Caches): readonly string[];
}

/** What a reconcile gets. Its functions may be taken out of it: `({ object, apply }) => ...`. */
export interface ReconcileRequest<T extends object = KubernetesObject> extends Caches {
  /** `namespace/name`, or `name` if it is in no namespace. */
  readonly key: string;
  /** Empty if it is in no namespace. */
  readonly namespace: string;
  readonly name: string;
  /** The object from the cache; undefined: it is gone. Shared: do not change it. */
  readonly object: T | undefined;
  /** 1 for the first try since the key last succeeded, 2 for the second, and so on. */
  readonly attempt: number;
  /**
   * Aborts when the operator stops or no longer leads, after `reconcileTimeoutMs`, and when the reconcile has returned:
   * requests that it has not awaited and watches that it has not closed then end.
   */
  readonly signal: AbortSignal;
  /** Writes with the controller's name and the key before each text. */
  readonly log: Log;
  /** The operator's time of day, in ms since 1970, which tests can move: for schedules, and for {@link setCondition}. */
  now(): number;
  /** The cached objects of a kind that the object controls: by uid, so not those of an earlier object of the same name. */
  owned<O extends object = KubernetesObject>(kind: KindName<O>): readonly O[];
  /**
   * Reads and writes the server's own objects. Requests end with `signal`. The key runs again only once the caches have what was
   * written, and no longer have what was deleted, or after ten seconds.
   */
  resource<O extends object = KubernetesObject>(kind: KindName<O>): ResourceClient<O>;
  /**
   * Server-side apply of any part of an object. Fills in apiVersion, kind, and the operator's name as field manager; for kinds that the
   * controller `owns` also the object's namespace, and its name if there is none, and the owner reference. Objects of other
   * kinds must have their own name and namespace.
   *
   * @throws {WatchError} (rejects) INVALID_ARGUMENT, as for `setOwner`, if another owner controls the object: then nothing is
   * written. REFUSED if the server refuses; with 409 if the object to be owned was created or changed, and the cache does not
   * have that yet.
   */
  apply<O extends object = KubernetesObject>(
    kind: KindName<O>,
    object: ApplyConfiguration<O & KubernetesObject>,
    options?: ApplyOptions,
  ): Promise<O>;
  /**
   * Lets `mutate` change a copy of the object, and writes its status if that differs. After a conflict, does so again with the
   * newest state. Resolves with the newest object.
   *
   * @throws {WatchError} (rejects) INVALID_ARGUMENT if `mutate` changes anything else, such as the spec, or returns another object.
   * REFUSED if the server refuses; with 404 if the object is gone.
   */
  updateStatus(mutate: (draft: Mutable<T>) => unknown): Promise<T>;
  /** Emits events about the object: see `EventRecorder`. Nothing happens if the object is gone. */
  readonly events: {
    normal(reason: string, message: string): void;
    warning(reason: string, message: string): void;
  };
}

/** What a reconcile may return. Any other member whose name begins with `requeue` is a failure; anything else is ignored. */
export interface ReconcileOutcome {
  /**
   * Run this key again after this time, in milliseconds, even if nothing changes. Less than 1, such as the time until something
   * that is due: after the delays of a failure, 5 ms at first and then twice as long each time, until another outcome. Anything
   * but a finite number is a failure.
   */
  readonly requeueAfterMs?: number | undefined;
}

/** For each of some types, its kind, or a source of that kind. */
type Sources<Types extends readonly unknown[]> = { [At in keyof Types]: KindName<Types[At]> | SourceOptions<Types[At]> };

/**
 * A controller of an operator. `T` is the type that it reconciles; those that it owns and watches are inferred: see
 * {@link controller}.
 */
export interface OperatorControllerOptions<
  T extends KubernetesObject = KubernetesObject,
  Owned extends readonly unknown[] = readonly unknown[],
  Watched extends readonly unknown[] = readonly unknown[],
> {
  /**
   * The name in logs and metrics; unique in its operator. Default: the plural of the kind it is `for`; if that is
   * `{ apiVersion, kind }`, the kind in lower case.
   */
  readonly name?: string | undefined;
  /** The kind whose objects are reconciled. */
  readonly for: KindName<T> | SourceOptions<T>;
  /**
   * Kinds that it creates: a change leads to the key of the owner, by controller reference of any version. If the cache has an
   * object with this key, the owner's uid must be its uid; only a deletion counts in any case.
   */
  readonly owns?: Sources<Owned> | undefined;
  /** Kinds whose changes concern objects in other ways. */
  readonly watches?: { [At in keyof Watched]: WatchedOptions<Watched[At]> } | undefined;
  /** Kinds that it only reads from the cache. */
  readonly reads?: readonly (KindName<object> | Omit<SourceOptions<KubernetesObject>, 'when'>)[] | undefined;
  /**
   * Makes the world match the object with this key. It should do nothing if everything is as it should be, because it also runs
   * when nothing has changed. If it fails, it runs again after a delay. A conflict (409) is not a failure: another writer was
   * faster, so it also runs again, and only the tenth in succession is reported. But a conflict about another manager's fields,
   * from `apply` with `force: false`, is a failure.
   */
  // biome-ignore lint/suspicious/noConfusingVoidType: a function that returns nothing is meant
  reconcile(request: ReconcileRequest<T>): ReconcileOutcome | void | Promise<ReconcileOutcome | void>;
  /**
   * Cleans up what would outlive an object, before the object is deleted. The operator sets the finalizer before an object is
   * reconciled for the first time, calls this instead of `reconcile` once the object is being deleted, whatever `when` says,
   * and removes the finalizer when it has returned without `requeueAfterMs`. Default: none.
   */
  readonly finalizer?: FinalizerOptions<T> | undefined;
  /** How many keys are reconciled at a time; default 1. */
  readonly concurrency?: number | undefined;
  /** How often a failing key is retried before it is dropped, until something changes. Default: no limit. */
  readonly maxRetries?: number | undefined;
  /**
   * The delays of failing keys; not to be shared by controllers. If a server asks for a longer delay, as with 429, that
   * applies. Default: `defaultRateLimiter` of `watchmux/workqueue`.
   */
  readonly rateLimiter?: RateLimiter | undefined;
  /**
   * How long one reconcile may take before its `signal` aborts, in milliseconds; default 0: no limit. A timeout is a failure,
   * TIMEOUT. The key does not run again before the function has settled.
   */
  readonly reconcileTimeoutMs?: number | undefined;
  /** How often all objects are reconciled again, in milliseconds; default 36,000,000 (ten hours), as upstream. 0: never. */
  readonly resyncMs?: number | undefined;
}

/** What an operator does before an object is deleted. */
export interface FinalizerOptions<T extends object> {
  /** Such as `websites.example.com/files`. Servers warn of a name without a slash. */
  readonly name: string;
  /** Called, and again after failures, until it returns. It must also succeed if there is nothing to remove, or no longer. */
  finalize(
    request: ReconcileRequest<T> & { readonly object: T },
    // biome-ignore lint/suspicious/noConfusingVoidType: a function that returns nothing is meant
  ): ReconcileOutcome | void | Promise<ReconcileOutcome | void>;
}

/**
 * Returns the options of a controller, with all types inferred, for a controller that is not written where it is added.
 *
 *     export const websites = controller({ for: WEBSITES, owns: [DEPLOYMENTS], reconcile: async ({ object, apply }) => { ... } });
 *
 *     await new Operator({ cluster, name: 'websites' }).controller(websites).run();
 */
export function controller<
  T extends KubernetesObject,
  Owned extends readonly unknown[] = readonly KubernetesObject[],
  Watched extends readonly unknown[] = readonly KubernetesObject[],
>(options: OperatorControllerOptions<T, Owned, Watched>): OperatorControllerOptions<T, Owned, Watched> {
  return options;
}

/** A failure, as `onError` of an operator sees it. */
export interface OperatorFailure {
  /**
   * - `reconcile`: a reconcile failed, or took too long. It runs again, unless the key is `dropped`.
   * - `wrote`: a cache did not get what was written in time. The key runs anyway.
   * - `event`: `when` or `keysOf` threw for a change, or `keysOf` returned something else than keys. `when`: it counts; `keysOf`: it
   *   leads to no key.
   * - `source`: the server refuses the objects of a kind, or does not answer. The operator asks again. Or an index function
   *   threw.
   * - `sync`: some kinds have not synced within `syncTimeoutMs`, or not again since they were deleted, or since this instance leads.
   *   The operator keeps waiting.
   * - `leader`: a request of the election failed. It is repeated.
   * - `events`: events could not be written.
   */
  readonly during: 'reconcile' | 'wrote' | 'event' | 'source' | 'sync' | 'leader' | 'events';
  /** The controller's name: for `reconcile`, `wrote` and `event`. */
  readonly controller?: string | undefined;
  /** For `reconcile` and `wrote`. */
  readonly key?: string | undefined;
  /** The number of the attempt, for `reconcile`. */
  readonly attempt?: number | undefined;
  /** Whether the key was given up after `maxRetries`. */
  readonly dropped?: boolean | undefined;
  /** Such as `deployments.apps/v1`: for `event` and `source`. */
  readonly kind?: string | undefined;
}

/** Options of the election of an operator's leader: those of `LeaderElector` that the operator does not set itself. */
export interface OperatorElectionOptions
  extends Partial<Omit<LeaderElectorOptions, 'leases' | 'identity' | 'onError' | 'onAnswer'>> {
  /** The name of this instance. No two may have the same. Default: the host's, and a random part: `web-7d4b9_1f0e9c2a`. */
  readonly identity?: string | undefined;
  /** The namespace of the lease. Default: that of the operator, or of the cluster's context, or `default`. */
  readonly namespace?: string | undefined;
}

/** Where to listen. */
export interface ListenOptions {
  /** 0: any free one. */
  readonly port: number;
  /** Default: all addresses, because kubelet and Prometheus connect from outside the pod. */
  readonly host?: string | undefined;
}

/** A check of your own: it fails if it throws, rejects, or returns false. */
export type OperatorCheck = () => unknown;

/** Checks of your own, by name. */
export interface OperatorChecks {
  /** If one fails, kubelet restarts the pod: use it for problems that only a restart can solve. */
  readonly healthz?: Readonly<Record<string, OperatorCheck>> | undefined;
  /** If one fails, the pod gets no requests, such as those to its webhooks. */
  readonly readyz?: Readonly<Record<string, OperatorCheck>> | undefined;
}

/** Options of an {@link Operator}. */
export interface OperatorOptions {
  /** A `Cluster`, or an `ApiServer`. */
  readonly cluster: ResourceSource;
  /**
   * Its field manager, the source of its events, and the name of its lease: at most 63 lower case letters, digits, `-` and `.`, such as
   * `websites`.
   */
  readonly name: string;
  /** Watch this namespace only. Default, undefined: all. */
  readonly namespace?: string | undefined;
  /** Only one of several instances works at a time. Default false. `true`: with the defaults of the options. */
  readonly leaderElection?: boolean | OperatorElectionOptions | undefined;
  /**
   * Where `/healthz`, `/readyz` and `/metrics` are served, without TLS and for everybody. `host`: default all addresses,
   * because kubelet and Prometheus connect from outside the pod. Default: nowhere; see `Operator.fetch`.
   */
  readonly listen?: ListenOptions | undefined;
  /** Checks of your own, for `/healthz` and `/readyz`. Each may take a second. */
  readonly checks?: OperatorChecks | undefined;
  /**
   * Webhooks that it serves while it runs, whether it leads or not. It is ready once they listen, even before kinds are synced,
   * because the server may need the webhooks for that; it ends if they cannot listen. They end after the last reconcile, whose
   * writes they may have to admit. Default: none.
   */
  readonly webhooks?: Pick<WebhookServer, 'run' | 'ready'> | undefined;
  /**
   * After how long `onError` gets the kinds that have not synced, that were deleted and are not back, or that a new leader has not
   * listed again, in milliseconds; default 120,000. 0: never.
   */
  readonly syncTimeoutMs?: number | undefined;
  /**
   * How long running reconciles may take to end when the operator stops, in milliseconds; default 30,000. 0: no limit. After
   * that `run` rejects with TIMEOUT, which names their keys.
   */
  readonly shutdownTimeoutMs?: number | undefined;
  /** Default: `console`. */
  readonly log?: Log | undefined;
  /**
   * Called with each failure. If it throws or rejects, the operator ends with that error. Default: they are logged, each kind of failure once, and
   * at most once a minute.
   */
  readonly onError?: ((error: unknown, failure: OperatorFailure) => void) | undefined;
  /**
   * Where metrics go while it runs, and the spans of reconciles: an `OpenTelemetry` of `watchmux/opentelemetry`. Default: nowhere.
   * Give it to the `Cluster`, too, for the requests of reconciles.
   */
  readonly telemetry?: Telemetry | undefined;
  /** The clock for everything that waits. Default: the host's. */
  readonly clock?: Clock | undefined;
  /** The time of day, for events' timestamps and `now` of reconciles, in ms since 1970. Default `Date.now`. */
  readonly now?: (() => number) | undefined;
}

/** What health checks, metrics and tests see of an operator. */

/** The state of an operator at one moment. */
export interface OperatorState {
  /** Whether `run` was called, and has not settled. */
  readonly running: boolean;
  /** Whether this instance works: there is no election, or it leads. */
  readonly leads: boolean;
  readonly kinds: readonly KindState[];
  readonly controllers: readonly ControllerState[];
}

/** A kind of an operator, and its cache. */
export interface KindState {
  /** Such as `deployments.apps/v1`. */
  readonly kind: string;
  /** Whether the cache holds the whole collection; false from when the kind is deleted until its objects are listed again. */
  readonly synced: boolean;
  /** The version of the cache; empty before it is synced. */
  readonly resourceVersion: string;
  /** How many objects it holds. */
  readonly objects: number;
  /** Whether the server answers. */
  readonly connected: boolean;
  /** Whether the server was asked for the kind, and does not have it. */
  readonly absent: boolean;
  /** The last failure, until the server has worked without one for a while. */
  readonly error: unknown;
}

/** A controller of an operator. */
export interface ControllerState {
  readonly name: string;
  readonly concurrency: number;
  /** Whether it reconciles: this instance leads, and all its kinds are there and synced, for a leader again since it leads. */
  readonly working: boolean;
  /** Keys that wait for a worker. */
  readonly queued: number;
  /** Keys that wait for a time. */
  readonly delayed: number;
  /** Keys that are being processed, or wait for what they have written. */
  readonly inWork: number;
}

/**
 * How a reconcile has ended. `requeue`: a conflict, which is retried. `requeue_after`: it asked to run again. Upstream: the
 * label `result` of `controller_runtime_reconcile_total`.
 */
export type ReconcileResultName = 'success' | 'error' | 'requeue' | 'requeue_after';

/** One reconcile that has ended. */
export interface ReconcileEnd {
  readonly controller: string;
  /** Undefined: the operator stopped it. */
  readonly result: ReconcileResultName | undefined;
  readonly durationMs: number;
  /** Whether it took longer than `reconcileTimeoutMs`. */
  readonly timedOut: boolean;
  /** Whether the key was given up after `maxRetries`. */
  readonly dropped: boolean;
}

/** Measures an operator. Its functions must not throw. */
export interface OperatorObserver {
  /** A measurement of a controller's queue, which has the controller's name. */
  onQueueMetric(metric: WorkQueueMetric): void;
  /** A reconcile has begun. */
  onReconcileStart(controller: string): void;
  onReconcileEnd(end: ReconcileEnd): void;
}
