/**
 * A storage over a {@link Backend}: all that a storage promises and that does not depend on what keeps the bytes.
 *
 *     scope, selectors, pages ---> Parts ---------> range
 *     create, update, delete ----> writes --------> get, txn           backed-writes.ts
 *     watch ---------------------> BackedWatch ---> range, changesAfter    backed-watch.ts
 *
 * A list is read in parts, so that no answer gets too long, all at the revision of the first part:
 *
 *     [prefix, end) at 7:   a b c d | e f g h i j | k ...       a part is as many objects as are likely to have 8 MiB
 *
 * With a selector, parts are read until the page is full. Upstream: `GetList` of storage/etcd3.
 */
import type { List, ListOptions } from '../cache/list-watcher.ts';
import type { KubernetesObject } from '../cache/object.ts';
import { compareDecimals } from '../cache/versions.ts';
import { type Clock, systemClock } from '../watch/clock.ts';
import { callable, checkOptions, invalid, isWatchError, type WatchError, wholeNumber } from '../watch/errors.ts';
import { reporter } from '../watch/failures.ts';
import type { Watch } from '../watch/watch.ts';
import { type OpenWatch, openWatch } from './backed-watch.ts';
import { deleteObject, type Target, updateObject } from './backed-writes.ts';
import type { Backend, Backing, Entry } from './backend.ts';
import { continueAfter, encodeContinue } from './continue.ts';
import { checkKey, checkPrefix } from './keys.ts';
import { CREATE_NAMES, DELETE_NAMES, KEYS_NAMES, LIST_NAMES, UPDATE_NAMES, WATCH_NAMES } from './option-names.ts';
import { Pending } from './pending.ts';
import { type ListPlan, parseVersion, planList, planWatch, predicateOf } from './selection.ts';
import { alreadyExists, badRequest, expiredContinue, foreign } from './statuses.ts';
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

/** What all scopes of one storage share. */
export interface Shared {
  readonly backend: Backend;
  readonly clock: Clock;
  readonly random: () => number;
  readonly onError: (error: unknown) => void;
  /** What waits for something other than the backend. */
  readonly pending: Pending;
  readonly watches: Set<OpenWatch>;
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

/** @throws {WatchError} 410 if a state is older than it must be: then the version was not given by this storage. */
function checkReached(revision: string, atLeast: string | undefined): void {
  if (atLeast !== undefined && compareDecimals(revision, atLeast) < 0) throw foreign(atLeast, revision);
}

const PART_BYTES = 8_388_608;
const FIRST_PART = 500;
const MAX_PART = 10_000;
/** How often a list is begun if its revision is compacted meanwhile. */
const MAX_ATTEMPTS = 3;

/** What is to be read. */
export interface PartOptions {
  readonly prefix: string;
  readonly plan: ListPlan;
  /** Any state will do. */
  readonly anyState?: boolean | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** One part of a list. */
export interface Part<T> {
  readonly entries: readonly Entry<T>[];
  /** The revision of all parts. */
  readonly revision: string;
  /** How many keys follow. */
  readonly left: number;
  readonly life: unknown;
}

/** Reads a range part by part. */
export class Parts<T extends KubernetesObject> {
  readonly #backend: Backend;
  readonly #options: PartOptions;
  #from: string;
  #after: Entry<T> | undefined;
  #revision: string | undefined;
  #size: number = FIRST_PART;

  constructor(backend: Backend, options: PartOptions) {
    const { prefix, plan } = options;
    this.#backend = backend;
    this.#options = options;
    this.#from = prefix + (plan.from?.start ?? '');
    this.#revision = plan.from?.revision ?? plan.exact;
  }

  /** The next part, of at most `limit` entries. Must not be called if nothing is left after the last part. */
  async next(limit: number): Promise<Part<T>> {
    const { prefix, plan, anyState, signal } = this.#options;
    const revision = this.#revision;
    const request = {
      prefix,
      from: this.#from,
      after: this.#after,
      limit: Math.min(limit, this.#size),
      revision,
      anyState,
      signal,
    };
    const { entries, left, bytes, ...state } = await this.#backend.range<T>(request).catch((error: unknown) => {
      throw plan.from && isWatchError(error, 'REFUSED') && error.status?.code === 410 ? this.#lostPlace() : error;
    });
    if (revision === undefined) checkReached(state.revision, plan.atLeast);
    this.#revision ??= state.revision;
    this.#after = entries.at(-1) ?? this.#after;
    const size = Math.floor((PART_BYTES * entries.length) / Math.max(bytes, 1));
    this.#size = Math.min(Math.max(size, 1), MAX_PART, Math.max(this.#size * 4, FIRST_PART));
    return { entries, revision: this.#revision, left, life: state.life };
  }

  #lostPlace(): WatchError {
    const start = this.#after ? `${this.#after.key}\0` : this.#from;
    return expiredContinue(encodeContinue({ revision: undefined, start: start.slice(this.#options.prefix.length) }));
  }
}

/** Which objects to list, and how many. */
export interface PageOptions<T> extends PartOptions {
  /** 0: all of them. */
  readonly limit: number;
  /** Absent: all of them. */
  readonly selects: ((object: T) => boolean) | undefined;
}

/** Reads a list, or one page of it. If its revision was not asked for and is compacted, it is read again at another one. */
export async function readList<T extends KubernetesObject>(backend: Backend, options: PageOptions<T>): Promise<List<T>> {
  const { exact, from } = options.plan;
  const isAsked = (exact ?? from?.revision) !== undefined;
  for (let attempts = 1; ; attempts++) {
    try {
      return await readPage(backend, options);
    } catch (error) {
      if (isAsked || attempts === MAX_ATTEMPTS || !isWatchError(error, 'REFUSED') || error.status?.code !== 410) throw error;
    }
  }
}

async function readPage<T extends KubernetesObject>(backend: Backend, options: PageOptions<T>): Promise<List<T>> {
  const { prefix, limit, selects } = options;
  const parts = new Parts<T>(backend, options);
  const items: T[] = [];
  for (;;) {
    const wanted = limit === 0 ? Number.POSITIVE_INFINITY : limit - items.length;
    const { entries, revision, left } = await parts.next(selects ? MAX_PART : wanted);
    for (const [at, { key, object }] of entries.entries()) {
      if (selects && !selects(object)) continue;
      items.push(object);
      if (items.length !== limit) continue;
      const rest = left + entries.length - at - 1;
      if (rest === 0) break;
      const next = continueAfter(key.slice(prefix.length), { revision });
      return { items, resourceVersion: revision, continue: next, ...(!selects && { remainingItemCount: rest }) };
    }
    if (left === 0) return { items, resourceVersion: revision };
  }
}
