import { whenAborted } from '../watch/abort.ts';
import { WatchError } from '../watch/errors.ts';

/** Waits for what may never come: the wait ends with the storage, and by its signal. */
export class Pending {
  readonly #rejects: Set<(error: unknown) => void> = new Set();
  #closed: boolean = false;

  /** Number of promises that wait. */
  get size(): number {
    return this.#rejects.size;
  }

  get isClosed(): boolean {
    return this.#closed;
  }

  /** @throws {WatchError} CLOSED after `close`; the signal's reason if it has aborted. */
  check(signal: AbortSignal | undefined): void {
    signal?.throwIfAborted();
    if (this.#closed) throw closed();
  }

  /** Settles as `promise` does, unless the signal aborts or this is closed before. */
  until<R>(promise: PromiseLike<R>, signal: AbortSignal | undefined): Promise<R> {
    return new Promise<R>((resolve, reject) => {
      let unlisten: (() => void) | undefined;
      const leave = (): void => {
        this.#rejects.delete(fail);
        unlisten?.();
      };
      const fail = (error: unknown): void => {
        leave();
        reject(error);
      };
      this.#rejects.add(fail);
      promise.then((value) => {
        leave();
        resolve(value);
      }, fail);
      // The code that made the promise may have aborted or closed meanwhile.
      unlisten = whenAborted(signal, fail);
      if (this.#closed) fail(closed());
    });
  }

  close(): void {
    this.#closed = true;
    for (const reject of this.#rejects) reject(closed());
  }
}

function closed(): WatchError {
  return new WatchError('CLOSED', 'the storage is closed');
}
