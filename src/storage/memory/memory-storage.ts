import type { KubernetesObject } from '../../cache/object.ts';
import { isPromise } from '../../watch/abort.ts';
import { checkOptions, WatchError, wholeNumber } from '../../watch/errors.ts';
import { atOnce, inPieces, paceOf, requestPace, type Soon } from '../../watch/fair-queue.ts';
import type { Backing } from '../backend.ts';
import type { Collection } from '../collection/collection.ts';
import type { ListSource } from '../collection/lists.ts';
import type { Part } from '../collection/router.ts';
import { CollectionScope, partStats, type ScopeParts, type Watches } from '../collection/watches.ts';
import { checkKey, checkPrefix } from '../keys.ts';
import {
  checkCreate,
  checkDelete,
  checkNew,
  checkUpdate,
  KEYS_NAMES,
  parseVersion,
  SERVED_NAMES,
  unmetPrecondition,
} from '../requests.ts';
import { alreadyExists, notFound } from '../statuses.ts';
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
import { comparingContent, copying, dropEncoded, gentle, isLarge, type PreparedValue, preparing, type Share } from '../values.ts';
import { MemoryBackend } from './memory-backend.ts';
import { type MemoryStorageOptions, settingsOf, Writer } from './writer.ts';

/**
 * Makes the value to keep, immediately, because the caller owns the object and may change it in the next turn. Only for a
 * server's request, which leaves alone what it has read, is this done in pieces.
 */
function prepare<T extends KubernetesObject>(object: T, signal: AbortSignal | undefined, share?: Share): Soon<PreparedValue<T>> {
  const pace = requestPace(signal);
  const work = preparing(object, share);
  return pace ? inPieces(work, { pace, signal }) : atOnce(work);
}

type MemoryScopeParts<T extends KubernetesObject> = Pick<ScopeParts<T>, 'prefix' | 'watches' | 'reader'>;

/** The part of a `MemoryStorage` whose keys begin with a prefix. The whole is the part whose prefix is empty. */
class MemoryScope<T extends KubernetesObject = KubernetesObject> extends CollectionScope<T> implements Storage<T> {
  /** One collection has objects of every type: the code that writes under a prefix determines their type. */
  protected readonly writer: Writer;

  constructor(writer: Writer, parts: MemoryScopeParts<T>) {
    const { collection } = writer as unknown as { readonly collection: Collection<T> };
    super({ ...parts, collection, source: writer as ListSource<KubernetesObject> as ListSource<T> });
    this.writer = writer;
  }

  get backing(): Backing {
    return { backend: new MemoryBackend(this.writer), prefix: this.parts.prefix };
  }

  async get(key: string, options: GetOptions = {}): Promise<T | undefined> {
    const { resourceVersion, signal } = checkOptions(options, ['resourceVersion', 'signal']);
    this.pending.check(signal);
    const wholeKey = this.parts.prefix + checkKey(key);
    const version = parseVersion(resourceVersion);
    if (version !== undefined) this.writer.reach(version);
    return this.parts.collection.get(wholeKey);
  }

  async create(key: string, object: T, options: CreateOptions = {}): Promise<T> {
    const { ttlSeconds, signal } = checkCreate(options);
    const { writer } = this;
    this.pending.check(signal);
    const wholeKey = this.parts.prefix + checkKey(key);
    checkNew(object);
    if (writer.head(wholeKey)) throw await writer.sure(alreadyExists(key));
    let prepared = prepare(object, signal, gentle.get(object)?.(object));
    if (isPromise(prepared)) {
      prepared = await prepared;
      this.pending.check(signal);
      if (writer.head(wholeKey)) throw await writer.sure(alreadyExists(key));
    }
    const stored = writer.write(wholeKey, prepared, ttlSeconds) as T;
    await writer.safe();
    return stored;
  }

  update(key: string, change: (current: T | undefined) => T | Promise<T>, options: CreatingOptions<T>): Promise<T>;
  update(key: string, change: (current: T) => T | Promise<T>, options?: UpdateOptions<T>): Promise<T>;
  async update(key: string, change: (current: T) => T | Promise<T>, options: UpdateOptions<T> = {}): Promise<T> {
    const { ttlSeconds, createIfMissing = false, signal } = checkUpdate(change, options);
    const { writer } = this;
    const wholeKey = this.parts.prefix + checkKey(key);
    const terms = { pace: paceOf(signal), signal };
    for (;;) {
      this.pending.check(signal);
      const head = writer.head(wholeKey) as T | undefined;
      if (!head && !createIfMissing) throw await writer.sure(notFound(key));
      const unmet = unmetPrecondition(key, head, options);
      if (unmet) throw await writer.sure(unmet);
      // A synchronous change is written in the same turn: nothing can come in between, so it never has to be repeated. Large
      // objects are an exception: to copy, change and write one without a pause would block everybody.
      if (head && isLarge(head)) await terms.pace.heavy?.(signal as AbortSignal);
      const share = head && !isLarge(head) ? gentle.get(change)?.(head) : undefined;
      const copy = share ? head : head && inPieces(copying(head), terms);
      const current = (isPromise(copy) ? await copy : copy) as T;
      const answer = writer.decided(() => change(current));
      const changed = isPromise(answer) ? await this.pending.until(answer, signal) : answer;
      const preparation = prepare(changed, signal, share);
      const prepared = isPromise(preparation) ? await preparation : preparation;
      const compared = head && inPieces(comparingContent(prepared.copy, head), terms);
      const isSame = isPromise(compared) ? await compared : compared;
      this.pending.check(signal);
      if (writer.head(wholeKey) !== head) continue;
      const stored = isSame ? (head as T) : (writer.write(wholeKey, prepared, ttlSeconds) as T);
      await writer.safe();
      return stored;
    }
  }

  async delete(key: string, options: DeleteOptions<T> = {}): Promise<T> {
    const { validate, signal } = checkDelete(options);
    const { writer } = this;
    const wholeKey = this.parts.prefix + checkKey(key);
    for (;;) {
      this.pending.check(signal);
      const head = writer.head(wholeKey) as T | undefined;
      if (!head) throw await writer.sure(notFound(key));
      const unmet = unmetPrecondition(key, head, options);
      if (unmet) throw await writer.sure(unmet);
      const answer = validate && writer.decided(() => validate(head));
      if (isPromise(answer)) await this.pending.until(answer, signal);
      const making = writer.json(head, signal);
      if (isPromise(making)) await making;
      this.pending.check(signal);
      if (writer.head(wholeKey) !== head) continue;
      const last = writer.write(wholeKey, undefined) as T;
      if (making) dropEncoded(head);
      await writer.safe();
      return last;
    }
  }

  async currentVersion(options: { readonly signal?: AbortSignal | undefined } = {}): Promise<string> {
    this.pending.check(checkOptions(options, ['signal']).signal);
    return this.parts.collection.version;
  }

  async hasGiven(version: string): Promise<boolean> {
    this.pending.check(undefined);
    const parsed = parseVersion(version);
    return parsed === undefined || this.writer.hasGiven(parsed);
  }

  async pastVersion(changes: number): Promise<string> {
    this.pending.check(undefined);
    return this.writer.ago(wholeNumber('changes', changes));
  }

  async checkHealth(): Promise<void> {
    this.pending.check(undefined);
    const { failure, settings } = this.writer;
    if (failure) throw new WatchError('CLOSED', 'the journal has failed: open the storage again', { cause: failure.error });
    await settings.journal?.checkHealth?.();
  }

  async keys(options: KeysOptions): Promise<readonly string[]> {
    const { from = '', limit, signal } = checkOptions(options, KEYS_NAMES);
    this.pending.check(signal);
    const { collection, prefix } = this.parts;
    const keys: string[] = [];
    for (const { key } of collection.entries(prefix, prefix + from)) {
      if (keys.push(key.slice(prefix.length)) === limit) break;
    }
    return keys;
  }

  async requestProgress(): Promise<void> {
    this.pending.check(undefined);
    this.writer.watchGroups.requestProgress(this.parts.prefix);
  }

  scope<U extends KubernetesObject = T>(prefix: string, options: ScopeOptions<U> = {}): Storage<U> {
    const { fields } = checkOptions(options, ['fields']);
    const parts = this.parts as unknown as ScopeParts<U>;
    const whole = parts.prefix + checkPrefix(prefix);
    // A reader for each prefix would be kept forever, with its indexes, and clients choose the namespaces that they ask for.
    const reader = fields ? parts.collection.readerOf(fields, whole) : parts.reader;
    return new MemoryScope<U>(this.writer, { watches: parts.watches, prefix: whole, reader });
  }

  served(options: ServedOptions = {}): Storage<T> {
    const { prefix, reader } = this.parts;
    const watches = this.writer.watchGroups.add(checkOptions(options, SERVED_NAMES)) as unknown as Watches<T>;
    return new ServedMemoryScope<T>(this.writer, { watches, prefix, reader });
  }
}

/** A part that a server serves: its watches are its own, and end with it. */
class ServedMemoryScope<T extends KubernetesObject> extends MemoryScope<T> {
  readonly #part: Part<T>;

  constructor(writer: Writer, about: MemoryScopeParts<T>) {
    super(writer, about);
    this.#part = this.parts.collection.part(this.parts.prefix);
  }

  get cacheStats(): CacherStats {
    const phase = this.pending.isClosed ? 'stopped' : 'ready';
    return { phase, generation: 1, ...partStats(this.parts, this.#part), gaps: 0, waiting: 0 };
  }

  override async close(): Promise<void> {
    this.writer.watchGroups.end(this.parts.watches as unknown as Watches<KubernetesObject>);
  }
}

/** The content of a {@link MemoryStorage} at one moment. */
export interface MemoryStorageStats {
  /** The bytes of JSON of all objects. */
  readonly bytes: number;
  /** The number of changes that are kept, and their size in bytes. */
  readonly historyItems: number;
  readonly historyBytes: number;
  /** The number of open watches. */
  readonly watches: number;
}

/**
 * Versioned objects in memory. See {@link Storage} for what a storage promises, and `openMemoryStorage` to keep them in a file.
 *
 *     const storage = new MemoryStorage();
 *     const orders = storage.scope<Order>('orders/');
 *     await orders.create('default/first', { metadata: { name: 'first' }, spec: { amount: 3 } });
 *     for await (const { type, object } of await orders.watch()) ...
 */
export class MemoryStorage<T extends KubernetesObject = KubernetesObject> extends MemoryScope<T> {
  /** @throws {WatchError} INVALID_ARGUMENT for an unknown or invalid option. */
  constructor(options: MemoryStorageOptions<T> = {}) {
    const writer = new Writer(settingsOf(options));
    const watches = writer.watches as Watches<KubernetesObject> as unknown as Watches<T>;
    super(writer, { prefix: '', watches, reader: writer.collection.readerOf<T>(options.fields ?? {}, '') });
  }

  get stats(): MemoryStorageStats {
    const { bytes, watchGroups, collection } = this.writer;
    return { bytes, watches: watchGroups.size, historyItems: collection.log.length, historyBytes: collection.log.bytes };
  }

  /** The oldest version at which lists can be read, and from which watches can begin. */
  get oldestVersion(): string {
    return this.writer.collection.log.base;
  }

  /**
   * Drops the states before a version; default: before the newest. Watches and lists that need them get 410.
   *
   * @throws {WatchError} REFUSED with code 400 for an invalid version, 410 for one that this storage cannot have issued.
   */
  compact(version?: string): void {
    const parsed = parseVersion(version);
    if (parsed !== undefined) this.writer.reach(parsed);
    this.writer.collection.compact(parsed);
  }

  override close(): Promise<void> {
    return this.writer.close();
  }
}
