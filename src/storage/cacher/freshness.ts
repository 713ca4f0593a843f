/**
 * Waits until the cache has reached a version. Meanwhile, the storage is asked for its progress, immediately and then repeatedly:
 * the version may be that of a write to other keys, of which no event tells this cache.
 *
 * A client's version may never come: it may be from another life of the storage, before it was restored from a copy. So the
 * storage is asked whether it can have issued this version; if not, the client gets 410, and lists again. Many clients share a
 * question, but only one that is asked after they came: an earlier answer may be older than their version.
 *
 * Upstream: `waitUntilFreshAndBlock`, `conditionalProgressRequester`.
 */
import type { VersionComparator } from '../../cache/versions.ts';
import { whenAborted } from '../../watch/abort.ts';
import type { Clock } from '../../watch/clock.ts';
import { WatchError } from '../../watch/errors.ts';
import { foreign, tooLarge, tooManyRequests } from '../statuses.ts';
import type { CacherStats } from '../storage.ts';

/** What it needs from the cacher. */
interface FreshnessHost {
  readonly clock: Clock;
  readonly compareVersions: VersionComparator;
  readonly freshnessTimeoutMs: number;
  readonly progressMs: number;
  /** The version that the cache has now. */
  version(): string;
  requestProgress(): Promise<void>;
  /** The newest version of the storage. */
  currentVersion(): Promise<string>;
  /** Whether the storage can have issued a version. Absent: every version up to the newest is taken for its own. */
  readonly hasGiven?: ((version: string) => Promise<boolean>) | undefined;
}

interface Waiter {
  readonly version: string;
  done(error?: unknown): void;
}

export class Freshness {
  readonly #host: FreshnessHost;
  readonly #waiters: Set<Waiter> = new Set();
  /** Waiters whose version the storage may not have issued, about which it will be asked. */
  #doubtful: Set<Waiter> = new Set();
  #isAsking: boolean = false;
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

  /** Waits for a client's version. Rejects as `wait` does, and with 410 if the storage cannot have issued it. */
  async reach(version: string, signal?: AbortSignal): Promise<void> {
    const { hasGiven } = this.#host;
    if (hasGiven && !(await hasGiven(version))) throw foreign(version, this.#host.version());
    await this.wait(version, signal, { isDoubtful: !hasGiven });
  }

  /** Waits for a version of the storage. Rejects with 504 after the allowed time, or with the signal's reason if it aborts. */
  wait(version: string, signal?: AbortSignal, { isDoubtful = false }: { readonly isDoubtful?: boolean } = {}): Promise<void> {
    if (signal?.aborted) return Promise.reject(signal.reason);
    if (this.#closed) return Promise.reject(closed());
    if (this.has(version)) return Promise.resolve();
    const { clock, freshnessTimeoutMs } = this.#host;
    return new Promise((resolve, reject) => {
      const done = (error?: unknown): void => {
        this.#waiters.delete(waiter);
        this.#doubtful.delete(waiter);
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
      if (isDoubtful) this.#doubtful.add(waiter);
      if (this.#waiters.size === 1) this.#askForProgress();
      if (isDoubtful && !this.#isAsking) void this.#askForVersion();
    });
  }

  /** Refuses waiters whose version is beyond the storage's. If the storage does not answer, they time out. */
  async #askForVersion(): Promise<void> {
    this.#isAsking = true;
    while (this.#doubtful.size > 0) {
      const asked = this.#doubtful;
      this.#doubtful = new Set();
      const current = await this.#host.currentVersion().catch(() => undefined);
      if (current === undefined) continue;
      for (const waiter of asked) {
        const isBeyond = this.#waiters.has(waiter) && this.#host.compareVersions(waiter.version, current) > 0;
        if (isBeyond) waiter.done(foreign(waiter.version, current));
      }
    }
    this.#isAsking = false;
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

type ReadinessPhase = CacherStats['phase'];

/**
 * Whether a cache can be read. Each time it becomes ready, a new generation begins. Upstream: `ready` of the cacher.
 *
 *     pending --- ready() ---> ready     the state is that of the storage, and changes arrive
 *        ^<--- failed(error) ---'
 *        '------- stop() ------------> stopped, forever
 */
export class Readiness {
  phase: ReadinessPhase = 'pending';
  generation: number = 0;
  /** When the phase last changed. */
  sinceMs: number;
  /** Why it is not ready, if that is known. Undefined during the first attempt. */
  error: unknown;
  readonly #now: () => number;
  readonly #random: () => number;
  #waiters: Set<() => void> = new Set();

  constructor({ now, random }: { readonly now: () => number; readonly random: () => number }) {
    this.#now = now;
    this.#random = random;
    this.sinceMs = now();
  }

  ready(): void {
    this.error = undefined;
    if (this.phase !== 'pending') return;
    this.generation++;
    this.#turn('ready');
  }

  failed(error: unknown): void {
    if (this.phase === 'stopped') return;
    this.error = error;
    if (this.phase === 'ready') this.#turn('pending');
    else this.#wake();
  }

  stop(): void {
    if (this.phase !== 'stopped') this.#turn('stopped');
  }

  /** Throws unless it is ready: CLOSED if it has stopped, 429 if it is not ready yet, or no longer ready. */
  check(): void {
    if (this.phase === 'ready') return;
    if (this.phase === 'stopped') throw new WatchError('CLOSED', 'the cacher is closed');
    const refusal = tooManyRequests('storage is (re)initializing', retryAfterSeconds(this.#now() - this.sinceMs, this.#random));
    // Not in the message, which may reach strangers: they need not know where the storage is. Upstream includes it.
    refusal.cause = this.error;
    throw refusal;
  }

  /** Whether it makes sense to wait: it is becoming ready for the first time, and nothing has failed yet. */
  get isStarting(): boolean {
    return this.phase === 'pending' && this.error === undefined;
  }

  /** Calls back once, at the next change of the phase or the error. Returns a function that cancels that. */
  onChange(callback: () => void): () => void {
    this.#waiters.add(callback);
    return () => void this.#waiters.delete(callback);
  }

  #turn(phase: ReadinessPhase): void {
    this.phase = phase;
    this.sinceMs = this.#now();
    this.#wake();
  }

  #wake(): void {
    const waiters = this.#waiters;
    this.#waiters = new Set();
    for (const wake of waiters) wake();
  }
}

/**
 * When clients should retry: after 1 to 30 seconds, growing with the time that the cache has not been ready, and with jitter up
 * to twice that, so that clients that were refused together do not come back together. Upstream:
 * `calculateRetryAfterForUnreadyCache`, which has no jitter.
 */
export function retryAfterSeconds(downMs: number, random: () => number): number {
  const seconds = Math.min(30, Math.max(1, Math.floor(Math.exp((0.06 * downMs) / 1000))));
  return seconds + Math.floor(random() * (seconds + 1));
}
