import { invalid } from '../watch/errors.ts';
import { isInitialEventsEnd, type WatchEvent } from '../watch/event.ts';
import { type EventLog, Largest } from './log.ts';

/**
 * `coalesce` folds the unseen changes of a watcher to the latest state per key.
 *
 * The net change of a key depends only on whether it existed before the first unseen change and exists after the last:
 *
 *     before \ after |  exists    | does not
 *     does not       |  ADDED     | nothing
 *     exists         |  MODIFIED  | DELETED
 *
 * "Nothing" becomes DELETED for events that {@link ReportsDeletion}.
 *
 * So a {@link Fold} keeps, per key, whether it existed before, and the last event. The folds of two adjacent stretches merge into
 * the fold of both, which lets laggards share folds, in a {@link FoldChain}.
 *
 * Invariants
 * - Keys are in the order of their first unseen change. A BOOKMARK replaces the one before it and comes last, because it must not
 *   overtake an event it covers. The BOOKMARK that ends the initial events is never folded.
 * - Nothing is folded across an ERROR: it may tell readers to forget what they know, so what came before it stays before it, and
 *   what came after stays after.
 * - `count` events were added and not taken out. `live` entries result in an event; the other events have been folded away.
 * - Adding never decreases `size`, so whether a watcher exceeds its number of keys does not depend on when this is checked. But
 *   a fold that `forgets` drops a key whose net change is nothing: its size is limited by the number of existing objects,
 *   however many come and go.
 */
export class Fold<E> {
  count: number = 0;
  live: number = 0;
  /** Number of keys with unseen changes, including keys whose net change is nothing. After an ERROR, a key counts anew. */
  size: number = 0;
  #folded: number = 0;
  /** The entries up to each ERROR, and those after the last one. */
  private sections: Map<unknown, Entry<E>>[] = [new Map()];
  /**
   * Where `take` continues, so that it does not walk past everything that it took before. An iterator keeps the tables that a Map
   * has outgrown, with their contents, so anything that adds drops it.
   */
  #rest: Iterator<[unknown, Entry<E>]> | undefined;
  readonly #forgets: boolean;

  constructor(forgets: boolean = false) {
    this.#forgets = forgets;
  }

  /** Number of events that were added, as long as none was taken. */
  get added(): number {
    return this.count + this.#folded;
  }

  /** Total number of events folded away. */
  get dropped(): number {
    return this.#folded + this.count - this.live;
  }

  /** The sum of `of` over the last event of each key. */
  total(of: (event: E) => number): number {
    let sum = 0;
    for (const { last } of this.entries()) sum += of(last);
    return sum;
  }

  /** The place among all events of the first unseen change that results in an event. */
  get place(): number | undefined {
    let least = Infinity;
    for (const entry of this.entries()) {
      const { existed, place, again = place } = entry;
      if (netCount(entry)) least = Math.min(least, existed ? place : again);
    }
    return least < Infinity ? least : undefined;
  }

  /** The place among all events of the first unseen change. Unlike {@link place}, it never depends on what came after. */
  get first(): number | undefined {
    return this.entries().next().value?.place;
  }

  /** Adds an event under its {@link foldKey}. */
  add(event: E, key: unknown, place: number = 0): void {
    const { type, previous } = event as WatchEvent & HasPrevious;
    this.#put(key, { existed: type !== 'ADDED', last: event, count: 1, place, again: undefined, previous });
  }

  /** Adds all entries of a later fold. */
  merge(later: Fold<E>): void {
    for (const section of later.sections) for (const [key, entry] of section) this.#put(key, entry);
    this.#folded += later.#folded;
  }

  /** A copy of everything that was added since the fold was empty and had `added` events. */
  since(added: number): Fold<E> {
    const copy = new Fold<E>(this.#forgets);
    copy.merge(this);
    copy.#folded -= added;
    return copy;
  }

  /**
   * Removes the first entry that results in an event, and the entries before it. Returns that event, or undefined if there is
   * none.
   */
  take(): E | undefined {
    for (;;) {
      const section = this.sections[0] as Map<unknown, Entry<E>>;
      this.#rest ??= section.entries();
      for (let next = this.#rest.next(); !next.done; next = this.#rest.next()) {
        const [key, entry] = next.value;
        section.delete(key);
        const live = netCount(entry);
        this.size--;
        this.count -= entry.count;
        this.#folded += entry.count - live;
        this.live -= live;
        if (live) return result(entry);
      }
      this.#rest = undefined;
      if (this.sections.length === 1) return undefined;
      this.sections.shift();
    }
  }

  /** Removes all entries. Returns the number of events they represented. */
  clear(): number {
    const { count } = this;
    this.sections = [new Map()];
    this.#rest = undefined;
    this.count = this.live = this.size = 0;
    return count;
  }

  private *entries(): Generator<Entry<E>, undefined> {
    for (const section of this.sections) yield* section.values();
  }

  #put(key: unknown, { existed, last, count, place, again, previous }: Entry<E>): void {
    this.#rest = undefined;
    const section = this.sections.at(-1) as Map<unknown, Entry<E>>;
    const known = section.get(key);
    const moves = key === Fold;
    if (moves) section.delete(key);
    const entry = {
      existed: known?.existed ?? existed,
      last,
      count: (known?.count ?? 0) + count,
      place: moves ? place : (known?.place ?? place),
      again: again ?? (known && isGone(known.last) ? place : known?.again),
      previous: known ? known.previous : previous,
    };
    const live = netCount(entry);
    section.set(key, entry);
    this.count += count;
    this.live += live - (known ? netCount(known) : 0);
    if (!known) this.size++;
    if ((last as WatchEvent).type === 'ERROR') this.sections.push(new Map());
    if (live || !this.#forgets) return;
    section.delete(key);
    this.size--;
    this.count -= entry.count;
    this.#folded += entry.count;
  }
}

/**
 * Returns the key by which an event is folded. Calls `keyOf`, which is user code: it may throw, or call back into the
 * broadcaster.
 */
export function foldKey<E>(event: E, keyOf: (event: E) => unknown): unknown {
  const { type } = event as WatchEvent;
  return isInitialEventsEnd(event as WatchEvent) || type === 'ERROR' ? event : type === 'BOOKMARK' ? Fold : keyOf(event);
}

interface Entry<E> {
  readonly existed: boolean;
  readonly last: E;
  readonly count: number;
  /** The place of the first event. */
  readonly place: number;
  /**
   * The place of the first event after the last deletion. If the object did not exist before, everything earlier has cancelled
   * out.
   */
  readonly again: number | undefined;
  /** The `previous` of the first event. */
  readonly previous: unknown;
}

/** The event that an entry results in. */
function result<E>({ existed, last, previous }: Entry<E>): E {
  const { type: own, previous: before } = last as WatchEvent & HasPrevious;
  // Custom types have no defined meaning here, so the last event is passed on.
  const type = own !== (existed ? 'ADDED' : 'MODIFIED') ? own : existed ? 'MODIFIED' : 'ADDED';
  if (type === own && previous === before) return last;
  return before === undefined && previous === undefined ? { ...last, type } : { ...last, type, previous };
}

/** Number of events an entry results in: 1, or 0 for an object that was added and deleted unseen. */
function netCount({ existed, last }: Entry<unknown>): number {
  return existed || !isGone(last) ? 1 : 0;
}

function isGone(last: unknown): boolean {
  return (last as WatchEvent).type === 'DELETED' && !(last as ReportsDeletion).reportsDeletion;
}

/** Marks an event whose object watchers may know from elsewhere, before it was added: its deletion is never folded away. */
export interface ReportsDeletion {
  readonly reportsDeletion?: boolean;
}

/** An event that carries the object as it was before the change. A fold of several carries that of the first. */
interface HasPrevious {
  readonly previous?: unknown;
}

/**
 * The default key of an event: its object's namespace and name, as in Kubernetes. A namespace that is not a string counts as
 * empty.
 *
 * @throws {WatchError} INVALID_ARGUMENT, naming `keyOf`, if the object has no name.
 */
export function objectKey(event: WatchEvent): string {
  const { object } = event as WatchEvent<string, { metadata?: { namespace?: unknown; name?: unknown } } | null | undefined>;
  const { namespace, name } = object?.metadata ?? {};
  if (typeof name !== 'string') throw invalid('object.metadata.name', name, 'a string; pass keyOf for objects without one');
  return `${typeof namespace === 'string' ? namespace : ''}/${name}`;
}

/** What `keyOf` threw, and the place of the event it was asked about; neither, if there were too many keys. */
interface Spoiled {
  readonly error?: unknown;
  readonly place?: number;
}

/** A folded stretch of the log, and the number of laggards that start at it. */
export interface Link<E> {
  readonly fold: Fold<E>;
  /** Number of events in the stretch, including those no longer in the fold. */
  count: number;
  members: number;
  /**
   * Why this link no longer folds: `keyOf` threw; or, without an error, it has more keys than any laggard may hold, and is empty.
   */
  spoiled: Spoiled | undefined;
}

/**
 * The folds that laggards share. A watcher that falls behind joins when head enters a chunk. Later events are folded once for all
 * laggards, each time head leaves a chunk.
 *
 *     watcher p: [own fold] -> link 1 -> link 2 -> link 3 -> the log from `position` on
 *     watcher q:          [own fold] ------^
 *
 * When no laggard starts at a link any longer, it is merged into the link before, so there are never more links than laggards.
 * Watchers that fall behind together also have the same unseen events at that moment: the first folds them, the others share
 * that.
 */
export class FoldChain<E> {
  /** The position up to which the last link has folded. The log keeps the events from there on. */
  position: number = 0;
  /** While laggards are judged: the last stretch that one of them folded on its own. Shared, so it must not be modified. */
  unseen: { readonly from: number; readonly to: number; readonly fold: Fold<E> } | undefined = undefined;
  private links: Link<E>[] = [];
  #folding: boolean = false;
  readonly #capacities: Largest = new Largest();
  readonly #log: EventLog<E>;
  readonly keyOf: (event: E) => unknown;
  /** Whether the folds forget changes that cancel out. */
  forgets: boolean = false;

  constructor(log: EventLog<E>, keyOf: (event: E) => unknown) {
    this.#log = log;
    this.keyOf = keyOf;
  }

  /** Whether a laggard at this position may join. Not while `keyOf` runs, because user code may call in from there. */
  takes(position: number): boolean {
    return !this.#folding && (this.links.length === 0 || this.position === position);
  }

  /** Joins at a position that `takes` accepted. Returns the laggard's first link. */
  join(position: number, capacity: number): Link<E> {
    let link = this.links.at(-1);
    if (!link) {
      this.position = position;
      this.#log.stand(position);
    }
    if (!link || link.count > 0) {
      link = { fold: new Fold(this.forgets), count: 0, members: 0, spoiled: undefined };
      this.links.push(link);
    }
    this.#capacities.add(capacity);
    link.members++;
    return link;
  }

  /** Returns this link and all later ones. */
  from(link: Link<E>): Link<E>[] {
    return this.links.slice(this.links.indexOf(link));
  }

  leave(link: Link<E>, capacity: number): void {
    this.#capacities.remove(capacity);
    if (--link.members === 0) this.#unlink(link);
    for (const other of this.links) this.#bound(other);
  }

  #unlink(link: Link<E>): void {
    const at = this.links.indexOf(link);
    const before = this.links[at - 1];
    this.links.splice(at, 1);
    if (before) {
      before.count += link.count;
      if (!before.spoiled) {
        before.spoiled = link.spoiled;
        before.fold.merge(link.fold);
      }
    }
    if (this.links.length === 0) this.#log.leave(this.position);
  }

  /** Folds up to head, which has just entered a chunk, for all laggards. */
  fold(): void {
    if (this.#folding) return; // the running call continues
    this.#folding = true;
    while (this.links.length > 0 && this.position < this.#log.head) this.#foldOne(this.#log.at(this.position));
    this.#folding = false;
    const link = this.links.at(-1);
    if (link) this.#bound(link);
  }

  #foldOne(event: E): void {
    let key: unknown;
    let failure: Spoiled | undefined;
    try {
      if (!this.links.at(-1)?.spoiled) key = foldKey(event, this.keyOf);
    } catch (error) {
      failure = { error, place: this.#log.placeOf(this.position) };
    }
    const link = this.links.at(-1); // read again: in `keyOf` a laggard may have read or stopped
    if (!link) return;
    const place = this.#log.placeOf(this.position);
    this.#log.move(this.position, ++this.position);
    link.count++;
    if (link.spoiled) return;
    if (failure) link.spoiled = failure;
    else link.fold.add(event, key, place);
  }

  #bound(link: Link<E>): void {
    if (link.fold.size > this.#capacities.value) link.spoiled = {};
    if (link.spoiled && !('error' in link.spoiled)) link.fold.clear();
  }
}
