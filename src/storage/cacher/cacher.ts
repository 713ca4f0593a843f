/**
 * A cache in front of a storage. It serves any number of watches and lists without asking the storage for each. It is itself a
 * storage, so it can stand wherever one does; writes pass through.
 *
 *                      create, update, delete
 *      ApiServer ------------------------------------------> storage
 *          |                                                    |
 *          | list, watch                       one list, then one watch (feed.ts)
 *          v                                                    v
 *     [ views ] <--- router.ts --- log of changes <------- state by key     one version (core.ts)
 *      one for each selection       the window (history.ts)   (sorted-map.ts)
 *          ^
 *          | place
 *      watches (cache-watch.ts)
 *
 * **State and log are one thing.** The state at version v, and the changes that led to it, are written in one step. A watch
 * begins with the state, or at any version that the log still has, and also joins in one step. Undoing changes gives a past
 * state.
 *
 * **Routed, not filtered.** A change goes only to the views of the scopes and field values that its object has or had. Watches
 * with the same selection share a view: the change is evaluated once for all of them, and they get the same event objects. So an
 * object's bytes, which belong to its identity (encoded.ts), are made once.
 *
 * **Slow watches re-read.** A watch has a place and no queue. Unread changes cost nothing while the window keeps them anyway.
 * Once the window has dropped them, the watch gets an ERROR 410. Nobody waits for a slow watch, and none has a time budget.
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
import type { Storage } from '../storage.ts';
import { Engine } from './engine.ts';
import { type CacherOptions, type CacherStats, toSettings } from './options.ts';
import { CacherScope } from './scope.ts';

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
  readonly #engine: Engine<T>;

  /** @throws {WatchError} INVALID_ARGUMENT for an invalid or unknown option, and for an invalid storage. */
  constructor(storage: Storage<T>, options: CacherOptions<T> = {}) {
    requireMethod('storage', requireMethod('storage', storage, 'requestProgress', 'a Storage'), 'watch', 'a Storage');
    const settings = toSettings(options);
    const engine = new Engine<T>(storage, settings);
    super({ engine, prefix: '', storage, reader: engine.readerOf(settings.fields, '') });
    this.#engine = engine;
  }

  /** Its current state. */
  get stats(): CacherStats {
    return this.#engine.stats;
  }

  /** Resolves when the state is in memory. Rejects with 429 if it cannot be read, and with CLOSED after `close`. */
  ready(options: { readonly signal?: AbortSignal | undefined } = {}): Promise<void> {
    return this.#engine.ready(options.signal);
  }

  /** Drops all past changes, to free memory. Watches that have not read them get a 410. */
  compact(): void {
    this.#engine.core.compact();
  }

  override close(): Promise<void> {
    return this.#engine.close();
  }
}
