import { Observable, type Subscriber, type Subscription, takeWhile } from 'rxjs';
import { Broadcaster, type BroadcasterOptions, type WatchOptions } from '../broadcast/broadcaster.ts';
import { invalid, WatchError } from '../watch/errors.ts';
import type { WatchEvent } from '../watch/event.ts';
import { type PullSource, PullWatch } from '../watch/pull-watch.ts';
import type { Watch } from '../watch/watch.ts';

/**
 * Watches as observables and back. An observable pushes and cannot be held back, so a queue stands wherever the two meet:
 * towards RxJS it is the watcher's own, and every observer is fed as fast as it returns; from RxJS it is a bounded one
 * with an overflow policy (see {@link fromObservable}).
 */

/**
 * An observable of a broadcaster's events: each subscription makes a watcher of its own, at the moment of subscribing, and
 * returns it when it is unsubscribed, errors or completes.
 *
 * A `prefix` arrives before `subscribe` returns, everything else in a later turn. The end of the watch completes the observable;
 * its error, and whatever `broadcaster.watch` refuses (CLOSED, a bad option, an aborted signal), is an error notification. An
 * observer that throws harms nobody else: RxJS reports that by itself, and goes on. Only `watch` is asked for, so that what stands
 * in front of a broadcaster, such as the `HistoryRecorder` of a test, can be observed, too.
 */
export function observe<E extends WatchEvent>(
  broadcaster: Pick<Broadcaster<E>, 'watch'>,
  options?: WatchOptions<E>,
): Observable<E> {
  return new Observable((subscriber) => pump(broadcaster.watch(options), subscriber));
}

/**
 * One watch as an observable, for one subscription: it begins to read at `subscribe`, with what is queued, and returns the
 * watch when it is unsubscribed, errors or completes.
 *
 * A watch has one consumer, so a second subscription, also after the first one's end, is an error notification with
 * INVALID_ARGUMENT. For several observers at a time use RxJS' `share()` on the result, or {@link observe}.
 */
export function toObservable<E>(watch: Watch<E>): Observable<E> {
  let used = false;
  return new Observable((subscriber) => {
    if (used) throw invalid('toObservable', 'a second subscription', 'one subscription per watch; use share() or observe()');
    used = true;
    pump(watch, subscriber);
  });
}

function pump<E>(watch: Watch<E>, subscriber: Subscriber<E>): void {
  // First, so that an observer which unsubscribes inside its first event returns the watch.
  subscriber.add(() => void watch.return());
  try {
    // Bounded by what is queued now: an observer that publishes must not keep `subscribe` from returning.
    for (let left = watch.queued; left > 0 && !subscriber.closed; left--) {
      const event = watch.tryNext();
      if (event === undefined) break;
      subscriber.next(event);
    }
  } catch (error) {
    subscriber.error(error);
  }
  if (!subscriber.closed) void pumpBatches(watch, subscriber);
}

async function pumpBatches<E>(watch: Watch<E>, subscriber: Subscriber<E>): Promise<void> {
  try {
    for await (const batch of watch.batches()) {
      for (const event of batch) {
        if (subscriber.closed) return;
        subscriber.next(event);
      }
    }
    subscriber.complete();
  } catch (error) {
    subscriber.error(error);
  }
}

/** The queue between an observable and its watch. */
export interface FromObservableOptions<E> extends Omit<BroadcasterOptions<E>, 'maxPending'>, Pick<WatchOptions<E>, 'onGap'> {
  /** With `wait`: how many events are held beyond `capacity`, since an observable cannot be made to wait; 10,000 by default. */
  readonly incoming?: number | undefined;
}

const INCOMING = 10_000;

/**
 * An observable as a watch. It subscribes at once, so nothing is lost before the first read, and queues by the same policies
 * as a {@link Broadcaster}, with the same defaults: 100 events, `wait`.
 *
 * Nothing can make an observable wait. So `wait` means here: lose nothing, or fail. `capacity` + `incoming` events are held;
 * one more unsubscribes the observable, and the watch rejects with OVERLOADED (and that `limit`) behind all that it holds.
 * The other policies hold `capacity` events and do with one more what they always do.
 *
 * An error of the observable rejects one read, behind what is queued; its completion ends the watch behind what is queued.
 * `stop` and `return` unsubscribe, and so does the event by which `disconnect` cuts the watch.
 *
 * @throws {WatchError} INVALID_ARGUMENT for an option that is not what it should be.
 */
export function fromObservable<E extends WatchEvent>(
  observable: Observable<E>,
  options: FromObservableOptions<E> = {},
): Watch<E> {
  return new ObservableWatch(observable, options);
}

/** Between an observable and its watch: the queue of a broadcaster's only watcher, and how the observable has ended. */
class Intake<E extends WatchEvent> implements PullSource<E> {
  readonly queue: Watch<E>;
  private readonly broadcaster: Broadcaster<E>;
  /** So many events are held with `wait`. */
  private readonly limit: number;
  private subscription: Subscription | undefined = undefined;
  private failure: { readonly error: unknown } | undefined = undefined;

  constructor(options: FromObservableOptions<E>) {
    const { capacity = 100, incoming = INCOMING, onGap } = options;
    this.limit = capacity + incoming;
    this.broadcaster = new Broadcaster<E>({ ...options, incoming });
    this.queue = this.broadcaster.watch({ ...(onGap && { onGap }) });
  }

  open(observable: Observable<E>): void {
    // takeWhile ends the source inside its own event, also while it still is in `subscribe`.
    this.subscription = observable.pipe(takeWhile((event) => this.accepts(event))).subscribe({
      error: (error) => {
        this.failure = { error };
        void this.broadcaster.shutdown();
      },
      complete: () => void this.broadcaster.shutdown(),
    });
  }

  poll(): E | undefined {
    const { queue } = this;
    const event = queue.tryNext();
    if (event === undefined && this.failure !== undefined && queue.stopped && queue.queued === 0) throw this.failure.error;
    return event;
  }

  async pull(): Promise<IteratorResult<E, undefined>> {
    const result = await this.queue.next();
    if (result.done === true && this.failure !== undefined) throw this.failure.error;
    return result;
  }

  /** Nothing more comes in. What is here stays readable. */
  close(): void {
    this.subscription?.unsubscribe();
    // Rather than stop the queue: what it holds beyond its capacity has been taken from the source.
    void this.broadcaster.shutdown();
  }

  cancel(): void {
    this.subscription?.unsubscribe();
    void this.queue.return();
  }

  private accepts(event: E): boolean {
    if (this.broadcaster.tryPublish(event)) return !this.queue.stopped;
    const { limit } = this;
    throw new WatchError('OVERLOADED', `fromObservable: ${limit} events are unread, and an observable cannot wait`, { limit });
  }
}

class ObservableWatch<E extends WatchEvent> extends PullWatch<E> {
  private readonly queue: Watch<E>;

  constructor(observable: Observable<E>, options: FromObservableOptions<E>) {
    const intake = new Intake<E>(options);
    super(intake, { onStop: () => intake.close() });
    this.queue = intake.queue;
    intake.open(observable);
  }

  override get stopped(): boolean {
    return super.stopped || this.queue.stopped;
  }

  override get queued(): number {
    return super.queued + this.queue.queued;
  }

  override get dropped(): number {
    return super.dropped + this.queue.dropped;
  }

  // Whatever is to be had, a poll has: a read left waiting in the queue would take an event out of it.
  protected override idle(): void {}
}
