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

/** What {@link Reader.take} returns when there is no event now. Distinct from undefined, which may be an event. */
export const NONE: unique symbol = Symbol('none');

/**
 * A pending read. A class, because a program with many idle watches has many of them: V8 would then allocate object literals from
 * this place in the old space, where each one keeps alive what its short-lived successors have read.
 */
class PendingRead<T> {
  readonly settle: (result: IteratorResult<T, undefined> | Promise<never>) => void;
  readonly batch: boolean;
  next: PendingRead<T> | undefined;
  /** The object the consumer reads through. The consumer may hold only the promise, so the read keeps this object alive. */
  holder: object | undefined = undefined;

  constructor(settle: PendingRead<T>['settle'], batch: boolean, next: PendingRead<T> | undefined) {
    this.settle = settle;
    this.batch = batch;
    this.next = next;
  }
}

/**
 * The consumer's half of every {@link Watch} except the client's: it queues pending reads and decides which one is served. A
 * subclass supplies the events: it implements `take`, reports when it is `drained`, and calls `serve` when there may be more.
 * (The client's half, bridge/client/reads.ts, has one source, no fast paths and half the size.)
 *
 *     next() --------> take() has one? ----> settled at once
 *                          | no
 *                          v
 *     first -> Read -> Read -> last          served in this order by serve(), when the source has more or ends
 *
 * Invariants
 * - While a read is pending, no event is readable. Code that makes an event readable calls `serve`, now or later in the same
 *   turn.
 * - Reads settle in the order in which they joined the queue. `return` settles all of them. (A rejection is passed on as a
 *   promise, so it is seen two microtasks later, after the `done` of the reads behind it.)
 * - User code (a filter, an `onGap`) that runs inside `take` may call any method of this watch. Its reads join the end of the
 *   queue.
 * - `take` does not throw. It stores an error in `failure`, which one read reports after all readable events have been read.
 */
export abstract class Reader<E> extends Iteration implements Watch<E> {
  abstract readonly stopped: boolean;
  abstract readonly queued: number;
  abstract readonly dropped: number;

  protected first: PendingRead<E | readonly E[]> | undefined;
  /** Number of pending reads. */
  protected waiting: number = 0;
  private last: PendingRead<E | readonly E[]> | undefined;
  protected taking: boolean = false;
  /** Why the watch failed. Cleared when a read has reported it: the first read that finds no more events. */
  protected abstract failure: { readonly error: unknown } | undefined;

  /** Removes and returns the next event, or NONE. */
  protected abstract take(): E | typeof NONE;
  /** Whether `take` will return NONE from now on. */
  protected abstract readonly drained: boolean;
  /** Ends the watch on the producer's side. Queued events stay readable. Idempotent. */
  protected abstract end(): void;
  /** Ends the watch and drops all queued events. Idempotent. */
  protected abstract discard(): void;
  /** Called when a read starts to wait. */
  protected readWaits(): void {}
  /** Called when an event was read, or a pending read was served. */
  protected taken(): void {}
  /** Called with the number of events that were taken for a read that had already ended. */
  protected wasted(_count: number): void {}

  /** Whether a batch must end before the next event. */
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
    // User code called `return`, which settled the read. The events taken for it are lost.
    if (read && read !== this.first) this.wasted(batch.length);
    return batch.length === 0 ? NONE : batch;
  }

  next(): Promise<IteratorResult<E, undefined>> {
    return this.read(false) as Promise<IteratorResult<E, undefined>>;
  }

  tryNext(): E | undefined {
    return this.readNow(false) as E | undefined;
  }

  /** Returns what one read of `batches` would get now, or undefined. For callers that know themselves when to look. */
  tryBatch(): readonly E[] | undefined {
    return this.readNow(true) as readonly E[] | undefined;
  }

  batches(): WatchBatches<E> {
    return new Batches(this, () => this.nextBatch());
  }

  /** Performs one read of `batches`. */
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
    this.dismiss(); // reads that a filter started while it was asked one last time
    return Promise.resolve(done());
  }

  /** Serves pending reads in order with what is available. Settles all of them if the watch is over. */
  protected serve(): void {
    while (this.first && !this.taking) {
      const read = this.first;
      // If another read is pending behind this one, a batch takes one event only: the next event belongs to that read.
      const got = this.guarded(read.batch, read.next === undefined ? Infinity : 1);
      if (this.first !== read) continue; // user code called `return`, which settled this read
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

  protected read(batch: boolean): Promise<IteratorResult<E | readonly E[], undefined>> {
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
    // Reads that user code started inside the take above came later than this one.
    return this.wait(batch, ahead);
  }

  /** Adds a read to the queue, at the end or (`ahead`) at the front. */
  protected wait(batch: boolean, ahead: boolean = false): Promise<IteratorResult<E | readonly E[], undefined>> {
    return new Promise((settle) => {
      const read = new PendingRead<E | readonly E[]>(settle, batch, ahead ? this.first : undefined);
      if (ahead || !this.last) this.first = read;
      else this.last.next = read;
      if (!read.next) this.last = read;
      this.waiting++;
      this.readWaits();
    });
  }

  /** Whether there is one pending read, for one event. */
  protected get wantsOne(): boolean {
    return this.waiting === 1 && !this.first?.batch;
  }

  /** Keeps `holder` alive while a read is pending. Doing so in a field of the watch would cost a write barrier per read. */
  hold(holder: object): void {
    if (this.last) this.last.holder = holder;
  }

  /** Returns the result of a read, or undefined if the read must wait. */
  private outcome(got: E | readonly E[] | typeof NONE): IteratorResult<E | readonly E[], undefined> | Promise<never> | undefined {
    if (got !== NONE) return { done: false, value: got };
    const { failure } = this;
    this.failure = undefined;
    if (failure) return Promise.reject(failure.error);
    return this.drained ? done() : undefined;
  }

  /** Takes with `taking` set: reads that user code starts meanwhile wait. The caller serves them after this read. */
  private guarded(batch: boolean, limit: number = Infinity): E | readonly E[] | typeof NONE {
    this.taking = true;
    const got = batch ? this.takeBatch(limit) : this.take();
    this.taking = false;
    return got;
  }

  private dismiss(): void {
    while (this.first) this.shift().settle(done());
  }

  protected shift(): PendingRead<E | readonly E[]> {
    const read = this.first as PendingRead<E | readonly E[]>;
    this.first = read.next;
    this.waiting--;
    if (!this.first) this.last = undefined;
    return read;
  }
}
