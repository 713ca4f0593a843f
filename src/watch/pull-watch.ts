import { NONE, Reader } from './reader.ts';
import type { Watch } from './watch.ts';

/** What a {@link PullWatch} reads from: one event at a time, asked for only when a consumer wants it. */
export interface PullSource<E> {
  /** The next event or the end. Called again only after the last call settled. A rejection fails the watch, once. */
  pull(): Promise<IteratorResult<E, unknown>>;
  /** An event that is there already, or undefined. Not called while a pull is under way, nor the other way round. */
  poll?(): E | undefined;
  /** Nothing more will be asked for. Called at most once, at the end from either side; must make a pending pull settle or be harmless. */
  cancel(): void;
}

/** How a {@link PullWatch} takes `stop`. */
export interface PullWatchOptions {
  /** Instead of ending at once on `stop`, call this and read on until the source ends by itself. */
  onStop?: (() => void) | undefined;
}

/**
 * A watch over something that is asked for events: a decoder, another watch, a stream. Nothing is read ahead of demand, so
 * backpressure reaches the source; the one event that a finished pull brought waits in `hand`.
 *
 *     idle --read waits / tryNext finds nothing--> pulling --event--> idle (hand full)
 *       |                                             |-----end, error--> over
 *       `--------------- stop, return ----------------+----------------> over (source cancelled)
 */
export class PullWatch<E> extends Reader<E> {
  private readonly source: PullSource<E>;
  private readonly onStop: (() => void) | undefined;
  private hand: E | typeof NONE = NONE;
  private pulling: boolean = false;
  private over: boolean = false;
  private stopAsked: boolean = false;
  private lost: number = 0;
  protected failure: { readonly error: unknown } | undefined;

  constructor(source: PullSource<E>, options: PullWatchOptions = {}) {
    super();
    this.source = source;
    this.onStop = options.onStop;
  }

  get stopped(): boolean {
    return this.over || this.stopAsked;
  }

  get queued(): number {
    return this.hand === NONE ? 0 : 1;
  }

  get dropped(): number {
    return this.lost;
  }

  protected override get drained(): boolean {
    return this.over;
  }

  override tryNext(): E | undefined {
    const event = super.tryNext();
    // Someone who only polls must get the source moving, too.
    if (event === undefined) this.idle();
    return event;
  }

  /** `tryNext` found nothing. */
  protected idle(): void {
    this.pull();
  }

  protected override take(): E | typeof NONE {
    if (this.hand !== NONE) {
      const event = this.hand;
      this.hand = NONE;
      return event;
    }
    if (this.over || this.pulling || !this.source.poll) return NONE;
    let event: E | undefined;
    this.pulling = true; // user code inside `poll` may read: that must not start a pull beside it
    try {
      event = this.source.poll();
    } catch (error) {
      this.failure = { error };
      this.finish();
    }
    this.pulling = false;
    if (event !== undefined && !this.over) return event;
    if (event !== undefined) this.lost++; // the user code ended the watch
    if (this.first) this.pull();
    return NONE;
  }

  protected override wasted(count: number): void {
    this.lost += count;
  }

  protected override parked(): void {
    this.pull();
  }

  protected override end(): void {
    if (this.stopped) return;
    if (!this.onStop) {
      this.finish();
      return;
    }
    this.stopAsked = true;
    this.onStop();
  }

  protected override discard(): void {
    if (this.hand !== NONE) this.lost++;
    this.hand = NONE;
    this.finish();
  }

  private pull(): void {
    if (this.pulling || this.over || this.hand !== NONE) return;
    this.pulling = true;
    let pulled: Promise<IteratorResult<E, unknown>>;
    try {
      pulled = Promise.resolve(this.source.pull()); // people's own iterators answer without a promise, too
    } catch (error) {
      pulled = Promise.reject(error);
    }
    pulled.then(
      (result) => this.pulled(result),
      (error: unknown) => this.pulled(undefined, { error }),
    );
  }

  private pulled(result: IteratorResult<E, unknown> | undefined, failure?: { readonly error: unknown }): void {
    this.pulling = false;
    if (this.over) {
      // Ended while the pull was under way: what it brought was asked for by nobody who is still there.
      if (result && !result.done) this.lost++;
      return;
    }
    if (result && !result.done) {
      this.hand = result.value;
    } else {
      this.failure = failure;
      this.finish();
    }
    this.serve();
    if (this.first) this.pull();
  }

  private finish(): void {
    if (this.over) return;
    this.over = true;
    try {
      this.source.cancel();
    } catch {
      // What a source has to say about being cancelled concerns nobody any more.
    }
  }
}

/** A watch over any async iterable or iterator; nothing is read before it is asked for. Any end calls the iterator's `return`, its own among them. */
export function fromAsyncIterable<E>(events: AsyncIterable<E> | AsyncIterator<E, unknown>): Watch<E> {
  const iterator = Symbol.asyncIterator in events ? events[Symbol.asyncIterator]() : events;
  return new PullWatch<E>({
    pull: () => iterator.next(),
    cancel: () => {
      iterator.return?.()?.then(undefined, () => {});
    },
  });
}
