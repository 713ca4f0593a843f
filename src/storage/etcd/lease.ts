/**
 * Leases, shared by objects that expire at about the same time: etcd can have far more keys than leases. An object may join the
 * last lease of its time to live for a twentieth of that time, a minute at most; leases are longer by as much, so nothing expires
 * early. Below twenty seconds, each object has a separate lease.
 *
 * Upstream: `leaseManager` of storage/etcd3, which has the same limits.
 */
import type { Clock } from '../../watch/clock.ts';

const REUSE_SHARE = 0.05;
const MAX_REUSE_SECONDS = 60;
/** The number of different times to live that are remembered. */
const MAX_KINDS = 1_000;

interface Shared {
  readonly id: Promise<bigint>;
  readonly untilMs: number;
  objects: number;
}

/** Settings of {@link Leases}. */
export interface LeaseSettings {
  readonly clock: Clock;
  readonly maxLeaseObjects: number;
  /** Grants a lease of this many seconds. */
  readonly grant: (ttlSeconds: number) => Promise<bigint>;
}

export class Leases {
  readonly #settings: LeaseSettings;
  readonly #shared: Map<number, Shared> = new Map();

  constructor(settings: LeaseSettings) {
    this.#settings = settings;
  }

  /** Resolves with the lease for an object that expires after this many seconds; 0 for never. */
  of(ttlSeconds: number): Promise<bigint> {
    if (ttlSeconds === 0) return Promise.resolve(0n);
    const { clock, maxLeaseObjects } = this.#settings;
    const shared = this.#shared.get(ttlSeconds);
    if (shared && shared.untilMs > clock.now() && shared.objects < maxLeaseObjects) {
      shared.objects++;
      return shared.id;
    }
    return this.#grant(ttlSeconds);
  }

  /** Drops a lease that etcd does not know: it has expired, or etcd has lost its data. */
  forget(ttlSeconds: number): void {
    this.#shared.delete(ttlSeconds);
  }

  #grant(ttlSeconds: number): Promise<bigint> {
    const { clock, grant } = this.#settings;
    const reuseSeconds = Math.min(Math.floor(ttlSeconds * REUSE_SHARE), MAX_REUSE_SECONDS);
    const id = grant(ttlSeconds + reuseSeconds);
    this.#shared.delete(ttlSeconds);
    if (reuseSeconds === 0) return id;
    for (const [other, { untilMs }] of this.#shared) if (untilMs <= clock.now()) this.#shared.delete(other);
    const [oldest] = this.#shared.keys();
    if (this.#shared.size >= MAX_KINDS) this.#shared.delete(oldest as number);
    const shared: Shared = { id, untilMs: clock.now() + reuseSeconds * 1_000, objects: 1 };
    this.#shared.set(ttlSeconds, shared);
    id.catch(() => {
      if (this.#shared.get(ttlSeconds) === shared) this.#shared.delete(ttlSeconds);
    });
    return id;
  }
}
