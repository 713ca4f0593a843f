import { Place } from './place.ts';

/**
 * A watcher's queue: the events in `kept`, then the stretch of log from `position` to head. This class decides which events are
 * in it, always when the watcher reads and never when an event is published. What happens to an event that does not fit is the
 * business of the watcher's policy.
 *
 *     settle() --- nothing to decide: the stretch is the queue
 *        |-------- full, and nothing kept: sets aside as much of the stretch as fits, at once     fillUp
 *        `-------- a filter, a gap, a fold, or kept events: event by event                        judge
 *
 * Nothing leaves a queue between two reads. Of the events since then, the first `capacity - queued` were accepted and the others
 * were not, so a late decision gives exactly the result of a separate queue per watcher. A pending read is room for one more
 * event.
 *
 * Invariants
 * - kept.length <= capacity + claims. While `missed` lost events have not been reported, the log's next event is set aside
 *   together with their number: a stretch that is read straight from the log has no gap before it.
 * - A filter sees each event once, in order, in `passes` and nowhere else.
 */
export abstract class Queue<E> extends Place<E> {
  bound(): number {
    // Events that the filter rejects take no room, so ask it before reporting that the queue is full.
    if (this.options.filter && !this.extra.judging && this.position + this.room <= this.view.log.head) {
      this.settle();
      // The watch is about to end, so the event that ends it may pass. The next `bound` finds the watch gone.
      if (this.room <= 0 && this.looksAhead()) return this.position + 1;
    }
    return this.position + this.room;
  }

  /** Whether every event must be examined on its own before it counts as queued. */
  get oneByOne(): boolean {
    return this.options.filter !== undefined || this.options.policy.folds;
  }

  /** Number of queued events that are still in the log. */
  protected get inLog(): number {
    return this.oneByOne ? 0 : this.ahead;
  }

  /** Number of pending reads that need an event. */
  get claims(): number {
    return this.waiting - (this.extra.reportingGap ? 1 : 0);
  }

  /** How many more events could be set aside. Pending reads count as room. */
  get room(): number {
    return this.options.capacity + this.claims - this.extra.kept.length;
  }

  /** Decides on all events distributed since the last call. */
  settle(): void {
    if (this.over || this.extra.judging) return;
    if (!this.standing) this.restand();
    const count = this.ahead;
    const { cut, kept, missed } = this.extra;
    if (count === 0) return;
    if (this.oneByOne || cut || missed > 0) this.judge();
    else if (count <= this.room) return;
    else if (kept.length > 0 || this.options.policy.keepsLatest || this.tellsPlace) this.judge();
    else this.fillUp(count);
  }

  /** Sets as much of the log aside as fits, at once. The rest is lost. */
  private fillUp(count: number): void {
    const { position, own } = this;
    const room = Math.max(0, this.room);
    this.directLimit = 0;
    if (room > 0) own.kept.adopt(this.view.log.slice(position, position + room));
    this.options.policy.refuse(this, count - room);
    this.advance(count);
  }

  /** Decides event by event. Runs user code, so it re-reads all state each time. An error from user code ends this watch only. */
  private judge(): void {
    const { own } = this;
    this.directLimit = 0;
    own.judging = true;
    try {
      while (this.ahead > 0) {
        const { log } = this.view;
        const event = log.at(this.position);
        own.place = log.placeOf(this.position);
        const passes = this.passes(event);
        if (this.over) {
          if (passes) own.lost++;
          break;
        }
        this.advance(1);
        if (passes) this.offer(event);
      }
    } catch (error) {
      this.fail(error);
    }
    own.judging = false;
    // A read that user code started is pending, and the gate may have seen a full queue that has room now.
    if (this.first || this.view.gate.blocker === this) this.view.park.wake(this);
  }

  /**
   * Lets a full queue skip accepted events that its filter rejects, before they are distributed. Returns whether the filter
   * threw.
   */
  private looksAhead(): boolean {
    const { log } = this.view;
    const { own } = this;
    own.judging = true;
    try {
      while (!this.over && this.position < log.end) {
        own.place = log.placeOf(this.position);
        if (this.passes(log.at(this.position)) || this.over) break; // the filter may have stopped the watch
        this.advance(1);
      }
    } catch {
      return true; // the watch ends when the event is distributed; `passes` then throws again
    } finally {
      own.judging = false;
      if (this.first) this.view.park.wake(this);
    }
    return false;
  }

  /** Returns the filter's verdict on the event at `position`. The filter is called once per event. */
  private passes(event: E): boolean {
    const { filter } = this.options;
    if (!filter) return true;
    const { own } = this;
    if (own.asked !== this.position) {
      own.asked = this.position;
      own.verdict = undefined;
      try {
        own.verdict = Boolean(filter(event));
      } catch (error) {
        own.verdict = { error };
      }
    }
    if (typeof own.verdict === 'object') throw own.verdict.error;
    return own.verdict === true;
  }

  /** Decides on one event, exactly as an array of its own would. */
  protected offer(event: E): void {
    this.options.policy.offer(this, event);
  }

  keep(event: E): void {
    const { own } = this;
    own.kept.push(event, own.missed, this.tellsPlace ? own.place : undefined);
    own.missed = 0;
  }

  dropKept(): void {
    if (this.extra.kept.length === 0) return;
    const { own } = this;
    for (; own.kept.length > 0; own.lost++) {
      own.missed += own.kept.gap + 1;
      own.kept.shift();
    }
  }
}
