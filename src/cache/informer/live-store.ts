/**
 * The heart of an informer: the state of a collection by key, and the log of the changes that led to it, under one version.
 *
 *     reflector --- add, update, delete, replace, bookmark
 *                         |
 *                         v            one synchronous step
 *        key, transform, indexes (user code: may refuse the object)
 *                         |
 *                         v            no user code from here on
 *        state: set, drop ----> log: one change each ----> handlers, watches: each has a cursor in the log
 *
 * A reader that joins gets the state as ADDED, a BOOKMARK that ends it, and from then on the log: taken in one step, so nothing
 * is missed or repeated between the two.
 *
 * Upstream has a queue between reflector and store (RealFIFO), because they run at the same time and share a lock. Here a write
 * is one step, so what that queue provides comes for free: one order over all objects, and a list that replaces the state at
 * once. Nothing is queued before the store; after it, each reader's queue is bounded by its own policy.
 *
 * Invariants
 * - The state at version v is what the source had at v, except for objects that user code has refused; those are reported.
 * - Folding the log from nothing gives the state; up to any change in its middle, the state at that change.
 * - Each write publishes, before it returns, exactly the changes that it made: those of a list at once, deletions first.
 * - An object of the same uid and version as the stored one is not a change. The stored one stays, so a list without changes
 *   calls no handler, and keeps every reference.
 */

import type { BroadcastWatch } from '../../broadcast/broadcast-watch.ts';
import { UNLIMITED } from '../../broadcast/broadcaster.ts';
import { Cursor } from '../../broadcast/cursor.ts';
import { withVersionOf } from '../../broadcast/filter.ts';
import { Mux } from '../../broadcast/mux.ts';
import { POLICIES } from '../../broadcast/policies.ts';
import { WatchError } from '../../watch/errors.ts';
import { type BookmarkEvent, type ChangeType, type ErrorEvent, INITIAL_EVENTS_END, type ObjectEvent } from '../../watch/event.ts';
import type { Overflow } from '../../watch/overflow.ts';
import { metadataOf, versionOf } from '../object.ts';
import { isOlder } from '../reflector/events.ts';
import { Indexer, type IndexerOptions } from '../store/indexer.ts';
import {
  checkIterable,
  type DeletedFinalStateUnknown,
  type FailedChange,
  isDeletedFinalStateUnknown,
  Prepared,
  type StoreChange,
  takesPrepared,
} from '../store/store.ts';

interface LiveStoreHost<T> {
  /** User code has refused an object. */
  onRefused(error: unknown, object: T): void;
  /** The version has moved, for example with the first list. */
  onVersion(): void;
}

/** How a reader joins the log. */
interface JoinOptions<T> {
  /** Default: no limit with `coalesce`, otherwise 1,000. */
  readonly capacity?: number | undefined;
  readonly overflow?: Overflow | undefined;
  /** Changes of other objects take no room. */
  readonly matches?: ((object: T) => boolean) | undefined;
  /** Identifies the reader to code that wakes it. */
  readonly reader?: unknown;
  readonly signal?: AbortSignal | undefined;
  readonly onGap?: ((missed: number) => void) | undefined;
}

const DEFAULT_CAPACITY = 1_000;

/** An object to store, which user code has accepted. */
interface Accepted<T> {
  readonly object: T;
  readonly examined: unknown;
}

/** State and log. See the top of this file. */
export class LiveStore<T, Name extends string = string> extends Indexer<T, Name> {
  readonly #host: LiveStoreHost<T>;
  /**
   * The engine of a broadcaster, without a broadcaster around it, which would only check what an informer has already checked.
   */
  readonly #log: Mux<LogEvent<T>>;
  /** What the current write has done to the state, but has not published yet. */
  #unpublished: LogEvent<T>[] = [];
  #next: number = 0;
  #refused: { readonly error: unknown; readonly object: T }[] = [];
  #hasSynced: boolean = false;
  #closed: boolean = false;
  /** Whether objects are stored as they arrived, under their names. */
  readonly #isPlain: boolean;

  constructor(options: IndexerOptions<T, Name>, host: LiveStoreHost<T>) {
    super(options);
    this.#isPlain = options.transform === undefined && options.keyOf === undefined;
    takesPrepared(LiveStore.prototype.replace);
    this.#host = host;
    this.#log = new Mux({
      capacity: UNLIMITED,
      incoming: 0, // no policy of an informer's readers holds it back
      keyOf: (event) => (event as StateChange<T>).key, // asked only about changes
      forgets: true,
    });
  }

  /** Whether a list is in the store. Never turns false again. */
  get hasSynced(): boolean {
    return this.#hasSynced;
  }

  /** Stores an object, whether there is one with its key or not. One that user code refuses is left out, and reported. */
  override add(object: T, resourceVersion: string = versionOf(object)): void {
    this.#apply(() => {
      const accepted = new Map<string, Accepted<T>>();
      this.#ask(object, accepted);
      this.#store(accepted);
      this.#move(resourceVersion);
    });
  }

  override update(object: T, resourceVersion?: string): void {
    this.add(object, resourceVersion);
  }

  override delete(target: T | DeletedFinalStateUnknown<T>, resourceVersion?: string): void {
    this.#apply(() => {
      if (isDeletedFinalStateUnknown<T>(target)) {
        this.#remove(target.key);
        return;
      }
      let key: string | undefined;
      let last: T | undefined;
      try {
        key = this.keyFor(target);
        if (this.get(key) !== undefined) last = this.transformed(target);
      } catch (error) {
        this.#refused.push({ error, object: target });
      }
      // It is gone, whatever user code says about its last state.
      if (key !== undefined) this.#remove(key, last);
      this.#move(resourceVersion ?? versionOf(target));
    });
  }

  override replace(list: Iterable<T>, resourceVersion: string): void {
    checkIterable(list);
    this.#apply(() => {
      const seen = new Set<string>();
      const accepted = new Map<string, Accepted<T>>();
      // In another life of the source, the same version may be a different state.
      const isOther = isOlder(resourceVersion, this.resourceVersion);
      for (const object of list) {
        const key = this.#ask(object, accepted, { isOther });
        if (key !== undefined) seen.add(key);
      }
      // If an object is refused, its previous state stays, unless that is from the other life: it would look like one of this
      // life.
      const kept = isOther ? accepted : seen;
      for (const [key] of this.entries()) if (!kept.has(key)) this.#remove(key);
      this.#store(accepted);
      this.#move(resourceVersion);
      if (!this.#hasSynced) this.#unpublished.push(this.#bookmark(true));
      this.#hasSynced = true;
    });
  }

  override bookmark(resourceVersion: string): void {
    this.#apply(() => this.#move(resourceVersion));
  }

  /** Here each change is a write of its own: failed ones are reported. */
  override transaction(changes: readonly StoreChange<T>[]): FailedChange[] {
    for (const change of changes) {
      if (change.type === 'delete') this.delete(change.object);
      else this.add(change.object);
    }
    return [];
  }

  /** See `ReflectorStore`. A transform may change its argument, so nothing that it got before may be reused. */
  stored(name: string, namespace: string): T | undefined {
    if (!this.#isPlain) return undefined;
    return this.get(namespace ? `${namespace}/${name}` : name);
  }

  /** Wakes a reader that waits. */
  wake(reader: unknown): void {
    this.#unpublished.push({ ...this.#bookmark(false), reader });
    this.#publish();
  }

  /** Starts to read: the state as ADDED and, if the first list is in it, the BOOKMARK that ends it; then the log. */
  join({ overflow = 'coalesce', capacity, matches, reader, signal, onGap }: JoinOptions<T>): BroadcastWatch<LogEvent<T>> {
    this.#publish(); // a filter called in the middle of a list may join
    const prefix: LogEvent<T>[] = [];
    for (const [key, object] of this.entries()) {
      prefix.push({ type: 'ADDED', object, key, previous: undefined, finalStateUnknown: false });
    }
    if (this.#hasSynced) prefix.push(this.#bookmark(true));
    const { folds } = POLICIES[overflow];
    const limit = capacity ?? (folds ? undefined : DEFAULT_CAPACITY);
    // A fold must see every change: one that does not match may undo one that does.
    const asked = folds ? undefined : matches;
    const filter = limit === undefined ? undefined : (event: LogEvent<T>): boolean => takesRoom(event, reader, asked);
    signal?.throwIfAborted();
    // Asked before the cursor takes its position: what a filter publishes must not come between state and log.
    const first = filter ? prefix.filter(filter) : prefix;
    if (this.#closed) throw new WatchError('CLOSED', 'the informer has stopped'); // maybe by that filter
    const room = Math.max(limit ?? UNLIMITED, prefix.length + 1);
    const cursor = new Cursor(this.#log.all, { policy: POLICIES[overflow], capacity: room, filter, onGap });
    cursor.join(first, { place: 0 });
    return this.#log.handleOf(cursor, signal);
  }

  /** Ends every reader, once it has read what is queued. From now on nothing changes. */
  close(): void {
    this.#closed = true;
    this.#log.end();
  }

  /** Runs one write, and publishes what it has changed. */
  #apply(code: () => void): void {
    if (this.#closed) return;
    const { resourceVersion } = this;
    this.write(code);
    this.#publish();
    for (const { error, object } of this.#refused.splice(0)) this.#host.onRefused(error, object);
    if (resourceVersion !== this.resourceVersion) this.#host.onVersion();
  }

  /** Asks user code about an object. Returns its key, if it has one; the object is accepted if it is a change. */
  #ask(given: T, accepted: Map<string, Accepted<T>>, { isOther = false }: { isOther?: boolean } = {}): string | undefined {
    const { key, object, isStored, failure } = this.toPrepared(given);
    if (key !== undefined) accepted.delete(key); // of several with the same key, the last one counts
    if (failure) this.#refused.push({ error: failure.error, object });
    else if (!isStored || isOther) {
      try {
        // What looked as if it were stored was not transformed.
        const kept = isStored ? this.transformed(object) : object;
        accepted.set(key as string, { object: kept, examined: this.examine(kept) });
      } catch (error) {
        this.#refused.push({ error, object: given instanceof Prepared ? object : given });
      }
    }
    return key;
  }

  protected override isStored(key: string, object: T): boolean {
    return isSame(this.get(key), object);
  }

  #store(accepted: ReadonlyMap<string, Accepted<T>>): void {
    for (const [key, { object, examined }] of accepted) {
      const previous = this.get(key);
      this.set(key, object, examined);
      const type = previous === undefined ? 'ADDED' : 'MODIFIED';
      this.#unpublished.push({ type, object, key, previous, finalStateUnknown: false });
    }
  }

  /** Removes an object, if there is one. Without its last state, the deletion was inferred. */
  #remove(key: string, last?: T): void {
    const previous = this.get(key);
    if (previous === undefined) return;
    this.drop(key);
    const finalStateUnknown = last === undefined;
    this.#unpublished.push({ type: 'DELETED', object: last ?? previous, key, previous, finalStateUnknown });
  }

  #move(version: string): void {
    if (version) super.bookmark(version);
  }

  #bookmark(endsInitial: boolean): BookmarkEvent {
    const { resourceVersion } = this;
    const metadata = endsInitial ? { resourceVersion, annotations: { [INITIAL_EVENTS_END]: 'true' } } : { resourceVersion };
    return { type: 'BOOKMARK', object: { metadata } };
  }

  /** Publishes what is not published yet. Filters run in here, and may join, which publishes the rest first. */
  #publish(): void {
    for (let event = this.#unpublished[this.#next]; event; event = this.#unpublished[this.#next]) {
      this.#next++;
      if (!this.#closed) this.#log.accept(event);
    }
    if (this.#next > 0) this.#unpublished = [];
    this.#next = 0;
  }
}

/** Whether two objects of a key are the same state. Without a version, this cannot be known. */
function isSame(one: unknown, other: unknown): boolean {
  const version = versionOf(other);
  return version !== '' && version === versionOf(one) && metadataOf(one).uid === metadataOf(other).uid;
}

/**
 * One change of an informer's state, as in its log. The engine and the fold treat it as an event: `type` says what happened to
 * the object, and `previous` is the object before. A fold of several changes has the `previous` of the first, which is the object
 * that the reader knows.
 */
export interface StateChange<T> {
  readonly type: ChangeType;
  readonly object: T;
  readonly key: string;
  readonly previous: T | undefined;
  /** Whether the deletion was inferred from a list. */
  readonly finalStateUnknown: boolean;
}

/** A BOOKMARK that only wakes this reader. */
interface Wake extends BookmarkEvent {
  readonly reader: unknown;
}

/** What is in the log. The BOOKMARK with the annotation ends the initial state. An ERROR tells a reader that it was cut. */
export type LogEvent<T> = StateChange<T> | BookmarkEvent | Wake | ErrorEvent;

export function isChange<T>(event: LogEvent<T>): event is StateChange<T> {
  return 'key' in event;
}

/**
 * What a change is to a reader who sees only the objects that match: an object that starts to match is ADDED, one that
 * stops is DELETED. Undefined: nothing. Only the two objects count, so this also holds for folded changes.
 */
export function transitionOf<T>(
  { type, object, previous }: StateChange<T>,
  matches: ((object: T) => boolean) | undefined,
): StateChange<T>['type'] | undefined {
  if (!matches) return type;
  const before = previous !== undefined && matches(previous);
  const now = type !== 'DELETED' && matches(object);
  return now ? (before ? 'MODIFIED' : 'ADDED') : before ? 'DELETED' : undefined;
}

/** An event of the log as a watch delivers it; undefined if it is not for this watch. */
export function toObjectEvent<T>(event: LogEvent<T>, matches: ((object: T) => boolean) | undefined): ObjectEvent<T> | undefined {
  if (!isChange(event)) return event.type === 'BOOKMARK' && !event.object.metadata.annotations ? undefined : event;
  const type = transitionOf(event, matches);
  if (!type) return undefined;
  const { object, previous } = event;
  const left = type === 'DELETED' && matches !== undefined;
  return { type, object: left ? (withVersionOf(previous, object) as T) : object };
}

/**
 * Whether an event counts against the capacity of a reader's queue. A wake-up counts for the reader that it wakes. If `matches`
 * throws, the change counts, and the error is reported when the change is delivered.
 */
function takesRoom<T>(event: LogEvent<T>, reader: unknown, matches: ((object: T) => boolean) | undefined): boolean {
  if (!isChange(event)) return !('reader' in event) || event.reader === reader;
  try {
    return transitionOf(event, matches) !== undefined;
  } catch {
    return true;
  }
}
