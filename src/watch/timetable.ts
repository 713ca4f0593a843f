/**
 * Many deadlines, one timer: watches that end, keys that expire, work that is delayed, clients whose tokens expire.
 *
 *     at(one, time) --> heap     first --- the timer runs until it is due
 *                               /     \        |
 *                           others   others    v
 *                                            due(each), in order of time, and of arrival if the times are equal
 *
 * A waiting thing is itself a node of the heap, so it can be moved or removed without a search, and costs three small numbers.
 *
 * **Is it exact?** It is never early, and late by less than the grain: times are rounded up to multiples of it. With a coarse
 * grain, things that are due at nearly the same time are called together.
 * **What if a great many are due at once?** They are called for a few milliseconds, and the rest in the following turns of the
 * event loop. Adding, moving and removing take O(log n).
 * **What may `due` do?** Anything: its argument is no longer here, and can be added again; others can be moved and removed.
 * Errors reach the clock that called, after the timer has been set for the rest.
 *
 * Invariants
 * - No element of a heap precedes its parent; each knows its own index.
 * - One timer runs as long as something waits. It fires when the first is due, or earlier if one that was removed was first; then
 *   it is set again.
 */
import type { Clock } from './clock.ts';

/** How long it makes calls in one go, as in a fair queue, unless a single call takes longer. */
const PIECE_MS = 5;

/** An element of a {@link Heap}, and of at most one. Only the heap writes its members. */
export interface HeapNode {
  /** The smallest is first. */
  heapRank: number;
  /** Among equal ranks, the one that was added first comes first. */
  heapTurn: number;
  /** Its index; -1 while it is in no heap. */
  heapAt: number;
}

/**
 * A binary heap: the first element precedes all others.
 *
 *            0            the children of i are 2i + 1 and 2i + 2
 *          1   2
 *         3 4 5 6
 *
 * Adding, removing and moving an element cost O(log n), and adding one that comes last O(1); looking at the first is free.
 */
export class Heap<N extends HeapNode> {
  readonly #nodes: N[] = [];
  #turns: number = 0;

  get size(): number {
    return this.#nodes.length;
  }

  get first(): N | undefined {
    return this.#nodes[0];
  }

  /** Adds a node that is not in the heap. */
  add(node: N, rank: number): void {
    node.heapTurn = this.#turns++;
    this.put(node, rank);
  }

  /** Moves a node to another rank, or puts back one that was removed. Among equal ranks, it keeps its turn. */
  put(node: N, rank: number): void {
    node.heapRank = rank;
    if (node.heapAt < 0) node.heapAt = this.#nodes.push(node) - 1;
    this.#sift(node, node.heapAt);
  }

  /** Removes a node, if it is here. */
  remove(node: N): void {
    if (node.heapAt < 0) return;
    const last = this.#nodes.pop() as N;
    if (last !== node) this.#sift(last, node.heapAt);
    node.heapAt = -1;
  }

  clear(): void {
    for (const node of this.#nodes) node.heapAt = -1;
    this.#nodes.length = 0;
  }

  /** Moves a node from a free place to its own: up, past nodes that come after it, or down. */
  #sift(node: N, from: number): void {
    const nodes = this.#nodes;
    let at = from;
    const swap = (other: N): void => {
      const to = other.heapAt;
      other.heapAt = at;
      nodes[at] = other;
      at = to;
    };
    while (at > 0) {
      const parent = nodes[(at - 1) >> 1] as N;
      if (!precedes(node, parent)) break;
      swap(parent);
    }
    for (let left = 2 * at + 1; left < nodes.length; left = 2 * at + 1) {
      const right = nodes[left + 1];
      const child = right && precedes(right, nodes[left] as N) ? right : (nodes[left] as N);
      if (!precedes(child, node)) break;
      swap(child);
    }
    nodes[at] = node;
    node.heapAt = at;
  }
}

function precedes(one: HeapNode, other: HeapNode): boolean {
  return one.heapRank < other.heapRank || (one.heapRank === other.heapRank && one.heapTurn < other.heapTurn);
}

/** See the top of this file. */
export class Timetable<D extends HeapNode> {
  readonly #clock: Clock;
  readonly #due: (one: D, nowMs: number) => void;
  readonly #grainMs: number;
  readonly #heap: Heap<D> = new Heap();
  #cancel: (() => void) | undefined;
  /** When the timer fires; Infinity: there is none; -Infinity: it will be set once everything due has been called. */
  #timerMs: number = Infinity;

  /** By default times are rounded up to whole milliseconds, which V8 keeps without extra memory. */
  constructor(clock: Clock, due: (one: D, nowMs: number) => void, { grainMs = 1 }: { readonly grainMs?: number } = {}) {
    this.#clock = clock;
    this.#due = due;
    this.#grainMs = grainMs;
  }

  /** Number of things that wait. */
  get size(): number {
    return this.#heap.size;
  }

  /** When it is due, by the clock; Infinity if it is not here. */
  timeOf(one: D): number {
    return one.heapAt < 0 ? Infinity : one.heapRank;
  }

  /** Adds it, or moves it if it is here. Infinity removes it. */
  at(one: D, timeMs: number): void {
    if (timeMs === Infinity) {
      this.remove(one);
      return;
    }
    const dueMs = Math.ceil(timeMs / this.#grainMs) * this.#grainMs;
    if (one.heapAt < 0) this.#heap.add(one, dueMs);
    else this.#heap.put(one, dueMs);
    this.#arm();
  }

  /** The same, after a delay from now. */
  after(one: D, delayMs: number): void {
    this.at(one, this.#clock.now() + delayMs);
  }

  /** The same, unless it is due earlier. */
  within(one: D, delayMs: number): void {
    const timeMs = this.#clock.now() + delayMs;
    if (timeMs < this.timeOf(one)) this.at(one, timeMs);
  }

  /** Removes it, if it is here. */
  remove(one: D): void {
    this.#heap.remove(one);
    if (this.size === 0) this.#disarm();
  }

  /** Removes all, and leaves no timer. */
  clear(): void {
    this.#heap.clear();
    this.#disarm();
  }

  #arm(): void {
    const firstMs = this.#heap.first?.heapRank ?? Infinity;
    if (firstMs >= this.#timerMs) return;
    this.#disarm();
    this.#timerMs = firstMs;
    this.#cancel = this.#clock.schedule(firstMs - this.#clock.now(), () => this.#fire());
  }

  #disarm(): void {
    this.#cancel?.();
    this.#cancel = undefined;
    this.#timerMs = Infinity;
  }

  #fire(): void {
    this.#timerMs = -Infinity;
    const nowMs = this.#clock.now();
    try {
      for (let { first } = this.#heap; first && first.heapRank <= nowMs; { first } = this.#heap) {
        this.#heap.remove(first);
        this.#due(first, nowMs);
        if (this.#clock.now() - nowMs >= PIECE_MS) break;
      }
    } finally {
      this.#disarm();
      this.#arm();
    }
  }
}
