/**
 * Decides when a handler gets every object again: numbers only, no timer.
 *
 *     next(now): the time until the first is due ---> due(now): those that are due; they are due again a period later
 *
 * Each handler has the period that it asks for, or that of the informer if it asks for none, from when it was added. Upstream looks
 * at fixed intervals instead, and so rounds periods up to the informer's, and to a second.
 */

/**
 * Timers of hosts count whole milliseconds, so one may come this much early: a handler that is due then would wait for
 * another.
 */
const EARLY_MS = 1;

/** What one handler has asked for. */
export interface ResyncEntry {
  /** How often it gets every object; 0: never. */
  readonly periodMs: number;
  dueMs: number;
}

/** See the top of this file. */
export class ResyncTimes<Entry extends ResyncEntry = ResyncEntry> {
  readonly #entries: Set<Entry> = new Set();

  add(entry: Entry, now: number): void {
    if (entry.periodMs === 0) return;
    entry.dueMs = now + entry.periodMs;
    this.#entries.add(entry);
  }

  /** Begins to count now: before the informer runs, there is nothing to tell again. */
  start(now: number): void {
    for (const entry of this.#entries) this.add(entry, now);
  }

  remove(entry: Entry): void {
    this.#entries.delete(entry);
  }

  /** How long it takes until one is due; undefined: none ever is. */
  next(now: number): number | undefined {
    let dueMs = Number.POSITIVE_INFINITY;
    for (const entry of this.#entries) dueMs = Math.min(dueMs, entry.dueMs);
    return this.#entries.size === 0 ? undefined : Math.max(0, dueMs - now);
  }

  /** Those that are due. They are due again a period from now. */
  due(now: number): Entry[] {
    const due = [...this.#entries].filter(({ dueMs }) => dueMs - now < EARLY_MS);
    for (const entry of due) entry.dueMs = now + entry.periodMs;
    return due;
  }
}
