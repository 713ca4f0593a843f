import type { WatchEvent } from '../watch/event.ts';
import { Batches, Iteration } from '../watch/iteration.ts';
import type { Watch, WatchBatches } from '../watch/watch.ts';
import type { ClientQueue } from './client-queue.ts';

type Result<T> = Promise<IteratorResult<T, undefined>>;

/** A read that waits, or is about to be served. */
interface Read<E> {
  /** With an event, or without one at the end. */
  settle(event?: E): void;
  reject(error: unknown): void;
}

/**
 * The consumer's half of a client: a queue of events, and a line of reads. Every read joins the line, also one that is served at
 * once. This is a {@link Watch} in few bytes, for pages to load; the engine has a faster one in watch/reader.ts.
 *
 *     push --> [queue] --serve()--> first <- second <- third <-- next(), batches()
 *
 * Invariants
 * - While a read waits, nothing is queued: whoever queues something, or ends the watch, calls `serve`.
 * - Reads settle in the order in which they joined; `return` settles them all.
 * - User code, an `onGap`, may call anything on this watch: its reads join the line behind the one that is being served.
 */
export abstract class ClientReads<E extends WatchEvent> extends Iteration implements Watch<E> {
  abstract readonly stopped: boolean;
  abstract readonly dropped: number;
  protected abstract readonly queue: ClientQueue<E>;
  /** Why the watch failed, until a read was told: the first one that finds nothing more. */
  protected failure: { readonly error: unknown } | undefined;
  readonly #reads: Read<E>[] = [];
  /** A gap is being told of. */
  #telling: boolean = false;

  /** Ends the watch for its producer; what is queued stays readable. Idempotent. */
  abstract stop(): void;
  /** Ends the watch and lets go of all that is queued. Idempotent. */
  protected abstract discard(): void;
  /** Calls user code before the first event after a gap. Does not throw: an error is put into `failure`. */
  protected abstract onGap(missed: number): void;
  /** There may be more room than before. */
  protected abstract served(): void;

  get queued(): number {
    return this.queue.size;
  }

  next(): Result<E> {
    return this.#read((event) => event);
  }

  batches(): WatchBatches<E> {
    return new Batches(this, () => this.#read((event) => this.#batch(event)));
  }

  tryNext(): E | undefined {
    if (this.#telling) return undefined;
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

  /** Hands what is there to the reads that wait, in order; settles them all if the watch is over. */
  protected serve(): void {
    if (this.#telling) return;
    for (let read = this.#reads[0]; read; read = this.#reads[0]) {
      try {
        const event = this.#take();
        if (!event && !this.stopped) break;
        read.settle(event);
      } catch (error) {
        read.reject(error);
      }
      // It is there no more if user code has returned the watch meanwhile.
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

  /** The next event, if there is one. Throws, once, if there is none and the watch has failed. */
  #take(): E | undefined {
    const { missed, size } = this.queue;
    this.#telling = true;
    if (missed > 0 && size > 0) this.onGap(missed);
    this.#telling = false;
    const event = this.queue.shift();
    const { failure } = this;
    if (!event) this.failure = undefined;
    if (!event && failure) throw failure.error;
    return event;
  }

  /** An event and those behind it, up to the next gap; it alone if another read waits, as that read's own event stands next in line. */
  #batch(event: E): readonly E[] {
    const { queue } = this;
    const events = [event];
    while (this.#reads.length < 2 && queue.size > 0 && queue.missed === 0) events.push(queue.shift() as E);
    return events;
  }
}
