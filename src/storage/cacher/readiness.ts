/**
 * Whether a cache can be read. Each time it becomes ready, a new generation begins. Upstream: `ready` of the cacher.
 *
 *     pending --- ready() ---> ready     the state is that of the storage, and changes arrive
 *        ^<--- failed(error) ---'
 *        '------- stop() ------------> stopped, for ever
 */
import { WatchError } from '../../watch/errors.ts';
import { tooManyRequests } from '../statuses.ts';
import type { CacherStats } from '../storage.ts';

export type ReadinessPhase = CacherStats['phase'];

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
    // Not in the text, which may go to strangers: they need not know where the storage is. Upstream includes it.
    refusal.cause = this.error;
    throw refusal;
  }

  /** Whether waiting makes sense: it is becoming ready for the first time, and nothing has failed yet. */
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
 * When clients are to ask again: from 1 to 30 seconds, growing with the time that the cache has not been ready, and with jitter
 * up to twice that, so that clients that were refused together do not come back together. Upstream:
 * `calculateRetryAfterForUnreadyCache`, which has no jitter.
 */
export function retryAfterSeconds(downMs: number, random: () => number): number {
  const seconds = Math.min(30, Math.max(1, Math.floor(Math.exp((0.06 * downMs) / 1000))));
  return seconds + Math.floor(random() * (seconds + 1));
}
