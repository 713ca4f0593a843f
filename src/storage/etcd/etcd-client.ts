/** What all scopes of an `EtcdStorage` share: the members, leases, the open watches; and etcd's calls with their errors. */
import { WatchError } from '../../watch/errors.ts';
import { Pending } from '../pending.ts';
import { foreign, tooLarge, unavailable } from '../statuses.ts';
import { toBytes } from './key-bytes.ts';
import { Leases } from './lease.ts';
import type { Settings } from './options.ts';
import { RecentObjects } from './recent.ts';
import { Channel, LEASE_GRANT, RANGE, STATUS, TXN } from './wire/channel.ts';
import {
  type GuardedWrite,
  type Header,
  type RangeRequest,
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
import { type Failure, toError } from './wire/outcome.ts';

/** How a call is made, and what it is called in errors. */
export interface CallContext {
  readonly what: string;
  readonly signal?: AbortSignal | undefined;
}

/** A watch, as the storage sees it. */
export interface OpenWatch {
  readonly prefix: string;
  requestProgress(): void;
  stop(): void;
}

export class EtcdClient {
  readonly settings: Settings;
  readonly channel: Channel;
  readonly watches: Set<OpenWatch> = new Set();
  /** For watches: empty while there are none. */
  readonly recent: RecentObjects = new RecentObjects();
  /** What waits for something other than etcd. */
  readonly pending: Pending = new Pending();
  readonly #leases: Leases;

  constructor(settings: Settings) {
    this.settings = settings;
    this.channel = new Channel(settings);
    const { clock, maxLeaseObjects } = settings;
    this.#leases = new Leases({ clock, maxLeaseObjects, grant: (ttlSeconds) => this.#grant(ttlSeconds) });
  }

  /** Throws CLOSED once the storage is closed, and the reason of a signal that has aborted. */
  check(signal: AbortSignal | undefined): void {
    this.pending.check(signal);
  }

  /** Reads keys, or returns a failure that the caller may be able to handle. */
  async tryRange(request: RangeRequest, { what, signal }: CallContext): Promise<RangeResponse | Failure> {
    this.check(signal);
    const outcome = await this.channel.ask(RANGE, writeRange(request), { signal });
    if ('answer' in outcome) return this.read(outcome.answer, readRange, what);
    this.check(signal);
    return outcome.failure;
  }

  async range(request: RangeRequest, context: CallContext): Promise<RangeResponse> {
    const range = await this.tryRange(request, context);
    if ('kvs' in range) return range;
    throw toError(range, context);
  }

  /** What etcd as a whole agrees on at present: its newest revision and its term. */
  async head(context: CallContext): Promise<Header> {
    return (await this.range({ key: toBytes(this.settings.root), countOnly: true }, context)).header;
  }

  /** Rejects if an alarm keeps etcd from taking writes: it is full (NOSPACE), or damaged (CORRUPT). Every member knows. */
  async checkAlarms(): Promise<void> {
    const what = 'read the alarms';
    this.check(undefined);
    const outcome = await this.channel.ask(STATUS, new Uint8Array(0));
    this.check(undefined);
    if (!('answer' in outcome)) throw toError(outcome.failure, { what });
    const [, alarm] = /\balarm:\s*(\w+)/.exec(this.read(outcome.answer, readFaults, what).join(' ')) ?? [];
    if (alarm !== undefined) throw unavailable(`etcd takes no writes: its alarm ${alarm} is set`);
  }

  /** Writes if the key is as expected, with a lease if there is a time to live. */
  async write(
    write: Omit<GuardedWrite, 'put'> & { value?: Uint8Array; ttlSeconds?: number },
    context: CallContext,
  ): Promise<WriteResponse> {
    const { value, ttlSeconds = 0, ...guard } = write;
    for (let attempts = 1; ; attempts++) {
      // Others may wait for the same lease: an abort ends this wait, not the request for the lease.
      const lease = this.pending.until(this.#leases.of(ttlSeconds), context.signal);
      const put = value && { value, lease: await lease };
      this.check(context.signal);
      const outcome = await this.channel.ask(TXN, writeGuarded({ ...guard, put }), { isWrite: true, signal: context.signal });
      if ('answer' in outcome) return this.read(outcome.answer, readWrite, context.what);
      this.check(context.signal);
      const { failure } = outcome;
      if (!failure.message.includes('lease not found') || attempts > 1) throw toError(failure, { ...context, isWrite: true });
      this.#leases.forget(ttlSeconds);
    }
  }

  /** 410 for a version that is newer than what etcd as a whole has; 504 for one that a member did not have yet. */
  async tooLarge(version: string, context: CallContext): Promise<WatchError> {
    const { revision } = await this.head(context);
    return revision < BigInt(version) ? foreign(version, `${revision}`) : tooLarge(version, `${revision}`);
  }

  /** Notes an object that has been written: a watch may deliver it next. */
  wrote<T extends object>(revision: bigint, object: T): T {
    if (this.watches.size > 0) this.recent.add(revision, object);
    return object;
  }

  /** A watch has ended. */
  left(watch: OpenWatch): void {
    this.watches.delete(watch);
    if (this.watches.size === 0) this.recent.clear();
  }

  /** Decodes an answer. A failure to do so is an error of this request. */
  read<R>(answer: Uint8Array, reading: (bytes: Uint8Array) => R, what: string): R {
    try {
      return reading(answer);
    } catch (cause) {
      throw new WatchError('INVALID_FRAME', `${what}: ${(cause as Error).message}`, { cause });
    }
  }

  close(): void {
    for (const watch of this.watches) watch.stop();
    this.pending.close();
    this.channel.close();
  }

  async #grant(ttlSeconds: number): Promise<bigint> {
    const what = 'grant a lease';
    const outcome = await this.channel.ask(LEASE_GRANT, writeLeaseGrant(ttlSeconds));
    if ('answer' in outcome) return this.read(outcome.answer, readLease, what).id;
    this.check(undefined);
    throw toError(outcome.failure, { what });
  }
}
