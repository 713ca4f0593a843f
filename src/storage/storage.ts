/**
 * The port of everything that keeps objects: a `ListWatcher` that can write. Memory, etcd and the cacher in front of either are
 * all a `Storage`, so each can replace another.
 *
 *     create, update, delete ---> [ revision 7 | 8 | 9 ... ] ---> list, get: the state at a revision
 *                                                           '---> watch: every change after a revision, in order
 *
 * One storage has one revision, a decimal number that grows with every write, for all of its keys. `scope` is the part whose keys
 * begin with a prefix: a resource, or a namespace of it. One scope does not show another's objects, but both share the revision.
 *
 * What an implementer promises, besides the promises of a `ListWatcher`; `STORAGE_CONTRACT` of `watchmux/testing` checks it:
 * - A write is one step: it happens completely, at a revision that no other write has, or its promise rejects and nothing
 *   happens. Only if the connection broke before the answer came may it have happened anyway; the error then says so (code
 *   TIMEOUT, or that of the transport).
 * - Linearizable: `get` and `list` without a version, and the state on which `update` and `delete` decide, include every write
 *   that was answered before they began.
 * - Returned objects have `metadata.resourceVersion`, the revision of their last write; objects to write need not have it.
 *   Objects are values: they are copied when they are written, and returned ones must not be changed.
 * - A key is relative to the scope: not empty, without empty, `.` or `..` segments between slashes, at most 1,024 characters.
 *   Lists are in the order of keys, by UTF-16 code unit.
 *
 * Refusals reject with a WatchError with code REFUSED, whose `status.code` is: 404 NotFound; 409 AlreadyExists (create) or
 * Conflict (preconditions); 410 Expired (a version before the oldest kept one, or one that this storage cannot have issued, or a
 * `continue` of such a version); 504 Timeout with the cause ResourceVersionTooLarge (a version that has been issued, but has not
 * been reached here yet); 400 BadRequest (an invalid version, key, selector or `continue`); 413 RequestEntityTooLarge; 429
 * TooManyRequests (not ready, or full). A watch from a version that is too old may also resolve, and deliver the ERROR 410 first.
 * See `statuses.ts`, which makes them.
 *
 * Upstream: `storage.Interface` of k8s.io/apiserver.
 */
import type { List, ListOptions, ListWatcher, ListWatchOptions } from '../cache/list-watcher.ts';
import type { KubernetesObject } from '../cache/object.ts';
import type { Clock } from '../watch/clock.ts';
import type { BookmarkEvent, ChangeType, ErrorEvent, WatchEvent } from '../watch/event.ts';
import type { Watch } from '../watch/watch.ts';
import type { Backing } from './backend.ts';

/** A change in a storage, with the object before the change, if there was one. */
export interface ChangeEvent<T> extends WatchEvent<ChangeType, T> {
  /**
   * The object before this change, as it was written. Present for MODIFIED and DELETED, and for an ADDED of an object that
   * existed but did not match the selector.
   */
  readonly previous?: T | undefined;
}

/** What a watch of a storage delivers. Can be used where an `ObjectEvent` is expected. */
export type StorageEvent<T> = ChangeEvent<T> | BookmarkEvent | ErrorEvent;

/** Options of {@link Storage.watch}. */
export interface StorageWatchOptions<T> extends ListWatchOptions {
  /**
   * For a caller that keeps the whole state, as a cache does: returns its current object under a key. A storage that would have
   * to read the previous object for each change can then take `previous` from here. It may ignore this, and does if there is a
   * selector. Apply each event to your state before you read the next one.
   */
  readonly previousOf?: ((key: string) => T | undefined) | undefined;
}

/** What the stored object must match, or an update or deletion rejects with 409 Conflict. Upstream: `storage.Preconditions`. */
export interface Preconditions {
  readonly uid?: string | undefined;
  readonly resourceVersion?: string | undefined;
}

/** Options of {@link Storage.keys}. */
export interface KeysOptions {
  /** Where to begin; default: at the first key. */
  readonly from?: string | undefined;
  readonly limit: number;
  readonly signal?: AbortSignal | undefined;
}

/** Options of {@link Storage.get}. */
export interface GetOptions {
  /**
   * Absent: the newest state. `0`: any available state. Others: a state not older than that. Upstream:
   * `GetOptions.ResourceVersion`.
   */
  readonly resourceVersion?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Options of {@link Storage.create}. */
export interface CreateOptions {
  /** The object expires after this many seconds. Default 0: never. */
  readonly ttlSeconds?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Options of {@link Storage.update}, including preconditions. */
export interface UpdateOptions<T> extends CreateOptions, Preconditions {
  /**
   * The object that the caller believes to be stored, with its version: the first attempt uses it instead of reading. If it is
   * outdated, the change is retried with the object that is actually stored. Upstream: `cachedExistingObject`.
   */
  readonly cached?: T | undefined;
  /** If there is nothing under the key, call `change` with undefined, and create the object. Default false: reject with 404. */
  readonly createIfMissing?: boolean | undefined;
}

/** Options of an {@link Storage.update} whose `change` may get undefined. */
export type CreatingOptions<T> = UpdateOptions<T> & { readonly createIfMissing: true };

/** Options of {@link Storage.delete}, including preconditions. */
export interface DeleteOptions<T> extends Preconditions {
  /** Called with the stored object; throws to refuse the deletion. Called again if the object has changed in the meantime. */
  readonly validate?: ((current: T) => void | Promise<void>) | undefined;
  /** As in {@link UpdateOptions}. */
  readonly cached?: T | undefined;
  readonly signal?: AbortSignal | undefined;
}

/**
 * The fields that a field selector may use in addition to `metadata.name` and `metadata.namespace`, and how to read them. Undefined
 * counts as empty. To return anything else but a string, such as a number, is as good as to throw INVALID_ARGUMENT.
 */
export type FieldFunctions<T> = Readonly<Record<string, (object: T) => string | undefined>>;

/** Options of {@link Storage.scope}. */
export interface ScopeOptions<T> {
  /** Default: those of the storage that the scope belongs to. */
  readonly fields?: FieldFunctions<T> | undefined;
}

/** Statistics of whatever answers lists and watches from memory: a cacher, or a part of a storage in memory. */
export interface CacherStats {
  readonly phase: 'pending' | 'ready' | 'stopped';
  /** Why it is not ready, if that is known. */
  readonly error?: unknown;
  /** How often it has become ready. */
  readonly generation: number;
  /** The version of its state; empty before the first list. */
  readonly resourceVersion: string;
  readonly objects: number;
  /** Changes since it started. */
  readonly changes: number;
  /** The past changes that are kept. A watch may begin at `since` or any later version. */
  readonly window: { readonly items: number; readonly bytes: number; readonly since: string };
  /** Open watches. */
  readonly watches: number;
  /** How many different selections they have: a change is evaluated at most once for each. */
  readonly views: number;
  /** Watches that got a 410 because they were too slow. */
  readonly fellBehind: number;
  /** How often all watches got a 410 because the storage no longer had the changes in between. */
  readonly gaps: number;
  /** Reads that wait for a version. */
  readonly waiting: number;
}

/** What a storage keeps of the past, and of an object. */
export interface HistoryOptions {
  /** The number of past changes that are kept, so that watches can resume and lists can be read at a version; default 100,000. */
  readonly maxHistoryItems?: number | undefined;
  /** The size of the kept changes: the JSON of the states that they replaced, in bytes. Default 64 MiB. */
  readonly maxHistoryBytes?: number | undefined;
  /** The greatest age of a kept change, in ms. Older ones are dropped at the next writes, not by a timer. Default: no limit. */
  readonly historyMs?: number | undefined;
  /** The largest size of an object's JSON, in bytes; a larger one is refused with 413. Default 3 MiB. */
  readonly maxObjectBytes?: number | undefined;
}

/** Options of {@link Storage.served}. */
export interface ServedOptions {
  /** How often a watch that allows BOOKMARKs gets one, if the version is new, in ms. Default: never. */
  readonly bookmarkMs?: number | undefined;
  /** The most open watches; further ones are refused with 429. Default: no limit. */
  readonly maxWatches?: number | undefined;
  /** For BOOKMARKs, and for the ends of watches. Default: the storage's. */
  readonly clock?: Clock | undefined;
}

/**
 * A collection that can be listed, watched and written. All keys share one revision, which grows with every write. A write is one
 * step, and reads without a version include every write that was answered before (**Linearizable**). Refusals reject with a
 * WatchError with code REFUSED and a Status as a kube-apiserver sends it. Treat the objects that you get as read-only.
 * `STORAGE_CONTRACT` in `watchmux/testing` checks what an implementation must do.
 */
export interface Storage<T extends KubernetesObject = KubernetesObject> extends ListWatcher<T> {
  /** The backend under this storage, if there is one: a cacher follows it directly, because its changes carry their keys. */
  readonly backing?: Backing | undefined;
  /** Resolves with the object under a key, or with undefined if there is none. */
  get(key: string, options?: GetOptions): Promise<T | undefined>;
  list(options?: ListOptions): Promise<List<T>>;
  watch(options?: StorageWatchOptions<T>): Promise<Watch<StorageEvent<T>>>;
  /**
   * Resolves with the object as it was stored, with its version. Rejects with 409 AlreadyExists if the key is taken, and with 400
   * BadRequest if the object has a `metadata.resourceVersion`, which a new object cannot have.
   */
  create(key: string, object: T, options?: CreateOptions): Promise<T>;
  /**
   * Reads the object, calls `change` with a copy, and writes the result if the object has not changed in the meantime; otherwise
   * starts over. So `change` may be called several times and must have no side effects. If it throws, this rejects with that
   * error, and nothing is written. If its result equals the stored object, nothing is written either, and there is no event.
   * `change` may modify its argument, which is undefined only with `createIfMissing`; the version in its result is ignored. A write without `ttlSeconds` removes an earlier time
   * to live. Upstream: `GuaranteedUpdate`.
   */
  update(key: string, change: (current: T | undefined) => T | Promise<T>, options: CreatingOptions<T>): Promise<T>;
  update(key: string, change: (current: T) => T | Promise<T>, options?: UpdateOptions<T>): Promise<T>;
  /** Resolves with the last content of the object, at the version of its deletion. */
  delete(key: string, options?: DeleteOptions<T>): Promise<T>;
  /** The revision of the newest write in any scope. Upstream: `GetCurrentResourceVersion`. */
  currentVersion(options?: { readonly signal?: AbortSignal | undefined }): Promise<string>;
  /**
   * Resolves with whether this storage may have issued a version. If not, the version is from another life of its data, such as
   * before it was restored from a copy. For a storage without this method, all versions up to `currentVersion` may be its own.
   */
  hasGiven?(version: string): Promise<boolean>;
  /**
   * Resolves with the version of so many changes ago, in any scope, or the oldest one that can still be listed. For a storage
   * without this method, it is computed by subtraction.
   */
  pastVersion?(changes: number): Promise<string>;
  /**
   * Rejects with the reason if no write can succeed although reads are answered, as when etcd is full; with CLOSED if the storage
   * has to be opened again, because a journal's disk has failed. A storage without this method is healthy if `currentVersion`
   * answers.
   */
  checkHealth?(): Promise<void>;
  /**
   * Sends a BOOKMARK with the current revision to every open watch that allows BOOKMARKs, in order with events. This tells a
   * cache in front of the storage that it has missed nothing. Upstream: `RequestWatchProgress`.
   */
  requestProgress(): Promise<void>;
  /**
   * Returns this scope's keys in order: at most `limit` of them, the first of which is `from` or the next one. An API server uses
   * this to find objects of kinds that it does not know; without this method, it finds none.
   */
  keys?(options: KeysOptions): Promise<readonly string[]>;
  /** The part of this storage whose keys begin with `prefix`, which must end with `/`. The scope's keys omit the prefix. */
  scope<U extends KubernetesObject = T>(prefix: string, options?: ScopeOptions<U>): Storage<U>;
  /**
   * The same storage for an API server, if it answers lists and watches from memory, so that the server needs no cache in front
   * of it. Unlike a scope, it can be closed, which ends the watches that were opened through it, and nothing else.
   */
  served?(options?: ServedOptions): Storage<T>;
  /** Statistics, if lists and watches are answered from memory: of a cache, or of what {@link served} has returned. */
  readonly cacheStats?: CacherStats | undefined;
  /** Ends all watches, and rejects pending and later requests with CLOSED. Does nothing on a scope. */
  close(): Promise<void>;
}
