import { type Status, toStatus } from '../watch/event.ts';
import { NONE } from '../watch/reader.ts';
import { Queue } from './queue.ts';

/**
 * A watcher's cursor on the log: its position (place.ts), its queue (queue.ts), and here the reads that take events out of it.
 *
 * **Order.** Events in `kept` are older than the stretch of log from `position` to head, so reads take from `kept` first.
 * **Overflow** is decided by `settle`, before each read and before the log moves on. **Closing.** `stop` copies the queued events
 * and leaves the log. After a shutdown the log no longer moves, so queued events stay in it. **Cancelling** drops everything at
 * once. **Speed.** Most watchers have nothing set aside and most reads have nothing to decide. While `ease` > 0, reads go
 * straight to the log.
 *
 *      kept      missed         log
 *     [a b c]   (d and e)   |f g h . . .        . is not published yet
 *                           ^position
 *
 * Invariants
 * - delivered + dropped + queued = distributed since watch(), after the filter (**Counted**).
 * - `ease` > 0 only while nothing is kept, missed, cut or filtered, and the watcher stands in the log.
 */
export class Cursor<E> extends Queue<E> {
  /** Whether this cursor is in the park's row of waiting readers. */
  inPark: boolean = false;

  /** Queues the prefix and joins the gate or the laggards. Called once, right after construction. */
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

  /** Whether it references consumer code, and through that code possibly the consumer. */
  get callsBack(): boolean {
    return this.options.filter !== undefined || this.options.onGap !== undefined;
  }

  /** Fast path: most reads find their event in the log, or must wait, with nothing else to decide. */
  protected override read(batch: boolean): Promise<IteratorResult<E | readonly E[], undefined>> {
    const ahead = this.mux.log.head - this.position;
    if (this.first || ahead > this.ease) return super.read(batch);
    if (ahead > 0) {
      const value = this.pick(batch, ahead);
      if (this.mux.gate.blocker === this) this.mux.pump();
      return Promise.resolve({ done: false, value });
    }
    return this.ease > 0 && !this.mux.closed ? this.wait(batch) : super.read(batch);
  }

  get stopped(): boolean {
    this.settle();
    return this.over || this.aside.cut || this.mux.closed;
  }

  get queued(): number {
    this.serve();
    this.settle();
    return this.aside.kept.length + this.inLog;
  }

  get dropped(): number {
    this.serve();
    this.settle();
    return this.aside.lost;
  }

  lag(): void {
    // Pending reads are served when the turn is over, as always: the length of a chunk must not be observable. With drop-oldest,
    // the whole queue has been overwritten by now, so nothing is left of it but the log's last events.
    if (this.dropsOldest && !this.oneByOne && !this.first) this.dropKept();
    else this.settle();
    if (this.over) return;
    if (this.abandoned) this.withdraw();
    else this.mux.laggards.add(this);
  }

  /** Serves pending reads after an event was published. */
  wake(): void {
    const ahead = this.mux.log.head - this.position;
    // A read that waits is room for one more. The gate is checked after all readers were served.
    if (this.waiting === 1 && ahead > 0 && ahead - 1 <= this.ease && this.ease > 0) {
      const read = this.shift();
      read.settle({ done: false, value: this.pick(read.batch, ahead) });
    } else {
      this.serve();
    }
    if (this.first) this.mux.park.add(this);
  }

  /** Whether a full laggard can be left alone until it reads. Not with a filter: it must see every event for an exact count. */
  protected get abandoned(): boolean {
    return !this.first && !this.aside.judging && !this.options.filter;
  }

  /** Whether the next events can be taken straight from the log, as long as the queue is within its capacity. */
  private get clear(): boolean {
    const { kept, missed } = this.aside;
    // A cut watcher always has missed events.
    return !this.oneByOne && !this.over && this.standing && kept.length === 0 && missed === 0;
  }

  protected override parked(): void {
    this.mux.park.add(this);
    this.taken();
  }

  /** The queue has room, or a pending read: the gate may open. */
  protected override taken(): void {
    if (this.ease === 0 && !this.taking && this.clear) this.ease = this.options.capacity;
    if (this.mux.gate.blocker === this) this.mux.pump();
  }

  protected override take(): E | typeof NONE {
    this.settle();
    if (this.aside.kept.length > 0) {
      // Removed from the queue first: an `onGap` that publishes must not drop the event it announces.
      const { kept } = this.own;
      const { gap } = kept;
      const event = kept.shift();
      if (gap === 0 || this.tell(gap)) return event;
      this.own.lost++;
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
    if (count > 0 && this.aside.kept.length === 0) return this.stretch(count);
    return super.takeBatch(limit);
  }

  protected override wasted(count: number): void {
    this.own.lost += count;
  }

  /** Takes the next event, or all `ahead` as one batch, straight from the log. */
  private pick(batch: boolean, ahead: number): E | readonly E[] {
    return batch ? this.stretch(ahead) : this.mux.log.pass(this.position++);
  }

  private stretch(count: number): readonly E[] {
    const batch = this.mux.log.slice(this.position, this.position + count);
    this.advance(count);
    return batch;
  }

  /** A batch ends before a gap, so that `onGap` is called right before the first event after it. */
  protected override get breaks(): boolean {
    return this.options.onGap !== undefined && this.aside.kept.gap > 0;
  }

  protected override end(): void {
    this.settle();
    const { inLog, position } = this;
    if (inLog > 0) {
      const rest = this.mux.log.slice(position, position + inLog);
      if (this.aside.kept.length === 0) this.own.kept.adopt(rest);
      else for (const event of rest) this.keep(event);
    }
    this.leave();
  }

  protected override discard(): void {
    this.settle();
    const { own } = this;
    own.lost += this.inLog;
    this.dropKept();
    own.discarded = true;
    own.cut = false;
    this.leave();
  }

  /**
   * Calls `onGap` before the event behind a gap is delivered. Returns false if the event must not be delivered: the watch was
   * returned, or `onGap` threw.
   */
  private tell(gap: number): boolean {
    const { own } = this;
    own.telling = this.first !== undefined;
    try {
      this.options.onGap?.(gap);
    } catch (error) {
      this.discard();
      this.failure = { error };
    }
    own.telling = false;
    return !this.aside.discarded;
  }

  /** Called when nothing is queued. Returns the final ERROR event of a cut watch, and leaves if this is the end. */
  protected lastWord(): E | typeof NONE {
    if (this.aside.cut) {
      this.own.cut = false;
      this.leave();
      // Consumers that choose `disconnect` or `coalesce` have ERROR in their event union, as every Kubernetes watch does.
      return { type: 'ERROR', object: expired(this.aside.missed) } as E;
    }
    if (this.drained) this.leave();
    return NONE;
  }
}

function expired(missed: number): Status {
  const message = `too slow: ${missed} events were lost; watch again from a fresh state`;
  return toStatus({ code: 410, reason: 'Expired', message, details: { missed } });
}
