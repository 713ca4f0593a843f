import { WatchError } from '../watch/errors.ts';
import { FoldChain } from './coalesce.ts';
import { type Forgotten, newForgotten } from './forgotten.ts';
import { Gate, type Gated } from './gate.ts';
import { Laggards } from './laggards.ts';
import { LinkedSet } from './linked-set.ts';
import { EventLog } from './log.ts';
import { Park, type Parked } from './park.ts';
import { Signals } from './signals.ts';

/** Someone who left. */
export interface Leaver extends Parked, Gated {
  readonly waits: boolean;
  stop(): void;
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
 * gate; nobody else is noticed here. **Waking** those whose reads wait: see park.ts. **Closing**: once all that was accepted is visible, `closed` is set and nothing moves any more.
 *
 * Everything here is synchronous. User code (filters, `onGap`, `keyOf`) runs inside `gate.open` and `laggards.judge`, and may
 * publish, watch, stop or shut down: so each loop looks at the state anew after them.
 */
export class Mux<E> {
  readonly log: EventLog<E>;
  readonly laggards: Laggards = new Laggards();
  readonly gate: Gate = new Gate();
  readonly park: Park = new Park(() => this.serve());
  readonly chain: FoldChain<E>;
  readonly keyOf: (event: E) => unknown;
  /** Those who stand nowhere: full, and left alone until they read. Whoever lives is held by this set, the laggards or the gate. */
  readonly judged: LinkedSet<Leaver> = new LinkedSet();
  readonly signals: Signals<Leaver> = new Signals();
  /** Here, and not with the broadcaster: it must last as long as anyone who may wait for a forgotten watch. */
  readonly forgotten: Forgotten = newForgotten();
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
  private busy: boolean = false;

  constructor(options: { capacity: number; incoming: number; keyOf: (event: E) => unknown }) {
    this.log = new EventLog(options.capacity);
    this.incoming = options.incoming;
    this.keyOf = options.keyOf;
    this.chain = new FoldChain(this.log, options.keyOf);
  }

  /** Accepts an event if there is room now. */
  accept(event: E): boolean {
    // User code may have stopped whoever held them up, and publish before anyone has looked: they have their places first.
    while (this.pending > 0) if (!this.gate.empty || !this.admitted()) return false;
    const accepted = this.admit(event);
    // Even a full watcher lets pass what its filter rejects: whether it does is asked once the event has its place.
    // And what that filter published in between may have found no room then, or have taken the room of this one.
    if (this.log.head < this.log.end || this.pending > 0) this.pump();
    return accepted;
  }

  /** Accepts an event as soon as there is room. */
  acceptLater(event: E): Promise<void> {
    return new Promise((settle) => {
      const pending: Pending<E> = { event, settle, next: undefined };
      if (!this.lastPending) this.firstPending = pending;
      else this.lastPending.next = pending;
      this.lastPending = pending;
      // Nobody but the full one for whom this waits would look again, and user code may have made room since it was asked.
      if (++this.pending === 1) this.pump();
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
    } while (this.admitted());
    this.busy = false;
    if (this.closing && !this.closed && this.pending === 0 && this.log.head === this.log.end) this.close();
  }

  /** Gives up on full `wait` watchers: what they have no room for, they lose. Publishes that wait are refused. */
  force(): void {
    while (this.firstPending) {
      this.shiftPending().settle(Promise.reject(new WatchError('CLOSED', 'publish: shut down before there was room')));
    }
    const { log } = this;
    let chunk = log.chunkOf(log.head);
    // All of it, before any user code: whoever is stopped by that has had, or lost, every event that was accepted.
    while (log.head < log.end) log.step();
    while (chunk < log.chunkOf(log.head)) this.enter(++chunk);
    this.park.notify();
    this.pump();
  }

  left(watcher: Leaver): void {
    this.watchers--;
    if (watcher.inPark) this.park.leave();
    this.signals.delete(watcher);
    this.forgotten.unregister(watcher);
    if (watcher.waits) this.pump();
  }

  /** Gives an event its place if there is room; a publish that waited leaves its line right before. */
  private admit(event: E, pending?: Pending<E>): boolean {
    const { log } = this;
    while (log.head === log.end) {
      const { head } = log;
      const open = this.gate.open(head);
      // User code in the gate has shut down, or given up on those who wait: that was first.
      if (this.closed || (pending && this.firstPending !== pending)) return false;
      if (!open) break;
      if (log.end !== head) continue; // user code in the gate has published: it was first
      if (pending) this.shiftPending();
      log.append(event);
      this.advance();
      return true;
    }
    if (log.end - log.head >= this.incoming && !this.gate.empty) return false;
    if (pending) this.shiftPending();
    log.append(event);
    return true;
  }

  private admitted(): boolean {
    const pending = this.firstPending;
    if (!pending || !this.admit(pending.event, pending)) return false;
    pending.settle(undefined);
    return true;
  }

  private shiftPending(): Pending<E> {
    const pending = this.firstPending as Pending<E>;
    this.firstPending = pending.next;
    if (!this.firstPending) this.lastPending = undefined;
    this.pending--;
    return pending;
  }

  /** One more event becomes visible. */
  private advance(): void {
    if (this.log.step()) this.enter(this.log.chunkOf(this.log.head));
    this.park.notify();
  }

  /** Head has entered a chunk: who is due must leave the log, and what nobody needs goes. */
  private enter(chunk: number): void {
    this.chain.fold();
    this.laggards.judge(chunk);
    this.chain.unseen = undefined;
    this.log.trim();
  }

  /** Serves those whose reads wait, then goes on: what they have read is room. */
  private serve(): void {
    this.busy = true;
    this.park.serve();
    this.busy = false;
    this.pump();
  }

  private close(): void {
    this.closed = true;
    this.signals.clear();
    this.onClosed?.();
    this.serve();
  }
}
