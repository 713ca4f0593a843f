import { Heap, type HeapNode } from './heap.ts';

/** What the line keeps of a key that stands in it. */
export interface Waiting extends HeapNode {
  priority: number;
  /** When it joined the line, in milliseconds of the clock. */
  readyAtMs: number;
  /** How many had joined before it. */
  turn: number;
  /** Its neighbours, while it stands in the file. */
  ahead: Waiting | undefined;
  behind: Waiting | undefined;
}

/**
 * The keys that are ready, in the order in which they are handed out.
 *
 *     file   k1 <-> k2 <-> k3        priority 0: first come, first served, and nothing to compare
 *     heap      k9                   all others, by rank
 *             k7  k8
 *
 *     rank = readyAtMs - priority * agingMs          the smaller of the two heads is next
 *
 * The rank is the whole of aging. A key gains one level of priority for each `agingMs` that it waits; but all keys age alike, so
 * whoever is ahead stays ahead, and a number that never changes says it. Nothing starves: a key of priority p can be overtaken by
 * one of priority q > p only if that one joins less than (q - p) * agingMs after it.
 */
export class Line<W extends Waiting> {
  private readonly agingMs: number;
  private readonly heap: Heap<W>;
  private head: W | undefined;
  private tail: W | undefined;
  private filed: number = 0;
  private turns: number = 0;

  constructor(agingMs: number) {
    this.agingMs = agingMs;
    this.heap = new Heap((one, other) => this.precedes(one, other));
  }

  get size(): number {
    return this.filed + this.heap.size;
  }

  /** Adds one that is not in the line. */
  push(one: W, nowMs: number): void {
    one.readyAtMs = nowMs;
    one.turn = this.turns++;
    this.insert(one);
  }

  /** Gives one that stands in the line another priority. It keeps the time that it has waited. */
  raise(one: W, priority: number): void {
    this.remove(one);
    one.priority = priority;
    this.heap.add(one); // at its old place in the file it might stand between younger ones
  }

  /** Puts one that was handed out back, ahead of those that have joined since. */
  putBack(one: W): void {
    this.heap.add(one);
  }

  /** Removes and returns the next one. */
  shift(): W | undefined {
    const { head } = this;
    const { first } = this.heap;
    const next = head && (!first || this.precedes(head, first)) ? head : first;
    if (next) this.remove(next);
    return next;
  }

  private insert(one: W): void {
    if (one.priority !== 0) {
      this.heap.add(one);
      return;
    }
    one.ahead = this.tail;
    if (this.tail) this.tail.behind = one;
    else this.head = one;
    this.tail = one;
    this.filed++;
  }

  private remove(one: W): void {
    if (one.place >= 0) {
      this.heap.remove(one);
      return;
    }
    const ahead = one.ahead as W | undefined;
    const behind = one.behind as W | undefined;
    if (ahead) ahead.behind = behind;
    else this.head = behind;
    if (behind) behind.ahead = ahead;
    else this.tail = ahead;
    one.ahead = one.behind = undefined;
    this.filed--;
  }

  private precedes(one: W, other: W): boolean {
    const rank = one.readyAtMs - one.priority * this.agingMs;
    const others = other.readyAtMs - other.priority * this.agingMs;
    return rank < others || (rank === others && one.turn < other.turn);
  }
}
