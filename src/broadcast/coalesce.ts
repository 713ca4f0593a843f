import { isInitialEventsEnd, type WatchEvent } from '../watch/event.ts';
import { Largest } from './largest.ts';
import type { EventLog } from './log.ts';

/**
 * `coalesce`: the unseen changes of a watcher, folded to the latest state per key.
 *
 * What a key's unseen changes amount to depends only on whether it existed before the first and exists after the last:
 *
 *     before \ after |  exists    | does not
 *     does not       |  ADDED     | nothing
 *     exists         |  MODIFIED  | DELETED
 *
 * so a {@link Fold} keeps, per key, what the first change says about before, and the last event. Two folds of neighbouring
 * stretches merge into the fold of both; that is what lets laggards share one (see {@link FoldChain}).
 *
 * Invariants
 * - Keys stand in the order of their first unseen change. A BOOKMARK replaces the one before it and stands last, as it must
 *   not overtake an event that it vouches for. An ERROR is never folded, nor is the BOOKMARK that ends the initial events.
 * - `count` events went in and were not taken out; `live` entries amount to an event; the rest has been folded away.
 * - `size` never falls by adding: whether a watcher has more keys than it may is the same however often one looks.
 */
export class Fold<E> {
  count: number = 0;
  live: number = 0;
  private folded: number = 0;
  private readonly entries: Map<unknown, Entry<E>> = new Map();

  /** Keys with unseen changes, also those whose changes amount to nothing. */
  get size(): number {
    return this.entries.size;
  }

  /** Events folded away, in all. */
  get dropped(): number {
    return this.folded + this.count - this.live;
  }

  /** Adds an event under its {@link foldKey}. */
  add(event: E, key: unknown): void {
    this.put(key, { existed: (event as WatchEvent).type !== 'ADDED', last: event, count: 1 });
  }

  /** Adds all that a later fold has seen. */
  merge(later: Fold<E>): void {
    for (const [key, entry] of later.entries) this.put(key, entry);
  }

  /** Removes the first entry that amounts to an event, and those before it; undefined if there is none. */
  take(): E | undefined {
    for (const [key, { existed, last, count }] of this.entries) {
      this.entries.delete(key);
      this.count -= count;
      this.folded += count;
      const { type } = last as WatchEvent;
      if (!existed && type === 'DELETED') continue;
      this.folded--;
      this.live--;
      // People's own types mean nothing to us: the last event says it all.
      const net = type === 'ADDED' && existed ? 'MODIFIED' : type === 'MODIFIED' && !existed ? 'ADDED' : type;
      return net === type ? last : { ...last, type: net };
    }
    return undefined;
  }

  /** Forgets what is unseen, and answers how many events that were. */
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

/** What an event is folded by. `keyOf` is user code, and may throw or come back in. */
export function foldKey<E>(event: E, keyOf: (event: E) => unknown): unknown {
  const { type } = event as WatchEvent;
  return isInitialEventsEnd(event as WatchEvent) || type === 'ERROR' ? event : type === 'BOOKMARK' ? Fold : keyOf(event);
}

interface Entry<E> {
  readonly existed: boolean;
  readonly last: E;
  readonly count: number;
}

/** How many events an entry amounts to: one, or none for what came and went unseen. */
function amounts({ existed, last }: Entry<unknown>): number {
  return existed || (last as WatchEvent).type !== 'DELETED' ? 1 : 0;
}

/** A stretch of the log, folded, and how many laggards begin with it. */
export interface Link<E> {
  readonly fold: Fold<E>;
  /** Events of the stretch, also those no longer in the fold. */
  count: number;
  members: number;
  /** Why it folds no more: `keyOf` threw; or, without an error, it had more keys than any laggard may hold, and holds none now. */
  spoiled: { readonly error?: unknown } | undefined;
}

/**
 * The folds that laggards share. A watcher that falls behind joins as head enters a chunk; what follows is folded once, for
 * all of them, as head leaves each chunk.
 *
 *     watcher p: [own fold] -> link 1 -> link 2 -> link 3 -> the log from `position` on
 *     watcher q:          [own fold] ------^
 *
 * A link that nobody begins with any more is merged into the one before: there are never more links than laggards. What those
 * who fall behind together have not seen by then is the same, too: the first of them folds it, and the others share that.
 */
export class FoldChain<E> {
  /** Up to where the last link has folded. */
  position: number = 0;
  /** While laggards are judged: the stretch that the last of them folded by himself. Others may have it, and nobody changes it. */
  unseen: { readonly from: number; readonly to: number; readonly fold: Fold<E> } | undefined = undefined;
  private links: Link<E>[] = [];
  /** The log is kept from here on: nothing goes before it was folded. */
  private stands: number = 0;
  private folding: boolean = false;
  private readonly capacities: Largest = new Largest();
  private readonly log: EventLog<E>;
  private readonly keyOf: (event: E) => unknown;

  constructor(log: EventLog<E>, keyOf: (event: E) => unknown) {
    this.log = log;
    this.keyOf = keyOf;
  }

  /** Whether a laggard at this position may join. Not while `keyOf` is asked: user code has come back in. */
  takes(position: number): boolean {
    return !this.folding && (this.links.length === 0 || this.position === position);
  }

  /** Begins at a position that it `takes`. */
  join(position: number, capacity: number): Link<E> {
    let link = this.links.at(-1);
    if (!link) {
      this.position = this.stands = position;
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

  /** The links from this one on. */
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
    if (this.links.length === 0) this.log.leave(this.stands);
  }

  /** Folds up to head, which has entered a chunk, for all who lag. */
  fold(): void {
    if (this.folding) return; // it goes on where it is
    this.folding = true;
    while (this.links.length > 0 && this.position < this.log.head) this.foldOne(this.log.at(this.position));
    this.folding = false;
    const link = this.links.at(-1);
    if (!link) return;
    this.bound(link);
    const from = this.stands;
    this.stands = this.position;
    this.log.move(from, this.position);
  }

  private foldOne(event: E): void {
    let key: unknown;
    let failure: { readonly error: unknown } | undefined;
    try {
      if (!this.links.at(-1)?.spoiled) key = foldKey(event, this.keyOf);
    } catch (error) {
      failure = { error };
    }
    const link = this.links.at(-1); // looked up anew: user code may have read or stopped who lags
    if (!link) return;
    this.position++;
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
