import type { WatchEvent } from '../../watch/event.ts';
import { Batches, Iteration } from '../../watch/reader.ts';
import type { Watch, WatchBatches } from '../../watch/watch.ts';

/** An error, and how many events were lost before it. */
interface Failure<E> {
  event: E;
  lost: number;
}

/** One event and what is delivered before it. The last place has no event yet. */
interface QueueEntry<E> {
  event?: E;
  chars: number;
  version?: string | undefined;
  lost: number;
  error?: Failure<E> | undefined;
  next?: QueueEntry<E>;
}

/**
 * Events that have arrived and were not read yet, bounded in number and in characters. The queue is full when either limit is
 * reached, so the last event may exceed `maxBufferedBytes`. An ERROR created by the client takes no room and is never dropped. If
 * the event after it is dropped, the ERROR moves before the next one. Events lost before an ERROR are counted there, because a
 * reader that starts over at the ERROR must learn what was lost since.
 *
 *     head                                           tail: gaps and an error wait here for the next event
 *      v                                              v
 *     [a] -> [3 missed, ERROR, 1 missed, b] -> [c] -> [ ]
 */
export class ClientQueue<E> {
  /** Events and errors that can be read. */
  count: number = 0;
  /** The version of the last event that was read. */
  readVersion: string | undefined;
  readonly #limits: { readonly capacity: number; readonly maxBufferedBytes: number };
  #events: number = 0;
  #chars: number = 0;
  #head: QueueEntry<E> = { chars: 0, lost: 0 };
  #tail: QueueEntry<E> = this.#head;

  constructor(limits: { readonly capacity: number; readonly maxBufferedBytes: number }) {
    this.#limits = limits;
  }

  /** How full the queue is, by events or by characters; 1 is full. */
  get load(): number {
    return Math.max(this.#events / this.#limits.capacity, this.weight);
  }

  /** How full the queue is by characters alone. */
  get weight(): number {
    return this.#chars / this.#limits.maxBufferedBytes;
  }

  /** Whether everything that arrived has been read. */
  get allRead(): boolean {
    return this.count + this.#tail.lost === 0;
  }

  /** Events lost right before the next readable event or error. */
  get lost(): number {
    return (this.#head.error ?? this.#head).lost;
  }

  push(event: E, more: { chars: number; version: string | undefined }): void {
    const next = { chars: 0, lost: 0 };
    Object.assign(this.#tail, more, { event, next });
    this.#tail = next;
    this.#chars += more.chars;
    this.#events++;
    this.count++;
  }

  /** Adds an error after all that has arrived. If no event has arrived since the last error, the new one replaces it. */
  pushError(event: E): void {
    const { error, lost } = this.#tail;
    if (!error) this.count++;
    this.#tail.error = { event, lost: error ? error.lost + lost : lost };
    this.#tail.lost = 0;
  }

  /** Removes and returns the next event or error. The caller has already reported the gap before it. */
  shift(): E | undefined {
    const head = this.#head;
    const { error, next } = head;
    head.error = undefined;
    if (error) this.count--;
    else if (next) {
      this.readVersion = head.version;
      this.#leave(next);
    }
    return (error ?? head).event;
  }

  /** Counts an event that found no room. */
  miss(): void {
    this.#tail.lost++;
  }

  /** Drops the oldest event. */
  drop(): void {
    const { lost, error, next } = this.#head;
    if (!next) return;
    (next.error ?? next).lost += lost + 1;
    if (!next.error) next.error = error;
    else if (error) {
      next.error.lost += error.lost;
      this.count--;
    }
    this.#leave(next);
  }

  /** Discards everything. It counts as not read. */
  clear(): void {
    this.#head = this.#tail = { chars: 0, lost: Number(!this.allRead) };
    this.count = this.#events = this.#chars = 0;
  }

  #leave(next: QueueEntry<E>): void {
    this.#chars -= this.#head.chars;
    this.#events--;
    this.count--;
    this.#head = next;
  }
}

type Result<T> = Promise<IteratorResult<T, undefined>>;

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
