import type { Overflow } from '../../watch/overflow.ts';

/**
 * What is called with the changes of an informer: one of these functions, or more. A promise that it returns is awaited before the next call
 * of the same handler; other handlers do not wait. Upstream: `cache.ResourceEventHandler`.
 *
 * The store is already updated when it is called, and may be newer than the arguments. Objects are shared with all readers:
 * treat them as read-only.
 */
export interface Handler<T> {
  /** There is a new object. `initial`: it was there before, and belongs to the state with which this handler begins. */
  onAdd?(object: T, initial: boolean): unknown;
  /**
   * An object has changed; `old` is the one that this handler was told of last. If both are the same, this is a resync. If their
   * `uid` differs, the old one was deleted, and a new one created in its place.
   */
  onUpdate?(old: T, object: T): unknown;
  /** An object is gone. `finalStateUnknown`: that was inferred from a list, so it may have changed before it was deleted. */
  onDelete?(object: T, finalStateUnknown: boolean): unknown;
}

/** What happens to a change that does not fit in a handler's queue. Not `wait`: a slow handler must not hold back the others. */
export type HandlerOverflow = Exclude<Overflow, 'wait'>;

/** Options of one handler. */
export interface HandlerOptions<T> {
  /**
   * How often it is called with every object again, in milliseconds, as `onUpdate(object, object)`; 0: never. At least a second. A
   * handler that needs longer for that begins anew when it is done. Default: the informer's `resyncMs`.
   */
  readonly resyncMs?: number | undefined;
  /**
   * Only objects for which this returns true. One that starts to match is added (not `initial`, if it was known before), one that
   * stops is deleted.
   */
  readonly filter?: ((object: T) => boolean) | undefined;
  /**
   * What happens to changes while it is slow. Default `coalesce`: those of one object become one, so that a slow handler is told of
   * the latest state, and its queue is never longer than there are objects. `drop-oldest` and `drop-newest` lose changes, of which
   * `onGap` tells. `disconnect` ends the handler: `onError` of the informer gets a REFUSED with code 410.
   */
  readonly overflow?: HandlerOverflow | undefined;
  /**
   * Number of changes that it may be behind; a whole number >= 1. Default: as many as there are objects with `coalesce`, otherwise
   * 1,000. With `coalesce`, a handler with more changed objects than that is ended, as with `disconnect`.
   */
  readonly capacity?: number | undefined;
  /** Called before the next call of the handler, with the number of changes that were lost. Not with `coalesce`: it loses none. */
  readonly onGap?: ((missed: number) => void) | undefined;
}

/** A handler of an informer. Upstream: `cache.ResourceEventHandlerRegistration`. */
export interface HandlerRegistration {
  /**
   * Resolves when the informer has synced and every call of `onAdd` that is `initial` has returned or failed. Rejects if the handler
   * ends before.
   */
  readonly synced: Promise<void>;
  /** Whether `synced` has resolved. */
  readonly hasSynced: boolean;
  /** Number of changes that wait for the handler. */
  readonly queued: number;
  /** Ends the handler: what waits is dropped; a call in progress completes. Idempotent, also from inside the handler. */
  remove(): void;
}
