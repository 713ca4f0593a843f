import { type Clock, upkeepClock } from '../../watch/clock.ts';
import { WatchError } from '../../watch/errors.ts';
import type { Failures } from '../../watch/failures.ts';
import type { Gate, Gated } from './gate.ts';

/** Options of {@link Stalls}. */
export interface StallOptions {
  /** 0: never. */
  readonly stalledMs: number;
  readonly clock: Clock;
  readonly failures: Failures;
}

/**
 * Notices that a `wait` watcher holds up the publisher for too long.
 *
 *     gate: blocked ---> since now ---> timer: still the same? ---> reported ---> gate: freed ---> over
 *
 * A publisher that is faster than its readers is held up at every event. So there is one timer for all gates, which is not set
 * again for each, and does not keep the process alive.
 */
export class Stalls {
  readonly #options: StallOptions;
  readonly #clock: Clock;
  readonly #nameOf: (watcher: Gated) => string;
  /** The gates with a blocker that is not reported yet. */
  readonly #blocked: Set<Gate> = new Set();
  readonly #reported: Set<Gate> = new Set();
  #cancel: (() => void) | undefined;

  /** @param nameOf describes a watcher in a report. */
  constructor(options: StallOptions, nameOf: (watcher: Gated) => string) {
    this.#options = options;
    this.#clock = upkeepClock(options.clock);
    this.#nameOf = nameOf;
  }

  /** A gate has got a blocker. */
  blocked(gate: Gate): void {
    const { stalledMs, clock } = this.#options;
    this.#free(gate);
    gate.sinceMs = clock.now();
    if (stalledMs === 0) return;
    this.#blocked.add(gate);
    this.#cancel ??= this.#clock.schedule(stalledMs, () => this.#check());
  }

  /** It has lost it. */
  freed(gate: Gate): void {
    this.#blocked.delete(gate);
    this.#free(gate);
  }

  /** Nothing is held up any more. */
  end(): void {
    this.#cancel?.();
    this.#cancel = undefined;
    this.#blocked.clear();
    for (const gate of [...this.#reported]) this.#free(gate);
  }

  #free(gate: Gate): void {
    if (this.#reported.delete(gate) && this.#reported.size === 0) this.#options.failures.up('publishing');
  }

  #check(): void {
    const { stalledMs: limit, clock, failures } = this.#options;
    const nowMs = clock.now();
    this.#cancel = undefined;
    let leftMs = Number.POSITIVE_INFINITY;
    for (const gate of this.#blocked) {
      const { blocker } = gate;
      const restMs = gate.sinceMs + limit - nowMs;
      if (blocker && restMs > 0) {
        leftMs = Math.min(leftMs, restMs);
        continue;
      }
      this.#blocked.delete(gate);
      if (!blocker) continue;
      this.#reported.add(gate);
      const text = `${this.#nameOf(blocker)} has held up the publisher for ${limit} ms`;
      failures.down('publishing', new WatchError('TIMEOUT', text, { limit }), ' to go on');
    }
    // What was reported may have run code that blocks a gate.
    if (this.#blocked.size > 0 && leftMs < Number.POSITIVE_INFINITY) {
      this.#cancel ??= this.#clock.schedule(leftMs, () => this.#check());
    }
  }
}
