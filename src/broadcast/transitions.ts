import { callable, checkOptions, invalid } from '../watch/errors.ts';
import type { ObjectOf, WatchEvent } from '../watch/event.ts';
import type { Watch } from '../watch/watch.ts';
import { filter } from './filter.ts';
import { objectKey } from './policies/key.ts';

/** Options of {@link filterTransitions}: how it knows whether an object matched before its change. */
export interface TransitionOptions<E extends WatchEvent> {
  /**
   * Returns the object as it was before this change, or undefined if there was none or it is unknown. With this option nothing is
   * remembered between events. A DELETED event without a previous object is judged by its own, which is the last state. Not for a
   * watch that drops events: the object before a change must be the one that this watch delivered last. A fold of `coalesce` has
   * the `previous` of its first event, which is that object.
   */
  previousOf?: ((event: E) => ObjectOf<E> | undefined) | undefined;
  /**
   * Without `previousOf`: returns the key of an object. Default: namespace and name in `object.metadata`, which objects of
   * several kinds may share.
   */
  keyOf?: ((event: E) => unknown) | undefined;
}

/**
 * Follows the objects that match `predicate`: an object that starts to match is ADDED, one that stops is DELETED
 * (**Transitional**).
 *
 * | matched before | matches now | result |
 * |---|---|---|
 * | no  | yes | ADDED |
 * | yes | yes | MODIFIED |
 * | yes | no, or it was deleted | DELETED, with its last matching content and the resourceVersion of this change |
 * | no  | no, or it was deleted | nothing |
 *
 * Only the two objects count, not the event's type: MODIFIED of an unknown object that matches becomes ADDED, ADDED of a known
 * one becomes MODIFIED. An event that needs no change is passed on as it is; otherwise a new event with only `type` and `object`
 * is created. Objects are never modified: a new resourceVersion goes on a plain, shallow copy of the object and its metadata.
 * BOOKMARK, ERROR and custom types pass through.
 *
 * Without `previousOf` the last matching object of each key is kept, so memory grows with the number of matching objects. It
 * knows only the events that pass through, so the watch must start at the initial state. If `predicate` changes its answer for an
 * unchanged object, that shows at the object's next change. An object without a name fails with INVALID_ARGUMENT. That error, and
 * any error thrown by `predicate`, `previousOf` or `keyOf`, ends this watch only. For everything else see {@link filter}.
 *
 * @throws {WatchError} INVALID_ARGUMENT for anything but a watch and a function, and for an invalid option.
 *
 * Upstream: the event typing of the cacher and of the storage watcher, which `watch.Filter` cannot do.
 */
export function filterTransitions<E extends WatchEvent>(
  watch: Watch<E>,
  predicate: (object: ObjectOf<E>) => boolean,
  options: TransitionOptions<E> = {},
): Watch<E> {
  const { previousOf, keyOf = objectKey } = checkOptions(options, ['previousOf', 'keyOf']);
  if (typeof predicate !== 'function') throw invalid('predicate', predicate, 'a function');
  callable('previousOf', previousOf);
  callable('keyOf', keyOf);
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
  // The type is one of those that E has for its objects, which TypeScript cannot infer.
  return event.type === type && event.object === object ? event : ({ type, object } as E);
}

/** Returns the object with the resourceVersion of a change; the same object if it has that version or the change has none. */
export function withVersionOf(object: unknown, change: unknown): unknown {
  const metadata = (object as Versioned)?.metadata;
  const resourceVersion = (change as Versioned)?.metadata?.resourceVersion;
  if (metadata == null || resourceVersion === undefined || metadata.resourceVersion === resourceVersion) return object;
  return { ...(object as object), metadata: { ...metadata, resourceVersion } };
}

type Versioned = { metadata?: { resourceVersion?: unknown } | null };
