import { PullWatch } from '../watch/pull-watch.ts';
import type { Watch } from '../watch/watch.ts';

/** What {@link filter} makes: it reads the upstream watch only when it is read itself. */
export class FilterWatch<E, F> extends PullWatch<F> {
  private readonly watch: Watch<E>;

  constructor(watch: Watch<E>, fn: (event: E) => F | undefined) {
    super(
      {
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
      },
      { onStop: () => watch.stop() },
    );
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

  // A poll of the upstream watch has moved its source already; a read left waiting there would take an event out of its queue.
  protected override idle(): void {}
}

/**
 * Passes on what `fn` makes of each event: return the event, another one in its place, or undefined to leave it out.
 *
 * - Lazy: `fn` runs when the result is read, once per upstream event, in order, never twice at a time. The result has no queue
 *   of its own; a read that waits has one event of the upstream watch on its way at most, and a batch takes what is queued.
 * - `stop` is forwarded: what upstream has queued still comes through, then the end. `return` (or `break`) returns upstream.
 * - If `fn` throws, the result rejects with that error once, behind what passed before, ends, and returns upstream. Whatever
 *   else reads the same source goes on.
 * - `dropped` is what upstream lost, plus a passed event that `return` discarded; what `fn` leaves out is not counted.
 *   `queued` is an upper bound, as `fn` has not seen those events yet. `stopped` follows upstream.
 *
 * An event of `undefined` cannot be told from none. To follow a selector, use `filterTransitions`: this one does not retype
 * events, so an object that begins or ceases to match shows as a change of something unknown, or not at all.
 *
 * Upstream: `watch.Filter`; ours cannot get stuck on a consumer that stopped without draining.
 */
export function filter<E, F = E>(watch: Watch<E>, fn: (event: E) => F | undefined): Watch<F> {
  return new FilterWatch(watch, fn);
}

/**
 * A watch that remembers every event which has passed through it, for tests and for diagnosis. It holds them for as long as
 * it lives: do not leave one on an endless watch. Reads, `stop` and errors are those of {@link filter}.
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

  /** The events so far, in order: a fresh array of the same event objects. */
  events(): E[] {
    return [...this.seen];
  }
}
