/**
 * One handler of an informer: a reader of the log that calls the handler with each change, one after the other.
 *
 *     log -> queue, bounded by a policy -> next change -> filter -> onAdd, onUpdate, onDelete -> (awaited) -> next change
 *                                              |
 *                                              '-- none left: the next object of a resync
 *
 * A resync needs no room in the queue: when it is due, the handler is called with the objects of the store, each at a moment when
 * it has no other change to read, so that its calls are in order.
 *
 * Invariants
 * - At most one call is in progress. After `remove`, or the end of the informer, none begins.
 * - Per object the calls are onAdd (onUpdate)* onDelete, again and again, each `old` being the object of the call before,
 *   unless the chosen policy lost changes.
 * - An error of a handler is reported, and ends nothing. A handler that was cut is also reported.
 */
import type { BroadcastWatch } from '../../broadcast/broadcast-watch.ts';
import { deciding, isPromise, Latch } from '../../watch/abort.ts';
import { WatchError } from '../../watch/errors.ts';
import { isInitialEventsEnd } from '../../watch/event.ts';
import type { HeapNode } from '../../watch/timetable.ts';
import type { Handler, HandlerOptions, HandlerRegistration } from './informer-options.ts';
import { isChange, type LiveStore, type LogEvent, type StateChange, transitionOf } from './live-store.ts';

/** What a handler needs from its informer. */
interface RegistrationHost<T> {
  readonly live: LiveStore<T>;
  /** Reports a handler's error, or why it was ended. Does not throw. */
  onError(error: unknown, handler: Handler<T>): void;
}

/** See the top of this file. */
export class Registration<T> implements HandlerRegistration, HeapNode {
  /** How often it gets every object; 0: never. */
  readonly periodMs: number;
  heapRank: number = 0;
  heapTurn: number = 0;
  heapAt: number = -1;
  readonly ended: Promise<unknown>;
  readonly #handler: Handler<T>;
  readonly #host: RegistrationHost<T>;
  readonly #matches: ((object: T) => boolean) | undefined;
  readonly #watch: BroadcastWatch<LogEvent<T>>;
  readonly #synced: Latch = new Latch();
  /** The keys of the objects of a resync that the handler has yet to get, from the last to the first. */
  #resync: string[] = [];
  #resyncDue: boolean = false;
  /** Whether it has nothing to do. */
  #waiting: boolean = false;
  #removed: boolean = false;
  /** Why it was ended. */
  #why: unknown;
  /** The function that was called last, and the change that it has not finished yet, if any. */
  #called: string = '';
  #pending: StateChange<T> | undefined;

  constructor(handler: Handler<T>, options: HandlerOptions<T> & { periodMs: number }, host: RegistrationHost<T>) {
    const { periodMs, overflow, capacity, onGap } = options;
    const matches = deciding('filter', options.filter);
    this.periodMs = periodMs;
    this.#handler = handler;
    this.#host = host;
    this.#matches = matches;
    this.#watch = host.live.join({ overflow, capacity, matches, onGap, reader: this });
    this.ended = this.#run();
  }

  get synced(): Promise<void> {
    return this.#synced.promise;
  }

  get hasSynced(): boolean {
    return this.#synced.isOpen;
  }

  get queued(): number {
    return this.#watch.sizeOfQueue((event) => (isChange(event) ? 1 : 0)) + this.#resync.length;
  }

  /** The call in progress, for people. */
  get doing(): string | undefined {
    return this.#pending && `${this.#called} of ${this.#pending.key}`;
  }

  remove(): void {
    this.end(new WatchError('CLOSED', 'the handler was removed before it had synced'));
  }

  /** Ends it, for this reason if it has not synced. */
  end(error: unknown): void {
    this.#removed = true;
    this.#why ??= error;
    this.#resync = [];
    this.#synced.reject(error);
    void this.#watch.return();
  }

  /** Has the handler called with every object, once it has read what is queued. Returns whether it has to be woken. */
  resync(): boolean {
    this.#resyncDue = true;
    return this.#waiting && this.#watch.queued === 0;
  }

  async #run(): Promise<unknown> {
    await null; // the caller of `addHandler` has the registration before the first call
    try {
      while (!this.#removed) {
        const event = this.#watch.tryNext();
        const calls = event === undefined ? this.#idle() : this.#handle(event);
        if (calls) await calls;
      }
    } catch (error) {
      this.#fail(error); // thrown by `onGap`
    }
    return this.#why;
  }

  /** There is nothing to read: goes on with a resync, or waits. */
  #idle(): Promise<void> | undefined {
    const { live } = this.#host;
    // A policy that loses events may have lost the event that says so.
    if (live.hasSynced) this.#synced.open();
    // Not before the previous one is over: a slow handler would get the same few objects again and again.
    if (this.#resyncDue && this.#resync.length === 0) {
      this.#resyncDue = false;
      this.#resync = live.keys().reverse();
    }
    const key = this.#resync.pop();
    if (key === undefined) return this.#wait();
    const object = live.get(key);
    if (object === undefined) return undefined;
    return this.#tell({ type: 'MODIFIED', object, previous: object, key, finalStateUnknown: false });
  }

  async #wait(): Promise<void> {
    this.#waiting = true;
    const { done, value } = await this.#watch.next();
    this.#waiting = false;
    if (done) this.#removed = true;
    else if (!this.#removed) await this.#handle(value);
  }

  #handle(event: LogEvent<T>): Promise<void> | undefined {
    if (isChange(event)) return this.#tell(event);
    if (event.type === 'ERROR')
      this.#fail(new WatchError('REFUSED', `a handler was ended: ${event.object.message}`, { status: event.object }));
    else if (isInitialEventsEnd(event)) this.#synced.open();
    return undefined;
  }

  /** Calls the handler, if the change concerns it. Returns a promise if the handler returned one. */
  #tell(change: StateChange<T>): Promise<void> | undefined {
    try {
      const result = this.#call(change);
      if (!isPromise(result)) return undefined;
      this.#pending = change;
      return Promise.resolve(result).then(
        () => {
          this.#pending = undefined;
        },
        (error: unknown) => {
          this.#pending = undefined;
          this.#host.onError(error, this.#handler);
        },
      );
    } catch (error) {
      this.#host.onError(error, this.#handler);
      return undefined;
    }
  }

  #call(change: StateChange<T>): unknown {
    const { object, previous, finalStateUnknown } = change;
    switch (this.#transitionOf(change)) {
      case 'ADDED':
        this.#called = 'onAdd';
        return this.#handler.onAdd?.(object, change.type === 'ADDED' && !this.#synced.isOpen);
      case 'MODIFIED':
        this.#called = 'onUpdate';
        return this.#handler.onUpdate?.(previous as T, object);
      case 'DELETED':
        this.#called = 'onDelete';
        return this.#handler.onDelete?.(change.type === 'DELETED' ? object : (previous as T), finalStateUnknown);
      default:
        return undefined;
    }
  }

  /**
   * An object for which the filter throws does not match: neither as the current one, which is reported, nor as the previous one.
   */
  #transitionOf(change: StateChange<T>): StateChange<T>['type'] | undefined {
    const guarded = (object: T): boolean => {
      try {
        return this.#matches?.(object) ?? false;
      } catch (error) {
        if (object !== change.previous) this.#host.onError(error, this.#handler);
        return false;
      }
    };
    const type = transitionOf(change, this.#matches && guarded);
    return this.#removed ? undefined : type; // by the filter, or by `onError`
  }

  #fail(error: unknown): void {
    this.end(error);
    this.#host.onError(error, this.#handler);
  }
}
