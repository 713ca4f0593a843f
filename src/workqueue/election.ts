/**
 * Who leads, as one candidate sees it. Nothing here waits, sends requests or reads a clock: it gets the time and the answers, and
 * says what to do next.
 *
 *                   .------------------ wait, read again <----------------.
 *                   v                                                     | no
 *     candidate -- get --> nobody's, our own, or unchanged for its duration?
 *         ^                                 | yes
 *         |                               write, if it is still that version ---> 409: somebody was faster, read again
 *         |                                 v
 *         '-- leadsUntilMs is over ---- leader -- every retryMs: write
 *             somebody else's
 *
 * Why two never lead at once. A leader counts `renewDeadlineMs` from before it *sent* its last successful write. A candidate
 * counts the lease's duration from after it *received* that write's version, and takes the lease only if it still has that
 * version. The first span begins no later than the second and is shorter. So clocks need not agree on the time, and may run at
 * speeds that differ by less than the quotient of the two spans. How long requests take, and which of them are lost, does not
 * matter: a late write is refused, because the version has changed.
 *
 * Upstream: `tryAcquireOrRenew` of client-go, which counts both spans from after the answer.
 */
import { type KubernetesObject, keyOf, splitKey, versionOf } from '../cache/object.ts';
import { requireMethod } from '../watch/errors.ts';

export interface ElectionSettings {
  /** The lease's name, or `namespace/name`. */
  readonly name: string;
  readonly identity: string;
  readonly leaseDurationMs: number;
  readonly renewDeadlineMs: number;
  readonly retryMs: number;
  readonly random: () => number;
  /** The time of day. */
  readonly now: () => number;
}

/** What to do next. `takes`: the write begins a leadership, rather than prolonging one. */
export type ElectionStep =
  | { readonly do: 'get' }
  | { readonly do: 'create' | 'update'; readonly lease: Lease; readonly takes: boolean }
  | { readonly do: 'wait'; readonly untilMs: number };

/** The outcome of a step: a lease, or none; 409; or unknown. */
export type LeaseAnswer = { readonly lease: Lease | undefined } | 'conflict' | 'failed';

/** When a step was begun, and when it was answered. */
interface StepTimes {
  readonly sentMs: number;
  readonly nowMs: number;
}

/** How much longer than `retryMs` a candidate may wait, at random. Upstream: `JitterFactor`. */
export const JITTER = 1.2;
const LEADER_JITTER = 0.2;

export class Election {
  readonly #settings: ElectionSettings;
  /** The lease as last observed, and when it was first seen in this state. Upstream: `observedRecord`, `observedTime`. */
  #seen: { readonly lease: Lease | undefined; readonly sinceMs: number } | undefined;
  /** Whether it may have changed since. */
  #isStale: boolean = true;
  /** Whether a write without an answer may have made the lease ours. */
  #mayHold: boolean = false;
  #conflicts: number = 0;
  #nextMs: number = -Infinity;
  #leadsUntilMs: number = -Infinity;
  #writtenAt: number = -Infinity;

  constructor(settings: ElectionSettings) {
    this.#settings = settings;
  }

  /** Who holds the lease, as it was last seen; undefined for nobody. */
  get holder(): string | undefined {
    return holderOf(this.#seen?.lease);
  }

  /** The number of the leadership: each one has a greater number. */
  get term(): number {
    return transitionsOf(this.#seen?.lease) ?? 0;
  }

  /** We lead until this moment, exclusive. */
  get leadsUntilMs(): number {
    return this.#leadsUntilMs;
  }

  leads(nowMs: number): boolean {
    return nowMs < this.#leadsUntilMs;
  }

  /** We no longer lead, regardless of the answers to earlier requests. */
  lose(): void {
    this.#leadsUntilMs = -Infinity;
  }

  next(nowMs: number): ElectionStep {
    const untilMs = Math.min(this.#nextMs, this.#isStale ? Infinity : this.#expiryMs());
    if (nowMs < untilMs) return { do: 'wait', untilMs };
    if (this.#isStale || !this.#isFree(nowMs)) return { do: 'get' };
    const lease = this.#seen?.lease;
    const takes = !this.leads(nowMs);
    return { do: lease ? 'update' : 'create', lease: this.#ours(lease, takes), takes };
  }

  /** Returns the step that gives the lease back; undefined if it is not ours. Call it again after each answer. */
  resign(): Exclude<ElectionStep, { readonly do: 'wait' }> | undefined {
    this.lose();
    if (!this.#mayHold && this.holder !== this.#settings.identity) return undefined;
    const lease = this.#seen?.lease;
    if (this.#isStale || !lease) return { do: 'get' };
    const time = this.#time();
    const spec = { holderIdentity: '', leaseDurationSeconds: 1, acquireTime: time, renewTime: time };
    return { do: 'update', lease: { ...lease, spec: { ...lease.spec, ...spec } }, takes: false };
  }

  answered(step: ElectionStep, answer: LeaseAnswer, times: StepTimes): void {
    const isWrite = step.do === 'create' || step.do === 'update';
    if (answer === 'failed' && isWrite) this.#mayHold = true;
    if (typeof answer === 'string') this.#failed(answer, times.nowMs);
    else if (isWrite) this.#written(step, answer.lease, times);
    else this.#read(answer.lease, times.nowMs);
  }

  #failed(answer: 'conflict' | 'failed', nowMs: number): void {
    const leads = this.leads(nowMs);
    this.#conflicts = answer === 'conflict' ? this.#conflicts + 1 : 0;
    // A leader's failed write may be retried unchanged; if it did happen, the retry is a conflict.
    if (answer === 'conflict' || !leads) this.#isStale = true;
    // The first conflict may be with a write of our own whose answer was lost.
    if (leads && this.#conflicts === 1) this.#nextMs = nowMs;
    else this.#nextMs = nowMs + this.#pause(leads ? 0.5 : 1, leads ? 1 : JITTER);
  }

  #read(lease: Lease | undefined, nowMs: number): void {
    const { identity } = this.#settings;
    if (!this.#seen || !isSame(lease, this.#seen.lease)) this.#seen = { lease, sinceMs: nowMs };
    this.#isStale = false;
    if (this.holder !== identity) {
      this.#mayHold = false;
      this.lose();
    }
    this.#nextMs = this.#isFree(nowMs) ? nowMs : nowMs + this.#pause(1, JITTER);
  }

  #written(
    step: ElectionStep & { readonly lease: Lease; readonly takes: boolean },
    lease: Lease | undefined,
    times: StepTimes,
  ): void {
    const { sentMs, nowMs } = times;
    // A write that changes nothing is invisible to others.
    if (!lease || isSame(lease, step.lease)) {
      this.#failed('failed', nowMs);
      return;
    }
    this.#conflicts = 0;
    const { identity, renewDeadlineMs } = this.#settings;
    const isLate = !step.takes && !this.leads(nowMs);
    this.#read(lease, nowMs);
    // A leadership that was over stays over: the next write begins a new one.
    if (isLate) return;
    if (this.holder !== identity) {
      this.#nextMs = nowMs + this.#pause(1, JITTER);
      return;
    }
    this.#leadsUntilMs = sentMs + renewDeadlineMs;
    this.#nextMs = Math.max(nowMs, sentMs + this.#pause(1, LEADER_JITTER));
  }

  /** When the lease may be taken if it does not change. */
  #expiryMs(): number {
    const { identity, leaseDurationMs } = this.#settings;
    const { lease, sinceMs } = this.#seen ?? {};
    const holder = holderOf(lease);
    if (sinceMs === undefined || holder === undefined || holder === identity) return Infinity;
    const seconds = lease?.spec?.leaseDurationSeconds;
    return sinceMs + (isCount(seconds) && seconds > 0 ? seconds * 1_000 : leaseDurationMs);
  }

  #isFree(nowMs: number): boolean {
    const { holder } = this;
    return holder === undefined || holder === this.#settings.identity || nowMs >= this.#expiryMs();
  }

  /** The lease as it is when we hold it. Everything else in it is kept. */
  #ours(lease: Lease | undefined, takes: boolean): Lease {
    const { identity, leaseDurationMs, name: key } = this.#settings;
    const time = this.#time();
    const taken: LeaseSpec = { acquireTime: time, leaseTransitions: lease ? (transitionsOf(lease) ?? 0) + 1 : 0 };
    const spec: LeaseSpec = {
      ...lease?.spec,
      holderIdentity: identity,
      leaseDurationSeconds: Math.ceil(leaseDurationMs / 1_000),
      renewTime: time,
      ...(takes && taken),
    };
    const { namespace, name } = splitKey(key);
    const { metadata } = lease ?? { metadata: { name, ...(namespace && { namespace }) } };
    return { ...LEASE, ...lease, ...(metadata && { metadata }), spec };
  }

  /** The time in the format of a Lease, to the microsecond. No two are equal, or a write might change nothing. */
  #time(): string {
    this.#writtenAt = Math.max(this.#settings.now(), this.#writtenAt + 1);
    return new Date(this.#writtenAt).toISOString().replace('Z', '000Z');
  }

  #pause(factor: number, jitter: number): number {
    const { retryMs, random } = this.#settings;
    return retryMs * factor * (1 + jitter * random());
  }
}

const LEASE = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease' } as const;

/** Others may write leases, too: a holder that is not a name counts as nobody. */
function holderOf(lease: Lease | undefined): string | undefined {
  const holder: unknown = lease?.spec?.holderIdentity;
  return typeof holder === 'string' && holder !== '' ? holder : undefined;
}

function transitionsOf(lease: Lease | undefined): number | undefined {
  const transitions = lease?.spec?.leaseTransitions;
  return isCount(transitions) ? transitions : undefined;
}

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;

/** Whether nothing was written between two reads of a lease. */
function isSame(one: Lease | undefined, other: Lease | undefined): boolean {
  return (one === undefined) === (other === undefined) && versionOf(one) === versionOf(other);
}

/** The object by which candidates agree on a leader, and what they need from its storage. */

/** What a {@link Lease} says. Upstream: `coordination.k8s.io/v1` `LeaseSpec`. */
export interface LeaseSpec {
  /** Who leads. Empty, or absent: nobody. */
  readonly holderIdentity?: string | undefined;
  /** How long candidates wait after the last observed change before they take the lease. */
  readonly leaseDurationSeconds?: number | undefined;
  /**
   * When its holder began to lead, and when it last wrote the lease, with microseconds: `2026-01-02T03:04:05.000006Z`. For
   * people only: no program compares the times of two clocks.
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
