import { Place } from './place.ts';

/**
 * A watcher's queue: what is `kept` aside, and behind that the stretch of log from `position` to head. Here is decided what is
 * in it, and never when an event is published.
 *
 *     settle() --- nothing to decide: the stretch is the queue, as it stands
 *        |-------- full, and empty-handed: as much of it as there is room for is set aside in one go     fillUp
 *        `-------- a filter, a gap, a fold, something kept: event by event                               judge
 *
 * Between two reads nothing leaves a queue, so of the events since then the first `capacity - queued` were accepted and the rest
 * were not: deciding late gives exactly what a queue of one's own would have given. A read that waits is room for one event more.
 *
 * Invariants
 * - kept.length <= capacity + claims. While `missed` events are lost that nobody was told of, the log's next event is set aside
 *   with their number: a stretch of log that is read as it stands has no gap before it.
 * - A filter sees each event once, in order, in `passes` and nowhere else.
 */
export abstract class Queue<E> extends Place<E> {
  get hasReads(): boolean {
    return this.first !== undefined;
  }

  bound(): number {
    // What the filter rejects takes no room: ask it before saying that the queue is full.
    if (this.options.filter && !this.aside.judging && this.position + this.room <= this.mux.log.head) {
      this.settle();
      // For a watch that is about to end, the event that ends it may pass. The next question finds it gone.
      if (this.room <= 0 && this.looksAhead()) return this.position + 1;
    }
    return this.position + this.room;
  }

  /** Whether each event is looked at in its turn, so that none is queued before it was. */
  protected get oneByOne(): boolean {
    return this.options.filter !== undefined;
  }

  /** Events that are queued as a stretch of the log. */
  protected get inLog(): number {
    return this.oneByOne ? 0 : this.ahead;
  }

  /** Reads that wait for an event. */
  protected get claims(): number {
    return this.waiting - (this.aside.telling ? 1 : 0);
  }

  /** How many events more could be set aside. Reads that wait are room, too. */
  protected get room(): number {
    return this.options.capacity + this.claims - this.aside.kept.length;
  }

  /** A filter that shuts down is being asked about an event which still counts. */
  protected override get drained(): boolean {
    return super.drained && (this.over || !this.aside.judging);
  }

  /** Decides on all that was distributed since the last time. */
  protected settle(): void {
    if (this.over || this.aside.judging) return;
    if (!this.standing) this.restand();
    const count = this.ahead;
    const { cut, kept, missed } = this.aside;
    if (count === 0) return;
    if (this.oneByOne || cut || missed > 0) this.judge();
    else if (count <= this.room) return;
    else if (kept.length > 0 || this.dropsOldest) this.judge();
    else this.fillUp(count);
  }

  /** Sets as much of the log aside as there is room for, in one go; the rest does not fit. */
  private fillUp(count: number): void {
    const { position, own } = this;
    const room = Math.max(0, this.room);
    this.ease = 0;
    if (room > 0) own.kept.adopt(this.mux.log.slice(position, position + room));
    this.advance(room);
    own.cut = this.options.overflow === 'disconnect';
    this.pass(count - room);
  }

  /** Decides one event at a time. May run user code, and so looks at everything anew each time; what that throws ends this watch alone. */
  private judge(): void {
    const { own } = this;
    this.ease = 0;
    own.judging = true;
    try {
      while (this.ahead > 0) {
        const event = this.mux.log.at(this.position);
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
    // A read that user code made meanwhile found nothing, and waits; the gate found this full, which it may not be any more.
    if (this.hasReads || this.mux.gate.blocker === this) this.mux.park.wake(this);
  }

  /** A full queue goes past accepted events that its filter rejects, before they are distributed. Answers whether the filter threw. */
  private looksAhead(): boolean {
    const { log } = this.mux;
    const { own } = this;
    own.judging = true;
    try {
      while (!this.over && this.position < log.end) {
        if (this.passes(log.at(this.position)) || this.over) break; // the filter may have stopped the watch
        this.advance(1);
      }
    } catch {
      return true; // it is asked again, and the watch ends, when the event is distributed
    } finally {
      own.judging = false;
      if (this.hasReads) this.mux.park.wake(this);
    }
    return false;
  }

  /** The filter's word on the event at `position`. It is asked once. */
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

  /** Decides on one event: what an array of one's own would do with it. */
  protected offer(event: E): void {
    const { capacity, overflow } = this.options;
    if (this.aside.cut || this.room <= 0) {
      const { own } = this;
      if (!this.dropsOldest || capacity === 0) {
        this.lose(1);
        own.cut = overflow === 'disconnect';
        return;
      }
      own.lost++;
      // The oldest goes that no waiting read has a claim on.
      own.missed += own.kept.drop(this.claims);
    }
    this.keep(event);
  }

  protected keep(event: E): void {
    const { own } = this;
    own.kept.push(event, own.missed);
    own.missed = 0;
  }

  protected dropKept(): void {
    if (this.aside.kept.length === 0) return;
    const { own } = this;
    for (; own.kept.length > 0; own.lost++) {
      own.missed += own.kept.gap + 1;
      own.kept.shift();
    }
  }
}
