/**
 * The port under a storage: it keeps bytes by key, with one revision for all. Etcd and SQLite are backends; `BackedStorage` turns
 * one into a `Storage`. Selectors, pages, retries and events are handled there; what is specific to a product is behind this
 * port.
 *
 *     txn: compare, then put or delete ---> [ revision 7 | 8 | 9 ... ] ---> get, range: the state at a revision
 *                                                                  '------> changesAfter: every change, with its key, in order
 *
 * Keys are complete, with all prefixes, and ordered by UTF-16 code unit; `keys.ts` turns them into bytes of the same order.
 * Revisions are decimal numbers above 0, as strings without leading zeros, because some have 63 bits; `0` stands for none.
 *
 * What an implementer promises; `BACKEND_CONTRACT` of `watchmux/testing` checks it:
 * - A txn is one step, at a revision of its own that is larger than all before. If it rejects, it has not happened, except with
 *   TIMEOUT, or the transport's code, and a message that says that the outcome is unknown.
 * - `get`, `range` and `revision` reflect every txn that was answered before they were called, unless they are asked for any
 *   state or for an exact revision. A range returns the state at one revision.
 * - Changes come in the order of revisions, each once, and those of one revision in one batch: one can resume after any batch.
 * - After `close`, neither timers nor connections are left: pending and later calls reject with CLOSED.
 *
 * Refusals are those of `statuses.ts`: 410 for a revision whose past is gone, that was never given, or that is from another life
 * of the data; 504 with the cause ResourceVersionTooLarge for one that was given, but that the member that is asked has not reached
 * yet, which only a backend with several members has; 500 StorageReadError for a value that is not an object.
 */
import type { KubernetesObject } from '../cache/object.ts';
import type { ChangeType } from '../watch/event.ts';
import type { Draft } from './values.ts';

/** An object under its key. */
export interface Entry<T> {
  readonly key: string;
  /**
   * The object, with the revision of its last write as its `metadata.resourceVersion`. Each access may decode it again, and
   * throws if the value is not an object: read it once, and do not change it. Missing in a range with `keysOnly`.
   */
  readonly object: T;
  /**
   * Call it before you read the object: it decodes a large one in pieces. If it returns undefined, or is missing, there is
   * nothing to wait for. Rejects only if the signal aborts: a value that cannot be decoded throws when it is read. It may be
   * called again.
   */
  load?(signal?: AbortSignal): Promise<void> | undefined;
}

/** One change of one key. */
export interface Change<T> {
  /** What happens to the key, regardless of selectors: ADDED if there was nothing before. */
  readonly type: ChangeType;
  readonly key: string;
  readonly revision: string;
  /** The new object; undefined for DELETED. Decoded as in {@link Entry}. */
  readonly object: T | undefined;
  /**
   * The previous object, with its version; undefined for ADDED. Only if `previous` was asked for. Decoded as in {@link Entry};
   * throws 410 if it has been compacted.
   */
  readonly previous: T | undefined;
  /** As in {@link Entry}, for both objects. */
  load?(signal?: AbortSignal): Promise<void> | undefined;
}

/** What {@link Changes} deliver at a time. */
export interface ChangeBatch<T> {
  /** In order, and complete: no more changes of the last one's revision follow. */
  readonly changes: readonly Change<T>[];
  /** With this batch, everything up to this revision has been delivered. Present if requested, and perhaps at other times. */
  readonly progress?: string | undefined;
}

/** The changes after a revision. Reads ahead of the consumer by at most one batch, or what a socket holds. */
export interface Changes<T> {
  /**
   * Resolves once it is known that it can begin; rejects if it cannot, and is over then. Optional: otherwise, the first `next`
   * opens it. Call it at most once, before `next` and `poll`.
   */
  open(): Promise<void>;
  /**
   * Resolves with the next batch, and with undefined only after `close`. Survives outages as long as nothing is lost; rejects
   * when it cannot go on, with 410 if changes are lost, and is over then. Do not call it again before it has settled.
   */
  next(): Promise<ChangeBatch<T> | undefined>;
  /** Returns what has already come, or undefined; throws what `next` would reject with. Not called during a `next`. */
  poll(): ChangeBatch<T> | undefined;
  /** Makes a batch with `progress` come, after all changes up to the current revision. */
  requestProgress(): void;
  /** Ends it. A pending call settles. */
  close(): void;
}

/** What all requests accept. */
export interface RequestOptions {
  /** The name of the request in errors, such as `update default/a`; default: its method and key. */
  readonly what?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** What all reads accept. */
export interface ReadOptions extends RequestOptions {
  /** Any available state will do, even an old one. */
  readonly anyState?: boolean | undefined;
}

/** What {@link Backend.range} reads. */
export interface RangeRequest extends ReadOptions {
  /** Reads the keys that begin with this: '' for all, or a prefix that ends with a slash. */
  readonly prefix: string;
  /** The key to start at, which need not exist; default: the first one with the prefix. */
  readonly from?: string | undefined;
  /** Instead of `from`: an entry of this backend to go on after. Keys that others wrote may not be valid text. */
  readonly after?: Entry<unknown> | undefined;
  /** The most entries. Fewer may come if they are large, but at least one if there are any. */
  readonly limit: number;
  /** The state at this revision; default: the newest. */
  readonly revision?: string | undefined;
  readonly keysOnly?: boolean | undefined;
}

/** A part of a state. */
export interface RangeResult<T> {
  /** In the order of keys. */
  readonly entries: readonly Entry<T>[];
  /** The revision of the state: the requested one, or the newest of all keys. */
  readonly revision: string;
  /** How many keys with the prefix follow the last entry. */
  readonly left: number;
  /** False: `left` is only a lower bound, at least 1, as a past state may be too costly to count. Default true. */
  readonly isLeftCounted?: boolean | undefined;
  /** The size of the entries' values. */
  readonly bytes: number;
  /** Identifies this life of the data, for {@link ChangesOptions}; opaque. */
  readonly life?: unknown;
}

/** The answer of {@link Backend.get}. */
export interface GetResult<T> {
  readonly entry: Entry<T> | undefined;
  /** The revision of the state that was read. */
  readonly revision: string;
}

/** A write that happens if the key is as expected. */
export interface Txn<T extends KubernetesObject> extends RequestOptions {
  readonly key: string;
  /** The expected version of the current object; `0` for none. */
  readonly expected: string;
  /**
   * The object to put; absent: delete. One that expects and finds nothing succeeds, at the newest revision, and writes nothing.
   */
  readonly put?: Draft<T> | undefined;
  /** The object expires after this many seconds, or a little later; 0: never, even if the previous one did. */
  readonly ttlSeconds?: number | undefined;
}

/** How a {@link Txn} went. */
export type TxnResult<T> =
  | {
      readonly succeeded: true;
      readonly revision: string;
      /** The object of the draft, as it was put at that revision. */
      readonly object: T | undefined;
    }
  | {
      readonly succeeded: false;
      /** The current entry, which was not expected. */
      readonly current: Entry<T> | undefined;
    };

/** Options of {@link Backend.changesAfter}. */
export interface ChangesOptions {
  /** As in {@link RangeRequest}. */
  readonly prefix: string;
  /** Whether changes come with the previous object. */
  readonly previous: boolean;
  /** The `life` of the range that it continues. If the data has another life now, it fails with 410. */
  readonly life?: unknown;
}

/** Keeps objects. See the top of this file for what it promises. */
export interface Backend {
  get<T extends KubernetesObject>(key: string, options?: ReadOptions): Promise<GetResult<T>>;
  range<T extends KubernetesObject>(request: RangeRequest): Promise<RangeResult<T>>;
  txn<T extends KubernetesObject>(write: Txn<T>): Promise<TxnResult<T>>;
  /** Does nothing until it is opened or read. */
  changesAfter<T extends KubernetesObject>(revision: string, options: ChangesOptions): Changes<T>;
  /** Resolves with the revision of the newest txn. */
  revision(options?: RequestOptions): Promise<string>;
  /** As `Storage.hasGiven`. */
  hasGiven?(revision: string): Promise<boolean>;
  /** As `Storage.pastVersion`. */
  pastRevision?(changes: number): Promise<string>;
  /** As `Storage.checkHealth`. */
  checkHealth?(): Promise<void>;
  close(): Promise<void>;
}

/** Where a storage keeps its objects. A cacher follows the backend itself, because changes there carry their keys. */
export interface Backing {
  readonly backend: Backend;
  /** The prefix of the storage's keys in the backend. */
  readonly prefix: string;
}
