/**
 * Waits until the cache has reached a version. Meanwhile the storage is asked for its progress, at once and then repeatedly: the
 * version may be that of a write elsewhere, which no event would ever show here.
 *
 * Upstream: `waitUntilFreshAndBlock`, `conditionalProgressRequester`.
 */
import type { VersionComparator } from '../../cache/version.ts';
import { whenAborted } from '../../watch/abort.ts';
import type { Clock } from '../../watch/clock.ts';
import { isWatchError, WatchError } from '../../watch/errors.ts';
import { tooLarge } from '../statuses.ts';

/** What it needs from the cacher. */
export interface FreshnessHost {
  readonly clock: Clock;
  readonly compareVersions: VersionComparator;
  readonly freshnessTimeoutMs: number;
  readonly progressMs: number;
  /** The version that the cache has now. */
  version(): string;
  requestProgress(): Promise<void>;
}

interface Waiter {
  readonly version: string;
  done(error?: unknown): void;
}

export class Freshness {
  readonly #host: FreshnessHost;
  readonly #waiters: Set<Waiter> = new Set();
  #cancelProgress: (() => void) | undefined;
  #closed: boolean = false;

  constructor(host: FreshnessHost) {
    this.#host = host;
  }

  get waiting(): number {
    return this.#waiters.size;
  }

  /** Whether the cache has reached a version. */
  has(version: string): boolean {
    return this.#host.compareVersions(this.#host.version(), version) >= 0;
  }

  /** Rejects with 504 after the allowed time, or with the signal's reason if it aborts. */
  wait(version: string, signal?: AbortSignal): Promise<void> {
    if (signal?.aborted) return Promise.reject(signal.reason);
    if (this.#closed) return Promise.reject(closed());
    if (this.has(version)) return Promise.resolve();
    const { clock, freshnessTimeoutMs } = this.#host;
    return new Promise((resolve, reject) => {
      const done = (error?: unknown): void => {
        this.#waiters.delete(waiter);
        cancel();
        leave();
        if (this.#waiters.size === 0) this.#cancelProgress?.();
        if (error === undefined) resolve();
        else reject(error);
      };
      const waiter: Waiter = { version, done };
      const cancel = clock.schedule(freshnessTimeoutMs, () => done(tooLarge(version, this.#host.version())));
      const leave = whenAborted(signal, (reason) => done(reason ?? closed()));
      this.#waiters.add(waiter);
      if (this.#waiters.size === 1) this.#askForProgress();
    });
  }

  /** Called when the version has moved. */
  moved(): void {
    for (const waiter of this.#waiters) if (this.has(waiter.version)) waiter.done();
  }

  close(): void {
    this.#closed = true;
    for (const waiter of this.#waiters) waiter.done(closed());
  }

  #askForProgress(): void {
    const { clock, progressMs } = this.#host;
    this.#cancelProgress?.();
    const cancel = clock.schedule(progressMs, () => this.#askForProgress());
    this.#cancelProgress = () => {
      cancel();
      this.#cancelProgress = undefined;
    };
    // If it fails, the waiting reads time out.
    new Promise((resolve) => resolve(this.#host.requestProgress())).catch(() => {});
  }
}

function closed(): WatchError {
  return new WatchError('CLOSED', 'the cacher is closed');
}

/** Whether the error says that the version did not come in time. Any other error is thrown. */
export function isLate(error: unknown): boolean {
  if (isWatchError(error, 'REFUSED') && error.status?.code === 504) return true;
  throw error;
}
