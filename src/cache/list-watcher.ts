/**
 * The second port of this package beside `Watch`: a collection that can be listed and watched. A kube-apiserver's collection, a
 * server of one's own and a test's fake are all a `ListWatcher`, so each can stand where another does.
 *
 *     list() ----> { items, resourceVersion: '7' }        the state at version 7
 *                                        |
 *     watch({ resourceVersion: '7' }) <--'                every change after version 7, in order
 *
 * What an implementer promises; `LIST_WATCHER_CONTRACT` of `watchmux/testing` checks it:
 * - A list is the state at its `resourceVersion`, and a watch from there delivers every later change once, in order. Its end
 *   hides nothing: whoever resumes at the last version it got misses nothing, and gets nothing twice.
 * - A source that cannot deliver everything after a version says so with code 410: the promise rejects, or the first event is
 *   that ERROR.
 * - A DELETED has the last content of the object, and the version of the deletion.
 * - `sendInitialEvents` begins with the state as ADDED, then one BOOKMARK with the annotation `k8s.io/initial-events-end`, then
 *   changes. A source that cannot do this refuses.
 * - An aborted signal rejects what is pending with its reason, and ends a watch that is open.
 */
import type { ObjectEvent } from '../watch/event.ts';
import type { Watch } from '../watch/watch.ts';

/** A list, or one page of it. Upstream: `metav1.List` with its `ListMeta`. */
export interface List<T> {
  readonly items: readonly T[];
  /** The version at which these were all. Never empty. All pages of a list have the same. */
  readonly resourceVersion: string;
  /** Present if there are more: pass it to `list` to get the next page. */
  readonly continue?: string | undefined;
  /** About how many items follow after this page, if the server tells. */
  readonly remainingItemCount?: number | undefined;
  /** How many bytes this was on its way, if the source knows. Bounds lists in pages; see `maxTotalListBytes` of `listAll`. */
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
  /** Largest number of items of a page. Default: all. A server may send more. */
  readonly limit?: number | undefined;
  /** The `continue` of the page before. The other options but `limit` must be those of the first page, without a version. */
  readonly continue?: string | undefined;
}

/** Options of {@link ListWatcher.watch}. Upstream: `metav1.ListOptions`. */
export interface ListWatchOptions extends Selection {
  /** Deliver what follows this version. Absent, or `0`: begin with the state as ADDED, in any order, without a BOOKMARK behind it. */
  readonly resourceVersion?: string | undefined;
  /**
   * Begin with the state as ADDED, and end that with an annotated BOOKMARK. `false`: begin without the state, also where there is no
   * version to begin behind. Default: neither.
   */
  readonly sendInitialEvents?: boolean | undefined;
  /** Whether the server may send BOOKMARKs. Default: that of `sendInitialEvents`, which needs one. */
  readonly allowWatchBookmarks?: boolean | undefined;
  /**
   * What a source has delivered before, and nobody has changed since. A source that has to decode objects need not make again what
   * is the same; it may also ignore this.
   */
  readonly stored?: ObjectLookup | undefined;
}

/**
 * Tells which object with this name there is already; the namespace is empty for objects that are in none. An object that a source
 * delivers may share parts with it or, if nothing has changed, be the same.
 */
export type ObjectLookup = (name: string, namespace: string) => unknown;

/** A collection that can be listed and watched. See the top of this file for what it promises. Upstream: `cache.ListerWatcher`. */
export interface ListWatcher<T> {
  /** Resolves with a list or a page of it. A refusal rejects with a WatchError of code REFUSED that carries the Status. */
  list(options?: ListOptions): Promise<List<T>>;
  /** Resolves with a watch once the source has accepted it. A refusal rejects as that of `list` does. */
  watch(options?: ListWatchOptions): Promise<Watch<ObjectEvent<T>>>;
}

/**
 * Where a reflector puts what it learns: a {@link Store}, a queue of deltas, or something of one's own. Called in the order in
 * which things happened. Upstream: `cache.ReflectorStore`.
 */
export interface ReflectorStore<T> {
  /** The version is that of the change, if the event has told one beside its object; see `fromHub`. */
  add(object: T, resourceVersion?: string): void;
  update(object: T, resourceVersion?: string): void;
  delete(object: T, resourceVersion?: string): void;
  /** What there is now is exactly this. */
  replace(list: Iterable<T>, resourceVersion: string): void;
  /** Look again at everything there is. */
  resync?(): void;
  /** What is stored as it was delivered, so that a source need not make it again. See {@link ListWatchOptions.stored}. */
  stored?(name: string, namespace: string): unknown;
  /** Nothing has changed up to this version but what was told before. */
  bookmark?(resourceVersion: string): void;
  /** Resolves when there is room for more, so that a slow consumer holds the source back. */
  room?(signal?: AbortSignal): Promise<void>;
}
