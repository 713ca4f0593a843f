/** Settings of a {@link Backoff}. */
export interface BackoffOptions {
  readonly minMs: number;
  readonly maxMs: number;
  readonly factor: number;
  readonly random: () => number;
  /**
   * Whether attempts begin at least the delay apart, with jitter added. Otherwise the wait is a random time from 0 to the delay.
   */
  readonly apart?: boolean | undefined;
}

interface FailedAttempt {
  /** The delay that the server asked for. */
  readonly hintMs?: number | undefined;
  /** How long the attempt took. With `apart`, this time counts. */
  readonly ranMs?: number | undefined;
  /** Whether the server no longer has the version to resume from (410). */
  readonly expired?: boolean | undefined;
  /** Whether the next attempt removes the cause of this failure. */
  readonly curable?: boolean | undefined;
}

/** The longest delay that a server can ask for. */
export const MAX_HINT_MS = 300_000;

/**
 * Decides when to try again, for everything in this package that reconnects. It counts failures in a row, and each makes the next
 * delay longer, up to a limit. Every delay has jitter, because thousands of clients lose the same server at the same time.
 *
 * After a 410, the watch starts over immediately, because the server does answer. From the second 410 in a row on, it waits as
 * after any other failure.
 */
export class Backoff {
  /** Failures in a row. */
  failures: number = 0;
  /** Whether the last of them was a 410. */
  expired: boolean = false;
  readonly #options: BackoffOptions;

  constructor(options: BackoffOptions) {
    this.#options = options;
  }

  /** The connection has worked for long enough: the next failure begins a new series. */
  healthy(): void {
    this.failures = 0;
    this.expired = false;
  }

  /** Counts a failure. Returns the delay after it. */
  failed({ hintMs, ranMs, expired = false, curable }: FailedAttempt): number {
    const { minMs, maxMs, factor } = this.#options;
    const prompt = curable && !this.expired;
    this.expired = expired;
    // With a `minMs` of 0, a thousand failures make 0 * Infinity, which is NaN.
    const longestMs = Math.min(maxMs, minMs * factor ** this.failures++ || 0);
    return this.#delay(prompt ? 0 : longestMs, hintMs, ranMs);
  }

  /** Returns the delay after an attempt that did not fail: the shortest one. The attempt is not counted. */
  renewed(ranMs: number): number {
    return this.#delay(this.#options.minMs, 0, ranMs);
  }

  /** The jitter is added to the server's delay, because the server may have given the same delay to thousands of clients. */
  #delay(longestMs: number, hintMs: number = 0, ranMs: number = 0): number {
    const { random, apart } = this.#options;
    // A negative hint or NaN means no hint.
    const askedMs = Math.min(hintMs > 0 ? hintMs : 0, MAX_HINT_MS);
    return Math.max(askedMs, apart ? longestMs - Math.max(0, ranMs) : 0) + random() * longestMs;
  }
}
