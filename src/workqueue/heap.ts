/** An element of a {@link Heap}. Only the heap writes its members. */
export interface HeapNode {
  /** The smallest is first. */
  rank: number;
  /** Among equal ranks, the one that was added first comes first. */
  turn: number;
  /** Its index, so that it can be moved or removed without a search; -1 while it is in no heap. */
  place: number;
}

/**
 * A binary heap: the first element is always the one that comes before all others. An element is in at most one heap.
 *
 *            0            the children of i are 2i + 1 and 2i + 2;
 *          1   2          none of them comes before i
 *         3 4 5 6
 *
 * Adding, removing and moving an element cost O(log n), and adding one that comes last O(1); looking at the first is free.
 */
export class Heap<N extends HeapNode> {
  readonly nodes: N[] = [];
  #turns: number = 0;

  /** Adds a node that is not in the heap. */
  add(node: N, rank: number): void {
    node.turn = this.#turns++;
    this.put(node, rank);
  }

  /** Moves a node to another rank, or puts back one that was removed. Among equal ranks it keeps its turn. */
  put(node: N, rank: number): void {
    node.rank = rank;
    if (node.place < 0) node.place = this.nodes.push(node) - 1;
    this.#sift(node, node.place);
  }

  /** Removes a node that is in the heap. */
  remove(node: N): void {
    const last = this.nodes.pop() as N;
    if (last !== node) this.#sift(last, node.place);
    node.place = -1;
  }

  /** Moves a node from a free place to where it belongs: up, past nodes that come after it, or down. */
  #sift(node: N, from: number): void {
    const { nodes } = this;
    let at = from;
    const swap = (other: N): void => {
      const to = other.place;
      other.place = at;
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
    node.place = at;
  }
}

function precedes(one: HeapNode, other: HeapNode): boolean {
  return one.rank < other.rank || (one.rank === other.rank && one.turn < other.turn);
}
