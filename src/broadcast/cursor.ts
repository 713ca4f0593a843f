import { verdictOf } from '../watch/abort.ts';
import { type Status, toExpired } from '../watch/event.ts';
import { quietly } from '../watch/failures.ts';
import { NONE, Reader } from '../watch/reader.ts';
import { CursorState, noState } from './cursor-state.ts';
import type { Gated } from './gate.ts';
import type { CursorOptions } from './policies.ts';
import type { View } from './view.ts';
import type { Laggard, Linked } from './watcher-sets.ts';

/** How many events a watcher without a limit may be behind before they are folded. */
const FOLD_SOON = 256;

/**
 * A watcher's cursor on the log: its position there, its queue, and the reads that take events out of it.
 *
 *      kept      missed         log
 *     [a b c]   (d and e)   |f g h . . .        . is not published yet
 *                           ^position
 *
 * **Position.** The log keeps everything for a watcher that stands in it. One that is a whole queue behind leaves it:
 *
 *     standing ---- a whole capacity behind: lag() ----> judged: in no chunk, costs a publisher nothing
 *        ^---- used again: the events since then are counted ----'
 *     either ---- stop, return, error, cut and read out ----> over: keeps nothing in the log
 *
 * **Queue.** The events in `kept`, then the stretch of log from `position` to head. Which events are in it is decided when the
 * watcher reads or the log moves on, never when an event is published; what happens to one that does not fit is up to its
 * policy:
 *
 *     settle() --- nothing to decide: the stretch is the queue
 *        |-------- full, and nothing kept: sets aside as much of the stretch as fits, at once     fillUp
 *        `-------- a filter, a gap, a fold, or kept events: event by event                        judge
 *
 * Nothing leaves a queue between two reads. Of the events since then, the first `capacity - queued` were accepted and the others
 * were not, so a late decision gives exactly the result of a separate queue per watcher. A pending read is room for one more
 * event.
 *
 * **Order.** Events in `kept` are older than those in the log, so reads take from `kept` first. **Closing.** `stop` copies the
 * queued events and leaves the log. After a shutdown the log no longer moves, so queued events stay in it. **Cancelling** drops
 * everything at once. **Speed.** Most watchers have nothing set aside and most reads have nothing to decide. While `directLimit` >
 * 0, reads go straight to the log.
 *
 * Invariants
 * - delivered + dropped + queued = distributed since watch(), after the filter (**Counted**).
 * - Standing: the log keeps everything from `position` on, and the watcher is in the set of laggards or at the gate. Judged: the log
 *   keeps nothing for it, except what its policy retains. Over: no set, no listener and no publisher references it any longer.
 *   The set that holds the watcher shows which of the three it is.
 * - kept.length <= capacity + claims. While `missed` lost events have not been reported, the log's next event is set aside
 *   together with their number: a stretch that is read straight from the log has no gap before it.
 * - A filter sees each event once, in order, in `passes` and nowhere else. A read that begins meanwhile waits until all is judged,
 *   and makes no room for these events: they were distributed before it.
 * - `directLimit` > 0 only while nothing is kept, missed, cut or filtered, and the watcher stands in the log.
 *
 * Programs have many idle watchers, so state that only some need is stored in {@link CursorState}, and what differs by policy in a
 * {@link Policy} that all its watchers share.
 */
export class Cursor<E> extends Reader<E> implements Laggard, Gated {
  inSet: object | undefined;
  before: Linked | undefined;
  after: Linked | undefined;
  /** Whether this cursor is in the row of waiting readers. */
  isWaiting: boolean = false;

  readonly view: View<E>;
  readonly options: CursorOptions<E>;
  position: number;
  /** How far ahead head may be for the next read to go straight to the log. 0 whenever there is anything else to examine. */
  protected directLimit: number = 0;
  state: CursorState<E> = noState();

  constructor(view: View<E>, options: CursorOptions<E>, position: number = view.log.end) {
    super();
    this.view = view;
    this.options = options;
    this.position = position;
    this.inSet = view; // it stands, and is about to join a set
    view.log.stand(position);
    view.joined(this.holdsPublisher);
  }

  get holdsPublisher(): boolean {
    return this.options.policy.holdsPublisher;
  }

  get standing(): boolean {
    return this.inSet !== this.view.judged;
  }

  get over(): boolean {
    return this.inSet === undefined;
  }

  /** Whether the watch reports its position, because the broadcaster keeps events to resume from. */
  protected get tellsPlace(): boolean {
    return this.view.window !== undefined;
  }

  /** Where to continue if everything was delivered. */
  protected get headPlace(): number {
    return Math.max(this.view.mux.log.head, this.state.begin);
  }

  get hasReads(): boolean {
    return this.first !== undefined;
  }

  /** Whether a full laggard can be left alone until it reads. Not with a filter: it must see every event for an exact count. */
  get isIdle(): boolean {
    return !this.first && !this.options.filter && this.state.claims === undefined;
  }

  /** Returns this watcher's own `CursorState`, for modification. */
  get ownState(): CursorState<E> {
    if (this.state === noState()) this.state = new CursorState();
    return this.state;
  }

  protected override get failure(): { readonly error: unknown } | undefined {
    return this.state.failure;
  }

  protected override set failure(failure: { readonly error: unknown } | undefined) {
    if (failure !== this.state.failure) this.ownState.failure = failure;
  }

  /** What it has set aside counts: a full watcher that stays, for its filter, needs no more than a chunk of the log. */
  dueChunk(): number {
    const { policy } = this.options;
    const room = this.oneByOne ? this.room : policy.roomOf(this);
    // A fold without another limit must not let the log grow until then.
    return (
      this.view.log.chunkOf(this.position + (policy.folds && this.view.mux.options.forgets ? Math.min(room, FOLD_SOON) : room)) +
      1
    );
  }

  /** Ends the watch with an error, which its consumer gets after the queued events. */
  fail(error: unknown): void {
    if (this.over) return;
    this.failure = { error };
    this.resumeAt(this.state.place);
    this.leave();
    this.view.readers.wake(this);
  }

  protected override get drained(): boolean {
    return this.over || this.view.mux.closed;
  }

  /** Number of distributed events in the log that have not been taken. */
  get ahead(): number {
    return this.over ? 0 : Math.max(0, this.view.log.head - this.position);
  }

  advance(count: number): void {
    if (this.standing) this.view.log.move(this.position, this.position + count);
    this.position += count;
  }

  lose(count: number): void {
    this.directLimit = 0;
    const { ownState } = this;
    ownState.lost += count;
    ownState.missed += count;
  }

  /** Drops the log's next events, without looking at them. */
  pass(count: number): void {
    this.lose(count);
    this.advance(count);
  }

  /** Remembers where to continue after what is queued; the first call counts. */
  resumeAt(place: number): void {
    if (this.tellsPlace) this.ownState.resumeAt ??= place;
  }

  /** From standing to judged. A full queue takes no events, so it needs nothing from the log until it is read. */
  protected withdraw(): void {
    this.options.policy.withdraw(this);
    this.directLimit = 0;
    this.view.log.leave(this.position);
    this.view.judged.add(this);
  }

  /** From judged to standing. */
  protected restand(): void {
    const { policy } = this.options;
    const { log, laggards, judged } = this.view;
    const failure = policy.catchUp(this);
    judged.delete(this, this.view);
    log.stand(this.position);
    laggards.add(this);
    policy.caughtUp(this);
    if (failure) this.fail(failure.error);
  }

  /** Leaves every set for good. */
  protected leave(): void {
    if (!this.over && !this.standing) this.restand();
    if (this.over) return;
    this.resumeAt(this.headPlace);
    this.directLimit = 0;
    if (this.holdsPublisher) this.view.gate.remove(this);
    else this.view.laggards.remove(this);
    this.inSet = undefined;
    this.view.log.leave(this.position);
    this.view.left(this);
  }

  bound(): number {
    // Events that the filter rejects take no room, so ask it before reporting that the queue is full.
    if (this.options.filter && this.state.claims === undefined && this.position + this.room <= this.view.log.head) {
      this.settle();
      // The watch is about to end, so the event that ends it may pass. The next `bound` finds the watch gone.
      if (this.room <= 0 && this.judge(true)) return this.position + 1;
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
    return (this.state.claims ?? this.waiting) - (this.state.reportingGap ? 1 : 0);
  }

  /** How many more events could be set aside. Pending reads count as room. */
  get room(): number {
    return this.options.capacity + this.claims - this.state.kept.length;
  }

  /** Decides on all events distributed since the last call. */
  settle(): void {
    if (this.over || this.state.claims !== undefined) return;
    if (!this.standing) this.restand();
    const count = this.ahead;
    const { cut, kept, missed } = this.state;
    if (count === 0) return;
    if (this.oneByOne || cut || missed > 0) this.judge();
    else if (count <= this.room) return;
    else if (kept.length > 0 || this.options.policy.keepsLatest || this.tellsPlace) this.judge();
    else this.fillUp(count);
  }

  /** Sets as much of the log aside as fits, at once. The rest is lost. */
  private fillUp(count: number): void {
    const { position, ownState } = this;
    const room = Math.max(0, this.room);
    this.directLimit = 0;
    if (room > 0) ownState.kept.adopt(this.view.log.slice(position, position + room));
    this.options.policy.refuse(this, count - room);
    this.advance(count);
  }

  /**
   * Decides event by event. Runs user code, so it re-reads all state each time. An error from user code ends this watch only.
   *
   * With `ahead`, lets a full queue skip accepted events that its filter rejects, before they are distributed. Returns whether the
   * filter threw then: the watch ends when the event is distributed, because `passes` throws again.
   */
  private judge(ahead?: boolean): boolean {
    const { ownState, taking } = this;
    const { log } = this.view;
    let threw = false;
    this.directLimit = 0;
    ownState.claims = this.waiting;
    this.taking = true;
    try {
      while (!this.over && this.position < (ahead ? log.end : log.head)) {
        const event = log.at(this.position);
        ownState.place = log.placeOf(this.position);
        const passes = this.passes(event);
        if (passes && ahead) break;
        if (this.over) {
          // The filter has stopped the watch.
          if (passes) ownState.lost++;
          break;
        }
        this.advance(1);
        if (passes) this.offer(event);
      }
    } catch (error) {
      if (!ahead) this.fail(error);
      threw = true;
    }
    const { claims } = ownState;
    ownState.claims = undefined;
    this.taking = taking;
    // Reads that user code started take what is queued before anything else is published: a batch makes room for several events.
    if (!ahead && this.waiting > claims) this.serve();
    // The gate may have seen a full queue that has room now.
    if (this.first || (!ahead && this.view.gate.blocker === this)) this.view.readers.wake(this);
    return threw;
  }

  /** Returns the filter's verdict on the event at `position`. The filter is called once per event. */
  private passes(event: E): boolean {
    const { filter } = this.options;
    if (!filter) return true;
    const { ownState } = this;
    if (ownState.asked !== this.position) {
      ownState.asked = this.position;
      ownState.verdict = undefined;
      try {
        ownState.verdict = verdictOf('filter', filter(event));
      } catch (error) {
        ownState.verdict = { error };
      }
    }
    if (typeof ownState.verdict === 'object') throw ownState.verdict.error;
    return ownState.verdict === true;
  }

  /** Decides on one event, exactly as an array of its own would. */
  protected offer(event: E): void {
    this.options.policy.offer(this, event);
  }

  keep(event: E): void {
    const { ownState } = this;
    ownState.kept.push(event, ownState.missed, this.tellsPlace ? ownState.place : undefined);
    ownState.missed = 0;
  }

  dropKept(): void {
    if (this.state.kept.length === 0) return;
    const { ownState } = this;
    for (; ownState.kept.length > 0; ownState.lost++) {
      ownState.missed += ownState.kept.gap + 1;
      ownState.kept.shift();
    }
  }

  /**
   * Queues the prefix and joins the gate or the laggards. Called once, right after construction. `place` is where it begins;
   * `failure` is what its filter threw for the next event of the prefix.
   */
  join(prefix: readonly E[], { place, failure }: { place: number; failure?: { error: unknown } | undefined }): void {
    // Events that wait at the gates are not for this watch.
    if (this.tellsPlace && place > this.headPlace) this.ownState.begin = place;
    try {
      for (const event of prefix) {
        this.ownState.place = place;
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

  /** Ends the watch with an ERROR event, right after `join`: it cannot begin at this place. */
  refuse(place: number, status: Status): void {
    if (this.over) return; // its prefix has failed
    this.resumeAt(place);
    this.stop();
    this.ownState.cut = true;
    this.ownState.refusal = status;
  }

  get stopped(): boolean {
    this.settle();
    return this.drained || this.state.cut;
  }

  get queued(): number {
    this.serve();
    this.settle();
    return this.state.kept.length + this.inLog + (this.state.fold?.live ?? 0);
  }

  /** The total size of the events that the queue holds. With `coalesce`, those are the last ones of each key. */
  sizeOfQueue(sizeOf: (event: E) => number): number {
    this.settle();
    const { kept, fold } = this.state;
    const { position, inLog } = this;
    let size = kept.total(sizeOf) + (fold?.total(sizeOf) ?? 0);
    if (inLog > 0) for (const event of this.view.log.slice(position, position + inLog)) size += sizeOf(event);
    return size;
  }

  get dropped(): number {
    this.serve();
    this.settle();
    return this.state.lost + (this.state.fold?.dropped ?? 0);
  }

  /** Where a watch that continues after what this one has delivered must begin; see log.ts. */
  get place(): number | undefined {
    if (!this.tellsPlace) return undefined;
    this.serve();
    this.settle();
    return this.unreadPlace;
  }

  /** The place of the first event that was not delivered, or else of the next one that will be distributed. */
  private get unreadPlace(): number {
    const { kept, fold, claims, place, resumeAt } = this.state;
    const unread = kept.length > 0 ? kept.place : fold?.place;
    if (unread !== undefined) return unread;
    if (this.inLog > 0) return this.view.log.placeOf(this.position);
    return resumeAt ?? (claims === undefined ? this.headPlace : place);
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
    if (this.first) this.view.readers.add(this);
  }

  takes(position: number): boolean {
    return this.position === position && this.directLimit > 0 && this.wantsOne; // a batch has all events of this turn
  }

  give(event: unknown = this.view.log.at(this.position)): void {
    this.view.log.passed(this.position++);
    this.shift().settle({ done: false, value: event as E });
  }

  /** Whether the next events can be taken straight from the log, as long as the queue is within its capacity. */
  private get clear(): boolean {
    const { kept, missed } = this.state;
    // A cut watcher always has missed events.
    return !this.oneByOne && !this.over && this.standing && kept.length === 0 && missed === 0;
  }

  protected override readWaits(): void {
    if (this.taking) {
      // A read by user code within another: not everything may have been read, as `waits` would take it to mean.
      this.view.readers.wake(this);
    } else {
      this.view.readers.add(this);
      if (this.view.topics) this.view.waits();
    }
    this.taken();
  }

  /** The queue has room, or a pending read: the gate may open. */
  protected override taken(): void {
    if (this.directLimit === 0 && !this.taking && this.clear) this.directLimit = this.options.capacity;
    if (this.view.gate.blocker === this) this.view.mux.pump();
  }

  protected override take(): E | typeof NONE {
    this.settle();
    if (this.state.kept.length > 0) {
      // Removed from the queue first: an `onGap` that publishes must not drop the event it announces.
      const { kept } = this.ownState;
      const { gap } = kept;
      const event = kept.shift();
      if (gap === 0 || this.tell(gap)) return event;
      this.ownState.lost++;
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
    if (count > 0 && this.state.kept.length === 0) return this.stretch(count);
    return super.takeBatch(limit);
  }

  protected override wasted(count: number): void {
    this.ownState.lost += count;
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
    return this.options.onGap !== undefined && this.state.kept.gap > 0;
  }

  protected override end(): void {
    this.settle();
    const { inLog, position } = this;
    if (inLog > 0) {
      const rest = this.view.log.slice(position, position + inLog);
      if (this.state.kept.length === 0 && !this.tellsPlace) this.ownState.kept.adopt(rest);
      else
        rest.forEach((event, at) => {
          this.ownState.place = this.view.log.placeOf(position + at);
          this.keep(event);
        });
    }
    this.leave();
  }

  protected override discard(): void {
    this.settle();
    const { ownState } = this;
    if (this.tellsPlace) ownState.resumeAt = this.unreadPlace;
    ownState.lost += this.inLog + (this.state.fold?.clear() ?? 0);
    this.dropKept();
    ownState.discarded = true;
    ownState.cut = false;
    this.leave();
  }

  /**
   * Calls `onGap` before the event after a gap is delivered. Returns false if the event must not be delivered: the watch was
   * returned, or `onGap` threw. An async one may also fail later.
   */
  private tell(gap: number): boolean {
    const { ownState } = this;
    ownState.reportingGap = this.first !== undefined;
    let isLate = false;
    quietly(
      () => this.options.onGap?.(gap),
      (error) => {
        if (isLate) return this.fail(error);
        this.discard();
        this.failure = { error };
      },
    );
    isLate = true;
    ownState.reportingGap = false;
    return !this.state.discarded;
  }

  /** Called when no unfolded event is queued. Returns what is folded, or the final ERROR of a cut watch. Leaves at the end. */
  private takeFinal(): E | typeof NONE {
    const folded = this.state.fold?.take();
    if (folded !== undefined) return folded;
    if (this.state.cut) {
      this.ownState.cut = false;
      this.leave();
      // Consumers that choose `disconnect` or `coalesce` have ERROR in their event union, as every Kubernetes watch does.
      const { missed, refusal } = this.state;
      return {
        type: 'ERROR',
        object: refusal ?? toExpired(`too slow: ${missed} events were lost; watch again from a fresh state`, missed),
      } as E;
    }
    if (this.drained) this.leave();
    return NONE;
  }
}
