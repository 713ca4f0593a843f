import { type Linked, LinkedSet } from './linked-set.ts';

/** A `wait` watcher as seen by the gate. */
export interface Gated extends Linked {
  /** The highest position that head may reach for this watcher. Never decreases. May call the filter, which is user code. */
  bound(): number;
}

/** Hears of the blockers of a gate. */
export interface GateListener {
  blocked(gate: Gate): void;
  freed(gate: Gate): void;
}

/**
 * The gate of `wait`: head must not pass the bound of any gated watcher. Bounds never decrease, so an old answer remains a valid
 * lower limit. Watchers are asked again only when head reaches that limit:
 *
 *     head ....... limit: the least bound, of `slowest` ....... others: the least bound of all the rest
 *        moves freely |                                            |
 *                     `- asks `slowest` alone                      `- asks all, in a round
 *
 * A single slow reader therefore costs one question per event, not a round. A round stops at the first full watcher, the
 * `blocker`, and continues there once it has read: N full watchers cost N questions for an event, not N rounds.
 *
 * Invariants: limit <= every bound. others <= every bound except slowest's.
 */
export class Gate {
  /** The full watcher that head is waiting for. */
  blocker: Gated | undefined;
  /** Since when, if somebody wants to know. */
  sinceMs: number = 0;
  readonly #stalls: GateListener | undefined;
  private readonly members: LinkedSet<Gated> = new LinkedSet();
  #limit: number = Infinity;
  private slowest: Gated | undefined;
  #others: number = Infinity;
  /** The member asked last in the current round, if there is one. A member that joins or leaves ends the round. */
  private asked: Gated | undefined;
  #least: number = Infinity;
  #second: number = Infinity;
  #leastOf: Gated | undefined;
  /** Set while a member is asked. That may run user code, which may publish and so call `open` again. */
  #asking: boolean = false;

  constructor(stalls?: GateListener) {
    this.#stalls = stalls;
  }

  [Symbol.iterator](): Iterator<Gated> {
    return this.members[Symbol.iterator]();
  }

  add(member: Gated): void {
    const bound = member.bound();
    this.members.add(member);
    this.#limit = Math.min(this.#limit, bound);
    this.#others = Math.min(this.#others, bound);
    this.#endRound();
  }

  remove(member: Gated): void {
    this.members.delete(member);
    if (this.blocker === member) this.#block(undefined);
    if (this.slowest === member) this.slowest = undefined;
    this.#endRound();
  }

  /** Whether head may move past this position, as far as that is known without asking anybody. */
  isSurelyOpen(head: number): boolean {
    return head < this.#limit;
  }

  /** Whether head may move past this position now. */
  open(head: number): boolean {
    if (head < this.#limit) return true;
    if (this.#asking) return this.#openForEach(head);
    const suspect = this.blocker ?? this.slowest;
    if (suspect) {
      const bound = this.#ask(suspect);
      // `bound` may have run user code that made the watcher leave.
      this.#block(bound <= head && this.members.has(suspect) ? suspect : undefined);
      if (this.blocker) return false;
      if (head < this.#others) {
        this.#limit = Math.min(bound, this.#others);
        return true;
      }
      if (this.asked) this.#note(suspect, bound);
    }
    return this.#goRound(head);
  }

  #goRound(head: number): boolean {
    for (;;) {
      const member = this.asked ? (this.asked.after as Gated | undefined) : this.members.first;
      if (!member) {
        this.#limit = this.#least;
        this.slowest = this.#leastOf;
        this.#others = this.#second;
        this.#endRound();
        if (head < this.#limit) return true;
        continue;
      }
      this.asked = member;
      const bound = this.#ask(member);
      if (!this.members.has(member)) continue;
      if (bound <= head) {
        this.#block(member);
        return false;
      }
      this.#note(member, bound);
    }
  }

  #block(blocker: Gated | undefined): void {
    if (this.blocker === blocker) return;
    this.blocker = blocker;
    if (blocker) this.#stalls?.blocked(this);
    else this.#stalls?.freed(this);
  }

  #endRound(): void {
    this.asked = this.#leastOf = undefined;
    this.#least = this.#second = Infinity;
  }

  #ask(member: Gated): number {
    this.#asking = true;
    const bound = member.bound();
    this.#asking = false;
    return bound;
  }

  /** Answers a nested call (from user code inside `bound`) without touching the state of the current round. */
  #openForEach(head: number): boolean {
    for (let member = this.members.first; member; ) {
      const bound = member.bound();
      const stays = this.members.has(member);
      if (stays && bound <= head) return false;
      // Bounds never decrease, so it is safe to start over when the watcher that was asked has left.
      member = stays ? (member.after as Gated | undefined) : this.members.first;
    }
    return true;
  }

  #note(member: Gated, bound: number): void {
    if (bound < this.#least) {
      this.#second = this.#least;
      this.#least = bound;
      this.#leastOf = member;
    } else {
      this.#second = Math.min(this.#second, bound);
    }
  }
}
