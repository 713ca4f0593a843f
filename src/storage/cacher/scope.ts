import type { List, ListOptions } from '../../cache/list-watcher.ts';
import { type KubernetesObject, versionOf } from '../../cache/object.ts';
import { isPromise } from '../../watch/abort.ts';
import { callable, checkOptions, invalid, wholeNumber } from '../../watch/errors.ts';
import type { Watch } from '../../watch/watch.ts';
import { checkKey, checkPrefix } from '../keys.ts';
import { CREATE_NAMES, DELETE_NAMES, LIST_NAMES, UPDATE_NAMES, WATCH_NAMES } from '../option-names.ts';
import { parseVersion } from '../selection.ts';
import type {
  CreateOptions,
  DeleteOptions,
  GetOptions,
  KeysOptions,
  ScopeOptions,
  Storage,
  StorageEvent,
  StorageWatchOptions,
  UpdateOptions,
} from '../storage.ts';
import type { Engine } from './engine.ts';
import { listFrom } from './lists.ts';
import { type FieldReader, Selection } from './selection.ts';

/** A part of a cacher, and where it belongs. */
export interface ScopeParts<T extends KubernetesObject> {
  readonly engine: Engine<T>;
  /** What its keys begin with in the cacher. */
  readonly prefix: string;
  /** The same part of the storage. */
  readonly storage: Storage<T>;
  readonly reader: FieldReader<T>;
}

/** The part of a `Cacher` whose keys begin with a prefix. The whole is the part whose prefix is empty. */
export class CacherScope<T extends KubernetesObject = KubernetesObject> implements Storage<T> {
  readonly #parts: ScopeParts<T>;

  constructor(parts: ScopeParts<T>) {
    this.#parts = parts;
  }

  /** Without a version it reads the storage, which is no slower than asking for its version. */
  async get(key: string, options: GetOptions = {}): Promise<T | undefined> {
    const { resourceVersion, signal } = checkOptions(options, ['resourceVersion', 'signal']);
    const { engine, prefix, storage } = this.#parts;
    engine.pending.check(signal);
    checkKey(key);
    const version = parseVersion(resourceVersion);
    if (!resourceVersion) return this.#known(key, await engine.pending.until(storage.get(key, { signal }), signal));
    await engine.ready(signal);
    if (version !== undefined) await engine.freshness.reach(version, signal);
    return engine.core.get(prefix + key);
  }

  async list(options: ListOptions = {}): Promise<List<T>> {
    const { limit = 0, signal } = checkOptions(options, LIST_NAMES);
    const { engine, storage } = this.#parts;
    const { core, freshness, settings, pending } = engine;
    pending.check(signal);
    wholeNumber('limit', limit);
    const selection = this.#select(options);
    await engine.ready(signal);
    return await pending.until(listFrom({ core, freshness, keyOf: settings.keyOf, storage }, selection, options), signal);
  }

  async watch(options: StorageWatchOptions<T> = {}): Promise<Watch<StorageEvent<T>>> {
    const { timeoutSeconds = 0, signal } = checkOptions(options, WATCH_NAMES);
    const { engine, storage } = this.#parts;
    engine.pending.check(signal);
    wholeNumber('timeoutSeconds', timeoutSeconds);
    return await engine.watch(this.#select(options), options, storage);
  }

  async create(key: string, object: T, options: CreateOptions = {}): Promise<T> {
    checkOptions(options, CREATE_NAMES);
    return this.#write(options.signal, (storage) => storage.create(key, this.#placed(key, object), options));
  }

  async update(key: string, change: (current: T) => T | Promise<T>, options: UpdateOptions<T> = {}): Promise<T> {
    const { cached = this.#hint(key), signal } = checkOptions(options, UPDATE_NAMES);
    if (callable('change', change) === undefined) throw invalid('change', change, 'a function');
    const placed = (current: T): T | Promise<T> => {
      const changed = change(current);
      return isPromise(changed)
        ? Promise.resolve(changed).then((object) => this.#placed(key, object))
        : this.#placed(key, changed);
    };
    const all = cached === undefined ? options : { ...options, cached };
    return this.#write(signal, (storage) => storage.update(key, placed, all));
  }

  async delete(key: string, options: DeleteOptions<T> = {}): Promise<T> {
    const { cached = this.#hint(key), signal } = checkOptions(options, DELETE_NAMES);
    return this.#write(signal, (storage) => storage.delete(key, { ...options, ...(cached && { cached }) }));
  }

  currentVersion(options: { readonly signal?: AbortSignal | undefined } = {}): Promise<string> {
    return this.#write(options.signal, (storage) => storage.currentVersion(options));
  }

  /** Passes on what the storage says; none if it does not know. */
  keys(options: KeysOptions): Promise<readonly string[]> {
    return this.#write(options.signal, async (storage) => (await storage.keys?.(options)) ?? []);
  }

  /** What the storage says, if it knows; otherwise, every version up to its newest one may be its own. */
  hasGiven(version: string): Promise<boolean> {
    const { engine } = this.#parts;
    return this.#write(undefined, async (storage) => {
      if (storage.hasGiven) return storage.hasGiven(version);
      const parsed = parseVersion(version);
      return parsed === undefined || engine.compareVersions(parsed, await storage.currentVersion()) <= 0;
    });
  }

  /** Passes on what the storage says. */
  checkHealth(): Promise<void> {
    return this.#write(undefined, async (storage) => storage.checkHealth?.());
  }

  /** Sends the cache's version to every watch that allows BOOKMARKs, once the cache has reached the storage's current version. */
  async requestProgress(): Promise<void> {
    const { engine, storage } = this.#parts;
    await engine.ready(undefined);
    await engine.freshness.wait(await engine.pending.until(storage.currentVersion(), undefined));
    engine.oweAll();
  }

  scope<U extends KubernetesObject = T>(prefix: string, options: ScopeOptions<U> = {}): Storage<U> {
    const { fields } = checkOptions(options, ['fields']);
    const parts = this.#parts as unknown as ScopeParts<U>;
    const { engine } = parts;
    const whole = parts.prefix + checkPrefix(prefix);
    const reader = fields ? engine.readerOf(fields, whole) : parts.reader;
    return new CacherScope<U>({ engine, prefix: whole, storage: parts.storage.scope<U>(prefix, options), reader });
  }

  async close(): Promise<void> {}

  #select({ labelSelector, fieldSelector }: ListOptions): Selection<T> {
    const { prefix, reader } = this.#parts;
    return new Selection(reader, { prefix, labelSelector, fieldSelector });
  }

  async #write<R>(signal: AbortSignal | undefined, code: (storage: Storage<T>) => Promise<R>): Promise<R> {
    const { engine, storage } = this.#parts;
    engine.pending.check(signal);
    return await engine.pending.until(code(storage), signal);
  }

  /**
   * Returns the object if it may be written: if `keyOf` gives another key, nobody would find it here, and no error would say so.
   *
   * @throws {WatchError} INVALID_ARGUMENT if it may not. What `keyOf` throws is passed on.
   */
  #placed(key: string, object: T): T {
    const { engine, prefix } = this.#parts;
    // The storage refuses what is not an object.
    const found = typeof object === 'object' && object !== null ? engine.settings.keyOf(object) : prefix + key;
    if (found === prefix + key) return object;
    throw invalid('keyOf(object)', found, `${JSON.stringify(prefix + key)}, under which the object is to be written`);
  }

  /** The object that a write may begin with instead of a read. */
  #hint(key: string): T | undefined {
    const { engine, prefix } = this.#parts;
    return engine.readiness.phase === 'ready' ? engine.core.get(prefix + key) : undefined;
  }

  /** The cache's object, if it is the same state: its bytes may have been made already. */
  #known(key: string, object: T | undefined): T | undefined {
    const { engine, prefix } = this.#parts;
    const cached = object && engine.core.get(prefix + key);
    return cached && versionOf(cached) === versionOf(object) ? cached : object;
  }
}
