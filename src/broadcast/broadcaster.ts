import { verdictOf, whenAborted } from '../watch/abort.ts';
import { type Clock, systemClock } from '../watch/clock.ts';
import { callable, checkOptions, checkText, invalid, oneOf, WatchError, wholeNumber } from '../watch/errors.ts';
import { type ErrorEvent, type MissingError, toExpired, type WatchEvent } from '../watch/event.ts';
import { Failures } from '../watch/failures.ts';
import { type KeepingOverflow, OVERFLOWS, type Overflow } from '../watch/overflow.ts';
import type { Watch } from '../watch/watch.ts';
import { Cursor } from './cursor.ts';
import { objectKey } from './fold.ts';
import { Mux, type WatcherStats } from './mux.ts';
import { type CursorOptions, POLICIES } from './policies.ts';
import { type Routing, TopicViews, toTopicSet, toTopics } from './topics.ts';

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
  /**
   * The topics of an event: one, several, or none. Watchers that ask for `topics` get events by topic, and events of other topics
   * cost them nothing. Called once per event, when it is published; if it throws, `publish` fails with that error.
   */
  readonly topicsOf?: ((event: E) => string | readonly string[] | undefined) | undefined;
  /** Number of past events to keep, for watches that begin with `replay` or `after`; default 0. */
  readonly replay?: number | undefined;
  /** Also limits the total size of the events kept for `replay`, in bytes as returned by `sizeOf`; default no limit. */
  readonly replayBytes?: number | undefined;
  /**
   * The size of an event in bytes, a whole number. Required with `replayBytes`. Called once per event, when it is published; if it
   * throws, `publish` fails with that error.
   */
  readonly sizeOf?: ((event: E) => number) | undefined;
  /**
   * How long a `wait` watcher may hold up the publisher before `onError` is called with a TIMEOUT that names it, in
   * milliseconds; default 60,000. 0: forever.
   */
  readonly stalledMs?: number | undefined;
  /**
   * Called with that error. Errors that it throws are ignored. Default: `console.error`, once, and again when publishing
   * continues.
   */
  readonly onError?: ((error: unknown) => void) | undefined;
  /** Source of time for these. Default: the host's. */
  readonly clock?: Clock | undefined;
}

/** The numbers of a broadcaster, at one moment. */
export interface BroadcasterStats {
  /** Number of publishes that wait for room. */
  readonly pending: number;
  /** The watches that have not ended, in no particular order. */
  readonly watchers: readonly WatcherStats[];
}

/** Options of a broadcaster whose own policy never cuts a watch. */
export interface KeepingBroadcasterOptions<E> extends BroadcasterOptions<E> {
  readonly overflow?: KeepingOverflow | undefined;
}

/** Options of one watcher. */
export interface WatchOptions<E> {
  /** Names this watcher in statistics and reports. Default: none. */
  readonly name?: string | undefined;
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
  /**
   * Only events that have one of these topics (see `topicsOf`), each once, in the order in which they were published. The result
   * is that of a filter, but only matching events cost anything. With `filter`, topics come first. An empty array gets nothing.
   */
  readonly topics?: readonly string[] | undefined;
  /**
   * Begin with the latest events published before, at most this many and as many as the broadcaster keeps; default 0. The number
   * counts events before `topics` and `filter`. As with `prefix`, `capacity` grows to what is delivered first + 1.
   */
  readonly replay?: number | undefined;
  /**
   * Begin right after this `Watch.position` of an earlier watch of the same broadcaster, with everything published since.
   * If part of that is no longer kept, the watch delivers one ERROR with code 410, after the prefix if there is one, and ends.
   * Takes precedence over `replay`.
   */
  readonly after?: number | undefined;
  /** Stops the watch when it aborts. `watch` throws the signal's reason if it has already aborted. */
  readonly signal?: AbortSignal | undefined;
  /**
   * Called right before the first event after a gap is delivered, with the number of lost events. If it throws, or is async and
   * rejects, this watch ends with that error.
   */
  readonly onGap?: ((missed: number) => void) | undefined;
}

/** Options of a watcher that follows the broadcaster's own policy, from now on. */
export interface PlainWatchOptions<E> extends WatchOptions<E> {
  readonly overflow?: undefined;
  readonly after?: undefined;
}

/** Options of a watcher that is never cut. */
export interface KeepingWatchOptions<E> extends WatchOptions<E> {
  readonly overflow: KeepingOverflow;
  readonly after?: undefined;
}

export type { Overflow } from '../watch/overflow.ts';
export type { WatcherStats } from './mux.ts';

export const BROADCASTER_OPTIONS: readonly (keyof BroadcasterOptions<never>)[] = [
  'capacity',
  'overflow',
  'incoming',
  'maxPending',
  'keyOf',
  'topicsOf',
  'replay',
  'replayBytes',
  'sizeOf',
  'stalledMs',
  'onError',
  'clock',
];
const WATCH_OPTIONS: readonly (keyof WatchOptions<never>)[] = [
  'capacity',
  'overflow',
  'filter',
  'prefix',
  'topics',
  'replay',
  'after',
  'signal',
  'onGap',
  'name',
];

/** The `capacity` of a broadcaster whose only limit is the number of objects. Not exported from the package. */
export const UNLIMITED: number = Number.MAX_SAFE_INTEGER;

const ACCEPTED: Promise<void> = Promise.resolve();

/** Returns the internals of a broadcaster. Not exported from the package: for the bridge, which keeps no events of its own. */
export function muxOf<E>(broadcaster: { publish(event: E): Promise<void> }): Mux<E> {
  return insides.get(broadcaster) as Mux<E>;
}
const insides: WeakMap<object, object> = new WeakMap();

/**
 * Distributes one ordered sequence of events to any number of watchers. Each watcher has a bounded queue and an overflow policy.
 *
 * - **Order**: all watchers see events in the order in which they were accepted, each event at most once.
 * - **Slow readers** harm only themselves. The exception is the policy `wait`, which holds the publisher back: an abandoned
 *   `wait` watcher that is still referenced stalls `publish`. The four other policies never do.
 * - **Joining**: a watcher sees every event accepted after `watch()` returned, and none accepted before.
 * - **Closing**: `shutdown` delivers every accepted event.
 *
 * All methods may be called at any time, even from inside a consumer, a filter or an `onGap`. Upstream: `watch.Broadcaster`.
 *
 * `Lost` is what `watch()` may deliver besides `E`: {@link ErrorEvent} if the broadcaster's own policy may cut a watch and `E` has
 * no such event.
 */
export interface Broadcaster<E extends WatchEvent = WatchEvent, Lost extends ErrorEvent = never> {
  /**
   * Number of watches that have not ended; 0 after a shutdown. A watch that `disconnect` or `coalesce` cut ends when it has been
   * read to its end.
   */
  readonly watchers: number;

  /**
   * Starts a watch. It sees every event accepted after this call and none accepted before, even if that one is not distributed
   * yet. Nothing is lost before the first read. Upstream: `Watch`, `WatchWithPrefix`.
   *
   * A watch that may be cut (`disconnect`, `coalesce`) or may begin too late (`after`) delivers an {@link ErrorEvent} then, which
   * is part of its type.
   *
   * @throws {WatchError} CLOSED after `shutdown`; INVALID_ARGUMENT for an invalid option; the signal's reason if it has aborted.
   */
  watch(options?: PlainWatchOptions<E>): Watch<E | Lost>;
  watch(options: KeepingWatchOptions<E>): Watch<E>;
  watch(options: WatchOptions<E> | undefined): Watch<E | MissingError<E>>;

  /**
   * Publishes an event. Resolves when the event is accepted: it has its place in the order and will be distributed. Waits while
   * the incoming queue is full, that is, while a `wait` watcher holds up distribution. Upstream: `Action`.
   *
   * Resolves within the same turn if there is room. A loop that only awaits `publish` lets watchers read, but no timer or socket
   * run. A `wait` consumer that awaits `publish` inside its own read loop may deadlock.
   *
   * @throws {WatchError} (rejects) CLOSED after `shutdown`; OVERLOADED if `maxPending` publishes are waiting; INVALID_ARGUMENT
   * for anything but an object with a `type` that is a string.
   */
  publish(event: E): Promise<void>;

  /**
   * Publishes an event without waiting. Returns false if it cannot be accepted now, because a `wait` watcher holds up distribution;
   * then no watcher gets it. Upstream: `ActionOrDrop`.
   *
   * @throws {WatchError} CLOSED after `shutdown`; INVALID_ARGUMENT as for `publish`.
   */
  tryPublish(event: E): boolean;

  /**
   * Returns what each watcher is doing, for monitoring: for example, which `wait` watcher the publisher is waiting for. Looks at every
   * watcher, and lets its filter catch up.
   */
  stats(): BroadcasterStats;

  /**
   * Closes the broadcaster: refuses new events and watches, distributes all accepted events and pending publishes, then ends
   * every watch. Queued events stay readable. Resolves when done. Idempotent.
   *
   * A stalled `wait` watcher delays it as it delays publishing. Abort `signal` to give up: such watchers then lose (and count)
   * what does not fit, pending publishes reject with CLOSED, every watch ends, and this rejects with the signal's reason.
   */
  shutdown(options?: { signal?: AbortSignal | undefined }): Promise<void>;
}

/**
 * Creates a {@link Broadcaster}. With a policy that may cut a watch, the ERROR of a cut belongs to what `watch()` delivers.
 *
 *     new Broadcaster<Order>()                             // a Broadcaster<Order>: its watches deliver Order
 *     new Broadcaster<Order>({ overflow: 'disconnect' })   // a Broadcaster<Order, ErrorEvent>: Order or ErrorEvent
 *
 * A subclass does not know the options it will get, so it states both types if `E` has no ERROR: `extends Broadcaster<E, never>`.
 */
export interface BroadcasterConstructor {
  /** @throws {WatchError} INVALID_ARGUMENT for an invalid option. */
  new <E extends WatchEvent = WatchEvent>(options?: KeepingBroadcasterOptions<E>): Broadcaster<E>;
  new <E extends WatchEvent = WatchEvent>(options: BroadcasterOptions<E> | undefined): Broadcaster<E, MissingError<E>>;
  new <E extends WatchEvent, Lost extends ErrorEvent>(
    options?: [Lost] extends [never] ? KeepingBroadcasterOptions<E> : BroadcasterOptions<E>,
  ): Broadcaster<E, Lost>;
}

// The type of a broadcaster or a watch depends only on its options. In here they are all the same.
export const Broadcaster: BroadcasterConstructor = class Broadcaster<E extends WatchEvent> {
  readonly #mux: Mux<E>;
  readonly #capacity: number;
  readonly #overflow: Overflow;
  readonly #maxPending: number;
  readonly #topicsOf: BroadcasterOptions<E>['topicsOf'];
  readonly #sizeOf: BroadcasterOptions<E>['sizeOf'];
  /** The options of the last watcher without callbacks. Watchers with the same options share the object. */
  #plain: CursorOptions<E> | undefined;
  #closed: Promise<void> | undefined;

  constructor(options: BroadcasterOptions<E> = {}) {
    checkOptions(options, BROADCASTER_OPTIONS);
    const { capacity = 100, overflow = 'wait', incoming = 25, maxPending = 10_000, keyOf = objectKey, topicsOf } = options;
    const { replay = 0, replayBytes = Infinity, stalledMs = 60_000, onError, clock = systemClock } = options;
    this.#capacity = wholeNumber('capacity', capacity);
    this.#overflow = toOverflow(overflow);
    this.#maxPending = wholeNumber('maxPending', maxPending);
    this.#topicsOf = callable('topicsOf', topicsOf);
    this.#sizeOf = toSizeOf(options);
    this.#mux = new Mux({
      capacity,
      incoming: wholeNumber('incoming', incoming),
      keyOf: callable('keyOf', keyOf),
      forgets: capacity === UNLIMITED,
      topics: topicsOf && new TopicViews(),
      replayItems: wholeNumber('replay', replay),
      replayBytes,
      stalls: {
        stalledMs: wholeNumber('stalledMs', stalledMs),
        clock,
        failures: new Failures('broadcaster', { onError, clock }),
      },
    });
    insides.set(this, this.#mux);
  }

  get watchers(): number {
    return this.#mux.closed ? 0 : this.#mux.watchers;
  }

  watch(options: WatchOptions<E> = {}): Watch<E> {
    checkOptions(options, WATCH_OPTIONS);
    const { filter, onGap, prefix, signal, name } = options;
    if (prefix !== undefined && !Array.isArray(prefix)) throw invalid('prefix', prefix, 'an array');
    prefix?.forEach(checkEvent);
    const own: CursorOptions<E> = {
      capacity: wholeNumber('capacity', options.capacity ?? this.#capacity),
      policy: POLICIES[toOverflow(options.overflow ?? this.#overflow)],
      filter: callable('filter', filter),
      onGap: callable('onGap', onGap),
      name: name === undefined ? name : checkText('name', name),
    };
    const topics = this.#topicsFor(options);
    this.#checkStart(options);
    this.#refuseClosed('watch');
    signal?.throwIfAborted();
    return this.#mux.handleOf(this.#join(own, { ...options, topics }), signal);
  }

  publish(event: E): Promise<void> {
    try {
      const routing = this.#check(event);
      if (this.#accept(event, routing)) return ACCEPTED;
      const limit = this.#maxPending;
      if (this.#mux.pending < limit) return this.#mux.acceptLater(event, routing);
      throw new WatchError('OVERLOADED', `publish: ${limit} publishes already wait for room (maxPending)`, { limit });
    } catch (error) {
      return Promise.reject(error);
    }
  }

  tryPublish(event: E): boolean {
    return this.#accept(event, this.#check(event));
  }

  /** Refuses anything that cannot be published. Returns the event's topics and its size, as far as they are needed. */
  #check(event: E): Routing | undefined {
    this.#refuseClosed('publish');
    checkEvent(event);
    if (!this.#topicsOf && !this.#sizeOf) return undefined;
    const topics = toTopics(this.#topicsOf?.(event));
    const bytes = this.#sizeOf ? wholeNumber('sizeOf', this.#sizeOf(event)) : 0;
    this.#refuseClosed('publish'); // one of them has shut the broadcaster down
    return { topics, bytes };
  }

  #accept(event: E, routing: Routing | undefined): boolean {
    const accepted = this.#mux.accept(event, routing);
    if (!accepted) this.#refuseClosed('publish'); // a filter has shut the broadcaster down
    return accepted;
  }

  stats(): BroadcasterStats {
    return { watchers: this.#mux.stats(), pending: this.#mux.pending }; // in this order: filters may publish
  }

  shutdown(options: { signal?: AbortSignal | undefined } = {}): Promise<void> {
    const mux = this.#mux;
    const { signal } = checkOptions(options, ['signal']);
    if (!this.#closed) {
      // Set before anything moves, because a filter may call `shutdown` too.
      this.#closed = new Promise((resolve) => {
        mux.onClosed = resolve;
      });
      mux.end();
    }
    if (mux.closed || !signal) return this.#closed;
    return this.#closeOrGiveUp(this.#closed, signal);
  }

  #closeOrGiveUp(closed: Promise<void>, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const leave = whenAborted(signal, (reason) => {
        this.#mux.force();
        reject(reason);
      });
      closed.then(() => {
        leave();
        resolve();
      });
    });
  }

  #shared(own: CursorOptions<E>): CursorOptions<E> {
    if (own.filter || own.onGap) return own;
    const plain = this.#plain;
    if (plain?.capacity === own.capacity && plain.policy === own.policy && plain.name === own.name) return plain;
    this.#plain = own;
    return own;
  }

  #topicsFor({ topics }: WatchOptions<E>): readonly string[] | undefined {
    if (topics === undefined) return undefined;
    if (!this.#topicsOf) throw invalid('topics', topics, 'none, because this broadcaster has no topicsOf');
    return toTopicSet(topics);
  }

  #checkStart({ after, replay = 0 }: WatchOptions<E>): void {
    wholeNumber('replay', replay);
    if (after !== undefined) wholeNumber('after', after);
    if (this.#mux.all.window || (after === undefined && replay === 0)) return;
    const asked = after === undefined ? 'replay' : 'after';
    throw invalid(asked, after ?? replay, 'none, because this broadcaster keeps no events (its option replay)');
  }

  /** Starts a cursor: now, or at a place in the past. */
  #join(own: CursorOptions<E>, { prefix, topics, after, replay = 0 }: WatchOptions<E>): Cursor<E> {
    const { all, log } = this.#mux;
    const passed: E[] = [];
    let failure: { error: unknown } | undefined;
    try {
      // Runs before the cursor takes its position, so an event the filter publishes cannot come between prefix and stream.
      for (const event of prefix ?? []) if (!own.filter || verdictOf('filter', own.filter(event))) passed.push(event);
    } catch (error) {
      failure = { error };
    }
    const view = topics ? this.#mux.viewOf(topics) : all;
    const oldest = all.window?.start ?? Infinity;
    const from = after ?? (replay > 0 ? Math.max(oldest, log.head - replay) : undefined);
    const isKnown = from !== undefined && from >= oldest && from <= log.head;
    const start = isKnown && view.window ? view.window.positionOf(from) : view.log.end;
    const first = prefix || isKnown ? (prefix?.length ?? 0) + view.log.end - start + 1 : 0;
    const cursor = new Cursor(view, this.#shared(first > own.capacity ? { ...own, capacity: first } : own), start);
    cursor.join(passed, { place: from ?? log.end, failure });
    if (from !== undefined && !isKnown) cursor.refuse(from, toExpired(`the events since position ${from} are not kept`));
    return cursor;
  }

  #refuseClosed(what: string): void {
    if (this.#mux.closing) throw new WatchError('CLOSED', `${what}: the broadcaster is shut down`);
  }
};

/** Returns a valid policy; throws INVALID_ARGUMENT otherwise. */
export function toOverflow(overflow: Overflow): Overflow {
  return oneOf('overflow', overflow, OVERFLOWS);
}

function checkEvent(event: WatchEvent): void {
  if (typeof event?.type !== 'string') throw invalid('event', event, 'an event, whose type is a string');
}

/** Returns `sizeOf`, if it is needed. */
function toSizeOf<E>({ replayBytes, sizeOf }: BroadcasterOptions<E>): BroadcasterOptions<E>['sizeOf'] {
  callable('sizeOf', sizeOf);
  if (replayBytes === undefined) return undefined;
  wholeNumber('replayBytes', replayBytes);
  if (!sizeOf) throw invalid('sizeOf', sizeOf, 'a function, because replayBytes is set');
  return sizeOf;
}
