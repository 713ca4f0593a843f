/**
 * The port of everything that keeps objects: a `ListWatcher` that can write. Memory, etcd and the cacher in front of either are all
 * a `Storage`, so each can stand where another does.
 *
 *     create, update, delete ---> [ revision 7 | 8 | 9 ... ] ---> list, get: the state at a revision
 *                                                           '---> watch: every change after a revision, in order
 *
 * One storage has one revision, a decimal number that grows with every write, for all of its keys. `scope` cuts out the keys that
 * begin with a prefix: a resource, or a namespace of it. What is in one scope is not seen in another, but both share the revision.
 *
 * What an implementer promises, beside the promises of a `ListWatcher`; `STORAGE_CONTRACT` of `watchmux/testing` checks it:
 * - A write is one step: it happens whole, at one revision that no other write has, or not at all and its promise rejects. Only
 *   where the connection broke before the answer came may it have happened all the same; the error then says so (code TIMEOUT, or
 *   that of the transport).
 * - Linearizable: `get` and `list` without a version, and the state that `update` and `delete` decide by, contain every write that
 *   was answered before they began.
 * - Objects that come out have `metadata.resourceVersion`, the revision of their last write; what goes in need not have it.
 *   Objects are values: what is put in is copied, and what comes out must not be changed.
 * - A key is relative to the scope: not empty, without an empty, `.` or `..` segment between slashes, at most 1,024 characters.
 *   Lists are in the order of keys, by UTF-16 code unit.
 *
 * Refusals reject with a WatchError of code REFUSED, whose `status.code` is: 404 NotFound; 409 AlreadyExists (create) or Conflict
 * (preconditions); 410 Expired (a version before the oldest kept one, or a `continue` of such); 504 Timeout with the cause
 * ResourceVersionTooLarge (a version that has not come yet); 400 BadRequest (a version, a key, a selector or a `continue` that is
 * none); 413 RequestEntityTooLarge; 429 TooManyRequests (not ready, or full). A watch from a version that is too old may also
 * resolve, and deliver the ERROR 410 first. See `statuses.ts`, which makes them.
 *
 * Upstream: `storage.Interface` of k8s.io/apiserver.
 */
import type { List, ListOptions, ListWatcher, ListWatchOptions } from '../cache/list-watcher.ts';
import type { KubernetesObject } from '../cache/object.ts';
import type { BookmarkEvent, ErrorEvent, WatchEvent } from '../watch/event.ts';
import type { Watch } from '../watch/watch.ts';

/** A change as a storage tells it: with what was there before, where there was something. */
export interface ChangeEvent<T> extends WatchEvent<'ADDED' | 'MODIFIED' | 'DELETED', T> {
  /** The object before this change, as it was written. Present for MODIFIED and DELETED, and for what a selector made an ADDED. */
  readonly previous?: T | undefined;
}

/** What a watch of a storage delivers. Fits where an `ObjectEvent` is expected. */
export type StorageEvent<T> = ChangeEvent<T> | BookmarkEvent | ErrorEvent;

/** Options of {@link Storage.watch}. */
export interface StorageWatchOptions<T> extends ListWatchOptions {
  /**
   * Tells what was delivered under a key last, of all that the caller has taken: it keeps the whole state, as a cache does. A storage
   * that would have to read what was there before each change need not, and takes `previous` from here; it may also ignore this, and
   * does with a selector. Do not take events before those before them are in that state.
   */
  readonly previousOf?: ((key: string) => T | undefined) | undefined;
}

/**
 * What must hold of the object that is there, or else an update or a deletion rejects with 409 Conflict. Upstream:
 * `storage.Preconditions`.
 */
export interface Preconditions {
  readonly uid?: string | undefined;
  readonly resourceVersion?: string | undefined;
}

/** Options of {@link Storage.get}. */
export interface GetOptions {
  /** Absent: the newest state. `0`: any state at hand. Others: not older than that. Upstream: `GetOptions.ResourceVersion`. */
  readonly resourceVersion?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Options of {@link Storage.create}. */
export interface CreateOptions {
  /** The object is deleted by itself after so long, to the second. Default 0: never. */
  readonly ttlSeconds?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Options of {@link Storage.update}: preconditions, and what else there is. */
export interface UpdateOptions<T> extends CreateOptions, Preconditions {
  /**
   * What the caller believes to be there, with its version: the first attempt is made with it instead of a read. If it turns out
   * to be old, the change is tried again with what is really there. Upstream: `cachedExistingObject`.
   */
  readonly cached?: T | undefined;
  /** Call `change` with undefined, and create, if there is nothing under the key. Default false: reject with 404. */
  readonly createIfMissing?: boolean | undefined;
}

/** Options of {@link Storage.delete}: preconditions, and what else there is. */
export interface DeleteOptions<T> extends Preconditions {
  /** Called with what is there; throws to refuse. Called again if that has changed meanwhile. */
  readonly validate?: ((current: T) => void | Promise<void>) | undefined;
  /** As in {@link UpdateOptions}. */
  readonly cached?: T | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** The fields that a field selector may name beside `metadata.name` and `metadata.namespace`, and how to read them. */
export type FieldFunctions<T> = Readonly<Record<string, (object: T) => string | undefined>>;

/** Options of {@link Storage.scope}. */
export interface ScopeOptions<T> {
  /** Default: those of the storage that the scope is cut out of. */
  readonly fields?: FieldFunctions<T> | undefined;
}

/** A collection that can be listed, watched and written. See the top of this file for what it promises. */
export interface Storage<T extends KubernetesObject = KubernetesObject> extends ListWatcher<T> {
  /** Resolves with the object under a key, or with undefined if there is none. */
  get(key: string, options?: GetOptions): Promise<T | undefined>;
  list(options?: ListOptions): Promise<List<T>>;
  watch(options?: StorageWatchOptions<T>): Promise<Watch<StorageEvent<T>>>;
  /**
   * Resolves with the object as it was stored, with its version. Rejects with 409 AlreadyExists if the key is taken, and with 400
   * BadRequest if the object has a `metadata.resourceVersion`: whoever creates cannot have read one.
   */
  create(key: string, object: T, options?: CreateOptions): Promise<T>;
  /**
   * Reads, calls `change` with what is there, and writes its result if nothing has changed meanwhile; otherwise begins again. So
   * `change` may be called several times and must have no side effects. What it throws rejects, and nothing is written. If its
   * result equals what is there, nothing is written either, and no event follows. What `change` is given is its own to alter; the
   * version in its result means nothing. A write without `ttlSeconds` ends the time to live that there was. Upstream:
   * `GuaranteedUpdate`.
   */
  update(key: string, change: (current: T) => T | Promise<T>, options?: UpdateOptions<T>): Promise<T>;
  /** Resolves with the last content of the object, at the version of its deletion. */
  delete(key: string, options?: DeleteOptions<T>): Promise<T>;
  /** The revision of the newest write that is answered for, of any scope. Upstream: `GetCurrentResourceVersion`. */
  currentVersion(options?: { readonly signal?: AbortSignal | undefined }): Promise<string>;
  /**
   * Rejects, with the reason, if no write can succeed any more although reads are answered: the disk of a journal has failed.
   * What a storage without this method answers for is what `currentVersion` tells.
   */
  checkHealth?(): Promise<void>;
  /**
   * Sends every open watch that allows BOOKMARKs one that has the current revision, in order with events. A cache before this
   * storage learns by it that it misses nothing. Upstream: `RequestWatchProgress`.
   */
  requestProgress(): Promise<void>;
  /** The part of this storage whose keys begin with `prefix`, which must end with `/`. Its keys are those behind the prefix. */
  scope<U extends KubernetesObject = T>(prefix: string, options?: ScopeOptions<U>): Storage<U>;
  /** Ends all watches, and rejects what is pending and what is asked later with CLOSED. Of a scope: does nothing. */
  close(): Promise<void>;
}
