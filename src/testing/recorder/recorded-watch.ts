import { Batches, Iteration } from '../../watch/iteration.ts';
import type { Watch, WatchBatches } from '../../watch/watch.ts';
import type { ReadCall } from '../checkers/history.ts';
import type { Notebook } from './notebook.ts';

/** A watch that records its consumer's reads and their results. */
export class RecordedWatch<E> extends Iteration implements Watch<E> {
  private readonly watch: Watch<E>;
  private readonly inner: WatchBatches<E>;
  private readonly notebook: Notebook<E>;
  private reads: number = 0;

  constructor(watch: Watch<E>, notebook: Notebook<E>) {
    super();
    this.watch = watch;
    this.inner = watch.batches();
    this.notebook = notebook;
  }

  get stopped(): boolean {
    return this.watch.stopped;
  }

  get queued(): number {
    return this.watch.queued;
  }

  get dropped(): number {
    return this.watch.dropped;
  }

  /** Records the counts. */
  look(): void {
    const { queued, dropped } = this.watch;
    this.notebook.write({ step: 'counts', watcher: this.notebook.watcher, queued, dropped });
  }

  next(): Promise<IteratorResult<E, undefined>> {
    return this.comes(
      'next',
      () => this.watch.next(),
      (event) => [event],
    );
  }

  tryNext(): E | undefined {
    const read = this.asks('tryNext');
    try {
      const event = this.watch.tryNext();
      this.came(read, event === undefined ? [] : [event]);
      return event;
    } catch (error) {
      this.notebook.write({ step: 'end', watcher: this.notebook.watcher, read, failure: { error } });
      throw error;
    }
  }

  batches(): WatchBatches<E> {
    return new Batches(this, () =>
      this.comes(
        'batch',
        () => this.inner.next(),
        (events) => events,
      ),
    );
  }

  stop(): void {
    this.ends('stop', () => this.watch.stop());
  }

  return(): Promise<IteratorResult<E, undefined>> {
    return this.ends('return', () => this.watch.return());
  }

  /** Records that the consumer ends the watch, and runs `code`, which does it. */
  ends<T>(step: 'stop' | 'return', code: () => T): T {
    const { notebook } = this;
    notebook.ends(step);
    const { length } = notebook.steps;
    const result = code();
    if (notebook.steps.length > length) notebook.ended();
    return result;
  }

  private asks(by: ReadCall): number {
    const read = this.reads++;
    this.notebook.write({ step: 'read', watcher: this.notebook.watcher, read, by });
    return read;
  }

  private async comes<T>(
    by: 'next' | 'batch',
    ask: () => Promise<IteratorResult<T, undefined>>,
    eventsOf: (value: T) => readonly E[],
  ): Promise<IteratorResult<T, undefined>> {
    const { watcher, steps } = this.notebook;
    const read = this.asks(by);
    const { length } = steps;
    try {
      const asked = ask();
      if (steps.length > length) this.notebook.write({ step: 'asked', watcher, read });
      const result = await asked;
      if (result.done === true) this.notebook.write({ step: 'end', watcher, read });
      else this.came(read, eventsOf(result.value));
      return result;
    } catch (error) {
      this.notebook.write({ step: 'end', watcher, read, failure: { error } });
      throw error;
    }
  }

  private came(read: number, events: readonly E[]): void {
    this.notebook.write({ step: 'delivered', watcher: this.notebook.watcher, read, events });
  }
}
