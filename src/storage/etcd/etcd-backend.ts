/**
 * Etcd as a backend: its transactions, leases and watches behind the port. What these share is here: the members, the errors of
 * calls, and objects that need not be decoded twice.
 *
 *     get, range ---> Range                     from the state of one member, if any state will do
 *     txn ----------> LeaseGrant, Txn           compare the key's revision, then put or delete
 *     changesAfter -> EtcdChanges ---> Watch    etcd-changes.ts
 */
import type { KubernetesObject } from '../../cache/object.ts';
import type { Clock } from '../../watch/clock.ts';
import { isWatchError, WatchError } from '../../watch/errors.ts';
import type {
  Backend,
  Changes,
  ChangesOptions,
  GetResult,
  RangeRequest,
  RangeResult,
  ReadOptions,
  RequestOptions,
  Txn,
  TxnResult,
} from '../backend.ts';
import { after, behind, toBytes } from '../keys.ts';
import { Pending } from '../life.ts';
import { expired, foreign, tooLarge, unavailable } from '../statuses.ts';
import {
  type CallContext,
  type EtcdCalls,
  EtcdChanges,
  EtcdEntry,
  type EtcdLife,
  newestOf,
  RecentObjects,
} from './etcd-changes.ts';
import type { Settings } from './options.ts';
import { type Failure, isCompacted, isFuture, toError } from './wire/call-stream.ts';
import { Channel, LEASE_GRANT, RANGE, STATUS, TXN } from './wire/channel.ts';
import {
  type RangeRequest as EtcdRange,
  type Header,
  type RangeResponse,
  readFaults,
  readLease,
  readRange,
  readWrite,
  type WriteResponse,
  writeGuarded,
  writeLeaseGrant,
  writeRange,
} from './wire/messages.ts';

/** The largest revision: etcd counts in signed 64-bit numbers. A larger one would be another revision there, or invalid. */
const MAX_REVISION = 2n ** 63n - 1n;

export class EtcdBackend implements Backend, EtcdCalls {
  readonly settings: Settings;
  readonly channel: Channel;
  /** Objects for changes; empty while nobody follows them. */
  readonly recent: RecentObjects = new RecentObjects();
  readonly #followers: Set<object> = new Set();
  readonly #pending: Pending = new Pending();
  readonly #leases: Leases;

  constructor(settings: Settings) {
    this.settings = settings;
    this.channel = new Channel(settings);
    const { clock, maxLeaseObjects } = settings;
    this.#leases = new Leases({ clock, maxLeaseObjects, grant: (ttlSeconds) => this.#grant(ttlSeconds) });
  }

  async get<T extends KubernetesObject>(
    key: string,
    { anyState, what = `get ${key}`, signal }: ReadOptions = {},
  ): Promise<GetResult<T>> {
    const request = { key: toBytes(key), serializable: anyState };
    const { kvs, header } = await this.#range(request, { what, signal });
    return { entry: kvs[0] && new EtcdEntry<T>(kvs[0]), revision: `${header.revision}` };
  }

  async range<T extends KubernetesObject>(request: RangeRequest): Promise<RangeResult<T>> {
    const { prefix, from = prefix, after: last, limit, revision = '0', keysOnly, anyState, signal } = request;
    const context = { what: request.what ?? `list ${prefix}`, signal };
    const asked = BigInt(revision);
    if (asked > MAX_REVISION) throw await this.#tooLarge(revision, context);
    const key = last ? after(last instanceof EtcdEntry ? last.kv.key : toBytes(last.key)) : toBytes(from);
    const part = { key, end: behind(toBytes(prefix)), limit, revision: asked, keysOnly, serializable: anyState };
    const { kvs, header, more, count } = await this.#part(part, context);
    const newest = newestOf(kvs, last instanceof EtcdEntry ? last.newest : undefined);
    const life: EtcdLife = { header, newest };
    return {
      entries: kvs.map((kv, at) => new EtcdEntry<T>(kv, at === kvs.length - 1 ? newest : undefined)),
      revision: asked === 0n ? `${header.revision}` : revision,
      left: more ? Math.max(count - kvs.length, 1) : 0,
      bytes: kvs.reduce((sum, { value }) => sum + value.length, 0),
      life,
    };
  }

  async txn<T extends KubernetesObject>(txn: Txn<T>): Promise<TxnResult<T>> {
    const { key, expected, put, ttlSeconds = 0, what = `${put ? 'put' : 'delete'} ${key}`, signal } = txn;
    const write = { key: toBytes(key), expected: BigInt(expected), value: put?.value, ttlSeconds };
    const written = await this.#write(write, { what, signal });
    if (!written.succeeded) {
      return { succeeded: false, current: written.current && new EtcdEntry<T>(written.current) };
    }
    const { revision } = written.header;
    const object = put?.at(`${revision}`);
    // A watch may deliver it soon.
    if (object && this.#followers.size > 0) this.recent.add(revision, object);
    return { succeeded: true, revision: `${revision}`, object };
  }

  changesAfter<T extends KubernetesObject>(revision: string, options: ChangesOptions): Changes<T> {
    const changes = new EtcdChanges<T>(this, revision, options);
    this.#followers.add(changes);
    return changes;
  }

  /** Nobody reads these changes any more. */
  left(changes: object): void {
    this.#followers.delete(changes);
    if (this.#followers.size === 0) this.recent.clear();
  }

  async revision({ what = 'read the revision', signal }: RequestOptions = {}): Promise<string> {
    return `${(await this.head({ what, signal })).revision}`;
  }

  /** Rejects if an alarm stops all writes: etcd is full (NOSPACE), or damaged (CORRUPT). Every member knows the alarms. */
  async checkHealth(): Promise<void> {
    const what = 'read the alarms';
    this.check(undefined);
    const outcome = await this.channel.ask(STATUS, new Uint8Array(0));
    this.check(undefined);
    if (!('answer' in outcome)) throw toError(outcome.failure, { what });
    const [, alarm] = /\balarm:\s*(\w+)/.exec(this.read(outcome.answer, readFaults, what).join(' ')) ?? [];
    if (alarm !== undefined) throw unavailable(`etcd takes no writes: its alarm ${alarm} is set`);
  }

  async close(): Promise<void> {
    this.#pending.close();
    this.channel.close();
  }

  /** Throws CLOSED once this is closed, and the reason of a signal that has aborted. */
  check(signal: AbortSignal | undefined): void {
    this.#pending.check(signal);
  }

  /** What etcd as a whole currently agrees on: its newest revision and its term. */
  async head(context: CallContext): Promise<Header> {
    return (await this.#range({ key: toBytes(this.settings.root), countOnly: true }, context)).header;
  }

  /** Reads keys, or returns a failure that the caller may be able to handle. */
  async tryRange(request: EtcdRange, { what, signal }: CallContext): Promise<RangeResponse | Failure> {
    this.check(signal);
    const outcome = await this.channel.ask(RANGE, writeRange(request), { signal });
    if ('answer' in outcome) return this.read(outcome.answer, readRange, what);
    this.check(signal);
    return outcome.failure;
  }

  /** Decodes an answer. If that fails, the request fails. */
  read<R>(answer: Uint8Array, reading: (bytes: Uint8Array) => R, what: string): R {
    try {
      return reading(answer);
    } catch (cause) {
      throw new WatchError('INVALID_FRAME', `${what}: ${(cause as Error).message}`, { cause });
    }
  }

  async #range(request: EtcdRange, context: CallContext): Promise<RangeResponse> {
    const range = await this.tryRange(request, context);
    if ('kvs' in range) return range;
    throw toError(range, context);
  }

  /** Reads as many of these keys as fit into an answer. */
  async #part(request: EtcdRange & { readonly limit: number }, context: CallContext): Promise<RangeResponse> {
    const { limit, revision } = request;
    const range = await this.tryRange(request, context);
    if ('kvs' in range) return range;
    if (isFuture(range)) {
      // This member may lag behind the previous one; etcd as a whole does not.
      if (request.serializable) return this.#part({ ...request, serializable: false }, context);
      throw await this.#tooLarge(`${revision}`, context);
    }
    if (isCompacted(range)) throw expired(`${revision}`, 'it has been compacted');
    if (!isWatchError(range.error, 'FRAME_TOO_LARGE') || limit === 1) throw toError(range, context);
    return this.#part({ ...request, limit: Math.max(1, Math.floor(limit / 8)) }, context);
  }

  /** 410 for a version that is newer than etcd as a whole; 504 for one that only a member did not have yet. */
  async #tooLarge(version: string, context: CallContext): Promise<WatchError> {
    const { revision } = await this.head(context);
    return revision < BigInt(version) ? foreign(version, `${revision}`) : tooLarge(version, `${revision}`);
  }

  /** Writes if the key is as expected, with a lease if there is a time to live. */
  async #write(
    write: { key: Uint8Array; expected: bigint; value: Uint8Array | undefined; ttlSeconds: number },
    context: CallContext,
  ): Promise<WriteResponse> {
    const { value, ttlSeconds, ...guard } = write;
    this.check(context.signal);
    for (let attempts = 1; ; attempts++) {
      let lease = 0n;
      if (value && ttlSeconds > 0) {
        // Others may wait for the same lease: an abort ends this wait, but not the request for the lease.
        lease = await this.#pending.until(this.#leases.of(ttlSeconds), context.signal);
        this.check(context.signal);
      }
      const message = writeGuarded({ ...guard, put: value && { value, lease } });
      const outcome = await this.channel.ask(TXN, message, { isWrite: true, signal: context.signal });
      if ('answer' in outcome) return this.read(outcome.answer, readWrite, context.what);
      this.check(context.signal);
      const { failure } = outcome;
      if (!failure.message.includes('lease not found') || attempts > 1) throw toError(failure, { ...context, isWrite: true });
      this.#leases.forget(ttlSeconds);
    }
  }

  async #grant(ttlSeconds: number): Promise<bigint> {
    const what = 'grant a lease';
    const outcome = await this.channel.ask(LEASE_GRANT, writeLeaseGrant(ttlSeconds));
    if ('answer' in outcome) return this.read(outcome.answer, readLease, what);
    this.check(undefined);
    throw toError(outcome.failure, { what });
  }
}

const REUSE_SHARE = 0.05;
const MAX_REUSE_SECONDS = 60;
/** How many different times to live are remembered. */
const MAX_KINDS = 1_000;

interface Shared {
  readonly id: Promise<bigint>;
  readonly untilMs: number;
  objects: number;
}

interface LeaseSettings {
  readonly clock: Clock;
  readonly maxLeaseObjects: number;
  /** Grants a lease of this many seconds. */
  readonly grant: (ttlSeconds: number) => Promise<bigint>;
}

/**
 * Leases, shared by objects that expire at about the same time: etcd can have far more keys than leases. For a twentieth of its
 * time to live, a minute at most, a lease takes further objects; it lasts longer by as much, so that nothing expires early. Below
 * twenty seconds, each object has a separate lease.
 *
 * Upstream: `leaseManager` of storage/etcd3, which has the same limits.
 */
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

  /** Drops a lease that etcd does not know, because it has expired, or etcd has lost its data. */
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
