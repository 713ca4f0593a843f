/**
 * A cache in front of a storage: a collection (collection/collection.ts) that follows it. It serves any number of watches and
 * lists without asking the storage for each. It is itself a storage, so it can replace one anywhere; writes pass through.
 *
 *                      create, update, delete
 *      ApiServer ------------------------------------------> storage
 *          |                                                    |
 *          | list, watch                       one list, then one watch (feed.ts)
 *          v                                                    v
 *      watches, views <------------------------------------ collection: state and log, one version
 *
 * **Fresh when asked.** A read without a version asks the storage for its newest version, and waits until the cache has reached
 * it; meanwhile, the storage is asked for progress. A read that accepts any version does not ask the storage.
 *
 * **Told.** As long as the storage can resume from the last version, watches do not notice its failures. If it cannot
 * (410), they get everything that is known and then end with 410, because nobody knows what happened in between.
 *
 * docs/storage.md lists the deliberate differences from upstream. Upstream: `storage/cacher`.
 */
import { type KubernetesObject, versionOf } from '../../cache/object.ts';
import { isPromise } from '../../watch/abort.ts';
import { checkOptions, invalid, requireMethod } from '../../watch/errors.ts';
import type { Backing } from '../backend.ts';
import type { ListedPart, ListedState, ListSource } from '../collection/lists.ts';
import type { Part } from '../collection/router.ts';
import type { FieldReader } from '../collection/view.ts';
import { CollectionScope, partStats, type Watches } from '../collection/watches.ts';
import { checkKey, checkPrefix } from '../keys.ts';
import { checkCreate, checkDelete, checkUpdate, parseVersion, SERVED_NAMES } from '../requests.ts';
import type {
  CacherStats,
  CreateOptions,
  CreatingOptions,
  DeleteOptions,
  GetOptions,
  KeysOptions,
  ScopeOptions,
  ServedOptions,
  Storage,
  UpdateOptions,
} from '../storage.ts';
import { type CacherOptions, Engine, toSettings } from './engine.ts';
import { upstreamOf } from './upstream.ts';

interface CacherScopeParts<T extends KubernetesObject> {
  readonly engine: Engine<T>;
  /** The prefix of its keys in the cacher. */
  readonly prefix: string;
  /** The same part of the storage. */
  readonly storage: Storage<T>;
  readonly reader: FieldReader<T>;
  /** Its watches. Default: those of the cacher. */
  readonly watches?: Watches<T> | undefined;
}

/** The part of a `Cacher` whose keys begin with a prefix. The whole is the part whose prefix is empty. */
class CacherScope<T extends KubernetesObject = KubernetesObject> extends CollectionScope<T> implements Storage<T> {
  protected readonly engine: Engine<T>;
  readonly #storage: Storage<T>;

  constructor({ engine, prefix, storage, reader, watches = engine.watches }: CacherScopeParts<T>) {
    const { collection } = engine;
    super({ collection, source: new ScopeSource({ engine, storage, prefix }), watches, prefix, reader });
    this.engine = engine;
    this.#storage = storage;
  }

  get backing(): Backing | undefined {
    return this.#storage.backing;
  }

  /** Without a version, it reads from the storage, which takes no longer than asking for its version. */
  async get(key: string, options: GetOptions = {}): Promise<T | undefined> {
    const { resourceVersion, signal } = checkOptions(options, ['resourceVersion', 'signal']);
    const { engine } = this;
    engine.pending.check(signal);
    checkKey(key);
    const version = parseVersion(resourceVersion);
    if (!resourceVersion) return this.#known(key, await engine.pending.until(this.#storage.get(key, { signal }), signal));
    await engine.ready(signal);
    if (version !== undefined) await engine.reach(version, signal);
    return this.#cached(key);
  }

  async create(key: string, object: T, options: CreateOptions = {}): Promise<T> {
    return this.#write(checkCreate(options).signal, (storage) => storage.create(key, this.#fitting(key, object), options));
  }

  update(key: string, change: (current: T | undefined) => T | Promise<T>, options: CreatingOptions<T>): Promise<T>;
  update(key: string, change: (current: T) => T | Promise<T>, options?: UpdateOptions<T>): Promise<T>;
  async update(key: string, change: (current: T) => T | Promise<T>, options: UpdateOptions<T> = {}): Promise<T> {
    const { cached = this.#hint(key), signal } = checkUpdate(change, options);
    const { keyOf } = this.engine.upstream;
    const fitting = (current: T): T | Promise<T> => {
      const changed = change(current);
      return isPromise(changed)
        ? Promise.resolve(changed).then((object) => this.#fitting(key, object))
        : this.#fitting(key, changed);
    };
    const all = cached === undefined ? options : { ...options, cached };
    return this.#write(signal, (storage) => storage.update(key, keyOf ? fitting : change, all));
  }

  async delete(key: string, options: DeleteOptions<T> = {}): Promise<T> {
    const { cached = this.#hint(key), signal } = checkDelete(options);
    return this.#write(signal, (storage) => storage.delete(key, { ...options, ...(cached && { cached }) }));
  }

  currentVersion(options: { readonly signal?: AbortSignal | undefined } = {}): Promise<string> {
    return this.#write(options.signal, (storage) => storage.currentVersion(options));
  }

  /** The storage's keys; none if it cannot list them. */
  keys(options: KeysOptions): Promise<readonly string[]> {
    return this.#write(options.signal, async (storage) => (await storage.keys?.(options)) ?? []);
  }

  /** The storage's answer, if it has one; otherwise, every version up to its newest may be its own. */
  hasGiven(version: string): Promise<boolean> {
    return this.#write(undefined, async (storage) => {
      if (storage.hasGiven) return storage.hasGiven(version);
      const parsed = parseVersion(version);
      return parsed === undefined || this.engine.compareVersions(parsed, await storage.currentVersion()) <= 0;
    });
  }

  /** The storage's answer. */
  checkHealth(): Promise<void> {
    return this.#write(undefined, async (storage) => storage.checkHealth?.());
  }

  /** Sends the cache's version to every watch that allows BOOKMARKs, once the cache has reached the storage's current version. */
  async requestProgress(): Promise<void> {
    const { engine } = this;
    await engine.ready(undefined);
    await engine.freshness.wait(await engine.pending.until(this.#storage.currentVersion(), undefined));
    engine.watchGroups.requestProgress(this.parts.prefix);
  }

  scope<U extends KubernetesObject = T>(prefix: string, options: ScopeOptions<U> = {}): Storage<U> {
    const { fields } = checkOptions(options, ['fields']);
    const engine = this.engine as unknown as Engine<U>;
    const whole = this.parts.prefix + checkPrefix(prefix);
    const reader = fields ? engine.collection.readerOf(fields, whole) : (this.parts.reader as unknown as FieldReader<U>);
    const watches = this.parts.watches as unknown as Watches<U>;
    return new CacherScope<U>({ engine, prefix: whole, storage: this.#storage.scope<U>(prefix, options), reader, watches });
  }

  served(options: ServedOptions = {}): Storage<T> {
    const { engine, parts } = this;
    const { prefix, reader } = parts;
    const watches = engine.watchGroups.add(checkOptions(options, SERVED_NAMES));
    return new ServedCacherScope<T>({ engine, prefix, storage: this.#storage, reader, watches });
  }

  async #write<R>(signal: AbortSignal | undefined, code: (storage: Storage<T>) => Promise<R>): Promise<R> {
    const { pending } = this.engine;
    pending.check(signal);
    return await pending.until(code(this.#storage), signal);
  }

  /**
   * Returns the object if it may be written. If the storage does not report keys, and `keyOf` returned another key, nobody would
   * find the object here, without any error.
   *
   * @throws {WatchError} INVALID_ARGUMENT if it may not. What `keyOf` throws is passed on.
   */
  #fitting(key: string, object: T): T {
    const { keyOf } = this.engine.upstream;
    const wholeKey = this.parts.prefix + key;
    // The storage itself refuses what is not an object.
    const found = keyOf && typeof object === 'object' && object !== null ? keyOf(object) : wholeKey;
    if (found === wholeKey) return object;
    throw invalid('keyOf(object)', found, `${JSON.stringify(wholeKey)}, under which the object is to be written`);
  }

  #cached(key: string): T | undefined {
    return this.parts.collection.get(this.parts.prefix + key);
  }

  /** The object with which a write may begin without reading it. */
  #hint(key: string): T | undefined {
    return this.engine.readiness.phase === 'ready' ? this.#cached(key) : undefined;
  }

  /** The cache's object, if it is the same state: it may already have been encoded. */
  #known(key: string, object: T | undefined): T | undefined {
    const cached = object && this.#cached(key);
    return cached && versionOf(cached) === versionOf(object) ? cached : object;
  }
}

/** A part that a server serves: its watches are its own, and end with it. */
class ServedCacherScope<T extends KubernetesObject> extends CacherScope<T> {
  readonly #part: Part<T>;

  constructor(parts: CacherScopeParts<T>) {
    super(parts);
    this.#part = this.parts.collection.part(this.parts.prefix);
  }

  get cacheStats(): CacherStats {
    return { ...this.engine.stats, ...partStats(this.parts, this.#part) };
  }

  override async close(): Promise<void> {
    this.engine.watchGroups.end(this.parts.watches);
  }
}

/** What a scope's reads need from the cacher, and from the scope's part of the storage. */
class ScopeSource<T extends KubernetesObject> implements ListSource<T> {
  readonly #engine: Engine<T>;
  readonly #storage: Storage<T>;
  readonly #prefix: string;

  constructor({ engine, storage, prefix }: Pick<CacherScopeParts<T>, 'engine' | 'storage' | 'prefix'>) {
    this.#engine = engine;
    this.#storage = storage;
    this.#prefix = prefix;
  }

  ready(signal: AbortSignal | undefined): void | Promise<void> {
    return this.#engine.ready(signal);
  }

  newest(signal: AbortSignal | undefined): Promise<string> {
    return this.#engine.newest(signal);
  }

  reach(version: string, signal: AbortSignal | undefined): Promise<void> {
    return this.#engine.reach(version, signal);
  }

  /** The objects with the prefix, from the storage. It does not know the cacher's fields, so it cannot select. */
  async elsewhere(resourceVersion: string | undefined, part: ListedPart): Promise<ListedState<T>> {
    const upstream = upstreamOf(this.#storage, this.#engine.settings.keyOf);
    const { entries, ...state } = await upstream.list(resourceVersion, part);
    const prefix = upstream.keyOf ? '' : this.#prefix;
    return { ...state, entries: entries.map(({ key, object }) => ({ key: prefix + key, object })) };
  }
}

/**
 * Keeps a storage's objects in memory, and serves any number of lists and watches from there. It is itself a storage; writes pass
 * through to the one behind it.
 *
 *     const orders = new Cacher<Order>(storage.scope('orders/'), { fields: { 'spec.customer': (order) => order.spec.customer } });
 *     const watch = await orders.watch({ sendInitialEvents: true, fieldSelector: 'spec.customer=ada' });
 *
 * It starts to read the storage immediately. Until it has the state, requests wait for a short time; later, while it cannot
 * follow the storage, they are refused with 429. Closing it does not close the storage.
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
