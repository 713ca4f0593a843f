/**
 * A storage over a {@link Backend}: all that a storage promises and that does not depend on what keeps the bytes.
 *
 *     scope, selectors, pages ---> Parts ---------> range             backed-lists.ts
 *     create, update, delete ----> writes --------> get, txn           backed-writes.ts
 *     watch ---------------------> BackedWatch ---> range, changesAfter    backed-watch.ts
 */
import type { List, ListOptions } from '../cache/list-watcher.ts';
import type { KubernetesObject } from '../cache/object.ts';
import { type Clock, systemClock } from '../watch/clock.ts';
import { callable, checkOptions, invalid, wholeNumber } from '../watch/errors.ts';
import { reporter } from '../watch/failures.ts';
import type { Watch } from '../watch/watch.ts';
import { checkReached, readList, type Shared } from './backed-lists.ts';
import { openWatch } from './backed-watch.ts';
import { deleteObject, type Target, updateObject } from './backed-writes.ts';
import type { Backend, Backing } from './backend.ts';
import { checkKey, checkPrefix } from './keys.ts';
import { CREATE_NAMES, DELETE_NAMES, KEYS_NAMES, LIST_NAMES, UPDATE_NAMES, WATCH_NAMES } from './option-names.ts';
import { Pending } from './pending.ts';
import { parseVersion, planList, planWatch, predicateOf } from './selection.ts';
import { alreadyExists, badRequest } from './statuses.ts';
import type {
  CreateOptions,
  DeleteOptions,
  FieldFunctions,
  GetOptions,
  KeysOptions,
  ScopeOptions,
  Storage,
  StorageEvent,
  StorageWatchOptions,
  UpdateOptions,
} from './storage.ts';
import { Draft } from './stored.ts';

/** Options of a {@link BackedStorage}. */
export interface BackedStorageOptions<T> {
  /** What all keys begin with in the backend: nothing, which is the default, or what ends with a slash. */
  readonly prefix?: string | undefined;
  /** The fields that selectors may use in addition to `metadata.name` and `metadata.namespace`. Scopes may have others. */
  readonly fields?: FieldFunctions<T> | undefined;
  /** Default: the host's. */
  readonly clock?: Clock | undefined;
  /** For the jitter of delays; default `Math.random`. */
  readonly random?: (() => number) | undefined;
  /**
   * Called with what a function in `fields` throws, in which case the object is not selected; and with the reason why the backend has
   * ended a watch that it refuses to this storage. Default: `console.error`, once per kind.
   */
  readonly onError?: ((error: unknown) => void) | undefined;
}

/** The keys of a backend that begin with a prefix. */
class BackedScope<T extends KubernetesObject> implements Storage<T> {
  readonly backing: Backing;
  readonly hasGiven?: (version: string) => Promise<boolean>;
  readonly pastVersion?: (changes: number) => Promise<string>;
  readonly checkHealth?: () => Promise<void>;
  readonly #shared: Shared;
  readonly #prefix: string;
  readonly #fields: FieldFunctions<T>;

  constructor(shared: Shared, { prefix, fields }: { prefix: string; fields: FieldFunctions<T> }) {
    const { backend } = shared;
    this.backing = { backend, prefix };
    if (backend.hasGiven) this.hasGiven = async (version) => !!(await backend.hasGiven?.(version));
    if (backend.pastRevision) this.pastVersion = async (changes) => `${await backend.pastRevision?.(changes)}`;
    if (backend.checkHealth) this.checkHealth = async () => backend.checkHealth?.();
    this.#shared = shared;
    this.#prefix = prefix;
    this.#fields = fields;
  }

  async get(key: string, options: GetOptions = {}): Promise<T | undefined> {
    const { resourceVersion, signal } = checkOptions(options, ['resourceVersion', 'signal']);
    const atLeast = parseVersion(resourceVersion);
    const { place, what } = this.#target('get', key, signal);
    const anyState = resourceVersion !== undefined && resourceVersion !== '' && atLeast === undefined;
    const { entry, revision } = await this.#shared.backend.get<T>(place, { anyState, what, signal });
    checkReached(revision, atLeast);
    return entry?.object;
  }

  async list(options: ListOptions = {}): Promise<List<T>> {
    const { resourceVersion = '', limit = 0, signal } = checkOptions(options, LIST_NAMES);
    const { backend, pending } = this.#shared;
    pending.check(signal);
    const plan = planList(options);
    const anyState = resourceVersion !== '' && plan.exact === undefined && plan.atLeast === undefined;
    const selects = this.#selects(options);
    const read = { prefix: this.#prefix, plan, anyState, limit: wholeNumber('limit', limit), selects, signal };
    return readList<T>(backend, read);
  }

  async watch(options: StorageWatchOptions<T> = {}): Promise<Watch<StorageEvent<T>>> {
    const { signal, timeoutSeconds = 0, previousOf } = checkOptions(options, WATCH_NAMES);
    callable('previousOf', previousOf);
    this.#shared.pending.check(signal);
    let plan = planWatch(options);
    const selects = this.#selects(options);
    // Only an explicit false leaves out the state.
    if (options.sendInitialEvents === false && plan.after === undefined) {
      plan = { ...plan, after: await this.currentVersion({ signal }) };
    }
    const open = { prefix: this.#prefix, plan, selects, previousOf };
    return openWatch<T>(this.#shared, open, { signal, timeoutMs: wholeNumber('timeoutSeconds', timeoutSeconds) * 1_000 });
  }

  async create(key: string, object: T, options: CreateOptions = {}): Promise<T> {
    const { ttlSeconds = 0, signal } = checkOptions(options, CREATE_NAMES);
    const { place, what } = this.#target('create', key, signal);
    if (object?.metadata?.resourceVersion) {
      throw badRequest('resourceVersion should not be set on objects to be created');
    }
    const write = { key: place, expected: '0', put: new Draft(object), ttlSeconds: wholeNumber('ttlSeconds', ttlSeconds) };
    const result = await this.#shared.backend.txn<T>({ ...write, what, signal });
    if (!result.succeeded) throw alreadyExists(key);
    return result.object as T;
  }

  async update(key: string, change: (current: T) => T | Promise<T>, options: UpdateOptions<T> = {}): Promise<T> {
    const { ttlSeconds = 0, signal } = checkOptions(options, UPDATE_NAMES);
    if (callable('change', change) === undefined) throw invalid('change', change, 'a function');
    wholeNumber('ttlSeconds', ttlSeconds);
    return updateObject<T>(this.#target('update', key, signal), change, options);
  }

  async delete(key: string, options: DeleteOptions<T> = {}): Promise<T> {
    const { validate, signal } = checkOptions(options, DELETE_NAMES);
    callable('validate', validate);
    return deleteObject<T>(this.#target('delete', key, signal), options);
  }

  async currentVersion(options: { readonly signal?: AbortSignal | undefined } = {}): Promise<string> {
    const { signal } = checkOptions(options, ['signal']);
    this.#shared.pending.check(signal);
    return this.#shared.backend.revision({ signal });
  }

  async keys(options: KeysOptions): Promise<readonly string[]> {
    const { from = '', limit, signal } = checkOptions(options, KEYS_NAMES);
    this.#shared.pending.check(signal);
    const prefix = this.#prefix;
    const request = { prefix, from: prefix + from, limit, keysOnly: true, what: `list the keys of ${prefix}`, signal };
    const { entries } = await this.#shared.backend.range(request);
    return entries.map(({ key }) => key.slice(prefix.length));
  }

  async requestProgress(): Promise<void> {
    this.#shared.pending.check(undefined);
    for (const watch of this.#shared.watches) if (watch.prefix.startsWith(this.#prefix)) watch.requestProgress();
  }

  scope<U extends KubernetesObject = T>(prefix: string, options: ScopeOptions<U> = {}): Storage<U> {
    const { fields = this.#fields as unknown as FieldFunctions<U> } = checkOptions(options, ['fields']);
    return new BackedScope<U>(this.#shared, { prefix: this.#prefix + checkPrefix(prefix), fields });
  }

  async close(): Promise<void> {}

  #target(verb: string, key: string, signal: AbortSignal | undefined): Target {
    this.#shared.pending.check(signal);
    return { shared: this.#shared, key: checkKey(key), place: this.#prefix + key, what: `${verb} ${key}`, signal };
  }

  #selects(options: ListOptions): ((object: T) => boolean) | undefined {
    const predicate = predicateOf<T>(options, this.#fields);
    const { onError } = this.#shared;
    if (predicate.isEmpty) return undefined;
    return (object) => {
      try {
        return predicate.matches(object);
      } catch (error) {
        onError(error);
        return false;
      }
    };
  }
}

/**
 * A storage whose objects are in a backend. See `Storage` for what it promises, and `Backend` for what the backend must.
 *
 *     class MyStorage extends BackedStorage { constructor() { super(new MyBackend()); } }
 */
export class BackedStorage<T extends KubernetesObject = KubernetesObject> extends BackedScope<T> {
  readonly #shared: Shared;

  /** @throws {WatchError} INVALID_ARGUMENT for an unknown or invalid option. */
  constructor(backend: Backend, options: BackedStorageOptions<T> = {}) {
    const { prefix = '', fields = {}, ...given } = checkOptions(options, ['prefix', 'fields', 'clock', 'random', 'onError']);
    const { clock = systemClock, random = Math.random } = given;
    const onError = reporter('storage', { onError: given.onError, clock });
    const shared: Shared = { backend, clock, random, onError, pending: new Pending(), watches: new Set() };
    super(shared, { prefix, fields });
    this.#shared = shared;
  }

  override async close(): Promise<void> {
    const { watches, pending, backend } = this.#shared;
    for (const watch of watches) watch.stop();
    pending.close();
    await backend.close();
  }
}
