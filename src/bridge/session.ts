/**
 * One client: one cursor on the log, written into one connection. No sockets here and no timers but the clock's: a transport
 * hands in a {@link Sink}, the hub says when to look.
 *
 *     replay, snapshot ---.
 *                         v
 *     cursor --tryBatch--> hand --slice by slice--> sink --> network
 *                           ^                        |
 *                           '-- stays here while under pressure; `relieved` goes on
 *
 * **Order.** What was missed, then the snapshot, then what the cursor reads: in that order, in slices of about 256 KiB, and
 * nothing overtakes.
 * **Slow clients.** While the sink has no room the session reads nothing. Its queue then fills up, and its overflow policy
 * decides what becomes of further events. So a client costs at most its queue, the batch in hand, and what the sink holds (its
 * limit and one slice), and no other client notices.
 * **Ending.** When the watch ends, the session tells the sink how, and the sink says goodbye. When the client goes away, in
 * whatever state, the transport calls `gone` and everything settles at once.
 *
 *              watch ends             transport: gone()
 *     open ---------------> ended ----------------------> over
 *       `---------------------------- gone(), cut() ------^
 *
 * Invariants
 * - After a flush, either the sink is under pressure, or the cursor has been read out, or a snapshot holds it back.
 * - `delivered + dropped + queued` is what was accepted for this client since it came, what it had missed included.
 * - After `over` no promise of the session pends, its watch is returned, and the sink is not called any more.
 */
import type { WatchEvent } from '../watch/event.ts';
import { isErrorEvent } from '../watch/event.ts';
import type { ClientInfo, ClientStats, CutReason } from './client-info.ts';
import { bookmarkOf, Envelope } from './envelope.ts';
import { unfolded } from './folded.ts';
import type { Ending } from './protocol.ts';
import type { ReadableWatch, SessionHost, SessionOptions } from './session-host.ts';
import type { Cleanup, Served, Sink } from './sink.ts';

const NOTHING: readonly WatchEvent[] = [];

/** One client of a hub. Hubs make these. */
export class Session implements Served {
  // First what every flush looks at, side by side: with hundreds of clients, it is fetching these that takes the time.
  private flushing: boolean = false;
  over: boolean = false;
  private ended: boolean = false;
  private pressed: boolean = false;
  private held: boolean = false;
  /** Something was written in this flush. */
  private wrote: boolean = false;
  private from: number = 0;
  private hand: readonly WatchEvent[];
  private handed: ((still: boolean) => void) | undefined = undefined;
  private sequence: number;
  /** Events handed to the connection. The ERROR event that ends a cut watch says what was lost: it is not one of them. */
  delivered: number = 0;
  sentBytes: number = 0;
  private ending: Ending | undefined = undefined;
  private readonly watch: ReadableWatch;
  private readonly sink: Sink;
  private readonly host: SessionHost<Session>;
  private readonly folds: boolean;
  readonly id: number;
  readonly identity: unknown;
  readonly transport: ClientInfo['transport'];
  readonly address: string;
  readonly resumed: boolean;
  /** For SSE: where this client can go on though no event has come; undefined if a snapshot comes first. */
  readonly version: string | undefined;
  /** Why it is over, or will be. */
  reason: Ending | CutReason | 'gone' = 'gone';
  /** What user code has thrown, if that is why. */
  error: unknown = undefined;
  /** Its client wants BOOKMARK events: one comes also before an end by timeout. */
  bookmarks: boolean = false;
  private lost: number = 0;
  /** The head when it was stopped: what came later is not for this client. */
  private lastVersion: string = '';
  private cleanups: Cleanup[] | undefined = undefined;

  constructor(options: SessionOptions<Session>) {
    this.id = options.id;
    this.identity = options.identity;
    this.transport = options.transport;
    this.address = options.address;
    this.resumed = options.resumed;
    this.watch = options.watch;
    this.sink = options.sink;
    this.host = options.host;
    this.folds = options.folds;
    this.hand = options.missed;
    this.sequence = options.after;
    this.version = options.version;
  }

  /** Whether nothing waits for the connection, nor for the snapshot to end. */
  get upToDate(): boolean {
    return !this.over && !this.ended && !this.pressed && !this.held && this.from >= this.hand.length && this.watch.queued === 0;
  }

  /** Whether its connection takes more. */
  get hasRoom(): boolean {
    return !this.pressed;
  }

  /** Writes all that is there, or as much as there is room for. Runs no longer than that, and waits for nothing. */
  flush(): void {
    if (this.flushing) return;
    this.flushing = true;
    this.wrote = false;
    try {
      while (!this.over && !this.ended && !this.pressed && this.step());
    } catch (error) {
      this.cut('failed', error);
    }
    this.flushing = false;
    this.host.flushed();
  }

  /** The sink has room again. Called by the transport. */
  relieved(): void {
    if (!this.pressed || this.over) return;
    this.pressed = false;
    this.host.ready(this);
  }

  /** From now on the watch is not read: what `send` is given comes first, until `release`. */
  hold(): void {
    this.held = true;
  }

  /** Sends what has no place in the stream, such as a snapshot's part; only when nothing is in hand. Resolves when there is room for more; false if there is nobody any more. */
  send(batch: readonly Envelope[]): Promise<boolean> {
    return new Promise((resolve) => {
      if (this.over || this.ended) {
        resolve(false);
        return;
      }
      this.handed = resolve;
      this.hand = batch;
      this.from = 0;
      this.flush();
    });
  }

  release(): void {
    this.held = false;
    this.flush();
  }

  /** Ends this client in order, after what is queued for it now. */
  stop(how: Ending, error?: unknown): void {
    if (this.over || this.ended) return;
    this.ending ??= how;
    this.error ??= error;
    this.lastVersion = this.host.version;
    // A snapshot that is not through has nothing to vouch for.
    if (this.held) {
      this.bookmarks = false;
      void this.watch.return();
      this.settleHanded(false);
    }
    this.held = false;
    this.watch.stop();
    this.flush();
  }

  /** A BOOKMARK now, unless something waits for the connection: that must come first. */
  bookmark(): void {
    if (this.upToDate) void this.send([bookmarkOf(this.host.version)]);
  }

  /** Calls back at the end, whichever it is; at once if that was. */
  whenOver(cleanup: Cleanup): void {
    if (this.over) clean(cleanup);
    else if (this.cleanups === undefined) this.cleanups = [cleanup];
    else this.cleanups.push(cleanup);
  }

  /** The connection is closed. Called by the transport, whoever closed it; settles everything. Idempotent. */
  gone(): void {
    if (this.over) return;
    this.over = true;
    this.lost = this.inHand;
    this.hand = NOTHING;
    void this.watch.return();
    this.settleHanded(false);
    for (const cleanup of this.cleanups ?? []) clean(cleanup);
    this.cleanups = undefined;
    this.host.left(this);
  }

  /** Ends this client at once, whatever it has not got yet. */
  cut(reason: CutReason, error?: unknown): void {
    if (this.over) return;
    this.reason = reason;
    this.error ??= error;
    try {
      this.sink.destroy(this.host.farewell().retryMs);
    } catch (fault) {
      // A connection that cannot even be closed is given up all the same: other clients are flushed in the same round.
      this.error ??= fault;
    }
    this.gone();
  }

  stats(): ClientStats {
    const { id, identity, transport, address, delivered, sentBytes, resumed } = this;
    const dropped = this.watch.dropped + this.lost;
    const queued = this.watch.queued + this.inHand;
    const lag = queued === 0 ? 0 : this.host.head - this.sequence;
    const { bufferedBytes } = this.sink;
    const named = identity === undefined ? { id } : { id, identity };
    return { ...named, transport, address, delivered, queued, lag, dropped, sentBytes, bufferedBytes, resumed };
  }

  /** Events that were read and not written. */
  private get inHand(): number {
    let count = 0;
    for (let at = this.from; at < this.hand.length; at++) if (((this.hand[at] as Envelope).sequence ?? 0) > 0) count++;
    return count;
  }

  /** It has just been sent the last event there is. What comes meanwhile rings the bell; no end is near that had to be looked for. */
  private get isCurrent(): boolean {
    const { host } = this;
    return this.sequence === host.seen && this.ending === undefined && !host.closing && this.wrote;
  }

  /** One thing after the other; false when there is nothing to do now. */
  private step(): boolean {
    if (this.from < this.hand.length) {
      this.write();
      return true;
    }
    this.hand = NOTHING;
    this.from = 0;
    this.settleHanded(true);
    return !this.held && !this.isCurrent && this.take();
  }

  private write(): void {
    const slice = this.host.slices.of(this.hand, this.from, this.sink.form);
    this.from = slice.to;
    this.delivered += slice.events;
    this.sentBytes += slice.bytes.length;
    if (slice.sequence > this.sequence) this.sequence = slice.sequence;
    this.pressed = !this.sink.write(slice.bytes);
    this.wrote = true;
  }

  private take(): boolean {
    let batch: readonly WatchEvent[] | undefined;
    const { folds, host, watch } = this;
    const read = folds ? { head: host.head, version: host.version } : undefined;
    try {
      batch = this.watch.tryBatch();
    } catch (error) {
      this.ending = 'failed';
      this.error ??= error;
    }
    if (batch === undefined) return this.watch.stopped && this.end();
    const last = batch[batch.length - 1] as WatchEvent;
    if (!(last instanceof Envelope) && isErrorEvent(last) && last.object.code === 410) this.ending = 'expired';
    // A watch that has failed, or was stopped, has not been read up to the head.
    this.hand = folds ? unfolded(batch, { after: this.sequence, read: watch.stopped ? undefined : read }) : batch;
    return true;
  }

  /** The watch has ended, and all of it was sent. Answers whether there is a last word. */
  private end(): boolean {
    if (this.ending === 'timeout' && this.bookmarks) {
      this.bookmarks = false;
      this.hand = [bookmarkOf(this.lastVersion)];
      return true;
    }
    const { how, retryMs } = this.host.farewell();
    this.ended = true;
    this.reason = this.ending ?? how;
    this.sink.end(this.reason as Ending, this.reason === 'goingAway' ? retryMs : undefined);
    return false;
  }

  private settleHanded(still: boolean): void {
    const { handed } = this;
    this.handed = undefined;
    handed?.(still);
  }
}

function clean(cleanup: Cleanup): void {
  if (typeof cleanup === 'function') cleanup();
  else cleanup.leave();
}
