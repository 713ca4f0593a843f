/** A session, as its {@link Backlog} sees it. */
export interface Backlogged {
  /** Events wait for room in its connection, or for the end of its snapshot. */
  readonly isBehind: boolean;
  readonly maxQueuedBytes: number;
  /** The bytes of all events that wait. Expensive: it looks at each of them. */
  readonly queuedBytes: number;
  /** Ends it, because too many bytes wait. */
  expire(): void;
}

/** A round of checks comes after this share of the smallest limit. */
const SHARE = 16;

/**
 * Enforces `maxQueuedBytes`: how many bytes of events may wait for one client.
 *
 * A queue grows by no more than what is published. So a client that had n bytes of its limit left need not be looked at before n
 * bytes have been published, and one whose connection has room not at all:
 *
 *     no room --> add: due in the next round --> exact size --> over the limit: expire
 *                     ^                             '--> due once the rest of its limit has been published
 *                     '---- a round: each time a 16th of the smallest limit has been published
 *
 * So an event costs one addition. A client that is behind costs one comparison per round, and one walk through its queue when it
 * is due. In return, a queue exceeds its limit by up to an eighth, and one event, before that is noticed.
 */
export class Backlog<S extends Backlogged> {
  private published: number = 0;
  /** How much must have been published for the next round. */
  private nextRound: number = Infinity;
  /** Sessions that were behind when last seen, and how much must have been published for the next exact look at each. */
  private readonly due: Map<S, number> = new Map();
  private checking: boolean = false;

  /** A session has fallen behind. */
  add(session: S): void {
    this.due.set(session, this.published);
    this.nextRound = Math.min(this.nextRound, this.published + stepOf(session));
  }

  remove(session: S): void {
    this.due.delete(session);
  }

  /** An event of this size has been distributed. */
  grow(bytes: number): void {
    this.published += bytes;
  }

  /** Ends the sessions for which too much waits. Runs user code: their filters. */
  check(): void {
    if (this.published < this.nextRound || this.checking) return;
    this.checking = true;
    let step = Infinity;
    for (const [session, dueAt] of this.due) {
      if (this.published >= dueAt) this.examine(session);
      if (this.due.has(session)) step = Math.min(step, stepOf(session));
    }
    this.nextRound = this.published + step;
    this.checking = false;
  }

  private examine(session: S): void {
    const { published } = this;
    const left = session.isBehind ? session.maxQueuedBytes - session.queuedBytes : Infinity;
    // Its filter may have ended it.
    if (!this.due.has(session)) return;
    if (left >= 0 && left < Infinity) {
      this.due.set(session, published + left);
      return;
    }
    this.due.delete(session);
    if (left < 0) session.expire();
  }
}

function stepOf({ maxQueuedBytes }: Backlogged): number {
  return Math.max(1, Math.floor(maxQueuedBytes / SHARE));
}
