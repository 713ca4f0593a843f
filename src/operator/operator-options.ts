import type { InformerStore } from '../cache/informer/informer-options.ts';
import type { KubernetesObject } from '../cache/object.ts';
import type { PatchOptions, ResourceClient, ResourceType } from '../cache/resource-client.ts';
import type { Clock } from '../watch/clock.ts';
import type { LeaderElectorOptions } from '../workqueue/leader-elector.ts';
import type { RateLimiter } from '../workqueue/rate-limiters.ts';
import type { GroupVersionKind, KindName, ResourceSource } from './kinds.ts';

/** Where an operator writes what it does. `console` is one. */
export interface Log {
  debug(text: string): void;
  info(text: string): void;
  warn(text: string): void;
  error(text: string): void;
}

/** A kind, whatever its objects are. */
export type AnyKind = string | ResourceType | GroupVersionKind;

/** What happened to an object. A resync is MODIFIED, with the same object twice. */
export type ChangeType = 'ADDED' | 'MODIFIED' | 'DELETED';

/** Says whether a change is worth a reconcile. `old` is undefined for ADDED, `object` for DELETED. Upstream: `predicate.Predicate`. */
export type When<T extends object = KubernetesObject> = {
  of(old: T | undefined, object: T | undefined, event: ChangeType): boolean;
}['of'];

/** What a controller reads besides the event: the operator's caches. */
export interface Caches {
  /**
   * The object with this key in the cache; undefined if there is none. Shared: do not change it.
   *
   * @throws {WatchError} INVALID_ARGUMENT for a kind that no controller of the operator is for, owns, watches or reads.
   */
  get<O extends object = KubernetesObject>(kind: KindName<O>, key: string): O | undefined;
  /** All cached objects of a kind, with the indexes of its options. */
  store<O extends object = KubernetesObject>(kind: KindName<O>): InformerStore<O>;
}

/** A kind whose changes are of interest, and which of them. */
export interface SourceOptions<T extends object> {
  readonly kind: KindName<T>;
  /** Which changes count. Default: all. */
  readonly when?: When<T> | undefined;
  /** Indexes of the kind's store, which all controllers share. */
  readonly indexers?: Readonly<Record<string, { of(object: T): readonly string[] }['of']>> | undefined;
}

/** A kind whose objects concern others, and which. */
export interface WatchedOptions<T extends object> extends SourceOptions<T> {
  /** The keys to reconcile when this object changes; of a change, those of both states. If it throws, that is reported. */
  keysOf(object: T, caches: Caches): readonly string[];
}

/** What a reconcile gets. Its functions may be taken out of it: `({ object, apply }) => ...`. */
export interface ReconcileRequest<T extends object = KubernetesObject> extends Caches {
  /** `namespace/name`, or `name` of what is in no namespace. */
  readonly key: string;
  /** Empty for what is in no namespace. */
  readonly namespace: string;
  readonly name: string;
  /** The object, as it is in the cache; undefined: it is gone. Shared: do not change it. */
  readonly object: T | undefined;
  /** 1 for the first try since the key last succeeded, 2 for the second, and so on. */
  readonly attempt: number;
  /** Aborts when the operator stops or no longer leads, and after `reconcileTimeoutMs`. */
  readonly signal: AbortSignal;
  /** Writes with the controller's name and the key before each text. */
  readonly log: Log;
  /** The cached objects of a kind that the object controls: by uid, so not those of one of the same name that was there before. */
  owned<O extends object = KubernetesObject>(kind: KindName<O>): readonly O[];
  /**
   * Reads and writes the server's own objects. Requests end with `signal`, and the key does not run again before the caches have what
   * was written.
   */
  resource<O extends object = KubernetesObject>(kind: KindName<O>): ResourceClient<O>;
  /**
   * Server-side apply. Fills in apiVersion, kind, and the operator's name as field manager; for kinds that the controller `owns` also
   * the object's namespace, its name if there is none, and the owner reference.
   */
  apply<O extends object = KubernetesObject>(kind: KindName<O>, object: object, options?: ApplyOptions): Promise<O>;
  /** Changes a copy of the object's status and writes it if it differs. See `updateStatus`. */
  updateStatus(mutate: (object: T) => unknown): Promise<T>;
  /** Emits events about the object: see `EventRecorder`. */
  readonly events: {
    normal(reason: string, message: string): void;
    warning(reason: string, message: string): void;
  };
}

/** Options of `apply`. */
export interface ApplyOptions extends Omit<PatchOptions, 'type'> {
  /** Take over fields of other managers. Default true: an operator's word about what it owns is final. */
  readonly force?: boolean | undefined;
}

/** What a reconcile may return. */
export interface ReconcileOutcome {
  /** Run this key again after this time, even if nothing changes. */
  readonly requeueAfterMs?: number | undefined;
}

/** A controller of an operator. */
export interface OperatorControllerOptions<T extends object = KubernetesObject> {
  /** In logs and metrics. Default: the plural of what it is `for`. */
  readonly name?: string | undefined;
  /** The kind whose objects are reconciled. */
  readonly for: KindName<T> | SourceOptions<T>;
  /** Kinds that it makes: a change leads to the key of the owner, by controller reference. */
  readonly owns?: readonly (AnyKind | SourceOptions<KubernetesObject>)[] | undefined;
  /** Kinds whose changes concern objects otherwise. */
  readonly watches?: readonly WatchedOptions<KubernetesObject>[] | undefined;
  /** Kinds that it only reads from the cache. */
  readonly reads?: readonly (AnyKind | Omit<SourceOptions<KubernetesObject>, 'when'>)[] | undefined;
  // biome-ignore lint/suspicious/noConfusingVoidType: a function that returns nothing is meant
  reconcile(request: ReconcileRequest<T>): ReconcileOutcome | void | Promise<ReconcileOutcome | void>;
  /** Removes what outlives an object, before it goes. The operator sets the finalizer, and removes it when this has returned. */
  readonly finalizer?:
    | {
        readonly name: string;
        finalize(
          request: ReconcileRequest<T> & { readonly object: T },
          // biome-ignore lint/suspicious/noConfusingVoidType: a function that returns nothing is meant
        ): ReconcileOutcome | void | Promise<ReconcileOutcome | void>;
      }
    | undefined;
  /** Keys at a time; default 1. */
  readonly concurrency?: number | undefined;
  /** Default: for ever. */
  readonly maxRetries?: number | undefined;
  readonly rateLimiter?: RateLimiter | undefined;
  /** How long one reconcile may take before its `signal` aborts, in milliseconds; default 0: for ever. */
  readonly reconcileTimeoutMs?: number | undefined;
  /** How often all objects are reconciled again, in milliseconds; default 36,000,000 (ten hours), as upstream. */
  readonly resyncMs?: number | undefined;
}

/** A failure, as `onError` of an operator sees it. */
export interface OperatorFailure {
  readonly during: 'reconcile' | 'wrote' | 'event' | 'source' | 'sync' | 'leader' | 'events' | 'shutdown';
  readonly controller?: string | undefined;
  readonly key?: string | undefined;
  readonly attempt?: number | undefined;
  readonly dropped?: boolean | undefined;
}

/** Options of an {@link Operator}. */
export interface OperatorOptions {
  /** A `Cluster`, or an `ApiServer`. */
  readonly cluster: ResourceSource;
  /** Its field manager, the source of its events, and the name of its lease. */
  readonly name: string;
  /** Watch this namespace only. Default: all. */
  readonly namespace?: string | undefined;
  /** Only one of several instances works. Default false. `namespace` of the lease: default that of the operator, or `default`. */
  readonly leaderElection?:
    | boolean
    | (Partial<Omit<LeaderElectorOptions, 'leases'>> & { readonly namespace?: string | undefined })
    | undefined;
  /** Where `/healthz`, `/readyz` and `/metrics` are served. Default: nowhere; see `Operator.fetch`. */
  readonly listen?: { readonly port: number; readonly host?: string | undefined } | undefined;
  /** When the kinds that have not synced are named, in milliseconds; default 120,000. */
  readonly syncTimeoutMs?: number | undefined;
  /** How long running reconciles may take after the end, in milliseconds; default 30,000. */
  readonly shutdownTimeoutMs?: number | undefined;
  /** Default: `console`. */
  readonly log?: Log | undefined;
  /** Called with each failure. Default: it is logged. */
  readonly onError?: ((error: unknown, failure: OperatorFailure) => void) | undefined;
  readonly clock?: Clock | undefined;
}
