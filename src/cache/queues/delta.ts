/** A change of one object, as a reflector tells it. `Replaced` is from a list, `Sync` from a resync. Upstream: `cache.Delta`. */
export type Delta<T> = StateDelta<T> | DeletedDelta<T>;

/** There is this object now. */
export interface StateDelta<T> {
  readonly type: 'Added' | 'Updated' | 'Replaced' | 'Sync';
  readonly key: string;
  readonly object: T;
}

/** There is no such object any more. */
export interface DeletedDelta<T> {
  readonly type: 'Deleted';
  readonly key: string;
  /** Its last state or, if `finalStateUnknown`, the last one that was known, which may be an old one. */
  readonly object: T;
  /** Whether the deletion was inferred from a list instead of observed. */
  readonly finalStateUnknown: boolean;
}

/** A deletion that was inferred. Stores and queues take it in the place of an object. Upstream: `DeletedFinalStateUnknown`. */
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
  /** All objects there are, by key, in the order of the list. */
  readonly objects: ReadonlyMap<string, T>;
  readonly resourceVersion: string;
}

/** Look again at every object there is. */
export interface SyncAllDelta {
  readonly type: 'SyncAll';
}

/** Everything up to this version has been told. */
export interface BookmarkDelta {
  readonly type: 'Bookmark';
  readonly resourceVersion: string;
}

/** What a {@link RealFifo} delivers. The last three only without `knownObjects`. */
export type RealDelta<T> = Delta<T> | ReplacedAllDelta<T> | SyncAllDelta | BookmarkDelta;

/** The objects that a consumer of deltas has, such as a `Store`: a list is compared with them to find what was deleted. */
export interface KnownObjects<T> {
  keys(): Iterable<string>;
  /** A key without an object counts as not known. */
  get(key: string): T | undefined;
}
