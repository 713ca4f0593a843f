import { untilAborted } from './abort.ts';

/** Work that several wait for. It is done once, and is aborted when nobody waits for it any more. */
export class Shared<T> {
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

  /** Whether everybody has left before it was done: it cannot be joined any more. */
  get abandoned(): boolean {
    return this.#abort.signal.aborted;
  }

  /** Settles like the work, but rejects with the signal's reason as soon as the signal aborts. */
  async join(signal?: AbortSignal): Promise<T> {
    signal?.throwIfAborted();
    this.#waiting++;
    try {
      return await (signal === undefined ? this.#result : untilAborted(this.#result, signal));
    } finally {
      if (--this.#waiting === 0 && !this.#settled) this.#abort.abort(signal?.reason);
    }
  }
}
