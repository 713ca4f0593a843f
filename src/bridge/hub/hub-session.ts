/**
 * The session of one client: one cursor on the log, written to one connection. There are no sockets here. A transport passes in a
 * {@link Sink}, and the hub decides when to flush.
 *
 *     replay, snapshot ----.
 *                          v
 *     cursor --tryBatch--> batch --slice by slice--> sink --> network
 *                           ^                         |
 *                           '-- stays here under backpressure; `relieved` continues
 *
 * **Order.** First missed events, then the snapshot, then what the cursor reads, in slices of about 256 KiB. **Slow clients.**
 * While the sink has no room, the session reads nothing. Its queue fills up, and then its overflow policy applies. So a client
 * costs at most its queue, one batch, and what the sink buffers (its limit and one slice), and affects no other client. If queue
 * and batch have too many bytes, it is cut (see sessions.ts). **Ending.** When the watch ends, the session tells the sink how, and
 * the sink tells the client. When the client goes away, in any state, the transport calls `gone`, and everything settles at once.
 *
 *              watch ends             transport: gone()
 *     open ---------------> ended ----------------------> over
 *       `---------------------------- gone(), cut() ------^
 *
 * Invariants
 * - After a flush, the sink is under backpressure, or the cursor has been read to its end, or a snapshot holds it back.
 * - `delivered + dropped + queued` is the number of events accepted for this client since it connected, including missed ones.
 * - After `over`, no promise of the session is pending, its watch has been returned, and the sink is no longer called.
 */

import { isErrorEvent, type Status, toExpired, toStatus, type WatchEvent } from '../../watch/event.ts';
import type { Watch } from '../../watch/watch.ts';
import { bookmarkOf, Envelope, toResumable } from '../events/envelope.ts';
import type { Slices } from '../events/forms.ts';
import type { Ending } from '../protocol.ts';
import type { Cleanup, ClientInfo, ClientStats, CutReason, Served, Sink } from './connection.ts';
import { clean } from './connection.ts';

const NOTHING: readonly WatchEvent[] = [];

/** What a client is told whose watch has failed: the end of a response alone would pass for that of the stream. It may come back. */
const FAILED: Status = toStatus({
  code: 500,
  reason: 'InternalError',
  message: 'this watch failed in the server',
  details: { retryAfterSeconds: 1 },
});

/** One client of a hub. Created by the hub. */
export class HubSession implements Served {
  // The fields that every flush reads are adjacent: with hundreds of clients, loading them takes most of the time.
  private flushing: boolean = false;
  over: boolean = false;
  private ended: boolean = false;
  private full: boolean = false;
  /** Nothing is read from the watch yet: what the client gets first has not been sent. */
  private held: boolean = true;
  /** This flush has written something. */
  private wrote: boolean = false;
  private from: number = 0;
  private batch: readonly WatchEvent[];
  private whenSent: ((still: boolean) => void) | undefined = undefined;
  private sequence: number;
  /** Events handed to the connection, except an ERROR that reports what was lost. */
  delivered: number = 0;
  sentBytes: number = 0;
  private ending: Ending | undefined = undefined;
  private readonly watch: SessionWatch;
  private readonly sink: Sink;
  private readonly host: HubSessionHost;
  private readonly folds: boolean;
  readonly maxQueuedBytes: number;
  /** Something was read from the watch, so what waits in `batch` was queued for this client. */
  private live: boolean = false;
  readonly id: number;
  readonly identity: unknown;
  readonly transport: ClientInfo['transport'];
  readonly address: string;
  readonly resumed: boolean;
  private readonly topics: readonly string[] | undefined;
  /** For SSE: the version to resume from before the first event; undefined if a snapshot or an ERROR comes first. */
  readonly version: string | undefined;
  /** Why the session has ended, or will end. */
  reason: Ending | CutReason | 'gone' = 'gone';
  /** The error of user code, if that is the reason. */
  error: unknown = undefined;
  /** The client asked for BOOKMARKs, so one precedes an end by timeout or age, or because the server is going away. */
  bookmarks: boolean = false;
  private lost: number = 0;
  /** The ERROR that is still to be sent before the end. */
  private failure: Status | undefined = undefined;
  /** The version of the head when the session was stopped. Later events are not for this client. */
  private lastVersion: string = '';
  /** How the hub has said to end. The last BOOKMARK and the transport report the same delay. */
  private hubEnd: ReturnType<HubSessionHost['endOfStream']> | undefined = undefined;
  private cleanups: Cleanup[] | undefined = undefined;

  constructor(options: HubSessionOptions) {
    this.id = options.id;
    this.identity = options.identity;
    this.transport = options.transport;
    this.address = options.address;
    this.resumed = options.resumed;
    this.topics = options.topics;
    this.watch = options.watch;
    this.sink = options.sink;
    this.host = options.host;
    this.folds = options.folds;
    this.maxQueuedBytes = options.maxQueuedBytes;
    this.batch = options.missed;
    this.sequence = options.after;
    this.version = options.version;
  }

  /** Whether nothing waits to be sent, and no snapshot is running. A watch that was cut has nothing queued but its ERROR. */
  get upToDate(): boolean {
    if (this.over || this.ended || this.full || this.held || this.watch.stopped) return false;
    return this.from >= this.batch.length && this.watch.queued === 0;
  }

  get view(): object | undefined {
    return this.watch.view;
  }

  /** It is catching up from the hub's source. */
  get isCatchingUp(): boolean {
    return this.watch.behind === true;
  }

  get hasRoom(): boolean {
    return !this.full;
  }

  /** Events queue up, because the connection has no room or a snapshot is running. */
  get isBehind(): boolean {
    return this.full || this.held;
  }

  /** Bytes in its connection. One that fails to tell is cut. */
  get bufferedBytes(): number {
    try {
      return this.sink.bufferedBytes;
    } catch (error) {
      this.cut('failed', error);
      return 0;
    }
  }

  /** Bytes of the events that wait for room. */
  get queuedBytes(): number {
    let bytes = this.watch.sizeOfQueue?.(bytesOf) ?? 0;
    if (this.live) for (let at = this.from; at < this.batch.length; at++) bytes += bytesOf(this.batch[at] as WatchEvent);
    return bytes;
  }

  /**
   * Ends the session because more than `maxQueuedBytes` wait. What waits is dropped at once, since its memory is the reason; one
   * ERROR takes its place. `why`: it ends for another reason.
   */
  expire(why?: string): void {
    if (this.over || this.ended || this.ending === 'expired') return;
    const missed = this.watch.queued + this.unwritten;
    this.lost += this.unwritten;
    this.ending = 'expired';
    this.held = false;
    void this.watch.return();
    this.settleSend(false);
    const tooMuch = `too slow: ${missed} events were lost, because more than ${this.maxQueuedBytes} bytes were queued`;
    // How many events a stream has lost is not known.
    const object = toExpired(`${why ?? tooMuch}; watch again from a fresh state`, why === undefined ? missed : undefined);
    this.batch = [new Envelope({ type: 'ERROR', object }, { sequence: 0 })];
    this.from = 0;
    this.flush();
  }

  /** Writes everything that is available, or as much as there is room for. Never waits. */
  flush(): void {
    if (this.flushing) return;
    this.flushing = true;
    this.wrote = false;
    try {
      while (!this.over && !this.ended && !this.full && this.step());
    } catch (error) {
      this.cut('failed', error);
    }
    this.flushing = false;
    this.host.flushed();
  }

  /** The sink has room again. Called by the transport. */
  relieved(): void {
    if (!this.full || this.over) return;
    this.full = false;
    this.host.ready(this);
  }

  /**
   * Sends events without a position, such as parts of a snapshot. Call only while nothing is being sent. Resolves to true when there is
   * room for more, or to false if the session has ended.
   */
  send(batch: readonly Envelope[]): Promise<boolean> {
    return new Promise((resolve) => {
      if (this.over || this.ended) {
        resolve(false);
        return;
      }
      this.whenSent = resolve;
      this.batch = batch;
      this.from = 0;
      this.flush();
    });
  }

  /** Starts to read the watch. Until then, only missed events and those of `send` are written. */
  release(): void {
    this.held = false;
    this.flush();
  }

  /**
   * Ends the session regularly, after the events that are queued now. Only the first call counts, and its version covers what
   * was queued. `failure` is the ERROR that is sent before an end as failed.
   */
  stop(how: Ending, error?: unknown, failure: Status = FAILED): void {
    if (this.over || this.ended || this.ending !== undefined) return;
    this.ending = how;
    this.error = error;
    if (how === 'failed') this.failure = failure;
    this.lastVersion = this.host.version;
    // An incomplete snapshot, or replay, has no version to vouch for.
    if (this.watch.behind === true) this.bookmarks = false;
    if (this.held) {
      this.bookmarks = false;
      void this.watch.return();
      this.settleSend(false);
    }
    this.held = false;
    this.watch.stop();
    this.flush();
  }

  /** Sends a BOOKMARK, unless other events still wait to be sent. */
  bookmark(): void {
    const { version, bookmarkIntervalMs: intervalMs } = this.host;
    if (this.upToDate) void this.send([bookmarkOf(version, { intervalMs })]);
  }

  /** Sends the BOOKMARK that ends a snapshot. Resolves like `send`. */
  endSnapshot(version: string): Promise<boolean> {
    // No other one follows for a client that has not asked for them.
    const intervalMs = this.bookmarks ? this.host.bookmarkIntervalMs : undefined;
    return this.send([bookmarkOf(version, { initialEventsEnd: true, intervalMs })]);
  }

  /** Runs `cleanup` when the session is over; at once if it already is. */
  whenOver(cleanup: Cleanup): void {
    if (this.over) clean(cleanup);
    // Not pushed: a growing array allocates room for 17, which would cost each idle client memory.
    else this.cleanups = this.cleanups === undefined ? [cleanup] : this.cleanups.concat(cleanup);
  }

  /** The connection is closed, by either side. Called by the transport; settles everything. Idempotent. */
  gone(): void {
    if (this.over) return;
    this.over = true;
    this.lost += this.unwritten;
    this.batch = NOTHING;
    for (const cleanup of this.cleanups ?? []) clean(cleanup);
    this.cleanups = undefined;
    void this.watch.return(); // publishers go on, at the pace of those that are still there
    this.settleSend(false);
    this.host.left(this);
  }

  /** Ends the session at once, whatever was not delivered. */
  cut(reason: CutReason, error?: unknown): void {
    if (this.over) return;
    this.reason = reason;
    this.error ??= error;
    try {
      this.sink.destroy(this.host.endOfStream().retryMs);
    } catch (fault) {
      // A sink that fails to close is abandoned, so that the other clients of this round are still flushed.
      this.error ??= fault;
    }
    this.gone();
  }

  stats(): ClientStats {
    const { bufferedBytes } = this;
    const { id, identity, transport, address, delivered, sentBytes, resumed, topics } = this;
    const dropped = this.watch.dropped + this.lost;
    const queued = this.watch.queued + this.unwritten;
    const lag = queued === 0 ? 0 : this.host.head - this.sequence;
    const named = { id, ...(identity !== undefined && { identity }), ...(topics && { topics }) };
    return { ...named, transport, address, delivered, queued, lag, dropped, sentBytes, bufferedBytes, resumed };
  }

  /** Events that were read and not written. */
  private get unwritten(): number {
    let count = 0;
    for (let at = this.from; at < this.batch.length; at++) if (((this.batch[at] as Envelope).sequence ?? 0) > 0) count++;
    return count;
  }

  /**
   * Whether the last event was just sent, so that reading can wait for the flush signal. False if an end may be due, or if the
   * watch has not reached the live events, which it does only by reading.
   */
  private get isCurrent(): boolean {
    const { host } = this;
    return this.sequence === host.seen && this.ending === undefined && !host.closing && this.wrote && this.watch.behind !== true;
  }

  /** Does one step. Returns false if there is nothing to do now. */
  private step(): boolean {
    if (this.from < this.batch.length) {
      this.write();
      return true;
    }
    this.batch = NOTHING;
    this.from = 0;
    this.settleSend(true);
    return !this.held && !this.isCurrent && this.take();
  }

  private write(): void {
    const slice = this.host.slices.of(this.batch, this.from, this.sink.form);
    this.from = slice.to;
    this.delivered += slice.events;
    this.sentBytes += slice.bytes.length;
    if (slice.sequence > this.sequence) this.sequence = slice.sequence;
    this.full = !this.sink.write(slice.bytes);
    this.wrote = true;
    if (this.full) this.host.behind(this);
  }

  private take(): boolean {
    let batch: readonly WatchEvent[] | undefined;
    const { folds, host, watch } = this;
    const read = folds ? { head: host.head, version: host.version } : undefined;
    try {
      batch = this.watch.tryBatch();
    } catch (error) {
      this.ending = 'failed';
      this.error = error;
      this.failure = FAILED;
    }
    // A filter may have cut its own client.
    if (batch === undefined) return !this.over && this.watch.stopped && this.end();
    const last = batch[batch.length - 1] as WatchEvent;
    // The hub's own events are envelopes, so this is the watch's own ERROR: it was cut.
    if (!(last instanceof Envelope) && isErrorEvent(last)) this.ending = 'expired';
    this.live = true;
    // What is read from the hub's source is not folded, and a failed or stopped watch was not read to the head.
    const isFolded = folds && watch.behind !== true;
    this.batch = isFolded ? toResumable(batch, { after: this.sequence, read: watch.stopped ? undefined : read }) : batch;
    return true;
  }

  /** The watch has ended, and everything was sent. Returns whether a last ERROR or BOOKMARK remains to be sent. */
  private end(): boolean {
    if (this.failure !== undefined) {
      this.batch = [new Envelope({ type: 'ERROR', object: this.failure }, { sequence: 0 })];
      this.failure = undefined;
      return true;
    }
    this.hubEnd ??= this.host.endOfStream();
    const how = this.ending ?? this.hubEnd.how;
    const retryAfterMs = how === 'goingAway' ? this.hubEnd.retryMs : undefined;
    if (this.bookmarks && this.watch.behind !== true && (how === 'timeout' || how === 'goingAway')) {
      this.bookmarks = false;
      const { version, bookmarkIntervalMs: intervalMs } = this.host;
      // A connection that ends because of its age belongs to a client that should come back at once.
      const planned = how === 'goingAway' ? (retryAfterMs ?? 0) : undefined;
      this.batch = [bookmarkOf(this.lastVersion || version, { intervalMs, retryAfterMs: planned })];
      return true;
    }
    this.ended = true;
    this.reason = how;
    this.sink.end(how, retryAfterMs);
    return false;
  }

  private settleSend(still: boolean): void {
    const { whenSent } = this;
    this.whenSent = undefined;
    whenSent?.(still);
  }
}

/** The watch's own ERROR has none. */
function bytesOf(event: WatchEvent): number {
  return (event as Partial<Envelope>).heldBytes ?? 0;
}

export interface HubSessionHost {
  readonly slices: Slices;
  /** Position and version of the last distributed event. */
  readonly head: number;
  readonly version: string;
  /**
   * Position of the last event whose flush signal is known to have come. A field, because each client reads it at each flush.
   */
  readonly seen: number;
  /** No event will follow, so a session that has read everything ends. Also a field. */
  readonly closing: boolean;
  /** How often a client that asks for BOOKMARKs gets one. */
  readonly bookmarkIntervalMs: number;
  /** How a completed stream ends. Each call may return a different delay. */
  endOfStream(): { readonly how: Ending; readonly retryMs: number | undefined };
  /** The session's connection is full. */
  behind(session: HubSession): void;
  /** The session has room again and should be flushed soon. */
  ready(session: HubSession): void;
  flushed(): void;
  left(session: HubSession): void;
}

interface HubSessionOptions extends ClientInfo {
  readonly id: number;
  readonly identity: unknown;
  readonly watch: SessionWatch;
  readonly sink: Sink;
  readonly host: HubSessionHost;
  /** Events to send before those of the watch, and the position before the first of them. */
  readonly missed: readonly Envelope[];
  readonly after: number;
  /** The version of that position, for SSE, which can send it without an event; undefined before a snapshot or an ERROR. */
  readonly version: string | undefined;
  readonly resumed: boolean;
  /** The topics that the client is limited to. */
  readonly topics: readonly string[] | undefined;
  /** The watch folds events, so a client cannot resume after each of them. */
  readonly folds: boolean;
  /** How many bytes of events may wait for the client. */
  readonly maxQueuedBytes: number;
}

/** What a session needs from a watch: a read that never waits. */
export interface SessionWatch<E = WatchEvent> extends Pick<Watch<E>, 'stopped' | 'queued' | 'dropped' | 'stop' | 'return'> {
  tryBatch(): readonly E[] | undefined;
  /** The view that it belongs to, unless it ended before it began; see broadcast/view.ts. */
  readonly view?: object | undefined;
  /** It has not reached the live events yet, so its client could not continue from the hub's version. */
  readonly behind?: boolean;
  /** The total size of everything queued. A watch that has ended need not implement it. */
  sizeOfQueue?(sizeOf: (event: E) => number): number;
}

/** The watch of a broadcaster. */
export interface ReadableWatch<E = WatchEvent> extends Watch<E>, SessionWatch<E> {}
