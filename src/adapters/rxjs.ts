import { Observable, type Subscriber, type Subscription, takeWhile } from 'rxjs';
import {
  Broadcaster,
  type BroadcasterOptions,
  type KeepingWatchOptions,
  type PlainWatchOptions,
  type WatchOptions,
} from '../broadcast/broadcaster.ts';
import { POLICIES } from '../broadcast/policies.ts';
import { checkOptions, invalid, requireMethod, WatchError, wholeNumber } from '../watch/errors.ts';
import type { MissingError, WatchEvent } from '../watch/event.ts';
import type { KeepingOverflow } from '../watch/overflow.ts';
import { Batches, Iteration } from '../watch/reader.ts';
import { soon } from '../watch/turn.ts';
import type { Watch, WatchBatches } from '../watch/watch.ts';

/**
 * Converts watches to observables and back. An observable pushes and cannot be slowed down, so there is a queue wherever the two
 * meet. Towards RxJS it is the watcher's own queue, and every observer is fed as fast as it returns. From RxJS it is a bounded
 * queue with an overflow policy (see {@link fromObservable}).
 */

/** A broadcaster of events `E`, or a wrapper around one. `Plain` is what its `watch()` delivers without options. */
export interface Watchable<E extends WatchEvent, Plain = E> {
  watch(options?: PlainWatchOptions<E>): Watch<Plain>;
  watch(options: KeepingWatchOptions<E>): Watch<E>;
  watch(options: WatchOptions<E> | undefined): Watch<unknown>;
}

/**
 * Returns an observable of a broadcaster's events. Each subscription creates its own watcher when it subscribes, and returns that
 * watcher when it unsubscribes, errors or completes.
 *
 * What is queued at once, such as a `prefix` or a `replay`, arrives before `subscribe` returns, everything else in a later turn.
 * The end of the watch completes the observable. The ERROR event of a watch that was cut is a value. An error of the watch
 * becomes an error notification, and so does whatever `broadcaster.watch` throws: CLOSED, INVALID_ARGUMENT, the reason of an
 * aborted signal. If an observer throws, RxJS reports that and goes on; no other observer is affected. A subscription that begins
 * within the event in which another one of this observable ends, as with `retry` or `repeat`, continues with its queue, unless
 * `prefix`, `replay` or `after` say where it begins. Only `watch` is used, so a wrapper around a broadcaster, such as a test's
 * `HistoryRecorder`, can also be observed.
 */
export function observe<E extends WatchEvent, Plain = E>(
  broadcaster: Watchable<E, Plain>,
  options?: PlainWatchOptions<E>,
): Observable<Plain>;
export function observe<E extends WatchEvent>(broadcaster: Watchable<E, unknown>, options: KeepingWatchOptions<E>): Observable<E>;
export function observe<E extends WatchEvent>(
  broadcaster: Watchable<E, unknown>,
  options: WatchOptions<E> | undefined,
): Observable<E | MissingError<E>>;
export function observe<E extends WatchEvent>(
  broadcaster: Watchable<E, unknown>,
  options?: WatchOptions<E>,
): Observable<unknown> {
  requireMethod('broadcaster', broadcaster, 'watch', 'a Broadcaster');
  const { prefix, replay, after } = options ?? {};
  // One of these says where a subscription begins.
  const continues = prefix === undefined && !replay && after === undefined;
  const subscriptions = new Subscriptions(() => broadcaster.watch(options), continues);
  return new Observable((subscriber) => subscriptions.begin(subscriber));
}

/**
 * Returns a watch as an observable for one subscription. On `subscribe` it starts to read, with the queued events. It returns the
 * watch when it unsubscribes, errors or completes.
 *
 * A watch has one consumer, so a second subscription fails with INVALID_ARGUMENT, even after the first one has ended; only one that
 * begins within the event in which the first one ends, as with `retry`, continues with it. If that event was queued at `subscribe`, the
 * watch is returned a microtask later. For several observers, use RxJS' `share()` on the result, or {@link observe}.
 */
export function toObservable<E>(watch: Watch<E>): Observable<E> {
  requireMethod('watch', watch, 'tryNext', 'a Watch');
  let used = false;
  const open = (): Watch<E> => {
    if (used) throw invalid('toObservable', 'a second subscription', 'one subscription per watch; use share() or observe()');
    used = true;
    return watch;
  };
  const subscriptions = new Subscriptions(open, true);
  return new Observable((subscriber) => subscriptions.begin(subscriber));
}

/** A watch, the batch that was taken from it, and how much of that was delivered. */
interface Place<E> {
  readonly watch: Watch<E>;
  batch: readonly E[];
  at: number;
}

/**
 * The subscriptions of one observable. One that ends within one of its own events may be followed at once by another, as with
 * `retry` and `repeat`, which then continues in its place. A `Subject`, too, would go on with the next event.
 *
 *     event ---> observer ---> error, complete, unsubscribe ---> left ---> subscribe, before the observer returns: continues there
 *                                                                  '-----> otherwise: the watch is returned
 *
 * An observer of an event that was queued at the first `subscribe` has not returned until that has, and `retry` waits for it.
 */
class Subscriptions<E> {
  readonly #open: () => Watch<E>;
  readonly #continues: boolean;
  /** Where the subscription that has just ended was. */
  #left: Place<E> | undefined;

  /** @param continues whether a further subscription may continue; otherwise each begins with `open`. */
  constructor(open: () => Watch<E>, continues: boolean) {
    this.#open = open;
    this.#continues = continues;
  }

  begin(subscriber: Subscriber<E>): void {
    const left = this.#left;
    this.#left = undefined;
    const place = left ?? { watch: this.#open(), batch: [], at: 0 };
    let delivering = false;
    // Added first, so that an observer that unsubscribes in its first event returns the watch.
    subscriber.add(() => {
      if (delivering && this.#continues) this.#left = place;
      else void place.watch.return();
    });
    const deliver = (event: E): void => {
      delivering = true;
      subscriber.next(event);
      delivering = false;
    };
    const leave = (): void => {
      if (this.#left !== place) return;
      this.#left = undefined;
      void place.watch.return();
    };
    if (!left) deliverQueued(place.watch, subscriber, deliver);
    if (subscriber.closed)
      soon(leave); // `retry` subscribes again when `subscribe` has returned
    else
      void deliverBatches(place, subscriber, (event) => {
        deliver(event);
        leave();
      });
  }
}

/**
 * Delivers what is queued now, but nothing that arrives meanwhile: an observer that publishes must not keep `subscribe` from
 * returning.
 */
function deliverQueued<E>(watch: Watch<E>, subscriber: Subscriber<E>, deliver: (event: E) => void): void {
  try {
    for (let left = watch.queued; left > 0 && !subscriber.closed; left--) {
      const event = watch.tryNext();
      if (event === undefined) break;
      deliver(event);
    }
  } catch (error) {
    subscriber.error(error);
  }
}

async function deliverBatches<E>(place: Place<E>, subscriber: Subscriber<E>, deliver: (event: E) => void): Promise<void> {
  if (place.at < place.batch.length) await null; // everything but a prefix arrives in a later turn
  try {
    // Not `for await`: leaving it would end a watch that another subscription continues with.
    const batches = place.watch.batches();
    for (;;) {
      while (place.at < place.batch.length) {
        if (subscriber.closed) return;
        deliver(place.batch[place.at++] as E);
      }
      if (subscriber.closed) return;
      const { done, value } = await batches.next();
      if (done) break;
      place.batch = value;
      place.at = 0;
    }
    subscriber.complete();
  } catch (error) {
    subscriber.error(error);
  }
}

/** Options of {@link fromObservable}: the queue between an observable and its watch. */
export interface FromObservableOptions<E>
  extends Pick<BroadcasterOptions<E>, 'capacity' | 'overflow' | 'keyOf'>,
    Pick<WatchOptions<E>, 'onGap'> {
  /** With `wait`: number of events held beyond `capacity`, because an observable cannot be made to wait; default 10,000. */
  readonly incoming?: number | undefined;
}

/** Options of {@link fromObservable} with a policy that never cuts the watch. */
export interface KeepingFromObservableOptions<E> extends FromObservableOptions<E> {
  readonly overflow?: KeepingOverflow | undefined;
}

const INCOMING = 10_000;

/**
 * Returns an observable as a watch. It subscribes at once, so nothing is lost before the first read. It queues with the policies
 * and defaults of a {@link Broadcaster}: 100 events, `wait`.
 *
 * An observable cannot be made to wait, so `wait` here means to lose nothing or to fail. `capacity` + `incoming` events are held.
 * At the next event it unsubscribes, and after all held events a read rejects with OVERLOADED (whose `limit` is that sum). The
 * other policies hold `capacity` events and treat one more as usual.
 *
 * An error of the observable rejects one read, after the queued events. Its completion ends the watch after the queued events.
 * `stop` and `return` unsubscribe, and so does the event at which `disconnect` cuts the watch.
 *
 * @throws {WatchError} INVALID_ARGUMENT for an invalid option.
 */
export function fromObservable<E extends WatchEvent>(
  observable: Observable<E>,
  options?: KeepingFromObservableOptions<E>,
): Watch<E>;
export function fromObservable<E extends WatchEvent>(
  observable: Observable<E>,
  options: FromObservableOptions<E> | undefined,
): Watch<E | MissingError<E>>;
export function fromObservable<E extends WatchEvent>(
  observable: Observable<E>,
  options: FromObservableOptions<E> = {},
): Watch<E> {
  requireMethod('observable', observable, 'pipe', 'an Observable');
  return new ObservableWatch(observable, checkOptions(options, ['capacity', 'overflow', 'incoming', 'keyOf', 'onGap']));
}

/** The queue of a broadcaster's only watcher, fed by an observable, and how the observable has failed. */
class ObservableWatch<E extends WatchEvent> extends Iteration implements Watch<E> {
  private readonly broadcaster: Pick<Broadcaster<E>, 'tryPublish'>;
  private readonly queue: Watch<E>;
  /** Maximum number of unread events with `wait`. */
  private readonly limit: number;
  private subscription: Subscription | undefined = undefined;
  /** Why the observable failed. Cleared when a read has reported it. */
  private failure: { readonly error: unknown } | undefined = undefined;
  /** Number of pending reads. They come before a `tryNext`. */
  private pending: number = 0;

  constructor(observable: Observable<E>, { incoming = INCOMING, onGap, ...options }: FromObservableOptions<E>) {
    super();
    const { capacity = 100, overflow = 'wait' } = options;
    this.limit = wholeNumber('capacity', capacity) + wholeNumber('incoming', incoming);
    const waits = POLICIES[overflow]?.holdsPublisher; // undefined for no policy, which Broadcaster refuses
    // One queue, not a queue and a line before it: everything held can be read, and counts.
    const broadcaster = new Broadcaster<E>({ ...options, capacity: waits ? this.limit : capacity, incoming: 0, stalledMs: 0 });
    this.broadcaster = broadcaster;
    this.queue = broadcaster.watch({ onGap }) as Watch<E>; // the type of `fromObservable` has the ERROR
    // takeWhile can unsubscribe from within an event, even while `subscribe` is still running.
    this.subscription = observable.pipe(takeWhile((event) => this.accepts(event))).subscribe({
      error: (error) => {
        this.failure = { error };
        this.queue.stop();
      },
      complete: () => this.queue.stop(),
    });
  }

  get stopped(): boolean {
    return this.queue.stopped;
  }

  get queued(): number {
    return this.queue.queued;
  }

  get dropped(): number {
    return this.queue.dropped;
  }

  next(): Promise<IteratorResult<E, undefined>> {
    return this.read(this.queue.next());
  }

  tryNext(): E | undefined {
    try {
      const event = this.queue.tryNext();
      if (event === undefined && this.pending === 0 && this.queue.queued === 0) this.report();
      return event;
    } catch (error) {
      this.leave();
      throw error;
    }
  }

  batches(): WatchBatches<E> {
    const batches = this.queue.batches();
    return new Batches(this, () => this.read(batches.next()));
  }

  stop(): void {
    this.subscription?.unsubscribe();
    this.queue.stop();
  }

  return(): Promise<IteratorResult<E, undefined>> {
    this.leave();
    return this.queue.return();
  }

  private async read<T>(reading: Promise<IteratorResult<T, undefined>>): Promise<IteratorResult<T, undefined>> {
    this.pending++;
    try {
      const result = await reading;
      if (result.done === true) this.report();
      return result;
    } catch (error) {
      this.leave(); // an `onGap` or `keyOf` that throws ends the queue
      throw error;
    } finally {
      this.pending--;
    }
  }

  /** Throws the error of the observable, once. */
  private report(): void {
    const { failure } = this;
    this.failure = undefined;
    if (failure !== undefined) throw failure.error;
  }

  private leave(): void {
    this.subscription?.unsubscribe();
    this.failure = undefined;
  }

  private accepts(event: E): boolean {
    if (this.broadcaster.tryPublish(event)) return !this.queue.stopped;
    const { limit } = this;
    throw new WatchError('OVERLOADED', `fromObservable: ${limit} events are unread, and an observable cannot wait`, { limit });
  }
}
