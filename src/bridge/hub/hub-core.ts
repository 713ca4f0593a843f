import type { WatchOptions } from '../../broadcast/broadcaster.ts';
import { POLICIES } from '../../broadcast/policies.ts';
import { concerns, toTopics } from '../../broadcast/topics.ts';
import { verdictOf } from '../../watch/abort.ts';
import { sleep } from '../../watch/clock.ts';
import { isStatus, type Status, toUnavailable, type WatchEvent } from '../../watch/event.ts';
import { emptyWatch } from '../../watch/pull-watch.ts';
import { type HeapNode, Timetable } from '../../watch/timetable.ts';
import type { Envelope } from '../events/envelope.ts';
import { ConnectionSlots, Reservation } from './admission/connection-slots.ts';
import { LEAVING, NOT_READY } from './admission/refusals.ts';
import type { ClientInfo, Sink } from './connection.ts';
import { COMPLETE, HubLog, Lifetime, permitted, type Start } from './hub-log.ts';
import type { ClientOptions, HubSettings, HubStats } from './hub-options.ts';
import { HubSession, type ReadableWatch, type SessionWatch } from './hub-session.ts';
import { Publisher } from './publisher.ts';
import type { ParsedQuery } from './query.ts';
import { HubSessions } from './sessions.ts';
import { Snapshots } from './snapshot.ts';
import type { CatchUpStart } from './source/source.ts';
import { SourceAccess } from './source/source-access.ts';
import { SourceLog } from './source/source-follower.ts';
import { type Refusal, Tally } from './tally.ts';

/** A client that may connect. */
export interface Admitted {
  readonly reservation: Reservation;
  readonly address: string;
  readonly asked: ParsedQuery;
  readonly identity: unknown;
  readonly options: ClientOptions;
  /** When its stream has to end, in ms since 1970; Infinity: never. */
  readonly expiresAtMs: number;
  /** Where the client is in the hub's source, if the hub does not keep what it has missed. */
  readonly catchUp?: CatchUpStart | undefined;
}

/** A client, as its transport describes it. Default: it has no rights of its own, and gets a new slot. */
export interface HubClient extends ClientInfo, Partial<Omit<Admitted, 'address' | 'catchUp'>> {
  /** Where it starts, from {@link HubCore.start} in the same synchronous step; default: as for a request without parameters. */
  readonly start?: Start | undefined;
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
  readonly tally: Tally;
  readonly lifetime: Lifetime;
  readonly publisher: Publisher;
  readonly sessions: HubSessions;
  /** What a hub with a source does with it. */
  readonly source: SourceAccess | undefined = undefined;
  /** Readers in this process, which are notified when the source cannot be continued. */
  readonly readers: Set<{ lose(why: string): void }> = new Set();
  /** How often the application has disconnected clients. */
  disconnects: number = 0;
  private readonly settings: HubSettings<WatchEvent>;
  private readonly log: HubLog;
  private readonly slots: ConnectionSlots;
  private readonly snapshots: Snapshots;
  private readonly timers: SessionTimers;

  constructor(settings: HubSettings<WatchEvent>) {
    const { source } = settings;
    this.settings = settings;
    this.tally = new Tally(settings);
    this.lifetime = new Lifetime(settings.random);
    this.slots = new ConnectionSlots(settings);
    this.snapshots = new Snapshots(settings);
    this.timers = new SessionTimers({ ...settings, version: () => this.version });
    const { tally, lifetime, slots } = this;
    const sourceLog = source && new SourceLog(settings, lifetime);
    const log = sourceLog ?? new HubLog(settings, lifetime);
    const parts = { settings, log, lifetime, slots, tally };
    const sessions = new HubSessions(parts);
    const publisher = new Publisher(parts, sessions);
    this.log = log;
    this.sessions = sessions;
    this.publisher = publisher;
    if (source !== undefined && sourceLog !== undefined) {
      const onReset = (): void => this.reset();
      this.source = new SourceAccess({ ...parts, source, log: sourceLog, publisher, sessions, onReset });
    }
  }

  /** The version of the last distributed event. */
  get version(): string {
    return this.log.version;
  }

  /** The time of day, in ms since 1970. */
  get now(): () => number {
    return this.settings.now;
  }

  /** Whether clients may be limited to topics. */
  get hasTopics(): boolean {
    return this.log.hasTopics;
  }

  stats(): HubStats {
    const { version, source, log, publisher } = this;
    const asked = Array.from(this.sessions.all, (session) => ({ session, own: session.stats() }));
    // Asking runs filters, which may end clients. Those are in the totals then.
    const clients = asked.filter(({ session }) => !session.over).map(({ own }) => own);
    const counts = { accepted: log.accepted, oversize: publisher.oversize, clients, total: this.tally.totals(clients) };
    return { version, ...counts, ...(source && { source: source.follower.stats() }) };
  }

  /** Refuses new events, delivers accepted ones, then ends every stream. Resolves when all clients have gone. */
  close(retryAfterMs?: number): Promise<void> {
    // A stream does not end with one of the hubs that follow it.
    const afterMs = retryAfterMs ?? (this.source && RETRY_AFTER_MS);
    return this.lifetime.close(() => this.drain(), afterMs);
  }

  /** Whether only the source can tell where a client with this request starts, or this hub is not connected to it yet. */
  mustLocate(asked: ParsedQuery): boolean {
    return this.source?.knows(asked) === false;
  }

  /** Asks the source. Resolves to undefined when this hub can answer the request by itself, even if with 410. */
  locate(asked: ParsedQuery, gone: AbortSignal): Promise<CatchUpStart | undefined> {
    return this.source?.locate(asked, gone) ?? Promise.resolve(undefined);
  }

  /** Watches the events after a version, if all of them are kept here. */
  watchAfter(version: string, options: WatchOptions<Envelope>): ReadableWatch<Envelope> | undefined {
    const place = this.log.placeOf(version);
    return place === undefined ? undefined : this.log.watchAfter(place, options);
  }

  /** Returns the version of a place in the log; undefined if it is not known. */
  versionOf(place: number | undefined): string | undefined {
    return place === undefined ? undefined : this.log.versionOf(place);
  }

  /** Returns the events after a version, once a hub that shuts down has distributed all; undefined if not all of them are kept. */
  async rest(version: string, topics: readonly string[] | undefined): Promise<readonly Envelope[] | undefined> {
    await this.log.broadcaster.shutdown(); // it has begun
    const place = this.log.placeOf(version);
    return place === undefined ? undefined : this.log.since(place, topics);
  }

  /** Resolves when clients are served; to false if the hub ends, or `gone` aborts, before that. */
  ready(gone: AbortSignal): Promise<boolean> {
    const { source, lifetime } = this;
    return source
      ? source.follower.until(() => source.follower.ready, gone)
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
      : this.refuse({ reason: reservation.reason, status: toUnavailable(reservation.message), address });
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
  start(asked: ParsedQuery, { address = '', options = {}, catchUp }: Partial<Admitted> = {}): Start | Status {
    if (this.lifetime.leaving) return this.refuse({ reason: 'ended', status: LEAVING, address });
    if (this.source?.follower.ready === false) return this.refuse({ reason: 'failed', status: NOT_READY, address });
    if (catchUp !== undefined) return { missed: [], resumed: true, snapshot: false, catchUp };
    const start = this.log.start(asked, options.topics);
    if (isStatus(start)) return this.refuse({ reason: start.code === 410 ? 'expired' : 'badRequest', status: start, address });
    return this.lifetime.ended && !start.snapshot && this.hidesAll(start, options.filter)
      ? this.refuse({ reason: 'ended', status: COMPLETE, address })
      : start;
  }

  open(sink: Sink, client: HubClient): HubSession {
    const { version, log, settings } = this;
    // A request without parameters is never refused.
    const { options = {}, reservation, start = log.start({}, options.topics) as Start } = client;
    const { topics, capacity, maxQueuedBytes = settings.maxQueuedBytes, overflow = settings.overflow } = options;
    const filter = options.filter && this.judge(options.filter);
    const own = { topics, capacity, overflow, filter };
    const { catchUp } = start;
    const behind = catchUp && this.source?.watch(catchUp, own, () => session);
    const watch = this.lifetime.ended ? emptyWatch<Envelope>() : (behind ?? log.watch(own));
    const { missed, thrown } = permitted(start.missed, filter);
    // The first may be an ERROR, which has no position. With a version before it, a client could resume and never see it.
    const first = start.missed[0]?.sequence;
    const after = behind?.startPlace ?? (first || log.head + 1) - 1;
    const told = client.transport === 'sse' && !start.snapshot && first !== 0;
    const session: HubSession = new HubSession({
      id: ++this.tally.clients,
      identity: client.identity,
      transport: client.transport,
      address: client.address,
      host: this.sessions,
      folds: POLICIES[overflow].folds,
      maxQueuedBytes,
      resumed: start.resumed,
      missed,
      after,
      version: told ? (catchUp?.version ?? log.versionOf(after)) : undefined,
      topics,
      watch: watch as SessionWatch,
      sink,
    });
    if (reservation === undefined) this.slots.add(client.address);
    else reservation.keep();
    this.sessions.open(session, options);
    this.sessions.opening.add(session);
    const broken = attempt(() => sink.opened(session));
    this.sessions.opening.delete(session);
    const hasEnded = session.over;
    this.tally.opened(() => session.stats());
    if (start.resumed) this.tally.resumed(() => session.stats(), catchUp ? log.head - after : start.missed.length);
    if (hasEnded) this.sessions.tellEnd(session);
    if (thrown !== undefined) session.stop('failed', thrown.error);
    if (broken !== undefined) session.cut('failed', broken.error);
    this.begin(session, sink, { ...client, filter: topics ? this.select(topics, filter) : filter, start, version });
    return session;
  }

  /** The source cannot be continued: connected clients must not mistake what follows for a continuation. */
  private reset(): void {
    const why = 'the stream was replaced, or has lost events';
    for (const session of [...this.sessions.all]) session.expire(why);
    for (const reader of [...this.readers]) reader.lose(why);
  }

  /** Whether the client would get nothing. An empty response would make it reconnect again and again. */
  private hidesAll({ missed }: Start, filter: ClientOptions['filter']): boolean {
    const seen = permitted(missed, filter && this.judge(filter));
    return seen.missed.length === 0 && seen.thrown === undefined;
  }

  private begin(session: HubSession, sink: Sink, client: HubClient & Decided): void {
    const { snapshot: source } = this.settings;
    const { start, version, asked = {}, identity, filter, expiresAtMs = Number.POSITIVE_INFINITY } = client;
    this.timers.endAt(session, expiresAtMs);
    this.timers.start(session, sink, asked);
    const age = (): void => this.timers.limitAge(session);
    // An age counted from before the snapshot could end each attempt at a long one.
    if (start.snapshot && source !== undefined) {
      this.sessions.behind(session);
      void this.snapshots.run(session, { source, identity, version, filter }).then(age);
    } else {
      age();
      session.release();
    }
    // Otherwise a client without a version that is cut off now could not resume, and a client without a sign of life would not
    // notice a silent connection.
    if (asked.allowWatchBookmarks === true) session.bookmark();
  }

  private judge(filter: (event: WatchEvent) => boolean): (event: WatchEvent) => boolean {
    return (event) => this.lifetime.isFailure(event) || verdictOf('filter', filter(event));
  }

  /** A filter for objects of a snapshot, which have not been routed by topic. */
  private select(topics: readonly string[], filter: ClientOptions['filter']): (event: WatchEvent) => boolean {
    return (event) => concerns(toTopics(this.settings.topicsOf?.(event)), topics) && (filter?.(event) ?? true);
  }

  private async drain(): Promise<void> {
    const { sessions, lifetime } = this;
    sessions.closing = true;
    this.source?.stop();
    for (const session of sessions.all) if (session.isCatchingUp) session.stop('goingAway');
    await this.log.broadcaster.shutdown();
    sessions.close();
    lifetime.ended = true;
    await sessions.empty();
  }
}

/** How long clients have to spread out when a hub with a source goes away, by default. */
const RETRY_AFTER_MS = 1_000;

/** What is decided before a session begins. */
interface Decided {
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

/** The timers of sessions: all are in one timetable, so ten thousand sessions need one timer. */

/** Something that will happen to a session, unless it is over before. */
class Alarm implements HeapNode {
  heapRank: number = 0;
  heapTurn: number = 0;
  heapAt: number = -1;
  readonly ring: () => void;
  readonly #timers: SessionTimers;

  constructor(timers: SessionTimers, ring: () => void) {
    this.#timers = timers;
    this.ring = ring;
  }

  /** The session is over. */
  leave(): void {
    this.#timers.remove(this);
  }
}

interface TimerSettings
  extends Pick<HubSettings<WatchEvent>, 'clock' | 'now' | 'random' | 'bookmarkIntervalMs' | 'maxConnectionAgeMs'> {
  /** Returns the version of the head. */
  readonly version: () => string;
}

class SessionTimers extends Timetable<Alarm> {
  readonly #settings: TimerSettings;

  constructor(settings: TimerSettings) {
    super(settings.clock, (alarm) => alarm.ring());
    this.#settings = settings;
  }

  /** Begins a session's timers: the end that its client asked for, and regular reports of its position. */
  start(session: HubSession, sink: Sink, { timeoutSeconds, allowWatchBookmarks }: ParsedQuery): void {
    if (timeoutSeconds !== undefined) this.#set(session, timeoutSeconds * 1_000, () => session.stop('timeout'));
    if (allowWatchBookmarks === true) this.#bookmark(session);
    else this.#mark(session, sink);
  }

  /** Ends a session so that its client reconnects. The time is random: clients that came together must not all return together. */
  limitAge(session: HubSession): void {
    const { maxConnectionAgeMs, random } = this.#settings;
    if (maxConnectionAgeMs > 0) this.#set(session, (maxConnectionAgeMs * (1 + random())) / 2, () => session.stop('goingAway'));
  }

  /**
   * Ends a session when its right to its stream ends, in ms since 1970, so that its client reconnects and is admitted again.
   */
  endAt(session: HubSession, expiresAtMs: number): void {
    if (expiresAtMs === Infinity) return;
    const { now, bookmarkIntervalMs } = this.#settings;
    // The system time may be set, or run on while the machine sleeps.
    const nextMs = (): number => Math.min(expiresAtMs - now(), bookmarkIntervalMs);
    const alarm = this.#set(session, nextMs(), () => {
      if (nextMs() > 0) this.after(alarm, nextMs());
      else session.stop('goingAway');
    });
  }

  /** Sends a BOOKMARK at each interval, and one before an end by timeout or age. */
  #bookmark(session: HubSession): void {
    session.bookmarks = true;
    this.#every(session, () => session.bookmark());
  }

  /** Does the same without an event, if the wire format can express it. */
  #mark(session: HubSession, sink: Sink): void {
    if (sink.mark === undefined) return;
    this.#every(session, () => {
      if (!session.upToDate) return;
      try {
        sink.mark?.(this.#settings.version());
      } catch (error) {
        session.cut('failed', error);
      }
    });
  }

  #every(session: HubSession, act: () => void): void {
    const { bookmarkIntervalMs } = this.#settings;
    const alarm = this.#set(session, bookmarkIntervalMs, () => {
      session.flush();
      act();
      if (!session.over) this.after(alarm, bookmarkIntervalMs);
    });
  }

  #set(session: HubSession, delayMs: number, ring: () => void): Alarm {
    const alarm = new Alarm(this, ring);
    this.after(alarm, delayMs);
    session.whenOver(alarm);
    return alarm;
  }
}
