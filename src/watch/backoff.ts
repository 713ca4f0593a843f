/** Settings of a {@link Backoff}. */
export interface BackoffOptions {
  readonly minMs: number;
  readonly maxMs: number;
  readonly factor: number;
  readonly random: () => number;
  /**
   * Whether attempts begin at least the delay apart, with the jitter on top of it. Otherwise a delay is all jitter: from nothing to
   * its length.
   */
  readonly apart?: boolean | undefined;
}

/** What an attempt has ended with. */
export interface FailedAttempt {
  /** The delay that the server asked for. */
  readonly hintMs?: number | undefined;
  /** How long the attempt took. With `apart`, this time counts. */
  readonly ranMs?: number | undefined;
  /** The version to resume from is lost: 410. */
  readonly expired?: boolean | undefined;
  /** The next attempt cures what made this one fail. */
  readonly curable?: boolean | undefined;
}

/** The longest delay that a server can ask for. */
export const MAX_HINT_MS = 300_000;

/**
 * When to try again: what all that reconnect in this package have in common. It counts failures in a row, and each makes the next
 * delay longer, up to a limit. Every delay has jitter, because thousands of clients lose the same server at the same time.
 *
 * A 410 is followed by a start over at once: the server answers, and nothing else is known. After two in a row it waits like any
 * other failure.
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

  /** What is connected has worked for long enough: what comes is not part of a series of failures. */
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

  /** The delay after an attempt that was no failure. It is the shortest one, and is not counted. */
  renewed(ranMs: number): number {
    return this.#delay(this.#options.minMs, 0, ranMs);
  }

  /** The jitter is on top of the server's delay, because the server may have told the same delay to thousands of clients. */
  #delay(longestMs: number, hintMs: number = 0, ranMs: number = 0): number {
    const { random, apart } = this.#options;
    // A negative hint or NaN means no hint.
    const askedMs = Math.min(hintMs > 0 ? hintMs : 0, MAX_HINT_MS);
    return Math.max(askedMs, apart ? longestMs - ranMs : 0) + random() * longestMs;
  }
}
