import { type Linked, LinkedSet } from './linked-set.ts';

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
