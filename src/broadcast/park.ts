import { soon } from './soon.ts';

/** A watcher whose reads may wait. */
export interface Parked {
  inPark: boolean;
  readonly hasReads: boolean;
  wake(): void;
}

/**
 * The watchers whose reads wait. The first event that becomes visible schedules one microtask, which serves them all: a burst
 * costs each of them one wake-up, and publishing does not depend on their number.
 *
 *     wait -> add --.                .--> wake, in the order in which they came; who still waits is added again
 *                   [ p q r s t ]  --'
 *     leave: swept out when they are the larger part
 *
 * Two rows take turns, each emptied as it is served, and filled again: every event that finds everyone waiting fills one, and
 * growing a new array each time would be a tenth of its cost.
 */
export class Park {
  private row: (Parked | undefined)[] = [];
  private spare: (Parked | undefined)[] = [];
  private count: number = 0;
  /** How many of the row have left since it was begun. */
  private gone: number = 0;
  private scheduled: boolean = false;
  private readonly onTurn: () => void;

  /** @param onTurn runs in a microtask when someone is to be served; it calls `serve`. */
  constructor(onTurn: () => void) {
    this.onTurn = onTurn;
  }

  add(watcher: Parked): void {
    if (watcher.inPark) return;
    watcher.inPark = true;
    this.row[this.count++] = watcher;
  }

  /** Something became visible: whoever waits is served when this turn is over. */
  notify(): void {
    if (this.count > 0) this.schedule();
  }

  /** Serves a watcher's reads within this turn. */
  wake(watcher: Parked): void {
    this.add(watcher);
    this.schedule();
  }

  /** Wakes all who wait now. Not from inside a `wake`: the row that is being served is filled again next time. */
  serve(): void {
    const { row, count } = this;
    this.scheduled = false;
    this.row = this.spare;
    this.spare = row.length > 4 * count + 64 ? [] : row;
    this.count = this.gone = 0;
    for (let at = 0; at < count; at++) {
      const watcher = row[at] as Parked;
      row[at] = undefined;
      watcher.inPark = false;
      watcher.wake();
    }
  }

  /** One of those who wait has left. O(1), amortized. */
  leave(): void {
    this.gone++;
    if (this.count <= 64) this.schedule(); // a short row, when this turn is over: some may have a read to settle yet
    if (this.gone * 2 < this.count) return;
    const { row, count } = this;
    this.row = [];
    this.spare = [];
    this.count = this.gone = 0;
    for (let at = 0; at < count; at++) {
      const watcher = row[at] as Parked;
      watcher.inPark = false;
      if (watcher.hasReads) this.add(watcher);
    }
  }

  private schedule(): void {
    if (this.scheduled) return;
    this.scheduled = true;
    soon(this.onTurn);
  }
}
