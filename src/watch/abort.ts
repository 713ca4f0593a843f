import { callable, checkText, invalid } from './errors.ts';

/** The callbacks that wait for one signal, in the order in which they were added. */
class Callbacks extends Set<(reason: unknown) => void> {
  handleEvent({ target }: Event): void {
    const signal = target as AbortSignal;
    for (const callback of this) callback(signal.reason); // one that leaves in the meantime is not called
    this.clear();
    signal.removeEventListener('abort', this);
  }
}

const waiting: WeakMap<AbortSignal, Callbacks> = new WeakMap();

/**
 * Calls `callback` with the signal's reason when it aborts, or immediately if it already has. Returns a function that removes the
 * callback; call it when you are done, because signals may outlive their listeners. The callback must not throw.
 *
 * However many callbacks wait for a signal, it gets only one listener: Node 20 warns of a leak from the eleventh on.
 */
export function whenAborted(signal: AbortSignal | undefined, callback: (reason: unknown) => void): () => void {
  if (signal?.aborted) callback(signal.reason);
  if (!signal || signal.aborted) return () => {};
  const callbacks = waiting.get(signal) ?? new Callbacks();
  waiting.set(signal, callbacks);
  const own = (reason: unknown): void => callback(reason);
  callbacks.add(own);
  signal.addEventListener('abort', callbacks, { once: true }); // no effect if it is there
  return () => {
    if (callbacks.delete(own) && callbacks.size === 0) signal.removeEventListener('abort', callbacks);
  };
}

/** Settles like the promise, but rejects with the signal's reason as soon as the signal aborts. */
export function untilAborted<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  return new Promise((resolve, reject) => {
    const leave = whenAborted(signal, reject);
    promise.then(resolve, reject).then(leave, leave);
  });
}

/** A promise that is settled once, from outside. Nobody has to handle its rejection. */
export class Latch<T = void> {
  readonly promise: Promise<T>;
  /** Whether it has resolved. */
  isOpen: boolean = false;
  #resolve!: (value: T) => void;
  /** Has no effect once it is settled. */
  reject!: (error: unknown) => void;

  constructor() {
    this.promise = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.reject = reject;
    });
    this.promise.catch(() => {});
  }

  /** Has no effect once it is settled. */
  open(value: T): void {
    this.isOpen = true;
    this.#resolve(value);
  }
}

/** Whether a user's function answers later. An immediate answer is used in the same turn, so nothing can come in between. */
export function isPromise<T>(value: T | PromiseLike<T>): value is PromiseLike<T> & Promise<T> {
  return typeof (value as Partial<PromiseLike<T>> | null | undefined)?.then === 'function';
}

/** Returns what `name` has decided. Throws for a promise, which is truthy: an async filter would let everything through. */
export function verdictOf(name: string, said: unknown): boolean {
  return Boolean(notLater(name, said, 'a boolean'));
}

/** Returns what `name` has returned. Throws for a promise. */
export function notLater<T>(name: string, said: T, expected: string): T {
  if (!isPromise(said)) return said;
  ignoreRejection(said);
  throw invalid(name, said, `${expected}, not a promise`);
}

/** A function that an option gives, which decides at once; see {@link verdictOf}. Throws INVALID_ARGUMENT for anything else. */
export function deciding<T>(name: string, decide: ((one: T) => boolean) | undefined): ((one: T) => boolean) | undefined {
  return callable(name, decide) && ((one) => verdictOf(name, decide?.(one)));
}

/** Returns the text that `name` has given. Throws for anything else, such as a promise. */
export function textFrom(name: string, said: unknown): string {
  if (isPromise(said)) ignoreRejection(said);
  return checkText(name, said);
}

/** A rejection that nobody handles would end the process. */
function ignoreRejection(promise: PromiseLike<unknown>): void {
  promise.then(undefined, () => {});
}

/** Whether an error merely says that the work was told to end. */
export function isAbortOf(signal: AbortSignal, error: unknown): boolean {
  if (!signal.aborted) return false;
  const { name, cause } = (error ?? {}) as Partial<Error>;
  return error === signal.reason || cause === signal.reason || name === 'AbortError';
}

/** Work for which several callers wait. It is done once, and is aborted when nobody waits for it any more. */
export class SharedWork<T> {
  readonly #abort: AbortController = new AbortController();
  readonly #result: Promise<T>;
  #waiting: number = 0;
  #settled: boolean = false;

  constructor(work: (signal: AbortSignal) => Promise<T>) {
    this.#result = work(this.#abort.signal).finally(() => {
      this.#settled = true;
    });
    this.#result.catch(() => {}); // if all have left
  }

  /** Whether it is being done. */
  get pending(): boolean {
    return !this.#settled && !this.abandoned;
  }

  /** Whether everybody left before it was done: it cannot be joined any more. */
  get abandoned(): boolean {
    return this.#abort.signal.aborted;
  }

  /** Settles like the work, but rejects with the signal's reason as soon as the signal aborts. */
  async join(signal?: AbortSignal): Promise<T> {
    signal?.throwIfAborted();
    this.#waiting++;
    try {
      return await untilAborted(this.#result, signal);
    } finally {
      if (--this.#waiting === 0 && !this.#settled) this.#abort.abort(signal?.reason);
    }
  }
}
