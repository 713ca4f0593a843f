import type { Clock } from '../../watch/clock.ts';
import type { Sink } from './connection.ts';
import type { HubSession } from './hub-session.ts';
import type { ParsedQuery } from './query.ts';

/** Settings of a session's timers. */
interface Timing extends Interval {
  readonly asked: ParsedQuery;
  /** Returns the version of the head. */
  readonly version: () => string;
}

interface Interval {
  readonly intervalMs: number;
  readonly clock: Clock;
}

/** Starts the timers of a session: the end that its client asked for, and regular reports of its position. */
export function startTimers(session: HubSession, sink: Sink, { asked, version, intervalMs, clock }: Timing): void {
  if (asked.timeoutSeconds !== undefined) endAfter(session, asked.timeoutSeconds * 1_000, clock);
  if (asked.allowWatchBookmarks === true) bookmarkEvery(session, { intervalMs, clock });
  else markEvery(session, sink, { intervalMs, clock, version });
}

/** Settings of a session's age limit; 0: none. */
interface AgeLimit {
  readonly maxConnectionAgeMs: number;
  readonly random: () => number;
  readonly clock: Clock;
}

/** Ends a session so that its client reconnects. The time is random: clients that came together must not all return together. */
export function limitAge(session: HubSession, { maxConnectionAgeMs, random, clock }: AgeLimit): void {
  if (maxConnectionAgeMs === 0) return;
  const delayMs = Math.ceil((maxConnectionAgeMs * (1 + random())) / 2);
  session.whenOver(clock.schedule(delayMs, () => session.stop('goingAway')));
}

/** When a session's right to its stream ends, in ms since 1970. */
interface Expiry {
  readonly expiresAtMs: number;
  readonly now: () => number;
  readonly clock: Clock;
}

/** Ends a session at that time, so that its client comes again and is admitted anew. */
export function endAt(session: HubSession, { expiresAtMs, now, clock }: Expiry): void {
  if (expiresAtMs === Number.POSITIVE_INFINITY) return;
  const plan = (): (() => void) => clock.schedule(expiresAtMs - now(), end);
  const end = (): void => {
    // A clock may shorten a long delay, and the time of day may have been set back.
    if (now() < expiresAtMs) cancel = plan();
    else session.stop('goingAway');
  };
  let cancel = plan();
  session.whenOver(() => cancel());
}

/** Ends a session regularly after a delay. */
function endAfter(session: HubSession, delayMs: number, clock: Clock): void {
  session.whenOver(clock.schedule(delayMs, () => session.stop('timeout')));
}

/** Sends a BOOKMARK at each interval, and one before an end by timeout or age. */
function bookmarkEvery(session: HubSession, interval: Interval): void {
  session.bookmarks = true;
  every(session, interval, () => session.bookmark());
}

/** Does the same without an event, if the wire format can express it. */
function markEvery(session: HubSession, sink: Sink, { version, ...interval }: Interval & { version: () => string }): void {
  if (sink.mark === undefined) return;
  every(session, interval, () => {
    if (!session.upToDate) return;
    try {
      sink.mark?.(version());
    } catch (error) {
      session.cut('failed', error);
    }
  });
}

function every(session: HubSession, { intervalMs, clock }: Interval, act: () => void): void {
  const tick = (): void => {
    session.flush();
    act();
    if (!session.over) cancel = clock.schedule(intervalMs, tick);
  };
  let cancel = clock.schedule(intervalMs, tick);
  session.whenOver(() => cancel());
}
