import { type Linked, LinkedSet } from './linked-set.ts';

/** A watcher that stands in the log and may fall behind. */
export interface Laggard extends Linked {
  /** The chunk number at whose beginning this watcher will have overflowed for sure, unless it reads on meanwhile. */
  dueChunk(): number;
  /** It has not read on: it must leave the log now. */
  lag(): void;
}

/**
 * Who must be looked at when: each watcher that stands in the log is in the set of the chunk by whose beginning it will
 * certainly have overflowed. A publisher looks at a set when head enters that chunk, and never at the others, so that
 * publishing costs the same whatever the number of laggards.
 *
 *     head enters chunk 12:   due 12: {p, q}      due 13: {r}      due 16: {s, t, ...}
 *                                      |  `- has read on: moves to the set of its new due chunk, once per capacity
 *                                      `---- has not: lag(), and it stands nowhere until it reads again
 */
export class Laggards {
  private readonly sets: Map<number, DueSet> = new Map();
  /** The chunk that head entered last. */
  private now: number = 0;

  add(laggard: Laggard): void {
    const due = Math.max(laggard.dueChunk(), this.now + 1);
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

  /** Head has entered this chunk. `lag` may run user code, by which others leave the set, or judge a later one. */
  judge(chunk: number): void {
    this.now = chunk;
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
