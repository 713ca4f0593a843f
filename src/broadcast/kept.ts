/**
 * A watcher's own short queue, for events that the log no longer keeps for it.
 *
 *              start
 *                v
 *     events  [. a b f]         gaps  {f: 3}, as c, d and e were lost between b and f
 *
 * Watchers that fall behind in step set the same stretch of the log aside. They share one array until one of them has to modify
 * it. Events are numbered from the first one ever; a gap is stored under the number of the event behind it.
 */
export class Kept<E> {
  private events: readonly (E | undefined)[] = [];
  private shared: boolean = false;
  private start: number = 0;
  /** Number of the first event in `events`. */
  private base: number = 0;
  private gaps: Map<number, number> | undefined;

  get length(): number {
    return this.events.length - this.start;
  }

  /** How many events were lost right before the first event. */
  get gap(): number {
    return this.gapAt(this.start);
  }

  /** Takes over a whole stretch, which must not be modified from now on. Allowed only while nothing is kept. */
  adopt(events: readonly E[]): void {
    this.events = events;
    this.shared = true;
  }

  push(event: E, gap: number): void {
    const events = this.own();
    this.setGap(events.length, gap);
    events.push(event);
  }

  shift(): E {
    const event = this.events[this.start] as E;
    this.setGap(this.start, 0);
    if (!this.shared) this.own()[this.start] = undefined;
    this.start++;
    // The dead stretch stays shorter than the live one: O(1) per event, amortized. A half-read array is no longer shared.
    if (this.length === 0 || (this.start > 31 && this.start * 2 > this.events.length)) this.compact();
    return event;
  }

  /**
   * Drops the event at `index`, which must exist. Returns the size of the gap it leaves if no event is behind it, otherwise 0.
   */
  drop(index: number): number {
    const events = this.own();
    const at = this.start + index;
    const lost = this.gapAt(at) + 1;
    // Moves the few events before it up by one: O(index), however many are behind it.
    for (let to = at; to > this.start; to--) {
      events[to] = events[to - 1];
      this.setGap(to, this.gapAt(to - 1));
    }
    const last = at === events.length - 1;
    if (!last) this.setGap(at + 1, this.gapAt(at + 1) + lost);
    this.shift();
    return last ? lost : 0;
  }

  private gapAt(index: number): number {
    return this.gaps?.get(this.base + index) ?? 0;
  }

  private setGap(index: number, gap: number): void {
    if (gap > 0) {
      this.gaps ??= new Map();
      this.gaps.set(this.base + index, gap);
    } else {
      this.gaps?.delete(this.base + index);
    }
  }

  /** Returns the array for modification. */
  private own(): (E | undefined)[] {
    if (this.shared) this.compact();
    return this.events as (E | undefined)[];
  }

  private compact(): void {
    this.events = this.events.slice(this.start);
    this.shared = false;
    this.base += this.start;
    this.start = 0;
  }
}
