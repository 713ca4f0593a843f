import type { Clock } from '../../watch/clock.ts';
import { SortedMap } from '../collection/sorted-map.ts';

interface Deadline {
  /** Sorts as the times do. */
  readonly place: string;
  readonly atMs: number;
  readonly of: string;
}

/**
 * When which key is to be deleted: the deadlines in their order, and one timer for the first of them.
 *
 * Invariant: a timer runs exactly while there is a deadline, and is due when the first one is.
 */
export class Expiry {
  readonly #clock: Clock;
  readonly #expire: (keys: readonly string[]) => void;
  readonly #sorted: SortedMap<Deadline> = new SortedMap();
  readonly #byKey: Map<string, Deadline> = new Map();
  #timer: { readonly atMs: number; readonly cancel: () => void } | undefined;

  /** `expire` is called with the keys that are due; their deadlines are gone by then. */
  constructor(clock: Clock, expire: (keys: readonly string[]) => void) {
    this.#clock = clock;
    this.#expire = expire;
  }

  /** Number of deadlines. */
  get size(): number {
    return this.#byKey.size;
  }

  /** Sets the deadline of a key, or with undefined removes it. */
  set(key: string, inMs: number | undefined): void {
    const old = this.#byKey.get(key);
    if (!old && inMs === undefined) return;
    if (old) this.#remove(old);
    if (inMs !== undefined) {
      const atMs = Math.max(0, Math.ceil(this.#clock.now() + inMs));
      const deadline: Deadline = { place: `${sortable(atMs)}/${key}`, atMs, of: key };
      this.#sorted.set(deadline.place, deadline);
      this.#byKey.set(key, deadline);
    }
    this.#schedule();
  }

  /** How long a key has left, in ms. */
  left(key: string): number | undefined {
    const deadline = this.#byKey.get(key);
    return deadline && Math.max(0, deadline.atMs - this.#clock.now());
  }

  clear(): void {
    for (const deadline of this.#byKey.values()) this.#remove(deadline);
    this.#schedule();
  }

  get #first(): Deadline | undefined {
    return this.#sorted.values().next().value;
  }

  #remove(deadline: Deadline): void {
    this.#sorted.delete(deadline.place);
    this.#byKey.delete(deadline.of);
  }

  #schedule(): void {
    const atMs = this.#first?.atMs;
    if (atMs === this.#timer?.atMs) return;
    this.#timer?.cancel();
    this.#timer = undefined;
    if (atMs === undefined) return;
    this.#timer = { atMs, cancel: this.#clock.schedule(Math.max(0, atMs - this.#clock.now()), () => this.#due()) };
  }

  #due(): void {
    this.#timer = undefined;
    const now = this.#clock.now();
    const due: string[] = [];
    // The host's timer may be early: a delay beyond the host's maximum is shortened.
    for (let first = this.#first; first && first.atMs <= now; first = this.#first) {
      this.#remove(first);
      due.push(first.of);
    }
    if (due.length > 0) this.#expire(due);
    this.#schedule();
  }
}

/** A time as text that sorts as the time does. */
function sortable(ms: number): string {
  return ms.toString().padStart(17, '0');
}
