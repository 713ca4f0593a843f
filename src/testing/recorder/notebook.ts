import type { Step } from '../checkers/history.ts';

/** Records the steps of one watch: its consumer's calls, their results, and what its user code does. */
export class Notebook<E> {
  readonly watcher: string;
  /** The steps of all watches, in order. */
  readonly steps: Step<E>[];
  private filtering: number = 0;

  constructor(watcher: string, steps: Step<E>[]) {
    this.watcher = watcher;
    this.steps = steps;
  }

  write(step: Step<E>): void {
    this.steps.push(step);
  }

  /** Records a call of `stop` or `return`, perhaps from inside the watch's ownState filter. */
  ends(step: 'stop' | 'return'): void {
    const inFilter = this.filtering > 0;
    this.write({ step, watcher: this.watcher, ...(inFilter && { inFilter }) });
  }

  /** Records that the watch has stopped. */
  ended(): void {
    this.write({ step: 'stopped', watcher: this.watcher });
  }

  /** Wraps a filter, to know whether it is running. */
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

  /** Wraps an `onGap`, which may be undefined: records each gap before it runs. */
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
