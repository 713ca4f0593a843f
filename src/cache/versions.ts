import { whenAborted } from '../watch/abort.ts';
import type { Clock } from '../watch/clock.ts';
import { checkOptions, invalid, WatchError, wholeNumber } from '../watch/errors.ts';

/** The largest version: 2^128 - 1. */
const LARGEST = '340282366920938463463374607431768211455';

/** Says which of two versions is newer: negative if `b` is, positive if `a` is, 0 if they are the same. */
export type VersionComparator = (a: string, b: string) => number;

/**
 * Compares two Kubernetes versions: decimal numbers from 0 to 2^128 - 1 without leading zeros. Returns -1, 0 or 1.
 *
 * Versions of other sources are opaque: provide a {@link VersionComparator}, or compare them only for equality.
 *
 * Upstream: `resourceversion.CompareResourceVersion`, which refuses 0.
 *
 * @throws {WatchError} INVALID_ARGUMENT for anything else, including the empty string.
 */
export function compareVersions(a: string, b: string): -1 | 0 | 1 {
  check(a);
  check(b);
  return compareDecimals(a, b);
}

/** The same for what is known to be a version. */
export function compareDecimals(a: string, b: string): -1 | 0 | 1 {
  if (a.length !== b.length) return a.length < b.length ? -1 : 1;
  return a === b ? 0 : a < b ? -1 : 1;
}

function check(version: string): void {
  if (typeof version !== 'string' || !/^(0|[1-9]\d{0,38})$/.test(version) || compareDecimals(version, LARGEST) > 0) {
    throw invalid('resourceVersion', version, 'a version of Kubernetes, a decimal number below 2^128');
  }
}

/** How long to wait for a version. */
export interface AtLeastOptions {
  /** Gives up when it aborts; then the promise rejects with its reason. */
  readonly signal?: AbortSignal | undefined;
  /** Gives up after this long; then the promise rejects with TIMEOUT. A whole number; default: no limit. */
  readonly timeoutMs?: number | undefined;
}

interface VersionWaiter {
  readonly version: string;
  settle(failure?: { readonly error: unknown }): void;
}

/**
 * The calls that wait until a cache has reached a version. Invariant: those in `waiting` wait for a version that is not reached.
 */
export class Versions {
  readonly #clock: Clock;
  readonly #compare: VersionComparator;
  readonly #waiting: Set<VersionWaiter> = new Set();
  #current: string = '';
  #ended: { readonly error: unknown } | undefined;

  constructor(clock: Clock, compare: VersionComparator) {
    this.#clock = clock;
    this.#compare = compare;
  }

  /** Resolves when `version` is reached. */
  wait(version: string, options: AtLeastOptions): Promise<void> {
    return new Promise((resolve, reject) => {
      const { signal, timeoutMs } = checkOptions(options, ['signal', 'timeoutMs']);
      this.#compare(version, version); // refuses an invalid version
      if (timeoutMs !== undefined) wholeNumber('timeoutMs', timeoutMs);
      if (this.#ended) throw this.#ended.error;
      signal?.throwIfAborted();
      let cancel: (() => void) | undefined;
      let leave = (): void => {};
      const settle: VersionWaiter['settle'] = (failure) => {
        this.#waiting.delete(waiter);
        leave();
        cancel?.();
        if (failure) reject(failure.error);
        else resolve();
      };
      const waiter = { version, settle };
      if (this.#look(waiter)) return;
      this.#waiting.add(waiter);
      leave = whenAborted(signal, (error) => settle({ error }));
      if (timeoutMs === undefined) return;
      cancel = this.#clock.schedule(timeoutMs, () =>
        settle({
          error: new WatchError('TIMEOUT', `version ${version} was not reached in ${timeoutMs} ms`, { limit: timeoutMs }),
        }),
      );
    });
  }

  reach(version: string): void {
    this.#current = version;
    for (const waiter of this.#waiting) this.#look(waiter);
  }

  /** Nothing more will come. */
  end(error: unknown): void {
    this.#ended = { error };
    for (const { settle } of this.#waiting) settle({ error });
  }

  /**
   * Settles a waiter whose version has been reached, or cannot be compared. The other waiters and the cache are not affected.
   */
  #look({ version, settle }: VersionWaiter): boolean {
    try {
      if (this.#current === '' || this.#compare(this.#current, version) < 0) return false;
      settle();
    } catch (error) {
      settle({ error });
    }
    return true;
  }
}
