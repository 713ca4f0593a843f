import { Broadcaster } from '../broadcast/broadcaster.ts';
import type { Clock } from '../watch/clock.ts';
import { emptyWatch } from '../watch/empty-watch.ts';
import { wholeNumber } from '../watch/errors.ts';
import type { Status, WatchEvent } from '../watch/event.ts';
import { isStatus, toStatus } from '../watch/event.ts';
import type { Watch } from '../watch/watch.ts';
import type { ClientInfo, ClientStats } from './client-info.ts';
import type { Envelope } from './envelope.ts';
import { Flusher } from './flusher.ts';
import type { ClientOptions, HubOptions, HubSettings, HubStats, ShutdownOptions } from './hub-options.ts';
import { toSettings } from './hub-options.ts';
import { eventKey } from './key.ts';
import type { Ending } from './protocol.ts';
import { toVersion } from './protocol.ts';
import { Publisher } from './publisher.ts';
import type { Asked } from './query.ts';
import { LEAVING, unavailable } from './refusals.ts';
import { Seats, Ticket } from './seats.ts';
import { Session } from './session.ts';
import type { ReadableWatch, SessionHost } from './session-host.ts';
import { bookmarkEvery, endAfter } from './session-timers.ts';
import type { Sink } from './sink.ts';
import { Snapshots } from './snapshot.ts';
import type { Start } from './start.ts';
import { COMPLETE, permitted, toStart } from './start.ts';
import type { Observer, Refusal } from './tally.ts';
import { Tally } from './tally.ts';
import { ReplayWindow } from './window.ts';

export type { ClientOptions, HubOptions, HubStats, ShutdownOptions } from './hub-options.ts';

/** A client that a transport brings. */
export interface Client extends ClientInfo {
  /** Where it begins, from {@link Hub.start} in the same step; default: where one does that asks for nothing. */
  readonly start?: Start | undefined;
  readonly asked?: Asked | undefined;
  readonly options?: ClientOptions | undefined;
  readonly identity?: unknown;
  /** Its seat; taken anew if there is none. */
  readonly ticket?: Ticket | undefined;
}

/**
 * What clients connect to: a {@link Broadcaster} that numbers its events, encodes each of them once, and gives every client a
 * bounded watch of its own. Publish into it, or let it {@link follow} any watch; then hand it to `createHttpHandler`,
 * `createFetchHandler` and `attachWebSocket`, all at once if you like.
 *
 *     publish --> Broadcaster --+--> window: the last events, for who comes back
 *                               +--> bell --> flusher: all sessions, once per turn of the event loop
 *                               +--> a cursor per session --> its connection
 *
 * A client that names a version goes on right after it. What it missed and what is live meet at one position that is taken in
 * one synchronous step: nothing is lost between them, and nothing comes twice.
 */
export class Hub<E extends WatchEvent = WatchEvent> {
  private readonly settings: HubSettings<WatchEvent>;
  private readonly broadcaster: Broadcaster<Envelope>;
  private readonly window: ReplayWindow;
  /** What was distributed and is not in the window yet. */
  private readonly tail: ReadableWatch<Envelope>;
  private readonly flusher: Flusher;
  private readonly seats: Seats;
  private readonly snapshots: Snapshots;
  private readonly tally: Tally = new Tally();
  private readonly publisher: Publisher;
  private readonly host: SessionHost<Session> & { seen: number; closing: boolean };
  private closing: Promise<void> | undefined = undefined;
  /** Every event there will ever be has been distributed. */
  private ended: boolean = false;
  private retryAfterMs: number | undefined = undefined;
  private empty: (() => void) | undefined = undefined;
  /** Who is still being asked who they are, and will not be let in. */
  private readonly unsettled: Set<() => void> = new Set();
  /** What is published by itself, until it ends or this does. */
  private readonly followed: Set<Watch<E>> = new Set();
  /** What clients are told when that fails: whatever their filter lets through. */
  private failure: Status | undefined = undefined;

  /** @throws {WatchError} INVALID_ARGUMENT for an option that is not what it should be. */
  constructor(options: HubOptions<E> = {}) {
    const settings = toSettings(options as HubOptions);
    const { capacity, overflow, keyOf, replayItems, maxPending, clock, nextTurn, onNotice } = settings;
    this.settings = settings;
    // Nothing may be accepted and not yet distributed: neither the tail nor a new client would see it.
    this.broadcaster = new Broadcaster<Envelope>({
      capacity,
      overflow,
      maxPending,
      incoming: 0,
      keyOf: (event) => eventKey(event, keyOf),
    });
    this.tail = this.broadcaster.watch({
      capacity: Math.max(replayItems, 1),
      overflow: 'drop-oldest',
    }) as ReadableWatch<Envelope>;
    this.window = new ReplayWindow({ items: replayItems, bytes: settings.replayBytes });
    this.seats = new Seats(settings);
    this.flusher = new Flusher({
      bell: this.broadcaster.watch({ capacity: 1, overflow: 'drop-newest' }),
      before: () => {
        this.publisher.flushed();
        this.catchUp();
      },
      ...settings,
    });
    const { broadcaster, flusher } = this;
    this.publisher = new Publisher({ ...settings, broadcaster, flush: () => flusher.flush() });
    this.snapshots = new Snapshots({
      atOnce: settings.maxSnapshots,
      turn: () => new Promise((resolve) => nextTurn(resolve)),
    });
    this.host = this.toHost(clock);
    if (onNotice !== undefined) this.tally.observe({ tell: onNotice });
  }

  /**
   * Resolves when the event is accepted, which under `wait` is when every client has room, and when connections have had the
   * turns of the event loop that keep a burst from being an overflow. `json` is the event's text, for callers that have it: it
   * goes out as it is written. Rejects with CLOSED, OVERLOADED or INVALID_ARGUMENT, and with what JSON.stringify throws.
   */
  publish(event: E, json?: string): Promise<void> {
    return this.publisher.publish(event, json);
  }

  /**
   * Never waits: false when a client with `wait` has no room now, and while another event is being published, as from inside
   * its `toJSON`. Throws CLOSED after shutdown, INVALID_ARGUMENT, and what JSON.stringify throws.
   */
  tryPublish(event: E, json?: string): boolean {
    return this.publisher.tryPublish(event, json);
  }

  /**
   * Publishes all that a watch brings, at the pace that the clients' policy allows, and shuts down when it ends. Resolves
   * when all clients have got theirs. If the watch fails, clients get an ERROR event, and this rejects with the watch's error.
   * {@link shutdown} stops the watch.
   */
  async follow(watch: Watch<E>): Promise<void> {
    this.followed.add(watch);
    if (this.closing !== undefined) watch.stop();
    try {
      for await (const event of watch) await this.publish(event);
    } catch (error) {
      if (this.closing === undefined) {
        this.failure = toStatus({ code: 500, reason: 'InternalError', message: 'the source of this watch failed' });
        await this.publish({ type: 'ERROR', object: this.failure } as WatchEvent as E).catch(() => {});
        await this.shutdown();
        throw error;
      }
    } finally {
      this.followed.delete(watch);
    }
    await this.shutdown();
  }

  /** For transports: a seat for a client that may be let in, or why there is none. Whoever takes it opens with it, or gives it back. */
  reserve(address: string): Ticket | Status {
    if (this.leaving) return this.refuse({ reason: 'ended', status: LEAVING, address });
    const ticket = this.seats.take(address);
    return ticket instanceof Ticket
      ? ticket
      : this.refuse({ reason: ticket.reason, status: unavailable(ticket.message), address });
  }

  /** For transports: a seat for one who is only told no, until it has gone; undefined if there is none. */
  reserveForRefusal(): Ticket | undefined {
    const ticket = this.seats.take('');
    return ticket instanceof Ticket ? ticket : undefined;
  }

  /** For transports: calls back when this shuts down, for those who wait to be let in. The function that comes back ends that. */
  whenClosing(callback: () => void): () => void {
    this.unsettled.add(callback);
    return () => void this.unsettled.delete(callback);
  }

  /** For transports: counts and tells of a refusal, and hands its Status on. */
  refuse(refusal: Refusal): Status {
    this.tally.refused(refusal);
    return refusal.status;
  }

  /**
   * For transports: where a client begins that asked so; a Status of code 410, 400 or 503 if it cannot, which counts as a
   * refusal, and so does {@link COMPLETE}: the stream has ended, and this client has all of it.
   */
  start(asked: Asked, address: string = ''): Start | Status {
    if (this.leaving) return this.refuse({ reason: 'ended', status: LEAVING, address });
    const start = this.decide(asked);
    if (isStatus(start)) return this.refuse({ reason: start.code === 410 ? 'expired' : 'badRequest', status: start, address });
    const isNothing = start.missed.length === 0 && !start.snapshot;
    return this.ended && isNothing ? this.refuse({ reason: 'ended', status: COMPLETE, address }) : start;
  }

  /** The version of the last accepted event: going on after it misses nothing. */
  get version(): string {
    this.catchUp();
    return toVersion(this.settings.epoch, this.window.head);
  }

  /** For transports: takes a client. */
  open(sink: Sink, client: Client): Session {
    const { version } = this;
    // Who asks for nothing is refused nothing.
    const { start = this.decide({}) as Start, options = {}, ticket } = client;
    const overflow = options.overflow ?? this.settings.overflow;
    const filter = options.filter && this.judge(options.filter);
    const watch = this.ended ? emptyWatch<Envelope>() : this.broadcaster.watch({ ...options, overflow, filter } as ClientOptions);
    const { missed, thrown } = permitted(start.missed, filter);
    // What is missed may also be an ERROR, which has no place.
    const after = (start.missed[0]?.sequence || this.window.head + 1) - 1;
    const session = new Session({
      id: ++this.tally.clients,
      identity: client.identity,
      transport: client.transport,
      address: client.address,
      host: this.host,
      folds: overflow === 'coalesce',
      resumed: start.resumed,
      missed,
      after,
      version: client.transport === 'sse' && !start.snapshot ? toVersion(this.settings.epoch, after) : undefined,
      watch: watch as ReadableWatch<Envelope>,
      sink,
    });
    if (ticket === undefined) this.seats.add(client.address);
    else ticket.keep();
    if (options.capacity !== undefined) session.whenOver(this.publisher.heed(options.capacity));
    this.flusher.add(session);
    sink.opened(session);
    this.tally.opened(() => session.stats());
    if (start.resumed) this.tally.resumed(() => session.stats(), start.missed.length);
    if (thrown !== undefined) session.stop('failed', thrown.error);
    this.begin(session, { ...client, start, version });
    return session;
  }

  stats(): HubStats {
    const { version } = this;
    const clients = Array.from(this.flusher.sessions, (session) => session.stats());
    return { version, accepted: this.window.head, clients, total: this.tally.totals(clients) };
  }

  /** Tells someone of every client that comes, goes, is cut, refused, or resumes. The function that comes back ends that. */
  observe(observer: Observer): () => void {
    return this.tally.observe(observer);
  }

  /** What is logged of a hub is its numbers, and not all that it keeps. */
  toJSON(): HubStats {
    return this.stats();
  }

  /**
   * Ends clients at once, such as those whose token has expired; answers how many. They come back, and `authenticate` is asked
   * again: only it can keep them out.
   */
  disconnect(which: (client: ClientStats) => boolean): number {
    const chosen = [...this.flusher.sessions].filter((session) => which(session.stats()));
    for (const session of chosen) session.cut('disconnected');
    return chosen.length;
  }

  /**
   * No more events: what was accepted is delivered, then every client's stream ends; resolves when they are gone. A client that
   * does not read can make that long: an aborted `signal` cuts whoever is left. The first call says whether it is the stream or
   * the server that ends.
   */
  async shutdown(options: ShutdownOptions = {}): Promise<void> {
    const { signal, retryAfterMs } = options;
    const cut = (): void => {
      for (const session of [...this.flusher.sessions]) session.cut('deadline');
    };
    if (this.closing === undefined) {
      if (retryAfterMs !== undefined) this.retryAfterMs = wholeNumber('retryAfterMs', retryAfterMs);
      this.closing = this.close();
      for (const watch of this.followed) watch.stop();
      for (const callback of this.unsettled) callback();
      this.unsettled.clear();
    }
    if (signal?.aborted) cut();
    signal?.addEventListener('abort', cut, { once: true });
    await this.closing;
    signal?.removeEventListener('abort', cut);
  }

  private decide(asked: Asked): Start | Status {
    this.catchUp();
    const { epoch, replay, snapshot } = this.settings;
    return toStart(asked, { epoch, replay, window: this.window, hasSnapshot: snapshot !== undefined });
  }

  private async close(): Promise<void> {
    this.host.closing = true;
    await this.broadcaster.shutdown();
    this.flusher.close();
    this.ended = true;
    if (this.flusher.sessions.size === 0) return;
    await new Promise<void>((resolve) => {
      this.empty = resolve;
    });
  }

  private begin(session: Session, client: Client & { start: Start; version: string }): void {
    const { snapshot: source, bookmarkIntervalMs, clock } = this.settings;
    const { start, version, asked = {}, identity, options } = client;
    if (asked.timeoutSeconds !== undefined) endAfter(session, asked.timeoutSeconds * 1_000, clock);
    if (asked.allowWatchBookmarks === true) bookmarkEvery(session, bookmarkIntervalMs, clock);
    if (start.snapshot && source !== undefined) {
      void this.snapshots.run(session, { source, identity, version, filter: options?.filter });
    }
    session.flush();
    // Whoever has no version yet, and is cut off before the first event, would not know where to go on.
    if (asked.allowWatchBookmarks === true && asked.resourceVersion === undefined && session.delivered === 0) session.bookmark();
  }

  /**
   * Nobody can be served: the last events are still on their way to those who wait for them, or the server goes away, and who
   * comes is to ask another. Once it has ended, a hub serves what it still has.
   */
  private get leaving(): boolean {
    return this.closing !== undefined && (!this.ended || this.retryAfterMs !== undefined);
  }

  private toHost(clock: Clock): Hub['host'] {
    const hub = this;
    return {
      clock,
      slices: this.flusher.slices,
      seen: 0,
      closing: false,
      get head() {
        hub.catchUp();
        return hub.window.head;
      },
      get version() {
        return hub.version;
      },
      farewell: () => this.farewell(),
      ready: (session) => this.flusher.ready(session),
      flushed: () => this.flusher.flushed(),
      left: (session) => {
        this.flusher.remove(session);
        this.seats.give(session.address);
        this.tally.closed(session.stats(), session.reason, session.error);
        if (this.flusher.sessions.size === 0) this.empty?.();
      },
    };
  }

  private judge(filter: (event: WatchEvent) => boolean): (event: WatchEvent) => boolean {
    return (event) => (this.failure !== undefined && event.object === this.failure) || filter(event);
  }

  private farewell(): { how: Ending; retryMs: number | undefined } {
    const { retryAfterMs } = this;
    if (retryAfterMs === undefined) return { how: 'complete', retryMs: undefined };
    return { how: 'goingAway', retryMs: Math.floor(this.settings.random() * retryAfterMs) };
  }

  /** Moves what was distributed into the window. */
  private catchUp(): void {
    for (let batch = this.tail.tryBatch(); batch !== undefined; batch = this.tail.tryBatch()) {
      for (const envelope of batch) this.window.push(envelope);
    }
    this.host.seen = this.window.head;
  }
}
