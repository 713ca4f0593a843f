import type { Watch, WatchBatches } from './watch.ts';

/** What {@link Reader.take} answers when no event is there now. Events are counted, never compared with undefined. */
export const NONE: unique symbol = Symbol('none');

interface Read<T> {
  readonly settle: (result: IteratorResult<T, undefined> | Promise<never>) => void;
  readonly batch: boolean;
  next: Read<T> | undefined;
}

/** A fresh end-of-stream result: consumers own their results, so one is not shared. */
function done(): { done: true; value: undefined } {
  return { done: true, value: undefined };
}

/**
 * The consumer's half of every {@link Watch}: the line of reads that wait, and who is served when. What is read, and from
 * where, is the subclass's: it supplies `take`, says when it is `drained`, and calls `serve` when there may be more.
 *
 *     next() --------> take() has one? ----> settled at once
 *                          | no
 *                          v
 *     first -> Read -> Read -> last          served in this order by serve(), when the source has more or ends
 *
 * Invariants
 * - While a read waits, nothing is readable: whoever makes something readable calls `serve` (or promises to, in this turn).
 * - Reads settle in the order in which they were called; `return` settles them all.
 * - User code (a filter, an `onGap`) runs only inside `take`; what it calls on this watch joins the line behind.
 */
export abstract class Reader<E> implements Watch<E> {
  abstract readonly stopped: boolean;
  abstract readonly queued: number;
  abstract readonly dropped: number;

  protected first: Read<E | readonly E[]> | undefined = undefined;
  /** How many reads wait. */
  protected waiting: number = 0;
  private last: Read<E | readonly E[]> | undefined = undefined;
  private taking: boolean = false;
  /** What `take` threw behind the events of a batch: told to the next read. */
  private untold: { readonly error: unknown } | undefined = undefined;

  /** Removes and returns the next event, or NONE. Throws, once, if the watch has failed. */
  protected abstract take(): E | typeof NONE;
  /** Whether `take` will answer NONE for ever. */
  protected abstract readonly drained: boolean;
  /** Ends the watch for its producer; what is queued stays readable. Idempotent. */
  protected abstract end(): void;
  /** Ends the watch and lets go of all that is queued. Idempotent. */
  protected abstract discard(): void;
  /** A read has begun to wait. */
  protected parked(): void {}
  /** Something was read, and whoever waited for it no longer waits. */
  protected taken(): void {}

  /** Whether a batch must end here, before the next event. */
  protected get breaks(): boolean {
    return false;
  }

  /** Removes and returns up to `limit` events as one array, or NONE. */
  protected takeBatch(limit: number): readonly E[] | typeof NONE {
    const batch: E[] = [];
    while (batch.length < limit && !(batch.length > 0 && this.breaks)) {
      let event: E | typeof NONE;
      try {
        event = this.take();
      } catch (error) {
        if (batch.length === 0) throw error;
        this.untold = { error };
        break;
      }
      if (event === NONE) break;
      batch.push(event);
    }
    return batch.length === 0 ? NONE : batch;
  }

  next(): Promise<IteratorResult<E, undefined>> {
    return this.read(false) as Promise<IteratorResult<E, undefined>>;
  }

  tryNext(): E | undefined {
    if (this.first !== undefined) this.serve();
    if (this.first !== undefined || this.taking) return undefined;
    const event = this.guarded(false);
    if (event === NONE) return undefined;
    this.taken();
    return event as E;
  }

  batches(): WatchBatches<E> {
    return new Batches(this, () => this.nextBatch());
  }

  /** One read of `batches`. */
  nextBatch(): Promise<IteratorResult<readonly E[], undefined>> {
    return this.read(true) as Promise<IteratorResult<readonly E[], undefined>>;
  }

  stop(): void {
    this.serve();
    this.end();
    this.serve();
  }

  return(): Promise<IteratorResult<E, undefined>> {
    this.serve();
    this.untold = undefined;
    this.discard();
    while (this.first !== undefined) this.shift().settle(done());
    return Promise.resolve(done());
  }

  /** Hands what is there to the reads that wait, in order; settles them all if the watch is over. */
  protected serve(): void {
    while (this.first !== undefined && !this.taking) {
      const read = this.first;
      let got: E | readonly E[] | typeof NONE | Promise<never>;
      try {
        // A batch with another read behind it takes one event, as that read's own event stands next in line.
        got = this.guarded(read.batch, read.next === undefined ? Number.POSITIVE_INFINITY : 1);
      } catch (error) {
        if (this.first === read) this.shift().settle(Promise.reject(error));
        continue;
      }
      if (this.first !== read) continue; // user code returned the watch meanwhile, and so settled this read
      if (got === NONE && !this.drained) return;
      this.shift().settle(got === NONE ? done() : { done: false, value: got });
      this.taken();
    }
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  [Symbol.dispose](): void {
    void this.return();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.return();
  }

  private read(batch: boolean): Promise<IteratorResult<E | readonly E[], undefined>> {
    if (this.first !== undefined) this.serve();
    const ahead = this.first === undefined && !this.taking;
    if (ahead) {
      let got: E | readonly E[] | typeof NONE;
      try {
        got = this.guarded(batch);
      } catch (error) {
        return Promise.reject(error);
      }
      if (got !== NONE) {
        this.taken();
        return Promise.resolve({ done: false, value: got });
      }
      if (this.drained) return Promise.resolve(done());
    }
    return new Promise((settle) => {
      // Reads that user code made inside the take above were called later than this one.
      const read: Read<E | readonly E[]> = { settle, batch, next: ahead ? this.first : undefined };
      if (ahead || this.last === undefined) this.first = read;
      else this.last.next = read;
      if (read.next === undefined) this.last = read;
      this.waiting++;
      this.parked();
    });
  }

  /** Takes with the guard up: reads that user code makes meanwhile wait in line, and are served after. */
  private guarded(batch: boolean, limit: number = Number.POSITIVE_INFINITY): E | readonly E[] | typeof NONE {
    const { first: before, untold } = this;
    if (untold !== undefined) {
      this.untold = undefined;
      throw untold.error;
    }
    this.taking = true;
    try {
      return batch ? this.takeBatch(limit) : this.take();
    } finally {
      this.taking = false;
      // Only reads that came from inside: the ones from before are being served by our caller.
      if (before === undefined && this.first !== undefined) this.serve();
    }
  }

  private shift(): Read<E | readonly E[]> {
    const read = this.first as Read<E | readonly E[]>;
    this.first = read.next;
    this.waiting--;
    if (this.first === undefined) this.last = undefined;
    return read;
  }
}

/** The iterator of `batches`, over whatever reads one batch. */
export class Batches<E> implements WatchBatches<E> {
  readonly next: () => Promise<IteratorResult<readonly E[], undefined>>;
  private readonly watch: Watch<E>;

  constructor(watch: Watch<E>, next: () => Promise<IteratorResult<readonly E[], undefined>>) {
    this.watch = watch;
    this.next = next;
  }

  async return(): Promise<IteratorResult<readonly E[], undefined>> {
    await this.watch.return();
    return done();
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  [Symbol.dispose](): void {
    void this.watch.return();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.watch.return();
  }
}
