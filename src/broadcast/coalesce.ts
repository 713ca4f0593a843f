import { isInitialEventsEnd, type WatchEvent } from '../watch/event.ts';
import { Largest } from './largest.ts';
import type { EventLog } from './log.ts';

/**
 * `coalesce` folds the unseen changes of a watcher to the latest state per key.
 *
 * The net change of a key depends only on whether it existed before the first unseen change and exists after the last:
 *
 *     before \ after |  exists    | does not
 *     does not       |  ADDED     | nothing
 *     exists         |  MODIFIED  | DELETED
 *
 * "Nothing" becomes DELETED for events that are {@link Telling}.
 *
 * So a {@link Fold} keeps, per key, whether it existed before, and the last event. The folds of two adjacent stretches merge into
 * the fold of both, which lets laggards share folds (see {@link FoldChain}).
 *
 * Invariants
 * - Keys are in the order of their first unseen change. A BOOKMARK replaces the one before it and comes last, because it must not
 *   overtake an event it covers. An ERROR is never folded, nor is the BOOKMARK that ends the initial events.
 * - `count` events were added and not taken out. `live` entries result in an event; the other events have been folded away.
 * - Adding never decreases `size`, so whether a watcher exceeds its number of keys does not depend on when one looks.
 */
export class Fold<E> {
  count: number = 0;
  live: number = 0;
  private folded: number = 0;
  private readonly entries: Map<unknown, Entry<E>> = new Map();

  /** Number of keys with unseen changes, including keys whose net change is nothing. */
  get size(): number {
    return this.entries.size;
  }

  /** Total number of events folded away. */
  get dropped(): number {
    return this.folded + this.count - this.live;
  }

  /** Adds an event under its {@link foldKey}. */
  add(event: E, key: unknown): void {
    this.put(key, { existed: (event as WatchEvent).type !== 'ADDED', last: event, count: 1 });
  }

  /** Adds all entries of a later fold. */
  merge(later: Fold<E>): void {
    for (const [key, entry] of later.entries) this.put(key, entry);
  }

  /**
   * Removes the first entry that results in an event, and the entries before it. Returns that event, or undefined if there is
   * none.
   */
  take(): E | undefined {
    for (const [key, entry] of this.entries) {
      const { existed, last, count } = entry;
      this.entries.delete(key);
      const live = amounts(entry);
      this.count -= count;
      this.folded += count - live;
      this.live -= live;
      if (!live) continue;
      const { type } = last as WatchEvent;
      // Custom types have no defined meaning here, so the last event is passed on.
      if (type !== (existed ? 'ADDED' : 'MODIFIED')) return last;
      return { ...last, type: existed ? 'MODIFIED' : 'ADDED' };
    }
    return undefined;
  }

  /** Removes all entries. Returns the number of events they represented. */
  clear(): number {
    const { count } = this;
    this.entries.clear();
    this.count = this.live = 0;
    return count;
  }

  private put(key: unknown, { existed, last, count }: Entry<E>): void {
    const known = this.entries.get(key);
    if (key === Fold) this.entries.delete(key);
    const entry = { existed: known?.existed ?? existed, last, count: (known?.count ?? 0) + count };
    this.entries.set(key, entry);
    this.count += count;
    this.live += amounts(entry) - (known ? amounts(known) : 0);
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
}

/** Number of events an entry results in: 1, or 0 for an object that was added and deleted unseen. */
function amounts({ existed, last }: Entry<unknown>): number {
  return existed || (last as WatchEvent & Telling).telling || (last as WatchEvent).type !== 'DELETED' ? 1 : 0;
}

/** Marks an event whose object watchers may know from elsewhere, before it was added: its deletion is never folded away. */
export interface Telling {
  readonly telling?: boolean;
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
  spoiled: { readonly error?: unknown } | undefined;
}

/**
 * The folds that laggards share. A watcher that falls behind joins when head enters a chunk. Later events are folded once for all
 * laggards, each time head leaves a chunk.
 *
 *     watcher p: [own fold] -> link 1 -> link 2 -> link 3 -> the log from `position` on
 *     watcher q:          [own fold] ------^
 *
 * When no laggard starts at a link any more, it is merged into the link before, so there are never more links than laggards.
 * Watchers that fall behind together also have the same unseen events at that moment: the first folds them, the others share
 * that.
 */
export class FoldChain<E> {
  /** The position up to which the last link has folded. The log keeps the events from there on. */
  position: number = 0;
  /** While laggards are judged: the last stretch that one of them folded on its own. Shared, so it must not be modified. */
  unseen: { readonly from: number; readonly to: number; readonly fold: Fold<E> } | undefined = undefined;
  private links: Link<E>[] = [];
  private folding: boolean = false;
  private readonly capacities: Largest = new Largest();
  private readonly log: EventLog<E>;
  readonly keyOf: (event: E) => unknown;

  constructor(log: EventLog<E>, keyOf: (event: E) => unknown) {
    this.log = log;
    this.keyOf = keyOf;
  }

  /** Whether a laggard at this position may join. Not while `keyOf` runs, because user code may call in from there. */
  takes(position: number): boolean {
    return !this.folding && (this.links.length === 0 || this.position === position);
  }

  /** Joins at a position that `takes` accepted. Returns the laggard's first link. */
  join(position: number, capacity: number): Link<E> {
    let link = this.links.at(-1);
    if (!link) {
      this.position = position;
      this.log.stand(position);
    }
    if (!link || link.count > 0) {
      link = { fold: new Fold(), count: 0, members: 0, spoiled: undefined };
      this.links.push(link);
    }
    this.capacities.add(capacity);
    link.members++;
    return link;
  }

  /** Returns this link and all later ones. */
  from(link: Link<E>): Link<E>[] {
    return this.links.slice(this.links.indexOf(link));
  }

  leave(link: Link<E>, capacity: number): void {
    this.capacities.remove(capacity);
    if (--link.members === 0) this.unlink(link);
    for (const other of this.links) this.bound(other);
  }

  private unlink(link: Link<E>): void {
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
    if (this.links.length === 0) this.log.leave(this.position);
  }

  /** Folds up to head, which has just entered a chunk, for all laggards. */
  fold(): void {
    if (this.folding) return; // the running call continues
    this.folding = true;
    while (this.links.length > 0 && this.position < this.log.head) this.foldOne(this.log.at(this.position));
    this.folding = false;
    const link = this.links.at(-1);
    if (link) this.bound(link);
  }

  private foldOne(event: E): void {
    let key: unknown;
    let failure: { readonly error: unknown } | undefined;
    try {
      if (!this.links.at(-1)?.spoiled) key = foldKey(event, this.keyOf);
    } catch (error) {
      failure = { error };
    }
    const link = this.links.at(-1); // read again: in `keyOf` a laggard may have read or stopped
    if (!link) return;
    this.log.move(this.position, ++this.position);
    link.count++;
    if (link.spoiled) return;
    if (failure) link.spoiled = failure;
    else link.fold.add(event, key);
  }

  private bound(link: Link<E>): void {
    if (link.fold.size > this.capacities.value) link.spoiled = {};
    if (link.spoiled && !('error' in link.spoiled)) link.fold.clear();
  }
}
