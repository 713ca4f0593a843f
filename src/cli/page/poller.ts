import type { Clock } from '../../watch/clock.ts';
import { systemClock } from '../../watch/clock.ts';

/** Options of a {@link Poller}. */
export interface PollOptions<T> {
  readonly ask: (signal: AbortSignal) => Promise<T>;
  readonly onAnswer: (answer: T) => void;
  readonly onFault: () => void;
  readonly intervalMs: number;
  /** The longest pause after consecutive failures. */
  readonly maxIntervalMs: number;
  /** A request that takes longer has failed. */
  readonly timeoutMs: number;
  readonly clock?: Clock | undefined;
}

/**
 * Asks repeatedly, one request at a time. The pause doubles after each failure, up to its limit; an answer resets it. `stop`
 * aborts the current request; after that nothing is asked, called or scheduled any more.
 */
export class Poller<T> {
  private readonly options: PollOptions<T>;
  private readonly clock: Clock;
  private failures: number = 0;
  private round: AbortController | undefined = undefined;
  private cancelTimer: () => void = () => {};

  constructor(options: PollOptions<T>) {
    this.options = options;
    this.clock = options.clock ?? systemClock;
  }

  /** Asks now, and then at the configured interval. Also ends a pause early. */
  start(): void {
    this.stop();
    void this.ask();
  }

  stop(): void {
    this.cancelTimer();
    this.round?.abort();
    this.round = undefined;
  }

  private async ask(): Promise<void> {
    const round = new AbortController();
    this.round = round;
    const { ask, onAnswer, onFault, timeoutMs } = this.options;
    this.cancelTimer = this.clock.schedule(timeoutMs, () => round.abort());
    let answer: { readonly is: T } | undefined;
    try {
      answer = { is: await ask(round.signal) };
    } catch {
      // If the error persists, the next request will show it.
    }
    // Stopped or restarted while the request was pending.
    if (this.round !== round) return;
    this.cancelTimer();
    this.failures = answer === undefined ? this.failures + 1 : 0;
    this.cancelTimer = this.clock.schedule(this.pauseMs, () => void this.ask());
    if (answer === undefined) onFault();
    else onAnswer(answer.is);
  }

  private get pauseMs(): number {
    const { intervalMs, maxIntervalMs } = this.options;
    return Math.min(maxIntervalMs, intervalMs * 2 ** this.failures);
  }
}
