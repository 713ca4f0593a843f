import type { Clock } from '../watch/clock.ts';
import type { Asked } from './query.ts';
import type { Session } from './session.ts';
import type { Sink } from './sink.ts';

/** What the timers of a session go by. */
export interface Timing extends Interval {
  readonly asked: Asked;
  /** The version of the head. */
  readonly version: () => string;
}

/** How often, and by which clock. */
interface Interval {
  readonly intervalMs: number;
  readonly clock: Clock;
}

/** Starts the timers of a session: for the end that its client asked for, and for telling it how far it has come. */
export function startTimers(session: Session, sink: Sink, { asked, version, intervalMs, clock }: Timing): void {
  if (asked.timeoutSeconds !== undefined) endAfter(session, asked.timeoutSeconds * 1_000, clock);
  if (asked.allowWatchBookmarks === true) bookmarkEvery(session, { intervalMs, clock });
  else markEvery(session, sink, { intervalMs, clock, version });
}

/** Ends a session in order after so long. */
function endAfter(session: Session, delayMs: number, clock: Clock): void {
  session.whenOver(clock.schedule(delayMs, () => session.stop('timeout')));
}

/** BOOKMARK events from now on: one so often, and one before an end by timeout. */
function bookmarkEvery(session: Session, interval: Interval): void {
  session.bookmarks = true;
  every(session, interval, () => session.bookmark());
}

/** The same without an event, where the wire has a way to say it. */
function markEvery(session: Session, sink: Sink, { version, ...interval }: Interval & { version: () => string }): void {
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

function every(session: Session, { intervalMs, clock }: Interval, act: () => void): void {
  const tick = (): void => {
    session.flush();
    act();
    if (!session.over) cancel = clock.schedule(intervalMs, tick);
  };
  let cancel = clock.schedule(intervalMs, tick);
  session.whenOver(() => cancel());
}
