/**
 * The port under a storage: what keeps bytes by key, under one revision. Etcd and SQLite are backends; `BackedStorage` makes a
 * `Storage` of one. Whatever concerns selectors, pages, retries and events is there; whatever concerns one product is behind this.
 *
 *     txn: compare, then put or delete ---> [ revision 7 | 8 | 9 ... ] ---> get, range: the state at a revision
 *                                                                  '------> changesAfter: every change, with its key, in order
 *
 * Keys are whole, with all prefixes, and ordered by UTF-16 code unit; `keys.ts` turns them into bytes of the same order.
 * Revisions are decimal numbers above 0, as strings without leading zeros, because some have 63 bits; `0` stands for none.
 *
 * What an implementer promises; `BACKEND_CONTRACT` of `watchmux/testing` checks it:
 * - A txn is one step, at a revision of its own that is larger than all before. Or it has not happened, and rejects. Only if nobody can
 *   know does it reject with TIMEOUT, or the transport's code, and a message that says so.
 * - `get`, `range` and `revision` contain every txn that was answered before they were called, unless they are asked for any state or
 *   for an exact revision. What a range returns is the state at one revision.
 * - Changes come in the order of revisions, each once, and those of one revision in one batch: one can resume after any batch.
 * - Nothing is left after `close`, neither timers nor connections: what is pending then, and what comes later, rejects with CLOSED.
 *
 * Refusals are those of `statuses.ts`: 410 for a revision whose past is gone, or that is from another life of the data; 504 with the
 * cause ResourceVersionTooLarge for one that has not come here yet; 500 StorageReadError for a value that is not an object.
 */
import type { KubernetesObject } from '../cache/object.ts';
import type { ChangeType } from '../watch/event.ts';
import type { Draft } from './values.ts';

/** An object under its key. */
export interface Entry<T> {
  readonly key: string;
  /**
   * The object, with the revision of its last write as its `metadata.resourceVersion`. It may be decoded each time that this is read, so
   * read it once; that throws if the value is not an object. It must not be changed. Not there in a range with `keysOnly`.
   */
  readonly object: T;
  /**
   * Called before the object is read: decodes a large one in pieces, so that it is there then. Undefined, or no such method: that takes no
   * time. Rejects only if the signal aborts: what cannot be decoded throws when it is read. It may be called again.
   */
  load?(signal?: AbortSignal): Promise<void> | undefined;
}

/** One change of one key. */
export interface Change<T> {
  /** What it does to the key, whoever may select it: ADDED if there was nothing before. */
  readonly type: ChangeType;
  readonly key: string;
  readonly revision: string;
  /** What is there since; undefined for DELETED. Decoded as in {@link Entry}. */
  readonly object: T | undefined;
  /**
   * What was there before, with the version that it had; undefined for ADDED. Only if `previous` was asked for. Decoded as in
   * {@link Entry}; throws 410 if it has been compacted.
   */
  readonly previous: T | undefined;
  /** As in {@link Entry}, for both objects. */
  load?(signal?: AbortSignal): Promise<void> | undefined;
}

/** What {@link Changes} deliver at once. */
export interface ChangeBatch<T> {
  /** In order, and whole: there are no more of the last one's revision. */
  readonly changes: readonly Change<T>[];
  /** Everything up to this revision has been delivered with this batch. Absent unless it was asked for, or comes by itself now and then. */
  readonly progress?: string | undefined;
}

/** The changes after a revision. Nothing is read ahead of the consumer by more than one batch, or what a socket holds. */
export interface Changes<T> {
  /**
   * Resolves once it is known that it can begin, and rejects if not: then it is over. A consumer may leave that to the first `next`.
   * Called at most once, before `next` and `poll`.
   */
  open(): Promise<void>;
  /**
   * Resolves with what comes next, and with undefined only after `close`. Survives outages as long as nothing is lost; rejects when it
   * cannot go on, with 410 if changes are lost, and is over then. Not called again before it has settled.
   */
  next(): Promise<ChangeBatch<T> | undefined>;
  /** Returns what has already come, or undefined; throws what `next` would reject with. Not called during a `next`. */
  poll(): ChangeBatch<T> | undefined;
  /** Has a batch with `progress` come, after all changes up to the present revision. */
  requestProgress(): void;
  /** Ends it: a pending call settles. */
  close(): void;
}

/** What all requests accept. */
export interface RequestOptions {
  /** What the request is called in errors, such as `update default/a`; default: what it is, and the key. */
  readonly what?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** What all reads accept. */
export interface ReadOptions extends RequestOptions {
  /** Any state that is at hand will do, even an old one. */
  readonly anyState?: boolean | undefined;
}

/** What {@link Backend.range} reads. */
export interface RangeRequest extends ReadOptions {
  /** All keys that begin with this; '' for all. Others end with a slash. */
  readonly prefix: string;
  /** The first key, or where it would be; default: the first one with the prefix. */
  readonly from?: string | undefined;
  /** Instead: an entry of this backend, behind which it goes on. Keys that others wrote may be no text. */
  readonly after?: Entry<unknown> | undefined;
  /** The most entries. Fewer may come, if they are large, but at least one if there are any. */
  readonly limit: number;
  /** The state at this revision; default: the newest. */
  readonly revision?: string | undefined;
  readonly keysOnly?: boolean | undefined;
}

/** A part of a state. */
export interface RangeResult<T> {
  /** In the order of keys. */
  readonly entries: readonly Entry<T>[];
  /** The revision of the state: that which was asked for, or the newest one of all keys. */
  readonly revision: string;
  /** How many keys with the prefix follow the last entry. */
  readonly left: number;
  /** False: `left` is only the least that follows, at least 1, as a state of the past may be too costly to count. Default true. */
  readonly isLeftCounted?: boolean | undefined;
  /** The size of the entries' values. */
  readonly bytes: number;
  /** Which life of the data this is, for {@link ChangesOptions}; opaque. */
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
  /** The version of what is there; `0` for nothing. */
  readonly expected: string;
  /** What to put; absent: delete. If nothing is expected and there, that succeeds, writes nothing, and has the newest revision. */
  readonly put?: Draft<T> | undefined;
  /** What is put expires after this many seconds, or a little later; 0: never, whatever was there before. */
  readonly ttlSeconds?: number | undefined;
}

/** How a {@link Txn} went. */
export type TxnResult<T> =
  | {
      readonly succeeded: true;
      readonly revision: string;
      /** What was put, at that revision: the object of the draft. */
      readonly object: T | undefined;
    }
  | {
      readonly succeeded: false;
      /** What is there instead. */
      readonly current: Entry<T> | undefined;
    };

/** Options of {@link Backend.changesAfter}. */
export interface ChangesOptions {
  /** As in {@link RangeRequest}. */
  readonly prefix: string;
  /** Whether changes come with what was there before. */
  readonly previous: boolean;
  /** That of the range after which it goes on. If the data has another life now, that is 410. */
  readonly life?: unknown;
}

/** What keeps objects. See the top of this file for what it promises. */
export interface Backend {
  get<T extends KubernetesObject>(key: string, options?: ReadOptions): Promise<GetResult<T>>;
  range<T extends KubernetesObject>(request: RangeRequest): Promise<RangeResult<T>>;
  txn<T extends KubernetesObject>(write: Txn<T>): Promise<TxnResult<T>>;
  /** Does nothing before it is opened or read. */
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

/** Where a storage keeps its objects: for a cacher, which follows the backend itself, because changes there carry their keys. */
export interface Backing {
  readonly backend: Backend;
  /** What the storage's keys begin with there. */
  readonly prefix: string;
}
