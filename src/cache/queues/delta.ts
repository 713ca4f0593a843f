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
