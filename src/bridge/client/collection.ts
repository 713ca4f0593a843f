/**
 * The objects of a source by key, and views of them: what a selector lets through, in order.
 *
 *     events ---> ObjectFold: a Map, and the keys that have changed since the last flush        one for all who share it
 *                     '------> View: rows in order, brought up to date when it is read              one per selector, order and limit
 *
 * A view whose fold has moved by one flush takes out the rows whose keys have changed, and puts back those that match, each at its
 * place: O(rows) cheap steps, and O(log rows) comparisons per change. After more than one flush it is rebuilt.
 *
 * Invariants
 * - An unchanged object keeps its identity, even across a new snapshot, and so does the array of items if no item changed.
 * - The order is total: objects that `sort` finds equal are ordered by key. So equal states look the same.
 */

import { deciding } from '../../watch/abort.ts';
import { merge } from '../../watch/bisect.ts';
import { callable, checkOptions, invalid, isPlain, isRecord, wholeNumber } from '../../watch/errors.ts';
import type { ChangeType, WatchEvent } from '../../watch/event.ts';
import { identityOf, type SharedOptions, type Source, type Watchable } from './feed.ts';
import type { ConnectionState } from './shown-connection.ts';
import { Handle, type Store, StoreFold, type StorePlan, toPlan } from './store.ts';

/** Which objects a view shows, and in which order. */
export interface ViewOptions<T> {
  /** Only objects for which this returns true. Default: all. */
  readonly selector?: ((object: T) => boolean) | undefined;
  /** Compares two objects, as `Array.sort` does. Objects that compare equal are ordered by key, as are all by default. */
  readonly sort?: ((one: T, other: T) => number) | undefined;
  /** At most this many items, the first ones; default: all. */
  readonly limit?: number | undefined;
}

/** Options of {@link toCollection}. */
export interface CollectionOptions<T> extends ViewOptions<T>, SharedOptions<WatchEvent> {
  /** The key of an object; default: its namespace and name in `metadata`, or else its `id`. */
  readonly key?: ((object: T) => string) | undefined;
}

/** What a collection shows. */
export interface Items<T> {
  /** The objects in order. The array stays the same until one of them changes, and an object until it changes itself. */
  readonly items: readonly T[];
  /** How many objects the selector lets through, including those beyond `limit`. */
  readonly total: number;
  /** The object with this key, if the selector lets it through: as it is in `items`, also beyond `limit`. */
  readonly get: (key: string) => T | undefined;
  /** Whether the items contain the source's state; see {@link Folded}. Stays true while the connection is lost. */
  readonly ready: boolean;
  /** The error that `key`, `selector` or `sort` threw. */
  readonly error?: unknown;
}

/** A live view of the objects of a source. */
export interface Collection<T> extends Store<Items<T>> {
  /** The state of the connection. */
  readonly connection: Store<ConnectionState>;
  /** Equal for collections with the same source and connection options, in one process. It reveals neither. */
  readonly key: string;
  /** Returns another view of the same objects, over the same connection. */
  readonly view: (options: ViewOptions<T>) => Collection<T>;
}

/** The source of a collection: a hub that publishes ADDED, MODIFIED and DELETED, an informer, or a watch of such events. */
export type CollectionSource<T> = Exclude<Source<WatchEvent>, Watchable<WatchEvent>> | Watchable<WatchEvent<ChangeType, T>>;

const VIEW_NAMES = ['selector', 'sort', 'limit'] as const;

/**
 * Keeps the objects of a source, and shows those that a selector lets through, in order. Events other than ADDED, MODIFIED and DELETED
 * change nothing. Connections and states are shared as in `toStore`: all views of one source share its objects, if `key` is the
 * same function.
 *
 *     const open = toCollection<Order>('/watch', { selector: ({ state }) => state === 'open', sort: (a, b) => a.total - b.total });
 *     const leave = open.subscribe(() => show(open.getSnapshot().items));
 *
 * @throws {WatchError} INVALID_ARGUMENT for an invalid or unknown option.
 */
export function toCollection<T>(source: CollectionSource<T>, options: CollectionOptions<T> = {}): Collection<T> {
  const { key = defaultKey, selector, sort, limit } = options ?? {};
  callable('key', key);
  const plan = toPlan<WatchEvent>(source as Source<WatchEvent>, options, {
    names: [...VIEW_NAMES, 'key'],
    fold: `objects ${identityOf(key)}`,
  });
  const handle = new Handle(plan, () => new ObjectFold<T>(plan, key));
  return toView(handle, { selector, sort, limit });
}

function toView<T>(handle: Handle<WatchEvent, ObjectFold<T>>, options: ViewOptions<T>): Collection<T> {
  const { selector, sort, limit } = checkOptions(options, VIEW_NAMES);
  callable('sort', sort);
  if (limit !== undefined) wholeNumber('limit', limit);
  const own = { selector: deciding('selector', selector), sort, limit };
  const { connection, key } = handle;
  const nothing: Items<T> = { items: [], total: 0, get: () => undefined, ready: false };
  let view: CollectionView<T> | undefined;
  const read = (fold: ObjectFold<T> | undefined): Items<T> => {
    if (!fold) return nothing;
    if (view?.fold !== fold) view = new CollectionView(fold, own, nothing);
    return view.read();
  };
  return { ...handle.store(read), connection, key, view: (more) => toView(handle, more) };
}

/** Namespace and name, as for the hub's `coalesce`, or an id. */
function defaultKey(object: unknown): string {
  const { metadata, id } = (object ?? {}) as { metadata?: { name?: unknown; namespace?: unknown }; id?: unknown };
  if (metadata?.name) return `${metadata.namespace ? `${metadata.namespace}/` : ''}${metadata.name}`;
  if (typeof id === 'string' || typeof id === 'number') return String(id);
  throw invalid('key', undefined, 'a function, because an object has neither metadata.name nor id');
}

/** The objects by key. See the top of this file. */
class ObjectFold<T> extends StoreFold<WatchEvent> {
  /** The objects at the last flush, and whether they were all. */
  readonly shown: Map<string, T> = new Map();
  isWhole: boolean = false;
  /** The keys whose objects the last flush has changed. */
  changed: Set<string> = new Set();
  /** What is shown, plus what has arrived since the last flush, and the keys that may differ. */
  #objects: Map<string, T> = new Map();
  readonly #unflushed: Set<string> = new Set();
  #next: Map<string, T> | undefined;
  readonly #keyOf: (object: T) => string;

  constructor(plan: StorePlan<WatchEvent>, keyOf: (object: T) => string) {
    super(plan);
    this.#keyOf = keyOf;
  }

  protected override begin(): void {
    this.#next = new Map();
  }

  protected override commit(): void {
    if (!this.#next) return;
    for (const key of [...this.#objects.keys(), ...this.#next.keys()]) this.#unflushed.add(key);
    this.#objects = this.#next;
    this.#next = undefined;
  }

  protected override apply({ type, object }: WatchEvent): void {
    if (type !== 'ADDED' && type !== 'MODIFIED' && type !== 'DELETED') return;
    const key = this.#keyOf(object as T);
    if (typeof key !== 'string') throw invalid('key', key, 'a function that returns a string');
    const objects = this.#next ?? this.#objects;
    // An object that is back to what it was, even at the last flush, keeps its identity: its rows need not render.
    const same = [this.#objects.get(key), this.shown.get(key)].find((known) => isEqual(known, object));
    this.#unflushed.add(key);
    if (type === 'DELETED') objects.delete(key);
    else objects.set(key, same ?? (object as T));
  }

  protected override show(): void {
    this.isWhole = this.ready;
    this.changed = new Set();
    for (const key of this.#unflushed) {
      const object = this.#objects.get(key);
      if (object === this.shown.get(key)) continue;
      this.changed.add(key);
      if (object === undefined) this.shown.delete(key);
      else this.shown.set(key, object);
    }
    this.#unflushed.clear();
  }
}

/** An object in a view. */
interface Row<T> {
  readonly key: string;
  readonly object: T;
}

/** What one selector, order and limit make of the objects. */
class CollectionView<T> {
  readonly fold: ObjectFold<T>;
  readonly #options: ViewOptions<T>;
  #rows: readonly Row<T>[] = [];
  #version: number = -1;
  /** A function has thrown, so the rows are not up to date. */
  #isBroken: boolean = false;
  #shown: Items<T>;

  constructor(fold: ObjectFold<T>, options: ViewOptions<T>, nothing: Items<T>) {
    this.fold = fold;
    this.#options = options;
    const { selector } = options;
    const get = (key: string): T | undefined => {
      const object = fold.shown.get(key);
      return object === undefined || !selector || selector(object) ? object : undefined;
    };
    this.#shown = { ...nothing, get };
  }

  read(): Items<T> {
    const { version, fault } = this.fold;
    if (version === this.#version) return this.#shown;
    let failure = fault;
    try {
      const isNext = version === this.#version + 1 && !this.#isBroken;
      this.#rows = isNext ? this.#updated(this.fold.changed) : this.#rowsOf(this.fold.shown.keys());
      this.#isBroken = false;
    } catch (error) {
      this.#isBroken = true;
      failure ??= { error };
      this.fold.report(error);
    }
    this.#version = version;
    this.#show(failure);
    return this.#shown;
  }

  #compare(one: Row<T>, other: Row<T>): number {
    return this.#options.sort?.(one.object, other.object) || (one.key < other.key ? -1 : Number(one.key > other.key));
  }

  #rowsOf(keys: Iterable<string>): Row<T>[] {
    const rows: Row<T>[] = [];
    for (const key of keys) {
      const object = this.#shown.get(key);
      if (object !== undefined) rows.push({ key, object });
    }
    return rows.sort((one, other) => this.#compare(one, other));
  }

  #updated(changed: ReadonlySet<string>): readonly Row<T>[] {
    if (changed.size === 0) return this.#rows;
    const kept = this.#rows.filter(({ key }) => !changed.has(key));
    return merge(kept, this.#rowsOf(changed), (one, other) => this.#compare(one, other));
  }

  #show(failure: { readonly error: unknown } | undefined): void {
    const shown = this.#shown;
    const total = this.#rows.length;
    const all = this.#rows.slice(0, this.#options.limit);
    const isSame = all.length === shown.items.length && all.every(({ object }, at) => object === shown.items[at]);
    const items = isSame ? shown.items : all.map(({ object }) => object);
    const { isWhole: ready } = this.fold;
    if (isSame && total === shown.total && ready === shown.ready && !failure && !('error' in shown)) return;
    this.#shown = { items, total, get: shown.get, ready, ...failure };
  }
}

/** Deeper values count as changed. */
const MAX_DEPTH = 64;

/** Whether two values are the same JSON. What JSON cannot represent, such as a Date or a Map, equals only itself. */
function isEqual(one: unknown, other: unknown, depth: number = MAX_DEPTH): boolean {
  if (one === other) return true;
  if (depth === 0) return false;
  if (Array.isArray(one))
    return Array.isArray(other) && one.length === other.length && one.every((item, at) => isEqual(item, other[at], depth - 1));
  if (!isJsonObject(one) || !isJsonObject(other)) return false;
  const names = Object.keys(one);
  return (
    names.length === Object.keys(other).length &&
    names.every((name) => Object.hasOwn(other, name) && isEqual(one[name], other[name], depth - 1))
  );
}

function isJsonObject(value: unknown): value is Record<string, unknown> {
  return isRecord(value) && isPlain(value);
}
