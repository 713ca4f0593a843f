/**
 * Where versions continue when a storage is opened again. A file may have been restored from a copy. What was written between
 * copy and restore belongs to another life of the file: there, the same numbers stand for other changes, and a client with one of
 * them would keep objects that this life has never had. So each life begins with a jump:
 *
 *     copied at 7         1 ... 7 | 5,000 5,001 5,002            one life
 *     restored            1 ... 7 |                   9,000 9,001        another one
 *
 * A version in a gap, or beyond the newest one, is known not to be the storage's own, and gets 410. Versions before the jump are
 * common to both lives, and can be resumed from.
 *
 * No other copy may make the same jump. It goes to the time of day in microseconds, which fewer than a million writes per second
 * never catch up with, so lives that begin one after the other do not overlap. Lives that begin together, or on machines with
 * different clocks, are kept apart by a random number below 2^32, about 72 minutes. Of two such lives with a million writes each,
 * one pair in two thousand would overlap.
 *
 * The price: versions have 16 digits. They stay below 2^53, which JavaScript counts exactly, for 3 million openings or until the year
 * 2112; and so below 2^63, beyond which clients in Go cannot read them.
 */

import { whenAborted } from '../watch/abort.ts';
import { type Clock, sleep } from '../watch/clock.ts';
import { WatchError } from '../watch/errors.ts';

/** The range of the random number. */
const SPREAD = 2 ** 32;
/** A clock beyond this, in the year 2112, is wrong. */
const LATEST = 2 ** 52;

/** The first version of a new life of a storage whose last version is `last`. `random`: from 0 to below 1. */
export function newLife(last: number, nowMs: number = Date.now(), random: number = Math.random()): number {
  const clock = Math.floor(nowMs * 1_000);
  const from = clock > last && clock < LATEST ? clock : last + 1;
  // If few versions are left, none is wasted.
  const spread = Math.min(SPREAD, Math.floor((Number.MAX_SAFE_INTEGER - from) / 2));
  return from + Math.floor(random * spread);
}

/** Waits for promises that may never settle: the wait ends with the storage, or by its signal. */
export class Pending {
  readonly #rejects: Set<(error: unknown) => void> = new Set();
  #closed: boolean = false;

  /** The number of pending waits. */
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

  /** Settles as `promise` does, unless the signal aborts or this is closed first. */
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
      // The code that made the promise may have aborted or closed in the meantime.
      unlisten = whenAborted(signal, fail);
      if (this.#closed) fail(closed());
    });
  }

  /** Waits this long, unless the signal aborts or this is closed first. */
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
