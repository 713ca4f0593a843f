/** An event that was set aside, and how many were lost right before it. */
export interface KeptEvent<E> {
  readonly event: E;
  gap: number;
}

/**
 * A watcher's own short queue: events that the log need not hold for it any more.
 *
 *     start
 *       v
 *     [a 0] [b 0] [f 3]         c, d and e were lost between b and f
 */
export class Kept<E> {
  private items: (KeptEvent<E> | undefined)[] = [];
  private start: number = 0;

  get length(): number {
    return this.items.length - this.start;
  }

  /** How many events were lost right before the first. */
  get gap(): number {
    return this.items[this.start]?.gap ?? 0;
  }

  push(event: E, gap: number): void {
    this.items.push({ event, gap });
  }

  shift(): KeptEvent<E> {
    const item = this.items[this.start] as KeptEvent<E>;
    this.items[this.start++] = undefined;
    // The dead stretch is never longer than the live one: O(1) for each event, amortized.
    if (this.start > 31 && this.start * 2 > this.items.length) {
      this.items = this.items.slice(this.start);
      this.start = 0;
    }
    return item;
  }

  /** Drops the event at `index`, which exists. Answers how many are lost now before the next one, if there is none yet. */
  drop(index: number): number {
    const at = this.start + index;
    const lost = (this.items[at] as KeptEvent<E>).gap + 1;
    const next = this.items[at + 1];
    // The few before it move up by one place: O(index), however many stand behind.
    this.items.copyWithin(this.start + 1, this.start, at);
    this.shift();
    if (next === undefined) return lost;
    next.gap += lost;
    return 0;
  }
}
