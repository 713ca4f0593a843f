import { WatchError } from '../watch/errors.ts';
import { FoldChain } from './coalesce.ts';
import { Gate, type Gated } from './gate.ts';
import { Laggards } from './laggards.ts';
import { EventLog } from './log.ts';

/** A watcher whose reads may wait. */
export interface Parked {
  inPark: boolean;
  readonly hasReads: boolean;
  wake(): void;
}

/** Someone who left. */
export interface Leaver extends Parked, Gated {
  readonly waits: boolean;
}

interface Pending<E> {
  readonly event: E;
  readonly settle: (outcome: undefined | Promise<never>) => void;
  next: Pending<E> | undefined;
}

/**
 * From accepted to visible: the one path of every event, and the only place where `head` moves.
 *
 *     publish -> [pending, at most maxPending] -> [log: end .. at most `incoming` .. head] -> every watcher's stretch of log
 *                 waits for room                   accepted; waits at the gate               visible
 *
 * **Order** is the order of `append`, which is the order of the publish calls. **Slow readers** of policy `wait` close the
 * gate; nobody else is noticed here. **Waking**: watchers whose reads wait are parked in one list; the first event that
 * becomes visible schedules one microtask that serves them all, so that a burst costs one wake-up each, and publishing does
 * not depend on their number. **Closing**: once all that was accepted is visible, `closed` is set and nothing moves any more.
 *
 * Everything here is synchronous. User code (filters, `onGap`, `keyOf`) runs inside `gate.open` and `laggards.judge`, and may
 * publish, watch, stop or shut down: so each loop looks at the state anew after them.
 */
export class Mux<E> {
  readonly log: EventLog<E>;
  readonly laggards: Laggards = new Laggards();
  readonly gate: Gate = new Gate();
  readonly chain: FoldChain<E>;
  readonly keyOf: (event: E) => unknown;
  /** Those who stand nowhere: full, and left alone until they read. Whoever lives is held by this set, the laggards or the gate. */
  readonly judged: Set<unknown> = new Set();
  watchers: number = 0;
  /** No event will be accepted any more. */
  closing: boolean = false;
  /** No event will become visible any more. */
  closed: boolean = false;
  /** How many publishes wait for room. */
  pending: number = 0;
  /** Called once, when `closed` is set. */
  onClosed: (() => void) | undefined = undefined;
  private readonly incoming: number;
  private firstPending: Pending<E> | undefined = undefined;
  private lastPending: Pending<E> | undefined = undefined;
  private parked: Parked[] = [];
  private gone: number = 0;
  private scheduled: boolean = false;
  private busy: boolean = false;

  constructor(options: { capacity: number; incoming: number; keyOf: (event: E) => unknown }) {
    this.log = new EventLog(options.capacity);
    this.incoming = options.incoming;
    this.keyOf = options.keyOf;
    this.chain = new FoldChain(this.log, options.keyOf);
  }

  /** Accepts an event if there is room now. */
  accept(event: E): boolean {
    if (this.pending > 0 || !this.admit(event)) return false;
    // Even a full watcher lets pass what its filter rejects: whether it does is asked once the event has its place.
    // And what that filter published in between may have found no room then.
    if (this.log.head < this.log.end || this.pending > 0) this.pump();
    return true;
  }

  /** Accepts an event as soon as there is room. */
  acceptLater(event: E): Promise<void> {
    return new Promise((settle) => {
      const pending: Pending<E> = { event, settle, next: undefined };
      if (this.lastPending === undefined) this.firstPending = pending;
      else this.lastPending.next = pending;
      this.lastPending = pending;
      this.pending++;
    });
  }

  /** Moves on as far as the gate allows. */
  pump(): void {
    if (this.busy) return; // it goes on where it is, or once everyone was served
    this.busy = true;
    do {
      while (this.log.head < this.log.end) {
        const { head } = this.log;
        if (!this.gate.open(head)) break;
        if (this.log.head === head) this.advance();
      }
    } while (this.firstPending !== undefined && this.admit(this.firstPending.event) && this.admitted());
    this.busy = false;
    if (this.closing && !this.closed && this.pending === 0 && this.log.head === this.log.end) this.close();
  }

  /** Gives up on full `wait` watchers: what they have no room for, they lose. Publishes that wait are refused. */
  force(): void {
    while (this.firstPending !== undefined) {
      this.shiftPending().settle(Promise.reject(new WatchError('CLOSED', 'publish: shut down before there was room')));
    }
    while (this.log.head < this.log.end) this.advance();
    this.pump();
  }

  park(watcher: Parked): void {
    if (watcher.inPark) return;
    watcher.inPark = true;
    this.parked.push(watcher);
  }

  /** Serves a watcher's reads within this turn. */
  wake(watcher: Parked): void {
    this.park(watcher);
    this.schedule();
  }

  left(watcher: Leaver): void {
    this.watchers--;
    if (watcher.inPark) this.unpark();
    if (!watcher.waits) return;
    this.gate.remove(watcher);
    this.pump();
  }

  private admit(event: E): boolean {
    const { log } = this;
    while (log.head === log.end) {
      const { head } = log;
      const open = this.gate.open(head);
      if (this.closed) return false; // user code in the gate has shut down: that was first
      if (!open) break;
      if (log.head !== head || log.end !== head) continue; // user code in the gate has published: it was first
      log.append(event);
      this.advance();
      return true;
    }
    if (log.end - log.head >= this.incoming) return false;
    log.append(event);
    return true;
  }

  private admitted(): boolean {
    this.shiftPending().settle(undefined);
    return true;
  }

  private shiftPending(): Pending<E> {
    const pending = this.firstPending as Pending<E>;
    this.firstPending = pending.next;
    if (this.firstPending === undefined) this.lastPending = undefined;
    this.pending--;
    return pending;
  }

  /** One more event becomes visible. */
  private advance(): void {
    if (this.log.step()) {
      this.chain.fold();
      this.laggards.judge(this.log.chunkOf(this.log.head));
      this.log.trim();
    }
    if (this.parked.length > 0) this.schedule();
  }

  private schedule(): void {
    if (this.scheduled) return;
    this.scheduled = true;
    queueMicrotask(this.serveParked);
  }

  private readonly serveParked = (): void => {
    const watchers = this.parked;
    this.scheduled = false;
    this.parked = [];
    this.gone = 0;
    this.busy = true;
    for (const watcher of watchers) {
      watcher.inPark = false;
      watcher.wake();
    }
    this.busy = false;
    this.pump();
  };

  /** Those who left are swept out of the park when they are the larger part: O(1) for each, amortized. */
  private unpark(): void {
    this.gone++;
    if (this.parked.length <= 64) this.schedule(); // a short list, when this turn is over: some may have a read to settle yet
    if (this.gone * 2 < this.parked.length) return;
    const watchers = this.parked;
    this.parked = [];
    this.gone = 0;
    for (const watcher of watchers) {
      watcher.inPark = false;
      if (watcher.hasReads) this.park(watcher);
    }
  }

  private close(): void {
    this.closed = true;
    this.onClosed?.();
    this.serveParked();
  }
}
