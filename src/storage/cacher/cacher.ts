/**
 * A cache in front of a storage: a collection (collection/collection.ts) that follows it. It serves any number of watches and lists
 * without asking the storage for each. It is itself a storage, so it can stand wherever one does; writes pass through.
 *
 *                      create, update, delete
 *      ApiServer ------------------------------------------> storage
 *          |                                                    |
 *          | list, watch                       one list, then one watch (feed.ts)
 *          v                                                    v
 *      watches, views <------------------------------------ collection: state and log, one version
 *
 * **Fresh when asked.** A read without a version asks the storage for its newest version, and waits until the cache has reached
 * it; meanwhile the storage is asked for progress. A read that accepts any version asks nobody.
 *
 * **Told.** As long as the storage can resume from the last version, watches do not notice its failures. If it cannot (410), they
 * get everything that is known and then end with 410, because nobody knows what happened in between.
 *
 * docs/storage.md lists the deliberate differences from upstream. Upstream: `storage/cacher`.
 */
import type { KubernetesObject } from '../../cache/object.ts';
import { requireMethod } from '../../watch/errors.ts';
import type { CacherStats, Storage } from '../storage.ts';
import { CacherScope } from './cacher-scope.ts';
import { Engine } from './engine.ts';
import { type CacherOptions, toSettings } from './options.ts';

/**
 * Keeps a storage's objects in memory, and serves any number of lists and watches from there. It is itself a storage; writes pass
 * through to the one behind it.
 *
 *     const orders = new Cacher<Order>(storage.scope('orders/'), { fields: { 'spec.customer': (order) => order.spec.customer } });
 *     const watch = await orders.watch({ sendInitialEvents: true, fieldSelector: 'spec.customer=ada' });
 *
 * It starts to read the storage at once. Until it has the state, requests wait for a short time; later, while it cannot follow
 * the storage, they are refused with 429. Closing it does not close the storage.
 */
export class Cacher<T extends KubernetesObject = KubernetesObject> extends CacherScope<T> {
  /** @throws {WatchError} INVALID_ARGUMENT for an invalid or unknown option, and for an invalid storage. */
  constructor(storage: Storage<T>, options: CacherOptions<T> = {}) {
    requireMethod('storage', requireMethod('storage', storage, 'requestProgress', 'a Storage'), 'watch', 'a Storage');
    const settings = toSettings(options);
    const engine = new Engine<T>(storage, settings);
    super({ engine, prefix: '', storage, reader: engine.collection.readerOf(settings.fields, '') });
  }

  /** Its current state. */
  get stats(): CacherStats {
    return this.engine.stats;
  }

  get cacheStats(): CacherStats {
    return this.engine.stats;
  }

  /** Resolves when the state is in memory. Rejects with 429 if it cannot be read, and with CLOSED after `close`. */
  async ready(options: { readonly signal?: AbortSignal | undefined } = {}): Promise<void> {
    await this.engine.ready(options.signal);
  }

  /** Drops all past changes, to free memory. Watches that have not read them get a 410. */
  compact(): void {
    this.engine.collection.compact();
  }

  override close(): Promise<void> {
    return this.engine.close();
  }
}
