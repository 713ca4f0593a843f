/**
 * A storage over a {@link Backend}: everything that a storage promises and that does not depend on where the bytes are kept.
 *
 *     scope, selectors, pages ---> Parts ---------> range             backed-lists.ts
 *     create, update, delete ----> writes --------> get, txn
 *     watch ---------------------> BackedWatch ---> range, changesAfter    backed-watch.ts
 *
 * A write that depends on the current state reads, decides, and writes if nothing has changed since; otherwise, it decides again:
 *
 *     hint or read ---> preconditions, user code ---> write if the revision is the same ---> done
 *           ^                  | refused                     | it is not
 *           |            by a hint: read                     v
 *           '------------------------------ the current state, from the backend
 *
 * Upstream: `GuaranteedUpdate` and `conditionalDelete` of storage/etcd3, which do not wait between conflicts.
 */
import type { List, ListOptions } from '../cache/list-watcher.ts';
import type { KubernetesObject } from '../cache/object.ts';
import { isPromise } from '../watch/abort.ts';
import { Backoff } from '../watch/backoff.ts';
import { type Clock, systemClock } from '../watch/clock.ts';
import { callable, callables, checkOptions, wholeNumber } from '../watch/errors.ts';
import { reporter } from '../watch/failures.ts';
import { inPieces, type Pace, paceOf } from '../watch/fair-queue.ts';
import type { Watch } from '../watch/watch.ts';
import { checkReached, readList, type ScopeSettings } from './backed-lists.ts';
import { openWatch } from './backed-watch.ts';
import type { Backend, Backing, Entry } from './backend.ts';
import { checkKey, checkPrefix } from './keys.ts';
import { Pending } from './life.ts';
import {
  checkCreate,
  checkDelete,
  checkNew,
  checkUpdate,
  KEYS_NAMES,
  LIST_NAMES,
  parseVersion,
  planList,
  planWatch,
  predicateOf,
  unmetPrecondition,
  WATCH_NAMES,
} from './requests.ts';
import { alreadyExists, notFound } from './statuses.ts';
import type {
  CreateOptions,
  CreatingOptions,
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
import { atVersion, comparingContent, copying, type Draft, drafting, isLarge } from './values.ts';

/** The known state of a key. Revision 0: there is no object. */
interface State<T> {
  readonly object: T | undefined;
  readonly revision: string;
  /** Whether the backend has confirmed it since the write began. */
  readonly isCurrent: boolean;
}

/** One key, and its name in the backend. */
interface Target {
  readonly shared: ScopeSettings;
  readonly key: string;
  readonly wholeKey: string;
  readonly what: string;
  readonly signal: AbortSignal | undefined;
}

/** The result of a decision: an object to write, nothing to write, or a deletion. */
type Decision<T extends KubernetesObject> = { readonly draft: Draft<T> } | { readonly same: true } | { readonly remove: true };
type Decide<T extends KubernetesObject> = (current: T | undefined) => Promise<Decision<T>>;

/** After this many conflicts in a row, a write waits before it retries. */
const PROMPT_CONFLICTS = 3;

async function updateObject<T extends KubernetesObject>(
  target: Target,
  change: (current: T) => T | Promise<T>,
  options: UpdateOptions<T>,
): Promise<T> {
  const { cached, createIfMissing = false, ttlSeconds } = options;
  const decide: Decide<T> = async (current) => {
    if (current === undefined && !createIfMissing) throw notFound(target.key);
    const unmet = unmetPrecondition(target.key, current, options);
    if (unmet) throw unmet;
    const terms = termsOf(target);
    if (current && isLarge(current)) await terms.pace.heavy?.(target.signal as AbortSignal);
    const copy = current && (await inPieces(copying(current), terms));
    const draft = await inPieces(drafting<T>(await asked(target, change(copy as T))), terms);
    const isSame = current !== undefined && (await inPieces(comparingContent(draft.object, current), terms));
    return isSame ? { same: true } : { draft };
  };
  return guarded(target, decide, { cached, ttlSeconds });
}

const termsOf = ({ signal }: Pick<Target, 'signal'>): { pace: Pace; signal: AbortSignal | undefined } => ({
  ...{ pace: paceOf(signal), signal },
});

async function deleteObject<T extends KubernetesObject>(target: Target, options: DeleteOptions<T>): Promise<T> {
  const { validate, cached } = options;
  const decide: Decide<T> = async (current) => {
    if (current === undefined) throw notFound(target.key);
    const unmet = unmetPrecondition(target.key, current, options);
    if (unmet) throw unmet;
    if (validate) await asked(target, validate(current));
    return { remove: true };
  };
  return guarded(target, decide, { cached });
}

async function guarded<T extends KubernetesObject>(
  target: Target,
  decide: Decide<T>,
  { cached, ttlSeconds }: { cached: T | undefined; ttlSeconds?: number | undefined },
): Promise<T> {
  const { shared, wholeKey: key, what, signal } = target;
  const backoff = new Backoff({ minMs: 2, maxMs: 200, factor: 2, random: shared.random });
  let state = hinted(cached) ?? (await readState<T>(target));
  for (let conflicts = 0; ; conflicts++) {
    if (conflicts > PROMPT_CONFLICTS) await shared.pending.pause(backoff.failed({}), { clock: shared.clock, signal });
    const decision = await decided(target, decide, state);
    state = decision.state;
    const { object, revision: expected } = state;
    if ('same' in decision) return object as T;
    const put = 'draft' in decision ? decision.draft : undefined;
    shared.pending.check(signal);
    const result = await shared.backend.txn<T>({ key, expected, put, ttlSeconds, what, signal });
    if (result.succeeded) return put ? (result.object as T) : atVersion(object as T, result.revision);
    state = await stateOf(result.current, signal);
  }
}

/** Decides by the current state. If a hint leads to anything but a write, decides again by the backend's answer. */
async function decided<T extends KubernetesObject>(
  target: Target,
  decide: Decide<T>,
  state: State<T>,
): Promise<Decision<T> & { readonly state: State<T> }> {
  let refusal: { readonly error: unknown } | undefined;
  try {
    const decision = await decide(state.object);
    if (state.isCurrent || !('same' in decision)) return { ...decision, state };
  } catch (error) {
    if (state.isCurrent) throw error;
    target.signal?.throwIfAborted();
    refusal = { error };
  }
  const current = await readState<T>(target);
  if (refusal && current.revision === state.revision) throw refusal.error;
  return { ...(await decide(current.object)), state: current };
}

async function readState<T extends KubernetesObject>({ shared, wholeKey, what, signal }: Target): Promise<State<T>> {
  return stateOf<T>((await shared.backend.get<T>(wholeKey, { what, signal })).entry, signal);
}

async function stateOf<T extends KubernetesObject>(
  entry: Entry<T> | undefined,
  signal: AbortSignal | undefined,
): Promise<State<T>> {
  await entry?.load?.(signal);
  const object = entry?.object;
  return { object, revision: object?.metadata?.resourceVersion ?? '0', isCurrent: true };
}

/** A hint is used only if its version can be one of the backend's. */
function hinted<T extends KubernetesObject>(cached: T | undefined): State<T> | undefined {
  const revision = cached?.metadata?.resourceVersion;
  if (typeof revision !== 'string' || !/^[1-9]\d{0,18}$/.test(revision)) return undefined;
  return { object: cached, revision, isCurrent: false };
}

/** The result of user code. Waits for it until the signal aborts, or the storage is closed. */
function asked<R>({ shared, signal }: Target, answer: R | Promise<R>): R | Promise<R> {
  return isPromise(answer) ? shared.pending.until(answer, signal) : answer;
}

/** Options of a {@link BackedStorage}. */
export interface BackedStorageOptions<T> {
  /** The prefix of all keys in the backend: empty, which is the default, or ending with a slash. */
  readonly prefix?: string | undefined;
  /** The fields that selectors may use in addition to `metadata.name` and `metadata.namespace`. Scopes may have others. */
  readonly fields?: FieldFunctions<T> | undefined;
  /** Default: the host's. */
  readonly clock?: Clock | undefined;
  /** For the jitter of delays; default `Math.random`. */
  readonly random?: (() => number) | undefined;
  /**
   * Called with errors thrown by functions in `fields`, in which case the object is not selected, and with the reason why the
   * backend ended a watch that it refuses to this storage. Default: `console.error`, once per kind.
   */
  readonly onError?: ((error: unknown) => void) | undefined;
}

/** The keys of a backend that begin with a prefix. */
class BackedScope<T extends KubernetesObject> implements Storage<T> {
  readonly backing: Backing;
  readonly hasGiven?: (version: string) => Promise<boolean>;
  readonly pastVersion?: (changes: number) => Promise<string>;
  readonly checkHealth?: () => Promise<void>;
  readonly #shared: ScopeSettings;
  readonly #prefix: string;
  readonly #fields: FieldFunctions<T>;

  constructor(shared: ScopeSettings, { prefix, fields }: { prefix: string; fields: FieldFunctions<T> }) {
    const { backend } = shared;
    this.backing = { backend, prefix };
    if (backend.hasGiven) this.hasGiven = async (version) => !!(await backend.hasGiven?.(version));
    if (backend.pastRevision) this.pastVersion = async (changes) => `${await backend.pastRevision?.(changes)}`;
    if (backend.checkHealth) this.checkHealth = async () => backend.checkHealth?.();
    this.#shared = shared;
    this.#prefix = prefix;
    this.#fields = callables('fields', fields);
  }

  async get(key: string, options: GetOptions = {}): Promise<T | undefined> {
    const { resourceVersion, signal } = checkOptions(options, ['resourceVersion', 'signal']);
    const atLeast = parseVersion(resourceVersion);
    const { wholeKey, what } = this.#target('get', key, signal);
    const anyState = resourceVersion !== undefined && resourceVersion !== '' && atLeast === undefined;
    const { entry, revision } = await this.#shared.backend.get<T>(wholeKey, { anyState, what, signal });
    checkReached(revision, atLeast);
    await entry?.load?.(signal);
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
    // Only an explicit false omits the state.
    if (options.sendInitialEvents === false && plan.after === undefined) {
      plan = { ...plan, after: await this.currentVersion({ signal }) };
    }
    const open = { prefix: this.#prefix, plan, selects, previousOf };
    return openWatch<T>(this.#shared, open, { signal, timeoutMs: wholeNumber('timeoutSeconds', timeoutSeconds) * 1_000 });
  }

  async create(key: string, object: T, options: CreateOptions = {}): Promise<T> {
    const { ttlSeconds, signal } = checkCreate(options);
    const { wholeKey, what } = this.#target('create', key, signal);
    checkNew(object);
    const put = await inPieces(drafting(object), termsOf({ signal }));
    this.#shared.pending.check(signal);
    const write = { key: wholeKey, expected: '0', put, ttlSeconds };
    const result = await this.#shared.backend.txn<T>({ ...write, what, signal });
    if (!result.succeeded) throw alreadyExists(key);
    return result.object as T;
  }

  update(key: string, change: (current: T | undefined) => T | Promise<T>, options: CreatingOptions<T>): Promise<T>;
  update(key: string, change: (current: T) => T | Promise<T>, options?: UpdateOptions<T>): Promise<T>;
  async update(key: string, change: (current: T) => T | Promise<T>, options: UpdateOptions<T> = {}): Promise<T> {
    const checked = checkUpdate(change, options);
    return updateObject<T>(this.#target('update', key, checked.signal), change, checked);
  }

  async delete(key: string, options: DeleteOptions<T> = {}): Promise<T> {
    const { signal } = checkDelete(options);
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
    return { shared: this.#shared, key: checkKey(key), wholeKey: this.#prefix + key, what: `${verb} ${key}`, signal };
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
 * A storage whose objects are in a backend. See `Storage` for what it promises, and `Backend` for what it requires.
 *
 *     class MyStorage extends BackedStorage { constructor() { super(new MyBackend()); } }
 */
export class BackedStorage<T extends KubernetesObject = KubernetesObject> extends BackedScope<T> {
  readonly #shared: ScopeSettings;

  /** @throws {WatchError} INVALID_ARGUMENT for an unknown or invalid option. */
  constructor(backend: Backend, options: BackedStorageOptions<T> = {}) {
    const { prefix = '', fields = {}, ...given } = checkOptions(options, ['prefix', 'fields', 'clock', 'random', 'onError']);
    const { clock = systemClock, random = Math.random } = given;
    const onError = reporter('storage', { onError: given.onError, clock });
    const shared: ScopeSettings = { backend, clock, random, onError, pending: new Pending(), watches: new Set() };
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
