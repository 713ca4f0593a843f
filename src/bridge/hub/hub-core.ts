import type { WatchOptions } from '../../broadcast/broadcaster.ts';
import { POLICIES } from '../../broadcast/policies.ts';
import { concerns, toTopics } from '../../broadcast/topics.ts';
import { sleep } from '../../watch/clock.ts';
import { isStatus, type Status, type WatchEvent } from '../../watch/event.ts';
import { emptyWatch } from '../../watch/pull-watch.ts';
import type { Envelope } from '../events/envelope.ts';
import { Publisher } from '../events/publisher.ts';
import { ConnectionSlots, Reservation } from './admission/connection-slots.ts';
import { LEAVING, NOT_READY, unavailable } from './admission/refusals.ts';
import { Backlog } from './backlog.ts';
import type { ClientInfo, Sink } from './connection.ts';
import { COMPLETE, Feed, permitted, type Start, verdictOf } from './feed.ts';
import { Flusher } from './flusher.ts';
import type { ClientOptions, HubSettings, HubStats } from './hub-options.ts';
import { Lifetime } from './lifetime.ts';
import type { ParsedQuery } from './query.ts';
import type { ReadableWatch, SessionHost } from './session.ts';
import { Session } from './session.ts';
import { SessionTimers } from './session-timers.ts';
import { Snapshots } from './snapshot.ts';
import type { CatchUp } from './source/source.ts';
import { FIRST_PLACE, SourceFeed } from './source/source-feed.ts';
import { type CatchUpListener, Sourced } from './source/sourced.ts';

import { type Refusal, Tally } from './tally.ts';

/** A client, as its transport describes it. */
export interface Client extends ClientInfo {
  /** Where it starts, from {@link HubCore.start} in the same synchronous step; default: as for a request without parameters. */
  readonly start?: Start | undefined;
  readonly asked?: ParsedQuery | undefined;
  readonly options?: ClientOptions | undefined;
  readonly identity?: unknown;
  /** When its stream has to end, in ms since 1970; default: never. */
  readonly expiresAtMs?: number | undefined;
  /** Its slot; default: a new one. */
  readonly reservation?: Reservation | undefined;
}

/**
 * A hub as its transports see it: admits clients, decides where each one starts, and opens its session.
 *
 *     reserve --> (who is it? what may it see?) --> start --> open --> Session
 *        '-- no slot, or closing: 503                 '-- 400, 410; once the stream has ended, 204
 *
 * Call `start` and `open` in one synchronous step, so that missed and live events meet without a gap.
 */
export class HubCore {
  readonly publisher: Publisher;
  readonly tally: Tally;
  readonly lifetime: Lifetime;
  private readonly settings: HubSettings<WatchEvent>;
  private readonly feed: Feed;
  private readonly flusher: Flusher;
  private readonly backlog: Backlog<Session> = new Backlog();
  private readonly slots: ConnectionSlots;
  private readonly snapshots: Snapshots;
  private readonly timers: SessionTimers;
  private readonly host: SessionHost<Session> & { seen: number; closing: boolean };
  /** The additional parts of a hub with a source. */
  readonly sourced: Sourced | undefined = undefined;
  /** Readers in this process, which are notified when the source cannot be continued. */
  readonly readers: Set<{ lose(why: string): void }> = new Set();
  private readonly listener: CatchUpListener = {
    ready: (session) => this.flusher.ready(session),
    joined: (session) => this.flusher.add(session),
  };
  /** How often the application has disconnected clients. */
  disconnects: number = 0;
  /** Resolves the promise that waits for the last client to go. */
  private empty: (() => void) | undefined = undefined;

  constructor(settings: HubSettings<WatchEvent>) {
    this.settings = settings;
    this.tally = new Tally(settings);
    this.lifetime = new Lifetime(settings.random);
    const { source } = settings;
    const isForAll = (envelope: Envelope): boolean => this.isOwnFailure(envelope);
    const sourceFeed = source && new SourceFeed(settings, isForAll);
    this.feed = sourceFeed ?? new Feed(settings, isForAll);
    this.slots = new ConnectionSlots(settings);
    this.flusher = new Flusher({
      flushSignal: this.feed.watch({ capacity: 1, overflow: 'drop-newest' }),
      feed: this.feed,
      before: () => {
        this.publisher.flushed();
        this.host.seen = this.feed.head;
      },
      after: () => this.backlog.check(),
      ...settings,
    });
    const { feed, flusher, backlog } = this;
    this.publisher = new Publisher({
      ...settings,
      broadcaster: feed.broadcaster,
      keeper: {
        grew: (envelope, bytes) => {
          feed.grew(envelope, bytes);
          backlog.grow(bytes);
        },
      },
      flush: () => flusher.flush(),
      backlog,
      most: () => flusher.most,
      ...(sourceFeed && { sequence: FIRST_PLACE, accepted: () => this.sourced?.reached() }),
    });
    this.snapshots = new Snapshots({
      atOnce: settings.maxSnapshots,
      timeoutMs: settings.snapshotTimeoutMs,
      maxEventBytes: settings.maxEventBytes,
      clock: settings.clock,
      turn: () => new Promise((resolve) => settings.nextTurn(resolve)),
    });
    this.timers = new SessionTimers({ ...settings, version: () => this.version });
    this.host = this.toHost();
    if (source !== undefined && sourceFeed !== undefined) {
      const { publisher, tally } = this;
      this.sourced = new Sourced({ source, feed: sourceFeed, publisher, settings, tally, onReset: () => this.reset() });
    }
  }

  /** The version of the last distributed event. */
  get version(): string {
    return this.feed.version;
  }

  /** The time of day, in ms since 1970. */
  get now(): () => number {
    return this.settings.now;
  }

  /** Whether clients may be limited to topics. */
  get hasTopics(): boolean {
    return this.settings.topicsOf !== undefined;
  }

  /** The sessions of all connected clients. */
  get sessions(): ReadonlySet<Session> {
    return this.flusher.sessions;
  }

  stats(): HubStats {
    const { version } = this;
    const clients = Array.from(this.sessions, (session) => session.stats());
    const { sourced } = this;
    const { oversize } = this.publisher;
    const accepted = this.feed.head - (sourced ? FIRST_PLACE : 0);
    const more = sourced && { source: sourced.follower.stats() };
    return { version, accepted, oversize, clients, total: this.tally.totals(clients), ...more };
  }

  /** Refuses new events, delivers accepted ones, then ends every stream. Resolves when all clients have gone. */
  close(retryAfterMs?: number): Promise<void> {
    // A stream does not end with one of the hubs that follow it.
    const afterMs = retryAfterMs ?? (this.sourced && RETRY_AFTER_MS);
    return this.lifetime.close(() => this.drain(), afterMs);
  }

  /** Whether only the source can tell where a client with this request starts, or this hub is not connected to it yet. */
  mustLocate(asked: ParsedQuery): boolean {
    return this.sourced?.locator.knows(asked) === false;
  }

  /** Asks the source. Resolves to undefined when this hub can answer the request by itself, be it with 410. */
  locate(asked: ParsedQuery, gone: AbortSignal): Promise<CatchUp | undefined> {
    return this.sourced?.locator.locate(asked, gone) ?? Promise.resolve(undefined);
  }

  /** Watches the events after a version, if all of them are kept here. */
  watchAfter(version: string, options: WatchOptions<Envelope>): ReadableWatch<Envelope> | undefined {
    const place = this.feed.placeOf(version);
    return place === undefined ? undefined : this.feed.watchAfter(place, options);
  }

  /** Resolves when clients are served; to false if the hub ends, or `gone` aborts, before that. */
  ready(gone: AbortSignal): Promise<boolean> {
    const { sourced, lifetime } = this;
    return sourced
      ? sourced.follower.until(() => sourced.follower.ready, gone)
      : Promise.resolve(!lifetime.closing && !gone.aborted);
  }

  /** Waits before something that failed is tried again. */
  pause(gone: AbortSignal): Promise<void> {
    return sleep(RETRY_AFTER_MS, { signal: gone, clock: this.settings.clock }).catch(() => {});
  }

  /** Reserves a slot, or returns a refusal. The caller opens a session with the slot or releases it. */
  reserve(address: string): Reservation | Status {
    if (this.lifetime.leaving) return this.refuse({ reason: 'ended', status: LEAVING, address });
    const reservation = this.slots.reserve(address);
    return reservation instanceof Reservation
      ? reservation
      : this.refuse({ reason: reservation.reason, status: unavailable(reservation.message), address });
  }

  /** Reserves a slot for a client that is only being refused, until it has gone; undefined if there is none. */
  reserveForRefusal(): Reservation | undefined {
    const reservation = this.slots.reserve('');
    return reservation instanceof Reservation ? reservation : undefined;
  }

  /** Counts and reports a refusal. Returns its Status. */
  refuse(refusal: Refusal): Status {
    this.tally.refused(refusal);
    return refusal.status;
  }

  /**
   * Returns where a client with this request starts, or a Status of code 410, 400 or 503. That counts as a refusal, as does
   * {@link COMPLETE}: the stream has ended, and this client has received all that its filter lets through.
   */
  start(asked: ParsedQuery, { address = '', options = {}, catchUp }: StartContext = {}): Start | Status {
    if (this.lifetime.leaving) return this.refuse({ reason: 'ended', status: LEAVING, address });
    if (this.sourced?.follower.ready === false) return this.refuse({ reason: 'failed', status: NOT_READY, address });
    if (catchUp !== undefined) return { missed: [], resumed: true, snapshot: false, catchUp };
    const start = this.feed.start(asked, options.topics);
    if (isStatus(start)) return this.refuse({ reason: start.code === 410 ? 'expired' : 'badRequest', status: start, address });
    return this.lifetime.ended && !start.snapshot && this.hidesAll(start, options.filter)
      ? this.refuse({ reason: 'ended', status: COMPLETE, address })
      : start;
  }

  /** Starts a session. */
  open(sink: Sink, client: Client): Session {
    const { version } = this;
    // A request without parameters is never refused.
    const { options = {}, reservation } = client;
    const { start = this.feed.start({}, options.topics) as Start } = client;
    const overflow = options.overflow ?? this.settings.overflow;
    const filter = options.filter && this.judge(options.filter);
    const { topics, capacity, maxQueuedBytes } = options;
    const own = { topics, capacity, overflow, filter };
    const { catchUp } = start;
    const behind = catchUp && this.sourced?.watch(catchUp, own, { ...this.listener, session: () => session });
    const watch = this.lifetime.ended ? undefined : (behind ?? this.feed.watch(own));
    const { missed, thrown } = permitted(start.missed, filter);
    // The first may be an ERROR, which has no position. With a version before it, a client could resume and never see it.
    const first = start.missed[0]?.sequence;
    const after = (catchUp && this.sourced?.feed.placeBefore(catchUp.position.sequence)) ?? (first || this.feed.head + 1) - 1;
    const told = client.transport === 'sse' && !start.snapshot && first !== 0;
    const session: Session = new Session({
      id: ++this.tally.clients,
      identity: client.identity,
      transport: client.transport,
      address: client.address,
      host: this.host,
      folds: POLICIES[overflow].folds,
      maxQueuedBytes: maxQueuedBytes ?? this.settings.maxQueuedBytes,
      resumed: start.resumed,
      missed,
      after,
      version: told ? (catchUp?.version ?? this.feed.versionOf(after)) : undefined,
      topics,
      watch: watch ?? (emptyWatch<Envelope>() as ReadableWatch<Envelope>),
      sink,
    });
    if (reservation === undefined) this.slots.add(client.address);
    else reservation.keep();
    if (capacity !== undefined) session.whenOver(this.publisher.pace.include(capacity));
    if (maxQueuedBytes !== undefined) session.whenOver(this.publisher.bytePace.include(maxQueuedBytes));
    this.flusher.add(session);
    const broken = attempt(() => sink.opened(session));
    this.tally.opened(() => session.stats());
    const replayed = catchUp ? this.feed.head - after : start.missed.length;
    if (start.resumed) this.tally.resumed(() => session.stats(), replayed);
    if (thrown !== undefined) session.stop('failed', thrown.error);
    if (broken !== undefined) session.cut('failed', broken.error);
    this.begin(session, sink, { ...client, filter: topics ? this.select(topics, filter) : filter, start, version });
    return session;
  }

  /** The source cannot be continued: connected clients must not mistake what follows for a continuation. */
  private reset(): void {
    const why = 'the stream was replaced, or has lost events';
    for (const session of [...this.sessions]) session.expire(why);
    for (const reader of [...this.readers]) reader.lose(why);
  }

  /** Whether the client would get nothing. An empty response would make it reconnect again and again. */
  private hidesAll({ missed }: Start, filter: ClientOptions['filter']): boolean {
    const seen = permitted(missed, filter && this.judge(filter));
    return seen.missed.length === 0 && seen.thrown === undefined;
  }

  private begin(session: Session, sink: Sink, client: Client & Beginning): void {
    const { snapshot: source } = this.settings;
    const { start, version, asked = {}, identity, filter, expiresAtMs = Number.POSITIVE_INFINITY } = client;
    this.timers.endAt(session, expiresAtMs);
    this.timers.start(session, sink, asked);
    const age = (): void => this.timers.limitAge(session);
    // An age counted from before the snapshot could end each attempt at a long one.
    if (start.snapshot && source !== undefined) {
      this.backlog.add(session);
      void this.snapshots.run(session, { source, identity, version, filter }).then(age);
    } else {
      age();
      session.release();
    }
    // A client without a version that is cut off now could not resume otherwise, and a client that has seen no sign of life does
    // not take silence for a lost connection.
    if (asked.allowWatchBookmarks === true) session.bookmark();
  }

  private toHost(): HubCore['host'] {
    const core = this;
    return {
      slices: this.flusher.slices,
      seen: 0,
      closing: false,
      bookmarkIntervalMs: this.settings.bookmarkIntervalMs,
      get head() {
        return core.feed.head;
      },
      get version() {
        return core.version;
      },
      endOfStream: () => this.lifetime.endOfStream(),
      behind: (session) => this.backlog.add(session),
      ready: (session) => this.flusher.ready(session),
      flushed: () => this.flusher.flushed(),
      left: (session) => {
        this.flusher.remove(session);
        this.backlog.remove(session);
        this.slots.release(session.address);
        this.tally.closed(session.stats(), session.reason, session.error);
        if (this.sessions.size === 0) this.empty?.();
      },
    };
  }

  private judge(filter: (event: WatchEvent) => boolean): (event: WatchEvent) => boolean {
    return (event) => this.isOwnFailure(event) || verdictOf(filter(event));
  }

  /** A filter for objects of a snapshot, which have not been routed by topic. */
  private select(topics: readonly string[], filter: ClientOptions['filter']): (event: WatchEvent) => boolean {
    return (event) => concerns(toTopics(this.settings.topicsOf?.(event)), topics) && (filter?.(event) ?? true);
  }

  /** Whether this is the ERROR that tells every client about a failed source. */
  private isOwnFailure(event: WatchEvent): boolean {
    return this.lifetime.failure !== undefined && event.object === this.lifetime.failure;
  }

  private async drain(): Promise<void> {
    this.host.closing = true;
    this.sourced?.stop();
    for (const session of this.sessions) if (session.isCatchingUp) session.stop('goingAway');
    await this.feed.broadcaster.shutdown();
    this.flusher.close();
    this.lifetime.ended = true;
    if (this.sessions.size === 0) return;
    await new Promise<void>((resolve) => {
      this.empty = resolve;
    });
  }
}

/** How long clients have to spread out when a hub with a source goes away, by default. */
const RETRY_AFTER_MS = 1_000;

/** What is known about a client that asks where it starts. */
export interface StartContext {
  readonly address?: string;
  readonly options?: ClientOptions;
  readonly catchUp?: CatchUp | undefined;
}

/** What is decided before a session begins. */
interface Beginning {
  readonly start: Start;
  readonly version: string;
  /** What the client may see of a snapshot. */
  readonly filter: ClientOptions['filter'];
}

/** Runs code of a connection. What it throws affects only its own client. */
function attempt(code: () => void): { readonly error: unknown } | undefined {
  try {
    code();
    return undefined;
  } catch (error) {
    return { error };
  }
}
