import { withVersionOf } from '../../broadcast/filter.ts';
import type { BookmarkEvent, ChangeType, ErrorEvent, ObjectEvent } from '../../watch/event.ts';

/**
 * One change of an informer's state, as in its log. The engine and the fold treat it as an event: `type` says what happened to
 * the object, and `previous` is the object before. A fold of several changes has the `previous` of the first, which is the object
 * that the reader knows.
 */
export interface Change<T> {
  readonly type: ChangeType;
  readonly object: T;
  readonly key: string;
  readonly previous: T | undefined;
  /** Whether the deletion was inferred from a list. */
  readonly finalStateUnknown: boolean;
}

/** A BOOKMARK that only wakes these readers. */
export interface Wake extends BookmarkEvent {
  readonly readers: ReadonlySet<unknown>;
}

/** What is in the log. The BOOKMARK with the annotation ends the initial state. An ERROR tells a reader that it was cut. */
export type LogEvent<T> = Change<T> | BookmarkEvent | Wake | ErrorEvent;

/** Whether an event of the log is a change. */
export function isChange<T>(event: LogEvent<T>): event is Change<T> {
  return 'key' in event;
}

/**
 * What a change is to a reader who sees only the objects that match: an object that starts to match is ADDED, one that
 * stops is DELETED. Undefined: nothing. Only the two objects count, so this also holds for folded changes.
 */
export function transitionOf<T>(
  { type, object, previous }: Change<T>,
  matches: ((object: T) => boolean) | undefined,
): Change<T>['type'] | undefined {
  if (!matches) return type;
  const before = previous !== undefined && matches(previous);
  const now = type !== 'DELETED' && matches(object);
  return now ? (before ? 'MODIFIED' : 'ADDED') : before ? 'DELETED' : undefined;
}

/** An event of the log as a watch delivers it; undefined if it is not for this watch. */
export function toObjectEvent<T>(event: LogEvent<T>, matches: ((object: T) => boolean) | undefined): ObjectEvent<T> | undefined {
  if (!isChange(event)) return event.type === 'BOOKMARK' && !event.object.metadata.annotations ? undefined : event;
  const type = transitionOf(event, matches);
  if (!type) return undefined;
  const { object, previous } = event;
  const left = type === 'DELETED' && matches !== undefined;
  return { type, object: left ? (withVersionOf(previous, object) as T) : object };
}

/**
 * Whether an event counts against the capacity of a reader's queue. A wake-up counts for the readers that it wakes. If `matches`
 * throws, the change counts, and the error is reported when the change is delivered.
 */
export function takesRoom<T>(event: LogEvent<T>, reader: unknown, matches: ((object: T) => boolean) | undefined): boolean {
  if (!isChange(event)) return !('readers' in event) || event.readers.has(reader);
  try {
    return transitionOf(event, matches) !== undefined;
  } catch {
    return true;
  }
}
