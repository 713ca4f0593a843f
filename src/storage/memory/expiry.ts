import type { Clock } from '../../watch/clock.ts';
import { type HeapNode, Timetable } from '../../watch/timetable.ts';

interface Deadline extends HeapNode {
  readonly key: string;
}

/** When which key is to be deleted. */
export class Expiry {
  readonly #clock: Clock;
  readonly #table: Timetable<Deadline>;
  readonly #byKey: Map<string, Deadline> = new Map();

  /** `expire` is called with a key that is due; its deadline is gone by then. */
  constructor(clock: Clock, expire: (key: string) => void) {
    this.#clock = clock;
    this.#table = new Timetable(clock, ({ key }) => {
      this.#byKey.delete(key);
      expire(key);
    });
  }

  /** Number of deadlines. */
  get size(): number {
    return this.#byKey.size;
  }

  /** Sets the deadline of a key, or with undefined removes it. */
  set(key: string, inMs: number | undefined): void {
    let deadline = this.#byKey.get(key);
    if (inMs === undefined) {
      if (!deadline) return;
      this.#table.remove(deadline);
      this.#byKey.delete(key);
      return;
    }
    deadline ??= { key, heapRank: 0, heapTurn: 0, heapAt: -1 };
    this.#byKey.set(key, deadline);
    this.#table.after(deadline, inMs);
  }

  /** How long a key has left, in ms. */
  left(key: string): number | undefined {
    const deadline = this.#byKey.get(key);
    return deadline && Math.max(0, this.#table.timeOf(deadline) - this.#clock.now());
  }

  clear(): void {
    this.#byKey.clear();
    this.#table.clear();
  }
}
