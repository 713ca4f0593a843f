import type { KubernetesObject } from '../cache/object.ts';
import type { WorkQueue } from './queue.ts';

/**
 * What a controller needs from an informer. `Informer` of `watchmux/cache` is one. Declared with methods, whose parameters are
 * bivariant, so that informers of several types fit into one list.
 */
export interface ControllerInformer<T> {
  /** The key of an object. */
  readonly store: { keyOf(object: T): string };
  /**
   * Calls the handler with the current state, as additions, and then with each change. `synced` resolves when those additions
   * have been handled. `ended` resolves with the reason when the informer has ended. Absent: the controller does not learn of that.
   */
  addHandler(
    handler: ControllerHandler<T>,
    options?: { readonly filter?: ((object: T) => boolean) | undefined; readonly resyncMs?: number | undefined },
  ): { readonly synced: Promise<unknown>; readonly ended?: Promise<unknown> | undefined; remove(): unknown };
  /** Resolves when the store has reached a version. Rejects when the signal aborts, or when that takes longer than `timeoutMs`. */
  atLeast(
    resourceVersion: string,
    options?: { readonly signal?: AbortSignal | undefined; readonly timeoutMs?: number | undefined },
  ): Promise<unknown>;
  /** Runs the informer until the signal aborts. Absent: something else runs it. */
  run?(signal?: AbortSignal, options?: ControllerRunOptions): Promise<unknown>;
  /** Calls the listener with each failure of the informer's source. Returns a function that removes the listener. */
  addErrorListener?(listener: (error: unknown) => void): () => void;
  /** Its `error` is the last failure of the source. */
  readonly state?: { readonly error?: unknown } | undefined;
  /** Whether `run` was called. Absent: it was. */
  readonly started?: boolean | undefined;
}

/** How a controller learns of changes. */
export interface ControllerHandler<T> {
  onAdd(object: T): void;
  onUpdate(old: T, object: T): void;
  onDelete(object: T): void;
}

/** A function whose parameter is bivariant, like a method's: one for some of several possible types fits. */
type Asked<T, Answer> = { ask(object: T): Answer }['ask'];

/** An informer, and which keys its objects concern. */
export interface ControllerSource<T> {
  readonly informer: ControllerInformer<T>;
  /**
   * Returns the keys to reconcile when this object is added, changed or deleted; for a change, those of the old and the new
   * state. Default: its own key. For objects that others own, return the keys of the owners. Must be quick, and depend only on
   * the object.
   */
  readonly keysOf?: Asked<T, readonly string[]> | undefined;
  /** Which objects to consider. An object that starts or stops matching is treated as added or deleted. Default: all. */
  readonly filter?: Asked<T, boolean> | undefined;
  /** How often all objects are reconciled again, in milliseconds. Default: the informer's. */
  readonly resyncMs?: number | undefined;
}

/** What a reconcile gets besides the key. */
export interface ReconcileContext {
  /** Aborts when the controller should stop. Pass it on to whatever the reconcile waits for. */
  readonly signal: AbortSignal;
  /** 1 for the first try since the key succeeded or was dropped; 2 for the second, and so on. */
  readonly attempt: number;
  /**
   * Call it with an object that you have written, as the server returned it. The key then does not run again until the informer
   * has reached the object's version, so that it reads its own write. Other keys continue. Call it before the reconcile returns.
   * The informer is the controller's first, unless you pass another one.
   *
   * @throws {WatchError} INVALID_ARGUMENT for an object without a version.
   */
  wrote(object: KubernetesObject, informer?: Pick<ControllerInformer<never>, 'atLeast'>): void;
}

/** What a reconcile may return. Any other member whose name begins with `requeue` is a failure; anything else is ignored. */
export interface ReconcileResult {
  /** Run this key again after this time, even if nothing changes; sooner if something does. 0 or less: immediately. */
  readonly requeueAfterMs?: number | undefined;
}

/**
 * Brings the object with this key to its desired state. It gets a key, not an object: it reads the current state from the
 * informers' stores, where the object may no longer exist. It should do nothing if there is nothing to do, because it also runs
 * when nothing has changed.
 */
// biome-ignore lint/suspicious/noConfusingVoidType: a function that returns nothing is meant
export type Reconcile = (key: string, context: ReconcileContext) => ReconcileResult | void | Promise<ReconcileResult | void>;

/** What went wrong in a controller, as `onError` sees it. */
export interface ControllerFailure {
  /**
   * - `reconcile`: it threw or rejected. The key is tried again, unless it is `dropped`.
   * - `wrote`: the informer did not reach a version in time. The key runs anyway.
   * - `event`: `keysOf` threw or returned something else than strings, or the queue was full. The keys of this object were not all added.
   * - `source`: the source of an informer failed, for example because it refuses the list. The informer tries again.
   * - `sync`: the informers have not synced within `syncTimeoutMs`. The controller goes on waiting.
   */
  readonly during: 'reconcile' | 'wrote' | 'event' | 'source' | 'sync';
  /** For `reconcile` and `wrote`. */
  readonly key?: string | undefined;
  /** The number of the attempt, for `reconcile`. */
  readonly attempt?: number | undefined;
  /** Whether the key was dropped after `maxRetries`: it runs again when something changes. */
  readonly dropped: boolean;
  /** The object, for an event. */
  readonly object?: unknown;
  /** The informer, for a source. */
  readonly informer?: unknown;
}

/** Options of a {@link Controller}. */
export interface ControllerOptions<T> {
  /** The informers whose changes are reconciled; at least one. The controller runs those that have not been started. */
  readonly informers: readonly (ControllerInformer<T> | ControllerSource<T>)[];
  readonly reconcile: Reconcile;
  /** How many keys are processed at the same time; default 1. */
  readonly concurrency?: number | undefined;
  /** How often a key that fails is retried before it is dropped; default: forever. */
  readonly maxRetries?: number | undefined;
  /**
   * The queue, with its rate limiter, metrics and clock; default `new WorkQueue()`. The controller shuts it down when it ends.
   * You can add keys to it yourself.
   */
  readonly queue?: WorkQueue<string> | undefined;
  /** How long a key waits for what it {@link ReconcileContext.wrote}, in milliseconds; default 10,000. Then it runs anyway. */
  readonly wroteTimeoutMs?: number | undefined;
  /**
   * How long the informers may take to sync before `onError` is called with a TIMEOUT that names them, in milliseconds; default
   * 120,000. 0: forever.
   */
  readonly syncTimeoutMs?: number | undefined;
  /**
   * Called for each failure, including those of the informers' sources. If it throws, the controller ends with that error.
   * Default: `console.error`, once per kind; the informers report their sources themselves.
   */
  readonly onError?: ((error: unknown, failure: ControllerFailure) => void) | undefined;
}

/** Options of a controller's `run`. */
export interface ControllerRunOptions {
  /**
   * How long to wait for running work, and for handlers of the informers that it runs, after the signal has aborted or an error has
   * ended the controller, in milliseconds; default 0: until they have ended. Then `run` rejects with TIMEOUT, which names the keys.
   */
  readonly timeoutMs?: number | undefined;
}
