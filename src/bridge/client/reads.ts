import type { WatchEvent } from '../../watch/event.ts';
import { Batches, Iteration } from '../../watch/reader.ts';
import type { Watch, WatchBatches } from '../../watch/watch.ts';
import type { ClientQueue } from './queue.ts';

type Result<T> = Promise<IteratorResult<T, undefined>>;

/** A pending read. */
interface Read<E> {
  /** Settles with an event, or without one at the end. */
  settle(event?: E): void;
  reject(error: unknown): void;
}

/**
 * The reading half of a client: pending reads are served from a queue of events. Every read joins the line of reads, even one
 * that is served at once. Optimized for size, because pages load it; watch/reader.ts is the faster implementation.
 *
 *     push --> [queue] --serve()--> first <- second <- third <-- next(), batches()
 *
 * Invariants
 * - While a read is pending, nothing is queued: code that queues an event or ends the watch calls `serve`.
 * - Reads settle in the order in which they were started; `return` settles them all.
 * - User code (`onGap`) may call any method of this watch. Its reads join the line behind the one being served.
 */
export abstract class ClientReads<E extends WatchEvent> extends Iteration implements Watch<E> {
  abstract readonly stopped: boolean;
  abstract readonly dropped: number;
  protected abstract readonly queue: ClientQueue<E>;
  /** Why the watch failed. Cleared when the first read that finds no event has rejected with it. */
  protected failure: { readonly error: unknown } | undefined;
  readonly #reads: Read<E>[] = [];
  /** `onGap` is running. */
  #reportingGap: boolean = false;

  /** Ends the watch for its producer; what is queued stays readable. Idempotent. */
  abstract stop(): void;
  /** Ends the watch and discards its queue. Idempotent. */
  protected abstract discard(): void;
  /** Calls user code before the first event after a gap. Does not throw: stores the error in `failure`. */
  protected abstract onGap(missed: number): void;
  /** There may be more room in the queue. */
  protected abstract served(): void;

  get queued(): number {
    return this.queue.count;
  }

  next(): Result<E> {
    return this.#read((event) => event);
  }

  batches(): WatchBatches<E> {
    return new Batches(this, () => this.#read((event) => this.#batch(event)));
  }

  tryNext(): E | undefined {
    if (this.#reportingGap) return undefined;
    try {
      return this.#take();
    } finally {
      this.serve();
    }
  }

  return(): Result<E> {
    for (const { settle } of this.#reads.splice(0)) settle();
    this.discard();
    this.failure = undefined;
    return this.next();
  }

  /** Serves pending reads in order. If the watch has ended, settles all of them. */
  protected serve(): void {
    if (this.#reportingGap) return;
    for (let read = this.#reads[0]; read; read = this.#reads[0]) {
      try {
        const event = this.#take();
        if (!event && !this.stopped) break;
        read.settle(event);
      } catch (error) {
        read.reject(error);
      }
      // If user code has called `return` meanwhile, the read is already gone.
      if (this.#reads[0] === read) this.#reads.shift();
    }
    this.served();
  }

  #read<T>(toValue: (event: E) => T): Result<T> {
    return new Promise((resolve, reject) => {
      const settle = (event?: E): void =>
        resolve({ done: !event, value: event && toValue(event) } as IteratorResult<T, undefined>);
      this.#reads.push({ settle, reject });
      this.serve();
    });
  }

  /** Returns the next event, or undefined. If the watch has failed and its queue is empty, throws once. */
  #take(): E | undefined {
    const { lost, count } = this.queue;
    this.#reportingGap = true;
    if (lost && count) this.onGap(lost);
    this.#reportingGap = false;
    const event = this.queue.shift();
    const { failure } = this;
    if (event) return event;
    this.failure = undefined;
    if (failure) throw failure.error;
    return undefined;
  }

  /** Returns an event and those after it, up to the next gap. If another read is pending, the next event belongs to that one. */
  #batch(event: E): readonly E[] {
    const { queue } = this;
    const events = [event];
    while (this.#reads.length < 2 && queue.count && !queue.lost) events.push(queue.shift() as E);
    return events;
  }
}
