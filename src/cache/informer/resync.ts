/**
 * Decides when a handler gets every object again: numbers only, no timer.
 *
 *     every `checkMs`: due(now) ---> those that are due; they are due again a period later
 *
 * As upstream: a handler's period is at least a second. Before the informer starts, a shorter period shortens
 * the interval of the checks, and with it every handler's period can become what it asked for. Later a period is at least that
 * interval. An informer with `resyncMs: 0` never checks, so no handler resyncs; one without the option checks as often as its
 * handlers ask for. Unlike upstream, no handler is due before a period has passed.
 */

const MIN_PERIOD_MS = 1_000;
/**
 * Timers of hosts count whole milliseconds, so a check may come this much early: a handler that is due then would wait for
 * another.
 */
const EARLY_MS = 1;

/** What one handler has asked for. */
export interface ResyncEntry {
  readonly requestedMs: number;
  /** What it gets; 0: never. */
  periodMs: number;
  dueMs: number;
}

/** See the top of this file. */
export class ResyncTimes<Entry extends ResyncEntry = ResyncEntry> {
  readonly #entries: Set<Entry> = new Set();
  readonly #never: boolean;
  readonly #defaultMs: number;
  #checkMs: number;
  #started: boolean = false;

  constructor(resyncMs: number | undefined) {
    this.#never = resyncMs === 0;
    this.#defaultMs = resyncMs ?? 0;
    this.#checkMs = this.#defaultMs;
  }

  /** How often to check; 0: never. */
  get checkMs(): number {
    return this.#checkMs;
  }

  /** From now on the interval of the checks stays, if there is one. */
  start(): void {
    this.#started = true;
  }

  /** The period that a handler asks for, if it asks for `resyncMs`. */
  requested(resyncMs: number | undefined): number {
    const asked = resyncMs ?? this.#defaultMs;
    return asked > 0 ? Math.max(asked, MIN_PERIOD_MS) : 0;
  }

  add(entry: Entry, now: number): void {
    const { requestedMs } = entry;
    this.#entries.add(entry);
    const isShorter = this.#checkMs === 0 ? !this.#never : !this.#started && requestedMs < this.#checkMs;
    if (requestedMs > 0 && isShorter) {
      this.#checkMs = requestedMs;
      for (const each of this.#entries) this.#schedule(each, now);
    }
    this.#schedule(entry, now);
  }

  remove(entry: Entry): void {
    this.#entries.delete(entry);
  }

  /** Those that are due. They are due again a period from now. */
  due(now: number): Entry[] {
    const due = [...this.#entries].filter(({ periodMs, dueMs }) => periodMs > 0 && dueMs - now < EARLY_MS);
    for (const entry of due) entry.dueMs = now + entry.periodMs;
    return due;
  }

  #schedule(entry: ResyncEntry, now: number): void {
    const periodMs = entry.requestedMs > 0 && this.#checkMs > 0 ? Math.max(entry.requestedMs, this.#checkMs) : 0;
    if (periodMs !== entry.periodMs) entry.dueMs = now + periodMs;
    entry.periodMs = periodMs;
  }
}
