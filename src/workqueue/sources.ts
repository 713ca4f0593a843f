import { callable, invalid, requireMethod } from '../watch/errors.ts';
import { checkOptions } from '../watch/options.ts';
import type { ControllerHandler, ControllerInformer, ControllerSource } from './controller-options.ts';

/** Checks what the options of a controller say about an informer, and converts both forms to one. */
export function sourceOf<T>(given: ControllerInformer<T> | ControllerSource<T>): ControllerSource<T> {
  const source =
    given && 'informer' in given ? checkOptions(given, ['informer', 'keysOf', 'filter', 'resyncMs']) : { informer: given };
  requireMethod('informer', source.informer, 'addHandler', 'an Informer');
  callable('keysOf', source.keysOf);
  callable('filter', source.filter);
  return source;
}

/**
 * From a change to the keys that it concerns:
 *
 *     onAdd(object)          ---> keysOf(object)
 *     onUpdate(old, object)  ---> keysOf(old), keysOf(object)     with a new owner, this concerns both
 *     onDelete(object)       ---> keysOf(object)
 *
 * A resync is an update of an object by itself, and is reconciled like any other. What one call of `keysOf` throws is reported,
 * and affects nothing else.
 */
export function enqueuer<T>(
  { informer, keysOf }: ControllerSource<T>,
  { add, failed }: { add(key: string): void; failed(error: unknown, object: T): void },
): ControllerHandler<T> {
  const enqueue = (...states: T[]): void => {
    const keys = new Set<string>(); // a free worker takes a key at once: added twice, it would run twice
    for (const object of new Set(states)) {
      try {
        for (const key of keysOf ? listed(keysOf(object)) : [informer.store.keyOf(object)]) {
          if (!keys.has(key)) add(key);
          keys.add(key);
        }
      } catch (error) {
        failed(error, object);
      }
    }
  };
  return {
    onAdd: (object) => enqueue(object),
    onUpdate: (old, object) => enqueue(old, object),
    onDelete: (object) => enqueue(object),
  };
}

/** A string is also iterable, and a common mistake. */
function listed(keys: readonly string[]): readonly string[] {
  if (!Array.isArray(keys)) throw invalid('keysOf', keys, 'it to return an array of strings');
  return keys;
}
