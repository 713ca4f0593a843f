import { callable, checkOptions, checkText, getOrMake, invalid, isRecord, requireMethod } from '../../watch/errors.ts';
import { namespaceOf } from '../object.ts';
import { Store, type StoreListOptions, type StoreOptions } from './store.ts';

/** Index functions by name. Upstream: `cache.Indexers`. */
export type Indexers<T, Name extends string = string> = Readonly<Record<Name, IndexFunction<T>>>;

/** Options of an {@link Indexer}. */
export interface IndexerOptions<T, Name extends string = string> extends StoreOptions<T> {
  /** The indexes it begins with; more can be added later. */
  indexers?: Indexers<T, Name> | undefined;
}

/** The index that `list({ namespace })` uses. Not a string, so it cannot be the name of another index. */
const NAMESPACE: unique symbol = Symbol('namespace');

/**
 * A {@link Store} with indexes. An object is found by any of the values that an index function returns for it. Reading an index
 * costs its result, not the size of the store; so does `list({ namespace })`, from its second call on.
 *
 * The names of indexes are part of its type, so the compiler finds a misspelt one:
 *
 *     const pods = new Indexer({ indexers: { node: (pod: Pod) => [pod.spec.nodeName] } });
 *     pods.byIndex('node', 'n1');
 *
 * Upstream: `cache.Indexer`, `NewIndexer`. If an index function throws, only the write that called it fails (upstream: the
 * process ends).
 */
export class Indexer<T, Name extends string = string> extends Store<T> {
  readonly #indexes: Map<string | symbol, ObjectIndex<T>> = new Map();

  /** @throws {WatchError} INVALID_ARGUMENT for an invalid or unknown option. */
  constructor(options: IndexerOptions<T, Name> = {}) {
    const { keyOf, transform, indexers } = checkOptions(options, ['keyOf', 'transform', 'indexers']);
    super({ keyOf, transform });
    if (indexers !== undefined) this.addIndexers(indexers);
  }

  /**
   * Adds indexes, even while objects are stored. If it throws, none is added. Returns this indexer, whose type then also has the
   * new names.
   *
   * @throws {WatchError} INVALID_ARGUMENT for a name that exists, and for anything but functions. What an index function throws.
   */
  addIndexers<More extends string>(indexers: Indexers<T, More>): Indexer<T, Name | More> {
    if (!isRecord(indexers)) throw invalid('indexers', indexers, 'an object of functions');
    const added = Object.entries<IndexFunction<T>>(indexers);
    for (const [name, indexFunction] of added) {
      if (this.#indexes.has(name)) throw invalid('indexers', name, 'a name that no index has yet');
      callable(`indexers.${name}`, indexFunction ?? null);
    }
    this.#build(added);
    return this as Indexer<T, string> as Indexer<T, Name | More>;
  }

  /** The names of its indexes, as a new array. */
  get indexNames(): Name[] {
    return [...this.#indexes.keys()].filter((name) => typeof name === 'string') as Name[];
  }

  /** The objects under a value of an index, as a new array. Upstream: `ByIndex`. */
  byIndex(name: Name, value: string): T[] {
    return this.#objects(this.#index(name).keys(value));
  }

  /** The keys under a value of an index, as a new array. Upstream: `IndexKeys`. */
  indexKeys(name: Name, value: string): string[] {
    return [...this.#index(name).keys(value)];
  }

  /** The values of an index that at least one object has, as a new array. Upstream: `ListIndexFuncValues`. */
  indexValues(name: Name): string[] {
    return [...this.#index(name).values()];
  }

  /** The objects that share a value of an index with this one, each once. This one need not be stored. Upstream: `Index`. */
  index(name: Name, object: T): T[] {
    const index = this.#index(name);
    return this.#objects(new Set(index.valuesOf(object).flatMap((value) => [...index.keys(value)])));
  }

  protected override inNamespace(namespace: string): T[] {
    // User code called by a write may read, but no index is built meanwhile.
    if (this.writing) return super.inNamespace(namespace);
    if (!this.#indexes.has(NAMESPACE)) this.#build([[NAMESPACE, (object) => [namespaceOf(object)]]]);
    return this.#objects(this.#index(NAMESPACE).keys(namespace));
  }

  protected override examine(object: T): unknown {
    return Array.from(this.#indexes.values(), (index) => index.valuesOf(object));
  }

  protected override changed(key: string, examined: unknown): void {
    const values = examined as readonly (readonly string[])[] | undefined;
    let at = 0;
    for (const index of this.#indexes.values()) index.set(key, values?.[at++]);
  }

  #build(added: readonly (readonly [string | symbol, IndexFunction<T>])[]): void {
    this.write(() => {
      const built = added.map(([name, indexFunction]) => {
        const index = new ObjectIndex(String(name), indexFunction);
        for (const [key, object] of this.entries()) index.set(key, index.valuesOf(object));
        return [name, index] as const;
      });
      for (const [name, index] of built) this.#indexes.set(name, index);
    });
  }

  #index(name: string | symbol): ObjectIndex<T> {
    const index = this.#indexes.get(name);
    if (!index) throw invalid('index', name, `one of ${this.indexNames.join(', ') || 'none: there is no index'}`);
    return index;
  }

  #objects(keys: Iterable<string>): T[] {
    return Array.from(keys, (key) => this.get(key) as T);
  }
}

/** Returns the values under which an object is found in an index. Not called again until the object is replaced. */
export type IndexFunction<T> = (object: T) => readonly string[];

/**
 * One index: the keys by value, and the values by key. The values are kept, so an index function is called once per object: one
 * that throws or changes its result cannot leave a key behind.
 *
 *     values  'default/a' -> ['n1', 'n2']         keys  'n1' -> { 'default/a', 'default/b' }
 *
 * Invariants: a key is under a value if and only if the value is among those of the key. No value has an empty set.
 */
class ObjectIndex<T> {
  readonly #name: string;
  readonly #function: IndexFunction<T>;
  readonly #keys: Map<string, Set<string>> = new Map();
  readonly #values: Map<string, readonly string[]> = new Map();

  constructor(name: string, indexFunction: IndexFunction<T>) {
    this.#name = name;
    this.#function = indexFunction;
  }

  /** The values of an object, in a new array. User code, so it may throw. */
  valuesOf(object: T): readonly string[] {
    const values: unknown = this.#function(object);
    if (!Array.isArray(values)) throw invalid(`index ${this.#name}`, values, 'an array of strings');
    for (const value of values) checkText(`index ${this.#name}`, value);
    return values.slice();
  }

  /** Replaces the values of a key. Undefined, or none, removes it. */
  set(key: string, values: readonly string[] = []): void {
    for (const value of this.#values.get(key) ?? []) {
      const keys = this.#keys.get(value);
      keys?.delete(key);
      if (keys?.size === 0) this.#keys.delete(value);
    }
    if (values.length === 0) this.#values.delete(key);
    else this.#values.set(key, values);
    for (const value of values) {
      getOrMake(this.#keys, value, () => new Set<string>()).add(key);
    }
  }

  /** The keys under a value. */
  keys(value: string): Iterable<string> {
    return this.#keys.get(value) ?? [];
  }

  /** All values that have a key. */
  values(): Iterable<string> {
    return this.#keys.keys();
  }
}

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
