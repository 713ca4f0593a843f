/**
 * The second port of this package besides `Watch`: a collection that can be listed and watched. A kube-apiserver's collection,
 * your own server and a test's fake are all a `ListWatcher`, so each can replace another.
 *
 *     list() ----> { items, resourceVersion: '7' }        the state at version 7
 *                                        |
 *     watch({ resourceVersion: '7' }) <--'                every change after version 7, in order
 *
 * What an implementer promises; `LIST_WATCHER_CONTRACT` of `watchmux/testing` checks it:
 * - A list is the state at its `resourceVersion`, and a watch from there delivers every later change once, in order. Its end
 *   hides nothing: a client that resumes at the last version it got misses nothing, and gets nothing twice.
 * - A source that cannot deliver everything after a version says so with code 410: the promise rejects, or the first event is
 *   that ERROR.
 * - A DELETED has the last content of the object, and the version of the deletion.
 * - `sendInitialEvents` begins with the state as ADDED, then one BOOKMARK with the annotation `k8s.io/initial-events-end`, then
 *   changes. A source that cannot do this refuses: `watch` rejects with REFUSED, for example with code 400.
 * - An aborted signal rejects what is pending with its reason, and ends a watch that is open.
 */
import type { ObjectEvent } from '../watch/event.ts';
import type { Watch } from '../watch/watch.ts';

/** A list, or one page of it. Upstream: `metav1.List` with its `ListMeta`. */
export interface List<T> {
  readonly items: readonly T[];
  /** The version at which these were all the objects. Never empty, and the same for all pages of a list. */
  readonly resourceVersion: string;
  /** Present if there are more items: pass it to `list` to get the next page. */
  readonly continue?: string | undefined;
  /** About how many items follow this page, if the server reports it. */
  readonly remainingItemCount?: number | undefined;
  /**
   * The size of the response in bytes, if the source knows it. Used to limit lists with pages; see `maxTotalListBytes` of
   * `listAll`.
   */
  readonly bytes?: number | undefined;
}

/** What a list and a watch have in common. */
interface Selection {
  /** A label selector in Kubernetes' text form, such as `app=web,tier in (a,b)`. Default: everything. */
  readonly labelSelector?: string | undefined;
  /** A field selector in Kubernetes' text form, such as `spec.nodeName=n1`. Default: everything. */
  readonly fieldSelector?: string | undefined;
  /** How `resourceVersion` is meant; the default is the server's. */
  readonly resourceVersionMatch?: ResourceVersionMatch | undefined;
  /** When the server ends the request, in seconds. Default: the server's. */
  readonly timeoutSeconds?: number | undefined;
  /** Aborts what is pending, and ends a watch that is open. */
  readonly signal?: AbortSignal | undefined;
}

/** `NotOlderThan`: that version or any later one. `Exact`: that version and no other. */
export type ResourceVersionMatch = 'Exact' | 'NotOlderThan';

/** Options of {@link ListWatcher.list}. Upstream: `metav1.ListOptions`. */
export interface ListOptions extends Selection {
  /** Absent: the newest state. `0`: any state the server has at hand. Others: see `resourceVersionMatch`. */
  readonly resourceVersion?: string | undefined;
  /** The largest number of items in a page. Default: all. A server may send more. */
  readonly limit?: number | undefined;
  /** The `continue` of the previous page. The other options except `limit` must be those of the first page, without a version. */
  readonly continue?: string | undefined;
}

/** Options of {@link ListWatcher.watch}. Upstream: `metav1.ListOptions`. */
export interface ListWatchOptions extends Selection {
  /**
   * Deliver the changes after this version. Absent, or `0`: begin with the current state as ADDED, in any order, without a
   * BOOKMARK after it.
   */
  readonly resourceVersion?: string | undefined;
  /**
   * Begin with the current state as ADDED, and end it with an annotated BOOKMARK; a source that cannot must reject, not ignore this.
   * `false`: begin without the state, even if there is no version to begin after. Default: neither.
   */
  readonly sendInitialEvents?: boolean | undefined;
  /** Whether the server may send BOOKMARKs. Default: the value of `sendInitialEvents`, which needs one. */
  readonly allowWatchBookmarks?: boolean | undefined;
  /**
   * Looks up objects that the source delivered before, and that have not been changed since. A source that decodes objects can
   * reuse the parts that are the same; it may also ignore this.
   */
  readonly stored?: ObjectLookup | undefined;
  /**
   * Called with the size of each event in bytes, before it is delivered. Used to limit the initial state of a watch; see
   * `maxTotalListBytes` of `Reflector`. A source that does not know it may ignore this.
   */
  readonly onBytes?: ((bytes: number) => void) | undefined;
}

/**
 * Returns the stored object with this name; the namespace is empty for objects without one. An object that a source delivers may
 * share parts with it or, if nothing has changed, be the same object.
 */
export type ObjectLookup = (name: string, namespace: string) => unknown;

/**
 * A collection that can be listed and watched. A watch from a list's version delivers every later change once, in order; a source
 * that cannot do this answers 410. `LIST_WATCHER_CONTRACT` in `watchmux/testing` checks what an implementation must do. Upstream:
 * `cache.ListerWatcher`.
 */
export interface ListWatcher<T> {
  /** Resolves with a list or a page of it. A refusal rejects with a WatchError with code REFUSED, which has the Status. */
  list(options?: ListOptions): Promise<List<T>>;
  /** Resolves with a watch once the source has accepted it. A refusal rejects as in `list`. */
  watch(options?: ListWatchOptions): Promise<Watch<ObjectEvent<T>>>;
}

/**
 * Where a reflector puts the objects: a {@link Store}, a queue of deltas, or an implementation of your own. Called in the order
 * in which things happened. Upstream: `cache.ReflectorStore`.
 */
export interface ReflectorStore<T> {
  /** `resourceVersion` is that of the change, if the event has one outside of its object; see `fromHub`. */
  add(object: T, resourceVersion?: string): void;
  update(object: T, resourceVersion?: string): void;
  delete(object: T, resourceVersion?: string): void;
  /** These are now all the objects. */
  replace(list: Iterable<T>, resourceVersion: string): void;
  /**
   * Called with each object of a list, or of the initial state of a watch, as soon as it has arrived. `replace` gets the result
   * in its place, so a store can drop what it does not need before the list is complete. Must not throw: `replace` may.
   */
  readonly prepare?: ((object: T) => T) | undefined;
  /** Process every stored object again. */
  resync?(): void;
  /**
   * Looks up objects that are stored as they were delivered, so that a source can reuse them. See {@link
   * ListWatchOptions.stored}.
   */
  stored?(name: string, namespace: string): unknown;
  /** All changes up to this version have been reported. */
  bookmark?(resourceVersion: string): void;
  /** Resolves when there is room for more, so that a slow consumer can hold the source back. */
  room?(signal?: AbortSignal): Promise<void>;
}
