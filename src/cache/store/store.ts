/**
 * A store holds the current objects of a collection by key, in memory. Reads are synchronous, and so are writes: each is one step,
 * and either happens as a whole or throws and changes nothing.
 *
 *     object --transform--> --keyOf--> key --examine (indexes)--> |  set, all at once
 *                     user code: may throw                        |  nothing here can
 *
 * Invariants
 * - No user code runs between the first and the last change of a write. User code that a store calls must not write to that
 *   store: such a write is refused.
 * - Objects are shared with all readers. Treat them as read-only.
 */

import { readConditions } from '../../selectors/label-parser.ts';
import type { LabelSelector } from '../../selectors/label-selector.ts';
import { isPromise, verdictOf } from '../../watch/abort.ts';
import { callable, checkOptions, checkText, invalid, requireMethod, WatchError } from '../../watch/errors.ts';
import type { ReflectorStore } from '../list-watcher.ts';
import { type KubernetesObject, keyOf, metadataOf, namespaceOf, versionOf } from '../object.ts';

/** Throws INVALID_ARGUMENT for a list that cannot be iterated. */
export function checkIterable(list: Iterable<unknown>): void {
  if (typeof (list as Partial<Iterable<unknown>> | null | undefined)?.[Symbol.iterator] !== 'function') {
    throw invalid('list', list, 'an iterable of objects');
  }
}

/**
 * A transform that throws INVALID_ARGUMENT instead of returning something that could be mistaken for no object. Checks that it
 * is a function.
 */
export function checkedTransform<T>(transform: ((object: T) => T) | undefined): ((object: T) => T) | undefined {
  return (
    callable('transform', transform) &&
    ((object) => {
      const kept = (transform as (object: T) => T)(object);
      if (kept === undefined || isPromise(kept)) throw invalid('transform', kept, 'an object');
      return kept;
    })
  );
}

/** Options of a {@link Store}. */
export interface StoreOptions<T> {
  /** The key of an object; default {@link keyOf}: namespace and name. */
  keyOf?: ((object: T) => string) | undefined;
  /**
   * Called once for each object before it is stored; the result, an object and not a promise, is stored instead. The key is the
   * original object's. For a reflector, it is called for each object of a list as it arrives.
   */
  transform?: ((object: T) => T) | undefined;
}

/** Which objects {@link Store.list} returns. Default: all. */
export interface StoreListOptions<T> {
  /** Only objects in this namespace; the empty string: only those without a namespace. */
  namespace?: string | undefined;
  /** Only objects whose labels this selects: a text such as `app=web,tier in (a,b)`, or what `parseLabelSelector` returns. */
  labelSelector?: string | LabelSelector | undefined;
  /** Only objects for which this returns true. */
  filter?: ((object: T) => boolean) | undefined;
}

/** One change of {@link Store.transaction}. */
export type StoreChange<T> =
  | { readonly type: 'add' | 'update'; readonly object: T }
  | { readonly type: 'delete'; readonly object: T | DeletedFinalStateUnknown<T> };

/** A change that {@link Store.transaction} could not apply. */
export interface FailedChange {
  /** Its index in the transaction, from 0. */
  readonly at: number;
  readonly error: unknown;
}

/**
 * The current objects of a collection in memory, by key. Reads and writes are synchronous; a write either happens as a whole, or
 * throws and changes nothing. Objects are shared with all readers: treat them as read-only. Upstream: `cache.Store`, `NewStore`.
 *
 * Errors of `keyOf`, `transform` and index functions are thrown unchanged by the write that called them, and change nothing.
 */
export class Store<T> implements ReflectorStore<T> {
  /** The key of an object, whether it is in the store or not. */
  readonly keyOf: (object: T) => string;
  readonly #transform: ((object: T) => T) | undefined;
  #objects: Map<string, T> = new Map();
  #version: string = '';
  #writing: boolean = false;

  /** @throws {WatchError} INVALID_ARGUMENT for an invalid or unknown option. */
  constructor(options: StoreOptions<T> = {}) {
    const { keyOf: own, transform } = checkOptions(options, ['keyOf', 'transform']);
    this.keyOf = callable('keyOf', own) ?? (keyOf as (object: KubernetesObject) => string as (object: T) => string);
    this.#transform = checkedTransform(transform);
    takesPrepared(Store.prototype.replace);
  }

  /**
   * Transforms an object of a list as soon as it has arrived; only `replace` understands the result, so there is none in a
   * class that overrides it. See `ReflectorStore`.
   */
  get prepare(): ((object: T) => T) | undefined {
    if (!this.#transform || !isPreparing(this)) return undefined;
    return (object) => this.write(() => this.toPrepared(object)) as unknown as T;
  }

  /** Number of objects. */
  get size(): number {
    return this.#objects.size;
  }

  /** The version of the last write or bookmark that had one; empty before. */
  get resourceVersion(): string {
    return this.#version;
  }

  /** The object with this key. */
  get(key: string): T | undefined {
    return this.#objects.get(key);
  }

  /** All keys, as a new array. */
  keys(): string[] {
    return [...this.#objects.keys()];
  }

  /**
   * The objects that match, as a new array.
   *
   * @throws {WatchError} INVALID_SELECTOR for an invalid selector.
   */
  list(options: StoreListOptions<T> = {}): T[] {
    const { namespace, labelSelector, filter } = checkOptions(options, ['namespace', 'labelSelector', 'filter']);
    const selects = labelFilter(labelSelector);
    const found = namespace === undefined ? [...this.#objects.values()] : this.inNamespace(namespace);
    const selected = selects ? found.filter(selects) : found;
    return filter === undefined ? selected : selected.filter((object) => verdictOf('filter', filter(object)));
  }

  /** Stores an object, whether or not there is one with its key. */
  add(object: T): void {
    this.write(() => this.#put(object));
  }

  /** The same as `add`. */
  update(object: T): void {
    this.add(object);
  }

  /** Removes the object with this one's key, if there is one. Also accepts inferred deletions. */
  delete(object: T | DeletedFinalStateUnknown<T>): void {
    this.write(() => this.#remove(object));
  }

  /** Replaces all objects of the store with these, in one step. Of several with the same key, the last one counts. */
  replace(list: Iterable<T>, resourceVersion: string): void {
    checkIterable(list);
    this.write(() => {
      const before = this.#objects;
      const after = new Map<string, T>();
      const examined = new Map<string, unknown>();
      for (const object of list) {
        const [key, kept] = this.toPrepared(object).entry();
        after.set(key, kept);
        // An object that stays is not examined again: this is what a relist without changes costs.
        if (before.get(key) === kept) examined.delete(key);
        else examined.set(key, this.examine(kept));
      }
      for (const key of before.keys()) if (!after.has(key)) this.changed(key, undefined);
      for (const [key, values] of examined) this.changed(key, values);
      this.#objects = after;
      this.#version = resourceVersion;
    });
  }

  /** Applies changes in order, in one step as far as readers can tell. Returns those that failed; the others are applied. */
  transaction(changes: readonly StoreChange<T>[]): FailedChange[] {
    requireMethod('changes', changes, 'entries', 'an array of changes');
    return this.write(() => {
      const failed: FailedChange[] = [];
      for (const [at, change] of changes.entries()) {
        try {
          if (change.type === 'delete') this.#remove(change.object);
          else this.#put(change.object);
        } catch (error) {
          failed.push({ at, error });
        }
      }
      return failed;
    });
  }

  /** Records that nothing else has changed up to this version. */
  bookmark(resourceVersion: string): void {
    this.#version = resourceVersion;
  }

  /** The objects of a namespace. */
  protected inNamespace(namespace: string): T[] {
    return [...this.#objects.values()].filter((object) => namespaceOf(object) === namespace);
  }

  /** The key of an object. User code, so it may throw. */
  protected keyFor(object: T): string {
    return checkText('keyOf', this.keyOf(object));
  }

  /** What is stored for an object. User code, so it may throw. */
  protected transformed(object: T): T {
    return this.#transform ? this.#transform(object) : object;
  }

  /** What user code returns for an object, or returned when the object arrived. */
  protected toPrepared(object: T | Prepared<T>): Prepared<T> {
    if (object instanceof Prepared) return object;
    let key: string | undefined;
    try {
      key = this.keyFor(object);
      const isStored = this.isStored(key, object);
      return new Prepared(key, isStored ? object : this.transformed(object), { isStored });
    } catch (error) {
      return new Prepared(key, object, { failure: { error } });
    }
  }

  /** Whether this is the state that is stored. Default: not known, so false. */
  protected isStored(_key: string, _object: T): boolean {
    return false;
  }

  /** Stores what `transformed` and `examine` have returned. */
  protected set(key: string, object: T, examined: unknown): void {
    this.#objects.set(key, object);
    this.changed(key, examined);
  }

  /** Removes an object, if there is one. */
  protected drop(key: string): void {
    if (this.#objects.delete(key)) this.changed(key, undefined);
  }

  /** Calls user code for an object before it is stored. May throw: nothing has changed yet. */
  protected examine(_object: T): unknown {
    return undefined;
  }

  /** Called with what `examine` has returned, or undefined for an object that is removed. Must not throw. */
  protected changed(_key: string, _examined: unknown): void {}

  /** All keys and objects, for a subclass. */
  protected entries(): Iterable<readonly [string, T]> {
    return this.#objects;
  }

  /** Whether a write is calling user code. */
  protected get writing(): boolean {
    return this.#writing;
  }

  /** Runs one write. */
  protected write<R>(code: () => R): R {
    if (this.#writing) throw new WatchError('INVALID_ARGUMENT', 'a function that a store calls must not change that store');
    this.#writing = true;
    try {
      return code();
    } finally {
      this.#writing = false;
    }
  }

  #put(object: T): void {
    const key = this.keyFor(object);
    const kept = this.transformed(object);
    this.set(key, kept, this.examine(kept));
    this.#version = versionOf(kept) || this.#version;
  }

  #remove(target: T | DeletedFinalStateUnknown<T>): void {
    const key = isDeletedFinalStateUnknown<T>(target) ? target.key : this.keyOf(target);
    this.drop(key);
    // An inferred deletion has no version of its own, and that of its object is an older one.
    this.#version = versionOf(target) || this.#version;
  }
}

/**
 * Whether an object has the labels that a selector selects; undefined if all have. Throws INVALID_SELECTOR for an invalid
 * selector.
 */
export function labelFilter(selector: string | LabelSelector | undefined): ((object: unknown) => boolean) | undefined {
  if (selector === undefined) return undefined;
  if (typeof selector === 'string') {
    const conditions = readConditions(selector);
    if (conditions.length === 0) return undefined;
    return (object) => {
      const { labels } = metadataOf(object);
      return conditions.every((condition) => condition.matches(labels));
    };
  }
  requireMethod('labelSelector', selector, 'matches', 'the text of a label selector, or one that was parsed');
  return selector.isEmpty ? undefined : (object) => selector.matches(metadataOf(object).labels);
}

/**
 * An object of a list that has arrived before the rest of the list: the result of user code, or its error. Unneeded parts are
 * already gone, so a list of large objects that become small needs little memory.
 */
export class Prepared<T> {
  /** Undefined if `keyOf` has thrown. */
  readonly key: string | undefined;
  /** What will be stored; the original, if user code has thrown. */
  readonly object: T;
  /** It is the state that is already stored. */
  readonly isStored: boolean;
  readonly failure: { readonly error: unknown } | undefined;

  constructor(key: string | undefined, object: T, more: { isStored?: boolean; failure?: { readonly error: unknown } } = {}) {
    this.key = key;
    this.object = object;
    this.isStored = more.isStored ?? false;
    this.failure = more.failure;
  }

  /** Its key and what will be stored. Throws the error of user code, if any. */
  entry(): readonly [key: string, object: T] {
    if (this.failure) throw this.failure.error;
    return [this.key as string, this.object];
  }
}

const REPLACES: WeakSet<object> = new WeakSet<object>();

/**
 * Marks the `replace` of a class as one that understands prepared objects. One that overrides it gets plain objects. Called by
 * the constructor: in a static block, it would keep classes in bundles that do not use them.
 */
export function takesPrepared(replace: object): void {
  REPLACES.add(replace);
}

/** Whether the `replace` of a store is marked. */
export function isPreparing({ replace }: { readonly replace: object }): boolean {
  return REPLACES.has(replace);
}

/** A change of one object, as a reflector reports it. `Replaced` is from a list, `Sync` from a resync. Upstream: `cache.Delta`. */
export type Delta<T> = StateDelta<T> | DeletedDelta<T>;

/** The object exists, in this state. */
export interface StateDelta<T> {
  readonly type: 'Added' | 'Updated' | 'Replaced' | 'Sync';
  readonly key: string;
  readonly object: T;
}

/** The object no longer exists. */
export interface DeletedDelta<T> {
  readonly type: 'Deleted';
  readonly key: string;
  /** Its last state or, if `finalStateUnknown`, the last known one, which may be outdated. */
  readonly object: T;
  /** Whether the deletion was inferred from a list instead of observed. */
  readonly finalStateUnknown: boolean;
}

/**
 * A deletion that was inferred from a list. Stores and queues accept it instead of an object. Upstream:
 * `DeletedFinalStateUnknown`.
 */
export interface DeletedFinalStateUnknown<T> extends DeletedDelta<T> {
  readonly finalStateUnknown: true;
}

/** Whether a value is a {@link DeletedFinalStateUnknown} rather than an object. */
export function isDeletedFinalStateUnknown<T>(value: T | Delta<T>): value is DeletedFinalStateUnknown<T> {
  const { type, key, finalStateUnknown } = (value ?? {}) as Partial<DeletedFinalStateUnknown<T>>;
  return type === 'Deleted' && finalStateUnknown === true && typeof key === 'string';
}

/** Everything at one version, in one step. Only from a {@link RealFifo} without `knownObjects`. */
export interface ReplacedAllDelta<T> {
  readonly type: 'ReplacedAll';
  /** All objects, by key, in the order of the list. */
  readonly objects: ReadonlyMap<string, T>;
  readonly resourceVersion: string;
}

/** Process every object again. */
export interface SyncAllDelta {
  readonly type: 'SyncAll';
}

/** All changes up to this version have been reported. */
export interface BookmarkDelta {
  readonly type: 'Bookmark';
  readonly resourceVersion: string;
}

/** What a {@link RealFifo} delivers. The last three only without `knownObjects`. */
export type RealDelta<T> = Delta<T> | ReplacedAllDelta<T> | SyncAllDelta | BookmarkDelta;

/** The objects that a consumer of deltas has, for example a `Store`: lists are compared with them to find deletions. */
export interface KnownObjects<T> {
  keys(): Iterable<string>;
  /** A key without an object is unknown. */
  get(key: string): T | undefined;
}
