/**
 * Where versions go on when a storage is opened again. A file may have been restored from a copy, and what was written after the
 * copy was made, or before it was restored, is another life of it: the same numbers would stand for other changes there, and a
 * client that comes with one of them would keep what this life has never had. So each life begins with a jump:
 *
 *     copied at 7         1 ... 7 | 5,000 5,001 5,002            one life
 *     restored            1 ... 7 |                   9,000 9,001        another one
 *
 * Of a version in a gap, or beyond the newest one, a storage knows that it is not its own, and answers 410. What lies before the
 * jump is common to both, and can be resumed from.
 *
 * A jump must be one that no copy makes again. It goes to the time of day in microseconds: fewer than a million writes per second
 * never catch up with it, so lives that begin one after the other do not meet. Lives that begin together, or on machines with
 * different clocks, are kept apart by chance: a number below 2^32, about 72 minutes. Of two such lives with a million writes each, one
 * pair in two thousand would meet.
 *
 * The price: versions have 16 digits. They stay below 2^53, which JavaScript counts exactly, for 3 million openings or until the year
 * 2112; and so below 2^63, beyond which clients in Go cannot read them.
 */

import { whenAborted } from '../watch/abort.ts';
import { type Clock, sleep } from '../watch/clock.ts';
import { WatchError } from '../watch/errors.ts';

/** How far chance may go. */
const SPREAD = 2 ** 32;
/** A clock that is later than this, in the year 2112, is wrong. */
const LATEST = 2 ** 52;

/** The first version of another life of a storage whose last one is `last`. `random`: from 0 up to, not including, 1. */
export function newLife(last: number, nowMs: number = Date.now(), random: number = Math.random()): number {
  const clock = Math.floor(nowMs * 1_000);
  const from = clock > last && clock < LATEST ? clock : last + 1;
  // Where few versions are left, none is wasted.
  const spread = Math.min(SPREAD, Math.floor((Number.MAX_SAFE_INTEGER - from) / 2));
  return from + Math.floor(random * spread);
}

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

  /** Waits so long, unless the signal aborts or this is closed before. */
  async pause(ms: number, { clock, signal }: { clock: Clock; signal: AbortSignal | undefined }): Promise<void> {
    const over = new AbortController();
    try {
      await this.until(sleep(ms, { clock, signal: over.signal }), signal);
    } finally {
      over.abort();
    }
  }

  close(): void {
    this.#closed = true;
    for (const reject of this.#rejects) reject(closed());
  }
}

function closed(): WatchError {
  return new WatchError('CLOSED', 'the storage is closed');
}
