/**
 * When watchers are due, for a bookmark or for their end. They are kept in short buckets of time, and one timer runs for the next
 * bucket that is not empty, so ten thousand watchers cost one timer. Upstream: `watcherBookmarkTimeBuckets`.
 */
import type { Clock } from '../../watch/clock.ts';

/** The longest that a watcher is called late. */
const BUCKET_MS = 250;

/** What can be scheduled. */
export interface Due {
  /** The end of its bucket; 0 before it was ever scheduled. */
  dueMs: number;
  due(nowMs: number): void;
}

export class Schedule {
  readonly #clock: Clock;
  readonly #buckets: Map<number, Set<Due>> = new Map();
  #cancel: (() => void) | undefined;
  #nextMs: number = Infinity;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get size(): number {
    let size = 0;
    for (const bucket of this.#buckets.values()) size += bucket.size;
    return size;
  }

  /** Schedules it once: an earlier time is replaced. */
  add(due: Due, atMs: number): void {
    this.remove(due);
    due.dueMs = Math.ceil(Math.max(atMs, 1) / BUCKET_MS) * BUCKET_MS;
    const bucket = this.#buckets.get(due.dueMs);
    if (bucket) bucket.add(due);
    else this.#buckets.set(due.dueMs, new Set([due]));
    if (due.dueMs < this.#nextMs) this.#arm(due.dueMs);
  }

  remove(due: Due): void {
    const bucket = this.#buckets.get(due.dueMs);
    if (!bucket?.delete(due)) return;
    if (bucket.size > 0) return;
    this.#buckets.delete(due.dueMs);
    if (this.#buckets.size === 0) this.clear();
  }

  clear(): void {
    this.#buckets.clear();
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
    for (const [atMs, bucket] of [...this.#buckets]) {
      if (atMs > nowMs) continue;
      this.#buckets.delete(atMs);
      for (const due of bucket) due.due(nowMs);
    }
    let nextMs = Infinity;
    for (const atMs of this.#buckets.keys()) nextMs = Math.min(nextMs, atMs);
    if (nextMs < this.#nextMs) this.#arm(nextMs);
  }
}
