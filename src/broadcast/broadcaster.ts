import { whenAborted } from '../watch/abort.ts';
import { systemClock } from '../watch/clock.ts';
import { callable, checkOptions, checkText, invalid, oneOf, requireMethod, WatchError, wholeNumber } from '../watch/errors.ts';
import type { ErrorEvent, MissingError, WatchEvent } from '../watch/event.ts';
import { toExpired } from '../watch/event.ts';
import { Failures } from '../watch/failures.ts';
import { OVERFLOWS, type Overflow } from '../watch/overflow.ts';
import type { Watch } from '../watch/watch.ts';
import type {
  BroadcasterOptions,
  BroadcasterStats,
  KeepingBroadcasterOptions,
  KeepingWatchOptions,
  PlainWatchOptions,
  WatchOptions,
} from './broadcaster-options.ts';
import { Cursor } from './cursor.ts';
import { objectKey } from './fold.ts';
import { Mux } from './mux.ts';
import { type CursorOptions, POLICIES } from './policies.ts';
import { type Routing, TopicViews, toTopicSet, toTopics } from './topics.ts';

export type { Overflow } from '../watch/overflow.ts';
export type {
  BroadcasterOptions,
  BroadcasterStats,
  KeepingBroadcasterOptions,
  KeepingWatchOptions,
  PlainWatchOptions,
  WatcherStats,
  WatchOptions,
} from './broadcaster-options.ts';

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

/** Returns the inside of a broadcaster. Not exported from the package: for the bridge, which keeps no events of its own. */
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
 * All methods may be called at any time, also from inside a consumer, a filter or an `onGap`. Upstream: `watch.Broadcaster`.
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

// Which of its types a broadcaster or a watch has depends only on options. In here they are all the same.
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
        clock: requireMethod('clock', clock, 'schedule', 'a Clock'),
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

  /** Refuses what cannot be published. Returns the event's topics and its size, as far as they are needed. */
  #check(event: E): Routing | undefined {
    this.#refuseClosed('publish');
    if (typeof event?.type !== 'string') throw invalid('event', event, 'an event, whose type is a string');
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
    const watchers = this.#mux.stats();
    return { pending: this.#mux.pending, watchers };
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
    const [asked, value] = after === undefined ? ['replay', replay] : ['after', after];
    throw invalid(asked, value, 'none, because this broadcaster keeps no events (its option replay)');
  }

  /** Starts a cursor: now, or at a place in the past. */
  #join(own: CursorOptions<E>, { prefix, topics, after, replay = 0 }: WatchOptions<E>): Cursor<E> {
    const { all, log } = this.#mux;
    const passed: E[] = [];
    let failure: { error: unknown } | undefined;
    try {
      // Runs before the cursor takes its position, so an event the filter publishes cannot come between prefix and stream.
      for (const event of prefix ?? []) if (!own.filter || own.filter(event)) passed.push(event);
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

/** Returns `sizeOf`, if it is needed. */
function toSizeOf<E>({ replayBytes, sizeOf }: BroadcasterOptions<E>): BroadcasterOptions<E>['sizeOf'] {
  callable('sizeOf', sizeOf);
  if (replayBytes === undefined) return undefined;
  wholeNumber('replayBytes', replayBytes);
  if (!sizeOf) throw invalid('sizeOf', sizeOf, 'a function, because replayBytes is set');
  return sizeOf;
}
