import type { Watch, WatchBatches } from './watch.ts';

/** Creates an end-of-stream result. Each caller gets its own object, because consumers may modify results. */
export function done(): { done: true; value: undefined } {
  return { done: true, value: undefined };
}

/** What `for await` and `using` need besides `next`: an iterator is its own iterable, and disposing of it calls `return`. */
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

/** The iterator behind `batches()`, on top of a function that reads one batch. */
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
