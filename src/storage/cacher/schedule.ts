/**
 * When watchers are due, for a bookmark or for their end. They stand in a row of short stretches of time, and one timer runs for
 * the next stretch that has some, so ten thousand watchers cost one timer. Upstream: `watcherBookmarkTimeBuckets`.
 */
import type { Clock } from '../../watch/clock.ts';

/** What is due is at most this much late. */
const STRETCH_MS = 250;

/** Who is due. */
export interface Due {
  /** When it was put in the row. 0: it is in none. */
  dueMs: number;
  due(nowMs: number): void;
}

export class Schedule {
  readonly #clock: Clock;
  readonly #stretches: Map<number, Set<Due>> = new Map();
  #cancel: (() => void) | undefined;
  #nextMs: number = Infinity;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get size(): number {
    let size = 0;
    for (const stretch of this.#stretches.values()) size += stretch.size;
    return size;
  }

  /** Puts somebody in the row, in one place. */
  add(due: Due, atMs: number): void {
    this.remove(due);
    due.dueMs = Math.ceil(Math.max(atMs, 1) / STRETCH_MS) * STRETCH_MS;
    const stretch = this.#stretches.get(due.dueMs);
    if (stretch) stretch.add(due);
    else this.#stretches.set(due.dueMs, new Set([due]));
    if (due.dueMs < this.#nextMs) this.#arm(due.dueMs);
  }

  remove(due: Due): void {
    const stretch = this.#stretches.get(due.dueMs);
    if (!stretch?.delete(due)) return;
    if (stretch.size > 0) return;
    this.#stretches.delete(due.dueMs);
    if (this.#stretches.size === 0) this.clear();
  }

  clear(): void {
    this.#stretches.clear();
    this.#cancel?.();
    this.#cancel = undefined;
    this.#nextMs = Infinity;
  }

  #arm(atMs: number): void {
    this.#cancel?.();
    this.#nextMs = atMs;
    this.#cancel = this.#clock.schedule(Math.max(0, atMs - this.#clock.now()), () => this.#fire());
  }

  #fire(): void {
    this.#cancel = undefined;
    this.#nextMs = Infinity;
    const nowMs = this.#clock.now();
    for (const [atMs, stretch] of [...this.#stretches]) {
      if (atMs > nowMs) continue;
      this.#stretches.delete(atMs);
      for (const due of stretch) due.due(nowMs);
    }
    let nextMs = Infinity;
    for (const atMs of this.#stretches.keys()) nextMs = Math.min(nextMs, atMs);
    if (nextMs < this.#nextMs) this.#arm(nextMs);
  }
}
