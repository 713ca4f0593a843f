/** A watcher whose reads may be pending. */
export interface WaitingReader {
  isWaiting: boolean;
  /** Serves its pending reads. Adds the watcher again if one still waits. */
  wake(): void;
  /** Whether it has a single pending read, for one event, and `give` serves it without running user code. Absent: no. */
  readonly takesNext?: boolean;
  /** Serves that read with the next event. */
  give?(event: unknown): void;
}

/** So few waiting readers are served by the publisher itself: with more, the price of publishing would depend on their number. */
const FEW = 16;

/**
 * The watchers with pending reads. The first event that becomes visible schedules one microtask, which serves them all. A burst
 * costs each of them one wake-up, and the cost of publishing does not depend on their number.
 *
 *     wait -> add --.                .--> wake, in the order of add; a watcher that still waits is added again
 *                   [ p q r s t ]  --'
 *     leave: not added again when the row is served, which is done early once they are the larger part
 *
 * A few watchers that all wait for the next event, as in most programs, need neither a microtask nor a place in the log: the
 * publisher settles their promises (`takesNext`, `give`). Their code runs after its turn in either case.
 *
 * Two arrays take turns: one is served while the other is filled. Growing a new array each time would be a tenth of the cost of
 * an event that finds every watcher waiting.
 */
export class WaitingReaders {
  private row: (WaitingReader | undefined)[] = [];
  #spare: (WaitingReader | undefined)[] = [];
  private count: number = 0;
  /** Number of watchers in the row that have left. */
  #gone: number = 0;
  #scheduled: boolean = false;
  readonly #onDue: (readers: WaitingReaders) => void;

  /** @param onDue is called when a watcher is to be served: it sees to it that `serve` is called at the end of the turn. */
  constructor(onDue: (readers: WaitingReaders) => void) {
    this.#onDue = onDue;
  }

  /** Number of watchers that wait and have nothing to read; 0 while they are about to be served. */
  get idle(): number {
    return this.#scheduled ? 0 : this.count - this.#gone;
  }

  add(watcher: WaitingReader): void {
    if (watcher.isWaiting) return;
    watcher.isWaiting = true;
    this.row[this.count++] = watcher;
  }

  /** Whether these are few, and all of this many watchers, and each takes the next event. */
  takesNext(watchers: number): boolean {
    const { row, count } = this;
    if (count !== watchers || count > FEW) return false;
    for (let at = 0; at < count; at++) if (!(row[at] as WaitingReader).takesNext) return false;
    return count > 0;
  }

  /** Serves all of them with the next event. */
  give(event: unknown): void {
    const { row, count } = this;
    this.count = 0;
    for (let at = 0; at < count; at++) {
      const watcher = row[at] as WaitingReader;
      row[at] = undefined;
      watcher.isWaiting = false;
      watcher.give?.(event);
    }
  }

  /** Schedules the waiting readers for the end of this turn. Called when an event became visible. */
  notify(): void {
    if (this.count > 0) this.#schedule();
  }

  /** Adds a watcher and serves it at the end of this turn. */
  wake(watcher: WaitingReader): void {
    this.add(watcher);
    this.#schedule();
  }

  /** Wakes all watchers that wait now. Must not be called from inside a `wake`, because the row being served is reused next time. */
  serve(): void {
    const { row, count } = this;
    this.#scheduled = false;
    this.row = this.#spare;
    this.#spare = row.length > 4 * count + 64 ? [] : row;
    this.count = this.#gone = 0;
    for (let at = 0; at < count; at++) {
      const watcher = row[at] as WaitingReader;
      row[at] = undefined;
      watcher.isWaiting = false;
      watcher.wake();
    }
  }

  /** Called when a waiting watcher has left. O(1), amortized. */
  leave(): void {
    this.#gone++;
    // A short row is served at the end of the turn in any case: some may still have a read to settle.
    if (this.count <= 64 || this.#gone * 2 >= this.count) this.#schedule();
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    this.#onDue(this);
  }
}
