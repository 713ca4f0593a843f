/**
 * What one reconcile has deleted, until the caches no longer have it. A server does not say at which version an object was
 * deleted; so the cache is checked after each of its changes, for one object after the other:
 *
 *     delete ---> gone ---> does the cache have this uid? ---- no ---> the next one; after the last the key may run again
 *                                 ^                |
 *                                 '-- next version '-- yes
 */
import { type KubernetesObject, keyOf, metadataOf, versionOf } from '../cache/object.ts';
import { whenAborted } from '../watch/abort.ts';
import type { Clock } from '../watch/clock.ts';
import { getOrMake, WatchError } from '../watch/errors.ts';
import type { ControllerInformer, ReconcileContext } from '../workqueue/controller-options.ts';
import type { KindCache } from './kind-cache.ts';

type AtLeast = ControllerInformer<never>['atLeast'];

/** Any version that is not waited for. */
const DELETED: KubernetesObject = { metadata: { resourceVersion: 'deleted' } };

/** An object that is gone: its uid, and the version at which it was written before by the same reconcile. */
interface Gone {
  readonly key: string;
  readonly uid: string;
  readonly version: string | undefined;
}

export class Departures {
  readonly #clock: Clock;
  readonly #wrote: ReconcileContext['wrote'];
  /** By cache and key, the last object written: a cache may not have it yet. */
  readonly #written: Map<KindCache, Map<string, KubernetesObject>> = new Map();
  /** The deleted objects that are still waited for. */
  readonly #gone: Map<KindCache, Set<Gone>> = new Map();

  constructor(clock: Clock, wrote: ReconcileContext['wrote']) {
    this.#clock = clock;
    this.#wrote = wrote;
  }

  written(cache: KindCache, object: KubernetesObject): void {
    getOrMake(this.#written, cache, () => new Map<string, KubernetesObject>()).set(keyOf(object), object);
  }

  lastWritten(cache: KindCache, key: string): KubernetesObject | undefined {
    return this.#written.get(cache)?.get(key);
  }

  /** Call it before the object with this key is deleted, and the result once it is gone: then the key waits for the cache. */
  of(cache: KindCache, key: string): () => void {
    const written = this.lastWritten(cache, key);
    const { uid } = metadataOf(written ?? cache.informer.store.get(key));
    return () => {
      if (uid) this.#wait(cache, { key, uid, version: versionOf(written) });
    };
  }

  #wait(cache: KindCache, gone: Gone): void {
    const known = this.#gone.get(cache);
    if (known) {
      known.add(gone);
      return;
    }
    const all = new Set([gone]);
    this.#gone.set(cache, all);
    this.#wrote(DELETED, { atLeast: (_version, options) => this.#lose(cache, all, options) });
  }

  async #lose(cache: KindCache, all: Set<Gone>, { signal, timeoutMs = 0 }: Parameters<AtLeast>[1] = {}): Promise<void> {
    const { informer, text } = cache;
    const end = new AbortController();
    const leave = whenAborted(signal, (reason) => end.abort(reason));
    const cancel = this.#clock.schedule(timeoutMs, () => {
      const [first] = all;
      const what = `the cache of ${text} has ${first?.key} ${timeoutMs} ms after it was deleted`;
      end.abort(new WatchError('TIMEOUT', what, { limit: timeoutMs }));
    });
    try {
      for (const gone of all) {
        const { key, uid, version } = gone;
        if (version) await informer.atLeast(version, { signal: end.signal });
        while (metadataOf(informer.store.get(key)).uid === uid) {
          await informer.atLeast(String(BigInt(informer.store.resourceVersion) + 1n), { signal: end.signal });
        }
        all.delete(gone);
      }
    } finally {
      leave();
      cancel();
      this.#gone.delete(cache);
    }
  }
}
