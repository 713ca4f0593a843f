import type { Watch, WatchBatches } from './watch.ts';

/** A fresh end-of-stream result: consumers own their results, so one is not shared. */
export function done(): { done: true; value: undefined } {
  return { done: true, value: undefined };
}

/** What `for await` and `using` ask for beside `next`: an iterator is its own iterable, and whoever lets go of it returns it. */
export abstract class Iteration {
  abstract return(): Promise<unknown>;

  [Symbol.asyncIterator](): this {
    return this;
  }

  [Symbol.dispose](): void {
    void this.return();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.return();
  }
}

/** The iterator of `batches`, over whatever reads one batch. */
export class Batches<E> extends Iteration implements WatchBatches<E> {
  readonly next: () => Promise<IteratorResult<readonly E[], undefined>>;
  private readonly watch: Watch<E>;

  constructor(watch: Watch<E>, next: () => Promise<IteratorResult<readonly E[], undefined>>) {
    super();
    this.watch = watch;
    this.next = next;
  }

  async return(): Promise<IteratorResult<readonly E[], undefined>> {
    await this.watch.return();
    return done();
  }
}
