/** The object by which candidates agree on who leads, and what they need from the place where it is kept. */
import { type KubernetesObject, keyOf, versionOf } from '../cache/object.ts';
import { requireMethod } from '../watch/errors.ts';

/** What a {@link Lease} says. Upstream: `coordination.k8s.io/v1` `LeaseSpec`. */
export interface LeaseSpec {
  /** Who leads. Empty, or absent: nobody. */
  readonly holderIdentity?: string | undefined;
  /** How long candidates wait after the last change that they have seen before they take the lease. */
  readonly leaseDurationSeconds?: number | undefined;
  /**
   * When its holder began to lead, and when it last wrote the lease. For people only: no program compares the times of two
   * clocks.
   */
  readonly acquireTime?: string | undefined;
  readonly renewTime?: string | undefined;
  /** Grows with each leadership. */
  readonly leaseTransitions?: number | undefined;
}

/** Who leads, and until when. Upstream: `coordination.k8s.io/v1` `Lease`. */
export interface Lease extends KubernetesObject {
  readonly spec?: LeaseSpec | undefined;
}

/** Options of a request. */
export interface LeaseRequest {
  readonly signal?: AbortSignal | undefined;
}

/**
 * Where leases are kept: the resource `leases.coordination.k8s.io/v1` of a `Cluster` or of an `ApiServer`, in one namespace. For
 * a `Storage`, use {@link toLeases}.
 */
export interface LeaseResource {
  /** Resolves with the newest state. If there is none, it resolves with undefined, or rejects with REFUSED and status 404. */
  get(name: string, options?: LeaseRequest): Promise<Lease | undefined>;
  /** Rejects with REFUSED and status 409 if there is one already. */
  create(lease: Lease, options?: LeaseRequest): Promise<Lease>;
  /** Writes if the version is still that of the lease; otherwise it rejects with REFUSED and status 409. */
  update(lease: Lease, options?: LeaseRequest): Promise<Lease>;
}

/** The part of a `Storage` that {@link toLeases} needs. */
export interface LeaseStorage {
  get(key: string, options?: LeaseRequest): Promise<KubernetesObject | undefined>;
  create(key: string, object: Lease, options?: LeaseRequest): Promise<KubernetesObject>;
  update(
    key: string,
    change: (current: Lease) => Lease,
    options?: LeaseRequest & { readonly resourceVersion?: string | undefined },
  ): Promise<KubernetesObject>;
}

/**
 * Returns the leases in a storage: in memory, or in etcd without a server in front of it.
 *
 *     new LeaderElector({ leases: toLeases(storage.scope('leases/')), name: 'orders' })
 *
 * @throws {WatchError} INVALID_ARGUMENT for anything but a storage.
 */
export function toLeases(storage: LeaseStorage): LeaseResource {
  requireMethod('storage', storage, 'update', 'a Storage');
  return {
    get: (name, options) => storage.get(name, options),
    create: (lease, options) => storage.create(keyOf(lease), lease, options),
    update: (lease, options) => storage.update(keyOf(lease), () => lease, { ...options, resourceVersion: versionOf(lease) }),
  };
}
