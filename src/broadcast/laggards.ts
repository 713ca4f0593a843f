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
