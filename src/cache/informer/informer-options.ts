import type { LabelSelector } from '../../selectors/label-selector.ts';
import type { Overflow, WaitingOverflow } from '../../watch/overflow.ts';
import type { ReflectorFailure, ReflectorOptions, ReflectorState } from '../reflector/reflector-options.ts';
import type { Indexer, Indexers } from '../store/indexer.ts';
import type { VersionComparator } from '../versions.ts';

/**
 * Gets an informer's changes; has one or more of these functions. If one returns a promise, that is awaited before the next call
 * of the same handler; other handlers do not wait. Upstream: `cache.ResourceEventHandler`.
 *
 * The store is already updated when it is called, and may be newer than the arguments. Objects are shared with all readers:
 * treat them as read-only.
 */
export interface Handler<T> {
  /** There is a new object. `initial`: it existed before, and belongs to the state with which this handler starts. */
  onAdd?(object: T, initial: boolean): unknown;
  /**
   * An object has changed; `old` is the state that this handler got last. If both are the same object, this is a resync. If their
   * `uid` differs, the old one was deleted, and a new one created in its place.
   */
  onUpdate?(old: T, object: T): unknown;
  /** An object is gone. `finalStateUnknown`: that was inferred from a list, so it may have changed before it was deleted. */
  onDelete?(object: T, finalStateUnknown: boolean): unknown;
}

/** What happens to a change that does not fit in a handler's queue. Not `wait`: a slow handler must not hold back the others. */
export type HandlerOverflow = Exclude<Overflow, WaitingOverflow>;

/** Options of one handler. */
export interface HandlerOptions<T> {
  /**
   * How often it is called with every object again, in milliseconds, as `onUpdate(object, object)`; 0: never. If a resync takes longer
   * than that, the next one starts when it is done. Default: the informer's `resyncMs`.
   */
  readonly resyncMs?: number | undefined;
  /**
   * Only objects for which this returns true. One that starts to match is added (not `initial`, if it was known before), one that
   * stops is deleted. To a handler, one for which it throws does not match, and the error is reported; a watch ends with the error.
   */
  readonly filter?: ((object: T) => boolean) | undefined;
  /**
   * What happens to changes while it is slow. Default `coalesce`: changes of one object are merged, so that a slow handler gets
   * the latest state, and its queue is never longer than the number of objects. `drop-oldest` and `drop-newest` lose changes,
   * which `onGap` reports. `disconnect` ends the handler: the informer's `onError` gets a REFUSED with code 410.
   */
  readonly overflow?: HandlerOverflow | undefined;
  /**
   * Number of changes that it may be behind; a whole number >= 1. Default: as many as there are objects with `coalesce`, otherwise
   * 1,000. With `coalesce`, a handler with more changed objects than that is ended, as with `disconnect`. A handler added
   * before the first list needs room for the list and its end, which counts as one more; a handler added later gets room for
   * the state with which it begins.
   */
  readonly capacity?: number | undefined;
  /**
   * Called before the next call of the handler, with the number of changes that were lost. Not used with `coalesce`, which loses
   * none.
   */
  readonly onGap?: ((missed: number) => void) | undefined;
}

/** A handler of an informer. Upstream: `cache.ResourceEventHandlerRegistration`. */
export interface HandlerRegistration {
  /**
   * Resolves when the informer has synced and every `initial` call of `onAdd` has returned or failed. Rejects if the handler ends
   * before that.
   */
  readonly synced: Promise<void>;
  /** Resolves when the handler has ended, and its last call has returned: with the error that ended the informer, or a CLOSED. */
  readonly ended: Promise<unknown>;
  /** Whether `synced` has resolved. */
  readonly hasSynced: boolean;
  /** Number of changes that wait for the handler. */
  readonly queued: number;
  /**
   * Ends the handler: waiting changes are dropped; a call in progress completes. Idempotent, and may be called from inside the
   * handler.
   */
  remove(): void;
}

/**
 * The objects of an informer, by key: a read-only `Indexer`. Only the informer writes to it.
 */
export interface InformerStore<T, Name extends string = string>
  extends Pick<
    Indexer<T, Name>,
    | 'byIndex'
    | 'get'
    | 'index'
    | 'indexKeys'
    | 'indexNames'
    | 'indexValues'
    | 'keyOf'
    | 'keys'
    | 'list'
    | 'resourceVersion'
    | 'size'
  > {
  /** Adds indexes, even while the informer runs. Returns this store, whose type then also has the new names. */
  addIndexers<More extends string>(indexers: Indexers<T, More>): InformerStore<T, Name | More>;
}

/** The state of an informer at one moment. For health checks. */
export type InformerState = ReflectorState;

/** A failure, as an informer's `onError` gets it. */
export type InformerFailure<T> = ReflectorFailure | HandlerFailure<T> | ObjectFailure<T>;

/** A handler has thrown or rejected, or was ended because it lost changes. */
export interface HandlerFailure<T> {
  readonly kind: 'handler';
  readonly handler: Handler<T>;
}

/**
 * `keyOf`, `transform` or an index function has thrown for an object, or has returned an invalid value. Its previous state, if
 * there was one, stays, unless the source has been restored from a copy since.
 */
export interface ObjectFailure<T> {
  readonly kind: 'object';
  readonly object: T;
}

/** Options of an informer. Those of its reflector are among them. */
export interface InformerOptions<T, Name extends string = string>
  extends Omit<ReflectorOptions<T>, 'resyncMs' | 'shouldResync' | 'onError' | 'keyOf'> {
  /**
   * How often handlers without their own `resyncMs` are called with every object again, in milliseconds; default 0: not at all.
   */
  readonly resyncMs?: number | undefined;
  /** The indexes of its store. More can be added later. */
  readonly indexers?: Indexers<T, Name> | undefined;
  /**
   * Called once for each object as soon as it has arrived; the result is stored instead, for example without fields that nobody
   * needs. So the first list needs no more memory than what is kept of it. It must return an object, not a promise: to leave
   * objects out, use selectors, or the `filter` of a handler. It should keep the name and the namespace, which handlers make
   * keys from (the store's key is that of the original object), `uid` and `resourceVersion`, which identify an object's state,
   * and the labels that selectors use. It must not change its argument, which may be shared: a storage in the same process
   * would keep the change.
   */
  readonly transform?: ((object: T) => T) | undefined;
  /** The key of an object; default: namespace and name. */
  readonly keyOf?: ((object: T) => string) | undefined;
  /** How `atLeast` compares versions. Default `compareVersions`: Kubernetes' decimal numbers. */
  readonly compareVersions?: VersionComparator | undefined;
  /**
   * Called with every failure of the source, a handler or an object. If it throws, `run` ends, and rejects with that error.
   * Default: `console.error`, once per kind, and when the source works again.
   */
  readonly onError?: ((error: unknown, failure: InformerFailure<T>) => void) | undefined;
}

/** How long to wait for a refresh. */
export interface RefreshOptions {
  /** Gives up when it aborts; then the promise rejects with its reason. The refresh goes on. */
  readonly signal?: AbortSignal | undefined;
}

/** How an informer stops. */
export interface StopOptions {
  /**
   * How long to wait for calls of handlers that have not returned, in milliseconds; default 0: until they have. After that,
   * such a call goes on, but is no longer waited for.
   */
  readonly timeoutMs?: number | undefined;
}

/** Options of a watch of an informer. */
export interface InformerWatchOptions<T> extends Omit<HandlerOptions<T>, 'resyncMs'> {
  /** Only objects whose labels this selects. */
  readonly labelSelector?: string | LabelSelector | undefined;
  /** Ends the watch when it aborts. */
  readonly signal?: AbortSignal | undefined;
}
