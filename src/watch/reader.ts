import { Batches, done, Iteration } from './iteration.ts';
import type { Watch, WatchBatches } from './watch.ts';

/** What {@link Reader.take} answers when no event is there now. Events are counted, never compared with undefined. */
export const NONE: unique symbol = Symbol('none');

interface Read<T> {
  readonly settle: (result: IteratorResult<T, undefined> | Promise<never>) => void;
  readonly batch: boolean;
  next: Read<T> | undefined;
  /** What the consumer reads through. It kept perhaps nothing but the promise: the read keeps the rest. */
  holder: object | undefined;
}

/**
 * The consumer's half of every {@link Watch} but the client's: the line of reads that wait, and who is served when. What is
 * read, and from where, is the subclass's: it supplies `take`, says when it is `drained`, and calls `serve` when there may be
 * more. (The client's, bridge/client-reads.ts, has one source, no fast paths, and half the size.)
 *
 *     next() --------> take() has one? ----> settled at once
 *                          | no
 *                          v
 *     first -> Read -> Read -> last          served in this order by serve(), when the source has more or ends
 *
 * Invariants
 * - While a read waits, nothing is readable: whoever makes something readable calls `serve` (or promises to, in this turn).
 * - Reads settle in the order in which they joined the line; `return` settles them all.
 * - User code (a filter, an `onGap`) that runs inside `take` may call anything on this watch: its reads join the line behind.
 * - `take` does not throw: a failure is put into `failure`, and told once, when all that was readable has been read.
 */
export abstract class Reader<E> extends Iteration implements Watch<E> {
  abstract readonly stopped: boolean;
  abstract readonly queued: number;
  abstract readonly dropped: number;

  protected first: Read<E | readonly E[]> | undefined;
  /** How many reads wait. */
  protected waiting: number = 0;
  private last: Read<E | readonly E[]> | undefined;
  protected taking: boolean = false;
  /** Why the watch failed, until a read was told: the first one that finds nothing more. */
  protected abstract failure: { readonly error: unknown } | undefined;

  /** Removes and returns the next event, or NONE. */
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
  /** So many events were taken for a read that was over by then. */
  protected wasted(_count: number): void {}

  /** Whether a batch must end here, before the next event. */
  protected get breaks(): boolean {
    return false;
  }

  /** Removes and returns up to `limit` events as one array, or NONE. */
  protected takeBatch(limit: number): readonly E[] | typeof NONE {
    const read = this.first;
    const batch: E[] = [];
    while (batch.length < limit && !(batch.length > 0 && this.breaks)) {
      const event = this.take();
      if (event === NONE) break;
      batch.push(event);
    }
    // User code has returned the watch, and so settled the read: what was taken for it goes to nobody.
    if (read && read !== this.first) this.wasted(batch.length);
    return batch.length === 0 ? NONE : batch;
  }

  next(): Promise<IteratorResult<E, undefined>> {
    return this.read(false) as Promise<IteratorResult<E, undefined>>;
  }

  tryNext(): E | undefined {
    return this.readNow(false) as E | undefined;
  }

  /** What one read of `batches` would get at once, or undefined. For those who know by themselves when to look. */
  tryBatch(): readonly E[] | undefined {
    return this.readNow(true) as readonly E[] | undefined;
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
    this.dismiss();
    this.discard();
    this.failure = undefined;
    this.dismiss(); // reads from inside a filter that was asked one last time
    return Promise.resolve(done());
  }

  /** Hands what is there to the reads that wait, in order; settles them all if the watch is over. */
  protected serve(): void {
    while (this.first && !this.taking) {
      const read = this.first;
      // A batch with another read behind it takes one event, as that read's own event stands next in line.
      const got = this.guarded(read.batch, read.next === undefined ? Infinity : 1);
      if (this.first !== read) continue; // user code returned the watch meanwhile, and so settled this read
      const outcome = this.outcome(got);
      if (!outcome) return;
      this.shift().settle(outcome);
      this.taken();
    }
  }

  private readNow(batch: boolean): E | readonly E[] | undefined {
    if (this.first) this.serve();
    if (this.first || this.taking) return undefined;
    const got = this.guarded(batch);
    const { failure } = this;
    if (got === NONE) this.failure = undefined;
    else this.taken();
    this.serve();
    if (got !== NONE) return got;
    if (failure) throw failure.error;
    return undefined;
  }

  private read(batch: boolean): Promise<IteratorResult<E | readonly E[], undefined>> {
    if (this.first) this.serve();
    const ahead = !this.first && !this.taking;
    if (ahead) {
      const outcome = this.outcome(this.guarded(batch));
      if (outcome) {
        this.taken();
        this.serve();
        return Promise.resolve(outcome);
      }
    }
    // Reads that user code made inside the take above were called later than this one.
    return this.wait(batch, ahead);
  }

  /** A read joins the line, behind the others or before them. */
  protected wait(batch: boolean, ahead: boolean = false): Promise<IteratorResult<E | readonly E[], undefined>> {
    return new Promise((settle) => {
      const read: Read<E | readonly E[]> = { settle, batch, next: ahead ? this.first : undefined, holder: undefined };
      if (ahead || !this.last) this.first = read;
      else this.last.next = read;
      if (!read.next) this.last = read;
      this.waiting++;
      this.parked();
    });
  }

  /** Keeps this object from being collected while a read waits. Not in a field of the watch: that would cost a write barrier each time. */
  hold(holder: object): void {
    if (this.last) this.last.holder = holder;
  }

  /** What a read comes to, or undefined if it must wait. */
  private outcome(got: E | readonly E[] | typeof NONE): IteratorResult<E | readonly E[], undefined> | Promise<never> | undefined {
    if (got !== NONE) return { done: false, value: got };
    const { failure } = this;
    this.failure = undefined;
    if (failure) return Promise.reject(failure.error);
    return this.drained ? done() : undefined;
  }

  /** Takes with the guard up: reads that user code makes meanwhile wait in line. The caller serves them when this one has its answer. */
  private guarded(batch: boolean, limit: number = Infinity): E | readonly E[] | typeof NONE {
    this.taking = true;
    const got = batch ? this.takeBatch(limit) : this.take();
    this.taking = false;
    return got;
  }

  private dismiss(): void {
    while (this.first) this.shift().settle(done());
  }

  protected shift(): Read<E | readonly E[]> {
    const read = this.first as Read<E | readonly E[]>;
    this.first = read.next;
    this.waiting--;
    if (!this.first) this.last = undefined;
    return read;
  }
}
