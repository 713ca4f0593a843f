import { callable, invalid, oneOf, WatchError, wholeNumber } from '../watch/errors.ts';
import type { WatchEvent } from '../watch/event.ts';
import { OVERFLOWS, type Overflow } from '../watch/overflow.ts';
import type { Watch } from '../watch/watch.ts';
import { Cursor } from './cursor.ts';
import { FoldCursor } from './fold-cursor.ts';
import { BroadcastWatch } from './handle.ts';
import { objectKey } from './key.ts';
import { Mux } from './mux.ts';
import type { CursorOptions } from './place.ts';

/** Options of a {@link Broadcaster}. A watcher may override `capacity` and `overflow`. */
export interface BroadcasterOptions<E> {
  /**
   * Queue length per watcher, in events (with `coalesce`: in keys). A whole number >= 0; default 100. With 0, a watcher receives
   * an event only while a read is pending.
   */
  readonly capacity?: number | undefined;
  /** What happens to an event that does not fit in a watcher's queue; default `wait`, which loses nothing. */
  readonly overflow?: Overflow | undefined;
  /** Number of events accepted ahead of distribution while a `wait` watcher is full; default 25. */
  readonly incoming?: number | undefined;
  /** Number of publishes that may wait for room before `publish` rejects with OVERLOADED; default 10,000. */
  readonly maxPending?: number | undefined;
  /**
   * The key by which `coalesce` folds; default namespace and name in `object.metadata`, which objects of several kinds may share.
   * If it throws, as the default does for an object without a name (INVALID_ARGUMENT), the `coalesce` watch ends with that error.
   */
  readonly keyOf?: ((event: E) => string) | undefined;
}

/** Options of one watcher. */
export interface WatchOptions<E> {
  /** This watcher's queue length, in events (with `coalesce`: in keys). */
  readonly capacity?: number | undefined;
  /** This watcher's overflow policy. */
  readonly overflow?: Overflow | undefined;
  /**
   * Selects the events this watcher receives; rejected events take no room in its queue. Called once per event, in order. If it
   * throws, this watch ends with that error. If it stops its own watch, events it has not seen yet are neither queued nor
   * counted.
   */
  readonly filter?: ((event: E) => boolean) | undefined;
  /**
   * Events to deliver first, through the filter. `capacity` grows to their number + 1 if it is smaller, so at least to 1. An event
   * whose `publish` is still waiting counts as published after this watch began, so it arrives again.
   */
  readonly prefix?: readonly E[] | undefined;
  /** Stops the watch when it aborts. `watch` throws the signal's reason if it has already aborted. */
  readonly signal?: AbortSignal | undefined;
  /**
   * Called right before the first event after a gap is delivered, with the number of lost events. If it throws, this watch ends
   * with that error.
   */
  readonly onGap?: ((missed: number) => void) | undefined;
}

export type { Overflow } from '../watch/overflow.ts';

const ACCEPTED: Promise<void> = Promise.resolve();

/**
 * Distributes one ordered sequence of events to any number of watchers. Each watcher has a bounded queue and an overflow policy.
 *
 * - **Order**: all watchers see events in the order in which they were accepted, each event at most once.
 * - **Slow readers** harm only themselves. The exception is the policy `wait`, which holds the publisher back: an abandoned
 *   `wait` watcher that is still referenced stalls `publish`. The four other policies never do.
 * - **Joining**: a watcher sees every event accepted after `watch()` returned, and none accepted before.
 * - **Closing**: `shutdown` delivers every accepted event.
 *
 * All methods may be called at any time, also from inside a consumer, a filter or an `onGap`. Upstream: `watch.Broadcaster`.
 */
export class Broadcaster<E extends WatchEvent = WatchEvent> {
  readonly #mux: Mux<E>;
  readonly #capacity: number;
  readonly #overflow: Overflow;
  readonly #maxPending: number;
  /** The options of the last watcher without callbacks. Watchers with the same options share the object. */
  #plain: CursorOptions<E> | undefined;
  #closed: Promise<void> | undefined;

  /** @throws {WatchError} INVALID_ARGUMENT for an invalid option. */
  constructor(options: BroadcasterOptions<E> = {}) {
    const { capacity = 100, overflow = 'wait', incoming = 25, maxPending = 10_000, keyOf = objectKey } = options;
    this.#capacity = wholeNumber('capacity', capacity);
    this.#overflow = toOverflow(overflow);
    this.#maxPending = wholeNumber('maxPending', maxPending);
    this.#mux = new Mux({ capacity, incoming: wholeNumber('incoming', incoming), keyOf: callable('keyOf', keyOf) });
  }

  /**
   * Number of watches that have not ended; 0 after a shutdown. A watch that `disconnect` or `coalesce` cut ends when it has been
   * read to its end.
   */
  get watchers(): number {
    return this.#mux.closed ? 0 : this.#mux.watchers;
  }

  /**
   * Starts a watch. It sees every event accepted after this call and none accepted before, even if that one is not distributed
   * yet. Nothing is lost before the first read. Upstream: `Watch`, `WatchWithPrefix`.
   *
   * @throws {WatchError} CLOSED after `shutdown`; INVALID_ARGUMENT for an invalid option; the signal's reason if it has aborted.
   */
  watch(options: WatchOptions<E> = {}): Watch<E> {
    const { filter, onGap, prefix = [], signal } = options;
    if (!Array.isArray(prefix)) throw invalid('prefix', prefix, 'an array');
    const own: CursorOptions<E> = {
      capacity: Math.max(wholeNumber('capacity', options.capacity ?? this.#capacity), options.prefix ? prefix.length + 1 : 0),
      overflow: toOverflow(options.overflow ?? this.#overflow),
      filter: callable('filter', filter),
      onGap: callable('onGap', onGap),
    };
    this.#refuseClosed('watch');
    signal?.throwIfAborted();
    const cursor = this.#join(this.#shared(own), prefix);
    if (signal?.aborted)
      cursor.stop(); // aborted by the filter, when it was asked about the prefix
    else if (signal && !cursor.stopped) this.#mux.signals.add(cursor, signal);
    return new BroadcastWatch(cursor, this.#mux.forgotten);
  }

  /**
   * Publishes an event. Resolves when the event is accepted: it has its place in the order and will be distributed. Waits while
   * the incoming queue is full, that is, while a `wait` watcher holds up distribution. Upstream: `Action`.
   *
   * Resolves within the same turn if there is room. A loop that only awaits `publish` lets watchers read, but no timer or socket
   * run. A `wait` consumer that awaits `publish` inside its own read loop may deadlock.
   *
   * @throws {WatchError} (rejects) CLOSED after `shutdown`; OVERLOADED if `maxPending` publishes are waiting; INVALID_ARGUMENT
   * for null and undefined.
   */
  publish(event: E): Promise<void> {
    try {
      if (this.tryPublish(event)) return ACCEPTED;
      const limit = this.#maxPending;
      if (this.#mux.pending < limit) return this.#mux.acceptLater(event);
      throw new WatchError('OVERLOADED', `publish: ${limit} publishes already wait for room (maxPending)`, { limit });
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /**
   * Publishes an event without waiting. Returns false if it cannot be accepted now, because a `wait` watcher holds up distribution;
   * then no watcher gets it. Upstream: `ActionOrDrop`.
   *
   * @throws {WatchError} CLOSED after `shutdown`; INVALID_ARGUMENT for null and undefined.
   */
  tryPublish(event: E): boolean {
    this.#refuseClosed('publish');
    if (event === undefined || event === null) throw invalid('event', event, 'an event');
    const accepted = this.#mux.accept(event);
    if (!accepted) this.#refuseClosed('publish'); // a filter has shut the broadcaster down
    return accepted;
  }

  /**
   * Closes the broadcaster: refuses new events and watches, distributes all accepted events and pending publishes, then ends
   * every watch. Queued events stay readable. Resolves when done. Idempotent.
   *
   * A stalled `wait` watcher delays it as it delays publishing. Abort `signal` to give up: such watchers then lose (and count)
   * what does not fit, pending publishes reject with CLOSED, every watch ends, and this rejects with the signal's reason.
   */
  shutdown(options: { signal?: AbortSignal | undefined } = {}): Promise<void> {
    const mux = this.#mux;
    const { signal } = options;
    if (!this.#closed) {
      // Set before anything moves, because a filter may call `shutdown` too.
      this.#closed = new Promise((resolve) => {
        mux.onClosed = resolve;
      });
      mux.closing = true;
      mux.pump();
    }
    if (mux.closed || !signal) return this.#closed;
    return this.#closeOrGiveUp(this.#closed, signal);
  }

  #closeOrGiveUp(closed: Promise<void>, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const giveUp = (): void => {
        this.#mux.force();
        reject(signal.reason);
      };
      closed.then(() => {
        signal.removeEventListener('abort', giveUp);
        resolve();
      });
      if (signal.aborted) giveUp();
      else signal.addEventListener('abort', giveUp);
    });
  }

  #shared(own: CursorOptions<E>): CursorOptions<E> {
    if (own.filter || own.onGap) return own;
    if (this.#plain?.capacity !== own.capacity || this.#plain.overflow !== own.overflow) this.#plain = own;
    return this.#plain;
  }

  #join(options: CursorOptions<E>, prefix: readonly E[]): Cursor<E> {
    const passed: E[] = [];
    let failure: { error: unknown } | undefined;
    try {
      // Runs before the cursor takes its position, so an event the filter publishes cannot come between prefix and stream.
      for (const event of prefix) if (!options.filter || options.filter(event)) passed.push(event);
    } catch (error) {
      failure = { error };
    }
    const cursor = options.overflow === 'coalesce' ? new FoldCursor(this.#mux, options) : new Cursor(this.#mux, options);
    cursor.join(passed);
    if (failure) cursor.fail(failure.error);
    return cursor;
  }

  #refuseClosed(what: string): void {
    if (this.#mux.closing) throw new WatchError('CLOSED', `${what}: the broadcaster is shut down`);
  }
}

/** Returns a valid policy; throws INVALID_ARGUMENT otherwise. */
export function toOverflow(overflow: Overflow): Overflow {
  return oneOf('overflow', overflow, OVERFLOWS);
}
