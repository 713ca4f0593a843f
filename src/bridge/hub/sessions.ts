import type { View } from '../../broadcast/view.ts';
import { getOrMake } from '../../watch/errors.ts';
import type { WatchEvent } from '../../watch/event.ts';
import type { Envelope } from '../events/envelope.ts';
import { Slices } from '../events/forms.ts';
import type { ConnectionSlots } from './admission/connection-slots.ts';
import type { HubLog, Lifetime } from './hub-log.ts';
import type { ClientOptions, HubSettings } from './hub-options.ts';
import type { HubSession, HubSessionHost } from './hub-session.ts';
import type { Tally } from './tally.ts';

const NOBODY: ReadonlySet<never> = new Set();

/** Applies even if queues hold more, so that events are flushed soon and connections get their turns within bursts. */
const MOST_EVENTS = 1_024;
const MOST_BYTES = 4_194_304;

/** What the parts of a hub have in common. */
export interface HubParts {
  readonly settings: HubSettings<WatchEvent>;
  readonly log: HubLog;
  readonly lifetime: Lifetime;
  readonly slots: ConnectionSlots;
  readonly tally: Tally;
}

/**
 * The sessions of a hub's clients, and when they are flushed. The *flush signal*, a watch with room for one event, has a batch as
 * soon as something can be read:
 *
 *     signal --> flush all who got events --> a turn of the event loop (or flushIntervalMs) --> again signalled? flush : wait for it
 *     relieved  --> next turn: flush that session
 *     half a queue published at once --> flush all, now
 *
 * So a single event is sent within the turn, and events that follow share one flush, and one write per client, per turn. Clients
 * in step read the same batch and are sent the same bytes.
 *
 * Invariant: whenever a session without backpressure has something to read, the signal has come and its flush is pending, or that
 * session's own flush is pending.
 */
export class HubSessions implements HubSessionHost {
  readonly all: Set<HubSession> = new Set();
  /** Those not yet reported: if one ends now, that is reported later. */
  readonly opening: Set<HubSession> = new Set();
  readonly slices: Slices = new Slices();
  /** Clients are flushed at the latest after this many events, and after this many bytes. */
  readonly pace: FlushPace;
  readonly bytePace: FlushPace;
  readonly backlog: Backlog<HubSession> = new Backlog();
  seen: number = 0;
  closing: boolean = false;
  readonly bookmarkIntervalMs: number;
  private readonly log: HubLog;
  private readonly settings: HubSettings<WatchEvent>;
  private readonly parts: HubParts;
  /** The sessions of each view, and how many new events each view has; see broadcast/view.ts. */
  private readonly byView: Map<object, Set<HubSession>> = new Map();
  private readonly changed: Map<View<Envelope>, number> = new Map();
  /** Since the last flush: the most events for any one client, and the events and bytes published. */
  private most: number = 0;
  private unflushed: number = 0;
  private unflushedBytes: number = 0;
  private readonly waiting: Set<HubSession> = new Set();
  private flushing: boolean = false;
  /** Ends the current pause early. */
  private endPause: (() => void) | undefined = undefined;
  /** Resolves the promise that waits for the last client to go. */
  private onEmpty: (() => void) | undefined = undefined;
  private closed: boolean = false;

  constructor(parts: HubParts) {
    const { settings, log } = parts;
    this.settings = settings;
    this.log = log;
    this.parts = parts;
    this.bookmarkIntervalMs = settings.bookmarkIntervalMs;
    this.pace = new FlushPace(settings.capacity, MOST_EVENTS);
    this.bytePace = new FlushPace(settings.maxQueuedBytes, MOST_BYTES);
    log.whenVisible((view) => {
      if (this.sessionsOf(view).size === 0) return;
      const count = (this.changed.get(view) ?? 0) + 1;
      this.changed.set(view, count);
      if (count > this.most) this.most = count;
    });
    void this.run();
  }

  get head(): number {
    return this.log.head;
  }

  get version(): string {
    return this.log.version;
  }

  endOfStream(): ReturnType<Lifetime['endOfStream']> {
    return this.parts.lifetime.endOfStream();
  }

  /** Adds a session, with its client's own limits. */
  open(session: HubSession, { capacity, maxQueuedBytes }: ClientOptions): void {
    if (capacity !== undefined) session.whenOver(this.pace.include(capacity));
    if (maxQueuedBytes !== undefined) session.whenOver(this.bytePace.include(maxQueuedBytes));
    this.add(session);
  }

  add(session: HubSession): void {
    const { view } = session;
    this.all.add(session);
    if (!view || !this.log.hasTopics) return;
    getOrMake(this.byView, view, () => new Set()).add(session);
  }

  left(session: HubSession): void {
    this.all.delete(session);
    this.waiting.delete(session);
    this.backlog.remove(session);
    const { view } = session;
    const others = view && this.byView.get(view);
    if (view && others?.delete(session) && others.size === 0) this.byView.delete(view);
    this.parts.slots.release(session.address);
    if (!this.opening.has(session)) this.tellEnd(session);
    if (this.all.size === 0) this.onEmpty?.();
  }

  tellEnd(session: HubSession): void {
    this.parts.tally.closed(session.stats(), session.reason, session.error);
  }

  /** Without topics there is one view, and all sessions are its sessions. */
  private sessionsOf(view: object): ReadonlySet<HubSession> {
    return this.log.hasTopics ? (this.byView.get(view) ?? NOBODY) : this.all;
  }

  /** An event of this size has been distributed. */
  distributed(bytes: number): void {
    this.backlog.grow(bytes);
    this.backlog.check();
    this.unflushedBytes += bytes;
    // Clients may see the events of some topics only.
    const isHalf = ++this.unflushed >= this.pace.value && this.most >= this.pace.value;
    if (isHalf || this.unflushedBytes >= this.bytePace.value) this.flush();
  }

  /** Writes to every client that may have got events, as much as is available and fits. */
  private flush(): void {
    if (this.flushing) return;
    this.before();
    const changed = [...this.changed.keys()];
    this.changed.clear();
    this.most = 0;
    for (const view of changed) this.flushAll(this.sessionsOf(view));
    this.slices.clear();
    for (const view of changed) this.forget(view);
    this.backlog.check();
  }

  private before(): void {
    this.unflushed = this.unflushedBytes = 0;
    this.seen = this.log.head;
  }

  /** No more events follow: writes everything now, and no longer collects events. */
  close(): void {
    this.closed = true;
    this.flushEveryone();
    this.endPause?.();
  }

  /** Resolves when all clients have gone. */
  empty(): Promise<void> {
    return new Promise((resolve) => {
      if (this.all.size === 0) resolve();
      this.onEmpty = resolve;
    });
  }

  /** If all clients of a topic are up to date, its log keeps nothing for them. */
  private forget(view: View<Envelope>): void {
    const sessions = this.sessionsOf(view);
    const { head } = view.log;
    // A watch without a session is just being opened: its client has got nothing yet.
    if (!view.topics || sessions.size < view.watchers) return;
    for (const session of sessions) if (!session.upToDate) return;
    // Finding out may run filters, which may publish.
    if (view.log.head === head) view.forget();
  }

  behind(session: HubSession): void {
    if (!session.over) this.backlog.add(session); // its connection may have closed within `opened` or `write`
  }

  /** A session has room again. It is flushed in the next turn, together with others that have. */
  ready(session: HubSession): void {
    this.waiting.add(session);
    if (this.waiting.size === 1) this.settings.nextTurn(() => this.flushWaiting());
  }

  /** A session was flushed on its own, so no other session shares its bytes. */
  flushed(): void {
    if (!this.flushing) this.slices.clear();
  }

  private flushWaiting(): void {
    const sessions = [...this.waiting];
    this.waiting.clear();
    this.flushAll(sessions);
    this.slices.clear();
  }

  private flushAll(sessions: Iterable<HubSession>): void {
    this.flushing = true;
    for (const session of sessions) session.flush();
    this.flushing = false;
  }

  private async run(): Promise<void> {
    for await (const _ of this.log.watch({ capacity: 1, overflow: 'drop-newest' }).batches()) {
      this.flush();
      await this.pause();
    }
    this.flushEveryone();
  }

  /** Also clients without a new event: the end of the stream may be due. */
  private flushEveryone(): void {
    if (this.flushing) return;
    this.before();
    this.flushAll(this.all);
    this.slices.clear();
    this.backlog.check();
  }

  private pause(): Promise<void> {
    return new Promise((resolve) => {
      const { flushIntervalMs, clock, nextTurn } = this.settings;
      if (flushIntervalMs === 0 || this.closed) {
        nextTurn(resolve);
        return;
      }
      const cancel = clock.schedule(flushIntervalMs, resolve);
      this.endPause = () => {
        cancel();
        resolve();
      };
    });
  }
}

/** A session, as its {@link Backlog} sees it. */
export interface Backlogged {
  /** Events wait for room in its connection, or for the end of its snapshot. */
  readonly isBehind: boolean;
  readonly maxQueuedBytes: number;
  /** The bytes of all events that wait. Expensive: it looks at each of them. */
  readonly queuedBytes: number;
  /** Writes what waits, as far as there is room. */
  flush(): void;
  /** Ends it, because too many bytes wait. */
  expire(): void;
}

/** A round of checks comes after this share of the smallest limit. */
const SHARE = 16;

/**
 * Enforces `maxQueuedBytes`: how many bytes of events may wait for one client.
 *
 * A queue grows by no more than what is published. So a client with n bytes of its limit left need not be checked until n bytes
 * have been published, and one whose connection has room need not be checked at all:
 *
 *     no room --> add: due in the next round --> exact size --> over the limit: expire
 *                     ^                   |         '--> due once the rest of its limit has been published
 *                     |                   '--> there is room again: flush, or its queue would grow on until its turn
 *                     '---- a round: each time a 16th of the smallest limit has been published
 *
 * So an event costs one addition. A client that is behind costs one comparison per round, and one walk through its queue when
 * it is due. In return, a queue may exceed its limit by a sixteenth and one event before that is noticed.
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

  /** Ends the sessions with too much waiting. Runs user code: their filters. */
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
    if (!session.isBehind) {
      this.due.delete(session);
      session.flush();
      return;
    }
    const left = session.maxQueuedBytes - session.queuedBytes;
    // Its filter may have ended it.
    if (!this.due.has(session)) return;
    if (left >= 0) {
      this.due.set(session, published + left);
      return;
    }
    this.due.delete(session);
    session.expire();
  }
}

function stepOf({ maxQueuedBytes }: Backlogged): number {
  return Math.max(1, Math.floor(maxQueuedBytes / SHARE));
}

/**
 * How much a publisher accepts before it writes to its clients, and gives their connections a turn: half of what the smallest
 * queue holds, so that a burst does not overflow it, and no more than `most`.
 */
class FlushPace {
  /** Events, or bytes. */
  value: number;
  private readonly most: number;
  /** The paces of clients with a limit of their own, and the number of clients with each. */
  private readonly own: Map<number, number> = new Map();
  private readonly common: number;

  /** `limit` is what the queue of a client without a limit of its own holds. */
  constructor(limit: number, most: number) {
    this.most = most;
    this.common = this.half(limit);
    this.value = this.common;
  }

  /** Takes a client's own limit into account. Returns a function to call when the client is gone. */
  include(limit: number): () => void {
    const pace = this.half(limit);
    this.count(pace, 1);
    return () => this.count(pace, -1);
  }

  private count(pace: number, by: number): void {
    const clients = (this.own.get(pace) ?? 0) + by;
    if (clients > 0) this.own.set(pace, clients);
    else this.own.delete(pace);
    this.value = Math.min(this.common, ...this.own.keys());
  }

  private half(limit: number): number {
    return Math.min(this.most, Math.max(1, Math.floor(limit / 2)));
  }
}
