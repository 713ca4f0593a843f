import { WatchError } from '../watch/errors.ts';
import { FoldChain } from './coalesce.ts';
import { type Forgotten, newForgotten } from './forgotten.ts';
import { Gate, type Gated } from './gate.ts';
import { Laggards } from './laggards.ts';
import { type Linked, LinkedSet } from './linked-set.ts';
import { EventLog } from './log.ts';
import { Park, type Parked } from './park.ts';
import { Signals } from './signals.ts';

/** A watcher that can leave the mux. */
export interface Leaver extends Parked, Gated {
  readonly waits: boolean;
  stop(): void;
}

/** A publish that waits for room. */
interface Pending<E> extends Linked {
  readonly event: E;
  readonly settle: (outcome: undefined | Promise<never>) => void;
}

/**
 * Moves events from accepted to visible. Every event passes through here, and nothing else moves `head`.
 *
 *     publish -> [pending, at most maxPending] -> [log: end .. at most `incoming` .. head] -> every watcher's stretch of log
 *                 waits for room                   accepted; waits at the gate               visible
 *
 * **Order** is the order of `append`, which is the order of the publish calls. **Slow readers** of policy `wait` close the gate;
 * other slow readers are not noticed here. **Waking** of pending reads: see park.ts. **Closing**: once every accepted event is
 * visible, `closed` is set and nothing moves again.
 *
 * Everything here is synchronous. User code (filters, `onGap`, `keyOf`) runs inside `gate.open`, `enter` and `park.serve`, and
 * may publish, watch, stop or shut down. Every loop therefore re-reads the state after calling them.
 */
export class Mux<E> {
  readonly log: EventLog<E>;
  readonly laggards: Laggards = new Laggards();
  readonly gate: Gate = new Gate();
  readonly park: Park = new Park(() => this.serve());
  readonly chain: FoldChain<E>;
  /**
   * Full watchers that stand nowhere and are left alone until they read. This set, the laggards and the gate hold every live
   * watcher.
   */
  readonly judged: LinkedSet<Leaver> = new LinkedSet();
  readonly signals: Signals<Leaver> = new Signals();
  /** Owned by the mux, not the broadcaster: it must live as long as anything that may wait for a forgotten watch. */
  readonly forgotten: Forgotten = newForgotten();
  watchers: number = 0;
  /** No further event will be accepted. */
  closing: boolean = false;
  /** No further event will become visible. */
  closed: boolean = false;
  /** Number of publishes that wait for room. */
  pending: number = 0;
  /** Called once, when `closed` becomes true. */
  onClosed: (() => void) | undefined = undefined;
  private readonly incoming: number;
  private readonly line: LinkedSet<Pending<E>> = new LinkedSet();
  private busy: boolean = false;

  constructor(options: { capacity: number; incoming: number; keyOf: (event: E) => unknown }) {
    this.log = new EventLog(options.capacity);
    this.incoming = options.incoming;
    this.chain = new FoldChain(this.log, options.keyOf);
  }

  /** Accepts an event if there is room now. Returns whether it did. */
  accept(event: E): boolean {
    // User code may have stopped the watcher that blocked the pending publishes. They come before this event.
    while (this.pending > 0) if (!this.gate.empty || !this.admitted()) return false;
    const accepted = this.admit(event);
    // A full watcher lets events pass that its filter rejects, so the filter is asked once the event has its place. An event that
    // the filter published meanwhile may have found no room, or may have taken the room of this one.
    if (this.log.head < this.log.end || this.pending > 0) this.pump();
    return accepted;
  }

  /** Queues a publish. Resolves as soon as there is room. */
  acceptLater(event: E): Promise<void> {
    return new Promise((settle) => {
      this.line.add({ event, settle, inSet: undefined, before: undefined, after: undefined });
      // Only the blocking watcher would pump again, and user code may have made room since the gate was asked.
      if (++this.pending === 1) this.pump();
    });
  }

  /** Moves head and accepts pending publishes, as far as the gate allows. */
  pump(): void {
    if (this.busy) return; // the running pump continues, or `serve` pumps at its end
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

  /** Gives up on full `wait` watchers: they lose the events they have no room for. Pending publishes are refused. */
  force(): void {
    for (let pending = this.line.first; pending; pending = this.line.first) {
      this.unline(pending);
      pending.settle(Promise.reject(new WatchError('CLOSED', 'publish: shut down before there was room')));
    }
    const { log } = this;
    let chunk = log.chunkOf(log.head);
    // Move head to the end before any user code runs: a watcher it stops has then received, or lost, every accepted event.
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

  /** Appends an event if there is room. A publish that waited (`pending`) leaves the line right before. */
  private admit(event: E, pending?: Pending<E>): boolean {
    const { log } = this;
    while (log.head === log.end) {
      const { head } = log;
      const open = this.gate.open(head);
      // User code in the gate has shut down, or given up on the pending publishes. That came first.
      if (this.closed || (pending && !this.line.has(pending))) return false;
      if (!open) break;
      if (log.end !== head) continue; // user code in the gate has published, and that came first
      if (pending) this.unline(pending);
      log.append(event);
      this.advance();
      return true;
    }
    if (log.end - log.head >= this.incoming && !this.gate.empty) return false;
    if (pending) this.unline(pending);
    log.append(event);
    return true;
  }

  private admitted(): boolean {
    const pending = this.line.first;
    if (!pending || !this.admit(pending.event, pending)) return false;
    pending.settle(undefined);
    return true;
  }

  private unline(pending: Pending<E>): void {
    this.line.delete(pending);
    this.pending--;
  }

  /** Makes one more event visible. */
  private advance(): void {
    if (this.log.step()) this.enter(this.log.chunkOf(this.log.head));
    this.park.notify();
  }

  /** Called when head has entered a chunk: due laggards leave the log, and chunks that nobody needs are dropped. */
  private enter(chunk: number): void {
    this.chain.fold();
    this.laggards.judge(chunk);
    this.chain.unseen = undefined;
    this.log.trim();
  }

  /** Serves the parked readers, then moves on, since their reads have made room. */
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
