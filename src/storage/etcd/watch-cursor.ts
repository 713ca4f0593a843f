/**
 * Where a watch of etcd is: which events have come, and from where to go on after a cut. Pure: responses in, new events out.
 *
 *     revision   5 5 | 6 | 7 7 7          what etcd has, with start 5
 *     responses  [5 5 6 7 ...][... 7 7]   the first is a fragment: more of its last revision may follow
 *                          ^ cut here: go on at 7, and leave out the first event of 7, which has come
 *
 * The header of a response with events says what the member has, not what was sent, so it does not count. That of a response
 * without events, which is progress, says that everything up to it was sent.
 *
 * Invariants
 * - Every event of a revision up to `revision` has been given out, and of the next one the first `#partial.seen`.
 * - `revision` never goes back. No event is given out twice.
 */
import type { KeyEvent, WatchResponse } from './wire/messages.ts';

export class WatchCursor {
  #revision: bigint;
  #partial: { readonly revision: bigint; seen: number } | undefined;
  /** How many events of the partial revision come again, after a cut. */
  #again: number = 0;

  /** Everything up to this revision has been given out. */
  constructor(revision: bigint) {
    this.#revision = revision;
  }

  get revision(): bigint {
    return this.#revision;
  }

  /** Tells the revision to go on at. What comes next begins there. */
  resume(): bigint {
    this.#again = this.#partial?.seen ?? 0;
    return this.#revision + 1n;
  }

  /** Takes a response with events, and returns those of them that are new. */
  events({ events, fragment }: Pick<WatchResponse, 'events' | 'fragment'>): KeyEvent[] {
    const fresh = events.filter((event) => this.#isNew(event));
    const last = events.at(-1)?.kv.modRevision;
    if (last !== undefined && !fragment) this.#complete(last);
    return fresh;
  }

  /** Takes a response without events. Whether it says anything new. */
  progress(revision: bigint): boolean {
    if (revision < this.#revision) return false;
    this.#complete(revision);
    return true;
  }

  #isNew({ kv: { modRevision } }: KeyEvent): boolean {
    if (modRevision <= this.#revision) return false;
    if (this.#partial?.revision !== modRevision) {
      this.#complete(modRevision - 1n);
      this.#partial = { revision: modRevision, seen: 0 };
    }
    if (this.#again > 0) {
      this.#again--;
      return false;
    }
    (this.#partial as { seen: number }).seen++;
    return true;
  }

  #complete(revision: bigint): void {
    if (revision < this.#revision) return;
    this.#revision = revision;
    this.#partial = undefined;
    this.#again = 0;
  }
}
