/**
 * Where a watch of etcd is: which events have come, and from where to go on after a cut. Pure: responses in, new events out.
 *
 *     revision   5 5 | 6 | 7 7 7          what etcd has, with start 5
 *     responses  [5 5 6 7 ...][... 7 7]   the first is a fragment: more of its last revision may follow
 *     given out   5 5 6         7 7 7     a revision is given out as a whole: one can resume after its number
 *                          ^ cut here: go on at 7, and leave out the first event of 7, which has come
 *
 * The header of a response with events says what the member has, not what was sent, so it does not count. That of a response
 * without events, which is progress, says that everything up to it was sent.
 *
 * Invariants
 * - Every event of a revision up to `revision` has been given out. Of the next one, the first events may be in `#partial`.
 * - `revision` never goes back. No event is given out twice.
 */
import type { KeyEvent, WatchResponse } from './wire/messages.ts';

export class WatchCursor {
  #revision: bigint;
  /** What has come of a revision that is not whole yet. */
  #partial: KeyEvent[] = [];
  /** How many of its events come again after a cut. */
  #again: number = 0;

  /** Everything up to this revision has been given out. */
  constructor(revision: bigint) {
    this.#revision = revision;
  }

  get revision(): bigint {
    return this.#revision;
  }

  /** Returns the revision to resume at: what comes next begins there. */
  resume(): bigint {
    this.#again = this.#partial.length;
    return this.#revision + 1n;
  }

  /** Takes a response with events, and returns what is new, in whole revisions. */
  events({ events, fragment }: Pick<WatchResponse, 'events' | 'fragment'>): KeyEvent[] {
    const whole: KeyEvent[] = [];
    for (const event of events) {
      const { modRevision } = event.kv;
      if (modRevision <= this.#revision) continue;
      if (this.#partial[0]?.kv.modRevision !== modRevision) whole.push(...this.#complete(modRevision - 1n));
      if (this.#again > 0) this.#again--;
      else this.#partial.push(event);
    }
    const last = events.at(-1);
    if (last && !fragment) whole.push(...this.#complete(last.kv.modRevision));
    return whole;
  }

  /** Takes a response without events. Returns whether it says anything new. */
  progress(revision: bigint): boolean {
    if (revision < this.#revision) return false;
    this.#complete(revision);
    return true;
  }

  #complete(revision: bigint): readonly KeyEvent[] {
    if (revision < this.#revision) return [];
    const whole = this.#partial;
    this.#revision = revision;
    this.#partial = [];
    this.#again = 0;
    return whole;
  }
}
