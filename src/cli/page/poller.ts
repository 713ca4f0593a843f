import type { Clock } from '../../watch/clock.ts';
import { systemClock } from '../../watch/clock.ts';

/** How to ask. */
export interface PollOptions<T> {
  readonly ask: (signal: AbortSignal) => Promise<T>;
  readonly onAnswer: (answer: T) => void;
  readonly onFault: () => void;
  readonly intervalMs: number;
  /** The longest pause after failures in a row. */
  readonly maxIntervalMs: number;
  /** An answer that takes longer is none. */
  readonly timeoutMs: number;
  readonly clock?: Clock | undefined;
}

/**
 * Asks again and again, one question at a time. After a failure the pause doubles, up to its limit; an answer resets it. `stop`
 * aborts the question that is under way, and after it nothing is asked, called or scheduled any more.
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

  /** Asks now, and from then on at its pace. Also the way not to wait for the end of a pause. */
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
      // Whatever it was, the next question will tell.
    }
    // Stopped, or started anew, while the answer was on its way.
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
