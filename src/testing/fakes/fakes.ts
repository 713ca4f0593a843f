import { checkOptions, WatchError, wholeNumber } from '../../watch/errors.ts';
import type { WatchEvent } from '../../watch/event.ts';
import { Batches, Iteration, NONE, Reader } from '../../watch/reader.ts';
import type { Watch, WatchBatches } from '../../watch/watch.ts';

/** The object type of a union's events of one type. */
export type ObjectOfType<E extends WatchEvent, Type extends string> =
  E extends WatchEvent<infer Own, infer Obj> ? (Type extends Own ? Obj : never) : never;

interface Sent<E> {
  readonly event: E;
  readonly settle: (taken: boolean) => void;
}

/**
 * The common part of the fakes: a line of events, the consumer's half, and Kubernetes' verbs for a test that plays the producer.
 */
abstract class Fake<E extends WatchEvent, Result> extends Reader<E> {
  protected failure: { readonly error: unknown } | undefined;
  protected line: Sent<E>[] = [];
  /** How many events of the line are accepted. The senders of the others are waiting. */
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

  /** Sends an ERROR event. The watch goes on, as with upstream's fakes. */
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
   * Starts over with an empty queue of the same capacity and counters of 0, whether stopped or not. Pending reads end, and
   * waiting senders get false. The only watch that may deliver events after `done`.
   */
  reset(): void {
    void this.return();
    this.over = false;
    this.lost = 0;
  }

  get stopped(): boolean {
    return this.over;
  }

  /** Number of events that can be read without waiting, including those of waiting senders. */
  get queued(): number {
    return this.line.length;
  }

  /** Number of accepted events that `return` discarded. */
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
    // Every later event moves up by one place, and one of them into the queue.
    if (this.capacity > 0) this.line[this.capacity - 1]?.settle(true);
    return sent.event;
  }

  protected override end(): void {
    this.over = true;
    // Senders of events that were never accepted get false.
    for (const sent of this.line.splice(this.capacity)) sent.settle(false);
  }

  protected override discard(): void {
    this.end();
    this.lost += this.line.length;
    this.line = [];
  }
}

/** Options of a {@link FakeWatcher}. */
export interface FakeWatcherOptions {
  /**
   * Number of events it accepts without a reader; default 0: a sender waits until its event is read. `reset` keeps the capacity.
   */
  capacity?: number | undefined;
}

/**
 * A watch that a test feeds by hand. `add`, `modify`, `delete`, `error` and `action` resolve with true once the event was read
 * (or, with a capacity, queued), and with false if the watch is stopped before that. They never reject. Waiting senders are
 * served in order. Both sides may call `stop`, because the producer is the test.
 *
 * Upstream: `watch.FakeWatcher`, `NewFake`, `NewFakeWithChanSize`; unlike there, sending to a stopped fake does not panic.
 *
 * @throws {WatchError} INVALID_ARGUMENT for a capacity that is not a whole number >= 0.
 */
export class FakeWatcher<E extends WatchEvent = WatchEvent> extends Fake<E, Promise<boolean>> {
  constructor(options: FakeWatcherOptions = {}) {
    super(wholeNumber('capacity', checkOptions(options, ['capacity']).capacity ?? 0));
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
 * A watch that a test feeds by hand, without waiting: it queues up to 100 events. Sending returns true if the event was queued
 * (or read), and false, without effect, after a stop.
 *
 * Upstream: `watch.RaceFreeFakeWatcher`, `NewRaceFreeFake`.
 *
 * @throws {WatchError} QUEUE_FULL (with `limit`) from every sending method when 100 events are unread: the test is wrong.
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

/** The functions of a {@link MockWatcher}. `next` and `stop` are required, the others have defaults. */
export interface MockFunctions<E> {
  next(): Promise<IteratorResult<E, undefined>>;
  stop(): void;
  /** Default: calls `stop` and resolves with `done`. */
  return?(): Promise<IteratorResult<E, undefined>>;
  /** Default: returns undefined. */
  tryNext?(): E | undefined;
}

/**
 * A watch that forwards calls: each `next` calls the given `next` once, each `stop` the given `stop`. For tests of which methods
 * are called, how often and in which order. `batches` reads one event at a time. `stopped` tells whether `stop` or `return` was
 * called. `queued` and `dropped` are always 0.
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
