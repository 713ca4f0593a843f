import { invalid } from '../../watch/errors.ts';
import type { WatchEvent } from '../../watch/event.ts';

/**
 * The default key of an event: its object's namespace and name, as in Kubernetes. A namespace that is not a string counts as
 * empty.
 *
 * @throws {WatchError} INVALID_ARGUMENT, naming `keyOf`, if the object has no name.
 */
export function objectKey(event: WatchEvent): string {
  const { object } = event as WatchEvent<string, { metadata?: { namespace?: unknown; name?: unknown } } | null | undefined>;
  const { namespace, name } = object?.metadata ?? {};
  if (typeof name !== 'string') throw invalid('object.metadata.name', name, 'a string; pass keyOf for objects without one');
  return `${typeof namespace === 'string' ? namespace : ''}/${name}`;
}
