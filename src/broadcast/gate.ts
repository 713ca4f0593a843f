import { type Linked, LinkedSet } from './linked-set.ts';

/** A `wait` watcher, as the gate sees it. */
export interface Gated extends Linked {
  /** The position that head may reach at most for this watcher's sake. Never falls. May judge a filter, which is user code. */
  bound(): number;
}

/**
 * The gate of `wait`: head may not pass the bound of any gated watcher. Since bounds never fall, whatever was seen of them
 * stays true as a lower limit, and watchers are asked again only when head reaches that limit:
 *
 *     head ....... limit: the least bound, of `slowest` ....... others: the least bound of all the rest
 *        moves freely |                                            |
 *                     `- asks `slowest` alone                      `- goes round all
 *
 * So a single slow reader costs one question per event, not a round. A round stops at the first watcher that is full, the
 * `blocker`, and goes on from there when that one has read: N full watchers cost N questions for an event, not N rounds.
 *
 * Invariants: limit <= every bound. others <= every bound but slowest's.
 */
export class Gate {
  /** The full watcher for which head waits. */
  blocker: Gated | undefined;
  private readonly members: LinkedSet<Gated> = new LinkedSet();
  private limit: number = Number.POSITIVE_INFINITY;
  private slowest: Gated | undefined;
  private others: number = Number.POSITIVE_INFINITY;
  /** Who was asked last in the round that is under way, if one is. Who comes or goes ends it. */
  private asked: Gated | undefined;
  private least: number = Number.POSITIVE_INFINITY;
  private second: number = Number.POSITIVE_INFINITY;
  private leastOf: Gated | undefined;
  /** A watcher is being asked, which may run user code; and that may publish, and come here again. */
  private asking: boolean = false;

  /** Nobody may hold head up. */
  get empty(): boolean {
    return !this.members.first;
  }

  add(member: Gated): void {
    const bound = member.bound();
    this.members.add(member);
    this.limit = Math.min(this.limit, bound);
    this.others = Math.min(this.others, bound);
    this.endRound();
  }

  remove(member: Gated): void {
    this.members.delete(member);
    if (this.blocker === member) this.blocker = undefined;
    if (this.slowest === member) this.slowest = undefined;
    this.endRound();
  }

  /** Whether head may pass this position now. */
  open(head: number): boolean {
    if (head < this.limit) return true;
    if (this.asking) return this.openForEach(head);
    const suspect = this.blocker ?? this.slowest;
    if (suspect) {
      const bound = this.ask(suspect);
      // What it was asked may have been user code, by which it left.
      this.blocker = bound <= head && this.members.has(suspect) ? suspect : undefined;
      if (this.blocker) return false;
      if (head < this.others) {
        this.limit = Math.min(bound, this.others);
        return true;
      }
      if (this.asked) this.note(suspect, bound);
    }
    return this.goRound(head);
  }

  private goRound(head: number): boolean {
    for (;;) {
      const member = this.asked ? (this.asked.after as Gated | undefined) : this.members.first;
      if (!member) {
        this.limit = this.least;
        this.slowest = this.leastOf;
        this.others = this.second;
        this.endRound();
        if (head < this.limit) return true;
        continue;
      }
      this.asked = member;
      const bound = this.ask(member);
      if (!this.members.has(member)) continue;
      if (bound <= head) {
        this.blocker = member;
        return false;
      }
      this.note(member, bound);
    }
  }

  private endRound(): void {
    this.asked = this.leastOf = undefined;
    this.least = this.second = Number.POSITIVE_INFINITY;
  }

  private ask(member: Gated): number {
    this.asking = true;
    const bound = member.bound();
    this.asking = false;
    return bound;
  }

  /** The answer for those who come back in: by itself, so that the round under way is none the wiser. */
  private openForEach(head: number): boolean {
    for (let member = this.members.first; member; ) {
      const bound = member.bound();
      const stays = this.members.has(member);
      if (stays && bound <= head) return false;
      // Bounds do not fall: when the one who was asked has left, it does no harm to begin again.
      member = stays ? (member.after as Gated | undefined) : this.members.first;
    }
    return true;
  }

  private note(member: Gated, bound: number): void {
    if (bound < this.least) {
      this.second = this.least;
      this.least = bound;
      this.leastOf = member;
    } else {
      this.second = Math.min(this.second, bound);
    }
  }
}
