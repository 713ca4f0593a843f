import { WatchError, wholeNumber } from '../watch/errors.ts';
import type { WatchEvent } from '../watch/event.ts';
import { Batches, Iteration } from '../watch/iteration.ts';
import { NONE, Reader } from '../watch/reader.ts';
import type { Watch, WatchBatches } from '../watch/watch.ts';

/** The object that events of one type of a union bear. */
export type ObjectOfType<E extends WatchEvent, Type extends string> =
  E extends WatchEvent<infer Own, infer Obj> ? (Type extends Own ? Obj : never) : never;

interface Sent<E> {
  readonly event: E;
  readonly settle: (taken: boolean) => void;
}

/** What the fakes share: a line of events, a consumer's half, and Kubernetes' verbs for the test that plays the producer. */
abstract class Fake<E extends WatchEvent, Result> extends Reader<E> {
  protected failure: { readonly error: unknown } | undefined;
  protected line: Sent<E>[] = [];
  /** How many of the line are accepted; whoever sent the others still waits. */
  protected readonly capacity: number;
  private over: boolean = false;
  private lost: number = 0;

  constructor(capacity: number) {
    super();
    this.capacity = capacity;
  }

  /** Sends one event. */
  protected abstract send(event: E): Result;

  /** Sends an ADDED event. */
  add(object: ObjectOfType<E, 'ADDED'>): Result {
    return this.action('ADDED', object);
  }

  /** Sends a MODIFIED event. */
  modify(object: ObjectOfType<E, 'MODIFIED'>): Result {
    return this.action('MODIFIED', object);
  }

  /** Sends a DELETED event. */
  delete(object: ObjectOfType<E, 'DELETED'>): Result {
    return this.action('DELETED', object);
  }

  /** Sends an ERROR event; the watch goes on, as upstream's fakes do. */
  error(object: ObjectOfType<E, 'ERROR'>): Result {
    return this.action('ERROR', object);
  }

  /** Sends an event of any type. */
  action<Type extends E['type']>(type: Type, object: ObjectOfType<E, Type>): Result {
    return this.send({ type, object } as WatchEvent as E);
  }

  /** Whether it was stopped since the start or the last `reset`. */
  isStopped(): boolean {
    return this.over;
  }

  /**
   * Begins anew with an empty queue of the same capacity and counters of 0, stopped or not: reads that wait end, senders that
   * wait hear false. The one watch that has something to say after `done`.
   */
  reset(): void {
    void this.return();
    this.over = false;
    this.lost = 0;
  }

  get stopped(): boolean {
    return this.over;
  }

  /** Events that can be read without waiting, those of waiting senders among them. */
  get queued(): number {
    return this.line.length;
  }

  /** Accepted events that `return` discarded. */
  get dropped(): number {
    return this.lost;
  }

  protected override get drained(): boolean {
    return this.over && this.line.length === 0;
  }

  protected override take(): E | typeof NONE {
    const sent = this.line.shift();
    if (sent === undefined) return NONE;
    sent.settle(true);
    // Everybody behind has moved up by one place, and one of them into the queue.
    if (this.capacity > 0) this.line[this.capacity - 1]?.settle(true);
    return sent.event;
  }

  protected override end(): void {
    this.over = true;
    // What was never accepted goes back to its sender.
    for (const sent of this.line.splice(this.capacity)) sent.settle(false);
  }

  protected override discard(): void {
    this.end();
    this.lost += this.line.length;
    this.line = [];
  }
}

/** How a {@link FakeWatcher} queues. */
export interface FakeWatcherOptions {
  /** Events that it takes without a reader; 0 by default: a sender waits until its event is read. `reset` keeps it. */
  capacity?: number | undefined;
}

/**
 * A watch that a test feeds by hand. Each of `add`, `modify`, `delete`, `error` and `action` resolves with true once its event
 * was read (or, with a capacity, queued), and with false when the watch was stopped before, or is stopped meanwhile; it never
 * rejects. Senders that wait are served first come, first served. Either side may `stop`: the fake's producer is the test.
 *
 * Upstream: `watch.FakeWatcher`, `NewFake`, `NewFakeWithChanSize`; sending while stopping is no crash here.
 *
 * @throws {WatchError} INVALID_ARGUMENT for a capacity that is not a whole number >= 0.
 */
export class FakeWatcher<E extends WatchEvent = WatchEvent> extends Fake<E, Promise<boolean>> {
  constructor(options: FakeWatcherOptions = {}) {
    super(wholeNumber('capacity', options.capacity ?? 0));
  }

  protected override send(event: E): Promise<boolean> {
    if (this.stopped) return Promise.resolve(false);
    return new Promise((settle) => {
      this.line.push({ event, settle });
      if (this.line.length <= this.capacity) settle(true);
      this.serve();
    });
  }
}

const RACE_FREE_CAPACITY = 100;

/**
 * A watch that a test feeds by hand and that never makes it wait: it queues 100 events. Sending answers true when the event was
 * queued (or read), and false, with no effect, after a stop. A test that runs ahead by more is wrong: that throws.
 *
 * Upstream: `watch.RaceFreeFakeWatcher`, `NewRaceFreeFake`.
 *
 * @throws {WatchError} QUEUE_FULL (with `limit`) from every sending method, when 100 events are unread.
 */
export class RaceFreeFakeWatcher<E extends WatchEvent = WatchEvent> extends Fake<E, boolean> {
  constructor() {
    super(RACE_FREE_CAPACITY);
  }

  protected override send(event: E): boolean {
    if (this.stopped) return false;
    const limit = this.capacity;
    if (this.queued >= limit) throw new WatchError('QUEUE_FULL', `the fake holds ${limit} unread events`, { limit });
    this.line.push({ event, settle() {} });
    this.serve();
    return true;
  }
}

/** What a {@link MockWatcher} does: the first two are asked for, the others have a default. */
export interface MockFunctions<E> {
  next(): Promise<IteratorResult<E, undefined>>;
  stop(): void;
  /** Default: calls `stop`, and is done. */
  return?(): Promise<IteratorResult<E, undefined>>;
  /** Default: nothing is there. */
  tryNext?(): E | undefined;
}

/**
 * A watch that only passes on: each `next` is one call of the given `next`, each `stop` one call of the given `stop`. For tests
 * of who calls what, how often and in which order. `batches` reads one event at a time; `stopped` says whether `stop` or `return`
 * was called; nothing is queued and nothing dropped.
 *
 * Upstream: `watch.MockWatcher`, whose two functions are `Stop` and `ResultChan`.
 */
export class MockWatcher<E> extends Iteration implements Watch<E> {
  readonly queued: number = 0;
  readonly dropped: number = 0;
  private readonly functions: MockFunctions<E>;
  private over: boolean = false;

  constructor(functions: MockFunctions<E>) {
    super();
    this.functions = functions;
  }

  get stopped(): boolean {
    return this.over;
  }

  next(): Promise<IteratorResult<E, undefined>> {
    return this.functions.next();
  }

  tryNext(): E | undefined {
    return this.functions.tryNext?.();
  }

  stop(): void {
    this.over = true;
    this.functions.stop();
  }

  async return(): Promise<IteratorResult<E, undefined>> {
    this.over = true;
    if (this.functions.return !== undefined) return this.functions.return();
    this.functions.stop();
    return { done: true, value: undefined };
  }

  batches(): WatchBatches<E> {
    return new Batches(this, async () => {
      const { done, value } = await this.next();
      return done === true ? { done, value } : { done: false, value: [value] };
    });
  }
}
