import { Largest } from '../log/largest.ts';
import type { EventLog } from '../log/log.ts';
import { Fold, foldKey } from './fold.ts';

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
