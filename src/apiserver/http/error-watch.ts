import type { KubernetesObject } from '../../cache/object.ts';
import type { StorageEvent } from '../../storage/storage.ts';
import { fromAsyncIterable } from '../../watch/pull-watch.ts';
import type { Watch } from '../../watch/watch.ts';
import { statusOf } from '../api-status.ts';

/** A watch that delivers one error, and ends. */
export function errorWatch(error: unknown): Watch<StorageEvent<KubernetesObject>> {
  async function* events(): AsyncGenerator<StorageEvent<KubernetesObject>> {
    yield { type: 'ERROR', object: statusOf(error).status };
  }
  return fromAsyncIterable(events());
}
