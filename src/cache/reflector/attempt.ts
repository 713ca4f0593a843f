/**
 * One request of a reflector or a retry watcher: a list, or a watch from its request to its end. It can be interrupted at any time,
 * and ends once: then no timer runs, and the watch has been returned; one that comes too late is returned as well.
 *
 *     new --open()--> during(source.watch) --> poll(), next() ... --> close()
 *                              ^                  ^
 *                              '---- interrupt(reason), by a timer or from outside
 */
import type { Clock } from '../../watch/clock.ts';
import { requireMethod } from '../../watch/errors.ts';
import type { ObjectEvent } from '../../watch/event.ts';
import type { Watch } from '../../watch/watch.ts';
import type { ListWatcher, ListWatchOptions } from '../list-watcher.ts';

/** The outcome of a wait. An interruption always comes first. */
export type Outcome<V, I> =
  | { readonly is: 'value'; readonly value: V }
  | { readonly is: 'error'; readonly error: unknown }
  | Interruption<I>;

interface Interruption<I> {
  readonly is: 'interrupted';
  readonly reason: I;
}

export class ReflectorAttempt<T, I> {
  readonly clock: Clock;
  readonly startedMs: number;
  readonly #abort: AbortController = new AbortController();
  readonly #timers: Set<() => void> = new Set();
  #watch: Watch<ObjectEvent<T>> | undefined;
  #interruption: Interruption<I> | undefined;
  #settle: ((outcome: Outcome<never, I>) => void) | undefined;
  #closed: boolean = false;
  /** Since when `next` has been waiting. */
  #readingSinceMs: number | undefined;

  constructor(clock: Clock) {
    this.clock = clock;
    this.startedMs = clock.now();
  }

  /** Aborts at the end. */
  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  /** How long it has been going on. */
  get ranMs(): number {
    return this.clock.now() - this.startedMs;
  }

  get interruption(): Outcome<never, I> | undefined {
    return this.#interruption;
  }

  /** Settles the pending wait, and every later one, as interrupted. Only the first interruption counts. */
  interrupt(reason: I): void {
    this.#interruption ??= { is: 'interrupted', reason };
    this.#settle?.(this.#interruption);
  }

  /** Calls `callback` once after `delayMs`, unless the attempt ends before. */
  after(delayMs: number, callback: () => void): void {
    if (this.#closed) return;
    const cancel = this.clock.schedule(delayMs, () => {
      this.#timers.delete(cancel);
      callback();
    });
    this.#timers.add(cancel);
  }

  /** Interrupts as soon as `next` has waited for `limitMs`. Without a reason, the limit no longer applies. */
  limitSilence(limitMs: number, toReason: () => I | undefined): void {
    const look = (delayMs: number): void =>
      this.after(delayMs, () => {
        const nowMs = this.clock.now();
        const leftMs = (this.#readingSinceMs ?? nowMs) + limitMs - nowMs;
        const reason = toReason();
        if (reason !== undefined && leftMs <= 0) this.interrupt(reason);
        else if (reason !== undefined) look(leftMs);
      });
    look(limitMs);
  }

  /** Waits for a promise, or for an interruption. */
  during<V>(promise: PromiseLike<V>): Promise<Outcome<V, I>> {
    return new Promise((resolve) => {
      promise.then(
        (value) => resolve(this.#interruption ?? { is: 'value', value }),
        (error: unknown) => resolve(this.#interruption ?? { is: 'error', error }),
      );
      if (this.#interruption) resolve(this.#interruption);
      else this.#settle = resolve;
    });
  }

  /** Waits for an interruption. */
  async rest(): Promise<I> {
    const outcome = await this.during(new Promise<never>(() => {}));
    return (outcome as Interruption<I>).reason;
  }

  /** Opens a watch, which this attempt ends. */
  async open(source: ListWatcher<T>, options: ListWatchOptions): Promise<Outcome<void, I>> {
    const opening = call(() => source.watch({ ...options, signal: this.signal }));
    const opened = opening.then((watch) => {
      requireMethod('watch', watch, 'tryNext', 'a Watch: make one with fromAsyncIterable');
      if (this.#closed) leave(watch);
      else this.#watch = watch;
    });
    return await this.during(opened);
  }

  /** The next event, if it is there. Throws if the watch failed. */
  poll(): ObjectEvent<T> | undefined {
    return (this.#watch as Watch<ObjectEvent<T>>).tryNext();
  }

  /** Waits for the next event, or the end. */
  async next(): Promise<Outcome<IteratorResult<ObjectEvent<T>, undefined>, I>> {
    this.#readingSinceMs = this.clock.now();
    const read = call(() => (this.#watch as Watch<ObjectEvent<T>>).next());
    const outcome = await this.during(read);
    this.#readingSinceMs = undefined;
    return outcome;
  }

  /** Ends everything. Idempotent. */
  close(): void {
    this.#closed = true;
    for (const cancel of this.#timers) cancel();
    this.#timers.clear();
    this.#settle = undefined;
    const watch = this.#watch;
    this.#watch = undefined;
    if (watch) leave(watch);
    this.#abort.abort();
  }
}

/** Async, so that what a source or a store throws also becomes a rejection. */
export async function call<V>(code: () => V | Promise<V>): Promise<V> {
  return await code();
}

/** Ends a watch. Errors no longer matter. */
function leave(watch: Watch<unknown>): void {
  call(() => watch.return()).catch(() => {});
}
