/**
 * Lists, read in parts so that no answer gets too long, all at the revision of the first part.
 *
 *     [prefix, end) at 7:   a b c d | e f g h i j | k ...       a part is as many objects as are likely to have 8 MiB
 *
 * With a selector, parts are read until the page is full. Upstream: `GetList` of storage/etcd3.
 */
import type { List } from '../../cache/list-watcher.ts';
import type { KubernetesObject } from '../../cache/object.ts';
import { isWatchError, type WatchError } from '../../watch/errors.ts';
import { continueAfter, encodeContinue } from '../continue.ts';
import type { ListPlan } from '../selection.ts';
import { expired, expiredContinue, foreign } from '../statuses.ts';
import type { CallContext, EtcdClient } from './etcd-client.ts';
import { after, behind, toBytes, toText } from './key-bytes.ts';
import { objectOf } from './objects.ts';
import type { Header, KeyValue, RangeResponse } from './wire/messages.ts';
import { type Failure, isCompacted, isFuture, toError } from './wire/outcome.ts';

const PART_BYTES = 8_388_608;
const FIRST_PART = 500;
const MAX_PART = 10_000;
/** How often a list is begun if its revision is compacted meanwhile. */
const MAX_ATTEMPTS = 3;
/** The largest revision: etcd counts in signed 64-bit numbers. A larger one would be another revision there, or invalid. */
const MAX_REVISION = 2n ** 63n - 1n;

/** What is to be read. */
export interface ReadOptions {
  readonly prefix: string;
  readonly plan: Pick<ListPlan, 'exact' | 'atLeast' | 'from'>;
  /** Any state that a member has will do. */
  readonly anyState?: boolean | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** One part of a list. */
export interface Part {
  readonly kvs: readonly KeyValue[];
  /** The revision of all parts. */
  readonly revision: bigint;
  readonly header: Header;
  /** How many keys follow. */
  readonly left: number;
}

/** Reads a range part by part. */
export class PartReader {
  readonly #client: EtcdClient;
  readonly #options: ReadOptions;
  readonly #context: CallContext;
  readonly #end: Uint8Array;
  #key: Uint8Array;
  #revision: bigint;
  #size: number = FIRST_PART;
  #anyState: boolean;

  constructor(client: EtcdClient, options: ReadOptions) {
    const { prefix, plan, anyState = false, signal } = options;
    this.#client = client;
    this.#options = options;
    this.#context = { what: `list ${prefix}`, signal };
    this.#end = behind(toBytes(prefix));
    this.#key = toBytes(prefix + (plan.from?.start ?? ''));
    this.#revision = BigInt(plan.from?.revision ?? plan.exact ?? 0);
    this.#anyState = anyState;
  }

  /** The next part, of at most `limit` keys. Must not be called if nothing is left after the last part. */
  async next(limit: number): Promise<Part> {
    if (this.#revision > MAX_REVISION) throw await this.#beyond();
    const part = await this.#read(Math.min(limit, this.#size));
    const { kvs, header, more, count } = part;
    const { atLeast } = this.#options.plan;
    if (this.#revision === 0n) {
      if (atLeast !== undefined && header.revision < BigInt(atLeast)) throw foreign(atLeast, `${header.revision}`);
      this.#revision = header.revision;
    }
    const last = kvs.at(-1);
    if (last) this.#key = after(last.key);
    this.#adapt(kvs);
    return { kvs, revision: this.#revision, header, left: more ? Math.max(count - kvs.length, 1) : 0 };
  }

  async #read(limit: number): Promise<RangeResponse> {
    const request = { key: this.#key, end: this.#end, limit, revision: this.#revision, serializable: this.#anyState };
    const range = await this.#client.tryRange(request, this.#context);
    if ('kvs' in range) return range;
    // The next member may be behind the one before: etcd as a whole is not.
    if (this.#anyState && isFuture(range)) {
      this.#anyState = false;
      return this.#read(limit);
    }
    if (!isWatchError(range.error, 'FRAME_TOO_LARGE') || limit === 1) throw await this.#error(range);
    this.#size = Math.max(1, Math.floor(limit / 8));
    return this.#read(this.#size);
  }

  async #error(failure: Failure): Promise<WatchError> {
    if (isFuture(failure)) return this.#beyond();
    if (!isCompacted(failure)) return toError(failure, this.#context);
    return this.#options.plan.from ? this.#lostPlace() : expired(`${this.#revision}`, 'it has been compacted');
  }

  /** The revision is newer than what etcd has. */
  async #beyond(): Promise<WatchError> {
    const error = await this.#client.tooLarge(`${this.#revision}`, this.#context);
    return this.#options.plan.from && error.status?.code === 410 ? this.#lostPlace() : error;
  }

  #lostPlace(): WatchError {
    const start = toText(this.#key).slice(this.#options.prefix.length);
    return expiredContinue(encodeContinue({ revision: undefined, start }));
  }

  #adapt(kvs: readonly KeyValue[]): void {
    const bytes = kvs.reduce((sum, { value }) => sum + value.length, 0);
    const size = Math.floor((PART_BYTES * kvs.length) / Math.max(bytes, 1));
    this.#size = Math.min(Math.max(size, 1), MAX_PART, Math.max(this.#size * 4, FIRST_PART));
  }
}

/** Which objects to list, and how many. */
export interface PageOptions<T> extends ReadOptions {
  readonly limit: number;
  /** Absent: all of them. */
  readonly selects: ((object: T) => boolean) | undefined;
}

/** Reads a list, or one page of it. If its revision was not asked for and is compacted, it is read again at another one. */
export async function readList<T extends KubernetesObject>(client: EtcdClient, options: PageOptions<T>): Promise<List<T>> {
  const { exact, from } = options.plan;
  const isAsked = (exact ?? from?.revision) !== undefined;
  for (let attempts = 1; ; attempts++) {
    try {
      return await readPage(client, options);
    } catch (error) {
      if (isAsked || attempts === MAX_ATTEMPTS || !isWatchError(error, 'REFUSED') || error.status?.code !== 410) throw error;
    }
  }
}

async function readPage<T extends KubernetesObject>(client: EtcdClient, options: PageOptions<T>): Promise<List<T>> {
  const { prefix, limit, selects } = options;
  const reader = new PartReader(client, options);
  const items: T[] = [];
  for (;;) {
    const wanted = limit === 0 ? Number.POSITIVE_INFINITY : limit - items.length;
    const { kvs, revision, left } = await reader.next(selects ? MAX_PART : wanted);
    for (const [at, kv] of kvs.entries()) {
      const object = objectOf<T>(kv);
      if (selects && !selects(object)) continue;
      items.push(object);
      if (items.length !== limit) continue;
      const rest = left + kvs.length - at - 1;
      if (rest === 0) break;
      const next = continueAfter(toText(kv.key).slice(prefix.length), { revision: `${revision}` });
      return { items, resourceVersion: `${revision}`, continue: next, ...(!selects && { remainingItemCount: rest }) };
    }
    if (left === 0) return { items, resourceVersion: `${revision}` };
  }
}
