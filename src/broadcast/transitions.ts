import type { ErrorEvent, WatchEvent } from '../watch/event.ts';
import type { Watch } from '../watch/watch.ts';
import { filter } from './filter.ts';
import { objectKey } from './key.ts';

/** What an event is about: the object of all its types but ERROR. */
export type ObjectOf<E extends WatchEvent> = Exclude<E, ErrorEvent>['object'];

/** How {@link filterTransitions} knows whether an object matched before its change. */
export interface TransitionOptions<E extends WatchEvent> {
  /**
   * The object as it was before this change, or undefined if there was none or it is not known. With it, nothing is remembered
   * between events. A DELETED event without one is judged by its own object, the last state that there was.
   */
  previousOf?: ((event: E) => ObjectOf<E> | undefined) | undefined;
  /** Without `previousOf`: what tells objects apart. Default: namespace and name in `object.metadata`; objects of several kinds may share those. */
  keyOf?: ((event: E) => unknown) | undefined;
}

/**
 * Follows the objects that match `predicate`: what begins to match is ADDED, what ceases to is DELETED (**Transitional**).
 *
 * | matched before | matches now | passed on |
 * |---|---|---|
 * | no  | yes | ADDED |
 * | yes | yes | MODIFIED |
 * | yes | no, or it was deleted | DELETED, with its last matching content under the resourceVersion of this change |
 * | no  | no, or it was deleted | nothing |
 *
 * Only the two objects count, not the event's own type: MODIFIED of something unknown that matches is ADDED, ADDED of something
 * that is in already is MODIFIED. An event that needs no change is passed on as it is; otherwise a new one with `type` and
 * `object` alone is made. Objects are never changed: a new resourceVersion goes on a plain copy of the object and its metadata.
 * BOOKMARK, ERROR, and types of people's own pass through.
 *
 * Without `previousOf` it holds the last matching object of each key that is in: memory grows with the objects that match. It
 * knows only what passed through it, so it must see a watch from its initial state on; and a `predicate` that changes its mind
 * without a change of the object goes unnoticed until the next one. An object without a name is refused with INVALID_ARGUMENT,
 * and, like everything that `predicate`, `previousOf` or `keyOf` throw, ends this watch alone; see {@link filter} for the rest.
 *
 * Upstream: the event typing of the cacher and of the storage watcher, which `watch.Filter` cannot do.
 */
export function filterTransitions<E extends WatchEvent>(
  watch: Watch<E>,
  predicate: (object: ObjectOf<E>) => boolean,
  options: TransitionOptions<E> = {},
): Watch<E> {
  const { previousOf, keyOf = objectKey } = options;
  const within = new Map<unknown, ObjectOf<E>>();
  return filter(watch, (event) => {
    const { type, object } = event;
    const deleted = type === 'DELETED';
    if (!deleted && type !== 'ADDED' && type !== 'MODIFIED') return event;
    let key: unknown;
    let before: boolean;
    let last: ObjectOf<E> | undefined;
    if (previousOf) {
      last = previousOf(event) ?? (deleted ? object : undefined);
      before = last !== undefined && predicate(last);
    } else {
      key = keyOf(event);
      last = within.get(key);
      before = within.has(key);
    }
    if (!deleted && predicate(object)) {
      if (!previousOf) within.set(key, object);
      return retyped(event, before ? 'MODIFIED' : 'ADDED', object);
    }
    within.delete(key);
    return before ? retyped(event, 'DELETED', withVersionOf(last, object)) : undefined;
  });
}

function retyped<E extends WatchEvent>(event: E, type: string, object: unknown): E {
  // It is one of the types that E has for its objects, which TypeScript cannot follow.
  return event.type === type && event.object === object ? event : ({ type, object } as E);
}

/** An object under the resourceVersion of a change: itself if it has that already, or if there is none to give. */
function withVersionOf(object: unknown, change: unknown): unknown {
  const metadata = (object as Versioned)?.metadata;
  const resourceVersion = (change as Versioned)?.metadata?.resourceVersion;
  if (metadata == null || resourceVersion === undefined || metadata.resourceVersion === resourceVersion) return object;
  return { ...(object as object), metadata: { ...metadata, resourceVersion } };
}

type Versioned = { metadata?: { resourceVersion?: unknown } | null };
