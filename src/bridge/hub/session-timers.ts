/** What happens to sessions at their times: all of it stands in one timetable, so ten thousand of them have one timer. */
import type { Clock } from '../../watch/clock.ts';
import { type HeapNode, Timetable } from '../../watch/timetable.ts';
import type { Sink } from './connection.ts';
import type { HubSession } from './hub-session.ts';
import type { ParsedQuery } from './query.ts';

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

/** Settings of the timers of sessions. */
interface TimerSettings {
  readonly clock: Clock;
  /** The time of day, in ms since 1970. */
  readonly now: () => number;
  readonly random: () => number;
  readonly bookmarkIntervalMs: number;
  /** 0: none. */
  readonly maxConnectionAgeMs: number;
  /** Returns the version of the head. */
  readonly version: () => string;
}

export class SessionTimers extends Timetable<Alarm> {
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

  /** Ends a session when its right to its stream ends, in ms since 1970, so that its client comes again and is admitted anew. */
  endAt(session: HubSession, expiresAtMs: number): void {
    if (expiresAtMs === Infinity) return;
    const { now } = this.#settings;
    const alarm = this.#set(session, expiresAtMs - now(), () => {
      // The time of day may have been set back.
      const leftMs = expiresAtMs - now();
      if (leftMs > 0) this.after(alarm, leftMs);
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
