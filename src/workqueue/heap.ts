/** An element of a {@link Heap}. It knows its place, so that it can be moved or removed without a search. */
export interface HeapNode {
  /** Its index, or -1 while it is in no heap. The heap writes it. */
  place: number;
}

/**
 * A binary heap: the first element is always the one that comes before all others. An element is in at most one heap.
 *
 *            0            the children of i are 2i + 1 and 2i + 2;
 *          1   2          none of them comes before i
 *         3 4 5 6
 *
 * Adding, removing and moving an element cost O(log n); looking at the first is free.
 */
export class Heap<N extends HeapNode> {
  private readonly nodes: N[] = [];
  private readonly before: (one: N, other: N) => boolean;

  constructor(before: (one: N, other: N) => boolean) {
    this.before = before;
  }

  get size(): number {
    return this.nodes.length;
  }

  get first(): N | undefined {
    return this.nodes[0];
  }

  add(node: N): void {
    this.nodes.push(node);
    this.up(node, this.nodes.length - 1);
  }

  /** Removes an element that is in this heap. */
  remove(node: N): void {
    const last = this.nodes.pop() as N;
    if (last !== node) this.settle(last, node.place);
    node.place = -1;
  }

  /** Restores the order after an element has changed. */
  moved(node: N): void {
    this.settle(node, node.place);
  }

  clear(): void {
    for (const node of this.nodes) node.place = -1;
    this.nodes.length = 0;
  }

  private settle(node: N, at: number): void {
    const up = this.up(node, at);
    if (up === at) this.down(node, at);
  }

  private up(node: N, from: number): number {
    let at = from;
    while (at > 0) {
      const above = (at - 1) >> 1;
      const parent = this.nodes[above] as N;
      if (!this.before(node, parent)) break;
      this.put(parent, at);
      at = above;
    }
    this.put(node, at);
    return at;
  }

  private down(node: N, from: number): void {
    let at = from;
    for (;;) {
      const left = 2 * at + 1;
      if (left >= this.nodes.length) break;
      const right = left + 1;
      const rightFirst = right < this.nodes.length && this.before(this.nodes[right] as N, this.nodes[left] as N);
      const below = rightFirst ? right : left;
      const child = this.nodes[below] as N;
      if (!this.before(child, node)) break;
      this.put(child, at);
      at = below;
    }
    this.put(node, at);
  }

  private put(node: N, at: number): void {
    this.nodes[at] = node;
    node.place = at;
  }
}
