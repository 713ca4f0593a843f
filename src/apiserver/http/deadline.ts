/** Limits work on behalf of a client: it ends when the client leaves, when it takes too long, or when the server shuts down. */
import type { Clock } from '../../watch/clock.ts';

/** A time limit for some work. Its signal aborts when the time is over, or when it is ended before. */
export class Deadline {
  private readonly abort: AbortController = new AbortController();
  private cancel: (() => void) | undefined;
  /** Rejects the promise of the work. */
  private reject: ((reason: unknown) => void) | undefined = undefined;

  readonly signal: AbortSignal = this.abort.signal;

  constructor(afterMs: number, { clock, late }: { clock: Clock; late: () => unknown }) {
    this.cancel = clock.schedule(afterMs, () => this.end(late()));
  }

  end(reason: unknown): void {
    if (this.signal.aborted) return;
    this.abort.abort(reason);
    this.reject?.(reason);
  }

  /**
   * The same promise, but rejected when the signal aborts. `late` is called with a result that comes after that. Calls may be
   * nested, but not overlap otherwise.
   */
  during<T>(promise: PromiseLike<T>, late: (value: T) => void = ignore): Promise<T> {
    const { signal } = this;
    if (signal.aborted) {
      promise.then(late, ignore);
      return Promise.reject(signal.reason);
    }
    const whole = this.reject;
    return new Promise((resolve, reject) => {
      this.reject = (reason) => {
        reject(reason);
        whole?.(reason);
      };
      promise.then(
        (value) => {
          this.reject = whole;
          if (signal.aborted) late(value);
          resolve(value);
        },
        (error: unknown) => {
          this.reject = whole;
          reject(error);
        },
      );
    });
  }

  /** Clears the timer. The signal no longer aborts, unless `end` is called. */
  done(): void {
    this.cancel?.();
    this.cancel = undefined;
    this.reject = undefined;
  }
}

function ignore(): void {}

/**
 * The deadlines that one signal ends. All share one listener: adding and removing one for each request costs more than the
 * request's JSON.
 */
export class Deadlines {
  private readonly open: Set<Deadline> = new Set();
  private readonly signal: AbortSignal;

  constructor(signal: AbortSignal) {
    this.signal = signal;
    signal.addEventListener('abort', () => {
      for (const each of this.open) each.end(signal.reason);
    });
  }

  add(deadline: Deadline): void {
    if (this.signal.aborted) deadline.end(this.signal.reason);
    else this.open.add(deadline);
  }

  delete(deadline: Deadline): void {
    this.open.delete(deadline);
  }
}
