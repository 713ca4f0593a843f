import { type Status, toStatus } from '../watch/event.ts';
import { NONE } from '../watch/reader.ts';
import type { Gated } from './gate.ts';
import { Kept } from './kept.ts';
import { Place } from './place.ts';

/** Most watchers never set anything aside: they share this one, which stays empty. */
const NOTHING: Kept<never> = new Kept();

/**
 * A watcher on the log: a position (see place.ts), and what it had to set aside.
 *
 * **Order.** What is set aside (`kept`) is older than the stretch of log from `position` to head; reading takes the one, then
 * the other. **Overflow** is decided not when an event is published but here, in `settle`: before each read, and before the
 * log moves on. Between two reads nothing leaves a queue, so of the events since then the first `capacity - queued` were
 * accepted and the rest were not: deciding late gives exactly what a queue of one's own would have given. A read that waits
 * is room for one event more. **Closing.** `stop` copies what is queued and leaves the log; at the end of the broadcaster the
 * log itself stands still, and what is queued stays where it is. **Cancelling** lets go of everything at once.
 *
 *      kept      missed         log
 *     [a b c]   (d and e)   |f g h . . .        . is not published yet
 *                           ^position
 *
 * Invariants
 * - kept.length <= capacity + waiting. While `missed` events are lost that nobody was told of, the log's next event is set aside
 *   with their number: a stretch of log that is read as it stands has no gap before it.
 * - delivered + dropped + queued = distributed since watch(), after the filter (**Counted**).
 * - A filter sees each event once, in order, in `judge` and nowhere else.
 */
export class Cursor<E> extends Place<E> implements Gated {
  /** Whether it is in the list of those whose reads wait. */
  inPark: boolean = false;
  protected kept: Kept<E> = NOTHING;
  /** It has overflowed for good: after what is queued comes one ERROR event. */
  protected cut: boolean = false;
  private discarded: boolean = false;
  /** The position of the last event that the filter was asked about, and what it said or threw. */
  private asked: number = -1;
  private verdict: boolean | { readonly error: unknown } | undefined;
  private judging: boolean = false;

  /** Queues events before all that is published from now on, and joins the sets. Called once, right after construction. */
  join(prefix: readonly E[]): void {
    try {
      for (const event of prefix) this.offer(event);
    } catch (error) {
      this.fail(error);
      return;
    }
    if (this.waits) this.mux.gate.add(this);
    else this.mux.laggards.add(this);
  }

  get hasReads(): boolean {
    return this.first !== undefined;
  }

  get stopped(): boolean {
    this.settle();
    return this.over || this.cut || this.mux.closed;
  }

  get queued(): number {
    this.serve();
    this.settle();
    return this.kept.length + this.inLog;
  }

  get dropped(): number {
    this.serve();
    this.settle();
    return this.lost;
  }

  bound(): number {
    // What the filter rejects takes no room: ask it before saying that the queue is full.
    if (this.options.filter !== undefined && !this.judging && this.position + this.room <= this.mux.log.head) {
      this.settle();
      // For a watch that is about to end, the event that ends it may pass. The next question finds it gone.
      if (this.room <= 0 && this.looksAhead()) return this.position + 1;
    }
    return this.position + this.room;
  }

  lag(): void {
    // Reads that wait are not served here but when the turn is over, as ever: how long a chunk is must not show.
    if (this.dropsOldest && !this.oneByOne && !this.hasReads) this.turnOver();
    else this.settle();
    if (this.over) return;
    if (this.abandoned) this.withdraw();
    else this.mux.laggards.add(this);
  }

  /** Something was published: serves the reads that wait. */
  wake(): void {
    this.serve();
    if (this.hasReads) this.mux.park(this);
  }

  /** Whether each event is looked at in its turn, so that none is queued before it was. */
  protected get oneByOne(): boolean {
    return this.options.filter !== undefined;
  }

  /** Whether one who lags, and so is full, can be left alone until it reads. A filter must see each event even so, for an exact count. */
  protected get abandoned(): boolean {
    return !this.hasReads && !this.judging && this.options.filter === undefined;
  }

  /** Events that are queued as a stretch of the log. */
  private get inLog(): number {
    return this.oneByOne ? 0 : this.ahead;
  }

  /** How many events more could be set aside. Reads that wait are room, too. */
  protected get room(): number {
    return this.options.capacity + this.waiting - this.kept.length;
  }

  protected override parked(): void {
    this.mux.park(this);
    this.taken();
  }

  /** The queue got room, or a read: the gate may open. */
  protected override taken(): void {
    if (this.mux.gate.blocker === this) this.mux.pump();
  }

  protected override take(): E | typeof NONE {
    this.settle();
    if (this.kept.length > 0) {
      // Out of the queue first: an onGap that publishes must not drop the very event that it is told about.
      const { event, gap } = this.kept.shift();
      if (gap === 0 || this.tell(gap)) return event;
      this.lost++;
      return NONE;
    }
    if (this.inLog === 0) return this.lastWord();
    const event = this.mux.log.at(this.position);
    this.advance(1);
    return event;
  }

  protected override takeBatch(limit: number): readonly E[] | typeof NONE {
    this.settle();
    const count = Math.min(limit, this.inLog);
    if (count === 0 || this.kept.length > 0) return super.takeBatch(limit);
    const batch = this.mux.log.slice(this.position, this.position + count);
    this.advance(count);
    return batch;
  }

  /** A filter that shuts down is being asked about an event which still counts. */
  protected override get drained(): boolean {
    return super.drained && (this.over || !this.judging);
  }

  /** A batch ends before a gap, so that onGap comes right before the first event after it. */
  protected override get breaks(): boolean {
    return this.kept.gap > 0;
  }

  protected override end(): void {
    this.settle();
    for (let at = this.position, end = at + this.inLog; at < end; at++) this.keep(this.mux.log.at(at));
    this.leave();
  }

  protected override discard(): void {
    this.settle();
    this.lost += this.inLog;
    this.dropKept();
    this.discarded = true;
    this.cut = false;
    this.leave();
  }

  /** Decides on all that was distributed since the last time. */
  protected settle(): void {
    if (this.over || this.judging) return;
    if (!this.standing) this.restand();
    const count = this.ahead;
    if (count > 0 && (this.oneByOne || this.cut || this.missed > 0 || count > this.room)) this.judge();
  }

  /** Decides one event at a time. May run user code, and so looks at everything anew each time; what that throws ends this watch alone. */
  private judge(): void {
    this.judging = true;
    try {
      while (this.ahead > 0) {
        const event = this.mux.log.at(this.position);
        const passes = this.passes(event);
        if (this.over) {
          if (passes) this.lost++;
          break;
        }
        this.advance(1);
        if (passes) this.offer(event);
      }
    } catch (error) {
      this.fail(error);
    }
    this.judging = false;
    // A read that user code made meanwhile found nothing, and waits.
    if (this.hasReads) this.mux.wake(this);
  }

  /** A full queue goes past accepted events that its filter rejects, before they are distributed. Answers whether the filter threw. */
  private looksAhead(): boolean {
    const { log } = this.mux;
    this.judging = true;
    try {
      while (!this.over && this.position < log.end) {
        if (this.passes(log.at(this.position)) || this.over) break; // the filter may have stopped the watch
        this.advance(1);
      }
    } catch {
      return true; // it is asked again, and the watch ends, when the event is distributed
    } finally {
      this.judging = false;
      if (this.hasReads) this.mux.wake(this);
    }
    return false;
  }

  /** The filter's word on the event at `position`. It is asked once. */
  private passes(event: E): boolean {
    const { filter } = this.options;
    if (filter === undefined) return true;
    if (this.asked !== this.position) {
      this.asked = this.position;
      this.verdict = undefined;
      try {
        this.verdict = Boolean(filter(event));
      } catch (error) {
        this.verdict = { error };
      }
    }
    if (typeof this.verdict === 'object') throw this.verdict.error;
    return this.verdict === true;
  }

  /** Decides on one event: what an array of one's own would do with it. */
  protected offer(event: E): void {
    const { capacity, overflow } = this.options;
    if (this.cut || this.room <= 0) {
      if (!this.dropsOldest || capacity === 0) {
        this.lose(1);
        this.cut = overflow === 'disconnect';
        return;
      }
      this.lost++;
      // The oldest goes that no waiting read has a claim on.
      this.missed += this.kept.drop(this.waiting);
    }
    this.keep(event);
  }

  protected keep(event: E): void {
    if (this.kept === NOTHING) this.kept = new Kept();
    this.kept.push(event, this.missed);
    this.missed = 0;
  }

  /** Tells of a gap before the event behind it goes out. Answers whether it still may: not if the watch was returned, or this threw. */
  private tell(gap: number): boolean {
    try {
      this.options.onGap?.(gap);
    } catch (error) {
      this.discard();
      this.failure = { error };
    }
    return !this.discarded;
  }

  /** Nothing is queued: what there is to say at the end, if this is the end. */
  protected lastWord(): E | typeof NONE {
    if (this.cut) {
      this.cut = false;
      this.leave();
      // Consumers that choose `disconnect` or `coalesce` have ERROR among their events, as every Kubernetes watch has.
      return { type: 'ERROR', object: expired(this.missed) } as E;
    }
    if (this.drained) this.leave();
    return NONE;
  }

  private dropKept(): void {
    for (; this.kept.length > 0; this.lost++) this.missed += this.kept.shift().gap + 1;
  }

  /** A queue that drops the oldest has been filled anew since: nothing is left of it but the log's last events. */
  private turnOver(): void {
    this.dropKept();
    this.pass(this.ahead - this.options.capacity);
  }
}

function expired(missed: number): Status {
  const message = `too slow: ${missed} events were lost; watch again from a fresh state`;
  return toStatus({ code: 410, reason: 'Expired', message, details: { missed } });
}
