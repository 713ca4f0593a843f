/**
 * Whether a server can do its work, and whether clients should be sent to it.
 *
 *     /livez     the process answers, and nothing has failed that only a restart can mend
 *     /healthz   everything that must exist does, the storage answers, and every cache follows it
 *     /readyz    the same, and the server is not shutting down
 *
 * The storage is asked when a client asks, and at most once per second: for its version, which requires the agreement of all its
 * parts, and then whether it can still be written to. A cache alone would not do: it goes on for a while after its storage has
 * gone, and knows nothing about writes.
 */

import type { CacherStats, Storage } from '../storage/storage.ts';
import type { Clock } from '../watch/clock.ts';
import { isWatchError, WatchError } from '../watch/errors.ts';
import { Deadline, Deadlines } from './http/deadline.ts';

/** One check of a server's health. */
export interface HealthCheck {
  /** `start`, `storage`, `shutdown`, or `cache/` and the resource. */
  readonly name: string;
  readonly ok: boolean;
  /** Why it is not ok. For the server's operator; clients do not see it. */
  readonly error?: unknown;
}

/** The health of a server: its checks. */
export interface Health {
  /** Whether clients should be sent to this server: all checks are ok. */
  readonly ready: boolean;
  readonly checks: readonly HealthCheck[];
}

/** The result of the last health check. */
export interface KnownHealth {
  readonly ready: boolean;
  readonly storage: boolean;
  /** How long the storage took to answer, or to fail. */
  readonly storageMs: number;
}

interface HealthDeps {
  readonly storage: Pick<Storage, 'currentVersion' | 'checkHealth'>;
  readonly clock: Clock;
  /** The caches in use, by resource. */
  readonly caches: () => Iterable<readonly [string, Pick<CacherStats, 'phase' | 'error'>]>;
  /** Aborts when nothing is checked any more. */
  readonly closing: AbortSignal;
}

/** How long the storage may take to answer. */
const ANSWER_MS = 2_000;
/** How long its answer remains valid. */
const FRESH_MS = 1_000;

const SHUTTING_DOWN = new WatchError('CLOSED', 'the server is shutting down');

export class HealthChecks {
  /** The start has not finished, or has failed with an error. */
  start: HealthCheck = { name: 'start', ok: false };
  isLeaving: boolean = false;
  /** Undefined until somebody asks. */
  known: KnownHealth | undefined = undefined;
  /** Whether the last check found that the storage has failed in a way that only a restart mends. */
  isBroken: boolean = false;
  private readonly deps: HealthDeps;
  private readonly untilClosing: Deadlines;
  private last: { readonly atMs: number; readonly check: HealthCheck } | undefined = undefined;
  private asking: Promise<HealthCheck> | undefined = undefined;
  private tookMs: number = 0;

  constructor(deps: HealthDeps) {
    this.deps = deps;
    this.untilClosing = new Deadlines(deps.closing);
  }

  async now(): Promise<Health> {
    const storage = await this.storage();
    const caches = Array.from(this.deps.caches(), ([name, { phase, error }]): HealthCheck => {
      return { name: `cache/${name}`, ok: phase === 'ready', ...(error !== undefined && { error }) };
    });
    const shutdown: HealthCheck = { name: 'shutdown', ok: !this.isLeaving, ...(this.isLeaving && { error: SHUTTING_DOWN }) };
    const checks = [this.start, storage, ...caches, shutdown];
    const ready = checks.every(({ ok }) => ok);
    this.known = { ready, storage: storage.ok, storageMs: this.tookMs };
    return { ready, checks };
  }

  private storage(): HealthCheck | Promise<HealthCheck> {
    const { last, deps } = this;
    if (last !== undefined && deps.clock.now() - last.atMs < FRESH_MS) return last.check;
    if (this.asking !== undefined) return this.asking;
    const begunMs = deps.clock.now();
    this.asking = this.ask().then((check) => {
      const atMs = deps.clock.now();
      this.asking = undefined;
      this.tookMs = atMs - begunMs;
      this.last = { atMs, check };
      return check;
    });
    return this.asking;
  }

  private async checked(health: Promise<void>): Promise<void> {
    try {
      await health;
    } catch (error) {
      if (isWatchError(error, 'CLOSED') && !this.deps.closing.aborted) this.isBroken = true;
      throw error;
    }
  }

  private async ask(): Promise<HealthCheck> {
    const { clock, storage } = this.deps;
    const late = (): unknown => new WatchError('TIMEOUT', `the storage has not answered within ${ANSWER_MS} ms`);
    const deadline = new Deadline(ANSWER_MS, { clock, late });
    this.untilClosing.add(deadline);
    try {
      await deadline.during(storage.currentVersion({ signal: deadline.signal }));
      if (storage.checkHealth) await deadline.during(this.checked(storage.checkHealth()));
      return { name: 'storage', ok: true };
    } catch (error) {
      return { name: 'storage', ok: false, error };
    } finally {
      this.untilClosing.delete(deadline);
      deadline.done();
    }
  }
}

/** Checks in Kubernetes' text format. */
export function healthText(path: string, checks: readonly HealthCheck[]): string {
  const lines = checks.map(({ name, ok }) => (ok ? `[+]${name} ok` : `[-]${name} failed: reason withheld`));
  const passed = checks.every(({ ok }) => ok);
  return `${[...lines, `${path} check ${passed ? 'passed' : 'failed'}`].join('\n')}\n`;
}
