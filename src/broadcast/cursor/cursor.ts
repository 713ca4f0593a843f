import { type Status, toStatus } from '../../watch/event.ts';
import { NONE } from '../../watch/reader.ts';
import { Queue } from './queue.ts';

/**
 * A watcher's cursor on the log: its position (place.ts), its queue (queue.ts), and here the reads that take events out of it.
 *
 * **Order.** Events in `kept` are older than the stretch of log from `position` to head, so reads take from `kept` first.
 * **Overflow** is decided by `settle`, before each read and before the log moves on. **Closing.** `stop` copies the queued events
 * and leaves the log. After a shutdown the log no longer moves, so queued events stay in it. **Cancelling** drops everything at
 * once. **Speed.** Most watchers have nothing set aside and most reads have nothing to decide. While
 * `directLimit` > 0, reads go straight to the log.
 *
 *      kept      missed         log
 *     [a b c]   (d and e)   |f g h . . .        . is not published yet
 *                           ^position
 *
 * Invariants
 * - delivered + dropped + queued = distributed since watch(), after the filter (**Counted**).
 * - `directLimit` > 0 only while nothing is kept, missed, cut or filtered, and the watcher stands in the log.
 *
 * Its internal methods are `private`: with `#`, each class level that has some would make every watcher one word larger.
 */
export class Cursor<E> extends Queue<E> {
  /** Whether this cursor is in the park's row of waiting readers. */
  inPark: boolean = false;

  /**
   * Queues the prefix and joins the gate or the laggards. Called once, right after construction. `place` is where it begins;
   * `failure` is what its filter threw for the next event of the prefix.
   */
  join(prefix: readonly E[], { place, failure }: { place: number; failure?: { error: unknown } | undefined }): void {
    // Events that wait at the gates are not for this watch.
    if (this.tellsPlace && place > this.headPlace) this.own.begin = place;
    try {
      for (const event of prefix) {
        this.own.place = place;
        this.offer(event);
      }
      if (failure) throw failure.error;
    } catch (error) {
      this.resumeAt(place);
      this.fail(error);
      return;
    }
    if (this.holdsPublisher) this.view.gated.add(this);
    else this.view.laggards.add(this);
  }

  /** Whether it references consumer code, and through that code possibly the consumer. */
  get callsBack(): boolean {
    return this.options.filter !== undefined || this.options.onGap !== undefined;
  }

  /** Fast path: most reads find their event in the log, or must wait, with nothing else to decide. */
  protected override read(batch: boolean): Promise<IteratorResult<E | readonly E[], undefined>> {
    const ahead = this.view.log.head - this.position;
    if (this.first || ahead > this.directLimit) return super.read(batch);
    if (ahead > 0) {
      const value = this.pick(batch, ahead);
      if (this.view.gate.blocker === this) this.view.mux.pump();
      return Promise.resolve({ done: false, value });
    }
    return this.directLimit > 0 && !this.view.mux.closed ? this.wait(batch) : super.read(batch);
  }

  /** Ends it with an ERROR event, right after `join`: it cannot begin at this place. */
  refuse(place: number, status: Status): void {
    if (this.over) return; // its prefix has failed
    this.resumeAt(place);
    this.stop();
    this.own.cut = true;
    this.own.refusal = status;
  }

  get stopped(): boolean {
    this.settle();
    return this.over || this.extra.cut || this.view.mux.closed;
  }

  get queued(): number {
    this.serve();
    this.settle();
    return this.extra.kept.length + this.inLog + (this.extra.fold?.live ?? 0);
  }

  /** The total size of the events that the queue holds. With `coalesce`, those are the last ones of each key. */
  sizeOfQueue(sizeOf: (event: E) => number): number {
    this.settle();
    const { kept, fold } = this.extra;
    const { position, inLog } = this;
    let size = kept.total(sizeOf) + (fold?.total(sizeOf) ?? 0);
    if (inLog > 0) for (const event of this.view.log.slice(position, position + inLog)) size += sizeOf(event);
    return size;
  }

  get dropped(): number {
    this.serve();
    this.settle();
    return this.extra.lost + (this.extra.fold?.dropped ?? 0);
  }

  /** Where a watch that continues after what this one has delivered must begin; see window.ts. */
  get place(): number | undefined {
    if (!this.tellsPlace) return undefined;
    this.serve();
    this.settle();
    return this.unreadPlace;
  }

  /** The place of the first event that was not delivered, or else of the next one that will be distributed. */
  private get unreadPlace(): number {
    const { kept, fold, judging, place, resumeAt } = this.extra;
    const unread = kept.length > 0 ? kept.place : fold?.place;
    if (unread !== undefined) return unread;
    if (this.inLog > 0) return this.view.log.placeOf(this.position);
    return resumeAt ?? (judging ? place : this.headPlace);
  }

  lag(): void {
    // Pending reads are served when the turn is over, as always: the length of a chunk must not be observable.
    this.options.policy.settleLaggard(this);
    if (this.over) return;
    if (this.isIdle && this.options.policy.mayWithdraw(this)) this.withdraw();
    else this.view.laggards.add(this);
  }

  /** Serves pending reads after an event was published. */
  wake(): void {
    const ahead = this.view.log.head - this.position;
    // A read that waits is room for one more. The gate is checked after all readers were served.
    if (this.waiting === 1 && ahead > 0 && ahead - 1 <= this.directLimit && this.directLimit > 0) {
      const read = this.shift();
      read.settle({ done: false, value: this.pick(read.batch, ahead) });
    } else {
      this.serve();
    }
    if (this.first) this.view.park.add(this);
  }

  /** Whether the next events can be taken straight from the log, as long as the queue is within its capacity. */
  private get clear(): boolean {
    const { kept, missed } = this.extra;
    // A cut watcher always has missed events.
    return !this.oneByOne && !this.over && this.standing && kept.length === 0 && missed === 0;
  }

  protected override parked(): void {
    this.view.park.add(this);
    if (this.view.topics) this.view.waits();
    this.taken();
  }

  /** The queue has room, or a pending read: the gate may open. */
  protected override taken(): void {
    if (this.directLimit === 0 && !this.taking && this.clear) this.directLimit = this.options.capacity;
    if (this.view.gate.blocker === this) this.view.mux.pump();
  }

  protected override take(): E | typeof NONE {
    this.settle();
    if (this.extra.kept.length > 0) {
      // Removed from the queue first: an `onGap` that publishes must not drop the event it announces.
      const { kept } = this.own;
      const { gap } = kept;
      const event = kept.shift();
      if (gap === 0 || this.tell(gap)) return event;
      this.own.lost++;
      return NONE;
    }
    if (this.inLog === 0) return this.takeFinal();
    const event = this.view.log.at(this.position);
    this.advance(1);
    return event;
  }

  protected override takeBatch(limit: number): readonly E[] | typeof NONE {
    this.settle();
    const count = Math.min(limit, this.inLog);
    if (count > 0 && this.extra.kept.length === 0) return this.stretch(count);
    return super.takeBatch(limit);
  }

  protected override wasted(count: number): void {
    this.own.lost += count;
  }

  /** Takes the next event, or all `ahead` as one batch, straight from the log. */
  private pick(batch: boolean, ahead: number): E | readonly E[] {
    return batch ? this.stretch(ahead) : this.view.log.pass(this.position++);
  }

  private stretch(count: number): readonly E[] {
    const batch = this.view.log.slice(this.position, this.position + count);
    this.advance(count);
    return batch;
  }

  /** A batch ends before a gap, so that `onGap` is called right before the first event after it. */
  protected override get breaks(): boolean {
    return this.options.onGap !== undefined && this.extra.kept.gap > 0;
  }

  protected override end(): void {
    this.settle();
    const { inLog, position } = this;
    if (inLog > 0) {
      const rest = this.view.log.slice(position, position + inLog);
      if (this.extra.kept.length === 0 && !this.tellsPlace) this.own.kept.adopt(rest);
      else
        rest.forEach((event, at) => {
          this.own.place = this.view.log.placeOf(position + at);
          this.keep(event);
        });
    }
    this.leave();
  }

  protected override discard(): void {
    this.settle();
    const { own } = this;
    if (this.tellsPlace) own.resumeAt = this.unreadPlace;
    own.lost += this.inLog + (this.extra.fold?.clear() ?? 0);
    this.dropKept();
    own.discarded = true;
    own.cut = false;
    this.leave();
  }

  /**
   * Calls `onGap` before the event after a gap is delivered. Returns false if the event must not be delivered: the watch was
   * returned, or `onGap` threw.
   */
  private tell(gap: number): boolean {
    const { own } = this;
    own.reportingGap = this.first !== undefined;
    try {
      this.options.onGap?.(gap);
    } catch (error) {
      this.discard();
      this.failure = { error };
    }
    own.reportingGap = false;
    return !this.extra.discarded;
  }

  /**
   * Called when no unfolded event is queued. Returns what is folded, or the final ERROR event of a cut watch. Leaves if this is
   * the end.
   */
  private takeFinal(): E | typeof NONE {
    const folded = this.extra.fold?.take();
    if (folded !== undefined) return folded;
    if (this.extra.cut) {
      this.own.cut = false;
      this.leave();
      // Consumers that choose `disconnect` or `coalesce` have ERROR in their event union, as every Kubernetes watch does.
      const { missed, refusal } = this.extra;
      return { type: 'ERROR', object: refusal ?? toExpired(tooSlow(missed), missed) } as E;
    }
    if (this.drained) this.leave();
    return NONE;
  }
}

function tooSlow(missed: number): string {
  return `too slow: ${missed} events were lost; watch again from a fresh state`;
}

/** The Status of a watch that cannot be served everything it should get. */
export function toExpired(message: string, missed?: number): Status {
  return toStatus({ code: 410, reason: 'Expired', message, details: missed === undefined ? undefined : { missed } });
}
