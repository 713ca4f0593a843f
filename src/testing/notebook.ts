import type { Step } from './history.ts';

/** Where one watch is written down: what its consumer asks for, what comes of it, and what its own user code does meanwhile. */
export class Notebook<E> {
  readonly watcher: string;
  /** Those of all watches, in the order in which they happen. */
  readonly steps: Step<E>[];
  private filtering: number = 0;

  constructor(watcher: string, steps: Step<E>[]) {
    this.watcher = watcher;
    this.steps = steps;
  }

  write(step: Step<E>): void {
    this.steps.push(step);
  }

  /** The consumer asks for the end, perhaps from inside the watch's own filter. */
  ends(step: 'stop' | 'return'): void {
    const inFilter = this.filtering > 0;
    this.write({ step, watcher: this.watcher, ...(inFilter && { inFilter }) });
  }

  /** The end that was asked for has come. */
  ended(): void {
    this.write({ step: 'stopped', watcher: this.watcher });
  }

  /** A filter that is known to run while it does. */
  filter(own: (event: E) => boolean): (event: E) => boolean {
    return (event) => {
      this.filtering++;
      try {
        return this.runs(() => own(event));
      } finally {
        this.filtering--;
      }
    };
  }

  /** An `onGap` that writes down the gap before its own, if there is one, hears of it. */
  onGap(own: ((missed: number) => void) | undefined): (missed: number) => void {
    return (missed) => {
      this.write({ step: 'gap', watcher: this.watcher, missed });
      if (own !== undefined) this.runs(() => own(missed));
    };
  }

  private runs<T>(code: () => T): T {
    try {
      return code();
    } catch (error) {
      this.write({ step: 'threw', watcher: this.watcher, error });
      throw error;
    }
  }
}
