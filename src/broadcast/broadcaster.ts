import { callable, invalid, oneOf, WatchError, wholeNumber } from '../watch/errors.ts';
import type { WatchEvent } from '../watch/event.ts';
import type { Watch } from '../watch/watch.ts';
import { Cursor } from './cursor.ts';
import { FoldCursor } from './fold-cursor.ts';
import { BroadcastWatch } from './handle.ts';
import { objectKey } from './key.ts';
import { Mux } from './mux.ts';
import type { CursorOptions, Overflow } from './place.ts';

/** How a {@link Broadcaster} treats its watchers, unless a watcher asks for something else. */
export interface BroadcasterOptions<E> {
  /** Queue length per watcher, in events (with `coalesce`: in keys); a whole number >= 0, 100 by default. With 0, only a watcher that waits in a read gets an event. */
  readonly capacity?: number | undefined;
  /** What happens to an event that does not fit a watcher's queue; `wait` by default, which loses nothing. */
  readonly overflow?: Overflow | undefined;
  /** Events accepted ahead of distribution while a `wait` watcher is full; 25 by default. */
  readonly incoming?: number | undefined;
  /** Publishes that may wait for room before `publish` rejects with OVERLOADED; 10,000 by default. */
  readonly maxPending?: number | undefined;
  /** What `coalesce` folds by; `object.metadata`'s namespace and name by default, which objects of several kinds may share. */
  readonly keyOf?: ((event: E) => string) | undefined;
}

/** How one watcher wants to be treated. */
export interface WatchOptions<E> {
  /** This watcher's own queue length, in events (with `coalesce`: in keys). */
  readonly capacity?: number | undefined;
  /** This watcher's own overflow policy. */
  readonly overflow?: Overflow | undefined;
  /** Which events this watcher gets; what it rejects takes no room in its queue. Called once per event, in order. If it throws, this watch ends with that error; if it stops its own watch, what it was not asked about yet is neither queued nor counted. */
  readonly filter?: ((event: E) => boolean) | undefined;
  /** Events that are delivered first, through the filter. `capacity` grows to their number + 1 if it must. */
  readonly prefix?: readonly E[] | undefined;
  /** Stops the watch when it aborts. One that has aborted already is refused with its reason. */
  readonly signal?: AbortSignal | undefined;
  /** Called right before the first event after a gap is handed out, with the number of events lost. If it throws, this watch ends with that error. */
  readonly onGap?: ((missed: number) => void) | undefined;
}

export type { Overflow } from './place.ts';

const OVERFLOWS: readonly Overflow[] = ['wait', 'drop-newest', 'drop-oldest', 'disconnect', 'coalesce'];
const ACCEPTED: Promise<void> = Promise.resolve();

/**
 * One ordered sequence of events for any number of watchers, each with a bounded queue and an overflow policy of its own.
 *
 * - **Order**: all watchers see events in the order in which they were accepted, each event at most once.
 * - **Slow readers** harm only themselves, except by the policy `wait`, whose purpose it is to hold the publisher back: an
 *   abandoned `wait` watcher that is still referenced stalls `publish`; the four other policies never do.
 * - **Joining** is a position: a watcher sees every event accepted after `watch()` returned, and none from before.
 * - **Closing**: `shutdown` delivers what was accepted.
 *
 * All methods may be called at any time, also from inside a consumer, a filter or an `onGap`. Upstream: `watch.Broadcaster`.
 */
export class Broadcaster<E extends WatchEvent = WatchEvent> {
  readonly #mux: Mux<E>;
  readonly #capacity: number;
  readonly #overflow: Overflow;
  readonly #maxPending: number;
  /** What plain watchers are told, the last one: one object for all who want the same. */
  #plain: CursorOptions<E> | undefined;
  #closed: Promise<void> | undefined;

  /** @throws {WatchError} INVALID_ARGUMENT for an option that is not what it should be. */
  constructor(options: BroadcasterOptions<E> = {}) {
    const { capacity = 100, overflow = 'wait', incoming = 25, maxPending = 10_000, keyOf = objectKey } = options;
    this.#capacity = wholeNumber('capacity', capacity);
    this.#overflow = toOverflow(overflow);
    this.#maxPending = wholeNumber('maxPending', maxPending);
    this.#mux = new Mux({ capacity, incoming: wholeNumber('incoming', incoming), keyOf: callable('keyOf', keyOf) });
  }

  /** How many watches have not ended; 0 after a shutdown. One that overflowed by `disconnect` or `coalesce` has ended once it was read out. */
  get watchers(): number {
    return this.#mux.closed ? 0 : this.#mux.watchers;
  }

  /**
   * A watch from here on: sees every event that is accepted after this call, and none from before, also none that was
   * accepted and is not distributed yet. Starts at once: nothing is lost before the first read. Upstream: `Watch`, `WatchWithPrefix`.
   *
   * @throws {WatchError} CLOSED after `shutdown`; INVALID_ARGUMENT for a bad option; the signal's reason if it has aborted.
   */
  watch(options: WatchOptions<E> = {}): Watch<E> {
    const { filter, onGap, prefix = [], signal } = options;
    if (!Array.isArray(prefix)) throw invalid('prefix', prefix, 'an array');
    const own: CursorOptions<E> = {
      capacity: Math.max(wholeNumber('capacity', options.capacity ?? this.#capacity), prefix.length > 0 ? prefix.length + 1 : 0),
      overflow: toOverflow(options.overflow ?? this.#overflow),
      filter: callable('filter', filter),
      onGap: callable('onGap', onGap),
    };
    this.#refuseClosed('watch');
    signal?.throwIfAborted();
    const cursor = this.#join(this.#shared(own), prefix);
    if (signal?.aborted)
      cursor.stop(); // by the filter, when it was asked about the prefix
    else if (signal && !cursor.stopped) this.#mux.signals.add(cursor, signal);
    return new BroadcastWatch(cursor, this.#mux.forgotten);
  }

  /**
   * Resolves when the event is accepted: it has its place in the order, and will be distributed. Waits while the incoming
   * queue is full, that is, while a `wait` watcher holds things up. Otherwise it resolves within the turn: a loop that only
   * awaits `publish` gives watchers their events, but leaves timers and sockets no turn. A consumer with `wait` that awaits this in
   * its own loop may wait for itself. Upstream: `Action`.
   *
   * @throws {WatchError} (rejects) CLOSED after `shutdown`; OVERLOADED when `maxPending` publishes wait already;
   * INVALID_ARGUMENT for null and undefined.
   */
  publish(event: E): Promise<void> {
    try {
      if (this.tryPublish(event)) return ACCEPTED;
    } catch (error) {
      return Promise.reject(error);
    }
    if (this.#mux.pending < this.#maxPending) return this.#mux.acceptLater(event);
    const limit = this.#maxPending;
    return Promise.reject(
      new WatchError('OVERLOADED', `publish: ${limit} publishes wait for room already (maxPending)`, { limit }),
    );
  }

  /**
   * Never waits: false when the event cannot be accepted now. Upstream: `ActionOrDrop`.
   *
   * @throws {WatchError} CLOSED after `shutdown`; INVALID_ARGUMENT for null and undefined.
   */
  tryPublish(event: E): boolean {
    this.#refuseClosed('publish');
    if (event === undefined || event === null) throw invalid('event', event, 'an event');
    const accepted = this.#mux.accept(event);
    if (!accepted) this.#refuseClosed('publish'); // a filter has shut down meanwhile
    return accepted;
  }

  /**
   * Refuses new events and watches from now on, distributes what was accepted (and what publish calls from before still wait
   * for), then ends every watch; what is queued stays readable. Resolves when that is done. Idempotent. A stalled `wait`
   * watcher holds it up as it holds up publishing: pass a signal to give up, upon which such watchers lose (and count) what
   * does not fit, waiting publishes reject with CLOSED, every watch ends, and this rejects with the signal's reason.
   */
  shutdown(options: { signal?: AbortSignal | undefined } = {}): Promise<void> {
    const mux = this.#mux;
    const { signal } = options;
    if (!this.#closed) {
      // In place before anything moves: a filter may shut down, too.
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
      // Before there is a position: a filter that publishes must not come between prefix and stream.
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

/** A policy, or INVALID_ARGUMENT. */
export function toOverflow(overflow: Overflow): Overflow {
  return oneOf('overflow', overflow, OVERFLOWS);
}
