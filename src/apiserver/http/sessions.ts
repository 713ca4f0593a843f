import type { Sink } from '../../bridge/hub/connection.ts';
import { type SharedTimer, type TimerMember, toSharedTimer } from '../../bridge/transport/shared-timer.ts';
import { type Outbound, StallGuard } from '../../bridge/transport/stall.ts';
import { Timetable } from '../../watch/timetable.ts';
import type { Settings } from '../options.ts';
import type { ApiCounts } from './counts.ts';
import { Session, type SessionHost } from './session.ts';
import { WatchSource } from './sources.ts';
import { Turns } from './turns.ts';
import type { StreamAnswer } from './wire.ts';

/** The open watches of one resource, and how far they are behind. */
export interface OpenWatches {
  readonly watchers: number;
  /** Watches with events waiting, because their connections are full. */
  readonly behind: number;
  /** The largest number of events that wait for one of them. */
  readonly lag: number;
}

export const NO_WATCHES: OpenWatches = { watchers: 0, behind: 0, lag: 0 };

/**
 * All responses that are being sent bit by bit. What a session needs only at times, such as a guard, is here and not in each of
 * them.
 */
export class Sessions implements SessionHost, TimerMember {
  readonly turns: Turns = new Turns();
  readonly ends: Timetable<Session>;
  readonly onError: (error: unknown) => void;
  private readonly counts: ApiCounts;
  private readonly random: () => number;
  /** For those that take nothing of what is sent to them. */
  readonly stalls: SharedTimer | undefined;
  /** Guards of sessions with waiting bytes. */
  private readonly guards: Map<Session, StallGuard> = new Map();
  private readonly open: Set<Session> = new Set();
  private whenEmpty: (() => void)[] = [];
  private isStopped: boolean = false;
  private isCut: boolean = false;

  constructor({ stallTimeoutMs, clock, random, onError }: Settings, counts: ApiCounts) {
    this.random = random;
    this.counts = counts;
    this.onError = onError;
    this.ends = new Timetable(clock, (session) => session.stop());
    this.stalls = toSharedTimer(stallTimeoutMs, clock);
  }

  /** Starts to send a stream to a sink whose headers have been sent. The host calls `gone` when the connection has closed. */
  begin(answer: StreamAnswer, sink: Sink, outbound: Outbound): Session {
    const session = new Session(this, { answer, sink, outbound });
    this.open.add(session);
    if (this.open.size === 1) this.stalls?.add(this);
    if (answer.isWatch) {
      this.counts.watchers++;
      this.counts.watchersOpened++;
    }
    session.start();
    answer.slot?.begun?.(session);
    if (this.isStopped && answer.isWatch) session.stop();
    if (this.isCut) session.cut('disconnected');
    return session;
  }

  /**
   * Ends all watches properly, and later ones at once. They end at random times within `spreadMs`, but at least a thousand per
   * second: their clients come back, to this server or another one. Other responses are sent to their end.
   */
  stop(spreadMs: number = 0): void {
    this.isStopped = true;
    const watches = [...this.open].filter(({ isWatch }) => isWatch);
    const spanMs = Math.min(spreadMs, watches.length);
    for (const session of watches) {
      const delayMs = Math.floor(this.random() * spanMs);
      if (delayMs > 0) session.stopAfter(delayMs);
      else session.stop();
    }
  }

  /** A connection was closed because of a request that came too early on it. */
  cutEarly(): void {
    this.counts.limited('pipelined');
  }

  /** Ends everything at once, including what begins later. */
  cut(): void {
    this.isCut = true;
    for (const session of [...this.open]) session.cut('disconnected');
  }

  /** What open sessions have been sent so far. It is added to `counts` when they end. */
  get sent(): { readonly events: number; readonly bytes: number } {
    let [events, bytes] = [0, 0];
    for (const { source, sentBytes } of this.open) {
      if (source instanceof WatchSource) events += source.sent;
      bytes += sentBytes;
    }
    return { events, bytes };
  }

  /** The open watches, by resource. Looks at every one. */
  get watches(): ReadonlyMap<string, OpenWatches> {
    const all = new Map<string, OpenWatches>();
    for (const { source, resource, isFull } of this.open) {
      if (resource === undefined) continue;
      const { watchers, behind, lag } = all.get(resource) ?? NO_WATCHES;
      // Events that only wait for the next turn do not count as behind.
      const waiting = isFull && source instanceof WatchSource ? source.waiting : 0;
      all.set(resource, { watchers: watchers + 1, behind: behind + (waiting > 0 ? 1 : 0), lag: Math.max(lag, waiting) });
    }
    return all;
  }

  /** Resolves when nothing is sent any more. */
  drained(): Promise<void> {
    if (this.open.size === 0) return Promise.resolve();
    return new Promise((resolve) => void this.whenEmpty.push(resolve));
  }

  /** Looks for clients that have stopped reading, at each tick of the timer. */
  tick(): void {
    for (const session of this.open) {
      const { outbound } = session;
      if (outbound.writableLength === 0) {
        this.guards.delete(session);
        continue;
      }
      let guard = this.guards.get(session);
      if (guard === undefined) {
        guard = new StallGuard(session, outbound);
        this.guards.set(session, guard);
      }
      guard.tick();
    }
  }

  ended(session: Session): void {
    const { counts } = this;
    const { source } = session;
    this.open.delete(session);
    this.guards.delete(session);
    session.slot?.release(session.reason ?? (source instanceof WatchSource && source.isExpired ? 'expired' : undefined));
    counts.sentBytes += session.sentBytes;
    if (source instanceof WatchSource) counts.events += source.sent;
    if (session.isWatch) counts.watchers--;
    if (session.reason === 'stalled') counts.watchersStalled++;
    if (this.open.size > 0) return;
    this.stalls?.remove(this);
    for (const resolve of this.whenEmpty) resolve();
    this.whenEmpty = [];
  }
}
