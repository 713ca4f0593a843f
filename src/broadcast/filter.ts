import { invalid, requireMethod } from '../watch/errors.ts';
import { PullWatch } from '../watch/pull-watch.ts';
import type { Watch } from '../watch/watch.ts';

/** The watch that {@link filter} returns. It reads upstream only while it is read itself. */
export class FilterWatch<E, F> extends PullWatch<F> {
  private readonly watch: Watch<E>;

  constructor(watch: Watch<E>, fn: (event: E) => F | undefined) {
    requireMethod('watch', watch, 'tryNext', 'a Watch');
    if (typeof fn !== 'function') throw invalid('fn', fn, 'a function');
    super({
      async pull() {
        for (;;) {
          const { done, value } = await watch.next();
          if (done) return { done, value };
          const kept = fn(value);
          if (kept !== undefined) return { done: false, value: kept };
        }
      },
      poll() {
        for (;;) {
          const event = watch.tryNext();
          if (event === undefined) return undefined;
          const kept = fn(event);
          if (kept !== undefined) return kept;
        }
      },
      cancel: () => void watch.return(),
    });
    this.watch = watch;
  }

  override get stopped(): boolean {
    return super.stopped || this.watch.stopped;
  }

  override get queued(): number {
    return super.queued + this.watch.queued;
  }

  override get dropped(): number {
    return super.dropped + this.watch.dropped;
  }

  /** Upstream ends, and with it this watch, once what is queued there has been read. */
  protected override end(): void {
    this.watch.stop();
  }

  // Polling upstream has already started its source. A read left pending there would take an event out of upstream's queue.
  protected override idle(): void {}
}

/**
 * Returns a watch of what `fn` makes of each event. `fn` returns the event, another one in its place, or undefined to drop it.
 *
 * - Lazy: `fn` runs when the result is read, once per upstream event, in order, never concurrently. The result has no queue of
 *   its own. A pending read requests at most one upstream event; a batch takes all queued events.
 * - `stop` is forwarded: events queued upstream still come through, then the end. `return` (or `break`) returns upstream.
 * - If `fn` throws, one read rejects with that error after the events that passed before, the result ends, and upstream is
 *   returned. Other readers of the same source are not affected.
 * - `dropped` is what upstream lost, plus a passed event that `return` discarded. Events that `fn` drops are not counted.
 *   `queued` is an upper bound, because `fn` has not seen those events yet. `stopped` follows upstream.
 *
 * An event of `undefined` cannot be told from a dropped one. To follow a selector, use `filterTransitions`: `filter` does not
 * change event types, so an object that starts or stops matching appears as a change of an unknown object, or not at all.
 *
 * Upstream: `watch.Filter`; this one cannot get stuck on a consumer that stopped without draining.
 *
 * @throws {WatchError} INVALID_ARGUMENT for anything but a watch and a function.
 */
export function filter<E, F = E>(watch: Watch<E>, fn: (event: E) => F | undefined): Watch<F> {
  return new FilterWatch(watch, fn);
}

/**
 * A watch that records every event that passes through it, for tests and diagnosis. It keeps all of them as long as it lives, so
 * do not leave one on an endless watch. Reads, `stop` and errors work as in {@link filter}.
 *
 * Upstream: `watch.Recorder`.
 */
export class Recorder<E> extends FilterWatch<E, E> {
  private readonly seen: E[];

  constructor(watch: Watch<E>) {
    const seen: E[] = [];
    super(watch, (event) => {
      seen.push(event);
      return event;
    });
    this.seen = seen;
  }

  /** Returns the events recorded so far, in order: a new array of the same event objects. */
  events(): E[] {
    return [...this.seen];
  }
}
