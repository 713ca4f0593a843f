import { requireMethod } from '../../watch/errors.ts';
import { checkOptions } from '../../watch/options.ts';
import type { StoreListOptions } from '../store/store.ts';

/** What a lister reads from: an informer's store, an `Indexer` or a `Store`. */
export interface Listed<T> {
  get(key: string): T | undefined;
  list(options?: StoreListOptions<T>): T[];
}

/** Which objects a lister returns. Default: all. */
export type ListerOptions<T> = Pick<StoreListOptions<T>, 'labelSelector'>;

/** The objects of one namespace. Upstream: the namespaced listers of client-go. */
export interface NamespaceLister<T> {
  list(options?: ListerOptions<T>): T[];
  get(name: string): T | undefined;
}

/**
 * Reads a store by name and namespace, for stores with the default key. Upstream: `cache.GenericLister`.
 *
 *     const services = new Lister(informer.store);
 *     services.namespace('default').get('kubernetes');
 *
 * An object that does not exist is undefined (upstream: an error 404).
 */
export class Lister<T> {
  readonly #store: Listed<T>;

  /** @throws {WatchError} INVALID_ARGUMENT for anything but a store, or an object with a `store`, such as an informer. */
  constructor(source: Listed<T> | { readonly store: Listed<T> }) {
    const store = (source as { readonly store?: Listed<T> } | undefined)?.store ?? (source as Listed<T>);
    this.#store = requireMethod('store', store, 'list', 'a store or an informer');
  }

  /** The objects that match, in all namespaces. */
  list(options: ListerOptions<T> = {}): T[] {
    return this.#store.list({ labelSelector: checkOptions(options, ['labelSelector']).labelSelector });
  }

  /** The object with this name, for objects without a namespace. */
  get(name: string): T | undefined {
    return this.#store.get(name);
  }

  /** The objects of one namespace. */
  namespace(namespace: string): NamespaceLister<T> {
    return {
      list: (options = {}) =>
        this.#store.list({ namespace, labelSelector: checkOptions(options, ['labelSelector']).labelSelector }),
      get: (name) => this.#store.get(namespace ? `${namespace}/${name}` : name),
    };
  }
}
