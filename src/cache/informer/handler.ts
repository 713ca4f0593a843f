import type { Overflow, WaitingOverflow } from '../../watch/overflow.ts';

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
   * 1,000. With `coalesce`, a handler with more changed objects than that is ended, as with `disconnect`. One that is added before the
   * first list needs room for it; one that is added later has room for the state with which it begins.
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
