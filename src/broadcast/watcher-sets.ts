/** A member of at most one set at a time. It carries the links itself: two fields instead of a table entry. */
export interface Linked {
  /** The set that holds it, or a placeholder while it moves between sets; undefined once it has left for good. */
  inSet: object | undefined;
  before: Linked | undefined;
  after: Linked | undefined;
}

/** A set in insertion order. If user code runs during a walk, check that the member is still in the set. */
export class LinkedSet<M extends Linked> {
  first: M | undefined;
  #last: M | undefined;

  *[Symbol.iterator](): IterableIterator<M> {
    for (let member = this.first; member; member = member.after as M | undefined) yield member;
  }

  has(member: M): boolean {
    return member.inSet === this;
  }

  /** Adds a member that is in no set. */
  add(member: M): void {
    member.inSet = this;
    member.before = this.#last;
    if (!this.#last) this.first = member;
    else this.#last.after = member;
    this.#last = member;
  }

  /** Removes a member and sets its `inSet` to `to`. Returns whether the member was in this set. */
  delete(member: M, to?: object): boolean {
    if (member.inSet !== this) return false;
    member.inSet = to;
    const { before, after } = member;
    if (!before) this.first = after as M | undefined;
    else before.after = after;
    if (!after) this.#last = before as M | undefined;
    else after.before = before;
    member.before = member.after = undefined;
    return true;
  }
}

/** A watcher that stands in the log and may fall behind. */
export interface Laggard extends Linked {
  /** The chunk at whose start this watcher will certainly have overflowed, unless it reads in the meantime. */
  dueChunk(): number;
  /** Called if it has not read in time: it must leave the log now. */
  lag(): void;
}

/**
 * Decides which standing watchers to examine, and when. Each is in the set of the chunk at whose start it will certainly have
 * overflowed. When head enters a chunk, a publisher examines that chunk's set and no other, so the cost of publishing does not
 * depend on the number of laggards.
 *
 *     head enters chunk 12:   due 12: {p, q}      due 13: {r}      due 16: {s, t, ...}
 *                                      |  `- has read: moves to the set of its new due chunk
 *                                      `---- has not: lag(), and it stands nowhere until it reads again
 */
export class Laggards {
  private readonly sets: Map<number, DueSet> = new Map();
  /** The chunk that head entered last. */
  #now: number = 0;

  *[Symbol.iterator](): IterableIterator<Laggard> {
    for (const set of this.sets.values()) yield* set;
  }

  add(laggard: Laggard): void {
    const due = Math.max(laggard.dueChunk(), this.#now + 1);
    let set = this.sets.get(due);
    if (!set) {
      set = new DueSet(due);
      this.sets.set(due, set);
    }
    set.add(laggard);
  }

  remove(laggard: Laggard): void {
    const { inSet: set } = laggard;
    if (!(set instanceof DueSet)) return;
    set.delete(laggard);
    if (!set.first) this.sets.delete(set.due);
  }

  /** Called when head has entered a chunk. `lag` may run user code, which may take others out of the set or judge a later one. */
  judge(chunk: number): void {
    this.#now = Math.max(this.#now, chunk); // user code in an earlier view may have moved this one on
    const set = this.sets.get(chunk);
    if (!set) return;
    for (let laggard = set.first; laggard; laggard = set.first) {
      set.delete(laggard, this);
      if (laggard.dueChunk() > chunk) this.add(laggard);
      else laggard.lag();
    }
    this.sets.delete(chunk);
  }
}

class DueSet extends LinkedSet<Laggard> {
  readonly due: number;

  constructor(due: number) {
    super();
    this.due = due;
  }
}

/** A watcher whose reads may be pending. */
export interface WaitingReader {
  isWaiting: boolean;
  /** Serves its pending reads. Adds the watcher again if one still waits. */
  wake(): void;
  /** Whether it has a single pending read, for the event at this position, and `give` serves it without running user code. */
  takes?(position: number): boolean;
  /** Serves that read with this event; absent: with the next one of the log. */
  give?(event?: unknown): void;
}

/**
 * At most this many waiting readers are served by the publisher itself: with more, the cost of publishing would depend on their
 * number.
 */
const FEW = 16;

/**
 * The watchers with pending reads. The first event that becomes visible schedules one microtask, which serves them all. A burst
 * costs each of them one wake-up, and the cost of publishing does not depend on their number.
 *
 *     wait -> add --.                .--> wake, in the order of add; a watcher that still waits is added again
 *                   [ p q r s t ]  --'
 *     leave: not added again when the row is served, which is done early once they are the larger part
 *
 * A few watchers, as most programs have, need no microtask: the publisher itself settles the promises of those that `take` the
 * event. Their code runs after its turn in either case.
 *
 * Two arrays take turns: one is served while the other is filled. Growing a new array each time would be a tenth of the cost of
 * an event that finds every watcher waiting.
 */
export class WaitingReaders {
  #row: (WaitingReader | undefined)[] = []; // where JSON does not look: it would find the watchers, and they refer to this
  #spare: (WaitingReader | undefined)[] = [];
  private count: number = 0;
  /** Number of watchers in the row that have left. */
  #gone: number = 0;
  #scheduled: boolean = false;
  readonly #onDue: (readers: WaitingReaders) => void;

  /** @param onDue is called when a watcher must be served: it must have `serve` called at the end of the turn. */
  constructor(onDue: (readers: WaitingReaders) => void) {
    this.#onDue = onDue;
  }

  /** Number of watchers that wait and have nothing to read; 0 while they are about to be served. */
  get idle(): number {
    return this.#scheduled ? 0 : this.count - this.#gone;
  }

  private get row(): (WaitingReader | undefined)[] {
    return this.#row;
  }

  add(watcher: WaitingReader): void {
    if (watcher.isWaiting) return;
    watcher.isWaiting = true;
    this.#row[this.count++] = watcher;
  }

  /** Whether these are few, and all of this many watchers, and each takes the event at this position. */
  allTake(position: number, watchers: number): boolean {
    const { row, count } = this;
    if (count !== watchers || count > FEW) return false;
    for (let at = 0; at < count; at++) if (!(row[at] as WaitingReader).takes?.(position)) return false;
    return count > 0;
  }

  /** Serves those that take the event at this position; all, if the event is given. The others stay, in their order. */
  give(position: number, event?: unknown): void {
    const { row, count } = this;
    let left = 0;
    for (let at = 0; at < count; at++) {
      const watcher = row[at] as WaitingReader;
      row[at] = undefined;
      if (event !== undefined || watcher.takes?.(position)) {
        watcher.isWaiting = false;
        watcher.give?.(event);
      } else row[left++] = watcher;
    }
    this.count = left;
  }

  /**
   * Called when an event became visible: serves the waiting readers at the end of this turn. With its position, those that take it
   * are served at once if they are few.
   */
  notify(position?: number): void {
    if (this.count === 0) return;
    if (position !== undefined && this.count <= FEW) this.give(position);
    if (this.count > 0) this.#schedule();
  }

  /** Adds a watcher and serves it at the end of this turn. */
  wake(watcher: WaitingReader): void {
    this.add(watcher);
    this.#schedule();
  }

  /** Wakes all watchers that wait now. Must not be called from inside a `wake`, because the row being served is reused next time. */
  serve(): void {
    const { row, count } = this;
    this.#scheduled = false;
    this.#row = this.#spare;
    this.#spare = row.length > 4 * count + 64 ? [] : row;
    this.count = this.#gone = 0;
    for (let at = 0; at < count; at++) {
      const watcher = row[at] as WaitingReader;
      row[at] = undefined;
      watcher.isWaiting = false;
      watcher.wake();
    }
  }

  /** Called when a waiting watcher has left. O(1), amortized. */
  leave(): void {
    this.#gone++;
    // A short row is served at the end of the turn in any case: some may still have a read to settle.
    if (this.count <= 64 || this.#gone * 2 >= this.count) this.#schedule();
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    this.#onDue(this);
  }
}
