import { type Clock, upkeepClock } from '../watch/clock.ts';
import { WatchError } from '../watch/errors.ts';
import type { Failures } from '../watch/failures.ts';
import { type Linked, LinkedSet } from './watcher-sets.ts';

/** A `wait` watcher as seen by the gate. */
export interface Gated extends Linked {
  /** The highest position that head may reach for this watcher. Never decreases. May call the filter, which is user code. */
  bound(): number;
}

/** Is notified of the blockers of a gate. */
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
  /** Since when, if there is a listener. */
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

  /** Whether head may move past this position, as far as that is known without asking a watcher. */
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

/** Options of {@link Stalls}. */
export interface StallOptions {
  /** 0: never. */
  readonly stalledMs: number;
  readonly clock: Clock;
  readonly failures: Failures;
}

/**
 * Notices that a `wait` watcher holds up the publisher for too long.
 *
 *     gate: blocked ---> since now ---> timer: still the same? ---> reported ---> gate: freed ---> over
 *
 * A publisher that is faster than its readers is held up at every event. So all gates share one timer, which is not reset for
 * each, and does not keep the process alive.
 */
export class Stalls {
  readonly #options: StallOptions;
  readonly #clock: Clock;
  readonly #nameOf: (watcher: Gated) => string;
  /** The gates with a blocker that is not reported yet. */
  readonly #blocked: Set<Gate> = new Set();
  readonly #reported: Set<Gate> = new Set();
  #cancel: (() => void) | undefined;

  /** @param nameOf describes a watcher in a report. */
  constructor(options: StallOptions, nameOf: (watcher: Gated) => string) {
    this.#options = options;
    this.#clock = upkeepClock(options.clock);
    this.#nameOf = nameOf;
  }

  /** A gate now has a blocker. */
  blocked(gate: Gate): void {
    const { stalledMs, clock } = this.#options;
    this.#free(gate);
    gate.sinceMs = clock.now();
    if (stalledMs === 0) return;
    this.#blocked.add(gate);
    this.#cancel ??= this.#clock.schedule(stalledMs, () => this.#check());
  }

  /** A gate no longer has a blocker. */
  freed(gate: Gate): void {
    this.#blocked.delete(gate);
    this.#free(gate);
  }

  /** Nothing is held up any longer. */
  end(): void {
    this.#cancel?.();
    this.#cancel = () => {}; // no timer from now on: a filter that is asked whether its queue is full may have shut down
    for (const gate of this.#reported) this.#free(gate);
  }

  #free(gate: Gate): void {
    if (this.#reported.delete(gate) && this.#reported.size === 0) this.#options.failures.up('publishing');
  }

  #check(): void {
    const { stalledMs: limit, clock, failures } = this.#options;
    const nowMs = clock.now();
    this.#cancel = undefined;
    let leftMs = Infinity;
    for (const gate of this.#blocked) {
      const { blocker } = gate;
      const restMs = gate.sinceMs + limit - nowMs;
      if (blocker && restMs > 0) {
        leftMs = Math.min(leftMs, restMs);
        continue;
      }
      this.#blocked.delete(gate);
      if (!blocker) continue;
      this.#reported.add(gate);
      const text = `${this.#nameOf(blocker)} has held up the publisher for ${limit} ms`;
      failures.down('publishing', new WatchError('TIMEOUT', text, { limit }), ' to go on');
    }
    // What was reported may have run code that blocks a gate.
    if (this.#blocked.size > 0 && leftMs < Infinity) {
      this.#cancel ??= this.#clock.schedule(leftMs, () => this.#check());
    }
  }
}
