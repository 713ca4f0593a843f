import type { View } from '../../broadcast/view.ts';
import type { Clock } from '../../watch/clock.ts';
import type { Turn } from '../../watch/turn.ts';
import type { Watch } from '../../watch/watch.ts';
import type { Envelope } from '../events/envelope.ts';
import { Slices } from '../events/forms.ts';
import type { Feed } from './feed.ts';
import type { Session } from './session.ts';

const NOBODY: ReadonlySet<never> = new Set();

/**
 * Decides when sessions are flushed. The *flush signal*, a watch with room for one event, has a batch as soon as something can be
 * read:
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
export class Flusher {
  readonly sessions: Set<Session> = new Set();
  readonly slices: Slices = new Slices();
  /** The sessions of each view, and how many new events each view has; see broadcast/view.ts. */
  private readonly byView: Map<object, Set<Session>> = new Map();
  /** Clients may be limited to topics. Otherwise there is one view, and all sessions are its sessions. */
  private readonly hasTopics: boolean;
  private readonly changed: Map<View<Envelope>, number> = new Map();
  /** The most events that have come for one client since the last flush. */
  most: number = 0;
  private readonly waiting: Set<Session> = new Set();
  private flushing: boolean = false;
  /** Ends the current pause early. */
  private endPause: (() => void) | undefined = undefined;
  private closed: boolean = false;
  private readonly before: () => void;
  private readonly after: () => void;
  private readonly intervalMs: number;
  private readonly clock: Clock;
  private readonly nextTurn: Turn;

  constructor(options: {
    flushSignal: Watch<unknown>;
    feed: Feed;
    before: () => void;
    after: () => void;
    flushIntervalMs: number;
    clock: Clock;
    nextTurn: Turn;
  }) {
    this.before = options.before;
    this.after = options.after;
    this.intervalMs = options.flushIntervalMs;
    this.clock = options.clock;
    this.nextTurn = options.nextTurn;
    this.hasTopics = options.feed.hasTopics;
    options.feed.whenVisible((view) => {
      if (this.sessionsOf(view).size === 0) return;
      const count = (this.changed.get(view) ?? 0) + 1;
      this.changed.set(view, count);
      if (count > this.most) this.most = count;
    });
    void this.run(options.flushSignal);
  }

  add(session: Session): void {
    const { view } = session;
    this.sessions.add(session);
    if (!view || !this.hasTopics) return;
    const others = this.byView.get(view);
    if (others) others.add(session);
    else this.byView.set(view, new Set([session]));
  }

  remove(session: Session): void {
    this.sessions.delete(session);
    this.waiting.delete(session);
    const { view } = session;
    const others = view && this.byView.get(view);
    if (view && others?.delete(session) && others.size === 0) this.byView.delete(view);
  }

  private sessionsOf(view: object): ReadonlySet<Session> {
    return this.hasTopics ? (this.byView.get(view) ?? NOBODY) : this.sessions;
  }

  /** Writes to every client that may have got events, as much as is available and fits. */
  flush(): void {
    if (this.flushing) return;
    this.before();
    const changed = [...this.changed.keys()];
    this.changed.clear();
    this.most = 0;
    for (const view of changed) this.flushAll(this.sessionsOf(view));
    this.slices.clear();
    for (const view of changed) this.forget(view);
    this.after();
  }

  /** No more events follow: writes everything now, and no longer collects events. */
  close(): void {
    this.closed = true;
    this.flushEveryone();
    this.endPause?.();
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

  /** A session has room again. It is flushed in the next turn, together with others that have. */
  ready(session: Session): void {
    this.waiting.add(session);
    if (this.waiting.size === 1) this.nextTurn(() => this.flushWaiting());
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

  private flushAll(sessions: Iterable<Session>): void {
    this.flushing = true;
    for (const session of sessions) session.flush();
    this.flushing = false;
  }

  private async run(flushSignal: Watch<unknown>): Promise<void> {
    for await (const _ of flushSignal.batches()) {
      this.flush();
      await this.pause();
    }
    this.flushEveryone();
  }

  /** Also clients without a new event: the end of the stream may be due. */
  private flushEveryone(): void {
    if (this.flushing) return;
    this.before();
    this.flushAll(this.sessions);
    this.slices.clear();
    this.after();
  }

  private pause(): Promise<void> {
    return new Promise((resolve) => {
      if (this.intervalMs === 0 || this.closed) {
        this.nextTurn(resolve);
        return;
      }
      const cancel = this.clock.schedule(this.intervalMs, resolve);
      this.endPause = () => {
        cancel();
        resolve();
      };
    });
  }
}
