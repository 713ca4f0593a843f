import { whenAborted } from '../../watch/abort.ts';

/**
 * A semaphore with two lines. Each line is first come, first served. Callers that have begun and paused go before callers that
 * have not begun, because unfinished work holds more memory.
 */
export class Semaphore {
  private free: number;
  private readonly begun: Set<() => void> = new Set();
  private readonly fresh: Set<() => void> = new Set();

  constructor(slots: number) {
    this.free = slots;
  }

  /** Resolves to true when there is a slot; to false if `gone` aborts first. */
  enter(gone: AbortSignal, hasBegun: boolean = false): Promise<boolean> {
    if (gone.aborted) return Promise.resolve(false);
    if (this.free > 0) {
      this.free--;
      return Promise.resolve(true);
    }
    const line = hasBegun ? this.begun : this.fresh;
    return new Promise((resolve) => {
      const settle = (hasSlot: boolean): void => {
        line.delete(go);
        leave();
        resolve(hasSlot);
      };
      const go = (): void => settle(true);
      const leave = whenAborted(gone, () => settle(false));
      line.add(go);
    });
  }

  /** Frees a slot and gives it to the first in line. */
  leave(): void {
    const [go] = this.begun.size > 0 ? this.begun : this.fresh;
    if (go === undefined) this.free++;
    else go();
  }
}
