/**
 * What a change of a key means for a watch with a selector: the object enters, changes or leaves, or the change does not concern
 * it.
 */
import type { KubernetesObject } from '../../cache/object.ts';
import { expired } from '../statuses.ts';
import type { ChangeEvent } from '../storage.ts';
import type { PreviousObjects } from './before.ts';
import { atVersion } from './objects.ts';
import type { KeyEvent, KeyValue } from './wire/messages.ts';

/** How to tell what a change is. */
export interface TransitionOptions<T extends KubernetesObject> {
  readonly objectOf: (kv: KeyValue) => T;
  /** The source of what was there before, if etcd does not send it. */
  readonly before: PreviousObjects<T> | undefined;
  readonly selects: ((object: T) => boolean) | undefined;
}

/**
 * The event of a change; undefined if neither what was there nor what is there is selected.
 *
 * @throws {WatchError} REFUSED with code 500 for values that are not objects, and with 410 if the previous one is needed but
 *   gone.
 */
export function toEvent<T extends KubernetesObject>(
  { deleted, kv, previous: before }: KeyEvent,
  { objectOf, before: known, selects }: TransitionOptions<T>,
): ChangeEvent<T> | undefined {
  const isNew = !deleted && kv.createRevision === kv.modRevision;
  const object = deleted ? undefined : objectOf(kv);
  const previous = isNew ? undefined : (known?.get(kv) ?? objectOf(needed(before, kv)));
  known?.set(kv, object);
  const is = object !== undefined && (!selects || selects(object));
  const was = previous !== undefined && (!selects || selects(previous));
  if (is) {
    if (was) return { type: 'MODIFIED', object, previous };
    return previous === undefined ? { type: 'ADDED', object } : { type: 'ADDED', object, previous };
  }
  return was ? { type: 'DELETED', object: atVersion(previous as T, kv.modRevision), previous: previous as T } : undefined;
}

/** etcd leaves out a previous value that has been compacted. */
function needed(previous: KeyValue | undefined, { modRevision }: KeyValue): KeyValue {
  if (previous === undefined || previous.modRevision === 0n) {
    throw expired(`${modRevision - 1n}`, 'the previous value has been compacted');
  }
  return previous;
}
